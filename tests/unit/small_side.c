/* small_side.c - one end of the connections that small.c makes: compiled once for each profile, with a private copy of the
 * library, and SIDE as the name of its table.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_STATIC
#define CCI_NO_THREADS
#define CCI_IMPLEMENTATION
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/seal.h"
#include "tests/unit/small_side.h"

#ifndef SIDE
#define SIDE full_side
#endif
#define TEXT_OF(name) #name
#define NAME_OF(side) TEXT_OF(side)
#if defined(CCI_NO_SEAL) || (defined(CCI_TINY) && !defined(CCI_TINY_SEAL))
#define SEALS 0
#else
#define SEALS 1
#endif

struct end {
    cci_endpoint_t *endpoint;
    cci_connection_t *connection;
    struct end_state state;
    uint8_t offered[2000], local[2000];
    cci_rma_handle_t *handle, *local_handle;
    uint8_t peer_handle[32];
    int is_client, has_peer_handle, wants_rma, step, seed, atomic; /* 0: not begun; 2: over */
    uint64_t previous;
    uint32_t sent, echoed, seen[MESSAGES];
    uint8_t number; /* address in the network */
    int keeps;      /* see keep() */
    cci_event_t *kept[8];
    uint32_t kept_count, ends;
};

static long blocks;

static void *counting_alloc(void *user, size_t size) {
    (void)user;
    blocks++;
    return malloc(size);
}
static void counting_release(void *user, void *pointer) {
    (void)user;
    blocks--;
    free(pointer);
}
static int chance(void *user, void *bytes, size_t count) {
    static uint64_t state; /* other numbers for each profile */
    const char *name = NAME_OF(SIDE);
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    for (; state == 0 || *name; name++) state = state == 0 ? 88172645463325252u : (state ^ (uint8_t)*name) * 1099511628211u;
    while (count-- > 0) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        *at++ = (uint8_t)(state >> 11);
    }
    return 0;
}
static void no_log(void *user, int level, const char *text) {
    (void)user, (void)level, (void)text;
}

/* ---- the link: the network of small.c ---------------------------------------------------------------------------------- */

static int net_open(cci_device_t *device, const char *service, int want, void **link, cci_link_info_t *info) {
    static uint8_t numbers[256];
    (void)device, (void)want;
    numbers[(uint8_t)service[0]] = (uint8_t)service[0];
    *link = &numbers[(uint8_t)service[0]];
    info->mtu = small_mtu;
    info->crc = 1;
    return CCI_SUCCESS;
}
static void net_close(void *link) { (void)link; }
static int net_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++) {
        uint8_t bytes[2048];
        uint32_t piece, length = 0;
        for (piece = 0; piece < tx[i].piece_count; length += tx[i].piece[piece++].length)
            memcpy(bytes + length, tx[i].piece[piece].data, tx[i].piece[piece].length);
        if (length != tx[i].length || length > small_mtu) abort();
        small_send(*(const uint8_t *)link, tx[i].to->bytes[0], bytes, length);
    }
    return count;
}
static int net_receive(void *link, cci_link_rx_t *rx, int count) {
    (void)count;
    memset(&rx->from, 0, sizeof rx->from);
    rx->is_group = 0;
    rx->length = rx->segment = small_receive(*(const uint8_t *)link, &rx->from.bytes[0], rx->data, rx->capacity);
    return rx->length > 0;
}
static uint64_t net_now(void *link) {
    (void)link;
    return small_now_ns;
}
static int net_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    to->bytes[0] = (uint8_t)address[0];
    return CCI_SUCCESS;
}

static const cci_link_t net = {CCI_LINK_VERSION, net_open, net_close, net_send, net_receive, net_now, net_resolve, NULL,
                               NULL,             NULL,     NULL,      NULL,     NULL,        NULL,    NULL,        NULL};

/* ---- what an end does ---------------------------------------------------------------------------------------------------- */

static void expect(end_t *end, int is_so, const char *what) {
    if (is_so) return;
    if (!end->state.failure) end->state.failure = what;
}

static uint32_t length_of(const end_t *end, uint32_t number) {
    uint32_t most = end->connection->max_send_size;
    return 4 + (number * 7919u + (uint32_t)end->seed) % (most - 3);
}

