/* netsim.c - how well bad networks are used: goodput under loss, latency under loss, shares of a bottleneck.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     netsim                 tests: the bounds that the library keeps to
 *     netsim fast            tests: lines of 1 and 10 Gbit/s, with the default counts of buffers
 *     netsim plots           the figures that tests/bench/netplot.sh draws, as CSV
 *     netsim try WORDS...    one measurement: rate= (Mbit/s) rtt= (µs) queue= (% of what is under way) loss= (1/1,000,000)
 *                            flows= newreno= cubic= bytes= depth= back= (kbit/s)
 *                            kind=ro|ru|write|read|pingpong seconds= seed= jitter= (µs) buffers=
 *                            late= (1/1,000,000) lateby= (µs) hz= (calls of the sender's program) congestion= trace=1
 *
 * The whole library runs over the network of netsim.h, in virtual time: figures are the same on every machine, and no bound
 * depends on how fast one is. */
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

#define MAX_FLOWS 32
#define MESSAGE_BYTES 1024u
#define MAX_MESSAGE_BYTES 8192u
#define PING_BYTES 64u
#define RMA_BYTES (256u * 1024u)
#define RMA_DEPTH 16u            /* under way at once */
#define RMA_DEPTH_FAR 1024u      /* where more bytes are under way than these have */
#define MAX_PINGS 40000

enum kind { STREAM_RO, STREAM_RU, WRITES, READS, PINGPONG };

typedef struct measurement {
    uint64_t back_kbit; /* the line from the right; 0: as fast as the other */
    uint64_t seed, rate_mbit, rtt_us, loss_per_million, jitter_us;
    uint64_t late_us;                           /* of a share of the packets, at most */
    uint32_t late_per_million, calls_per_second; /* 0: our sender's program sleeps on its handle */
    uint32_t queue_percent, flows, newreno, cubic, buffers;
    int has_codel, ecn; /* CoDel keeps the queues short; our endpoints use codepoints */
    enum kind kind;
    double warm_up_s, seconds;
    double send_timeout_s; /* 0: the default */
    const char *congestion;
    uint32_t bytes, depth; /* of a message, 0: MESSAGE_BYTES; operations on memory at once, 0: RMA_DEPTH */
    const char *trace; /* NULL, or what begins each line that tells the flows' rates every fifth of a second */
} measurement_t;

typedef struct result {
    double goodput[MAX_FLOWS + NET_TCPS]; /* bytes per second: ours first, then NewReno-like, then CUBIC-like ones */
    uint32_t count;
    double total, jain;
    double used, queue; /* shares of the bottleneck's rate and of its queue, on average */
    double dropped;     /* share of the packets that the queue dropped */
    double back;        /* bytes on the way back, as a share of those that they acknowledge */
    double marked;      /* share of those that it marked instead */
    uint64_t again;     /* packets that ours sent once more */
    uint64_t lost;      /* packets that the path lost on the way to the right */
    uint32_t pings;
} result_t;

/* Ours: the sender or client on the left, the other on the right. */
typedef struct flow {
    enum kind kind;
    cci_endpoint_t *end[2];
    cci_connection_t *connection;
    cci_rma_handle_t *memory[2];
    uint8_t *bytes[2];
    uint32_t message_bytes, depth;
    uint32_t under_way, first; /* first: index of its left endpoint in the network */
    uint64_t received, began_ns;
    uint64_t call_ns; /* when the sender's program looks again, if it does so at fixed times */
} flow_t;

static flow_t flows[MAX_FLOWS];
static uint32_t flow_count;
static uint64_t call_period_ns; /* 0: programs sleep on their handles */
static uint64_t pings_ns[MAX_PINGS];
static uint32_t ping_count;

static void must(int status, const char *what) {
    if (status == CCI_SUCCESS)
        return;
    fprintf(stderr, "netsim: %s: %s\n", what, cci_strerror(NULL, (cci_status_t)status));
    abort();
}

/* ---- the programs at both ends ------------------------------------------------------------------------------------------- */

static void send_more(flow_t *flow) {
    static const uint8_t message[MAX_MESSAGE_BYTES];
    int status = CCI_SUCCESS;
    if (flow->kind == PINGPONG) {
        flow->began_ns = net.now_ns;
        must(cci_send(flow->connection, message, PING_BYTES, NULL, CCI_FLAG_SILENT), "cci_send");
        return;
    }
    while (status == CCI_SUCCESS && (flow->kind <= STREAM_RU || flow->under_way < flow->depth)) {
        if (flow->kind <= STREAM_RU)
            status = cci_send(flow->connection, message, flow->message_bytes, NULL, 0);
        else
            status = cci_rma(flow->connection, NULL, 0, flow->memory[0], 0, flow->memory[1], 0, RMA_BYTES, NULL,
                             flow->kind == WRITES ? CCI_FLAG_WRITE : CCI_FLAG_READ);
        flow->under_way += status == CCI_SUCCESS;
    }
    if (status != CCI_ENOBUFS)
        must(status, "sending");
}

static void take_ping(flow_t *flow, int side, const cci_event_recv_t *message) {
    if (side == NET_RIGHT) {
        must(cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT), "answering");
        return;
    }
    if (ping_count < MAX_PINGS)
        pings_ns[ping_count++] = net.now_ns - flow->began_ns;
    send_more(flow);
}

static void take_event(flow_t *flow, int side, cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        must(cci_accept(event, NULL), "cci_accept");
        break;
    case CCI_EVENT_ACCEPT:
        must((int)event->accept.status, "accepting");
        break;
    case CCI_EVENT_CONNECT:
        must((int)event->connect.status, "connecting");
        flow->connection = event->connect.connection;
        send_more(flow);
        break;
    case CCI_EVENT_RECV:
        flow->received += event->recv.len;
        if (flow->kind == PINGPONG)
            take_ping(flow, side, &event->recv);
        break;
    case CCI_EVENT_SEND:
        must((int)event->send.status, "a completion");
        flow->under_way--;
        if (flow->kind > STREAM_RU)
            flow->received += RMA_BYTES;
        send_more(flow);
        break;
    default:
        must(CCI_ERROR, "an unexpected event");
    }
    must(cci_return_event(event), "cci_return_event");
}

/* A program that was woken, or whose time has come, takes all events that there are, and sleeps when it finds none. One that
 * polls (`fast`: at 10 Gbit/s) finds none four times before it has nothing to do. */
static int vain_looks = 1;

static void poll_end(flow_t *flow, int side) {
    int empty = 0;
    while (empty < vain_looks) {
        cci_event_t *event;
        if (cci_get_event(flow->end[side], &event) == CCI_SUCCESS) {
            empty = 0;
            take_event(flow, side, event);
        } else {
            empty++;
        }
    }
}

