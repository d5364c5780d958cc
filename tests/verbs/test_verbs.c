/* test_verbs.c - what is particular to cci_verbs.h: the library that is opened at run time, configuration, addresses,
 * failures of devices. Without hardware: a few arrays in this process are the devices (fake_verbs.h).
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Without the header of libibverbs, or with -DCCI_NO_VERBS_H, it proves what is left then.
 */
static const char *test_library = "libibverbs.so.1";
#define CCI_VERBS_LIBRARY test_library
#ifndef CCI_NO_VERBS_H
#include <stddef.h>
static int fake_read_file(const char *path, char *text, size_t size);
#define CCI_VERBS_READ_FILE fake_read_file
#endif
#define CCI_IMPLEMENTATION
#include "cci_verbs.h"

#include "cci.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>

static char config[2048], log_text[16384];

static void keep_log(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    if (strlen(log_text) + strlen(text) + 2 < sizeof log_text) {
        strcat(strcat(log_text, text), "\n");
    }
}

/* Begins with a configuration; what cci_init() says. */
static int configured(const char *before, const char *line) {
    cci_setup_t setup;
    uint32_t caps;
    log_text[0] = '\0';
    memset(&setup, 0, sizeof setup);
    snprintf(config, sizeof config, "%s%s\n", before, line);
    setup.config = config[0] == '\n' ? NULL : config;
    setup.log = keep_log;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    return cci_init(CCI_ABI_VERSION, 0, &caps);
}

static const char *reason(void) {
    const char *name = NULL, *why;
    cci_device_t *const *devices;
    (void)cci_get_devices(&devices);
    why = cci_transport_reason(0, &name);
    assert_string_equal(name, "verbs");
    return why;
}

static void finalize(void) {
    while (cci_finalize() == CCI_SUCCESS) {
    }
}

#ifdef CCI__VERBS_WHY_NOT

static int end(void **state) {
    (void)state;
    finalize();
    return 0;
}

static void without_header(void **state) {
    (void)state;
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_non_null(strstr(reason(), "no development header"));
}

static void without_header_configured(void **state) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    (void)state;
    assert_int_equal(configured("[it]\ntransport = verbs\ndevice = mlx5_0\nmode = ud\n", ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_non_null(devices[0]);
    assert_int_equal(devices[0]->up, 0);
    assert_non_null(strstr(devices[0]->info, "no development header"));
    assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint, NULL), CCI_ENODEV);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        {"without the header of libibverbs the transport has no devices and says why", without_header, NULL, end, NULL},
        {"... and a configured device never comes up", without_header_configured, NULL, end, NULL},
    };
    (void)test_library;
    return cmocka_run_group_tests_name("verbs without its header", tests, NULL, NULL);
}

#else

#include "tests/verbs/fake_verbs.h"

#include <poll.h>
#include <sched.h>

#define FAKE0 "[it]\ntransport = verbs\ndevice = fake0\nmode = ud\n"
#define PAIR "[left]\ntransport = verbs\ndevice = fake0\nmode = ud\n%s\n"                                                \
             "[right]\ntransport = verbs\ndevice = fake1\nmode = ud\n%s"
#define SECOND_NS UINT64_C(1000000000)

static int begin_fake(void **state) {
    (void)state;
    fake_begin();
    return 0;
}

/* All that was made of the devices has been given back, whatever the test did. */
static int end_fake(void **state) {
    (void)state;
    fake.modify_fails = fake.drops = fake.loses = 0;
    finalize();
    fake_end();
    return 0;
}

/* ---- helpers ------------------------------------------------------------------------------------------------------ */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static cci_endpoint_t *left, *right;
static cci_os_handle_t left_fd;

static cci__verbs_link *link_of(cci_endpoint_t *endpoint) {
    return (cci__verbs_link *)((cci__dgram_t *)(void *)endpoint)->base.handle;
}

static fake_qp *qp_of(cci_endpoint_t *endpoint) {
    return (fake_qp *)(void *)link_of(endpoint)->qp;
}

/* Two endpoints, on a device each; the left one with an OS handle. */
static void open_both(const char *keys) {
    cci_device_t *const *devices;
    char text[1024];
    snprintf(text, sizeof text, PAIR, keys, keys);
    assert_int_equal(configured(text, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[1], 0, &right, NULL), CCI_SUCCESS);
}

static char *uri_of(cci_endpoint_t *endpoint) {
    static char text[2][200];
    char *uri, *to = text[endpoint == left];
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    snprintf(to, sizeof text[0], "%s", uri);
    free(uri);
    return to;
}

/* The next event of one of the two; the other one is served meanwhile. */
static cci_event_t *next_event(cci_endpoint_t *endpoint, cci_event_type_t type) {
    uint64_t end_ns = now_ns() + 60 * SECOND_NS;
    while (now_ns() < end_ns) {
        cci_endpoint_t *both[2];
        int i;
        both[0] = left, both[1] = right;
        for (i = 0; i < 2; i++) {
            cci_event_t *event;
            if (both[i] == NULL || cci_get_event(both[i], &event) != CCI_SUCCESS) {
                continue;
            }
            if (both[i] == endpoint && event->type == type) {
                return event;
            }
            if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
            }
            cci_return_event(event);
        }
    }
    fail_msg("no %s", cci_event_type_str(type));
    return NULL;
}

/* Serves both for a while. */
static void serve(uint64_t ns) {
    uint64_t end_ns = now_ns() + ns;
    while (now_ns() < end_ns) {
        cci_event_t *event;
        if (left != NULL && cci_get_event(left, &event) == CCI_SUCCESS) {
            cci_return_event(event);
        }
        if (right != NULL && cci_get_event(right, &event) == CCI_SUCCESS) {
            cci_return_event(event);
        }
    }
}

static cci_connection_t *connect_to(const char *uri) {
    cci_connection_t *connection;
    cci_event_t *event;
    assert_int_equal(cci_connect(left, uri, "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = next_event(left, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    cci_return_event(event);
    return connection;
}

/* A message of the size goes over and is acknowledged. */
static void exchange(cci_connection_t *connection, uint32_t size) {
    static uint8_t bytes[65536];
    cci_event_t *event;
    uint32_t i;
    for (i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 7 + size);
    }
    assert_int_equal(cci_send(connection, bytes, size, NULL, 0), CCI_SUCCESS);
    event = next_event(right, CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, size);
    assert_memory_equal(event->recv.ptr, bytes, size);
    cci_return_event(event);
    event = next_event(left, CCI_EVENT_SEND);
    assert_int_equal(event->send.status, CCI_SUCCESS);
    cci_return_event(event);
}

/* ---- the library -------------------------------------------------------------------------------------------------- */

static int begin_unloaded(void **state) {
    (void)state;
    memset(&cci__ibv, 0, sizeof cci__ibv);
    cci__ibv_is_loaded = 0;
    return 0;
}

static int end_unloaded(void **state) {
    (void)state;
    finalize();
    test_library = "libibverbs.so.1";
    return 0;
}

static void library_missing(void **state) {
    (void)state;
    test_library = "libno-such-verbs.so.1";
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_string_equal(reason(), "libno-such-verbs.so.1 not found");
}

static void library_incomplete(void **state) {
    (void)state;
    test_library = "libc.so.6";
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_string_equal(reason(), "libc.so.6 has no ibv_get_device_list");
}

static void library_configured(void **state) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    (void)state;
    test_library = "libno-such-verbs.so.1";
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
    assert_string_equal(devices[0]->info, "libno-such-verbs.so.1 not found");
    assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint, NULL), CCI_ENODEV);
}

static void library_real(void **state) {
    char why[200] = "";
    (void)state;
    if (!cci__verbs_load(why, sizeof why)) { /* a machine without it says so, and nothing else */
        assert_string_equal(why, "libibverbs.so.1 not found");
        skip();
    }
    assert_non_null(cci__ibv.create_qp);
    assert_string_equal(cci__ibv.wc_status_str(IBV_WC_SUCCESS), "success");
}

/* ---- devices ------------------------------------------------------------------------------------------------------ */

static void no_devices(void **state) {
    (void)state;
    fake.device_count = 0;
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_non_null(strstr(reason(), "there is no RDMA device"));
    finalize();
    fake.no_devices_error = ENOSYS;
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_non_null(strstr(reason(), "the kernel has no RDMA"));
}

static void proposals(void **state) {
    cci_device_t *const *devices;
    (void)state;
    fake.port_state[1] = IBV_PORT_DOWN;
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_string_equal(reason(), "");
    assert_string_equal(devices[0]->name, "fake0");
    assert_int_equal(devices[0]->up, 1);
    assert_int_equal(devices[0]->rate, UINT64_C(100000000000));
    assert_int_equal(devices[0]->pci.bus, 0xffffffffu);
    assert_non_null(strstr(devices[0]->info, "127.0.0.1"));
    assert_string_equal(devices[1]->name, "fake1");
    assert_int_equal(devices[1]->up, 0);
    fake.port_state[1] = IBV_PORT_ACTIVE;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[1]->up, 1);
}

static uint32_t gid_place;

static const char *gid_in_use(void) {
    static char text[INET6_ADDRSTRLEN];
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint, NULL), CCI_SUCCESS);
    inet_ntop(AF_INET6, link_of(endpoint)->port.gid, text, sizeof text);
    gid_place = link_of(endpoint)->port.gid_index;
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    return text;
}

static void gid_choice(void **state) {
    (void)state;
    fake_set_gid(0, 2, "127.0.0.3");
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    finalize();
    assert_int_equal(configured(FAKE0, "gid_index = 2"), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.3");
    finalize();
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "fe80::1");
}

/* Addresses whose interface isn't here, which the kernel finds no way for, or that keys exclude are left alone. */
static void gid_candidates(void **state) {
    (void)state;
    fake_set_gid(0, 2, "127.0.0.3");
    fake_set_gid(0, 3, "127.0.0.1");
    fake.gid_type[0][0] = "IB/RoCE v1";
    fake.gid_type[0][1] = fake.gid_type[0][2] = fake.gid_type[0][3] = "RoCE v2";
    fake.gid_interface[0][0] = "lo";
    fake.gid_interface[0][1] = "no-such-if"; /* another container's */
    fake.gid_interface[0][2] = fake.gid_interface[0][3] = "lo";
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.3");
    finalize();
    fake.gid_interface[0][2] = ""; /* it is gone */
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    assert_int_equal(gid_place, 3);
    finalize();
    fake.gid_interface[0][1] = fake.gid_interface[0][2] = "lo";
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    assert_int_equal(gid_place, 1);
    finalize();
    fake.gid_fails[0][1] = EINVAL; /* the same address behind a tunnel */
    fake.gid_fails[0][2] = ENODEV;
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    assert_int_equal(gid_place, 3);
}

static void gid_keys(void **state) {
    cci_device_t *const *devices;
    (void)state;
    fake_set_gid(0, 2, "127.0.0.3");
    fake_set_gid(0, 3, "::1");
    fake.gid_type[0][0] = "IB/RoCE v1";
    fake.gid_type[0][1] = fake.gid_type[0][2] = fake.gid_type[0][3] = "RoCE v2";
    fake.gid_interface[0][0] = fake.gid_interface[0][1] = fake.gid_interface[0][2] = fake.gid_interface[0][3] = "lo";
    assert_int_equal(configured(FAKE0, "ip = 127.0.0.3"), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.3");
    finalize();
    assert_int_equal(configured(FAKE0, "ip = ::1\ninterface = lo"), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::1");
    finalize();
    assert_int_equal(configured(FAKE0, "ip = 127.0.0.9"), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
    fake_set_gid(0, 2, "127.0.0.9");
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 1);
    finalize();
    assert_int_equal(configured(FAKE0, "interface = eth7"), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
    finalize();
    assert_int_equal(configured("[it]\ntransport = verbs\nmode = ud\n", "ip = 127.0.0.2"), CCI_SUCCESS); /* another device's */
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.2");
    finalize();
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND; /* there it is the address of IPoIB */
    assert_int_equal(configured(FAKE0, "ip = 127.0.0.1"), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "fe80::1");
    finalize();
    assert_int_equal(configured(FAKE0, "ip = 192.0.2.77"), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
}

/* Who asks for the devices costs no adapter anything, and learns what has changed all the same. */
static void devices_unopened(void **state) {
    cci_device_t *const *devices;
    int opened, i;
    (void)state;
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    opened = fake.opened;
    for (i = 0; i < 10; i++) {
        fake.port_state[0] = i & 1 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(devices[0]->up, !(i & 1));
    }
    fake.port_state[0] = IBV_PORT_ACTIVE;
    fake_set_gid(0, 0, "::");
    fake_set_gid(0, 1, "::");
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0); /* it has no address */
    fake_set_gid(0, 1, "127.0.0.1");
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 1);
    fake.no_sys = 1; /* nothing is known: it stays as it was */
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 1);
    assert_int_equal(fake.opened, opened);
    finalize();
    fake.no_sys = 0;
    assert_int_equal(configured("", ""), CCI_SUCCESS); /* and so with those that are proposed */
    opened = fake.opened;
    for (i = 0; i < 10; i++) {
        fake.port_state[0] = i & 1 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(devices[0]->up, !(i & 1));
    }
    assert_int_equal(fake.opened, opened);
    finalize();
    fake.port_state[0] = IBV_PORT_ACTIVE;
    fake.device_count = 0; /* one that comes later is opened once */
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
    fake.device_count = 2;
    opened = fake.opened;
    for (i = 0; i < 10; i++) {
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(devices[0]->up, 1);
    }
    assert_int_equal(devices[0]->rate, UINT64_C(100000000000));
    assert_int_equal(fake.opened, opened + 1);
}

/* The device as it is proposed, and as it is configured, is down and says why. */
static void expect_refused(const char *mode, const char *why) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    char text[200];
    int i;
    fake.device_count = 0; /* it is taken away, and another one comes */
    assert_int_equal(configured("", ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    finalize();
    fake.device_count = 2;
    for (i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "[it]\ntransport = verbs\ndevice = fake0\nmode = %s\n", mode);
        if (i == 0 && strcmp(mode, "rc") != 0) {
            continue; /* that is not proposed */
        }
        assert_int_equal(configured(i == 0 ? "" : text, ""), CCI_SUCCESS);
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(devices[0]->up, 0);
        if (strstr(devices[0]->info, why) == NULL) {
            fail_msg("%s: %s", why, devices[0]->info);
        }
        assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint, NULL), CCI_ENODEV);
        finalize();
    }
}

static void adapters_refused(void **state) {
    (void)state;
    fake.transport = IBV_TRANSPORT_IWARP;
    expect_refused("rc", "iWARP");
    fake.transport = IBV_TRANSPORT_UNKNOWN; /* EFA's */
    expect_refused("rc", "neither InfiniBand nor RoCE");
    expect_refused("ud", "neither InfiniBand nor RoCE");
    fake.transport = IBV_TRANSPORT_IB;
    fake.max_srq = 0;
    expect_refused("rc", "no shared receive queues");
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS); /* mode = ud needs none */
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    finalize();
    fake.max_srq = 64;
    fake.no_qp_type[IBV_QPT_RC] = EOPNOTSUPP;
    expect_refused("rc", "no reliable connected queue pairs");
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
    finalize();
    fake.no_qp_type[IBV_QPT_RC] = 0;
    fake.no_qp_type[IBV_QPT_UD] = EINVAL;
    expect_refused("rc", "no datagram queue pairs");
    expect_refused("ud", "no datagram queue pairs");
    fake.no_qp_type[IBV_QPT_UD] = ENOMEM; /* that may pass */
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    fake.no_qp_type[IBV_QPT_UD] = 0;
    assert_string_equal(gid_in_use(), "::ffff:127.0.0.1");
}

/* An empty place of the address table, or a partition that the port is not in. */
static void gid_or_pkey_missing(void **state) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    (void)state;
    assert_int_equal(configured(FAKE0, "gid_index = 3"), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(devices[0]->up, 0);
    finalize();
    assert_int_equal(configured(FAKE0, "pkey = 0x1234"), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_ENODEV);
    assert_non_null(strstr(log_text, "partition"));
    finalize();
    assert_int_equal(configured(FAKE0, "pkey = 5"), CCI_SUCCESS); /* limited membership is membership */
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(link_of(endpoint)->pkey_index, 1);
}

/* ---- configuration ------------------------------------------------------------------------------------------------ */

static void good_keys(void **state) {
    static const char *const lines[] = {"port = 1", "mode = auto", "rc_connections = 1048576", "interface = eth0", "ip = 192.0.2.1", "ip = 2001:db8::1", "gid_index = 255", "gid_index = 1", "service = 40404", "pkey = 0xffff", "qkey = 0x7fffffff",
                                        "traffic_class = 104", "service_level = 3", "hop_limit = 255", "mtu = 512",
                                        "recv_depth = 16", "send_depth = 16", "address_handles = 64",
                                        "send_buf_count = 5", "max_send_size = 5000", "recv_buf_count = 33",
                                        "send_timeout = 4294967295", "progress = thread", "congestion = newreno",
                                        "crc = 1", "mode = rc", "moderation = 1000", "relaxed_ordering = 0"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[300];
        snprintf(text, sizeof text, "[it]\ntransport = verbs\ndevice = fake0\n%s", lines[i]);
        assert_int_equal(configured(text, ""), CCI_SUCCESS);
        finalize();
    }
}

/* An error names the line and the key. */
static void bad_keys(void **state) {
    static const struct {
        const char *line, *word;
    } bad[] = {{"port = 0", "from 1 to 254"},       {"port = 255", "from 1 to 254"},   {"gid_index = x", "from 0 to 255"},
               {"qkey = 0x80000000", "qkey"},       {"mode = tcp", "rc or ud"},        {"mtu = 1500", "256, 512"},
               {"mtu = 8192", "256, 512"},          {"recv_depth = 15", "from 16"},    {"service = 70000", "service"},
               {"traffic_class = 256", "255"},      {"service_level = 16", "15"},      {"pkey = 0", "from 1"},
               {"address_handles = 63", "from 64"}, {"progress = maybe", "thread or"}, {"congestion = hope", "congestion"},
               {"gid_index = 256", "from 0 to 255"}, {"interface = a-name-that-is-long", "interface"}, {"ip = 1.2.3", "address"},
               {"colour = blue", "no such key"},    {"crc = 2", "from 0 to 1"},        {"send_depth = 0x", "from 16"}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(configured("[it]\ntransport = verbs\ndevice = fake0\n", bad[i].line), CCI_SUCCESS);
        if (strstr(log_text, ":4:") == NULL || strstr(log_text, bad[i].word) == NULL) {
            fail_msg("%s: %s", bad[i].line, log_text);
        }
    }
}

/* What keys say is done. */
static void keys_work(void **state) {
    cci_connection_t *connection;
    (void)state;
    open_both("traffic_class = 104\nservice_level = 3\nhop_limit = 9\nmtu = 512\nqkey = 0x1234\nmax_send_size = 3000\n"
              "send_buf_count = 7\n");
    assert_int_equal(link_of(left)->mtu, 512);
    assert_int_equal(qp_of(left)->qkey, 0x1234);
    connection = connect_to(uri_of(right));
    assert_int_equal(connection->max_send_size, 3000);
    exchange(connection, 3000); /* in fragments */
    assert_int_equal(fake.last_ah.grh.traffic_class, 104);
    assert_int_equal(fake.last_ah.grh.hop_limit, 9);
    assert_int_equal(fake.last_ah.sl, 3);
    assert_int_equal(fake.last_ah.grh.sgid_index, 1);
}

