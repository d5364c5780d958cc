/* test_sleep.c - programs that sleep on the OS handle, and programs that call seldom: what wakes them, when, and how often.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Two endpoints on the simulated network, in virtual time. A sleeper is called when a datagram has arrived, when the library
 * made the OS handle readable, and when the deadline has passed for which it was armed, and never otherwise. It either takes
 * all events each time, as the manual tells it to, or one. A program that calls seldom has no handle: it is called at the
 * beats of a clock. Whenever a program has been called, nothing that time demands of its connections may be overdue, and before
 * it sleeps, the handle must be armed for all that is to come.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

#define SECOND UINT64_C(1000000000)
#define LATE_NS (2u << 14) /* two ticks of the timing wheel */
#define SIZE_BYTES 64u

enum style { TAKES_ALL, TAKES_ONE, HAS_A_BEAT };

typedef struct side {
    cci_endpoint_t *endpoint;
    sim_endpoint_t *link;
    cci_connection_t *connection;
    enum style style;
    uint64_t beat_ns, next_ns; /* of one that is called at the beats of a clock */
    int is_client, is_asleep, is_gone, echoes;
    uint32_t to_send;         /* requests that are to be made of replies */
    uint64_t asked_ns, slowest_ns;
    uint64_t sleeps, calls, arms, moves, flags, sent, received, completed, failed, timed_out, connected;
    uint64_t ended_ns; /* of the last completion, keepalive event or connect event */
    uint64_t work_ns;             /* that it takes over a request, after it has answered */
    cci_event_t *kept[512];       /* requests that it answers when it has taken all that wait */
    uint32_t kept_count, keeps;
    uint64_t oldest_ns, longest_ns; /* when the first answer that has not left was sent; the longest that one waited */
    int status;        /* of that */
} side_t;

static side_t sides[2];
static side_t *const client = &sides[0], *const server = &sides[1];
static cci_link_t link_table;
static cci_transport_t transport;
static const cci_transport_t *transports[2];
static uint64_t look_ns; /* since a look at the clock, at most */
static int is_silent; /* sends ask for no completion */
static int drops;     /* data packets that are to be lost; -1: everything is */
static uint64_t sent_ns[256];
static uint32_t sent_count; /* datagrams that were sent while drops is set */

/* ---- the link ------------------------------------------------------------------------------------------------------- */

static void counting_arm(void *link, int readable, uint64_t deadline_ns) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    side_t *side = endpoint == client->link ? client : server;
    side->arms++;
    side->flags += readable != endpoint->is_readable;
    if (deadline_ns != endpoint->wake_ns) {
        side->moves++;
        if (side->link != NULL && side->work_ns == 0) { /* who has begun to work is found slow a little later */
            assert_true(deadline_ns + look_ns > sim.now_ns); /* a look at the clock ago, it was to come */
            assert_true(deadline_ns < endpoint->wake_ns || endpoint->wake_ns <= sim.now_ns);
        }
    }
    sim_arm(link, readable, deadline_ns);
}

static int losing_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++) {
        int is_data = ((const uint8_t *)tx[i].piece[0].data)[1] == CCI__PKT_DATA;
        if (drops != 0 && link == client->link && sent_count < 256)
            sent_ns[sent_count++] = sim.now_ns;
        (link == client->link ? client : server)->sent++;
        if (is_data && link == server->link && server->oldest_ns != 0) {
            server->longest_ns = cci__max64(server->longest_ns, sim.now_ns - server->oldest_ns);
            server->oldest_ns = 0;
        }
        if (drops < 0 || (drops > 0 && is_data && link == client->link && drops-- > 0))
            continue;
        (void)sim_send(link, &tx[i], 1);
    }
    return count;
}

/* ---- two sides ------------------------------------------------------------------------------------------------------- */

