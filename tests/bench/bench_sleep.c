/* SPDX-License-Identifier: MIT OR Unlicense */
/* bench_sleep.c - requests and replies of 64 bytes between two processes that sleep whenever they have nothing to do: over
 * CCI, asleep on the OS handle, and over plain UDP sockets, both with an epoll loop written by hand. Linux only.
 *
 *     cc -O2 -I. -o bench_sleep bench_sleep.c -pthread
 *     ./bench_sleep [-D seconds] [-c cpu,cpu] cci|raw|batch|poll depth     one CSV line: round trips per second
 *     ./bench_sleep [-D seconds] [-c cpu,cpu] stream|stream-poll depth     one CSV line: messages per second
 *
 * `depth` requests are in flight; the server runs on the first CPU, the client on the second. `poll` is CCI without
 * sleeping. The raw loop is what a careful program does: it waits with epoll, receives until the socket is empty, and
 * answers each datagram with a system call. `batch` receives up to 64 datagrams with one system call and answers them
 * with another: what can be reached without a library where several requests are in flight.
 *   `stream` sends messages one way, `depth` of them in a datagram, each copied into its place and out of it, with up to
 * STREAM_WINDOW datagrams under way, each of which is acknowledged; both sides sleep on epoll, or with `stream-poll`
 * neither does. It is what a program without a library can lose by sleeping in a stream of messages. */
#define _GNU_SOURCE 1
#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALL_BYTES 64u
#define SOCKET_BUFFER_BYTES (4 << 20) /* what cci_udp.h asks for */
#define DEPTH_LIMIT 4096u
#define BATCH 64u /* datagrams of one system call */
#define STREAM_WINDOW 16u
#define STREAM_FRAME (8 + SMALL_BYTES) /* bytes of a message in its datagram: a head before it */
#define STREAM_BYTES 65000u

struct bench {
    double seconds;
    int cpus[2];
    uint32_t depth;
    int sleeps;
    int pipes[2]; /* the server tells the client where it is */
};

static char message[SMALL_BYTES];

static void die(const char *what) {
    fprintf(stderr, "bench_sleep: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "bench_sleep: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("can't run on that CPU");
}

/* An epoll set with one descriptor. */
static int watch(int fd) {
    struct epoll_event event;
    int set = epoll_create1(0);
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll");
    return set;
}

static void sleep_on(int set) {
    struct epoll_event event;
    if (epoll_wait(set, &event, 1, -1) < 0 && errno != EINTR) die("epoll_wait");
}

/* Counts round trips between a tenth of the time and its end. */
struct meter {
    uint64_t begin_ns, warm_ns, end_ns, count, looked;
};

static void meter_begin(struct meter *meter, const struct bench *bench) {
    memset(meter, 0, sizeof *meter);
    meter->begin_ns = now_ns();
    meter->warm_ns = meter->begin_ns + (uint64_t)(bench->seconds * 1e8);
    meter->end_ns = meter->begin_ns + (uint64_t)(bench->seconds * 1e9);
}

/* After each round trip; 0 when the time is over. */
static int meter_count(struct meter *meter) {
    uint64_t now;
    meter->count++;
    if (meter->looked++ % 16 != 0) return 1;
    now = now_ns();
    if (now < meter->warm_ns) {
        meter->count = 0;
        meter->begin_ns = now;
    }
    if (now < meter->end_ns) return 1;
    printf("round_trips,%.10g,1/s\n", (double)meter->count * 1e9 / (double)(now - meter->begin_ns));
    return 0;
}

/* ---- plain sockets --------------------------------------------------------------------------------------------- */

static int raw_socket(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int bytes = SOCKET_BUFFER_BYTES, fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof *address) != 0) die("bind");
    if (getsockname(fd, (struct sockaddr *)address, &length) != 0) die("getsockname");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    return fd;
}

static void raw_serve(struct bench *bench) {
    struct sockaddr_in address, from;
    int fd = raw_socket(&address), set = watch(fd);
    char buffer[2 * SMALL_BYTES];
    if (write(bench->pipes[1], &address, sizeof address) != (ssize_t)sizeof address) die("write");
    for (;;) {
        socklen_t length = sizeof from;
        ssize_t n = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
        if (n < 0) sleep_on(set);
        else (void)sendto(fd, buffer, (size_t)n, 0, (struct sockaddr *)&from, length);
    }
}

