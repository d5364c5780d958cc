/* test_rel.c - the reliability protocol, alone: two sides, a network between them, and virtual time.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The network loses, repeats, reorders, delays and cuts from one seed. Each side has a pool and a sink of its own. Every
 * datagram lies in memory of exactly its size, so that a sanitizer sees each byte read or written outside.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CCI_REL_IMPLEMENTATION
#include "cci.h"

/* ---- two sides --------------------------------------------------------------------------------------------------- */

#define BLOCK_SIZE 9000u
#define MTU_MAX (BLOCK_SIZE + CCI_REL_HEADER)
#define BLOCKS 64u
#define BULKS 64u
#define RECORDS 512u
#define PARTS 64u
#define MESSAGES 4096u /* identifiers of messages */
#define ARENA 65536u   /* bytes of memory that the other side may write */
#define KEY UINT64_C(0x1122334455667788)
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

typedef struct buf {
    uint32_t refs;
    uint32_t length;
    uint64_t pad;
    uint8_t data[]; /* 8-byte aligned */
} buf_t;

typedef struct op {
    cci_rel_op_t rel;
    uint32_t id;
    int completed; /* how often */
    uint8_t *lent; /* the message's bytes until it completes, if it is sent from where it is */
} op_t;

typedef struct side {
    cci_rel_pool_t pool;
    cci_rel_t rel;
    cci__rel_ecn_t ecn;
    cci_rel_state_t state;
    cci_rel_block_t blocks[BLOCKS];
    cci_rel_item_t bulks[BULKS];
    cci_rel_sent_t records[RECORDS];
    cci_rel_reassembly_t parts[PARTS];
    cci_rel_numbers_t numbers;
    cci_rel_gaps_t gaps[PARTS + 1];
    uint8_t *bytes;
    struct side *peer;
    struct world *world;
    /* as a sender */
    op_t ops[MESSAGES];
    uint32_t sent, completed, last_completed;
    uint64_t completed_ns; /* when the last one did */
    int unreadable; /* its own memory is not registered any more */
    int broken;
    uint32_t started;
    cci_rel_item_t *extern_item[16];
    /* as a receiver */
    uint8_t delivered[MESSAGES];
    uint32_t delivered_count, next_in_order;
    uint32_t refuse_keep; /* of 256 */
    uint32_t most_parts;  /* messages in pieces that it has memory for; 0: any number */
    int refuse_early;     /* keeps no packet that is not the next one */
    int refuse_place;     /* places nothing at an address that is a multiple of 32 */
    int all_refused;                    /* places nothing any more */
    uint32_t other_size;                /* what the sink says that a frame of another layer takes; 0: the rest */
    uint8_t *arena;                     /* what the peer may write */
    uint64_t placed;                    /* bytes */
    cci_rel_run_t *kept, **kept_tail;   /* delivered, not yet returned */
    uint32_t keep_runs;                 /* holds that many runs back */
    uint32_t kept_count;
} side_t;

typedef struct flying {
    uint64_t at_ns;
    side_t *to;
    uint32_t number, codepoint;
    buf_t *buf;
} flying_t;

/* What the path makes of the codepoints of ECN: nothing; CE of each ECT(0), or of one in so many; none; ECT(1). */
enum { MARKS_NOTHING, MARKS_ALL, MARKS_SOME, MARKS_AWAY, MARKS_OTHER };

typedef struct world {
    side_t side[2];
    uint64_t now_ns, random;
    uint32_t lose, repeat, reorder; /* of 256 */
    uint64_t delay_ns;
    uint32_t path_mtu;
    int marks;
    uint32_t mark_every, codepoint, reports; /* codepoint: of the packet that leaves */
    int down;      /* all is lost */
    int idle;      /* what is said to cci_rel_output() */
    uint32_t in_place; /* packets that lay in the pool as they left */
    int hostile;   /* mutated copies are delivered too, and nothing is promised */
    uint32_t big;  /* datagrams longer than the path carries */
    uint32_t packets, mutated, emitted_now;
    flying_t flying[4096];
    uint32_t flying_count;
    uint8_t head[CCI_REL_HEAD];
} world_t;

static int live_buffers;

static uint32_t chance(world_t *w, uint32_t limit) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return limit ? (uint32_t)(w->random >> 16) % limit : 0;
}

static buf_t *buf_new(uint32_t length) {
    buf_t *buf = malloc(sizeof *buf + length);
    assert_non_null(buf);
    buf->refs = 1;
    buf->length = length;
    live_buffers++;
    return buf;
}

static void buf_drop(buf_t *buf) {
    assert_true(buf->refs > 0);
    if (--buf->refs > 0) return;
    live_buffers--;
    free(buf);
}

/* ---- what a message says ----------------------------------------------------------------------------------------- */

static void message_fill(uint8_t *bytes, uint32_t id, uint32_t length) {
    uint32_t i;
    for (i = 0; i < length; i++) bytes[i] = (uint8_t)(i < 4 ? id >> 8 * i : id * 7 + i * 13 + 1);
}

static uint32_t message_read(const uint8_t *bytes, uint32_t length) {
    uint32_t i, id;
    assert_true(length >= 4);
    id = cci__load32(bytes);
    for (i = 4; i < length; i++)
        if (bytes[i] != (uint8_t)(id * 7 + i * 13 + 1)) fail_msg("message %u is wrong at byte %u of %u", id, i, length);
    return id;
}

static uint8_t memory_byte(uint64_t at, uint32_t id) {
    return (uint8_t)(at * 31 + id * 3 + 17);
}

/* ---- the sink ---------------------------------------------------------------------------------------------------- */

static int sink_keep(void *user, void *buffer, int in_order) {
    side_t *s = user;
    if (chance(s->world, 256) < s->refuse_keep || (s->refuse_early && !in_order)) return 0;
    ((buf_t *)buffer)->refs++;
    return 1;
}

static void sink_drop(void *user, void *buffer) {
    (void)user;
    buf_drop(buffer);
}

static uint8_t *sink_assemble(void *user, uint32_t size, int in_order, void **buffer) {
    side_t *s = user;
    buf_t *buf;
    (void)in_order;
    if (size > BLOCK_SIZE || chance(s->world, 256) < s->refuse_keep) return NULL;
    if (s->most_parts && s->rel.buffers_held >= s->most_parts) return NULL;
    buf = buf_new(CCI_REL_HEADER + size);
    *buffer = buf;
    return buf->data;
}

static void take_message(side_t *s, const uint8_t *bytes, uint32_t length) {
    uint32_t id;
    if (s->world->hostile) return;
    id = message_read(bytes, length);
    assert_true(id < MESSAGES);
    if (s->delivered[id]) fail_msg("message %u was delivered twice", id);
    s->delivered[id] = 1;
    s->delivered_count++;
    if (s->rel.ordered && id < s->next_in_order) fail_msg("message %u came after %u", id, s->next_in_order - 1);
    s->next_in_order = id + 1;
}

static void return_runs(side_t *s, uint32_t keep) {
    while (s->kept_count > keep) {
        cci_rel_run_t *run = s->kept;
        s->kept = run->next;
        if (!s->kept) s->kept_tail = &s->kept;
        s->kept_count--;
        buf_drop(run->buffer);
    }
}

static void sink_deliver(void *user, cci_rel_run_t *run) {
    side_t *s = user;
    uint32_t at = run->begin, i;
    assert_true(run->count > 0);
    for (i = 0; i < run->count; i++) {
        const uint8_t *frame = (const uint8_t *)run + at;
        assert_true(at + 8 <= run->end);
        if (frame[0] == CCI__FRAME_MESSAGE) {
            assert_true(at + 8 + cci__load16(frame + 2) <= run->end);
            take_message(s, frame + 8, cci__load16(frame + 2));
        }
        at += cci_rel_frame_size(frame);
    }
    run->next = NULL;
    *s->kept_tail = run;
    s->kept_tail = &run->next;
    s->kept_count++;
    return_runs(s, s->keep_runs);
}

static int sink_place(void *user, const cci_rel_bulk_t *target, uint64_t offset, const uint8_t *data, uint32_t length) {
    side_t *s = user;
    if (s->all_refused || target->key != KEY || target->region != 0 || target->length > ARENA ||
        target->remote_offset > ARENA - target->length)
        return CCI_ERR_RMA_HANDLE;
    if (s->refuse_place && target->remote_offset % 32 == 0) return CCI_ERR_RMA_HANDLE;
    if (!data) return CCI_SUCCESS;
    if (offset > target->length || length > target->length - offset)
        fail_msg("asked to place bytes outside of the write that was checked");
    memcpy(s->arena + target->remote_offset + offset, data, length);
    s->placed += length;
    return CCI_SUCCESS;
}

static int sink_readable(void *user, const cci_rel_bulk_t *source) {
    (void)source;
    return !((side_t *)user)->unreadable;
}

static void sink_complete(void *user, cci_rel_op_t *rel_op) {
    side_t *s = user;
    op_t *op = (op_t *)(void *)rel_op;
    assert_true(op >= s->ops && op < s->ops + MESSAGES);
    op->completed++;
    free(op->lent); /* a sanitizer sees who reads it later */
    op->lent = NULL;
    if (s->world->hostile) return;
    assert_int_equal(op->completed, 1);
    s->completed++;
    s->completed_ns = s->world->now_ns;
    if (s->rel.ordered && op->id < s->last_completed) fail_msg("%u completed after %u", op->id, s->last_completed);
    s->last_completed = op->id;
}

static void sink_start(void *user, cci_rel_item_t *item) {
    side_t *s = user;
    (void)item;
    s->started++;
}

static uint32_t sink_frame(void *user, const uint8_t *frame, uint32_t length, uint64_t now_ns) {
    side_t *s = user;
    (void)frame;
    (void)now_ns;
    return s->other_size && s->other_size < length ? s->other_size : length;
}

static void sink_broken(void *user, int status) {
    side_t *s = user;
    s->broken = status;
    cci_rel_abort(&s->rel, status);
}

static const cci_rel_callbacks_t sink = {sink_keep,  sink_drop,     sink_assemble, sink_deliver, sink_place, sink_readable,
                                    sink_complete, sink_start, sink_frame,    sink_broken};

/* ---- the world --------------------------------------------------------------------------------------------------- */

static void side_pool(side_t *s, uint32_t blocks, uint32_t bulks, uint32_t records, uint32_t parts) {
    cci_rel_pool_init(&s->pool, &sink, BLOCK_SIZE, 256);
    s->pool.congestion = cci__find_congestion(NULL);
    s->pool.zeros = calloc(1, MTU_MAX);
    s->bytes = malloc((size_t)BLOCKS * BLOCK_SIZE);
    s->arena = calloc(1, ARENA);
    assert_true(s->pool.zeros && s->bytes && s->arena);
    cci_rel_pool_add_blocks(&s->pool, s->blocks, s->bytes, blocks);
    cci_rel_pool_add(&s->pool, s->bulks, bulks, s->records, records, s->parts, parts);
    cci_rel_pool_add_ranges(&s->pool, &s->numbers, 1, s->gaps, PARTS + 1);
}

static world_t *world_sized(uint64_t seed, int attribute, uint32_t mtu, uint32_t blocks, uint32_t bulks,
                            uint32_t records, uint32_t parts) {
    world_t *w = calloc(1, sizeof *w);
    uint32_t i;
    assert_non_null(w);
    live_buffers = 0;
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    w->now_ns = 1000 * MS;
    w->delay_ns = 100 * US;
    w->path_mtu = 65535;
    w->idle = 1;
    for (i = 0; i < 2; i++) {
        side_t *s = &w->side[i];
        s->world = w;
        s->peer = &w->side[1 - i];
        s->kept_tail = &s->kept;
        side_pool(s, blocks, bulks, records, parts);
        s->state.mtu = (uint16_t)mtu;
        s->state.rttvar_us = 100000; /* the handshake took less */
        cci_rel_begin(&s->rel, &s->pool, s, &s->state, attribute, cci__max32(mtu, 256), 1u << 30);
        s->pool.base_mtu = cci__min32(mtu, 256);
        s->pool.slots = seed & 1; /* half of all tests have long messages lie as packets */
    }
    return w;
}

static world_t *world_new(uint64_t seed, int attribute, uint32_t mtu) {
    return world_sized(seed, attribute, mtu, BLOCKS, BULKS, RECORDS, PARTS);
}

static uint32_t list_length(const cci_list_t *head) {
    const cci_list_t *node;
    uint32_t n = 0;
    for (node = head->next; node != head; node = node->next) {
        assert_ptr_equal(node->next->prev, node);
        n++;
    }
    return n;
}

static void assert_pools_full(const side_t *s, uint32_t blocks, uint32_t bulks, uint32_t records, uint32_t parts) {
    assert_int_equal(list_length(&s->pool.blocks), blocks);
    assert_int_equal(list_length(&s->pool.bulks), bulks);
    assert_int_equal(list_length(&s->pool.records), records);
    assert_int_equal(list_length(&s->pool.reassemblies), parts);
    assert_int_equal(list_length(&s->pool.large), blocks);
    assert_int_equal(list_length(&s->pool.gaps), PARTS + 1);
    assert_int_equal(s->pool.gap_free, PARTS + 1);
    assert_int_equal(s->pool.block_out, 0);
    assert_int_equal(s->pool.block_silent, 0);
    assert_int_equal(s->pool.large_out, 0);
    assert_int_equal(s->rel.in_flight, 0);
}

static void world_end(world_t *w) {
    uint32_t i;
    for (i = 0; i < w->flying_count; i++) buf_drop(w->flying[i].buf);
    for (i = 0; i < 2; i++) {
        cci_rel_abort(&w->side[i].rel, CCI_ERR_DISCONNECTED);
        return_runs(&w->side[i], 0);
        free((void *)(uintptr_t)w->side[i].pool.zeros);
        free(w->side[i].bytes);
        free(w->side[i].arena);
    }
    assert_int_equal(live_buffers, 0);
    free(w);
}

static void fly(world_t *w, side_t *to, buf_t *buf, uint32_t number, uint64_t at_ns) {
    if (w->flying_count == sizeof w->flying / sizeof w->flying[0]) {
        buf_drop(buf);
        return;
    }
    w->flying[w->flying_count].at_ns = at_ns;
    w->flying[w->flying_count].to = to;
    w->flying[w->flying_count].number = number;
    w->flying[w->flying_count].codepoint = w->codepoint;
    if (w->codepoint == 2 && w->marks == MARKS_AWAY) w->flying[w->flying_count].codepoint = 0;
    if (w->codepoint == 2 && w->marks == MARKS_OTHER) w->flying[w->flying_count].codepoint = 1;
    if (w->codepoint == 2 && (w->marks == MARKS_ALL || (w->marks == MARKS_SOME && number % w->mark_every == 0)))
        w->flying[w->flying_count].codepoint = 3;
    w->flying[w->flying_count++].buf = buf;
}

static buf_t *buf_copy(const buf_t *from, uint32_t length) {
    buf_t *buf = buf_new(length);
    memcpy(buf->data, from->data, cci__min32(length, from->length));
    return buf;
}

/* A packet that was valid, and is not any more, or perhaps is. */
static void fly_mutated(world_t *w, side_t *to, const buf_t *from, uint32_t number) {
    uint32_t length = chance(w, 4) ? from->length : CCI_REL_HEADER + chance(w, from->length - CCI_REL_HEADER + 1), n;
    buf_t *buf = buf_copy(from, length);
    for (n = chance(w, 8); n > 0 && length > CCI_REL_HEADER; n--) {
        uint32_t rest = length - CCI_REL_HEADER;
        uint8_t *at = buf->data + CCI_REL_HEADER + chance(w, chance(w, 2) ? cci__min32(rest, 48) : rest);
        static const uint8_t special[] = {0, 1, 0x7f, 0x80, 0xff, 8, 16, 24};
        switch (chance(w, 4)) {
        case 0: *at ^= (uint8_t)(1u << chance(w, 8)); break;
        case 1: *at = special[chance(w, 8)]; break;
        case 2: *at = (uint8_t)chance(w, 256); break;
        default: buf->data[CCI_REL_HEADER] = (uint8_t)chance(w, 20); break;
        }
    }
    if (!chance(w, 8)) number += chance(w, 2) ? chance(w, 1000) - 500 : (uint32_t)w->random;
    w->mutated++;
    fly(w, to, buf, number, w->now_ns + chance(w, 200000));
}

