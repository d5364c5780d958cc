/* SPDX-License-Identifier: MIT OR Unlicense */
/* bench_calls.c - what the library costs apart from time on the wire: allocations, memory of a connection, and the
 * work of an idle poll. Two endpoints of one process talk to each other over the loopback.
 *
 *     cc -O2 -I.. -o bench_calls bench_calls.c -pthread
 *     ./bench_calls traffic          allocations while messages and RMAs of all kinds go both ways
 *     ./bench_calls memory           bytes of an idle connection, at 1, 1,000 and 10,000 connections
 *     ./bench_calls link             shared memory of a link of sisci, and bytes of a further connection over it; Linux
 *     ./bench_calls poll N           nanoseconds of cci_get_event() on an idle endpoint with N connections
 *     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=poll_idle ./bench_calls poll N
 *                                    the same in instructions: "Collected" divided by the polls counted
 *
 * The output is CSV: name,number,value,unit. Exit status 1 when the library did not do what was asked of it. */
#define CCI_IMPLEMENTATION
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_COUNT 10000       /* polls that are measured */
#define CONNECT_WINDOW 64      /* connects under way at once */
#define MOST_CONNECTIONS 10000
#define MESSAGE_COUNT 20000    /* of each kind */
#define MESSAGES_UNDER_WAY 64u
#define REGION_BYTES (1u << 20)
#define QUIET_NS 500000000u    /* acknowledgements are sent and timers of idle connections have run out after this */
#define PATIENCE_NS 60000000000ull /* valgrind is slow */

/* ---- the heap that the library gets ---------------------------------------------------------------------------- */

/* Each block is preceded by its size, so that what is live can be counted. */
static uint64_t live_bytes, block_count, alloc_count;

static void *counted_alloc(void *user, size_t size) {
    uint64_t *block = (uint64_t *)malloc(size + 16);
    (void)user;
    if (!block) return NULL;
    block[0] = size;
    live_bytes += size;
    block_count++;
    alloc_count++;
    return block + 2;
}

static void counted_release(void *user, void *pointer) {
    uint64_t *block = (uint64_t *)pointer;
    (void)user;
    if (!block) return;
    live_bytes -= block[-2];
    block_count--;
    free(block - 2);
}

/* ---- two endpoints --------------------------------------------------------------------------------------------- */

static cci_endpoint_t *ends[2]; /* the first connects to the second */
static cci_connection_t *connections[2];
static uint32_t opened[2]; /* connections that each end knows of */
static uint64_t received[2], completed[2];
static char *uri;

static void fail(const char *what, int status) {
    const char *text = cci_strerror(NULL, (cci_status_t)status);
    fprintf(stderr, "bench_calls: %s: %s\n", what, text ? text : "unknown status");
    exit(1);
}

static void check(int status, const char *what) {
    if (status != CCI_SUCCESS) fail(what, status);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take_event(int side, cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST: check(cci_accept(event, NULL), "cci_accept"); break;
    case CCI_EVENT_CONNECT:
        check(event->connect.status, "connecting");
        connections[side] = event->connect.connection;
        opened[side]++;
        break;
    case CCI_EVENT_ACCEPT:
        check(event->accept.status, "accepting");
        connections[side] = event->accept.connection;
        opened[side]++;
        break;
    case CCI_EVENT_RECV: received[side]++; break;
    case CCI_EVENT_SEND:
        check(event->send.status, "sending");
        completed[side]++;
        break;
    default: fail(cci_event_type_str(event->type), CCI_ERROR);
    }
    check(cci_return_event(event), "cci_return_event");
}

/* Returns how many events there were. */
static uint32_t poll_both(void) {
    uint32_t count = 0;
    int side;
    for (side = 0; side < 2; side++) {
        cci_event_t *event;
        if (cci_get_event(ends[side], &event) != CCI_SUCCESS) continue;
        take_event(side, event);
        count++;
    }
    return count;
}

/* Every endpoint has work of its own after the last event: acknowledgements to send, state to give back. */
static void settle(void) {
    uint64_t end_ns = now_ns() + QUIET_NS;
    while (now_ns() < end_ns)
        if (poll_both()) end_ns = now_ns() + QUIET_NS;
}

