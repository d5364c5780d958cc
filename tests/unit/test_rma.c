/* test_rma.c - registered memory and reads, alone: two readers, a network between them, and virtual time.
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

#define CCI_RMA_IMPLEMENTATION
#include "cci.h"

#define REGIONS 8u
#define READS 8u
#define CHUNKS 16u
#define REQUESTS 64u
#define MEMORY (600u * 1024)
#define MS UINT64_C(1000000)
#define PATH 1500u

typedef struct node {
    cci_rma_table_t table;
    cci_rma_reader_t reader;
    cci_rma_region_t regions[REGIONS];
    cci_rma_read_t reads[READS];
    cci_rma_chunk_t chunks[CHUNKS];
    cci_rma_request_t requests[REQUESTS];
    uint8_t *memory;
    cci_rma_region_t *region;
    int finished[READS], status[READS];
} node_t;

typedef struct flying {
    uint64_t at_ns;
    node_t *to;
    uint32_t length;
    uint8_t *frame;
} flying_t;

typedef struct world {
    node_t node[2]; /* 0 reads the memory of 1 */
    uint64_t now_ns, random;
    uint32_t lose; /* of 256 */
    uint32_t path; /* bytes of frame and data that pass */
    uint32_t segment;
    uint64_t data_frames;
    int hostile;
    flying_t flying[8192];
    uint32_t count;
} world_t;

static uint32_t chance(world_t *w, uint32_t limit) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return limit ? (uint32_t)(w->random >> 16) % limit : 0;
}

static world_t *world_new(uint64_t seed) {
    world_t *w = calloc(1, sizeof *w);
    uint64_t key[2] = {seed + 1, 99};
    uint32_t i, k;
    assert_non_null(w);
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    w->now_ns = 1000 * MS;
    w->path = PATH;
    w->segment = 1400;
    for (i = 0; i < 2; i++) {
        node_t *n = &w->node[i];
        cci_rma_table_init(&n->table, key, n->regions, REGIONS, n->reads, READS, n->chunks, CHUNKS, n->requests,
                           REQUESTS);
        n->table.receive_window = UINT64_C(1) << 20;
        n->table.endpoint_id = 7 + i;
        cci_rma_reader_init(&n->reader, n);
        n->memory = malloc(MEMORY);
        assert_non_null(n->memory);
        for (k = 0; k < MEMORY; k++) n->memory[k] = (uint8_t)(i ? k * 31 + (k >> 8) : 0);
        n->region = cci_rma_add(&n->table, n->memory, MEMORY, CCI_FLAG_READ);
        assert_non_null(n->region);
        key[0]++;
    }
    return w;
}

static uint32_t list_length(const cci_list_t *head) {
    const cci_list_t *node;
    uint32_t n = 0;
    for (node = head->next; node != head; node = node->next) n++;
    return n;
}

static void world_end(world_t *w) {
    uint32_t i;
    for (i = 0; i < w->count; i++) free(w->flying[i].frame);
    for (i = 0; i < 2; i++) {
        node_t *n = &w->node[i];
        cci_rma_reader_abort(&n->table, &n->reader);
        assert_true(cci_rma_reader_idle(&n->reader));
        assert_int_equal(n->reader.outstanding, 0);
        assert_int_equal(n->reader.again, 0);
        assert_int_equal(list_length(&n->table.reads), READS);
        assert_int_equal(list_length(&n->table.chunks), CHUNKS);
        assert_int_equal(list_length(&n->table.requests), REQUESTS);
        free(n->memory);
    }
    free(w);
}

static void fly(world_t *w, node_t *to, const uint8_t *head, uint32_t head_length, const uint8_t *body,
                uint32_t body_length) {
    flying_t *f = &w->flying[w->count];
    if (head_length + body_length > w->path || chance(w, 256) < w->lose || w->count == 8192) return;
    f->to = to;
    f->at_ns = w->now_ns + MS / 10 + chance(w, 50000);
    f->length = head_length + body_length;
    f->frame = malloc(f->length);
    assert_non_null(f->frame);
    memcpy(f->frame, head, head_length);
    if (body_length) memcpy(f->frame + head_length, body, body_length);
    if (w->hostile && chance(w, 3) == 0) f->frame[chance(w, cci__min32(f->length, 48))] = (uint8_t)chance(w, 256);
    w->count++;
}

