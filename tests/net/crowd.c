/* crowd.c - a server and its crowd: any number of peers, each of them served; peers that fall silent, die, or never acknowledge.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     crowd                  tests: the bounds that the library keeps to
 *     crowd table            what the crowds of the README are measured with, as a table
 *     crowd try WORDS...     one crowd: peers= clients= rtt= (µs) rounds= memory= (bytes) buffers= silent= (%) large= (bytes)
 *
 * The whole library runs over the network of netsim.h, in virtual time: figures are the same on every machine, and no bound
 * depends on how fast one is. Work is what the library's compiled code counts with -fsanitize-coverage=trace-pc: the
 * edges that it passes inside the server's calls.
 *
 * A crowd is one server and some client programs, each of which has its part of the peers: a peer is a connection that sends
 * a request of 64 bytes, waits for the reply, which is as long, and sends the next. With `large` every other peer's are that long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci.h"

#include "tests/support/netsim.h"

#define REQUEST_BYTES 64u
#define LARGE_BYTES 1024u /* at most */
#define PACKET_BYTES 48u  /* of a packet, besides its message: header, frame and acknowledgement */
#define MOST_CLIENTS 4096u
#define CONNECTING 2048u /* connects under way at once */
#define SERVED 600u      /* connections whose ends at the server are known */
#define LONG_WRITE 20000u
#define BEGINS_APART 7u   /* connections: a program that sends to all begins with another one each time */

/* ---- work ------------------------------------------------------------------------------------------------------------ */

static uint64_t work;
static int work_is_counted;
#ifdef CROWD_COUNTS_WORK
#include "tests/support/counted.h"

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
    work += (uint64_t)work_is_counted;
}
#endif

/* ---- programs ---------------------------------------------------------------------------------------------------------- */

typedef struct peer {
    cci_connection_t *connection;
    struct client *client;
    uint64_t began_ns; /* of the request that waits for its reply; 0: none does */
    uint64_t worst_ns;
    uint32_t replies, slow; /* slow: replies that took longer than two round trips */
    uint32_t length;        /* bytes of its messages */
    uint32_t told;          /* messages that it had not asked for */
    uint64_t told_ns;       /* ... the last of them */
    int is_failed;
    struct peer *next_unsent;
} peer_t;

typedef struct client {
    cci_endpoint_t *endpoint;
    uint32_t index; /* in the network */
    uint32_t first, count, connecting, connected;
    peer_t *unsent; /* requests that the library had no memory for */
    uint32_t keepalives;
} client_t;

/* A reply that the library had no memory for. */
typedef struct reply {
    cci_connection_t *connection;
    uint32_t length;
    struct reply *next;
} reply_t;

static struct crowd {
    cci_endpoint_t *server;
    uint32_t server_index;
    char *uri;
    client_t clients[MOST_CLIENTS];
    client_t *client_of[2 * MOST_CLIENTS]; /* endpoint of the network */
    uint32_t client_count, peer_count, connected, failed;
    peer_t *peers;
    reply_t *unsent, **unsent_tail;
    uint64_t refused;  /* sends that got CCI_ENOBUFS */
    uint64_t broken;   /* replies to connections that had ended */
    uint64_t requests; /* that the server got */
    cci_connection_t *served[SERVED]; /* the server's ends of the first connections */
    uint32_t served_count;
    uint32_t done, ended; /* operations on memory: with success; in all */
    uint32_t unasked;     /* messages to clients that had not asked */
    uint64_t rtt_ns;
    int is_running; /* who has a reply sends the next request */
} crowd;

static void must(int status, const char *what) {
    if (status == CCI_SUCCESS)
        return;
    fprintf(stderr, "crowd: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    abort();
}

static const uint8_t payload[LARGE_BYTES];

static void send_request(peer_t *peer) {
    int status = cci_send(peer->connection, payload, peer->length, NULL, CCI_FLAG_SILENT);
    if (peer->began_ns == 0)
        peer->began_ns = net.now_ns;
    if (status == CCI_SUCCESS)
        return;
    if (status != CCI_ENOBUFS) {
        peer->is_failed = 1;
        crowd.failed++;
        return;
    }
    crowd.refused++;
    peer->next_unsent = peer->client->unsent;
    peer->client->unsent = peer;
}

static void take_reply(peer_t *peer) {
    uint64_t waited_ns = net.now_ns - peer->began_ns;
    if (peer->began_ns == 0) {
        crowd.unasked++;
        peer->told++;
        peer->told_ns = net.now_ns;
        return;
    }
    peer->began_ns = 0;
    peer->replies++;
    peer->slow += waited_ns > 2 * crowd.rtt_ns;
    if (waited_ns > peer->worst_ns)
        peer->worst_ns = waited_ns;
    if (crowd.is_running)
        send_request(peer);
}

static void connect_more(client_t *client) {
    while (client->connecting < client->count && client->connecting - client->connected < CONNECTING) {
        peer_t *peer = &crowd.peers[client->first + client->connecting++];
        peer->client = client;
        must(cci_connect(client->endpoint, crowd.uri, &client, sizeof client, CCI_CONN_ATTR_RO, peer, 0, NULL), "cci_connect");
    }
}

static void take_client_event(client_t *client, cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT:
        must((int)event->connect.status, "connecting");
        ((peer_t *)event->connect.context)->connection = event->connect.connection;
        client->connected++;
        crowd.connected++;
        connect_more(client);
        break;
    case CCI_EVENT_RECV:
        take_reply((peer_t *)event->recv.connection->context);
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        client->keepalives++;
        break;
    default:
        must(CCI_ERROR, "an unexpected event at a client");
    }
    must(cci_return_event(event), "cci_return_event");
}