static void start_connect(cci_conn_attribute_t attribute) {
    check(cci_connect(ends[0], uri, NULL, 0, attribute, NULL, 0, NULL), "cci_connect");
}

/* Opens connections until there are `count` of them. */
static void open_connections(uint32_t count, cci_conn_attribute_t attribute) {
    uint32_t started = opened[0];
    uint64_t end_ns = now_ns() + PATIENCE_NS;
    while (opened[0] < count || opened[1] < count) {
        while (started < count && started - opened[0] < CONNECT_WINDOW) {
            start_connect(attribute);
            started++;
        }
        if (poll_both()) end_ns = now_ns() + PATIENCE_NS;
        else if (now_ns() > end_ns) fail("opening connections", CCI_ETIMEDOUT);
    }
}

static const char loopback[] = "[loopback]\ntransport = udp\ninterface = lo\n";

static void open_endpoints(const char *config) {
    static cci_setup_t setup;
    cci_device_t *const *devices;
    uint32_t caps;
    int side;
    setup.alloc = counted_alloc;
    setup.release = counted_release;
    setup.config = config;
    check(cci_setup(&setup), "cci_setup");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_get_devices(&devices), "cci_get_devices");
    if (!devices[0]) fail("loopback", CCI_ENODEV);
    for (side = 0; side < 2; side++)
        check(cci_create_endpoint(devices[0], 0, &ends[side], NULL), "cci_create_endpoint");
    check(cci_get_opt(ends[1], CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
}

/* ---- allocations under traffic --------------------------------------------------------------------------------- */

static cci_connection_t *by_attribute[3][2]; /* RO, RU, UU: each end's handle */

static void open_attributes(void) {
    uint32_t i;
    int side;
    for (i = 0; i < 3; i++) {
        open_connections(i + 1, (cci_conn_attribute_t)i);
        for (side = 0; side < 2; side++) by_attribute[i][side] = connections[side];
    }
}

/* Messages of many sizes both ways. What is unreliable may be lost: it is only kept from piling up. */
static void send_messages(cci_connection_t *const pair[2], int flags) {
    static char message[65536];
    uint32_t sent, i;
    int side;
    uint64_t start[2], end_ns = now_ns() + PATIENCE_NS;
    for (side = 0; side < 2; side++) start[side] = completed[side];
    for (sent = 0; sent < MESSAGE_COUNT; sent++) {
        uint32_t length = sent * 2654435761u >> (sent % 16 == 0 ? 16 : 24);
        if (length > pair[0]->max_send_size) length = pair[0]->max_send_size;
        for (side = 0; side < 2; side++) check(cci_send(pair[side], message, length, NULL, flags), "cci_send");
        for (i = 0; i < 4; i++) poll_both();
        while (completed[0] - start[0] + MESSAGES_UNDER_WAY < sent ||
               completed[1] - start[1] + MESSAGES_UNDER_WAY < sent)
            if (!poll_both() && now_ns() > end_ns) fail("waiting for completions", CCI_ETIMEDOUT);
    }
    while (completed[0] - start[0] < sent || completed[1] - start[1] < sent)
        if (!poll_both() && now_ns() > end_ns) fail("waiting for completions", CCI_ETIMEDOUT);
}

static void move_memory(cci_connection_t *const pair[2], cci_rma_handle_t *const handles[2], int flags) {
    uint32_t started, i;
    uint64_t start = completed[0], end_ns = now_ns() + PATIENCE_NS;
    for (started = 0; started < 256;) {
        uint32_t length = REGION_BYTES >> started % 12;
        const char *message = started % 2 ? "written" : NULL;
        check(cci_rma(pair[0], message, message ? 7 : 0, handles[0], 0, handles[1], 0, length, NULL, flags), "cci_rma");
        started++;
        while (completed[0] - start + 8 < started || (started == 256 && completed[0] - start < started))
            if (!poll_both() && now_ns() > end_ns) fail("waiting for RMA", CCI_ETIMEDOUT);
    }
    for (i = 0; i < 100; i++) poll_both();
}

static void traffic(void) {
    cci_rma_handle_t *handles[2];
    uint64_t allocs_before = 0, blocks_before = 0;
    int side, i, round;
    void *memory[2];
    open_endpoints(loopback);
    printf("endpoint_bytes,2,%llu,bytes of one endpoint (address space)\n", (unsigned long long)live_bytes / 2);
    open_attributes();
    settle();
    for (side = 0; side < 2; side++) {
        memory[side] = calloc(1, REGION_BYTES);
        if (!memory[side]) fail("memory", CCI_ENOMEM);
        check(cci_rma_register(ends[side], memory[side], REGION_BYTES, CCI_FLAG_READ | CCI_FLAG_WRITE, &handles[side]),
              "cci_rma_register");
    }
    for (round = 0; round < 2; round++) { /* what the first needs is there for the second */
        allocs_before = alloc_count;
        blocks_before = block_count;
        received[0] = received[1] = completed[0] = completed[1] = 0;
        for (i = 0; i < 3; i++) {
            send_messages(by_attribute[i], 0);
            send_messages(by_attribute[i], CCI_FLAG_NO_COPY);
        }
        for (i = 0; i < 2; i++) {
            move_memory(by_attribute[i], handles, CCI_FLAG_WRITE);
            move_memory(by_attribute[i], handles, CCI_FLAG_READ | CCI_FLAG_FENCE);
        }
        settle();
    }
    for (side = 0; side < 2; side++) check(cci_rma_deregister(ends[side], handles[side]), "cci_rma_deregister");
    printf("traffic,%llu,%llu,messages received and RMAs completed\n", (unsigned long long)(received[0] + received[1]),
           (unsigned long long)(completed[0] + completed[1]));
    printf("allocations,%d,%llu,allocations under traffic\n", 6 * MESSAGE_COUNT * 2,
           (unsigned long long)(alloc_count - allocs_before));
    printf("blocks,0,%lld,blocks more than before\n", (long long)(block_count - blocks_before));
    for (side = 0; side < 2; side++) free(memory[side]);
}

/* ---- memory of an idle connection ------------------------------------------------------------------------------ */

/* The connection table grows in slabs, and its first slab comes with the endpoint. So what is told is what each
 * connection more than the first has cost: a little less than the truth at 1,000. */
static void memory(void) {
    static const uint32_t counts[] = {1, 1000, MOST_CONNECTIONS};
    uint64_t bytes_at_one = 0;
    uint32_t count_before = 0;
    size_t i;
    open_endpoints(loopback);
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t start_ns = now_ns();
        open_connections(counts[i], CCI_CONN_ATTR_RO);
        printf("connects,%u,%.0f,connections opened per second\n", counts[i],
               (counts[i] - count_before) * 1e9 / (double)(now_ns() - start_ns));
        settle();
        if (i == 0) bytes_at_one = live_bytes;
        else
            printf("connection_bytes,%u,%.1f,bytes at each side for each connection more than the first\n", counts[i],
                   (double)(live_bytes - bytes_at_one) / (2.0 * (counts[i] - counts[0])));
        count_before = counts[i];
    }
}

