/* SPDX-License-Identifier: MIT OR Unlicense */
/* hello.c - says hello to another process and prints the answer.
 *
 *     cc -O2 -I.. -o hello hello.c -pthread
 *     ./hello                     the server: prints its URI, then answers everybody, for ever
 *     ./hello udp://host:port     the client */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#ifdef _WIN32
#define poll WSAPoll /* of winsock2.h, which cci.h includes */
#else
#include <poll.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

/* The server's messages that are still to be answered. */
static cci_event_t **kept;
static uint32_t kept_count;

/* Answers with the same bytes, straight from the receive buffers, and returns these. A connection that has no send buffer free
 * (CCI_ENOBUFS) is tried again later. What a client sent that is `gone` needs no answer; other failures are no reason to stop. */
static void answer_kept(const cci_connection_t *gone) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; i < kept_count; i++) {
        const cci_event_recv_t *message = &kept[i]->recv;
        if (message->connection != gone && (message->connection == full ||
            cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = message->connection;
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

/* Returns 1 when the client has its answer. The server keeps a message; all other events go back at once. */
static int on_event(cci_event_t *event, int is_server) {
    int is_message = event->type == CCI_EVENT_RECV;
    if (is_message) printf("received: %.*s\n", (int)event->recv.len, (const char *)event->recv.ptr);
    if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
    if (event->type == CCI_EVENT_DISCONNECT) {
        answer_kept(event->disconnect.connection);
        check(cci_disconnect(event->disconnect.connection), "disconnect");
    }
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect");
        check(cci_send(event->connect.connection, "hello, world", 12, NULL, CCI_FLAG_SILENT), "send");
    }
    if (is_message && is_server) keep(event);
    else check(cci_return_event(event), "return");
    return is_message && !is_server;
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices) {
        size_t length = strlen((*devices)->transport);
        if ((*devices)->up && strncmp(uri, (*devices)->transport, length) == 0 && uri[length] == ':') break;
        devices++;
    }
    return *devices;
}

int main(int argc, char **argv) {
    int is_server = argc < 2, done = 0;
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    char *uri;
    struct timeval patience = {5, 0};
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(is_server ? NULL : device_for(argv[1]), 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* tell us of clients that leave, if the transport can */
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (is_server) printf("uri: %s\n", uri);
    else check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[1]);
    while (!done) {
        struct pollfd sleeper = {fd, POLLIN, 0};
        cci_event_t *event;
        poll(&sleeper, 1, kept_count > 0 ? 1 : -1);
        while (!done && cci_get_event(endpoint, &event) == CCI_SUCCESS) done = on_event(event, is_server);
        answer_kept(NULL);
    }
    free((void *)kept);
    free(uri);
    return cci_finalize();
}