static void transmit(side_t *s, const cci_rel_packet_t *packet) {
    world_t *w = s->world;
    uint32_t length = packet->head_length + packet->body_length, copies, used;
    buf_t *buf;
    if (packet->head == w->head) assert_true(packet->head_length <= CCI_REL_HEAD);
    assert_true(length <= MTU_MAX);
    if (packet->sent && !packet->sent->is_probe) assert_true(length <= cci__max32(s->rel.mtu, 40));
    w->packets++;
    w->codepoint = packet->codepoint;
    if (packet->head_length >= CCI_REL_HEADER + 16 && packet->head[packet->head_length - 16] == CCI__FRAME_MARKS &&
        !packet->sent && packet->body_length == 0)
        w->reports++;
    if (length > w->path_mtu) {
        w->big++;
        return;
    }
    buf = buf_new(length);
    memcpy(buf->data, packet->head, packet->head_length);
    if (packet->body_length) memcpy(buf->data + packet->head_length, packet->body, packet->body_length);
    if (packet->head != w->head) { /* it lies together, and so do the zeros behind it */
        if (packet->body_length > 0) assert_ptr_equal(packet->head + packet->head_length, packet->body);
        used = CCI__SLOT_HEAD + cci__load16(packet->head + CCI_REL_HEADER + 2);
        assert_int_equal(packet->head[CCI_REL_HEADER], CCI__FRAME_FRAGMENT);
        assert_true(used <= length + packet->pad_length && length <= CCI__SLOT_HEAD + packet->sent->item->fragment_size);
        for (; used < length + packet->pad_length; used++) assert_int_equal(packet->head[used], 0);
        w->in_place++;
    }
    if (w->hostile && chance(w, 4) == 0) fly_mutated(w, s->peer, buf, (uint32_t)packet->number);
    if (w->hostile && chance(w, 16) == 0) fly_mutated(w, s, buf, (uint32_t)packet->number); /* back to its sender */
    copies = 1 + (chance(w, 256) < w->repeat);
    if (w->down || chance(w, 256) < w->lose) copies--;
    while (copies-- > 0) {
        uint64_t at_ns = w->now_ns + w->delay_ns;
        if (chance(w, 256) < w->reorder) at_ns += (uint64_t)chance(w, 4) * w->delay_ns + chance(w, 100000);
        fly(w, s->peer, buf_copy(buf, length), (uint32_t)packet->number, at_ns);
    }
    buf_drop(buf);
}

static void side_output(side_t *s) {
    cci_rel_packet_t packet;
    uint32_t n = 0;
    memset(&packet, 0, sizeof packet);
    packet.head = s->world->head;
    while (cci_rel_output(&s->rel, &packet, s->world->idle, s->world->now_ns)) {
        transmit(s, &packet);
        if (packet.spent) cci_rel_spent(&s->rel, packet.spent);
        packet.head = s->world->head;
        while (chance(s->world, 4) && cci_rel_output_next(&s->rel, &packet, s->world->now_ns)) {
            transmit(s, &packet);
            packet.head = s->world->head;
            n++;
        }
        if (++n > 100000) fail_msg("packets without end");
    }
}

/* Delivers what has arrived by now. */
static void arrivals(world_t *w) {
    uint32_t i = 0;
    while (i < w->flying_count) {
        flying_t f = w->flying[i];
        if (f.at_ns > w->now_ns) {
            i++;
            continue;
        }
        w->flying_count--;
        memmove(&w->flying[i], &w->flying[i + 1], (w->flying_count - i) * sizeof f);
        f.to->pool.codepoint_in = f.codepoint;
        (void)cci_rel_input(&f.to->rel, f.buf->data, f.buf->length, f.number, f.buf, w->now_ns);
        buf_drop(f.buf);
    }
}

/* One round: what has come, what is due, what is to be sent; and on to the time of the next. */
static void step(world_t *w) {
    uint64_t next = w->now_ns + 50 * MS;
    uint32_t i;
    arrivals(w);
    for (i = 0; i < 2; i++) {
        if (cci_rel_deadline(&w->side[i].rel) <= w->now_ns) cci_rel_timeout(&w->side[i].rel, w->now_ns);
        side_output(&w->side[i]);
    }
    for (i = 0; i < w->flying_count; i++) next = cci__min64(next, w->flying[i].at_ns);
    for (i = 0; i < 2; i++) next = cci__min64(next, cci_rel_deadline(&w->side[i].rel));
    w->now_ns = cci__max64(next, w->now_ns + US);
}

static void run_for(world_t *w, uint64_t ns) {
    uint64_t until = w->now_ns + ns;
    while (w->now_ns < until) step(w);
}

static int world_idle(const world_t *w) {
    return cci_rel_idle(&w->side[0].rel) && cci_rel_idle(&w->side[1].rel) && w->flying_count == 0;
}

/* Drops what is under way to a side and shorter than so many bytes. */
static void lose_what_is_short(world_t *w, const side_t *to, uint32_t length) {
    uint32_t i, left = 0;
    for (i = 0; i < w->flying_count; i++) {
        if (w->flying[i].to == to && w->flying[i].buf->length < length)
            buf_drop(w->flying[i].buf);
        else
            w->flying[left++] = w->flying[i];
    }
    w->flying_count = left;
}

/* Drops all that is under way to a side. */
static void lose_what_flies_to(world_t *w, const side_t *to) {
    lose_what_is_short(w, to, UINT32_MAX);
}

/* Until nothing is under way; 0 if that takes longer than `ns`. */
static int run_until_idle(world_t *w, uint64_t ns) {
    uint64_t until = w->now_ns + ns;
    while (!world_idle(w)) {
        if (w->now_ns > until) return 0;
        step(w);
    }
    return 1;
}

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static op_t *next_op(side_t *s) {
    op_t *op = &s->ops[s->sent];
    assert_true(s->sent < MESSAGES);
    memset(op, 0, sizeof *op);
    op->id = s->sent;
    return op;
}

/* Sends a message from memory that is there no longer than until it completes. */
static int lend_message(side_t *s, const uint8_t *bytes, uint32_t length) {
    op_t *op = next_op(s);
    int status;
    op->lent = malloc(length);
    assert_non_null(op->lent);
    memcpy(op->lent, bytes, length);
    status = cci_rel_send_zero_copy(&s->rel, op->lent, length, &op->rel, s->world->now_ns);
    if (status == CCI_SUCCESS) {
        s->sent++;
    } else {
        free(op->lent);
        op->lent = NULL;
    }
    return status;
}

static int send_message(side_t *s, uint32_t length) {
    static uint8_t bytes[BLOCK_SIZE];
    struct iovec data;
    op_t *op = next_op(s);
    int status;
    message_fill(bytes, s->sent, length);
    data.iov_base = bytes;
    data.iov_len = length;
    if (length >= CCI_REL_ZERO_COPY_MIN && chance(s->world, 2)) return lend_message(s, bytes, length);
    status = cci_rel_send(&s->rel, &data, 1, length, &op->rel, s->world->now_ns);
    if (status == CCI_SUCCESS) s->sent++;
    return status;
}

static void send_sure(side_t *s, uint32_t length) {
    while (send_message(s, length) != CCI_SUCCESS) step(s->world);
}

static void fill_memory(uint8_t *memory, uint64_t offset, uint64_t length, uint32_t id) {
    uint64_t i;
    for (i = 0; i < length; i++) memory[i] = memory_byte(offset + i, id);
}

/* Writes `length` bytes of `memory` to `offset`; with a message behind it if message_length > 0. */
static int send_write(side_t *s, const uint8_t *memory, uint64_t offset, uint64_t length, uint32_t message_length,
                      int fence) {
    static uint8_t bytes[BLOCK_SIZE];
    struct iovec data;
    cci_rel_bulk_t bulk;
    op_t *op = next_op(s);
    int status;
    memset(&bulk, 0, sizeof bulk);
    bulk.key = KEY;
    bulk.remote_offset = offset;
    bulk.length = length;
    bulk.data = memory;
    message_fill(bytes, s->sent, message_length);
    data.iov_base = bytes;
    data.iov_len = message_length;
    status = cci_rel_write(&s->rel, &bulk, message_length > 0, &data, message_length, fence, &op->rel, s->world->now_ns);
    if (status == CCI_SUCCESS) s->sent++;
    return status;
}

static void write_sure(side_t *s, const uint8_t *memory, uint64_t offset, uint64_t length, uint32_t message_length,
                       int fence) {
    while (send_write(s, memory, offset, length, message_length, fence) != CCI_SUCCESS) step(s->world);
}

static void assert_all_well(const side_t *s) {
    uint32_t i;
    assert_int_equal(s->broken, 0);
    assert_int_equal(s->completed, s->sent);
    for (i = 0; i < s->sent; i++) assert_int_equal(s->ops[i].rel.status, CCI_SUCCESS);
}

/* What would never end is stopped. */
static sigjmp_buf out_of_time;
static void on_alarm(int signal_number) {
    (void)signal_number;
    siglongjmp(out_of_time, 1);
}
#define WITHIN_SECONDS(seconds, statement, text)                                                                       \
    do {                                                                                                               \
        signal(SIGALRM, on_alarm);                                                                                     \
        if (sigsetjmp(out_of_time, 1)) fail_msg("%s", text);                                                           \
        alarm(seconds);                                                                                                \
        statement;                                                                                                     \
        alarm(0);                                                                                                      \
    } while (0)

/* ---- exactly once ------------------------------------------------------------------------------------------------ */

static const int attributes[2] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
static const uint32_t mtus[4] = {256, 600, 1200, 1500};

static void all_sizes(uint64_t seed, int attribute, uint32_t mtu, uint32_t lose, uint32_t repeat, uint32_t reorder,
                      uint32_t refuse) {
    world_t *w = world_new(seed, attribute, mtu);
    uint32_t n, both = chance(w, 2);
    w->lose = lose;
    w->repeat = repeat;
    w->reorder = reorder;
    w->side[0].refuse_keep = w->side[1].refuse_keep = refuse;
    w->side[0].keep_runs = w->side[1].keep_runs = chance(w, 8);
    w->idle = (int)chance(w, 2);
    for (n = 0; n < 120; n++) {
        uint32_t length = chance(w, 4) ? 4 + chance(w, 300) : 4 + chance(w, BLOCK_SIZE - 8 - 4 + 1);
        send_sure(&w->side[0], length);
        if (both) send_sure(&w->side[1], 4 + chance(w, 500));
        if (chance(w, 3) == 0) step(w);
    }
    w->idle = 1;
    if (!run_until_idle(w, 120000 * MS))
        fail_msg("seed %u, attribute %d, mtu %u: not done: %u of %u", (unsigned)seed, attribute, mtu,
                 w->side[0].completed, w->side[0].sent);
    for (n = 0; n < 2; n++) {
        assert_all_well(&w->side[n]);
        assert_int_equal(w->side[1 - n].delivered_count, w->side[n].sent);
        return_runs(&w->side[n], 0);
        assert_pools_full(&w->side[n], BLOCKS, BULKS, RECORDS, PARTS);
    }
    world_end(w);
}

static void test_messages_of_all_sizes_arrive_once_on_a_good_network(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 8; i++) all_sizes(i + 1, attributes[i / 4], mtus[i % 4], 0, 0, 0, 0);
}

static void test_messages_of_all_sizes_arrive_once_on_a_bad_network(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 24; i++) all_sizes(100 + i, attributes[i / 4 % 2], mtus[i % 4], 20, 30, 60, 0);
}

static void test_messages_that_are_refused_at_random_arrive_once(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 8; i++) all_sizes(200 + i, attributes[i / 4], mtus[i % 4], 5, 5, 20, 60);
}

static void test_a_completion_comes_only_after_the_delivery(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(300 + i, attributes[i], 1200);
        w->lose = w->reorder = 40;
        for (n = 0; n < 200; n++) {
            uint32_t k;
            send_sure(&w->side[0], 4 + chance(w, 2000));
            step(w);
            for (k = 0; k < w->side[0].sent; k++)
                if (w->side[0].ops[k].completed) assert_int_equal(w->side[1].delivered[k], 1);
        }
        assert_true(run_until_idle(w, 60000 * MS));
        assert_all_well(&w->side[0]);
        world_end(w);
    }
}

/* Nothing of a lent message is copied: the packets' bodies are the program's memory, for a whole message and for fragments. */
static void test_a_lent_message_travels_from_where_it_is(void **state) {
    static const uint32_t mtu[2] = {1200, 9000};
    static uint8_t bytes[8000];
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(7, CCI_CONN_ATTR_RO, mtu[i]);
        side_t *s = &w->side[0];
        op_t *op = next_op(s);
        uint32_t from = 0;
        cci_rel_packet_t packet;
        memset(&packet, 0, sizeof packet);
        packet.head = w->head;
        message_fill(bytes, 0, sizeof bytes);
        assert_int_equal(cci_rel_send_zero_copy(&s->rel, bytes, sizeof bytes, &op->rel, w->now_ns), CCI_SUCCESS);
        s->sent++;
        while (cci_rel_output(&s->rel, &packet, 1, w->now_ns)) {
            if (packet.sent && !packet.sent->is_probe) {
                assert_ptr_equal(packet.body, bytes + from);
                from += packet.body_length;
            }
            transmit(s, &packet);
        }
        assert_int_equal(from, sizeof bytes);
        assert_true(run_until_idle(w, 60000 * MS));
        assert_all_well(s);
        assert_int_equal(w->side[1].delivered_count, 1);
        world_end(w);
    }
}

/* A message of several packets is copied once, into the packets: their headers' room included, also when a piece is lost. */
static void test_a_long_message_lies_as_the_packets_it_leaves_in(void **state) {
    static const uint32_t lengths[3] = {1200, 8000, 8192};
    static uint8_t bytes[8192];
    uint32_t i, lose;
    (void)state;
    for (i = 0; i < 6; i++) {
        world_t *w = world_new(2 * i + 1, CCI_CONN_ATTR_RO, 1200);
        uint32_t length = lengths[i % 3], pieces = (length + 1200 - CCI__SLOT_HEAD - 1) / (1200 - CCI__SLOT_HEAD);
        struct iovec data[3];
        op_t *op = next_op(&w->side[0]);
        lose = i / 3 * 60;
        w->lose = lose;
        message_fill(bytes, 0, length);
        data[0].iov_base = bytes;
        data[0].iov_len = 7;
        data[1].iov_base = bytes + 7;
        data[1].iov_len = 0;
        data[2].iov_base = bytes + 7;
        data[2].iov_len = length - 7;
        assert_int_equal(cci_rel_send(&w->side[0].rel, data, 3, length, &op->rel, w->now_ns), CCI_SUCCESS);
        w->side[0].sent++;
        assert_true(run_until_idle(w, 60000 * MS));
        assert_all_well(&w->side[0]);
        assert_int_equal(w->side[1].delivered_count, 1);
        if (lose) assert_true(w->in_place >= pieces);
        else assert_int_equal(w->in_place, pieces);
        world_end(w);
    }
}

static int join(side_t *s, uint8_t *bytes, uint32_t length) {
    struct iovec data;
    data.iov_base = bytes;
    data.iov_len = length;
    return cci_rel_join(&s->rel, &data, length, s->world->now_ns);
}

/* A message that nobody waits for joins the packet that has not left, and no other. */
static void test_messages_join_what_waits_to_leave_and_nothing_else(void **state) {
    static uint8_t bytes[1200];
    world_t *w = world_new(3, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0];
    cci_rel_packet_t packet;
    uint32_t joined = 0, length, first;
    (void)state;
    memset(&packet, 0, sizeof packet);
    packet.head = w->head;
    message_fill(bytes, 0, 8);
    assert_false(join(s, bytes, 8)); /* there is none */
    send_sure(s, 8);
    for (length = 4;; length++) {
        message_fill(bytes, s->sent, length);
        memset(&s->ops[s->sent], 0, sizeof s->ops[0]);
        if (!join(s, bytes, length)) break;
        s->ops[s->sent].id = s->sent;
        s->sent++;
        joined++;
    }
    assert_true(joined > 20 && joined < 60); /* until the packet is full */
    first = s->sent;
    s->rel.timeout_us++;
    message_fill(bytes, s->sent, 4);
    assert_false(join(s, bytes, 4)); /* its time is another */
    s->rel.timeout_us--;
    assert_true(cci_rel_output(&s->rel, &packet, 1, w->now_ns));
    transmit(s, &packet);
    assert_false(join(s, bytes, 4)); /* it has left */
    assert_true(run_until_idle(w, 60000 * MS));
    assert_int_equal(w->side[1].delivered_count, first);
    assert_int_equal(s->completed, 1);
    s->completed = s->sent; /* the others' are not told */
    assert_all_well(s);
    world_end(w);
}

/* Long messages follow each other in a batch; but while the receiver was not ready for one, none goes behind it. */
static void test_a_batch_of_long_messages_stops_where_the_receiver_was_not_ready(void **state) {
    int rnr;
    (void)state;
    for (rnr = 0; rnr < 2; rnr++) {
        world_t *w = world_sized(1, CCI_CONN_ATTR_RO, 1200, BLOCKS, BULKS, RECORDS, PARTS); /* odd: they lie in slots */
        side_t *s = &w->side[0];
        cci_rel_packet_t packet;
        uint32_t packets = 1, items = 0;
        const cci_rel_item_t *last = NULL;
        memset(&packet, 0, sizeof packet);
        packet.head = w->head;
        while (s->sent < 3) {
            static uint8_t bytes[4000];
            struct iovec data = {bytes, sizeof bytes};
            op_t *op = next_op(s);
            message_fill(bytes, s->sent++, sizeof bytes);
            assert_int_equal(cci_rel_send(&s->rel, &data, 1, sizeof bytes, &op->rel, w->now_ns), CCI_SUCCESS);
        }
        s->rel.flow.window = 1000000;
        s->rel.want_mtu = 0;
        s->rel.peer_window = 8000000;
        s->rel.rnr = (uint8_t)rnr;
        assert_true(cci_rel_output(&s->rel, &packet, 1, w->now_ns));
        do {
            items += packet.sent->item != last;
            last = packet.sent->item;
            transmit(s, &packet);
            packet.head = w->head;
            packets++;
        } while (cci_rel_output_next(&s->rel, &packet, w->now_ns));
        assert_int_equal(items, rnr ? 1 : 3);
        assert_true(packets > 4 * items);
        assert_true(run_until_idle(w, 60000 * MS));
        assert_all_well(s);
        assert_int_equal(w->side[1].delivered_count, 3);
        world_end(w);
    }
}

