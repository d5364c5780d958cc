/* firmware.c - CCI on bare metal: a Cortex-M3, M4 or M33 (QEMU's mps2-an385, -an386 and -an505), at a serial line or at Ethernet.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * It accepts whoever connects, gives the handles of two blocks of its memory, and echoes messages, while the peer reads and writes
 * the blocks. In between it sleeps: no tick wakes it, a timer is set for when the library wants to be called. `make firmware` builds
 * it; host.c is the other end. An author changes what is marked with BOARD.
 */
#include "board.h"

#ifdef BOARD_ETHERNET
#define MTU BOARD_UDP_MTU
#define CONNECTIONS 4
#else
#define MTU BOARD_MTU
#define CONNECTIONS 8 /* a peer that dies keeps its own until the send time-out, or until all are taken */
#endif
#ifndef BOARD_SMALL
#define CCI_TINY
#define CCI_TINY_MTU MTU
#define CCI_TINY_CONNECTIONS CONNECTIONS
#define RECEIVES CCI_TINY_RECEIVES
#else /* what CCI_TINY goes without (see >>config in cci.h), for five times the code */
#define CCI_SMALL
#define CCI_SMALL_CONNECTIONS CONNECTIONS
#define CCI_SMALL_ACTIVE 2
#define RECEIVES CCI_SMALL_RECEIVES
#endif
#define CCI_NO_TEXT
#define CCI_STATIC
#define CCI_IMPLEMENTATION
#include "cci.h"

#include <string.h>

/* ---- BOARD: registers and interrupts ----------------------------------------------------------------------------------- */

#define REGISTER(address) (*(volatile uint32_t *)(address))

static volatile uint32_t clock_overflows, alarms;
static uint32_t unplugs; /* how often the cable was pulled out, where the link can tell */

static void on_fault(void) {
    for (;;) {
    }
}

static void enable_interrupt(uint32_t number) {
    REGISTER(0xE000E100 + number / 32 * 4) = 1u << number % 32;
}

#include "mps2.h"

/* The timer overflows after minutes and counts that in its interrupt: both are read again until no overflow came in between.
 * Nanoseconds in 64 bits last for 584 years. */
static uint64_t clock_ns(void) {
    uint32_t overflows, value;
    do {
        overflows = clock_overflows;
        value = clock_value();
    } while (overflows != clock_overflows);
    return (((uint64_t)overflows << 32) + value) * (1000000000u / CLOCK_HZ);
}

static uint64_t link_now(void *link) {
    (void)link;
    return clock_ns();
}

#ifdef BOARD_ETHERNET
#include "ethernet.h"
#else
#include "serial.h"
#endif

/* ---- BOARD: start-up and sleep ------------------------------------------------------------------------------------------ */

int main(void);
extern uint8_t stack_top[], data_begin[], data_end[], data_load[], bss_begin[], bss_end[];

static void reset(void) {
    memcpy(data_begin, data_load, (size_t)(data_end - data_begin));
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    (void)main();
    for (;;) {
    }
}

typedef void (*handler_t)(void);
__attribute__((used, section(".vectors"))) static const handler_t vectors[] = {
    (handler_t)(uintptr_t)stack_top, reset, on_fault, on_fault, on_fault, on_fault, on_fault,
    [11] = on_fault, [12] = on_fault, [14] = on_fault, [15] = on_fault, CLOCK_VECTORS, LINK_VECTORS};

static void start_board(void) {
    start_clock();
    start_link();
}

/* Sleeps until something comes, or so much time is over. An interrupt that comes between the look and the instruction is held
 * back and ends the sleep at once: none is missed. 0: there was no need to sleep. */
static uint32_t sleep_for(uint64_t ns) {
    const uint64_t ticks = ns / (1000000000u / CLOCK_HZ);
    const uint32_t before = alarms;
    uint32_t sleeps;
    if (ticks == 0) return 0;
    start_alarm(ticks < MOST_TICKS ? (uint32_t)ticks : MOST_TICKS); /* after minutes it looks what there is to wait for */
    __asm__ volatile("cpsid i" ::: "memory");
    sleeps = !link_has_input() && alarms == before;
    if (sleeps) __asm__ volatile("wfi");
    __asm__ volatile("cpsie i" ::: "memory");
    stop_alarm();
    return sleeps;
}

/* ---- what the library wants of the program ---------------------------------------------------------------------------------- */

#ifdef BOARD_SMALL
static uint64_t memory[16000 / 8]; /* all that it ever takes */

static void *take_memory(void *user, size_t size) {
    static size_t used;
    void *taken = (uint8_t *)memory + used;
    (void)user;
    size = (size + 7) & ~(size_t)7;
    if (size > sizeof memory - used) return NULL;
    used += size;
    return taken;
}

