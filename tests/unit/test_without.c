/* test_without.c - what is left out is refused, and the peer may do it all the same.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Two endpoints of CCI_NO_SEAL, _MULTICAST, _MIGRATION and _DEVICES on the simulated network. A client or server that is left
 * out talks to all other profiles in small.c.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_NO_SEAL
#define CCI_NO_MULTICAST
#define CCI_NO_MIGRATION
#define CCI_NO_DEVICES
#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

#define MS UINT64_C(1000000)

static cci_endpoint_t *server, *client;
static cci_connection_t *at_server, *at_client;
static uint32_t received; /* messages, by either */

static void work(cci_endpoint_t *endpoint) {
    cci_event_t *event;
    while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        if (event->type == CCI_EVENT_ACCEPT) at_server = event->accept.connection;
        if (event->type == CCI_EVENT_CONNECT) at_client = event->connect.connection;
        received += event->type == CCI_EVENT_RECV;
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void both_work(uint64_t for_ns) {
    const uint64_t until_ns = sim.now_ns + for_ns;
    while (sim.now_ns < until_ns) {
        work(server);
        work(client);
        sim_advance_to(sim.now_ns + MS / 4);
    }
}

static sim_endpoint_t *sim_of(cci_endpoint_t *endpoint) {
    return (sim_endpoint_t *)((cci__dgram_t *)(void *)endpoint)->base.handle;
}

static void open_both(void) {
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, "1", &server, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, "2", &client, NULL), CCI_SUCCESS);
}

static void connect_both(void) {
    assert_int_equal(cci_connect(client, "link://1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    both_work(20 * MS);
    assert_non_null(at_client);
    assert_non_null(at_server);
}

static int begin(void **state) {
    (void)state;
    sim_reset();
    at_server = at_client = NULL;
    received = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    if (client) (void)cci_destroy_endpoint(client);
    if (server) (void)cci_destroy_endpoint(server);
    server = client = NULL;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    return cci_setup(NULL) == CCI_SUCCESS ? 0 : -1;
}

/* ---- sealed packets ---- */

static void *no_key(void *user, cci_seal_peer_t *peer) {
    (void)user, (void)peer;
    return NULL;
}

static int same(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head, uint32_t head_length,
                uint8_t *bytes, uint32_t length) {
    (void)user, (void)key, (void)nonce, (void)head, (void)head_length, (void)bytes, (void)length;
    return 0;
}

static void hooks_for_encryption_are_refused_and_never_ignored(void **state) {
    cci_seal_t seal = {16, 0, NULL, no_key, NULL, same, same};
    cci_setup_t setup;
    (void)state;
    memset(&setup, 0, sizeof setup);
    setup.seal = &seal;
    assert_int_equal(cci_setup(&setup), CCI_ERR_NOT_IMPLEMENTED);
    assert_null(cci_seal_hooks());
}

static void sealed_packets_and_those_of_groups_are_dropped(void **state) {
    uint8_t packet[96];
    uint32_t type, flags;
    uint64_t sent;
    (void)state;
    open_both();
    connect_both();
    both_work(1000 * MS);
    sent = sim.sent_count;
    for (type = 0; type < 16; type++) {
        for (flags = 0; flags < 8; flags += 2) {
            if (flags == 0 && type != CCI__PKT_GROUP) continue;
            memset(packet, 0, sizeof packet);
            cci_conn_write_header(packet, (uint8_t)type, 0, ((cci_conn_t *)(void *)at_server)->index,
                                  ((cci_conn_t *)(void *)at_server)->token, 0, 0);
            packet[3] = (uint8_t)flags;
            sim_inject(2, 1, packet, sizeof packet);
            both_work(10 * MS);
        }
    }
    assert_int_equal(received, 0);
    assert_int_equal(sim.sent_count, sent); /* nobody answers */
    assert_int_equal(cci_send(at_client, "x", 1, NULL, 0), CCI_SUCCESS);
    both_work(20 * MS);
    assert_int_equal(received, 1);
}

/* ---- groups ---- */

static void groups_are_refused(void **state) {
    cci_caps_t caps;
    (void)state;
    open_both();
    assert_int_equal(cci_connect(client, "link://g5", NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_connect(client, "link://g5", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(client, CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_int_equal(caps.can & (CCI_CAN_MULTICAST | CCI_CAN_SEAL), 0);
}

/* ---- a peer whose address changes ---- */

/* What it sends is taken, as a connection without encryption takes it; what goes to it goes to where it was. */
static void peers_are_not_followed(void **state) {
    const cci_link_addr_t *before;
    cci_link_addr_t old;
    (void)state;
    open_both();
    connect_both();
    before = &((cci_conn_t *)(void *)at_server)->peer;
    old = *before;
    sim_of(client)->address.bytes[20]++;
    assert_int_equal(cci_send(at_client, "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    both_work(200 * MS);
    assert_int_equal(received, 1);
    assert_memory_equal(before, &old, sizeof old);
    sim_of(client)->address = old; /* it is back */
    assert_int_equal(cci_send(at_client, "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    assert_int_equal(cci_send(at_server, "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    both_work(3000 * MS);
    assert_int_equal(received, 3);
}

/* A peer that follows this side asks for proof, and gets it. */
static void a_challenge_is_answered(void **state) {
    uint8_t packet[CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME];
    const cci_conn_t *conn;
    uint64_t sent;
    (void)state;
    open_both();
    connect_both();
    both_work(1000 * MS);
    conn = (const cci_conn_t *)(void *)at_server;
    memset(packet, 0, sizeof packet);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, conn->index, conn->token, conn->peer_index, 1000);
    packet[CCI__HEADER_SIZE] = CCI__FRAME_CHALLENGE;
    cci__store64(packet + CCI__HEADER_SIZE + 8, 77);
    sent = sim.sent_count;
    sim_inject(2, 1, packet, sizeof packet);
    both_work(10 * MS);
    assert_int_equal(sim.sent_count, sent + 1); /* the RESPONSE */
}

/* ---- devices ---- */

static void there_are_no_devices(void **state) {
    cci_device_t *const *devices = NULL;
    uint32_t caps;
    (void)state;
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_non_null(devices);
    assert_null(devices[0]);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_ENODEV);
    assert_int_equal(cci_register_transport(&sim_transport), CCI_ENOBUFS);
    assert_int_equal(cci_deregister_transport(&sim_transport), CCI_ERR_NOT_FOUND);
    assert_null(cci_transport_reason(0, NULL));
    open_both(); /* these can be made all the same */
    connect_both();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    static const struct CMUnitTest tests[] = {
        TEST(hooks_for_encryption_are_refused_and_never_ignored),
        TEST(sealed_packets_and_those_of_groups_are_dropped),
        TEST(groups_are_refused),
        TEST(peers_are_not_followed),
        TEST(a_challenge_is_answered),
        TEST(there_are_no_devices),
    };
    return cmocka_run_group_tests_name("what is left out", tests, NULL, NULL);
}
