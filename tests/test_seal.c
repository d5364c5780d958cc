/* test_seal.c - what protects packets: the checksum of links that ask for it.
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

#include "sim.h"

/* ---- a link that can be looked into --------------------------------------------------------------------------------- */

typedef struct packet {
    uint8_t bytes[2048];
    uint32_t length, from, to;
} packet_t;

static cci_link_t open_link;
static cci_transport_t transport;
static const cci_transport_t *transports[2];

static uint32_t crc_of[2];                  /* of the first endpoint that is opened, the client, and of the others */
static int opened;
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
static cci_connection_t *at_client, *at_server; /* the newest connection */
static int connects, connect_status, requests, accepts, received, sent, failed;
static uint32_t message_length;
static uint8_t message[8192];

static cci__dgram_t *dgram_of(cci_endpoint_t *endpoint) {
    return (cci__dgram_t *)(void *)endpoint;
}

static uint32_t number_at(cci_endpoint_t *endpoint) {
    return ((sim_endpoint_t *)dgram_of(endpoint)->handle)->number;
}

static void take_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        requests++;
        assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        accepts++;
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

static void open_both(void) {
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
}

static int begin(void **state) {
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    sim_reset();
    crc_of[0] = crc_of[1] = 0;
    opened = warnings = 0;
    tamper = NULL;
    connects = connect_status = requests = accepts = received = sent = failed = 0;
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
    return cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS;
}

static int end(void **state) {
    (void)state;
    tamper = NULL;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(sim.endpoint_count, 0);
    sim_reset();
    return 0;
}

/* ---- the checksum --------------------------------------------------------------------------------------------------- */

static uint32_t flip_bit; /* of the next DATA packet of the client; beyond its end: none */
static int flipped;

static int flip_one(packet_t *packet) {
    if (packet->from == number_at(client) && packet->bytes[1] == CCI__PKT_DATA && flip_bit < packet->length * 8) {
        packet->bytes[flip_bit / 8] ^= (uint8_t)(1u << flip_bit % 8);
        flip_bit = UINT32_MAX;
        flipped++;
    }
    return 1;
}

static void a_wrong_bit_anywhere_in_a_packet_is_noticed_and_the_message_arrives_all_the_same(void **state) {
    uint32_t bit, bits = (CCI__HEADER_SIZE + 8 + 5 + CCI__CRC_SIZE) * 8;
    (void)state;
    crc_of[0] = crc_of[1] = 1;
    open_both();
    connect_both(CCI_CONN_ATTR_RO);
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
    assert_int_equal(((cci__dconn_t *)(void *)at_client)->active->rel.mtu, 1464); /* and 4 bytes, of 1,472 */
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

#define HERE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        HERE(a_wrong_bit_anywhere_in_a_packet_is_noticed_and_the_message_arrives_all_the_same),
        HERE(sides_that_do_not_agree_on_the_checksum_never_connect_and_say_so_once),
        HERE(packets_with_a_checksum_fill_the_path_and_do_not_pass_its_mtu),
        HERE(packets_without_a_checksum_have_no_flags_and_nothing_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
