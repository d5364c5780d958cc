/* SPDX-License-Identifier: MIT OR Unlicense */
/* transfer.c - a large RMA transfer in pieces: its progress is known, and it resumes after the receiver was restarted.
 *
 *     cc -O2 -I.. -o transfer transfer.c -pthread
 *     ./transfer NAME FILE BYTES     the receiver: offers a file of so many bytes, ends when all of them have come
 *     ./transfer URI FILE            the sender, for example: transfer udp://192.0.2.2/NAME FILE
 *
 * The receiver maps the file, registers it and sends the RMA handle with the number of bytes that it has. The sender
 * writes the rest in pieces, a few at a time. The completion message of each piece says how far the file then reaches;
 * it arrives after the piece. The receiver keeps that number behind the bytes, in the file itself. After a restart
 * it has another handle, and perhaps another port: the sender connects to its name again, and learns both. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t PIECE = 1 << 20;
enum { AT_ONCE = 4, TIMEOUT_US = 3000000 };

/* What the receiver sends first: a copy of the RMA handle is as good as the original. */
typedef struct { uint64_t handle[4], size, have; } offer_t;

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static unsigned char *memory;
static uint64_t size;

static void check(int status, const char *what) {
    cci_status_t code = (cci_status_t)status;
    if (code == CCI_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, cci_strerror(NULL, code), cci_status_hint(code));
    exit(1);
}

/* The program needs all of it, or ends. */
static void must(int is_true, const char *what) {
    if (is_true) return;
    perror(what);
    exit(1);
}

/* Maps a file and registers `size` bytes of it. A private mapping leaves the file as it is. */
static cci_rma_handle_t *map(int file, uint64_t length, int flags, int access) {
    cci_rma_handle_t *handle;
    void *start = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, flags, file, 0);
    must(start != MAP_FAILED, "mmap");
    memory = (unsigned char *)start;
    check(cci_rma_register(endpoint, memory, size, access, &handle), "cci_rma_register");
    return handle;
}

static cci_event_t *next_event(void) {
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    cci_event_t *event;
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) poll(&sleeper, 1, -1);
    return event;
}

/* The file is complete when the sender has left: by then it knows, too. */
static void receive(const char *path) {
    int file = open(path, O_RDWR | O_CREAT, 0600), senders = 0;
    cci_rma_handle_t *handle;
    uint64_t have, reached;
    struct stat about;
    offer_t offer;
    must(file >= 0 && fstat(file, &about) == 0, path);
    if ((uint64_t)about.st_size != size + sizeof have) must(ftruncate(file, 0) == 0, path); /* it is no part of this one */
    must(ftruncate(file, (off_t)(size + sizeof have)) == 0, path);
    handle = map(file, size + sizeof have, MAP_SHARED, CCI_FLAG_WRITE);
    memcpy(offer.handle, handle, sizeof *handle);
    memcpy(&have, memory + size, sizeof have);
    if (have > size) have = 0;
    while (have < size || senders > 0) {
        cci_event_t *event = next_event();
        if (event->type == CCI_EVENT_CONNECT_REQUEST && cci_accept(event, NULL) != CCI_SUCCESS) (void)cci_reject(event);
        if (event->type == CCI_EVENT_ACCEPT && event->accept.connection) {
            senders++;
            offer.size = size, offer.have = have;
            (void)cci_send(event->accept.connection, &offer, sizeof offer, NULL, CCI_FLAG_SILENT);
        }
        if (event->type == CCI_EVENT_RECV && event->recv.len == sizeof have) {
            memcpy(&reached, event->recv.ptr, sizeof reached);
            if (reached > have && reached <= size) have = reached;
            memcpy(memory + size, &have, sizeof have);
        }
        if (event->type == CCI_EVENT_DISCONNECT) {
            senders--;
            check(cci_disconnect(event->disconnect.connection), "disconnect");
        }
        check(cci_return_event(event), "return");
    }
    check(cci_rma_deregister(endpoint, handle), "cci_rma_deregister");
    munmap(memory, (size_t)(size + sizeof have));
    must(ftruncate(file, (off_t)size) == 0 && fsync(file) == 0 && close(file) == 0, path);
    printf("%s is complete\n", path);
}

