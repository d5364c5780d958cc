/* test_turns.c - an endpoint with memory for the traffic of one connection serves several: they take turns, and each gets all of
 * its messages, also where packets are lost, or the program keeps its events for a while.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Three endpoints of CCI_SMALL on the simulated network. What takes its turn may have gaps in what has come: they must be filled
 * before another's turn can come.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_SMALL
#define CCI_SMALL_CONNECTIONS 2
#define CCI_SMALL_ACTIVE 1
#define CCI_SMALL_PACKETS 64 /* of the clients */
#define CCI_SMALL_SENDS 64
#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

#define MS UINT64_C(1000000)

enum { CLIENTS = 2, MESSAGES = 500, HELD = 3 };

static cci_endpoint_t *host, *client[CLIENTS];
static cci_connection_t *to_host[CLIENTS];
static uint32_t sent[CLIENTS], got[CLIENTS], ended;
static uint8_t came[CLIENTS][MESSAGES]; /* how often */
static cci_event_t *held[HELD];
static uint64_t held_until_ns[HELD];

static void take_message(const cci_event_recv_t *event, int is_ordered) {
    uint32_t words[2];
    assert_true(event->len >= sizeof words);
    memcpy(words, event->ptr, sizeof words);
    assert_true(words[0] < CLIENTS && words[1] < MESSAGES);
    assert_int_equal(came[words[0]][words[1]]++, 0);
    if (is_ordered) assert_int_equal(words[1], got[words[0]]);
    got[words[0]]++;
}

/* The host's program keeps each message for so long, if it has a place for it. */
static void serve(int is_ordered, uint64_t hold_ns) {
    cci_event_t *event;
    int i;
    for (i = 0; i < HELD; i++) {
        if (held[i] && held_until_ns[i] <= sim.now_ns) {
            assert_int_equal(cci_return_event(held[i]), CCI_SUCCESS);
            held[i] = NULL;
        }
    }
    while (cci_get_event(host, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        assert_true(event->type != CCI_EVENT_DISCONNECT);
        for (i = 0; i < HELD && held[i]; i++) {
        }
        if (event->type == CCI_EVENT_RECV) {
            take_message(&event->recv, is_ordered);
            if (hold_ns > 0 && i < HELD) {
                held[i] = event;
                held_until_ns[i] = sim.now_ns + hold_ns;
                continue;
            }
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void ask(uint32_t i) {
    static uint32_t words[110];
    cci_event_t *event;
    while (to_host[i] && sent[i] < MESSAGES) {
        words[0] = i;
        words[1] = sent[i];
        if (cci_send(to_host[i], words, 300 + sent[i] % 140 / 4 * 4, NULL, 0) != CCI_SUCCESS) break;
        sent[i]++;
    }
    while (cci_get_event(client[i], &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT) {
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            to_host[i] = event->connect.connection;
        }
        if (event->type == CCI_EVENT_SEND) {
            assert_int_equal(event->send.status, CCI_SUCCESS);
            ended++;
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void all_come(cci_conn_attribute_t attribute, uint32_t loss_per_mille, uint64_t hold_ns) {
    static const char *const services[CLIENTS] = {"2", "3"};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    char *uri;
    uint32_t i;
    uint64_t until_ns;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    memset(came, 0, sizeof came);
    memset(to_host, 0, sizeof to_host);
    ended = 0;
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, "1", &host, NULL), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(host, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(host, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    for (i = 0; i < CLIENTS; i++) {
        assert_int_equal(cci_create_endpoint_on_link(&sim_link, services[i], &client[i], NULL), CCI_SUCCESS);
        assert_int_equal(cci_connect(client[i], uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    }
    sim.loss_per_mille = loss_per_mille;
    for (until_ns = sim.now_ns + 300000 * MS; ended < CLIENTS * MESSAGES; sim_advance_to(sim.now_ns + MS / 4)) {
        assert_true(sim.now_ns < until_ns);
        serve(attribute == CCI_CONN_ATTR_RO, hold_ns);
        for (i = 0; i < CLIENTS; i++) ask(i);
    }
    for (i = 0; i < CLIENTS; i++) assert_int_equal(got[i], MESSAGES);
    for (i = 0; i < HELD; i++) {
        if (held[i]) assert_int_equal(cci_return_event(held[i]), CCI_SUCCESS);
        held[i] = NULL;
    }
    for (i = 0; i < CLIENTS; i++) assert_int_equal(cci_destroy_endpoint(client[i]), CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(host), CCI_SUCCESS);
    free(uri);
    sim.loss_per_mille = 0;
}

static void test_turns_end_where_packets_are_lost(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    uint32_t i, loss;
    (void)state;
    for (i = 0; i < 2; i++) {
        for (loss = 0; loss <= 100; loss += 50) all_come(attributes[i], loss, 0);
    }
}

static void test_turns_end_where_the_program_keeps_its_events(void **state) {
    (void)state;
    all_come(CCI_CONN_ATTR_RO, 0, 10 * MS);
    all_come(CCI_CONN_ATTR_RU, 0, 10 * MS);
    all_come(CCI_CONN_ATTR_RU, 50, 10 * MS);
}

static void *take_memory(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void give_memory(void *user, void *memory) {
    (void)user;
    free(memory);
}

static int random_bytes(void *user, void *bytes, size_t size) {
    (void)user;
    while (size-- > 0) ((uint8_t *)bytes)[size] = (uint8_t)sim_below(256);
    return 0;
}

static int begin(void **state) {
    cci_setup_t hooks;
    (void)state;
    memset(&hooks, 0, sizeof hooks);
    hooks.alloc = take_memory;
    hooks.release = give_memory;
    hooks.random = random_bytes;
    sim_reset();
    sim.mtu = 512;
    sim.delay_ns = MS;
    return cci_setup(&hooks) == CCI_SUCCESS ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_end_where_packets_are_lost),
        cmocka_unit_test(test_turns_end_where_the_program_keeps_its_events),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
