/* wire_run.c - a short run in which the datagram protocol says all that it can say, to be captured.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     SIM_PCAP=run.pcap wire_run sim     over the simulated network, which loses and reorders
 *     wire_run udp                       over UDP on the loopback interface, for tcpdump to see
 *     wire_run serve                     a server by name, and before it one of another, for tests/wire/second.py
 *
 * What it shows is looked at by tests/wire/wire_check.py; here only the outcome of each operation is checked. Over UDP there
 * is no multicast, since loopback interfaces have none by default.
 */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include "tests/support/harness.h"

#define LONG_BYTES 150000u
#define MESSAGE_BYTES 5000u /* more than a packet takes */
#define UNDECIDED 300       /* requests at once: more than a server takes without a cookie */
#define BOTH_RIGHTS (CCI_FLAG_READ | CCI_FLAG_WRITE)

static uint8_t near_bytes[LONG_BYTES], far_bytes[LONG_BYTES], message[MESSAGE_BYTES];

static void take_messages(side_t *side, size_t count) {
    while (count-- > 0) {
        drop(await(side, CCI_EVENT_RECV));
    }
}

/* Those that came: of unreliable messages, nobody knows how many. */
static void drop_messages(side_t *side) {
    cci_event_t *event;
    while ((event = take(side, CCI_EVENT_RECV)) != NULL) {
        drop(event);
    }
}

/* ---- the handshake ----------------------------------------------------------------------------------------------- */

