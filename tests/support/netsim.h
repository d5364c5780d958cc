/* netsim.h - a path with a bottleneck, as a CCI link, and TCP-like flows beside ours on it: exact in virtual time.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The network is a dumbbell: all that goes from the left to the right shares one bottleneck, a queue that drops what
 * does not fit behind a line of a given rate; what comes back shares another. Behind the line a packet may be lost by
 * chance, and then takes half of the round trip to arrive. Each packet costs its bytes and the header's of IP and UDP.
 *
 * Time is virtual and goes from event to event: an arrival, an endpoint's deadline (the link hears of it as a program's
 * descriptor would), a TCP timer. Computing takes no time. What is decided by chance comes from one seed, so that the same
 * call gives the same figures on every machine.
 *
 * The TCP-like flows are models of a sender with endless data: slow start, growth as NewReno [RFC 5681] or CUBIC
 * [RFC 9438], loss known by three later acknowledgements, one reduction in each window, a retransmission time-out. Each
 * packet is acknowledged on its own, as selective acknowledgements do in effect.
 *
 * There may be any number of endpoints: those with something to look at stand in a queue (net_next_awake()), and what an
 * endpoint waits for stands with the packets in one heap. An endpoint that is silenced (net_silence()) has lost its network:
 * nothing reaches it, and nothing that it sends leaves. A test may speak for a peer of its own making: net_speaker() gives it an
 * address, and a function that gets what is sent there.
 */
#ifndef CCI_TEST_NETSIM_H
#define CCI_TEST_NETSIM_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cci.h"

#define NET_FN static __attribute__((unused))
#define NET_US UINT64_C(1000)
#define NET_MS UINT64_C(1000000)
#define NET_S UINT64_C(1000000000)
#define NET_MTU 1472u          /* bytes of a datagram on an Ethernet */
#define NET_IP_UDP 28u         /* what a datagram costs besides its bytes */
#define NET_TCP_PAYLOAD 1448u
#define NET_TCP_PACKET 1500u
#define NET_TCP_ACK 52u
#define NET_TCPS 32
#define NET_TCP_RING 65536u    /* packets of a TCP flow between the oldest unacknowledged and the next, at most */

enum { NET_LEFT, NET_RIGHT };
enum { NET_DATAGRAM, NET_TCP_DATA, NET_TCP_ACKNOWLEDGEMENT, NET_WAKE };

/* A packet on its way. */
typedef struct net_packet {
    uint64_t due_ns;
    int kind;
    uint32_t to;      /* endpoint or TCP flow */
    uint32_t from;
    uint64_t number;  /* TCP */
    uint32_t length, codepoint;
    struct net_packet *next;
    uint8_t bytes[1];
} net_packet_t;

/* What the heap compares lies in it: with a hundred thousand packets on the way, each look at one would miss the caches. */
typedef struct net_due {
    uint64_t due_ns, order;
    net_packet_t *packet;
} net_due_t;

/* One direction's line and the queue before it. */
typedef struct net_line {
    uint64_t bytes_per_second, queue_bytes;
    uint32_t loss_per_million;
    uint64_t free_ns;
    int is_policer;                         /* what fits into the queue passes at once: it is a bucket of tokens */
    int has_codel;                          /* the queue is kept short, by marks where packets allow it [RFC 8289] */
    int is_dropping;                        /* CoDel's state, as there */
    uint64_t above_ns, next_drop_ns;        /* 0: below the target */
    uint32_t drop_count, count_before;
    uint64_t packets, dropped, marked, lost, bytes; /* since net_forget() */
    double queued_bytes;                    /* sum of what each packet found */
} net_line_t;

typedef struct net_endpoint {
    int open, side, is_silent;
    uint32_t index;
    net_packet_t *first, *last; /* arrived */
    uint64_t deadline_ns;
    uint64_t wake_ns; /* of the earliest NET_WAKE in the heap */
    int readable;
    int is_queued;    /* among those that are awake */
    struct net_endpoint *next_awake;
    void (*hear)(const uint8_t *bytes, uint32_t length, uint32_t from); /* a speaker's; else NULL */
} net_endpoint_t;

