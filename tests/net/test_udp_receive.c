/* test_udp_receive.c - what cci_udp.h makes of what sockets have: each datagram comes once, in the order of its socket, with its sender,
 * whether the system hands over one, many, or several side by side. SPDX-License-Identifier: MIT OR Unlicense
 *
 * The system's calls are played, on three sockets: the two of the endpoint, and one of a multicast group.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__linux__) && !defined(CCI_UDP_PORTABLE)
static long play_call(long number, ...);
static ssize_t play_recvmsg(int fd, struct msghdr *message, int flags);
static ssize_t play_recvfrom(int fd, void *bytes, size_t length, int flags, struct sockaddr *from, socklen_t *size);
static int play_setsockopt(int fd, int level, int name, const void *value, socklen_t size);

#define syscall(...) play_call(__VA_ARGS__)
#define recvmsg(fd, message, flags) play_recvmsg(fd, message, flags)
#define recvfrom(fd, bytes, length, flags, from, size) play_recvfrom(fd, bytes, length, flags, from, size)
#define setsockopt(fd, level, name, value, size) play_setsockopt(fd, level, name, value, size)
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"
#undef syscall
#undef recvmsg
#undef recvfrom
#undef setsockopt

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

/* ---- the system ------------------------------------------------------------------------------------------------------- */

enum { SOCKETS = 3, MOST = 4000, CAPACITY = 3000, BUFFERS = 40 };

typedef struct datagram {
    uint32_t length;
    int peer;
    uint32_t codepoint;
} datagram_t;

static struct queue {
    int fd;
    datagram_t datagram[MOST];
    int came, taken; /* into the queue, and out of it by the system's calls */
    int told;        /* by the link */
    int coalesces, tells, oldest;
} queues[SOCKETS];

static int is_played, call_count, has_many, may_coalesce, next_error, calls_until_error, log_count;
static uint64_t random_state = 1;

static uint32_t below(uint32_t n) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

static struct queue *queue_of(int fd) {
    int i;
    for (i = 0; is_played && i < SOCKETS; i++)
        if (queues[i].fd == fd) return &queues[i];
    return NULL;
}

/* The bytes of a datagram tell its socket, its number and the place of each. */
static uint8_t byte_of(int slot, int number, uint32_t at) {
    return at == 0 ? (uint8_t)slot : at == 1 ? (uint8_t)number : at == 2 ? (uint8_t)(number >> 8) : (uint8_t)((uint32_t)number * 31 + at * 7);
}

static socklen_t name_peer(const struct queue *q, int peer, cci__udp_sockaddr *to) {
    int v6 = q == &queues[1];
    memset(to, 0, sizeof *to);
    if (v6) {
        to->v6.sin6_family = AF_INET6;
        to->v6.sin6_port = (uint16_t)(5000 + peer);
        to->v6.sin6_addr.s6_addr[15] = (uint8_t)peer;
        return sizeof to->v6;
    }
    to->v4.sin_family = AF_INET;
    to->v4.sin_port = (uint16_t)(5000 + peer);
    memset(&to->v4.sin_addr, peer, 4);
    return sizeof to->v4;
}

/* What one buffer gets; the bytes that it would have needed, 0 for nothing. With *segment several of one codepoint may lie side by
 * side. */
static size_t fill(struct queue *q, uint8_t *bytes, size_t capacity, cci__udp_sockaddr *from, uint32_t *segment) {
    const datagram_t *first = &q->datagram[q->taken];
    size_t length = 0;
    uint32_t size = first->length;
    int n = 0;
    if (segment) *segment = 0;
    if (q->taken == q->came) return 0;
    (void)name_peer(q, first->peer, from);
    do {
        const datagram_t *d = &q->datagram[q->taken];
        uint32_t at;
        for (at = 0; at < d->length && length + at < capacity; at++) bytes[length + at] = byte_of((int)(q - queues), q->taken, at);
        length += d->length;
        n++;
        q->taken++;
        if (d->length < size) break; /* a shorter one is the last */
    } while (segment && q->coalesces && q->taken < q->came && q->datagram[q->taken].peer == first->peer &&
             q->datagram[q->taken].codepoint == first->codepoint &&
             q->datagram[q->taken].length <= size && length + q->datagram[q->taken].length < capacity + 700 && below(8) > 0);
    if (segment && n > 1) *segment = size;
    return length;
}