/* ---- shared memory of a link ------------------------------------------------------------------------------------ */

#define MOST_SEGMENTS 64

struct segments {
    unsigned long inode[MOST_SEGMENTS];
    uint64_t bytes[MOST_SEGMENTS], used[MOST_SEGMENTS];
    size_t count;
};

/* Which of the segments this is; a segment is mapped by both ends, here in one process. */
static size_t segment_of(struct segments *found, unsigned long inode) {
    size_t i = 0;
    while (i < found->count && found->inode[i] != inode) i++;
    if (i == MOST_SEGMENTS) fail("segments", CCI_ENOBUFS);
    found->inode[i] = inode;
    if (i == found->count) found->count++;
    return i;
}

static void add_segments(uint64_t *bytes, uint64_t *used) {
    static struct segments found;
    char line[512];
    size_t at = MOST_SEGMENTS, i;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file) fail("/proc/self/smaps", CCI_ERROR);
    memset(&found, 0, sizeof found);
    while (fgets(line, sizeof line, file)) {
        unsigned long begin, end, inode, kib;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &begin, &end, &inode) == 3) {
            at = strstr(line, "/memfd:") ? segment_of(&found, inode) : MOST_SEGMENTS;
            if (at < MOST_SEGMENTS) found.bytes[at] = end - begin;
        } else if (at < MOST_SEGMENTS && sscanf(line, "Rss: %lu", &kib) == 1 && kib * 1024 > found.used[at]) {
            found.used[at] = kib * 1024;
        }
    }
    fclose(file);
    *bytes = *used = 0;
    for (i = 0; i < found.count; i++) {
        *bytes += found.bytes[i];
        *used += found.used[i];
    }
}