static int begin(void **state) {
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    memset(sides, 0, sizeof sides);
    memset(&setup, 0, sizeof setup);
    sim_reset();
    sim.is_driven = 1;
    is_silent = drops = 0;
    look_ns = 10000;
    sent_count = 0;
    link_table = sim_link;
    link_table.arm = counting_arm;
    link_table.send = losing_send;
    transport = sim_transport;
    transport.link = &link_table;
    transports[0] = &transport;
    setup.transports = transports;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    return 0;
}

static int end(void **state) {
    (void)state;
    drops = 0;
    while (cci_finalize() == CCI_SUCCESS) {}
    return 0;
}

static void open_side(side_t *side, enum style style, uint64_t beat_ns) {
    cci_os_handle_t handle;
    side->style = style;
    side->beat_ns = beat_ns;
    side->is_client = side == client;
    assert_int_equal(cci_create_endpoint(NULL, 0, &side->endpoint, style == HAS_A_BEAT ? NULL : &handle), CCI_SUCCESS);
    side->link = sim.endpoints[sim.endpoint_count - 1];
    side->next_ns = sim.now_ns;
}

static void ask(side_t *side) {
    char message[SIZE_BYTES] = "";
    side->to_send--;
    side->asked_ns = sim.now_ns;
    assert_int_equal(cci_send(side->connection, message, SIZE_BYTES, NULL, is_silent ? CCI_FLAG_SILENT : 0), CCI_SUCCESS);
}

/* All messages have left in packets. */
static int is_all_sent(const side_t *side) {
    const cci__dgram_t *ep = (const cci__dgram_t *)(uintptr_t)side->endpoint;
    return cci__list_empty(&ep->soon) && cci__list_empty(&ep->ready);
}

static void work(const side_t *side);

static void answer(side_t *side, const cci_event_t *event) {
    assert_int_equal(cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL,
                              is_silent ? CCI_FLAG_SILENT : 0), CCI_SUCCESS);
    if (side->work_ns > 0) {
        if (side->oldest_ns == 0 && !is_all_sent(side)) side->oldest_ns = sim.now_ns;
        work(side);
    }
}

static void answer_kept(side_t *side) {
    uint32_t i;
    for (i = 0; i < side->kept_count; i++) {
        answer(side, side->kept[i]);
        assert_int_equal(cci_return_event(side->kept[i]), CCI_SUCCESS);
    }
    side->kept_count = 0;
}

static void take(side_t *side, cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        side->connection = event->accept.connection;
        side->connected++;
        break;
    case CCI_EVENT_CONNECT:
        side->connection = event->connect.connection;
        side->connected++;
        side->status = (int)event->connect.status;
        side->ended_ns = sim.now_ns;
        break;
    case CCI_EVENT_RECV:
        side->received++;
        if (side->is_client && sim.now_ns - side->asked_ns > side->slowest_ns) side->slowest_ns = sim.now_ns - side->asked_ns;
        if (side->is_client && side->to_send > 0) ask(side);
        if (side->echoes && side->keeps) {
            side->kept[side->kept_count++] = event;
            return;
        }
        if (side->echoes) answer(side, event);
        break;
    case CCI_EVENT_SEND:
        side->completed += event->send.status == CCI_SUCCESS;
        side->failed += event->send.status != CCI_SUCCESS;
        side->status = (int)event->send.status;
        side->ended_ns = sim.now_ns;
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        side->timed_out++;
        side->ended_ns = sim.now_ns;
        break;
    default:
        break;
    }
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

/* ---- what time demands ------------------------------------------------------------------------------------------------ */

/* The earliest time at which something must be done for a connection of the endpoint, by what the layers say. */
static uint64_t earliest_ns(const side_t *side) {
    cci__dgram_t *ep = (cci__dgram_t *)(uintptr_t)side->endpoint;
    uint64_t at = UINT64_MAX;
    uint32_t i;
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        const cci__dconn_t *conn = (const cci__dconn_t *)(const void *)cci_conn_at(&ep->base.conns, i);
        if (conn->hot) {
            at = cci__min64(at, cci_rel_deadline(&conn->hot->rel));
            if (conn->hot->reader)
                at = cci__min64(at, cci_rma_deadline(conn->hot->reader));
        }
        if (conn->conn.state != CCI_CONN_FREE && (conn->conn.state != CCI_CONN_OPEN || conn->conn.step.confirming || conn->conn.keepalive_us))
            at = cci__min64(at, conn->conn.deadline_ns);
    }
    return at;
}