static void run_client(client_t *client) {
    peer_t *unsent = client->unsent;
    int empty = 0;
    client->unsent = NULL;
    while (unsent) {
        peer_t *peer = unsent;
        unsent = unsent->next_unsent;
        send_request(peer);
    }
    while (empty < 4) {
        cci_event_t *event;
        if (cci_get_event(client->endpoint, &event) == CCI_SUCCESS) {
            empty = 0;
            take_client_event(client, event);
        } else {
            empty++;
        }
    }
}

/* Replies; 0 if the library has no memory for it now. */
static int send_reply(cci_connection_t *connection, uint32_t length) {
    int status = cci_send(connection, payload, length, NULL, CCI_FLAG_SILENT);
    if (status == CCI_ENOBUFS) {
        crowd.refused++;
        return 0;
    }
    crowd.broken += status != CCI_SUCCESS;
    return 1;
}

static void keep_reply(cci_connection_t *connection, uint32_t length) {
    reply_t *reply = (reply_t *)calloc(1, sizeof *reply);
    if (!reply)
        abort();
    reply->connection = connection;
    reply->length = length;
    *crowd.unsent_tail = reply;
    crowd.unsent_tail = &reply->next;
}

/* Replies once more to those that could not be replied to. */
static void send_kept(void) {
    reply_t *kept = crowd.unsent;
    crowd.unsent = NULL;
    crowd.unsent_tail = &crowd.unsent;
    while (kept) {
        reply_t *reply = kept;
        kept = kept->next;
        if (!send_reply(reply->connection, reply->length))
            keep_reply(reply->connection, reply->length);
        free(reply);
    }
}

static void take_server_event(cci_event_t *event) {
    client_t *client = NULL;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        if (event->request.data_len == sizeof client)
            memcpy(&client, event->request.data_ptr, sizeof client); /* all are in one process */
        must(cci_accept(event, client), "cci_accept");
        break;
    case CCI_EVENT_ACCEPT:
        if (crowd.served_count < SERVED)
            crowd.served[crowd.served_count++] = event->accept.connection;
        break;
    case CCI_EVENT_SEND:
        crowd.ended++;
        crowd.done += event->send.status == CCI_SUCCESS;
        break;
    case CCI_EVENT_RECV:
        crowd.requests++;
        if (!send_reply(event->recv.connection, event->recv.len))
            keep_reply(event->recv.connection, event->recv.len);
        break;
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        break;
    default:
        must(CCI_ERROR, "an unexpected event at the server");
    }
    must(cci_return_event(event), "cci_return_event");
}

static void run_server(void) {
    int empty = 0;
    work_is_counted = 1;
    send_kept();
    while (empty < 4) {
        cci_event_t *event;
        if (cci_get_event(crowd.server, &event) == CCI_SUCCESS) {
            empty = 0;
            take_server_event(event);
        } else {
            empty++;
        }
    }
    work_is_counted = 0;
}

static void run_until(uint64_t until_ns) {
    while (net.now_ns < until_ns) {
        net_endpoint_t *awake = NULL;
        net_advance(until_ns);
        while ((awake = net_next_awake(awake)) != NULL) {
            if (!net_awake(awake->index))
                continue;
            if (awake->index == crowd.server_index)
                run_server();
            else
                run_client(crowd.client_of[awake->index]);
        }
    }
}

/* ---- a crowd ------------------------------------------------------------------------------------------------------------- */

typedef struct measurement {
    uint32_t peers, clients, rtt_us, rounds, memory, buffers, silent_percent;
    uint32_t large; /* bytes of every other peer's messages; 0: as all others' */
} measurement_t;

typedef struct result {
    double jain, throughput; /* of the ideal */
    double bytes_jain;
    double worst_rtts;       /* the longest wait, in round trips */
    double slow;             /* share of replies that took longer than two round trips */
    uint32_t unanswered;     /* peers that got no reply at all */
    double work;             /* for each reply */
    uint64_t refused;
} result_t;

static int seeded_random(void *user, void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (count-- > 0)
        *at++ = (uint8_t)(net_random() >> 32);
    return 0;
}

/* Memory that the server has from the hook. */
static size_t server_bytes;

static void *counted_alloc(void *user, size_t size) {
    size_t *block = (size_t *)malloc(size + 16);
    (void)user;
    if (!block)
        return NULL;
    block[0] = work_is_counted ? size : 0;
    server_bytes += block[0];
    return block + 16 / sizeof *block;
}

static void counted_release(void *user, void *pointer) {
    size_t *block = (size_t *)pointer;
    (void)user;
    if (!block)
        return;
    block -= 16 / sizeof *block;
    server_bytes -= block[0];
    free(block);
}

static void open_client(uint32_t number, uint32_t first, uint32_t count) {
    client_t *client = &crowd.clients[number];
    cci_os_handle_t fd;
    must(cci_create_endpoint(NULL, 0, &client->endpoint, &fd), "cci_create_endpoint");
    client->index = net.endpoint_count - 1;
    client->first = first;
    client->count = count;
    crowd.client_of[client->index] = client;
    crowd.client_count = number + 1;
    connect_more(client);
    run_client(client);
}

