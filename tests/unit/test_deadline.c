/* test_deadline.c - a program without descriptors sleeps by cci_next_deadline(): it is called when something arrives or is due, and
 * seldom otherwise, whatever the round trip.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Two endpoints on a link that does what its manual says, in virtual time. test_deadline_small.c and test_deadline_tiny.c are the same
 * with the profiles for small machines.
 */
#ifdef CCI_TINY
#define CCI_TINY_ENDPOINTS 2
#define CCI_TINY_MTU 1400
#endif
#define CCI_IMPLEMENTATION
#include "cci.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define MTU 1400u
#define BYTES 20000u
#define SEGMENTS (BYTES / (MTU - 100) + 1)

/* ---- the line ---- */

typedef struct packet {
    uint64_t at_ns;
    uint32_t to, length;
    uint8_t bytes[MTU];
} packet_t;

static packet_t line[1024];
static uint32_t count, datagrams;
static uint64_t now_ns, way_ns;
static uint8_t ends[2] = {0, 1};

static int line_open(cci_device_t *device, const char *service, int want_handle, void **link, cci_link_info_t *info) {
    (void)device, (void)want_handle;
    *link = &ends[service[0] - '0'];
    info->mtu = MTU;
    return CCI_SUCCESS;
}
static void line_close(void *link) { (void)link; }
static int line_send(void *link, const cci_link_tx_t *tx, int n) {
    int i;
    uint32_t piece;
    for (i = 0; i < n; i++) {
        packet_t *packet = &line[count];
        assert_true(count < sizeof line / sizeof line[0]);
        assert_true(tx[i].length <= MTU);
        packet->at_ns = now_ns + way_ns;
        packet->to = !*(const uint8_t *)link;
        packet->length = 0;
        for (piece = 0; piece < tx[i].piece_count; piece++) {
            memcpy(packet->bytes + packet->length, tx[i].piece[piece].data, tx[i].piece[piece].length);
            packet->length += tx[i].piece[piece].length;
        }
        count++, datagrams++;
    }
    return n;
}
static int line_receive(void *link, cci_link_rx_t *rx, int n) {
    uint32_t i = 0;
    int got = 0;
    assert_true(n > 0); /* else nothing could ever be received */
    while (i < count && got < n) {
        packet_t *packet = &line[i];
        if (packet->to != *(const uint8_t *)link || packet->at_ns > now_ns) {
            i++;
            continue;
        }
        assert_true(packet->length <= rx[got].capacity);
        memcpy(rx[got].data, packet->bytes, packet->length);
        rx[got].length = rx[got].segment = packet->length;
        rx[got].is_group = 0;
        memset(&rx[got].from, 0, sizeof rx[got].from);
        rx[got++].from.bytes[0] = (uint8_t)!*(const uint8_t *)link;
        memmove(packet, packet + 1, (--count - i) * sizeof *packet);
    }
    return got;
}
static uint64_t line_now(void *link) {
    (void)link;
    return now_ns;
}
static int line_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    to->bytes[0] = (uint8_t)(address[0] - '0');
    return CCI_SUCCESS;
}
static const cci_link_t table = {CCI_LINK_VERSION, line_open, line_close, line_send, line_receive, line_now, line_resolve, NULL,
                                 NULL,             NULL,      NULL,       NULL,      NULL,         NULL,     NULL,         NULL};

/* ---- two programs that sleep ---- */

static cci_endpoint_t *side[2];
static cci_connection_t *connection[2];
static uint8_t memory[2][BYTES];
static cci_rma_handle_t *handle[2];
static uint32_t done, came, calls;

