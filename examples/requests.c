/* SPDX-License-Identifier: MIT OR Unlicense */
/* requests.c - many requests in flight: the client keeps up to N of them outstanding on one connection.
 *
 *     cc -O2 -I.. -o requests requests.c -pthread
 *     ./requests                     the server: prints its URI and answers each request with the same bytes, for ever
 *     ./requests URI [COUNT [N]]     the client: COUNT requests (100000), N outstanding at most (64)
 *
 * A request carries its number and the place in a table that waits for the reply; the reply carries them back, so that
 * replies may come in any order. When no send buffer is free (CCI_ENOBUFS), the program goes on with its events and
 * tries again. Both sides sleep while there is nothing to do. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096 };

/* The server sends these bytes back as they are: they mean something to the client alone. */
typedef struct { uint64_t number; uint32_t place, reserved; } message_t;

static uint64_t number_at[MOST];   /* the client's outstanding requests; 0: the place is free */
static uint32_t free_places[MOST]; /* a stack */
static uint32_t free_count;
static uint64_t asked, replied, count = 100000;
static double begin_s;
static cci_connection_t *server; /* the client's connection */
static cci_event_t **kept;       /* the server's messages without an answer */
static uint32_t kept_count;

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Answers from the receive buffers, and returns these. A connection without a free send buffer is `full` until the next
 * time. What a client sent that is `gone` needs no answer; other failures are no reason to stop. */
static void answer_kept(const cci_connection_t *gone) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; kept && i < kept_count; i++) {
        const cci_event_recv_t *request = &kept[i]->recv;
        if (request->connection != gone && (request->connection == full ||
            cci_send(request->connection, request->ptr, request->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = request->connection;
            kept[left++] = kept[i];
        } else {
            check(cci_return_event(kept[i]), "return");
        }
    }
    kept_count = left;
}

/* Keeps the event of a message until it is answered. */
static void keep(cci_event_t *event) {
    static uint32_t places;
    if (kept_count == places) {
        cci_event_t **more = (cci_event_t **)realloc((void *)kept, (places += 64) * sizeof *kept);
        check(more ? CCI_SUCCESS : CCI_ENOMEM, "memory");
        kept = more;
    }
    kept[kept_count++] = event;
}

static void on_event_of_server(cci_event_t *event) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
    if (event->type == CCI_EVENT_DISCONNECT) {
        answer_kept(event->disconnect.connection);
        check(cci_disconnect(event->disconnect.connection), "disconnect");
    }
    if (event->type == CCI_EVENT_RECV) keep(event);
    else check(cci_return_event(event), "return");
}

/* Sends requests while places and send buffers are free. Returns 1 when a send is to be tried again. */
static int ask(void) {
    while (server && free_count > 0 && asked < count) {
        message_t request = {asked + 1, free_places[free_count - 1], 0};
        int status = cci_send(server, &request, sizeof request, &number_at[request.place], 0);
        if (status == CCI_ENOBUFS) return 1;
        check(status, "send");
        free_count--;
        number_at[request.place] = ++asked;
    }
    return 0;
}

/* A send that failed is known by its context, a reply by what it carries, which is checked: it comes from outside. */
static void on_event_of_client(cci_event_t *event) {
    message_t reply = {0, MOST, 0};
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect");
        server = event->connect.connection;
        begin_s = now_s();
    } else if (event->type == CCI_EVENT_DISCONNECT) {
        check(CCI_ERR_DISCONNECTED, "the server has left");
    } else if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        (void)cci_reject(event); /* anybody can ask, also a client */
    } else if (event->type == CCI_EVENT_SEND && event->send.status != CCI_SUCCESS) {
        fprintf(stderr, "request %llu: ", (unsigned long long)*(const uint64_t *)event->send.context);
        check((int)event->send.status, "send");
    } else if (event->type == CCI_EVENT_RECV) {
        if (event->recv.len == sizeof reply) memcpy(&reply, event->recv.ptr, sizeof reply);
        if (reply.place >= MOST || reply.number == 0 || number_at[reply.place] != reply.number) {
            fprintf(stderr, "a reply that nobody waits for\n");
            exit(1);
        }
        number_at[reply.place] = 0;
        free_places[free_count++] = reply.place;
        replied++;
    }
    check(cci_return_event(event), "return");
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    const int is_server = argc < 2;
    uint32_t caps, at_once = argc > 3 ? (uint32_t)atol(argv[3]) : 64, events = 1u << CCI_EVENT_DISCONNECT;
    struct timeval patience = {5, 0};
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    int is_full = 0;
    cci_os_handle_t fd;
    char *uri;
    if (argc > 2) count = (uint64_t)atoll(argv[2]);
    if (at_once < 1 || at_once > MOST) return fprintf(stderr, "usage: requests [URI [COUNT [N]]]\n"), 2;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(is_server ? NULL : device_for(argv[1]), 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    for (; free_count < at_once; free_count++) free_places[free_count] = free_count;
    if (is_server) printf("uri: %s\n", uri), fflush(stdout);
    else check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[1]);
    while (is_server || replied < count) {
        struct pollfd sleeper = {fd, POLLIN, 0};
        poll(&sleeper, 1, is_full ? 1 : -1); /* a send that found no buffer is tried again after a millisecond at most */
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) (is_server ? on_event_of_server : on_event_of_client)(event);
        answer_kept(NULL);
        is_full = ask() || kept_count > 0;
    }
    if (!is_server) printf("%llu requests, %u at once: %.0f replies/s\n", (unsigned long long)count, at_once,
                           (double)count / (now_s() - begin_s));
    free((void *)kept);
    free(uri);
    return cci_finalize();
}
