/* test_core.c - the core: hooks, transports, configuration, devices, endpoints, argument checks.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Everything runs on fake transports, which note what the core asks of them and have the devices that a test gives
 * them.
 * Memory goes through a hook that counts, and that can fail at any allocation.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The configuration's file is opened here, so that it can fail in every way. */
static int open_error;

static FILE *opening(const char *name, const char *mode) {
    if (open_error != 0) {
        errno = open_error;
        return NULL;
    }
    return fopen(name, mode);
}

/* No transport is included, so that the table holds only what a test puts there. */
#define fopen opening
#define CCI_IMPLEMENTATION
#include "cci.h"
#undef fopen

/* ---- hooks that count ------------------------------------------------------------------------------------------ */

static int blocks;        /* allocated and not released */
static int allocations;   /* so far */
static int fail_at = -1;  /* the allocation that fails, counted from 0; -1 for none */
static char log_text[4096];
static int log_count, worst_level;

static void *counting_alloc(void *user, size_t size) {
    void *pointer;
    assert_ptr_equal(user, &blocks);
    if (allocations++ == fail_at) return NULL;
    pointer = malloc(size);
    blocks += pointer != NULL;
    return pointer;
}

static void counting_release(void *user, void *pointer) {
    assert_ptr_equal(user, &blocks);
    assert_non_null(pointer);
    blocks--;
    free(pointer);
}

static void keeping_log(void *user, int level, const char *text) {
    assert_ptr_equal(user, &blocks);
    assert_true(strlen(log_text) + strlen(text) + 2 < sizeof log_text);
    strcat(strcat(log_text, text), "\n");
    log_count++;
    if (level < worst_level) worst_level = level;
}

static void log_clear(void) {
    log_text[0] = '\0';
    log_count = 0;
    worst_level = CCI_LOG_DEBUG;
}

static void assert_logged(const char *text) {
    if (strstr(log_text, text) == NULL) fail_msg("\"%s\" is not in the log: %s", text, log_text);
}

/* ---- a fake transport ------------------------------------------------------------------------------------------ */

typedef struct fake {
    cci_device_desc_t desc[8];
    int desc_count;
    int discover_status;
    const char *why;
    unsigned refresh_up; /* what refresh() tells */
    const char *refresh_info;
    int opened, destroyed;
    /* the arguments of the last call of an operation */
    const char *last;
    const char *address;
    const char *service;
    void *context;
    struct iovec piece;
    uint32_t count;
    int flags;
} fake_t;

typedef struct fake_endpoint {
    cci_endpoint_base_t base;
    fake_t *fake;
    struct cci_connection connection;
    cci_event_base_t event;
} fake_endpoint_t;

static fake_t fakes[3];

static int fake_discover(const cci_transport_t *self, void *list, int (*add)(void *list, const cci_device_desc_t *desc),
                         char *why, size_t why_size) {
    fake_t *fake = (fake_t *)self->user;
    int i, status = fake->discover_status;
    if (fake->why != NULL) snprintf(why, why_size, "%s", fake->why);
    for (i = 0; i < fake->desc_count && status == CCI_SUCCESS; i++) {
        /* what is handed over is gone after the call: the core must copy it */
        cci_device_desc_t desc = fake->desc[i];
        char name[32], info[32];
        snprintf(name, sizeof name, "%s", desc.name);
        snprintf(info, sizeof info, "%s", desc.info);
        desc.name = name;
        desc.info = info;
        status = add(list, &desc);
        memset(name, 'x', sizeof name);
        memset(info, 'x', sizeof info);
    }
    return status;
}

/* Knows the keys `colour` and `size`, of which the second is a digit. */
static int fake_configure(const cci_transport_t *self, const char *name, const char *const *keys,
                          cci_device_desc_t *desc, int *bad_key, char *why, size_t why_size) {
    fake_t *fake = (fake_t *)self->user;
    int i;
    assert_non_null(name);
    if (fake->discover_status != CCI_SUCCESS) return fake->discover_status;
    for (i = 0; keys[i] != NULL; i++) {
        *bad_key = i;
        if (strncmp(keys[i], "size=", 5) == 0) {
            if (keys[i][5] < '0' || keys[i][5] > '9') {
                snprintf(why, why_size, "size is a digit");
                return CCI_EINVAL;
            }
            desc->max_send_size = (uint32_t)(keys[i][5] - '0');
        } else if (strncmp(keys[i], "colour=", 7) != 0) {
            snprintf(why, why_size, "unknown key \"%s\"", keys[i]);
            return CCI_EINVAL;
        }
    }
    desc->up = 1;
    desc->info = "configured";
    desc->data[0] = 42;
    return CCI_SUCCESS;
}

static void fake_refresh(const cci_transport_t *self, cci_device_desc_t *desc) {
    const fake_t *fake = (const fake_t *)self->user;
    desc->up = fake->refresh_up;
    if (fake->refresh_info != NULL) {
        desc->info = fake->refresh_info;
        desc->max_send_size = 77;
    }
}

static fake_t *note(cci_endpoint_base_t *endpoint, const char *operation) {
    fake_t *fake = ((fake_endpoint_t *)(void *)endpoint)->fake;
    fake->last = operation;
    return fake;
}

static fake_t *note_connection(struct cci_connection *connection, const char *operation) {
    return note((cci_endpoint_base_t *)(uintptr_t)connection->endpoint, operation);
}

static int fake_destroy(cci_endpoint_base_t *endpoint) {
    note(endpoint, "destroy")->destroyed++;
    cci_release(endpoint);
    return CCI_SUCCESS;
}

static int fake_accept(cci_event_base_t *request, void *context) {
    note(request->endpoint, "accept")->context = context;
    return CCI_SUCCESS;
}

static int fake_reject(cci_event_base_t *request) {
    note(request->endpoint, "reject");
    return CCI_SUCCESS;
}

static int fake_connect(cci_endpoint_base_t *endpoint, const char *address, const void *data, uint32_t data_len,
                        cci_conn_attribute_t attribute, void *context, int flags, const struct timeval *timeout) {
    fake_t *fake = note(endpoint, "connect");
    (void)data, (void)attribute, (void)timeout;
    fake->address = address;
    fake->count = data_len;
    fake->context = context;
    fake->flags = flags;
    return CCI_SUCCESS;
}

static int fake_disconnect(struct cci_connection *connection) {
    note_connection(connection, "disconnect");
    return CCI_SUCCESS;
}

static int fake_arm(cci_endpoint_base_t *endpoint, int flags) {
    note(endpoint, "arm")->flags = flags;
    return CCI_SUCCESS;
}

static int fake_get_event(cci_endpoint_base_t *endpoint, cci_event_t **event) {
    fake_t *fake = note(endpoint, "get_event");
    if (fake->flags == -1) return CCI_EAGAIN;
    *event = &((fake_endpoint_t *)(void *)endpoint)->event.pub;
    return CCI_SUCCESS;
}

static int fake_return_event(cci_event_base_t *event) {
    note(event->endpoint, "return_event");
    return CCI_SUCCESS;
}

static int fake_set_endpoint_opt(cci_endpoint_base_t *endpoint, cci_opt_name_t name, const void *val) {
    (void)name, (void)val;
    note(endpoint, "set endpoint");
    return CCI_SUCCESS;
}

static const char *fake_uri; /* NULL: it has none */

static int fake_get_endpoint_opt(cci_endpoint_base_t *endpoint, cci_opt_name_t name, void *val) {
    note(endpoint, "get endpoint");
    if (name == CCI_OPT_ENDPT_URI && fake_uri != NULL) {
        *(char **)val = strdup(fake_uri);
    }
    return CCI_SUCCESS;
}

static int fake_set_connection_opt(struct cci_connection *connection, cci_opt_name_t name, const void *val) {
    (void)name, (void)val;
    note_connection(connection, "set connection");
    return CCI_SUCCESS;
}

static int fake_get_connection_opt(struct cci_connection *connection, cci_opt_name_t name, void *val) {
    (void)name, (void)val;
    note_connection(connection, "get connection");
    return CCI_SUCCESS;
}

static int fake_sendv(struct cci_connection *connection, const struct iovec *data, uint32_t count, void *context,
                      int flags) {
    fake_t *fake = note_connection(connection, "sendv");
    fake->count = count;
    fake->context = context;
    fake->flags = flags;
    if (count > 0) fake->piece = data[0];
    return CCI_SUCCESS;
}

static int fake_rma_register(cci_endpoint_base_t *endpoint, void *start, uint64_t length, int flags,
                             cci_rma_handle_t **handle) {
    static struct cci_rma_handle made[16]; /* each with other bytes */
    static uint64_t count;
    (void)start, (void)length, (void)flags;
    *handle = &made[count++ % 16];
    (*handle)->stuff[0] = 1000 + count;
    note(endpoint, "rma_register");
    return CCI_SUCCESS;
}

static int fake_rma_deregister(cci_endpoint_base_t *endpoint, const struct cci_rma_handle *handle) {
    note(endpoint, "rma_deregister");
    return handle->stuff[0] == 99 ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS;
}

static int fake_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                    const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                    uint64_t remote_offset, uint64_t length, void *context, int flags) {
    (void)msg, (void)msg_len, (void)local, (void)local_offset, (void)remote, (void)remote_offset, (void)length;
    note_connection(connection, "rma")->context = context;
    ((fake_endpoint_t *)(uintptr_t)connection->endpoint)->fake->flags = flags;
    return CCI_SUCCESS;
}

static char fake_memory[100];

static int fake_rma_alloc(cci_endpoint_base_t *endpoint, uint64_t length, void **memory) {
    note(endpoint, "rma_alloc");
    if (length > sizeof fake_memory) return length > 1000 ? CCI_ERR_NOT_IMPLEMENTED : CCI_ENOBUFS;
    *memory = fake_memory;
    return CCI_SUCCESS;
}

static void fake_rma_free(cci_endpoint_base_t *endpoint, void *memory) {
    assert_ptr_equal(memory, fake_memory);
    note(endpoint, "rma_free");
}

static int fake_answer(cci_event_base_t *request, int accepts, void *context, const void *data, uint32_t data_len) {
    note(request->endpoint, accepts ? "accept with data" : "reject with data");
    fakes[0].context = context;
    assert_int_equal(data_len, 4);
    assert_memory_equal(data, "data", 4);
    return CCI_SUCCESS;
}

static int fake_next_deadline(cci_endpoint_base_t *endpoint, uint64_t *ns) {
    note(endpoint, "next_deadline");
    *ns = 7;
    return CCI_SUCCESS;
}

