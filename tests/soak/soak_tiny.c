/* soak_tiny.c - the smallest engine (CCI_TINY), full ones and each other on a bad network, in virtual time.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     soak_tiny [--first SEED] [--seeds N] [--seconds N]
 *
 * In each run three programs connect to each other, send messages, move memory, close, and are killed and started again, while the
 * network loses, repeats, changes and delays datagrams. What must hold: each message comes once at most, unchanged, on ordered
 * connections in order, and behind the bytes that it goes with; each operation ends once; what ended with success is there; when the
 * network is good again everything ends, and what is said then arrives; no memory is left. A seed decides everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/soak/soak_tiny.h"

extern const struct profile full_profile, tiny_profile, bare_profile, small_profile;

#define QUEUE 128u
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)
#define SUCCESS 0

typedef struct datagram {
    uint64_t at_ns;
    uint32_t length, from, to, is_there;
    uint8_t bytes[2048];
} datagram_t;

uint64_t tiny_now_ns;
uint32_t tiny_mtu, tiny_talk_count, tiny_op_count;
int tiny_sealed;
talk_t tiny_talks[TALKS];
op_t tiny_ops[OPS];
uint8_t tiny_offered[NODES][2][OFFERED];
uint32_t tiny_writer[NODES];
uint8_t tiny_handles[NODES][32];
int tiny_has_handle[NODES];

static datagram_t queue[QUEUE];
static uint32_t queued, loss, repeat, change, late; /* per mille */
static int is_cut[NODES], is_paused[NODES], is_closing;
static uint64_t seed, random_state;
static const struct profile *profiles[NODES];
static node_t *nodes[NODES];
static uint32_t incarnations;
static unsigned long messages, moves, kills, connections;

uint32_t tiny_below(uint32_t limit) {
    random_state ^= random_state >> 12, random_state ^= random_state << 25, random_state ^= random_state >> 27;
    return (uint32_t)((random_state * UINT64_C(0x2545F4914F6CDD1D)) >> 33) % limit;
}

static int happens(uint32_t per_mille) {
    return tiny_below(1000) < per_mille;
}

void tiny_fail(const char *what, uint32_t value) {
    printf("FAIL: %s (%lu) at %.6f s\nreplay: soak_tiny --first %llu --seeds 1\n", what, (unsigned long)value, (double)tiny_now_ns / 1e9,
           (unsigned long long)seed);
    exit(1);
}

/* ---- the network -------------------------------------------------------------------------------------------------------- */

static void put(uint32_t from, uint32_t to, const uint8_t *bytes, uint32_t length) {
    uint32_t i = 0;
    while (i < QUEUE && queue[i].is_there) {
        i++;
    }
    if (i == QUEUE || happens(loss)) {
        return;
    }
    queue[i].at_ns = tiny_now_ns + MS / 2 + tiny_below(1000000) + (happens(late) ? tiny_below(300) * MS : 0);
    queue[i].length = length;
    queue[i].from = from;
    queue[i].to = to;
    queue[i].is_there = 1;
    queued++;
    memcpy(queue[i].bytes, bytes, length);
    if (happens(change)) {
        queue[i].bytes[tiny_below(length)] ^= (uint8_t)(1 + tiny_below(255));
    }
}

void tiny_send(uint32_t from, uint32_t to, const uint8_t *bytes, uint32_t length) {
    if (is_cut[from] || to >= NODES || is_cut[to]) {
        return;
    }
    put(from, to, bytes, length);
    if (happens(repeat)) {
        put(from, to, bytes, length);
    }
}

uint32_t tiny_receive(uint32_t at, uint32_t *from, uint8_t *bytes, uint32_t capacity) {
    datagram_t *first = NULL;
    uint32_t i;
    for (i = 0; i < QUEUE && queued > 0; i++) {
        if (queue[i].is_there && queue[i].to == at && queue[i].at_ns <= tiny_now_ns && (!first || queue[i].at_ns < first->at_ns)) {
            first = &queue[i];
        }
    }
    if (!first) {
        tiny_now_ns += is_closing ? MS : 0; /* who is destroyed waits for answers */
        return 0;
    }
    first->is_there = 0;
    queued--;
    if (first->length > capacity) {
        return 0;
    }
    *from = first->from;
    memcpy(bytes, first->bytes, first->length);
    return first->length;
}

/* When the next datagram arrives, or it is time to look for what is due. */
static uint64_t next_ns(void) {
    uint64_t at_ns = tiny_now_ns + 10 * MS;
    uint32_t i;
    for (i = 0; i < QUEUE && queued > 0; i++) {
        if (queue[i].is_there && !is_paused[queue[i].to] && queue[i].at_ns < at_ns) {
            at_ns = queue[i].at_ns;
        }
    }
    return at_ns > tiny_now_ns + MS / 10 ? at_ns : tiny_now_ns + MS / 10;
}