static void fill(uint8_t *bytes, uint32_t length, uint32_t number) {
    uint32_t i;
    for (i = 0; i < length; i++) bytes[i] = (uint8_t)(number * 31 + i * 7);
    memcpy(bytes, &number, 4);
}

static void check_message(end_t *end, const cci_event_t *event) {
    uint8_t wanted[2048];
    uint32_t number;
    if (event->recv.len < 4) {
        expect(end, 0, "a message is too short");
        return;
    }
    memcpy(&number, event->recv.ptr, 4);
    if (number == HANDLE_MESSAGE) {
        memcpy(end->peer_handle, (const uint8_t *)event->recv.ptr + 4, 32);
        end->has_peer_handle = 1;
        return;
    }
    expect(end, number < MESSAGES && end->seen[number] == 0, "a message came twice");
    if (number >= MESSAGES) return;
    end->seen[number] = 1;
    if (end->connection->attribute == CCI_CONN_ATTR_RO) expect(end, number == end->state.received, "not in order");
    end->state.received++;
    fill(wanted, event->recv.len, number);
    expect(end, memcmp(wanted, event->recv.ptr, event->recv.len) == 0, "a message was changed");
}

static int send_all(end_t *end, uint32_t number, uint32_t length) {
    uint8_t bytes[2048];
    fill(bytes, length, number);
    if (number == HANDLE_MESSAGE) memcpy(bytes + 4, end->handle, 32);
    return cci_send(end->connection, bytes, length, NULL, CCI_FLAG_SILENT);
}

/* A client sends its messages; a server echoes as many as have come, after its handle if it has memory to offer. */
static void send_more(end_t *end) {
    uint32_t most = end->is_client ? MESSAGES : end->state.received;
    if (!end->connection) return;
    if (!end->is_client && end->handle && !end->has_peer_handle) {
        if (send_all(end, HANDLE_MESSAGE, 36) != CCI_SUCCESS) return;
        end->has_peer_handle = 1;
    }
    while (end->sent < most) {
        int status = send_all(end, end->sent, length_of(end, end->sent));
        if (status == CCI_ENOBUFS) return;
        expect(end, status == CCI_SUCCESS, "cci_send() failed");
        end->sent++;
    }
}

/* Writes into the server's memory, then reads it back. */
static void move(end_t *end) {
    cci_rma_handle_t *remote = (cci_rma_handle_t *)(void *)end->peer_handle;
    int status;
    if (!end->is_client || !end->connection || end->state.received < MESSAGES || end->step > 1) return;
#ifdef CCI_NO_RMA
    end->step = 4;
    expect(end, cci_rma_register(end->endpoint, end->local, sizeof end->local, 0, &end->local_handle) ==
                    CCI_ERR_NOT_IMPLEMENTED, "RMA that was left out");
#endif
    if (!end->has_peer_handle) { /* the server has none: what is asked for is refused */
        memset(end->peer_handle, 1, 32);
        memset(end->peer_handle + 8, 0, 24);
    }
    if (end->step > 1) return;
    status = cci_rma(end->connection, NULL, 0, end->local_handle, 0, remote, 0, sizeof end->local, end,
                     end->step == 0 ? CCI_FLAG_WRITE : CCI_FLAG_READ);
    if (status == CCI_ENOBUFS) return;
    expect(end, status == CCI_SUCCESS, "cci_rma() failed");
    end->step += 2; /* until its event has come */
}

/* Behind that, an atomic: profiles for small machines have none, and say so to their programs and to peers. */
static void ask_atomic(end_t *end) {
    cci_rma_handle_t *remote = (cci_rma_handle_t *)(void *)end->peer_handle;
    int status;
    if (!end->is_client || !end->connection || end->step != 4 || end->atomic != 0) return;
    status = cci_atomic(end->connection, CCI_ATOMIC_FETCH_ADD, 4, remote, 8, 1, 0, &end->previous, &end->atomic, 0);
    if (status == CCI_ENOBUFS) return;
#if defined(CCI_TINY) || defined(CCI_NO_ATOMICS)
    expect(end, status == CCI_ERR_NOT_IMPLEMENTED, "cci_atomic() that was left out");
    end->atomic = 2;
#else
    expect(end, status == CCI_SUCCESS, "cci_atomic() failed");
    end->atomic = 1;
#endif
}

