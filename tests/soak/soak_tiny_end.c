/* soak_tiny_end.c - the programs at the ends of soak_tiny.c: compiled once for each profile, with a private copy of the library,
 * and SIDE as the name of its table.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#ifndef SIDE
#define SIDE full_profile
#define PROFILE "full"
#endif
#define CCI_STATIC
#define CCI_NO_THREADS
#define CCI_IMPLEMENTATION
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/soak/soak_tiny.h"
#include "tests/support/seal.h"

#define MUST(condition, value) ((condition) ? (void)0 : tiny_fail(#condition, (uint32_t)(value)))

struct node {
    cci_endpoint_t *endpoint;
    uint32_t index, incarnation;
    cci_rma_handle_t *offered, *handle;
    uint8_t local[OFFERED];
};

static long blocks;

static void *counting_alloc(void *user, size_t size) {
    (void)user;
    blocks++;
    return malloc(size);
}

static void counting_release(void *user, void *pointer) {
    (void)user;
    blocks -= pointer != NULL;
    free(pointer);
}

static int chance(void *user, void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (count-- > 0) {
        *at++ = (uint8_t)tiny_below(256);
    }
    return 0;
}

static void no_log(void *user, int level, const char *text) {
    (void)user, (void)level, (void)text;
}

/* ---- the link: the network of soak_tiny.c ------------------------------------------------------------------------- */

static int net_open(cci_device_t *device, const char *service, int want, void **link, cci_link_info_t *info) {
    static uint32_t numbers[NODES];
    uint32_t index = (uint32_t)(service[0] - '0');
    (void)device, (void)want;
    numbers[index] = index;
    *link = &numbers[index];
    info->mtu = tiny_mtu;
    info->crc = 1;
    return CCI_SUCCESS;
}

static void net_close(void *link) {
    (void)link;
}

static int net_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++) {
        uint8_t bytes[2048];
        uint32_t piece, length = 0;
        for (piece = 0; piece < tx[i].piece_count; length += tx[i].piece[piece++].length) {
            memcpy(bytes + length, tx[i].piece[piece].data, tx[i].piece[piece].length);
        }
        MUST(length == tx[i].length && length <= tiny_mtu, length);
        tiny_send(*(const uint32_t *)link, tx[i].to->bytes[0], bytes, length);
    }
    return count;
}

static int net_receive(void *link, cci_link_rx_t *rx, int count) {
    uint32_t from = 0;
    (void)count;
    memset(&rx->from, 0, sizeof rx->from);
    rx->is_group = 0;
    rx->length = rx->segment = tiny_receive(*(const uint32_t *)link, &from, rx->data, rx->capacity);
    rx->from.bytes[0] = (uint8_t)from;
    return rx->length > 0;
}

static uint64_t net_now(void *link) {
    (void)link;
    return tiny_now_ns;
}

static int net_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    to->bytes[0] = (uint8_t)(address[0] - '0');
    return CCI_SUCCESS;
}

static const cci_link_t net = {CCI_LINK_VERSION, net_open, net_close, net_send, net_receive, net_now, net_resolve, NULL,
                               NULL,             NULL,     NULL,      NULL,     NULL,        NULL,    NULL,        NULL};

/* ---- what is said ------------------------------------------------------------------------------------------------------ */

/* Eight bytes say which message it is, and all others depend on it. */
static void fill(uint8_t *bytes, uint32_t length, uint32_t op) {
    uint32_t i;
    for (i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(op * 31 + i * 7 + (i >> 8) * 3);
    }
    memcpy(bytes, &op, 4);
    memcpy(bytes + 4, &length, 4);
}

static uint32_t new_op(op_kind_t kind, const side_t *side) {
    uint32_t id = tiny_op_count;
    MUST(id < OPS, id);
    memset(&tiny_ops[id], 0, sizeof tiny_ops[id]);
    tiny_ops[id].kind = kind;
    tiny_ops[id].talk = side->talk;
    tiny_ops[id].at = side->at;
    return id;
}

static void accepted(side_t *side, uint32_t id) {
    tiny_op_count++;
    side->open_ops += !tiny_ops[id].is_silent;
}

static int is_refusal(int status) {
    return status == CCI_ENOBUFS || status == CCI_ERR_DISCONNECTED;
}