typedef struct net_tcp {
    int active, is_cubic;
    uint64_t start_ns;
    double window, threshold;              /* packets */
    uint64_t next, oldest, largest, recovery; /* packet numbers */
    uint64_t in_flight, delivered;         /* packets; bytes */
    uint64_t heard_ns, srtt_ns;
    uint64_t sent_ns[NET_TCP_RING];
    uint8_t state[NET_TCP_RING];           /* 1: in flight */
    double w_max, k_s, w_estimate;         /* CUBIC */
    uint64_t epoch_ns;
} net_tcp_t;

typedef struct net_state {
    uint64_t seed, random, now_ns, order;
    uint64_t delay_ns;      /* one way */
    uint64_t jitter_ns;     /* added to it, up to; packets keep their order */
    uint64_t late_ns;       /* up to so much later arrives a share of the packets, behind some that left after them */
    uint32_t late_per_million;
    uint32_t buffers;       /* of an endpoint; 0: the default */
    const char *congestion; /* NULL: the default */
    uint32_t ecn;           /* 1: endpoints that are opened use codepoints */
    net_line_t line[2];     /* from the left, from the right */
    uint64_t last_due_ns[2];
    net_endpoint_t **endpoint;
    uint32_t endpoint_count, endpoint_capacity;
    net_endpoint_t *awake, **awake_tail;
    uint32_t memory_limit;  /* of an endpoint; 0: the default */
    uint32_t max_send_size; /* 0: what fits into a datagram; longer messages travel in fragments */
    int next_side;          /* of the endpoint that is opened next */
    net_due_t *heap;
    size_t heap_count, heap_capacity;
} net_state_t;

static net_state_t net;
static net_tcp_t net_tcp[NET_TCPS];

/* ---- chance ---------------------------------------------------------------------------------------------------------- */

/* xorshift64*: small, and the same everywhere. */
NET_FN uint64_t net_random(void) {
    net.random ^= net.random >> 12;
    net.random ^= net.random << 25;
    net.random ^= net.random >> 27;
    return net.random * 0x2545F4914F6CDD1Du;
}

NET_FN uint64_t net_below(uint64_t limit) {
    return limit == 0 ? 0 : (net_random() >> 11) % limit;
}

/* ---- packets on their way: a heap ------------------------------------------------------------------------------------ */

