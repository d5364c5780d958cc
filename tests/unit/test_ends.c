/* test_ends.c - how connections end, seen from both sides.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server on the simulated network, with 1 ms each way. What they send passes through route(), which counts
 * the packets by type, notes when each CLOSE left, and loses those of a type that the test names.
 *
 *     test_ends [CYCLES]     so many connections come and go in the last test; 10,000,000 in the step ends-many
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/sim.h"

/* The library's work is counted in pieces of code without a branch, if the compiler calls this at each: gcc and clang do, with
 * -fsanitize-coverage=trace-pc -DENDS_COUNTS_WORK. */
static uint64_t work;
static int work_is_counted;
#ifdef ENDS_COUNTS_WORK
#include "tests/support/counted.h"

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
    work += (uint64_t)work_is_counted;
}
#endif

#define TYPES 16
#define MS UINT64_C(1000000)
#define ROUND_TRIP_NS (2 * MS)
#define PENDING 20

static cci_endpoint_t *client, *server;
static cci_connection_t *at_client, *at_server; /* the newest connection */
static cci_connection_t **of_server;            /* all */
static uint32_t of_server_count;
static uint32_t of_type[TYPES]; /* packets that were sent */
static uint32_t lose[TYPES];    /* so many of a type are lost, the next ones */
static uint8_t kept[TYPES][256]; /* the last of each type */
static uint32_t kept_length[TYPES];
static uint32_t most_at_once;   /* CLOSE packets in one millisecond */
static uint64_t window_ns;
static uint32_t in_window;
static uint32_t blocks;
static int all_fail; /* there is no memory */
static uint32_t warnings;
static uint32_t cycles = 100000;
static char asked_by[64]; /* peer_uri of the last request */

static struct seen {
    uint32_t received, received_after_end, sent, failed, accepted_failed, connected, refused, ends, keepalives;
    int send_status, end_status;
    uint64_t end_ns, failed_ns;
    cci_connection_t *end_connection;
    void *end_context;
} seen;

static void count_close(void) {
    if (sim.now_ns - window_ns >= MS) {
        window_ns = sim.now_ns;
        in_window = 0;
    }
    if (++in_window > most_at_once)
        most_at_once = in_window;
}

static void route(const sim_datagram_t *datagram) {
    uint8_t type = datagram->length > 1 && datagram->bytes[1] < TYPES ? datagram->bytes[1] : 0;
    of_type[type]++;
    if (type == CCI__PKT_CLOSE)
        count_close();
    kept_length[type] = datagram->length < sizeof kept[0] ? datagram->length : (uint32_t)sizeof kept[0];
    memcpy(kept[type], datagram->bytes, kept_length[type]);
    if (lose[type] > 0) {
        lose[type]--;
        return;
    }
    sim_put(&datagram->from, &datagram->to, datagram);
}

static void *counting_alloc(void *user, size_t size_bytes) {
    (void)user;
    if (all_fail)
        return NULL;
    blocks++;
    return malloc(size_bytes);
}

static void counting_release(void *user, void *pointer) {
    (void)user;
    blocks -= pointer != NULL;
    free(pointer);
}

static void no_log(void *user, int level, const char *text) {
    (void)user;
    (void)text;
    warnings += level == CCI_LOG_WARN;
}

static cci__dgram_t *dgram_of(cci_endpoint_t *endpoint) {
    return (cci__dgram_t *)(void *)endpoint;
}

static cci__dconn_t *dconn_of(cci_connection_t *connection) {
    return (cci__dconn_t *)(void *)connection;
}

static uint32_t number_of(cci_endpoint_t *endpoint) {
    return ((sim_endpoint_t *)dgram_of(endpoint)->base.handle)->number;
}

static uint32_t used(cci_endpoint_t *endpoint) {
    return dgram_of(endpoint)->base.conns.used;
}

static void on_connect(cci_event_t *event) {
    if (event->connect.status != CCI_SUCCESS) {
        seen.refused++;
        return;
    }
    at_client = event->connect.connection;
    seen.connected++;
}

static void on_accept(cci_event_t *event) {
    if (event->accept.status != CCI_SUCCESS) {
        seen.accepted_failed++;
        return;
    }
    at_server = event->accept.connection;
    of_server = realloc(of_server, (of_server_count + 1) * sizeof *of_server);
    assert_non_null(of_server);
    of_server[of_server_count++] = at_server;
}

static void on_send(cci_event_t *event) {
    seen.sent++;
    if (event->send.status == CCI_SUCCESS)
        return;
    seen.failed++;
    seen.send_status = (int)event->send.status;
    seen.failed_ns = sim.now_ns;
    assert_int_equal(seen.ends, 0); /* the end comes after all that was pending */
}

