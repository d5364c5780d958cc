/* fuzz.c - fuzz targets for everything that takes bytes from outside.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     live        packets into a live connection: valid ones in flight are changed, made-up ones have the right token;
 *                 plain, with a checksum, or sealed, and then mostly by an enemy who has the key
 *     handshake   packets of the handshake to an endpoint that listens and to one that connects
 *     rma         READ, DATA and DENIED frames, and the 32 bytes of a handle, into the layer >>rma alone
 *     config      the text of a configuration
 *     uri         what cci_connect() and cci_create_endpoint_at() take as a name; no name service is asked
 *     card        questions and answers where the queue pair of a host's endpoint is, as cci_verbs.h has them
 *
 * Besides what sanitizers see, each run checks: memory outside what was registered, and inside it where nobody may write, is
 * untouched; each operation completes once, and all of them when the network is gone; what was lent from the endpoint's
 * pools is back when the last connection is closed; nothing is left allocated after cci_finalize(); no call sends more
 * than a bounded number of datagrams; an address that proved nothing is sent no more bytes than came from it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <netdb.h>
#include <stddef.h>
#include <sys/socket.h>

/* Names are parsed, not looked up: the resolver sees numbers alone. */
static int fuzz_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    return host == NULL || !(hints->ai_flags & AI_NUMERICHOST) ? EAI_NONAME : getaddrinfo(host, service, hints, list);
}
#define getaddrinfo fuzz_getaddrinfo

/* What the target `card` sends is looked at, and goes nowhere. */
enum { CARD_SOCKET = 1 << 20 };
static ssize_t look_at_sent_card(const void *bytes, size_t length, const struct sockaddr *to);
static ssize_t fuzz_sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    return fd == CARD_SOCKET ? look_at_sent_card(bytes, length, to) : sendto(fd, bytes, length, flags, to, size);
}
#define sendto fuzz_sendto

#define CCI_IMPLEMENTATION
#include "cci_udp.h"

/* Its functions are called one by one: it is no transport of the endpoints here. */
#include "cci_verbs.h"
#undef CCI_TRANSPORT_2

#include "cci.h"

#include "tests/fuzz/fuzz.h"

/* ================================================================================================================== *
 * Two endpoints and the network between them
 * ================================================================================================================== */

enum {
    SIDES = 2,
    FLYING_MAX = 64,
    OLD_MAX = 16,
    PACKET_BYTES = 1536,
    INBOX_MAX = 32,
    INBOX_BYTES = 16384,
    CONNECTIONS_MAX = 64,
    HELD_MAX = 48,
    SLOTS_MAX = 512,
    STRANGER = 100, /* addresses from here on belong to nobody */
    STRANGERS = 100,
    TOKENS_MAX = 512,
    SENT_PER_CALL_MAX = 1200,
    TAG_BYTES = 16,
    KEYS = 2,
    OTHER_KEY = 13 /* what a client says that names a key which the server has not */
};

typedef struct packet {
    uint32_t length;
    uint8_t to, is_group;
    uint8_t from;
    uint8_t is_forged; /* changed or made up by somebody who has the key and can count, if there are a key and a checksum */
    uint8_t bytes[PACKET_BYTES];
} packet_t;

typedef struct arrival {
    uint32_t length, segment;
    uint8_t from, is_group;
    uint8_t bytes[INBOX_BYTES];
} arrival_t;

/* Who waits for an event: an operation's context points to one of these. */
enum { SLOT_FREE, SLOT_PENDING, SLOT_OVER };
typedef struct slot {
    uint8_t state, is_connect;
} slot_t;

/* What a listener on the wire knows of the packets that go to a side. */
typedef struct known {
    uint64_t token, cookie, challenge, secret, name;
    uint32_t index, peer_index, number, sequence, chunk;
} known_t;

typedef struct side {
    arrival_t inbox[INBOX_MAX]; /* a ring */
    uint32_t inbox_first, inbox_count;
    cci_endpoint_t *ep;
    cci_connection_t *connections[CONNECTIONS_MAX];
    uint32_t connection_count;
    cci_event_t *held[HELD_MAX];
    uint32_t held_count;
    cci_event_t *requests[HELD_MAX];
    uint32_t request_count;
    fuzz_window_t window[3]; /* peers may read and write; may read; may do nothing */
    cci_rma_handle_t *handle[3];
    known_t known;
    packet_t made; /* a packet that is being made up for this side */
    uint8_t has_read;
} side_t;

enum { SHARED, READABLE, LOCAL };

typedef struct world {
    side_t side[SIDES];
    packet_t flying[FLYING_MAX], old[OLD_MAX];
    uint32_t flying_count, old_count;
    slot_t slots[SLOTS_MAX];
    uint32_t slot_count;
    uint64_t now_ns;
    uint32_t mtu, base_mtu, max_send_size, recv_buffers, send_buffers, coalesce;
    uint32_t has_paths, has_crc, sealing; /* see PLAIN, SEALED and MIXED */
    const char *congestion;
    uint32_t keys_out, keys_given; /* of connections that are; ever */
    uint32_t seals_left;           /* until a key is worn; 0: never */
    uint32_t sent_in_call;
    uint32_t holds;        /* events are kept rather than returned */
    uint32_t decides;      /* requests are kept until an operation decides */
    uint32_t is_named;     /* side 1 is a service by name, and clients ask for that */
    uint32_t for_ever;     /* a time-out was switched off: what is pending may stay so */
    uint8_t group_member[SIDES];
    uint64_t stranger_in[STRANGERS], stranger_out[STRANGERS];
    uint8_t stranger_knows[STRANGERS]; /* was given a packet with a token: it may get more than it sent */
    uint64_t tokens[TOKENS_MAX];       /* that were ever seen */
    uint8_t token_owner[TOKENS_MAX];   /* to whom each was given */
    uint32_t token_count;
} world_t;

static world_t world;

/* Sealed packets: none, all, or those of connections that want it. */
enum { PLAIN, SEALED = 2, MIXED };

/* ---- a seal without secrets ------------------------------------------------------------------------------------------ */

/* What is sealed stays readable, so that the enemy can change what he wants to; the tag is a checksum over everything, or
 * this text, which an enemy who has the key puts there. */
static const uint8_t fuzz_forged_tag[TAG_BYTES + 1] = "sealed by enemy";

static int fuzz_keys[KEYS];

static void fuzz_tag(const void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, const uint8_t *bytes,
                     uint32_t length, uint8_t *tag) {
    uint32_t i, sum = (uint32_t)((const int *)key - fuzz_keys) + 1;
    for (i = 0; i < CCI_SEAL_NONCE_LEN; i++) {
        sum = (sum ^ nonce[i]) * 16777619u;
    }
    for (i = 0; i < head_length; i++) {
        sum = (sum ^ head[i]) * 16777619u;
    }
    for (i = 0; i < length; i++) {
        sum = (sum ^ bytes[i]) * 16777619u;
    }
    for (i = 0; i < TAG_BYTES; i++, sum = sum * 1664525u + 1013904223u) {
        tag[i] = (uint8_t)(sum >> 24);
    }
}

static void *fuzz_key(void *user, cci_seal_peer_t *peer) {
    int has_none = world.sealing == MIXED && world.keys_given++ & 1;
    (void)user;
    FUZZ_CHECK(peer->from != NULL && peer->attribute <= CCI_CONN_ATTR_UU_MC_RX, "a strange peer wants a key");
    if (peer->address != NULL) {
        peer->key_id = 7;
    } else {
        has_none = peer->key_id == OTHER_KEY;
    }
    if (has_none) {
        return NULL;
    }
    world.keys_out++;
    return &fuzz_keys[0];
}

static void fuzz_forget(void *user, void *key) {
    (void)user;
    FUZZ_CHECK(key == &fuzz_keys[0] && world.keys_out > 0, "a key is forgotten that was not given");
    world.keys_out--;
}

static int fuzz_seal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, uint8_t *bytes,
                     uint32_t length) {
    (void)user;
    FUZZ_CHECK(key == &fuzz_keys[0] && head + head_length == bytes, "a strange packet is to be sealed");
    if (world.seals_left > 0 && --world.seals_left == 0) {
        world.seals_left = 1; /* and ever after */
        return 1;
    }
    fuzz_tag(key, nonce, head, head_length, bytes, length, bytes + length);
    return 0;
}

static int fuzz_unseal(void *user, void *key, const uint8_t *nonce, const uint8_t *head, uint32_t head_length, uint8_t *bytes,
                       uint32_t length) {
    uint8_t tag[TAG_BYTES];
    (void)user;
    FUZZ_CHECK(key == &fuzz_keys[0] && head + head_length == bytes, "a strange packet is to be opened");
    fuzz_tag(key, nonce, head, head_length, bytes, length, tag);
    return memcmp(tag, bytes + length, TAG_BYTES) != 0 && memcmp(fuzz_forged_tag, bytes + length, TAG_BYTES) != 0;
}

/* The signature and the checksum of a packet that is not what it was. */
static void seal_again(uint8_t *bytes, uint32_t length) {
    uint32_t crc = world.has_crc ? CCI__CRC_SIZE : 0;
    if (length < CCI__HEADER_SIZE + crc) {
        return;
    }
    if ((bytes[3] & CCI__HEADER_SEALED) && length >= CCI__HEADER_SIZE + crc + TAG_BYTES) {
        memcpy(bytes + length - crc - TAG_BYTES, fuzz_forged_tag, TAG_BYTES);
    }
    if (world.has_crc) {
        cci__store32(bytes + length - crc, cci__crc32c(0, bytes, length - crc));
    }
}

/* Makes room for both behind a packet that is made up. */
static void wrap_up(packet_t *packet, int sealed) {
    uint32_t more = (sealed ? TAG_BYTES : 0u) + (world.has_crc ? CCI__CRC_SIZE : 0u);
    packet->is_forged = 1;
    packet->length = cci__min32(packet->length, PACKET_BYTES - more);
    memset(packet->bytes + packet->length, 0, more);
    packet->length += more;
    packet->bytes[3] = (uint8_t)((sealed ? CCI__HEADER_SEALED : 0) | (world.has_crc ? CCI__HEADER_CRC : 0));
}

/* ---- the link ------------------------------------------------------------------------------------------------------- */

static void make_address(cci_link_addr_t *address, uint8_t kind, uint8_t number) {
    memset(address, 0, sizeof *address);
    address->bytes[0] = kind;
    address->bytes[4] = number;
}

/* Where a token stands in the list, or -1. */
static int find_token(uint64_t token) {
    uint32_t i;
    for (i = 0; i < world.token_count && i < TOKENS_MAX; i++) {
        if (world.tokens[i] == token) {
            return (int)i;
        }
    }
    return -1;
}

static void learn_token(uint64_t token, uint8_t given_to) {
    if (find_token(token) < 0) {
        world.token_owner[world.token_count % TOKENS_MAX] = given_to;
        world.tokens[world.token_count++ % TOKENS_MAX] = token;
    }
}

static void knows_token(uint8_t address) {
    if (address >= STRANGER && address < STRANGER + STRANGERS) {
        world.stranger_knows[address - STRANGER] = 1;
    }
}

/* A listener learns from a packet what the next one to the same side must look like. */
static void overhear(const packet_t *packet) {
    const uint8_t *at = packet->bytes;
    known_t *to = packet->to < SIDES ? &world.side[packet->to].known : NULL;
    known_t *from = packet->from < SIDES ? &world.side[packet->from].known : NULL;
    if (packet->length < CCI__HEADER_SIZE) {
        return;
    }
    switch (at[1]) {
    case CCI__PKT_REQUEST:
        if (from != NULL) {
            from->index = cci__load32(at + 4);
            from->token = cci__load64(at + 8);
            learn_token(from->token, packet->to);
            if (at[3] & CCI__HEADER_NAMED && packet->length >= CCI__REQUEST_SIZE) {
                world.side[0].known.name = world.side[1].known.name = cci__load64(at + 40);
            }
            if (at[3] & CCI__HEADER_SEALED && packet->length >= CCI__SEALED_REQUEST + CCI__SECRET_SIZE) {
                world.side[!packet->from].known.secret = cci__load64(at + CCI__SEALED_REQUEST);
            }
        }
        break;
    case CCI__PKT_COOKIE:
        if (to != NULL) {
            world.side[!packet->to].known.cookie = cci__load64(at + 16);
        }
        break;
    case CCI__PKT_ACCEPT:
        if (from != NULL && packet->length >= CCI__ACCEPT_SIZE) {
            from->index = cci__load32(at + 16);
            from->token = cci__load64(at + 24);
            from->number = from->sequence = 0;
            learn_token(from->token, packet->to);
            if (at[3] & CCI__HEADER_SEALED && packet->length >= CCI__ACCEPT_SIZE + CCI__SECRET_SIZE) {
                world.side[!packet->from].known.secret = cci__load64(at + CCI__ACCEPT_SIZE);
            }
        }
        break;
    case CCI__PKT_DATA:
        if (from != NULL && packet->length >= CCI__HEADER_SIZE + 16 && at[24] == CCI__FRAME_CHALLENGE) {
            from->challenge = cci__load64(at + 32); /* wherever it goes: to an address that is not proven */
        }
        if (to != NULL) {
            to->index = cci__load32(at + 4);
            to->token = cci__load64(at + 8);
            to->peer_index = cci__load32(at + 16);
            to->number = cci__load32(at + 20);
            if (packet->length >= CCI__HEADER_SIZE + 8 && at[24] <= CCI__FRAME_VOID) {
                to->sequence = cci__load32(at + 28);
            } else if (packet->length >= CCI__HEADER_SIZE + 8 && at[24] == CCI__FRAME_READ) {
                world.side[!packet->to].known.chunk = cci__load32(at + 28);
            }
        }
        break;
    default:
        break;
    }
}

