/* small.c - small and full profiles of the library talk to each other over a bad network in virtual time.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Each pair exchanges messages and, where both can, moves memory. Then the client dies without a word, and another at the same
 * address takes its place. Usage: small SEEDS [FIRST [LOSS]]; prints what failed and with which seed. LOSS is the per cent of
 * datagrams that are lost; as many come twice, and as many are changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/small_side.h"

extern const struct side full_side, small_side, least_side, small_asks_side, small_serves_side, tiny_side, bare_side, asks_side,
    serves_side;

#define QUEUE 64u
#define SIDES 9

typedef struct datagram {
    uint64_t at_ns;
    uint32_t length;
    uint8_t from, to, bytes[2048];
} datagram_t;

uint64_t small_now_ns;
uint32_t small_mtu;
int small_sealed;
static datagram_t queue[QUEUE];
static uint32_t under_way; /* so many of them, from the first on */
static uint32_t bad; /* per cent of datagrams that are lost, as many come twice, and as many are changed */
static int loss = -1;
static uint64_t random_state;

static uint32_t below(uint32_t most) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % most;
}

static void put(uint8_t from, uint8_t to, const uint8_t *bytes, uint32_t length) {
    uint32_t i = under_way;
    if (i == QUEUE) return; /* lost */
    under_way++;
    queue[i].at_ns = small_now_ns + 1000000 + below(bad > 0 ? 3000000 : 1);
    queue[i].length = length;
    queue[i].from = from;
    queue[i].to = to;
    memcpy(queue[i].bytes, bytes, length);
    if (below(100) < bad) queue[i].bytes[below(length)] ^= (uint8_t)(1 + below(255));
}

void small_send(uint8_t from, uint8_t to, const uint8_t *bytes, uint32_t length) {
    if (below(100) < bad) return;
    put(from, to, bytes, length);
    if (below(100) < bad) put(from, to, bytes, length);
}

/* The earliest that has arrived. */
uint32_t small_receive(uint8_t at, uint8_t *from, uint8_t *bytes, uint32_t capacity) {
    datagram_t *first = NULL;
    uint32_t i, length;
    for (i = 0; i < under_way; i++)
        if (queue[i].to == at && queue[i].at_ns <= small_now_ns && (!first || queue[i].at_ns < first->at_ns)) first = &queue[i];
    if (!first) return 0;
    length = first->length <= capacity ? first->length : 0;
    *from = first->from;
    memcpy(bytes, first->bytes, length);
    *first = queue[--under_way];
    return length;
}

/* Works until both are done with what they have to do; a text when something is wrong. */
static const char *talk(const struct side *server_side, end_t *server, const struct side *client_side, end_t *client) {
    uint64_t until_ns = small_now_ns + (2 + MESSAGES / 30) * UINT64_C(60000000000);
    for (; small_now_ns < until_ns; small_now_ns += 500000) {
        server_side->work(server);
        client_side->work(client);
        if (server_side->state(server)->failure) return server_side->state(server)->failure;
        if (client_side->state(client)->failure) return client_side->state(client)->failure;
        if (server_side->state(server)->done && client_side->state(client)->done) return NULL;
    }
    fprintf(stderr, "server has %u, client %u messages; %u connected\n", (unsigned)server_side->state(server)->received,
            (unsigned)client_side->state(client)->received, (unsigned)client_side->state(client)->connected);
    return "the time is over";
}

static const char *pair(const struct side *server_side, const struct side *client_side, int seed) {
    end_t *server, *client, *second;
    const char *failure;
    int i;
    under_way = 0;
    random_state = 88172645463325252u + (uint64_t)seed * 7919u;
    small_now_ns = 1000000000;
    small_sealed = seed / 2 % 2 && server_side->seals && client_side->seals;
    small_mtu = 260u + 16u * (uint32_t)small_sealed + (seed % 3 == 2 ? 8 * below(120) : 0);
    bad = seed % 4 == 0 ? 0 : below(12);
    if (loss >= 0) bad = (uint32_t)loss;
    server = server_side->open('s', '\0', 0, seed);
    client = client_side->open('c', 's', seed % 2, seed);
    failure = talk(server_side, server, client_side, client);
    if (!failure) { /* the client falls silent; what is on its way to it is lost */
        for (i = 0; i < (int)under_way;) {
            if (queue[i].to == 'c') queue[i] = queue[--under_way];
            else i++;
        }
        second = client_side->open('c', 's', seed % 2, seed + 1);
        if (seed % 3 == 0) server_side->work(server);
        failure = talk(server_side, server, client_side, second);
        client_side->close(second);
    }
    client_side->close(client);
    server_side->close(server);
    if (!failure && (server_side->blocks_left() != 0 || client_side->blocks_left() != 0)) failure = "memory or a key is left, or a nonce came twice";
    return failure;
}

