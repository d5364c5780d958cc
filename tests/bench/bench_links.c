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

#include <time.h>

#ifdef VIRTUAL_CLOCK /* valgrind counts what is done for messages, and not what is done because it is slow */
static struct timespec virtual_time = {1, 0};
static int virtual_clock(clockid_t clock, struct timespec *t) {
    (void)clock;
    virtual_time.tv_nsec += 50;
    virtual_time.tv_sec += virtual_time.tv_nsec >= 1000000000;
    virtual_time.tv_nsec -= virtual_time.tv_nsec >= 1000000000 ? 1000000000 : 0;
    *t = virtual_time;
    return 0;
}
#define clock_gettime virtual_clock
#endif

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

enum { MOST = 1000, BYTES = 64, TRIPS = 200000, MESSAGES = 2000000, WARM = 200, STEPS = 20000 };

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

static double trip_ns(int count, int trips) {
    char message[BYTES] = "";
    uint64_t begun_ns;
    int i;
    __atomic_store_n(&board->echoes, 1, __ATOMIC_RELEASE);
    begun_ns = now_ns();
    for (i = 0; i < trips; i++) {
        int k = any_of(count);
        if (cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
            die("a send failed");
        }
        (void)cci_return_event(await(client[k]));
    }
    return (double)(now_ns() - begun_ns) / 2 / trips;
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
        (void)trip_ns(count, WARM * count);
        printf("links-trip-%d %.1f\n", count, trip_ns(count, TRIPS));
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

/* ---- by hand ---------------------------------------------------------------------------------------------------------- */

enum { RECORDS = 64, RECORD_BYTES = 128 };

/* A record is two lines: a number that says that it is there, and a message. */
typedef struct ring {
    uint8_t record[RECORDS][RECORD_BYTES];
    uint32_t freed, unused[31];
} ring_t;

/* What a program has that needs nothing but this: rings there and back, and a bit for each that has something. */
typedef struct rings {
    uint64_t marks[(MOST + 63) / 64];
    uint64_t unused[16];
    int stop, echoes;
    uint64_t received;
    ring_t there[MOST], back[MOST];
} rings_t;

/* What each side knows of a ring. */
typedef struct hand {
    uint32_t head, freed, tail;
} hand_t;

static rings_t *rings;
static hand_t hand[MOST];

static void hand_put(ring_t *ring, uint32_t number, const char *message) {
    uint8_t *record = ring->record[number % RECORDS];
    memcpy(record + 64, message + 48, BYTES - 48);
    memcpy(record + 16, message, 48);
    __atomic_store_n((uint32_t *)(void *)record, number + 1, __ATOMIC_RELEASE);
}

static int hand_take(const ring_t *ring, uint32_t number, char *message) {
    const uint8_t *record = ring->record[number % RECORDS];
    if (__atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE) != number + 1) {
        return 0;
    }
    memcpy(message, record + 16, BYTES);
    return 1;
}

