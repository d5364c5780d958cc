/* footprint.c - what the library takes on a small machine: the program that footprint.sh links, measures and runs.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * ROW says how much of the library it uses: 1 the reliability protocol alone, 2 messages, 3 messages and RMA both ways,
 * 4 the same with 8 peers and datagrams of 1,500 bytes, 5 messages on a connection that both sides know of. Without MEASURE it is what a firmware would be, with one endpoint and
 * registers in place of a line: its code is measured. With MEASURE two endpoints of one program talk to each other through
 * queues: it runs in an emulator and prints what one of them has allocated and how much of the stack was used.
 */
#ifndef ROW
#define ROW 3
#endif
#if ROW == 1
#define CCI_REL_IMPLEMENTATION
#else
#define CCI_IMPLEMENTATION
#endif
#define CCI_NO_THREADS
#define CCI_NO_STDIO
#define CCI_NO_DLOPEN
#define CCI_STATIC
#if defined(CCI_TINY) && defined(MEASURE)
#define CCI_TINY_ENDPOINTS (ROW == 4 ? 9 : 2)
#endif
#include "cci.h"

#include <string.h>

/* A number that the program does not know, so that nothing is left out that depends on it. */
static volatile uint32_t port[4];

/* ---- the machine ---------------------------------------------------------------------------------------------------- */

int main(void);
#ifdef __AVR__ /* whose C library starts the program */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

extern uint8_t __heap_start[];
#define stack_low __heap_start
#define stack_high ((uint8_t *)(uintptr_t)(RAMEND + 1))
#else
void reset(void);

extern uint8_t stack_low[], stack_high[], data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
#endif

#if defined(__arm__)
__attribute__((used, section(".vectors"))) static void *const vectors[] = {stack_high, (void *)reset};
#endif

#ifdef MEASURE
#ifdef __AVR__
static void print(const char *text) {
    for (; *text; text++) {
        while (!(UCSR0A & (1 << UDRE0))) {}
        UDR0 = (uint8_t)*text;
    }
}

/* With interrupts off, sleep is the end: the emulator stops. */
static void stop(int failed) {
    print(failed ? "failed\n" : "done\n");
    cli();
    sleep_mode();
    for (;;) {}
}
#elif defined(__riscv) /* as a program of Linux */
static void call(long number, long first, const char *second, long third) {
    register long a0 __asm__("a0") = first, a2 __asm__("a2") = third, a7 __asm__("a7") = number;
    register const char *a1 __asm__("a1") = second;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
}

static void print(const char *text) { call(64, 1, text, (long)strlen(text)); }

