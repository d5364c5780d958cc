/* bench_cores.c - what several endpoints of one address serve: requests per second of two threads beside those of one.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     bench_cores [ROUNDS]      prints lines "name value"
 *
 * A process has 1 or 2 threads, each bound to a processor, with an endpoint of its own at the same address. Another process
 * is the clients: 512 connections with one request of 64 bytes each, half of them for each thread. They take turns, so that
 * the clients stay outside the measurement: while the clients send, the servers do nothing; then the servers work off what
 * has come, and send their answers, while the clients do nothing. What counts is the processor time of the threads in calls
 * that serve requests, since the clock would tell who else uses the machine. So the figures say what one and two threads
 * serve that have a processor each; where two are free, both do work at once, and what they cost each other is in it.
 *
 *     cores-1, cores-2      requests per second of one thread, of two
 *     cores-ratio           the second by the first
 *     cores-handed-over     packets that came to the wrong one of two
 */
#define _GNU_SOURCE 1

#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { CLIENTS = 32, CONNECTIONS = 16, ALL = CLIENTS * CONNECTIONS, TURNS = 60, WARM_UP = 10, BYTES = 64, SERVERS = 2 };

/* Between the processes. */
typedef struct board {
    char uri[128];
    int ready, stop;
    int is_begun;    /* all connections are there: from now on turns are taken */
    int turn;        /* the servers may work at that one */
    int answered;    /* all answers of that turn have come */
    int rests;       /* of all servers: one before the first turn and one after each */
    int served;      /* requests of all turns            */
    uint64_t busy_ns[SERVERS]; /* of the turns that count */
    uint64_t handed_over[SERVERS];
} board_t;

static board_t *board;

static void die(const char *what) {
    fprintf(stderr, "bench_cores: %s\n", what);
    exit(1);
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin(void) {
    cci_setup_t setup;
    uint32_t caps;
    memset(&setup, 0, sizeof setup);
    setup.config = "[lo]\ntransport = udp\ninterface = lo\nmtu = 1500\n";
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        die("cci_init failed");
    }
}

/* Binds the thread to the number-th processor of those that there are. */
static void bind_to(int number) {
    cpu_set_t all, one;
    size_t cpu;
    int left = number;
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return;
    }
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && left-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

/* ---- servers ---------------------------------------------------------------------------------------------------- */

/* Serves what is there; returns how many requests that were. */
static int serve(cci_endpoint_t *endpoint, uint8_t number) {
    cci_event_t *event;
    int served = 0;
    while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_RECV) {
            uint8_t answer[BYTES];
            memcpy(answer, event->recv.ptr, sizeof answer);
            answer[0] = number;
            (void)cci_send(event->recv.connection, answer, sizeof answer, NULL, CCI_FLAG_SILENT);
            served++;
        }
        (void)cci_return_event(event);
    }
    return served;
}

/* Works until all requests of a turn are served. What counts is the time of calls that serve some. */
static void take_turn(cci_endpoint_t *endpoint, int number, int turn) {
    while (__atomic_load_n(&board->served, __ATOMIC_SEQ_CST) < turn * ALL) {
        uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        int served = serve(endpoint, (uint8_t)number);
        if (served > 0) {
            board->busy_ns[number] += turn > WARM_UP ? clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns : 0;
            __atomic_add_fetch(&board->served, served, __ATOMIC_SEQ_CST);
        }
    }
}

static void *be_server(void *which) {
    int number = (int)(intptr_t)which, turn = 0;
    cci_endpoint_t *endpoint;
    bind_to(number);
    while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) != number) {
        sched_yield(); /* the first chooses the port */
    }
    if (cci_create_endpoint_at(NULL, number ? strrchr(board->uri, ':') + 1 : NULL, CCI_ENDPOINT_SHARED, &endpoint, NULL) !=
        CCI_SUCCESS) {
        die("a server has no endpoint");
    }
    if (number == 0) {
        char *uri;
        (void)cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri);
        snprintf(board->uri, sizeof board->uri, "%s", uri);
        free(uri);
    }
    __atomic_add_fetch(&board->ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&board->is_begun, __ATOMIC_SEQ_CST)) {
        (void)serve(endpoint, (uint8_t)number);
        sched_yield();
    }
    __atomic_add_fetch(&board->rests, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&board->stop, __ATOMIC_SEQ_CST)) {
        int now = __atomic_load_n(&board->turn, __ATOMIC_SEQ_CST);
        if (now == turn) {
            (void)usleep(50);
            continue;
        }
        turn = now;
        take_turn(endpoint, number, turn);
        while (__atomic_load_n(&board->answered, __ATOMIC_SEQ_CST) < turn) {
            (void)serve(endpoint, (uint8_t)number); /* answers may still have to leave */
            sched_yield();
        }
        __atomic_add_fetch(&board->rests, 1, __ATOMIC_SEQ_CST);
    }
    board->handed_over[number] = ((cci__udp_link *)((cci__dgram_t *)(uintptr_t)endpoint)->base.handle)->share.handed_over;
    return NULL;
}

