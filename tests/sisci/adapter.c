/* adapter.c - CCI over the library of an adapter, which sisci_adapter.c stands for: adapter LIBRARY [PART]
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The conformance suite runs over the same library (conformance sisci-vendor). Here is what an adapter does and shared
 * memory does not: ways that close and open, stores that are lost, calls that cost.
 */
#define _GNU_SOURCE 1
#define CCI_SISCI_ADAPTER
#define CCI_IMPLEMENTATION
#include "cci_sisci.h"

#include "cci.h"

#include "tests/support/harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static const char *library;
static unsigned int (*calls_of)(const char *name);
static void (*close_way)(int tells), (*open_way)(int tells);

static void configure(void) {
    snprintf(config_text, sizeof config_text, "[dolphin]\ntransport = sisci\nlibrary = %s\nadapter = 1\n", library);
}

static void restart_with(const char *text) {
    uint32_t caps;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    snprintf(config_text, sizeof config_text, "%s", text);
    assert_int_equal(cci_setup(&test_setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
}

static const cci_device_t *only_device(void) {
    cci_device_t *const *devices;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_non_null(devices[0]);
    assert_null(devices[1]);
    return devices[0];
}

/* The next message has this length and pattern. */
static void expect_message(side_t *side, size_t length, uint64_t seed) {
    cci_event_t *event = await(side, CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, length);
    assert_true(holds_pattern(event->recv.ptr, length, seed));
    drop(event);
}

static size_t length_of(uint32_t i) {
    return i % 3 == 0 ? 40 : i % 3 == 1 ? 480 : 8000; /* in one line, in several, in a block */
}

static void send_numbered(const pair_t *pair, uint32_t i) {
    static uint8_t bytes[8192];
    fill(bytes, length_of(i), i);
    send_patiently(pair->ac, bytes, (uint32_t)length_of(i), i, 0);
}

/* ---- the device ---------------------------------------------------------------------------------------------------- */

TEST(uri, ON_SISCI, "the URI has the node's number, and so have those whom it connects to") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    (void)state;
    assert_memory_equal(pair.a->uri, "sisci://12:", 11);
    assert_int_equal(only_device()->up, 1);
    assert_int_equal(cci_connect(pair.a->ep, "sisci://0:5", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL),
                     CCI_EADDRNOTAVAIL);
}

TEST(no_node, ON_SISCI, "a node that is not there ends a connect when its time is over") {
    struct timeval soon = {0, 50000};
    side_t *a = side_open();
    cci_event_t *event;
    (void)state;
    assert_int_equal(cci_connect(a->ep, "sisci://44:5", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    event = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    drop(event);
}

TEST(down, ON_SISCI, "a device whose adapter or library is missing is down, and the log says why") {
    char text[1024];
    cci_endpoint_t *ep;
    (void)state;
    snprintf(text, sizeof text, "[d]\ntransport = sisci\nlibrary = %s\nadapter = 3\n", library);
    restart_with(text);
    assert_int_equal(only_device()->up, 0);
    assert_non_null(strstr(log_text, "it has no such adapter"));
    assert_int_not_equal(cci_create_endpoint((cci_device_t *)(uintptr_t)only_device(), 0, &ep, NULL), CCI_SUCCESS);
    restart_with("[d]\ntransport = sisci\nprovider = vendor\n");
    assert_int_equal(only_device()->up, 0);
    assert_non_null(strstr(log_text, "this process has opened another library of an adapter"));
}

TEST(keys, ON_SISCI, "the software has no library and no other adapter") {
    static const char *const wrong[] = {"provider = software\nlibrary = x\n", "adapter = 1\n", "provider = both\n",
                                        "provider = vendor\nadapter = x\n", "library =\n"};
    char text[256];
    uint32_t caps;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        while (cci_finalize() == CCI_SUCCESS) {
        }
        snprintf(text, sizeof text, "[d]\ntransport = sisci\n%s", wrong[i]);
        test_setup.config = text;
        assert_int_equal(cci_setup(&test_setup), CCI_SUCCESS);
        assert_int_not_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    }
}

TEST(closed, ON_SISCI, "each device that was opened is closed") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RU);
    unsigned int opened;
    (void)state;
    send_numbered(&pair, 2);
    expect_message(pair.b, length_of(2), 2);
    side_close(pair.b);
    side_close(pair.a);
    side_count = 0;
    opened = calls_of("SCICreateInterrupt");
    side_close(side_open()); /* closes what the others had to leave */
    side_count = 0;
    assert_int_equal(calls_of("SCICreateInterrupt"), opened + 1);
    /* A call that finds an object in use is made again. */
    assert_true(calls_of("SCIClose") >= calls_of("SCIOpen"));
    assert_true(calls_of("SCIRemoveSegment") >= calls_of("SCICreateSegment"));
    assert_int_equal(calls_of("SCIRemoveSequence"), calls_of("SCICreateMapSequence"));
    assert_null(cci__sisci_left_ports);
}