static void link_memory(void) {
    uint64_t bytes_before, used_before, bytes, used;
    static char message[64];
    int side;
    open_endpoints("[shm]\ntransport = sisci\n");
    add_segments(&bytes_before, &used_before);
    open_connections(1, CCI_CONN_ATTR_RO);
    for (side = 0; side < 2; side++) check(cci_send(connections[side], message, sizeof message, NULL, 0), "cci_send");
    while (received[0] + received[1] + completed[0] + completed[1] < 4) poll_both();
    add_segments(&bytes, &used);
    if (bytes == bytes_before) fail("segments of a link", CCI_ERR_NOT_FOUND);
    printf("segment_bytes,1,%llu,bytes of shared memory of a link\n", (unsigned long long)(bytes - bytes_before));
    printf("resident_bytes,1,%llu,of which were touched\n", (unsigned long long)(used - used_before));
    open_connections(256, CCI_CONN_ATTR_RO);
    bytes_before = live_bytes;
    open_connections(512, CCI_CONN_ATTR_RO);
    printf("connection_bytes,256,%.1f,bytes at each side for each connection more\n",
           (double)(live_bytes - bytes_before) / (2.0 * 256));
}

/* ---- an idle poll ---------------------------------------------------------------------------------------------- */

/* Named, and never inlined, because callgrind counts what happens inside it. Returns how many polls found an event. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((noinline))
#endif
int poll_idle(cci_endpoint_t *end);

int poll_idle(cci_endpoint_t *end) {
    cci_event_t *event;
    int i, busy = 0;
    for (i = 0; i < POLL_COUNT; i++) busy += cci_get_event(end, &event) != CCI_EAGAIN;
    return busy;
}

/* The shortest of several runs: nothing but other programs' work makes one longer. */
static void poll_cost(uint32_t count) {
    uint64_t best_ns = UINT64_MAX;
    int i, busy = 0;
    open_endpoints(loopback);
    open_connections(count, CCI_CONN_ATTR_RO);
    settle();
    for (i = 0; i < 5; i++) {
        uint64_t ns = now_ns();
        busy += poll_idle(ends[0]);
        ns = now_ns() - ns;
        if (ns < best_ns) best_ns = ns;
    }
    printf("poll,%u,%.1f,ns\n", count, (double)best_ns / POLL_COUNT);
    printf("polls,%u,%d,polls counted\n", count, 5 * POLL_COUNT);
    if (busy) fail("polling an idle endpoint found events", CCI_ERROR);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "traffic") == 0) traffic();
    else if (argc == 2 && strcmp(argv[1], "memory") == 0) memory();
    else if (argc == 2 && strcmp(argv[1], "link") == 0) link_memory();
    else if (argc == 3 && strcmp(argv[1], "poll") == 0) poll_cost((uint32_t)strtoul(argv[2], NULL, 10));
    else {
        fprintf(stderr, "usage: bench_calls traffic | memory | link | poll connections\n");
        return 2;
    }
    free(uri);
    check(cci_finalize(), "cci_finalize");
    if (live_bytes || block_count) {
        fprintf(stderr, "bench_calls: %llu bytes are left after cci_finalize()\n", (unsigned long long)live_bytes);
        return 1;
    }
    return 0;
}