static int refuses(const struct queue *q) {
    call_count++;
    if (next_error != 0 && calls_until_error-- <= 0) {
        errno = next_error;
        next_error = calls_until_error = 0;
        return 1;
    }
    errno = q->taken == q->came ? EAGAIN : EBADF; /* nobody may look at it when there is something */
    return q->taken == q->came;
}

static ssize_t play_recvfrom(int fd, void *bytes, size_t length, int flags, struct sockaddr *from, socklen_t *size) {
    struct queue *q = queue_of(fd);
    if (!q) return recvfrom(fd, bytes, length, flags, from, size);
    assert_int_equal(flags, MSG_TRUNC);
    assert_int_equal(*size, sizeof(cci__udp_sockaddr));
    assert_false(q->coalesces); /* its datagrams would come side by side, and nobody would know */
    assert_false(q->tells);     /* nor their codepoints */
    if (refuses(q)) return -1;
    return (ssize_t)fill(q, (uint8_t *)bytes, length, (cci__udp_sockaddr *)(void *)from, NULL);
}

/* Lays a control message behind those that are there. */
static void tell(struct msghdr *m, size_t room, int level, int type, const void *value, size_t size) {
    uint8_t *at = (uint8_t *)m->msg_control + m->msg_controllen;
    struct cmsghdr c;
    assert_true(m->msg_controllen + CMSG_SPACE(size) <= room);
    memset(&c, 0, sizeof c);
    c.cmsg_level = level;
    c.cmsg_type = type;
    c.cmsg_len = CMSG_LEN(size);
    memcpy(at, &c, sizeof c);
    memcpy(at + CMSG_LEN(0), value, size);
    m->msg_controllen += CMSG_SPACE(size);
}

static size_t fill_message(struct queue *q, struct msghdr *m) {
    uint32_t segment, codepoint = q->datagram[q->taken].codepoint;
    size_t room = m->msg_controllen;
    size_t capacity = m->msg_iov[0].iov_len, needed;
    assert_int_equal(m->msg_iovlen, 1);
    assert_int_equal(m->msg_namelen, sizeof(cci__udp_sockaddr));
    if (q->coalesces) assert_true(m->msg_control != NULL && m->msg_controllen >= CMSG_SPACE(sizeof(int)));
    needed = fill(q, (uint8_t *)m->msg_iov[0].iov_base, capacity, (cci__udp_sockaddr *)m->msg_name, &segment);
    m->msg_flags = needed > capacity ? MSG_TRUNC : 0;
    m->msg_controllen = 0;
    if (segment > 0) {
        int size = (int)segment;
        tell(m, room, CCI__UDP_SOL_UDP, CCI__UDP_GRO, &size, sizeof size);
    }
    if (q->tells && needed > 0) {
        uint8_t byte = (uint8_t)(codepoint | 0xb8);
        int tclass = byte;
        if (q == &queues[1])
            tell(m, room, IPPROTO_IPV6, CCI__UDP_IPV6_TCLASS, &tclass, sizeof tclass);
        else
            tell(m, room, IPPROTO_IP, CCI__UDP_IP_TOS, &byte, sizeof byte);
    }
    return needed < capacity ? needed : capacity;
}

static ssize_t play_recvmsg(int fd, struct msghdr *message, int flags) {
    struct queue *q = queue_of(fd);
    if (!q) return recvmsg(fd, message, flags);
    if (refuses(q)) return -1;
    return (ssize_t)fill_message(q, message);
}

static int play_setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
    struct queue *q = queue_of(fd);
    if (!q) return setsockopt(fd, level, name, value, size);
    assert_true(level == CCI__UDP_SOL_UDP && name == CCI__UDP_GRO);
    assert_true(size == sizeof(int) && *(const int *)value == 1);
    if (!may_coalesce) {
        errno = ENOPROTOOPT;
        return -1;
    }
    q->coalesces = 1;
    return 0;
}