NET_FN int net_earlier(const net_due_t *a, const net_due_t *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

NET_FN void net_push(net_packet_t *packet) {
    size_t at = net.heap_count;
    net_due_t due;
    if (net.heap_count == net.heap_capacity) {
        net.heap_capacity = net.heap_capacity == 0 ? 1024 : net.heap_capacity * 2;
        net.heap = (net_due_t *)realloc(net.heap, net.heap_capacity * sizeof *net.heap);
        if (net.heap == NULL)
            abort();
    }
    net.heap_count++;
    due.due_ns = packet->due_ns;
    due.order = net.order++;
    due.packet = packet;
    while (at > 0 && net_earlier(&due, &net.heap[(at - 1) / 2])) {
        net.heap[at] = net.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    net.heap[at] = due;
}

NET_FN net_packet_t *net_pop(void) {
    net_packet_t *top = net.heap[0].packet;
    net_due_t last = net.heap[--net.heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= net.heap_count)
            break;
        if (child + 1 < net.heap_count && net_earlier(&net.heap[child + 1], &net.heap[child]))
            child++;
        if (!net_earlier(&net.heap[child], &last))
            break;
        net.heap[at] = net.heap[child];
        at = child;
    }
    net.heap[at] = last;
    return top;
}

/* ---- the line ---------------------------------------------------------------------------------------------------------- */

#define NET_CODEL_TARGET (5 * NET_MS)
#define NET_CODEL_INTERVAL (100 * NET_MS)

/* Does CoDel want to drop or mark the packet that leaves the queue at `start_ns` [RFC 8289 5]? As the line keeps the order of
 * packets, this can be said when they come. */
NET_FN int net_codel(net_line_t *line, uint64_t start_ns) {
    int is_above = 0;
    if (start_ns - net.now_ns < NET_CODEL_TARGET)
        line->above_ns = 0;
    else if (line->above_ns == 0)
        line->above_ns = start_ns + NET_CODEL_INTERVAL;
    else
        is_above = start_ns >= line->above_ns;
    if (!is_above) {
        line->is_dropping = 0;
        return 0;
    }
    if (line->is_dropping) {
        if (start_ns < line->next_drop_ns)
            return 0;
        line->drop_count++;
    } else {
        uint32_t more = line->drop_count - line->count_before;
        line->is_dropping = 1;
        line->drop_count =
            more > 1 && start_ns < line->next_drop_ns + 16 * (uint64_t)NET_CODEL_INTERVAL ? more : 1;
        line->count_before = line->drop_count;
        line->next_drop_ns = start_ns;
    }
    line->next_drop_ns += (uint64_t)((double)NET_CODEL_INTERVAL / sqrt((double)line->drop_count));
    return 1;
}

/* Sends `size` bytes over a line: 1, and when they arrive, or 0 if they never do. *codepoint becomes 3, CE, on the way where
 * the queue marks. */
NET_FN int net_cross(int side, uint32_t size, uint32_t *codepoint, uint64_t *due_ns) {
    net_line_t *line = &net.line[side];
    uint64_t start_ns = line->free_ns > net.now_ns ? line->free_ns : net.now_ns;
    uint64_t queued = (uint64_t)((double)(start_ns - net.now_ns) * 1e-9 * (double)line->bytes_per_second);
    line->packets++;
    line->queued_bytes += (double)queued;
    /* The queue, and what is on the line itself. A short packet needs no less room than a long one: else it would have an
     * advantage that has nothing to do with congestion control. */
    if (queued > line->queue_bytes + NET_TCP_PACKET) {
        line->dropped++;
        return 0;
    }
    if (line->has_codel && net_codel(line, start_ns)) {
        if (*codepoint == 0) {
            line->dropped++;
            return 0;
        }
        *codepoint = 3;
        line->marked++;
    }
    line->free_ns = start_ns + (uint64_t)((double)size * 1e9 / (double)line->bytes_per_second);
    line->bytes += size;
    if (net_below(1000000) < line->loss_per_million) {
        line->lost++;
        return 0;
    }
    *due_ns = (line->is_policer ? net.now_ns : line->free_ns) + net.delay_ns + net_below(net.jitter_ns);
    if (*due_ns < net.last_due_ns[side])
        *due_ns = net.last_due_ns[side];
    net.last_due_ns[side] = *due_ns;
    if (net.late_per_million > 0 && net_below(1000000) < net.late_per_million)
        *due_ns += 1 + net_below(net.late_ns);
    return 1;
}

NET_FN net_packet_t *net_packet(int kind, uint32_t from, uint32_t to, uint32_t length) {
    net_packet_t *packet = (net_packet_t *)calloc(1, sizeof *packet + length);
    if (packet == NULL)
        abort();
    packet->kind = kind;
    packet->from = from;
    packet->to = to;
    packet->length = length;
    return packet;
}

/* ---- TCP-like flows ------------------------------------------------------------------------------------------------------ */

NET_FN void net_tcp_output(net_tcp_t *tcp) {
    while ((double)tcp->in_flight + 1 <= tcp->window && tcp->next - tcp->oldest < NET_TCP_RING - 1) {
        uint64_t due_ns;
        uint32_t codepoint = 0;
        tcp->sent_ns[tcp->next % NET_TCP_RING] = net.now_ns;
        tcp->state[tcp->next % NET_TCP_RING] = 1;
        tcp->in_flight++;
        if (net_cross(NET_LEFT, NET_TCP_PACKET, &codepoint, &due_ns)) {
            net_packet_t *packet = net_packet(NET_TCP_DATA, 0, (uint32_t)(tcp - net_tcp), 0);
            packet->number = tcp->next;
            packet->due_ns = due_ns;
            net_push(packet);
        }
        tcp->next++;
    }
}

NET_FN void net_tcp_start(int index, int is_cubic, uint64_t start_ns) {
    net_tcp_t *tcp = &net_tcp[index];
    memset(tcp, 0, sizeof *tcp);
    tcp->active = 1;
    tcp->is_cubic = is_cubic;
    tcp->start_ns = start_ns;
    tcp->window = 10;
    tcp->threshold = 1e9;
    tcp->heard_ns = start_ns;
}

/* [RFC 9438 4.2 to 4.5] */
NET_FN void net_cubic_grow(net_tcp_t *tcp) {
    double t, target;
    if (tcp->epoch_ns == 0) {
        tcp->epoch_ns = net.now_ns;
        if (tcp->w_max < tcp->window)
            tcp->w_max = tcp->window;
        tcp->k_s = cbrt((tcp->w_max - tcp->window) / 0.4);
        tcp->w_estimate = tcp->window;
    }
    t = (double)(net.now_ns - tcp->epoch_ns) * 1e-9;
    target = 0.4 * pow(t + (double)tcp->srtt_ns * 1e-9 - tcp->k_s, 3) + tcp->w_max;
    if (target > 1.5 * tcp->window)
        target = 1.5 * tcp->window;
    tcp->w_estimate += (tcp->w_estimate < tcp->w_max ? 3 * 0.3 / 1.7 : 1) / tcp->window;
    if (target > tcp->window)
        tcp->window += (target - tcp->window) / tcp->window;
    if (tcp->window < tcp->w_estimate)
        tcp->window = tcp->w_estimate;
}

NET_FN void net_tcp_lost(net_tcp_t *tcp) {
    double factor = tcp->is_cubic ? 0.7 : 0.5;
    if (tcp->is_cubic) {
        tcp->w_max = tcp->window < tcp->w_max ? tcp->window * (1 + factor) / 2 : tcp->window;
        tcp->epoch_ns = 0;
    }
    tcp->window *= factor;
    if (tcp->window < 2)
        tcp->window = 2;
    tcp->threshold = tcp->window;
    tcp->recovery = tcp->next;
}

NET_FN void net_tcp_acknowledged(net_tcp_t *tcp, uint64_t number) {
    uint64_t sample_ns;
    int congested = 0;
    if (number < tcp->oldest || !tcp->state[number % NET_TCP_RING])
        return;
    sample_ns = net.now_ns - tcp->sent_ns[number % NET_TCP_RING];
    tcp->srtt_ns = tcp->srtt_ns == 0 ? sample_ns : (7 * tcp->srtt_ns + sample_ns) / 8;
    tcp->state[number % NET_TCP_RING] = 0;
    tcp->in_flight--;
    tcp->heard_ns = net.now_ns;
    if (number > tcp->largest)
        tcp->largest = number;
    if (number >= tcp->recovery) {
        if (tcp->window < tcp->threshold)
            tcp->window += 1;
        else if (tcp->is_cubic)
            net_cubic_grow(tcp);
        else
            tcp->window += 1 / tcp->window;
    }
    while (tcp->oldest < tcp->next) {
        if (tcp->state[tcp->oldest % NET_TCP_RING]) {
            if (tcp->oldest + 3 > tcp->largest)
                break;
            tcp->state[tcp->oldest % NET_TCP_RING] = 0;
            tcp->in_flight--;
            congested |= tcp->oldest >= tcp->recovery;
        }
        tcp->oldest++;
    }
    if (congested)
        net_tcp_lost(tcp);
    net_tcp_output(tcp);
}

NET_FN uint64_t net_tcp_deadline(const net_tcp_t *tcp) {
    if (!tcp->active)
        return UINT64_MAX;
    return tcp->next == 0 ? tcp->start_ns : tcp->heard_ns + 2 * tcp->srtt_ns + 200 * NET_MS;
}

NET_FN void net_tcp_timer(net_tcp_t *tcp) {
    if (tcp->next > 0) { /* nothing has come for long: all is lost */
        while (tcp->oldest < tcp->next)
            tcp->state[tcp->oldest++ % NET_TCP_RING] = 0;
        tcp->in_flight = 0;
        net_tcp_lost(tcp);
        tcp->window = 1;
    }
    tcp->heard_ns = net.now_ns;
    net_tcp_output(tcp);
}

/* ---- the link -------------------------------------------------------------------------------------------------------------- */

NET_FN void net_address_of(uint32_t index, cci_link_addr_t *address) {
    memset(address, 0, sizeof *address);
    index++;
    memcpy(address->bytes, &index, sizeof index);
}

NET_FN uint32_t net_index_of(const cci_link_addr_t *address) {
    uint32_t index;
    memcpy(&index, address->bytes, sizeof index);
    return index - 1;
}

/* The endpoint has something to look at. */
NET_FN void net_queue(net_endpoint_t *endpoint) {
    if (endpoint->is_queued || endpoint->is_silent || !endpoint->open)
        return;
    endpoint->is_queued = 1;
    endpoint->next_awake = NULL;
    *net.awake_tail = endpoint;
    net.awake_tail = &endpoint->next_awake;
}

NET_FN net_endpoint_t *net_new_endpoint(void) {
    net_endpoint_t *endpoint = (net_endpoint_t *)calloc(1, sizeof *endpoint);
    if (net.endpoint_count == net.endpoint_capacity) {
        net.endpoint_capacity = net.endpoint_capacity == 0 ? 16 : 2 * net.endpoint_capacity;
        net.endpoint = (net_endpoint_t **)realloc((void *)net.endpoint, net.endpoint_capacity * sizeof *net.endpoint);
    }
    if (endpoint == NULL || net.endpoint == NULL)
        abort();
    endpoint->index = net.endpoint_count;
    endpoint->open = 1;
    endpoint->side = net.next_side;
    endpoint->deadline_ns = endpoint->wake_ns = UINT64_MAX;
    net.endpoint[net.endpoint_count++] = endpoint;
    return endpoint;
}

NET_FN int net_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    (void)device;
    (void)service;
    (void)want_os_handle;
    info->mtu = NET_MTU;
    info->base_mtu = 1200;
    info->receive_window = 4u << 20;
    info->send_buf_count = info->recv_buf_count = net.buffers;
    info->max_send_size = net.max_send_size;
    info->memory_limit = net.memory_limit;
    info->congestion = net.congestion;
    info->ecn = net.ecn;
    *link = net_new_endpoint();
    info->os_handle = (int)net.endpoint_count;
    return CCI_SUCCESS;
}