static void collect(node_t *n) {
    cci_rma_read_t *read;
    while ((read = cci_rma_next_finished(&n->reader)) != NULL) {
        n->finished[read - n->reads]++;
        n->status[read - n->reads] = read->status;
        cci_rma_free_read(&n->table, read);
    }
}

static void step(world_t *w) {
    uint64_t next = w->now_ns + 20 * MS;
    uint32_t i = 0, k;
    while (i < w->count) {
        flying_t f = w->flying[i];
        if (f.at_ns > w->now_ns) {
            i++;
            continue;
        }
        w->flying[i] = w->flying[--w->count];
        for (k = 0; k < f.length;) {
            uint32_t size = cci_rma_input(&f.to->table, &f.to->reader, f.frame + k, f.length - k, w->now_ns);
            assert_true(w->hostile || size > 0);
            assert_true(size <= f.length - k);
            if (size == 0) break;
            k += size;
        }
        free(f.frame);
        collect(f.to);
    }
    for (i = 0; i < 2; i++) {
        node_t *n = &w->node[i], *peer = &w->node[1 - i];
        uint8_t head[192];
        const uint8_t *body;
        uint32_t size, body_length;
        if (cci_rma_deadline(&n->reader) <= w->now_ns) cci_rma_timeout(&n->table, &n->reader, 1160, w->now_ns);
        while ((size = cci_rma_ask(&n->table, &n->reader, w->segment, head, sizeof head, w->now_ns)) > 0)
            fly(w, peer, head, size, NULL, 0);
        for (k = 0; (size = cci_rma_answer(&n->table, &n->reader, head, PATH, &body, &body_length)) > 0; k++) {
            assert_true(size + (uint64_t)body_length <= PATH);
            assert_true(k < 64 * REQUESTS + 16);
            w->data_frames += body != NULL;
            fly(w, peer, head, size, body, body_length);
        }
        next = cci__min64(next, cci_rma_deadline(&n->reader));
    }
    for (i = 0; i < w->count; i++) next = cci__min64(next, w->flying[i].at_ns);
    w->now_ns = cci__max64(next, w->now_ns + 1000);
}

static cci_rma_read_t *start(world_t *w, uint64_t offset, uint64_t length) {
    node_t *n = &w->node[0];
    cci_rma_read_t *read = cci_rma_new_read(&n->table);
    assert_non_null(read);
    cci_rma_parse_handle(&n->region->handle, &read->local_key, &read->local_region);
    cci_rma_parse_handle(&w->node[1].region->handle, &read->key, &read->region);
    read->local_offset = read->offset = offset;
    read->length = length;
    cci_rma_read_start(&n->reader, read);
    return read;
}

static int run_until_idle(world_t *w, uint64_t ns) {
    uint64_t until = w->now_ns + ns;
    while (!cci_rma_reader_idle(&w->node[0].reader)) {
        if (w->now_ns > until) return 0;
        step(w);
    }
    return 1;
}

/* ---- registrations ------------------------------------------------------------------------------------------------ */

static void test_a_handle_is_its_bytes(void **state) {
    world_t *w = world_new(1);
    cci_rma_table_t *t = &w->node[1].table;
    struct cci_rma_handle copy;
    uint64_t key;
    uint32_t index;
    (void)state;
    memcpy(&copy, &w->node[1].region->handle, sizeof copy);
    cci_rma_parse_handle(&copy, &key, &index);
    assert_ptr_equal(cci_rma_find(t, key, index), w->node[1].region);
    assert_int_not_equal(key, 0);
    cci__store64((uint8_t *)copy.stuff + 8, UINT64_C(0x100000000) + index); /* an index of more than 32 bits */
    cci_rma_parse_handle(&copy, &key, &index);
    assert_null(cci_rma_find(t, key, index));
    world_end(w);
}