static long play_call(long number, ...) {
    va_list arguments;
    long a[6] = {0};
    int i;
    va_start(arguments, number);
    for (i = 0; i < (number == SYS_epoll_pwait2 ? 6 : number == SYS_recvmmsg ? 5 : 4); i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_recvmmsg && queue_of((int)a[0])) {
        struct queue *q = queue_of((int)a[0]);
        cci__udp_mmsghdr *message = (cci__udp_mmsghdr *)a[1];
        assert_in_range((int)a[2], 2, CCI__UDP_IN_MESSAGES);
        if (!has_many) {
            call_count++;
            errno = ENOSYS;
            return -1;
        }
        if (refuses(q)) return -1;
        for (i = 0; i < (int)a[2] && q->taken < q->came; i++) message[i].length = (unsigned)fill_message(q, &message[i].header);
        return i;
    }
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- what the link says ---------------------------------------------------------------------------------------------------- */

static cci__udp_link *the_link;
static cci_link_addr_t the_group;

static void count_log(void *user, int level, const char *text) {
    (void)user, (void)level, (void)text;
    log_count++;
}

static int begin(void **state) {
    cci_setup_t setup;
    cci_endpoint_t *endpoint;
    uint32_t caps;
    int i;
    (void)state;
    memset(&setup, 0, sizeof setup);
    setup.config = "[it]\ntransport = udp\ninterface = lo\necn = 1\n";
    setup.log = count_log;
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) return -1;
    if (cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS) return -1;
    the_link = (cci__udp_link *)((cci__dgram_t *)(void *)endpoint)->base.handle;
    memset(queues, 0, sizeof queues);
    memset(&the_group, 7, sizeof the_group);
    for (i = 0; i < SOCKETS; i++) {
        queues[i].fd = i < 2 ? the_link->socket[i].fd : 100000;
        queues[i].tells = the_link->socket[i].tells;
    }
    assert_int_equal(queues[0].tells, 1);
    if (queues[1].fd < 0) queues[1].fd = the_link->socket[1].fd = 100001;
    the_link->socket[2].fd = queues[2].fd;
    the_link->socket[2].group = the_group;
    is_played = has_many = may_coalesce = 1;
    next_error = calls_until_error = call_count = log_count = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    is_played = 0;
    the_link->socket[2].fd = -1;
    if (the_link->socket[1].fd == 100001) the_link->socket[1].fd = -1;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    return 0;
}

static void arrive(int slot, uint32_t length, int peer) {
    struct queue *q = &queues[slot];
    assert_true(q->came < MOST);
    q->datagram[q->came].length = length;
    q->datagram[q->came].codepoint = q->tells && below(4) == 0 ? below(4) : 2;
    q->datagram[q->came++].peer = peer;
}

/* The datagrams of a buffer are the next ones of their socket; what was too long for a buffer has been passed over. */
static void check(const cci_link_rx_t *rx) {
    uint32_t at, i;
    int slot = rx->length > 0 ? rx->data[0] : -1;
    cci__udp_sockaddr system;
    cci_link_addr_t from;
    if (slot < 0) return;
    assert_in_range(slot, 0, SOCKETS - 1);
    assert_true(rx->segment > 0 && rx->segment <= rx->length);
    for (at = 0; at < rx->length; at += rx->segment) {
        struct queue *q = &queues[slot];
        uint32_t length = rx->length - at < rx->segment ? rx->length - at : rx->segment;
        int number = rx->data[at + 1] | rx->data[at + 2] << 8;
        assert_true(number >= q->told && number < q->taken);
        while (q->told < number) { /* too long for a buffer, alone or behind others */
            assert_true(q->datagram[q->told].length > CAPACITY || q->datagram[q->told].length == 0 || q->coalesces);
            q->told++;
        }
        q->told++;
        assert_int_equal(length, q->datagram[number].length);
        assert_int_equal(rx->codepoint, q->tells ? q->datagram[number].codepoint : 0);
        for (i = 0; i < length; i++) assert_int_equal(rx->data[at + i], byte_of(slot, number, i));
        (void)name_peer(q, q->datagram[number].peer, &system);
        cci__udp_from_system(&from, &system);
        assert_memory_equal(&from, &rx->from, sizeof from);
    }
    assert_int_equal(rx->is_group, slot == 2);
    if (slot == 2) assert_memory_equal(&rx->group, &the_group, sizeof the_group);
}

