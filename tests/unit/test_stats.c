/* test_stats.c - what CCI_OPT_ENDPT_STATS and CCI_OPT_CONN_STATS tell, compared with what the network saw.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server on the simulated network. All that they send passes through route(), which counts it by itself, from
 * the bytes alone, and loses what the test wants it to lose.
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
#define MEMORY 300000u
#define MESSAGES 2000

static cci_endpoint_t *end[2];
static cci_connection_t *at[2];
static uint64_t received[2], received_bytes[2], completed[2];
static int keeps_events; /* the server does not return its messages */
static cci_event_t *kept[4096];
static uint32_t kept_count;
static uint32_t refuse_every; /* the link does not take every so many-th datagram and what is behind it */
static uint32_t lose_every;   /* every so many-th DATA packet of the client is lost */

/* What route() has seen of each side's packets. */
static struct seen {
    uint64_t packets, bytes, all, all_bytes, repeated;
    uint32_t next_sequence;
} seen[2];
static uint64_t lost_packets;
static uint32_t server_number;

static cci__dgram_t *dgram_of(int side) {
    return (cci__dgram_t *)(void *)end[side];
}

static cci__dconn_t *dconn_of(int side) {
    return (cci__dconn_t *)(void *)at[side];
}

static uint32_t number_of(int side) {
    return ((sim_endpoint_t *)dgram_of(side)->base.handle)->number;
}

/* Is it a packet with a message that was in one before? The client of these tests sends nothing else in front of it. */
static int is_repeated(struct seen *by, const sim_datagram_t *datagram) {
    uint32_t sequence;
    if (datagram->length < 32 || datagram->bytes[CCI_PACKET_HEADER] != CCI__FRAME_MESSAGE)
        return 0;
    sequence = cci__load32(datagram->bytes + CCI_PACKET_HEADER + 4);
    if (sequence < by->next_sequence)
        return 1;
    by->next_sequence = sequence + 1;
    return 0;
}

static void route(const sim_datagram_t *datagram) {
    int side = sim_number_of(&datagram->from) == server_number;
    struct seen *by = &seen[side];
    by->all++;
    by->all_bytes += datagram->length;
    if (datagram->bytes[1] == CCI__PKT_DATA) {
        by->packets++;
        by->bytes += datagram->length;
        by->repeated += (uint64_t)is_repeated(by, datagram);
        if (side == CLIENT && lose_every != 0 && by->packets % lose_every == 0) {
            lost_packets++;
            return;
        }
    }
    sim_put(&datagram->from, &datagram->to, datagram);
}

static int picky_send(void *link, const cci_link_tx_t *tx, int count) {
    static uint32_t offered;
    int i;
    for (i = 0; i < count; i++)
        if (refuse_every != 0 && ++offered % refuse_every == 0)
            break;
    return i > 0 ? sim_send(link, tx, i) : 0;
}

/* ---- two ends ---- */

static int take_one(int side) {
    cci_event_t *event;
    int status = cci_get_event(end[side], &event);
    if (status != CCI_SUCCESS)
        return 0;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST: assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS); break;
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        at[side] = event->connect.connection;
        break;
    case CCI_EVENT_ACCEPT: at[side] = event->accept.connection; break;
    case CCI_EVENT_SEND:
        assert_int_equal(event->send.status, CCI_SUCCESS);
        completed[side]++;
        break;
    case CCI_EVENT_RECV:
        received[side]++;
        received_bytes[side] += event->recv.len;
        if (keeps_events && side == SERVER) {
            kept[kept_count++] = event;
            return 1;
        }
        break;
    default: break;
    }
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    return 1;
}

static void both_work(uint64_t for_ns) {
    uint64_t until_ns = sim.now_ns + for_ns;
    while (sim.now_ns < until_ns) {
        (void)take_one(CLIENT);
        (void)take_one(SERVER);
    }
}