static void stop(int failed) {
    if (failed) print("failed\n");
    for (;;) call(93, failed, NULL, 0);
}
#else
static int semihosting(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void print(const char *text) { (void)semihosting(4, text); }

static void stop(int failed) {
    if (failed) print("failed\n");
    (void)semihosting(0x18, (const void *)(failed ? 0x20023u : 0x20026u));
    for (;;) {}
}
#endif

static void print_number(const char *name, uint32_t number) {
    char text[12], *at = text + 11;
    *at = '\0';
    do *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    print(name);
    print(at);
    print("\n");
}

/* The lowest byte of the stack that has changed tells how much of it was used. Where the frame's address is its end, main()'s
 * own is not painted. */
#ifdef __riscv
#define FRAME 256
#else
#define FRAME 64
#endif
static void paint_stack(void) {
    volatile uint8_t *at = stack_low, *end = (volatile uint8_t *)__builtin_frame_address(0) - FRAME;
    while (at < end) *at++ = 0xa5;
}

static uint32_t used_stack(void) {
    const uint8_t *at = stack_low;
    while (*at == 0xa5) at++;
    return (uint32_t)(stack_high - at);
}
#endif

#if defined(__riscv) && defined(MEASURE)
__attribute__((naked, used)) void reset(void) { __asm__("la sp, stack_high\n\tcall main"); }
#elif !defined(__AVR__)
void reset(void) {
    uint8_t *to, *from = data_load;
    for (to = data_begin; to < data_end; to++) *to = *from++;
    for (to = bss_begin; to < bss_end; to++) *to = 0;
    (void)main();
    for (;;) {}
}
#endif

/* ---- the reliability protocol alone ----------------------------------------------------------------------------------- */

#if ROW == 1

#define MTU 256u
#define BUFFERS 2

typedef struct peer {
    cci_rel_t rel;
    cci_rel_pool_t pool;
    cci_rel_block_t blocks[2];
    uint64_t large[2][(MTU - CCI_REL_HEADER) / 8];
    cci_rel_item_t bulks[1];
    cci_rel_sent_t records[4];
    cci_rel_reassembly_t parts[1];
    cci_rel_op_t op;
    uint64_t buffer[BUFFERS][MTU / 8];
    uint64_t head[CCI_REL_HEAD / 8];
    cci_rel_run_t *taken;
    uint32_t received, completed, failed;
} peer_t;

static int keep(void *user, void *buffer, int in_order) {
    (void)buffer, (void)in_order;
    return ((peer_t *)user)->taken == NULL;
}
static void drop(void *user, void *buffer) { (void)user, (void)buffer; }
static uint8_t *assemble(void *user, uint32_t size, int in_order, void **buffer) {
    (void)user, (void)size, (void)in_order, (void)buffer;
    return NULL;
}
static void deliver(void *user, cci_rel_run_t *run) { ((peer_t *)user)->taken = run; }
static int place(void *user, const cci_rel_bulk_t *to, uint64_t offset, const uint8_t *data, uint32_t length) {
    (void)user, (void)to, (void)offset, (void)data, (void)length;
    return CCI_ERR_RMA_HANDLE;
}
static int readable(void *user, const cci_rel_bulk_t *source) {
    (void)user, (void)source;
    return 0;
}
static void complete(void *user, cci_rel_op_t *op) {
    ((peer_t *)user)->completed++;
    ((peer_t *)user)->failed += op->status != CCI_SUCCESS;
}
static void start(void *user, cci_rel_item_t *item) { (void)user, (void)item; }
static uint32_t other_frame(void *user, const uint8_t *frame, uint32_t length, uint64_t now_ns) {
    (void)user, (void)frame, (void)length, (void)now_ns;
    return 0;
}
static void broken(void *user, int status) { ((peer_t *)user)->failed = (uint32_t)status; }

static const cci_rel_callbacks_t sink = {keep,     drop,  assemble,    deliver, place, readable,
                                    complete, start, other_frame, broken};

static void begin(peer_t *peer) {
    static const cci_rel_state_t fresh = {1, 1, 1, 1, 0, 100000, 0, MTU, 0}; /* an answer takes 0.1 s at most */
    memset(peer, 0, sizeof *peer);
    cci_rel_pool_init(&peer->pool, &sink, MTU - CCI_REL_HEADER, MTU);
    cci_rel_pool_add_blocks(&peer->pool, peer->blocks, (uint8_t *)peer->large, 2);
    cci_rel_pool_add(&peer->pool, peer->bulks, 1, peer->records, 4, peer->parts, 1);
    peer->pool.congestion = cci__find_congestion("fixed");
    cci_rel_begin(&peer->rel, &peer->pool, peer, &fresh, CCI_CONN_ATTR_RO, MTU, 4 * MTU);
}

/* One message, copied. */
static int say(peer_t *peer, uint32_t number, uint64_t now_ns) {
    struct iovec data;
    data.iov_base = &number;
    data.iov_len = sizeof number;
    memset(&peer->op, 0, sizeof peer->op);
    return cci_rel_send(&peer->rel, &data, 1, sizeof number, &peer->op, now_ns);
}

/* The packet's 24 bytes in front are the user's: of them only the number is needed here. */
static uint32_t next_packet(peer_t *peer, uint8_t *wire, uint64_t now_ns) {
    cci_rel_packet_t packet;
    memset(&packet, 0, sizeof packet);
    packet.head = (uint8_t *)peer->head;
    if (cci_rel_deadline(&peer->rel) <= now_ns) cci_rel_timeout(&peer->rel, now_ns);
    if (!cci_rel_output(&peer->rel, &packet, 1, now_ns)) return 0;
    memcpy(wire, packet.head, packet.head_length);
    memcpy(wire + packet.head_length, packet.body, packet.body_length);
    memset(wire + packet.head_length + packet.body_length, 0, packet.pad_length);
    cci__store32(wire + 20, (uint32_t)packet.number);
    if (packet.spent) cci_rel_spent(&peer->rel, packet.spent);
    return packet.head_length + packet.body_length + packet.pad_length;
}

static void take_packet(peer_t *peer, uint8_t *bytes, uint32_t length, uint64_t now_ns) {
    (void)cci_rel_input(&peer->rel, bytes, length, cci__load32(bytes + 20), bytes, now_ns);
    while (peer->taken) {
        cci_rel_run_t *run = peer->taken;
        while (run->begin < run->end) {
            peer->received++;
            cci_rel_run_skip(run);
        }
        peer->taken = NULL;
    }
}

#ifdef MEASURE
static peer_t peers[2];

static void pass(int from, uint64_t now_ns) {
    uint64_t wire[MTU / 8];
    uint32_t length;
    while ((length = next_packet(&peers[from], (uint8_t *)wire, now_ns)) > 0) {
        memcpy(peers[!from].buffer[0], wire, length);
        if (now_ns % 7 != 0) take_packet(&peers[!from], (uint8_t *)peers[!from].buffer[0], length, now_ns);
    }
}

int main(void) {
    uint64_t now_ns = 1000000000;
    uint32_t round, said = 0;
    paint_stack();
    begin(&peers[0]);
    begin(&peers[1]);
    for (round = 0; round < 20000 && peers[0].completed < 50; round++) {
        if (said == peers[0].completed && say(&peers[0], said, now_ns) == CCI_SUCCESS) said++;
        pass(0, now_ns);
        pass(1, now_ns);
        now_ns += 1000001;
    }
    print_number("memory ", sizeof peers[0]);
    print_number("stack ", used_stack());
    stop(peers[0].completed != 50 || peers[1].received != 50 || peers[0].failed || peers[1].failed);
    return 0;
}
#else
int main(void) {
    static peer_t peer;
    begin(&peer);
    for (;;) {
        uint32_t length = next_packet(&peer, (uint8_t *)peer.buffer[1], port[0]), i;
        for (i = 0; i < length; i++) port[1] = ((const uint8_t *)peer.buffer[1])[i];
        for (i = 0; i < port[2]; i++) ((uint8_t *)peer.buffer[0])[i] = (uint8_t)port[1];
        take_packet(&peer, (uint8_t *)peer.buffer[0], port[2], port[0]);
        if (say(&peer, peer.received, port[0]) != CCI_SUCCESS) port[3]++;
    }
}
#endif

/* ---- whole endpoints ---------------------------------------------------------------------------------------------------- */

#else

#if ROW == 4
#define MTU 1500u
#define PEERS 8
#define RECEIVES 8
#define SENDS 4
#else
#define MTU 260u /* with the checksum */
#define PEERS 1
#define RECEIVES FEW_RECEIVES
#define SENDS 2
#endif
#ifndef FEW_RECEIVES
#define FEW_RECEIVES 2
#endif
#define HAS_RMA (ROW == 3 || ROW == 4)
#ifndef MEMORY
#define MEMORY 0x10000
#endif

static uint64_t memory[MEMORY / 8];
static uint32_t memory_used;

static void *take_memory(void *user, size_t size) {
    uint8_t *taken = (uint8_t *)memory + memory_used;
    (void)user;
    size = (size + 7) & ~(size_t)7;
    if (size > sizeof memory - memory_used) return NULL;
    memory_used += (uint32_t)size;
    return taken;
}
static void give_memory(void *user, void *pointer) { (void)user, (void)pointer; }

static int chance(void *user, void *bytes, size_t count) {
    static uint32_t state = 2463534242u;
    (void)user;
    while (count-- > 0) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        ((uint8_t *)bytes)[count] = (uint8_t)(state + port[0]);
    }
    return 0;
}