static void test_an_unreliable_message_is_delivered_as_it_comes(void **state) {
    world_t *w = world_new(5, CCI_CONN_ATTR_UU, 1500);
    uint32_t n;
    (void)state;
    for (n = 0; n < 50; n++) send_sure(&w->side[0], 4 + n * 60);
    run_for(w, 10 * MS);
    assert_int_equal(w->side[0].completed, 50);
    assert_int_equal(w->side[1].delivered_count, 50);
    assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
    world_end(w);
}

/* What can't become whole any more does not keep others from it, however few may be there in pieces at once. */
static void test_long_unreliable_messages_go_on_arriving_when_packets_are_lost(void **state) {
    static const uint32_t most_parts[] = {1, 2, 4, 100};
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 4; i++) {
        world_t *w = world_new(6 + i, CCI_CONN_ATTR_UU, 1500);
        w->side[1].most_parts = most_parts[i];
        w->lose = 6; /* 2 % of packets, a tenth of messages */
        for (n = 0; n < 400; n++) {
            send_sure(&w->side[0], 5000);
            run_for(w, 20 * MS);
        }
        assert_in_range(w->side[1].delivered_count, 300, 399);
        run_for(w, 2000 * MS);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

/* ---- writes ------------------------------------------------------------------------------------------------------ */

/* Writes lie side by side; each byte of the arena belongs to one write or to none. */
static void test_writes_place_exact_bytes_and_nothing_outside(void **state) {
    uint32_t seed;
    (void)state;
    for (seed = 0; seed < 8; seed++) {
        world_t *w = world_new(400 + seed, attributes[seed % 2], mtus[seed / 2]);
        uint8_t *memory = calloc(1, ARENA), *expected = calloc(1, ARENA);
        uint32_t at = 0, n = 0;
        w->lose = 15;
        w->repeat = 15;
        w->reorder = 50;
        w->side[1].refuse_keep = 20;
        while (at < ARENA - 6000) {
            uint32_t length = chance(w, 2) ? 1 + chance(w, 200) : 1 + chance(w, 5000);
            at += chance(w, 40);
            fill_memory(memory + at, at, length, w->side[0].sent);
            memcpy(expected + at, memory + at, length);
            if (chance(w, 2)) {
                write_sure(&w->side[0], memory + at, at, length, 0, chance(w, 4) == 0);
            } else {
                write_sure(&w->side[0], memory + at, at, length, 4 + chance(w, 1500), chance(w, 4) == 0);
                n++;
            }
            at += length;
        }
        if (!run_until_idle(w, 120000 * MS)) fail_msg("seed %u: not done", seed);
        assert_all_well(&w->side[0]);
        assert_int_equal(w->side[1].delivered_count, n);
        assert_memory_equal(w->side[1].arena, expected, ARENA);
        assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        free(memory);
        free(expected);
        world_end(w);
    }
}

/* The message of each write says that all of it is there. */
static void test_a_message_comes_after_the_data_it_follows(void **state) {
    uint32_t seed;
    (void)state;
    for (seed = 0; seed < 6; seed++) {
        world_t *w = world_new(500 + seed, attributes[seed % 2], mtus[seed % 4]);
        uint8_t *memory = calloc(1, ARENA);
        uint32_t n;
        w->lose = 20;
        w->reorder = 80;
        for (n = 0; n < 40; n++) {
            uint32_t id = w->side[0].sent, length = n % 2 ? 3000 : 40, k;
            fill_memory(memory, 0, length, id);
            write_sure(&w->side[0], memory, 0, length, 100, 0);
            while (!w->side[1].delivered[id]) step(w);
            for (k = 0; k < length; k++) assert_int_equal(w->side[1].arena[k], memory_byte(k, id));
            while (!w->side[0].ops[id].completed) step(w); /* `memory` is written again */
        }
        assert_true(run_until_idle(w, 60000 * MS));
        free(memory);
        world_end(w);
    }
}

static void test_a_fenced_write_does_not_overtake_the_one_before(void **state) {
    uint32_t i, n, k;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(550 + i, attributes[i], 600);
        uint8_t *first = malloc(8000), *second = malloc(8000);
        w->lose = w->reorder = 60;
        for (n = 0; n < 20; n++) {
            fill_memory(first, 0, 8000, 2 * n);
            fill_memory(second, 0, 8000, 2 * n + 1);
            write_sure(&w->side[0], first, 0, 8000, 0, 0);
            write_sure(&w->side[0], second, 0, n % 2 ? 8000 : 300, 0, 1);
            assert_true(run_until_idle(w, 60000 * MS));
            for (k = 0; k < (n % 2 ? 8000 : 300); k++)
                assert_int_equal(w->side[1].arena[k], memory_byte(k, 2 * n + 1));
        }
        assert_all_well(&w->side[0]);
        free(first);
        free(second);
        world_end(w);
    }
}

static void test_an_operation_of_another_layer_keeps_its_place(void **state) {
    world_t *w = world_new(560, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0];
    uint8_t bytes[100];
    struct iovec data;
    cci_rel_item_t *item = NULL;
    op_t *op;
    (void)state;
    send_sure(s, 50);
    op = next_op(s);
    message_fill(bytes, op->id, 100);
    data.iov_base = bytes;
    data.iov_len = 100;
    assert_int_equal(cci_rel_extern(&s->rel, 1, &data, 100, 0, &op->rel, NULL, &item, w->now_ns), CCI_SUCCESS);
    s->sent++;
    assert_int_equal(s->started, 1);
    send_sure(s, 60);
    run_for(w, 100 * MS);
    assert_int_equal(w->side[1].delivered_count, 1); /* what is behind it waits */
    assert_int_equal(s->completed, 1);
    cci_rel_extern_done(&s->rel, item, CCI_SUCCESS);
    assert_true(run_until_idle(w, 1000 * MS));
    assert_int_equal(w->side[1].delivered_count, 3);
    assert_all_well(s);
    /* one that fails takes its message along */
    op = next_op(s);
    message_fill(bytes, op->id, 100);
    assert_int_equal(cci_rel_extern(&s->rel, 1, &data, 100, 0, &op->rel, NULL, &item, w->now_ns), CCI_SUCCESS);
    s->sent++;
    send_sure(s, 60);
    cci_rel_extern_done(&s->rel, item, CCI_ERR_RMA_HANDLE);
    assert_true(run_until_idle(w, 1000 * MS));
    assert_int_equal(w->side[1].delivered[3], 0);
    assert_int_equal(w->side[1].delivered[4], 1);
    assert_int_equal(s->ops[3].rel.status, CCI_ERR_RMA_HANDLE);
    assert_int_equal(s->ops[4].rel.status, CCI_SUCCESS);
    assert_pools_full(s, BLOCKS, BULKS, RECORDS, PARTS);
    world_end(w);
}

/* What the peer knows to have arrived, and the program has not got, can't be kept while others have the memory. */
static void test_a_connection_whose_messages_wait_for_a_read_is_not_parked(void **state) {
    world_t *w = world_new(561, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0];
    cci_rel_item_t *item = NULL;
    op_t *op = next_op(s);
    (void)state;
    assert_int_equal(cci_rel_extern(&s->rel, 0, NULL, 0, 0, &op->rel, NULL, &item, w->now_ns), CCI_SUCCESS);
    s->sent++;
    assert_int_equal(cci_rel_can_park(&s->rel), 1);
    send_sure(s, 60);
    run_for(w, 100 * MS);
    assert_int_equal(cci_rel_can_park(&s->rel), 1);
    send_sure(&w->side[1], 70); /* it may answer, and what it answers is not complete */
    run_for(w, 100 * MS);
    assert_int_equal(w->side[1].completed, 1);
    assert_int_equal(s->delivered_count, 0);
    assert_int_equal(cci_rel_can_park(&s->rel), 0);
    cci_rel_extern_done(&s->rel, item, CCI_SUCCESS);
    assert_true(run_until_idle(w, 1000 * MS));
    assert_int_equal(s->delivered_count, 1);
    world_end(w);
}

/* A read is under way, whose item is returned. A run of two messages behind it leaves in two packets, of which the second is
 * lost; its messages have this time-out. */
static cci_rel_item_t *send_half_a_run_behind_a_read(world_t *w, uint32_t timeout_us) {
    side_t *s = &w->side[0];
    cci_rel_item_t *item = NULL;
    op_t *op = next_op(s);
    assert_int_equal(cci_rel_extern(&s->rel, 0, NULL, 0, 0, &op->rel, NULL, &item, w->now_ns), CCI_SUCCESS);
    s->sent++;
    s->rel.timeout_us = timeout_us;
    send_sure(s, 500);
    send_sure(s, 500);
    s->rel.mtu = 600; /* the path has become smaller */
    side_output(s);
    assert_int_equal(w->flying_count, 2);
    buf_drop(w->flying[--w->flying_count].buf);
    w->now_ns += w->delay_ns;
    arrivals(w);
    assert_int_equal(w->side[1].delivered_count, 1);
    return item;
}

/* A run leaves in two packets, of which the second is lost. What answers its first message, and waited for a read, comes after
 * that message's completion. */
