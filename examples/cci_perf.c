/* SPDX-License-Identifier: MIT OR Unlicense */
/* cci_perf.c - measures latency, message rate and bandwidth between two processes.
 *
 *     cc -O2 -I.. -o cci_perf cci_perf.c -pthread
 *     ./cci_perf                                   the server: prints its URI and serves clients, for ever
 *     ./cci_perf udp://host:port -t lat            a client; -h lists all options
 *
 * THE TESTS. `lat` bounces one message and reports half of each round trip. `rate` and `bw` send messages one way:
 * the time runs from the first send until the server says that its program has consumed the last message (so the
 * figure contains everything, and one one-way latency more); the rate that the server saw between its first and its
 * last message is printed beside it. `write_bw` and `read_bw` keep a window of RMAs outstanding; `write_lat` and
 * `read_lat` time one at a time, from the call to the completion, which means that the data has arrived: a whole
 * round trip.
 *
 * -c and -T have many connections, divided among threads, each with an endpoint of its own: a client is as many
 * sessions of the server as it has threads. --rate R is an open loop: R operations are due in each second, and the
 * latency of each counts from then on, also where it could not begin in time because others before it were late. (Else
 * a server that stops for a second would delay one message in a thousand instead of all that come in that second.)
 *
 * HOW. Each client has two connections: a reliable one for control, and one with the attribute to be measured for
 * data. For each size the client sends START, the server prepares and answers READY (for RMA with the handle of its
 * memory), the client runs; END says how many messages were sent, and RESULT how many came and when. Unless asked to
 * sleep, both ends poll and create their endpoints without an OS handle, so that nothing but the library runs.
 *
 * -a mc --group URI sends the data by multicast: the server joins the group to receive, and is ready when it has.
 *
 * SIGUSR1 makes either side print the statistics of its endpoint, to standard error.
 *
 * --verify fills each message and each RMA with a pattern of its number and the position in it, and checks every
 * byte at the receiving side. Reliable messages must come exactly once, and on RO in order. (Unordered messages
 * shorter than 8 bytes don't carry their whole number: there only the count and the pattern are checked.) */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define PROTOCOL_VERSION 2u
#define REQUEST_BYTES 32u
#define GROUP_BYTES 128u       /* of the URI of a multicast group, with its final 0 */
#define CONTROL_BYTES 72u
#define WRITTEN_BYTES 16u      /* completion message of a verified write: number and slot               */
#define SEND_BATCH 64          /* messages between two looks at the events                              */
#define YIELD_POLLS 256        /* empty polls after which others may run: on a busy machine the peer may be one */
#define POOL_COUNT 512         /* buffers that a verified NO_COPY run takes turns with                  */
#define QUIET_NS 200000000ull  /* unreliable messages that take longer than this count as lost          */
#define PATIENCE_NS 60000000000ull
#define REGION_LIMIT (1ull << 32)
#define CONNECT_PATIENCE_S 10
#define CONNECT_BATCH 64       /* connections of a thread that are being made at once                   */
#define SESSION_LIMIT 64       /* each thread of a client is one                                        */
#define CHANNEL_LIMIT (1u << 20)
#define THREAD_LIMIT 64
#define CROWD_WINDOW 64        /* operations outstanding on each of many connections, of rate, bw and with --rate */

enum test { TEST_LAT, TEST_RATE, TEST_BW, TEST_WRITE_BW, TEST_READ_BW, TEST_WRITE_LAT, TEST_READ_LAT, TEST_COUNT };
static const char *const test_names[TEST_COUNT] = {"lat",     "rate",      "bw",      "write_bw",
                                                   "read_bw", "write_lat", "read_lat"};
static const char *const attribute_names[] = {"ro", "ru", "uu", "mc"}; /* mc: CCI_CONN_ATTR_UU_MC_TX */

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };
enum role { ROLE_CONTROL, ROLE_DATA };
enum control_type { CONTROL_START = 1, CONTROL_READY, CONTROL_END, CONTROL_RESULT, CONTROL_CHECKED, CONTROL_BYE };

static int is_rma(enum test test) { return test >= TEST_WRITE_BW; }
static int is_latency(enum test test) { return test == TEST_LAT || test >= TEST_WRITE_LAT; }
static int is_unreliable(cci_conn_attribute_t attribute) { return attribute >= CCI_CONN_ATTR_UU; }
static int is_read(enum test test) { return test == TEST_READ_BW || test == TEST_READ_LAT; }

static cci_endpoint_t *endpoint; /* the server's; each thread of a client has its own */
static cci_os_handle_t os_handle;
static int sleeps; /* wait on the OS handle rather than poll */

static void fail(const char *what, int status) {
    const char *text = cci_strerror(NULL, (cci_status_t)status), *hint = cci_status_hint((cci_status_t)status);
    fprintf(stderr, "cci_perf: %s: %s: %s\n", what, text ? text : "unknown status", hint ? hint : "see the log");
    exit(1);
}

static void check(int status, const char *what) {
    if (status != CCI_SUCCESS) fail(what, status);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- what goes over the wire ----------------------------------------------------------------------------------- */

/* Request data, little-endian: "CCPF", role and version, session (8 bytes), test, flags, 8 bytes of zeros; then, for
 * multicast, the URI of the group. Control messages are nine 64-bit words: type, three values, the RMA handle, and one value more. */
struct request {
    uint32_t role, test, verify, heap, touch;
    uint64_t session_id;
    char group[GROUP_BYTES]; /* or "" */
};

struct control {
    uint64_t type;
    uint64_t a, b, c; /* START: size, count (0: END will tell), slots. READY: status. END: count. RESULT: received,
                         errors, ns from the first to the last. CHECKED: slot. */
    uint64_t handle[4]; /* READY: of the server's memory */
    uint64_t d;         /* RESULT: duplicates */
};

static void put_words(uint8_t *to, const uint64_t *words, size_t count) {
    size_t i;
    for (i = 0; i < count * 8; i++) to[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
}

static uint64_t get_word(const uint8_t *from) {
    uint64_t word = 0;
    int i;
    for (i = 7; i >= 0; i--) word = word << 8 | from[i];
    return word;
}

static void encode_request(uint8_t *to, const struct request *request) {
    uint64_t words[4];
    words[0] = 0x46504343u | (uint64_t)(PROTOCOL_VERSION << 8 | request->role) << 32;
    words[1] = request->session_id;
    words[2] = request->test | (uint64_t)(request->verify | request->heap << 1 | request->touch << 2) << 32;
    words[3] = 0;
    put_words(to, words, 4);
}

static int decode_request(const void *from, uint32_t length, struct request *request) {
    const uint8_t *bytes = (const uint8_t *)from;
    uint64_t word;
    if (length < REQUEST_BYTES || length >= REQUEST_BYTES + GROUP_BYTES || (get_word(bytes) & 0xffffffffu) != 0x46504343u) return 0;
    word = get_word(bytes) >> 32;
    if (word >> 8 != PROTOCOL_VERSION) return 0;
    request->role = (uint32_t)(word & 0xff);
    request->session_id = get_word(bytes + 8);
    word = get_word(bytes + 16);
    request->test = (uint32_t)word;
    request->verify = (uint32_t)(word >> 32) & 1u;
    request->heap = (uint32_t)(word >> 33) & 1u;
    request->touch = (uint32_t)(word >> 34) & 1u;
    memset(request->group, 0, sizeof request->group);
    memcpy(request->group, bytes + REQUEST_BYTES, length - REQUEST_BYTES);
    return request->role <= ROLE_DATA && request->test < TEST_COUNT;
}

static int decode_control(const void *from, uint32_t length, struct control *control) {
    const uint8_t *bytes = (const uint8_t *)from;
    if (length != CONTROL_BYTES) return 0;
    control->type = get_word(bytes);
    control->a = get_word(bytes + 8);
    control->b = get_word(bytes + 16);
    control->c = get_word(bytes + 24);
    memcpy(control->handle, bytes + 32, 32); /* a handle is bytes to everybody but its maker */
    control->d = get_word(bytes + 64);
    return 1;
}

static int send_control(cci_connection_t *connection, const struct control *control, int flags) {
    uint8_t bytes[CONTROL_BYTES];
    uint64_t words[4];
    words[0] = control->type;
    words[1] = control->a;
    words[2] = control->b;
    words[3] = control->c;
    put_words(bytes, words, 4);
    memcpy(bytes + 32, control->handle, 32);
    put_words(bytes + 64, &control->d, 1);
    return cci_send(connection, bytes, CONTROL_BYTES, NULL, flags);
}

/* ---- the pattern of --verify ----------------------------------------------------------------------------------- */

static uint64_t pattern_word(uint64_t number, uint64_t position) {
    uint64_t x = (number + 1) * 0x9e3779b97f4a7c15u + position * 0xd1b54a32d192ed03u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x); /* the same bytes on every machine */
#endif
    return x;
}

/* Fills or checks (returns 1 when all is right) bytes whose word at 8 * k is pattern_word(number, first + k). */
static void pattern_fill(uint8_t *to, uint64_t length, uint64_t number, uint64_t first) {
    uint64_t done, word;
    for (done = 0; done < length; done += 8) {
        word = pattern_word(number, first + done / 8);
        memcpy(to + done, &word, length - done < 8 ? (size_t)(length - done) : 8);
    }
}

static int pattern_check(const uint8_t *from, uint64_t length, uint64_t number, uint64_t first) {
    uint64_t done, word;
    for (done = 0; done < length; done += 8) {
        word = pattern_word(number, first + done / 8);
        if (memcmp(from + done, &word, length - done < 8 ? (size_t)(length - done) : 8) != 0) return 0;
    }
    return 1;
}

/* A message begins with its number, as far as it has room for it; the pattern follows. */
static void message_fill(uint8_t *message, uint32_t length, uint64_t number) {
    uint8_t bytes[8];
    uint32_t head = length < 8 ? length : 8;
    put_words(bytes, &number, 1);
    memcpy(message, bytes, head);
    pattern_fill(message + head, length - head, number, 1);
}

static int message_check(const uint8_t *message, uint32_t length, uint64_t *number, int in_order) {
    uint8_t bytes[8];
    uint32_t head = length < 8 ? length : 8;
    if (!in_order && length >= 8) *number = get_word(message);
    put_words(bytes, number, 1);
    if ((in_order || length >= 8) && memcmp(message, bytes, head) != 0) return 0;
    return pattern_check(message + head, length - head, *number, 1);
}

/* ---- memory for RMA -------------------------------------------------------------------------------------------- */

/* From the heap as from the transport aligned to pages: copies between memories that lie otherwise are slower by a tenth. */
static uint8_t *take_memory(cci_endpoint_t *from, uint64_t length, int heap) {
    void *memory = NULL;
    if (heap) return posix_memalign(&memory, 4096, (size_t)length) == 0 ? (uint8_t *)memory : NULL;
    return cci_rma_alloc(from, length, &memory) == CCI_SUCCESS ? (uint8_t *)memory : NULL;
}

static void give_memory_back(cci_endpoint_t *to, uint8_t *memory, int heap) {
    if (heap) free(memory);
    else if (memory) check(cci_rma_free(to, memory), "cci_rma_free");
}

/* ---- latencies -------------------------------------------------------------------------------------------------- */

/* Counts of times: exact below 2^(BITS + 1) ns, above in 2^BITS classes for each power of two (within 0.2 %). */
#define HISTOGRAM_BITS 9
#define HISTOGRAM_SHIFTS 33 /* to 2.4 hours */
#define HISTOGRAM_SIZE ((HISTOGRAM_SHIFTS + 2) << HISTOGRAM_BITS)

struct histogram {
    uint64_t count, min_ns, max_ns;
    uint64_t buckets[HISTOGRAM_SIZE];
};

static void histogram_add(struct histogram *histogram, uint64_t time_ns) {
    uint32_t shift = 0;
    if (histogram->count++ == 0 || time_ns < histogram->min_ns) histogram->min_ns = time_ns;
    if (time_ns > histogram->max_ns) histogram->max_ns = time_ns;
    while (time_ns >> (shift + HISTOGRAM_BITS + 1) && shift < HISTOGRAM_SHIFTS) shift++;
    if (time_ns >> (shift + HISTOGRAM_BITS + 1)) time_ns = (2ull << (shift + HISTOGRAM_BITS)) - 1;
    histogram->buckets[(shift << HISTOGRAM_BITS) + (uint32_t)(time_ns >> shift)]++;
}

static void histogram_merge(struct histogram *into, const struct histogram *from) {
    uint32_t i;
    if (from->count == 0) return;
    if (into->count == 0 || from->min_ns < into->min_ns) into->min_ns = from->min_ns;
    if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
    into->count += from->count;
    for (i = 0; i < HISTOGRAM_SIZE; i++) into->buckets[i] += from->buckets[i];
}

/* The time that this share of all does not exceed, in microseconds; 0 when there are none. */
static double percentile_us(const struct histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)(share * (double)histogram->count), below = 0;
    uint32_t i, shift;
    double ns;
    if (histogram->count == 0) return 0;
    if (wanted == 0) return (double)histogram->min_ns / 1e3;
    if (wanted >= histogram->count) return (double)histogram->max_ns / 1e3;
    for (i = 0; i < HISTOGRAM_SIZE - 1; i++)
        if ((below += histogram->buckets[i]) > wanted) break;
    shift = i >> HISTOGRAM_BITS ? (i >> HISTOGRAM_BITS) - 1 : 0;
    ns = (double)((uint64_t)(i - (shift << HISTOGRAM_BITS)) << shift) + (double)((1ull << shift) - 1) / 2;
    if (ns > (double)histogram->max_ns) ns = (double)histogram->max_ns;
    if (ns < (double)histogram->min_ns) ns = (double)histogram->min_ns;
    return ns / 1e3;
}

