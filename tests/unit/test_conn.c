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

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
