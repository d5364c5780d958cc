/* SPDX-License-Identifier: MIT OR Unlicense */
/* uv_loop.c - an endpoint in a libuv loop, beside a timer and a signal.
 *
 *     cc -O2 -I.. -o uv_loop uv_loop.c -luv -pthread
 *     ./uv_loop           prints its URI and answers messages, until SIGINT (Ctrl-C) or SIGTERM
 *     ./uv_loop URI       asks five times, once in 200 ms, and prints the answers
 *
 * A uv_poll_t watches the OS handle of the endpoint for UV_READABLE. Its callback calls cci_get_event() until there is
 * no event. Nothing else belongs to CCI: any other loop with a watcher for descriptors takes an endpoint the same way. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { QUESTIONS = 5 };

static cci_endpoint_t *endpoint;
static cci_connection_t *server; /* the client's connection */
static int asked, answered;

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

static void on_event(cci_event_t *event, uv_loop_t *loop) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect");
        server = event->connect.connection;
    }
    if (event->type == CCI_EVENT_DISCONNECT) {
        if (server) check(CCI_ERR_DISCONNECTED, "the server has left");
        check(cci_disconnect(event->disconnect.connection), "disconnect");
    }
    if (event->type != CCI_EVENT_RECV) return;
    printf("%.*s\n", (int)event->recv.len, (const char *)event->recv.ptr);
    fflush(stdout);
    if (server) {
        if (++answered == QUESTIONS) uv_stop(loop);
    } else {
        int status = cci_send(event->recv.connection, "an answer", 9, NULL, CCI_FLAG_SILENT);
        if (status != CCI_SUCCESS) printf("no answer: %s\n", cci_strerror(endpoint, (cci_status_t)status));
    }
}

static void on_readable(uv_poll_t *watcher, int status, int events) {
    cci_event_t *event;
    (void)events;
    if (status < 0) fprintf(stderr, "uv_poll: %s\n", uv_strerror(status)), exit(1);
    while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        on_event(event, watcher->loop);
        check(cci_return_event(event), "return");
    }
}

/* CCI_ENOBUFS, no send buffer is free: the question is asked again at the next tick. */
static void on_tick(uv_timer_t *timer) {
    int status = CCI_ENOBUFS;
    if (server) status = cci_send(server, "a question", 10, NULL, CCI_FLAG_SILENT);
    if (status == CCI_SUCCESS && ++asked == QUESTIONS) uv_timer_stop(timer);
    if (status != CCI_ENOBUFS) check(status, "send");
}

static void on_signal(uv_signal_t *watcher, int number) {
    (void)number;
    uv_stop(watcher->loop);
}

static void close_handle(uv_handle_t *handle, void *unused) {
    (void)unused;
    uv_close(handle, NULL);
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    struct timeval patience = {5, 0};
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    uv_loop_t *loop = uv_default_loop();
    uv_signal_t interrupts, terminations;
    cci_os_handle_t fd;
    uv_poll_t watcher;
    uv_timer_t timer;
    char *uri;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(argc > 1 ? device_for(argv[1]) : NULL, 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    if (uv_poll_init(loop, &watcher, fd) || uv_poll_start(&watcher, UV_READABLE, on_readable) ||
        uv_timer_init(loop, &timer) || uv_signal_init(loop, &interrupts) || uv_signal_init(loop, &terminations) ||
        uv_signal_start(&interrupts, on_signal, SIGINT) || uv_signal_start(&terminations, on_signal, SIGTERM)) return 1;
    if (argc > 1) {
        check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[1]);
        uv_timer_start(&timer, on_tick, 0, 200);
    } else {
        printf("uri: %s\n", uri), fflush(stdout);
    }
    uv_run(loop, UV_RUN_DEFAULT); /* until uv_stop() */
    uv_walk(loop, close_handle, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* until all handles are closed: before the endpoint and its OS handle are */
    uv_loop_close(loop);
    free(uri);
    return cci_finalize();
}