static void open_network(const measurement_t *m) {
    cci_setup_t setup;
    uint32_t caps;
    net_reset(1, UINT64_C(25000000000), m->rtt_us * NET_US, 100, 0);
    net.line[0].queue_bytes = net.line[1].queue_bytes = 1u << 30;
    net.buffers = m->buffers;
    memset(&setup, 0, sizeof setup);
    setup.random = seeded_random;
    setup.transports = net_transports;
    setup.alloc = counted_alloc;
    setup.release = counted_release;
    must(cci_setup(&setup), "cci_setup");
    must(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    memset(&crowd, 0, sizeof crowd);
    crowd.unsent_tail = &crowd.unsent;
    crowd.rtt_ns = m->rtt_us * NET_US;
}

/* A server, and its peers, all connected and idle. */
static void gather(const measurement_t *m) {
    cci_os_handle_t fd;
    uint32_t i;
    open_network(m);
    crowd.peers = (peer_t *)calloc(m->peers, sizeof *crowd.peers);
    crowd.peer_count = m->peers;
    for (i = 0; i < m->peers; i++)
        crowd.peers[i].length = m->large > 0 && i % 2 == 1 ? m->large : REQUEST_BYTES;
    net.next_side = NET_RIGHT;
    work_is_counted = 1;
    net.memory_limit = m->memory;
    must(cci_create_endpoint(NULL, 0, &crowd.server, &fd), "cci_create_endpoint");
    work_is_counted = 0;
    must(cci_get_opt(crowd.server, CCI_OPT_ENDPT_URI, &crowd.uri), "cci_get_opt");
    net.next_side = NET_LEFT;
    net.memory_limit = 0;
    for (i = 0; i < m->clients; i++) {
        uint32_t first = (uint32_t)((uint64_t)m->peers * i / m->clients);
        open_client(i, first, (uint32_t)((uint64_t)m->peers * (i + 1) / m->clients) - first);
    }
    while (crowd.connected < m->peers && net.now_ns < 600 * NET_S)
        run_until(net.now_ns + crowd.rtt_ns);
    run_until(net.now_ns + 2 * NET_S);
}

static void disperse(void) {
    uint32_t i;
    for (i = 0; i < crowd.client_count; i++)
        must(cci_destroy_endpoint(crowd.clients[i].endpoint), "cci_destroy_endpoint");
    must(cci_destroy_endpoint(crowd.server), "cci_destroy_endpoint");
    must(cci_finalize(), "cci_finalize");
    free(crowd.peers);
    free(crowd.uri);
    while (crowd.unsent) {
        reply_t *next = crowd.unsent->next;
        free(crowd.unsent);
        crowd.unsent = next;
    }
}

static void forget_replies(void) {
    uint32_t i;
    for (i = 0; i < crowd.peer_count; i++)
        crowd.peers[i].replies = crowd.peers[i].slow = 0, crowd.peers[i].worst_ns = 0;
    work = 0;
}

static void start_talking(void) {
    uint32_t i;
    crowd.is_running = 1;
    for (i = 0; i < crowd.peer_count; i++)
        send_request(&crowd.peers[i]);
}

/* What the peers from `first` on have got in `seconds`, beside what the round trip alone allows. */
static result_t sum_up(uint32_t first, uint64_t measured_ns) {
    result_t r;
    double sum = 0, squares = 0, worst_ns = 0, slow = 0, bytes_sum = 0, bytes_squares = 0;
    uint32_t i, count = crowd.peer_count - first;
    memset(&r, 0, sizeof r);
    for (i = first; i < crowd.peer_count; i++) {
        const peer_t *peer = &crowd.peers[i];
        uint64_t waits_ns = peer->began_ns ? net.now_ns - peer->began_ns : 0;
        double bytes = (double)peer->replies * (peer->length + PACKET_BYTES);
        bytes_sum += bytes;
        bytes_squares += bytes * bytes;
        sum += peer->replies;
        squares += (double)peer->replies * peer->replies;
        slow += peer->slow;
        r.unanswered += peer->replies == 0;
        if ((double)peer->worst_ns > worst_ns)
            worst_ns = (double)peer->worst_ns;
        if ((double)waits_ns > worst_ns)
            worst_ns = (double)waits_ns;
    }
    r.jain = squares > 0 ? sum * sum / (count * squares) : 0;
    r.bytes_jain = squares > 0 ? bytes_sum * bytes_sum / (count * bytes_squares) : 0;
    r.throughput = sum / (count * (double)measured_ns / (double)crowd.rtt_ns);
    r.worst_rtts = worst_ns / (double)crowd.rtt_ns;
    r.slow = sum > 0 ? slow / sum : 1;
    r.work = sum > 0 ? (double)work / sum : 0;
    r.refused = crowd.refused;
    return r;
}

/* Requests and replies for some round trips. */
static result_t measure(const measurement_t *m) {
    result_t r;
    uint32_t i, silent = m->clients * m->silent_percent / 100;
    uint64_t measured_ns;
    gather(m);
    start_talking();
    run_until(net.now_ns + 3 * crowd.rtt_ns);
    for (i = 0; i < silent; i++)
        net_silence(crowd.clients[i].index, 1);
    forget_replies();
    measured_ns = m->rounds * crowd.rtt_ns;
    run_until(net.now_ns + measured_ns);
    r = sum_up(silent > 0 ? crowd.clients[silent].first : 0, measured_ns);
    disperse();
    return r;
}

static const measurement_t usual = {1000, 1, 20000, 20, 0, 0, 0, 0};

static int set_word(measurement_t *m, const char *word) {
    const char *value = strchr(word, '=');
    uint32_t number = value ? (uint32_t)atof(value + 1) : 0;
#define IS(name) (strncmp(word, (name), sizeof(name) - 1) == 0 && word[sizeof(name) - 1] == '=')
    if (IS("peers")) m->peers = number;
    else if (IS("clients")) m->clients = number;
    else if (IS("rtt")) m->rtt_us = number;
    else if (IS("rounds")) m->rounds = number;
    else if (IS("memory")) m->memory = number;
    else if (IS("buffers")) m->buffers = number;
    else if (IS("silent")) m->silent_percent = number;
    else if (IS("large")) m->large = number < LARGE_BYTES ? number : LARGE_BYTES;
    else return 0;
#undef IS
    return 1;
}

static void print_result(const measurement_t *m, const result_t *r) {
    printf("%u peers, %u clients, %u us: jain %.4f (of bytes %.4f) throughput %.3f worst %.2f RTT slow %.4f unanswered %u refused %u work %.0f\n",
           m->peers, m->clients, m->rtt_us, r->jain, r->bytes_jain, r->throughput, r->worst_rtts, r->slow, r->unanswered,
           (unsigned)r->refused, r->work);
}

static int try_words(int count, char **words) {
    measurement_t m = usual;
    result_t r;
    while (count-- > 0)
        if (!set_word(&m, *words++)) {
            fprintf(stderr, "crowd: what is %s?\n", words[-1]);
            return 2;
        }
    r = measure(&m);
    print_result(&m, &r);
    return 0;
}

/* ---- tests: crowds ----------------------------------------------------------------------------------------------------- */

/* Nobody waits longer than three round trips beyond one, the rate is what the round trip allows, and all get the same. */
static void assert_served(const result_t *r) {
    assert_int_equal(r->unanswered, 0);
    assert_int_equal(r->refused, 0);
    assert_true(r->jain >= 0.99);
    assert_true(r->throughput >= 0.95);
    assert_true(r->worst_rtts <= 4);
}

static void test_every_peer_of_a_crowd_is_served(void **state) {
    static const measurement_t crowds[] = {
        {1020, 1, 20000, 20, 0, 0, 0, 0},  {1500, 1, 20000, 20, 0, 0, 0, 0},   {3000, 1, 20000, 20, 0, 0, 0, 0},
        {1020, 1, 2000, 20, 0, 0, 0, 0},   {1020, 1, 200000, 20, 0, 0, 0, 0},
        {1500, 1, 2000, 20, 0, 0, 0, 0},   {3000, 1, 2000, 20, 0, 0, 0, 0},    {1500, 1, 200000, 20, 0, 0, 0, 0},
        {3000, 1, 200000, 20, 0, 0, 0, 0}, {10000, 1, 20000, 20, 0, 0, 0, 0},  {10000, 1, 2000, 20, 0, 0, 0, 0},
        {10000, 1, 200000, 6, 0, 0, 0, 0}, {3000, 1000, 20000, 10, 0, 16, 0, 0}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        result_t r = measure(&crowds[i]);
        print_result(&crowds[i], &r);
        assert_served(&r);
    }
}

static void test_half_of_a_crowd_falls_silent_and_the_other_half_does_not_notice(void **state) {
    static const measurement_t m = {10000, 2, 20000, 50, 0, 0, 50, 0};
    result_t r = measure(&m);
    (void)state;
    print_result(&m, &r);
    assert_true(r.slow <= 0.01);
    assert_served(&r);
}

/* ---- tests: a hundred thousand ---------------------------------------------------------------------------------------- */

static double work_of(uint32_t peers) {
    measurement_t m = usual;
    m.peers = peers;
    m.rounds = 10;
    return measure(&m).work;
}

static void test_a_hundred_thousand_peers_are_served_and_cost_no_more_than_a_thousand(void **state) {
    static const measurement_t crowds[] = {
        {100000, 1, 20000, 5, 0, 0, 0, 0}, {100000, 1, 2000, 4, 0, 0, 0, 0}, {100000, 1, 200000, 3, 0, 0, 0, 0}};
    double few = work_of(1000), most = 0;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        result_t r = measure(&crowds[i]);
        print_result(&crowds[i], &r);
        assert_served(&r);
        most = r.work > most ? r.work : most;
    }
    print_message("work for each reply: %.0f with 1,000 peers, at most %.0f with 100,000\n", few, most);
    if (few == 0) skip(); /* built without what counts the library's steps */
    assert_true(most <= 1.5 * few);
}

