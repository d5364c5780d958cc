/* SPDX-License-Identifier: MIT OR Unlicense */
/* steps_verbs.c - what a message, or a connection, costs in mode = rc beyond the driver, for a program that counts instructions.
 *
 *     cc -O2 -g -I. -o steps_verbs tests/verbs/steps_verbs.c -pthread
 *     valgrind --tool=callgrind --callgrind-out-file=/dev/null '--toggle-collect=counted_*' '--toggle-collect=driver_*' \
 *         ./steps_verbs way|all COUNT SIZE [silent|nocopy]
 *     ./steps_verbs storm COUNT [slow]
 *
 * Two endpoints over fake_verbs.h answer one another, COUNT messages in all. `way` counts what a half round trip takes:
 * cci_send(), and at the other end the cci_get_event() that brings the message; `all` also its return, and at the sender the
 * event that it is complete, with its return. The driver's functions are left out. The output is how often the clock was
 * read; the exit status is 1 when a message got lost.
 *
 * `storm` has COUNT clients ask for connections at once, before the server looks, in virtual time in which making a queue pair
 * takes an adapter half a millisecond; or with `slow` that of the clients 50 ms, and the server's next to nothing. What is counted are the calls of both programs until all connections are open. The output
 * is for all together: the datagrams of the handshakes, the commands that made, changed and destroyed queue pairs, how often one
 * of the programs had to look, and milliseconds. */
#define _GNU_SOURCE 1
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long clocks;
static uint64_t make_ns[2]; /* what a queue pair takes, by the device */
static uint64_t clock_ns = 1000000000u, clock_step_ns = 100000u;

/* A clock that goes by what is done, so that the count is the same each time. */
static int counted_clock(clockid_t which, struct timespec *t) {
    (void)which;
    clocks++;
    clock_ns += clock_step_ns;
    t->tv_sec = (time_t)(clock_ns / 1000000000u);
    t->tv_nsec = (long)(clock_ns % 1000000000u);
    return 0;
}

#define clock_gettime counted_clock
#define CCI_VERBS_READ_FILE fake_read_file
static int fake_read_file(const char *path, char *text, size_t size);
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"
#include "cci.h"
#undef clock_gettime

/* What fake_verbs.h asserts. */
#define assert_true(condition) assert(condition)
#define assert_int_equal(a, b) assert((a) == (b))
#define assert_non_null(pointer) assert((pointer) != NULL)
#include "tests/verbs/fake_verbs.h"

#define SIZE_MOST 65472u
#define MAKE_NS 500000u  /* of a queue pair, by either side's adapter */
#define SLOW_NS 50000000u
#define LOOK_NS 10000u   /* from one look of a program to the next */
#define STORM_LOOKS 400u /* for a connection; more is too much */

static cci_endpoint_t *ends[2];
static cci_connection_t *connections[2];
static uint8_t bytes[SIZE_MOST];
static uint32_t size;
static int flags, lost;

static void must(int status) {
    if (status != CCI_SUCCESS) {
        fprintf(stderr, "steps_verbs: status %d\n", status);
        exit(1);
    }
}

/* ---- what is left out --------------------------------------------------------------------------------------------- */

/* The driver, under names that are its own, whatever the compiler makes of the others. */
__attribute__((noinline)) static int driver_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    int status = fake_post_send(qp, wr, bad);
    __asm__ volatile("" : "+r"(status)); /* no jump: the return is seen */
    return status;
}

__attribute__((noinline)) static int driver_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int status = fake_post_srq_recv(srq, wr, bad);
    __asm__ volatile("" : "+r"(status));
    return status;
}

__attribute__((noinline)) static int driver_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    int status = fake_poll_cq(cq, count, wc);
    __asm__ volatile("" : "+r"(status));
    return status;
}

__attribute__((noinline)) static struct ibv_qp *driver_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes) {
    struct ibv_qp *qp = fake_create_qp(pd, attributes);
    clock_ns += attributes->qp_type == IBV_QPT_RC ? make_ns[fake_context_of(pd->context)->device] : 0;
    __asm__ volatile("" : "+r"(qp));
    return qp;
}