static void open_flow(const measurement_t *m) {
    flow_t *flow = &flows[flow_count++];
    cci_conn_attribute_t attribute = m->kind == STREAM_RU ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO;
    cci_os_handle_t fd;
    char *uri;
    int side;
    memset(flow, 0, sizeof *flow);
    flow->kind = m->kind;
    flow->message_bytes = m->bytes > 0 ? m->bytes : MESSAGE_BYTES;
    flow->depth = m->depth > 0 ? m->depth : RMA_DEPTH;
    flow->first = net.endpoint_count;
    flow->call_ns = net.now_ns;
    for (side = 0; side < 2; side++) {
        net.next_side = side;
        must(cci_create_endpoint(NULL, 0, &flow->end[side], side == NET_LEFT && call_period_ns > 0 ? NULL : &fd),
             "cci_create_endpoint");
        if (m->send_timeout_s > 0) {
            uint32_t timeout_us = (uint32_t)(m->send_timeout_s * 1e6);
            must(cci_set_opt(flow->end[side], CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us), "cci_set_opt");
        }
        flow->bytes[side] = (uint8_t *)calloc(1, RMA_BYTES);
        must(cci_rma_register(flow->end[side], flow->bytes[side], RMA_BYTES, CCI_FLAG_READ | CCI_FLAG_WRITE,
                              &flow->memory[side]), "cci_rma_register");
    }
    must(cci_get_opt(flow->end[NET_RIGHT], CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
    must(cci_connect(flow->end[NET_LEFT], uri, NULL, 0, attribute, NULL, 0, NULL), "cci_connect");
    poll_end(flow, NET_LEFT);
    free(uri);
}

/* A program that sleeps on its handle looks when that wakes it, one with a beat of its own when it has come. */
static int looks(flow_t *flow, int side) {
    if (call_period_ns == 0 || side == NET_RIGHT)
        return net_awake(flow->first + (uint32_t)side);
    if (net.now_ns < flow->call_ns)
        return 0;
    flow->call_ns += call_period_ns;
    return 1;
}

static uint64_t next_call_ns(uint64_t until_ns) {
    uint32_t i;
    for (i = 0; i < flow_count && call_period_ns > 0; i++)
        if (flows[i].call_ns < until_ns)
            until_ns = flows[i].call_ns;
    return until_ns;
}

static void run_until(uint64_t until_ns) {
    while (net.now_ns < until_ns) {
        uint32_t i;
        net_advance(next_call_ns(until_ns));
        for (i = 0; i < flow_count; i++) {
            int side;
            for (side = 0; side < 2; side++)
                if (looks(&flows[i], side))
                    poll_end(&flows[i], side);
        }
    }
}

/* ---- one measurement ------------------------------------------------------------------------------------------------------- */

static int seeded_random(void *user, void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (count-- > 0)
        *at++ = (uint8_t)(net_random() >> 32);
    return 0;
}

static void counters(uint64_t *counts) {
    uint32_t i;
    for (i = 0; i < flow_count; i++)
        counts[i] = flows[i].received;
    for (i = 0; i < NET_TCPS; i++)
        if (net_tcp[i].active)
            counts[flow_count + i] = net_tcp[i].delivered;
}

static void trace(const measurement_t *m, double seconds) {
    uint64_t before[MAX_FLOWS + NET_TCPS], after[MAX_FLOWS + NET_TCPS];
    uint64_t step_ns = NET_S / 5, begin_ns = net.now_ns, end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint32_t i;
    counters(before);
    while (net.now_ns < end_ns) {
        run_until(net.now_ns + step_ns);
        counters(after);
        printf("%s,%.1f", m->trace, (double)(net.now_ns - begin_ns) * 1e-9);
        for (i = 0; i < flow_count + m->newreno + m->cubic; i++)
            printf(",%.2f", (double)(after[i] - before[i]) * 5 * 8e-6);
        printf("\n");
        memcpy(before, after, sizeof before);
    }
}

static void set_up(const measurement_t *m) {
    cci_setup_t setup;
    uint32_t caps, i;
    net_reset(m->seed, m->rate_mbit * 125000, m->rtt_us * NET_US, m->queue_percent, (uint32_t)m->loss_per_million);
    if (m->back_kbit > 0) {
        net.line[NET_RIGHT].queue_bytes = net.line[NET_RIGHT].queue_bytes * m->back_kbit / 1000 / m->rate_mbit;
        net.line[NET_RIGHT].bytes_per_second = m->back_kbit * 125;
    }
    net.jitter_ns = m->jitter_us * NET_US;
    net.late_ns = m->late_us * NET_US;
    net.late_per_million = m->late_per_million;
    call_period_ns = m->calls_per_second == 0 ? 0 : NET_S / m->calls_per_second;
    net.buffers = m->buffers;
    net.max_send_size = m->bytes > NET_MTU ? m->bytes : 0;
    net.congestion = m->congestion;
    net.ecn = (uint32_t)m->ecn;
    net.line[NET_LEFT].has_codel = net.line[NET_RIGHT].has_codel = m->has_codel;
    memset(&setup, 0, sizeof setup);
    setup.random = seeded_random;
    setup.transports = net_transports;
    must(cci_setup(&setup), "cci_setup");
    must(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    flow_count = ping_count = 0;
    for (i = 0; i < m->flows; i++) { /* not all at the same moment */
        open_flow(m);
        run_until(net.now_ns + m->rtt_us * NET_US * 3 + net_below(m->rtt_us) * NET_US);
    }
    for (i = 0; i < m->newreno + m->cubic; i++)
        net_tcp_start((int)i, i >= m->newreno, net.now_ns + net_below(10 * m->rtt_us) * NET_US);
}

static void tear_down(void) {
    uint32_t i;
    for (i = 0; i < flow_count; i++) {
        must(cci_destroy_endpoint(flows[i].end[0]), "cci_destroy_endpoint");
        must(cci_destroy_endpoint(flows[i].end[1]), "cci_destroy_endpoint");
        free(flows[i].bytes[0]);
        free(flows[i].bytes[1]);
    }
    must(cci_finalize(), "cci_finalize");
}

/* Packets that our senders sent again since they began, and pieces of reads that were asked for again. */
static uint64_t sent_again(void) {
    uint64_t count = 0;
    uint32_t i;
    for (i = 0; i < flow_count; i++) {
        const cci__dgram_t *end = (const cci__dgram_t *)(const void *)flows[i].end[NET_LEFT];
        count += end->pool.retransmitted + end->rma.reads_again;
    }
    return count;
}

static result_t measure(const measurement_t *m) {
    uint64_t before[MAX_FLOWS + NET_TCPS], after[MAX_FLOWS + NET_TCPS];
    uint64_t again;
    double squares = 0;
    const net_line_t *line;
    result_t r;
    uint32_t i;
    memset(&r, 0, sizeof r);
    set_up(m);
    if (m->trace) {
        trace(m, m->seconds);
    } else {
        run_until(net.now_ns + (uint64_t)(m->warm_up_s * 1e9));
        net_forget();
        again = sent_again();
        ping_count = 0;
        counters(before);
        run_until(net.now_ns + (uint64_t)(m->seconds * 1e9));
        counters(after);
        r.count = flow_count + m->newreno + m->cubic;
        for (i = 0; i < r.count; i++) {
            r.goodput[i] = (double)(after[i] - before[i]) / m->seconds;
            r.total += r.goodput[i];
            squares += r.goodput[i] * r.goodput[i];
        }
        r.jain = squares > 0 ? r.total * r.total / (r.count * squares) : 0;
        line = &net.line[m->kind == READS ? NET_RIGHT : NET_LEFT];
        r.used = (double)line->bytes / m->seconds / (double)line->bytes_per_second;
        r.queue = line->packets == 0 ? 0 : line->queued_bytes / (double)line->packets / (double)line->queue_bytes;
        r.dropped = line->packets == 0 ? 0 : (double)line->dropped / (double)line->packets;
        r.back = (double)net.line[NET_LEFT].bytes / (double)net.line[NET_RIGHT].bytes;
        r.back = m->kind == READS ? r.back : 1 / r.back;
        r.marked = line->packets == 0 ? 0 : (double)line->marked / (double)line->packets;
        r.again = sent_again() - again;
        r.lost = line->lost + line->dropped;
        r.pings = ping_count;
    }
    tear_down();
    return r;
}

static int compare_times(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The time that this share of the pings of the last measurement took at most. */
static double percentile_ns(double share) {
    if (ping_count == 0)
        return 0;
    qsort(pings_ns, ping_count, sizeof pings_ns[0], compare_times);
    return (double)pings_ns[(uint32_t)((double)(ping_count - 1) * share)];
}

static const measurement_t usual = {0, 1, 100, 4000, 0, 0, 0, 0, 0, 100, 1, 0, 0, 4096, 0, 0, STREAM_RO, 2, 10, 0, NULL, 0, 0, NULL};

/* ---- one measurement by hand --------------------------------------------------------------------------------------------- */

static int set_word(measurement_t *m, const char *word) {
    static const char *const kinds[] = {"ro", "ru", "write", "read", "pingpong"};
    const char *value = strchr(word, '=');
    double number;
    int i;
    if (value == NULL)
        return 0;
    number = atof(++value);
#define IS(name) (strncmp(word, (name), sizeof(name) - 1) == 0 && word[sizeof(name) - 1] == '=')
    if (IS("back")) m->back_kbit = (uint64_t)number;
    else if (IS("rate")) m->rate_mbit = (uint64_t)number;
    else if (IS("rtt")) m->rtt_us = (uint64_t)number;
    else if (IS("queue")) m->queue_percent = (uint32_t)number;
    else if (IS("loss")) m->loss_per_million = (uint64_t)number;
    else if (IS("jitter")) m->jitter_us = (uint64_t)number;
    else if (IS("bytes")) m->bytes = (uint32_t)number;
    else if (IS("depth")) m->depth = (uint32_t)number;
    else if (IS("late")) m->late_per_million = (uint32_t)number;
    else if (IS("lateby")) m->late_us = (uint64_t)number;
    else if (IS("hz")) m->calls_per_second = (uint32_t)number;
    else if (IS("flows")) m->flows = (uint32_t)number;
    else if (IS("newreno")) m->newreno = (uint32_t)number;
    else if (IS("cubic")) m->cubic = (uint32_t)number;
    else if (IS("buffers")) m->buffers = (uint32_t)number;
    else if (IS("seconds")) m->seconds = number;
    else if (IS("warm")) m->warm_up_s = number;
    else if (IS("seed")) m->seed = (uint64_t)number;
    else if (IS("trace")) m->trace = value;
    else if (IS("congestion")) m->congestion = value;
    else if (IS("kind")) {
        for (i = 0; i < 5; i++)
            if (strcmp(kinds[i], value) == 0)
                m->kind = (enum kind)i;
    } else return 0;
#undef IS
    return 1;
}

static int try_words(int count, char **words) {
    measurement_t m = usual;
    result_t r;
    uint32_t i;
    while (count-- > 0)
        if (!set_word(&m, *words++)) {
            fprintf(stderr, "netsim: what is %s?\n", words[-1]);
            return 2;
        }
    r = measure(&m);
    if (m.trace)
        return 0;
    for (i = 0; i < r.count; i++)
        printf("%.2f ", r.goodput[i] * 8e-6);
    printf("Mbit/s jain %.3f used %.3f queue %.2f dropped %.4f back %.4f lost %u again %u", r.jain, r.used, r.queue, r.dropped, r.back,
           (unsigned)r.lost, (unsigned)r.again);
    if (r.pings > 0)
        printf(" pings %u p50 %.3f p90 %.3f p98 %.3f p99 %.3f p99.9 %.3f RTT", (unsigned)r.pings,
               percentile_ns(.5) / 1e3 / (double)m.rtt_us, percentile_ns(.9) / 1e3 / (double)m.rtt_us,
               percentile_ns(.98) / 1e3 / (double)m.rtt_us, percentile_ns(.99) / 1e3 / (double)m.rtt_us,
               percentile_ns(.999) / 1e3 / (double)m.rtt_us);
    printf("\n");
    return 0;
}

/* ---- the figures of the plots ---------------------------------------------------------------------------------------------- */

static void plot_goodput(void) {
    static const uint32_t losses[] = {0, 1000, 3000, 10000, 20000, 30000, 50000, 70000, 100000, 150000};
    static const struct {
        const char *name, *congestion;
        enum kind kind;
    } series[] = {{"messages", "discern", STREAM_RO}, {"writes", "discern", WRITES}, {"reads", "discern", READS},
                  {"newreno", "newreno", STREAM_RO}};
    uint32_t i, k;
    for (k = 0; k < sizeof series / sizeof series[0]; k++)
        for (i = 0; i < sizeof losses / sizeof losses[0]; i++) {
            measurement_t m = usual;
            m.kind = series[k].kind;
            m.congestion = series[k].congestion;
            m.loss_per_million = losses[i];
            printf("goodput,%s,%g,%.3f\n", series[k].name, losses[i] / 1e4, measure(&m).total * 8e-6);
        }
}

static void plot_latency(void) {
    static const uint32_t losses[] = {0, 10000, 50000};
    static const double shares[] = {.5, .8, .9, .95, .97, .98, .99, .995, .998, .999};
    uint32_t i, k;
    for (i = 0; i < 3; i++) {
        measurement_t m = usual;
        m.kind = PINGPONG;
        m.loss_per_million = losses[i];
        m.seconds = 100;
        (void)measure(&m);
        for (k = 0; k < sizeof shares / sizeof shares[0]; k++)
            printf("latency,%g,%g,%.3f\n", losses[i] / 1e4, shares[k] * 100,
                   percentile_ns(shares[k]) / 1e3 / (double)m.rtt_us);
    }
}

static void plot_shares(void) {
    static const char *const names[] = {"shares,newreno", "shares,cubic", "shares,ours"};
    uint32_t i;
    for (i = 0; i < 3; i++) {
        measurement_t m = usual;
        m.newreno = i == 0;
        m.cubic = i == 1;
        m.flows = i == 2 ? 2 : 1;
        m.seconds = 15;
        m.trace = names[i];
        (void)measure(&m);
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------ */

#define SEEDS 2u

/* Goodput at this loss must be at least `least` of that without loss, on a line of one's own. */
static void hold(measurement_t m, uint32_t loss_per_million, double least) {
    m.congestion = "discern";
    for (m.seed = 1; m.seed <= SEEDS; m.seed++) {
        double clean, lossy;
        m.loss_per_million = 0;
        clean = measure(&m).total;
        m.loss_per_million = loss_per_million;
        lossy = measure(&m).total;
        printf("kind %d, %u Mbit/s, %.1f ms, loss %.1f %%, seed %u: %.1f Mbit/s of %.1f: %.3f\n", (int)m.kind,
               (unsigned)m.rate_mbit, (double)m.rtt_us / 1e3, loss_per_million / 1e4, (unsigned)m.seed, lossy * 8e-6,
               clean * 8e-6, lossy / clean);
        assert_true(clean * 8 > 0.85 * 1e6 * (double)m.rate_mbit);
        if (lossy < least * clean)
            fail_msg("%.3f of the goodput without loss is less than %.2f", lossy / clean, least);
    }
}

static measurement_t path(enum kind kind, uint32_t rate_mbit, uint32_t rtt_us) {
    measurement_t m = usual;
    m.kind = kind;
    m.rate_mbit = rate_mbit;
    m.rtt_us = rtt_us;
    m.seconds = rtt_us > 10000 ? 10 : 4;
    m.warm_up_s = rtt_us > 10000 ? 4 : 1;
    m.buffers = rtt_us > 50000 || rate_mbit > 500 ? 16384 : 4096;
    return m;
}

static void test_messages(void **state) {
    (void)state;
    hold(path(STREAM_RO, 100, 4000), 10000, 0.95);
    hold(path(STREAM_RO, 100, 4000), 50000, 0.90);
    hold(path(STREAM_RU, 100, 4000), 10000, 0.95);
    hold(path(STREAM_RU, 100, 4000), 50000, 0.90);
}

static void test_messages_fast(void **state) {
    (void)state;
    hold(path(STREAM_RO, 1000, 4000), 10000, 0.95);
    hold(path(STREAM_RO, 1000, 4000), 50000, 0.90);
}

static void test_messages_far(void **state) {
    (void)state;
    hold(path(STREAM_RO, 100, 20000), 10000, 0.95);
    hold(path(STREAM_RO, 100, 20000), 50000, 0.90);
    hold(path(STREAM_RO, 100, 100000), 10000, 0.95);
    hold(path(STREAM_RO, 100, 100000), 50000, 0.90);
}

static void test_writes(void **state) {
    (void)state;
    hold(path(WRITES, 100, 4000), 10000, 0.95);
    hold(path(WRITES, 100, 4000), 50000, 0.90);
    hold(path(WRITES, 100, 20000), 10000, 0.95);
}

/* Here a loss costs more: the requests are lost too, and one request asks for many packets. */
static void test_reads(void **state) {
    (void)state;
    hold(path(READS, 100, 4000), 10000, 0.95);
    hold(path(READS, 100, 4000), 50000, 0.90);
    hold(path(READS, 100, 20000), 10000, 0.95);
}

/* On a short path four packets fill the line and four more the queue, so a queue that overflows costs too. */
static void test_short_path(void **state) {
    static const enum kind kinds[] = {STREAM_RO, WRITES, READS};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        hold(path(kinds[i], 100, 400), 10000, 0.90);
        hold(path(kinds[i], 100, 400), 50000, 0.80);
    }
}

static void answer_within(uint32_t rtt_us, uint32_t jitter_us, uint32_t loss_per_million, double round_trips) {
    measurement_t m = path(PINGPONG, 100, rtt_us);
    m.loss_per_million = loss_per_million;
    m.jitter_us = jitter_us;
    m.seconds = (double)rtt_us * 5e-3; /* five thousand of them */
    for (m.seed = 1; m.seed <= SEEDS; m.seed++) {
        double mean_rtt_ns = ((double)rtt_us + (double)jitter_us) * 1e3, p99;
        (void)measure(&m);
        p99 = percentile_ns(.99) / mean_rtt_ns;
        printf("ping-pong, %.1f ms, jitter %.1f ms, loss %.1f %%, seed %u: 99 of 100 of %u within %.3f round-trips\n", rtt_us / 1e3,
               jitter_us / 1e3, loss_per_million / 1e4, (unsigned)m.seed, (unsigned)ping_count, p99);
        assert_true(ping_count > 3000);
        if (p99 >= round_trips)
            fail_msg("%.3f round-trips are not less than %.1f", p99, round_trips);
    }
}

static void test_answers(void **state) {
    (void)state;
    answer_within(4000, 0, 0, 1.05);
    answer_within(4000, 0, 10000, 2.2);
    answer_within(20000, 0, 10000, 2.5);
    answer_within(100000, 0, 10000, 2.5);
}

static void test_answers_jitter(void **state) {
    (void)state;
    answer_within(4000, 400, 10000, 2.5);
    answer_within(20000, 2000, 10000, 2.5);
}

static void share(measurement_t m) {
    for (m.seed = 1; m.seed <= SEEDS; m.seed++) {
        result_t r = measure(&m);
        uint32_t i;
        printf("queue %.1f, ours and %u NewReno-like, %u CUBIC-like, seed %u:", m.queue_percent / 100., (unsigned)m.newreno,
               (unsigned)m.cubic, (unsigned)m.seed);
        for (i = 0; i < r.count; i++)
            printf(" %.1f", r.goodput[i] * 8e-6);
        printf(" Mbit/s, Jain %.3f, line used %.3f, queue %.2f full, dropped %.4f\n", r.jain, r.used, r.queue, r.dropped);
        assert_true(r.used > 0.95);
        assert_true(r.dropped < 0.02);
        if (r.jain < 0.9)
            fail_msg("Jain's index is %.3f", r.jain);
    }
}

static void share_with(uint32_t newreno, uint32_t cubic, uint32_t ours) {
    static const uint32_t queues[] = {30, 50, 100, 200};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        measurement_t m = usual;
        m.queue_percent = queues[i];
        m.newreno = newreno;
        m.cubic = cubic;
        m.flows = ours;
        m.warm_up_s = 3;
        m.seconds = 10;
        share(m);
    }
}

static void test_fair_to_newreno(void **state) {
    (void)state;
    share_with(1, 0, 1);
    share_with(3, 0, 1);
}

/* ---- the default: beside TCP's CUBIC, alone, and where packets are lost by chance; the same with ten seeds ---- */

#define MANY_SEEDS 10u
static const uint32_t queues_percent[] = {2, 10, 50, 100, 200};

typedef struct figures {
    double sum, least, most;
    uint32_t count;
} figures_t;

static void add_figure(figures_t *figures, double figure) {
    figures->least = figures->count == 0 || figure < figures->least ? figure : figures->least;
    figures->most = figures->count == 0 || figure > figures->most ? figure : figures->most;
    figures->sum += figure;
    figures->count++;
}

static double mean(const figures_t *figures) {
    return figures->sum / figures->count;
}

/* Our rate as a multiple of that of one of the others, which are CUBIC-like. */
static void share_beside(uint32_t cubic, uint32_t queue_percent) {
    measurement_t m = path(STREAM_RO, cubic < 16 ? 50 : 100, 20000);
    uint32_t seeds = cubic == 1 && queue_percent < 5 ? 100 : MANY_SEEDS; /* two flows and a queue of some packets: chance */
    uint32_t little = 0;
    figures_t multiple, used;
    memset(&multiple, 0, sizeof multiple);
    memset(&used, 0, sizeof used);
    m.queue_percent = queue_percent;
    m.cubic = cubic;
    m.warm_up_s = 6;
    m.seconds = 8;
    for (m.seed = 1; m.seed <= seeds; m.seed++) {
        result_t r = measure(&m);
        add_figure(&multiple, r.goodput[0] * cubic / (r.total - r.goodput[0]));
        add_figure(&used, r.used);
        little += r.used <= 0.8;
    }
    printf("queue %4.2f, beside %2u CUBIC-like: %.2f of the rate of one of them (%.2f to %.2f), line used %.3f (from %.3f)\n",
           queue_percent / 100., (unsigned)cubic, mean(&multiple), multiple.least, multiple.most, mean(&used), used.least);
    assert_true(mean(&used) > 0.85 && little * 20 <= seeds);
    assert_in_range((int)(mean(&multiple) * 100), 50, 200);
}

static void test_beside_cubic(void **state) {
    uint32_t i;
    (void)state;
    for (i = 0; i < 5; i++) {
        share_beside(1, queues_percent[i]);
        share_beside(4, queues_percent[i]);
        share_beside(16, queues_percent[i]);
    }
}

/* How flows of one kind fared, over the seeds. */
typedef struct fares {
    figures_t used, jain, dropped;
} fares_t;

static fares_t fare(measurement_t m) {
    fares_t f;
    memset(&f, 0, sizeof f);
    for (m.seed = 1; m.seed <= MANY_SEEDS; m.seed++) {
        result_t r = measure(&m);
        add_figure(&f.used, r.used);
        add_figure(&f.jain, r.jain);
        add_figure(&f.dropped, r.dropped);
    }
    return f;
}

/* So many flows of ours, or (0) so many CUBIC-like ones: the share of packets that were dropped. Each has ten packets under
 * way or more, those in the queue too: with less, many flows lose more to find out how fast they may be. */
static double dropped_alone(uint32_t ours, uint32_t cubic, uint32_t queue_percent) {
    int is_crowd = ours + cubic == 32;
    measurement_t m = path(STREAM_RO, is_crowd ? 100 : 50, is_crowd && queue_percent < 100 ? 40000 : 20000);
    fares_t f;
    m.queue_percent = queue_percent;
    m.flows = ours;
    m.cubic = cubic;
    m.warm_up_s = ours == 1 ? 3 : 5;
    m.seconds = 3;
    f = fare(m);
    printf("queue %4.2f, %2u of ours, %2u CUBIC-like: line used %.3f (from %.3f), Jain %.3f (from %.3f), dropped %.4f (to %.4f)\n",
           queue_percent / 100., (unsigned)ours, (unsigned)cubic, mean(&f.used), f.used.least, mean(&f.jain), f.jain.least,
           mean(&f.dropped), f.dropped.most);
    assert_true(ours == 0 || mean(&f.used) >= 0.9);
    assert_true(ours == 0 || mean(&f.jain) >= 0.9);
    return mean(&f.dropped);
}

static void test_alone(void **state) {
    static const uint32_t counts[] = {1, 4, 32};
    uint32_t i, k;
    (void)state;
    for (i = 0; i < 5; i++)
        for (k = 0; k < (i % 2 == 0 ? 3 : 2); k++) {
            double dropped = dropped_alone(counts[k], 0, queues_percent[i]);
            assert_true(dropped <= (queues_percent[i] < 5 ? dropped_alone(0, counts[k], queues_percent[i]) + 0.0005 : 0.02));
        }
}

/* Of what the line can carry, less what it loses by chance, this much arrives on a line of one's own, after slow start, with the
 * buffers that an endpoint has by default. */
static double carried(enum kind kind, uint32_t rate_mbit, uint32_t rtt_us, uint32_t loss_per_million, uint32_t seeds) {
    measurement_t m = path(kind, rate_mbit, rtt_us);
    figures_t share;
    memset(&share, 0, sizeof share);
    m.warm_up_s = rtt_us > 50000 ? 20 : rtt_us > 10000 ? 4 : 2;
    m.seconds = rtt_us > 50000 ? 10 : 3;
    m.buffers = 0;
    m.loss_per_million = loss_per_million;
    for (m.seed = 1; m.seed <= seeds; m.seed++)
        add_figure(&share, measure(&m).used);
    printf("kind %d, %u Mbit/s, %g ms, %4.1f %% lost by chance: line used %.3f (from %.3f)\n", (int)kind, (unsigned)rate_mbit,
           rtt_us / 1e3, loss_per_million / 1e4, mean(&share), share.least);
    return mean(&share);
}

static void test_chance(void **state) {
    static const uint32_t losses[] = {1000, 10000, 20000};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        assert_true(carried(STREAM_RO, 100, 4000, losses[i], MANY_SEEDS) >= 0.9);
        assert_true(carried(STREAM_RO, 50, 20000, losses[i], MANY_SEEDS) >= 0.9);
        assert_true(carried(STREAM_RO, 10, 200000, losses[i], MANY_SEEDS) >= 0.9);
    }
}

/* Where thousands of packets are under way, what is lost holds up as many. */
static void test_chance_fast(void **state) {
    static const uint32_t losses[] = {1000, 10000, 20000};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        assert_true(carried(STREAM_RO, 1000, 4000, losses[i], 2) >= 0.9);
        assert_true(carried(STREAM_RO, 1000, 40000, losses[i], 2) >= 0.9);
        assert_true(carried(STREAM_RO, 100, 200000, losses[i], 1) >= 0.9);
    }
}

/* Where more is lost than is tolerated, it is tried again and again whether it is chance. BBRv3's rules would leave 0.38, 0.21
 * and 0.11 of such a line; NewReno and CUBIC, which never try, 0.09, 0.03 and 0.02. */
static void test_much_chance(void **state) {
    static const uint32_t losses[] = {50000, 100000, 200000}, rtts_us[] = {4000, 20000, 200000}, rates[] = {100, 100, 10};
    static const double least[3][3] = {{0.3, 0.36, 0.28}, {0.12, 0.16, 0.16}, {0.04, 0.035, 0.05}};
    uint32_t i, k;
    (void)state;
    for (k = 0; k < 3; k++) {
        double before = 1;
        for (i = 0; i < 3; i++) {
            double share = carried(STREAM_RO, rates[k], rtts_us[k], losses[i], MANY_SEEDS);
            assert_true(share >= least[i][k]);
            assert_true(share < before && (i == 0 || share > before / 5));
            before = share;
        }
    }
}

/* A path without any queue looks as one that loses by chance to each of many flows. They fill it, and lose some packets. */
static void test_no_queue(void **state) {
    static const uint32_t counts[] = {1, 4, 16};
    static const double most[] = {0.001, 0.045, 0.1};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        measurement_t m = path(STREAM_RO, 100, 20000);
        fares_t f;
        m.queue_percent = 0;
        m.flows = counts[i];
        m.warm_up_s = 5;
        m.seconds = 20;
        f = fare(m);
        printf("no queue, %2u of ours: line used %.3f, Jain %.3f, dropped %.4f (to %.4f)\n", (unsigned)counts[i], mean(&f.used),
               mean(&f.jain), mean(&f.dropped), f.dropped.most);
        assert_true(f.dropped.most <= most[i]);
        assert_true(mean(&f.used) > 0.6 && mean(&f.jain) > 0.9);
    }
}

/* 500 KB of queue are 4 s of this line. */
static void test_deep_queue(void **state) {
    measurement_t m = path(STREAM_RO, 1, 40000);
    (void)state;
    m.queue_percent = 10000;
    m.warm_up_s = 5;
    m.seconds = 30;
    for (m.seed = 1; m.seed <= MANY_SEEDS; m.seed++) {
        result_t r = measure(&m);
        double queue_ms = r.queue * 4000;
        printf("queue of 500 KB, seed %u: %.2f Mbit/s, on average %.0f ms in the queue\n", (unsigned)m.seed, r.total * 8e-6, queue_ms);
        assert_true(queue_ms <= 2 * 40 && r.total * 8e-6 > 0.8);
    }
}

/* With the buffers that an endpoint has by default, a program fills whatever line it has: no window is a count. A line that
 * loses nothing is the same for each seed. */
static void fill_line(enum kind kind, uint32_t bytes, uint32_t rate_mbit, uint32_t rtt_us, double warm_up_s, double seconds) {
    measurement_t m = path(kind, rate_mbit, rtt_us);
    result_t r;
    m.buffers = 0;
    m.bytes = bytes;
    m.depth = rate_mbit * (uint64_t)rtt_us > 8000000 ? RMA_DEPTH_FAR : RMA_DEPTH;
    m.warm_up_s = warm_up_s;
    m.seconds = seconds;
    r = measure(&m);
    printf("default buffers, kind %d, %u bytes, %u Mbit/s, %g ms: %.0f Mbit/s, line used %.3f\n", (int)kind,
           (unsigned)bytes, (unsigned)rate_mbit, rtt_us / 1e3, r.total * 8e-6, r.used);
    if (r.total * 8e-6 < 0.9 * (double)rate_mbit)
        fail_msg("%.0f Mbit/s are less than 0.9 of the line", r.total * 8e-6);
}

static void fill_lines(uint32_t rate_mbit, uint32_t rtt_us, double warm_up_s, double seconds) {
    fill_line(STREAM_RO, 1024, rate_mbit, rtt_us, warm_up_s, seconds);
    fill_line(STREAM_RO, 8192, rate_mbit, rtt_us, warm_up_s, seconds);
    fill_line(STREAM_RU, 1024, rate_mbit, rtt_us, warm_up_s, seconds);
    fill_line(WRITES, 0, rate_mbit, rtt_us, warm_up_s, seconds);
    fill_line(READS, 0, rate_mbit, rtt_us, warm_up_s, seconds);
}

static void test_fast_lines(void **state) {
    (void)state;
    fill_lines(10000, 100, 0.1, 0.1);
    fill_lines(10000, 4000, 0.5, 0.1);
    fill_lines(10000, 40000, 1.5, 0.1);
}

static void test_long_fast_lines(void **state) {
    (void)state;
    fill_line(WRITES, 0, 10000, 100000, 4.5, 0.3);
    fill_line(READS, 0, 10000, 100000, 3, 0.3);
    fill_lines(1000, 300000, 10, 2);
}

/* 50 Mbit/s, and 1 on the way back, which one acknowledgement for each packet would overfill. Where nothing is lost for a while
 * acknowledgements take 2 % of what they acknowledge, with those that come at once after a gap a little more. */
static void test_narrow_way_back(void **state) {
    static const enum kind kinds[] = {STREAM_RO, STREAM_RU, WRITES};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        figures_t used, back;
        measurement_t m = path(kinds[i], 50, 20000);
        memset(&used, 0, sizeof used);
        memset(&back, 0, sizeof back);
        m.back_kbit = 1000;
        m.warm_up_s = 3;
        m.seconds = 10;
        for (m.seed = 1; m.seed <= MANY_SEEDS; m.seed++) {
            result_t r = measure(&m);
            add_figure(&used, r.used);
            add_figure(&back, r.back);
        }
        printf("50 Mbit/s and 1 back, kind %d: line used %.3f (from %.3f), acknowledgements %.4f (to %.4f) of the bytes\n", (int)kinds[i],
               mean(&used), used.least, mean(&back), back.most);
        assert_true(used.least >= 0.9 && back.most <= 0.021);
    }
}

