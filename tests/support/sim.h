/* sim.h - a simulated network as a CCI link: many endpoints in one thread, virtual time, one seed.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     sim_reset();                         settings back to a perfect network, clock to zero
 *     sim.loss_per_mille = 50;             make it worse
 *     setup.transports = sim_transports;   hand it to cci_setup()
 *
 * Addresses are "sim://17" (an endpoint) and "sim://g5" (a multicast group). A service is a decimal number.
 *
 * TIME is virtual. A poll and a datagram each cost a little of it. When all endpoints were polled and nothing was there,
 * the clock runs ahead, slowly at first, then in steps of up to a millisecond, but never past the next arrival; so any
 * loop that polls gets on, and thirty seconds of time-out take milliseconds. Everything that is decided by chance comes
 * from `seed`: the same calls give the same run.
 *
 * SIM_PCAP in the environment names a file that gets what is sent, as it is sent, before the network does its worst. What a
 * test injects is not in it: nobody sent that. (See pcap.h for the form.)
 *
 * A test that knows when the next thing is due may drive the clock itself: sim.is_driven stops the running ahead, and
 * sim_next_arrival_ns() says when a datagram comes. It may also be the network: sim_route, where it is set, is handed
 * every datagram that an endpoint sends, and puts on the heap what is to arrive.
 *
 * A call that blocks in this one thread can't be answered unless somebody polls the peer: sim_idle, where it is set, is
 * called then.
 */
#ifndef CCI_TEST_SIM_H
#define CCI_TEST_SIM_H

#include "cci.h"
#include "tests/support/pcap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define SIM_FN static __attribute__((unused))
#else
#define SIM_FN static
#endif

#define SIM_MAX_ENDPOINTS 64
#define SIM_MAX_GROUPS 16
#define SIM_FIRST_FREE_NUMBER 1000u
#define SIM_MAX_IDLE_STEP_NS 1000000u
#define SIM_DEVICE_COUNT 2

/* A datagram on its way, or arrived and not yet received. */
typedef struct sim_datagram {
    uint64_t due_ns;
    uint64_t order; /* datagrams that are due at the same time arrive in the order in which they were sent */
    cci_link_addr_t from;
    cci_link_addr_t to;
    struct sim_datagram *next;
    uint32_t length;
    uint32_t is_group, codepoint;
    uint8_t bytes[1];
} sim_datagram_t;

typedef struct sim_endpoint {
    uint32_t number;
    uint32_t device;
    cci_link_addr_t address;
    cci_link_addr_t groups[SIM_MAX_GROUPS];
    int group_count;
    sim_datagram_t *first, *last; /* arrived */
    size_t waiting_bytes;
    uint64_t clock_ahead_ns; /* of this endpoint's clock, before that of the network */
    uint32_t mtu;
    int is_readable;         /* as the library armed the OS handle */
    uint64_t wake_ns;        /* by this endpoint's clock */
    cci_link_paths_t paths;
} sim_endpoint_t;

typedef struct sim_state {
    /* settings */
    uint64_t seed;
    uint32_t loss_per_mille;
    uint32_t refuse_per_mille;    /* so often the link takes no more datagrams now */
    uint32_t duplicate_per_mille;
    uint32_t reorder_per_mille;   /* this share is held back by up to reorder_ns */
    uint64_t reorder_ns;
    uint64_t delay_ns;            /* one way */
    uint64_t jitter_ns;           /* added to it, up to */
    uint32_t mtu;                 /* of the device; larger datagrams can't be sent */
    uint32_t ecn;                 /* as in cci_link_info_t */
    uint32_t mark_per_mille;      /* so many datagrams with ECT(0) get CE */
    uint32_t path_mtu;            /* 0 or: larger datagrams vanish on the way */
    uint32_t base_mtu;            /* as in cci_link_info_t */
    uint32_t noise_per_mille;     /* so many datagrams are followed by a mutilated copy of themselves */
    uint32_t flip_per_mille;      /* in so many datagrams one to three bits are turned over */
    uint32_t crc;                 /* as in cci_link_info_t */
    uint64_t memory_limit;        /* as in cci_link_info_t */
    uint32_t probe_idle_s;        /* likewise */
    uint32_t interfaces;          /* above 1: endpoints tell so many addresses, of which the first alone can be reached */
    uint64_t bytes_per_second;    /* 0: unlimited; otherwise a bottleneck with a queue of queue_bytes */
    uint64_t queue_bytes;
    size_t inbox_bytes;           /* what waits unreceived beyond this is lost, as with a socket buffer */
    uint64_t tick_ns;             /* what a poll or a datagram costs */
    int up[SIM_DEVICE_COUNT];
    /* state */
    uint64_t now_ns;
    uint64_t random;
    uint64_t order;
    uint64_t wire_free_ns;
    uint64_t idle_polls;
    uint64_t idle_step_ns;
    uint32_t next_number;
    sim_endpoint_t *endpoints[SIM_MAX_ENDPOINTS];
    int endpoint_count;
    sim_datagram_t **heap;
    size_t heap_count, heap_capacity;
    int in_idle;
    int is_driven; /* the test moves the clock */
    /* counters */
    uint64_t sent_count, lost_count, duplicated_count, noise_count, delivered_count, oversized_count, overflow_count;
    uint64_t flipped_count;
    uint64_t sent_bytes;
} sim_state_t;