/* A call is over: all that was due is done. */
static void assert_nothing_is_overdue(const side_t *side) {
    assert_true(earliest_ns(side) == UINT64_MAX || earliest_ns(side) + LATE_NS > sim.now_ns);
}

static void assert_it_may_sleep(const side_t *side) {
    uint64_t at = earliest_ns(side);
    assert_true(side->link->is_readable || side->link->wake_ns <= sim.now_ns || side->link->wake_ns <= at ||
                side->link->wake_ns - at <= LATE_NS);
}

/* ---- time --------------------------------------------------------------------------------------------------------------- */

/* When a side is called next, if nothing arrives. */
static uint64_t wakes_ns(const side_t *side) {
    if (side->is_gone || side->endpoint == NULL) return UINT64_MAX;
    if (side->style == HAS_A_BEAT) return side->next_ns;
    if (!side->is_asleep || side->link->is_readable || side->link->first != NULL) return sim.now_ns;
    return side->link->wake_ns;
}

static void call(side_t *side) {
    cci_event_t *event;
    int status;
    side->is_asleep = 0;
    for (;;) {
        do {
            side->calls++;
            status = cci_get_event(side->endpoint, &event);
            if (status == CCI_SUCCESS) take(side, event);
        } while (status == CCI_SUCCESS && side->style != TAKES_ONE);
        if (side->kept_count == 0) break;
        answer_kept(side);
    }
    if (side->style == HAS_A_BEAT) {
        assert_nothing_is_overdue(side);
        while (side->next_ns <= sim.now_ns) side->next_ns += side->beat_ns;
        return;
    }
    assert_it_may_sleep(side);
    side->is_asleep = 1;
    side->sleeps++;
}

/* It works, and its peer goes on meanwhile. */
static void work(const side_t *side) {
    side_t *peer = side == client ? server : client;
    uint64_t end_ns = sim.now_ns + side->work_ns;
    while (sim.now_ns < end_ns) {
        sim_advance_to(cci__min64(end_ns, cci__min64(wakes_ns(peer), sim_next_arrival_ns())));
        if (wakes_ns(peer) <= sim.now_ns) call(peer);
    }
}

/* Until a count is reached; or time is, when there is none. */
static void run_until(const uint64_t *count, uint64_t least, uint64_t end_ns) {
    uint64_t turns = 0;
    while (count == NULL || *count < least) {
        side_t *next = wakes_ns(client) <= wakes_ns(server) ? client : server;
        uint64_t at = cci__min64(wakes_ns(next), sim_next_arrival_ns());
        if (sim.now_ns >= end_ns) break;
        assert_true(++turns < 100000000);
        assert_true(at != UINT64_MAX || count == NULL); /* both would sleep for ever */
        sim_advance_to(cci__min64(at, end_ns));
        if (wakes_ns(client) <= sim.now_ns) call(client);
        if (wakes_ns(server) <= sim.now_ns) call(server);
    }
    if (count != NULL) assert_true(*count >= least);
}

