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
 * HOW. Each client has two connections: a reliable one for control, and one with the attribute to be measured for
 * data. For each size the client sends START, the server prepares and answers READY (for RMA with the handle of its
 * memory), the client runs; END says how many messages were sent, and RESULT how many came and when. Unless asked to
 * sleep, both ends poll and create their endpoints without an OS handle, so that nothing but the library runs.
 *
 * -a mc --group URI sends the data by multicast: the server joins the group to receive, and is ready when it has.
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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROTOCOL_VERSION 2u
#define REQUEST_BYTES 32u
#define GROUP_BYTES 128u       /* of the URI of a multicast group, with its final 0 */
#define CONTROL_BYTES 72u
#define WRITTEN_BYTES 16u      /* completion message of a verified write: number and slot               */
#define SEND_BATCH 64          /* messages between two looks at the events                              */
#define YIELD_POLLS 256        /* empty polls after which others may run: on a busy machine the peer may be one */
#define POOL_COUNT 512         /* buffers that a verified NO_COPY run takes turns with                  */
#define SAMPLE_LIMIT (1u << 20) /* latency samples kept; a timed run ends when they are used up          */
#define QUIET_NS 200000000ull  /* unreliable messages that take longer than this count as lost          */
#define PATIENCE_NS 60000000000ull
#define REGION_LIMIT (1ull << 32)
#define SESSION_LIMIT 16

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

static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static int sleeps; /* wait on the OS handle rather than poll */