static sim_state_t sim;
static void (*sim_idle)(void);
static void (*sim_route)(const sim_datagram_t *datagram); /* the datagram stays the caller's */

/* ---- chance ----------------------------------------------------------------------------------------------------- */

/* xorshift64*: small, and the same everywhere. */
SIM_FN uint64_t sim_random(void) {
    sim.random ^= sim.random >> 12;
    sim.random ^= sim.random << 25;
    sim.random ^= sim.random >> 27;
    return sim.random * 0x2545F4914F6CDD1Du;
}

SIM_FN uint64_t sim_below(uint64_t limit) {
    return limit == 0 ? 0 : (sim_random() >> 11) % limit;
}

SIM_FN int sim_happens(uint32_t per_mille) {
    return per_mille != 0 && sim_below(1000) < per_mille;
}

/* ---- datagrams on their way: a heap ------------------------------------------------------------------------------ */

SIM_FN int sim_earlier(const sim_datagram_t *a, const sim_datagram_t *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

SIM_FN void sim_heap_push(sim_datagram_t *datagram) {
    size_t at = sim.heap_count;
    if (sim.heap_count == sim.heap_capacity) {
        sim.heap_capacity = sim.heap_capacity == 0 ? 256 : sim.heap_capacity * 2;
        sim.heap = (sim_datagram_t **)realloc((void *)sim.heap, sim.heap_capacity * sizeof *sim.heap);
        if (sim.heap == NULL) {
            abort();
        }
    }
    sim.heap_count++;
    while (at > 0 && sim_earlier(datagram, sim.heap[(at - 1) / 2])) {
        sim.heap[at] = sim.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim.heap[at] = datagram;
}

SIM_FN sim_datagram_t *sim_heap_pop(void) {
    sim_datagram_t *top = sim.heap[0];
    sim_datagram_t *last = sim.heap[--sim.heap_count];
    size_t at = 0;
    for (;;) {
        size_t below = 2 * at + 1;
        if (below >= sim.heap_count) {
            break;
        }
        if (below + 1 < sim.heap_count && sim_earlier(sim.heap[below + 1], sim.heap[below])) {
            below++;
        }
        if (!sim_earlier(sim.heap[below], last)) {
            break;
        }
        sim.heap[at] = sim.heap[below];
        at = below;
    }
    sim.heap[at] = last;
    return top;
}

/* ---- arrival ------------------------------------------------------------------------------------------------------- */

SIM_FN int sim_is_member(const sim_endpoint_t *endpoint, const cci_link_addr_t *group) {
    int i;
    for (i = 0; i < endpoint->group_count; i++) {
        if (memcmp(&endpoint->groups[i], group, sizeof *group) == 0) {
            return 1;
        }
    }
    return 0;
}

SIM_FN sim_datagram_t *sim_copy(const sim_datagram_t *from) {
    sim_datagram_t *copy = (sim_datagram_t *)malloc(sizeof *copy + from->length);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, from, offsetof(sim_datagram_t, bytes) + from->length);
    return copy;
}

SIM_FN void sim_arrive(sim_endpoint_t *endpoint, sim_datagram_t *datagram) {
    if (sim.up[endpoint->device] <= 0 || endpoint->waiting_bytes + datagram->length > sim.inbox_bytes) {
        sim.overflow_count++;
        free(datagram);
        return;
    }
    datagram->next = NULL;
    if (endpoint->last != NULL) {
        endpoint->last->next = datagram;
    } else {
        endpoint->first = datagram;
    }
    endpoint->last = datagram;
    endpoint->waiting_bytes += datagram->length;
    sim.delivered_count++;
}

SIM_FN void sim_deliver(void) {
    while (sim.heap_count > 0 && sim.heap[0]->due_ns <= sim.now_ns) {
        sim_datagram_t *datagram = sim_heap_pop();
        int i;
        for (i = 0; i < sim.endpoint_count; i++) {
            sim_endpoint_t *endpoint = sim.endpoints[i];
            if (datagram->is_group ? sim_is_member(endpoint, &datagram->to)
                                   : memcmp(&endpoint->address, &datagram->to, sizeof datagram->to) == 0) {
                sim_arrive(endpoint, sim_copy(datagram));
            }
        }
        free(datagram);
    }
}

/* The clock goes to `then`, stopping nowhere: the caller sees to it that nothing is due before. */
SIM_FN void sim_advance_to(uint64_t then_ns) {
    if (then_ns > sim.now_ns) {
        sim.now_ns = then_ns;
    }
    sim_deliver();
}

SIM_FN uint64_t sim_next_arrival_ns(void) {
    return sim.heap_count > 0 ? sim.heap[0]->due_ns : UINT64_MAX;
}

/* How far the clock may run before the next arrival. */
SIM_FN uint64_t sim_until_next(uint64_t limit_ns) {
    if (sim.heap_count > 0) {
        uint64_t due_ns = sim.heap[0]->due_ns;
        uint64_t ahead_ns = due_ns > sim.now_ns ? due_ns - sim.now_ns : 0;
        return ahead_ns < limit_ns ? ahead_ns : limit_ns;
    }
    return limit_ns;
}

SIM_FN void sim_was_busy(void) {
    sim.idle_polls = 0;
    sim.idle_step_ns = 1000;
}

SIM_FN void sim_was_idle(void) {
    sim.idle_polls++;
    if (sim.is_driven || sim.idle_polls < 2 * (uint64_t)sim.endpoint_count) {
        return;
    }
    sim.idle_polls = (uint64_t)sim.endpoint_count; /* from now on one step per round */
    sim_advance_to(sim.now_ns + sim_until_next(sim.idle_step_ns));
    if (sim.idle_step_ns < SIM_MAX_IDLE_STEP_NS) {
        sim.idle_step_ns *= 2;
    }
}

/* ---- sending --------------------------------------------------------------------------------------------------------- */

SIM_FN void sim_launch(sim_datagram_t *datagram) {
    datagram->due_ns = sim.now_ns + sim.delay_ns + sim_below(sim.jitter_ns);
    if (sim_happens(sim.reorder_per_mille)) {
        datagram->due_ns += sim_below(sim.reorder_ns);
    }
    if (sim.bytes_per_second != 0) {
        uint64_t start_ns = sim.wire_free_ns > sim.now_ns ? sim.wire_free_ns : sim.now_ns;
        uint64_t queued_bytes = (start_ns - sim.now_ns) / 1000u * (sim.bytes_per_second / 1000u) / 1000u;
        if (queued_bytes > sim.queue_bytes) {
            sim.lost_count++;
            free(datagram);
            return;
        }
        sim.wire_free_ns = start_ns + (uint64_t)datagram->length * 1000000u / (sim.bytes_per_second / 1000u + 1);
        datagram->due_ns += sim.wire_free_ns - sim.now_ns;
    }
    datagram->order = sim.order++;
    sim_heap_push(datagram);
}

/* A copy that is of no use to anybody: shortened, lengthened by garbage, or all garbage, and the beginning is always
 * scrambled, so that it can't be mistaken for an authentic datagram that was changed on the way (which nothing short of
 * encryption detects). The first byte often stays: it is the version, without which nothing else is looked at. */
SIM_FN void sim_launch_noise(const sim_datagram_t *original) {
    uint32_t length = (uint32_t)sim_below(original->length + 64u);
    sim_datagram_t *noise = (sim_datagram_t *)malloc(sizeof *noise + length);
    uint32_t i;
    uint32_t scrambled = sim_happens(300) ? length : 40;
    if (noise == NULL) {
        abort();
    }
    memcpy(noise, original, offsetof(sim_datagram_t, bytes));
    noise->length = length;
    for (i = 0; i < length; i++) {
        noise->bytes[i] = i < original->length ? original->bytes[i] : (uint8_t)sim_random();
        if (i < scrambled && !(i < 2 && sim_happens(800))) {
            noise->bytes[i] = (uint8_t)(sim_random() >> 32);
        }
    }
    sim.noise_count++;
    sim_launch(noise);
}

/* A checksum of 32 bits notices up to three wrong bits always, four and more only nearly always. */
SIM_FN void sim_flip(sim_datagram_t *datagram) {
    uint64_t flips = 1 + sim_below(3);
    while (flips-- > 0 && datagram->length > 0) {
        uint64_t bit = sim_below((uint64_t)datagram->length * 8);
        datagram->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    sim.flipped_count++;
}

SIM_FN sim_datagram_t *sim_perhaps_flipped(const sim_datagram_t *from) {
    sim_datagram_t *copy = sim_copy(from);
    if (sim_happens(sim.flip_per_mille)) {
        sim_flip(copy);
    }
    return copy;
}

SIM_FN void sim_put(const cci_link_addr_t *from, const cci_link_addr_t *to, const sim_datagram_t *datagram) {
    (void)from;
    (void)to;
    if (sim.path_mtu != 0 && datagram->length > sim.path_mtu) {
        sim.oversized_count++;
        return;
    }
    if (sim_happens(sim.noise_per_mille)) {
        sim_launch_noise(datagram);
    }
    if (sim_happens(sim.loss_per_mille)) {
        sim.lost_count++;
        return;
    }
    if (sim_happens(sim.duplicate_per_mille)) {
        sim.duplicated_count++;
        sim_launch(sim_perhaps_flipped(datagram));
    }
    sim_launch(sim_perhaps_flipped(datagram));
}

/* Puts any bytes on the network, as if `from` had sent them. */
SIM_FN void sim_inject(uint32_t from_number, uint32_t to_number, const void *bytes, uint32_t length) {
    sim_datagram_t *datagram = (sim_datagram_t *)calloc(1, sizeof *datagram + length);
    if (datagram == NULL) {
        abort();
    }
    datagram->from.bytes[0] = datagram->to.bytes[0] = 1;
    memcpy(datagram->from.bytes + 4, &from_number, 4);
    memcpy(datagram->to.bytes + 4, &to_number, 4);
    datagram->length = length;
    memcpy(datagram->bytes, bytes, length);
    sim_launch(datagram);
}

/* ---- the link ------------------------------------------------------------------------------------------------------- */

SIM_FN void sim_make_address(cci_link_addr_t *address, uint8_t kind, uint32_t number) {
    memset(address, 0, sizeof *address);
    address->bytes[0] = kind;
    memcpy(address->bytes + 4, &number, 4);
}

SIM_FN int sim_parse_number(const char *text, uint32_t *number) {
    char *end = NULL;
    unsigned long long value; /* more than 32 bits, everywhere */
    if (text[0] < '0' || text[0] > '9') {
        return CCI_EINVAL;
    }
    value = strtoull(text, &end, 10);
    if (*end != '\0' || value > 0xffffffffu) {
        return CCI_EINVAL;
    }
    *number = (uint32_t)value;
    return CCI_SUCCESS;
}

SIM_FN int sim_number_is_taken(uint32_t number) {
    int i;
    for (i = 0; i < sim.endpoint_count; i++) {
        if (sim.endpoints[i]->number == number) {
            return 1;
        }
    }
    return 0;
}

SIM_FN int sim_own(void *link, uint32_t number, cci_link_addr_t *own) {
    sim_make_address(own, 1, ((sim_endpoint_t *)link)->number + number * 1000000u);
    return number < sim.interfaces;
}

SIM_FN int sim_path(void *link, uint32_t number, const cci_link_addr_t *told, cci_link_addr_t *path) {
    (void)link;
    *path = *told;
    path->bytes[1] = 0;
    return number == 0;
}

SIM_FN int sim_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    sim_endpoint_t *endpoint;
    uint32_t number = 0;
    (void)want_os_handle; /* there is no descriptor to sleep on: time stands still then */
    if (sim.endpoint_count == SIM_MAX_ENDPOINTS) {
        return CCI_ENOMEM;
    }
    if (service != NULL) {
        if (sim_parse_number(service, &number) != CCI_SUCCESS) {
            return CCI_EINVAL;
        }
        if (sim_number_is_taken(number)) {
            return CCI_EBUSY;
        }
    } else {
        number = sim.next_number++;
    }
    endpoint = (sim_endpoint_t *)calloc(1, sizeof *endpoint);
    if (endpoint == NULL) {
        return CCI_ENOMEM;
    }
    endpoint->number = number;
#ifdef CCI_TINY
    (void)device;
#else
    endpoint->device = *(const uint8_t *)cci_device_data(device);
#endif
    sim_make_address(&endpoint->address, 1, number);
    sim.endpoints[sim.endpoint_count++] = endpoint;
    endpoint->mtu = sim.mtu;
    endpoint->wake_ns = UINT64_MAX;
    info->mtu = sim.mtu;
    info->base_mtu = sim.base_mtu;
    info->ecn = sim.ecn;
    info->crc = sim.crc;
    info->memory_limit = sim.memory_limit;
    info->probe_idle_s = sim.probe_idle_s;
    info->os_handle = -1;
    endpoint->paths.interface_count = sim.interfaces;
    endpoint->paths.own = sim_own;
    endpoint->paths.path = sim_path;
    if (sim.interfaces > 1) {
        info->paths = &endpoint->paths;
    }
    *link = endpoint;
    return CCI_SUCCESS;
}

SIM_FN void sim_close(void *link) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    int i;
    while (endpoint->first != NULL) {
        sim_datagram_t *next = endpoint->first->next;
        free(endpoint->first);
        endpoint->first = next;
    }
    for (i = 0; i < sim.endpoint_count; i++) {
        if (sim.endpoints[i] == endpoint) {
            sim.endpoints[i] = sim.endpoints[--sim.endpoint_count];
            break;
        }
    }
    free(endpoint);
}