/* A queue that marks packets loses none of ours, and delays them no more than one that drops. */
static void test_codel(void **state) {
    static const uint32_t rtts_us[] = {5000, 20000, 60000, 150000};
    static const enum kind kinds[] = {STREAM_RO, STREAM_RU, WRITES};
    uint32_t i, k;
    (void)state;
    for (i = 0; i < sizeof rtts_us / sizeof rtts_us[0]; i++) {
        for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            measurement_t m = path(kinds[k], 100, rtts_us[i]);
            double with = 0, without = 0;
            m.queue_percent = 1000;
            m.has_codel = 1;
            m.warm_up_s = 5;
            m.seconds = 20;
            for (m.seed = 1; m.seed <= 3; m.seed++) {
                result_t r;
                m.ecn = 0;
                r = measure(&m);
                without += r.used / 3;
                assert_true(r.dropped > 0 && r.again > 0);
                m.ecn = 1;
                r = measure(&m);
                with += r.used / 3;
                assert_true(r.marked > 0);
                assert_true(r.dropped == 0 && r.again == 0);
                assert_true(r.queue * 10 * (double)rtts_us[i] < 15000); /* microseconds, on average */
            }
            printf("CoDel, kind %d, %3.0f ms: used %.3f of the line where it drops, %.3f where it marks\n", (int)kinds[k],
                   (double)rtts_us[i] / 1e3, without, with);
            assert_true(with >= 0.9 && with > without - 0.02);
        }
    }
}

