/* test_dgram.c - the datagram endpoint: rare turns of events, each put together by hand.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Two endpoints on the simulated network, a client and a server. The link in between can refuse a part of what it is given,
 * lose long datagrams, and remember one. Memory goes through a hook that counts, and that can fail at any allocation.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

#define MAX_CONNECTIONS 32
#define FEW_BYTES (1u << 20) /* memory of an endpoint that FEW connections need for traffic at most */
#define FEW 400
#define MAX_HELD 256
#define LONG_DATAGRAM 300 /* bytes */
#define STRANGER 4242u    /* the number of an address at which nobody is */

/* ---- a link that misbehaves ------------------------------------------------------------------------------------- */

static cci_link_t bad_link;
static cci_endpoint_t *client, *server;
static cci_transport_t transport;
static const cci_transport_t *transports[2];

static int takes_parts;            /* a longer batch is sometimes sent in part */
static int partial_sends;          /* so often it was */
static int loses_long;             /* datagrams longer than LONG_DATAGRAM vanish */
static int lost_long;              /* how many did */
static int joins;                  /* the sender leaves out a byte of padding, the receiver coalesces: see joining_receive() */
static int longest_train;          /* of datagrams of an odd size that came in one buffer */
static uint32_t message_limit;     /* max_send_size of endpoints that are opened now; 0: the default */
static uint32_t link_mtu;          /* of endpoints that are opened now; 0: the network's */
static uint32_t link_crc;
static const char *link_congestion;
static int group_status;           /* what joining a group gives */
static int address_status;         /* what asking the link for its address gives */
static uint8_t kept_bytes[1600];   /* the last DATA packet of the endpoint `kept_from` */
static uint32_t kept_length;
static const void *kept_from;

static void keep(const void *handle, const cci_link_tx_t *tx) {
    uint32_t i, at = 0;
    if (handle != kept_from || tx->length > sizeof kept_bytes || ((const uint8_t *)tx->piece[0].data)[1] != CCI__PKT_DATA)
        return;
    for (i = 0; i < tx->piece_count; i++) {
        memcpy(kept_bytes + at, tx->piece[i].data, tx->piece[i].length);
        at += tx->piece[i].length;
    }
    kept_length = at;
}

/* ---- a thread that comes while the only one is inside -------------------------------------------------------------- */

static int makes_thread;         /* the next batch that is sent makes one, the process's first */
static int thread_made, is_inside, met_inside; /* the last two under `flags`: not all compilers have atomic operations */
static pthread_mutex_t flags = PTHREAD_MUTEX_INITIALIZER;
static pthread_t second;

static int get_flag(const int *flag) {
    int value;
    pthread_mutex_lock(&flags);
    value = *flag;
    pthread_mutex_unlock(&flags);
    return value;
}

static void set_flag(int *flag, int value) {
    pthread_mutex_lock(&flags);
    *flag = value;
    pthread_mutex_unlock(&flags);
}

static void *come_too(void *endpoint) {
    cci_event_t *event;
    if (cci_get_event((cci_endpoint_t *)endpoint, &event) == CCI_SUCCESS)
        cci_return_event(event);
    return NULL;
}

/* The library is in a call while this runs: whoever gets into another call of the same endpoint's is met here. */
static void let_another_in(void) {
    int tries;
    makes_thread = 0;
    set_flag(&is_inside, 1);
    thread_made = pthread_create(&second, NULL, come_too, client) == 0;
    for (tries = 0; tries < 20000 && !get_flag(&met_inside); tries++)
        sched_yield();
    set_flag(&is_inside, 0);
}

static void watch_the_door(void) {
    if (get_flag(&is_inside))
        set_flag(&met_inside, 1);
}

static int bad_send(void *handle, const cci_link_tx_t *tx, int count) {
    int i;
    watch_the_door();
    if (makes_thread)
        let_another_in();
    if (takes_parts && count > 3 && sim_below(2) == 0) {
        partial_sends++;
        return sim_send(handle, tx, count / 2);
    }
    for (i = 0; i < count; i++) {
        cci_link_tx_t one = tx[i];
        keep(handle, &tx[i]);
        if (joins && one.length > LONG_DATAGRAM) { /* no peer has to fill up the last frame of a packet */
            one.length--;
            one.piece[one.piece_count - 1].length--;
        }
        if (!loses_long || one.length <= LONG_DATAGRAM)
            (void)sim_send(handle, &one, 1);
        else
            lost_long++;
    }
    return count;
}

static int limited_open(cci_device_t *device, const char *service, int want_os_handle, void **handle,
                        cci_link_info_t *info) {
    int status;
    info->max_send_size = message_limit;
    status = sim_open(device, service, want_os_handle, handle, info);
    info->coalesce = (uint32_t)joins;
    info->crc = link_crc;
    info->congestion = link_congestion;
    if (link_mtu)
        info->mtu = link_mtu;
    return status;
}

static int bad_group(void *handle, const cci_link_addr_t *group, int join) {
    return join && group_status != CCI_SUCCESS ? group_status : sim_group(handle, group, join);
}

static int bad_address(void *handle, char *text, size_t size) {
    return address_status != CCI_SUCCESS ? address_status : sim_address(handle, text, size);
}

/* Datagrams of one size that are there together come side by side in one buffer, as an offloading receiver leaves them. */
static int joining_receive(void *handle, cci_link_rx_t *rx, int count) {
    const sim_endpoint_t *endpoint = (const sim_endpoint_t *)handle;
    int filled, segments = 1;
    watch_the_door();
    filled = sim_receive(handle, rx, joins ? 1 : count);
    if (!joins || filled == 0)
        return filled;
    for (; endpoint->first && endpoint->first->length == rx->segment && rx->capacity - rx->length >= rx->segment; segments++) {
        cci_link_rx_t next = *rx;
        next.data += rx->length;
        next.capacity -= rx->length;
        assert_int_equal(sim_receive(handle, &next, 1), 1);
        rx->length += next.length;
    }
    if (rx->segment % 8 != 0 && segments > longest_train)
        longest_train = segments;
    return 1;
}

/* ---- memory that is counted --------------------------------------------------------------------------------------- */

static int blocks;       /* allocated and not released */
static int allocations;  /* so far */
static int fail_at = -1; /* the allocation that fails, counted from 0; -1 for none */
static int all_fail;     /* there is no memory at all */

static void *counting_alloc(void *user, size_t size_bytes) {
    void *pointer;
    (void)user;
    if (allocations++ == fail_at || all_fail)
        return NULL;
    pointer = malloc(size_bytes);
    blocks += pointer != NULL;
    return pointer;
}

static void counting_release(void *user, void *pointer) {
    (void)user;
    blocks--;
    free(pointer);
}

static int memory_told; /* lines that say what the memory limit does */

static void no_log(void *user, int level, const char *text) {
    (void)user, (void)level;
    memory_told += strstr(text, "connections take turns") != NULL && strstr(text, "key `memory`") != NULL;
}

/* ---- a client and a server ---------------------------------------------------------------------------------------- */

static cci_connection_t *at_client, *at_server; /* the newest connection */
static cci_connection_t *of_client[FEW + 1];
static int client_count;
static int received_count, sent_count, failed_count;
static uint32_t received_length;
static int holds; /* messages are held, not returned */
static cci_event_t *held[MAX_HELD];
static int held_count;
static int keepalive_count;
static uint64_t keepalive_ns;

static cci__dgram_t *dgram_of(cci_endpoint_t *endpoint) {
    return (cci__dgram_t *)(void *)endpoint;
}

static cci__dconn_t *dconn_of(cci_connection_t *connection) {
    return (cci__dconn_t *)(void *)connection;
}

static sim_endpoint_t *sim_of(cci_endpoint_t *endpoint) {
    return (sim_endpoint_t *)dgram_of(endpoint)->base.handle;
}