SIM_FN uint32_t sim_number_of(const cci_link_addr_t *address) {
    uint32_t number;
    memcpy(&number, address->bytes + 4, 4);
    return number;
}

/* Writes down what is sent, if the environment asks for it. */
SIM_FN void sim_capture(const sim_datagram_t *datagram) {
    static FILE *file;
    static int asked;
    if (!asked) {
        const char *path = getenv("SIM_PCAP");
        asked = 1;
        if (path != NULL && (file = pcap_create(path)) == NULL) {
            perror(path);
            abort();
        }
    }
    if (file != NULL) {
        pcap_datagram(file, sim.now_ns, sim_number_of(&datagram->from), sim_number_of(&datagram->to),
                      (int)datagram->is_group, datagram->bytes, datagram->length);
    }
}

SIM_FN int sim_send(void *link, const cci_link_tx_t *tx, int count) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    int i;
    for (i = 0; i < count; i++) {
        sim_datagram_t *datagram;
        uint32_t piece, at = 0;
        if (sim_happens(sim.refuse_per_mille)) {
            return i;
        }
        datagram = (sim_datagram_t *)calloc(1, sizeof *datagram + tx[i].length);
        if (datagram == NULL) {
            abort();
        }
        for (piece = 0; piece < tx[i].piece_count; piece++) {
            if (tx[i].piece[piece].length > tx[i].length - at) {
                abort(); /* the pieces are longer than they say together */
            }
            memcpy(datagram->bytes + at, tx[i].piece[piece].data, tx[i].piece[piece].length);
            at += tx[i].piece[piece].length;
        }
        if (at != tx[i].length) {
            abort();
        }
        datagram->length = at;
        datagram->from = endpoint->address;
        datagram->to = *tx[i].to;
        datagram->is_group = tx[i].to->bytes[0] == 2;
        datagram->codepoint = tx[i].codepoint != 0 && sim_happens(sim.mark_per_mille) ? 3 : tx[i].codepoint;
        sim.sent_count++;
        sim.sent_bytes += at;
        sim.now_ns += sim.tick_ns;
        sim_was_busy();
        if (sim.up[endpoint->device] <= 0) {
            sim.lost_count++;
        } else if (at > endpoint->mtu) {
            sim.oversized_count++;
        } else if (sim_route != NULL) {
            sim_route(datagram);
        } else {
            sim_capture(datagram);
            sim_put(&datagram->from, &datagram->to, datagram);
        }
        free(datagram);
    }
    sim_deliver();
    return count;
}

