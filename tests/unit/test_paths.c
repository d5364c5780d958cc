/* test_paths.c - endpoints with several interfaces on the simulated network, whose paths are cut in turn.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server have up to four interfaces each. Interface n of endpoint 1000 has the address 1000 + n * STEP. Every
 * pair of interfaces is a path; route() is the network, which loses what goes along a path that is cut.
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

#define MS UINT64_C(1000000)
#define CLIENT 0
#define SERVER 1
#define STEP 100000u
#define STATUS (1u << CCI_EVENT_STATUS)

static cci_endpoint_t *end[2];
static cci_connection_t *at[2];
static cci_link_paths_t paths[2];
static sim_endpoint_t *links[2];
static uint32_t opened;
static int is_cut[4][4];    /* by the client's interface and the server's */
static int goes_one_way;    /* what is cut still carries the client's packets */
static int is_down[2][4];
static int loses_addresses; /* the next so many ADDRESSES are lost */
static uint64_t crossed[4][4], tells, hears, datagrams;
static uint32_t moved_by_client[4][4]; /* the client's packets that show where it is */
static uint64_t challenges[2], early_challenges; /* of the server's, on paths along which no such packet has come */
static int is_silent_about_paths; /* the link has no paths */

/* What each side has sent and got: messages hold their number. */
static uint32_t sent[2], got[2], completed[2], failed[2];
static struct told {
    cci_status_what_t what;
    uint64_t value;
} told[2][64];
static uint32_t told_count[2];
static uint64_t memory[2][512];
static uint32_t disconnects;

#define MANY 2000u
static cci_connection_t *many[MANY + 1]; /* the client's; their messages come in any order */
static uint32_t many_count;

static int side_of(const void *link) {
    return link == (const void *)links[SERVER];
}

static int own(void *link, uint32_t number, cci_link_addr_t *address) {
    int side = side_of(link);
    if (number >= paths[side].interface_count)
        return 0;
    sim_make_address(address, 1, links[side]->number + number * STEP);
    return 1;
}

static int path(void *link, uint32_t number, const cci_link_addr_t *to, cci_link_addr_t *found) {
    int side = side_of(link);
    if (number >= paths[side].interface_count || is_down[side][number] || to->bytes[0] != 1)
        return 0;
    sim_make_address(found, 1, sim_number_of(to));
    found->bytes[1] = (uint8_t)number;
    return 1;
}

static int paths_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    int status = sim_link.open(device, service, want_os_handle, link, info);
    links[opened] = (sim_endpoint_t *)*link;
    paths[opened].own = own;
    paths[opened].path = path;
    if (!is_silent_about_paths)
        info->paths = &paths[opened];
    opened++;
    return status;
}

static void route(const sim_datagram_t *datagram) {
    sim_datagram_t *moved = (sim_datagram_t *)(uintptr_t)datagram;
    const cci_link_addr_t from = datagram->from, to = datagram->to;
    int from_server = sim_number_of(&from) == links[SERVER]->number;
    uint32_t source = to.bytes[1], target = sim_number_of(&to) / STEP;
    uint32_t client = from_server ? target : source, server = from_server ? source : target;
    int is_data = datagram->bytes[1] == CCI__PKT_DATA && datagram->length >= 32;
    assert_true(source < 4 && target < 4);
    datagrams++;
    if (is_data && datagram->bytes[24] == CCI__FRAME_CHALLENGE) {
        challenges[from_server]++;
        early_challenges += from_server && moved_by_client[client][server] == 0;
    }
    tells += is_data && datagram->bytes[24] == CCI__FRAME_ADDRESSES;
    hears += is_data && datagram->bytes[24] == CCI__FRAME_HEARD;
    if (is_data && datagram->bytes[24] == CCI__FRAME_ADDRESSES && loses_addresses > 0) {
        loses_addresses--;
        return;
    }
    if ((is_cut[client][server] && (from_server || !goes_one_way)) || is_down[!from_server][target] ||
        is_down[from_server][source])
        return;
    crossed[client][server]++;
    moved_by_client[client][server] += !from_server && !cci_conn_path_probes(datagram->bytes, datagram->length);
    sim_make_address(&moved->from, 1, sim_number_of(&from) + source * STEP);
    moved->from.bytes[1] = (uint8_t)target; /* by which interface it comes */
    sim_make_address(&moved->to, 1, sim_number_of(&to) - target * STEP);
    sim_put(&moved->from, &moved->to, moved);
    moved->from = from;
    moved->to = to;
}

