/* soak_step.h - the programs at the endpoints of the soak test, what they do, and what befalls them.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#ifndef CCI_SOAK_STEP_H
#define CCI_SOAK_STEP_H

#include "tests/soak/soak_hooks.h"

/* Work that is plenty: for one look for an event; for each datagram that it takes or sends, and each byte of these, since the encryption
 * of the tests is slow; for each connection, since their table may grow; and how much a look or a datagram is on the average. */
#define WORK_OF_LOOK 100000u
#define WORK_OF_DATAGRAM 10000u
#define WORK_OF_BYTE 4u
#define WORK_OF_CONNECTION 200u
#define WORK_ON_AVERAGE 400u

/* ---- chance: a step's choices depend on the seed and its number alone ------------------------------------------------- */

static uint64_t chance_state;

static uint64_t chance(void) {
    chance_state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(chance_state);
}

static uint32_t below(uint32_t limit) {
    return limit == 0 ? 0 : (uint32_t)(chance() >> 32) % limit;
}

static uint32_t between(uint32_t low, uint32_t high) {
    return low + below(high - low + 1);
}

static int happens(uint32_t per_mille) {
    return below(1000) < per_mille;
}

/* Mostly small, seldom near the limit: the number of bits is what is drawn. */
static uint32_t skewed(uint32_t limit) {
    uint32_t bits = 0;
    while (bits < 31 && limit >> bits) {
        bits++;
    }
    return below((1u << below(bits + 1)) + 1) % (limit + 1);
}

#define PICK(...) pick((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
static uint32_t pick(const uint32_t *values, size_t count) {
    return values[below((uint32_t)count)];
}

/* ---- what a seed is like ------------------------------------------------------------------------------------------------ */

/* What notices that a packet was changed on its way. */
typedef enum protection { PROTECTION_NONE, PROTECTION_CRC, PROTECTION_SEAL } protection_t;

typedef struct profile {
    uint32_t node_count, step_count, gap_us, most_conns;
    uint32_t mtu, base_mtu, overhead, max_send_size, send_bufs, recv_bufs, timeout_us;
    uint32_t fault_per_mille;
    uint32_t interfaces;   /* of each node */
    uint32_t memory_limit; /* of an endpoint, in bytes; 0: the default */
    protection_t protection;
    int corrupts_everything, is_crowded;
    const char *congestion;
} profile_t;

static profile_t profile;

/* Of each node. Nothing else that follows from a seed depends on it, and none of the seeds that steps.sh names has several. */
static uint32_t choose_interfaces(uint64_t seed) {
    uint64_t drawn = mix(seed ^ UINT64_C(0x2600));
    return drawn % 4 == 0 ? 2 + (uint32_t)(drawn >> 32) % 2 : 1;
}

static void choose_profile(uint64_t seed) {
    uint32_t paths = 0;
    chance_state = mix(seed);
    memset(&profile, 0, sizeof profile);
    profile.node_count = happens(150) ? between(8, NET_MAX_NODES) : between(2, 6);
    profile.gap_us = PICK(200, 2000, 20000, 20000, 200000, 1000000);
    if (happens(60)) {
        profile.gap_us = 15000000; /* an hour or more, mostly idle */
    }
    profile.step_count = between(80, 400);
    profile.most_conns = between(4, 60);
    paths = below(7);
    profile.mtu = paths == 0 ? 256 : paths == 1 ? 512 : paths == 2 ? 9000 : paths == 3 ? 65504 : 1472;
    profile.base_mtu = paths < 2 ? 0 : happens(800) ? 1200 : 0;
    profile.max_send_size = PICK(0, 0, 0, 100, 2000, 8192, 60000);
    profile.send_bufs = PICK(0, 0, 2, 8, 64, 1024);
    profile.recv_bufs = PICK(0, 0, 4, 16, 64, 1024);
    profile.timeout_us = PICK(1000000, 3000000, 10000000, 30000000);
    profile.fault_per_mille = PICK(0, 300, 600, 1000);
    profile.congestion = happens(150) ? "fixed" : NULL;
    profile.protection = (protection_t)PICK(0, 0, 0, 0, 0, PROTECTION_CRC, PROTECTION_CRC, PROTECTION_SEAL);
    profile.corrupts_everything = profile.protection != PROTECTION_NONE || happens(60);
    profile.overhead = profile.protection == PROTECTION_CRC ? 4 : profile.protection == PROTECTION_SEAL ? SEAL_TAG_SIZE : 0;
    if (profile.overhead > 0) {
        profile.mtu += profile.mtu <= 256 ? profile.overhead : 0; /* the least that a link must carry besides */
    }
    if (happens(30)) {
        profile.is_crowded = 1;
        profile.most_conns = 3000;
        profile.node_count = between(2, 4);
        profile.mtu = 1472;
    }
    profile.interfaces = choose_interfaces(seed);
    profile.memory_limit = happens(200) ? (profile.is_crowded ? PICK(48, 64, 128, 256, 1024) : PICK(48, 64, 96, 128, 256)) * 1024 : 0;
}

/* ---- the agenda: what the programs will do later ---------------------------------------------------------------------------- */

typedef enum task_kind {
    TASK_RETURN, TASK_DECIDE, TASK_CLOSE, TASK_FLOW, TASK_WAKE, TASK_END_HOARD, TASK_CLEAN, TASK_UNCUT, TASK_DEVICE_UP,
    TASK_MEMORY_BACK, TASK_AUDIT
} task_kind_t;

typedef struct task {
    uint64_t due_ns, order;
    task_kind_t kind;
    uint32_t a, b;
    uint32_t incarnation;
    cci_event_t *event;
} task_t;

static task_t *agenda; /* a heap */
static uint32_t agenda_count, agenda_capacity;
static uint64_t agenda_order;

static int task_is_earlier(const task_t *a, const task_t *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void plan(uint64_t in_ns, task_kind_t kind, uint32_t a, uint32_t b, uint32_t incarnation, cci_event_t *event) {
    task_t task;
    uint32_t at = agenda_count;
    (void)PUSH(agenda, agenda_count, agenda_capacity, task_t);
    task.due_ns = sim.now_ns + in_ns;
    task.order = agenda_order++;
    task.kind = kind;
    task.a = a;
    task.b = b;
    task.incarnation = incarnation;
    task.event = event;
    for (; at > 0 && task_is_earlier(&task, &agenda[(at - 1) / 2]); at = (at - 1) / 2) {
        agenda[at] = agenda[(at - 1) / 2];
    }
    agenda[at] = task;
}

static task_t next_task(void) {
    task_t top = agenda[0], last = agenda[--agenda_count];
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < agenda_count) {
        child += child + 1 < agenda_count && task_is_earlier(&agenda[child + 1], &agenda[child]);
        if (!task_is_earlier(&agenda[child], &last)) {
            break;
        }
        agenda[at] = agenda[child];
        at = child;
    }
    agenda[at] = last;
    return top;
}

/* ---- connections ------------------------------------------------------------------------------------------------------------- */

static void fill_request(uint8_t *bytes, uint32_t length, uint32_t id) {
    fill_message(bytes, length, id, 0, REQUEST_MAGIC);
    cci__store32(bytes + 4, id);
}

static void soak_connect(uint32_t from, uint32_t to, cci_conn_attribute_t attribute, uint32_t timeout_us,
                         int must_succeed) {
    uint8_t data[CCI_CONN_REQ_LEN];
    uint32_t id = conn_count;
    char uri[32];
    conn_t *conn;
    struct timeval timeout;
    /* Who answers from another address than was asked, as behind a translator, is not the one that was sought by name. */
    int status, by_name = nodes[to].name[0] != '\0' && happens(500) && !(must_succeed && net.alias[to] != 0);
    if (nodes[from].endpoint == NULL || nodes[to].endpoint == NULL) {
        return;
    }
    conn = PUSH(conns, conn_count, conn_capacity, conn_t);
    conn->attribute = attribute;
    conn->data_length = happens(500) ? 8 : between(8, CCI_CONN_REQ_LEN);
    conn->side[0].node = from;
    conn->side[0].incarnation = nodes[from].incarnation;
    conn->side[1].node = to;
    conn->side[1].incarnation = nodes[to].incarnation;
    conn->side[0].last_rma = conn->side[0].last_fence = conn->side[1].last_rma = conn->side[1].last_fence = NONE;
    conn->connect_by_ns = sim.now_ns + (uint64_t)timeout_us * 1000;
    conn->is_connecting = 1;
    conn->must_succeed = (uint8_t)must_succeed;
    fill_request(data, conn->data_length, id);
    timeout.tv_sec = (long)(timeout_us / 1000000u);
    timeout.tv_usec = (long)(timeout_us % 1000000u);
    conn->server_number = net.number[to];
    snprintf(uri, sizeof uri, "sim://here/%s", nodes[to].name);
    net.faults[FAULT_NAMED] += (uint64_t)by_name;
    status = cci_connect(nodes[from].endpoint, by_name ? uri : nodes[to].uri, data, conn->data_length, attribute,
                         (void *)(uintptr_t)(id * 2 + 1), 0, &timeout);
    wake_node(&nodes[from]);
    if (status != CCI_SUCCESS) {
        REQUIRE(ORACLE_CALL, status == CCI_ENOMEM && alloc_fails_at, "cci_connect: %s", cci_strerror(NULL, (cci_status_t)status));
        conn->is_connecting = 0;
        return;
    }
    nodes[from].issued++;
    totals.connects++;
}

/* A connection to a group, sending or receiving: it is there at once. */
static void soak_connect_group(uint32_t node, uint32_t group, cci_conn_attribute_t attribute) {
    char uri[32];
    conn_t *conn;
    int status;
    if (nodes[node].endpoint == NULL) {
        return;
    }
    conn = PUSH(conns, conn_count, conn_capacity, conn_t);
    conn->attribute = attribute;
    conn->group = group;
    conn->side[0].node = conn->side[1].node = node;
    conn->side[0].incarnation = nodes[node].incarnation;
    conn->side[0].last_rma = conn->side[0].last_fence = NONE;
    conn->connect_by_ns = sim.now_ns;
    conn->is_connecting = conn->accepts = 1;
    snprintf(uri, sizeof uri, "sim://g%lu", (unsigned long)group);
    status = cci_connect(nodes[node].endpoint, uri, NULL, 0, attribute, (void *)(uintptr_t)((conn_count - 1) * 2 + 1), 0, NULL);
    wake_node(&nodes[node]);
    if (status != CCI_SUCCESS) {
        REQUIRE(ORACLE_CALL, status == CCI_ENOBUFS || (status == CCI_ENOMEM && alloc_fails_at), "cci_connect to a group: %s",
                cci_strerror(NULL, (cci_status_t)status));
        conn->is_connecting = 0;
    }
}

/* What is pending goes on for so long at most. */
static void soak_close_slowly(uint32_t id, uint32_t at, uint32_t linger_us) {
    conn_t *conn = &conns[id];
    side_t *side = &conn->side[at];
    if (side->state != SIDE_OPEN) {
        return;
    }
    (void)visit_waiting(conn, side, &conn->side[!at], visit_mark, 0);
    side->state = SIDE_CLOSED;
    side->lingers_until_ns = node_now_ns(&nodes[side->node]) + linger_us * (uint64_t)1000;
    REQUIRE(ORACLE_CALL, cci_set_opt(side->handle, CCI_OPT_CONN_LINGER, &linger_us) == CCI_SUCCESS, "no CCI_OPT_CONN_LINGER");
    REQUIRE(ORACLE_CALL, cci_disconnect(side->handle) == CCI_SUCCESS, "cci_disconnect failed");
    side->flow_messages = 0;
    wake_node(&nodes[side->node]);
}

static void soak_close(uint32_t id, uint32_t at) {
    uint64_t draw = mix(id * 2 + at + 77);
    soak_close_slowly(id, at, draw % 2 == 0 ? 0 : (uint32_t)(draw % 3000000));
}

/* The library said that the connection is of no use any more. */
static void close_later(uint32_t id, uint32_t at) {
    side_t *side = &conns[id].side[at];
    if (!side->is_broken) {
        side->is_broken = 1;
    }
    plan(sim_below(2 * SEC), TASK_CLOSE, id, at, side->incarnation, NULL);
}