/* ---- the server ------------------------------------------------------------------------------------------------ */

struct counted {
    uint64_t bytes_in, bytes_out, messages, resent;
};

struct channel { /* what a connection's context points to */
    struct session *session; /* NULL: it was closed while the connection was being made */
    enum role role;
    cci_connection_t *connection; /* NULL: it is being made */
    struct channel *next;         /* of the session */
    struct counted shown;         /* what --top has shown */
    /* the run that START began */
    uint64_t received;
    uint8_t *seen; /* bit per number, for reliable unordered messages */
    uint64_t seen_bits;
};

struct session {
    int in_use;
    uint64_t id;
    enum test test;
    int verify, heap, touch, in_order, unreliable;
    int joins;            /* the group: what START asked for waits */
    struct control start;
    struct channel *channels;
    uint32_t channel_count;
    cci_connection_t *control;
    struct control *waiting; /* control messages that no send buffer was free for, the oldest first */
    uint32_t waiting_count;
    /* the run that START began */
    uint64_t size_bytes, slots, expected, received, duplicates, errors, first_ns, last_ns;
    int running, fresh; /* fresh: messages came since last_ns was taken */
    uint8_t *region;
    cci_rma_handle_t *handle;
};

static struct session sessions[SESSION_LIMIT];
static int served_count, served_badly;

/* Messages that are still to be echoed, since no send buffer was free: each keeps its receive buffer. */
static cci_event_t **kept;
static uint32_t kept_count, kept_limit;

/* Echoes a message, straight from its receive buffer. Returns 1 when that must wait, and the event must be kept: behind
 * those that wait already, since on RO the order is part of the promise. */
static int echo(cci_event_t *event) {
    const cci_event_recv_t *message = &event->recv;
    if (kept_count == 0 &&
        cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) != CCI_ENOBUFS)
        return 0;
    if (kept_count == kept_limit) {
        uint32_t grown = kept_limit ? 2 * kept_limit : 64;
        cci_event_t **more = (cci_event_t **)realloc((void *)kept, grown * sizeof *kept);
        if (!more) fail("echoes", CCI_ENOMEM);
        kept = more;
        kept_limit = grown;
    }
    kept[kept_count++] = event;
    return 1;
}

/* Echoes what waits, as far as there are send buffers now. The messages of a session that `closes` are given back. */
static void echo_kept(const struct session *closes) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; i < kept_count; i++) {
        const cci_event_recv_t *message = &kept[i]->recv;
        int gone = closes && ((const struct channel *)message->connection->context)->session == closes;
        if (!gone && (message->connection == full || cci_send(message->connection, message->ptr, message->len, NULL,
                                                              CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = message->connection;
            kept[left++] = kept[i];
        } else check(cci_return_event(kept[i]), "cci_return_event");
    }
    kept_count = left;
}

static void session_end_run(struct session *session) {
    struct channel *channel;
    if (session->handle) cci_rma_deregister(endpoint, session->handle);
    give_memory_back(endpoint, session->region, session->heap);
    for (channel = session->channels; channel; channel = channel->next) {
        free(channel->seen);
        channel->seen = NULL;
        channel->seen_bits = channel->received = 0;
    }
    session->handle = NULL;
    session->region = NULL;
    session->running = 0;
}

static void session_close(struct session *session, const char *why) {
    if (why) fprintf(stderr, "cci_perf: client dropped: %s\n", why);
    echo_kept(session);
    session_end_run(session);
    while (session->channels) {
        struct channel *channel = session->channels;
        session->channels = channel->next;
        channel->session = NULL; /* one that is being made stays until the event says how that ended */
        if (!channel->connection) continue;
        cci_disconnect(channel->connection);
        free(channel);
    }
    free(session->waiting);
    memset(session, 0, sizeof *session);
    served_count++;
    served_badly |= why != NULL;
}

/* Sends the control messages that wait. Returns 0 when the session is over. */
static int session_flush(struct session *session) {
    uint32_t sent = 0;
    int status = CCI_SUCCESS;
    while (sent < session->waiting_count) {
        status = send_control(session->control, &session->waiting[sent], CCI_FLAG_SILENT);
        if (status != CCI_SUCCESS) break;
        sent++;
    }
    if (status != CCI_SUCCESS && status != CCI_ENOBUFS) {
        session_close(session, cci_strerror(endpoint, (cci_status_t)status));
        return 0;
    }
    session->waiting_count -= sent;
    if (sent) memmove(session->waiting, session->waiting + sent, session->waiting_count * sizeof *session->waiting);
    return 1;
}

static void session_control(struct session *session, const struct control *control) {
    size_t size = (session->waiting_count + 1) * sizeof *control;
    struct control *more = (struct control *)realloc(session->waiting, size);
    if (!more) fail("control messages", CCI_ENOMEM);
    session->waiting = more;
    session->waiting[session->waiting_count++] = *control;
    (void)session_flush(session);
}

/* A channel more; NULL when there are too many, or no memory. */
static struct channel *session_add(struct session *session, enum role role) {
    struct channel *channel;
    if (session->channel_count == CHANNEL_LIMIT) return NULL;
    channel = (struct channel *)calloc(1, sizeof *channel);
    if (!channel) return NULL;
    channel->session = session;
    channel->role = role;
    channel->next = session->channels;
    session->channels = channel;
    session->channel_count++;
    return channel;
}

/* Begins to join the group by which the data will come. */
static int session_join(struct session *session, const char *group) {
    struct channel *channel = session_add(session, ROLE_DATA);
    struct timeval patience = {CONNECT_PATIENCE_S, 0};
    session->unreliable = session->joins = 1;
    return channel &&
           cci_connect(endpoint, group, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, channel, 0, &patience) == CCI_SUCCESS;
}

/* The session that a request is for: of a control connection a new one. */
static struct session *session_for(const struct request *request) {
    struct session *session = NULL;
    int i;
    for (i = 0; i < SESSION_LIMIT && !session; i++) {
        int known = sessions[i].in_use && sessions[i].id == request->session_id;
        if (request->role == ROLE_CONTROL ? !sessions[i].in_use : known && !*request->group) session = &sessions[i];
    }
    if (!session || request->role != ROLE_CONTROL) return session;
    session->in_use = 1;
    session->id = request->session_id;
    session->test = (enum test)request->test;
    session->verify = (int)request->verify;
    session->heap = (int)request->heap;
    session->touch = (int)request->touch;
    return session;
}

/* Gives up a session that has no connection yet. */
static void session_drop(struct session *session) {
    while (session->channels) {
        struct channel *channel = session->channels;
        session->channels = channel->next;
        free(channel);
    }
    memset(session, 0, sizeof *session);
}

static void session_request(cci_event_t *event) {
    struct request request;
    struct session *session = NULL;
    struct channel *channel = NULL;
    if (decode_request(event->request.data_ptr, event->request.data_len, &request)) session = session_for(&request);
    if (session && request.role == ROLE_DATA) {
        session->in_order = event->request.attribute == CCI_CONN_ATTR_RO;
        session->unreliable = event->request.attribute == CCI_CONN_ATTR_UU;
        channel = session_add(session, ROLE_DATA);
    } else if (session && (!*request.group || session_join(session, request.group))) {
        channel = session_add(session, ROLE_CONTROL);
    } else if (session) session_drop(session);
    if (channel) cci_accept(event, channel);
    else cci_reject(event);
}

static void session_accepted(const cci_event_accept_t *accepted) {
    struct channel *channel = (struct channel *)accepted->context;
    uint32_t keepalive_us = 10000000;
    if (!channel->session) { /* the session was closed while the handshake was under way */
        if (accepted->connection) cci_disconnect(accepted->connection);
        free(channel);
        return;
    }
    if (accepted->status != CCI_SUCCESS) {
        struct session *session = channel->session;
        session_close(session, cci_strerror(endpoint, accepted->status));
        free(channel);
        return;
    }
    channel->connection = accepted->connection;
    if (channel->role != ROLE_CONTROL) return;
    channel->session->control = accepted->connection;
    /* A client that dies without a word would otherwise occupy its session for ever. */
    (void)cci_set_opt(channel->connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us);
}

/* Makes the memory that the client will use. Its handle goes back in READY. */
static int session_prepare_region(struct session *session) {
    uint64_t length = session->size_bytes * session->slots, slot;
    if (session->slots == 0 || session->size_bytes == 0 || session->size_bytes > REGION_LIMIT / session->slots)
        return CCI_ERANGE;
    session->region = take_memory(endpoint, length, session->heap);
    if (!session->region) return CCI_ENOMEM;
    for (slot = 0; session->verify && slot < session->slots; slot++)
        pattern_fill(session->region + slot * session->size_bytes, session->size_bytes, slot, 0);
    /* Every page is touched before the measurement rather than in it. */
    if (!session->verify) memset(session->region, 1, (size_t)length);
    return cci_rma_register(endpoint, session->region, length,
                            is_read(session->test) ? CCI_FLAG_READ : CCI_FLAG_WRITE, &session->handle);
}

static void session_start(struct session *session, const struct control *start) {
    struct control ready;
    if (session->joins) {
        session->start = *start;
        return;
    }
    memset(&ready, 0, sizeof ready);
    session_end_run(session);
    session->size_bytes = start->a;
    session->expected = start->b ? start->b : UINT64_MAX;
    session->slots = start->c;
    session->received = session->duplicates = session->errors = session->first_ns = session->last_ns = 0;
    session->fresh = 0;
    session->running = 1;
    ready.type = CONTROL_READY;
    if (is_rma(session->test)) ready.a = (uint64_t)session_prepare_region(session);
    if (session->handle) memcpy(ready.handle, session->handle, 32);
    session_control(session, &ready);
}

static void session_joined(const cci_event_connect_t *joined) {
    struct channel *channel = (struct channel *)joined->context;
    struct session *session = channel->session;
    if (!session) { /* closed meanwhile */
        if (joined->connection) cci_disconnect(joined->connection);
        free(channel);
    } else if (joined->status != CCI_SUCCESS) {
        session_close(session, cci_strerror(endpoint, joined->status));
        free(channel);
    } else {
        channel->connection = joined->connection;
        session->joins = 0;
        if (session->start.type == CONTROL_START) session_start(session, &session->start);
    }
}

static void session_result(struct session *session) {
    struct control result;
    memset(&result, 0, sizeof result);
    result.type = CONTROL_RESULT;
    result.a = session->received;
    result.b = session->errors;
    result.c = session->last_ns - session->first_ns;
    result.d = session->duplicates;
    session->running = 0;
    session_control(session, &result);
}

/* Takes the time of the last message when all that came has been consumed: not for each message, which would cost more
 * than some messages do. */
static void session_stamp(struct session *session, uint64_t at_ns) {
    if (session->fresh) session->last_ns = at_ns;
    session->fresh = 0;
}

static int session_is_complete(const struct session *session) {
    return session->running && session->received >= session->expected;
}

/* Marks a number as seen; returns 1 when it was already. */
static int channel_saw(struct channel *channel, uint64_t number) {
    uint8_t bit = (uint8_t)(1u << (number & 7));
    int seen_before;
    if (number >> 33) return 0; /* a bitmap that long is not kept: the pattern will tell */
    if (number >= channel->seen_bits) {
        uint64_t bits = (number + 1) * 2 + 4096;
        uint8_t *grown = (uint8_t *)realloc(channel->seen, (size_t)(bits / 8));
        if (!grown) return 0;
        memset(grown + channel->seen_bits / 8, 0, (size_t)(bits / 8 - channel->seen_bits / 8));
        channel->seen = grown;
        channel->seen_bits = bits & ~7ull;
    }
    seen_before = (channel->seen[number / 8] & bit) != 0;
    channel->seen[number / 8] |= bit;
    return seen_before;
}

static void session_verify(struct session *session, struct channel *channel, const cci_event_recv_t *message) {
    uint64_t number = channel->received;
    int right = message->len == session->size_bytes &&
                message_check((const uint8_t *)message->ptr, message->len, &number, session->in_order);
    if (!right) session->errors++;
    if (session->in_order || message->len < 8 || !right) return;
    if (!channel_saw(channel, number)) return;
    session->duplicates++;
    session->received--; /* the caller is about to count it */
    channel->received--;
    if (!session->unreliable) session->errors++;
}

/* A verified write has arrived: check the slot, and let the client use it again. */
static void session_written(struct session *session, const cci_event_recv_t *message) {
    struct control checked;
    uint64_t number, slot;
    if (message->len != WRITTEN_BYTES || !session->region) return;
    number = get_word((const uint8_t *)message->ptr);
    slot = get_word((const uint8_t *)message->ptr + 8);
    if (slot >= session->slots) return;
    if (!pattern_check(session->region + slot * session->size_bytes, session->size_bytes, number, 0))
        session->errors++;
    memset(&checked, 0, sizeof checked);
    checked.type = CONTROL_CHECKED;
    checked.a = slot;
    session_control(session, &checked);
}

static volatile uint64_t touched; /* so that the compiler reads it all */

/* Looks at all of a message, as a program would that uses it. */
static void session_touch(const cci_event_recv_t *message) {
    const uint8_t *bytes = (const uint8_t *)message->ptr;
    uint64_t sum = 0;
    uint32_t i;
    for (i = 0; i < message->len; i += 64) sum += bytes[i];
    touched += sum;
}

/* Returns 1 when the event must be kept. */
static int session_data(struct session *session, struct channel *channel, cci_event_t *event) {
    const cci_event_recv_t *message = &event->recv;
    if (!session->running) return 0; /* late, from the run before */
    if (is_rma(session->test)) {
        session_written(session, message);
        return 0;
    }
    if (session->first_ns == 0) session->first_ns = now_ns();
    if (session->verify) session_verify(session, channel, message);
    if (session->touch) session_touch(message);
    session->received++;
    channel->received++;
    session->fresh = 1;
    if (session->test == TEST_LAT) return echo(event);
    if (session->received == session->expected) {
        session_stamp(session, now_ns());
        session_result(session);
    }
    return 0;
}

static void session_message(struct session *session, const cci_event_recv_t *message) {
    struct control control;
    if (!decode_control(message->ptr, message->len, &control)) session_close(session, "malformed control message");
    else if (control.type == CONTROL_START) session_start(session, &control);
    else if (control.type == CONTROL_BYE) session_close(session, NULL);
    else if (control.type == CONTROL_END && session->running) {
        /* Reliable messages may still wait behind this one; unreliable ones may never come: see serve_idle(). */
        session->expected = control.a;
        session->last_ns = session->fresh ? now_ns() : session->last_ns;
        if (is_rma(session->test) || session->test == TEST_LAT || session_is_complete(session)) session_result(session);
    }
}

/* A session ends with its control channel; what the client said there last has been heard by now. */
static void serve_disconnect(const cci_event_disconnect_t *ended) {
    struct channel *channel = (struct channel *)ended->context;
    if (channel->session && channel->role == ROLE_CONTROL) session_close(channel->session, "it has left");
}

/* Returns 1 when the event must be kept. */
static int serve_event(cci_event_t *event) {
    if (event->type == CCI_EVENT_RECV) {
        struct channel *channel = (struct channel *)event->recv.connection->context;
        if (!channel->session) return 0;
        if (channel->role == ROLE_DATA) return session_data(channel->session, channel, event);
        session_message(channel->session, &event->recv);
    } else if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        session_request(event);
    } else if (event->type == CCI_EVENT_ACCEPT) {
        session_accepted(&event->accept);
    } else if (event->type == CCI_EVENT_CONNECT) {
        session_joined(&event->connect);
    } else if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) {
        struct channel *channel = (struct channel *)event->keepalive.connection->context;
        if (channel->session) session_close(channel->session, "it does not answer any more");
    } else if (event->type == CCI_EVENT_DISCONNECT) {
        serve_disconnect(&event->disconnect);
    } else if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED) {
        fail("device", CCI_ERR_DEVICE_DEAD);
    }
    return 0;
}