static void test_a_forged_or_stale_key_finds_nothing(void **state) {
    world_t *w = world_new(2);
    cci_rma_table_t *t = &w->node[1].table;
    uint64_t key;
    uint32_t index, bit;
    (void)state;
    cci_rma_parse_handle(&w->node[1].region->handle, &key, &index);
    for (bit = 0; bit < 64; bit++) assert_null(cci_rma_find(t, key ^ UINT64_C(1) << bit, index));
    for (bit = 0; bit < REGIONS + 2; bit++) {
        if (bit != index) assert_null(cci_rma_find(t, key, bit));
        assert_null(cci_rma_find(t, 0, bit)); /* what is free has no key */
    }
    assert_null(cci_rma_find(t, key, 0xffffffff));
    cci_rma_remove(t, w->node[1].region);
    assert_null(cci_rma_find(t, key, index));
    assert_ptr_equal(cci_rma_add(t, w->node[1].memory, 10, CCI_FLAG_READ), w->node[1].region); /* the same place */
    assert_null(cci_rma_find(t, key, index));
    world_end(w);
}

static void test_a_full_table_says_so(void **state) {
    world_t *w = world_new(3);
    cci_rma_table_t *t = &w->node[1].table;
    cci_rma_region_t *made[REGIONS];
    uint32_t i;
    (void)state;
    for (i = 1; i < REGIONS; i++) assert_non_null(made[i] = cci_rma_add(t, w->node[1].memory, i, 0));
    assert_null(cci_rma_add(t, w->node[1].memory, 1, 0));
    for (i = 1; i < REGIONS; i++) cci_rma_remove(t, made[i]);
    for (i = 1; i < REGIONS; i++) assert_non_null(cci_rma_add(t, w->node[1].memory, i, 0));
    assert_null(cci_rma_add(t, w->node[1].memory, 1, 0));
    world_end(w);
}

static void test_ranges_are_checked_without_overflow(void **state) {
    world_t *w = world_new(4);
    cci_rma_table_t *t = &w->node[1].table;
    uint8_t *memory = w->node[1].memory;
    uint64_t key, max = UINT64_MAX;
    uint32_t index;
    (void)state;
    cci_rma_parse_handle(&w->node[1].region->handle, &key, &index);
    assert_ptr_equal(cci_rma_address(t, key, index, 0, MEMORY, CCI_FLAG_READ), memory);
    assert_ptr_equal(cci_rma_address(t, key, index, MEMORY - 1, 1, CCI_FLAG_READ), memory + MEMORY - 1);
    assert_ptr_equal(cci_rma_address(t, key, index, MEMORY, 0, 0), memory + MEMORY);
    assert_null(cci_rma_address(t, key, index, MEMORY, 1, 0));
    assert_null(cci_rma_address(t, key, index, 1, MEMORY, 0));
    assert_null(cci_rma_address(t, key, index, max, 1, 0));
    assert_null(cci_rma_address(t, key, index, max, 2, 0));
    assert_null(cci_rma_address(t, key, index, 1, max, 0));
    assert_null(cci_rma_address(t, key, index, max - 9, 20, 0));
    assert_null(cci_rma_address(t, key, index, 0, 10, CCI_FLAG_WRITE)); /* no such right */
    assert_null(cci_rma_address(t, key, index, 0, 10, CCI_FLAG_READ | CCI_FLAG_WRITE));
    world_end(w);
}

/* ---- reads -------------------------------------------------------------------------------------------------------- */

static void test_reads_bring_exact_bytes_over_a_lossy_network(void **state) {
    uint32_t seed, i, k;
    (void)state;
    for (seed = 0; seed < 8; seed++) {
        world_t *w = world_new(100 + seed);
        uint8_t *expected = calloc(1, MEMORY);
        uint32_t at = 0;
        w->lose = seed * 8;
        for (i = 0; i < READS; i++) {
            uint32_t length = 1 + chance(w, i % 2 ? 70000 : 3000);
            at += chance(w, 20);
            memcpy(expected + at, w->node[1].memory + at, length);
            (void)start(w, at, length);
            at += length;
        }
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: not done", seed);
        for (k = 0; k < READS; k++) {
            assert_int_equal(w->node[0].finished[k], 1);
            assert_int_equal(w->node[0].status[k], CCI_SUCCESS);
        }
        assert_memory_equal(w->node[0].memory, expected, MEMORY);
        free(expected);
        world_end(w);
    }
}