static void take_one(int side) {
    cci_event_t *event;
    if (cci_get_event(end[side], &event) != CCI_SUCCESS)
        return;
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT_REQUEST: assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS); break;
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        at[CLIENT] = event->connect.connection;
        assert_true(many_count <= MANY);
        many[many_count++] = at[CLIENT];
        break;
    case CCI_EVENT_ACCEPT: at[SERVER] = event->accept.connection; break;
    case CCI_EVENT_RECV: {
        uint32_t number;
        assert_true(event->recv.len >= 4);
        memcpy(&number, event->recv.ptr, 4);
        assert_true(many_count > 1 || number == got[side]); /* in order, each once */
        got[side]++;
        break;
    }
    case CCI_EVENT_SEND:
        completed[side]++;
        failed[side] += event->send.status != CCI_SUCCESS;
        break;
    case CCI_EVENT_STATUS:
        if (many_count > 1)
            break;
        assert_true(told_count[side] < 64);
        told[side][told_count[side]].what = event->status.what;
        told[side][told_count[side]++].value = event->status.value;
        break;
    case CCI_EVENT_DISCONNECT: disconnects++; break;
    default: fail_msg("event %d", (int)event->type);
    }
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

static void both_work(uint64_t for_ns) {
    uint64_t until_ns = sim.now_ns + for_ns;
    while (sim.now_ns < until_ns) {
        take_one(CLIENT);
        take_one(SERVER);
    }
}

static void send_from(int side, uint32_t length) {
    static uint8_t bytes[65536];
    memcpy(bytes, &sent[side], 4);
    assert_int_equal(cci_send(at[side], bytes, length, NULL, 0), CCI_SUCCESS);
    sent[side]++;
}

/* Until everything has come and is complete; 0 if that takes longer. */
static int settles(uint64_t within_ns) {
    uint64_t until_ns = sim.now_ns + within_ns;
    while (sim.now_ns < until_ns) {
        if (got[CLIENT] == sent[SERVER] && got[SERVER] == sent[CLIENT] && completed[CLIENT] >= sent[CLIENT] &&
            completed[SERVER] >= sent[SERVER])
            return 1;
        take_one(CLIENT);
        take_one(SERVER);
    }
    return 0;
}