static void fail(const char *what, int status) {
    const char *text = cci_strerror(endpoint, (cci_status_t)status);
    fprintf(stderr, "cci_perf: %s: %s\n", what, text ? text : "unknown status");
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
static uint8_t *take_memory(uint64_t length, int heap) {
    void *memory = NULL;
    if (heap) return posix_memalign(&memory, 4096, (size_t)length) == 0 ? (uint8_t *)memory : NULL;
    return cci_rma_alloc(endpoint, length, &memory) == CCI_SUCCESS ? (uint8_t *)memory : NULL;
}

static void give_memory_back(uint8_t *memory, int heap) {
    if (heap) free(memory);
    else if (memory) check(cci_rma_free(endpoint, memory), "cci_rma_free");
}

/* ---- the server ------------------------------------------------------------------------------------------------ */

struct channel { /* what a connection's context points to */
    struct session *session;
    enum role role;
    cci_connection_t *connection;
};

struct session {
    int in_use;
    uint64_t id;
    enum test test;
    int verify, heap, touch, in_order, unreliable;
    int joins;            /* the group: what START asked for waits */
    struct control start;
    struct channel channels[2];
    /* the run that START began */
    uint64_t size_bytes, slots, expected, received, duplicates, errors, first_ns, last_ns;
    int running, fresh; /* fresh: messages came since last_ns was taken */
    struct control *later; /* what found no send buffer free (CCI_ENOBUFS) */
    uint32_t later_count, later_room;
    uint8_t *seen;      /* bit per number, for reliable unordered messages */
    uint64_t seen_bits;
    uint8_t *region;
    cci_rma_handle_t *handle;
};

static struct session sessions[SESSION_LIMIT];
static int served_count, served_badly;

/* Messages whose echo found no send buffer free: at most as many as there are receive buffers, since each keeps its own. */
static cci_event_t **kept;
static uint32_t kept_count;

/* Echoes straight from the receive buffers, and returns these. What a client sent that is `gone` needs no echo; who does not get it
 * for another reason has left. */
static void echo_kept(const cci_connection_t *gone) {
    const cci_connection_t *full = NULL;
    uint32_t i, left = 0;
    for (i = 0; i < kept_count; i++) {
        const cci_event_recv_t *message = &kept[i]->recv;
        if (message->connection != gone && (message->connection == full ||
            cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)) {
            full = message->connection;
            kept[left++] = kept[i];
        } else {
            cci_return_event(kept[i]);
        }
    }
    kept_count = left;
}

static void session_end_run(struct session *session) {
    if (session->handle) cci_rma_deregister(endpoint, session->handle);
    give_memory_back(session->region, session->heap);
    free(session->seen);
    session->handle = NULL;
    session->region = session->seen = NULL;
    session->seen_bits = 0;
    session->running = 0;
}

static void session_close(struct session *session, const char *why) {
    int i;
    if (why) fprintf(stderr, "cci_perf: client dropped: %s\n", why);
    for (i = 0; i < 2; i++) {
        if (!session->channels[i].connection) continue;
        echo_kept(session->channels[i].connection);
        cci_disconnect(session->channels[i].connection);
    }
    free(session->later);
    session_end_run(session);
    memset(session, 0, sizeof *session);
    served_count++;
    served_badly |= why != NULL;
}

/* What waits for a send buffer goes out in its order. */
static void session_send_later(struct session *session) {
    int status = CCI_SUCCESS;
    uint32_t sent = 0;
    while (sent < session->later_count && status == CCI_SUCCESS) {
        status = send_control(session->channels[ROLE_CONTROL].connection, &session->later[sent], CCI_FLAG_SILENT);
        sent += status == CCI_SUCCESS;
    }
    session->later_count -= sent;
    if (sent > 0) memmove(session->later, session->later + sent, session->later_count * sizeof *session->later);
    if (status != CCI_SUCCESS && status != CCI_ENOBUFS) session_close(session, cci_strerror(endpoint, (cci_status_t)status));
}

static void session_control(struct session *session, const struct control *control) {
    if (session->later_count == session->later_room) {
        uint32_t room = session->later_room == 0 ? 4 : 2 * session->later_room;
        struct control *more = (struct control *)realloc(session->later, room * sizeof *more);
        if (!more) {
            session_close(session, "no memory");
            return;
        }
        session->later = more;
        session->later_room = room;
    }
    session->later[session->later_count++] = *control;
    session_send_later(session);
}

/* Begins to join the group by which the data will come. */
static int session_join(struct session *session, const char *group) {
    struct channel *channel = &session->channels[ROLE_DATA];
    struct timeval patience = {10, 0};
    channel->session = session;
    channel->role = ROLE_DATA;
    session->unreliable = session->joins = 1;
    return cci_connect(endpoint, group, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, channel, 0, &patience) == CCI_SUCCESS;
}

static void session_request(cci_event_t *event) {
    struct request request;
    struct session *session = NULL;
    int i;
    if (!decode_request(event->request.data_ptr, event->request.data_len, &request)) {
        cci_reject(event);
        return;
    }
    for (i = 0; i < SESSION_LIMIT && !session; i++) {
        int known = sessions[i].in_use && sessions[i].id == request.session_id;
        if (request.role == ROLE_CONTROL ? !sessions[i].in_use : known) session = &sessions[i];
    }
    if (!session || (request.role == ROLE_DATA && session->channels[ROLE_DATA].session)) {
        cci_reject(event);
        return;
    }
    if (request.role == ROLE_CONTROL) {
        session->in_use = 1;
        session->id = request.session_id;
        session->test = (enum test)request.test;
        session->verify = (int)request.verify;
        session->heap = (int)request.heap;
        session->touch = (int)request.touch;
        if (*request.group && !session_join(session, request.group)) {
            memset(session, 0, sizeof *session);
            cci_reject(event);
            return;
        }
    } else {
        session->in_order = event->request.attribute == CCI_CONN_ATTR_RO;
        session->unreliable = event->request.attribute == CCI_CONN_ATTR_UU;
    }
    session->channels[request.role].session = session;
    session->channels[request.role].role = (enum role)request.role;
    cci_accept(event, &session->channels[request.role]);
}

static void session_accepted(const cci_event_accept_t *accepted) {
    struct channel *channel = (struct channel *)accepted->context;
    uint32_t keepalive_us = 10000000;
    if (!channel->session) { /* the session was closed while the handshake was under way */
        if (accepted->connection) cci_disconnect(accepted->connection);
        return;
    }
    if (accepted->status != CCI_SUCCESS) {
        session_close(channel->session, cci_strerror(endpoint, accepted->status));
        return;
    }
    channel->connection = accepted->connection;
    /* A client that dies without a word would otherwise occupy its session for ever. */
    if (channel->role == ROLE_CONTROL)
        (void)cci_set_opt(channel->connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us);
}

/* Makes the memory that the client will use. Its handle goes back in READY. */
static int session_prepare_region(struct session *session) {
    uint64_t length = session->size_bytes * session->slots, slot;
    if (session->slots == 0 || session->size_bytes == 0 || session->size_bytes > REGION_LIMIT / session->slots)
        return CCI_ERANGE;
    session->region = take_memory(length, session->heap);
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
    } else if (joined->status != CCI_SUCCESS) {
        session_close(session, cci_strerror(endpoint, joined->status));
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
static int session_saw(struct session *session, uint64_t number) {
    uint8_t bit = (uint8_t)(1u << (number & 7));
    int seen_before;
    if (number >> 33) return 0; /* a bitmap that long is not kept: the pattern will tell */
    if (number >= session->seen_bits) {
        uint64_t bits = (number + 1) * 2 + 65536;
        uint8_t *grown = (uint8_t *)realloc(session->seen, (size_t)(bits / 8));
        if (!grown) return 0;
        memset(grown + session->seen_bits / 8, 0, (size_t)(bits / 8 - session->seen_bits / 8));
        session->seen = grown;
        session->seen_bits = bits & ~7ull;
    }
    seen_before = (session->seen[number / 8] & bit) != 0;
    session->seen[number / 8] |= bit;
    return seen_before;
}

static void session_verify(struct session *session, const cci_event_recv_t *message) {
    uint64_t number = session->received;
    int right = message->len == session->size_bytes &&
                message_check((const uint8_t *)message->ptr, message->len, &number, session->in_order);
    if (!right) session->errors++;
    if (session->in_order || message->len < 8 || !right) return;
    if (!session_saw(session, number)) return;
    session->duplicates++;
    session->received--; /* the caller is about to count it */
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

/* Returns 1 for what is to be echoed. */
static int session_data(struct session *session, const cci_event_recv_t *message) {
    if (!session->running) return 0; /* late, from the run before */
    if (is_rma(session->test)) {
        session_written(session, message);
        return 0;
    }
    if (session->first_ns == 0) session->first_ns = now_ns();
    if (session->verify) session_verify(session, message);
    if (session->touch) session_touch(message);
    session->received++;
    session->fresh = 1;
    if (session->test == TEST_LAT) return 1;
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
    if (!channel->session) cci_disconnect(ended->connection);
    else if (channel->role == ROLE_CONTROL) session_close(channel->session, "it has left");
}

/* Returns 1 if the event is kept until its echo can be sent. */
static int serve_message(cci_event_t *event) {
    struct channel *channel = (struct channel *)event->recv.connection->context;
    if (!channel->session) return 0;
    if (channel->role != ROLE_DATA) {
        session_message(channel->session, &event->recv);
        return 0;
    }
    if (!session_data(channel->session, &event->recv)) return 0;
    kept[kept_count++] = event;
    echo_kept(NULL);
    return 1;
}

/* Returns 1 if the event does not go back at once. */
static int serve_event(cci_event_t *event) {
    struct channel *channel;
    if (event->type == CCI_EVENT_RECV) {
        return serve_message(event);
    } else if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        session_request(event);
    } else if (event->type == CCI_EVENT_ACCEPT) {
        session_accepted(&event->accept);
    } else if (event->type == CCI_EVENT_CONNECT) {
        session_joined(&event->connect);
    } else if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) {
        channel = (struct channel *)event->keepalive.connection->context;
        if (channel->session) session_close(channel->session, "it does not answer any more");
    } else if (event->type == CCI_EVENT_DISCONNECT) {
        serve_disconnect(&event->disconnect);
    } else if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED) {
        fail("device", CCI_ERR_DEVICE_DEAD);
    }
    return 0;
}