static const cci_endpoint_ops_t fake_ops = {
    fake_destroy,          fake_accept,           fake_reject,
    fake_connect,          fake_disconnect,       fake_arm,
    fake_get_event,        fake_return_event,     fake_set_endpoint_opt,
    fake_get_endpoint_opt, fake_set_connection_opt, fake_get_connection_opt,
    fake_sendv,            fake_rma_register,     fake_rma_deregister,
    fake_rma,              fake_rma_alloc,        fake_rma_free,
    fake_answer,           fake_next_deadline,    NULL,
    NULL};

static int fake_create(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                       cci_os_handle_t *fd) {
    fake_t *fake = &fakes[device->transport[0] - 'a'];
    fake_endpoint_t *made = (fake_endpoint_t *)cci_alloc(sizeof *made);
    if (made == NULL) return CCI_ENOMEM;
    memset(made, 0, sizeof *made);
    made->base.ops = &fake_ops;
    made->fake = fake;
    made->connection.endpoint = &made->base.pub;
    made->event.endpoint = &made->base;
    fake->opened++;
    fake->service = service;
    fake->flags = flags;
    if (fd != NULL) *fd = 5;
    *endpoint = &made->base;
    return CCI_SUCCESS;
}

#define FAKE(name, index)                                                                                              \
    {CCI_TRANSPORT_VERSION, name,           "any", &fakes[index], fake_discover,                                       \
     fake_configure,        fake_refresh,   NULL,  fake_create}
static cci_transport_t apple = FAKE("apple", 0), berry = FAKE("berry", 1), cherry = FAKE("cherry", 2);
static const cci_transport_t *const apple_and_berry[] = {&apple, &berry, NULL};
static const cci_transport_t *const no_transport[] = {NULL};

static void propose(fake_t *fake, const char *name, unsigned up, uint32_t priority) {
    cci_device_desc_t *desc = &fake->desc[fake->desc_count++];
    memset(desc, 0, sizeof *desc);
    desc->name = name;
    desc->info = "proposed";
    desc->up = up;
    desc->priority = priority;
    desc->max_send_size = 1000;
    desc->rate = 10000000000u;
    desc->pci[1] = 3;
    desc->data[191] = 7;
}

/* ---- what most tests begin and end with -------------------------------------------------------------------------- */

static cci_setup_t hooks(void) {
    cci_setup_t setup;
    memset(&setup, 0, sizeof setup);
    setup.alloc = counting_alloc;
    setup.release = counting_release;
    setup.log = keeping_log;
    setup.user = &blocks;
    setup.transports = apple_and_berry;
    return setup;
}

static int init(void) {
    uint32_t caps;
    return cci_init(CCI_ABI_VERSION, 0, &caps);
}

/* Sets the hooks with a configuration, or none, and initializes. */
static int wanted_log_level;

static int init_with(const char *config) {
    cci_setup_t setup = hooks();
    int status;
    setup.config = config;
    setup.log_level = wanted_log_level;
    status = cci_setup(&setup);
    if (status == CCI_ERANGE) return status;
    assert_int_equal(status, CCI_SUCCESS);
    log_clear();
    return init();
}

static cci_device_t *const *devices(void) {
    cci_device_t *const *list = NULL;
    assert_int_equal(cci_get_devices(&list), CCI_SUCCESS);
    assert_non_null(list);
    return list;
}

/* Compares the names of the devices, in their order, with a text like "one two". */
static void assert_devices(const char *names) {
    char text[256] = "";
    cci_device_t *const *at;
    for (at = devices(); *at != NULL; at++) {
        if (text[0] != '\0') strcat(text, " ");
        strcat(text, (*at)->name);
    }
    assert_string_equal(text, names);
}

static int begin(void **state) {
    (void)state;
    unsetenv("CCI_CONFIG");
    memset(fakes, 0, sizeof fakes);
    fakes[0].refresh_up = fakes[1].refresh_up = fakes[2].refresh_up = 1;
    fail_at = -1;
    allocations = 0;
    log_clear();
    return 0;
}

static int end(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {}
    cci_deregister_transport(&cherry);
    assert_int_equal(cci_setup(NULL), CCI_SUCCESS);
    assert_int_equal(blocks, 0);
    return 0;
}

/* ---- initialization ---------------------------------------------------------------------------------------------- */

static void init_checks_its_arguments(void **state) {
    cci_setup_t setup = hooks();
    uint32_t caps = 99;
    (void)state;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, NULL), CCI_EINVAL);
    assert_int_equal(cci_init(0, 0, &caps), CCI_EINVAL);
    assert_int_equal(cci_init(3, 0, &caps), CCI_EINVAL);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 1, &caps), CCI_EINVAL);
    assert_int_equal(caps, 99);
    assert_int_equal(cci_finalize(), CCI_ERROR);
    assert_int_equal(cci_init(1, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_init(2, 0, &caps), CCI_SUCCESS);
#ifdef CCI_NO_THREADS
    assert_int_equal(caps, 0);
#else
    assert_int_equal(caps, CCI_CAPS_THREAD_SAFETY);
#endif
}

static void initializations_are_counted(void **state) {
    cci_device_t *const *list;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    assert_int_equal(cci_get_devices(&list), CCI_ERROR);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(init(), CCI_SUCCESS);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_devices("eth0");
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(blocks, 0);
    assert_int_equal(cci_finalize(), CCI_ERROR);
    assert_int_equal(cci_get_devices(&list), CCI_ERROR);
    assert_int_equal(init(), CCI_SUCCESS); /* again, with the same hooks */
    assert_devices("eth0");
}

static void init_without_any_transport_is_not_found(void **state) {
    cci_setup_t setup = hooks();
    (void)state;
    setup.transports = no_transport;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(init(), CCI_ERR_NOT_FOUND);
    assert_int_equal(worst_level, CCI_LOG_ERROR);
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(init(), CCI_SUCCESS);
}

static void setup_comes_before_init_and_hooks_come_in_pairs(void **state) {
    cci_setup_t setup = hooks();
    (void)state;
    setup.release = NULL;
    assert_int_equal(cci_setup(&setup), CCI_EINVAL);
    setup.alloc = NULL;
    setup.release = counting_release;
    assert_int_equal(cci_setup(&setup), CCI_EINVAL);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_setup(NULL), CCI_EBUSY);
}

static void every_failing_allocation_gives_enomem_and_leaks_nothing(void **state) {
    cci_device_t *const *list;
    static const char *const configs[] = {NULL, "[a]\ntransport=apple\ncolour=red\n[b]\ntransport=berry\n"};
    size_t i;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    propose(&fakes[1], "eth0", 1, 50);
    for (i = 0; i < 2; i++) {
        int at, needed;
        assert_int_equal(init_with(configs[i]), CCI_SUCCESS);
        assert_int_equal(cci_finalize(), CCI_SUCCESS);
        needed = allocations;
        allocations = 0;
        for (at = 0; at < needed; at++) {
            allocations = 0;
            fail_at = at;
            assert_int_equal(init(), CCI_ENOMEM);
            assert_int_equal(blocks, 0);
        }
        allocations = 0;
        fail_at = -1;
        assert_int_equal(init(), CCI_SUCCESS);
        fail_at = allocations; /* cci_get_devices() may fail, but not for good */
        assert_int_equal(cci_get_devices(&list), CCI_ENOMEM);
        assert_int_equal(cci_get_devices(&list), CCI_SUCCESS);
        fail_at = -1;
        assert_int_equal(cci_finalize(), CCI_SUCCESS);
        allocations = 0;
    }
}

static int give_bytes(void *user, void *bytes, size_t count) {
    (void)user;
    memset(bytes, 9, count);
    return count == 3;
}

/* What goes to stderr while something is logged without a hook. */
static void without_a_hook_errors_and_warnings_go_to_stderr_and_nothing_else_does(void **state) {
    char text[200];
    ssize_t length;
    int ends[2], kept = dup(2);
    (void)state;
#ifdef __wasm__
    skip(); /* a descriptor can't take another's place there */
#endif
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(cci_setup(NULL), CCI_SUCCESS);
    fflush(stderr);
    assert_true(dup2(ends[1], 2) == 2);
    cci_log(CCI_LOG_INFO, "an information");
    cci_log(CCI_LOG_WARN, "a warning");
    cci_log(CCI_LOG_ERROR, "an error");
    fflush(stderr);
    assert_true(dup2(kept, 2) == 2);
    close(kept);
    close(ends[1]);
    length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(length > 0);
    text[length] = '\0';
    assert_string_equal(text, "cci: warning: a warning\ncci: error: an error\n");
}

static void services_use_the_hooks_or_the_system(void **state) {
    cci_setup_t setup = hooks();
    uint8_t bytes[64], zeros[64] = {0};
    void *pointer;
    (void)state;
    assert_int_equal(cci_random(bytes, 0), CCI_SUCCESS);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(cci_random(bytes, sizeof bytes), CCI_SUCCESS);
    assert_memory_not_equal(bytes, zeros, sizeof bytes);
    pointer = cci_alloc(10);
    assert_non_null(pointer);
    cci_release(pointer);
    cci_release(NULL);
    setup.random = give_bytes;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_random(bytes, 4), CCI_SUCCESS);
    assert_int_equal(bytes[3], 9);
    assert_int_equal(cci_random(bytes, 3), CCI_ERROR);
    pointer = cci_alloc(10);
    assert_int_equal(blocks, 1);
    cci_release(pointer);
    cci_release(NULL);
    cci_log(CCI_LOG_DEBUG, "a word");
    assert_logged("a word\n");
}

static void statuses_and_event_types_have_texts(void **state) {
    int i;
    (void)state;
    assert_string_equal(cci_strerror(NULL, CCI_SUCCESS), "success");
    assert_string_equal(cci_strerror(NULL, CCI_ECONNREFUSED), "connection refused");
    assert_null(cci_strerror(NULL, (enum cci_status)9));
    assert_null(cci_strerror(NULL, CCI_STATUS_NONE_));
    assert_string_equal(cci_status_hint(CCI_ETIMEDOUT), "check that the peer runs and calls cci_get_event()");
    assert_null(cci_status_hint((enum cci_status)9));
    assert_string_equal(cci_event_type_str(CCI_EVENT_RECV), "CCI_EVENT_RECV");
    for (i = 0; i <= (int)CCI_EVENT_DISCONNECT; i++) {
        assert_non_null(cci_event_type_str((cci_event_type_t)i));
    }
    assert_null(cci_event_type_str((cci_event_type_t)99));
}

