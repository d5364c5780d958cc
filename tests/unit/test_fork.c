/* test_fork.c - fork() in the midst of traffic: the parent loses nothing, and from the child nothing comes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A client and a server in one process exchange numbered messages, each endpoint with a thread of its own, while the first thread
 * forks at random moments. What is sealed and what is sent is written down in memory that parent and children share: a nonce
 * that comes twice, or a datagram from a child, would be found there. Children try everything with what they inherited, then
 * begin anew.
 *
 *     test_fork [TEST [N]]     that test alone; where it forks at each step of the library, at one in N
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
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- what is written down ----------------------------------------------------------------------------------------- */

#define NONCES (1u << 22)

typedef struct record {
    uint64_t nonce[NONCES]; /* a hash table of fingerprints; 0: free */
    uint64_t sealed, repeated, sent, sent_by_child, batches;
} record_t;

static record_t *noted; /* shared by all */
static pid_t parent;
static int begun_anew; /* this child has endpoints of its own */

static void note_sending(void) {
    if (getpid() == parent) (void)__atomic_add_fetch(&noted->sent, 1, __ATOMIC_RELAXED);
    else if (!begun_anew) (void)__atomic_add_fetch(&noted->sent_by_child, 1, __ATOMIC_RELAXED);
}

static ssize_t noted_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    note_sending();
    return sendto(fd, data, length, flags, to, size);
}

static ssize_t noted_sendmsg(int fd, const struct msghdr *message, int flags) {
    note_sending();
    return sendmsg(fd, message, flags);
}

static void note_call(long number) {
    if (number != SYS_sendmmsg) return;
    note_sending();
    (void)__atomic_add_fetch(&noted->batches, 1, __ATOMIC_RELAXED);
}

#define sendto noted_sendto
#define sendmsg noted_sendmsg
#define syscall(...) (note_call(FIRST(__VA_ARGS__, 0)), syscall(__VA_ARGS__))
#define FIRST(number, ...) (long)(number)
#define CCI_IMPLEMENTATION
#include "cci_sisci.h"
#include "cci_udp.h"
#include "cci.h"
#undef sendto
#undef sendmsg
#undef syscall

/* ---- encryption that encrypts nothing, and remembers ---------------------------------------------------------------- */

