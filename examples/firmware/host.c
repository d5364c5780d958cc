/* host.c - the other end of the line: an ordinary program with the whole of CCI talks to firmware.c.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     host LINE [count]        echoes `count` messages (100), reads the board's counters and changes a setting
 *     host LINE count die      the same, but falls silent without a word after half of them
 *     host LINE count rest     the same; then it is idle for 5 s and sees that the board slept
 *     host LINE count unplug   the same; then it goes on until the Ethernet cable was pulled out and is back
 *
 * LINE is a terminal (/dev/ttyUSB0, set up with stty raw), or the socket of an emulator's serial port; or the address of a board at
 * Ethernet, udp://10.0.2.15:7777.
 */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "board.h"
#include "slip.h"

/* ---- the link ------------------------------------------------------------------------------------------------------- */

typedef struct line {
    int fd;
    uint32_t waiting, sent; /* bytes of the last datagram that wait for the line */
    slip_t slip;
    uint8_t coming[BOARD_MTU], going[SLIP_MOST(BOARD_MTU)];
} line_t;

static line_t line;

static int line_open(cci_device_t *device, const char *service, int want_handle, void **link, cci_link_info_t *info) {
    struct sockaddr_un name;
    (void)device, (void)want_handle;
    *link = &line;
    memset(&name, 0, sizeof name);
    name.sun_family = AF_UNIX;
    strncpy(name.sun_path, service, sizeof name.sun_path - 1);
    line.fd = open(service, O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (line.fd < 0) { /* a socket can't be opened */
        line.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (line.fd < 0) return CCI_ENODEV;
        if (connect(line.fd, (struct sockaddr *)&name, sizeof name) != 0) return CCI_ENODEV;
        if (fcntl(line.fd, F_SETFL, O_NONBLOCK) != 0) return CCI_ENODEV;
    }
    line.slip.bytes = line.coming;
    line.slip.size = sizeof line.coming;
    info->mtu = BOARD_MTU;
    info->crc = 1;
    info->receive_window = 8 * BOARD_MTU;
    info->send_timeout_us = 60000000;
    return CCI_SUCCESS;
}

static void line_close(void *link) {
    (void)link;
    if (line.fd >= 0) (void)close(line.fd);
}

/* What is left of a datagram that the line took in part goes first. 1: nothing is left. */
static int line_drain(void) {
    while (line.sent < line.waiting) {
        ssize_t n = write(line.fd, line.going + line.sent, line.waiting - line.sent);
        if (n <= 0) return 0;
        line.sent += (uint32_t)n;
    }
    return 1;
}

static int line_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    uint32_t piece, length;
    (void)link;
    for (i = 0; i < count && line_drain(); i++) {
        line.going[0] = 0xC0;
        for (piece = 0, length = 1; piece < tx[i].piece_count; piece++)
            length += slip_put(line.going + length, tx[i].piece[piece].data, tx[i].piece[piece].length);
        line.going[length++] = 0xC0;
        line.waiting = length;
        line.sent = 0;
    }
    (void)line_drain();
    return i;
}

static int line_receive(void *link, cci_link_rx_t *rx, int count) {
    uint8_t byte;
    (void)link, (void)count;
    (void)line_drain();
    while (read(line.fd, &byte, 1) == 1) {
        uint32_t length = slip_take(&line.slip, byte);
        if (length == 0 || length > rx->capacity) continue;
        memcpy(rx->data, line.coming, length);
        rx->length = rx->segment = length;
        memset(&rx->from, 0, sizeof rx->from);
        rx->is_group = 0;
        return 1;
    }
    return 0;
}

static uint64_t line_now(void *link) {
    struct timespec t;
    (void)link;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int line_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link, (void)address, (void)to;
    return CCI_SUCCESS;
}

static const cci_link_t serial_line = {CCI_LINK_VERSION,
                                       line_open,
                                       line_close,
                                       line_send,
                                       line_receive,
                                       line_now,
                                       line_resolve,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL,
                                       NULL};

/* ---- the program ------------------------------------------------------------------------------------------------------ */

static cci_endpoint_t *endpoint;
static cci_os_handle_t waits_for; /* becomes readable when something comes */
static cci_connection_t *board;
static struct board_greeting greeting;
static uint32_t greetings, sent, echoed, moved;