static void service_of_device(void **state) {
    cci_endpoint_t *endpoint, *second;
    char *uri;
    (void)state;
    assert_int_equal(configured(FAKE0, "service = 20411"), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_string_equal(uri, "verbs://127.0.0.1:20411");
    free(uri);
    assert_int_equal(cci_create_endpoint(NULL, 0, &second, NULL), CCI_EBUSY);
}

/* A server by name in one of the modes, at the first port that is free, also where another program has its first; and one
 * of no name in its place, which is not taken for it. */
static void names_in(const char *mode) {
    struct timeval half = {0, 500000};
    cci_device_t *const *devices;
    struct sockaddr_in at;
    cci_event_t *event;
    char text[512];
    int other = socket(AF_INET, SOCK_DGRAM, 0), first;
    snprintf(text, sizeof text,
             "[left]\ntransport = verbs\ndevice = fake0\nmode = %s\n[right]\ntransport = verbs\ndevice = fake1\nmode = %s\n",
             mode, mode);
    assert_int_equal(configured(text, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(devices[1], "storage", 0, &right, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(devices[1], "storage", 0, &right, NULL), CCI_EBUSY);
    (void)connect_to("verbs://127.0.0.2/storage");
    first = atoi(strrchr(uri_of(right), ':') + 1);
    assert_in_range(first, 49152, 65535);
    assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)first);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &at.sin_addr), 1);
    assert_int_equal(bind(other, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(cci_create_endpoint_at(devices[1], "storage", 0, &right, NULL), CCI_SUCCESS);
    assert_true(atoi(strrchr(uri_of(right), ':') + 1) != first);
    (void)connect_to("verbs://127.0.0.2/storage");
    assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
    assert_int_equal(close(other), 0);
    snprintf(text, sizeof text, "%d", first);
    assert_int_equal(cci_create_endpoint_at(devices[1], text, 0, &right, NULL), CCI_SUCCESS);
    assert_int_equal(cci_connect(left, "verbs://127.0.0.2/storage", "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, &half), CCI_SUCCESS);
    event = next_event(left, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    cci_return_event(event);
    finalize();
}

static void names(void **state) {
    (void)state;
    names_in("ud");
    names_in("rc");
}

/* A server that wants its cookie to come back before it listens: where the system has to be asked where a port is, its answer
 * comes from there all the same. */
static void names_with_cookies(void **state) {
    cci_device_t *const *devices;
    (void)state;
    assert_int_equal(configured("[left]\ntransport = verbs\ndevice = fake0\nmode = ud\n"
                                "[right]\ntransport = verbs\ndevice = fake1\nmode = ud", ""),
                     CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint_at(devices[1], "storage", 0, &right, NULL), CCI_SUCCESS);
    ((cci__endpoint_t *)(void *)right)->conns.unproven_most = 0;
    (void)connect_to("verbs://127.0.0.2/storage");
}

/* ---- traffic ------------------------------------------------------------------------------------------------------ */

static void messages(void **state) {
    cci_connection_t *connection;
    uint32_t size;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    for (size = 0; size <= connection->max_send_size; size += 31) {
        exchange(connection, size);
    }
    assert_true(fake.inlined > 0 && fake.inlined < fake.sent);
    assert_true(fake.signalled * 16 < fake.sent); /* most sends complete in silence */
}

/* Everything that a datagram may do without is left out: no inline data, few work requests. */
static void small_device(void **state) {
    cci_connection_t *connection;
    int i;
    (void)state;
    fake.max_inline = 0;
    fake.max_qp_wr = 16;
    fake.mtu = IBV_MTU_256;
    open_both("");
    connection = connect_to(uri_of(right));
    for (i = 0; i < 200; i++) {
        exchange(connection, (uint32_t)i);
    }
    assert_int_equal(fake.inlined, 0);
}

/* Many messages at once leave with few posts. */
static void batches(void **state) {
    cci_connection_t *connection;
    uint8_t bytes[900];
    int i;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    exchange(connection, 8);
    memset(bytes, 1, sizeof bytes);
    fake.largest_batch = 0;
    for (i = 0; i < 500; i++) {
        int status = cci_send(connection, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT);
        assert_true(status == CCI_SUCCESS || status == CCI_ENOBUFS);
    }
    for (i = 0; i < 400; i++) {
        cci_return_event(next_event(right, CCI_EVENT_RECV));
    }
    assert_true(fake.largest_batch >= 8);
}

/* With an OS handle: it is readable when something has come, and rests when all is taken. */
static void os_handle(void **state) {
    cci_connection_t *connection;
    struct pollfd item;
    int round;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    exchange(connection, 8);
    item.fd = left_fd;
    item.events = POLLIN;
    for (round = 0; round < 20; round++) {
        cci_event_t *event;
        int answers = 1 + round * 3, got = 0, i;
        serve(30000000);
        while (poll(&item, 1, 0) > 0) { /* a timer, at most */
            assert_true(cci_get_event(left, &event) == CCI_EAGAIN);
        }
        /* `right` answers on the same connection */
        assert_int_equal(cci_send(connection, "ask", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        event = next_event(right, CCI_EVENT_RECV);
        for (i = 0; i < answers; i++) {
            assert_int_equal(cci_send(event->recv.connection, "answer", 6, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        }
        cci_return_event(event);
        while (got < answers) {
            cci_event_t *other;
            if (cci_get_event(right, &other) == CCI_SUCCESS) {
                cci_return_event(other);
            }
            if (poll(&item, 1, 5) <= 0) {
                continue;
            }
            while (cci_get_event(left, &event) == CCI_SUCCESS) { /* until nothing is left, as a program does it */
                got += event->type == CCI_EVENT_RECV;
                cci_return_event(event);
            }
        }
    }
}

static cci_connection_t *join(cci_endpoint_t *endpoint, const char *uri, cci_conn_attribute_t attribute) {
    cci_connection_t *connection;
    cci_event_t *event;
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, attribute, NULL, 0, NULL), CCI_SUCCESS);
    event = next_event(endpoint, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    cci_return_event(event);
    return connection;
}

/* The routing header has no port: it travels beside the datagram. */
static void groups_with_one_address(void **state) {
    cci_connection_t *tx, *one, *two;
    cci_event_t *event;
    (void)state;
    open_both("");
    one = join(right, "verbs://239.77.8.1:1001", CCI_CONN_ATTR_UU_MC_RX);
    two = join(right, "verbs://239.77.8.1:1002", CCI_CONN_ATTR_UU_MC_RX);
    assert_int_equal(qp_of(right)->group_count, 1);
    tx = join(left, "verbs://239.77.8.1:1002", CCI_CONN_ATTR_UU_MC_TX);
    assert_int_equal(cci_send(tx, "two", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    event = next_event(right, CCI_EVENT_RECV);
    assert_ptr_equal(event->recv.connection, two);
    cci_return_event(event);
    assert_int_equal(fake.last_ah.grh.hop_limit, 1);
    assert_int_equal(cci_disconnect(two), CCI_SUCCESS);
    assert_int_equal(qp_of(right)->group_count, 1);
    two = join(right, "verbs://239.77.8.1:65535", CCI_CONN_ATTR_UU_MC_RX); /* the last one that there is */
    tx = join(left, "verbs://239.77.8.1:65535", CCI_CONN_ATTR_UU_MC_TX);
    assert_int_equal(cci_send(tx, "last", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    event = next_event(right, CCI_EVENT_RECV);
    assert_ptr_equal(event->recv.connection, two);
    cci_return_event(event);
    assert_int_equal(cci_disconnect(two), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(one), CCI_SUCCESS);
    assert_int_equal(qp_of(right)->group_count, 0);
}

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

static void direct_uri(void **state) {
    char uri[128];
    (void)state;
    open_both("");
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%u", (unsigned)qp_of(right)->pub.qp_num);
    exchange(connect_to(uri), 100);
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/0x%x", (unsigned)qp_of(right)->pub.qp_num);
    exchange(connect_to(uri), 100);
}

/* InfiniBand without IP: the URI is the GID, the queue pair and the LID. */
static void infiniband(void **state) {
    cci_endpoint_t *endpoint;
    char uri[200];
    (void)state;
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake.lid[0] = 17;
    fake.lid[1] = 4711;
    open_both("");
    snprintf(uri, sizeof uri, "verbs://[fe80::2]/%u/4711", (unsigned)qp_of(right)->pub.qp_num);
    assert_string_equal(uri_of(right), uri);
    exchange(connect_to(uri), 100);
    assert_true(fake.last_ah.dlid == 17 || fake.last_ah.dlid == 4711);
    assert_int_equal(cci_create_endpoint_at(left->device, "4242", 0, &endpoint, NULL), CCI_EINVAL);
    assert_int_equal(cci_connect(left, "verbs://239.1.1.1:7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL),
                     CCI_EADDRNOTAVAIL);
}

/* An IPoIB interface is known by its hardware address, the end of which is the port's GID. */
static void ipoib(void **state) {
    uint8_t gid[16];
    (void)state;
    assert_int_equal(inet_pton(AF_INET6, "fe80::2:c903:1:2345", gid), 1);
    assert_true(cci__verbs_ends_with_gid("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:23:45", gid));
    assert_false(cci__verbs_ends_with_gid("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:23:46", gid));
    assert_false(cci__verbs_ends_with_gid("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:23:4", gid));
    assert_false(cci__verbs_ends_with_gid("00:02:c9:01:23:45", gid));
    assert_false(cci__verbs_ends_with_gid("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:01:zz:45", gid));
    assert_false(cci__verbs_ends_with_gid("", gid));
}

/* The name of an interface on another machine says nothing here. */
static void hosts_and_ports(void **state) {
    char host[64];
    unsigned port;
    (void)state;
    assert_true(cci__verbs_split("[fe80::1%mlx5_7.100]:4242", host, sizeof host, &port));
    assert_string_equal(host, "fe80::1");
    assert_int_equal(port, 4242);
    assert_true(cci__verbs_split("node7:1", host, sizeof host, &port));
    assert_string_equal(host, "node7");
    assert_false(cci__verbs_split("[fe80::1]:010", host, sizeof host, &port));
    assert_false(cci__verbs_split("node7:-1", host, sizeof host, &port));
    assert_false(cci__verbs_split("a-name-that-is-longer-than-the-room-for-it-is-which-is-64-bytes-x:1", host, sizeof host, &port));
}

static void bad_uris(void **state) {
    static const char *const bad[] = {
        "verbs://127.0.0.2",           "verbs://127.0.0.2:",          "verbs://127.0.0.2:0",     "verbs://127.0.0.2:70000",
        "verbs://127.0.0.2:1x",        "verbs://:5",                  "verbs://::1:5",           "verbs://[::1",
        "verbs://[::1]",               "verbs://[fe80::1]/",          "verbs://[fe80::1]/0",     "verbs://[fe80::1]/1",
        "verbs://[fe80::1]/16777215",  "verbs://[fe80::1]/20/",       "verbs://[fe80::1]/20/5",  "verbs://[fe80::1]/20x",
        "verbs://[::]/20",             "verbs://[ff02::1]/20",        "verbs://[nonsense]/20",   "verbs://[fe80::1]20",
        "verbs://[::ffff:239.1.1.1]/20", "verbs://0.0.0.0:5",         "verbs://[fe80::1]:4242",  "verbs://[]/20",
        "verbs://[fe80::1]/99999999999999999999"};
    size_t i;
    (void)state;
    open_both("");
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        int status = cci_connect(left, bad[i], NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL);
        if (status != CCI_EINVAL && status != CCI_EADDRNOTAVAIL) {
            fail_msg("%s: %s", bad[i], cci_strerror(NULL, (cci_status_t)status));
        }
    }
}

/* Asks the endpoint's socket; returns the size of the answer, or -1. */
static ssize_t ask(int fd, cci_endpoint_t *endpoint, const uint8_t *question, size_t size, uint8_t *answer, size_t room) {
    cci__verbs_sockaddr s;
    socklen_t length = cci__verbs_to_system(&s, &link_of(endpoint)->host);
    assert_int_equal(sendto(fd, question, size, 0, &s.any, length), (ssize_t)size);
    serve(3000000);
    return recv(fd, answer, room, MSG_DONTWAIT);
}

/* Questions of any kind and length: none is answered by more bytes than it has. */
static void questions(void **state) {
    uint8_t question[200], answer[2000];
    uint64_t random = 1;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), i;
    (void)state;
    open_both("");
    memset(question, 0, sizeof question);
    memcpy(question, "CCIv\1\1\2", 7);
    assert_int_equal(ask(fd, left, question, 64, answer, sizeof answer), 64);
    assert_int_equal(answer[5], 2);
    assert_memory_equal(answer + 16, link_of(left)->port.gid, 16);
    assert_int_equal(cci__load32(answer + 32), qp_of(left)->pub.qp_num);
    assert_int_equal(ask(fd, left, question, 63, answer, sizeof answer), -1);
    assert_int_equal(ask(fd, left, question, 65, answer, sizeof answer), -1);
    assert_int_equal(ask(fd, left, question, 0, answer, sizeof answer), -1);
    question[4] = 2;
    assert_int_equal(ask(fd, left, question, 64, answer, sizeof answer), -1);
    for (i = 0; i < 300; i++) {
        size_t size, n;
        for (n = 0; n < sizeof question; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            question[n] = (uint8_t)(random >> 56);
        }
        size = i % 2 ? 64 : question[0] % sizeof question;
        if (i % 3 == 0) {
            memcpy(question, "CCIv\1\2\2", 7); /* answers that nobody has asked for */
        }
        assert_true(ask(fd, left, question, size, answer, sizeof answer) <= (ssize_t)size);
    }
    close(fd);
    exchange(connect_to(uri_of(right)), 10);
}

/* The qkey is what keeps strangers' datagrams away: only who knows it is told that it is right. */
static void qkey_is_kept(void **state) {
    static const uint32_t guesses[] = {0, 1, 0x00434349, 0x12345677, 0x12345678};
    uint8_t question[64], answer[100];
    size_t i, at;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    (void)state;
    open_both("qkey = 0x12345678");
    for (i = 0; i < sizeof guesses / sizeof guesses[0]; i++) {
        memset(question, 0, sizeof question);
        memcpy(question, "CCIv\1\1\2", 7);
        cci__store32(question + 36, guesses[i]);
        assert_int_equal(ask(fd, left, question, 64, answer, sizeof answer), 64);
        assert_int_equal(cci__load32(answer + 36), guesses[i] == 0x12345678 ? guesses[i] : 0);
        for (at = 0; at + 4 <= 64 && guesses[i] != 0x12345678; at++) {
            assert_int_not_equal(cci__load32(answer + at), 0x12345678);
        }
    }
    close(fd);
    exchange(connect_to(uri_of(right)), 10);
    finalize();
    for (i = 0; i < 2; i++) { /* who has another one is refused at once */
        cci_device_t *const *devices;
        cci_event_t *event;
        char text[300];
        snprintf(text, sizeof text, PAIR, "qkey = 5", "qkey = 6");
        assert_int_equal(configured(text, ""), CCI_SUCCESS);
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(devices[i], 0, &left, NULL), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(devices[!i], 0, &right, NULL), CCI_SUCCESS);
        assert_int_equal(cci_connect(left, uri_of(right), NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
        event = next_event(left, CCI_EVENT_CONNECT);
        assert_int_equal(event->connect.status, CCI_ECONNREFUSED);
        cci_return_event(event);
        finalize();
    }
}

/* A host that tells lies: a socket of the test. */
typedef struct liar {
    int fd;
    char uri[64];
    cci__verbs_sockaddr from;
    uint8_t card[64];
} liar;

static void liar_open(liar *it) {
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    it->fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(it->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(it->fd, (struct sockaddr *)&at, &size), 0);
    snprintf(it->uri, sizeof it->uri, "verbs://127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
}

/* Waits for a question and makes a true answer of it, which tells of `right`. */
static void liar_hear(liar *it) {
    uint64_t end_ns = now_ns() + 60 * SECOND_NS;
    socklen_t size = sizeof it->from;
    while (recvfrom(it->fd, it->card, sizeof it->card, MSG_DONTWAIT, &it->from.any, &size) != 64) {
        assert_true(now_ns() < end_ns);
        serve(1000000);
        size = sizeof it->from;
    }
    assert_int_equal(it->card[5], 1);
    it->card[5] = 2;
    memcpy(it->card + 16, link_of(right)->port.gid, 16);
    cci__store32(it->card + 32, qp_of(right)->pub.qp_num);
}

static void liar_say(const liar *it) {
    assert_int_equal(sendto(it->fd, it->card, 64, 0, &it->from.any, sizeof it->from.v4), 64);
}

/* What the client makes of an answer that was changed at one place. */
static void expect_lie(size_t at, uint8_t value, int status) {
    liar it;
    cci_event_t *event;
    struct timeval soon = {0, 200000};
    liar_open(&it);
    assert_int_equal(cci_connect(left, it.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    liar_hear(&it);
    it.card[at] = value;
    liar_say(&it);
    event = next_event(left, CCI_EVENT_CONNECT);
    if ((int)event->connect.status != status) {
        fail_msg("byte %u: %s", (unsigned)at, cci_strerror(NULL, event->connect.status));
    }
    cci_return_event(event);
    close(it.fd);
}

static void lies(void **state) {
    (void)state;
    open_both("");
    expect_lie(63, 0, CCI_SUCCESS);         /* nothing was changed */
    expect_lie(0, 'X', CCI_ETIMEDOUT);      /* no answer at all */
    expect_lie(4, 9, CCI_ETIMEDOUT);        /* another version */
    expect_lie(6, 1, CCI_ECONNREFUSED);     /* another mode */
    expect_lie(16, 0xff, CCI_ECONNREFUSED); /* a group */
    expect_lie(28, 224, CCI_ECONNREFUSED);  /* an IPv4 group */
    expect_lie(26, 0, CCI_ECONNREFUSED);    /* no IPv4 address */
    expect_lie(35, 1, CCI_ECONNREFUSED);    /* a queue pair's number has 24 bits */
    expect_lie(36, 1, CCI_ECONNREFUSED);    /* another qkey */
    expect_lie(40, 1, CCI_ECONNREFUSED);    /* an Ethernet has no LIDs */
}

static void lies_of_strangers(void **state) {
    liar it, stranger;
    cci_event_t *event;
    struct timeval soon = {0, 300000};
    int i;
    (void)state;
    open_both("");
    liar_open(&it);
    liar_open(&stranger);
    assert_int_equal(cci_connect(left, it.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    liar_hear(&it);
    stranger.from = it.from;
    memcpy(stranger.card, it.card, 64);
    liar_say(&stranger); /* who saw the question, but is somewhere else */
    for (i = 8; i < 16; i++) {
        it.card[i] ^= 0x40; /* the right place, but the question was not seen */
        liar_say(&it);
        it.card[i] ^= 0x40;
    }
    event = next_event(left, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    cci_return_event(event);
    close(it.fd);
    close(stranger.fd);
}

/* Questions are repeated, ever more slowly, and many connections to one host ask together. */
static void questions_again(void **state) {
    liar it;
    uint8_t card[64];
    int i, asked = 0;
    struct timeval soon = {1, 0};
    (void)state;
    open_both("");
    liar_open(&it);
    for (i = 0; i < 20; i++) {
        assert_int_equal(cci_connect(left, it.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    }
    liar_hear(&it);
    serve(500000000);
    while (recv(it.fd, card, sizeof card, MSG_DONTWAIT) == 64) {
        asked++;
        assert_memory_equal(card + 8, it.card + 8, 8);
    }
    assert_in_range(asked, 2, 8);
    liar_say(&it);
    for (i = 0; i < 20; i++) {
        cci_event_t *event = next_event(left, CCI_EVENT_CONNECT);
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        cci_return_event(event);
    }
    close(it.fd);
}

/* More hosts than there are places for questions: who finds none has to wait, and nothing grows. */
static void questions_beyond_count(void **state) {
    struct timeval soon = {0, 400000};
    size_t i, n = 3 * CCI__VERBS_QUESTIONS;
    (void)state;
    open_both("");
    for (i = 0; i < n; i++) {
        char uri[64];
        snprintf(uri, sizeof uri, "verbs://127.0.%u.%u:9", (unsigned)(1 + i / 200), (unsigned)(i % 200 + 1));
        assert_int_equal(cci_connect(left, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    }
    for (i = 0; i < n; i++) {
        cci_event_t *event = next_event(left, CCI_EVENT_CONNECT);
        assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
        cci_return_event(event);
    }
    exchange(connect_to(uri_of(right)), 10);
}

/* ---- strangers ---------------------------------------------------------------------------------------------------- */

/* A datagram with a header of the test's own. */
static void forge(cci_endpoint_t *to, const uint8_t *from_gid, uint32_t from_qp, const uint8_t *bytes, uint32_t length) {
    uint8_t header[40];
    fake_write_header(header, from_gid, link_of(to)->port.gid);
    (void)fake_deliver(qp_of(to), header, bytes, length, from_qp, 0, 0);
}

/* One who knows the token of a request, as the server of another name does that was asked, answers from where nobody was asked:
 * the client neither believes it nor sends anything there. */
static void names_of_strangers(void **state) {
    static const uint8_t types[] = {CCI__PKT_COOKIE, CCI__PKT_ACCEPT, CCI__PKT_REJECT, CCI__PKT_BUSY, CCI__PKT_NOT_HERE};
    uint8_t bytes[CCI__ACCEPT_SIZE + CCI__RC_STATE_SIZE], gid[16];
    cci_device_t *const *devices;
    cci__rc_conn *conn;
    cci_conn_t stranger, before;
    cci_conn_pending_t *pending;
    cci_event_t *event;
    int sent;
    uint32_t i;
    (void)state;
    assert_int_equal(configured("[left]\ntransport = verbs\ndevice = fake0", ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
    assert_int_equal(cci_connect(left, "verbs://127.0.0.2/storage", "hello", 5, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    conn = cci__rc_at((cci__rc *)(void *)left, 0);
    pending = conn->in.asked;
    memcpy(gid, link_of(left)->port.gid, sizeof gid);
    gid[15] = 77;
    before = conn->conn;
    sent = fake.sent;
    for (i = 0; i < sizeof types; i++) {
        memset(&stranger, 0, sizeof stranger);
        memset(bytes, 0, sizeof bytes);
        stranger.pub.max_send_size = 256;
        stranger.token = 99;
        stranger.peer_token = conn->conn.token;
        stranger.peer_index = conn->conn.index;
        (void)cci_conn_write_accept(&stranger, 65536, bytes);
        bytes[1] = types[i];
        if (types[i] == CCI__PKT_NOT_HERE) {
            cci__store64(bytes + 16, pending->seek->name.id | pending->seek->at);
        }
        forge(left, gid, 999, bytes, sizeof bytes);
        assert_int_not_equal(cci_get_event(left, &event), CCI_SUCCESS);
        assert_int_equal(conn->conn.state, CCI_CONN_CONNECTING);
        assert_int_equal(conn->conn.peer_token, 0);
        assert_int_equal(conn->conn.pub.max_send_size, before.pub.max_send_size);
        assert_int_equal(conn->conn.flags, before.flags);
        assert_memory_equal(&conn->conn.peer, &pending->seek->addresses[pending->seek->at], sizeof conn->conn.peer);
    }
    assert_int_equal(fake.sent, sent);
}

/* Requests from ever new addresses, each of which wants an answer: the table of handles does not grow, and a peer that
 * is busy meanwhile goes on. */
static void handles_are_bounded(void **state) {
    cci_connection_t *connection;
    uint8_t request[200], gid[16];
    uint32_t i, n = 20000;
    cci_conn_header_t header;
    (void)state;
    open_both("address_handles = 64");
    connection = connect_to(uri_of(right));
    exchange(connection, 100);
    memset(request, 0, sizeof request);
    memcpy(gid, link_of(left)->port.gid, 16);
    for (i = 0; i < n; i++) {
        cci_event_t *event;
        cci_conn_t stranger;
        cci_conn_request_t asked;
        memset(&stranger, 0, sizeof stranger);
        memset(&asked, 0, sizeof asked);
        memcpy(gid + 12, &i, 3);
        gid[12] = 10;
        stranger.index = i;
        stranger.token = i + 1;
        asked.window = 65536;
        asked.max_send_size = 500;
        asked.unit = 8;
        (void)cci_conn_write_request(&stranger, &asked, request);
        assert_true(cci_conn_parse(request, 64, &header));
        forge(right, gid, 5 + i % 1000, request, 64);
        while (cci_get_event(right, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                assert_int_equal(cci_reject(event), CCI_SUCCESS);
            }
            cci_return_event(event);
        }
        if (i % 1000 == 0) {
            exchange(connection, 50);
        }
    }
    assert_true(fake.ahs_made > 1000);
    assert_in_range(fake.most_ahs, 64, 2 * 64 + 2 * CCI__VERBS_RETIRED);
}

/* Making a handle may take long, for addresses where nobody is: strangers get a tenth of the time at most. */
static void handles_cost_little(void **state) {
    cci_connection_t *connection;
    uint8_t gid[16];
    cci_link_addr_t to;
    cci__verbs_link *l;
    uint64_t began_ns;
    uint32_t i;
    int made;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    l = link_of(right);
    fake.ah_takes_ns = 5000000;
    fake.ah_fails = 1;
    made = fake.ahs_made;
    memcpy(gid, l->port.gid, 16);
    began_ns = now_ns();
    for (i = 0; now_ns() - began_ns < 300000000u; i++) {
        cci__verbs_now(l);
        gid[14] = (uint8_t)i;
        gid[13] = (uint8_t)(i >> 8);
        cci__verbs_make_addr(&to, 0, 77, gid);
        assert_null(cci__verbs_handle_of(l, &to));
    }
    assert_in_range(fake.ahs_made - made, 1, (now_ns() - began_ns) / (10 * fake.ah_takes_ns) + 2);
    exchange(connection, 100); /* who is known is not affected */
}

/* An address that can't be reached is not tried again with each packet. */
static void handles_that_fail(void **state) {
    cci_event_t *event;
    struct timeval soon = {0, 500000};
    int made;
    (void)state;
    open_both("");
    made = fake.ahs_made;
    fake.ah_fails = 1;
    assert_int_equal(cci_connect(left, uri_of(right), NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    event = next_event(left, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    cci_return_event(event);
    assert_in_range(fake.ahs_made - made, 1, 7);
    fake.ah_fails = 0;
    exchange(connect_to(uri_of(right)), 10);
}

/* Completions with lengths and headers that can't be, and datagrams of noise. */
static void odd_datagrams(void **state) {
    cci_connection_t *connection;
    uint8_t header[40], bytes[1024];
    uint64_t random = 7;
    struct ibv_wc wc;
    uint32_t i, n;
    fake_qp *q;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    q = qp_of(right);
    for (i = 0; i < 3000; i++) {
        cci_event_t *event;
        for (n = 0; n < sizeof bytes; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[n] = (uint8_t)(random >> 56);
        }
        memcpy(header, bytes + 500, sizeof header);
        if (i % 2) {
            fake_write_header(header, bytes + 100, link_of(right)->port.gid);
        }
        bytes[0] = 1;
        bytes[1] = (uint8_t)(i % 12);
        (void)fake_deliver(q, header, bytes, (uint32_t)(random >> 40) % 1024, (uint32_t)random & 0xffffff, 0,
                           (uint32_t)random);
        if (i % 100 == 0) { /* too short for a header, and too long */
            memset(&wc, 0, sizeof wc);
            wc.wr_id = q->recv[q->recv_first].wr_id;
            wc.byte_len = i % 200 ? 39 : 5000;
            wc.wc_flags = i % 300 ? IBV_WC_GRH : 0;
            q->recv_first = (q->recv_first + 1) % FAKE_RECVS;
            q->recv_count--;
            fake_complete(q->pub.recv_cq, &wc);
        }
        while (cci_get_event(right, &event) == CCI_SUCCESS) {
            cci_return_event(event);
        }
    }
    assert_true(link_of(right)->unmatched > 0);
    exchange(connection, 100);
    assert_int_equal(q->recv_count + link_of(right)->to_post_count, link_of(right)->recv_depth); /* no buffer is lost */
}

/* ---- failures ----------------------------------------------------------------------------------------------------- */

/* Whatever can't be made, creating the endpoint fails cleanly; nothing is left behind (end_fake). */
static void creation_fails(void **state) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    int n, failures = 0;
    (void)state;
    assert_int_equal(configured(FAKE0, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    for (n = 1; n < 100; n++) {
        int status;
        fake.fail_at = n;
        status = cci_create_endpoint(devices[0], 0, &endpoint, &fd);
        if (status == CCI_SUCCESS) {
            assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
            if (fake.fail_at > 0) {
                break; /* it takes fewer than that */
            }
        } else {
            failures++;
            fake_end();
        }
        fake.fail_at = 0;
    }
    assert_in_range(failures, 6, 20);
    fake.fail_at = 0;
    fake.modify_fails = 1;
    assert_int_not_equal(cci_create_endpoint(devices[0], 0, &endpoint, &fd), CCI_SUCCESS);
    fake_end();
}

/* The queue pair is reset: it keeps its number, and nothing is lost to the program. */
static void queue_pair_fails(void **state) {
    cci_connection_t *connection;
    uint32_t number;
    int i;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    number = qp_of(right)->pub.qp_num;
    for (i = 0; i < 5; i++) {
        struct ibv_wc wc;
        fake_qp *q = qp_of(i % 2 ? left : right);
        q->pub.state = IBV_QPS_ERR;
        q->recv_count = 0;
        if (i < 2) { /* told by an event */
            fake_event_of(q, IBV_EVENT_QP_FATAL);
        } else { /* or by a receive buffer that comes back */
            memset(&wc, 0, sizeof wc);
            wc.wr_id = q->recv[q->recv_first].wr_id;
            wc.status = IBV_WC_WR_FLUSH_ERR;
            fake_complete(q->pub.recv_cq, &wc);
        }
        exchange(connection, 200);
    }
    assert_int_equal(qp_of(right)->pub.qp_num, number);
    assert_in_range(link_of(right)->repairs, 3, 4); /* a late event may tell again what was noticed before */
    assert_in_range(link_of(left)->repairs, 2, 3);
}

/* A send that fails tells so by its completion, and the next posts by an error. */
static void send_fails(void **state) {
    cci_connection_t *connection;
    struct ibv_wc wc;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    exchange(connection, 200);
    qp_of(left)->pub.state = IBV_QPS_SQE;
    exchange(connection, 200);
    assert_int_equal(link_of(left)->repairs, 1);
    memset(&wc, 0, sizeof wc);
    wc.wr_id = (uint64_t)link_of(left)->epoch << 32 | (uint32_t)link_of(left)->send_next;
    wc.status = IBV_WC_LOC_QP_OP_ERR;
    fake_complete(qp_of(left)->pub.send_cq, &wc);
    cci__verbs_reap(link_of(left));
    exchange(connection, 200);
    assert_int_equal(link_of(left)->repairs, 2);
}

/* Completion queues that failed are made anew, and the queue pair with them: peers find its new number. */
static void completion_queue_fails(void **state) {
    cci_connection_t *connection, *tx;
    uint32_t number;
    cci_event_t *event;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    (void)join(right, "verbs://239.77.8.2:1001", CCI_CONN_ATTR_UU_MC_RX);
    tx = join(left, "verbs://239.77.8.2:1001", CCI_CONN_ATTR_UU_MC_TX);
    exchange(connection, 200);
    number = qp_of(left)->pub.qp_num;
    fake_event_of(qp_of(left), IBV_EVENT_CQ_ERR);
    serve(400000000);
    assert_int_not_equal(qp_of(left)->pub.qp_num, number);
    exchange(connection, 200);
    ((fake_cq *)(void *)qp_of(right)->pub.recv_cq)->fails = 1;
    serve(20000000);
    assert_int_equal(link_of(right)->repairs, 1);
    assert_int_equal(cci_send(tx, "group", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
    event = next_event(right, CCI_EVENT_RECV); /* the group is still joined */
    assert_int_equal(event->recv.len, 5);
    cci_return_event(event);
    exchange(connect_to(uri_of(right)), 20); /* and the host tells the new number */
}

/* What can't be repaired is a failed device; all calls on its endpoint still work. */
static void repair_fails(void **state) {
    cci_connection_t *connection, *rx;
    struct pollfd item;
    cci_event_t *event;
    char *uri;
    int i;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    rx = join(left, "verbs://239.77.8.3:1001", CCI_CONN_ATTR_UU_MC_RX);
    for (i = 0; i < 100; i++) { /* more than it takes at once */
        forge(left, link_of(right)->port.gid, 99, (const uint8_t *)"noise", 5);
    }
    (void)cci_get_event(left, &event);
    fake_event_of(qp_of(left), IBV_EVENT_QP_FATAL);
    fake.modify_fails = 1;
    cci_return_event(next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED));
    fake.modify_fails = 0;
    assert_int_equal(fake.qps, 1);
    assert_int_equal(cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT), CCI_ERR_DEVICE_DEAD);
    assert_int_not_equal(cci_connect(left, "verbs://239.77.8.4:1001", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL),
                         CCI_SUCCESS);
    assert_int_equal(cci_disconnect(rx), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(left, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    free(uri);
    assert_int_equal(cci_disconnect(connection), CCI_SUCCESS);
    serve(50000000);
    item.fd = left_fd;
    item.events = POLLIN;
    for (i = 0; poll(&item, 1, 0) > 0; i++) { /* nobody is woken for ever */
        assert_true(i < 100 && cci_get_event(left, &event) != CCI_SUCCESS);
    }
}

static void device_goes(void **state) {
    cci_connection_t *connection;
    cci_event_t *event;
    struct pollfd item;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    exchange(connection, 10);
    fake.drops = 1;
    assert_int_equal(cci_send(connection, "x", 1, NULL, 0), CCI_SUCCESS);
    fake_event(0, IBV_EVENT_DEVICE_FATAL);
    item.fd = left_fd;
    item.events = POLLIN;
    assert_int_equal(poll(&item, 1, 60000), 1); /* who sleeps is woken */
    event = next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
    assert_ptr_equal(event->dev_failed.endpoint, left);
    cci_return_event(event);
    assert_int_equal(left->device->up, 0);
    event = next_event(left, CCI_EVENT_SEND);
    assert_int_equal(event->send.status, CCI_ERR_DEVICE_DEAD);
    cci_return_event(event);
    assert_int_equal(cci_send(connection, "x", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
    while (poll(&item, 1, 0) > 0) { /* it does not stay readable for what is no more */
        assert_true(cci_get_event(left, &event) != CCI_SUCCESS);
    }
    assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
    left = NULL;
}

static void port_goes_and_comes(void **state) {
    cci_connection_t *connection;
    int i;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    for (i = 0; i < 3; i++) {
        exchange(connection, 10);
        fake.port_state[0] = IBV_PORT_DOWN;
        fake_event(0, IBV_EVENT_PORT_ERR);
        cci_return_event(next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED));
        assert_int_equal(left->device->up, 0);
        assert_int_equal(cci_send(connection, "later", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        fake.port_state[0] = IBV_PORT_ACTIVE;
        fake_event(0, IBV_EVENT_PORT_ACTIVE);
        cci_return_event(next_event(right, CCI_EVENT_RECV)); /* the message was only late */
        serve(200000000);
        assert_int_equal(left->device->up, 1);
    }
}

static void is_news(cci_status_what_t what, uint64_t value) {
    cci_event_t *event = next_event(left, CCI_EVENT_STATUS);
    assert_int_equal(event->status.what, what);
    assert_int_equal(event->status.value, value);
    assert_null(event->status.connection);
    cci_return_event(event);
}

/* The port goes down and comes back with another MTU; it loses its address. */
static void port_news(void **state) {
    static const char *const modes[] = {"ud", "rc"};
    const uint32_t mask = 1u << CCI_EVENT_STATUS;
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        cci_device_t *const *devices;
        char text[256];
        snprintf(text, sizeof text, "[left]\ntransport = verbs\ndevice = fake0\nmode = %s\n", modes[i]);
        fake_begin();
        assert_int_equal(configured(text, ""), CCI_SUCCESS);
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
        assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
        right = NULL;
        fake.port_state[0] = IBV_PORT_DOWN;
        fake_event(0, IBV_EVENT_PORT_ERR);
        cci_return_event(next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED));
        is_news(CCI_STATUS_DEVICE_DOWN, 0);
        fake.port_state[0] = IBV_PORT_ACTIVE;
        fake.mtu = IBV_MTU_2048;
        fake_event(0, IBV_EVENT_PORT_ACTIVE);
        is_news(CCI_STATUS_MTU_CHANGED, 2048); /* the first one, too */
        is_news(CCI_STATUS_DEVICE_UP, 0);
        fake_event(0, IBV_EVENT_LID_CHANGE); /* it looks: all is as it was */
        fake_set_gid(0, 1, "::");
        fake_event(0, IBV_EVENT_GID_CHANGE);
        is_news(CCI_STATUS_ADDRESS_CHANGED, 0);
        cci_return_event(next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED));
        is_news(CCI_STATUS_DEVICE_DOWN, 0);
        fake.mtu = IBV_MTU_4096;
        fake_set_gid(0, 1, "127.0.0.1");
        fake_event(0, IBV_EVENT_GID_CHANGE);
        is_news(CCI_STATUS_ADDRESS_CHANGED, 1);
        is_news(CCI_STATUS_MTU_CHANGED, 4096);
        is_news(CCI_STATUS_DEVICE_UP, 0);
        finalize();
    }
}

/* The port's address moves to another place in its table, and goes. */
static void address_moves(void **state) {
    cci_connection_t *connection;
    (void)state;
    open_both("");
    connection = connect_to(uri_of(right));
    exchange(connection, 10);
    fake_set_gid(0, 1, "::");
    fake_set_gid(0, 3, "127.0.0.1");
    fake_event(0, IBV_EVENT_GID_CHANGE);
    serve(200000000);
    assert_int_equal(left->device->up, 1);
    exchange(connection, 10);
    assert_int_equal(link_of(left)->port.gid_index, 3);
    fake_set_gid(0, 3, "::");
    fake_event(0, IBV_EVENT_GID_CHANGE);
    cci_return_event(next_event(left, CCI_EVENT_ENDPOINT_DEVICE_FAILED));
    fake_set_gid(0, 2, "127.0.0.1");
    fake_event(0, IBV_EVENT_GID_CHANGE);
    serve(200000000);
    assert_int_equal(left->device->up, 1);
    exchange(connection, 10);
}

/* ---- mode = rc: completion queues that fail ------------------------------------------------------------------------ */

#define RC_CONNECTIONS 4

/* One end of a connection: messages are numbered, so that each is known to have come once and in its turn. */
typedef struct rc_end {
    cci_connection_t *connection;
    uint32_t sent, got, done, failed;
    int status; /* of the last that failed */
} rc_end;

static rc_end ends[2][RC_CONNECTIONS];
static uint8_t rc_memory[2][4096];
static cci_rma_handle_t *rc_handle[2];
static int device_failures[2];

static cci__rc *rc_of(int side) {
    return (cci__rc *)(void *)(side == 0 ? left : right);
}

/* A round of work without an event; the lock is held as it is in a call, since the making of a queue pair lets go of it meanwhile. */
static void rc_work(int side) {
    cci__rc_lock(rc_of(side));
    cci__rc_work(&rc_of(side)->base);
    cci__rc_unlock(rc_of(side));
}

static fake_cq *rc_cq(int side) {
    return (fake_cq *)(void *)rc_of(side)->cq;
}

static void rc_tally(int side, cci_event_t *event) {
    rc_end *end;
    uint32_t number;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        memcpy(&number, event->request.data_ptr, sizeof number);
        assert_int_equal(cci_accept(event, &ends[side][number]), CCI_SUCCESS);
        break;
    case CCI_EVENT_ACCEPT:
    case CCI_EVENT_CONNECT:
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        end = (rc_end *)event->connect.context;
        assert_null(end->connection);
        end->connection = event->connect.connection;
        break;
    case CCI_EVENT_RECV:
        end = (rc_end *)event->recv.connection->context;
        assert_ptr_equal(end->connection, event->recv.connection); /* no message comes before its connection */
        assert_int_equal(event->recv.len, sizeof number);
        memcpy(&number, event->recv.ptr, sizeof number);
        assert_int_equal(number, end->got);
        end->got++;
        break;
    case CCI_EVENT_SEND:
        end = (rc_end *)event->send.connection->context;
        if (event->send.status == CCI_SUCCESS) {
            assert_int_equal(end->failed, 0);
            end->done++;
        } else {
            end->failed++;
            end->status = (int)event->send.status;
        }
        break;
    default:
        assert_int_equal(event->type, CCI_EVENT_ENDPOINT_DEVICE_FAILED);
        device_failures[side]++;
        break;
    }
    cci_return_event(event);
}

static void rc_serve(int side) {
    cci_event_t *event;
    if (cci_get_event(side == 0 ? left : right, &event) == CCI_SUCCESS) {
        rc_tally(side, event);
    }
}

#define RC_AWAIT(condition)                                                                                            \
    {                                                                                                                  \
        uint64_t end_ns = now_ns() + 60 * SECOND_NS;                                                                   \
        while (!(condition)) {                                                                                         \
            rc_serve(0);                                                                                               \
            rc_serve(1);                                                                                               \
            if (now_ns() > end_ns) {                                                                                   \
                fail_msg("never: %s", #condition);                                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }

static void rc_begin_connecting(uint32_t count) {
    cci_device_t *const *devices;
    uint32_t i;
    memset(ends, 0, sizeof ends);
    memset(rc_memory, 0, sizeof rc_memory);
    memset(device_failures, 0, sizeof device_failures);
    assert_int_equal(configured("[left]\ntransport = verbs\ndevice = fake0\nsetups = 0\n"
                                "[right]\ntransport = verbs\ndevice = fake1\nsetups = 0", ""),
                     CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &left_fd), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[1], 0, &right, NULL), CCI_SUCCESS);
    for (i = 0; i < count; i++) {
        char uri[100]; /* with no questions to be asked before */
        snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
        assert_int_equal(cci_connect(left, uri, &i, sizeof i, CCI_CONN_ATTR_RO, &ends[0][i], 0, NULL), CCI_SUCCESS);
    }
    assert_int_equal(cci_rma_register(left, rc_memory[0], 4096, CCI_FLAG_READ | CCI_FLAG_WRITE, &rc_handle[0]), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(right, rc_memory[1], 4096, CCI_FLAG_READ | CCI_FLAG_WRITE, &rc_handle[1]), CCI_SUCCESS);
}

static int rc_all_connected(uint32_t count) {
    uint32_t i;
    for (i = 0; i < count; i++) {
        if (ends[0][i].connection == NULL || ends[1][i].connection == NULL) {
            return 0;
        }
    }
    return 1;
}

static void rc_open(uint32_t count) {
    rc_begin_connecting(count);
    RC_AWAIT(rc_all_connected(count));
}

/* A connection's queue pair. */
static fake_qp *rc_qp(cci_connection_t *connection) {
    return (fake_qp *)(void *)((cci__rc_conn *)(void *)connection)->qp;
}

static void rc_send(int side, int index, uint32_t count) {
    rc_end *end = &ends[side][index];
    for (; count > 0; count--) {
        uint32_t number = end->sent++;
        assert_int_equal(cci_send(end->connection, &number, sizeof number, NULL, 0), CCI_SUCCESS);
    }
}

/* Everything has arrived and is complete, both ways. */
static int rc_is_settled(int index) {
    const rc_end *l = &ends[0][index], *r = &ends[1][index];
    return l->done == l->sent && r->done == r->sent && l->got == r->sent && r->got == l->sent;
}

/* ... and so is what comes now. */
static void rc_works(int index) {
    rc_send(0, index, 3);
    rc_send(1, index, 3);
    RC_AWAIT(rc_is_settled(index));
}

static void rc_fail_cq(int side) {
    fake_event_of_queue(rc_of(side)->context, IBV_EVENT_CQ_ERR, rc_of(side)->cq);
    rc_of(side)->base.check_ns = 0; /* it is looked at in the next round, where nobody sleeps too */
    rc_of(side)->base.polls.left = 0; /* the next round looks at everything */
}

static void rc_messages(void **state) {
    (void)state;
    rc_open(2);
    rc_works(0);
    rc_works(1);
    memset(rc_memory[0], 7, 4096);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, rc_handle[1], 0, 4096, NULL, CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == ends[0][0].sent + 1);
    assert_memory_equal(rc_memory[0], rc_memory[1], 4096);
}

/* By an event, by a queue that can't be read, by the shared receive queue: all is replaced, and nobody notices. */
static void rc_queue_fails(void **state) {
    int side, i;
    (void)state;
    rc_open(RC_CONNECTIONS);
    for (side = 0; side < 2; side++) {
        for (i = 0; i < 3; i++) {
            uint32_t repairs = rc_of(side)->repairs;
            struct ibv_qp *ud = rc_of(side)->hw->qp;
            if (i == 0) {
                rc_fail_cq(side);
            } else if (i == 1) {
                rc_cq(side)->fails = 1;
            } else {
                fake_event_of_queue(rc_of(side)->context, IBV_EVENT_SRQ_ERR, rc_of(side)->srq);
            }
            RC_AWAIT(rc_of(side)->repairs == repairs + 1);
            for (repairs = 0; repairs < RC_CONNECTIONS; repairs++) {
                rc_works((int)repairs);
            }
            assert_ptr_equal(rc_of(side)->hw->qp, ud); /* the link's own queues are others */
        }
    }
    assert_int_equal(device_failures[0] + device_failures[1], 0);
    assert_int_equal(fake.qps, 2 + 2 * RC_CONNECTIONS);
    assert_int_equal(fake.cqs, 6);
    assert_int_equal(fake.srqs, 2);
}

/* All that the queue of this side is told of vanishes, until it is told to have failed. */
static void rc_completions_lost(void **state) {
    uint32_t value = 0, i;
    (void)state;
    rc_open(2);
    rc_works(0);
    rc_cq(0)->swallows = 1;
    rc_send(0, 0, 20);
    for (i = 0; i < 200; i++) {
        rc_serve(0);
        rc_serve(1);
    }
    assert_int_equal(ends[1][0].got, 23); /* they have arrived, but who sent them does not know it */
    assert_int_equal(ends[0][0].done, 3);
    memset(rc_memory[0], 5, 4096);
    assert_int_equal(cci_rma(ends[0][0].connection, &ends[0][0].sent, 4, rc_handle[0], 0, rc_handle[1], 0, 4096, NULL,
                             CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    ends[0][0].sent++;
    for (i = 0; i < 200; i++) {
        rc_serve(0);
        rc_serve(1);
    }
    assert_int_equal(ends[1][0].got, 24);
    assert_int_equal(rc_memory[1][4095], 5);
    rc_memory[1][4095] = 9; /* the program has been told, and may use its memory again */
    rc_send(0, 1, 1);
    assert_true(rc_cq(0)->swallowed > 0);
    rc_fail_cq(0);
    RC_AWAIT(rc_is_settled(0) && rc_is_settled(1));
    assert_int_equal(rc_memory[1][4095], 9); /* what is known to be written is not written again */
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, rc_handle[1], 0, 4, NULL, CCI_FLAG_READ),
                     CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == ends[0][0].sent + 1);
    ends[0][0].done--;
    rc_works(0);
    memcpy(&value, rc_memory[0], sizeof value);
    assert_int_equal(value, 0x05050505);
}

/* Messages that came, were acknowledged, and whose completions were lost can't be had any more. */
static void rc_messages_lost(void **state) {
    (void)state;
    rc_open(3);
    rc_works(0);
    rc_works(1);
    rc_cq(0)->swallows = 1;
    rc_send(1, 0, 5);
    RC_AWAIT(ends[1][0].done == ends[1][0].sent);
    rc_send(0, 0, 4);
    rc_send(0, 2, 4);
    RC_AWAIT(ends[1][0].got == ends[0][0].sent); /* and this side does not know it */
    rc_fail_cq(0);
    RC_AWAIT(ends[0][0].done == ends[0][0].sent); /* what had arrived is told so */
    rc_send(0, 0, 1);
    RC_AWAIT(ends[0][0].failed == 1);
    assert_int_equal(ends[0][0].status, CCI_ERR_DISCONNECTED);
    assert_int_equal(ends[0][0].got, 3);
    assert_int_equal(cci_send(ends[0][0].connection, "?", 1, NULL, 0), CCI_ERR_DISCONNECTED);
    assert_int_equal(cci_send(ends[1][0].connection, "?", 1, NULL, 0), CCI_ERR_DISCONNECTED);
    rc_works(1);
    rc_works(2);
    assert_int_equal(cci_disconnect(ends[0][0].connection), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(ends[1][0].connection), CCI_SUCCESS);
    assert_int_equal(fake.qps, 2 + 4);
    assert_int_equal(device_failures[0] + device_failures[1], 0);
}

/* Buffers that are out of use stay so; and none is given to the hardware twice, which the fake device would notice. */
static void rc_fewer_buffers(void **state) {
    uint32_t few = 16, i;
    (void)state;
    rc_open(1);
    assert_int_equal(cci_set_opt(right, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    for (i = 0; i < 200; i++) {
        rc_works(0);
    }
    assert_int_equal(((fake_srq *)(void *)rc_of(1)->srq)->recv_count, few);
    rc_fail_cq(1);
    RC_AWAIT(rc_of(1)->repairs == 1);
    assert_int_equal(((fake_srq *)(void *)rc_of(1)->srq)->recv_count, few);
    few = 100;
    assert_int_equal(cci_set_opt(right, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    assert_int_equal(((fake_srq *)(void *)rc_of(1)->srq)->recv_count, few);
    rc_works(0);
}

/* Completions that have not been looked at when the pair is made anew, on a device that drops them then. */
static void rc_completions_late(void **state) {
    uint32_t i;
    (void)state;
    rc_open(1);
    fake.reset_purges = 1;
    rc_works(0);
    for (i = 0; i < 200; i++) {
        rc_send(0, 0, 1);
        rc_serve(0);
    }
    assert_int_equal(ends[1][0].got, 3);
    rc_fail_cq(0);
    while (rc_of(0)->repairs == 0) {
        rc_serve(0);
    }
    RC_AWAIT(rc_is_settled(0));
    rc_works(0);
}

/* The kernel's software driver crashes when a packet comes while a queue pair that has failed is reset. */
static void rc_no_reset(void **state) {
    uint32_t i;
    (void)state;
    rc_open(1);
    fake_stop(rc_qp(ends[0][0].connection), IBV_QPS_RTS);
    rc_works(0);
    assert_true(fake.resets > 0);
    finalize();
    fake_end();
    fake_begin();
    fake.vendor_id = 0xffffff;
    rc_open(1);
    for (i = 0; i < 10; i++) {
        uint32_t number = rc_qp(ends[0][0].connection)->pub.qp_num;
        fake_stop(rc_qp(ends[0][0].connection), IBV_QPS_RTS);
        rc_works(0);
        assert_int_not_equal(rc_qp(ends[0][0].connection)->pub.qp_num, number);
    }
    assert_int_equal(fake.resets, 0);
}

/* At whatever step of the handshake a queue fails, on whichever side, the connection comes about. */
static void rc_handshake(void **state) {
    uint32_t step, failed = 0, i;
    (void)state;
    for (step = 0; step < 160; step++) {
        int side = (int)step % 2;
        uint32_t rounds = step / 4;
        rc_begin_connecting(1);
        for (i = 0; i < rounds; i++) {
            fake.drops = step % 4 >= 2 && i + 10 > rounds; /* and what was said last is not heard */
            rc_serve(side);
            rc_serve(!side);
        }
        fake.drops = 0;
        failed += !rc_all_connected(1);
        if (step % 3 == 0) {
            rc_fail_cq(!side);
        }
        rc_fail_cq(side);
        RC_AWAIT(rc_all_connected(1));
        rc_works(0);
        assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
        finalize();
        fake_end();
    }
    assert_in_range(failed, 30, 159);
}

/* The queue pair for datagrams gets another number when its own completion queue fails: both sides must be heard still. */
static void rc_datagrams_move(void **state) {
    int side, i;
    (void)state;
    rc_open(2);
    for (side = 0; side < 2; side++) {
        cci_event_t *event;
        uint32_t number = rc_of(side)->hw->qp->qp_num;
        cci_connection_t *unreliable, *connection = NULL;
        assert_int_equal(cci_connect(right, uri_of(left), "u", 1, CCI_CONN_ATTR_UU, NULL, 0, NULL), CCI_SUCCESS);
        unreliable = NULL;
        while (unreliable == NULL || connection == NULL) {
            if (cci_get_event(left, &event) == CCI_SUCCESS) {
                if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                    assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
                } else {
                    assert_int_equal(event->type, CCI_EVENT_ACCEPT);
                    unreliable = event->accept.connection;
                }
                cci_return_event(event);
            }
            if (cci_get_event(right, &event) == CCI_SUCCESS) {
                connection = event->connect.connection;
                cci_return_event(event);
            }
        }
        fake_event_of_queue(rc_of(side)->context, IBV_EVENT_CQ_ERR, rc_of(side)->hw->recv_cq);
        for (i = 0; i < 2; i++) {
            rc_works(i);
        }
        RC_AWAIT(rc_of(side)->hw->qp->qp_num != number && rc_of(side)->datagram_qp == rc_of(side)->hw->qp->qp_num);
        rc_fail_cq(!side); /* who has not moved must find the other */
        for (i = 0; i < 2; i++) {
            rc_works(i);
        }
        rc_fail_cq(side);
        for (i = 0; i < 2; i++) {
            rc_works(i);
        }
        if (side == 1) {
            connection = unreliable; /* the end at the side that has not moved */
        }
        RC_AWAIT(cci__verbs_addr_qpn(&((cci__rc_conn *)(void *)connection)->conn.peer) == rc_of(side)->datagram_qp);
        assert_int_equal(cci_send(connection, "u", 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        cci_return_event(next_event(side == 0 ? left : right, CCI_EVENT_RECV));
    }
}

/* The server's first message is there when the client's queue pair is stopped, and its program knows of no connection yet. */
static void rc_early(void **state) {
    cci__rc_conn *conn;
    (void)state;
    rc_begin_connecting(1);
    while (ends[1][0].connection == NULL) {
        rc_serve(0);
        rc_serve(1);
    }
    rc_send(1, 0, 1);
    conn = cci__rc_at(rc_of(0), 0);
    assert_true(conn->conn.flags & CCI__RC_AWAITING);
    cci__rc_drain(rc_of(0), conn);
    RC_AWAIT(ends[0][0].connection != NULL && rc_is_settled(0));
    rc_works(0);
}

/* Both sides begin anew twice before they hear of each other: what they hear first is over by then. */
static void rc_crossing(void **state) {
    int side, i;
    (void)state;
    rc_open(1);
    for (side = 0; side < 2; side++) {
        for (i = 0; i < 2; i++) {
            cci__rc_drain(rc_of(side), (cci__rc_conn *)(void *)ends[side][0].connection);
            cci__rc_settle(rc_of(side));
        }
    }
    rc_works(0);
    for (side = 0; side < 2; side++) {
        assert_in_range(((cci__rc_conn *)(void *)ends[side][0].connection)->epoch, 3, 6);
    }
}

static uint32_t rc_random(uint32_t below) {
    static uint64_t seed = 12345;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* Failures at any time, of both sides, also close to each other; some with what is sent lost. */
static void rc_often(void **state) {
    int step, i, held = 0;
    (void)state;
    rc_open(RC_CONNECTIONS);
    fake.reset_purges = 1;
    for (step = 0; step < 20000; step++) {
        int side = (int)rc_random(2), index = (int)rc_random(RC_CONNECTIONS);
        if (ends[side][index].sent - ends[side][index].done < 60) {
            rc_send(side, index, 1 + rc_random(3));
        }
        for (i = (int)rc_random(4); i > 0; i--) {
            rc_serve((int)rc_random(2));
        }
        if (rc_random(500) == 0) {
            rc_fail_cq(side);
        }
        if (rc_random(500) == 0) { /* as above, but no message may come: nobody else sends */
            held++;
            RC_AWAIT(rc_is_settled(0) && rc_is_settled(1) && rc_is_settled(2) && rc_is_settled(3));
            rc_cq(side)->swallows = 1;
            rc_send(side, index, 10);
            for (i = (int)rc_random(50); i > 0; i--) {
                rc_serve(!side);
            }
            rc_fail_cq(side);
            while (rc_cq(side)->swallows) {
                rc_serve(side);
            }
        }
    }
    for (i = 0; i < RC_CONNECTIONS; i++) {
        rc_works(i);
    }
    assert_true(held > 5 && rc_of(0)->repairs > 5 && rc_of(1)->repairs > 5);
    assert_int_equal(device_failures[0] + device_failures[1], 0);
}

/* Where no new queue can be made the device has failed, and all that is pending ends. */
static void rc_repair_fails(void **state) {
    int at;
    (void)state;
    for (at = 1; at <= 2; at++) {
        rc_open(2);
        rc_works(0);
        fake.drops = 1;
        rc_send(0, 0, 5);
        rc_fail_cq(0);
        fake.fail_at = at;
        RC_AWAIT(device_failures[0] == 1 && ends[0][0].failed == 5);
        assert_int_equal(ends[0][0].status, CCI_ERR_DEVICE_DEAD);
        assert_int_equal(cci_send(ends[0][1].connection, "?", 1, NULL, 0), CCI_ERR_DEVICE_DEAD);
        assert_int_equal(left->device->up, 0);
        assert_int_equal(device_failures[1], 0);
        assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
        finalize();
        fake_end();
        fake_begin();
    }
}

static void rc_destroying_fails(void **state) {
    (void)state;
    rc_open(1);
    fake.destroy_fails = 1;
    assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
    left = NULL;
    assert_non_null(strstr(log_text, "destroying a connection's queue pair"));
    assert_non_null(strstr(log_text, "destroying a connections' completion queue"));
    assert_non_null(strstr(log_text, "destroying a shared receive queue"));
    assert_non_null(strstr(log_text, "deregistering a program's memory"));
    assert_non_null(strstr(log_text, "deregistering memory"));
    fake.destroy_fails = 0;
}

/* ---- mode = rc: connections that end -------------------------------------------------------------------------------- */

/* What a side has seen; `order` is that of the events. */
static struct rc_side {
    uint32_t opened, got, done, failed, closed, requests, got_after_end, refused;
    int status, end_status;
    cci_connection_t *newest;
    cci_event_t *held[2048];
    char uri[160];
    uint8_t data[CCI_CONN_REQ_LEN]; /* of the last CONNECT event */
    uint32_t data_len;
} rc_side[2];
static int holds_requests, holds_messages, lets_go, lacks_pairs, hears_all;

static void rc_take(int side, cci_event_t *event) {
    struct rc_side *s = &rc_side[side];
    if (event->type == CCI_EVENT_CONNECT) {
        s->data_len = event->connect.data_len;
        memcpy(s->data, event->connect.data_len == 0 ? "" : (const char *)event->connect.data_ptr, s->data_len);
    }
    if (hears_all && (event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED ||
                      ((event->type == CCI_EVENT_ACCEPT || event->type == CCI_EVENT_CONNECT) && !event->connect.connection))) {
        s->refused++;
    } else if (hears_all && event->type == CCI_EVENT_CONNECT_REQUEST) {
        (void)cci_accept(event, s);
        (void)cci_reject(event);
    } else if (event->type == CCI_EVENT_CONNECT_REQUEST) {
        assert_non_null(event->request.peer_uri);
        snprintf(s->uri, sizeof s->uri, "%s", event->request.peer_uri);
        if (holds_requests) {
            s->held[s->requests++] = event;
            return;
        }
        assert_int_equal(cci_accept(event, s), CCI_SUCCESS);
    } else if (lacks_pairs && (event->type == CCI_EVENT_ACCEPT || event->type == CCI_EVENT_CONNECT)) {
        assert_int_equal(event->connect.status, side == 1 ? CCI_ENOMEM : CCI_ECONNREFUSED);
        assert_null(event->connect.connection);
        s->refused++;
    } else if (event->type == CCI_EVENT_ACCEPT || event->type == CCI_EVENT_CONNECT) {
        assert_int_equal(event->connect.status, CCI_SUCCESS);
        s->newest = event->connect.connection;
        s->opened++;
    } else if (event->type == CCI_EVENT_RECV && holds_messages) {
        s->held[s->got++] = event;
        return;
    } else if (event->type == CCI_EVENT_RECV) {
        s->got++;
        s->got_after_end += s->closed > 0 && !lets_go;
    } else if (event->type == CCI_EVENT_SEND) {
        assert_true(s->closed == 0 || lets_go);
        *(event->send.status == CCI_SUCCESS ? &s->done : &s->failed) += 1;
        s->status = event->send.status == CCI_SUCCESS ? s->status : (int)event->send.status;
    } else {
        assert_int_equal(event->type, CCI_EVENT_DISCONNECT);
        assert_ptr_equal(event->disconnect.context, s);
        s->end_status = (int)event->disconnect.status;
        s->closed++;
        if (lets_go) {
            assert_int_equal(cci_disconnect(event->disconnect.connection), CCI_SUCCESS);
        }
    }
    cci_return_event(event);
}

static void rc_look(int side) {
    cci_event_t *event;
    if ((side == 0 ? left : right) != NULL && cci_get_event(side == 0 ? left : right, &event) == CCI_SUCCESS) {
        rc_take(side, event);
    }
}

#define ENDS_AWAIT(condition)                                                                                          \
    {                                                                                                                  \
        uint64_t end_ns = now_ns() + 60 * SECOND_NS;                                                                   \
        while (!(condition)) {                                                                                         \
            rc_look(0);                                                                                                \
            rc_look(1);                                                                                                \
            if (now_ns() > end_ns) {                                                                                   \
                fail_msg("never: %s", #condition);                                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }

static void ends_open_apart(const char *left_keys, const char *right_keys) {
    cci_device_t *const *devices;
    char text[512];
    uint32_t mask = 1u << CCI_EVENT_DISCONNECT;
    memset(rc_side, 0, sizeof rc_side);
    holds_requests = holds_messages = lets_go = lacks_pairs = 0;
    snprintf(text, sizeof text,
             "[left]\ntransport = verbs\ndevice = fake0\n%s\n%s\n[right]\ntransport = verbs\ndevice = fake1\n%s\n%s",
             strstr(left_keys, "setups") ? "" : "setups = 0", left_keys, strstr(right_keys, "setups") ? "" : "setups = 0",
             right_keys);
    assert_int_equal(configured(text, ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, NULL), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[1], 0, &right, NULL), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(right, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
}

static void ends_open(const char *keys) {
    ends_open_apart(keys, keys);
}

static void ends_connect(cci_conn_attribute_t attribute) {
    char uri[100];
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
    assert_int_equal(cci_connect(left, uri, "hello", 5, attribute, &rc_side[0], 0, NULL), CCI_SUCCESS);
}

static void ends_begin(const char *keys, cci_conn_attribute_t attribute) {
    ends_open(keys);
    ends_connect(attribute);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
}

static void *seal_no_key(void *user, cci_seal_peer_t *peer) {
    (void)user, (void)peer;
    return NULL;
}

static int seal_nothing(void *user, void *key, const uint8_t nonce[CCI_SEAL_NONCE_LEN], const uint8_t *head,
                        uint32_t head_length, uint8_t *bytes, uint32_t length) {
    (void)user, (void)key, (void)nonce, (void)head, (void)head_length, (void)bytes, (void)length;
    return 1;
}

/* Flags that no call knows, and hooks for encryption, which are not used here. */
static void rc_refuses(void **state) {
    static const cci_seal_t seal = {16, 0, NULL, seal_no_key, NULL, seal_nothing, seal_nothing};
    static uint8_t bytes[64];
    cci_rma_handle_t *handle = NULL;
    cci_endpoint_t *other = NULL;
    cci_setup_t setup;
    uint32_t caps;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    assert_int_equal(cci_create_endpoint(left->device, 0x100, &other, NULL), CCI_EINVAL);
    assert_null(other);
    assert_int_equal(cci_arm_os_handle(left, 16), CCI_EINVAL);
    assert_int_equal(cci_connect(left, "verbs://127.0.0.2/1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0xd5, NULL), CCI_EINVAL);
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, 0x7000, &handle), CCI_EINVAL);
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, 0, &handle), CCI_SUCCESS);
    assert_int_equal(cci_rma(rc_side[0].newest, NULL, 0, handle, 0, handle, 0, 8, NULL, CCI_FLAG_WRITE | 0x8000), CCI_EINVAL);
    assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, 0x4000), CCI_EINVAL);
    assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, CCI_FLAG_FENCE | 1 << 7), CCI_EINVAL);
    assert_null(strstr(log_text, "hooks to seal"));
    finalize();
    log_text[0] = '\0';
    memset(&setup, 0, sizeof setup);
    setup.config = config;
    setup.log = keep_log;
    setup.seal = &seal;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    assert_int_equal(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &left, NULL), CCI_SUCCESS);
    assert_non_null(strstr(log_text, "left: cci_setup() has hooks to seal packets, and this endpoint does not use them"));
}

/* The first answer is lost as well as not; a reliable connection's waits for a queue pair. */
static void rc_answer_data(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_UU};
    uint8_t data[CCI_CONN_REQ_LEN];
    uint32_t i, opened = 0, refused = 0;
    (void)state;
    for (i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    ends_open("");
    holds_requests = lacks_pairs = 1;
    for (i = 0; i < 16; i++) {
        uint32_t length = i & 4 ? 3 : CCI_CONN_REQ_LEN;
        int accepts = (i & 2) != 0;
        cci_event_t *request;
        rc_side[1].requests = 0;
        ends_connect(attributes[i & 1]);
        ENDS_AWAIT(rc_side[1].requests == 1);
        request = rc_side[1].held[0];
        lacks_pairs = !accepts;
        fake.drops = i & 8 ? 1 : 0;
        if (accepts) {
            assert_int_equal(cci_accept_data(request, &rc_side[1], data, length), CCI_SUCCESS);
        } else {
            assert_int_equal(cci_reject_data(request, data, length), CCI_SUCCESS);
        }
        fake.drops = 0;
        assert_int_equal(cci_accept_data(request, &rc_side[1], data, length), CCI_EINVAL);
        assert_int_equal(cci_return_event(request), CCI_SUCCESS);
        opened += (uint32_t)accepts;
        refused += !accepts;
        ENDS_AWAIT(rc_side[0].opened == opened && rc_side[1].opened == opened && rc_side[0].refused == refused);
        assert_int_equal(rc_side[0].data_len, length);
        assert_memory_equal(rc_side[0].data, data, length);
    }
    assert_true(rc_of(1)->answers_kept <= refused); /* those of rejections that are not old yet */
    finalize();
}

/* So many answers are kept for clients that do not come back, and no more. */
static void rc_answer_limit(void **state) {
    cci_event_t *request;
    (void)state;
    ends_open("");
    holds_requests = 1;
    ends_connect(CCI_CONN_ATTR_RO);
    ENDS_AWAIT(rc_side[1].requests == 1);
    request = rc_side[1].held[0];
    rc_of(1)->answers_kept = CCI__RC_ANSWERS;
    assert_int_equal(cci_accept_data(request, &rc_side[1], "x", 1), CCI_ENOBUFS);
    assert_int_equal(cci_reject_data(request, "x", 1), CCI_ENOBUFS);
    rc_of(1)->answers_kept = 0;
    assert_int_equal(cci_accept_data(request, &rc_side[1], "x", 1), CCI_SUCCESS);
    assert_int_equal(cci_return_event(request), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
    assert_int_equal(rc_of(1)->answers_kept, 0);
    finalize();
}

static void rc_mask(void **state) {
    uint32_t mask = 77;
    (void)state;
    ends_open("");
    assert_int_equal(cci_get_opt(left, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    assert_int_equal(mask, 1u << CCI_EVENT_DISCONNECT);
    mask = 1;
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_EINVAL);
    mask = 0;
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_EVENT_MASK, &mask), CCI_SUCCESS);
    ends_connect(CCI_CONN_ATTR_RO);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
    assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
    ENDS_AWAIT(cci_send(rc_side[0].newest, "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    assert_int_equal(rc_side[0].closed + rc_side[1].closed, 0);
}

/* The peer takes 5 messages, and has buffers for 8 more; the first CLOSE is lost, or not. */
static void rc_peer_closes(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
    int how;
    (void)state;
    for (how = 0; how < 4; how++) {
        uint32_t i;
        ends_begin("recv_buf_count = 8", attributes[how & 1]);
        for (i = 0; i < 5; i++) {
            assert_int_equal(cci_send(rc_side[0].newest, "taken", 5, NULL, 0), CCI_SUCCESS);
        }
        ENDS_AWAIT(rc_side[1].got == 5);
        for (; i < 20; i++) {
            assert_int_equal(cci_send(rc_side[0].newest, "pending", 7, NULL, 0), CCI_SUCCESS);
        }
        while (((fake_srq *)(void *)rc_of(1)->srq)->recv_count > 0) {
            rc_look(0); /* what the peer has buffers for has got there */
        }
        if (how & 2) {
            assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
        } else {
            fake.drops = 1;
            assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
            fake.drops = 0;
        }
        ENDS_AWAIT(rc_side[0].closed == 1);
        assert_int_equal(rc_side[0].end_status, CCI_SUCCESS);
        assert_int_equal(rc_side[0].done + rc_side[0].failed, 20);
        assert_true(rc_side[0].done >= 5 && rc_side[0].failed > 0);
        assert_int_equal(rc_side[0].status, CCI_ERR_DISCONNECTED);
        assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, 0), CCI_ERR_DISCONNECTED);
        assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0);
        assert_int_equal(rc_side[0].closed + rc_side[1].closed, 1);
        finalize();
    }
}

/* In each way that there is to close. */
static void rc_messages_before_end(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
    int how;
    (void)state;
    for (how = 0; how < 6; how++) {
        uint32_t i;
        ends_begin("", attributes[how % 3]);
        for (i = 0; i < 100; i++) {
            assert_int_equal(cci_send(rc_side[0].newest, "before", 6, NULL, CCI_FLAG_SILENT | CCI_FLAG_BLOCKING),
                             CCI_SUCCESS);
        }
        if (how < 3) {
            assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
        } else {
            assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
            left = NULL;
        }
        ENDS_AWAIT(rc_side[1].closed == 1);
        assert_int_equal(rc_side[1].got, 100);
        assert_int_equal(rc_side[1].got_after_end, 0);
        assert_int_equal(rc_side[1].end_status, CCI_SUCCESS);
        assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_of(1)->base.conns.used == 0);
        finalize();
        left = right = NULL;
    }
}

/* The endpoint that forgets is one that was there before, under the same queue pair, for all that its peer knows. */
static void rc_forgotten(void **state) {
    uint8_t bytes[CCI__HEADER_SIZE];
    cci__rc_conn *conn;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    conn = (cci__rc_conn *)(void *)rc_side[1].newest;
    cci_conn_write_header(bytes, CCI__PKT_RESET, 0, conn->conn.peer_index, conn->conn.token, conn->conn.index, 0);
    cci__rc_send_datagram(rc_of(1), &conn->conn.peer, bytes, sizeof bytes, NULL, 0);
    ENDS_AWAIT(rc_side[0].closed == 1);
    assert_int_equal(rc_side[0].end_status, CCI_ERR_DISCONNECTED);
}

/* Nothing is sent, and the network is cut: both sides notice, and not before their time. */
static void rc_silent(void **state) {
    uint64_t began_ns;
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        ends_begin("probe_idle = 1", i ? CCI_CONN_ATTR_UU : CCI_CONN_ATTR_RO);
        began_ns = now_ns();
        while (now_ns() - began_ns < 3 * SECOND_NS) { /* each is asked, and answers */
            rc_look(0);
            rc_look(1);
        }
        assert_int_equal(rc_side[0].closed + rc_side[1].closed, 0);
        fake.drops = 1;
        ENDS_AWAIT(rc_side[0].closed == 1 && rc_side[1].closed == 1);
        assert_int_equal(rc_side[0].end_status, CCI_ETIMEDOUT);
        assert_int_equal(rc_side[1].end_status, CCI_ETIMEDOUT);
        assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0); /* CLOSE finds nobody */
        fake.drops = 0;
        finalize();
    }
}

/* The same for a program that calls only when cci_next_deadline() says so. */
static void rc_asleep(void **state) {
    uint64_t began_ns, ns;
    uint32_t calls = 0;
    (void)state;
    ends_begin("probe_idle = 1", CCI_CONN_ATTR_RO);
    fake.drops = 1;
    began_ns = now_ns();
    while (rc_side[1].closed == 0) {
        struct timespec pause;
        assert_int_equal(cci_next_deadline(right, &ns), CCI_SUCCESS);
        assert_true(ns < 10 * SECOND_NS);
        pause.tv_sec = (time_t)(ns / SECOND_NS);
        pause.tv_nsec = (long)(ns % SECOND_NS);
        nanosleep(&pause, NULL);
        rc_look(1);
        assert_true(now_ns() - began_ns < 60 * SECOND_NS);
        calls++;
    }
    assert_int_equal(rc_side[1].end_status, CCI_ETIMEDOUT);
    assert_true(calls <= 300 + (now_ns() - began_ns) / 10000000u);
    ENDS_AWAIT(rc_side[0].closed == 1);
    assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
    ENDS_AWAIT(rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0);
    fake.drops = 0;
}

static void rc_many(void **state) {
    uint32_t i, slabs = 0, memory = 0;
    (void)state;
    ends_open("");
    lets_go = 1;
    for (i = 1; i <= 10000; i++) {
        ends_connect(i % 3 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
        ENDS_AWAIT(rc_side[0].opened == i && rc_side[1].opened == i);
        assert_int_equal(cci_send(rc_side[0].newest, "bye", 3, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        assert_int_equal(cci_disconnect(rc_side[i & 1].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].closed + rc_side[1].closed == i && rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0);
        if (i == 1000) {
            slabs = rc_of(0)->base.conns.slab_count + rc_of(1)->base.conns.slab_count;
            memory = (uint32_t)(fake.mrs + fake.qps + fake.ahs);
        }
    }
    assert_int_equal(rc_of(0)->base.conns.slab_count + rc_of(1)->base.conns.slab_count, slabs);
    assert_int_equal(fake.mrs + fake.qps + fake.ahs, memory);
    assert_int_equal(rc_of(0)->base.closing + rc_of(1)->base.closing, 0);
}

/* A copy of a request comes when its connection has ended, and many others after it: it is not heard, though its cookie is good. */
static void rc_late_request(void **state) {
    uint8_t bytes[CCI__REQUEST_SIZE];
    cci_conn_request_t request;
    cci_link_rx_t rx;
    uint32_t i, turn;
    (void)state;
    ends_open("");
    lets_go = 1;
    memset(&request, 0, sizeof request);
    memset(&rx, 0, sizeof rx);
    rx.data = bytes;
    rx.length = sizeof bytes;
    for (i = 1; i <= 200; i++) {
        ends_connect(CCI_CONN_ATTR_UU);
        ENDS_AWAIT(rc_side[0].opened == i && rc_side[1].opened == i);
        if (i == 1) {
            const cci_conn_t *client = (const cci_conn_t *)(const void *)rc_side[0].newest;
            rx.from = ((const cci_conn_t *)(const void *)rc_side[1].newest)->peer;
            request.max_send_size = client->pub.max_send_size;
            (void)cci_conn_write_request(client, &request, bytes);
        }
        assert_int_equal(cci_disconnect(rc_side[i & 1].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].closed + rc_side[1].closed == i && rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0);
    }
    for (turn = 0; turn < 2; turn++) { /* that of another client is heard */
        cci_conn_table_t *table = &rc_of(1)->base.conns;
        bytes[8] = (uint8_t)(bytes[8] + turn);
        cci__store64(bytes + 16, cci_conn_cookie(table, &rx.from, cci__load32(bytes + 4), cci__load64(bytes + 8), table->epoch));
        cci__rc_input(rc_of(1), &rx);
        assert_int_equal(rc_of(1)->request_count, turn);
    }
}

/* Would the server hear another client, of a network whose third byte is this? */
static int rc_hears_client_of(uint8_t network) {
    cci_link_addr_t from;
    cci_conn_packet_t in;
    memset(&in, 0, sizeof in);
    from = cci__rc_at(rc_of(1), 0)->conn.peer;
    from.bytes[8 + 14] = network;
    from.bytes[8 + 15] = 77;
    in.from = &from;
    return cci__rc_refusal(rc_of(1), &in) == NULL;
}

/* More requests than the server may hold of one network, which is also more than it has buffers for; all are repeated for the
 * first time in one round. Others have the rest. */
static void rc_busy(void **state) {
    uint32_t i, held = CCI__RC_REQUESTS / 4 * 3, count = CCI__RC_REQUESTS + 10;
    uint64_t due_ns;
    char uri[100];
    (void)state;
    ends_open("");
    holds_requests = 1;
    for (i = 0; i < count; i++) {
        ends_connect(CCI_CONN_ATTR_UU);
    }
    due_ns = now_ns() + cci_conn_retry_ns(0);
    while (now_ns() < due_ns) {
        (void)poll(NULL, 0, 1);
    }
    ENDS_AWAIT(rc_side[1].requests == held && strstr(log_text, "clients have to wait: one network") != NULL);
    assert_true(rc_hears_client_of(1)); /* 127.0.1.0/24 */
    assert_false(rc_hears_client_of(0));
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.1]/%lu", (unsigned long)rc_of(0)->hw->qp->qp_num);
    assert_string_equal(rc_side[1].uri, uri);
    holds_requests = 0;
    for (i = 0; i < held; i++) {
        rc_take(1, rc_side[1].held[i]);
    }
    ENDS_AWAIT(rc_side[0].opened == count && rc_side[1].opened == count);
    assert_true(rc_hears_client_of(0));
}

/* The right side's next event: its type, or 0x100 and the first byte of a message. `looks_first`: the network has its turn
 * before it, as each 64th time though events wait. */
static unsigned rc_next_is(int looks_first) {
    cci_event_t *event;
    unsigned what;
    rc_of(1)->turn = looks_first ? 63 : 0;
    if (cci_get_event(right, &event) != CCI_SUCCESS) {
        return CCI_EVENT_NONE;
    }
    what = event->type == CCI_EVENT_RECV ? 0x100u + *(const uint8_t *)event->recv.ptr : (unsigned)event->type;
    if (event->type == CCI_EVENT_CONNECT) {
        rc_side[1].newest = event->connect.connection;
    }
    if (holds_messages) {
        rc_side[1].held[rc_side[1].got++] = event;
    } else {
        cci_return_event(event);
    }
    return what;
}

static void rc_say(int side, int what) {
    char text = (char)what;
    assert_int_equal(cci_send(rc_side[side].newest, &text, 1, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
}

/* A message that comes while the program asks for an event is handed over at once, unless something is before it. */
static void rc_turns(void **state) {
    struct ibv_wc late;
    uint32_t few = 16;
    unsigned i;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    for (i = 0; i < 60; i++) { /* more than are taken from the hardware at once */
        rc_say(0, (int)i);
    }
    rc_work(0);
    for (i = 0; i < 60; i++) {
        assert_int_equal(rc_next_is(i % 2), 0x100 + i);
    }
    assert_int_equal(cci_send(rc_side[1].newest, "q", 1, NULL, 0), CCI_SUCCESS);
    rc_work(1); /* a completion waits */
    rc_say(0, 'a');
    assert_int_equal(rc_next_is(1), CCI_EVENT_SEND);
    assert_int_equal(rc_next_is(0), 0x100 + 'a');
    assert_int_equal(cci_send(rc_side[1].newest, "q", 1, NULL, 0), CCI_SUCCESS);
    late = rc_cq(1)->wc[rc_cq(1)->first % FAKE_WCS]; /* the answer says that the question has arrived */
    rc_cq(1)->count--;
    rc_side[0].got = 0;
    while (rc_side[0].got == 0) {
        rc_look(0);
    }
    rc_say(0, 'a');
    assert_int_equal(rc_next_is(0), CCI_EVENT_SEND);
    fake_complete(rc_of(1)->cq, &late);
    assert_int_equal(rc_next_is(0), 0x100 + 'a');
    assert_int_equal(cci_set_opt(right, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few), CCI_SUCCESS);
    holds_messages = 1; /* no more than the program may hold */
    rc_side[1].got = 0;
    for (i = 0; i <= few; i++) {
        rc_say(0, (int)i);
        rc_look(0);
        assert_int_equal(rc_next_is(i % 2), i < few ? 0x100 + i : CCI_EVENT_NONE);
    }
    cci_return_event(rc_side[1].held[0]);
    assert_int_equal(rc_next_is(0), 0x100 + few);
    for (i = 1; i <= few; i++) {
        cci_return_event(rc_side[1].held[i]);
    }
}

/* ... nor is one before the event that its connection is open, or after the program has closed it. */
static void rc_turns_of_connections(void **state) {
    const uint32_t linger_us = 1000000;
    cci_event_t *event;
    char uri[100];
    (void)state;
    ends_open("");
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.1]/%lu", (unsigned long)rc_of(0)->hw->qp->qp_num);
    assert_int_equal(cci_connect(right, uri, "hello", 5, CCI_CONN_ATTR_RO, &rc_side[1], 0, NULL), CCI_SUCCESS);
    while (rc_side[0].opened == 0 || !rc_of(1)->base.evq.urgent.head) {
        rc_look(0);
        rc_work(1);
    }
    rc_say(0, 'a'); /* the program has not heard of the connection yet */
    assert_int_equal(rc_next_is(1), CCI_EVENT_CONNECT);
    assert_int_equal(rc_next_is(0), 0x100 + 'a');
    assert_int_equal(cci_set_opt(rc_side[1].newest, CCI_OPT_CONN_LINGER, &linger_us), CCI_SUCCESS);
    rc_say(1, 'b');
    rc_say(0, 'c');
    assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
    do {
        assert_int_not_equal(cci_get_event(right, &event), CCI_SUCCESS);
        rc_look(0);
    } while (rc_of(1)->base.conns.used > 0);
}

/* ---- adapters and their ways ---------------------------------------------------------------------------------------- */

/* An RMA of so many bytes from the left side to the right one, and a message behind it, arrive. */
static void rc_writes(uint32_t size) {
    static uint8_t memory[2][65536];
    cci_rma_handle_t *handle[2];
    uint32_t i, done = rc_side[0].done, got = rc_side[1].got;
    for (i = 0; i < size; i++) {
        memory[0][i] = (uint8_t)(i * 5 + size);
    }
    assert_int_equal(cci_rma_register(left, memory[0], size, CCI_FLAG_READ, &handle[0]), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(right, memory[1], size, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle[1]), CCI_SUCCESS);
    assert_int_equal(cci_rma(rc_side[0].newest, "bytes", 5, handle[0], 0, handle[1], 0, size, NULL, CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].failed > 0 || (rc_side[0].done == done + 1 && rc_side[1].got == got + 1));
    assert_int_equal(rc_side[0].failed, 0);
    assert_memory_equal(memory[0], memory[1], size);
    assert_int_equal(cci_rma_deregister(left, handle[0]), CCI_SUCCESS);
    assert_int_equal(cci_rma_deregister(right, handle[1]), CCI_SUCCESS);
}

/* Packets of both sides have the smaller of the sizes that their keys and ports allow. */
static void rc_packet_size(void **state) {
    static const char *const keys[] = {"mtu = 1024", "", "mtu = 256"};
    int l, r;
    (void)state;
    for (l = 0; l < 3; l++) {
        for (r = 0; r < 3; r++) {
            fake.mtu = IBV_MTU_4096;
            ends_open_apart(keys[l], keys[r]);
            ends_connect(CCI_CONN_ATTR_RO);
            ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
            rc_writes(40000);
            finalize();
        }
    }
}

/* Messages of all sizes go over, and those of up to so many bytes inside of their work requests. */
static void rc_expect_inline(uint32_t most) {
    uint8_t bytes[300];
    uint32_t size;
    memset(bytes, 1, sizeof bytes);
    ends_begin("", CCI_CONN_ATTR_RO);
    for (size = 1; size <= sizeof bytes; size++) {
        int inlined = fake.inlined;
        assert_int_equal(cci_send(rc_side[0].newest, bytes, size, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].done == size && rc_side[1].got == size);
        assert_int_equal(fake.inlined - inlined, size <= most);
    }
    assert_int_equal(rc_side[0].failed, 0);
    finalize();
}

/* Adapters offer 0, 96, 101 or many bytes, and some give more than they are asked for. */
static void rc_inline_sizes(void **state) {
    (void)state;
    fake.max_inline = 0;
    rc_expect_inline(0);
    fake.max_inline = 96;
    rc_expect_inline(96);
    fake.max_inline = fake.tells_inline = 101;
    rc_expect_inline(101);
    fake.max_inline = 40;
    fake.tells_inline = 0;
    rc_expect_inline(32);
    fake.max_inline = 256;
    rc_expect_inline(128);
    fake.tells_inline = 188;
    rc_expect_inline(188);
    fake.tells_inline = 28; /* it takes the number for a wish */
    rc_expect_inline(28);
}

/* Receive buffers of an endpoint that the program does not have: in the queue, or on their way there. */
static uint32_t rc_buffers(int side) {
    return ((fake_srq *)(void *)rc_of(side)->srq)->recv_count + rc_of(side)->repost_count;
}

/* A peer sends messages that are longer than it had agreed to, though they fit into a buffer: they are dropped, and take neither
 * their buffers nor what is behind them along. */
static void rc_too_long(void **state) {
    enum { AGREED = 300, FITS = 320 };
    static const uint8_t bytes[FITS];
    uint32_t size, sent, buffers;
    int side;
    (void)state;
    for (side = 0; side < 2; side++) {
        ends_open_apart(side ? "" : "max_send_size = 300", side ? "max_send_size = 300" : "");
        ends_connect(CCI_CONN_ATTR_RO);
        ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
        assert_int_equal(rc_side[0].newest->max_send_size, AGREED);
        assert_int_equal(rc_side[1].newest->max_send_size, AGREED);
        ((cci__rc_conn *)(void *)rc_side[side].newest)->conn.pub.max_send_size = FITS;
        buffers = rc_buffers(1 - side);
        for (size = AGREED + 1, sent = 0; size <= FITS; size++) {
            assert_int_equal(cci_send(rc_side[side].newest, bytes, size, NULL, 0), CCI_SUCCESS);
            assert_int_equal(cci_send(rc_side[side].newest, bytes, AGREED, NULL, 0), CCI_SUCCESS);
            sent++;
            ENDS_AWAIT(rc_side[side].done == 2 * sent && rc_side[1 - side].got >= sent);
            assert_int_equal(rc_side[1 - side].got, sent);
        }
        ENDS_AWAIT(rc_buffers(1 - side) == buffers);
        assert_int_equal(rc_side[side].failed, 0);
        finalize();
        fake_end();
    }
}

/* Unreliable messages of the largest size arrive; what is longer than was agreed to is dropped. */
static void rc_unreliable_sizes(void **state) {
    static const uint8_t bytes[65536];
    uint32_t most, got = 0;
    int side;
    (void)state;
    ends_open("");
    ends_connect(CCI_CONN_ATTR_UU);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
    most = rc_side[0].newest->max_send_size;
    assert_true(most > 100 && most == rc_side[1].newest->max_send_size);
    for (side = 0; side < 2; side++) {
        const uint32_t sizes[] = {0, 1, most - 1, most};
        size_t i;
        for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            got = rc_side[1 - side].got;
            assert_int_equal(cci_send(rc_side[side].newest, bytes, sizes[i], NULL, 0), CCI_SUCCESS);
            ENDS_AWAIT(rc_side[1 - side].got == got + 1);
        }
        got = rc_side[1 - side].got;
        ((cci__rc_conn *)(void *)rc_side[1 - side].newest)->conn.pub.max_send_size = most - 1;
        assert_int_equal(cci_send(rc_side[side].newest, bytes, most, NULL, 0), CCI_SUCCESS);
        assert_int_equal(cci_send(rc_side[side].newest, bytes, most - 1, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[side].done == 6 && rc_side[1 - side].got > got);
        assert_int_equal(rc_side[1 - side].got, got + 1);
        ((cci__rc_conn *)(void *)rc_side[1 - side].newest)->conn.pub.max_send_size = most;
    }
}

/* A pair fails in the middle of a message, time and again: the buffer comes home each time. */
static void rc_half_messages(void **state) {
    static const int late[] = {0, 1, 7, 400, -1};
    uint32_t i, way, buffers;
    (void)state;
    for (way = 0; way < sizeof late / sizeof late[0]; way++) {
        fake.last_wqe = late[way];
        ends_begin("", CCI_CONN_ATTR_RO);
        buffers = rc_buffers(1);
        for (i = 0; i < 20; i++) {
            uint32_t done = rc_side[0].done;
            fake_qp *qp = rc_qp(rc_side[1].newest);
            fake_arrive_half(qp);
            if (i % 4 == 3) { /* the connection ends */
                assert_int_equal(cci_disconnect(rc_side[i / 4 & 1].newest), CCI_SUCCESS);
                ENDS_AWAIT(rc_side[0].closed + rc_side[1].closed == 1 && rc_of(0)->base.closing + rc_of(1)->base.closing == 0);
                assert_int_equal(cci_disconnect(rc_side[~(i / 4) & 1].newest), CCI_SUCCESS);
                ENDS_AWAIT(rc_of(0)->base.conns.used == 0 && rc_of(1)->base.conns.used == 0);
                rc_side[0].closed = rc_side[1].closed = 0;
                ends_connect(CCI_CONN_ATTR_RO);
                ENDS_AWAIT(rc_side[0].opened == i / 4 + 2 && rc_side[1].opened == i / 4 + 2);
            } else { /* the pair fails and is made anew */
                (void)fake_stop(qp, qp->pub.state);
                if (i % 4 == 0) {
                    (void)fake_stop(rc_qp(rc_side[0].newest), IBV_QPS_RTS);
                }
                assert_int_equal(cci_send(rc_side[1].newest, "news", 4, NULL, 0), CCI_SUCCESS);
                assert_int_equal(cci_send(rc_side[0].newest, "more", 4, NULL, 0), CCI_SUCCESS);
                ENDS_AWAIT(rc_side[0].done == done + 1 && rc_side[1].done == done + 1);
            }
            assert_int_equal(fake.lost_buffers, 0);
        }
        ENDS_AWAIT(rc_buffers(1) == buffers);
        finalize();
        fake_end();
    }
}

/* A client that gives up has begun to receive a message: its buffer comes home. */
static void rc_half_connected(void **state) {
    struct timeval soon = {0, 300000};
    cci_event_t *event;
    char uri[100];
    cci__rc_conn *conn;
    uint32_t buffers;
    (void)state;
    fake.last_wqe = 3;
    ends_open("");
    buffers = rc_buffers(0);
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
    assert_int_equal(cci_connect(left, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &soon), CCI_SUCCESS);
    conn = (cci__rc_conn *)(void *)cci_conn_at(&rc_of(0)->base.conns, 0);
    while (conn->phase != CCI__RC_JOINED) {
        assert_int_not_equal(cci_get_event(left, &event), CCI_SUCCESS);
        fake.drops = conn->phase == CCI__RC_JOINED;
        rc_look(1);
    }
    fake_arrive_half((fake_qp *)(void *)conn->qp);
    while (cci_get_event(left, &event) != CCI_SUCCESS) {
    }
    assert_int_equal(event->type, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    cci_return_event(event);
    ENDS_AWAIT(rc_of(0)->base.conns.used == 0);
    assert_int_equal(fake.lost_buffers, 0);
    assert_int_equal(rc_buffers(0), buffers);
}

/* A page that the hardware uses belongs to nobody else in this process: where the kernel needs that, the child of fork() does not
 * have it. */
static void fork_pages(void **state) {
    uint32_t count = 700;
    (void)state;
    open_both("max_send_size = 3000\nrecv_depth = 33");
    finalize();
    ends_open("max_send_size = 1000\nsend_buf_count = 3\nrecv_buf_count = 5");
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_SEND_BUF_COUNT, &count), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_RECV_BUF_COUNT, &count), CCI_SUCCESS);
    assert_int_equal(fake.shared_pages, 0);
}

static void fork_expect(int status, int inits) {
    int was = fake.fork_inits;
    fake.fork_status = status;
    cci__ibv_may_fork = 0;
    open_both("");
    finalize();
    assert_int_equal(fake.fork_inits - was, inits);
}

/* The library is told that the program may fork, before anything is registered, unless the kernel sees to that. */
static void fork_told(void **state) {
    (void)state;
    fork_expect(2, 0);
    fork_expect(1, 0);
    fork_expect(0, 1);
    cci__ibv.is_fork_initialized = NULL; /* a library that is older than that */
    fork_expect(0, 1);
    fake.fork_fails = EINVAL; /* somebody else in the process has registered memory before */
    fork_expect(0, 1);
    assert_non_null(strstr(log_text, "fork"));
}

/* Memory takes its bytes in any order where it may, and only RMAs that a fence separates are kept apart. */
static void rc_relaxed(void **state) {
    static const char *const keys[] = {"", "relaxed_ordering = 0"};
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        fake.relaxed = fake.strict = 0;
        ends_begin(keys[i], CCI_CONN_ATTR_RO);
        rc_writes(3000);
        assert_int_equal(fake.relaxed, i == 0 ? 2 : 0);
        assert_int_equal(fake.strict, i == 0 ? 0 : 2);
        finalize();
    }
    fake.relaxed_fails = EINVAL;
    fake.strict = 0;
    ends_begin("", CCI_CONN_ATTR_RO);
    rc_writes(3000);
    rc_writes(3000);
    assert_int_equal(fake.strict, 4);
    assert_int_equal(fake.relaxed, 0);
    fake.relaxed_fails = 0; /* it is not tried again and again */
    rc_writes(3000);
    assert_int_equal(fake.relaxed, 0);
}

static void rc_fences(void **state) {
    static const char *const keys[] = {"", "relaxed_ordering = 0"};
    static uint8_t memory[2][64];
    cci_rma_handle_t *handle[2];
    uint32_t i, n;
    (void)state;
    for (i = 0; i < 2; i++) {
        fake_qp *qp;
        ends_begin(keys[i], CCI_CONN_ATTR_RO);
        qp = rc_qp(rc_side[0].newest);
        assert_int_equal(cci_rma_register(left, memory[0], 64, CCI_FLAG_READ, &handle[0]), CCI_SUCCESS);
        assert_int_equal(cci_rma_register(right, memory[1], 64, CCI_FLAG_WRITE, &handle[1]), CCI_SUCCESS);
        fake.drops = 1;
        for (n = 0; n < 10; n++) { /* the 4th and 8th wait for all before them */
            memory[0][n] = (uint8_t)(n + 1);
            assert_int_equal(cci_rma(rc_side[0].newest, NULL, 0, handle[0], n, handle[1], 5, 1, NULL,
                                     n % 4 == 3 ? CCI_FLAG_WRITE | CCI_FLAG_FENCE : CCI_FLAG_WRITE),
                             CCI_SUCCESS);
        }
        assert_int_equal(qp->send_count, i == 0 ? 3 : 10);
        fake.drops = 0;
        ENDS_AWAIT(rc_side[0].done == 10);
        assert_int_equal(memory[1][5], 10);
        finalize();
    }
}

/* What an endpoint pins when it is new, and that it gets more when it has more to do. */
static void rc_memory_pinned(void **state) {
    uint64_t pinned;
    uint32_t i, value;
    (void)state;
    fake.mtu = IBV_MTU_4096;
    ends_open("");
    assert_in_range(fake.pinned, 2 * 1000000, 2 * 4000000 - 1);
    ends_connect(CCI_CONN_ATTR_RO);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
    pinned = fake.pinned;
    assert_int_equal(cci_get_opt(left, CCI_OPT_ENDPT_SEND_BUF_COUNT, &value), CCI_SUCCESS);
    assert_int_equal(value, 512);
    fake.drops = 1; /* all wait */
    for (i = 0; i < 512; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
    }
    assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_ENOBUFS);
    assert_true(fake.pinned > pinned + 400 * 8192u && fake.pinned < pinned + 512 * 8192u);
    fake.drops = 0;
    holds_messages = 1; /* and the other side has to hold them */
    ENDS_AWAIT(rc_side[1].got == 500);
    assert_true(rc_of(1)->total_buffers > 500 && rc_of(1)->total_buffers <= 512);
    holds_messages = 0;
    for (i = 0; i < rc_side[1].got; i++) {
        cci_return_event(rc_side[1].held[i]);
    }
    ENDS_AWAIT(rc_side[0].done == 512);
    fake.drops = 1;
    pinned = fake.pinned;
    for (i = 0; i < 512; i++) { /* what was enough once is enough again */
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
    }
    assert_int_equal(fake.pinned, pinned);
    fake.drops = 0;
}

/* More memory is refused: the program has to wait, as with a number of its own; it is asked for again later, and not with each call. */
static void rc_memory_short(void **state) {
    uint32_t i, blocks, n, sent = 32;
    uint64_t refused_ns;
    int status;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    fake.drops = 1;
    for (i = 0; i < sent; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
    }
    refused_ns = now_ns();
    for (n = 0, blocks = (uint32_t)fake.mrs; n < 100 && sent == 32; n++) {
        fake.fail_at = n == 0;
        status = cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0);
        sent += status == CCI_SUCCESS; /* only where the machine is that slow */
        assert_true(sent == 33 ? now_ns() >= refused_ns + 1000000000u
                               : status == CCI_ENOBUFS && (uint32_t)fake.mrs == blocks);
    }
    while (sent == 32 && now_ns() < refused_ns + 1100000000u) {
        rc_look(0);
    }
    if (sent == 32) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
        sent++;
    }
    fake.drops = 0;
    ENDS_AWAIT(rc_side[0].done == 33 && rc_side[1].got == 33);
}

/* ---- paths, and memory that is not pinned --------------------------------------------------------------------------- */

/* How many different labels the queue pairs of a device's connections have. */
static int count_labels(int device) {
    static uint32_t labels[256];
    int i, n, count = 0;
    for (i = 0; i < fake.qp_most; i++) {
        const fake_qp *q = fake.qp[i];
        if (q != NULL && q->pub.qp_type == IBV_QPT_RC && q->device == device) {
            assert_true(q->flow_label <= 0xfffff);
            for (n = 0; n < count && labels[n] != q->flow_label; n++) {
            }
            labels[n] = q->flow_label;
            count += n == count;
        }
    }
    return count;
}

/* Connections between the same two ports take different paths where the network has several, unless one is configured. */
static void rc_paths(void **state) {
    int i;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    for (i = 1; i < 64; i++) {
        ends_connect(CCI_CONN_ATTR_RO);
    }
    ENDS_AWAIT(rc_side[0].opened == 64 && rc_side[1].opened == 64);
    assert_in_range(count_labels(0), 60, 64);
    assert_in_range(count_labels(1), 60, 64);
    assert_in_range(fake.last_ah.grh.flow_label, 1, 0xfffff);
    finalize();
    fake_end();
    ends_begin("flow_label = 0x12345", CCI_CONN_ATTR_RO);
    ends_connect(CCI_CONN_ATTR_RO);
    ENDS_AWAIT(rc_side[0].opened == 2 && rc_side[1].opened == 2);
    assert_int_equal(count_labels(0), 1);
    assert_int_equal(fake.last_ah.grh.flow_label, 0x12345);
}

/* A queue pair that is made anew after a failure takes another path. */
static void rc_other_path(void **state) {
    uint32_t label, i;
    (void)state;
    rc_open(1);
    for (i = 0; i < 3; i++) {
        label = rc_qp(ends[0][0].connection)->flow_label;
        fake_stop(rc_qp(ends[0][0].connection), rc_qp(ends[0][0].connection)->pub.state);
        rc_works(0);
        assert_int_not_equal(rc_qp(ends[0][0].connection)->flow_label, label);
    }
}

/* Memory that is not pinned, where the adapter can; else a status. */
static void rc_on_demand(void **state) {
    static uint8_t bytes[100];
    cci_rma_handle_t *handle;
    (void)state;
    ends_begin("on_demand = 1", CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    assert_int_equal(fake.on_demand, 1);
    assert_int_equal(cci_rma_deregister(left, handle), CCI_SUCCESS);
    fake.on_demand_fails = EOPNOTSUPP;
    log_text[0] = '\0';
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, CCI_FLAG_WRITE, &handle), CCI_ERR_NOT_IMPLEMENTED);
    assert_non_null(strstr(log_text, "no on-demand paging"));
    finalize();
    fake_end();
    ends_begin("", CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, CCI_FLAG_WRITE, &handle), CCI_SUCCESS);
    assert_int_equal(fake.on_demand, 1);
}

/* Another device's memory is read and written as any other. */
static void rc_dmabuf(void **state) {
    static uint8_t gpu[4096];
    const int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
    cci_rma_handle_t *handle;
    (void)state;
    rc_open(1);
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 8192, gpu, sizeof gpu, both, &handle), CCI_SUCCESS);
    assert_int_equal(fake.dmabuf_fd, 7);
    assert_int_equal(fake.dmabuf_offset, 8192);
    memset(rc_memory[0], 9, sizeof gpu);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, handle, 0, sizeof gpu, NULL, CCI_FLAG_WRITE),
                     CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == 1);
    assert_memory_equal(gpu, rc_memory[0], sizeof gpu);
    assert_int_equal(cci_atomic(ends[0][0].connection, CCI_ATOMIC_SWAP, 8, handle, 0, 1, 0, NULL, NULL, 0), CCI_SUCCESS);
    RC_AWAIT(ends[0][0].failed == 1); /* the processor does not go there */
    assert_int_equal(ends[0][0].status, CCI_ERR_RMA_HANDLE);
    assert_memory_equal(gpu, rc_memory[0], sizeof gpu);
    assert_int_equal(cci_rma_deregister(right, handle), CCI_SUCCESS);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, rc_handle[1], 0, 4097, NULL, CCI_FLAG_WRITE),
                     CCI_ERR_RMA_HANDLE);
    assert_int_equal(cci_verbs_register_dmabuf(NULL, 7, 0, gpu, 1, both, &handle), CCI_EINVAL);
    assert_int_equal(cci_verbs_register_dmabuf(right, -1, 0, gpu, 1, both, &handle), CCI_EINVAL);
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, NULL, 1, both, &handle), CCI_EINVAL);
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 0, both, &handle), CCI_EINVAL);
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, UINT64_MAX, gpu, 2, both, &handle), CCI_EINVAL);
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 1, both | 0x7000, &handle), CCI_EINVAL);
    fake.dmabuf_fails = EBADF; /* a descriptor of something else */
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 1, both, &handle), CCI_EINVAL);
    fake.dmabuf_fails = EOPNOTSUPP;
    log_text[0] = '\0';
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 1, both, &handle), CCI_ERR_NOT_IMPLEMENTED);
    assert_non_null(strstr(log_text, "dmabuf"));
    cci__ibv.reg_dmabuf_mr = NULL; /* an older library */
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 1, both, &handle), CCI_ERR_NOT_IMPLEMENTED);
    finalize();
    fake_end();
    open_both("");
    assert_int_equal(cci_verbs_register_dmabuf(right, 7, 0, gpu, 1, both, &handle), CCI_ERR_NOT_IMPLEMENTED); /* mode = ud */
}

/* ---- mode = rc: atomics ------------------------------------------------------------------------------------------- */

#define ALL_OF_THEM 1000000

static struct {
    uint64_t wide[3];
    uint32_t narrow[2];
} numbers; /* right's */
static cci_rma_handle_t *numbers_handle;

static cci__rc_conn *rc_conn(int side) {
    return (cci__rc_conn *)(void *)ends[side][0].connection;
}

static void rc_register_numbers(int flags) {
    memset(&numbers, 0, sizeof numbers);
    assert_int_equal(cci_rma_register(right, &numbers, sizeof numbers, flags, &numbers_handle), CCI_SUCCESS);
}

static void rc_open_numbers(uint32_t count) {
    rc_open(count);
    rc_register_numbers(CCI_FLAG_READ | CCI_FLAG_WRITE);
}

/* Adds 1 to the first number over a connection of left's. */
static void rc_add(int index, uint64_t *previous, int flags) {
    assert_int_equal(cci_atomic(ends[0][index].connection, CCI_ATOMIC_FETCH_ADD, 8, numbers_handle, 0, 1, 0, previous, NULL, flags),
                     CCI_SUCCESS);
}

/* All that a side can do now is done: the link is looked at too. */
static void rc_serve_all(int side) {
    int i;
    for (i = 0; i < 20; i++) {
        rc_of(side)->base.polls.left = 0;
        rc_serve(side);
    }
}

/* What a side has asked for and not heard of. */
static uint32_t rc_unanswered(int side) {
    const cci__rc_atomics *atomics = cci__rc_atomics_of(rc_conn(side));
    return atomics->numbers.next - atomics->numbers.open;
}

static void rc_atomics(void **state) {
    static const uint64_t big = UINT64_C(0x1122334455667788);
    cci_connection_t *connection;
    uint64_t previous = 1;
    uint32_t done = 0, counted = 1;
    cci_conn_stats_t stats;
    cci_caps_t caps;
    (void)state;
    rc_open_numbers(1);
    connection = ends[0][0].connection;
    assert_int_equal(cci_get_opt(connection, CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_int_equal(caps.can & CCI__CAN_ATOMICS, CCI__CAN_ATOMICS);
    assert_int_equal(cci_get_opt(left, CCI_OPT_CAPS, &caps), CCI_SUCCESS);
    assert_int_equal(caps.can & CCI__CAN_ATOMICS, CCI__CAN_ATOMICS);
    assert_int_equal(cci_set_opt(left, CCI_OPT_ENDPT_CONN_STATS, &counted), CCI_SUCCESS);
    assert_int_equal(cci_atomic(connection, CCI_ATOMIC_FETCH_ADD, 8, numbers_handle, 8, big, 0, &previous, NULL, 0), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(connection, CCI_OPT_CONN_STATS, &stats), CCI_SUCCESS);
    assert_int_equal(stats.operations_pending, 1);
    RC_AWAIT(ends[0][0].done == done + 1);
    assert_true(previous == 0 && numbers.wide[1] == big);
    assert_int_equal(cci_get_opt(connection, CCI_OPT_CONN_STATS, &stats), CCI_SUCCESS);
    assert_int_equal(stats.operations_pending, 0);
    assert_int_equal(cci_atomic(connection, CCI_ATOMIC_COMPARE_SWAP, 8, numbers_handle, 8, 5, big + 1, &previous, NULL, 0), CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == done + 2);
    assert_true(previous == big && numbers.wide[1] == big);
    assert_int_equal(cci_atomic(connection, CCI_ATOMIC_COMPARE_SWAP, 8, numbers_handle, 8, 5, big, NULL, NULL, 0), CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == done + 3);
    assert_true(previous == big && numbers.wide[1] == 5);
    assert_int_equal(cci_atomic(connection, CCI_ATOMIC_SWAP, 4, numbers_handle, 28, big, 0, &previous, NULL, 0), CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == done + 4);
    assert_true(previous == 0 && numbers.narrow[0] == 0 && numbers.narrow[1] == (uint32_t)big);
    rc_add(0, &previous, CCI_FLAG_SILENT);
    RC_AWAIT(numbers.wide[0] == 1 && rc_unanswered(0) == 0);
    assert_int_equal(ends[0][0].done, done + 4);
    ends[0][0].done = 0;
    rc_works(0);
}

/* Each is refused by the target, and nothing has changed. */
static void rc_atomics_refused(void **state) {
    static const struct {
        uint64_t offset;
        int rights;
        uint32_t width;
    } wrong[] = {{4, 3, 8}, {30, 3, 4}, {32, 3, 8}, {32, 3, 4}, {UINT64_MAX - 7, 3, 8}, {0, 1, 8}, {0, 2, 8}, {0, 0, 4}, {0, 3, 8}};
    const uint32_t last = (uint32_t)(sizeof wrong / sizeof *wrong) - 1;
    cci_rma_handle_t stale;
    uint32_t i, refused = 0;
    (void)state;
    rc_open(1);
    for (i = 0; i <= last; i++) {
        static const int rights[] = {0, CCI_FLAG_READ, CCI_FLAG_WRITE, CCI_FLAG_READ | CCI_FLAG_WRITE};
        uint64_t previous = 7;
        rc_register_numbers(rights[wrong[i].rights]);
        stale = *numbers_handle;
        if (i == last) {
            assert_int_equal(cci_rma_deregister(right, numbers_handle), CCI_SUCCESS);
        }
        assert_int_equal(cci_atomic(ends[0][0].connection, CCI_ATOMIC_SWAP, wrong[i].width, &stale, wrong[i].offset, 9, 0, &previous,
                                    NULL, 0),
                         CCI_SUCCESS);
        refused++;
        RC_AWAIT(ends[0][0].failed == refused);
        assert_int_equal(ends[0][0].status, CCI_ERR_RMA_HANDLE);
        assert_true(previous == 7 && numbers.wide[0] == 0 && numbers.narrow[0] == 0);
    }
    rc_register_numbers(CCI_FLAG_READ | CCI_FLAG_WRITE);
    rc_conn(0)->atomics &= CCI__RC_HAS_HAD; /* an older library */
    rc_add(0, NULL, 0);
    RC_AWAIT(ends[0][0].failed == refused + 1);
    assert_int_equal(ends[0][0].status, CCI_ERR_RMA_OP);
    assert_true(numbers.wide[0] == 0);
    ends[0][0].failed = 0;
    rc_works(0);
}

/* The packet that asks, or the one that answers, is lost or comes twice; and the pair is made anew before it is asked, before the
 * request is served, or before the answer is taken. */
static void rc_atomics_once(void **state) {
    uint64_t done = 0, previous;
    int fate, when, side;
    (void)state;
    rc_open_numbers(1);
    for (fate = 0; fate < 4; fate++) {
        for (when = 0; when < 4; when++) {
            for (side = 0; side < 2; side++) {
                int at;
                previous = 1000;
                for (at = 0; at < 3; at++) {
                    if (at == when) {
                        cci__rc_drain(rc_of(side), rc_conn(side));
                    }
                    if (at == 0) {
                        fake.passes = fate == 2 && when != 0;
                        fake.loses = fate == 1 || fate == 2;
                        fake.doubles = fate == 3;
                        rc_add(0, &previous, 0);
                    } else if (at == 1) {
                        rc_serve_all(1);
                    }
                }
                done++;
                RC_AWAIT(ends[0][0].done == 1);
                assert_true(previous == done - 1 && numbers.wide[0] == done);
                ends[0][0].done = 0;
                fake.passes = fake.loses = 0;
                rc_works(0);
                ends[0][0].sent = ends[0][0].done = ends[0][0].got = 0;
                ends[1][0].sent = ends[1][0].done = ends[1][0].got = 0;
                fake.doubles = 0;
                assert_true(numbers.wide[0] == done);
            }
        }
    }
}

static void rc_atomics_fenced(void **state) {
    uint64_t previous = 0, before;
    uint32_t i;
    (void)state;
    rc_open_numbers(1);
    fake.drops = 1; /* a write is under way: an atomic with a fence is not asked for */
    memset(rc_memory[0], 3, 8);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, numbers_handle, 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    rc_add(0, &previous, CCI_FLAG_FENCE);
    assert_int_equal(rc_unanswered(0), 0);
    fake.drops = 0;
    RC_AWAIT(ends[0][0].done == 2);
    assert_true(previous == UINT64_C(0x0303030303030303) && numbers.wide[0] == previous + 1);
    fake.loses = ALL_OF_THEM; /* an atomic has no answer: neither one with a fence behind it goes, nor a write, nor a message */
    before = numbers.wide[0];
    rc_add(0, &previous, 0);
    rc_add(0, &previous, CCI_FLAG_FENCE);
    assert_int_equal(rc_unanswered(0), 1);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, numbers_handle, 0, 8, NULL,
                             CCI_FLAG_WRITE | CCI_FLAG_FENCE),
                     CCI_SUCCESS);
    assert_int_equal(cci_send(ends[0][0].connection, &ends[0][0].sent, 4, NULL, CCI_FLAG_FENCE), CCI_SUCCESS);
    for (i = 0; i < 10; i++) {
        rc_serve_all(0);
        rc_serve_all(1);
    }
    assert_int_equal(ends[1][0].got, 0);
    assert_true(numbers.wide[0] == before);
    fake.loses = 0;
    RC_AWAIT(ends[0][0].done == 6);
    assert_int_equal(ends[1][0].got, 1);
    assert_true(previous == before + 1 && numbers.wide[0] == UINT64_C(0x0303030303030303));
    fake.loses = ALL_OF_THEM; /* what has no fence goes, and is complete behind it */
    rc_add(0, &previous, 0);
    ends[0][0].sent = 1;
    rc_send(0, 0, 1);
    memset(rc_memory[0], 4, 8);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, numbers_handle, 8, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    for (i = 0; i < 10; i++) {
        rc_serve_all(0);
        rc_serve_all(1);
    }
    assert_int_equal(ends[1][0].got, 2);
    assert_true(numbers.wide[1] == UINT64_C(0x0404040404040404));
    assert_int_equal(ends[0][0].done, 6);
    fake.loses = 0;
    RC_AWAIT(ends[0][0].done == 9);
}

/* 16 are under way at most; the others go as answers come, with what is behind them. */
static void rc_atomics_many(void **state) {
    static uint64_t previous[100];
    uint32_t i;
    (void)state;
    rc_open_numbers(1);
    fake.loses = ALL_OF_THEM;
    for (i = 0; i < 100; i++) {
        rc_add(0, &previous[i], 0);
    }
    assert_int_equal(rc_unanswered(0), 16);
    rc_send(0, 0, 1);
    rc_serve_all(1);
    assert_int_equal(ends[1][0].got, 0);
    fake.loses = 0;
    RC_AWAIT(ends[0][0].done == 101);
    assert_int_equal(ends[1][0].got, 1);
    for (i = 0; i < 100; i++) { /* nothing was lost within, and the ring is in order */
        assert_true(previous[i] < 100);
    }
    assert_true(numbers.wide[0] == 100);
}

/* An RMA that fails behind an atomic, which has no answer yet: that alone fails, and what has succeeded is not done again. */
static void rc_atomics_beside_failures(void **state) {
    cci_rma_handle_t gone;
    uint64_t previous = 9;
    (void)state;
    rc_open_numbers(1);
    gone = *rc_handle[1];
    memset(rc_memory[0], 5, 8);
    fake.loses = 1;
    rc_add(0, &previous, 0);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, numbers_handle, 8, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    assert_true(numbers.wide[1] == UINT64_C(0x0505050505050505));
    numbers.wide[1] = 1;
    assert_int_equal(cci_rma_deregister(right, rc_handle[1]), CCI_SUCCESS);
    assert_int_equal(cci_rma(ends[0][0].connection, NULL, 0, rc_handle[0], 0, &gone, 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    RC_AWAIT(ends[0][0].done == 2 && ends[0][0].failed == 1);
    assert_int_equal(ends[0][0].status, CCI_ERR_RMA_HANDLE);
    assert_true(previous == 0 && numbers.wide[0] == 1 && numbers.wide[1] == 1);
    ends[0][0].done = ends[0][0].failed = 0;
    rc_works(0);
}

/* Queues and pairs that fail at any time, and datagrams that are lost or come twice: no atomic is done twice or not at all. */
static void rc_atomics_often(void **state) {
    static uint64_t previous[6000];
    static uint8_t seen[6000];
    uint32_t count = 0, step, i;
    (void)state;
    memset(seen, 0, sizeof seen);
    rc_open_numbers(RC_CONNECTIONS);
    for (step = 0; step < 6000 || count <= 1000; step++) { /* those that are lost wait for a time before they are asked for again */
        int side = (int)rc_random(2), index = (int)rc_random(RC_CONNECTIONS);
        if (rc_random(2) && ends[side][index].sent - ends[side][index].done < 60) {
            rc_send(side, index, 1);
        }
        if (rc_random(3) > 0 && count - numbers.wide[0] < 200) {
            previous[count] = UINT64_MAX;
            rc_add(index, &previous[count++], rc_random(3) ? CCI_FLAG_SILENT : CCI_FLAG_SILENT | CCI_FLAG_FENCE);
        }
        for (i = rc_random(6); i > 0; i--) {
            rc_serve((int)rc_random(2));
        }
        if (rc_random(1000) == 0 || step == 1000) {
            rc_fail_cq(side);
        }
        if (rc_random(200) == 0) {
            cci__rc_drain(rc_of(side), (cci__rc_conn *)(void *)ends[side][index].connection);
        }
        fake.passes = (int)rc_random(10);
        fake.loses = rc_random(20) == 0;
        fake.doubles = rc_random(4) == 0;
    }
    fake.loses = fake.doubles = 0;
    for (i = 0; i < RC_CONNECTIONS; i++) { /* the completions of these come behind them */
        rc_works((int)i);
    }
    assert_true(numbers.wide[0] == count);
    for (i = 0; i < count; i++) {
        assert_true(previous[i] < count);
        assert_int_equal(seen[previous[i]]++, 0);
    }
    assert_true(rc_of(0)->repairs + rc_of(1)->repairs > 0);
    assert_int_equal(device_failures[0] + device_failures[1], 0);
}

/* They need no receive buffers: neither that of a target whose program holds all messages, nor of who asks. */
static void rc_atomics_without_buffers(void **state) {
    uint32_t i;
    (void)state;
    ends_begin("recv_buf_count = 16", CCI_CONN_ATTR_RO);
    rc_register_numbers(CCI_FLAG_READ | CCI_FLAG_WRITE);
    holds_messages = 1;
    for (i = 0; i < 40; i++) {
        assert_int_equal(cci_send(rc_side[1].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        if (i == 15) {
            ENDS_AWAIT(rc_side[0].got == 16 && rc_side[1].got == 16);
        }
    }
    assert_int_equal(cci_atomic(rc_side[0].newest, CCI_ATOMIC_FETCH_ADD, 4, numbers_handle, 24, 3, 0, NULL, NULL, 0), CCI_SUCCESS);
    ENDS_AWAIT(numbers.narrow[0] == 3 && cci__rc_atomics_of((cci__rc_conn *)(void *)rc_side[0].newest)->numbers.open == 1);
    for (i = 0; i < 2; i++) {
        uint32_t n;
        for (n = 0; n < 16; n++) {
            cci_return_event(rc_side[i].held[n]);
        }
        rc_side[i].got = 0;
    }
    holds_messages = 0;
    ENDS_AWAIT(rc_side[0].got == 24 && rc_side[1].got == 24 && rc_side[0].done == 1 && rc_side[1].done == 40);
}

/* What has no answer ends with the connection, however that ends. */
static void rc_atomics_end(void **state) {
    uint32_t timeout_us = 200000;
    int how;
    (void)state;
    for (how = 0; how < 3; how++) {
        int status = how == 0 ? CCI_ETIMEDOUT : CCI_ERR_DISCONNECTED;
        uint32_t i;
        ends_begin("", CCI_CONN_ATTR_RO);
        rc_register_numbers(CCI_FLAG_READ | CCI_FLAG_WRITE);
        if (how == 0) {
            assert_int_equal(cci_set_opt(rc_side[0].newest, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
        }
        fake.loses = how == 2 ? 0 : ALL_OF_THEM;
        for (i = 0; i < 20; i++) {
            assert_int_equal(cci_atomic(rc_side[0].newest, CCI_ATOMIC_SWAP, 8, numbers_handle, 0, i, 0, NULL, NULL, 0), CCI_SUCCESS);
        }
        if (how == 1) {
            fake.loses = 0;
            assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
        } else if (how == 2) { /* the end of the process, as the peer sees it */
            assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
            right = NULL;
        }
        ENDS_AWAIT(rc_side[0].closed == 1);
        assert_int_equal(rc_side[0].failed + rc_side[0].done, 20);
        assert_int_equal(rc_side[0].status, status);
        fake.loses = 0;
        assert_int_equal(cci_atomic(rc_side[0].newest, CCI_ATOMIC_SWAP, 8, numbers_handle, 0, 1, 0, NULL, NULL, 0),
                         CCI_ERR_DISCONNECTED);
        finalize();
    }
    rc_open_numbers(1);
    fake.loses = ALL_OF_THEM;
    rc_add(0, NULL, 0);
    assert_int_equal(cci_disconnect(ends[0][0].connection), CCI_SUCCESS);
    fake.loses = 0;
    RC_AWAIT(rc_of(0)->base.conns.used == 0);
}

/* Frames of a peer that lies: nothing is touched, and messages go on. */
static void rc_atomics_odd(void **state) {
    uint8_t bytes[100];
    uint32_t i, n;
    (void)state;
    rc_open_numbers(1);
    for (i = 0; i < 4000; i++) {
        int side = (int)(i / 7 % 2);
        const cci_conn_t *conn = &rc_conn(side)->conn;
        for (n = 0; n < sizeof bytes; n++) {
            bytes[n] = (uint8_t)rc_random(256);
        }
        cci_conn_write_header(bytes, CCI__RC_PKT_ATOMIC, 0, conn->index, conn->token, conn->peer_index, 0);
        n = CCI__HEADER_SIZE;
        bytes[n] = (uint8_t)(i % 5 == 0 ? rc_random(256) : i % 5 == 1 ? CCI__FRAME_DATA : i % 5 == 2 ? CCI__FRAME_DENIED : CCI__FRAME_ATOMIC);
        bytes[n + 1] = (uint8_t)rc_random(4);
        bytes[n + 2] = (uint8_t)(1u << rc_random(5));
        cci__store32(bytes + n + (bytes[n] == CCI__FRAME_ATOMIC ? 20 : 4), i / 2);
        if (i % 3 == 0) { /* its key is no secret to the peer */
            memcpy(bytes + n + 8, numbers_handle->stuff, 8);
            cci__store32(bytes + n + 16, (uint32_t)cci__load16((const uint8_t *)numbers_handle->stuff + 8));
        }
        cci__store64(bytes + n + 24, i % 4 ? 25 : sizeof numbers);
        forge(side == 0 ? left : right, fake.gid[!side][0].raw, rc_of(!side)->hw->qp->qp_num, bytes, 24 + rc_random(60));
        rc_of(side)->base.polls.left = 0;
        rc_serve(side);
    }
    assert_true(numbers.wide[0] == 0 && numbers.wide[1] == 0 && numbers.wide[2] == 0 && numbers.narrow[0] == 0);
    rc_works(0);
}

/* ---- mode = rc: many connections are set up ------------------------------------------------------------------------ */

static void hold_pairs(int device, int is_held) {
    __atomic_store_n(&fake.is_held[device], is_held, __ATOMIC_SEQ_CST);
}

static void take_time(uint64_t ns) {
    __atomic_store_n(&fake.make_takes_ns, ns, __ATOMIC_SEQ_CST);
}

static int pairs_in_making(void) {
    return __atomic_load_n(&fake.making, __ATOMIC_SEQ_CST);
}

/* So many messages go each way over a connection. */
static void talk(cci_connection_t *l, cci_connection_t *r, uint32_t count) {
    uint32_t i, before[2];
    before[0] = rc_side[0].got, before[1] = rc_side[1].got;
    for (i = 1; i <= count; i++) {
        assert_int_equal(cci_send(l, &i, sizeof i, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        assert_int_equal(cci_send(r, &i, sizeof i, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].got == before[0] + i && rc_side[1].got == before[1] + i);
    }
}

static cci_conn_stats_t rc_stats_of(cci_connection_t *connection) {
    cci_conn_stats_t stats;
    assert_int_equal(cci_get_opt(connection, CCI_OPT_CONN_STATS, &stats), CCI_SUCCESS);
    return stats;
}

static cci_endpt_stats_t rc_stats_at(cci_endpoint_t *endpoint) {
    cci_endpt_stats_t stats;
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_STATS, &stats), CCI_SUCCESS);
    return stats;
}

/* What is pending is told while it is under way, while it waits, when the connection is at its end; and the silence of a peer. */
static void rc_counts_pending(void **state) {
    uint64_t began_ns;
    uint32_t i;
    (void)state;
    ends_begin("recv_buf_count = 8", CCI_CONN_ATTR_RO);
    assert_int_equal(rc_stats_of(rc_side[0].newest).operations_pending, 0);
    for (i = 1; i <= 100; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, i % 2 == 0 ? CCI_FLAG_SILENT : 0), CCI_SUCCESS);
        assert_int_equal(rc_stats_of(rc_side[0].newest).operations_pending, i);
    }
    began_ns = now_ns();
    while (now_ns() - began_ns < SECOND_NS / 5) {
        rc_look(0);
    }
    assert_in_range(rc_stats_of(rc_side[0].newest).operations_pending, 90, 100); /* the peer has made no call */
    assert_in_range(rc_stats_of(rc_side[0].newest).silent_ns, SECOND_NS / 10, 60 * SECOND_NS);
    ENDS_AWAIT(rc_side[1].got == 100 && rc_stats_of(rc_side[0].newest).operations_pending == 0);
    assert_true(rc_stats_of(rc_side[0].newest).silent_ns < 10 * SECOND_NS);
    for (i = 0; i < 20; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, 0), CCI_SUCCESS);
    }
    assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].closed == 1);
    assert_int_equal(rc_stats_of(rc_side[0].newest).operations_pending, 0);
    finalize();
}

/* Messages hold receive buffers, and no other event does; a client's connection is opening until its program may use it. */
static void rc_counts_buffers(void **state) {
    cci_event_t *event;
    int device;
    (void)state;
    ends_begin("setups = 1", CCI_CONN_ATTR_RO);
    for (device = 0; device < 2; device++) { /* the client waits for the adapter, or for the peer's */
        cci_endpt_stats_t stats;
        hold_pairs(device, 1);
        ends_connect(CCI_CONN_ATTR_RO);
        ENDS_AWAIT(pairs_in_making() > 0);
        stats = rc_stats_at(left);
        assert_true(stats.connections_open == 1u + (uint32_t)device && stats.connections_opening == 1);
        hold_pairs(device, 0);
        ENDS_AWAIT(rc_side[0].opened == 2u + (uint32_t)device && rc_side[1].opened == 2u + (uint32_t)device);
        stats = rc_stats_at(left);
        assert_true(stats.connections_open == 2u + (uint32_t)device && stats.connections_opening == 0);
    }
    assert_int_equal(cci_disconnect(rc_side[1].newest), CCI_SUCCESS);
    while (rc_stats_at(left).events_waiting == 0) {
        rc_look(1);
        rc_work(0);
    }
    assert_int_equal(rc_stats_at(left).recv_buffers_used, 0);
    assert_int_equal(cci_get_event(left, &event), CCI_SUCCESS);
    assert_int_equal(event->type, CCI_EVENT_DISCONNECT);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    finalize();
}

/* [4.1.4.1] An RMA with a message that is asked for when earlier messages have ended with CCI_ERR_RNR, but the program has not heard
 * of it yet, ends likewise, and its message does not come. */
static void rc_rma_behind_gap(void **state) {
    uint64_t memory[2], began_ns;
    cci_rma_handle_t *handles[2];
    uint32_t i, taken, timeout_us = 300000;
    (void)state;
    ends_begin("recv_buf_count = 8", CCI_CONN_ATTR_RO);
    assert_int_equal(cci_rma_register(left, &memory[0], 8, 0, &handles[0]), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(right, &memory[1], 8, CCI_FLAG_WRITE, &handles[1]), CCI_SUCCESS);
    assert_int_equal(cci_set_opt(rc_side[0].newest, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    holds_messages = 1;
    for (i = 0; i < 40; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, "x", 1, NULL, 0), CCI_SUCCESS);
    }
    began_ns = now_ns();
    while (!(((cci__rc_conn *)(void *)rc_side[0].newest)->marks & CCI__RC_MARKED)) {
        rc_look(1);
        rc_work(0);
        assert_true(now_ns() - began_ns < 60 * SECOND_NS);
    }
    holds_messages = 0;
    taken = rc_side[1].got;
    for (i = 0; i < taken; i++) {
        assert_int_equal(cci_return_event(rc_side[1].held[i]), CCI_SUCCESS);
    }
    assert_int_equal(cci_rma(rc_side[0].newest, "gap", 3, handles[0], 0, handles[1], 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].done + rc_side[0].failed == 41);
    assert_true(rc_side[0].done == taken && rc_side[1].got == taken && rc_side[0].status == CCI_ERR_RNR);
    assert_int_equal(cci_rma(rc_side[0].newest, "new", 3, handles[0], 0, handles[1], 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].done == taken + 1 && rc_side[1].got == taken + 1);
    finalize();
}

/* While an adapter takes its time to make queue pairs, other connections go on; so many are made at once, the others wait. */
static void rc_setups_apart(void **state) {
    cci_connection_t *l, *r;
    int i;
    (void)state;
    ends_begin("setups = 3", CCI_CONN_ATTR_RO);
    l = rc_side[0].newest, r = rc_side[1].newest;
    assert_int_equal(rc_of(0)->worker_count + rc_of(1)->worker_count, 0); /* one connection needs no threads */
    hold_pairs(1, 1);
    for (i = 0; i < 20; i++) {
        ends_connect(i % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
    }
    ENDS_AWAIT(pairs_in_making() == 3 && rc_of(1)->setups_waiting == 17);
    talk(l, r, 100);
    assert_int_equal(rc_side[0].opened + rc_side[1].opened, 2);
    assert_int_equal(fake.most_making, 3);
    hold_pairs(1, 0);
    ENDS_AWAIT(rc_side[0].opened == 21 && rc_side[1].opened == 21);
    talk(rc_side[0].newest, rc_side[1].newest, 1);
}

static cci_event_t *event_of_helper;

static void *get_one_event(void *endpoint) {
    if (cci_get_event((cci_endpoint_t *)endpoint, &event_of_helper) != CCI_SUCCESS) {
        event_of_helper = NULL;
    }
    return NULL;
}

/* Without threads of its own an endpoint makes them in the program's calls: one thread of the program is held up, not all. */
static void rc_setups_in_calls(void **state) {
    pthread_t helper;
    cci_connection_t *l, *r;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    l = rc_side[0].newest, r = rc_side[1].newest;
    ends_connect(CCI_CONN_ATTR_RO);
    ends_connect(CCI_CONN_ATTR_RO);
    hold_pairs(1, 1);
    holds_requests = 1;
    ENDS_AWAIT(rc_side[1].requests == 2);
    assert_int_equal(cci_accept(rc_side[1].held[0], &rc_side[1]), CCI_SUCCESS);
    assert_int_equal(cci_accept(rc_side[1].held[1], &rc_side[1]), CCI_SUCCESS);
    assert_int_equal(pthread_create(&helper, NULL, get_one_event, right), 0);
    while (pairs_in_making() == 0) {
        (void)sched_yield();
    }
    talk(l, r, 100);
    assert_int_equal(fake.most_making, 1);
    assert_int_equal(rc_of(1)->worker_count, 0);
    hold_pairs(1, 0);
    assert_int_equal(pthread_join(helper, NULL), 0);
    if (event_of_helper != NULL) {
        rc_take(1, event_of_helper);
    }
    ENDS_AWAIT(rc_side[0].opened == 3 && rc_side[1].opened == 3);
    cci_return_event(rc_side[1].held[0]);
    cci_return_event(rc_side[1].held[1]);
    talk(rc_side[0].newest, rc_side[1].newest, 1);
}

/* What statistics call active are the connections that have a queue pair. */
static void rc_pairs_are_counted(int side) {
    cci__rc *ep = rc_of(side);
    uint32_t i, pairs, count = 0;
    cci__rc_lock(ep); /* threads may be making some */
    for (i = 0; i < ep->base.conns.slab_count * CCI__CONN_SLAB; i++) {
        const cci__rc_conn *conn = (const cci__rc_conn *)(const void *)cci_conn_at(&ep->base.conns, i);
        count += conn->conn.state != CCI_CONN_FREE && conn->qp != NULL;
    }
    pairs = ep->pairs;
    cci__rc_unlock(ep);
    assert_int_equal(pairs, count);
}

/* Whatever ends while queue pairs are being made, nothing is left of it, and what did not end goes on. */
static void rc_setups_interrupted(void **state) {
    static const struct timeval soon = {0, 3000};
    uint32_t step, i;
    (void)state;
    for (step = 0; step < 120; step++) {
        char uri[100];
        uint32_t open, how = step % 6, rounds = step / 6;
        ends_begin(step & 1 ? "setups = 2" : "setups = 0", CCI_CONN_ATTR_RO);
        snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
        open = 1;
        lets_go = 1;
        take_time(1000000);
        for (i = 0; i < 6; i++) {
            ends_connect(i % 2 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU);
        }
        for (i = 0; i < rounds; i++) {
            rc_look(0);
            rc_look(1);
        }
        if (how < 2) { /* one side goes; the other one's connections end with it */
            assert_int_equal(cci_destroy_endpoint(how ? left : right), CCI_SUCCESS);
            *(how ? &left : &right) = NULL;
        } else if (how == 2) {
            rc_fail_cq((int)step / 6 % 2);
        } else if (how == 3) {
            fake_event((int)step / 6 % 2, IBV_EVENT_DEVICE_FATAL);
        } else if (how == 4) {
            assert_int_equal(cci_disconnect(rc_side[step / 6 % 2].newest), CCI_SUCCESS);
        } else {
            for (i = 0; i < 4; i++) {
                assert_int_equal(cci_connect(left, uri, "x", 1, CCI_CONN_ATTR_RO, &rc_side[0], 0, &soon), CCI_SUCCESS);
            }
        }
        hears_all = 1;
        for (i = 0; i < 200; i++) {
            rc_look(0);
            rc_look(1);
        }
        if (right != NULL) rc_pairs_are_counted(1);
        if (left != NULL) rc_pairs_are_counted(0);
        if (how == 2) {
            ENDS_AWAIT(rc_side[0].opened == 7 && rc_side[1].opened == 7);
            talk(rc_side[0].newest, rc_side[1].newest, 2);
        }
        take_time(0);
        assert_int_equal(open, 1);
        hears_all = 0;
        for (i = 0; i < 2; i++) {
            cci_endpoint_t **endpoint = i ? &left : &right;
            if (*endpoint != NULL) {
                assert_int_equal(cci_destroy_endpoint(*endpoint), CCI_SUCCESS);
                *endpoint = NULL;
            }
        }
        finalize();
        fake_end();
    }
}

/* Thousands at once, of which each costs what the manual says. */
static void rc_setups_many(void **state) {
    enum { COUNT = 2000 };
    uint64_t pinned;
    uint32_t i;
    (void)state;
    ends_begin("setups = 4", CCI_CONN_ATTR_RO);
    take_time(50000);
    pinned = fake.pinned;
    for (i = 0; i < COUNT; i++) {
        ends_connect(CCI_CONN_ATTR_RO);
        rc_look(1);
    }
    ENDS_AWAIT(rc_side[0].opened == COUNT + 1 && rc_side[1].opened == COUNT + 1);
    assert_in_range(fake.most_making, 2, 8); /* on two endpoints */
    assert_int_equal(rc_of(0)->pairs, COUNT + 1);
    assert_int_equal(rc_of(0)->setups_waiting + rc_of(0)->setups_running, 0);
    talk(rc_side[0].newest, rc_side[1].newest, 3);
    printf("a connection of mode rc: %lu bytes here, %lu bytes that are pinned for its queue pair, as fake_verbs.h counts\n",
           (unsigned long)sizeof(cci__rc_conn), (unsigned long)((fake.pinned - pinned) / (2 * COUNT)));
    assert_in_range(sizeof(cci__rc_conn), 200, 256);
}

/* ---- mode = auto: both kinds of connections ------------------------------------------------------------------------ */

static int is_over_datagrams(const cci_connection_t *connection) {
    return ((const cci_conn_t *)(const void *)connection)->index >= CCI__CONN_MOST;
}

/* Opens a connection, and says of which kind it is on both sides. */
static int auto_connect(cci_conn_attribute_t attribute) {
    uint32_t opened = rc_side[0].opened + 1;
    int kind;
    ends_connect(attribute);
    ENDS_AWAIT(rc_side[0].opened == opened && rc_side[1].opened == opened);
    kind = is_over_datagrams(rc_side[0].newest);
    assert_int_equal(is_over_datagrams(rc_side[1].newest), kind);
    assert_ptr_equal(rc_side[0].newest->endpoint, left);
    assert_ptr_equal(rc_side[1].newest->endpoint, right);
    return kind;
}

/* Writes, reads and adds in the peer's memory, by handles that know nothing of the kind of connection. */
static void auto_access(cci_connection_t *connection, cci_rma_handle_t *here, cci_rma_handle_t *there, uint64_t *at_home, uint64_t *afar) {
    uint32_t done = rc_side[0].done, failed = rc_side[0].failed;
    uint64_t previous = 0;
    at_home[0] = 77;
    afar[0] = afar[1] = 5;
    assert_int_equal(cci_rma(connection, NULL, 0, here, 0, there, 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].done == done + 1);
    assert_int_equal(afar[0], 77);
    assert_int_equal(cci_rma(connection, NULL, 0, here, 8, there, 8, 8, NULL, CCI_FLAG_READ), CCI_SUCCESS);
    assert_int_equal(cci_atomic(connection, CCI_ATOMIC_FETCH_ADD, 8, there, 0, 3, 0, &previous, NULL, 0), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].done == done + 3);
    assert_int_equal(at_home[1], 5);
    assert_int_equal(previous, 77);
    assert_int_equal(afar[0], 80);
    assert_int_equal(rc_side[0].failed, failed);
}

/* The first three have queue pairs, what comes behind them goes over datagrams, and all can do the same. When one of the three
 * has ended, a new one has its place. */
static void auto_changes(void **state) {
    static uint64_t memory[2][2];
    cci_rma_handle_t *handle[2];
    cci_connection_t *l[5], *r[5];
    uint32_t i;
    (void)state;
    ends_open("mode = auto\nrc_connections = 3");
    lets_go = 1;
    assert_int_equal(cci_rma_register(left, memory[0], sizeof memory[0], 0, &handle[0]), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(right, memory[1], sizeof memory[1], CCI_FLAG_READ | CCI_FLAG_WRITE, &handle[1]), CCI_SUCCESS);
    for (i = 0; i < 5; i++) {
        assert_int_equal(auto_connect(i % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO), i >= 3);
        l[i] = rc_side[0].newest, r[i] = rc_side[1].newest;
        assert_int_equal(l[i]->max_send_size, l[0]->max_send_size);
    }
    for (i = 0; i < 5; i++) {
        talk(l[i], r[i], 20);
        auto_access(l[i], handle[0], handle[1], memory[0], memory[1]);
    }
    assert_int_equal(rc_of(0)->pairs, 3);
    assert_int_equal(rc_of(1)->pairs, 3);
    assert_int_equal(auto_connect(CCI_CONN_ATTR_UU), 0); /* it needs none */
    for (i = 0; i < 2; i++) {
        cci_endpt_stats_t stats;
        cci_caps_t caps;
        assert_int_equal(cci_get_opt(i ? right : left, CCI_OPT_ENDPT_STATS, &stats), CCI_SUCCESS);
        assert_int_equal(stats.connections_open, 6);
        assert_int_equal(cci_get_opt(i ? r[4] : l[4], CCI_OPT_CAPS, &caps), CCI_SUCCESS);
        assert_int_equal(caps.can & CCI_CAN_RMA_HARDWARE, 0);
        assert_int_equal(cci_get_opt(i ? r[0] : l[0], CCI_OPT_CAPS, &caps), CCI_SUCCESS);
        assert_int_not_equal(caps.can & CCI_CAN_RMA_HARDWARE, 0);
    }
    assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
    assert_int_equal(cci_disconnect(l[1]), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[1].closed == 2 && rc_of(0)->base.conns.used == 2 && rc_of(1)->base.conns.used == 2);
    assert_int_equal(auto_connect(CCI_CONN_ATTR_RO), 0);
    assert_int_equal(auto_connect(CCI_CONN_ATTR_RO), 1);
    assert_int_equal(cci_rma_deregister(right, handle[1]), CCI_SUCCESS); /* for both kinds */
    for (i = 0; i < 2; i++) {
        uint32_t failed = rc_side[0].failed;
        assert_int_equal(cci_rma(l[i ? 4 : 0], NULL, 0, handle[0], 0, handle[1], 0, 8, NULL, CCI_FLAG_WRITE), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].failed == failed + 1);
        assert_int_equal(rc_side[0].status, CCI_ERR_RMA_HANDLE);
    }
}

/* Datagrams are used where both sides take them, as soon as one of both has its number. */
static void auto_both_say_so(void **state) {
    static const char *const none = "mode = auto\nrc_connections = 0", *const many = "mode = auto", *const rc = "mode = rc";
    const struct {
        const char *left, *right;
        int kind;
    } cases[] = {{none, none, 1}, {none, many, 1}, {many, none, 1}, {many, many, 0}, {none, rc, 0}, {rc, none, 0}, {many, rc, 0}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        ends_open_apart(cases[i].left, cases[i].right);
        assert_int_equal(auto_connect(CCI_CONN_ATTR_RO), cases[i].kind);
        talk(rc_side[0].newest, rc_side[1].newest, 3);
        assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
        assert_int_equal(cci_destroy_endpoint(right), CCI_SUCCESS);
        left = right = NULL;
        finalize();
        fake_end();
    }
}

/* Many that ask at once never get more queue pairs than there may be; their data arrives, and the losses of a network change nothing. */
static void auto_storm(void **state) {
    static const struct timeval patience = {60, 0};
    uint8_t data[1000];
    uint32_t i;
    (void)state;
    memset(data, 3, sizeof data);
    ends_open("mode = auto\nrc_connections = 10\nsetups = 2");
    holds_requests = 1;
    for (i = 0; i < 200; i++) {
        char uri[100];
        snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
        fake.passes = (int)(i % 7) + 1; /* then one is lost */
        fake.loses = 1;
        assert_int_equal(cci_connect(left, uri, data, sizeof data, CCI_CONN_ATTR_RO, &rc_side[0], 0, &patience), CCI_SUCCESS);
        rc_look(1);
    }
    ENDS_AWAIT(rc_side[1].requests == 200);
    for (i = 0; i < 200; i++) {
        assert_int_equal(rc_side[1].held[i]->request.data_len, sizeof data);
        assert_memory_equal(rc_side[1].held[i]->request.data_ptr, data, sizeof data);
        assert_int_equal(cci_accept(rc_side[1].held[i], &rc_side[1]), CCI_SUCCESS);
        cci_return_event(rc_side[1].held[i]);
    }
    ENDS_AWAIT(rc_side[0].opened == 200 && rc_side[1].opened == 200);
    assert_int_equal(rc_of(0)->pairs, 10);
    assert_int_equal(rc_of(1)->pairs, 10);
    assert_int_equal(rc_of(1)->base.conns.used + rc_of(1)->base.datagrams->conns.used, 200);
    talk(rc_side[0].newest, rc_side[1].newest, 3);
}

/* Who sends a client elsewhere has to be whom it has asked, with the client's token, at an address that can be. */
static void auto_strangers(void **state) {
    uint8_t bytes[CCI__HEADER_SIZE], gid[16];
    cci_connection_t *open;
    cci_conn_t *asks;
    uint32_t qpn, i;
    (void)state;
    ends_open("mode = auto\nrc_connections = 1");
    assert_int_equal(auto_connect(CCI_CONN_ATTR_RO), 0);
    open = rc_side[0].newest;
    fake.drops = 1;
    ends_connect(CCI_CONN_ATTR_RO);
    asks = cci_conn_at(&rc_of(0)->base.conns, ((cci_conn_t *)(void *)open)->index ^ 1u);
    assert_int_equal(asks->state, CCI_CONN_CONNECTING);
    memcpy(gid, link_of(right)->port.gid, sizeof gid);
    qpn = rc_of(1)->hw->qp->qp_num;
    for (i = 0; i < 6; i++) {
        const cci_conn_t *of = i == 4 ? (cci_conn_t *)(void *)open : asks;
        cci_conn_write_header(bytes, CCI__RC_PKT_ELSEWHERE, 0, of->index, of->token ^ (i == 0), i == 1 ? 0 : i == 2 ? 0xffffff : 4242, 0);
        gid[15] ^= (uint8_t)(i == 3 ? 1 : 0);
        forge(left, gid, i == 5 ? qpn + 1 : qpn, bytes, sizeof bytes);
        gid[15] ^= (uint8_t)(i == 3 ? 1 : 0);
        rc_of(0)->base.polls.left = 0;
        rc_look(0);
        assert_int_equal(asks->state, CCI_CONN_CONNECTING);
        assert_int_equal(rc_of(0)->base.datagrams->conns.used, 0);
    }
    cci_conn_write_header(bytes, CCI__RC_PKT_ELSEWHERE, 0, asks->index, asks->token, 4242, 0);
    for (i = 0; i < 2; i++) { /* the second copy finds nobody */
        forge(left, gid, qpn, bytes, sizeof bytes);
        rc_of(0)->base.polls.left = 0;
        rc_look(0);
        assert_int_equal(asks->state, CCI_CONN_FREE);
        assert_int_equal(rc_of(0)->base.datagrams->conns.used, 1);
    }
    fake.drops = 0;
    talk(open, rc_side[1].newest, 3);
}

/* A sleeper is woken by either kind, the second descriptor tells of either, and what happens to the device is told once. */
static void auto_wakes(void **state) {
    cci_os_handle_t fd, send_fd;
    struct pollfd p;
    cci_event_t *event;
    uint64_t ns;
    uint32_t i, tries, failures = 0;
    char uri[100];
    cci_device_t *const *devices;
    (void)state;
    ends_open("mode = auto\nrc_connections = 1");
    assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(devices[0], 0, &left, &fd), CCI_SUCCESS);
    snprintf(uri, sizeof uri, "verbs://[::ffff:127.0.0.2]/%lu", (unsigned long)rc_of(1)->hw->qp->qp_num);
    lets_go = 1;
    for (i = 0; i < 2; i++) {
        assert_int_equal(auto_connect(CCI_CONN_ATTR_RO), (int)i);
        while (cci_get_event(left, &event) == CCI_SUCCESS) {
            rc_take(0, event);
        }
        assert_int_equal(cci_send(rc_side[1].newest, "wake", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        p.fd = fd;
        p.events = POLLIN;
        for (p.revents = 0, tries = 0; p.revents == 0; tries++) {
            rc_look(1);
            assert_true(poll(&p, 1, 0) >= 0);
            assert_in_range(tries, 0, 200); /* no timer is due so soon */
        }
        ENDS_AWAIT(rc_side[0].got == i + 1);
        assert_int_equal(cci_next_deadline(left, &ns), CCI_SUCCESS);
        assert_int_equal(cci_get_opt(left, CCI_OPT_ENDPT_SEND_FD, &send_fd), CCI_SUCCESS);
        assert_int_equal(cci_send(rc_side[0].newest, "done", 4, NULL, 0), CCI_SUCCESS);
        p.fd = send_fd;
        for (p.revents = 0; p.revents == 0;) { /* without taking the event */
            assert_int_equal(cci_arm_os_handle(left, 0), CCI_SUCCESS);
            rc_look(1);
            assert_true(poll(&p, 1, 0) >= 0);
        }
        ENDS_AWAIT(rc_side[0].done == i + 1);
    }
    fake.port_state[0] = IBV_PORT_DOWN;
    fake_event(0, IBV_EVENT_PORT_ERR);
    for (i = 0; i < 2000; i++) {
        rc_of(0)->base.check_ns = rc_of(0)->base.datagrams->check_ns = 0;
        rc_of(0)->base.polls.left = rc_of(0)->base.datagrams->polls.left = 0;
        if (cci_get_event(left, &event) == CCI_SUCCESS) {
            failures += event->type == CCI_EVENT_ENDPOINT_DEVICE_FAILED;
            assert_true(event->type != CCI_EVENT_ENDPOINT_DEVICE_FAILED || event->dev_failed.endpoint == left);
            cci_return_event(event);
        }
    }
    assert_int_equal(failures, 1);
    assert_true(rc_of(0)->base.device_failed && rc_of(0)->base.datagrams->device_failed);
}

/* An endpoint of which half could be made leaves nothing behind. */
static void auto_creation_fails(void **state) {
    cci_device_t *const *devices;
    int fail, left_over = 0, failures = 0, status;
    (void)state;
    for (fail = 1; left_over == 0; fail++) {
        assert_int_equal(configured("[left]\ntransport = verbs\ndevice = fake0\nmode = auto", ""), CCI_SUCCESS);
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        fake.fail_at = fail;
        status = cci_create_endpoint(devices[0], 0, &left, NULL);
        left_over = fake.fail_at;
        fake.fail_at = 0;
        failures += status != CCI_SUCCESS;
        left = status == CCI_SUCCESS ? left : NULL;
        if (left != NULL) {
            assert_int_equal(cci_destroy_endpoint(left), CCI_SUCCESS);
            left = NULL;
        }
        finalize();
        fake_end();
    }
    assert_in_range(failures, 15, 99);
}

/* Each failure to get memory for the hardware says how much is allowed and needed. */
static void memory_refused(void **state) {
    static const char *const modes[] = {"ud", "rc"};
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint;
    char text[200];
    int mode, n, told, status;
    (void)state;
    for (mode = 0; mode < 2; mode++) {
        snprintf(text, sizeof text, "[it]\ntransport = verbs\ndevice = fake0\nmode = %s\n", modes[mode]);
        assert_int_equal(configured(text, ""), CCI_SUCCESS);
        assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
        for (n = 1, told = 0; n < 100; n++) {
            log_text[0] = '\0';
            fake.fail_at = n;
            status = cci_create_endpoint(devices[0], 0, &endpoint, NULL);
            if (status == CCI_SUCCESS) {
                assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
                if (fake.fail_at > 0) {
                    break;
                }
            } else if (strstr(log_text, "`ulimit -l`") != NULL && strstr(log_text, "needs about ") != NULL) {
                told++;
            }
        }
        assert_int_equal(told, mode == 0 ? 3 : 7); /* memory and two queues; in rc two queues and two times memory more */
        fake.fail_at = 0;
        fake.no_qp_type[mode == 0 ? IBV_QPT_UD : IBV_QPT_RC] = ENOMEM;
        log_text[0] = '\0';
        assert_int_not_equal(cci_create_endpoint(devices[0], 0, &endpoint, NULL), CCI_SUCCESS);
        assert_non_null(strstr(log_text, "`ulimit -l`"));
        fake.no_qp_type[mode == 0 ? IBV_QPT_UD : IBV_QPT_RC] = 0;
        finalize();
    }
    ends_begin("", CCI_CONN_ATTR_RO);
    log_text[0] = '\0';
    fake.no_qp_type[IBV_QPT_RC] = ENOMEM;
    ends_connect(CCI_CONN_ATTR_RO);
    lacks_pairs = 1;
    ENDS_AWAIT(rc_side[0].refused == 1 && rc_side[1].refused == 1); /* both programs learn it at once */
    assert_non_null(strstr(log_text, "no queue pair for a connection"));
    assert_non_null(strstr(log_text, "`ulimit -l`"));
    lacks_pairs = 0;
}

/* Endpoints share the adapter's interrupts, and these come for several completions where the adapter can wait for them. */
static void vectors_and_moderation(void **state) {
    cci_device_t *const *devices;
    cci_endpoint_t *endpoint[7];
    int i;
    (void)state;
    fake.comp_vectors = 3;
    assert_int_equal(configured("[it]\ntransport = verbs\ndevice = fake0\nmoderation = 9\n", ""), CCI_SUCCESS);
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    for (i = 0; i < 6; i++) {
        assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint[i], NULL), CCI_SUCCESS);
    }
    for (i = 0; i < 3; i++) { /* two endpoints with two queues each */
        assert_int_equal(fake.vector_used[i], 4);
    }
    assert_int_equal(fake.moderated, 12);
    assert_int_equal(fake.moderation_us, 9);
    fake.comp_vectors = 1;
    fake.no_moderation = 1;
    assert_int_equal(cci_create_endpoint(devices[0], 0, &endpoint[6], NULL), CCI_SUCCESS);
    finalize();
    fake.no_moderation = 0;
    assert_int_equal(configured(FAKE0, "moderation = 0"), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint[0], NULL), CCI_SUCCESS);
    assert_int_equal(fake.moderated, 12);
}

/* Two ports of InfiniBand with LIDs, and a connection between them. */
static void ends_connect_by_lid(const char *keys) {
    char uri[200];
    fake.link_layer = IBV_LINK_LAYER_INFINIBAND;
    fake.lid[0] = 7;
    fake.lid[1] = 9;
    ends_open(keys);
    snprintf(uri, sizeof uri, "verbs://[fe80::2]/%lu/9", (unsigned long)rc_of(1)->hw->qp->qp_num);
    assert_int_equal(cci_connect(left, uri, NULL, 0, CCI_CONN_ATTR_RO, &rc_side[0], 0, NULL), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
}

/* The subnet manager gives a port another LID: peers learn it, and connections go on. */
static void rc_lid_changes(void **state) {
    uint32_t i;
    (void)state;
    ends_connect_by_lid("");
    for (i = 0; i < 6; i++) {
        fake.lid[i & 1] = (uint16_t)(20 + i);
        fake_event((int)(i & 1), IBV_EVENT_LID_CHANGE);
        assert_int_equal(cci_send(rc_side[0].newest, "here", 4, NULL, 0), CCI_SUCCESS);
        assert_int_equal(cci_send(rc_side[1].newest, "there", 5, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].done == i + 1 && rc_side[1].done == i + 1 && rc_side[0].got == i + 1 && rc_side[1].got == i + 1);
    }
}

/* The same while nobody sends: who hears of it makes the pair anew at once, not when the first message has failed. */
static void rc_idle_lid_changes(void **state) {
    const cci__rc_conn *conn;
    uint32_t before, tries;
    (void)state;
    ends_connect_by_lid("probe_idle = 1");
    conn = (const cci__rc_conn *)(const void *)rc_side[1].newest;
    ENDS_AWAIT(conn->phase == CCI__RC_PAIRED);
    for (tries = 0; tries < 3; tries++) {
        before = conn->epoch;
        fake.lid[0] = (uint16_t)(20 + tries);
        fake_event(0, IBV_EVENT_LID_CHANGE);
        ENDS_AWAIT(cci__verbs_addr_lid(&conn->conn.peer) == fake.lid[0]);
        assert_true(conn->phase != CCI__RC_PAIRED || conn->epoch != before);
        ENDS_AWAIT(conn->phase == CCI__RC_PAIRED && conn->epoch != before);
        assert_int_equal(cci_send(rc_side[1].newest, "there", 5, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[1].done == tries + 1 && rc_side[0].got == tries + 1);
    }
}

/* What the hardware does not take is not counted as taken, is given to it again, and the log says why. */
static void rc_posts_refused(void **state) {
    uint32_t i, all;
    (void)state;
    ends_begin("recv_buf_count = 100", CCI_CONN_ATTR_RO);
    all = rc_buffers(1);
    assert_int_equal(all, 100);
    fake.post_takes = 1;
    holds_messages = 1;
    for (i = 1; i <= 600; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].done == i && rc_side[1].got == i);
        if (i % 60 == 0) { /* the buffers come back in batches */
            uint32_t n;
            for (n = 1; n <= 60; n++) {
                cci_return_event(rc_side[1].held[i - n]);
            }
        }
        assert_int_equal(rc_of(1)->posted_buffers, ((fake_srq *)(void *)rc_of(1)->srq)->recv_count);
        assert_int_equal(rc_buffers(1), all - i % 60);
    }
    holds_messages = 0;
    assert_non_null(strstr(log_text, "the shared receive queue takes no buffers: Input/output error"));
    assert_null(strstr(strstr(log_text, "takes no buffers") + 1, "takes no buffers: Numerical"));
    fake.post_takes = 0;
    fake.send_refuses = EIO;
    assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].failed == 1);
    assert_non_null(strstr(log_text, "the hardware takes no work: Input/output error"));
    assert_int_equal(rc_of(0)->under_way, 0);
}

/* An adapter refuses messages with which nothing is wrong, some of which had arrived. */
static void rc_messages_fail(void **state) {
    static const enum ibv_wc_status why[] = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR,   IBV_WC_LOC_QP_OP_ERR,
                                             IBV_WC_LOC_LEN_ERR,     IBV_WC_BAD_RESP_ERR, IBV_WC_GENERAL_ERR};
    uint32_t sent = 0, i, k;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    for (i = 0; i < sizeof why / sizeof *why; i++) {
        for (k = 0; k < 40; k++) {
            if (k % 10 == 0) {
                fake.why = why[i];
                fake.messages_fail = 1 + (int)k / 20;
            }
            sent++;
            assert_int_equal(cci_send(rc_side[0].newest, &sent, sizeof sent, NULL, 0), CCI_SUCCESS);
            if (k % 3 == 0) ENDS_AWAIT(rc_side[0].done == sent && rc_side[1].got == sent);
        }
        ENDS_AWAIT(rc_side[0].done == sent && rc_side[1].got == sent);
        assert_int_equal(fake.messages_fail, 0);
    }
    assert_int_equal(rc_side[0].failed, 0);
    fake.messages_fail = -1000; /* nothing gets on any more */
    assert_int_equal(cci_send(rc_side[0].newest, &sent, sizeof sent, NULL, 0), CCI_SUCCESS);
    ENDS_AWAIT(rc_side[0].failed == 1);
    assert_in_range(-fake.messages_fail, 990, 998);
    assert_int_equal(rc_side[1].got, sent);
    fake.messages_fail = 0;
}

