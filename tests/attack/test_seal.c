/* test_seal.c - what protects packets: the checksum of links that ask for it, and the program's own encryption.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Two endpoints on the simulated network, a client and a server. The link in between shows each packet to the test, which
 * may change it, keep it, send it again, or swallow it.
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
#include "tests/support/seal.h"

/* ---- a link that can be looked into --------------------------------------------------------------------------------- */

typedef struct packet {
    uint8_t bytes[9000];
    uint32_t length, from, to;
    uint8_t to_moved; /* it goes to an address that its owner has changed to */
} packet_t;

static cci_link_t open_link;
static cci_transport_t transport;
static const cci_transport_t *transports[2];

static uint32_t crc_of[2];                  /* of the first endpoint that is opened, the client, and of the others */
static uint32_t message_limit;              /* max_send_size of what is opened now; 0: the default */
static int opened;
static int flipped;                         /* packets with a wrong bit */
static int (*tamper)(packet_t *packet);     /* may change what is sent; 0 swallows it */

static uint32_t number_of(const cci_link_addr_t *address) {
    uint32_t number;
    memcpy(&number, address->bytes + 4, 4);
    return number;
}

static int link_send(void *handle, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++) {
        packet_t packet;
        cci_link_tx_t copy = tx[i];
        uint32_t piece;
        packet.length = 0;
        packet.from = ((sim_endpoint_t *)handle)->number;
        packet.to = number_of(tx[i].to);
        packet.to_moved = tx[i].to->bytes[20];
        for (piece = 0; piece < tx[i].piece_count; piece++) {
            assert_true(packet.length + tx[i].piece[piece].length <= sizeof packet.bytes);
            memcpy(packet.bytes + packet.length, tx[i].piece[piece].data, tx[i].piece[piece].length);
            packet.length += tx[i].piece[piece].length;
        }
        assert_int_equal(packet.length, tx[i].length);
        if (tamper && !tamper(&packet))
            continue;
        copy.piece_count = 1;
        copy.piece[0].data = packet.bytes;
        copy.piece[0].length = copy.length = packet.length;
        (void)sim_send(handle, &copy, 1);
    }
    return count;
}

static int link_open(cci_device_t *device, const char *service, int want_os_handle, void **handle,
                     cci_link_info_t *info) {
    int status = sim_open(device, service, want_os_handle, handle, info);
    info->crc = crc_of[opened++ > 0];
    info->max_send_size = message_limit;
    return status;
}

/* ---- the log: how often it warned ----------------------------------------------------------------------------------- */

static int warnings;

static void count_warnings(void *user, int level, const char *text) {
    (void)user;
    (void)text;
    warnings += level <= CCI_LOG_WARN;
}

/* ---- a client and a server ------------------------------------------------------------------------------------------ */

static cci_endpoint_t *client, *server;
static int rejects; /* 1: the server rejects all */
static cci_connection_t *at_client, *at_server; /* the newest connection */
static int keepalives, connects, connect_status, requests, accepts, received, sent, failed;
static uint32_t message_length;
static uint8_t message[65536];

static cci__dgram_t *dgram_of(cci_endpoint_t *endpoint) {
    return (cci__dgram_t *)(void *)endpoint;
}

static uint32_t number_at(cci_endpoint_t *endpoint) {
    return ((sim_endpoint_t *)dgram_of(endpoint)->base.handle)->number;
}

static void take_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        requests++;
        assert_true(event->request.data_len <= sizeof message);
        if (event->request.data_len > 0)
            memcpy(message, event->request.data_ptr, event->request.data_len);
        message_length = event->request.data_len;
        assert_int_equal(rejects ? cci_reject(event) : cci_accept(event, NULL), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        accepts += event->accept.status == CCI_SUCCESS;
        at_server = event->accept.connection;
        break;
    case CCI_EVENT_CONNECT:
        connects++;
        connect_status = (int)event->connect.status;
        at_client = event->connect.connection;
        break;
    case CCI_EVENT_RECV:
        received++;
        message_length = event->recv.len;
        assert_true(event->recv.len <= sizeof message);
        memcpy(message, event->recv.ptr, event->recv.len);
        break;
    case CCI_EVENT_SEND:
        sent++;
        failed += event->send.status != CCI_SUCCESS;
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        keepalives++;
        break;
    default:
        break;
    }
}

static void serve(cci_endpoint_t *endpoint) {
    cci_event_t *event;
    int i;
    for (i = 0; endpoint && i < 64 && cci_get_event(endpoint, &event) == CCI_SUCCESS; i++) {
        take_event(event);
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
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

static void ask(cci_conn_attribute_t attribute, const void *data, uint32_t length, uint32_t seconds) {
    struct timeval patience = {0, 0};
    char *uri;
    patience.tv_sec = (long)seconds;
    at_client = at_server = NULL;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, data, length, attribute, NULL, 0, &patience), CCI_SUCCESS);
    free(uri);
}

static void connect_both(cci_conn_attribute_t attribute) {
    int wanted = connects + 1, wanted_accepts = accepts + 1;
    ask(attribute, NULL, 0, 10);
    run_until(&connects, wanted);
    assert_int_equal(connect_status, CCI_SUCCESS);
    run_until(&accepts, wanted_accepts);
    assert_non_null(at_server);
}

/* What a transport told of its device stays; here the test says otherwise. */
static struct cci_device *default_device(void) {
    cci_device_t *const *devices;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    return (struct cci_device *)(uintptr_t)devices[0];
}

static void open_both(void) {
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
}

static int begin_with(const cci_seal_t *seal) {
    cci_setup_t setup;
    uint32_t caps;
    sim_reset();
    seal_reset();
    rejects = 0;
    crc_of[0] = crc_of[1] = 0;
    flipped = 0;
    message_limit = 0;
    opened = warnings = 0;
    tamper = NULL;
    keepalives = connects = connect_status = requests = accepts = received = sent = failed = 0;
    client = server = NULL;
    at_client = at_server = NULL;
    open_link = sim_link;
    open_link.open = link_open;
    open_link.send = link_send;
    transport = sim_transport;
    transport.link = &open_link;
    transports[0] = &transport;
    memset(&setup, 0, sizeof setup);
    setup.log = count_warnings;
    setup.transports = transports;
    setup.seal = seal;
    return cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS;
}

static int begin(void **state) {
    (void)state;
    return begin_with(NULL);
}

static int begin_sealed(void **state) {
    (void)state;
    return begin_with(&seal_hooks);
}

/* Whatever a test did: no nonce came twice, and each key was taken back once. */
static int end(void **state) {
    (void)state;
    tamper = NULL;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(sim.endpoint_count, 0);
    assert_int_equal(seal_state.repeats, 0);
    assert_int_equal(seal_state.given, seal_state.forgotten);
    seal_reset();
    sim_reset();
    return 0;
}

