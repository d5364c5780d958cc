/* soak_model.h - what the soak test knows of every endpoint, connection, message and memory, and what it holds the library to.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The model is kept beside the library: each message has a record at its sender, each RMA a claim on the bytes that it will
 * change, and each number that atomics change has the values that it may have. Everything that the library reports is
 * compared with it at once, and with the other side's state, which lies in the same process. Its names: a node is an endpoint that may be destroyed and made again; a conn is a connection with
 * two sides, 0 the client's and 1 the server's.
 */
#ifndef CCI_SOAK_MODEL_H
#define CCI_SOAK_MODEL_H

#include "tests/soak/soak_net.h"

#include <stdarg.h>
#include <unistd.h>

#define NONE 0xffffffffu
#define REGION_SIZE (192u << 10)
#define GUARD_SIZE 4096u
#define MAX_REGIONS 4096u
#define CELL_COUNT 24u /* numbers for atomics, at the beginning of a region of theirs */
#define REQUEST_MAGIC 0x50414b53u

/* ---- oracles ------------------------------------------------------------------------------------------------------ */

typedef enum oracle {
    ORACLE_ONCE, ORACLE_ORDER, ORACLE_CONTENT, ORACLE_LOST, ORACLE_EARLY, ORACLE_STATUS, ORACLE_OVERDUE, ORACLE_MEMORY,
    ORACLE_FENCE, ORACLE_HANDSHAKE, ORACLE_LEAK, ORACLE_WORK, ORACLE_LIVENESS, ORACLE_CALL,
    ORACLE_NONCE, ORACLE_FORK, ORACLE_ATOMIC, ORACLE_STATISTICS, ORACLE_COUNT
} oracle_t;

static const char *const oracle_names[ORACLE_COUNT] = {
    "once", "order", "content", "lost", "early", "status", "overdue", "memory",
    "fence", "handshake", "leak", "work", "liveness", "call", "nonce", "fork", "atomic", "statistics"};

static int is_quiet; /* while a schedule is being reduced */
static uint32_t current_step;

/* The end of a run: the driver, in another process, sees by the exit status which oracle spoke. */
static void __attribute__((format(printf, 2, 3), noreturn)) soak_fail(oracle_t oracle, const char *format, ...) {
    va_list arguments;
    if (!is_quiet) {
        printf("FAIL: oracle %s at step %lu, %.6f s: ", oracle_names[oracle], (unsigned long)current_step,
               (double)sim.now_ns / 1e9);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
        fflush(stdout);
    }
    if (net.pcap != NULL) {
        fclose(net.pcap);
    }
    _exit(64 + (int)oracle);
}

#define REQUIRE(oracle, condition, ...)                                                                               \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            soak_fail(oracle, __VA_ARGS__);                                                                           \
        }                                                                                                             \
    } while (0)

/* ---- what there is -------------------------------------------------------------------------------------------------- */

#define PUSH(array, count, capacity, type)                                                                            \
    ((count) == (capacity) ? ((capacity) = (capacity) == 0 ? 64 : (capacity)*2,                                        \
                              (array) = (type *)soak_more((void *)(array), (capacity) * sizeof(type)))                 \
                           : (array),                                                                                  \
     memset((void *)&(array)[count], 0, sizeof(type)), &(array)[(count)++])