static void send_message(node_t *node, side_t *side, uint32_t length, int flags, int must_succeed) {
    cci_connection_t *connection = (cci_connection_t *)side->connection;
    uint8_t bytes[2048];
    uint32_t id = new_op(OP_SEND, side);
    int status;
    (void)node;
    length = 8 + length % (connection->max_send_size - 7);
    fill(bytes, length, id);
    tiny_ops[id].length = length;
    tiny_ops[id].number = side->sent;
    tiny_ops[id].is_silent = flags & SEND_SILENT;
    tiny_ops[id].must_succeed = must_succeed;
    status = cci_send(connection, bytes, length, (void *)(uintptr_t)(id + 1),
                      (flags & SEND_SILENT ? CCI_FLAG_SILENT : 0) | (flags & SEND_FENCED ? CCI_FLAG_FENCE : 0));
    MUST(status == CCI_SUCCESS || is_refusal(status), status);
    if (status == CCI_SUCCESS) {
        side->sent++;
        accepted(side, id);
    }
}

#ifdef CCI_NO_RMA
static void move_bytes(node_t *node, side_t *side, op_kind_t kind, int has_message, int is_fenced) {
    (void)node, (void)side, (void)kind, (void)has_message, (void)is_fenced;
}
#else
/* Moves bytes to or from the peer's memory, one operation at a time. */
static void move_bytes(node_t *node, side_t *side, op_kind_t kind, int has_message, int is_fenced) {
    uint32_t peer = tiny_talks[side->talk].side[!side->at].node, id = new_op(kind, side), i;
    uint32_t offset = tiny_below(OFFERED), length = 1 + tiny_below(OFFERED - offset);
    cci_rma_handle_t remote;
    uint8_t bytes[8];
    int status;
    if (!tiny_has_handle[peer] || tiny_writer[peer] != 0 || tiny_writer[node->index] != 0) {
        return;
    }
    memcpy((void *)&remote, tiny_handles[peer], sizeof remote);
    for (i = 0; i < length; i++) {
        node->local[offset + i] = kind == OP_WRITE ? (uint8_t)(id * 13 + i * 5) : 0;
    }
    fill(bytes, 8, id);
    tiny_ops[id].offset = offset;
    tiny_ops[id].length = length;
    tiny_ops[id].number = has_message ? side->sent : UINT32_MAX;
    status = cci_rma(side->connection, has_message ? bytes : NULL, has_message ? 8 : 0, node->handle, offset, &remote, offset, length,
                     (void *)(uintptr_t)(id + 1), (kind == OP_WRITE ? CCI_FLAG_WRITE : CCI_FLAG_READ) | (is_fenced ? CCI_FLAG_FENCE : 0));
    MUST(status == CCI_SUCCESS || is_refusal(status), status);
    if (status == CCI_SUCCESS) {
        side->sent += (uint32_t)(has_message != 0);
        tiny_writer[peer] = tiny_writer[node->index] = id + 1;
        accepted(side, id);
    }
}

/* Are the bytes of an operation there? */
static int is_moved(const op_t *op) {
    const side_t *side = &tiny_talks[op->talk].side[op->at];
    uint32_t peer = tiny_talks[op->talk].side[!op->at].node, id = (uint32_t)(op - tiny_ops), i;
    const uint8_t *at = tiny_offered[peer][0] + op->offset;
    (void)side;
    for (i = 0; i < op->length && op->kind == OP_WRITE && at[i] == (uint8_t)(id * 13 + i * 5); i++) {
    }
    return op->kind != OP_WRITE || i == op->length;
}
#endif

/* ---- what is heard ------------------------------------------------------------------------------------------------------ */

static void close_one(node_t *node, side_t *side) {
    (void)node;
    side->state = SIDE_CLOSED;
    MUST(cci_disconnect((cci_connection_t *)side->connection) == CCI_SUCCESS, side->talk);
}