static packet_t *new_flying(void) {
    if (world.flying_count == FLYING_MAX) { /* the last one is lost */
        world.flying_count--;
    }
    return &world.flying[world.flying_count++];
}

static uint8_t side_number(const void *link) {
    return (uint8_t)((const side_t *)link - world.side);
}

static int fuzz_own(void *link, uint32_t number, cci_link_addr_t *own) {
    make_address(own, 1, (uint8_t)(side_number(link) + number));
    return number < SIDES;
}

/* The addresses of the sides alone: what a peer tells of others is not used. */
static int fuzz_path(void *link, uint32_t number, const cci_link_addr_t *told, cci_link_addr_t *path) {
    (void)link;
    make_address(path, 1, told->bytes[4]);
    path->bytes[1] = (uint8_t)number;
    return number < 2 && told->bytes[0] == 1 && told->bytes[4] < SIDES;
}

static int fuzz_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    static const cci_link_paths_t paths = {2, 0, fuzz_own, fuzz_path};
    uint32_t number = *(const uint8_t *)cci_device_data(device);
    (void)want_os_handle;
    if (service != NULL && (service[0] < '0' || service[0] > '9')) {
        return CCI_EINVAL;
    }
    info->mtu = world.mtu;
    info->base_mtu = world.base_mtu;
    info->max_send_size = world.max_send_size;
    info->recv_buf_count = world.recv_buffers;
    info->send_buf_count = world.send_buffers;
    info->coalesce = world.coalesce;
    info->crc = world.has_crc;
    if (world.has_paths) {
        info->paths = &paths;
    }
    info->congestion = world.congestion;
    info->os_handle = -1;
    *link = &world.side[number % SIDES];
    return CCI_SUCCESS;
}

static void fuzz_close(void *link) {
    (void)link;
}

static int fuzz_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++) {
        packet_t *packet = new_flying();
        uint32_t piece;
        packet->length = 0;
        packet->is_forged = 0;
        packet->from = side_number(link);
        packet->to = tx[i].to->bytes[4];
        packet->is_group = tx[i].to->bytes[0] == 2;
        FUZZ_CHECK(tx[i].length <= world.mtu && tx[i].length >= CCI__HEADER_SIZE, "a datagram of a wrong size is sent");
        FUZZ_CHECK(tx[i].piece_count >= 1 && tx[i].piece_count <= 3, "a datagram of too many pieces");
        for (piece = 0; piece < tx[i].piece_count; piece++) {
            FUZZ_CHECK(tx[i].piece[piece].length <= tx[i].length - packet->length, "the pieces are too long");
            if (tx[i].piece[piece].length > 0) {
                memcpy(packet->bytes + packet->length, tx[i].piece[piece].data, tx[i].piece[piece].length);
            }
            packet->length += tx[i].piece[piece].length;
        }
        FUZZ_CHECK(packet->length == tx[i].length, "the pieces are too short");
        if (packet->to >= STRANGER && packet->to < STRANGER + STRANGERS) {
            world.stranger_out[packet->to - STRANGER] += packet->length;
        }
        overhear(packet);
        world.old[world.old_count++ % OLD_MAX] = *packet;
        world.sent_in_call++;
    }
    return count;
}

static int fuzz_receive(void *link, cci_link_rx_t *rx, int count) {
    side_t *side = (side_t *)link;
    int filled = 0;
    while (filled < count && side->inbox_count > 0) {
        const arrival_t *arrival = &side->inbox[side->inbox_first];
        if (arrival->length <= rx[filled].capacity) {
            memcpy(rx[filled].data, arrival->bytes, arrival->length);
            rx[filled].length = arrival->length;
            rx[filled].segment = arrival->segment;
            make_address(&rx[filled].from, 1, arrival->from);
            make_address(&rx[filled].group, 2, 5);
            rx[filled].is_group = arrival->is_group;
            filled++;
        }
        side->inbox_count--;
        side->inbox_first = (side->inbox_first + 1) % INBOX_MAX;
    }
    return filled;
}

static uint64_t fuzz_now(void *link) {
    (void)link;
    return world.now_ns;
}

/* Of the ports of a name one half is at the side that was meant, the other at the other side. */
static int fuzz_resolve(void *link, const char *address, cci_link_addr_t *to) {
    int is_group = address[0] == 'g';
    const char *port = strchr(address, ':');
    (void)link;
    if (address[is_group] < '0' || address[is_group] > '9') {
        return CCI_EINVAL;
    }
    make_address(to, is_group ? 2 : 1, (uint8_t)(atoi(address + is_group) ^ (port != NULL ? atoi(port + 1) & 1 : 0)));
    return CCI_SUCCESS;
}

static int fuzz_service_port(const char *service) {
    return service[0] >= '0' && service[0] <= '9' ? atoi(service) & 0x7fff : -1;
}

static int fuzz_address(void *link, char *text, size_t size) {
    snprintf(text, size, "%u", (unsigned)side_number(link));
    return CCI_SUCCESS;
}

static int fuzz_group(void *link, const cci_link_addr_t *group, int join) {
    (void)group;
    world.group_member[side_number(link)] = (uint8_t)join;
    return CCI_SUCCESS;
}

static int fuzz_is_group(void *link, const cci_link_addr_t *to) {
    (void)link;
    return to->bytes[0] == 2;
}

static const cci_link_t fuzz_link = {CCI_LINK_VERSION, fuzz_open,    fuzz_close, fuzz_send, fuzz_receive,
                                     fuzz_now,         fuzz_resolve, fuzz_address, fuzz_group, fuzz_is_group,
                                     NULL,             NULL,         NULL,         NULL,       NULL,
                                     NULL};

static void describe(uint8_t index, cci_device_desc_t *desc) {
    static const char *const names[SIDES] = {"fuzz0", "fuzz1"};
    memset(desc, 0, sizeof *desc);
    desc->name = names[index % SIDES];
    desc->info = "two endpoints";
    desc->up = 1;
    desc->priority = 50;
    memset(desc->pci, 0xff, sizeof desc->pci);
    desc->data[0] = index;
    desc->service_port = fuzz_service_port;
}

static int fuzz_discover(const cci_transport_t *self, void *list, int (*add)(void *list, const cci_device_desc_t *desc),
                         char *why, size_t why_size) {
    uint8_t index;
    (void)self;
    (void)why;
    (void)why_size;
    for (index = 0; index < (uint8_t)SIDES; index++) {
        cci_device_desc_t desc;
        int status;
        describe(index, &desc);
        status = add(list, &desc);
        if (status != CCI_SUCCESS) {
            return status;
        }
    }
    return CCI_SUCCESS;
}

/* Every key that comes here is "key=value" without blanks around either. */
static int fuzz_configure(const cci_transport_t *self, const char *name, const char *const *keys, cci_device_desc_t *desc,
                          int *bad_key, char *why, size_t why_size) {
    int i;
    (void)self;
    for (i = 0; keys[i] != NULL; i++) {
        const char *equals = strchr(keys[i], '=');
        FUZZ_CHECK(equals != NULL && equals != keys[i], "a key without a name or without a value");
        FUZZ_CHECK(strchr(keys[i], '\n') == NULL && strchr(keys[i], '#') == NULL, "a key that is more than a line");
        if (strncmp(keys[i], "bad", 3) == 0) {
            *bad_key = i;
            snprintf(why, why_size, "%s is bad", keys[i]);
            return CCI_EINVAL;
        }
    }
    FUZZ_CHECK(i < 65, "too many keys");
    describe(strcmp(name, "fuzz1") == 0, desc);
    desc->name = name;
    return CCI_SUCCESS;
}

static const cci_transport_t fuzz_transport = {CCI_TRANSPORT_VERSION, "fuzz", "sim",      NULL, fuzz_discover,
                                               fuzz_configure,        NULL,   &fuzz_link, NULL};
static const cci_transport_t *const fuzz_transports[] = {&fuzz_transport, NULL};

static void fill_setup(cci_setup_t *setup) {
    memset(setup, 0, sizeof *setup);
    setup->alloc = fuzz_alloc;
    setup->release = fuzz_release;
    setup->log = fuzz_log;
    setup->random = fuzz_random;
    setup->transports = fuzz_transports;
}

static const cci_seal_t fuzz_sealing[] = {{TAG_BYTES, 0, NULL, fuzz_key, fuzz_forget, fuzz_seal, fuzz_unseal},
                                          {TAG_BYTES, 1, NULL, fuzz_key, fuzz_forget, fuzz_seal, fuzz_unseal}};

/* ---- arrival --------------------------------------------------------------------------------------------------------- */

static arrival_t *new_arrival(uint8_t to, uint8_t from, uint8_t is_group) {
    side_t *side = &world.side[to % SIDES];
    arrival_t *arrival;
    if (side->inbox_count == INBOX_MAX) {
        return NULL;
    }
    arrival = &side->inbox[(side->inbox_first + side->inbox_count++) % INBOX_MAX];
    arrival->length = arrival->segment = 0;
    arrival->from = from;
    arrival->is_group = is_group;
    return arrival;
}

/* A stranger that sends a token, or whose token is sent, is as good as a peer. */
static void arrive_from(const packet_t *packet) {
    uint32_t stranger = (uint32_t)packet->from - STRANGER;
    int token = -1;
    if (packet->length >= CCI__HEADER_SIZE && packet->bytes[1] != CCI__PKT_REQUEST) {
        token = find_token(cci__load64(packet->bytes + 8));
    }
    if (packet->from >= STRANGER && stranger < STRANGERS) {
        world.stranger_in[stranger] += packet->length;
    }
    if (token >= 0) {
        knows_token(packet->from);
        knows_token(world.token_owner[token]);
    }
}

static void deliver(const packet_t *packet) {
    uint8_t i;
    for (i = 0; i < (uint8_t)SIDES; i++) {
        arrival_t *arrival;
        if (packet->is_group ? !world.group_member[i] || packet->to != 5 : packet->to != i) {
            continue;
        }
        arrival = new_arrival(i, packet->from, packet->is_group);
        if (arrival != NULL) {
            arrive_from(packet);
            memcpy(arrival->bytes, packet->bytes, packet->length);
            arrival->length = arrival->segment = packet->length;
            if (packet->is_forged) {
                seal_again(arrival->bytes, packet->length);
            }
        }
    }
}

static void take_off(uint32_t index) {
    world.flying_count--;
    memmove(&world.flying[index], &world.flying[index + 1], (world.flying_count - index) * sizeof world.flying[0]);
}

static void deliver_all(void) {
    uint32_t i;
    for (i = 0; i < world.flying_count; i++) {
        deliver(&world.flying[i]);
    }
    world.flying_count = 0;
}