static void run_for(uint64_t ns) {
    uint64_t end_ns = tiny_now_ns + ns;
    uint32_t i;
    while (tiny_now_ns < end_ns) {
        tiny_now_ns = next_ns();
        for (i = 0; i < NODES; i++) {
            if (!is_paused[i]) {
                profiles[i]->work(nodes[i]);
            }
        }
    }
}

/* ---- what is done -------------------------------------------------------------------------------------------------------- */

static int is_alive(const side_t *side) {
    return side->state == SIDE_OPEN && nodes[side->node] != NULL;
}

static side_t *any_side(void) {
    uint32_t tries, draw;
    for (tries = 0; tries < 20 && tiny_talk_count > 0; tries++) {
        side_t *side;
        draw = tiny_below(tiny_talk_count < 12 ? tiny_talk_count : 12);
        side = &tiny_talks[tiny_talk_count - 1 - draw].side[tiny_below(2)];
        if (is_alive(side)) {
            return side;
        }
    }
    return NULL;
}

static void connect_two(uint32_t from, uint32_t to) {
    talk_t *talk = &tiny_talks[tiny_talk_count];
    uint32_t at;
    if (tiny_talk_count + 1 == TALKS || from == to) {
        return;
    }
    memset(talk, 0, sizeof *talk);
    talk->attribute = (int)tiny_below(2);
    for (at = 0; at < 2; at++) {
        talk->side[at].node = at ? to : from;
        talk->side[at].talk = tiny_talk_count;
        talk->side[at].at = at;
    }
    profiles[from]->connect(nodes[from], to, tiny_talk_count++);
    connections++;
}

static void close_node(uint32_t index) {
    is_closing = 1;
    profiles[index]->close(nodes[index]);
    is_closing = 0;
}

/* A program dies without a word, or with one, and another takes its place. */
static void replace(uint32_t index) {
    uint32_t i, at;
    is_cut[index] = happens(700);
    close_node(index);
    is_cut[index] = 0;
    nodes[index] = NULL;
    for (i = 0; i < tiny_talk_count; i++) {
        for (at = 0; at < 2; at++) {
            side_t *side = &tiny_talks[i].side[at];
            if (side->node == index && side->state == SIDE_OPEN) {
                side->state = SIDE_CLOSED;
            }
        }
        tiny_talks[i].is_connecting &= tiny_talks[i].side[0].node != index;
    }
    for (i = 0; i < NODES; i++) {
        uint32_t op = tiny_writer[i];
        if (op != 0 && tiny_talks[tiny_ops[op - 1].talk].side[tiny_ops[op - 1].at].node == index) {
            tiny_writer[i] = 0;
            tiny_has_handle[i] = tiny_has_handle[i] && i == index; /* it may still come late */
        }
    }
    nodes[index] = profiles[index]->open(index, ++incarnations);
    kills++;
}

static void disturb(void) {
    uint32_t index = tiny_below(NODES);
    switch (tiny_below(8)) {
    case 0:
        is_cut[index] = !is_cut[index];
        break;
    case 1:
        is_paused[index] = !is_paused[index];
        break;
    case 2:
        if (happens(300)) {
            replace(index);
        }
        break;
    default:
        loss = tiny_below(2) * tiny_below(300);
        repeat = tiny_below(2) * tiny_below(200);
        change = tiny_below(2) * tiny_below(100);
        late = tiny_below(2) * tiny_below(200);
        break;
    }
}

static void act(void) {
    side_t *side = any_side();
    uint32_t times;
    switch (side == NULL ? 0 : tiny_below(12)) {
    case 0:
        connect_two(tiny_below(NODES), tiny_below(NODES));
        break;
    case 1:
        if (happens(300) && !is_paused[side->node]) {
            profiles[side->node]->close_side(nodes[side->node], side);
        }
        break;
    case 2:
    case 3:
    case 4:
        moves++;
        profiles[side->node]->move(nodes[side->node], side, tiny_below(2) ? OP_WRITE : OP_READ, happens(400), happens(300));
        break;
    case 5:
        disturb();
        break;
    default:
        for (times = 1 + tiny_below(5); times > 0; times--) {
            messages++;
            profiles[side->node]->send(nodes[side->node], side, tiny_below(2) ? tiny_below(2000) : tiny_below(20),
                                       (happens(300) ? SEND_SILENT : 0) | (happens(100) ? SEND_FENCED : 0), 0);
        }
        break;
    }
}

/* ---- calm ------------------------------------------------------------------------------------------------------------------ */

