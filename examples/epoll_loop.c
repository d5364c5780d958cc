/* SPDX-License-Identifier: MIT OR Unlicense */
/* epoll_loop.c - an endpoint in an epoll loop, beside standard input and a timer (Linux).
 *
 *     cc -O2 -I.. -o epoll_loop epoll_loop.c -pthread
 *     ./epoll_loop           prints its URI, then what peers send; ends with SIGTERM or SIGINT
 *     ./epoll_loop URI       sends each piece of its input; ends when the input ends and all of it has arrived
 *
 * Three rules hold for every event loop:
 *     - watch the OS handle for reading, and never read from it;
 *     - when it is readable, call cci_get_event() as long as it returns CCI_SUCCESS: only then sleep again;
 *     - after CCI_ENOBUFS stop watching the source of the data, here the input, until a send has completed.
 * The timer prints once a second what the endpoint has received, if anything came. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static cci_endpoint_t *endpoint;
static cci_connection_t *server; /* the client's connection, NULL until it is made */
static int loop, pending, input_is_open, is_over;
static char piece[1024]; /* of the input: `length` bytes that wait for a send buffer */
static ssize_t length;

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

static void must(int result, const char *what) {
    if (result >= 0) return;
    perror(what);
    exit(1);
}

static void watch(int fd) {
    struct epoll_event wanted = {EPOLLIN, {0}};
    wanted.data.fd = fd;
    must(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &wanted), "epoll_ctl");
}

/* Watches the input or not. What epoll can't watch, a regular file for one, is refused with EPERM. */
static void watch_input(int is_wanted) {
    static int is_watched;
    if (is_wanted && !is_watched) watch(0);
    if (!is_wanted && is_watched) must(epoll_ctl(loop, EPOLL_CTL_DEL, 0, NULL), "epoll_ctl");
    is_watched = is_wanted;
}

/* Reads once, and sends what came. A piece that finds no send buffer is kept, and no more is read until it is sent. */
static void read_and_send(void) {
    if (length == 0) length = read(0, piece, sizeof piece);
    must((int)length, "input");
    if (length > 0) {
        int status = cci_send(server, piece, (uint32_t)length, NULL, 0);
        watch_input(status != CCI_ENOBUFS);
        if (status == CCI_ENOBUFS) return;
        check(status, "send");
        pending++;
    } else {
        watch_input(0);
        input_is_open = 0;
    }
    length = 0;
}

static void on_event(cci_event_t *event) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect");
        server = event->connect.connection;
        watch_input(1);
    }
    if (event->type == CCI_EVENT_SEND) {
        check((int)event->send.status, "send");
        pending--;
        if (length > 0) read_and_send();
    }
    if (event->type == CCI_EVENT_RECV) fwrite(event->recv.ptr, 1, event->recv.len, stdout);
    if (event->type == CCI_EVENT_DISCONNECT) {
        if (server) check(CCI_ERR_DISCONNECTED, "the server has left");
        check(cci_disconnect(event->disconnect.connection), "disconnect");
    }
}

static void on_tick(int timer) {
    static uint64_t before;
    cci_endpt_stats_t stats;
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) return;
    if (length > 0) read_and_send(); /* when nothing is pending, no completion tells of a free send buffer */
    if (cci_get_opt(endpoint, CCI_OPT_ENDPT_STATS, &stats) != CCI_SUCCESS || stats.bytes_received == before) return;
    fprintf(stderr, "%llu bytes received, %u connections\n", (unsigned long long)stats.bytes_received,
            stats.connections_open);
    before = stats.bytes_received;
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    const struct itimerspec second = {{1, 0}, {1, 0}};
    struct timeval patience = {5, 0};
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    cci_os_handle_t cci_fd;
    int timer, signals;
    sigset_t ends;
    char *uri;
    sigemptyset(&ends), sigaddset(&ends, SIGINT), sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before cci_init(): helper threads inherit it */
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(argc > 1 ? device_for(argv[1]) : NULL, 0, &endpoint, &cci_fd), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    loop = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    signals = signalfd(-1, &ends, SFD_CLOEXEC);
    must(loop < 0 || timer < 0 || signals < 0 ? -1 : 0, "epoll, timerfd, signalfd");
    must(timerfd_settime(timer, 0, &second, NULL), "timerfd_settime");
    watch(cci_fd), watch(timer), watch(signals);
    if (argc > 1) check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[1]);
    else printf("uri: %s\n", uri), fflush(stdout);
    input_is_open = argc > 1;
    while (!is_over && (argc < 2 || input_is_open || pending > 0)) {
        struct epoll_event ready[4];
        int i, count = epoll_wait(loop, ready, 4, -1);
        if (count < 0 && errno != EINTR) must(count, "epoll_wait");
        for (i = 0; i < count; i++) {
            cci_event_t *event;
            if (ready[i].data.fd == timer) on_tick(timer);
            else if (ready[i].data.fd == signals) is_over = 1;
            else if (ready[i].data.fd == 0 && server) read_and_send();
            else while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
                on_event(event);
                check(cci_return_event(event), "return");
            }
        }
        fflush(stdout);
    }
    free(uri);
    close(timer), close(signals), close(loop);
    return cci_finalize();
}