/* All packets in flight from one address to one side arrive side by side in one buffer, as with an offloading receiver. */
static void deliver_train(uint8_t to, uint32_t segment) {
    arrival_t *arrival = new_arrival(to, !to, 0);
    uint32_t i = 0;
    if (arrival == NULL) {
        return;
    }
    while (i < world.flying_count) {
        const packet_t *packet = &world.flying[i];
        if (packet->to != to || packet->is_group || arrival->length + packet->length > INBOX_BYTES ||
            (arrival->segment > 0 && packet->from != arrival->from)) {
            i++;
            continue;
        }
        if (arrival->segment == 0) {
            arrival->segment = segment > 0 ? segment : packet->length;
            arrival->from = packet->from;
        }
        arrive_from(packet);
        memcpy(arrival->bytes + arrival->length, packet->bytes, packet->length);
        if (packet->is_forged) {
            seal_again(arrival->bytes + arrival->length, packet->length);
        }
        arrival->length += packet->length;
        take_off(i);
    }
    if (arrival->length == 0) {
        world.side[to].inbox_count--;
    }
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

static slot_t *new_slot(int is_connect) {
    slot_t *slot;
    if (world.slot_count == SLOTS_MAX) {
        return NULL;
    }
    slot = &world.slots[world.slot_count];
    slot->state = SLOT_FREE;
    slot->is_connect = (uint8_t)is_connect;
    return slot;
}

static void slot_begins(slot_t *slot, int status) {
    if (status == CCI_SUCCESS) {
        slot->state = SLOT_PENDING;
        world.slot_count++;
    }
}

static void slot_ends(const void *context, int is_connect) {
    slot_t *slot = (slot_t *)(uintptr_t)context;
    FUZZ_CHECK(slot >= world.slots && slot < world.slots + world.slot_count, "an event with a strange context");
    FUZZ_CHECK(slot->state == SLOT_PENDING, "an operation completes twice");
    FUZZ_CHECK(slot->is_connect == is_connect, "an event of the wrong kind");
    slot->state = SLOT_OVER;
}

static int find_connection(const side_t *side, cci_connection_t *connection) {
    uint32_t i;
    for (i = 0; i < side->connection_count; i++) {
        if (side->connections[i] == connection) {
            return (int)i;
        }
    }
    return -1;
}

static void add_connection(side_t *side, cci_connection_t *connection) {
    FUZZ_CHECK(connection != NULL && find_connection(side, connection) < 0, "a connection opens twice");
    FUZZ_CHECK(connection->max_send_size > 0 && connection->attribute <= CCI_CONN_ATTR_UU_MC_RX &&
                   connection->endpoint == side->ep, "a strange connection");
    if (side->connection_count == CONNECTIONS_MAX) {
        (void)cci_disconnect(connection);
        return;
    }
    side->connections[side->connection_count++] = connection;
}

static void close_connection(side_t *side, uint32_t index) {
    uint32_t i;
    cci_connection_t *connection = side->connections[index];
    for (i = 0; i < side->held_count;) { /* their connection is gone */
        if (side->held[i]->type == CCI_EVENT_RECV && side->held[i]->recv.connection == connection) {
            FUZZ_CHECK(cci_return_event(side->held[i]) == CCI_SUCCESS, "an event can't be returned");
            side->held[i] = side->held[--side->held_count];
        } else {
            i++;
        }
    }
    FUZZ_CHECK(cci_disconnect(connection) == CCI_SUCCESS, "a connection can't be closed");
    side->connections[index] = side->connections[--side->connection_count];
}

/* Reads all of a message, and writes to it: the program may. */
static void use_message(const cci_event_recv_t *recv) {
    uint8_t *bytes = (uint8_t *)(uintptr_t)recv->ptr;
    uint32_t i;
    FUZZ_CHECK(((uintptr_t)bytes & 7) == 0, "a message is not aligned");
    FUZZ_CHECK(recv->len <= recv->connection->max_send_size, "a message is too long");
    for (i = 0; i < recv->len; i++) {
        bytes[i] ^= 0x5a;
    }
}

static void decide(side_t *side, cci_event_t *event, int accepts) {
    static const uint8_t data[CCI_CONN_REQ_LEN] = {1, 2, 3};
    uint32_t length = event->request.data_len % 5 == 4 ? sizeof data : event->request.data_len; /* often none */
    if (accepts) {
        slot_t *slot = new_slot(1);
        if (slot != NULL) {
            int status = cci_accept_data(event, slot, data, length);
            if (status == CCI_ENOBUFS) {
                status = cci_accept(event, slot);
            }
            FUZZ_CHECK(status == CCI_SUCCESS, "a request can't be accepted");
            slot_begins(slot, status);
        }
        accepts = slot != NULL;
    }
    if (!accepts) {
        FUZZ_CHECK(cci_reject_data(event, data, length) == CCI_SUCCESS || cci_reject(event) == CCI_SUCCESS,
                   "a request can't be rejected");
    }
    FUZZ_CHECK(cci_return_event(event) == CCI_SUCCESS, "a request can't be returned");
    (void)side;
}

/* Looks at an event; 1 when it is to be returned. */
static int take_event(side_t *side, cci_event_t *event) {
    uint32_t i;
    switch (event->type) {
    case CCI_EVENT_SEND:
        slot_ends(event->send.context, 0);
        return 1;
    case CCI_EVENT_RECV:
        FUZZ_CHECK(find_connection(side, event->recv.connection) >= 0, "a message of no connection");
        use_message(&event->recv);
        return 1;
    case CCI_EVENT_CONNECT:
        slot_ends(event->connect.context, 1);
        FUZZ_CHECK(event->connect.data_len <= CCI_CONN_REQ_LEN && ((uintptr_t)event->connect.data_ptr & 7) == 0 &&
                       (event->connect.data_len == 0) == (event->connect.data_ptr == NULL),
                   "a strange answer");
        for (i = 0; i < event->connect.data_len; i++) {
            ((uint8_t *)(uintptr_t)event->connect.data_ptr)[i] ^= 0x5a;
        }
        if (event->connect.status == CCI_SUCCESS) {
            add_connection(side, event->connect.connection);
        } else {
            FUZZ_CHECK(event->connect.connection == NULL, "a failure with a connection");
        }
        return 1;
    case CCI_EVENT_ACCEPT:
        slot_ends(event->accept.context, 1);
        if (event->accept.status == CCI_SUCCESS) {
            add_connection(side, event->accept.connection);
        }
        return 1;
    case CCI_EVENT_CONNECT_REQUEST:
        FUZZ_CHECK(event->request.data_len <= CCI_CONN_REQ_LEN && event->request.attribute <= CCI_CONN_ATTR_UU,
                   "a strange request");
        for (i = 0; i < event->request.data_len; i++) {
            ((uint8_t *)(uintptr_t)event->request.data_ptr)[i] ^= 0x5a;
        }
        if (world.decides && side->request_count < HELD_MAX) {
            side->requests[side->request_count++] = event;
        } else {
            decide(side, event, 1);
        }
        return 0;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        FUZZ_CHECK(find_connection(side, event->keepalive.connection) >= 0, "keepalive of no connection");
        return 1;
    case CCI_EVENT_NONE:
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
    default:
        fuzz_fail("an event that can't be", __LINE__);
        return 1;
    }
}

static void poll_side(side_t *side) {
    uint32_t count;
    for (count = 0; count < 64; count++) {
        cci_event_t *event = NULL;
        int status;
        world.sent_in_call = 0;
        status = cci_get_event(side->ep, &event);
        FUZZ_CHECK(world.sent_in_call <= SENT_PER_CALL_MAX, "one call sends without end");
        FUZZ_CHECK((status == CCI_SUCCESS) == (event != NULL), "an event without success");
        if (status != CCI_SUCCESS) {
            FUZZ_CHECK(status == CCI_EAGAIN || status == CCI_ENOBUFS, "a strange status of cci_get_event");
            return;
        }
        if (!take_event(side, event)) {
            continue;
        }
        if (world.holds && event->type == CCI_EVENT_RECV && side->held_count < HELD_MAX) {
            side->held[side->held_count++] = event;
        } else {
            FUZZ_CHECK(cci_return_event(event) == CCI_SUCCESS, "an event can't be returned");
        }
    }
}

static void return_held(side_t *side) {
    while (side->held_count > 0) {
        FUZZ_CHECK(cci_return_event(side->held[--side->held_count]) == CCI_SUCCESS, "an event can't be returned");
    }
}

/* The network works as it should for a while. */
static void work(uint32_t rounds, uint64_t step_ns) {
    uint32_t i;
    for (; rounds > 0; rounds--) {
        deliver_all();
        for (i = 0; i < SIDES; i++) {
            poll_side(&world.side[i]);
        }
        world.now_ns += step_ns;
    }
}

/* ---- operations: what the program does --------------------------------------------------------------------------------- */

static void do_connect(const fuzz_record_t *r) {
    static uint8_t data[CCI_CONN_REQ_LEN];
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO,       CCI_CONN_ATTR_RU,       CCI_CONN_ATTR_UU,
                                                      CCI_CONN_ATTR_UU_MC_TX, CCI_CONN_ATTR_UU_MC_RX, CCI_CONN_ATTR_RO};
    cci_conn_attribute_t attribute = attributes[r->pick % 6];
    struct timeval timeout;
    slot_t *slot = new_slot(1);
    char uri[32];
    if (slot == NULL) {
        return;
    }
    timeout.tv_sec = r->b % 16;
    timeout.tv_usec = (long)(r->c % 1000000);
    snprintf(uri, sizeof uri, "fuzz://%s%u%s", attribute >= CCI_CONN_ATTR_UU_MC_TX ? "g" : "",
             attribute >= CCI_CONN_ATTR_UU_MC_TX ? 5u : (unsigned)!(r->which % SIDES),
             world.is_named && attribute < CCI_CONN_ATTR_UU_MC_TX && !(r->field & 1) ? "/storage" : "");
    slot_begins(slot, cci_connect(world.side[r->which % SIDES].ep, uri, data, r->a % (CCI_CONN_REQ_LEN + 1), attribute, slot,
                                  0, &timeout));
}

static void do_decide(const fuzz_record_t *r) {
    side_t *side = &world.side[r->which % SIDES];
    uint32_t index;
    if (side->request_count == 0) {
        return;
    }
    index = r->pick % side->request_count;
    decide(side, side->requests[index], r->field & 1);
    side->requests[index] = side->requests[--side->request_count];
}

static cci_connection_t *pick_connection(const fuzz_record_t *r) {
    side_t *side = &world.side[r->which % SIDES];
    return side->connection_count > 0 ? side->connections[r->pick % side->connection_count] : NULL;
}

/* Without a completion event it is SILENT; otherwise the context is a slot. */
static void do_send(const fuzz_record_t *r) {
    static uint8_t data[8192];
    cci_connection_t *connection = pick_connection(r);
    struct iovec pieces[3];
    int flags = r->field & CCI_FLAG_SILENT, status;
    uint32_t length = r->a;
    slot_t *slot = new_slot(0);
    if (connection == NULL || slot == NULL) {
        return;
    }
    length = length % (cci__min32(connection->max_send_size, sizeof data) + 2);
    length = cci__min32(length, sizeof data);
    pieces[0].iov_base = data;
    pieces[0].iov_len = length / 3;
    pieces[1].iov_base = NULL;
    pieces[1].iov_len = 0;
    pieces[2].iov_base = data + length / 3;
    pieces[2].iov_len = length - length / 3;
    status = cci_sendv(connection, pieces, 3, slot, flags);
    if (!flags) {
        slot_begins(slot, status);
    }
}

static void do_rma(const fuzz_record_t *r) {
    static uint8_t message[256];
    cci_connection_t *connection = pick_connection(r);
    side_t *side = &world.side[r->which % SIDES], *peer = &world.side[!(r->which % SIDES)];
    int is_read = r->field & 1, flags = is_read ? CCI_FLAG_READ : CCI_FLAG_WRITE, status;
    cci_rma_handle_t remote = *peer->handle[r->field >> 1 & 1 ? READABLE : SHARED], local = *side->handle[LOCAL];
    uint64_t length = 1 + r->c % FUZZ_WINDOW_BYTES, offset = r->d & 0xffff;
    slot_t *slot = new_slot(0);
    if (connection == NULL || slot == NULL) {
        return;
    }
    if (r->field & 4) {
        flags |= CCI_FLAG_FENCE;
    }
    if (r->field & 8) {
        flags |= CCI_FLAG_SILENT;
    }
    if (r->d >> 24 == 0xff) { /* a handle from a hostile hand */
        ((uint8_t *)remote.stuff)[r->d >> 16 & 31] ^= (uint8_t)(r->d | 1);
        ((uint8_t *)local.stuff)[r->d >> 16 & 31] ^= (uint8_t)(r->d >> 8);
    } else {
        length = cci__min64(length, FUZZ_WINDOW_BYTES - offset % FUZZ_WINDOW_BYTES);
        offset %= FUZZ_WINDOW_BYTES;
    }
    side->has_read |= (uint8_t)is_read;
    status = cci_rma(connection, message, r->a % 64, &local, offset, &remote, offset, length, slot, flags);
    if (!(flags & CCI_FLAG_SILENT)) {
        slot_begins(slot, status);
    }
}

/* A region comes or goes. What has no handle now keeps one that is not valid. */
static void do_register(const fuzz_record_t *r) {
    static const int rights[3] = {CCI_FLAG_READ | CCI_FLAG_WRITE, CCI_FLAG_READ, 0};
    side_t *side = &world.side[r->which % SIDES];
    uint32_t i = r->pick % 3;
    cci_rma_handle_t *fresh;
    (void)cci_rma_deregister(side->ep, side->handle[i]);
    if (cci_rma_register(side->ep, fuzz_window_start(&side->window[i]), FUZZ_WINDOW_BYTES, rights[i], &fresh) ==
        CCI_SUCCESS) {
        side->handle[i] = fresh;
    }
}