static void test_half_a_run_behind_a_read_completes_before_its_answer(void **state) {
    world_t *w = world_new(563, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    cci_rel_item_t *item = send_half_a_run_behind_a_read(w, s->rel.timeout_us);
    (void)state;
    send_sure(peer, 70);
    side_output(peer);
    w->now_ns += w->delay_ns;
    arrivals(w);
    assert_int_equal(s->delivered_count, 0);
    assert_int_equal(s->completed, 0);
    cci_rel_extern_done(&s->rel, item, CCI_SUCCESS);
    assert_int_equal(s->delivered_count, 1);
    assert_int_equal(s->completed, 2);
    assert_true(run_until_idle(w, 1000 * MS));
    assert_all_well(s);
    assert_all_well(peer);
    world_end(w);
}

/* Where nothing waits for the read, the first message is complete when the answer comes, also if its packet has been repeated
 * meanwhile, and the peer's word that it has taken all up to there is all that tells of it. */
static void test_unordered_half_a_run_behind_a_read_completes_before_its_answer(void **state) {
    world_t *w = world_new(567, CCI_CONN_ATTR_RU, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    cci_rel_item_t *item = send_half_a_run_behind_a_read(w, s->rel.timeout_us);
    (void)state;
    w->down = 1;
    run_for(w, 2000 * MS);
    assert_int_equal(s->completed, 0);
    w->down = 0;
    send_sure(peer, 70);
    side_output(peer);
    w->now_ns += w->delay_ns;
    arrivals(w);
    assert_int_equal(s->delivered_count, 1);
    assert_int_equal(s->completed, 1);
    cci_rel_extern_done(&s->rel, item, CCI_SUCCESS);
    assert_true(run_until_idle(w, 1000 * MS));
    assert_int_equal(s->completed, 3);
    assert_all_well(s);
    assert_all_well(peer);
    world_end(w);
}

/* A message may answer one of whose arrival the peer has not heard: it says so even if others had the memory meanwhile. */
static void test_an_answer_that_was_parked_still_acknowledges(void **state) {
    world_t *w = world_new(562, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    cci_rel_item_t *first;
    (void)state;
    send_sure(peer, 70);
    step(w);
    w->now_ns += w->delay_ns;
    arrivals(w);
    assert_int_equal(s->delivered_count, 1);
    w->down = 1;
    send_sure(s, 60);
    side_output(s); /* with the acknowledgement, and lost */
    assert_int_equal(cci_rel_can_park(&s->rel), 1);
    first = cci_rel_park(&s->rel);
    cci_rel_end(&s->rel, &s->state);
    cci_rel_begin(&s->rel, &s->pool, s, &s->state, CCI_CONN_ATTR_RO, 1200, 1u << 30);
    cci_rel_resume(&s->rel, first);
    w->down = 0;
    side_output(s);
    w->now_ns += w->delay_ns;
    arrivals(w);
    assert_int_equal(peer->delivered_count, 1);
    assert_int_equal(peer->completed, 1); /* before the answer */
    assert_true(run_until_idle(w, 1000 * MS));
    assert_all_well(s);
    assert_all_well(peer);
    world_end(w);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refused_write(int attribute, uint32_t write_length, uint32_t message_length) {
    world_t *w = world_new(600, attribute, 1200);
    side_t *s = &w->side[0];
    static uint8_t memory[9000];
    w->side[0].pool.base_mtu = w->side[1].pool.base_mtu = 1200;
    send_sure(s, 50);
    w->side[1].all_refused = 1;
    assert_int_equal(send_write(s, memory, 0, write_length, message_length, 0), CCI_SUCCESS);
    send_sure(s, 70);
    send_sure(s, 2000);
    if (!run_until_idle(w, 5000 * MS)) fail_msg("not done");
    assert_int_equal(s->completed, 4);
    assert_int_equal(s->ops[0].rel.status, CCI_SUCCESS);
    assert_int_equal(s->ops[1].rel.status, CCI_ERR_RMA_HANDLE);
    assert_int_equal(s->ops[2].rel.status, CCI_SUCCESS);
    assert_int_equal(s->ops[3].rel.status, CCI_SUCCESS);
    assert_int_equal(w->side[1].delivered[1], 0);
    assert_int_equal(w->side[1].delivered_count, 3);
    assert_int_equal(w->side[1].placed, 0);
    assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
    assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
    world_end(w);
}

static void test_a_refused_small_write_fails_with_its_message_alone(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) refused_write(attributes[i], 100, 100);
}

static void test_a_refused_long_write_fails_with_its_message_alone(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) refused_write(attributes[i], 5000, 100);
    for (i = 0; i < 2; i++) refused_write(attributes[i], 5000, 4000);
}

static void test_a_refused_small_write_fails_with_its_long_message(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) refused_write(attributes[i], 900, 900); /* each in a packet of its own */
}

static void test_refused_writes_among_others_never_deliver_their_message(void **state) {
    uint32_t seed, n;
    static uint8_t memory[9000];
    (void)state;
    for (seed = 0; seed < 8; seed++) {
        world_t *w = world_new(650 + seed, attributes[seed % 2], mtus[seed / 2]);
        w->lose = 10;
        w->reorder = 40;
        w->side[1].refuse_place = 1;
        for (n = 0; n < 60; n++) {
            write_sure(&w->side[0], memory, n * 8, 1 + chance(w, chance(w, 2) ? 60 : 4000), 4 + chance(w, 60), 0);
            if (chance(w, 2)) step(w);
        }
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: not done", seed);
        assert_int_equal(w->side[0].completed, 60);
        for (n = 0; n < 60; n++)
            if (w->side[1].delivered[n] != (n % 4 != 0) ||
                w->side[0].ops[n].rel.status != (n % 4 ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE))
                fail_msg("seed %u: write %u ended with status %d, and its message was%s delivered", seed, n,
                         w->side[0].ops[n].rel.status, w->side[1].delivered[n] ? "" : " not");
        assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

static void test_a_write_from_memory_that_is_gone_fails(void **state) {
    world_t *w = world_new(660, CCI_CONN_ATTR_RO, 1200);
    static uint8_t memory[9000];
    (void)state;
    w->down = 1;
    assert_int_equal(send_write(&w->side[0], memory, 0, 9000, 30, 0), CCI_SUCCESS);
    step(w);
    w->side[0].unreadable = 1;
    w->down = 0;
    send_sure(&w->side[0], 40);
    assert_true(run_until_idle(w, 10000 * MS));
    assert_int_equal(w->side[0].ops[0].rel.status, CCI_ERR_RMA_HANDLE);
    assert_int_equal(w->side[1].delivered[0], 0);
    assert_int_equal(w->side[1].delivered[1], 1);
    world_end(w);
}

/* What was refused once must not keep everything behind it to one packet in a round trip. */
static void test_a_write_that_was_refused_once_for_want_of_buffers_goes_on_at_full_speed(void **state) {
    world_t *w = world_new(670, CCI_CONN_ATTR_RO, 1500);
    static uint8_t memory[60000];
    uint64_t began;
    (void)state;
    w->side[1].refuse_keep = 256;
    assert_int_equal(send_write(&w->side[0], memory, 0, 1200, 0, 0), CCI_SUCCESS); /* one packet, with a write in it */
    run_for(w, MS);
    w->side[1].refuse_keep = 0;
    run_for(w, 50 * MS);
    began = w->now_ns;
    assert_int_equal(send_write(&w->side[0], memory, 0, 60000, 0, 0), CCI_SUCCESS);
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(&w->side[0]);
    if (w->side[0].completed_ns - began > 3 * MS)
        fail_msg("40 packets took %u round trips", (unsigned)((w->side[0].completed_ns - began) / (2 * w->delay_ns)));
    world_end(w);
}

/* An ordered receiver without buffers takes nothing but the next message: it must not have to wait until its turn comes
 * among all that were refused with it. */
static void test_what_a_receiver_without_buffers_needs_next_is_sent_next(void **state) {
    world_t *w = world_new(671, CCI_CONN_ATTR_RO, 600);
    uint32_t i;
    uint64_t began = w->now_ns;
    (void)state;
    w->side[1].refuse_keep = 256;
    w->side[1].refuse_early = 1;
    for (i = 0; i < 60; i++) send_sure(&w->side[0], 500);
    run_for(w, 10 * MS);
    w->side[1].refuse_keep = 0;
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(&w->side[0]);
    if (w->side[0].completed_ns - began > 400 * MS)
        fail_msg("60 messages took %u ms", (unsigned)((w->side[0].completed_ns - began) / MS));
    world_end(w);
}

/* The receiver lacks buffers, and the repeat of the message that is due is found to be lost after those behind it: it goes
 * all the same in one of the next two packets, the other one brings what was lost first. */
static void test_what_is_due_goes_before_what_was_lost_earlier(void **state) {
    static const uint32_t order[4] = {1, 3, 0, 2};
    world_t *w = world_new(6711, CCI_CONN_ATTR_RU, 600);
    cci_rel_t *rel = &w->side[0].rel;
    cci_rel_sent_t *sent[4];
    cci_rel_packet_t packet;
    uint32_t i, tried = 0;
    (void)state;
    w->lose = 256;
    for (i = 0; i < 4; i++) send_sure(&w->side[0], 500);
    run_for(w, MS);
    assert_int_equal(list_length(&rel->flight), 4);
    for (i = 0; i < 4; i++) sent[i] = CCI__CONTAINER(i ? sent[i - 1]->node.next : rel->flight.next, cci_rel_sent_t, node);
    rel->rnr = 1;
    rel->rnr_until_ns = w->now_ns;
    for (i = 0; i < 4; i++) cci__rel_lost(rel, sent[order[i]]);
    packet.head = w->head;
    for (i = 0; i < 2; i++) {
        rel->rnr_until_ns = w->now_ns;
        assert_int_equal(cci_rel_output(rel, &packet, 1, w->now_ns), 1);
        tried |= 1u << packet.sent->item->first;
    }
    assert_int_equal(tried, 1 << 0 | 1 << 1);
    world_end(w);
}

/* A receiver keeps no message behind a write until that write is done, as one does whose buffers are short. The write needs
 * none: it must not take its turn among messages that are refused again and again, nor wait as long as they. */
static void test_writes_go_on_while_the_messages_behind_them_are_refused(void **state) {
    static const uint32_t losses[2] = {0, 12};
    static uint8_t memory[60000];
    uint32_t i, n, loss;
    (void)state;
    for (i = 0; i < 2 * 40; i++) {
        world_t *w = world_new(680 + i, CCI_CONN_ATTR_RU, 1500);
        uint64_t began = w->now_ns;
        loss = losses[i % 2];
        w->lose = loss;
        w->side[1].refuse_early = 1;
        for (n = 0; n < 20; n++) write_sure(&w->side[0], memory, 0, 60000, 100 + i % 3 * 2000, 0);
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: not done, %u of 20", i, w->side[0].completed);
        assert_all_well(&w->side[0]);
        if (w->side[0].completed_ns - began > (loss ? 3000 : 600) * MS)
            fail_msg("seed %u: 20 writes took %u ms", i, (unsigned)((w->side[0].completed_ns - began) / MS));
        world_end(w);
    }
}

/* A message is refused, and so will be the next ones. */
static void refuse_a_message(world_t *w) {
    w->side[1].refuse_keep = 256;
    send_sure(&w->side[0], 100);
    run_for(w, 20 * MS);
    assert_true(w->side[0].rel.rnr);
}

/* The same, and the program goes on sending: what it sends later is refused as well. */
static void test_a_write_is_not_starved_by_messages_that_are_refused(void **state) {
    static uint8_t memory[60000];
    world_t *w = world_new(690, CCI_CONN_ATTR_RU, 1500);
    side_t *s = &w->side[0];
    uint32_t n;
    (void)state;
    refuse_a_message(w);
    write_sure(s, memory, 0, 60000, 0, 0);
    for (n = 0; n < 50 && s->completed == 0; n++) {
        (void)send_message(s, 1000);
        run_for(w, MS);
    }
    assert_int_equal(s->completed, 1); /* the write */
    assert_int_equal(w->side[1].delivered_count, 0);
    w->side[1].refuse_keep = 0;
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(s);
    world_end(w);
}

/* Nor do writes starve the messages: these try at their pace, though something is always under way. */
static void test_a_refused_message_is_not_starved_by_writes(void **state) {
    static uint8_t memory[60000];
    world_t *w = world_new(691, CCI_CONN_ATTR_RU, 1500);
    side_t *s = &w->side[0];
    uint64_t ready_ns;
    (void)state;
    refuse_a_message(w);
    w->side[1].refuse_keep = 0;
    ready_ns = w->now_ns;
    while (w->side[1].delivered_count == 0 && w->now_ns < ready_ns + 1000 * MS) {
        while (list_length(&s->rel.bulks) < 3) write_sure(s, memory, 0, 60000, 0, 0);
        step(w);
    }
    if (w->now_ns > ready_ns + 30 * MS) fail_msg("it took %u ms", (unsigned)((w->now_ns - ready_ns) / MS));
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(s);
    world_end(w);
}

/* A message that is refused tries once in a while, not as often as the path answers. */
static void test_a_refused_message_tries_at_its_own_pace_beside_writes(void **state) {
    static uint8_t memory[60000];
    world_t *w = world_new(692, CCI_CONN_ATTR_RU, 1500);
    side_t *s = &w->side[0];
    uint64_t refused;
    uint32_t n;
    (void)state;
    w->side[1].refuse_keep = 256;
    for (n = 0; n < 30; n++) send_sure(s, 1400);
    run_for(w, 50 * MS);
    refused = w->side[1].pool.packets_refused;
    for (n = 0; n < 500; n++) {
        while (list_length(&s->rel.bulks) < 3) write_sure(s, memory, 0, 60000, 0, 0);
        step(w);
    }
    run_for(w, 100 * MS);
    if (w->side[1].pool.packets_refused - refused > 20)
        fail_msg("%u packets were refused", (unsigned)(w->side[1].pool.packets_refused - refused));
    w->side[1].refuse_keep = 0;
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(s);
    world_end(w);
}

/* ---- time-outs ---------------------------------------------------------------------------------------------------- */

/* The connection breaks in that time, in milliseconds, and all that was sent ends so; the world ends with it. */
static void breaks_within(world_t *w, uint64_t began, uint32_t least_ms, uint32_t most_ms) {
    const side_t *s = &w->side[0];
    uint32_t n;
    while (!s->broken && w->now_ns < began + 10 * most_ms * MS) step(w);
    assert_int_equal(s->broken, CCI_ETIMEDOUT);
    assert_in_range((w->now_ns - began) / MS, least_ms, most_ms);
    assert_int_equal(s->completed, s->sent);
    for (n = 0; n < s->sent; n++) assert_int_equal(s->ops[n].rel.status, CCI_ETIMEDOUT);
    assert_pools_full(s, BLOCKS, BULKS, RECORDS, PARTS);
    world_end(w);
}

static void test_silence_breaks_the_connection_at_the_timeout(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(700 + i, attributes[i], 1200);
        uint64_t began = w->now_ns;
        w->side[0].rel.timeout_us = 500000;
        w->down = 1;
        for (n = 0; n < 20; n++) send_sure(&w->side[0], 500);
        breaks_within(w, began, 500, 560);
    }
}

static void test_a_receiver_that_stays_not_ready_ends_the_message_and_not_the_connection(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(710 + i, attributes[i], 1200);
        w->side[0].rel.timeout_us = 500000;
        w->side[1].refuse_keep = 256;
        for (n = 0; n < 5; n++) send_sure(&w->side[0], 500);
        run_for(w, 2000 * MS);
        assert_int_equal(w->side[0].broken, 0);
        assert_int_equal(w->side[0].completed, 5);
        for (n = 0; n < 5; n++) assert_int_equal(w->side[0].ops[n].rel.status, CCI_ERR_RNR);
        w->side[1].refuse_keep = 0;
        send_sure(&w->side[0], 500);
        assert_true(run_until_idle(w, 1000 * MS));
        assert_int_equal(w->side[0].ops[5].rel.status, CCI_SUCCESS);
        assert_int_equal(w->side[1].delivered[5], 1);
        assert_int_equal(w->side[1].delivered_count, 1);
        assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

/* Whether it took the last try nobody knows: that does not end with CCI_ERR_RNR, which says that it did not. */
static void test_a_receiver_that_vanishes_while_it_is_not_ready_breaks_the_connection(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(712 + i, attributes[i], 1200);
        uint64_t began = w->now_ns;
        w->side[0].rel.timeout_us = 3000000;
        w->side[1].refuse_keep = 256;
        for (n = 0; n < 5; n++) send_sure(&w->side[0], 500);
        run_for(w, 2900 * MS);
        w->down = 1;
        run_for(w, 3000 * MS);
        assert_int_equal(w->side[0].completed, 0);
        breaks_within(w, began, 6000, 6100); /* as long again */
    }
}

/* What flies to a side arrives together, when that is awake again. */
static void sleep_for(world_t *w, const side_t *to, uint64_t ns) {
    uint64_t until = w->now_ns + ns;
    while (w->now_ns < until) {
        uint32_t i;
        step(w);
        for (i = 0; i < w->flying_count; i++)
            if (w->flying[i].to == to) w->flying[i].at_ns = cci__max64(w->flying[i].at_ns, until);
    }
}

/* Around the time-out the receiver now takes something and now nothing, is asleep now and then, and packets are lost in both
 * directions, and come twice or late: what succeeds was delivered, and what ends with CCI_ERR_RNR was not. Where nothing is lost, and
 * nobody sleeps for as long as the time-out, the connection lives. */
static uint32_t refuse_at_random(uint64_t seed, int attribute) {
    world_t *w = world_new(seed, attribute, mtus[seed / 2 % 4]);
    side_t *s = &w->side[0], *peer = &w->side[1];
    uint32_t n, refused = 0, sleepless = chance(w, 2), clean = chance(w, 2);
    w->lose = clean ? 0 : chance(w, 100);
    w->repeat = w->reorder = clean ? 0 : chance(w, 60);
    s->rel.timeout_us = 300000 + chance(w, 400000);
    peer->refuse_keep = 256;
    while (s->completed < 60 && !s->broken) {
        uint64_t ns = (1 + chance(w, 60)) * MS;
        for (n = chance(w, 8); n > 0 && s->sent < 60; n--) send_sure(s, 100 + chance(w, 900));
        if (chance(w, 4) == 0)
            sleep_for(w, peer, ns * (sleepless ? 3 : 20));
        else
            run_for(w, ns);
        peer->refuse_keep = 240 + chance(w, 40);
        if (peer->sent < 30 && chance(w, 3) == 0) send_sure(peer, 100 + chance(w, 900));
    }
    if (s->broken && sleepless && clean) fail_msg("seed %u: connection %d broke", (unsigned)seed, attribute);
    w->lose = peer->refuse_keep = 0;
    (void)run_until_idle(w, 2000 * MS);
    for (n = 0; n < 60 && !s->broken; n++) {
        int status = s->ops[n].rel.status;
        assert_true(status == CCI_SUCCESS || status == CCI_ERR_RNR);
        if (peer->delivered[n] != (status == CCI_SUCCESS))
            fail_msg("seed %u: message %u of connection %d was%s delivered", (unsigned)seed, n, attribute,
                     peer->delivered[n] ? "" : " not");
        refused += status == CCI_ERR_RNR;
    }
    world_end(w);
    return refused;
}

static void test_what_ends_with_rnr_was_not_delivered_whatever_is_lost_or_late(void **state) {
    uint32_t i, refused = 0;
    (void)state;
    for (i = 0; i < 200; i++) refused += refuse_at_random(7100 + i, attributes[i % 2]);
    assert_true(refused > 500);
}

/* An operation of another layer behind a message that was refused until its time-out, and of whose withdrawal nobody hears: that
 * would be progress. */
static cci_rel_item_t *behind_a_refused_message(world_t *w) {
    side_t *s = &w->side[0];
    cci_rel_item_t *item = NULL;
    op_t *op;
    s->rel.timeout_us = 500000;
    w->side[1].refuse_keep = 256;
    send_sure(s, 500);
    run_for(w, 100 * MS);
    op = next_op(s);
    assert_int_equal(cci_rel_extern(&s->rel, 0, NULL, 0, 0, &op->rel, NULL, &item, w->now_ns), CCI_SUCCESS);
    s->sent++;
    run_for(w, 350 * MS);
    assert_int_equal(s->completed, 0);
    while (s->completed == 0) step(w);
    lose_what_flies_to(w, &w->side[1]);
    w->down = 1;
    assert_int_equal(s->ops[0].rel.status, CCI_ERR_RNR);
    assert_int_equal(s->completed, 1);
    return item;
}

/* Refused messages end first, and the connection goes on without them; what another layer carries out has a time-out of its own. */
static void test_an_operation_of_another_layer_behind_refused_messages_ends_at_its_own_timeout(void **state) {
    world_t *w = world_new(715, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0];
    (void)state;
    (void)behind_a_refused_message(w);
    run_for(w, 2200 * MS); /* its own, and what a lost answer to the last try may take */
    assert_int_equal(s->ops[1].rel.status, CCI_ETIMEDOUT);
    assert_int_equal(s->completed, 2);
    world_end(w);
}

/* The same, but it is done while the peer has not heard of the withdrawal: it waits for nothing any more. */
static void test_an_operation_of_another_layer_behind_refused_messages_is_told_when_it_is_done(void **state) {
    world_t *w = world_new(717, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0];
    (void)state;
    cci_rel_extern_done(&s->rel, behind_a_refused_message(w), CCI_SUCCESS);
    assert_int_equal(s->completed, 2);
    assert_int_equal(s->ops[1].rel.status, CCI_SUCCESS);
    w->down = 0;
    w->side[1].refuse_keep = 0;
    assert_true(run_until_idle(w, 60000 * MS));
    assert_int_equal(s->completed, 2);
    assert_pools_full(s, BLOCKS, BULKS, RECORDS, PARTS);
    world_end(w);
}

/* Of two messages that travel together behind a read the peer takes the first and refuses the second until its time-out. The read
 * completes before both, and the first has succeeded. */
static void test_half_a_run_behind_a_read_waits_for_it_when_the_other_half_is_refused(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(721, attributes[i], 1200);
        side_t *s = &w->side[0], *peer = &w->side[1];
        cci_rel_item_t *item = send_half_a_run_behind_a_read(w, 500000);
        peer->refuse_keep = 256;
        run_for(w, 700 * MS);
        assert_int_equal(s->completed, s->rel.ordered ? 0 : 2);
        peer->refuse_keep = 0;
        cci_rel_extern_done(&s->rel, item, CCI_SUCCESS);
        assert_true(run_until_idle(w, 1000 * MS));
        assert_int_equal(s->completed, 3);
        assert_int_equal(peer->delivered_count, 1);
        assert_int_equal(s->ops[0].rel.status, CCI_SUCCESS);
        assert_int_equal(s->ops[1].rel.status, CCI_SUCCESS);
        assert_int_equal(s->ops[2].rel.status, CCI_ERR_RNR);
        send_sure(s, 100);
        assert_true(run_until_idle(w, 1000 * MS));
        assert_int_equal(peer->delivered_count, 2);
        world_end(w);
    }
}

static int flies_to(const world_t *w, const side_t *to) {
    uint32_t i;
    for (i = 0; i < w->flying_count; i++)
        if (w->flying[i].to == to) return 1;
    return 0;
}

/* A copy of a packet that was refused comes when the sender has been told that its message was not taken: it brings nothing,
 * not even when the receiver was idle meanwhile, and others had its memory. */
static void test_a_late_copy_of_what_was_refused_brings_nothing(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        world_t *w = world_new(723 + i, attributes[i & 1], 1200);
        side_t *s = &w->side[0], *peer = &w->side[1];
        buf_t *late;
        uint32_t late_number;
        s->rel.timeout_us = 500000;
        peer->refuse_keep = 256;
        send_sure(s, 500);
        step(w);
        assert_int_equal(w->flying_count, 1);
        late = buf_copy(w->flying[0].buf, w->flying[0].buf->length);
        late_number = w->flying[0].number;
        while (s->completed == 0) step(w);
        assert_int_equal(s->ops[0].rel.status, CCI_ERR_RNR);
        lose_what_flies_to(w, peer); /* the withdrawal: the copy is there first */
        peer->refuse_keep = 0;
        if (i & 2) {
            assert_true(cci_rel_idle(&peer->rel));
            cci_rel_end(&peer->rel, &peer->state);
            cci_rel_begin(&peer->rel, &peer->pool, peer, &peer->state, attributes[i & 1], 1200, 1u << 30);
        }
        fly(w, peer, late, late_number, w->now_ns);
        send_sure(s, 500);
        assert_true(run_until_idle(w, 5000 * MS));
        assert_int_equal(peer->delivered[0], 0);
        assert_int_equal(peer->delivered[1], 1);
        assert_int_equal(s->ops[1].rel.status, CCI_SUCCESS);
        world_end(w);
    }
}

/* The last try was taken, and its acknowledgement is lost: the message has arrived, and is not said to have been refused. */
static void test_a_last_try_whose_answer_is_lost_is_no_refusal(void **state) {
    uint32_t i, lost;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(725 + i, attributes[i], 1200);
        side_t *s = &w->side[0], *peer = &w->side[1];
        s->rel.timeout_us = 500000;
        peer->refuse_keep = 256;
        send_sure(s, 500);
        run_for(w, 490 * MS);
        peer->refuse_keep = 0;
        while (peer->delivered_count == 0) step(w);
        for (lost = 0; lost < 4; lost++) { /* answers, to repetitions too */
            while (!flies_to(w, s) && s->completed == 0) step(w);
            lose_what_flies_to(w, s);
        }
        assert_true(run_until_idle(w, 5000 * MS));
        assert_int_equal(s->ops[0].rel.status, CCI_SUCCESS);
        assert_int_equal(peer->delivered[0], 1);
        world_end(w);
    }
}