/* One call of the link with so many buffers. */
static int take(int count) {
    static uint8_t memory[BUFFERS][CAPACITY + 8];
    cci_link_rx_t rx[BUFFERS];
    uint64_t calls = the_link->system_calls;
    int i, got, calls_before = call_count;
    memset(rx, 0xee, sizeof rx);
    for (i = 0; i < count; i++) {
        rx[i].data = memory[i];
        rx[i].capacity = CAPACITY;
        memset(memory[i], 0xdd, sizeof memory[i]);
    }
    got = cci__udp_receive(the_link, rx, count);
    assert_int_equal(the_link->system_calls - calls, call_count - calls_before);
    assert_in_range(got + 1, 0, count + 1);
    for (i = 0; i < got; i++) check(&rx[i]);
    for (i = 0; i < count; i++) assert_int_equal(memory[i][CAPACITY], 0xdd);
    return got;
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------ */

static void an_idle_call_and_a_ping_pong_cost_one_call_of_the_system(void **state) {
    uint64_t before;
    int i;
    (void)state;
    for (i = 0; i < 31; i++) assert_int_equal(take(4), 0);
    assert_true(the_link->calls % CCI__UDP_LOOK_AROUND == CCI__UDP_LOOK_AROUND - 1);
    assert_int_equal(take(4), 0); /* this one looks at all */
    call_count = 0;
    before = the_link->system_calls;
    for (i = 0; i < 15; i++) {
        arrive(0, 64, 1);
        assert_int_equal(take(4), 1);
        assert_int_equal(take(4), 0);
    }
    assert_int_equal(call_count, 30);
    assert_int_equal(the_link->system_calls - before, 30);
}

static void what_has_come_is_taken_in_one_call_after_one_that_found_something(void **state) {
    int i;
    (void)state;
    may_coalesce = 0;
    for (i = 0; i < 60; i++) arrive(0, 100, 1);
    assert_int_equal(take(40), 1);
    assert_int_equal(take(40), 1);
    call_count = 0;
    assert_int_equal(take(40), 32); /* most of one call */
    assert_int_equal(call_count, 1);
    assert_int_equal(take(10), 10);
    assert_int_equal(take(40), 16);
    assert_int_equal(take(40), 0);
    assert_int_equal(the_link->gro, 0); /* the system can't: it is asked once */
}

static void without_the_call_for_many_they_come_one_by_one(void **state) {
    int i;
    (void)state;
    has_many = 0;
    for (i = 0; i < 60; i++) arrive(0, 100, 1);
    assert_int_equal(take(40), 1);
    assert_int_equal(take(40), 1);
    assert_int_equal(take(40), 40);
    assert_int_equal(the_link->mmsg, 0);
    assert_int_equal(take(40), 18);
    assert_int_equal(queues[0].told, 60);
}

static void each_error_has_its_consequence(void **state) {
    int error;
    (void)state;
    for (error = 1; error < 134; error++) {
        int is_nothing = error == EAGAIN || error == EINTR || error == ECONNREFUSED || error == EHOSTUNREACH ||
                         error == ENETUNREACH || error == EMSGSIZE || error == ENOMEM || error == ENOBUFS;
        int many;
        for (many = 0; many < 2; many++) {
            if (many && error == ENOSYS) continue; /* there is another call */
            the_link->is_news = the_link->warned_receive = 0;
            log_count = 0;
            the_link->hot = 1;
            the_link->calls = 0;
            the_link->socket[0].busy = many ? 2 : 0;
            next_error = error;
            assert_int_equal(take(4), is_nothing ? 0 : -1);
            assert_int_equal(the_link->is_news, !is_nothing);
            assert_int_equal(log_count, !is_nothing);
            next_error = error;
            (void)take(4);
            assert_int_equal(log_count, !is_nothing); /* once is enough */
        }
    }
}

/* What broke is told when there is nothing else to tell. */
static void what_came_before_an_error_is_not_lost(void **state) {
    (void)state;
    has_many = 0;
    the_link->mmsg = 0;
    the_link->socket[0].busy = 2;
    arrive(0, 50, 1);
    arrive(0, 50, 1);
    next_error = EPERM;
    calls_until_error = 2;
    assert_int_equal(take(8), 2);
    assert_int_equal(queues[0].told, 2);
    assert_int_equal(the_link->is_news, 1);
    the_link->socket[0].busy = 2;
    next_error = EPERM;
    assert_int_equal(take(8), -1);
    the_link->is_news = 0;
    assert_int_equal(take(8), 0);
}

static void a_datagram_without_bytes_is_no_error(void **state) {
    (void)state;
    arrive(0, 0, 1);
    assert_int_equal(take(8), 1);
    arrive(0, 0, 1);
    arrive(0, 50, 1);
    assert_int_equal(take(8), 1);
    assert_int_equal(take(8), 1);
    assert_int_equal(queues[0].told, 3);
    assert_int_equal(the_link->is_news, 0);
    assert_int_equal(log_count, 0);
}

/* Datagrams of any length, of several peers, on three sockets, of which each may be quiet for long. */
static void each_datagram_comes_once_and_in_its_order_and_no_socket_starves(void **state) {
    int round, slot, i, mode;
    (void)state;
    for (mode = 0; mode < 4; mode++) {
        has_many = mode != 1;
        may_coalesce = mode != 2;
        for (slot = 0; slot < SOCKETS; slot++) queues[slot].came = queues[slot].taken = queues[slot].told = queues[slot].oldest = 0;
        for (round = 0; round < 1500; round++) {
            uint32_t length = 3 + below(below(20) ? 1500 : 3500);
            slot = (int)below(SOCKETS);
            if (round / 100 % SOCKETS != slot && round % 500 != 0) slot = round / 100 % SOCKETS;
            for (i = (int)below(mode == 3 ? 3 : 6); i > 0; i--) arrive(slot, below(5) ? length : 3 + below(length - 2), 1 + (below(20) == 0));
            if (below(50) == 0) next_error = ECONNREFUSED;
            (void)take(1 + (int)below(BUFFERS));
            for (slot = 0; slot < SOCKETS; slot++) {
                struct queue *q = &queues[slot];
                q->oldest = q->taken < q->came ? q->oldest + 1 : 0;
                assert_true(q->oldest < 300); /* calls */
            }
        }
        for (round = 0; round < 4 * 32 * BUFFERS; round++) (void)take(4);
        for (slot = 0; slot < SOCKETS; slot++) assert_int_equal(queues[slot].taken, queues[slot].came);
        the_link->mmsg = the_link->gro = 1;
    }
}

/* Two sockets that have traffic are both looked at in each call, from either end. */
static void sockets_with_traffic_are_all_looked_at(void **state) {
    int i, got = 0;
    (void)state;
    arrive(0, 50, 1);
    arrive(1, 50, 1);
    for (i = 0; i < 33; i++) got += take(8); /* now both are known */
    assert_int_equal(got, 2);
    for (i = 0; i < 10; i++) {
        arrive(0, 50, 1);
        arrive(1, 50, 1);
        assert_int_equal(take(8), 2);
        assert_int_equal(take(8), 0);
        assert_int_equal(take(8), 0); /* an odd number of calls: the order changes */
    }
    for (i = 0; i < 4; i++) { /* with one buffer each has its turn */
        arrive(0, 50, 1);
        arrive(1, 50, 1);
        assert_int_equal(take(1), 1);
        assert_int_equal(take(1), 1);
        assert_int_equal(queues[0].told, queues[0].came);
        assert_int_equal(queues[1].told, queues[1].came);
    }
    for (i = 0; i < 2000; i++) assert_int_equal(take(8), 0); /* they are quiet for long: one is looked at */
    call_count = 0;
    for (i = 0; i < 32; i++) assert_int_equal(take(8), 0);
    assert_int_equal(call_count, 31 + SOCKETS);
}

/* A socket with much traffic is told to coalesce, one with little is not. */
static void only_what_comes_in_company_is_coalesced(void **state) {
    int i, j;
    (void)state;
    for (i = 0; i < 100; i++) {
        arrive(0, 50, 1);
        (void)take(8);
    }
    assert_int_equal(queues[0].coalesces, 0);
    for (i = 0; i < 20 && !queues[0].coalesces; i++) {
        for (j = 0; j < 2; j++) arrive(0, 50, 1);
        (void)take(8);
    }
    assert_int_equal(queues[0].coalesces, 1);
    assert_in_range(i, 7, 10); /* 16 datagrams that came with others */
    assert_int_equal(queues[1].coalesces, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_idle_call_and_a_ping_pong_cost_one_call_of_the_system),
        TEST(what_has_come_is_taken_in_one_call_after_one_that_found_something),
        TEST(without_the_call_for_many_they_come_one_by_one),
        TEST(each_error_has_its_consequence),
        TEST(what_came_before_an_error_is_not_lost),
        TEST(a_datagram_without_bytes_is_no_error),
        TEST(each_datagram_comes_once_and_in_its_order_and_no_socket_starves),
        TEST(sockets_with_traffic_are_all_looked_at),
        TEST(only_what_comes_in_company_is_coalesced),
    };
    return cmocka_run_group_tests_name("what is received", tests, NULL, NULL);
}
#else
#include <setjmp.h>

#include <cmocka.h>

static void calls_are_not_played_on_this_system(void **state) {
    (void)state;
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_are_not_played_on_this_system)};
    return cmocka_run_group_tests_name("what is received", tests, NULL, NULL);
}
#endif
