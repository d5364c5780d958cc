/* test_udp_send.c - datagrams that cci_udp.h is given to send, whatever the system refuses: each leaves once, whole, in order, and
 * those that can travel together do. SPDX-License-Identifier: MIT OR Unlicense
 *
 * The system's calls are played: what they are handed is cut into datagrams as the kernel would do it, and compared with what was
 * given to the link.
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
static ssize_t play_sendmsg(int fd, const struct msghdr *message, int flags);
static ssize_t play_sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size);
static int play_setsockopt(int fd, int level, int name, const void *value, socklen_t size);

#define syscall(...) play_call(__VA_ARGS__)
#define sendmsg(fd, message, flags) play_sendmsg(fd, message, flags)
#define sendto(fd, bytes, length, flags, to, size) play_sendto(fd, bytes, length, flags, to, size)
#define setsockopt(fd, level, name, value, size) play_setsockopt(fd, level, name, value, size)
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"
#undef syscall
#undef sendmsg
#undef sendto
#undef setsockopt

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

/* ---- the system ------------------------------------------------------------------------------------------------------- */

enum { MOST = 600, LONGEST = 66000 };

typedef struct datagram {
    uint32_t length;
    uint32_t first, last; /* words of its contents */
    uint16_t port;
    int family;
    int codepoint;
} datagram_t;

static int is_played;
static datagram_t wire[MOST];
static int wire_count, call_count, message_count, largest_call;
static uint64_t random_state = 1;
static uint32_t fails_of_1000; /* how often a call is refused */
static int only_error;         /* 0: whatever it is */
static int takes_all;          /* of several messages, as long as nothing is refused */
static int codepoint[2];       /* of the sockets of both families */
static int option_count;       /* times that one was set */

static uint32_t below(uint32_t n) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % n;
}

static void record(const uint8_t *bytes, size_t length, const struct sockaddr *to) {
    datagram_t *d = &wire[wire_count++];
    assert_true(wire_count <= MOST && length >= 8 && length <= LONGEST);
    d->length = (uint32_t)length;
    memcpy(&d->first, bytes, 4);
    memcpy(&d->last, bytes + length - 4, 4);
    d->family = to->sa_family == AF_INET ? 4 : 6;
    d->codepoint = codepoint[d->family == 6];
    d->port = to->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)to)->sin_port
                                       : ((const struct sockaddr_in6 *)(const void *)to)->sin6_port;
}

/* What the kernel makes of one message: what it holds, cut where the option says. */
static void record_message(const struct msghdr *m) {
    static uint8_t bytes[70000];
    size_t length = 0, segment, at, i;
    uint16_t size = 0;
    assert_true(m->msg_iovlen >= 1 && m->msg_iovlen <= 1024);
    for (i = 0; i < m->msg_iovlen; i++) {
        assert_true(length + m->msg_iov[i].iov_len <= sizeof bytes);
        memcpy(bytes + length, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
        length += m->msg_iov[i].iov_len;
    }
    if (m->msg_controllen > 0) {
        const struct cmsghdr *c = CMSG_FIRSTHDR(m);
        assert_int_equal(c->cmsg_level, CCI__UDP_SOL_UDP);
        assert_int_equal(c->cmsg_type, CCI__UDP_SEGMENT);
        assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof size));
        assert_int_equal(m->msg_controllen, CMSG_SPACE(sizeof size));
        memcpy(&size, CMSG_DATA(c), sizeof size);
        assert_true(length > size && length <= 64u * size && length + 55 <= 65535);
    }
    message_count++;
    segment = size > 0 ? size : length;
    for (at = 0; at < length; at += segment) {
        record(bytes + at, length - at < segment ? length - at : segment, (const struct sockaddr *)m->msg_name);
    }
}

static int refuses(int has_several) {
    static const int errors[] = {EINTR, EAGAIN, ENOBUFS, ENOMEM, EMSGSIZE, EHOSTUNREACH, EPERM, EIO, EINVAL};
    if (below(1000) >= fails_of_1000) return 0;
    errno = only_error ? only_error : errors[below(has_several ? 9 : 7)];
    return 1;
}