static void on_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        snprintf(asked_by, sizeof asked_by, "%s", event->request.peer_uri ? event->request.peer_uri : "nobody");
        assert_int_equal(cci_accept(event, (void *)0x77), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        on_accept(event);
        break;
    case CCI_EVENT_CONNECT:
        on_connect(event);
        break;
    case CCI_EVENT_RECV:
        seen.received++;
        seen.received_after_end += seen.ends + seen.keepalives > 0;
        break;
    case CCI_EVENT_SEND:
        on_send(event);
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        seen.keepalives++;
        break;
    case CCI_EVENT_DISCONNECT:
        seen.ends++;
        seen.end_status = (int)event->disconnect.status;
        seen.end_ns = sim.now_ns;
        seen.end_connection = event->disconnect.connection;
        seen.end_context = event->disconnect.context;
        break;
    default:
        break;
    }
}

static void serve(cci_endpoint_t *endpoint) {
    cci_event_t *event;
    while (endpoint && cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        on_event(event);
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void run_for(uint64_t time_ns) {
    uint64_t until_ns = sim.now_ns + time_ns;
    while (sim.now_ns < until_ns) {
        serve(client);
        serve(server);
    }
}

static void serve_both(void) {
    serve(server);
}

static void let_server_work(uint64_t time_ns) {
    cci__dgram_t *ep = dgram_of(server);
    sim_advance_to(sim.now_ns + time_ns);
    cci__dgram_lock(ep);
    cci__dgram_pump(ep, 1, CCI__DGRAM_BATCH_RX);
    cci__dgram_unlock(ep);
}

static void set_mask(cci_endpoint_t *endpoint) {
    uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    assert_int_equal(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
}

static void start_connect(cci_conn_attribute_t attribute) {
    char *uri;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
}

static void connect_many(uint32_t count) {
    uint32_t i, rounds, wanted = of_server_count + count;
    for (i = 0; i < count; i++) {
        start_connect(CCI_CONN_ATTR_RO);
        if (i % 64 == 63)
            run_for(ROUND_TRIP_NS);
    }
    for (rounds = 0; rounds < 100000 && of_server_count < wanted; rounds++)
        run_for(MS);
    assert_int_equal(of_server_count, wanted);
    run_for(100 * MS);
}

static void connect_both(cci_conn_attribute_t attribute) {
    uint32_t rounds, wanted = of_server_count + 1;
    start_connect(attribute);
    for (rounds = 0; rounds < 100000 && of_server_count < wanted; rounds++)
        run_for(MS);
    assert_int_equal(of_server_count, wanted);
    run_for(100 * MS);
}

static int begin(void **state) {
    static const cci_transport_t *transports[2];
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    sim_reset();
    sim.delay_ns = MS;
    sim_route = route;
    memset(&seen, 0, sizeof seen);
    memset(of_type, 0, sizeof of_type);
    memset(lose, 0, sizeof lose);
    memset(kept_length, 0, sizeof kept_length);
    most_at_once = in_window = of_server_count = blocks = 0;
    window_ns = 0;
    all_fail = 0;
    warnings = 0;
    at_client = at_server = NULL;
    transports[0] = &sim_transport;
    memset(&setup, 0, sizeof setup);
    setup.alloc = counting_alloc;
    setup.release = counting_release;
    setup.log = no_log;
    setup.transports = transports;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    return 0;
}

static void destroy(cci_endpoint_t **endpoint) {
    assert_int_equal(cci_destroy_endpoint(*endpoint), CCI_SUCCESS);
    *endpoint = NULL;
}

static int end(void **state) {
    (void)state;
    free(of_server);
    of_server = NULL;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(blocks, 0);
    client = server = NULL;
    return 0;
}

/* The server has messages under way that the client's program will never see. */
static void leave_pending(void) {
    static const uint8_t bytes[1000];
    int i;
    for (i = 0; i < PENDING; i++)
        assert_int_equal(cci_send(at_server, bytes, sizeof bytes, NULL, 0), CCI_SUCCESS);
}

/* ---- the peer is told ------------------------------------------------------------------------------------------------- */

static void what_a_peer_had_pending_ends_within_a_round_trip_of_a_disconnect(void **state) {
    uint64_t closed_ns;
    (void)state;
    connect_both(CCI_CONN_ATTR_RO);
    lose[CCI__PKT_DATA] = 1000000;
    leave_pending();
    serve(server);
    closed_ns = sim.now_ns;
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(2 * ROUND_TRIP_NS);
    assert_int_equal(seen.failed, PENDING);
    assert_int_equal(seen.send_status, CCI_ERR_DISCONNECTED);
    assert_true(seen.failed_ns - closed_ns < ROUND_TRIP_NS);
    assert_int_equal(cci_send(at_server, "x", 1, NULL, 0), CCI_ERR_DISCONNECTED);
    assert_int_equal(seen.ends, 0); /* nobody asked for the event */
    assert_int_equal(used(client), 0);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    assert_int_equal(used(server), 0); /* the peer has closed before: there is nobody to tell */
    assert_int_equal(of_type[CCI__PKT_CLOSE], 1);
    assert_int_equal(of_type[CCI__PKT_CLOSED], 1);
    assert_int_equal(of_type[CCI__PKT_RESET], 0);
}

static void the_event_comes_once_with_the_connection_and_its_context(void **state) {
    uint32_t mask = 0;
    (void)state;
    set_mask(server);
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(mask, 1u << CCI_EVENT_DISCONNECT);
    mask = 1u << CCI_EVENT_RECV;
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_EINVAL);
    connect_both(CCI_CONN_ATTR_RU);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_SUCCESS);
    assert_ptr_equal(seen.end_connection, at_server);
    assert_ptr_equal(seen.end_context, (void *)0x77);
    run_for(2000 * MS);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    run_for(2000 * MS);
    assert_int_equal(seen.ends, 1);
}

static void what_had_completed_before_is_delivered_before_the_end(void **state) {
    uint32_t keepalive_us = 3600000000u;
    int i;
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(at_server, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    for (i = 0; i < PENDING; i++)
        assert_int_equal(cci_send(at_client, "a message", 9, NULL, 0), CCI_SUCCESS);
    while (seen.sent < PENDING) { /* the server's library works, but its program takes nothing */
        serve(client);
        let_server_work(0);
    }
    assert_int_equal(seen.failed, 0);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(10 * ROUND_TRIP_NS);
    assert_int_equal(seen.received, PENDING);
    assert_int_equal(seen.received_after_end, 0);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.keepalives, 0); /* who asks for ends is told of one by that alone */
}

static void what_was_pending_ends_with_disconnected_on_the_closing_side(void **state) {
    (void)state;
    set_mask(client);
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    lose[CCI__PKT_DATA] = 1000000;
    leave_pending();
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    run_for(2 * ROUND_TRIP_NS);
    assert_int_equal(seen.failed, PENDING);
    assert_int_equal(seen.send_status, CCI_ERR_DISCONNECTED);
    assert_int_equal(seen.ends, 1);
    assert_ptr_equal(seen.end_connection, at_client);
}

static void a_close_that_is_lost_is_repeated(void **state) {
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    lose[CCI__PKT_CLOSE] = 3;
    lose[CCI__PKT_CLOSED] = 1;
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(3000 * MS);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_SUCCESS);
    assert_int_equal(of_type[CCI__PKT_CLOSE], 5);
    assert_int_equal(of_type[CCI__PKT_CLOSED], 2);
    assert_int_equal(used(client), 0);
}

