/* test_conn.c - the connection table and the packets of the handshake, alone.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_CONN_IMPLEMENTATION
#include "cci.h"

#define ENTRY 192u /* bytes of each: the connection, and something of the user's */

static cci_conn_table_t table;
static uint8_t *slabs[CCI__CONN_SLABS];
static const uint64_t key[2] = {11, 22};

static void grow(void) {
    uint8_t *memory = malloc((size_t)CCI__CONN_SLAB * ENTRY);
    assert_non_null(memory);
    assert_true(sizeof(cci_conn_t) <= ENTRY);
    memset(memory, 0xcc, (size_t)CCI__CONN_SLAB * ENTRY);
    cci_conn_add_slab(&table, memory);
}

static void rehash(uint32_t count) {
    uint32_t *buckets = malloc(count * sizeof *buckets);
    assert_non_null(buckets);
    free(cci_conn_rehash(&table, buckets, count));
}

static int setup(void **state) {
    (void)state;
    cci_conn_table_init(&table, key, ENTRY, slabs);
    rehash(4);
    grow();
    return 0;
}

static int teardown(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < table.slab_count; i++) free(slabs[i]);
    free(table.buckets);
    return 0;
}

static cci_conn_t *open_one(void) {
    cci_conn_t *conn = cci_conn_open(&table);
    if (!conn) {
        grow();
        conn = cci_conn_open(&table);
    }
    assert_non_null(conn);
    conn->state = CCI_CONN_OPEN;
    return conn;
}

static cci_link_addr_t address(uint32_t n) {
    cci_link_addr_t a;
    memset(&a, 0, sizeof a);
    cci__store32(a.bytes + 3, n);
    return a;
}

static void test_a_connection_is_found_by_its_index_and_token_alone(void **state) {
    cci_conn_t *conn = open_one();
    uint32_t bit;
    (void)state;
    assert_ptr_equal(cci_conn_find(&table, conn->index, conn->token), conn);
    for (bit = 0; bit < 64; bit++) assert_null(cci_conn_find(&table, conn->index, conn->token ^ UINT64_C(1) << bit));
    assert_null(cci_conn_find(&table, conn->index + 1, conn->token));
    assert_null(cci_conn_find(&table, CCI__CONN_SLAB, conn->token)); /* the first behind the table */
    assert_null(cci_conn_find(&table, 0xffffffff, conn->token));
    assert_null(cci_conn_find(&table, conn->index, 0));
}

static void test_a_stale_token_finds_nothing(void **state) {
    cci_conn_t *conn = open_one(), *other;
    uint64_t token = conn->token;
    uint32_t index = conn->index, n;
    (void)state;
    cci_conn_close(&table, conn);
    assert_null(cci_conn_find(&table, index, token));
    assert_null(cci_conn_find(&table, index, 0)); /* what is free has no token that could be guessed */
    for (n = 0; n < CCI__CONN_SLAB; n++) {
        other = cci_conn_open(&table);
        assert_non_null(other);
        other->state = CCI_CONN_OPEN;
        assert_true(other->token != token);
        if (n < CCI__CONN_SLAB - 1) assert_int_not_equal(other->index, index); /* not given again soon */
    }
    assert_null(cci_conn_find(&table, index, token));
    assert_null(cci_conn_open(&table)); /* it must grow first */
}

static void test_the_table_grows_without_moving_connections(void **state) {
    enum { COUNT = 3000 };
    static cci_conn_t *conn[COUNT];
    uint32_t i;
    (void)state;
    for (i = 0; i < COUNT; i++) {
        conn[i] = open_one();
        memset((uint8_t *)conn[i] + sizeof(cci_conn_t), (int)(i & 0xff), ENTRY - sizeof(cci_conn_t));
    }
    assert_int_equal(table.used, COUNT);
    for (i = 0; i < COUNT; i++) {
        assert_ptr_equal(cci_conn_find(&table, conn[i]->index, conn[i]->token), conn[i]);
        assert_ptr_equal(cci_conn_at(&table, conn[i]->index), conn[i]);
        assert_int_equal(((uint8_t *)conn[i])[ENTRY - 1], i & 0xff);
    }
    for (i = 0; i < COUNT; i += 2) cci_conn_close(&table, conn[i]);
    assert_int_equal(table.used, COUNT / 2);
    for (i = 0; i < COUNT; i += 2) {
        conn[i] = open_one();
        assert_int_equal(((uint8_t *)conn[i])[ENTRY - 1], 0); /* nothing of the one before is left */
    }
    for (i = 0; i < COUNT; i++) assert_ptr_equal(cci_conn_find(&table, conn[i]->index, conn[i]->token), conn[i]);
}

static void test_a_request_is_found_again_also_after_the_hash_has_grown(void **state) {
    enum { COUNT = 600 };
    static cci_conn_t *conn[COUNT];
    uint32_t i, round;
    (void)state;
    for (i = 0; i < COUNT; i++) {
        conn[i] = open_one();
        conn[i]->peer = address(i / 3); /* several of one sender */
        conn[i]->peer_index = i % 3;
        conn[i]->peer_token = 1000 + i / 2; /* some share a token */
        cci_conn_hash(&table, conn[i]);
        if (i % 50 == 0) rehash(table.bucket_count < 512 ? table.bucket_count * 2 : 512);
    }
    for (round = 0; round < 2; round++) {
        for (i = 0; i < COUNT; i++) {
            cci_link_addr_t from = address(i / 3), other = address(COUNT);
            if (round && i % 2) continue;
            assert_ptr_equal(cci_conn_find_request(&table, &from, i % 3, 1000 + i / 2), conn[i]);
            assert_null(cci_conn_find_request(&table, &other, i % 3, 1000 + i / 2));
            assert_null(cci_conn_find_request(&table, &from, i % 3 + 3, 1000 + i / 2));
            assert_null(cci_conn_find_request(&table, &from, i % 3, 99));
        }
        if (round) break;
        for (i = 1; i < COUNT; i += 2) { /* every second leaves */
            cci_link_addr_t from = address(i / 3);
            cci_conn_close(&table, conn[i]);
            cci_conn_unhash(&table, conn[i]); /* once more: no harm */
            assert_null(cci_conn_find_request(&table, &from, i % 3, 1000 + i / 2));
        }
        rehash(16);
    }
}

static void test_a_header_is_read_as_it_was_written_and_nothing_shorter(void **state) {
    uint8_t *bytes = malloc(CCI__HEADER_SIZE);
    cci_conn_header_t header;
    uint32_t length;
    (void)state;
    assert_non_null(bytes);
    cci_conn_write_header(bytes, CCI__PKT_DATA, 2, 0x01020304, UINT64_C(0xfedcba9876543210), 77, 0xfffffffe);
    assert_int_equal(cci_conn_parse(bytes, CCI__HEADER_SIZE, &header), 1);
    assert_int_equal(header.type, CCI__PKT_DATA);
    assert_int_equal(header.attribute, 2);
    assert_int_equal(header.index, 0x01020304);
    assert_true(header.token == UINT64_C(0xfedcba9876543210));
    assert_int_equal(header.peer_index, 77);
    assert_true(header.number == 0xfffffffe);
    for (length = 0; length < CCI__HEADER_SIZE; length++) {
        uint8_t *cut = malloc(length + (length == 0));
        assert_non_null(cut);
        memcpy(cut, bytes, length);
        assert_int_equal(cci_conn_parse(cut, length, &header), 0);
        free(cut);
    }
    bytes[0] ^= 1; /* another version */
    assert_int_equal(cci_conn_parse(bytes, CCI__HEADER_SIZE, &header), 0);
    free(bytes);
}

static void test_a_request_is_read_as_it_was_written(void **state) {
    uint8_t bytes[CCI__REQUEST_SIZE + 100];
    cci_conn_t *conn = open_one();
    cci_conn_request_t request, back;
    cci_conn_header_t header;
    (void)state;
    memset(&request, 0, sizeof request);
    conn->pub.attribute = CCI_CONN_ATTR_RU;
    request.cookie = 12345;
    request.max_send_size = 4096;
    request.window = 100000;
    request.data_len = request.unit = request.length = 100;
    assert_int_equal(cci_conn_write_request(conn, &request, bytes), CCI__REQUEST_SIZE);
    memset(bytes + CCI__REQUEST_SIZE, 7, 100);
    assert_int_equal(cci_conn_parse(bytes, sizeof bytes, &header), 1);
    assert_int_equal(header.type, CCI__PKT_REQUEST);
    assert_int_equal(header.index, conn->index);
    assert_true(header.token == conn->token);
    assert_int_equal(header.attribute, CCI_CONN_ATTR_RU);
    assert_int_equal(cci_conn_parse_request(bytes, sizeof bytes, &back), 1);
    assert_true(back.cookie == 12345);
    assert_int_equal(back.max_send_size, 4096);
    assert_int_equal(back.window, 100000);
    assert_int_equal(back.data_len, 100);
    assert_int_equal(back.length, 100);
    assert_ptr_equal(back.data, bytes + CCI__REQUEST_SIZE);
    assert_int_equal(cci_conn_parse_request(bytes, sizeof bytes - 1, &back), 0);
    assert_int_equal(cci_conn_parse_request(bytes, CCI__REQUEST_SIZE - 1, &back), 0);
}