/* While a message is refused again and again, a write that was lost is repeated in its time. */
static void test_a_write_that_is_lost_while_messages_are_refused_is_repeated(void **state) {
    world_t *w = world_new(720, CCI_CONN_ATTR_RU, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    static uint8_t memory[5000];
    (void)state;
    w->delay_ns = 40 * MS;
    send_sure(s, 100);
    if (!run_until_idle(w, 1000 * MS)) fail_msg("not done");
    peer->refuse_keep = 256;
    send_sure(s, 100);
    while (!s->rel.rnr) step(w);
    write_sure(s, memory, 0, sizeof memory, 0, 0);
    while (s->rel.bulks.next != &s->rel.bulks) step(w);
    lose_what_flies_to(w, peer);
    run_for(w, 5000 * MS);
    assert_int_equal(s->rel.rnr, 1);
    assert_int_equal(peer->placed, sizeof memory);
    assert_int_equal(s->broken, 0);
    world_end(w);
}

/* A write that is whole in its packet stands among messages, and needs a buffer as they do. There is none for what can't be
 * delivered at once, so it is refused, and waits as they do: else it would come again and again, and what is due never. */
static void test_a_short_write_that_is_refused_leaves_the_way_to_what_is_due(void **state) {
    world_t *w = world_new(722, CCI_CONN_ATTR_RU, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    static uint8_t memory[2 * 1100];
    uint64_t until;
    uint32_t i;
    (void)state;
    w->delay_ns = 20 * US;
    s->rel.flow.window = 1u << 20;
    peer->refuse_early = 1;
    for (i = 0; i < 2 * CCI__REL_UNTOLD + 1; i++) { /* of as many as the peer can name, each second one is lost */
        send_sure(s, 100);
        side_output(s);
        if (i % 2 == 0) buf_drop(w->flying[--w->flying_count].buf);
    }
    write_sure(s, memory, 0, 1100, 0, 0);
    write_sure(s, memory, 1100, 1100, 0, 0);
    assert_false(cci__list_empty(&s->rel.bulks));
    run_for(w, 30 * US);
    for (until = w->now_ns + 10 * MS; w->now_ns < until; step(w)) lose_what_is_short(w, peer, 1000);
    if (!run_until_idle(w, 3000 * MS)) fail_msg("never idle: %u of %u have completed", s->completed, s->sent);
    assert_all_well(s);
    assert_int_equal(peer->placed, sizeof memory);
    assert_true(w->packets < 300);
    world_end(w);
}

/* All that is under way was lost, and is more than may be under way by now. The first time-out asks the peer all the same: its
 * answer says what was lost, for which two more time-outs would be needed, each twice as long. */
static void test_a_timeout_sends_something_though_the_window_is_full(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(723, attributes[i], 1200);
        side_t *s = &w->side[0];
        uint32_t n;
        for (n = 0; n < 4; n++) send_sure(s, 1000);
        side_output(s);
        assert_int_equal(w->flying_count, 4);
        lose_what_flies_to(w, s->peer);
        s->rel.peer_window = 4096; /* less than a packet may be under way beside another one */
        if (!run_until_idle(w, 150 * MS)) fail_msg("never idle: %u of %u have completed", s->completed, s->sent);
        assert_all_well(s);
        world_end(w);
    }
}

/* A withdrawal comes late: its sender took it for lost, so that it knows a later copy only, which was lost. The peer's answer to
 * what it got behind the withdrawal names no packet that is still known, but says how far the peer has come. */
static void test_a_message_behind_a_withdrawal_completes_before_its_answer(void **state) {
    world_t *w = world_new(719, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[0], *peer = &w->side[1];
    const cci_rel_item_t *withdrawn;
    static uint8_t memory[5000];
    uint32_t i, late_number;
    buf_t *late;
    (void)state;
    peer->all_refused = 1;
    write_sure(s, memory, 0, sizeof memory, 0, 0);
    withdrawn = CCI__CONTAINER(s->rel.items.next, cci_rel_item_t, node);
    while (!(withdrawn->flags & CCI__ITEM_VOID) || (withdrawn->flags & CCI__ITEM_QUEUED)) step(w);
    late = buf_copy(w->flying[w->flying_count - 1].buf, w->flying[w->flying_count - 1].buf->length);
    late_number = w->flying[w->flying_count - 1].number;
    lose_what_flies_to(w, peer);
    for (i = 0; i < 4; i++) send_sure(s, 1000);
    while (s->rel.largest_acked <= late_number) step(w);
    while (withdrawn->flags & CCI__ITEM_QUEUED) step(w);
    for (i = 0; i < 100; i++) {
        lose_what_flies_to(w, peer);
        step(w);
    }
    assert_int_equal(peer->rel.expected, 0);
    fly(w, peer, late, late_number, w->now_ns);
    while (peer->delivered_count < 4) {
        lose_what_flies_to(w, s);
        step(w);
    }
    lose_what_flies_to(w, s);
    send_sure(peer, 100);
    while (s->delivered_count == 0) {
        lose_what_flies_to(w, peer);
        step(w);
    }
    assert_int_equal(s->completed, 5);
    assert_int_equal(s->ops[0].rel.status, CCI_ERR_RMA_HANDLE);
    assert_int_equal(s->ops[4].rel.status, CCI_SUCCESS);
    world_end(w);
}

/* A step, but each withdrawal that leaves for a side is of one number alone. */
static void step_with_single_withdrawals(world_t *w, const side_t *to) {
    uint32_t i;
    step(w);
    for (i = 0; i < w->flying_count; i++) {
        uint8_t *frame = w->flying[i].buf->data + CCI_REL_HEADER;
        if (w->flying[i].to == to && w->flying[i].buf->length >= CCI_REL_HEADER + 16 && frame[0] == CCI__FRAME_VOID)
            cci__store32(frame + 8, 1);
    }
}

/* Two messages are refused until their time-out. The peer hears that the first was withdrawn, but not that the second was, and
 * takes a third, or a write, early. Then it refuses the second once more. */
static world_t *behind_a_withdrawal_nobody_hears(int is_write) {
    world_t *w = world_new(718, CCI_CONN_ATTR_RO, 256);
    side_t *s = &w->side[0], *peer = &w->side[1];
    static uint8_t memory[200]; /* too many for a packet with messages */
    s->rel.timeout_us = 4000000;
    peer->refuse_keep = 256;
    send_sure(s, 100);
    send_sure(s, 200); /* too long to travel with the first */
    step(w);
    assert_int_equal(w->flying_count, 2);
    while (s->completed < 2) step_with_single_withdrawals(w, peer);
    while (s->rel.rnr) step_with_single_withdrawals(w, peer);
    assert_int_equal(peer->rel.expected, 1);
    lose_what_flies_to(w, peer);
    peer->refuse_keep = 0;
    if (is_write)
        write_sure(s, memory, 0, sizeof memory, 0, 0);
    else
        send_sure(s, 100);
    while (!(CCI__CONTAINER(s->rel.items.prev, cci_rel_item_t, node)->flags & CCI__ITEM_DONE)) step(w);
    peer->refuse_keep = 256;
    cci_rel_invite(&peer->rel);
    step(w);
    lose_what_flies_to(w, peer); /* the withdrawal, once more */
    while (!s->rel.rnr) step(w);
    lose_what_flies_to(w, peer);
    assert_int_equal(peer->rel.expected, 1);
    w->down = 1;
    return w;
}

/* A message that waits in the peer's memory behind a withdrawal is not delivered, even if what came behind it is given up: it is
 * told when the peer has heard of the withdrawal, and never that it succeeded if the peer doesn't hear of it any more. */
static void test_a_message_behind_a_withdrawal_is_not_told_when_a_later_one_is_given_up(void **state) {
    int heals;
    (void)state;
    for (heals = 0; heals < 2; heals++) {
        world_t *w = behind_a_withdrawal_nobody_hears(0);
        side_t *s = &w->side[0], *peer = &w->side[1];
        send_sure(s, 100);
        run_for(w, 4100 * MS);
        s->rel.timeout_us = 2000000; /* the end of one more is not yet the end of those that wait */
        send_sure(s, 100);
        run_for(w, 2100 * MS);
        assert_int_equal(peer->delivered_count, 0);
        assert_int_equal(s->broken, 0);
        assert_int_equal(s->completed, 2);
        w->down = !heals;
        peer->refuse_keep = 0;
        run_for(w, 3000 * MS);
        assert_int_equal(s->broken, heals ? CCI_SUCCESS : CCI_ETIMEDOUT);
        assert_int_equal(s->completed, 5);
        assert_int_equal(s->ops[2].rel.status, heals ? CCI_SUCCESS : CCI_ETIMEDOUT);
        assert_int_equal(s->ops[3].rel.status, CCI_ERR_RNR);
        assert_int_equal(s->ops[4].rel.status, CCI_ERR_RNR);
        assert_int_equal(peer->delivered[2], heals);
        assert_int_equal(peer->delivered_count, heals);
        assert_pools_full(s, BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

/* A write that is done leaves the peer nothing to deliver: it is told at once, and what is given up behind it, too. */
static void test_a_write_behind_a_withdrawal_is_told_when_it_is_done(void **state) {
    world_t *w = behind_a_withdrawal_nobody_hears(1);
    side_t *s = &w->side[0];
    (void)state;
    assert_int_equal(s->completed, 3);
    assert_int_equal(s->ops[2].rel.status, CCI_SUCCESS);
    send_sure(s, 100);
    run_for(w, 4100 * MS);
    assert_int_equal(s->broken, 0);
    assert_int_equal(s->completed, 4);
    assert_int_equal(s->ops[3].rel.status, CCI_ERR_RNR);
    world_end(w);
}

/* The peer refuses a write and is gone before it can hear that the write was withdrawn. */
static void test_a_withdrawal_that_nobody_hears_ends_at_the_timeout(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(715 + i, attributes[i], 1200);
        uint64_t began = w->now_ns;
        static uint8_t memory[5000];
        w->side[0].rel.timeout_us = 500000;
        w->side[1].all_refused = 1;
        write_sure(&w->side[0], memory, 0, sizeof memory, 0, 0);
        while (cci__list_empty(&w->side[0].rel.items) ||
               !(CCI__CONTAINER(w->side[0].rel.items.next, cci_rel_item_t, node)->flags & CCI__ITEM_VOID)) {
            step(w);
            assert_true(w->now_ns < began + 400 * MS);
        }
        w->down = 1;
        while (w->flying_count > 0) buf_drop(w->flying[--w->flying_count].buf);
        run_for(w, 1000 * MS);
        assert_int_equal(w->side[0].broken, CCI_ETIMEDOUT);
        assert_int_equal(w->side[0].completed, 1);
        assert_int_equal(w->side[0].ops[0].rel.status, CCI_ERR_RMA_HANDLE);
        assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

static void test_traffic_goes_on_after_a_cut(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(720 + i, attributes[i], 1200);
        w->side[0].rel.timeout_us = 30000000;
        for (n = 0; n < 30; n++) send_sure(&w->side[0], 3000);
        w->down = 1;
        run_for(w, 3000 * MS);
        w->down = 0;
        assert_true(run_until_idle(w, 5000 * MS));
        assert_all_well(&w->side[0]);
        assert_int_equal(w->side[1].delivered_count, 30);
        world_end(w);
    }
}

/* ---- the path's MTU ---------------------------------------------------------------------------------------------- */

static world_t *world_of_few_records(uint64_t seed, int attribute, uint32_t mtu, uint32_t base, uint32_t records) {
    world_t *w = world_sized(seed, attribute, base, BLOCKS, BULKS, records, PARTS);
    uint32_t i;
    for (i = 0; i < 2; i++) {
        side_t *s = &w->side[i];
        s->pool.base_mtu = base;
        s->state.mtu = (uint16_t)base;
        cci_rel_begin(&s->rel, &s->pool, s, &s->state, attribute, mtu, 1u << 30);
    }
    return w;
}

static world_t *world_of_paths(uint64_t seed, int attribute, uint32_t mtu, uint32_t base) {
    return world_of_few_records(seed, attribute, mtu, base, RECORDS);
}

static void test_a_longer_path_is_found_by_probes(void **state) {
    static const uint32_t paths[3][2] = {{9024, 9024}, {5000, 4432}, {1500, 1472}};
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 3; i++) {
        world_t *w = world_of_paths(800 + i, CCI_CONN_ATTR_RO, MTU_MAX, 1200);
        w->path_mtu = paths[i][0];
        for (n = 0; n < 60; n++) {
            send_sure(&w->side[0], 6000);
            run_for(w, 20 * MS);
        }
        assert_true(run_until_idle(w, 30000 * MS));
        assert_int_equal(w->side[0].rel.mtu, paths[i][1]);
        assert_all_well(&w->side[0]);
        assert_int_equal(w->side[1].delivered_count, 60);
        world_end(w);
    }
}

static void test_a_path_that_becomes_shorter_loses_nothing(void **state) {
    uint32_t i, n;
    static uint8_t memory[60000];
    (void)state;
    for (i = 0; i < 8; i++) {
        world_t *w = world_of_paths(820 + i, attributes[i % 2], MTU_MAX, 1200);
        w->lose = i / 4 * 10;
        for (n = 0; n < 30; n++) {
            send_sure(&w->side[0], 8000);
            run_for(w, 20 * MS);
        }
        assert_true(w->side[0].rel.mtu > 8000);
        for (n = 0; n < 30; n++) {
            send_sure(&w->side[0], 4 + chance(w, n % 3 ? 300 : 8900));
            if (n % 5 == 0) write_sure(&w->side[0], memory, 0, 1 + chance(w, 60000), 200, 0);
            if (n == 10) w->path_mtu = 1300;
            if (chance(w, 2)) step(w);
        }
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: not done", i);
        assert_int_equal(w->side[0].rel.mtu, 1200);
        assert_all_well(&w->side[0]);
        assert_int_equal(w->side[1].delivered_count, w->side[0].sent);
        assert_pools_full(&w->side[0], BLOCKS, BULKS, RECORDS, PARTS);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

static int no_more(cci_rel_pool_t *pool, int what) {
    (void)pool, (void)what;
    return 0;
}

/* A lost piece that has become too long for the path goes in several, and each needs a record. There are some, but a
 * connection that holds most of all gets no more of them; or there could be more (`lacks_memory`), but there is no
 * memory now. Then the item begins anew, and nothing of it is forgotten. */
static void path_becomes_shorter_with_few_records(int lacks_memory) {
    static uint8_t memory[60000];
    uint32_t seed, n, scarce = 0;
    for (seed = 0; seed < 24; seed++) {
        world_t *w = world_of_few_records(860 + seed, attributes[seed % 2], MTU_MAX, 1200, 12 + seed % 3 * 4);
        side_t *s = &w->side[0];
        for (n = 0; n < 30; n++) {
            send_sure(s, 8000);
            run_for(w, 20 * MS);
        }
        assert_true(s->rel.mtu > 8000);
        if (lacks_memory) {
            s->pool.more = no_more;
            s->pool.record_total += 10000;
            s->pool.record_free += 10000;
        }
        fill_memory(memory, 0, sizeof memory, seed);
        for (n = 0; n < 24; n++) {
            if (seed / 2 % 3 == 0) {
                send_sure(s, 8000); /* one message in a packet */
            } else if (seed / 2 % 3 == 1) {
                send_sure(s, 4 + chance(w, 1800)); /* many */
            } else if (n % 4 == 0) {
                write_sure(s, memory, 0, sizeof memory, 300, 0);
            }
        }
        w->path_mtu = 1300;
        s->rel.flow.window = 1u << 20; /* only the records end it */
        side_output(s);
        if (lacks_memory ? cci__list_empty(&s->pool.records)
                         : s->pool.record_free > 0 && !cci__share_for_long(s->rel.record_count, s->pool.record_free,
                                                                           s->pool.record_total))
            scarce++;
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: a part of a lost piece is never sent again", seed);
        assert_int_equal(s->rel.mtu, 1200);
        assert_all_well(s);
        assert_true(seed / 2 % 3 != 2 || memcmp(w->side[1].arena, memory, sizeof memory) == 0);
        assert_int_equal(w->side[1].delivered_count, s->sent);
        assert_pools_full(s, BLOCKS, BULKS, 12 + seed % 3 * 4, PARTS);
        world_end(w);
    }
    assert_true(scarce > 4);
}

static void test_a_path_that_becomes_shorter_loses_nothing_when_the_share_of_records_is_used_up(void **state) {
    (void)state;
    path_becomes_shorter_with_few_records(0);
}

static void test_a_path_that_becomes_shorter_loses_nothing_without_memory_for_records(void **state) {
    (void)state;
    path_becomes_shorter_with_few_records(1);
}

/* Small packets pass a black hole, and their acknowledgements must not hide that large ones don't. */
static void test_a_shorter_path_is_noticed_beside_small_messages(void **state) {
    world_t *w = world_of_paths(840, CCI_CONN_ATTR_RU, MTU_MAX, 1200);
    uint32_t n, large;
    (void)state;
    for (n = 0; n < 30; n++) {
        send_sure(&w->side[0], 8000);
        run_for(w, 20 * MS);
    }
    assert_true(w->side[0].rel.mtu > 8000);
    w->path_mtu = 1300;
    large = w->side[0].sent;
    send_sure(&w->side[0], 8000);
    step(w); /* it leaves alone */
    for (n = 0; n < 2000; n++) {
        send_sure(&w->side[0], 20);
        run_for(w, 2 * MS);
    }
    assert_int_equal(w->side[0].broken, 0);
    if (!w->side[1].delivered[large]) fail_msg("the large message was not delivered in four seconds");
    world_end(w);
}

/* The whole message was only late: the pieces that were sent in its stead must leave nothing behind. */
static void test_a_message_that_comes_whole_and_in_pieces_leaves_nothing_behind(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_of_paths(850 + i, attributes[i], MTU_MAX, 1200);
        buf_t *whole;
        uint32_t number, n;
        for (n = 0; n < 20; n++) {
            send_sure(&w->side[0], 8000);
            run_for(w, 20 * MS);
        }
        assert_true(run_until_idle(w, 1000 * MS));
        send_sure(&w->side[0], 5000);
        side_output(&w->side[0]);
        assert_int_equal(w->flying_count, 1);
        whole = w->flying[0].buf; /* somebody holds it up */
        number = w->flying[0].number;
        w->flying_count = 0;
        w->path_mtu = 1300;
        while (w->side[0].rel.mtu > 1200) step(w);
        while (list_length(&w->side[1].rel.reassemblies) == 0) step(w); /* the first piece */
        (void)cci_rel_input(&w->side[1].rel, whole->data, whole->length, number, whole, w->now_ns);
        buf_drop(whole);
        if (!run_until_idle(w, 5000 * MS)) fail_msg("never idle: a part is left behind");
        assert_int_equal(w->side[1].delivered_count, 21);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

/* Of a run the beginning is sent in pieces, and the last message comes alone. Where the path grows meanwhile, the first piece is
 * repeated as the whole run, of which the receiver has that message. It takes the others. */
static void test_a_run_of_which_a_message_has_come_alone_is_taken_without_it(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_new(855, attributes[i], 1200);
        side_t *s = &w->side[0];
        s->pool.base_mtu = 1200;
        send_sure(s, 1000);
        send_sure(s, 50);
        s->rel.mtu = 600; /* the path has become smaller */
        side_output(s);
        assert_int_equal(w->flying_count, 3);
        buf_drop(w->flying[0].buf);
        memmove(&w->flying[0], &w->flying[1], --w->flying_count * sizeof w->flying[0]);
        s->rel.mtu = 1200;
        if (!run_until_idle(w, 5000 * MS)) fail_msg("never idle: the run is refused for ever");
        assert_int_equal(w->side[1].delivered_count, 2);
        assert_all_well(s);
        assert_pools_full(&w->side[1], BLOCKS, BULKS, RECORDS, PARTS);
        world_end(w);
    }
}

/* ---- pauses ------------------------------------------------------------------------------------------------------ */

static void pause_side(side_t *s, int attribute, uint32_t mtu) {
    cci_rel_end(&s->rel, &s->state);
    memset(&s->rel, 0xa5, sizeof s->rel); /* the memory is another's now */
    cci_rel_begin(&s->rel, &s->pool, s, &s->state, attribute, mtu, 1u << 30);
}

static void test_traffic_goes_on_after_pauses(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 4; i++) {
        world_t *w = world_new(900 + i, attributes[i % 2], 1200);
        w->lose = w->repeat = w->reorder = i < 2 ? 0 : 20;
        for (n = 0; n < 100; n++) {
            send_sure(&w->side[n & 1], 4 + chance(w, 4000));
            run_for(w, chance(w, 2000) * US);
            if (cci_rel_idle(&w->side[0].rel)) pause_side(&w->side[0], attributes[i % 2], 1200);
            if (cci_rel_idle(&w->side[1].rel)) pause_side(&w->side[1], attributes[i % 2], 1200);
        }
        if (!run_until_idle(w, 30000 * MS)) fail_msg("seed %u: not done", i);
        for (n = 0; n < 2; n++) {
            assert_all_well(&w->side[n]);
            assert_int_equal(w->side[1 - n].delivered_count, w->side[n].sent);
        }
        world_end(w);
    }
}

/* A receiver with a hole in what it has taken is not idle: the message that belongs there is still to come. */
static void test_a_pause_does_not_lose_a_message_that_is_overtaken(void **state) {
    world_t *w = world_new(910, CCI_CONN_ATTR_RU, 1200);
    flying_t first;
    (void)state;
    send_sure(&w->side[0], 1000);
    side_output(&w->side[0]);
    assert_int_equal(w->flying_count, 1);
    first = w->flying[0];
    w->flying_count = 0; /* lost */
    buf_drop(first.buf);
    send_sure(&w->side[0], 1000);
    side_output(&w->side[0]);
    w->now_ns += MS;
    arrivals(w);
    side_output(&w->side[1]); /* the acknowledgement */
    assert_int_equal(w->side[1].delivered[1], 1);
    if (cci_rel_idle(&w->side[1].rel)) pause_side(&w->side[1], CCI_CONN_ATTR_RU, 1200);
    assert_true(run_until_idle(w, 5000 * MS));
    assert_int_equal(w->side[0].completed, 2);
    if (!w->side[1].delivered[0]) fail_msg("the first message completed and was never delivered");
    world_end(w);
}

/* Repeated packets are part of every network. */
static void test_a_late_repetition_after_a_pause_is_not_answered_for_ever(void **state) {
    world_t *w = world_new(920, CCI_CONN_ATTR_RO, 1200);
    uint32_t i, before;
    buf_t *copy;
    uint32_t number;
    (void)state;
    for (i = 0; i < 3; i++) send_sure(&w->side[0], 1000);
    side_output(&w->side[0]);
    copy = buf_copy(w->flying[0].buf, w->flying[0].buf->length);
    number = w->flying[0].number;
    assert_true(run_until_idle(w, 1000 * MS));
    pause_side(&w->side[1], CCI_CONN_ATTR_RO, 1200);
    fly(w, &w->side[1], copy, number, w->now_ns);
    before = w->packets;
    arrivals(w);
    for (i = 0; i < 100; i++) {
        cci_rel_packet_t packet;
        packet.head = w->head;
        w->now_ns += 100 * US;
        if (!cci_rel_output(&w->side[1].rel, &packet, 1, w->now_ns)) break;
        w->packets++;
    }
    if (w->packets - before > 2) fail_msg("%u packets answer one repetition", w->packets - before);
    assert_true(cci_rel_idle(&w->side[1].rel));
    world_end(w);
}

/* ---- exhaustion -------------------------------------------------------------------------------------------------- */

static void test_a_pool_without_blocks_says_so_and_recovers(void **state) {
    world_t *w = world_sized(1000, CCI_CONN_ATTR_RO, 1200, 4, 4, 64, 8);
    uint32_t n;
    (void)state;
    for (n = 0; send_message(&w->side[0], 1000) == CCI_SUCCESS; n++) assert_true(n < 5);
    assert_int_equal(n, 4);
    assert_true(run_until_idle(w, 1000 * MS));
    for (n = 0; n < 50; n++) send_sure(&w->side[0], 3000);
    assert_true(run_until_idle(w, 10000 * MS));
    assert_all_well(&w->side[0]);
    assert_pools_full(&w->side[0], 4, 4, 64, 8);
    world_end(w);
}

static void test_a_limit_below_what_is_in_use_is_no_room(void **state) {
    world_t *w = world_new(1010, CCI_CONN_ATTR_RO, 1200);
    static uint8_t memory[5000];
    uint32_t n;
    (void)state;
    for (n = 0; n < 10; n++) assert_int_equal(send_message(&w->side[0], 3000), CCI_SUCCESS);
    w->side[0].pool.block_limit = 4;
    assert_int_equal(send_message(&w->side[0], 3000), CCI_ENOBUFS);
    WITHIN_SECONDS(5, assert_int_equal(send_write(&w->side[0], memory, 0, 5000, 100, 0), CCI_ENOBUFS), "hangs");
    assert_true(run_until_idle(w, 1000 * MS));
    world_end(w);
}

/* Without a loss so far, all that came before the first gap is one range, longer than an ACK can say. */
static void test_an_ack_names_the_end_of_a_long_range(void **state) {
    world_t *w = world_new(1014, CCI_CONN_ATTR_RO, 1200);
    cci_rel_t *rel = &w->side[1].rel;
    cci_range_t ranges[2] = {{1, 70001}, {70002, 70004}}, named[CCI__REL_ACK_MORE + 1];
    uint8_t frame[128];
    uint32_t size;
    (void)state;
    rel->numbers = ranges;
    rel->number_count = 2;
    size = cci__rel_write_ack(rel, frame, sizeof frame, w->now_ns);
    assert_int_equal(cci__rel_parse_ack(frame, size, 70004, named), 2);
    assert_true(named[0].lo == 70002 && named[0].hi == 70004);
    assert_true(named[1].lo == 70001 - 65535 && named[1].hi == 70001);
    rel->numbers = rel->few_numbers;
    rel->number_count = 0;
    world_end(w);
}

/* There are more ranges than an ACK has room for, and what comes fills one of the lowest. */
static void test_an_ack_goes_down_to_what_came_out_of_order(void **state) {
    world_t *w = world_new(1018, CCI_CONN_ATTR_RO, 1200);
    cci_rel_t *rel = &w->side[1].rel;
    cci_range_t ranges[24], named[CCI__REL_ACK_MORE + 1];
    uint8_t frame[128];
    uint32_t i, size;
    (void)state;
    for (i = 0; i < 24; i++) {
        ranges[i].lo = 10 * i + 5;
        ranges[i].hi = 10 * i + 8;
    }
    rel->numbers = ranges;
    rel->number_count = 24;
    cci__rel_note_low(rel, 10 * 2 + 6);
    size = cci__rel_write_ack(rel, frame, sizeof frame, w->now_ns);
    assert_int_equal(cci__rel_parse_ack(frame, size, 1000, named), CCI__REL_ACK_MORE + 1);
    assert_int_equal(named[0].hi, 10 * 23 + 8);
    assert_int_equal(named[1].hi, 10 * (2 + CCI__REL_ACK_MORE - 1) + 8);
    assert_int_equal(named[CCI__REL_ACK_MORE].lo, 10 * 2 + 5);
    cci__rel_note_low(rel, 10 * 20 + 6); /* this one is named anyway */
    size = cci__rel_write_ack(rel, frame, sizeof frame, w->now_ns);
    assert_int_equal(cci__rel_parse_ack(frame, size, 1000, named), CCI__REL_ACK_MORE + 1);
    assert_int_equal(named[CCI__REL_ACK_MORE].lo, 10 * (23 - CCI__REL_ACK_MORE) + 5);
    rel->numbers = rel->few_numbers;
    rel->number_count = 0;
    world_end(w);
}

/* Eight messages leave together on a path of 0.2 ms, where every loss halves the window. The first of them comes so much later
 * than the others; the second does not come if it is `lost`. Returns the window before; the least in between is in *cut. */
static uint64_t send_one_late(world_t *w, uint64_t late_ns, int lost, uint64_t *cut) {
    side_t *s = &w->side[0];
    uint64_t window = s->rel.flow.window, until = w->now_ns + 1000 * MS;
    uint32_t n;
    s->pool.congestion = cci__find_congestion("newreno");
    for (n = 0; n < 8; n++) send_sure(s, 1000);
    side_output(s);
    assert_true(w->flying_count >= 8 && w->flying[0].to == &w->side[1]);
    w->flying[0].at_ns += late_ns;
    if (lost) {
        buf_drop(w->flying[1].buf);
        memmove(&w->flying[1], &w->flying[2], (--w->flying_count - 1) * sizeof w->flying[0]);
    }
    *cut = window;
    while (!world_idle(w) && w->now_ns < until) {
        step(w);
        *cut = cci__min64(*cut, s->rel.flow.window);
    }
    assert_all_well(s);
    return window;
}

static world_t *world_that_knows_its_path(uint64_t seed, int attribute) {
    world_t *w = world_new(seed, attribute, 1200);
    uint32_t n;
    for (n = 0; n < 8; n++) {
        send_sure(&w->side[0], 1000);
        assert_true(run_until_idle(w, 1000 * MS));
    }
    return w;
}

static void test_a_packet_that_was_only_late_gives_the_window_back(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_that_knows_its_path(1040 + i, attributes[i]);
        side_t *s = &w->side[0];
        uint64_t before, cut;
        before = send_one_late(w, 100 * US, 0, &cut);
        assert_int_equal(s->pool.packets_lost, 1);
        assert_int_equal(s->pool.retransmitted, 1); /* it was sent again, whatever became of the first */
        assert_true(cut <= before / 2 + 2000);
        assert_true(s->rel.flow.window >= before && s->rel.flow.threshold == UINT32_MAX);
        world_end(w);
    }
}

static void test_a_packet_that_was_lost_does_not(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_that_knows_its_path(1042 + i, attributes[i]);
        side_t *s = &w->side[0];
        uint64_t before, cut;
        before = send_one_late(w, 0, 1, &cut);
        assert_int_equal(s->pool.packets_lost, 1);
        assert_int_equal(s->pool.retransmitted, 1);
        assert_int_equal(s->rel.reordering, 0);
        assert_true(s->rel.flow.window < before && s->rel.flow.threshold < before);
        world_end(w);
    }
}

static void test_the_window_stays_where_one_packet_was_late_and_another_lost(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_that_knows_its_path(1046 + i, attributes[i]);
        side_t *s = &w->side[0];
        uint64_t before, cut;
        before = send_one_late(w, 100 * US, 1, &cut);
        assert_int_equal(s->pool.packets_lost, 2);
        send_sure(s, 1000);
        assert_true(run_until_idle(w, 1000 * MS));
        assert_true(s->rel.flow.window < before && s->rel.flow.threshold < before);
        world_end(w);
    }
}

/* Three packets that came first tell of a loss while packets keep their order, and a time after one was late. */
static void test_the_reordering_window_grows_with_need_and_shrinks_without(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_that_knows_its_path(1044 + i, attributes[i]);
        side_t *s = &w->side[0];
        uint32_t most;
        uint64_t cut;
        (void)send_one_late(w, 40 * US, 0, &cut);
        assert_int_equal(s->pool.packets_lost, 1);
        most = s->rel.reordering;
        assert_true(most >= 1 && most <= 2);
        for (n = 0; n < 8; n++) { /* so much is no loss any more, and the window stays as wide as need be */
            (void)send_one_late(w, 40 * US, 0, &cut);
            run_for(w, MS);
        }
        assert_int_equal(s->pool.packets_lost, 1);
        assert_int_equal(s->rel.reordering, most);
        (void)send_one_late(w, 160 * US, 0, &cut);
        assert_int_equal(s->pool.packets_lost, 2);
        assert_true(s->rel.reordering > most);
        most = s->rel.reordering;
        for (n = 0; n < 400 && s->rel.reordering > 0; n++) {
            send_sure(s, 1000);
            assert_true(run_until_idle(w, 1000 * MS));
            assert_true(s->rel.reordering <= most && s->rel.reordering + 1u >= most);
            most = s->rel.reordering;
        }
        assert_true(n > 2 * CCI__REL_REORDER_ROUNDS && n < 400);
        (void)send_one_late(w, 40 * US, 0, &cut);
        assert_int_equal(s->pool.packets_lost, 3);
        world_end(w);
    }
}

/* Every packet counts as lost before its acknowledgement comes, which tells of the path all the same. */
static void test_a_round_trip_longer_than_the_time_outs_is_learnt(void **state) {
    static const uint64_t round_trips_ns[] = {1000 * MS, 3000 * MS, 10000 * MS};
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 3; i++) {
        world_t *w = world_new(1015 + i, CCI_CONN_ATTR_RO, 1200);
        const cci_rel_t *rel = &w->side[0].rel;
        uint64_t again;
        w->delay_ns = round_trips_ns[i] / 2;
        for (n = 0; n < 24; n++) {
            send_sure(&w->side[0], 100);
            assert_true(run_until_idle(w, 40000 * MS));
        }
        assert_true(rel->srtt_ns > round_trips_ns[i] * 3 / 4 && rel->srtt_ns < round_trips_ns[i] * 5 / 4);
        again = w->side[0].pool.retransmitted;
        for (n = 0; n < 8; n++) {
            send_sure(&w->side[0], 100);
            assert_true(run_until_idle(w, 40000 * MS));
        }
        assert_int_equal(w->side[0].pool.retransmitted, again);
        assert_all_well(&w->side[0]);
        world_end(w);
    }
}