/* ---- transports -------------------------------------------------------------------------------------------------- */

static void transports_are_checked_when_they_are_registered(void **state) {
    static const cci_transport_t *const twice[] = {&apple, &apple, NULL};
    cci_transport_t bad = cherry;
    cci_setup_t setup = hooks();
    const char *name = NULL;
    (void)state;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_register_transport(NULL), CCI_EINVAL);
    assert_int_equal(cci_deregister_transport(NULL), CCI_EINVAL);
    assert_int_equal(cci_deregister_transport(&cherry), CCI_ERR_NOT_FOUND);
    bad.version = 0;
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    bad.version = CCI_TRANSPORT_VERSION + 1;
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    bad = cherry;
    bad.name = "";
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    bad.name = "a://b";
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    bad.name = NULL;
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    bad = cherry;
    bad.create = NULL;
    assert_int_equal(cci_register_transport(&bad), CCI_EINVAL);
    assert_int_equal(cci_register_transport(&apple), CCI_EBUSY);
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(cci_register_transport(&cherry), CCI_EBUSY);
    assert_non_null(cci_transport_reason(2, &name));
    assert_string_equal(name, "cherry");
    setup.transports = twice;
    assert_int_equal(cci_setup(&setup), CCI_EBUSY);
    assert_non_null(cci_transport_reason(1, &name));
    assert_string_equal(name, "berry"); /* nothing has changed */
}

static void there_are_at_most_16_transports(void **state) {
    static char names[17][4];
    static cci_transport_t many[17];
    int i;
    (void)state;
    assert_int_equal(cci_setup(NULL), CCI_SUCCESS);
    for (i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        many[i] = cherry;
        many[i].name = names[i];
        assert_int_equal(cci_register_transport(&many[i]), i < 16 ? CCI_SUCCESS : CCI_ENOBUFS);
    }
    for (i = 0; i < 16; i++) assert_int_equal(cci_deregister_transport(&many[i]), CCI_SUCCESS);
    assert_null(cci_transport_reason(0, NULL));
}

static void a_transport_says_why_it_has_no_devices(void **state) {
    const char *name = NULL;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    fakes[1].discover_status = CCI_ERR_NOT_FOUND;
    fakes[1].why = "libberry.so.1 not found";
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_string_equal(cci_transport_reason(0, &name), "");
    assert_string_equal(name, "apple");
    assert_string_equal(cci_transport_reason(1, NULL), "libberry.so.1 not found");
    assert_null(cci_transport_reason(2, &name));
    assert_logged("berry: libberry.so.1 not found");
    assert_int_equal(log_count, 1);
    devices();
    assert_int_equal(log_count, 1); /* it is no news any more */
    fakes[1].discover_status = CCI_SUCCESS;
    fakes[1].why = NULL;
    propose(&fakes[1], "bus", 1, 10);
    assert_devices("eth0 bus");
    assert_string_equal(cci_transport_reason(1, NULL), "");
}

static void a_transport_registered_later_brings_its_devices(void **state) {
    cci_device_t *first;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    propose(&fakes[2], "fast", 1, 90);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_devices("eth0");
    first = devices()[0];
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_devices("fast eth0");
    assert_ptr_equal(devices()[1], first);
    assert_int_equal(cci_deregister_transport(&cherry), CCI_SUCCESS);
    assert_devices("fast eth0"); /* a device that was given out stays */
    assert_int_equal(devices()[0]->up, 0);
    assert_string_equal(devices()[0]->transport, "cherry");
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_devices("fast eth0");
    assert_int_equal(devices()[0]->up, 1);
}

static void a_transport_with_an_open_endpoint_stays(void **state) {
    cci_endpoint_t *endpoint;
    (void)state;
    propose(&fakes[2], "fast", 1, 90);
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_deregister_transport(&cherry), CCI_EBUSY);
    assert_int_equal(cci_deregister_transport(&berry), CCI_SUCCESS); /* its neighbours move up */
    assert_int_equal(cci_deregister_transport(&cherry), CCI_EBUSY);
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    assert_int_equal(cci_deregister_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ENODEV);
}

/* ---- devices without configuration ------------------------------------------------------------------------------- */