/* Whatever a request says, what is read of it lies in the packet, and what it says of the whole is possible. */
static void test_hostile_requests_name_nothing_outside(void **state) {
    uint64_t random = 1;
    uint32_t n, accepted = 0;
    (void)state;
    for (n = 0; n < 200000; n++) {
        uint32_t length, i;
        uint8_t *bytes;
        cci_conn_request_t request;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        length = (uint32_t)(random >> 40) % 200;
        bytes = malloc(length + (length == 0));
        assert_non_null(bytes);
        for (i = 0; i < length; i++) bytes[i] = (uint8_t)((random >> 30) * (i + 1) * 2654435761u >> 24);
        if (length > 3) bytes[2] = (uint8_t)(random >> 50 & 3);
        if (length > 40 && random >> 60 < 12) { /* lengths that are nearly right */
            cci__store16(bytes + 32, (uint32_t)(random >> 33) % 1100);
            cci__store16(bytes + 34, (uint32_t)(random >> 35) % 100);
            cci__store16(bytes + 36, (random >> 20 & 1) * 40);
            cci__store16(bytes + 38, random >> 21 & 1 ? cci__load16(bytes + 34) : length - 48);
            if (random >> 22 & 1) cci__store16(bytes + 32, cci__load16(bytes + 38));
        }
        if (cci_conn_parse_request(bytes, length, &request)) {
            accepted++;
            assert_true(request.data >= bytes && request.length <= length - (uint32_t)(request.data - bytes));
            assert_true(request.data_len <= CCI_CONN_REQ_LEN);
            assert_true(request.offset <= request.data_len && request.length <= request.data_len - request.offset);
            assert_true(request.max_send_size > 0);
            for (i = 0; i < request.length; i++) random += request.data[i];
        }
        free(bytes);
    }
    assert_true(accepted > 1000);
}

static void test_an_accept_names_both_sides(void **state) {
    uint8_t bytes[CCI__ACCEPT_SIZE];
    cci_conn_t *conn = open_one();
    cci_conn_header_t header;
    cci_conn_accept_t back;
    (void)state;
    conn->peer_index = 5;
    conn->peer_token = 6;
    conn->pub.max_send_size = 1111;
    assert_int_equal(cci_conn_write_accept(conn, 2222, bytes), CCI__ACCEPT_SIZE);
    assert_int_equal(cci_conn_parse(bytes, sizeof bytes, &header), 1);
    assert_int_equal(header.type, CCI__PKT_ACCEPT);
    assert_int_equal(header.index, 5);
    assert_true(header.token == 6);
    assert_int_equal(header.peer_index, conn->index);
    assert_int_equal(cci_conn_parse_accept(bytes, sizeof bytes, &back), 1);
    assert_true(back.token == conn->token);
    assert_int_equal(back.max_send_size, 1111);
    assert_int_equal(back.window, 2222);
    conn->pub.max_send_size = 0; /* nothing could be sent */
    (void)cci_conn_write_accept(conn, 2222, bytes);
    assert_int_equal(cci_conn_parse_accept(bytes, sizeof bytes, &back), 0);
}

/* Each length has memory of just its size, so that a sanitizer sees what is read behind it. */
static void test_an_accept_that_is_cut_off_is_none(void **state) {
    uint8_t whole[CCI__ACCEPT_SIZE + CCI__SECRET_SIZE + 1];
    uint32_t length, sealed;
    cci_conn_t *conn = open_one();
    (void)state;
    memset(whole, 0xff, sizeof whole);
    conn->pub.max_send_size = 1;
    (void)cci_conn_write_accept(conn, 2, whole);
    for (sealed = 0; sealed < 2; sealed++) {
        uint32_t size = sealed ? CCI__ACCEPT_SIZE + CCI__SECRET_SIZE : CCI__ACCEPT_SIZE;
        whole[3] = sealed ? CCI__HEADER_SEALED : 0;
        for (length = 0; length <= sizeof whole; length++) {
            uint8_t *bytes = malloc(length + (length == 0));
            cci_conn_accept_t back;
            assert_non_null(bytes);
            memcpy(bytes, whole, length);
            assert_int_equal(cci_conn_parse_accept(bytes, length, &back), length >= size);
            free(bytes);
        }
    }
}

static void test_a_cookie_is_read_from_where_a_request_has_it(void **state) {
    uint8_t bytes[CCI__HEADER_SIZE];
    cci_conn_header_t header;
    (void)state;
    cci_conn_write_header(bytes, CCI__PKT_COOKIE, 0, 1, 2, 0, 0);
    cci__store64(bytes + 16, UINT64_C(0x8877665544332211));
    assert_int_equal(cci_conn_parse(bytes, sizeof bytes, &header), 1);
    assert_true(cci_conn_cookie_in(&header) == UINT64_C(0x8877665544332211));
}

static void test_a_cookie_depends_on_address_index_token_epoch_and_key(void **state) {
    cci_link_addr_t from = address(1), other = address(1);
    uint64_t cookie = cci_conn_cookie(&table, &from, 2, 3, 4);
    (void)state;
    assert_true(cookie != 0);
    assert_true(cci_conn_cookie(&table, &from, 2, 3, 4) == cookie);
    other.bytes[23] = 1; /* its last byte */
    assert_true(cci_conn_cookie(&table, &other, 2, 3, 4) != cookie);
    assert_true(cci_conn_cookie(&table, &from, 1, 3, 4) != cookie);
    assert_true(cci_conn_cookie(&table, &from, 2, 4, 4) != cookie);
    assert_true(cci_conn_cookie(&table, &from, 2, 3, 5) != cookie);
    table.key[1]++;
    assert_true(cci_conn_cookie(&table, &from, 2, 3, 4) != cookie);
    table.key[1]--;
}

static void test_retries_double_up_to_a_second(void **state) {
    uint32_t tries;
    (void)state;
    assert_int_equal(cci_conn_retry_ns(0), 20000000);
    assert_int_equal(cci_conn_retry_ns(3), 160000000);
    for (tries = 6; tries < 256; tries++) assert_int_equal(cci_conn_retry_ns((uint8_t)tries), 1000000000);
}

static void test_a_table_with_a_base_finds_its_own_indices_alone(void **state) {
    uint32_t i;
    cci_conn_t *conn[2 * CCI__CONN_SLAB];
    (void)state;
    teardown(NULL);
    memset(slabs, 0, sizeof slabs);
    cci_conn_table_init(&table, key, ENTRY, slabs);
    table.base = 0xff000000u; /* the highest */
    rehash(4);
    grow();
    for (i = 0; i < 2 * CCI__CONN_SLAB; i++) {
        conn[i] = open_one();
        assert_int_equal(conn[i]->index - table.base, i);
        conn[i]->peer = address(i);
        cci_conn_hash(&table, conn[i]);
    }
    rehash(64);
    for (i = 0; i < 2 * CCI__CONN_SLAB; i++) {
        assert_ptr_equal(cci_conn_find(&table, conn[i]->index, conn[i]->token), conn[i]);
        assert_null(cci_conn_find(&table, i, conn[i]->token));
        assert_null(cci_conn_find(&table, conn[i]->index - CCI__CONN_MOST, conn[i]->token));
        assert_ptr_equal(cci_conn_find_request(&table, &conn[i]->peer, 0, 0), conn[i]);
        cci_conn_close(&table, conn[i]);
    }
    assert_non_null(open_one());
}

/* ---- what is due, and what is remembered --------------------------------------------------------------------------- */

static void test_each_state_has_its_next_step(void **state) {
    cci_conn_t *conn = open_one();
    int n;
    (void)state;
    conn->state = CCI_CONN_CONNECTING;
    for (n = 1; n < 300; n++) {
        assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 1000), CCI_CONN_DUE_REQUEST);
        assert_true(conn->deadline_ns == 1000 + cci_conn_retry_ns(conn->tries));
    }
    assert_int_equal(cci_conn_timeout(conn, 5000, 1000), CCI_CONN_DUE_REQUEST);
    assert_true(conn->deadline_ns == 5000);
    assert_int_equal(cci_conn_timeout(conn, 5000, 5000), CCI_CONN_DUE_TIMED_OUT);
    conn->state = CCI_CONN_ACCEPTED;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_TIMED_OUT);
    conn->state = CCI_CONN_COLLECTING;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_FORGOTTEN);
    conn->state = CCI_CONN_REJECTED;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_FORGOTTEN);
    conn->state = CCI_CONN_OPEN;
    conn->tries = 0;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_IDLE);
    conn->step.confirming = 1;
    for (n = 0; n < (int)CCI__CONN_CONFIRM_TRIES; n++)
        assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_CONFIRM);
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_IDLE);
    conn->state = CCI_CONN_BROKEN;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_IDLE);
    conn->state = CCI_CONN_REQUESTED;
    assert_int_equal(cci_conn_timeout(conn, CCI__NEVER, 0), CCI_CONN_DUE_NOTHING);
    assert_true(conn->deadline_ns == CCI__NEVER);
    conn->state = CCI_CONN_OPEN;
    conn->deadline_ns = 77;
    assert_true(cci_conn_deadline(conn) == 77); /* CONFIRM is repeated */
    conn->step.confirming = 0;
    assert_true(cci_conn_deadline(conn) == CCI__NEVER); /* now it is its user's */
    conn->state = CCI_CONN_CLOSING;
    assert_true(cci_conn_deadline(conn) == 77);
    conn->state = CCI_CONN_OPEN;
}

