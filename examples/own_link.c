/* own_link.c - CCI over a link of your own: two pipes. The table at the top is all that it takes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     cc -I. -o own_link examples/own_link.c -pthread && ./own_link
 */
#define CCI_IMPLEMENTATION
#include "cci.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the link: each datagram goes through the pipe behind its length, in one write, which a pipe never tears -------- */

static int pipe_in, pipe_out;

static int link_open(cci_device_t *device, const char *service, int want_handle, void **link, cci_link_info_t *info) {
    (void)device, (void)service, (void)want_handle;
    *link = &pipe_in;
    info->mtu = 504; /* POSIX lets a pipe take 512 bytes at once */
    info->send_buf_count = info->recv_buf_count = 16;
    info->probe_idle_s = 60; /* a peer that vanishes is found out without the program's doing */
    return CCI_SUCCESS;
}

static void link_close(void *link) {
    (void)link;
}

static int link_send(void *link, const cci_link_tx_t *tx, int count) {
    int i, j;
    for (i = 0; i < count; i++) {
        uint8_t bytes[512], *at = bytes + 2;
        bytes[0] = (uint8_t)tx[i].length, bytes[1] = (uint8_t)(tx[i].length >> 8);
        for (j = 0; j < (int)tx[i].piece_count; at += tx[i].piece[j].length, j++)
            memcpy(at, tx[i].piece[j].data, tx[i].piece[j].length);
        if (write(pipe_out, bytes, (size_t)(at - bytes)) < 0) break; /* the pipe is full: later */
    }
    (void)link;
    return i;
}

static int receive_one(cci_link_rx_t *rx) {
    uint8_t head[2];
    if (read(pipe_in, head, 2) != 2) return 0;
    rx->length = rx->segment = head[0] + 256u * head[1];
    memset(&rx->from, 0, sizeof rx->from); /* there is one peer: its address is zeros */
    rx->is_group = 0;
    return rx->length <= rx->capacity && read(pipe_in, rx->data, rx->length) == (ssize_t)rx->length;
}

static int link_receive(void *link, cci_link_rx_t *rx, int count) {
    int filled = 0;
    (void)link;
    while (filled < count && receive_one(&rx[filled])) filled++;
    return filled;
}

static uint64_t link_now(void *link) {
    struct timespec t;
    (void)link;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int link_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link, (void)address, (void)to;
    return CCI_SUCCESS;
}

/* ---- the program: the child greets, the parent answers in capitals --------------------------------------------------- */

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

static void answer(const cci_event_t *event) {
    char text[64];
    uint32_t i, length = event->recv.len < sizeof text ? event->recv.len : (uint32_t)sizeof text;
    for (i = 0; i < length; i++) {
        char c = ((const char *)event->recv.ptr)[i];
        text[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    check(cci_send(event->recv.connection, text, length, NULL, CCI_FLAG_SILENT), "cci_send");
}

/* Sleeps until something comes through the pipe, or the library wants to be called. */
static void rest(cci_endpoint_t *endpoint) {
    struct pollfd pipe_has = {pipe_in, POLLIN, 0};
    uint64_t ns;
    check(cci_next_deadline(endpoint, &ns), "cci_next_deadline");
    (void)poll(&pipe_has, 1, ns < 1000000000u ? (int)((ns + 999999u) / 1000000u) : 1000);
}

/* Works until the connection has ended (server), or the answer has come (client). */
static void serve(cci_endpoint_t *endpoint, int is_client) {
    for (;;) {
        cci_event_t *event;
        int is_over = 0;
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            rest(endpoint);
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) check(cci_accept(event, NULL), "cci_accept");
        if (event->type == CCI_EVENT_CONNECT) {
            check((int)event->connect.status, "cci_connect");
            check(cci_send(event->connect.connection, "hello", 5, NULL, CCI_FLAG_SILENT), "cci_send");
        }
        if (event->type == CCI_EVENT_RECV && is_client)
            printf("the answer: %.*s\n", (int)event->recv.len, (const char *)event->recv.ptr);
        if (event->type == CCI_EVENT_RECV && !is_client) answer(event);
        is_over = event->type == CCI_EVENT_DISCONNECT || (is_client && event->type == CCI_EVENT_RECV);
        check(cci_return_event(event), "cci_return_event");
        if (is_over) return;
    }
}

int main(void) {
    static const cci_link_t link = {CCI_LINK_VERSION,
                                    link_open,
                                    link_close,
                                    link_send,
                                    link_receive,
                                    link_now,
                                    link_resolve,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL};
    const struct timeval timeout = {10, 0};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    cci_endpoint_t *endpoint;
    int there[2], back[2], is_client, status = 0;
    pid_t child;
    if (pipe(there) != 0 || pipe(back) != 0 || (child = fork()) < 0) return 1;
    is_client = child == 0;
    pipe_in = is_client ? back[0] : there[0];
    pipe_out = is_client ? there[1] : back[1];
    if (fcntl(pipe_in, F_SETFL, O_NONBLOCK) != 0 || fcntl(pipe_out, F_SETFL, O_NONBLOCK) != 0) return 1;
    check(cci_create_endpoint_on_link(&link, NULL, &endpoint, NULL), "cci_create_endpoint_on_link");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask), "cci_set_opt");
    if (is_client)
        check(cci_connect(endpoint, "link://parent", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), "cci_connect");
    serve(endpoint, is_client);
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    if (!is_client && waitpid(child, &status, 0) != child) return 1;
    return status != 0;
}