static void proposed_devices_come_best_first(void **state) {
    (void)state;
    propose(&fakes[0], "low", 1, 10);
    propose(&fakes[0], "mid", 1, 50);
    propose(&fakes[1], "top", 1, 1000);
    propose(&fakes[1], "also", 1, 50);
    propose(&fakes[0], "next", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_devices("top mid next also low");
}

static void a_proposed_device_is_copied(void **state) {
    cci_device_t *device;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    device = devices()[0];
    assert_string_equal(device->name, "eth0");
    assert_string_equal(device->info, "proposed");
    assert_string_equal(device->transport, "apple");
    assert_int_equal(device->up, 1);
    assert_int_equal(device->max_send_size, 1000);
    assert_true(device->rate == 10000000000u);
    assert_int_equal(device->pci.bus, 3);
    assert_non_null(device->conf_argv);
    assert_null(device->conf_argv[0]);
    assert_int_equal(((const uint8_t *)cci_device_data(device))[191], 7);
    assert_null(cci_device_data(NULL));
}

static void equal_names_of_two_transports_get_a_suffix(void **state) {
    (void)state;
    propose(&fakes[0], "lo", 1, 50);
    propose(&fakes[1], "lo", 1, 40);
    propose(&fakes[1], "", 1, 40); /* what has no name is refused */
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_devices("lo lo.berry");
    assert_devices("lo lo.berry");
    assert_int_equal(worst_level, CCI_LOG_INFO);
}

/* A device of the name with the suffix is there before it is needed. */
static void a_device_for_which_no_name_is_left_is_not_listed_and_the_log_says_so(void **state) {
    (void)state;
    propose(&fakes[0], "lo", 1, 50);
    propose(&fakes[0], "lo.berry", 1, 45);
    propose(&fakes[1], "lo", 1, 40);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_devices("lo lo.berry");
    assert_logged("no name is left for device lo");
}

static void refreshing_shows_changes_and_keeps_pointers(void **state) {
    cci_device_t *const *before;
    cci_device_t *device;
    const char *info;
    (void)state;
    assert_int_equal(init_with("[x]\ntransport=apple"), CCI_SUCCESS);
    before = devices();
    device = before[0];
    info = device->info;
    assert_int_equal(device->up, 1);
    fakes[0].refresh_up = 0;
    fakes[0].refresh_info = "cable is out";
    assert_ptr_equal(devices(), before); /* nothing new: the same array */
    assert_int_equal(device->up, 0);
    assert_int_equal(device->max_send_size, 77);
    assert_string_equal(device->info, "cable is out");
    assert_string_equal(info, "configured"); /* what was shown before is still there */
    fakes[0].refresh_up = 1;
    fakes[0].refresh_info = "configured";
    devices();
    assert_int_equal(device->up, 1);
    assert_ptr_equal(device->info, info); /* and found again */
}

static void devices_come_and_go(void **state) {
    cci_device_t *const *before;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    before = devices();
    propose(&fakes[0], "eth1", 1, 60);
    assert_devices("eth1 eth0");
    assert_ptr_equal(devices()[1], before[0]);
    assert_null(before[1]); /* the old array is as it was */
    fakes[0].desc_count = 1;
    assert_devices("eth1 eth0");
    assert_int_equal(devices()[0]->up, 0);
    assert_int_equal(devices()[1]->up, 1);
    fakes[0].discover_status = CCI_ERROR; /* a failure tells nothing about the devices */
    assert_int_equal(devices()[1]->up, 1);
    assert_int_equal(cci_get_devices(NULL), CCI_EINVAL);
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static void the_configuration_is_read_as_the_manual_describes_it(void **state) {
    cci_device_t *device;
    (void)state;
    assert_int_equal(init_with("\xef\xbb\xbf# a comment\r\n"
                               "\r\n"
                               "[ bob0 ] # spaces\r\n"
                               "  transport\t=  apple  \r\n"
                               "priority = 10\n"
                               "colour = red, green = blue # not this\n"
                               "size=\t3\n"
                               "default = 1\n"
                               "[bob1]\n"
                               "transport = berry\n"
                               "[high]\npriority=100\ndefault=no\n\n\ntransport=apple"),
                     CCI_SUCCESS);
    assert_devices("high bob1 bob0");
    assert_int_equal(log_count, 0);
    device = devices()[2];
    assert_string_equal(device->transport, "apple");
    assert_string_equal(device->conf_argv[0], "colour=red, green = blue");
    assert_string_equal(device->conf_argv[1], "size=3");
    assert_null(device->conf_argv[2]);
    assert_int_equal(device->max_send_size, 3);
    assert_int_equal(device->pci.func, UINT32_MAX);
    assert_int_equal(*(const uint8_t *)cci_device_data(device), 42);
    assert_null(devices()[0]->conf_argv[0]);
    assert_null(devices()[1]->conf_argv[0]);
}

static void errors_in_the_configuration_name_their_line(void **state) {
    static const struct {
        const char *config, *message;
    } wrong[] = {
        {"\n\ncolour = red\n", "config:3: a key stands before"},
        {"[x\n", "config:1: \"]\" is missing"},
        {"[x] y\n", "config:1: there is text behind"},
        {"[x] ]\n", "config:1: there is text behind"},
        {"[ ]\n", "config:1: the section has no name"},
        {"[]", "config:1: the section has no name"},
        {"[x]\n\n", "config:1: section [x] has no key \"transport\""},
        {"#\n[x]\nsize=1\n[y]\ntransport=apple", "config:2: section [x] has no key \"transport\""},
        {"[x]\ntransport=apple\n[y]\ntransport=apple\n[ x ]\n", "config:5: there is already a section [x]"},
        {"[x]\nwhat\n", "config:2: \"key = value\" is expected, not \"what\""},
        {"[x]\n = 5\n", "config:2: the key before \"=\" is missing"},
        {"[x]\ntransport=\n", "config:2: \"transport\" has no value"},
        {"[x]\ntransport=apple\ntransport=berry\n", "config:3: \"transport\" is set twice"},
        {"[x]\npriority=1\npriority=1\n", "config:3: \"priority\" is set twice"},
        {"[x]\npriority=101\n", "config:2: priority is a number from 0 to 100, not \"101\""},
        {"[x]\npriority=-1\n", "config:2: priority is"},
        {"[x]\npriority=\n", "config:2: priority is"},
        {"[x]\npriority=5x\n", "config:2: priority is"},
        {"[x]\npriority=4294967297\n", "config:2: priority is"},
        {"[x]\ndefault=2\n", "config:2: default is 0 or 1, not \"2\""},
        {"[x]\ndefault=0\ndefault=0\n", "config:3: \"default\" is set twice"},
        {"[x]\ndefault=1\ntransport=apple\n[y]\ndefault=yes\n",
         "config:5: only one device can be the default, and line 2 has it"},
        {"[x]\ntransport=apple\nsize=1\ncolour=a\nsize = 2\n", "config:5: the key of \"size=2\" is set twice"},
        {"[x]\nsize=x\n\ntransport=apple\n", "config:2: apple: size is a digit"},
        {"[x]\ncolour=a\ntransport=apple\n\npriority=1\nsmell=bad\n", "config:6: apple: unknown key \"smell=bad\""},
        {"[x]\n\x1b[31m\n", "not \"?[31m\""}, /* no byte of it reaches the terminal unchanged */
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (init_with(wrong[i].config) != CCI_ERROR) fail_msg("taken: %s", wrong[i].config);
        assert_logged(wrong[i].message);
        assert_int_equal(log_count, 1);
        assert_int_equal(worst_level, CCI_LOG_ERROR);
        assert_int_equal(blocks, 0);
    }
}

static void keys_that_begin_alike_are_different_keys(void **state) {
    cci__ini_t ini;
    static const char text[] = "[x]\ntransport=t\na=1\naa=2\nab=\n";
    (void)state;
    assert_int_equal(cci__ini_parse("f", text, sizeof text - 1, &ini), CCI_SUCCESS);
    assert_int_equal(ini.sections[0].arg_count, 3);
    assert_string_equal(ini.args[2], "ab=");
    assert_int_equal(ini.arg_lines[1], 4);
    cci__ini_free(&ini);
}

/* Repeats a piece of text, with its number where it has a %d. */
static char *repeat(const char *piece, int count) {
    size_t size = (size_t)count * (strlen(piece) + 8) + 1;
    char *text = (char *)malloc(size), *at = text;
    int i;
    assert_non_null(text);
    for (i = 0; i < count; i++) {
        const char *from;
        for (from = piece; *from != '\0'; from++) {
            if (*from == '%') at += snprintf(at, 8, "%d", i);
            else *at++ = *from;
        }
    }
    *at = '\0';
    return text;
}

static void the_configuration_has_limits(void **state) {
    static const struct {
        const char *piece;
        int count, status;
        const char *message;
    } cases[] = {
        {"[s%]\ntransport=t\n", 1024, CCI_SUCCESS, ""},
        {"[s%]\ntransport=t\n", 1025, CCI_ERROR, "f:2049: too many sections"},
        {"#", 4096, CCI_SUCCESS, ""},
        {"#", 4097, CCI_ERROR, "f:1: the line is too long"},
        {"\n", 1 << 20, CCI_SUCCESS, ""},
        {"\n", (1 << 20) + 1, CCI_ERROR, "f: the configuration is longer than 1 MiB"},
        {"[", 1 << 12, CCI_ERROR, "f:1: \"]\" is missing"},
        {"=\n", 1 << 19, CCI_ERROR, "f:1: a key stands before"},
    };
    char *keys = repeat("k%=\n", 65), *text;
    cci_setup_t setup = hooks();
    cci__ini_t ini;
    size_t i;
    (void)state;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text = repeat(cases[i].piece, cases[i].count);
        log_clear();
        assert_int_equal(cci__ini_parse("f", text, strlen(text), &ini), cases[i].status);
        assert_logged(cases[i].message);
        cci__ini_free(&ini);
        free(text);
    }
    text = (char *)malloc(strlen(keys) + 32);
    assert_non_null(text);
    strcat(strcpy(text, "[s]\ntransport=t\n"), keys);
    assert_int_equal(cci__ini_parse("f", text, strlen(text), &ini), CCI_ERROR);
    assert_logged("f:67: too many keys");
    free(text);
    free(keys);
    assert_int_equal(cci__ini_parse("f", "[x]\n\0\n", 6, &ini), CCI_ERROR);
    assert_logged("f:2: the line has a byte 0");
}

static void no_text_breaks_the_parser(void **state) {
    static const char alphabet[] = "[]=# \t\r\n\nabtransport=1\n[priority=5\ndefault=1\n\0\xff";
    uint32_t random = 12345;
    cci_setup_t setup = hooks();
    int round;
    (void)state;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    for (round = 0; round < 5000; round++) {
        char *text;
        size_t length, i;
        cci__ini_t ini;
        log_clear();
        random = random * 1664525u + 1013904223u;
        length = (random >> 16) % 60;
        text = (char *)malloc(length + (length == 0)); /* exactly: a sanitizer sees a byte too many */
        assert_non_null(text);
        for (i = 0; i < length; i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = alphabet[(random >> 16) % (sizeof alphabet - 1)];
        }
        if (cci__ini_parse("f", text, length, &ini) == CCI_SUCCESS) cci__ini_free(&ini);
        free(text);
        assert_int_equal(blocks, 0);
    }
}

static void a_section_of_an_unknown_transport_waits_for_it(void **state) {
    (void)state;
    assert_int_equal(init_with("[x]\ntransport=cherry\nsize=9\n[y]\ntransport=verbs\n"), CCI_SUCCESS);
    assert_logged("config:1: this program has no transport \"cherry\": the section is skipped");
    assert_logged("config:4: this program has no transport \"verbs\"");
    assert_int_equal(worst_level, CCI_LOG_WARN);
    assert_devices("");
    assert_string_equal(cci_transport_reason(0, NULL), "the configuration has no device of it");
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_devices("x");
    assert_int_equal(devices()[0]->max_send_size, 9);
    assert_int_equal(cci_deregister_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(devices()[0]->up, 0);
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    assert_int_equal(devices()[0]->up, 1);
}

static void a_late_section_with_an_error_costs_only_itself(void **state) {
    (void)state;
    assert_int_equal(init_with("[x]\ntransport=cherry\nsize=no\n[y]\ntransport=apple\n"), CCI_SUCCESS);
    assert_int_equal(cci_register_transport(&cherry), CCI_SUCCESS);
    log_clear();
    assert_devices("y");
    assert_logged("config:3: cherry: size is a digit");
    assert_devices("y");
    assert_int_equal(log_count, 1);
}

static void a_transport_can_fail_to_configure_without_reason(void **state) {
    cci_transport_t plain = cherry;
    (void)state;
    fakes[0].discover_status = CCI_ENODEV;
    assert_int_equal(init_with("\n[x]\ntransport=apple\n"), CCI_ERROR);
    assert_logged("config:2: apple: no device available");
    fakes[0].discover_status = CCI_ENOMEM;
    assert_int_equal(init_with("[x]\ntransport=apple\n"), CCI_ENOMEM);
    plain.name = "plain";
    plain.configure = NULL;
    plain.discover = NULL;
    assert_int_equal(cci_register_transport(&plain), CCI_SUCCESS);
    assert_int_equal(init_with("[x]\ntransport=plain\n"), CCI_ERROR);
    assert_logged("config:1: plain: it takes no configuration");
    fakes[0].discover_status = CCI_SUCCESS;
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_string_equal(cci_transport_reason(2, NULL), "it works with a configuration only");
    assert_int_equal(cci_deregister_transport(&plain), CCI_SUCCESS);
}

#ifndef CCI_NO_STDIO
static void write_file(const char *name, const char *text, size_t length) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void the_environment_names_the_configuration_file(void **state) {
    char name[] = "/tmp/test_core_XXXXXX", message[64];
    char *large = repeat("# it goes on and on\n", 1000);
    int fd = mkstemp(name);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    setenv("CCI_CONFIG", name, 1);
    write_file(name, "[x]\ntransport=apple", 19);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_devices("x");
    cci_finalize();
    write_file(name, large, strlen(large)); /* longer than what is read at once */
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    cci_finalize();
    write_file(name, "\nx", 2);
    assert_int_equal(init_with(NULL), CCI_ERROR);
    snprintf(message, sizeof message, "%s:2: ", name);
    assert_logged(message);
    assert_int_equal(init_with("[y]\ntransport=berry"), CCI_SUCCESS); /* the text goes before the file */
    assert_devices("y");
    cci_finalize();
    setenv("CCI_CONFIG", "", 1);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    cci_finalize();
    unlink(name);
    free(large);
}

static void a_configuration_file_that_cannot_be_read_gives_a_status_of_its_own(void **state) {
    (void)state;
    setenv("CCI_CONFIG", "/nonexistent/cci.ini", 1);
    assert_int_equal(init_with(NULL), CCI_ERR_NOT_FOUND);
    assert_logged("/nonexistent/cci.ini: cannot open the file");
    setenv("CCI_CONFIG", "/", 1);
    assert_int_equal(init_with(NULL), CCI_ERROR);
#ifdef _WIN32
    assert_logged(strerror(EACCES));
#else
    assert_logged(strerror(EISDIR));
#endif
    assert_int_equal(blocks, 0);
}

static void no_errno_of_the_system_is_taken_for_a_status(void **state) {
    int error, status;
    (void)state;
    setenv("CCI_CONFIG", "any.ini", 1);
    for (error = 1; error < 140; error++) {
        open_error = error;
        status = init_with(NULL);
        open_error = 0;
        assert_int_equal(status, cci_status_of_errno(error));
        assert_int_not_equal(status, CCI_SUCCESS);
        assert_non_null(cci_strerror(NULL, (cci_status_t)status));
        assert_logged(strerror(error));
#ifdef CCI_NO_ERRNO
        assert_true(status != CCI_ERR_DEVICE_DEAD && status != CCI_ERR_RMA_OP && status != CCI_ERR_NOT_IMPLEMENTED);
#else
        /* what has a status of its own, and the three that come near one; all others are a generic error */
        if (status != CCI_ERROR && status != error)
            assert_true(error == ENOENT || error == EMFILE || error == ENFILE || error == EADDRINUSE);
        assert_true(status != error || status > CCI_ERR_NOT_FOUND || error == EPERM);
#endif
    }
    assert_int_equal(cci_status_of_errno(EAGAIN), CCI_EAGAIN);
    assert_int_equal(cci_status_of_errno(EADDRNOTAVAIL), CCI_EADDRNOTAVAIL);
    assert_int_equal(cci_status_of_errno(ECONNREFUSED), CCI_ECONNREFUSED);
    assert_int_equal(cci_status_of_errno(ENOENT), CCI_ERR_NOT_FOUND);
    assert_int_equal(cci_status_of_errno(EPERM), CCI_ERROR);
    assert_int_equal(cci_status_of_errno(EACCES), CCI_ERROR);
    assert_int_equal(cci_status_of_errno(EIO), CCI_ERROR);
    assert_int_equal(cci_status_of_errno(EMFILE), CCI_ENOMEM);
    assert_int_equal(cci_status_of_errno(EADDRINUSE), CCI_EBUSY);
    assert_int_equal(cci_status_of_errno(0), CCI_ERROR);
    assert_int_equal(blocks, 0);
}
#endif

/* ---- endpoints --------------------------------------------------------------------------------------------------- */

static void an_endpoint_is_made_on_the_given_device(void **state) {
    cci_endpoint_t *endpoint = NULL;
    struct cci_device stranger;
    cci_os_handle_t fd = -1;
    (void)state;
    memset(&stranger, 0, sizeof stranger);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ERROR); /* not initialized */
    propose(&fakes[0], "eth0", 1, 50);
    propose(&fakes[1], "bus", 1, 40);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, NULL, NULL), CCI_EINVAL);
    assert_int_equal(cci_create_endpoint(&stranger, 0, &endpoint, NULL), CCI_EINVAL);
    assert_int_equal(cci_create_endpoint_at(devices()[1], "http", 4, &endpoint, &fd), CCI_EINVAL);
    assert_null(endpoint);
    assert_int_equal(cci_create_endpoint_at(devices()[1], "http", 0, &endpoint, &fd), CCI_SUCCESS);
    assert_ptr_equal(endpoint->device, devices()[1]);
    assert_int_equal(fd, 5);
    assert_string_equal(fakes[1].service, "http");
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    assert_int_equal(fakes[1].destroyed, 1);
    assert_int_equal(cci_destroy_endpoint(NULL), CCI_EINVAL);
    fakes[0].refresh_up = 0;
    assert_int_equal(cci_create_endpoint(devices()[0], 0, &endpoint, NULL), CCI_ENODEV);
    allocations = 0;
    fail_at = 0;
    assert_int_equal(cci_create_endpoint(devices()[1], 0, &endpoint, NULL), CCI_ENOMEM);
}