static void test_closes_leave_in_line_and_end(void **state) {
    uint64_t free_ns = 0, now_ns = 1000000, last_ns = 0;
    uint32_t i, at_once = 0, tries = 0;
    cci_conn_t *conn[100];
    (void)state;
    for (i = 0; i < 100; i++) {
        conn[i] = open_one();
        conn[i]->state = CCI_CONN_CLOSING;
        at_once += (uint32_t)cci_conn_close_output(conn[i], &free_ns, 0, now_ns);
        if (conn[i]->step.in_line) {
            assert_true(conn[i]->deadline_ns >= last_ns + CCI__CONN_CLOSE_NS || last_ns == 0);
            last_ns = conn[i]->deadline_ns;
        }
    }
    assert_int_equal(at_once, CCI__CONN_CLOSE_BURST);
    while (cci_conn_timeout(conn[99], CCI__NEVER, now_ns) == CCI_CONN_DUE_CLOSE) {
        now_ns = cci__max64(now_ns, conn[99]->deadline_ns);
        tries += (uint32_t)cci_conn_close_output(conn[99], &free_ns, 0, now_ns);
        assert_true(tries <= CCI__CONN_CLOSE_TRIES);
    }
    assert_int_equal(tries, CCI__CONN_CLOSE_TRIES);
    assert_int_equal(cci_conn_timeout(conn[99], CCI__NEVER, now_ns), CCI_CONN_DUE_FORGOTTEN);
}

static void test_what_ended_is_remembered_for_two_epochs_at_most_and_one_at_least(void **state) {
    uint64_t *slots = (uint64_t *)malloc(2 * CCI__CONN_SEEN * sizeof *slots), token, epoch;
    (void)state;
    assert_non_null(slots);
    cci_conn_table_remembers(&table, slots);
    assert_false(cci_conn_was_seen(&table, 1));
    cci_conn_turn_epoch(&table, CCI__CONN_EPOCH_NS);
    epoch = table.epoch;
    for (token = 1; token <= CCI__CONN_SEEN / 2; token++)
        cci_conn_remember(&table, token, CCI__CONN_EPOCH_NS + 1);
    assert_true(table.epoch == epoch);
    cci_conn_remember(&table, 1000000, CCI__CONN_EPOCH_NS + 1); /* one more than there is space for */
    assert_true(table.epoch == epoch + 1);                      /* cookies of the epoch before the last are void now */
    for (token = 1; token <= CCI__CONN_SEEN / 2; token++)
        assert_true(cci_conn_was_seen(&table, token));
    assert_true(cci_conn_was_seen(&table, 1000000));
    assert_false(cci_conn_was_seen(&table, 1000001));
    cci_conn_turn_epoch(&table, 2 * CCI__CONN_EPOCH_NS);
    assert_false(cci_conn_was_seen(&table, 5));
    assert_true(cci_conn_was_seen(&table, 1000000));
    cci_conn_turn_epoch(&table, 9 * CCI__CONN_EPOCH_NS);
    assert_false(cci_conn_was_seen(&table, 1000000));
    free(slots);
}

static void test_a_network_has_three_quarters_at_most_and_others_the_rest(void **state) {
    uint8_t one[16] = {1}, other[16] = {2};
    uint32_t count = 0;
    (void)state;
    table.slab_limit = 4; /* 1,024 connections */
    table.used = 0;
    while (cci_conn_source_may(&table, one, 1000000)) {
        cci_conn_count_source(&table, one, 1, 1);
        table.used++;
        count++;
    }
    assert_int_equal(count, 768);
    assert_true(cci_conn_source_may(&table, other, 1));
    assert_false(cci_conn_source_may(&table, one, 1));
    cci_conn_count_source(&table, one, -1, -1);
    table.used--;
    assert_true(cci_conn_source_may(&table, one, 1000000));
    assert_false(cci_conn_source_may(&table, one, 200)); /* so many that are not open yet */
    table.used = 0;
}

/* ---- the protocol, packet by packet -------------------------------------------------------------------------------- */

enum { CLIENT, SERVER };

/* Two tables of one connection each, and what the last packet meant. */
static struct side {
    cci_conn_table_t table;
    uint8_t *slabs[CCI__CONN_SLABS];
    uint32_t buckets[8];
    uint64_t seen[2 * CCI__CONN_SEEN];
    cci_conn_t *conn;
    cci_link_addr_t address;
    cci_conn_packet_t in;
} side[2];

static struct {
    cci_conn_pending_t pending;
    uint8_t data[CCI_CONN_REQ_LEN];
} asked;

static uint64_t now_ns;

static uint32_t network_of(void *link, const cci_link_addr_t *at, uint8_t bytes[16]) {
    (void)link;
    bytes[0] = at->bytes[5];
    return 1;
}

/* What is counted of the network of an address: an upper bound, and here the number itself. */
static uint32_t counted(const struct side *s, const cci_link_addr_t *at, int opening) {
    uint8_t prefix[16] = {0};
    uint32_t a, b;
    (void)network_of(NULL, at, prefix);
    a = cci__conn_source_at(&s->table, prefix, 0);
    b = cci__conn_source_at(&s->table, prefix, 1);
    return opening ? cci__min32(s->table.sources.undecided[0][a], s->table.sources.undecided[1][b])
                   : cci__min32(s->table.sources.all[0][a], s->table.sources.all[1][b]);
}

static void set_up_side(struct side *s, uint32_t n) {
    const uint64_t keys[2] = {5 + n, 6};
    memset(s, 0, sizeof *s);
    cci_conn_table_init(&s->table, keys, ENTRY, s->slabs);
    (void)cci_conn_rehash(&s->table, s->buckets, 8);
    s->slabs[0] = malloc((size_t)CCI__CONN_SLAB * ENTRY);
    assert_non_null(s->slabs[0]);
    cci_conn_add_slab(&s->table, s->slabs[0]);
    cci_conn_table_remembers(&s->table, s->seen);
    s->table.prefix = network_of;
    s->table.unproven_most = 1;
    s->table.window = 50000 + n;
    s->table.mtu = 256;
    s->address = address((n + 1) << 16);
}

static cci_conn_t *open_side(struct side *s, uint32_t max_send_size) {
    s->conn = cci_conn_open(&s->table);
    assert_non_null(s->conn);
    s->conn->pub.attribute = CCI_CONN_ATTR_RU;
    s->conn->pub.max_send_size = max_send_size;
    s->conn->deadline_ns = CCI__NEVER;
    return s->conn;
}

static int set_up_sides(void **state) {
    uint32_t n;
    (void)state;
    assert_true(sizeof(cci_conn_t) + sizeof(cci_conn_peer_t) <= ENTRY);
    set_up_side(&side[CLIENT], 0);
    set_up_side(&side[SERVER], 1);
    now_ns = UINT64_C(5000000000);
    memset(&asked, 0, sizeof asked);
    for (n = 0; n < sizeof asked.data; n++) asked.data[n] = (uint8_t)(n * 7);
    asked.pending.give_up_ns = CCI__NEVER;
    cci_conn_begin_connect(open_side(&side[CLIENT], 2000), &side[SERVER].address, 1, CCI__NEVER, now_ns);
    return 0;
}

static int tear_down_sides(void **state) {
    (void)state;
    free(side[CLIENT].slabs[0]);
    free(side[SERVER].slabs[0]);
    return 0;
}

typedef struct packet {
    uint8_t bytes[300];
    uint32_t length;
} packet_t;

/* What `to` makes of a packet of the other side. Its memory has just its size, so that a sanitizer sees what is read behind it. */
static cci_conn_got_t give_from(struct side *to, const packet_t *p, const cci_link_addr_t *from) {
    static uint8_t *bytes;
    free(bytes);
    bytes = malloc(p->length);
    assert_non_null(bytes);
    memcpy(bytes, p->bytes, p->length);
    memset(&to->in, 0xcc, sizeof to->in);
    to->in.from = from;
    to->in.bytes = bytes;
    to->in.length = p->length;
    to->in.now_ns = now_ns;
    assert_true(cci_conn_parse(bytes, p->length, &to->in.header));
    return cci_conn_input(&to->table, &to->in);
}

static cci_conn_got_t give(struct side *to, const packet_t *p) {
    return give_from(to, p, &side[to == &side[CLIENT] ? SERVER : CLIENT].address);
}

static void seal_if_keyed(struct side *s, packet_t *p) {
    if (cci_conn_peer_of(s->conn)->key) assert_true(cci_conn_seal(&s->table, s->conn, 0, p->bytes, &p->length));
}

static packet_t say(struct side *s, uint8_t type) {
    packet_t p;
    p.length = cci_conn_output(&s->table, s->conn, type, p.bytes);
    seal_if_keyed(s, &p);
    return p;
}

static packet_t reply(struct side *s, uint8_t type) {
    packet_t p;
    assert_true(cci_conn_is_reply(type));
    p.length = cci_conn_output_reply(&s->table, &s->in, type, p.bytes);
    assert_true(p.length <= s->in.length);
    return p;
}

/* All that a client sends at once; returns how many. */
static uint32_t ask(packet_t *p) {
    cci_conn_request_t piece;
    uint32_t count = 0;
    memset(&piece, 0, sizeof piece);
    while ((p->length = cci_conn_output_request(&side[CLIENT].table, side[CLIENT].conn, &asked.pending, &piece, p->bytes)) > 0) {
        memcpy(p->bytes + p->length, piece.data, piece.length);
        p->length += piece.length;
        assert_true(p->length <= side[CLIENT].table.mtu);
        seal_if_keyed(&side[CLIENT], p);
        p++;
        count++;
    }
    return count;
}

static packet_t ask_once(void) {
    packet_t p[8];
    assert_int_equal(ask(p), 1);
    return p[0];
}

/* The server takes the request that was given to it. */
static void take_request(void *server_key) {
    cci_conn_begin_request(&side[SERVER].table, open_side(&side[SERVER], 1500), &side[SERVER].in, server_key);
}

static void accept_request(void) {
    assert_int_equal(cci_conn_decide(&side[SERVER].table, side[SERVER].conn, 1, now_ns), CCI__PKT_ACCEPT);
}