/* One pass over all connections, while the network has no time to take anything. */
static void send_to_all(void) {
    uint32_t i;
    crowd.is_running = 0;
    for (i = 0; i < crowd.peer_count; i++)
        send_request(&crowd.peers[i]);
}

static uint32_t keepalive_count(void) {
    uint32_t i, count = 0;
    for (i = 0; i < crowd.client_count; i++)
        count += crowd.clients[i].keepalives;
    return count;
}

static void test_a_message_to_each_of_a_hundred_thousand_idle_peers_is_accepted_in_one_pass(void **state) {
    static const measurement_t m = {100000, 1, 20000, 0, 0, 0, 0, 0};
    uint32_t keepalive_us = 2000000;
    (void)state;
    gather(&m);
    send_to_all();
    assert_int_equal(crowd.refused, 0);
    assert_int_equal(crowd.failed, 0);
    run_until(net.now_ns + 3 * crowd.rtt_ns);
    assert_int_equal(crowd.requests, m.peers);
    /* They die, and all of them are reported within two periods. */
    run_until(net.now_ns + NET_S);
    net_silence(crowd.server_index, 1);
    must(cci_set_opt(crowd.clients[0].endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive_us), "cci_set_opt");
    run_until(net.now_ns + 2 * keepalive_us * NET_US + 100 * NET_MS);
    assert_int_equal(keepalive_count(), m.peers);
    disperse();
}