static void test_only_what_is_missing_is_asked_for_again(void **state) {
    world_t *w = world_new(120);
    (void)state;
    w->lose = 13; /* 5 % */
    (void)start(w, 0, MEMORY);
    assert_true(run_until_idle(w, 60000 * MS));
    assert_memory_equal(w->node[0].memory, w->node[1].memory, MEMORY);
    if (w->data_frames * 1400 > MEMORY * 5 / 4) fail_msg("%u segments for %u", (unsigned)w->data_frames, MEMORY / 1400);
    world_end(w);
}

static void test_segments_shrink_when_the_way_back_is_narrow(void **state) {
    world_t *w = world_new(130);
    (void)state;
    w->path = 1200;
    (void)start(w, 5, 50000);
    assert_true(run_until_idle(w, 60000 * MS));
    assert_memory_equal(w->node[0].memory + 5, w->node[1].memory + 5, 50000);
    world_end(w);
}

static void test_a_short_last_segment_that_passes_a_narrow_way_does_not_keep_others_from_shrinking(void **state) {
    world_t *w = world_new(131);
    (void)state;
    w->path = 1200;
    (void)start(w, 5, 2400); /* 1,400 bytes, which do not pass, and 1,000, which do */
    assert_true(run_until_idle(w, 60000 * MS));
    assert_memory_equal(w->node[0].memory + 5, w->node[1].memory + 5, 2400);
    world_end(w);
}

/* What the reader has learned of one chunk, it knows for the next ones. */
static void test_a_long_read_over_a_narrow_way_back_learns_it_once(void **state) {
    world_t *w = world_new(132);
    uint64_t began = w->now_ns;
    uint32_t i;
    (void)state;
    w->path = 1200;
    for (i = 0; i < 10; i++) {
        (void)start(w, 0, MEMORY);
        assert_true(run_until_idle(w, 60000 * MS));
        assert_memory_equal(w->node[0].memory, w->node[1].memory, MEMORY);
        memset(w->node[0].memory, 0, MEMORY);
    }
    if (w->now_ns - began > 2000 * MS) fail_msg("ten reads took %u ms", (unsigned)((w->now_ns - began) / MS));
    world_end(w);
}

/* Nothing came for a while: that says little about the length of what could come. */
static void test_an_outage_makes_segments_short_for_a_while_only(void **state) {
    static const uint32_t outages_ms[] = {300, 1500, 8000, 30000};
    uint32_t i;
    (void)state;
    for (i = 0; i < sizeof outages_ms / sizeof outages_ms[0]; i++) {
        world_t *w = world_new(133 + i);
        uint64_t end;
        (void)start(w, 0, MEMORY);
        for (end = w->now_ns + MS; w->now_ns < end;) step(w);
        assert_false(cci_rma_reader_idle(&w->node[0].reader));
        w->lose = 256;
        for (end = w->now_ns + outages_ms[i] * MS; w->now_ns < end;) step(w);
        w->lose = 0;
        assert_true(run_until_idle(w, 10000 * MS));
        w->now_ns += (outages_ms[i] + 1000) * MS;
        w->data_frames = 0;
        (void)start(w, 0, MEMORY);
        assert_true(run_until_idle(w, 10000 * MS));
        if (w->data_frames > MEMORY / 1400 + 64)
            fail_msg("outage of %u ms: %u segments", (unsigned)outages_ms[i], (unsigned)w->data_frames);
        world_end(w);
    }
}

/* The way back becomes as wide as the way there. */
static void test_long_segments_are_tried_again_over_a_narrow_way_back(void **state) {
    world_t *w = world_new(140);
    uint64_t end, i;
    (void)state;
    w->path = 1200;
    for (end = w->now_ns + 100000 * MS; w->now_ns < end;) {
        (void)start(w, 0, MEMORY);
        assert_true(run_until_idle(w, 10000 * MS));
    }
    w->path = PATH;
    for (i = 0; i < 2; i++) {
        w->now_ns += 600000 * MS;
        w->data_frames = 0;
        (void)start(w, 0, MEMORY);
        assert_true(run_until_idle(w, 10000 * MS));
    }
    assert_true(w->data_frames <= MEMORY / 1400 + 64);
    world_end(w);
}