/* A program sends a few packets and sleeps for 13 s. Then it takes in at once what acknowledged each of them in time. */
static void test_a_pause_of_a_program_is_no_round_trip(void **state) {
    uint32_t seed, n;
    (void)state;
    for (seed = 0; seed < 8; seed++) {
        world_t *w = world_new(1020 + seed, attributes[seed % 2], 1200);
        const cci_rel_t *rel = &w->side[0].rel;
        w->delay_ns = 20 * MS;
        for (n = 0; n < 8 * (seed / 4); n++) { /* half of them know the path */
            send_sure(&w->side[0], 100);
            assert_true(run_until_idle(w, 1000 * MS));
        }
        for (n = 0; n < 8; n++) {
            send_sure(&w->side[0], 1000);
            run_for(w, 4 * MS);
        }
        w->now_ns += 13000 * MS;
        assert_true(run_until_idle(w, 10000 * MS));
        assert_true(rel->srtt_ns + 4 * rel->rttvar_ns < 6000 * MS);
        for (n = 0; n < 24; n++) {
            send_sure(&w->side[0], 100);
            assert_true(run_until_idle(w, 10000 * MS));
        }
        assert_true(rel->srtt_ns + 4 * rel->rttvar_ns < 500 * MS);
        assert_all_well(&w->side[0]);
        world_end(w);
    }
}

