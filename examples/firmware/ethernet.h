/* ethernet.h - UDP over Ethernet, the LAN9118 of QEMU's mps2 boards: the link of firmware.c, included there.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The other end is any program with cci_udp.h. Datagrams wait in the adapter until the library asks for them: there is no
 * buffer here. ARP is answered and asked; fragments, options of IP, and all protocols but UDP are dropped.
 */

/* ---- BOARD: its address ----------------------------------------------------------------------------------------------- */

static const uint8_t own_ip[4] = {10, 0, 2, 15}, netmask[4] = {255, 255, 255, 0}, gateway[4] = {10, 0, 2, 2};

/* ---- BOARD: the adapter ----------------------------------------------------------------------------------------------- */

#define NIC(offset) REGISTER(0x40200000 + (offset))
#define NIC_RX_DATA NIC(0x00)
#define NIC_TX_DATA NIC(0x20)
#define NIC_RX_STATUS NIC(0x40)
#define NIC_TX_STATUS NIC(0x48)
#define NIC_INTERRUPT_PIN NIC(0x54)
#define NIC_INTERRUPT_STATE NIC(0x58)
#define NIC_INTERRUPT_ENABLE NIC(0x5C)
#define NIC_RX_CONFIG NIC(0x6C)
#define NIC_TX_CONFIG NIC(0x70)
#define NIC_CONFIG NIC(0x74)
#define NIC_RX_FIFO NIC(0x7C) /* frames that wait, in bits 16 to 23 */
#define NIC_TX_FIFO NIC(0x80) /* free bytes, in bits 0 to 15; frames that have been sent, in bits 16 to 23 */
#define NIC_POWER NIC(0x84)
#define NIC_MAC_COMMAND NIC(0xA4)
#define NIC_MAC_DATA NIC(0xA8)
#define INTERRUPT_FRAME (1u << 3)
#define INTERRUPT_CABLE (1u << 18)

static void mac_write(uint32_t index, uint32_t value) {
    NIC_MAC_DATA = value;
    NIC_MAC_COMMAND = 1u << 31 | index;
    while (NIC_MAC_COMMAND >> 31) {
    }
}

static uint32_t mac_read(uint32_t index) {
    NIC_MAC_COMMAND = 3u << 30 | index;
    while (NIC_MAC_COMMAND >> 31) {
    }
    return NIC_MAC_DATA;
}

/* The transceiver's registers lie behind two of the MAC's. */
static void phy_write(uint32_t index, uint32_t value) {
    mac_write(7, value);
    mac_write(6, 1u << 11 | index << 6 | 2);
    while (mac_read(6) & 1) {
    }
}

static uint32_t phy_read(uint32_t index) {
    mac_write(6, 1u << 11 | index << 6);
    while (mac_read(6) & 1) {
    }
    return mac_read(7);
}

static uint8_t own_mac[6];

/* An interrupt only ends the sleep: it is enabled by who sleeps, and all else is done outside of it. */
static void on_nic(void) {
    NIC_INTERRUPT_ENABLE = 0;
}

#define LINK_VECTORS [29] = on_nic

static void start_link(void) {
    uint32_t i;
    NIC_CONFIG = 1; /* reset */
    while ((NIC_CONFIG & 1) || !(NIC_POWER & 1)) {
    }
    NIC_CONFIG = 1u << 20 | 5u << 16; /* 5 KB for what leaves, frames leave when they are whole */
    NIC_RX_CONFIG = 2u << 8;          /* two bytes before each frame: what is behind its headers is aligned */
    NIC_TX_CONFIG = 2;
    NIC_INTERRUPT_PIN = 0x111; /* on, active high, driven */
    for (i = 0; i < 6; i++) own_mac[i] = (uint8_t)(mac_read(i < 4 ? 3 : 2) >> 8 * (i & 3)); /* from its EEPROM */
    phy_write(30, 0x10);                       /* an interrupt when the cable is pulled out */
    phy_write(0, 0x1200);                      /* speed and duplex are negotiated */
    mac_write(1, 1u << 20 | 1u << 3 | 1u << 2); /* full duplex, both directions */
    enable_interrupt(13);
}