static int link_open(cci_device_t *device, const char *service, int want, void **link, cci_link_info_t *info) {
    (void)device, (void)want;
    *link = (void *)(uintptr_t)service;
    info->mtu = MTU;
    info->crc = ROW != 4;
    info->send_buf_count = SENDS;
    info->recv_buf_count = RECEIVES;
    info->receive_window = RECEIVES * MTU;
    info->congestion = ROW == 4 ? NULL : "fixed";
    info->max_send_size = ROW == 4 ? 1400 : 0;
    return CCI_SUCCESS;
}
static void link_close(void *link) { (void)link; }
static int link_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    to->bytes[0] = (uint8_t)address[0];
    return CCI_SUCCESS;
}

static uint8_t block[1024];

#ifdef MEASURE

/* "0": the endpoint that is measured; "1" and so on: its peers. */
#define QUEUED 8
static struct queue {
    uint8_t bytes[QUEUED][MTU];
    uint32_t length[QUEUED], first, count;
    uint8_t from[QUEUED];
} queues[PEERS + 1];
static uint64_t clock_ns = 1000000000;

static int link_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    uint32_t j, at;
    for (i = 0; i < count; i++) {
        struct queue *queue = &queues[tx[i].to->bytes[0] - '0'];
        uint32_t slot = (queue->first + queue->count) % QUEUED;
        clock_ns += 10000;
        if (tx[i].length > MTU || queue->count == QUEUED) continue; /* lost */
        for (j = 0, at = 0; j < tx[i].piece_count; at += tx[i].piece[j++].length)
            memcpy(queue->bytes[slot] + at, tx[i].piece[j].data, tx[i].piece[j].length);
        queue->length[slot] = tx[i].length;
        queue->from[slot] = *(const uint8_t *)link;
        queue->count++;
    }
    return count;
}
static int link_receive(void *link, cci_link_rx_t *rx, int count) {
    struct queue *queue = &queues[*(const uint8_t *)link - '0'];
    (void)count;
    if (queue->count == 0) return 0;
    memcpy(rx->data, queue->bytes[queue->first], queue->length[queue->first]);
    rx->length = rx->segment = queue->length[queue->first];
    memset(&rx->from, 0, sizeof rx->from);
    rx->from.bytes[0] = queue->from[queue->first];
    rx->is_group = 0;
    queue->first = (queue->first + 1) % QUEUED;
    queue->count--;
    return 1;
}
static uint64_t link_now(void *link) {
    (void)link;
    return clock_ns += 1000;
}

