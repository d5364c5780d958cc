/* test_sisci_hostile.c - the transport over SISCI against a peer that writes whatever it likes into all that it can map.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     test_sisci_hostile                             some hundred rounds
 *     test_sisci_hostile --first SEED --rounds N     these; with --rounds 1, the one that failed
 *
 * In each round an attacker is connected to a victim, and so is an honest bystander. The attacker's bytes go where it can
 * map: the door of the victim, the victim's inbox of their link, the card of its own inbox. Some are random, some are nearly
 * right: records with true sequence numbers and names, acknowledgements, answers, descriptions of RMAs. Nobody may crash
 * (run it with sanitizers), the bystander's messages must all come, once and in order, the victim's memory must stay as it was,
 * and nothing that the bystander sent may be where the attacker can read.
 */
#define CCI_IMPLEMENTATION
#include "tests/support/sisci.h"

#include "tests/support/harness.h"

#define DOOR "77"
#define DOOR_URI "sisci://4:" DOOR

enum { REGION = 100000, STEPS = 150, SECRET = 16 };

static uint64_t first_seed = 1;
static int allocates; /* memory comes from cci_rma_alloc() */
static uint32_t round_count = 200;
static uint32_t attacks_on_open_links, links_lost, forged; /* attacks that find nobody prove nothing */

/* ---- chance ------------------------------------------------------------------------------------------------------------ */

static uint64_t dice;

