/* SPDX-License-Identifier: MIT OR Unlicense
 * prove_wire.c - proofs for CBMC: packet headers, requests for a connection, and the frames of remote reads (prove.sh).
 *
 * A packet or frame is an object of exactly its length, of any content; whatever is read outside it is a failure.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define CCI_CONN_IMPLEMENTATION
#define CCI_RMA_IMPLEMENTATION
#define CCI_ASSERT(x) __CPROVER_assert(x, "assertion of the library: " #x)
#include "cci.h"

#define PACKET_MAX 1500u

uint32_t nondet_u32(void);
uint64_t nondet_u64(void);
int nondet_int(void);

static uint8_t *new_bytes(uint32_t length) {
    uint8_t *bytes = (uint8_t *)malloc(length);
    __CPROVER_assume(bytes != NULL);
    return bytes;
}

void prove_header(void) {
    uint32_t length = nondet_u32();
    cci_conn_header_t header;
    uint8_t *bytes;
    __CPROVER_assume(length <= PACKET_MAX);
    bytes = new_bytes(length);
    if (!cci_conn_parse(bytes, length, &header))
        return;
    __CPROVER_assert(length >= CCI__HEADER_SIZE, "a header is there");
    __CPROVER_assert(cci_conn_cookie_in(&header) == cci__load64(bytes + 16), "a cookie is where a request has it");
}

/* The endpoint opens what is encrypted behind these 40 bytes, and then reads a secret there. */
void prove_accept(void) {
    uint32_t length = nondet_u32();
    uint8_t *bytes;
    cci_conn_accept_t accept;
    __CPROVER_assume(length <= PACKET_MAX);
    bytes = new_bytes(length);
    if (!cci_conn_parse_accept(bytes, length, &accept))
        return;
    __CPROVER_assert(!(bytes[3] & CCI__HEADER_SEALED) ||
                         __CPROVER_r_ok(bytes + CCI__ACCEPT_SIZE, CCI__SECRET_SIZE), "a sealed one has a secret");
    __CPROVER_assert(accept.max_send_size > 0, "something can be sent");
}

/* What dgram relies on when it collects the pieces of a request: at most 32 of them, inside 1,024 bytes. */
void prove_request(void) {
    uint32_t length = nondet_u32();
    uint8_t *bytes;
    cci_conn_request_t request;
    __CPROVER_assume(length <= PACKET_MAX);
    bytes = new_bytes(length);
    if (!cci_conn_parse_request(bytes, length, &request))
        return;
    __CPROVER_assert(request.length == 0 || __CPROVER_r_ok(request.data, request.length), "its data is in the packet");
    __CPROVER_assert(request.data_len <= CCI_CONN_REQ_LEN, "not too long");
    __CPROVER_assert(request.length <= request.data_len && request.offset <= request.data_len - request.length,
                     "a piece is inside the whole");
    __CPROVER_assert((request.offset == 0 && request.length == request.data_len) ||
                         (request.unit >= 32 && request.offset / request.unit < 32),
                     "a piece has a bit");
}

static cci_rma_table_t table;
static cci_rma_reader_t reader;
static cci_rma_region_t regions[2];
static cci_rma_request_t request;

static void new_table(void) {
    uint32_t i;
    __CPROVER_havoc_object(&table);
    __CPROVER_havoc_object(&reader);
    __CPROVER_havoc_object(regions);
    for (i = 0; i < 2; i++) { /* of any length, or free */
        __CPROVER_assume(regions[i].length <= 1 << 20 && (regions[i].key != 0 || regions[i].length == 0));
        regions[i].start = new_bytes((uint32_t)regions[i].length);
    }
    table.regions = regions;
    table.region_count = 2;
    cci__list_init(&table.requests);
    cci__list_init(&reader.requests);
}

