/* soak_net.h - the network of the soak test: a path for each pair of nodes, each with faults of its own.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A path has one direction, so that loss can be one-sided. All faults are decided by sim_random(), the seed's.
 *
 * Nodes have numbers from NET_FIRST_NODE on, or ports of a service's name. A node can stand behind a translator of addresses: what it sends then comes
 * from another number, and what goes to a number that the translator has forgotten is lost. Besides, nodes can have several
 * interfaces each: interface n of node 1003 has the number 1003 + n * NET_STEP, and the way between two interfaces can be silent.
 */
#ifndef CCI_SOAK_NET_H
#define CCI_SOAK_NET_H

#include "tests/support/sim.h"

#include <unistd.h>

#define NET_MAX_NODES 24
#define NET_FIRST_NODE 1000u
#define NET_FIRST_ALIAS 2000u /* numbers that translators give out */
#define NET_MAX_ALIASES 512u
#define NET_STRANGERS 5000u   /* numbers from here on are of nobody: spoofed senders */
#define NET_MAX_STRANGERS 4096u
#define NET_RECORDED 512u
#define NET_CHALLENGES 1024u /* counters, each of one or a few connections */
#define NET_STEP 100000u /* from the number of one interface of a node to that of the next */

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

/* What has befallen the endpoints, counted: a fault that never happens proves nothing (see --every-fault). */
#define NET_FAULTS(X)                                                                                                 \
    X(LOST, "lost by chance")                                                                                         \
    X(BURST, "lost in a burst")                                                                                       \
    X(ONE_SIDED, "paths bad in one direction")                                                                        \
    X(CUT, "lost in a partition")                                                                                     \
    X(HEALED, "partitions healed")                                                                                    \
    X(QUEUED, "waited in a queue")                                                                                    \
    X(QUEUE_FULL, "lost at a full queue")                                                                             \
    X(TOO_LONG, "longer than the path's MTU")                                                                         \
    X(REPEATED, "repeated")                                                                                           \
    X(OVERTAKEN, "held back")                                                                                         \
    X(DELAYED, "delayed by a millisecond or more")                                                                    \
    X(FLIPPED, "bits flipped")                                                                                        \
    X(SHORTENED, "cut short")                                                                                         \
    X(SPLICED, "spliced")                                                                                             \
    X(REPLAYED, "replayed")                                                                                           \
    X(REPLAYED_LATE, "replayed from a connection that was gone")                                                      \
    X(GARBAGE, "garbage")                                                                                             \
    X(VERSION, "of another version")                                                                                  \
    X(REBOUND, "senders that changed their address")                                                                  \
    X(SILENT, "sent where one of several paths was silent")                                                           \
    X(DETOUR, "sent along another path than the first")                                                               \
    X(FORGOTTEN, "sent to an address that was forgotten")                                                             \
    X(BUSY, "batches that the link took in part")                                                                     \
    X(PAUSED, "pauses")                                                                                               \
    X(CLOCK, "clocks that jumped")                                                                                    \
    X(HOARDED, "events kept")                                                                                         \
    X(RECREATED, "endpoints made again")                                                                              \
    X(KILLED, "of them without a goodbye")                                                                            \
    X(CLOSE, "goodbyes of connections lost")                                                                          \
    X(HALF_OPEN, "connections ended whose peers said nothing more")                                                   \
    X(ALLOCATION, "allocations that failed")                                                                          \
    X(FORKED, "forks")                                                                                                \
    X(FORKED_INSIDE, "forks inside a call of the library")                                                            \
    X(DEVICE, "devices that went down")                                                                               \
    X(NAMED, "connects by name")                                                                                      \
    X(MOVED, "services that took a later port of their name")                                                         \
    X(UNKNOWN, "atomics that may have been done or not")                                                              \
    X(STUCK, "lists whose next part had to wait")                                                                     \
    X(SEND_FULL, "refused, no send buffer")                                                                           \
    X(RECV_FULL, "failed, no receive buffer")
#define NET_FAULT_ENUM(name, text) FAULT_##name,
typedef enum net_fault { NET_FAULTS(NET_FAULT_ENUM) FAULT_COUNT } net_fault_t;
#define NET_FAULT_TEXT(name, text) text,
static const char *const net_fault_texts[FAULT_COUNT] = {NET_FAULTS(NET_FAULT_TEXT)};