/* Beside flows that know no ECN, ours take no more for it. */
static void test_codel_shared(void **state) {
    static const uint32_t cubics[] = {1, 4, 16};
    uint32_t i;
    (void)state;
    for (i = 0; i < sizeof cubics / sizeof cubics[0]; i++) {
        measurement_t m = path(STREAM_RO, 100, 20000);
        double share = 0;
        m.queue_percent = 1000;
        m.has_codel = m.ecn = 1;
        m.cubic = cubics[i];
        m.warm_up_s = 10;
        m.seconds = 60;
        for (m.seed = 1; m.seed <= MANY_SEEDS; m.seed++) {
            result_t r = measure(&m);
            share += r.goodput[0] / ((r.total - r.goodput[0]) / cubics[i]) / MANY_SEEDS;
        }
        printf("CoDel, beside %2u CUBIC-like flows without ECN: %.2f times the share of one\n", (unsigned)cubics[i], share);
        assert_true(share >= 0.5 && share <= 2);
    }
}

/* What drops without queueing limits by dropping. */
static void test_shallow_queue(void **state) {
    measurement_t m = path(STREAM_RO, 100, 20000);
    result_t r;
    (void)state;
    m.queue_percent = 2;
    r = measure(&m);
    printf("queue 0.02: %.1f Mbit/s, dropped %.3f\n", r.total * 8e-6, r.dropped);
    assert_true(r.total * 8e-6 > 60);
    assert_true(r.dropped < 0.002);
    m.congestion = "discern"; /* then a tenth is lost, not more and more */
    r = measure(&m);
    printf("queue 0.02, discern: %.1f Mbit/s, dropped %.3f\n", r.total * 8e-6, r.dropped);
    assert_true(r.total * 8e-6 > 60);
    assert_true(r.dropped < 0.12);
}

