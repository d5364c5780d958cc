/* test_status.c - CCI_EVENT_STATUS of the datagram engine: what happens on the network, and what the program is told of it.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server on the simulated network. All that they send passes through route(), which loses it, or has it come
 * from elsewhere, when the test wants that. The link tells the state of its device from a variable of the test.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

#define MS UINT64_C(1000000)
#define CLIENT 0
#define SERVER 1
#define CROWD 300 /* connections: more than a slab */
#define TOLD 4096

static cci_endpoint_t *end[2];
static cci_connection_t *at[2], *crowd[CROWD];
static uint32_t crowd_count;

/* The events that the client was given besides messages and completions, in their order. */
static struct told {
    int type;
    cci_status_what_t what;
    cci_connection_t *connection;
    uint64_t value;
} told[TOLD];
static uint32_t told_count;
static cci_event_t *kept[64];
static uint32_t kept_count, keep_most; /* status events that the client does not return */
static int is_cut;                     /* nothing arrives */
static uint64_t packets_of_client;
static int is_elsewhere;               /* the client's datagrams come from another address */
static cci_link_addr_t home, away;
static cci_link_state_t link_state;
static int tells_state;
static uint32_t allocations_left; /* 0: no limit; else one more than there may be */
static uint64_t live_blocks;

static void *counted_alloc(void *user, size_t size) {
    (void)user;
    if (allocations_left == 1)
        return NULL;
    allocations_left -= allocations_left > 1;
    live_blocks++;
    return malloc(size);
}

static void counted_release(void *user, void *pointer) {
    (void)user;
    live_blocks -= pointer != NULL;
    free(pointer);
}

static void route(const sim_datagram_t *datagram) {
    sim_datagram_t *moved = (sim_datagram_t *)(uintptr_t)datagram;
    const cci_link_addr_t from = datagram->from, to = datagram->to;
    packets_of_client += memcmp(&from, &home, sizeof from) == 0;
    if (is_cut)
        return;
    if (memcmp(&to, &away, sizeof to) == 0 && !is_elsewhere)
        return;
    if (memcmp(&to, &away, sizeof to) == 0)
        moved->to = home;
    if (is_elsewhere && memcmp(&from, &home, sizeof from) == 0)
        moved->from = away;
    sim_put(&moved->from, &moved->to, moved);
    moved->from = from;
    moved->to = to;
}

static int stateful_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    int status = sim_link.open(device, service, want_os_handle, link, info);
    if (tells_state)
        info->state = &link_state;
    return status;
}

static void take_one(int side) {
    cci_event_t *event;
    if (cci_get_event(end[side], &event) != CCI_SUCCESS)
        return;
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT_REQUEST: assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS); break;
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        at[CLIENT] = crowd[crowd_count++] = event->connect.connection;
        break;
    case CCI_EVENT_ACCEPT: at[SERVER] = event->accept.connection; break;
    default: break;
    }
    assert_true(side == CLIENT || event->type != CCI_EVENT_STATUS); /* the server has not asked */
    if (side == CLIENT && event->type != CCI_EVENT_SEND && event->type != CCI_EVENT_RECV) {
        struct told *next = &told[told_count++];
        assert_true(told_count <= TOLD);
        memset(next, 0, sizeof *next);
        next->type = (int)event->type;
        if (event->type == CCI_EVENT_STATUS) {
            next->what = event->status.what;
            next->connection = event->status.connection;
            next->value = event->status.value;
            if (kept_count < keep_most) {
                kept[kept_count++] = event;
                return;
            }
        }
    }
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

static void both_work(uint64_t for_ns) {
    uint64_t until_ns = sim.now_ns + for_ns;
    while (sim.now_ns < until_ns) {
        take_one(CLIENT);
        take_one(SERVER);
    }
}

/* Only the network and the timers: the client's program takes no event. */
static void client_works(uint64_t for_ns) {
    uint64_t until_ns = sim.now_ns + for_ns;
    while (sim.now_ns < until_ns) {
        cci_send(at[CLIENT], "x", 1, NULL, CCI_FLAG_SILENT); /* a call that is no cci_get_event() ... */
        assert_int_equal(cci_arm_os_handle(end[CLIENT], 0), CCI_SUCCESS); /* ... and one that makes progress */
        take_one(SERVER);
    }
}

static int asks(uint32_t mask) {
    return cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_EVENT_MASK, &mask);
}

