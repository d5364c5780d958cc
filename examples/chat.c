/* SPDX-License-Identifier: MIT OR Unlicense */
/* chat.c - a room in which people talk. chat.py is the same program in Python, and the two talk to each other.
 *
 *     cc -O2 -I.. -o chat chat.c -pthread
 *     ./chat NAME          opens a room, and prints its URI
 *     ./chat NAME URI      enters a room
 *
 * What is typed goes to everybody. The end of the input (Ctrl-D) leaves the room, or closes one's own.
 *
 * The protocol: the request for a connection carries the name, 1 to 32 bytes. A message is a line without its end: at most
 * 1,000 bytes, as they were typed, to the room; from the room with the name of who typed it in front. */
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

enum { LONGEST_NAME = 32, LONGEST_LINE = 1000, LONGEST = LONGEST_NAME + 2 + LONGEST_LINE };

/* Who is at the other end of a connection, and its context: members for the room, the room for a member. */
typedef struct peer {
    struct peer *next;
    cci_connection_t *connection; /* NULL as long as the connection is being made */
    char name[LONGEST_NAME + 1];
} peer_t;

static peer_t *peers;
static const char *my_name;
static int is_room, is_over;

static void check(int status, const char *what) {
    if (status == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status),
            cci_status_hint((cci_status_t)status));
    exit(1);
}

/* What others have typed is not to steer the terminal. */
static int is_control(char byte) {
    return (unsigned char)byte < ' ' || byte == 127;
}

static void print(const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++) putchar(is_control(text[i]) ? '?' : text[i]);
    putchar('\n');
}

/* Ends a connection, unless the attempt to make it has failed, and forgets who was there. */
static void forget(peer_t *peer) {
    peer_t **at = &peers;
    while (*at && *at != peer) at = &(*at)->next;
    if (*at) *at = peer->next;
    if (peer->connection) check(cci_disconnect(peer->connection), "cci_disconnect");
    free(peer);
}

static peer_t *remember(const void *name, size_t length) {
    peer_t *peer = (peer_t *)calloc(1, sizeof *peer);
    if (!peer) exit(1);
    memcpy(peer->name, name, length);
    peer->next = peers;
    peers = peer;
    return peer;
}

/* Sends a line to all but one, without waiting. A member that takes nothing any more has to go. */
static void tell_all(const peer_t *but, const char *text, size_t length) {
    peer_t *peer, *next;
    for (peer = peers; peer; peer = next) {
        next = peer->next;
        if (peer == but || !peer->connection) continue;
        if (cci_send(peer->connection, text, (uint32_t)length, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS) forget(peer);
    }
}

/* A line of somebody goes to all others. */
static void pass_on(const peer_t *from, const char *separator, const char *text, uint32_t length) {
    char line[LONGEST + 1];
    int kept = (int)(length < LONGEST_LINE ? length : LONGEST_LINE);
    int count = snprintf(line, sizeof line, "%s%s%.*s", from ? from->name : my_name, separator, kept, text);
    if (from) print(line, (size_t)count);
    tell_all(from, line, (size_t)count);
}

/* The name is what a stranger sent: it may be too long, or not be text. */
static void let_in(cci_event_t *event) {
    const char *name = (const char *)event->request.data_ptr;
    uint32_t i, length = event->request.data_len;
    int fits = is_room && length > 0 && length <= LONGEST_NAME && event->request.attribute == CCI_CONN_ATTR_RO;
    for (i = 0; fits && i < length; i++) fits = !is_control(name[i]);
    check(fits ? cci_accept(event, remember(name, length)) : cci_reject(event), "answer to a request");
}

static void on_event(cci_event_t *event) {
    if (event->type == CCI_EVENT_CONNECT_REQUEST) let_in(event);
    if (event->type == CCI_EVENT_ACCEPT || event->type == CCI_EVENT_CONNECT) {
        peer_t *peer = (peer_t *)event->accept.context;
        if (!is_room) check((int)event->connect.status, "cci_connect");
        peer->connection = is_room ? event->accept.connection : event->connect.connection;
        if (!peer->connection) forget(peer);
        else if (is_room) pass_on(peer, " has come", "", 0);
        else print("you are in the room", 19);
    }
    if (event->type == CCI_EVENT_RECV) {
        const peer_t *from = (const peer_t *)event->recv.connection->context;
        if (is_room) pass_on(from, ": ", (const char *)event->recv.ptr, event->recv.len);
        else print((const char *)event->recv.ptr, event->recv.len);
    }
    if (event->type == CCI_EVENT_DISCONNECT) {
        peer_t *peer = (peer_t *)event->disconnect.context;
        if (is_room) pass_on(peer, " has left", "", 0);
        else print("the room is closed", 18);
        is_over = !is_room;
        forget(peer);
    }
}

/* A member waits until the room has its line. */
static void say(const char *line, size_t length) {
    if (is_room) pass_on(NULL, ": ", line, (uint32_t)length);
    else check(cci_send(peers->connection, line, (uint32_t)length, NULL, CCI_FLAG_BLOCKING), "cci_send");
}

/* Takes what was typed, and says each line that is complete; one that is too long is said in pieces. */
static void read_input(void) {
    static char line[LONGEST_LINE];
    static size_t length;
    char bytes[256];
    ssize_t i, count = read(0, bytes, sizeof bytes);
    is_over = count <= 0;
    for (i = 0; i < count; i++) {
        if (bytes[i] != '\n') line[length++] = bytes[i];
        if (bytes[i] == '\n' || length == sizeof line) {
            say(line, length);
            length = 0;
        }
    }
    if (is_over && length > 0) say(line, length);
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
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    struct timeval patience = {10, 0};
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    char *uri;
    if (argc < 2 || argc > 3) return fprintf(stderr, "usage: chat NAME [URI]\n"), 2;
    my_name = argv[1];
    is_room = argc == 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(is_room ? NULL : device_for(argv[2]), 0, &endpoint, &fd), "cci_create_endpoint");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    if (is_room) printf("uri: %s\n", uri);
    else check(cci_connect(endpoint, argv[2], my_name, (uint32_t)strlen(my_name), CCI_CONN_ATTR_RO, remember("", 0), 0,
                           &patience), argv[2]);
    while (!is_over) {
        int is_open = is_room || peers->connection;
        struct pollfd sleepers[2] = {{fd, POLLIN, 0}, {is_open ? 0 : -1, POLLIN, 0}};
        cci_event_t *event;
        poll(sleepers, 2, -1);
        if (sleepers[1].revents) read_input();
        while (!is_over && cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            on_event(event);
            check(cci_return_event(event), "cci_return_event");
        }
    }
    while (peers) forget(peers);
    free(uri);
    return cci_finalize();
}