/* Packets that come late are not lost: 100 Mbit/s and 20 ms, where a share of the packets comes up to half a round trip later
 * than the others, in both directions. The least of ten seeds. */
static void reorder(enum kind kind) {
    static const uint32_t shares[] = {10000, 50000, 100000, 300000, 500000, 1000000};
    measurement_t m = path(kind, 100, 20000);
    double clean[10];
    uint32_t i;
    m.warm_up_s = 3;
    m.seconds = kind == READS ? 6 : 1; /* reads ask for whole chunks: one second differs from the next */
    for (m.seed = 1; m.seed <= 10; m.seed++) {
        clean[m.seed - 1] = measure(&m).total;
        assert_true(clean[m.seed - 1] * 8 > 0.9 * 1e6 * (double)m.rate_mbit);
    }
    m.late_us = m.rtt_us / 2;
    for (i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        double least = 1e9;
        uint64_t again = 0;
        m.late_per_million = shares[i];
        for (m.seed = 1; m.seed <= 10; m.seed++) {
            result_t r = measure(&m);
            if (r.total / clean[m.seed - 1] < least)
                least = r.total / clean[m.seed - 1];
            again = r.again > again ? r.again : again;
        }
        printf("kind %d, %3g %% late: %.3f of the rate without, %u sent again at most\n", (int)kind, shares[i] / 1e4, least,
               (unsigned)again);
        if (least < 0.9)
            fail_msg("%.3f is less than 0.9", least);
    }
}