/* What a program can ask a new connection for is what it should be. */
static void check_knows(uint32_t id, uint32_t at, uint32_t node) {
    side_t *side = &conns[id].side[at];
    cci_caps_t caps;
    void *context = NULL;
    char *uri = NULL;
    int status = cci_get_opt(side->handle, CCI_OPT_CONN_CONTEXT, &context);
    REQUIRE(ORACLE_CALL, status == CCI_SUCCESS && (uintptr_t)context == id * 2 + at + 1, "connection %u has another context", id);
    REQUIRE(ORACLE_CALL, cci_get_opt(side->handle, CCI_OPT_CAPS, &caps) == CCI_SUCCESS && caps.max_send_size == side->handle->max_send_size,
            "connection %u can send messages of %lu bytes, and not of %lu", id, (unsigned long)side->handle->max_send_size,
            (unsigned long)caps.max_send_size);
    REQUIRE(ORACLE_CALL, side->handle->max_send_size <= nodes[node].max_send_size, "connection %u has longer messages than its endpoint", id);
    side->can_wake = (caps.can & CCI_CAN_WAKE) != 0;
    status = cci_get_opt(side->handle, CCI_OPT_CONN_PEER_URI, &uri);
    REQUIRE(ORACLE_CALL, status == CCI_SUCCESS ? uri != NULL && strstr(uri, "://") != NULL : status == CCI_ENOMEM && alloc_fails_at,
            "connection %u does not know its peer: %s", id, cci_strerror(NULL, (cci_status_t)status));
    free(uri);
}

static void side_opened(uint32_t id, uint32_t at, uint32_t node, cci_connection_t *handle) {
    side_t *side = &conns[id].side[at];
    REQUIRE(ORACLE_HANDSHAKE, handle->attribute == conns[id].attribute && handle->max_send_size > 0 &&
                                  handle->endpoint == nodes[node].endpoint,
            "connection %u opens with other values than it was asked for", id);
    side->state = SIDE_OPEN;
    side->handle = handle;
    side->has_ended = 0;
    check_knows(id, at, node);
    if (is_reliable(&conns[id]) &&
        cci_get_opt(handle, CCI_OPT_CONN_SEND_TIMEOUT, &side->timeout_us) != CCI_SUCCESS) {
        soak_fail(ORACLE_CALL, "no send time-out");
    }
}

/* What a server says with its decision about a connection, which both know by its number; returns how many bytes. */
static uint32_t fill_answer(uint8_t *bytes, uint32_t id) {
    uint32_t length = mix(id + 11) % 3 == 0 ? 0 : 1 + (uint32_t)(mix(id + 12) % CCI_CONN_REQ_LEN), i;
    for (i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(id * 29 + i * 13 + (i >> 8));
    }
    return length;
}

/* The client's program has all that the server's has said, or nothing. */
static void check_told(const cci_event_connect_t *event, uint32_t id) {
    uint8_t expected[CCI_CONN_REQ_LEN];
    uint32_t length = fill_answer(expected, id);
    if (event->status != CCI_SUCCESS && event->status != CCI_ECONNREFUSED) {
        REQUIRE(ORACLE_HANDSHAKE, event->data_len == 0 && event->data_ptr == NULL, "connect %u fails with data", id);
    } else if (is_strict && !(conns[id].is_plain && event->data_len == 0)) {
        REQUIRE(ORACLE_HANDSHAKE, event->data_len == length && (length == 0 || memcmp(event->data_ptr, expected, length) == 0),
                "connect %u: %u bytes of other data than the %u of the server", id, event->data_len, length);
        totals.answers += length > 0;
    }
}

static void decide(cci_event_t *event, uint32_t id, uint32_t node) {
    conn_t *conn = &conns[id];
    int accepts = conn->must_succeed || mix(id * 2654435761u + 17) % 100 < 88, status;
    uint8_t data[CCI_CONN_REQ_LEN];
    uint32_t length = fill_answer(data, id);
    if (accepts) {
        status = cci_accept_data(event, (void *)(uintptr_t)(id * 2 + 2), data, length);
        if (status == CCI_ENOBUFS) {
            conn->is_plain = 1;
            status = cci_accept(event, (void *)(uintptr_t)(id * 2 + 2));
        }
        if (status == CCI_ENOMEM && alloc_fails_at) {
            accepts = 0;
        } else {
            REQUIRE(ORACLE_CALL, status == CCI_SUCCESS, "cci_accept failed");
            conn->accepts++;
            conn->side[1].incarnation = nodes[node].incarnation;
        }
    }
    if (!accepts) {
        status = cci_reject_data(event, data, length);
        if (status == CCI_ENOBUFS) {
            conn->is_plain = 1;
            status = cci_reject(event);
        }
        REQUIRE(ORACLE_CALL, status == CCI_SUCCESS, "cci_reject failed");
        conn->rejects++;
    }
    REQUIRE(ORACLE_CALL, cci_return_event(event) == CCI_SUCCESS, "a request can't be returned");
}

/* A request: now, soon, or late, as its number says. In a garbled one no number can be trusted: rejected. */
static void on_request(uint32_t node, cci_event_t *event) {
    const uint8_t *data = (const uint8_t *)event->request.data_ptr;
    uint8_t expected[CCI_CONN_REQ_LEN];
    uint32_t length = event->request.data_len, id = length >= 8 ? cci__load32(data + 4) : NONE;
    uint64_t when;
    if (id < conn_count && conns[id].data_length == length) {
        fill_request(expected, length, id);
    }
    if (id >= conn_count || conns[id].data_length != length || memcmp(data, expected, length) != 0 ||
        conns[id].attribute != event->request.attribute || conns[id].side[1].node != node) {
        int is_stray = length > 0 && id < conn_count && conns[id].server_number == net.number[node] && conns[id].side[1].node != node;
        REQUIRE(ORACLE_HANDSHAKE, !is_strict || is_stray, "a request that nobody made (%u bytes, connection %u)", length, id);
        if (is_stray) { /* the port was another's, when it was asked for */
            conns[id].rejects++;
            conns[id].is_plain = 1;
        }
        if (cci_reject(event) != CCI_SUCCESS || cci_return_event(event) != CCI_SUCCESS) {
            soak_fail(ORACLE_CALL, "cci_reject failed");
        }
        return;
    }
    conns[id].requests = 1;
    when = mix(id + 5) % 100;
    if (when < 60 || conns[id].must_succeed || nodes[node].undecided >= dgram_of(&nodes[node])->base.recv_buf_count / 8) { /* they hold buffers */
        decide(event, id, node);
    } else {
        nodes[node].undecided++;
        plan(when < 95 ? mix(id) % (500 * MS) : 2 * SEC + mix(id) % (20 * SEC), TASK_DECIDE, node, id,
             nodes[node].incarnation, event);
    }
}

static void on_connect(uint32_t node, const cci_event_connect_t *event) {
    uint32_t id = (uint32_t)(((uintptr_t)event->context - 1) / 2);
    conn_t *conn = &conns[id];
    REQUIRE(ORACLE_HANDSHAKE, id < conn_count && conn->is_connecting && conn->side[0].node == node &&
                                  conn->side[0].incarnation == nodes[node].incarnation,
            "an outcome of a connect that was not pending");
    conn->is_connecting = 0;
    if (conn->attribute <= CCI_CONN_ATTR_UU) {
        check_told(event, id);
    }
    if (event->status == CCI_SUCCESS) {
        REQUIRE(ORACLE_HANDSHAKE, conn->accepts > 0 || !is_strict, "connection %u opens, but was not accepted", id);
        REQUIRE(ORACLE_HANDSHAKE, event->connection != NULL, "connection %u opens without a connection", id);
        side_opened(id, 0, node, event->connection);
        conn->connected = 1;
        return;
    }
    REQUIRE(ORACLE_HANDSHAKE, event->connection == NULL, "a connect that failed has a connection");
    REQUIRE(ORACLE_HANDSHAKE, event->status == CCI_ETIMEDOUT || (event->status == CCI_ECONNREFUSED && (conn->rejects > 0 || !is_strict)),
            "connect %u: %s", id, cci_strerror(NULL, event->status));
    REQUIRE(ORACLE_LIVENESS, !conn->must_succeed || !is_strict, "connect %u: %s on a network without faults", id,
            cci_strerror(NULL, event->status));
}

static void on_accept(uint32_t node, const cci_event_accept_t *event) {
    uint32_t id = (uint32_t)(((uintptr_t)event->context - 2) / 2), i = 0;
    conn_t *conn = &conns[id];
    REQUIRE(ORACLE_HANDSHAKE, id < conn_count && conn->side[1].node == node && conn->accepted < conn->accepts,
            "an outcome of an accept that was not pending");
    conn->accepted++;
    if (event->status == CCI_SUCCESS) {
        side_t *side = &conn->side[1];
        REQUIRE(ORACLE_HANDSHAKE, side->state == SIDE_NONE || side->state == SIDE_GONE || !is_strict,
                "connection %u opens twice at the server", id);
        if (side->state == SIDE_OPEN || side->state == SIDE_CLOSED) { /* a garbled request: let it go */
            (void)cci_disconnect(event->connection);
            return;
        }
        for (; side->state == SIDE_GONE && i < side->message_count; i++) { /* of an endpoint that is no more */
            side->messages[i].done = side->messages[i].failed = 1;
        }
        side->last_rma = side->last_fence = NONE;
        side->is_broken = 0;
        side_opened(id, 1, node, event->connection);
        totals.accepts++;
    } else {
        REQUIRE(ORACLE_HANDSHAKE, event->status == CCI_ETIMEDOUT || event->status == CCI_ERR_DISCONNECTED, "accept: status %d",
                (int)event->status);
    }
}

/* ---- the programs take their events ---------------------------------------------------------------------------------------- */

static void give_back(cci_event_t *event) {
    REQUIRE(ORACLE_CALL, cci_return_event(event) == CCI_SUCCESS, "cci_return_event failed");
}

static void on_send(uint32_t node, const cci_event_send_t *event) {
    uint32_t id = (uint32_t)(uintptr_t)event->context - 1;
    op_completed(event, node);
    if ((event->status == CCI_ETIMEDOUT || event->status == CCI_ERR_DISCONNECTED) &&
        conns[ops[id].conn].side[ops[id].side].state == SIDE_OPEN) {
        close_later(ops[id].conn, ops[id].side);
    }
}

/* Has the program a connection with this handle, which it has not closed? */
static int is_open(const cci_connection_t *connection) {
    uintptr_t context = (uintptr_t)connection->context - 1;
    const side_t *side = context / 2 < conn_count ? &conns[context / 2].side[context % 2] : NULL;
    return side != NULL && side->state == SIDE_OPEN && side->handle == connection;
}

static int has_ended(const cci_connection_t *connection) {
    uintptr_t context = (uintptr_t)connection->context - 1;
    return context / 2 < conn_count && conns[context / 2].side[context % 2].has_ended;
}

/* A connection has ended: what its peer was told has arrived was delivered before. */
static void check_all_came(uint32_t id, const side_t *from) {
    uint32_t i;
    for (i = 0; i < from->message_count && is_reliable(&conns[id]) && is_strict; i++) {
        const message_t *message = &from->messages[i];
        REQUIRE(ORACLE_LOST, message->delivered || !message->done || message->failed || message->length < 4,
                "message %u of connection %u was complete, and had not come at the end: %s", i, id, op_text(message->op));
    }
}

/* Comes once, after everything else of the connection, and not after the program has closed it. */
static void on_end(const cci_event_disconnect_t *event) {
    uintptr_t context = (uintptr_t)event->context - 1;
    side_t *side;
    REQUIRE(ORACLE_CALL, context / 2 < conn_count, "the end of a connection that nobody knows");
    side = &conns[context / 2].side[context % 2];
    REQUIRE(ORACLE_CALL, side->state == SIDE_OPEN && side->handle == event->connection, "the end of a connection that is closed");
    REQUIRE(ORACLE_CALL, !side->has_ended, "a connection ended twice");
    REQUIRE(ORACLE_CALL, side->open_ops == 0, "a connection ended before %u operations", side->open_ops);
    side->has_ended = 1;
    check_all_came((uint32_t)(context / 2), &conns[context / 2].side[context % 2 == 0]);
    net.faults[FAULT_HALF_OPEN] += event->status == CCI_ETIMEDOUT;
    close_later((uint32_t)(context / 2), (uint32_t)(context % 2));
}

/* News of a connection come while it is open, and only to who wants them. */
static void on_status(uint32_t index, const cci_event_status_t *event) {
    REQUIRE(ORACLE_CALL, nodes[index].hears_status, "an event of status that nobody asked for");
    REQUIRE(ORACLE_CALL, (uint32_t)event->what <= CCI_STATUS_ROUTE_CHANGED, "an event of status of kind %d", (int)event->what);
    totals.news++;
    REQUIRE(ORACLE_CALL, event->connection == NULL || (is_open(event->connection) && !has_ended(event->connection)),
            "news of a connection before its event or after its end");
}

