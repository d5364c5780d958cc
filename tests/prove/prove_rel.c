/* prove_rel.c - what the proofs of the reliability protocol assume and claim.
 * SPDX-License-Identifier: MIT OR Unlicense */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#define CCI__LOOP(name) CCI__LOOP_##name
#define CCI__LOOP_scan \
    __CPROVER_assigns(at, size, *run, ghost) \
    __CPROVER_loop_invariant(at >= CCI_REL_HEADER && at <= length) \
    __CPROVER_loop_invariant(run->count == 0 || (run->begin >= CCI_REL_HEADER && run->end <= at && run->end - run->begin >= 8 * (uint64_t)run->count && run->begin < run->end)) \
    __CPROVER_loop_invariant(run->count <= 1500 / 8) \
    __CPROVER_loop_invariant(run->count == 0 || run->begin != ghost.witness || ghost.seen) \
    __CPROVER_loop_invariant(!ghost.seen || (run->count > 0 && ghost.next <= run->end && ghost.rank < run->count && ghost.witness >= run->begin && ghost.next >= ghost.witness + 8 && ghost.sound)) \
    __CPROVER_loop_invariant(!ghost.seen || ghost.followed || (ghost.next == run->end && ghost.rank + 1 == run->count)) \
    __CPROVER_loop_invariant(!ghost.followed || (ghost.seen && ghost.next < run->end && ghost.rank + 1 < run->count)) \
    __CPROVER_decreases(length - at)
#define CCI__LOOP_input __CPROVER_assigns(at, size, frames, checked, checked_length) \
    __CPROVER_loop_invariant(at >= CCI_REL_HEADER && at <= length) \
    __CPROVER_decreases(length - at)
#define CCI__LOOP_place_run __CPROVER_assigns(count, frame, skip, given_left) \
    __CPROVER_loop_invariant(__CPROVER_same_object(frame, packet)) \
    __CPROVER_loop_invariant(count == given_left && count > 0 && __CPROVER_POINTER_OFFSET(frame) >= CCI_REL_HEADER && (uint64_t)__CPROVER_POINTER_OFFSET(frame) + 8 * (uint64_t)count <= given_end) \
    __CPROVER_decreases(count)
#define CCI__LOOP_ranges_test /* the set of ranges is proven on its own */
#define CCI__LOOP_ranges_fit
#define CCI__LOOP_ranges_end
#define CCI__LOOP_ranges_begin
#define SET_MAX CCI__REL_SEQUENCES /* the largest set of ranges, as in prove_base.c */
static struct { uint32_t witness, next, rank; int seen, followed, sound; } ghost;
static uint32_t given_left, given_end;
static uint8_t *packet;
static uint32_t packet_length;
static const uint8_t *checked; /* the frame that was found sound, of so many bytes up to the end */
static uint32_t checked_length;
void *prove_memmove(void *to, const void *from, size_t size);
#define memmove prove_memmove
#define CCI_REL_IMPLEMENTATION
#define CCI_ASSERT(x) __CPROVER_assert(x, "assertion of the library: " #x)
#include "cci.h"

