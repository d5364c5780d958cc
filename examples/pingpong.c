/* SPDX-License-Identifier: MIT OR Unlicense */
/* pingpong.c - how long a message takes from one process to another.
 *
 *     cc -O2 -I.. -o pingpong pingpong.c -pthread
 *     ./pingpong [-b] [-d device]          the server: prints its URI and sends back what it gets, for ever
 *     ./pingpong [-b] [-d device] [-n count] [-s bytes] udp://host:port
 *
 * Both sides poll, which is fastest and keeps a processor busy; with -b they sleep on the endpoint's OS handle. */
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
#include <unistd.h>

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static int sleeps;

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, cci_strerror(endpoint, (cci_status_t)status));
    exit(1);
}

static cci_event_t *next_event(void) {
    cci_event_t *event;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS)
        if (sleeps) poll(&sleeper, 1, -1);
    return event;
}

static void serve(void) {
    uint32_t events = 1u << CCI_EVENT_DISCONNECT;
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* tell us of clients that leave, if the transport can */
    for (;;) {
        cci_event_t *event = next_event();
        if (event->type == CCI_EVENT_CONNECT_REQUEST) check(cci_accept(event, NULL), "accept");
        /* A client that has left in the meantime is no reason to stop: the status is not looked at. */
        if (event->type == CCI_EVENT_RECV)
            (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
        if (event->type == CCI_EVENT_DISCONNECT) check(cci_disconnect(event->disconnect.connection), "disconnect");
        cci_return_event(event);
    }
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *uri, int count, uint32_t size_bytes) {
    struct timeval patience = {5, 0};
    double *half_us = (double *)calloc((size_t)count, sizeof *half_us);
    char *message = (char *)calloc(1, size_bytes + 1);
    int i;
    cci_event_t *event;
    cci_connection_t *connection;
    check(half_us && message ? CCI_SUCCESS : CCI_ENOMEM, "memory");
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), uri);
    event = next_event();
    check((int)event->connect.status, "connect"); /* nothing else can come first */
    connection = event->connect.connection;
    cci_return_event(event);
    for (i = 0; i < count; i++) {
        double start_us = now_us();
        check(cci_send(connection, message, size_bytes, NULL, CCI_FLAG_SILENT), "send");
        event = next_event();
        if (event->type != CCI_EVENT_RECV) check(CCI_ERR_DISCONNECTED, cci_event_type_str(event->type));
        cci_return_event(event);
        half_us[i] = (now_us() - start_us) / 2;
    }
    qsort(half_us, (size_t)count, sizeof *half_us, compare);
    printf("%d round trips of %u bytes; half of one in µs: min %.2f  median %.2f  p99 %.2f  max %.2f\n", count,
           size_bytes, half_us[0], half_us[count / 2], half_us[count - 1 - count / 100], half_us[count - 1]);
    free(message);
    free(half_us);
}

static cci_device_t *find_device(const char *name) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices && strcmp((*devices)->name, name) != 0) devices++;
    check(*devices ? CCI_SUCCESS : CCI_ERR_NOT_FOUND, name);
    return *devices;
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
    int option, count = 20000, size_bytes = 64;
    const char *device = NULL;
    uint32_t caps;
    char *uri;
    while ((option = getopt(argc, argv, "bd:n:s:h")) != -1) {
        if (option == 'b') sleeps = 1;
        else if (option == 'd') device = optarg;
        else if (option == 'n') count = atoi(optarg);
        else if (option == 's') size_bytes = atoi(optarg);
        else count = 0; /* asks how to use it */
        if (count < 1 || size_bytes < 0) return puts("usage: pingpong [-b] [-d dev] [-n count] [-s bytes] [URI]"), 2;
    }
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(device          ? find_device(device)
                              : optind < argc ? device_for(argv[optind])
                                              : NULL,
                              0, &endpoint, sleeps ? &os_handle : NULL),
          "cci_create_endpoint");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    if (optind < argc) measure(argv[optind], count, (uint32_t)size_bytes);
    else {
        printf("uri: %s\n", uri), fflush(stdout);
        serve();
    }
    free(uri);
    return cci_finalize();
}
