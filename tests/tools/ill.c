/* SPDX-License-Identifier: MIT OR Unlicense */
/* ill.c - a server with an illness that examples/why.c has to find: ill well|few|holds|stops|rejects.
 *
 * It prints its URI, and each line of statistics when a message has come. */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status) {
    if (status != CCI_SUCCESS) exit(1);
}

int main(int argc, char **argv) {
    const char *illness = argc > 1 ? argv[1] : "well";
    int few = strcmp(illness, "few") == 0, holds = strcmp(illness, "holds") == 0, stops = strcmp(illness, "stops") == 0;
    int rejects = strcmp(illness, "rejects") == 0;
    uint32_t caps, count = few ? 2 : 64, events = 1u << CCI_EVENT_DISCONNECT;
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    cci_os_handle_t fd;
    char *uri;
    check(cci_init(CCI_ABI_VERSION, 0, &caps));
    check(cci_create_endpoint(NULL, 0, &endpoint, &fd));
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events));
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count));
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
    printf("uri: %s\n", uri);
    fflush(stdout);
    for (;;) {
        struct pollfd sleeper = {fd, POLLIN, 0};
        int status = cci_get_event(endpoint, &event);
        if (status != CCI_SUCCESS) {
            poll(&sleeper, status == CCI_EAGAIN ? 1 : 0, status == CCI_EAGAIN ? -1 : 5); /* with all buffers held it stays readable */
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) check(rejects ? cci_reject(event) : cci_accept(event, NULL));
        if (event->type == CCI_EVENT_DISCONNECT) check(cci_disconnect(event->disconnect.connection));
        while (stops && event->type == CCI_EVENT_ACCEPT) poll(NULL, 0, -1);
        if (few && event->type == CCI_EVENT_RECV) poll(NULL, 0, 20);
        if (!holds || event->type != CCI_EVENT_RECV) check(cci_return_event(event));
    }
}
