/* test_tiny.c - the engine of CCI_TINY, alone: endpoints of it talk to each other in virtual time.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * small.c lets it talk to all other profiles. Here are the ends of connections, what is refused, and bytes of strangers.
 * test_tiny_alone.c runs what needs no handshake with connections that both sides know of, test_tiny_sealed.c all with packets
 * that are sealed, and what only such connections have.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_TINY
#define CCI_TINY_ENDPOINTS 3
#define CCI_TINY_SENDS 4
#ifdef CCI_TINY_SEAL
#define CCI_TINY_MTU 280
#define LINE_MTU 272u /* with a tag */
#else
#define LINE_MTU 256u
#endif
#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/seal.h"

#define QUEUE 64u
#define MS UINT64_C(1000000)

/* ---- a line between endpoints "0", "1" and "2" ------------------------------------------------------------------------ */

static struct datagram {
    uint8_t bytes[CCI_TINY_MTU], from, to;
    uint32_t length;
} queue[QUEUE];
static uint32_t queued, bad, lost, is_cut, is_full; /* per cent that are changed, and lost; nothing passes; no room */
static uint32_t dead, sent_to[3];             /* sides that hear and say nothing, as bits; datagrams sent to each */
static uint64_t clock_ns, random_state;
static uint32_t probe_idle_s;
static uint8_t last[CCI_TINY_MTU]; /* what was sent last */
static uint8_t recorded[CCI_TINY_MTU]; /* the last packet of `record_type` to the side `record_to` */
static uint32_t recorded_length, record_type, record_to;
static cci_endpoint_t *side[3];

static uint32_t below(uint32_t most) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % most;
}

static int chance(void *user, void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (count-- > 0) *at++ = (uint8_t)below(256);
    return 0;
}

static int line_open(cci_device_t *device, const char *service, int want, void **link, cci_link_info_t *info) {
    static uint8_t numbers[3] = {0, 1, 2};
    (void)device, (void)want;
    *link = &numbers[service[0] - '0'];
    info->mtu = LINE_MTU; /* without a checksum: whatever is changed on the way is looked at */
    info->probe_idle_s = probe_idle_s;
    return CCI_SUCCESS;
}

static void line_close(void *link) {
    (void)link;
}

static void put(uint8_t from, uint8_t to, const uint8_t *bytes, uint32_t length) {
    if (queued == QUEUE || is_cut || ((dead >> from | dead >> to) & 1)) return;
    memcpy(queue[queued].bytes, bytes, length);
    queue[queued].length = length;
    queue[queued].from = from;
    queue[queued].to = to;
    queued++;
}

/* Changes what comes behind index and token, so that it is for the connection, or anything. */
static void change(uint8_t *bytes, uint32_t *length) {
    uint32_t i, changes = 1 + below(4), first = below(8) > 0 ? 16 : 0;
    for (i = 0; i < changes; i++) {
        const uint32_t at = first + below(*length - first);
        bytes[at] = (uint8_t)(below(3) == 0 ? below(20) : below(256));
    }
    if (below(8) == 0) *length = 1 + below(*length);
    if (below(8) == 0 && *length < 200) memmove(bytes + *length, bytes + 24, 40), *length += 40;
}

static int line_send(void *link, const cci_link_tx_t *tx, int count) {
    uint32_t i, length = 0;
    assert_int_equal(count, 1);
    if (is_full && below(2)) return 0;
    for (i = 0; i < tx->piece_count; length += tx->piece[i++].length) {
        assert_true(tx->piece[i].length <= sizeof last - length);
        memcpy(last + length, tx->piece[i].data, tx->piece[i].length);
    }
    assert_int_equal(length, tx->length);
    assert_true(length <= LINE_MTU);
    if (tx->to->bytes[0] == record_to && last[1] == record_type) {
        memcpy(recorded, last, sizeof last);
        recorded_length = length;
    }
    if (below(100) < bad) {
        put(*(uint8_t *)link, tx->to->bytes[0], last, length); /* the right one comes, too */
        change(last, &length);
    }
    sent_to[tx->to->bytes[0]]++;
    if (below(100) < lost) return 1;
    put(*(uint8_t *)link, tx->to->bytes[0], last, length);
    return 1;
}

static int line_receive(void *link, cci_link_rx_t *rx, int count) {
    uint32_t i = 0;
    assert_int_equal(count, 1);
    while (i < queued && queue[i].to != *(uint8_t *)link) i++;
    if (i == queued) return 0;
    memcpy(rx->data, queue[i].bytes, queue[i].length);
    rx->length = rx->segment = queue[i].length;
    rx->from.bytes[0] = queue[i].from;
    memmove(&queue[i], &queue[i + 1], (--queued - i) * sizeof queue[0]);
    return 1;
}

static uint64_t line_now(void *link) {
    (void)link;
    return clock_ns;
}

static int line_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    to->bytes[0] = (uint8_t)(address[0] - '0');
    return CCI_SUCCESS;
}

/* A call that waits lets the others work. */
static void line_wait(void *link, uint64_t timeout_ns) {
    int i;
    clock_ns += timeout_ns < MS / 4 ? timeout_ns : MS / 4;
    for (i = 0; i < 3; i++)
        if (i != *(uint8_t *)link) cci__tiny_work((cci__tiny_t *)(void *)side[i]);
}

static const cci_link_t line = {CCI_LINK_VERSION, line_open, line_close, line_send, line_receive, line_now, line_resolve,
                                NULL,             NULL,      NULL,       line_wait, NULL,         NULL,     NULL,
                                NULL,             NULL};

/* ---- what tests do ------------------------------------------------------------------------------------------------------ */