/* Messages go to and fro one at a time, and nearly half of the packets are lost: what was acknowledged in time is often heard of
 * long afterwards, behind the peer's next message. */
static void test_an_acknowledgement_that_waited_for_long_is_no_round_trip(void **state) {
    uint32_t seed, n;
    (void)state;
    for (seed = 0; seed < 8; seed++) {
        world_t *w = world_new(1040 + seed, attributes[seed % 2], 1200);
        w->delay_ns = 1 * MS;
        w->lose = 120;
        for (n = 0; n < 400; n++) {
            side_t *side = &w->side[n % 2];
            uint32_t before = side->peer->delivered_count;
            send_sure(side, 100);
            while (side->peer->delivered_count == before)
                step(w);
            assert_true(side->rel.srtt_ns + 4 * side->rel.rttvar_ns < 1500 * MS);
        }
        world_end(w);
    }
}

/* All packets that can be remembered are lost at once; afterwards there must be a way on. */
static void test_a_pool_without_records_recovers_after_a_cut(void **state) {
    uint32_t i;
    static uint8_t memory[60000];
    (void)state;
    for (i = 0; i < 2; i++) {
        world_t *w = world_sized(1020 + i, attributes[i], 256, 16, 16, 16, 16);
        assert_int_equal(send_write(&w->side[0], memory, 0, 60000, 0, 0), CCI_SUCCESS);
        run_for(w, MS);
        w->down = 1;
        run_for(w, 3000 * MS);
        w->down = 0;
        if (!run_until_idle(w, 10000 * MS)) fail_msg("nothing is sent any more: all records are lost packets");
        assert_all_well(&w->side[0]);
        assert_pools_full(&w->side[0], 16, 16, 16, 16);
        world_end(w);
    }
}

/* Messages that come too early must leave a part to the one that is due. */
static void test_early_messages_leave_a_part_to_the_one_that_is_due(void **state) {
    world_t *w = world_sized(1030, CCI_CONN_ATTR_RO, 1200, 32, 8, 256, 2);
    uint32_t n;
    (void)state;
    w->down = 1; /* the first message is lost, wholly */
    send_sure(&w->side[0], 3000);
    side_output(&w->side[0]);
    w->down = 0;
    for (n = 0; n < 8; n++) send_sure(&w->side[0], 3000);
    if (!run_until_idle(w, 20000 * MS))
        fail_msg("the first message finds no part: %u of 9 delivered", w->side[1].delivered_count);
    assert_int_equal(w->side[1].delivered_count, 9);
    world_end(w);
}

static void test_few_parts_delay_writes_and_lose_none(void **state) {
    uint32_t i, n;
    static uint8_t memory[60000];
    (void)state;
    for (i = 0; i < 200; i++) {
        world_t *w = world_sized(1040 + i, attributes[i % 2], 600, 16, 16, 128, 4);
        w->lose = w->reorder = 20;
        for (n = 0; n < 40; n++) write_sure(&w->side[0], memory, 0, 5000, n % 2 ? 100 : 0, 0);
        if (!run_until_idle(w, 60000 * MS)) fail_msg("seed %u: not done, %u of 40", i, w->side[0].completed);
        assert_all_well(&w->side[0]);
        world_end(w);
    }
}

/* ---- hostile input ----------------------------------------------------------------------------------------------- */

static int feed(world_t *w, side_t *s, const uint8_t *frames, uint32_t length, uint32_t number) {
    buf_t *buf = buf_new(CCI_REL_HEADER + length);
    int sound;
    memset(buf->data, 0, CCI_REL_HEADER);
    if (length) memcpy(buf->data + CCI_REL_HEADER, frames, length);
    sound = cci_rel_input(&s->rel, buf->data, buf->length, number, buf, w->now_ns);
    buf_drop(buf);
    return sound;
}

/* A piece of a message has the last buffer, and then all of the message comes in one packet: it must not be refused until
 * somebody else gives a buffer back, who may be waiting for it. */
static void test_a_message_of_which_a_piece_has_a_buffer_needs_no_other(void **state) {
    uint32_t i, more;
    (void)state;
    for (i = 0; i < 2; i++) {
        for (more = 0; more < 2; more++) {
            world_t *w = world_new(672, attributes[i], 1500);
            side_t *s = &w->side[1];
            uint8_t message[1000], frames[1100];
            message_fill(message, 0, sizeof message);
            cci__store32(cci__rel_frame(frames, CCI__FRAME_FRAGMENT, 0, 400, 0), 600);
            cci__store32(frames + 12, sizeof message);
            memcpy(frames + 16, message + 600, 400);
            assert_int_equal(feed(w, s, frames, 416, 0), CCI_REL_NEWEST);
            s->refuse_keep = 256;
            memcpy(cci__rel_frame(frames, CCI__FRAME_MESSAGE, 0, sizeof message, 0), message, sizeof message);
            message_fill(cci__rel_frame(frames + 1008, CCI__FRAME_MESSAGE, 0, 16, 1), 1, 16);
            (void)feed(w, s, frames, 1008 + 24 * more, 1);
            assert_int_equal(s->delivered[0], 1);
            assert_int_equal(s->delivered_count, 1);
            assert_int_equal(s->rel.expected, 1);
            assert_int_equal(s->rel.buffers_held, 0);
            assert_int_equal(s->rel.nack_count, more); /* what came behind it must come again, and alone */
            s->refuse_keep = 0;
            (void)feed(w, s, frames, 1008 + 24 * more, 2);
            assert_int_equal(s->delivered_count, 1 + more);
            world_end(w);
        }
    }
}

static void test_an_acknowledgement_of_what_was_never_sent_is_malformed(void **state) {
    world_t *w = world_new(1100, CCI_CONN_ATTR_RO, 1200);
    uint8_t ack[24] = {CCI__FRAME_ACK};
    (void)state;
    send_sure(&w->side[0], 100);
    side_output(&w->side[0]);
    cci__store32(ack + 8, 1);
    cci__store32(ack + 4, 1); /* number 0 was sent, number 1 was not */
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), 0);
    cci__store32(ack + 4, 0xffffffff);
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), 0);
    cci__store32(ack + 4, 0);
    cci__store32(ack + 8, 2); /* more than there are */
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), 0);
    cci__store32(ack + 8, 0);
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), 0);
    cci__store32(ack + 8, 1);
    ack[1] = 1; /* a range of which there is no byte */
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), 0);
    assert_int_equal(feed(w, &w->side[0], ack, 24, 0), 0); /* its gap is 0 */
    ack[1] = 255;
    assert_int_equal(feed(w, &w->side[0], ack, 24, 0), 0);
    assert_int_equal(w->side[0].completed, 0);
    ack[1] = 0;
    assert_int_equal(feed(w, &w->side[0], ack, 16, 0), CCI_REL_NEWEST);
    assert_int_equal(w->side[0].completed, 1);
    world_end(w);
}

static void test_frames_behind_those_of_another_layer_are_checked_too(void **state) {
    world_t *w = world_new(1110, CCI_CONN_ATTR_RO, 1200);
    side_t *s = &w->side[1];
    uint8_t frames[128];
    (void)state;
    s->other_size = 48;
    memset(frames, 0, sizeof frames);
    frames[0] = CCI__FRAME_OTHER;
    frames[48] = CCI__FRAME_BULK; /* says that it has more bytes than the packet, and lies beyond its end */
    cci__store16(frames + 50, 60000);
    cci__store64(frames + 56, KEY);
    cci__store64(frames + 48 + 32, 1u << 20);
    cci__store64(frames + 48 + 40, 100);
    w->hostile = 1;
    WITHIN_SECONDS(5, (void)feed(w, s, frames, 104, 0), "a bulk frame behind a frame of another layer never ends");
    assert_int_equal(s->placed, 0);
    world_end(w);
}

/* ---- ECN --------------------------------------------------------------------------------------------------------- */

static const uint32_t ecn_at = offsetof(side_t, ecn) - offsetof(side_t, rel);

static world_t *world_with_ecn(uint64_t seed, int attribute, int both) {
    world_t *w = world_new(seed, attribute, 1200);
    int i;
    for (i = 0; i < 1 + both; i++) {
        w->side[i].pool.ecn_at = ecn_at;
        cci__rel_reset_ecn(&w->side[i].rel, &w->side[i].state);
    }
    w->delay_ns = 5 * MS;
    return w;
}

/* So many messages, of which at most 20 are pending. */
static void stream(world_t *w, uint32_t messages) {
    uint32_t n;
    for (n = 0; n < messages; n++) {
        while (w->side[0].sent - w->side[0].completed >= 20) step(w);
        send_sure(&w->side[0], 1000);
    }
    assert_true(run_until_idle(w, 60000 * MS));
    assert_all_well(&w->side[0]);
}

static void test_a_path_that_leaves_codepoints_alone_keeps_ecn_and_costs_few_reports(void **state) {
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 4; i++) {
        world_t *w = world_with_ecn(1500 + i, attributes[i & 1], 1);
        w->lose = i < 2 ? 0 : 8;
        w->repeat = w->reorder = i < 2 ? 0 : 20;
        stream(w, 1500);
        assert_int_equal(w->side[0].rel.codepoint, 2);
        assert_int_equal(w->side[1].ecn.came[1] + w->side[1].ecn.came[3], 0);
        assert_true(w->side[0].ecn.total > 500);
        assert_true(w->reports > 5 && w->reports < 20);
        w->reports = 0;
        for (n = 0; n < 200; n++) { /* ping-pong */
            send_sure(&w->side[n & 1], 64);
            assert_true(run_until_idle(w, 10000 * MS));
        }
        assert_true(w->reports <= 8);
        world_end(w);
    }
}

static void test_a_mark_cuts_the_window_once_for_each_round_trip_and_repeats_nothing(void **state) {
    static const char *const names[] = {"cubic", "discern", "newreno"};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        world_t *w = world_with_ecn(1510 + i, attributes[i & 1], 1);
        cci_rel_t *rel = &w->side[0].rel;
        uint64_t before;
        w->side[0].pool.congestion = cci__find_congestion(names[i]);
        stream(w, 300);
        assert_true(rel->flow.window < rel->flow.threshold); /* slow start: as a loss */
        before = rel->flow.window;
        w->marks = MARKS_SOME;
        w->mark_every = 1;
        stream(w, 8); /* one round trip */
        assert_in_range(rel->flow.window, before * (i < 2 ? 69 : 49) / 100, before * (i < 2 ? 72 : 52) / 100);
        before = rel->flow.window;
        stream(w, 8);
        assert_in_range(rel->flow.window, before * (i < 2 ? 84 : 79) / 100, before * (i < 2 ? 86 : 81) / 100);
        w->marks = MARKS_NOTHING;
        before = rel->flow.window;
        stream(w, 200);
        assert_true(rel->flow.window >= before);
        assert_int_equal(rel->codepoint, 2);
        assert_int_equal(w->side[0].pool.retransmitted, 0);
        world_end(w);
    }
}

static void test_a_path_or_a_peer_that_does_not_do_its_part_ends_ecn_until_the_peer_moves(void **state) {
    static const int paths[] = {MARKS_AWAY, MARKS_OTHER, MARKS_ALL, MARKS_NOTHING};
    uint32_t i, later;
    (void)state;
    for (i = 0; i < 4; i++) {
        for (later = 0; later < (i < 2 ? 2 : 1); later++) { /* or it begins when all was well for some time */
            world_t *w = world_with_ecn(1520 + i, attributes[i & 1], 1);
            if (later) stream(w, 100);
            assert_int_equal(w->side[0].rel.codepoint, 2);
            w->marks = paths[i];
            if (i == 3) w->side[1].ecn.report_at = UINT32_MAX; /* an older peer tells nothing */
            stream(w, later ? 2500 : 400);
            assert_int_equal(w->side[0].rel.codepoint, 0);
            if (i != 2) assert_true(w->side[0].rel.flow.threshold == UINT32_MAX); /* nothing was marked */
            w->marks = MARKS_NOTHING;
            w->side[1].ecn.report_at = w->side[1].ecn.came[2] + 4;
            cci_rel_begin_ecn(&w->side[0].rel);
            if (paths[i] != MARKS_OTHER) { /* ECT(1) stays in the count */
                stream(w, 300);
                assert_int_equal(w->side[0].rel.codepoint, 2);
            }
            world_end(w);
        }
    }
}

static void test_without_a_link_or_a_control_that_knows_ecn_packets_have_no_codepoint(void **state) {
    world_t *w = world_with_ecn(1530, CCI_CONN_ATTR_UU, 0);
    (void)state;
    assert_int_equal(w->side[0].rel.codepoint, 0); /* unreliable: nothing is acknowledged */
    world_end(w);
    w = world_new(1531, CCI_CONN_ATTR_RO, 1200);
    cci_rel_begin_ecn(&w->side[0].rel);
    assert_int_equal(w->side[0].rel.codepoint, 0);
    w->side[0].pool.ecn_at = ecn_at;
    w->side[0].pool.congestion = cci__find_congestion("fixed");
    cci_rel_begin_ecn(&w->side[0].rel);
    assert_int_equal(w->side[0].rel.codepoint, 0);
    world_end(w);
}

static void test_counts_outlive_a_pause_of_either_side(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        world_t *w = world_with_ecn(1540 + i, attributes[i & 1], 1);
        side_t *s = &w->side[i & 1];
        uint64_t window;
        w->marks = MARKS_SOME;
        w->mark_every = 40;
        stream(w, 500);
        w->marks = MARKS_NOTHING;
        if (i == 2) w->side[0].rel.codepoint = 0; /* it was found out */
        cci_rel_end(&s->rel, &s->state);
        cci_rel_begin(&s->rel, &s->pool, s, &s->state, attributes[i & 1], 1200, 1u << 30);
        window = w->side[0].rel.flow.window;
        stream(w, 500);
        assert_int_equal(w->side[0].rel.codepoint, i == 2 ? 0 : 2);
        assert_true(w->side[0].rel.flow.window >= window); /* marks from before count once */
        world_end(w);
    }
}

/* A peer that lies changes the rate, and nothing else. */
static void test_lying_counts_change_nothing_but_the_rate(void **state) {
    uint32_t round;
    (void)state;
    for (round = 0; round < 300; round++) {
        world_t *w = world_with_ecn(1550 + round, attributes[round & 1], 1);
        uint32_t n, number = 1000;
        for (n = 0; n < 60; n++) {
            uint8_t frame[24] = {CCI__FRAME_MARKS};
            uint32_t at, size = chance(w, 4) ? 16 : chance(w, 17);
            for (at = 4; at < 16; at += 4)
                cci__store32(frame + at, chance(w, 3) == 0 ? (uint32_t)w->random : chance(w, 3) ? chance(w, 100) : UINT32_MAX);
            if (n % 5 == 0) send_sure(&w->side[0], 100 + chance(w, 900));
            w->side[1].rel.next_number = cci__max64(w->side[1].rel.next_number, ++number);
            (void)feed(w, &w->side[0], frame, size, number - 1);
            if (chance(w, 2)) step(w);
        }
        assert_true(run_until_idle(w, 60000 * MS));
        assert_all_well(&w->side[0]);
        assert_true(w->side[0].rel.flow.window >= 2400);
        world_end(w);
    }
}

static void test_an_unknown_frame_behind_one_of_another_layer_ends_the_packet(void **state) {
    world_t *w = world_new(1120, CCI_CONN_ATTR_RO, 1200);
    uint8_t frames[64];
    (void)state;
    w->side[1].other_size = 48;
    memset(frames, 0, sizeof frames);
    frames[0] = CCI__FRAME_OTHER;
    frames[48] = 9; /* there is no such frame */
    WITHIN_SECONDS(3, (void)feed(w, &w->side[1], frames, 64, 0), "one packet is looked at for ever");
    world_end(w);
}

/* Each frame of these kinds costs more than its bytes: a packet that is full of them is not worth its work. */
static void test_a_packet_of_too_many_pieces_is_malformed(void **state) {
    uint8_t frames[5 * 24];
    uint32_t pieces, i;
    (void)state;
    for (pieces = CCI__REL_PIECES; pieces <= CCI__REL_PIECES + 1; pieces++) {
        world_t *w = world_new(1125, CCI_CONN_ATTR_RU, 1200);
        memset(frames, 0, sizeof frames);
        for (i = 0; i < pieces; i++) { /* the first pieces of messages of 100 bytes */
            frames[i * 24] = CCI__FRAME_FRAGMENT;
            frames[i * 24 + 2] = 8;
            frames[i * 24 + 4] = (uint8_t)i;
            frames[i * 24 + 12] = 100;
        }
        (void)feed(w, &w->side[1], frames, pieces * 24, 0);
        assert_int_equal(w->side[1].pool.packets_malformed, pieces > CCI__REL_PIECES);
        assert_int_equal(list_length(&w->side[1].rel.reassemblies), CCI__REL_PIECES);
        world_end(w);
    }
}