/* A peer wants to read. */
void prove_read(void) {
    uint32_t length = nondet_u32(), size;
    uint8_t *frame;
    __CPROVER_assume(length > 0 && length <= PACKET_MAX);
    frame = new_bytes(length);
    new_table();
    table.request_free = 0;
    if (nondet_int()) {
        cci__list_append(&table.requests, &request.node);
        table.request_free = 1;
    }
    __CPROVER_assume(frame[0] == CCI__FRAME_READ);
    size = cci_rma_input(&table, &reader, frame, length, nondet_u64());
    __CPROVER_assert(size <= length, "it takes no more than there is");
    if (!cci__list_empty(&reader.requests) && request.length > 0) { /* else it is refused in its turn */
        const cci_rma_region_t *region = &regions[request.region < 2 ? request.region : 0];
        __CPROVER_assert(request.region < 2 && (region->flags & CCI_FLAG_READ) && request.key == region->key,
                         "of a region that may be read");
        __CPROVER_assert(request.length <= region->length && request.offset <= region->length - request.length,
                         "inside the region");
        __CPROVER_assert(request.segment >= 64 && (request.length - 1) / request.segment <= 63, "in 64 segments");
    }
}

static cci_rma_read_t one_read;
static cci_rma_chunk_t chunk;
static uint64_t region_length;
static uint8_t *region_start;

/* stands for cci_rma_address(): a region that has been deregistered, or one of just its length */
uint8_t *prove_given_address(cci_rma_table_t *of, uint64_t key, uint32_t region, uint64_t offset, uint64_t length,
                             uint32_t flags) {
    (void)of, (void)key, (void)region, (void)flags;
    if (nondet_int() || length > region_length || offset > region_length - length)
        return NULL;
    return region_start + offset;
}
/* stand for what follows when a chunk has all it waits for: numbers and lists, no bytes */
void prove_given_freed(cci_rma_table_t *of, cci_rma_reader_t *to, cci_rma_chunk_t *some) {
    (void)of, (void)to, (void)some;
}
void prove_given_again(cci_rma_reader_t *to, cci_rma_chunk_t *some) {
    (void)to, (void)some;
}
void prove_given_finish(cci_rma_reader_t *to, cci_rma_read_t *read, int status) {
    (void)to, (void)read, (void)status;
}
/* stands for what an arrival means to congestion control and to what was asked for before: it sees numbers and lists, no bytes */
void prove_given_arrived(cci_rma_table_t *of, cci_rma_reader_t *to, cci_rma_chunk_t *some, uint32_t bytes, int was_asked,
                         uint64_t now_ns) {
    (void)of, (void)to, (void)some, (void)bytes, (void)was_asked, (void)now_ns;
}
void prove_given_fail(cci_rma_table_t *of, cci_rma_reader_t *to, cci_rma_read_t *read, int status) {
    (void)of, (void)to, (void)read, (void)status;
}

/* What was asked for comes, or a refusal. */
void prove_data(void) {
    uint32_t length = nondet_u32(), size, count;
    uint8_t *frame;
    __CPROVER_assume(length > 0 && length <= PACKET_MAX);
    frame = new_bytes(length);
    new_table();
    __CPROVER_havoc_object(&one_read);
    __CPROVER_havoc_object(&chunk);
    table.chunk_array = &chunk;
    table.chunk_count = table.chunk_made = table.chunk_first = 1;
    chunk.read = nondet_int() ? &one_read : NULL;
    one_read.reader = &reader;
    __CPROVER_assume(chunk.segment >= 64 && chunk.segment <= 0xfff8 && chunk.length > 0 &&
                     chunk.length <= CCI__RMA_CHUNK && (chunk.length - 1) / chunk.segment <= 63);
    count = (chunk.length - 1) / chunk.segment + 1;
    __CPROVER_assume(count == 64 || chunk.missing >> count == 0);
    __CPROVER_assume((chunk.asked & ~chunk.missing) == 0);
    region_length = nondet_u64();
    __CPROVER_assume(region_length > 0 && region_length <= 1 << 20);
    region_start = new_bytes((uint32_t)region_length);
    __CPROVER_assume(frame[0] == CCI__FRAME_DATA || frame[0] == CCI__FRAME_DENIED);
    size = cci_rma_input(&table, &reader, frame, length, nondet_u64());
    __CPROVER_assert(size <= length, "it takes no more than there is");
}