/* Has something come that nobody has looked at? Interrupts are held back meanwhile; what comes from now on makes one. */
static int link_has_input(void) {
    if ((NIC_INTERRUPT_STATE & INTERRUPT_CABLE) && (phy_read(29) & 0x10)) unplugs++;
    NIC_INTERRUPT_STATE = INTERRUPT_FRAME | INTERRUPT_CABLE;
    NIC_INTERRUPT_ENABLE = INTERRUPT_FRAME | INTERRUPT_CABLE;
    return (NIC_RX_FIFO >> 16 & 0xff) != 0;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------ */

/* Two bytes that mean nothing, 14 of Ethernet, 20 of IPv4 and 8 of UDP; or 28 of ARP. */
#define HEADERS 44u
#define HEAD_ETHERNET 2u
#define HEAD_IP 16u
#define HEAD_UDP 36u

/* Numbers in packets are big-endian. */
static void put16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static uint32_t get16(const uint8_t *at) {
    return (uint32_t)at[0] << 8 | at[1];
}

/* The sum of the Internet's checksum [RFC 1071] goes on with more bytes; `at`: how many came before. */
static uint32_t sum_on(uint32_t sum, uint32_t at, const void *data, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)data;
    uint32_t i;
    for (i = 0; i < length; i++) sum += (uint32_t)bytes[i] << ((at + i) & 1 ? 0 : 8);
    return sum;
}

static uint32_t fold(uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* What UDP's checksum takes of the headers: addresses, protocol and length, then its own header. */
static uint32_t sum_of_udp(const uint8_t *head) {
    return sum_on(17 + get16(head + HEAD_UDP + 4), 0, head + HEAD_IP + 12, 16);
}

/* Begins a frame of so many bytes, headers included, if the adapter has room for it. */
static int begin_frame(uint32_t length) {
    while (NIC_TX_FIFO >> 16 & 0xff) (void)NIC_TX_STATUS;
    if ((NIC_TX_FIFO & 0xffff) < length + 16) return 0;
    NIC_TX_DATA = HEAD_ETHERNET << 16 | 1u << 13 | 1u << 12 | (length - HEAD_ETHERNET);
    NIC_TX_DATA = length - HEAD_ETHERNET;
    return 1;
}

/* Bytes of the frame, which the adapter takes in words. */
static void put_bytes(uint32_t *word, uint32_t at, const void *data, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)data;
    uint32_t i;
    for (i = 0; i < length; i++) {
        *word |= (uint32_t)bytes[i] << 8 * ((at + i) & 3);
        if (((at + i) & 3) != 3) continue;
        NIC_TX_DATA = *word;
        *word = 0;
    }
}

/* ---- ARP [RFC 826] ------------------------------------------------------------------------------------------------------ */

#define NEIGHBOURS 8u
static struct {
    uint8_t ip[4], mac[6];
} neighbours[NEIGHBOURS];
static uint32_t next_neighbour;

/* Who on this network takes what is for `ip`. */
static const uint8_t *next_hop(const uint8_t *ip) {
    uint32_t i;
    for (i = 0; i < 4; i++)
        if ((ip[i] ^ own_ip[i]) & netmask[i]) return gateway;
    return ip;
}

static const uint8_t *mac_of(const uint8_t *ip) {
    uint32_t i;
    for (i = 0; i < NEIGHBOURS; i++)
        if (memcmp(neighbours[i].ip, ip, 4) == 0) return neighbours[i].mac;
    return NULL;
}

static void learn(const uint8_t *ip, const uint8_t *mac) {
    uint32_t i = 0;
    if (next_hop(ip) != ip) return;
    while (i < NEIGHBOURS && memcmp(neighbours[i].ip, ip, 4) != 0) i++;
    if (i == NEIGHBOURS) i = next_neighbour++ % NEIGHBOURS;
    memcpy(neighbours[i].ip, ip, 4);
    memcpy(neighbours[i].mac, mac, 6);
}