static void connect_sides(void) {
    packet_t p = ask_once();
    assert_int_equal(give(&side[SERVER], &p), CCI_CONN_GOT_REQUEST);
    take_request(NULL);
    accept_request();
    p = say(&side[SERVER], CCI__PKT_ACCEPT);
    assert_int_equal(give(&side[CLIENT], &p), CCI_CONN_GOT_ACCEPT);
    cci_conn_opened(&side[CLIENT].table, side[CLIENT].conn, now_ns);
    p = say(&side[CLIENT], CCI__PKT_CONFIRM);
    assert_int_equal(give(&side[SERVER], &p), CCI_CONN_GOT_CONFIRM);
    cci_conn_opened(&side[SERVER].table, side[SERVER].conn, now_ns);
}

static void test_a_handshake_opens_both_sides_and_copies_of_its_packets_open_nothing(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t request = ask_once(), accept, confirm, confirmed;
    (void)state;
    assert_int_equal(give(s, &request), CCI_CONN_GOT_REQUEST);
    assert_int_equal(s->in.answer, 0);
    take_request(NULL);
    assert_int_equal(s->conn->state, CCI_CONN_REQUESTED);
    assert_int_equal(s->conn->pub.max_send_size, 1500); /* the lesser of the two */
    assert_int_equal(s->table.unproven, 1);
    assert_int_equal(counted(s, &c->address, 0) + counted(s, &c->address, 1), 2);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING); /* undecided: nothing to say */
    assert_int_equal(s->in.answer, 0);
    accept_request();
    assert_false(cci_conn_has_listener(s->conn)); /* that address may be another's: it gets no CLOSE */
    assert_true(s->conn->deadline_ns == now_ns + CCI__CONN_ACCEPT_NS);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING);
    assert_int_equal(s->in.answer, CCI__PKT_ACCEPT);
    accept = say(s, CCI__PKT_ACCEPT);
    assert_int_equal(give(c, &accept), CCI_CONN_GOT_ACCEPT);
    assert_int_equal(c->in.answer, CCI__PKT_CONFIRM);
    assert_int_equal(c->conn->pub.max_send_size, 1500);
    assert_int_equal(c->conn->peer_window, 50001);
    cci_conn_opened(&c->table, c->conn, now_ns);
    assert_true(c->conn->step.confirming && c->conn->deadline_ns == now_ns + cci_conn_retry_ns(0));
    assert_int_equal(give(c, &accept), CCI_CONN_GOT_NOTHING);
    assert_int_equal(c->in.answer, CCI__PKT_CONFIRM);
    confirm = say(c, CCI__PKT_CONFIRM);
    assert_int_equal(give(s, &confirm), CCI_CONN_GOT_CONFIRM);
    assert_int_equal(s->in.answer, CCI__PKT_CONFIRMED);
    cci_conn_opened(&s->table, s->conn, now_ns);
    assert_int_equal(s->table.unproven, 0);
    assert_true(cci_conn_has_listener(s->conn));
    assert_int_equal(counted(s, &c->address, 0), 1);
    assert_int_equal(counted(s, &c->address, 1), 0);
    assert_int_equal(give(s, &confirm), CCI_CONN_GOT_NOTHING);
    assert_int_equal(s->in.answer, CCI__PKT_CONFIRMED);
    confirmed = say(s, CCI__PKT_CONFIRMED);
    assert_int_equal(give(c, &confirmed), CCI_CONN_GOT_CONFIRMED);
    assert_int_equal(c->in.answer, 0);
    assert_false(c->conn->step.confirming);
    assert_int_equal(give(c, &confirmed), CCI_CONN_GOT_NOTHING);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING); /* late */
    assert_int_equal(s->in.answer, CCI__PKT_ACCEPT);
}

/* Every packet that is too short for what it is, and every one of another connection, changes nothing. */
static void test_packets_that_are_cut_off_or_of_others_change_nothing(void **state) {
    static const uint8_t types[] = {CCI__PKT_COOKIE, CCI__PKT_ACCEPT, CCI__PKT_REJECT, CCI__PKT_CONFIRM, CCI__PKT_CONFIRMED,
                                    CCI__PKT_DATA,   CCI__PKT_RESET,  CCI__PKT_CLOSE,  CCI__PKT_CLOSED,  CCI__PKT_BUSY};
    uint8_t before[2][ENTRY];
    uint32_t t, n, round;
    packet_t p = ask_once();
    (void)state;
    for (n = CCI__HEADER_SIZE; n < p.length; n++) {
        packet_t cut = p;
        cut.length = n;
        assert_int_equal(give(&side[SERVER], &cut), CCI_CONN_GOT_NOTHING);
        assert_int_equal(side[SERVER].in.answer, 0);
    }
    for (round = 0; round < 2; round++) { /* to a client that connects, and to one that is open */
        struct side *c = &side[CLIENT];
        if (round) connect_sides();
        memcpy(before[0], c->conn, ENTRY);
        for (t = 0; t < sizeof types; t++) {
            int is_answered = types[t] == CCI__PKT_ACCEPT || types[t] == CCI__PKT_CONFIRM || types[t] == CCI__PKT_CONFIRMED ||
                              types[t] == CCI__PKT_DATA || types[t] == CCI__PKT_CLOSE;
            for (n = 0; n < 64; n++) {
                memset(&p, 0, sizeof p);
                p.length = CCI__ACCEPT_SIZE;
                cci_conn_write_header(p.bytes, types[t], 0, c->conn->index, c->conn->token ^ UINT64_C(1) << n, 0, 9);
                c->table.resets = 0;
                assert_int_equal(give(c, &p), CCI_CONN_GOT_UNMATCHED);
                assert_int_equal(c->in.answer, is_answered ? CCI__PKT_RESET : 0);
            }
            c->table.resets = CCI__CONN_RESETS; /* so many are answered in a round, and no more */
            assert_int_equal(give(c, &p), CCI_CONN_GOT_UNMATCHED);
            assert_int_equal(c->in.answer, 0);
        }
        assert_memory_equal(before[0], c->conn, ENTRY);
    }
    cci_conn_write_header(p.bytes, 99, 0, side[CLIENT].conn->index, side[CLIENT].conn->token, 0, 0);
    assert_int_equal(give(&side[CLIENT], &p), CCI_CONN_GOT_UNMATCHED); /* no type of ours */
    side[CLIENT].conn->state = CCI_CONN_CONNECTING;
    p = say(&side[SERVER], CCI__PKT_ACCEPT);
    memcpy(before[0], side[CLIENT].conn, ENTRY);
    for (n = CCI__HEADER_SIZE; n < p.length; n++) {
        packet_t cut = p;
        cut.length = n;
        assert_int_equal(give(&side[CLIENT], &cut), CCI_CONN_GOT_NOTHING);
        assert_int_equal(side[CLIENT].in.answer, 0);
    }
    cci__store32(p.bytes + 32, 2001); /* longer messages than were asked for */
    assert_int_equal(give(&side[CLIENT], &p), CCI_CONN_GOT_NOTHING);
    assert_memory_equal(before[0], side[CLIENT].conn, ENTRY);
}

static void test_a_reset_names_the_connection_by_the_token_that_it_answers(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t p, reset;
    (void)state;
    connect_sides();
    p = say(c, CCI__PKT_CONFIRM);
    cci_conn_end(&s->table, s->conn, now_ns); /* it forgets */
    assert_int_equal(give(s, &p), CCI_CONN_GOT_UNMATCHED);
    assert_int_equal(s->in.answer, CCI__PKT_RESET);
    reset = reply(s, CCI__PKT_RESET);
    p = reset;
    p.bytes[8] ^= 1;
    assert_int_equal(give(c, &p), CCI_CONN_GOT_UNMATCHED); /* another token */
    p = reset;
    p.bytes[16] ^= 1;
    assert_int_equal(give(c, &p), CCI_CONN_GOT_UNMATCHED); /* another index of the sender */
    assert_int_equal(give(c, &reset), CCI_CONN_GOT_RESET);
    c->conn->state = CCI_CONN_BROKEN;
    assert_int_equal(give(c, &reset), CCI_CONN_GOT_NOTHING);
    cci_conn_begin_close(c->conn);
    assert_int_equal(give(c, &reset), CCI_CONN_GOT_END);
}