/* ---- tests: memory ------------------------------------------------------------------------------------------------------- */

static void test_an_idle_connection_takes_256_bytes_and_one_with_traffic_a_kibibyte(void **state) {
    measurement_t m = usual;
    size_t before, idle;
    (void)state;
    m.peers = 1;
    gather(&m);
    before = server_bytes;
    assert_true(before < 1000000);
    disperse();
    m.peers = 80 * CCI__CONN_SLAB; /* whole slabs */
    gather(&m);
    idle = server_bytes;
    print_message("%.1f bytes for each idle connection\n", (double)(idle - before) / (m.peers - 1));
    send_to_all();
    run_until(net.now_ns + crowd.rtt_ns * 3 / 4); /* all requests have come, and no reply is acknowledged */
    assert_int_equal(crowd.requests, m.peers);
    print_message("%.1f bytes for each with traffic, its message excepted\n",
                  (double)(server_bytes - before) / (m.peers - 1) - sizeof(cci_rel_block_t) - sizeof(cci_rel_sent_t));
    assert_true((double)(idle - before) / (m.peers - 1) <= 256 + 8); /* and the index by address, and events */
    assert_true((double)(server_bytes - before) / (m.peers - 1) <= /* 32: the index by address, and slabs that are not full */
                1024 + 32 + sizeof(cci_rel_block_t) + sizeof(cci_rel_sent_t));
    if (sizeof(void *) == 8)
        assert_true(sizeof(cci__dconn_t) <= 256 && sizeof(cci__dconn_t) + sizeof(cci__hot_t) <= 1024);
    disperse();
}

/* ---- tests: peers that die or never acknowledge -------------------------------------------------------------------- */

static void test_a_client_with_1500_connections_is_killed_and_a_new_peer_is_served_at_once(void **state) {
    static const measurement_t m = {1501, 1, 20000, 0, 0, 0, 0, 0};
    peer_t *peer;
    uint64_t began_ns;
    (void)state;
    gather(&m); /* all of them, and one more client */
    start_talking();
    run_until(net.now_ns + 5 * crowd.rtt_ns + crowd.rtt_ns / 2);
    net_silence(crowd.clients[0].index, 1);
    run_until(net.now_ns + 5 * crowd.rtt_ns);
    peer = &crowd.peers[m.peers - 1];
    memset(peer, 0, sizeof *peer);
    peer->length = REQUEST_BYTES;
    open_client(1, m.peers - 1, 1);
    began_ns = net.now_ns;
    while (!peer->connection && net.now_ns < began_ns + NET_S)
        run_until(net.now_ns + NET_MS);
    assert_non_null(peer->connection);
    send_request(peer);
    while (peer->replies == 0 && net.now_ns < began_ns + NET_S)
        run_until(net.now_ns + NET_MS);
    print_message("a new peer is served in %u ms\n", (unsigned)((net.now_ns - began_ns) / NET_MS));
    assert_true(net.now_ns - began_ns < 100 * NET_MS);
    disperse();
}

/* Connections that are genuine as far as the protocol goes: each asks, proves its address, sends a message, and acknowledges
 * nothing. */
#define MOST_MUTE 4000u
static struct mute {
    uint64_t token; /* the server's; 0: it is not open */
    uint32_t index, number, sequence;
} mutes[MOST_MUTE];
static uint32_t mute_count, mute_address;
static int mutes_confirm; /* they answer when they are asked for a sign of life */

static void mute_asks(uint32_t i, uint64_t cookie) {
    cci_conn_t conn;
    cci_conn_request_t request;
    uint8_t bytes[CCI__REQUEST_SIZE];
    memset(&conn, 0, sizeof conn);
    memset(&request, 0, sizeof request);
    conn.index = i;
    conn.token = 0x1000000 + (uint64_t)i + ((uint64_t)(net.now_ns / NET_S / 10 + 1) << 32);
    request.cookie = cookie;
    request.max_send_size = 1400;
    request.window = 65536;
    net_speak(mute_address, crowd.server_index, bytes, cci_conn_write_request(&conn, &request, bytes));
}

static void mute_says(uint32_t i) {
    uint8_t bytes[CCI_REL_HEADER + 8 + REQUEST_BYTES];
    struct mute *mute = &mutes[i];
    memset(bytes, 0, sizeof bytes);
    cci_conn_write_header(bytes, CCI__PKT_DATA, 0, mute->index, mute->token, i, mute->number++);
    bytes[CCI_REL_HEADER] = CCI__FRAME_MESSAGE;
    bytes[CCI_REL_HEADER + 2] = REQUEST_BYTES;
    cci__store32(bytes + CCI_REL_HEADER + 4, mute->sequence++);
    net_speak(mute_address, crowd.server_index, bytes, sizeof bytes);
}