static volatile sig_atomic_t asked; /* for statistics */

static void on_asked(int number) {
    (void)number;
    asked = 1;
}

static void take_signal(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_asked;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
}

#define NUMBER(what) ((unsigned long long)(what))

/* What an endpoint has sent, received and dropped; for a crowd, that of the thread that comes first. */
static void tell_statistics(cci_endpoint_t *of, cci_connection_t *connection) {
    cci_endpt_stats_t all;
    cci_conn_stats_t one;
    asked = 0;
    if (cci_get_opt(of, CCI_OPT_ENDPT_STATS, &all) != CCI_SUCCESS) return;
    fprintf(stderr, "connections: %u open, %u being opened; events waiting: %u; buffers: %u of %u received in, %u of %u sent from\n",
            all.connections_open, all.connections_opening, all.events_waiting, all.recv_buffers_used, all.recv_buffers_most,
            all.send_buffers_used, all.send_buffers_most);
    fprintf(stderr, "datagrams: %llu sent (%llu bytes), %llu received (%llu bytes); retransmitted %llu, lost %llu; system calls %llu\n",
            NUMBER(all.datagrams_sent), NUMBER(all.bytes_sent), NUMBER(all.datagrams_received), NUMBER(all.bytes_received),
            NUMBER(all.packets_retransmitted), NUMBER(all.packets_lost), NUMBER(all.system_calls));
    fprintf(stderr, "dropped: corrupt %llu, not ours %llu, no connection %llu, no buffer %llu, not authentic %llu, duplicate %llu\n",
            NUMBER(all.dropped_corrupt), NUMBER(all.dropped_not_ours), NUMBER(all.dropped_no_connection),
            NUMBER(all.dropped_no_buffer), NUMBER(all.dropped_not_authentic), NUMBER(all.dropped_duplicate));
    if (!connection || cci_get_opt(connection, CCI_OPT_CONN_STATS, &one) != CCI_SUCCESS) return;
    fprintf(stderr, "connection: round trip %.1f us (smallest %.1f), window %llu bytes, %llu under way, %u pending, path MTU %u\n",
            (double)one.srtt_ns / 1e3, (double)one.min_rtt_ns / 1e3, NUMBER(one.congestion_window), NUMBER(one.in_flight_bytes),
            one.operations_pending, one.path_mtu);
}

/* ---- --top: what the connections do, once a second ---- */

#define TOP_PERIOD_NS 1000000000ull
#define TOP_ROWS 20    /* where standard output is no terminal */
#define TOP_COLUMNS 46 /* of a line, without the peer */

struct top_row {
    cci_connection_t *connection;
    cci_conn_stats_t stats;
    struct counted more; /* since the last time */
};

static int tops, top_is_drawn; /* --top; the screen was cleared for it */
static uint64_t top_ns;        /* when it was shown */
static cci_endpt_stats_t top_before;

/* 0.0 to 999 and a letter, five columns at most. */
static const char *top_number(char text[16], double number) {
    static const char units[] = " kMGT";
    int unit = 0;
    while (number >= 999.5 && unit < 4) {
        number /= 1000;
        unit++;
    }
    snprintf(text, 16, "%.*f%.*s", unit > 0 && number < 99.95 ? 1 : 0, number, unit > 0, units + unit);
    return text;
}

static int top_is_busier(const void *one, const void *other) {
    const struct counted *a = &((const struct top_row *)one)->more, *b = &((const struct top_row *)other)->more;
    uint64_t bytes_a = a->bytes_in + a->bytes_out, bytes_b = b->bytes_in + b->bytes_out;
    return bytes_a < bytes_b ? 1 : -(bytes_a > bytes_b);
}

/* The rows of all connections, the busiest first; *count of them. Whoever calls frees them. */
static struct top_row *top_rows(size_t *count) {
    struct top_row *rows = NULL;
    size_t limit = 0;
    int i;
    *count = 0;
    for (i = 0; i < SESSION_LIMIT; i++) {
        struct channel *channel;
        for (channel = sessions[i].channels; channel; channel = channel->next) {
            struct top_row *row;
            struct counted now;
            if (*count == limit) {
                struct top_row *grown = (struct top_row *)realloc(rows, (limit = 2 * limit + 16) * sizeof *rows);
                if (!grown) fail("--top", CCI_ENOMEM);
                rows = grown;
            }
            row = &rows[*count];
            if (!channel->connection || cci_get_opt(channel->connection, CCI_OPT_CONN_STATS, &row->stats) != CCI_SUCCESS) continue;
            row->connection = channel->connection;
            now.bytes_in = row->stats.bytes_received + row->stats.peer_write_bytes;
            now.bytes_out = row->stats.bytes_sent + row->stats.peer_read_bytes;
            now.messages = row->stats.messages_received + row->stats.messages_sent;
            now.resent = row->stats.packets_retransmitted;
            row->more.bytes_in = now.bytes_in - channel->shown.bytes_in;
            row->more.bytes_out = now.bytes_out - channel->shown.bytes_out;
            row->more.messages = now.messages - channel->shown.messages;
            row->more.resent = now.resent - channel->shown.resent;
            channel->shown = now;
            ++*count;
        }
    }
    if (*count > 1) qsort(rows, *count, sizeof *rows, top_is_busier);
    return rows;
}

/* A line that fits, and clears what was there before. */
static void top_line(int columns, const char *text) {
    printf("%.*s%s\n", columns - 1, text, top_is_drawn ? "\033[K" : "");
}

static void top_columns(int columns, const char *peer, const char *const cells[6]) {
    char line[400];
    int room = columns - TOP_COLUMNS < 12 ? 12 : columns - TOP_COLUMNS > 300 ? 300 : columns - TOP_COLUMNS;
    snprintf(line, sizeof line, "%-*.*s %6s %6s %6s %8s %7s %6s", room, room, peer, cells[0], cells[1], cells[2], cells[3],
             cells[4], cells[5]);
    top_line(columns, line);
}

static void top_show_row(const struct top_row *row, double seconds, int columns) {
    const cci_conn_stats_t *stats = &row->stats;
    char text[6][16], *uri = NULL;
    const char *cells[6];
    cells[0] = top_number(text[0], (double)row->more.bytes_in / seconds);
    cells[1] = top_number(text[1], (double)row->more.bytes_out / seconds);
    cells[2] = top_number(text[2], (double)row->more.messages / seconds);
    cells[3] = stats->srtt_ns ? top_number(text[3], (double)stats->srtt_ns / 1e3) : "-";
    cells[4] = stats->congestion_window ? top_number(text[4], (double)stats->congestion_window) : "-";
    cells[5] = top_number(text[5], (double)row->more.resent / seconds);
    (void)cci_get_opt(row->connection, CCI_OPT_CONN_PEER_URI, &uri);
    top_columns(columns, uri ? uri : "?", cells);
    free(uri);
}

/* The first lines: the endpoint. */
static void top_show_all(double seconds, int columns) {
    static const char *const heads[6] = {"in/s", "out/s", "msg/s", "rtt us", "window", "re/s"};
    char in[16], out[16], resent[16], line[400], *uri = NULL;
    cci_endpt_stats_t all;
    if (cci_get_opt(endpoint, CCI_OPT_ENDPT_STATS, &all) != CCI_SUCCESS) memset(&all, 0, sizeof all);
    (void)cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri);
    snprintf(line, sizeof line, "%s  %u connections", uri ? uri : "?", all.connections_open);
    top_line(columns, line);
    free(uri);
    snprintf(line, sizeof line, "bytes/s: %s in, %s out; packets sent again/s: %s; dropped: %llu",
             top_number(in, (double)(all.bytes_received - top_before.bytes_received) / seconds),
             top_number(out, (double)(all.bytes_sent - top_before.bytes_sent) / seconds),
             top_number(resent, (double)(all.packets_retransmitted - top_before.packets_retransmitted) / seconds),
             NUMBER(all.dropped_corrupt + all.dropped_not_ours + all.dropped_no_buffer + all.dropped_not_authentic));
    top_line(columns, line);
    top_columns(columns, "peer", heads);
    top_before = all;
}

static void top_show(uint64_t at_ns) {
    struct winsize window;
    int columns = 100, most = TOP_ROWS;
    double seconds = (double)(at_ns - top_ns) / 1e9;
    size_t count, i;
    struct top_row *rows = top_rows(&count);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 && window.ws_row > 4) {
        columns = window.ws_col;
        most = window.ws_row - 4;
        fputs(top_is_drawn ? "\033[H" : "\033[2J\033[H", stdout);
        top_is_drawn = 1;
    }
    top_show_all(seconds, columns);
    for (i = 0; i < count && (int)i < most; i++) top_show_row(&rows[i], seconds, columns);
    if (top_is_drawn) fputs("\033[J", stdout);
    fflush(stdout);
    free(rows);
    top_ns = at_ns;
}

static void top_begin(void) {
    uint32_t counts = 1;
    (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_CONN_STATS, &counts);
    top_ns = now_ns();
}

/* Called when all events have been taken: what is not here now may be lost. */
static void serve_idle(void) {
    int i;
    if (kept_count > 0) echo_kept(NULL);
    for (i = 0; i < SESSION_LIMIT; i++) {
        struct session *session = &sessions[i];
        if (session->waiting_count > 0 && !session_flush(session)) continue;
        if (session->fresh) session_stamp(session, now_ns());
        if (!session->running || !session->unreliable || session->expected == UINT64_MAX) continue;
        if (session->last_ns == 0) session->first_ns = session->last_ns = now_ns();
        if (now_ns() - session->last_ns > QUIET_NS) session_result(session);
    }
}

static int serve(int once) {
    cci_event_t *event;
    uint32_t polls = 0, calls = 0;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    while (!once || served_count == 0) {
        int status = cci_get_event(endpoint, &event);
        if (tops && (sleeps || ++calls % 256 == 0) && now_ns() - top_ns >= TOP_PERIOD_NS) top_show(now_ns());
        if (asked) tell_statistics(endpoint, NULL);
        if (status == CCI_SUCCESS) {
            polls = 0;
            if (!serve_event(event)) cci_return_event(event);
        } else if (status == CCI_EAGAIN || (status == CCI_ENOBUFS && kept_count > 0)) { /* echoes have them */
            serve_idle();
            if (sleeps) poll(&sleeper, 1, kept_count > 0 ? 1 : 100);
            else if (++polls % YIELD_POLLS == 0) sched_yield();
        } else fail("cci_get_event", status);
    }
    return served_badly;
}