SIM_FN int sim_receive(void *link, cci_link_rx_t *rx, int count) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    int filled = 0;
    sim_advance_to(sim.now_ns + sim.tick_ns);
    while (filled < count && endpoint->first != NULL) {
        sim_datagram_t *datagram = endpoint->first;
        endpoint->first = datagram->next;
        if (endpoint->first == NULL) {
            endpoint->last = NULL;
        }
        endpoint->waiting_bytes -= datagram->length;
        if (datagram->length <= rx[filled].capacity) {
            memcpy(rx[filled].data, datagram->bytes, datagram->length);
            rx[filled].length = rx[filled].segment = datagram->length;
            rx[filled].from = datagram->from;
            rx[filled].group = datagram->to;
            rx[filled].is_group = datagram->is_group;
            rx[filled].codepoint = datagram->codepoint;
            filled++;
        } else {
            sim.oversized_count++;
        }
        free(datagram);
    }
    if (filled > 0) {
        sim_was_busy();
    } else {
        sim_was_idle();
    }
    return filled;
}

SIM_FN uint64_t sim_now(void *link) {
    return sim.now_ns + ((sim_endpoint_t *)link)->clock_ahead_ns;
}

/* For a link with an OS handle: remembers what the library armed it for. */
SIM_FN void sim_arm(void *link, int readable, uint64_t deadline_ns) {
    ((sim_endpoint_t *)link)->is_readable = readable;
    ((sim_endpoint_t *)link)->wake_ns = deadline_ns;
}