#else

static int link_send(void *link, const cci_link_tx_t *tx, int count) {
    uint32_t i, j;
    (void)link, (void)count;
    for (i = 0; i < tx->piece_count; i++)
        for (j = 0; j < tx->piece[i].length; j++) port[1] = ((const uint8_t *)tx->piece[i].data)[j];
    return 1;
}
static int link_receive(void *link, cci_link_rx_t *rx, int count) {
    uint32_t i;
    (void)link, (void)count;
    rx->length = rx->segment = port[2];
    for (i = 0; i < rx->length && i < rx->capacity; i++) rx->data[i] = (uint8_t)port[1];
    return rx->length > 0;
}
static uint64_t link_now(void *link) {
    (void)link;
    return (uint64_t)port[3] << 20;
}

#endif

static const cci_link_t own_link = {CCI_LINK_VERSION, link_open,    link_close, link_send, link_receive, link_now,
                                    link_resolve,     NULL,         NULL,       NULL,      NULL,         NULL,
                                    NULL,             NULL,         NULL,       NULL};

static uint32_t answered, moved, failed;

#if HAS_RMA
static void move(cci_endpoint_t *endpoint, cci_connection_t *connection, uintptr_t context, int flags) {
    cci_rma_handle_t *remote = (cci_rma_handle_t *)(void *)(block + sizeof block / 2), *local;
    failed += cci_rma_register(endpoint, block, sizeof block, 0, &local) != CCI_SUCCESS;
    failed += cci_rma(connection, NULL, 0, local, 0, remote, 0, 512, (void *)context, flags) != CCI_SUCCESS;
}
#endif