static uint32_t count_open(void) {
    uint32_t i, at, count = 0;
    for (i = 0; i < tiny_talk_count; i++) {
        for (at = 0; at < 2; at++) {
            count += tiny_talks[i].side[at].state == SIDE_OPEN ? tiny_talks[i].side[at].open_ops : 0;
        }
        count += (uint32_t)tiny_talks[i].is_connecting;
    }
    return count;
}

/* What ended with success has come, as far as both sides are there. */
static void check_arrived(void) {
    uint32_t i;
    for (i = 0; i < tiny_op_count; i++) {
        const op_t *op = &tiny_ops[i];
        const talk_t *talk = &tiny_talks[op->talk];
        if (!is_alive(&talk->side[0]) || !is_alive(&talk->side[1]) || (op->kind != OP_SEND && op->number == UINT32_MAX)) {
            continue;
        }
        if (!op->was_delivered && op->is_done && op->status == SUCCESS) { /* what is silent may be given up in silence */
            tiny_fail("a message was sent and never came", i);
        }
    }
}

static void calm(void) {
    uint32_t i, at;
    loss = repeat = change = late = 0;
    memset(is_cut, 0, sizeof is_cut);
    memset(is_paused, 0, sizeof is_paused);
    run_for(2 * SEC);
    for (i = 0; i < 40 && count_open() > 0; i++) {
        run_for(SEC);
    }
    if (count_open() > 0) {
        tiny_fail("what is under way has not ended", count_open());
    }
    run_for(10 * SEC); /* numbers that were withdrawn are repeated after pauses too, and what was kept waits for them */
    check_arrived();
    for (i = 0; i < tiny_talk_count; i++) {
        for (at = 0; at < 2; at++) {
            side_t *side = &tiny_talks[i].side[at];
            if (is_alive(side) && is_alive(&tiny_talks[i].side[!at])) {
                profiles[side->node]->send(nodes[side->node], side, 5, 0, 1);
                run_for(20 * MS);
            }
        }
    }
    run_for(4 * SEC);
    if (count_open() > 0) {
        tiny_fail("what is said on a good network does not end", count_open());
    }
    check_arrived();
}

static void run_seed(void) {
    static const struct profile *const all[] = {&full_profile, &tiny_profile, &bare_profile};
    uint32_t i, steps, gap_ms;
    memset(queue, 0, sizeof queue);
    queued = tiny_talk_count = tiny_op_count = incarnations = 0;
    memset(tiny_writer, 0, sizeof tiny_writer);
    random_state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    for (i = 0; i < 8; i++) {
        (void)tiny_below(2);
    }
    tiny_now_ns = SEC;
    tiny_sealed = seed % 3 == 2;
    tiny_mtu = 260u + (tiny_sealed ? 16u : 0u) + 8 * tiny_below(120);
    loss = repeat = change = late = 0;
    for (i = 0; i < NODES; i++) {
        profiles[i] = i < 2 ? all[i ^ (seed & 1)] : all[tiny_below(3)];
        if ((seed & 4) && i < 2 && profiles[i] == &full_profile) profiles[i] = &small_profile; /* with a full one beside it, or none */
        if (tiny_sealed && profiles[i] == &bare_profile) profiles[i] = &tiny_profile; /* which can */
        nodes[i] = profiles[i]->open(i, ++incarnations);
    }
    steps = 50 + tiny_below(300);
    gap_ms = tiny_below(3) ? 20 : 200;
    for (i = 0; i < steps; i++) {
        act();
        run_for((1 + tiny_below(2 * gap_ms)) * MS);
        if (i % 100 == 99) {
            calm();
        }
    }
    calm();
    for (i = 0; i < NODES; i++) {
        close_node(i);
    }
    for (i = 0; i < 3; i++) {
        if (all[i]->blocks_left() != 0) {
            tiny_fail("memory or a key is left, or a nonce came twice", i);
        }
    }
}

int main(int argc, char **argv) {
    unsigned long seeds = 20, seconds = 0, done;
    time_t began = time(NULL);
    int i;
    seed = 1;
    for (i = 1; i + 1 < argc; i += 2) {
        unsigned long long value = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--first") == 0) {
            seed = value;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = (unsigned long)value;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            seconds = (unsigned long)value;
        } else {
            fprintf(stderr, "usage: soak_tiny [--first SEED] [--seeds N] [--seconds N]\n");
            return 2;
        }
    }
    for (done = 0; seconds ? time(NULL) - began < (time_t)seconds : done < seeds; done++, seed++) {
        run_seed();
    }
    printf("%lu seeds: %lu connections, %lu messages and %lu moves tried, %lu programs replaced\n", done, connections, messages, moves, kills);
    return 0;
}