SIM_FN int sim_resolve(void *link, const char *address, cci_link_addr_t *to) {
    uint32_t number;
    int is_group = address[0] == 'g';
    (void)link;
    if (strchr(address, ':') != NULL) { /* behind a host, of which there is one */
        address = strchr(address, ':') + 1;
    }
    if (sim_parse_number(address + is_group, &number) != CCI_SUCCESS) {
        return CCI_EINVAL;
    }
    sim_make_address(to, is_group ? 2 : 1, number);
    return CCI_SUCCESS;
}

SIM_FN int sim_text(void *link, const cci_link_addr_t *address, char *text, size_t size) {
    (void)link;
    return snprintf(text, size, "%s%lu", address->bytes[0] == 2 ? "g" : "", (unsigned long)sim_number_of(address)) < (int)size
               ? CCI_SUCCESS
               : CCI_ERANGE;
}

SIM_FN int sim_address(void *link, char *text, size_t size) {
    return sim_text(link, &((sim_endpoint_t *)link)->address, text, size);
}

/* Numbers that differ in the low 8 bits alone are neighbours. */
SIM_FN uint32_t sim_prefix(void *link, const cci_link_addr_t *address, uint8_t bytes[16]) {
    uint32_t number = sim_number_of(address) >> 8;
    (void)link;
    memcpy(bytes, &number, 4);
    return 4;
}