NET_FN void net_close(void *link) {
    net_endpoint_t *endpoint = (net_endpoint_t *)link;
    endpoint->open = 0;
    while (endpoint->first != NULL) {
        net_packet_t *next = endpoint->first->next;
        free(endpoint->first);
        endpoint->first = next;
    }
}

/* Sends a datagram of an endpoint, which is lost or will arrive. */
NET_FN void net_transmit(const net_endpoint_t *endpoint, const cci_link_tx_t *tx) {
    uint32_t piece, at = 0, codepoint = tx->codepoint;
    uint64_t due_ns;
    net_packet_t *packet;
    if (tx->length > NET_MTU || endpoint->is_silent ||
        !net_cross(endpoint->side, tx->length + NET_IP_UDP, &codepoint, &due_ns))
        return;
    packet = net_packet(NET_DATAGRAM, endpoint->index, net_index_of(tx->to), tx->length);
    for (piece = 0; piece < tx->piece_count; piece++) {
        if (tx->piece[piece].length > tx->length - at)
            abort();
        memcpy(packet->bytes + at, tx->piece[piece].data, tx->piece[piece].length);
        at += tx->piece[piece].length;
    }
    packet->codepoint = codepoint;
    packet->due_ns = due_ns;
    net_push(packet);
}

NET_FN int net_send(void *link, const cci_link_tx_t *tx, int count) {
    int i;
    for (i = 0; i < count; i++)
        net_transmit((const net_endpoint_t *)link, &tx[i]);
    return count;
}