static void asked_atomic(end_t *end, int status) {
    uint32_t there;
    memcpy(&there, end->local + 8, sizeof there);
    expect(end, status == CCI_ERR_RMA_OP || (status == CCI_SUCCESS && end->has_peer_handle && end->previous == there),
           "an atomic ended otherwise");
    end->atomic = 2;
}

static void moved(end_t *end, int status) {
    uint32_t i;
    expect(end, status == (end->has_peer_handle ? CCI_SUCCESS : CCI_ERR_RMA_HANDLE), "an RMA ended otherwise");
    end->step = end->step == 2 ? 1 : 4;
    if (end->step == 1) memset(end->local, 0, sizeof end->local);
    for (i = 0; end->step == 4 && end->has_peer_handle && i < sizeof end->local; i++)
        expect(end, end->local[i] == (uint8_t)(i * 3 + 1), "what was read is not what was written");
}

static void take(end_t *end, cci_event_t *event) {
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT_REQUEST: expect(end, cci_accept(event, end) == CCI_SUCCESS, "cci_accept() failed"); break;
    case CCI_EVENT_ACCEPT: /* the latest client: one before it may have died */
        expect(end, event->accept.status == CCI_SUCCESS, "accepting failed");
        end->connection = event->accept.connection;
        end->state.received = end->sent = 0;
        end->has_peer_handle = 0;
        memset(end->seen, 0, sizeof end->seen);
        end->state.connected++;
        break;
    case CCI_EVENT_CONNECT:
        end->state.refused += event->connect.status == CCI_ECONNREFUSED;
        expect(end, event->connect.status == CCI_SUCCESS, "connecting failed");
        end->connection = event->connect.connection;
        end->state.connected++;
        break;
    case CCI_EVENT_RECV:
        if (event->recv.connection == end->connection) check_message(end, event);
        break;
    case CCI_EVENT_SEND:
        if (event->send.connection != end->connection) break;
        if (event->send.context == &end->atomic)
            asked_atomic(end, (int)event->send.status);
        else
            moved(end, (int)event->send.status);
        break;
    case CCI_EVENT_DISCONNECT:
        if (event->disconnect.connection == end->connection) end->connection = NULL;
        expect(end, cci_disconnect(event->disconnect.connection) == CCI_SUCCESS, "cci_disconnect() failed");
        end->state.ended++;
        break;
    default: expect(end, 0, "an event of another kind"); break;
    }
}

/* ---- a server that keeps its events ------------------------------------------------------------------------------------- */

static void keep(end_t *end, int how) {
    const uint32_t buffers = 2;
    end->keeps = how;
    while (how == 2 && end->kept_count > 0)
        expect(end, cci_return_event(end->kept[--end->kept_count]) == CCI_SUCCESS, "cci_return_event() failed");
    if (how != 1) return;
    expect(end, cci_set_opt(end->endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers) == CCI_SUCCESS, "no count of buffers");
}

/* What the server has no buffer for ends with CCI_ERR_RNR, each in its time, and the connection lives. */
static void send_to_keeper(end_t *end) {
    static const uint8_t bytes[150] = {0};
    const uint32_t most = end->keeps == 1 ? KEPT_MESSAGES : KEPT_MESSAGES + 1;
    while (end->is_client && end->connection && end->sent < most &&
           cci_send(end->connection, bytes, sizeof bytes, &end->sent, 0) == CCI_SUCCESS)
        end->sent++;
    end->state.done = !end->is_client || end->ends == most;
}