#if ROW == 5
/* Both know of the connection. */
static cci_connection_t *join(cci_endpoint_t *endpoint, int is_client) {
    cci_tiny_peer_t peer;
    cci_connection_t *connection = NULL;
    memset(&peer, 0, sizeof peer);
    peer.address.bytes[0] = is_client ? '0' : '1';
    peer.token = is_client ? 1 : 2;
    peer.peer_token = is_client ? 2 : 1;
    failed += cci_tiny_open(endpoint, &peer, NULL, &connection) != CCI_SUCCESS;
    return connection;
}

static void ask(cci_endpoint_t *endpoint) {
    failed += cci_send(join(endpoint, 1), block, 100, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS;
}
#else
static void ask(cci_endpoint_t *endpoint) {
    failed += cci_connect(endpoint, "link://0", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS;
}
#endif

/* Each message is answered; with RMA a client writes into the server's memory, then reads it. */
static void handle(cci_endpoint_t *endpoint, int is_client) {
    cci_event_t *event;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS) return;
#if ROW != 5
    if (event->type == CCI_EVENT_CONNECT_REQUEST) failed += cci_accept(event, NULL) != CCI_SUCCESS;
    if (event->type == CCI_EVENT_CONNECT) {
        failed += event->connect.status != CCI_SUCCESS;
        if (event->connect.connection)
            failed += cci_send(event->connect.connection, block, 100, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS;
    }
#endif
    if (event->type == CCI_EVENT_RECV && !is_client)
        failed += cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS;
    if (event->type == CCI_EVENT_RECV && is_client) {
        answered++;
#if HAS_RMA
        move(endpoint, event->recv.connection, 1, CCI_FLAG_WRITE);
#endif
    }
    if (event->type == CCI_EVENT_SEND) {
        moved += event->send.context != NULL;
        failed += event->send.status != CCI_SUCCESS;
#if HAS_RMA
        if (event->send.context == (void *)1) move(endpoint, event->send.connection, 2, CCI_FLAG_READ);
#endif
    }
    failed += cci_return_event(event) != CCI_SUCCESS;
}

int main(void) {
    static const cci_setup_t setup = {take_memory, give_memory, NULL, chance, NULL, NULL, NULL, NULL, 0};
    cci_endpoint_t *server;
#ifdef MEASURE
    cci_endpoint_t *client[PEERS];
    uint32_t i, round, took;
    paint_stack();
#endif
    failed = cci_setup(&setup) != CCI_SUCCESS;
    failed += cci_create_endpoint_on_link(&own_link, "0", &server, NULL) != CCI_SUCCESS;
#if HAS_RMA
    {
        static uint8_t offered[512];
        cci_rma_handle_t *handle;
        failed += cci_rma_register(server, offered, sizeof offered, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) != CCI_SUCCESS;
        memcpy(block + sizeof block / 2, handle, sizeof *handle);
    }
#endif
#if ROW == 5 && defined(MEASURE)
    (void)join(server, 0);
#endif
#ifdef MEASURE
    took = memory_used;
    for (i = 0; i < PEERS; i++) {
        static const char *const names[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
        failed += cci_create_endpoint_on_link(&own_link, names[i], &client[i], NULL) != CCI_SUCCESS;
        if (failed) stop(1);
        ask(client[i]);
    }
    for (round = 0; round < 200000 && (answered < PEERS || moved < (HAS_RMA ? 2 * PEERS : 0)); round++) {
        uint32_t before = memory_used;
        handle(server, 0);
        failed += memory_used != before; /* all was taken when it was created */
        for (i = 0; i < PEERS; i++) handle(client[i], 1);
        if (ROW < 4 && failed) break;
    }
#ifdef CCI_TINY
    print_number("memory ", took + sizeof cci__tiny[0]);
#else
    print_number("memory ", took + sizeof cci__core);
#endif
    print_number("stack ", used_stack());
    stop(failed || answered != PEERS || moved != (HAS_RMA ? 2 * PEERS : 0));
#else
    ask(server);
    for (;;) handle(server, (int)port[0]);
#endif
    return 0;
}

#endif