/* ---- the client ------------------------------------------------------------------------------------------------ */

struct options {
    const char *uri, *device, *service, *sizes, *group, *svg;
    enum test test;
    cci_conn_attribute_t attribute;
    enum format format;
    uint64_t count; /* 0: timed */
    double seconds, rate; /* rate: operations that are due in a second; 0: the next begins when one is done */
    int64_t warmup; /* < 0: default */
    int any_size;   /* the size is a default: what does not fit is made smaller */
    uint32_t window, depth, every, connections, threads;
    int limits_messages; /* the window holds for messages too */
    int crowd;           /* many connections, several threads or a rate */
    uint32_t crowd_window;
    int verify, silent, no_copy, heap, touch, once, cpu;
};

struct result {
    uint64_t size_bytes, count, lost, duplicates, errors;
    double seconds, receiver_seconds;
    struct histogram *latency;
};

struct peer { /* what a connection's context points to */
    cci_connection_t *connection;
    uint64_t sent, done; /* operations of this run */
    uint64_t *due_ns;    /* when operation n was due, at n modulo the window; 0: it is done */
};

/* When a run ends: after `count` operations, or at `deadline_ns`. One is due every `interval_ns`, unless that is 0. */
struct limit {
    uint64_t count, deadline_ns;
    double interval_ns;
};

enum phase { PHASE_OPEN, PHASE_WARM_UP, PHASE_RUN, PHASE_CLOSE };

/* A client, or each thread of one: it has an endpoint and connections of its own. */
struct client {
    const struct options *options;
    uint32_t number; /* of the thread */
    enum phase phase;
    cci_endpoint_t *endpoint;
    cci_os_handle_t os_handle;
    struct peer control, *peers;
    uint32_t peer_count, connecting, connected;
    cci_connection_t *data;      /* the only peer's */
    struct control message; /* the last of control, type 0 when taken */
    uint64_t completed, echoed, errors;
    uint32_t every; /* messages that one completion event stands for */
    int connect_status;
    cci_status_t first_error;
    /* buffers of a verified NO_COPY run, or slots of an RMA run, that are free */
    uint32_t free_list[POOL_COUNT];
    uint32_t free_count;
    uint8_t slot_waits[POOL_COUNT]; /* what a slot still waits for: the completion, the server's check */
    uint8_t *buffer;
    uint32_t size_bytes;
    int verify, is_rma, pooled, heap;
    enum test test;
    struct result result;
    uint64_t begin_ns, end_ns; /* of the last run */
    /* a crowd's: the peers that may begin an operation, each as often as it may, in a ring */
    uint32_t *turns;
    uint32_t turn_first, turn_count, turn_limit, window;
    uint64_t issued;
    cci_rma_handle_t *local_memory;
    uint64_t remote_memory[4]; /* the handle of it */
};

static struct client clients[THREAD_LIMIT];

static cci_rma_handle_t *remote_memory(struct client *me) { return (cci_rma_handle_t *)(void *)me->remote_memory; }

static void client_release(struct client *me, uint32_t slot) {
    if (me->slot_waits[slot] > 0 && --me->slot_waits[slot] == 0) me->free_list[me->free_count++] = slot;
}

static void client_sent(struct client *me, const cci_event_send_t *sent) {
    uint32_t slot = (uint32_t)(uintptr_t)sent->context;
    if (sent->connection != me->data) return;
    me->completed += me->every;
    if (sent->status != CCI_SUCCESS) {
        me->errors++;
        me->first_error = sent->status;
    } else if (me->verify && is_read(me->test)) {
        uint8_t *bytes = me->buffer + (uint64_t)slot * me->size_bytes;
        if (!pattern_check(bytes, me->size_bytes, slot, 0)) me->errors++;
        memset(bytes, 0xee, me->size_bytes); /* so that the next read can't pass by doing nothing */
    }
    if (me->pooled) client_release(me, slot);
}

static void client_received(struct client *me, const cci_event_recv_t *message) {
    struct control control;
    if (message->connection == me->data) {
        uint64_t number = me->echoed;
        if (me->verify && (message->len != me->size_bytes ||
                              !message_check((const uint8_t *)message->ptr, message->len, &number, 1)))
            me->errors++;
        me->echoed++;
    } else if (!decode_control(message->ptr, message->len, &control)) {
        fail("control message", CCI_EMSGSIZE);
    } else if (control.type == CONTROL_CHECKED) {
        if (control.a < POOL_COUNT) client_release(me, (uint32_t)control.a);
    } else me->message = control;
}

/* Operation `number` of a peer is done. */
static void peer_done(struct client *me, struct peer *peer, uint64_t number) {
    uint64_t *due_ns = &peer->due_ns[number % me->window], at_ns = now_ns();
    if (*due_ns == 0) {
        me->errors++; /* nobody asked for that */
        return;
    }
    histogram_add(me->result.latency, at_ns > *due_ns ? at_ns - *due_ns : 0);
    *due_ns = 0;
    peer->done++;
    me->completed++;
    me->turns[(me->turn_first + me->turn_count++) % me->turn_limit] = (uint32_t)(peer - me->peers);
}

/* One of many connections has an answer. On RO they come in order; on RU the first two bytes tell which this is. */
static void peer_received(struct client *me, struct peer *peer, const cci_event_recv_t *message) {
    uint64_t number = peer->done, newest = peer->sent - 1;
    if (message->len != me->size_bytes) {
        me->errors++;
        return;
    }
    if (me->options->attribute != CCI_CONN_ATTR_RO) {
        const uint8_t *head = (const uint8_t *)message->ptr;
        number = newest - ((newest - (head[0] | (uint64_t)head[1] << 8)) & 0xffff);
    }
    if (me->verify && !message_check((const uint8_t *)message->ptr, message->len, &number, 1)) me->errors++;
    peer_done(me, peer, number);
}

static void client_connected(struct client *me, const cci_event_connect_t *event) {
    struct peer *peer = (struct peer *)event->context;
    me->connecting--;
    me->connected++;
    peer->connection = event->connection;
    if (event->status != CCI_SUCCESS) me->connect_status = (int)event->status;
}

static void client_event(struct client *me, const cci_event_t *event) {
    if (event->type == CCI_EVENT_SEND && me->options->crowd) {
        if (event->send.status != CCI_SUCCESS) {
            me->errors++;
            me->first_error = event->send.status;
        }
        peer_done(me, (struct peer *)event->send.connection->context, (uint64_t)(uintptr_t)event->send.context);
    } else if (event->type == CCI_EVENT_RECV && me->options->crowd &&
               event->recv.connection != me->control.connection) {
        peer_received(me, (struct peer *)event->recv.connection->context, &event->recv);
    } else if (event->type == CCI_EVENT_SEND) client_sent(me, &event->send);
    else if (event->type == CCI_EVENT_RECV) client_received(me, &event->recv);
    else if (event->type == CCI_EVENT_CONNECT) client_connected(me, &event->connect);
    else if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED) fail("device", CCI_ERR_DEVICE_DEAD);
    else if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) fail("server", CCI_ETIMEDOUT);
}

/* Takes all events that are there; returns how many. */
static int client_drain(struct client *me) {
    cci_event_t *event;
    int count = 0, status;
    if (asked) tell_statistics(me->endpoint, me->data);
    while ((status = cci_get_event(me->endpoint, &event)) == CCI_SUCCESS) {
        client_event(me, event);
        cci_return_event(event);
        count++;
    }
    if (status != CCI_EAGAIN) fail("cci_get_event", status);
    return count;
}

/* Takes one event, or waits a little. Returns 0 when `limit_ns` have passed since *since_ns (which it sets when 0): the
 * clock is read only now and then. */
static int client_wait(struct client *me, uint64_t *since_ns, uint32_t *polls, uint64_t limit_ns) {
    cci_event_t *event;
    struct pollfd sleeper = {me->os_handle, POLLIN, 0};
    int status = cci_get_event(me->endpoint, &event);
    if (asked) tell_statistics(me->endpoint, me->data);
    if (status == CCI_SUCCESS) {
        client_event(me, event);
        cci_return_event(event);
        return 1;
    }
    if (status != CCI_EAGAIN) fail("cci_get_event", status);
    if (sleeps) poll(&sleeper, 1, 100);
    else if (++*polls % YIELD_POLLS != 0) return 1;
    else sched_yield();
    if (*since_ns == 0) *since_ns = now_ns();
    return now_ns() - *since_ns < limit_ns;
}

static struct control client_await(struct client *me, enum control_type type) {
    uint64_t since_ns = 0;
    uint32_t polls = 0;
    struct control message;
    while (me->message.type == 0)
        if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail("the server's answer", CCI_ETIMEDOUT);
    message = me->message;
    me->message.type = 0;
    if (message.type != (uint64_t)type) fail("the server's answer", CCI_ENOMSG);
    return message;
}

/* Begins to connect; client_connected() has the end. */
static void client_connect(struct client *me, enum role role, uint64_t session_id, struct peer *peer) {
    const struct options *options = me->options;
    struct request request;
    uint8_t bytes[REQUEST_BYTES + GROUP_BYTES];
    uint32_t group_bytes = options->group && role == ROLE_CONTROL ? (uint32_t)strlen(options->group) : 0;
    int to_group = options->group && role == ROLE_DATA;
    const char *uri = to_group ? options->group : options->uri;
    struct timeval patience = {CONNECT_PATIENCE_S, 0};
    request.role = role;
    request.test = options->test;
    request.verify = (uint32_t)options->verify;
    request.heap = (uint32_t)options->heap;
    request.touch = (uint32_t)options->touch;
    request.session_id = session_id;
    encode_request(bytes, &request);
    if (group_bytes) memcpy(bytes + REQUEST_BYTES, options->group, group_bytes);
    check(cci_connect(me->endpoint, uri, to_group ? NULL : bytes, to_group ? 0 : REQUEST_BYTES + group_bytes,
                      role == ROLE_CONTROL ? CCI_CONN_ATTR_RO : options->attribute, peer, 0, &patience), uri);
    me->connecting++;
}

/* Waits until at most `most` connections are being made. Who waits for long is told what for. */
static void client_connects(struct client *me, uint32_t most, uint64_t *said_ns) {
    uint64_t since_ns = 0;
    uint32_t polls = 0;
    while (me->connecting > most) {
        if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail(me->options->uri, CCI_ETIMEDOUT);
        check(me->connect_status, me->options->uri);
        if (me->number > 0 || now_ns() < *said_ns + 1000000000) continue;
        *said_ns = now_ns();
        if (me->connected == 0) {
            fprintf(stderr, "cci_perf: trying to connect to %s (at most %d s)\n", me->options->uri, CONNECT_PATIENCE_S);
            *said_ns += CONNECT_PATIENCE_S * 1000000000ull; /* once is enough */
        } else
            fprintf(stderr, "cci_perf: trying to connect to %s: %u of %u connections%s\n", me->options->uri,
                    me->connected, me->peer_count + 1, me->options->threads > 1 ? " of the first thread" : "");
    }
}

/* Bounces one message, and notes half of each round trip. Reads the clock once per round. */
static void run_lat(struct client *me, const struct options *options, struct limit limit, struct result *result) {
    uint64_t start_ns = now_ns(), i;
    for (i = 0; i < limit.count && start_ns < limit.deadline_ns; i++) {
        uint64_t echoed = me->echoed, waiting_ns = 0, end_ns;
        uint32_t polls = 0;
        int status;
        if (options->verify) {
            me->echoed = echoed = i; /* the number that the answer must have */
            message_fill(me->buffer, me->size_bytes, i);
        }
        while ((status = cci_send(me->data, me->buffer, me->size_bytes, NULL, CCI_FLAG_SILENT)) == CCI_ENOBUFS)
            if (!client_wait(me, &waiting_ns, &polls, PATIENCE_NS)) break;
        check(status, "cci_send");
        while (me->echoed == echoed && client_wait(me, &waiting_ns, &polls,
               is_unreliable(options->attribute) ? QUIET_NS : PATIENCE_NS)) {}
        end_ns = now_ns();
        if (me->echoed != echoed) histogram_add(result->latency, (end_ns - start_ns) / 2);
        else if (is_unreliable(options->attribute)) result->lost++;
        else fail("the echo", CCI_ETIMEDOUT);
        start_ns = end_ns;
    }
    result->count = i;
}

/* Takes all completions that are there; when asked to sleep rather than poll, waits for the first. */
static void client_make_room(struct client *me) {
    struct pollfd sleeper = {me->os_handle, POLLIN, 0};
    if (client_drain(me) == 0 && sleeps) poll(&sleeper, 1, 100);
}

/* Sends message `number`, of a pool buffer when it must stay untouched and be different from the others. */
static int send_verified(struct client *me, uint64_t number, int flags) {
    uint32_t slot = 0;
    uint8_t *buffer;
    int status;
    if (me->pooled) {
        if (me->free_count == 0) return CCI_ENOBUFS;
        slot = me->free_list[me->free_count - 1];
    }
    buffer = me->buffer + (uint64_t)slot * me->size_bytes;
    message_fill(buffer, me->size_bytes, number);
    status = cci_send(me->data, buffer, me->size_bytes, (void *)(uintptr_t)slot, flags);
    if (status == CCI_SUCCESS && me->pooled) {
        me->free_count--;
        me->slot_waits[slot] = 1;
    }
    return status;
}