/* Sends what found no send buffer free; returns 1 while something is left. */
static int serve_later(void) {
    int i, is_left;
    echo_kept(NULL);
    is_left = kept_count > 0;
    for (i = 0; i < SESSION_LIMIT; i++) {
        if (sessions[i].later_count > 0) session_send_later(&sessions[i]);
        is_left |= sessions[i].later_count > 0;
    }
    return is_left;
}

/* Called when all events have been taken: what is not here now may be lost. */
static void serve_idle(void) {
    int i;
    for (i = 0; i < SESSION_LIMIT; i++) {
        struct session *session = &sessions[i];
        if (session->fresh) session_stamp(session, now_ns());
        if (!session->running || !session->unreliable || session->expected == UINT64_MAX) continue;
        if (session->last_ns == 0) session->first_ns = session->last_ns = now_ns();
        if (now_ns() - session->last_ns > QUIET_NS) session_result(session);
    }
}

static int serve(int once) {
    cci_event_t *event;
    uint32_t polls = 0, most;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    check(cci_get_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &most), "cci_get_opt");
    kept = (cci_event_t **)malloc(most * sizeof *kept);
    if (!kept) fail("memory", CCI_ENOMEM);
    while (!once || served_count == 0) {
        int status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) {
            polls = 0;
            if (!serve_event(event)) cci_return_event(event);
        } else if (status == CCI_EAGAIN || (status == CCI_ENOBUFS && kept_count > 0)) {
            int is_left = serve_later();
            serve_idle();
            if (sleeps) poll(&sleeper, 1, is_left ? 1 : 100);
            else if (++polls % YIELD_POLLS == 0) sched_yield();
        } else fail("cci_get_event", status);
    }
    return served_badly;
}

/* ---- the client ------------------------------------------------------------------------------------------------ */

struct options {
    const char *uri, *device, *service, *sizes, *group;
    enum test test;
    cci_conn_attribute_t attribute;
    enum format format;
    uint64_t count; /* 0: timed */
    double seconds;
    int64_t warmup; /* < 0: default */
    int any_size;   /* the size is a default: what does not fit is made smaller */
    uint32_t window, depth, every;
    int limits_messages; /* the window holds for messages too */
    int verify, silent, no_copy, heap, touch, once, cpu;
};

struct result {
    uint64_t size_bytes, count, lost, duplicates, errors;
    double seconds, receiver_seconds;
    uint32_t *samples_ns;
    uint32_t sample_count;
};

static struct {
    cci_connection_t *control, *data, *just_connected;
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
} client;

static void client_release(uint32_t slot) {
    if (client.slot_waits[slot] > 0 && --client.slot_waits[slot] == 0) client.free_list[client.free_count++] = slot;
}

static void client_sent(const cci_event_send_t *sent) {
    uint32_t slot = (uint32_t)(uintptr_t)sent->context;
    if (sent->connection != client.data) return;
    client.completed += client.every;
    if (sent->status != CCI_SUCCESS) {
        client.errors++;
        client.first_error = sent->status;
    } else if (client.verify && is_read(client.test)) {
        uint8_t *bytes = client.buffer + (uint64_t)slot * client.size_bytes;
        if (!pattern_check(bytes, client.size_bytes, slot, 0)) client.errors++;
        memset(bytes, 0xee, client.size_bytes); /* so that the next read can't pass by doing nothing */
    }
    if (client.pooled) client_release(slot);
}