static void a_peer_that_never_answers_is_told_a_few_times_and_no_more(void **state) {
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    lose[CCI__PKT_CLOSE] = 1000000;
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(used(client), 1);
    run_for(3000 * MS);
    assert_int_equal(of_type[CCI__PKT_CLOSE], CCI__CONN_CLOSE_TRIES);
    assert_int_equal(used(client), 0);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(cci_send(at_server, "x", 1, NULL, 0), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_ERR_DISCONNECTED); /* a reset says no more than that */
}

static void both_sides_may_close_at_once(void **state) {
    (void)state;
    set_mask(client);
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(used(client) + used(server), 0);
    assert_int_equal(seen.ends, 0);
}

/* A client that leaves as soon as it is accepted, and whose CONFIRM is lost. */
static void a_connection_that_ends_before_the_server_knows_that_it_is_open_fails_to_open(void **state) {
    uint32_t rounds;
    (void)state;
    set_mask(server);
    lose[CCI__PKT_CONFIRM] = 1000000;
    start_connect(CCI_CONN_ATTR_RO);
    for (rounds = 0; rounds < 1000 && !at_client; rounds++)
        run_for(MS);
    assert_non_null(at_client);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.accepted_failed, 1);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(used(client) + used(server), 0);
}

static void a_program_that_leaves_waiting_events_gets_none_of_a_connection_that_is_gone(void **state) {
    uint32_t keepalive_us = 1000;
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(at_server, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    let_server_work(ROUND_TRIP_NS);
    assert_non_null(dconn_of(at_server)->in.broken.end_event);
    assert_int_equal(cci_set_opt(at_server, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    assert_non_null(dconn_of(at_server)->in.broken.keepalive_event); /* both wait */
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends + seen.keepalives, 0);
}

/* ---- endpoints that go --------------------------------------------------------------------------------------------------- */

static void reads_of_a_peer_end_at_once_when_the_endpoint_goes(void **state) {
    static uint8_t memory[1 << 20];
    cci_rma_handle_t *ours, *theirs;
    uint64_t gone_ns;
    int i;
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(server, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &ours), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(client, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &theirs), CCI_SUCCESS);
    for (i = 0; i < PENDING; i++)
        assert_int_equal(cci_rma(at_server, NULL, 0, ours, 0, theirs, 0, sizeof memory, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    serve(server);
    sim_idle = serve_both;
    gone_ns = sim.now_ns;
    destroy(&client);
    run_for(2 * ROUND_TRIP_NS);
    assert_true(seen.failed > 0);
    assert_int_equal(seen.sent, PENDING);
    assert_int_equal(seen.send_status, CCI_ERR_DISCONNECTED);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_SUCCESS);
    assert_true(seen.end_ns - gone_ns < 3 * ROUND_TRIP_NS);
}

static void an_endpoint_that_goes_tells_ten_thousand_peers_without_a_burst(void **state) {
    uint64_t gone_ns;
    (void)state;
    set_mask(server);
    connect_many(10000);
    sim_idle = serve_both;
    gone_ns = sim.now_ns;
    destroy(&client);
    assert_true(sim.now_ns - gone_ns < 200 * MS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends, 10000);
    assert_true(most_at_once <= 500);
    assert_int_equal(of_type[CCI__PKT_RESET], 0);
}

static void an_endpoint_whose_peers_do_not_answer_goes_all_the_same(void **state) {
    uint64_t gone_ns;
    (void)state;
    connect_many(1000);
    lose[CCI__PKT_CLOSE] = 1000000;
    gone_ns = sim.now_ns;
    destroy(&client);
    assert_true(sim.now_ns - gone_ns <= 165 * MS);
    assert_true(of_type[CCI__PKT_CLOSE] > 2000);
}

static void a_hundred_thousand_calls_of_disconnect_make_no_burst_either(void **state) {
    uint32_t i;
    (void)state;
    set_mask(client);
    connect_many(20000);
    for (i = 0; i < of_server_count; i++)
        assert_int_equal(cci_disconnect(of_server[i]), CCI_SUCCESS);
    run_for(2000 * MS);
    assert_int_equal(seen.ends, 20000);
    assert_true(most_at_once <= 200);
    assert_int_equal(used(server), 0);
}

static void let_server_work_for_nobody(void) {
    let_server_work(0);
}

typedef enum waiting { NO_EVENTS, TWO_EACH, TWO_EACH_NEWEST_FIRST } waiting_t;

/* The peers of all connections of the server have gone, and two events about each wait. */
static void let_events_wait(void) {
    uint32_t i, keepalive_us = 1000000;
    sim_idle = let_server_work_for_nobody;
    destroy(&client);
    sim_idle = NULL;
    for (i = 0; i < of_server_count; i++)
        let_server_work(100000);
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    for (i = 0; i < of_server_count; i++) {
        assert_non_null(dconn_of(of_server[i])->in.broken.keepalive_event);
        assert_non_null(dconn_of(of_server[i])->in.broken.end_event);
    }
}

/* Steps of the library in so many calls of cci_disconnect(), and the time that they took. */
static uint64_t work_of_disconnects(uint32_t count, waiting_t waiting, double *seconds) {
    uint32_t i, never = 0;
    clock_t start;
    connect_many(count);
    if (waiting != NO_EVENTS)
        let_events_wait();
    start = clock();
    work = 0;
    for (i = 0; i < count; i++) {
        cci_connection_t *connection = of_server[waiting == TWO_EACH_NEWEST_FIRST ? count - 1 - i : i];
        work_is_counted = 1;
        if (cci_disconnect(connection) != CCI_SUCCESS)
            fail();
        work_is_counted = 0;
    }
    *seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &never), CCI_SUCCESS);
    of_server_count = 0;
    run_for(waiting == NO_EVENTS ? count / 10 * MS : MS); /* each is told, without a burst */
    serve(server);
    assert_int_equal(seen.ends + seen.keepalives, 0);
    assert_int_equal(used(server), 0);
    if (client != NULL)
        destroy(&client);
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    return work;
}

