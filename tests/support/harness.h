/* harness.h - what the tests of whole endpoints share: sides, events, patience, counted memory.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A side is an endpoint with a queue of the events that it got and nobody has asked for yet. All sides live in one
 * thread; whoever waits for an event polls all of them, so the same test runs on a network that is real and on one that
 * is simulated. No test depends on how long something takes: waiting ends when what is awaited is there, or after so
 * long a time that it never will be.
 */
#ifndef CCI_TEST_HARNESS_H
#define CCI_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cci.h"

#include "tests/support/sim.h"

#define SECOND_NS ((uint64_t)1000000000u)
#define MILLISECOND_NS ((uint64_t)1000000u)
#define HARNESS_FN static __attribute__((unused))

/* ---- tests that list themselves ---------------------------------------------------------------------------------- */

#define ON_UDP 1
#define ON_SIM 2
#define ON_SISCI 8
#define ON_VERBS 16
#define ON_HOST (ON_UDP | ON_SISCI | ON_VERBS) /* in real time, with OS handles and threads */
#define ON_NETWORK (ON_UDP | ON_SIM | ON_VERBS)
#define ANYWHERE (ON_UDP | ON_SIM | ON_SISCI | ON_VERBS)
#define WHEN_CLEAN 4 /* not on a network that loses: the manual promises less there, or it would take too long */

#define NOT_SMALL 32  /* of what CCI_SMALL and CCI_TINY go without, or what takes more than they have */
#define NOT_TINY 64   /* likewise, CCI_TINY alone */
#define WITH_GROUPS 128 /* not where CCI_NO_MULTICAST leaves them out */
#ifdef CCI_NO_MULTICAST
static const int has_groups = 0;
#else
static const int has_groups = 1;
#endif

#if defined(CCI_SMALL) || defined(CCI_TINY) /* endpoints straight from the link, no devices */
#define ON_OWN_LINK
#define SIM_SCHEME "link://"
static const int is_small = 1;
#else
#define SIM_SCHEME "sim://"
static const int is_small = 0;
#endif
#ifdef CCI_TINY
static const int is_tiny = 1;
#else
static const int is_tiny = 0;
#endif

typedef struct listed_test {
    const char *sentence;
    void (*run)(void **state);
    int where;
} listed_test_t;

static listed_test_t listed_tests[512];
static int listed_test_count;

/* A test is named by the sentence that it proves. */
#define TEST(id, where, sentence)                                                                                     \
    static void test_##id(void **state);                                                                              \
    __attribute__((constructor)) static void list_##id(void) {                                                        \
        const listed_test_t listed = {sentence, test_##id, where};                                                    \
        listed_tests[listed_test_count++] = listed;                                                                   \
    }                                                                                                                 \
    static void test_##id(void **state)

/* ---- the transport under test -------------------------------------------------------------------------------------- */

static int on_sim;
static __attribute__((unused)) int on_sisci;
static int on_verbs; /* there are two devices: sides use them in turn */
static __attribute__((unused)) int is_one_sided; /* an RMA needs nothing of the target's program */
static __attribute__((unused)) int is_rc; /* each connection is a queue pair: the hardware answers for the program */
static __attribute__((unused)) int is_lossy;
static char config_text[2048];
static unsigned patience_s = 200; /* real seconds until a wait is given up */

HARNESS_FN uint64_t real_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* The clock by which the transport under test lives. */
HARNESS_FN uint64_t test_now_ns(void) {
    return on_sim ? sim.now_ns : real_now_ns();
}

/* On the simulated network a long time costs nothing. */
HARNESS_FN uint64_t long_or_short_ns(uint64_t virtual_ns, uint64_t real_ns) {
    return on_sim ? virtual_ns : real_ns;
}

HARNESS_FN uint32_t long_or_short_us(uint32_t virtual_us, uint32_t real_us) {
    return on_sim ? virtual_us : real_us;
}

typedef struct patience {
    uint64_t real_end_ns;
} patience_t;

HARNESS_FN patience_t be_patient(void) {
    patience_t patience;
    patience.real_end_ns = real_now_ns() + patience_s * SECOND_NS;
    return patience;
}

