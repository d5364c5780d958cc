/* hostile.c - the attacker: what somebody who can send any packet, and what a peer inside a connection, can't do.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Each test plays the attacker for one promise of .github/SECURITY.md, which names the test; tests/run.sh
 * compares the two lists. The victim is an endpoint on the simulated network; honest clients are endpoints like it, while
 * an attacker is nothing but packets with whatever source they claim. Over UDP the attacker is a bare socket.
 *
 * WORK is counted, not timed: built with -fsanitize-coverage=trace-pc, each branch of the library counts one step.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#include "tests/support/sim.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define MILLIONS 100000u /* of everything that is done by the million; sanitizers cost a factor of ten */
#else
#define MILLIONS 1000000u
#endif
#define MAX_CONNECTIONS 2048
#define MEMORY (4u << 20) /* that peers may take of an endpoint: so that they can take it all */
#define SPOOFED 100000u      /* numbers of addresses at which nobody is, and in whose name the attacker sends */
#define SPOOFED_COUNT 1100000u

/* ---- work that is counted ------------------------------------------------------------------------------------------ */

static uint64_t steps;

#include "tests/support/counted.h"

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
    steps++;
}

/* ---- a link that keeps accounts ------------------------------------------------------------------------------------ */

static cci_link_t counting_link;
static cci_transport_t transport;
static const cci_transport_t *transports[2];
static const void *victim_handle;                 /* whose packets are accounted for */
static uint32_t bytes_to[SPOOFED_COUNT];          /* that the victim sent, by address */
static uint32_t bytes_from[SPOOFED_COUNT];        /* that the attacker sent in the name of the address */
static uint64_t packets_of_type[16];              /* that the victim sent */
static uint32_t packets_to[SPOOFED];              /* that the victim sent to addresses below */
static uint8_t last_packet[CCI_REL_HEAD];         /* of the victim's, its first piece */
static uint32_t last_length;
static uint32_t message_limit, recv_limit, send_limit, base_limit; /* of endpoints that are opened now; 0: the default */

static uint32_t number_of(const cci_link_addr_t *address) {
    uint32_t number;
    memcpy(&number, address->bytes + 4, 4);
    return number;
}

static int counting_send(void *handle, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count && handle == victim_handle; i++) {
        uint32_t number = number_of(tx[i].to) - SPOOFED;
        packets_of_type[((const uint8_t *)tx[i].piece[0].data)[1] & 15]++;
        last_length = cci__min32(tx[i].piece[0].length, sizeof last_packet);
        memcpy(last_packet, tx[i].piece[0].data, last_length);
        if (number < SPOOFED_COUNT)
            bytes_to[number] += tx[i].length;
        else if (number_of(tx[i].to) < SPOOFED)
            packets_to[number_of(tx[i].to)]++;
    }
    return sim_send(handle, tx, count);
}

static int limited_open(cci_device_t *device, const char *service, int want_os_handle, void **handle,
                        cci_link_info_t *info) {
    info->max_send_size = message_limit;
    info->recv_buf_count = recv_limit;
    info->send_buf_count = send_limit;
    int status = sim_open(device, service, want_os_handle, handle, info);
    if (base_limit)
        info->base_mtu = base_limit;
    return status;
}

/* Sends the victim any bytes in anybody's name. */
static cci_endpoint_t *victim;

static cci__dgram_t *dgram_of(cci_endpoint_t *endpoint) {
    return (cci__dgram_t *)(void *)endpoint;
}

static cci__dconn_t *dconn_of(cci_connection_t *connection) {
    return (cci__dconn_t *)(void *)connection;
}

static sim_endpoint_t *sim_of(cci_endpoint_t *endpoint) {
    return (sim_endpoint_t *)dgram_of(endpoint)->base.handle;
}

static void inject(uint32_t number, const void *bytes, uint32_t length) {
    if (number - SPOOFED < SPOOFED_COUNT)
        bytes_from[number - SPOOFED] += length;
    sim_inject(number, sim_of(victim)->number, bytes, length);
}

/* ---- hooks: memory and chance are counted --------------------------------------------------------------------------- */

static size_t memory_bytes; /* allocated and not released */
static uint32_t random_calls, random_bytes;
static uint8_t random_seed;

static void *counting_alloc(void *user, size_t size_bytes) {
    size_t *block = (size_t *)malloc(size_bytes + 64);
    (void)user;
    if (!block)
        return NULL;
    *block = size_bytes;
    memory_bytes += size_bytes;
    return (char *)block + 64;
}

static void counting_release(void *user, void *pointer) {
    (void)user;
    if (!pointer)
        return;
    memory_bytes -= *(size_t *)(void *)((char *)pointer - 64);
    free((char *)pointer - 64);
}

static int seeded_random(void *user, void *bytes, size_t count) {
    (void)user;
    random_calls++;
    random_bytes += (uint32_t)count;
    memset(bytes, 0x5a, count);
    ((uint8_t *)bytes)[random_seed / 8] ^= (uint8_t)(1u << random_seed % 8);
    return 0;
}

static void no_log(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    (void)text;
}

/* ---- the victim and honest clients ----------------------------------------------------------------------------------- */

enum { ACCEPT_ALL, REJECT_ALL, DECIDE_LATER };

static cci_endpoint_t *client, *other;
static int policy;
static cci_event_t *undecided[MAX_CONNECTIONS];
static cci_connection_t *at_client, *at_victim; /* the newest */
static cci_connection_t *of_client[MAX_CONNECTIONS];
static int undecided_count, client_count, refused_count, accepted_count, received_count, sent_count, failed_count;
static int last_status;
static uint8_t received_first; /* byte of the last message */

