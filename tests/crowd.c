/* crowd.c - a server and its crowd: any number of peers, each of them served; peers that fall silent, die, or never acknowledge.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     crowd                  tests: the bounds that the library keeps to
 *     crowd table            what the crowds of the README are measured with, as a table
 *     crowd try WORDS...     one crowd: peers= clients= rtt= (µs) rounds= memory= (bytes) buffers= silent= (%)
 *
 * The whole library runs over the network of netsim.h, in virtual time: figures are the same on every machine, and no bound
 * depends on how fast one is. Work is what the library's compiled code counts with -fsanitize-coverage=trace-pc: the
 * edges that it passes inside the server's calls.
 *
 * A crowd is one server and some client programs, each of which has its part of the peers: a peer is a connection that sends
 * a request of 64 bytes, waits for the reply, and sends the next. */
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

#include "netsim.h"

#define REQUEST_BYTES 64u
#define MOST_CLIENTS 4096u
#define CONNECTING 2048u /* connects under way at once */

/* ---- work ------------------------------------------------------------------------------------------------------------ */

static uint64_t work;
static int work_is_counted;
#ifdef CROWD_COUNTS_WORK
#ifdef __clang__
#define UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define UNCOUNTED __attribute__((no_sanitize_coverage))
#endif
void __sanitizer_cov_trace_pc(void);
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
    struct reply *next;
} reply_t;

static struct crowd {
    cci_endpoint_t *server;
    uint32_t server_index;
    char *uri;
    client_t clients[MOST_CLIENTS];
    uint32_t client_count, peer_count, connected, failed;
    peer_t *peers;
    reply_t *unsent, **unsent_tail;
    uint64_t refused;  /* sends that got CCI_ENOBUFS */
    uint64_t broken;   /* replies to connections that had ended */
    uint64_t requests; /* that the server got */
    uint64_t rtt_ns;
    int is_running, is_answering;
} crowd;

static void must(int status, const char *what) {
    if (status == CCI_SUCCESS)
        return;
    fprintf(stderr, "crowd: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    abort();
}

static const uint8_t payload[REQUEST_BYTES];

static void send_request(peer_t *peer) {
    int status = cci_send(peer->connection, payload, sizeof payload, NULL, CCI_FLAG_SILENT);
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
    if (peer->began_ns == 0)
        return;
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
        must(cci_connect(client->endpoint, crowd.uri, NULL, 0, CCI_CONN_ATTR_RO, peer, 0, NULL), "cci_connect");
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
static int send_reply(cci_connection_t *connection) {
    int status = cci_send(connection, payload, sizeof payload, NULL, CCI_FLAG_SILENT);
    if (status == CCI_ENOBUFS) {
        crowd.refused++;
        return 0;
    }
    crowd.broken += status != CCI_SUCCESS;
    return 1;
}

static void keep_reply(cci_connection_t *connection) {
    reply_t *reply = (reply_t *)calloc(1, sizeof *reply);
    if (!reply)
        abort();
    reply->connection = connection;
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
        if (!send_reply(reply->connection))
            keep_reply(reply->connection);
        free(reply);
    }
}

static void take_server_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        must(cci_accept(event, NULL), "cci_accept");
        break;
    case CCI_EVENT_ACCEPT:
        break;
    case CCI_EVENT_RECV:
        crowd.requests++;
        if (!send_reply(event->recv.connection))
            keep_reply(event->recv.connection);
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
                run_client(&crowd.clients[awake->index - crowd.server_index - 1]);
        }
    }
}

/* ---- a crowd ------------------------------------------------------------------------------------------------------------- */

typedef struct measurement {
    uint32_t peers, clients, rtt_us, rounds, memory, buffers, silent_percent;
} measurement_t;

typedef struct result {
    double jain, throughput; /* of the ideal */
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

static uint64_t live_bytes, most_bytes;

static void *counted_alloc(void *user, size_t size) {
    size_t *block = (size_t *)malloc(size + 16);
    (void)user;
    if (!block)
        return NULL;
    block[0] = size;
    live_bytes += size;
    most_bytes = live_bytes > most_bytes ? live_bytes : most_bytes;
    return (uint8_t *)block + 16;
}

static void counted_release(void *user, void *pointer) {
    (void)user;
    if (!pointer)
        return;
    live_bytes -= *(size_t *)(void *)((uint8_t *)pointer - 16);
    free((uint8_t *)pointer - 16);
}

static void gather(const measurement_t *m) {
    cci_setup_t setup;
    cci_os_handle_t fd;
    uint32_t caps, i;
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
    crowd.peers = (peer_t *)calloc(m->peers, sizeof *crowd.peers);
    crowd.peer_count = m->peers;
    crowd.client_count = m->clients;
    net.next_side = NET_RIGHT;
    net.memory_limit = m->memory;
    must(cci_create_endpoint(NULL, 0, &crowd.server, &fd), "cci_create_endpoint");
    must(cci_get_opt(crowd.server, CCI_OPT_ENDPT_URI, &crowd.uri), "cci_get_opt");
    net.next_side = NET_LEFT;
    net.memory_limit = 0;
    for (i = 0; i < m->clients; i++) {
        client_t *client = &crowd.clients[i];
        must(cci_create_endpoint(NULL, 0, &client->endpoint, &fd), "cci_create_endpoint");
        client->index = net.endpoint_count - 1;
        client->first = (uint32_t)((uint64_t)m->peers * i / m->clients);
        client->count = (uint32_t)((uint64_t)m->peers * (i + 1) / m->clients) - client->first;
        connect_more(client);
        run_client(client);
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
    crowd.refused = 0;
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
    double sum = 0, squares = 0, worst_ns = 0, slow = 0;
    uint32_t i, count = crowd.peer_count - first;
    memset(&r, 0, sizeof r);
    for (i = first; i < crowd.peer_count; i++) {
        const peer_t *peer = &crowd.peers[i];
        uint64_t waits_ns = peer->began_ns ? net.now_ns - peer->began_ns : 0;
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

static const measurement_t usual = {1000, 1, 20000, 20, 0, 0, 0};

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
    else return 0;
#undef IS
    return 1;
}

static void print_result(const measurement_t *m, const result_t *r) {
    printf("%u peers, %u clients, %u us: jain %.4f throughput %.3f worst %.2f RTT slow %.4f unanswered %u refused %u work %.0f most %.1f MB\n",
           m->peers, m->clients, m->rtt_us, r->jain, r->throughput, r->worst_rtts, r->slow, r->unanswered,
           (unsigned)r->refused, r->work, (double)most_bytes / 1e6);
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

int main(int argc, char **argv) {
    if (argc >= 2 && strcmp(argv[1], "try") == 0)
        return try_words(argc - 2, argv + 2);
    return 2;
}
