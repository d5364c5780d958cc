/* board.h - what the firmware and the program on the host agree about.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define BOARD_MTU 516u      /* bytes of a datagram on the serial line, the CRC included */
#define BOARD_UDP_MTU 1472u /* of Ethernet's frames, without the headers of IP and UDP */
#define BOARD_PORT 7777u

/* Memory of the board, little-endian. The host reads `counters`, reads and writes `settings`, by RMA. */
struct board_counters {
    uint32_t uptime_ms, connections, messages, period_ms;
    uint32_t sleeps, alarms; /* how often it slept, and was woken by the time */
    uint32_t unplugs;        /* how often the Ethernet cable was pulled out */
};
struct board_settings {
    uint32_t period_ms;
    char name[28];
};

/* The board's first message on a connection: the handles of both. All that comes later is echoed. */
struct board_greeting {
    uint8_t counters[32], settings[32];
};

#endif
