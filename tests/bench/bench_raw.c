/* SPDX-License-Identifier: MIT OR Unlicense */
/* bench_raw.c - what the machine can do with plain sockets: the figures that `make bench` divides by. Linux only.
 *
 *     cc -O2 -o bench_raw bench_raw.c
 *     ./bench_raw [-D seconds] [-c cpu,cpu] measure...       one CSV line for each: measure,value,unit,others
 *
 * `others` is the share of the time, in percent, in which one of the two processes had to wait for its CPU because
 * something else ran there: both always have something to do, so a quiet machine gives nearly 0.
 *
 * Each measure runs between two processes on the loopback, the receiving one (or the one that answers) on the first
 * CPU, the other on the second; both poll, nothing sleeps.
 *
 *     bounce    half of the time in which a cache line goes to the other process and comes back
 *     pair      half of the time of 64 bytes there and back through two rings of records of two lines, polled
 *     words     the same of a number alone: unlike the line of `bounce`, the one that is polled is not the one that is written
 *     ring      a ring of 1,024 slots of 64 bytes, each with its sequence word: slots taken, per second
 *     records   a ring of 512 records of two lines as in `pair`: 64 bytes copied in, and copied out, per second
 *     ring8k    a ring of 64 slots of 8 KiB, read in place (one word of each 64): bytes taken
 *     memcpy    1 MiB from one memory to another, in one process: bytes
 *     vm_1m     1 MiB written to the other process' memory by process_vm_writev: bytes
 *     vm_read   1 MiB read from the other process' memory, which that has filled, by process_vm_readv: bytes
 *     wake      half of the time in which two sleepers wake each other by writing to event descriptors
 *     lat       UDP, 64 bytes there and back, sendto and recvfrom on unconnected sockets: half of a round trip, median
 *     rate      UDP, 64 bytes one way, a system call for each: datagrams that arrived, per second
 *     bw8k      UDP, 8,192 bytes one way, 7 with each sendmsg (UDP_SEGMENT), received joined (UDP_GRO): bytes arrived
 *     bw1472    the same with 44 of 1,472 bytes: what fits an MTU of 1,500
 *     tcp_lat   TCP, 64 bytes there and back
 *     tcp_64k   TCP, writes of 64 KiB one way
 *     tcp_1m    TCP, writes of 1 MiB one way
 *
 * One-way UDP has no flow control here: the sender sends as fast as it can, and only what arrives is counted, at the
 * receiver, from the first to the last arrival. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Linux' numbers, for C libraries that don't declare them. */
#define SOL_UDP_ 17
#define UDP_SEGMENT_ 103
#define UDP_GRO_ 104

#define SMALL_BYTES 64u
#define LARGE_BYTES (1u << 20)
#define SOCKET_BUFFER_BYTES (4 << 20) /* what cci_udp.h asks for */
#define SAMPLE_LIMIT (1u << 20)
#define WARM_UP_SHARE 10 /* the first tenth of the time is not measured */

/* What the two processes share. Each word that is polled has a cache line of its own. */
struct shared {
    uint32_t turn, turn_pad[31];
    uint32_t finished, finished_pad[31];
    uint32_t consumed, consumed_pad[31];
    uint8_t ring[64 * 8192];
    uint64_t arrived_count, arrived_bytes, first_ns, last_ns; /* written by the receiver, read when it has ended */
};

struct bench {
    const char *name;
    double seconds;
    int cpus[2];
    int sockets[2]; /* of the receiving and of the sending process */
    struct sockaddr_in addresses[2];
    struct shared *shared;
    uint32_t message_bytes, segment_bytes;
    pid_t child;
};

static uint8_t buffer[LARGE_BYTES];
static uint32_t samples_ns[SAMPLE_LIMIT];
static uint32_t sample_count;