static void do_option(const fuzz_record_t *r) {
    side_t *side = &world.side[r->which % SIDES];
    cci_connection_t *connection = pick_connection(r);
    uint32_t value = r->c, count = 1 + r->a % 64;
    switch (r->field % 7) {
    case 6:
        world.seals_left = count;
        break;
    case 0:
        (void)cci_set_opt((cci_opt_handle_t *)side->ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &value);
        break;
    case 1:
        (void)cci_set_opt((cci_opt_handle_t *)side->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count);
        break;
    case 2:
        (void)cci_set_opt((cci_opt_handle_t *)side->ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &count);
        break;
    case 3:
        value = value % 20000000 + 1;
        (void)cci_set_opt((cci_opt_handle_t *)side->ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &value);
        break;
    case 4:
        if (connection != NULL) {
            value = value % 20000000;
            world.for_ever |= value == 0;
            (void)cci_set_opt((cci_opt_handle_t *)connection, CCI_OPT_CONN_SEND_TIMEOUT, &value);
        }
        break;
    default:
        if (connection != NULL) {
            (void)cci_set_opt((cci_opt_handle_t *)connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &value);
        }
        break;
    }
}

static void do_disconnect(const fuzz_record_t *r) {
    side_t *side = &world.side[r->which % SIDES];
    if (side->connection_count > 0) {
        close_connection(side, r->pick % side->connection_count);
    }
}

/* ---- operations: what the network does ---------------------------------------------------------------------------------- */

/* Where frame number `wanted` of a packet begins, as far as its frames can be told apart. */
static uint32_t find_frame(const packet_t *packet, uint32_t wanted) {
    uint32_t at = CCI__HEADER_SIZE;
    while (wanted-- > 0 && at + 8 <= packet->length) {
        const uint8_t *frame = packet->bytes + at;
        uint32_t size = 8;
        if (frame[0] == CCI__FRAME_MESSAGE || frame[0] == CCI__FRAME_SKIP || frame[0] == CCI__FRAME_BULK) {
            size = cci_rel_frame_size(frame);
        } else if (frame[0] == CCI__FRAME_FRAGMENT) {
            size = 16 + cci__pad8(cci__load16(frame + 2));
        } else if (frame[0] == CCI__FRAME_ACK) {
            size = cci__pad8(16 + 4u * frame[1]);
        } else if (frame[0] == CCI__FRAME_TAKEN) {
            size = cci__pad8(8 + 4u * frame[1]);
        } else if (frame[0] == CCI__FRAME_VOID) {
            size = 16;
        } else if (frame[0] == CCI__FRAME_READ) {
            size = 48;
        }
        if (at + size + 8 > packet->length) {
            break;
        }
        at += size;
    }
    return at;
}

static void put(packet_t *packet, uint32_t at, uint32_t bytes, uint64_t value, int add) {
    uint32_t i;
    uint64_t old = 0;
    if (at + bytes > packet->length) {
        return;
    }
    for (i = 0; i < bytes; i++) {
        old |= (uint64_t)packet->bytes[at + i] << 8 * i;
    }
    value = add ? old + value : value;
    for (i = 0; i < bytes; i++) {
        packet->bytes[at + i] = (uint8_t)(value >> 8 * i);
    }
}

/* Changes a packet in flight: a field of its header, a field of one of its frames, its length, any byte. */
static void do_change(const fuzz_record_t *r) {
    static const uint8_t header[][2] = {{0, 1}, {1, 1}, {2, 1}, {4, 4}, {8, 8}, {16, 4}, {20, 4}, {24, 8}, {32, 4}, {36, 4}};
    static const uint8_t fields[][2] = {{0, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 4}, {8, 8}, {12, 4}, {16, 4},
                                        {20, 4}, {24, 8}, {32, 8}, {32, 4}, {40, 8}, {16, 2}, {18, 2}};
    uint64_t value = fuzz_number(r->c);
    packet_t *packet;
    uint32_t at;
    if (world.flying_count == 0) {
        return;
    }
    packet = &world.flying[r->pick % world.flying_count];
    packet->is_forged |= !(r->which & 64); /* he who has no key can't hide it */
    switch (r->field % 6) {
    case 0:
        put(packet, header[r->a % 10][0], header[r->a % 10][1], value, r->b & 1);
        break;
    case 1:
    case 2:
        at = find_frame(packet, r->b >> 1 & 7);
        put(packet, at + fields[r->a % 15][0], fields[r->a % 15][1], value, r->b & 1);
        break;
    case 3:
        packet->length = r->a % (packet->length + 1);
        break;
    case 4:
        for (at = packet->length; at < PACKET_BYTES && at < world.mtu && at < packet->length + r->a % 128; at++) {
            packet->bytes[at] = (uint8_t)(r->c >> at % 4 * 8);
        }
        packet->length = at;
        break;
    default:
        if (packet->length > 0) {
            packet->bytes[r->a % packet->length] = (uint8_t)r->c;
        }
        break;
    }
}

/* Drops, repeats, replays, exchanges or readdresses packets in flight. */
static void do_network(const fuzz_record_t *r) {
    packet_t *packet;
    if ((r->field & 7) == 3 && world.old_count > 0) {
        packet = new_flying();
        *packet = world.old[r->pick % cci__min32(world.old_count, OLD_MAX)];
        return;
    }
    if (world.flying_count == 0) {
        return;
    }
    packet = &world.flying[r->pick % world.flying_count];
    switch (r->field & 7) {
    case 0:
        take_off(r->pick % world.flying_count);
        break;
    case 1:
        deliver(packet);
        break;
    case 2:
        deliver(packet);
        take_off(r->pick % world.flying_count);
        break;
    case 4: {
        packet_t kept = *packet;
        *packet = world.flying[r->a % world.flying_count];
        world.flying[r->a % world.flying_count] = kept;
        break;
    }
    case 5:
        packet->from = (uint8_t)(STRANGER + r->a % STRANGERS);
        break;
    case 6:
        packet->to = (uint8_t)(r->a % SIDES);
        break;
    default:
        deliver_train((uint8_t)(r->which % SIDES), r->b % 2 ? r->a % 2048 : 0);
        break;
    }
}

/* A little more or less. */
static uint32_t near_by(uint16_t value) {
    return (uint32_t)(int32_t)(int8_t)(uint8_t)value;
}

/* ---- operations: what an enemy sends ---------------------------------------------------------------------------------- */

/* Adds a frame to the packet that is being made up. Numbers are near to what is right unless they are to be wild. */
static void do_frame(const fuzz_record_t *r) {
    static const uint8_t types[] = {CCI__FRAME_MESSAGE, CCI__FRAME_FRAGMENT, CCI__FRAME_BULK,   CCI__FRAME_SKIP,
                                    CCI__FRAME_VOID,    CCI__FRAME_ACK,      CCI__FRAME_NACK,   CCI__FRAME_PING,
                                    CCI__FRAME_READ,    CCI__FRAME_DATA,     CCI__FRAME_DENIED, CCI__FRAME_PAD,
                                    CCI__FRAME_CHALLENGE, CCI__FRAME_RESPONSE, CCI__FRAME_ATOMIC, CCI__FRAME_ADDRESSES, CCI__FRAME_HEARD};
    side_t *side = &world.side[r->which % SIDES];
    packet_t *packet = &side->made;
    uint8_t type = r->pick >= 252 ? (uint8_t)CCI__FRAME_TAKEN : types[r->pick % sizeof types], frame[80];
    uint32_t head = 8, data = r->a % 600, said = r->a & 0x8000 ? (uint32_t)fuzz_number(r->d) & 0xffff : data, i;
    uint32_t sequence = side->known.sequence + near_by(r->b);
    const uint8_t *handle = (const uint8_t *)side->handle[r->field & 3 ? SHARED : r->field >> 2 & 1 ? READABLE : LOCAL]->stuff;
    uint64_t c = fuzz_number(r->c), d = fuzz_number(r->d);
    if (packet->length < CCI__HEADER_SIZE) {
        packet->length = CCI__HEADER_SIZE;
    }
    memset(frame, 0, sizeof frame);
    frame[0] = type;
    frame[1] = r->field >> 4;
    cci__store16(frame + 2, said);
    cci__store32(frame + 4, sequence);
    switch (type) {
    case CCI__FRAME_FRAGMENT:
        head = 16;
        cci__store32(frame + 8, (uint32_t)c);
        cci__store32(frame + 12, r->b & 0x100 ? (uint32_t)d : (uint32_t)c + said + (uint32_t)(d & 0x3ff));
        break;
    case CCI__FRAME_BULK:
        head = 48;
        memcpy(frame + 8, handle, 8);
        memcpy(frame + 16, handle + 8, 4);
        cci__store64(frame + 24, c);
        cci__store64(frame + 32, r->b & 0x100 ? d : 0);
        cci__store64(frame + 40, r->b & 0x200 ? fuzz_number(r->d ^ r->c) : (r->b & 0x100 ? d : 0) + said);
        break;
    case CCI__FRAME_VOID:
        head = 16;
        data = 0;
        cci__store32(frame + 8, (uint32_t)c);
        break;
    case CCI__FRAME_ACK:
        head = 16;
        cci__store32(frame + 4, world.side[!(r->which % SIDES)].known.number + near_by(r->b));
        cci__store32(frame + 8, r->c == 0 ? 1 : (uint32_t)c);
        data = cci__min32(frame[1] * 4u, 64);
        break;
    case CCI__FRAME_NACK:
        data = 0;
        frame[1] = r->field & 16 ? CCI_ERR_RNR : CCI_ERR_RMA_HANDLE;
        cci__store32(frame + 4, world.side[!(r->which % SIDES)].known.sequence + near_by(r->b));
        break;
    case CCI__FRAME_PING:
        data = 0;
        break;
    case CCI__FRAME_TAKEN: { /* ascending, unless the steps are too long */
        uint32_t end = 0;
        frame[1] = (uint8_t)(r->a & 0x4000 ? r->a : 1u + (r->a & 3u));
        data = cci__min32(frame[1] * 4u, 64) & ~(uint32_t)(r->a >> 12 & 4);
        cci__store16(frame + 2, 0);
        cci__store32(frame + 4, world.side[!(r->which % SIDES)].known.sequence + near_by(r->b));
        for (i = 0; i < data / 4; i++) {
            cci__store16(frame + 8 + 4 * i, end + 1u + (uint32_t)(c >> 4 * i & 3));
            end += 2u + (uint32_t)(c >> 4 * i & 3) + (uint32_t)(d >> 4 * i & 7);
            cci__store16(frame + 10 + 4 * i, end);
        }
        head = 8 + cci__pad8(data);
        data = 0;
        break;
    }
    case CCI__FRAME_READ:
        head = 48;
        data = 0;
        cci__store32(frame + 4, r->b);
        memcpy(frame + 8, handle, 8);
        memcpy(frame + 16, handle + 8, 4);
        cci__store32(frame + 20, r->a & 0x4000 ? (uint32_t)fuzz_number(r->d) : 64u + r->a);
        cci__store64(frame + 24, c);
        cci__store32(frame + 32, (uint32_t)d);
        cci__store64(frame + 40, ~(uint64_t)r->b);
        break;
    case CCI__FRAME_ATOMIC:
        head = 48;
        data = 0;
        frame[1] = r->field >> 4 & 3;
        frame[2] = r->a & 1 ? 4 : r->a & 2 ? 8 : (uint8_t)r->a;
        memcpy(frame + 8, handle, 8);
        memcpy(frame + 16, handle + 8, 4);
        cci__store32(frame + 20, r->a & 0x4000 ? (uint32_t)fuzz_number(r->d) : r->b & 31u);
        cci__store64(frame + 24, r->a & 0x2000 ? c : c & 0xf8);
        cci__store64(frame + 32, d);
        break;
    case CCI__FRAME_DATA:
        head = 16;
        cci__store32(frame + 4, side->known.chunk + near_by(r->b));
        cci__store32(frame + 8, (uint32_t)c);
        break;
    case CCI__FRAME_DENIED:
        data = 0;
        cci__store32(frame + 4, side->known.chunk + near_by(r->b));
        break;
    case CCI__FRAME_CHALLENGE:
    case CCI__FRAME_RESPONSE:
        head = 16;
        data = 0;
        cci__store64(frame + 8, r->field & 1 ? c : side->known.challenge);
        break;
    case CCI__FRAME_ADDRESSES:
    case CCI__FRAME_HEARD:
        head = r->field & 1 ? 8 : 8 + 24;
        data = 0;
        frame[1] = (uint8_t)(r->field >> 1);
        cci__store32(frame + 4, near_by(r->b));
        cci__store64(frame + 8, c);
        cci__store64(frame + 16, d);
        break;
    default:
        break;
    }
    data = cci__min32(cci__pad8(data), PACKET_BYTES);
    if (packet->length + head + data > cci__min32(world.mtu, PACKET_BYTES)) {
        return;
    }
    memcpy(packet->bytes + packet->length, frame, head);
    packet->length += head;
    for (i = 0; i < data; i++) {
        packet->bytes[packet->length++] = (uint8_t)(r->c >> i % 4 * 8);
    }
}