static void mute_hears(const uint8_t *bytes, uint32_t length, uint32_t from) {
    cci_conn_header_t header;
    (void)from;
    if (!cci_conn_parse(bytes, length, &header) || header.index >= mute_count)
        return;
    if (header.type == CCI__PKT_COOKIE) {
        mute_asks(header.index, cci_conn_cookie_in(&header));
    } else if (header.type == CCI__PKT_ACCEPT && mutes[header.index].token == 0) {
        mutes[header.index].token = cci__load64(bytes + 24);
        mutes[header.index].index = header.peer_index;
        mutes[header.index].number = mutes[header.index].sequence = 0;
        mute_says(header.index);
    } else if (header.type == CCI__PKT_RESET) {
        mutes[header.index].token = 0;
    } else if (header.type == CCI__PKT_CONFIRM && mutes_confirm) {
        uint8_t answer[CCI__HEADER_SIZE];
        cci_conn_write_header(answer, CCI__PKT_CONFIRMED, 0, mutes[header.index].index, mutes[header.index].token, header.index, 0);
        net_speak(mute_address, crowd.server_index, answer, sizeof answer);
    }
}

static void begin_mutes(uint32_t count, int confirm) {
    mute_address = net_speaker(mute_hears);
    mute_count = count;
    mutes_confirm = confirm;
    memset(mutes, 0, sizeof mutes);
}

/* All of them say something again, or ask for a connection. */
static void rouse_mutes(void) {
    uint32_t i;
    for (i = 0; i < mute_count; i++)
        if (mutes[i].token)
            mute_says(i);
        else
            mute_asks(i, 0);
}

static void test_two_thousand_peers_that_never_acknowledge_do_not_slow_down_another(void **state) {
    static const measurement_t m = {1, 1, 20000, 0, 0, 0, 0, 0};
    result_t r;
    uint32_t round;
    uint64_t began_ns;
    (void)state;
    gather(&m);
    begin_mutes(2000, 0);
    start_talking();
    forget_replies();
    began_ns = net.now_ns;
    for (round = 0; round < 12; round++) {
        rouse_mutes();
        run_until(net.now_ns + 12 * NET_S);
    }
    r = sum_up(0, net.now_ns - began_ns);
    print_message("beside 2,000 that never acknowledge: %.3f of its rate, worst wait %.0f ms; %u messages of theirs\n",
                  r.throughput, r.worst_rtts * (double)m.rtt_us / 1e3, (unsigned)(crowd.requests - crowd.peers[0].replies));
    assert_true(crowd.requests > 12000);
    assert_true(r.throughput >= 0.9);
    assert_true(r.worst_rtts * (double)m.rtt_us < 200000);
    disperse();
}

/* ---- tests: the memory limit ------------------------------------------------------------------------------------------- */

/* Four times as many peers as can have traffic at once: they take turns. */
static void test_at_the_memory_limit_peers_take_turns_and_nobody_is_starved(void **state) {
    static const measurement_t m = {600, 1, 20000, 1000, 1u << 19, 0, 0, 0};
    result_t r = measure(&m);
    (void)state;
    print_result(&m, &r);
    assert_int_equal(r.unanswered, 0);
    assert_true(r.jain >= 0.99);
    assert_true(r.throughput >= 0.2); /* a quarter of them at a time, less what passing on costs */
    assert_true(r.worst_rtts <= 100);
}

/* Every other peer's messages are sixteen times as long: all get as many bytes. */
static void test_at_the_memory_limit_peers_get_as_many_bytes_whatever_the_size_of_their_messages(void **state) {
    static const measurement_t m = {600, 1, 20000, 1000, 1u << 19, 0, 0, 1024};
    result_t r = measure(&m);
    (void)state;
    print_result(&m, &r);
    assert_int_equal(r.unanswered, 0);
    assert_true(r.bytes_jain >= 0.98);
    assert_true(r.worst_rtts <= 100);
}

/* Half of the peers fall silent, and there is memory for half of all: those that answer get all of it but what is kept. */
static void test_at_the_memory_limit_peers_that_do_not_answer_give_way(void **state) {
    static const measurement_t m = {600, 2, 20000, 400, 1u << 20, 0, 50, 0};
    result_t r = measure(&m);
    (void)state;
    print_result(&m, &r);
    assert_int_equal(r.unanswered, 0);
    assert_true(r.jain >= 0.98);
    assert_true(r.throughput >= 0.8);
}

/* Peers that give signs of life and acknowledge nothing get one turn in eight among them: half as many others hardly notice. */
static void test_at_the_memory_limit_peers_that_only_seem_to_answer_give_way(void **state) {
    static const measurement_t m = {200, 1, 20000, 0, 1u << 20, 0, 0, 0};
    result_t r;
    uint32_t round;
    uint64_t began_ns;
    (void)state;
    gather(&m);
    begin_mutes(400, 1);
    rouse_mutes();
    start_talking();
    run_until(net.now_ns + 2 * NET_S);
    forget_replies();
    began_ns = net.now_ns;
    for (round = 0; round < 20; round++) {
        rouse_mutes();
        run_until(net.now_ns + NET_S);
    }
    r = sum_up(0, net.now_ns - began_ns);
    print_result(&m, &r);
    assert_int_equal(r.unanswered, 0);
    assert_true(r.jain >= 0.98);
    assert_true(r.throughput >= 0.75);
    disperse();
}