#ifdef __SANITIZE_ADDRESS__
#define MANY 20000u /* the checker takes long for each */
#else
#define MANY 100000u
#endif

static void a_disconnect_costs_the_same_however_many_there_are_and_however_many_events_wait(void **state) {
    static const char *const texts[] = {"no events wait", "two wait for each", "two wait for each, the newest goes first"};
    int waiting;
    (void)state;
    set_mask(server);
    for (waiting = NO_EVENTS; waiting <= TWO_EACH_NEWEST_FIRST; waiting++) {
        double few_s, many_s;
        uint64_t few = work_of_disconnects(1000, (waiting_t)waiting, &few_s);
        uint64_t many = work_of_disconnects(MANY, (waiting_t)waiting, &many_s);
        print_message("%s: 1,000 calls of cci_disconnect() take %llu steps and %.4f s, %u take %llu and %.4f s\n", texts[waiting],
                      (unsigned long long)few, few_s, MANY, (unsigned long long)many, many_s);
        assert_true(many <= MANY / 1000 * 3 / 2 * few);
    }
}

/* ---- what others forge ----------------------------------------------------------------------------------------------------- */

static void inject(uint8_t type, uint32_t index, uint64_t token, uint32_t peer_index) {
    uint8_t packet[CCI__HEADER_SIZE];
    cci_conn_write_header(packet, type, 0, index, token, peer_index, 0);
    sim_inject(number_of(client), number_of(server), packet, sizeof packet);
}