/* ---- the checksum --------------------------------------------------------------------------------------------------- */

static uint32_t flip_bit; /* of the next DATA packet of the client; beyond its end: none */

static int flip_one(packet_t *packet) {
    if (packet->from == number_at(client) && packet->bytes[1] == CCI__PKT_DATA && flip_bit < packet->length * 8) {
        packet->bytes[flip_bit / 8] ^= (uint8_t)(1u << flip_bit % 8);
        flip_bit = UINT32_MAX;
        flipped++;
    }
    return 1;
}

/* As many messages as their packets have bits, of each of which another bit is wrong once; all of them arrive. */
static void send_with_each_bit_wrong(uint32_t bits) {
    uint32_t bit;
    tamper = flip_one;
    for (bit = 0; bit < bits; bit++) {
        int wanted = received + 1;
        flip_bit = bit;
        assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
        run_until(&received, wanted);
        run_until(&sent, wanted);
        assert_int_equal(message_length, 5);
        assert_memory_equal(message, "hello", 5);
    }
    assert_int_equal(flipped, bits);
}

static void a_wrong_bit_anywhere_in_a_packet_is_noticed_and_the_message_arrives_all_the_same(void **state) {
    uint32_t bits = (CCI__HEADER_SIZE + 8 + 5 + CCI__CRC_SIZE) * 8;
    (void)state;
    crc_of[0] = crc_of[1] = 1;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    send_with_each_bit_wrong(bits);
    assert_int_equal(dgram_of(server)->packets_corrupt, bits - 1);
    assert_int_equal(dgram_of(server)->packets_mismatched, 1); /* the bit that says that there is a checksum */
    assert_int_equal(warnings, 0);
    assert_int_equal(failed, 0);
}

static void sides_that_do_not_agree_on_the_checksum_never_connect_and_say_so_once(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        opened = 0;
        warnings = 0;
        crc_of[0] = i == 0;
        crc_of[1] = i == 1;
        open_both();
        ask(CCI_CONN_ATTR_RO, "data", 4, 3);
        run_until(&connects, i + 1);
        assert_int_equal(connect_status, CCI_ETIMEDOUT);
        assert_int_equal(requests, 0);
        assert_true(dgram_of(server)->packets_mismatched > 2);
        assert_int_equal(warnings, 1);
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    }
}

/* 256 bytes are enough for a packet, whatever is added to it. */
static void a_link_that_carries_256_bytes_and_a_checksum_is_good_enough(void **state) {
    (void)state;
    crc_of[0] = crc_of[1] = 1;
    sim.mtu = 256 + CCI__CRC_SIZE;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&received, 1);
    sim.mtu--;
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_ERROR);
}

static uint32_t longest;

static int note_longest(packet_t *packet) {
    longest = packet->length > longest ? packet->length : longest;
    return 1;
}

/* Neither a packet that is too long for the link nor, on a path that carries all of it, one that wastes much. */
static void packets_with_a_checksum_fill_the_path_and_do_not_pass_its_mtu(void **state) {
    static uint8_t target[200000], source[200000];
    cci_rma_handle_t *local, *remote;
    uint32_t i;
    (void)state;
    crc_of[0] = crc_of[1] = 1;
    sim.mtu = 8192;
    sim.base_mtu = 1200;
    sim.path_mtu = 1472;
    longest = 0;
    tamper = NULL;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)(i * 7 + i / 256);
    assert_int_equal(cci_rma_register(client, source, sizeof source, 0, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, target, sizeof target, CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    for (i = 0; i < 8; i++) {
        assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, sizeof source, NULL, CCI_FLAG_WRITE),
                         CCI_SUCCESS);
        run_until(&sent, (int)i + 1);
    }
    assert_int_equal(failed, 0);
    assert_memory_equal(target, source, sizeof source);
    assert_int_equal(((cci__dconn_t *)(void *)at_client)->hot->rel.mtu, 1464); /* and 4 bytes, of 1,472 */
}

static void packets_without_a_checksum_have_no_flags_and_nothing_behind_them(void **state) {
    (void)state;
    open_both();
    assert_null(dgram_of(client)->wire);
    longest = 0;
    tamper = note_longest;
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(longest, CCI__REQUEST_SIZE);
    assert_int_equal(at_client->max_send_size, sim.mtu - CCI__HEADER_SIZE - 8);
}

/* ---- sealed connections --------------------------------------------------------------------------------------------- */

static uint8_t flip_type; /* of the packets in which the bit `flip_bit` is turned over, once */
static cci_endpoint_t **flip_sender;

static int flip_in_type(packet_t *packet) {
    if (packet->from == number_at(*flip_sender) && packet->bytes[1] == flip_type && flip_bit < packet->length * 8) {
        packet->bytes[flip_bit / 8] ^= (uint8_t)(1u << flip_bit % 8);
        flip_bit = UINT32_MAX;
        flipped++;
    }
    return 1;
}

static void a_wrong_bit_anywhere_in_a_sealed_packet_is_noticed_and_the_connection_lives(void **state) {
    uint32_t bits = (CCI__HEADER_SIZE + 8 + 5 + SEAL_TAG_SIZE) * 8;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    send_with_each_bit_wrong(bits);
    assert_int_equal(failed, 0);
    assert_int_equal(received, bits);
    assert_true(dgram_of(server)->packets_forged >= bits - 15 * 8); /* those with another version, type or token don't get so far */
}

/* Some bits of these packets decide nothing, all others make the packet worthless; it is sent again. */
static void a_wrong_bit_in_the_handshake_of_a_sealed_connection_makes_no_other_connection_of_it(void **state) {
    static const uint8_t types[] = {CCI__PKT_REQUEST, CCI__PKT_COOKIE, CCI__PKT_ACCEPT, CCI__PKT_CONFIRM,
                                    CCI__PKT_CONFIRMED};
    size_t i;
    (void)state;
    open_both();
    tamper = flip_in_type;
    for (i = 0; i < sizeof types; i++) {
        uint32_t bit;
        flip_type = types[i];
        flip_sender = types[i] == CCI__PKT_REQUEST || types[i] == CCI__PKT_CONFIRM ? &client : &server;
        for (bit = 0; bit < 24 * 8 + SEAL_TAG_SIZE * 8; bit++) {
            int asked = requests + 1, wanted = connects + 1, taken = accepts + 1;
            flip_bit = bit;
            ask(CCI_CONN_ATTR_RO, "who", 3, 30);
            run_until(&connects, wanted);
            assert_int_equal(connect_status, CCI_SUCCESS);
            run_until(&accepts, taken);
            assert_int_equal(requests, asked);
            assert_memory_equal(message, "who", 3);
            assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
            assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
        }
    }
    assert_true(flipped > 0);
}

