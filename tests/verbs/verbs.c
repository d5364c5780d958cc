/* verbs.c - RDMA devices that fail: ports, wires, peers, queue pairs, whole devices; and what stays behind.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     verbs rc|ud|udp [PART]      all tests, or those whose sentence contains PART
 *
 * Runs in the virtual machine of tests/verbs/vm, as root, where it may break what it likes: rxe0 and rxe1 are the two ends of
 * a wire (v0 and v1). A third device, rxe2 on w0, stays whole while they break. With `udp` the same tests use sockets on
 * the same wires, which shows what of a failure is RDMA's.
 */
#define _GNU_SOURCE 1

#define CCI_IMPLEMENTATION
#include "cci_verbs.h"

#include "cci_udp.h"

#include "cci.h"

#include "tests/support/harness.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const char *mode = "rc";

/* Where a test makes sense, in the harness's words; no network is simulated here. */
#define WITH_ALL (ON_UDP | ON_VERBS)
#define WITH_RDMA ON_VERBS
#define WITH_RC ON_SIM

/* ---- small helpers ----------------------------------------------------------------------------------------------- */

static int is_rdma(void) {
    return strcmp(mode, "udp") != 0;
}

static int command(const char *text) {
    fflush(stdout);
    return system(text);
}

static void must(const char *text) {
    if (command(text) != 0) {
        fail_msg("failed: %s", text);
    }
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

static side_t *side_on(const char *device) {
    return side_open_at(device_named(device), NULL);
}

static void set_number(void *handle, cci_opt_name_t name, uint32_t number) {
    cci_opt_handle_t *opt = (cci_opt_handle_t *)handle;
    assert_int_equal(cci_set_opt(opt, name, &number), CCI_SUCCESS);
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

static void use_between(const char *from, const char *to) {
    both_ways(connect_sides(side_on(from), side_on(to), CCI_CONN_ATTR_RO));
}

static int is_lost(cci_status_t status) {
    return status == CCI_ETIMEDOUT || status == CCI_ERR_DISCONNECTED;
}

/* ---- ports that go down and come back ---------------------------------------------------------------------------- */

static void await_failure(side_t *side) {
    cci_event_t *event = await(side, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    assert_ptr_equal(event->dev_failed.endpoint, side->ep);
    drop(event);
}

static void mend_wire(void) {
    (void)command("ip link set v0 up; ip link set v1 up; tc qdisc del dev v0 root 2>/dev/null;"
                  "tc qdisc del dev v1 root 2>/dev/null; wire");
    (void)command("ip link show w0 >/dev/null 2>&1 || { ip link add w0 mtu 4200 type veth peer name w1 mtu 4200 && "
                  "ip addr add 10.2.0.1/24 dev w0 && ip link set w0 up && ip link set w1 up; }");
    (void)command("rdma link show rxe2/1 >/dev/null 2>&1 || rdma link add rxe2 type rxe netdev w0");
    (void)command("i=0; until [ $(rdma link | grep -c 'state ACTIVE') = 3 ] || [ $i = 100 ]; do sleep 0.1; i=$((i + 1)); done");
}

/* Breaks the wire with one command, mends it with another. */
static void fail_and_recover(const char *breaking, const char *mending) {
    side_t *side = side_on("zero"), *other = side_on("two");
    pair_t local = connect_sides(other, other, CCI_CONN_ATTR_RO);
    cci_endpoint_t *none = NULL;
    int i;
    assert_true(is_up("zero"));
    for (i = 0; i < 2; i++) {
        must(breaking);
        await_failure(side);
        elapse(300 * MILLISECOND_NS);
        assert_int_equal(side->count, 0); /* told once */
        assert_false(is_up("zero"));
        assert_int_equal(cci_create_endpoint(device_named("zero"), 0, &none, NULL), CCI_ENODEV);
        assert_null(none);
        assert_true(is_up("two"));
        both_ways(local);
        assert_int_equal(other->count, 0);
        must(mending);
        AWAIT(is_up("zero"));
        elapse(300 * MILLISECOND_NS); /* the endpoint looks for itself */
        assert_int_equal(side->count, 0);
        use_between("zero", "zero");
        both_ways(connect_sides(side, side_on("zero"), CCI_CONN_ATTR_RO));
    }
}

TEST(port_down, WITH_ALL, "a port that is taken down fails its endpoints once, other devices go on, it comes back") {
    (void)state;
    fail_and_recover("ip link set v0 down", "ip link set v0 up && wire");
}

TEST(wire_cut, WITH_ALL, "a port whose wire is cut fails its endpoints once, other devices go on, it comes back") {
    (void)state;
    fail_and_recover("ip link set v1 down", "ip link set v1 up && wire");
}

TEST(both_ends, WITH_ALL, "every endpoint at a wire that is cut gets an event of its own") {
    side_t *a = side_on("zero"), *b = side_on("one"), *c = side_on("zero");
    (void)state;
    must("ip link set v0 down");
    await_failure(a);
    await_failure(b);
    await_failure(c);
}

TEST(short_cut, WITH_ALL, "what is under way when a wire is cut is told to have arrived or not, and what was told is so") {
    enum { MESSAGES = 40 };
    pair_t pair = connect_sides(side_on("zero"), side_on("one"), CCI_CONN_ATTR_RO);
    size_t arrived, succeeded = 0;
    int i;
    (void)state;
    set_number(pair.ac, CCI_OPT_CONN_SEND_TIMEOUT, 3000000);
    for (i = 0; i < MESSAGES; i++) {
        if (i == MESSAGES / 2) {
            must("ip link set v1 down");
        }
        if (cci_send(pair.ac, &i, sizeof i, as_context((uintptr_t)i + 1), 0) != CCI_SUCCESS) {
            break; /* the endpoint has noticed */
        }
    }
    AWAIT(count_of(pair.a, CCI_EVENT_SEND) == (size_t)i);
    arrived = count_of(pair.b, CCI_EVENT_RECV);
    for (; i > 0; i--) {
        cci_event_t *event = take(pair.a, CCI_EVENT_SEND);
        succeeded += event->send.status == CCI_SUCCESS;
        assert_true(event->send.status == CCI_SUCCESS || is_lost(event->send.status));
        drop(event);
    }
    assert_true(succeeded <= arrived);
}

static void *break_later(void *unused) {
    usleep(200000);
    return command("ip link set v1 down") == 0 ? NULL : unused;
}

TEST(asleep, WITH_ALL, "a program asleep in poll() on the OS handle is woken when the port goes down") {
    cci_endpoint_t *ep = NULL;
    cci_os_handle_t fd = -1;
    cci_event_t *event = NULL;
    void *failed = NULL;
    pthread_t breaker;
    (void)state;
    assert_int_equal(cci_create_endpoint(device_named("zero"), 0, &ep, &fd), CCI_SUCCESS);
    assert_int_equal(pthread_create(&breaker, NULL, break_later, &fd), 0);
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {
        struct pollfd one = {0, POLLIN, 0};
        one.fd = fd;
        assert_int_equal(cci_arm_os_handle(ep, 0), CCI_SUCCESS);
        if (poll(&one, 1, 20000) != 1) {
            break; /* asleep for so long means that a wake-up was missed */
        }
    }
    pthread_join(breaker, &failed);
    assert_null(failed);
    assert_non_null(event);
    assert_int_equal(event->type, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    drop(event);
}

/* ---- bad wires --------------------------------------------------------------------------------------------------- */

/* Messages both ways at once, and RMAs both ways, all of which arrive whole. */
static void use_hard(int messages, int rmas, uint32_t rma_size) {
    static uint8_t region_a[200000], region_b[200000], source[200000];
    side_t *a = side_on("zero"), *b = side_on("one");
    pair_t pair;
    cci_rma_handle_t *at_a, *at_b;
    uint8_t bytes[1500];
    const size_t size = rma_size;
    int i, sent = 0, at[2] = {0, 0}, completed = 0, moved = 0;
    patience_t patience = be_patient();
    assert_true(size <= sizeof source);
    set_number(a->ep, CCI_OPT_ENDPT_SEND_TIMEOUT, 100000000);
    set_number(b->ep, CCI_OPT_ENDPT_SEND_TIMEOUT, 100000000);
    pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    fill(source, size, 9);
    assert_int_equal(cci_rma_register(a->ep, region_a, size, CCI_FLAG_READ | CCI_FLAG_WRITE, &at_a), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, region_b, size, CCI_FLAG_READ | CCI_FLAG_WRITE, &at_b), CCI_SUCCESS);
    memcpy(region_a, source, size);
    memset(region_b, 0, size);
    while (at[0] < messages || at[1] < messages || completed < 2 * messages || moved < rmas) {
        if (sent < messages && sent - at[0] < 32 && sent - at[1] < 32) {
            fill(bytes, sizeof bytes, (uint64_t)sent++);
            send_patiently(pair.ac, bytes, sizeof bytes, 1, 0);
            send_patiently(pair.bc, bytes, sizeof bytes, 1, 0);
            if (sent * rmas / messages > (sent - 1) * rmas / messages) {
                /* Written from a to b, then read back from b, in turns. */
                int is_read = (sent * rmas / messages) % 2 == 0;
                assert_int_equal(cci_rma(pair.ac, NULL, 0, at_a, 0, at_b, 0, size, as_context(2),
                                         is_read ? CCI_FLAG_READ | CCI_FLAG_FENCE : CCI_FLAG_WRITE | CCI_FLAG_FENCE),
                                 CCI_SUCCESS);
            }
        }
        poll_all();
        for (i = 0; i < 2; i++) {
            side_t *side = i == 0 ? b : a;
            cci_event_t *event;
            while ((event = take(side, CCI_EVENT_RECV)) != NULL) {
                assert_int_equal(event->recv.len, sizeof bytes);
                assert_true(holds_pattern(event->recv.ptr, sizeof bytes, (uint64_t)at[i]++));
                drop(event);
            }
            while ((event = take(side, CCI_EVENT_SEND)) != NULL) {
                assert_int_equal(event->send.status, CCI_SUCCESS);
                *(event->send.context == as_context(2) ? &moved : &completed) += 1;
                drop(event);
            }
        }
        still_patient(&patience, "messages and RMAs over a bad wire");
    }
    assert_memory_equal(region_a, source, size);
    assert_memory_equal(region_b, source, size);
    assert_int_equal(a->count + b->count, 0);
}

/* rxe (of Linux 6.1) never repeats a read of which an answer is lost: the library has to notice and begin it again, which
 * takes seconds, so it had better need few packets. */
#define SHORT_RMA 32000u

static void worsen_wire(const char *how) {
    char text[200];
    snprintf(text, sizeof text, "tc qdisc replace dev v0 root netem %s && tc qdisc replace dev v1 root netem %s", how, how);
    must(text);
}

TEST(good_wire, WITH_ALL, "messages and RMAs both ways at once arrive whole and in order") {
    (void)state;
    use_hard(300, 8, 200000);
}

TEST(lossy_wire, WITH_ALL, "messages and RMAs arrive whole and in order over a wire that loses 2 in 100 packets") {
    (void)state;
    worsen_wire("limit 10000 loss 2%");
    use_hard(200, 4, SHORT_RMA);
}

TEST(slow_wire, WITH_ALL, "messages and RMAs arrive whole and in order over a wire with a delay of 5 ms each way") {
    (void)state;
    worsen_wire("limit 10000 delay 5ms");
    use_hard(200, 4, 200000);
}

TEST(doubling_wire, WITH_ALL, "messages and RMAs arrive once over a wire that repeats and corrupts packets") {
    (void)state;
    worsen_wire("limit 10000 duplicate 5% corrupt 1%");
    use_hard(200, 4, SHORT_RMA);
}

TEST(outage, WITH_ALL, "connections outlive an outage of the wire that is shorter than their send timeout") {
    pair_t pair = connect_sides(side_on("zero"), side_on("one"), CCI_CONN_ATTR_RO);
    pair_t back = {pair.b, pair.a, pair.bc, pair.ac};
    (void)state;
    round_trip(&pair, 1);
    worsen_wire("limit 10000 loss 100%");
    send_patiently(pair.ac, "late", 4, 5, 0);
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(count_of(pair.b, CCI_EVENT_RECV), 0);
    must("tc qdisc del dev v0 root && tc qdisc del dev v1 root");
    drop(await(pair.b, CCI_EVENT_RECV));
    await_send(pair.a, pair.ac, as_context(5), CCI_SUCCESS);
    round_trip(&pair, 3);
    round_trip(&back, 4);
}

/* ---- peers that die ---------------------------------------------------------------------------------------------- */

static pid_t peer_pid;

/* The other process: tells its URI, sends the handle of its memory when somebody connects, and every message back. */
static int serve(void) {
    static uint8_t memory[65536];
    uint32_t caps;
    cci_endpoint_t *ep;
    cci_event_t *event;
    cci_rma_handle_t *handle;
    char *uri;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fill_setup();
    if (cci_setup(&test_setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
        cci_create_endpoint(device_named("one"), 0, &ep, NULL) != CCI_SUCCESS ||
        cci_rma_register(ep, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) != CCI_SUCCESS ||
        cci_get_opt(ep, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS || write(1, uri, strlen(uri) + 1) < 1) {
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
        } else if (event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS) {
            (void)cci_send(event->accept.connection, handle, sizeof *handle, NULL, CCI_FLAG_SILENT);
        } else if (event->type == CCI_EVENT_RECV) {
            (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
        }
        (void)cci_return_event(event);
    }
}

static void start_peer(char *uri, size_t size) {
    int ends[2];
    size_t used = 0;
    assert_int_equal(pipe(ends), 0);
    peer_pid = fork();
    assert_true(peer_pid >= 0);
    if (peer_pid == 0) {
        dup2(ends[1], 1);
        execl("/proc/self/exe", "verbs", mode, "--peer", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    do {
        assert_true(used < size);
        assert_int_equal(read(ends[0], uri + used, 1), 1);
    } while (uri[used++] != '\0');
    close(ends[0]);
}

static void stop_peer(void) {
    if (peer_pid > 0) {
        kill(peer_pid, SIGKILL);
        waitpid(peer_pid, NULL, 0);
    }
    peer_pid = 0;
}

typedef struct far_end {
    cci_connection_t *connection;
    cci_rma_handle_t handle; /* of the peer's memory */
} far_end_t;

static far_end_t connect_to_peer(side_t *side, const char *uri) {
    far_end_t far_end;
    cci_event_t *event;
    assert_int_equal(cci_connect(side->ep, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = await(side, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    far_end.connection = event->connect.connection;
    drop(event);
    event = await(side, CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, sizeof far_end.handle);
    memcpy(&far_end.handle, event->recv.ptr, sizeof far_end.handle);
    drop(event);
    return far_end;
}

static void echo(side_t *side, cci_connection_t *connection) {
    send_patiently(connection, "echo", 4, 3, 0);
    drop(await(side, CCI_EVENT_RECV));
    await_send(side, connection, as_context(3), CCI_SUCCESS);
}

/* What became of what was sent to the lost: they come while others are waited for. */
static struct {
    cci_connection_t *connection;
    int failed, succeeded;
} of_lost;

static int count_of_lost(side_t *side, cci_event_t *event) {
    (void)side;
    if (event->type != CCI_EVENT_SEND || event->send.connection != of_lost.connection) {
        return 0;
    }
    assert_true(is_lost(event->send.status) || event->send.status == CCI_SUCCESS);
    *(event->send.status == CCI_SUCCESS ? &of_lost.succeeded : &of_lost.failed) += 1;
    drop(event);
    return 1;
}

TEST(killed, WITH_ALL, "what is under way to a peer that is killed fails in its time, connections to others go on") {
    static uint8_t memory[65536];
    char uri[200];
    side_t *a;
    far_end_t lost, found;
    pair_t local;
    cci_rma_handle_t *here;
    int i, sent = 0;
    (void)state;
    start_peer(uri, sizeof uri);
    a = side_on("zero");
    local = connect_sides(a, side_on("one"), CCI_CONN_ATTR_RO);
    lost = connect_to_peer(a, uri);
    echo(a, lost.connection);
    assert_int_equal(cci_rma_register(a->ep, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &here), CCI_SUCCESS);
    set_number(lost.connection, CCI_OPT_CONN_SEND_TIMEOUT, 2000000);
    memset(&of_lost, 0, sizeof of_lost);
    of_lost.connection = lost.connection;
    a->handler = count_of_lost;
    kill(peer_pid, SIGSTOP); /* it is surely busy with nothing else when it dies */
    for (i = 0; i < 20; i++) {
        sent += cci_send(lost.connection, &i, sizeof i, as_context(4), 0) == CCI_SUCCESS;
        sent += cci_rma(lost.connection, NULL, 0, here, 0, &lost.handle, 0, sizeof memory, as_context(5),
                        i % 2 == 0 ? CCI_FLAG_READ : CCI_FLAG_WRITE) == CCI_SUCCESS;
    }
    assert_true(sent > 2);
    stop_peer();
    for (i = 0; i < 10; i++) {
        both_ways(local);
    }
    /* Everything ends. What the adapter has taken for the dead may have succeeded; what it has not, may not. */
    AWAIT(of_lost.failed + of_lost.succeeded == sent);
    i = of_lost.failed;
    if (cci_send(lost.connection, "?", 1, NULL, 0) == CCI_SUCCESS) {
        AWAIT(of_lost.failed + of_lost.succeeded == sent + 1);
        assert_int_equal(of_lost.failed, i + 1);
    }
    a->handler = NULL;
    both_ways(local);
    assert_int_equal(cci_disconnect(lost.connection), CCI_SUCCESS);
    start_peer(uri, sizeof uri);
    found = connect_to_peer(a, uri);
    echo(a, found.connection);
    both_ways(local);
}

TEST(killed_silent, WITH_ALL, "a peer that is killed while nothing is sent is noticed by keepalive") {
    char uri[200];
    side_t *a;
    far_end_t lost;
    pair_t local;
    cci_event_t *event;
    (void)state;
    start_peer(uri, sizeof uri);
    a = side_on("zero");
    local = connect_sides(a, side_on("one"), CCI_CONN_ATTR_RO);
    lost = connect_to_peer(a, uri);
    set_number(lost.connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 1000000);
    elapse(1500 * MILLISECOND_NS);
    assert_int_equal(count_of(a, CCI_EVENT_KEEPALIVE_TIMEDOUT), 0);
    stop_peer();
    event = await(a, CCI_EVENT_KEEPALIVE_TIMEDOUT);
    assert_ptr_equal(event->keepalive.connection, lost.connection);
    drop(event);
    both_ways(local);
    assert_int_equal(cci_disconnect(lost.connection), CCI_SUCCESS);
}

TEST(killed_early, WITH_ALL, "an attempt to connect to a peer that has been killed ends with a status") {
    char uri[200];
    struct timeval timeout = {1, 0};
    cci_event_t *event;
    side_t *a;
    (void)state;
    start_peer(uri, sizeof uri);
    stop_peer();
    a = side_on("zero");
    assert_int_equal(cci_connect(a->ep, uri, NULL, 0, CCI_CONN_ATTR_RO, &context_a, 0, &timeout), CCI_SUCCESS);
    event = await(a, CCI_EVENT_CONNECT);
    assert_ptr_equal(event->connect.context, &context_a);
    assert_true(event->connect.status == CCI_ETIMEDOUT || event->connect.status == CCI_ECONNREFUSED);
    assert_null(event->connect.connection);
    drop(event);
}

/* ---- failures that the driver never has, injected ---------------------------------------------------------------- */

/* The functions of libibverbs are a table: the test puts its own in between. Another event then passes for a change of the
 * port's addresses, which the test brings about, so that the descriptor of events is readable as it would be. */
static struct {
    cci__verbs_functions real;
    struct ibv_async_event event;
    int is_pending;
    struct ibv_qp *queue_pairs[64]; /* those that exist */
    int most_completions;           /* that a completion queue takes; 0: as many as the device says */
    int overruns;
    struct ibv_cq *cq;              /* of rxe0's connections */
    struct ibv_cq *deaf;            /* its completions vanish */
    int vanished;
    int (*poll)(struct ibv_cq *cq, int count, struct ibv_wc *wc); /* the driver's */
} faulty;

static int is_on(const struct ibv_context *context, const char *device) {
    return strcmp(faulty.real.get_device_name(context->device), device) == 0;
}

static int tell_faulty(struct ibv_context *context, struct ibv_async_event *event) {
    if (faulty.real.get_async_event(context, event) != 0) {
        return -1;
    }
    faulty.overruns += event->event_type == IBV_EVENT_CQ_ERR;
    if (faulty.is_pending && is_on(context, "rxe0")) {
        faulty.real.ack_async_event(event);
        *event = faulty.event;
        faulty.is_pending = 0;
    }
    return 0;
}

static void acknowledge_faulty(struct ibv_async_event *event) {
    if (event->event_type != faulty.event.event_type) {
        faulty.real.ack_async_event(event);
    }
}

static struct ibv_qp *create_counted(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes) {
    struct ibv_qp *qp = faulty.real.create_qp(pd, attributes);
    size_t i;
    for (i = 0; qp != NULL && i < 64; i++) {
        if (faulty.queue_pairs[i] == NULL) {
            faulty.queue_pairs[i] = qp;
            break;
        }
    }
    return qp;
}

static int destroy_counted(struct ibv_qp *qp) {
    size_t i;
    for (i = 0; i < 64; i++) {
        if (faulty.queue_pairs[i] == qp) {
            faulty.queue_pairs[i] = NULL;
        }
    }
    return faulty.real.destroy_qp(qp);
}

static int query_small(struct ibv_context *context, struct ibv_device_attr *attributes) {
    int status = faulty.real.query_device(context, attributes);
    if (faulty.most_completions > 0) {
        attributes->max_cqe = faulty.most_completions;
    }
    return status;
}

static int poll_faulty(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    int taken_now = faulty.poll(cq, count, wc);
    if (cq != faulty.deaf) {
        return taken_now;
    }
    faulty.vanished += taken_now;
    return 0;
}

/* A device makes no queue that is longer than it says. */
static struct ibv_cq *create_small(struct ibv_context *context, int length, void *user, struct ibv_comp_channel *channel,
                                   int vector) {
    if (faulty.most_completions > 0 && length > faulty.most_completions) {
        errno = EINVAL;
        return NULL;
    }
    if (context->ops.poll_cq != poll_faulty) {
        faulty.poll = context->ops.poll_cq;
        context->ops.poll_cq = poll_faulty;
    }
    if (user != NULL && is_on(context, "rxe0")) { /* the library's others have no such mark */
        faulty.cq = faulty.real.create_cq(context, length, user, channel, vector);
        return faulty.cq;
    }
    return faulty.real.create_cq(context, length, user, channel, vector);
}

/* Between tests there is no endpoint, so nobody uses the table. The devices were looked at by then, so it is filled. */
static void insert_faults(void) {
    if (faulty.real.open_device == NULL) {
        faulty.real = cci__ibv;
    }
    memset(faulty.queue_pairs, 0, sizeof faulty.queue_pairs);
    faulty.most_completions = faulty.overruns = faulty.vanished = 0;
    faulty.cq = faulty.deaf = NULL;
    cci__ibv.query_device = query_small;
    cci__ibv.create_cq = create_small;
    cci__ibv.get_async_event = tell_faulty;
    cci__ibv.ack_async_event = acknowledge_faulty;
    cci__ibv.create_qp = create_counted;
    cci__ibv.destroy_qp = destroy_counted;
}

static void remove_faults(void) {
    if (faulty.real.open_device != NULL) {
        cci__ibv = faulty.real;
    }
}

static void inject(enum ibv_event_type type, struct ibv_qp *qp) {
    memset(&faulty.event, 0, sizeof faulty.event);
    faulty.event.event_type = type;
    faulty.event.element.qp = qp;
    faulty.is_pending = 1;
    must("ip addr add 10.0.0.9/32 dev v0 && ip addr del 10.0.0.9/32 dev v0");
    AWAIT(!faulty.is_pending);
}

TEST(fatal, WITH_RDMA, "a device that fails for good fails its endpoint once, endpoints on other devices go on") {
    side_t *a, *other;
    pair_t local;
    (void)state;
    insert_faults();
    a = side_on("zero");
    other = side_on("two");
    local = connect_sides(other, other, CCI_CONN_ATTR_RO);
    (void)connect_sides(a, side_on("one"), CCI_CONN_ATTR_RO);
    inject(IBV_EVENT_DEVICE_FATAL, NULL);
    await_failure(a);
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(a->count, 0);
    both_ways(local);
    assert_int_equal(other->count, 0);
    side_close(a);
}

TEST(fatal_pending, WITH_RDMA, "what is pending when a device fails for good ends with CCI_ERR_DEVICE_DEAD, and so do later calls") {
    static uint8_t memory[20000];
    enum { MESSAGES = 5 };
    cci_rma_handle_t *here, *there;
    pair_t pair, unreliable;
    side_t *a;
    cci_event_t *event;
    int i;
    (void)state;
    insert_faults();
    a = side_on("zero");
    pair = connect_sides(a, side_on("one"), CCI_CONN_ATTR_RO);
    unreliable = connect_sides(a, pair.b, CCI_CONN_ATTR_UU);
    assert_int_equal(cci_rma_register(a->ep, memory, 10000, 0, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(pair.b->ep, memory + 10000, 10000, CCI_FLAG_WRITE, &there), CCI_SUCCESS);
    worsen_wire("limit 10000 loss 100%");
    for (i = 0; i < MESSAGES; i++) {
        assert_int_equal(cci_send(pair.ac, &i, sizeof i, as_context((uintptr_t)i), 0), CCI_SUCCESS);
    }
    assert_int_equal(cci_rma(pair.ac, "behind", 6, here, 0, there, 0, 10000, as_context(MESSAGES), CCI_FLAG_WRITE), CCI_SUCCESS);
    assert_int_equal(cci_connect(a->ep, pair.b->uri, NULL, 0, CCI_CONN_ATTR_RO, &context_a, 0, NULL), CCI_SUCCESS);
    inject(IBV_EVENT_DEVICE_FATAL, NULL);
    await_failure(a);
    for (i = 0; i <= MESSAGES; i++) {
        await_send(a, pair.ac, as_context((uintptr_t)i), CCI_ERR_DEVICE_DEAD);
    }
    event = await(a, CCI_EVENT_CONNECT);
    assert_ptr_equal(event->connect.context, &context_a);
    assert_int_equal(event->connect.status, CCI_ERR_DEVICE_DEAD);
    drop(event);
    assert_int_equal(cci_send(pair.ac, "?", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
    assert_int_equal(cci_send(pair.ac, "?", 1, NULL, CCI_FLAG_BLOCKING), CCI_ERR_DEVICE_DEAD);
    assert_int_equal(cci_send(unreliable.ac, "?", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
    assert_int_equal(cci_rma(pair.ac, NULL, 0, here, 0, there, 0, 100, NULL, CCI_FLAG_WRITE), CCI_ERR_DEVICE_DEAD);
    assert_int_equal(cci_connect(a->ep, pair.b->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_DEVICE_DEAD);
    assert_int_equal(a->count, 0);
    assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
    side_close(a);
}

/* Puts a queue pair out of order, as a driver does with one that failed. */
static void break_queue_pair(struct ibv_qp *qp) {
    struct ibv_qp_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.qp_state = IBV_QPS_ERR;
    assert_int_equal(faulty.real.modify_qp(qp, &attributes, IBV_QP_STATE), 0);
}

TEST(broken_pair, WITH_RC, "a queue pair that fails costs its own connection at most, others of the endpoint go on") {
    side_t *a, *b;
    pair_t first, second;
    struct ibv_qp *before[64];
    size_t i;
    int status, broken = 0;
    (void)state;
    insert_faults();
    a = side_on("zero");
    b = side_on("one");
    first = connect_sides(a, b, CCI_CONN_ATTR_RO);
    both_ways(first);
    memcpy(before, faulty.queue_pairs, sizeof before);
    second = connect_sides(a, b, CCI_CONN_ATTR_RO);
    both_ways(second);
    set_number(second.ac, CCI_OPT_CONN_SEND_TIMEOUT, 3000000);
    set_number(second.bc, CCI_OPT_CONN_SEND_TIMEOUT, 3000000);
    for (i = 0; i < 64; i++) {
        if (faulty.queue_pairs[i] != NULL && faulty.queue_pairs[i] != before[i]) {
            break_queue_pair(faulty.queue_pairs[i]);
            broken++;
        }
    }
    assert_int_equal(broken, 2); /* one at each end */
    status = cci_send(second.ac, "gone", 4, as_context(6), 0);
    if (status == CCI_SUCCESS) {
        cci_event_t *event = await(a, CCI_EVENT_SEND);
        status = event->send.status;
        drop(event);
    }
    if (status == CCI_SUCCESS) {
        drop(await(b, CCI_EVENT_RECV)); /* mended */
        both_ways(second);
    } else {
        assert_true(is_lost((cci_status_t)status));
    }
    for (i = 0; i < 10; i++) {
        both_ways(first);
    }
    assert_int_equal(cci_disconnect(second.ac), CCI_SUCCESS);
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
    both_ways(first);
    assert_int_equal(count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED), 0);
}

/* The driver tells of a queue that has failed, of which nothing has come for a while. */
static void inject_for_queue(void) {
    assert_non_null(faulty.deaf);
    inject(IBV_EVENT_CQ_ERR, (struct ibv_qp *)(void *)faulty.deaf); /* all members of the union begin there */
}

TEST(broken_queue, WITH_RC, "a completion queue that fails costs no connection, if no message was lost with it, and nothing comes twice") {
    enum { CONNECTIONS = 3, MESSAGES = 10, RMA_SIZE = 50000 };
    static uint8_t from[RMA_SIZE], to[RMA_SIZE];
    pair_t pairs[CONNECTIONS];
    cci_rma_handle_t *here, *there;
    side_t *a, *b;
    uint32_t i, n;
    (void)state;
    insert_faults();
    a = side_on("zero");
    b = side_on("one");
    for (i = 0; i < CONNECTIONS; i++) {
        pairs[i] = connect_sides(a, b, CCI_CONN_ATTR_RO);
        both_ways(pairs[i]);
    }
    assert_int_equal(cci_rma_register(a->ep, from, RMA_SIZE, 0, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, to, RMA_SIZE, CCI_FLAG_WRITE, &there), CCI_SUCCESS);
    fill(from, RMA_SIZE, 4);
    faulty.deaf = faulty.cq;
    for (i = 0; i < MESSAGES; i++) {
        send_patiently(pairs[0].ac, &i, sizeof i, 1, 0);
    }
    assert_int_equal(cci_rma(pairs[1].ac, "done", 4, here, 0, there, 0, RMA_SIZE, as_context(1), CCI_FLAG_WRITE), CCI_SUCCESS);
    AWAIT(count_of(b, CCI_EVENT_RECV) == MESSAGES + 1);
    memset(to, 0, sizeof to); /* it has been told, and may use its memory */
    assert_true(faulty.vanished > 0);
    assert_int_equal(count_of(a, CCI_EVENT_SEND), 0);
    inject_for_queue();
    AWAIT(count_of(a, CCI_EVENT_SEND) == MESSAGES + 1);
    elapse(300 * MILLISECOND_NS);
    assert_int_equal(count_of(b, CCI_EVENT_RECV), MESSAGES + 1);
    assert_true(to[0] == 0 && memcmp(to, to + 1, RMA_SIZE - 1) == 0);
    for (n = 0; n <= MESSAGES; n++) {
        cci_event_t *event = take(a, CCI_EVENT_SEND);
        assert_int_equal(event->send.status, CCI_SUCCESS);
        drop(event);
        event = take(b, CCI_EVENT_RECV);
        if (event->recv.connection == pairs[0].bc) {
            uint32_t number;
            memcpy(&number, event->recv.ptr, sizeof number);
            assert_true(number == n || number + 1 == n);
        }
        drop(event);
    }
    for (i = 0; i < CONNECTIONS; i++) {
        both_ways(pairs[i]);
    }
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
    assert_int_equal(count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED), 0);
}

TEST(lost_with_queue, WITH_RC, "messages that are lost with a completion queue end their connection on both sides, and no other") {
    pair_t first, second;
    side_t *a, *b;
    uint32_t i;
    (void)state;
    insert_faults();
    a = side_on("zero");
    b = side_on("one");
    first = connect_sides(a, b, CCI_CONN_ATTR_RO);
    second = connect_sides(a, b, CCI_CONN_ATTR_RO);
    both_ways(first);
    both_ways(second);
    faulty.deaf = faulty.cq;
    for (i = 0; i < 5; i++) {
        send_patiently(first.bc, &i, sizeof i, 1, 0);
        await_send(b, first.bc, as_context(1), CCI_SUCCESS); /* the hardware has them */
    }
    AWAIT(faulty.vanished >= 5);
    inject_for_queue();
    AWAIT(cci_send(first.ac, "?", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    AWAIT(cci_send(first.bc, "?", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    assert_int_equal(count_of(a, CCI_EVENT_RECV), 0);
    both_ways(second);
    assert_int_equal(cci_disconnect(first.ac), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(first.bc), CCI_SUCCESS);
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
    assert_int_equal(count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED), 0);
}

TEST(keepalive_mends, WITH_RC, "keepalive has a queue pair made anew that failed while nothing was sent; the program gets no event") {
    pair_t pair;
    size_t i;
    (void)state;
    insert_faults();
    pair = connect_sides(side_on("zero"), side_on("one"), CCI_CONN_ATTR_RO);
    both_ways(pair);
    for (i = 0; i < 64; i++) {
        struct ibv_qp *qp = faulty.queue_pairs[i];
        if (qp != NULL && qp->qp_type == IBV_QPT_RC && is_on(qp->context, "rxe0")) {
            break_queue_pair(qp);
        }
    }
    set_number(pair.ac, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 1000000);
    elapse(3500 * MILLISECOND_NS);
    assert_int_equal(pair.a->count, 0);
    both_ways(pair);
}

TEST(broken_datagrams, WITH_RDMA, "when the queue pair for datagrams fails, the endpoint mends it or tells that it has failed") {
    side_t *a;
    pair_t pair;
    size_t i;
    patience_t patience;
    (void)state;
    insert_faults();
    a = side_on("zero");
    pair = connect_sides(a, side_on("one"), CCI_CONN_ATTR_RU);
    both_ways(pair);
    for (i = 0; i < 64; i++) {
        if (faulty.queue_pairs[i] != NULL && faulty.queue_pairs[i]->qp_type == IBV_QPT_UD &&
            is_on(faulty.queue_pairs[i]->context, "rxe0")) {
            break_queue_pair(faulty.queue_pairs[i]);
            inject(IBV_EVENT_QP_FATAL, faulty.queue_pairs[i]);
        }
    }
    patience = be_patient();
    if (count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED) == 0) {
        cci_event_t *event;
        cci_connection_t *found = NULL;
        side_t *c = side_on("one");
        assert_int_equal(cci_connect(c->ep, a->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        while (found == NULL && count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED) == 0) {
            poll_all();
            if ((event = take(a, CCI_EVENT_CONNECT_REQUEST)) != NULL) {
                assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
                drop(event);
            }
            if ((event = take(c, CCI_EVENT_CONNECT)) != NULL) {
                assert_int_equal(event->connect.status, CCI_SUCCESS);
                found = event->connect.connection;
                drop(event);
            }
            still_patient(&patience, "an endpoint that is whole again, or says that it is not");
        }
        if (count_of(a, CCI_EVENT_ENDPOINT_DEVICE_FAILED) == 0) {
            both_ways(pair);
        }
    }
}

/* ---- devices that are taken away --------------------------------------------------------------------------------- */

TEST(removed, WITH_ALL, "a device that is removed fails its endpoints and is not up; it can be used when it is there again") {
    side_t *side = side_on("two");
    pair_t other = connect_sides(side_on("zero"), side_on("one"), CCI_CONN_ATTR_RO);
    cci_endpoint_t *none = NULL;
    (void)state;
    /* rxe goes with its interface, but waits until nobody has it open any more. */
    must("ip link del w0 &");
    await_failure(side);
    assert_int_equal(cci_create_endpoint(device_named("two"), 0, &none, NULL), CCI_ENODEV);
    both_ways(other);
    assert_int_equal(cci_destroy_endpoint(side->ep), CCI_SUCCESS);
    side->ep = NULL;
    AWAIT(command("rdma link show rxe2/1 >/dev/null 2>&1") != 0);
    assert_false(is_up("two"));
    both_ways(other);
    mend_wire();
    AWAIT(is_up("two"));
    use_between("two", "two");
    both_ways(other);
}

/* ---- pressure ---------------------------------------------------------------------------------------------------- */

TEST(pressure, WITH_ALL, "completions of many connections with full windows, and of programs that look away, are not lost") {
    enum { CONNECTIONS = 24, EACH = 40 };
    side_t *a = side_on("zero"), *b = side_on("one");
    pair_t pairs[CONNECTIONS];
    int i, n, round, sent = 0;
    size_t got = 0, done = 0;
    (void)state;
    for (i = 0; i < CONNECTIONS; i++) {
        pairs[i] = connect_sides(a, b, i % 4 == 0 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO);
    }
    for (round = 0; round < 2; round++) {
        for (n = 0; n < EACH; n++) {
            for (i = 0; i < CONNECTIONS; i++) {
                /* Nobody takes events in between: what has no room is refused, and is not sent. */
                sent += cci_send(pairs[i].ac, &n, sizeof n, as_context(1), 0) == CCI_SUCCESS;
            }
        }
        assert_true(sent > 100);
        usleep(200000); /* the hardware goes on without the program */
        AWAIT(count_of(a, CCI_EVENT_SEND) + done == (size_t)sent && count_of(b, CCI_EVENT_RECV) + got == (size_t)sent);
        while (done < (size_t)sent) {
            cci_event_t *event = take(a, CCI_EVENT_SEND);
            assert_int_equal(event->send.status, CCI_SUCCESS);
            drop(event);
            done++;
        }
        for (; got < (size_t)sent; got++) {
            drop(take(b, CCI_EVENT_RECV));
        }
    }
    assert_int_equal(a->count + b->count, 0);
}

static size_t taken;

static int take_message(side_t *side, cci_event_t *event) {
    (void)side;
    if (event->type != CCI_EVENT_RECV) {
        return 0;
    }
    taken++;
    drop(event);
    return 1;
}

/* What has no room waits, on its own connection, until any of the endpoint's operations has completed. */
TEST(short_queues, WITH_RC, "a device whose completion queues are short is never given more than they take, and all gets on") {
    enum { CONNECTIONS = 24, RMAS = 10, MESSAGES = 10, RMA_SIZE = 2000 };
    static uint8_t from[RMA_SIZE], to[RMA_SIZE];
    side_t *a, *b;
    pair_t pairs[CONNECTIONS];
    cci_rma_handle_t *here, *there;
    int i, n;
    (void)state;
    insert_faults();
    faulty.most_completions = 31; /* that is what the driver takes, too: it rounds up to 32 and needs one */
    a = side_on("zero");
    b = side_on("one");
    b->handler = take_message;
    taken = 0;
    for (i = 0; i < CONNECTIONS; i++) {
        pairs[i] = connect_sides(a, b, CCI_CONN_ATTR_RO);
    }
    assert_int_equal(cci_rma_register(a->ep, from, RMA_SIZE, 0, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, to, RMA_SIZE, CCI_FLAG_WRITE, &there), CCI_SUCCESS);
    fill(from, RMA_SIZE, 4);
    for (n = 0; n < RMAS + MESSAGES; n++) { /* RMAs first: for messages the hardware has to wait for the other program */
        for (i = 0; i < CONNECTIONS; i++) {
            int status = n < RMAS ? cci_rma(pairs[i].ac, NULL, 0, here, 0, there, 0, RMA_SIZE, as_context(2), CCI_FLAG_WRITE)
                                  : cci_send(pairs[i].ac, &n, sizeof n, as_context(1), 0);
            assert_int_equal(status, CCI_SUCCESS);
        }
    }
    usleep(200000); /* the hardware goes on without the program */
    AWAIT(count_of(a, CCI_EVENT_SEND) == CONNECTIONS * (RMAS + MESSAGES) && taken == CONNECTIONS * MESSAGES);
    for (n = 0; n < CONNECTIONS * (RMAS + MESSAGES); n++) {
        cci_event_t *event = take(a, CCI_EVENT_SEND);
        assert_int_equal(event->send.status, CCI_SUCCESS);
        drop(event);
    }
    assert_true(holds_pattern(to, RMA_SIZE, 4));
    b->handler = NULL;
    for (i = 0; i < CONNECTIONS; i++) {
        both_ways(pairs[i]);
    }
    assert_int_equal(faulty.overruns, 0);
    assert_null(strstr(log_text, "stands still")); /* a connection that waits for its turn has not failed */
}

/* Buffers that the hardware has can't be taken back: the count holds when they have been used. */
TEST(fewer_buffers, WITH_RC, "a RECV_BUF_COUNT that is lowered holds when the buffers of the hardware have been used; it can be raised again") {
    enum { FEW = 8, MANY = 600 };
    side_t *a = side_on("zero"), *b = side_on("one");
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    uintptr_t i;
    (void)state;
    set_number(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, FEW);
    b->handler = take_message;
    taken = 0;
    for (i = 0; i < MANY; i++) {
        send_patiently(pair.ac, "used", 4, 0, CCI_FLAG_SILENT);
    }
    AWAIT(taken == MANY);
    b->deaf = 1;
    for (i = 0; i < FEW; i++) {
        send_patiently(pair.ac, "room", 4, i, 0);
        await_send(a, pair.ac, as_context(i), CCI_SUCCESS);
    }
    send_patiently(pair.ac, "no room", 7, FEW, 0);
    elapse(200 * MILLISECOND_NS);
    assert_int_equal(a->count, 0);
    set_number(b->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, FEW + 1);
    await_send(a, pair.ac, as_context(FEW), CCI_SUCCESS);
    b->deaf = 0;
    AWAIT(taken == MANY + FEW + 1);
}

/* ---- what stays behind ------------------------------------------------------------------------------------------- */

/* What the kernel has for all processes: queue pairs, regions and so on, as text. */
static void read_resources(char *text, size_t size) {
    FILE *from = popen("rdma res show", "r");
    size_t got;
    assert_non_null(from);
    got = fread(text, 1, size - 1, from);
    text[got] = '\0';
    pclose(from);
    assert_true(got > 0);
}

/* One life of an endpoint: connections of all kinds that are used, refused, given up; RMA; an end without farewell. */
static void live(int disconnects) {
    static uint8_t memory[5000];
    side_t *a = side_on("zero"), *b = side_on("one");
    pair_t pair = connect_sides(a, b, CCI_CONN_ATTR_RO);
    struct timeval timeout = {0, 300000};
    cci_rma_handle_t *here, *there;
    cci_event_t *event;
    both_ways(pair);
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RU));
    (void)connect_sides(b, a, CCI_CONN_ATTR_UU);
    assert_int_equal(cci_rma_register(a->ep, memory, 2000, CCI_FLAG_READ | CCI_FLAG_WRITE, &here), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(b->ep, memory + 2000, 2000, CCI_FLAG_READ | CCI_FLAG_WRITE, &there), CCI_SUCCESS);
    assert_int_equal(cci_rma(pair.ac, NULL, 0, here, 0, there, 0, 2000, as_context(8), CCI_FLAG_WRITE), CCI_SUCCESS);
    await_send(a, pair.ac, as_context(8), CCI_SUCCESS);
    if (disconnects) {
        assert_int_equal(cci_rma_deregister(a->ep, here), CCI_SUCCESS);
    }
    assert_int_equal(cci_connect(a->ep, b->uri, "no", 2, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(cci_reject(event), CCI_SUCCESS);
    drop(event);
    event = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ECONNREFUSED);
    drop(event);
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), CCI_SUCCESS);
    event = await(a, CCI_EVENT_CONNECT); /* nobody answers the request */
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    drop(event);
    if (disconnects) {
        assert_int_equal(cci_disconnect(pair.ac), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(pair.bc), CCI_SUCCESS);
    }
    while ((event = take(b, CCI_EVENT_CONNECT_REQUEST)) != NULL) {
        (void)cci_reject(event);
        drop(event);
    }
    side_close(a);
    side_close(b);
    side_count = 0;
}

TEST(leaves_nothing, WITH_RDMA, "endpoints that are gone leave no queue pair, region or other resource behind") {
    char before[2000], after[2000];
    int i;
    (void)state;
    live(1);
    read_resources(before, sizeof before);
    for (i = 0; i < 6; i++) {
        live(i % 2);
    }
    read_resources(after, sizeof after);
    assert_string_equal(before, after);
}

TEST(keeps_nothing, WITH_RDMA, "an endpoint that lives keeps no resource of connections that are gone, nor of dead peers") {
    char before[2000], after[2000], uri[200];
    side_t *a = side_on("zero"), *b = side_on("one");
    cci_rma_handle_t *handle;
    static uint8_t memory[3000];
    int i;
    patience_t patience;
    (void)state;
    both_ways(connect_sides(a, b, CCI_CONN_ATTR_RO));
    read_resources(before, sizeof before);
    for (i = 0; i < 10; i++) {
        pair_t pair = connect_sides(a, b, i % 2 == 0 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
        both_ways(pair);
        assert_int_equal(cci_rma_register(a->ep, memory, sizeof memory, CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
        assert_int_equal(cci_rma_deregister(a->ep, handle), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(i % 3 == 0 ? pair.bc : pair.ac), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(i % 3 == 0 ? pair.ac : pair.bc), CCI_SUCCESS);
    }
    for (i = 0; i < 2; i++) {
        far_end_t far_end;
        cci_event_t *event;
        start_peer(uri, sizeof uri);
        far_end = connect_to_peer(a, uri);
        stop_peer();
        set_number(far_end.connection, CCI_OPT_CONN_SEND_TIMEOUT, 1000000);
        send_patiently(far_end.connection, "lost", 4, 4, 0);
        event = await(a, CCI_EVENT_SEND);
        assert_true(is_lost(event->send.status));
        drop(event);
        assert_int_equal(cci_disconnect(far_end.connection), CCI_SUCCESS);
    }
    /* Farewells take their time. */
    for (patience = be_patient();;) {
        read_resources(after, sizeof after);
        if (strcmp(before, after) == 0) {
            break;
        }
        elapse(100 * MILLISECOND_NS);
        if (real_now_ns() > patience.real_end_ns) {
            assert_string_equal(before, after);
        }
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void prepare(void) {
    remove_faults();
    mend_wire();
}

static void configure(const char *name, const char *device, const char *interface_name) {
    size_t used = strlen(config_text);
    if (is_rdma()) {
        snprintf(config_text + used, sizeof config_text - used, "[%s]\ntransport=verbs\ndevice=%s\nmode=%s\n", name, device,
                 mode);
    } else {
        snprintf(config_text + used, sizeof config_text - used, "[%s]\ntransport=udp\ninterface=%s\n", name,
                 interface_name);
    }
}

int main(int argc, char **argv) {
    if (argc < 2 || (strcmp(argv[1], "rc") != 0 && strcmp(argv[1], "ud") != 0 && strcmp(argv[1], "udp") != 0)) {
        fprintf(stderr, "usage: verbs rc|ud|udp [PART]\n");
        return 2;
    }
    mode = argv[1];
    patience_s = 120;
    configure("zero", "rxe0", "v0");
    configure("one", "rxe1", "v1");
    configure("two", "rxe2", "w0");
    if (argc > 2 && strcmp(argv[2], "--peer") == 0) {
        return serve();
    }
    worsen_network = prepare;
    before_end = stop_peer;
    return run_listed_tests(mode, (is_rdma() ? ON_VERBS : ON_UDP) | (strcmp(mode, "rc") == 0 ? WITH_RC : 0),
                            argc > 2 ? argv[2] : NULL);
}