static void test_a_cookie_comes_back_and_proves_the_address_once_and_for_an_epoch(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    cci_link_addr_t elsewhere = address(77);
    packet_t first = ask_once(), cookie, p;
    uint64_t old;
    (void)state;
    s->table.unproven = s->table.unproven_most; /* others wait */
    assert_int_equal(give(s, &first), CCI_CONN_GOT_NOTHING);
    assert_int_equal(s->in.answer, CCI__PKT_COOKIE);
    assert_null(s->in.conn); /* nothing is kept */
    cookie = reply(s, CCI__PKT_COOKIE);
    assert_int_equal(give(c, &cookie), CCI_CONN_GOT_NOTHING);
    assert_int_equal(c->in.answer, CCI__PKT_REQUEST);
    old = c->conn->peer_token;
    p = cookie;
    p.bytes[16] ^= 4; /* somebody makes the client ask again and again */
    assert_int_equal(give(c, &p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(c->in.answer, 0);
    assert_true(c->conn->peer_token == old);
    c->conn->tries = 4; /* the server does not take the first one any more */
    assert_int_equal(give(c, &p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(c->in.answer, CCI__PKT_REQUEST);
    c->conn->peer_token = old;
    p = ask_once();
    assert_int_equal(give_from(s, &p, &elsewhere), CCI_CONN_GOT_NOTHING); /* it is the address that it proves */
    assert_int_equal(s->in.answer, CCI__PKT_COOKIE);
    p.bytes[16] ^= 1;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING);
    p.bytes[16] ^= 1;
    now_ns += CCI__CONN_EPOCH_NS;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_REQUEST);
    assert_true(s->in.is_proven);
    take_request(NULL);
    assert_int_equal(s->table.unproven, 1); /* the other's */
    cci_conn_end(&s->table, s->conn, now_ns);
    assert_int_equal(counted(s, &c->address, 0) + counted(s, &c->address, 1), 0);
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING); /* a copy of what was heard */
    assert_int_equal(s->in.answer, 0);
    now_ns += CCI__CONN_EPOCH_NS;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(s->in.answer, 0);
    now_ns += CCI__CONN_EPOCH_NS; /* it is forgotten, and its cookie is void */
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(s->in.answer, CCI__PKT_COOKIE);
}

static void test_a_refusal_and_busy_are_for_a_client_that_connects(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t request = ask_once(), busy, reject;
    (void)state;
    assert_int_equal(give(s, &request), CCI_CONN_GOT_REQUEST);
    busy = reply(s, CCI__PKT_BUSY);
    assert_int_equal(give(c, &busy), CCI_CONN_GOT_NOTHING);
    assert_true(c->conn->flags & CCI__CONN_BUSY);
    take_request(NULL);
    assert_int_equal(cci_conn_decide(&s->table, s->conn, 0, now_ns), CCI__PKT_REJECT);
    assert_true(s->conn->deadline_ns == now_ns + CCI__CONN_REJECT_NS);
    reject = say(s, CCI__PKT_REJECT);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING); /* the refusal was lost */
    assert_int_equal(s->in.answer, CCI__PKT_REJECT);
    assert_int_equal(cci_conn_timeout(s->conn, CCI__NEVER, s->conn->deadline_ns), CCI_CONN_DUE_FORGOTTEN);
    assert_int_equal(give(c, &reject), CCI_CONN_GOT_REJECT);
    assert_int_equal(c->in.answer, 0);
    c->conn->state = CCI_CONN_OPEN;
    assert_int_equal(give(c, &reject), CCI_CONN_GOT_UNMATCHED);
    assert_int_equal(give(c, &busy), CCI_CONN_GOT_UNMATCHED);
}

static void test_a_close_is_answered_where_it_came_from_and_ends_both_sides(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t close, closed, request = ask_once();
    (void)state;
    connect_sides();
    close = say(s, CCI__PKT_DATA);
    assert_int_equal(give(c, &close), CCI_CONN_GOT_DATA); /* its user's affair */
    closed = say(s, CCI__PKT_CLOSED);
    assert_int_equal(give(c, &closed), CCI_CONN_GOT_NOTHING); /* nobody has closed it */
    close = say(s, CCI__PKT_CLOSE);
    c->conn->pub.attribute = CCI_CONN_ATTR_UU_MC_RX;
    assert_int_equal(give(c, &close), CCI_CONN_GOT_NOTHING); /* nobody can close a group */
    c->conn->pub.attribute = CCI_CONN_ATTR_RU;
    cci__store32(close.bytes + 16, s->conn->index + 1);
    assert_int_equal(give(c, &close), CCI_CONN_GOT_NOTHING); /* the server that accepted the request before this one */
    assert_int_equal(c->in.answer, 0);
    assert_true(cci_conn_has_listener(c->conn));
    cci_conn_begin_close(c->conn);
    close = say(c, CCI__PKT_CLOSE);
    assert_int_equal(give(s, &close), CCI_CONN_GOT_CLOSE);
    assert_int_equal(s->in.answer, CCI__PKT_CLOSED);
    assert_true(cci_conn_is_reply(s->in.answer));
    s->conn->state = CCI_CONN_BROKEN;
    assert_false(cci_conn_has_listener(s->conn));
    cci_conn_life_of(s->conn)->at.end_status = CCI_ETIMEDOUT; /* of one that fell silent nobody knows */
    assert_true(cci_conn_has_listener(s->conn));
    assert_int_equal(give(s, &close), CCI_CONN_GOT_NOTHING); /* repeated */
    assert_int_equal(s->in.answer, CCI__PKT_CLOSED);
    closed = say(s, CCI__PKT_CLOSED);
    assert_int_equal(give(c, &closed), CCI_CONN_GOT_END);
    assert_int_equal(c->in.answer, 0);
    cci_conn_end(&c->table, c->conn, now_ns);
    assert_int_equal(give(c, &closed), CCI_CONN_GOT_UNMATCHED); /* late: there is nothing to tell */
    assert_int_equal(c->in.answer, 0);
    cci_conn_end(&s->table, s->conn, now_ns);
    assert_int_equal(s->table.used + c->table.used, 0);
    assert_int_equal(give(s, &close), CCI_CONN_GOT_UNMATCHED);
    assert_int_equal(s->in.answer, CCI__PKT_RESET);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING); /* late */
    assert_int_equal(s->in.answer, 0);
}

static void test_both_sides_may_close_at_once_and_a_server_before_it_was_confirmed(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t p;
    (void)state;
    connect_sides();
    s->conn->state = CCI_CONN_ACCEPTED;
    p = say(c, CCI__PKT_CLOSE);
    assert_int_equal(give(s, &p), CCI_CONN_GOT_CLOSE);
    cci_conn_begin_close(c->conn);
    cci_conn_begin_close(s->conn);
    p = say(c, CCI__PKT_DATA);
    assert_int_equal(give(s, &p), CCI_CONN_GOT_UNMATCHED); /* a CLOSE will be repeated: that says all */
    assert_int_equal(s->in.answer, 0);
    p = say(c, CCI__PKT_CLOSE);
    assert_int_equal(give(s, &p), CCI_CONN_GOT_END);
    assert_int_equal(s->in.answer, CCI__PKT_CLOSED);
}

static void test_pieces_of_a_request_come_in_any_order_and_more_than_once(void **state) {
    struct side *s = &side[SERVER];
    cci_conn_pieces_t pieces;
    uint8_t data[CCI_CONN_REQ_LEN];
    packet_t p[8];
    uint32_t i, count;
    (void)state;
    asked.pending.data_len = CCI_CONN_REQ_LEN;
    count = ask(p);
    assert_int_equal(count, 5); /* of 208 bytes */
    assert_int_equal(give(s, &p[3]), CCI_CONN_GOT_REQUEST);
    take_request(NULL);
    cci_conn_begin_collect(s->conn, &pieces, &s->in.request, now_ns);
    assert_true(s->conn->deadline_ns == now_ns + CCI__CONN_COLLECT_NS);
    assert_false(cci_conn_collect(s->conn, &pieces, &s->in.request, data, CCI_CONN_REQ_LEN));
    for (i = 0; i < 2 * count; i++) {
        cci_conn_request_t odd;
        uint32_t which = (4 + i / 2 * 3) % count; /* each twice */
        assert_int_equal(give(s, &p[which]), CCI_CONN_GOT_PIECE);
        assert_ptr_equal(s->in.conn, s->conn);
        odd = s->in.request;
        odd.data_len--; /* of another request */
        assert_false(cci_conn_collect(s->conn, &pieces, &odd, data, CCI_CONN_REQ_LEN));
        if (cci_conn_collect(s->conn, &pieces, &s->in.request, data, CCI_CONN_REQ_LEN)) break;
        assert_true(pieces.missing != 0);
    }
    assert_int_equal(s->conn->state, CCI_CONN_REQUESTED);
    assert_true(s->conn->deadline_ns == CCI__NEVER);
    assert_memory_equal(data, asked.data, sizeof data);
    assert_int_equal(give(s, &p[0]), CCI_CONN_GOT_NOTHING); /* late */
}

static struct {
    cci_conn_answer_t answer;
    uint8_t data[CCI_CONN_REQ_LEN];
} told, heard;

/* All packets of the server's decision; returns how many. */
static uint32_t say_answer(uint8_t type, uint32_t data_len, packet_t *p) {
    struct side *s = &side[SERVER];
    cci_conn_request_t piece;
    uint32_t count = 0, size, more, i;
    for (i = 0; i < data_len; i++) told.data[i] = (uint8_t)(i * 5 + (i >> 8) + data_len);
    told.answer.data_len = data_len;
    memset(&piece, 0, sizeof piece);
    for (;; p++, count++) {
        size = cci_conn_output(&s->table, s->conn, type, p->bytes);
        more = cci_conn_output_piece(&s->table, &told.answer, &piece, size, p->bytes);
        if (more == 0) return count;
        memcpy(p->bytes + size + more, piece.data, piece.length);
        p->length = size + more + piece.length;
        assert_true(p->length <= s->table.mtu);
        seal_if_keyed(s, p);
    }
}

/* The client takes a packet of the server's decision. */
static cci_conn_got_t hear_answer(const packet_t *p) {
    cci_conn_got_t got = give(&side[CLIENT], p);
    if (got != CCI_CONN_GOT_ANSWER) return got;
    assert_int_equal(side[CLIENT].in.answer, 0);
    return cci_conn_collect_answer(&side[CLIENT].table, &heard.answer, &side[CLIENT].in);
}

/* A request that the program answers with data, as it is when the client has proven its address. */
static uint8_t decide_with_data(int accepts) {
    struct side *s = &side[SERVER];
    s->conn->flags |= CCI__CONN_ANSWERS;
    return cci_conn_decide(&s->table, s->conn, accepts, now_ns);
}