static void connect_them(void) {
    char *uri;
    assert_int_equal(cci_get_opt(server->endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client->endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    run_until(&client->connected, 1, UINT64_MAX);
    run_until(&server->connected, 1, UINT64_MAX);
    assert_int_equal(client->status, CCI_SUCCESS);
}

static void forget_counts(void) {
    int i;
    for (i = 0; i < 2; i++) {
        sides[i].sleeps = sides[i].calls = sides[i].arms = sides[i].moves = sides[i].flags = 0;
        sides[i].sent = sides[i].received = sides[i].completed = sides[i].slowest_ns = 0;
    }
}

/* Round trips with `depth` requests in flight. */
static void round_trips(uint32_t depth, uint32_t count) {
    uint32_t i;
    server->echoes = 1;
    run_until(NULL, 0, sim.now_ns + SECOND / 10);
    forget_counts();
    client->to_send = count;
    for (i = 0; i < depth; i++)
        ask(client);
    run_until(&client->received, count, UINT64_MAX);
    if (!is_silent) run_until(&client->completed, count, UINT64_MAX);
}

/* ---- sleepers -------------------------------------------------------------------------------------------------------------- */

static void assert_few_arms(const side_t *side, uint32_t count) {
    print_message("%s: %u round trips, %u sleeps, %u calls, %u arms: %u deadlines, %u flags; %u datagrams\n",
                  side == client ? "client" : "server", count, (unsigned)side->sleeps, (unsigned)side->calls,
                  (unsigned)side->arms, (unsigned)side->moves, (unsigned)side->flags, (unsigned)side->sent);
    assert_true(side->moves <= side->sleeps);
    assert_true(side->moves <= 100 + count / 20);
    assert_true(side->sent <= count + count / 5 + 100);
    assert_true(side->arms <= 2 * side->sleeps + 2);
    assert_true(side->sleeps <= count + count / 10 + 100);
}

static void sleepers_with(uint32_t depth, uint32_t count) {
    open_side(client, TAKES_ALL, 0);
    open_side(server, TAKES_ALL, 0);
    connect_them();
    round_trips(depth, count);
    assert_few_arms(client, count);
    assert_few_arms(server, count);
}

static void the_handle_of_sleepers_is_armed_seldom_with_one_request_in_flight(void **state) {
    (void)state;
    is_silent = 1;
    sleepers_with(1, 20000);
}

static void the_handle_of_sleepers_is_armed_seldom_with_completions(void **state) {
    (void)state;
    sleepers_with(1, 20000);
}

static void the_handle_of_sleepers_is_armed_seldom_with_16_in_flight(void **state) {
    (void)state;
    is_silent = 1;
    sleepers_with(16, 20000);
}

/* However long the way: also what is armed when an armed deadline has passed is not what was due before, so a deadline
 * is armed once for each that passes, and what may be lost is due a millisecond after it was sent. */
static void the_handle_of_sleepers_is_armed_seldom_on_every_way(void **state) {
    uint32_t i;
    for (i = 0; i < 10; i++) {
        uint64_t took_ns;
        if (i > 0) assert_int_equal(end(state) + begin(state), 0);
        is_silent = 1;
        sim.delay_ns = 2000 + 10000 * i;
        took_ns = sim.now_ns;
        sleepers_with(16, 20000);
        took_ns = sim.now_ns - took_ns - SECOND / 10;
        assert_true(client->moves <= took_ns / CCI__MS + 3 && server->moves <= took_ns / CCI__MS + 3);
    }
}

static void the_handle_of_sleepers_is_armed_seldom_with_1000_in_flight(void **state) {
    (void)state;
    is_silent = 1;
    sleepers_with(1000, 20000);
}

/* Idle connections cost a sleeper no more than a look at the device once a second. */
static void a_sleeper_with_nothing_to_do_sleeps(void **state) {
    (void)state;
    open_side(client, TAKES_ALL, 0);
    open_side(server, TAKES_ALL, 0);
    connect_them();
    round_trips(1, 100);
    run_until(NULL, 0, sim.now_ns + SECOND);
    forget_counts();
    run_until(NULL, 0, sim.now_ns + 100 * SECOND);
    assert_true(client->sleeps <= 210 && server->sleeps <= 210);
    assert_true(client->moves <= client->sleeps && server->moves <= server->sleeps);
}

/* The completion waits for the acknowledgement of a server that says nothing, which must not wait for the next request. */
static void a_sleeper_that_takes_one_event_each_time_misses_nothing(void **state) {
    uint32_t i;
    (void)state;
    open_side(client, TAKES_ONE, 0);
    open_side(server, TAKES_ONE, 0);
    connect_them();
    round_trips(1, 2000);
    assert_true(client->slowest_ns < 10 * sim.delay_ns);
    server->echoes = 0;
    for (i = 0; i < 2000; i++) {
        uint64_t from_ns = sim.now_ns;
        forget_counts();
        client->to_send = 1;
        ask(client);
        run_until(&client->completed, 1, UINT64_MAX);
        assert_true(sim.now_ns - from_ns < 10 * sim.delay_ns + 100000);
    }
    server->echoes = 1;
    round_trips(16, 5000);
}

/* A program that sends outside its loop and goes back to sleep. */
static void what_was_sent_last_before_sleeping_leaves_in_time(void **state) {
    uint32_t i;
    (void)state;
    open_side(client, TAKES_ALL, 0);
    open_side(server, TAKES_ALL, 0);
    connect_them();
    for (i = 0; i < 500; i++) {
        uint64_t from_ns;
        forget_counts();
        client->to_send = 5;
        from_ns = sim.now_ns;
        while (client->to_send > 0) ask(client);
        run_until(&client->completed, 5, UINT64_MAX);
        assert_true(sim.now_ns - from_ns < 20 * sim.delay_ns + 200000);
        run_until(NULL, 0, sim.now_ns + (i % 7) * 300000);
    }
}

/* A program that sends much looks for events on the way, and finds none. It could sleep then, but what it has sent does not
 * leave in as many datagrams as there were looks: acknowledgements are on their way, which would wake it. */
static void much_that_a_sleeper_sends_leaves_in_few_datagrams(void **state) {
    uint32_t i;
    (void)state;
    is_silent = 1;
    open_side(client, TAKES_ALL, 0);
    open_side(server, TAKES_ALL, 0);
    connect_them();
    round_trips(1, 1000);
    server->echoes = 0;
    for (i = 0; i < 100; i++) {
        uint64_t from_ns;
        run_until(NULL, 0, sim.now_ns + SECOND / 100);
        forget_counts();
        from_ns = sim.now_ns;
        for (client->to_send = 1000; client->to_send > 0;) {
            ask(client);
            if (client->to_send % 50 == 0) call(client); /* 20 times */
        }
        assert_true(client->sent <= 12);
        run_until(&server->received, 1000, UINT64_MAX);
        assert_true(sim.now_ns - from_ns < 20 * sim.delay_ns + 200000);
    }
}

/* A program is slow when it takes long itself. What the link takes to send and to receive is not its time: else each message
 * would leave alone, because the one before it took the link so long to send alone. */
static void a_link_that_takes_long_makes_no_program_slow(void **state) {
    uint32_t i, turn;
    (void)state;
    is_silent = 1;
    open_side(client, TAKES_ALL, 0);
    open_side(server, TAKES_ALL, 0);
    connect_them();
    server->echoes = 0;
    sim.tick_ns = 25000;
    look_ns = 10 * sim.tick_ns;
    for (turn = 0; turn < 10; turn++) {
        client->to_send = 1006;
        for (i = 0; i < 6; i++) { /* the program is slow: once that is known, each message leaves alone */
            forget_counts();
            ask(client);
            sim.now_ns += SECOND / 200;
            if (i == 2) call(client);
            if (i > 2) assert_int_equal(client->sent, 1);
        }
        run_until(NULL, 0, sim.now_ns + SECOND / 100);
        forget_counts();
        while (client->to_send > 0) {
            ask(client);
            sim.now_ns += 200;
            if (client->to_send % 50 == 0) call(client);
        }
        assert_true(client->sent <= 100);
        run_until(&server->received, 1000, UINT64_MAX);
    }
    round_trips(16, 20000);
    print_message("%u datagrams for 20000 round trips, 16 in flight\n", (unsigned)client->sent);
    assert_true(client->sent <= 20000 / 8);
}

static void sleepers_on_a_line_that_loses(enum style style) {
    sim.loss_per_mille = 100;
    sim.reorder_per_mille = 100;
    sim.jitter_ns = 20000;
    open_side(client, style, 0);
    open_side(server, style, 0);
    connect_them();
    round_trips(1, 1000);
    round_trips(16, 5000);
    round_trips(300, 5000);
}

static void sleepers_on_a_line_that_loses_miss_no_deadline(void **state) {
    (void)state;
    sleepers_on_a_line_that_loses(TAKES_ALL);
}

static void sleepers_that_take_one_event_on_a_line_that_loses_miss_no_deadline(void **state) {
    (void)state;
    sleepers_on_a_line_that_loses(TAKES_ONE);
}

/* A program works for a while on each request, and more of them wait: its answers do not wait for the end of all that work. */
static void answers_of_a_program_that_works(enum style style, uint64_t work_ns, uint64_t longest_ns) {
    uint32_t depths[] = {1, 16, 300}, i;
    open_side(client, TAKES_ALL, 0);
    open_side(server, style, SECOND / 100000);
    connect_them();
    round_trips(16, 200);
    server->work_ns = work_ns;
    for (i = 0; i < 3; i++) {
        round_trips(depths[i], 1000); /* it gets used to the work */
        server->oldest_ns = server->longest_ns = 0;
        round_trips(depths[i], 1000);
        print_message("%u in flight, %u us of work: an answer left after %u us at most\n", depths[i],
                      (unsigned)(work_ns / 1000), (unsigned)(server->longest_ns / 1000));
        assert_true(server->longest_ns <= longest_ns);
    }
}

static void answers_leave_while_a_program_works_that_has_taken_all_requests_before(void **state) {
    (void)state;
    server->keeps = 1;
    answers_of_a_program_that_works(TAKES_ALL, SECOND / 1000, 2 * SECOND / 1000);
    (void)end(NULL), (void)begin(NULL);
    server->keeps = 1;
    answers_of_a_program_that_works(HAS_A_BEAT, SECOND / 100, 2 * SECOND / 100);
}

static void answers_of_a_sleeper_leave_while_it_works(void **state) {
    (void)state;
    answers_of_a_program_that_works(TAKES_ALL, SECOND / 1000, 2 * SECOND / 1000);
    (void)end(NULL), (void)begin(NULL);
    answers_of_a_program_that_works(TAKES_ALL, SECOND / 10, 2 * SECOND / 10);
    (void)end(NULL), (void)begin(NULL);
    answers_of_a_program_that_works(TAKES_ALL, SECOND / 50000, 4 * SECOND / 1000);
}

static void answers_of_a_program_that_polls_leave_while_it_works(void **state) {
    (void)state;
    answers_of_a_program_that_works(HAS_A_BEAT, SECOND / 1000, 2 * SECOND / 1000);
    (void)end(NULL), (void)begin(NULL);
    answers_of_a_program_that_works(HAS_A_BEAT, SECOND / 10, 2 * SECOND / 10);
    (void)end(NULL), (void)begin(NULL);
    answers_of_a_program_that_works(HAS_A_BEAT, SECOND / 50000, 4 * SECOND / 1000);
}

/* ---- programs that call seldom ------------------------------------------------------------------------------------------ */

static const uint64_t beats_ns[] = {SECOND / 60, SECOND / 10};

/* The server sleeps; the client has a beat. A new pair for each. */
static void open_with_a_beat(uint64_t beat_ns) {
    (void)end(NULL);
    (void)begin(NULL);
    open_side(client, HAS_A_BEAT, beat_ns);
    open_side(server, TAKES_ALL, 0);
}

static void a_lost_message_is_repeated_at_the_first_beat_after_its_time(void **state) {
    uint32_t b, i;
    (void)state;
    for (b = 0; b < 2; b++) {
        open_with_a_beat(beats_ns[b]);
        connect_them();
        for (i = 0; i < 20; i++) {
            uint64_t received = server->received, due_ns;
            run_until(NULL, 0, client->next_ns + 1000 * (i + 1)); /* somewhere between two beats */
            drops = 1;
            sent_count = 0;
            client->to_send = 1;
            ask(client);
            while (sent_count == 0) run_until(NULL, 0, client->next_ns + 1000);
            due_ns = earliest_ns(client);
            drops = -1; /* so that what follows is noted */
            while (sent_count == 1) run_until(NULL, 0, client->next_ns + 1000);
            assert_true(sent_ns[1] >= due_ns && sent_ns[1] <= due_ns + beats_ns[b] + LATE_NS);
            drops = 0;
            run_until(&server->received, received + 1, UINT64_MAX);
            run_until(&client->completed, client->completed + 1, UINT64_MAX);
        }
    }
}

static void a_request_is_repeated_at_the_first_beat_after_its_time(void **state) {
    const struct timeval patience = {5, 0};
    uint32_t b, i;
    (void)state;
    for (b = 0; b < 2; b++) {
        char *uri;
        uint64_t due_ns, begun_ns;
        open_with_a_beat(beats_ns[b]);
        assert_int_equal(cci_get_opt(server->endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
        drops = -1;
        begun_ns = sim.now_ns;
        assert_int_equal(cci_connect(client->endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), CCI_SUCCESS);
        free(uri);
        run_until(&client->connected, 1, UINT64_MAX);
        assert_int_equal(client->status, CCI_ETIMEDOUT);
        assert_true(client->ended_ns - begun_ns >= 5 * SECOND);
        assert_true(client->ended_ns - begun_ns <= 5 * SECOND + beats_ns[b] + LATE_NS);
        assert_true(sent_count >= 4);
        for (i = 1; i < sent_count; i++) {
            due_ns = sent_ns[i - 1] + cci_conn_retry_ns((uint8_t)(i - 1));
            assert_true(sent_ns[i] <= due_ns + beats_ns[b] + LATE_NS);
        }
    }
}

static void a_silent_peer_is_told_at_the_first_beat_after_its_time(void **state) {
    uint32_t b, period_us = 500000;
    (void)state;
    for (b = 0; b < 2; b++) {
        uint64_t from_ns;
        open_with_a_beat(beats_ns[b]);
        connect_them();
        run_until(NULL, 0, sim.now_ns + SECOND);
        server->is_gone = 1;
        drops = -1;
        from_ns = sim.now_ns;
        assert_int_equal(cci_set_opt(client->connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &period_us), CCI_SUCCESS);
        run_until(&client->timed_out, 1, UINT64_MAX);
        assert_true(client->ended_ns - from_ns <= 2 * (uint64_t)period_us * 1000 + 2 * beats_ns[b] + 2 * LATE_NS);
    }
}

static void a_send_that_nobody_acknowledges_ends_at_the_first_beat_after_its_time(void **state) {
    uint32_t b, timeout_us = 1000000;
    (void)state;
    for (b = 0; b < 2; b++) {
        uint64_t from_ns;
        open_with_a_beat(beats_ns[b]);
        connect_them();
        run_until(NULL, 0, sim.now_ns + SECOND + 1234567);
        assert_int_equal(cci_set_opt(client->connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
        server->is_gone = 1;
        client->to_send = 1;
        from_ns = sim.now_ns;
        ask(client);
        run_until(&client->failed, 1, UINT64_MAX);
        assert_int_equal(client->status, CCI_ETIMEDOUT);
        assert_true(client->ended_ns - from_ns >= SECOND);
        assert_true(client->ended_ns - from_ns <= SECOND + beats_ns[b] + LATE_NS);
    }
}

/* Time-outs are counted from the send, not from the last call before it. */
static void sends_behind_others_have_all_of_their_time(void **state) {
    uint32_t b, i, timeout_us = 1000000;
    (void)state;
    for (b = 0; b < 2; b++) {
        uint64_t from_ns;
        open_with_a_beat(beats_ns[b]);
        connect_them();
        assert_int_equal(cci_set_opt(client->connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
        server->is_gone = 1;
        for (i = 0; i < 3; i++) {
            run_until(NULL, 0, client->next_ns + beats_ns[b] - 1000);
            client->to_send = 1;
            from_ns = sim.now_ns;
            ask(client);
        }
        run_until(&client->failed, 1, UINT64_MAX);
        assert_true(client->ended_ns - from_ns >= SECOND - 3 * beats_ns[b]);
    }
}

/* A program polls while it loads, and the library has measured a short path then. Later it sends several messages at each beat,
 * and looks for events: they leave at that beat, though each round trip seems to last one. */
static void what_is_sent_at_beats_leaves_soon_though_the_program_has_polled_before(void **state) {
    uint32_t b, i, beat;
    static char message[1000];
    (void)state;
    for (b = 0; b < 2; b++) {
        open_with_a_beat(SECOND / 100000);
        connect_them();
        round_trips(1, 1000);
        server->echoes = 0;
        client->beat_ns = beats_ns[b];
        for (beat = 1; beat <= 100; beat++) {
            for (i = 0; i < 8; i++)
                assert_int_equal(cci_send(client->connection, message, sizeof message, NULL, 0), CCI_SUCCESS);
            call(client);
            run_until(NULL, 0, client->next_ns);
            if (beat == 10) forget_counts(); /* the window has grown */
        }
        print_message("%u a second: %u of 720 messages were complete at the beat after\n", (unsigned)(SECOND / beats_ns[b]),
                      (unsigned)client->completed);
        assert_true(client->completed >= 700);
    }
}

static void a_server_that_calls_seldom_acknowledges_at_the_next_beat(void **state) {
    uint32_t b, i;
    (void)state;
    for (b = 0; b < 2; b++) {
        (void)end(NULL);
        (void)begin(NULL);
        open_side(client, TAKES_ALL, 0);
        open_side(server, HAS_A_BEAT, beats_ns[b]);
        connect_them();
        for (i = 0; i < 20; i++) {
            uint64_t completed = client->completed, from_ns;
            run_until(NULL, 0, sim.now_ns + 3 * beats_ns[b] + 777777);
            client->to_send = 1;
            from_ns = sim.now_ns;
            ask(client);
            run_until(&client->completed, completed + 1, UINT64_MAX);
            assert_true(sim.now_ns - from_ns <= 2 * beats_ns[b] + SECOND / 1000); /* the first takes it, the second answers */
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_handle_of_sleepers_is_armed_seldom_with_one_request_in_flight),
        TEST(the_handle_of_sleepers_is_armed_seldom_with_completions),
        TEST(the_handle_of_sleepers_is_armed_seldom_with_16_in_flight),
        TEST(the_handle_of_sleepers_is_armed_seldom_on_every_way),
        TEST(the_handle_of_sleepers_is_armed_seldom_with_1000_in_flight),
        TEST(a_sleeper_with_nothing_to_do_sleeps),
        TEST(a_sleeper_that_takes_one_event_each_time_misses_nothing),
        TEST(what_was_sent_last_before_sleeping_leaves_in_time),
        TEST(much_that_a_sleeper_sends_leaves_in_few_datagrams),
        TEST(a_link_that_takes_long_makes_no_program_slow),
        TEST(sleepers_on_a_line_that_loses_miss_no_deadline),
        TEST(sleepers_that_take_one_event_on_a_line_that_loses_miss_no_deadline),
        TEST(answers_of_a_sleeper_leave_while_it_works),
        TEST(answers_leave_while_a_program_works_that_has_taken_all_requests_before),
        TEST(answers_of_a_program_that_polls_leave_while_it_works),
        TEST(a_lost_message_is_repeated_at_the_first_beat_after_its_time),
        TEST(a_request_is_repeated_at_the_first_beat_after_its_time),
        TEST(a_silent_peer_is_told_at_the_first_beat_after_its_time),
        TEST(a_send_that_nobody_acknowledges_ends_at_the_first_beat_after_its_time),
        TEST(sends_behind_others_have_all_of_their_time),
        TEST(what_is_sent_at_beats_leaves_soon_though_the_program_has_polled_before),
        TEST(a_server_that_calls_seldom_acknowledges_at_the_next_beat),
    };
    return cmocka_run_group_tests_name("sleep", tests, NULL, NULL);
}