static void connect_one(cci_conn_attribute_t attribute) {
    uint32_t before = crowd_count;
    char *uri;
    assert_int_equal(cci_get_opt(end[SERVER], CCI_OPT_ENDPT_URI, (void *)&uri), CCI_SUCCESS);
    at[SERVER] = NULL;
    assert_int_equal(cci_connect(end[CLIENT], uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    while (crowd_count == before || at[SERVER] == NULL)
        both_work(MS / 10);
}

static void begin(uint32_t mask) {
    static cci_link_t link;
    static cci_transport_t transport;
    static const cci_transport_t *const transports[] = {&transport, NULL};
    static cci_os_handle_t handle;
    cci_setup_t setup;
    uint32_t caps;
    link = sim_link;
    link.open = stateful_open;
    transport = sim_transport;
    transport.link = &link;
    memset(&setup, 0, sizeof setup);
    setup.transports = transports;
    setup.alloc = counted_alloc;
    setup.release = counted_release;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &end[CLIENT], &handle), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &end[SERVER], NULL), CCI_SUCCESS);
    home = ((sim_endpoint_t *)((cci__dgram_t *)(void *)end[CLIENT])->base.handle)->address;
    away = home;
    away.bytes[sizeof away.bytes - 1] ^= 0x55;
    sim_route = route;
    if (mask != 0)
        assert_int_equal(asks(mask), CCI_SUCCESS);
    connect_one(CCI_CONN_ATTR_RO);
    both_work(3000 * MS); /* the path's MTU is known then */
    told_count = 0;
}

static int setup_test(void **state) {
    (void)state;
    sim_reset();
    memset(end, 0, sizeof end);
    memset(at, 0, sizeof at);
    memset(&link_state, 0, sizeof link_state);
    told_count = kept_count = keep_most = crowd_count = allocations_left = 0;
    is_cut = is_elsewhere = tells_state = 0;
    packets_of_client = live_blocks = 0;
    return 0;
}

static int teardown_test(void **state) {
    (void)state;
    cci_finalize();
    sim_reset();
    return live_blocks == 0 ? 0 : -1;
}

#define STATUS (1u << CCI_EVENT_STATUS)