uint32_t nondet_u32(void);
int nondet_int(void);
uint64_t nondet_u64(void);
static cci__rel_span_t span;
static int same_in_run(const uint8_t *frame) {
    return frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP ||
           (frame[0] == CCI__FRAME_BULK && cci__load64(frame + 40) == cci__load16(frame + 2));
}
/* stands for cci__rel_in_run() */
int prove_in_run(const uint8_t *frame) {
    int yes = same_in_run(frame);
    uint32_t at = (uint32_t)(frame - packet);
    if (!yes || (span.count > 0 && (cci__load32(frame + 4) != span.next || span.end != at)))
        return yes;
    if (ghost.seen && at == ghost.next) {
        ghost.followed = 1;
        __CPROVER_assert(span.count == ghost.rank + 1, "the next one of the chain");
    }
    if (at == ghost.witness) {
        uint32_t size = cci_rel_frame_size(frame);
        ghost.seen = 1;
        ghost.rank = span.count;
        ghost.next = at + cci__min32(size, packet_length - at);
        ghost.sound = (frame[0] == CCI__FRAME_BULK ? 48u : 8u) + cci__load16(frame + 2) <= ghost.next - at;
    }
    return yes;
}
static void new_packet(void) {
    packet_length = nondet_u32();
    __CPROVER_assume(packet_length >= CCI_REL_HEADER && packet_length <= 1500);
    packet = malloc(packet_length);
    __CPROVER_assume(packet);
}
void prove_check(void) {
    uint32_t length = nondet_u32(), size, size_for;
    uint8_t *frame;
    __CPROVER_assume(length > 0 && length <= 1500);
    frame = malloc(length);
    __CPROVER_assume(frame);
    size = cci__rel_check(frame, length);
    size_for = cci__rel_check_for(frame, length, nondet_u32());
    __CPROVER_assert(size_for == 0 || (size_for == size && size <= length), "a frame of the connection is a frame");
    if (size > 0 && size <= length) {
        uint32_t data = length >= 8 ? cci__load16(frame + 2) : 0;
        __CPROVER_assert(size >= 8 || frame[0] >= CCI__FRAME_OTHER || frame[0] == CCI__FRAME_PAD, "eight bytes are there");
        __CPROVER_assert(size >= 16 || frame[0] != CCI__FRAME_VOID, "a VOID is there");
        if (frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP)
            __CPROVER_assert(data <= size - 8, "a message is whole");
        if (frame[0] == CCI__FRAME_BULK) {
            __CPROVER_assert(size >= 48 && data <= size - 48, "a segment is whole");
            __CPROVER_assert(cci__load64(frame + 32) + data <= cci__load64(frame + 40), "inside its write");
        }
        if (frame[0] == CCI__FRAME_FRAGMENT)
            __CPROVER_assert(size >= 16 && data <= size - 16 && (uint64_t)cci__load32(frame + 8) + data <= cci__load32(frame + 12), "a fragment is whole");
        __CPROVER_assert(cci__rel_in_run(frame) == same_in_run(frame), "the stand-in says the same");
    }
}
void prove_scan(void) {
    uint32_t message_max = nondet_u32();
    new_packet();
    ghost.witness = nondet_u32();
    ghost.seen = ghost.followed = ghost.sound = 0;
    if (!cci__rel_scan(packet, packet_length, message_max, &span) || span.count == 0)
        return;
    __CPROVER_assert(span.begin >= CCI_REL_HEADER && span.end <= packet_length && span.begin < span.end, "inside");
    __CPROVER_assert(ghost.witness != span.begin || (ghost.seen && (ghost.rank <= span.count)), "starts at begin");
    if (ghost.seen) {
        __CPROVER_assert(ghost.sound, "every frame is whole");
        __CPROVER_assert(ghost.next == span.end ? ghost.rank + 1 == span.count : ghost.followed, "every frame but the last is followed by one");
    }
}

/* stands for cci_rel_frame_size(): at a frame of the chain */
uint32_t prove_frame_size(const uint8_t *frame) {
    uint32_t at = (uint32_t)(frame - packet), size, head;
    __CPROVER_assert(given_left > 0 && __CPROVER_r_ok(frame, 8), "a frame is there");
    head = frame[0] == CCI__FRAME_BULK ? 48u : 8u;
    __CPROVER_assume(head + cci__load16(frame + 2) <= given_end - at); /* sound */
    size = head + cci__pad8(cci__load16(frame + 2));
    given_left--;
    __CPROVER_assume(given_left > 0 ? size + 8 * (uint64_t)given_left <= given_end - at /* as many follow, of 8 bytes or more */
                                    : cci__min32(size, packet_length - at) == given_end - at);
    return size;
}
/* stands for cci__rel_place_frame(), which prove_place_frame() covers for a sound frame */
int prove_take_frame(cci_rel_t *rel, const uint8_t *frame, int check_only) {
    (void)rel;
    (void)check_only;
    __CPROVER_assert(given_left > 0 && __CPROVER_r_ok(frame, 8), "a frame is there");
    return nondet_int();
}
void prove_place_run(void) {
    uint32_t begin = nondet_u32();
    uint64_t skip = nondet_u64();
    cci_rel_t rel;
    new_packet();
    given_end = nondet_u32();
    given_left = nondet_u32();
    __CPROVER_assume(begin >= CCI_REL_HEADER && begin < given_end && given_end <= packet_length && given_left > 0 &&
                     given_left <= 1500 / 8 && begin + 8 * given_left <= given_end);
    (void)cci__rel_place_run(&rel, packet + begin, given_left, skip, nondet_int());
}
/* ACK */
void prove_ack(void) {
    uint32_t length = nondet_u32(), count, i;
    uint64_t next_number = nondet_u64();
    uint8_t *frame;
    cci_range_t range[CCI__REL_ACK_MORE + 1];
    __CPROVER_assume(length > 0 && length <= 1500);
    frame = malloc(length);
    __CPROVER_assume(frame);
    __CPROVER_assume(frame[0] == CCI__FRAME_ACK && cci__rel_check(frame, length) != 0);
    __CPROVER_assume(cci__rel_check(frame, length) <= length);
    __CPROVER_assume(next_number < UINT64_MAX / 2);
    count = cci__rel_parse_ack(frame, length, next_number, range);
    __CPROVER_assert(count <= CCI__REL_ACK_MORE + 1, "no more ranges than there is room for");
    for (i = 0; i < CCI__REL_ACK_MORE + 1; i++) {
        if (i < count)
            __CPROVER_assert(range[i].lo < range[i].hi && range[i].hi <= next_number, "numbers that were sent");
        if (i + 1 < count)
            __CPROVER_assert(range[i + 1].hi < range[i].lo, "descending, with gaps");
    }
}