static void client_received(const cci_event_recv_t *message) {
    struct control control;
    if (message->connection == client.data) {
        uint64_t number = client.echoed;
        if (client.verify && (message->len != client.size_bytes ||
                              !message_check((const uint8_t *)message->ptr, message->len, &number, 1)))
            client.errors++;
        client.echoed++;
    } else if (!decode_control(message->ptr, message->len, &control)) {
        fail("control message", CCI_EMSGSIZE);
    } else if (control.type == CONTROL_CHECKED) {
        if (control.a < POOL_COUNT) client_release((uint32_t)control.a);
    } else client.message = control;
}

static void client_event(const cci_event_t *event) {
    if (event->type == CCI_EVENT_SEND) client_sent(&event->send);
    else if (event->type == CCI_EVENT_RECV) client_received(&event->recv);
    else if (event->type == CCI_EVENT_CONNECT) {
        client.connect_status = (int)event->connect.status;
        client.just_connected = event->connect.connection;
    } else if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED) fail("device", CCI_ERR_DEVICE_DEAD);
    else if (event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT) fail("server", CCI_ETIMEDOUT);
}

/* Takes all events that are there; returns how many. */
static int client_drain(void) {
    cci_event_t *event;
    int count = 0, status;
    while ((status = cci_get_event(endpoint, &event)) == CCI_SUCCESS) {
        client_event(event);
        cci_return_event(event);
        count++;
    }
    if (status != CCI_EAGAIN) fail("cci_get_event", status);
    return count;
}

/* Takes one event, or waits a little. Returns 0 when `limit_ns` have passed since *since_ns (which it sets when 0): the
 * clock is read only now and then. */