static int flip_in_proven(packet_t *packet) {
    return packet->bytes[1] != CCI__PKT_REQUEST || cci__load64(packet->bytes + 16) == 0 || flip_in_type(packet);
}

/* A request by name and one without, with the bit that makes the one of the other, and with another name. */
static void the_name_in_a_sealed_request_can_not_be_changed_on_the_way(void **state) {
    uint64_t forged = 0;
    uint32_t round, bit;
    char *uri;
    (void)state;
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, "storage", 0, &server, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    tamper = flip_in_proven;
    flip_type = CCI__PKT_REQUEST;
    flip_sender = &client;
    for (round = 0; round < 2; round++) {
        for (bit = 24; bit < 48 * 8; bit += bit == 31 ? 40 * 8 - 31 : 1) { /* the flags, and the name */
            int asked = requests + 1, wanted = connects + 1, taken = accepts + 1;
            flip_bit = bit;
            assert_int_equal(cci_connect(client, round ? "sim://host/storage" : uri, "who", 3, CCI_CONN_ATTR_RO, NULL, 0, NULL),
                             CCI_SUCCESS);
            run_until(&connects, wanted);
            assert_int_equal(connect_status, CCI_SUCCESS);
            run_until(&accepts, taken);
            assert_int_equal(requests, asked);
            assert_int_equal(flip_bit, UINT32_MAX);
            if (round ? bit == 26 || (bit >= 320 && bit < 323) : bit >= 320) /* others are for somebody else, by their looks */
                assert_int_equal(dgram_of(server)->packets_forged, forged + 1);
            forged = dgram_of(server)->packets_forged;
            assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
            assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
        }
    }
    free(uri);
}

static void a_rejected_request_is_sealed_too(void **state) {
    uint32_t bit;
    (void)state;
    rejects = 1;
    open_both();
    tamper = flip_in_type;
    flip_type = CCI__PKT_REJECT;
    flip_sender = &server;
    for (bit = 0; bit < (CCI__SEALED_REJECT + SEAL_TAG_SIZE) * 8; bit += 5) {
        flip_bit = bit;
        ask(CCI_CONN_ATTR_RO, NULL, 0, 30);
        run_until(&connects, connects + 1);
        assert_int_equal(connect_status, CCI_ECONNREFUSED);
    }
    assert_true(flipped > 10);
    assert_true(dgram_of(client)->packets_forged > 10); /* and the next was taken */
}

/* ---- packets of a session, to be played again ---- */

#define MAX_PACKETS 4096
static packet_t *tape;
static uint32_t tape_count;

static int record(packet_t *packet) {
    assert_true(tape_count < MAX_PACKETS);
    tape[tape_count++] = *packet;
    return 1;
}

static void replay(uint32_t i) {
    sim_inject(tape[i].from, tape[i].to, tape[i].bytes, tape[i].length);
}

static uint8_t region_of_client[100000], region_of_server[100000];

/* Messages of several sizes both ways, and memory written and read. */
static void exchange(cci_rma_handle_t *local, cci_rma_handle_t *remote) {
    static const uint32_t sizes[] = {0, 5, 1000, 1400, 5000};
    static uint8_t bytes[5000];
    uint32_t i, is_reliable = at_client->attribute != CCI_CONN_ATTR_UU;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t length = sizes[i] <= at_client->max_send_size ? sizes[i] : at_client->max_send_size;
        int wanted = received + 1, completed = sent + 1;
        memset(bytes, (int)i + 1, length);
        assert_int_equal(cci_send(at_client, bytes, length, NULL, 0), CCI_SUCCESS);
        run_until(&received, wanted);
        run_until(&sent, completed);
        assert_int_equal(message_length, length);
        assert_memory_equal(message, bytes, length);
        assert_int_equal(cci_send(at_server, bytes, length, NULL, 0), CCI_SUCCESS);
        run_until(&received, wanted + 1);
        run_until(&sent, completed + 1);
    }
    if (is_reliable) {
        int wanted = received + 1, completed = sent + 1;
        for (i = 0; i < sizeof region_of_client; i++)
            region_of_client[i] = (uint8_t)(i + i / 251);
        assert_int_equal(cci_rma(at_client, "done", 4, local, 0, remote, 0, sizeof region_of_client, NULL,
                                 CCI_FLAG_WRITE), CCI_SUCCESS);
        run_until(&sent, completed);
        run_until(&received, wanted);
        assert_memory_equal(region_of_client, region_of_server, sizeof region_of_client);
        memset(region_of_client, 0, sizeof region_of_client);
        assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, sizeof region_of_client, NULL,
                                 CCI_FLAG_READ), CCI_SUCCESS);
        run_until(&sent, completed + 1);
        assert_memory_equal(region_of_client, region_of_server, sizeof region_of_client);
    }
    assert_int_equal(failed, 0);
}