static ssize_t play_sendmsg(int fd, const struct msghdr *message, int flags) {
    if (!is_played) return sendmsg(fd, message, flags);
    call_count++;
    largest_call = largest_call ? largest_call : 1;
    if (refuses(message->msg_controllen > 0)) return -1;
    record_message(message);
    return 1;
}

static ssize_t play_sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    if (!is_played) return sendto(fd, bytes, length, flags, to, size);
    call_count++;
    message_count++;
    if (refuses(0)) return -1;
    record((const uint8_t *)bytes, length, to);
    return (ssize_t)length;
}

static int play_setsockopt(int fd, int level, int name, const void *value, socklen_t size) {
    int v6 = level == IPPROTO_IPV6;
    if ((v6 && name == CCI__UDP_IPV6_TCLASS) || (level == IPPROTO_IP && name == CCI__UDP_IP_TOS)) {
        assert_int_equal(size, sizeof(int));
        codepoint[v6] = *(const int *)value;
        option_count++;
    }
    return setsockopt(fd, level, name, value, size);
}

static long play_call(long number, ...) {
    va_list arguments;
    long a[6] = {0};
    int i;
    va_start(arguments, number);
    for (i = 0; i < (number == SYS_epoll_pwait2 ? 6 : number == SYS_recvmmsg ? 5 : 4); i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_sendmmsg && is_played) {
        const cci__udp_mmsghdr *message = (const cci__udp_mmsghdr *)a[1];
        int count = (int)a[2], taken = takes_all ? count : 1 + (int)below((uint32_t)count);
        call_count++;
        assert_true(count > 1 && count <= CCI__UDP_OUT_MESSAGES);
        if (count > largest_call) largest_call = count;
        for (i = 0; i < taken; i++) {
            if (refuses(message[i].header.msg_controllen > 0)) break;
            record_message(&message[i].header);
        }
        return i > 0 ? i : -1;
    }
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- what is given to the link -------------------------------------------------------------------------------------------- */

static cci__udp_link *the_link;
static cci_link_addr_t peers[4]; /* two of each family */
static cci_link_tx_t given[MOST];
static uint8_t memory[MOST / 4][LONGEST];
static char log_text[2000];
static int log_level; /* of what came last */

static void keep_log(void *user, int level, const char *text) {
    (void)user;
    log_level = level;
    if (strlen(log_text) + strlen(text) + 2 < sizeof log_text) strcat(strcat(log_text, text), "\n");
}

static int begin(void **state) {
    cci_setup_t setup;
    cci_endpoint_t *endpoint;
    uint32_t caps;
    uint16_t i;
    (void)state;
    memset(&setup, 0, sizeof setup);
    setup.config = "[it]\ntransport = udp\ninterface = lo\nmtu = 9100\necn = 1\n";
    setup.log = keep_log;
    log_text[0] = '\0';
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) return -1;
    if (cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS) return -1;
    the_link = (cci__udp_link *)((cci__dgram_t *)(void *)endpoint)->base.handle;
    memset(peers, 0, sizeof peers);
    for (i = 0; i < 4; i++) {
        uint16_t port = (uint16_t)(1000 + i);
        peers[i].bytes[0] = i < 2 ? 4 : 6;
        memcpy(peers[i].bytes + 2, &port, sizeof port);
        peers[i].bytes[8] = 127;
        peers[i].bytes[11] = 1;
    }
    is_played = 1;
    fails_of_1000 = 0, only_error = 0, takes_all = 1;
    return 0;
}

static int end(void **state) {
    (void)state;
    is_played = 0;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    return 0;
}

/* Number i is a datagram of this length for that peer, in so many pieces that do not touch. */
static void give(int i, uint32_t length, int peer, uint32_t pieces) {
    cci_link_tx_t *tx = &given[i];
    uint32_t word, at = 0, j;
    memset(tx, 0, sizeof *tx);
    for (word = 0; word + 4 <= length; word += 4) memcpy(memory[i] + word, &(uint32_t){(uint32_t)i << 16 | word}, 4);
    memcpy(memory[i] + length - 4, &(uint32_t){~(uint32_t)i}, 4);
    tx->to = &peers[peer];
    tx->length = length;
    tx->piece_count = pieces;
    for (j = 0; j < pieces; j++) {
        uint32_t part = j + 1 < pieces ? length / pieces : length - at;
        tx->piece[j].data = memory[i] + at;
        tx->piece[j].length = part;
        at += part;
    }
}