/* Those that were silent get what was kept for them when they are back: nothing is lost. */
static void test_what_is_kept_for_silent_peers_at_the_memory_limit_arrives_when_they_are_back(void **state) {
    static const measurement_t m = {600, 2, 20000, 0, 1u << 20, 0, 0, 0};
    uint32_t i;
    (void)state;
    gather(&m);
    start_talking();
    run_until(net.now_ns + 3 * crowd.rtt_ns);
    net_silence(crowd.clients[0].index, 1);
    run_until(net.now_ns + 10 * NET_S);
    crowd.is_running = 0;
    net_silence(crowd.clients[0].index, 0);
    run_client(&crowd.clients[0]);
    run_until(net.now_ns + 30 * NET_S);
    for (i = 0; i < m.peers; i++)
        assert_int_equal(crowd.peers[i].began_ns, 0); /* whoever has asked has its reply */
    assert_int_equal(crowd.failed + crowd.broken, 0);
    disperse();
}

/* The server's program sends to all, four messages to each, for as long as it can, and tries again every 20 ms. Of the peers
 * that answer, from `first` on, returns the longest wait for a message. */
static uint64_t tell_all(uint32_t first, uint64_t until_ns) {
    uint64_t worst_ns = 0;
    uint32_t i, k, begin;
    for (i = first; i < crowd.peer_count; i++) {
        crowd.peers[i].told = 0;
        crowd.peers[i].told_ns = net.now_ns;
    }
    for (begin = 0; net.now_ns < until_ns; begin += BEGINS_APART) {
        for (i = 0; i < crowd.served_count; i++)
            for (k = 0; k < 4 && cci_send(crowd.served[(begin + i) % crowd.served_count], payload, LARGE_BYTES, NULL,
                                        CCI_FLAG_SILENT) == CCI_SUCCESS; k++)
                continue;
        run_server();
        run_until(net.now_ns + 20 * NET_MS);
        for (i = first; i < crowd.peer_count; i++)
            if (net.now_ns - crowd.peers[i].told_ns > worst_ns)
                worst_ns = net.now_ns - crowd.peers[i].told_ns;
    }
    return worst_ns;
}

/* A program that goes on sending to silent peers, which are more than can have traffic at once, reaches the others all the
 * same, in seconds and not when the send time-out of what it has sent to the silent ones is over. */
static void test_at_the_memory_limit_silent_peers_that_a_program_goes_on_sending_to_give_way(void **state) {
    static const measurement_t crowds[] = {
        {90, 9, 2000, 0, 1u << 18, 0, 44, 0}, {130, 13, 2000, 0, 1u << 18, 0, 93, 0}, {300, 6, 2000, 0, 1u << 18, 0, 84, 0},
        {510, 51, 2000, 0, 1u << 19, 0, 99, 0}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof crowds / sizeof crowds[0]; i++) {
        const measurement_t *m = &crowds[i];
        uint32_t k, silent = m->clients * m->silent_percent / 100, first, least = UINT32_MAX, all = 0;
        uint64_t worst_ns;
        gather(m);
        first = crowd.clients[silent].first;
        (void)tell_all(first, net.now_ns + NET_S); /* as much as possible is under way to all of them */
        for (k = 0; k < silent; k++)
            net_silence(crowd.clients[k].index, 1);
        worst_ns = tell_all(first, net.now_ns + 25 * NET_S);
        for (k = first; k < m->peers; k++) {
            all += crowd.peers[k].told;
            if (crowd.peers[k].told < least)
                least = crowd.peers[k].told;
        }
        print_message("%u silent, %u not: %u messages, %u to each at least, longest wait %u ms\n", first, m->peers - first, all,
                      least, (unsigned)(worst_ns / NET_MS));
        assert_true(worst_ns < 4 * NET_S);
        disperse();
    }
}

/* ---- tests: memory of silent peers ----------------------------------------------------------------------------------- */

/* The first client is silent, and the server writes into its memory on each of its connections. */
static struct writing {
    uint8_t here[LONG_WRITE], there[SERVED / 2][LONG_WRITE];
    cci_rma_handle_t *local, *remote;
} writing;

static void keep_quiet(void) {
    crowd.is_running = 0;
    run_until(net.now_ns + 30 * crowd.rtt_ns);
}

static void begin_writing(void) {
    uint32_t i;
    for (i = 0; i < sizeof writing.here; i++)
        writing.here[i] = (uint8_t)(i * 7 + 1);
    memset(writing.there, 0, sizeof writing.there);
    must(cci_rma_register(crowd.server, writing.here, sizeof writing.here, CCI_FLAG_READ, &writing.local), "cci_rma_register");
    must(cci_rma_register(crowd.clients[0].endpoint, writing.there, sizeof writing.there, CCI_FLAG_WRITE, &writing.remote),
         "cci_rma_register");
}

/* Writes `length` bytes on each of the first client's connections, each to a place of its own, and a second time the first
 * half of them behind a fence and with a message; the number of connections on which both were taken. */
static uint32_t write_to_first(uint32_t length) {
    uint32_t i, taken = 0;
    for (i = 0; i < crowd.served_count; i++) {
        cci_connection_t *connection = crowd.served[i];
        uint64_t to = (uint64_t)taken * LONG_WRITE;
        if (taken < SERVED / 2 && connection->context == &crowd.clients[0] &&
            cci_rma(connection, NULL, 0, writing.local, 0, writing.remote, to, length, NULL, CCI_FLAG_WRITE) == CCI_SUCCESS) {
            must(cci_rma(connection, payload, REQUEST_BYTES, writing.local, 0, writing.remote, to, length / 2, NULL,
                         CCI_FLAG_WRITE | CCI_FLAG_FENCE), "cci_rma");
            taken++;
        }
    }
    return taken;
}