static void register_both(cci_rma_handle_t **local, cci_rma_handle_t **remote) {
    assert_int_equal(cci_rma_register(client, region_of_client, sizeof region_of_client, 0, local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(server, region_of_server, sizeof region_of_server,
                                      CCI_FLAG_READ | CCI_FLAG_WRITE, remote), CCI_SUCCESS);
}

static void what_was_captured_has_no_effect_when_it_is_sent_again(void **state) {
    static const cci_conn_attribute_t kinds[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
    cci_rma_handle_t *local, *remote;
    uint32_t kind, i;
    (void)state;
    default_device()->max_send_size = message_limit = 6000; /* in fragments */
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    open_both();
    register_both(&local, &remote);
    for (kind = 0; kind < 3; kind++) {
        int before, asked, accepted, connected, got;
        tape_count = 0;
        tamper = record;
        connect_both(kinds[kind]);
        exchange(local, remote);
        run(2000);
        tamper = NULL;
        before = received;
        asked = requests;
        accepted = accepts;
        connected = connects;
        memset(region_of_client, 0xaa, sizeof region_of_client);
        memset(region_of_server, 0xbb, sizeof region_of_server);
        for (i = 0; i < tape_count; i++) { /* in the order in which they were sent, then in no order */
            replay(i);
            run(4);
        }
        for (i = 0; i < tape_count; i++) {
            replay((uint32_t)sim_below(tape_count));
            run(4);
        }
        run(2000);
        assert_int_equal(received, before);
        for (i = 0; i < sizeof region_of_client; i++)
            assert_true(region_of_client[i] == 0xaa && region_of_server[i] == 0xbb);
        exchange(local, remote); /* it lives */
        got = received;
        assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
        for (i = 0; i < tape_count; i++) {
            replay(i);
            run(4);
        }
        run(2000);
        assert_int_equal(requests, asked);
        assert_int_equal(accepts, accepted);
        assert_int_equal(connects, connected);
        assert_int_equal(received, got);
    }
    free(tape);
}

/* What stood in packets of a connection that was closed long ago is no request either. */
static void an_old_request_is_not_heard_again(void **state) {
    uint32_t i;
    (void)state;
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    tape_count = 0;
    open_both();
    tamper = record;
    connect_both(CCI_CONN_ATTR_RO);
    tamper = NULL;
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    sim_advance_to(sim.now_ns + UINT64_C(40000000000));
    for (i = 0; i < tape_count; i++)
        replay(i);
    run(1000);
    assert_int_equal(requests, 1);
    free(tape);
}

/* The copy of a request has a good cookie for 17 s at least and 34 s at most. Other connections come and go meanwhile. */
static void a_request_is_heard_once_after_every_delay(void **state) {
    uint32_t i, step, phase, expected;
    (void)state;
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    open_both();
    for (phase = 0; phase < 4; phase++) {
        tape_count = 0;
        tamper = record;
        connect_both(CCI_CONN_ATTR_RO);
        tamper = NULL;
        for (step = 0; step < 161; step++) {
            assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
            assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
            expected = (uint32_t)requests;
            for (i = 0; i < tape_count; i++)
                replay(i);
            run(40);
            assert_int_equal(requests, expected);
            for (i = 0; i < 4; i++) {
                connect_both(CCI_CONN_ATTR_RO);
                if (i < 3) {
                    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
                    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
                }
            }
            sim_advance_to(sim.now_ns + UINT64_C(250000000));
        }
        sim_advance_to(sim.now_ns + UINT64_C(4300000000));
    }
    free(tape);
}

static void nonces_never_repeat_over_losses_connections_and_restarts(void **state) {
    cci_rma_handle_t *local, *remote;
    uint32_t i;
    (void)state;
    default_device()->max_send_size = message_limit = 6000; /* in fragments */
    sim.loss_per_mille = 100;
    sim.duplicate_per_mille = 50;
    for (i = 0; i < 6; i++) {
        open_both();
        register_both(&local, &remote);
        connect_both(CCI_CONN_ATTR_RO);
        exchange(local, remote);
        connect_both(CCI_CONN_ATTR_RU);
        exchange(local, remote);
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
        client = server = NULL;
    }
    assert_true(seal_state.sealed > 2500);
    assert_int_equal(seal_state.repeats, 0);
}

/* The address that a NAT gives to what an endpoint sends. */
static void move_to(cci_endpoint_t *endpoint, uint8_t address) {
    ((sim_endpoint_t *)dgram_of(endpoint)->base.handle)->address.bytes[20] = address;
}

static cci__dconn_t *dconn_of(cci_connection_t *connection) {
    return (cci__dconn_t *)(void *)connection;
}

/* Both come back at the addresses that they had, peers move, and what was captured before is sent again after. */
static void nonces_never_repeat_when_addresses_change_or_come_back(void **state) {
    static const cci_conn_attribute_t kinds[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    cci_rma_handle_t *local, *remote;
    uint32_t i, k, kept = 0;
    uint8_t address = 0;
    (void)state;
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    sim.loss_per_mille = 30;
    for (i = 0; i < 6; i++) {
        int before = received, asked;
        assert_int_equal(cci_create_endpoint_at(default_device(), "78", 0, &client, NULL), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint_at(default_device(), "77", 0, &server, NULL), CCI_SUCCESS);
        asked = requests;
        for (k = 0; k < kept; k++) {
            replay(k);
            run(4);
        }
        run(1000);
        assert_int_equal(requests, asked);
        assert_int_equal(received, before);
        register_both(&local, &remote);
        tape_count = 0;
        tamper = record;
        connect_both(kinds[i % 2]);
        exchange(local, remote);
        for (k = 0; k < 3; k++) {
            move_to(client, ++address);
            exchange(local, remote);
            assert_int_equal(dconn_of(at_server)->conn.peer.bytes[20], address);
        }
        tamper = NULL;
        kept = tape_count;
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
        client = server = NULL;
    }
    assert_int_equal(seal_state.repeats, 0);
    free(tape);
}

/* What is lent to a connection while it has traffic is taken back when it is idle: the numbers must stay behind. */
static void nothing_is_sealed_or_heard_twice_after_a_connection_was_idle(void **state) {
    static const cci_conn_attribute_t kinds[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
    cci_rma_handle_t *local, *remote;
    uint32_t kind, i, round;
    (void)state;
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    open_both();
    register_both(&local, &remote);
    for (kind = 0; kind < 3; kind++) {
        tape_count = 0;
        tamper = record;
        connect_both(kinds[kind]);
        for (round = 0; round < 4; round++) {
            int before;
            tamper = record;
            exchange(local, remote);
            run(2000);
            tamper = NULL;
            before = received;
            cci__dgram_take_hot(dgram_of(client), dconn_of(at_client)->hot);
            cci__dgram_take_hot(dgram_of(server), dconn_of(at_server)->hot);
            for (i = 0; i < tape_count; i++) {
                replay(i);
                run(4);
            }
            run(1000);
            assert_int_equal(received, before);
        }
    }
    assert_int_equal(seal_state.repeats, 0);
    free(tape);
}

static int constant_chance(void *user, void *bytes, size_t count) {
    (void)user;
    memset(bytes, 0x5a, count);
    return 0;
}

/* What the manual warns of: the bytes of the source of chance must never come again. */
static void a_server_whose_chance_repeats_is_saved_by_its_clients_but_not_both_sides(void **state) {
    cci_rma_handle_t *local, *remote;
    int both, i;
    (void)state;
    for (both = 0; both < 2; both++) {
        for (i = 0; i < 4; i++) {
            cci__core.setup.random = both ? constant_chance : NULL;
            assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
            cci__core.setup.random = constant_chance;
            assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
            register_both(&local, &remote);
            connect_both(CCI_CONN_ATTR_RO);
            exchange(local, remote);
            assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
            assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
            client = server = NULL;
        }
        assert_true(both ? seal_state.repeats > 0 : seal_state.repeats == 0);
    }
    seal_state.repeats = 0;
}

/* Otherwise the tests above would prove nothing. */
static void a_nonce_that_repeats_would_be_noticed(void **state) {
    seal_key_t key;
    uint8_t nonce[CCI_SEAL_NONCE_LEN] = {0};
    (void)state;
    memset(&key, 0, sizeof key);
    seal_remember(&key, nonce);
    nonce[23] = 1;
    seal_remember(&key, nonce);
    key.bytes[0] = 1;
    seal_remember(&key, nonce);
    assert_int_equal(seal_state.repeats, 0);
    seal_remember(&key, nonce);
    assert_int_equal(seal_state.repeats, 1);
    seal_state.repeats = 0;
}

/* ---- sides that differ ---- */

static void never_connects(uint32_t seconds) {
    uint64_t since_ns = sim.now_ns;
    ask(CCI_CONN_ATTR_RO, "data", 4, seconds);
    run_until(&connects, connects + 1);
    assert_int_equal(connect_status, CCI_ETIMEDOUT);
    assert_true(sim.now_ns - since_ns < (uint64_t)(seconds + 1) * 1000000000u);
    assert_int_equal(requests, 0);
}

static void with_a_wrong_key_a_connection_times_out_and_the_log_says_why(void **state) {
    (void)state;
    open_both();
    seal_state.secret_of_client = 2;
    never_connects(3);
    assert_true(dgram_of(server)->packets_forged > 2);
    assert_int_equal(warnings, 1);
    assert_int_equal(dgram_of(server)->base.conns.used, 0);
    seal_state.secret_of_client = 1;
    connect_both(CCI_CONN_ATTR_RO);
}

static void a_client_without_a_key_can_not_connect_and_a_server_without_one_does_not_answer(void **state) {
    struct timeval patience = {3, 0};
    char *uri;
    (void)state;
    open_both();
    seal_state.secret_of_client = 0;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), CCI_ERR_NOT_FOUND);
    free(uri);
    assert_int_equal(dgram_of(client)->base.conns.used, 0);
    seal_state.secret_of_client = 1;
    seal_state.secret_of_server = 0;
    never_connects(3);
}

static void a_side_that_seals_and_one_that_does_not_never_connect(void **state) {
    int sealing;
    (void)state;
    for (sealing = 0; sealing < 2; sealing++) {
        warnings = 0;
        cci__core.setup.seal = sealing == 0 ? &seal_hooks : NULL;
        assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
        cci__core.setup.seal = sealing == 1 ? &seal_hooks : NULL;
        assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
        never_connects(3);
        assert_true(dgram_of(server)->packets_mismatched > 2);
        assert_int_equal(warnings, 1);
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    }
}

static void where_it_is_allowed_sealed_and_plain_connections_live_side_by_side(void **state) {
    cci_rma_handle_t *local, *remote;
    (void)state;
    seal_hooks.plain_allowed = 1;
    open_both();
    register_both(&local, &remote);
    seal_state.secret_of_client = 0;
    connect_both(CCI_CONN_ATTR_RO);
    exchange(local, remote);
    assert_int_equal(seal_state.sealed, 0);
    seal_state.secret_of_client = 1;
    connect_both(CCI_CONN_ATTR_RO);
    exchange(local, remote);
    assert_true(seal_state.sealed > 0);
}

/* Only who has the key closes a connection, or answers that it is closed. */
static void a_close_that_an_observer_could_make_does_not_end_a_sealed_connection(void **state) {
    uint8_t bytes[64];
    uint32_t i;
    cci__dconn_t *conn;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    conn = dconn_of(at_server);
    for (i = 0; i < 64; i++) {
        memset(bytes, (int)i, sizeof bytes);
        cci_conn_write_header(bytes, i & 1 ? CCI__PKT_CLOSE : CCI__PKT_CLOSED, 0, conn->conn.index, conn->conn.token,
                              conn->conn.peer_index, i);
        bytes[3] = i & 2 ? CCI__HEADER_SEALED : 0;
        sim_inject(number_at(client), number_at(server), bytes, 24 + i % 41);
    }
    run(1000);
    assert_int_equal(conn->conn.state, CCI_CONN_OPEN);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run(1000);
    assert_int_equal(conn->conn.state, CCI_CONN_BROKEN);
    assert_int_equal(conn->peer.life.at.end_status, CCI_SUCCESS);
    assert_int_equal(dgram_of(client)->base.conns.used, 0); /* the answer opened */
}

/* Whoever sees a packet knows index and token: what is sealed must not be had for less. */
static void a_plain_packet_for_a_sealed_connection_is_refused(void **state) {
    uint8_t bytes[40];
    uint32_t number;
    (void)state;
    seal_hooks.plain_allowed = 1;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (number = 0; number < 50; number++) {
        cci__dconn_t *conn = dconn_of(at_server);
        memset(bytes, 0, sizeof bytes);
        cci_conn_write_header(bytes, CCI__PKT_DATA, 0, conn->conn.index, conn->conn.token, conn->conn.peer_index, number);
        bytes[24] = CCI__FRAME_MESSAGE;
        cci__store16(bytes + 26, 4);
        bytes[3] = number % 2 ? CCI__HEADER_SEALED : 0;
        sim_inject(number_at(client), number_at(server), bytes, 36 + number % 5);
        bytes[1] = number % 3 ? CCI__PKT_CONFIRM : CCI__PKT_CONFIRMED;
        sim_inject(number_at(client), number_at(server), bytes, 24);
    }
    run(1000);
    assert_int_equal(received, 0);
    assert_int_equal(dgram_of(server)->packets_mismatched, 50);
    assert_int_equal(dgram_of(server)->packets_forged, 50);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&received, 1);
}

/* ---- resets ---- */

static void a_reset_that_an_observer_could_make_does_not_end_a_sealed_connection(void **state) {
    uint8_t bytes[32];
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < 3; i++) {
        cci__dconn_t *conn = dconn_of(at_server); /* what the server sends names the client's token */
        memset(bytes, 0, sizeof bytes);
        cci_conn_write_header(bytes, CCI__PKT_RESET, 0, conn->conn.index, conn->conn.peer_token, conn->conn.peer_index, 0);
        sim_inject(number_at(client), number_at(server), bytes, i == 0 ? 24 : i == 1 ? 31 : 32);
    }
    run(100);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&received, 1);
}