/* A question (1) to all, with `mac` NULL, or an answer (2). */
static void send_arp(uint32_t operation, const uint8_t *ip, const uint8_t *mac) {
    static const uint8_t fixed[8] = {8, 6, 0, 1, 8, 0, 6, 4};
    uint8_t head[HEADERS];
    uint32_t word = 0;
    memset(head, 0, sizeof head);
    memset(head + 2, 0xff, 6);
    if (mac) memcpy(head + 2, mac, 6);
    if (mac) memcpy(head + 34, mac, 6);
    memcpy(head + 8, own_mac, 6);
    memcpy(head + 14, fixed, sizeof fixed);
    put16(head + 22, operation);
    memcpy(head + 24, own_mac, 6);
    memcpy(head + 30, own_ip, 4);
    memcpy(head + 40, ip, 4);
    if (begin_frame(HEADERS)) put_bytes(&word, 0, head, HEADERS);
}

static void take_arp(const uint8_t *head) {
    const uint32_t operation = get16(head + 22);
    uint8_t ip[4], mac[6];
    if (get16(head + 16) != 1 || get16(head + 18) != 0x800 || memcmp(head + 40, own_ip, 4) != 0) return;
    memcpy(mac, head + 24, 6);
    memcpy(ip, head + 30, 4);
    learn(ip, mac);
    if (operation == 1) send_arp(2, ip, mac);
}

/* ---- the link: UDP ------------------------------------------------------------------------------------------------------ */

/* An address of the link: 4 bytes of IPv4, 2 of the port. */

static int link_open(cci_device_t *device, const char *service, int want_handle, void **link, cci_link_info_t *info) {
    (void)device, (void)service, (void)want_handle;
    *link = neighbours;
    info->mtu = BOARD_UDP_MTU;
    info->receive_window = 6 * BOARD_UDP_MTU; /* what the adapter keeps while the program is busy */
    return CCI_SUCCESS;
}

static void link_close(void *link) {
    (void)link;
}

static void write_headers(uint8_t *head, const cci_link_tx_t *tx, const uint8_t *mac) {
    static uint32_t identification;
    uint32_t i, at, sum;
    memset(head, 0, HEADERS);
    memcpy(head + HEAD_ETHERNET, mac, 6);
    memcpy(head + HEAD_ETHERNET + 6, own_mac, 6);
    put16(head + HEAD_ETHERNET + 12, 0x800);
    put16(head + HEAD_IP, 0x4500);
    put16(head + HEAD_IP + 2, 28 + tx->length);
    put16(head + HEAD_IP + 4, identification++);
    put16(head + HEAD_IP + 6, 0x4000); /* not to be fragmented */
    put16(head + HEAD_IP + 8, 64 << 8 | 17);
    memcpy(head + HEAD_IP + 12, own_ip, 4);
    memcpy(head + HEAD_IP + 16, tx->to->bytes, 4);
    put16(head + HEAD_IP + 10, ~fold(sum_on(0, 0, head + HEAD_IP, 20)));
    put16(head + HEAD_UDP, BOARD_PORT);
    memcpy(head + HEAD_UDP + 2, tx->to->bytes + 4, 2);
    put16(head + HEAD_UDP + 4, 8 + tx->length);
    sum = sum_of_udp(head);
    for (i = 0, at = 0; i < tx->piece_count; at += tx->piece[i++].length)
        sum = sum_on(sum, at, tx->piece[i].data, tx->piece[i].length);
    sum = ~fold(sum) & 0xffff;
    put16(head + HEAD_UDP + 6, sum ? sum : 0xffff);
}

/* What the adapter has no room for is not taken, and comes again. Whose hardware address is not known is asked for it, and the
 * datagram is lost: it, too, comes again. */
