/* test_udp_share.c - several endpoints with one address: each connection is served by one of them, whoever comes and goes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Clients and servers ("members") talk over the loopback. A client sends a request, waits for the answer and sends the next;
 * answers name the member that gave them. No connection of a member that lives may break, and its answers come from it alone.
 */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

#if CCI__UDP_LINUX
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { CLIENTS = 24, MEMBERS = 8, BYTES = 200, PATIENCE_S = 240 };

static char config[256], log_text[4096];

static void keep_log(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    if (strlen(log_text) + strlen(text) + 2 < sizeof log_text) {
        strcat(strcat(log_text, text), "\n");
    }
}

/* A moment for others: threads that only yield keep each processor busy, and in a virtual machine each page that one of
 * them touches for the first time then costs interrupts of all. */
static void rest(void) {
    struct timespec moment = {0, 20000};
    nanosleep(&moment, NULL);
}

static void begin_with(const char *line) {
    cci_setup_t setup;
    uint32_t caps;
    log_text[0] = '\0';
    memset(&setup, 0, sizeof setup);
    snprintf(config, sizeof config, "[it]\ntransport = udp\ninterface = lo\nsend_buf_count = 64\nrecv_buf_count = 64\n%s\n", line);
    setup.config = config;
    setup.log = keep_log;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
}

static int begin(void **state) {
    (void)state;
    begin_with("");
    alarm(PATIENCE_S); /* what waits so long waits for ever */
    return 0;
}

static pthread_t threads[4];
static int thread_count, stop_threads;

static void begin_thread(void *(*function)(void *argument), void *argument) {
    assert_int_equal(pthread_create(&threads[thread_count], NULL, function, argument), 0);
    thread_count++;
}

static void end_threads(void) {
    __atomic_store_n(&stop_threads, 1, __ATOMIC_SEQ_CST);
    while (thread_count > 0) {
        thread_count--;
        pthread_join(threads[thread_count], NULL);
    }
    __atomic_store_n(&stop_threads, 0, __ATOMIC_SEQ_CST);
}

static int end(void **state) {
    (void)state;
    alarm(0);
    end_threads();
    while (cci_finalize() == CCI_SUCCESS) {
    }
    return 0;
}

static cci__udp_link *link_of(cci_endpoint_t *endpoint) {
    return (cci__udp_link *)((cci__dgram_t *)(uintptr_t)endpoint)->base.handle;
}

/* ---- members and clients ---------------------------------------------------------------------------------------- */

typedef struct member {
    cci_endpoint_t *endpoint;
    uint32_t name;
    unsigned served, refused, requests; /* requests: of clients that want to connect */
} member_t;

typedef struct request {
    uint32_t client, number;
    uint32_t member; /* of an answer: who gave it */
    uint8_t filling[BYTES - 12];
} request_t;

typedef struct client {
    cci_endpoint_t *endpoint;
    cci_connection_t *connection;
    uint32_t name, number, member; /* the member that serves it, from the first answer on */
    int is_waiting, ended; /* ended: why it broke, a status; 0: it did not */
} client_t;

static char uri[128];

/* Joins those at `uri`, or begins such an address. */
static void join(member_t *member, uint32_t name) {
    const char *port = uri[0] ? strrchr(uri, ':') + 1 : NULL;
    char *text;
    memset(member, 0, sizeof *member);
    member->name = name;
    assert_int_equal(cci_create_endpoint_at(NULL, port, CCI_ENDPOINT_SHARED, &member->endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(member->endpoint, CCI_OPT_ENDPT_URI, &text), CCI_SUCCESS);
    if (uri[0]) {
        assert_string_equal(text, uri);
    }
    snprintf(uri, sizeof uri, "%s", text);
    free(text);
}

static void leave(member_t *member) {
    assert_int_equal(cci_destroy_endpoint(member->endpoint), CCI_SUCCESS);
    member->endpoint = NULL;
}

/* What any thread may check: cmocka's assertions are the main thread's alone. */
#define MUST(condition) ((condition) ? (void)0 : end_for(#condition, __LINE__))

static void end_for(const char *condition, int line) {
    fprintf(stderr, "%s:%d: %s is false\n", __FILE__, line, condition);
    _exit(1);
}

/* A member's turn; the number of requests that it has answered. */
static unsigned serve(member_t *member) {
    cci_event_t *event;
    unsigned answered = 0;
    int turn;
    for (turn = 0; turn < 32 && member->endpoint && cci_get_event(member->endpoint, &event) == CCI_SUCCESS; turn++) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            member->requests++;
            MUST(cci_accept(event, NULL) == CCI_SUCCESS);
        } else if (event->type == CCI_EVENT_RECV) {
            request_t request;
            MUST(event->recv.len == sizeof request);
            memcpy(&request, event->recv.ptr, sizeof request);
            request.member = member->name;
            if (cci_send(event->recv.connection, &request, sizeof request, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) {
                member->refused++;
            }
            answered++;
        }
        MUST(cci_return_event(event) == CCI_SUCCESS);
    }
    member->served += answered;
    return answered;
}