static void hand_serve_one(int k) {
    char message[BYTES];
    while (hand_take(&rings->there[k], hand[k].tail, message)) {
        hand[k].tail++;
        if (__atomic_load_n(&rings->echoes, __ATOMIC_RELAXED)) {
            hand_put(&rings->back[k], hand[k].head++, message);
        } else if (hand[k].tail % (RECORDS / 4) == 0) {
            __atomic_store_n(&rings->there[k].freed, hand[k].tail, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&rings->received, rings->received + 1, __ATOMIC_RELEASE);
    }
}

static void hand_serve(int count) {
    int i;
    memset(hand, 0, sizeof hand);
    run_on(0);
    while (!__atomic_load_n(&rings->stop, __ATOMIC_RELAXED)) {
        for (i = 0; i < (count + 63) / 64; i++) {
            uint64_t bits = __atomic_load_n(&rings->marks[i], __ATOMIC_RELAXED);
            bits = bits ? __atomic_exchange_n(&rings->marks[i], 0, __ATOMIC_SEQ_CST) : 0;
            for (; bits; bits &= bits - 1) {
                hand_serve_one(64 * i + __builtin_ctzll(bits));
            }
        }
    }
    _exit(0);
}

static void hand_send(int k, const char *message) {
    hand_put(&rings->there[k], hand[k].head++, message);
    (void)__atomic_fetch_or(&rings->marks[k / 64], (uint64_t)1 << (k % 64), __ATOMIC_SEQ_CST);
}

static double hand_trip_ns(int count, int trips) {
    char message[BYTES] = "";
    uint64_t begun_ns = now_ns();
    int i;
    for (i = 0; i < trips; i++) {
        int k = any_of(count);
        hand_send(k, message);
        while (!hand_take(&rings->back[k], hand[k].tail, message)) {}
        hand[k].tail++;
    }
    return (double)(now_ns() - begun_ns) / 2 / trips;
}

static double hand_rate(int count) {
    char message[BYTES] = "";
    uint64_t begun_ns, goal = __atomic_load_n(&rings->received, __ATOMIC_ACQUIRE) + MESSAGES;
    int i;
    for (i = 0; i < count; i++) {
        hand[i].freed = hand[i].head;
    }
    __atomic_store_n(&rings->echoes, 0, __ATOMIC_RELEASE);
    begun_ns = now_ns();
    for (i = 0; i < MESSAGES; i++) {
        int k = any_of(count);
        while (hand[k].head - hand[k].freed >= RECORDS) {
            uint32_t freed = __atomic_load_n(&rings->there[k].freed, __ATOMIC_ACQUIRE);
            hand[k].freed = (int32_t)(freed - hand[k].freed) > 0 ? freed : hand[k].freed;
        }
        hand_send(k, message);
    }
    while (__atomic_load_n(&rings->received, __ATOMIC_ACQUIRE) < goal) {}
    return MESSAGES * 1e9 / (double)(now_ns() - begun_ns);
}

/* The same with rings written by hand, which is what the machine's caches let N links do. */
static void measure_by_hand(int count) {
    pid_t pid;
    memset(rings, 0, sizeof *rings);
    rings->echoes = 1;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        hand_serve(count);
    }
    run_on(1);
    memset(hand, 0, sizeof hand);
    (void)hand_trip_ns(count, WARM * count);
    printf("hand-trip-%d %.1f\n", count, hand_trip_ns(count, TRIPS));
    printf("hand-rate-%d %.0f\n", count, hand_rate(count));
    fflush(stdout);
    __atomic_store_n(&rings->stop, 1, __ATOMIC_RELEASE);
    while (wait(NULL) > 0) {}
}

/* ---- one thread ---------------------------------------------------------------------------------------------------------- */

static cci_endpoint_t *hub;

/* One look of the server's: whether it found a request, which is answered. */
static inline int look(void) {
    cci_event_t *event;
    int is_request = 0;
    if (cci_get_event(hub, &event) != CCI_SUCCESS) {
        return 0;
    }
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        (void)cci_accept(event, NULL);
    } else if (event->type == CCI_EVENT_RECV) {
        (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
        is_request = 1;
    }
    (void)cci_return_event(event);
    return is_request;
}

/* What the server does for one request, with the looks that find nothing; valgrind counts this. */
__attribute__((noinline)) void answer(void);
void answer(void) {
    while (!look()) {}
}

/* What its client does. */
__attribute__((noinline)) void ask(int k, const char *message);
void ask(int k, const char *message) {
    (void)cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT);
}

__attribute__((noinline)) void hear(int k);
void hear(int k) {
    (void)cci_return_event(await(client[k]));
}

static cci_event_t *await_beside_hub(cci_endpoint_t *ep) {
    cci_event_t *event;
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {
        (void)look();
    }
    return event;
}

static void warm_up(int count, int trips) {
    char message[BYTES] = "";
    while (trips-- > 0) {
        int k = any_of(count);
        (void)cci_send(connection[k], message, BYTES, NULL, CCI_FLAG_SILENT);
        while (!look()) {}
        (void)cci_return_event(await_beside_hub(client[k]));
    }
}

/* Opens what takes part, and goes round the rings. */
static void prepare_steps(int count) {
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
        (void)look();
    }
    warm_up(count, 50 * count);
}

static void steps(int count) {
    char message[BYTES] = "";
    int i;
    prepare_steps(count);
    for (i = 0; i < STEPS; i++) {
        int k = any_of(count);
#ifdef VIRTUAL_CLOCK
        virtual_time.tv_nsec += 100;
#endif
        ask(k, message);
        answer();
        hear(k);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1, count;
    struct rlimit r;
    board = (board_t *)mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rings = (rings_t *)mmap(NULL, sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || rings == MAP_FAILED || getrlimit(RLIMIT_NOFILE, &r) != 0) {
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
            measure_by_hand(count);
        }
    }
    return 0;
}