static void die(const char *what) {
    fprintf(stderr, "bench_raw: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU seconds of this process (RUSAGE_SELF) or of those that it has waited for (RUSAGE_CHILDREN). */
static double cpu_seconds(int who) {
    struct rusage usage;
    if (getrusage(who, &usage) != 0) return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("can't run on that CPU");
}

static int is_finished(const struct bench *bench) {
    return (int)__atomic_load_n(&bench->shared->finished, __ATOMIC_ACQUIRE);
}

static void finish(const struct bench *bench) { __atomic_store_n(&bench->shared->finished, 1u, __ATOMIC_RELEASE); }

/* An empty socket is the usual case of polling, and a refused datagram one of a peer that has ended. */
static int try_again(void) { return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ECONNREFUSED; }

/* ---- samples --------------------------------------------------------------------------------------------------- */

static void add_sample(uint64_t ns) {
    if (sample_count < SAMPLE_LIMIT) samples_ns[sample_count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static int compare_samples(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double median_ns(void) {
    uint32_t middle = sample_count / 2;
    if (sample_count == 0) return 0;
    qsort(samples_ns, sample_count, sizeof samples_ns[0], compare_samples);
    return samples_ns[middle];
}

/* ---- sockets --------------------------------------------------------------------------------------------------- */

/* The kernel caps the plain option at rmem_max; root may go beyond, as cci_udp.h does. */
static void grow_buffer(int fd, int force, int plain) {
    int bytes = SOCKET_BUFFER_BYTES;
    if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0)
        (void)setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
}

static int open_socket(int type, struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, type, 0);
    if (fd < 0) die("socket");
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)address, sizeof *address) != 0) die("bind");
    if (getsockname(fd, (struct sockaddr *)address, &length) != 0) die("getsockname");
    return fd;
}

static void open_udp(struct bench *bench) {
    int side;
    for (side = 0; side < 2; side++) {
        bench->sockets[side] = open_socket(SOCK_DGRAM | SOCK_NONBLOCK, &bench->addresses[side]);
        grow_buffer(bench->sockets[side], SO_RCVBUFFORCE, SO_RCVBUF);
        grow_buffer(bench->sockets[side], SO_SNDBUFFORCE, SO_SNDBUF);
    }
}

static void open_offloaded(struct bench *bench) {
    int segment = (int)bench->segment_bytes, one = 1;
    open_udp(bench);
    if (setsockopt(bench->sockets[0], SOL_UDP_, UDP_GRO_, &one, sizeof one) != 0) die("UDP_GRO");
    if (setsockopt(bench->sockets[1], SOL_UDP_, UDP_SEGMENT_, &segment, sizeof segment) != 0) die("UDP_SEGMENT");
}