static void a_close_with_another_token_or_for_a_connection_that_is_not_open_does_nothing(void **state) {
    cci__dconn_t *conn;
    uint32_t i;
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    conn = dconn_of(at_server);
    for (i = 0; i < 64; i++) {
        inject(CCI__PKT_CLOSE, conn->conn.index, conn->conn.token ^ UINT64_C(1) << i, conn->conn.peer_index);
        inject(CCI__PKT_CLOSED, conn->conn.index, conn->conn.token, conn->conn.peer_index); /* nobody has closed */
        run_for(ROUND_TRIP_NS);
    }
    for (i = 0; i < CCI__CONN_SLAB + 1; i++)
        if (i != conn->conn.index) {
            inject(CCI__PKT_CLOSE, i, 0, 0);
            inject(CCI__PKT_CLOSED, i, 0, 0);
        }
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(cci_send(at_client, "still here", 10, NULL, 0), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.received, 1);
}

static void a_close_that_comes_again_later_ends_no_other_connection(void **state) {
    uint8_t packet[CCI__HEADER_SIZE];
    int i;
    (void)state;
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    memcpy(packet, kept[CCI__PKT_CLOSE], sizeof packet);
    assert_int_equal(cci_disconnect(at_server), CCI_SUCCESS);
    for (i = 0; i < 2 * (int)CCI__CONN_SLAB; i++) { /* the same entry of the table comes again */
        sim_inject(number_of(client), number_of(server), packet, sizeof packet);
        connect_both(CCI_CONN_ATTR_RO);
        sim_inject(number_of(client), number_of(server), packet, sizeof packet);
    }
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.ends, 1);
}