static void posts_refused(void **state) {
    cci_connection_t *connection;
    int i, n;
    (void)state;
    open_both("recv_depth = 64");
    connection = connect_to(uri_of(right));
    fake.post_takes = 1;
    for (i = 0; i < 50; i++) {
        for (n = 0; n < 10; n++) {
            assert_int_equal(cci_send(connection, "some", 4, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        }
        for (n = 0; n < 10; n++) {
            cci_return_event(next_event(right, CCI_EVENT_RECV));
        }
        for (n = 0; n < 100000 && qp_of(right)->recv_count + link_of(right)->to_post_count != 64; n++) {
            cci_event_t *event; /* an acknowledgement may have come just now */
            assert_int_equal(cci_get_event(right, &event), CCI_EAGAIN);
        }
        assert_int_equal(qp_of(right)->recv_count + link_of(right)->to_post_count, 64);
    }
    assert_non_null(strstr(log_text, "the queue pair takes no receive buffers: Input/output error"));
    fake.post_takes = 0;
    exchange(connection, 100);
}

/* Everything at once, over each kind of adapter. */
static void rc_adapters(void **state) {
    size_t n;
    (void)state;
    for (n = 0; n < sizeof fake_adapters / sizeof fake_adapters[0]; n++) {
        const struct fake_adapter *a = &fake_adapters[n];
        uint32_t i;
        char uri[200];
        fake_begin();
        fake_play(a);
        if (a->lacks != NULL) {
            expect_refused("rc", a->lacks);
            continue;
        }
        ends_open("");
        snprintf(uri, sizeof uri, a->link_layer == IBV_LINK_LAYER_ETHERNET ? "verbs://[::ffff:127.0.0.2]/%lu" : "verbs://[fe80::2]/%lu/9",
                 (unsigned long)rc_of(1)->hw->qp->qp_num);
        assert_int_equal(cci_connect(left, uri, NULL, 0, CCI_CONN_ATTR_RO, &rc_side[0], 0, NULL), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].opened == 1 && rc_side[1].opened == 1);
        for (i = 0; i < 8; i++) {
            fake_qp *qp = rc_qp(rc_side[i & 1].newest);
            rc_writes(1 + i * 7000);
            fake_arrive_half(qp);
            fake_stop(qp, qp->pub.state);
            qp = rc_qp(rc_side[~i & 1].newest);
            fake_stop(qp, qp->pub.state);
        }
        rc_writes(60000);
        assert_int_equal(fake.lost_buffers, 0);
        assert_int_equal(cci_disconnect(rc_side[0].newest), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[1].closed == 1);
        finalize();
        fake_end();
    }
}

/* Receive buffers go back to the hardware in batches, while it has enough; where there are few, each one at once. */
static void rc_buffers_in_batches(void **state) {
    uint32_t i;
    int posts;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    posts = fake.srq_posts;
    for (i = 1; i <= 1600; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].done == i && rc_side[1].got == i);
    }
    assert_in_range(fake.srq_posts - posts, 1, 1600 / 16 + 1);
    finalize();
    ends_begin("recv_buf_count = 1", CCI_CONN_ATTR_RO);
    for (i = 1; i <= 100; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, &i, sizeof i, NULL, 0), CCI_SUCCESS);
        ENDS_AWAIT(rc_side[0].done == i && rc_side[1].got == i);
    }
}