static void take_of_keeper(end_t *end, cci_event_t *event) {
    if (event->type == CCI_EVENT_RECV) {
        end->state.received++;
        if (end->keeps == 1 && end->kept_count < sizeof end->kept / sizeof end->kept[0]) {
            end->kept[end->kept_count++] = event;
            return;
        }
    } else if (event->type == CCI_EVENT_SEND) {
        expect(end, event->send.status == CCI_SUCCESS || (event->send.status == CCI_ERR_RNR && end->keeps == 1),
               "a message to a server without buffers ended otherwise");
        end->ends++;
        end->state.refused += event->send.status == CCI_ERR_RNR;
    } else {
        const uint32_t timeout_us = 1000000;
        expect(end, event->type != CCI_EVENT_DISCONNECT, "the connection ended");
        take(end, event);
        if (event->type == CCI_EVENT_CONNECT)
            expect(end, cci_set_opt(end->connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS, "no time-out");
    }
    expect(end, cci_return_event(event) == CCI_SUCCESS, "cci_return_event() failed");
}

static void work(end_t *end) {
    cci_event_t *event;
    if (end->keeps) {
        while (cci_get_event(end->endpoint, &event) == CCI_SUCCESS) take_of_keeper(end, event);
        send_to_keeper(end);
        return;
    }
    while (cci_get_event(end->endpoint, &event) == CCI_SUCCESS) {
        take(end, event);
        expect(end, cci_return_event(event) == CCI_SUCCESS, "cci_return_event() failed");
    }
    send_more(end);
    move(end);
    ask_atomic(end);
    end->state.done = end->state.received == MESSAGES && (end->is_client ? end->atomic == 2 : end->sent == MESSAGES);
}

static end_t *open_end(char number, char server, int attribute, int seed) {
    cci_setup_t setup = {counting_alloc, counting_release, no_log, chance, NULL, NULL, NULL, NULL, 0};
    const char service[2] = {number, '\0'}, uri[9] = {'l', 'i', 'n', 'k', ':', '/', '/', server, '\0'};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    cci_caps_t caps = {0, 0, 0, 0, 0, 0, 0, 0, 0, {0}};
    end_t *end = (end_t *)calloc(1, sizeof *end);
    uint32_t i;
    if (!end) abort();
    setup.seal = small_sealed ? &seal_hooks : NULL;
    (void)cci_setup(&setup); /* refused while the other client is there */
    end->number = (uint8_t)number;
    end->seed = seed;
    end->is_client = server != '\0';
    for (i = 0; i < sizeof end->local; i++) end->local[i] = (uint8_t)(i * 3 + 1);
    expect(end, cci_create_endpoint_on_link(&net, service, &end->endpoint, NULL) == CCI_SUCCESS, "no endpoint");
    if (end->state.failure) return end;
    expect(end, cci_set_opt(end->endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS, "no mask");
    expect(end, cci_get_opt(end->endpoint, CCI_OPT_CAPS, &caps) == CCI_SUCCESS, "no capabilities");
    expect(end, !(caps.can & CCI_CAN_SEAL) == !small_sealed, "packets are sealed or not, against what was said");
#ifdef CCI_TINY
    expect(end, caps.max_connections == CCI_TINY_CONNECTIONS && caps.max_recv_bufs == CCI_TINY_RECEIVES, "other limits");
#endif
#ifdef CCI_SMALL
    expect(end, caps.max_connections == CCI_SMALL_CONNECTIONS && caps.max_request_len == CCI_SMALL_REQUEST, "other limits");
#endif
#ifdef CCI_NO_RMA
    expect(end, !(caps.can & CCI_CAN_RMA) && caps.max_rma_length == 0, "RMA that is not there");
#else
    expect(end, (caps.can & CCI_CAN_RMA) && caps.max_rma_length > 0, "no RMA");
#endif
#ifndef CCI_NO_RMA
    expect(end, cci_rma_register(end->endpoint, end->offered, sizeof end->offered, CCI_FLAG_READ | CCI_FLAG_WRITE,
                                 &end->handle) == CCI_SUCCESS, "no registration");
    expect(end, cci_rma_register(end->endpoint, end->local, sizeof end->local, 0, &end->local_handle) == CCI_SUCCESS,
           "no second registration");
#endif
    if (end->is_client)
        expect(end, cci_connect(end->endpoint, uri, "hello", 5, (cci_conn_attribute_t)attribute, end, 0, NULL) ==
                        CCI_SUCCESS, "cci_connect() failed");
    return end;
}

static void close_end(end_t *end) {
    if (end->endpoint) (void)cci_destroy_endpoint(end->endpoint);
    free(end);
}

static const struct end_state *state_of(end_t *end) { return &end->state; }
static long blocks_left(void) {
    return blocks + seal_state.given - seal_state.forgotten + (long)seal_state.repeats;
}

const struct side SIDE = {open_end, work, keep, close_end, state_of, blocks_left, SEALS};