/* Sends up to `count` messages from number `from` on; returns how many until the buffers were out. Of each `every` the last
 * has a completion event, which on RO tells that all before it have arrived too. */
static uint64_t send_batch(struct client *me, uint64_t from, uint64_t count, int flags) {
    cci_connection_t *connection = me->data;
    const uint8_t *buffer = me->buffer;
    uint32_t size_bytes = me->size_bytes;
    uint64_t i;
    uint32_t left = me->every - (uint32_t)(from % me->every); /* until the next with an event: a division is dear */
    int status = CCI_SUCCESS;
    for (i = 0; i < count; i++) {
        int quiet = --left == 0 ? 0 : CCI_FLAG_SILENT;
        if (left == 0) left = me->every;
        status = me->verify ? send_verified(me, from + i, flags)
                               : cci_send(connection, buffer, size_bytes, NULL, flags | quiet);
        if (status != CCI_SUCCESS) break;
    }
    if (status != CCI_SUCCESS && status != CCI_ENOBUFS) fail("cci_send", status);
    return i;
}

static void run_one_way(struct client *me, const struct options *options, struct limit limit, struct result *result) {
    int flags = (options->silent ? CCI_FLAG_SILENT : 0) | (options->no_copy ? CCI_FLAG_NO_COPY : 0);
    uint64_t start_ns = now_ns(), sent = 0, since_ns = 0;
    uint32_t polls = 0;
    struct control message;
    while (sent < limit.count) {
        uint64_t left = limit.count - sent, wanted = left < SEND_BATCH ? left : SEND_BATCH, done;
        if (options->limits_messages && me->completed + options->window < sent + wanted)
            wanted = me->completed + options->window - sent;
        done = wanted > 0 ? send_batch(me, sent, wanted, flags) : 0;
        sent += done;
        if (done == 0) wanted = 1;
        if (done < wanted) client_make_room(me);
        else client_drain(me);
        if (limit.deadline_ns != UINT64_MAX && now_ns() >= limit.deadline_ns) break;
    }
    if (limit.count == UINT64_MAX || is_unreliable(options->attribute)) {
        memset(&message, 0, sizeof message);
        message.type = CONTROL_END;
        message.a = sent;
        while (send_control(me->control.connection, &message, CCI_FLAG_SILENT) == CCI_ENOBUFS) client_make_room(me);
    }
    message = client_await(me, CONTROL_RESULT);
    result->seconds = (double)(now_ns() - start_ns) / 1e9;
    while (!options->silent && me->completed < sent - sent % me->every)
        if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail("completions", CCI_ETIMEDOUT);
    result->count = sent;
    result->errors = message.b;
    result->duplicates = message.d;
    result->lost = message.a < sent ? sent - message.a : 0;
    result->receiver_seconds = (double)message.c / 1e9;
    if (is_unreliable(options->attribute)) /* the server's patience is not part of the time */
        result->seconds = result->receiver_seconds > 0 ? result->receiver_seconds : result->seconds;
}

/* Starts one RMA on a free slot; CCI_ENOBUFS when there is none. A verified write waits for completion and check. */
static int start_rma(struct client *me, const struct options *options, cci_rma_handle_t *local,
                     cci_rma_handle_t *remote, uint64_t number) {
    uint8_t note[WRITTEN_BYTES];
    uint64_t words[2], offset;
    uint32_t slot;
    int status, direction = is_read(options->test) ? CCI_FLAG_READ : CCI_FLAG_WRITE;
    int noted = options->verify && direction == CCI_FLAG_WRITE;
    if (me->free_count == 0) return CCI_ENOBUFS;
    slot = me->free_list[me->free_count - 1];
    offset = options->verify ? (uint64_t)slot * me->size_bytes : 0;
    if (noted) pattern_fill(me->buffer + offset, me->size_bytes, number, 0);
    words[0] = number;
    words[1] = slot;
    put_words(note, words, 2);
    status = cci_rma(me->data, noted ? note : NULL, noted ? WRITTEN_BYTES : 0, local, offset, remote, offset,
                     me->size_bytes, (void *)(uintptr_t)slot, direction);
    if (status != CCI_SUCCESS) return status;
    me->free_count--;
    me->slot_waits[slot] = (uint8_t)(noted ? 2 : 1);
    return CCI_SUCCESS;
}

static void run_rma(struct client *me, const struct options *options, struct limit limit, struct result *result,
                    cci_rma_handle_t *remote) {
    uint32_t window = me->free_count;
    cci_rma_handle_t *local;
    uint64_t begin_ns, start_ns, end_ns, started = 0, since_ns = 0;
    uint32_t polls = 0;
    check(cci_rma_register(me->endpoint, me->buffer, (uint64_t)me->size_bytes * (options->verify ? window : 1), 0,
                           &local), "cci_rma_register");
    begin_ns = start_ns = now_ns();
    while (started < limit.count && start_ns < limit.deadline_ns && me->errors == 0) {
        uint64_t completed = me->completed;
        int status;
        if (is_latency(options->test) && options->verify) start_ns = now_ns(); /* the check is not part of the time */
        status = start_rma(me, options, local, remote, started);
        if (status == CCI_SUCCESS) started++;
        else if (status == CCI_ENOBUFS) client_make_room(me);
        else fail("cci_rma", status);
        if (is_latency(options->test) && status == CCI_SUCCESS) {
            since_ns = 0;
            while (me->completed == completed)
                if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail("completion", CCI_ETIMEDOUT);
            end_ns = now_ns();
            histogram_add(result->latency, end_ns - start_ns);
            start_ns = end_ns;
        } else if (limit.deadline_ns != UINT64_MAX) start_ns = now_ns();
    }
    since_ns = 0;
    while (me->completed < started || (me->free_count < window && me->errors == 0))
        if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail("completions", CCI_ETIMEDOUT);
    result->seconds = (double)(now_ns() - begin_ns) / 1e9;
    result->count = started;
    check(cci_rma_deregister(me->endpoint, local), "cci_rma_deregister");
}

static void client_prepare(struct client *me, const struct options *options, uint32_t size_bytes) {
    uint32_t i, buffers;
    me->size_bytes = size_bytes;
    me->completed = me->echoed = me->errors = 0;
    me->is_rma = is_rma(options->test);
    me->verify = options->verify;
    me->every = options->every;
    me->test = options->test;
    me->pooled = me->is_rma || (options->verify && options->no_copy);
    me->free_count = me->is_rma ? is_latency(options->test) ? 1 : options->window : POOL_COUNT;
    if (options->crowd) me->pooled = 0;
    buffers = me->pooled && options->verify ? me->free_count : 1;
    me->heap = options->heap || !me->is_rma;
    me->buffer = take_memory(me->endpoint, (uint64_t)size_bytes * buffers + 8, me->heap);
    if (!me->buffer) fail("buffers", CCI_ENOMEM);
    memset(me->buffer, 0xee, (size_t)size_bytes * buffers + 8);
    memset(me->slot_waits, 0, sizeof me->slot_waits);
    for (i = 0; i < me->free_count; i++) me->free_list[i] = me->free_count - 1 - i;
}

/* ---- many connections ------------------------------------------------------------------------------------------- */

/* Each thread has an endpoint and a part of the connections. An operation is a message and its echo (lat), a message
 * until its completion (rate, bw), or an RMA. Each connection has up to a window of them outstanding. Without a rate
 * the next begins when one is done. With a rate each has a time at which it is due, whatever became of those before; its
 * latency counts from then on, also when it could not begin in time: a server that stops for a second is seen by all
 * operations of that second, not by one alone. */

/* Begins an operation of a peer. Returns 0 when it must wait. */
static int crowd_begin(struct client *me, struct peer *peer, uint64_t due_ns) {
    uint64_t slot = peer->sent % me->window;
    void *context = (void *)(uintptr_t)slot;
    int status;
    if (peer->due_ns[slot]) return 0; /* of RU, an answer that others have overtaken */
    if (me->is_rma) {
        status = cci_rma(peer->connection, NULL, 0, me->local_memory, 0, remote_memory(me), 0, me->size_bytes, context,
                         is_read(me->test) ? CCI_FLAG_READ : CCI_FLAG_WRITE);
    } else {
        if (me->verify) message_fill(me->buffer, me->size_bytes, peer->sent);
        else put_words(me->buffer, &peer->sent, 1); /* the buffer is 8 bytes longer than the messages */
        status = cci_send(peer->connection, me->buffer, me->size_bytes, context,
                          me->test == TEST_LAT ? CCI_FLAG_SILENT : 0);
    }
    if (status == CCI_ENOBUFS) return 0;
    check(status, me->is_rma ? "cci_rma" : "cci_send");
    peer->due_ns[slot] = due_ns;
    peer->sent++;
    me->issued++;
    return 1;
}

/* Begins what may begin, up to a batch. Returns how many that were; *due_ns is when the next is due. */
static uint32_t crowd_issue(struct client *me, const struct limit *limit, uint64_t *due_ns) {
    uint64_t at_ns = now_ns();
    uint32_t begun = 0, refused = 0;
    *due_ns = at_ns;
    while (begun < SEND_BATCH && refused < 16 && me->turn_count > 0 && me->issued < limit->count) {
        uint32_t who = me->turns[me->turn_first];
        if (limit->interval_ns > 0)
            *due_ns = me->begin_ns + (uint64_t)((double)me->issued * limit->interval_ns);
        if (*due_ns > at_ns) break;
        me->turn_first = (me->turn_first + 1) % me->turn_limit;
        me->turn_count--;
        if (crowd_begin(me, &me->peers[who], *due_ns)) begun++;
        else {
            me->turns[(me->turn_first + me->turn_count++) % me->turn_limit] = who;
            refused++;
        }
    }
    return begun;
}

/* Nothing can be done before an event comes or `due_ns`. */
static void crowd_rest(struct client *me, uint64_t due_ns, uint32_t *polls) {
    struct pollfd sleeper = {me->os_handle, POLLIN, 0};
    uint64_t at_ns = now_ns(), wait_ms = due_ns > at_ns ? (due_ns - at_ns) / 1000000 : 100;
    if (sleeps && wait_ms > 0) poll(&sleeper, 1, wait_ms < 100 ? (int)wait_ms : 100);
    else if (sleeps || ++*polls % YIELD_POLLS == 0) sched_yield();
}

static void run_crowd(struct client *me, const struct limit *limit, struct result *result) {
    uint64_t due_ns, alive_ns = me->begin_ns, since_ns = 0;
    uint32_t polls = 0;
    struct control message;
    while (me->issued < limit->count && me->errors == 0) {
        uint32_t begun = crowd_issue(me, limit, &due_ns);
        int events = client_drain(me);
        uint64_t at_ns = now_ns();
        if (at_ns >= limit->deadline_ns) break;
        if (begun > 0 || events > 0 || due_ns > at_ns) alive_ns = at_ns;
        if (at_ns - alive_ns > PATIENCE_NS) fail("the server's answers", CCI_ETIMEDOUT);
        if (begun == 0 && events == 0) crowd_rest(me, due_ns, &polls);
    }
    while (me->completed < me->issued && me->errors == 0)
        if (!client_wait(me, &since_ns, &polls, PATIENCE_NS)) fail("the server's answers", CCI_ETIMEDOUT);
    me->end_ns = now_ns();
    memset(&message, 0, sizeof message);
    message.type = CONTROL_END;
    message.a = me->issued;
    while (send_control(me->control.connection, &message, CCI_FLAG_SILENT) == CCI_ENOBUFS) client_make_room(me);
    message = client_await(me, CONTROL_RESULT);
    result->count = me->issued;
    result->errors = message.b;
    result->duplicates = message.d;
    if (is_rma(me->test) || me->test == TEST_LAT) return;
    if (!is_unreliable(me->options->attribute)) me->end_ns = now_ns();
    result->lost = message.a < me->issued ? me->issued - message.a : 0;
    result->receiver_seconds = (double)message.c / 1e9;
}