static void the_peer_of_a_sealed_connection_that_was_closed_learns_it_at_once(void **state) {
    uint64_t since_ns;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    since_ns = sim.now_ns;
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&sent, 1);
    assert_int_equal(failed, 1);
    assert_true(sim.now_ns - since_ns < 1000000000u);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(cci_send(at_server, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&sent, 2);
    assert_int_equal(failed, 2);
    assert_true(sim.now_ns - since_ns < 2000000000u);
}

static int resets_seen;

static int count_resets(packet_t *packet) {
    resets_seen += packet->bytes[1] == CCI__PKT_RESET;
    return packet->bytes[1] != CCI__PKT_ACCEPT;
}

/* Otherwise somebody could ask for what ends the connection before it is open, and keep it. */
static void the_secret_of_resets_is_not_told_while_a_connection_is_being_made(void **state) {
    uint8_t bytes[48];
    cci_conn_t *conn;
    int i;
    (void)state;
    open_both();
    resets_seen = 0;
    tamper = count_resets;
    ask(CCI_CONN_ATTR_RO, NULL, 0, 5);
    run(20);
    conn = cci_conn_at(&dgram_of(client)->base.conns, 0);
    assert_int_equal(conn->state, CCI_CONN_CONNECTING);
    memset(bytes, 0, sizeof bytes);
    for (i = 0; i < 4; i++) {
        cci_conn_write_header(bytes, CCI__PKT_DATA, 0, conn->index, conn->token, 0, 0);
        bytes[3] = i % 2 ? CCI__HEADER_SEALED : 0;
        sim_inject(number_at(server), number_at(client), bytes, sizeof bytes);
        run(20);
    }
    assert_int_equal(resets_seen, 0);
    /* the same for one that is not there is answered */
    cci_conn_write_header(bytes, CCI__PKT_DATA, 0, conn->index, conn->token + 1, 0, 0);
    sim_inject(number_at(server), number_at(client), bytes, sizeof bytes);
    run(20);
    assert_int_equal(resets_seen, 1);
}