static void on_event(uint32_t index, cci_event_t *event) {
    node_t *node = &nodes[index];
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        on_request(index, event);
        return;
    case CCI_EVENT_CONNECT:
        on_connect(index, &event->connect);
        break;
    case CCI_EVENT_ACCEPT:
        on_accept(index, &event->accept);
        break;
    case CCI_EVENT_SEND:
        on_send(index, &event->send);
        break;
    case CCI_EVENT_RECV:
        REQUIRE(ORACLE_CALL, !has_ended(event->recv.connection), "a message after the end of its connection");
        message_arrived(index, &event->recv);
        if (sim.now_ns < node->hoard_until_ns) {
            *PUSH(node->hoard, node->hoard_count, node->hoard_capacity, cci_event_t *) = event;
            net.faults[FAULT_HOARDED]++;
            return;
        }
        if (sim_happens(node->hold_per_mille)) {
            plan(node->hold_ns, TASK_RETURN, index, 0, node->incarnation, event);
            return;
        }
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT: {
        uintptr_t context = (uintptr_t)event->keepalive.connection->context - 1;
        REQUIRE(ORACLE_CALL, is_open(event->keepalive.connection), "a keepalive event of a connection that is closed");
        close_later((uint32_t)(context / 2), (uint32_t)(context % 2));
        break;
    }
    case CCI_EVENT_DISCONNECT:
        on_end(&event->disconnect);
        break;
    case CCI_EVENT_STATUS:
        on_status(index, &event->status);
        break;
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
        REQUIRE(ORACLE_CALL, event->dev_failed.endpoint == node->endpoint, "another endpoint's device failed");
        break;
    default:
        soak_fail(ORACLE_CALL, "an event of type %d", (int)event->type);
    }
    give_back(event);
}

/* One look for an event, and how much work it was. */
static int get_event(const node_t *node, cci_event_t **event) {
    uint64_t datagrams = net.datagrams + net.received, bytes = net.bytes + net.received_bytes;
    int status;
    net_work = 0;
    net_work_is_counted = 1;
    status = cci_get_event(node->endpoint, event);
    net_work_is_counted = 0;
    datagrams = net.datagrams + net.received - datagrams;
    bytes = net.bytes + net.received_bytes - bytes;
    REQUIRE(ORACLE_WORK, net_work <= WORK_OF_LOOK + WORK_OF_DATAGRAM * datagrams + WORK_OF_BYTE * bytes +
                                         WORK_OF_CONNECTION * (uint64_t)dgram_of(node)->base.conns.used,
            "%lu steps of work for %lu datagrams", (unsigned long)net_work, (unsigned long)datagrams);
    totals.work += net_work;
    totals.work_at_most += WORK_ON_AVERAGE * (1 + datagrams) + WORK_OF_BYTE * bytes;
    return status;
}

/* The program of a node has its turn: it takes what there is. */
static void poll_node(uint32_t index) {
    node_t *node = &nodes[index];
    uint64_t datagrams = net.datagrams, taken = node->taken;
    int has_input = node->link->first != NULL, count = 0, status = CCI_EAGAIN;
    while (count < 64) {
        cci_event_t *event = NULL;
        totals.polls++;
        status = get_event(node, &event);
        if (status != CCI_SUCCESS) {
            REQUIRE(ORACLE_CALL, (status == CCI_EAGAIN || status == CCI_ENOBUFS) && event == NULL, "cci_get_event: status %d", status);
            break;
        }
        REQUIRE(ORACLE_CALL, event != NULL, "cci_get_event gave no event");
        count++;
        on_event(index, event);
        if (node->endpoint == NULL) {
            return;
        }
    }
    net.faults[FAULT_STUCK] += dgram_of(node)->base.api.lists != NULL && dgram_of(node)->base.api.lists->stuck_count > 0;
    if (status == CCI_ENOBUFS) {
        node->poll_after_ns = sim.now_ns + MS; /* it knows that there is no sense in asking again at once */
    }
    if (watch_count > 0 && has_input) {
        check_fences(index);
    }
    if (has_input || count > 0 || net.datagrams != datagrams || node->taken != taken) {
        node->overdue = 0;
        wake_node(node);
    } else {
        node->hot -= node->hot > 0;
        REQUIRE(ORACLE_WORK, ++node->overdue < 3000, "node %u asks to be called again and again, and does nothing", index);
    }
}

/* When the program of a node wants to be called: a sleeper is woken by its OS handle alone. */
static uint64_t node_wants_ns(const node_t *node) {
    uint64_t deadline_ns;
    if (node->endpoint == NULL || sim.now_ns < node->paused_until_ns) {
        return UINT64_MAX;
    }
    if (node->poll_after_ns > sim.now_ns) {
        return node->poll_after_ns;
    }
    if (node->link->first != NULL || (node->sleeps ? node->link->is_readable : node->hot > 0)) {
        return 0;
    }
    deadline_ns = node->sleeps ? node->link->wake_ns : cci__dgram_deadline(&dgram_of(node)->base);
    if (!node->sleeps && dgram_of(node)->base.api.lists != NULL && dgram_of(node)->base.api.lists->stuck_count > 0) {
        deadline_ns = cci__min64(deadline_ns, node_now_ns(node) + MS); /* as cci_next_deadline() says, which does work itself */
    }
    return deadline_ns == UINT64_MAX ? deadline_ns : deadline_ns - cci__min64(deadline_ns, node->link->clock_ahead_ns);
}

/* ---- operations -------------------------------------------------------------------------------------------------------------- */

static uint32_t message_length(const side_t *side) {
    uint32_t most = side->handle->max_send_size;
    switch (below(6)) {
    case 0:
        return cci__min32(below(17), most);
    case 1:
        return cci__min32(between(100, 300), most);
    case 2:
        return most - cci__min32(below(12), most);
    case 3: /* around the length of a packet */
        return cci__min32(cci__max32(profile.base_mtu, 256) - 60 + below(64), most);
    default:
        return skewed(most);
    }
}

static int expected_refusal(int status) {
    return status == CCI_ENOBUFS || status == CCI_ERR_DISCONNECTED;
}

/* Sends a message; 1 if the library took it. */
static int soak_send(uint32_t id, uint32_t at, uint32_t length, int flags, int must_succeed) {
    static uint8_t scratch[65536];
    side_t *side = &conns[id].side[at];
    uint8_t *bytes = scratch;
    struct iovec pieces[3];
    uint32_t number = op_count, cut, other;
    op_t *op;
    int status;
    if (side->state != SIDE_OPEN || conns[id].attribute == CCI_CONN_ATTR_UU_MC_RX) {
        return 0;
    }
    if (!is_reliable(&conns[id])) {
        flags &= ~CCI_FLAG_FENCE;
    }
    if (length < 4 && conns[id].attribute != CCI_CONN_ATTR_RO) { /* too short to be told from others: see fill_message() */
        length = (length == 0 && side->had_empty) || side->message_count >= 256 ? 4 : length;
        side->had_empty |= length == 0;
    }
    length = cci__min32(length, side->handle->max_send_size);
    if (side->can_wake && sim_happens(50)) {
        flags |= CCI_FLAG_WAKE;
    }
    op = op_new(OP_SEND, id, at, flags);
    op->message = side->message_count;
    op->must_succeed = must_succeed;
    op->barrier = flags & CCI_FLAG_FENCE ? side->last_rma : NONE;
    (void)message_new(side, length, number);
    if (flags & CCI_FLAG_NO_COPY) {
        bytes = op->buffer = (uint8_t *)soak_more(NULL, length + 8);
    }
    fill_message(bytes, length, id, at, op->message);
    if (conns[id].attribute == CCI_CONN_ATTR_UU_MC_TX && length >= 8) {
        cci__store32(bytes + 4, id);
    }
    if (length & 1) {
        cut = (uint32_t)sim_below(length + 1);
        other = cut + (uint32_t)sim_below(length - cut + 1);
        pieces[0].iov_base = bytes;
        pieces[0].iov_len = cut;
        pieces[1].iov_base = bytes + cut;
        pieces[1].iov_len = other - cut;
        pieces[2].iov_base = bytes + other;
        pieces[2].iov_len = length - other;
        status = cci_sendv(side->handle, pieces, 3, (void *)((uintptr_t)number + 1), flags);
    } else {
        status = cci_send(side->handle, bytes, length, (void *)((uintptr_t)number + 1), flags);
    }
    memset(scratch, 0xee, length); /* it was copied */
    wake_node(&nodes[side->node]);
    op = &ops[number];
    if (status == CCI_SUCCESS) {
        op_accepted(number);
        totals.fenced += op->barrier != NONE;
        totals.wakes += (flags & CCI_FLAG_WAKE) != 0;
        if ((flags & CCI_FLAG_SILENT) && op->buffer != NULL) {
            op->buffer = NULL; /* nobody says when it is the program's again: it stays */
        }
        return 1;
    }
    net.faults[FAULT_SEND_FULL] += status == CCI_ENOBUFS;
    REQUIRE(ORACLE_CALL, expected_refusal(status), "cci_send of %u bytes: %s", length, cci_strerror(NULL, (cci_status_t)status));
    op_release_buffer(op);
    op_count--;
    side->message_count--;
    if (status == CCI_ERR_DISCONNECTED) {
        close_later(id, at);
    }
    return 0;
}

/* A registration that the node has given up, NULL if there is none. */
static region_t *dead_region(uint32_t node) {
    uint32_t tries, draw = below(region_count);
    for (tries = 0; tries < region_count; tries++) {
        region_t *region = regions[(draw + tries) % region_count];
        if (region->node == node && !region->is_live && region->incarnation == nodes[node].incarnation) {
            return region;
        }
    }
    return NULL;
}

/* An RMA was taken: what comes behind it may have to wait. */
static void rma_accepted(uint32_t number) {
    op_t *op = &ops[number];
    side_t *side = &conns[op->conn].side[op->side];
    op_accepted(number);
    if (op->must_be_refused) {
        return;
    }
    op->earlier = side->last_rma;
    side->last_rma = number;
    if (op->flags & CCI_FLAG_FENCE) {
        side->last_fence = number;
    }
    op->barrier = side->last_fence;
    if (op->barrier != NONE && op->earlier != NONE && watch_count < sizeof watch / sizeof watch[0]) {
        watch[watch_count++] = number;
    }
}

/* An RMA was not taken. */
static void rma_refused(uint32_t number, int status, int was_expected) {
    op_t *op = &ops[number];
    uint32_t id = op->conn, at = op->side, i;
    REQUIRE(ORACLE_CALL, was_expected || expected_refusal(status) || (status == CCI_ENOMEM && alloc_fails_at), "%s: %s", op_text(number),
            cci_strerror(NULL, (cci_status_t)status));
    for (i = 0; i < op->piece_count && op->kind != OP_ATOMIC; i++) {
        region_disclaim(piece_changes(op->kind, op_piece(op, i)), number);
    }
    conns[id].side[at].message_count -= op->message != NONE;
    op_release_buffer(op);
    free(op->pieces);
    op_count--;
    if (status == CCI_ERR_DISCONNECTED) {
        close_later(id, at);
    }
}

/* The message that goes with an RMA. */
static const uint8_t *rma_message(uint32_t number, uint32_t length) {
    static uint8_t scratch[65536];
    op_t *op = &ops[number];
    side_t *side = &conns[op->conn].side[op->side];
    if (length == 0) {
        memset(scratch, 0xee, sizeof scratch);
        return NULL;
    }
    op->message = side->message_count;
    (void)message_new(side, length, number);
    fill_message(scratch, length, op->conn, op->side, op->message);
    return scratch;
}

typedef struct rma_plan {
    op_kind_t kind;
    region_t *local, *remote;
    uint32_t length, message_length; /* 0: no message */
    int flags, is_bad;
} rma_plan_t;

static void soak_rma(uint32_t id, uint32_t at, const rma_plan_t *rma, uint32_t bad_offset) {
    const side_t *side = &conns[id].side[at];
    uint32_t number = op_count;
    op_t *op = op_new(rma->kind, id, at, rma->flags);
    region_t *changed = rma->kind == OP_WRITE ? rma->remote : rma->local;
    region_t *source = rma->kind == OP_WRITE ? rma->local : rma->remote;
    uint32_t from = below(REGION_SIZE - rma->length + 1), to = bad_offset;
    piece_t *piece = &op->piece;
    int status;
    piece->local = rma->local;
    piece->remote = rma->remote;
    piece->length = op->length = rma->length;
    op->piece_count = 1;
    op->must_be_refused = rma->is_bad;
    if (!rma->is_bad || rma->kind == OP_READ) { /* what lies in front of the end may be read before the rest is refused */
        from = rma->is_bad ? bad_offset : from;
        to = region_claim(changed, rma->length, source->memory + from, number);
        if (to == NONE) {
            op_count--;
            return;
        }
        if (rma->is_bad && bad_offset <= REGION_SIZE - rma->length) { /* no right: not a byte */
            changed->claims[changed->claim_count - 1].bytes = changed->shadow + to;
        }
    }
    piece->local_offset = rma->kind == OP_WRITE ? from : to;
    piece->remote_offset = rma->kind == OP_WRITE ? to : from;
    status = cci_rma(side->handle, rma_message(number, rma->message_length), rma->message_length, rma->local->handle,
                     piece->local_offset, &rma->remote->bytes, piece->remote_offset, rma->length,
                     (void *)((uintptr_t)number + 1), rma->flags | (rma->kind == OP_READ ? CCI_FLAG_READ : CCI_FLAG_WRITE));
    (void)rma_message(number, 0);
    wake_node(&nodes[side->node]);
    if (status != CCI_SUCCESS) {
        rma_refused(number, status, 0);
        return;
    }
    rma_accepted(number);
    totals.rma_bytes += rma->length;
}