static int client_wait(uint64_t *since_ns, uint32_t *polls, uint64_t limit_ns) {
    cci_event_t *event;
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    int status = cci_get_event(endpoint, &event);
    if (status == CCI_SUCCESS) {
        client_event(event);
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

static struct control client_await(enum control_type type) {
    uint64_t since_ns = 0;
    uint32_t polls = 0;
    struct control message;
    while (client.message.type == 0)
        if (!client_wait(&since_ns, &polls, PATIENCE_NS)) fail("the server's answer", CCI_ETIMEDOUT);
    message = client.message;
    client.message.type = 0;
    if (message.type != (uint64_t)type) fail("the server's answer", CCI_ENOMSG);
    return message;
}

static cci_connection_t *client_connect(const struct options *options, enum role role, uint64_t session_id) {
    struct request request;
    uint8_t bytes[REQUEST_BYTES + GROUP_BYTES];
    uint32_t group_bytes = options->group && role == ROLE_CONTROL ? (uint32_t)strlen(options->group) : 0;
    int sends_to_group = options->group && role == ROLE_DATA;
    const char *uri = sends_to_group ? options->group : options->uri;
    struct timeval patience = {10, 0};
    uint64_t since_ns = 0;
    uint32_t polls = 0;
    request.role = role;
    request.test = options->test;
    request.verify = (uint32_t)options->verify;
    request.heap = (uint32_t)options->heap;
    request.touch = (uint32_t)options->touch;
    request.session_id = session_id;
    encode_request(bytes, &request);
    if (group_bytes) memcpy(bytes + REQUEST_BYTES, options->group, group_bytes);
    client.connect_status = -1;
    check(cci_connect(endpoint, uri, sends_to_group ? NULL : bytes, sends_to_group ? 0 : REQUEST_BYTES + group_bytes,
                      role == ROLE_CONTROL ? CCI_CONN_ATTR_RO : options->attribute, NULL, 0, &patience), uri);
    while (client.connect_status == -1)
        if (!client_wait(&since_ns, &polls, PATIENCE_NS)) fail(uri, CCI_ETIMEDOUT);
    check(client.connect_status, uri);
    return client.just_connected;
}

/* When a run ends: after `count` operations, or at `deadline_ns`. */
struct limit {
    uint64_t count, deadline_ns;
};

/* Bounces one message, and notes half of each round trip. Reads the clock once per round. */
static void run_lat(const struct options *options, struct limit limit, struct result *result) {
    uint64_t start_ns = now_ns(), i;
    for (i = 0; i < limit.count && start_ns < limit.deadline_ns; i++) {
        uint64_t echoed = client.echoed, waiting_ns = 0, end_ns;
        uint32_t polls = 0;
        if (options->verify) {
            client.echoed = echoed = i; /* the number that the answer must have */
            message_fill(client.buffer, client.size_bytes, i);
        }
        check(cci_send(client.data, client.buffer, client.size_bytes, NULL, CCI_FLAG_SILENT), "cci_send");
        while (client.echoed == echoed && client_wait(&waiting_ns, &polls,
               is_unreliable(options->attribute) ? QUIET_NS : PATIENCE_NS)) {}
        end_ns = now_ns();
        if (client.echoed != echoed) result->samples_ns[result->sample_count++] = (uint32_t)((end_ns - start_ns) / 2);
        else if (is_unreliable(options->attribute)) result->lost++;
        else fail("the echo", CCI_ETIMEDOUT);
        start_ns = end_ns;
    }
    result->count = i;
}

/* Takes all completions that are there; when asked to sleep rather than poll, waits for the first. */
static void client_make_room(void) {
    struct pollfd sleeper = {os_handle, POLLIN, 0};
    if (client_drain() == 0 && sleeps) poll(&sleeper, 1, 100);
}

/* Sends message `number`, of a pool buffer when it must stay untouched and be different from the others. */
static int send_verified(uint64_t number, int flags) {
    uint32_t slot = 0;
    uint8_t *buffer;
    int status;
    if (client.pooled) {
        if (client.free_count == 0) return CCI_ENOBUFS;
        slot = client.free_list[client.free_count - 1];
    }
    buffer = client.buffer + (uint64_t)slot * client.size_bytes;
    message_fill(buffer, client.size_bytes, number);
    status = cci_send(client.data, buffer, client.size_bytes, (void *)(uintptr_t)slot, flags);
    if (status == CCI_SUCCESS && client.pooled) {
        client.free_count--;
        client.slot_waits[slot] = 1;
    }
    return status;
}

/* Sends up to `count` messages from number `from` on; returns how many until the buffers were out. Of each `every` the last
 * has a completion event, which on RO tells that all before it have arrived too. */
static uint64_t send_batch(uint64_t from, uint64_t count, int flags) {
    cci_connection_t *connection = client.data;
    const uint8_t *buffer = client.buffer;
    uint32_t size_bytes = client.size_bytes;
    uint64_t i;
    uint32_t left = client.every - (uint32_t)(from % client.every); /* until the next with an event; to divide each time is dear */
    int status = CCI_SUCCESS;
    for (i = 0; i < count; i++) {
        int quiet = --left == 0 ? 0 : CCI_FLAG_SILENT;
        if (left == 0) left = client.every;
        status = client.verify ? send_verified(from + i, flags)
                               : cci_send(connection, buffer, size_bytes, NULL, flags | quiet);
        if (status != CCI_SUCCESS) break;
    }
    if (status != CCI_SUCCESS && status != CCI_ENOBUFS) fail("cci_send", status);
    return i;
}

static void run_one_way(const struct options *options, struct limit limit, struct result *result) {
    int flags = (options->silent ? CCI_FLAG_SILENT : 0) | (options->no_copy ? CCI_FLAG_NO_COPY : 0);
    uint64_t start_ns = now_ns(), sent = 0, since_ns = 0;
    uint32_t polls = 0;
    struct control message;
    while (sent < limit.count) {
        uint64_t left = limit.count - sent, wanted = left < SEND_BATCH ? left : SEND_BATCH, done;
        if (options->limits_messages && client.completed + options->window < sent + wanted)
            wanted = client.completed + options->window - sent;
        done = wanted > 0 ? send_batch(sent, wanted, flags) : 0;
        sent += done;
        if (done == 0) wanted = 1;
        if (done < wanted) client_make_room();
        else client_drain();
        if (limit.deadline_ns != UINT64_MAX && now_ns() >= limit.deadline_ns) break;
    }
    if (limit.count == UINT64_MAX || is_unreliable(options->attribute)) {
        memset(&message, 0, sizeof message);
        message.type = CONTROL_END;
        message.a = sent;
        while (send_control(client.control, &message, CCI_FLAG_SILENT) == CCI_ENOBUFS) client_make_room();
    }
    message = client_await(CONTROL_RESULT);
    result->seconds = (double)(now_ns() - start_ns) / 1e9;
    while (!options->silent && client.completed < sent - sent % client.every)
        if (!client_wait(&since_ns, &polls, PATIENCE_NS)) fail("completions", CCI_ETIMEDOUT);
    result->count = sent;
    result->errors = message.b;
    result->duplicates = message.d;
    result->lost = message.a < sent ? sent - message.a : 0;
    result->receiver_seconds = (double)message.c / 1e9;
    if (is_unreliable(options->attribute)) /* the server's patience is not part of the time */
        result->seconds = result->receiver_seconds > 0 ? result->receiver_seconds : result->seconds;
}

/* Starts one RMA on a free slot; CCI_ENOBUFS when there is none. A verified write waits for completion and check. */
static int start_rma(const struct options *options, cci_rma_handle_t *local, cci_rma_handle_t *remote,
                     uint64_t number) {
    uint8_t note[WRITTEN_BYTES];
    uint64_t words[2], offset;
    uint32_t slot;
    int status, direction = is_read(options->test) ? CCI_FLAG_READ : CCI_FLAG_WRITE;
    int noted = options->verify && direction == CCI_FLAG_WRITE;
    if (client.free_count == 0) return CCI_ENOBUFS;
    slot = client.free_list[client.free_count - 1];
    offset = options->verify ? (uint64_t)slot * client.size_bytes : 0;
    if (noted) pattern_fill(client.buffer + offset, client.size_bytes, number, 0);
    words[0] = number;
    words[1] = slot;
    put_words(note, words, 2);
    status = cci_rma(client.data, noted ? note : NULL, noted ? WRITTEN_BYTES : 0, local, offset, remote, offset,
                     client.size_bytes, (void *)(uintptr_t)slot, direction);
    if (status != CCI_SUCCESS) return status;
    client.free_count--;
    client.slot_waits[slot] = (uint8_t)(noted ? 2 : 1);
    return CCI_SUCCESS;
}

static void run_rma(const struct options *options, struct limit limit, struct result *result,
                    cci_rma_handle_t *remote) {
    uint32_t window = client.free_count;
    cci_rma_handle_t *local;
    uint64_t begin_ns, start_ns, end_ns, started = 0, since_ns = 0;
    uint32_t polls = 0;
    check(cci_rma_register(endpoint, client.buffer, (uint64_t)client.size_bytes * (options->verify ? window : 1), 0,
                           &local), "cci_rma_register");
    begin_ns = start_ns = now_ns();
    while (started < limit.count && start_ns < limit.deadline_ns && client.errors == 0) {
        uint64_t completed = client.completed;
        int status;
        if (is_latency(options->test) && options->verify) start_ns = now_ns(); /* the check is not part of the time */
        status = start_rma(options, local, remote, started);
        if (status == CCI_SUCCESS) started++;
        else if (status == CCI_ENOBUFS) client_make_room();
        else fail("cci_rma", status);
        if (is_latency(options->test) && status == CCI_SUCCESS) {
            since_ns = 0;
            while (client.completed == completed)
                if (!client_wait(&since_ns, &polls, PATIENCE_NS)) fail("completion", CCI_ETIMEDOUT);
            end_ns = now_ns();
            result->samples_ns[result->sample_count++] = (uint32_t)(end_ns - start_ns);
            start_ns = end_ns;
        } else if (limit.deadline_ns != UINT64_MAX) start_ns = now_ns();
    }
    since_ns = 0;
    while (client.completed < started || (client.free_count < window && client.errors == 0))
        if (!client_wait(&since_ns, &polls, PATIENCE_NS)) fail("completions", CCI_ETIMEDOUT);
    result->seconds = (double)(now_ns() - begin_ns) / 1e9;
    result->count = started;
    check(cci_rma_deregister(endpoint, local), "cci_rma_deregister");
}

static void client_prepare(const struct options *options, uint32_t size_bytes) {
    uint32_t i, buffers;
    client.size_bytes = size_bytes;
    client.completed = client.echoed = client.errors = 0;
    client.is_rma = is_rma(options->test);
    client.verify = options->verify;
    client.every = options->every;
    client.test = options->test;
    client.pooled = client.is_rma || (options->verify && options->no_copy);
    client.free_count = client.is_rma ? is_latency(options->test) ? 1 : options->window : POOL_COUNT;
    buffers = client.pooled && options->verify ? client.free_count : 1;
    client.heap = options->heap || !client.is_rma;
    client.buffer = take_memory((uint64_t)size_bytes * buffers + 8, client.heap);
    if (!client.buffer) fail("buffers", CCI_ENOMEM);
    memset(client.buffer, 0xee, (size_t)size_bytes * buffers + 8);
    memset(client.slot_waits, 0, sizeof client.slot_waits);
    for (i = 0; i < client.free_count; i++) client.free_list[i] = client.free_count - 1 - i;
}

/* One run of one size, from START to RESULT. */
static void run(const struct options *options, uint32_t size_bytes, uint64_t count, double seconds,
                struct result *result) {
    struct control message;
    struct limit limit;
    uint32_t *samples_ns = result->samples_ns;
    int needs_end = is_unreliable(options->attribute) || is_latency(options->test) || is_rma(options->test);
    memset(result, 0, sizeof *result);
    result->samples_ns = samples_ns;
    result->size_bytes = size_bytes;
    client_prepare(options, size_bytes);
    memset(&message, 0, sizeof message);
    message.type = CONTROL_START;
    message.a = size_bytes;
    message.b = needs_end ? 0 : count;
    message.c = options->verify ? client.free_count : 1;
    check(send_control(client.control, &message, CCI_FLAG_SILENT), "start");
    message = client_await(CONTROL_READY);
    check((int)message.a, "the server");
    limit.count = count ? count : UINT64_MAX;
    limit.deadline_ns = count ? UINT64_MAX : now_ns() + (uint64_t)(seconds * 1e9);
    if (is_latency(options->test) && limit.count > SAMPLE_LIMIT) limit.count = SAMPLE_LIMIT;
    if (options->test == TEST_LAT) run_lat(options, limit, result);
    else if (is_rma(options->test)) {
        cci_rma_handle_t remote;
        memcpy((void *)&remote, message.handle, sizeof remote);
        run_rma(options, limit, result, &remote);
    } else run_one_way(options, limit, result);
    if (is_rma(options->test) || options->test == TEST_LAT) {
        memset(&message, 0, sizeof message);
        message.type = CONTROL_END;
        check(send_control(client.control, &message, CCI_FLAG_SILENT), "end");
        message = client_await(CONTROL_RESULT);
        result->errors = message.b;
    }
    result->errors += client.errors;
    if (!is_unreliable(options->attribute)) result->errors += result->lost;
    give_memory_back(client.buffer, client.heap);
}

/* ---- what is printed ------------------------------------------------------------------------------------------- */

static int compare_samples(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(const struct result *result, double share) {
    uint32_t index;
    if (result->sample_count == 0) return 0;
    index = (uint32_t)(share * (double)result->sample_count);
    return (double)result->samples_ns[index < result->sample_count ? index : result->sample_count - 1] / 1e3;
}

static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999, 1};
static const char *const share_names[] = {"min", "median", "p90", "p99", "p999", "max"};

static double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

static void print_text(const struct options *options, const struct result *result, int first) {
    double count = (double)(result->count - (result->lost < result->count ? result->lost : result->count));
    double bytes = (double)result->size_bytes;
    int i;
    if (first && is_latency(options->test))
        printf("# %s %s, µs%s\n#%11s %9s %9s %9s %9s %9s %9s %9s %6s %6s\n", test_names[options->test],
               attribute_names[options->attribute], options->test == TEST_LAT ? ", half round-trip" : " to completion",
               "bytes", "count", "min", "median", "p90", "p99", "p99.9", "max", "lost", "errors");
    else if (first)
        printf("# %s %s%s\n#%11s %11s %13s %11s %7s %6s%s\n", test_names[options->test],
               attribute_names[options->attribute], is_rma(options->test) ? "" : "; recv: as the receiver saw it",
               "bytes", "count", "messages/s", "MB/s", "lost", "errors",
               is_rma(options->test) ? "" : "    recv msg/s   recv MB/s");
    printf("%12llu %*llu", (unsigned long long)result->size_bytes, is_latency(options->test) ? 9 : 11,
           (unsigned long long)result->count);
    for (i = 0; i < 6 && is_latency(options->test); i++) printf(" %9.2f", percentile_us(result, shares[i]));
    if (!is_latency(options->test))
        printf(" %13.0f %11.2f ", rate(count, result->seconds), rate(count * bytes, result->seconds) / 1e6);
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
        if (json && result->sample_count) printf(", \"%s_us\": %.3f", share_names[i], percentile_us(result, shares[i]));
        if (!json && result->sample_count) printf(",%.3f", percentile_us(result, shares[i]));
        if (!json && !result->sample_count) printf(",");
    }
}

static void print_result(const struct options *options, const struct result *result, int first) {
    qsort(result->samples_ns, result->sample_count, sizeof *result->samples_ns, compare_samples);
    if (options->format == FORMAT_TEXT) print_text(options, result, first);
    if (options->format == FORMAT_CSV) {
        if (first)
            puts("test,attribute,size,count,lost,duplicates,errors,msg_per_s,bytes_per_s,recv_msg_per_s,"
                 "recv_bytes_per_s,min_us,median_us,p90_us,p99_us,p999_us,max_us");
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
static void warm_up(const struct options *options, uint32_t size_bytes, struct result *result) {
    uint64_t count = options->warmup >= 0 ? (uint64_t)options->warmup : is_rma(options->test) ? 32 : 1000;
    if (options->warmup < 0 && options->count && count > options->count / 10) count = options->count / 10;
    if (count) run(options, size_bytes, count, 0, result);
}

static void client_open(const struct options *options) {
    uint64_t session_id = now_ns() << 16 ^ (uint64_t)(uintptr_t)&session_id;
    uint32_t keepalive_us = 20000000;
    client.control = client_connect(options, ROLE_CONTROL, session_id);
    client.data = client_connect(options, ROLE_DATA, session_id);
    (void)cci_set_opt(client.control, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us);
}

static void client_close(void) {
    struct control message;
    memset(&message, 0, sizeof message);
    message.type = CONTROL_BYE;
    /* The server disconnects when it has this, perhaps before we learn that it has: either answer is good. */
    (void)send_control(client.control, &message, CCI_FLAG_BLOCKING);
}

/* Measures all sizes. Returns 1 when anything was wrong. */
static int measure(const struct options *options) {
    struct sizes sizes;
    struct result result;
    int first = 1, failed = 0;
    memset(&sizes, 0, sizeof sizes);
    memset(&result, 0, sizeof result);
    sizes.text = options->sizes;
    result.samples_ns = (uint32_t *)malloc(SAMPLE_LIMIT * sizeof *result.samples_ns);
    if (!result.samples_ns) fail("samples", CCI_ENOMEM);
    memset(result.samples_ns, 0xff, SAMPLE_LIMIT * sizeof *result.samples_ns);
    client_open(options);
    while (next_size(&sizes) > 0) {
        uint64_t limit = is_rma(options->test) ? REGION_LIMIT / options->window - 1 : client.data->max_send_size;
        if (options->any_size && sizes.size_bytes > limit) sizes.size_bytes = limit;
        if (sizes.size_bytes > limit || (is_rma(options->test) && sizes.size_bytes == 0)) {
            fprintf(stderr, "cci_perf: %llu bytes: not possible here (the most is %llu)\n",
                    (unsigned long long)sizes.size_bytes, (unsigned long long)limit);
            failed |= first && !sizes.sweep_end;
            continue;
        }
        warm_up(options, (uint32_t)sizes.size_bytes, &result);
        failed |= result.errors != 0;
        run(options, (uint32_t)sizes.size_bytes, options->count, options->seconds, &result);
        print_result(options, &result, first);
        failed |= result.errors != 0;
        first = 0;
    }
    if (options->format == FORMAT_JSON) puts(first ? "[]" : "\n]");
    if (client.first_error) fprintf(stderr, "cci_perf: %s\n", cci_strerror(endpoint, client.first_error));
    client_close();
    free(result.samples_ns);
    return failed;
}

static const char help[] =
    "usage: cci_perf [-p port] [-d device] [--once] [-b] [--cpu n] [--depth n]         the server\n"
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
    "      --depth N      send and receive buffers of the endpoint (default: the transport's)\n"
    "      --warmup N     operations before the measurement (default 1000, RMA 32)\n"
    "  -b, --blocking     sleep on the OS handle instead of polling\n"
    "      --silent       messages without completion events\n"
    "      --no-copy      messages straight from the program's buffer\n"
    "      --verify       check every byte on the receiving side\n"
    "      --touch        the receiver reads one byte of each 64 of a message\n"
    "      --heap         RMA uses memory of malloc() rather than of cci_rma_alloc()\n"
    "      --format F     text (default), csv or json\n"
    "      --cpu N        run on that processor only\n"
    "  -d, --device NAME  use this device (cci_info lists them)\n"
    "  -p, --port PORT    server: at this port or service name\n"
    "      --once         server: end after the first client\n"
    "\n"
    "The exit status is 0 when all went well, 1 when not (lost reliable messages and wrong bytes included), 2 for\n"
    "wrong arguments. RMAs all use the same memory, except with --verify.\n";

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

static void parse_options(struct options *options, int argc, char **argv) {
    static const struct option longs[] = {
        {"test", 1, NULL, 't'},          {"size", 1, NULL, 's'},         {"count", 1, NULL, 'n'},
        {"seconds", 1, NULL, 'D'},       {"attribute", 1, NULL, 'a'},    {"window", 1, NULL, 'w'},
        {"group", 1, NULL, 'G'},
        {"blocking", 0, NULL, 'b'},      {"device", 1, NULL, 'd'},       {"port", 1, NULL, 'p'},
        {"help", 0, NULL, 'h'},          {"silent", 0, NULL, LONG_SILENT}, {"no-copy", 0, NULL, LONG_NO_COPY},
        {"verify", 0, NULL, LONG_VERIFY}, {"format", 1, NULL, LONG_FORMAT}, {"cpu", 1, NULL, LONG_CPU},
        {"once", 0, NULL, LONG_ONCE},    {"warmup", 1, NULL, LONG_WARMUP}, {"depth", 1, NULL, LONG_DEPTH},
        {"every", 1, NULL, LONG_EVERY},  {"heap", 0, NULL, LONG_HEAP},
        {"touch", 0, NULL, LONG_TOUCH},
        {NULL, 0, NULL, 0}};
    int option;
    memset(options, 0, sizeof *options);
    options->test = TEST_COUNT;
    options->seconds = 1;
    options->window = 16;
    options->every = SEND_BATCH;
    options->warmup = -1;
    options->cpu = -1;
    while ((option = getopt_long(argc, argv, "t:s:n:D:a:w:bd:p:h", longs, NULL)) != -1)
        parse_option(options, option, optarg);
    if (optind < argc) options->uri = argv[optind++];
    if (optind < argc) usage("one URI only");
    if (options->uri && options->test == TEST_COUNT) usage("which test? (-t)");
    if (options->silent) options->limits_messages = 0; /* nothing tells how many are outstanding */
    if (options->window < 1 || options->window > POOL_COUNT) usage("the window is 1 to 512");
    if (options->every < 1) usage("--every is 1 or more");
    if (options->verify || is_rma(options->test) || is_latency(options->test) || options->silent ||
        options->attribute != CCI_CONN_ATTR_RO)
        options->every = 1;
    if (options->limits_messages && options->every > (options->window + 1) / 2)
        options->every = (options->window + 1) / 2;
    if (options->uri && is_rma(options->test) && is_unreliable(options->attribute)) usage("RMA is reliable");
    if ((options->attribute == CCI_CONN_ATTR_UU_MC_TX) != (options->group != NULL)) usage("-a mc and --group belong together");
    if (options->group && (options->test == TEST_LAT || strlen(options->group) >= GROUP_BYTES))
        usage("multicast goes one way: rate or bw");
    if (options->silent && options->no_copy && (options->verify || options->attribute != CCI_CONN_ATTR_RO))
        usage("--silent --no-copy leaves nobody knowing when the buffer is free");
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

static void open_endpoint(const struct options *options) {
    cci_device_t *device = options->device ? find_device(options->device)
                           : options->uri  ? device_for(options->uri)
                                           : NULL;
    check(cci_create_endpoint_at(device, options->service, 0, &endpoint, sleeps ? &os_handle : NULL),
          "cci_create_endpoint_at");
    if (options->depth == 0) return;
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, &options->depth), "--depth, send buffers");
    check(cci_set_opt(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, &options->depth), "--depth, receive buffers");
}

int main(int argc, char **argv) {
    struct options options;
    uint32_t caps, events = 1u << CCI_EVENT_DISCONNECT;
    char *uri;
    int failed;
    parse_options(&options, argc, argv);
    if (options.cpu >= 0) pin(options.cpu);
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    open_endpoint(&options);
    if (options.uri) failed = measure(&options);
    else {
        check(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
        (void)cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events); /* clients that leave, if the transport can tell */
        printf("uri: %s\n", uri);
        fflush(stdout);
        free(uri);
        failed = serve(options.once);
    }
    check(cci_finalize(), "cci_finalize");
    return failed;
}