typedef struct net_path {
    uint32_t loss_per_mille, duplicate_per_mille, reorder_per_mille, corrupt_per_mille;
    uint32_t burst_begin_per_mille, burst_end_per_mille, burst_loss_per_mille; /* Gilbert-Elliott */
    int in_burst, is_cut;
    uint64_t reorder_ns, delay_ns, jitter_ns;
    uint32_t mtu; /* 0: any */
    uint64_t bytes_per_second, queue_bytes, free_ns;
} net_path_t;

typedef struct net_state {
    net_path_t path[NET_MAX_NODES][NET_MAX_NODES];
    uint32_t node_count;
    uint32_t number[NET_MAX_NODES];         /* the one that its endpoint's link has */
    uint32_t alias[NET_MAX_NODES];          /* the number that a node's datagrams come from, 0: its own */
    uint32_t alias_owner[NET_MAX_ALIASES];  /* node behind each number given out */
    uint32_t alias_count;
    int translators_remember;               /* old numbers lead to their nodes, too */
    uint32_t interfaces;                    /* of each node */
    uint32_t silent[NET_MAX_NODES][NET_MAX_NODES]; /* by the lower node: bit 4 * i + j, between interfaces i and j */
    uint32_t busy_per_mille[NET_MAX_NODES]; /* the link takes only some of a batch */
    int is_dead[NET_MAX_NODES];             /* it was killed: what its library still sends is lost */
    int corrupts_everything;                /* otherwise only what nobody could take for sound is changed */
    uint32_t base_mtu;
    uint32_t links_told_of_fork, calls_of_links; /* what a child of fork() looks at: see soak_fork() */
    sim_datagram_t *recorded[NET_RECORDED];
    uint32_t recorded_next;
    int64_t stranger_credit[NET_MAX_STRANGERS]; /* bytes from a spoofed address less bytes to it */
    uint64_t received, received_bytes;
    uint64_t datagrams, bytes;
    uint32_t challenges[NET_CHALLENGES]; /* since the last audit, that try a path, of those that are not sealed: by receiver and connection */
    uint64_t faults[FAULT_COUNT];
    uint64_t digest; /* of all that was sent: two runs of one seed must agree */
    FILE *pcap;
} net_state_t;

static net_state_t net;

static uint32_t net_whole_number(const cci_link_addr_t *address) {
    uint32_t number;
    memcpy(&number, address->bytes + 4, 4);
    return number;
}

/* That of the node, whichever its interface. */
static uint32_t net_number(const cci_link_addr_t *address) {
    return net_whole_number(address) % NET_STEP;
}

/* The index of the node whose link has a number, -1 if none has. */
static int net_node_of(uint32_t number) {
    uint32_t node;
    for (node = 0; node < net.node_count && net.number[node] != number; node++) {
    }
    return node < net.node_count ? (int)node : -1;
}

/* The index of the node that a number leads to, -1 if to none. */
static int net_node_at(uint32_t number) {
    int node;
    if (number >= NET_FIRST_ALIAS && number < NET_FIRST_ALIAS + net.alias_count) {
        node = (int)net.alias_owner[number - NET_FIRST_ALIAS];
        return net.alias[node] == number || net.translators_remember ? node : -1;
    }
    node = net_node_of(number);
    return node < 0 || net.alias[node] == 0 || net.translators_remember ? node : -1;
}

/* ---- corruption --------------------------------------------------------------------------------------------------- */

static sim_datagram_t *net_make(const cci_link_addr_t *from, const cci_link_addr_t *to, uint32_t length) {
    sim_datagram_t *made = (sim_datagram_t *)calloc(1, sizeof *made + length);
    if (made == NULL) {
        abort();
    }
    made->from = *from;
    made->to = *to;
    made->length = length;
    return made;
}

static const sim_datagram_t *net_any_recorded(void) {
    return net.recorded[sim_below(NET_RECORDED)];
}

/* The beginning of one datagram and the end of another; NULL if that is one of them as it was. */
static sim_datagram_t *net_splice(const sim_datagram_t *datagram, const sim_datagram_t *other) {
    sim_datagram_t *spliced = net_make(&datagram->from, &datagram->to, other->length);
    uint32_t cut = (uint32_t)sim_below(cci__min32(datagram->length, other->length));
    memcpy(spliced->bytes, datagram->bytes, cut);
    memcpy(spliced->bytes + cut, other->bytes + cut, other->length - cut);
    if (memcmp(spliced->bytes, other->bytes, other->length) == 0) { /* that would be another fault: see net_replay() */
        free(spliced);
        return NULL;
    }
    net.faults[FAULT_SPLICED]++;
    return spliced;
}