static void begin(cci_conn_attribute_t attribute, int counts) {
    static cci_link_t link;
    static cci_transport_t transport;
    static const cci_transport_t *const transports[] = {&transport, NULL};
    cci_setup_t setup;
    uint32_t caps, one = 1;
    char *uri;
    int side;
    link = sim_link;
    link.send = picky_send;
    transport = sim_transport;
    transport.link = &link;
    memset(&setup, 0, sizeof setup);
    setup.transports = transports;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    sim_route = route;
    for (side = CLIENT; side <= SERVER; side++) {
        assert_int_equal(cci_create_endpoint(NULL, 0, &end[side], NULL), CCI_SUCCESS);
        if (counts)
            assert_int_equal(cci_set_opt(end[side], CCI_OPT_ENDPT_CONN_STATS, &one), CCI_SUCCESS);
    }
    server_number = number_of(SERVER);
    assert_int_equal(cci_get_opt(end[SERVER], CCI_OPT_ENDPT_URI, (void *)&uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(end[CLIENT], uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    while (at[CLIENT] == NULL || at[SERVER] == NULL)
        both_work(MS);
}

static int setup_test(void **state) {
    (void)state;
    sim_reset();
    memset(end, 0, sizeof end);
    memset(at, 0, sizeof at);
    memset(seen, 0, sizeof seen);
    memset(received, 0, sizeof received);
    memset(received_bytes, 0, sizeof received_bytes);
    memset(completed, 0, sizeof completed);
    keeps_events = 0;
    kept_count = refuse_every = lose_every = 0;
    lost_packets = 0;
    return 0;
}

static int teardown_test(void **state) {
    (void)state;
    cci_finalize();
    sim_reset();
    return 0;
}

static cci_endpt_stats_t endpoint_stats(int side) {
    cci_endpt_stats_t stats;
    memset(&stats, 0xff, sizeof stats);
    assert_int_equal(cci_get_opt(end[side], CCI_OPT_ENDPT_STATS, &stats), CCI_SUCCESS);
    return stats;
}

static cci_conn_stats_t connection_stats(int side) {
    cci_conn_stats_t stats;
    memset(&stats, 0xff, sizeof stats);
    assert_int_equal(cci_get_opt(at[side], CCI_OPT_CONN_STATS, &stats), CCI_SUCCESS);
    return stats;
}

static uint64_t sent_messages, sent_bytes;

static void send_one(int side, uint32_t length, int flags) {
    static char bytes[65536];
    int status;
    while ((status = cci_send(at[side], bytes, length, NULL, flags)) == CCI_ENOBUFS) {
        (void)take_one(CLIENT);
        (void)take_one(SERVER);
    }
    assert_int_equal(status, CCI_SUCCESS);
    sent_messages++;
    sent_bytes += length;
}

/* Messages of all lengths, some with a completion. */
static void send_many(int side, uint32_t count) {
    uint32_t i;
    sent_messages = sent_bytes = 0;
    for (i = 0; i < count; i++) {
        uint32_t length = i % 11 == 0 ? (uint32_t)sim_below(at[side]->max_send_size) : (uint32_t)sim_below(100);
        send_one(side, length, i % 3 == 0 ? 0 : CCI_FLAG_SILENT);
        if (i % 17 == 0)
            both_work(MS / 20); /* so that nobody has to ask whether the server is still there */
    }
}

static void until_received(int side, uint64_t count) {
    uint64_t limit_ns = sim.now_ns + 60000 * MS;
    while (received[side] < count && sim.now_ns < limit_ns)
        both_work(MS);
    assert_true(received[side] == count);
    both_work(300 * MS);
}

/* The datagrams of both ends are what the network saw. */
static void compare_datagrams(void) {
    cci_endpt_stats_t client = endpoint_stats(CLIENT), server = endpoint_stats(SERVER);
    assert_true(client.datagrams_sent == seen[CLIENT].all);
    assert_true(client.bytes_sent == seen[CLIENT].all_bytes);
    assert_true(server.datagrams_sent == seen[SERVER].all);
    assert_true(server.bytes_sent == seen[SERVER].all_bytes);
    assert_true(client.datagrams_sent + server.datagrams_sent == sim.sent_count);
    assert_true(client.bytes_sent + server.bytes_sent == sim.sent_bytes);
    assert_true(client.datagrams_received + server.datagrams_received == sim.delivered_count);
}

/* So are the packets of a connection, in the direction from `from`. */
static void compare_packets(int from) {
    cci_conn_stats_t stats = connection_stats(from);
    assert_true(stats.is_counted == 1);
    assert_true(stats.packets_sent == seen[from].packets);
    assert_true(stats.packet_bytes_sent == seen[from].bytes);
}

static void compare_messages(int from) {
    cci_conn_stats_t sender = connection_stats(from), receiver = connection_stats(!from);
    assert_true(sender.messages_sent == sent_messages);
    assert_true(sender.bytes_sent == sent_bytes);
    assert_true(receiver.messages_received == sent_messages);
    assert_true(receiver.bytes_received == sent_bytes);
    assert_true(receiver.bytes_received == received_bytes[!from]);
}

/* ---- tests ---- */

static void test_perfect_network(void **state) {
    cci_conn_stats_t a, b;
    cci_endpt_stats_t e;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    send_many(CLIENT, MESSAGES);
    until_received(SERVER, MESSAGES);
    compare_datagrams();
    compare_packets(CLIENT);
    compare_packets(SERVER);
    compare_messages(CLIENT);
    a = connection_stats(CLIENT);
    b = connection_stats(SERVER);
    assert_true(a.packets_received == seen[SERVER].packets && a.packet_bytes_received == seen[SERVER].bytes);
    assert_true(b.packets_received == seen[CLIENT].packets && b.packet_bytes_received == seen[CLIENT].bytes);
    assert_true(a.packets_lost == 0 && a.packets_retransmitted == 0 && a.rnr == 0);
    assert_true(b.messages_sent == 0 && b.bytes_sent == 0 && a.messages_received == 0);
    assert_true(a.min_rtt_ns >= 2 * sim.delay_ns && a.srtt_ns >= a.min_rtt_ns && a.latest_rtt_ns >= 2 * sim.delay_ns);
    assert_true(a.operations_pending == 0 && a.in_flight_bytes == 0 && a.path_mtu == sim.mtu);
    assert_true(a.silent_ns >= 290 * MS && a.silent_ns < 330 * MS);
    e = endpoint_stats(SERVER);
    assert_true(e.connections_open == 1 && e.connections_opening == 0 && e.connections_active == 1);
    assert_true(e.packets_lost == 0 && e.packets_retransmitted == 0 && e.dropped_duplicate == 0);
    assert_true(e.dropped_corrupt + e.dropped_not_ours + e.dropped_no_connection + e.dropped_no_buffer == 0);
    assert_true(e.recv_buffers_used == 0 && e.recv_buffers_most > 0 && e.events_waiting == 0);
}

static void test_losses(void **state) {
    cci_conn_stats_t a;
    (void)state;
    begin(CCI_CONN_ATTR_RU, 1);
    lose_every = 13;
    send_many(CLIENT, MESSAGES);
    until_received(SERVER, MESSAGES);
    compare_datagrams();
    compare_packets(CLIENT);
    compare_packets(SERVER);
    compare_messages(CLIENT);
    a = connection_stats(CLIENT);
    assert_true(lost_packets > 20);
    assert_true(a.packets_lost == lost_packets); /* none of the server's was lost, and none was late */
    assert_true(endpoint_stats(CLIENT).packets_lost == lost_packets);
    assert_true(a.packets_retransmitted == seen[CLIENT].repeated);
    assert_true(endpoint_stats(CLIENT).packets_retransmitted == seen[CLIENT].repeated);
    assert_true(connection_stats(SERVER).packets_received == seen[CLIENT].packets - lost_packets);
}

/* Whatever the network does, each datagram that arrived was taken or is named by a reason. */
static void test_bad_network(void **state) {
    cci_endpt_stats_t e;
    (void)state;
    sim_set_seed(7);
    sim.crc = 1;
    sim.loss_per_mille = 20;
    sim.duplicate_per_mille = 50;
    sim.reorder_per_mille = 50;
    begin(CCI_CONN_ATTR_RO, 1);
    sim.flip_per_mille = 30;
    sim.noise_per_mille = 20;
    send_many(CLIENT, MESSAGES);
    until_received(SERVER, MESSAGES);
    compare_datagrams();
    compare_packets(CLIENT);
    compare_packets(SERVER);
    compare_messages(CLIENT);
    e = endpoint_stats(SERVER);
    assert_true(e.dropped_corrupt > 0 && e.dropped_duplicate > 0);
    e = endpoint_stats(CLIENT);
    assert_true(e.packets_lost > 0 && e.packets_retransmitted > 0);
}

/* With checksums each flipped or mutilated datagram is dropped, and nothing else is. */
static void test_corrupt(void **state) {
    cci_endpt_stats_t a, b;
    (void)state;
    sim.crc = 1;
    begin(CCI_CONN_ATTR_RO, 1);
    sim.flip_per_mille = 300;
    send_many(CLIENT, MESSAGES);
    until_received(SERVER, MESSAGES);
    a = endpoint_stats(CLIENT);
    b = endpoint_stats(SERVER);
    assert_true(sim.flipped_count > 10);
    assert_true(a.dropped_corrupt + b.dropped_corrupt + a.dropped_not_ours + b.dropped_not_ours == sim.flipped_count);
}

/* A link that does not take all: what it took counts, once. */
static void test_refusing_link(void **state) {
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    refuse_every = 7;
    send_many(CLIENT, MESSAGES);
    until_received(SERVER, MESSAGES);
    compare_datagrams();
    compare_packets(CLIENT);
    compare_packets(SERVER);
    compare_messages(CLIENT);
}

static void test_unreliable(void **state) {
    (void)state;
    begin(CCI_CONN_ATTR_UU, 1);
    send_many(CLIENT, 500);
    both_work(300 * MS);
    compare_datagrams();
    compare_packets(CLIENT);
    assert_true(connection_stats(CLIENT).messages_sent == sent_messages);
    assert_true(connection_stats(CLIENT).bytes_sent == sent_bytes);
    assert_true(connection_stats(SERVER).messages_received == received[SERVER]);
    assert_true(connection_stats(SERVER).bytes_received == received_bytes[SERVER]);
    assert_in_range(connection_stats(SERVER).silent_ns, 250 * MS, 330 * MS);
    both_work(3000 * MS);
    assert_in_range(connection_stats(SERVER).silent_ns, 3250 * MS, 3330 * MS);
    send_one(CLIENT, 5, CCI_FLAG_SILENT);
    both_work(20 * MS);
    assert_in_range(connection_stats(SERVER).silent_ns, 0, 25 * MS);
}

static void await_completion(void) {
    uint64_t before = completed[CLIENT];
    while (completed[CLIENT] == before)
        both_work(MS / 10);
}

static void test_rma(void **state) {
    static uint8_t memory[2][MEMORY];
    static const char note[10] = "it is done";
    cci_rma_handle_t *mine, *theirs;
    cci_conn_stats_t a, b;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    assert_int_equal(cci_rma_register(end[CLIENT], memory[0], MEMORY, CCI_FLAG_READ | CCI_FLAG_WRITE, &mine), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(end[SERVER], memory[1], MEMORY, CCI_FLAG_READ | CCI_FLAG_WRITE, &theirs), CCI_SUCCESS);
    sent_messages = sent_bytes = 0;
    send_one(CLIENT, 50, CCI_FLAG_SILENT);
    assert_int_equal(cci_rma(at[CLIENT], NULL, 0, mine, 0, theirs, 0, MEMORY, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    await_completion();
    assert_int_equal(cci_rma(at[CLIENT], note, sizeof note, mine, 0, theirs, 0, 500, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    send_one(CLIENT, 60, CCI_FLAG_SILENT);
    await_completion();
    assert_int_equal(cci_rma(at[CLIENT], NULL, 0, mine, 0, theirs, 0, 200000, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    send_one(CLIENT, 70, CCI_FLAG_SILENT);
    await_completion();
    until_received(SERVER, 4);
    sent_messages++; /* the completion message */
    sent_bytes += sizeof note;
    compare_datagrams();
    compare_packets(CLIENT);
    compare_packets(SERVER);
    compare_messages(CLIENT);
    a = connection_stats(CLIENT);
    b = connection_stats(SERVER);
    assert_true(a.rma_writes == 2 && a.rma_write_bytes == MEMORY + 500);
    assert_true(a.rma_reads == 1 && a.rma_read_bytes == 200000);
    assert_true(b.peer_write_bytes == MEMORY + 500 && b.peer_read_bytes == 200000);
    assert_true(b.rma_writes == 0 && b.rma_reads == 0 && a.peer_write_bytes == 0 && a.peer_read_bytes == 0);
}

static void check_pending(cci_conn_attribute_t attribute) {
    static uint8_t memory[2][MEMORY];
    static const uint64_t lengths[] = {MEMORY, 100, 5000, 1};
    static const char note[10] = "it is done";
    cci_rma_handle_t *mine, *theirs;
    uint32_t i, issued = 0, pending;
    begin(attribute, 0);
    assert_int_equal(cci_rma_register(end[CLIENT], memory[0], MEMORY, CCI_FLAG_READ | CCI_FLAG_WRITE, &mine), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(end[SERVER], memory[1], MEMORY, CCI_FLAG_READ | CCI_FLAG_WRITE, &theirs), CCI_SUCCESS);
    completed[CLIENT] = 0;
    for (i = 0; i < 64; i++) { /* nothing arrives: nobody calls */
        const uint64_t length = lengths[i % 4];
        const void *message = i & 4 ? note : NULL;
        int flags = i & 8 ? CCI_FLAG_READ : CCI_FLAG_WRITE;
        if (i >= 48) flags |= CCI_FLAG_FENCE;
        if (i >= 16 && i < 32) send_one(CLIENT, 40, 0), issued++;
        assert_int_equal(cci_rma(at[CLIENT], message, message ? sizeof note : 0, mine, 0, theirs, 0, length, NULL, flags),
                         CCI_SUCCESS);
        issued++;
        assert_int_equal(connection_stats(CLIENT).operations_pending, issued);
    }
    do {
        both_work(MS / 10);
        pending = connection_stats(CLIENT).operations_pending;
        assert_true(pending + completed[CLIENT] <= issued);
    } while (completed[CLIENT] < issued);
    assert_int_equal(pending, 0);
}

/* An RMA and its completion message are one. */
static void test_what_is_pending(void **state) {
    (void)state;
    check_pending(CCI_CONN_ATTR_RO);
}

static void test_what_is_pending_unordered(void **state) {
    (void)state;
    check_pending(CCI_CONN_ATTR_RU);
}

/* What a connection has counted does not end with its traffic. */
static void test_pause(void **state) {
    cci_conn_stats_t before, after;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    send_many(CLIENT, 200);
    until_received(SERVER, 200);
    before = connection_stats(CLIENT);
    assert_true(before.is_active == 1);
    cci__dgram_take_hot(dgram_of(CLIENT), dconn_of(CLIENT)->hot);
    cci__dgram_take_hot(dgram_of(SERVER), dconn_of(SERVER)->hot);
    after = connection_stats(CLIENT);
    assert_true(after.is_active == 0 && after.congestion_window == 0);
    assert_true(after.messages_sent == before.messages_sent && after.bytes_sent == before.bytes_sent);
    assert_true(after.packets_sent == before.packets_sent && after.latest_rtt_ns == 0);
    assert_true(after.srtt_ns - before.srtt_ns < 1000 && after.min_rtt_ns - before.min_rtt_ns < 1000);
    assert_true(after.path_mtu == before.path_mtu);
    assert_true(endpoint_stats(CLIENT).connections_active == 0);
    send_one(CLIENT, 33, 0);
    until_received(SERVER, 201);
    after = connection_stats(CLIENT);
    assert_true(after.messages_sent == before.messages_sent + 1 && after.bytes_sent == before.bytes_sent + 33);
    compare_packets(CLIENT);
}

/* It is the program that asks for counters of connections; what is known anyway comes without. */
static void test_counting_is_asked_for(void **state) {
    uint32_t value = 7;
    cci_conn_stats_t a;
    uint64_t before;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 0);
    assert_int_equal(cci_get_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS);
    assert_int_equal(value, 0);
    send_many(CLIENT, 100);
    until_received(SERVER, 100);
    a = connection_stats(CLIENT);
    assert_true(a.is_counted == 0 && a.messages_sent == 0 && a.packets_sent == 0);
    assert_true(a.latest_rtt_ns > 0 && a.srtt_ns > 0 && a.min_rtt_ns > 0 && a.path_mtu > 0);
    send_one(CLIENT, 10, CCI_FLAG_SILENT); /* of before */
    value = 1;
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS);
    assert_int_equal(value, 1);
    assert_true(connection_stats(CLIENT).messages_sent == 0);
    before = seen[CLIENT].packets;
    send_many(CLIENT, 100);
    until_received(SERVER, 201);
    a = connection_stats(CLIENT);
    assert_true(a.is_counted == 1 && a.messages_sent == 100 && a.bytes_sent == sent_bytes);
    assert_true(a.packets_sent == seen[CLIENT].packets - before);
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS); /* nothing changes */
    assert_true(connection_stats(CLIENT).messages_sent == 100);
    value = 0;
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS);
    a = connection_stats(CLIENT);
    assert_true(a.is_counted == 0 && a.messages_sent == 0);
    send_many(CLIENT, 100);
    until_received(SERVER, 301);
    value = 1;
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_SUCCESS);
    assert_true(connection_stats(CLIENT).messages_sent == 0);
    value = 2;
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_CONN_STATS, &value), CCI_ERANGE);
}

static void test_bad_calls(void **state) {
    cci_endpt_stats_t e;
    cci_conn_stats_t c;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 0);
    memset(&e, 0, sizeof e);
    memset(&c, 0, sizeof c);
    assert_int_equal(cci_set_opt(end[CLIENT], CCI_OPT_ENDPT_STATS, &e), CCI_EINVAL);
    assert_int_equal(cci_set_opt(at[CLIENT], CCI_OPT_CONN_STATS, &c), CCI_EINVAL);
    assert_int_equal(cci_get_opt(at[CLIENT], CCI_OPT_ENDPT_STATS, &e), CCI_EINVAL);
    assert_int_equal(cci_get_opt(end[CLIENT], CCI_OPT_CONN_STATS, &c), CCI_EINVAL);
    assert_int_equal(cci_get_opt(end[CLIENT], CCI_OPT_ENDPT_STATS, NULL), CCI_EINVAL);
    assert_int_equal(cci_get_opt(at[CLIENT], CCI_OPT_CONN_STATS, NULL), CCI_EINVAL);
}

/* Each datagram that is put on the network is dropped for the reason that it deserves. */
static void test_drops_by_reason(void **state) {
    uint8_t packet[64];
    cci_endpt_stats_t before, after;
    cci__dconn_t *conn;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    send_many(CLIENT, 100);
    until_received(SERVER, 100);
    conn = dconn_of(SERVER);
    before = endpoint_stats(SERVER);
    memset(packet, 0, sizeof packet);
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 10); /* not ours: short, empty, of another version */
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 0);
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 64);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->conn.index, conn->conn.token ^ 1, 0, 1000);
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 32); /* no such connection */
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->conn.index, conn->conn.token, 0, 0);
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 32); /* it was there before */
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->conn.index, conn->conn.token, 0, 1000);
    memset(packet + CCI_PACKET_HEADER, 0xee, 8);
    packet[CCI_PACKET_HEADER] = CCI__FRAME_MESSAGE;
    sim_inject(number_of(CLIENT), number_of(SERVER), packet, 32); /* a message longer than the packet */
    both_work(10 * MS);
    after = endpoint_stats(SERVER);
    assert_true(after.datagrams_received == before.datagrams_received + 6);
    assert_true(after.bytes_received == before.bytes_received + 10 + 64 + 3 * 32);
    assert_true(after.dropped_not_ours == before.dropped_not_ours + 3);
    assert_true(after.dropped_no_connection == before.dropped_no_connection + 1);
    assert_true(after.dropped_duplicate == before.dropped_duplicate + 1);
    assert_true(after.dropped_corrupt == before.dropped_corrupt + 1);
    assert_true(after.dropped_no_buffer == before.dropped_no_buffer);
}