/* ---- what a message costs --------------------------------------------------------------------------------------------- */

TEST(flushes, ON_SISCI, "a message is stored, flushed, told, flushed; nothing else is called") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    /* A library may lack SCIFlush. */
    const char *flush = calls_of("SCIFlush") ? "SCIFlush" : "SCIStoreBarrier";
    unsigned int flushes, checks, interrupts, i;
    (void)state;
    pair.b->deaf = 1;
    elapse(5 * MILLISECOND_NS);
    flushes = calls_of(flush);
    checks = calls_of("SCICheckSequence");
    interrupts = calls_of("SCITriggerInterrupt");
    for (i = 0; i < 100; i++) {
        send_numbered(&pair, i);
    }
    assert_int_equal(calls_of(flush) - flushes, 200);
    assert_int_equal(calls_of("SCICheckSequence"), checks);
    assert_int_equal(calls_of("SCITriggerInterrupt"), interrupts);
    pair.b->deaf = 0;
    for (i = 0; i < 100; i++) {
        expect_message(pair.b, length_of(i), i);
    }
}

/* A server in a thread of its own, which reads while stores arrive. */
typedef struct reader {
    side_t *side;
    pthread_t thread;
    uint32_t got, wrong, stop;
} reader_t;

static void *read_messages(void *argument) {
    reader_t *r = (reader_t *)argument;
    while (!CCI__SCI_LOAD(r->stop)) {
        cci_event_t *event;
        if (cci_get_event(r->side->ep, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_RECV) {
            r->wrong += event->recv.len != length_of(r->got) || !holds_pattern(event->recv.ptr, event->recv.len, r->got);
            CCI__SCI_STORE(r->got, r->got + 1);
        }
        (void)cci_return_event(event);
    }
    return NULL;
}

TEST(order, ON_SISCI, "who reads while a message arrives gets all of it") {
    enum { COUNT = 600 };
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    patience_t patience = be_patient();
    reader_t reader;
    uint32_t i;
    (void)state;
    memset(&reader, 0, sizeof reader);
    reader.side = pair.b;
    pair.b->deaf = 1;
    assert_int_equal(pthread_create(&reader.thread, NULL, read_messages, &reader), 0);
    for (i = 0; i < COUNT; i++) {
        send_numbered(&pair, i);
        while (CCI__SCI_LOAD(reader.got) + 4 < i) { /* it waits for each, nearly */
            (void)poll_side(pair.a);
            still_patient(&patience, "a reader");
        }
    }
    while (CCI__SCI_LOAD(reader.got) < COUNT) {
        (void)poll_side(pair.a);
        still_patient(&patience, "a reader");
    }
    CCI__SCI_STORE(reader.stop, 1);
    assert_int_equal(pthread_join(reader.thread, NULL), 0);
    assert_int_equal(reader.wrong, 0);
}

/* ---- ways that close ------------------------------------------------------------------------------------------------------ */

/* Everything comes once and whole, however often stores are lost. */
static void lose_stores(cci_conn_attribute_t attribute, int tells) {
    pair_t pair = open_pair(attribute);
    uint32_t i, sent = 0, got = 0;
    for (i = 0; i < 8; i++) {
        uint32_t more = 5 + i;
        close_way(tells);
        for (; more > 0; more--) {
            send_numbered(&pair, sent++);
        }
        elapse(4 * MILLISECOND_NS);
        assert_int_equal(count_of(pair.b, CCI_EVENT_RECV), 0);
        open_way(tells);
        for (; got < sent; got++) {
            expect_message(pair.b, length_of(got), got);
        }
        AWAIT(count_of(pair.a, CCI_EVENT_SEND) == sent);
    }
    elapse(5 * MILLISECOND_NS);
    assert_int_equal(count_of(pair.b, CCI_EVENT_RECV), 0);
    assert_int_equal(count_of(pair.a, CCI_EVENT_SEND), sent);
    while (sent-- > 0) {
        cci_event_t *event = take(pair.a, CCI_EVENT_SEND);
        assert_int_equal(event->send.status, CCI_SUCCESS);
        drop(event);
    }
}

TEST(pause, ON_SISCI, "NOT_OPERATIONAL is a pause: what was stored meanwhile arrives once, when it is over") {
    (void)state;
    lose_stores(CCI_CONN_ATTR_RO, 1);
}

TEST(loss, ON_SISCI, "stores that are lost without a word are found by SCICheckSequence and made again") {
    (void)state;
    lose_stores(CCI_CONN_ATTR_RU, 0);
}

TEST(pause_status, ON_SISCI,
     "[SISCI, SCI_CB_NOT_OPERATIONAL and SCI_CB_OPERATIONAL] CCI_EVENT_STATUS tells who asks that a path is suspended, and resumed") {
    static const cci_status_what_t whats[] = {CCI_STATUS_PATH_SUSPENDED, CCI_STATUS_PATH_RESUMED};
    pair_t pair = open_pair(CCI_CONN_ATTR_RO), second = connect_sides(pair.a, pair.b, CCI_CONN_ATTR_RU);
    const uint32_t mask = 1u << CCI_EVENT_STATUS;
    uint32_t i, n;
    (void)state;
    assert_int_equal(cci_set_opt(pair.a->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    for (i = 0; i < 4; i++) {
        uint32_t seen = 0;
        if (i % 2 == 0) {
            close_way(1);
        } else {
            open_way(1);
        }
        for (n = 0; n < 2; n++) {
            cci_event_t *event = await(pair.a, CCI_EVENT_STATUS);
            assert_int_equal(event->status.what, whats[i % 2]);
            assert_int_equal(event->status.value, 0);
            assert_true(event->status.connection == pair.ac || event->status.connection == second.ac);
            seen |= event->status.connection == pair.ac ? 1 : 2;
            drop(event);
        }
        assert_int_equal(seen, 3); /* each connection once */
    }
    elapse(5 * MILLISECOND_NS);
    assert_int_equal(count_of(pair.a, CCI_EVENT_STATUS) + count_of(pair.b, CCI_EVENT_STATUS), 0);
}

TEST(pause_rma, ON_SISCI, "an RMA goes on when the way is open again") {
    enum { LENGTH = 1 << 20 };
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    uint8_t *from = (uint8_t *)need(LENGTH), *to = (uint8_t *)need(LENGTH), *back = (uint8_t *)need(LENGTH);
    cci_rma_handle_t *local, *remote, *third;
    int i;
    (void)state;
    fill(from, LENGTH, 9);
    assert_int_equal(cci_rma_register(pair.a->ep, from, LENGTH, CCI_FLAG_READ, &local), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(pair.a->ep, back, LENGTH, CCI_FLAG_READ, &third), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(pair.b->ep, to, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE, &remote), CCI_SUCCESS);
    assert_int_equal(cci_rma(pair.ac, "done", 4, local, 0, remote, 0, LENGTH, as_context(1), CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    assert_int_equal(cci_rma(pair.ac, NULL, 0, third, 0, remote, 0, LENGTH, as_context(2),
                             CCI_FLAG_READ | CCI_FLAG_FENCE), CCI_SUCCESS);
    for (i = 0; i < 20; i++) {
        close_way(i & 1);
        poll_all();
        open_way(i & 1);
        elapse(MILLISECOND_NS);
    }
    drop(await(pair.b, CCI_EVENT_RECV));
    await_send(pair.a, pair.ac, as_context(1), CCI_SUCCESS);
    await_send(pair.a, pair.ac, as_context(2), CCI_SUCCESS);
    assert_memory_equal(to, from, LENGTH);
    assert_memory_equal(back, from, LENGTH);
    assert_int_equal(cci_rma_deregister(pair.a->ep, local), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(pair.a->ep, third), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(pair.b->ep, remote), CCI_SUCCESS);
    free(from);
    free(to);
    free(back);
}

TEST(pause_timeout, ON_SISCI, "a way that stays closed ends what has no more time") {
    pair_t pair = open_pair(CCI_CONN_ATTR_RO);
    uint32_t timeout_us = 30000;
    cci_event_t *event;
    (void)state;
    assert_int_equal(cci_set_opt(pair.ac, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    close_way(1);
    send_numbered(&pair, 3);
    await_send(pair.a, pair.ac, as_context(3), CCI_ETIMEDOUT);
    open_way(1);
    elapse(5 * MILLISECOND_NS);
    event = take(pair.b, CCI_EVENT_RECV); /* it was withdrawn */
    assert_null(event);
}

/* ---- sleeping ------------------------------------------------------------------------------------------------------------- */

static int sleep_until_readable(int fd, int timeout_ms) {
    struct pollfd item = {0, POLLIN, 0};
    item.fd = fd;
    return poll(&item, 1, timeout_ms) == 1;
}

/* A pair whose server sleeps. */
static pair_t open_sleeping_pair(cci_os_handle_t *fd) {
    side_t *b = &sides[0];
    side_count = 1;
    assert_int_equal(cci_create_endpoint(NULL, 0, &b->ep, fd), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(b->ep, CCI_OPT_ENDPT_URI, &b->uri), CCI_SUCCESS);
    return connect_sides(side_open(), b, CCI_CONN_ATTR_RO);
}

/* Until there is nothing that wakes it up. */
static void let_sleep(const pair_t *pair, cci_os_handle_t fd) {
    do {
        (void)poll_side(pair->a);
        (void)poll_side(pair->b);
    } while (sleep_until_readable(fd, 20));
}

TEST(lost_sleeper, ON_SISCI, "a sleeper whose stores were lost wakes up to make them again") {
    cci_os_handle_t fd = -1;
    pair_t pair = open_sleeping_pair(&fd);
    patience_t patience = be_patient();
    unsigned int started;
    (void)state;
    let_sleep(&pair, fd);
    send_numbered(&pair, 1);
    close_way(0);
    (void)poll_side(pair.b); /* its acknowledgement is lost */
    open_way(0);
    expect_message(pair.b, length_of(1), 1);
    started = calls_of("SCIStartSequence");
    while (calls_of("SCIStartSequence") == started) { /* the sender does nothing that could wake it */
        if (sleep_until_readable(fd, 1)) {
            (void)poll_side(pair.b);
        }
        still_patient(&patience, "a way that is open again");
    }
    await_send(pair.a, pair.ac, as_context(1), CCI_SUCCESS);
}

TEST(sleeper, ON_SISCI, "who sleeps on the OS handle is woken by an interrupt, also after a pause") {
    cci_os_handle_t fd = -1;
    pair_t pair = open_sleeping_pair(&fd);
    side_t *a = pair.a, *b = pair.b;
    patience_t patience = be_patient();
    uint32_t i;
    (void)state;
    for (i = 0; i < 40; i++) {
        int is_paused = i % 4 == 3;
        unsigned int interrupts;
        let_sleep(&pair, fd);
        interrupts = calls_of("SCITriggerInterrupt");
        if (is_paused) {
            close_way(i & 4);
        }
        send_numbered(&pair, i);
        if (is_paused) {
            open_way(i & 4);
        }
        assert_true(is_paused || calls_of("SCITriggerInterrupt") == interrupts + 1);
        while (count_of(b, CCI_EVENT_RECV) == 0) {
            if (is_paused) { /* the sender must look at its clock to find out */
                (void)poll_side(a);
            }
            if (sleep_until_readable(fd, is_paused ? 1 : 20000)) {
                (void)poll_side(b);
            } else {
                assert_true(is_paused);
                still_patient(&patience, "an interrupt");
            }
        }
        expect_message(b, length_of(i), i);
        await_send(a, pair.ac, as_context(i), CCI_SUCCESS);
    }
}

/* ---- peers that die --------------------------------------------------------------------------------------------------------- */

/* A server in a process of its own: tells its URI, accepts and reads until it is killed. */
static void serve_until_killed(int out) {
    uint32_t caps;
    side_t *side;
    char uri[64];
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) { /* the parent's library is dead here */
        _exit(1);
    }
    side = side_open();
    memset(uri, 0, sizeof uri);
    snprintf(uri, sizeof uri, "%s", side->uri);
    if (write(out, uri, sizeof uri) != (ssize_t)sizeof uri) {
        _exit(1);
    }
    for (;;) {
        cci_event_t *event;
        if (cci_get_event(side->ep, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            (void)cci_accept(event, NULL);
        }
        (void)cci_return_event(event);
    }
}

static void kill_server(void) {
    char uri[64];
    pid_t pid;
    int ends[2], sent = 0;
    side_t *a;
    cci_connection_t *connection;
    cci_event_t *event;
    patience_t patience = be_patient();
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        serve_until_killed(ends[1]);
        _exit(0);
    }
    close(ends[1]); /* so that the end of a server that failed is seen */
    assert_int_equal(read(ends[0], uri, sizeof uri), sizeof uri);
    close(ends[0]);
    a = side_open();
    assert_int_equal(cci_connect(a->ep, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    drop(event);
    assert_int_equal(cci_send(connection, "here", 4, as_context(1), 0), CCI_SUCCESS);
    await_send(a, connection, as_context(1), CCI_SUCCESS);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    /* What is sent now is lost, and each operation is told so; then the connection is known to be broken. */
    for (;;) {
        int status = cci_send(connection, "gone", 4, as_context(2), 0);
        if (status == CCI_ERR_DISCONNECTED) {
            break;
        }
        assert_true(status == CCI_SUCCESS || status == CCI_ENOBUFS);
        sent += status == CCI_SUCCESS;
        poll_all();
        still_patient(&patience, "the loss of the peer");
    }
    for (; sent > 0; sent--) {
        await_send(a, connection, as_context(2), CCI_ERR_DISCONNECTED);
    }
    assert_int_equal(cci_disconnect(connection), CCI_SUCCESS);
    side_close(a);
    side_count = 0;
}

TEST(killed, ON_SISCI, "LOST is the end: the operations of who is connected to a killed process fail at once") {
    int i;
    (void)state;
    for (i = 0; i < 5; i++) {
        kill_server();
    }
    side_close(side_open()); /* the next endpoint sweeps the names that the dead have left */
    side_count = 0;
    assert_null(cci__sisci_left_ports);
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------- */

static unsigned int count_names(const char *path) {
    DIR *list = opendir(path);
    const struct dirent *entry;
    unsigned int count = 0;
    while (list && (entry = readdir(list)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (list) {
        closedir(list);
    }
    return count;
}

static int find(void *handle, const char *name, void *function) {
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

int main(int argc, char **argv) {
    char directory[] = "/dev/shm/cci-adapter-XXXXXX";
    void *handle;
    int failures;
    library = argc > 1 ? argv[1] : "";
    handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle || !find(handle, "adapter_count", &calls_of) || !find(handle, "adapter_close", &close_way) ||
        !find(handle, "adapter_open", &open_way) || !mkdtemp(directory)) {
        fprintf(stderr, "usage: adapter LIBRARY [PART]\n");
        return 2;
    }
    setenv("CCI_SISCI_DIR", directory, 1);
    worsen_network = configure;
    failures = run_listed_tests("adapter", ON_SISCI | WHEN_CLEAN, argc > 2 ? argv[2] : NULL);
    if (count_names(directory) > 0) {
        fprintf(stderr, "%u names are left behind\n", count_names(directory));
        failures++;
    }
    (void)rmdir(directory);
    return failures;
}