/* Changes a datagram on its way; NULL if it would be sound all the same. Where nothing protects the packets, a change of
 * payload can't be noticed by anybody: then only version, index and token are changed, which the receiver does check. */
static sim_datagram_t *net_corrupt(const sim_datagram_t *datagram) {
    const sim_datagram_t *other = net_any_recorded();
    sim_datagram_t *changed;
    uint32_t kind = (uint32_t)sim_below(5), length = datagram->length, flips;
    if (!net.corrupts_everything) {
        if (length < 24 || datagram->bytes[1] != CCI__PKT_DATA) {
            return NULL;
        }
        changed = sim_copy(datagram);
        changed->bytes[sim_happens(200) ? 0 : 4 + sim_below(12)] ^= (uint8_t)(1u << sim_below(8));
        net.faults[FAULT_FLIPPED]++;
        return changed;
    }
    if (kind == 1 && other != NULL) {
        return net_splice(datagram, other);
    }
    length = kind == 0 ? (uint32_t)sim_below(length) : length;
    changed = net_make(&datagram->from, &datagram->to, length);
    memcpy(changed->bytes, datagram->bytes, length);
    net.faults[kind == 0 ? FAULT_SHORTENED : FAULT_FLIPPED]++;
    if (kind > 1) {
        for (flips = 1 + (uint32_t)sim_below(4); flips > 0 && length > 0; flips--) {
            changed->bytes[sim_below(length)] ^= (uint8_t)(1u << sim_below(8));
        }
    }
    return changed;
}

/* ---- on the way ---------------------------------------------------------------------------------------------------- */

static void net_launch(const net_path_t *path, sim_datagram_t *datagram, uint64_t queued_ns) {
    datagram->due_ns = sim.now_ns + queued_ns + path->delay_ns + sim_below(path->jitter_ns);
    net.faults[FAULT_QUEUED] += queued_ns > 0;
    net.faults[FAULT_DELAYED] += path->delay_ns >= MS;
    if (sim_happens(path->reorder_per_mille)) {
        datagram->due_ns += sim_below(path->reorder_ns);
        net.faults[FAULT_OVERTAKEN]++;
    }
    datagram->order = sim.order++;
    sim_heap_push(datagram);
}

/* The share of the path's rate that the datagram takes: when its last bit has left, or UINT64_MAX if the queue is full. */
static uint64_t net_queue(net_path_t *path, uint32_t length) {
    uint64_t start_ns, rate = path->bytes_per_second;
    if (rate == 0) {
        return 0;
    }
    start_ns = path->free_ns > sim.now_ns ? path->free_ns : sim.now_ns;
    if ((start_ns - sim.now_ns) / US * (rate / 1000u) / 1000u > path->queue_bytes) {
        return UINT64_MAX;
    }
    path->free_ns = start_ns + (uint64_t)length * 1000000u / (rate / 1000u + 1);
    return path->free_ns - sim.now_ns;
}

static int net_is_lost(net_path_t *path, uint32_t length) {
    net_fault_t why = path->is_cut ? FAULT_CUT : FAULT_COUNT;
    path->in_burst = path->in_burst ? !sim_happens(path->burst_end_per_mille) : sim_happens(path->burst_begin_per_mille);
    if (why == FAULT_COUNT && sim_happens(path->loss_per_mille)) {
        why = FAULT_LOST;
    }
    if (why == FAULT_COUNT && path->in_burst && sim_happens(path->burst_loss_per_mille)) {
        why = FAULT_BURST;
    }
    if (why == FAULT_COUNT && path->mtu != 0 && length > path->mtu) {
        why = FAULT_TOO_LONG;
    }
    if (why == FAULT_COUNT) {
        return 0;
    }
    net.faults[why]++;
    return 1;
}