static void hear_message(node_t *node, const cci_event_recv_t *event) {
    side_t *side = (side_t *)event->connection->context;
    const uint8_t *bytes = (const uint8_t *)event->ptr;
    uint8_t wanted[2048];
    uint32_t id, length;
    op_t *op;
    MUST(side->node == node->index && side->incarnation == node->incarnation && side->state == SIDE_OPEN && !side->has_ended, side->talk);
    MUST(event->len >= 8 && event->len <= sizeof wanted, event->len);
    memcpy(&id, bytes, 4);
    memcpy(&length, bytes + 4, 4);
    MUST(id < tiny_op_count && length == event->len, id);
    op = &tiny_ops[id];
    fill(wanted, length, id);
    MUST(memcmp(bytes, wanted, length) == 0, id);
    MUST(op->talk == side->talk && op->at == !side->at, id);
    MUST(!op->was_delivered, id);
    op->was_delivered = 1;
    if (tiny_talks[side->talk].attribute == CCI_CONN_ATTR_RO) {
        MUST(op->number >= side->next, id);
        side->next = op->number + 1;
    }
#ifndef CCI_NO_RMA
    if (op->kind != OP_SEND && !op->is_done) {
        MUST(is_moved(op), id);
    }
#endif
}

static void hear_moved(node_t *node, op_t *op) {
    uint32_t peer = tiny_talks[op->talk].side[!op->at].node, i;
    if (tiny_writer[peer] == (uint32_t)(op - tiny_ops) + 1) {
        tiny_writer[peer] = 0;
    }
    if (op->status != CCI_SUCCESS) {
        tiny_has_handle[peer] = 0; /* what comes late may still be written: nobody uses it until it is offered anew */
    } else if (op->kind == OP_READ) {
        MUST(memcmp(node->local + op->offset, tiny_offered[peer][1] + op->offset, op->length) == 0, op - tiny_ops);
    } else {
        for (i = 0; i < op->length; i++) {
            tiny_offered[peer][1][op->offset + i] = (uint8_t)((uint32_t)(op - tiny_ops) * 13 + i * 5);
        }
        MUST(memcmp(tiny_offered[peer][0], tiny_offered[peer][1], OFFERED) == 0, op - tiny_ops);
    }
    tiny_writer[node->index] = 0;
}

static void hear_end(node_t *node, const cci_event_send_t *event) {
    uint32_t id = (uint32_t)(uintptr_t)event->context - 1;
    op_t *op;
    side_t *side;
    MUST(id < tiny_op_count, id);
    op = &tiny_ops[id];
    side = &tiny_talks[op->talk].side[op->at];
    MUST(!op->is_done && !op->is_silent && side->node == node->index && side->incarnation == node->incarnation, id);
    MUST(event->status == CCI_SUCCESS || event->status == CCI_ETIMEDOUT || event->status == CCI_ERR_DISCONNECTED ||
             event->status == CCI_ERR_RNR,
         event->status);
    MUST(!op->must_succeed || event->status == CCI_SUCCESS, event->status);
    op->is_done = 1;
    op->status = (int)event->status;
    side->had_rnr |= event->status == CCI_ERR_RNR;
    side->open_ops--;
    if (op->kind != OP_SEND) {
        hear_moved(node, op);
    }
}

static void hear_request(node_t *node, cci_event_t *event) {
    uint32_t talk;
    int status;
    (void)node;
    MUST(event->request.data_len == 4, event->request.data_len);
    memcpy(&talk, event->request.data_ptr, 4);
    MUST(talk < tiny_talk_count && tiny_talks[talk].attribute == (int)event->request.attribute, talk);
    if (talk % 7 == 3) {
        tiny_talks[talk].was_refused = 1;
        MUST(cci_reject(event) == CCI_SUCCESS, talk);
        return;
    }
    status = cci_accept(event, &tiny_talks[talk].side[1]);
    if (status != CCI_SUCCESS) {
        tiny_talks[talk].was_refused = 1;
        MUST(cci_reject(event) == CCI_SUCCESS, talk);
    }
}

static void hear_open(node_t *node, side_t *side, cci_connection_t *connection, int status) {
    talk_t *talk = &tiny_talks[side->talk];
    if (side->at == 0) {
        MUST(talk->is_connecting && side->incarnation == node->incarnation, side->talk);
        talk->is_connecting = 0;
        MUST(status == CCI_SUCCESS || status == CCI_ETIMEDOUT || (status == CCI_ECONNREFUSED && talk->was_refused), status);
    } else {
        MUST(status == CCI_SUCCESS || status == CCI_ETIMEDOUT || status == CCI_ERR_DISCONNECTED, status);
    }
    if (status != CCI_SUCCESS) {
        return;
    }
    MUST(side->state != SIDE_OPEN && (int)connection->attribute == talk->attribute, side->talk);
    if (side->state == SIDE_CLOSED) { /* of an endpoint that is no more, the request came again */
        (void)cci_disconnect(connection);
        return;
    }
    side->state = SIDE_OPEN;
    side->connection = connection;
    side->incarnation = node->incarnation;
}

