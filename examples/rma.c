/* SPDX-License-Identifier: MIT OR Unlicense */
/* rma.c - writes into another process's memory, reads it back, and compares.
 *
 *     cc -O2 -I.. -o rma rma.c -pthread
 *     ./rma                     the server: offers 1 MiB of memory, for ever
 *     ./rma udp://host:port     the client
 *
 * The handle of registered memory is 32 bytes that may travel in a message: who has them may use the memory as the
 * registration's flags allow, until it is deregistered. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_BYTES (1u << 20)

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(endpoint, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

/* Sleeps until there is an event. The OS handle also wakes us when the library itself has something to do. */
static cci_event_t *next_event(void) {
    cci_event_t *event;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) poll(&sleeper, 1, -1);
    return event;
}

static void serve(unsigned char *memory, cci_rma_handle_t *handle) {
    uint32_t events = 1u << CCI_EVENT_DISCONNECT;
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* tell us of clients that leave, if the transport can */
    for (;;) {
        cci_event_t *event = next_event();
        if (event->type == CCI_EVENT_CONNECT_REQUEST) check(cci_accept(event, NULL), "accept");
        if (event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS)
            (void)cci_send(event->accept.connection, handle, sizeof *handle, NULL, CCI_FLAG_SILENT);
        if (event->type == CCI_EVENT_DISCONNECT) check(cci_disconnect(event->disconnect.connection), "disconnect");
        if (event->type == CCI_EVENT_RECV) { /* the completion message: by now all of the data is there */
            printf("%.*s: memory now begins with %u and ends with %u\n", (int)event->recv.len,
                   (const char *)event->recv.ptr, memory[0], memory[SIZE_BYTES - 1]);
            fflush(stdout);
        }
        cci_return_event(event);
    }
}

/* Waits for an event of the one type that can come next, and gives the connection that it is about. */
static cci_connection_t *await(cci_event_type_t type, void *message, size_t size_bytes) {
    cci_event_t *event = next_event();
    cci_connection_t *connection;
    if (event->type != type) check(CCI_ERROR, cci_event_type_str(event->type));
    if (type == CCI_EVENT_CONNECT) check((int)event->connect.status, "connect");
    if (type == CCI_EVENT_RECV && event->recv.len != size_bytes) check(CCI_EMSGSIZE, "handle");
    if (type == CCI_EVENT_RECV) memcpy(message, event->recv.ptr, size_bytes);
    connection = type == CCI_EVENT_RECV ? event->recv.connection : event->connect.connection;
    cci_return_event(event);
    return connection;
}

static void use(const char *uri, unsigned char *memory, cci_rma_handle_t *local) {
    struct timeval patience = {5, 0};
    cci_rma_handle_t remote;
    cci_connection_t *connection;
    unsigned i, wrong = 0;
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), uri);
    await(CCI_EVENT_CONNECT, NULL, 0);
    connection = await(CCI_EVENT_RECV, &remote, sizeof remote);

    for (i = 0; i < SIZE_BYTES; i++) memory[i] = (unsigned char)(i * 7 + 42);
    check(cci_rma(connection, "written", 7, local, 0, &remote, 0, SIZE_BYTES, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING),
          "RMA write");
    memset(memory, 0, SIZE_BYTES);
    check(cci_rma(connection, NULL, 0, local, 0, &remote, 0, SIZE_BYTES, NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING),
          "RMA read");
    for (i = 0; i < SIZE_BYTES; i++) wrong += memory[i] != (unsigned char)(i * 7 + 42);
    printf("wrote and read back %u bytes, %u of them wrong\n", SIZE_BYTES, wrong);
    if (wrong) exit(1);
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
    void *memory;
    uint32_t caps;
    char *uri;
    cci_rma_handle_t *handle;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(argc > 1 ? device_for(argv[1]) : NULL, 0, &endpoint, &os_handle), "cci_create_endpoint");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    /* Any memory will do; this is what some transports can share with the peer without a copy. */
    check(cci_rma_alloc(endpoint, SIZE_BYTES, &memory), "cci_rma_alloc");
    /* The client's own memory is for local use alone: no peer may touch it. */
    check(cci_rma_register(endpoint, memory, SIZE_BYTES, argc > 1 ? 0 : CCI_FLAG_READ | CCI_FLAG_WRITE, &handle),
          "cci_rma_register");
    if (argc > 1) use(argv[1], (unsigned char *)memory, handle);
    else {
        printf("uri: %s\n", uri), fflush(stdout);
        serve((unsigned char *)memory, handle);
    }
    free(uri);
    check(cci_finalize(), "cci_finalize"); /* gives back the memory too */
    return 0;
}