static void fail(const char *what, int status) {
    if (status < 0) fprintf(stderr, "host: %s: not what it should be\n", what);
    else fprintf(stderr, "host: %s: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status),
                 cci_status_hint((cci_status_t)status));
    exit(1);
}
static void check(int status, const char *what) {
    if (status != CCI_SUCCESS) fail(what, status);
}

static uint32_t fill(uint8_t *bytes, uint32_t number) {
    uint32_t i, length = 1 + number * 37 % 250;
    for (i = 0; i < length; i++) bytes[i] = (uint8_t)(number + i * 5);
    return length;
}

static void take(const cci_event_t *event) {
    uint8_t wanted[256];
    uint32_t length;
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT:
        check((int)event->connect.status, "connecting");
        board = event->connect.connection;
        break;
    case CCI_EVENT_RECV:
        if (greetings++ == 0) {
            if (event->recv.len != sizeof greeting) fail("the greeting", -1);
            memcpy(&greeting, event->recv.ptr, sizeof greeting);
            break;
        }
        length = fill(wanted, echoed++);
        if (event->recv.len != length || memcmp(event->recv.ptr, wanted, length) != 0) fail("an echo", -1);
        break;
    case CCI_EVENT_SEND:
        check((int)event->send.status, "an RMA");
        moved++;
        break;
    case CCI_EVENT_DISCONNECT: fail("the board has gone", -1); break;
    default: break;
    }
}

/* Takes one event, or sleeps until something comes, the library wants to be called, or the line takes what it has not yet. */
static void work(uint64_t most_ns) {
    struct pollfd wait;
    cci_event_t *event;
    uint64_t ns;
    if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        take(event);
        check(cci_return_event(event), "cci_return_event");
        return;
    }
    check(cci_next_deadline(endpoint, &ns), "cci_next_deadline");
    ns = ns < most_ns ? ns : most_ns;
    wait.fd = waits_for;
    wait.events = line.sent < line.waiting ? POLLIN | POLLOUT : POLLIN;
    (void)poll(&wait, 1, (int)((ns + 999999u) / 1000000u));
}

/* Works until *count has reached `wanted`. */
static void work_until(const uint32_t *count, uint32_t wanted) {
    while (*count < wanted) work(UINT64_C(10000000000));
}

/* The link is the serial line, or UDP. */
static const char *open_endpoint(const char *name) {
    uint32_t capabilities;
    if (strncmp(name, "udp://", 6) == 0) {
        check(cci_init(CCI_ABI_VERSION, 0, &capabilities), "cci_init");
        check(cci_create_endpoint(NULL, 0, &endpoint, &waits_for), "cci_create_endpoint");
        return name;
    }
    check(cci_create_endpoint_on_link(&serial_line, name, &endpoint, NULL), name);
    waits_for = line.fd;
    return "link://board";
}

static void move(cci_rma_handle_t *local, const uint8_t *remote_bytes, uint32_t length, int flags) {
    struct cci_rma_handle remote;
    memcpy(&remote, remote_bytes, sizeof remote);
    check(cci_rma(board, NULL, 0, local, 0, &remote, 0, length, NULL, flags), "cci_rma");
    work_until(&moved, moved + 1);
}

/* A message that the board echoes, while nobody listens for so long: its timer must wake it to send the echo again. */
static void ignore(unsigned seconds) {
    uint8_t bytes[256];
    check(cci_send(board, bytes, fill(bytes, sent++), NULL, CCI_FLAG_SILENT), "cci_send");
    (void)sleep(seconds);
    work_until(&echoed, sent);
}

/* The board is left alone. A tick of a millisecond would wake it 5,000 times. */
static void rest(void) {
    static struct board_counters counters;
    struct board_counters before;
    cci_rma_handle_t *local;
    uint64_t now_ns, end_ns;
    unsigned seconds;
    uint32_t ms;
    check(cci_rma_register(endpoint, &counters, sizeof counters, 0, &local), "cci_rma_register");
    move(local, greeting.counters, sizeof counters, CCI_FLAG_READ);
    before = counters;
    end_ns = line_now(NULL) + UINT64_C(5000000000);
    while ((now_ns = line_now(NULL)) < end_ns) work(end_ns - now_ns);
    move(local, greeting.counters, sizeof counters, CCI_FLAG_READ);
    ms = counters.uptime_ms - before.uptime_ms;
    printf("in %u idle ms it slept %u times, and the time woke it %u times\n", (unsigned)ms,
           (unsigned)(counters.sleeps - before.sleeps), (unsigned)(counters.alarms - before.alarms));
    if (ms < 4000) fail("the board's clock", -1);
    if (counters.sleeps - before.sleeps > ms / 4 || counters.alarms - before.alarms > ms / 40) fail("the board's sleep", -1);
    before = counters;
    for (seconds = 1; counters.alarms == before.alarms; seconds++) {
        if (seconds > 10) fail("the board's alarm", -1);
        ignore(seconds);
        move(local, greeting.counters, sizeof counters, CCI_FLAG_READ);
    }
    printf("unheard, it was woken by the time %u times\n", (unsigned)(counters.alarms - before.alarms));
    check(cci_rma_deregister(endpoint, local), "cci_rma_deregister");
}