#define TAG_BYTES 16

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void remember(const uint8_t *nonce) {
    uint64_t word[3], fingerprint, at;
    memcpy(word, nonce, sizeof word);
    fingerprint = mix(word[0] ^ mix(word[1] ^ mix(word[2]))) | 1;
    at = fingerprint % NONCES;
    for (;;) {
        uint64_t was = 0;
        if (__atomic_compare_exchange_n(&noted->nonce[at], &was, fingerprint, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
        if (was == fingerprint) {
            (void)__atomic_add_fetch(&noted->repeated, 1, __ATOMIC_RELAXED);
            return;
        }
        at = (at + 1) % NONCES;
    }
}

static void *give_key(void *user, cci_seal_peer_t *peer) {
    static char key;
    (void)user, (void)peer;
    return &key;
}

static int do_seal(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head, uint32_t head_length,
                   uint8_t *bytes, uint32_t length) {
    (void)user, (void)key, (void)head, (void)head_length;
    if (__atomic_add_fetch(&noted->sealed, 1, __ATOMIC_RELAXED) < NONCES / 2) remember(nonce);
    memcpy(bytes + length, nonce, TAG_BYTES);
    return 0;
}

static int do_open(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head, uint32_t head_length,
                   uint8_t *bytes, uint32_t length) {
    (void)user, (void)key, (void)head, (void)head_length;
    return memcmp(bytes + length, nonce, TAG_BYTES) != 0;
}

static const cci_seal_t seal = {TAG_BYTES, 0, NULL, give_key, NULL, do_seal, do_open};

/* ---- two endpoints that talk --------------------------------------------------------------------------------------- */

#define IN_FLIGHT 32u

static const char *transport_name;
static size_t message_bytes = sizeof(uint32_t); /* 8,000: in several packets, which leave in a batch */
static int is_sealed, log_lines;
static cci_endpoint_t *server, *client;
static cci_os_handle_t server_handle;
static cci_connection_t *connection;
static int stop, broken;
static uint32_t round_trips, sent_number, got_number;

static void keep_log(void *user, int level, const char *text) {
    (void)user, (void)text;
    if (level <= CCI_LOG_WARN) log_lines++;
}

static int begin_library(void) {
    static char config[128];
    cci_setup_t setup;
    uint32_t caps;
    memset(&setup, 0, sizeof setup);
    snprintf(config, sizeof config, "[it]\ntransport = %s\n%s%s", transport_name,
             strcmp(transport_name, "udp") == 0 ? "interface = lo\n" : "", message_bytes > 4 ? "mtu = 1472\nmax_send_size = 8000\n" : "");
    setup.config = config;
    setup.log = keep_log;
    setup.seal = is_sealed ? &seal : NULL;
    if (cci_setup(&setup) != CCI_SUCCESS) return 0;
    return cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS;
}

/* The server answers each message with the same. */
static void serve_one(cci_endpoint_t *endpoint, cci_event_t *event) {
    (void)endpoint;
    if (event->type == CCI_EVENT_CONNECT_REQUEST) (void)cci_accept(event, NULL);
    if (event->type == CCI_EVENT_RECV &&
        cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS)
        __atomic_store_n(&broken, 1, __ATOMIC_RELAXED);
    (void)cci_return_event(event);
}

static void *serve(void *argument) {
    struct pollfd sleeper;
    (void)argument;
    sleeper.fd = server_handle;
    sleeper.events = POLLIN;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        cci_event_t *event;
        if (cci_get_event(server, &event) == CCI_SUCCESS) serve_one(server, event);
        else (void)poll(&sleeper, 1, 50);
    }
    return NULL;
}

static void *ask(void *argument) {
    static uint32_t message[2000];
    (void)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        cci_event_t *event;
        while (sent_number - got_number < IN_FLIGHT) {
            message[0] = sent_number;
            if (cci_send(connection, message, (uint32_t)message_bytes, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) break;
            sent_number++;
        }
        if (cci_get_event(client, &event) != CCI_SUCCESS) {
            (void)sched_yield();
            continue;
        }
        if (event->type == CCI_EVENT_RECV) {
            if (event->recv.len != message_bytes || memcmp(event->recv.ptr, &got_number, sizeof got_number) != 0)
                __atomic_store_n(&broken, 2, __ATOMIC_RELAXED);
            got_number++;
            (void)__atomic_add_fetch(&round_trips, 1, __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(&broken, 3, __ATOMIC_RELAXED);
        }
        (void)cci_return_event(event);
    }
    return NULL;
}

/* Makes both endpoints of this process and a connection between them; 0 if that fails. */
static int connect_two(cci_os_handle_t *handle) {
    const struct timeval patience = {60, 0};
    cci_event_t *event;
    char *uri;
    int done = 0;
    if (cci_create_endpoint(NULL, 0, &server, handle) != CCI_SUCCESS) return 0;
    if (cci_create_endpoint(NULL, 0, &client, NULL) != CCI_SUCCESS) return 0;
    if (cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS) return 0;
    if (cci_connect(client, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience) != CCI_SUCCESS) return 0;
    free(uri);
    while (done < 2) {
        if (cci_get_event(server, &event) == CCI_SUCCESS) {
            done += event->type == CCI_EVENT_ACCEPT;
            serve_one(server, event);
        }
        if (cci_get_event(client, &event) == CCI_SUCCESS) {
            if (event->type != CCI_EVENT_CONNECT || event->connect.status != CCI_SUCCESS) return 0;
            connection = event->connect.connection;
            done++;
            (void)cci_return_event(event);
        }
    }
    return 1;
}

/* ---- the child ------------------------------------------------------------------------------------------------------- */

#define MUST(condition)                     \
    do {                                    \
        if (!(condition)) _exit(__LINE__ & 127); \
    } while (0)

/* Everything that it inherited says that it is dead, or does no harm. */
static void try_everything(void) {
    cci_device_t *const *devices;
    cci_rma_handle_t *handle;
    cci_endpoint_t *made;
    cci_event_t *event;
    uint32_t value = 1000;
    char *uri;
    int lines = log_lines;
    char memory[64];
    uint64_t deadline_ns;
    void *shared;
    MUST(cci_send(connection, "never", 5, NULL, 0) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_send(connection, "never", 5, NULL, CCI_FLAG_BLOCKING) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_get_event(client, &event) == CCI_ERR_DEVICE_DEAD && event == NULL);
    MUST(cci_get_event(server, &event) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_arm_os_handle(server, 0) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_next_deadline(server, &deadline_ns) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_connect(client, transport_name[0] == 'u' ? "udp://127.0.0.1:9" : "sisci://4:9", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0,
                     NULL) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_set_opt(client, CCI_OPT_ENDPT_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_get_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_rma_register(client, memory, sizeof memory, CCI_FLAG_WRITE, &handle) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_rma_alloc(client, 4096, &shared) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_disconnect(connection) == CCI_SUCCESS);
    MUST(log_lines == lines + 1);
    MUST(cci_get_devices(&devices) == CCI_ERROR);
    MUST(cci_create_endpoint(NULL, 0, &made, NULL) == CCI_ERROR);
}

/* Without other threads, which a sanitizer that watches threads does not want in a child. */
static void begin_anew(void) {
    uint32_t number = 7;
    cci_event_t *event;
    begun_anew = 1;
    MUST(begin_library());
    MUST(connect_two(NULL));
    MUST(cci_send(connection, &number, sizeof number, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    for (;;) {
        if (cci_get_event(server, &event) == CCI_SUCCESS) serve_one(server, event);
        if (cci_get_event(client, &event) == CCI_SUCCESS) break;
    }
    MUST(event->type == CCI_EVENT_RECV && memcmp(event->recv.ptr, &number, sizeof number) == 0);
    MUST(cci_finalize() == CCI_SUCCESS);
    MUST(cci_finalize() == CCI_ERROR);
}

static void be_the_child(unsigned kind) {
    cci_endpoint_t *parents = server, *others = client;
    alarm(120);
    switch (kind % 5) {
    case 0:
        try_everything();
        MUST(cci_destroy_endpoint(client) == CCI_SUCCESS && cci_destroy_endpoint(server) == CCI_SUCCESS);
        MUST(cci_destroy_endpoint(server) == CCI_EINVAL);
        MUST(cci_finalize() == CCI_SUCCESS);
        MUST(cci_finalize() == CCI_ERROR);
        begin_anew();
        break;
    case 1: /* at once */
        begin_anew();
        MUST(cci_destroy_endpoint(parents) == CCI_SUCCESS && cci_destroy_endpoint(others) == CCI_SUCCESS);
        break;
    case 2:
        MUST(cci_finalize() == CCI_SUCCESS);
        break;
    case 3: { /* a grandchild */
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            try_everything();
            begin_anew();
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == 0);
        break;
    }
    default:
        MUST(cci_destroy_endpoint(client) == CCI_SUCCESS);
        break;
    }
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------------------------------- */

static unsigned chance = 1;
static uint32_t stride = 1; /* of the steps at which it forks, one in so many */

static unsigned random_below(unsigned limit) {
    chance = chance * 1103515245u + 12345u;
    return (chance >> 8) % limit;
}

static int begin(void **state) {
    (void)state;
    noted = (record_t *)mmap(NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(noted != MAP_FAILED);
    parent = getpid();
    begun_anew = stop = broken = log_lines = 0;
    round_trips = sent_number = got_number = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {}
    (void)munmap(noted, sizeof *noted);
    return 0;
}

static void fork_once(unsigned kind) {
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) be_the_child(kind);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) fail_msg("child of kind %u ended with %x", kind % 5, (unsigned)status);
}

/* Traffic goes on all the time, and before each fork at least a little of it. */
static void fork_under_traffic(const char *transport, int sealed, unsigned forks) {
    pthread_t threads[2];
    unsigned i, spins;
    transport_name = transport;
    is_sealed = sealed;
    assert_true(begin_library());
    assert_true(connect_two(&server_handle));
    assert_int_equal(pthread_create(&threads[0], NULL, serve, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, ask, NULL), 0);
    for (i = 0; i < forks; i++) {
        uint32_t before = __atomic_load_n(&round_trips, __ATOMIC_RELAXED);
        while (__atomic_load_n(&round_trips, __ATOMIC_RELAXED) == before && !__atomic_load_n(&broken, __ATOMIC_RELAXED))
            (void)sched_yield();
        for (spins = random_below(20000); spins > 0; spins--) __atomic_signal_fence(__ATOMIC_SEQ_CST);
        fork_once(i);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    print_message("%s: %u forks during %u round trips, %u sealed, %u sent, %u batches\n", transport, forks, (unsigned)round_trips,
                  (unsigned)noted->sealed, (unsigned)noted->sent, (unsigned)noted->batches);
    assert_int_equal(broken, 0);
    assert_int_equal(log_lines, 0);
    assert_int_equal(noted->repeated, 0);
    assert_int_equal(noted->sent_by_child, 0);
    if (sealed) assert_true(noted->sealed > 0);
}

static void forks_under_traffic_over_udp(void **state) {
    (void)state;
    fork_under_traffic("udp", 0, 60);
}

static void forks_under_traffic_in_batches(void **state) {
    (void)state;
    message_bytes = 8000;
    fork_under_traffic("udp", 0, 60);
    message_bytes = sizeof(uint32_t);
    assert_true(noted->batches > 60);
}

static void forks_under_sealed_traffic_over_udp_repeat_no_nonce(void **state) {
    (void)state;
    fork_under_traffic("udp", 1, 60);
}

static void forks_under_traffic_over_sisci(void **state) {
    (void)state;
    fork_under_traffic("sisci", 0, 40);
}

/* Another thread makes and destroys endpoints all the time. */
static void *make_and_destroy(void *argument) {
    (void)argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        cci_endpoint_t *made;
        cci_os_handle_t handle;
        if (cci_create_endpoint(NULL, 0, &made, &handle) != CCI_SUCCESS || cci_destroy_endpoint(made) != CCI_SUCCESS)
            __atomic_store_n(&broken, 4, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* gcc's address and thread sanitizers do not look after all of their locks at fork(): where another thread allocates, a child may
 * hang in its first malloc(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MALLOC_SURVIVES_FORK 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MALLOC_SURVIVES_FORK 0
#endif
#endif
#ifndef MALLOC_SURVIVES_FORK
#define MALLOC_SURVIVES_FORK 1
#endif

static void forks_while_endpoints_come_and_go(void **state) {
    pthread_t thread;
    unsigned i;
    (void)state;
    if (!MALLOC_SURVIVES_FORK) {
        print_message("SKIP: a sanitizer's malloc() may hang after fork() while another thread allocates\n");
        skip();
    }
    transport_name = "udp";
    is_sealed = 0;
    assert_true(begin_library());
    assert_true(connect_two(&server_handle));
    assert_int_equal(pthread_create(&thread, NULL, make_and_destroy, NULL), 0);
    for (i = 0; i < 60; i++) {
        unsigned spins;
        for (spins = random_below(200000); spins > 0; spins--) __atomic_signal_fence(__ATOMIC_SEQ_CST);
        fork_once(i);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(broken, 0);
    assert_int_equal(noted->sent_by_child, 0);
}

#ifdef FORK_AT_EACH_STEP
#include "tests/support/counted.h"

/* Another thread gets acquainted again and again: connects, sends, gets the answer, and closes. Each time it stops one step later, in
 * whatever function that is, and there the first thread forks. */
static __thread uint32_t steps_left; /* until the thread stops; 0: it does not */
static int is_stopped, may_begin, has_ended;
static uint32_t stop_after;

UNCOUNTED void __sanitizer_cov_trace_pc(void) {
    if (steps_left == 0 || --steps_left > 0) return;
    __atomic_store_n(&is_stopped, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&is_stopped, __ATOMIC_SEQ_CST)) (void)sched_yield();
}

/* Both endpoints' events, until the client has one, whose connection is returned, or the server's connection has ended. */
static cci_connection_t *serve_both(void) {
    cci_connection_t *of_event = NULL;
    cci_event_t *event;
    while (of_event == NULL) {
        if (cci_get_event(server, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_DISCONNECT) of_event = event->disconnect.connection;
            serve_one(server, event);
        }
        if (cci_get_event(client, &event) == CCI_SUCCESS) {
            of_event = event->type == CCI_EVENT_CONNECT ? event->connect.connection : event->recv.connection;
            (void)cci_return_event(event);
        }
    }
    return of_event;
}

static void *get_acquainted(void *argument) {
    cci_connection_t *made;
    char *uri;
    (void)argument;
    if (cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS) return NULL;
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        if (!__atomic_exchange_n(&may_begin, 0, __ATOMIC_SEQ_CST)) {
            (void)sched_yield();
            continue;
        }
        steps_left = stop_after;
        if (cci_connect(client, uri, "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL) != CCI_SUCCESS) broken = 5;
        made = serve_both();
        if (cci_send(made, "hello", 5, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS) broken = 6;
        if (serve_both() != made || cci_disconnect(made) != CCI_SUCCESS) broken = 7;
        if (cci_disconnect(serve_both()) != CCI_SUCCESS) broken = 8;
        steps_left = 0;
        __atomic_store_n(&has_ended, 1, __ATOMIC_SEQ_CST);
    }
    free(uri);
    return NULL;
}

static void be_the_child_of_a_step(uint32_t step) {
    cci_event_t *event;
    alarm(120);
    if (step / 4 % 32 == 0) try_everything();
    MUST(cci_send(connection, "never", 5, NULL, 0) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_get_event(client, &event) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_get_event(server, &event) == CCI_ERR_DEVICE_DEAD);
    MUST(cci_destroy_endpoint(client) == CCI_SUCCESS && cci_destroy_endpoint(server) == CCI_SUCCESS);
    if (step / 4 % 32 == 1) begin_anew();
    _exit(0);
}

static void forks_at_each_step_repeat_no_nonce_and_send_nothing(void **state) {
    uint32_t mask = 1u << CCI_EVENT_DISCONNECT, step;
    pthread_t thread;
    (void)state;
    transport_name = "udp";
    is_sealed = 1;
    assert_true(begin_library());
    assert_true(connect_two(NULL));
    assert_int_equal(cci_set_opt(server, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, get_acquainted, NULL), 0);
    for (step = 1 + (uint32_t)parent % stride;; step += stride) { /* other ones each time */
        int status = 0;
        pid_t pid;
        stop_after = step;
        __atomic_store_n(&has_ended, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&may_begin, 1, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&is_stopped, __ATOMIC_SEQ_CST) && !__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST)) (void)sched_yield();
        if (!__atomic_load_n(&is_stopped, __ATOMIC_SEQ_CST)) break; /* it had fewer steps */
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) be_the_child_of_a_step(step);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0) fail_msg("the child of step %u ended with %x", (unsigned)step, (unsigned)status);
        __atomic_store_n(&is_stopped, 0, __ATOMIC_SEQ_CST);
        while (!__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST)) (void)sched_yield();
    }
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("forks at one in %u of %u steps; %u sealed, %u sent\n", (unsigned)stride, (unsigned)step, (unsigned)noted->sealed,
                  (unsigned)noted->sent);
    assert_true(step > 1000);
    assert_int_equal(broken, 0);
    assert_int_equal(noted->repeated, 0);
    assert_int_equal(noted->sent_by_child, 0);
}
#endif

/* A child that lives on holds none of the parent's ports, and none of its sockets in an epoll set. */
static void a_child_that_stays_holds_nothing_of_its_parents(void **state) {
    const struct timeval patience = {60, 0};
    cci_connection_t *group = NULL;
    cci_event_t *event;
    struct pollfd sleeper;
    char *uri, service[16], byte = 0;
    int to_child[2], status, i;
    pid_t pid;
    (void)state;
    transport_name = "udp";
    is_sealed = 0;
    assert_true(begin_library());
    assert_true(connect_two(&server_handle));
    assert_int_equal(cci_connect(server, "udp://239.255.17.4:25871", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, &patience),
                     CCI_SUCCESS);
    while (group == NULL) {
        if (cci_get_event(server, &event) != CCI_SUCCESS) continue;
        if (event->type == CCI_EVENT_CONNECT) group = event->connect.connection;
        (void)cci_return_event(event);
    }
    assert_int_equal(pipe(to_child), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(to_child[1]);
        (void)!read(to_child[0], &byte, 1); /* until the parent has closed it */
        _exit(0);
    }
    assert_int_equal(cci_disconnect(group), CCI_SUCCESS);
    while (cci_get_event(server, &event) == CCI_SUCCESS) (void)cci_return_event(event);
    sleeper.fd = server_handle;
    sleeper.events = POLLIN;
    for (i = 0; i < 100 && poll(&sleeper, 1, 20) > 0; i++)
        while (cci_get_event(server, &event) == CCI_SUCCESS) (void)cci_return_event(event);
    assert_true(i < 100); /* it sleeps */
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    snprintf(service, sizeof service, "%s", strrchr(uri, ':') + 1);
    free(uri);
    assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, service, 0, &server, NULL), CCI_SUCCESS);
    close(to_child[1]);
    close(to_child[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The endpoint's name can be taken again as soon as the parent gives it up, and the second descriptor is closed in the child. */
static void child_holds_no_name(const char *transport) {
    cci_os_handle_t handle, completions;
    int to_child[2], from_child[2], status;
    cci_endpoint_t *other;
    char name[32], byte = 0;
    pid_t pid;
    snprintf(name, sizeof name, "fork-%d", (int)parent);
    transport_name = transport;
    is_sealed = 0;
    assert_true(begin_library());
    assert_int_equal(cci_create_endpoint_at(NULL, name, 0, &server, &handle), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(server, CCI_OPT_ENDPT_SEND_FD, &completions), CCI_SUCCESS);
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(to_child[1]);
        close(from_child[0]);
        MUST(fcntl(completions, F_GETFD) < 0 && errno == EBADF);
        MUST(begin_library());
        MUST(cci_create_endpoint_at(NULL, name, 0, &other, NULL) == CCI_EBUSY); /* the parent has it */
        MUST(write(from_child[1], &byte, 1) == 1);
        MUST(read(to_child[0], &byte, 1) == 1); /* it has given the name up, and taken it again */
        MUST(cci_create_endpoint_at(NULL, name, 0, &other, NULL) == CCI_EBUSY);
        MUST(write(from_child[1], &byte, 1) == 1);
        MUST(read(to_child[0], &byte, 1) == 1);
        MUST(cci_create_endpoint_at(NULL, name, 0, &other, NULL) == CCI_SUCCESS);
        MUST(cci_finalize() == CCI_SUCCESS);
        _exit(0);
    }
    close(to_child[0]);
    close(from_child[1]);
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    assert_true(fcntl(completions, F_GETFD) >= 0);
    assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(NULL, name, 0, &server, NULL), CCI_SUCCESS);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    assert_int_equal(cci_destroy_endpoint(server), CCI_SUCCESS);
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(to_child[1]);
    close(from_child[0]);
}

static void a_child_has_neither_the_name_nor_the_send_descriptor_over_udp(void **state) {
    (void)state;
    child_holds_no_name("udp");
}

static void a_child_has_neither_the_name_nor_the_send_descriptor_over_sisci(void **state) {
    (void)state;
    child_holds_no_name("sisci");
}

/* What a daemon does before it uses the library. */
static void a_daemon_that_forks_before_cci_init_works(void **state) {
    int status;
    pid_t pid;
    (void)state;
    transport_name = "udp";
    is_sealed = 1;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setsid() < 0) _exit(1);
        begin_anew();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
#ifdef FORK_AT_EACH_STEP
        TEST(forks_at_each_step_repeat_no_nonce_and_send_nothing),
#endif
        TEST(a_daemon_that_forks_before_cci_init_works),
        TEST(a_child_that_stays_holds_nothing_of_its_parents),
        TEST(a_child_has_neither_the_name_nor_the_send_descriptor_over_udp),
        TEST(a_child_has_neither_the_name_nor_the_send_descriptor_over_sisci),
        TEST(forks_under_traffic_over_udp),
        TEST(forks_under_traffic_in_batches),
        TEST(forks_under_sealed_traffic_over_udp_repeat_no_nonce),
        TEST(forks_under_traffic_over_sisci),
        TEST(forks_while_endpoints_come_and_go),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) stride = (uint32_t)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