void *prove_memmove(void *to, const void *from, size_t size) {
    __CPROVER_assert(size == 0 || __CPROVER_r_ok(from, size), "what moves is there");
    __CPROVER_assert(size == 0 || __CPROVER_w_ok(to, size), "where it goes is room");
    return to;
}
/* stand-ins for the range set */
int prove_given_test(const cci_range_t *set, uint32_t count, uint64_t lo, uint64_t hi) {
    (void)lo; (void)hi;
    __CPROVER_assert(count <= SET_MAX && __CPROVER_r_ok(set, count * sizeof *set), "a set of ranges");
    return nondet_int();
}
int prove_given_fit(const cci_range_t *set, uint32_t count, uint32_t capacity, uint64_t lo, uint64_t hi) {
    (void)lo; (void)hi;
    __CPROVER_assert(count <= capacity && capacity <= SET_MAX && __CPROVER_r_ok(set, capacity * sizeof *set), "a set of ranges");
    return nondet_int();
}
int prove_given_add(cci_range_t *set, uint32_t *count, uint32_t capacity, uint64_t lo, uint64_t hi) {
    __CPROVER_assert(*count <= capacity && capacity <= SET_MAX && __CPROVER_w_ok(set, capacity * sizeof *set), "a set of ranges");
    __CPROVER_assert(lo < hi, "a range");
    if (*count == capacity && nondet_int())
        return CCI__RANGE_FULL;
    *count = nondet_u32();
    __CPROVER_assume(*count > 0 && *count <= capacity);
    return CCI__RANGE_NEW;
}