static void net_carry(uint32_t from, uint32_t to, const sim_datagram_t *original) {
    net_path_t *path = &net.path[from][to];
    sim_datagram_t *datagram = sim_copy(original);
    uint64_t queued_ns;
    if (!datagram->is_group) {
        sim_make_address(&datagram->to, 1, net.number[to]);
    }
    if (net_is_lost(path, datagram->length)) {
        net.faults[FAULT_CLOSE] += datagram->length > 1 && datagram->bytes[1] == CCI__PKT_CLOSE;
        free(datagram);
        return;
    }
    queued_ns = net_queue(path, datagram->length);
    if (queued_ns == UINT64_MAX) {
        net.faults[FAULT_QUEUE_FULL]++;
        free(datagram);
        return;
    }
    if (sim_happens(path->corrupt_per_mille)) {
        sim_datagram_t *changed = net_corrupt(datagram);
        if (changed != NULL) {
            net_launch(path, changed, queued_ns);
            if (sim_happens(500)) { /* instead of the sound one */
                free(datagram);
                return;
            }
        }
    }
    if (sim_happens(path->duplicate_per_mille)) {
        net.faults[FAULT_REPEATED]++;
        net_launch(path, sim_copy(datagram), queued_ns);
    }
    net_launch(path, datagram, queued_ns);
}

static void net_record(const sim_datagram_t *datagram) {
    sim_datagram_t **slot = &net.recorded[net.recorded_next++ % NET_RECORDED];
    if (sim_happens(900) && *slot != NULL) { /* some stay for long */
        return;
    }
    free(*slot);
    *slot = sim_copy(datagram);
}

/* Bit of the way between an interface of one node and one of another. */
static uint32_t net_way(uint32_t a, uint32_t b, uint32_t of_a, uint32_t of_b) {
    return 1u << (a < b ? 4 * of_a + of_b : 4 * of_b + of_a);
}

/* Where there are several interfaces: the datagram comes from the address of the one by which it leaves, and by the one to whose
 * address it goes. 0: nothing goes that way. */
static int net_leaves_by(sim_datagram_t *datagram, uint32_t from) {
    uint32_t of_from = datagram->to.bytes[1], of_to = net_whole_number(&datagram->to) / NET_STEP;
    int to = net_node_at(net_number(&datagram->to));
    if (of_from >= net.interfaces || of_to >= net.interfaces) {
        return 0;
    }
    net.faults[FAULT_DETOUR] += of_from + of_to > 0;
    sim_make_address(&datagram->from, 1, net_number(&datagram->from) + of_from * NET_STEP);
    datagram->from.bytes[1] = (uint8_t)of_to;
    sim_make_address(&datagram->to, 1, net_number(&datagram->to));
    if (to >= 0 && (net.silent[cci__min32(from, (uint32_t)to)][cci__max32(from, (uint32_t)to)] &
                    net_way(from, (uint32_t)to, of_from, of_to))) {
        net.faults[FAULT_SILENT]++;
        return 0;
    }
    return 1;
}

/* Each datagram that a node sends. */
static void net_route(const sim_datagram_t *original) {
    uint32_t from = (uint32_t)net_node_of(net_number(&original->from)), number = net_number(&original->to), i;
    sim_datagram_t *datagram;
    int to;
    if (from >= NET_MAX_NODES || net.is_dead[from]) {
        return;
    }
    datagram = sim_copy(original);
    if (net.interfaces > 1 && !datagram->is_group && !net_leaves_by(datagram, from)) {
        free(datagram);
        return;
    }
    net.datagrams++;
    net.bytes += original->length;
    if (original->length >= CCI__HEADER_SIZE + CCI__CONN_PATH_FRAME && original->length < CCI__HEADER_SIZE + 2 * CCI__CONN_PATH_FRAME &&
        original->bytes[1] == CCI__PKT_DATA && original->bytes[CCI__HEADER_SIZE] == CCI__FRAME_CHALLENGE) {
        net.challenges[(cci__load32(original->bytes + 4) * 31 + number) % NET_CHALLENGES]++;
    }
    for (i = 0; i < original->length; i += 7) {
        net.digest = (net.digest ^ original->bytes[i]) * UINT64_C(0x100000001b3);
    }
    net.digest = (net.digest ^ sim.now_ns) * UINT64_C(0x100000001b3);
    if (net.alias[from] != 0) {
        sim_make_address(&datagram->from, 1, net.alias[from]);
    }
    pcap_datagram(net.pcap, sim.now_ns, net_number(&datagram->from), number, (int)datagram->is_group, datagram->bytes,
                  datagram->length);
    net_record(datagram);
    if (datagram->is_group) {
        if (!net_is_lost(&net.path[from][from], datagram->length)) {
            datagram->due_ns = sim.now_ns + net.path[from][from].delay_ns;
            datagram->order = sim.order++;
            sim_heap_push(sim_copy(datagram));
        }
    } else if (number >= NET_STRANGERS && number < NET_STRANGERS + NET_MAX_STRANGERS) {
        net.stranger_credit[number - NET_STRANGERS] -= datagram->length;
    } else if ((to = net_node_at(number)) >= 0) {
        net_carry(from, (uint32_t)to, datagram);
    } else {
        net.faults[FAULT_FORGOTTEN]++;
    }
    free(datagram);
}