NET_FN int net_receive(void *link, cci_link_rx_t *rx, int count) {
    net_endpoint_t *endpoint = (net_endpoint_t *)link;
    int filled = 0;
    while (filled < count && endpoint->first != NULL) {
        net_packet_t *packet = endpoint->first;
        endpoint->first = packet->next;
        memcpy(rx[filled].data, packet->bytes, packet->length);
        rx[filled].length = rx[filled].segment = packet->length;
        net_address_of(packet->from, &rx[filled].from);
        rx[filled].is_group = 0;
        rx[filled].codepoint = packet->codepoint;
        filled++;
        free(packet);
    }
    return filled;
}

NET_FN uint64_t net_clock(void *link) {
    (void)link;
    return net.now_ns;
}

NET_FN int net_resolve(void *link, const char *address, cci_link_addr_t *to) {
    (void)link;
    net_address_of((uint32_t)atoi(address), to);
    return CCI_SUCCESS;
}

NET_FN int net_address(void *link, char *text, size_t size) {
    snprintf(text, size, "%u", (unsigned)((net_endpoint_t *)link)->index);
    return CCI_SUCCESS;
}

/* The heap is to let the endpoint's deadline come. */
NET_FN void net_wake_at(net_endpoint_t *endpoint, uint64_t at_ns) {
    net_packet_t *wake;
    if (at_ns >= endpoint->wake_ns)
        return;
    wake = net_packet(NET_WAKE, 0, endpoint->index, 0);
    wake->due_ns = endpoint->wake_ns = at_ns;
    net_push(wake);
}