/* One echo after the other, until the board has seen that its cable was pulled out, and is back. */
static void survive(void) {
    static struct board_counters counters;
    uint32_t before, echoes = 0;
    cci_rma_handle_t *local;
    check(cci_rma_register(endpoint, &counters, sizeof counters, 0, &local), "cci_rma_register");
    move(local, greeting.counters, sizeof counters, CCI_FLAG_READ);
    before = counters.unplugs;
    printf("the cable may be pulled out\n");
    (void)fflush(stdout);
    while (counters.unplugs == before) {
        uint8_t bytes[256];
        if (++echoes > 1000000) fail("the cable was not pulled out", -1);
        check(cci_send(board, bytes, fill(bytes, sent++), NULL, CCI_FLAG_SILENT), "cci_send");
        work_until(&echoed, sent);
        move(local, greeting.counters, sizeof counters, CCI_FLAG_READ);
    }
    printf("%u echoes more; the cable was pulled out and is back\n", (unsigned)echoes);
    check(cci_rma_deregister(endpoint, local), "cci_rma_deregister");
}

/* Reads the counters, writes another setting, and reads until the board has seen it. */
static void look_and_set(uint32_t count) {
    static union {
        uint8_t bytes[32];
        struct board_counters counters;
        struct board_settings settings;
    } block;
    cci_rma_handle_t *local;
    uint32_t period_ms, tries;
    check(cci_rma_register(endpoint, &block, sizeof block, 0, &local), "cci_rma_register");
    move(local, greeting.counters, sizeof block.counters, CCI_FLAG_READ);
    printf("up for %u ms, connections: %u, messages: %u\n", (unsigned)block.counters.uptime_ms,
           (unsigned)block.counters.connections, (unsigned)block.counters.messages);
    if (block.counters.messages < count || block.counters.connections < 1) fail("the counters", -1);
    move(local, greeting.settings, sizeof block.settings, CCI_FLAG_READ);
    if (strcmp(block.settings.name, "mps2") != 0) fail("the settings", -1);
    period_ms = ++block.settings.period_ms;
    move(local, greeting.settings, sizeof block.settings, CCI_FLAG_WRITE);
    for (tries = 0, block.counters.period_ms = 0; block.counters.period_ms != period_ms; tries++) {
        move(local, greeting.counters, sizeof block.counters, CCI_FLAG_READ);
        if (tries == 1000) fail("the setting has no effect", -1);
    }
    printf("the period is now %u ms\n", (unsigned)period_ms);
}

int main(int argc, char **argv) {
    const struct timeval timeout = {90, 0};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    const uint32_t count = argc > 2 ? (uint32_t)atoi(argv[2]) : 100;
    const char *then = argc > 3 ? argv[3] : "", *uri;
    const int dies = strcmp(then, "die") == 0;
    if (argc < 2) return 2;
    uri = open_endpoint(argv[1]);
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask), "cci_set_opt");
    check(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), "cci_connect");
    work_until(&greetings, 1);
    while (sent < count) {
        uint8_t bytes[256];
        uint32_t length = fill(bytes, sent);
        int status = cci_send(board, bytes, length, NULL, CCI_FLAG_SILENT);
        if (status == CCI_ENOBUFS) {
            work_until(&echoed, echoed + 1);
            continue;
        }
        check(status, "cci_send");
        if (++sent > 8) work_until(&echoed, sent - 8);
        if (dies && sent == count / 2) _exit(0);
    }
    work_until(&echoed, count);
    printf("%u echoes\n", (unsigned)echoed);
    look_and_set(count);
    if (strcmp(then, "rest") == 0) rest();
    if (strcmp(then, "unplug") == 0) survive();
    check(cci_disconnect(board), "cci_disconnect");
    check(cci_destroy_endpoint(endpoint), "cci_destroy_endpoint");
    return 0;
}
