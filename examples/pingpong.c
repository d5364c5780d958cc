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

#ifdef _WIN32
#define poll WSAPoll /* of winsock2.h, which cci.h includes */
#else
#include <poll.h>
#endif
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
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(endpoint, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

static cci_event_t *next_event(void) {
    cci_event_t *event;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS)
        if (sleeps) poll(&sleeper, 1, -1);
    return event;
}

/* The server's messages that are still to be answered. */
static cci_event_t **kept;
static uint32_t kept_count;

/* Answers straight from the receive buffers, and returns these. What finds no send buffer free (CCI_ENOBUFS) is tried again later.
 * What a client sent that is `gone` needs no answer; other failures are no reason to stop. */
static void answer_kept(const cci_connection_t *gone) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; kept && i < kept_count; i++) {
        const cci_event_recv_t *message = &kept[i]->recv;
        if (message->connection != gone && (message->connection == full ||
            cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = message->connection;
            kept[left++] = kept[i];
        } else {
            cci_return_event(kept[i]);
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

static void serve(void) {
    uint32_t events = 1u << CCI_EVENT_DISCONNECT;
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* tell us of clients that leave, if the transport can */
    for (;;) {
        struct pollfd sleeper = {os_handle, POLLIN, 0};
        cci_event_t *event;
        answer_kept(NULL);
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            if (sleeps) poll(&sleeper, 1, kept_count > 0 ? 1 : -1);
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
        if (event->type == CCI_EVENT_DISCONNECT) {
            answer_kept(event->disconnect.connection);
            check(cci_disconnect(event->disconnect.connection), "disconnect");
        }
        if (event->type == CCI_EVENT_RECV) keep(event);
        else cci_return_event(event);
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