NET_FN void net_arm(void *link, int readable, uint64_t deadline_ns) {
    net_endpoint_t *endpoint = (net_endpoint_t *)link;
    endpoint->readable = readable;
    endpoint->deadline_ns = deadline_ns;
    if (readable)
        net_queue(endpoint);
    net_wake_at(endpoint, deadline_ns);
}

NET_FN void net_advance(uint64_t limit_ns);

/* An endpoint that goes waits for answers: meanwhile the network works, and no other program does. */
NET_FN void net_wait(void *link, uint64_t timeout_ns) {
    const net_endpoint_t *endpoint = (const net_endpoint_t *)link;
    uint64_t end_ns = net.now_ns + timeout_ns;
    while (net.now_ns < end_ns && endpoint->first == NULL)
        net_advance(end_ns);
}

static const cci_link_t net_link = {CCI_LINK_VERSION, net_open, net_close, net_send, net_receive, net_clock, net_resolve,
                                    net_address,      NULL,     NULL,      net_wait, NULL,        net_arm,   NULL, NULL,
                                    NULL};

NET_FN int net_discover(const cci_transport_t *self, void *list, int (*add)(void *list, const cci_device_desc_t *desc),
                        char *why, size_t why_size) {
    cci_device_desc_t desc;
    (void)self;
    (void)why;
    (void)why_size;
    memset(&desc, 0, sizeof desc);
    desc.name = "net0";
    desc.info = "simulated path";
    desc.up = 1;
    desc.max_send_size = net.max_send_size > 0 ? net.max_send_size : NET_MTU;
    desc.rate = 1000000000u;
    memset(desc.pci, 0xff, sizeof desc.pci);
    return add(list, &desc);
}

static const cci_transport_t net_transport = {CCI_TRANSPORT_VERSION, "net", NULL, NULL, net_discover, NULL, NULL, &net_link,
                                              NULL};
static const cci_transport_t *const net_transports[] = {&net_transport, NULL};

/* ---- time ------------------------------------------------------------------------------------------------------------------ */

NET_FN void net_arrive_at(net_endpoint_t *endpoint, net_packet_t *packet) {
    packet->next = NULL;
    if (endpoint->first != NULL)
        endpoint->last->next = packet;
    else
        endpoint->first = packet;
    endpoint->last = packet;
    net_queue(endpoint);
}

NET_FN void net_arrive(net_packet_t *packet) {
    if (packet->kind == NET_DATAGRAM) {
        net_endpoint_t *endpoint = packet->to < net.endpoint_count ? net.endpoint[packet->to] : NULL;
        if (endpoint != NULL && endpoint->open && !endpoint->is_silent && endpoint->hear == NULL) {
            net_arrive_at(endpoint, packet);
            return;
        }
        if (endpoint != NULL && endpoint->hear != NULL)
            endpoint->hear(packet->bytes, packet->length, packet->from);
    } else if (packet->kind == NET_WAKE) {
        net_endpoint_t *endpoint = net.endpoint[packet->to];
        endpoint->wake_ns = UINT64_MAX;
        net_queue(endpoint);
    } else if (packet->kind == NET_TCP_DATA) {
        uint64_t due_ns;
        uint32_t codepoint = 0;
        net_tcp[packet->to].delivered += NET_TCP_PAYLOAD;
        if (net_cross(NET_RIGHT, NET_TCP_ACK, &codepoint, &due_ns)) {
            net_packet_t *answer = net_packet(NET_TCP_ACKNOWLEDGEMENT, 0, packet->to, 0);
            answer->number = packet->number;
            answer->due_ns = due_ns;
            net_push(answer);
        }
    } else {
        net_tcp_acknowledged(&net_tcp[packet->to], packet->number);
    }
    free(packet);
}

/* Takes from the heap's top what would wake endpoints whose deadlines have moved to later. */
NET_FN void net_drop_stale_wakes(void) {
    while (net.heap_count > 0 && net.heap[0].packet->kind == NET_WAKE) {
        net_endpoint_t *endpoint = net.endpoint[net.heap[0].packet->to];
        if (endpoint->open && endpoint->deadline_ns <= net.heap[0].due_ns)
            return;
        endpoint->wake_ns = UINT64_MAX;
        free(net_pop());
        if (endpoint->open)
            net_wake_at(endpoint, endpoint->deadline_ns);
    }
}