static void raw_ask(struct bench *bench) {
    struct sockaddr_in address, server;
    int fd = raw_socket(&address), set = watch(fd);
    char buffer[2 * SMALL_BYTES];
    struct meter meter;
    uint32_t i;
    if (read(bench->pipes[0], &server, sizeof server) != (ssize_t)sizeof server) die("read");
    meter_begin(&meter, bench);
    for (i = 0; i < bench->depth; i++)
        (void)sendto(fd, message, sizeof message, 0, (struct sockaddr *)&server, sizeof server);
    for (;;) {
        if (recvfrom(fd, buffer, sizeof buffer, 0, NULL, NULL) < 0) {
            sleep_on(set);
            continue;
        }
        if (!meter_count(&meter)) return;
        (void)sendto(fd, message, sizeof message, 0, (struct sockaddr *)&server, sizeof server);
    }
}

/* Datagrams of one system call, each in a place of its own. */
struct batch {
    struct mmsghdr items[BATCH];
    struct iovec places[BATCH];
    struct sockaddr_in peers[BATCH];
    char bytes[BATCH][SMALL_BYTES];
};

static struct batch batch;

static void batch_begin(void) {
    unsigned i;
    for (i = 0; i < BATCH; i++) {
        struct msghdr *item = &batch.items[i].msg_hdr;
        batch.places[i].iov_base = batch.bytes[i];
        batch.places[i].iov_len = SMALL_BYTES;
        item->msg_iov = &batch.places[i];
        item->msg_iovlen = 1;
        item->msg_name = &batch.peers[i];
        item->msg_namelen = sizeof batch.peers[i];
    }
}

static unsigned batch_take(int fd, int set) {
    for (;;) {
        int n = recvmmsg(fd, batch.items, BATCH, 0, NULL);
        if (n > 0) return (unsigned)n;
        sleep_on(set);
    }
}

/* To those from whom they came. */
static void batch_send(int fd, unsigned count) {
    unsigned done = 0;
    while (done < count) {
        int n = sendmmsg(fd, batch.items + done, count - done, 0);
        if (n < 0 && errno != EAGAIN) die("sendmmsg");
        done += n > 0 ? (unsigned)n : 0;
    }
}

static void batch_serve(struct bench *bench) {
    struct sockaddr_in address;
    int fd = raw_socket(&address), set = watch(fd);
    batch_begin();
    if (write(bench->pipes[1], &address, sizeof address) != (ssize_t)sizeof address) die("write");
    for (;;) batch_send(fd, batch_take(fd, set));
}

static void batch_ask(struct bench *bench) {
    struct sockaddr_in address, server;
    int fd = raw_socket(&address), set = watch(fd);
    struct meter meter;
    uint32_t i;
    batch_begin();
    if (read(bench->pipes[0], &server, sizeof server) != (ssize_t)sizeof server) die("read");
    meter_begin(&meter, bench);
    for (i = 0; i < bench->depth; i++)
        (void)sendto(fd, message, sizeof message, 0, (struct sockaddr *)&server, sizeof server);
    for (;;) {
        unsigned count = batch_take(fd, set), k;
        for (k = 0; k < count; k++)
            if (!meter_count(&meter)) return;
        batch_send(fd, count);
    }
}

/* ---- plain sockets, one way ------------------------------------------------------------------------------------ */

static char stream_bytes[STREAM_BYTES];
static char stream_taken[SMALL_BYTES]; /* what the program does with a message */

/* One datagram; sleeps until there is one, if it may. */
static ssize_t stream_take(int fd, int set, struct sockaddr_in *from) {
    for (;;) {
        socklen_t length = sizeof *from;
        ssize_t n = recvfrom(fd, stream_bytes, sizeof stream_bytes, 0, (struct sockaddr *)from, &length);
        if (n >= 0) return n;
        if (set >= 0) sleep_on(set);
    }
}

static void stream_serve(struct bench *bench) {
    struct sockaddr_in address, from;
    int fd = raw_socket(&address), set = bench->sleeps ? watch(fd) : -1;
    if (write(bench->pipes[1], &address, sizeof address) != (ssize_t)sizeof address) die("write");
    for (;;) {
        ssize_t n = stream_take(fd, set, &from), at;
        for (at = 0; at + (ssize_t)STREAM_FRAME <= n; at += (ssize_t)STREAM_FRAME)
            memcpy(stream_taken, stream_bytes + at + 8, SMALL_BYTES);
        (void)sendto(fd, stream_bytes, 24, 0, (struct sockaddr *)&from, sizeof from);
    }
}

static void stream_ask(struct bench *bench) {
    static char datagram[STREAM_BYTES];
    struct sockaddr_in address, server, from;
    int fd = raw_socket(&address), set = bench->sleeps ? watch(fd) : -1;
    uint32_t under_way = 0, i;
    struct meter meter;
    if (read(bench->pipes[0], &server, sizeof server) != (ssize_t)sizeof server) die("read");
    meter_begin(&meter, bench);
    for (;;) {
        while (under_way < STREAM_WINDOW) {
            for (i = 0; i < bench->depth; i++) memcpy(datagram + i * STREAM_FRAME + 8, message, SMALL_BYTES);
            if (sendto(fd, datagram, bench->depth * STREAM_FRAME, 0, (struct sockaddr *)&server, sizeof server) < 0)
                break; /* the socket is full */
            under_way++;
        }
        (void)stream_take(fd, set, &from);
        under_way--;
        for (i = 0; i < bench->depth; i++)
            if (!meter_count(&meter)) return;
    }
}