static int only_the_bus_has_a_link(cci_device_t *device, const char *service, int flags, cci_endpoint_base_t **endpoint,
                                   cci_os_handle_t *fd) {
    return strcmp(device->name, "bus") == 0 ? (int)CCI_ERR_NOT_IMPLEMENTED
                                            : fake_create(device, service, flags, endpoint, fd);
}

static int opened_links;

static int refusing_open(cci_device_t *device, const char *service, int want_os_handle, void **link,
                         cci_link_info_t *info) {
    (void)device, (void)service, (void)want_os_handle, (void)link, (void)info;
    opened_links++;
    return CCI_ENOBUFS;
}

static void a_transport_may_have_endpoints_and_a_link_too(void **state) {
    cci_link_t link;
    cci_endpoint_t *endpoint = NULL;
    (void)state;
    memset(&link, 0, sizeof link);
    link.version = CCI_LINK_VERSION;
    link.open = refusing_open;
    propose(&fakes[0], "eth0", 1, 50);
    propose(&fakes[0], "bus", 1, 40);
    apple.link = &link;
    apple.create = only_the_bus_has_a_link;
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices()[0], 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(fakes[0].opened, 1);
    assert_int_equal(opened_links, 0);
    assert_int_equal(cci_create_endpoint(devices()[1], 0, &endpoint, NULL), CCI_ENOBUFS);
    assert_int_equal(opened_links, 1);
    cci_finalize();
    apple.link = NULL;
    apple.create = fake_create;
}

static void null_stands_for_the_default_device_or_the_first_that_is_up(void **state) {
    cci_endpoint_t *endpoint = NULL;
    (void)state;
    assert_int_equal(init_with("[x]\ntransport=apple\npriority=90\n[y]\ntransport=berry\ndefault=true\n"), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_string_equal(endpoint->device->name, "y");
    fakes[1].refresh_up = 0;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_string_equal(endpoint->device->name, "x");
    assert_logged("y, the default device, is down; the endpoint is made on x");
    fakes[0].refresh_up = 0;
    fakes[0].refresh_info = "no carrier";
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ENODEV);
    assert_logged("x is down: no carrier");
    fakes[1].refresh_up = 1;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_string_equal(endpoint->device->name, "y");
}

static void a_much_better_device_that_is_down_is_named(void **state) {
    cci_endpoint_t *endpoint = NULL;
    (void)state;
    assert_int_equal(init_with("[x]\ntransport=apple\npriority=50\n[y]\ntransport=berry\npriority=41\n"
                               "[z]\ntransport=berry\npriority=30\n"), CCI_SUCCESS);
    fakes[0].refresh_up = 0;
    log_clear();
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_string_equal(endpoint->device->name, "y");
    assert_int_equal(log_count, 0); /* about as good */
    cci_finalize();
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ERROR);
    assert_logged("cci_create_endpoint(): call cci_init() first");
    assert_int_equal(init_with("[x]\ntransport=apple\npriority=50\n[z]\ntransport=berry\npriority=30\n"), CCI_SUCCESS);
    log_clear();
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_string_equal(endpoint->device->name, "z");
    assert_logged("x is down; the endpoint is made on z");
}

static void the_environment_says_what_is_logged(void **state) {
    static const struct {
        const char *name;
        int most;
    } levels[] = {{"error", CCI_LOG_ERROR}, {"warn", CCI_LOG_WARN}, {"info", CCI_LOG_INFO}, {"debug", CCI_LOG_DEBUG},
                  {"?", CCI_LOG_INFO},      {"", CCI_LOG_INFO}};
    size_t i;
    int level;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    for (i = 0; i < sizeof levels / sizeof *levels; i++) {
        setenv("CCI_LOG", levels[i].name, 1);
        log_clear();
        assert_int_equal(init_with(NULL), CCI_SUCCESS);
        if (levels[i].name[0] == '?') assert_logged("CCI_LOG in the environment is none of");
        unsetenv("CCI_LOG");
        for (level = CCI_LOG_ERROR; level <= CCI_LOG_DEBUG; level++) {
            log_clear();
            cci_log(level, "a line");
            assert_int_equal(log_count, level <= levels[i].most || i >= 4); /* a hook gets all, unless it says otherwise */
            assert_int_equal(cci_log_wants(level), level <= levels[i].most);
        }
        cci_finalize();
    }
    assert_int_equal(init_with(NULL), CCI_SUCCESS); /* as ever */
    assert_true(cci_log_wants(CCI_LOG_INFO) && !cci_log_wants(CCI_LOG_DEBUG));
}

static void the_program_says_what_is_logged_unless_the_environment_does(void **state) {
    int chosen, level;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    for (chosen = CCI_LOG_ERROR; chosen <= CCI_LOG_DEBUG; chosen++) {
        wanted_log_level = chosen + 1;
        assert_int_equal(init_with(NULL), CCI_SUCCESS);
        for (level = CCI_LOG_ERROR; level <= CCI_LOG_DEBUG; level++) {
            log_clear();
            cci_log(level, "a line");
            assert_int_equal(log_count, level <= chosen);
            assert_int_equal(cci_log_wants(level), level <= chosen);
        }
        cci_finalize();
        setenv("CCI_LOG", "warn", 1);
        assert_int_equal(init_with(NULL), CCI_SUCCESS);
        unsetenv("CCI_LOG");
        assert_true(cci_log_wants(CCI_LOG_WARN) && !cci_log_wants(CCI_LOG_INFO));
        cci_finalize();
    }
    wanted_log_level = CCI_LOG_DEBUG + 2;
    assert_int_equal(init_with(NULL), CCI_ERANGE);
    wanted_log_level = -1;
    assert_int_equal(init_with(NULL), CCI_ERANGE);
    wanted_log_level = 0;
}

static void a_default_endpoint_that_only_this_host_reaches_is_made_with_a_warning(void **state) {
    static const char *const local[] = {"apple://127.0.0.1:80", "apple://127.8.8.8:80", "apple://[::1]:80"};
    static const char *const distant[] = {"apple://192.0.2.1:80", "apple://[::1234]:80", "apple://12.7.0.1:80", "apple:127.0.0.1"};
    cci_endpoint_t *ep;
    char text[100];
    size_t i;
    (void)state;
    propose(&fakes[0], "lo", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    for (i = 0; i < sizeof local / sizeof *local; i++) {
        fake_uri = local[i];
        log_clear();
        assert_int_equal(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
        snprintf(text, sizeof text, "%s: only this host reaches the default endpoint", local[i]);
        assert_logged(text);
        assert_int_equal(log_count, 1);
        log_clear();
        assert_int_equal(cci_create_endpoint(devices()[0], 0, &ep, NULL), CCI_SUCCESS); /* who asks for it knows */
        assert_int_equal(log_count, 0);
    }
    for (i = 0; i < sizeof distant / sizeof *distant; i++) {
        fake_uri = distant[i];
        log_clear();
        assert_int_equal(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
        assert_int_equal(log_count, 0);
    }
    cci_finalize();
    fake_uri = local[0];
    assert_int_equal(init_with("[x]\ntransport=apple"), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS); /* likewise */
    assert_int_equal(log_count, 0);
    fake_uri = NULL;
}

static void finalize_destroys_the_endpoints_that_are_left(void **state) {
    cci_endpoint_t *first, *second, *third;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &first, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &second, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &third, NULL), CCI_SUCCESS);
    assert_int_equal(cci_destroy_endpoint(second), CCI_SUCCESS);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(fakes[0].destroyed, 3);
    assert_int_equal(blocks, 0);
}

/* ---- arguments and dispatch -------------------------------------------------------------------------------------- */

/* Makes an endpoint of the fake transport, which holds a connection and an event. */
static fake_endpoint_t *fake_open(cci_endpoint_t **endpoint) {
    propose(&fakes[0], "eth0", 1, 50);
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, endpoint, NULL), CCI_SUCCESS);
    fakes[0].last = NULL; /* the core has asked for its URI */
    return (fake_endpoint_t *)(uintptr_t)*endpoint;
}

static void assert_called(const char *operation) {
    assert_non_null(fakes[0].last);
    assert_string_equal(fakes[0].last, operation);
    fakes[0].last = NULL;
}