/* ---- lists --------------------------------------------------------------------------------------------------------------------- */

#define LIST_MOST 256u

typedef struct list_plan {
    op_kind_t kind;
    uint32_t number, bad;      /* the remote segment that is not permitted, NONE if all are */
    cci_rma_segment_t local[LIST_MOST], remote[LIST_MOST];
    region_t *local_region[LIST_MOST], *remote_region[LIST_MOST];
    uint32_t local_count, remote_count;
} list_plan_t;

/* Divides bytes into segments, some of them empty. */
static uint32_t list_divide(cci_rma_segment_t *segments, uint32_t bytes, uint32_t most) {
    uint32_t count = 0;
    while (count + 1 < most && bytes > 1) {
        segments[count].length = happens(80) ? 0 : 1 + below(cci__max32(2 * (bytes / (most - count)), 2));
        segments[count].length = cci__min64(segments[count].length, bytes - 1);
        bytes -= (uint32_t)segments[count++].length;
    }
    segments[count++].length = bytes;
    return count;
}

/* Where each segment lies. One that changes is claimed, later piece by piece; returns 0 if there is no room. */
static int list_place(list_plan_t *list, int is_remote, region_t *usual, region_t *other) {
    cci_rma_segment_t *segments = is_remote ? list->remote : list->local;
    region_t **regions_of = is_remote ? list->remote_region : list->local_region;
    uint32_t count = is_remote ? list->remote_count : list->local_count, i, offset;
    int changes = is_remote == (list->kind == OP_WRITE);
    for (i = 0; i < count; i++) {
        uint32_t length = (uint32_t)segments[i].length;
        region_t *region = happens(100) ? other : usual;
        regions_of[i] = region;
        segments[i].handle = length == 0 ? NULL : is_remote ? &region->bytes : region->handle;
        if (is_remote && i == list->bad) {
            continue; /* see list_spoil() */
        }
        offset = !changes ? below(REGION_SIZE - length + 1) : length == 0 ? 0 : region_claim(region, length, NULL, list->number);
        if (offset == NONE) {
            return 0;
        }
        segments[i].offset = offset;
    }
    return 1;
}

/* One remote segment is not permitted: it lies beyond the end, there is no right to it, or it is registered no more. */
static int list_spoil(list_plan_t *list, const node_t *far, uint32_t far_node) {
    cci_rma_segment_t *segment = &list->remote[list->bad];
    uint32_t way = below(4), length = (uint32_t)segment->length;
    region_t *region = list->kind == OP_WRITE ? far->target : far->source;
    if (way == 1) {
        region = dead_region(far_node);
    } else if (way > 1) {
        region = way == 2 ? far->local : list->kind == OP_WRITE ? far->source : far->target;
    }
    if (region == NULL || length == 0 || length > GUARD_SIZE) {
        return 0;
    }
    list->remote_region[list->bad] = region;
    segment->handle = &region->bytes;
    segment->offset = way == 0 ? REGION_SIZE + below(GUARD_SIZE - length + 1) : below(REGION_SIZE - length + 1);
    return 1;
}

/* The parts in which the list moves: where a local and a remote segment overlap. Each gets its claim. */
static void list_pieces(const list_plan_t *list, op_t *op) {
    uint32_t l = 0, r = 0, l_done = 0, r_done = 0, left = op->length;
    op->pieces = (piece_t *)soak_more(NULL, (list->local_count + list->remote_count) * sizeof(piece_t));
    while (left > 0) {
        piece_t *piece = &op->pieces[op->piece_count];
        region_t *changed;
        claim_t *claim;
        for (; l_done == list->local[l].length; l_done = 0) {
            l++;
        }
        for (; r_done == list->remote[r].length; r_done = 0) {
            r++;
        }
        piece->length = (uint32_t)cci__min64(list->local[l].length - l_done, list->remote[r].length - r_done);
        piece->local = list->local_region[l];
        piece->remote = list->remote_region[r];
        piece->local_offset = (uint32_t)list->local[l].offset + l_done;
        piece->remote_offset = (uint32_t)list->remote[r].offset + r_done;
        op->piece_count++;
        l_done += piece->length;
        r_done += piece->length;
        left -= piece->length;
        if (op->kind == OP_WRITE && r == list->bad) {
            continue; /* not a byte */
        }
        changed = piece_changes(op->kind, piece);
        claim = PUSH(changed->claims, changed->claim_count, changed->claim_capacity, claim_t);
        claim->op = list->number;
        claim->offset = piece_to(op->kind, piece);
        claim->length = piece->length;
        claim->bytes = r == list->bad ? changed->shadow + claim->offset : piece_from(op->kind, piece);
    }
}

static void list_disclaim(const list_plan_t *list) {
    uint32_t i, count = list->kind == OP_WRITE ? list->remote_count : list->local_count;
    for (i = 0; i < count; i++) {
        region_t *region = list->kind == OP_WRITE ? list->remote_region[i] : list->local_region[i];
        if (region != NULL) {
            region_disclaim(region, list->number);
        }
    }
}

/* A list whose local segments are not all there is refused at once, and nothing has happened. */
static void list_refuse_local(uint32_t id, uint32_t at, list_plan_t *list, int flags) {
    cci_rma_segment_t *segment = &list->local[below(list->local_count)];
    int status;
    list_disclaim(list);
    if (segment->length == 0) {
        return;
    }
    segment->offset = REGION_SIZE - segment->length + 1;
    status = cci_rmav(conns[id].side[at].handle, NULL, 0, list->local, list->local_count, list->remote, list->remote_count, NULL,
                      flags | CCI_FLAG_SILENT);
    REQUIRE(ORACLE_CALL, status == CCI_ERR_RMA_HANDLE || status == CCI_ERR_DISCONNECTED,
            "a list with a local segment beyond the end: %s", cci_strerror(NULL, (cci_status_t)status));
}

static void soak_list(uint32_t id, uint32_t at, const rma_plan_t *rma, uint32_t segments) {
    static list_plan_t list;
    side_t *side = &conns[id].side[at];
    const node_t *near = &nodes[side->node], *far = &nodes[conns[id].side[!at].node];
    uint32_t number = op_count;
    int status, flags = rma->flags | (rma->kind == OP_READ ? CCI_FLAG_READ : CCI_FLAG_WRITE), is_write = rma->kind == OP_WRITE;
    op_t *op = op_new(rma->kind, id, at, rma->flags);
    memset(&list, 0, sizeof list);
    list.kind = rma->kind;
    list.number = number;
    op->length = rma->length;
    list.local_count = list_divide(list.local, rma->length, 1 + below(segments));
    list.remote_count = list_divide(list.remote, rma->length, 1 + below(segments));
    list.bad = rma->is_bad ? below(list.remote_count) : NONE;
    if (!list_place(&list, 0, is_write ? near->source : near->local, is_write ? near->fleeting : near->local) ||
        !list_place(&list, 1, is_write ? far->target : far->source, is_write ? far->passing : far->fleeting) ||
        (rma->is_bad && !list_spoil(&list, far, conns[id].side[!at].node))) {
        list_disclaim(&list);
        op_count--;
        return;
    }
    if (rma->is_bad && rma->message_length == 0 && happens(300) && list.local_count > 1) {
        op_count--;
        list_refuse_local(id, at, &list, flags);
        return;
    }
    list_disclaim(&list);
    list_pieces(&list, op);
    op->must_be_refused = rma->is_bad;
    status = cci_rmav(side->handle, rma_message(number, rma->message_length), rma->message_length, list.local, list.local_count,
                      list.remote, list.remote_count, (void *)((uintptr_t)number + 1), flags);
    (void)rma_message(number, 0);
    memset(&list, 0xee, sizeof list); /* it was copied */
    wake_node(&nodes[side->node]);
    if (status != CCI_SUCCESS) {
        rma_refused(number, status, 0);
        return;
    }
    rma_accepted(number);
    totals.lists++;
    totals.rma_bytes += rma->length;
}

/* ---- atomics ------------------------------------------------------------------------------------------------------------------ */

/* One that may be done: `previous` gets what was there, unless it is silent. */
static int soak_atomic(uint32_t id, uint32_t at, uint32_t index, int flags) {
    side_t *side = &conns[id].side[at];
    region_t *region = nodes[conns[id].side[!at].node].cells;
    cell_t *cell = &region->cell[index];
    uint32_t number = op_count;
    op_t *op = op_new(OP_ATOMIC, id, at, flags);
    int status, kind = cell_counts(index) ? CCI_ATOMIC_FETCH_ADD : cell_compares(index) ? CCI_ATOMIC_COMPARE_SWAP : CCI_ATOMIC_SWAP;
    uint64_t junk = cell_width(index) == 4 && happens(500) ? chance() << 32 : 0; /* beyond the width nothing means anything */
    op->piece.remote = region;
    op->piece_count = 1;
    op->cell = index;
    op->length = cell_width(index);
    op->done_before = cell->done;
    op->compare = happens(700) ? cell_value(region, index) : happens(500) ? cell->first : op_token(below(number + 1), index);
    if (!(flags & CCI_FLAG_SILENT) && happens(850)) {
        op->buffer = (uint8_t *)soak_more(NULL, 24);
        memset(op->buffer, 0xbb, 24);
    }
    cell->issued++;
    status = cci_atomic(side->handle, kind, cell_width(index), &region->bytes, cell_offset(index),
                        (cell_counts(index) ? cell_step(index) : op_token(number, index)) | junk, op->compare | junk,
                        op->buffer == NULL ? NULL : (uint64_t *)(void *)(op->buffer + 8), (void *)((uintptr_t)number + 1), flags);
    wake_node(&nodes[side->node]);
    if (status != CCI_SUCCESS) {
        cell->issued--;
        rma_refused(number, status, 0);
        return 0;
    }
    rma_accepted(number);
    totals.atomics++;
    return 1;
}

/* One that may not: nothing changes. */
static void soak_bad_atomic(uint32_t id, uint32_t at, int flags) {
    const side_t *side = &conns[id].side[at];
    uint32_t far_node = conns[id].side[!at].node, number = op_count, width = happens(500) ? 4 : 8, offset = below(REGION_SIZE / 8) * 8;
    const node_t *far = &nodes[far_node];
    region_t *region = far->cells;
    op_t *op;
    int status;
    switch (below(6)) {
    case 0:
        offset = below(CELL_COUNT) * 8 + 1 + below(width - 1);
        break;
    case 1:
        offset = REGION_SIZE - width + width * between(1, 9);
        break;
    case 2:
        region = dead_region(far_node);
        break;
    case 3:
        region = far->target;
        break;
    case 4:
        region = far->source;
        break;
    default:
        region = far->local;
        break;
    }
    if (region == NULL) {
        return;
    }
    op = op_new(OP_ATOMIC, id, at, flags);
    op->piece.remote = region;
    op->piece_count = 1;
    op->length = width;
    op->must_be_refused = 1;
    status = cci_atomic(side->handle, (int)below(3), width, &region->bytes, offset, chance(), chance(), NULL,
                        (void *)((uintptr_t)number + 1), op->flags);
    wake_node(&nodes[side->node]);
    if (status != CCI_SUCCESS) {
        rma_refused(number, status, 0);
        return;
    }
    rma_accepted(number);
}

/* ---- endpoints ----------------------------------------------------------------------------------------------------------------- */

/* A number, or a name: a node that is made again mostly takes the same. Now and then a node has the first port of another's name. */
static void choose_service(uint32_t index, char *service, size_t size) {
    node_t *node = &nodes[index];
    cci_conn_name_t name;
    uint32_t number = NET_FIRST_NODE + index;
    if (node->incarnation == 0 || happens(200)) {
        node->name[0] = '\0';
        if (happens(400)) {
            snprintf(node->name, sizeof node->name, "node %lu%s", (unsigned long)index, happens(300) ? "\xc3\xa9" : "");
        }
    }
    snprintf(service, size, "%s", node->name);
    if (node->name[0] == '\0') {
        char other[16];
        snprintf(other, sizeof other, "node %lu", (unsigned long)below(node_count));
        if (happens(200) && cci_conn_hash_name(other, &name) == CCI_SUCCESS) {
            number = name.ports[0];
        }
        snprintf(service, size, "%lu", (unsigned long)number);
    }
}

/* No other endpoint can have the name, and what has tried leaves nothing. */
static void try_taken_name(uint32_t index) {
    const node_t *node = &nodes[index];
    cci_device_t *const *devices;
    cci_conn_name_t name;
    cci_endpoint_t *other = NULL;
    size_t blocks = live_blocks;
    if (node->name[0] == '\0') {
        return;
    }
    if (cci_get_devices(&devices) != CCI_SUCCESS || cci_conn_hash_name(node->name, &name) != CCI_SUCCESS) {
        soak_fail(ORACLE_CALL, "no devices");
    }
    net.faults[FAULT_MOVED] += net.number[index] != name.ports[0];
    if (happens(200) && sim.up[!(index % 2)]) {
        net_opening_node = NET_MAX_NODES;
        REQUIRE(ORACLE_CALL, cci_create_endpoint_at(devices[!(index % 2)], node->name, 0, &other, NULL) == CCI_EBUSY && other == NULL,
                "a second endpoint has the name of node %u", index);
        REQUIRE(ORACLE_LEAK, live_blocks == blocks, "an endpoint whose name was taken leaves memory");
    }
}