/* Requests with data pile up until the server asks for cookies; then it accepts some and rejects the others. */
static void show_handshakes(side_t *a, side_t *b) {
    int i, accepted = 0, refused = 0;
    uint8_t data[CCI_CONN_REQ_LEN];
    fill(data, sizeof data, 7);
    /* from now on the two sides of a connection have different indices */
    assert_int_equal(cci_disconnect(connect_sides(a, a, CCI_CONN_ATTR_RO).bc), CCI_SUCCESS);
    for (i = 0; i < UNDECIDED; i++) {
        assert_int_equal(cci_connect(a->ep, b->uri, data, i % 50 == 0 ? sizeof data : (uint32_t)i % 50,
                                     CCI_CONN_ATTR_RU, NULL, 0, NULL),
                         CCI_SUCCESS);
        poll_all();
    }
    AWAIT(count_of(b, CCI_EVENT_CONNECT_REQUEST) == UNDECIDED);
    for (i = 0; i < UNDECIDED; i++) {
        cci_event_t *request = take(b, CCI_EVENT_CONNECT_REQUEST);
        uint32_t answered = i % 20 == 0 || i % 100 == 1 ? sizeof data : i % 4 == 3 ? (uint32_t)i : 0;
        assert_int_equal(i % 10 ? cci_reject_data(request, data, answered) : cci_accept_data(request, NULL, data, answered),
                         CCI_SUCCESS);
        drop(request);
    }
    for (i = 0; i < UNDECIDED; i++) {
        cci_event_t *event = await(a, CCI_EVENT_CONNECT);
        assert_memory_equal(event->connect.data_len > 0 ? event->connect.data_ptr : data, data, event->connect.data_len);
        accepted += event->connect.status == CCI_SUCCESS;
        refused += event->connect.status == CCI_ECONNREFUSED;
        drop(event);
    }
    assert_int_equal(accepted, UNDECIDED / 10);
    assert_int_equal(accepted + refused, UNDECIDED);
    for (i = 0; i < accepted; i++) {
        drop(await(b, CCI_EVENT_ACCEPT));
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void show_messages(side_t *a, side_t *b, cci_conn_attribute_t attribute) {
    static const uint32_t lengths[] = {0, 1, 7, 8, 9, 100, 1000, MESSAGE_BYTES};
    pair_t pair = connect_sides(a, b, attribute);
    uint32_t i, round;
    assert_in_range(pair.ac->max_send_size, MESSAGE_BYTES, 65535);
    for (round = 0; round < 4; round++) {
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            send_patiently(pair.ac, message, lengths[i], i, CCI_FLAG_SILENT);
            send_patiently(pair.bc, message, lengths[i], i, CCI_FLAG_SILENT);
        }
        if (attribute == CCI_CONN_ATTR_UU) {
            elapse(5 * MILLISECOND_NS);
            drop_messages(a);
            drop_messages(b);
            continue;
        }
        take_messages(a, i);
        take_messages(b, i);
    }
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) { /* whole and in pieces, alone and coalesced */
        send_patiently(pair.ac, message, lengths[i], i, CCI_FLAG_SILENT | CCI_FLAG_WAKE);
    }
    if (attribute == CCI_CONN_ATTR_UU) {
        elapse(5 * MILLISECOND_NS);
        drop_messages(b);
    } else {
        take_messages(b, i);
    }
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    if (attribute != CCI_CONN_ATTR_UU) { /* the other side learns it when it sends: RESET */
        send_patiently(pair.bc, message, 1, 1, 0);
        await_send(b, pair.bc, as_context(1), CCI_ERR_DISCONNECTED);
    }
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* Answers to messages of which some are lost: while one is missing, each says which others have been delivered. */
static void show_answers(side_t *a, side_t *b) {
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RU);
    uint32_t sent = 0, answered = 0;
    cci_event_t *event;
    while (answered < 400) {
        assert_true(answered <= sent);
        for (; sent < 400 && sent - answered < 50; sent++) {
            send_patiently(pair.ac, message, 1000, sent, CCI_FLAG_SILENT);
        }
        poll_all();
        for (; (event = take(b, CCI_EVENT_RECV)) != NULL; drop(event)) {
            send_patiently(pair.bc, message, 700, sent, CCI_FLAG_SILENT);
        }
        for (; (event = take(a, CCI_EVENT_RECV)) != NULL; drop(event)) {
            answered++;
        }
    }
    assert_int_equal(answered, sent);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* The client's address changes, as behind a NAT that forgets; the connection goes on. */
static void show_new_address(side_t *a, side_t *b) {
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    int i;
    for (i = 0; i < sim.endpoint_count; i++) {
        if (sim_number_of(&sim.endpoints[i]->address) == strtoul(a->uri + strlen("sim://"), NULL, 10)) {
            sim.endpoints[i]->address.bytes[20] ^= 1;
        }
    }
    send_patiently(pair.ac, message, 100, 0, CCI_FLAG_SILENT);
    take_messages(b, 1);
    elapse(50 * MILLISECOND_NS);
    send_patiently(pair.bc, message, 100, 0, CCI_FLAG_SILENT);
    take_messages(a, 1);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* A server by name whose first port somebody else has, who says so. */
static void show_name(side_t *a) {
    side_t *server = side_open_at(a->ep->device, "storage"), *other;
    char port[16], uri[200];
    cci_event_t *event;
    int i, host = on_sim ? 6 : (int)(strrchr(a->uri, ':') - a->uri);
    snprintf(port, sizeof port, "%s", strrchr(server->uri, on_sim ? '/' : ':') + 1);
    side_close(server);
    other = side_open_at(a->ep->device, port);
    server = side_open_at(a->ep->device, "storage");
    snprintf(uri, sizeof uri, "%.*s%s/storage", host, a->uri, on_sim ? "host" : "");
    for (i = 0; i < 8; i++) { /* which of them is asked first is chance */
        assert_int_equal(cci_connect(a->ep, uri, message, 300, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        event = await(server, CCI_EVENT_CONNECT_REQUEST);
        assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        drop(event);
        event = await(a, CCI_EVENT_CONNECT);
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        assert_int_equal(cci_disconnect(event->connect.connection), CCI_SUCCESS);
        drop(event);
        drop(await(server, CCI_EVENT_ACCEPT));
    }
    side_close(server);
    side_close(other);
    side_count -= 2;
}

static void show_group(side_t *a, side_t *b) {
    cci_connection_t *ends[2];
    side_t *sides_of[2];
    int i;
    sides_of[0] = a;
    sides_of[1] = b;
    for (i = 0; i < 2; i++) {
        cci_event_t *event;
        assert_int_equal(cci_connect(sides_of[i]->ep, "sim://g5", NULL, 0,
                                     i == 0 ? CCI_CONN_ATTR_UU_MC_TX : CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL),
                         CCI_SUCCESS);
        event = await(sides_of[i], CCI_EVENT_CONNECT);
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        ends[i] = event->connect.connection;
        drop(event);
    }
    for (i = 0; i < 20; i++) {
        send_patiently(ends[0], message, i % 5 == 0 ? MESSAGE_BYTES : (uint32_t)i, 0, CCI_FLAG_SILENT);
    }
    elapse(20 * MILLISECOND_NS);
    assert_int_equal(cci_disconnect(ends[0]), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(ends[1]), CCI_SUCCESS);
}

/* A receiver that holds all its buffers: NACK, and after the time-out the messages are withdrawn. */
static void show_withdrawal(side_t *a, side_t *b) {
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    uint32_t timeout_us = 1000000, few = 4, many = 1024, i, failed = 0;
    cci_event_t *event;
    assert_int_equal(cci_set_opt(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(pair.ac, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    for (i = 0; i < 60; i++) {
        send_patiently(pair.ac, message, 1000, i, 0);
    }
    for (i = 0; i < 60; i++) {
        event = await(a, CCI_EVENT_SEND);
        failed += event->send.status == CCI_ERR_RNR;
        drop(event);
    }
    assert_true(failed > 0);
    while ((event = take(b, CCI_EVENT_RECV)) != NULL) {
        drop(event);
    }
    assert_int_equal(cci_set_opt(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &many), CCI_SUCCESS);
    send_patiently(pair.ac, "again", 5, 61, 0);
    await_send(a, pair.ac, as_context(61), CCI_SUCCESS);
    elapse(10 * MILLISECOND_NS);
    while ((event = take(b, CCI_EVENT_RECV)) != NULL) {
        drop(event);
    }
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void transfer(const pair_t *pair, cci_rma_handle_t *local, cci_rma_handle_t *remote, uint64_t length, int flags,
                     cci_status_t status) {
    assert_int_equal(cci_rma(pair->ac, message, 24, local, 0, remote, 8, length, &near_bytes, flags), CCI_SUCCESS);
    await_send(pair->a, pair->ac, &near_bytes, status);
    if (status == CCI_SUCCESS) {
        take_messages(pair->b, 1);
    }
}

/* Writes and reads of all sizes, with a message behind each, then of memory that is not registered any more. */
static void show_memory(side_t *a, side_t *b, cci_conn_attribute_t attribute) {
    static const uint64_t lengths[] = {1, 100, 1000, 1101, 20000, LONG_BYTES - 8};
    pair_t pair = connect_sides(a, b, attribute);
    cci_rma_handle_t *local, *remote, gone;
    uint32_t i;
    assert_int_equal(cci_rma_register(a->ep, near_bytes, LONG_BYTES, BOTH_RIGHTS, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, far_bytes, LONG_BYTES, BOTH_RIGHTS, &remote), CCI_SUCCESS);
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        fill(near_bytes, LONG_BYTES, i);
        transfer(&pair, local, remote, lengths[i], CCI_FLAG_WRITE, CCI_SUCCESS);
        assert_true(holds_pattern(far_bytes + 8, (size_t)lengths[i], i));
        memset(near_bytes, 0, LONG_BYTES);
        transfer(&pair, local, remote, lengths[i], CCI_FLAG_READ, CCI_SUCCESS);
        assert_true(holds_pattern(near_bytes, (size_t)lengths[i], i));
    }
    gone = *remote;
    assert_int_equal(cci_rma_deregister(b->ep, remote), CCI_SUCCESS);
    transfer(&pair, local, &gone, 100, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
    transfer(&pair, local, &gone, 20000, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
    transfer(&pair, local, &gone, 20000, CCI_FLAG_READ, CCI_ERR_RMA_HANDLE);
    elapse(10 * MILLISECOND_NS);
    assert_int_equal(cci_rma_deregister(a->ep, local), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* One atomic of each operation and width, more than may be under way, and some that the target refuses. */
static void show_atomics(side_t *a, side_t *b, cci_conn_attribute_t attribute) {
    pair_t pair = connect_sides(a, b, attribute);
    cci_rma_handle_t *remote;
    uint64_t previous;
    uint32_t i;
    assert_int_equal(cci_rma_register(b->ep, far_bytes, LONG_BYTES, BOTH_RIGHTS, &remote), CCI_SUCCESS);
    memset(far_bytes, 0, 64);
    for (i = 0; i < 60; i++) {
        uint32_t width = i % 2 ? 4 : 8;
        assert_int_equal(cci_atomic(pair.ac, (int)(i / 2 % 3), width, remote, 16 + 8 * (i % 3) + (i >= 50), i, 0, &previous,
                                    as_context(i), 0),
                         CCI_SUCCESS);
    }
    for (i = 0; i < 60; i++) {
        cci_event_t *event = await(a, CCI_EVENT_SEND);
        assert_int_equal(event->send.status,
                         (uintptr_t)event->send.context >= 50 ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
        drop(event);
    }
    assert_int_equal(cci_rma_deregister(b->ep, remote), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

static void show_keepalive(side_t *a, side_t *b) {
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    uint32_t period_us = 20000;
    assert_int_equal(cci_set_opt(pair.ac, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period_us), CCI_SUCCESS);
    elapse(200 * MILLISECOND_NS);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
}

/* More requests than a server with few buffers can hold: the rest is told to wait, and gets its turn. */
static void show_busy(side_t *a, side_t *b) {
    uint32_t few = 16, many = 1024;
    int i, open = 0;
    assert_int_equal(cci_set_opt(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    for (i = 0; i < 40; i++) {
        assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, NULL), CCI_SUCCESS);
    }
    for (i = 0; i < 1000; i++) {
        poll_all();
    }
    while (open < 40) {
        cci_event_t *request = await(b, CCI_EVENT_CONNECT_REQUEST);
        assert_int_equal(cci_accept(request, NULL), CCI_SUCCESS);
        drop(request);
        drop(await(b, CCI_EVENT_ACCEPT));
        drop(await(a, CCI_EVENT_CONNECT));
        open++;
    }
    assert_int_equal(cci_set_opt(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &many), CCI_SUCCESS);
}

TEST(all, ANYWHERE, "each kind of packet and frame is on the wire, and every operation ends as it should") {
    side_t *a = side_open(), *b = side_open();
    (void)state;
    fill(message, sizeof message, 3);
    show_handshakes(a, b);
    show_busy(a, b);
    show_messages(a, b, CCI_CONN_ATTR_RO);
    show_messages(a, b, CCI_CONN_ATTR_RU);
    show_messages(a, b, CCI_CONN_ATTR_UU);
    show_answers(a, b);
    if (on_sim) {
        show_group(a, b);
        show_new_address(a, b);
    }
    show_memory(a, b, CCI_CONN_ATTR_RO);
    show_memory(a, b, CCI_CONN_ATTR_RU);
    show_atomics(a, b, CCI_CONN_ATTR_RO);
    show_atomics(a, b, CCI_CONN_ATTR_RU);
    show_keepalive(a, b);
    show_withdrawal(a, b);
    show_name(a);
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

static void prepare_network(void) {
    snprintf(config_text, sizeof config_text, "%s",
             on_sim ? "[sim]\ntransport = sim\n" : "[lo]\ntransport = udp\ninterface = lo\nmax_send_size = 6000\necn = 1\n");
    sim.mtu = 8192;
    sim.path_mtu = 1480;
    sim.base_mtu = 1200;
    sim.loss_per_mille = 30;
    sim.ecn = 1;
    sim.interfaces = 2;
    sim.mark_per_mille = 30;
    sim.duplicate_per_mille = 10;
    sim.reorder_per_mille = 50;
}

/* Echoes messages at the second of a name's ports, until it is killed; at the first is somebody without a name. */
static int serve_by_name(void) {
    cci_endpoint_t *ends[2] = {NULL, NULL};
    char name[40], port[8];
    cci_conn_name_t ports;
    cci_event_t *event;
    uint32_t caps, i = 0;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        return 1;
    }
    do { /* until both are free */
        (void)(ends[0] != NULL && cci_destroy_endpoint(ends[0]));
        ends[0] = NULL;
        snprintf(name, sizeof name, "first-%d-%u", (int)getpid(), (unsigned)i);
        if (i++ == 100 || cci_conn_hash_name(name, &ports) != CCI_SUCCESS) {
            return 1;
        }
        snprintf(port, sizeof port, "%u", (unsigned)ports.ports[0]);
    } while (cci_create_endpoint_at(NULL, port, 0, &ends[0], NULL) != CCI_SUCCESS ||
             cci_create_endpoint_at(NULL, name, 0, &ends[1], NULL) != CCI_SUCCESS);
    printf("uri: udp://127.0.0.1/%s\n", name);
    fflush(stdout);
    for (i = 0;; i ^= 1) {
        if (cci_get_event(ends[i], &event) != CCI_SUCCESS) {
            usleep(50);
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_RECV) {
            (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
        }
        (void)cci_return_event(event);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        return serve_by_name();
    }
    worsen_network = prepare_network;
    on_sim = argc == 2 && strcmp(argv[1], "sim") == 0;
    if (!on_sim && (argc != 2 || strcmp(argv[1], "udp") != 0)) {
        fprintf(stderr, "usage: wire_run sim|udp|serve\n");
        return 2;
    }
    return run_listed_tests(argv[1], on_sim ? ON_SIM : ON_UDP, NULL);
}