static void begin(uint32_t client_has, uint32_t server_has) {
    static cci_link_t link;
    static cci_transport_t transport;
    static const cci_transport_t *const transports[] = {&transport, NULL};
    cci_setup_t setup;
    uint32_t caps, mask = STATUS | 1u << CCI_EVENT_DISCONNECT;
    int side;
    char *uri;
    link = sim_link;
    link.open = paths_open;
    transport = sim_transport;
    transport.link = &link;
    memset(&setup, 0, sizeof setup);
    setup.transports = transports;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    paths[CLIENT].interface_count = client_has;
    paths[SERVER].interface_count = server_has;
    sim_route = route;
    for (side = 0; side < 2; side++) {
        assert_int_equal(cci_create_endpoint(NULL, 0, &end[side], NULL), CCI_SUCCESS);
        assert_int_equal(cci_set_opt(end[side], CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    }
    assert_int_equal(cci_get_opt(end[SERVER], CCI_OPT_ENDPT_URI, (void *)&uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(end[CLIENT], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    while (at[CLIENT] == NULL || at[SERVER] == NULL)
        both_work(MS / 10);
    send_from(CLIENT, 100); /* both know then how long the path takes */
    send_from(SERVER, 100);
    assert_true(settles(1000 * MS));
    both_work(3000 * MS);
    told_count[CLIENT] = told_count[SERVER] = 0;
}

static int setup_test(void **state) {
    (void)state;
    sim_reset();
    memset(end, 0, sizeof end);
    memset(at, 0, sizeof at);
    memset(paths, 0, sizeof paths);
    memset(is_cut, 0, sizeof is_cut);
    memset(is_down, 0, sizeof is_down);
    memset(crossed, 0, sizeof crossed);
    memset(moved_by_client, 0, sizeof moved_by_client);
    memset(challenges, 0, sizeof challenges);
    early_challenges = 0;
    memset(sent, 0, sizeof sent);
    memset(got, 0, sizeof got);
    memset(completed, 0, sizeof completed);
    memset(failed, 0, sizeof failed);
    memset(told_count, 0, sizeof told_count);
    tells = hears = datagrams = 0;
    opened = disconnects = many_count = 0;
    goes_one_way = loses_addresses = is_silent_about_paths = 0;
    return 0;
}

static int teardown_test(void **state) {
    (void)state;
    sim_route = NULL; /* it needs both endpoints */
    cci_finalize();
    sim_reset();
    return 0;
}

/* Cuts all paths but one. */
static void leave_alone(uint32_t client, uint32_t server) {
    uint32_t i, j;
    for (i = 0; i < 4; i++)
        for (j = 0; j < 4; j++) is_cut[i][j] = i != client || j != server;
}

static uint32_t count_told(int side, cci_status_what_t what) {
    uint32_t i, count = 0;
    for (i = 0; i < told_count[side]; i++) count += told[side][i].what == what;
    return count;
}

/* ---- tests ---- */

static void test_one_interface_tells_nothing(void **state) {
    (void)state;
    begin(1, 1);
    send_from(CLIENT, 100);
    assert_true(settles(1000 * MS));
    assert_int_equal(tells + hears, 0);
}

static void test_addresses_are_told_until_heard(void **state) {
    (void)state;
    loses_addresses = 3;
    begin(2, 2);
    assert_int_equal(loses_addresses, 0);
    assert_int_equal(tells, 2 + 3);
    assert_int_equal(hears, 2);
    both_work(20000 * MS);
    assert_int_equal(tells, 2 + 3); /* and not again */
}

/* The peer is of a kind that does not know the frame. */
static void test_telling_ends(void **state) {
    uint64_t before;
    (void)state;
    loses_addresses = 1000;
    begin(2, 2);
    both_work(8000 * MS);
    before = tells;
    assert_int_equal(before, 20);
    both_work(3000 * MS);
    assert_int_equal(tells, before);
}

static void test_the_next_path_is_taken(void **state) {
    int sender;
    (void)state;
    for (sender = 0; sender < 2; sender++) {
        setup_test(state);
        begin(2, 2);
        leave_alone(1, 1);
        send_from(sender, 100);
        assert_true(settles(1000 * MS));
        assert_int_equal(failed[sender], 0);
        both_work(100 * MS);
        assert_int_equal(told_count[sender] >= 3, 1);
        assert_int_equal(told[sender][0].what, CCI_STATUS_PATH_SUSPENDED);
        assert_int_equal(count_told(sender, CCI_STATUS_PATH_CHANGED), 1);
        assert_int_equal(count_told(sender, CCI_STATUS_PATH_RESUMED), 1);
        assert_int_equal(count_told(sender, CCI_STATUS_PEER_MOVED), 1);
        assert_int_equal(count_told(!sender, CCI_STATUS_PATH_CHANGED), 1); /* it follows */
        memset(crossed, 0, sizeof crossed);
        send_from(!sender, 100);
        assert_true(settles(1000 * MS));
        assert_int_equal(crossed[0][0] + crossed[0][1] + crossed[1][0], 0);
        assert_true(crossed[1][1] > 0);
        teardown_test(state);
    }
    setup_test(state);
}

static void test_one_side_has_one_interface(void **state) {
    int which, sender;
    (void)state;
    for (which = 0; which < 2; which++)
        for (sender = 0; sender < 2; sender++) {
            setup_test(state);
            begin(which ? 1 : 3, which ? 3 : 1);
            leave_alone(which ? 0 : 2, which ? 2 : 0);
            send_from(sender, 100);
            assert_true(settles(2000 * MS));
            leave_alone(which ? 0 : 1, which ? 1 : 0);
            send_from(!sender, 100);
            assert_true(settles(3000 * MS));
            assert_int_equal(failed[0] + failed[1], 0);
            teardown_test(state);
        }
    setup_test(state);
}

/* Only what the server sends is lost. */
static void test_a_path_that_goes_one_way(void **state) {
    int sender;
    (void)state;
    for (sender = 0; sender < 2; sender++) {
        setup_test(state);
        begin(2, 2);
        goes_one_way = 1;
        leave_alone(1, 1);
        send_from(sender, 100);
        assert_true(settles(5000 * MS));
        send_from(!sender, 100);
        assert_true(settles(5000 * MS));
        assert_int_equal(failed[0] + failed[1], 0);
        teardown_test(state);
    }
    setup_test(state);
}

/* The client, which hears nothing, tries other paths. The server, which hears all, goes nowhere before the client has. */
static void test_who_tries_a_path_moves_nobody(void **state) {
    (void)state;
    begin(3, 3);
    goes_one_way = 1;
    leave_alone(1, 1);
    send_from(CLIENT, 100);
    assert_true(settles(5000 * MS));
    assert_true(challenges[CLIENT] > 0);
    assert_int_equal(early_challenges, 0);
    assert_int_equal(count_told(SERVER, CCI_STATUS_PATH_CHANGED), 1);
}

/* Paths cut in turn, under traffic both ways, with RMA. */
static void cut_in_turn(uint32_t loss_per_mille) {
    uint32_t round, i, changes = 0;
    cci_rma_handle_t *handle[2];
    begin(3, 3);
    sim.loss_per_mille = loss_per_mille;
    sim.delay_ns = MS;
    for (i = 0; i < 2; i++)
        assert_int_equal(cci_rma_register(end[i], memory[i], sizeof memory[i], CCI_FLAG_READ | CCI_FLAG_WRITE, &handle[i]),
                         CCI_SUCCESS);
    for (round = 0; round < 12; round++) {
        uint32_t way = round % 3;
        leave_alone(way, round % 2 ? way : (way + 1) % 3);
        for (i = 0; i < 20; i++) {
            send_from(CLIENT, 4 + i * 50);
            send_from(SERVER, 4 + i * 50);
            both_work(MS);
        }
        for (i = 0; i < 512; i++) memory[CLIENT][i] = round * 1000 + i;
        sent[CLIENT]++; /* a completion more, and a message */
        {
            uint32_t number = sent[CLIENT] - 1;
            assert_int_equal(cci_rma(at[CLIENT], &number, 4, handle[CLIENT], 0, handle[SERVER], 0, sizeof memory[0], NULL,
                                     CCI_FLAG_WRITE),
                             CCI_SUCCESS);
        }
        assert_true(settles(20000 * MS));
        assert_memory_equal(memory[CLIENT], memory[SERVER], sizeof memory[0]);
        changes += count_told(CLIENT, CCI_STATUS_PATH_CHANGED);
        told_count[CLIENT] = told_count[SERVER] = 0;
    }
    assert_true(changes >= 10);
    assert_int_equal(failed[0] + failed[1] + disconnects, 0);
    for (i = 0; i < 2; i++) assert_int_equal(cci_rma_deregister(end[i], handle[i]), CCI_SUCCESS);
}

static void test_cut_in_turn(void **state) {
    (void)state;
    cut_in_turn(0);
}

static void test_cut_in_turn_with_losses(void **state) {
    (void)state;
    cut_in_turn(150);
}

/* A path that goes with its interface is left at the first time-out: it is not suspended. */
static void test_an_interface_goes(void **state) {
    (void)state;
    begin(2, 2);
    is_down[CLIENT][0] = 1;
    send_from(CLIENT, 100);
    assert_true(settles(1000 * MS));
    both_work(100 * MS);
    assert_int_equal(failed[CLIENT], 0);
    assert_int_equal(count_told(CLIENT, CCI_STATUS_PATH_SUSPENDED), 0);
    assert_int_equal(count_told(CLIENT, CCI_STATUS_PATH_CHANGED), 1);
}

/* Nothing is sent for long, and the peer is asked for signs of life: on the other path, too. */
static void test_an_idle_connection_stays(void **state) {
    (void)state;
    sim.probe_idle_s = 5;
    begin(2, 2);
    leave_alone(1, 1);
    both_work(25000 * MS);
    assert_int_equal(disconnects, 0);
    send_from(SERVER, 100);
    assert_true(settles(2000 * MS));
    assert_int_equal(failed[SERVER], 0);
}

/* With all paths cut the send time-out rules, as ever; when one heals in time, nothing is lost. */
static void test_no_path_for_a_while(void **state) {
    (void)state;
    begin(2, 2);
    leave_alone(3, 3);
    send_from(CLIENT, 100);
    both_work(8000 * MS);
    assert_int_equal(got[SERVER] + 1, sent[CLIENT]);
    leave_alone(0, 1);
    assert_true(settles(4000 * MS));
    assert_int_equal(failed[CLIENT], 0);
    leave_alone(3, 3);
    send_from(CLIENT, 100);
    both_work(40000 * MS);
    assert_int_equal(failed[CLIENT], 1);
}

/* The search costs few packets, and ends when the path is heard again. */
static void test_a_search_is_cheap(void **state) {
    uint64_t before;
    (void)state;
    begin(4, 4);
    leave_alone(3, 2);
    is_cut[3][2] = 1;
    send_from(CLIENT, 100);
    both_work(1000 * MS);
    before = datagrams;
    both_work(10000 * MS);
    assert_true(datagrams - before < 500);
    leave_alone(0, 0);
    assert_true(settles(4000 * MS));
    both_work(4000 * MS);
    before = datagrams;
    both_work(4000 * MS);
    assert_int_equal(datagrams, before);
}

/* How many of one kind come at once, beyond one in each turn, while the sides work. */
static uint32_t most_at_once(const uint64_t *count, uint64_t for_ns) {
    uint64_t until_ns = sim.now_ns + for_ns, before, before_ns, most = 0;
    while (sim.now_ns < until_ns) {
        before = *count;
        before_ns = sim.now_ns;
        sim.idle_step_ns = 5000; /* the programs call often */
        both_work(1);
        before += (sim.now_ns - before_ns) / CCI__CONN_TURN_NS;
        most = *count > before + most ? *count - before : most;
    }
    return (uint32_t)most;
}

static void send_on_all(void) {
    uint32_t i;
    for (i = 0; i < MANY; i++) {
        at[CLIENT] = many[i];
        send_from(CLIENT, 100);
    }
}

/* The path of thousands of connections is cut at once: they try the other one in turn, and all go on there. When a side's
 * addresses have changed, they tell it in turn. */
static void test_many_take_turns(void **state) {
    char *uri;
    uint32_t i;
    (void)state;
    begin(2, 2);
    assert_int_equal(cci_get_opt(end[SERVER], CCI_OPT_ENDPT_URI, (void *)&uri), CCI_SUCCESS);
    for (i = 0; i < MANY; i++) {
        assert_int_equal(cci_connect(end[CLIENT], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        both_work(MS / 10);
    }
    free(uri);
    while (many_count <= MANY)
        both_work(MS);
    send_on_all(); /* all know then how long the path takes */
    assert_true(settles(1000 * MS));
    leave_alone(1, 1);
    send_on_all();
    assert_in_range(most_at_once(&challenges[CLIENT], 4000 * MS), 1, 60);
    assert_true(settles(1000 * MS));
    assert_int_equal(failed[CLIENT], 0);
    send_on_all();
    paths[CLIENT].changes++;
    assert_in_range(most_at_once(&tells, 1000 * MS), 1, 60);
    assert_true(settles(1000 * MS));
}

/* ADDRESSES and HEARD that make no sense, in packets that are the peer's. */
static void test_frames_are_checked(void **state) {
    uint8_t frame[8 + 9 * 24];
    uint32_t count, length;
    (void)state;
    memset(frame, 0, sizeof frame);
    frame[0] = CCI__FRAME_ADDRESSES;
    for (count = 0; count < 256; count++)
        for (length = 0; length <= sizeof frame; length++) {
            uint32_t size;
            frame[1] = (uint8_t)count;
            size = cci_conn_told_size(frame, length);
            assert_int_equal(size, count <= 8 && length >= 8 + count * 24 ? 8 + count * 24 : 0);
        }
    frame[0] = CCI__FRAME_HEARD;
    assert_int_equal(cci_conn_told_size(frame, 8), 8);
    assert_int_equal(cci_conn_told_size(frame, 7), 0);
}

/* An older ADDRESSES that comes late changes nothing; a RESPONSE with other bits moves nothing. */
static void test_late_and_false(void **state) {
    cci__dconn_t *conn;
    cci_conn_candidates_t *candidates;
    cci_link_addr_t found;
    uint8_t frame[8 + 24];
    uint32_t i;
    (void)state;
    begin(2, 2);
    leave_alone(3, 3);
    send_from(CLIENT, 100);
    both_work(500 * MS);
    conn = (cci__dconn_t *)(void *)(uintptr_t)at[CLIENT];
    candidates = conn->hot->path->candidates;
    assert_int_equal(candidates->told_count, 3);
    assert_true(candidates->search != 0);
    for (i = 0; i < 1000; i++)
        assert_int_equal(cci_conn_candidates_found(&cci__dgram_of(conn)->base.conns, &conn->conn, candidates, sim_random() | 1, &found),
                         0);
    memset(frame, 0, sizeof frame);
    frame[0] = CCI__FRAME_ADDRESSES;
    frame[1] = 1;
    cci__store32(frame + 4, candidates->told_number);
    cci_conn_candidates_input(candidates, frame);
    assert_int_equal(candidates->told_count, 3);
    cci__store32(frame + 4, candidates->told_number + 1);
    cci_conn_candidates_input(candidates, frame);
    assert_int_equal(candidates->told_count, 2);
    assert_int_equal(candidates->search, 0); /* its numbers are other paths' now */
}

/* The link gets one more address later. */
static void test_a_later_address_is_told(void **state) {
    (void)state;
    begin(1, 1);
    assert_int_equal(tells, 0);
    paths[SERVER].interface_count = 2;
    paths[SERVER].changes++;
    send_from(CLIENT, 100);
    assert_true(settles(1000 * MS));
    both_work(1000 * MS);
    assert_int_equal(tells, 1);
    assert_int_equal(hears, 1);
    leave_alone(0, 1);
    send_from(CLIENT, 100);
    assert_true(settles(1000 * MS));
    assert_int_equal(failed[CLIENT], 0);
}

/* A link without paths: what its peer tells is heard and forgotten. */
static void test_a_link_without_paths(void **state) {
    (void)state;
    is_silent_about_paths = 1;
    begin(1, 1);
    send_from(CLIENT, 100);
    assert_true(settles(1000 * MS));
    assert_int_equal(tells, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_test, teardown_test)
        TEST(test_one_interface_tells_nothing), TEST(test_addresses_are_told_until_heard),
        TEST(test_telling_ends),                TEST(test_the_next_path_is_taken),
        TEST(test_one_side_has_one_interface),  TEST(test_a_path_that_goes_one_way),
        TEST(test_who_tries_a_path_moves_nobody),
        TEST(test_cut_in_turn),                 TEST(test_cut_in_turn_with_losses),
        TEST(test_an_interface_goes),           TEST(test_an_idle_connection_stays),
        TEST(test_no_path_for_a_while),         TEST(test_a_search_is_cheap),
        TEST(test_many_take_turns),
        TEST(test_frames_are_checked),          TEST(test_late_and_false),
        TEST(test_a_later_address_is_told),     TEST(test_a_link_without_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