static int link_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    (void)link;
    for (i = 0; i < count; i++) {
        uint8_t head[HEADERS];
        uint32_t piece, word = 0, at = HEADERS;
        const uint8_t *ip = next_hop(tx[i].to->bytes), *mac = mac_of(ip);
        if (!mac) {
            send_arp(1, ip, NULL);
            continue;
        }
        write_headers(head, &tx[i], mac);
        if (!begin_frame(HEADERS + tx[i].length)) break;
        put_bytes(&word, 0, head, HEADERS);
        for (piece = 0; piece < tx[i].piece_count; at += tx[i].piece[piece++].length)
            put_bytes(&word, at, tx[i].piece[piece].data, tx[i].piece[piece].length);
        if (at & 3) NIC_TX_DATA = word;
    }
    return i;
}

/* Bytes of the datagram whose headers these are, `most` at most; 0: it is none, or none for us. */
static uint32_t look_at_headers(const uint8_t *head, uint32_t most) {
    const uint32_t length = get16(head + HEAD_UDP + 4);
    if (get16(head + HEAD_ETHERNET + 12) != 0x800 || head[HEAD_IP] != 0x45 || head[HEAD_IP + 9] != 17) return 0;
    if ((get16(head + HEAD_IP + 6) & 0x3fff) != 0 || memcmp(head + HEAD_IP + 16, own_ip, 4) != 0) return 0;
    if (fold(sum_on(0, 0, head + HEAD_IP, 20)) != 0xffff || get16(head + HEAD_UDP + 2) != BOARD_PORT) return 0;
    if (length < 8 || length - 8 > most || get16(head + HEAD_IP + 2) != 20 + length) return 0;
    return length - 8;
}

/* Reads words of the frame as they come, and leaves out what there is no space for. */
static void read_words(uint8_t *to, uint32_t words) {
    for (; words > 0; words--) {
        uint32_t word = NIC_RX_DATA;
        if (!to) continue;
        memcpy(to, &word, 4);
        to += 4;
    }
}

/* Takes a frame out of the adapter: 1 when it was a datagram. */
static int take_frame(cci_link_rx_t *rx, uint32_t status) {
    const uint32_t size = status >> 16 & 0x3fff; /* with four bytes of a checksum, which the adapter has looked at */
    const uint32_t words = (HEAD_ETHERNET + size + 3) / 4;
    uint32_t length, sum;
    uint8_t head[HEADERS];
    if ((status & 1u << 15) || HEAD_ETHERNET + size < HEADERS + 4) {
        read_words(NULL, words);
        return 0;
    }
    read_words(head, HEADERS / 4);
    length = look_at_headers(head, HEAD_ETHERNET + size - 4 - HEADERS);
    if (length == 0 || (length + 3) / 4 > rx->capacity / 4) {
        read_words(NULL, words - HEADERS / 4);
        if (get16(head + HEAD_ETHERNET + 12) == 0x806) take_arp(head);
        return 0;
    }
    read_words(rx->data, (length + 3) / 4);
    read_words(NULL, words - HEADERS / 4 - (length + 3) / 4);
    sum = sum_on(sum_of_udp(head), 0, rx->data, length);
    if (get16(head + HEAD_UDP + 6) != 0 && fold(sum) != 0xffff) return 0;
    if (!mac_of(next_hop(head + HEAD_IP + 12))) learn(next_hop(head + HEAD_IP + 12), head + HEAD_ETHERNET + 6);
    memset(&rx->from, 0, sizeof rx->from);
    memcpy(rx->from.bytes, head + HEAD_IP + 12, 4);
    memcpy(rx->from.bytes + 4, head + HEAD_UDP, 2);
    rx->length = rx->segment = length;
    rx->is_group = 0;
    return 1;
}

static int link_receive(void *link, cci_link_rx_t *rx, int count) {
    (void)link, (void)count;
    while (NIC_RX_FIFO >> 16 & 0xff)
        if (take_frame(rx, NIC_RX_STATUS)) return 1;
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
