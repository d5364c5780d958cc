/* flood.c - a client that has much to say to a server that repeats all it hears, and listens late.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     flood URI COUNT    status 0: COUNT messages were sent, and as many answers came, each of them right
 *
 * It holds the first few answers until nothing gets on any more, or all is sent. By then the server has no send buffer left for its
 * answers, and one that forgets what cci_send() refuses has answered too few.
 */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FEW 16
#define STILL_S 0.5   /* without an event: nothing gets on any more */
#define PATIENCE_S 20 /* then what has not come never will */

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    exit(1);
}

int main(int argc, char **argv) {
    uint32_t caps, few = FEW, count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0, sent = 0, done = 0, answers = 0, i;
    cci_endpoint_t *endpoint;
    cci_connection_t *connection = NULL;
    cci_event_t *event, *held[FEW];
    uint32_t held_count = 0;
    char *bytes;
    int holds = 1;
    double last;
    check(argc == 3 ? CCI_SUCCESS : CCI_EINVAL, "usage: flood URI COUNT");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(NULL, 0, &endpoint, NULL), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), "cci_set_opt");
    check(cci_connect(endpoint, argv[1], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), "cci_connect");
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {}
    check((int)event->connect.status, "connect");
    connection = event->connect.connection;
    check(cci_return_event(event), "return");
    bytes = (char *)calloc(1, connection->max_send_size); /* as text they are short: a server may print them */
    if (!bytes) return 1;
    for (last = now_s(); answers < count && now_s() < last + PATIENCE_S;) {
        for (; sent < count; sent++) {
            snprintf(bytes, 24, "%u", sent);
            if (cci_send(connection, bytes, connection->max_send_size, NULL, 0) != CCI_SUCCESS) break;
        }
        if (holds && (done == count || now_s() > last + STILL_S)) {
            for (holds = 0, i = 0; i < held_count; i++) check(cci_return_event(held[i]), "return");
            printf("%u of %u were taken before the first answer was\n", done, count);
        }
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
        last = now_s();
        if (event->type == CCI_EVENT_SEND) check((int)event->send.status, "send");
        done += event->type == CCI_EVENT_SEND;
        if (event->type != CCI_EVENT_RECV) {
            check(cci_return_event(event), "return");
            continue;
        }
        if (strtoul((const char *)event->recv.ptr, NULL, 10) != answers++) {
            fprintf(stderr, "answer %u is to message %s\n", answers - 1, (const char *)event->recv.ptr);
            return 1;
        }
        if (holds && held_count < FEW) held[held_count++] = event;
        else check(cci_return_event(event), "return");
    }
    printf("%u of %u were answered\n", answers, count);
    free(bytes);
    check(cci_finalize(), "cci_finalize");
    return answers < count;
}