/* The path's MTU is found to be smaller while chunks are under way: what is asked for again is so in segments that fit. */
static void test_segments_follow_a_path_that_becomes_shorter(void **state) {
    world_t *w = world_new(141);
    uint64_t end, began;
    (void)state;
    (void)start(w, 0, MEMORY);
    for (end = w->now_ns + MS; w->now_ns < end;) step(w);
    assert_false(cci_rma_reader_idle(&w->node[0].reader));
    w->path = 1050;
    w->segment = 1024; /* less than what is tried when nothing comes */
    began = w->now_ns;
    assert_true(run_until_idle(w, 60000 * MS));
    assert_memory_equal(w->node[0].memory, w->node[1].memory, MEMORY);
    if (w->now_ns - began > 500 * MS) fail_msg("it took %u ms", (unsigned)((w->now_ns - began) / MS));
    world_end(w);
}

static void test_a_read_of_what_may_not_be_read_is_denied(void **state) {
    world_t *w = world_new(140);
    cci_rma_read_t *read;
    uint32_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        read = start(w, 0, 100000);
        if (i == 0) read->key ^= 1;
        if (i == 1) read->region = 77;
        if (i == 2) read->offset = UINT64_MAX / 2;
        if (i == 3) w->node[1].region->flags = CCI_FLAG_WRITE;
        assert_true(run_until_idle(w, 10000 * MS));
        assert_int_equal(w->node[0].status[read - w->node[0].reads], CCI_ERR_RMA_HANDLE);
    }
    for (i = 0; i < MEMORY; i++) assert_int_equal(w->node[0].memory[i], 0);
    world_end(w);
}

static void test_deregistration_in_the_middle_ends_the_read_on_either_side(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(150 + i);
        cci_rma_read_t *read = start(w, 0, MEMORY);
        uint32_t k;
        for (k = 0; k < 40; k++) step(w);
        assert_false(cci_rma_reader_idle(&w->node[0].reader));
        cci_rma_remove(&w->node[i].table, w->node[i].region);
        assert_true(run_until_idle(w, 10000 * MS));
        assert_int_equal(w->node[0].finished[read - w->node[0].reads], 1);
        assert_int_equal(w->node[0].status[read - w->node[0].reads], CCI_ERR_RMA_HANDLE);
        world_end(w);
    }
}

/* ---- hostile input ------------------------------------------------------------------------------------------------ */

static void read_frame(uint8_t frame[48], const cci_rma_region_t *region, uint32_t segment, uint64_t offset,
                       uint32_t length, uint64_t missing) {
    memset(frame, 0, 48);
    frame[0] = CCI__FRAME_READ;
    cci__store64(frame + 8, region->key);
    cci__store32(frame + 16, 0);
    cci__store32(frame + 20, segment);
    cci__store64(frame + 24, offset);
    cci__store32(frame + 32, length);
    cci__store64(frame + 40, missing);
}

static void test_each_of_many_requests_that_may_not_be_read_is_denied_at_once(void **state) {
    world_t *w = world_new(201);
    node_t *n = &w->node[1];
    uint8_t frame[48], head[24];
    const uint8_t *body;
    uint32_t i, body_length, count = REQUESTS / 4; /* one connection does not get all */
    (void)state;
    for (i = 0; i < count; i++) { /* a program may have deregistered the memory of all reads under way */
        read_frame(frame, n->region, 1400, 0, 1400, 1);
        cci__store64(frame + 8, 1);
        cci__store32(frame + 4, i);
        assert_int_equal(cci_rma_input(&n->table, &n->reader, frame, 48, w->now_ns), 48);
    }
    for (i = 0; i < count; i++) {
        assert_int_equal(cci_rma_answer(&n->table, &n->reader, head, PATH, &body, &body_length), 8);
        assert_int_equal(head[0], CCI__FRAME_DENIED);
        assert_int_equal(cci__load32(head + 4), i);
    }
    assert_true(cci_rma_reader_idle(&n->reader));
    assert_int_equal(n->table.denied, count);
    world_end(w);
}

static void test_a_flood_of_requests_is_bounded(void **state) {
    world_t *w = world_new(200);
    node_t *n = &w->node[1];
    uint8_t frame[48], head[16];
    const uint8_t *body;
    uint32_t i, body_length, answers = 0;
    (void)state;
    read_frame(frame, n->region, 1400, 0, 64 * 1400, UINT64_MAX);
    for (i = 0; i < 100000; i++) assert_int_equal(cci_rma_input(&n->table, &n->reader, frame, 48, w->now_ns), 48);
    assert_true(n->reader.request_count <= REQUESTS);
    cci__store64(frame + 8, 1);
    for (i = 0; i < 1000; i++) (void)cci_rma_input(&n->table, &n->reader, frame, 48, w->now_ns);
    while (cci_rma_answer(&n->table, &n->reader, head, PATH, &body, &body_length) > 0) answers++;
    assert_true(answers <= 64 * REQUESTS);
    assert_true(cci_rma_reader_idle(&n->reader));
    world_end(w);
}