static void a_close_does_not_end_a_handshake_or_a_group(void **state) {
    char *uri;
    cci__dconn_t *conn = NULL;
    uint32_t i, rounds;
    (void)state;
    set_mask(server);
    assert_int_equal(cci_connect(server, "sim://g5", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_SUCCESS);
    run_for(MS);
    conn = dconn_of(at_client);
    inject(CCI__PKT_CLOSE, conn->conn.index, conn->conn.token, 0);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(conn->conn.state, CCI_CONN_OPEN);
    assert_int_equal(cci_get_opt(client, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    lose[CCI__PKT_REQUEST] = 3;
    assert_int_equal(cci_connect(server, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    for (i = 0; i < CCI__CONN_SLAB; i++) {
        conn = (cci__dconn_t *)(void *)cci_conn_at(&dgram_of(server)->base.conns, i);
        if (conn->conn.state == CCI_CONN_CONNECTING)
            inject(CCI__PKT_CLOSE, conn->conn.index, conn->conn.token, 0);
    }
    for (rounds = 0; rounds < 1000 && of_server_count < 1; rounds++)
        run_for(MS);
    assert_int_equal(of_server_count, 1);
    assert_int_equal(seen.ends, 0);
}

/* ---- peers that vanish ---------------------------------------------------------------------------------------------------- */

/* Endpoints that look after silent peers. */
static void open_watchful(uint32_t probe_idle_s) {
    destroy(&client);
    destroy(&server);
    sim.probe_idle_s = probe_idle_s;
    assert_int_equal(cci_create_endpoint_at(NULL, "77", 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    set_mask(server);
    connect_both(CCI_CONN_ATTR_RO);
}

static void a_peer_that_vanished_is_found_out_by_a_probe_without_hot_state(void **state) {
    uint64_t since_ns;
    (void)state;
    open_watchful(2);
    client = NULL;
    since_ns = sim.now_ns;
    while (seen.ends == 0 && sim.now_ns < since_ns + 10000 * MS)
        run_for(10 * MS);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_ETIMEDOUT);
    assert_true(seen.end_ns - since_ns > 3500 * MS && seen.end_ns - since_ns < 4500 * MS);
    assert_int_equal(of_type[CCI__PKT_CONFIRM], 1 + CCI__CONN_PROBES); /* the first opened the connection */
    assert_null(dconn_of(at_server)->hot);
}

static void a_peer_that_was_restarted_is_found_out_by_the_answer_to_a_probe(void **state) {
    (void)state;
    open_watchful(2);
    lose[CCI__PKT_CLOSE] = 100;
    destroy(&client);
    assert_int_equal(cci_create_endpoint_at(NULL, "77", 0, &client, NULL), CCI_SUCCESS);
    run_for(2500 * MS);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.end_status, CCI_ERR_DISCONNECTED);
}

static void peers_that_are_silent_but_there_stay_connected(void **state) {
    (void)state;
    open_watchful(2);
    set_mask(client);
    run_for(60000 * MS);
    assert_int_equal(seen.ends, 0);
    assert_true(of_type[CCI__PKT_CONFIRM] > 20 && of_type[CCI__PKT_CONFIRM] < 70);
    assert_int_equal(cci_send(at_client, "here", 4, NULL, 0), CCI_SUCCESS);
    run_for(3 * ROUND_TRIP_NS);
    assert_int_equal(seen.received, 1);
}

static void without_probes_an_idle_connection_sends_nothing(void **state) {
    uint64_t before;
    (void)state;
    open_watchful(0);
    before = sim.sent_count;
    run_for(60000 * MS);
    assert_int_equal(sim.sent_count, before);
}

/* ---- servers that have no space ------------------------------------------------------------------------------------------- */

static void a_server_without_memory_says_that_it_is_busy_and_its_log_says_why(void **state) {
    (void)state;
    connect_many(CCI__CONN_SLAB);
    start_connect(CCI_CONN_ATTR_RO);
    all_fail = 1;
    run_for(500 * MS);
    assert_true(of_type[CCI__PKT_BUSY] >= 4);
    assert_int_equal(warnings, 1);
    assert_int_equal(seen.connected, CCI__CONN_SLAB);
    all_fail = 0;
    run_for(1500 * MS);
    assert_int_equal(seen.connected, CCI__CONN_SLAB + 1);
    assert_int_equal(seen.refused, 0);
}

static void a_full_table_is_busy_until_a_connection_ends_and_then_takes_who_waits(void **state) {
    static const struct timeval patience = {3, 0};
    uint32_t used_before;
    char *uri;
    (void)state;
    dgram_of(server)->base.conns.slab_limit = 1;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    connect_many(3 * CCI__CONN_SLAB / 4); /* what one network may have */
    used_before = used(server);
    assert_int_equal(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), CCI_SUCCESS);
    run_for(3500 * MS);
    assert_int_equal(used(server), used_before);
    assert_int_equal(seen.refused, 1); /* its time is over */
    assert_in_range(of_type[CCI__PKT_BUSY], 3, of_type[CCI__PKT_REQUEST]); /* each time at once, and the client asks again */
    assert_int_equal(warnings, 2); /* the server's and, at the end, the client's */
    start_connect(CCI_CONN_ATTR_RO);
    run_for(1500 * MS);
    assert_int_equal(cci_disconnect(of_server[0]), CCI_SUCCESS);
    run_for(1500 * MS);
    assert_int_equal(used(server), used_before);
    assert_int_equal(seen.connected, used_before + 1);
    free(uri);
}

/* The server's program takes no event. */
static void run_without_server(uint64_t time_ns) {
    uint64_t until_ns = sim.now_ns + time_ns;
    while (sim.now_ns < until_ns) {
        let_server_work(MS);
        serve(client);
    }
}

static void a_full_backlog_is_busy_and_its_log_says_so_now_and_then(void **state) {
    uint32_t backlog = 2, busy;
    int i;
    (void)state;
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_BACKLOG, &backlog), CCI_SUCCESS);
    for (i = 0; i < 5; i++) start_connect(CCI_CONN_ATTR_RO);
    run_without_server(3 * ROUND_TRIP_NS);
    assert_int_equal(of_type[CCI__PKT_BUSY], 3); /* at once: none of them has asked again */
    assert_int_equal(warnings, 1);
    run_without_server(9000 * MS);
    busy = of_type[CCI__PKT_BUSY];
    assert_true(busy >= 12 && warnings == 1);
    run_without_server(4000 * MS);
    assert_int_equal(warnings, 2);
    assert_true(of_type[CCI__PKT_BUSY] > busy);
    assert_int_equal(seen.refused + seen.connected, 0);
}

/* The server asks no silent peer of its own accord, but here somebody waits for its place. */
static void a_full_table_gives_up_who_does_not_answer_and_keeps_who_does(void **state) {
    static const struct timeval patience = {20, 0};
    uint32_t used_before;
    char *uri;
    (void)state;
    dgram_of(server)->base.conns.slab_limit = 1;
    set_mask(server);
    destroy(&client);
    assert_int_equal(cci_create_endpoint_at(NULL, "77", 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    connect_many(3 * CCI__CONN_SLAB / 4); /* what one network may have */
    used_before = used(server);
    of_type[CCI__PKT_CONFIRM] = 0;
    assert_int_equal(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), CCI_SUCCESS);
    run_for(21000 * MS);
    assert_int_equal(seen.refused, 1);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(used(server), used_before);
    assert_in_range(of_type[CCI__PKT_CONFIRM], 5, 30); /* one for a request at most */
    lose[CCI__PKT_CLOSE] = 1000000;
    destroy(&client);
    assert_int_equal(cci_create_endpoint_at(NULL, "78", 0, &client, NULL), CCI_SUCCESS);
    run_for(60000 * MS);
    assert_int_equal(seen.ends, 0); /* nobody waits */
    seen.connected = 0;
    assert_int_equal(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), CCI_SUCCESS);
    run_for(10000 * MS);
    assert_in_range(seen.ends, 1, 30);
    assert_int_equal(seen.end_status, CCI_ETIMEDOUT);
    assert_int_equal(cci_disconnect(seen.end_connection), CCI_SUCCESS);
    run_for(8000 * MS);
    assert_int_equal(seen.connected, 1);
    free(uri);
}

static void one_network_leaves_others_a_part_of_the_table(void **state) {
    cci_endpoint_t *crowd = client;
    uint32_t i;
    (void)state;
    dgram_of(server)->base.conns.slab_limit = 1;
    for (i = 0; i < 2 * CCI__CONN_SLAB; i++)
        start_connect(CCI_CONN_ATTR_RO);
    run_for(3000 * MS);
    assert_int_equal(seen.connected, 3 * CCI__CONN_SLAB / 4);
    assert_int_equal(cci_create_endpoint_at(NULL, "90000", 0, &client, NULL), CCI_SUCCESS);
    start_connect(CCI_CONN_ATTR_RO);
    for (i = 0; i < 10; i++) {
        run_for(MS);
        serve(crowd);
    }
    assert_int_equal(seen.connected, 3 * CCI__CONN_SLAB / 4 + 1);
    assert_string_equal(asked_by, "sim://90000");
}

/* They hold no receive buffer: a client that waits behind them is heard, however few there are. */
static void clients_that_never_confirm_do_not_keep_their_network_from_being_heard(void **state) {
    uint32_t few = 4, i;
    (void)state;
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    lose[CCI__PKT_ACCEPT] = 1000000;
    for (i = 0; i < 40; i++) {
        start_connect(CCI_CONN_ATTR_RO);
        run_for(50 * MS);
    }
    assert_int_equal(used(server), 40);
    lose[CCI__PKT_ACCEPT] = 0;
    run_for(1500 * MS);
    assert_int_equal(seen.connected, 40);
}

/* The last cci_finalize() of a program with many endpoints, whose peers are gone, or answer, takes the time of one. */
static void many_endpoints_end_in_the_time_of_one(void **state) {
    enum { CLIENTS = 40 };
    uint64_t since_ns;
    uint32_t i, caps;
    int is_dead;
    (void)state;
    for (is_dead = 0; is_dead < 2; is_dead++) {
        cci_endpoint_t *first = client;
        for (i = 0; i < CLIENTS; i++) {
            assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
            connect_both(CCI_CONN_ATTR_RO);
        }
        lose[CCI__PKT_CLOSE] = is_dead ? 1000000 : 0;
        of_type[CCI__PKT_CLOSE] = 0;
        client = first;
        since_ns = sim.now_ns;
        assert_int_equal(cci_finalize(), CCI_SUCCESS);
        assert_in_range(sim.now_ns - since_ns, 0, 400 * MS); /* a tenth of a second, and what they send */
        assert_in_range(of_type[CCI__PKT_CLOSE], is_dead ? 4 * CLIENTS : CLIENTS, 20 * CLIENTS); /* twice from each side */
        assert_int_equal(blocks, 0);
        lose[CCI__PKT_CLOSE] = 0;
        assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    }
}

static void a_link_of_version_1_is_taken_and_not_read_beyond_its_end(void **state) {
    static const cci_transport_t *transports[2];
    cci_link_t whole = sim_link, *old = (cci_link_t *)malloc(offsetof(cci_link_t, text));
    static cci_transport_t transport;
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    assert_non_null(old);
    whole.version = 1;
    memcpy(old, &whole, offsetof(cci_link_t, text));
    transport = sim_transport;
    transport.link = old;
    transports[0] = &transport;
    memset(&setup, 0, sizeof setup);
    setup.transports = transports;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    connect_both(CCI_CONN_ATTR_RO);
    assert_string_equal(asked_by, "nobody");
    destroy(&client);
    destroy(&server);
    free(old);
}

/* ---- for ever -------------------------------------------------------------------------------------------------------------- */

/* Clients connect, say something and leave; the server gives each connection back at the event about its end. */
static void connections_that_come_and_go_leave_the_memory_of_the_first_thousand(void **state) {
    uint32_t i, blocks_before = 0;
    cci_event_t *event;
    (void)state;
    set_mask(server);
    sim.delay_ns = 10000;
    for (i = 0; i < cycles; i++) {
        uint32_t open_before = of_server_count = 0, ends_before = seen.ends;
        at_client = NULL;
        start_connect(i & 1 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_UU);
        while (!at_client || of_server_count == open_before) {
            serve(client);
            serve(server);
        }
        assert_int_equal(cci_send(at_client, "hello", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(at_client), CCI_SUCCESS);
        while (seen.ends == ends_before) {
            serve(client);
            while (cci_get_event(server, &event) == CCI_SUCCESS) {
                on_event(event);
                if (event->type == CCI_EVENT_DISCONNECT)
                    assert_int_equal(cci_disconnect(event->disconnect.connection), CCI_SUCCESS);
                assert_int_equal(cci_return_event(event), CCI_SUCCESS);
            }
        }
        if (i == 1000)
            blocks_before = blocks;
    }
    run_for(2000 * MS);
    assert_int_equal(used(client) + used(server), 0);
    assert_int_equal(blocks, blocks_before);
    assert_int_equal(dgram_of(server)->base.conns.slab_count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(what_a_peer_had_pending_ends_within_a_round_trip_of_a_disconnect),
        TEST(the_event_comes_once_with_the_connection_and_its_context),
        TEST(what_had_completed_before_is_delivered_before_the_end),
        TEST(what_was_pending_ends_with_disconnected_on_the_closing_side),
        TEST(a_close_that_is_lost_is_repeated),
        TEST(a_peer_that_never_answers_is_told_a_few_times_and_no_more),
        TEST(both_sides_may_close_at_once),
        TEST(a_connection_that_ends_before_the_server_knows_that_it_is_open_fails_to_open),
        TEST(a_program_that_leaves_waiting_events_gets_none_of_a_connection_that_is_gone),
        TEST(reads_of_a_peer_end_at_once_when_the_endpoint_goes),
        TEST(an_endpoint_that_goes_tells_ten_thousand_peers_without_a_burst),
        TEST(an_endpoint_whose_peers_do_not_answer_goes_all_the_same),
        TEST(a_hundred_thousand_calls_of_disconnect_make_no_burst_either),
        TEST(a_disconnect_costs_the_same_however_many_there_are_and_however_many_events_wait),
        TEST(a_close_with_another_token_or_for_a_connection_that_is_not_open_does_nothing),
        TEST(a_close_that_comes_again_later_ends_no_other_connection),
        TEST(a_close_does_not_end_a_handshake_or_a_group),
        TEST(a_peer_that_vanished_is_found_out_by_a_probe_without_hot_state),
        TEST(a_peer_that_was_restarted_is_found_out_by_the_answer_to_a_probe),
        TEST(peers_that_are_silent_but_there_stay_connected),
        TEST(without_probes_an_idle_connection_sends_nothing),
        TEST(a_server_without_memory_says_that_it_is_busy_and_its_log_says_why),
        TEST(a_full_table_is_busy_until_a_connection_ends_and_then_takes_who_waits),
        TEST(a_full_backlog_is_busy_and_its_log_says_so_now_and_then),
        TEST(a_full_table_gives_up_who_does_not_answer_and_keeps_who_does),
        TEST(one_network_leaves_others_a_part_of_the_table),
        TEST(clients_that_never_confirm_do_not_keep_their_network_from_being_heard),
        TEST(many_endpoints_end_in_the_time_of_one),
        TEST(a_link_of_version_1_is_taken_and_not_read_beyond_its_end),
        TEST(connections_that_come_and_go_leave_the_memory_of_the_first_thousand),
    };
    if (argc > 1)
        cycles = (uint32_t)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}
