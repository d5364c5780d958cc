/* slip.h - datagrams on a line of bytes (RFC 1055), for both ends: firmware.c and host.c.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A byte 0xC0 stands before and behind each datagram; inside it 0xC0 and 0xDB are written as two bytes. Whoever begins to
 * listen in the middle is in step at the next 0xC0. What was changed on the way is found by the library's CRC (info.crc).
 */
#ifndef SLIP_H
#define SLIP_H

#include <stdint.h>

/* Bytes that a datagram takes on the line at most. */
#define SLIP_MOST(length) (2 * (length) + 2)

/* What has come of a datagram so far; zeroed, then set `bytes` and `size`. */
typedef struct slip {
    uint8_t *bytes;
    uint32_t size, length;
    uint8_t is_escaped, is_broken;
} slip_t;

/* Takes a byte from the line: the length of the datagram that it completes, or 0. */
static inline uint32_t slip_take(slip_t *slip, uint8_t byte) {
    uint32_t length = slip->length;
    if (byte == 0xC0) {
        if (slip->is_broken || slip->is_escaped) length = 0;
        slip->length = slip->is_broken = slip->is_escaped = 0;
        return length;
    }
    if (byte == 0xDB && !slip->is_escaped) {
        slip->is_escaped = 1;
        return 0;
    }
    if (slip->is_escaped) {
        slip->is_broken |= byte != 0xDC && byte != 0xDD;
        byte = byte == 0xDC ? 0xC0 : 0xDB;
        slip->is_escaped = 0;
    }
    if (slip->length == slip->size)
        slip->is_broken = 1; /* too long: dropped */
    else
        slip->bytes[slip->length++] = byte;
    return 0;
}

/* Writes a part of a datagram for the line; returns its length there. */
static inline uint32_t slip_put(uint8_t *to, const void *from, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)from;
    uint32_t i, n = 0;
    for (i = 0; i < length; i++) {
        int is_special = bytes[i] == 0xC0 || bytes[i] == 0xDB;
        if (is_special) to[n++] = 0xDB;
        to[n++] = (uint8_t)(is_special ? (bytes[i] == 0xC0 ? 0xDC : 0xDD) : bytes[i]);
    }
    return n;
}

#endif