static void open_side(int i) {
    const char name[2] = {(char)('0' + i), '\0'};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    assert_int_equal(cci_create_endpoint_on_link(&line, name, &side[i], NULL), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(side[i], CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
}

static int setup(void **state) {
    static cci_setup_t hooks;
    int i;
    (void)state;
    hooks.random = chance;
#ifdef CCI_TINY_SEAL
    hooks.seal = &seal_hooks;
#endif
    record_type = record_to = recorded_length = 0;
    queued = bad = lost = is_cut = is_full = probe_idle_s = dead = 0;
    memset(sent_to, 0, sizeof sent_to);
    clock_ns = 1000 * MS;
    random_state = 88172645463325252u;
    if (cci_setup(&hooks) != CCI_SUCCESS) return -1;
    for (i = 0; i < 3; i++) open_side(i);
    return 0;
}

static int teardown(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 3; i++) (void)cci_destroy_endpoint(side[i]);
    i = seal_state.repeats == 0 && seal_state.given == seal_state.forgotten ? 0 : -1;
    seal_reset();
    return i;
}

/* The next event of a side while the others work, who get none; NULL after so long. */
static cci_event_t *next_event(int i, uint64_t ms) {
    const uint64_t until_ns = clock_ns + ms * MS;
    cci_event_t *event;
    for (; clock_ns < until_ns; clock_ns += MS / 4) {
        int status = cci_get_event(side[i], &event);
        int j;
        if (status == CCI_SUCCESS) return event;
        for (j = 0; j < 3; j++)
            if (j != i) cci__tiny_work((cci__tiny_t *)(void *)side[j]);
    }
    return NULL;
}

static cci_event_t *expect(int i, cci_event_type_t type) {
    cci_event_t *event = next_event(i, 200000);
    assert_non_null(event);
    assert_int_equal(event->type, type);
    return event;
}

static void done(cci_event_t *event) {
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

#if !CCI__TINY_SHAKES
/* Opens the connection of side `i` to `to` at a place of both; its packets have a token of theirs. */
static cci_connection_t *open_alone(int i, int to, uint32_t place, cci_conn_attribute_t attribute, uint64_t time) {
    cci_connection_t *connection = NULL;
    cci_tiny_peer_t peer;
    memset(&peer, 0, sizeof peer);
    peer.address.bytes[0] = (uint8_t)to;
    peer.token = time * 100 + 10 * (uint64_t)to + (uint64_t)i;
    peer.peer_token = time * 100 + 10 * (uint64_t)i + (uint64_t)to;
    peer.index = peer.peer_index = place;
    peer.attribute = attribute;
    assert_int_equal(cci_tiny_open(side[i], &peer, &side[i], &connection), CCI_SUCCESS);
    return connection;
}

static cci_connection_t *connect_sides(cci_conn_attribute_t attribute, cci_connection_t **server) {
    static uint64_t time;
    *server = open_alone(0, 1, 0, attribute, ++time);
    return open_alone(1, 0, 0, attribute, time);
}
#else
static void ask(int from, const char *uri, cci_conn_attribute_t attribute) {
    const struct timeval timeout = {10, 0};
    assert_int_equal(cci_connect(side[from], uri, "hello", 5, attribute, NULL, 0, &timeout), CCI_SUCCESS);
}

/* Connects side 1 to side 0: the client's connection, and the server's. */
static cci_connection_t *connect_sides(cci_conn_attribute_t attribute, cci_connection_t **server) {
    cci_connection_t *client;
    cci_event_t *event;
    ask(1, "link://0", attribute);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(event->request.data_len, 5);
    assert_memory_equal(event->request.data_ptr, "hello", 5);
    assert_int_equal(cci_return_event(event), CCI_EINVAL); /* it is not decided */
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    done(event);
    event = expect(1, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    client = event->connect.connection;
    done(event);
    event = expect(0, CCI_EVENT_ACCEPT);
    assert_int_equal(event->accept.status, CCI_SUCCESS);
    *server = event->accept.connection;
    done(event);
    return client;
}
#endif

static void expect_text(int i, const char *text) {
    cci_event_t *event = expect(i, CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, strlen(text));
    assert_memory_equal(event->recv.ptr, text, strlen(text));
    done(event);
}

static void expect_sent(int i, cci_status_t status) {
    cci_event_t *event = expect(i, CCI_EVENT_SEND);
    assert_int_equal(event->send.status, status);
    done(event);
}

static void say(cci_connection_t *connection, const char *text) {
    assert_int_equal(cci_send(connection, text, (uint32_t)strlen(text), NULL, 0), CCI_SUCCESS);
}

/* ---- connections ---------------------------------------------------------------------------------------------------------- */

static void test_a_message_goes_each_way_on_each_kind_of_connection(void **state) {
    int attribute;
    (void)state;
    for (attribute = CCI_CONN_ATTR_RO; attribute <= CCI_CONN_ATTR_UU; attribute++) {
        cci_connection_t *server, *client = connect_sides((cci_conn_attribute_t)attribute, &server);
        cci_event_t *event;
        assert_int_equal(client->attribute, attribute);
        assert_int_equal(server->attribute, attribute);
        say(client, "there");
        expect_sent(1, CCI_SUCCESS);
        expect_text(0, "there");
        say(server, "back");
        expect_sent(0, CCI_SUCCESS);
        expect_text(1, "back");
        assert_int_equal(cci_send(client, "long", client->max_send_size + 1, NULL, 0), CCI_EMSGSIZE);
        assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
        event = expect(0, CCI_EVENT_DISCONNECT);
        assert_int_equal(event->disconnect.status, CCI_SUCCESS);
        assert_int_equal(cci_send(server, "x", 1, NULL, 0), CCI_ERR_DISCONNECTED);
        assert_int_equal(cci_disconnect(server), CCI_SUCCESS);
        done(event);
        assert_null(next_event(1, 5000));
    }
}

#if CCI__TINY_SHAKES
static void test_a_request_can_be_rejected_and_can_find_nobody(void **state) {
    cci_event_t *event;
    (void)state;
    ask(1, "link://0", CCI_CONN_ATTR_RO);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_reject(event), CCI_SUCCESS);
    assert_int_equal(cci_accept(event, NULL), CCI_EINVAL);
    done(event);
    event = expect(1, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ECONNREFUSED);
    assert_null(event->connect.connection);
    done(event);
    is_cut = 1;
    ask(1, "link://0", CCI_CONN_ATTR_RO);
    event = expect(1, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    done(event);
}

static void test_a_full_table_says_busy_until_there_is_space(void **state) {
    cci_connection_t *server[3];
    cci_event_t *event;
    (void)state;
    (void)connect_sides(CCI_CONN_ATTR_RO, &server[0]);
    (void)connect_sides(CCI_CONN_ATTR_RO, &server[1]);
    ask(2, "link://0", CCI_CONN_ATTR_RO);
    assert_null(next_event(0, 2000));
    assert_int_equal(cci_disconnect(server[0]), CCI_SUCCESS);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    done(event);
    done(expect(2, CCI_EVENT_CONNECT));
    done(expect(0, CCI_EVENT_ACCEPT));
}

/* Nothing but the request of a new client tells the server that the old ones are dead. */
static void test_a_full_table_gives_up_who_does_not_answer(void **state) {
    cci_connection_t *server[3];
    cci_event_t *event;
    (void)state;
    (void)connect_sides(CCI_CONN_ATTR_RO, &server[0]);
    (void)connect_sides(CCI_CONN_ATTR_RO, &server[1]);
    dead = 1 << 1;
    assert_null(next_event(0, 60000)); /* it is idle, and nobody waits */
    ask(2, "link://0", CCI_CONN_ATTR_RO);
    event = expect(0, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_ETIMEDOUT);
    assert_int_equal(cci_disconnect(event->disconnect.connection), CCI_SUCCESS);
    done(event);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    done(event);
    event = expect(2, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    done(event);
    done(expect(0, CCI_EVENT_ACCEPT));
    assert_null(next_event(0, 60000)); /* one was enough */
}

/* The program holds what a dead peer has sent, since it waits for space to answer: a new client can't be heard until it gives that up. */
static void test_full_buffers_give_up_who_does_not_answer(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event, *kept[CCI_TINY_RECEIVES];
    uint32_t i;
    (void)state;
    for (i = 0; i < CCI_TINY_RECEIVES; i++) {
        assert_int_equal(cci_send(client, "held", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        kept[i] = expect(0, CCI_EVENT_RECV);
    }
    dead = 1 << 1;
    assert_null(next_event(0, 2000));
    ask(2, "link://0", CCI_CONN_ATTR_RO);
    event = expect(0, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_ETIMEDOUT);
    assert_ptr_equal(event->disconnect.connection, server);
    assert_int_equal(cci_disconnect(server), CCI_SUCCESS);
    done(event);
    for (i = 0; i < CCI_TINY_RECEIVES; i++) done(kept[i]);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    done(event);
    done(expect(2, CCI_EVENT_CONNECT));
}

/* Side 2 says the same request again and again, for a minute: peers that live stay, and hear little of it. */
static void test_requests_throw_nobody_out(void **state) {
    cci_connection_t *server[3];
    uint8_t request[CCI_TINY_MTU];
    uint32_t i, length;
    (void)state;
    (void)connect_sides(CCI_CONN_ATTR_RO, &server[0]);
    (void)connect_sides(CCI_CONN_ATTR_UU, &server[1]);
    record_type = CCI__PKT_REQUEST;
    ask(2, "link://0", CCI_CONN_ATTR_RO);
    assert_null(next_event(0, 50)); /* sealed, it learns its cookie meanwhile */
    memcpy(request, recorded, sizeof request);
    length = recorded_length;
    sent_to[1] = 0;
    for (i = 0; i < 60000; i++) {
        if (!CCI__TINY_SEALS) request[8] = (uint8_t)i; /* of the token */
        put(2, 0, request, length);
        assert_null(next_event(0, 1));
    }
    assert_in_range(sent_to[1], 30, 2 * 60);
    /* Six questions are lost, then it answers for once, and six are lost again. */
    for (i = 0; i < 40; i++) {
        dead = i % 4 == 3 ? 0 : 1 << 1;
        put(2, 0, request, length);
        assert_null(next_event(0, 1000));
    }
    /* Questions of long ago don't count. */
    dead = 1 << 1;
    for (i = 0; i < 40; i++) {
        put(2, 0, request, length);
        assert_null(next_event(0, 20000));
    }
}

#endif

static void test_messages_come_before_the_end(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event;
    (void)state;
    say(client, "one");
    say(client, "two");
    expect_sent(1, CCI_SUCCESS);
    expect_sent(1, CCI_SUCCESS);
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    assert_null(next_event(1, 100));
    expect_text(0, "one");
    expect_text(0, "two");
    event = expect(0, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_SUCCESS);
    done(event);
}

/* The peer has the second, and never gives it to its program: the first does not come any more. */
static void test_what_lies_behind_a_gap_at_the_end_was_not_delivered(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    (void)state;
    assert_null(next_event(1, 100));
    is_cut = 1;
    say(client, "one");
    is_cut = 0;
    say(client, "two");
    assert_int_equal(queued, 1);
    do {
        clock_ns += MS / 4;
        cci__tiny_work((cci__tiny_t *)(void *)side[0]);
    } while (queued == 0); /* until the acknowledgement is under way */
    cci__tiny_work((cci__tiny_t *)(void *)side[1]);
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    expect_sent(1, CCI_ERR_DISCONNECTED);
    expect_sent(1, CCI_ERR_DISCONNECTED);
    assert_int_equal(expect(0, CCI_EVENT_DISCONNECT)->disconnect.connection == server, 1);
}

#if CCI__TINY_SHAKES
static void test_a_peer_that_was_restarted_has_forgotten(void **state) {
    /* where packets are sealed it can't prove that it knows nothing any more */
    const cci_status_t forgotten = CCI__TINY_SEALS ? CCI_ETIMEDOUT : CCI_ERR_DISCONNECTED;
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event;
    (void)state;
    (void)server;
    is_cut = 1;
    assert_int_equal(cci_destroy_endpoint(side[0]), CCI_SUCCESS);
    is_cut = 0;
    open_side(0);
    say(client, "anybody?");
    expect_sent(1, forgotten);
    event = expect(1, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, forgotten);
    done(event);
}

#else
static void test_what_comes_before_the_peer_has_opened_is_repeated(void **state) {
    cci_connection_t *early = open_alone(1, 0, 1, CCI_CONN_ATTR_RO, 7), *late;
    (void)state;
    say(early, "one");
    say(early, "two");
    assert_null(next_event(1, 5000));
    assert_int_equal(sent_to[1], 0); /* who knows no such connection is silent */
    late = open_alone(0, 1, 1, CCI_CONN_ATTR_RO, 7);
    expect_text(0, "one");
    expect_text(0, "two");
    expect_sent(1, CCI_SUCCESS);
    expect_sent(1, CCI_SUCCESS);
    say(late, "three");
    expect_text(1, "three");
}

/* Its packets have another token: what of the connection before is still under way is for nobody. */
static void test_a_side_that_begins_anew_hears_nothing_of_before(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    struct datagram before;
    (void)state;
    say(client, "old");
    before = queue[0];
    expect_text(0, "old");
    expect_sent(1, CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(side[0]), CCI_SUCCESS);
    open_side(0);
    done(expect(1, CCI_EVENT_DISCONNECT));
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    assert_null(next_event(1, 10000)); /* the place is free */
    client = connect_sides(CCI_CONN_ATTR_RO, &server);
    queue[queued++] = before;
    say(client, "new");
    expect_text(0, "new");
    assert_null(next_event(0, 1000));
}

static void test_what_is_agreed_on_is_checked(void **state) {
    cci_connection_t *connection = NULL;
    cci_tiny_peer_t peer, wrong[4];
    int i;
    (void)state;
    memset(&peer, 0, sizeof peer);
    peer.token = peer.peer_token = 1;
    for (i = 0; i < 4; i++) wrong[i] = peer;
    wrong[0].token = 0;
    wrong[1].peer_token = 0;
    wrong[2].index = CCI_TINY_CONNECTIONS;
    wrong[3].attribute = CCI_CONN_ATTR_UU_MC_TX;
    for (i = 0; i < 4; i++) assert_int_equal(cci_tiny_open(side[0], &wrong[i], NULL, &connection), CCI_EINVAL);
    assert_int_equal(cci_tiny_open(NULL, &peer, NULL, &connection), CCI_EINVAL);
    assert_int_equal(cci_tiny_open(side[0], NULL, NULL, &connection), CCI_EINVAL);
    assert_int_equal(cci_tiny_open(side[0], &peer, NULL, NULL), CCI_EINVAL);
    assert_null(connection);
    assert_int_equal(cci_tiny_open(side[0], &peer, &peer, &connection), CCI_SUCCESS);
    assert_ptr_equal(connection->context, &peer);
    assert_ptr_equal(connection->endpoint, side[0]);
    assert_int_equal(cci_tiny_open(side[0], &peer, NULL, &connection), CCI_EBUSY);
    assert_int_equal(cci_connect(side[1], "link://0", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_IMPLEMENTED);
}
#endif

static void test_silence_ends_what_waits_for_an_answer(void **state) {
    const uint32_t second_us = 1000000;
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event;
    uint64_t ns;
    (void)state;
    (void)server;
    assert_int_equal(cci_set_opt(client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &second_us), CCI_SUCCESS);
    assert_null(next_event(1, 5000)); /* the peer answers */
    is_cut = 1;
    done(expect(1, CCI_EVENT_KEEPALIVE_TIMEDOUT));
    assert_int_equal(cci_next_deadline(side[1], &ns), CCI_SUCCESS);
    assert_true(ns == UINT64_MAX);
    say(client, "anybody?");
    assert_int_equal(cci_next_deadline(side[1], &ns), CCI_SUCCESS);
    assert_true(ns > 0 && ns <= 1000 * MS);
    expect_sent(1, CCI_ETIMEDOUT);
    event = expect(1, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_ETIMEDOUT);
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    done(event);
    assert_null(next_event(1, 10000));
}

static void test_a_silent_peer_is_asked_for_a_sign_of_life(void **state) {
    cci_connection_t *server, *client;
    cci_event_t *event;
    (void)state;
    probe_idle_s = 10;
    assert_int_equal(cci_destroy_endpoint(side[1]), CCI_SUCCESS);
    open_side(1);
    client = connect_sides(CCI_CONN_ATTR_RO, &server);
    (void)client, (void)server;
    assert_null(next_event(1, 60000));
    is_cut = 1;
    event = expect(1, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_ETIMEDOUT);
    done(event);
}

/* ---- buffers ---------------------------------------------------------------------------------------------------------------- */

/* The server keeps what it gets until it has no buffer: 20 messages, none lost. */
static void test_a_program_that_keeps_its_events_loses_nothing(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event, *kept[CCI_TINY_RECEIVES];
    uint8_t sent = 0, received = 0;
    uint32_t count = 0, i, round;
    (void)state;
    (void)server;
    for (round = 0; round < 20000 && received < 20; round++, clock_ns += MS) {
        int status;
        if (sent < 20 && cci_send(client, &sent, 1, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS) sent++;
        status = cci_get_event(side[0], &event);
        if (status == CCI_SUCCESS) {
            assert_int_equal(event->type, CCI_EVENT_RECV);
            assert_int_equal(*(const uint8_t *)event->recv.ptr, received);
            received++;
            kept[count++] = event;
        }
        if (count == CCI_TINY_RECEIVES && status == CCI_ENOBUFS && round % 50 == 0)
            for (i = 0; count > 0; count--) done(kept[i++]);
        assert_int_equal(cci_get_event(side[1], &event), CCI_EAGAIN);
    }
    assert_int_equal(received, 20);
}

static void test_a_receiver_that_stays_full_is_not_waited_for(void **state) {
    const uint32_t timeout_us = 500000;
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *kept[CCI_TINY_RECEIVES];
    int i;
    (void)state;
    (void)server;
    assert_int_equal(cci_set_opt(client, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    for (i = 0; i < CCI_TINY_RECEIVES; i++) {
        say(client, "kept");
        kept[i] = expect(0, CCI_EVENT_RECV);
        expect_sent(1, CCI_SUCCESS);
    }
    say(client, "too many");
    say(client, "too many");
    expect_sent(1, CCI_ERR_RNR);
    expect_sent(1, CCI_ERR_RNR);
    for (i = 0; i < CCI_TINY_RECEIVES; i++) done(kept[i]);
    say(client, "again");
    expect_text(0, "again");
    expect_sent(1, CCI_SUCCESS);
}

static void test_a_link_without_room_is_tried_again(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    uint32_t i, taken = 0;
    (void)state;
    (void)server;
    is_full = 1;
    for (i = 0; i < 50; i++) {
        say(client, "through");
        expect_text(0, "through");
        expect_sent(1, CCI_SUCCESS);
        taken++;
    }
    assert_int_equal(taken, 50);
}

/* A packet that the link has refused has no number that an acknowledgement could name. */
static void test_what_a_link_refuses_is_not_acknowledged(void **state) {
    cci_connection_t *conn[2], *client = connect_sides(CCI_CONN_ATTR_RO, &conn[0]);
    uint32_t sent[2] = {0, 0}, completed[2] = {0, 0}, received[2] = {0, 0}, i;
    (void)state;
    conn[1] = client;
    is_full = 1;
    lost = 10;
    while (received[0] < 1000 || received[1] < 1000 || completed[0] < 1000 || completed[1] < 1000) {
        for (i = 0; i < 2; i++) {
            uint8_t bytes[150];
            cci_event_t *event;
            memset(bytes, 0, sizeof bytes);
            memcpy(bytes, &sent[i], 4);
            if (sent[i] < 1000 && cci_send(conn[i], bytes, sizeof bytes, NULL, 0) == CCI_SUCCESS) sent[i]++;
            while (cci_get_event(side[i], &event) == CCI_SUCCESS) {
                if (event->type == CCI_EVENT_RECV) {
                    assert_memory_equal(event->recv.ptr, &received[i], 4);
                    received[i]++;
                } else {
                    assert_int_equal(event->type, CCI_EVENT_SEND);
                    assert_int_equal(event->send.status, CCI_SUCCESS);
                    completed[i]++;
                }
                done(event);
            }
        }
        clock_ns += MS / 4;
    }
}

/* The message that comes with the end is not acknowledged any more: the program may sleep. */
static void test_the_end_of_a_connection_lets_the_program_sleep(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    uint64_t ns = 0;
    (void)state;
    assert_null(next_event(1, 1000));
    assert_int_equal(cci_send(client, "bye", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    expect_text(0, "bye");
    done(expect(0, CCI_EVENT_DISCONNECT));
    assert_null(next_event(0, 1000));
    assert_int_equal(cci_next_deadline(side[0], &ns), CCI_SUCCESS);
    assert_int_not_equal(ns, 0);
    assert_int_equal(cci_disconnect(server), CCI_SUCCESS);
    assert_null(next_event(0, 1000));
    assert_int_equal(cci_next_deadline(side[0], &ns), CCI_SUCCESS);
    assert_int_not_equal(ns, 0);
}

/* As many unreliable messages leave at once as there are slots, whatever the window. */
static void test_unreliable_messages_do_not_wait(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_UU, &server);
    uint32_t i, before;
    (void)state;
    (void)server;
    assert_null(next_event(1, 100));
    before = sent_to[0];
    for (i = 0; i < 3 * CCI_TINY_SENDS; i++)
        assert_int_equal(cci_send(client, "out", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    assert_int_equal(sent_to[0] - before, 3 * CCI_TINY_SENDS);
    is_full = 1;
    for (i = 0; i < CCI_TINY_SENDS; i++)
        assert_int_equal(cci_send(client, "out", 3, NULL, CCI_FLAG_BLOCKING), CCI_SUCCESS);
    assert_int_equal(sent_to[0] - before, 4 * CCI_TINY_SENDS);
}

/* ---- remote memory -------------------------------------------------------------------------------------------------------------- */

static void test_memory_is_written_and_read_and_guarded(void **state) {
    static uint8_t there[1000], here[1000], read[1000];
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RU, &server);
    cci_rma_handle_t *target, *from, *to;
    struct cci_rma_handle wrong;
    uint32_t i;
    (void)state;
    (void)server;
    for (i = 0; i < sizeof here; i++) here[i] = (uint8_t)(i * 7);
    assert_int_equal(cci_rma_register(side[0], there, sizeof there, CCI_FLAG_READ | CCI_FLAG_WRITE, &target), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(side[1], here, sizeof here, 0, &from), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(side[1], read, sizeof read, 0, &to), CCI_SUCCESS);
    assert_int_equal(cci_rma(client, "written", 7, from, 1, target, 0, 999, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    expect_text(0, "written");
    assert_memory_equal(there, here + 1, 999);
    expect_sent(1, CCI_SUCCESS);
    assert_int_equal(cci_rma(client, "read", 4, to, 0, target, 0, 999, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    expect_text(0, "read");
    assert_memory_equal(read, here + 1, 999);
    expect_sent(1, CCI_SUCCESS);
    assert_int_equal(cci_rma(client, NULL, 0, from, 1, target, 0, 1000, NULL, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_rma(client, "no", 2, from, 0, target, 1, 1000, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    expect_sent(1, CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_rma(client, NULL, 0, to, 0, target, UINT64_MAX, 2, NULL, CCI_FLAG_READ), CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_rma(client, NULL, 0, to, 0, target, UINT64_MAX - 2, 2, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    expect_sent(1, CCI_ERR_RMA_HANDLE);
    wrong = *target;
    wrong.stuff[0] ^= 1;
    assert_int_equal(cci_rma(client, NULL, 0, to, 0, &wrong, 0, 2, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    expect_sent(1, CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_rma_deregister(side[0], target), CCI_SUCCESS);
    wrong.stuff[0] ^= 1; /* right, but no more */
    assert_int_equal(cci_rma(client, NULL, 0, from, 0, &wrong, 0, 300, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    expect_sent(1, CCI_ERR_RMA_HANDLE);
    say(client, "still here");
    expect_text(0, "still here");
    expect_sent(1, CCI_SUCCESS);
}

/* ---- bytes of strangers ------------------------------------------------------------------------------------------------------------ */

/* The message may be with the peer long before the write. */
static void test_a_call_that_waits_waits_for_all_before_it(void **state) {
    static uint8_t there[3000], here[3000];
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_rma_handle_t *target, *from;
    uint32_t i;
    (void)state;
    (void)server;
    for (i = 0; i < sizeof here; i++) here[i] = (uint8_t)(i * 7);
    assert_int_equal(cci_rma_register(side[0], there, sizeof there, CCI_FLAG_WRITE, &target), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(side[1], here, sizeof here, 0, &from), CCI_SUCCESS);
    assert_int_equal(cci_rma(client, "done", 4, from, 0, target, 0, sizeof here, NULL, CCI_FLAG_WRITE | CCI_FLAG_BLOCKING),
                     CCI_SUCCESS);
    assert_memory_equal(there, here, sizeof here);
    expect_text(0, "done");
    assert_int_equal(cci_rma(client, NULL, 0, from, 0, target, UINT64_MAX, 2, NULL, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
    assert_null(next_event(1, 1000));
}

static void act(int i, cci_connection_t **connection, cci_rma_handle_t *handle) {
    cci_event_t *event;
    if (cci_get_event(side[i], &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) (void)(below(8) ? cci_accept(event, NULL) : cci_reject(event));
        if (event->type == CCI_EVENT_ACCEPT && event->accept.connection) *connection = event->accept.connection;
        if (event->type == CCI_EVENT_CONNECT && event->connect.connection) *connection = event->connect.connection;
        if (event->type == CCI_EVENT_RECV) assert_true(event->recv.len <= 256);
        if (event->type == CCI_EVENT_DISCONNECT) {
            if (*connection == event->disconnect.connection) *connection = NULL;
            (void)cci_disconnect(event->disconnect.connection);
        }
        (void)cci_return_event(event);
    }
    if (*connection && below(3) == 0) {
        uint8_t bytes[100] = {0};
        (void)cci_send(*connection, bytes, below(100), NULL, below(2) ? CCI_FLAG_SILENT : 0);
        if (below(3) == 0 && (*connection)->attribute != CCI_CONN_ATTR_UU)
            (void)cci_rma(*connection, NULL, 0, handle, 0, handle, 0, 1 + below(400), NULL,
                          below(2) ? CCI_FLAG_READ : CCI_FLAG_WRITE);
    }
}

static void connect_at_random(int from, uint32_t round, cci_connection_t **connection) {
#if CCI__TINY_SHAKES
    (void)round, (void)connection;
    (void)cci_connect(side[from], "link://0", last, below(100), (cci_conn_attribute_t)below(3), NULL, 0, NULL);
#else
    cci_tiny_peer_t peer;
    memset(&peer, 0, sizeof peer);
    peer.address.bytes[0] = (uint8_t)from;
    peer.token = peer.peer_token = 1 + round / 1000;
    peer.attribute = (cci_conn_attribute_t)(round / 1000 % 3);
    if (!connection[0]) (void)cci_tiny_open(side[0], &peer, NULL, &connection[0]);
    peer.address.bytes[0] = 0;
    (void)cci_tiny_open(side[from], &peer, NULL, &connection[from]);
#endif
}

/* What CCI_TINY leaves out is "not implemented", as in a library that was built without it. */
static void test_statistics_are_left_out(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    uint32_t one = 1;
    cci_endpt_stats_t e;
    cci_conn_stats_t c;
    (void)state, (void)server;
    assert_int_equal(cci_get_opt(side[1], CCI_OPT_ENDPT_STATS, &e), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(client, CCI_OPT_CONN_STATS, &c), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(side[1], CCI_OPT_ENDPT_CONN_STATS, &one), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_set_opt(side[1], CCI_OPT_ENDPT_CONN_STATS, &one), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(client, CCI_OPT_ENDPT_STATS, &e), CCI_EINVAL);
    assert_int_equal(cci_get_opt(side[1], CCI_OPT_CONN_STATS, &c), CCI_EINVAL);
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_CONN_STATS, &one), CCI_EINVAL);
    assert_int_equal(cci_set_opt(side[1], CCI_OPT_ENDPT_STATS, &e), CCI_EINVAL);
    assert_int_equal(cci_get_opt(client, CCI_OPT_CONN_LINGER, &one), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_set_opt(client, CCI_OPT_CONN_LINGER, &one), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(side[1], CCI_OPT_CONN_LINGER, &one), CCI_EINVAL);
    assert_int_equal(cci_set_opt(side[1], CCI_OPT_CONN_LINGER, &one), CCI_EINVAL);
}

static void test_changed_packets_do_no_harm(void **state) {
    static uint8_t memory[3][512];
    cci_connection_t *connection[3] = {NULL, NULL, NULL};
    cci_rma_handle_t *handle[3];
    uint32_t round;
    int i;
    (void)state;
    for (i = 0; i < 3; i++)
        assert_int_equal(cci_rma_register(side[i], memory[i], sizeof memory[i], CCI_FLAG_READ | CCI_FLAG_WRITE, &handle[i]),
                         CCI_SUCCESS);
    bad = 40;
    for (round = 0; round < 100000; round++) {
        const int from = 1 + (int)below(2);
        if (!connection[from] && below(20) == 0)
            connect_at_random(from, round, connection);
        for (i = 0; i < 3; i++) act(i, &connection[i], handle[i ? 0 : from]);
        if (connection[from] && below(2000) == 0) {
            (void)cci_disconnect(connection[from]);
            connection[from] = NULL;
        }
        clock_ns += below(4) * MS / 2;
    }
    for (i = 0; i < 3; i++) assert_true(cci__tiny_spare((const cci__tiny_t *)(const void *)side[i]) <= CCI_TINY_RECEIVES);
}

#ifdef CCI_TINY_SEAL
/* ---- sealed packets -------------------------------------------------------------------------------------------------------- */

static cci__tiny_conn_t *conn_of(cci_connection_t *connection) {
    return (cci__tiny_conn_t *)(void *)connection;
}

/* Is nothing to be seen of what `bytes` do to a side, and does the connection work? */
static void does_nothing(cci_connection_t *client, int to, const uint8_t *bytes, uint32_t length) {
    const uint8_t from = to ? 0 : 1;
    put(from, (uint8_t)to, bytes, length);
    assert_null(next_event(to, 20));
    say(client, "still there?");
    expect_sent(1, CCI_SUCCESS);
    expect_text(0, "still there?");
}

static void test_packets_that_anybody_can_make_do_nothing(void **state) {
    static const uint8_t types[] = {CCI__PKT_CONFIRM, CCI__PKT_CONFIRMED, CCI__PKT_DATA, CCI__PKT_CLOSE, CCI__PKT_CLOSED,
                                    CCI__PKT_ACCEPT, CCI__PKT_REJECT, CCI__PKT_COOKIE, CCI__PKT_RESET, CCI__PKT_BUSY};
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    const cci__tiny_conn_t *peer = conn_of(client);
    uint8_t bytes[80];
    uint32_t i, length, flags;
    (void)state;
    for (i = 0; i < sizeof types; i++) {
        for (flags = 0; flags <= 2; flags += 2) {
            for (length = 24; length <= 80; length += 8) { /* a RESET with a secret, one that is wrong, too */
                memset(bytes, 0, sizeof bytes);
                if (types[i] == CCI__PKT_RESET)
                    cci__tiny_head(bytes, types[i], cci__tiny_index(conn_of(server)), conn_of(server)->peer_token, peer->peer_index, 5);
                else
                    cci__tiny_head(bytes, types[i], cci__tiny_index(conn_of(server)), conn_of(server)->token, cci__tiny_index(peer), 5);
                bytes[0] = CCI_PACKET_VERSION;
                bytes[3] = (uint8_t)flags;
                if (types[i] == CCI__PKT_RESET) { /* it names its sender's index in the other place */
                    cci__store32(bytes + 4, cci__tiny_index(conn_of(server)));
                    cci__store32(bytes + 16, conn_of(server)->peer_index);
                }
                does_nothing(client, 0, bytes, length);
            }
        }
    }
}

static void test_a_request_that_is_not_sealed_is_not_heard(void **state) {
    uint8_t bytes[48];
    (void)state;
    memset(bytes, 0, sizeof bytes);
    cci__tiny_head(bytes, CCI__PKT_REQUEST, 0, 77, 0, 0);
    bytes[0] = CCI_PACKET_VERSION;
    cci__store32(bytes + 24, 100);
    cci__store32(bytes + 28, 10000);
    put(1, 0, bytes, sizeof bytes);
    assert_null(next_event(0, 100));
    assert_int_equal(sent_to[1], 0);
    bytes[3] = CCI__HEADER_SEALED; /* too short for that */
    put(1, 0, bytes, sizeof bytes);
    assert_null(next_event(0, 100));
    assert_int_equal(sent_to[1], 0);
}

static void test_another_key_opens_nothing(void **state) {
    cci_event_t *event;
    (void)state;
    seal_state.secret_of_client = 2;
    ask(1, "link://0", CCI_CONN_ATTR_RO);
    assert_null(next_event(0, 5000));
    event = expect(1, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    done(event);
    seal_state.secret_of_client = 0; /* the program has none for this server */
    assert_int_equal(cci_connect(side[1], "link://0", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_FOUND);
    seal_hooks.plain_allowed = 1;
    seal_state.secret_of_server = 0;
    ask(1, "link://0", CCI_CONN_ATTR_RO);
    event = expect(0, CCI_EVENT_CONNECT_REQUEST);
    assert_memory_equal(event->request.data_ptr, "hello", 5);
    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
    done(event);
    event = expect(1, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    assert_null(conn_of(event->connect.connection)->key);
    done(event);
    done(expect(0, CCI_EVENT_ACCEPT));
}

/* It is recorded as it was heard. Others come and go in between: more than one set of cookies is good for. */
static void test_a_sealed_request_is_heard_once(void **state) {
    cci_connection_t *server, *client;
    uint8_t request[CCI_TINY_MTU];
    uint32_t length;
    int i;
    (void)state;
    record_type = CCI__PKT_REQUEST;
    client = connect_sides(CCI_CONN_ATTR_RO, &server);
    memcpy(request, recorded, sizeof request);
    length = recorded_length;
    assert_true(cci__load64(request + 16) != 0); /* the one with a cookie */
    for (i = 0; i < 40; i++) {
        put(1, 0, request, length);
        assert_null(next_event(0, 50));
        say(client, "x");
        expect_text(0, "x");
        expect_sent(1, CCI_SUCCESS);
        assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
        done(expect(0, CCI_EVENT_DISCONNECT));
        put(1, 0, request, length);
        assert_null(next_event(0, 50));
        assert_int_equal(cci_disconnect(server), CCI_SUCCESS);
        put(1, 0, request, length);
        assert_null(next_event(0, 5000));
        client = connect_sides(CCI_CONN_ATTR_RO, &server);
    }
}

/* Whoever recorded the peer's packets can't make a dead one live. */
static void test_what_was_sent_before_is_no_sign_of_life(void **state) {
    static const uint8_t types[] = {CCI__PKT_CONFIRM, CCI__PKT_DATA};
    cci_connection_t *server, *client;
    cci_event_t *event;
    uint64_t since_ns;
    uint32_t i;
    (void)state;
    for (i = 0; i < sizeof types; i++) {
        dead = 0;
        probe_idle_s = 10;
        assert_int_equal(cci_destroy_endpoint(side[0]), CCI_SUCCESS);
        open_side(0);
        record_type = types[i];
        client = connect_sides(CCI_CONN_ATTR_RO, &server);
        say(client, "x");
        expect_text(0, "x");
        expect_sent(1, CCI_SUCCESS);
        dead = 2;
        since_ns = clock_ns;
        do {
            dead = 0;
            put(1, 0, recorded, recorded_length);
            dead = 2;
            event = next_event(0, 500);
            assert_true(clock_ns - since_ns < 40000 * MS);
        } while (!event);
        assert_int_equal(event->type, CCI_EVENT_DISCONNECT);
        assert_int_equal(event->disconnect.status, CCI_ETIMEDOUT);
        assert_int_equal(cci_disconnect(server), CCI_SUCCESS);
        done(event);
        (void)cci_destroy_endpoint(side[1]);
        open_side(1);
    }
}

static void test_a_key_that_is_used_up_ends_the_connection(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    cci_event_t *event;
    (void)state, (void)server;
    seal_state.fails = 1;
    say(client, "x");
    expect_sent(1, CCI_ERR_DISCONNECTED);
    event = expect(1, CCI_EVENT_DISCONNECT);
    assert_int_equal(event->disconnect.status, CCI_ERR_DISCONNECTED);
    assert_int_equal(cci_disconnect(client), CCI_SUCCESS);
    done(event);
    assert_null(next_event(1, 10000));
}

/* The header has the low half of a packet's number, the nonce all of it. */
static void test_more_packets_than_32_bits_can_count(void **state) {
    cci_connection_t *server, *client = connect_sides(CCI_CONN_ATTR_RO, &server);
    int i;
    (void)state;
    conn_of(client)->next_number = conn_of(server)->newest = UINT64_C(0x1fffffffa);
    conn_of(server)->top = 0xfffffffa;
    for (i = 0; i < 20; i++) {
        say(client, "x");
        expect_text(0, "x");
        expect_sent(1, CCI_SUCCESS);
    }
    assert_true(conn_of(server)->newest > UINT64_C(0x200000000));
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#ifdef CCI_TINY_SEAL
        cmocka_unit_test_setup_teardown(test_packets_that_anybody_can_make_do_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_request_that_is_not_sealed_is_not_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_key_opens_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_sealed_request_is_heard_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_sent_before_is_no_sign_of_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_key_that_is_used_up_ends_the_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_packets_than_32_bits_can_count, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_a_message_goes_each_way_on_each_kind_of_connection, setup, teardown),
#if CCI__TINY_SHAKES
        cmocka_unit_test_setup_teardown(test_a_request_can_be_rejected_and_can_find_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_table_says_busy_until_there_is_space, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_table_gives_up_who_does_not_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_buffers_give_up_who_does_not_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_requests_throw_nobody_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_was_restarted_has_forgotten, setup, teardown),
#else
        cmocka_unit_test_setup_teardown(test_what_comes_before_the_peer_has_opened_is_repeated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_side_that_begins_anew_hears_nothing_of_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_agreed_on_is_checked, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_messages_come_before_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_lies_behind_a_gap_at_the_end_was_not_delivered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silence_ends_what_waits_for_an_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_silent_peer_is_asked_for_a_sign_of_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_program_that_keeps_its_events_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_receiver_that_stays_full_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_link_without_room_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_a_link_refuses_is_not_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_end_of_a_connection_lets_the_program_sleep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreliable_messages_do_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_written_and_read_and_guarded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_call_that_waits_waits_for_all_before_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_statistics_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_packets_do_no_harm, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