/* Everybody's turns and free slots, for the next run. */
static void crowd_prepare(struct client *me) {
    const struct options *options = me->options;
    uint32_t i, round;
    me->window = options->crowd_window;
    me->turn_limit = me->peer_count * me->window;
    if (!me->turns) {
        me->turns = (uint32_t *)malloc(me->turn_limit * sizeof *me->turns);
        for (i = 0; i < me->peer_count && me->turns; i++) {
            me->peers[i].due_ns = (uint64_t *)calloc(me->window, sizeof *me->peers[i].due_ns);
            if (!me->peers[i].due_ns) me->turns = NULL;
        }
        if (!me->turns) fail("connections", CCI_ENOMEM);
    }
    me->turn_first = me->turn_count = 0;
    for (round = 0; round < me->window; round++)
        for (i = 0; i < me->peer_count; i++) me->turns[me->turn_count++] = i;
    for (i = 0; i < me->peer_count; i++) {
        me->peers[i].sent = me->peers[i].done = 0;
        memset(me->peers[i].due_ns, 0, me->window * sizeof *me->peers[i].due_ns);
    }
    me->issued = 0;
    if (me->is_rma)
        check(cci_rma_register(me->endpoint, me->buffer, me->size_bytes, 0, &me->local_memory), "cci_rma_register");
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* This thread's part of an amount. */
static uint64_t part_of(const struct client *me, uint64_t amount) {
    uint64_t threads = me->options->threads, each = amount / threads;
    return each + (me->number < amount % threads);
}

/* When the run ends: all threads' operations are divided among them. */
static struct limit limit_of(const struct client *me, uint64_t count, double seconds, double per_second) {
    struct limit limit;
    limit.interval_ns = 0;
    if (per_second > 0) {
        if (count == 0) count = (uint64_t)(per_second * seconds + 0.5);
        limit.interval_ns = 1e9 * me->options->threads / per_second;
        limit.count = part_of(me, count);
        limit.deadline_ns = UINT64_MAX;
        return limit;
    }
    limit.count = count ? part_of(me, count) : UINT64_MAX;
    limit.deadline_ns = count ? UINT64_MAX : now_ns() + (uint64_t)(seconds * 1e9);
    return limit;
}

/* Tells the server what comes, and waits until it is ready. */
static void run_start(struct client *me, uint32_t size_bytes, uint64_t expected) {
    struct control message;
    memset(&message, 0, sizeof message);
    message.type = CONTROL_START;
    message.a = size_bytes;
    message.b = expected;
    message.c = me->options->verify ? me->free_count : 1;
    check(send_control(me->control.connection, &message, CCI_FLAG_SILENT), "start");
    message = client_await(me, CONTROL_READY);
    check((int)message.a, "the server");
    memcpy(me->remote_memory, message.handle, sizeof me->remote_memory);
}

static void run_end(struct client *me, struct result *result) {
    struct control message;
    memset(&message, 0, sizeof message);
    message.type = CONTROL_END;
    check(send_control(me->control.connection, &message, CCI_FLAG_SILENT), "end");
    message = client_await(me, CONTROL_RESULT);
    result->errors = message.b;
}

/* One run of one size, from START to RESULT. */
static void run(struct client *me, uint32_t size_bytes, uint64_t count, double seconds, double per_second) {
    const struct options *options = me->options;
    struct result *result = &me->result;
    struct histogram *latency = result->latency;
    struct limit limit;
    int needs_end = options->crowd || is_unreliable(options->attribute) || is_latency(options->test) ||
                    is_rma(options->test);
    memset(result, 0, sizeof *result);
    memset(latency, 0, sizeof *latency);
    result->latency = latency;
    result->size_bytes = size_bytes;
    client_prepare(me, options, size_bytes);
    if (options->crowd) crowd_prepare(me);
    run_start(me, size_bytes, needs_end ? 0 : count);
    limit = limit_of(me, count, seconds, per_second);
    me->begin_ns = now_ns();
    me->end_ns = 0;
    if (options->crowd) run_crowd(me, &limit, result);
    else if (options->test == TEST_LAT) run_lat(me, options, limit, result);
    else if (is_rma(options->test)) run_rma(me, options, limit, result, remote_memory(me));
    else run_one_way(me, options, limit, result);
    if (!options->crowd && (is_rma(options->test) || options->test == TEST_LAT)) run_end(me, result);
    result->errors += me->errors;
    if (!is_unreliable(options->attribute)) result->errors += result->lost;
    if (me->local_memory) check(cci_rma_deregister(me->endpoint, me->local_memory), "cci_rma_deregister");
    me->local_memory = NULL;
    give_memory_back(me->endpoint, me->buffer, me->heap);
}

/* ---- what is printed ------------------------------------------------------------------------------------------- */

static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999, 1};
static const char *const share_names[] = {"min", "median", "p90", "p99", "p999", "max"};

static double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

/* What the latencies are those of. */
static const char *latency_name(const struct options *options) {
    if (!options->crowd) return options->test == TEST_LAT ? "half round-trip" : "to completion";
    if (options->rate > 0)
        return options->test == TEST_LAT ? "round-trip from when it was due" : "from when it was due to completion";
    return options->test == TEST_LAT ? "round-trip" : "to completion";
}

static void print_heading(const struct options *options) {
    printf("# %s %s", test_names[options->test], attribute_names[options->attribute]);
    if (options->crowd) printf(", %u connections, %u threads", options->connections, options->threads);
    if (options->rate > 0) printf(", %.0f/s are due", options->rate);
    if (options->crowd || is_latency(options->test)) printf(", µs, %s", latency_name(options));
    else if (!is_rma(options->test)) printf("; recv: as the receiver saw it");
    printf("\n#%11s %*s", "bytes", is_latency(options->test) && !options->crowd ? 9 : 11, "count");
    if (options->crowd || !is_latency(options->test)) printf(" %13s %11s ", "messages/s", "MB/s");
    if (options->crowd || is_latency(options->test))
        printf(" %9s %9s %9s %9s %9s %9s", "min", "median", "p90", "p99", "p99.9", "max");
    printf(" %6s %6s%s\n", "lost", "errors",
           is_rma(options->test) || options->test == TEST_LAT ? "" : "    recv msg/s   recv MB/s");
}

static void print_text(const struct options *options, const struct result *result, int first) {
    double count = (double)(result->count - (result->lost < result->count ? result->lost : result->count));
    double bytes = (double)result->size_bytes;
    int i, latencies = options->crowd || is_latency(options->test), rates = options->crowd || !latencies;
    if (first) print_heading(options);
    printf("%12llu %*llu", (unsigned long long)result->size_bytes, rates ? 11 : 9, (unsigned long long)result->count);
    if (rates) printf(" %13.0f %11.2f ", rate(count, result->seconds), rate(count * bytes, result->seconds) / 1e6);
    for (i = 0; i < 6 && latencies; i++) printf(" %9.2f", percentile_us(result->latency, shares[i]));
    printf(" %6llu %6llu", (unsigned long long)result->lost, (unsigned long long)result->errors);
    if (result->receiver_seconds > 0)
        printf(" %13.0f %11.2f", rate(count, result->receiver_seconds),
               rate(count * bytes, result->receiver_seconds) / 1e6);
    printf("\n");
}

/* CSV and JSON have the same fields; those that a test does not measure are empty, or left out. */
static void print_fields(const struct options *options, const struct result *result, int json) {
    double count = (double)(result->count - (result->lost < result->count ? result->lost : result->count));
    double values[4];
    static const char *const names[] = {"msg_per_s", "bytes_per_s", "recv_msg_per_s", "recv_bytes_per_s"};
    int i;
    values[0] = rate(count, result->seconds);
    values[1] = values[0] * (double)result->size_bytes;
    values[2] = rate(count, result->receiver_seconds);
    values[3] = values[2] * (double)result->size_bytes;
    printf(json ? "  {\"test\": \"%s\", \"attribute\": \"%s\", \"size\": %llu, \"count\": %llu, \"lost\": %llu, "
                  "\"duplicates\": %llu, \"errors\": %llu"
                : "%s,%s,%llu,%llu,%llu,%llu,%llu",
           test_names[options->test], attribute_names[options->attribute], (unsigned long long)result->size_bytes,
           (unsigned long long)result->count, (unsigned long long)result->lost,
           (unsigned long long)result->duplicates, (unsigned long long)result->errors);
    for (i = 0; i < 4; i++) {
        int measured = values[i] > 0;
        if (json && measured) printf(", \"%s\": %.1f", names[i], values[i]);
        if (!json && measured) printf(",%.1f", values[i]);
        if (!json && !measured) printf(",");
    }
    for (i = 0; i < 6; i++) {
        double at_us = percentile_us(result->latency, shares[i]);
        if (json && result->latency->count) printf(", \"%s_us\": %.3f", share_names[i], at_us);
        if (!json && result->latency->count) printf(",%.3f", at_us);
        if (!json && !result->latency->count) printf(",");
    }
    printf(json ? ", \"connections\": %u, \"threads\": %u" : ",%u,%u", options->connections, options->threads);
    if (options->rate > 0) printf(json ? ", \"due_per_s\": %.1f" : ",%.1f", options->rate);
    else if (!json) printf(",");
    if (json && result->latency->count) printf(", \"latency\": \"%s\"", latency_name(options));
    if (!json) printf(",%s", result->latency->count ? latency_name(options) : "");
}

static void print_result(const struct options *options, const struct result *result, int first) {
    if (options->format == FORMAT_TEXT) print_text(options, result, first);
    if (options->format == FORMAT_CSV) {
        if (first)
            puts("test,attribute,size,count,lost,duplicates,errors,msg_per_s,bytes_per_s,recv_msg_per_s,"
                 "recv_bytes_per_s,min_us,median_us,p90_us,p99_us,p999_us,max_us,"
                 "connections,threads,due_per_s,latency");
        print_fields(options, result, 0);
        printf("\n");
    }
    if (options->format == FORMAT_JSON) {
        printf(first ? "[\n" : ",\n");
        print_fields(options, result, 1);
        printf("}");
    }
    fflush(stdout);
}

/* ---- sizes and options ----------------------------------------------------------------------------------------- */

/* A number with k, m or g behind it. Returns 0 when there is none. */
static int parse_size(const char **text, uint64_t *size_bytes) {
    char *end;
    *size_bytes = strtoull(*text, &end, 10);
    if (end == *text) return 0;
    if (*end == 'k' || *end == 'K') *size_bytes <<= 10, end++;
    else if (*end == 'm' || *end == 'M') *size_bytes <<= 20, end++;
    else if (*end == 'g' || *end == 'G') *size_bytes <<= 30, end++;
    *text = end;
    return 1;
}

/* The sizes that an option names: "64", "8,64,1k", "1:64k" (each twice the one before), or several of these. */
struct sizes {
    const char *text;
    uint64_t size_bytes, sweep_end;
};

/* Returns 1 with the next size, 0 at the end, -1 when the text is wrong. */
static int next_size(struct sizes *sizes) {
    if (sizes->sweep_end) {
        sizes->size_bytes = sizes->size_bytes ? sizes->size_bytes * 2 : 1;
        if (sizes->size_bytes <= sizes->sweep_end) return 1;
        sizes->sweep_end = 0;
    }
    if (*sizes->text == 0) return 0;
    if (!parse_size(&sizes->text, &sizes->size_bytes)) return -1;
    if (*sizes->text == ':') {
        sizes->text++;
        if (!parse_size(&sizes->text, &sizes->sweep_end) || sizes->sweep_end < sizes->size_bytes) return -1;
    }
    if (*sizes->text == ',') sizes->text++;
    else if (*sizes->text) return -1;
    return 1;
}

/* Before what is measured, a run that is not, so that the path is known and every page touched. */
static void warm_up(struct client *me, uint32_t size_bytes) {
    const struct options *options = me->options;
    uint64_t count = options->warmup >= 0 ? (uint64_t)options->warmup : is_rma(options->test) ? 32 : 1000;
    if (options->warmup < 0 && options->count && count > options->count / 10) count = options->count / 10;
    if (count) run(me, size_bytes, count, 0, 0);
}

static cci_device_t *find_device(const char *name) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices && strcmp((*devices)->name, name) != 0) devices++;
    if (!*devices) fail(name, CCI_ERR_NOT_FOUND);
    return *devices;
}

/* A device of the transport that the URI names; NULL stands for the default one. */
static cci_device_t *device_for(const char *uri) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    while (*devices) {
        size_t length = strlen((*devices)->transport);
        if ((*devices)->up && strncmp(uri, (*devices)->transport, length) == 0 && uri[length] == ':') break;
        devices++;
    }
    return *devices;
}

static void open_endpoint(const struct options *options, cci_endpoint_t **made, cci_os_handle_t *handle) {
    cci_device_t *device = options->device ? find_device(options->device)
                           : options->uri  ? device_for(options->uri)
                                           : NULL;
    check(cci_create_endpoint_at(device, options->service, 0, made, sleeps ? handle : NULL), "cci_create_endpoint_at");
    if (options->depth == 0) return;
    check(cci_set_opt(*made, CCI_OPT_ENDPT_SEND_BUF_COUNT, &options->depth), "--depth, send buffers");
    check(cci_set_opt(*made, CCI_OPT_ENDPT_RECV_BUF_COUNT, &options->depth), "--depth, receive buffers");
}

static void client_open(struct client *me) {
    const struct options *options = me->options;
    uint64_t session_id = (now_ns() << 16 ^ (uint64_t)(uintptr_t)&session_id) + me->number, said_ns = now_ns();
    uint32_t keepalive_us = 20000000, i;
    open_endpoint(options, &me->endpoint, &me->os_handle);
    me->result.latency = (struct histogram *)malloc(sizeof *me->result.latency);
    me->peer_count = (uint32_t)part_of(me, options->connections);
    me->peers = (struct peer *)calloc(me->peer_count, sizeof *me->peers);
    if (!me->peers || !me->result.latency) fail("connections", CCI_ENOMEM);
    client_connect(me, ROLE_CONTROL, session_id, &me->control);
    client_connects(me, 0, &said_ns);
    for (i = 0; i < me->peer_count; i++) {
        client_connect(me, ROLE_DATA, session_id, &me->peers[i]);
        client_connects(me, CONNECT_BATCH - 1, &said_ns);
    }
    client_connects(me, 0, &said_ns);
    me->data = me->peers[0].connection;
    (void)cci_set_opt(me->control.connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us);
}