static void test_late_messages(void **state) {
    (void)state;
    reorder(STREAM_RO);
    reorder(STREAM_RU);
}

static void test_late_writes(void **state) {
    (void)state;
    reorder(WRITES);
}

static void test_late_reads(void **state) {
    (void)state;
    reorder(READS);
}

/* Nothing is sent again that was not lost, but for a probe now and then. */
static void test_nothing_twice(void **state) {
    static const uint32_t losses[] = {0, 10000, 50000};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        measurement_t m = path(STREAM_RO, 100, 4000);
        result_t r;
        m.loss_per_million = losses[i];
        r = measure(&m);
        printf("loss %.1f %%: %u lost, %u sent again\n", losses[i] / 1e4, (unsigned)r.lost, (unsigned)r.again);
        assert_true(r.again <= r.lost + r.lost / 50 + 5);
    }
}

/* A path of this round trip, whose time varies by a tenth of that; no packet is lost. */
static void reach(enum kind kind, uint32_t rtt_us, uint64_t seeds) {
    measurement_t m = path(kind, 2, rtt_us);
    m.jitter_us = rtt_us / 20;
    m.queue_percent = 10000;
    m.warm_up_s = (double)rtt_us * 30e-6;
    m.seconds = (double)rtt_us * 30e-6;
    m.send_timeout_s = (double)rtt_us * 6e-6;
    for (m.seed = 1; m.seed <= seeds; m.seed++) {
        result_t r = measure(&m);
        const net_line_t *line = &net.line[NET_LEFT];
        printf("kind %d, %g s, seed %u: %.2f Mbit/s, %u pings, %u lost, %u sent again of %u\n", (int)kind, rtt_us / 1e6,
               (unsigned)m.seed, r.total * 8e-6, (unsigned)r.pings, (unsigned)r.lost, (unsigned)r.again, (unsigned)line->packets);
        assert_int_equal(r.lost, 0);
        assert_true(r.again * 100 <= line->packets);
        assert_true(kind == PINGPONG ? r.pings >= 25 : r.total * 8e-6 > 1.6);
    }
}

