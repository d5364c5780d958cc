/* test_sisci_ends.c - how connections over SISCI end, seen from both sides.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_IMPLEMENTATION
#include "tests/support/sisci.h"

#include "tests/support/harness.h"

#define DOOR "77"
#define DOOR_URI "sisci://4:" DOOR
#define PENDING 20

/* ---- before and after ------------------------------------------------------------------------------------------------- */

static int begin(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    alarm(240); /* each wait has an end of its own, however busy the machine is */
    on_sisci = 1;
    patience_s = 60;
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\n");
    return begin_test(state);
}

static int finish(void **state) {
    int ended = end_test(state);
    close_device(open_device());
    return teardown(state) == 0 ? ended : -1;
}

static cci__sisci *inside(cci_endpoint_t *ep) {
    return (cci__sisci *)(void *)(uintptr_t)ep;
}

static uint32_t used(cci_endpoint_t *ep) {
    return inside(ep)->base.conns.used;
}

static void ask_for_ends(const side_t *side) {
    uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    TRUE(cci_set_opt(side->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS);
}

static pair_t open_asking_pair(cci_conn_attribute_t attribute) {
    pair_t pair = open_pair(attribute);
    ask_for_ends(pair.a);
    ask_for_ends(pair.b);
    return pair;
}

static void await_end(side_t *side, cci_connection_t *connection, const void *context, cci_status_t status) {
    cci_event_t *event = await(side, CCI_EVENT_DISCONNECT);
    TRUE(event->disconnect.connection == connection && event->disconnect.context == context);
    TRUE(event->disconnect.status == status);
    drop(event);
    TRUE(cci_disconnect(connection) == CCI_SUCCESS);
}

static void set_timeout(cci_connection_t *connection, uint32_t timeout_us) {
    TRUE(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS);
}

/* ---- the mask ------------------------------------------------------------------------------------------------------------ */

static void the_mask_is_empty_and_takes_only_events_that_there_are(void **state) {
    side_t *a = side_open();
    uint32_t mask = 77;
    (void)state;
    TRUE(cci_get_opt(a->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS && mask == 0);
    ask_for_ends(a);
    TRUE(cci_get_opt(a->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS && mask == 1u << CCI_EVENT_DISCONNECT);
    mask = 1u << 31;
    TRUE(cci_set_opt(a->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_EINVAL);
    TRUE(cci_get_opt(a->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS && mask == 1u << CCI_EVENT_DISCONNECT);
}

static void who_does_not_ask_is_told_nothing_and_who_closes_neither(void **state) {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    (void)state;
    TRUE(cci_disconnect(pair.bc) == CCI_SUCCESS);
    AWAIT(cci_send(pair.ac, "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    elapse(20 * MILLISECOND_NS);
    TRUE(pair.a->count == 0 && pair.b->count == 0);
    TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
    ask_for_ends(pair.a);
    ask_for_ends(pair.b);
    pair = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RO);
    TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
    await_end(pair.b, pair.bc, &context_b, CCI_SUCCESS);
    elapse(20 * MILLISECOND_NS);
    TRUE(pair.a->count == 0 && pair.b->count == 0);
}

/* Both have closed: neither hears of it. */
static void two_who_close_at_once_are_told_nothing(void **state) {
    pair_t pair = open_asking_pair(CCI_CONN_ATTR_RO);
    (void)state;
    TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS && cci_disconnect(pair.bc) == CCI_SUCCESS);
    elapse(20 * MILLISECOND_NS);
    TRUE(pair.a->count == 0 && pair.b->count == 0 && used(pair.a->ep) == 0 && used(pair.b->ep) == 0);
}

/* The event is in its queue when the program closes the connection. */
static void an_end_that_was_not_taken_is_taken_back(void **state) {
    pair_t pair = open_asking_pair(CCI_CONN_ATTR_RO);
    uint32_t keepalive_us = 1000;
    (void)state;
    TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
    pair.b->deaf = 1;
    while (inside(pair.b->ep)->received.head == NULL) {
        cci__sisci_lock(inside(pair.b->ep));
        (void)cci__sisci_pump(inside(pair.b->ep));
        cci__sisci_unlock(inside(pair.b->ep));
    }
    TRUE(cci_set_opt(pair.bc, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us) == CCI_SUCCESS);
    TRUE(cci_set_opt(pair.bc, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us) == CCI_SUCCESS);
    TRUE(cci_disconnect(pair.bc) == CCI_SUCCESS);
    pair.b->deaf = 0;
    elapse(20 * MILLISECOND_NS);
    TRUE(pair.b->count == 0);
    pair = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RO);
    TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
    await_end(pair.b, pair.bc, &context_b, CCI_SUCCESS);
}

/* ---- a peer that closes ------------------------------------------------------------------------------------------------- */

/* The first event is the oldest: nothing comes behind the end. */
static void expect_pending_then_end(const pair_t *pair, unsigned int delivered, cci_status_t status) {
    unsigned int i;
    AWAIT(count_of(pair->a, CCI_EVENT_DISCONNECT) == 1);
    TRUE(pair->a->count == PENDING + 1);
    TRUE(pair->a->queue[PENDING]->type == CCI_EVENT_DISCONNECT);
    for (i = 0; i < PENDING; i++) {
        await_send(pair->a, pair->ac, as_context(i), i < delivered ? CCI_SUCCESS : CCI_ERR_DISCONNECTED);
    }
    TRUE(cci_send(pair->ac, "x", 1, NULL, 0) == CCI_ERR_DISCONNECTED);
    await_end(pair->a, pair->ac, &context_a, status);
}

/* What is pending includes messages that found no room in the ring. */
static void send_pending(const pair_t *pair, uint32_t length) {
    static char bytes[4096];
    unsigned int i;
    pair->b->deaf = 1;
    for (i = 0; i < PENDING; i++) {
        send_patiently(pair->ac, bytes, length, i, 0);
    }
}

static void what_is_pending_ends_at_once_though_the_peer_does_nothing_more(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    unsigned int i;
    (void)state;
    for (i = 0; i < 4; i++) {
        pair_t pair = open_asking_pair(attributes[i & 1]);
        pair_t other = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RO);
        send_pending(&pair, i & 2 ? 4000 : 4);
        TRUE(cci_disconnect(pair.bc) == CCI_SUCCESS);
        expect_pending_then_end(&pair, 0, CCI_SUCCESS); /* the peer is still deaf */
        pair.b->deaf = 0;
        send_patiently(other.ac, "on", 2, 5, 0); /* the others on the link go on */
        drop(await(other.b, CCI_EVENT_RECV));
        await_send(other.a, other.ac, as_context(5), CCI_SUCCESS);
        side_close(pair.b);
        side_close(pair.a);
        side_count = 0;
    }
}

/* More than the ring takes, and RMAs among them. */
static void what_waits_for_room_ends_too(void **state) {
    static char memory[1 << 20];
    pair_t pair = open_asking_pair(CCI_CONN_ATTR_RO);
    struct cci_rma_handle *mine = NULL, *its = NULL;
    unsigned int i, count = 0;
    (void)state;
    TRUE(cci_rma_register(pair.a->ep, memory, sizeof memory / 2, CCI_FLAG_READ | CCI_FLAG_WRITE, &mine) == CCI_SUCCESS);
    TRUE(cci_rma_register(pair.b->ep, memory + sizeof memory / 2, sizeof memory / 2, CCI_FLAG_READ | CCI_FLAG_WRITE,
                          &its) == CCI_SUCCESS);
    pair.b->deaf = 1;
    while (count < 300 && cci_send(pair.ac, memory, 4000, as_context(count), 0) == CCI_SUCCESS) {
        count++;
    }
    for (i = 0; i < 4; i++) {
        count += cci_rma(pair.ac, "done", 4, mine, 0, its, 0, 100000, as_context(count),
                         i & 1 ? CCI_FLAG_READ : CCI_FLAG_WRITE) == CCI_SUCCESS;
        (void)cci_send(pair.ac, memory, 4000, NULL, CCI_FLAG_SILENT);
    }
    TRUE(cci_disconnect(pair.bc) == CCI_SUCCESS);
    AWAIT(count_of(pair.a, CCI_EVENT_DISCONNECT) == 1);
    TRUE(count_of(pair.a, CCI_EVENT_SEND) == count && pair.a->queue[count]->type == CCI_EVENT_DISCONNECT);
    for (i = 0; i < count; i++) {
        await_send(pair.a, pair.ac, as_context(i), CCI_ERR_DISCONNECTED);
    }
    await_end(pair.a, pair.ac, &context_a, CCI_SUCCESS);
    pair.b->deaf = 0;
    pair = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RO);
    send_patiently(pair.ac, "on", 2, 0, CCI_FLAG_SILENT);
    drop(await(pair.b, CCI_EVENT_RECV));
}

/* How many of the messages the peer has consumed. An endpoint that goes takes a part of what has come. */
static unsigned int inside_taken(const pair_t *pair) {
    const cci__sisci_link *link = ((cci__sisci_conn *)(void *)(uintptr_t)pair->ac)->link;
    return PENDING - (link->out.head - cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK));
}

/* The peer took a part of what was sent, closed the connection, and went on consuming. */
static void only_what_the_peer_took_before_is_a_success(void **state) {
    int how;
    (void)state;
    for (how = 0; how < 3; how++) {
        pair_t pair = open_asking_pair(CCI_CONN_ATTR_RO);
        unsigned int i;
        pair.a->deaf = 1;
        for (i = 0; i < 5; i++) {
            send_patiently(pair.ac, "take", 4, i, 0);
            drop(await(pair.b, CCI_EVENT_RECV));
        }
        TRUE(how == 2 || cci_disconnect(pair.bc) == CCI_SUCCESS);
        for (; i < PENDING; i++) {
            send_patiently(pair.ac, "lose", 4, i, 0);
        }
        if (how == 0) {
            elapse(5 * MILLISECOND_NS); /* the peer consumes it, for nobody */
        } else {
            if (how == 1) {
                poll_all();
            }
            side_close(pair.b);
            pair.b->ep = NULL;
        }
        pair.a->deaf = 0;
        expect_pending_then_end(&pair, how == 2 ? inside_taken(&pair) : 5, CCI_SUCCESS);
        if (how == 0) {
            side_close(pair.b);
        }
        side_close(pair.a);
        side_count = 0;
    }
}

/* Takes what has come, but gives no event to the program. */
static void pump(const side_t *side) {
    cci__sisci_lock(inside(side->ep));
    (void)cci__sisci_pump(inside(side->ep));
    cci__sisci_unlock(inside(side->ep));
}

/* Lets time pass until the sender gives its messages up, without giving its program an event. */
static void await_giving_up(const pair_t *pair) {
    patience_t patience = be_patient();
    while (!((cci__sisci_conn *)(void *)(uintptr_t)pair->ac)->unready) {
        elapse(MILLISECOND_NS);
        pump(pair->a);
        still_patient(&patience, "the send time-out");
    }
}

/* The sender gave messages up, since the peer had no buffers for them; the peer dropped them, said so, and went. */
static void what_the_peer_dropped_before_it_went_is_no_success(void **state) {
    uint32_t buffers = 16, got, done = 0, undone = 0;
    cci_event_t *event;
    pair_t pair;
    unsigned int i;
    (void)state;
    pair = open_asking_pair(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(pair.b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
    set_timeout(pair.ac, 100000);
    pair.a->deaf = 1;
    for (i = 0; i < PENDING; i++) {
        send_patiently(pair.ac, "lose", 4, i, 0);
    }
    elapse(5 * MILLISECOND_NS); /* the peer's program holds what it has buffers for */
    got = (uint32_t)count_of(pair.b, CCI_EVENT_RECV);
    TRUE(got > 0 && got < PENDING);
    await_giving_up(&pair);
    elapse(5 * MILLISECOND_NS); /* the peer drops the others */
    TRUE(count_of(pair.b, CCI_EVENT_RECV) == got);
    side_close(pair.b);
    pair.b->ep = NULL;
    pair.a->deaf = 0;
    while (done + undone < PENDING) {
        event = await(pair.a, CCI_EVENT_SEND);
        *(event->send.status == CCI_SUCCESS ? &done : &undone) += 1;
        drop(event);
    }
    assert_int_equal(done, got);
    side_close(pair.a);
    side_count = 0;
}

/* Takes 2,000 messages with 16 buffers, and looks for the end behind them. */
static void expect_messages_then_end(const pair_t *pair, unsigned int count, cci_status_t status) {
    unsigned int i;
    for (i = 0; i < count; i++) {
        cci_event_t *event = await(pair->b, CCI_EVENT_RECV);
        unsigned int number;
        TRUE(count_of(pair->b, CCI_EVENT_DISCONNECT) == 0 || count - i <= pair->b->count);
        memcpy(&number, event->recv.ptr, sizeof number);
        TRUE(number == i);
        drop(event);
    }
    await_end(pair->b, pair->bc, &context_b, status);
}

static void what_was_sent_before_comes_before_the_end(void **state) {
    int how;
    (void)state;
    for (how = 0; how < 2; how++) {
        pair_t pair = open_asking_pair(CCI_CONN_ATTR_RO);
        uint32_t buffers = 16;
        unsigned int i;
        TRUE(cci_set_opt(pair.b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers) == CCI_SUCCESS);
        pair.b->deaf = 1;
        for (i = 0; i < 200; i++) {
            TRUE(cci_send(pair.ac, &i, sizeof i, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        }
        if (how == 0) {
            TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
        } else {
            side_close(pair.a);
            pair.a->ep = NULL;
        }
        pair.b->deaf = 0;
        expect_messages_then_end(&pair, 200, CCI_SUCCESS);
        if (how == 0) {
            side_close(pair.a);
        }
        side_close(pair.b);
        side_count = 0;
    }
}

/* ---- a program that sleeps ------------------------------------------------------------------------------------------------ */

static void a_sleeper_is_woken_for_the_end(void **state) {
    int how;
    (void)state;
    for (how = 0; how < 2; how++) {
        side_t *a = side_open(), *b = &sides[side_count];
        cci_os_handle_t fd;
        pair_t pair;
        struct pollfd item;
        unsigned int messages = 0;
        memset(b, 0, sizeof *b);
        TRUE(cci_create_endpoint(NULL, 0, &b->ep, &fd) == CCI_SUCCESS);
        TRUE(cci_get_opt(b->ep, CCI_OPT_ENDPT_URI, &b->uri) == CCI_SUCCESS);
        side_count++;
        pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
        ask_for_ends(b);
        elapse(5 * MILLISECOND_NS);
        TRUE(cci_send(pair.ac, "last", 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        if (how == 0) {
            TRUE(cci_disconnect(pair.ac) == CCI_SUCCESS);
        } else {
            side_close(a);
            a->ep = NULL;
        }
        item.fd = fd;
        item.events = POLLIN;
        while (count_of(b, CCI_EVENT_DISCONNECT) == 0) {
            cci_event_t *event;
            TRUE(poll(&item, 1, (int)PATIENCE_MS) == 1);
            while (poll_side(b) > 0) {
            }
            while ((event = take(b, CCI_EVENT_RECV)) != NULL) {
                messages++;
                drop(event);
            }
        }
        TRUE(messages == 1);
        await_end(b, pair.bc, &context_b, CCI_SUCCESS);
        if (how == 0) {
            side_close(a);
        }
        side_close(b);
        side_count = 0;
    }
}

/* ---- a peer that dies, or stops ----------------------------------------------------------------------------------------- */

static void connects(int in, int out) {
    side_t *side;
    cci_connection_t *connection;
    cci_event_t *event;
    uint32_t caps;
    side_count = 0;
    TRUE(cci_setup(&test_setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS); /* its own */
    side = side_open();
    TRUE(cci_connect(side->ep, DOOR_URI, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    event = await(side, CCI_EVENT_CONNECT);
    connection = event->connect.connection;
    TRUE(event->connect.status == CCI_SUCCESS);
    drop(event);
    send_patiently(connection, "here", 4, 0, CCI_FLAG_SILENT);
    say(out, 'r');
    (void)hear(in);
    TRUE(cci_finalize() == CCI_SUCCESS);
    say(out, 'f');
    (void)hear(in);
}

static cci_connection_t *await_accepted(side_t *side) {
    cci_event_t *event = await(side, CCI_EVENT_CONNECT_REQUEST);
    cci_connection_t *connection;
    TRUE(cci_accept(event, &context_b) == CCI_SUCCESS);
    drop(event);
    event = await(side, CCI_EVENT_ACCEPT);
    connection = event->accept.connection;
    TRUE(event->accept.status == CCI_SUCCESS);
    drop(event);
    return connection;
}

enum { KILLED, STOPPED, FINALIZED };

static void a_process_that_ends_is_told_apart_from_one_that_is_killed_or_stopped(void **state) {
    static const cci_status_t status[] = {CCI_ERR_DISCONNECTED, CCI_ETIMEDOUT, CCI_SUCCESS};
    int how;
    (void)state;
    for (how = KILLED; how <= FINALIZED; how++) {
        child c = start(connects);
        side_t *server = side_open_at(NULL, DOOR);
        cci_connection_t *connection;
        unsigned int i;
        ask_for_ends(server);
        connection = await_accepted(server);
        drop(await(server, CCI_EVENT_RECV));
        TRUE(hear(c.from) == 'r');
        if (how == STOPPED) {
            stop_child(&c);
            set_timeout(connection, 100000);
        }
        for (i = 0; how != FINALIZED && i < PENDING; i++) {
            send_patiently(connection, "void", 4, i, 0);
        }
        if (how == KILLED) {
            kill_child(&c);
        } else if (how == FINALIZED) {
            say(c.to, 'f');
        }
        for (i = 0; how != FINALIZED && i < PENDING; i++) {
            await_send(server, connection, as_context(i), status[how]);
        }
        await_end(server, connection, &context_b, status[how]);
        TRUE(server->count == 0);
        if (how == STOPPED) {
            kill_child(&c);
        } else if (how == FINALIZED) {
            TRUE(hear(c.from) == 'f');
            say(c.to, 'q');
            TRUE(end(&c) == 0);
        }
        AWAIT(used(server->ep) == 0 && cci__list_empty(&inside(server->ep)->links.hot) &&
              cci__list_empty(&inside(server->ep)->links.cold));
        side_close(server);
        side_count = 0;
    }
}

/* ---- many -------------------------------------------------------------------------------------------------------------------- */

static uint32_t accepted, ended;

/* A server that serves whoever comes, and lets go of who leaves. */
static int serves_and_lets_go(side_t *side, cci_event_t *event) {
    (void)side;
    if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        TRUE(cci_accept(event, NULL) == CCI_SUCCESS);
    } else if (event->type == CCI_EVENT_DISCONNECT) {
        TRUE(event->disconnect.status == CCI_SUCCESS);
        TRUE(cci_disconnect(event->disconnect.connection) == CCI_SUCCESS);
        ended++;
    } else if (event->type == CCI_EVENT_ACCEPT) {
        accepted++;
    } else if (event->type != CCI_EVENT_RECV) {
        return 0;
    }
    drop(event);
    return 1;
}

static int takes_connections(side_t *side, cci_event_t *event) {
    cci_connection_t **next = (cci_connection_t **)side->user;
    if (event->type != CCI_EVENT_CONNECT) {
        return 0;
    }
    TRUE(event->connect.status == CCI_SUCCESS);
    *next++ = event->connect.connection;
    side->user = (void *)next;
    drop(event);
    return 1;
}

enum { AT_ONCE = 100 };

static void a_hundred_thousand_clients_leave_nothing_behind(void **state) {
    side_t *server = side_open_at(NULL, DOOR), *client = side_open();
    cci_connection_t *connection[AT_ONCE];
    uint32_t done = 0, i;
    size_t bytes = 0;
    (void)state;
    accepted = ended = 0;
    ask_for_ends(server);
    server->handler = serves_and_lets_go;
    client->handler = takes_connections;
    while (done < 100000) {
        client->user = (void *)connection;
        for (i = 0; i < AT_ONCE; i++) {
            TRUE(cci_connect(client->ep, DOOR_URI, "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
        }
        AWAIT(client->user == (void *)(connection + AT_ONCE));
        for (i = 0; i < AT_ONCE; i++) {
            send_patiently(connection[i], "hello", 5, 0, CCI_FLAG_SILENT);
            TRUE(cci_disconnect(connection[i]) == CCI_SUCCESS);
        }
        done += AT_ONCE;
        AWAIT(ended == done);
        TRUE(used(server->ep) == 0 && used(client->ep) == 0);
        if (done == 1000) {
            bytes = live_bytes;
        }
    }
    TRUE(live_bytes == bytes);
}

/* More connections end than there are events about ends. */
static void all_of_many_ends_are_told(void **state) {
    enum { COUNT = 3000, AT_HAND = 100 };
    cci_evq_event_t **last;
    static cci_connection_t *connection[COUNT];
    side_t *server = side_open_at(NULL, DOOR), *client = side_open();
    uint32_t i;
    (void)state;
    accepted = ended = 0;
    ask_for_ends(server);
    server->handler = serves_and_lets_go;
    client->handler = takes_connections;
    client->user = (void *)connection;
    for (i = 0; i < COUNT; i++) {
        AWAIT(cci_connect(client->ep, DOOR_URI, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    }
    AWAIT(client->user == (void *)(connection + COUNT) && accepted == COUNT);
    server->handler = NULL;
    last = &inside(server->ep)->base.evq.free_events[CCI_EVQ_CONTROL];
    for (i = 0; i < AT_HAND; i++) {
        TRUE(*last != NULL);
        last = &(*last)->next;
    }
    *last = NULL; /* there are no more */
    side_close(client);
    client->ep = NULL;
    AWAIT(server->count == AT_HAND); /* the others wait for these */
    server->handler = serves_and_lets_go;
    server->deaf = 1;
    for (i = 0; i < AT_HAND; i++) {
        TRUE(serves_and_lets_go(server, server->queue[i]));
    }
    server->count = 0;
    server->deaf = 0;
    AWAIT(ended == COUNT);
    TRUE(used(server->ep) == 0);
}

/* ---- what it costs --------------------------------------------------------------------------------------------------------- */

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void connect_many(side_t *client, side_t *server, cci_connection_t **mine, cci_connection_t **its, uint32_t count) {
    cci_event_t *event;
    uint32_t i;
    client->handler = takes_connections;
    client->user = (void *)mine;
    for (i = 0; i < count; i++) {
        TRUE(cci_connect(client->ep, DOOR_URI, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
        event = await(server, CCI_EVENT_CONNECT_REQUEST);
        TRUE(cci_accept(event, NULL) == CCI_SUCCESS);
        drop(event);
        event = await(server, CCI_EVENT_ACCEPT);
        its[i] = event->accept.connection;
        drop(event);
        AWAIT(client->user == (void *)(mine + i + 1));
    }
}

/* What `count` calls of cci_disconnect() cost, newest first, with one event taken between two of them, while each connection
 * has a message that waits and operations under way. */
static uint64_t cost_of_closing(uint32_t count) {
    cci_connection_t **mine = (cci_connection_t **)need(2 * count * sizeof *mine), **its = mine + count;
    side_t *server = side_open_at(NULL, DOOR), *client = side_open();
    uint32_t i, buffers = 65536;
    uint64_t took_ns;
    cci_event_t *event;
    TRUE(cci_set_opt(client->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers) == CCI_SUCCESS);
    TRUE(cci_set_opt(client->ep, CCI_OPT_ENDPT_SEND_BUF_COUNT, &buffers) == CCI_SUCCESS);
    connect_many(client, server, mine, its, count);
    client->deaf = 1;
    for (i = 0; i < count; i++) {
        while (cci_send(its[i], "waits", 5, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
            pump(client);
            pump(server);
        }
    }
    while (inside(client->ep)->base.evq.recv_out < count) {
        pump(client);
        pump(server);
    }
    for (i = 0; i < count; i++) {
        TRUE(cci_send(mine[i], "pending", 7, NULL, 0) == CCI_SUCCESS);
        TRUE(cci_send(mine[i], "pending", 7, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
    took_ns = cpu_ns();
    for (i = count; i-- > 0;) {
        TRUE(cci_disconnect(mine[i]) == CCI_SUCCESS);
        if (cci_get_event(client->ep, &event) == CCI_SUCCESS) {
            drop(event);
        }
    }
    took_ns = cpu_ns() - took_ns;
    side_close(client);
    side_close(server);
    side_count = 0;
    free((void *)mine);
    return took_ns;
}

static void closing_costs_the_same_for_each_connection_however_many_there_are(void **state) {
    int tries = 0;
    (void)state;
    while (cost_of_closing(16000) > 16 * cost_of_closing(2000)) { /* quadratic would be 64; other programs are seen, too */
        TRUE(++tries < 3);
    }
}

/* ---- a server that is busy ------------------------------------------------------------------------------------------------- */

static void a_busy_server_says_so_and_is_asked_again(void **state) {
    side_t *server = side_open_at(NULL, DOOR), *client = side_open();
    pair_t before = connect_sides(client, server, CCI_CONN_ATTR_RO);
    struct timeval soon = {0, 50000};
    cci_event_t *held[4], *event;
    uint32_t buffers = 4, i;
    (void)state;
    TRUE(cci_set_opt(server->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers) == CCI_SUCCESS);
    for (i = 0; i < 6; i++) {
        TRUE(cci_connect(client->ep, DOOR_URI, &i, sizeof i, CCI_CONN_ATTR_RO, as_context(i), 0, i == 4 ? &soon : NULL) ==
             CCI_SUCCESS);
    }
    for (i = 0; i < 4; i++) {
        held[i] = await(server, CCI_EVENT_CONNECT_REQUEST);
    }
    event = await(client, CCI_EVENT_CONNECT); /* it was told that it is to wait, and has waited */
    TRUE(event->connect.status == CCI_ETIMEDOUT && event->connect.context == as_context(4));
    drop(event);
    AWAIT(inside(server->ep)->refusals >= 2);
    TRUE(strstr(log_text, "have to wait") != NULL);
    send_patiently(before.bc, "others go on", 12, 0, CCI_FLAG_SILENT);
    drop(await(client, CCI_EVENT_RECV));
    for (i = 0; i < 4; i++) {
        TRUE(cci_reject(held[i]) == CCI_SUCCESS);
        drop(held[i]);
        event = await(client, CCI_EVENT_CONNECT);
        TRUE(event->connect.status == CCI_ECONNREFUSED);
        drop(event);
    }
    event = await(server, CCI_EVENT_CONNECT_REQUEST);
    TRUE(event->request.data_len == sizeof i && *(const uint32_t *)event->request.data_ptr == 5);
    TRUE(cci_accept(event, NULL) == CCI_SUCCESS);
    drop(event);
    event = await(client, CCI_EVENT_CONNECT);
    TRUE(event->connect.status == CCI_SUCCESS && event->connect.context == as_context(5));
    drop(event);
}

static void a_device_of_an_adapter_is_down_without_CCI_SISCI_ADAPTER(void **state) {
    cci_device_t *const *devices;
    uint32_t caps;
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    snprintf(config_text, sizeof config_text, "[d]\ntransport = sisci\nprovider = vendor\n");
    TRUE(cci_setup(&test_setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    TRUE(cci_get_devices(&devices) == CCI_SUCCESS && devices[0] != NULL && devices[0]->up == 0);
    TRUE(strstr(log_text, "compiled without CCI_SISCI_ADAPTER") != NULL);
}

#define END_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        END_TEST(the_mask_is_empty_and_takes_only_events_that_there_are),
        END_TEST(who_does_not_ask_is_told_nothing_and_who_closes_neither),
        END_TEST(two_who_close_at_once_are_told_nothing),
        END_TEST(an_end_that_was_not_taken_is_taken_back),
        END_TEST(what_is_pending_ends_at_once_though_the_peer_does_nothing_more),
        END_TEST(what_waits_for_room_ends_too),
        END_TEST(only_what_the_peer_took_before_is_a_success),
        END_TEST(what_the_peer_dropped_before_it_went_is_no_success),
        END_TEST(what_was_sent_before_comes_before_the_end),
        END_TEST(a_sleeper_is_woken_for_the_end),
        END_TEST(a_process_that_ends_is_told_apart_from_one_that_is_killed_or_stopped),
        END_TEST(a_hundred_thousand_clients_leave_nothing_behind),
        END_TEST(all_of_many_ends_are_told),
        END_TEST(closing_costs_the_same_for_each_connection_however_many_there_are),
        END_TEST(a_busy_server_says_so_and_is_asked_again),
        END_TEST(a_device_of_an_adapter_is_down_without_CCI_SISCI_ADAPTER),
    };
    return cmocka_run_group_tests_name("test_sisci_ends", tests, NULL, NULL);
}