/* A sound peer refuses four things in a packet at most. What more there is, is not looked at: its answer comes again. */
static void test_a_packet_refuses_four_operations_at_most(void **state) {
    world_t *w = world_new(1126, CCI_CONN_ATTR_RU, 1200);
    static uint8_t memory[6][600];
    uint8_t frames[6 * 8];
    uint32_t i;
    (void)state;
    for (i = 0; i < 6; i++) write_sure(&w->side[0], memory[i], 0, sizeof memory[i], 0, 0);
    w->down = 1;
    side_output(&w->side[0]);
    memset(frames, 0, sizeof frames);
    for (i = 0; i < 6; i++) {
        frames[i * 8] = CCI__FRAME_NACK;
        frames[i * 8 + 1] = CCI_ERR_RMA_HANDLE;
        frames[i * 8 + 4] = (uint8_t)i;
    }
    (void)feed(w, &w->side[0], frames, sizeof frames, 0);
    w->down = 0;
    assert_true(run_until_idle(w, 30000 * MS));
    assert_int_equal(w->side[0].completed, 6);
    for (i = 0; i < 6; i++) assert_int_equal(w->side[0].ops[i].rel.status, i < 4 ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
    world_end(w);
}

static void test_huge_jumps_of_numbers_do_no_harm(void **state) {
    world_t *w = world_new(1130, CCI_CONN_ATTR_RO, 1200);
    uint8_t frame[32] = {CCI__FRAME_MESSAGE};
    uint32_t n;
    (void)state;
    w->hostile = 1;
    cci__store16(frame + 2, 4);
    for (n = 0; n < 4000; n++) {
        cci__store32(frame + 4, n % 3 ? n * 0x10000001u : n);
        (void)feed(w, &w->side[n & 1], frame, 12, n * 0x3fffff1u);
        if (n % 16 == 0) side_output(&w->side[n & 1]);
    }
    frame[0] = CCI__FRAME_VOID;
    for (n = 0; n < 4000; n++) {
        cci__store32(frame + 4, n * 0x10000001u);
        cci__store32(frame + 8, 0x3fffffff);
        (void)feed(w, &w->side[n & 1], frame, 16, n * 0x7ffff1u);
    }
    world_end(w);
}

static void test_late_packets_are_acknowledged_once_where_there_is_no_memory_for_their_numbers(void **state) {
    world_t *w = world_new(1131, CCI_CONN_ATTR_RO, 1200);
    cci_rel_t *rel = &w->side[1].rel;
    cci_rel_packet_t packet;
    uint8_t frame[8] = {CCI__FRAME_PING}, head[CCI_REL_HEAD];
    uint32_t numbers[] = {9, 5, 7, 5, 3}, i;
    (void)state;
    w->hostile = 1;
    cci__list_init(&w->side[1].pool.numbers); /* all in use elsewhere */
    packet.head = head;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_true(feed(w, &w->side[1], frame, sizeof frame, numbers[i]));
        assert_int_equal(rel->number_count, 1);
        assert_true(rel->numbers[0].lo <= 9 && rel->numbers[0].hi == 10);
        if (cci_rel_output(rel, &packet, 1, w->now_ns)) assert_true(packet.head_length > CCI_REL_HEADER);
        assert_false(cci_rel_output(rel, &packet, 1, w->now_ns));
    }
    world_end(w);
}

static void test_withdrawals_beyond_what_can_be_remembered_are_refused_until_a_gap_closes(void **state) {
    world_t *w = world_new(1135, CCI_CONN_ATTR_RU, 1200);
    cci_rel_t *rel = &w->side[1].rel;
    uint8_t frame[16] = {CCI__FRAME_VOID};
    uint32_t n;
    (void)state;
    w->hostile = 1;
    cci__store32(frame + 8, 1);
    for (n = 0; n <= CCI__REL_SEQUENCES; n++) { /* each second number: the last finds no room */
        cci__store32(frame + 4, (uint32_t)rel->expected + 1 + 2 * n);
        assert_true(feed(w, &w->side[1], frame, sizeof frame, n));
        assert_int_equal(rel->sequence_count, cci__min32(n + 1, CCI__REL_SEQUENCES));
    }
    cci__store32(frame + 4, (uint32_t)rel->expected);
    assert_true(feed(w, &w->side[1], frame, sizeof frame, n));
    assert_int_equal(rel->sequence_count, CCI__REL_SEQUENCES - 1);
    cci__store32(frame + 4, (uint32_t)rel->expected + 1 + 2 * (CCI__REL_SEQUENCES - 1));
    assert_true(feed(w, &w->side[1], frame, sizeof frame, n + 1));
    assert_int_equal(rel->sequence_count, CCI__REL_SEQUENCES);
    world_end(w);
}

static void test_random_frames_do_no_harm(void **state) {
    uint32_t seed, n, i;
    (void)state;
    for (seed = 0; seed < 6; seed++) {
        world_t *w = world_new(1140 + seed, seed % 3 == 2 ? CCI_CONN_ATTR_UU : attributes[seed % 3], 600);
        uint8_t frames[160];
        w->hostile = 1;
        w->side[1].refuse_keep = 128;
        for (n = 0; n < 6000; n++) {
            uint32_t length = chance(w, 161);
            for (i = 0; i < length; i++) frames[i] = (uint8_t)(chance(w, 3) ? chance(w, 4) : chance(w, 256));
            if (length) frames[0] = (uint8_t)chance(w, 9);
            (void)feed(w, &w->side[1], frames, length, chance(w, 2) ? n : (uint32_t)w->random);
            if (n % 64 == 0) {
                side_output(&w->side[1]);
                w->now_ns += MS;
                cci_rel_timeout(&w->side[1].rel, w->now_ns);
            }
        }
        world_end(w);
    }
}

/* One packet of each kind, cut at every length. */
static void test_truncated_packets_do_no_harm(void **state) {
    uint32_t n, length;
    static uint8_t memory[5000];
    (void)state;
    for (n = 0; n < 4; n++) {
        world_t *w = world_new(1150 + n, attributes[n % 2], 600);
        buf_t *whole[32];
        uint32_t number[32], count = 0, i;
        w->hostile = 1;
        send_sure(&w->side[0], 100);
        write_sure(&w->side[0], memory, 0, 50, 30, 0);
        send_sure(&w->side[0], 1500);
        write_sure(&w->side[0], memory, 100, 2000, 30, 0);
        side_output(&w->side[0]);
        for (i = 0; i < w->flying_count && count < 32; i++) {
            whole[count] = buf_copy(w->flying[i].buf, w->flying[i].buf->length);
            number[count++] = w->flying[i].number;
        }
        assert_true(count >= 4);
        for (i = 0; i < count; i++) {
            for (length = CCI_REL_HEADER; length < whole[i]->length; length += n > 1 ? 7 : 1) {
                buf_t *cut = buf_copy(whole[i], length);
                (void)cci_rel_input(&w->side[1].rel, cut->data, length, number[i] + (length << 8), cut, w->now_ns);
                buf_drop(cut);
            }
            buf_drop(whole[i]);
        }
        world_end(w);
    }
}

static uint32_t mutated_traffic(uint64_t seed, int attribute, uint32_t mtu, uint32_t other_size) {
    world_t *w = world_new(seed, attribute, mtu);
    static uint8_t memory[ARENA];
    uint32_t n, mutated;
    w->hostile = 1;
    w->lose = w->repeat = w->reorder = 10;
    for (n = 0; n < 2; n++) {
        w->side[n].other_size = other_size;
        w->side[n].refuse_keep = 10;
        w->side[n].rel.timeout_us = 200000;
    }
    for (n = 0; n < 700 && !w->side[0].broken && !w->side[1].broken; n++) {
        side_t *s = &w->side[chance(w, 2)];
        if (chance(w, 3))
            (void)send_message(s, 4 + chance(w, chance(w, 4) ? 200 : 4000));
        else
            (void)send_write(s, memory, chance(w, 1000), 1 + chance(w, chance(w, 2) ? 200 : 20000), chance(w, 2) * 40,
                             chance(w, 3) == 0);
        run_for(w, chance(w, 500) * US);
    }
    for (n = 0; n < 2; n++) {
        cci_rel_abort(&w->side[n].rel, CCI_ERR_DISCONNECTED);
        return_runs(&w->side[n], 0);
        assert_pools_full(&w->side[n], BLOCKS, BULKS, RECORDS, PARTS);
    }
    mutated = w->mutated;
    world_end(w);
    return mutated;
}

static void test_two_hundred_thousand_mutated_packets_do_no_harm(void **state) {
    uint32_t mutated = 0, seed;
    (void)state;
    for (seed = 0; mutated < 200000; seed++) {
        assert_true(seed < 100000);
        mutated += mutated_traffic(2000 + seed, attributes[seed % 2], mtus[seed / 2 % 4], 0);
    }
}

static void test_mutated_packets_with_frames_of_another_layer_do_no_harm(void **state) {
    static uint32_t mutated, seed;
    (void)state;
    for (; mutated < 20000; seed++)
        WITHIN_SECONDS(5, mutated += mutated_traffic(700000 + seed, attributes[seed % 2], 600, 24), "hangs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_of_all_sizes_arrive_once_on_a_good_network),
        cmocka_unit_test(test_messages_of_all_sizes_arrive_once_on_a_bad_network),
        cmocka_unit_test(test_messages_that_are_refused_at_random_arrive_once),
        cmocka_unit_test(test_a_completion_comes_only_after_the_delivery),
        cmocka_unit_test(test_a_lent_message_travels_from_where_it_is),
        cmocka_unit_test(test_a_long_message_lies_as_the_packets_it_leaves_in),
        cmocka_unit_test(test_messages_join_what_waits_to_leave_and_nothing_else),
        cmocka_unit_test(test_a_batch_of_long_messages_stops_where_the_receiver_was_not_ready),
        cmocka_unit_test(test_an_unreliable_message_is_delivered_as_it_comes),
        cmocka_unit_test(test_long_unreliable_messages_go_on_arriving_when_packets_are_lost),
        cmocka_unit_test(test_writes_place_exact_bytes_and_nothing_outside),
        cmocka_unit_test(test_a_message_comes_after_the_data_it_follows),
        cmocka_unit_test(test_a_fenced_write_does_not_overtake_the_one_before),
        cmocka_unit_test(test_an_operation_of_another_layer_keeps_its_place),
        cmocka_unit_test(test_a_connection_whose_messages_wait_for_a_read_is_not_parked),
        cmocka_unit_test(test_half_a_run_behind_a_read_completes_before_its_answer),
        cmocka_unit_test(test_unordered_half_a_run_behind_a_read_completes_before_its_answer),
        cmocka_unit_test(test_an_answer_that_was_parked_still_acknowledges),
        cmocka_unit_test(test_a_refused_small_write_fails_with_its_message_alone),
        cmocka_unit_test(test_a_refused_long_write_fails_with_its_message_alone),
        cmocka_unit_test(test_a_refused_small_write_fails_with_its_long_message),
        cmocka_unit_test(test_refused_writes_among_others_never_deliver_their_message),
        cmocka_unit_test(test_a_write_from_memory_that_is_gone_fails),
        cmocka_unit_test(test_a_write_that_was_refused_once_for_want_of_buffers_goes_on_at_full_speed),
        cmocka_unit_test(test_what_a_receiver_without_buffers_needs_next_is_sent_next),
        cmocka_unit_test(test_what_is_due_goes_before_what_was_lost_earlier),
        cmocka_unit_test(test_writes_go_on_while_the_messages_behind_them_are_refused),
        cmocka_unit_test(test_a_write_is_not_starved_by_messages_that_are_refused),
        cmocka_unit_test(test_a_refused_message_is_not_starved_by_writes),
        cmocka_unit_test(test_a_refused_message_tries_at_its_own_pace_beside_writes),
        cmocka_unit_test(test_silence_breaks_the_connection_at_the_timeout),
        cmocka_unit_test(test_an_operation_of_another_layer_behind_refused_messages_ends_at_its_own_timeout),
        cmocka_unit_test(test_an_operation_of_another_layer_behind_refused_messages_is_told_when_it_is_done),
        cmocka_unit_test(test_a_message_behind_a_withdrawal_is_not_told_when_a_later_one_is_given_up),
        cmocka_unit_test(test_a_write_behind_a_withdrawal_is_told_when_it_is_done),
        cmocka_unit_test(test_half_a_run_behind_a_read_waits_for_it_when_the_other_half_is_refused),
        cmocka_unit_test(test_a_write_that_is_lost_while_messages_are_refused_is_repeated),
        cmocka_unit_test(test_a_short_write_that_is_refused_leaves_the_way_to_what_is_due),
        cmocka_unit_test(test_a_timeout_sends_something_though_the_window_is_full),
        cmocka_unit_test(test_a_message_behind_a_withdrawal_completes_before_its_answer),
        cmocka_unit_test(test_a_withdrawal_that_nobody_hears_ends_at_the_timeout),
        cmocka_unit_test(test_a_receiver_that_stays_not_ready_ends_the_message_and_not_the_connection),
        cmocka_unit_test(test_a_receiver_that_vanishes_while_it_is_not_ready_breaks_the_connection),
        cmocka_unit_test(test_what_ends_with_rnr_was_not_delivered_whatever_is_lost_or_late),
        cmocka_unit_test(test_a_late_copy_of_what_was_refused_brings_nothing),
        cmocka_unit_test(test_a_last_try_whose_answer_is_lost_is_no_refusal),
        cmocka_unit_test(test_traffic_goes_on_after_a_cut),
        cmocka_unit_test(test_a_longer_path_is_found_by_probes),
        cmocka_unit_test(test_a_path_that_becomes_shorter_loses_nothing),
        cmocka_unit_test(test_a_path_that_becomes_shorter_loses_nothing_when_the_share_of_records_is_used_up),
        cmocka_unit_test(test_a_path_that_becomes_shorter_loses_nothing_without_memory_for_records),
        cmocka_unit_test(test_a_shorter_path_is_noticed_beside_small_messages),
        cmocka_unit_test(test_a_message_that_comes_whole_and_in_pieces_leaves_nothing_behind),
        cmocka_unit_test(test_a_run_of_which_a_message_has_come_alone_is_taken_without_it),
        cmocka_unit_test(test_traffic_goes_on_after_pauses),
        cmocka_unit_test(test_a_pause_does_not_lose_a_message_that_is_overtaken),
        cmocka_unit_test(test_a_late_repetition_after_a_pause_is_not_answered_for_ever),
        cmocka_unit_test(test_a_pool_without_blocks_says_so_and_recovers),
        cmocka_unit_test(test_an_ack_names_the_end_of_a_long_range),
        cmocka_unit_test(test_an_ack_goes_down_to_what_came_out_of_order),
        cmocka_unit_test(test_a_packet_that_was_only_late_gives_the_window_back),
        cmocka_unit_test(test_a_packet_that_was_lost_does_not),
        cmocka_unit_test(test_the_window_stays_where_one_packet_was_late_and_another_lost),
        cmocka_unit_test(test_the_reordering_window_grows_with_need_and_shrinks_without),
        cmocka_unit_test(test_a_round_trip_longer_than_the_time_outs_is_learnt),
        cmocka_unit_test(test_a_pause_of_a_program_is_no_round_trip),
        cmocka_unit_test(test_an_acknowledgement_that_waited_for_long_is_no_round_trip),
        cmocka_unit_test(test_a_pool_without_records_recovers_after_a_cut),
        cmocka_unit_test(test_early_messages_leave_a_part_to_the_one_that_is_due),
        cmocka_unit_test(test_few_parts_delay_writes_and_lose_none),
        cmocka_unit_test(test_a_message_of_which_a_piece_has_a_buffer_needs_no_other),
        cmocka_unit_test(test_an_acknowledgement_of_what_was_never_sent_is_malformed),
        cmocka_unit_test(test_frames_behind_those_of_another_layer_are_checked_too),
        cmocka_unit_test(test_an_unknown_frame_behind_one_of_another_layer_ends_the_packet),
        cmocka_unit_test(test_a_path_that_leaves_codepoints_alone_keeps_ecn_and_costs_few_reports),
        cmocka_unit_test(test_a_mark_cuts_the_window_once_for_each_round_trip_and_repeats_nothing),
        cmocka_unit_test(test_a_path_or_a_peer_that_does_not_do_its_part_ends_ecn_until_the_peer_moves),
        cmocka_unit_test(test_without_a_link_or_a_control_that_knows_ecn_packets_have_no_codepoint),
        cmocka_unit_test(test_counts_outlive_a_pause_of_either_side),
        cmocka_unit_test(test_lying_counts_change_nothing_but_the_rate),
        cmocka_unit_test(test_a_packet_of_too_many_pieces_is_malformed),
        cmocka_unit_test(test_a_packet_refuses_four_operations_at_most),
        cmocka_unit_test(test_huge_jumps_of_numbers_do_no_harm),
        cmocka_unit_test(test_late_packets_are_acknowledged_once_where_there_is_no_memory_for_their_numbers),
        cmocka_unit_test(test_withdrawals_beyond_what_can_be_remembered_are_refused_until_a_gap_closes),
        cmocka_unit_test(test_random_frames_do_no_harm),
        cmocka_unit_test(test_truncated_packets_do_no_harm),
        cmocka_unit_test(test_two_hundred_thousand_mutated_packets_do_no_harm),
        cmocka_unit_test(test_mutated_packets_with_frames_of_another_layer_do_no_harm),
        cmocka_unit_test(test_a_limit_below_what_is_in_use_is_no_room), /* last: it crashed once */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