static void connect_checks_its_arguments(void **state) {
    static const char *const bad_uris[] = {"", "apple", "apple:host", "apple://", "berry://host", "appl://host",
                                           "apples://host", "://host"};
    struct timeval timeout = {1, 0};
    cci_endpoint_t *ep;
    char data[1] = {0};
    size_t i;
    (void)state;
    fake_open(&ep);
#define CONNECT(uri, data, length, attribute)                                                                          \
    cci_connect(ep, uri, data, length, (cci_conn_attribute_t)(attribute), &ep, 0, &timeout)
    for (i = 0; i < sizeof bad_uris / sizeof bad_uris[0]; i++) {
        assert_int_equal(CONNECT(bad_uris[i], NULL, 0, 0), CCI_EINVAL);
    }
    assert_int_equal(cci_connect(NULL, "apple://h", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    assert_int_equal(CONNECT(NULL, NULL, 0, 0), CCI_EINVAL);
    assert_int_equal(CONNECT("apple://h", NULL, 1, 0), CCI_EINVAL);
    assert_int_equal(CONNECT("apple://h", data, 1025, 0), CCI_EINVAL);
    assert_int_equal(CONNECT("apple://h", NULL, 0, 5), CCI_EINVAL);
    assert_int_equal(CONNECT("apple://h", NULL, 0, -1), CCI_EINVAL);
    timeout.tv_sec = -1;
    assert_int_equal(CONNECT("apple://h", NULL, 0, 0), CCI_EINVAL);
    timeout.tv_sec = 0;
    timeout.tv_usec = -1;
    assert_int_equal(CONNECT("apple://h", NULL, 0, 0), CCI_EINVAL);
    timeout.tv_usec = 1000000;
    assert_int_equal(CONNECT("apple://h", NULL, 0, 0), CCI_EINVAL);
    assert_null(fakes[0].last);
    timeout.tv_usec = 999999;
    assert_int_equal(CONNECT("apple://host:7", data, 1024, 4), CCI_SUCCESS);
    assert_called("connect");
    assert_string_equal(fakes[0].address, "host:7");
    assert_ptr_equal(fakes[0].context, &ep);
    assert_int_equal(cci_connect(ep, "any://h", NULL, 0, CCI_CONN_ATTR_RU, NULL, 0, NULL), CCI_SUCCESS);
    assert_string_equal(fakes[0].address, "h");
#undef CONNECT
}

static int refuse_address(cci_endpoint_base_t *endpoint, const char *address, const void *data, uint32_t data_len,
                          cci_conn_attribute_t attribute, void *context, int flags, const struct timeval *timeout) {
    (void)endpoint, (void)data, (void)data_len, (void)attribute, (void)context, (void)flags, (void)timeout;
    return strncmp(address, "nowhere", 7) == 0 ? CCI_EADDRNOTAVAIL : CCI_EINVAL;
}

static void the_log_says_what_is_wrong_with_a_uri(void **state) {
    static const struct {
        const char *uri, *fault;
    } refused[] = {
        {"", "cannot connect to \"\": it does not begin with a transport, as in udp://host:port"},
        {"192.0.2.1:80", "does not begin with a transport"},
        {"apple:/host:80", "does not begin with a transport"},
        {"://host:80", "does not begin with a transport"},
        {"durian://host:80", "this program has no transport durian"},
        {"berry://host:80", "it needs an endpoint of another device; this one's transport is apple"},
        {"apple://", "nothing stands behind ://"},
        {"apple://host", "cannot connect to \"apple://host\": it has no port"},
        {"any://host", "it has no port"},
        {"apple://[2001:db8::1]", "it has no port"},
        {"apple://:80", "it has no host"},
        {"apple://host:", "its port is not a number from 1 to 65535"},
        {"apple://host:0", "its port is not a number"},
        {"apple://host:65536", "its port is not a number"},
        {"apple://host:99999999999999999999999999", "its port is not a number"},
        {"apple://host:80x", "its port is not a number"},
        {"apple://2001:db8::1:80", "an IPv6 address stands in brackets"},
        {"apple://host:80", "its address is none for a connection of this attribute"},
        {"apple://nowhere:80", "no such host, or none that this device can reach"},
    };
    cci_endpoint_t *ep;
    cci_endpoint_ops_t ops = fake_ops;
    char longest[2000];
    size_t i;
    (void)state;
    fake_open(&ep);
    ops.connect = refuse_address;
    ((cci_endpoint_base_t *)(void *)(uintptr_t)ep)->ops = &ops;
    for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        log_clear();
        assert_int_equal(cci_connect(ep, refused[i].uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL),
                         strstr(refused[i].uri, "nowhere") ? CCI_EADDRNOTAVAIL : CCI_EINVAL);
        assert_logged(refused[i].fault);
        assert_int_equal(log_count, 1);
        assert_int_equal(worst_level, CCI_LOG_WARN);
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest + 1000, "://", 3);
    assert_int_equal(cci_connect(ep, longest, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_EINVAL);
    ((cci_endpoint_base_t *)(void *)(uintptr_t)ep)->ops = &fake_ops;
}

static void sends_check_their_arguments(void **state) {
    const int both = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
    cci_endpoint_t *ep;
    struct cci_connection *conn = &fake_open(&ep)->connection;
    struct iovec pieces[2] = {{NULL, 0}, {NULL, 1}};
    static const cci_conn_attribute_t no_order[] = {CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU, CCI_CONN_ATTR_UU_MC_TX};
    size_t i;
    (void)state;
    assert_int_equal(cci_send(NULL, "x", 1, NULL, 0), CCI_EINVAL);
    assert_int_equal(cci_send(conn, NULL, 1, NULL, 0), CCI_EINVAL);
    assert_int_equal(cci_sendv(NULL, pieces, 1, NULL, 0), CCI_EINVAL);
    assert_int_equal(cci_sendv(conn, NULL, 1, NULL, 0), CCI_EINVAL);
    assert_int_equal(cci_sendv(conn, pieces, 2, NULL, 0), CCI_EINVAL);
    for (i = 0; i < 3; i++) {
        conn->attribute = no_order[i];
        assert_int_equal(cci_send(conn, "x", 1, NULL, both), CCI_EINVAL);
        assert_int_equal(cci_send(conn, "x", 1, NULL, both | CCI_FLAG_BLOCKING), CCI_EINVAL);
        assert_int_equal(cci_sendv(conn, pieces, 1, NULL, both), CCI_EINVAL);
        assert_null(fakes[0].last);
        assert_int_equal(cci_send(conn, "x", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        assert_called("sendv");
    }
    conn->attribute = CCI_CONN_ATTR_UU_MC_RX;
    assert_int_equal(cci_send(conn, "x", 1, NULL, 0), CCI_EINVAL);
    assert_null(fakes[0].last);
    conn->attribute = CCI_CONN_ATTR_RO;
    assert_int_equal(cci_send(conn, "abc", 3, &ep, both), CCI_SUCCESS);
    assert_called("sendv");
    assert_int_equal(fakes[0].count, 1);
    assert_int_equal(fakes[0].piece.iov_len, 3);
    assert_memory_equal(fakes[0].piece.iov_base, "abc", 3);
    assert_ptr_equal(fakes[0].context, &ep);
    assert_int_equal(fakes[0].flags, both);
    assert_int_equal(cci_send(conn, NULL, 0, NULL, 0), CCI_SUCCESS);
    assert_int_equal(cci_sendv(conn, NULL, 0, NULL, 0), CCI_SUCCESS);
    assert_int_equal(fakes[0].count, 0);
}

static void rma_checks_its_arguments(void **state) {
    cci_endpoint_t *ep;
    struct cci_connection *conn = &fake_open(&ep)->connection;
    struct cci_rma_handle handle;
    cci_rma_handle_t *made;
    char *end_of_memory = (char *)(UINTPTR_MAX - 9);
    (void)state;
    memset(&handle, 0, sizeof handle);
    assert_int_equal(cci_rma_register(NULL, &handle, 1, 0, &made), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, NULL, 1, 0, &made), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, &handle, 0, 0, &made), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, &handle, 1, 0, NULL), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, &handle, UINT64_MAX, 0, &made), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, end_of_memory, 11, 0, &made), CCI_EINVAL);
    assert_null(fakes[0].last);
    assert_int_equal(cci_rma_register(ep, end_of_memory, 10, 0, &made), CCI_SUCCESS);
    assert_called("rma_register");
    assert_int_equal(cci_rma_deregister(NULL, &handle), CCI_EINVAL);
    assert_int_equal(cci_rma_deregister(ep, NULL), CCI_EINVAL);
    assert_int_equal(cci_rma_deregister(ep, &handle), CCI_SUCCESS);
    assert_called("rma_deregister");
#define RMA(conn, message, length, local, remote, size, flags)                                                         \
    cci_rma(conn, message, length, local, 0, remote, 0, size, &handle, flags)
    assert_int_equal(RMA(NULL, NULL, 0, &handle, &handle, 1, CCI_FLAG_READ), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 1, &handle, &handle, 1, CCI_FLAG_READ), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 0, NULL, &handle, 1, CCI_FLAG_READ), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 0, &handle, NULL, 1, CCI_FLAG_READ), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 0, &handle, &handle, 0, CCI_FLAG_READ), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 0, &handle, &handle, 1, 0), CCI_EINVAL);
    assert_int_equal(RMA(conn, NULL, 0, &handle, &handle, 1, CCI_FLAG_READ | CCI_FLAG_WRITE), CCI_EINVAL);
    conn->attribute = CCI_CONN_ATTR_UU;
    assert_int_equal(RMA(conn, NULL, 0, &handle, &handle, 1, CCI_FLAG_READ), CCI_EINVAL);
    assert_null(fakes[0].last);
    conn->attribute = CCI_CONN_ATTR_RU;
    assert_int_equal(RMA(conn, NULL, 0, &handle, &handle, 1, CCI_FLAG_WRITE | CCI_FLAG_FENCE), CCI_SUCCESS);
    assert_called("rma");
    assert_int_equal(fakes[0].flags, CCI_FLAG_WRITE | CCI_FLAG_FENCE);
    assert_ptr_equal(fakes[0].context, &handle);
#undef RMA
}