/* Something that nobody sent, or not now: from a spoofed address, or the original's for a packet of long ago. */
static void net_inject(const cci_link_addr_t *from, uint32_t to_node, const void *bytes, uint32_t length) {
    cci_link_addr_t to;
    sim_datagram_t *made;
    uint32_t stranger = net_number(from) - NET_STRANGERS;
    sim_make_address(&to, 1, net.number[to_node]);
    made = net_make(from, &to, length);
    if (length > 0) {
        memcpy(made->bytes, bytes, length);
    }
    made->due_ns = sim.now_ns + 1000;
    made->order = sim.order++;
    sim_heap_push(made);
    if (stranger < NET_MAX_STRANGERS) {
        net.stranger_credit[stranger] += length;
    }
}

/* Sends an old datagram once more, and returns it: NULL if there is none, or its receiver is no more. */
static const sim_datagram_t *net_replay(void) {
    const sim_datagram_t *old = net_any_recorded();
    int to;
    if (old == NULL || old->is_group || (to = net_node_at(net_number(&old->to))) < 0) {
        return NULL;
    }
    net.faults[FAULT_REPLAYED]++;
    net_inject(&old->from, (uint32_t)to, old->bytes, old->length);
    return old;
}

/* ---- the link ------------------------------------------------------------------------------------------------------- */

static cci_link_info_t net_opening;    /* what the next endpoint's link says of itself */
static uint32_t net_opening_node;      /* whose it is; NET_MAX_NODES: nobody's */
static sim_endpoint_t *net_opened;     /* the last one that was opened */

/* The addresses of an endpoint, and its ways to others: all interfaces are up. */
static int net_own(void *link, uint32_t number, cci_link_addr_t *own) {
    if (number >= net.interfaces) {
        return 0;
    }
    sim_make_address(own, 1, ((sim_endpoint_t *)link)->number + number * NET_STEP);
    return 1;
}

static int net_way_to(void *link, uint32_t number, const cci_link_addr_t *told, cci_link_addr_t *way) {
    (void)link;
    if (number >= net.interfaces || told->bytes[0] != 1 || net_whole_number(told) / NET_STEP >= net.interfaces) {
        return 0;
    }
    sim_make_address(way, 1, net_whole_number(told));
    way->bytes[1] = (uint8_t)number;
    return 1;
}

static cci_link_paths_t net_paths;

/* The child of fork() closes its copies of the descriptors, of which a simulated link has none. */
static void net_forked(void *link) {
    (void)link;
    net.links_told_of_fork++;
}

static void (*net_at_each_call)(void); /* by the library */

static void net_called(void) {
    net.calls_of_links++;
    if (net_at_each_call != NULL) {
        net_at_each_call();
    }
}

static int net_open(cci_device_t *device, const char *service, int want_os_handle, void **link, cci_link_info_t *info) {
    uint32_t device_mtu = sim.mtu;
    int status;
    sim.mtu = net_opening.mtu;
    status = sim_open(device, service, want_os_handle, link, info);
    sim.mtu = device_mtu;
    if (status == CCI_SUCCESS) {
        net_opened = (sim_endpoint_t *)*link;
        if (net_opening_node < NET_MAX_NODES) {
            net.number[net_opening_node] = net_opened->number;
        }
        *info = net_opening;
        info->os_handle = -1;
        info->forked = net_forked;
        net_paths.interface_count = net.interfaces;
        net_paths.own = net_own;
        net_paths.path = net_way_to;
        info->paths = net.interfaces > 1 ? &net_paths : NULL;
    }
    return status;
}