__attribute__((noinline)) static int driver_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
    int status = fake_modify_qp(qp, attributes, mask);
    __asm__ volatile("" : "+r"(status));
    return status;
}

__attribute__((noinline)) static int driver_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    int status = fake_post_recv(qp, wr, bad);
    __asm__ volatile("" : "+r"(status));
    return status;
}

/* ... while `is_on`: where nothing is counted, they would be. */
static void leave_out_driver(int is_on) {
    int i;
    for (i = 0; i < FAKE_CONTEXTS; i++) {
        if (fake.context[i] != NULL) {
            struct ibv_context_ops *ops = &fake.context[i]->ext.context.ops;
            ops->post_send = is_on ? driver_post_send : fake_post_send;
            ops->post_srq_recv = is_on ? driver_post_srq_recv : fake_post_srq_recv;
            ops->poll_cq = is_on ? driver_poll_cq : fake_poll_cq;
            ops->post_recv = is_on ? driver_post_recv : fake_post_recv;
        }
    }
    cci__ibv.create_qp = is_on ? driver_create_qp : fake_create_qp;
    cci__ibv.modify_qp = is_on ? driver_modify_qp : fake_modify_qp;
}

/* ---- a message ---------------------------------------------------------------------------------------------------- */

enum call { SEND, GET_EVENT, RETURN_EVENT };

static cci_event_t *event;

/* The end of a call is seen: there is no jump to the library. */
#define SEEN(status)                                                                                                   \
    {                                                                                                                  \
        int result = status;                                                                                           \
        __asm__ volatile("" : "+r"(result));                                                                           \
        return result;                                                                                                 \
    }

__attribute__((noinline)) static int counted_send(cci_connection_t *connection) {
    SEEN(cci_send(connection, bytes, size, NULL, flags))
}

__attribute__((noinline)) static int counted_get(cci_endpoint_t *end) {
    SEEN(cci_get_event(end, &event))
}

__attribute__((noinline)) static int counted_return(cci_event_t *it) {
    SEEN(cci_return_event(it))
}

static void do_call(enum call what, int side, int counts) {
    leave_out_driver(counts);
    if (what == SEND)
        must(counted_send(connections[side]));
    else if (what == GET_EVENT)
        must(counts ? counted_get(ends[side]) : cci_get_event(ends[side], &event));
    else
        must(counts ? counted_return(event) : cci_return_event(event));
    leave_out_driver(0);
}

/* A message from one side to the other, which has nothing else to do. The completion comes before the answer. */
static void one_message(int side, int counts_all) {
    do_call(SEND, side, 1);
    do_call(GET_EVENT, 1 - side, 1);
    lost += event->type != CCI_EVENT_RECV || event->recv.len != size;
    do_call(RETURN_EVENT, 1 - side, counts_all);
    if (!(flags & CCI_FLAG_SILENT)) {
        do_call(GET_EVENT, side, counts_all);
        lost += event->type != CCI_EVENT_SEND;
        do_call(RETURN_EVENT, side, counts_all);
    }
}

/* ---- two endpoints ------------------------------------------------------------------------------------------------ */

static void begin(const char *keys) {
    static char file[] = "/tmp/steps_verbs.XXXXXX";
    cci_device_t *const *devices;
    uint32_t caps;
    int fd = mkstemp(file), side;
    fake_begin();
    dprintf(fd, "[left]\ntransport = verbs\ndevice = fake0\n%s\n", keys);
    dprintf(fd, "[right]\ntransport = verbs\ndevice = fake1\n%s\n", keys);
    close(fd);
    setenv("CCI_CONFIG", file, 1);
    must(cci_init(CCI_ABI_VERSION, 0, &caps));
    unlink(file);
    must(cci_get_devices(&devices));
    for (side = 0; side < 2; side++) {
        must(cci_create_endpoint(devices[side], 0, &ends[side], NULL));
    }
}

static void end(void) {
    clock_step_ns = 100000;
    must(cci_finalize());
    fake_end();
}

/* The server's address, with no questions to be asked before. */
static const char *address(void) {
    static char uri[100];
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)((cci__rc *)(void *)ends[1])->hw->qp->qp_num);
    return uri;
}