static void give_memory(void *user, void *pointer) {
    (void)user, (void)pointer;
} /* a server's stays for good */
#else /* CCI_TINY's memory is static */
#define take_memory NULL
#define give_memory NULL
#endif

/* BOARD: take a generator of random numbers here. This emulated board has none: times at which bytes come are all the chance that
 * there is, which will do for a demonstration, not for a line that others can reach. */
static int get_random(void *user, void *bytes, size_t count) {
    static uint64_t state = 0x9E3779B97F4A7C15u;
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    while (count-- > 0) {
        state = (state ^ clock_ns()) * 6364136223846793005u + 1442695040888963407u;
        *at++ = (uint8_t)(state >> 56);
    }
    return 0;
}

/* ---- the program ---------------------------------------------------------------------------------------------------------------- */

static struct board_counters counters;
static struct board_settings settings = {100, "mps2"};
static struct board_greeting greeting;

/* Messages that are still to be echoed: as many as there are receive buffers, each of which its own keeps. */
static cci_event_t *waiting[RECEIVES];
static uint32_t waiting_count;
static cci_connection_t *to_greet;

/* Sends what waited for a send buffer, each connection's in order: who does not take its own keeps nobody else waiting. */
static void answer(void) {
    uint32_t i, j, kept = 0;
    if (to_greet && cci_send(to_greet, &greeting, sizeof greeting, NULL, CCI_FLAG_SILENT) != CCI_ENOBUFS)
        to_greet = NULL;
    for (i = 0; i < waiting_count; i++) {
        const cci_event_recv_t *message = &waiting[i]->recv;
        for (j = 0; j < kept && waiting[j]->recv.connection != message->connection;) j++;
        if (j < kept || message->connection == to_greet ||
            cci_send(message->connection, message->ptr, message->len, NULL, CCI_FLAG_SILENT) == CCI_ENOBUFS)
            waiting[kept++] = waiting[i];
        else
            (void)cci_return_event(waiting[i]);
    }
    waiting_count = kept;
}

/* A connection has ended: nothing of it is answered any more. */
static void forget(cci_connection_t *connection) {
    uint32_t i, kept = 0;
    for (i = 0; i < waiting_count; i++)
        if (waiting[i]->recv.connection == connection)
            (void)cci_return_event(waiting[i]);
        else
            waiting[kept++] = waiting[i];
    waiting_count = kept;
    if (to_greet == connection) to_greet = NULL;
    (void)cci_disconnect(connection);
}

static void handle(cci_event_t *event) {
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT_REQUEST: (void)cci_accept(event, NULL); break;
    case CCI_EVENT_ACCEPT:
        if (event->accept.status == CCI_SUCCESS) {
            counters.connections++;
            to_greet = event->accept.connection;
        }
        break;
    case CCI_EVENT_RECV:
        counters.messages++;
        waiting[waiting_count++] = event;
        return;
    case CCI_EVENT_DISCONNECT: forget(event->disconnect.connection); break;
    default: break;
    }
    (void)cci_return_event(event);
}

/* A block of memory for the peer; its handle goes into the greeting. */
static void offer(cci_endpoint_t *endpoint, void *block, uint32_t length, int rights, uint8_t handle_bytes[32]) {
    cci_rma_handle_t *handle;
    if (cci_rma_register(endpoint, block, length, rights, &handle) != CCI_SUCCESS) on_fault();
    memcpy(handle_bytes, handle, sizeof *handle);
}

int main(void) {
    static const cci_setup_t setup = {take_memory, give_memory, NULL, get_random, NULL, NULL, NULL, NULL, 0};
    const uint32_t mask = 1u << CCI_EVENT_DISCONNECT, timeout_us = 10000000;
    cci_endpoint_t *endpoint;
    start_board();
    if (cci_setup(&setup) != CCI_SUCCESS ||
        cci_create_endpoint_on_link(&board_link, NULL, &endpoint, NULL) != CCI_SUCCESS ||
        cci_set_opt(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &timeout_us) != CCI_SUCCESS ||
        cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask) != CCI_SUCCESS)
        on_fault();
    offer(endpoint, &counters, sizeof counters, CCI_FLAG_READ, greeting.counters);
    offer(endpoint, &settings, sizeof settings, CCI_FLAG_READ | CCI_FLAG_WRITE, greeting.settings);
    for (;;) {
        cci_event_t *event;
        uint64_t ns;
        int status;
        counters.uptime_ms = (uint32_t)(clock_ns() / 1000000u);
        counters.period_ms = settings.period_ms; /* a setting has arrived when the counters say so */
        counters.alarms = alarms;
        counters.unplugs = unplugs;
        status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) handle(event);
        answer();
        if (status != CCI_SUCCESS && cci_next_deadline(endpoint, &ns) == CCI_SUCCESS) counters.sleeps += sleep_for(ns);
    }
}
