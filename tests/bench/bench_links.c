/* bench_links.c - what many links cost one endpoint over shared memory: a round trip, and messages per second.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     bench_links [ROUNDS]      prints lines "name value"
 *     bench_links steps N       half round trips with N links in one thread: valgrind can count what the server does (answer)
 *
 * A process has a server's endpoint, which polls; another has 1, 10, 100 or 1,000 clients' endpoints, each with a link to it. The
 * clients take turns by chance: one asks, waits for the answer, and then another one does; or each message of a stream
 * is another's. In each round all numbers of links are measured, one after the other.
 *
 *     links-trip-N      nanoseconds of half a round trip with N links
 *     links-rate-N      messages of 64 bytes per second
 *     links-open-N      endpoints opened and connected per second
 *     links-step-N      nanoseconds of half a round trip in one thread
 */
#define _GNU_SOURCE 1

#define CCI_IMPLEMENTATION
#include "cci_sisci.h"

#include "cci.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { MOST = 1000, BYTES = 64, TRIPS = 20000, MESSAGES = 400000 };

/* Between the processes. */
typedef struct board {
    char uri[64];
    int ready, echoes, stop;
    uint64_t received;
} board_t;

static board_t *board;
static cci_endpoint_t *client[MOST];
static cci_connection_t *connection[MOST];
static uint32_t chance = 1;

static void die(const char *what) {
    fprintf(stderr, "bench_links: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set); /* where there is but one, it is shared */
}

static void begin(void) {
    static const char config[] = "[shm]\ntransport = sisci\nsend_buf_count = 64\n";
    cci_setup_t setup;
    uint32_t caps;
    memset(&setup, 0, sizeof setup);
    setup.config = config;
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        die("no CCI");
    }
}

static void serve(void) {
    cci_endpoint_t *ep;
    cci_event_t *event;
    char *uri = NULL;
    run_on(0);
    begin();
    if (cci_create_endpoint(NULL, 0, &ep, NULL) != CCI_SUCCESS || cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS) {
        die("no server");
    }
    snprintf(board->uri, sizeof board->uri, "%s", uri);
    __atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&board->stop, __ATOMIC_RELAXED)) {
        if (cci_get_event(ep, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_RECV) {
            if (__atomic_load_n(&board->echoes, __ATOMIC_RELAXED)) {
                (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
            }
            __atomic_store_n(&board->received, board->received + 1, __ATOMIC_RELEASE);
        }
        (void)cci_return_event(event);
    }
    exit(0);
}

static cci_event_t *await(cci_endpoint_t *ep) {
    cci_event_t *event;
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {}
    return event;
}

static void open_clients(int count) {
    int i;
    for (i = 0; i < count; i++) {
        cci_event_t *event;
        if (cci_create_endpoint(NULL, 0, &client[i], NULL) != CCI_SUCCESS ||
            cci_connect(client[i], board->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS) {
            die("no client: more descriptors are needed, 12 for each");
        }
        event = await(client[i]);
        if (event->type != CCI_EVENT_CONNECT || event->connect.status != CCI_SUCCESS) {
            die("no connection");
        }
        connection[i] = event->connect.connection;
        (void)cci_return_event(event);
    }
}

static int any_of(int count) {
    chance = chance * 1664525u + 1013904223u;
    return (int)((chance >> 8) % (uint32_t)count);
}

static double trip_ns(int count) {
    char message[BYTES] = "";
    uint64_t begun_ns;
    int i;
    __atomic_store_n(&board->echoes, 1, __ATOMIC_RELEASE);
    begun_ns = now_ns();
    for (i = 0; i < TRIPS; i++) {
        int k = any_of(count);
        if (cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
            die("a send failed");
        }
        (void)cci_return_event(await(client[k]));
    }
    return (double)(now_ns() - begun_ns) / 2 / TRIPS;
}

static double rate(int count) {
    char message[BYTES] = "";
    uint64_t begun_ns, goal = __atomic_load_n(&board->received, __ATOMIC_ACQUIRE) + MESSAGES;
    int i;
    __atomic_store_n(&board->echoes, 0, __ATOMIC_RELEASE);
    begun_ns = now_ns();
    for (i = 0; i < MESSAGES; i++) {
        int k = any_of(count);
        while (cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
            cci_event_t *event;
            (void)cci_get_event(client[k], &event); /* what waits for space goes on */
        }
    }
    while (__atomic_load_n(&board->received, __ATOMIC_ACQUIRE) < goal) {
        cci_event_t *event;
        (void)cci_get_event(client[any_of(count)], &event);
    }
    return MESSAGES * 1e9 / (double)(now_ns() - begun_ns);
}

static void measure(int count) {
    uint64_t begun_ns;
    pid_t pid;
    memset(board, 0, sizeof *board);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve();
    }
    while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_on(1);
        begin();
        begun_ns = now_ns();
        open_clients(count);
        printf("links-open-%d %.1f\n", count, count * 1e9 / (double)(now_ns() - begun_ns));
        printf("links-trip-%d %.1f\n", count, trip_ns(count));
        printf("links-rate-%d %.0f\n", count, rate(count));
        fflush(stdout);
        __atomic_store_n(&board->stop, 1, __ATOMIC_RELEASE);
        _exit(0);
    }
    while (wait(NULL) > 0) {}
    if (!board->stop) {
        die("a client failed");
    }
}

/* ---- one thread ---------------------------------------------------------------------------------------------------------- */

static cci_endpoint_t *hub;

/* Lets the server answer what has come; how much it was. */
__attribute__((noinline)) int answer(void);
int answer(void) {
    cci_event_t *event;
    int count = 0;
    while (cci_get_event(hub, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_RECV) {
            (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
            count++;
        }
        (void)cci_return_event(event);
    }
    return count;
}

static cci_event_t *await_beside_hub(cci_endpoint_t *ep) {
    cci_event_t *event;
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {
        (void)answer();
    }
    return event;
}

static void step_trips(int count, int trips) {
    char message[BYTES] = "";
    while (trips-- > 0) {
        int k = any_of(count);
        (void)cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT);
        (void)answer();
        (void)cci_return_event(await_beside_hub(client[k]));
    }
}

static void steps(int count) {
    uint64_t begun_ns;
    char *uri = NULL;
    int i;
    begin();
    if (cci_create_endpoint(NULL, 0, &hub, NULL) != CCI_SUCCESS || cci_get_opt(hub, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS) {
        die("no server");
    }
    for (i = 0; i < count; i++) {
        cci_event_t *event;
        if (cci_create_endpoint(NULL, 0, &client[i], NULL) != CCI_SUCCESS ||
            cci_connect(client[i], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS) {
            die("no client: more descriptors are needed, 12 for each");
        }
        event = await_beside_hub(client[i]);
        connection[i] = event->connect.connection;
        (void)cci_return_event(event);
    }
    for (i = 0; i < 20000; i++) {
        (void)answer();
    }
    begun_ns = now_ns();
    step_trips(count, TRIPS);
    printf("links-step-%d %.1f\n", count, (double)(now_ns() - begun_ns) / 2 / TRIPS);
    (void)cci_finalize();
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, count;
    struct rlimit r;
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || getrlimit(RLIMIT_NOFILE, &r) != 0) {
        die("no memory");
    }
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
    if (argc > 2) {
        count = atoi(argv[2]);
        steps(count < 1 ? 1 : count < MOST ? count : (int)MOST);
        return 0;
    }
    for (; rounds > 0; rounds--) {
        for (count = 1; count <= MOST; count *= 10) {
            measure(count);
        }
    }
    return 0;
}