/* ---- messages ----------------------------------------------------------------------------------------------------- */

static void connect_step(int side) {
    if (cci_get_event(ends[side], &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            must(cci_accept(event, NULL));
        } else if (event->type == CCI_EVENT_ACCEPT || event->type == CCI_EVENT_CONNECT) {
            connections[side] = event->connect.connection;
        }
        must(cci_return_event(event));
    }
}

static int messages(unsigned long count, int counts_all) {
    cci_rma_handle_t *handle;
    unsigned long i, before;
    char keys[64];
    int side;
    snprintf(keys, sizeof keys, "max_send_size = %u", SIZE_MOST);
    begin(keys);
    for (side = 0; side < 2; side++) { /* for NO_COPY */
        must(cci_rma_register(ends[side], bytes, sizeof bytes, CCI_FLAG_READ, &handle));
    }
    must(cci_connect(ends[0], address(), NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    while (connections[0] == NULL || connections[1] == NULL) {
        connect_step(0);
        connect_step(1);
    }
    clock_step_ns = 50;
    before = clocks;
    for (i = 0; i < count; i++) {
        one_message((int)(i & 1), counts_all);
        clock_ns += 1000;
    }
    printf("messages %lu lost %d clocks %lu\n", count, lost, clocks - before);
    end();
    return lost != 0;
}

/* ---- many connections --------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static int counted_connect(void) {
    SEEN(cci_connect(ends[0], address(), "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL))
}

/* A program looks once; returns the connections that are open from then on. */
__attribute__((noinline)) static int counted_look(int side) {
    int opened = 0;
    if (cci_get_event(ends[side], &event) == CCI_SUCCESS) {
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            must(cci_accept(event, NULL));
        } else {
            opened = event->connect.status == CCI_SUCCESS;
        }
        must(cci_return_event(event));
    }
    SEEN(opened)
}

/* Whose turn it is: while a slow adapter makes a queue pair, the other side looks often. */
static int looks_now(unsigned long turn, int is_slow) {
    return is_slow ? turn % 64 != 0 : (int)(turn & 1);
}

static int storm(unsigned long count, int is_slow) {
    unsigned long opened = 0, looks = 0, i;
    uint64_t began_ns;
    int before[3], sent;
    begin("setups = 0");
    make_ns[0] = is_slow ? SLOW_NS : MAKE_NS;
    make_ns[1] = is_slow ? 0 : MAKE_NS;
    clock_step_ns = 50;
    memcpy(before, fake.commands, sizeof before);
    sent = fake.sent;
    began_ns = clock_ns;
    leave_out_driver(1);
    for (i = 0; i < count; i++) {
        must(counted_connect());
    }
    for (; opened < 2 * count && looks < STORM_LOOKS * count; looks++) {
        opened += (unsigned long)counted_look(looks_now(looks, is_slow));
        clock_ns += LOOK_NS;
    }
    leave_out_driver(0);
    printf("connections %lu opened %lu datagrams %d made %d changed %d destroyed %d looks %lu ms %lu\n", count, opened / 2,
           fake.sent - sent, fake.commands[0] - before[0], fake.commands[1] - before[1], fake.commands[2] - before[2], looks,
           (unsigned long)((clock_ns - began_ns) / 1000000));
    end();
    return opened != 2 * count;
}

int main(int argc, char **argv) {
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (argc > 2 && strcmp(argv[1], "storm") == 0 && count > 0) {
        return storm(count, argc > 3 && strcmp(argv[3], "slow") == 0);
    }
    size = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    flags = argc > 4 && strcmp(argv[4], "silent") == 0   ? CCI_FLAG_SILENT
            : argc > 4 && strcmp(argv[4], "nocopy") == 0 ? CCI_FLAG_NO_COPY
                                                         : 0;
    if (count == 0 || size == 0 || size > SIZE_MOST) {
        fprintf(stderr, "usage: steps_verbs way|all COUNT SIZE [silent|nocopy] | storm COUNT [slow]\n");
        return 2;
    }
    return messages(count, strcmp(argv[1], "all") == 0);
}
