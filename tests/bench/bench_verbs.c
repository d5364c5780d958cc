/* SPDX-License-Identifier: MIT OR Unlicense */
/* bench_verbs.c - what connections over RDMA cost, at both ends together: the library's memory, that of the whole
 * machine (with the kernel's and the driver's), queue pairs, and the time to open it.
 *
 *     cc -O2 -I.. -o bench_verbs bench_verbs.c -pthread
 *     ./bench_verbs FROM TO COUNT...      two CCI devices; connections are opened until there are COUNT of them
 *     ./bench_verbs register DEVICE       what it takes to register memory of 4 KiB to 1 GiB that is in use, and to deregister
 *                                         it: bytes, and microseconds of each, the least of several
 *
 * The output is CSV, for each COUNT: the count, bytes of the library, bytes of the machine, queue pairs and regions that the
 * kernel knows of, and the microseconds in which the connections beyond the line before were opened, by their number. The
 * line for 0 connections has the two endpoints alone. Runs in the virtual machine of tests/verbs/vm, where
 * nobody else uses memory meanwhile. */
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci_udp.h"
#include "cci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_WINDOW 16 /* connects under way at once */
#define PATIENCE_NS 300000000000ull
#define QUIET_NS 500000000u /* what connections only need while they have traffic is given back by then */

static cci_endpoint_t *ends[2];
static long opened[2];
static char *uri;

static void fail(const char *what, int status) {
    const char *text = cci_strerror(NULL, (cci_status_t)status);
    fprintf(stderr, "bench_verbs: %s: %s\n", what, text ? text : "unknown status");
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

/* ---- what is counted --------------------------------------------------------------------------------------------- */

static uint64_t live_bytes;

static void *counted_alloc(void *user, size_t size) {
    uint64_t *block = (uint64_t *)malloc(size + 16);
    (void)user;
    if (!block) return NULL;
    block[0] = size;
    live_bytes += size;
    return block + 2;
}

static void counted_release(void *user, void *pointer) {
    uint64_t *block = (uint64_t *)pointer;
    (void)user;
    if (!block) return;
    live_bytes -= block[-2];
    free(block - 2);
}

/* What the machine still has: the kernel's estimate leaves out what it could give back. */
static long long free_bytes(void) {
    char line[128];
    long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemFree: %lld", &kib) == 1) break;
    }
    if (file) fclose(file);
    return kib * 1024;
}

/* The sum over all devices of one word of `rdma res show`: "0: rxe0: pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0". */
static long resource_count(const char *wanted) {
    char word[64];
    long sum = 0, number;
    FILE *from = popen("rdma res show", "r");
    while (from && fscanf(from, "%63s", word) == 1) {
        if (strcmp(word, wanted) == 0 && fscanf(from, "%ld", &number) == 1) sum += number;
    }
    if (from) pclose(from);
    return sum;
}

/* ---- two endpoints ----------------------------------------------------------------------------------------------- */

static void poll_end(int side) {
    cci_event_t *event;
    while (cci_get_event(ends[side], &event) == CCI_SUCCESS) {
        switch (event->type) {
        case CCI_EVENT_CONNECT_REQUEST: check(cci_accept(event, NULL), "cci_accept"); break;
        case CCI_EVENT_ACCEPT:
            check(event->accept.status, "accept");
            opened[1]++;
            break;
        case CCI_EVENT_CONNECT:
            check(event->connect.status, "connect");
            opened[0]++;
            break;
        default: break;
        }
        cci_return_event(event);
    }
}