static void take_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        assert_int_equal(event->accept.status, CCI_SUCCESS);
        at_server = event->accept.connection;
        break;
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        assert_true(client_count <= FEW);
        at_client = of_client[client_count++] = event->connect.connection;
        break;
    case CCI_EVENT_RECV:
        received_count++;
        received_length = event->recv.len;
        assert_int_equal((uintptr_t)event->recv.ptr & 7, 0);
        break;
    case CCI_EVENT_SEND:
        sent_count++;
        failed_count += event->send.status != CCI_SUCCESS;
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        keepalive_count++;
        keepalive_ns = sim.now_ns;
        break;
    default:
        break;
    }
}

static void serve(cci_endpoint_t *endpoint) {
    cci_event_t *event;
    int i;
    for (i = 0; i < 64 && cci_get_event(endpoint, &event) == CCI_SUCCESS; i++) {
        take_event(event);
        if (holds && event->type == CCI_EVENT_RECV && held_count < MAX_HELD)
            held[held_count++] = event;
        else
            assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void return_held(int count) {
    while (count-- > 0)
        assert_int_equal(cci_return_event(held[--held_count]), CCI_SUCCESS);
}

static void run(int rounds) {
    while (rounds-- > 0) {
        serve(client);
        serve(server);
    }
}

/* Until `*count` is `wanted`, but not for ever. */
static void run_until(const int *count, int wanted) {
    int rounds;
    for (rounds = 0; rounds < 500000 && *count < wanted; rounds++)
        run(1);
    assert_int_equal(*count, wanted);
}

static void connect_to(const char *uri, cci_conn_attribute_t attribute) {
    at_client = at_server = NULL;
    assert_int_equal(cci_connect(client, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    run_until(&client_count, client_count + 1);
}

static void connect_both(cci_conn_attribute_t attribute) {
    char *uri;
    int rounds;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    connect_to(uri, attribute);
    free(uri);
    for (rounds = 0; rounds < 10000 && !at_server; rounds++)
        run(1);
    assert_non_null(at_server);
}

static void open_both(void) {
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
}

static void init_again(void) {
    uint32_t caps;
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
}

static int begin(void **state) {
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    sim_reset();
    takes_parts = partial_sends = loses_long = lost_long = joins = longest_train = holds = held_count = 0;
    all_fail = 0;
    link_mtu = link_crc = 0;
    link_congestion = NULL;
    group_status = address_status = CCI_SUCCESS;
    message_limit = kept_length = received_length = 0;
    kept_from = NULL;
    client_count = received_count = sent_count = failed_count = keepalive_count = 0;
    client = server = NULL;
    at_client = at_server = NULL;
    blocks = allocations = 0;
    fail_at = -1;
    bad_link = sim_link;
    bad_link.open = limited_open;
    bad_link.send = bad_send;
    bad_link.receive = joining_receive;
    bad_link.group = bad_group;
    bad_link.address = bad_address;
    transport = sim_transport;
    transport.link = &bad_link;
    transports[0] = &transport;
    memset(&setup, 0, sizeof setup);
    setup.alloc = counting_alloc;
    setup.release = counting_release;
    setup.log = no_log;
    setup.transports = transports;
    return cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS;
}

/* Nothing stays behind, whatever the test did. */
static int end(void **state) {
    (void)state;
    if (client)
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
    if (server)
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(blocks, 0);
    assert_int_equal(sim.endpoint_count, 0);
    sim_reset();
    return 0;
}

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

static void a_client_whose_address_changes_is_still_known_and_its_connection_can_be_closed(void **state) {
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    sim_of(client)->address.bytes[20] ^= 1;
    assert_int_equal(cci_send(at_client, "hi", 2, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    assert_int_equal(received_count, 1);
    assert_int_equal(failed_count, 0);
    assert_memory_equal(&dconn_of(at_server)->conn.peer, &sim_of(client)->address, sizeof(cci_link_addr_t));
    assert_int_equal(cci_send(at_server, "you", 3, NULL, 0), CCI_SUCCESS); /* goes to the new address */
    run_until(&received_count, 2);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    run(100);
    connect_both(CCI_CONN_ATTR_RO); /* the table of connections is sound */
    assert_int_equal(cci_send(at_client, "hi", 2, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 3);
}

static void a_replayed_old_packet_from_another_address_does_not_move_the_peers_address(void **state) {
    uint8_t packet[sizeof kept_bytes];
    uint32_t length;
    uint64_t duplicates;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    kept_from = sim_of(client);
    assert_int_equal(cci_send(at_client, "one", 3, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    length = kept_length;
    assert_true(length > CCI_REL_HEADER);
    memcpy(packet, kept_bytes, length);
    assert_int_equal(cci_send(at_client, "two", 3, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 2);
    run(100);
    duplicates = dgram_of(server)->pool.packets_duplicate;
    sim_inject(STRANGER, sim_of(server)->number, packet, length);
    run(100);
    assert_true(dgram_of(server)->pool.packets_duplicate > duplicates); /* it has arrived */
    assert_memory_equal(&dconn_of(at_server)->conn.peer, &sim_of(client)->address, sizeof(cci_link_addr_t));
    assert_int_equal(received_count, 2);
    assert_int_equal(cci_send(at_server, "three", 5, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 3);
}

/* ---- a link that takes less than it is given ---------------------------------------------------------------------- */

static void a_link_that_takes_only_part_of_a_batch_costs_no_message(void **state) {
    static const uint8_t bytes[1400];
    int i, round, issued = 0;
    (void)state;
    open_both();
    for (i = 0; i < 8; i++)
        connect_both(CCI_CONN_ATTR_RO);
    takes_parts = 1;
    for (round = 0; round < 60; round++) {
        for (i = 0; i < 200; i++)
            issued += cci_send(of_client[i % 8], bytes, sizeof bytes, NULL, 0) == CCI_SUCCESS;
        run(20);
    }
    assert_true(partial_sends > 10);
    run_until(&sent_count, issued);
    assert_int_equal(failed_count, 0);
    assert_int_equal(received_count, issued);
}

static void a_link_that_takes_only_part_of_a_batch_costs_no_write(void **state) {
    static uint8_t from[1 << 17], to[1 << 17];
    cci_rma_handle_t *local, *remote;
    int i, rounds;
    (void)state;
    open_both();
    for (i = 0; i < MAX_CONNECTIONS; i++)
        connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < (int)sizeof from; i++)
        from[i] = (uint8_t)(i * 7 + (i >> 8));
    memset(to, 0, sizeof to);
    assert_int_equal(cci_rma_register(client, from, sizeof from, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, to, sizeof to, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    takes_parts = 1;
    for (i = 0; i < 4 * MAX_CONNECTIONS; i++)
        assert_int_equal(cci_rma(of_client[i % MAX_CONNECTIONS], NULL, 0, local, 0, remote, 0, sizeof from, NULL,
                                 CCI_FLAG_WRITE), CCI_SUCCESS);
    for (rounds = 0; rounds < 100000 && sent_count < i; rounds++) { /* acknowledgements come in heaps */
        int again;
        for (again = 0; again < 30; again++)
            serve(server);
        serve(client);
    }
    assert_true(partial_sends > 10);
    assert_int_equal(sent_count, i);
    assert_int_equal(failed_count, 0);
    assert_memory_equal(from, to, sizeof to);
}

/* ---- a receiver that coalesces ------------------------------------------------------------------------------------ */

/* A segment behind one of an odd size is not aligned: it moves to a buffer of its own, while the buffer that it came in may
 * be kept for a message and need another in its place. Fewer and fewer buffers are there for both. */
static void odd_segments_side_by_side_find_buffers_however_few_there_are(void **state) {
    static const uint8_t bytes[1391];
    uint32_t count;
    int i, issued = 0;
    (void)state;
    joins = 1;
    open_both();
    connect_both(CCI_CONN_ATTR_RU);
    for (count = 40; count > 0; count = count > 8 ? count - 8 : count - 1) {
        holds = 1; /* the program has the buffers when there are to be fewer */
        for (i = 0; i < 48; i++)
            issued += cci_send(at_client, bytes, sizeof bytes, NULL, 0) == CCI_SUCCESS;
        run(200);
        assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
        run(200);
        return_held(held_count / 2);
        run(200);
        holds = 0;
        return_held(held_count);
        run_until(&sent_count, issued);
        run_until(&received_count, issued);
        run(200);
        assert_int_equal(failed_count, 0);
        assert_int_equal(received_count, issued);
        assert_int_equal(dgram_of(server)->base.evq.buffer_total, count + CCI__DGRAM_BATCH_RX);
        assert_int_equal(dgram_of(server)->base.evq.free_buffer_count, count);
    }
    assert_true(issued > 300);
    assert_true(longest_train > 4);
}

/* The first message is lost, and what came behind it holds buffers. There are to be fewer: the first has room all the same. */
static void a_message_that_others_wait_for_has_room_when_buffers_become_fewer(void **state) {
    static const uint8_t bytes[1391];
    uint32_t count;
    (void)state;
    link_congestion = "discern"; /* the window stays open when packets are lost by chance */
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (count = 1; count <= 8; count *= 2) {
        uint32_t many = 40;
        int i, issued = sent_count;
        assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &many), CCI_SUCCESS);
        loses_long = 1;
        assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
        for (i = 0; i < 24; i++) {
            assert_int_equal(cci_send(at_client, bytes, LONG_DATAGRAM - 100, NULL, 0), CCI_SUCCESS);
            run(10); /* so that each has a datagram of its own */
        }
        issued += 1 + i;
        assert_true(dgram_of(server)->pool.buffers_held >= 20);
        assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
        loses_long = 0;
        run_until(&sent_count, issued);
        run_until(&received_count, issued);
        run(200);
        assert_int_equal(failed_count, 0);
        assert_int_equal(dgram_of(server)->base.evq.buffer_total, count + CCI__DGRAM_BATCH_RX);
        assert_int_equal(dgram_of(server)->base.evq.free_buffer_count, count);
    }
}

/* Where programs call seldom, losses count as a queue's. Nobody called an endpoint before there was one. */
static void an_endpoint_that_has_just_begun_takes_a_lost_packet_for_chance(void **state) {
    static const uint8_t bytes[1391];
    const cci_rel_t *rel;
    uint64_t window;
    int i;
    (void)state;
    link_congestion = "discern"; /* the window stays open when packets are lost by chance */
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, bytes, 8, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    loses_long = 1;
    assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    rel = &dconn_of(at_client)->hot->rel;
    window = rel->flow.window;
    for (i = 0; i < 8; i++) {
        assert_int_equal(cci_send(at_client, bytes, LONG_DATAGRAM - 100, NULL, 0), CCI_SUCCESS);
        run(10); /* so that each has a datagram of its own */
    }
    loses_long = 0;
    run_until(&received_count, 10);
    assert_true(dgram_of(client)->pool.retransmitted > 0);
    assert_true(rel->flow.window >= window);
}

/* ---- connections that end ----------------------------------------------------------------------------------------- */

static void an_unordered_connection_with_a_gap_can_be_disconnected_and_leaves_nothing_to_the_next(void **state) {
    static const uint8_t bytes[1400];
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RU);
    loses_long = 1;
    assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    run(1);
    assert_int_equal(cci_send(at_client, bytes, 8, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    assert_non_null(dconn_of(at_server)->hot);
    assert_int_equal(dconn_of(at_server)->hot->rel.sequence_count, 1); /* the gap is open */
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    loses_long = 0;
    run(1000);
    for (i = 0; i < 3; i++) { /* what it used is used again */
        connect_both(CCI_CONN_ATTR_RU);
        assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
        run_until(&received_count, 2 + i);
    }
}

static void a_reset_of_zeros_does_not_touch_a_multicast_connection(void **state) {
    uint8_t packet[CCI__HEADER_SIZE];
    (void)state;
    open_both();
    connect_to("sim://g5", CCI_CONN_ATTR_UU_MC_TX);
    cci_conn_write_header(packet, CCI__PKT_RESET, 0, dconn_of(at_client)->conn.index, 0, 0, 0);
    sim_inject(STRANGER, sim_of(client)->number, packet, sizeof packet);
    run(100);
    assert_int_equal(dconn_of(at_client)->conn.state, CCI_CONN_OPEN);
    assert_int_equal(cci_send(at_client, "x", 1, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    assert_int_equal(failed_count, 0);
}

static void the_servers_keepalive_begins_with_the_connection(void **state) {
    uint32_t timeout_us = 1000000;
    uint64_t begin_ns;
    (void)state;
    open_both();
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &timeout_us), CCI_SUCCESS);
    connect_both(CCI_CONN_ATTR_RO);
    begin_ns = sim.now_ns;
    while (keepalive_count == 0 && sim.now_ns - begin_ns < UINT64_C(60000000000))
        serve(server); /* and the client says nothing any more */
    assert_int_equal(keepalive_count, 1);
    assert_in_range(keepalive_ns - begin_ns, UINT64_C(900000000), UINT64_C(3000000000));
}

/* The peer says nothing any more: the question is not repeated. */
static void a_keepalive_that_is_switched_off_asks_nothing_any_more(void **state) {
    uint32_t timeout_us = 500000;
    uint64_t until_ns;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    run(1000);
    assert_int_equal(cci_set_opt(at_client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &timeout_us), CCI_SUCCESS);
    until_ns = sim.now_ns + UINT64_C(10000000000);
    while (!(dconn_of(at_client)->conn.flags & CCI__CONN_PINGED) && sim.now_ns < until_ns)
        serve(client);
    assert_true(dconn_of(at_client)->conn.flags & CCI__CONN_PINGED); /* it has been asked */
    serve(client);
    timeout_us = 0;
    assert_int_equal(cci_set_opt(at_client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &timeout_us), CCI_SUCCESS);
    until_ns = sim.now_ns + UINT64_C(10000000000);
    while (sim.now_ns < until_ns)
        serve(client);
    assert_int_equal(keepalive_count, 0);
    assert_true(!dconn_of(at_client)->hot || cci__list_empty(&dconn_of(at_client)->hot->rel.flight));
}

/* Reads that are under way. */
static uint32_t used_reads(cci_endpoint_t *endpoint) {
    const cci_list_t *head = &dgram_of(endpoint)->rma.reads, *at;
    uint32_t count = dgram_of(endpoint)->stores[CCI__STORE_READS].made;
    for (at = head->next; at != head; at = at->next)
        count--;
    return count;
}

static void reads_that_wait_for_a_fence_are_given_back_on_disconnect(void **state) {
    static uint8_t memory[1 << 20];
    cci_rma_handle_t *local, *remote;
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, sizeof memory, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    for (i = 0; i < 100; i++)
        assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, 100, NULL, CCI_FLAG_READ | CCI_FLAG_FENCE),
                         CCI_SUCCESS);
    assert_int_equal(used_reads(client), 100);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(used_reads(client), 0);
}

/* ---- a hostile peer ------------------------------------------------------------------------------------------------ */

#define LIMIT 600 /* bytes of the longest message on the connection */

/* Sends the server a packet that only the client can make: with the next number, a frame of `type` of the next message,
 * `length` bytes of it, which is `total` bytes long. */
static void inject_message(uint32_t number, uint8_t type, uint32_t sequence, uint32_t length, uint32_t total) {
    uint8_t packet[CCI_REL_HEADER + 16 + LIMIT + 8];
    uint32_t at = CCI_REL_HEADER + (type == CCI__FRAME_FRAGMENT ? 16u : 8u);
    const cci_conn_t *conn = &dconn_of(at_server)->conn;
    memset(packet, 0, sizeof packet);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->index, conn->token, conn->peer_index, number);
    packet[CCI_REL_HEADER] = type;
    packet[CCI_REL_HEADER + 2] = (uint8_t)length;
    packet[CCI_REL_HEADER + 3] = (uint8_t)(length >> 8);
    cci__store32(packet + CCI_REL_HEADER + 4, sequence);
    if (type == CCI__FRAME_FRAGMENT)
        cci__store32(packet + CCI_REL_HEADER + 12, total);
    assert_true(at + length <= sizeof packet);
    sim_inject(sim_of(client)->number, sim_of(server)->number, packet, at + length);
    run(50);
}

static void a_message_longer_than_the_connection_allows_is_dropped(void **state) {
    const cci_rel_pool_t *pool;
    uint32_t number, sequence;
    (void)state;
    message_limit = LIMIT;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(at_server->max_send_size, LIMIT);
    assert_int_equal(cci_send(at_client, "x", 1, NULL, 0), CCI_SUCCESS); /* so that both have what an active one has */
    run_until(&sent_count, 1);
    assert_non_null(dconn_of(at_client)->hot);
    number = (uint32_t)dconn_of(at_client)->hot->rel.next_number;
    sequence = (uint32_t)dconn_of(at_client)->hot->rel.next_sequence;
    pool = &dgram_of(server)->pool;
    assert_int_equal(pool->packets_malformed, 0);
    inject_message(number, CCI__FRAME_MESSAGE, sequence, LIMIT + 1, 0);
    assert_int_equal(pool->packets_malformed, 1);
    inject_message(number, CCI__FRAME_FRAGMENT, sequence, 100, LIMIT + 1);
    assert_int_equal(pool->packets_malformed, 2);
    inject_message(number, CCI__FRAME_FRAGMENT, sequence, LIMIT + 1, LIMIT + 1);
    assert_int_equal(pool->packets_malformed, 3);
    assert_int_equal(received_count, 1);
    inject_message(number, CCI__FRAME_MESSAGE, sequence, LIMIT, 0); /* and the longest that may be is taken */
    assert_int_equal(received_count, 2);
    assert_int_equal(received_length, LIMIT);
    inject_message(number + 1, CCI__FRAME_FRAGMENT, sequence + 1, LIMIT, LIMIT);
    assert_int_equal(received_count, 3);
    assert_int_equal(received_length, LIMIT);
    assert_int_equal(pool->packets_malformed, 3);
}

/* A READ that asks for nothing, and behind it a fragment: nobody has looked at that one when the READ is taken. */
static void inject_behind_a_read(uint32_t number, uint32_t sequence, uint32_t length, uint32_t total) {
    uint8_t packet[CCI_REL_HEADER + 48 + 16 + LIMIT + 8], *frame = packet + CCI_REL_HEADER;
    const cci_conn_t *conn = &dconn_of(at_server)->conn;
    memset(packet, 0, sizeof packet);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->index, conn->token, conn->peer_index, number);
    frame[0] = CCI__FRAME_READ;
    cci__store32(frame + 20, 64);
    cci__store32(frame + 32, 64);
    frame += 48;
    frame[0] = CCI__FRAME_FRAGMENT;
    cci__store16(frame + 2, length);
    cci__store32(frame + 4, sequence);
    cci__store32(frame + 12, total);
    assert_true(length <= LIMIT + 8);
    sim_inject(sim_of(client)->number, sim_of(server)->number, packet, CCI_REL_HEADER + 48 + 16 + length);
    run(50);
}

static void a_message_too_long_is_dropped_also_behind_a_frame_of_another_layer(void **state) {
    uint32_t number, sequence;
    (void)state;
    message_limit = LIMIT;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, "x", 1, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    number = (uint32_t)dconn_of(at_client)->hot->rel.next_number;
    sequence = (uint32_t)dconn_of(at_client)->hot->rel.next_sequence;
    inject_behind_a_read(number, sequence, LIMIT + 8, LIMIT + 8);
    assert_int_equal(received_count, 1);
    assert_int_equal(dgram_of(server)->pool.packets_malformed, 1);
    inject_behind_a_read(number, sequence, LIMIT, LIMIT);
    assert_int_equal(received_count, 2);
    assert_int_equal(received_length, LIMIT);
}

/* There is no RMA on such a connection: the packet ends there, and so does its work. */
static void a_read_on_an_unreliable_connection_is_not_answered_nor_is_looked_at_what_follows(void **state) {
    uint32_t number, sequence;
    uint64_t sent;
    (void)state;
    message_limit = LIMIT;
    open_both();
    connect_both(CCI_CONN_ATTR_UU);
    assert_int_equal(cci_send(at_client, "x", 1, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    run(200);
    number = (uint32_t)dconn_of(at_client)->state.next_number + 10;
    sequence = (uint32_t)dconn_of(at_client)->state.next_sequence + 10;
    sent = sim.sent_count;
    inject_behind_a_read(number, sequence, 100, 100);
    assert_int_equal(received_count, 1);
    assert_int_equal(sim.sent_count, sent);
    assert_int_equal(cci_send(at_client, "y", 1, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 2);
}

/* ---- groups --------------------------------------------------------------------------------------------------------- */

static void inject_to_group(uint32_t group, const uint8_t *bytes, uint32_t length) {
    sim_datagram_t *datagram = (sim_datagram_t *)calloc(1, sizeof *datagram + length);
    assert_non_null(datagram);
    sim_make_address(&datagram->from, 1, STRANGER);
    sim_make_address(&datagram->to, 2, group);
    datagram->is_group = 1;
    datagram->length = length;
    memcpy(datagram->bytes, bytes, length);
    sim_launch(datagram);
    run(200);
}

static void nothing_that_comes_by_multicast_is_answered(void **state) {
    uint8_t packet[CCI_REL_HEADER + 16], type;
    uint64_t sent;
    (void)state;
    open_both();
    connect_to("sim://g5", CCI_CONN_ATTR_UU_MC_RX);
    sent = sim.sent_count;
    for (type = CCI__PKT_REQUEST; type <= (uint8_t)CCI__PKT_GROUP; type++) {
        memset(packet, 0, sizeof packet);
        cci_conn_write_header(packet, type, 0, 77, 88, 99, 1);
        packet[CCI_REL_HEADER] = CCI__FRAME_PING;
        inject_to_group(5, packet, sizeof packet);
    }
    assert_int_equal(sim.sent_count, sent);
    assert_non_null(dconn_of(at_client)->hot); /* the GROUP packet was taken */
    assert_true(cci__hot_is_idle(dconn_of(at_client)->hot));
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void every_failing_allocation_of_create_endpoint_gives_enomem_and_leaks_nothing(void **state) {
    cci_endpoint_t *endpoint;
    int at, needed, before, spared = 0;
    (void)state;
    link_crc = 1;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS); /* the list of devices stays */
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    before = blocks;
    allocations = 0;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    needed = allocations;
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    assert_int_equal(blocks, before);
    assert_true(needed > 10);
    for (at = 0; at < needed; at++) {
        allocations = 0;
        fail_at = at;
        if (cci_create_endpoint(NULL, 0, &endpoint, NULL) == CCI_SUCCESS) { /* of receive buffers fewer are made, then */
            spared++;
            assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
        }
        assert_int_equal(blocks, before);
        assert_int_equal(sim.endpoint_count, 0);
    }
    assert_int_equal(spared, 1);
    fail_at = -1;
    open_both(); /* and nothing is the worse for it */
    connect_both(CCI_CONN_ATTR_RO);
}

/* The client's endpoint has more connections to nobody, until the next one needs new memory. */
static void fill_the_table(cci_endpoint_t *endpoint) {
    while (dgram_of(endpoint)->base.conns.used < dgram_of(endpoint)->base.conns.slab_count * CCI__CONN_SLAB)
        assert_int_equal(cci_connect(endpoint, "sim://4242", NULL, 0, CCI_CONN_ATTR_UU, NULL, 0, NULL), CCI_SUCCESS);
}

/* Thousands, so that all that grows has to: connections, the index of them, and events. */
static void every_failing_allocation_of_connect_gives_enomem_and_the_next_try_succeeds(void **state) {
    int refused = 0, i;
    (void)state;
    open_both();
    fail_at = allocations;
    assert_int_equal(cci_connect(client, "sim://4242", NULL, 0, CCI_CONN_ATTR_UU, NULL, 0, NULL), CCI_ENOMEM);
    for (i = 0; i < 9000; i++) {
        int at = 0, status;
        do { /* the first allocation is each connection's own, the others are for many */
            allocations = 0;
            fail_at = ++at;
            status = cci_connect(client, "sim://4242", NULL, 0, CCI_CONN_ATTR_UU, NULL, 0, NULL);
            assert_true(status == CCI_SUCCESS || status == CCI_ENOMEM);
            refused += status != CCI_SUCCESS;
        } while (status != CCI_SUCCESS && at < 10);
        assert_int_equal(status, CCI_SUCCESS);
        assert_int_equal(dgram_of(client)->base.conns.used, i + 1);
    }
    fail_at = -1;
    assert_true(refused >= 9000 / 256 + (9000 - 8192) / 256);
    assert_true(dgram_of(client)->base.conns.bucket_count >= 9000);
}

static void a_request_that_finds_no_memory_is_as_good_as_lost_and_comes_again(void **state) {
    char *uri;
    uint32_t used;
    (void)state;
    open_both();
    fill_the_table(server);
    used = dgram_of(server)->base.conns.used;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, "hi", 2, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    all_fail = 1;
    run(200);
    assert_int_equal(dgram_of(server)->base.conns.used, used);
    assert_int_equal(client_count, 0);
    all_fail = 0;
    run_until(&client_count, 1);
    assert_int_equal(dgram_of(server)->base.conns.used, used + 1);
}

/* Counts are what the program allows; memory is taken when it is needed, and what there is works on when there is no more. */
static void messages_that_there_is_no_memory_for_are_refused_and_none_is_lost(void **state) {
    static const uint8_t bytes[1000];
    uint32_t count = 60000;
    int issued = 0, i, refused = 0;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_SEND_BUF_COUNT, &count), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
    assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    all_fail = 1;
    holds = 1;
    for (i = 0; i < 1000; i++) {
        int status = cci_send(at_client, bytes, sizeof bytes, NULL, 0);
        assert_true(status == CCI_SUCCESS || status == CCI_ENOBUFS);
        issued += status == CCI_SUCCESS;
        refused += status == CCI_ENOBUFS;
        if (i % 16 == 0)
            run(10);
    }
    assert_true(issued > 0 && refused > 0);
    holds = 0;
    return_held(held_count);
    run_until(&sent_count, issued + 1);
    assert_int_equal(failed_count, 0);
    assert_int_equal(received_count, issued + 1);
    all_fail = 0;
    assert_int_equal(cci_send(at_client, "hi", 2, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, issued + 2);
}

/* What an endpoint needs to receive its first messages it has from the beginning, also where datagrams are long and messages come
 * in pieces: nothing else can take that memory. */
static void first_messages_are_received_though_there_is_no_memory_any_more(void **state) {
    static const uint8_t bytes[1300];
    int i;
    (void)state;
    sim.mtu = 65504;
    sim.base_mtu = 600;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, "hi", 2, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1);
    for (i = 0; i < 50; i++)
        assert_int_equal(cci_send(at_server, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    all_fail = 1;
    run_until(&sent_count, 51);
    all_fail = 0;
    assert_int_equal(failed_count, 0);
    assert_int_equal(received_count, 51);
}

/* Messages of some hundred bytes that wait for slow peers take about as much memory, not a datagram's length each, where
 * datagrams are long: those of another peer, which has answered, have room beside them. */
static void messages_that_wait_for_slow_peers_leave_memory_to_others_where_datagrams_are_long(void **state) {
    static const uint8_t bytes[500];
    uint32_t count = 100;
    int i, issued = 0, status = CCI_SUCCESS;
    (void)state;
    sim.memory_limit = 16u << 20;
    sim.mtu = 65504;
    open_both();
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_SEND_BUF_COUNT, &count), CCI_SUCCESS);
    for (i = 0; i <= 40; i++)
        connect_both(CCI_CONN_ATTR_RU);
    run(200);
    assert_int_equal(cci_send(of_client[40], bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 1); /* so that peer has answered */
    for (i = 0; i < 40; i++) { /* the server does not look */
        uint32_t k;
        for (k = 0; k < count && (status = cci_send(of_client[i], bytes, sizeof bytes, NULL, 0)) == CCI_SUCCESS; k++, issued++)
            serve(client);
    }
    assert_true(issued >= 700);
    assert_int_equal(cci_send(of_client[40], bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
}

/* ---- limits --------------------------------------------------------------------------------------------------------- */

static void one_connection_more_than_can_have_traffic_gets_enobufs_until_another_has_none(void **state) {
    static uint8_t memory[64];
    cci_rma_handle_t *handle;
    int i, most;
    (void)state;
    sim.memory_limit = FEW_BYTES;
    open_both();
    most = (int)dgram_of(client)->stores[CCI__STORE_HOT].most;
    assert_in_range(most, 100, FEW);
    for (i = 0; i <= most; i++)
        connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    sim.up[sim_of(server)->device] = 0; /* nobody acknowledges */
    for (i = 0; i < most; i++)
        assert_int_equal(cci_send(of_client[i], "hi", 2, NULL, 0), CCI_SUCCESS);
    memory_told = 0;
    assert_int_equal(cci_send(of_client[i], "hi", 2, NULL, 0), CCI_ENOBUFS);
    assert_int_equal(memory_told, 1);
    assert_int_equal(cci_rma(of_client[i], NULL, 0, handle, 0, handle, 0, 1, NULL, CCI_FLAG_WRITE), CCI_ENOBUFS);
    assert_int_equal(memory_told, 1); /* once is enough for a while */
    sim.up[sim_of(server)->device] = 1;
    run_until(&sent_count, most);
    assert_int_equal(cci_send(of_client[i], "hi", 2, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, most + 1);
    assert_int_equal(failed_count, 0);
    assert_int_equal(received_count, most + 1);
}

#define READ_BYTES 3000u

/* Many connections read from a peer that is silent from now on, which is the end of memory; some have a second read
 * behind a fence, with a message. Then there is another server. */
static struct reading {
    uint8_t here[(FEW + 1) * READ_BYTES], there[READ_BYTES];
    cci_rma_handle_t *local, *remote, *live;
    cci_endpoint_t *silent;
    int most, issued, messages;
} reading;

static void read_from_silent(uint32_t send_timeout_us) {
    int i, status = CCI_SUCCESS;
    memset(&reading, 0, sizeof reading);
    sim.memory_limit = FEW_BYTES;
    open_both();
    reading.most = (int)dgram_of(client)->stores[CCI__STORE_HOT].most;
    assert_in_range(reading.most, 100, FEW);
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_SEND_TIMEOUT, &send_timeout_us), CCI_SUCCESS);
    for (i = 0; i < reading.most; i++)
        connect_both(i % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
    reading.silent = server;
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < (int)READ_BYTES; i++) reading.there[i] = (uint8_t)(i * 7 + 1);
    assert_int_equal(cci_rma_register(client, reading.here, sizeof reading.here, 0, &reading.local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(reading.silent, reading.there, READ_BYTES, CCI_FLAG_READ, &reading.remote),
                     CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, reading.there, READ_BYTES, CCI_FLAG_READ, &reading.live), CCI_SUCCESS);
    for (i = 0; i < reading.most; i++) {
        status = cci_rma(of_client[i], NULL, 0, reading.local, (uint64_t)i * READ_BYTES, reading.remote, 0, READ_BYTES / 2,
                         NULL, CCI_FLAG_READ);
        if (status != CCI_SUCCESS)
            continue; /* its turn has not come */
        reading.issued++;
        if (cci_rma(of_client[i], "hi", 2, reading.local, (uint64_t)i * READ_BYTES, reading.remote, 0, READ_BYTES, NULL,
                    CCI_FLAG_READ | CCI_FLAG_FENCE) == CCI_SUCCESS)
            reading.issued++, reading.messages++;
    }
    assert_true(reading.issued > 20 && reading.messages > 10);
}

/* Reads a hundred times from the peer that answers. */
static void read_from_live(void) {
    const uint64_t until_ns = sim.now_ns + UINT64_C(10000000000);
    uint8_t *here = reading.here + FEW * READ_BYTES;
    int i, before = sent_count;
    for (i = 0; i < 100; i++) {
        memset(here, 0, READ_BYTES);
        while (cci_rma(of_client[reading.most], NULL, 0, reading.local, FEW * READ_BYTES, reading.live, 0, READ_BYTES, NULL,
                       CCI_FLAG_READ) == CCI_ENOBUFS) {
            run(1);
            assert_true(sim.now_ns < until_ns);
        }
        run_until(&sent_count, before + i + 1);
        assert_true(sim.now_ns < until_ns);
        assert_memory_equal(here, reading.there, READ_BYTES);
    }
}

static int parked_with_reads(void) {
    int i, count = 0;
    for (i = 0; i < reading.most; i++)
        count += (dconn_of(of_client[i])->conn.flags & CCI__CONN_PARKED) != 0;
    return count;
}

/* As if that many others waited. */
static void all_give_way(void) {
    int i;
    for (i = 0; i < reading.most; i++) {
        cci__hot_t *active = dconn_of(of_client[i])->hot;
        if (active && cci__hot_is_silent(active)) (void)cci__dgram_park(dgram_of(client), active);
    }
    assert_true(parked_with_reads() > 20);
}

static int free_reads(void) {
    const cci_list_t *node, *list = &dgram_of(client)->rma.reads;
    int count = 0;
    for (node = list->next; node != list; node = node->next) count++;
    return count;
}

static void reads_from_silent_peers_give_way_and_are_done_when_those_are_back(void **state) {
    int i, rounds;
    (void)state;
    read_from_silent(0);
    read_from_live();
    run(20000);
    assert_true(parked_with_reads() > 0);
    assert_int_equal(sent_count, 100);
    for (rounds = 0; rounds < 500000 && sent_count < 100 + reading.issued; rounds++) {
        run(1);
        serve(reading.silent);
    }
    for (i = 0; i < 1000; i++) {
        run(1);
        serve(reading.silent);
    }
    assert_int_equal(sent_count, 100 + reading.issued);
    assert_int_equal(failed_count, 0);
    assert_int_equal(received_count, reading.messages);
    assert_int_equal(parked_with_reads(), 0);
    for (i = 0; i < reading.most; i++) {
        const uint8_t *at = reading.here + (uint32_t)i * READ_BYTES;
        if (at[0] != 0)
            assert_memory_equal(at, reading.there, at[READ_BYTES - 1] ? READ_BYTES : READ_BYTES / 2);
    }
    assert_int_equal(cci_destroy_endpoint(reading.silent), CCI_SUCCESS);
}

/* The send time-out, cci_disconnect() and the end of the endpoint still end them, once each, and nothing is lost of what
 * they took. */
static void reads_that_gave_way_still_end(void **state) {
    int i, all, closed = 0, ended;
    (void)state;
    read_from_silent(20000000);
    all = free_reads() + reading.issued;
    read_from_live();
    all_give_way();
    for (i = 0; i < reading.most && closed < 10; i++)
        if (dconn_of(of_client[i])->conn.flags & CCI__CONN_PARKED) {
            assert_int_equal(cci_disconnect(of_client[i]), CCI_SUCCESS);
            of_client[i] = of_client[reading.most];
            closed++;
        }
    assert_int_equal(closed, 10);
    ended = sent_count;
    run(100);
    assert_in_range(sent_count - ended, 0, 20);
    run_until(&sent_count, 100 + reading.issued);
    run(20000);
    assert_int_equal(sent_count, 100 + reading.issued);
    assert_int_equal(failed_count, reading.issued);
    assert_true(free_reads() >= all);
    assert_int_equal(received_count, 0);
    assert_int_equal(cci_destroy_endpoint(reading.silent), CCI_SUCCESS);
}

/* A write is done, its message is not when the connection gives way: they are still one operation. */
static void a_completion_message_that_gave_way_alone_is_counted(void **state) {
    static uint8_t memory[20000];
    const uint32_t few = 4;
    cci_rma_handle_t *local, *remote;
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, 0, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, memory, sizeof memory, CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    holds = 1;
    for (i = 0; i < 8; i++)
        assert_int_equal(cci_rma(at_client, "hi", 2, local, 0, remote, 0, sizeof memory, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    run(5000);
    assert_in_range(sent_count, 1, 7);
    assert_int_equal(dconn_of(at_client)->hot->op_count, 8 - sent_count);
    assert_int_equal(cci__dgram_park(dgram_of(client), dconn_of(at_client)->hot), 1);
    for (i = 0; i < 100000 && sent_count < 8; i++) {
        run(1);
        return_held(held_count);
    }
    assert_int_equal(sent_count, 8);
    assert_int_equal(failed_count, 0);
    assert_int_equal(dconn_of(at_client)->hot->op_count, 0);
}

/* The peer has not heard that its message came, the answer was lost, and its connection gave way. When that has its turn again,
 * the answer acknowledges the message all the same. */
static void an_answer_that_gave_way_acknowledges_what_it_answers(void **state) {
    static const int attributes[2] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    int i, rounds;
    (void)state;
    open_both();
    for (i = 0; i < 2; i++) {
        cci_event_t *event = NULL;
        cci__hot_t *active;
        connect_both((cci_conn_attribute_t)attributes[i]);
        run(10000);
        received_count = sent_count = 0;
        assert_int_equal(cci_send(at_server, "ask", 3, NULL, 0), CCI_SUCCESS);
        serve(server);
        sim.loss_per_mille = 1000;
        for (rounds = 0; rounds < 10000 && received_count == 0; rounds++) serve(client);
        assert_int_equal(received_count, 1);
        assert_int_equal(cci_send(at_client, "answer", 6, NULL, 0), CCI_SUCCESS);
        serve(client);
        assert_int_equal(cci__dgram_park(dgram_of(client), dconn_of(at_client)->hot), 1);
        sim.loss_per_mille = 0;
        active = cci__dgram_activate(dgram_of(client), dconn_of(at_client));
        assert_non_null(active);
        cci__dgram_make_ready(dgram_of(client), active);
        for (rounds = 0; rounds < 100; rounds++) serve(client);
        for (rounds = 0; rounds < 10000 && !event; rounds++) (void)cci_get_event(server, &event);
        assert_non_null(event);
        assert_int_equal(event->type, CCI_EVENT_SEND); /* not yet the answer */
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
        run_until(&received_count, 2);
        run_until(&sent_count, 1);
    }
}

/* Memory that was taken back meanwhile is not written to. */
static void reads_that_gave_way_respect_what_was_deregistered(void **state) {
    int i, rounds;
    (void)state;
    read_from_silent(0);
    read_from_live();
    all_give_way();
    assert_int_equal(cci_rma_deregister(client, reading.local), CCI_SUCCESS);
    memset(reading.here, 0, sizeof reading.here);
    for (rounds = 0; rounds < 500000 && sent_count < 100 + reading.issued; rounds++) {
        run(1);
        serve(reading.silent);
    }
    assert_int_equal(sent_count, 100 + reading.issued);
    assert_int_equal(failed_count, reading.issued);
    for (i = 0; i < (int)sizeof reading.here; i++) assert_int_equal(reading.here[i], 0);
    assert_int_equal(cci_destroy_endpoint(reading.silent), CCI_SUCCESS);
}

static void one_registration_more_than_there_can_be_is_refused_until_another_ends(void **state) {
    static uint8_t memory[64];
    cci_rma_handle_t *handle, *last = NULL;
    uint32_t i;
    (void)state;
    open_both();
    for (i = 0; i < CCI__DGRAM_REGIONS; i++, last = handle)
        assert_int_equal(cci_rma_register(client, memory, sizeof memory, 0, &handle), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, 0, &handle), CCI_ENOBUFS);
    assert_int_equal(cci_rma_deregister(client, last), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(client, last), CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, 0, &handle), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(client, memory, UINT64_MAX, 0, &handle), CCI_EINVAL); /* ends beyond all memory */
}

static void one_read_more_than_there_can_be_is_refused_and_the_others_complete(void **state) {
    static uint8_t memory[4096];
    cci_rma_handle_t *local, *remote;
    int i, status = CCI_SUCCESS;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, 0, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, memory, sizeof memory, CCI_FLAG_READ, &remote), CCI_SUCCESS);
    for (i = 0; i < 5000 && status == CCI_SUCCESS; i++)
        status = cci_rma(at_client, NULL, 0, local, 0, remote, 0, 100, NULL, CCI_FLAG_READ | CCI_FLAG_SILENT);
    assert_int_equal(status, CCI_ENOBUFS);
    assert_true(i > 100);
    run(1000);
    assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, 100, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    run_until(&sent_count, 1);
    assert_int_equal(failed_count, 0);
}

/* The target's link is narrower than the reader's, which asks in packets as long as its own. */
static void a_read_from_a_peer_whose_link_carries_less_goes_on_after_it_was_found_out(void **state) {
    static uint8_t here[1 << 20], there[1 << 20];
    cci_rma_handle_t *local, *remote;
    uint64_t begin_ns;
    uint32_t i;
    (void)state;
    sim.base_mtu = 1200;
    message_limit = 8192; /* the same on both sides: it tells nothing about the links */
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    link_mtu = 1200;
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(client, here, sizeof here, 0, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, there, sizeof there, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, sizeof here, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    run_until(&sent_count, 1); /* the reader knows that the path carries more */
    for (i = 0; i < sizeof there; i++)
        there[i] = (uint8_t)(i % 251);
    begin_ns = sim.now_ns;
    assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, sizeof here, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    run_until(&sent_count, 2);
    assert_int_equal(failed_count, 0);
    assert_memory_equal(here, there, sizeof here);
    assert_true(sim.now_ns - begin_ns < 20000 * CCI__MS);
}

/* Without a send time-out it is repeated for ever: that must not cost more from time to time. */
static void a_message_to_a_peer_that_is_dead_for_an_hour_takes_the_memory_of_a_minute(void **state) {
    const uint32_t never = 0;
    uint64_t since_ns;
    uint32_t records;
    int before;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(at_client, CCI_OPT_CONN_SEND_TIMEOUT, &never), CCI_SUCCESS);
    sim.loss_per_mille = 1000;
    assert_int_equal(cci_send(at_client, "12345678", 8, NULL, 0), CCI_SUCCESS);
    for (since_ns = sim.now_ns; sim.now_ns < since_ns + 60000 * CCI__MS; sim_advance_to(sim.now_ns + 10 * CCI__MS)) serve(client);
    before = blocks;
    records = dconn_of(at_client)->hot->rel.record_count;
    for (since_ns = sim.now_ns; sim.now_ns < since_ns + 3600000 * CCI__MS; sim_advance_to(sim.now_ns + 100 * CCI__MS)) serve(client);
    assert_int_equal(blocks, before);
    assert_int_equal(dconn_of(at_client)->hot->rel.record_count, records);
    sim.loss_per_mille = 0;
    run_until(&received_count, 1);
    run_until(&sent_count, 1);
    assert_int_equal(failed_count, 0);
}

static void a_message_from_nowhere_is_refused(void **state) {
    struct iovec data[2] = {{NULL, 0}, {NULL, 1}};
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_sendv(at_client, data, 2, NULL, 0), CCI_EINVAL);
    assert_int_equal(cci_sendv(at_client, data, 1, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    assert_int_equal(received_length, 0);
}

static void a_connection_that_was_closed_can_not_be_closed_again(void **state) {
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(at_client), CCI_EINVAL);
}

static void an_endpoint_hears_sixteen_groups_and_no_more_until_it_leaves_one(void **state) {
    char uri[20];
    uint32_t i;
    (void)state;
    open_both();
    for (i = 0; i < CCI__GROUPS; i++) {
        snprintf(uri, sizeof uri, "sim://g%u", (unsigned)i + 1);
        connect_to(uri, CCI_CONN_ATTR_UU_MC_RX);
    }
    assert_int_equal(cci_connect(client, "sim://g99", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_ENOBUFS);
    assert_int_equal(cci_disconnect(of_client[3]), CCI_SUCCESS);
    group_status = CCI_ERR_NOT_FOUND; /* now it is the link that will not */
    assert_int_equal(cci_connect(client, "sim://g99", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_ERR_NOT_FOUND);
    group_status = CCI_SUCCESS;
    connect_to("sim://g99", CCI_CONN_ATTR_UU_MC_RX);
}

/* ---- links that can do less, or say what can't be --------------------------------------------------------------------- */

static void a_link_without_names_addresses_or_groups_says_so(void **state) {
    char *uri;
    (void)state;
    open_both();
    address_status = CCI_ERR_NOT_FOUND;
    assert_int_equal(cci_get_opt(client, CCI_OPT_ENDPT_URI, &uri), CCI_ERR_NOT_FOUND);
    bad_link.address = NULL;
    assert_int_equal(cci_get_opt(client, CCI_OPT_ENDPT_URI, &uri), CCI_ERR_NOT_IMPLEMENTED);
    bad_link.group = NULL;
    assert_int_equal(cci_connect(client, "sim://g5", NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL),
                     CCI_ERR_NOT_IMPLEMENTED);
    bad_link.resolve = NULL;
    assert_int_equal(cci_connect(client, "sim://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(dgram_of(client)->base.conns.used, 0);
}

/* ---- links that have to ask where a peer is ----------------------------------------------------------------------------- */

static int asked, answers_after, answer_status;
static cci_link_addr_t asked_for;

/* With an address it leaves a note, without one it answers at the so manieth time. */
static int asking_resolve(void *handle, const char *address, cci_link_addr_t *to) {
    if (address) {
        int status = sim_resolve(handle, address, &asked_for);
        memset(to->bytes, 0xee, sizeof to->bytes);
        return status == CCI_SUCCESS ? (int)CCI_EAGAIN : status;
    }
    assert_int_equal(to->bytes[23], 0xee);
    if (asked++ < answers_after)
        return CCI_EAGAIN;
    if (answer_status == CCI_SUCCESS)
        *to = asked_for;
    return answer_status;
}

static void a_link_that_has_to_ask_is_asked_until_it_knows_where_the_peer_is(void **state) {
    (void)state;
    asked = 0;
    answers_after = 7;
    answer_status = CCI_SUCCESS;
    bad_link.resolve = asking_resolve;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(asked, 8);
    assert_int_equal(cci_send(at_client, "there", 5, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    connect_both(CCI_CONN_ATTR_UU); /* it is asked for each connection */
    assert_int_equal(asked, 9);
}

/* The status with which a connection fails, and when. */
static cci_status_t failed_connect(struct timeval *timeout, uint64_t *took_ns) {
    uint64_t began_ns = sim.now_ns;
    cci_event_t *event;
    cci_status_t status;
    int rounds;
    assert_int_equal(cci_connect(client, "sim://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, timeout), CCI_SUCCESS);
    for (rounds = 0; cci_get_event(client, &event) != CCI_SUCCESS; rounds++)
        assert_true(rounds < 500000);
    assert_int_equal(event->type, CCI_EVENT_CONNECT);
    assert_null(event->connect.connection);
    status = event->connect.status;
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    *took_ns = sim.now_ns - began_ns;
    assert_int_equal(dgram_of(client)->base.conns.used, 0);
    return status;
}

static void a_link_that_asks_in_vain_fails_the_connection_with_its_status_or_in_time(void **state) {
    struct timeval timeout = {2, 0};
    uint64_t took_ns;
    (void)state;
    asked = 0;
    answers_after = 3;
    answer_status = CCI_ECONNREFUSED;
    bad_link.resolve = asking_resolve;
    open_both();
    assert_int_equal(failed_connect(&timeout, &took_ns), CCI_ECONNREFUSED);
    assert_int_equal(asked, 4);
    answers_after = 1000000;
    assert_int_equal(failed_connect(&timeout, &took_ns), CCI_ETIMEDOUT);
    assert_true(took_ns >= 2000 * CCI__MS && took_ns < 2100 * CCI__MS);
    assert_true(asked < 2200);
    timeout.tv_sec = 0;
    assert_int_equal(failed_connect(&timeout, &took_ns), CCI_ETIMEDOUT);
    assert_int_equal(cci_connect(client, "sim://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    run(5); /* an endpoint that is destroyed while it asks: end() */
}

static void a_link_of_256_bytes_besides_a_checksum_is_enough_and_one_of_less_is_refused(void **state) {
    static const uint8_t bytes[200];
    cci_endpoint_t *endpoint;
    (void)state;
    link_crc = 1;
    link_mtu = 256 + CCI__CRC_SIZE - 1;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ERROR);
    link_mtu = 256 + CCI__CRC_SIZE;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    run_until(&received_count, 1);
    assert_int_equal(received_length, sizeof bytes);
}

static void congestion_control_that_there_is_not_is_refused_and_a_fixed_window_works(void **state) {
    static const uint8_t bytes[1000];
    cci_endpoint_t *endpoint;
    int i;
    (void)state;
    link_congestion = "newren";
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ERROR);
    link_congestion = "fixed";
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < 300; i++)
        assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    while (received_count == 0)
        run(1);
    loses_long = 1;
    while (lost_long == 0)
        run(1);
    loses_long = 0;
    while (dgram_of(client)->pool.retransmitted == 0) /* some were lost, and it is known */
        run(1);
    assert_int_equal(dconn_of(at_client)->hot->rel.flow.window, 1u << 30);
    run_until(&received_count, 300);
    assert_int_equal(failed_count, 0);
}

/* A hook may make the first other thread of the process in the middle of a call. It waits until the call is over. */
static void a_thread_that_is_made_inside_a_call_waits_for_its_end(void **state) {
    (void)state;
#ifdef CCI_NO_THREADS
    skip();
#endif
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    thread_made = met_inside = 0;
    makes_thread = 1;
    assert_int_equal(cci_send(at_client, "there", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    assert_int_equal(thread_made, 1);
    assert_int_equal(pthread_join(second, NULL), 0);
    assert_int_equal(met_inside, 0);
    run_until(&received_count, 1);
}

/* ---- what has come is taken in -------------------------------------------------------------------------------------- */

static void a_call_that_says_that_there_is_nothing_has_looked_at_all_that_has_come(void **state) {
    static const uint8_t nonsense[64] = {1, 2, 3};
    cci_event_t *event;
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    run(100);
    for (i = 0; i < 500; i++) /* many times what one look at the link takes */
        sim_inject(STRANGER, sim_of(server)->number, nonsense, sizeof nonsense);
    assert_int_equal(cci_send(at_client, "here", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    sim.now_ns += 1000000000u;
    assert_int_equal(cci_get_event(server, &event), CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_RECV);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

/* ---- endpoints straight from a link --------------------------------------------------------------------------------- */

static void an_endpoint_straight_from_a_link_needs_no_devices_and_leaves_nothing(void **state) {
    cci_link_t old = sim_link;
    cci_endpoint_t *endpoint = NULL;
    char *uri;
    int at;
    (void)state;
    assert_int_equal(cci_create_endpoint_on_link(NULL, NULL, &endpoint, NULL), CCI_EINVAL);
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, NULL, NULL, NULL), CCI_EINVAL);
    old.version = CCI_LINK_VERSION + 1;
    assert_int_equal(cci_create_endpoint_on_link(&old, NULL, &endpoint, NULL), CCI_EINVAL);
    assert_int_equal(cci_finalize(), CCI_SUCCESS); /* it works without cci_init() */
    for (at = 0; at < 200 && !server; at++) {      /* each allocation fails once, until none does */
        int before = blocks;
        allocations = 0;
        fail_at = at;
        if (cci_create_endpoint_on_link(&sim_link, NULL, &server, NULL) == CCI_SUCCESS) break;
        assert_null(server);
        assert_int_equal(blocks, before);
    }
    fail_at = -1;
    assert_non_null(server);
    assert_int_equal(cci_setup(NULL), CCI_EBUSY);
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, NULL, &client, NULL), CCI_SUCCESS);
    assert_true(client->device->max_send_size > 1000 && client->device->max_send_size < sim.mtu);
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_memory_equal(uri, "link://", 7);
    connect_to(uri, CCI_CONN_ATTR_RO);
    free(uri);
    run_until(&client_count, 1);
    run(100);
    assert_non_null(at_client);
    assert_int_equal(cci_send(at_client, "here", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    run_until(&received_count, 1);
    assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(client), CCI_EINVAL);
    client = NULL;
    init_again();
    assert_int_equal(cci_finalize(), CCI_SUCCESS); /* the last one ends what is left */
    server = NULL;
    assert_int_equal(blocks, 0);
    init_again();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_thread_that_is_made_inside_a_call_waits_for_its_end), /* first: no other makes a thread */
        TEST(a_client_whose_address_changes_is_still_known_and_its_connection_can_be_closed),
        TEST(a_replayed_old_packet_from_another_address_does_not_move_the_peers_address),
        TEST(a_link_that_takes_only_part_of_a_batch_costs_no_message),
        TEST(a_link_that_takes_only_part_of_a_batch_costs_no_write),
        TEST(a_call_that_says_that_there_is_nothing_has_looked_at_all_that_has_come),
        TEST(odd_segments_side_by_side_find_buffers_however_few_there_are),
        TEST(a_message_that_others_wait_for_has_room_when_buffers_become_fewer),
        TEST(an_endpoint_that_has_just_begun_takes_a_lost_packet_for_chance),
        TEST(an_unordered_connection_with_a_gap_can_be_disconnected_and_leaves_nothing_to_the_next),
        TEST(a_reset_of_zeros_does_not_touch_a_multicast_connection),
        TEST(the_servers_keepalive_begins_with_the_connection),
        TEST(a_keepalive_that_is_switched_off_asks_nothing_any_more),
        TEST(reads_that_wait_for_a_fence_are_given_back_on_disconnect),
        TEST(a_message_longer_than_the_connection_allows_is_dropped),
        TEST(a_message_too_long_is_dropped_also_behind_a_frame_of_another_layer),
        TEST(a_read_on_an_unreliable_connection_is_not_answered_nor_is_looked_at_what_follows),
        TEST(nothing_that_comes_by_multicast_is_answered),
        TEST(every_failing_allocation_of_create_endpoint_gives_enomem_and_leaks_nothing),
        TEST(every_failing_allocation_of_connect_gives_enomem_and_the_next_try_succeeds),
        TEST(a_request_that_finds_no_memory_is_as_good_as_lost_and_comes_again),
        TEST(messages_that_there_is_no_memory_for_are_refused_and_none_is_lost),
        TEST(first_messages_are_received_though_there_is_no_memory_any_more),
        TEST(messages_that_wait_for_slow_peers_leave_memory_to_others_where_datagrams_are_long),
        TEST(one_connection_more_than_can_have_traffic_gets_enobufs_until_another_has_none),
        TEST(reads_from_silent_peers_give_way_and_are_done_when_those_are_back),
        TEST(reads_that_gave_way_still_end),
        TEST(a_completion_message_that_gave_way_alone_is_counted),
        TEST(an_answer_that_gave_way_acknowledges_what_it_answers),
        TEST(reads_that_gave_way_respect_what_was_deregistered),
        TEST(one_registration_more_than_there_can_be_is_refused_until_another_ends),
        TEST(one_read_more_than_there_can_be_is_refused_and_the_others_complete),
        TEST(a_read_from_a_peer_whose_link_carries_less_goes_on_after_it_was_found_out),
        TEST(a_message_to_a_peer_that_is_dead_for_an_hour_takes_the_memory_of_a_minute),
        TEST(a_message_from_nowhere_is_refused),
        TEST(a_connection_that_was_closed_can_not_be_closed_again),
        TEST(an_endpoint_hears_sixteen_groups_and_no_more_until_it_leaves_one),
        TEST(a_link_without_names_addresses_or_groups_says_so),
        TEST(a_link_that_has_to_ask_is_asked_until_it_knows_where_the_peer_is),
        TEST(a_link_that_asks_in_vain_fails_the_connection_with_its_status_or_in_time),
        TEST(a_link_of_256_bytes_besides_a_checksum_is_enough_and_one_of_less_is_refused),
        TEST(congestion_control_that_there_is_not_is_refused_and_a_fixed_window_works),
        TEST(an_endpoint_straight_from_a_link_needs_no_devices_and_leaves_nothing),
    };
    return cmocka_run_group_tests_name("dgram", tests, NULL, NULL);
}