static void client_close(struct client *me) {
    struct control message;
    uint32_t i;
    memset(&message, 0, sizeof message);
    message.type = CONTROL_BYE;
    /* The server disconnects when it has this, perhaps before we learn that it has: either answer is good. */
    (void)send_control(me->control.connection, &message, CCI_FLAG_BLOCKING);
    for (i = 0; i < me->peer_count; i++) free(me->peers[i].due_ns);
    free(me->peers);
    free(me->turns);
    free(me->result.latency);
}

static void *client_phase(void *client) {
    struct client *me = (struct client *)client;
    uint32_t size_bytes = me->size_bytes;
    if (me->phase == PHASE_OPEN) client_open(me);
    else if (me->phase == PHASE_WARM_UP) warm_up(me, size_bytes);
    else if (me->phase == PHASE_RUN) run(me, size_bytes, me->options->count, me->options->seconds, me->options->rate);
    else client_close(me);
    return NULL;
}

/* All threads do this, side by side; returns when all have done it. */
static void all_clients(const struct options *options, enum phase phase, uint32_t size_bytes) {
    pthread_t threads[THREAD_LIMIT];
    uint32_t i;
    for (i = 0; i < options->threads; i++) {
        clients[i].options = options;
        clients[i].number = i;
        clients[i].phase = phase;
        clients[i].size_bytes = size_bytes;
    }
    for (i = 1; i < options->threads; i++)
        if (pthread_create(&threads[i], NULL, client_phase, &clients[i]) != 0) fail("threads", CCI_ENOMEM);
    (void)client_phase(&clients[0]);
    for (i = 1; i < options->threads; i++) (void)pthread_join(threads[i], NULL);
}

/* What all threads have measured together: from the first beginning to the last end. */
static void add_up(const struct options *options, struct result *result) {
    struct histogram *latency = result->latency;
    uint64_t begin_ns = UINT64_MAX, end_ns = 0;
    uint32_t i;
    memset(result, 0, sizeof *result);
    memset(latency, 0, sizeof *latency);
    result->latency = latency;
    for (i = 0; i < options->threads; i++) {
        const struct result *part = &clients[i].result;
        result->size_bytes = part->size_bytes;
        result->count += part->count;
        result->lost += part->lost;
        result->duplicates += part->duplicates;
        result->errors += part->errors;
        if (part->receiver_seconds > result->receiver_seconds) result->receiver_seconds = part->receiver_seconds;
        if (part->seconds > result->seconds) result->seconds = part->seconds;
        if (clients[i].begin_ns < begin_ns) begin_ns = clients[i].begin_ns;
        if (clients[i].end_ns > end_ns) end_ns = clients[i].end_ns;
        histogram_merge(latency, part->latency);
    }
    if (end_ns > begin_ns) result->seconds = (double)(end_ns - begin_ns) / 1e9;
}

/* The size that is measured next; 0 when this one is not possible. */
static int size_fits(const struct options *options, struct sizes *sizes) {
    uint64_t limit = is_rma(options->test) ? REGION_LIMIT / options->window - 1 : clients[0].data->max_send_size;
    if (options->any_size && sizes->size_bytes > limit) sizes->size_bytes = limit;
    if (options->crowd && options->test == TEST_LAT && options->attribute == CCI_CONN_ATTR_RU &&
        sizes->size_bytes < 2) {
        fprintf(stderr, "cci_perf: of many echoes under way on ru, each needs 2 bytes to be told from the others\n");
        return 0;
    }
    if (sizes->size_bytes <= limit && (!is_rma(options->test) || sizes->size_bytes > 0)) return 1;
    fprintf(stderr, "cci_perf: %llu bytes: not possible here (the most is %llu)\n",
            (unsigned long long)sizes->size_bytes, (unsigned long long)limit);
    return 0;
}

/* ---- the plot --------------------------------------------------------------------------------------------------- */

#define PLOT_SIZES 40
#define PLOT_POINTS 61 /* of a curve of latencies: ten for each nine in the percentile */
#define PLOT_LEFT 70.0
#define PLOT_RIGHT 640.0
#define PLOT_TOP 60.0
#define PLOT_BOTTOM 380.0

static struct {
    uint64_t sizes[PLOT_SIZES];
    double values[PLOT_SIZES][PLOT_POINTS]; /* µs, messages/s or bytes/s; only the first of each unless latencies */
    uint32_t points[PLOT_SIZES], count;
} plot;

static int plots_latency(const struct options *options) { return is_latency(options->test) || options->rate > 0; }

/* The logarithm, without the mathematical library, which a program would have to be linked with. */
static double log_2(double value) {
    double log = 0, bit = 1;
    if (!(value > 0)) return 0;
    while (value >= 2) value /= 2, log++;
    while (value < 1) value *= 2, log--;
    while ((bit /= 2) > 1e-6) {
        value *= value;
        if (value >= 2) value /= 2, log += bit;
    }
    return log;
}

static void plot_add(const struct options *options, const struct result *result) {
    double *values = plot.values[plot.count % PLOT_SIZES], above = 1, messages;
    uint32_t *points = &plot.points[plot.count % PLOT_SIZES];
    if (!options->svg || plot.count == PLOT_SIZES) return;
    plot.sizes[plot.count++] = result->size_bytes;
    messages = rate((double)(result->count - (result->lost < result->count ? result->lost : result->count)),
                    result->seconds);
    values[0] = options->test == TEST_RATE ? messages : messages * (double)result->size_bytes;
    *points = 1;
    if (!plots_latency(options)) return;
    for (*points = 0; *points < PLOT_POINTS;) {
        if (above * (double)result->latency->count < 1 && *points > 0) break;
        values[(*points)++] = percentile_us(result->latency, 1 - above);
        above *= 0.7943282347242815; /* 10 to the power of -0.1 */
    }
}

static double plot_x(double share) { return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT); }
static double plot_y(double share) { return PLOT_BOTTOM - share * (PLOT_BOTTOM - PLOT_TOP); }

static void plot_text(FILE *svg, double x, double y, const char *anchor, const char *text) {
    fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text);
}

/* A line of the grid, with its number, across (or up, of x). */
static void plot_grid(FILE *svg, int is_x, double share, const char *label) {
    double at = is_x ? plot_x(share) : plot_y(share);
    fprintf(svg, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", is_x ? at : PLOT_LEFT,
            is_x ? PLOT_TOP : at, is_x ? at : PLOT_RIGHT, is_x ? PLOT_BOTTOM : at);
    if (is_x) plot_text(svg, at, PLOT_BOTTOM + 18, "middle", label);
    else plot_text(svg, PLOT_LEFT - 8, at + 4, "end", label);
}

/* A number with three digits and the letter of its thousand. */
static const char *plot_number(double value, char *text, size_t size) {
    const char *letters = "\0kMGT";
    while (value >= 999.5 && letters[1]) value /= 1000, letters++;
    snprintf(text, size, *letters ? "%.3g %c" : "%.3g", value, *letters);
    return text;
}

static void plot_size(uint64_t size_bytes, char *text, size_t size) {
    int shift = size_bytes >= 1u << 30 ? 30 : size_bytes >= 1u << 20 ? 20 : size_bytes >= 1u << 10 ? 10 : 0;
    if (size_bytes & ((1ull << shift) - 1)) shift = 0;
    snprintf(text, size, "%llu%s", (unsigned long long)(size_bytes >> shift),
             shift == 30 ? " Gi" : shift == 20 ? " Mi" : shift == 10 ? " Ki" : "");
}

