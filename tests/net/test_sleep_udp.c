/* test_sleep_udp.c - programs that sleep on the OS handle over real sockets: what system calls the library makes for each sleep.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server with a thread each, that sleep for ever whenever there is no event: a deadline that the library forgot
 * to arm would let both sleep on, and the test would be ended from outside. The system calls that arm the handle are counted;
 * all bounds are numbers of calls for each sleep or message, so a slow machine is none the worse.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* ---- counting, thread by thread --------------------------------------------------------------------------------------- */

typedef struct counts {
    uint64_t sleeps, timers, flags, looks, sends, receives;
} counts_t;

static __thread counts_t counts;

static int counted_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    counts.timers++;
    return timerfd_settime(fd, flags, value, old);
}

static ssize_t counted_write(int fd, const void *data, size_t length) {
    counts.flags++;
    return write(fd, data, length);
}

static ssize_t counted_read(int fd, void *data, size_t length) {
    counts.flags++;
    return read(fd, data, length);
}

static int counted_epoll_wait(int set, struct epoll_event *events, int count, int timeout) {
    counts.looks++;
    return epoll_wait(set, events, count, timeout);
}

static ssize_t counted_sendmsg(int fd, const struct msghdr *message, int flags) {
    counts.sends++;
    return sendmsg(fd, message, flags);
}

static ssize_t counted_recvmsg(int fd, struct msghdr *message, int flags) {
    counts.receives++;
    return recvmsg(fd, message, flags);
}

static ssize_t counted_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    counts.sends++;
    return sendto(fd, data, length, flags, to, size);
}

static ssize_t counted_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from, socklen_t *size) {
    counts.receives++;
    return recvfrom(fd, data, length, flags, from, size);
}

/* The library calls those for many messages by their numbers, since older C libraries lack them. */
static void count_call(long number) {
    counts.sends += number == SYS_sendmmsg;
    counts.receives += number == SYS_recvmmsg;
}

#define sendto counted_sendto
#define recvfrom counted_recvfrom
#define sendmsg counted_sendmsg
#define recvmsg counted_recvmsg
#define syscall(...) (count_call(FIRST(__VA_ARGS__, 0)), syscall(__VA_ARGS__))
#define FIRST(number, ...) (long)(number)
#define timerfd_settime counted_settime
#define write counted_write
#define read counted_read
#define epoll_wait counted_epoll_wait
#define CCI_IMPLEMENTATION
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"
#undef timerfd_settime
#undef write
#undef read
#undef epoll_wait
#undef syscall
#undef recvmsg
#undef sendmsg
#undef recvfrom
#undef sendto

/* ---- a client and a server -------------------------------------------------------------------------------------------------- */

static cci_endpoint_t *client, *server;
static cci_os_handle_t client_handle, server_handle;
static cci_connection_t *connection;
static uint32_t to_send, to_receive;
static int stop, takes_one;
static counts_t server_counts;

static int begin(void **state) {
    cci_setup_t setup;
    uint32_t caps, buffers = 4096;
    (void)state;
    memset(&setup, 0, sizeof setup);
    setup.config = "[lo]\ntransport = udp\ninterface = lo\n";
    stop = takes_one = 0;
    connection = NULL;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, &server_handle), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, &client_handle), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_SEND_BUF_COUNT, &buffers), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_SEND_BUF_COUNT, &buffers), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(client, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers), CCI_SUCCESS);
    return 0;
}

static int end(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {}
    return 0;
}

static void sleep_on(cci_os_handle_t handle) {
    struct pollfd sleeper;
    sleeper.fd = handle;
    sleeper.events = POLLIN;
    counts.sleeps++;
    (void)poll(&sleeper, 1, -1);
}

static void ask(void) {
    char message[64] = "";
    to_send--;
    if (cci_send(connection, message, sizeof message, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) abort();
}

static void take(cci_event_t *event) {
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        if (cci_accept(event, NULL) != CCI_SUCCESS) abort();
        break;
    case CCI_EVENT_CONNECT:
        connection = event->connect.connection;
        break;
    case CCI_EVENT_RECV:
        if (event->recv.connection->endpoint == server) {
            stop = event->recv.len == 1;
            if (cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) abort();
        } else {
            to_receive--;
            if (to_send > 0) ask();
        }
        break;
    default:
        break;
    }
    if (cci_return_event(event) != CCI_SUCCESS) abort();
}

/* One turn of a program's loop: all events, or one if that is its manner, then sleep. */
static void turn(cci_endpoint_t *endpoint, cci_os_handle_t handle) {
    cci_event_t *event;
    int status;
    do {
        status = cci_get_event(endpoint, &event);
        if (status == CCI_SUCCESS) take(event);
    } while (status == CCI_SUCCESS && !takes_one);
    if (endpoint == server ? !stop : to_receive > 0) sleep_on(handle);
}

static void *serve(void *argument) {
    (void)argument;
    memset(&counts, 0, sizeof counts);
    while (!stop) turn(server, server_handle);
    server_counts = counts;
    return NULL;
}

static void assert_few_calls(const char *who, const counts_t *of, uint32_t messages) {
    print_message("%s: %u messages, %u sleeps; timer %u, flag %u, looks %u, sends %u, receives %u\n", who, (unsigned)messages,
                  (unsigned)of->sleeps, (unsigned)of->timers, (unsigned)of->flags, (unsigned)of->looks, (unsigned)of->sends,
                  (unsigned)of->receives);
    assert_true(of->timers <= of->sleeps + 2);
    assert_true(of->flags <= 2 * of->sleeps + 4);
    assert_in_range(of->sends, 10, messages + messages / 4 + 1000); /* one each, and some that are repeated */
    assert_in_range(of->receives, 10, 2 * of->sleeps + messages + 1000);
    if (!takes_one) assert_true(of->sleeps <= 4 * (uint64_t)messages + 1000); /* some end because a peer repeats itself */
}