static void show(uint64_t done) {
    static uint64_t shown = 101;
    if (done * 100 / size != shown) printf("\r%3u %%", (unsigned)(done * 100 / size)), fflush(stdout);
    shown = done * 100 / size;
}

/* Goes on asking for a minute: the receiver may be about to start. */
static void reach(const char *uri) {
    struct timeval patience = {60, 0};
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), uri);
}

static void send_file(const char *uri, const char *path) {
    int file = open(path, O_RDONLY), in_flight = 0, is_connecting = 1;
    cci_connection_t *connection = NULL; /* NULL also while what was pending on a broken one completes */
    uint64_t done = 0, next = 0;         /* bytes that the receiver has; those of which the pieces are on their way */
    cci_rma_handle_t *local;
    struct stat about;
    offer_t offer = {{0}, 0, 0};
    must(file >= 0 && fstat(file, &about) == 0, path);
    size = (uint64_t)about.st_size;
    local = map(file, size, MAP_PRIVATE, 0);
    for (reach(uri); done < size; show(done)) {
        cci_event_t *event = next_event();
        int is_broken = event->type == CCI_EVENT_DISCONNECT;
        if (event->type == CCI_EVENT_CONNECT_REQUEST) (void)cci_reject(event); /* anybody can ask */
        if (event->type == CCI_EVENT_CONNECT) check((int)event->connect.status, "connect");
        if (event->type == CCI_EVENT_RECV && event->recv.len == sizeof offer) { /* it comes first */
            memcpy(&offer, event->recv.ptr, sizeof offer);
            check(offer.size == size && offer.have <= size ? CCI_SUCCESS : CCI_ERANGE, "size of the receiver's file");
            connection = event->recv.connection;
            is_connecting = 0;
            done = next = offer.have;
        }
        if (event->type == CCI_EVENT_SEND) {
            in_flight--;
            if (event->send.status == CCI_SUCCESS) done = (uint64_t)(uintptr_t)event->send.context;
            else is_broken = connection != NULL;
        }
        if (is_broken) {
            printf("\nthe receiver is gone; waiting for it\n");
            check(cci_disconnect(event->type == CCI_EVENT_SEND ? connection : event->disconnect.connection), "disconnect");
            connection = NULL;
            is_connecting = 0;
        }
        check(cci_return_event(event), "return");
        if (!connection && !is_connecting && in_flight == 0) reach(uri), is_connecting = 1;
        while (connection && in_flight < AT_ONCE && next < size) {
            uint64_t length = size - next < PIECE ? size - next : PIECE, end = next + length;
            int status = cci_rma(connection, &end, sizeof end, local, next, (cci_rma_handle_t *)(void *)offer.handle,
                                 next, length, (void *)(uintptr_t)end, CCI_FLAG_WRITE);
            if ((status == CCI_ENOBUFS && in_flight > 0) || status == CCI_ERR_DISCONNECTED) break; /* an event will tell */
            check(status, "cci_rma");
            next = end;
            in_flight++;
        }
    }
    printf("\n%s has been sent\n", path);
    close(file);
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *each;
    check(cci_get_devices(&each), "cci_get_devices");
    while (*each && !((*each)->up && strncmp(uri, (*each)->transport, strcspn(uri, ":")) == 0)) each++;
    return *each;
}

int main(int argc, char **argv) {
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT, timeout_us = TIMEOUT_US;
    int is_receiver = argc == 4;
    if (argc < 3 || argc > 4) return fprintf(stderr, "usage: transfer NAME FILE BYTES, or transfer URI FILE\n"), 2;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint_at(is_receiver ? NULL : device_for(argv[1]), is_receiver ? argv[1] : NULL, 0, &endpoint,
                                 &os_handle), "cci_create_endpoint_at");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events), "cci_set_opt");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us), "cci_set_opt");
    if (is_receiver) {
        size = strtoull(argv[3], NULL, 10);
        receive(argv[2]);
    } else {
        send_file(argv[1], argv[2]);
    }
    return cci_finalize();
}