static void test_long_paths(void **state) {
    static const enum kind kinds[] = {STREAM_RO, WRITES, READS, PINGPONG};
    uint32_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        reach(kinds[i], 1000000, 10);
        reach(kinds[i], 3000000, 10);
        reach(kinds[i], 10000000, 10);
    }
}

/* Lets the path take so long from now on; returns the packets that were sent again in the second half of that time, and not because
 * a queue was full. */
static uint64_t stay(uint64_t rtt_ns, double seconds) {
    uint64_t again, dropped;
    net.delay_ns = rtt_ns / 2;
    run_until(net.now_ns + (uint64_t)(seconds * .5e9));
    again = sent_again();
    net_forget();
    run_until(net.now_ns + (uint64_t)(seconds * .5e9));
    dropped = net.line[NET_LEFT].dropped + net.line[NET_RIGHT].dropped;
    again = sent_again() - again;
    return again > dropped ? again - dropped : 0;
}

/* A mobile path: another cell, or a buffer that fills. Nothing ends, and when the time is known nothing is sent twice. */
static void jump(enum kind kind, uint64_t seeds) {
    measurement_t m = path(kind, 2, 20000);
    m.jitter_us = 2000;
    m.queue_percent = 60000;
    m.send_timeout_s = 15;
    for (m.seed = 1; m.seed <= seeds; m.seed++) {
        uint64_t before, slow, after, slow_packets;
        set_up(&m);
        before = stay(20 * NET_MS, 20);
        slow = stay(3 * NET_S, 200);
        slow_packets = net.line[NET_LEFT].packets;
        after = stay(20 * NET_MS, 60);
        printf("kind %d, seed %u: sent again %u at 20 ms, %u of %u at 3 s, %u of %u at 20 ms\n", (int)kind, (unsigned)m.seed,
               (unsigned)before, (unsigned)slow, (unsigned)slow_packets, (unsigned)after,
               (unsigned)net.line[NET_LEFT].packets);
        assert_int_equal(before, 0);
        assert_true(slow * 100 <= slow_packets);
        assert_true(after * 100 <= net.line[NET_LEFT].packets);
        assert_true(net.line[NET_LEFT].packets > (kind == PINGPONG ? 1000u : kind == READS ? 100u : 3000u));
        tear_down();
    }
}