/* ---- CCI ------------------------------------------------------------------------------------------------------- */

static cci_endpoint_t *endpoint;
static int handle_set = -1;

static void cci_open(const struct bench *bench) {
    cci_setup_t setup;
    cci_os_handle_t handle;
    uint32_t caps, depth = bench->depth > 512 ? 2 * bench->depth : 1024;
    memset(&setup, 0, sizeof setup);
    setup.config = "[lo]\ntransport = udp\ninterface = lo\n";
    check(cci_setup(&setup), "cci_setup");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(NULL, 0, &endpoint, bench->sleeps ? &handle : NULL), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &depth), "send buffers");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &depth), "receive buffers");
    if (bench->sleeps) handle_set = watch(handle);
}

static cci_event_t *next_event(void) {
    cci_event_t *event;
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS)
        if (handle_set >= 0) sleep_on(handle_set);
    return event;
}

static void cci_serve(struct bench *bench) {
    char *uri;
    cci_open(bench);
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "uri");
    if (write(bench->pipes[1], uri, strlen(uri) + 1) < 0) die("write");
    for (;;) {
        cci_event_t *event = next_event();
        if (event->type == CCI_EVENT_CONNECT_REQUEST) check(cci_accept(event, NULL), "accept");
        if (event->type == CCI_EVENT_RECV)
            check(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT), "reply");
        check(cci_return_event(event), "cci_return_event");
    }
}

static void cci_ask(struct bench *bench) {
    char uri[256];
    struct meter meter;
    cci_event_t *event;
    cci_connection_t *connection;
    uint32_t i;
    int running = 1;
    cci_open(bench);
    if (read(bench->pipes[0], uri, sizeof uri) <= 0) die("read");
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), uri);
    event = next_event();
    check((int)event->connect.status, "connect");
    connection = event->connect.connection;
    check(cci_return_event(event), "cci_return_event");
    meter_begin(&meter, bench);
    for (i = 0; i < bench->depth; i++)
        check(cci_send(connection, message, sizeof message, NULL, CCI_FLAG_SILENT), "request");
    while (running) {
        event = next_event();
        if (event->type == CCI_EVENT_RECV) {
            running = meter_count(&meter);
            check(cci_send(connection, message, sizeof message, NULL, CCI_FLAG_SILENT), "request");
        }
        check(cci_return_event(event), "cci_return_event");
    }
}

static void run(struct bench *bench, void (*serve)(struct bench *), void (*ask)(struct bench *)) {
    pid_t child;
    if (pipe(bench->pipes) != 0) die("pipe");
    child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(bench->cpus[0]);
        serve(bench);
        _exit(0);
    }
    pin(bench->cpus[1]);
    ask(bench);
    fflush(stdout);
    kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void usage(void) {
    fprintf(stderr, "usage: bench_sleep [-D seconds] [-c cpu,cpu] cci|raw|batch|poll|stream|stream-poll depth\n");
    exit(2);
}

int main(int argc, char **argv) {
    struct bench bench;
    int option;
    memset(&bench, 0, sizeof bench);
    bench.seconds = 0.3;
    bench.cpus[1] = 1;
    while ((option = getopt(argc, argv, "D:c:h")) != -1) {
        if (option == 'D') bench.seconds = strtod(optarg, NULL);
        else if (option != 'c' || sscanf(optarg, "%d,%d", &bench.cpus[0], &bench.cpus[1]) != 2) usage();
    }
    if (optind + 2 != argc || bench.seconds <= 0 || bench.seconds > 60) usage();
    bench.depth = (uint32_t)strtoul(argv[optind + 1], NULL, 10);
    if (bench.depth == 0 || bench.depth > DEPTH_LIMIT) usage();
    bench.sleeps = strcmp(argv[optind], "cci") == 0 || strcmp(argv[optind], "stream") == 0;
    if (strcmp(argv[optind], "raw") == 0) run(&bench, raw_serve, raw_ask);
    else if (strcmp(argv[optind], "batch") == 0) run(&bench, batch_serve, batch_ask);
    else if (strncmp(argv[optind], "stream", 6) == 0 && bench.depth * STREAM_FRAME <= STREAM_BYTES)
        run(&bench, stream_serve, stream_ask);
    else if (strcmp(argv[optind], "cci") == 0 || strcmp(argv[optind], "poll") == 0) run(&bench, cci_serve, cci_ask);
    else usage();
    return 0;
}