/* ---- a peer that is gone ---- */

static int silenced; /* 1: the server's packets are lost */

static int record_and_silence(packet_t *packet) {
    if (packet->from != number_at(server))
        return 1;
    if (silenced)
        return 0;
    return record(packet);
}

static void packets_that_are_repeated_do_not_pass_for_a_peer_that_is_gone(void **state) {
    uint32_t keepalive_us = 100000, i;
    cci_rma_handle_t *local, *remote;
    (void)state;
    tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
    assert_non_null(tape);
    tape_count = 0;
    silenced = 0;
    open_both();
    register_both(&local, &remote);
    tamper = record_and_silence;
    connect_both(CCI_CONN_ATTR_RO);
    exchange(local, remote);
    assert_int_equal(cci_set_opt(at_client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    silenced = 1;
    for (i = 0; i < 2000 && keepalives == 0; i++) {
        replay(i % tape_count);
        sim_advance_to(sim.now_ns + 1000000);
        run(4);
    }
    assert_int_equal(keepalives, 1);
    free(tape);
}

/* ---- the ends of what there is ---- */

/* The header has the low 32 bits of a number only. */
static void numbers_beyond_32_bits_make_other_nonces(void **state) {
    int i, round;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    for (round = 0; round < 3; round++) {
        for (i = 0; i < 5; i++) {
            assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
            run_until(&sent, round * 5 + i + 1);
        }
        run(2000);
        dconn_of(at_client)->hot->rel.next_number = (uint64_t)(round + 1) << 32;
        dconn_of(at_server)->hot->rel.floor_number = (uint64_t)(round + 1) << 32;
        dconn_of(at_server)->hot->rel.number_count = 0;
    }
    assert_int_equal(received, 15);
    assert_int_equal(failed, 0);
    assert_int_equal(seal_state.repeats, 0);
}

static void a_connection_whose_numbers_are_used_up_breaks_and_says_so(void **state) {
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&sent, 1);
    run(2000);
    dconn_of(at_client)->hot->rel.next_number = CCI__SEAL_NUMBERS - 3;
    dconn_of(at_server)->hot->rel.floor_number = CCI__SEAL_NUMBERS - 3;
    dconn_of(at_server)->hot->rel.number_count = 0;
    for (i = 0; i < 3; i++) {
        assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
        run_until(&received, i + 2);
        run_until(&sent, i + 2);
    }
    assert_int_equal(failed, 0);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_SUCCESS);
    run_until(&sent, 5);
    assert_int_equal(failed, 1);
    assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_ERR_DISCONNECTED);
    assert_int_equal(received, 4);
}