/* Puts a header with the right index and token before the frames, and the packet into the air. */
static void do_inject(const fuzz_record_t *r) {
    static const uint8_t types[] = {CCI__PKT_DATA, CCI__PKT_DATA, CCI__PKT_DATA, CCI__PKT_CONFIRM, CCI__PKT_CONFIRMED,
                                    CCI__PKT_GROUP, CCI__PKT_RESET, CCI__PKT_DATA};
    uint8_t type = r->pick < 240 ? types[r->pick % sizeof types] : (uint8_t)(CCI__PKT_CLOSE + r->pick % 2);
    side_t *side = &world.side[r->which % SIDES];
    packet_t *packet;
    uint32_t index = side->known.index;
    side->made.length = cci__max32(side->made.length, CCI__HEADER_SIZE);
    if (r->a & 1 && side->made.length > CCI__HEADER_SIZE + 7u) {
        side->made.length -= r->a >> 8 & 7; /* the last frame need not be padded */
    }
    packet = new_flying();
    *packet = side->made;
    side->made.length = 0;
    packet->to = (uint8_t)(r->which % SIDES);
    packet->from = r->field & 1 ? (uint8_t)(STRANGER + r->b % STRANGERS) : (uint8_t)!packet->to;
    packet->is_group = type == CCI__PKT_GROUP;
    if (packet->is_group) {
        packet->to = 5;
        index = r->field & 4 ? (uint32_t)fuzz_number(r->d) : 0; /* the upper half of the number, if it is sealed */
    }
    side->known.number += r->field & 2 ? (uint32_t)fuzz_number(r->c) : 1 + r->c % 4;
    cci_conn_write_header(packet->bytes, type, 0, index, side->known.token,
                          r->field & 4 ? (uint32_t)fuzz_number(r->d) : side->known.peer_index, side->known.number);
    wrap_up(packet, world.sealing >= SEALED && !(r->which & 64));
    if (r->field & 8) {
        deliver(packet);
        take_off(world.flying_count - 1);
    }
}

/* A REQUEST, whole or a piece of one. Sealed, it names its key and brings a secret. */
static void make_request(const fuzz_record_t *r, packet_t *packet, const known_t *known, const known_t *peer) {
    uint64_t c = fuzz_number(r->c), d = fuzz_number(r->d);
    uint32_t data_len = r->a % 1100, unit = 8u << (r->b & 7), offset = (r->b >> 3 & 31) * unit, length;
    int sealed = world.sealing >= SEALED && !(r->which & 64);
    length = r->field & 8 ? data_len : offset < data_len ? cci__min32(unit, data_len - offset) : r->b;
    cci_conn_write_header(packet->bytes, CCI__PKT_REQUEST, (uint8_t)(r->b >> 8 & 3), r->field & 1 ? peer->index : (uint32_t)c,
                          r->field & 1 ? peer->token : d, 0, 0);
    cci__store64(packet->bytes + 16, r->field & 2 ? known->cookie : r->field & 4 ? c : 0);
    cci__store32(packet->bytes + 24, r->field & 32 ? (uint32_t)c : 512);
    cci__store32(packet->bytes + 28, (uint32_t)d);
    cci__store16(packet->bytes + 32, data_len);
    cci__store16(packet->bytes + 34, unit);
    cci__store16(packet->bytes + 36, r->field & 8 ? 0 : offset);
    cci__store16(packet->bytes + 38, length);
    if (r->field & 128) { /* a service by name: the one that was sought last, or another */
        packet->bytes[3] |= CCI__HEADER_NAMED;
        cci__store64(packet->bytes + 40, r->pick & 4 ? known->name : d);
    }
    packet->length = CCI__REQUEST_SIZE;
    if (sealed) {
        cci__store64(packet->bytes + 48, r->field & 64 ? OTHER_KEY : 7);
        cci__store64(packet->bytes + CCI__SEALED_REQUEST, d);
        packet->length = CCI__SEALED_REQUEST + CCI__SECRET_SIZE;
    }
    packet->length = cci__min32(packet->length + length, world.mtu);
    wrap_up(packet, sealed);
}

/* Data behind an ACCEPT or REJECT, mostly a piece that fits among others of 208 bytes. */
static void add_answer(const fuzz_record_t *r, packet_t *packet) {
    uint8_t *at = packet->bytes + packet->length;
    uint64_t d = fuzz_number(r->d);
    uint32_t length = (r->pick & 8) ? 208 : (uint32_t)(d >> 8) % 300;
    if (!(r->pick & 32) || packet->length + CCI__PIECE_SIZE + length > world.mtu) {
        return;
    }
    cci__store16(at, r->pick & 16 ? 416 : (uint32_t)d & 0x7ff);
    cci__store16(at + 2, r->pick & 8 ? 208 : (uint32_t)(d >> 16) & 0x7ff);
    cci__store16(at + 4, r->b & 1 ? 208 : r->b & 2 ? (uint32_t)(d >> 24) & 0x7ff : 0);
    cci__store16(at + 6, length);
    packet->length += CCI__PIECE_SIZE + length;
}

/* One packet of the handshake with fields of the enemy's choice. */
static void do_handshake(const fuzz_record_t *r) {
    uint8_t to = (uint8_t)(r->which % SIDES), type = (uint8_t)(r->pick < 220 ? 1 + r->pick % 10 : CCI__PKT_CLOSED + r->pick % 3);
    const known_t *known = &world.side[to].known, *peer = &world.side[!to].known;
    packet_t *packet = new_flying();
    uint64_t c = fuzz_number(r->c), d = fuzz_number(r->d), token;
    memset(packet, 0, sizeof *packet);
    packet->to = to;
    packet->from = r->field & 16 ? (uint8_t)(STRANGER + r->field % STRANGERS) : (uint8_t)!to;
    packet->length = CCI__HEADER_SIZE;
    if (type == CCI__PKT_REQUEST) {
        make_request(r, packet, known, peer);
        return;
    }
    token = (r->field & 1) == (type != CCI__PKT_RESET) ? known->token : r->field & 3 ? peer->token : d;
    cci_conn_write_header(packet->bytes, type, (uint8_t)r->b, r->field & 1 ? known->index : (uint32_t)c, token,
                          r->field & 4 ? peer->index : (uint32_t)c, r->a);
    if (type == CCI__PKT_ACCEPT) {
        cci__store64(packet->bytes + 24, r->field & 8 ? peer->token : d);
        cci__store32(packet->bytes + 32, r->field & 32 ? (uint32_t)c : 100);
        cci__store32(packet->bytes + 36, (uint32_t)d);
        cci__store64(packet->bytes + 40, d);
        packet->length = CCI__ACCEPT_SIZE + (world.sealing >= SEALED ? CCI__SECRET_SIZE : 0) - (r->a & 0x8000 ? 1u : 0u);
        add_answer(r, packet);
    } else if (type == CCI__PKT_REJECT && world.sealing >= SEALED) {
        cci__store64(packet->bytes + 24, r->field & 8 ? peer->token : d);
        packet->length = CCI__SEALED_REJECT;
        add_answer(r, packet);
    } else if (type == CCI__PKT_REJECT) {
        add_answer(r, packet);
    } else if (type == CCI__PKT_RESET && r->field & 64) {
        cci__store64(packet->bytes + 24, known->secret);
        packet->length = CCI__HEADER_SIZE + CCI__SECRET_SIZE;
    } else if (type == CCI__PKT_COOKIE) {
        cci__store64(packet->bytes + 16, c);
    } else if (type == CCI__PKT_NOT_HERE) {
        cci__store64(packet->bytes + 16, r->field & 8 ? (known->name & ~(uint64_t)7) | (r->b & 7) : r->field & 4 ? known->name : d);
    }
    wrap_up(packet, world.sealing >= SEALED && type != CCI__PKT_COOKIE && type != CCI__PKT_RESET &&
                        type != CCI__PKT_BUSY && type != CCI__PKT_NOT_HERE && !(r->which & 64));
}

/* Many clients that are none. */
static void do_flood(const fuzz_record_t *r) {
    uint32_t i, count = r->a % 300;
    side_t *side = &world.side[r->which % SIDES];
    for (i = 0; i < count; i++) {
        packet_t packet;
        memset(packet.bytes, 0, CCI__REQUEST_SIZE);
        packet.to = (uint8_t)(r->which % SIDES);
        packet.from = (uint8_t)(STRANGER + i % STRANGERS);
        packet.is_group = 0;
        packet.length = CCI__REQUEST_SIZE;
        cci_conn_write_header(packet.bytes, CCI__PKT_REQUEST, r->field & 1, i, r->c + i, 0, 0);
        cci__store32(packet.bytes + 24, 100);
        if (world.sealing >= SEALED && r->field & 2) {
            memset(packet.bytes + CCI__REQUEST_SIZE, 0, CCI__SEALED_REQUEST + CCI__SECRET_SIZE - CCI__REQUEST_SIZE);
            packet.length = CCI__SEALED_REQUEST + CCI__SECRET_SIZE;
        }
        wrap_up(&packet, world.sealing >= SEALED && r->field & 2);
        deliver(&packet);
        if (side->inbox_count == INBOX_MAX) {
            poll_side(side);
        }
    }
}

/* ---- a run ------------------------------------------------------------------------------------------------------------- */

enum {
    OP_WORK,
    OP_POLL,
    OP_TIME,
    OP_SEND,
    OP_RMA,
    OP_CHANGE,
    OP_NETWORK,
    OP_FRAME,
    OP_INJECT,
    OP_CONNECT,
    OP_DECIDE,
    OP_HANDSHAKE,
    OP_FLOOD,
    OP_RETURN,
    OP_OPTION,
    OP_REGISTER,
    OP_DISCONNECT,
    OP_MODE,
    OP_DELIVER,
    OP_COUNT
};

static void do_record(const fuzz_record_t *r) {
    side_t *side = &world.side[r->which % SIDES];
    switch (r->op % OP_COUNT) {
    case OP_WORK:
        work(1 + r->pick % 8, 1000u << r->field % 12);
        break;
    case OP_POLL:
        poll_side(side);
        break;
    case OP_TIME:
        world.now_ns += (uint64_t)(1 + r->a) << r->pick % 26;
        break;
    case OP_SEND:
        do_send(r);
        break;
    case OP_RMA:
        do_rma(r);
        break;
    case OP_CHANGE:
        do_change(r);
        break;
    case OP_NETWORK:
        do_network(r);
        break;
    case OP_FRAME:
        do_frame(r);
        break;
    case OP_INJECT:
        do_inject(r);
        break;
    case OP_CONNECT:
        do_connect(r);
        break;
    case OP_DECIDE:
        do_decide(r);
        break;
    case OP_HANDSHAKE:
        do_handshake(r);
        break;
    case OP_FLOOD:
        do_flood(r);
        break;
    case OP_RETURN:
        return_held(side);
        break;
    case OP_OPTION:
        do_option(r);
        break;
    case OP_REGISTER:
        do_register(r);
        break;
    case OP_DISCONNECT:
        do_disconnect(r);
        break;
    case OP_MODE:
        world.holds = r->field & 1;
        world.decides = r->field >> 1 & 1;
        break;
    default:
        deliver_all();
        break;
    }
}

static uint32_t list_length(const cci_list_t *head) {
    const cci_list_t *node;
    uint32_t count = 0;
    for (node = head->next; node != head; node = node->next) {
        count++;
    }
    return count;
}

static cci__dgram_t *inside(const side_t *side) {
    return (cci__dgram_t *)(void *)side->ep;
}

/* All that an endpoint can lend must be back when nobody has a connection any more. */
static void check_stock(const side_t *side) {
    const cci__dgram_t *ep = inside(side);
    int kind;
    for (kind = 0; kind < CCI__STORES; kind++)
        FUZZ_CHECK(kind == CCI__STORE_OPS || list_length(ep->stores[kind].free) == ep->stores[kind].made, "things are lost");
    FUZZ_CHECK(ep->pool.block_out == 0 && ep->pool.large_out == 0 && ep->pool.middle_out == 0 &&
                   ep->pool.block_silent == 0 && ep->pool.middle_silent == 0 && ep->pool.large_silent == 0, "send buffers are lost");
    FUZZ_CHECK(ep->pool.record_free == ep->pool.record_total, "records of what was sent are lost");
    FUZZ_CHECK(ep->pool.reassembly_free == ep->pool.reassembly_total, "parts are lost");
    FUZZ_CHECK(list_length(&ep->rma.chunks) == ep->rma.chunk_made, "chunks are lost");
    FUZZ_CHECK(ep->base.evq.recv_out == 0, "events are lost");
    FUZZ_CHECK(ep->base.evq.free_buffer_count + CCI__DGRAM_BATCH_RX == ep->base.evq.buffer_total, "receive buffers are lost");
    FUZZ_CHECK(ep->base.conns.used == ep->base.closing && ep->base.conns.unproven == 0, "connections are lost");
}

