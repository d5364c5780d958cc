/* sisci_cci.h - what tests of CCI between processes of one host share: a directory, an endpoint in it, checks with the place.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Include it behind cmocka.h and the implementation of cci_sisci.h. Who forks sets in_child in the new process.
 */
#ifndef TESTS_SISCI_CCI_H
#define TESTS_SISCI_CCI_H

static char directory[] = "/dev/shm/cci-test-XXXXXX";
static char configuration[256];
static cci_endpoint_t *endpoint;
static cci_os_handle_t os_handle;
static cci_connection_t *connection;
static int in_child;

#define CHECK(condition) ((condition) ? (void)0 : failed(__LINE__, #condition))

static void failed(int line, const char *what) {
    if (in_child) {
        fprintf(stderr, "line %d of another process: %s\n", line, what);
        _exit(1);
    }
    fail_msg("line %d: %s", line, what);
}

static void begin(const char *more, int sleeps) {
    static cci_setup_t setup;
    uint32_t caps;
    snprintf(configuration, sizeof configuration, "[shm]\ntransport = sisci\ndirectory = %s\n%s", directory, more);
    memset(&setup, 0, sizeof setup);
    setup.config = configuration;
    CHECK(cci_setup(&setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    CHECK(cci_create_endpoint(NULL, 0, &endpoint, sleeps ? &os_handle : NULL) == CCI_SUCCESS);
}

/* Lets the endpoint work until there is something to read, for as long as any machine needs. */
static void serve_until(int fd) {
    uint64_t end_ns = cci__sci_now() + 120 * UINT64_C(1000000000);
    struct pollfd item;
    cci_event_t *event;
    item.fd = fd;
    item.events = POLLIN;
    while (poll(&item, 1, 0) == 0) {
        CHECK(cci__sci_now() < end_ns);
        if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                (void)cci_accept(event, NULL);
            }
            (void)cci_return_event(event);
        }
    }
}

static int empty_directory(void **state) {
    (void)state;
    return rmdir(directory);
}

/* A test, after which sweep() looks at what is left. */
#define TEST(function, sentence) {sentence, function, NULL, sweep, NULL}

#endif