static void take_event(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        if (policy == DECIDE_LATER && undecided_count < MAX_CONNECTIONS) {
            undecided[undecided_count++] = event;
            return;
        }
        assert_int_equal(policy == ACCEPT_ALL ? cci_accept(event, NULL) : cci_reject(event), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
        if (event->accept.status == CCI_SUCCESS) {
            accepted_count++;
            at_victim = event->accept.connection;
        }
        break;
    case CCI_EVENT_CONNECT:
        if (event->connect.status == CCI_SUCCESS) {
            assert_true(client_count < MAX_CONNECTIONS);
            at_client = of_client[client_count++] = event->connect.connection;
        } else {
            refused_count++;
        }
        break;
    case CCI_EVENT_RECV:
        received_count++;
        received_first = event->recv.len ? *(const uint8_t *)event->recv.ptr : 0;
        break;
    case CCI_EVENT_SEND:
        sent_count++;
        last_status = event->send.status;
        failed_count += event->send.status != CCI_SUCCESS;
        break;
    default:
        break;
    }
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

static void serve(cci_endpoint_t *endpoint) {
    cci_event_t *event;
    int i;
    for (i = 0; i < 64 && cci_get_event(endpoint, &event) == CCI_SUCCESS; i++)
        take_event(event);
}

static void run(int rounds) {
    while (rounds-- > 0) {
        serve(victim);
        if (client)
            serve(client);
        if (other)
            serve(other);
    }
}

/* Until everything that was injected has been taken. */
static void drain(void) {
    while (sim.heap_count > 0 || sim_of(victim)->first)
        run(1);
    run(2);
}

/* For so long in virtual time. */
static void run_ms(uint64_t ms) {
    uint64_t until_ns = sim.now_ns + ms * CCI__MS;
    while (sim.now_ns < until_ns)
        run(1);
}

/* Until `*count` is `wanted`, but not for ever. */
static void run_until(const int *count, int wanted) {
    int rounds;
    for (rounds = 0; rounds < 500000 && *count < wanted; rounds++)
        run(1);
    assert_int_equal(*count, wanted);
}

static void ask_for_connection(cci_endpoint_t *from, cci_conn_attribute_t attribute) {
    char *uri;
    assert_int_equal(cci_get_opt(victim, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(from, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
}

static void connect_to_victim(cci_conn_attribute_t attribute) {
    int before = accepted_count;
    at_client = at_victim = NULL;
    ask_for_connection(client, attribute);
    run_until(&client_count, client_count + 1);
    run_until(&accepted_count, before + 1);
}

static void open_victim(void) {
    assert_int_equal(cci_create_endpoint(NULL, 0, &victim, NULL), CCI_SUCCESS);
    victim_handle = dgram_of(victim)->base.handle;
}

static void open_both(void) {
    open_victim();
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
}

/* A message from the client to the victim and one back arrive. */
static void both_ways(void) {
    int before = received_count;
    assert_int_equal(cci_send(at_client, "a", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    run_until(&received_count, before + 1);
    assert_int_equal(cci_send(at_victim, "b", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    run_until(&received_count, before + 2);
}

static int begin(void **state) {
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    sim_reset();
    sim.memory_limit = MEMORY;
    message_limit = base_limit = 0;
    recv_limit = send_limit = CCI__DGRAM_BUFS;
    memset(bytes_to, 0, sizeof bytes_to);
    memset(bytes_from, 0, sizeof bytes_from);
    memset(packets_of_type, 0, sizeof packets_of_type);
    client_count = undecided_count = refused_count = accepted_count = received_count = sent_count = failed_count = 0;
    client = victim = other = NULL;
    victim_handle = NULL;
    at_client = at_victim = NULL;
    policy = ACCEPT_ALL;
    memory_bytes = 0;
    random_calls = random_bytes = 0;
    counting_link = sim_link;
    counting_link.open = limited_open;
    counting_link.send = counting_send;
    transport = sim_transport;
    transport.link = &counting_link;
    transports[0] = &transport;
    memset(&setup, 0, sizeof setup);
    setup.alloc = counting_alloc;
    setup.release = counting_release;
    setup.random = seeded_random;
    setup.log = no_log;
    setup.transports = transports;
    return cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS;
}

/* Nothing stays behind, whatever the test did. */
static int end(void **state) {
    (void)state;
    if (client)
        assert_int_equal(cci_destroy_endpoint(client), CCI_SUCCESS);
    if (other)
        assert_int_equal(cci_destroy_endpoint(other), CCI_SUCCESS);
    if (victim)
        assert_int_equal(cci_destroy_endpoint(victim), CCI_SUCCESS);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(memory_bytes, 0);
    sim_reset();
    return 0;
}

/* ---- an attacker -------------------------------------------------------------------------------------------------------- */

/* Asks for a connection; returns the packet's bytes. */
static uint32_t write_request(uint8_t *packet, uint8_t attribute, uint32_t index, uint64_t token, uint64_t cookie,
                              uint32_t data_len, uint32_t unit, uint32_t offset) {
    uint32_t length = unit && data_len - offset > unit ? unit : data_len - offset;
    memset(packet, 0, CCI__REQUEST_SIZE + length);
    cci_conn_write_header(packet, CCI__PKT_REQUEST, attribute, index, token, 0, 0);
    cci__store64(packet + 16, cookie);
    cci__store32(packet + 24, 65472);
    cci__store32(packet + 28, 1u << 20);
    cci__store16(packet + 32, data_len);
    cci__store16(packet + 34, unit);
    cci__store16(packet + 36, offset);
    cci__store16(packet + 38, length);
    return CCI__REQUEST_SIZE + length;
}

/* A peer inside a connection: it has shaken hands as it should, and may send whatever it likes then. */
typedef struct insider {
    uint32_t number;       /* its address */
    uint64_t token;        /* its own */
    uint32_t next;         /* packet */
    cci__dconn_t *conn;    /* at the victim */
    cci_connection_t *pub;
} insider_t;

static uint64_t tokens_made;

static void insider_connect(insider_t *insider, uint32_t number, uint8_t attribute) {
    uint8_t packet[CCI__REQUEST_SIZE];
    cci_link_addr_t address;
    uint32_t length;
    int before = accepted_count;
    insider->number = number;
    insider->token = ++tokens_made * UINT64_C(0x9e3779b97f4a7c15);
    insider->next = 0;
    sim_make_address(&address, 1, number);
    length = write_request(packet, attribute, 7, insider->token, 0, 0, 0, 0);
    inject(number, packet, length);
    drain();
    insider->conn = (cci__dconn_t *)(void *)cci_conn_find_request(&dgram_of(victim)->base.conns, &address, 7, insider->token);
    assert_non_null(insider->conn);
    insider->pub = &insider->conn->conn.pub;
    cci_conn_write_header(packet, CCI__PKT_CONFIRM, 0, insider->conn->conn.index, insider->conn->conn.token, 7, 0);
    inject(number, packet, CCI__HEADER_SIZE);
    drain();
    assert_int_equal(accepted_count, before + 1);
    assert_int_equal(insider->conn->conn.state, CCI_CONN_OPEN);
}

/* A packet of frames; from anywhere. */
static void insider_says_from(insider_t *insider, uint32_t number, const uint8_t *frames, uint32_t length) {
    static uint8_t packet[65536];
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, insider->conn->conn.index, insider->conn->conn.token, 7,
                          insider->next++);
    memcpy(packet + CCI__HEADER_SIZE, frames, length);
    inject(number, packet, CCI__HEADER_SIZE + length);
}

static void insider_says(insider_t *insider, const uint8_t *frames, uint32_t length) {
    insider_says_from(insider, insider->number, frames, length);
}

/* Frames, each written at `at`; returns its end. */
static uint8_t *put_message(uint8_t *at, uint8_t flags, uint32_t sequence, uint32_t length) {
    memset(at, 'h', 8 + length);
    return cci__rel_frame(at, CCI__FRAME_MESSAGE, flags, length, sequence) + cci__pad8(length);
}

static uint8_t *put_fragment(uint8_t *at, uint32_t sequence, uint32_t offset, uint32_t length, uint32_t total) {
    memset(at, 'h', 16 + cci__pad8(length));
    (void)cci__rel_frame(at, CCI__FRAME_FRAGMENT, 0, length, sequence);
    cci__store32(at + 8, offset);
    cci__store32(at + 12, total);
    return at + 16 + cci__pad8(length);
}

static uint8_t *put_bulk(uint8_t *at, uint32_t sequence, uint64_t key, uint32_t region, uint64_t remote_offset,
                         uint64_t offset, uint32_t length, uint64_t total) {
    cci_rel_bulk_t bulk;
    memset(at, 'h', 48 + cci__pad8(length));
    bulk.key = key;
    bulk.region = region;
    bulk.remote_offset = remote_offset;
    bulk.length = total;
    cci__rel_write_bulk(at, &bulk, sequence, offset, length);
    return at + 48 + cci__pad8(length);
}

static uint8_t *put_read(uint8_t *at, uint32_t chunk, uint64_t key, uint32_t region, uint64_t offset, uint32_t length,
                         uint32_t segment, uint64_t missing) {
    memset(at, 0, 48);
    at[0] = CCI__FRAME_READ;
    cci__store32(at + 4, chunk);
    cci__store64(at + 8, key);
    cci__store32(at + 16, region);
    cci__store32(at + 20, segment);
    cci__store64(at + 24, offset);
    cci__store32(at + 32, length);
    cci__store64(at + 40, missing);
    return at + 48;
}

static uint8_t *put_small(uint8_t *at, uint8_t type, uint32_t second, uint64_t third) {
    memset(at, 0, 16);
    at[0] = type;
    cci__store32(at + 4, second);
    cci__store64(at + 8, third);
    return at + (type == CCI__FRAME_NACK || type == CCI__FRAME_PING ? 8 : 16);
}

/* ---- a peer whose address changes ------------------------------------------------------------------------------------ */

static void a_peer_whose_address_changes_is_followed_when_it_has_proven_the_new_one(void **state) {
    int i, moves;
    (void)state;
    open_both();
    for (i = 0; i < 2; i++) { /* both kinds of reliable connection */
        connect_to_victim(i ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
        for (moves = 0; moves < 20; moves++) {
            sim_of(client)->address.bytes[20]++;
            both_ways();
            assert_memory_equal(&dconn_of(at_victim)->conn.peer, &sim_of(client)->address, sizeof(cci_link_addr_t));
        }
    }
    assert_int_equal(failed_count, 0);
}

static void a_challenge_that_is_lost_is_repeated(void **state) {
    int moves;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    sim.loss_per_mille = 300;
    for (moves = 0; moves < 100; moves++) {
        sim_of(client)->address.bytes[20]++;
        both_ways();
    }
    assert_int_equal(failed_count, 0);
}

static uint8_t memory[1 << 20];

/* Asks for a megabyte in the name of `number`. */
static void ask_for_a_megabyte(insider_t *insider, uint32_t number, const cci_rma_handle_t *handle) {
    uint8_t frames[48 * 16], *at = frames;
    uint64_t key;
    uint32_t region, i;
    cci_rma_parse_handle(handle, &key, &region);
    for (i = 0; i < 16; i++)
        at = put_read(at, i, key, region, i * 60000u, 60000, 1200, UINT64_MAX >> 14);
    insider_says_from(insider, number, frames, (uint32_t)(at - frames));
}

static void a_peer_cannot_direct_answers_at_a_third_party(void **state) {
    cci_rma_handle_t *handle;
    insider_t insider;
    uint32_t third, i, worst = 0;
    (void)state;
    open_victim();
    insider_connect(&insider, SPOOFED, CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(victim, memory, sizeof memory, CCI_FLAG_READ, &handle), CCI_SUCCESS);
    ask_for_a_megabyte(&insider, insider.number, handle);
    drain();
    assert_true(bytes_to[0] > 800000); /* the request is a good one: at its own address it is answered */
    for (third = 1; third < 100; third++) { /* some are named once, others again and again, with small and large packets */
        uint8_t ping[8] = {CCI__FRAME_PING};
        for (i = 0; i < third; i++) {
            if (third & 1)
                ask_for_a_megabyte(&insider, SPOOFED + third, handle);
            else
                insider_says_from(&insider, SPOOFED + third, ping, third & 2 ? 8 : 0);
            drain();
            if (third % 3 == 0)
                run_ms(50);
            assert_true(bytes_to[third] <= 3 * bytes_from[third]);
            worst = cci__max32(worst, bytes_to[third] * 100 / bytes_from[third]);
        }
        assert_true(bytes_to[third] > 0); /* it was challenged */
        assert_int_equal(number_of(&insider.conn->conn.peer), SPOOFED);
    }
    run_ms(5000);
    for (third = 1; third < 100; third++)
        assert_true(bytes_to[third] <= 3 * bytes_from[third]);
    print_message("a third party gets at most %u %% of what was sent in its name\n", worst);
}

static void a_wrong_or_late_response_does_not_move_a_peer(void **state) {
    insider_t insider;
    uint8_t frames[16], ping[8] = {CCI__FRAME_PING};
    uint64_t bits;
    (void)state;
    open_victim();
    insider_connect(&insider, SPOOFED, CCI_CONN_ATTR_RO);
    insider_says_from(&insider, SPOOFED + 1, ping, 8);
    drain();
    bits = insider.conn->hot->path->challenge;
    assert_true(bits != 0);
    (void)put_small(frames, CCI__FRAME_RESPONSE, 0, bits ^ 2);
    insider_says_from(&insider, SPOOFED + 1, frames, 16);
    (void)put_small(frames, CCI__FRAME_RESPONSE, 0, 0);
    insider_says_from(&insider, SPOOFED + 1, frames, 16);
    drain();
    assert_int_equal(number_of(&insider.conn->conn.peer), SPOOFED);
    insider_says(&insider, ping, 8); /* it is at its old address: the challenge is void */
    drain();
    (void)put_small(frames, CCI__FRAME_RESPONSE, 0, bits);
    insider_says_from(&insider, SPOOFED + 1, frames, 16);
    drain();
    assert_int_equal(number_of(&insider.conn->conn.peer), SPOOFED);
    assert_true(insider.conn->hot->path->challenge == 0); /* nor was that packet a new attempt */
    insider_says_from(&insider, SPOOFED + 1, ping, 8);
    drain();
    assert_true(insider.conn->hot->path->challenge != bits);
    bits = insider.conn->hot->path->challenge;
    assert_true(bits != 0);
    (void)put_small(frames, CCI__FRAME_RESPONSE, 0, bits);
    insider_says_from(&insider, SPOOFED + 1, frames, 16);
    drain();
    assert_int_equal(number_of(&insider.conn->conn.peer), SPOOFED + 1);
}

/* ---- a peer that takes more than its share ----------------------------------------------------------------------------- */

static insider_t insiders[1400];

/* How many of a kind the victim can have. */
static uint32_t most_of(int kind) {
    return dgram_of(victim)->stores[kind].most;
}

static void insiders_connect(uint32_t count, uint8_t attribute) {
    uint32_t i;
    for (i = 0; i < count; i++)
        insider_connect(&insiders[i], SPOOFED + i, attribute);
}

/* Milliseconds of virtual time until an honest client's message has arrived. */
static uint64_t honest_message_ms(void) {
    uint64_t begin_ns = sim.now_ns;
    int before = received_count, sent = sent_count;
    uint8_t byte = 'x';
    assert_int_equal(cci_send(at_client, &byte, 1, NULL, 0), CCI_SUCCESS);
    while (sim.now_ns - begin_ns < 60000 * CCI__MS && sent_count == sent)
        run(1);
    assert_int_equal(received_first, 'x');
    assert_true(received_count > before);
    assert_int_equal(sent_count, sent + 1);
    assert_int_equal(last_status, CCI_SUCCESS);
    return (sim.now_ns - begin_ns) / CCI__MS;
}

static void a_thousand_peers_that_leave_gaps_do_not_keep_others_from_sending(void **state) {
    uint8_t frames[64];
    uint32_t i, sequence = 1;
    uint64_t ms;
    int round;
    (void)state;
    open_both();
    insiders_connect(most_of(CCI__STORE_HOT), CCI_CONN_ATTR_RU);
    connect_to_victim(CCI_CONN_ATTR_RO);
    for (round = 0; round < 3; round++, sequence++) { /* message 0 never comes, others do */
        for (i = 0; i < most_of(CCI__STORE_HOT); i++)
            insider_says(&insiders[i], frames, (uint32_t)(put_message(frames, 0, sequence, 8) - frames));
        drain();
        run_ms(1000);
    }
    assert_true(cci__list_empty(&dgram_of(victim)->free_hot)); /* they do hold all there is */
    assert_null(dconn_of(at_victim)->hot);
    ms = honest_message_ms();
    print_message("%u connections with gaps: a message of another took %u ms\n", most_of(CCI__STORE_HOT), (unsigned)ms);
    assert_true(ms < 15000);
    assert_true(dgram_of(victim)->evicted <= 16); /* no more than needed, if any */
    assert_true(honest_message_ms() < 1000);
}

static void early_messages_of_one_connection_leave_their_share_to_others(void **state) {
    uint8_t frames[1100];
    uint32_t i, n, count = 5;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    insiders_connect(count, CCI_CONN_ATTR_RO);
    for (n = 1; n <= 1000; n++)
        insider_says(&insiders[0], frames, (uint32_t)(put_message(frames, 0, n, 8) - frames));
    drain();
    i = insiders[0].conn->hot->rel.buffers_held;
    print_message("one connection holds %u of %u buffers\n", i, dgram_of(victim)->base.recv_buf_count);
    assert_true(i > 100 && i <= dgram_of(victim)->base.recv_buf_count * 3 / 4 * 3 / 4);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    for (n = 1; n <= 1000; n++)
        for (i = 1; i < count; i++)
            insider_says(&insiders[i], frames, (uint32_t)(put_message(frames, 0, n, 8) - frames));
    drain();
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    for (i = 1; i < count; i++)
        assert_true(insiders[i].conn->hot->rel.buffers_held >= 8);
    sim.reorder_per_mille = 500; /* an honest peer needs some of it too */
    for (i = 0; i < 500; i++)
        assert_int_equal(cci_send(at_client, frames, 1000, NULL, 0), CCI_SUCCESS);
    run_until(&sent_count, 500);
    assert_int_equal(failed_count, 0);
    for (n = 0; n < 1; n++) /* and a connection that gets further gives everything back */
        for (i = 0; i < count; i++)
            insider_says(&insiders[i], frames, (uint32_t)(put_message(frames, 0, 0, 8) - frames));
    drain();
    for (i = 0; i < count; i++)
        assert_int_equal(insiders[i].conn->hot->rel.buffers_held, 0);
    assert_int_equal(dgram_of(victim)->pool.buffers_held, 0);
}

/* What they hold is no reason to let nobody in any more. */
static void early_messages_do_not_keep_others_from_connecting(void **state) {
    uint8_t frames[64];
    uint64_t begin_ns;
    uint32_t i, n;
    (void)state;
    open_both();
    insiders_connect(8, CCI_CONN_ATTR_RO);
    for (i = 0; i < 8; i++)
        for (n = 1; n <= 1000; n++)
            insider_says(&insiders[i], frames, (uint32_t)(put_message(frames, 0, n, 8) - frames));
    drain();
    assert_true(dgram_of(victim)->pool.buffers_held > dgram_of(victim)->base.recv_buf_count / 2);
    begin_ns = sim.now_ns;
    ask_for_connection(client, CCI_CONN_ATTR_RO);
    while (client_count == 0 && sim.now_ns - begin_ns < 60000 * CCI__MS)
        run(1);
    print_message("8 peers hold %u of %u buffers: a connect took %u ms\n", dgram_of(victim)->pool.buffers_held,
                  dgram_of(victim)->base.recv_buf_count, (unsigned)((sim.now_ns - begin_ns) / CCI__MS));
    assert_int_equal(client_count, 1);
    assert_true(sim.now_ns - begin_ns < 1000 * CCI__MS);
}

static void messages_that_wait_for_a_write_that_never_comes_leave_buffers_to_others(void **state) {
    uint8_t frames[64];
    uint32_t i, n;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RU);
    insiders_connect(100, CCI_CONN_ATTR_RU);
    for (n = 0; n < 30; n++)
        for (i = 0; i < 100; i++)
            insider_says(&insiders[i], frames, (uint32_t)(put_message(frames, CCI__FRAME_AFTER, 3 * n + 2, 8) - frames));
    drain();
    print_message("100 connections hold %u buffers with messages that wait\n", dgram_of(victim)->pool.buffers_held);
    assert_true(dgram_of(victim)->pool.buffers_held > 300);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    assert_true(honest_message_ms() < 1000);
}

/* Every insider begins a long message that is the next to be delivered, and does not go on. */
static void fragments_that_are_never_completed_do_not_hold_all_buffers(void **state) {
    uint8_t frames[256];
    uint32_t i;
    uint64_t ms;
    (void)state;
    message_limit = 8000;
    recv_limit = 300;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    insiders_connect(400, CCI_CONN_ATTR_RO);
    for (i = 0; i < 400; i++)
        insider_says(&insiders[i], frames, (uint32_t)(put_fragment(frames, 0, 0, 100, 1400) - frames));
    drain();
    assert_int_equal(cci__dgram_buffers_left(dgram_of(victim), 0), 0); /* they do hold all there is */
    ms = honest_message_ms();
    print_message("300 buffers with unfinished messages: a message of another took %u ms\n", (unsigned)ms);
    assert_true(ms < 15000);
    assert_true(dgram_of(victim)->evicted >= 1);
    for (i = 0; i < 400; i++) /* also on unreliable connections, and out of order */
        insider_says(&insiders[i], frames, (uint32_t)(put_fragment(frames, 1 + i % 50, 0, 100, 1400) - frames));
    drain();
    assert_true(honest_message_ms() < 15000);
}

static void unreliable_fragments_leave_buffers_to_others_and_go_after_a_second(void **state) {
    uint8_t frames[256];
    uint32_t i, n;
    (void)state;
    message_limit = 8000;
    recv_limit = 300;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    insiders_connect(100, CCI_CONN_ATTR_UU);
    for (n = 0; n < 10; n++)
        for (i = 0; i < 100; i++)
            insider_says(&insiders[i], frames, (uint32_t)(put_fragment(frames, n, 0, 100, 1400) - frames));
    drain();
    assert_true(dgram_of(victim)->pool.buffers_held > 100);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    assert_true(honest_message_ms() < 1000);
    run_ms(3000);
    assert_int_equal(dgram_of(victim)->pool.buffers_held, 0);
}

static void group_says(uint32_t number, const uint8_t *frames, uint32_t length) {
    sim_datagram_t *datagram = (sim_datagram_t *)calloc(1, sizeof *datagram + CCI__HEADER_SIZE + length);
    assert_non_null(datagram);
    sim_make_address(&datagram->from, 1, number);
    sim_make_address(&datagram->to, 2, 7);
    datagram->is_group = 1;
    datagram->length = CCI__HEADER_SIZE + length;
    cci_conn_write_header(datagram->bytes, CCI__PKT_GROUP, 0, 0, 0, 0, 0);
    memcpy(datagram->bytes + CCI__HEADER_SIZE, frames, length);
    sim_launch(datagram);
}

/* Anybody can send to a group. */
static void pieces_that_anybody_sends_to_a_group_leave_buffers_to_others(void **state) {
    uint8_t frames[256];
    cci_event_t *taken[64];
    uint32_t n, count = 0;
    (void)state;
    message_limit = 8000;
    recv_limit = 64;
    open_both();
    assert_int_equal(cci_connect(victim, "sim://g7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_SUCCESS);
    run_until(&client_count, 1);
    connect_to_victim(CCI_CONN_ATTR_RO);
    for (n = 0; n < 1000; n++)
        group_says(SPOOFED + n, frames, (uint32_t)(put_fragment(frames, n, 0, 100, 1400) - frames));
    drain();
    assert_true(dgram_of(victim)->pool.buffers_held > 4);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    assert_true(honest_message_ms() < 1000);
    run_ms(3000);
    assert_int_equal(dgram_of(victim)->pool.buffers_held, 0);
    for (n = 2000; n < 3000; n++) /* and whole messages, while the program gives nothing back */
        group_says(SPOOFED + n, frames, (uint32_t)(put_message(frames, 0, n, 100) - frames));
    sim_advance_to(sim.now_ns + sim.delay_ns + 1);
    while (count < 64 && cci_get_event(victim, &taken[count]) == CCI_SUCCESS)
        count++;
    assert_true(count > 16);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) >= dgram_of(victim)->base.recv_buf_count / 4);
    assert_true(honest_message_ms() < 1000);
    while (count > 0)
        assert_int_equal(cci_return_event(taken[--count]), CCI_SUCCESS);
}

/* Milliseconds until an honest client has written, or read, so many bytes. */
static uint64_t honest_rma_ms(cci_rma_handle_t *remote, uint64_t length, int flags) {
    static uint8_t own[1 << 20];
    static cci_rma_handle_t *local;
    uint64_t begin_ns = sim.now_ns;
    int before = sent_count;
    assert_int_equal(cci_rma_register(client, own, sizeof own, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma(at_client, NULL, 0, local, 0, remote, 0, length, NULL, flags), CCI_SUCCESS);
    while (sim.now_ns - begin_ns < 60000 * CCI__MS && sent_count == before)
        run(1);
    assert_int_equal(sent_count, before + 1);
    assert_int_equal(last_status, CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(client, local), CCI_SUCCESS);
    return (sim.now_ns - begin_ns) / CCI__MS;
}

static void writes_that_are_never_completed_do_not_keep_others_from_writing(void **state) {
    cci_rma_handle_t *handle;
    uint8_t frames[256];
    uint32_t i, n, region;
    uint64_t key, ms;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(victim, memory, sizeof memory, CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    cci_rma_parse_handle(handle, &key, &region);
    insiders_connect(600, CCI_CONN_ATTR_RO);
    for (n = 1; n <= most_of(CCI_REL_REASSEMBLIES); n++) /* one connection begins all that it can */
        insider_says(&insiders[0], frames, (uint32_t)(put_bulk(frames, n, key, region, 0, 0, 64, 4096) - frames));
    drain();
    assert_true(insiders[0].conn->hot->rel.reassembly_count > 50);
    assert_true(insiders[0].conn->hot->rel.reassembly_count <= most_of(CCI_REL_REASSEMBLIES) * 3 / 4 * 3 / 4);
    assert_true(dgram_of(victim)->pool.reassembly_free > most_of(CCI_REL_REASSEMBLIES) / 4);
    assert_true(honest_rma_ms(handle, 100000, CCI_FLAG_WRITE) < 1000);
    for (i = 0; i < 600; i++) /* and then each begins the one that is next */
        insider_says(&insiders[i], frames, (uint32_t)(put_bulk(frames, 0, key, region, 0, 0, 64, 4096) - frames));
    drain();
    assert_int_equal(dgram_of(victim)->pool.reassembly_free, 0);
    ms = honest_rma_ms(handle, 100000, CCI_FLAG_WRITE);
    print_message("%u unfinished writes: a write of another took %u ms\n", most_of(CCI_REL_REASSEMBLIES), (unsigned)ms);
    assert_true(ms < 15000);
}

static void requests_for_reads_leave_their_share_to_others(void **state) {
    cci_rma_handle_t *handle;
    uint8_t frames[48 * 24], *at;
    uint32_t i, n, region, round, held, count = 20;
    uint64_t key, ms = 0;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(victim, memory, sizeof memory, CCI_FLAG_READ, &handle), CCI_SUCCESS);
    cci_rma_parse_handle(handle, &key, &region);
    insiders_connect(count, CCI_CONN_ATTR_RO);
    for (round = 0; round < 10; round++) {
        for (n = 0; n < 12; n++) {
            for (i = 0; i < count; i++) {
                int k;
                for (k = 0, at = frames; k < 24; k++)
                    at = put_read(at, 0, key, region, 0, 60000, 1000, UINT64_MAX >> 4);
                insider_says(&insiders[i], frames, (uint32_t)(at - frames));
            }
        }
        sim_advance_to(sim.now_ns + sim.delay_ns + 1);
        for (i = 0; i < 100; i++) { /* all of it is taken in before the first answer */
            (void)cci__dgram_receive(dgram_of(victim), CCI__DGRAM_BATCH_RX);
            cci__dgram_flush(dgram_of(victim));
        }
        for (i = held = 0; i < count; i++) {
            uint32_t mine = insiders[i].conn->hot && insiders[i].conn->hot->reader
                                ? insiders[i].conn->hot->reader->request_count : 0;
            assert_true(mine <= most_of(CCI__STORE_REQUESTS) / 4);
            held += mine;
        }
        assert_true(held > most_of(CCI__STORE_REQUESTS) / 2);
        assert_true(dgram_of(victim)->rma.request_free > 0);
        ms = cci__max64(ms, honest_rma_ms(handle, 10000, CCI_FLAG_READ));
        assert_true(dgram_of(victim)->rma.request_free > 0);
    }
    print_message("%u peers that ask for more than can be answered: a read of another took at most %u ms\n", count,
                  (unsigned)ms);
    assert_true(ms < 2000);
}

/* An insider that acknowledges everything until much is under way, and then nothing any more. */
static void a_peer_that_stops_acknowledging_leaves_records_to_others(void **state) {
    static uint8_t large[8 << 20];
    cci_rma_handle_t *local, remote;
    uint32_t total, n, more = 0;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    insiders_connect(1, CCI_CONN_ATTR_RO);
    sim.delay_ns = 5 * CCI__MS;
    total = dgram_of(victim)->pool.record_free;
    assert_int_equal(cci_rma_register(victim, large, sizeof large, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    memset(&remote, 1, sizeof remote);
    for (n = 0; n < 8; n++)
        assert_int_equal(cci_rma(insiders[0].pub, NULL, 0, local, 0, &remote, 0, sizeof large, NULL, CCI_FLAG_WRITE),
                         CCI_SUCCESS);
    for (n = 0; n < 400 && more < 8; n++) {
        more += insiders[0].conn->hot->rel.record_count > total * 5 / 8; /* and then some: it gets no more */
        uint8_t frames[16];
        (void)put_small(frames, CCI__FRAME_ACK, (uint32_t)insiders[0].conn->hot->rel.next_number - 1,
                        insiders[0].conn->hot->rel.next_number);
        insider_says(&insiders[0], frames, 16);
        run_ms(10);
    }
    print_message("a peer that acknowledges nothing holds %u of %u records\n",
                  insiders[0].conn->hot->rel.record_count, total);
    assert_true(insiders[0].conn->hot->rel.record_count > total / 2);
    assert_true(dgram_of(victim)->pool.record_free >= total / 4 - 1);
    at_victim = at_victim == insiders[0].pub ? NULL : at_victim;
    n = (uint32_t)received_count;
    for (total = 0; total < 100; total++)
        assert_int_equal(cci_send(&dconn_of(at_client)->conn.pub, large, 1000, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    run_until(&received_count, (int)n + 100);
}

static void reads_that_a_peer_does_not_answer_leave_chunks_to_others(void **state) {
    static uint8_t own[1 << 16];
    cci_rma_handle_t *local, remote;
    uint32_t i;
    (void)state;
    open_victim();
    insiders_connect(600, CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(victim, own, sizeof own, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    memset(&remote, 1, sizeof remote);
    for (i = 0; i < 100; i++)
        assert_int_equal(cci_rma(insiders[i].pub, NULL, 0, local, 0, &remote, 0, sizeof own, NULL, CCI_FLAG_READ),
                         CCI_SUCCESS);
    run_ms(100);
    assert_true(insiders[0].conn->hot->reader->chunk_count > 0);
    assert_true(dgram_of(victim)->rma.chunk_free >= CCI__DGRAM_CHUNKS - 4 * 100);
    run_ms(40000); /* the time-out of the sends gives everything back */
    assert_int_equal(dgram_of(victim)->rma.chunk_free, CCI__DGRAM_CHUNKS);
    assert_int_equal(sent_count, 100);
    assert_int_equal(failed_count, 100);
}

/* Twelve connections from `other`, the victim's sides of which are put down. */
static void connect_other(cci_connection_t **at_victims) {
    uint32_t i;
    assert_int_equal(cci_create_endpoint(NULL, 0, &other, NULL), CCI_SUCCESS);
    for (i = 0; i < 12; i++) {
        int before = accepted_count;
        ask_for_connection(other, CCI_CONN_ATTR_RO);
        run_until(&accepted_count, before + 1);
        at_victims[i] = at_victim;
    }
}

/* What was begun just now, after `before` completions, succeeds within a second. */
static void assert_completes_soon(int before) {
    uint64_t begin_ns = sim.now_ns;
    while (sent_count == before && sim.now_ns - begin_ns < 20000 * CCI__MS)
        run(1);
    print_message("took %u ms\n", (unsigned)((sim.now_ns - begin_ns) / CCI__MS));
    assert_int_equal(sent_count, before + 1);
    assert_int_equal(last_status, CCI_SUCCESS);
    assert_true(sim.now_ns - begin_ns < 1000 * CCI__MS);
}

/* Peers that answer reads until many chunks are asked for of each, and then nothing any more. */
static void peers_that_fall_silent_in_the_middle_of_reads_leave_chunks_to_others(void **state) {
    static uint8_t own[4 << 20], theirs[4 << 20], small[100000];
    cci_rma_handle_t *local, *remote, *honest;
    cci_connection_t *silent[12], *trusted;
    cci_endpoint_t *stopped;
    uint32_t i, round, held, all;
    int before;
    (void)state;
    sim.mtu = 60000;
    sim.delay_ns = 5 * CCI__MS; /* so that much is under way */
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    trusted = at_victim;
    connect_other(silent);
    assert_int_equal(cci_rma_register(victim, own, sizeof own, 0, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(other, theirs, sizeof theirs, CCI_FLAG_READ, &remote), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(client, small, sizeof small, CCI_FLAG_READ, &honest), CCI_SUCCESS);
    all = dgram_of(victim)->rma.chunk_made; /* so few can be held by 12 peers */
    dgram_of(victim)->rma.chunk_count = dgram_of(victim)->rma.chunk_free = all;
    for (round = 0; round < 10; round++) {
        before = sent_count;
        for (i = 0; i < 12; i++)
            assert_int_equal(cci_rma(silent[i], NULL, 0, local, 0, remote, 0, sizeof theirs, NULL, CCI_FLAG_READ),
                             CCI_SUCCESS);
        if (round < 9)
            run_until(&sent_count, before + 12);
    }
    for (i = 0; i < 100000 && all - dgram_of(victim)->rma.chunk_free < all / 2; i++)
        run(1);
    stopped = other; /* a process that is stopped: it neither answers nor leaves */
    other = NULL;
    run_ms(200);
    held = all - dgram_of(victim)->rma.chunk_free;
    assert_true(held > all / 2); /* they do hold much */
    assert_true(held <= all - all / 8 + 12);
    before = sent_count;
    assert_int_equal(cci_rma(trusted, NULL, 0, local, 0, honest, 0, sizeof small, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    print_message("12 silent peers hold %u of %u chunks: a read of another ", held, all);
    assert_completes_soon(before);
    run_ms(40000); /* the time-out of the reads gives everything back */
    assert_int_equal(dgram_of(victim)->rma.chunk_free, all);
    assert_int_equal(failed_count, 12);
    other = stopped;
}

/* The same with writes to them, of which they acknowledge nothing any more. */
static void peers_that_fall_silent_in_the_middle_of_writes_leave_records_to_others(void **state) {
    static uint8_t own[8 << 20];
    cci_rma_handle_t *local, remote;
    cci_connection_t *trusted;
    uint32_t i, n, total, held, most;
    int before;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    trusted = at_victim;
    insiders_connect(12, CCI_CONN_ATTR_RO);
    sim.delay_ns = 5 * CCI__MS;
    total = dgram_of(victim)->pool.record_free;
    assert_int_equal(cci_rma_register(victim, own, sizeof own, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
    memset(&remote, 1, sizeof remote);
    for (i = 0; i < 12; i++) { /* one after the other acknowledges everything until it has been sent much */
        for (n = 0; n < 8; n++)
            assert_int_equal(cci_rma(insiders[i].pub, NULL, 0, local, 0, &remote, 0, sizeof own, NULL, CCI_FLAG_WRITE),
                             CCI_SUCCESS);
        for (n = most = 0; n < 100; n++) {
            const cci_rel_t *rel = &insiders[i].conn->hot->rel;
            uint8_t frames[16];
            if (n > 20 && rel->record_count <= most)
                break; /* that is all that it can have */
            most = rel->record_count;
            (void)put_small(frames, CCI__FRAME_ACK, (uint32_t)rel->next_number - 1, rel->next_number);
            insider_says(&insiders[i], frames, 16);
            run_ms(10);
        }
    }
    run_ms(200);
    held = total - dgram_of(victim)->pool.record_free;
    assert_true(held > total / 2); /* they do hold much */
    assert_true(dgram_of(victim)->pool.record_free >= total / 8 - 12 * 8);
    before = sent_count;
    assert_int_equal(cci_send(trusted, own, 1000, NULL, 0), CCI_SUCCESS);
    print_message("12 silent peers hold %u of %u records: a message to another ", held, total);
    assert_completes_soon(before);
}

static void keepalives_to_silent_peers_do_not_hold_what_others_need(void **state) {
    uint32_t keepalive_us = 100000;
    (void)state;
    open_both();
    insiders_connect(most_of(CCI__STORE_HOT), CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(victim, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    run_ms(1000);
    keepalive_us = 0;
    assert_int_equal(cci_set_opt(victim, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &keepalive_us), CCI_SUCCESS);
    assert_true(cci__list_empty(&dgram_of(victim)->free_hot)); /* they were all asked, and none answers */
    connect_to_victim(CCI_CONN_ATTR_RO);
    assert_true(honest_message_ms() < 1000);
    assert_int_equal(dgram_of(victim)->evicted, 0);
}

/* ---- a peer that makes work ---------------------------------------------------------------------------------------------- */

#define LARGE 65000u /* bytes of the largest packet here */

/* Steps to take in one packet of frames. */
static uint64_t steps_for(insider_t *insider, const uint8_t *frames, uint32_t length) {
    uint64_t before;
    drain();
    insider_says(insider, frames, length);
    sim_advance_to(sim.now_ns + sim.delay_ns + sim.jitter_ns + 1);
    before = steps;
    assert_int_equal(cci__dgram_receive(dgram_of(victim), 1), 1);
    return steps - before;
}

/* Frames until the packet is full. */
typedef uint8_t *(*put_t)(uint8_t *at, uint32_t number);

static uint64_t steps_for_many(insider_t *insider, put_t put, uint32_t most) {
    static uint8_t frames[LARGE + 256];
    uint8_t *at = frames;
    uint32_t n = 0;
    while ((uint32_t)(at - frames) < LARGE - 300 && n < most)
        at = put(at, n++);
    return steps_for(insider, frames, (uint32_t)(at - frames));
}

static insider_t *worker;
static uint64_t writable_key;
static uint32_t writable_region;

static uint8_t *put_plain(uint8_t *at, uint32_t n) {
    return put_message(at, 0, (uint32_t)worker->conn->hot->rel.expected + n, 0);
}
static uint8_t *put_ack(uint8_t *at, uint32_t n) {
    (void)put_small(at, CCI__FRAME_ACK, (uint32_t)worker->conn->hot->rel.next_number - 1 - n, 1);
    return at + 16;
}
/* As many ranges as there can be, each of one packet: nothing of what is under way is next to what is acknowledged. */
static uint8_t *put_long_ack(uint8_t *at, uint32_t n) {
    uint32_t i;
    (void)put_small(at, CCI__FRAME_ACK, (uint32_t)worker->conn->hot->rel.next_number - 1 - n % 2, 1);
    at[1] = CCI__REL_ACK_MORE;
    for (i = 0; i < CCI__REL_ACK_MORE; i++) {
        cci__store16(at + 16 + 4 * i, 1 + (n + i) % 90);
        cci__store16(at + 18 + 4 * i, 1);
    }
    cci__store32(at + 16 + 4 * i, 0);
    return at + cci__pad8(16 + 4 * i);
}
/* A packet that only acknowledged something, which nobody keeps a record of: nothing is acknowledged by it, and nothing lost. */
static uint8_t *put_void_ack(uint8_t *at, uint32_t n) {
    const cci_rel_t *rel = &worker->conn->hot->rel;
    uint64_t number = rel->next_number;
    const cci_list_t *node;
    (void)n;
    for (node = rel->flight.prev; node != &rel->flight; node = node->prev)
        if (CCI__CONTAINER(node, const cci_rel_sent_t, node)->number != --number)
            break;
    (void)put_small(at, CCI__FRAME_ACK, (uint32_t)number, 1);
    return at + 16;
}
static uint8_t *put_wide_ack(uint8_t *at, uint32_t n) { /* of all that was ever sent, again and again */
    (void)n;
    (void)put_small(at, CCI__FRAME_ACK, (uint32_t)worker->conn->hot->rel.next_number - 1,
                    worker->conn->hot->rel.next_number);
    return at + 16;
}
/* As many ranges as there can be, of what is under way and of what was never sent. */
static uint8_t *put_taken(uint8_t *at, uint32_t n) {
    uint32_t i;
    (void)put_small(at, CCI__FRAME_TAKEN, (uint32_t)worker->conn->hot->rel.next_sequence - n % 99, 0);
    at[1] = CCI__REL_UNTOLD;
    cci__store16(at + 2, 0);
    for (i = 0; i < CCI__REL_UNTOLD; i++) {
        cci__store16(at + 8 + 4 * i, 1 + 4 * i);
        cci__store16(at + 10 + 4 * i, 2 + 4 * i + n % 2);
    }
    return at + cci__pad8(8 + 4 * i);
}
static uint8_t *put_nack(uint8_t *at, uint32_t n) {
    (void)put_small(at, CCI__FRAME_NACK, (uint32_t)worker->conn->hot->rel.next_sequence - 1 - n % 8, 0);
    at[1] = n & 1 ? CCI_ERR_RNR : CCI_ERR_RMA_HANDLE;
    return at + 8;
}
static uint8_t *put_ping(uint8_t *at, uint32_t n) {
    (void)n;
    return put_small(at, CCI__FRAME_PING, 0, 0);
}
static uint8_t *put_void(uint8_t *at, uint32_t n) {
    return put_small(at, CCI__FRAME_VOID, 100000 + n, 0x3fffffff);
}
static uint8_t *put_void_again(uint8_t *at, uint32_t n) { /* an early one, before all parts that there are */
    (void)n;
    return put_small(at, CCI__FRAME_VOID, 5001, 1);
}
static uint8_t *put_piece(uint8_t *at, uint32_t n) { /* of a message before all others of which there are pieces */
    (void)n;
    return put_fragment(at, 5001, 0, 1, 1000);
}
static uint8_t *put_gap(uint8_t *at, uint32_t n) {
    return put_bulk(at, 1700, writable_key, writable_region, 0, n * 8, 1, 100000);
}
static uint8_t *put_unreadable(uint8_t *at, uint32_t n) {
    return put_read(at, n, 1, n, 0, 1000, 1000, 1);
}
static uint8_t *put_readable(uint8_t *at, uint32_t n) {
    return put_read(at, n, writable_key, writable_region, 0, 60000, 1000, 1);
}
static uint8_t *put_skip(uint8_t *at, uint32_t n) {
    at = put_message(at, CCI__FRAME_AFTER, (uint32_t)worker->conn->hot->rel.expected + n, 0);
    at[-8] = CCI__FRAME_SKIP;
    return at;
}
static uint8_t *put_challenge(uint8_t *at, uint32_t n) {
    return put_small(at, CCI__FRAME_CHALLENGE, 0, n + 1);
}

static const struct {
    const char *name;
    put_t put;
} frame_kinds[] = {{"ACK of nothing", put_void_ack}, {"NACK", put_nack}, {"ACK of 15 ranges", put_long_ack}, {"ACK", put_ack}, {"ACK of all", put_wide_ack},
                   {"TAKEN of 16 ranges", put_taken},
                   {"PING", put_ping}, {"VOID of 2^30", put_void},
                   {"VOID of one", put_void_again}, {"tiny FRAGMENT", put_piece}, {"BULK with gaps", put_gap},
                   {"READ denied", put_unreadable}, {"READ", put_readable}, {"SKIP", put_skip},
                   {"CHALLENGE", put_challenge}, {"message", put_plain}};

/* Steps for the worst packet that is full of frames of one of the first `count` kinds. One frame may have each packet that is
 * under way acknowledged, or counted as lost, once. */
static uint64_t measure(const char *when, uint32_t count) {
    uint64_t worst = 0;
    uint32_t i, n;
    for (i = 0; i < count && i < sizeof frame_kinds / sizeof frame_kinds[0]; i++) {
        uint64_t most = 10000 + UINT64_C(100) * worker->conn->hot->rel.record_count;
        uint64_t one = steps_for_many(worker, frame_kinds[i].put, 1), many = 0;
        for (n = 0; n < 5; n++)
            many = cci__max64(many, steps_for_many(worker, frame_kinds[i].put, UINT32_MAX));
        print_message("%s: %-16s %5u steps for one, %7u for 64 KB full of them\n", when, frame_kinds[i].name,
                      (unsigned)one, (unsigned)many);
        assert_true(one < most);
        worst = cci__max64(worst, many);
    }
    return worst;
}

static void a_packet_makes_bounded_work_whatever_is_in_it(void **state) {
    cci_rma_handle_t *handle, remote;
    static uint8_t large[1 << 20];
    cci_rma_handle_t *local;
    uint64_t worst;
    uint32_t i, n, attribute;
    (void)state;
    if (steps == 0)
        skip(); /* built without -fsanitize-coverage=trace-pc: nothing counts */
    memset(&remote, 1, sizeof remote);
    for (attribute = 0; attribute < 2; attribute++) {
        if (attribute) {
            (void)end(NULL);
            (void)begin(NULL);
        }
        sim.mtu = LARGE;
        message_limit = LARGE - 100;
        sim.inbox_bytes = 64u << 20;
        open_victim();
        insiders_connect(1, attribute ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
        worker = &insiders[0];
        assert_int_equal(cci_rma_register(victim, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle),
                         CCI_SUCCESS);
        cci_rma_parse_handle(handle, &writable_key, &writable_region);
        /* as much as can be is under way in both directions */
        assert_int_equal(cci_rma_register(victim, large, sizeof large, CCI_FLAG_READ | CCI_FLAG_WRITE, &local), CCI_SUCCESS);
        for (i = 0; i < 500; i++)
            assert_int_equal(cci_send(worker->pub, large, 1400, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        for (i = 0; i < 100; i++)
            assert_int_equal(cci_rma(worker->pub, NULL, 0, local, 0, &remote, 0, sizeof large, NULL, CCI_FLAG_WRITE),
                             CCI_SUCCESS);
        sim.delay_ns = 5 * CCI__MS;
        for (n = 0; n < 60 && worker->conn->hot->rel.record_count < 1500; n++) { /* it acknowledges until much is under way */
            uint8_t frames[16];
            (void)put_small(frames, CCI__FRAME_ACK, (uint32_t)worker->conn->hot->rel.next_number - 1,
                            worker->conn->hot->rel.next_number);
            insider_says(worker, frames, 16);
            run_ms(10);
        }
        (void)steps_for(worker, (const uint8_t *)"\10\0\0\0\0\0\0\0", 8); /* a PING: the answer is an ACK alone */
        run_ms(1);
        worst = measure(attribute ? "RU, packets under way" : "RO, packets under way", 5);
        for (n = 0; n < 600; n++) {
            uint8_t frames[4096];
            (void)steps_for(worker, frames, (uint32_t)(put_message(frames, 0, 5000 - 2 * n, 8) - frames));
            (void)steps_for(worker, frames, (uint32_t)(put_fragment(frames, 5001 + 2 * n, 0, 8, 1000) - frames));
        }
        assert_true(worker->conn->hot->rel.buffers_held > 200 && worker->conn->hot->rel.reassembly_count > 200);
        worst = cci__max64(worst, measure(attribute ? "RU, much held" : "RO, much held", UINT32_MAX));
        assert_true(worst < 3 * steps_for_many(worker, put_plain, UINT32_MAX));
    }
}

/* Steps of the most expensive round in which so many messages end, since their receiver was not ready until the time-out. */
static uint64_t steps_of_a_time_out(uint32_t count, uint8_t attribute) {
    static uint8_t large[1400];
    uint32_t timeout_us = 1000000, n;
    uint64_t worst = 0, before, answer_ns = 0;
    uint8_t frames[16];
    send_limit = 2048;
    open_victim();
    insiders_connect(1, attribute);
    assert_int_equal(cci_set_opt(insiders[0].pub, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    for (n = 0; n < count; n++)
        assert_int_equal(cci_send(insiders[0].pub, large, sizeof large, NULL, 0), CCI_SUCCESS);
    run_ms(1);
    while (sent_count < (int)count) {
        if (sim.now_ns >= answer_ns) { /* each try is answered: nothing was taken of all that was sent */
            (void)put_small(frames, CCI__FRAME_NACK, 0, 0);
            frames[1] = CCI_ERR_RNR;
            cci__store16(frames + 2, (uint32_t)insiders[0].conn->hot->rel.next_number - 1);
            insider_says(&insiders[0], frames, 8);
            answer_ns = sim.now_ns + CCI__MS;
        }
        before = steps;
        run(1);
        worst = cci__max64(worst, steps - before);
    }
    assert_int_equal(last_status, CCI_ERR_RNR);
    assert_int_equal(failed_count, count);
    return worst;
}

static void messages_that_end_together_make_work_for_each_and_not_for_each_pair(void **state) {
    static const uint32_t counts[] = {250, 2000};
    uint64_t work[2];
    uint32_t attribute, i;
    (void)state;
    if (steps == 0)
        skip(); /* built without -fsanitize-coverage=trace-pc: nothing counts */
    for (attribute = 0; attribute < 2; attribute++) {
        for (i = 0; i < 2; i++) {
            (void)end(NULL);
            (void)begin(NULL);
            work[i] = steps_of_a_time_out(counts[i], attribute ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
            print_message("%s: %u messages end in %llu steps\n", attribute ? "RU" : "RO", counts[i], (unsigned long long)work[i]);
        }
        assert_true(work[1] < 12 * work[0]); /* eight times as many */
    }
}

/* ---- somebody who can't see the traffic ---------------------------------------------------------------------------------- */

static uint64_t guess_state = 88172645463325252u;

static uint64_t guess(void) { /* the attacker's own chance */
    guess_state ^= guess_state << 13;
    guess_state ^= guess_state >> 7;
    guess_state ^= guess_state << 17;
    return guess_state;
}

static uint64_t connect_ms(void) { /* of an honest client, in virtual time */
    uint64_t begin_ns = sim.now_ns;
    int before = client_count;
    ask_for_connection(client, CCI_CONN_ATTR_RO);
    while (client_count == before && sim.now_ns - begin_ns < 60000 * CCI__MS)
        run(1);
    assert_int_equal(client_count, before + 1);
    return (sim.now_ns - begin_ns) / CCI__MS;
}

static void a_million_spoofed_requests_take_no_memory_and_honest_peers_still_connect(void **state) {
    uint8_t packet[CCI__REQUEST_SIZE + 1024];
    size_t flat = 0;
    uint64_t slowest = 0;
    uint32_t i;
    (void)state;
    open_both();
    for (i = 0; i < MILLIONS; i++) {
        uint32_t length = write_request(packet, (uint8_t)(i % 3), (uint32_t)guess(), guess(), i % 5 ? 0 : guess(),
                                        i % 7 ? 0 : 1 + i % 1024, 0, 0);
        inject(SPOOFED + i, packet, length);
        if (i % 50 == 0)
            run(1);
        if (i % (MILLIONS / 100) == MILLIONS / 200) {
            policy = i / 50000 % 2 ? REJECT_ALL : ACCEPT_ALL;
            run(10);
            policy = ACCEPT_ALL;
            slowest = cci__max64(slowest, connect_ms());
        }
        if (i == MILLIONS / 20)
            flat = memory_bytes;
        if (i > MILLIONS / 20)
            assert_true(memory_bytes == flat);
        assert_true(dgram_of(victim)->base.conns.unproven <= CCI__CONN_UNPROVEN);
    }
    drain();
    print_message("%u requests, %u connections at most, memory flat at %u KB; 100 honest clients connected in at most %u ms\n",
                  MILLIONS, dgram_of(victim)->base.conns.slab_count * CCI__CONN_SLAB, (unsigned)(flat / 1024), (unsigned)slowest);
    assert_int_equal(client_count, 100);
    assert_int_equal(refused_count, 0);
    assert_true(slowest < 2000);
    run_ms(40000); /* and what was half open is gone */
    assert_int_equal(dgram_of(victim)->base.conns.used, 100);
    assert_int_equal(dgram_of(victim)->base.conns.unproven, 0);
}

static void spoofed_requests_that_wait_leave_buffers_to_honest_peers(void **state) {
    uint8_t packet[CCI__REQUEST_SIZE];
    uint32_t i;
    (void)state;
    recv_limit = 64;
    open_both();
    policy = DECIDE_LATER; /* the program is slow */
    for (i = 0; i < 1000; i++)
        inject(SPOOFED + i, packet, write_request(packet, 0, i, guess(), 0, 0, 0, 0));
    drain();
    assert_true(undecided_count > 0);
    i = (uint32_t)undecided_count;
    policy = ACCEPT_ALL;
    assert_true(connect_ms() < 2000);
    while (i-- > 0) {
        assert_int_equal(cci_reject(undecided[i]), CCI_SUCCESS);
        assert_int_equal(cci_return_event(undecided[i]), CCI_SUCCESS);
    }
}

/* Somebody with addresses of his own begins requests in pieces and does not go on. */
static void requests_that_are_never_completed_do_not_keep_others_out(void **state) {
    uint8_t packet[CCI__REQUEST_SIZE + 1024], data[1000];
    cci_link_addr_t address;
    uint32_t i;
    char *uri;
    (void)state;
    base_limit = 256;
    open_both();
    memset(data, 'd', sizeof data);
    for (i = 0; i < 2000; i++) { /* the cookie is a good one */
        uint64_t token = guess();
        sim_make_address(&address, 1, SPOOFED + i % 3);
        inject(SPOOFED + i % 3, packet,
               write_request(packet, 0, i, token,
                             cci_conn_cookie(&dgram_of(victim)->base.conns, &address, i, token, dgram_of(victim)->base.conns.epoch), 1000, 200, 0));
        drain();
    }
    print_message("2,000 begun requests hold %u of %u buffers\n",
                  dgram_of(victim)->base.recv_buf_count - cci__dgram_buffers_left(dgram_of(victim), 0), dgram_of(victim)->base.recv_buf_count);
    assert_true(cci__dgram_buffers_left(dgram_of(victim), 0) > dgram_of(victim)->base.recv_buf_count / 2);
    assert_int_equal(cci_get_opt(victim, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, data, sizeof data, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    run_ms(1000);
    assert_int_equal(client_count, 1); /* in pieces too */
}

/* Everything that somebody can send in the names of addresses from `first` on. Returns the next that is unused. */
static uint32_t spoof_all(uint32_t first, const insider_t *insider) {
    uint8_t packet[CCI__REQUEST_SIZE + 1024];
    uint32_t type, length, kind, from = first;
    for (type = 0; type < 16; type++) {
        for (length = 0; length <= 200; length += length < 64 ? 1 : 13) {
            for (kind = 0; kind < 3; kind++, from++) {
                uint32_t i;
                for (i = 0; i < length; i++)
                    packet[i] = kind == 0 ? 0 : (uint8_t)guess();
                if (length >= 24) {
                    cci_conn_write_header(packet, (uint8_t)type, kind == 1 ? (uint8_t)guess() : 0, (uint32_t)guess() % 600,
                                          guess(), (uint32_t)guess() % 600, (uint32_t)guess());
                    if (insider && kind == 2) /* the index exists, the token does not */
                        cci__store32(packet + 4, insider->conn->conn.index);
                }
                inject(from, packet, length);
            }
        }
        drain();
    }
    for (kind = 0; kind < 40; kind++, from++) { /* requests: whole, in pieces, again and again */
        uint64_t token = guess();
        uint32_t again;
        for (again = 0; again < 1 + kind % 5; again++) {
            uint32_t data_len = kind % 4 ? kind * 25 : 0, unit = kind % 3 ? 0 : 64, offset = 0;
            do {
                length = write_request(packet, (uint8_t)(kind % 3), kind, token, 0, data_len, unit, offset);
                if (kind % 5 == 4) { /* for a service that is not here */
                    packet[3] |= CCI__HEADER_NAMED;
                    cci__store64(packet + 40, token | CCI__NAME_PORTS);
                }
                inject(from, packet, length);
                offset += unit;
            } while (unit && offset < data_len);
        }
        drain();
    }
    return from;
}

static void check_accounts(uint32_t end_of_spoofed, const char *when) {
    uint32_t i, worst = 0;
    for (i = 1000; i < end_of_spoofed - SPOOFED; i++) {
        if (bytes_to[i] > bytes_from[i])
            fail_msg("%s: address %u got %u bytes for %u", when, i, bytes_to[i], bytes_from[i]);
        if (bytes_from[i])
            worst = cci__max32(worst, bytes_to[i] * 100 / bytes_from[i]);
    }
    print_message("%s: at most %u %% goes back\n", when, worst);
}

static void nobody_gets_more_bytes_than_came_in_its_name_before_its_address_is_proven(void **state) {
    uint32_t from = SPOOFED + 1000, i;
    uint8_t packet[CCI__REQUEST_SIZE];
    insider_t insider;
    (void)state;
    open_both();
    from = spoof_all(from, NULL);
    check_accounts(from, "no connections");
    insider_connect(&insider, SPOOFED, CCI_CONN_ATTR_RO);
    from = spoof_all(from, &insider);
    check_accounts(from, "beside a connection");
    policy = REJECT_ALL;
    from = spoof_all(from, &insider);
    check_accounts(from, "requests rejected");
    policy = DECIDE_LATER;
    from = spoof_all(from, &insider);
    check_accounts(from, "requests not decided");
    policy = ACCEPT_ALL;
    for (i = 0; i < CCI__CONN_UNPROVEN; i++, from++)
        inject(from, packet, write_request(packet, 0, i, guess(), 0, 0, 0, 0));
    drain();
    for (i = 0; i < (uint32_t)undecided_count; i++) {
        assert_int_equal(i & 1 ? cci_accept(undecided[i], NULL) : cci_reject(undecided[i]), CCI_SUCCESS);
        assert_int_equal(cci_return_event(undecided[i]), CCI_SUCCESS);
    }
    from = spoof_all(from, &insider);
    check_accounts(from, "under load, cookies");
    run_ms(120000); /* nothing is repeated on its own */
    check_accounts(from, "two minutes later");
    assert_true(packets_of_type[CCI__PKT_COOKIE] > 100); /* each kind of answer was given */
    assert_true(packets_of_type[CCI__PKT_ACCEPT] > 100);
    assert_true(packets_of_type[CCI__PKT_REJECT] > 20);
    assert_true(packets_of_type[CCI__PKT_RESET] > 100);
    assert_true(packets_of_type[CCI__PKT_NOT_HERE] > 20);
}

/* A group has no tokens: whoever sends to it must not make all its members answer. */
static void a_group_answers_nothing(void **state) {
    uint8_t frames[64], *at = frames;
    uint64_t sent;
    (void)state;
    open_victim();
    assert_int_equal(cci_connect(victim, "sim://g7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL), CCI_SUCCESS);
    run_until(&client_count, 1);
    at = put_small(at, CCI__FRAME_PING, 0, 0);
    at = put_small(at, CCI__FRAME_CHALLENGE, 0, 1);
    at = put_message(at, 0, 0, 8);
    sent = sim.sent_count;
    group_says(SPOOFED, frames, (uint32_t)(at - frames));
    drain();
    cci__dgram_make_ready(dgram_of(victim), dconn_of(at_client)->hot); /* whatever may make it so */
    run_ms(1000);
    assert_int_equal(sim.sent_count, sent);
}

static uint32_t bits_that_vary(const uint64_t *values, uint32_t count) {
    uint32_t bit, i, good = 0;
    for (bit = 0; bit < 64; bit++) {
        uint32_t ones = 0;
        for (i = 0; i < count; i++)
            ones += (uint32_t)(values[i] >> bit & 1);
        good += ones > count * 2 / 5 && ones < count * 3 / 5;
    }
    return good;
}

static int compare64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

#define TOKENS 50000u

/* Tokens of connections, keys of registrations and challenges that an endpoint makes with this seed. */
static void make_secrets(uint8_t seed, uint64_t *values, uint32_t count) {
    uint32_t i;
    random_seed = seed;
    random_calls = random_bytes = 0;
    open_victim();
    assert_int_equal(random_calls, 1);
    assert_true(random_bytes >= 32); /* two keys of 128 bits */
    for (i = 0; i < count; i++) {
        if (i % 2) {
            cci_rma_region_t *region = cci_rma_add(&dgram_of(victim)->rma, memory, 8, 0);
            values[i] = region->key;
            cci_rma_remove(&dgram_of(victim)->rma, region);
        } else {
            cci__dconn_t *conn = cci__dgram_open_conn(dgram_of(victim), CCI_CONN_ATTR_RO, NULL);
            values[i] = conn->conn.token;
            conn->conn.state = CCI_CONN_CONNECTING;
            cci__dgram_close_conn(dgram_of(victim), conn);
        }
    }
    assert_int_equal(cci_destroy_endpoint(victim), CCI_SUCCESS);
    victim = NULL;
}

static void tokens_and_keys_are_64_distinct_bits_from_the_secure_source(void **state) {
    static uint64_t first[TOKENS], second[TOKENS], again[TOKENS];
    uint32_t i, seed, same = 0;
    (void)state;
    make_secrets(0, first, TOKENS);
    make_secrets(0, again, TOKENS);
    assert_memory_equal(first, again, sizeof first); /* they come from the random hook and from nothing else */
    assert_true(bits_that_vary(first, TOKENS) >= 63); /* keys of registrations are odd: 0 is none */
    for (seed = 1; seed < 255; seed += 37) { /* each of 256 bits of the source changes all of them */
        make_secrets((uint8_t)seed, second, TOKENS / 10);
        for (i = seed < 128 ? 0 : 1; i < TOKENS / 10; i += 2)
            same += first[i] == second[i];
    }
    assert_int_equal(same, 0);
    qsort(first, TOKENS, sizeof first[0], compare64);
    for (i = 1; i < TOKENS; i++)
        assert_true(first[i] != first[i - 1]);
    random_seed = 0;
}

/* Gives the endpoint a datagram as if the link had received it. */
static void feed(cci_endpoint_t *endpoint, uint32_t number, const uint8_t *bytes, uint32_t length) {
    cci__dgram_t *ep = dgram_of(endpoint);
    cci_link_rx_t rx = ep->rx[0];
    sim_make_address(&rx.from, 1, number);
    rx.is_group = 0;
    ep->current = ep->rx_buffer[0];
    memcpy(ep->current->data, bytes, length);
    cci__dgram_input(ep, &rx, ep->current->data, length);
    assert_int_equal(ep->current->refs, 1); /* nothing keeps it */
    ep->current = NULL;
}

static void ten_million_guesses_are_dropped_and_counted_and_have_no_effect(void **state) {
    static const uint8_t types[] = {CCI__PKT_DATA, CCI__PKT_CONFIRM, CCI__PKT_RESET, CCI__PKT_ACCEPT,
                                    CCI__PKT_REJECT, CCI__PKT_COOKIE, CCI__PKT_CONFIRMED, CCI__PKT_CLOSE,
                                    CCI__PKT_CLOSED, CCI__PKT_BUSY, CCI__PKT_NOT_HERE};
    cci__dconn_t before_victim, before_client;
    cci__dgram_t *ep;
    cci_rel_t before_rel;
    uint8_t packet[128];
    uint64_t strays, malformed;
    uint32_t i, round;
    (void)state;
    open_both();
    connect_to_victim(CCI_CONN_ATTR_RO);
    both_ways();
    drain();
    run_ms(100);
    before_victim = *dconn_of(at_victim);
    before_client = *dconn_of(at_client);
    before_rel = dconn_of(at_victim)->hot->rel;
    for (round = 0; round < 2; round++) { /* at the side that accepted, and at the one that connected */
        cci_endpoint_t *target = round ? client : victim;
        const cci_conn_t *conn = &dconn_of(round ? at_client : at_victim)->conn;
        ep = dgram_of(target);
        strays = ep->unmatched;
        malformed = ep->pool.packets_malformed;
        for (i = 0; i < 5 * MILLIONS; i++) {
            uint8_t type = types[i % sizeof types];
            uint64_t token = guess();
            memset(packet, 0, sizeof packet);
            if (i % 16 == 0) /* the closest that a guess can be: one bit of the real one is wrong */
                token = (type == CCI__PKT_RESET ? conn->peer_token : conn->token) ^ UINT64_C(1) << i / 16 % 64;
            cci_conn_write_header(packet, type, 0, conn->index, token, conn->peer_index, i);
            (void)put_message(packet + CCI__HEADER_SIZE, 0, 0, 16);
            feed(target, number_of(&conn->peer), packet, 48);
            if (i % 1000 == 0)
                cci__dgram_flush(ep);
        }
        cci__dgram_flush(ep);
        assert_int_equal(ep->unmatched - strays, 5 * MILLIONS);
        assert_int_equal(ep->pool.packets_malformed, malformed);
    }
    assert_memory_equal(&before_victim, dconn_of(at_victim), sizeof before_victim);
    assert_memory_equal(&before_client, dconn_of(at_client), sizeof before_client);
    assert_memory_equal(&before_rel, &dconn_of(at_victim)->hot->rel, sizeof before_rel);
    both_ways();
}

static void millions_of_guesses_at_a_key_read_and_write_nothing(void **state) {
    static uint8_t target[4096];
    cci_rma_handle_t *handle;
    insider_t insider;
    uint8_t packet[256], *at;
    uint64_t key;
    uint32_t i, region, denied = 0;
    (void)state;
    open_victim();
    insider_connect(&insider, SPOOFED, CCI_CONN_ATTR_RO);
    memset(target, 0x77, sizeof target);
    assert_int_equal(cci_rma_register(victim, target, sizeof target, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    cci_rma_parse_handle(handle, &key, &region);
    for (i = 0; i < MILLIONS; i++) {
        uint64_t wrong = i % 16 ? guess() : key ^ UINT64_C(1) << i / 16 % 64;
        cci_conn_write_header(packet, CCI__PKT_DATA, 0, insider.conn->conn.index, insider.conn->conn.token, 7, insider.next);
        at = packet + CCI__HEADER_SIZE;
        if (i % 3 == 0) { /* what is not taken is not counted as seen: the number may be used again */
            at = put_bulk(at, 0, wrong, region, 0, 0, 8, 8);
        } else if (i % 3 == 1) {
            at = put_bulk(at, 0, wrong, region, 0, 0, 8, 4096);
        } else {
            at = put_read(at, i, wrong, region, 0, 100, 100, 1);
            insider.next++;
        }
        denied++;
        feed(victim, insider.number, packet, (uint32_t)(at - packet));
        if (i % 100 == 0)
            run(1);
    }
    assert_int_equal(dgram_of(victim)->rma.denied, denied);
    for (i = 0; i < sizeof target; i++)
        assert_int_equal(target[i], 0x77);
    cci_conn_write_header(packet, CCI__PKT_DATA, 0, insider.conn->conn.index, insider.conn->conn.token, 7, insider.next++);
    at = put_bulk(packet + CCI__HEADER_SIZE, 0, key, region, 0, 0, 8, 4096); /* with the right one it would have worked */
    feed(victim, insider.number, packet, (uint32_t)(at - packet));
    assert_int_equal(target[0], 'h');
}

/* What the victim last answered, without what differs between any two packets: its number. */
static uint32_t answer_to(insider_t *insider, const uint8_t *frames, uint32_t length, uint8_t *answer) {
    last_length = 0;
    insider_says(insider, frames, length);
    drain();
    run_ms(20);
    assert_true(last_length >= CCI__HEADER_SIZE);
    memcpy(answer, last_packet, last_length);
    memset(answer + 20, 0, 4);
    return last_length;
}

/* Who guesses learns from a refusal nothing but that it is one: not that the key or the index was right. */
static void a_refusal_does_not_tell_what_was_wrong(void **state) {
    static uint8_t target[4096];
    cci_rma_handle_t *handle;
    insider_t insider;
    uint8_t frames[256], first[2][CCI_REL_HEAD], answer[CCI_REL_HEAD];
    uint32_t region, kind, is_read, first_length[2] = {0, 0};
    uint64_t key;
    (void)state;
    open_victim();
    assert_int_equal(cci_rma_register(victim, target, sizeof target, 0, &handle), CCI_SUCCESS);
    cci_rma_parse_handle(handle, &key, &region);
    insider_connect(&insider, SPOOFED, CCI_CONN_ATTR_RO);
    for (kind = 0; kind < 6; kind++) {
        uint64_t tried = kind == 0 ? key : kind == 1 ? key ^ 2 : kind == 2 ? ~key : key; /* all of them without the right */
        uint32_t place = kind == 3 ? region + 1 : kind == 4 ? UINT32_MAX : region;
        uint64_t offset = kind == 5 ? UINT64_MAX - 4 : 0;
        for (is_read = 0; is_read < 2; is_read++) {
            uint32_t size = is_read ? (uint32_t)(put_read(frames, 3, tried, place, offset, 64, 64, 1) - frames)
                                    : (uint32_t)(put_bulk(frames, 0, tried, place, offset, 0, 8, 8) - frames);
            uint32_t length = answer_to(&insider, frames, size, answer);
            if (kind == 0) {
                memcpy(first[is_read], answer, length);
                first_length[is_read] = length;
            }
            assert_int_equal(length, first_length[is_read]);
            assert_memory_equal(answer, first[is_read], length);
            if (!is_read)
                insider.next--; /* what was refused is not counted as seen */
        }
    }
    for (kind = 0; kind < 4; kind++) { /* and a packet's index, or its token, or both, are wrong: the same RESET */
        uint8_t packet[CCI__HEADER_SIZE + 8] = {0};
        uint32_t index = insider.conn->conn.index + (kind & 1 ? 1 : 0) + (kind & 2 ? 5000 : 0);
        cci_conn_write_header(packet, CCI__PKT_DATA, 0, index, insider.conn->conn.token + 1, 7, 0);
        packet[CCI__HEADER_SIZE] = CCI__FRAME_PING;
        last_length = 0;
        inject(SPOOFED + 1, packet, sizeof packet);
        drain();
        assert_int_equal(last_length, CCI__HEADER_SIZE);
        assert_int_equal(last_packet[1], CCI__PKT_RESET);
        memset(last_packet + 16, 0, 4); /* it names the index that was asked for */
        if (kind == 0)
            memcpy(answer, last_packet, last_length);
        assert_memory_equal(answer, last_packet, last_length);
    }
}

/* Virtual time in which the client sends so many messages and the victim answers each tenth; every round the attacker sends
 * forged packets in anybody's name to both. */
static uint64_t exchange_us(int messages, uint32_t forged_per_round) {
    static const uint8_t types[] = {CCI__PKT_RESET, CCI__PKT_DATA, CCI__PKT_CONFIRM, CCI__PKT_REJECT, CCI__PKT_ACCEPT,
                                    CCI__PKT_COOKIE, CCI__PKT_CONFIRMED, CCI__PKT_REQUEST, CCI__PKT_CLOSE,
                                    CCI__PKT_CLOSED, CCI__PKT_BUSY, CCI__PKT_NOT_HERE};
    static uint8_t bytes[1000];
    uint8_t packet[256], *at;
    uint64_t begin_ns = sim.now_ns;
    int issued = 0, done = received_count + messages;
    uint32_t i;
    memset(bytes, 'm', sizeof bytes);
    while (received_count < done) {
        assert_true(sim.now_ns - begin_ns < 2000 * CCI__MS); /* else it is dead */
        while (issued < messages && issued - (messages - (done - received_count)) < 30 &&
               cci_send(at_client, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS)
            issued++;
        for (i = 0; i < forged_per_round; i++) { /* numbers are easy to guess: these could not be better */
            int to_client = (int)(i & 1);
            const cci__dconn_t *at_end = dconn_of(to_client ? at_client : at_victim);
            const cci_conn_t *conn = &at_end->conn;
            const cci_rel_t *rel = at_end->hot ? &at_end->hot->rel : NULL;
            uint32_t number = (rel && rel->number_count ? (uint32_t)rel->numbers[0].hi : 0) + (uint32_t)guess() % 4;
            uint32_t sequence = (rel ? (uint32_t)rel->expected : 0) + (uint32_t)guess() % 4;
            memset(packet, 0, sizeof packet);
            cci_conn_write_header(packet, types[guess() % sizeof types], 0, conn->index, guess(), conn->peer_index, number);
            at = packet + CCI__HEADER_SIZE;
            switch (guess() % 4) {
            case 0:
                at = put_small(at, CCI__FRAME_ACK, rel ? (uint32_t)rel->next_number - 1 : 0, 1);
                break;
            case 1:
                at = put_small(at, CCI__FRAME_NACK, rel ? (uint32_t)rel->next_sequence - 1 : 0, 0);
                break;
            case 2:
                at = put_small(at, CCI__FRAME_VOID, sequence, 1);
                break;
            default:
                at = put_message(at, 0, sequence, 8);
                break;
            }
            sim_inject(guess() % 2 ? number_of(&conn->peer) : SPOOFED + (uint32_t)guess() % 1000,
                       sim_of(to_client ? client : victim)->number, packet, (uint32_t)(at - packet));
        }
        run(1);
    }
    assert_int_equal(received_first, 'm');
    return (sim.now_ns - begin_ns) / 1000;
}

static void a_flood_of_forged_packets_does_not_reset_slow_or_inject_into_a_connection(void **state) {
    uint64_t quiet_us, flooded_us, retransmitted;
    (void)state;
    open_both();
    sim.delay_ns = CCI__MS;
    connect_to_victim(CCI_CONN_ATTR_RO);
    (void)exchange_us(3000, 0);
    quiet_us = exchange_us(3000, 0);
    retransmitted = dgram_of(client)->pool.retransmitted;
    flooded_us = exchange_us(3000, 6);
    print_message("3,000 messages in %u us, under the flood in %u us of virtual time; %u forged packets were counted\n",
                  (unsigned)quiet_us, (unsigned)flooded_us, (unsigned)(dgram_of(victim)->unmatched + dgram_of(client)->unmatched));
    assert_true(flooded_us < quiet_us * 5 / 4); /* taking a forged packet costs some of this time */
    assert_int_equal(dgram_of(client)->pool.retransmitted, retransmitted);
    assert_int_equal(received_count, 9000);
    assert_int_equal(failed_count, 0);
    assert_true(dgram_of(victim)->unmatched > 3000 / 30);
    both_ways();
}

/* A client whose request the victim's program has not decided upon; its connection. */
static cci__dconn_t *leave_a_client_waiting(void) {
    open_both();
    policy = DECIDE_LATER;
    ask_for_connection(client, CCI_CONN_ATTR_RO);
    while (undecided_count == 0)
        run(1);
    return (cci__dconn_t *)(void *)cci_conn_at(&dgram_of(client)->base.conns, 0);
}

static void forged_answers_do_not_touch_a_connecting_client(void **state) {
    static const uint8_t types[] = {CCI__PKT_REJECT, CCI__PKT_COOKIE, CCI__PKT_ACCEPT, CCI__PKT_RESET};
    uint8_t packet[CCI__ACCEPT_SIZE];
    uint64_t sent;
    uint32_t i;
    cci__dconn_t *conn;
    (void)state;
    conn = leave_a_client_waiting();
    assert_int_equal(conn->conn.state, CCI_CONN_CONNECTING);
    sent = sim.sent_count;
    for (i = 0; i < MILLIONS; i++) { /* in the server's name */
        uint8_t type = types[i % 4];
        memset(packet, 0, sizeof packet);
        cci_conn_write_header(packet, type, 0, 0, i % 16 < 4 ? conn->conn.token ^ UINT64_C(1) << i / 16 % 64 : guess(), 0, 0);
        cci__store64(packet + 24, guess());
        cci__store32(packet + 32, 1000);
        cci__store32(packet + 36, 65536); /* all is sound but the token */
        feed(client, sim_of(victim)->number, packet, sizeof packet);
        if (i % 1000 == 0)
            cci__dgram_flush(dgram_of(client));
    }
    assert_true(sim.sent_count - sent <= CCI__CONN_RESETS); /* resets; a cookie would have been a request */
    assert_int_equal(dgram_of(client)->unmatched, MILLIONS);
    assert_int_equal(conn->conn.state, CCI_CONN_CONNECTING);
    assert_int_equal(conn->conn.peer_token, 0);
    assert_int_equal(cci_accept(undecided[0], NULL), CCI_SUCCESS);
    assert_int_equal(cci_return_event(undecided[0]), CCI_SUCCESS);
    run_until(&client_count, 1);
    assert_int_equal(refused_count, 0);
}

/* A client that seeks a service by name, and where it may ask; all that it sends is accounted for. */
static cci__dconn_t *let_a_client_seek(cci_conn_name_t *name) {
    open_both();
    victim_handle = dgram_of(client)->base.handle;
    assert_int_equal(cci_conn_hash_name("storage", name), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, "sim://host/storage", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    return (cci__dconn_t *)(void *)cci_conn_at(&dgram_of(client)->base.conns, 0);
}

/* What an attacker says to it: NOT_HERE, BUSY or COOKIE, in the name of each place of the service and of others. `token` is the
 * request's, for one who has seen it: the server of another name that was asked, say. */
static void answer_forged(uint32_t i, const cci_conn_name_t *name, uint64_t token) {
    static const uint8_t types[] = {CCI__PKT_NOT_HERE, CCI__PKT_NOT_HERE, CCI__PKT_BUSY, CCI__PKT_COOKIE};
    uint8_t packet[CCI__HEADER_SIZE];
    cci_conn_write_header(packet, types[i % 4], 0, 0, token, 0, 0);
    cci__store64(packet + 16, i % 16 < 12 ? name->id | i / 16 % 8 : guess());
    feed(client, i % 3 ? SPOOFED + i % 1000 : name->ports[i % 8], packet, sizeof packet);
    cci__dgram_flush(dgram_of(client));
}

static void who_says_not_here_neither_ends_a_request_nor_sends_it_to_others(void **state) {
    uint64_t quiet, requests, until_ns;
    cci_conn_name_t name;
    cci__dconn_t *conn;
    uint32_t i;
    (void)state;
    conn = let_a_client_seek(&name);
    run_ms(2000);
    quiet = packets_of_type[CCI__PKT_REQUEST];
    assert_true(quiet >= 8);
    for (i = 0; i < MILLIONS / 10; i++) /* without the token it is nothing */
        answer_forged(i, &name, guess());
    assert_int_equal(packets_of_type[CCI__PKT_REQUEST], quiet);
    assert_int_equal(dgram_of(client)->unmatched, MILLIONS / 10);
    memset(packets_of_type, 0, sizeof packets_of_type);
    memset(packets_to, 0, sizeof packets_to);
    until_ns = sim.now_ns + 2000 * CCI__MS;
    for (i = 0; sim.now_ns < until_ns; i++) {
        answer_forged(i, &name, conn->conn.token);
        if (i % 16 == 15)
            run(1);
    }
    requests = packets_of_type[CCI__PKT_REQUEST];
    print_message("a client that seeks sent %u requests in 2 s, and %u while %u answers were forged\n", (unsigned)quiet,
                  (unsigned)requests, (unsigned)i);
    for (i = 0; i < 8; i++)
        requests -= packets_to[name.ports[i]];
    assert_int_equal(requests, 0); /* they went to the places of the service alone */
    assert_true(packets_of_type[CCI__PKT_REQUEST] <= 3 * quiet);
    assert_int_equal(refused_count + client_count, 0);
    assert_int_equal(conn->conn.state, CCI_CONN_CONNECTING);
    assert_int_equal(cci_create_endpoint_at(NULL, "storage", 0, &other, NULL), CCI_SUCCESS);
    run_until(&client_count, 1);
    run_until(&accepted_count, 1);
    assert_ptr_equal(at_victim->endpoint, other);
}

/* A server that offers longer messages than were asked for would have the client send what does not fit. */
static void an_answer_that_allows_longer_messages_than_were_asked_for_is_ignored(void **state) {
    uint8_t packet[CCI__ACCEPT_SIZE];
    uint32_t most, i;
    cci__dconn_t *conn;
    (void)state;
    conn = leave_a_client_waiting();
    most = conn->conn.pub.max_send_size;
    for (i = 0; i < 2; i++) { /* one byte more, and as many as can be written down */
        memset(packet, 0, sizeof packet);
        cci_conn_write_header(packet, CCI__PKT_ACCEPT, 0, 0, conn->conn.token, 0, 0);
        cci__store64(packet + 24, guess());
        cci__store32(packet + 32, i == 0 ? most + 1 : UINT32_MAX);
        cci__store32(packet + 36, 65536);
        feed(client, sim_of(victim)->number, packet, sizeof packet);
        assert_int_equal(conn->conn.state, CCI_CONN_CONNECTING);
        assert_int_equal(conn->conn.peer_token, 0);
        assert_int_equal(conn->conn.pub.max_send_size, most);
    }
    cci__store32(packet + 32, most); /* it is the size alone that was wrong */
    feed(client, sim_of(victim)->number, packet, sizeof packet);
    assert_int_equal(conn->conn.state, CCI_CONN_OPEN);
    assert_int_equal(conn->conn.pub.max_send_size, most);
}

#define CHAINED 65536u

/* The longest chain of a table in which the attacker chose everything that he can choose. */
static uint32_t longest_chain(uint64_t secret, uint32_t pattern, const cci_conn_table_t *known) {
    static uint8_t *slabs[CCI__CONN_SLABS];
    static uint32_t buckets[CHAINED * 2];
    cci_conn_table_t table;
    uint64_t key[2];
    uint32_t i, made, longest = 0;
    key[0] = secret * UINT64_C(0x9e3779b97f4a7c15);
    key[1] = ~secret;
    cci_conn_table_init(&table, key, sizeof(cci_conn_t), slabs);
    (void)cci_conn_rehash(&table, buckets, CHAINED * 2);
    for (i = 0; i < CHAINED / CCI__CONN_SLAB; i++) {
        slabs[i] = (uint8_t *)malloc(CCI__CONN_SLAB * sizeof(cci_conn_t));
        assert_non_null(slabs[i]);
        cci_conn_add_slab(&table, slabs[i]);
    }
    for (i = made = 0; made < (known ? 512 : CHAINED); i++) {
        cci_link_addr_t from;
        uint32_t index = pattern == 0 ? i : 0, number = pattern == 1 ? i : 1;
        uint64_t token = pattern == 2 ? (uint64_t)i << 32 : pattern == 3 ? (uint64_t)i * CHAINED * 2 : 5;
        cci_conn_t *conn;
        sim_make_address(&from, 1, number);
        if (known) { /* all that fall into 16 buckets of a table whose key the attacker does know */
            cci_conn_table_t copy = *known;
            token = i;
            if ((uint32_t)(cci_conn_bucket(&copy, &from, index, token) - copy.buckets) >= 16)
                continue;
        }
        conn = cci_conn_open(&table);
        conn->state = CCI_CONN_REQUESTED;
        conn->peer = from;
        conn->peer_index = index;
        conn->peer_token = token;
        cci_conn_hash(&table, conn);
        made++;
    }
    for (i = 0; i < table.bucket_count; i++) {
        uint32_t at = table.buckets[i], length = 0;
        for (; at != CCI__CONN_NONE; at = cci_conn_at(&table, at)->next)
            length++;
        longest = cci__max32(longest, length);
    }
    for (i = 0; i < CHAINED / CCI__CONN_SLAB; i++)
        free(slabs[i]);
    return longest;
}

static void chosen_addresses_indices_and_tokens_make_no_long_chains(void **state) {
    static uint32_t buckets[CHAINED * 2];
    cci_conn_table_t known;
    uint64_t key[2] = {1, 2};
    uint32_t pattern, worst = 0;
    (void)state;
    cci_conn_table_init(&known, key, sizeof(cci_conn_t), NULL);
    known.buckets = buckets;
    known.bucket_count = CHAINED * 2;
    for (pattern = 0; pattern < 4; pattern++)
        worst = cci__max32(worst, longest_chain(pattern + 77, pattern, NULL));
    worst = cci__max32(worst, longest_chain(99, 4, &known));
    print_message("the longest chain of %u chosen requests is %u\n", CHAINED, worst);
    assert_true(worst <= 12); /* as by chance: the load is one half */
}

/* ---- memory that was not offered ------------------------------------------------------------------------------------------ */

#define SHEET 4096u
#define OFFERED 1024u

static uint8_t sheet[3 * SHEET]; /* what is offered lies in the middle of it */
static insider_t reader;

/* Lets the insider write 8 bytes of a write of `total` in each of the three ways; whether any of it was taken. */
static int write_is_taken(uint64_t key, uint32_t region, uint64_t remote_offset, uint64_t offset, uint32_t length,
                          uint64_t total) {
    uint64_t denied = dgram_of(victim)->rma.denied, expected = reader.conn->hot ? reader.conn->hot->rel.expected : 0;
    uint32_t parts = reader.conn->hot ? reader.conn->hot->rel.reassembly_count : 0;
    uint8_t frames[256];
    insider_says(&reader, frames, (uint32_t)(put_bulk(frames, (uint32_t)expected, key, region, remote_offset, offset, length,
                                                      total) - frames));
    drain();
    return dgram_of(victim)->rma.denied == denied &&
           (reader.conn->hot->rel.expected != expected || reader.conn->hot->rel.reassembly_count != parts);
}

/* Whether a read of `length` bytes is answered. */
static int read_is_answered(uint64_t key, uint32_t region, uint64_t offset, uint32_t length) {
    uint64_t denied = dgram_of(victim)->rma.denied;
    uint32_t before = bytes_to[reader.number - SPOOFED];
    uint8_t frames[48];
    (void)put_read(frames, 1, key, region, offset, length, 64, 1);
    insider_says(&reader, frames, sizeof frames);
    drain();
    return dgram_of(victim)->rma.denied == denied && bytes_to[reader.number - SPOOFED] >= before + cci__min32(length, 64);
}

static int outside_is_untouched(void) {
    uint32_t i;
    for (i = 0; i < sizeof sheet; i++)
        if ((i < SHEET || i >= SHEET + OFFERED) && sheet[i] != 0x77)
            return 0;
    return 1;
}

/* A fresh connection, so that nothing of the last attempt is left. */
static void read_anew(uint8_t attribute) {
    static uint32_t number = SPOOFED;
    if (reader.conn && reader.conn->conn.state == CCI_CONN_OPEN)
        assert_int_equal(cci_disconnect(reader.pub), CCI_SUCCESS);
    number = SPOOFED + (number - SPOOFED + 1) % 100000;
    insider_connect(&reader, number, attribute);
}

static void a_peer_touches_nothing_outside_what_was_registered_for_it(void **state) {
    static const uint64_t offsets[] = {0, 1, 8, OFFERED - 9, OFFERED - 8, OFFERED - 7, OFFERED - 1, OFFERED, OFFERED + 1,
                                       SHEET, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(1) << 32,
                                       UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX - SHEET, UINT64_MAX - 8,
                                       UINT64_MAX - 7, UINT64_MAX - 1, UINT64_MAX};
    static const uint64_t totals[] = {1, 7, 8, 9, OFFERED - 1, OFFERED, OFFERED + 1, SHEET, UINT64_C(1) << 32,
                                      UINT64_MAX / 2, UINT64_MAX - OFFERED, UINT64_MAX - 1, UINT64_MAX};
    static const int rights[] = {0, CCI_FLAG_READ, CCI_FLAG_WRITE, CCI_FLAG_READ | CCI_FLAG_WRITE};
    const uint32_t offset_count = sizeof offsets / sizeof offsets[0], total_count = sizeof totals / sizeof totals[0];
    uint32_t right, i, j, k, region, tried = 0, taken = 0;
    cci_rma_handle_t *handle;
    uint64_t key;
    (void)state;
    open_victim();
    memset(&reader, 0, sizeof reader);
    for (right = 0; right < 4; right++) {
        memset(sheet, 0x77, sizeof sheet);
        assert_int_equal(cci_rma_register(victim, sheet + SHEET, OFFERED, rights[right], &handle), CCI_SUCCESS);
        cci_rma_parse_handle(handle, &key, &region);
        for (i = 0; i < offset_count; i++) {
            for (j = 0; j < total_count; j++) {
                int may = totals[j] <= OFFERED && offsets[i] <= OFFERED - totals[j]; /* offset and length of the target */
                read_anew((uint8_t)(tried % 2));
                if (totals[j] <= 60000) {
                    uint32_t length = (uint32_t)cci__min64(totals[j], 4000);
                    assert_int_equal(read_is_answered(key, region, offsets[i], length),
                                     may && (rights[right] & CCI_FLAG_READ) != 0);
                    tried++;
                }
                for (k = 0; k < offset_count; k += right ? 1 : 7) { /* the piece's place in it */
                    uint32_t length = (uint32_t)cci__min64(totals[j], 8);
                    int sound = offsets[k] <= totals[j] && length <= totals[j] - offsets[k];
                    int good = write_is_taken(key, region, offsets[i], offsets[k], length, totals[j]);
                    tried++;
                    taken += (uint32_t)good;
                    if (good && !(may && sound && (rights[right] & CCI_FLAG_WRITE)))
                        fail_msg("a write of %u at %llu of %llu at %llu was taken", length, (unsigned long long)offsets[k],
                                 (unsigned long long)totals[j], (unsigned long long)offsets[i]);
                    if (k == 0 && may && (rights[right] & CCI_FLAG_WRITE))
                        assert_true(good); /* the test can tell */
                }
            }
            assert_true(outside_is_untouched());
        }
        assert_int_equal(cci_rma_deregister(victim, handle), CCI_SUCCESS);
    }
    print_message("%u accesses at the edges of what is offered, %u of them within it\n", tried, taken);
}

static void a_handle_of_another_endpoint_or_one_that_is_gone_opens_nothing(void **state) {
    cci_rma_handle_t *handle, *others, *next;
    uint64_t key, other_key, next_key;
    uint32_t region, other_region, next_region, round, i;
    (void)state;
    open_both();
    memset(&reader, 0, sizeof reader);
    memset(sheet, 0x77, sizeof sheet);
    assert_int_equal(cci_rma_register(victim, sheet + SHEET, OFFERED, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    random_seed = 200; /* of the other endpoint: a seed of its own, as from a real source */
    assert_int_equal(cci_create_endpoint(NULL, 0, &other, NULL), CCI_SUCCESS);
    random_seed = 0;
    assert_int_equal(cci_rma_register(other, sheet, SHEET, CCI_FLAG_READ | CCI_FLAG_WRITE, &others), CCI_SUCCESS);
    cci_rma_parse_handle(handle, &key, &region);
    cci_rma_parse_handle(others, &other_key, &other_region);
    read_anew(CCI_CONN_ATTR_RO);
    assert_false(write_is_taken(other_key, other_region, 0, 0, 8, 8));
    assert_false(read_is_answered(other_key, other_region, 0, 8));
    for (i = 0; i < 64; i++) { /* the right key at the wrong place, and no key */
        assert_false(write_is_taken(key, region ^ 1u << i % 32, 0, 0, 8, 8));
        assert_false(read_is_answered(key, region ^ 1u << i % 32, 0, 8));
        assert_false(write_is_taken(0, i, 0, 0, 8, 8));
    }
    for (round = 0; round < 50; round++) { /* deregistered in the middle of a write and of a read, and the place used again */
        uint8_t frames[256], byte = (uint8_t)('A' + round % 26);
        read_anew((uint8_t)(round % 2));
        assert_true(write_is_taken(key, region, 0, 0, 8, OFFERED));
        (void)put_read(frames, 1, key, region, 0, OFFERED, 64, 0xffff);
        insider_says(&reader, frames, 48);
        sim_advance_to(sim.now_ns + sim.delay_ns + 1);
        assert_int_equal(cci__dgram_receive(dgram_of(victim), 1), 1);
        assert_int_equal(reader.conn->hot->reader->request_count, 1);
        assert_int_equal(cci_rma_deregister(victim, handle), CCI_SUCCESS);
        assert_int_equal(cci_rma_register(victim, sheet + SHEET, OFFERED, CCI_FLAG_READ | CCI_FLAG_WRITE, &next),
                         CCI_SUCCESS);
        cci_rma_parse_handle(next, &next_key, &next_region);
        assert_int_equal(next_region, region);
        memset(sheet + SHEET, byte, OFFERED);
        i = bytes_to[reader.number - SPOOFED];
        run_ms(10);
        assert_true(bytes_to[reader.number - SPOOFED] - i < 200); /* that it was denied, and no data */
        assert_false(write_is_taken(key, region, 0, 8, 8, OFFERED));
        assert_false(read_is_answered(key, region, 0, 8));
        for (i = 0; i < OFFERED; i++)
            assert_int_equal(sheet[SHEET + i], byte);
        handle = next;
        key = next_key;
    }
    assert_true(outside_is_untouched());
}

/* ---- over UDP --------------------------------------------------------------------------------------------------------------- */

static uint32_t udp_port(cci_endpoint_t *endpoint) {
    char *uri;
    uint32_t port;
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    port = (uint32_t)strtoul(strrchr(uri, ':') + 1, NULL, 10);
    free(uri);
    return port;
}

/* Takes what came for the attacker; its bytes. */
static uint64_t take_answers(int fd) {
    uint8_t bytes[65536];
    uint64_t total = 0;
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        total += (uint64_t)got;
    return total;
}

static void over_udp_a_flood_gets_no_more_than_it_sent_and_does_no_harm(void **state) {
    struct sockaddr_in address;
    cci_setup_t setup;
    uint8_t packet[512];
    uint64_t sent = 0, answered = 0;
    uint32_t caps, i, port, buffers;
    size_t before;
    int fd;
    (void)state;
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    memset(&setup, 0, sizeof setup);
    setup.alloc = counting_alloc;
    setup.release = counting_release;
    setup.log = no_log;
    setup.config = "[lo]\ntransport=udp\ninterface=lo\n";
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    open_victim();
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
    connect_to_victim(CCI_CONN_ATTR_RO);
    port = udp_port(victim);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    before = memory_bytes;
    buffers = dgram_of(victim)->base.evq.buffer_total + dgram_of(client)->base.evq.buffer_total;
    for (i = 0; i < MILLIONS / 10; i++) {
        uint32_t length = 24 + (uint32_t)guess() % 200, k;
        for (k = 0; k < length; k++)
            packet[k] = (uint8_t)guess();
        cci_conn_write_header(packet, (uint8_t)(i % 12), (uint8_t)(i % 4), (uint32_t)guess() % 4, guess(), (uint32_t)guess() % 4,
                              (uint32_t)guess());
        if (i % 2)
            length = write_request(packet, (uint8_t)(i % 3), i, guess(), 0, i % 100, 0, 0);
        if (sendto(fd, packet, length, 0, (struct sockaddr *)&address, sizeof address) == (ssize_t)length)
            sent += length;
        if (i % 20 == 0) {
            run(1);
            answered += take_answers(fd);
            assert_true(answered <= sent);
        }
        if (i % 1000 == 0)
            both_ways(); /* the connection goes on */
    }
    run(1000);
    answered += take_answers(fd);
    print_message("over UDP: %u KB sent blindly, %u KB came back\n", (unsigned)(sent / 1000), (unsigned)(answered / 1000));
    assert_true(answered > 0);
    assert_true(answered <= sent);
    buffers = dgram_of(victim)->base.evq.buffer_total + dgram_of(client)->base.evq.buffer_total - buffers;
    before += (size_t)buffers * (dgram_of(victim)->buffer_size + 64);
    assert_true(memory_bytes - before <= CCI__CONN_SLAB * sizeof(cci__dconn_t) + 16 * CCI__DGRAM_SLAB); /* and some slabs */
    assert_true(dgram_of(victim)->base.conns.unproven <= CCI__CONN_UNPROVEN);
    connect_to_victim(CCI_CONN_ATTR_RU); /* and others still connect */
    both_ways();
    assert_int_equal(failed_count, 0);
    (void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_peer_whose_address_changes_is_followed_when_it_has_proven_the_new_one),
        TEST(a_challenge_that_is_lost_is_repeated),
        TEST(a_peer_cannot_direct_answers_at_a_third_party),
        TEST(a_wrong_or_late_response_does_not_move_a_peer),
        TEST(a_thousand_peers_that_leave_gaps_do_not_keep_others_from_sending),
        TEST(early_messages_of_one_connection_leave_their_share_to_others),
        TEST(early_messages_do_not_keep_others_from_connecting),
        TEST(messages_that_wait_for_a_write_that_never_comes_leave_buffers_to_others),
        TEST(fragments_that_are_never_completed_do_not_hold_all_buffers),
        TEST(unreliable_fragments_leave_buffers_to_others_and_go_after_a_second),
        TEST(pieces_that_anybody_sends_to_a_group_leave_buffers_to_others),
        TEST(writes_that_are_never_completed_do_not_keep_others_from_writing),
        TEST(requests_for_reads_leave_their_share_to_others),
        TEST(a_peer_that_stops_acknowledging_leaves_records_to_others),
        TEST(reads_that_a_peer_does_not_answer_leave_chunks_to_others),
        TEST(peers_that_fall_silent_in_the_middle_of_reads_leave_chunks_to_others),
        TEST(peers_that_fall_silent_in_the_middle_of_writes_leave_records_to_others),
        TEST(keepalives_to_silent_peers_do_not_hold_what_others_need),
        TEST(a_packet_makes_bounded_work_whatever_is_in_it),
        TEST(messages_that_end_together_make_work_for_each_and_not_for_each_pair),
        TEST(a_million_spoofed_requests_take_no_memory_and_honest_peers_still_connect),
        TEST(spoofed_requests_that_wait_leave_buffers_to_honest_peers),
        TEST(requests_that_are_never_completed_do_not_keep_others_out),
        TEST(nobody_gets_more_bytes_than_came_in_its_name_before_its_address_is_proven),
        TEST(a_group_answers_nothing),
        TEST(tokens_and_keys_are_64_distinct_bits_from_the_secure_source),
        TEST(ten_million_guesses_are_dropped_and_counted_and_have_no_effect),
        TEST(millions_of_guesses_at_a_key_read_and_write_nothing),
        TEST(a_refusal_does_not_tell_what_was_wrong),
        TEST(a_flood_of_forged_packets_does_not_reset_slow_or_inject_into_a_connection),
        TEST(forged_answers_do_not_touch_a_connecting_client),
        TEST(who_says_not_here_neither_ends_a_request_nor_sends_it_to_others),
        TEST(an_answer_that_allows_longer_messages_than_were_asked_for_is_ignored),
        TEST(chosen_addresses_indices_and_tokens_make_no_long_chains),
        TEST(a_peer_touches_nothing_outside_what_was_registered_for_it),
        TEST(a_handle_of_another_endpoint_or_one_that_is_gone_opens_nothing),
        TEST(over_udp_a_flood_gets_no_more_than_it_sent_and_does_no_harm),
    };
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