static uint64_t roll(void) {
    uint64_t z = (dice += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t below(uint32_t end) {
    return (uint32_t)(roll() % end);
}

/* Is this thing a lie? */
static int lie(void);

/* ---- the three ----------------------------------------------------------------------------------------------------------- */

typedef struct arena {
    side_t *victim, *bystander, *attacker;
    cci_connection_t *to_victim, *from_bystander, *attack; /* of the bystander, of the victim with it, of the attacker */
    uint8_t *secret_memory, *shared_memory, *open_memory; /* of the victim: for nobody, the bystander and the attacker */
    cci_rma_handle_t secret, shared, open, attackers;
    uint8_t *attackers_memory, *own_memory; /* own: of the victim, which writes to and reads from the attacker's */
    cci_rma_handle_t *own;
    cci_connection_t *to_attacker;
    uint8_t pattern[SECRET];
    uint32_t sent, received, answered, heard;
    uint32_t care; /* of this round's attacker: it lies in one thing of so many */
} arena_t;

static arena_t arena;

static int lie(void) {
    return below(arena.care) == 0;
}

static cci__sisci *inside(const side_t *side) {
    return (cci__sisci *)(void *)(uintptr_t)side->ep;
}

static cci__sisci_link *attackers_link(void) {
    cci__sisci *ep = inside(arena.attacker);
    cci_list_t *list = cci__list_empty(&ep->links.hot) ? &ep->links.cold : &ep->links.hot;
    return cci__list_empty(list) ? NULL : CCI__CONTAINER(list->next, cci__sisci_link, node);
}

/* The victim's end of the same link. */
static cci__sisci_link *victims_link(const cci__sisci_link *link) {
    cci_list_t *lists[2], *at;
    int i;
    lists[0] = &inside(arena.victim)->links.hot;
    lists[1] = &inside(arena.victim)->links.cold;
    for (i = 0; i < 2; i++) {
        for (at = lists[i]->next; at != lists[i]; at = at->next) {
            cci__sisci_link *its = CCI__CONTAINER(at, cci__sisci_link, node);
            if (link != NULL && its->inbox.id == link->outbox.id && its->outbox.id == link->inbox.id && its->in.base != NULL) {
                return its;
            }
        }
    }
    return NULL;
}

static size_t inbox_size(const cci__sisci_link *link) {
    return ((const struct cci__sci_map *)link->inbox.map)->size_bytes;
}

/* ---- what the bystander and the victim say to each other --------------------------------------------------------------------- */

static uint32_t length_of(uint32_t number) {
    return number % 7 == 3 ? 5000 : 4 + number * 13 % 400;
}

static void fill_message(uint8_t *bytes, uint32_t number) {
    uint32_t i, length = length_of(number);
    for (i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(i < 4 ? number >> 8 * i : arena.pattern[i % SECRET]);
    }
}

static int is_message(const cci_event_t *event, uint32_t number) {
    uint8_t bytes[8192];
    fill_message(bytes, number);
    return event->recv.len == length_of(number) && memcmp(event->recv.ptr, bytes, event->recv.len) == 0;
}

static void send_honestly(cci_connection_t *connection, uint32_t *number) {
    uint8_t bytes[8192];
    int status;
    fill_message(bytes, *number);
    status = cci_send(connection, bytes, length_of(*number), NULL, CCI_FLAG_SILENT);
    TRUE(status == CCI_SUCCESS || status == CCI_ENOBUFS);
    *number += status == CCI_SUCCESS;
}

/* Whatever the attacker's messages are, they lie in memory that can be read. */
static void look_at(const void *bytes, uint32_t length) {
    const volatile uint8_t *at = (const volatile uint8_t *)bytes;
    uint32_t i, sum = 0;
    for (i = 0; i < length; i++) {
        sum += at[i];
    }
    (void)sum;
}

static int victim_gets(side_t *side, cci_event_t *event) {
    (void)side;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        look_at(event->request.data_ptr, event->request.data_len);
        (void)(below(8) ? cci_accept(event, NULL) : cci_reject(event));
        break;
    case CCI_EVENT_RECV:
        TRUE(event->recv.len <= event->recv.connection->max_send_size);
        look_at(event->recv.ptr, event->recv.len);
        if (event->recv.connection == arena.from_bystander) {
            TRUE(is_message(event, arena.received));
            arena.received++;
        } else if (below(2) == 0) {
            static const uint8_t answer[8192];
            (void)cci_send(event->recv.connection, answer, below(2) ? 3 : event->recv.connection->max_send_size, NULL,
                           CCI_FLAG_SILENT);
        }
        break;
    case CCI_EVENT_ACCEPT:
        if (event->accept.status == CCI_SUCCESS && below(8) == 0) {
            (void)cci_disconnect(event->accept.connection);
        } else if (event->accept.status == CCI_SUCCESS) {
            arena.to_attacker = event->accept.connection;
        }
        break;
    default:
        break;
    }
    drop(event);
    return 1;
}

static int bystander_gets(side_t *side, cci_event_t *event) {
    (void)side;
    TRUE(event->type == CCI_EVENT_RECV && is_message(event, arena.heard));
    arena.heard++;
    drop(event);
    return 1;
}

static int attacker_gets(side_t *side, cci_event_t *event) {
    (void)side;
    if (event->type == CCI_EVENT_CONNECT) {
        arena.attack = event->connect.connection;
    } else if (event->type == CCI_EVENT_RECV && below(2)) {
        return 0; /* keeps it */
    }
    drop(event);
    return 1;
}

/* ---- attacks -------------------------------------------------------------------------------------------------------------------- */

static uint32_t interesting(const cci__sisci_link *link, const cci__sisci_link *its) {
    switch (below(10)) {
    case 0: return 0;
    case 1: return UINT32_MAX;
    case 2: return its->in.tail + below(5);
    case 3: return its->in.tail * 2 + 1;
    case 4: return its->out.head + below(3);
    case 5: return its->out.acknowledged * 2 + 1;
    case 6: return link->out.head * 2 + 1;
    case 7: return 1u << below(32);
    case 8: return below(64);
    default: return (uint32_t)roll();
    }
}

/* A name that the victim has for a connection: of this link, or of another. */
static uint32_t some_name(void) {
    cci__sisci *ep = inside(arena.victim);
    cci__sisci_conn *conn = (cci__sisci_conn *)(void *)cci_conn_at(&ep->base.conns, below(4));
    return conn == NULL || lie() ? (uint32_t)roll() : cci__sisci_name(conn);
}

/* Any of the victim's regions, or nonsense. */
static void some_region(cci__sisci_bounce *bounce) {
    const cci_rma_handle_t *handles[3];
    uint32_t which = lie() ? below(4) : 0;
    handles[0] = &arena.open;
    handles[1] = &arena.secret;
    handles[2] = &arena.attackers;
    if (which < 3) {
        cci_rma_parse_handle(handles[which], &bounce->key, &bounce->region);
    } else {
        bounce->key = roll();
        bounce->region = (uint32_t)roll();
    }
    bounce->key ^= lie() ? UINT64_C(1) << below(64) : 0;
    bounce->region += lie() ? below(5000) : 0;
}

/* The bytes of a record, behind its header. */
static uint32_t forge_body(uint8_t *body, uint32_t type) {
    uint32_t words[16], i, length = 16;
    cci__sisci_bounce bounce;
    for (i = 0; i < 16; i++) {
        words[i] = lie() ? (uint32_t)roll() : below(70);
    }
    words[0] = type == CCI__SISCI_BLOCK ? below(lie() ? 300 : 8) : some_name();
    words[2] = lie() ? words[2] : below(3);
    memcpy(body, words, sizeof words);
    if (type == CCI__SISCI_RMA_WRITE || type == CCI__SISCI_RMA_READ) {
        memset(&bounce, 0, sizeof bounce);
        some_region(&bounce);
        bounce.slot = below(lie() ? 1000 : 4);
        bounce.offset = lie() ? roll() : below(REGION);
        bounce.length = lie() ? below(2) ? below(REGION) : (uint32_t)roll() : 1 + below(32768);
        bounce.offset -= !lie() && bounce.offset >= bounce.length ? bounce.length : 0;
        bounce.number = roll();
        memcpy(body, &bounce, sizeof bounce);
        length = sizeof bounce;
    } else if (type == CCI__SISCI_BLOCK) {
        length = lie() ? below(65536) : below(8192);
    } else if (type == CCI__SISCI_MESSAGE || type == CCI__SISCI_REQUEST) {
        length = lie() ? below(4096) : 16 + below(1024);
    }
    return lie() ? below(65536) : length;
}

/* A record where the victim expects the next one, or where the attacker's next one would go. */
static void forge_record(cci__sisci_link *link, const cci__sisci_link *its) {
    uint32_t head = below(4) ? its->in.tail : link->out.head, type = lie() ? below(256) : 1 + below(CCI__SISCI_MAP_REQUEST), length, header[3], lines;
    uint8_t *record = its->in.ring + (size_t)(head & (its->in.lines - 1)) * CCI__SISCI_LINE;
    uint8_t body[64];
    length = forge_body(body, type);
    memcpy(record + CCI__SISCI_HEADER, body, CCI__SISCI_FIRST_LINE);
    forged++;
    header[0] = type | (lie() ? CCI__SISCI_CANCELLED : 0) | (lie() ? 0xfe00 : 0) | length << 16;
    header[1] = some_name();
    header[2] = lie() ? interesting(link, its) : its->out.acknowledged;
    memcpy(record + 4, header, sizeof header);
    cci__sisci_store(record, lie() ? interesting(link, its) : head * 2 + 1);
    lines = type == CCI__SISCI_BLOCK ? 1 : cci__sisci_lines(length);
    if (below(2)) {
        link->out.head = head + lines; /* goes on behind it, as the victim does */
    }
}

/* A word that the victim looks at outside the ring. */
static void forge_word(const cci__sisci_link *link, cci__sisci_link *its) {
    static const uint32_t places[] = {CCI__SISCI_AT_ACK, CCI__SISCI_AT_ACK + 4, CCI__SISCI_AT_ACK + 8, CCI__SISCI_AT_SLEEP,
                                      CCI__SISCI_AT_READY, CCI__SISCI_AT_WATCH};
    uint32_t i = (its->outbox.returned + (lie() ? below(9) : 0)) % CCI__SISCI_RETURNS, block = lie() ? below(256) : below(8);
    switch (below(3)) {
    case 0:
        cci__sisci_store(its->in.base + CCI__SISCI_AT_RETURNS + 4 * i,
                         (lie() ? (uint32_t)roll() >> 8 : (its->outbox.returned + 1) & 0xffffff) << 8 | block);
        break;
    case 1:
        cci__sisci_store_long(its->in.base + CCI__SISCI_AT_DONE + 8 * below(CCI__SISCI_SLOTS),
                              (lie() ? roll() : its->rma.slot_number) << 8 | below(3));
        break;
    default:
        cci__sisci_store(its->in.base + places[below(lie() ? 6 : 2)], lie() ? interesting(link, its) : its->out.acknowledged);
        break;
    }
}

static void scribble(uint8_t *memory, size_t size) {
    uint32_t i, count = 1 + below(64);
    size_t at = below(4) ? roll() % size : roll() % (size < 1024 ? size : 1024);
    if (below(3) == 0) { /* some lines are moved */
        size_t from = roll() % size, length = below(512);
        length = length < size - at ? length : size - at;
        length = length < size - from ? length : size - from;
        memmove(memory + at, memory + from, length);
        return;
    }
    for (i = 0; i < count && at < size; i++, at += 1 + below(9)) {
        memory[at] = (uint8_t)roll();
    }
}

static void attack_inbox(void) {
    cci__sisci_link *link = attackers_link(), *its = victims_link(link);
    uint32_t busy;
    if (its == NULL || its->in.lines == 0) {
        return;
    }
    attacks_on_open_links += its->state == CCI__SISCI_OPEN;
    busy = cci__sisci_load(its->in.base + CCI__SISCI_AT_BUSY);
    if (its->state == CCI__SISCI_OPEN && !lie()) {
        below(3) ? forge_record(link, its) : forge_word(link, its);
    } else {
        scribble(its->in.base, inbox_size(its));
    }
    if (below(1000)) { /* the victim takes a second to find out, so it is rare */
        cci__sisci_store(its->in.base + CCI__SISCI_AT_BUSY, busy);
    }
}

/* Marks of anybody's links are set, or are gone. */
static void attack_marks(void) {
    cci__sisci_listener *door = inside(arena.victim)->entrance.listener;
    uint32_t i, words = below(4) ? 1 : CCI__SISCI_MARKS / 64;
    for (i = 0; i < words; i++) {
        __atomic_store_n(&door->marks[i], below(2) ? roll() : 0, __ATOMIC_RELAXED);
    }
    cci__sisci_store(&door->sleeps, below(2));
}

static void attack_door(void) {
    cci__sisci_listener *door = inside(arena.victim)->entrance.listener;
    uint32_t number = door->interrupt, magic = door->magic; /* without these nobody comes in at all */
    scribble((uint8_t *)door, sizeof *door);
    door->interrupt = number;
    door->magic = magic;
    door->count += below(2);
}

/* Its own inbox, from whose card the victim learns about it. */
static void attack_card(void) {
    cci__sisci_link *link = attackers_link();
    if (link != NULL && link->in.base != NULL && link->state < CCI__SISCI_OPEN && link->join.retry_ns != 0) {
        uint32_t *words = (uint32_t *)(void *)link->in.base, which = 2 + below(sizeof(cci__sisci_card) / 4 - 2);
        if (below(4) == 0) {
            scribble(link->in.base, sizeof(cci__sisci_card));
        } else {
            words[which] = below(2) ? words[which] << (1 + below(4)) : below(2) ? words[which] + below(200) : (uint32_t)roll();
        }
    }
}

static void *get_memory(side_t *side) {
    void *memory = NULL;
    if (!allocates) {
        return need(REGION);
    }
    TRUE(cci_rma_alloc(side->ep, REGION, &memory) == CCI_SUCCESS);
    return memory;
}

/* What the transport gave goes with its endpoint. */
static void put_memory(void *memory) {
    if (!allocates) {
        free(memory);
    }
}

static void come_again(void) {
    side_close(arena.attacker); /* what is registered is served until then */
    if (arena.attackers_memory) {
        put_memory(arena.attackers_memory);
    }
    TRUE(cci_create_endpoint(NULL, 0, &arena.attacker->ep, NULL) == CCI_SUCCESS);
    arena.attacker->handler = attacker_gets;
    arena.attack = NULL;
    arena.attackers_memory = (uint8_t *)get_memory(arena.attacker);
    TRUE(cci_rma_register(arena.attacker->ep, arena.attackers_memory, REGION, CCI_FLAG_READ | CCI_FLAG_WRITE,
                          (cci_rma_handle_t **)&arena.attacker->user) == CCI_SUCCESS);
    memcpy((void *)&arena.attackers, arena.attacker->user, sizeof arena.attackers);
    TRUE(cci_connect(arena.attacker->ep, DOOR_URI, "let me in", 9, below(2) ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_UU, NULL, 0,
                     NULL) == CCI_SUCCESS);
    if (below(8)) { /* else the handshake is attacked in every way */
        int rounds, attacks_card = below(4) == 0;
        for (rounds = 0; rounds < 2000 && arena.attack == NULL; rounds++) {
            if (attacks_card && below(8) == 0) {
                attack_card();
                attacks_card = below(4) == 0;
            }
            poll_all();
        }
    }
}

/* Something that an honest peer might do too, with whatever has become of its link. */
static void go_on(void) {
    static const uint8_t bytes[8192];
    cci_connection_t *connection = arena.attack;
    cci_rma_handle_t *local = (cci_rma_handle_t *)arena.attacker->user;
    if (connection == NULL) {
        return;
    }
    switch (below(4)) {
    case 0:
        (void)cci_send(connection, bytes, below(2) ? below(400) : below(8000), NULL, CCI_FLAG_SILENT);
        break;
    case 1:
        (void)cci_rma(connection, NULL, 0, local, 0, below(2) ? &arena.open : &arena.secret, below(REGION), 1 + below(999),
                      NULL, CCI_FLAG_SILENT | (below(2) ? CCI_FLAG_READ : CCI_FLAG_WRITE));
        break;
    case 2:
        (void)cci_connect(arena.attacker->ep, DOOR_URI, NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, NULL);
        break;
    default:
        if (below(8) == 0) {
            (void)cci_disconnect(connection);
            arena.attack = NULL;
        }
        break;
    }
}

static void attack(void) {
    const cci__sisci_link *link = attackers_link(), *its = victims_link(link);
    if ((link == NULL || link->state >= CCI__SISCI_OPEN) && (its == NULL || its->state == CCI__SISCI_LOST) && below(3) == 0) {
        links_lost++;
        come_again();
    }
    switch (below(16)) {
    case 0: below(2) ? attack_door() : attack_marks(); break;
    case 1:
    case 2: attack_card(); break;
    case 3:
    case 4:
    case 5:
    case 6: go_on(); break;
    case 7:
        if (below(16) == 0) {
            come_again();
        }
        break;
    default: attack_inbox(); break;
    }
}

/* The victim writes to the attacker and reads from it, with a handle that the attacker gave. */
static void reach_out(void) {
    cci_rma_handle_t its = arena.attackers;
    if (arena.to_attacker == NULL) {
        return;
    }
    if (lie()) {
        ((uint64_t *)(void *)&its)[below(4)] ^= below(2) ? UINT64_C(1) << below(64) : roll();
    }
    (void)cci_rma(arena.to_attacker, "so", 2, arena.own, below(REGION / 2), &its, lie() ? roll() : below(REGION / 2),
                  1 + below(REGION / 2), NULL, below(2) ? CCI_FLAG_READ : CCI_FLAG_WRITE);
}

/* ---- a round ------------------------------------------------------------------------------------------------------------------------ */

static void *make_memory(side_t *side, int flags, cci_rma_handle_t *handle, uint64_t seed) {
    void *memory = get_memory(side);
    cci_rma_handle_t *registered;
    fill(memory, REGION, seed);
    TRUE(cci_rma_register(side->ep, memory, REGION, flags, &registered) == CCI_SUCCESS);
    memcpy((void *)handle, (const void *)registered, sizeof *handle);
    return memory;
}

static void open_arena(uint64_t seed) {
    static const int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
    pair_t pair;
    uint32_t i;
    memset(&arena, 0, sizeof arena);
    dice = seed;
    arena.care = 4u << below(5);
    for (i = 0; i < SECRET; i++) {
        arena.pattern[i] = (uint8_t)roll();
    }
    arena.victim = side_open_at(NULL, DOOR);
    arena.bystander = side_open();
    arena.attacker = side_open();
    pair = connect_sides(arena.bystander, arena.victim, CCI_CONN_ATTR_RO);
    arena.to_victim = pair.ac;
    arena.from_bystander = pair.bc;
    arena.secret_memory = (uint8_t *)make_memory(arena.victim, 0, &arena.secret, seed);
    arena.shared_memory = (uint8_t *)make_memory(arena.victim, both, &arena.shared, seed + 1);
    arena.open_memory = (uint8_t *)make_memory(arena.victim, both, &arena.open, seed + 2);
    arena.own_memory = (uint8_t *)get_memory(arena.victim);
    TRUE(cci_rma_register(arena.victim->ep, arena.own_memory, REGION, 0, &arena.own) == CCI_SUCCESS);
    arena.victim->handler = victim_gets;
    arena.bystander->handler = bystander_gets;
    come_again();
}

/* Nothing of the bystander's is in what the attacker can map. */
static void search(const uint8_t *memory, size_t size) {
    TRUE(memory == NULL || memmem(memory, size, arena.pattern, SECRET) == NULL);
}

static void close_arena(void) {
    cci__sisci_link *link, *its;
    patience_t patience = be_patient();
    while (arena.received < arena.sent || arena.heard < arena.answered) {
        poll_all();
        still_patient(&patience, "the bystander's messages");
    }
    link = attackers_link(); /* which may be another one by now */
    its = victims_link(link);
    if (link != NULL && link->in.base != NULL) {
        search(link->in.base, inbox_size(link));
    }
    if (its != NULL) {
        search(its->in.base, inbox_size(its));
    }
    TRUE(holds_pattern(arena.secret_memory, REGION, first_seed));
    TRUE(holds_pattern(arena.shared_memory, REGION, first_seed + 1));
    TRUE(cci_rma_deregister(arena.victim->ep, arena.own) == CCI_SUCCESS);
    while (side_count > 0) {
        side_close(&sides[--side_count]);
    }
    put_memory(arena.own_memory);
    put_memory(arena.secret_memory);
    put_memory(arena.shared_memory);
    put_memory(arena.open_memory);
    put_memory(arena.attackers_memory);
}

static int begin(void **state) {
    const char *mode = *state ? (const char *)*state : "auto";
    if (setup(state) != 0) {
        return -1;
    }
    alarm(0);
    on_sisci = 1;
    patience_s = 60;
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\nring = 4096\nblocks = 8\nrma = %s\n", mode);
    allocates = strcmp(mode, "map") == 0;
    return begin_test(state);
}

static int finish(void **state) {
    int ended = end_test(state);
    close_device(open_device());
    return teardown(state) == 0 ? ended : -1;
}

static void run_rounds(void) {
    unsigned int descriptors = count_descriptors(), names = count_names(NULL);
    size_t blocks = live_blocks;
    uint32_t i;
    int step;
    for (i = 0; i < round_count; i++, first_seed++) {
        alarm(60);
        fprintf(stderr, "\rseed %llu", (unsigned long long)first_seed); /* the last one is to be replayed */
        open_arena(first_seed);
        for (step = 0; step < STEPS; step++) {
            if (below(4) == 0) {
                send_honestly(arena.to_victim, &arena.sent);
            }
            if (below(4) == 0) {
                send_honestly(arena.from_bystander, &arena.answered);
            }
            attack();
            if (below(8) == 0) {
                reach_out();
            }
            poll_all();
        }
        close_arena();
        TRUE(count_descriptors() == descriptors && count_names(NULL) == names && live_blocks == blocks);
        log_text[0] = '\0';
    }
    fprintf(stderr, ": %u attacks on open links, %u records forged, %u links lost\n", attacks_on_open_links, forged, links_lost);
    TRUE(attacks_on_open_links >= round_count && forged >= round_count && links_lost >= round_count / 2);
    attacks_on_open_links = forged = links_lost = 0;
    alarm(0);
}

static void a_peer_that_scribbles_over_all_it_can_map_harms_nobody(void **state) {
    (void)state;
    run_rounds();
}

static void nor_where_memory_is_reached_through_the_inboxes(void **state) {
    (void)state;
    run_rounds();
}

static void nor_where_peers_map_memory(void **state) {
    (void)state;
    run_rounds();
}

/* ---- one by one ----------------------------------------------------------------------------------------------------------------- */

/* The peer says that blocks of its inbox are free again, by their numbers: one that it does not have would make us write
 * behind its inbox. */
static void a_block_that_the_peer_does_not_have_is_never_written_to(void **state) {
    static const uint32_t numbers[] = {8, 9, 63, 64, 200, 255}; /* it has 8 */
    static const uint8_t bytes[5000];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        side_t *liar = side_open(), *victim = side_open();
        pair_t pair = connect_sides(victim, liar, CCI_CONN_ATTR_RO);
        cci__sisci_link *link = ((cci__sisci_conn *)(void *)(uintptr_t)pair.ac)->link;
        uint32_t *word = (uint32_t *)(void *)(link->in.base + CCI__SISCI_AT_RETURNS), sent = 0;
        liar->deaf = 1;
        while (link->outbox.free_count > 0) {
            TRUE(cci_send(pair.ac, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
            sent++;
        }
        TRUE(sent == 8 && link->outbox.returned == 0 && *word == 0);
        cci__sisci_store(word, 1u << 8 | numbers[i]);
        TRUE(cci_send(pair.ac, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS); /* waits for a block */
        AWAIT(link->state == CCI__SISCI_LOST);
        TRUE(link->outbox.free_count == 0);
        AWAIT(cci_send(pair.ac, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
        side_close(victim);
        side_close(liar);
        side_count -= 2;
    }
}

/* ---- at the same time --------------------------------------------------------------------------------------------------------------- */

#ifndef CCI_NO_THREADS
typedef struct scribbler {
    pthread_t thread;
    uint8_t *memory;
    uint64_t dice;
    int stop;
} scribbler_t;

/* What was checked may be something else when it is used. */
static void *scribble_on(void *argument) {
    scribbler_t *s = (scribbler_t *)argument;
    uint64_t i = s->dice;
    while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
        uint32_t *word = (uint32_t *)(void *)(s->memory + CCI__SISCI_AT_RING) + (i >> 33) % (4096 / 4);
        uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
        i = i * 6364136223846793005u + 1442695040888963407u;
        __atomic_store_n(word, i & 1u << 20 ? old ^ 1u << (i >> 27 & 31) : (uint32_t)(i >> 29), __ATOMIC_RELAXED);
        __atomic_store_n(word, old, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void what_changes_while_it_is_read_harms_nobody(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < round_count / 10 + 1; i++) {
        scribbler_t s;
        cci__sisci_link *its;
        int step;
        alarm(60);
        open_arena(first_seed);
        AWAIT(attackers_link() != NULL && attackers_link()->state == CCI__SISCI_OPEN);
        its = victims_link(attackers_link());
        memset(&s, 0, sizeof s);
        s.memory = its->in.base;
        s.dice = roll();
        its->inbox.held++; /* so that the memory stays while the thread writes */
        TRUE(pthread_create(&s.thread, NULL, scribble_on, &s) == 0);
        for (step = 0; step < STEPS * 4; step++) {
            if (below(8) == 0) {
                send_honestly(arena.to_victim, &arena.sent);
            }
            if (its->state == CCI__SISCI_OPEN) {
                go_on();
                if (attackers_link() != NULL) forge_record(attackers_link(), its);
            }
            poll_all();
        }
        __atomic_store_n(&s.stop, 1, __ATOMIC_RELAXED);
        TRUE(pthread_join(s.thread, NULL) == 0);
        its->inbox.held--;
        close_arena();
    }
    alarm(0);
}
#endif

int main(int argc, char **argv) {
    static char bounce[] = "bounce", map[] = "map";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_peer_that_scribbles_over_all_it_can_map_harms_nobody, begin, finish),
        cmocka_unit_test_prestate_setup_teardown(nor_where_memory_is_reached_through_the_inboxes, begin, finish, bounce),
        cmocka_unit_test_prestate_setup_teardown(nor_where_peers_map_memory, begin, finish, map),
        cmocka_unit_test_setup_teardown(a_block_that_the_peer_does_not_have_is_never_written_to, begin, finish),
#ifndef CCI_NO_THREADS
        cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_harms_nobody, begin, finish),
#endif
    };
    int i;
    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--first") == 0) {
            first_seed = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0) {
            round_count = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        }
    }
    return cmocka_run_group_tests_name("test_sisci_hostile", tests, NULL, NULL);
}