HARNESS_FN void still_patient(const patience_t *patience, const char *awaited) {
    if (real_now_ns() > patience->real_end_ns) {
        fail_msg("gave up waiting for %s after %u seconds", awaited, patience_s);
    }
}

/* ---- counted memory ---------------------------------------------------------------------------------------------------- */

typedef union counted_block {
    size_t size;
    long double align;
    char room[16];
} counted_block_t;

static size_t live_bytes, live_blocks, total_allocs;

static void *counted_alloc(void *user, size_t size) {
    counted_block_t *block = (counted_block_t *)malloc(sizeof *block + size);
    (void)user;
    if (block == NULL) {
        return NULL;
    }
    block->size = size;
    __atomic_add_fetch(&live_bytes, size, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&live_blocks, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&total_allocs, 1, __ATOMIC_SEQ_CST);
    return block + 1;
}

static void counted_release(void *user, void *pointer) {
    counted_block_t *block = (counted_block_t *)pointer;
    (void)user;
    if (block == NULL) {
        return;
    }
    block--;
    __atomic_sub_fetch(&live_bytes, block->size, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&live_blocks, 1, __ATOMIC_SEQ_CST);
    free(block);
}

/* The log is kept for tests that look for a word in it. */
static char log_text[8192];
static char log_lock;

static void keep_log(void *user, int level, const char *text) {
    size_t used;
    (void)user;
    (void)level;
    while (__atomic_test_and_set(&log_lock, __ATOMIC_ACQUIRE)) {
    }
    used = strlen(log_text);
    if (used + strlen(text) + 2 < sizeof log_text) {
        strcat(log_text, text);
        strcat(log_text, "\n");
    }
    __atomic_clear(&log_lock, __ATOMIC_RELEASE);
}

static cci_setup_t test_setup;
static __attribute__((unused)) const cci_seal_t *test_seal; /* what all packets are sealed with, or NULL */

/* For CCI_TINY, which has none of its own. */
HARNESS_FN int random_bytes(void *user, void *bytes, size_t count) {
    static uint64_t number = 88172645463325252u; /* it goes on from test to test: no two give the same */
    (void)user;
    while (count > 0) {
        number ^= number << 13, number ^= number >> 7, number ^= number << 17;
        ((uint8_t *)bytes)[--count] = (uint8_t)(number >> 24);
    }
    return 0;
}

HARNESS_FN void fill_setup(void) {
    memset(&test_setup, 0, sizeof test_setup);
    test_setup.alloc = counted_alloc;
    test_setup.release = counted_release;
    test_setup.log = keep_log;
#ifndef ON_OWN_LINK
    test_setup.config = config_text;
    test_setup.transports = sim_transports;
#endif
    test_setup.seal = test_seal;
#ifdef CCI_TINY
    test_setup.random = random_bytes;
#endif
}

/* ---- sides ---------------------------------------------------------------------------------------------------------------- */

/* 1: on the simulated network an endpoint is called only when something has arrived for it, or when it said that it must
 * be; what a test calls besides is the test's. */
static __attribute__((unused)) int only_when_due;
static uint64_t due_calls, spared_calls;

typedef struct side {
    cci_endpoint_t *ep;
    char *uri;
    int deaf;        /* 1: nobody polls this endpoint */
    int last_status; /* what cci_get_event() said last */
    cci_event_t **queue;
    size_t count, capacity;
    int (*handler)(struct side *side, cci_event_t *event); /* returns 1 when it has taken the event */
    void *user;
} side_t;

#define MAX_SIDES 24
static side_t sides[MAX_SIDES];
static int side_count;

HARNESS_FN void side_keep(side_t *side, cci_event_t *event) {
    if (side->count == side->capacity) {
        side->capacity = side->capacity == 0 ? 64 : side->capacity * 2;
        side->queue = (cci_event_t **)realloc((void *)side->queue, side->capacity * sizeof *side->queue);
        assert_non_null(side->queue);
    }
    side->queue[side->count++] = event;
}