SIM_FN int sim_group(void *link, const cci_link_addr_t *group, int join) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    int i;
    if (join) {
        if (endpoint->group_count == SIM_MAX_GROUPS) {
            return CCI_ENOBUFS;
        }
        endpoint->groups[endpoint->group_count++] = *group;
        return CCI_SUCCESS;
    }
    for (i = 0; i < endpoint->group_count; i++) {
        if (memcmp(&endpoint->groups[i], group, sizeof *group) == 0) {
            endpoint->groups[i] = endpoint->groups[--endpoint->group_count];
            return CCI_SUCCESS;
        }
    }
    return CCI_ERR_NOT_FOUND;
}

SIM_FN int sim_is_group(void *link, const cci_link_addr_t *to) {
    (void)link;
    return to->bytes[0] == 2;
}

/* The one thread wants to sleep: serve the others, then let time pass. */
SIM_FN void sim_wait(void *link, uint64_t timeout_ns) {
    sim_endpoint_t *endpoint = (sim_endpoint_t *)link;
    uint64_t limit_ns = timeout_ns < SIM_MAX_IDLE_STEP_NS ? timeout_ns : SIM_MAX_IDLE_STEP_NS;
    if (sim_idle != NULL && !sim.in_idle) {
        sim.in_idle = 1;
        sim_idle();
        sim.in_idle = 0;
    }
    sim_deliver();
    if (endpoint->first == NULL) {
        sim_advance_to(sim.now_ns + sim_until_next(limit_ns));
    }
}

SIM_FN void sim_wake(void *link) {
    (void)link;
}

SIM_FN int sim_is_up(void *link) {
    return sim.up[((sim_endpoint_t *)link)->device];
}

