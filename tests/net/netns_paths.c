/* netns_paths.c - two hosts, each a network namespace, with two cables between them that are cut in turn.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The client's interfaces are a0 and a1, the server's b0 and b1; cable n is the network 10.50.n.0/24. A cable is cut where one
 * sees it (an interface goes down) or where nobody does (both ends send to a hardware address that nobody has).
 *
 *     sh tests/net/netns.sh build/netns_paths
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CCI_IMPLEMENTATION
#include "cci_udp.h"
#include "cci.h"

#define PATIENCE_S 20.0

static int to_server[2], from_server[2];
static pid_t server;
static cci_endpoint_t *endpoint;
static cci_connection_t *connection;
static uint32_t sent, got, completed, failed, changes, device_failures;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int command(const char *format, ...) {
    char text[400], all[440];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(all, sizeof all, "{ %s; } >/dev/null 2>&1", text);
    return system(all);
}

static void no_filter(char side) {
    command("for n in all default %c0 %c1; do echo 0 >/proc/sys/net/ipv4/conf/$n/rp_filter; done", side, side);
}

static void set_up(const char *interfaces) {
    static char config[200];
    cci_setup_t setup;
    uint32_t caps;
    snprintf(config, sizeof config, "[both]\ntransport = udp\ninterface = %s\n", interfaces);
    memset(&setup, 0, sizeof setup);
    setup.config = config;
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
        cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS)
        _exit(3);
}

/* The other host: sends back what comes, and cuts and mends its ends of the cables as it is told. */
static void serve(const char *interfaces) {
    cci_event_t *event;
    char order[2], *uri;
    int n;
    uint32_t failures = 0;
    if (unshare(CLONE_NEWNET) != 0 || write(from_server[1], "u", 1) != 1 || read(to_server[0], order, 1) != 1)
        _exit(2);
    for (n = 0; n < 2; n++)
        command("ip addr add 10.50.%d.2/24 dev b%d && ip link set b%d up; ip link set lo up", n, n, n);
    no_filter('b');
    if (write(from_server[1], "r", 1) != 1 || read(to_server[0], order, 1) != 1) /* the cables have both ends up now */
        _exit(2);
    set_up(interfaces);
    if (cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS || write(from_server[1], uri, 64) < 0)
        _exit(4);
    fcntl(to_server[0], F_SETFL, O_NONBLOCK);
    for (;;) {
        if (read(to_server[0], order, 2) == 2) {
            n = order[1] - '0';
            if (order[0] == 'q')
                _exit(failures > 0);
            if (order[0] == 'd')
                command("ip link set b%d down", n);
            if (order[0] == 'u')
                command("ip link set b%d up", n);
            if (order[0] == 's')
                command("ip neigh replace 10.50.%d.1 lladdr 02:00:00:00:00:99 dev b%d nud permanent", n, n);
            if (order[0] == 'h')
                command("ip neigh del 10.50.%d.1 dev b%d", n, n);
            if (write(from_server[1], "k", 1) != 1)
                _exit(5);
        }
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS)
            continue;
        if (event->type == CCI_EVENT_CONNECT_REQUEST)
            cci_accept(event, NULL);
        if (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED)
            failures++;
        if (event->type == CCI_EVENT_RECV)
            while (cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, 0) == CCI_ENOBUFS) {
            }
        cci_return_event(event);
    }
}

static void order(char what, int cable) {
    char text[2], answer;
    text[0] = what;
    text[1] = (char)('0' + cable);
    assert_int_equal(write(to_server[1], text, 2), 2);
    assert_int_equal(read(from_server[0], &answer, 1), 1);
}

static void take_one(void) {
    cci_event_t *event;
    if (cci_get_event(endpoint, &event) != CCI_SUCCESS)
        return;
    switch ((int)event->type) {
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        connection = event->connect.connection;
        break;
    case CCI_EVENT_RECV: {
        uint32_t number;
        memcpy(&number, event->recv.ptr, 4);
        assert_int_equal(number, got);
        got++;
        break;
    }
    case CCI_EVENT_SEND:
        completed++;
        failed += event->send.status != CCI_SUCCESS;
        break;
    case CCI_EVENT_STATUS: changes += event->status.what == CCI_STATUS_PATH_CHANGED; break;
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED: device_failures++; break;
    default: break;
    }
    cci_return_event(event);
}

/* So many messages there and back. */
static void talk(uint32_t count) {
    double until = seconds() + PATIENCE_S;
    while (count-- > 0) {
        uint8_t bytes[200] = {0};
        memcpy(bytes, &sent, 4);
        while (cci_send(connection, bytes, sizeof bytes, NULL, 0) != CCI_SUCCESS) take_one();
        sent++;
        while (got + 8 < sent && seconds() < until) take_one();
    }
    while ((got < sent || completed < sent) && seconds() < until) take_one();
    assert_int_equal(got, sent);
    assert_int_equal(completed, sent);
    assert_int_equal(failed, 0);
}

/* The program goes on calling: one that sleeps owes acknowledgements, and its peer may take the path for silent. */
static void stay_awake(double how_long) {
    double until = seconds() + how_long;
    while (seconds() < until) take_one();
}