static void open_side(uint8_t number, cci_device_t *device) {
    static const int rights[3] = {CCI_FLAG_READ | CCI_FLAG_WRITE, CCI_FLAG_READ, 0};
    side_t *side = &world.side[number];
    uint32_t i;
    FUZZ_CHECK(cci_create_endpoint(device, 0, &side->ep, NULL) == CCI_SUCCESS, "no endpoint");
    if (world.is_named && number == 1) {
        cci_conn_name_t name;
        FUZZ_CHECK(cci_conn_hash_name("storage", &name) == CCI_SUCCESS, "no name");
        inside(side)->base.conns.name = name.id; /* without what else a name takes of the system */
    }
    for (i = 0; i < 3; i++) {
        fuzz_window_fill(&side->window[i], number * 3u + i);
        FUZZ_CHECK(cci_rma_register(side->ep, fuzz_window_start(&side->window[i]), FUZZ_WINDOW_BYTES, rights[i],
                                    &side->handle[i]) == CCI_SUCCESS, "no registration");
    }
}

/* The network is gone. All that is pending ends in its time, and then all is as it was at first. */
static void wind_up(void) {
    uint32_t i, n;
    for (n = 0; n < SIDES; n++) {
        side_t *side = &world.side[n];
        return_held(side);
        while (side->request_count > 0) {
            decide(side, side->requests[--side->request_count], 0);
        }
        side->inbox_count = 0;
    }
    world.holds = world.decides = 0;
    /* What waits behind something that timed out may take as long once more. One round in eight looks at the clock. */
    for (i = 0; i < 8 * 70; i++) {
        world.flying_count = 0;
        world.now_ns += i % 8 == 0 ? UINT64_C(1000000000) : 1000;
        poll_side(&world.side[0]);
        poll_side(&world.side[1]);
    }
    for (i = 0; i < world.slot_count; i++) {
        FUZZ_CHECK(world.for_ever || world.slots[i].state == SLOT_OVER, "an operation is not over long after its time-out");
    }
    for (n = 0; n < SIDES; n++) {
        side_t *side = &world.side[n];
        while (side->connection_count > 0) {
            close_connection(side, side->connection_count - 1);
        }
        poll_side(side);
        poll_side(side);
        check_stock(side);
        for (i = 0; i < 3; i++) {
            fuzz_window_check(&side->window[i], n * 3u + i, i == READABLE || (i == LOCAL && !side->has_read));
        }
    }
    for (i = 0; i < STRANGERS; i++) {
        FUZZ_CHECK(world.stranger_knows[i] || world.stranger_out[i] <= world.stranger_in[i],
                   "an address that proved nothing is sent more than it sent");
    }
}

static void begin_world(const uint8_t *head) {
    static const uint32_t mtus[] = {1472, 256, 512, 1000};
    static const uint32_t send_sizes[] = {0, 4000, 0, 600};
    uint32_t i, more;
    for (i = 0; i < SIDES; i++) { /* what is big is not cleared: its counts are */
        memset((uint8_t *)&world.side[i] + offsetof(side_t, inbox_first), 0, sizeof world.side[i] - offsetof(side_t, inbox_first));
    }
    memset((uint8_t *)&world + offsetof(world_t, flying_count), 0, sizeof world - offsetof(world_t, flying_count));
    fuzz_allocs_left = fuzz_random_state = 0;
    world.now_ns = UINT64_C(1000000000) << head[6] % 16;
    world.has_crc = head[7] & 1;
    world.sealing = head[7] >> 1 & 3;
    world.congestion = head[7] & 8 ? "fixed" : NULL;
    more = (world.has_crc ? CCI__CRC_SIZE : 0) + (world.sealing >= SEALED ? TAG_BYTES : 0);
    world.mtu = mtus[head[1] % 4] + more;
    world.base_mtu = head[1] & 4 ? 256 + more : 0;
    world.max_send_size = send_sizes[head[2] >> 1 & 3];
    world.coalesce = head[2] & 1;
    world.recv_buffers = world.coalesce ? 2u + head[3] % 8 : 2u + head[3] % 32;
    world.send_buffers = 2u + head[4] % 32;
    world.holds = head[5] & 1;
    world.decides = head[5] >> 1 & 1;
    world.is_named = head[5] >> 2 & 1;
    world.has_paths = head[5] >> 3 & 1;
}

/* Connects side 0 to side 1, on a network that works. */
static void establish(uint8_t attribute) {
    fuzz_record_t r;
    memset(&r, 0, sizeof r);
    r.pick = attribute % 4;
    r.b = 5;
    r.a = (uint16_t)(attribute * 40u);
    if (r.pick == 3) { /* a group: one sends, both listen */
        r.pick = 4;
        do_connect(&r);
        r.which = 1;
        do_connect(&r);
        r.which = 0;
        r.pick = 3;
    }
    do_connect(&r);
    {
        uint32_t decides = world.decides;
        world.decides = 0;
        work(6, 100000);
        world.decides = decides;
    }
    FUZZ_CHECK(world.side[0].connection_count > 0 && world.side[1].connection_count > 0, "no connection");
}

static void run_program(const uint8_t *data, size_t size, int is_live) {
    cci_setup_t setup;
    cci_device_t *const *devices;
    uint32_t caps;
    if (size < FUZZ_HEAD_BYTES || size > FUZZ_MAX_BYTES) {
        return;
    }
    begin_world(data);
    fill_setup(&setup);
    setup.seal = world.sealing >= SEALED ? &fuzz_sealing[world.sealing == MIXED] : NULL;
    setup.config = "[fuzz0]\ntransport = fuzz\n[fuzz1]\ntransport = fuzz\n";
    FUZZ_CHECK(cci_setup(&setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS &&
                   cci_get_devices(&devices) == CCI_SUCCESS, "no beginning");
    open_side(0, devices[0]);
    open_side(1, devices[1]);
    if (is_live) {
        establish(data[0]);
    }
    for (data += FUZZ_HEAD_BYTES, size -= FUZZ_HEAD_BYTES; size >= FUZZ_RECORD_BYTES;
         data += FUZZ_RECORD_BYTES, size -= FUZZ_RECORD_BYTES) {
        fuzz_record_t record = fuzz_read_record(data);
        do_record(&record);
    }
    wind_up();
    FUZZ_CHECK(cci_finalize() == CCI_SUCCESS, "no end");
    FUZZ_CHECK(world.keys_out == 0, "keys are not forgotten");
}

static void run_live(const uint8_t *data, size_t size) {
    run_program(data, size, 1);
}

static void run_handshake(const uint8_t *data, size_t size) {
    run_program(data, size, 0);
}

static const uint8_t live_phrases[][4] = {{OP_SEND, OP_WORK, 0xff, 0},         {OP_RMA, OP_WORK, 0xff, 0},
                                          {OP_FRAME, OP_INJECT, OP_WORK, 0xff}, {OP_FRAME, OP_FRAME, OP_INJECT, OP_WORK},
                                          {OP_SEND, OP_CHANGE, OP_WORK, 0xff}, {OP_RMA, OP_CHANGE, OP_WORK, 0xff},
                                          {OP_SEND, OP_SEND, OP_NETWORK, OP_WORK}, {OP_RMA, OP_POLL, OP_NETWORK, OP_WORK},
                                          {OP_SEND, OP_TIME, OP_POLL, OP_WORK}, {OP_RMA, OP_WORK, OP_CHANGE, OP_WORK},
                                          {OP_WORK, OP_FRAME, OP_INJECT, OP_WORK}};
static const uint8_t handshake_phrases[][4] = {
    {OP_CONNECT, OP_WORK, 0xff, 0},         {OP_CONNECT, OP_POLL, OP_CHANGE, OP_WORK}, {OP_HANDSHAKE, OP_WORK, 0xff, 0},
    {OP_CONNECT, OP_NETWORK, OP_WORK, 0xff}, {OP_CONNECT, OP_WORK, OP_DECIDE, OP_WORK}, {OP_HANDSHAKE, OP_HANDSHAKE, OP_WORK, 0xff},
    {OP_FLOOD, OP_CONNECT, OP_WORK, OP_WORK}, {OP_CONNECT, OP_WORK, OP_HANDSHAKE, OP_WORK}, {OP_WORK, OP_TIME, OP_WORK, 0xff},
    {OP_CONNECT, OP_WORK, OP_SEND, OP_WORK}, {OP_MODE, OP_CONNECT, OP_WORK, OP_DECIDE}};

/* ================================================================================================================== *
 * The layer >>rma alone: a reader on each side, and frames between them
 * ================================================================================================================== */

enum { FRAMES_MAX = 48, FRAME_BYTES = 1600, REGIONS = 4, READS = 6, CHUNKS = 8, REQUESTS = 8 };

typedef struct frames {
    uint32_t to, length;
    uint64_t bytes[FRAME_BYTES / 8]; /* aligned as in a receive buffer */
} frames_t;

typedef struct rma_side {
    cci_rma_table_t table;
    cci_rma_reader_t reader;
    cci_rma_region_t regions[REGIONS], *shared, *local;
    cci_rma_read_t reads[READS];
    cci_rma_chunk_t chunks[CHUNKS];
    cci_rma_request_t requests[REQUESTS];
    fuzz_window_t shared_window, local_window;
    uint32_t last_chunk;
} rma_side_t;

static struct {
    rma_side_t side[2];
    frames_t flying[FRAMES_MAX];
    uint32_t flying_count;
    uint64_t now_ns;
} rma;

enum {
    RMA_START,
    RMA_ASK,
    RMA_ANSWER,
    RMA_DELIVER,
    RMA_CHANGE,
    RMA_DROP,
    RMA_AGAIN,
    RMA_TIME,
    RMA_TIMEOUT,
    RMA_REGISTER,
    RMA_INVENT,
    RMA_HANDLE,
    RMA_WORK,
    RMA_COUNT
};

static const uint8_t rma_phrases[][4] = {{RMA_START, RMA_WORK, 0xff, 0},         {RMA_START, RMA_ASK, RMA_DELIVER, RMA_ANSWER},
                                         {RMA_START, RMA_ASK, RMA_CHANGE, RMA_WORK}, {RMA_INVENT, RMA_DELIVER, RMA_WORK, 0xff},
                                         {RMA_TIME, RMA_TIMEOUT, RMA_WORK, 0xff}, {RMA_ANSWER, RMA_CHANGE, RMA_DELIVER, 0xff},
                                         {RMA_ANSWER, RMA_DROP, RMA_TIME, RMA_TIMEOUT}};

static void rma_reset(uint32_t chunk_window) {
    uint32_t i;
    for (i = 0; i < 2; i++) {
        rma_side_t *s = &rma.side[i];
        const uint64_t key[2] = {i + 1, 99};
        cci_rma_table_init(&s->table, key, s->regions, REGIONS, s->reads, READS, s->chunks, CHUNKS, s->requests, REQUESTS);
        s->table.receive_window = 1024u << chunk_window % 8;
        cci_rma_reader_init(&s->reader, s);
        fuzz_window_fill(&s->shared_window, i);
        fuzz_window_fill(&s->local_window, i + 2);
        s->shared = cci_rma_add(&s->table, fuzz_window_start(&s->shared_window), FUZZ_WINDOW_BYTES, CCI_FLAG_READ);
        s->local = cci_rma_add(&s->table, fuzz_window_start(&s->local_window), FUZZ_WINDOW_BYTES, 0);
        s->last_chunk = 0;
    }
    rma.flying_count = 0;
    rma.now_ns = 1000000;
}

static frames_t *rma_new_frames(uint32_t to) {
    frames_t *frames;
    if (rma.flying_count == FRAMES_MAX) {
        rma.flying_count--;
    }
    frames = &rma.flying[rma.flying_count++];
    memset(frames, 0, sizeof *frames);
    frames->to = to;
    return frames;
}

static void rma_start(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2], *peer = &rma.side[!(r->which % 2)];
    cci_rma_read_t *read = cci_rma_new_read(&s->table);
    uint64_t offset = r->a % FUZZ_WINDOW_BYTES;
    if (read == NULL) {
        return;
    }
    read->item = read;
    read->local_key = s->local->key;
    read->local_region = (uint32_t)(s->local - s->regions);
    read->key = peer->shared->key ^ (r->field & 1);
    read->region = (uint32_t)(peer->shared - peer->regions) + (r->field >> 1 & 7);
    read->local_offset = read->offset = offset;
    read->length = 1 + r->c % (FUZZ_WINDOW_BYTES - offset);
    if (r->field & 16) { /* a program may name any place of a peer's memory, there or not */
        read->offset = fuzz_number(r->d);
    }
    cci_rma_read_start(&s->reader, read);
}