/* What else the program of a new endpoint wants of it. */
static void choose_options(node_t *node) {
    uint32_t mask = 1u << CCI_EVENT_DISCONNECT, counts = happens(500) ? 1 : 0, size;
    node->hears_status = happens(500);
    mask |= node->hears_status ? 1u << CCI_EVENT_STATUS : 0;
    REQUIRE(ORACLE_CALL, cci_set_opt(node->endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS, "the mask was refused");
    REQUIRE(ORACLE_CALL, cci_set_opt(node->endpoint, CCI_OPT_ENDPT_CONN_STATS, &counts) == CCI_SUCCESS, "no statistics");
    node->max_send_size = UINT32_MAX;
    if (happens(150)) {
        node->max_send_size = PICK(200, 1000, 5000);
        REQUIRE(ORACLE_CALL, cci_set_opt(node->endpoint, CCI_OPT_ENDPT_MAX_SEND_SIZE, &node->max_send_size) == CCI_SUCCESS &&
                                 cci_get_opt(node->endpoint, CCI_OPT_ENDPT_MAX_SEND_SIZE, &size) == CCI_SUCCESS &&
                                 size <= node->max_send_size,
                "the longest message can't be set");
    }
    memset(&node->stats, 0, sizeof node->stats);
}

static void soak_open(uint32_t index) {
    node_t *node = &nodes[index];
    char service[16];
    int status, fd = -1;
    uint32_t tries = 0;
    size_t blocks;
    cci_device_t *const *devices;
    if (cci_get_devices(&devices) != CCI_SUCCESS || devices[0] == NULL || devices[1] == NULL) {
        soak_fail(ORACLE_CALL, "no devices");
    }
    blocks = live_blocks;
    memset(&net_opening, 0, sizeof net_opening);
    net_opening.mtu = happens(200) && profile.base_mtu ? cci__max32(profile.base_mtu, profile.mtu / 2) : profile.mtu;
    net_opening.base_mtu = profile.base_mtu;
    net_opening.max_send_size = profile.max_send_size;
    net_opening.send_buf_count = profile.send_bufs;
    net_opening.recv_buf_count = profile.recv_bufs;
    net_opening.send_timeout_us = profile.timeout_us;
    net_opening.congestion = profile.congestion;
    net_opening.probe_idle_s = index % 3 == 0 ? 20 : 0;
    net_opening.memory_limit = profile.memory_limit;
    net_opening.crc = profile.protection == PROTECTION_CRC;
    choose_service(index, service, sizeof service);
    net_opening_node = index;
    node->sleeps = happens(400);
    alloc_fails_at = happens(150) ? 1 : 0; /* then each allocation fails in its turn, before all succeed */
    alloc_fails_for_ever = 0;
    for (;;) {
        status = cci_create_endpoint_at(devices[index % 2], service, 0, &node->endpoint, node->sleeps ? &fd : NULL);
        if (status == CCI_EBUSY && node->name[0] == '\0') { /* a service has taken that port */
            snprintf(service, sizeof service, "%lu", (unsigned long)(NET_FIRST_NODE + index));
            continue;
        }
        if (alloc_fails_at == 0 && status == CCI_ENOMEM && tries < 100) {
            REQUIRE(ORACLE_LEAK, live_blocks == blocks, "an endpoint that could not be created leaves memory");
            alloc_fails_at = ++tries + 1;
            continue;
        }
        break;
    }
    alloc_fails_at = 0;
    REQUIRE(ORACLE_CALL, status == CCI_SUCCESS, "cci_create_endpoint_at: %s", cci_strerror(NULL, (cci_status_t)status));
    choose_options(node);
    node->link = net_opened;
    try_taken_name(index);
    node->incarnation++;
    node->undecided = 0;
    node->awake_ns = node_now_ns(node);
    node->paused_until_ns = node->hoard_until_ns = node->poll_after_ns = 0;
    node->hold_per_mille = happens(300) ? PICK(50, 300, 900) : 0;
    node->hold_ns = PICK(100, 2000, 20000) * US;
    node->pools = count_pools(node);
    if (cci_get_opt(node->endpoint, CCI_OPT_ENDPT_URI, &node->uri) != CCI_SUCCESS) {
        soak_fail(ORACLE_CALL, "no URI");
    }
    node->target = region_make(index, REGION_TARGET, CCI_FLAG_WRITE);
    node->source = region_make(index, REGION_SOURCE, CCI_FLAG_READ);
    node->local = region_make(index, REGION_LOCAL, 0);
    node->passing = region_make(index, REGION_PASSING, CCI_FLAG_WRITE);
    node->fleeting = region_make(index, REGION_FLEETING, CCI_FLAG_READ);
    node->cells = region_make(index, REGION_CELLS, CCI_FLAG_READ | CCI_FLAG_WRITE);
    wake_node(node);
    totals.endpoints++;
}

/* Nothing more comes from the endpoint: what was pending there ends without a word. */
static void forget_node(uint32_t index) {
    node_t *node = &nodes[index];
    uint32_t i, at;
    for (i = 0; i < pending_count;) {
        op_t *op = &ops[pending[i]];
        if (op->node == index) {
            op->is_done = 1;
            op_not_pending(op);
            op_release_buffer(op);
        } else {
            i++;
        }
    }
    for (i = 0; i < conn_count; i++) {
        for (at = 0; at < 2; at++) {
            side_t *side = &conns[i].side[at];
            if (side->node == index && side->incarnation == node->incarnation && side->state < SIDE_CLOSED) {
                side->state = SIDE_GONE;
                side->flow_messages = 0;
            }
        }
        if (conns[i].side[0].node == index) {
            conns[i].is_connecting = 0;
        }
        if (conns[i].side[1].node == index) {
            conns[i].accepted = conns[i].accepts;
        }
    }
    for (i = 0; i < region_count; i++) {
        if (regions[i]->node == index && regions[i]->is_live) {
            region_end(regions[i]);
        }
    }
}

static void soak_destroy(uint32_t index) {
    node_t *node = &nodes[index];
    check_all_memory();
    REQUIRE(ORACLE_CALL, cci_destroy_endpoint(node->endpoint) == CCI_SUCCESS, "cci_destroy_endpoint failed");
    forget_node(index);
    node->endpoint = NULL;
    node->link = NULL;
    node->hoard_count = 0;
    free(node->uri);
    node->uri = NULL;
}

static void renew_region(uint32_t index, region_t **region) {
    region_t *old = *region;
    cci_rma_handle_t copy = old->bytes; /* a copy of the handle is as good as the handle */
    *region = region_make(index, old->kind, old->flags);
    REQUIRE(ORACLE_CALL, cci_rma_deregister(nodes[index].endpoint, &copy) == CCI_SUCCESS, "cci_rma_deregister failed");
    region_end(old);
}

static void end_hoard(node_t *node) {
    uint32_t i;
    node->hoard_until_ns = 0;
    for (i = 0; i < node->hoard_count; i++) {
        give_back(node->hoard[i]);
    }
    node->hoard_count = 0;
    node->poll_after_ns = 0;
    wake_node(node);
}

/* ---- time passes ------------------------------------------------------------------------------------------------------------------ */

static void check_connects(void) {
    uint32_t i;
    for (i = 0; i < conn_count; i++) {
        const node_t *node = &nodes[conns[i].side[0].node];
        REQUIRE(ORACLE_HANDSHAKE, !conns[i].is_connecting || sim.now_ns < node->paused_until_ns ||
                                      sim.now_ns < cci__max64(conns[i].connect_by_ns, node->awake_ns) + 3 * SEC,
                "connect %u has no outcome", i);
    }
}

/* No endpoint sends more than there is reason for, nor more to an address than has come from there. */
static void check_work(void) {
    uint32_t i;
    for (i = 0; i < NET_MAX_STRANGERS; i++) {
        REQUIRE(ORACLE_WORK, net.stranger_credit[i] >= 0, "more bytes went to a stranger than came from there");
    }
}

static void audit(void) {
    uint32_t i;
    check_overdue();
    check_statistics();
    check_connects();
    check_work();
    for (i = 0; i < NET_CHALLENGES; i++) {
        REQUIRE(ORACLE_WORK, net.challenges[i] < 500, "%u challenges in a second: two sides follow each other for ever",
                (unsigned)net.challenges[i]);
    }
    memset(net.challenges, 0, sizeof net.challenges);
}

static void flow(uint32_t id, uint32_t at) {
    side_t *side = &conns[id].side[at];
    uint32_t burst = 64;
    while (side->flow_messages > 0 && burst-- > 0 && soak_send(id, at, side->flow_length, 0, 0)) {
        side->flow_messages--;
    }
    if (side->flow_messages > 0 && side->state == SIDE_OPEN && !side->is_broken) {
        plan(MS, TASK_FLOW, id, at, side->incarnation, NULL);
    }
}

static void do_task(const task_t *task) {
    node_t *node = &nodes[task->kind == TASK_CLOSE || task->kind == TASK_FLOW ? conns[task->a].side[task->b].node
                          : task->kind == TASK_CLEAN || task->kind == TASK_UNCUT ? 0 : task->a];
    uint32_t i;
    switch (task->kind) {
    case TASK_RETURN:
        if (node->endpoint != NULL && node->incarnation == task->incarnation) {
            give_back(task->event);
            node->poll_after_ns = 0;
            wake_node(node);
        }
        break;
    case TASK_DECIDE:
        if (node->endpoint != NULL && node->incarnation == task->incarnation) {
            node->undecided--;
            decide(task->event, task->b, task->a);
            wake_node(node);
        }
        break;
    case TASK_CLOSE:
        if (node->incarnation == task->incarnation) {
            soak_close(task->a, task->b);
        }
        break;
    case TASK_FLOW:
        if (node->incarnation == task->incarnation && sim.now_ns >= node->paused_until_ns) {
            flow(task->a, task->b);
        } else if (node->incarnation == task->incarnation) {
            plan(node->paused_until_ns + MS - sim.now_ns, TASK_FLOW, task->a, task->b, task->incarnation, NULL);
        }
        break;
    case TASK_WAKE:
        if (node->endpoint != NULL && node->incarnation == task->incarnation && sim.now_ns >= node->paused_until_ns) {
            node->awake_ns = node_now_ns(node);
            wake_node(node);
        }
        break;
    case TASK_END_HOARD:
        if (node->endpoint != NULL && node->incarnation == task->incarnation && sim.now_ns >= node->hoard_until_ns) {
            end_hoard(node);
        }
        break;
    case TASK_CLEAN:
        for (i = 0; i < node_count * node_count; i++) {
            if (task->a == NONE || i == task->a) {
                int is_cut = net.path[i / node_count][i % node_count].is_cut;
                net_clean_path(&net.path[i / node_count][i % node_count]);
                net.path[i / node_count][i % node_count].is_cut = is_cut;
            }
        }
        break;
    case TASK_UNCUT:
        net.faults[FAULT_HEALED]++;
        for (i = 0; i < node_count * node_count; i++) {
            net.path[i / node_count][i % node_count].is_cut = 0;
        }
        break;
    case TASK_DEVICE_UP:
        sim_set_up((int)task->a, 1);
        break;
    case TASK_MEMORY_BACK:
        alloc_fails_at = 0;
        break;
    case TASK_AUDIT:
        audit();
        plan(SEC, TASK_AUDIT, 0, 0, 0, NULL);
        break;
    }
}

static void drive_until(uint64_t end_ns) {
    uint32_t i;
    while (sim.now_ns < end_ns) {
        uint64_t next_ns = end_ns;
        int any = 0;
        for (i = 0; i < node_count; i++) {
            uint64_t wants_ns = node_wants_ns(&nodes[i]);
            if (wants_ns <= sim.now_ns) {
                poll_node(i);
                any = 1;
            } else {
                nodes[i].overdue = 0; /* it can wait */
                next_ns = cci__min64(next_ns, wants_ns);
            }
        }
        while (agenda_count > 0 && agenda[0].due_ns <= sim.now_ns) {
            task_t task = next_task();
            do_task(&task);
            any = 1;
        }
        if (!any) {
            next_ns = cci__min64(next_ns, sim_next_arrival_ns());
            next_ns = agenda_count > 0 ? cci__min64(next_ns, agenda[0].due_ns) : next_ns;
            sim_advance_to(cci__max64(next_ns, sim.now_ns + 1));
        }
    }
}

/* ---- calm: all faults end, and then everything must work ---------------------------------------------------------------------------- */

/* A silent RMA says nothing of its end: now it is over. */
static void settle_silent(void) {
    uint32_t i;
    for (i = 0; i < op_count; i++) {
        op_t *op = &ops[i];
        if (op->kind == OP_SEND || op->is_done || !(op->flags & CCI_FLAG_SILENT)) {
            continue;
        }
        if (is_sound(&conns[op->conn].side[0]) && is_sound(&conns[op->conn].side[1]) && !op->must_be_refused &&
            !op_may_be_refused(op) && !conns[op->conn].side[op->side].had_rnr &&
            !nodes[conns[op->conn].side[!op->side].node].was_slow) {
            if (op->kind == OP_ATOMIC) {
                op->piece.remote->cell[op->cell].done += cell_counts(op->cell) ? 1 : 0;
            } else {
                op_settle(op, 1);
            }
        }
        op->is_done = 1;
    }
}

static void all_faults_end(void) {
    uint32_t i, never = 0, all = UINT32_MAX;
    net_heal();
    alloc_fails_at = 0;
    for (i = 0; i < node_count; i++) {
        node_t *node = &nodes[i];
        if (node->endpoint == NULL) {
            soak_open(i);
        }
        if (sim.now_ns < node->paused_until_ns) {
            node->awake_ns = node_now_ns(node);
        }
        node->paused_until_ns = 0;
        node->hold_per_mille = 0;
        end_hoard(node);
        if (cci_set_opt(node->endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &never) != CCI_SUCCESS) {
            soak_fail(ORACLE_CALL, "keepalive can't be switched off");
        }
        if (cci_set_opt(node->endpoint, CCI_OPT_ENDPT_BACKLOG, &all) != CCI_SUCCESS) {
            soak_fail(ORACLE_CALL, "not all may wait");
        }
    }
    for (i = 0; i < conn_count; i++) {
        conns[i].side[0].flow_messages = conns[i].side[1].flow_messages = 0;
    }
}

/* Lets things come to an end, for so long at most. */
static void drain(uint64_t most_ns) {
    uint64_t end_ns = sim.now_ns + most_ns;
    while (pending_count > 0 && sim.now_ns < end_ns) {
        drive_until(sim.now_ns + 100 * MS);
    }
}

/* Of those whose other side is gone not too many at once: where packets are sealed each has its state until its time-out. */
static void probe_connections(void) {
    uint32_t i, at, left = 400, left_gone = 256, least_us = 1000000;
    if (profile.memory_limit > 0 && conn_count >= 200) { /* they take turns, of up to a second where the peer has no memory either */
        least_us = profile.memory_limit <= 65536 ? 30000000 : 10000000;
    }
    for (i = conn_count; i-- > 0 && left > 0;) {
        for (at = 0; at < 2; at++) {
            conn_t *conn = &conns[i];
            if (is_reliable(conn) && conn->side[at].state == SIDE_OPEN && !conn->side[at].is_broken) {
                if (is_sound(&conn->side[0]) && is_sound(&conn->side[1]) && conn->side[at].timeout_us >= least_us &&
                    (dgram_of(&nodes[conn->side[!at].node])->base.recv_buf_count >= 64 || conn_count < 200)) {
                    left--; /* hundreds of senders and four buffers, or memory for few: some wait longer than a short time-out */
                    totals.probes++;
                    (void)soak_send(i, at, 16 + below(64), 0, 1);
                    if (at == 0 && !profile.is_crowded && mix(i + sim.now_ns) % 10 == 0) { /* before the other side sends what must arrive */
                        soak_close_slowly(i, at, 40000000);
                    }
                } else if (left_gone > 0) {
                    left_gone--;
                    (void)soak_send(i, at, 16, 0, 0); /* it will learn that the other side is gone */
                }
            }
        }
    }
}

/* How long one message takes when nothing else is under way; 0 if it can't be sent. */
static uint64_t time_message(uint32_t id, uint32_t at) {
    uint64_t began_ns = sim.now_ns;
    if (!soak_send(id, at, 16 + below(64), 0, 1)) {
        return 0;
    }
    while (conns[id].side[at].open_ops > 0 && sim.now_ns < began_ns + SEC) {
        drive_until(sim.now_ns + 10 * US);
    }
    return sim.now_ns - began_ns;
}

/* What nobody disturbs takes two crossings of the network, and not a time-out. The first one may find that the other side
 * has moved. */
static void check_prompt(void) {
    uint32_t i, at, left = 4;
    for (i = conn_count; i-- > 0 && left > 0;) {
        const conn_t *conn = &conns[i];
        at = i & 1;
        if (is_reliable(conn) && is_sound(&conn->side[0]) && is_sound(&conn->side[1]) && !conn->side[0].is_broken &&
            !conn->side[1].is_broken && conn->side[at].timeout_us >= 1000000) {
            left--;
            if (time_message(i, at) > 0) {
                drive_until(sim.now_ns + 10 * MS);
                REQUIRE(ORACLE_LIVENESS, time_message(i, at) < MS, "a message on connection %u took longer than a millisecond", i);
            }
        }
    }
}

static uint32_t count_waiting(void) {
    uint32_t n, count = 0;
    for (n = 0; n < node_count; n++) {
        count += dgram_of(&nodes[n])->waiting_count;
    }
    return count;
}

/* Who waits for a turn at the memory limit gets it, though nothing is under way any more: a turn that is not taken ends. */
static void settle_turns(void) {
    uint32_t most = count_waiting(), i;
    for (i = 0; i < most && count_waiting() > 0; i++) {
        drive_until(sim.now_ns + 250 * MS);
    }
    REQUIRE(ORACLE_LIVENESS, count_waiting() == 0, "%u connections still wait for their turn", count_waiting());
}

static uint32_t count_path_probes(void) {
    const cci_list_t *in_use;
    uint32_t n, count = 0;
    for (n = 0; n < node_count; n++) {
        const cci__dgram_t *ep = dgram_of(&nodes[n]);
        for (in_use = ep->in_use.next; in_use != &ep->in_use; in_use = in_use->next) {
            count += CCI__CONTAINER(in_use, const cci__hot_t, in_use)->rel.probing;
        }
    }
    return count;
}

/* An unreliable connection does not learn that its peer is gone, and looks for a larger MTU: two packets of each of six sizes,
 * of which each waits for its time-out. That is the first one, of up to 3.4 seconds, as nothing is ever acknowledged: longer than
 * the calm so far. */
static void settle_path_probes(void) {
    uint32_t i;
    for (i = 0; i < 2 * 6 * 7 && count_path_probes() > 0; i++) {
        drive_until(sim.now_ns + 500 * MS);
    }
    REQUIRE(ORACLE_LIVENESS, count_path_probes() == 0, "%u connections still look for a larger MTU", count_path_probes());
}

/* When nothing is under way, nothing is sent but what keeps connections alive, or waits for a peer that never confirms, or
 * that does not answer that its connection is closed, or where it is: its endpoint may have no memory for that. */
static void check_silence(void) {
    uint64_t before = net.datagrams;
    uint32_t i, n, excused = 0;
    for (n = 0; n < node_count; n++) {
        const cci_conn_table_t *table = &dgram_of(&nodes[n])->base.conns;
        uint64_t now_ns = sim.now_ns + nodes[n].link->clock_ahead_ns;
        for (i = 0; i < table->slab_count * CCI__CONN_SLAB; i++) {
            const cci__dconn_t *conn = (const cci__dconn_t *)(const void *)cci_conn_at(table, i);
            excused += conn->conn.state == CCI_CONN_OPEN && conn->in.open.probe_ns < now_ns + 2 * SEC;
            excused += conn->conn.state != CCI_CONN_FREE && net_node_at(net_number(&conn->conn.peer)) < 0; /* its port is nobody's now */
            excused += conn->hot && conn->hot->path && conn->hot->path->candidates && /* the peer has no memory for addresses */
                       conn->hot->path->candidates->tell_ns != CCI__NEVER;
            excused += conn->hot && cci__path_deadline(dgram_of(&nodes[n]), conn->hot->path) != CCI__NEVER;
            excused += conn->conn.state == CCI_CONN_ACCEPTED || conn->conn.state == CCI_CONN_CLOSING ||
                       (conn->conn.keepalive_us > 0 && conn->conn.pub.attribute <= CCI_CONN_ATTR_RU);
        }
    }
    drive_until(sim.now_ns + SEC);
    REQUIRE(ORACLE_WORK, net.datagrams - before <= 40 * (uint64_t)excused, "%lu datagrams were sent though nothing is under way",
            (unsigned long)(net.datagrams - before));
}

/* An endpoint that was made again can't reset the connections of the one before where packets are sealed, or when it has another
 * port: what had been sent in part lies there until the program gives up. */
static void close_orphans(void) {
    uint32_t i, at;
    for (i = 0; i < conn_count; i++) {
        for (at = 0; at < 2; at++) {
            const side_t *side = &conns[i].side[at];
            if (conns[i].side[!at].state == SIDE_GONE &&
                (profile.protection == PROTECTION_SEAL ||
                 (side->state == SIDE_OPEN && net_node_at(net_number(&((const cci_conn_t *)(const void *)side->handle)->peer)) < 0))) {
                soak_close(i, at);
            }
        }
    }
}

static uint32_t count_undecided(void) {
    uint32_t i, count = 0;
    for (i = 0; i < node_count; i++) {
        count += nodes[i].undecided;
    }
    return count;
}

static void calm(void) {
    uint32_t i;
    all_faults_end();
    drive_until(sim.now_ns + 6 * SEC); /* whose time-out is nearly over may still fail */
    drain(40 * SEC);
    probe_connections();
    for (i = 0; i < node_count; i++) {
        soak_connect(i, (i + 1) % node_count, CCI_CONN_ATTR_RO, 8000000, 1);
    }
    drive_until(sim.now_ns + 3 * SEC);
    /* Who sends to an endpoint that was made again learns it from its time-out, if packets are sealed. Where a packet's number was
     * changed unnoticed, answers to it may count for nothing, and that to a last try is waited for as long again. */
    drain((is_strict ? 40 : 80) * SEC);
    REQUIRE(ORACLE_LIVENESS, pending_count == 0, "%u operations have not ended a minute after the last fault, the first is %u",
            pending_count, pending_count > 0 ? pending[0] : 0);
    drive_until(sim.now_ns + 26 * SEC); /* requests that were left lying are decided */
    for (i = 0; i < 30 && count_undecided() > 0; i++) { /* and such as came late, since their client had lost some tries */
        drive_until(sim.now_ns + SEC);
    }
    drain(20 * SEC);
    close_orphans();
    check_nothing_lost();
    settle_silent();
    settle_turns();
    settle_path_probes();
    for (i = 0; i < region_count; i++) {
        region_check(regions[i]);
        region_forget_failed(regions[i]);
    }
    for (i = 0; i < node_count; i++) {
        if (is_strict) { /* otherwise a changed number may have opened a gap that nobody fills */
            check_idle(i);
        }
        nodes[i].was_slow = 0;
    }
    if (is_strict) {
        check_prompt();
        drive_until(sim.now_ns + 100 * MS);
        check_silence();
    }
    for (i = 0; i < node_count; i++) {
        nodes[i].hold_per_mille = happens(300) ? PICK(50, 300, 900) : 0;
    }
    net.translators_remember = 0;
    totals.calms++;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------------------ */

typedef enum step_kind {
    STEP_CONNECT, STEP_CLOSE, STEP_SEND, STEP_FLOW, STEP_RMA, STEP_BAD_RMA, STEP_LIST, STEP_BAD_LIST, STEP_ATOMIC, STEP_BAD_ATOMIC, STEP_OPTION, STEP_REGION, STEP_GROUP, STEP_MEMORY,
    STEP_RECREATE, STEP_PAUSE, STEP_CLOCK, STEP_HOARD, STEP_PATH, STEP_CUT, STEP_ALIAS, STEP_REPLAY, STEP_GARBAGE,
    STEP_BUSY, STEP_DEVICE, STEP_NO_MEMORY, STEP_FORK, STEP_CALM, STEP_KINDS
} step_kind_t;

static const struct {
    const char *name;
    uint32_t weight;
    int is_fault;
} step_table[STEP_KINDS] = {
    {"connect", 14, 0}, {"close", 4, 0},   {"send", 28, 0}, {"flow", 8, 0},   {"rma", 28, 0},     {"bad rma", 3, 0},
    {"list", 9, 0}, {"bad list", 2, 0}, {"atomic", 12, 0}, {"bad atomic", 2, 0},
    {"option", 4, 0},   {"region", 2, 0},  {"group", 1, 0}, {"memory", 2, 0}, {"recreate", 1, 1}, {"pause", 2, 1},
    {"clock", 1, 1},    {"hoard", 2, 1},   {"path", 10, 1}, {"cut", 3, 1},    {"alias", 2, 1},    {"replay", 4, 1},
    {"garbage", 3, 1},  {"busy", 1, 1},    {"device", 1, 1}, {"no memory", 1, 1}, {"fork", 1, 1},
    {"calm", 0, 0}};

/* A connection with an open side, by chance; 0 if there is none. */
static int any_open(uint32_t *id, uint32_t *at) {
    uint32_t tries, draw = (uint32_t)(chance() >> 32);
    for (tries = 0; tries < conn_count && tries < 4000; tries++) {
        uint32_t i = (draw + tries) % conn_count;
        uint32_t first = draw >> 16 & 1;
        if (conns[i].side[first].state == SIDE_OPEN || conns[i].side[!first].state == SIDE_OPEN) {
            *id = i;
            *at = conns[i].side[first].state == SIDE_OPEN ? first : !first;
            return sim.now_ns >= nodes[conns[i].side[*at].node].paused_until_ns;
        }
    }
    return 0;
}

static uint32_t any_node(void) {
    return below(node_count);
}

static void step_connect(void) {
    uint32_t open = 0, both = 0, i, times = profile.is_crowded ? between(100, 400) : happens(100) ? between(2, 12) : 1;
    for (i = 0; i < conn_count; i++) {
        open += conns[i].side[0].state == SIDE_OPEN || conns[i].is_connecting;
        both += conns[i].side[0].state == SIDE_OPEN && conns[i].side[1].state == SIDE_OPEN;
    }
    totals.most_conns = cci__max64(totals.most_conns, both);
    for (; times > 0 && open < profile.most_conns; times--, open++) {
        uint32_t from = any_node(), to = any_node();
        cci_conn_attribute_t attribute = (cci_conn_attribute_t)PICK(CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU,
                                                                    CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU);
        soak_connect(from, to, attribute, PICK(200000, 1000000, 5000000, 20000000), 0);
    }
}

static void step_close(void) {
    uint32_t id, at;
    if (any_open(&id, &at)) {
        soak_close(id, at);
        if (happens(300)) {
            soak_close(id, !at);
        }
    }
}

static void step_send(void) {
    uint32_t id, at, times = happens(500) ? between(1, 4) : between(1, 80);
    int kind = (int)below(10), flags;
    if (!any_open(&id, &at)) {
        return;
    }
    for (; times > 0; times--) {
        flags = kind == 0 ? CCI_FLAG_SILENT : kind == 1 ? CCI_FLAG_NO_COPY : 0;
        if (kind == 2) {
            flags = happens(300) ? CCI_FLAG_SILENT : 0;
        }
        flags |= kind < 5 && happens(300) ? CCI_FLAG_FENCE : 0;
        if (!soak_send(id, at, message_length(&conns[id].side[at]), flags, 0)) {
            break;
        }
    }
}

static void step_flow(void) {
    uint32_t id, at;
    side_t *side;
    if (!any_open(&id, &at)) {
        return;
    }
    side = &conns[id].side[at];
    if (side->flow_messages == 0 && !side->is_broken) {
        side->flow_messages = between(10, happens(100) ? 4000 : 400);
        side->flow_length = message_length(side);
        if ((uint64_t)side->flow_length * side->flow_messages > 4000000) {
            side->flow_messages = 4000000 / side->flow_length + 1;
        }
        flow(id, at);
    }
}

static void step_rma(int is_bad) {
    uint32_t id, at, times = is_bad ? 1 : happens(500) ? 1 : between(2, 12), way;
    const side_t *side, *peer;
    const node_t *near, *far;
    if (!any_open(&id, &at) || !is_reliable(&conns[id])) {
        return;
    }
    for (; times > 0; times--) {
        rma_plan_t rma;
        side = &conns[id].side[at];
        peer = &conns[id].side[!at];
        near = &nodes[side->node];
        far = &nodes[peer->node];
        if (side->state != SIDE_OPEN || far->endpoint == NULL || far->incarnation != peer->incarnation) {
            return;
        }
        memset(&rma, 0, sizeof rma);
        rma.kind = happens(500) ? OP_READ : OP_WRITE;
        rma.length = 1 + skewed(happens(100) ? REGION_SIZE - 1 : 20000);
        rma.message_length = happens(400) ? cci__min32(4 + skewed(side->handle->max_send_size - 4), 65000) : 0;
        rma.flags = (happens(250) ? CCI_FLAG_FENCE : 0) | (happens(100) ? CCI_FLAG_SILENT : 0);
        rma.is_bad = is_bad;
        if (!is_bad) {
            rma.local = rma.kind == OP_READ ? near->local : happens(150) ? near->fleeting : near->source;
            rma.remote = rma.kind == OP_WRITE ? (happens(150) ? far->passing : far->target)
                                              : (happens(150) ? far->fleeting : far->source);
            soak_rma(id, at, &rma, 0);
            continue;
        }
        way = below(4);
        rma.local = rma.kind == OP_READ ? near->local : near->source;
        if (way == 0) { /* one byte beyond the end, at least */
            rma.remote = rma.kind == OP_WRITE ? far->target : far->source;
            soak_rma(id, at, &rma, REGION_SIZE - rma.length + (happens(700) ? 1 : between(1, GUARD_SIZE)));
        } else if (way == 3) { /* by a handle that has been deregistered */
            rma.remote = dead_region(peer->node);
            if (rma.remote != NULL) {
                soak_rma(id, at, &rma, below(REGION_SIZE - rma.length + 1));
            }
        } else { /* without the right to */
            rma.remote = way == 1 ? far->local : rma.kind == OP_WRITE ? far->source : far->target;
            soak_rma(id, at, &rma, below(REGION_SIZE - rma.length + 1));
        }
    }
}

/* The two sides of a connection are there; 0 if not. */
static int has_both_ends(uint32_t id, uint32_t at) {
    const side_t *side = &conns[id].side[at], *peer = &conns[id].side[!at];
    return side->state == SIDE_OPEN && nodes[peer->node].endpoint != NULL && nodes[peer->node].incarnation == peer->incarnation;
}

static void step_list(int is_bad) {
    uint32_t id, at, times = is_bad || happens(500) ? 1 : between(2, 6);
    if (!any_open(&id, &at) || !is_reliable(&conns[id])) {
        return;
    }
    for (; times > 0 && has_both_ends(id, at); times--) {
        rma_plan_t rma;
        uint32_t segments = happens(100) ? LIST_MOST : 1 + skewed(40);
        memset(&rma, 0, sizeof rma);
        rma.kind = happens(500) ? OP_READ : OP_WRITE;
        rma.length = 1 + skewed(is_bad ? GUARD_SIZE - 1 : happens(100) ? REGION_SIZE / 2 : 20000);
        rma.message_length = happens(400) ? cci__min32(4 + skewed(conns[id].side[at].handle->max_send_size - 4), 65000) : 0;
        rma.flags = (happens(250) ? CCI_FLAG_FENCE : 0) | (happens(100) ? CCI_FLAG_SILENT : 0);
        rma.is_bad = is_bad;
        soak_list(id, at, &rma, segments);
    }
}

static void step_atomic(int is_bad) {
    uint32_t id, at, times = happens(500) ? between(1, 3) : between(1, 40), index = below(CELL_COUNT);
    int one = happens(500), fenced = happens(300);
    if (!any_open(&id, &at) || !is_reliable(&conns[id])) {
        return;
    }
    for (; times > 0 && has_both_ends(id, at); times--) {
        int flags = (fenced && happens(300) ? CCI_FLAG_FENCE : 0) | (happens(100) ? CCI_FLAG_SILENT : 0);
        if (profile.memory_limit > 0) {
            flags &= ~CCI_FLAG_SILENT; /* who has no memory for a peer's atomics does not answer: the calm waits for its end */
        }
        if (is_bad) {
            soak_bad_atomic(id, at, flags & CCI_FLAG_SILENT);
        } else if (!soak_atomic(id, at, one ? index : below(CELL_COUNT), flags)) {
            return;
        }
    }
}

static void step_option(void) {
    uint32_t id, at, value;
    node_t *node = &nodes[any_node()];
    int status = CCI_SUCCESS;
    switch (below(7)) {
    case 6:
        value = PICK(4, 100, 1000);
        status = node->endpoint ? cci_set_opt(node->endpoint, CCI_OPT_ENDPT_BACKLOG, &value) : CCI_SUCCESS;
        break;
    case 0:
        if (any_open(&id, &at) && is_reliable(&conns[id])) {
            value = PICK(1000000, 2000000, 10000000, 30000000);
            status = cci_set_opt(conns[id].side[at].handle, CCI_OPT_CONN_SEND_TIMEOUT, &value);
            conns[id].side[at].timeout_us = value;
        }
        break;
    case 1:
        if (any_open(&id, &at) && is_reliable(&conns[id])) {
            value = PICK(0, 100000, 1000000, 5000000);
            status = cci_set_opt(conns[id].side[at].handle, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &value);
        }
        break;
    case 2:
        value = PICK(4, 20, 100, 1000, 1500);
        value = node->undecided > 0 ? 1500 : value; /* requests that wait for their answer hold buffers */
        status = node->endpoint ? cci_set_opt(node->endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &value) : CCI_SUCCESS;
        break;
    case 3:
        value = PICK(1, 5, 100, 1000, 1500);
        status = node->endpoint ? cci_set_opt(node->endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &value) : CCI_SUCCESS;
        break;
    case 4:
        value = PICK(1000000, 3000000, 30000000);
        status = node->endpoint ? cci_set_opt(node->endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &value) : CCI_SUCCESS;
        break;
    default:
        value = PICK(0, 0, 500000, 5000000);
        status = node->endpoint ? cci_set_opt(node->endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &value) : CCI_SUCCESS;
        break;
    }
    REQUIRE(ORACLE_CALL, status == CCI_SUCCESS || (status == CCI_ENOMEM && alloc_fails_at), "cci_set_opt: %s",
            cci_strerror(NULL, (cci_status_t)status));
}

static void worsen(net_path_t *path) {
    switch (below(8)) {
    case 0:
        path->loss_per_mille = PICK(5, 30, 100, 300);
        break;
    case 1:
        path->burst_begin_per_mille = PICK(2, 10, 50);
        path->burst_end_per_mille = PICK(50, 200, 500);
        path->burst_loss_per_mille = PICK(500, 900, 1000);
        break;
    case 2:
        path->duplicate_per_mille = PICK(10, 100, 500);
        break;
    case 3:
        path->reorder_per_mille = PICK(10, 100, 500);
        path->reorder_ns = PICK(100, 1000, 10000, 300000) * US;
        break;
    case 4:
        path->delay_ns = PICK(1, 100, 2000, 20000, 250000) * US;
        path->jitter_ns = path->delay_ns / PICK(1, 2, 10);
        break;
    case 5:
        path->bytes_per_second = PICK(20000, 100000, 1000000, 50000000);
        path->queue_bytes = PICK(3000, 30000, 300000);
        break;
    case 6:
        path->mtu = profile.base_mtu == 0 ? 0 : between(profile.base_mtu, cci__max32(profile.mtu, profile.base_mtu));
        break;
    default:
        path->corrupt_per_mille = PICK(5, 50, 300);
        break;
    }
}

static void step_path(void) {
    uint32_t which = happens(400) ? NONE : below(node_count * node_count), i, count = between(1, 3);
    uint64_t state = chance();
    net.faults[FAULT_ONE_SIDED] += which != NONE;
    for (i = 0; i < node_count * node_count; i++) {
        if (which == NONE || i == which) {
            uint32_t times = count;
            chance_state = state; /* all paths alike */
            for (; times > 0; times--) {
                worsen(&net.path[i / node_count][i % node_count]);
            }
        }
    }
    plan(between(1, 5000) * MS * (happens(100) ? 10 : 1), TASK_CLEAN, which, 0, 0, NULL);
}

/* Some nodes are cut off from the others, perhaps in one direction alone. */
static void step_cut(void) {
    uint32_t set = (uint32_t)chance(), way = below(3), a, b;
    for (a = 0; a < node_count; a++) {
        for (b = 0; b < node_count; b++) {
            if ((set >> a & 1) != (set >> b & 1) && (way == 0 || (way == 1) == (int)(set >> a & 1))) {
                net.path[a][b].is_cut = 1;
            }
        }
    }
    plan(between(10, happens(200) ? 40000 : 3000) * MS, TASK_UNCUT, 0, 0, 0, NULL);
}

static void step_pause(void) {
    uint32_t index = any_node();
    node_t *node = &nodes[index];
    uint64_t for_ns = between(1, happens(300) ? 20000 : 2000) * MS;
    if (node->endpoint != NULL && sim.now_ns + for_ns > node->paused_until_ns) {
        node->paused_until_ns = sim.now_ns + for_ns;
        node->was_slow = 1;
        net.faults[FAULT_PAUSED]++;
        plan(for_ns, TASK_WAKE, index, 0, node->incarnation, NULL);
    }
}

static void step_hoard(void) {
    uint32_t index = any_node();
    node_t *node = &nodes[index];
    uint64_t for_ns = between(100, happens(300) ? 40000 : 4000) * MS;
    if (node->endpoint != NULL) {
        node->hoard_until_ns = sim.now_ns + for_ns;
        node->was_slow = 1;
        plan(for_ns, TASK_END_HOARD, index, 0, node->incarnation, NULL);
    }
}

/* Random bytes, packets of other versions, and truncated or altered ones, from an address that nobody has, or from many. */
static void step_garbage(void) {
    uint32_t times = between(1, 60), i, stranger = below(NET_MAX_STRANGERS);
    int many = happens(500);
    for (; times > 0; times--) {
        uint8_t bytes[2000];
        uint32_t length = below(happens(500) ? 100 : 1400), way = below(4);
        stranger = many ? below(NET_MAX_STRANGERS) : stranger; /* what one is owed must not hide what another got */
        const sim_datagram_t *old = net_any_recorded();
        cci_link_addr_t from;
        for (i = 0; i < length; i++) {
            bytes[i] = (uint8_t)chance();
        }
        if (length > 2) {
            bytes[0] = happens(700) ? CCI__WIRE_VERSION : (uint8_t)(CCI__WIRE_VERSION - 1 + below(3));
            bytes[1] = (uint8_t)below(12);
        }
        if (way < 2 && old != NULL && old->length <= sizeof bytes) {
            length = old->length;
            memcpy(bytes, old->bytes, length);
            /* What a stranger repeats may not be what another node answers with a RESET: that one is authentic, since it
             * has the connection's tokens, and may be repeated later. Who sees packets can reset what is not sealed. */
            if (way == 0 || (bytes[1] != CCI__PKT_COOKIE && bytes[1] != CCI__PKT_REJECT && bytes[1] != CCI__PKT_RESET)) {
                bytes[0] = (uint8_t)(CCI__WIRE_VERSION + (happens(500) ? 1 : -1)); /* an older or newer peer */
            }
        } else if (bytes[1] == CCI__PKT_REQUEST) {
            bytes[1] = CCI__PKT_DATA; /* a sound request of a stranger would be a request */
        }
        net.faults[length > 0 && bytes[0] != CCI__WIRE_VERSION ? FAULT_VERSION : FAULT_GARBAGE]++;
        sim_make_address(&from, 1, NET_STRANGERS + stranger);
        net_inject(&from, any_node(), bytes, length);
    }
}

static void step_replay(void) {
    const sim_datagram_t *old = net_replay();
    if (old != NULL && old->length >= CCI__HEADER_SIZE && old->bytes[1] == CCI__PKT_DATA) {
        const node_t *node = &nodes[net_node_at(net_number(&old->to))];
        net.faults[FAULT_REPLAYED_LATE] +=
            node->endpoint != NULL && cci_conn_find(&dgram_of(node)->base.conns, cci__load32(old->bytes + 4),
                                                    cci__load64(old->bytes + 8)) == NULL;
    }
}

/* Some of the paths between two nodes are silent from now on, and the others are not. */
static void step_silence(void) {
    uint32_t a = any_node(), b = any_node(), silent = (uint32_t)chance();
    uint32_t left = net_way(a, b, below(net.interfaces), below(net.interfaces));
    net.silent[cci__min32(a, b)][cci__max32(a, b)] = silent & ~left;
}

/* A translator gives a node another address. */
static void step_alias(void) {
    uint32_t index;
    if (net.interfaces > 1 && happens(500)) {
        step_silence();
        return;
    }
    index = any_node();
    if (net.alias_count < NET_MAX_ALIASES) {
        net.alias_owner[net.alias_count] = index;
        net.alias[index] = NET_FIRST_ALIAS + net.alias_count++;
        net.faults[FAULT_REBOUND]++;
    }
}

static void step_recreate(void) {
    uint32_t index = any_node();
    if (nodes[index].endpoint != NULL && sim.up[index % 2] && alloc_fails_at == 0) {
        net.is_dead[index] = happens(500); /* a process that is killed says no goodbye, and owes acknowledgements for ever */
        net.faults[FAULT_KILLED] += (uint64_t)net.is_dead[index];
        net.faults[FAULT_RECREATED]++;
        soak_destroy(index);
        net.is_dead[index] = 0;
        soak_open(index);
    }
}

/* The process forks now, or inside one of the library's next calls. */
static void step_fork(void) {
    if (happens(300)) {
        soak_fork();
    } else {
        fork_after = between(1, happens(500) ? 20 : 400);
    }
}

static void do_step(step_kind_t kind) {
    uint32_t index, times;
    switch (kind) {
    case STEP_CONNECT:
        step_connect();
        break;
    case STEP_CLOSE:
        step_close();
        break;
    case STEP_SEND:
        step_send();
        break;
    case STEP_FLOW:
        step_flow();
        break;
    case STEP_RMA:
    case STEP_BAD_RMA:
        step_rma(kind == STEP_BAD_RMA);
        break;
    case STEP_LIST:
    case STEP_BAD_LIST:
        step_list(kind == STEP_BAD_LIST);
        break;
    case STEP_ATOMIC:
    case STEP_BAD_ATOMIC:
        step_atomic(kind == STEP_BAD_ATOMIC);
        break;
    case STEP_OPTION:
        step_option();
        break;
    case STEP_REGION:
        index = any_node();
        if (nodes[index].endpoint != NULL && region_count + 64 < MAX_REGIONS) {
            renew_region(index, happens(400) ? &nodes[index].passing : happens(600) ? &nodes[index].fleeting : &nodes[index].cells);
        }
        break;
    case STEP_GROUP:
        soak_connect_group(any_node(), below(3), happens(500) ? CCI_CONN_ATTR_UU_MC_TX : CCI_CONN_ATTR_UU_MC_RX);
        break;
    case STEP_MEMORY:
        check_all_memory();
        break;
    case STEP_RECREATE:
        step_recreate();
        break;
    case STEP_PAUSE:
        step_pause();
        break;
    case STEP_CLOCK:
        index = any_node();
        if (nodes[index].endpoint != NULL) {
            net.faults[FAULT_CLOCK]++;
            nodes[index].link->clock_ahead_ns += between(1, happens(300) ? 20000 : 500) * MS;
            nodes[index].awake_ns = node_now_ns(&nodes[index]); /* to the library that is as if it had slept */
            wake_node(&nodes[index]);
        }
        break;
    case STEP_HOARD:
        step_hoard();
        break;
    case STEP_PATH:
        step_path();
        break;
    case STEP_CUT:
        step_cut();
        break;
    case STEP_ALIAS:
        step_alias();
        break;
    case STEP_REPLAY:
        for (times = between(1, 40); times > 0; times--) {
            step_replay();
        }
        break;
    case STEP_GARBAGE:
        step_garbage();
        break;
    case STEP_BUSY:
        net.busy_per_mille[any_node()] = PICK(0, 50, 500);
        break;
    case STEP_DEVICE:
        index = below(2);
        sim_set_up((int)index, 0);
        net.faults[FAULT_DEVICE]++;
        plan(between(1, 3000) * MS, TASK_DEVICE_UP, index, 0, 0, NULL);
        break;
    case STEP_NO_MEMORY:
        alloc_fails_at = 1;
        alloc_fails_for_ever = 1;
        plan(between(1, 1000) * MS, TASK_MEMORY_BACK, 0, 0, 0, NULL);
        break;
    case STEP_FORK:
        step_fork();
        break;
    default:
        calm();
        break;
    }
}

/* ---- a whole run ---------------------------------------------------------------------------------------------------------------------- */

static uint32_t soak_step_count(uint64_t seed) {
    choose_profile(seed);
    return profile.step_count;
}

static uint64_t schedule_ns; /* when the next step is */
static uint32_t schedule_at;

static void soak_begin(uint64_t seed) {
    static cci_setup_t setup;
    uint32_t caps, i;
    choose_profile(seed);
    sim_reset();
    sim_set_seed(seed ^ 0x5eed);
    random_state = seed * 77 + 1;
    node_count = profile.node_count;
    net_begin(node_count, profile.base_mtu, profile.interfaces);
    net.corrupts_everything = profile.corrupts_everything;
    is_strict = !profile.corrupts_everything || profile.protection != PROTECTION_NONE;
    memset(&setup, 0, sizeof setup);
    net_at_each_call = fork_when_due;
    setup.alloc = soak_alloc;
    setup.release = soak_release;
    setup.random = soak_random;
    setup.log = soak_log;
    setup.config = "[one]\ntransport = sim\ndevice = 0\n[two]\ntransport = sim\ndevice = 1\n";
    setup.transports = net_transports;
    setup.seal = profile.protection == PROTECTION_SEAL ? &seal_hooks : NULL;
    seal_reset();
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        soak_fail(ORACLE_CALL, "cci_init failed");
    }
    for (i = 0; i < node_count; i++) {
        soak_open(i);
    }
    plan(SEC, TASK_AUDIT, 0, 0, 0, NULL);
    schedule_ns = sim.now_ns;
    schedule_at = 0;
}

static step_kind_t choose_step(uint32_t number) {
    uint32_t i, sum = 0, draw;
    if (number % 128 == 127) {
        return STEP_CALM;
    }
    if (number < 10 && number % 2 == 0) {
        return STEP_CONNECT;
    }
    for (i = 0; i < STEP_KINDS; i++) {
        sum += step_table[i].weight * (step_table[i].is_fault ? profile.fault_per_mille : 1000);
    }
    draw = below(sum);
    for (i = 0; draw >= step_table[i].weight * (step_table[i].is_fault ? profile.fault_per_mille : 1000); i++) {
        draw -= step_table[i].weight * (step_table[i].is_fault ? profile.fault_per_mille : 1000);
    }
    return (step_kind_t)i;
}

/* What a step is, whether it is run or not. */
static const char *step_name(uint64_t seed, uint32_t number) {
    uint64_t state = chance_state;
    const char *name;
    chance_state = mix(seed ^ mix(number + 1));
    (void)skewed(profile.gap_us * 2);
    name = step_table[choose_step(number)].name;
    chance_state = state;
    return name;
}

/* Times are those of the whole schedule, whatever was left out of it; a calm takes its own time besides. */
static void soak_step(uint64_t seed, uint32_t number, int is_verbose) {
    step_kind_t kind;
    uint64_t now_ns;
    for (; schedule_at <= number; schedule_at++) {
        chance_state = mix(seed ^ mix(schedule_at + 1));
        schedule_ns += (uint64_t)skewed(profile.gap_us * 2) * 1000;
    }
    kind = choose_step(number);
    drive_until(schedule_ns);
    if (is_verbose) {
        printf("%10.6f  step %lu: %s\n", (double)sim.now_ns / 1e9, (unsigned long)number, step_table[kind].name);
        fflush(stdout);
    }
    now_ns = sim.now_ns;
    do_step(kind);
    totals.steps++;
    if (kind == STEP_CALM) {
        schedule_ns += sim.now_ns - now_ns;
    }
}

static void soak_end(void) {
    uint32_t i, at;
    calm();
    for (i = 0; i < conn_count; i++) {
        for (at = 0; at < 2; at++) {
            soak_close(i, at);
        }
    }
    drive_until(sim.now_ns + 45 * SEC); /* longer than an accept waits */
    for (i = 0; i < conn_count; i++) {
        REQUIRE(ORACLE_HANDSHAKE, conns[i].accepted == conns[i].accepts || conns[i].attribute >= CCI_CONN_ATTR_UU_MC_TX,
                "accept of connection %u has no outcome", i);
        REQUIRE(ORACLE_HANDSHAKE, !conns[i].is_connecting, "connect %u has no outcome", i);
        soak_close(i, 1); /* accepted meanwhile */
    }
    drive_until(sim.now_ns + 5 * SEC);
    REQUIRE(ORACLE_WORK, totals.work <= totals.work_at_most, "%.0f steps of work for %.0f looks, %.0f datagrams",
            (double)totals.work, (double)totals.polls, (double)net.datagrams);
    check_all_memory();
    for (i = 0; i < node_count; i++) {
        check_empty(i);
    }
    for (i = 0; i < node_count; i++) {
        soak_destroy(i);
    }
    REQUIRE(ORACLE_CALL, cci_finalize() == CCI_SUCCESS, "cci_finalize failed");
    REQUIRE(ORACLE_LEAK, seal_state.given == seal_state.forgotten, "%d keys were given, %d forgotten", seal_state.given,
            seal_state.forgotten);
    REQUIRE(ORACLE_NONCE, seal_state.repeats == 0, "%lu nonces were used again", (unsigned long)seal_state.repeats);
    REQUIRE(ORACLE_LEAK, live_blocks == 0, "%lu blocks of memory were not released", (unsigned long)live_blocks);
    totals.virtual_ns = sim.now_ns - 1000000000u;
    totals.datagrams = net.datagrams;
    totals.bytes = net.bytes;
    memcpy(totals.faults, net.faults, sizeof totals.faults);
    totals.digest = net.digest;
}

#endif /* CCI_SOAK_STEP_H */