static const cci_link_t sim_link = {CCI_LINK_VERSION, sim_open,     sim_close, sim_send, sim_receive, sim_now,
                                    sim_resolve,      sim_address,  sim_group, sim_is_group, sim_wait, sim_wake,
                                    sim_arm,          sim_is_up, sim_text, sim_prefix};

/* ---- the transport ----------------------------------------------------------------------------------------------------- */

/* There are numbers, and else names. */
SIM_FN int sim_service_port(const char *service) {
    uint32_t number;
    return sim_parse_number(service, &number) == CCI_SUCCESS ? (int)(number & 0x7fffffff) : -1;
}

SIM_FN void sim_describe(uint8_t index, cci_device_desc_t *desc) {
    static const char *const names[SIM_DEVICE_COUNT] = {"sim0", "sim1"};
    memset(desc, 0, sizeof *desc);
    desc->name = names[index];
    desc->info = "simulated network";
    desc->up = sim.up[index] > 0;
    desc->priority = 50u - index;
    desc->max_send_size = sim.mtu;
    desc->rate = 1000000000u;
    memset(desc->pci, 0xff, sizeof desc->pci);
    desc->data[0] = index;
    desc->service_port = sim_service_port;
}

SIM_FN int sim_discover(const cci_transport_t *self, void *list, int (*add)(void *list, const cci_device_desc_t *desc),
                        char *why, size_t why_size) {
    uint8_t index;
    (void)self;
    (void)why;
    (void)why_size;
    for (index = 0; index < SIM_DEVICE_COUNT; index++) {
        cci_device_desc_t desc;
        int status;
        sim_describe(index, &desc);
        status = add(list, &desc);
        if (status != CCI_SUCCESS) {
            return status;
        }
    }
    return CCI_SUCCESS;
}

/* Keys: `device` (0 or 1), and `note`, which means nothing. */
SIM_FN int sim_configure(const cci_transport_t *self, const char *name, const char *const *keys, cci_device_desc_t *desc,
                         int *bad_key, char *why, size_t why_size) {
    uint8_t index = 0;
    int i;
    (void)self;
    (void)name;
    for (i = 0; keys[i] != NULL; i++) {
        if (strcmp(keys[i], "device=1") == 0) {
            index = 1;
        } else if (strcmp(keys[i], "device=0") != 0 && strncmp(keys[i], "note=", 5) != 0 &&
                   strncmp(keys[i], "transport=", 10) != 0 && strncmp(keys[i], "priority=", 9) != 0 &&
                   strncmp(keys[i], "default=", 8) != 0) {
            *bad_key = i;
            snprintf(why, why_size, "%s is not a key of the simulated network", keys[i]);
            return CCI_EINVAL;
        }
    }
    sim_describe(index, desc);
    desc->name = name;
    return CCI_SUCCESS;
}

SIM_FN void sim_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    (void)self;
    desc->up = sim.up[desc->data[0]] > 0;
}

static const cci_transport_t sim_transport = {CCI_TRANSPORT_VERSION, "sim",         NULL,        NULL, sim_discover,
                                              sim_configure,         sim_refresh,   &sim_link,   NULL};
static const cci_transport_t *const sim_transports[] = {&sim_transport, NULL};

/* Plugs the device in (1) or out (0), or takes it away for good (-1). */
SIM_FN void sim_set_up(int device, int up) {
    sim.up[device] = up;
}

/* A perfect network and no datagram on it. All endpoints must be closed. */
SIM_FN void sim_reset(void) {
    while (sim.heap_count > 0) {
        free(sim_heap_pop());
    }
    free((void *)sim.heap);
    memset(&sim, 0, sizeof sim);
    sim.seed = sim.random = 0x9e3779b97f4a7c15u;
    sim.reorder_ns = 200000;
    sim.delay_ns = 10000;
    sim.mtu = 1472;
    sim.base_mtu = 0;
    sim.inbox_bytes = 4u << 20;
    sim.queue_bytes = 256u << 10;
    sim.tick_ns = 100;
    sim.up[0] = sim.up[1] = 1;
    sim.now_ns = 1000000000u;
    sim.next_number = SIM_FIRST_FREE_NUMBER;
    sim_idle = NULL;
    sim_route = NULL;
    sim_was_busy();
}

SIM_FN void sim_set_seed(uint64_t seed) {
    sim.seed = seed;
    sim.random = seed * 0x9e3779b97f4a7c15u + 0x1234567u;
    if (sim.random == 0) {
        sim.random = 1;
    }
}

#endif /* CCI_TEST_SIM_H */