static void test_data_of_an_answer_waits_until_the_address_is_proven(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t request, cookie, p[8];
    uint32_t accepts;
    (void)state;
    for (accepts = 0; accepts < 2; accepts++) {
        request = ask_once();
        assert_int_equal(give(s, &request), CCI_CONN_GOT_REQUEST);
        take_request(NULL);
        assert_int_equal(s->table.unproven, 1);
        assert_int_equal(decide_with_data((int)accepts), CCI__PKT_COOKIE);
        cookie = say(s, CCI__PKT_COOKIE);
        assert_true(cookie.length < request.length); /* no more than came */
        assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING);
        assert_int_equal(s->in.answer, CCI__PKT_COOKIE); /* a copy proves nothing */
        request.bytes[16] ^= 4;
        assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING);
        assert_int_equal(s->in.answer, CCI__PKT_COOKIE); /* nor does a guess */
        assert_int_equal(give(c, &cookie), CCI_CONN_GOT_NOTHING);
        assert_int_equal(c->in.answer, CCI__PKT_REQUEST);
        request = ask_once();
        assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING);
        assert_int_equal(s->in.answer, accepts ? CCI__PKT_ACCEPT : CCI__PKT_REJECT);
        assert_int_equal(s->table.unproven, 0);
        assert_int_equal(s->conn->unproven, 0);
        memset(&heard, 0, sizeof heard);
        assert_int_equal(say_answer(s->in.answer, 100, p), 1);
        assert_int_equal(hear_answer(&p[0]), accepts ? CCI_CONN_GOT_ACCEPT : CCI_CONN_GOT_REJECT);
        assert_int_equal(c->in.answer, accepts ? CCI__PKT_CONFIRM : 0);
        assert_int_equal(heard.answer.data_len, 100);
        assert_memory_equal(heard.data, told.data, 100);
        cci_conn_end(&s->table, s->conn, now_ns);
        if (!accepts) {
            cci_conn_end(&c->table, c->conn, now_ns);
            cci_conn_begin_connect(open_side(c, 2000), &s->address, 1, CCI__NEVER, now_ns);
        }
    }
}

/* Whatever is lost, repeated and overtaken: the client repeats its request until all pieces are there. */
static void test_pieces_of_an_answer_come_in_any_order_and_more_than_once(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    uint64_t random = 88172645463325252u;
    packet_t p[8], q[8];
    uint32_t round, i;
    (void)state;
    for (round = 0; round < 200; round++) {
        uint32_t data_len = round % 8 == 0 ? CCI_CONN_REQ_LEN : 1 + round * 5, count, tries = 0, asked_count;
        int accepts = round % 2;
        cci_conn_got_t got = CCI_CONN_GOT_NOTHING;
        asked.pending.data_len = round % 3 ? 0 : CCI_CONN_REQ_LEN;
        if (round) cci_conn_begin_connect(open_side(c, 2000), &s->address, 1, CCI__NEVER, now_ns);
        asked_count = ask(p);
        assert_int_equal(give(s, &p[0]), CCI_CONN_GOT_REQUEST);
        s->in.is_proven = 1;
        take_request(NULL);
        assert_int_equal(decide_with_data(accepts), accepts ? CCI__PKT_ACCEPT : CCI__PKT_REJECT);
        memset(&heard, 0, sizeof heard);
        while (got == CCI_CONN_GOT_NOTHING) {
            assert_true(tries++ < 1000);
            for (i = 0; i < asked_count; i++) { /* the first piece of a request is answered, with all */
                assert_int_equal(give(s, &p[i]), CCI_CONN_GOT_NOTHING);
                assert_int_equal(s->in.answer, i > 0 ? 0 : accepts ? CCI__PKT_ACCEPT : CCI__PKT_REJECT);
            }
            count = say_answer(accepts ? CCI__PKT_ACCEPT : CCI__PKT_REJECT, data_len, q);
            assert_int_equal(count, (data_len + (accepts ? 207 : 223)) / (accepts ? 208 : 224));
            for (i = 0; i < count && got == CCI_CONN_GOT_NOTHING; i++) {
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                got = hear_answer(&q[random % count]); /* some twice, some not at all */
                assert_int_equal(c->conn->state, CCI_CONN_CONNECTING);
            }
        }
        assert_int_equal(got, accepts ? CCI_CONN_GOT_ACCEPT : CCI_CONN_GOT_REJECT);
        assert_true(!accepts || c->conn->peer_token == s->conn->token);
        assert_int_equal(heard.answer.data_len, data_len);
        assert_memory_equal(heard.data, told.data, data_len);
        cci_conn_end(&s->table, s->conn, now_ns);
        cci_conn_end(&c->table, c->conn, now_ns);
    }
    cci_conn_begin_connect(open_side(c, 2000), &s->address, 1, CCI__NEVER, now_ns);
}

/* A server that was restarted in the middle says something else: that counts, and nothing is mixed. */
static void test_an_answer_that_changes_begins_anew(void **state) {
    struct side *s = &side[SERVER];
    packet_t request = ask_once(), p[8], q[8];
    uint32_t i, count;
    (void)state;
    assert_int_equal(give(s, &request), CCI_CONN_GOT_REQUEST);
    s->in.is_proven = 1;
    take_request(NULL);
    assert_int_equal(decide_with_data(1), CCI__PKT_ACCEPT);
    count = say_answer(CCI__PKT_ACCEPT, CCI_CONN_REQ_LEN, p);
    memset(&heard, 0, sizeof heard);
    for (i = 0; i + 1 < count; i++) assert_int_equal(hear_answer(&p[i]), CCI_CONN_GOT_NOTHING);
    s->conn->token ^= 99;
    assert_int_equal(say_answer(CCI__PKT_ACCEPT, 300, q), 2);
    assert_int_equal(hear_answer(&q[0]), CCI_CONN_GOT_NOTHING);
    assert_int_equal(hear_answer(&q[1]), CCI_CONN_GOT_ACCEPT);
    assert_true(side[CLIENT].conn->peer_token == s->conn->token);
    assert_int_equal(heard.answer.data_len, 300);
    assert_memory_equal(heard.data, told.data, 300);
    s->conn->token ^= 99;
    cci_conn_opened(&side[CLIENT].table, side[CLIENT].conn, now_ns);
    assert_int_equal(hear_answer(&p[0]), CCI_CONN_GOT_NOTHING); /* late, of another connection */
    assert_int_equal(side[CLIENT].in.answer, 0);
    assert_int_equal(hear_answer(&q[1]), CCI_CONN_GOT_NOTHING);
    assert_int_equal(side[CLIENT].in.answer, 0);
    assert_int_equal(hear_answer(&q[0]), CCI_CONN_GOT_NOTHING);
    assert_int_equal(side[CLIENT].in.answer, CCI__PKT_CONFIRM);
}

static void test_a_piece_of_an_answer_that_is_none_changes_nothing(void **state) {
    static const uint16_t bad[][4] = {/* data_len, unit, offset, length; 208 bytes are there */
                                      {1025, 208, 0, 208},  {1024, 208, 0, 209},   {1024, 208, 104, 208}, {1024, 31, 31, 31},
                                      {1024, 0, 0, 208},    {1024, 208, 1040, 208}, {416, 208, 416, 208},  {300, 208, 208, 208},
                                      {1024, 208, 0, 200},  {65535, 208, 208, 208}, {208, 208, 8, 208},    {0, 208, 0, 208}};
    static const uint8_t types[] = {CCI__PKT_ACCEPT, CCI__PKT_REJECT};
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    uint8_t before[ENTRY];
    packet_t request = ask_once(), p[8];
    uint32_t t, i, n;
    (void)state;
    assert_int_equal(give(s, &request), CCI_CONN_GOT_REQUEST);
    s->in.is_proven = 1;
    take_request(NULL);
    assert_int_equal(decide_with_data(1), CCI__PKT_ACCEPT);
    memcpy(before, c->conn, ENTRY);
    for (t = 0; t < 2; t++) {
        uint32_t at = types[t] == CCI__PKT_ACCEPT ? CCI__ACCEPT_SIZE : CCI__HEADER_SIZE;
        (void)say_answer(types[t], CCI_CONN_REQ_LEN, p);
        for (n = at + 1; n < p[0].length; n++) {
            packet_t cut = p[0];
            cut.length = n;
            assert_int_equal(give(c, &cut), CCI_CONN_GOT_NOTHING);
            assert_int_equal(c->in.answer, 0);
        }
        for (i = 0; i < sizeof bad / sizeof *bad; i++) {
            packet_t odd = p[0];
            for (n = 0; n < 4; n++) cci__store16(odd.bytes + at + 2 * n, bad[i][n]);
            odd.length = at + CCI__PIECE_SIZE + 208;
            assert_int_equal(give(c, &odd), CCI_CONN_GOT_NOTHING);
            assert_int_equal(c->in.answer, 0);
        }
        assert_memory_equal(before, c->conn, ENTRY);
        assert_int_equal(give(c, &p[0]), CCI_CONN_GOT_ANSWER);
    }
}