/* Goes to the next event, but not past `limit_ns`, and lets it happen. */
NET_FN void net_advance(uint64_t limit_ns) {
    uint64_t next_ns;
    uint32_t i;
    net_drop_stale_wakes();
    next_ns = net.heap_count > 0 ? net.heap[0].due_ns : UINT64_MAX;
    for (i = 0; i < NET_TCPS; i++)
        if (net_tcp_deadline(&net_tcp[i]) < next_ns)
            next_ns = net_tcp_deadline(&net_tcp[i]);
    if (next_ns < net.now_ns + NET_US)
        next_ns = net.now_ns + NET_US; /* what is overdue and stays so must not stop the time */
    net.now_ns = next_ns < limit_ns ? next_ns : limit_ns;
    while (net.heap_count > 0 && net.heap[0].due_ns <= net.now_ns) {
        net_arrive(net_pop());
        net_drop_stale_wakes();
    }
    for (i = 0; i < NET_TCPS; i++)
        if (net_tcp_deadline(&net_tcp[i]) <= net.now_ns)
            net_tcp_timer(&net_tcp[i]);
}

/* Takes the next endpoint whose program has something to look at out of the queue; NULL: none has. `last`: the one before,
 * whose program may have left something. */
NET_FN net_endpoint_t *net_next_awake(net_endpoint_t *last) {
    net_endpoint_t *endpoint;
    if (last != NULL && last->first != NULL)
        net_queue(last);
    endpoint = net.awake;
    if (endpoint == NULL)
        return NULL;
    net.awake = endpoint->next_awake;
    if (net.awake == NULL)
        net.awake_tail = &net.awake;
    endpoint->is_queued = 0;
    return endpoint;
}

/* From now on the endpoint has no network, or (0) has one again. What was on its way to it is lost. */
NET_FN void net_silence(uint32_t index, int is_silent) {
    net.endpoint[index]->is_silent = is_silent;
}

/* A peer that a test speaks for: its index. `hear` gets what is sent to it. */
NET_FN uint32_t net_speaker(void (*hear)(const uint8_t *bytes, uint32_t length, uint32_t from)) {
    net_endpoint_t *endpoint = net_new_endpoint();
    endpoint->hear = hear;
    return endpoint->index;
}

/* A speaker says something. */
NET_FN void net_speak(uint32_t index, uint32_t to, const uint8_t *bytes, uint32_t length) {
    cci_link_addr_t address;
    cci_link_tx_t tx;
    net_address_of(to, &address);
    memset(&tx, 0, sizeof tx);
    tx.to = &address;
    tx.length = tx.piece[0].length = length;
    tx.piece_count = 1;
    tx.piece[0].data = bytes;
    net_transmit(net.endpoint[index], &tx);
}

/* Has this endpoint's program something to look at? */
NET_FN int net_awake(uint32_t index) {
    const net_endpoint_t *endpoint = net.endpoint[index];
    return endpoint->open && !endpoint->is_silent && (endpoint->first != NULL || endpoint->readable || endpoint->deadline_ns <= net.now_ns);
}

/* Counts from now on. */
NET_FN void net_forget(void) {
    int i;
    for (i = 0; i < 2; i++) {
        net_line_t *line = &net.line[i];
        line->packets = line->dropped = line->marked = line->lost = line->bytes = 0;
        line->queued_bytes = 0;
    }
}

/* A new network: `rate` in bytes per second each way, queues in hundredths of what is on the way at that rate. */
NET_FN void net_reset(uint64_t seed, uint64_t rate, uint64_t rtt_ns, uint32_t queue_percent, uint32_t loss_per_million) {
    int i;
    while (net.heap_count > 0)
        free(net_pop());
    free(net.heap);
    while (net.endpoint_count > 0)
        free(net.endpoint[--net.endpoint_count]);
    free((void *)net.endpoint);
    memset(&net, 0, sizeof net);
    net.awake_tail = &net.awake;
    memset(net_tcp, 0, sizeof net_tcp);
    net.seed = seed;
    net.random = seed * 0x9e3779b97f4a7c15u + 0x1234567u;
    net.now_ns = NET_S;
    net.delay_ns = rtt_ns / 2;
    for (i = 0; i < 2; i++) {
        net.line[i].bytes_per_second = rate;
        net.line[i].queue_bytes = rate / 1000 * (rtt_ns / NET_US) / 1000 * queue_percent / 100;
        net.line[i].loss_per_million = loss_per_million;
    }
}

#endif /* CCI_TEST_NETSIM_H */