/* The server's program keeps what it gets for longer than the client's messages have time, and then gives it back. */
static const char *keeping(const struct side *server_side, const struct side *client_side, int seed) {
    end_t *server, *client;
    const char *failure;
    uint32_t kept, refused;
    uint64_t until_ns;
    under_way = bad = 0;
    small_sealed = 0;
    small_mtu = 260;
    server = server_side->open('s', '\0', 0, seed);
    server_side->keep(server, 1);
    client = client_side->open('c', 's', seed % 2, seed);
    client_side->keep(client, 1);
    failure = talk(server_side, server, client_side, client);
    kept = server_side->state(server)->received;
    refused = client_side->state(client)->refused;
    if (!failure && (refused == 0 || kept + refused != KEPT_MESSAGES)) failure = "what was refused came, or what was not did not";
    server_side->keep(server, 2);
    client_side->keep(client, 2);
    if (!failure) failure = talk(server_side, server, client_side, client);
    for (until_ns = small_now_ns + UINT64_C(10000000000); !failure && small_now_ns < until_ns; small_now_ns += 500000) {
        server_side->work(server); /* what was refused may have to be cancelled first */
        client_side->work(client);
    }
    if (!failure && server_side->state(server)->received != kept + 1) failure = "a message to a server with buffers did not come";
    client_side->close(client);
    server_side->close(server);
    return failure;
}

/* Who is no server says so to clients. */
static const char *refusal(const struct side *server_side, const struct side *client_side, int seed) {
    end_t *server, *client;
    const char *failure;
    under_way = bad = 0;
    small_sealed = 0;
    server = server_side->open('s', '\0', 0, seed);
    client = client_side->open('c', 's', seed % 2, seed);
    (void)talk(server_side, server, client_side, client);
    failure = client_side->state(client)->refused == 1 ? NULL : "it is not refused";
    client_side->close(client);
    server_side->close(server);
    return failure;
}

/* Small profiles have other datagrams than tiny ones. */
static int is_small(const struct side *side) {
    return side == &small_side || side == &least_side || side == &small_asks_side || side == &small_serves_side;
}

int main(int argc, char **argv) {
    static const struct side *const sides[SIDES] = {&full_side,         &small_side, &least_side, &small_asks_side,
                                                     &small_serves_side, &tiny_side,  &bare_side,  &asks_side,
                                                     &serves_side};
    static const char *const names[SIDES] = {"full", "small", "least", "small clients'", "small servers'", "tiny", "bare",
                                             "clients'", "servers'"};
    int seeds = argc > 1 ? atoi(argv[1]) : 10, first = argc > 2 ? atoi(argv[2]) : 0, seed, i, failures = 0;
    if (argc > 3) loss = atoi(argv[3]);
    for (i = 1; i < SIDES * SIDES; i++) {
        const struct side *server = sides[i / SIDES], *client = sides[i % SIDES];
        const char *failure = NULL;
        const int refuses = server == &asks_side || server == &small_asks_side;
        if (client == &serves_side || client == &small_serves_side || (is_small(server) && !is_small(client) && client != &full_side) ||
            (is_small(client) && !is_small(server) && server != &full_side))
            continue;
        for (seed = first; seed < first + seeds && !failure; seed++)
            failure = refuses ? refusal(server, client, seed) : pair(server, client, seed);
        for (seed = 0; seed < 2 && !failure && !refuses; seed++) failure = keeping(server, client, seed);
        if (failure)
            printf("FAIL: %s server, %s client, seed %d: %s\n", names[i / SIDES], names[i % SIDES], seed - 1, failure);
        else
            printf("ok: %s server, %s client\n", names[i / SIDES], names[i % SIDES]);
        failures += failure != NULL;
    }
    return failures > 0;
}