static void rma_ask(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2];
    frames_t *frames;
    if (!cci_rma_wants_to_ask(&s->table, &s->reader)) {
        return;
    }
    frames = rma_new_frames(!(r->which % 2));
    frames->length = cci_rma_ask(&s->table, &s->reader, (216u + r->a % 1200) & ~7u, (uint8_t *)frames->bytes,
                                 48 + r->b % 200, rma.now_ns);
    FUZZ_CHECK(frames->length <= 48u + r->b % 200, "more asked than there was room for");
    if (frames->length > 0) {
        s->last_chunk = cci__load32((uint8_t *)frames->bytes + 4);
    }
}

static void rma_answer(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2];
    uint8_t head[16];
    const uint8_t *body;
    uint32_t length, size = cci_rma_answer(&s->table, &s->reader, head, r->a == 0 ? 1500 : r->a % 1500, &body, &length);
    frames_t *frames;
    if (size == 0) {
        return;
    }
    FUZZ_CHECK(size == 8 || size == 16, "an answer of a strange size");
    frames = rma_new_frames(!(r->which % 2));
    memcpy(frames->bytes, head, size);
    if (length > 0) {
        const uint8_t *start = fuzz_window_start(&s->shared_window);
        FUZZ_CHECK(body >= start && length <= FUZZ_WINDOW_BYTES && body + length <= start + FUZZ_WINDOW_BYTES,
                   "an answer from where nobody may read");
        memcpy((uint8_t *)frames->bytes + size, body, length);
    }
    frames->length = size + length;
}

static void rma_deliver(uint32_t index) {
    frames_t frames = rma.flying[index];
    rma_side_t *s = &rma.side[frames.to % 2];
    cci_rma_read_t *read;
    uint32_t at = 0, rounds = 0;
    uint8_t *copy = (uint8_t *)malloc(frames.length ? frames.length : 1); /* so that a sanitizer sees its end */
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, frames.bytes, frames.length);
    rma.flying_count--;
    memmove(&rma.flying[index], &rma.flying[index + 1], (rma.flying_count - index) * sizeof rma.flying[0]);
    while (at < frames.length) {
        uint32_t size = cci_rma_input(&s->table, &s->reader, copy + at, frames.length - at, rma.now_ns);
        FUZZ_CHECK(++rounds <= FRAME_BYTES / 8, "frames without end");
        if (size == 0 || size > frames.length - at) {
            break;
        }
        at += size;
    }
    free(copy);
    while ((read = cci_rma_next_finished(&s->reader)) != NULL) {
        FUZZ_CHECK(read->item == read, "a read that is none");
        cci_rma_free_read(&s->table, read);
    }
}

static void rma_change(const fuzz_record_t *r) {
    static const uint8_t fields[][2] = {{0, 1}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {8, 4}, {16, 4}, {20, 4}, {24, 8}, {32, 4}, {40, 8}};
    frames_t *frames;
    uint32_t at, i;
    uint64_t value = fuzz_number(r->c);
    if (rma.flying_count == 0) {
        return;
    }
    frames = &rma.flying[r->pick % rma.flying_count];
    if (r->field & 1) {
        frames->length = r->field & 2 ? r->a % (frames->length + 1) : cci__min32(FRAME_BYTES, frames->length + r->a % 64);
        return;
    }
    at = fields[r->a % 11][0] + (r->b & 3u) * 48u;
    for (i = 0; i < fields[r->a % 11][1] && at + i < frames->length; i++) {
        ((uint8_t *)frames->bytes)[at + i] = (uint8_t)(value >> 8 * i);
    }
}

/* A frame that nobody sent, near to what is awaited. */
static void rma_invent(const fuzz_record_t *r) {
    uint32_t to = r->which % 2;
    rma_side_t *s = &rma.side[to];
    frames_t *frames = rma_new_frames(to);
    uint8_t *at = (uint8_t *)frames->bytes;
    at[0] = (uint8_t)(CCI__FRAME_READ + r->pick % 4);
    if (at[0] == CCI__FRAME_READ) {
        cci__store32(at + 4, r->b);
        cci__store64(at + 8, r->field & 1 ? s->local->key : s->shared->key);
        cci__store32(at + 16, (uint32_t)((r->field & 1 ? s->local : s->shared) - s->regions) + (r->field >> 1 & 3));
        cci__store32(at + 20, r->field & 8 ? (uint32_t)fuzz_number(r->d) : 64u + r->a % 1400);
        cci__store64(at + 24, fuzz_number(r->c));
        cci__store32(at + 32, r->field & 16 ? (uint32_t)fuzz_number(r->c ^ r->d) : 1 + r->d % 20000);
        cci__store64(at + 40, r->field & 32 ? UINT64_MAX : fuzz_number(r->d));
        frames->length = 48;
    } else {
        cci__store16(at + 2, r->a);
        cci__store32(at + 4, s->last_chunk + near_by(r->b));
        cci__store32(at + 8, (uint32_t)fuzz_number(r->c));
        frames->length = at[0] == CCI__FRAME_DATA ? cci__min32(16u + r->a, FRAME_BYTES) : 8;
    }
}

/* The 32 bytes of a handle, and a range: an address comes out only if all of it is inside. */
static void rma_handle(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2];
    struct cci_rma_handle handle = s->shared->handle;
    uint64_t key, offset = fuzz_number(r->c), length = fuzz_number(r->d);
    uint32_t region;
    uint8_t *address, *start = fuzz_window_start(&s->shared_window);
    ((uint8_t *)handle.stuff)[r->pick % 32] = (uint8_t)(((uint8_t *)handle.stuff)[r->pick % 32] ^ r->field);
    cci_rma_parse_handle(&handle, &key, &region);
    address = cci_rma_address(&s->table, key, region, offset, length, CCI_FLAG_READ);
    FUZZ_CHECK(address == NULL || (length <= FUZZ_WINDOW_BYTES && offset <= FUZZ_WINDOW_BYTES - length &&
                                   address == start + (size_t)offset), "a range outside its registration");
    FUZZ_CHECK(!(r->field && r->pick % 32 < 16) || address == NULL, "a handle that was never given is taken");
}

static void rma_register(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2];
    if (r->field & 1) {
        cci_rma_remove(&s->table, s->local);
        s->local = cci_rma_add(&s->table, fuzz_window_start(&s->local_window), FUZZ_WINDOW_BYTES, 0);
    } else {
        cci_rma_remove(&s->table, s->shared);
        s->shared = cci_rma_add(&s->table, fuzz_window_start(&s->shared_window), FUZZ_WINDOW_BYTES, CCI_FLAG_READ);
    }
    FUZZ_CHECK(s->local != NULL && s->shared != NULL, "no room for a registration");
}

static void rma_work(uint32_t rounds) {
    fuzz_record_t r;
    memset(&r, 0, sizeof r);
    for (; rounds > 0; rounds--) {
        for (r.which = 0; r.which < 2; r.which++) {
            uint32_t answers;
            rma_ask(&r);
            for (answers = 0; answers < 16; answers++) {
                rma_answer(&r);
            }
        }
        while (rma.flying_count > 0) {
            rma_deliver(0);
        }
        rma.now_ns += 10000;
    }
}

static void rma_record(const fuzz_record_t *r) {
    rma_side_t *s = &rma.side[r->which % 2];
    switch (r->op % RMA_COUNT) {
    case RMA_START:
        rma_start(r);
        break;
    case RMA_ASK:
        rma_ask(r);
        break;
    case RMA_ANSWER:
        rma_answer(r);
        break;
    case RMA_DELIVER:
        if (rma.flying_count > 0) {
            rma_deliver(r->pick % rma.flying_count);
        }
        break;
    case RMA_CHANGE:
        rma_change(r);
        break;
    case RMA_DROP:
        rma.flying_count -= rma.flying_count > 0;
        break;
    case RMA_AGAIN:
        if (rma.flying_count > 0) {
            frames_t copy = rma.flying[r->pick % rma.flying_count];
            *rma_new_frames(copy.to) = copy;
        }
        break;
    case RMA_TIME:
        rma.now_ns += (uint64_t)r->a << r->pick % 20;
        break;
    case RMA_TIMEOUT:
        if (cci_rma_deadline(&s->reader) <= rma.now_ns || r->field & 1) {
            cci_rma_timeout(&s->table, &s->reader, 216, rma.now_ns);
        }
        break;
    case RMA_REGISTER:
        rma_register(r);
        break;
    case RMA_INVENT:
        rma_invent(r);
        break;
    case RMA_HANDLE:
        rma_handle(r);
        break;
    default:
        rma_work(1 + r->pick % 4);
        break;
    }
}

/* Where a reader got its bytes from a peer that was left alone, they are the peer's. */
static void run_rma(const uint8_t *data, size_t size) {
    uint32_t i, is_clean = 1;
    if (size < FUZZ_HEAD_BYTES || size > FUZZ_MAX_BYTES) {
        return;
    }
    rma_reset(data[0]);
    for (data += FUZZ_HEAD_BYTES, size -= FUZZ_HEAD_BYTES; size >= FUZZ_RECORD_BYTES;
         data += FUZZ_RECORD_BYTES, size -= FUZZ_RECORD_BYTES) {
        fuzz_record_t r = fuzz_read_record(data);
        uint32_t op = r.op % RMA_COUNT;
        is_clean &= op != RMA_CHANGE && op != RMA_INVENT && !(op == RMA_START && r.field & 31);
        rma_record(&r);
    }
    for (i = 0; i < 2; i++) {
        rma_side_t *s = &rma.side[i];
        size_t at;
        cci_rma_reader_abort(&s->table, &s->reader);
        FUZZ_CHECK(list_length(&s->table.reads) == READS && list_length(&s->table.chunks) == CHUNKS &&
                       list_length(&s->table.requests) == REQUESTS, "reads are lost");
        FUZZ_CHECK(cci_rma_reader_idle(&s->reader) && s->reader.outstanding == 0 && s->reader.again == 0, "a reader is left busy");
        fuzz_window_check(&s->shared_window, i, 1);
        fuzz_window_check(&s->local_window, i + 2, 0);
        for (at = FUZZ_GUARD_BYTES; is_clean && at < FUZZ_GUARD_BYTES + FUZZ_WINDOW_BYTES; at++) {
            FUZZ_CHECK(s->local_window.bytes[at] == fuzz_pattern(at, i + 2) || s->local_window.bytes[at] == fuzz_pattern(at, !i),
                       "a read brought what was not there");
        }
    }
}

/* ================================================================================================================== *
 * Texts
 * ================================================================================================================== */

static const char *const config_words[] = {
    "[", "]", "\n", "\r\n", "=", "#", " ", "\t", "[a]\ntransport = fuzz\n", "[b]\ntransport=udp\n", "transport = ", "priority = ",
    "default = 1\n", "default=", "fuzz\n", "udp\n", "100", "bad = 1\n", "ip = 127.0.0.1\n", "ip = ::1%", "mac = 00:11:22:33:44:55\n",
    "interface = lo\n", "mtu = ", "port = 4", "bufsize = 1M\n", "progress = thread\n", "congestion = newreno\n", "offload = off\n",
    "ttl = 1\n", "999999999999G\n", "\xef\xbb\xbf", NULL};

/* The device list: the highest priority first, each named and with arguments that end. */
static void look_at_devices(void) {
    cci_device_t *const *devices;
    uint32_t i, j;
    FUZZ_CHECK(cci_get_devices(&devices) == CCI_SUCCESS && devices != NULL, "no devices");
    for (i = 0; devices[i] != NULL; i++) {
        FUZZ_CHECK(devices[i]->name[0] != '\0' && devices[i]->transport != NULL && devices[i]->up <= 1, "a strange device");
        for (j = 0; devices[i]->conf_argv != NULL && devices[i]->conf_argv[j] != NULL; j++) {
            FUZZ_CHECK(strchr(devices[i]->conf_argv[j], '=') != NULL, "an argument that is none");
        }
    }
}

/* As bytes to the parser, which takes any; as a text through cci_setup(), as far as its first 0. */
static void run_config(const uint8_t *data, size_t size) {
    cci_setup_t setup;
    cci__ini_t ini;
    uint32_t caps, i;
    char *text;
    if (size > 1u << 14) {
        return;
    }
    fuzz_allocs_left = 0;
    fill_setup(&setup);
    FUZZ_CHECK(cci_setup(&setup) == CCI_SUCCESS, "no beginning");
    if (cci__ini_parse("text", (const char *)data, size, &ini) == CCI_SUCCESS) {
        for (i = 0; i < ini.section_count; i++) {
            const cci__ini_section_t *section = &ini.sections[i];
            FUZZ_CHECK(section->name[0] != '\0' && section->transport[0] != '\0' && section->priority <= 100 &&
                           section->first_arg + section->arg_count < ini.arg_count &&
                           ini.args[section->first_arg + section->arg_count] == NULL, "a strange section");
        }
        cci__ini_free(&ini);
    }
    text = (char *)malloc(size + 1);
    if (text == NULL) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    setup.config = text;
    FUZZ_CHECK(cci_setup(&setup) == CCI_SUCCESS, "no beginning");
    if (cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS) {
        look_at_devices();
        FUZZ_CHECK(cci_finalize() == CCI_SUCCESS, "no end");
    }
    fuzz_allocs_left = 1 + (uint32_t)(size % 8); /* and when memory is short */
    if (cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS) {
        FUZZ_CHECK(cci_finalize() == CCI_SUCCESS, "no end");
    }
    fuzz_allocs_left = 0;
    setup.config = NULL;
    (void)cci_setup(&setup);
    free(text);
}