static void be_servers(int count) {
    pthread_t thread[SERVERS];
    int i;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    begin();
    for (i = 0; i < count; i++) {
        if (pthread_create(&thread[i], NULL, be_server, (void *)(intptr_t)i) != 0) {
            die("a thread can't be started");
        }
    }
    for (i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
    }
    (void)cci_finalize();
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

typedef struct client {
    cci_endpoint_t *endpoint;
    cci_connection_t *connection[CONNECTIONS];
    int connected, answers;
    uint8_t member; /* who gave the last answer */
} client_t;

static client_t client[CLIENTS];

/* Lets a client work; what has come of it stands in there. */
static void work(client_t *c) {
    cci_event_t *event;
    while (cci_get_event(c->endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT) {
            if (event->connect.status != CCI_SUCCESS) {
                die("a client can't connect");
            }
            c->connection[c->connected++] = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV) {
            memcpy(&c->member, event->recv.ptr, 1);
            c->answers++;
        }
        (void)cci_return_event(event);
    }
}

static void ask(cci_connection_t *connection) {
    uint8_t bytes[BYTES] = {0};
    if (cci_send(connection, bytes, BYTES, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
        die("a client can't send");
    }
}

static void connect_one(client_t *c) {
    int before = c->connected;
    if (cci_connect(c->endpoint, board->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS) {
        die("a client can't connect");
    }
    while (c->connected == before) {
        work(c);
        sched_yield();
    }
}

/* The kernel's hash chooses the member that serves an endpoint: as many are made as it takes for each to have its part. */
static void begin_clients(int servers) {
    int part[SERVERS] = {0, 0}, count = 0, k;
    while (count < CLIENTS) {
        client_t *c = &client[count];
        memset(c, 0, sizeof *c);
        if (cci_create_endpoint(NULL, 0, &c->endpoint, NULL) != CCI_SUCCESS) {
            die("a client has no endpoint");
        }
        connect_one(c);
        ask(c->connection[0]);
        while (c->answers == 0) {
            work(c);
            sched_yield();
        }
        if (part[c->member] == CLIENTS / servers) {
            (void)cci_destroy_endpoint(c->endpoint);
            continue;
        }
        part[c->member]++;
        for (k = 1; k < CONNECTIONS; k++) {
            connect_one(c);
        }
        c->answers = 0;
        count++;
    }
}

/* The clients' part of a turn: all ask; when the servers are ready, all take their answers. */
static void run_turn(int turn, int servers) {
    int i, k, left = 1, waits = 0;
    while (__atomic_load_n(&board->rests, __ATOMIC_SEQ_CST) < turn * servers) {
        sched_yield();
    }
    for (i = 0; i < CLIENTS; i++) {
        for (k = 0; k < CONNECTIONS; k++) {
            ask(client[i].connection[k]);
        }
        work(&client[i]);
    }
    __atomic_store_n(&board->turn, turn, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&board->served, __ATOMIC_SEQ_CST) < turn * ALL) {
        (void)usleep(100);
        for (i = 0; i < CLIENTS && waits >= 1000; i++) { /* something was lost */
            work(&client[i]);
        }
        waits++;
    }
    while (left) {
        for (i = 0, left = 0; i < CLIENTS; i++) {
            work(&client[i]);
            left += client[i].answers < turn * CONNECTIONS;
        }
        sched_yield();
    }
    __atomic_store_n(&board->answered, turn, __ATOMIC_SEQ_CST);
}

/* Seconds of the servers' processor time for all the turns that count. */
static double measure(int servers) {
    double busy_s = 0;
    int i, status;
    pid_t pid;
    memset(board, 0, sizeof *board);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        be_servers(servers);
        _exit(0);
    }
    while (pid < 0 || __atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < servers) {
        if (pid < 0 || waitpid(pid, &status, WNOHANG) == pid) {
            die("the servers did not start");
        }
        (void)usleep(1000);
    }
    begin();
    begin_clients(servers);
    __atomic_store_n(&board->is_begun, 1, __ATOMIC_SEQ_CST);
    for (i = 1; i <= WARM_UP + TURNS; i++) {
        run_turn(i, servers);
    }
    __atomic_store_n(&board->stop, 1, __ATOMIC_SEQ_CST);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        die("the servers failed");
    }
    (void)cci_finalize();
    for (i = 0; i < servers; i++) {
        busy_s += (double)board->busy_ns[i] / 1e9;
    }
    return busy_s;
}

int main(int argc, char **argv) {
    int round, rounds = argc > 1 ? atoi(argv[1]) : 3;
    void *shared = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        die("there is no memory");
    }
    board = (board_t *)shared;
    for (round = 0; round < rounds; round++) {
        double one = measure(1), two = measure(2);
        printf("cores-1 %.0f\ncores-2 %.0f\ncores-ratio %.2f\ncores-handed-over %.0f\n", TURNS * ALL / one, 2 * TURNS * ALL / two,
               2 * one / two, (double)(board->handed_over[0] + board->handed_over[1]));
    }
    return 0;
}
