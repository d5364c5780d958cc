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

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    exit(1);
}

/* The server answers a message with the same bytes, straight from the receive buffer; the client is then done. One that has left
 * in the meantime is no reason to stop: the status is not looked at. */
static int on_message(const cci_event_recv_t *message, int is_server) {
    printf("received: %.*s\n", (int)message->len, (const char *)message->ptr);
    if (is_server) (void)cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT);
    return !is_server;
}

static int on_event(cci_event_t *event, int is_server) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST) check(cci_accept(event, NULL), "accept");
    if (event->type == CCI_EVENT_RECV) return on_message(&event->recv, is_server);
    if (event->type == CCI_EVENT_DISCONNECT) check(cci_disconnect(event->disconnect.connection), "disconnect");
    if (event->type == CCI_EVENT_CONNECT) {
        check((int)event->connect.status, "connect");
        check(cci_send(event->connect.connection, "hello, world", 12, NULL, CCI_FLAG_SILENT), "send");
    }
    return 0;
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
        poll(&sleeper, 1, -1);
        while (!done && cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            done = on_event(event, is_server);
            cci_return_event(event);
        }
    }
    free(uri);
    return cci_finalize();
}
