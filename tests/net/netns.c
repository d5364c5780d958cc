/* netns.c - what needs network interfaces that a test may break: failures, both families, groups, a falling MTU.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     netns [PART]      all tests, or those whose sentence contains PART
 *
 * Needs root on Linux: the program starts itself again through tests/net/netns.sh in a network namespace of its own, where
 * v0 and v1 are the two ends of a cable. Traffic between two addresses of one machine never leaves it; where that
 * matters, a second process with a namespace of its own is the peer, behind the cable w0 and w1.
 */
#define _GNU_SOURCE 1

#include <ifaddrs.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* What the library asks of the system, counted: how much it does in one call must not depend on how many interfaces there are. */
static struct work {
    unsigned long calls, bytes, questions, listings;
    uint64_t longest_ns;
} work;

static ssize_t counted_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *from, socklen_t *from_size) {
    ssize_t n = recvfrom(fd, bytes, size, flags, from, from_size);
    work.calls++;
    work.bytes += n > 0 ? (unsigned long)n : 0;
    return n;
}

static ssize_t counted_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t to_size) {
    work.calls++;
    return sendto(fd, bytes, size, flags, to, to_size);
}

static int counted_socket(int domain, int type, int protocol) {
    work.calls++;
    return socket(domain, type, protocol);
}

static int counted_ioctl(int fd, unsigned long request, void *argument) {
    work.calls++;
    work.questions++;
    return ioctl(fd, request, argument);
}

static int counted_getifaddrs(struct ifaddrs **list) {
    work.listings++;
    return getifaddrs(list);
}

#define recvfrom counted_recvfrom
#define sendto counted_sendto
#define socket(domain, type, protocol) counted_socket(domain, type, protocol)
#define ioctl counted_ioctl
#define getifaddrs counted_getifaddrs

#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

#include "tests/support/harness.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CONFIG "[zero]\ntransport=udp\ninterface=v0\n[one]\ntransport=udp\ninterface=v1\n" \
               "[lo]\ntransport=udp\ninterface=lo\n[six]\ntransport=udp\nip=fd09::1\n" \
               "[near]\ntransport=udp\ninterface=w0\n" \
               "[plain]\ntransport=udp\ninterface=w0\noffload=off\n"
#define PEER_CONFIG "[far]\ntransport=udp\ninterface=w1\n"
#define PEER_URI "udp://10.10.0.2:4000"

/* How long it takes at most until an endpoint has seen that its interface is back. Without netlink it asks once a second. */
#ifdef CCI_UDP_PORTABLE
#define LOOKS_NS (1500 * MILLISECOND_NS)
#else
#define LOOKS_NS (300 * MILLISECOND_NS)
#endif

/* ---- small helpers ----------------------------------------------------------------------------------------------- */

static int command(const char *text) {
    fflush(stdout);
    return system(text);
}

static cci_device_t *device_named(const char *name) {
    cci_device_t *const *devices;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    for (; *devices != NULL; devices++) {
        if (strcmp((*devices)->name, name) == 0) {
            return *devices;
        }
    }
    fail_msg("there is no device %s", name);
    return NULL;
}

static int is_up(const char *name) {
    return device_named(name)->up == 1;
}

static void round_trip(const pair_t *pair, uint64_t seed) {
    uint8_t bytes[1000];
    cci_event_t *got;
    fill(bytes, sizeof bytes, seed);
    send_patiently(pair->ac, bytes, sizeof bytes, 77, 0);
    got = await(pair->b, CCI_EVENT_RECV);
    assert_ptr_equal(got->recv.connection, pair->bc);
    assert_int_equal(got->recv.len, sizeof bytes);
    assert_true(holds_pattern(got->recv.ptr, sizeof bytes, seed));
    drop(got);
    await_send(pair->a, pair->ac, as_context(77), CCI_SUCCESS);
}

static void both_ways(pair_t pair) {
    pair_t back = {pair.b, pair.a, pair.bc, pair.ac};
    round_trip(&pair, 1);
    round_trip(&back, 2);
}

static void use_between(cci_device_t *from, cci_device_t *to) {
    side_t *a = side_open_at(from, NULL), *b = side_open_at(to, NULL);
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
}

/* ---- failing interfaces ------------------------------------------------------------------------------------------ */