/* Both ends of one TCP connection, ready before the processes part. */
static void open_tcp(struct bench *bench) {
    int side, one = 1, listener = open_socket(SOCK_STREAM, &bench->addresses[0]);
    if (listen(listener, 1) != 0) die("listen");
    bench->sockets[1] = open_socket(SOCK_STREAM, &bench->addresses[1]);
    if (connect(bench->sockets[1], (struct sockaddr *)&bench->addresses[0], sizeof bench->addresses[0]) != 0)
        die("connect");
    bench->sockets[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (bench->sockets[0] < 0) die("accept4");
    close(listener);
    for (side = 0; side < 2; side++)
        (void)setsockopt(bench->sockets[side], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* ---- cache line ------------------------------------------------------------------------------------------------ */

#define BOUNCES_PER_SAMPLE 100u

static void bounce_answer(struct bench *bench) {
    uint32_t *turn = &bench->shared->turn;
    uint32_t expected = 1;
    while (!is_finished(bench)) {
        uint32_t polls;
        for (polls = 0; polls < 4096; polls++) {
            if (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != expected) continue;
            __atomic_store_n(turn, expected + 1, __ATOMIC_RELEASE);
            expected += 2;
        }
    }
}

static void bounce_ask(struct bench *bench) {
    uint32_t *turn = &bench->shared->turn;
    uint32_t next = 1, i;
    uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(bench->seconds * 1e9), then_ns = begin_ns;
    while (then_ns < end_ns) {
        for (i = 0; i < BOUNCES_PER_SAMPLE; i++, next += 2) {
            __atomic_store_n(turn, next, __ATOMIC_RELEASE);
            while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != next + 1) {}
        }
        add_sample((now_ns() - then_ns) / (2 * BOUNCES_PER_SAMPLE));
        then_ns = now_ns();
    }
    finish(bench);
}

static double bounce_value(struct bench *bench) {
    (void)bench;
    return median_ns();
}

/* ---- two rings ------------------------------------------------------------------------------------------------- */

#define PAIR_RECORDS 512u
#define PAIR_BYTES 128u

static uint8_t *pair_record(const struct bench *bench, uint32_t way, uint32_t number) {
    return bench->shared->ring + (size_t)(way * PAIR_RECORDS + number % PAIR_RECORDS) * PAIR_BYTES;
}

/* A number and 64 bytes, which with a few of a header are more than a line; or no bytes. */
static void pair_put(const struct bench *bench, uint32_t way, uint32_t number) {
    uint8_t *record = pair_record(bench, way, number);
    if (bench->message_bytes > 0) { /* the line that is polled last: nothing was faster of some twenty ways */
        memcpy(record + 64, buffer + 48, SMALL_BYTES - 48);
        memcpy(record + 16, buffer, 48);
    }
    __atomic_store_n((uint32_t *)(void *)record, number + 1, __ATOMIC_RELEASE);
}

/* Returns 0 when the other side has ended. */
static int pair_take(const struct bench *bench, uint32_t way, uint32_t number) {
    uint8_t *record = pair_record(bench, way, number);
    uint32_t polls = 0;
    while (__atomic_load_n((uint32_t *)(void *)record, __ATOMIC_ACQUIRE) != number + 1) {
        if (bench->message_bytes > 0) __builtin_prefetch(record + 64); /* both lines are asked for at once */
        if ((++polls & 4095) == 0 && is_finished(bench)) return 0;
    }
    if (bench->message_bytes > 0) memcpy(buffer + SMALL_BYTES, record + 16, SMALL_BYTES);
    return 1;
}

static void pair_answer(struct bench *bench) {
    uint32_t number;
    for (number = 0; pair_take(bench, 0, number); number++) pair_put(bench, 1, number);
}

static void pair_ask(struct bench *bench) {
    uint32_t number = 0, i;
    uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(bench->seconds * 1e9), then_ns = begin_ns;
    while (then_ns < end_ns) {
        for (i = 0; i < BOUNCES_PER_SAMPLE; i++, number++) {
            pair_put(bench, 0, number);
            (void)pair_take(bench, 1, number);
        }
        add_sample((now_ns() - then_ns) / (2 * BOUNCES_PER_SAMPLE));
        then_ns = now_ns();
    }
    finish(bench);
}

/* ---- there and back -------------------------------------------------------------------------------------------- */

static void udp_answer(struct bench *bench) {
    struct sockaddr_in from;
    while (!is_finished(bench)) {
        socklen_t from_length = sizeof from;
        ssize_t got = recvfrom(bench->sockets[0], buffer, sizeof buffer, 0, (struct sockaddr *)&from, &from_length);
        if (got < 0 && !try_again()) die("recvfrom");
        if (got < 0) continue;
        got = sendto(bench->sockets[0], buffer, (size_t)got, 0, (struct sockaddr *)&from, from_length);
        if (got < 0 && !try_again()) die("sendto");
    }
}

/* A datagram that got lost (the loopback loses none that fit the buffer) would end the test without a result, which
 * is said rather than hidden. */
static void udp_round_trip(struct bench *bench) {
    struct sockaddr_in from;
    socklen_t from_length = sizeof from;
    if (sendto(bench->sockets[1], buffer, SMALL_BYTES, 0, (struct sockaddr *)&bench->addresses[0],
               sizeof bench->addresses[0]) < 0)
        die("sendto");
    while (recvfrom(bench->sockets[1], buffer, sizeof buffer, 0, (struct sockaddr *)&from, &from_length) < 0)
        if (!try_again()) die("recvfrom");
}

static void tcp_answer(struct bench *bench) {
    while (!is_finished(bench)) {
        ssize_t got = recv(bench->sockets[0], buffer, SMALL_BYTES, MSG_DONTWAIT);
        if (got < 0 && !try_again()) die("recv");
        if (got > 0 && send(bench->sockets[0], buffer, (size_t)got, MSG_NOSIGNAL) != got) break;
    }
}

static void tcp_round_trip(struct bench *bench) {
    size_t done = 0;
    if (send(bench->sockets[1], buffer, SMALL_BYTES, MSG_NOSIGNAL) < 0) die("send");
    while (done < SMALL_BYTES) {
        ssize_t got = recv(bench->sockets[1], buffer, SMALL_BYTES - done, MSG_DONTWAIT);
        if (got < 0 && !try_again()) die("recv");
        if (got > 0) done += (size_t)got;
    }
}

static void ask(struct bench *bench, void (*round_trip)(struct bench *)) {
    uint64_t begin_ns = now_ns(), length_ns = (uint64_t)(bench->seconds * 1e9), then_ns = begin_ns, ns;
    while (then_ns - begin_ns < length_ns) {
        round_trip(bench);
        ns = now_ns();
        if (ns - begin_ns > length_ns / WARM_UP_SHARE) add_sample(ns - then_ns);
        then_ns = ns;
    }
    finish(bench);
}

static void udp_ask(struct bench *bench) { ask(bench, udp_round_trip); }
static void tcp_ask(struct bench *bench) { ask(bench, tcp_round_trip); }

static double half_round_trip_us(struct bench *bench) {
    (void)bench;
    return median_ns() / 2000;
}

/* ---- one way --------------------------------------------------------------------------------------------------- */

static void arrived(struct bench *bench, uint64_t bytes) {
    struct shared *shared = bench->shared;
    shared->last_ns = now_ns();
    if (shared->first_ns == 0) { /* what came first began before the clock did */
        shared->first_ns = shared->last_ns;
        return;
    }
    shared->arrived_count++;
    shared->arrived_bytes += bytes;
}

/* Receives until the sender has finished and nothing is left. */
static void receive_datagrams(struct bench *bench) {
    struct sockaddr_in from;
    for (;;) {
        int last_look = is_finished(bench);
        socklen_t from_length = sizeof from;
        ssize_t got = recvfrom(bench->sockets[0], buffer, sizeof buffer, 0, (struct sockaddr *)&from, &from_length);
        if (got >= 0) arrived(bench, (uint64_t)got);
        else if (!try_again()) die("recvfrom");
        else if (last_look) break;
    }
}

static void send_datagrams(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    int i;
    while (now_ns() < end_ns)
        for (i = 0; i < 16; i++)
            if (sendto(bench->sockets[1], buffer, SMALL_BYTES, 0, (struct sockaddr *)&bench->addresses[0],
                       sizeof bench->addresses[0]) < 0 && !try_again())
                die("sendto");
    finish(bench);
}

/* The size of the joined datagrams comes beside them: a program that wants to take them apart needs it, so it is
 * asked for here too. */
static void receive_joined(struct bench *bench) {
    struct sockaddr_in from;
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece;
    struct msghdr message;
    for (;;) {
        int last_look = is_finished(bench);
        ssize_t got;
        memset(&message, 0, sizeof message);
        piece.iov_base = buffer;
        piece.iov_len = 65536;
        message.msg_name = &from;
        message.msg_namelen = sizeof from;
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        got = recvmsg(bench->sockets[0], &message, 0);
        if (got >= 0) arrived(bench, (uint64_t)got);
        else if (!try_again()) die("recvmsg");
        else if (last_look) break;
    }
}

static void send_segmented(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    struct iovec piece;
    struct msghdr message;
    memset(&message, 0, sizeof message);
    piece.iov_base = buffer;
    piece.iov_len = bench->message_bytes;
    message.msg_name = &bench->addresses[0];
    message.msg_namelen = sizeof bench->addresses[0];
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    while (now_ns() < end_ns)
        if (sendmsg(bench->sockets[1], &message, 0) < 0 && !try_again()) die("sendmsg");
    finish(bench);
}

static void receive_stream(struct bench *bench) {
    for (;;) {
        int last_look = is_finished(bench);
        ssize_t got = recv(bench->sockets[0], buffer, bench->message_bytes, MSG_DONTWAIT);
        if (got > 0) arrived(bench, (uint64_t)got);
        else if (got == 0 || !try_again()) die("recv");
        else if (last_look) break;
    }
}

static void send_stream(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    while (now_ns() < end_ns)
        if (send(bench->sockets[1], buffer, bench->message_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && !try_again())
            die("send");
    finish(bench);
}

/* ---- shared memory ---------------------------------------------------------------------------------------------- */

static uint8_t *slot_of(const struct bench *bench, uint32_t number) {
    uint32_t slots = bench->message_bytes == 64 ? 1024 : 64;
    return bench->shared->ring + (size_t)(number % slots) * bench->message_bytes;
}

/* The consumer tells how far it is once for each eighth of the ring. */
static void take_slots(struct bench *bench) {
    uint32_t next = 0, i, slots = bench->message_bytes == 64 ? 1024 : 64;
    uint64_t sum = 0;
    for (;;) {
        uint8_t *slot = slot_of(bench, next);
        if (__atomic_load_n((uint32_t *)(void *)slot, __ATOMIC_ACQUIRE) != next + 1) {
            if (is_finished(bench)) break;
            continue;
        }
        for (i = 8; i < bench->message_bytes; i += 64) sum += slot[i];
        if (++next % (slots / 8) == 0) {
            __atomic_store_n(&bench->shared->consumed, next, __ATOMIC_RELEASE);
            bench->shared->last_ns = now_ns();
            bench->shared->arrived_count = next;
            bench->shared->arrived_bytes = (uint64_t)next * bench->message_bytes;
        }
        if (next == 1) bench->shared->first_ns = now_ns();
    }
    buffer[0] = (uint8_t)sum;
}

static void put_slots(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    uint32_t next = 0, slots = bench->message_bytes == 64 ? 1024 : 64;
    while ((next & 255) != 0 || now_ns() < end_ns) {
        uint8_t *slot = slot_of(bench, next);
        while (next - __atomic_load_n(&bench->shared->consumed, __ATOMIC_ACQUIRE) >= slots) {}
        memcpy(slot + 4, buffer + 4, bench->message_bytes - 4);
        __atomic_store_n((uint32_t *)(void *)slot, ++next, __ATOMIC_RELEASE);
    }
    finish(bench);
}

/* What a library has to do at the least: the bytes of each message are copied out, and the sender looks at what is
 * consumed only when the ring seems to be full, of which it hears with each quarter. */
static void take_records(struct bench *bench) {
    uint32_t next;
    for (next = 0; pair_take(bench, 0, next);) {
        __asm__ volatile("" : : "r"(buffer) : "memory"); /* the program may look at it */
        if (++next % (PAIR_RECORDS / 4) == 0) {
            __atomic_store_n(&bench->shared->consumed, next, __ATOMIC_RELEASE);
            bench->shared->last_ns = now_ns();
            bench->shared->arrived_count = next;
        }
        if (next == 1) bench->shared->first_ns = now_ns();
    }
}

static void put_records(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    uint32_t next = 0, consumed = 0;
    while ((next & 255) != 0 || now_ns() < end_ns) {
        while (next - consumed >= PAIR_RECORDS) consumed = __atomic_load_n(&bench->shared->consumed, __ATOMIC_ACQUIRE);
        pair_put(bench, 0, next++);
    }
    finish(bench);
}

static void wait_until_finished(struct bench *bench) {
    while (!is_finished(bench)) usleep(1000);
}

static void copy_here(struct bench *bench) {
    static uint8_t other[LARGE_BYTES];
    uint64_t begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(bench->seconds * 1e9);
    memset(other, 3, sizeof other);
    bench->shared->first_ns = now_ns();
    while (now_ns() < end_ns) {
        memcpy(other, buffer, sizeof other);
        __asm__ volatile("" : : "r"(other) : "memory");
        bench->shared->arrived_bytes += sizeof other;
    }
    bench->shared->last_ns = now_ns();
    finish(bench);
}

/* The other process' buffer is at the same address as ours: it is our child. */
static void copy_over(struct bench *bench, int reads) {
    uint64_t end_ns;
    struct iovec here, there;
    here.iov_base = there.iov_base = buffer;
    here.iov_len = there.iov_len = sizeof buffer;
    end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9);
    bench->shared->first_ns = now_ns();
    while (now_ns() < end_ns) {
        ssize_t count = reads ? process_vm_readv(bench->child, &here, 1, &there, 1, 0)
                              : process_vm_writev(bench->child, &here, 1, &there, 1, 0);
        if (count != (ssize_t)sizeof buffer) die("process_vm");
        bench->shared->arrived_bytes += sizeof buffer;
    }
    bench->shared->last_ns = now_ns();
    finish(bench);
}

static void copy_there(struct bench *bench) { copy_over(bench, 0); }
static void copy_from_there(struct bench *bench) { copy_over(bench, 1); }

static void fill_and_wait(struct bench *bench) {
    memset(buffer, 7, sizeof buffer);
    wait_until_finished(bench);
}

static void open_events(struct bench *bench) {
    bench->sockets[0] = eventfd(0, EFD_NONBLOCK);
    bench->sockets[1] = eventfd(0, EFD_NONBLOCK);
    if (bench->sockets[0] < 0 || bench->sockets[1] < 0) die("eventfd");
}

static int sleep_on(int fd) {
    struct pollfd item = {fd, POLLIN, 0};
    uint64_t count;
    return poll(&item, 1, 100) == 1 && read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}

static void wake(int fd) {
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) die("eventfd");
}

static void wake_answer(struct bench *bench) {
    while (!is_finished(bench))
        if (sleep_on(bench->sockets[0])) wake(bench->sockets[1]);
}

static void wake_ask(struct bench *bench) {
    uint64_t end_ns = now_ns() + (uint64_t)(bench->seconds * 1e9), then_ns;
    while ((then_ns = now_ns()) < end_ns) {
        wake(bench->sockets[0]);
        while (!sleep_on(bench->sockets[1])) {}
        add_sample((now_ns() - then_ns) / 2);
    }
    finish(bench);
}

static double median_us(struct bench *bench) {
    (void)bench;
    return median_ns() / 1000;
}

static double arrived_seconds(const struct bench *bench) {
    uint64_t ns = bench->shared->last_ns - bench->shared->first_ns;
    return ns ? (double)ns / 1e9 : 1;
}

static double arrived_per_second(struct bench *bench) {
    return (double)bench->shared->arrived_count / arrived_seconds(bench);
}

static double arrived_bytes_per_second(struct bench *bench) {
    return (double)bench->shared->arrived_bytes / arrived_seconds(bench);
}

/* ---- the measures ---------------------------------------------------------------------------------------------- */

static void open_nothing(struct bench *bench) { (void)bench; }

static const struct measure {
    const char *name;
    uint32_t message_bytes, segment_bytes; /* handed to the kernel with one call; of these each datagram */
    void (*open)(struct bench *bench);
    void (*receive)(struct bench *bench); /* in the process on the first CPU, until finished */
    void (*send)(struct bench *bench);    /* in the one on the second: for the time that was asked for */
    double (*value)(struct bench *bench);
    const char *unit;
} measures[] = {
    {"bounce", 0, 0, open_nothing, bounce_answer, bounce_ask, bounce_value, "ns"},
    {"pair", 64, 0, open_nothing, pair_answer, pair_ask, bounce_value, "ns"},
    {"words", 0, 0, open_nothing, pair_answer, pair_ask, bounce_value, "ns"},
    {"ring", 64, 0, open_nothing, take_slots, put_slots, arrived_per_second, "1/s"},
    {"records", 64, 0, open_nothing, take_records, put_records, arrived_per_second, "1/s"},
    {"ring8k", 8192, 0, open_nothing, take_slots, put_slots, arrived_bytes_per_second, "B/s"},
    {"memcpy", LARGE_BYTES, 0, open_nothing, wait_until_finished, copy_here, arrived_bytes_per_second, "B/s"},
    {"vm_1m", LARGE_BYTES, 0, open_nothing, wait_until_finished, copy_there, arrived_bytes_per_second, "B/s"},
    {"vm_read", LARGE_BYTES, 0, open_nothing, fill_and_wait, copy_from_there, arrived_bytes_per_second, "B/s"},
    {"wake", 0, 0, open_events, wake_answer, wake_ask, median_us, "us"},
    {"lat", 64, 64, open_udp, udp_answer, udp_ask, half_round_trip_us, "us"},
    {"rate", 64, 64, open_udp, receive_datagrams, send_datagrams, arrived_per_second, "1/s"},
    {"bw8k", 7 * 8192, 8192, open_offloaded, receive_joined, send_segmented, arrived_bytes_per_second, "B/s"},
    {"bw1472", 44 * 1472, 1472, open_offloaded, receive_joined, send_segmented, arrived_bytes_per_second, "B/s"},
    {"tcp_lat", 64, 64, open_tcp, tcp_answer, tcp_ask, half_round_trip_us, "us"},
    {"tcp_64k", 65536, 0, open_tcp, receive_stream, send_stream, arrived_bytes_per_second, "B/s"},
    {"tcp_1m", LARGE_BYTES, 0, open_tcp, receive_stream, send_stream, arrived_bytes_per_second, "B/s"},
};
#define MEASURE_COUNT (sizeof measures / sizeof measures[0])

static void run(struct bench *bench, const struct measure *measure) {
    double begin[2], used[2], least, seconds;
    uint64_t begin_ns;
    int status;
    pid_t child;
    memset(bench->shared, 0, sizeof *bench->shared);
    memset(buffer, 1, sizeof buffer); /* real pages on both sides */
    sample_count = 0;
    bench->name = measure->name;
    bench->message_bytes = measure->message_bytes;
    bench->segment_bytes = measure->segment_bytes;
    bench->sockets[0] = bench->sockets[1] = -1;
    measure->open(bench);
    begin[0] = cpu_seconds(RUSAGE_CHILDREN);
    begin[1] = cpu_seconds(RUSAGE_SELF);
    begin_ns = now_ns();
    child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody polls on when the parent has failed */
        pin(bench->cpus[0]);
        memset(buffer, 2, sizeof buffer);
        measure->receive(bench);
        _exit(0);
    }
    bench->child = child;
    pin(bench->cpus[1]);
    measure->send(bench);
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "bench_raw: %s: the other process failed\n", measure->name);
        exit(1);
    }
    seconds = (double)(now_ns() - begin_ns) / 1e9;
    used[0] = cpu_seconds(RUSAGE_CHILDREN) - begin[0];
    used[1] = cpu_seconds(RUSAGE_SELF) - begin[1];
    least = used[0] < used[1] ? used[0] : used[1];
    if (bench->sockets[0] >= 0) close(bench->sockets[0]);
    if (bench->sockets[1] >= 0) close(bench->sockets[1]);
    printf("%s,%.10g,%s,%.1f\n", measure->name, measure->value(bench), measure->unit,
           least < seconds ? (1 - least / seconds) * 100 : 0);
    fflush(stdout);
}