/* The library's work is counted in pieces of code without a branch, if the compiler calls this at each: gcc and clang do, with
 * -fsanitize-coverage=trace-pc -DSOAK_COUNTS_WORK. What the network does is no work of the library's. */
static uint64_t net_work;
static int net_work_is_counted;
#ifdef SOAK_COUNTS_WORK
#include "tests/support/counted.h"

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
    net_work += (uint64_t)net_work_is_counted;
}
#endif

static int net_send(void *link, const cci_link_tx_t *tx, int count) {
    int node = net_node_of(((sim_endpoint_t *)link)->number);
    int is_counted = net_work_is_counted;
    net_work_is_counted = 0;
    net_called();
    if (node >= 0 && sim_happens(net.busy_per_mille[node])) {
        count = (int)sim_below((uint64_t)count + 1);
        net.faults[FAULT_BUSY]++;
    }
    count = count == 0 ? 0 : sim_send(link, tx, count);
    net_work_is_counted = is_counted;
    return count;
}

static int net_receive(void *link, cci_link_rx_t *rx, int count) {
    int is_counted = net_work_is_counted, i;
    net_work_is_counted = 0;
    net_called();
    count = sim_receive(link, rx, count);
    for (i = 0; i < count; i++) {
        net.received++;
        net.received_bytes += rx[i].length;
    }
    net_work_is_counted = is_counted;
    return count;
}

static void net_close(void *link) {
    net_called();
    sim_close(link);
}

static void net_arm(void *link, int readable, uint64_t deadline_ns) {
    net_called();
    sim_arm(link, readable, deadline_ns);
}

/* "17:1003": a name is held for all processes of the machine, and so each has its own host; no packet shows that. */
static int net_address(void *link, char *text, size_t size) {
    return snprintf(text, size, "%lu:%lu", (unsigned long)getpid(), (unsigned long)((sim_endpoint_t *)link)->number) < (int)size
               ? CCI_SUCCESS
               : CCI_ERANGE;
}

static const cci_link_t net_link = {CCI_LINK_VERSION, net_open,  net_close, net_send,     net_receive, sim_now,
                                    sim_resolve,      net_address, sim_group, sim_is_group, sim_wait,    sim_wake,
                                    net_arm,          sim_is_up, sim_text, sim_prefix};
static const cci_transport_t net_transport = {CCI_TRANSPORT_VERSION, "sim",       NULL,      NULL, sim_discover,
                                              sim_configure,         sim_refresh, &net_link, NULL};
static const cci_transport_t *const net_transports[] = {&net_transport, NULL};

/* ---- settings --------------------------------------------------------------------------------------------------------- */

static void net_clean_path(net_path_t *path) {
    uint64_t free_ns = path->free_ns;
    memset(path, 0, sizeof *path);
    path->delay_ns = 20 * US;
    path->free_ns = free_ns;
}

static void net_heal(void) {
    uint32_t a, b;
    for (a = 0; a < NET_MAX_NODES; a++) {
        for (b = 0; b < NET_MAX_NODES; b++) {
            net_clean_path(&net.path[a][b]);
        }
        net.busy_per_mille[a] = 0;
    }
    net.translators_remember = 1;
    memset(net.silent, 0, sizeof net.silent);
    sim.up[0] = sim.up[1] = 1;
}

static void net_begin(uint32_t node_count, uint32_t base_mtu, uint32_t interfaces) {
    uint32_t node;
    memset(&net, 0, sizeof net);
    net.interfaces = interfaces;
    net.node_count = node_count;
    net.base_mtu = base_mtu;
    net.digest = 1;
    for (node = 0; node < node_count; node++) {
        net.number[node] = NET_FIRST_NODE + node;
    }
    net_heal();
    net.translators_remember = 0;
    sim.is_driven = 1;
    sim.mtu = 65504; /* what the device says; each link says what it has */
    sim.inbox_bytes = 4u << 20;
    sim_route = net_route;
}

static void net_end(void) {
    uint32_t i;
    for (i = 0; i < NET_RECORDED; i++) {
        free(net.recorded[i]);
        net.recorded[i] = NULL;
    }
    if (net.pcap != NULL) {
        fclose(net.pcap);
        net.pcap = NULL;
    }
}

#endif /* CCI_SOAK_NET_H */
