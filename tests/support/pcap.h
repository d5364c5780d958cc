/* pcap.h - writes datagrams into a capture file that Wireshark, tcpdump and tests/wire/wire_check.py read.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     FILE *file = pcap_create("run.pcap");
 *     pcap_datagram(file, now_ns, from, to, is_group, bytes, length);
 *     fclose(file);
 *
 * A datagram is wrapped in IPv4 and UDP, as if it had crossed a network: endpoint n is 127.0.0.1, port 49152 + n, and
 * group n is 239.255.0.0 + n, port 49152 + n, so that a number can be read off its port. The file's timestamps are
 * nanoseconds and never go back, though a simulated clock that is set to its beginning does.
 */
#ifndef CCI_TEST_PCAP_H
#define CCI_TEST_PCAP_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define PCAP_FN static __attribute__((unused))
#else
#define PCAP_FN static
#endif

#define PCAP_FIRST_PORT 49152u
#define PCAP_HEADERS 28u      /* bytes of IPv4 and UDP */
#define PCAP_LARGEST 65507u   /* bytes that a UDP datagram carries at most */

/* The formats are big-endian but for the file's own fields, which are of one order here whatever the machine's. */
PCAP_FN void pcap_store_big(uint8_t *at, uint32_t value, int bytes) {
    while (bytes-- > 0) {
        at[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

PCAP_FN void pcap_store_little(uint8_t *at, uint32_t value) {
    int i;
    for (i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* A new capture file, NULL if it can't be made. */
PCAP_FN FILE *pcap_create(const char *path) {
    uint8_t header[24];
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return NULL;
    memset(header, 0, sizeof header);
    pcap_store_little(header, 0xa1b23c4du); /* timestamps in nanoseconds */
    header[4] = 2;                          /* version 2.4 */
    header[6] = 4;
    pcap_store_little(header + 16, 0xffff);
    pcap_store_little(header + 20, 101); /* packets begin with their IP header */
    fwrite(header, sizeof header, 1, file);
    return file;
}

PCAP_FN void pcap_address(uint8_t *at, uint32_t number, int is_group) {
    pcap_store_big(at, is_group ? 0xefff0000u + (number & 0xffff) : 0x7f000001u, 4);
}

/* The timestamp of what happens at now_ns: the clock of the file runs on where another one was set back. */
PCAP_FN uint64_t pcap_time_ns(uint64_t now_ns) {
    static uint64_t base_ns, last_ns;
    if (now_ns < last_ns)
        base_ns += last_ns;
    last_ns = now_ns;
    return base_ns + now_ns;
}

PCAP_FN void pcap_datagram(FILE *file, uint64_t now_ns, uint32_t from, uint32_t to, int is_group, const void *bytes,
                           uint32_t length) {
    uint8_t head[16 + PCAP_HEADERS];
    uint8_t *ip = head + 16, *udp = ip + 20;
    uint64_t time_ns = pcap_time_ns(now_ns);
    uint32_t sum = 0;
    int i;
    if (file == NULL || length > PCAP_LARGEST)
        return;
    memset(head, 0, sizeof head);
    pcap_store_little(head, (uint32_t)(time_ns / 1000000000u));
    pcap_store_little(head + 4, (uint32_t)(time_ns % 1000000000u));
    pcap_store_little(head + 8, length + PCAP_HEADERS);
    pcap_store_little(head + 12, length + PCAP_HEADERS);
    ip[0] = 0x45;
    pcap_store_big(ip + 2, length + PCAP_HEADERS, 2);
    ip[8] = 64;
    ip[9] = 17;
    pcap_address(ip + 12, from, 0);
    pcap_address(ip + 16, to, is_group);
    for (i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    pcap_store_big(ip + 10, ~(sum + (sum >> 16)), 2);
    pcap_store_big(udp, PCAP_FIRST_PORT + from, 2);
    pcap_store_big(udp + 2, PCAP_FIRST_PORT + to, 2);
    pcap_store_big(udp + 4, length + 8, 2); /* no checksum: 0 */
    fwrite(head, sizeof head, 1, file);
    fwrite(bytes, length, 1, file);
}

#endif /* CCI_TEST_PCAP_H */
