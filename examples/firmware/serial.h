/* serial.h - datagrams on a serial line, by the UART of the board's header: the link of firmware.c, included there.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include "slip.h"

/* ---- rings, between the UART's interrupts and the program ------------------------------------------------------------------- */

/* A ring with one writer and one reader: one is an interrupt, the other the program. Neither ever waits. */
#define RING_SIZE 2048u
typedef struct ring {
    volatile uint32_t written, read;
    uint8_t bytes[RING_SIZE];
} ring_t;

static ring_t received, to_send;

static void feed_transmitter(void) {
    while (to_send.read != to_send.written && !uart_is_full()) {
        uart_put(to_send.bytes[to_send.read % RING_SIZE]);
        to_send.read++;
    }
}

static void take_byte(uint8_t byte) {
    if (received.written - received.read == RING_SIZE) return; /* a full ring: the peer repeats what was lost */
    received.bytes[received.written % RING_SIZE] = byte;
    received.written++;
}

/* Has something come that nobody has looked at? Interrupts are held back meanwhile. */
static int link_has_input(void) {
    return received.read != received.written;
}

/* ---- the link: SLIP on the line ------------------------------------------------------------------------------------------- */

static uint8_t coming[BOARD_MTU];
static slip_t slip = {coming, sizeof coming, 0, 0, 0};

static int link_open(cci_device_t *device, const char *service, int want_handle, void **link, cci_link_info_t *info) {
    (void)device, (void)service, (void)want_handle;
    *link = &slip;
    info->mtu = BOARD_MTU;
    info->crc = 1;
    info->receive_window = RING_SIZE / 2; /* what the ring takes while the program is busy, even if all is escaped */
    info->max_send_size = 256;
    return CCI_SUCCESS;
}

static void link_close(void *link) {
    (void)link;
}

/* A datagram that does not fit into the ring is not taken, and comes again. */
static int link_send(void *link, const cci_link_tx_t *tx, int count) {
    static uint8_t line[SLIP_MOST(BOARD_MTU)];
    int i;
    (void)link;
    for (i = 0; i < count; i++) {
        uint32_t piece, length = 1, at;
        if (RING_SIZE - (to_send.written - to_send.read) < SLIP_MOST(tx[i].length)) break;
        line[0] = 0xC0;
        for (piece = 0; piece < tx[i].piece_count; piece++)
            length += slip_put(line + length, tx[i].piece[piece].data, tx[i].piece[piece].length);
        line[length++] = 0xC0;
        for (at = 0; at < length; at++) to_send.bytes[(to_send.written + at) % RING_SIZE] = line[at];
        to_send.written += length;
    }
    __asm__ volatile("cpsid i" ::: "memory");
    feed_transmitter();
    __asm__ volatile("cpsie i" ::: "memory");
    return i;
}

static int link_receive(void *link, cci_link_rx_t *rx, int count) {
    (void)link, (void)count;
    while (received.read != received.written) {
        uint32_t length = slip_take(&slip, received.bytes[received.read % RING_SIZE]);
        received.read++;
        if (length == 0 || length > rx->capacity) continue;
        memcpy(rx->data, coming, length);
        rx->length = rx->segment = length;
        memset(&rx->from, 0, sizeof rx->from); /* there is one peer: its address is zeros */
        rx->is_group = 0;
        return 1;
    }
    return 0;
}

static const cci_link_t board_link = {CCI_LINK_VERSION,
                                      link_open,
                                      link_close,
                                      link_send,
                                      link_receive,
                                      link_now,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL,
                                      NULL};