static void options_go_to_their_owner(void **state) {
    cci_endpoint_t *ep;
    struct cci_connection *conn = &fake_open(&ep)->connection;
    uint32_t value = 0;
    cci_caps_t caps;
    (void)state;
    assert_int_equal(cci_set_opt(NULL, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, NULL), CCI_EINVAL);
    assert_int_equal(cci_get_opt(NULL, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
    assert_int_equal(cci_get_opt(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, NULL), CCI_EINVAL);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_URI, &value), CCI_EINVAL);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_RMA_ALIGN, &value), CCI_EINVAL);
    assert_int_equal(cci_set_opt(ep, (cci_opt_name_t)1000, &value), CCI_EINVAL);
    assert_int_equal(cci_get_opt(ep, (cci_opt_name_t)1000, &value), CCI_EINVAL);
    assert_null(fakes[0].last);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, &value), CCI_SUCCESS);
    assert_called("set endpoint");
    assert_int_equal(cci_get_opt(ep, CCI_OPT_ENDPT_URI, &value), CCI_SUCCESS);
    assert_called("get endpoint");
    assert_int_equal(cci_set_opt(conn, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_SUCCESS);
    assert_called("set connection");
    assert_int_equal(cci_get_opt(conn, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &value), CCI_SUCCESS);
    assert_called("get connection");
    assert_int_equal(cci_get_opt(conn, CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_called("get connection");
    assert_int_equal(cci_get_opt(ep, CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_called("get endpoint");
    fakes[0].last = NULL;
    assert_int_equal(cci_get_opt(ep->device, CCI_OPT_CAPS, &caps), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_CAPS, &caps), CCI_EINVAL);
    assert_int_equal(cci_set_opt(conn, CCI_OPT_CONN_PEER_URI, &value), CCI_EINVAL);
    assert_null(fakes[0].last);
}

static void a_device_tells_what_it_can(void **state) {
    static const cci_caps_t told = {CCI_CAN_RMA | CCI_CAN_ORDERED, 4096, 5, 6, 7, 8, 9, 10, 11, {0}};
    cci_caps_t caps;
    (void)state;
    propose(&fakes[0], "eth0", 1, 50);
    fakes[0].desc[0].caps = &told;
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(devices()[0], CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_int_equal(caps.max_send_size, 1000); /* the device's own */
    caps.max_send_size = 5;
    assert_memory_equal(&caps, &told, sizeof caps);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    apple.version = 2; /* which had no such member */
    assert_int_equal(init_with(NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(devices()[0], CCI_OPT_CAPS, &caps), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    apple.version = CCI_TRANSPORT_VERSION;
}

static void events_and_connections_go_to_their_endpoint(void **state) {
    cci_endpoint_t *ep;
    fake_endpoint_t *fake = fake_open(&ep);
    cci_event_t *event = NULL;
    uint64_t deadline_ns = 0;
    (void)state;
    assert_int_equal(cci_get_event(NULL, &event), CCI_EINVAL);
    assert_int_equal(cci_get_event(ep, NULL), CCI_EINVAL);
    assert_int_equal(cci_get_event(ep, &event), CCI_SUCCESS);
    assert_called("get_event");
    assert_ptr_equal(event, &fake->event.pub);
    assert_int_equal(cci_accept(NULL, NULL), CCI_EINVAL);
    assert_int_equal(cci_reject(NULL), CCI_EINVAL);
    event->type = CCI_EVENT_RECV;
    assert_int_equal(cci_accept(event, NULL), CCI_EINVAL);
    assert_int_equal(cci_reject(event), CCI_EINVAL);
    assert_null(fakes[0].last);
    event->type = CCI_EVENT_CONNECT_REQUEST;
    assert_int_equal(cci_accept(event, &event), CCI_SUCCESS);
    assert_called("accept");
    assert_ptr_equal(fakes[0].context, &event);
    assert_int_equal(cci_reject(event), CCI_SUCCESS);
    assert_called("reject");
    assert_int_equal(cci_accept_data(event, &fake, "data", 4), CCI_SUCCESS);
    assert_called("accept with data");
    assert_ptr_equal(fakes[0].context, &fake);
    assert_int_equal(cci_reject_data(event, "data", 4), CCI_SUCCESS);
    assert_called("reject with data");
    assert_int_equal(cci_accept_data(event, &fake, "", 0), CCI_SUCCESS);
    assert_called("accept");
    assert_int_equal(cci_return_event(NULL), CCI_EINVAL);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    assert_called("return_event");
    fakes[0].flags = -1;
    assert_int_equal(cci_get_event(ep, &event), CCI_EAGAIN);
    assert_null(event);
    assert_int_equal(cci_arm_os_handle(NULL, 0), CCI_EINVAL);
    fakes[0].last = NULL;
    assert_int_equal(cci_arm_os_handle(ep, 16), CCI_EINVAL);
    assert_null(fakes[0].last);
    assert_int_equal(cci_arm_os_handle(ep, 0), CCI_SUCCESS);
    assert_called("arm");
    assert_int_equal(cci_next_deadline(NULL, &deadline_ns), CCI_EINVAL);
    assert_int_equal(cci_next_deadline(ep, NULL), CCI_EINVAL);
    assert_int_equal(cci_next_deadline(ep, &deadline_ns), CCI_SUCCESS);
    assert_called("next_deadline");
    assert_int_equal(deadline_ns, 7);
    assert_int_equal(cci_disconnect(NULL), CCI_EINVAL);
    assert_int_equal(cci_disconnect(&fake->connection), CCI_SUCCESS);
    assert_called("disconnect");
}

static void memory_for_rma_comes_from_the_transport(void **state) {
    cci_endpoint_t *ep, *other;
    struct cci_rma_handle stale;
    cci_rma_handle_t *whole, *part, *elsewhere;
    void *memory = NULL;
    char local[10];
    (void)state;
    fake_open(&ep);
    assert_int_equal(cci_create_endpoint(NULL, 0, &other, NULL), CCI_SUCCESS);
    fakes[0].last = NULL;
    assert_int_equal(cci_rma_alloc(NULL, 1, &memory), CCI_EINVAL);
    assert_int_equal(cci_rma_alloc(ep, 0, &memory), CCI_EINVAL);
    assert_int_equal(cci_rma_alloc(ep, 1, NULL), CCI_EINVAL);
    assert_int_equal(cci_rma_free(NULL, local), CCI_EINVAL);
    assert_int_equal(cci_rma_free(ep, NULL), CCI_EINVAL);
    assert_int_equal(cci_rma_free(ep, local), CCI_EINVAL);
    assert_null(fakes[0].last);
    assert_int_equal(cci_rma_alloc(ep, 101, &memory), CCI_ENOBUFS);
    assert_called("rma_alloc");
    assert_int_equal(cci_rma_alloc(ep, 100, &memory), CCI_SUCCESS);
    assert_called("rma_alloc");
    assert_ptr_equal(memory, fake_memory);
    assert_int_equal(cci_rma_free(ep, fake_memory + 1), CCI_EINVAL);
    assert_int_equal(cci_rma_free(other, fake_memory), CCI_EINVAL);
    assert_int_equal(cci_rma_register(ep, local, sizeof local, 0, &elsewhere), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(ep, fake_memory, 100, 0, &whole), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(ep, fake_memory + 99, 1, 0, &part), CCI_SUCCESS);
    assert_called("rma_register");
    assert_int_equal(cci_rma_free(ep, fake_memory), CCI_EBUSY);
    stale = *part;
    stale.stuff[0] = 99;
    assert_int_equal(cci_rma_deregister(ep, &stale), CCI_ERR_RMA_HANDLE);
    stale = *part; /* the bytes of a handle are the handle */
    assert_int_equal(cci_rma_deregister(ep, &stale), CCI_SUCCESS);
    assert_called("rma_deregister");
    assert_int_equal(cci_rma_free(ep, fake_memory), CCI_EBUSY);
    assert_null(fakes[0].last);
    assert_int_equal(cci_rma_deregister(ep, whole), CCI_SUCCESS);
    assert_called("rma_deregister");
    assert_int_equal(cci_rma_free(ep, fake_memory), CCI_SUCCESS);
    assert_called("rma_free");
    assert_int_equal(cci_rma_free(ep, fake_memory), CCI_EINVAL);
    assert_int_equal(cci_rma_deregister(ep, elsewhere), CCI_SUCCESS);
}

/* Takes memory from the core, which is what a transport leaves undone. */
static void use_ordinary_memory(cci_endpoint_t *ep, uint64_t length) {
    cci_rma_handle_t *handle;
    void *memory = NULL, *more = NULL;
    int before = blocks;
    assert_int_equal(cci_rma_alloc(ep, UINT64_MAX, &memory), CCI_ENOMEM);
    fail_at = allocations;
    assert_int_equal(cci_rma_alloc(ep, length, &memory), CCI_ENOMEM);
    fail_at = -1;
    assert_int_equal(cci_rma_alloc(ep, length, &memory), CCI_SUCCESS);
    assert_int_equal(cci_rma_alloc(ep, 1 + length, &more), CCI_SUCCESS);
    assert_int_equal((uintptr_t)memory % 4096, 0);
    assert_int_equal((uintptr_t)more % 4096, 0);
    memset(memory, 1, (size_t)length);
    memset(more, 2, (size_t)length + 1);
    fail_at = allocations;
    assert_int_equal(cci_rma_register(ep, memory, length, 0, &handle), CCI_ENOMEM);
    fail_at = -1;
    assert_int_equal(cci_rma_register(ep, memory, length, 0, &handle), CCI_SUCCESS);
    assert_int_equal(cci_rma_free(ep, memory), CCI_EBUSY);
    assert_int_equal(cci_rma_free(ep, more), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(ep, handle), CCI_SUCCESS);
    assert_int_equal(cci_rma_free(ep, memory), CCI_SUCCESS);
    assert_int_equal(blocks, before);
}

static void where_the_transport_has_none_memory_for_rma_is_ordinary_and_ends_with_its_endpoint(void **state) {
    cci_endpoint_ops_t ops = fake_ops;
    fake_endpoint_t *fake;
    cci_endpoint_t *ep;
    cci_rma_handle_t *handle;
    void *memory;
    int before;
    (void)state;
    fake = fake_open(&ep);
    use_ordinary_memory(ep, 1001); /* of which the transport has no more */
    ops.rma_alloc = NULL;
    ops.rma_free = NULL;
    fake->base.ops = &ops;
    use_ordinary_memory(ep, 1);
    fake->base.ops = &fake_ops;
    apple.version = 1; /* whose table may end before */
    use_ordinary_memory(ep, 100000);
    assert_int_equal(cci_rma_alloc(ep, 1, &memory), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(ep, memory, 1, 0, &handle), CCI_SUCCESS);
    before = blocks;
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS);
    assert_int_equal(blocks, before - 3);
    assert_int_equal(cci_create_endpoint(NULL, 0, &ep, NULL), CCI_SUCCESS);
    assert_int_equal(cci_rma_alloc(ep, 1, &memory), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(ep, memory, 1, 0, &handle), CCI_SUCCESS); /* the end of the test counts blocks */
    apple.version = CCI_TRANSPORT_VERSION;
}

static void what_a_transport_leaves_out_is_not_implemented(void **state) {
    cci_endpoint_t *ep;
    fake_endpoint_t *fake = fake_open(&ep);
    struct cci_connection *conn = &fake->connection;
    struct cci_rma_handle handle;
    cci_rma_handle_t *made;
    cci_endpoint_ops_t few;
    cci_rma_segment_t halves[2], whole;
    uint64_t deadline_ns;
    uint32_t value = 0;
    (void)state;
    memset(&few, 0, sizeof few);
    memset(&handle, 0, sizeof handle);
    few.destroy = fake_destroy;
    fake->base.ops = &few;
    fake->event.pub.type = CCI_EVENT_CONNECT_REQUEST;
    assert_int_equal(cci_connect(ep, "apple://h", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_accept(&fake->event.pub, NULL), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_reject(&fake->event.pub), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_disconnect(conn), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_arm_os_handle(ep, 0), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_next_deadline(ep, &deadline_ns), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_set_opt(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(ep, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_set_opt(conn, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_get_opt(conn, CCI_OPT_CONN_SEND_TIMEOUT, &value), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_rma_register(ep, &handle, 1, 0, &made), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_rma_deregister(ep, &handle), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_rma(conn, NULL, 0, &handle, 0, &handle, 0, 1, NULL, CCI_FLAG_READ), CCI_ERR_NOT_IMPLEMENTED);
    memset(halves, 0, sizeof halves);
    halves[0].handle = halves[1].handle = whole.handle = &handle;
    halves[0].length = halves[1].length = 8;
    whole.offset = 0;
    whole.length = 16;
    assert_int_equal(cci_rmav(conn, NULL, 0, halves, 2, &whole, 1, NULL, CCI_FLAG_READ), CCI_ERR_NOT_IMPLEMENTED);
    few.rma = fake_rma;
    apple.version = 3; /* which knows no parts of lists: what is one RMA works */
    assert_int_equal(cci_rmav(conn, NULL, 0, halves, 2, &whole, 1, NULL, CCI_FLAG_READ), CCI_ERR_NOT_IMPLEMENTED);
    assert_null(fakes[0].last);
    assert_int_equal(cci_rmav(conn, NULL, 0, halves, 1, halves, 1, &value, CCI_FLAG_READ), CCI_SUCCESS);
    assert_called("rma");
    assert_int_equal(fakes[0].flags, CCI_FLAG_READ);
    apple.version = CCI_TRANSPORT_VERSION;
    assert_int_equal(cci_atomic(conn, CCI_ATOMIC_SWAP, 8, &handle, 0, 1, 0, NULL, NULL, 0), CCI_ERR_NOT_IMPLEMENTED);
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS); /* while `few` is there */
}

/* A transport that takes so many parts of lists, and then has these events. */
static int parts_left;
static void *part_context;
static cci_event_base_t told[3];
static int told_at, told_count, told_returned;

static int counted_rma(struct cci_connection *connection, const void *msg, uint32_t msg_len,
                       const struct cci_rma_handle *local, uint64_t local_offset, const struct cci_rma_handle *remote,
                       uint64_t remote_offset, uint64_t length, void *context, int flags) {
    (void)connection, (void)msg, (void)msg_len, (void)local, (void)local_offset, (void)remote, (void)remote_offset;
    (void)length;
    if (flags & CCI_PIECE_CHECK) return CCI_SUCCESS;
    if (parts_left == 0) return CCI_ENOBUFS;
    parts_left--;
    part_context = context;
    return CCI_SUCCESS;
}

static int tell_next(cci_endpoint_base_t *endpoint, cci_event_t **event) {
    *event = NULL;
    if (told_at == told_count) return CCI_EAGAIN;
    told[told_at].endpoint = endpoint;
    *event = &told[told_at++].pub;
    return CCI_SUCCESS;
}

static int count_return(cci_event_base_t *event) {
    (void)event;
    told_returned++;
    return CCI_SUCCESS;
}

/* A list that waits for its second part, which nothing wakes; and then its connection ends. */
static cci_connection_t *end_beside_a_list(fake_endpoint_t *fake, cci_endpoint_ops_t *ops, int lists, int flags) {
    static struct cci_rma_handle handle;
    cci_rma_segment_t halves[2], whole;
    *ops = fake_ops;
    ops->rma = counted_rma;
    ops->get_event = tell_next;
    ops->return_event = count_return;
    fake->base.ops = ops;
    fake->connection.attribute = CCI_CONN_ATTR_RU;
    memset(halves, 0, sizeof halves);
    memset(&whole, 0, sizeof whole);
    halves[0].handle = halves[1].handle = whole.handle = &handle;
    halves[0].length = halves[1].length = 8;
    whole.length = 16;
    memset((void *)told, 0, sizeof told);
    told_at = told_returned = 0;
    for (told_count = 0; told_count < lists; told_count++) {
        parts_left = 1;
        assert_int_equal(cci_rmav(&fake->connection, NULL, 0, halves, 2, &whole, 1, &handle, CCI_FLAG_WRITE | flags), CCI_SUCCESS);
        told[told_count].pub.send.type = CCI_EVENT_NONE;
        told[told_count].pub.send.context = part_context;
    }
    told[told_count].pub.disconnect.type = CCI_EVENT_DISCONNECT;
    told[told_count++].pub.disconnect.connection = &fake->connection;
    return &fake->connection;
}

static void lists_that_wait_end_before_their_connection(void **state) {
    cci_endpoint_ops_t ops;
    cci_endpoint_t *ep;
    cci_event_t *event;
    fake_endpoint_t *fake = fake_open(&ep);
    int i;
    (void)state;
    (void)end_beside_a_list(fake, &ops, 2, 0);
    for (i = 0; i < 2; i++) {
        assert_int_equal(cci_get_event(ep, &event), CCI_SUCCESS);
        assert_int_equal(event->type, CCI_EVENT_SEND);
        assert_int_equal(event->send.status, CCI_ERR_DISCONNECTED);
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    assert_int_equal(told_returned, 2); /* the parts */
    assert_int_equal(cci_get_event(ep, &event), CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_DISCONNECT);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    assert_int_equal(told_returned, 3);
    assert_int_equal(cci_get_event(ep, &event), CCI_EAGAIN);
    (void)end_beside_a_list(fake, &ops, 2, CCI_FLAG_SILENT); /* these end without a word */
    assert_int_equal(cci_get_event(ep, &event), CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_DISCONNECT);
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS); /* while `ops` is there */
}

static void the_end_of_a_connection_that_waits_for_lists_goes_with_it(void **state) {
    cci_endpoint_ops_t ops;
    cci_endpoint_t *ep;
    cci_event_t *event;
    fake_endpoint_t *fake = fake_open(&ep);
    cci_connection_t *conn = end_beside_a_list(fake, &ops, 1, 0);
    (void)state;
    assert_int_equal(cci_get_event(ep, &event), CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_SEND);
    assert_int_equal(cci_disconnect(conn), CCI_SUCCESS);
    assert_int_equal(told_returned, 2);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    assert_int_equal(cci_get_event(ep, &event), CCI_EAGAIN);
    assert_int_equal(cci_destroy_endpoint(ep), CCI_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(init_checks_its_arguments),
        TEST(initializations_are_counted),
        TEST(init_without_any_transport_is_not_found),
        TEST(setup_comes_before_init_and_hooks_come_in_pairs),
        TEST(every_failing_allocation_gives_enomem_and_leaks_nothing),
        TEST(without_a_hook_errors_and_warnings_go_to_stderr_and_nothing_else_does),
        TEST(services_use_the_hooks_or_the_system),
        TEST(statuses_and_event_types_have_texts),
        TEST(transports_are_checked_when_they_are_registered),
        TEST(there_are_at_most_16_transports),
        TEST(a_transport_says_why_it_has_no_devices),
        TEST(a_transport_registered_later_brings_its_devices),
        TEST(a_transport_with_an_open_endpoint_stays),
        TEST(proposed_devices_come_best_first),
        TEST(a_proposed_device_is_copied),
        TEST(equal_names_of_two_transports_get_a_suffix),
        TEST(a_device_for_which_no_name_is_left_is_not_listed_and_the_log_says_so),
        TEST(refreshing_shows_changes_and_keeps_pointers),
        TEST(devices_come_and_go),
        TEST(the_configuration_is_read_as_the_manual_describes_it),
        TEST(errors_in_the_configuration_name_their_line),
        TEST(keys_that_begin_alike_are_different_keys),
        TEST(the_configuration_has_limits),
        TEST(no_text_breaks_the_parser),
        TEST(a_section_of_an_unknown_transport_waits_for_it),
        TEST(a_late_section_with_an_error_costs_only_itself),
        TEST(a_transport_can_fail_to_configure_without_reason),
#ifndef CCI_NO_STDIO
        TEST(the_environment_names_the_configuration_file),
        TEST(a_configuration_file_that_cannot_be_read_gives_a_status_of_its_own),
        TEST(no_errno_of_the_system_is_taken_for_a_status),
#endif
        TEST(an_endpoint_is_made_on_the_given_device),
        TEST(a_transport_may_have_endpoints_and_a_link_too),
        TEST(null_stands_for_the_default_device_or_the_first_that_is_up),
        TEST(a_much_better_device_that_is_down_is_named),
        TEST(the_environment_says_what_is_logged),
        TEST(the_program_says_what_is_logged_unless_the_environment_does),
        TEST(a_default_endpoint_that_only_this_host_reaches_is_made_with_a_warning),
        TEST(finalize_destroys_the_endpoints_that_are_left),
        TEST(connect_checks_its_arguments),
        TEST(the_log_says_what_is_wrong_with_a_uri),
        TEST(sends_check_their_arguments),
        TEST(rma_checks_its_arguments),
        TEST(options_go_to_their_owner),
        TEST(a_device_tells_what_it_can),
        TEST(events_and_connections_go_to_their_endpoint),
        TEST(memory_for_rma_comes_from_the_transport),
        TEST(where_the_transport_has_none_memory_for_rma_is_ordinary_and_ends_with_its_endpoint),
        TEST(what_a_transport_leaves_out_is_not_implemented),
        TEST(lists_that_wait_end_before_their_connection),
        TEST(the_end_of_a_connection_that_waits_for_lists_goes_with_it),
    };
    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