/* ---- the sink and other surroundings ---- */
static int sink_place(void *user, const cci_rel_bulk_t *target, uint64_t offset, const uint8_t *data, uint32_t length) {
    (void)user;
    __CPROVER_assert(offset <= target->length && length <= target->length - offset, "inside the write");
    __CPROVER_assert(!data || __CPROVER_r_ok(data, length), "the bytes to place are there");
    return nondet_int();
}
static uint32_t assembled_size;
static uint8_t *sink_assemble(void *user, uint32_t size, int in_order, void **buffer) {
    (void)user;
    (void)in_order;
    assembled_size = size;
    *buffer = nondet_int() ? malloc(1) : NULL;
    if (size > 65536 || !*buffer)
        return NULL;
    return malloc(CCI_REL_HEADER + size);
}
static uint32_t sink_frame(void *user, const uint8_t *frame, uint32_t length, uint64_t now_ns) {
    (void)user;
    (void)now_ns;
    __CPROVER_assert(length > 0 && __CPROVER_r_ok(frame, length), "the rest of the packet is there");
    return nondet_u32();
}
static const cci_rel_callbacks_t prove_sink = {NULL, NULL, sink_assemble, NULL, sink_place, NULL, NULL, NULL, sink_frame, NULL};
static cci_rel_pool_t pool;
static cci_rel_t rel;
static cci_range_t rel_numbers[CCI__REL_RANGES], rel_sequences[CCI__REL_SEQUENCES + CCI__REL_UNTOLD];
static cci_rel_numbers_t more_numbers;
static cci_rel_gaps_t more_gaps[2];
static void new_rel(void) {
    __CPROVER_havoc_object(&rel);
    __CPROVER_havoc_object(&pool);
    pool.callbacks = &prove_sink;
    rel.pool = &pool;
    pool.more = NULL;
    pool.note = NULL;
    cci__list_init(&pool.numbers);
    cci__list_init(&pool.gaps);
    if (nondet_int())
        cci__list_append(&pool.numbers, &more_numbers.node);
    if (nondet_int())
        cci__list_append(&pool.gaps, &more_gaps[0].node);
    if (nondet_int())
        cci__list_append(&pool.gaps, &more_gaps[1].node);
    __CPROVER_havoc_object(rel_numbers);
    __CPROVER_havoc_object(rel_sequences);
    rel.numbers = rel_numbers;
    rel.sequences = rel_sequences;
    rel.number_capacity = nondet_int() ? CCI__REL_FEW_NUMBERS : CCI__REL_RANGES;
    rel.sequence_capacity = nondet_int() ? 0 : CCI__REL_SEQUENCES;
    __CPROVER_assume(rel.number_count <= rel.number_capacity && rel.sequence_count <= rel.sequence_capacity);
    __CPROVER_assume(rel.nack_count <= sizeof rel.nacks / sizeof rel.nacks[0]);
}
/* stand-ins for what cci_rel_input() calls; each asserts what its own proof assumes */
int prove_given_scan(const uint8_t *bytes, uint32_t length, uint32_t message_max, cci__rel_span_t *run) {
    (void)message_max;
    __CPROVER_assert(length <= 1500 && __CPROVER_r_ok(bytes, length), "the packet is there");
    run->begin = nondet_u32();
    run->end = nondet_u32();
    run->count = nondet_u32();
    run->has_bulk = nondet_int();
    __CPROVER_assume(run->count == 0 || (run->begin >= CCI_REL_HEADER && run->begin < run->end && run->end <= length &&
                                         run->count <= (run->end - run->begin) / 8));
    return nondet_int();
}
/* stands for cci__rel_check_for(), of which prove_check() shows this; remembers the frame that is sound */
uint32_t prove_given_check(const uint8_t *frame, uint32_t length, uint32_t message_max) {
    uint32_t size = nondet_u32();
    (void)message_max;
    __CPROVER_assert(length > 0 && length <= 1500 && __CPROVER_r_ok(frame, length), "the rest of the packet is there");
    __CPROVER_assume(size <= length);
    __CPROVER_assume(size == 0 || size >= 8 || frame[0] >= CCI__FRAME_OTHER || frame[0] == CCI__FRAME_PAD);
    checked = size > 0 ? frame : NULL;
    checked_length = length;
    return size;
}
int prove_given_ack(cci_rel_t *r, const uint8_t *frame, uint32_t length, uint64_t now_ns) {
    (void)r; (void)now_ns;
    __CPROVER_assert(frame == checked && length == checked_length && frame[0] == CCI__FRAME_ACK, "a sound ACK");
    return nondet_int();
}
int prove_given_bulk(cci_rel_t *r, const uint8_t *frame) {
    (void)r;
    __CPROVER_assert(frame == checked && frame[0] == CCI__FRAME_BULK, "a sound segment");
    return nondet_int();
}
int prove_given_fragment(cci_rel_t *r, const uint8_t *frame, uint64_t now_ns) {
    (void)r; (void)now_ns;
    __CPROVER_assert(frame == checked && frame[0] == CCI__FRAME_FRAGMENT, "a sound fragment");
    return nondet_int();
}
/* it reads the first 16 bytes and no others */
int prove_given_void(cci_rel_t *r, const uint8_t *frame) {
    (void)r;
    __CPROVER_assert(frame == checked && frame[0] == CCI__FRAME_VOID, "a sound VOID");
    return nondet_int();
}
int prove_given_run(cci_rel_t *r, uint8_t *bytes, uint32_t begin, uint32_t end, uint32_t count, int has_bulk, void *buffer) {
    (void)r; (void)bytes; (void)has_bulk; (void)buffer;
    __CPROVER_assert(begin >= CCI_REL_HEADER && begin < end && end <= packet_length && count > 0 && count <= (end - begin) / 8, "a run");
    return nondet_int();
}
void prove_given_nack(cci_rel_t *r, uint64_t sequence, uint64_t now_ns) { (void)r; (void)sequence; (void)now_ns; }
void prove_given_refusal(cci_rel_t *r, uint64_t sequence, int status) { (void)r; (void)sequence; (void)status; }
void prove_input(void) {
    new_packet();
    new_rel();
    (void)cci_rel_input(&rel, packet, packet_length, nondet_u32(), NULL, nondet_u64());
    __CPROVER_assert(rel.number_count <= CCI__REL_RANGES, "no more ranges than there is room for");
}
static uint8_t *new_frame(uint8_t type) {
    uint32_t length = nondet_u32(), size;
    uint8_t *frame;
    __CPROVER_assume(length > 0 && length <= 1500);
    frame = malloc(length);
    __CPROVER_assume(frame && frame[0] == type);
    size = cci__rel_check(frame, length);
    __CPROVER_assume(size > 0 && size <= length);
    return frame;
}
void prove_place_frame(void) {
    uint8_t *frame = new_frame(CCI__FRAME_BULK);
    new_rel();
    __CPROVER_assume(cci__rel_in_run(frame));
    (void)cci__rel_place_frame(&rel, frame, nondet_int());
    __CPROVER_assert(rel.nack_count <= 4, "no more NACKs than there is room for");
}
/* a part whose memory is as assemble() gave it */
static cci_rel_reassembly_t part;
static cci_range_t part_ranges[CCI__REL_GAPS];
cci_rel_reassembly_t *prove_given_part(cci_rel_t *r, uint64_t first, int make) {
    (void)r; (void)first; (void)make;
    if (nondet_int())
        return NULL;
    __CPROVER_havoc_object(&part);
    __CPROVER_havoc_object(part_ranges);
    part.ranges = part_ranges;
    part.range_capacity = nondet_int() ? CCI__REL_FEW_GAPS : CCI__REL_GAPS;
    __CPROVER_assume(part.range_count <= part.range_capacity);
    part.buffer = NULL;
    part.memory = NULL;
    if (part.total <= 0xffff && nondet_int()) {
        part.buffer = malloc(1);
        part.memory = malloc(CCI_REL_HEADER + 8 + cci__pad8((uint32_t)part.total));
        __CPROVER_assume(part.buffer && part.memory);
    }
    return &part;
}
int prove_given_fill(cci_rel_t *r, cci_rel_reassembly_t *p, uint64_t offset, uint32_t length) {
    (void)r;
    __CPROVER_assert(length > 0 && offset + length <= p->total && offset + length > offset, "inside");
    return nondet_int();
}
void prove_given_unreliable(cci_rel_t *r, uint64_t sequence, uint64_t now_ns) { (void)r; (void)sequence; (void)now_ns; }
void prove_given_free(cci_rel_t *r, cci_rel_reassembly_t *p) { (void)r; (void)p; }
void prove_bulk(void) {
    uint8_t *frame = new_frame(CCI__FRAME_BULK);
    new_rel();
    (void)cci__rel_input_bulk(&rel, frame);
}
void prove_fragment(void) {
    uint8_t *frame = new_frame(CCI__FRAME_FRAGMENT);
    new_rel();
    (void)cci__rel_input_fragment(&rel, frame, nondet_u64());
}
/* One frame of a run is taken off, as the datagram endpoint does it for each message. */
void prove_run_skip(void) {
    cci_rel_run_t *run;
    uint32_t begin = nondet_u32(), head, size;
    uint8_t *frame;
    new_packet();
    given_end = nondet_u32();
    given_left = nondet_u32();
    __CPROVER_assume(begin >= CCI_REL_HEADER + 8 && begin < given_end && given_end <= packet_length && given_left > 0 &&
                     given_left <= 1500 / 8 && begin + 8 * given_left <= given_end);
    frame = packet + begin;
    head = frame[0] == CCI__FRAME_BULK ? 48u : 8u;
    __CPROVER_assume(frame[0] == CCI__FRAME_BULK || frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP);
    __CPROVER_assume(head + cci__load16(frame + 2) <= given_end - begin);
    size = cci__min32(head + cci__pad8(cci__load16(frame + 2)), packet_length - begin);
    __CPROVER_assume(given_left > 1 ? size + 8 * (given_left - 1) <= given_end - begin : size == given_end - begin);
    run = (cci_rel_run_t *)(void *)packet;
    run->begin = (uint16_t)begin;
    run->end = (uint16_t)given_end;
    run->count = given_left;
    cci_rel_run_skip(run);
    __CPROVER_assert(run->begin == begin + size && run->count == given_left - 1, "one frame less");
}