/* No memory lies behind this region; only its addresses are asked for. */
static void test_an_answer_never_exceeds_its_packet(void **state) {
    static const uint32_t sizes[] = {0xffffffffu, 0xfffffff8u, 0xfffffff0u, 0xffffffefu, 0x80000000u, 65536, 65535, 1485};
    world_t *w = world_new(210);
    node_t *n = &w->node[1];
    uint8_t frame[48], head[16];
    const uint8_t *body;
    uint32_t i, body_length, size;
    (void)state;
    n->region->length = UINT64_C(1) << 40;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        read_frame(frame, n->region, sizes[i], 0, sizes[i], 1);
        (void)cci_rma_input(&n->table, &n->reader, frame, 48, w->now_ns);
        size = cci_rma_answer(&n->table, &n->reader, head, PATH, &body, &body_length);
        if (size + (uint64_t)body_length > PATH)
            fail_msg("an answer of %u bytes for a packet of %u", body_length, PATH);
    }
    n->region->length = MEMORY;
    world_end(w);
}

static void test_missing_segments_beyond_the_chunk_are_ignored(void **state) {
    world_t *w = world_new(220);
    node_t *n = &w->node[1];
    uint8_t frame[48], head[16];
    const uint8_t *body;
    uint32_t body_length, count = 0;
    (void)state;
    read_frame(frame, n->region, 1000, MEMORY - 2500, 2500, UINT64_MAX); /* three segments, 64 asked for */
    assert_int_equal(cci_rma_input(&n->table, &n->reader, frame, 48, w->now_ns), 48);
    while (cci_rma_answer(&n->table, &n->reader, head, PATH, &body, &body_length) == 16) {
        assert_true(body >= n->memory && body + body_length <= n->memory + MEMORY);
        count++;
    }
    assert_int_equal(count, 3);
    world_end(w);
}

static void test_truncated_frames_are_malformed(void **state) {
    world_t *w = world_new(230);
    uint32_t type, length;
    (void)state;
    for (type = 16; type < 24; type++)
        for (length = 1; length < 48; length++) {
            uint8_t *frame = calloc(1, length);
            uint32_t size;
            assert_non_null(frame);
            frame[0] = (uint8_t)type;
            size = cci_rma_input(&w->node[0].table, &w->node[0].reader, frame, length, w->now_ns);
            assert_true(size <= length);
            free(frame);
        }
    world_end(w);
}

static void test_late_and_repeated_data_is_placed_nowhere(void **state) {
    world_t *w = world_new(240);
    uint8_t *packet[64];
    uint32_t length[64], count = 0, i;
    (void)state;
    (void)start(w, 0, 20000);
    while (!cci_rma_reader_idle(&w->node[0].reader)) {
        for (i = 0; i < w->count && count < 64; i++)
            if (w->flying[i].to == &w->node[0]) {
                packet[count] = malloc(w->flying[i].length);
                memcpy(packet[count], w->flying[i].frame, w->flying[i].length);
                length[count++] = w->flying[i].length;
            }
        step(w);
    }
    assert_true(count > 5);
    memset(w->node[0].memory, 0x55, 20000);
    (void)start(w, 100000, 20000); /* perhaps in the chunk of the first */
    (void)cci_rma_ask(&w->node[0].table, &w->node[0].reader, 1400, (uint8_t[192]){0}, 192, w->now_ns);
    for (i = 0; i < count; i++) {
        (void)cci_rma_input(&w->node[0].table, &w->node[0].reader, packet[i], length[i], w->now_ns);
        free(packet[i]);
    }
    for (i = 0; i < 20000; i++) assert_int_equal(w->node[0].memory[i], 0x55);
    for (i = 0; i < 20000; i++) assert_int_equal(w->node[0].memory[100000 + i], 0);
    world_end(w);
}