static void await_failure(side_t *side) {
    cci_event_t *event = await(side, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    assert_ptr_equal(event->dev_failed.endpoint, side->ep);
    drop(event);
}

/* Breaks v0 with one command and mends it with another. */
static void fail_and_recover(const char *breaking, const char *mending) {
    cci_device_t *zero = device_named("zero"), *lo = device_named("lo");
    side_t *side = side_open_at(zero, NULL);
    pair_t local = connect_sides(side_open_at(lo, NULL), side_open_at(lo, NULL), CCI_CONN_ATTR_RO);
    cci_endpoint_t *none = NULL;
    int i;
    assert_int_equal(zero->up, 1);
    for (i = 0; i < 2; i++) {
        assert_int_equal(command(breaking), 0);
        await_failure(side);
        elapse(300 * MILLISECOND_NS);
        assert_int_equal(side->count, 0); /* told once */
        assert_false(is_up("zero"));
        assert_int_equal(cci_create_endpoint(zero, 0, &none, NULL), CCI_ENODEV);
        assert_null(none);
        assert_true(is_up("lo"));
        both_ways(local);
        assert_int_equal(local.a->count + local.b->count, 0);
        assert_int_equal(command(mending), 0);
        AWAIT(is_up("zero"));
        elapse(LOOKS_NS); /* the endpoint looks for itself now and then */
        assert_int_equal(side->count, 0);
        use_between(zero, zero);
        both_ways(connect_sides(side, side_open_at(zero, NULL), CCI_CONN_ATTR_RO));
    }
}

TEST(taken_down, ON_UDP, "an interface that is taken down fails its endpoints once, others go on, it comes back") {
    (void)state;
    fail_and_recover("ip link set v0 down", "ip link set v0 up");
}

TEST(lost_carrier, ON_UDP, "an interface that loses its carrier fails its endpoints once, and it comes back") {
    (void)state;
    fail_and_recover("ip link set v1 down", "ip link set v1 up");
}

TEST(lost_address, ON_UDP, "an endpoint fails when its address goes; its device stays up while it has another") {
    side_t *side = side_open_at(device_named("zero"), NULL), *other;
    (void)state;
    assert_int_equal(command("ip addr del 10.9.0.1/24 dev v0"), 0);
    await_failure(side);
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(side->count, 0);
    assert_true(is_up("zero"));
    other = side_open_at(device_named("zero"), NULL);
    assert_non_null(strstr(other->uri, "udp://[fd09::1]:"));
    both_ways(connect_sides(other, side_open_at(device_named("zero"), NULL), CCI_CONN_ATTR_RO));
}

/* What is told of routes comes besides with most of what happens to an interface. */
static void await_news(side_t *side, cci_status_what_t what, uint64_t value) {
    cci_event_t *event = await(side, CCI_EVENT_STATUS);
    while (event->status.what == CCI_STATUS_ROUTE_CHANGED && what != CCI_STATUS_ROUTE_CHANGED) {
        drop(event);
        event = await(side, CCI_EVENT_STATUS);
    }
    assert_int_equal(event->status.what, what);
    assert_int_equal(event->status.value, value);
    assert_null(event->status.connection);
    drop(event);
}

TEST(news, ON_UDP, "[TI, TI_EVENT_NETDEV_CHANGEMTU, _CHANGEADDR, _DOWN and _UP] CCI_EVENT_STATUS tells what happens to the interface") {
    side_t *side = side_open_at(device_named("zero"), NULL), *other = side_open_at(device_named("zero"), NULL);
    const uint32_t mask = 1u << CCI_EVENT_STATUS;
    (void)state;
    assert_int_equal(cci_set_opt(side->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(command("ip link set v0 mtu 1400"), 0);
    await_news(side, CCI_STATUS_MTU_CHANGED, 1400);
    assert_int_equal(command("ip addr del 10.9.0.1/24 dev v0"), 0);
    await_news(side, CCI_STATUS_ADDRESS_CHANGED, 0);
    await_failure(side);
    await_news(side, CCI_STATUS_DEVICE_DOWN, 0);
    assert_int_equal(command("ip addr add 10.9.0.1/24 dev v0"), 0);
    await_news(side, CCI_STATUS_ADDRESS_CHANGED, 1);
    await_news(side, CCI_STATUS_DEVICE_UP, 0);
    assert_int_equal(command("ip link set v0 down"), 0);
    await_failure(side);
    await_news(side, CCI_STATUS_DEVICE_DOWN, 0);
    assert_int_equal(command("ip link set v0 up"), 0);
    await_news(side, CCI_STATUS_DEVICE_UP, 0);
    assert_int_equal(command("ip link set v0 mtu 1500"), 0);
    await_news(side, CCI_STATUS_MTU_CHANGED, 1500);
    while (count_of(side, CCI_EVENT_STATUS) > 0) await_news(side, CCI_STATUS_ROUTE_CHANGED, 0);
    assert_int_equal(side->count, 0);
    await_failure(other);
    while (other->count > 0) { /* the second, if the first was taken before; nothing else, since it has not asked */
        await_failure(other);
    }
}

#if CCI__UDP_LINUX
/* Until the library has looked: it reads what the kernel tells when it works. */
static void change_routes(side_t *side, const char *how) {
    assert_int_equal(command(how), 0);
    await_news(side, CCI_STATUS_ROUTE_CHANGED, 0);
}

TEST(routes, ON_UDP, "CCI_EVENT_STATUS tells that a route has come, gone or changed, to who asks for it and no longer") {
    side_t *side = side_open_at(device_named("zero"), NULL), *other = side_open_at(device_named("zero"), NULL);
    const uint32_t mask = 1u << CCI_EVENT_STATUS, none = 0;
    unsigned long bytes;
    (void)state;
    assert_int_equal(cci_set_opt(side->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    change_routes(side, "ip route add 10.77.0.0/16 via 10.9.0.4 dev v0");
    change_routes(side, "ip route change 10.77.0.0/16 via 10.9.0.3 dev v0");
    change_routes(side, "ip route del 10.77.0.0/16");
    change_routes(side, "ip -6 route add fd77::/64 via fd09::4 dev v0");
    change_routes(side, "ip -6 route del fd77::/64");
    change_routes(side, "ip route add unreachable 10.78.0.0/16 table 7");
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(side->count + other->count, 0);
    assert_int_equal(cci_set_opt(side->ep, CCI_OPT_ENDPT_EVENT_MASK, &none), CCI_SUCCESS);
    elapse(300 * MILLISECOND_NS);
    bytes = work.bytes;
    assert_int_equal(command("ip route add 10.77.0.0/16 via 10.9.0.4 dev v0"), 0);
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(work.bytes, bytes); /* the kernel has told nobody */
    assert_int_equal(side->count + other->count, 0);
}

TEST(routes_asleep, ON_UDP, "a change of routes wakes who sleeps on the OS handle and asks for it") {
    const uint32_t mask = 1u << CCI_EVENT_STATUS;
    cci_endpoint_t *ep = NULL;
    cci_os_handle_t fd = -1;
    cci_event_t *event = NULL;
    struct pollfd one = {0, POLLIN, 0};
    (void)state;
    assert_int_equal(cci_create_endpoint(device_named("zero"), 0, &ep, &fd), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    one.fd = fd;
    while (cci_get_event(ep, &event) == CCI_SUCCESS) drop(event);
    assert_int_equal(command("ip route add 10.79.0.0/16 via 10.9.0.4 dev v0"), 0);
    do {
        assert_int_equal(poll(&one, 1, 60000), 1);
    } while (cci_get_event(ep, &event) != CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_STATUS);
    assert_int_equal(event->status.what, CCI_STATUS_ROUTE_CHANGED);
    drop(event);
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS);
}
#endif

TEST(both_ends, ON_UDP, "every endpoint on a cable that is cut gets an event of its own") {
    side_t *a = side_open_at(device_named("zero"), NULL), *b = side_open_at(device_named("one"), NULL);
    side_t *c = side_open_at(device_named("zero"), NULL);
    (void)state;
    assert_int_equal(command("ip link set v0 down"), 0);
    await_failure(a);
    await_failure(b);
    await_failure(c);
}

static void *break_later(void *unused) {
    usleep(200000);
    return command("ip link set v1 down") == 0 ? NULL : unused;
}

static void sleep_through_failure(int arms) {
    cci_endpoint_t *ep = NULL;
    cci_os_handle_t fd = -1;
    cci_event_t *event = NULL;
    void *failed = NULL;
    pthread_t breaker;
    assert_int_equal(cci_create_endpoint(device_named("zero"), 0, &ep, &fd), CCI_SUCCESS);
    assert_int_equal(pthread_create(&breaker, NULL, break_later, &fd), 0);
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {
        struct pollfd one = {0, POLLIN, 0};
        one.fd = fd;
        if (arms) {
            assert_int_equal(cci_arm_os_handle(ep, 0), CCI_SUCCESS);
        }
        if (poll(&one, 1, 20000) != 1) {
            break; /* asleep for so long means that a wake-up was missed */
        }
    }
    pthread_join(breaker, &failed);
    assert_null(failed);
    assert_non_null(event);
    assert_int_equal(event->type, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    assert_ptr_equal(event->dev_failed.endpoint, ep);
    drop(event);
}

TEST(asleep, ON_UDP, "a program asleep in poll() on the OS handle is woken when the interface fails") {
    (void)state;
    sleep_through_failure(1);
}

TEST(asleep_unarmed, ON_UDP, "a program that sleeps without arming the OS handle is woken by the failure too") {
    (void)state;
    sleep_through_failure(0);
}

/* ---- both families ----------------------------------------------------------------------------------------------- */

TEST(v4, ON_UDP, "endpoints on two interfaces connect by their own URIs, which are of IPv4") {
    side_t *a = side_open_at(device_named("zero"), NULL), *b = side_open_at(device_named("one"), NULL);
    (void)state;
    assert_non_null(strstr(a->uri, "udp://10.9.0.1:"));
    assert_non_null(strstr(b->uri, "udp://10.9.0.2:"));
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
}

static void rename_side(side_t *side, const char *uri) {
    free(side->uri);
    side->uri = strdup(uri);
    assert_non_null(side->uri);
}

TEST(v6, ON_UDP, "endpoints on interfaces with both families connect by an IPv6 URI as well") {
    side_t *a = side_open_at(device_named("zero"), NULL), *b = side_open_at(device_named("one"), "4711");
    (void)state;
    rename_side(b, "udp://[fd09::2]:4711");
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RU));
}

TEST(v6_named, ON_UDP, "the URI of an endpoint on an IPv6 address names it and can be connected to") {
    side_t *a = side_open_at(device_named("one"), NULL), *b = side_open_at(device_named("six"), NULL);
    (void)state;
    assert_non_null(strstr(b->uri, "udp://[fd09::1]:"));
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static cci_connection_t *open_connection(side_t *side, const char *uri, cci_conn_attribute_t attribute) {
    cci_connection_t *connection;
    cci_event_t *event;
    assert_int_equal(cci_connect(side->ep, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    event = await(side, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    drop(event);
    return connection;
}

/* From v0 over the cable to v1. A membership begins when the system gets to it, and nobody promises arrival: so it is
 * sent until it arrives. */
static void group_over_cable(const char *tx_uri, const char *rx_uri) {
    side_t *a = side_open_at(device_named("zero"), NULL), *b = side_open_at(device_named("one"), NULL);
    side_t *c = side_open_at(device_named("lo"), NULL);
    cci_connection_t *rx = open_connection(b, rx_uri, CCI_CONN_ATTR_UU_MC_RX);
    cci_connection_t *tx = open_connection(a, tx_uri, CCI_CONN_ATTR_UU_MC_TX);
    patience_t patience = be_patient();
    uint8_t bytes[1200];
    cci_event_t *event;
    assert_true(tx->max_send_size >= sizeof bytes);
    fill(bytes, sizeof bytes, 9);
    while (count_of(b, CCI_EVENT_RECV) == 0) {
        send_patiently(tx, bytes, sizeof bytes, 5, 0);
        await_send(a, tx, as_context(5), CCI_SUCCESS);
        elapse(20 * MILLISECOND_NS);
        still_patient(&patience, "a message to the group");
    }
    event = take(b, CCI_EVENT_RECV);
    assert_ptr_equal(event->recv.connection, rx);
    assert_int_equal(event->recv.len, sizeof bytes);
    assert_true(holds_pattern(event->recv.ptr, sizeof bytes, 9));
    drop(event);
    assert_int_equal(a->count + c->count, 0); /* neither of them is a member */
}

TEST(group_v4, ON_UDP, "a message to an IPv4 group goes over the device's interface to the members on the other end") {
    (void)state;
    group_over_cable("udp://239.9.9.9:39500", "udp://239.9.9.9:39500");
}

TEST(group_v6_link, ON_UDP, "a link-local IPv6 group without a scope means the device's interface") {
    (void)state;
    group_over_cable("udp://[ff02::1234]:39501", "udp://[ff02::1234]:39501");
}

TEST(group_v6_scoped, ON_UDP, "a link-local IPv6 group may name its interface") {
    (void)state;
    group_over_cable("udp://[ff02::1235%v0]:39502", "udp://[ff02::1235%v1]:39502");
}

TEST(group_v6_site, ON_UDP, "a message to an IPv6 group of wider scope reaches the members on the other end") {
    (void)state;
    group_over_cable("udp://[ff15::1234]:39503", "udp://[ff15::1234]:39503");
}

/* ---- a peer behind a cable --------------------------------------------------------------------------------------- */

static pid_t peer_pid;

/* The other process has a network of its own, with the far end of the cable; 0 if that can't be. */
static int move_out(void) {
    static const char *const steps[] = {"ip link set lo up", "ip addr add 10.10.0.2/24 dev w1", "ip link set w1 up"};
    char text[80];
    size_t i;
    int tries;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNET) != 0 || write(1, "n", 1) != 1) {
        return 0;
    }
    for (i = 0, tries = 0; i < sizeof steps / sizeof *steps && tries < 200; tries++) {
        snprintf(text, sizeof text, "%s 2>/dev/null", steps[i]);
        if (system(text) == 0) {
            i++;
        } else {
            usleep(50000); /* the cable is not there yet */
        }
    }
    return 1;
}

/* Says how each message arrived, until it is killed. */
static int serve(const char *service) {
    uint32_t caps, next = 0;
    cci_endpoint_t *ep;
    cci_event_t *event;
    int tries, ready, status;
    fill_setup();
    ready = cci_setup(&test_setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS;
    for (tries = 0; ready && tries < 200 && !is_up("far"); tries++) {
        usleep(50000); /* the carrier comes a moment after the interface */
    }
    status = ready ? cci_create_endpoint_at(device_named("far"), service, 0, &ep, NULL) : (int)CCI_ERROR;
    if (status == CCI_EBUSY) {
        return write(1, "b", 1) != 1;
    }
    if (status != CCI_SUCCESS || write(1, "r", 1) != 1) {
        fprintf(stderr, "the peer does not start: %s\n", log_text);
        return 1;
    }
    for (;;) {
        if (cci_get_event(ep, &event) != CCI_SUCCESS) {
            usleep(50);
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        } else if (event->type == CCI_EVENT_RECV) {
            uint8_t good = (uint8_t)holds_pattern(event->recv.ptr, event->recv.len, next++);
            (void)cci_send(event->recv.connection, &good, 1, NULL, CCI_FLAG_SILENT);
        }
        (void)cci_return_event(event);
    }
}

/* Starts and kills servers, each a process: '+' and a name begins one, '-' ends it, '?' tries and waits for the end. */
static int keep_servers(void) {
    struct {
        char name[32];
        pid_t pid;
    } servers[8];
    char line[34];
    int count = 0, i;
    setvbuf(stdin, NULL, _IONBF, 0);
    if (write(1, "r", 1) != 1) {
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL && count < 8) {
        line[strcspn(line, "\n")] = '\0';
        for (i = 0; line[0] == '-' && i < count && strcmp(servers[i].name, line + 1) != 0; i++) {
        }
        if (line[0] != '-') {
            snprintf(servers[count].name, sizeof servers[count].name, "%s", line + 1);
            servers[count].pid = fork();
            if (servers[count].pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(serve(line + 1));
            }
            if (line[0] == '+') {
                count++;
            } else if (waitpid(servers[count].pid, NULL, 0) < 0) {
                return 1;
            }
        } else if (i == count || kill(servers[i].pid, SIGKILL) != 0 || waitpid(servers[i].pid, NULL, 0) < 0 ||
                   write(1, "k", 1) != 1) {
            return 1;
        } else {
            servers[i].name[0] = '\0';
        }
    }
    return 0;
}

static int peer_says, peer_hears; /* what keep_servers() writes and reads */

static void await_peer(char expected) {
    char byte = 0;
    assert_int_equal(read(peer_says, &byte, 1), 1);
    assert_int_equal(byte, expected);
}

static void start_peer(const char *what) {
    char text[160];
    int out[2], in[2];
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(in), 0);
    peer_pid = fork();
    assert_true(peer_pid >= 0);
    if (peer_pid == 0) {
        dup2(out[1], 1);
        dup2(in[0], 0);
        close(in[1]);
        execl("/proc/self/exe", "netns", what, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    close(in[0]);
    peer_says = out[0];
    peer_hears = in[1];
    await_peer('n');
    snprintf(text, sizeof text, "ip link add w0 type veth peer name w1 && ip addr add 10.10.0.1/24 dev w0 && "
             "ip link set w0 up && ip link set w1 netns %d", (int)peer_pid);
    assert_int_equal(command(text), 0);
    await_peer('r');
}

static void stop_peer(void) {
    if (peer_pid > 0) {
        kill(peer_pid, SIGKILL);
        waitpid(peer_pid, NULL, 0);
        close(peer_says);
        close(peer_hears);
    }
    peer_pid = 0;
}

/* Sends messages that fill datagrams of 1500 bytes while the path shrinks; each must arrive once, whole, in order. */
static void shrink_while_sending(const char *device_name, const char *format) {
    enum { MESSAGES = 2000 };
    side_t *a;
    cci_connection_t *connection;
    uint8_t bytes[1400];
    char text[200];
    int sent = 0, done = 0, answered = 0;
    cci_event_t *event;
    patience_t patience;
    start_peer("--peer");
    AWAIT(is_up(device_name));
    a = side_open_at(device_named(device_name), NULL);
    connection = open_connection(a, PEER_URI, CCI_CONN_ATTR_RO);
    assert_true(connection->max_send_size >= sizeof bytes);
    patience = be_patient();
    while (done < MESSAGES || answered < MESSAGES) {
        if (sent < MESSAGES && sent - answered < 64) {
            if (sent == MESSAGES / 2) {
                snprintf(text, sizeof text, format, (int)peer_pid);
                assert_int_equal(command(text), 0);
            }
            fill(bytes, sizeof bytes, (uint64_t)sent++);
            send_patiently(connection, bytes, sizeof bytes, 8, 0);
        }
        poll_all();
        while ((event = take(a, CCI_EVENT_SEND)) != NULL) {
            assert_int_equal(event->send.status, CCI_SUCCESS);
            drop(event);
            done++;
        }
        while ((event = take(a, CCI_EVENT_RECV)) != NULL) {
            assert_int_equal(event->recv.len, 1);
            assert_int_equal(*(const uint8_t *)event->recv.ptr, 1);
            drop(event);
            answered++;
        }
        still_patient(&patience, "messages over a path that shrank");
    }
    assert_int_equal(sent, MESSAGES);
    assert_int_equal(a->count, 0);
}

TEST(mtu_both, ON_UDP, "a connection goes on when the MTU of both ends falls while it sends") {
    (void)state;
    shrink_while_sending("near", "nsenter -t %d -n ip link set w1 mtu 1280 && ip link set w0 mtu 1280");
}

TEST(mtu_far, ON_UDP, "a connection goes on when the far end silently drops what used to fit") {
    (void)state;
    /* The cable would carry what the kernel is to cut up as a whole: so without offloads. */
    shrink_while_sending("plain", "nsenter -t %d -n ip link set w1 mtu 1280");
    assert_int_equal(command("awk '$1 == \"w0:\" { exit !($13 > 0) }' /proc/net/dev"), 0); /* it did drop some */
}

/* ---- services by name -------------------------------------------------------------------------------------------- */

static void ask_peer(char what, const char *name, char expected) {
    char text[40];
    int length = snprintf(text, sizeof text, "%c%s\n", what, name);
    assert_int_equal(write(peer_hears, text, (size_t)length), length);
    await_peer(expected);
}

/* A message there and its answer. */
static void ask_server(side_t *side, cci_connection_t *connection, uint64_t seed) {
    uint8_t bytes[1000];
    cci_event_t *event;
    fill(bytes, sizeof bytes, seed);
    send_patiently(connection, bytes, sizeof bytes, 8, 0);
    await_send(side, connection, as_context(8), CCI_SUCCESS);
    event = await(side, CCI_EVENT_RECV);
    assert_ptr_equal(event->recv.connection, connection);
    assert_int_equal(*(const uint8_t *)event->recv.ptr, 1);
    drop(event);
}

/* A connection to the far host's server of that name, which is at this port. */
static cci_connection_t *open_named(side_t *side, const char *name, uint32_t port) {
    char uri[80], expected[80], *peer = NULL;
    cci_connection_t *connection;
    snprintf(uri, sizeof uri, "udp://10.10.0.2/%s", name);
    snprintf(expected, sizeof expected, "udp://10.10.0.2:%u", (unsigned)port);
    connection = open_connection(side, uri, CCI_CONN_ATTR_RO);
    assert_int_equal(cci_get_opt(connection, CCI_OPT_CONN_PEER_URI, &peer), CCI_SUCCESS);
    assert_string_equal(peer, expected);
    free(peer);
    return connection;
}

/* A name whose first port is that of "storage", too. */
static void find_neighbour(const cci_conn_name_t *storage, char *text, size_t size, cci_conn_name_t *name) {
    unsigned i = 0;
    do {
        snprintf(text, size, "neighbour-%u", i++);
        assert_int_equal(cci_conn_hash_name(text, name), CCI_SUCCESS);
    } while (name->ports[0] != storage->ports[0]);
}

TEST(names, ON_UDP, "a client finds a server on another host by name, two whose first port is the same, and one that was killed and is back") {
    cci_conn_name_t storage, other;
    cci_connection_t *connection, *second;
    cci_event_t *event;
    char name[32];
    side_t *a;
    (void)state;
    assert_int_equal(cci_conn_hash_name("storage", &storage), CCI_SUCCESS);
    find_neighbour(&storage, name, sizeof name, &other);
    start_peer("--servers");
    AWAIT(is_up("near"));
    ask_peer('+', "storage", 'r');
    ask_peer('+', name, 'r');
    ask_peer('?', "storage", 'b'); /* another process of that host has the name */
    (void)side_open_at(device_named("near"), "storage"); /* but this is another host */
    a = side_open_at(device_named("near"), NULL);
    connection = open_named(a, "storage", storage.ports[0]);
    ask_server(a, connection, 0);
    second = open_named(a, name, other.ports[1]); /* who has its first port said that this is not the one */
    ask_server(a, second, 0);
    ask_peer('-', "storage", 'k');
    /* A server that isn't there yet; the old one's connection is over as soon as it is. */
    assert_int_equal(cci_connect(a->ep, "udp://10.10.0.2/storage", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    elapse(100 * MILLISECOND_NS);
    assert_int_equal(a->count, 0);
    ask_peer('+', "storage", 'r');
    event = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    ask_server(a, event->connect.connection, 0);
    drop(event);
    send_patiently(connection, "old", 3, 9, 0);
    await_send(a, connection, as_context(9), CCI_ERR_DISCONNECTED);
    ask_server(a, second, 1); /* nothing happened to the other */
    ask_peer('-', name, 'k');
    ask_peer('-', "storage", 'k');
    ask_peer('+', name, 'r'); /* comes first this time, and has the port that was the other's */
    ask_peer('+', "storage", 'r');
    ask_server(a, open_named(a, name, other.ports[0]), 0);
    ask_server(a, open_named(a, "storage", storage.ports[1]), 0);
}

/* ---- very many interfaces ---------------------------------------------------------------------------------------- */

enum { INTERFACES = 1500 };

/* So many more, as pairs with an address each, unless they are there; 0 when the system can't. */
static int crowd_in(int pairs) {
    FILE *ip;
    int i;
    if (if_nametoindex("c0") != 0) {
        return 1;
    }
    ip = popen("ip -batch - >/dev/null 2>&1", "w");
    assert_non_null(ip);
    for (i = 0; i < pairs; i++) {
        fprintf(ip, "link add c%d type veth peer name e%d\naddr add 10.%d.%d.1/32 dev c%d\naddr add 10.%d.%d.1/32 dev e%d\n",
                i, i, 20 + i / 250, i % 250, i, 40 + i / 250, i % 250, i);
    }
    return pclose(ip) == 0;
}

static uint64_t processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* One call, whose work is compared with the most so far. */
static void note_work(side_t *side, struct work *most) {
    struct work start = work;
    uint64_t began_ns = processor_ns(), took_ns;
    cci_event_t *event;
    assert_int_equal(cci_get_event(side->ep, &event), CCI_EAGAIN);
    took_ns = processor_ns() - began_ns;
    most->longest_ns = took_ns > most->longest_ns ? took_ns : most->longest_ns;
    most->calls = work.calls - start.calls > most->calls ? work.calls - start.calls : most->calls;
    most->bytes = work.bytes - start.bytes > most->bytes ? work.bytes - start.bytes : most->bytes;
    most->listings += work.listings - start.listings;
}

/* Lets the library work until it has looked at its interface, and on. */
static void let_it_look(side_t *side, struct work *most) {
    unsigned long before = work.questions + work.listings;
    patience_t patience = be_patient();
    int rest = 1000;
    while (rest > 0) {
        note_work(side, most);
        rest -= work.questions + work.listings > before;
        still_patient(&patience, "a look at the interface");
    }
}

/* Reading what the kernel says is cut off after 64 messages; a look takes a handful of calls more. */
static void assert_little(const struct work *most, const char *what) {
    print_message("%s: at most %lu system calls, %lu bytes and %.3f ms of the processor in one call\n", what, most->calls, most->bytes,
                  (double)most->longest_ns / 1e6);
    assert_int_equal(most->listings, 0);
    assert_in_range(most->calls, 0, 100);
    assert_in_range(most->bytes, 0, 200000);
}

TEST(crowd, ON_UDP, "a change of addresses among 1,500 interfaces makes no call list them, nor do more than a little") {
    struct work most = {0, 0, 0, 0, 0};
    side_t *side;
    int i;
    (void)state;
    if (!crowd_in(INTERFACES / 2)) {
        skip();
    }
    side = side_open_at(device_named("zero"), NULL);
    for (i = 0; i < 5; i++) {
        char text[120];
        snprintf(text, sizeof text, "ip addr add 10.9.7.%d/32 dev v0; for i in 0 1 2 3 4 5 6 7 8 9; do ip addr add 10.8.%d.$i/32 dev "
                 "c$i; done", i, i);
        assert_int_equal(command(text), 0);
        let_it_look(side, &most);
    }
    assert_little(&most, "some addresses change");
    assert_int_equal(command("ip addr del 10.9.0.1/24 dev v0"), 0);
    await_failure(side);
}

/* The kernel tells of each of them. */
static void *change_all(void *is_over) {
    FILE *ip = popen("ip -batch - >/dev/null 2>&1", "w");
    int i;
    for (i = 0; ip != NULL && i < INTERFACES / 2; i++) {
        fprintf(ip, "addr add 10.%d.%d.1/32 dev c%d\naddr add 10.%d.%d.1/32 dev e%d\n", 60 + i / 250, i % 250, i, 80 + i / 250, i % 250, i);
    }
    if (ip != NULL) {
        (void)pclose(ip);
    }
    __atomic_store_n((int *)is_over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

TEST(crowd_changes, ON_UDP, "when all of 1,500 interfaces get another address at once, no call does more than a little either") {
    struct work most = {0, 0, 0, 0, 0};
    int is_over = 0;
    pthread_t changes;
    side_t *side;
    (void)state;
    if (!crowd_in(INTERFACES / 2)) {
        skip();
    }
    side = side_open_at(device_named("zero"), NULL);
    assert_int_equal(pthread_create(&changes, NULL, change_all, &is_over), 0);
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
        note_work(side, &most);
    }
    pthread_join(changes, NULL);
    let_it_look(side, &most);
    assert_little(&most, "all addresses change");
    both_ways(connect_sides(side, side_open_at(device_named("zero"), NULL), CCI_CONN_ATTR_RO));
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void prepare_network(void) {
    snprintf(config_text, sizeof config_text, "%s", CONFIG);
    (void)command("ip link set v0 up; ip link set v1 up; ip addr replace 10.9.0.1/24 dev v0;"
                  "ip link del w0 2>/dev/null; while ip link | grep -q NO-CARRIER; do sleep 0.05; done");
}

int main(int argc, char **argv) {
    const char *place = getenv("CCI_NETNS");
    patience_s = 20;
    if (argc > 1 && strncmp(argv[1], "--", 2) == 0) {
        snprintf(config_text, sizeof config_text, "%s", PEER_CONFIG);
        return !move_out() || (strcmp(argv[1], "--peer") == 0 ? serve("4000") : keep_servers());
    }
    if (place == NULL || strcmp(place, "ready") != 0) {
        execlp("sh", "sh", "tests/net/netns.sh", argv[0], argc > 1 ? argv[1] : (char *)NULL, (char *)NULL);
        perror("tests/net/netns.sh");
        return 1;
    }
    worsen_network = prepare_network;
    before_end = stop_peer;
    return run_listed_tests("interfaces", ON_UDP | WHEN_CLEAN, argc > 1 ? argv[1] : NULL);
}