static void *soak_more(void *memory, size_t size) {
    memory = realloc(memory, size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

typedef struct message {
    uint32_t length, op;
    uint32_t heard; /* how many messages of the peer's its program had got when it was issued */
    uint32_t place; /* among those that the other side's program has got, from 1 */
    uint8_t delivered; /* the program at the other side has got it */
    uint8_t arrived;   /* it was there, and the other side left without having taken it */
    uint8_t failed, done;
} message_t;

/* What the library should have counted of a side. */
typedef struct tally {
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received, writes, write_bytes, reads, read_bytes;
    /* of those, what belongs to lists that have not succeeded: only the parts count that have begun, and the last has the message */
    uint64_t list_messages, list_message_bytes, list_write_bytes, list_read_bytes;
} tally_t;

typedef enum side_state { SIDE_NONE, SIDE_OPEN, SIDE_CLOSED, SIDE_GONE } side_state_t; /* GONE: with its endpoint */

typedef struct side {
    uint32_t node, incarnation;
    side_state_t state;
    int is_broken; /* the library has said so */
    int has_ended; /* its event has come: nothing else may */
    cci_connection_t *handle;
    uint32_t timeout_us;
    message_t *messages; /* sent by this side */
    uint32_t message_count, message_capacity;
    uint32_t next_delivery; /* of the other side's messages, ordered */
    uint32_t got;           /* of the other side's messages */
    uint32_t last_rma, last_fence;
    uint32_t open_ops;
    uint32_t flow_messages, flow_length;
    int had_rnr, had_empty;
    uint64_t lingers_until_ns; /* closed; by the endpoint's clock */
    uint64_t rma_ended_ns;     /* when an RMA last did, likewise */
    tally_t tally;
    int can_wake;
} side_t;

typedef struct conn {
    side_t side[2];
    uint32_t server_number; /* as it was when it was asked for */
    cci_conn_attribute_t attribute;
    uint32_t group; /* multicast */
    uint32_t data_length;
    uint64_t connect_by_ns;
    uint8_t is_connecting, connected, requests, accepts, accepted, rejects, must_succeed, is_garbled;
    uint8_t is_plain; /* there was no memory for the data of the answer */
} conn_t;

typedef struct claim {
    uint32_t op, offset, length;
    const uint8_t *bytes; /* what will be there */
} claim_t;

/* A number that atomics change. Fetch-adds count it up in steps; swaps and compare-swaps put the token of their operation there. */
typedef struct cell {
    uint64_t first;
    uint32_t issued, done, refused; /* what is neither done nor refused may have been done or not */
    uint32_t losers;                /* compare-swaps that found another value */
    uint32_t standing;              /* the first value and those put there, of which nobody has heard that they were replaced */
    int is_replaced;                /* the first value */
    uint8_t *seen;                  /* by count: a fetch-add has found that value */
    uint32_t seen_capacity;
} cell_t;

typedef enum region_kind {
    REGION_TARGET, REGION_SOURCE, REGION_LOCAL, REGION_PASSING, REGION_FLEETING, REGION_CELLS
} region_kind_t;

typedef struct region {
    uint8_t *block, *memory, *shadow; /* the memory lies in the block, between guards */
    uint32_t node, incarnation;
    int flags;
    region_kind_t kind;
    int is_live;
    cci_rma_handle_t bytes;
    cci_rma_handle_t *handle;
    claim_t *claims;
    uint32_t claim_count, claim_capacity, cursor;
    cell_t cell[CELL_COUNT]; /* of REGION_CELLS */
} region_t;

typedef enum op_kind { OP_SEND, OP_WRITE, OP_READ, OP_ATOMIC } op_kind_t;

/* What an RMA moves in one go; a list moves many. */
typedef struct piece {
    region_t *local, *remote;
    uint32_t local_offset, remote_offset, length;
} piece_t;

typedef struct op {
    op_kind_t kind;
    uint32_t conn, side, node, incarnation;
    int flags, is_done, must_succeed, must_be_refused;
    uint32_t message, pending_at;
    uint64_t issued_ns; /* by the endpoint's clock */
    uint32_t timeout_us;
    piece_t piece;     /* of a list: of no meaning */
    piece_t *pieces;   /* of a list */
    uint32_t piece_count, length;
    uint32_t earlier, barrier; /* RMA: the one before it; the last one with a fence up to it. A fenced message: likewise */
    uint32_t cell, found;      /* atomic; how many were done before it: see cell_count() */
    uint32_t done_before;      /* atomic: as far as was known when it was issued */
    uint64_t compare;
    uint8_t is_replaced, is_loser; /* its token was there, and is no more; it never was */
    uint8_t *buffer;               /* NO_COPY; or 24 bytes around the previous value */
} op_t;

typedef struct pools { /* free things of an endpoint */
    uint32_t store[CCI__STORES], chunks, control;
} pools_t;

typedef struct node {
    cci_endpoint_t *endpoint;
    sim_endpoint_t *link;
    char *uri;
    char name[16]; /* of its service; empty: it has a number */
    uint32_t incarnation;
    int sleeps;       /* waits for the OS handle; otherwise it polls now and then */
    uint32_t hot;     /* polls until it is taken to be idle */
    uint32_t overdue; /* polls since its deadline passed */
    uint64_t paused_until_ns, awake_ns, hoard_until_ns, hold_ns, poll_after_ns;
    uint32_t hold_per_mille, undecided;
    uint32_t max_send_size;     /* that was set, or UINT32_MAX */
    int hears_status;           /* its program wants CCI_EVENT_STATUS */
    cci_endpt_stats_t stats;    /* as they were when somebody last looked */
    int was_slow; /* it kept messages or slept: operations may have timed out, and nobody hears of silent ones */
    region_t *target, *source, *local, *passing, *fleeting, *cells;
    cci_event_t **hoard;
    uint32_t hoard_count, hoard_capacity;
    pools_t pools;
    uint32_t watched; /* RMAs behind a fence that have not begun */
    uint64_t sent_before, received_before, issued; /* for the bound of work */
    uint64_t taken;
} node_t;

typedef struct soak_totals {
    uint64_t steps, operations, delivered, completed, failed_ops, connects, accepts, answers, virtual_ns, datagrams, bytes;
    uint64_t rma_bytes, lists, atomics, fenced, polls, calms, probes, endpoints, digest, work, work_at_most;
    uint64_t counts_compared, wakes, news; /* sides' statistics, messages with CCI_FLAG_WAKE, events of status */
    uint64_t most_conns; /* open at once; of many seeds, the most of one */
    uint64_t faults[FAULT_COUNT];
} soak_totals_t;

static node_t nodes[NET_MAX_NODES];
static uint32_t node_count;
static conn_t *conns;
static uint32_t conn_count, conn_capacity;
static op_t *ops;
static uint32_t op_count, op_capacity;
static uint32_t *pending;
static uint32_t pending_count, pending_capacity;
static region_t *regions[MAX_REGIONS];
static uint32_t region_count;
static uint32_t watch[256];
static uint32_t watch_count;
static soak_totals_t totals;
static int is_strict; /* contents and completions are compared; not when sound packets are changed without protection */

static uint64_t mix(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t node_now_ns(const node_t *node) {
    return sim.now_ns + node->link->clock_ahead_ns;
}

static cci__dgram_t *dgram_of(const node_t *node) {
    return (cci__dgram_t *)(void *)(uintptr_t)node->endpoint;
}

static cci__dconn_t *dconn_of(const side_t *side) {
    return (cci__dconn_t *)(void *)(uintptr_t)side->handle;
}

/* The library's connection is open, not merely the program's. */
static int is_sound(const side_t *side) {
    return side->state == SIDE_OPEN && dconn_of(side)->conn.state == CCI_CONN_OPEN;
}

static int is_reliable(const conn_t *conn) {
    return conn->attribute == CCI_CONN_ATTR_RO || conn->attribute == CCI_CONN_ATTR_RU;
}

static void wake_node(node_t *node) {
    node->hot = node->hot < 12 ? 12 : node->hot;
}

/* ---- messages --------------------------------------------------------------------------------------------------------- */

/* From four bytes on a message carries its number, and all the rest depends on connection, side and number. */
static void fill_message(uint8_t *bytes, uint32_t length, uint32_t conn, uint32_t side, uint32_t number) {
    uint64_t word = mix((uint64_t)conn << 33 | (uint64_t)side << 32 | number);
    uint32_t i;
    for (i = 0; i < length && i < 4; i++) {
        bytes[i] = (uint8_t)(number >> 8 * i);
    }
    for (i = 4; i < length; i++) {
        bytes[i] = (uint8_t)(word >> (i & 7) * 8);
        word = (i & 7) == 7 ? word * UINT64_C(6364136223846793005) + 1442695040888963407u : word;
    }
}

static int is_message(const uint8_t *bytes, uint32_t length, uint32_t conn, uint32_t side, uint32_t number) {
    static uint8_t expected[65536];
    fill_message(expected, length, conn, side, number);
    return memcmp(bytes, expected, length) == 0;
}

/* Which of the sender's messages this is, NONE if none that may come now. Short ones have no room for their number. */
static uint32_t find_message(const side_t *from, const uint8_t *bytes, uint32_t length, uint32_t conn, uint32_t side,
                             uint32_t begin, int may_repeat) {
    uint32_t number, i;
    if (length >= 4) {
        number = cci__load32(bytes);
        return number < from->message_count && from->messages[number].length == length &&
                       is_message(bytes, length, conn, side, number)
                   ? number
                   : NONE;
    }
    for (i = begin; i < from->message_count; i++) {
        if (from->messages[i].length == length && (!from->messages[i].delivered || may_repeat) &&
            is_message(bytes, length, conn, side, i)) {
            return i;
        }
    }
    return NONE;
}

typedef int (*run_visitor_t)(side_t *from, const uint8_t *message, uint32_t length, uint32_t number);

/* Shows every message that waits in a run; stops when the visitor returns 1. */
static int visit_run(const cci_rel_run_t *run, side_t *from, run_visitor_t visit, uint32_t number) {
    const uint8_t *frame = (const uint8_t *)run + run->begin;
    uint32_t left = run->count;
    for (; left > 0; left--, frame += cci_rel_frame_size(frame)) {
        if (frame[0] == CCI__FRAME_MESSAGE && visit(from, frame + 8, cci__load16(frame + 2), number)) {
            return 1;
        }
    }
    return 0;
}

/* The same in a chain of runs. */
static int visit_runs(const cci_rel_run_t *run, side_t *from, run_visitor_t visit, uint32_t number) {
    while (run != NULL && !visit_run(run, from, visit, number)) {
        run = run->next;
    }
    return run != NULL;
}

/* The same in a ring, of which `last` is the last. */
static int visit_ring(const cci_rel_run_t *last, side_t *from, run_visitor_t visit, uint32_t number) {
    const cci_rel_run_t *run = last == NULL ? NULL : last->next;
    while (run != last && !visit_run(run, from, visit, number)) {
        run = run->next;
    }
    return run != NULL && (run != last || visit_run(last, from, visit, number));
}

/* The messages that have come to a side and that its program has not got yet. */
static int visit_waiting(const conn_t *conn, const side_t *at, side_t *from, run_visitor_t visit, uint32_t number) {
    const cci__hot_t *hot = dconn_of(at)->hot;
    return hot != NULL && (visit_runs(hot->runs, from, visit, number) ||
                              (conn->attribute == CCI_CONN_ATTR_RO
                                   ? visit_ring(hot->rel.by.gated, from, visit, number)
                                   : visit_runs(hot->rel.early, from, visit, number)));
}

static int visit_is(side_t *from, const uint8_t *message, uint32_t length, uint32_t number) {
    return from->messages[number].length == length && cci__load32(message) == number;
}

static int visit_mark(side_t *from, const uint8_t *message, uint32_t length, uint32_t number) {
    (void)number;
    if (length >= 4 && cci__load32(message) < from->message_count) {
        from->messages[cci__load32(message)].arrived = 1;
    }
    return 0;
}

/* ---- numbers that atomics change ------------------------------------------------------------------------------------------ */

static uint32_t cell_width(uint32_t index) {
    return index % 2 ? 4 : 8;
}

/* The numbers of 4 bytes lie in the second half of their 8 bytes. */
static uint32_t cell_offset(uint32_t index) {
    return index * 8 + 8 - cell_width(index);
}

static int cell_counts(uint32_t index) {
    return index / 2 % 3 == 0;
}

static int cell_compares(uint32_t index) {
    return index / 2 % 3 == 1;
}

static uint64_t cell_mask(uint32_t index) {
    return cell_width(index) == 4 ? UINT32_MAX : UINT64_MAX;
}

/* What a fetch-add adds: odd, so that each value says how many there were. */
static uint64_t cell_step(uint32_t index) {
    static const uint64_t steps[] = {1, 3, UINT32_MAX, UINT64_C(0x100000001)};
    return steps[index / 6 % 4];
}

static uint64_t cell_value(const region_t *region, uint32_t index) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    memcpy(&wide, region->memory + index * 8, 8);
    memcpy(&narrow, region->memory + cell_offset(index), 4);
    return cell_width(index) == 4 ? narrow : wide;
}

/* How many fetch-adds were done when a value was there. */
static uint64_t cell_count(const region_t *region, uint32_t index, uint64_t value) {
    uint64_t step = cell_step(index), inverse = step, i;
    for (i = 0; i < 6; i++) { /* each turn doubles the bits that are right */
        inverse *= 2 - step * inverse;
    }
    return (value - region->cell[index].first) * inverse & cell_mask(index);
}

/* What a swap or compare-swap puts there. */
static uint64_t op_token(uint32_t op, uint32_t index) {
    return (((uint64_t)~op << 32) | (op + 1)) & cell_mask(index);
}

/* The operation whose token a value of a cell is, NONE if it is none that can be there. */
static uint32_t cell_owner(const region_t *region, uint32_t index, uint64_t value) {
    uint32_t id = (uint32_t)value - 1;
    return id < op_count && ops[id].kind == OP_ATOMIC && ops[id].piece.remote == region && ops[id].cell == index &&
                   op_token(id, index) == value && !ops[id].is_loser && !ops[id].must_be_refused
               ? id
               : NONE;
}

static void cells_make(region_t *region) {
    uint32_t i;
    for (i = 0; i < CELL_COUNT; i++) {
        cell_t *cell = &region->cell[i];
        uint64_t near_end = UINT64_MAX - mix(region_count * 64 + i) % 40; /* it soon wraps around */
        uint64_t start = cell_counts(i) && i >= CELL_COUNT / 2 ? near_end : UINT64_C(0xf00dbeefa5a50000) + i; /* no token */
        uint32_t narrow = (uint32_t)start;
        if (cell_width(i) == 4) {
            memcpy(region->memory + cell_offset(i), &narrow, 4);
        } else {
            memcpy(region->memory + cell_offset(i), &start, 8);
        }
        cell->first = cell_value(region, i);
        cell->standing = 1;
    }
}

/* The number is one that those operations can have left which were done, and some of those of which that is not known. */
static void cell_check(const region_t *region, uint32_t index) {
    const cell_t *cell = &region->cell[index];
    uint64_t now = cell_value(region, index), count = cell_count(region, index, now);
    uint32_t unknown = cell->issued - cell->done - cell->refused, owner = cell_owner(region, index, now), standing = cell->standing;
    if (cell_counts(index)) {
        REQUIRE(ORACLE_ATOMIC, count >= cell->done && count <= (uint64_t)cell->done + unknown,
                "number %u of node %u counts %.0f additions; %u were done, perhaps %u more", index, region->node, (double)count,
                cell->done, unknown);
        return;
    }
    REQUIRE(ORACLE_ATOMIC, now == cell->first ? !cell->is_replaced : owner != NONE && !ops[owner].is_replaced,
            "number %u of node %u is %llx, which is not there any more, or never was", index, region->node, (unsigned long long)now);
    standing -= now == cell->first || ops[owner].found != NONE;
    REQUIRE(ORACLE_ATOMIC, standing <= unknown, "number %u of node %u: %u values were replaced, by %u at most", index, region->node,
            standing, unknown);
}

/* A value was replaced, by who has found it. */
static void cell_replace(region_t *region, uint32_t index, uint64_t value, uint32_t by) {
    cell_t *cell = &region->cell[index];
    uint32_t owner = cell_owner(region, index, value);
    if (value == cell->first) {
        REQUIRE(ORACLE_ATOMIC, !cell->is_replaced, "atomic %u has replaced a value that was replaced before", by);
        cell->is_replaced = 1;
        cell->standing--;
        return;
    }
    REQUIRE(ORACLE_ATOMIC, owner != NONE && owner != by && !ops[owner].is_replaced,
            "atomic %u has replaced %llx, which was replaced before, or never there", by, (unsigned long long)value);
    ops[owner].is_replaced = 1;
    cell->standing -= ops[owner].found != NONE;
}

/* An atomic was done, and has found that value. */
static void cell_found(op_t *op, uint64_t previous) {
    region_t *region = op->piece.remote;
    cell_t *cell = &region->cell[op->cell];
    uint32_t id = (uint32_t)(op - ops);
    uint64_t count = cell_count(region, op->cell, previous);
    if (cell_counts(op->cell)) {
        REQUIRE(ORACLE_ATOMIC, count >= op->done_before && count < cell->issued &&
                                   count < cell_count(region, op->cell, cell_value(region, op->cell)),
                "atomic %u was number %.0f, when %u were done before it and %u were issued", id, (double)count, op->done_before,
                cell->issued);
        if (cell->issued > cell->seen_capacity) {
            cell->seen = (uint8_t *)soak_more(cell->seen, cell->issued * 2);
            memset(cell->seen + cell->seen_capacity, 0, cell->issued * 2 - cell->seen_capacity);
            cell->seen_capacity = cell->issued * 2;
        }
        REQUIRE(ORACLE_ATOMIC, !cell->seen[count], "atomic %u has found what another has found", id);
        cell->seen[count] = 1;
        op->found = (uint32_t)count;
    } else if (cell_compares(op->cell) && previous != op->compare) {
        REQUIRE(ORACLE_ATOMIC, previous == cell->first || cell_owner(region, op->cell, previous) != NONE,
                "atomic %u has found %llx, which was never there", id, (unsigned long long)previous);
        REQUIRE(ORACLE_ATOMIC, !op->is_replaced, "atomic %u has changed nothing, but its value was there", id);
        op->is_loser = 1;
        cell->losers++;
    } else {
        cell_replace(region, op->cell, previous, id);
        op->found = 0;
        cell->standing += !op->is_replaced;
    }
}

/* An atomic has ended. What it has found is not known if it wanted no answer. */
static void cell_ended(op_t *op, int status) {
    cell_t *cell = &op->piece.remote->cell[op->cell];
    int is_blind = cell_counts(op->cell) ? 0 : op->buffer == NULL;
    uint64_t previous;
    if (op->must_be_refused || !is_strict) {
        return;
    }
    if (status == CCI_ERR_RMA_HANDLE) {
        cell->refused++;
        op->is_loser = 1;
    } else if (status != CCI_SUCCESS) {
        net.faults[FAULT_UNKNOWN]++;
    } else if (op->buffer != NULL) {
        memcpy(&previous, op->buffer + 8, 8);
        REQUIRE(ORACLE_ATOMIC, previous <= cell_mask(op->cell), "atomic %u has found more than its width", (uint32_t)(op - ops));
        cell->done++;
        cell_found(op, previous);
    } else if (!is_blind) {
        cell->done++;
    }
    cell_check(op->piece.remote, op->cell);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static region_t *region_make(uint32_t node, region_kind_t kind, int flags) {
    region_t *region = (region_t *)calloc(1, sizeof *region);
    uint32_t i;
    if (region == NULL || region_count == MAX_REGIONS) {
        abort();
    }
    region->block = (uint8_t *)soak_more(NULL, REGION_SIZE + 2 * GUARD_SIZE);
    region->shadow = (uint8_t *)soak_more(NULL, REGION_SIZE);
    region->memory = region->block + GUARD_SIZE;
    memset(region->block, 0xa5, REGION_SIZE + 2 * GUARD_SIZE);
    for (i = 0; i < REGION_SIZE; i += 8) {
        uint64_t word = mix((uint64_t)node << 48 | (uint64_t)region_count << 32 | i);
        memcpy(region->memory + i, &word, 8);
    }
    if (kind == REGION_CELLS) {
        cells_make(region);
    }
    memcpy(region->shadow, region->memory, REGION_SIZE);
    region->node = node;
    region->incarnation = nodes[node].incarnation;
    region->kind = kind;
    region->flags = flags;
    if (cci_rma_register(nodes[node].endpoint, region->memory, REGION_SIZE, flags, &region->handle) != CCI_SUCCESS) {
        soak_fail(ORACLE_CALL, "cci_rma_register failed");
    }
    region->bytes = *region->handle;
    region->is_live = 1;
    regions[region_count++] = region;
    return region;
}

/* All of the region is as it must be: outside the claims as before, in them old or new byte by byte, around it untouched. */
static void region_check(const region_t *region) {
    static uint8_t scratch[REGION_SIZE];
    uint32_t i, at;
    for (i = 0; i < GUARD_SIZE; i++) {
        REQUIRE(ORACLE_MEMORY, region->block[i] == 0xa5 && region->memory[REGION_SIZE + i] == 0xa5,
                "a byte beside the memory of node %u was written", region->node);
    }
    if (!is_strict && (region->flags & CCI_FLAG_WRITE)) {
        return;
    }
    memcpy(scratch, region->memory, REGION_SIZE);
    for (i = 0; i < CELL_COUNT && region->kind == REGION_CELLS; i++) {
        cell_check(region, i);
        if (region->is_live) {
            memcpy(scratch + cell_offset(i), region->shadow + cell_offset(i), cell_width(i));
        }
    }
    for (i = 0; i < region->claim_count; i++) {
        const claim_t *claim = &region->claims[i];
        for (at = 0; at < claim->length && is_strict; at++) {
            uint8_t byte = region->memory[claim->offset + at];
            REQUIRE(ORACLE_MEMORY, byte == region->shadow[claim->offset + at] || byte == claim->bytes[at],
                    "operation %u wrote a wrong byte at %u of %u", claim->op, at, claim->length);
        }
        memcpy(scratch + claim->offset, region->shadow + claim->offset, claim->length);
    }
    if (memcmp(scratch, region->shadow, REGION_SIZE) != 0) {
        for (at = 0; scratch[at] == region->shadow[at]; at++) {
        }
        soak_fail(ORACLE_MEMORY, "memory of node %u (kind %d, %s) changed at %u, where nobody writes", region->node,
                  (int)region->kind, region->is_live ? "registered" : "no longer registered", at);
    }
}

static void check_all_memory(void) {
    uint32_t i;
    for (i = 0; i < region_count; i++) {
        region_check(regions[i]);
    }
}

/* From now on nothing may touch it: what it is now it stays. */
static void region_end(region_t *region) {
    region_check(region);
    memcpy(region->shadow, region->memory, REGION_SIZE);
    region->claim_count = 0;
    region->is_live = 0;
}

/* A range that no other operation has claimed, NONE if there is none. */
static uint32_t region_claim(region_t *region, uint32_t length, const uint8_t *bytes, uint32_t op) {
    uint32_t turns = 0, i, offset = region->cursor;
    claim_t *claim;
    for (i = 0; i < region->claim_count;) {
        const claim_t *other = &region->claims[i];
        if (offset + length > REGION_SIZE) {
            if (turns++ > 0) {
                return NONE;
            }
            offset = 0;
            i = 0;
        } else if (offset < other->offset + other->length && other->offset < offset + length) {
            offset = other->offset + other->length;
            i = 0;
        } else {
            i++;
        }
    }
    if (offset + length > REGION_SIZE) {
        if (region->claim_count > 0 || length > REGION_SIZE) {
            return NONE;
        }
        offset = 0;
    }
    claim = PUSH(region->claims, region->claim_count, region->claim_capacity, claim_t);
    claim->op = op;
    claim->offset = offset;
    claim->length = length;
    claim->bytes = bytes;
    region->cursor = offset + length + (uint32_t)sim_below(3);
    region->cursor = region->cursor > REGION_SIZE ? 0 : region->cursor;
    return offset;
}

/* The operation has ended: with success its bytes are there. */
static void region_settle(region_t *region, uint32_t op, int has_new) {
    uint32_t i;
    for (i = 0; has_new && i < region->claim_count;) { /* a failed one may still come late, as long as the target has its connection */
        claim_t *claim = &region->claims[i];
        if (claim->op != op) {
            i++;
            continue;
        }
        REQUIRE(ORACLE_MEMORY, !is_strict || memcmp(region->memory + claim->offset, claim->bytes, claim->length) == 0,
                "operation %u is complete, its bytes are not", op);
        memcpy(region->shadow + claim->offset, region->memory + claim->offset, claim->length);
        *claim = region->claims[--region->claim_count];
    }
}

/* The operation was not taken. */
static void region_disclaim(region_t *region, uint32_t op) {
    uint32_t i;
    for (i = 0; i < region->claim_count;) {
        if (region->claims[i].op == op) {
            region->claims[i] = region->claims[--region->claim_count];
        } else {
            i++;
        }
    }
}

/* Claims of operations that failed, whose connection the target has closed: nothing more can come. */
static void region_forget_failed(region_t *region) {
    uint32_t i;
    for (i = 0; i < region->claim_count;) {
        claim_t *claim = &region->claims[i];
        const op_t *op = &ops[claim->op];
        const conn_t *conn = &conns[op->conn];
        const side_t *target = &conn->side[op->kind == OP_WRITE ? !op->side : op->side];
        if ((op->is_done || (op->flags & CCI_FLAG_SILENT)) && target->state >= SIDE_CLOSED) {
            memcpy(region->shadow + claim->offset, region->memory + claim->offset, claim->length);
            *claim = region->claims[--region->claim_count];
        } else {
            i++;
        }
    }
}

static const piece_t *op_piece(const op_t *op, uint32_t i) {
    return op->pieces != NULL ? &op->pieces[i] : &op->piece;
}

/* Where the bytes of an RMA go: the region, and the place in it. */
static region_t *piece_changes(op_kind_t kind, const piece_t *piece) {
    return kind == OP_WRITE ? piece->remote : piece->local;
}
static uint32_t piece_to(op_kind_t kind, const piece_t *piece) {
    return kind == OP_WRITE ? piece->remote_offset : piece->local_offset;
}

/* Where they come from. */
static const uint8_t *piece_from(op_kind_t kind, const piece_t *piece) {
    return kind == OP_WRITE ? piece->local->memory + piece->local_offset : piece->remote->memory + piece->remote_offset;
}

/* The operation is over, as to the memory it changes. */
static void op_settle(op_t *op, int has_new) {
    uint32_t i;
    for (i = 0; i < op->piece_count; i++) {
        region_t *region = piece_changes(op->kind, op_piece(op, i));
        if (i == 0 || region != piece_changes(op->kind, op_piece(op, i - 1))) {
            region_settle(region, (uint32_t)(op - ops), has_new);
        }
    }
}

static const char *op_text(uint32_t id) {
    static char text[200];
    static const char *const kinds[] = {"send", "write", "read", "atomic"}, *const attributes[] = {"RO", "RU", "UU", "MC", "MC"};
    const op_t *op = &ops[id];
    snprintf(text, sizeof text, "%s %lu of %lu bytes on connection %lu (%s, node %lu to %lu)%s%s%s%s%s%s", kinds[op->kind],
             (unsigned long)id,
             (unsigned long)(op->kind != OP_SEND ? op->length : conns[op->conn].side[op->side].messages[op->message].length),
             (unsigned long)op->conn, attributes[conns[op->conn].attribute], (unsigned long)op->node,
             (unsigned long)conns[op->conn].side[!op->side].node, op->flags & CCI_FLAG_FENCE ? ", fence" : "",
             op->flags & CCI_FLAG_SILENT ? ", silent" : "", op->flags & CCI_FLAG_NO_COPY ? ", no copy" : "",
             op->kind != OP_SEND && op->message != NONE ? ", with a message" : "",
             op->pieces != NULL ? ", a list" : "", op->must_be_refused ? ", not permitted" : "");
    return text;
}

/* Some of its memory is registered no more. */
static int op_may_be_refused(const op_t *op) {
    uint32_t i;
    for (i = 0; i < op->piece_count; i++) {
        const piece_t *piece = op_piece(op, i);
        if ((piece->local != NULL && !piece->local->is_live) || !piece->remote->is_live) {
            return 1;
        }
    }
    return 0;
}

/* The library's record of a list that goes on, NULL if it is none. */
static const cci__rmav_t *op_list(const op_t *op) {
    const cci_lists_t *lists = dgram_of(&nodes[op->node])->base.api.lists;
    const cci_list_t *heads[2], *node;
    int i;
    heads[0] = lists == NULL ? NULL : &lists->waiting;
    heads[1] = lists == NULL ? NULL : &lists->issued;
    for (i = 0; i < 2 && lists != NULL; i++) {
        for (node = heads[i]->next; node != heads[i]; node = node->next) {
            const cci__rmav_t *list = CCI__CONTAINER(node, const cci__rmav_t, node);
            if (list->event.pub.send.context == (void *)((uintptr_t)(op - ops) + 1)) {
                return list;
            }
        }
    }
    return NULL;
}

/* Its completion waits for the program; of a list, those of all parts that have begun. */
static int op_is_posted(const op_t *op) {
    const cci_evq_event_t *event = dgram_of(&nodes[op->node])->base.evq.done.head;
    const cci__rmav_t *list = op->pieces == NULL ? NULL : op_list(op);
    uint32_t count = 0;
    for (; event != NULL; event = event->next) {
        if (list == NULL && event->base.pub.send.context == (void *)((uintptr_t)(op - ops) + 1)) {
            return 1;
        }
        count += list != NULL && event->base.pub.send.context == (const void *)list;
    }
    return list != NULL && count == list->under_way;
}

/* What the library has for the traffic of a side, also while that lingers; or NULL. */
static const cci__hot_t *hot_of(const side_t *side) {
    int lingers = side->state == SIDE_CLOSED && side->incarnation == nodes[side->node].incarnation &&
                  (dconn_of(side)->conn.flags & CCI__CONN_LINGERS);
    return side->state == SIDE_OPEN || lingers ? dconn_of(side)->hot : NULL;
}

/* It is done, and on an ordered connection waits for its turn to be reported. */
static int op_has_turn_to_wait(const op_t *op) {
    const cci__hot_t *hot = hot_of(&conns[op->conn].side[op->side]);
    const cci_list_t *node;
    for (node = hot == NULL ? NULL : hot->rel.items.next; node != NULL && node != &hot->rel.items; node = node->next) {
        const cci_rel_item_t *item = CCI__CONTAINER(node, const cci_rel_item_t, node);
        const cci_rel_link_t *link = item->flags & CCI__ITEM_DONE ? item->ops : NULL;
        for (; link != NULL; link = link->next) {
            const cci__op_t *at = CCI__CONTAINER(link->op, const cci__op_t, rel);
            if (at->event.base.pub.send.context == (void *)((uintptr_t)(op - ops) + 1)) {
                return 1;
            }
        }
    }
    return 0;
}

static int op_is_placed(const op_t *op) {
    uint32_t i;
    for (i = 0; i < op->piece_count && op->kind != OP_ATOMIC; i++) {
        const piece_t *piece = op_piece(op, i);
        if (memcmp(piece_changes(op->kind, piece)->memory + piece_to(op->kind, piece), piece_from(op->kind, piece), piece->length) != 0) {
            return 0;
        }
    }
    return op->kind != OP_ATOMIC;
}

/* Some of its bytes are there: one look in each 64 bytes, the shortest segment. */
static int op_has_begun(const op_t *op) {
    uint32_t at, i;
    if (op->kind == OP_ATOMIC) {
        return !cell_counts(op->cell) && cell_value(op->piece.remote, op->cell) == op_token((uint32_t)(op - ops), op->cell);
    }
    for (i = 0; i < op->piece_count; i++) {
        const piece_t *piece = op_piece(op, i);
        const region_t *region = piece_changes(op->kind, piece);
        const uint8_t *before = region->shadow + piece_to(op->kind, piece), *now = region->memory + piece_to(op->kind, piece);
        for (at = 0; at < piece->length; at += 64) {
            if (now[at] != before[at]) {
                return 1;
            }
        }
        if (now[piece->length - 1] != before[piece->length - 1]) {
            return 1;
        }
    }
    return 0;
}

/* A silent message may have been given up because its receiver had no buffers (few, and others' messages in them that have not
 * all come) until its time-out: no event says so when all that shared its fate was silent. */
static int is_given_up_silently(const op_t *op, const side_t *to) {
    const node_t *node = &nodes[to->node];
    return op->timeout_us != 0 && node->endpoint != NULL && dgram_of(node)->pool.packets_refused > 0 &&
           node_now_ns(&nodes[op->node]) >= op->issued_ns + (uint64_t)op->timeout_us * 1000;
}

/* The same of an RMA, which travels like a message if it is short; on an ordered connection it ends with a message before it. */
static int ended_silently(const op_t *op) {
    const side_t *from = &conns[op->conn].side[op->side], *to = &conns[op->conn].side[!op->side];
    uint32_t i;
    if (!(op->flags & CCI_FLAG_SILENT)) {
        return 0;
    }
    for (i = 0; i < from->message_count && conns[op->conn].attribute == CCI_CONN_ATTR_RO; i++) {
        const op_t *before = &ops[from->messages[i].op];
        if (before < op && (before->flags & CCI_FLAG_SILENT) && is_given_up_silently(before, to)) {
            return 1;
        }
    }
    return is_given_up_silently(op, to);
}

/* What a fence waits for is over, or nobody can tell. */
static int is_over(const op_t *before) {
    return !is_strict || before->is_done || before->must_be_refused || op_may_be_refused(before) || op_is_placed(before) ||
           (before->kind == OP_ATOMIC && (before->flags & CCI_FLAG_SILENT)) || op_is_posted(before) || op_has_turn_to_wait(before) ||
           conns[before->conn].side[before->side].had_rnr || ended_silently(before);
}

/* Everything up to an RMA is over when something behind a fence has happened. */
static void check_fence(uint32_t id, uint32_t last, const char *what) {
    uint32_t earlier, most = 400;
    for (earlier = last; earlier != NONE && most > 0; earlier = ops[earlier].earlier, most--) {
        if (!is_over(&ops[earlier])) {
            char text[200];
            snprintf(text, sizeof text, "%s", op_text(earlier));
            soak_fail(ORACLE_FENCE, "%s %s, but before its fence it is not over with %s", op_text(id), what, text);
        }
    }
}

/* Nothing behind a fence begins before everything in front of it is in place. */
static void check_fences(uint32_t node) {
    uint32_t i;
    for (i = 0; i < watch_count;) {
        const op_t *op = &ops[watch[i]];
        uint32_t target = op->kind == OP_READ ? op->node : conns[op->conn].side[!op->side].node;
        if (op->is_done || (target == node && op_has_begun(op))) {
            if (!op->is_done) {
                check_fence(watch[i], ops[op->barrier].earlier, "has begun");
            }
            watch[i] = watch[--watch_count];
        } else {
            i++;
        }
    }
}

/* ---- operations ----------------------------------------------------------------------------------------------------------- */

static op_t *op_new(op_kind_t kind, uint32_t conn, uint32_t side, int flags) {
    op_t *op = PUSH(ops, op_count, op_capacity, op_t);
    const side_t *at = &conns[conn].side[side];
    op->kind = kind;
    op->conn = conn;
    op->side = side;
    op->flags = flags;
    op->node = at->node;
    op->incarnation = at->incarnation;
    op->message = op->earlier = op->barrier = op->pending_at = op->found = NONE;
    op->issued_ns = node_now_ns(&nodes[at->node]);
    op->timeout_us = is_reliable(&conns[conn]) ? at->timeout_us : 0;
    return op;
}

static message_t *message_new(side_t *side, uint32_t length, uint32_t op) {
    message_t *message = PUSH(side->messages, side->message_count, side->message_capacity, message_t);
    message->length = length;
    message->op = op;
    message->heard = side->got;
    return message;
}

/* Counts what an operation is for the library's statistics. */
static void op_count_in(const op_t *op) {
    side_t *side = &conns[op->conn].side[op->side];
    tally_t *tally = &side->tally;
    if (op->message != NONE) {
        tally->messages_sent++;
        tally->bytes_sent += side->messages[op->message].length;
    }
    if (op->kind == OP_READ) {
        tally->reads++;
        tally->read_bytes += op->length;
    } else if (op->kind != OP_SEND) {
        tally->writes++;
        tally->write_bytes += op->length;
    }
}

/* What a list adds to what is not sure; `sign` -1: it has succeeded. */
static void list_count_in(const op_t *op, int sign) {
    side_t *side = &conns[op->conn].side[op->side];
    const uint64_t once = (uint64_t)(int64_t)sign;
    side->tally.list_messages += op->message == NONE ? 0 : once;
    side->tally.list_message_bytes += op->message == NONE ? 0 : once * side->messages[op->message].length;
    *(op->kind == OP_READ ? &side->tally.list_read_bytes : &side->tally.list_write_bytes) += once * op->length;
}

/* The library has taken it. */
static void op_accepted(uint32_t id) {
    op_t *op = &ops[id];
    totals.operations++;
    op_count_in(op);
    if (op->pieces != NULL) {
        list_count_in(op, 1);
    }
    nodes[op->node].issued++;
    if (op->flags & CCI_FLAG_SILENT) {
        return;
    }
    conns[op->conn].side[op->side].open_ops++;
    op->pending_at = pending_count;
    *PUSH(pending, pending_count, pending_capacity, uint32_t) = id;
}

static void op_not_pending(op_t *op) {
    if (op->pending_at != NONE) {
        uint32_t last = pending[--pending_count];
        pending[op->pending_at] = last;
        ops[last].pending_at = op->pending_at;
        op->pending_at = NONE;
        conns[op->conn].side[op->side].open_ops--;
    }
}

static void op_release_buffer(op_t *op) {
    if (op->buffer != NULL) {
        memset(op->buffer, 0xdd, 8); /* it is the program's again */
        free(op->buffer);
        op->buffer = NULL;
    }
}

/* A reliable message was reported as delivered: then it is with the other side's program, or waits there. */
static void check_delivered(const op_t *op, uint32_t id) {
    conn_t *conn = &conns[op->conn];
    side_t *from = &conn->side[op->side], *to = &conn->side[!op->side];
    const message_t *message = &from->messages[op->message];
    if (message->delivered || message->arrived || message->length < 4 || !is_sound(to) ||
        to->incarnation != nodes[to->node].incarnation) {
        return;
    }
    REQUIRE(ORACLE_EARLY, visit_waiting(conn, to, from, visit_is, op->message),
            "%s (message %u, %u bytes) is complete, but the message is not there", op_text(id), op->message,
            message->length);
}

static void check_status(const op_t *op, uint32_t id, cci_status_t status) {
    const conn_t *conn = &conns[op->conn];
    const side_t *at = &conn->side[op->side], *peer = &conn->side[!op->side];
    switch (status) {
    case CCI_SUCCESS:
        REQUIRE(ORACLE_STATUS, !op->must_be_refused || !is_strict, "%s succeeded", op_text(id));
        break;
    case CCI_ERR_DISCONNECTED:
        REQUIRE(ORACLE_STATUS, at->state != SIDE_OPEN || at->is_broken || !is_sound(peer) || !is_strict,
                "%s: disconnected, but both sides are there", op_text(id));
        REQUIRE(ORACLE_LIVENESS, !op->must_succeed || at->is_broken || !is_sound(peer) || !is_strict,
                "%s: disconnected on a network without faults, though the connection lingers", op_text(id));
        break;
    case CCI_ETIMEDOUT:
    case CCI_ERR_RNR:
        REQUIRE(ORACLE_STATUS, is_reliable(conn) && op->timeout_us != 0, "%s has no time-out, but timed out", op_text(id));
        REQUIRE(ORACLE_LIVENESS, !op->must_succeed || !is_strict, "%s: %s on a network without faults", op_text(id),
                cci_strerror(NULL, status));
        break;
    case CCI_ERR_RMA_HANDLE:
        REQUIRE(ORACLE_STATUS, op_may_be_refused(op) || op->must_be_refused || !is_strict,
                "%s was permitted, but refused", op_text(id));
        break;
    case CCI_ERR_RMA_OP:
        REQUIRE(ORACLE_STATUS, op->kind == OP_ATOMIC && !is_strict, "%s: there is no such operation", op_text(id));
        break;
    default:
        soak_fail(ORACLE_STATUS, "operation %u: status %d", id, (int)status);
    }
}

/* The library says that an operation has ended. */
static void op_completed(const cci_event_send_t *event, uint32_t node) {
    uint32_t id = (uint32_t)(uintptr_t)event->context - 1;
    op_t *op;
    side_t *side;
    REQUIRE(ORACLE_ONCE, id < op_count, "a completion with a context that nobody gave");
    op = &ops[id];
    side = &conns[op->conn].side[op->side];
    REQUIRE(ORACLE_ONCE, !op->is_done && op->pending_at != NONE, "operation %u completes twice", id);
    REQUIRE(ORACLE_ONCE, op->node == node && op->incarnation == nodes[node].incarnation && event->connection == side->handle,
            "operation %u completes at another endpoint or connection", id);
    check_status(op, id, event->status);
    totals.completed++;
    totals.failed_ops += event->status != CCI_SUCCESS;
    if (op->pieces != NULL && event->status == CCI_SUCCESS) {
        list_count_in(op, -1);
    }
    if (event->status == CCI_SUCCESS && op->message != NONE && is_reliable(&conns[op->conn]) && is_strict) {
        check_delivered(op, id);
    }
    if (event->status == CCI_SUCCESS && op->kind != OP_SEND && op->barrier != NONE) {
        check_fence(id, ops[op->barrier].earlier, "is complete");
    }
    if (op->kind == OP_ATOMIC) {
        cell_ended(op, (int)event->status);
    } else if (op->kind != OP_SEND && !op->must_be_refused) {
        op_settle(op, event->status == CCI_SUCCESS);
    }
    if (op->message != NONE) {
        side->messages[op->message].done = 1;
        side->messages[op->message].failed = event->status != CCI_SUCCESS;
    }
    if (op->kind != OP_SEND) {
        side->rma_ended_ns = node_now_ns(&nodes[node]);
    }
    side->had_rnr |= event->status == CCI_ERR_RNR;
    net.faults[FAULT_RECV_FULL] += event->status == CCI_ERR_RNR;
    side->is_broken |= event->status == CCI_ETIMEDOUT || event->status == CCI_ERR_DISCONNECTED;
    op->is_done = 1;
    op_not_pending(op);
    op_release_buffer(op);
}

/* An RMA before its fence has not ended: the time of what is behind begins then. */
static int op_waits_for_fence(const op_t *op) {
    uint32_t most = 400, earlier = op->barrier == NONE || op->kind == OP_SEND ? op->barrier : ops[op->barrier].earlier;
    for (; earlier != NONE && most > 0; earlier = ops[earlier].earlier, most--) {
        if (!ops[earlier].is_done) {
            return 1;
        }
    }
    return 0;
}

/* The next part of a list waits for its connection's turn at the memory: its time begins then. */
static int op_waits_for_turn(const op_t *op) {
    const side_t *side = &conns[op->conn].side[op->side];
    const cci__rmav_t *list = op->pieces == NULL || side->state != SIDE_OPEN ? NULL : op_list(op);
    return list != NULL && list->is_stuck && (dconn_of(side)->conn.flags & CCI__CONN_WAITING);
}

/* Every operation has ended in its time: that is, since it was issued, or since the peer last took something. */
static void check_overdue(void) {
    uint32_t i;
    for (i = 0; i < pending_count; i++) {
        const op_t *op = &ops[pending[i]];
        const node_t *node = &nodes[op->node];
        const side_t *side = &conns[op->conn].side[op->side];
        uint64_t since_ns = op->issued_ns, most_ns = (uint64_t)op->timeout_us * 1000 + 3 * SEC;
        if (sim.now_ns < node->paused_until_ns || (is_reliable(&conns[op->conn]) && op->timeout_us == 0)) {
            continue;
        }
        if (side->state == SIDE_OPEN && dconn_of(side)->hot != NULL) {
            const cci_rel_t *rel = &dconn_of(side)->hot->rel;
            since_ns = cci__max64(since_ns, rel->progress_ns);
            since_ns = cci__max64(since_ns, rel->overdue_ns); /* refused: the answer to the last try is waited for as long again */
            if (!cci__list_empty(&rel->items)) { /* where connections take turns, the progress of earlier ones stands there */
                since_ns = cci__max64(since_ns, CCI__CONTAINER(rel->items.next, const cci_rel_item_t, node)->since_ns);
            }
        }
        if (side->state == SIDE_OPEN && (dconn_of(side)->conn.flags & CCI__CONN_PARKED)) { /* likewise */
            since_ns = cci__max64(since_ns, dconn_of(side)->in.parked.first->since_ns);
        }
        since_ns = cci__max64(since_ns, cci__max64(node->awake_ns, side->lingers_until_ns));
        since_ns = op->barrier == NONE ? since_ns : cci__max64(since_ns, side->rma_ended_ns);
        REQUIRE(ORACLE_OVERDUE, node_now_ns(node) <= since_ns + most_ns || op_waits_for_fence(op) || op_waits_for_turn(op),
                "%s has not ended after %.3f s, its time-out is %.3f s", op_text(pending[i]),
                (double)(node_now_ns(node) - op->issued_ns) / 1e9, op->timeout_us / 1e6);
    }
}

/* ---- what arrives -------------------------------------------------------------------------------------------------------- */

static void check_message_of_rma(const message_t *message) {
    const op_t *op = &ops[message->op];
    if (op->kind == OP_SEND) {
        check_fence(message->op, op->barrier, "was delivered");
        return;
    }
    REQUIRE(ORACLE_MEMORY, !op->must_be_refused, "the message of a refused %s was delivered", op_text(message->op));
    REQUIRE(ORACLE_MEMORY, op->is_done || op_may_be_refused(op) || op_is_placed(op),
            "the message of a %s came before its bytes", op_text(message->op));
}

/* May a message never come of which nothing was said? */
static int may_stay_away(const op_t *op, const side_t *from, const side_t *to) {
    return !(op->flags & CCI_FLAG_SILENT) || from->had_rnr || nodes[to->node].was_slow || op_may_be_refused(op) ||
           op->must_be_refused || is_given_up_silently(op, to);
}

/* Ordered: what was left out on the way must have failed, or fail. */
static void check_left_out(const side_t *to, const side_t *from, uint32_t begin, uint32_t end) {
    uint32_t i;
    for (i = begin; i < end; i++) {
        const message_t *message = &from->messages[i];
        /* Which of several messages that are too short for a number came can't be told. */
        REQUIRE(ORACLE_ORDER, !message->done || message->failed || message->length < 4, "message %u was complete but left out: %s", i,
                op_text(message->op));
        REQUIRE(ORACLE_ORDER, message->done || from->state == SIDE_GONE || may_stay_away(&ops[message->op], from, to),
                "silent message %u was left out: %s", i, op_text(message->op));
    }
}

/* Somebody sent this to the group. If there is room, it carries the sending connection behind its number. */
static int is_of_group(uint32_t group, const uint8_t *bytes, uint32_t length) {
    static uint8_t expected[65536];
    uint32_t i, number;
    for (i = length < 8 ? 0 : cci__load32(bytes + 4); i < conn_count; i++) {
        const side_t *from = &conns[i].side[0];
        int is_sender = conns[i].attribute == CCI_CONN_ATTR_UU_MC_TX && conns[i].group == group;
        for (number = length < 4 ? 0 : cci__load32(bytes); is_sender && number < from->message_count; number++) {
            fill_message(expected, length, i, 0, number);
            if (length >= 8) {
                cci__store32(expected + 4, i);
            }
            if (from->messages[number].length == length && memcmp(bytes, expected, length) == 0) {
                return 1;
            }
            if (length >= 4) {
                break;
            }
        }
        if (length >= 8) {
            break;
        }
    }
    return 0;
}

/* A message answers, perhaps, all that its program had got when it issued it: those are complete before it comes. */
static void check_answer(const message_t *answer, uint32_t id, uint32_t at) {
    const side_t *side = &conns[id].side[at];
    uint32_t i;
    for (i = 0; side->open_ops > 0 && i < pending_count; i++) {
        const op_t *op = &ops[pending[i]];
        const message_t *message = op->message == NONE || op->conn != id || op->side != at ? NULL : &side->messages[op->message];
        REQUIRE(ORACLE_ORDER,
                message == NULL || message->length < 4 || !message->delivered || message->place > answer->heard,
                "%s is not complete, but message %u of operation %u that may answer it has come", op_text(pending[i]),
                (uint32_t)(answer - conns[id].side[!at].messages), answer->op);
    }
}

static void message_arrived(uint32_t node, const cci_event_recv_t *event) {
    uintptr_t context = (uintptr_t)event->connection->context - 1;
    uint32_t id = (uint32_t)(context / 2), at = (uint32_t)(context % 2), number;
    conn_t *conn;
    side_t *to, *from;
    message_t *message;
    REQUIRE(ORACLE_CONTENT, id < conn_count, "a message on a connection that nobody made");
    conn = &conns[id];
    to = &conn->side[at];
    from = &conn->side[!at];
    REQUIRE(ORACLE_HANDSHAKE, to->state == SIDE_OPEN && to->node == node && to->handle == event->connection &&
                                  to->incarnation == nodes[node].incarnation,
            "a message on connection %u before its event or after its end", id);
    REQUIRE(ORACLE_CALL, ((uintptr_t)event->ptr & 7) == 0, "a message that is not aligned");
    totals.delivered++;
    to->tally.messages_received++;
    to->tally.bytes_received += event->len;
    nodes[node].taken++;
    net.digest = (net.digest ^ ((uint64_t)id << 32 | event->len)) * UINT64_C(0x100000001b3);
    if (!is_strict) {
        return;
    }
    if (conn->attribute >= CCI_CONN_ATTR_UU_MC_TX) {
        REQUIRE(ORACLE_CONTENT, is_of_group(conn->group, (const uint8_t *)event->ptr, event->len),
                "connection %u got %u bytes that nobody sent to group %u", id, event->len, conn->group);
        return;
    }
    number = find_message(from, (const uint8_t *)event->ptr, event->len, id, !at, to->next_delivery,
                          !is_reliable(conn));
    REQUIRE(ORACLE_CONTENT, number != NONE, "connection %u side %u got %u bytes that the other side did not send, or twice",
            id, at, event->len);
    message = &from->messages[number];
    if (!is_reliable(conn)) {
        message->delivered = 1;
        return;
    }
    REQUIRE(ORACLE_ONCE, !message->delivered, "message %u of connection %u was delivered twice", number, id);
    check_message_of_rma(message);
    if (conn->attribute == CCI_CONN_ATTR_RO) {
        REQUIRE(ORACLE_ORDER, number >= to->next_delivery, "message %u of connection %u came after %u", number, id,
                to->next_delivery - 1);
        check_left_out(to, from, to->next_delivery, number);
        to->next_delivery = number + 1;
    }
    message->delivered = 1;
    message->place = ++to->got;
    if (message->length >= 4) {
        check_answer(message, id, at);
    }
}

/* What was reported as done and never came, when everything has been taken. */
static void check_nothing_lost(void) {
    uint32_t i, at, number;
    for (i = 0; i < conn_count && is_strict; i++) {
        for (at = 0; at < 2; at++) {
            const conn_t *conn = &conns[i];
            const side_t *from = &conn->side[at], *to = &conn->side[!at];
            if (!is_reliable(conn) || !is_sound(to) || !is_sound(from)) {
                continue;
            }
            for (number = 0; number < from->message_count; number++) {
                const message_t *message = &from->messages[number];
                const op_t *op = &ops[message->op];
                int is_silent = (op->flags & CCI_FLAG_SILENT) != 0;
                REQUIRE(ORACLE_LOST, message->delivered || message->failed ||
                                         (message->length < 4 && from->had_rnr) || /* another as short may have been given up */
                                         (!message->done && may_stay_away(op, from, to)),
                        "message %u of connection %u side %u (%u bytes%s) was sent and never came", number, i, at,
                        message->length, is_silent ? ", silent" : "");
            }
        }
    }
}

/* ---- statistics ------------------------------------------------------------------------------------------------------- */

static void check_count(uint32_t id, uint32_t at, const char *what, uint64_t said, uint64_t most, uint64_t unsure) {
    REQUIRE(ORACLE_STATISTICS, said <= most && said + unsure >= most, "connection %u side %u: %s are %lu of %lu, %lu of them in lists",
            id, at, what, (unsigned long)said, (unsigned long)most, (unsigned long)unsure);
}

/* What the library says of a side is what its program has done. */
static void check_counts(uint32_t id, uint32_t at) {
    const side_t *side = &conns[id].side[at];
    const tally_t *tally = &side->tally;
    cci_conn_stats_t said;
    REQUIRE(ORACLE_CALL, cci_get_opt(side->handle, CCI_OPT_CONN_STATS, &said) == CCI_SUCCESS, "no statistics of connection %u", id);
    if (!said.is_counted) {
        return;
    }
    check_count(id, at, "messages sent", said.messages_sent, tally->messages_sent, tally->list_messages);
    check_count(id, at, "bytes sent", said.bytes_sent, tally->bytes_sent, tally->list_message_bytes);
    check_count(id, at, "messages taken", said.messages_received, tally->messages_received, 0);
    check_count(id, at, "bytes taken", said.bytes_received, tally->bytes_received, 0);
    check_count(id, at, "writes", said.rma_writes, tally->writes, 0);
    check_count(id, at, "bytes written", said.rma_write_bytes, tally->write_bytes, tally->list_write_bytes);
    check_count(id, at, "reads", said.rma_reads, tally->reads, 0);
    check_count(id, at, "bytes read", said.rma_read_bytes, tally->read_bytes, tally->list_read_bytes);
    totals.counts_compared++;
}

/* Counters of an endpoint never go back, and it has no more buffers in use than it ever had. */
static void check_endpoint_counts(uint32_t index) {
    node_t *node = &nodes[index];
    const cci_endpt_stats_t before = node->stats;
    const uint64_t *old = &before.datagrams_sent, *now = &node->stats.datagrams_sent;
    size_t i;
    REQUIRE(ORACLE_CALL, cci_get_opt(node->endpoint, CCI_OPT_ENDPT_STATS, &node->stats) == CCI_SUCCESS, "no statistics of node %u", index);
    for (i = 0; i < offsetof(cci_endpt_stats_t, connections_open) / sizeof *now; i++) {
        REQUIRE(ORACLE_STATISTICS, now[i] >= old[i], "counter %u of node %u goes back from %lu to %lu", (unsigned)i, index,
                (unsigned long)old[i], (unsigned long)now[i]);
    }
    REQUIRE(ORACLE_STATISTICS, node->stats.recv_buffers_used <= node->stats.recv_buffers_most &&
                                   node->stats.send_buffers_used <= node->stats.send_buffers_most,
            "node %u uses more buffers than the most so far", index);
}

static void check_statistics(void) {
    uint32_t i, at;
    for (i = 0; i < node_count; i++) {
        if (nodes[i].endpoint != NULL) {
            check_endpoint_counts(i);
        }
    }
    for (i = 0; i < conn_count; i++) {
        for (at = 0; at < 2; at++) {
            if (conns[i].side[at].state == SIDE_OPEN) {
                check_counts(i, at);
            }
        }
    }
}

/* ---- what an endpoint holds ------------------------------------------------------------------------------------------------ */

static uint32_t count_list(const cci_list_t *head) {
    const cci_list_t *node;
    uint32_t count = 0;
    for (node = head->next; node != head; node = node->next) {
        REQUIRE(ORACLE_LEAK, node->next->prev == node && count < 1u << 24, "a list is broken");
        count++;
    }
    return count;
}

static uint32_t count_events(const cci_evq_event_t *event) {
    uint32_t count = 0;
    for (; event != NULL; event = event->next) {
        count++;
    }
    return count;
}

static pools_t count_pools(const node_t *node) {
    const cci__dgram_t *ep = dgram_of(node);
    pools_t pools;
    int kind;
    for (kind = 0; kind < CCI__STORES; kind++)
        pools.store[kind] = kind == CCI__STORE_OPS ? count_events(ep->free_ops) : count_list(ep->stores[kind].free);
    pools.chunks = count_list(&ep->rma.chunks);
    pools.control = count_events(ep->base.evq.free_events[CCI_EVQ_CONTROL]);
    return pools;
}

#define HAS_ALL(what, most) \
    REQUIRE(ORACLE_LEAK, pools.what == (most), "node %u: %u " #what " are free, not %u", index, pools.what, (most))

/* Nothing is under way at this endpoint: everything that is held for traffic is back. */
static void check_idle(uint32_t index) {
    const node_t *node = &nodes[index];
    const cci__dgram_t *ep = dgram_of(node);
    const pools_t *all = &node->pools;
    pools_t pools = count_pools(node);
    const cci_list_t *in_use;
    uint32_t hot_count = 0, i, with[CCI__STORES] = {0};
    int kind;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) { /* an accept in vain waits for half a minute */
        pools.control += cci_conn_at(&ep->base.conns, i)->state == CCI_CONN_ACCEPTED;
        with[CCI__STORE_ANSWERS] += (cci_conn_at(&ep->base.conns, i)->flags & CCI__CONN_ANSWERS) != 0 &&
                                    cci_conn_at(&ep->base.conns, i)->state != CCI_CONN_FREE;
    }
    for (in_use = ep->in_use.next; in_use != &ep->in_use; in_use = in_use->next, hot_count++) {
        const cci__hot_t *hot = CCI__CONTAINER(in_use, const cci__hot_t, in_use);
        REQUIRE(ORACLE_LEAK, cci__hot_is_idle(hot) && hot->rel.in_flight == 0 &&
                             (!hot->reader || hot->reader->outstanding == 0),
                "node %u: connection %u (attribute %d, state %d) is not idle: items %d flight %d lost %d early %d parts %d "
                "sequences %u acks %u nacks %u ping %u runs %d reader %d",
                index, (uint32_t)(((uintptr_t)hot->conn->conn.pub.context - 1) / 2),
                (int)hot->conn->conn.pub.attribute, hot->conn->conn.state, !cci__list_empty(&hot->rel.items),
                !cci__list_empty(&hot->rel.flight), !cci__list_empty(&hot->rel.lost), hot->rel.early != NULL,
                !cci__list_empty(&hot->rel.reassemblies), hot->rel.sequence_count, hot->rel.ack_count,
                hot->rel.nack_count, hot->rel.ping, hot->runs != NULL, hot->reader && !cci_rma_reader_idle(hot->reader));
        with[CCI__STORE_READERS] += hot->reader != NULL;
        with[CCI__STORE_PATHS] += hot->path != NULL;
        with[CCI_REL_NUMBERS] += hot->rel.number_capacity > CCI__REL_FEW_NUMBERS;
    }
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB && ep->atomics != NULL; i++) {
        with[CCI__STORE_ATOMICS] += ep->atomics[i / CCI__CONN_SLAB] != NULL && ep->atomics[i / CCI__CONN_SLAB][i % CCI__CONN_SLAB] != NULL;
    }
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB && ep->candidates != NULL; i++) { /* until the connection ends */
        with[CCI__STORE_CANDIDATES] +=
            ep->candidates[i / CCI__CONN_SLAB] != NULL && ep->candidates[i / CCI__CONN_SLAB][i % CCI__CONN_SLAB] != NULL;
    }
    with[CCI__STORE_HOT] = hot_count;
    for (kind = 0; kind < CCI__STORES; kind++) {
        REQUIRE(ORACLE_LEAK, pools.store[kind] + with[kind] == ep->stores[kind].made, "node %u: %u of store %d are free, not %u",
                index, pools.store[kind], kind, ep->stores[kind].made - with[kind]);
    }
    HAS_ALL(chunks, all->chunks);
    REQUIRE(ORACLE_LEAK, pools.control >= all->control && (pools.control - all->control) % CCI__DGRAM_CONTROL == 0,
            "node %u: %u events of connections are free", index, pools.control);
    REQUIRE(ORACLE_LEAK, ep->pool.block_out == 0 && ep->pool.large_out == 0 && ep->pool.middle_out == 0 &&
                             ep->pool.block_silent == 0 && ep->pool.large_silent == 0 && ep->pool.middle_silent == 0 &&
                             ep->pool.reassembly_free == ep->pool.reassembly_total &&
                             ep->pool.gap_free == ep->stores[CCI_REL_GAPS].most && ep->pool.record_free == ep->pool.record_total,
            "node %u: counts of blocks, parts, gaps and records", index);
    REQUIRE(ORACLE_LEAK, ep->base.evq.recv_out == 0 && ep->base.evq.free_buffer_count + CCI__DGRAM_BATCH_RX == ep->base.evq.buffer_total,
            "node %u: %u of %u receive buffers are free, %u events out", index, ep->base.evq.free_buffer_count,
            ep->base.evq.buffer_total, ep->base.evq.recv_out);
    REQUIRE(ORACLE_LEAK, ep->backlog == 0 && cci__list_empty(&ep->inbox) && cci__list_empty(&ep->ready) &&
                             cci__list_empty(&ep->soon), "node %u: something is ready though nothing is to be done", index);
}

/* No list is under way, nor has the program an event of one. */
static void check_no_lists(uint32_t index) {
    const cci_lists_t *lists = dgram_of(&nodes[index])->base.api.lists;
    REQUIRE(ORACLE_LEAK, lists == NULL || (cci__list_empty(&lists->waiting) && cci__list_empty(&lists->issued) &&
                                           cci__list_empty(&lists->given) && lists->waiting_count == 0 && lists->stuck_count == 0),
            "node %u: a list is left", index);
}

/* No connection is left: no timer either. */
static void check_empty(uint32_t index) {
    const node_t *node = &nodes[index];
    const cci__dgram_t *ep = dgram_of(node);
    pools_t pools = count_pools(node);
    uint32_t level;
    check_no_lists(index);
    check_idle(index);
    HAS_ALL(store[CCI__STORE_HOT], ep->stores[CCI__STORE_HOT].made);
    REQUIRE(ORACLE_LEAK, ep->base.conns.used == 0 && ep->base.conns.unproven == 0 && ep->base.group_count == 0,
            "node %u: %u connections and %u unproven are left", index, ep->base.conns.used, ep->base.conns.unproven);
    REQUIRE(ORACLE_LEAK, cci__list_empty(&ep->base.wheel.due), "node %u: a timer is left", index);
    for (level = 0; level < CCI__WHEEL_LEVELS; level++) {
        REQUIRE(ORACLE_LEAK, ep->base.wheel.occupied[level] == 0, "node %u: a timer is left", index);
    }
}

#endif /* CCI_SOAK_MODEL_H */