static void begin(const char *here, const char *there) {
    char answer, uri[65] = "";
    uint32_t mask = 1u << CCI_EVENT_STATUS;
    double until;
    int n;
    sent = got = completed = failed = changes = device_failures = 0;
    connection = NULL;
    assert_int_equal(pipe(to_server) | pipe(from_server), 0);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(there);
    }
    assert_int_equal(read(from_server[0], &answer, 1), 1);
    for (n = 0; n < 2; n++) {
        assert_int_equal(command("ip link add a%d type veth peer name b%d netns %d", n, n, (int)server), 0);
        assert_int_equal(command("ip addr add 10.50.%d.1/24 dev a%d && ip link set a%d up", n, n, n), 0);
    }
    no_filter('a');
    assert_int_equal(write(to_server[1], "g", 1), 1);
    assert_int_equal(read(from_server[0], &answer, 1), 1);
    command("for i in 1 2 3 4 5 6 7 8 9; do ip link | grep -q 'a[01].*NO-CARRIER' || break; sleep 0.1; done");
    assert_int_equal(write(to_server[1], "g", 1), 1);
    assert_true(read(from_server[0], uri, 64) > 0);
    set_up(here);
    assert_int_equal(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    for (until = seconds() + PATIENCE_S; !connection && seconds() < until;) take_one();
    assert_non_null(connection);
    talk(100);
}

static int end(void **state) {
    (void)state;
    cci_finalize();
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    close(to_server[0]), close(to_server[1]), close(from_server[0]), close(from_server[1]);
    command("ip link del a0; ip link del a1");
    return 0;
}

/* Nobody's interface went down: only the silence tells. */
static void cut(int cable, int is_seen) {
    if (is_seen) {
        order('d', cable);
        return;
    }
    assert_int_equal(command("ip neigh replace 10.50.%d.2 lladdr 02:00:00:00:00:99 dev a%d nud permanent", cable, cable), 0);
    order('s', cable);
}

static void mend(int cable, int is_seen) {
    if (is_seen) {
        order('u', cable);
    } else {
        command("ip neigh del 10.50.%d.2 dev a%d", cable, cable);
        order('h', cable);
    }
    talk(20); /* meanwhile the other works */
    usleep(300000);
}

static void cables_in_turn(int is_seen) {
    int round, status;
    begin("a0, a1", "b0, b1");
    for (round = 0; round < 6; round++) {
        cut(round % 2, is_seen);
        talk(300);
        /* while the other host runs a command it is silent on both cables: there may be a change more */
        assert_true(is_seen ? changes == (uint32_t)round + 1 : changes > (uint32_t)round);
        mend(round % 2, is_seen);
    }
    assert_int_equal(device_failures, 0);
    assert_int_equal(write(to_server[1], "q0", 2), 2);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(status, 0); /* the server's device did not fail either */
}

static void test_cables_go_down_in_turn(void **state) {
    (void)state;
    cables_in_turn(1);
}

static void test_cables_fall_silent_in_turn(void **state) {
    (void)state;
    cables_in_turn(0);
}

/* The client's own interfaces go down, the second while nothing else is there: only that is a failure. */
static void test_the_device_fails_with_the_last(void **state) {
    double until;
    (void)state;
    begin("a0,a1", "b0 ,b1");
    assert_int_equal(command("ip link set a0 down"), 0);
    talk(100);
    assert_int_equal(changes, 1);
    assert_int_equal(device_failures, 0);
    assert_int_equal(command("ip link set a1 down"), 0);
    for (until = seconds() + PATIENCE_S; device_failures == 0 && seconds() < until;) take_one();
    assert_int_equal(device_failures, 1);
    assert_int_equal(command("ip link set a0 up"), 0);
    talk(100);
}

/* A server with one interface, to which both cables lead. */
static void test_one_side_has_one(void **state) {
    (void)state;
    begin("a0, a1", "b0");
    assert_int_equal(command("ip route add 10.50.0.2/32 via 10.50.1.2 metric 500"), 0);
    order('d', 0); /* its address stays reachable by the other cable */
    order('u', 0);
    talk(100);
}

/* An interface that is not there when the endpoints are made joins later, and its address is told then. */
static void test_an_interface_comes_later(void **state) {
    int n;
    (void)state;
    begin("a0, late", "b0, b1");
    stay_awake(0.05); /* what came is acknowledged before the command */
    assert_int_equal(command("ip link set a1 down && ip link set a1 name late && ip link set late up && "
                             "ip addr replace 10.50.1.1/24 dev late"), 0);
    for (n = 0; n < 20; n++) {
        talk(10);
        stay_awake(0.05);
    }
    order('d', 0);
    talk(100);
    assert_int_equal(changes, 1);
    command("ip link del late");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_cables_go_down_in_turn, end),
        cmocka_unit_test_teardown(test_cables_fall_silent_in_turn, end),
        cmocka_unit_test_teardown(test_the_device_fails_with_the_last, end),
        cmocka_unit_test_teardown(test_one_side_has_one, end),
        cmocka_unit_test_teardown(test_an_interface_comes_later, end),
    };
    const char *place = getenv("CCI_NETNS");
    (void)argc;
    if (place == NULL || strcmp(place, "ready") != 0) {
        execlp("sh", "sh", "tests/net/netns.sh", argv[0], (char *)NULL);
        perror("tests/net/netns.sh");
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