static void hear(node_t *node, cci_event_t *event) {
    side_t *side;
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        hear_request(node, event);
        break;
    case CCI_EVENT_CONNECT:
        hear_open(node, (side_t *)event->connect.context, event->connect.connection, (int)event->connect.status);
        break;
    case CCI_EVENT_ACCEPT:
        hear_open(node, (side_t *)event->accept.context, event->accept.connection, (int)event->accept.status);
        break;
    case CCI_EVENT_RECV:
        hear_message(node, &event->recv);
        break;
    case CCI_EVENT_SEND:
        hear_end(node, &event->send);
        break;
    case CCI_EVENT_DISCONNECT:
        side = (side_t *)event->disconnect.context;
        MUST(side->state == SIDE_OPEN && side->incarnation == node->incarnation && !side->has_ended, side->talk);
        MUST(side->open_ops == 0, side->open_ops);
        side->has_ended = 1;
        close_one(node, side);
        break;
    default:
        tiny_fail("an event of another type", (uint32_t)event->type);
    }
}

static void work(node_t *node) {
    cci_event_t *event;
    while (cci_get_event(node->endpoint, &event) == CCI_SUCCESS) {
        hear(node, event);
        MUST(cci_return_event(event) == CCI_SUCCESS, node->index);
    }
}

/* ---- beginning and end --------------------------------------------------------------------------------------------------- */

static void connect_to(node_t *node, uint32_t to, uint32_t talk) {
    const char uri[9] = {'l', 'i', 'n', 'k', ':', '/', '/', (char)('0' + to), '\0'};
    struct timeval patience = {5, 0};
    side_t *side = &tiny_talks[talk].side[0];
    int status = cci_connect(node->endpoint, uri, &talk, 4, (cci_conn_attribute_t)tiny_talks[talk].attribute, side, 0, &patience);
    side->incarnation = node->incarnation;
    MUST(status == CCI_SUCCESS || status == CCI_ENOMEM || status == CCI_ENOBUFS, status);
    tiny_talks[talk].is_connecting = status == CCI_SUCCESS;
}

static node_t *open_node(uint32_t index, uint32_t incarnation) {
    cci_setup_t setup = {counting_alloc, counting_release, no_log, chance, NULL, NULL, NULL, NULL, 0};
    char service[8] = {0};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT, timeout_us = 3000000;
    node_t *node = (node_t *)calloc(1, sizeof *node);
    MUST(node != NULL, index);
    setup.seal = tiny_sealed ? &seal_hooks : NULL;
    (void)cci_setup(&setup); /* refused while there are others, of the same kind */
    service[0] = (char)('0' + index);
    node->index = index;
    node->incarnation = incarnation;
    MUST(cci_create_endpoint_on_link(&net, service, &node->endpoint, NULL) == CCI_SUCCESS, index);
    MUST(cci_set_opt(node->endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS, index);
    MUST(cci_set_opt(node->endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS, index);
#ifndef CCI_NO_RMA
    MUST(cci_rma_register(node->endpoint, tiny_offered[index][0], OFFERED, CCI_FLAG_READ | CCI_FLAG_WRITE, &node->offered) == CCI_SUCCESS,
         index);
    MUST(cci_rma_register(node->endpoint, node->local, OFFERED, 0, &node->handle) == CCI_SUCCESS, index);
    memcpy(tiny_handles[index], (const void *)node->offered, 32);
    memcpy(tiny_offered[index][1], tiny_offered[index][0], OFFERED);
    tiny_has_handle[index] = 1;
#endif
    return node;
}

static void close_node(node_t *node) {
    MUST(cci_destroy_endpoint(node->endpoint) == CCI_SUCCESS, node->index);
    tiny_has_handle[node->index] = 0;
    free(node);
}

static long blocks_left(void) {
    return blocks + seal_state.given - seal_state.forgotten + (long)seal_state.repeats;
}

const struct profile SIDE = {PROFILE,   open_node, work,       connect_to, send_message, move_bytes,
                             close_one, close_node, blocks_left};