static void test_a_table_that_takes_no_unproven_request_is_asked_for_a_cookie_first(void **state) {
    packet_t p[8];
    (void)state;
    side[CLIENT].table.unproven_most = side[SERVER].table.unproven_most = 0;
    asked.pending.data_len = CCI_CONN_REQ_LEN;
    assert_int_equal(ask(p), 1); /* of many */
    assert_int_equal(give(&side[SERVER], p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(side[SERVER].in.answer, CCI__PKT_COOKIE);
    p[0] = reply(&side[SERVER], CCI__PKT_COOKIE);
    assert_int_equal(give(&side[CLIENT], p), CCI_CONN_GOT_NOTHING);
    assert_int_equal(ask(p), 5);
    assert_int_equal(give(&side[SERVER], p), CCI_CONN_GOT_REQUEST);
    assert_true(side[SERVER].in.is_proven);
}

static void test_a_silent_peer_is_asked_eight_times_and_then_given_up(void **state) {
    const uint64_t period_ns = 300 * UINT64_C(1000) * CCI__MS;
    struct side *c = &side[CLIENT];
    uint64_t again_ns = 0, began_ns;
    uint32_t i;
    packet_t p;
    (void)state;
    connect_sides();
    c->conn->step.confirming = 0;
    assert_int_equal(cci_conn_probe(c->conn, period_ns, now_ns, &again_ns), CCI_CONN_DUE_NOTHING);
    assert_true(again_ns - now_ns <= period_ns && again_ns - now_ns > period_ns - 2 * CCI__MS);
    began_ns = again_ns;
    for (i = 0; i < CCI__CONN_PROBES; i++)
        assert_int_equal(cci_conn_probe(c->conn, period_ns, again_ns + 2 * CCI__MS, &again_ns), CCI_CONN_DUE_CONFIRM);
    assert_true(again_ns >= began_ns + period_ns);
    now_ns = again_ns - 1;
    c->conn->flags |= CCI__CONN_PINGED;
    p = say(&side[SERVER], CCI__PKT_CONFIRMED);
    assert_int_equal(give(c, &p), CCI_CONN_GOT_NOTHING); /* a sign of life */
    assert_false(c->conn->flags & CCI__CONN_PINGED);
    assert_int_equal(cci_conn_probe(c->conn, period_ns, now_ns, &again_ns), CCI_CONN_DUE_NOTHING);
    assert_int_equal(c->conn->tries, 0);
    c->conn->tries = CCI__CONN_PROBES;
    assert_int_equal(cci_conn_probe(c->conn, period_ns, now_ns + period_ns + 2 * CCI__MS, &again_ns), CCI_CONN_DUE_TIMED_OUT);
}

static void test_a_peer_moves_when_its_new_address_is_proven(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    cci_link_addr_t elsewhere = address(99), third = address(88), old = c->address;
    cci_conn_path_t path, theirs;
    packet_t request = ask_once();
    uint8_t frame[CCI__CONN_PATH_FRAME], other[CCI__CONN_PATH_FRAME];
    uint64_t bits;
    (void)state;
    memset(&path, 0, sizeof path);
    memset(&theirs, 0, sizeof theirs);
    connect_sides();
    elsewhere.bytes[5] = 9; /* in another network */
    cci_conn_path_elsewhere(&s->table, s->conn, &path, &elsewhere, 100, 0, now_ns);
    assert_true(path.challenge == 0); /* a late copy */
    cci_conn_path_elsewhere(&s->table, s->conn, &path, &elsewhere, 30, 1, now_ns);
    bits = path.challenge;
    assert_true(bits != 0 && cci_conn_path_deadline(&path, 40) == now_ns);
    cci_conn_path_challenge(&path, 40, frame, now_ns);
    assert_true(cci_conn_path_deadline(&path, 40) == now_ns + cci_conn_retry_ns(0));
    cci_conn_path_challenge(&path, 40, frame, now_ns);
    assert_true(cci_conn_path_deadline(&path, 40) == CCI__NEVER); /* three times what came, and no more */
    cci_conn_path_elsewhere(&s->table, s->conn, &path, &elsewhere, 30, 0, now_ns);
    assert_true(path.challenge == bits && cci_conn_path_deadline(&path, 40) != CCI__NEVER);
    cci_conn_path_elsewhere(&s->table, s->conn, &path, &third, 30, 1, now_ns);
    assert_true(path.challenge != bits && path.received == 30 && path.sent == 0); /* another attempt */
    cci_conn_path_input(&c->table, c->conn, &theirs, frame, now_ns); /* the challenge for the first */
    assert_true(theirs.owes_response);
    cci_conn_path_response(&theirs, other);
    assert_false(theirs.owes_response);
    assert_int_equal(other[0], CCI__FRAME_RESPONSE);
    cci_conn_path_input(&s->table, s->conn, &path, other, now_ns);
    assert_memory_equal(&s->conn->peer, &old, sizeof old); /* it is late */
    cci_conn_path_elsewhere(&s->table, s->conn, &path, &elsewhere, 30, 1, now_ns);
    cci_conn_path_challenge(&path, 40, frame, now_ns);
    cci_conn_path_input(&c->table, c->conn, &theirs, frame, now_ns);
    cci_conn_path_response(&theirs, other);
    cci_conn_path_input(&s->table, s->conn, &path, other, now_ns);
    assert_memory_equal(&s->conn->peer, &elsewhere, sizeof elsewhere);
    assert_true(path.challenge == 0);
    assert_int_equal(counted(s, &old, 0), 0);
    assert_int_equal(counted(s, &elsewhere, 0), 1);
    assert_int_equal(give(s, &request), CCI_CONN_GOT_NOTHING); /* a copy of the request at its old address */
    assert_int_equal(s->in.answer, 0);
    cci_conn_path_input(&s->table, s->conn, &path, other, now_ns); /* a copy of the response */
    assert_memory_equal(&s->conn->peer, &elsewhere, sizeof elsewhere);
}

/* The peer has moved from its first address to another one, and packets of its come from the first again. Each side sends its
 * RESPONSE at once. */
static void moves_and_is_heard_behind(struct side *mover, struct side *other, cci_conn_path_t *path) {
    cci_link_addr_t elsewhere = address(99), old = other->conn->peer;
    cci_conn_path_t theirs;
    uint8_t frame[CCI__CONN_PATH_FRAME];
    memset(path, 0, sizeof *path);
    memset(&theirs, 0, sizeof theirs);
    cci_conn_path_elsewhere(&other->table, other->conn, path, &elsewhere, 100, 1, now_ns);
    cci_conn_path_challenge(path, 40, frame, now_ns);
    cci_conn_path_input(&mover->table, mover->conn, &theirs, frame, now_ns);
    cci_conn_path_response(&theirs, frame);
    assert_int_equal(cci_conn_path_input(&other->table, other->conn, path, frame, now_ns), 1);
    cci_conn_path_elsewhere(&other->table, other->conn, path, &old, 100, 1, now_ns + CCI__CONN_STAYS_NS - 1);
}

/* Both have followed each other to where they no longer are, at the same time: one must stay. */
static void test_a_client_does_not_go_back_at_once_and_a_server_does(void **state) {
    cci_link_addr_t third = address(88), old;
    cci_conn_path_t path;
    (void)state;
    connect_sides();
    old = side[CLIENT].conn->peer;
    moves_and_is_heard_behind(&side[SERVER], &side[CLIENT], &path);
    assert_true(path.challenge == 0);
    cci_conn_path_elsewhere(&side[CLIENT].table, side[CLIENT].conn, &path, &third, 100, 1, now_ns);
    assert_true(path.challenge != 0); /* a new address is another matter */
    path.challenge = 0;
    cci_conn_path_elsewhere(&side[CLIENT].table, side[CLIENT].conn, &path, &old, 100, 1, now_ns + CCI__CONN_STAYS_NS);
    assert_true(path.challenge != 0);
    moves_and_is_heard_behind(&side[CLIENT], &side[SERVER], &path);
    assert_true(path.challenge != 0);
}

/* What tries a path, or answers that, does not tell where the peer is. */
static void test_a_challenge_or_a_response_alone_is_a_probe(void **state) {
    uint8_t bytes[CCI__HEADER_SIZE + 2 * CCI__CONN_PATH_FRAME] = {0};
    (void)state;
    bytes[CCI__HEADER_SIZE] = CCI__FRAME_CHALLENGE;
    assert_true(cci_conn_path_probes(bytes, CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME));
    assert_false(cci_conn_path_probes(bytes, CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME + 8));
    assert_false(cci_conn_path_probes(bytes, CCI__HEADER_SIZE + 8));
    assert_false(cci_conn_path_probes(bytes, CCI__HEADER_SIZE));
    bytes[CCI__HEADER_SIZE] = CCI__FRAME_RESPONSE;
    assert_true(cci_conn_path_probes(bytes, CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME));
    bytes[CCI__HEADER_SIZE] = CCI__FRAME_PING;
    assert_false(cci_conn_path_probes(bytes, CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME));
}

/* ---- sealed: each packet opens as it was, and otherwise not at all ---- */

static void *server_key(void *user, cci_seal_peer_t *peer) {
    assert_true(peer->key_id == 1234 && peer->address == NULL);
    return user;
}

static int forgotten;

static void forget_key(void *user, void *which) {
    forgotten += user == which;
}

static uint64_t toy(const uint8_t *nonce, const uint8_t *head, uint32_t head_length, const uint8_t *bytes, uint32_t length) {
    uint64_t sum = 1;
    uint32_t i;
    for (i = 0; i < 24; i++) sum = (sum ^ nonce[i]) * UINT64_C(0x100000001b3);
    for (i = 0; i < head_length; i++) sum = (sum ^ head[i]) * UINT64_C(0x100000001b3);
    for (i = 0; i < length; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static int toy_seal(void *user, void *which, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head, uint32_t head_length,
                    uint8_t *bytes, uint32_t length) {
    cci__store64(bytes + length, toy(nonce, head, head_length, bytes, length));
    return user == NULL || which == NULL;
}

static int toy_open(void *user, void *which, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head, uint32_t head_length,
                    uint8_t *bytes, uint32_t length) {
    return user == NULL || which == NULL || cci__load64(bytes + length) != toy(nonce, head, head_length, bytes, length);
}

static cci_seal_t hooks = {8, 0, &hooks, server_key, forget_key, toy_seal, toy_open};

/* Gives a packet with each of its bits changed, then as it is. */
static cci_conn_got_t give_damaged(struct side *to, const packet_t *p) {
    uint32_t bit;
    for (bit = CCI__HEADER_SIZE * 8; bit < p->length * 8; bit++) {
        packet_t bad = *p;
        cci_conn_got_t got;
        bad.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        got = give(to, &bad);
        if (got == CCI_CONN_GOT_REQUEST) {
            void *found;
            assert_int_equal(cci_conn_request_key(&to->table, &to->in, NULL, &found), CCI_CONN_GOT_FORGERY);
            assert_null(found);
        } else {
            assert_true(got == CCI_CONN_GOT_NOTHING || got == CCI_CONN_GOT_FORGERY); /* one that says what it can't */
            assert_true(to->in.answer == 0 || to->in.answer == CCI__PKT_COOKIE);
        }
    }
    return give(to, p);
}

static void test_sealed_packets_open_as_they_were_and_otherwise_not_at_all(void **state) {
    struct side *c = &side[CLIENT], *s = &side[SERVER];
    packet_t p, plain, confirm;
    void *found;
    (void)state;
    c->table.seal = s->table.seal = &hooks;
    plain = ask_once();
    assert_int_equal(give(s, &plain), CCI_CONN_GOT_MISMATCH);
    cci_conn_peer_of(c->conn)->key = &hooks;
    asked.pending.key_id = 1234;
    p = ask_once();
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING); /* heard only with a cookie */
    assert_int_equal(s->in.answer, CCI__PKT_COOKIE);
    p = reply(s, CCI__PKT_COOKIE);
    assert_int_equal(give(c, &p), CCI_CONN_GOT_NOTHING);
    p = ask_once();
    forgotten = 0;
    {
        packet_t bad = p;
        bad.bytes[p.length - 1] ^= 1;
        assert_int_equal(give(s, &bad), CCI_CONN_GOT_REQUEST);
        assert_int_equal(cci_conn_request_key(&s->table, &s->in, NULL, &found), CCI_CONN_GOT_FORGERY);
        assert_null(found);
        assert_int_equal(forgotten, 1);
    }
    assert_int_equal(give(s, &p), CCI_CONN_GOT_REQUEST);
    assert_int_equal(cci_conn_request_key(&s->table, &s->in, NULL, &found), CCI_CONN_GOT_SOUND);
    assert_ptr_equal(found, &hooks);
    take_request(found);
    assert_int_equal(cci_conn_decide(&s->table, s->conn, 0, now_ns), CCI__PKT_REJECT);
    p = say(s, CCI__PKT_REJECT); /* names its sender, whom the client does not know yet */
    assert_int_equal(give_damaged(c, &p), CCI_CONN_GOT_REJECT);
    accept_request(); /* the client is as it was */
    assert_int_equal(give(s, &plain), CCI_CONN_GOT_MISMATCH);
    p = say(s, CCI__PKT_ACCEPT);
    assert_int_equal(give_damaged(c, &p), CCI_CONN_GOT_ACCEPT);
    assert_true(cci_conn_peer_of(c->conn)->secret == cci__reset_secret(s->table.key, s->conn->index, s->conn->token));
    cci_conn_opened(&c->table, c->conn, now_ns);
    confirm = say(c, CCI__PKT_CONFIRM);
    assert_int_equal(give_damaged(s, &confirm), CCI_CONN_GOT_CONFIRM);
    cci_conn_opened(&s->table, s->conn, now_ns);
    s->conn->flags |= CCI__CONN_PINGED;
    assert_int_equal(give(s, &confirm), CCI_CONN_GOT_NOTHING); /* a copy is no sign of life */
    assert_true(s->conn->flags & CCI__CONN_PINGED);
    cci_conn_write_header(p.bytes, CCI__PKT_CLOSE, 0, s->conn->index, s->conn->token, c->conn->index, 0);
    p.length = CCI__HEADER_SIZE;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_MISMATCH); /* in the clear */
    cci_conn_begin_close(c->conn);
    p = say(c, CCI__PKT_CLOSE);
    assert_int_equal(give_damaged(s, &p), CCI_CONN_GOT_CLOSE);
    confirm = say(s, CCI__PKT_CONFIRM);
    cci_conn_end(&c->table, c->conn, now_ns); /* it knows nothing any more but its secret */
    assert_int_equal(give(c, &confirm), CCI_CONN_GOT_UNMATCHED);
    p = reply(c, CCI__PKT_RESET);
    assert_int_equal(p.length, CCI__HEADER_SIZE + CCI__SECRET_SIZE);
    p.bytes[24] ^= 1;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING);
    p.bytes[24] ^= 1;
    p.length--;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_NOTHING);
    p.length++;
    assert_int_equal(give(s, &p), CCI_CONN_GOT_RESET);
}