static const char *const uri_words[] = {"fuzz://", "udp://", "ip://", "sim://", "g", "[", "]", ":", "%", "127.0.0.1", "::1", "::ffff:1.2.3.4",
                                        "fe80::1%lo", "0x7f.1", "65535", "65536", "0", ":1", "localhost", "/", "/storage", "/\303\244", "/1/2", "0:51132", NULL};

/* What names become in the transport for UDP; no socket is opened. */
static void look_at_udp(const char *text) {
    static cci__udp_link link_state;
    cci_link_addr_t to;
    char host[300], shown[100];
    unsigned port = 0;
    uint64_t number, plain;
    int status;
    memset(&link_state, 0, sizeof link_state);
    link_state.of_family[0][0] = &link_state.socket[0];
    link_state.of_family[0][1] = &link_state.socket[1];
    memset(&to, 0, sizeof to);
    if (cci__udp_split(text, host, sizeof host, &port)) {
        FUZZ_CHECK(port >= 1 && port <= 65535 && strlen(host) > 0 && strlen(host) < sizeof host, "a strange host or port");
    }
    status = cci__udp_resolve(&link_state, text, &to);
    FUZZ_CHECK(status == CCI_SUCCESS || status == CCI_EINVAL || status == CCI_EADDRNOTAVAIL, "a strange status");
    if (status == CCI_SUCCESS) {
        cci_link_addr_t again;
        FUZZ_CHECK(to.bytes[0] == 4 || to.bytes[0] == 6, "an address of no family");
        (void)cci__udp_is_group(&link_state, &to);
        cci__udp_addr_text(&to, shown, sizeof shown);
        memset(&again, 0, sizeof again);
        FUZZ_CHECK(cci__udp_resolve(&link_state, shown, &again) == CCI_SUCCESS && memcmp(&to, &again, sizeof to) == 0,
                   "an address that is another when it is read again");
    }
    status = cci__udp_service_port(text);
    FUZZ_CHECK(status >= -1 && status <= 65535, "a strange port");
    if (cci__udp_number(text, 1, &number) && !cci__udp_number(text, 0, &plain)) {
        const uint64_t unit = text[strlen(text) - 1] == 'G' ? 1u << 30 : text[strlen(text) - 1] == 'M' ? 1u << 20 : 1u << 10;
        FUZZ_CHECK(number % unit == 0 && number / unit == (uint64_t)strtoull(text, NULL, 10), "a number that is another");
    }
}

/* To an endpoint of the simulated link through cci_connect(), and as a service; to the names of UDP directly. */
static void run_uri(const uint8_t *data, size_t size) {
    static const uint8_t head[FUZZ_HEAD_BYTES] = {0, 0, 0, 2, 2, 0, 0, 0};
    cci_setup_t setup;
    cci_device_t *const *devices;
    cci_endpoint_t *ep, *other;
    struct timeval timeout = {1, 0};
    uint32_t caps, i;
    char *text;
    if (size > 1024) {
        return;
    }
    text = (char *)malloc(size + 1);
    if (text == NULL) {
        abort();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    look_at_udp(text);
    if (strncmp(text, "udp://", 6) == 0 || strncmp(text, "fuzz://", 7) == 0 || strncmp(text, "sim://", 6) == 0 || size < 4) {
        begin_world(head);
        fill_setup(&setup);
        setup.config = "[fuzz0]\ntransport = fuzz\n";
        FUZZ_CHECK(cci_setup(&setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS &&
                       cci_get_devices(&devices) == CCI_SUCCESS &&
                       cci_create_endpoint(devices[0], 0, &ep, NULL) == CCI_SUCCESS, "no beginning");
        for (i = 0; i <= CCI_CONN_ATTR_UU_MC_RX; i++) {
            (void)cci_connect(ep, text, NULL, 0, (cci_conn_attribute_t)i, NULL, 0, &timeout);
        }
        if (cci_create_endpoint_at(devices[0], text, 0, &other, NULL) == CCI_SUCCESS) {
            FUZZ_CHECK(cci_destroy_endpoint(other) == CCI_SUCCESS, "an endpoint that can't be destroyed");
        }
        FUZZ_CHECK(cci_finalize() == CCI_SUCCESS, "no end");
    }
    free(text);
}

/* ================================================================================================================== *
 * Where the queue pair of a host's endpoint is (cci_verbs.h)
 *
 * The input is a byte about the port, then records: what comes from a host, and 64 bytes, or fewer at the end.
 * ================================================================================================================== */

static const char *const card_words[] = {"CCIv\1\1\1", "CCIv\1\2\1", "CCIv\1\1\2", "CCIv\1\2\2", "ICC", "\377\377", "\1", "\2",
                                         "\34", "\35", "\36", "\37", NULL};

#ifndef CCI__VERBS_WHY_NOT

enum { CARD_HOSTS = 4, CARD_ASKED = 4, CARD_NAMED = 8, CARD_KNOWN = 16 };

static cci__verbs_link card_link;
static cci_link_addr_t card_partner; /* who is asked, or asks */
static uint32_t cards_sent;

static ssize_t look_at_sent_card(const void *bytes, size_t length, const struct sockaddr *to) {
    cci__verbs_sockaddr s;
    cci_link_addr_t host;
    memset(&s, 0, sizeof s);
    memcpy(&s, to, to->sa_family == AF_INET ? sizeof s.v4 : sizeof s.v6);
    cci__verbs_host_of(&host, &s);
    FUZZ_CHECK(length == CCI__VERBS_CARD && memcmp(bytes, "CCIv", 4) == 0, "something else was sent");
    FUZZ_CHECK(memcmp(&host, &card_partner, sizeof host) == 0, "sent to somebody else");
    cards_sent++;
    return (ssize_t)length;
}

static void begin_card_link(uint8_t choice) {
    static const uint8_t gids[][16] = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 1},
                                       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}};
    cci_setup_t setup;
    fuzz_allocs_left = 0;
    fill_setup(&setup);
    FUZZ_CHECK(cci_setup(&setup) == CCI_SUCCESS, "no beginning");
    memset(&card_link, 0, sizeof card_link);
    card_link.socket = CARD_SOCKET;
    card_link.mtu = 1024;
    card_link.device.mode = choice & 8 ? CCI__VERBS_UD : CCI__VERBS_RC;
    card_link.device.qkey = 0x434349;
    card_link.port.gid_kind = CCI__GID_V1 + (choice & 7) % 5;
    card_link.port.is_ethernet = card_link.port.gid_kind != CCI__GID_IB;
    memcpy(card_link.port.gid, gids[card_link.port.gid_kind == CCI__GID_V2_IPV4], 16);
}

/* One that datagrams can be sent to, and that its text names, too. */
static void look_at_card_address(const cci_link_addr_t *to) {
    char ip[INET6_ADDRSTRLEN], text[100];
    cci_link_addr_t again;
    uint32_t lid = cci__verbs_addr_lid(to);
    FUZZ_CHECK(to->bytes[0] == CCI__VERBS_TO_QP && inet_ntop(AF_INET6, to->bytes + 8, ip, sizeof ip) != NULL, "no queue pair");
    snprintf(text, sizeof text, lid ? "[%s]/%lu/%lu" : "[%s]/%lu", ip, (unsigned long)cci__verbs_addr_qpn(to),
             (unsigned long)lid);
    FUZZ_CHECK(cci__verbs_parse_direct(&card_link, text, &again) == 1 && memcmp(to, &again, sizeof again) == 0,
               "an address that nobody could name");
}

/* What comes from one host changes at most what was asked of that host, and that only if it repeats the nonce. */
static void hear_card(uint8_t *card, size_t length) {
    static cci__verbs_question before[CCI__VERBS_QUESTIONS];
    uint8_t nonce[8];
    uint32_t i;
    memcpy(before, card_link.questions, sizeof before);
    memcpy(nonce, card + 8, sizeof nonce);
    cards_sent = 0;
    cci__verbs_input_card(&card_link, card, length, &card_partner);
    FUZZ_CHECK(cards_sent <= (length == CCI__VERBS_CARD), "more was sent than came");
    for (i = 0; i < CCI__VERBS_QUESTIONS; i++) {
        const cci__verbs_question *now = &card_link.questions[i];
        if (memcmp(now, &before[i], sizeof *now) != 0) {
            FUZZ_CHECK(memcmp(&now->host, &card_partner, sizeof now->host) == 0 && before[i].status == CCI_EAGAIN &&
                           memcmp(now->nonce, nonce, sizeof nonce) == 0, "believed without proof");
            FUZZ_CHECK(now->status == CCI_SUCCESS || now->status == CCI_ECONNREFUSED, "an answer that is none");
            if (now->status == CCI_SUCCESS) {
                look_at_card_address(&now->answer);
            }
        }
    }
}

static void run_card(const uint8_t *data, size_t size) {
    size_t at = 1;
    begin_card_link(size > 0 ? data[0] : 0);
    while (at < size) {
        uint8_t how = data[at++], card[CCI__VERBS_CARD + 1], ip[16] = {127, 0, 0, 2};
        size_t length = size - at < CCI__VERBS_CARD ? size - at : CCI__VERBS_CARD;
        const cci__verbs_question *q;
        memset(card, 0, sizeof card);
        memcpy(card, data + at, length);
        at += length;
        ip[3] = (uint8_t)(how % CARD_HOSTS);
        cci__verbs_make_host(&card_partner, how % CARD_HOSTS == 3 ? 6 : 4, ip, 4000, 0);
        if (how & CARD_ASKED) {
            cci_link_addr_t to = card_partner;
            int status = cci__verbs_ask(&card_link, &to);
            FUZZ_CHECK(status == CCI_EAGAIN || status == CCI_SUCCESS || status == CCI_ECONNREFUSED, "a strange status");
        }
        if (how & CARD_NAMED) {
            memcpy(card, "CCIv\1", 5);
        }
        q = cci__verbs_find_question(&card_link, &card_partner);
        if ((how & CARD_KNOWN) && q != NULL) {
            memcpy(card + 8, q->nonce, sizeof q->nonce);
        }
        hear_card(card, length);
    }
}

#else

static ssize_t look_at_sent_card(const void *bytes, size_t length, const struct sockaddr *to) {
    (void)bytes;
    (void)to;
    return (ssize_t)length;
}

static void run_card(const uint8_t *data, size_t size) {
    (void)data;
    (void)size;
    fuzz_fail(CCI__VERBS_WHY_NOT, __LINE__);
}

#endif

/* ================================================================================================================== */

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])

static const fuzz_target_t fuzz_targets[] = {
    {"live", run_live, OP_COUNT, live_phrases, COUNT(live_phrases), NULL},
    {"handshake", run_handshake, OP_COUNT, handshake_phrases, COUNT(handshake_phrases), NULL},
    {"rma", run_rma, RMA_COUNT, rma_phrases, COUNT(rma_phrases), NULL},
    {"config", run_config, 0, NULL, 0, config_words},
    {"uri", run_uri, 0, NULL, 0, uri_words},
    {"card", run_card, 0, NULL, 0, card_words}};

#define FUZZ_STRING(x) #x
#define FUZZ_NAME(x) FUZZ_STRING(x)

/* Chooses the target; returns the number of the first argument that is an input. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
#ifdef FUZZ_TARGET
    const char *name = FUZZ_NAME(FUZZ_TARGET);
    int first = 1;
#else
    const char *name = *argc > 1 ? (*argv)[1] : "";
    int first = 2;
#endif
    uint32_t i;
    (void)argv;
    for (i = 0; i < COUNT(fuzz_targets); i++) {
        if (strcmp(name, fuzz_targets[i].name) == 0) {
            fuzz_target = &fuzz_targets[i];
        }
    }
    if (fuzz_target == NULL) {
        fprintf(stderr, "usage: %s live|handshake|rma|config|uri|card FILE-OR-DIRECTORY...\n", *argc > 0 ? (*argv)[0] : "fuzz");
        exit(2);
    }
#ifdef FUZZ_LIBFUZZER
    return 0;
#else
    return first;
#endif
}