/* Returns the microseconds that each took that was not open before. */
static double open_connections(long count) {
    long asked = opened[0], before = opened[0];
    uint64_t start_ns = now_ns(), end_ns = start_ns + PATIENCE_NS;
    double took_us;
    while (opened[0] < count || opened[1] < count) {
        if (asked < count && asked < opened[0] + CONNECT_WINDOW) {
            check(cci_connect(ends[0], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), "cci_connect");
            asked++;
        }
        poll_end(0);
        poll_end(1);
        if (now_ns() > end_ns) fail("opening connections", CCI_ETIMEDOUT);
    }
    took_us = (double)(now_ns() - start_ns) / 1000;
    for (end_ns = now_ns() + QUIET_NS; now_ns() < end_ns;) {
        poll_end(0);
        poll_end(1);
    }
    return count > before ? took_us / (double)(count - before) : 0;
}

static cci_device_t *device_named(const char *name) {
    cci_device_t *const *devices;
    check(cci_get_devices(&devices), "cci_get_devices");
    for (; *devices; devices++) {
        if (strcmp((*devices)->name, name) == 0) return *devices;
    }
    fail(name, CCI_ENODEV);
    return NULL;
}

#define REGISTER_LEAST 4096u
#define REGISTER_MOST (1ull << 30)
#define REGISTER_TIMES 5

static void measure_registering(cci_endpoint_t *end, uint64_t size) {
    uint8_t *memory = (uint8_t *)malloc((size_t)size);
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX}, took, start;
    cci_rma_handle_t *handle;
    int i;
    if (!memory) return; /* the machine has not so much */
    memset(memory, 1, (size_t)size);
    for (i = 0; i < REGISTER_TIMES; i++) {
        start = now_ns();
        check(cci_rma_register(end, memory, size, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle), "cci_rma_register");
        took = now_ns() - start;
        least[0] = took < least[0] ? took : least[0];
        start = now_ns();
        check(cci_rma_deregister(end, handle), "cci_rma_deregister");
        took = now_ns() - start;
        least[1] = took < least[1] ? took : least[1];
    }
    free(memory);
    printf("%llu,%.1f,%.1f\n", (unsigned long long)size, (double)least[0] / 1000, (double)least[1] / 1000);
    fflush(stdout);
}

static int registering(const char *device) {
    uint64_t size;
    uint32_t caps;
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    check(cci_create_endpoint(device_named(device), 0, &ends[0], NULL), "cci_create_endpoint");
    for (size = REGISTER_LEAST; size <= REGISTER_MOST; size *= 8) measure_registering(ends[0], size);
    check(cci_finalize(), "cci_finalize");
    return 0;
}

int main(int argc, char **argv) {
    cci_setup_t setup;
    uint32_t caps;
    uint64_t library_bytes;
    long long machine_bytes;
    long pairs, regions;
    double each_us;
    int i;
    if (argc == 3 && strcmp(argv[1], "register") == 0) return registering(argv[2]);
    if (argc < 4) {
        fprintf(stderr, "usage: bench_verbs FROM TO COUNT... | register DEVICE\n");
        return 2;
    }
    memset(&setup, 0, sizeof setup);
    setup.alloc = counted_alloc;
    setup.release = counted_release;
    check(cci_setup(&setup), "cci_setup");
    check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
    (void)resource_count("qp"); /* the programs that this needs are in memory from here on */
    library_bytes = live_bytes;
    machine_bytes = free_bytes();
    pairs = resource_count("qp");
    regions = resource_count("mr");
    for (i = 0; i < 2; i++) {
        check(cci_create_endpoint(device_named(argv[1 + i]), 0, &ends[i], NULL), "cci_create_endpoint");
    }
    check(cci_get_opt(ends[1], CCI_OPT_ENDPT_URI, &uri), "the URI");
    for (i = 2; i < argc; i++) {
        each_us = open_connections(i == 2 ? 0 : atol(argv[i])); /* at first none */
        printf("%ld,%llu,%lld,%ld,%ld,%.1f\n", opened[0], (unsigned long long)(live_bytes - library_bytes),
               machine_bytes - free_bytes(), resource_count("qp") - pairs, resource_count("mr") - regions, each_us);
        fflush(stdout);
    }
    free(uri);
    check(cci_finalize(), "cci_finalize");
    return 0;
}