static void send_silently(void) {
    assert_int_equal(cci_send(at[CLIENT], "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
}

static void is_told(uint32_t number, cci_status_what_t what, const cci_connection_t *connection, uint64_t value) {
    assert_true(number < told_count);
    assert_int_equal(told[number].type, CCI_EVENT_STATUS);
    assert_int_equal(told[number].what, what);
    assert_ptr_equal(told[number].connection, connection);
    assert_int_equal(told[number].value, value);
}

/* ---- tests ---- */

static void test_suspended_after_three_probes(void **state) {
    uint64_t sent, limit_ns;
    (void)state;
    begin(STATUS);
    is_cut = 1;
    send_silently();
    sent = packets_of_client;
    limit_ns = sim.now_ns + 10000 * MS;
    while (told_count == 0 && sim.now_ns < limit_ns)
        both_work(MS / 10);
    assert_int_equal(told_count, 1);
    is_told(0, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
    assert_true(packets_of_client - sent >= 3 && packets_of_client - sent <= 5); /* the message, and what asked for it */
    both_work(2000 * MS);
    assert_int_equal(told_count, 1); /* it is told once */
    is_cut = 0;
    both_work(4000 * MS);
    assert_int_equal(told_count, 2);
    is_told(1, CCI_STATUS_PATH_RESUMED, at[CLIENT], 0);
}

static void test_one_of_each_kind_waits(void **state) {
    int i;
    (void)state;
    begin(STATUS);
    for (i = 0; i < 5; i++) {
        is_cut = 1;
        client_works(6000 * MS);
        is_cut = 0;
        client_works(6000 * MS);
    }
    both_work(100 * MS);
    assert_int_equal(told_count, 2);
    is_told(0, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
    is_told(1, CCI_STATUS_PATH_RESUMED, at[CLIENT], 0);
    told_count = 0;
    is_cut = 1;
    client_works(6000 * MS);
    is_cut = 0;
    client_works(6000 * MS);
    is_cut = 1;
    client_works(6000 * MS);
    both_work(100 * MS);
    assert_int_equal(told_count, 2); /* the newer of two that are alike, in its own place */
    is_told(0, CCI_STATUS_PATH_RESUMED, at[CLIENT], 0);
    is_told(1, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
}

static void test_idle_peer(void **state) {
    (void)state;
    sim.probe_idle_s = 8;
    begin(STATUS);
    is_cut = 1;
    both_work(6000 * MS);
    assert_int_equal(told_count, 0);
    both_work(4000 * MS);
    assert_int_equal(told_count, 1);
    is_told(0, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
    is_cut = 0;
    both_work(3000 * MS);
    assert_int_equal(told_count, 2);
    is_told(1, CCI_STATUS_PATH_RESUMED, at[CLIENT], 0);
}

/* Long messages, for so many tenths of a second. */
static void send_long(uint32_t tenths) {
    static const char bytes[4096];
    while (tenths-- > 0) {
        cci_send(at[CLIENT], bytes, at[CLIENT]->max_send_size, NULL, CCI_FLAG_SILENT);
        both_work(100 * MS);
    }
}

static uint32_t path_mtu(void) {
    cci_conn_stats_t stats;
    assert_int_equal(cci_get_opt(at[CLIENT], CCI_OPT_CONN_STATS, &stats), CCI_SUCCESS);
    return stats.path_mtu;
}

static void test_path_mtu(void **state) {
    uint32_t i;
    (void)state;
    sim.base_mtu = 512;
    begin(STATUS);
    connect_one(CCI_CONN_ATTR_RU);
    assert_int_equal(path_mtu(), 512);
    told_count = 0;
    send_long(20);
    assert_int_equal(path_mtu(), sim.mtu);
    assert_true(told_count > 0);
    for (i = 0; i < told_count; i++)
        is_told(i, CCI_STATUS_PATH_MTU, at[CLIENT], told[i].value);
    assert_int_equal(told[told_count - 1].value, sim.mtu);
    told_count = 0;
    sim.path_mtu = 512; /* what was found to fit does not any more */
    send_long(300);
    assert_int_equal(path_mtu(), 512);
    for (i = 0; i < told_count && told[i].what != CCI_STATUS_PATH_MTU; i++) {
    } /* while large packets got lost the peer may have been silent */
    is_told(i, CCI_STATUS_PATH_MTU, at[CLIENT], 512);
}

/* Of the path to its new address nothing is known [RFC 9000, 9.4]: neither how much it takes, nor its round trip. */
static void test_peer_moves(void **state) {
    static const char bytes[4096];
    uint32_t mask = STATUS, found = 0, i;
    char *uri[2];
    const cci__dconn_t *conn;
    (void)state;
    begin(0);
    conn = (const cci__dconn_t *)(const void *)at[SERVER];
    for (i = 0; i < 400; i++) {
        cci_send(at[SERVER], bytes, at[SERVER]->max_send_size, NULL, CCI_FLAG_SILENT);
        if (i % 40 == 39) both_work(20 * MS);
    }
    assert_true(conn->hot->rel.flow.window > 4u * sim.mtu && conn->hot->rel.flow.window > 12000);
    assert_int_equal(cci_set_opt(end[SERVER], CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(at[SERVER], CCI_OPT_CONN_PEER_URI, &uri[0]), CCI_SUCCESS);
    is_elsewhere = 1;
    send_silently();
    for (i = 0; i < 100000 && !found; i++) {
        cci_event_t *event;
        take_one(CLIENT);
        if (cci_get_event(end[SERVER], &event) != CCI_SUCCESS)
            continue;
        if (event->type == CCI_EVENT_STATUS) {
            assert_int_equal(event->status.what, CCI_STATUS_PEER_MOVED);
            assert_ptr_equal(event->status.connection, at[SERVER]);
            found = 1;
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    assert_true(found);
    assert_true(memcmp(&conn->conn.peer, &away, sizeof away) == 0);
    assert_true(conn->hot->rel.flow.window <= cci__max64(4u * sim.mtu, 12000));
    assert_int_equal(cci_get_opt(at[SERVER], CCI_OPT_CONN_PEER_URI, &uri[1]), CCI_SUCCESS);
    free(uri[0]);
    free(uri[1]);
}

static void test_device(void **state) {
    (void)state;
    tells_state = 1;
    link_state.mtu = 1500;
    begin(STATUS);
    link_state.mtu = 9000;
    both_work(300 * MS);
    assert_int_equal(told_count, 1);
    is_told(0, CCI_STATUS_MTU_CHANGED, NULL, 9000);
    link_state.lacks_address = 1;
    sim.up[0] = 0;
    both_work(300 * MS);
    assert_int_equal(told_count, 4);
    is_told(1, CCI_STATUS_ADDRESS_CHANGED, NULL, 0);
    assert_int_equal(told[2].type, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    is_told(3, CCI_STATUS_DEVICE_DOWN, NULL, 0);
    told_count = 0;
    link_state.lacks_address = 0;
    sim.up[0] = 1;
    both_work(300 * MS);
    assert_int_equal(told_count, 2);
    is_told(0, CCI_STATUS_ADDRESS_CHANGED, NULL, 1);
    is_told(1, CCI_STATUS_DEVICE_UP, NULL, 0);
}

static void test_nothing_without_the_mask(void **state) {
    (void)state;
    tells_state = 1;
    link_state.mtu = 1500;
    begin(1u << CCI_EVENT_DISCONNECT);
    link_state.mtu = 1400;
    is_cut = 1;
    send_silently();
    both_work(5000 * MS);
    is_cut = 0;
    both_work(5000 * MS);
    assert_int_equal(told_count, 0);
    assert_int_equal(asks(STATUS), CCI_SUCCESS);
    both_work(1000 * MS);
    assert_int_equal(told_count, 0); /* nothing of what was before */
    is_cut = 1;
    client_works(2000 * MS);
    assert_int_equal(asks(0), CCI_SUCCESS); /* what waits does not come any more */
    is_cut = 0;
    both_work(5000 * MS);
    assert_int_equal(told_count, 0);
}

/* All connections are suspended at once while the program holds what it got. */
static void test_many(void **state) {
    uint32_t i, n;
    (void)state;
    begin(STATUS);
    while (crowd_count < CROWD)
        connect_one(CCI_CONN_ATTR_RU);
    both_work(5000 * MS);
    told_count = 0;
    keep_most = 64;
    is_cut = 1;
    for (i = 0; i < CROWD; i++)
        assert_int_equal(cci_send(crowd[i], "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    both_work(4000 * MS);
    assert_true(kept_count > 0 && kept_count < 64); /* so many, and no more until one is returned */
    n = kept_count;
    assert_int_equal(told_count, n);
    keep_most = 0;
    assert_int_equal(cci_disconnect(told[0].connection), CCI_SUCCESS); /* the program holds its event */
    while (kept_count > 0)
        assert_int_equal(cci_return_event(kept[--kept_count]), CCI_SUCCESS);
    both_work(4000 * MS);
    assert_int_equal(told_count, CROWD);
    for (i = 0; i < CROWD; i++) {
        assert_int_equal(told[i].what, CCI_STATUS_PATH_SUSPENDED);
        for (n = 0; n < i; n++)
            assert_ptr_not_equal(told[n].connection, told[i].connection);
    }
}

static void test_none_of_what_is_gone(void **state) {
    (void)state;
    begin(STATUS);
    is_cut = 1;
    client_works(2000 * MS); /* an event waits */
    assert_int_equal(cci_disconnect(at[CLIENT]), CCI_SUCCESS);
    is_cut = 0;
    connect_one(CCI_CONN_ATTR_RO);
    both_work(1000 * MS);
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].type, CCI_EVENT_CONNECT);
}

static void test_in_front_of_the_end(void **state) {
    uint32_t timeout_us = 2000000;
    (void)state;
    begin(STATUS | 1u << CCI_EVENT_DISCONNECT);
    assert_int_equal(cci_set_opt(at[CLIENT], CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    is_cut = 1;
    send_silently();
    client_works(1500 * MS);
    both_work(20000 * MS);
    assert_int_equal(told_count, 2);
    is_told(0, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
    assert_int_equal(told[1].type, CCI_EVENT_DISCONNECT);
    is_cut = 0;
    both_work(5000 * MS);
    assert_int_equal(told_count, 2);
}

static void test_memory(void **state) {
    uint32_t i, mask = 7;
    int status = CCI_ENOMEM;
    (void)state;
    begin(0);
    for (i = 1; status != CCI_SUCCESS; i++) {
        assert_true(i < 10);
        allocations_left = i;
        status = asks(STATUS);
        allocations_left = 0;
        assert_int_equal(cci_get_opt(end[CLIENT], CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
        assert_int_equal(mask, status == CCI_SUCCESS ? STATUS : 0);
        assert_true(status == CCI_SUCCESS || status == CCI_ENOMEM);
    }
    assert_int_equal(asks(STATUS << 1), CCI_EINVAL);
    assert_int_equal(asks(STATUS | 1u << CCI_EVENT_RECV), CCI_EINVAL);
    send_silently();
    both_work(100 * MS);
    allocations_left = 1; /* what happens needs no more */
    is_cut = 1;
    send_silently();
    both_work(3000 * MS);
    allocations_left = 0;
    is_told(0, CCI_STATUS_PATH_SUSPENDED, at[CLIENT], 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
#define TEST(name, sentence) {sentence, test_##name, setup_test, teardown_test, NULL}
        TEST(suspended_after_three_probes, "a path is suspended after three probe time-outs, and resumed by an answer, each told once"),
        TEST(one_of_each_kind_waits, "of each kind one waits, the newest, in its own place"),
        TEST(idle_peer, "a path without traffic is suspended when three questions were not answered"),
        TEST(path_mtu, "the path's MTU is told when larger packets have arrived, and when they get lost"),
        TEST(peer_moves, "a peer that moves is told once its address is proven"),
        TEST(device, "the device's MTU, address, failure and return are told in their order"),
        TEST(nothing_without_the_mask, "without the mask nothing comes, nor what happened before or waited then"),
        TEST(many, "a program that holds events gets the rest when it returns them; none is missing"),
        TEST(none_of_what_is_gone, "nothing comes of a connection that the program has closed"),
        TEST(in_front_of_the_end, "a suspension comes before the connection's end, and nothing behind it"),
        TEST(memory, "the mask takes the memory at once, or is CCI_ENOMEM and changes nothing"),
#undef TEST
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