static void a_key_that_must_not_be_used_any_more_breaks_the_connection(void **state) {
    static const cci_conn_attribute_t kinds[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
    int i;
    (void)state;
    open_both();
    for (i = 0; i < 3; i++) {
        connect_both(kinds[i]);
        run(2000);
        seal_state.fails = 1;
        (void)cci_send(at_client, "hello", 5, NULL, 0);
        run(100);
        assert_int_equal(sent, i + 1);
        assert_int_equal(failed, i + 1);
        assert_int_equal(cci_send(at_client, "hello", 5, NULL, 0), CCI_ERR_DISCONNECTED);
        seal_state.fails = 0;
    }
    assert_int_equal(received, 0);
}

static const void *worn_key;             /* the client's */
static uint32_t seals_left, seals_after; /* before the hook refuses once, and how often it was asked after that */

static int seal_that_refuses_once(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                                  uint32_t head_length, uint8_t *bytes, uint32_t length) {
    if (key == worn_key && seals_left == 0)
        seals_after++;
    else if (key == worn_key && --seals_left == 0)
        return -1;
    return seal_packet(user, key, nonce, head, head_length, bytes, length);
}

static void a_key_that_is_worn_out_in_the_middle_of_a_burst_seals_nothing_more(void **state) {
    static uint8_t bytes[1000];
    int i;
    (void)state;
    open_both();
    connect_both(CCI_CONN_ATTR_RU);
    run(2000);
    worn_key = dconn_of(at_client)->peer.key;
    seals_left = 4;
    seals_after = 0;
    seal_hooks.seal = seal_that_refuses_once;
    for (i = 0; i < 50; i++)
        assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    run_until(&sent, 50);
    run(2000);
    assert_true(failed > 40);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run(2000);
    seal_hooks.seal = seal_packet;
    assert_int_equal(seals_left, 0);
    assert_int_equal(seals_after, 0);
}

/* ---- what goes to addresses that are not proven ---- */

static uint64_t to_moved_bytes, from_moved_bytes;

/* A large packet comes from a new address and nothing after it: the challenges are not answered. */
static int count_moved(packet_t *packet) {
    if (packet->from == number_at(server)) {
        to_moved_bytes += packet->to_moved ? packet->length : 0;
        return !packet->to_moved;
    }
    if (from_moved_bytes > 0)
        return 0;
    from_moved_bytes = packet->length;
    return 1;
}

static void challenges_count_with_all_that_is_added_to_them(void **state) {
    static uint8_t bytes[1400];
    uint64_t until_ns;
    (void)state;
    crc_of[0] = crc_of[1] = 1;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
    run(2000);
    to_moved_bytes = from_moved_bytes = 0;
    tamper = count_moved;
    move_to(client, 1);
    assert_int_equal(cci_send(at_client, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
    until_ns = sim.now_ns + UINT64_C(200000000000);
    while (sim.now_ns < until_ns)
        run(1);
    assert_true(from_moved_bytes > 1000);
    assert_true(to_moved_bytes > 2 * from_moved_bytes); /* it does try */
    assert_true(to_moved_bytes <= 3 * from_moved_bytes);
}

#define FIRST_VICTIM 5000u
#define VICTIMS 4000u

static uint32_t to_victim[VICTIMS], from_victim[VICTIMS];

static int count_victims(packet_t *packet) {
    if (packet->from == number_at(server) && packet->to - FIRST_VICTIM < VICTIMS)
        to_victim[packet->to - FIRST_VICTIM] += packet->length;
    return tape ? record(packet) : 1;
}

static void send_as(uint32_t victim, uint8_t *bytes, uint32_t length, int crc) {
    if (crc && length >= 28)
        cci__store32(bytes + length - 4, cci__crc32c(0, bytes, length - 4));
    from_victim[victim] += length;
    sim_inject(FIRST_VICTIM + victim, number_at(server), bytes, length);
    if (victim % 8 == 0)
        run(2);
}

/* Packets of all types and lengths, and captured ones, come in the names of others. */
static void nobody_gets_more_bytes_than_came_in_its_name_when_packets_grow(void **state) {
    uint8_t bytes[256];
    uint32_t round, type, length, i, answered;
    (void)state;
    for (round = 0; round < 4; round++) {
        uint32_t victim = 0;
        int crc = (round & 1) != 0;
        uint8_t flags = (uint8_t)((crc ? CCI__HEADER_CRC : 0) | (round & 2 ? CCI__HEADER_SEALED : 0));
        memset(to_victim, 0, sizeof to_victim);
        memset(from_victim, 0, sizeof from_victim);
        crc_of[0] = crc_of[1] = (uint32_t)crc;
        open_both();
        tape = (packet_t *)malloc(MAX_PACKETS * sizeof *tape);
        assert_non_null(tape);
        tape_count = 0;
        tamper = count_victims;
        connect_both(CCI_CONN_ATTR_RO);
        for (type = 0; type < 16; type++) {
            for (length = 24; length <= 160; length++) {
                memset(bytes, 0, sizeof bytes);
                cci_conn_write_header(bytes, (uint8_t)type, 0, (uint32_t)sim_below(4), sim_below(1u << 30) + 1, 7, 7);
                bytes[3] = flags;
                if (type == CCI__PKT_REQUEST)
                    bytes[25] = 1; /* max_send_size 256, no data */
                send_as(victim++, bytes, length, crc);
            }
        }
        for (i = 0; i < tape_count && tape[i].length <= sizeof bytes && victim < VICTIMS; i++) {
            memcpy(bytes, tape[i].bytes, tape[i].length);
            send_as(victim++, bytes, tape[i].length, crc);
        }
        run(20000);
        for (i = answered = 0; i < victim; i++) {
            assert_true(to_victim[i] <= from_victim[i]);
            answered += to_victim[i] > 0;
        }
        assert_true(answered > 50);
        tamper = NULL;
        free(tape);
        tape = NULL;
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
        client = server = NULL;
    }
}

/* ---- what sealing must not disturb ---- */

static void sealed_traffic_survives_a_path_whose_mtu_falls(void **state) {
    cci_rma_handle_t *local, *remote;
    int i;
    (void)state;
    sim.mtu = 8192;
    sim.base_mtu = 1200;
    crc_of[0] = crc_of[1] = 1;
    open_both();
    register_both(&local, &remote);
    connect_both(CCI_CONN_ATTR_RO);
    for (i = 0; i < 20 && (i == 0 || dconn_of(at_client)->hot->rel.mtu < 1504); i++)
        exchange(local, remote);
    assert_int_equal(dconn_of(at_client)->hot->rel.mtu, 1504); /* what the longest message takes */
    sim.path_mtu = 1300;
    exchange(local, remote);
    assert_true(dconn_of(at_client)->hot->rel.mtu <= 1300 - SEAL_TAG_SIZE - CCI__CRC_SIZE);
    assert_true(sim.oversized_count > 0);
}

static void request_data_in_pieces_are_sealed_one_by_one(void **state) {
    static uint8_t data[CCI_CONN_REQ_LEN];
    uint32_t i;
    (void)state;
    sim.mtu = 512;
    open_both();
    for (i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i + i / 256);
    ask(CCI_CONN_ATTR_RO, data, sizeof data, 10);
    run_until(&requests, 1);
    assert_int_equal(message_length, sizeof data);
    assert_memory_equal(message, data, sizeof data);
    run_until(&accepts, 1);
}

static int keys_at_cookie, cookies;

static int watch_cookies(packet_t *packet) {
    if (packet->bytes[1] == CCI__PKT_COOKIE) {
        cookies++;
        keys_at_cookie = seal_state.given;
        assert_int_equal(dgram_of(server)->base.conns.used, 0);
    }
    return 1;
}

static void a_sealed_request_is_heard_only_from_a_proven_address(void **state) {
    (void)state;
    open_both();
    cookies = 0;
    tamper = watch_cookies;
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cookies, 1);
    assert_int_equal(keys_at_cookie, 1); /* the client's */
}

static int secrets_seen;

static int look_for_secret(packet_t *packet) {
    secrets_seen += memmem(packet->bytes, packet->length, "secret", 6) != NULL;
    return 1;
}

static void neither_messages_nor_request_data_can_be_read_on_the_way(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 2; i++) { /* first without, since the test must be able to fail */
        seal_hooks.plain_allowed = i == 0;
        seal_state.secret_of_client = (uint8_t)i;
        secrets_seen = 0;
        tamper = look_for_secret;
        open_both();
        ask(CCI_CONN_ATTR_RO, "a secret", 8, 10);
        run_until(&accepts, i + 1);
        run_until(&connects, i + 1);
        assert_int_equal(cci_send(at_client, "secret", 6, NULL, 0), CCI_SUCCESS);
        run_until(&received, i + 1);
        assert_memory_equal(message, "secret", 6);
        assert_true(i == 0 ? secrets_seen >= 2 : secrets_seen == 0);
        tamper = NULL;
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    }
}

static void a_group_is_sealed_with_its_key(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        int wanted = connects + 2;
        cci_connection_t *sender;
        open_both();
        assert_int_equal(cci_connect(server, "sim://g7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_SUCCESS);
        seal_state.secret_of_server = (uint8_t)(1 + i); /* which is that of groups */
        assert_int_equal(cci_connect(client, "sim://g7", NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL), CCI_SUCCESS);
        serve(server);
        serve(client);
        run_until(&connects, wanted);
        sender = at_client;
        assert_int_equal(cci_send(sender, "all", 3, NULL, 0), CCI_SUCCESS);
        run(100);
        assert_int_equal(cci_send(sender, "of you", 6, NULL, 0), CCI_SUCCESS);
        run(1000);
        assert_int_equal(received, 2); /* and none with the other key */
        assert_int_equal(dgram_of(server)->packets_forged, i == 0 ? 0 : 2);
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    }
}

/* What a group is sent without a seal, or with a number that no sender may reach, is dropped before it is looked at. */
static void a_group_that_is_sealed_hears_nothing_that_is_not(void **state) {
    uint8_t packet[CCI_REL_HEADER + 16 + SEAL_TAG_SIZE];
    uint64_t mismatched;
    int i;
    (void)state;
    open_both();
    assert_int_equal(cci_connect(server, "sim://g7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_SUCCESS);
    run_until(&connects, 1);
    mismatched = dgram_of(server)->packets_mismatched;
    for (i = 0; i < 3; i++) {
        sim_datagram_t *datagram = (sim_datagram_t *)calloc(1, sizeof *datagram + sizeof packet);
        assert_non_null(datagram);
        memset(packet, 0, sizeof packet);
        cci_conn_write_header(packet, CCI__PKT_GROUP, 0, i == 1 ? 0x01000000u : 0, 88, 0, 1);
        packet[3] = i == 0 ? 0 : CCI__HEADER_SEALED;
        packet[CCI_REL_HEADER] = CCI__FRAME_MESSAGE;
        packet[CCI_REL_HEADER + 2] = 1;
        sim_make_address(&datagram->from, 1, 4242);
        sim_make_address(&datagram->to, 2, 7);
        datagram->is_group = 1;
        datagram->length = sizeof packet;
        memcpy(datagram->bytes, packet, sizeof packet);
        sim_launch(datagram);
        run(200);
        assert_int_equal(dgram_of(server)->packets_mismatched, mismatched + 1);
        assert_int_equal(dgram_of(server)->packets_forged, i == 2); /* only that one was tried */
        assert_int_equal(received, 0);
    }
}

static void cci_setup_takes_only_hooks_that_are_whole(void **state) {
    cci_setup_t setup;
    cci_seal_t wrong;
    int i;
    (void)state;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    for (i = 0; i < 6; i++) {
        wrong = seal_hooks;
        if (i == 0) wrong.key = NULL;
        if (i == 1) wrong.seal = NULL;
        if (i == 2) wrong.open = NULL;
        if (i == 3) wrong.tag_size = 0;
        if (i == 4) wrong.tag_size = 12;
        if (i == 5) wrong.tag_size = 72;
        memset(&setup, 0, sizeof setup);
        setup.seal = &wrong;
        assert_int_equal(cci_setup(&setup), CCI_EINVAL);
    }
    assert_int_equal(begin_with(NULL), 0);
}

static void an_idle_connection_costs_no_more_than_256_bytes(void **state) {
    (void)state;
    assert_true(sizeof(cci__dconn_t) <= 256);
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define SEALED(test) cmocka_unit_test_setup_teardown(test, begin_sealed, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        HERE(a_wrong_bit_anywhere_in_a_packet_is_noticed_and_the_message_arrives_all_the_same),
        HERE(sides_that_do_not_agree_on_the_checksum_never_connect_and_say_so_once),
        HERE(a_link_that_carries_256_bytes_and_a_checksum_is_good_enough),
        HERE(packets_with_a_checksum_fill_the_path_and_do_not_pass_its_mtu),
        HERE(packets_without_a_checksum_have_no_flags_and_nothing_behind_them),
        SEALED(a_wrong_bit_anywhere_in_a_sealed_packet_is_noticed_and_the_connection_lives),
        SEALED(a_wrong_bit_in_the_handshake_of_a_sealed_connection_makes_no_other_connection_of_it),
        SEALED(the_name_in_a_sealed_request_can_not_be_changed_on_the_way),
        SEALED(a_rejected_request_is_sealed_too),
        SEALED(what_was_captured_has_no_effect_when_it_is_sent_again),
        SEALED(an_old_request_is_not_heard_again),
        SEALED(a_request_is_heard_once_after_every_delay),
        SEALED(nonces_never_repeat_over_losses_connections_and_restarts),
        SEALED(nonces_never_repeat_when_addresses_change_or_come_back),
        SEALED(nothing_is_sealed_or_heard_twice_after_a_connection_was_idle),
        SEALED(a_server_whose_chance_repeats_is_saved_by_its_clients_but_not_both_sides),
        SEALED(a_nonce_that_repeats_would_be_noticed),
        SEALED(with_a_wrong_key_a_connection_times_out_and_the_log_says_why),
        SEALED(a_client_without_a_key_can_not_connect_and_a_server_without_one_does_not_answer),
        SEALED(a_side_that_seals_and_one_that_does_not_never_connect),
        SEALED(where_it_is_allowed_sealed_and_plain_connections_live_side_by_side),
        SEALED(a_plain_packet_for_a_sealed_connection_is_refused),
        SEALED(a_reset_that_an_observer_could_make_does_not_end_a_sealed_connection),
        SEALED(a_close_that_an_observer_could_make_does_not_end_a_sealed_connection),
        SEALED(the_peer_of_a_sealed_connection_that_was_closed_learns_it_at_once),
        SEALED(the_secret_of_resets_is_not_told_while_a_connection_is_being_made),
        SEALED(packets_that_are_repeated_do_not_pass_for_a_peer_that_is_gone),
        SEALED(numbers_beyond_32_bits_make_other_nonces),
        SEALED(a_connection_whose_numbers_are_used_up_breaks_and_says_so),
        SEALED(a_key_that_must_not_be_used_any_more_breaks_the_connection),
        SEALED(a_key_that_is_worn_out_in_the_middle_of_a_burst_seals_nothing_more),
        SEALED(challenges_count_with_all_that_is_added_to_them),
        SEALED(nobody_gets_more_bytes_than_came_in_its_name_when_packets_grow),
        SEALED(sealed_traffic_survives_a_path_whose_mtu_falls),
        SEALED(request_data_in_pieces_are_sealed_one_by_one),
        SEALED(a_sealed_request_is_heard_only_from_a_proven_address),
        SEALED(neither_messages_nor_request_data_can_be_read_on_the_way),
        SEALED(a_group_is_sealed_with_its_key),
        SEALED(a_group_that_is_sealed_hears_nothing_that_is_not),
        HERE(cci_setup_takes_only_hooks_that_are_whole),
        HERE(an_idle_connection_costs_no_more_than_256_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
