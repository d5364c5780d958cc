/* mps2.h - clock, alarm and UART of QEMU's mps2-an385, -an386 and -an505: firmware.c includes it.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#if defined(BOARD_M33) && defined(BOARD_ETHERNET)
#error "BOARD_M33 has the serial line only"
#endif
#ifdef BOARD_M33 /* mps2-an505: the secure state's addresses */
#define CLOCK 0x50000000
#define ALARM 0x50001000
#define UART 0x50200000
#define CLOCK_HZ 20000000u
enum { CLOCK_INTERRUPT = 3, ALARM_INTERRUPT = 4, UART_INTERRUPTS = 32 };
#else
#define CLOCK 0x40000000 /* two timers, which count down: one always, the other to the next alarm */
#define ALARM 0x40001000
#define UART 0x40004000
#define CLOCK_HZ 25000000u
enum { CLOCK_INTERRUPT = 8, ALARM_INTERRUPT = 9, UART_INTERRUPTS = 0 };
#endif

/* ---- the timers ------------------------------------------------------------------------------------------------------------ */

#define TIMER_CONTROL(timer) REGISTER(timer)
#define TIMER_VALUE(timer) REGISTER((timer) + 4)
#define TIMER_RELOAD(timer) REGISTER((timer) + 8)
#define TIMER_INTERRUPT(timer) REGISTER((timer) + 12)
#define MOST_TICKS UINT32_MAX
#define CLOCK_VECTORS [16 + CLOCK_INTERRUPT] = on_clock, [16 + ALARM_INTERRUPT] = on_alarm

static void on_clock(void) {
    TIMER_INTERRUPT(CLOCK) = 1;
    clock_overflows++;
}

static void on_alarm(void) {
    TIMER_CONTROL(ALARM) = 0;
    TIMER_INTERRUPT(ALARM) = 1;
    alarms++;
}

static void start_timer(uint32_t timer, uint32_t ticks) {
    TIMER_CONTROL(timer) = 0;
    TIMER_INTERRUPT(timer) = 1;
    TIMER_RELOAD(timer) = ticks;
    TIMER_VALUE(timer) = ticks;
    TIMER_CONTROL(timer) = 9; /* on, with its interrupt, at the processor's clock */
}

static void start_clock(void) {
    start_timer(CLOCK, UINT32_MAX);
    enable_interrupt(CLOCK_INTERRUPT);
    enable_interrupt(ALARM_INTERRUPT);
}

static uint32_t clock_value(void) {
    return UINT32_MAX - TIMER_VALUE(CLOCK);
}

static void start_alarm(uint32_t ticks) {
    start_timer(ALARM, ticks);
}

static void stop_alarm(void) {
    TIMER_CONTROL(ALARM) = 0;
}

/* ---- the UART -------------------------------------------------------------------------------------------------------------- */

#ifndef BOARD_ETHERNET
#define UART_DATA REGISTER(UART)
#define UART_STATE REGISTER(UART + 4) /* 1: the transmitter is full, 2: a byte has come */
#define UART_CONTROL REGISTER(UART + 8)
#define UART_INTERRUPT REGISTER(UART + 12)
#define UART_DIVIDER REGISTER(UART + 16)

static void take_byte(uint8_t byte);
static void feed_transmitter(void);

static int uart_is_full(void) {
    return (UART_STATE & 1) != 0;
}

static void uart_put(uint8_t byte) {
    UART_DATA = byte;
}

static void on_byte(void) {
    UART_INTERRUPT = 2;
    while (UART_STATE & 2) take_byte((uint8_t)UART_DATA);
}

static void on_sent(void) {
    UART_INTERRUPT = 1;
    feed_transmitter();
}

#define LINK_VECTORS [16 + UART_INTERRUPTS] = on_byte, [17 + UART_INTERRUPTS] = on_sent

static void start_link(void) {
    UART_DIVIDER = CLOCK_HZ / 115200;
    UART_CONTROL = 15; /* both directions, with interrupts */
    enable_interrupt(UART_INTERRUPTS);
    enable_interrupt(UART_INTERRUPTS + 1);
}
#endif