static void test_a_key_that_is_worn_out_seals_no_more(void **state) {
    struct side *s = &side[SERVER];
    packet_t p;
    (void)state;
    connect_sides();
    s->table.seal = &hooks;
    cci_conn_peer_of(s->conn)->key = &hooks;
    p = say(s, CCI__PKT_CONFIRM);
    assert_int_equal(cci_conn_peer_of(s->conn)->sealed_count, 1);
    assert_int_equal(cci_conn_unseal(&s->table, s->conn, CCI__SEAL_NUMBERS, 0, p.bytes, &p.length), CCI_CONN_GOT_NOTHING);
    cci_conn_peer_of(s->conn)->sealed_count = UINT32_MAX; /* the handshake's numbers are all used; there are others for messages */
    p.length = cci_conn_output(&s->table, s->conn, CCI__PKT_CONFIRM, p.bytes);
    assert_false(cci_conn_seal(&s->table, s->conn, 0, p.bytes, &p.length));
    assert_false(s->conn->flags & CCI__CONN_KEY_EXHAUSTED);
    p.length = cci_conn_output(&s->table, s->conn, CCI__PKT_DATA, p.bytes);
    assert_false(cci_conn_seal(&s->table, s->conn, CCI__SEAL_NUMBERS, p.bytes, &p.length));
    assert_true(s->conn->flags & CCI__CONN_KEY_EXHAUSTED);
    assert_false(cci_conn_seal(&s->table, s->conn, 0, p.bytes, &p.length));
    assert_false(cci_conn_has_listener(s->conn)); /* nobody could be told */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PROTOCOL(name) cmocka_unit_test_setup_teardown(name, set_up_sides, tear_down_sides)
    const struct CMUnitTest tests[] = {
        TEST(test_a_connection_is_found_by_its_index_and_token_alone),
        TEST(test_a_stale_token_finds_nothing),
        TEST(test_a_table_with_a_base_finds_its_own_indices_alone),
        TEST(test_the_table_grows_without_moving_connections),
        TEST(test_a_request_is_found_again_also_after_the_hash_has_grown),
        TEST(test_a_header_is_read_as_it_was_written_and_nothing_shorter),
        TEST(test_a_request_is_read_as_it_was_written),
        TEST(test_hostile_requests_name_nothing_outside),
        TEST(test_an_accept_names_both_sides),
        TEST(test_an_accept_that_is_cut_off_is_none),
        TEST(test_a_cookie_is_read_from_where_a_request_has_it),
        TEST(test_a_cookie_depends_on_address_index_token_epoch_and_key),
        TEST(test_retries_double_up_to_a_second),
        TEST(test_each_state_has_its_next_step),
        TEST(test_closes_leave_in_line_and_end),
        TEST(test_what_ended_is_remembered_for_two_epochs_at_most_and_one_at_least),
        TEST(test_a_network_has_three_quarters_at_most_and_others_the_rest),
        PROTOCOL(test_a_handshake_opens_both_sides_and_copies_of_its_packets_open_nothing),
        PROTOCOL(test_packets_that_are_cut_off_or_of_others_change_nothing),
        PROTOCOL(test_a_reset_names_the_connection_by_the_token_that_it_answers),
        PROTOCOL(test_a_cookie_comes_back_and_proves_the_address_once_and_for_an_epoch),
        PROTOCOL(test_a_refusal_and_busy_are_for_a_client_that_connects),
        PROTOCOL(test_a_close_is_answered_where_it_came_from_and_ends_both_sides),
        PROTOCOL(test_both_sides_may_close_at_once_and_a_server_before_it_was_confirmed),
        PROTOCOL(test_pieces_of_a_request_come_in_any_order_and_more_than_once),
        PROTOCOL(test_data_of_an_answer_waits_until_the_address_is_proven),
        PROTOCOL(test_pieces_of_an_answer_come_in_any_order_and_more_than_once),
        PROTOCOL(test_an_answer_that_changes_begins_anew),
        PROTOCOL(test_a_piece_of_an_answer_that_is_none_changes_nothing),
        PROTOCOL(test_a_table_that_takes_no_unproven_request_is_asked_for_a_cookie_first),
        PROTOCOL(test_a_silent_peer_is_asked_eight_times_and_then_given_up),
        PROTOCOL(test_a_peer_moves_when_its_new_address_is_proven),
        PROTOCOL(test_a_client_does_not_go_back_at_once_and_a_server_does),
        PROTOCOL(test_a_challenge_or_a_response_alone_is_a_probe),
        PROTOCOL(test_sealed_packets_open_as_they_were_and_otherwise_not_at_all),
        PROTOCOL(test_a_key_that_is_worn_out_seals_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