static const struct measure *find_measure(const char *name) {
    size_t i;
    for (i = 0; i < MEASURE_COUNT; i++)
        if (strcmp(measures[i].name, name) == 0) return &measures[i];
    return NULL;
}

static void usage(void) {
    size_t i;
    fprintf(stderr, "usage: bench_raw [-D seconds] [-c cpu,cpu] measure...\nmeasures:");
    for (i = 0; i < MEASURE_COUNT; i++) fprintf(stderr, " %s", measures[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

int main(int argc, char **argv) {
    struct bench bench;
    int option, i;
    memset(&bench, 0, sizeof bench);
    bench.seconds = 0.3;
    bench.cpus[1] = 1;
    while ((option = getopt(argc, argv, "D:c:h")) != -1) {
        if (option == 'D') bench.seconds = strtod(optarg, NULL);
        else if (option != 'c' || sscanf(optarg, "%d,%d", &bench.cpus[0], &bench.cpus[1]) != 2) usage();
    }
    if (optind == argc || bench.seconds <= 0 || bench.seconds > 60) usage();
    for (i = optind; i < argc; i++)
        if (!find_measure(argv[i])) usage();
    bench.shared = (struct shared *)mmap(NULL, sizeof *bench.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                         -1, 0);
    if (bench.shared == MAP_FAILED) die("mmap");
    for (i = optind; i < argc; i++) run(&bench, find_measure(argv[i]));
    return 0;
}