/* The first client falls silent, is written to, and the others ask again; on so many connections the writes were taken. */
static uint32_t write_to_silent(uint32_t length) {
    uint32_t i, taken;
    begin_writing();
    start_talking();
    keep_quiet();
    net_silence(crowd.clients[0].index, 1);
    taken = write_to_first(length);
    assert_true(taken > 50);
    crowd.is_running = 1;
    for (i = crowd.clients[1].first; i < crowd.peer_count; i++)
        send_request(&crowd.peers[i]);
    return taken;
}

/* Half of the connections have writes to peers that are silent: those that answer get all the memory but what is kept. */
static void test_at_the_memory_limit_silent_peers_that_are_written_to_give_way(void **state) {
    static const measurement_t m = {600, 2, 20000, 0, 1u << 19, 0, 0, 0};
    uint64_t began_ns;
    result_t r;
    (void)state;
    gather(&m);
    (void)write_to_silent(1024);
    run_until(net.now_ns + 2 * NET_S);
    forget_replies();
    began_ns = net.now_ns;
    run_until(net.now_ns + 8 * NET_S);
    r = sum_up(crowd.clients[1].first, net.now_ns - began_ns);
    print_result(&m, &r);
    assert_int_equal(crowd.ended, 0); /* those writes are still under way */
    assert_int_equal(r.unanswered, 0);
    assert_true(r.jain >= 0.97);
    assert_true(r.throughput >= 0.42); /* 0.46 where nothing is written */
    disperse();
}

/* When they are back, each write that was taken completes, whole, the fenced ones behind the others. */
static void test_writes_that_were_kept_for_silent_peers_are_done_when_they_are_back(void **state) {
    static const measurement_t m = {600, 2, 20000, 0, 1u << 19, 0, 0, 0};
    uint32_t i, taken;
    (void)state;
    gather(&m);
    taken = write_to_silent(LONG_WRITE);
    run_until(net.now_ns + 10 * NET_S);
    assert_int_equal(crowd.ended, 0);
    keep_quiet();
    net_silence(crowd.clients[0].index, 0);
    run_client(&crowd.clients[0]);
    run_until(net.now_ns + 30 * NET_S);
    assert_int_equal(crowd.ended, 2 * taken);
    assert_int_equal(crowd.done, 2 * taken);
    assert_int_equal(crowd.unasked, taken);
    for (i = 0; i < taken; i++)
        assert_memory_equal(writing.there[i], writing.here, LONG_WRITE);
    assert_int_equal(crowd.failed + crowd.broken, 0);
    disperse();
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------- */

static int print_table(void) {
    static const uint32_t peers[] = {1000, 1020, 1500, 3000, 10000, 100000}, rtts_us[] = {2000, 20000, 200000};
    uint32_t i, k;
    printf("| peers | round trip | round trips, of the ideal | Jain | longest wait, round trips |\n| ---: | ---: | ---: | ---: | ---: |\n");
    for (i = 0; i < sizeof peers / sizeof peers[0]; i++)
        for (k = 0; k < sizeof rtts_us / sizeof rtts_us[0]; k++) {
            measurement_t m = usual;
            result_t r;
            m.peers = peers[i];
            m.rtt_us = rtts_us[k];
            m.rounds = peers[i] > 10000 ? 5 : 20;
            r = measure(&m);
            printf("| %u | %u ms | %.3f | %.4f | %.2f |\n", m.peers, m.rtt_us / 1000, r.throughput, r.jain, r.worst_rtts);
        }
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_peer_of_a_crowd_is_served),
        cmocka_unit_test(test_half_of_a_crowd_falls_silent_and_the_other_half_does_not_notice),
        cmocka_unit_test(test_a_hundred_thousand_peers_are_served_and_cost_no_more_than_a_thousand),
        cmocka_unit_test(test_a_message_to_each_of_a_hundred_thousand_idle_peers_is_accepted_in_one_pass),
        cmocka_unit_test(test_an_idle_connection_takes_256_bytes_and_one_with_traffic_a_kibibyte),
        cmocka_unit_test(test_a_client_with_1500_connections_is_killed_and_a_new_peer_is_served_at_once),
        cmocka_unit_test(test_two_thousand_peers_that_never_acknowledge_do_not_slow_down_another),
        cmocka_unit_test(test_at_the_memory_limit_peers_take_turns_and_nobody_is_starved),
        cmocka_unit_test(test_at_the_memory_limit_peers_get_as_many_bytes_whatever_the_size_of_their_messages),
        cmocka_unit_test(test_at_the_memory_limit_peers_that_do_not_answer_give_way),
        cmocka_unit_test(test_at_the_memory_limit_peers_that_only_seem_to_answer_give_way),
        cmocka_unit_test(test_what_is_kept_for_silent_peers_at_the_memory_limit_arrives_when_they_are_back),
        cmocka_unit_test(test_at_the_memory_limit_silent_peers_that_a_program_goes_on_sending_to_give_way),
        cmocka_unit_test(test_at_the_memory_limit_silent_peers_that_are_written_to_give_way),
        cmocka_unit_test(test_writes_that_were_kept_for_silent_peers_are_done_when_they_are_back),
    };
    if (argc >= 2 && strcmp(argv[1], "try") == 0)
        return try_words(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "table") == 0)
        return print_table();
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