/* The percentiles of each size, over the nines, both scales logarithmic. */
static void plot_latencies(FILE *svg) {
    static const char *const nines[] = {"0", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"};
    double least = 1e18, most = 0, low, high, power;
    uint32_t size, i, longest = 2;
    char text[40];
    for (size = 0; size < plot.count; size++) {
        if (plot.points[size] > longest) longest = plot.points[size];
        for (i = 0; i < plot.points[size]; i++) {
            if (plot.values[size][i] < least) least = plot.values[size][i];
            if (plot.values[size][i] > most) most = plot.values[size][i];
        }
    }
    for (low = 0.001; low * 10 <= least;) low *= 10;
    for (high = low * 10; high < most;) high *= 10;
    for (power = low; power <= high * 1.001;) {
        plot_grid(svg, 0, log_2(power / low) / log_2(high / low), plot_number(power, text, sizeof text));
        power *= 10;
    }
    for (i = 0; i < longest; i += 10) plot_grid(svg, 1, i / (longest - 1.0), nines[i / 10]);
    plot_text(svg, PLOT_RIGHT, PLOT_BOTTOM + 38, "end", "share of the operations that took at most that long");
    for (size = 0; size < plot.count; size++) {
        fprintf(svg, "<polyline class=\"curve c%u\" points=\"", size % 6);
        for (i = 0; i < plot.points[size]; i++)
            fprintf(svg, " %.1f,%.1f", plot_x(i / (longest - 1.0)),
                    plot_y(log_2(plot.values[size][i] / low) / log_2(high / low)));
        fprintf(svg, "\"/>\n");
        plot_size(plot.sizes[size], text, sizeof text);
        strcat(text, "B");
        fprintf(svg, "<text class=\"c%u\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", size % 6, PLOT_RIGHT + 12,
                PLOT_TOP + 12 + 18 * size, text);
    }
}

/* Messages or bytes in a second over the size, of which each mark is twice the one before. */
static void plot_rates(FILE *svg) {
    double most = 0, step = 1, first = 0, last = 0, at, value;
    uint32_t size, marks;
    char text[40];
    for (size = 0; size < plot.count; size++) {
        if (plot.values[size][0] > most) most = plot.values[size][0];
        at = log_2((double)plot.sizes[size] + (plot.sizes[size] == 0));
        if (size == 0 || at < first) first = at;
        if (size == 0 || at > last) last = at;
    }
    if (last < first + 1) last = first + 1;
    while (step * 6 < most) step *= 10;
    if (step / 5 * 6 >= most) step /= 5;
    else if (step / 2 * 6 >= most) step /= 2;
    for (value = 0; value < most + step;) {
        plot_grid(svg, 0, value / (step * 7), plot_number(value, text, sizeof text));
        value += step;
    }
    fprintf(svg, "<polyline class=\"curve c0\" points=\"");
    for (size = 0; size < plot.count; size++)
        fprintf(svg, " %.1f,%.1f",
                plot_x((log_2((double)plot.sizes[size] + (plot.sizes[size] == 0)) - first) / (last - first)),
                plot_y(plot.values[size][0] / (step * 7)));
    fprintf(svg, "\"/>\n");
    marks = plot.count > 12 ? 2 : 1;
    for (size = 0; size < plot.count; size++) {
        at = (log_2((double)plot.sizes[size] + (plot.sizes[size] == 0)) - first) / (last - first);
        fprintf(svg, "<circle class=\"c0\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n", plot_x(at),
                plot_y(plot.values[size][0] / (step * 7)));
        plot_size(plot.sizes[size], text, sizeof text);
        if (size % marks == 0) plot_grid(svg, 1, at, text);
    }
    plot_text(svg, PLOT_RIGHT, PLOT_BOTTOM + 38, "end", "bytes of each");
}

static FILE *plot_open(const struct options *options) {
    FILE *svg = options->svg ? fopen(options->svg, "w") : NULL;
    if (!options->svg || svg) return svg;
    fprintf(stderr, "cci_perf: ");
    perror(options->svg);
    exit(1);
}

/* Returns 1 when the file could not be written. */
static int plot_write(const struct options *options, FILE *svg) {
    static const char *const light[] = {"#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#6e7781"};
    static const char *const dark[] = {"#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#f778ba", "#9198a1"};
    uint32_t i;
    int failed;
    if (!svg) return 0;
    fprintf(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 430\" width=\"760\" height=\"430\">\n"
                 "<style>\ntext { font: 13px system-ui, sans-serif; fill: #1f2328 }\n"
                 ".title { font-size: 15px; font-weight: 600 }\n"
                 ".grid { stroke: #d1d9e0 } .curve { fill: none !important; stroke-width: 2.5 }\n");
    for (i = 0; i < 6; i++) fprintf(svg, ".c%u { stroke: %s } text.c%u, circle.c%u { fill: %s; stroke: none }\n", i,
                                    light[i], i, i, light[i]);
    fprintf(svg, "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .grid { stroke: #3d444d }\n");
    for (i = 0; i < 6; i++) fprintf(svg, ".c%u { stroke: %s } text.c%u, circle.c%u { fill: %s; stroke: none }\n", i,
                                    dark[i], i, i, dark[i]);
    fprintf(svg, "}\n</style>\n<text class=\"title\" x=\"%.1f\" y=\"24\">cci_perf: %s %s, %u connection%s, %u thread%s",
            PLOT_LEFT, test_names[options->test], attribute_names[options->attribute], options->connections,
            options->connections > 1 ? "s" : "", options->threads, options->threads > 1 ? "s" : "");
    if (options->rate > 0) fprintf(svg, ", %.0f/s are due", options->rate);
    fprintf(svg, "</text>\n");
    plot_text(svg, PLOT_LEFT, 46, "start", plots_latency(options)       ? latency_name(options)
                                           : options->test == TEST_RATE ? "messages/s"
                                                                        : "bytes/s");
    if (plots_latency(options)) plot_text(svg, PLOT_LEFT - 8, 46, "end", "µs");
    if (plot.count > 0 && plots_latency(options)) plot_latencies(svg);
    else if (plot.count > 0) plot_rates(svg);
    fprintf(svg, "</svg>\n");
    failed = ferror(svg) != 0;
    failed |= fclose(svg) != 0;
    if (failed) fprintf(stderr, "cci_perf: %s can't be written\n", options->svg);
    return failed;
}

/* ---- a measurement ---------------------------------------------------------------------------------------------- */

/* Measures all sizes. Returns 1 when anything was wrong. */
static int measure(const struct options *options) {
    struct sizes sizes;
    struct result result;
    uint32_t i;
    int first = 1, failed = 0;
    memset(&sizes, 0, sizeof sizes);
    memset(&result, 0, sizeof result);
    sizes.text = options->sizes;
    result.latency = (struct histogram *)malloc(sizeof *result.latency);
    if (!result.latency) fail("latencies", CCI_ENOMEM);
    all_clients(options, PHASE_OPEN, 0);
    while (next_size(&sizes) > 0) {
        if (!size_fits(options, &sizes)) {
            failed |= first && !sizes.sweep_end;
            continue;
        }
        all_clients(options, PHASE_WARM_UP, (uint32_t)sizes.size_bytes);
        add_up(options, &result);
        failed |= result.errors != 0;
        all_clients(options, PHASE_RUN, (uint32_t)sizes.size_bytes);
        add_up(options, &result);
        print_result(options, &result, first);
        plot_add(options, &result);
        failed |= result.errors != 0;
        first = 0;
    }
    if (options->format == FORMAT_JSON) puts(first ? "[]" : "\n]");
    for (i = 0; i < options->threads; i++)
        if (clients[i].first_error)
            fprintf(stderr, "cci_perf: %s: %s\n", cci_strerror(NULL, clients[i].first_error),
                    cci_status_hint(clients[i].first_error));
    all_clients(options, PHASE_CLOSE, 0);
    free(result.latency);
    return failed;
}

static const char help[] =
    "usage: cci_perf [-p port] [-d device] [--once] [-b] [--cpu n] [--depth n]         the server\n"
    "                [--top]\n"
    "       cci_perf URI -t test [options]                                             a client\n"
    "\n"
    "  -t, --test TEST    lat        half round-trip of a message\n"
    "                     rate, bw   messages one way (they differ in the default size)\n"
    "                     write_bw, read_bw    RMA, a window of them outstanding\n"
    "                     write_lat, read_lat  RMA, one at a time, from call to completion\n"
    "  -s, --size LIST    bytes: 64 or 8,64,1k or 1:64k (doubling); default 64, for bw 8k or the most, 1m for RMA bw\n"
    "  -n, --count N      messages or RMAs; or\n"
    "  -D, --seconds S    measure for that long (default 1)\n"
    "  -a, --attribute A  ro (default), ru, uu, or mc: multicast, for rate and bw\n"
    "      --group URI    the group of -a mc\n"
    "  -w, --window N     RMAs outstanding (default 16), or messages (default: as many as the endpoint takes)\n"
    "      --every N      rate, bw: RO messages that share a completion event, that of the last (default 64; with a\n"
    "                     window half of it at most, with --verify 1)\n"
    "  -c, --connections N  so many connections at once (default 1)\n"
    "  -T, --threads N    divided among so many threads, each with an endpoint of its own (default 1)\n"
    "      --rate R       so many operations are due in each second, of all connections, whatever became of those\n"
    "                     before; latencies count from when each was due\n"
    "      --depth N      send and receive buffers of the endpoint (default: the transport's)\n"
    "      --warmup N     operations before the measurement (default 1000, RMA 32)\n"
    "  -b, --blocking     sleep on the OS handle instead of polling\n"
    "      --silent       messages without completion events\n"
    "      --no-copy      messages straight from the program's buffer\n"
    "      --verify       check every byte on the receiving side\n"
    "      --touch        the receiver reads one byte of each 64 of a message\n"
    "      --heap         RMA uses memory of malloc() rather than of cci_rma_alloc()\n"
    "      --format F     text (default), csv or json\n"
    "      --svg FILE     writes a plot: of latencies their percentiles, otherwise the bandwidth over the size\n"
    "      --cpu N        run on that processor only\n"
    "  -d, --device NAME  use this device (cci_info lists them)\n"
    "  -p, --port PORT    server: at this port or service name\n"
    "      --once         server: end after the first client\n"
    "      --top          server: show the connections, the busiest first, once a second\n"
    "\n"
    "The exit status is 0 when all went well, 1 when not (lost reliable messages and wrong bytes included), 2 for\n"
    "wrong arguments. RMAs all use the same memory, except with --verify. With -c, -T or --rate the window is for\n"
    "each connection (default: lat and RMA latency 1, with --rate 64; rate and bw 64, RMA 16), lat is the whole round\n"
    "trip, and each message has a completion event.\n";

static void usage(const char *complaint) {
    fprintf(stderr, "cci_perf: %s; -h shows the options\n", complaint);
    exit(2);
}

static int parse_name(const char *name, const char *const *names, int count) {
    int i;
    for (i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    fprintf(stderr, "cci_perf: there is no \"%s\"; -h shows the options\n", name);
    exit(2);
}

static uint32_t parse_count(const char *text, uint32_t most, const char *complaint) {
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-' || count < 1 || count > most) usage(complaint);
    return (uint32_t)count;
}

enum long_only {
    LONG_SILENT = 256,
    LONG_EVERY,
    LONG_NO_COPY,
    LONG_VERIFY,
    LONG_HEAP,
    LONG_TOUCH,
    LONG_FORMAT,
    LONG_CPU,
    LONG_ONCE,
    LONG_WARMUP,
    LONG_RATE,
    LONG_SVG,
    LONG_TOP,
    LONG_DEPTH
};

static void parse_option(struct options *options, int option, const char *value) {
    static const char *const formats[] = {"text", "csv", "json"};
    switch (option) {
    case 't': options->test = (enum test)parse_name(value, test_names, TEST_COUNT); break;
    case 's': options->sizes = value; break;
    case 'n': options->count = strtoull(value, NULL, 10); break;
    case 'D': options->seconds = strtod(value, NULL); break;
    case 'G': options->group = value; break;
    case 'a': options->attribute = (cci_conn_attribute_t)parse_name(value, attribute_names, 4); break;
    case 'w':
        options->window = (uint32_t)strtoul(value, NULL, 10);
        options->limits_messages = 1;
        break;
    case 'b': sleeps = 1; break;
    case 'c': options->connections = parse_count(value, CHANNEL_LIMIT - 1, "-c is 1 to 1048575"); break;
    case 'T': options->threads = parse_count(value, THREAD_LIMIT, "-T is 1 to 64"); break;
    case LONG_RATE:
        options->rate = strtod(value, NULL);
        if (!(options->rate >= 0.1 && options->rate <= 1e9)) usage("--rate is 0.1 to 1000000000");
        break;
    case LONG_SVG: options->svg = value; break;
    case 'd': options->device = value; break;
    case 'p': options->service = value; break;
    case LONG_SILENT: options->silent = 1; break;
    case LONG_EVERY: options->every = (uint32_t)strtoul(value, NULL, 10); break;
    case LONG_NO_COPY: options->no_copy = 1; break;
    case LONG_VERIFY: options->verify = 1; break;
    case LONG_HEAP: options->heap = 1; break;
    case LONG_TOUCH: options->touch = 1; break;
    case LONG_FORMAT: options->format = (enum format)parse_name(value, formats, 3); break;
    case LONG_CPU: options->cpu = atoi(value); break;
    case LONG_ONCE: options->once = 1; break;
    case LONG_TOP: tops = 1; break;
    case LONG_WARMUP: options->warmup = strtoll(value, NULL, 10); break;
    case LONG_DEPTH: options->depth = (uint32_t)strtoul(value, NULL, 10); break;
    case 'h': fputs(help, stdout); exit(0);
    default: usage("wrong option");
    }
}

static void check_sizes(const char *text) {
    struct sizes sizes;
    int more;
    memset(&sizes, 0, sizeof sizes);
    sizes.text = text;
    while ((more = next_size(&sizes)) > 0) {}
    if (more < 0) usage("sizes are like 64 or 8,64,1k or 1:64k");
}

/* What many connections, threads and rates need. */
static void check_crowd(struct options *options) {
    int waits = is_latency(options->test) && options->rate <= 0; /* for each answer before the next */
    options->crowd = options->connections > 1 || options->threads > 1 || options->rate > 0;
    if (!options->crowd) return;
    if (options->threads > options->connections) usage("each thread needs a connection: -c");
    options->crowd_window = waits ? 1 : is_rma(options->test) && !is_latency(options->test) ? 16 : CROWD_WINDOW;
    if (options->limits_messages) options->crowd_window = options->window;
    if (options->group || options->silent || options->no_copy)
        usage("-c, -T and --rate go neither with multicast nor with --silent nor --no-copy");
    if (options->verify && is_rma(options->test)) usage("with -c, -T and --rate, --verify is for messages");
    if (options->test == TEST_LAT && is_unreliable(options->attribute))
        usage("with -c, -T and --rate, lat is reliable");
}

static void check_options(struct options *options) {
    if (options->silent) options->limits_messages = 0; /* nothing tells how many are outstanding */
    if (options->window < 1 || options->window > POOL_COUNT) usage("the window is 1 to 512");
    if (options->every < 1) usage("--every is 1 or more");
    if (options->verify || is_rma(options->test) || is_latency(options->test) || options->silent ||
        options->attribute != CCI_CONN_ATTR_RO)
        options->every = 1;
    if (options->limits_messages && options->every > (options->window + 1) / 2)
        options->every = (options->window + 1) / 2;
    if (options->uri && is_rma(options->test) && is_unreliable(options->attribute)) usage("RMA is reliable");
    if ((options->attribute == CCI_CONN_ATTR_UU_MC_TX) != (options->group != NULL))
        usage("-a mc and --group belong together");
    if (options->group && (options->test == TEST_LAT || strlen(options->group) >= GROUP_BYTES))
        usage("multicast goes one way: rate or bw");
    if (options->silent && options->no_copy && (options->verify || options->attribute != CCI_CONN_ATTR_RO))
        usage("--silent --no-copy leaves nobody knowing when the buffer is free");
    check_crowd(options);
}

static void parse_options(struct options *options, int argc, char **argv) {
    static const struct option longs[] = {
        {"test", 1, NULL, 't'},          {"size", 1, NULL, 's'},         {"count", 1, NULL, 'n'},
        {"seconds", 1, NULL, 'D'},       {"attribute", 1, NULL, 'a'},    {"window", 1, NULL, 'w'},
        {"group", 1, NULL, 'G'},
        {"blocking", 0, NULL, 'b'},      {"device", 1, NULL, 'd'},       {"port", 1, NULL, 'p'},
        {"help", 0, NULL, 'h'},          {"silent", 0, NULL, LONG_SILENT}, {"no-copy", 0, NULL, LONG_NO_COPY},
        {"verify", 0, NULL, LONG_VERIFY}, {"format", 1, NULL, LONG_FORMAT}, {"cpu", 1, NULL, LONG_CPU},
        {"once", 0, NULL, LONG_ONCE},    {"top", 0, NULL, LONG_TOP},
        {"warmup", 1, NULL, LONG_WARMUP}, {"depth", 1, NULL, LONG_DEPTH},
        {"every", 1, NULL, LONG_EVERY},  {"heap", 0, NULL, LONG_HEAP},
        {"touch", 0, NULL, LONG_TOUCH},  {"connections", 1, NULL, 'c'},  {"threads", 1, NULL, 'T'},
        {"rate", 1, NULL, LONG_RATE},    {"svg", 1, NULL, LONG_SVG},
        {NULL, 0, NULL, 0}};
    int option;
    memset(options, 0, sizeof *options);
    options->test = TEST_COUNT;
    options->seconds = 1;
    options->window = 16;
    options->every = SEND_BATCH;
    options->connections = options->threads = 1;
    options->warmup = -1;
    options->cpu = -1;
    while ((option = getopt_long(argc, argv, "t:s:n:D:a:w:bc:d:p:T:h", longs, NULL)) != -1)
        parse_option(options, option, optarg);
    if (optind < argc) options->uri = argv[optind++];
    if (optind < argc) usage("one URI only");
    if (options->uri && options->test == TEST_COUNT) usage("which test? (-t)");
    check_options(options);
    options->any_size = !options->sizes;
    if (options->any_size) {
        options->sizes = options->test == TEST_BW ? "8k" : "64";
        if (is_rma(options->test) && !is_latency(options->test)) options->sizes = "1m";
    }
    check_sizes(options->sizes);
}

static void pin(int cpu) {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) perror("cci_perf: --cpu");
#else
    fprintf(stderr, "cci_perf: --cpu %d is ignored on this system\n", cpu);
#endif
}

int main(int argc, char **argv) {
    struct options options;
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    char *uri;
    int failed;
    parse_options(&options, argc, argv);
    if (options.cpu >= 0) pin(options.cpu);
    take_signal();
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    if (options.uri) {
        FILE *svg = plot_open(&options); /* so that a bad name is noticed before the measurement */
        failed = measure(&options);
        failed |= plot_write(&options, svg);
    } else {
        open_endpoint(&options, &endpoint, &os_handle);
        check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
        (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* clients that leave, if the transport can tell */
        printf("uri: %s\n", uri);
        fflush(stdout);
        free(uri);
        if (tops) top_begin();
        failed = serve(options.once);
    }
    check(cci_finalize(), "cci_finalize");
    return failed;
}