static void round_trips(uint32_t depth, uint32_t count) {
    pthread_t thread;
    char *uri;
    uint32_t i;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
    assert_int_equal(cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    to_receive = count;
    while (connection == NULL) turn(client, client_handle);
    to_send = count;
    for (i = 0; i < depth; i++) ask(); /* outside of the loop: these may each arm the timer */
    memset(&counts, 0, sizeof counts);
    while (to_receive > 0) turn(client, client_handle);
    assert_few_calls("client", &counts, count);
    to_receive = 1;
    assert_int_equal(cci_send(connection, "", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_few_calls("server", &server_counts, count);
}

static void sleepers_with_one_request_in_flight(void **state) {
    (void)state;
    round_trips(1, 3000);
}

static void sleepers_with_16_in_flight(void **state) {
    (void)state;
    round_trips(16, 20000);
}

static void sleepers_with_1000_in_flight(void **state) {
    (void)state;
    round_trips(1000, 100000);
}

static void sleepers_that_take_one_event_each_time(void **state) {
    (void)state;
    takes_one = 1;
    round_trips(16, 10000);
}

/* ---- programs that call seldom --------------------------------------------------------------------------------------- */

static void begin_with(const char *config) {
    cci_setup_t setup;
    uint32_t caps;
    (void)end(NULL);
    memset(&setup, 0, sizeof setup);
    setup.config = config;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &server, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &client, NULL), CCI_SUCCESS);
}

static void connect_them(cci_conn_attribute_t attribute) {
    cci_event_t *event;
    char *uri;
    connection = NULL;
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(client, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    while (connection == NULL) {
        if (cci_get_event(server, &event) == CCI_SUCCESS) take(event);
        if (cci_get_event(client, &event) == CCI_SUCCESS) take(event);
    }
}

/* A program that calls once in 20 ms, of a peer that has stopped calling: whatever else the machine does, a time-out of 300 ms
 * is noticed in the call that follows it. */
static void seldom_calls_notice_a_timeout(const char *config) {
    const struct timespec pause = {0, 20000000};
    uint32_t timeout_us = 300000, calls = 0;
    cci_event_t *event;
    begin_with(config);
    connect_them(CCI_CONN_ATTR_RO);
    assert_int_equal(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    while (calls++ < 40) { /* so long the library may still expect calls that follow each other closely */
        (void)cci_get_event(client, &event);
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(cci_send(connection, "?", 1, NULL, 0), CCI_SUCCESS);
    calls = 0;
    do {
        assert_true(++calls <= 18); /* in the second call 20 ms are over, in the 17th 320, however slow the machine is */
        (void)nanosleep(&pause, NULL);
    } while (cci_get_event(client, &event) != CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_SEND);
    assert_int_equal(event->send.status, CCI_ETIMEDOUT);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

/* The same while other events always wait: the clock is read in one call of 32 all the same, also when the program called
 * without pause before. The message gets its deadline in the first of these, and misses it in another. */
static void a_timeout_over_sisci_is_noticed_while_events_wait(void **state) {
    enum { TIMEOUT_CALLS = 20, WAITING = 40 };
    const struct timespec pause = {0, 1000000};
    uint32_t timeout_us = TIMEOUT_CALLS * 1000, i, round, waiting = 0;
    cci_connection_t *timed, *other;
    (void)state;
    for (round = 0; round < 4; round++) {
        int status = CCI_SUCCESS;
        cci_event_t *event;
        begin_with("[here]\ntransport = sisci\n");
        connect_them(CCI_CONN_ATTR_RO);
        timed = connection;
        connect_them(CCI_CONN_ATTR_UU);
        other = connection;
        assert_int_equal(cci_set_opt(timed, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
        for (i = 0; i < 10000 + 100 * round; i++) (void)cci_get_event(client, &event);
        assert_int_equal(cci_send(timed, "?", 1, NULL, 0), CCI_SUCCESS);
        for (i = waiting = 0; status == CCI_SUCCESS; i++) {
            assert_true(i <= TIMEOUT_CALLS + 2 * 32 + WAITING + 32);
            while (waiting < WAITING) waiting += cci_send(other, "!", 1, NULL, 0) == CCI_SUCCESS;
            assert_int_equal(cci_get_event(client, &event), CCI_SUCCESS);
            assert_int_equal(event->type, CCI_EVENT_SEND);
            waiting -= event->send.connection == other;
            status = (int)event->send.status;
            assert_int_equal(cci_return_event(event), CCI_SUCCESS);
            (void)nanosleep(&pause, NULL);
        }
        assert_int_equal(status, CCI_ETIMEDOUT);
    }
}

static void seldom_calls_over_udp_notice_a_timeout(void **state) {
    (void)state;
    seldom_calls_notice_a_timeout("[lo]\ntransport = udp\ninterface = lo\n");
}

static void seldom_calls_over_sisci_notice_a_timeout(void **state) {
    (void)state;
    seldom_calls_notice_a_timeout("[here]\ntransport = sisci\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sleepers_with_one_request_in_flight),
        TEST(sleepers_with_16_in_flight),
        TEST(sleepers_with_1000_in_flight),
        TEST(sleepers_that_take_one_event_each_time),
        TEST(seldom_calls_over_udp_notice_a_timeout),
        TEST(seldom_calls_over_sisci_notice_a_timeout),
        TEST(a_timeout_over_sisci_is_noticed_while_events_wait),
    };
    return cmocka_run_group_tests_name("sleep_udp", tests, NULL, NULL);
}