/* Does something wait in the simulated network, or does the endpoint want to be called? */
HARNESS_FN int is_due(const side_t *side) {
    uint64_t ns;
    int i;
    assert_int_equal(cci_next_deadline(side->ep, &ns), CCI_SUCCESS);
    for (i = 0; i < sim.endpoint_count && ns > 0; i++) {
        if (strtoul(strrchr(side->uri, '/') + 1, NULL, 10) == sim.endpoints[i]->number && sim.endpoints[i]->first != NULL) {
            ns = 0;
        }
    }
    return ns == 0;
}

/* cci_finalize() ends one endpoint after the other, and polls meanwhile on the simulated network. */
#ifdef CCI_VALIDATE
#define IS_ENDING(status) ((status) == CCI_EINVAL)
#else
#define IS_ENDING(status) 0
#endif

HARNESS_FN int poll_side(side_t *side) {
    int got = 0;
    if (side->ep == NULL || side->deaf) {
        return 0;
    }
    if (only_when_due && side->uri != NULL) {
        if (!is_due(side)) {
            spared_calls++;
            sim_was_idle();
            return 0;
        }
        due_calls++;
    }
    while (got < 64) {
        cci_event_t *event = NULL;
        side->last_status = cci_get_event(side->ep, &event);
        if (side->last_status != CCI_SUCCESS) {
            assert_true(side->last_status == CCI_EAGAIN || side->last_status == CCI_ENOBUFS || IS_ENDING(side->last_status));
            assert_null(event);
            break;
        }
        assert_non_null(event);
        got++;
        if (side->handler == NULL || !side->handler(side, event)) {
            side_keep(side, event);
        }
    }
    return got;
}

HARNESS_FN void poll_all(void) {
    int i;
    for (i = 0; i < side_count; i++) {
        poll_side(&sides[i]);
    }
}

static void (*on_silence)(side_t *side); /* what it takes besides to make a side seem dead */

/* A side that answers no more, until `deaf` is 0 again. */
HARNESS_FN void silence(side_t *side) {
    side->deaf = 1;
    if (on_silence != NULL) {
        on_silence(side);
    }
}

HARNESS_FN side_t *side_open_at(cci_device_t *device, const char *service) {
    side_t *side = &sides[side_count];
    assert_true(side_count < MAX_SIDES);
    memset(side, 0, sizeof *side);
#ifdef ON_OWN_LINK
    assert_int_equal(cci_create_endpoint_on_link(&sim_link, service, &side->ep, NULL), CCI_SUCCESS);
    (void)device;
#else
    assert_int_equal(cci_create_endpoint_at(device, service, 0, &side->ep, NULL), CCI_SUCCESS);
#endif
    assert_non_null(side->ep);
    side_count++;
#ifdef CCI_TINY /* it has no texts */
    side->uri = (char *)calloc(1, 40);
    assert_non_null(side->uri);
    snprintf(side->uri, 40, "link://%u", sim.endpoints[sim.endpoint_count - 1]->number);
#else
    assert_int_equal(cci_get_opt(side->ep, CCI_OPT_ENDPT_URI, &side->uri), CCI_SUCCESS);
#endif
    return side;
}

HARNESS_FN side_t *side_open(void) {
    cci_device_t *const *devices = NULL;
    if (!on_verbs || side_count % 2 == 0) {
        return side_open_at(NULL, NULL);
    }
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    return side_open_at(devices[1], NULL);
}

HARNESS_FN void side_forget(side_t *side) {
    free(side->uri);
    free((void *)side->queue);
    memset(side, 0, sizeof *side);
}

/* Nobody polls an endpoint that goes, not even while it waits for the others. */
HARNESS_FN void side_destroy(side_t *side) {
    cci_endpoint_t *ep = side->ep;
    side->ep = NULL;
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS);
}

HARNESS_FN void side_close(side_t *side) {
    side_destroy(side);
    side_forget(side);
}

HARNESS_FN void finalize_all(void) {
    void (*idle)(void) = sim_idle;
#ifdef ON_OWN_LINK
    int i;
#endif
    sim_idle = NULL;
#ifdef ON_OWN_LINK
    for (i = 0; i < side_count; i++) {
        if (sides[i].ep != NULL) {
            side_destroy(&sides[i]);
        }
    }
#else
    while (cci_finalize() == CCI_SUCCESS) {
    }
#endif
    sim_idle = idle;
}

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