/* All events of one side. */
static void serve(int i) {
    cci_event_t *event;
    int status;
    calls++;
    while ((status = cci_get_event(side[i], &event)) == CCI_SUCCESS) {
        switch ((int)event->type) {
        case CCI_EVENT_CONNECT_REQUEST: assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS); break;
        case CCI_EVENT_CONNECT:
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            connection[i] = event->connect.connection;
            break;
        case CCI_EVENT_ACCEPT: connection[i] = event->accept.connection; break;
        case CCI_EVENT_RECV: came++; break;
        case CCI_EVENT_SEND:
            assert_int_equal(event->send.status, CCI_SUCCESS);
            done++;
            break;
        default: fail();
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    assert_int_equal(status, CCI_EAGAIN);
}

/* Both sleep until something arrives or is due; whoever it is for looks. */
static void sleep_once(void) {
    uint64_t at_ns[2], next_ns;
    uint32_t i;
    for (i = 0; i < 2; i++) {
        uint64_t ns;
        assert_int_equal(cci_next_deadline(side[i], &ns), CCI_SUCCESS);
        at_ns[i] = ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + ns;
    }
    for (i = 0; i < count; i++)
        if (line[i].at_ns < at_ns[line[i].to]) at_ns[line[i].to] = line[i].at_ns;
    next_ns = at_ns[0] < at_ns[1] ? at_ns[0] : at_ns[1];
    assert_true(next_ns != UINT64_MAX);
    if (next_ns > now_ns) now_ns = next_ns;
    for (i = 0; i < 2; i++)
        if (at_ns[i] <= now_ns) serve((int)i);
}

static int random_bytes(void *user, void *bytes, size_t size) {
    static uint32_t x = 1;
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (size-- > 0) *at++ = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    return 0;
}
static void *take(void *user, size_t size) {
    (void)user;
    return malloc(size);
}
static void give(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

/* Two ends of a line, connected; from now on calls count. */
static void begin(uint64_t round_trip_ns) {
    static const char *const names[] = {"0", "1"};
    cci_setup_t setup;
    int i;
    memset(&setup, 0, sizeof setup);
    setup.alloc = take;
    setup.release = give;
    setup.random = random_bytes;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    count = 0;
    way_ns = round_trip_ns / 2;
    now_ns += 100000 * MS;
    for (i = 0; i < 2; i++) {
        connection[i] = NULL;
        assert_int_equal(cci_create_endpoint_on_link(&table, names[i], &side[i], NULL), CCI_SUCCESS);
        assert_int_equal(cci_rma_register(side[i], memory[i], BYTES, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle[i]), CCI_SUCCESS);
    }
    assert_int_equal(cci_connect(side[0], "link://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    while (!connection[0] || !connection[1]) sleep_once();
    for (i = 0; i < 40; i++) { /* the end of the handshake */
        now_ns += 100 * MS;
        serve(0);
        serve(1);
    }
    done = came = calls = datagrams = 0;
}

/* What was begun ends within so many round trips, and nobody is called more often than packets and their timers are worth. */
static void finish(uint32_t operations, uint32_t round_trips) {
    uint64_t began_ns = now_ns;
    uint32_t i;
    serve(0);
    while (done < operations) {
        sleep_once();
        assert_true(now_ns - began_ns <= round_trips * 2 * way_ns + 2 * MS);
        assert_true(calls <= 4 * datagrams + 20);
    }
    for (i = 0; i < 2; i++) assert_int_equal(cci_destroy_endpoint(side[i]), CCI_SUCCESS);
}

static const uint64_t round_trips_ns[] = {MS / 5, 20 * MS, 500 * MS, 1000 * MS, 3000 * MS};
#define ROUND_TRIPS (sizeof round_trips_ns / sizeof round_trips_ns[0])

/* ---- tests ---- */

static void a_burst_of_messages_lets_both_sleep(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < ROUND_TRIPS; i++) {
        uint32_t sent = 0;
        begin(round_trips_ns[i]);
        while (sent < 100 && cci_send(connection[0], memory[0], 200, NULL, 0) == CCI_SUCCESS) sent++;
        assert_true(sent > 0);
        finish(sent, 4);
        assert_int_equal(came, sent);
    }
}

static void transfer(int flag, uint32_t round_trips) {
    uint32_t i, byte;
    for (i = 0; i < ROUND_TRIPS; i++) {
        for (byte = 0; byte < BYTES; byte++) {
            memory[0][byte] = (uint8_t)(byte * 7 + i);
            memory[1][byte] = (uint8_t)(byte * 31 + i);
        }
        begin(round_trips_ns[i]);
        assert_int_equal(cci_rma(connection[0], NULL, 0, handle[0], 0, handle[1], 0, BYTES, NULL, flag), CCI_SUCCESS);
        finish(1, round_trips);
        assert_memory_equal(memory[0], memory[1], BYTES);
    }
}

#ifdef CCI_TINY
#define WINDOW 1u /* segments for each round trip */
#elif defined(CCI_SMALL)
#define WINDOW 4u
#else
#define WINDOW 8u
#endif

static void a_write_lets_both_sleep(void **state) {
    (void)state;
    transfer(CCI_FLAG_WRITE, SEGMENTS / WINDOW + 3);
}

static void a_read_lets_both_sleep(void **state) {
    (void)state;
    transfer(CCI_FLAG_READ, SEGMENTS / WINDOW + 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_of_messages_lets_both_sleep),
        cmocka_unit_test(a_write_lets_both_sleep),
        cmocka_unit_test(a_read_lets_both_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