static void begin_client(client_t *client, uint32_t name) {
    memset(client, 0, sizeof *client);
    client->name = name;
    client->member = UINT32_MAX;
    assert_int_equal(cci_create_endpoint(NULL, 0, &client->endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_connect(client->endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
}

static void take_answer(client_t *client, const cci_event_recv_t *event) {
    request_t answer;
    assert_int_equal(event->len, sizeof answer);
    memcpy(&answer, event->ptr, sizeof answer);
    assert_true(client->is_waiting);
    assert_int_equal(answer.client, client->name);
    assert_int_equal(answer.number, client->number); /* none twice, none left out */
    if (client->member == UINT32_MAX) {
        client->member = answer.member;
    }
    assert_int_equal(answer.member, client->member);
    client->is_waiting = 0;
}

/* A client's turn. */
static void ask(client_t *client) {
    cci_event_t *event;
    while (cci_get_event(client->endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT) {
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            client->connection = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV) {
            take_answer(client, &event->recv);
        } else if (event->type == CCI_EVENT_SEND && event->send.status != CCI_SUCCESS) {
            client->ended = event->send.status;
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    if (client->connection && !client->is_waiting && !client->ended) {
        request_t request;
        memset(&request, 0, sizeof request);
        request.client = client->name;
        request.number = ++client->number;
        client->ended = cci_send(client->connection, &request, sizeof request, NULL, 0);
        client->is_waiting = client->ended == CCI_SUCCESS;
    }
}

static void end_client(client_t *client) {
    assert_int_equal(cci_destroy_endpoint(client->endpoint), CCI_SUCCESS);
    client->endpoint = NULL;
}

static member_t members[MEMBERS];
static client_t clients[CLIENTS];

static void turn_of_all(void) {
    int i;
    for (i = 0; i < MEMBERS; i++) {
        serve(&members[i]);
    }
    for (i = 0; i < CLIENTS; i++) {
        if (clients[i].endpoint) {
            ask(&clients[i]);
        }
    }
}

/* Until each client has had so many more answers; none of them may break. */
static void run(uint32_t answers) {
    uint32_t from[CLIENTS];
    int i, left = 1;
    for (i = 0; i < CLIENTS; i++) {
        from[i] = clients[i].number;
    }
    while (left) {
        turn_of_all();
        rest(); /* there may be more members at work than processors */
        for (i = 0, left = 0; i < CLIENTS; i++) {
            assert_int_equal(clients[i].endpoint ? clients[i].ended : CCI_SUCCESS, CCI_SUCCESS);
            left += clients[i].endpoint && clients[i].number <= from[i] + answers;
        }
    }
}

static uint64_t handed_over(void) {
    uint64_t sum = 0;
    int i;
    for (i = 0; i < MEMBERS; i++) {
        sum += members[i].endpoint ? link_of(members[i].endpoint)->share.handed_over : 0;
    }
    return sum;
}

/* Until the kernel takes all packets of so many requests to the right member. */
static void settle(uint32_t answers) {
    uint64_t before;
    do {
        before = handed_over();
        run(answers);
    } while (handed_over() != before);
}

static void begin_all(int member_count, int client_count) {
    int i;
    memset(members, 0, sizeof members);
    memset(clients, 0, sizeof clients);
    uri[0] = '\0';
    for (i = 0; i < member_count; i++) {
        join(&members[i], (uint32_t)i);
    }
    for (i = 0; i < client_count; i++) {
        begin_client(&clients[i], (uint32_t)i);
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void endpoints_share_an_address_when_all_of_them_ask_for_it(void **state) {
    cci_endpoint_t *other = NULL;
    const char *port;
    (void)state;
    begin_all(3, 0);
    port = strrchr(uri, ':') + 1;
    assert_int_equal(cci_create_endpoint_at(NULL, port, 0, &other, NULL), CCI_EBUSY);
    leave(&members[0]);
    leave(&members[1]);
    assert_int_equal(cci_create_endpoint_at(NULL, port, 0, &other, NULL), CCI_EBUSY);
    leave(&members[2]);
    assert_int_equal(cci_create_endpoint_at(NULL, port, 0, &other, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, port, CCI_ENDPOINT_SHARED, &members[0].endpoint, NULL), CCI_EBUSY);
    end(NULL);
    begin_with("share = 1");
    assert_int_equal(cci_create_endpoint(NULL, 0, &other, NULL), CCI_SUCCESS);
    assert_int_equal(link_of(other)->share.is_on, 1);
}

static void a_port_that_the_system_chooses_is_nobody_elses(void **state) {
    cci_endpoint_t *endpoint;
    int i;
    (void)state;
    for (i = 0; i < 100; i++) {
        assert_int_equal(cci_create_endpoint_at(NULL, NULL, CCI_ENDPOINT_SHARED, &endpoint, NULL), CCI_SUCCESS);
        assert_int_equal(link_of(endpoint)->share.member, 0);
    }
}

static void each_connection_is_served_by_one_member_to_which_the_kernel_takes_its_packets(void **state) {
    (void)state;
    begin_all(2, CLIENTS);
    settle(200);
    assert_true(members[0].served > 0 && members[1].served > 0); /* 1 in 2^23 that the hash has it otherwise */
    assert_false(link_of(members[0].endpoint)->share.refused);
}

/* Members come and go in any order while those that were there at first serve theirs. */
static void churn(int times) {
    uint32_t chance = 12345;
    int i;
    begin_all(2, CLIENTS);
    run(1);
    for (i = 0; i < times; i++) {
        int at;
        chance = chance * 1664525u + 1013904223u;
        at = 2 + (int)(chance >> 16) % (MEMBERS - 2);
        if (members[at].endpoint) {
            leave(&members[at]);
        } else {
            join(&members[at], (uint32_t)at);
        }
        run((chance >> 8) % 4 == 0 ? 10 : 0);
    }
    run(50);
    for (i = 0; i < CLIENTS; i++) {
        assert_in_range(clients[i].member, 0, 1);
    }
}

static void no_connection_of_a_member_breaks_when_others_join_and_leave(void **state) {
    (void)state;
    churn(300);
    settle(20);
}

static void members_that_are_born_later_serve_theirs_when_the_first_leave(void **state) {
    int i;
    (void)state;
    begin_all(3, 0);
    for (i = 0; i < CLIENTS; i++) {
        begin_client(&clients[i], (uint32_t)i);
    }
    run(2);
    for (i = 0; i < CLIENTS; i++) {
        if (clients[i].member == 0) {
            end_client(&clients[i]);
        }
    }
    leave(&members[0]);
    run(100);
    settle(20);
}

/* Opens a new connection of a client, from the same endpoint, and has it answered; who serves it. */
static uint32_t connect_again(client_t *client) {
    assert_int_equal(cci_disconnect(client->connection), CCI_SUCCESS);
    client->connection = NULL;
    client->number = 0;
    client->member = UINT32_MAX;
    client->is_waiting = 0;
    assert_int_equal(cci_connect(client->endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    while (client->member == UINT32_MAX) {
        client->ended = 0; /* what the connection before had under way may tell its end now */
        turn_of_all();
    }
    return client->member;
}

static void a_member_that_replaces_another_serves_clients_of_that_one_who_connect_again(void **state) {
    uint32_t times, of_new = 0, of_old = 0;
    int i;
    (void)state;
    begin_all(2, CLIENTS);
    run(1);
    for (i = 0; i < CLIENTS; i++) { /* all that are left are the first member's */
        if (clients[i].member != 0) {
            end_client(&clients[i]);
        }
    }
    leave(&members[0]);
    join(&members[0], 10);
    for (times = 0; times < 100 && (of_new == 0 || of_old == 0); times++) { /* 1 in 2^100 that one of the two gets none */
        for (i = 0; i < CLIENTS; i++) {
            if (clients[i].endpoint) {
                uint32_t by = connect_again(&clients[i]);
                of_new += by == 10;
                of_old += by == 1;
            }
        }
    }
    assert_true(of_new > 0 && of_old > 0);
}

/* Sends a packet for a receiver's index, and what comes back within so many turns of all. */
static ssize_t answer_within(uint32_t index, uint8_t *answer, size_t size, int turns) {
    struct sockaddr_in to;
    uint8_t packet[64];
    ssize_t n = -1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(strrchr(uri, ':') + 1));
    memset(packet, 0, sizeof packet);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, index, 0x1122334455667788u, 77, 1);
    assert_int_equal(sendto(fd, packet, sizeof packet, 0, (const struct sockaddr *)&to, sizeof to), sizeof packet);
    while (n < 0 && turns-- > 0) {
        turn_of_all();
        n = recv(fd, answer, size, 0);
    }
    close(fd);
    return n;
}

/* The same until there is an answer: what is handed over to a member whose mailbox is full is lost. */
static ssize_t answer_to(uint32_t index, uint8_t *answer, size_t size) {
    ssize_t n;
    do {
        n = answer_within(index, answer, size, 100);
    } while (n < 0);
    return n;
}

static uint64_t unclaimed(void) {
    uint64_t sum = 0;
    int i;
    for (i = 0; i < MEMBERS; i++) {
        sum += members[i].endpoint ? link_of(members[i].endpoint)->share.unclaimed : 0;
    }
    return sum;
}

static void a_packet_for_a_member_that_is_gone_is_answered_by_none_and_for_another_by_that_one_alone(void **state) {
    uint8_t answer[100];
    uint64_t before;
    int i, most;
    (void)state;
    begin_all(3, 0);
    settle(20);
    for (i = 0; i < 3; i++) { /* a stray: the one that it is for says that there is no such connection */
        uint32_t index = (uint32_t)i << CCI__UDP_MEMBER_SHIFT;
        assert_int_equal(answer_to(index, answer, sizeof answer), CCI__HEADER_SIZE);
        assert_int_equal(answer[1], CCI__PKT_RESET);
        assert_int_equal(cci__load32(answer + 16), index);
    }
    leave(&members[1]);
    before = unclaimed();
    for (most = 0; most < 100; most++) {
        assert_int_equal(answer_within(1u << CCI__UDP_MEMBER_SHIFT, answer, sizeof answer, 50), -1);
        assert_int_equal(answer_within(200u << CCI__UDP_MEMBER_SHIFT, answer, sizeof answer, 50), -1);
    }
    while (unclaimed() < before + 200) { /* until all have arrived */
        turn_of_all();
    }
    assert_int_equal(unclaimed(), before + 200);
}

/* One endpoint with two connections, and who serves each. */
typedef struct twin {
    cci_endpoint_t *endpoint;
    cci_connection_t *connection[2];
    uint32_t member[2], sent[2], got[2];
} twin_t;

/* A turn of the servers and of the endpoint; answers of each connection come from its member, in order. */
static void turn_of_twin(twin_t *twin) {
    cci_event_t *event;
    serve(&members[0]);
    serve(&members[1]);
    while (cci_get_event(twin->endpoint, &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT) {
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            twin->connection[twin->connection[0] != NULL] = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV) {
            int which = event->recv.connection == twin->connection[1];
            request_t answer;
            memcpy(&answer, event->recv.ptr, sizeof answer);
            assert_int_equal(answer.number, twin->got[which]++);
            twin->member[which] = answer.number == 0 ? answer.member : twin->member[which];
            assert_int_equal(answer.member, twin->member[which]);
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
}

static void send_of_twin(twin_t *twin, int which) {
    request_t request;
    memset(&request, 0, sizeof request);
    request.number = twin->sent[which];
    if (cci_send(twin->connection[which], &request, sizeof request, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS) {
        twin->sent[which]++;
    }
}

static void begin_connection(twin_t *twin, int which) {
    assert_int_equal(cci_connect(twin->endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    while (twin->connection[which] == NULL) {
        turn_of_twin(twin);
    }
    send_of_twin(twin, which);
    while (twin->got[which] == 0) {
        turn_of_twin(twin);
    }
}

static void one_client_endpoint_may_have_connections_to_several_members(void **state) {
    enum { BURST = 48, ROUNDS = 30 };
    static twin_t twins[CLIENTS];
    twin_t *twin = NULL;
    int i, round;
    (void)state;
    memset(twins, 0, sizeof twins);
    begin_all(1, 0);
    for (i = 0; i < CLIENTS; i++) {
        assert_int_equal(cci_create_endpoint(NULL, 0, &twins[i].endpoint, NULL), CCI_SUCCESS);
        begin_connection(&twins[i], 0);
    }
    join(&members[1], 1);
    for (i = 0; i < CLIENTS && twin == NULL; i++) {
        begin_connection(&twins[i], 1);
        twin = twins[i].member[1] == 1 ? &twins[i] : NULL;
    }
    assert_non_null(twin); /* 1 in 2^24 that the hash has it otherwise */
    for (round = 0; round < ROUNDS; round++) { /* messages for both in turn, which leave side by side */
        for (i = 0; i < BURST; i++) {
            send_of_twin(twin, i & 1);
        }
        while (twin->got[0] < twin->sent[0] || twin->got[1] < twin->sent[1]) {
            turn_of_twin(twin);
        }
    }
    assert_true(twin->got[0] > ROUNDS && twin->got[1] > ROUNDS);
}

/* A way in between, as a NAT has it: `front` is the server for a client, `back` the client for the server. */
typedef struct nat {
    int front, back;
    struct sockaddr_in client, server;
} nat_t;

static int bound_socket(void) {
    struct sockaddr_in a;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void turn_of_nat(nat_t *nat) {
    static uint8_t bytes[65536];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t n;
    while ((n = recvfrom(nat->front, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size)) >= 0) {
        nat->client = from;
        (void)sendto(nat->back, bytes, (size_t)n, 0, (const struct sockaddr *)&nat->server, sizeof nat->server);
    }
    while ((n = recv(nat->back, bytes, sizeof bytes, 0)) >= 0) {
        (void)sendto(nat->front, bytes, (size_t)n, 0, (const struct sockaddr *)&nat->client, sizeof nat->client);
    }
}

static void a_connection_stays_with_its_member_when_the_peers_address_changes(void **state) {
    char direct[sizeof uri];
    struct sockaddr_in a;
    socklen_t size = sizeof a;
    nat_t nat;
    int moves;
    (void)state;
    begin_all(4, 0);
    memset(&nat, 0, sizeof nat);
    nat.front = bound_socket();
    nat.back = bound_socket();
    nat.server.sin_family = AF_INET;
    nat.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    nat.server.sin_port = htons((uint16_t)atoi(strrchr(uri, ':') + 1));
    assert_int_equal(getsockname(nat.front, (struct sockaddr *)&a, &size), 0);
    memcpy(direct, uri, sizeof direct);
    snprintf(uri, sizeof uri, "udp://127.0.0.1:%u", ntohs(a.sin_port));
    begin_client(&clients[0], 0);
    memcpy(uri, direct, sizeof direct);
    for (moves = 0; moves < 12; moves++) {
        uint32_t until = clients[0].number + 20;
        while (clients[0].number < until) {
            turn_of_nat(&nat);
            turn_of_all();
            assert_int_equal(clients[0].ended, CCI_SUCCESS);
        }
        close(nat.back);
        nat.back = bound_socket();
    }
    close(nat.back);
    close(nat.front);
}

/* ---- requests that travel as one --------------------------------------------------------------------------------- */

enum { CROWD = 2000, TURNS = 200 }; /* connects at once: they leave in trains of many, each of which the kernel takes to one member */

static unsigned requests(void) {
    unsigned sum = 0;
    int i;
    for (i = 0; i < MEMBERS; i++) {
        sum += members[i].requests;
    }
    return sum;
}

/* Until each member knows all that live. */
static void meet(void) {
    int i, living, left;
    do {
        turn_of_all();
        for (i = living = 0; i < MEMBERS; i++) {
            living += members[i].endpoint != NULL;
        }
        for (i = left = 0; i < MEMBERS; i++) {
            if (members[i].endpoint) {
                cci__udp_share *share = &link_of(members[i].endpoint)->share;
                cci__udp_list_members(link_of(members[i].endpoint));
                left += share->unknown_count > 0 || (int)share->living_count != living;
            }
        }
    } while (left > 0);
}

/* A crowd of one client endpoint connects; returns how many requests the members' programs got. */
static unsigned crowd_connects(void) {
    const struct timeval timeout = {PATIENCE_S, 0};
    unsigned before = requests();
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    int i, left = CROWD;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    for (i = 0; i < CROWD; i++) {
        assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), CCI_SUCCESS);
    }
    while (left > 0) {
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT) {
                assert_int_equal(event->connect.status, CCI_SUCCESS);
                left--;
            }
            assert_int_equal(cci_return_event(event), CCI_SUCCESS);
        }
        turn_of_all();
    }
    for (i = 0; i < TURNS; i++) {
        turn_of_all();
    }
    before = requests() - before;
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    return before;
}

static void each_connect_is_one_request_of_one_member_whatever_train_it_travels_in(void **state) {
    int i;
    (void)state;
    begin_all(MEMBERS, 0);
    meet();
    for (i = 0; i < 3; i++) {
        assert_int_equal(crowd_connects(), CROWD);
    }
}

static void each_connect_is_one_request_also_after_members_have_come_and_gone(void **state) {
    (void)state;
    begin_all(MEMBERS - 1, 0);
    meet();
    leave(&members[2]);
    leave(&members[0]);
    meet();
    assert_int_equal(crowd_connects(), CROWD);
    join(&members[MEMBERS - 1], MEMBERS - 1);
    meet();
    assert_int_equal(crowd_connects(), CROWD);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

#ifndef CCI_NO_THREADS
static int joined_threads, has_gone;
static unsigned thread_refused;

/* One thread, one endpoint. */
static void *serve_alone(void *number) {
    member_t member;
    const char *port = strrchr(uri, ':') + 1;
    memset(&member, 0, sizeof member);
    member.name = (uint32_t)(uintptr_t)number;
    if (cci_create_endpoint_at(NULL, port, CCI_ENDPOINT_SHARED, &member.endpoint, NULL) != CCI_SUCCESS) {
        __atomic_add_fetch(&thread_refused, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_add_fetch(&joined_threads, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&stop_threads, __ATOMIC_SEQ_CST) && member.endpoint) {
        if (serve(&member) == 0) {
            rest();
        }
    }
    if (member.endpoint) {
        cci_destroy_endpoint(member.endpoint);
    }
    return NULL;
}

static void *come_and_go(void *unused) {
    const char *port = strrchr(uri, ':') + 1;
    int i, k;
    for (i = 0; i < 20; i++) {
        member_t member;
        memset(&member, 0, sizeof member);
        member.name = 100;
        if (cci_create_endpoint_at(NULL, port, CCI_ENDPOINT_SHARED, &member.endpoint, NULL) != CCI_SUCCESS) {
            __atomic_add_fetch(&thread_refused, 1, __ATOMIC_SEQ_CST);
            break;
        }
        for (k = 0; k < 100; k++) {
            serve(&member);
            rest();
        }
        cci_destroy_endpoint(member.endpoint);
    }
    __atomic_store_n(&has_gone, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void each_thread_has_its_endpoint_and_nothing_is_shared_between_them(void **state) {
    enum { THREADS = 3 };
    uintptr_t i;
    (void)state;
    begin_all(1, 0); /* the main thread's own */
    for (i = 0; i < THREADS; i++) {
        begin_thread(serve_alone, (void *)(i + 1));
    }
    while (__atomic_load_n(&joined_threads, __ATOMIC_SEQ_CST) < THREADS) {
        turn_of_all();
    }
    for (i = 0; i < CLIENTS; i++) {
        begin_client(&clients[i], (uint32_t)i);
        turn_of_all(); /* under a checker of threads all of them together may take longer to make than a peer waits */
    }
    run(5);
    begin_thread(come_and_go, NULL);
    run(200);
    while (__atomic_load_n(&has_gone, __ATOMIC_SEQ_CST) == 0) {
        turn_of_all();
    }
    run(20);
    end_threads();
    assert_int_equal(thread_refused, 0);
}
#endif

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* A process that is a member until it is killed. */
static int be_member(const char *address, const char *name) {
    member_t member;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    begin_with("");
    snprintf(uri, sizeof uri, "%s", address);
    join(&member, (uint32_t)atoi(name));
    if (write(STDOUT_FILENO, "r", 1) != 1) {
        return 1;
    }
    for (;;) {
        if (serve(&member) == 0) {
            rest();
        }
    }
}

static pid_t start_member(uint32_t name) {
    char text[16], byte;
    int ends[2];
    pid_t pid;
    snprintf(text, sizeof text, "%u", (unsigned)name);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "test_udp_share", "--member", uri, text, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static void stop_member(pid_t pid) {
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void processes_that_are_killed_break_no_connection_of_another(void **state) {
    pid_t first, second, pid[3];
    int i, k;
    (void)state;
    begin_all(1, 0);
    first = start_member(1);
    pid[0] = start_member(10); /* of which one lies in front of the others */
    second = start_member(2);
    for (i = 0; i < CLIENTS; i++) {
        begin_client(&clients[i], (uint32_t)i);
    }
    run(2);
    for (i = 0; i < CLIENTS; i++) { /* those of the process that is going to be killed don't count */
        if (clients[i].member >= 10) {
            end_client(&clients[i]);
        }
    }
    stop_member(pid[0]);
    run(20);
    for (i = 0; i < 5; i++) {
        for (k = 0; k < 3; k++) {
            pid[k] = start_member((uint32_t)(11 + k));
            run(5);
        }
        for (k = 0; k < 3; k++) {
            stop_member(pid[(k + i) % 3]);
            run(5);
        }
    }
    run(50);
    for (i = 0; i < CLIENTS; i++) {
        assert_true(clients[i].endpoint == NULL || clients[i].member <= 2);
    }
    stop_member(first);
    stop_member(second);
}

/* ---- where the kernel takes no program --------------------------------------------------------------------------- */

static int refuse_programs(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_setsockopt, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (uint32_t)offsetof(struct seccomp_data, args) + 16 + (cci__load32((const uint8_t *)"\1\0\0\0") == 1 ? 0 : 4)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CCI__UDP_ATTACH, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program;
    program.len = sizeof code / sizeof code[0];
    program.filter = code;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void all_works_without_programs(void **state) {
    (void)state;
    churn(100);
    run(20);
    assert_true(link_of(members[0].endpoint)->share.refused);
    assert_non_null(strstr(log_text, "handed over"));
    assert_true(handed_over() > 0);
}

static void without_the_kernels_program_all_is_handed_over(void **state) {
    int status = -1;
    pid_t pid;
    (void)state;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* who counts tests counts this one once */
        execl("/proc/self/exe", "test_udp_share", "--refused", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == 77 << 8) {
        print_message("the system does not let processes filter their calls\n");
        skip();
    }
    assert_int_equal(status, 0);
}
#else
static void it_is_refused_where_it_is_not_implemented(void **state) {
    cci_endpoint_t *endpoint;
    uint32_t caps;
    (void)state;
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, NULL, CCI_ENDPOINT_SHARED, &endpoint, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv) {
#if CCI__UDP_LINUX
    const struct CMUnitTest tests[] = {
        TEST(endpoints_share_an_address_when_all_of_them_ask_for_it),
        TEST(a_port_that_the_system_chooses_is_nobody_elses),
        TEST(each_connection_is_served_by_one_member_to_which_the_kernel_takes_its_packets),
        TEST(no_connection_of_a_member_breaks_when_others_join_and_leave),
        TEST(members_that_are_born_later_serve_theirs_when_the_first_leave),
        TEST(a_member_that_replaces_another_serves_clients_of_that_one_who_connect_again),
        TEST(a_packet_for_a_member_that_is_gone_is_answered_by_none_and_for_another_by_that_one_alone),
        TEST(one_client_endpoint_may_have_connections_to_several_members),
        TEST(a_connection_stays_with_its_member_when_the_peers_address_changes),
        TEST(each_connect_is_one_request_of_one_member_whatever_train_it_travels_in),
        TEST(each_connect_is_one_request_also_after_members_have_come_and_gone),
#ifndef CCI_NO_THREADS
        TEST(each_thread_has_its_endpoint_and_nothing_is_shared_between_them),
#endif
        TEST(processes_that_are_killed_break_no_connection_of_another),
        TEST(without_the_kernels_program_all_is_handed_over),
    };
    const struct CMUnitTest refused[] = {TEST(all_works_without_programs)};
    if (argc == 4 && strcmp(argv[1], "--member") == 0) {
        return be_member(argv[2], argv[3]);
    }
    if (argc == 2 && strcmp(argv[1], "--refused") == 0) {
        return refuse_programs() ? cmocka_run_group_tests_name("refused", refused, NULL, NULL) : 77;
    }
    if (argc == 2) {
        cmocka_set_test_filter(argv[1]);
    }
#else
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_refused_where_it_is_not_implemented)};
    (void)argc, (void)argv;
#endif
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