HARNESS_FN void drop(cci_event_t *event) {
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

/* Takes the first event of a type out of the queue, NULL if there is none. */
HARNESS_FN cci_event_t *take(side_t *side, cci_event_type_t type) {
    size_t i;
    for (i = 0; i < side->count; i++) {
        if (side->queue[i]->type == type) {
            cci_event_t *event = side->queue[i];
            memmove((void *)&side->queue[i], (void *)&side->queue[i + 1], (side->count - i - 1) * sizeof *side->queue);
            side->count--;
            return event;
        }
    }
    return NULL;
}

HARNESS_FN size_t count_of(const side_t *side, cci_event_type_t type) {
    size_t i, count = 0;
    for (i = 0; i < side->count; i++) {
        count += side->queue[i]->type == type;
    }
    return count;
}

HARNESS_FN cci_event_t *await(side_t *side, cci_event_type_t type) {
    patience_t patience = be_patient();
    for (;;) {
        cci_event_t *event = take(side, type);
        if (event != NULL) {
            return event;
        }
        poll_all();
        if (count_of(side, type) == 0) {
            still_patient(&patience, cci_event_type_str(type));
        }
    }
}

/* Polls everybody for so long, by the transport's clock. */
HARNESS_FN void elapse(uint64_t duration_ns) {
    uint64_t end_ns = test_now_ns() + duration_ns;
    patience_t patience = be_patient();
    patience.real_end_ns += on_sim ? 0 : duration_ns;
    while (test_now_ns() < end_ns) {
        poll_all();
        still_patient(&patience, "time to pass");
    }
}

#define AWAIT(condition)                                                                                              \
    do {                                                                                                              \
        patience_t patience_ = be_patient();                                                                          \
        while (!(condition)) {                                                                                        \
            poll_all();                                                                                               \
            still_patient(&patience_, #condition);                                                                    \
        }                                                                                                             \
    } while (0)

/* The completion of one operation: checks context and status. */
HARNESS_FN void await_send(side_t *side, cci_connection_t *connection, const void *context, cci_status_t status) {
    cci_event_t *event = await(side, CCI_EVENT_SEND);
    assert_ptr_equal(event->send.connection, connection);
    assert_ptr_equal(event->send.context, context);
    assert_int_equal(event->send.status, status);
    drop(event);
}

/* ---- connections --------------------------------------------------------------------------------------------------------------- */

typedef struct pair {
    side_t *a, *b;
    cci_connection_t *ac, *bc; /* the client's end and the server's */
} pair_t;

static char context_a, context_b;

HARNESS_FN pair_t connect_sides(side_t *a, side_t *b, cci_conn_attribute_t attribute) {
    pair_t pair;
    cci_event_t *event;
    pair.a = a;
    pair.b = b;
    assert_int_equal(cci_connect(a->ep, b->uri, NULL, 0, attribute, &context_a, 0, NULL), CCI_SUCCESS);
    event = await(b, CCI_EVENT_CONNECT_REQUEST);
    assert_int_equal(event->request.attribute, attribute);
    assert_int_equal(cci_accept(event, &context_b), CCI_SUCCESS);
    drop(event);
    event = await(b, CCI_EVENT_ACCEPT);
    assert_int_equal(event->accept.status, CCI_SUCCESS);
    assert_ptr_equal(event->accept.context, &context_b);
    pair.bc = event->accept.connection;
    drop(event);
    event = await(a, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    assert_ptr_equal(event->connect.context, &context_a);
    pair.ac = event->connect.connection;
    drop(event);
    assert_non_null(pair.ac);
    assert_non_null(pair.bc);
    return pair;
}

HARNESS_FN pair_t open_pair(cci_conn_attribute_t attribute) {
    side_t *a = side_open();
    side_t *b = side_open();
    return connect_sides(a, b, attribute);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------------------- */

HARNESS_FN uint8_t pattern_byte(uint64_t seed, uint64_t at) {
    return (uint8_t)((at + seed * 37u) * 0x9E3779B1u >> 13);
}

HARNESS_FN void fill(void *bytes, size_t count, uint64_t seed) {
    size_t i;
    for (i = 0; i < count; i++) {
        ((uint8_t *)bytes)[i] = pattern_byte(seed, i);
    }
}

HARNESS_FN int holds_pattern(const void *bytes, size_t count, uint64_t seed) {
    size_t i;
    for (i = 0; i < count; i++) {
        if (((const uint8_t *)bytes)[i] != pattern_byte(seed, i)) {
            return 0;
        }
    }
    return 1;
}

HARNESS_FN void *need(size_t size) {
    void *memory = calloc(1, size);
    assert_non_null(memory);
    return memory;
}

HARNESS_FN const void *as_context(uintptr_t number) {
    return (const void *)number;
}

/* Sends; waits when buffers are out. */
HARNESS_FN void send_patiently(cci_connection_t *connection, const void *bytes, uint32_t length, uintptr_t context,
                               int flags) {
    patience_t patience = be_patient();
    for (;;) {
        int status = cci_send(connection, bytes, length, as_context(context), flags);
        if (status == CCI_SUCCESS) {
            return;
        }
        assert_int_equal(status, CCI_ENOBUFS);
        poll_all();
        still_patient(&patience, "a send buffer");
    }
}

/* ---- before and after each test ------------------------------------------------------------------------------------------------- */

static void (*worsen_network)(void); /* the variant of the simulated network */

HARNESS_FN int begin_test(void **state) {
    uint32_t caps = 0;
    (void)state;
    side_count = 0;
    log_text[0] = '\0';
    live_bytes = live_blocks = total_allocs = 0;
    sim_reset();
    sim_idle = poll_all;
    if (worsen_network != NULL) {
        worsen_network();
    }
    fill_setup();
#ifdef ON_OWN_LINK /* cci_init() is for devices */
    (void)caps;
    if (cci_setup(&test_setup) != CCI_SUCCESS) {
#else
    if (cci_setup(&test_setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
#endif
        fprintf(stderr, "the library can't be initialised: %s\n", log_text);
        return -1;
    }
    return 0;
}

static void (*before_end)(void); /* ends what a failed test has left running */

/* Whatever the test left is destroyed by the last cci_finalize(), and all memory is given back. */
HARNESS_FN int end_test(void **state) {
    int i;
    (void)state;
    if (before_end != NULL) {
        before_end();
    }
    finalize_all();
    for (i = 0; i < side_count; i++) {
        side_forget(&sides[i]);
    }
    side_count = 0;
    if (live_blocks != 0) {
        fprintf(stderr, "%lu blocks were never released\n", (unsigned long)live_blocks);
        return -1;
    }
    return 0;
}

HARNESS_FN int is_for(const listed_test_t *test, int where) {
    const int lacking = (is_small ? NOT_SMALL : 0) | (is_tiny ? NOT_TINY : 0) | (has_groups ? 0 : WITH_GROUPS);
    return (test->where & lacking) == 0 && (test->where & where & ANYWHERE) != 0 && ((test->where & WHEN_CLEAN) == 0 || (where & WHEN_CLEAN) != 0);
}

/* Runs the listed tests of a place as one group; a filter is a part of the sentence. */
HARNESS_FN int run_listed_tests(const char *group_name, int where, const char *filter) {
    static struct CMUnitTest tests[sizeof listed_tests / sizeof *listed_tests];
    size_t count = 0;
    int i;
    memset(tests, 0, sizeof tests);
    for (i = 0; i < listed_test_count; i++) {
        if (is_for(&listed_tests[i], where) &&
            (filter == NULL || strstr(listed_tests[i].sentence, filter) != NULL)) {
            tests[count].name = listed_tests[i].sentence;
            tests[count].test_func = listed_tests[i].run;
            tests[count].setup_func = begin_test;
            tests[count].teardown_func = end_test;
            count++;
        }
    }
    return count == 0 ? 1 : _cmocka_run_group_tests(group_name, tests, count, NULL, NULL);
}

#endif /* CCI_TEST_HARNESS_H */