/* Sends so much of what is there with NO_COPY; 1: the hardware has read it from there, 0: from a copy. The message comes in
 * any case. */
static int rc_leaves_uncopied(const uint8_t *bytes, uint32_t size, int flags) {
    uint32_t got = rc_side[1].got, done = rc_side[0].done;
    int is_uncopied;
    memset(&fake.last_piece, 0, sizeof fake.last_piece);
    assert_int_equal(cci_send(rc_side[0].newest, bytes, size, NULL, flags), CCI_SUCCESS);
    is_uncopied = fake.last_piece.addr == (uintptr_t)bytes;
    ENDS_AWAIT(rc_side[0].done == done + 1 && rc_side[1].got == got + 1);
    assert_int_equal(rc_side[1].held[got]->recv.len, size);
    assert_memory_equal(rc_side[1].held[got]->recv.ptr, bytes, size);
    assert_int_equal(rc_of(0)->borrowed, 0);
    return is_uncopied;
}

/* What is in registered memory and large leaves it without a copy, whichever registrations there are beside. */
static void rc_no_copy(void **state) {
    static uint8_t bytes[70000];
    cci_rma_handle_t *handle, *inner[12];
    struct iovec two[2];
    uint32_t i;
    (void)state;
    for (i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    ends_begin("max_send_size = 65472", CCI_CONN_ATTR_RO);
    holds_messages = 1;
    assert_false(rc_leaves_uncopied(bytes, 4096, CCI_FLAG_NO_COPY));
    assert_int_equal(cci_rma_register(left, bytes + 100, 66000, CCI_FLAG_READ, &handle), CCI_SUCCESS);
    assert_true(rc_leaves_uncopied(bytes + 100, 4096, CCI_FLAG_NO_COPY));
    assert_true(rc_leaves_uncopied(bytes + 100 + 66000 - 65472, 65472, CCI_FLAG_NO_COPY));
    assert_false(rc_leaves_uncopied(bytes + 100, 4096, 0));
    assert_false(rc_leaves_uncopied(bytes + 99, 4096, CCI_FLAG_NO_COPY));
    assert_false(rc_leaves_uncopied(bytes + 100 + 66000 - 4095, 4096, CCI_FLAG_NO_COPY));
    assert_false(rc_leaves_uncopied(bytes + 100, 2047, CCI_FLAG_NO_COPY));
    for (i = 0; i < 12; i++) { /* that many are not searched */
        assert_int_equal(cci_rma_register(left, bytes + 200 + i, 100, CCI_FLAG_READ, &inner[i]), CCI_SUCCESS);
        assert_int_equal(rc_leaves_uncopied(bytes + 300, 4096, CCI_FLAG_NO_COPY), i < 7);
    }
    for (i = 0; i < 12; i++) {
        assert_int_equal(cci_rma_deregister(left, inner[i]), CCI_SUCCESS);
    }
    two[0].iov_base = bytes + 100, two[0].iov_len = 3000;
    two[1].iov_base = bytes + 3100, two[1].iov_len = 3000;
    memset(&fake.last_piece, 0, sizeof fake.last_piece);
    assert_int_equal(cci_sendv(rc_side[0].newest, two, 2, NULL, CCI_FLAG_NO_COPY), CCI_SUCCESS);
    assert_true(fake.last_piece.addr != (uintptr_t)bytes + 100);
    i = rc_side[1].got;
    ENDS_AWAIT(rc_side[1].got == i + 1);
    assert_memory_equal(rc_side[1].held[i]->recv.ptr, bytes + 100, 6000);
    assert_true(rc_leaves_uncopied(bytes + 300, 4096, CCI_FLAG_NO_COPY));
    assert_int_equal(cci_rma_deregister(left, handle), CCI_SUCCESS);
    assert_false(rc_leaves_uncopied(bytes + 300, 4096, CCI_FLAG_NO_COPY));
    for (i = 0; i < rc_side[1].got; i++) {
        cci_return_event(rc_side[1].held[i]);
    }
}

/* Memory that is deregistered while a message is on its way from there: it arrives once all the same, and so do those
 * behind it. Afterwards what is mapped at that address may be something else. */
static void rc_no_copy_deregistered(void **state) {
    static uint8_t bytes[8192], before[4096];
    cci_rma_handle_t *handle;
    uint32_t i;
    (void)state;
    ends_begin("", CCI_CONN_ATTR_RO);
    holds_messages = 1;
    for (i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 5 + i / 256);
    }
    memcpy(before, bytes + 1000, sizeof before);
    assert_int_equal(cci_rma_register(left, bytes, sizeof bytes, CCI_FLAG_READ, &handle), CCI_SUCCESS);
    fake.drops = 1;
    for (i = 0; i < 10; i++) {
        assert_int_equal(cci_send(rc_side[0].newest, bytes + 1000, sizeof before, NULL, CCI_FLAG_NO_COPY), CCI_SUCCESS);
    }
    assert_int_equal(rc_of(0)->borrowed, 10);
    assert_int_equal(cci_rma_deregister(left, handle), CCI_SUCCESS);
    assert_int_equal(rc_of(0)->borrowed, 0);
    memset(bytes, 0, sizeof bytes); /* as if it were mapped anew */
    fake.drops = 0;
    ENDS_AWAIT(rc_side[0].done == 10 && rc_side[1].got == 10);
    for (i = 0; i < 10; i++) {
        assert_memory_equal(rc_side[1].held[i]->recv.ptr, before, sizeof before);
        cci_return_event(rc_side[1].held[i]);
    }
    assert_int_equal(rc_side[0].failed + rc_side[0].closed + rc_side[1].closed, 0);
}