static void test_path_that_jumps(void **state) {
    (void)state;
    jump(PINGPONG, 10);
    jump(STREAM_RO, 10);
    jump(WRITES, 10);
    jump(READS, 10);
}

/* A cable is out for so long, which is less than the time-out of what is under way: that goes on soon after it is back. */
static void pull_out(enum kind kind, double seconds) {
    measurement_t m = path(kind, 100, 1000);
    for (m.seed = 1; m.seed <= 10; m.seed++) {
        uint64_t before;
        set_up(&m);
        run_until(net.now_ns + 2 * NET_S);
        net.line[NET_LEFT].loss_per_million = net.line[NET_RIGHT].loss_per_million = 1000000;
        run_until(net.now_ns + (uint64_t)(seconds * 1e9));
        net.line[NET_LEFT].loss_per_million = net.line[NET_RIGHT].loss_per_million = 0;
        before = flows[0].received;
        run_until(net.now_ns + 5 * NET_S);
        printf("kind %d, out for %g s, seed %u: then %.1f MB in 5 s\n", (int)kind, seconds, (unsigned)m.seed,
               (double)(flows[0].received - before) * 1e-6);
        assert_true(flows[0].received > before + 100000);
        tear_down();
    }
}

static void test_cable_pulled_out(void **state) {
    (void)state;
    pull_out(STREAM_RO, 24);
    pull_out(WRITES, 24);
    pull_out(READS, 24);
}

/* A program that calls so often a second gets so much there, and does not flood the path. Its send buffers hold 1,024
 * messages, and between two calls no more can leave than the queue and the line take in. */
static void call_seldom(enum kind kind, uint32_t calls_per_second, uint32_t queue_percent, double least_mbit) {
    measurement_t m = path(kind, 100, 20000);
    m.calls_per_second = calls_per_second;
    m.queue_percent = queue_percent;
    m.buffers = 1024;
    m.jitter_us = 1000;
    for (m.seed = 1; m.seed <= 10; m.seed++) {
        result_t r = measure(&m);
        printf("kind %d, %u calls a second, queue %.1f, seed %u: %.1f Mbit/s, dropped %.4f\n", (int)kind,
               (unsigned)calls_per_second, queue_percent / 100., (unsigned)m.seed, r.total * 8e-6, r.dropped);
        assert_true(r.dropped < 0.02);
        if (r.total * 8e-6 < least_mbit)
            fail_msg("%.1f Mbit/s are less than %.1f", r.total * 8e-6, least_mbit);
    }
}

static void test_calls_seldom(void **state) {
    (void)state;
    call_seldom(STREAM_RO, 10, 100, 12);
    call_seldom(STREAM_RO, 10, 400, 30);
    call_seldom(STREAM_RO, 60, 100, 70);
    call_seldom(STREAM_RU, 60, 100, 70);
    call_seldom(WRITES, 10, 400, 30);
    call_seldom(WRITES, 60, 100, 70);
    call_seldom(READS, 60, 100, 70);
}

#define NAMED(function, sentence) {sentence, function, NULL, NULL, NULL}

static int test_fast(void) {
    const struct CMUnitTest tests[] = {
        NAMED(test_fast_lines, "default buffers fill 0.9 of 10 Gbit/s at 0.1, 4 and 40 ms, with messages of 1 KB and 8 KiB, writes and reads"),
        NAMED(test_long_fast_lines, "they do so at 100 ms with writes and reads, and with all at 1 Gbit/s and 300 ms"),
        NAMED(test_chance_fast, "up to 2 % lost by chance leave 0.9 of a line of 1 Gbit/s, at 4 and 40 ms, and of a long one"),
    };
    vain_looks = 4;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int test_all(void) {
    const struct CMUnitTest tests[] = {
        NAMED(test_messages, "`discern`: 1 % and 5 % loss leave messages 0.95 and 0.90 of their goodput at 4 ms"),
        NAMED(test_messages_fast, "they do so at 1 Gbit/s"),
        NAMED(test_messages_far, "they do so at 20 and 100 ms"),
        NAMED(test_writes, "they leave writes of remote memory as much"),
        NAMED(test_reads, "they leave reads of remote memory as much"),
        NAMED(test_short_path, "they leave each 0.90 and 0.80 at 0.4 ms with a queue of four packets"),
        NAMED(test_answers, "at 1 % loss 99 of 100 answers are there within 2.5 round-trips"),
        NAMED(test_answers_jitter, "they are so with a tenth of jitter too"),
        NAMED(test_fair_to_newreno, "a flow shares a bottleneck fairly with one and three NewReno-like ones"),
        NAMED(test_beside_cubic, "beside 1, 4 and 16 CUBIC-like flows ours has half to twice the rate of one of them"),
        NAMED(test_alone, "1 to 32 of our flows use the line, share it fairly and drop little"),
        NAMED(test_chance, "up to 2 % lost by chance leave 0.9 of a line of one's own"),
        NAMED(test_much_chance, "from 5 % on the rate falls step by step"),
        NAMED(test_no_queue, "a path without any queue is shared, and not flooded"),
        NAMED(test_deep_queue, "a deep queue is not filled"),
        NAMED(test_narrow_way_back, "a way back of a fiftieth of the rate carries the acknowledgements"),
        NAMED(test_codel, "a queue that marks rather than drops loses none of ours, and the line is used"),
        NAMED(test_codel_shared, "beside CUBIC-like flows without ECN ours has half to twice the rate of one of them"),
        NAMED(test_shallow_queue, "a path that drops without queueing is not flooded"),
        NAMED(test_late_messages, "messages keep 0.9 of the rate where packets come late by up to half a round trip"),
        NAMED(test_late_writes, "writes do so too"),
        NAMED(test_late_reads, "reads do so too"),
        NAMED(test_nothing_twice, "nothing is sent again that was not lost"),
        NAMED(test_long_paths, "round trips of 1, 3 and 10 s end nothing, and 1 % is sent again in vain at most"),
        NAMED(test_cable_pulled_out, "a cable that is out for less than a time-out ends nothing, and all goes on soon after"),
        NAMED(test_calls_seldom, "a program that calls 10 or 60 times a second sends what fits into the path meanwhile"),
        NAMED(test_path_that_jumps, "a round trip that jumps from 20 ms to 3 s and back does so too"),
    };
#undef NAMED
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    unsetenv("CCI_CONFIG");
    if (argc > 1 && strcmp(argv[1], "fast") == 0)
        return test_fast();
    if (argc > 1 && strcmp(argv[1], "try") == 0)
        return try_words(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "plots") == 0) {
        plot_goodput();
        plot_latency();
        plot_shares();
        return 0;
    }
    return test_all();
}