static void test_mutated_frames_do_no_harm(void **state) {
    uint32_t seed, n;
    (void)state;
    for (seed = 0; seed < 60; seed++) {
        world_t *w = world_new(1000 + seed);
        w->hostile = 1;
        w->lose = 20;
        for (n = 0; n < 300; n++) {
            if (!cci__list_empty(&w->node[0].table.reads)) (void)start(w, chance(w, 1000), 1 + chance(w, 200000));
            step(w);
        }
        world_end(w);
    }
}

#ifndef CCI_NO_ATOMICS
/* What has been done for a peer, and not answered, keeps a connection from being stopped while others have the memory. */
static void test_answers_to_atomics_are_not_stopped(void **state) {
    world_t *w = world_new(90);
    node_t *n = &w->node[1];
    cci_rma_atomics_t atomics;
    cci_rma_region_t *region = cci_rma_add(&n->table, n->memory, 64, CCI_FLAG_READ | CCI_FLAG_WRITE);
    uint8_t frame[48], answer[24];
    uint64_t key;
    uint32_t index, length;
    const uint8_t *body;
    (void)state;
    memset(&atomics, 0, sizeof atomics);
    n->reader.atomics = &atomics;
    cci_rma_parse_handle(&region->handle, &key, &index);
    memset(frame, 0, sizeof frame);
    frame[0] = CCI__FRAME_ATOMIC;
    frame[1] = CCI_ATOMIC_FETCH_ADD;
    frame[2] = 8;
    cci__store32(frame + 4, 5);
    cci__store64(frame + 8, key);
    cci__store32(frame + 16, index);
    cci__store64(frame + 32, 1);
    memset(n->memory, 0, 8);
    assert_int_equal(cci_rma_input(&n->table, &n->reader, frame, sizeof frame, w->now_ns), sizeof frame);
    assert_false(cci_rma_reader_idle(&n->reader));
    assert_int_equal(cci_rma_reader_stop(&n->table, &n->reader), 0);
    assert_int_equal(cci_rma_answer(&n->table, &n->reader, answer, sizeof answer, &body, &length), 24);
    assert_int_equal(cci_rma_reader_stop(&n->table, &n->reader), 1);
    assert_true(cci_rma_reader_idle(&n->reader));
    assert_int_equal(n->memory[0] + n->memory[7], 1);
    world_end(w);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_handle_is_its_bytes),
        cmocka_unit_test(test_a_forged_or_stale_key_finds_nothing),
        cmocka_unit_test(test_a_full_table_says_so),
        cmocka_unit_test(test_ranges_are_checked_without_overflow),
        cmocka_unit_test(test_reads_bring_exact_bytes_over_a_lossy_network),
        cmocka_unit_test(test_only_what_is_missing_is_asked_for_again),
        cmocka_unit_test(test_segments_shrink_when_the_way_back_is_narrow),
        cmocka_unit_test(test_a_short_last_segment_that_passes_a_narrow_way_does_not_keep_others_from_shrinking),
        cmocka_unit_test(test_a_long_read_over_a_narrow_way_back_learns_it_once),
        cmocka_unit_test(test_an_outage_makes_segments_short_for_a_while_only),
        cmocka_unit_test(test_long_segments_are_tried_again_over_a_narrow_way_back),
        cmocka_unit_test(test_segments_follow_a_path_that_becomes_shorter),
        cmocka_unit_test(test_a_read_of_what_may_not_be_read_is_denied),
        cmocka_unit_test(test_deregistration_in_the_middle_ends_the_read_on_either_side),
        cmocka_unit_test(test_each_of_many_requests_that_may_not_be_read_is_denied_at_once),
        cmocka_unit_test(test_a_flood_of_requests_is_bounded),
        cmocka_unit_test(test_an_answer_never_exceeds_its_packet),
        cmocka_unit_test(test_missing_segments_beyond_the_chunk_are_ignored),
        cmocka_unit_test(test_truncated_frames_are_malformed),
        cmocka_unit_test(test_late_and_repeated_data_is_placed_nowhere),
        cmocka_unit_test(test_mutated_frames_do_no_harm),
#ifndef CCI_NO_ATOMICS
        cmocka_unit_test(test_answers_to_atomics_are_not_stopped),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