#define TEST(function, sentence) {sentence, function, begin_fake, end_fake, NULL}
#define TEST_LIBRARY(function, sentence) {sentence, function, begin_unloaded, end_unloaded, NULL}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        TEST_LIBRARY(library_missing, "a missing library is told by its name"),
        TEST_LIBRARY(library_incomplete, "a library that lacks a function is told with that function"),
        TEST_LIBRARY(library_configured, "a configured device says why it is not up"),
        TEST_LIBRARY(library_real, "the real library has all the functions"),
        TEST(no_devices, "that there are no devices is told, and when the kernel has no RDMA"),
        TEST(proposals, "each port is proposed, active or not, with its rate"),
        TEST(gid_choice, "the address is chosen well, or as the key says"),
        TEST(gid_candidates, "addresses that can't be used here are not chosen"),
        TEST(gid_keys, "`ip` and `interface` say which address is meant"),
        TEST(devices_unopened, "who asks for the devices opens none"),
        TEST(adapters_refused, "adapters that lack something are down and say what"),
        TEST(gid_or_pkey_missing, "an empty address or a foreign partition makes no endpoint"),
        TEST(good_keys, "each key of the manual is accepted at its limits"),
        TEST(bad_keys, "a bad value or key is an error that names line and reason"),
        TEST(keys_work, "keys reach the hardware"),
        TEST(service_of_device, "the device's service is where its endpoints are, and one can be there"),
        TEST(names, "both modes: a client finds the server of a name, wherever it is, and nobody else"),
        TEST(names_with_cookies, "mode = ud: ... also when the server asks for a cookie first"),
        TEST(names_of_strangers, "mode = rc: ... and believes nobody whom it has not asked"),
        TEST(messages, "messages of all sizes arrive; short ones travel inline, few sends ask for completions"),
        TEST(small_device, "a device that can do little is enough"),
        TEST(batches, "many packets are posted at once"),
        TEST(os_handle, "the OS handle loses no wake-up and rests when all is taken"),
        TEST(groups_with_one_address, "groups with one address differ by their port; the address is attached once"),
        TEST(direct_uri, "a URI may name GID and queue pair"),
        TEST(infiniband, "without IP the URI names GID, queue pair and LID"),
        TEST(ipoib, "an interface of IPoIB is known by its hardware address"),
        TEST(hosts_and_ports, "a URI has a host and a port; the interface of a link-local address is the port's own"),
        TEST(bad_uris, "URIs that are none are refused"),
        TEST(questions, "questions are answered by no more bytes than they have, nonsense is not"),
        TEST(qkey_is_kept, "the qkey is not told to who does not know it"),
        TEST(lies, "an answer is checked before it is believed"),
        TEST(lies_of_strangers, "answers of strangers and to other questions are ignored"),
        TEST(questions_again, "questions are repeated, ever more slowly; connections to one host ask together"),
        TEST(questions_beyond_count, "more hosts than there are questions wait for their turn"),
        TEST(handles_are_bounded, "address handles are bounded, whoever sends"),
        TEST(handles_cost_little, "handles that take long to make take a tenth of the time at most"),
        TEST(handles_that_fail, "an address that can't be reached is tried now and then"),
        TEST(odd_datagrams, "odd datagrams and completions are dropped, and lose no buffer"),
        TEST(creation_fails, "an endpoint that can't be made leaves nothing behind"),
        TEST(queue_pair_fails, "a failed queue pair is reset and goes on under its number"),
        TEST(send_fails, "a failed send is repaired"),
        TEST(completion_queue_fails, "failed completion queues are replaced, and peers find the new queue pair"),
        TEST(repair_fails, "what can't be repaired is a failed device"),
        TEST(device_goes, "a device that goes is told, to sleepers too, and ends what is pending"),
        TEST(port_goes_and_comes, "a port that goes and comes is told; messages wait for it"),
        TEST(port_news, "CCI_EVENT_STATUS tells both modes of a port that goes and comes, of its address and its MTU"),
        TEST(rc_messages, "mode = rc: messages and RMA go over reliable connections"),
        TEST(rc_queue_fails, "mode = rc: completion queue and shared receive queue that fail are replaced, and no program notices"),
        TEST(rc_completions_lost, "mode = rc: what has arrived, and whose completion was lost, is complete, and comes once"),
        TEST(rc_messages_lost, "mode = rc: where messages were lost with the queue both sides learn it; other connections go on"),
        TEST(rc_fewer_buffers, "mode = rc: a queue that is made anew gets the buffers that are in use, each once"),
        TEST(rc_completions_late, "mode = rc: completions that were not looked at yet outlive the making anew of a queue pair"),
        TEST(rc_handshake, "mode = rc: a queue that fails at any step of a handshake does not spoil the connection"),
        TEST(rc_early, "mode = rc: no message comes before its connection when the queue pair fails meanwhile"),
        TEST(rc_no_reset, "mode = rc: a queue pair of the kernel's software driver that failed is not reset but replaced"),
        TEST(rc_crossing, "mode = rc: sides that begin anew at the same time, and again, come to an end"),
        TEST(rc_datagrams_move, "mode = rc: peers follow a queue pair for datagrams that has got another number"),
        TEST(rc_messages_fail, "mode = rc: messages that an adapter refuses without a reason come once, over a new queue pair"),
        TEST(rc_often, "mode = rc: queues that fail time and again lose and repeat no message"),
        TEST(rc_repair_fails, "mode = rc: what can't be repaired is a failed device, for all that is pending"),
        TEST(rc_destroying_fails, "mode = rc: what can't be destroyed is told in the log"),
        TEST(rc_refuses, "mode = rc: flags that a call does not know are refused; hooks for encryption are not used, and the log says so"),
        TEST(rc_answer_data, "mode = rc: data with an accept or a reject reaches the client, whatever is lost"),
        TEST(rc_answer_limit, "mode = rc: ... and a bounded number of answers is kept, where CCI_ENOBUFS changes nothing"),
        TEST(rc_counts_pending, "mode = rc: what is pending is told, wherever it waits, and how long the peer has been silent"),
        TEST(rc_counts_buffers, "mode = rc: messages alone hold receive buffers; a connection that is not ready is opening"),
        TEST(rc_rma_behind_gap, "mode = rc: an RMA whose message would come behind a gap that the program has not heard of is refused too"),
        TEST(rc_mask, "mode = rc: the event about a connection's end comes if it is asked for"),
        TEST(rc_peer_closes, "mode = rc: what is pending ends when the peer closes, and CLOSE is repeated until it is heard"),
        TEST(rc_messages_before_end, "mode = rc: what was sent before a connection's end comes before it"),
        TEST(rc_forgotten, "mode = rc: a peer that has forgotten a connection is not one that has closed it"),
        TEST(rc_silent, "mode = rc: a peer that vanished is noticed though nothing is sent, one that is silent is not lost"),
        TEST(rc_asleep, "mode = rc: a program that calls only at its deadlines notices that its peer has vanished"),
        TEST(rc_many, "mode = rc: ten thousand connections leave nothing behind"),
        TEST(rc_busy, "mode = rc: who can't be served is told so, and served later; a request says who asks"),
        TEST(rc_late_request, "mode = rc: a late copy of a request opens nothing, however many connections have ended since"),
        TEST(rc_turns, "mode = rc: a message is handed over when it comes, and overtakes no other, no completion, no limit"),
        TEST(rc_turns_of_connections, "mode = rc: ... nor the event that its connection is open, and none follows the end of one"),
        TEST(rc_packet_size, "mode = rc: both sides use the smaller of their packet sizes"),
        TEST(rc_inline_sizes, "mode = rc: as many bytes travel inside of work requests as the adapter offers"),
        TEST(rc_unreliable_sizes, "mode = rc: unreliable messages have any size up to the largest; what is longer is dropped"),
        TEST(rc_too_long, "mode = rc: a message longer than the peer had agreed to is dropped, and nothing else is lost"),
        TEST(rc_half_messages, "mode = rc: a queue pair that fails in the middle of a message loses no receive buffer"),
        TEST(rc_half_connected, "mode = rc: ... nor does one of a connection that was not opened in time"),
        TEST(fork_pages, "memory for the hardware has pages of its own"),
        TEST(fork_told, "the library is told that the program may fork, unless the kernel needs that not"),
        TEST(rc_relaxed, "mode = rc: memory is registered for relaxed ordering where it may be"),
        TEST(rc_fences, "mode = rc: ... and what a fence separates is kept apart"),
        TEST(rc_memory_pinned, "mode = rc: an endpoint pins less than 4 MB, and more when it needs it"),
        TEST(rc_memory_short, "mode = rc: ... and goes on with what it has when there is no more"),
        TEST(memory_refused, "the log says how much memory may be locked and how much is needed"),
        TEST(vectors_and_moderation, "endpoints share the adapter's interrupts, which come for several completions"),
        TEST(rc_lid_changes, "mode = rc: a port gets another LID, and connections go on"),
        TEST(rc_idle_lid_changes, "mode = rc: a port gets another LID, and an idle peer that hears of it pairs anew at once"),
        TEST(rc_posts_refused, "mode = rc: what the hardware does not take is not counted, and told with the reason"),
        TEST(posts_refused, "... nor is it in mode = ud"),
        TEST(rc_paths, "mode = rc: each connection has a flow label of its own, unless one is configured"),
        TEST(rc_other_path, "mode = rc: ... and another when its queue pair is made anew"),
        TEST(rc_on_demand, "mode = rc: memory is not pinned where that is asked for and the adapter can, else there is a status"),
        TEST(rc_dmabuf, "mode = rc: another device's memory is registered by its dmabuf, or there is a status"),
        TEST(rc_atomics, "mode = rc: atomics add, swap, and compare and swap, and give what was there"),
        TEST(rc_atomics_refused, "mode = rc: ... where the target's memory allows it, and the target's library knows them"),
        TEST(rc_atomics_once, "mode = rc: ... once, whichever datagram is lost or comes twice, and when the pair is made anew"),
        TEST(rc_atomics_often, "mode = rc: ... however often queues and pairs fail and datagrams are lost"),
        TEST(rc_atomics_fenced, "mode = rc: ... and a fence keeps them and what is behind them apart"),
        TEST(rc_atomics_many, "mode = rc: ... 16 of a connection at once"),
        TEST(rc_atomics_beside_failures, "mode = rc: ... and an RMA that fails behind one fails alone"),
        TEST(rc_atomics_without_buffers, "mode = rc: ... where no side has receive buffers"),
        TEST(rc_atomics_end, "mode = rc: ... and those without an answer end with the connection"),
        TEST(rc_atomics_odd, "mode = rc: ... and frames that lie change nothing"),
        TEST(rc_setups_apart, "mode = rc: traffic goes on while queue pairs are made, so many at once, the others in order"),
        TEST(rc_setups_in_calls, "mode = rc: ... and where the program's calls make them, its other threads go on"),
        TEST(rc_setups_interrupted, "mode = rc: ... and whatever ends meanwhile, nothing is left"),
        TEST(rc_setups_many, "mode = rc: thousands of connections open at once, and each costs what the manual says"),
        TEST(auto_changes, "mode = auto: beyond so many, connections go over datagrams, and all can do the same"),
        TEST(auto_both_say_so, "mode = auto: ... where both sides take them, as soon as one of both has its number"),
        TEST(auto_storm, "mode = auto: ... also of those that ask at once"),
        TEST(auto_strangers, "mode = auto: ... and nobody else sends a client elsewhere"),
        TEST(auto_wakes, "mode = auto: either kind wakes a sleeper, and the device is one"),
        TEST(auto_creation_fails, "mode = auto: an endpoint that can't be made leaves nothing behind"),
        TEST(rc_adapters, "mode = rc: each kind of adapter carries messages and RMA, and loses nothing, or is refused"),
        TEST(rc_buffers_in_batches, "mode = rc: receive buffers go back in batches while there are enough"),
        TEST(rc_no_copy, "mode = rc: with NO_COPY large messages leave registered memory without a copy"),
        TEST(rc_no_copy_deregistered, "mode = rc: ... and arrive once though it is deregistered meanwhile"),
        TEST(address_moves, "a port's address may have another place in its table; without it the device is down"),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("verbs", tests, NULL, NULL);
}

#endif
