/* SPDX-License-Identifier: MIT OR Unlicense */
/* publish.c - one publisher, many subscribers: a slow subscriber misses lines and holds up nobody.
 *
 *     cc -O2 -I.. -o publish publish.c -pthread
 *     ./publish              prints its URI, then sends each line of its input to all subscribers; ends with the input
 *     ./publish URI [MS]     a subscriber: prints the lines; with MS it takes one line in so many milliseconds
 *
 * Each subscriber has send buffers of its own. When they are all in use (CCI_ENOBUFS), this subscriber misses the line,
 * and sees it by the numbers of the lines. The publisher learns of three ways to leave:
 *     the subscriber says so               CCI_EVENT_DISCONNECT at once
 *     it takes nothing for too long        CCI_EVENT_DISCONNECT after the send time-out
 *     it vanishes while nothing is sent    CCI_EVENT_KEEPALIVE_TIMEDOUT after once to twice KEEPALIVE_US
 * That event comes ahead of CCI_EVENT_DISCONNECT, too. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1000, KEEPALIVE_US = 5000000, SEND_TIMEOUT_US = 10000000 };

/* The context of a connection. */
typedef struct subscriber {
    struct subscriber *next;
    cci_connection_t *connection; /* NULL until the ACCEPT event */
    unsigned long number, missed;
} subscriber_t;

static subscriber_t *subscribers;
static unsigned long lines, pending, subscribed; /* pending: sends without a completion */
static int is_over, delay_ms;

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

/* Gives the connection back, if there is one: what is pending on it completes with CCI_ERR_DISCONNECTED. */
static void forget(subscriber_t *subscriber, const char *why) {
    subscriber_t **at = &subscribers;
    while (*at != subscriber) at = &(*at)->next;
    *at = subscriber->next;
    fprintf(stderr, "subscriber %lu %s; it missed %lu lines\n", subscriber->number, why, subscriber->missed);
    if (subscriber->connection) check(cci_disconnect(subscriber->connection), "disconnect");
    free(subscriber);
}

static void let_in(cci_event_t *request) {
    subscriber_t *subscriber = (subscriber_t *)calloc(1, sizeof *subscriber);
    check(subscriber ? CCI_SUCCESS : CCI_ENOMEM, "memory");
    subscriber->next = subscribers;
    subscriber->number = ++subscribed;
    subscribers = subscriber;
    if (cci_accept(request, subscriber) == CCI_SUCCESS) return;
    forget(subscriber, "can't be let in");
    (void)cci_reject(request);
}

static void publish(const char *line, size_t length) {
    char text[LONGEST + 32];
    uint32_t bytes = (uint32_t)snprintf(text, sizeof text, "%lu %.*s", ++lines, (int)length, line);
    subscriber_t *each;
    for (each = subscribers; each; each = each->next) {
        if (!each->connection) continue;
        if (cci_send(each->connection, text, bytes, NULL, 0) == CCI_SUCCESS) pending++;
        else each->missed++; /* CCI_ENOBUFS; or it has left, and an event will tell */
    }
}

static void read_input(void) {
    static char line[LONGEST];
    static size_t length;
    char bytes[4096];
    ssize_t i, count = read(0, bytes, sizeof bytes);
    is_over = count <= 0;
    for (i = 0; i < count; i++) {
        if (bytes[i] != '\n') line[length++] = bytes[i];
        if (bytes[i] != '\n' && length < sizeof line) continue;
        publish(line, length);
        length = 0;
    }
    if (is_over && length > 0) publish(line, length);
}

/* Without this CCI_EVENT_DISCONNECT follows, and says why the connection has ended. */
static int has_vanished(const cci_event_t *event) {
    return event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT &&
           cci_send(event->keepalive.connection, NULL, 0, NULL, CCI_FLAG_SILENT) != CCI_ERR_DISCONNECTED;
}

static void on_event_of_publisher(cci_event_t *event) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST) let_in(event);
    if (event->type == CCI_EVENT_ACCEPT) {
        subscriber_t *subscriber = (subscriber_t *)event->accept.context;
        subscriber->connection = event->accept.connection;
        if (subscriber->connection) fprintf(stderr, "subscriber %lu has come\n", subscriber->number);
        else forget(subscriber, "did not come");
    }
    if (event->type == CCI_EVENT_SEND) pending--; /* its connection may be gone */
    if (event->type == CCI_EVENT_DISCONNECT)
        forget((subscriber_t *)event->disconnect.context,
               event->disconnect.status == CCI_SUCCESS ? "has left" : "takes nothing any more");
    if (has_vanished(event)) forget((subscriber_t *)event->keepalive.connection->context, "has vanished");
}

static void on_event_of_subscriber(cci_event_t *event) {
    static unsigned long expected;
    if (event->type == CCI_EVENT_CONNECT) check((int)event->connect.status, "connect");
    if (event->type == CCI_EVENT_CONNECT_REQUEST) (void)cci_reject(event);
    if (event->type == CCI_EVENT_DISCONNECT) check((int)event->disconnect.status, "the publisher");
    if (has_vanished(event)) check(CCI_ETIMEDOUT, "the publisher");
    is_over |= event->type == CCI_EVENT_DISCONNECT;
    if (event->type == CCI_EVENT_RECV) {
        char text[LONGEST + 32] = "";
        unsigned long number;
        memcpy(text, event->recv.ptr, event->recv.len < sizeof text ? event->recv.len : sizeof text - 1);
        number = strtoul(text, NULL, 10);
        if (expected != 0 && number > expected) printf("(missed %lu lines)\n", number - expected);
        puts(text);
        expected = number + 1;
        if (delay_ms > 0) poll(NULL, 0, delay_ms);
    }
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    const int is_publisher = argc < 2;
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT, keepalive_us = KEEPALIVE_US, timeout_us = SEND_TIMEOUT_US;
    struct timeval patience = {5, 0};
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    cci_os_handle_t fd;
    char *uri;
    if (argc > 2) delay_ms = atoi(argv[2]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(is_publisher ? NULL : device_for(argv[1]), 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us), "cci_set_opt");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive_us), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    if (is_publisher) printf("uri: %s\n", uri);
    else check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), argv[1]);
    while (!is_over || pending > 0) {
        struct pollfd sleepers[2] = {{fd, POLLIN, 0}, {is_publisher && !is_over ? 0 : -1, POLLIN, 0}};
        poll(sleepers, 2, -1);
        if (sleepers[1].revents) read_input();
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (is_publisher) on_event_of_publisher(event);
            else on_event_of_subscriber(event);
            check(cci_return_event(event), "return");
        }
    }
    while (subscribers) forget(subscribers, "is released: the input has ended");
    free(uri);
    return cci_finalize();
}