static void assert_is(int i, const datagram_t *d) {
    uint32_t last;
    uint16_t port;
    memcpy(&last, memory[i] + given[i].length - 4, 4);
    memcpy(&port, given[i].to->bytes + 2, 2);
    assert_int_equal(d->length, given[i].length);
    assert_int_equal(d->last, last);
    assert_int_equal(d->port, port);
    assert_int_equal(d->family, given[i].to->bytes[0]);
    assert_int_equal(d->codepoint, given[i].codepoint);
}

/* Sends what was given, and checks that nothing is missing, twice, or out of order; the calls of the system that it took. */
static int calls_for(int count) {
    int i;
    call_count = wire_count = message_count = largest_call = 0;
    assert_int_equal(cci__udp_send(the_link, given, count), count);
    assert_int_equal(wire_count, count);
    for (i = 0; i < count; i++) assert_is(i, &wire[i]);
    return call_count;
}

static void give_many(int count, uint32_t length, int peer) {
    int i;
    for (i = 0; i < count; i++) give(i, length, peer, 1);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------ */

static void each_datagram_leaves_with_its_codepoint_and_those_of_one_travel_together(void **state) {
    int i, turn;
    (void)state;
    give_many(60, 1000, 0);
    option_count = 0;
    for (i = 0; i < 60; i++) given[i].codepoint = i < 20 ? 0 : i < 40 ? 2 : 0;
    assert_int_equal(calls_for(60), 3);
    assert_int_equal(message_count, 3);
    assert_int_equal(option_count, 2); /* the socket knows it otherwise */
    for (i = 0; i < 60; i++) given[i].codepoint = 2;
    (void)calls_for(1);
    assert_int_equal(option_count, 3);
    for (turn = 0; turn < 20; turn++) assert_int_equal(calls_for(1 + turn % 2), 1);
    assert_int_equal(option_count, 3);
    for (turn = 0; turn < 200; turn++) {
        int count = 1 + (int)below(MOST / 4), peer = 0;
        uint32_t marks = 0;
        for (i = 0; i < count; i++) {
            if (below(8) == 0) peer = (int)below(the_link->of_family[0][1] ? 4 : 2);
            if (below(8) == 0) marks = 2 * below(2);
            give(i, 8 + 4 * below(3), peer, 1 + below(2));
            given[i].codepoint = marks;
        }
        the_link->mmsg = turn % 3 != 0;
        the_link->gso = turn % 4 != 0;
        (void)calls_for(count);
    }
}

static void datagrams_of_one_length_to_one_peer_are_one_message(void **state) {
    int v6;
    (void)state;
    for (v6 = 0; v6 < 2 && (v6 == 0 || the_link->of_family[0][1]); v6++) {
        uint32_t most = v6 ? CCI__UDP_BATCH_V6 : CCI__UDP_BATCH_V4, length;
        give_many(66, 1000, 2 * v6);
        assert_int_equal(calls_for(1), 1);
        assert_int_equal(calls_for(2), 1);
        assert_int_equal(calls_for(64), 1);
        assert_int_equal(message_count, 1);
        assert_int_equal(calls_for(65), 1);
        assert_int_equal(message_count, 2);
        assert_int_equal(calls_for(66), 1);
        assert_int_equal(message_count, 2);
        length = most / 10;
        give_many(11, length, 2 * v6);
        (void)calls_for(10); /* they fill it to the last byte */
        assert_int_equal(message_count, 1);
        (void)calls_for(11);
        assert_int_equal(message_count, 2);
        give_many(10, length + 1, 2 * v6);
        (void)calls_for(10);
        assert_int_equal(message_count, 2);
    }
}

static void a_shorter_one_ends_a_message_and_a_longer_one_begins_another(void **state) {
    (void)state;
    give_many(8, 100, 0);
    give(2, 60, 0, 1);
    (void)calls_for(8);
    assert_int_equal(message_count, 2);
    give(2, 104, 0, 1);
    (void)calls_for(8);
    assert_int_equal(message_count, 3); /* 100 100, 104 100, 100 100 100 100 */
}

static void each_peer_has_messages_of_its_own(void **state) {
    int i;
    (void)state;
    for (i = 0; i < 40; i++) give(i, 100, i & 1, 1);
    assert_int_equal(calls_for(40), 3); /* 16 messages in each call */
    assert_int_equal(message_count, 40);
    assert_int_equal(largest_call, 16);
    if (the_link->of_family[0][1] == NULL) return;
    for (i = 0; i < 40; i++) give(i, 100, i < 20 ? 0 : 2, 1); /* each family has its socket */
    assert_int_equal(calls_for(40), 2);
    assert_int_equal(message_count, 2);
}

static void pieces_are_put_together_wherever_they_lie(void **state) {
    uint32_t pieces, length;
    int i;
    (void)state;
    for (pieces = 1; pieces <= 3; pieces++) {
        for (length = 1000; length <= 8200; length += 2400) {
            for (i = 0; i < 7; i++) give(i, length, 1, pieces);
            (void)calls_for(7);
            assert_int_equal(message_count, 1);
            for (i = 0; i < 7; i++) { /* side by side: one piece */
                memcpy(memory[0] + (uint32_t)i * length, &(uint32_t){(uint32_t)i}, 4);
                memcpy(memory[0] + (uint32_t)(i + 1) * length - 4, &(uint32_t){~(uint32_t)i}, 4);
                given[i].piece_count = 1;
                given[i].piece[0].data = memory[0] + (uint32_t)i * length;
                given[i].piece[0].length = length;
            }
            call_count = wire_count = 0;
            assert_int_equal(cci__udp_send(the_link, given, 7), 7);
            assert_int_equal(wire_count, 7);
            for (i = 0; i < 7; i++) {
                assert_int_equal(wire[i].first, i);
                assert_int_equal(wire[i].last, ~(uint32_t)i);
            }
        }
    }
}

static void what_is_too_long_for_its_family_is_lost_and_the_others_leave(void **state) {
    (void)state;
    give_many(3, 100, 0);
    give(1, the_link->largest[0], 0, 1);
    (void)calls_for(3);
    given[1].length++;
    wire_count = 0;
    assert_int_equal(cci__udp_send(the_link, given, 3), 3);
    assert_int_equal(wire_count, 2);
    assert_int_equal(cci__udp_send(the_link, given + 1, 1), 1);
    assert_int_equal(wire_count, 2);
}

/* What the system says to one datagram: is it to be sent again later, is it lost, must somebody look at the interface, is it said. */
static void each_error_has_its_consequence(void **state) {
    int error;
    (void)state;
    fails_of_1000 = 1000;
    for (error = 1; error < 134; error++) {
        int is_room = error == EAGAIN || error == ENOBUFS || error == ENOMEM;
        int is_news = error == ENETDOWN || error == ENODEV || error == EADDRNOTAVAIL || error == ENETUNREACH;
        uint32_t lost = the_link->lost;
        int count;
        if (error == EINTR) continue; /* it is tried at once */
        only_error = error;
        for (count = 1; count <= 2; count++) { /* alone, and as one of several */
            the_link->is_news = the_link->warned_send = 0;
            log_text[0] = '\0';
            lost = the_link->lost;
            give(0, 100, 0, 1);
            give(1, 104, 0, 1);
            the_link->mmsg = 1;
            assert_int_equal(cci__udp_send(the_link, given, count), is_room ? 0 : count);
            assert_int_equal(the_link->lost - lost, is_room ? 0 : count);
            assert_int_equal(the_link->is_news, is_news);
            assert_int_equal(strstr(log_text, "sending to 127.0.0.1:") != NULL,
                             !is_room && error != EMSGSIZE && error != ECONNREFUSED);
            if (strstr(log_text, "sending to")) /* who is gone for a while is no surprise */
                assert_int_equal(log_level, error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN
                                                ? CCI_LOG_INFO
                                                : CCI_LOG_WARN);
            log_text[0] = '\0';
            (void)cci__udp_send(the_link, given, count);
            assert_null(strstr(log_text, "sending to")); /* once is enough */
        }
    }
}

/* Random batches to random peers while calls are refused: what was taken has left, in order and once, or is counted as lost. */
static void whatever_is_refused_nothing_leaves_twice_or_out_of_order(void **state) {
    int round;
    (void)state;
    takes_all = 0;
    for (round = 0; round < 4000; round++) {
        int count = 1 + (int)below(100), peer = 0, taken, at, i, calls = 0, full = 0;
        uint32_t length = 100, lost = the_link->lost;
        uint64_t called = the_link->system_calls;
        the_link->gso = below(4) > 0; /* one refusal turns it off */
        the_link->mmsg = below(8) > 0;
        fails_of_1000 = below(3) * 60;
        for (i = 0; i < count; i++) {
            if (below(6) == 0) peer = (int)below(the_link->of_family[0][1] ? 4 : 2);
            if (below(6) == 0) length = 12 + below(below(8) ? 1500 : 8900);
            give(i, length, peer, 1 + below(3));
        }
        call_count = wire_count = 0;
        taken = cci__udp_send(the_link, given, count);
        calls = call_count;
        assert_in_range(taken, 0, count);
        full = taken < count;
        assert_int_equal(wire_count + (int)(the_link->lost - lost), taken);
        for (i = at = 0; i < wire_count; i++, at++) { /* each is one of those that were given, behind the one before */
            while (at < taken && (wire[i].last != ~(uint32_t)at)) at++;
            assert_true(at < taken);
            assert_is(at, &wire[i]);
        }
        assert_int_equal(the_link->system_calls - called, calls);
        if (full) assert_true(fails_of_1000 > 0);
    }
}

static void without_the_call_for_many_each_message_has_its_own(void **state) {
    (void)state;
    give_many(20, 100, 0);
    the_link->mmsg = 0;
    assert_int_equal(calls_for(20), 1);
    the_link->gso = 0;
    assert_int_equal(calls_for(20), 20);
    the_link->mmsg = 1;
    assert_int_equal(calls_for(20), 2); /* 16 messages and four */
}

/* An offload that the adapter refuses is left alone from then on; a refusal for another reason does not turn it off. */
static void an_offload_that_is_refused_is_not_tried_again(void **state) {
    static const int errors[] = {EIO, EINVAL, EOPNOTSUPP, ENOSYS, ENOPROTOOPT, EHOSTUNREACH, EPERM};
    size_t i;
    (void)state;
    give_many(20, 100, 0);
    for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        the_link->gso = 1;
        fails_of_1000 = 1000;
        only_error = errors[i];
        (void)cci__udp_send(the_link, given, 20);
        /* who refuses with EINVAL each of them as well says that they are too long */
        assert_int_equal(the_link->gso, errors[i] == EHOSTUNREACH || errors[i] == EPERM || errors[i] == EINVAL);
        fails_of_1000 = 0;
        (void)calls_for(20);
        the_link->mmsg = 1;
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_datagram_leaves_with_its_codepoint_and_those_of_one_travel_together),
        TEST(datagrams_of_one_length_to_one_peer_are_one_message),
        TEST(a_shorter_one_ends_a_message_and_a_longer_one_begins_another),
        TEST(each_peer_has_messages_of_its_own),
        TEST(pieces_are_put_together_wherever_they_lie),
        TEST(what_is_too_long_for_its_family_is_lost_and_the_others_leave),
        TEST(each_error_has_its_consequence),
        TEST(whatever_is_refused_nothing_leaves_twice_or_out_of_order),
        TEST(without_the_call_for_many_each_message_has_its_own),
        TEST(an_offload_that_is_refused_is_not_tried_again),
    };
    return cmocka_run_group_tests_name("what is sent", tests, NULL, NULL);
}
#else
#include <setjmp.h>

#include <cmocka.h>

static void nothing_is_put_together_on_this_system(void **state) {
    (void)state;
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_put_together_on_this_system)};
    return cmocka_run_group_tests_name("what is sent", tests, NULL, NULL);
}
#endif