/* The program holds all buffers: what comes is refused, the sender counts that, and afterwards all arrives. */
static void test_buffers(void **state) {
    uint32_t count = 8, i;
    cci_endpt_stats_t e;
    cci_conn_stats_t a;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    assert_int_equal(cci_set_opt(end[SERVER], CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
    keeps_events = 1;
    for (i = 0; i < 40; i++)
        send_one(CLIENT, 1000, CCI_FLAG_SILENT);
    both_work(20 * MS);
    e = endpoint_stats(SERVER);
    assert_true(kept_count == count && e.recv_buffers_used >= count && e.recv_buffers_most >= e.recv_buffers_used);
    assert_true(e.dropped_no_buffer > 0);
    a = connection_stats(CLIENT);
    assert_true(a.rnr > 0 && a.operations_pending > 0 && a.operations_pending <= 32);
    assert_true(endpoint_stats(CLIENT).send_buffers_used > 0);
    keeps_events = 0;
    for (i = 0; i < kept_count; i++)
        assert_int_equal(cci_return_event(kept[i]), CCI_SUCCESS);
    until_received(SERVER, 40);
    e = endpoint_stats(SERVER);
    assert_true(e.recv_buffers_used == 0 && e.recv_buffers_most >= count);
    a = connection_stats(CLIENT);
    assert_true(a.operations_pending == 0);
    e = endpoint_stats(CLIENT);
    assert_true(e.send_buffers_used == 0 && e.send_buffers_most > 0 && e.send_buffers_most <= 40);
}

/* Lets the network alone work: the programs take nothing. */
static void only_packets(void) {
    uint32_t i;
    for (i = 0; i < 100; i++) {
        (void)cci__dgram_pump(dgram_of(CLIENT), CCI__IDLE, CCI__DGRAM_BATCH_RX);
        (void)cci__dgram_pump(dgram_of(SERVER), CCI__IDLE, CCI__DGRAM_BATCH_RX);
        sim_advance_to(sim.now_ns + sim.delay_ns);
    }
}

static void test_waiting_events(void **state) {
    uint32_t i;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    for (i = 0; i < 20; i++)
        send_one(CLIENT, 64, 0);
    only_packets();
    assert_true(endpoint_stats(SERVER).events_waiting == 20); /* messages */
    assert_true(endpoint_stats(CLIENT).events_waiting == 20); /* completions */
    assert_true(connection_stats(SERVER).messages_received == 0 && connection_stats(SERVER).bytes_received == 0);
    for (i = 0; i < 7; i++)
        assert_true(take_one(SERVER));
    assert_true(endpoint_stats(SERVER).events_waiting == 13);
    assert_true(connection_stats(SERVER).messages_received == 7);
    assert_true(connection_stats(SERVER).bytes_received == 7 * 64);
    until_received(SERVER, 20);
    assert_true(endpoint_stats(SERVER).events_waiting == 0);
    assert_true(connection_stats(SERVER).messages_received == 20);
}

/* What waits for the program when counting begins counts when it takes it. */
static void test_counting_while_messages_wait(void **state) {
    uint32_t i, one = 1;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 0);
    for (i = 0; i < 20; i++)
        send_one(CLIENT, 64, CCI_FLAG_SILENT);
    only_packets();
    for (i = 0; i < 5; i++)
        assert_true(take_one(SERVER));
    assert_int_equal(cci_set_opt(end[SERVER], CCI_OPT_ENDPT_CONN_STATS, &one), CCI_SUCCESS);
    assert_true(connection_stats(SERVER).messages_received == 0 && connection_stats(SERVER).bytes_received == 0);
    until_received(SERVER, 20);
    assert_true(connection_stats(SERVER).messages_received == 15);
    assert_true(connection_stats(SERVER).bytes_received == 15 * 64);
}

/* Connections that are made after counting began have memory for it, beyond the first slab too. */
static void test_many_connections(void **state) {
    char *uri;
    uint32_t i, opening;
    (void)state;
    begin(CCI_CONN_ATTR_RO, 1);
    assert_int_equal(cci_get_opt(end[SERVER], CCI_OPT_ENDPT_URI, (void *)&uri), CCI_SUCCESS);
    for (i = 0; i < 600; i++) {
        at[CLIENT] = at[SERVER] = NULL;
        assert_int_equal(cci_connect(end[CLIENT], uri, NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, NULL), CCI_SUCCESS);
        opening = endpoint_stats(CLIENT).connections_opening;
        assert_int_equal(opening, 1);
        while (at[CLIENT] == NULL || at[SERVER] == NULL)
            both_work(MS / 10);
    }
    free(uri);
    assert_int_equal(endpoint_stats(CLIENT).connections_open, 601);
    assert_int_equal(endpoint_stats(SERVER).connections_open, 601);
    send_many(CLIENT, 10);
    until_received(SERVER, 10);
    compare_messages(CLIENT);
    assert_int_equal(cci_disconnect(at[CLIENT]), CCI_SUCCESS);
    both_work(2000 * MS);
    assert_int_equal(endpoint_stats(CLIENT).connections_open, 600);
}

#define A_TEST(name, sentence) {sentence, name, setup_test, teardown_test, NULL}

int main(void) {
    const struct CMUnitTest tests[] = {
        A_TEST(test_perfect_network, "on a perfect network all counters are what the network saw"),
        A_TEST(test_losses, "lost and repeated packets are counted to the packet"),
        A_TEST(test_bad_network, "on a bad network, too, all that is sent and received is counted"),
        A_TEST(test_corrupt, "each corrupt datagram is counted, and no other"),
        A_TEST(test_refusing_link, "what the link does not take is not counted"),
        A_TEST(test_unreliable, "unreliable messages are counted"),
        A_TEST(test_rma, "remote memory access is counted on both sides"),
        A_TEST(test_what_is_pending, "remote memory access is counted on both sides"),
        A_TEST(test_what_is_pending_unordered, "remote memory access is counted on both sides"),
        A_TEST(test_pause, "counters survive a pause without traffic"),
        A_TEST(test_counting_is_asked_for, "connections are counted from when the program asks for it"),
        A_TEST(test_bad_calls, "wrong handles and values are refused"),
        A_TEST(test_drops_by_reason, "a datagram that is dropped counts for its reason"),
        A_TEST(test_buffers, "buffers in use, their high-water mark and refusals are told"),
        A_TEST(test_waiting_events, "events that wait are told, and are not counted as received"),
        A_TEST(test_counting_while_messages_wait, "messages that wait when counting begins count when they are taken"),
        A_TEST(test_many_connections, "connections open and being opened are told, and new ones counted"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
