/* test_udp.c - what cci_udp.h makes of its configuration: each key that its manual lists does what is said there.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Everything happens on the loopback. What can't be seen from outside, options of a socket, is asked of the socket.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <sys/socket.h>

/* What the system refuses, and why; 0: nothing. */
static int socket_error, bind_error, join_error;
static int refused_family; /* of sockets that can't be opened */
static int refused_bind;   /* of sockets that can be opened, but not bound */

static int opening(int family, int type, int protocol) {
    if (socket_error != 0) {
        errno = socket_error;
        return -1;
    }
    if (refused_family != 0 && family == refused_family) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return socket(family, type, protocol);
}

static int binding(int fd, const struct sockaddr *address, socklen_t size) {
    if (bind_error != 0) {
        errno = bind_error;
        return -1;
    }
    if (refused_bind != 0 && address->sa_family == refused_bind) {
        errno = EPERM;
        return -1;
    }
    return bind(fd, address, size);
}

static int setting(int fd, int level, int name, const void *value, socklen_t size) {
    if (join_error != 0 && size > sizeof(int)) {
        errno = join_error;
        return -1;
    }
    return setsockopt(fd, level, name, value, size);
}

#define socket(family, type, protocol) opening(family, type, protocol)
#define bind(fd, address, size) binding(fd, address, size)
#define setsockopt(fd, level, name, value, size) setting(fd, level, name, value, size)
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"
#undef socket
#undef bind
#undef setsockopt

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <stdlib.h>

#define LO "[it]\ntransport = udp\ninterface = lo\n"

#if CCI__UDP_LINUX
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#endif

static char config[1024], log_text[4096];
static size_t allocated_bytes;
static uint8_t *arena; /* where all memory is taken from, if it is to be seen what of it is touched */
static size_t arena_used;
#define ARENA_BYTES ((size_t)64 << 20)

static void *count_bytes(void *user, size_t size) {
    (void)user;
    allocated_bytes += size;
    if (arena != NULL) {
        uint8_t *memory = arena + arena_used;
        arena_used += (size + 63) / 64 * 64;
        assert_true(arena_used <= ARENA_BYTES);
        return memory;
    }
    return malloc(size);
}

static void release(void *user, void *memory) {
    (void)user;
    if (arena == NULL || (uint8_t *)memory < arena || (uint8_t *)memory >= arena + ARENA_BYTES) {
        free(memory);
    }
}

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
    setup.config = config;
    setup.log = keep_log;
    setup.alloc = count_bytes;
    setup.release = release;
    assert_int_equal(cci_setup(&setup), CCI_SUCCESS);
    return cci_init(CCI_ABI_VERSION, 0, &caps);
}

static int end(void **state) {
    (void)state;
    refused_family = refused_bind = 0;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    return 0;
}

static cci_device_t *device(void) {
    cci_device_t *const *devices;
    assert_int_equal(cci_get_devices(&devices), CCI_SUCCESS);
    assert_non_null(devices[0]);
    return devices[0];
}

static cci_endpoint_t *endpoint_with(const char *line) {
    cci_endpoint_t *endpoint;
    assert_int_equal(configured(LO, line), CCI_SUCCESS);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    return endpoint;
}

static uint32_t number_of(cci_endpoint_t *endpoint, cci_opt_name_t name) {
    uint32_t value = 0;
    assert_int_equal(cci_get_opt(endpoint, name, &value), CCI_SUCCESS);
    return value;
}

/* What the endpoint's socket says about an option; family 4 or 6, 0 for the main one. */
static int socket_option(cci_endpoint_t *endpoint, int family, int level, int name) {
    const cci__dgram_t *ep = (const cci__dgram_t *)(const void *)endpoint;
    const cci__udp_link *link = (const cci__udp_link *)ep->base.handle;
    const cci__udp_socket *from = family == 0 ? &link->socket[0] : link->of_family[0][family == 6];
    int value = -1;
    socklen_t length = sizeof value;
    if (from == NULL) {
        return -1; /* the machine has no such family */
    }
    assert_int_equal(getsockopt(from->fd, level, name, &value, &length), 0);
    return value;
}

static int has_address(cci_endpoint_t *endpoint, const char *part) {
    char *uri;
    int has;
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    has = strstr(uri, part) != NULL;
    free(uri);
    return has;
}

/* Sends a message of the largest size to itself, whatever the configuration is; returns that size. */
static uint32_t talk_to_itself(cci_endpoint_t *endpoint) {
    cci_connection_t *connection = NULL;
    cci_event_t *event;
    uint8_t *bytes = NULL;
    uint32_t size = 0, i;
    char *uri;
    int has_arrived = 0, turns = 0;
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    while (!has_arrived) {
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            assert_true(++turns < 20000000);
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        } else if (event->type == CCI_EVENT_CONNECT) {
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            connection = event->connect.connection;
            size = connection->max_send_size;
            bytes = (uint8_t *)malloc(size);
            assert_non_null(bytes);
            for (i = 0; i < size; i++) {
                bytes[i] = (uint8_t)(i * 7u >> 2);
            }
            assert_int_equal(cci_send(connection, bytes, size, NULL, 0), CCI_SUCCESS);
        } else if (event->type == CCI_EVENT_RECV) {
            assert_int_equal(event->recv.len, size);
            assert_memory_equal(event->recv.ptr, bytes, size);
            has_arrived = 1;
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    free(bytes);
    return size;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void a_key_that_is_not_known_or_a_bad_value_fails_init_and_names_line_and_key(void **state) {
    static const char *const bad[] = {
        "speed = 3",           "port = 0",           "port = 65536",        "port = http",      "mtu = 575",
        "mtu = 65536",         "mtu = 1500x",        "mtu =",               "mtu = -1",         "mtu = 99999999999999999999",
        "max_send_size = 255", "send_buf_count = 0", "recv_buf_count = 0",  "send_timeout = 0", "send_timeout = 4294967296",
        "rcvbuf = 4095",       "sndbuf = 2G",        "progress = fast",     "crc = 2",          "ttl = 0",           "ecn = 2",
        "hops = 256",          "offload = maybe",    "congestion = no-one", "congestion =",     "ip = 300.1.1.1",
        "mac = 1:2",           "interface =",        "recv_buf_count = 1K", "ip = ::1::",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(bad[i], " "), bad[i]);
        if (configured(LO, bad[i]) != CCI_ERROR || strstr(log_text, "config:4: ") == NULL || strstr(log_text, key) == NULL) {
            fail_msg("\"%s\" gave: %s", bad[i], log_text);
        }
        end(NULL);
    }
}

static void the_ends_of_each_range_are_taken(void **state) {
    static const char *const good[] = {
        "port = 65535",         "mtu = 576",           "mtu = 65535",         "max_send_size = 256",    "max_send_size = 65472",
        "send_buf_count = 1",   "recv_buf_count = 1",  "send_timeout = 1",    "send_timeout = 4294967295", "rcvbuf = 4K",
        "sndbuf = 1G",          "progress = poll",     "progress = thread",   "crc = 0",                "crc = 1",
        "ttl = 255",            "hops = 1",            "offload = on",        "offload = off",          "ecn = 0",
        "ecn = 1",
        "send_buf_count = 65536", "recv_buf_count = 65536", "ip = 127.0.0.1", "rcvbuf = 1M",            "ip = ::1",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (configured(LO, good[i]) != CCI_SUCCESS) {
            fail_msg("\"%s\" gave: %s", good[i], log_text);
        }
        end(NULL);
    }
}

static void ip_interface_and_mac_choose_the_device_and_must_agree(void **state) {
    static const char *const down[] = {"interface = none0", "ip = 198.51.100.77", "mac = 02:77:66:55:44:33",
                                       "mac = 01:12:23:34:45"};
    static const char *const contradictions[] = {"ip = 127.0.0.1\nmac = 02:77:66:55:44:33",
                                                 "interface = lo\nip = 198.51.100.77",
                                                 "interface = lo\nmac = 01:12:23:34:45"};
    cci_endpoint_t *endpoint;
    size_t i;
    (void)state;
    assert_int_equal(configured("[it]\ntransport = udp\n", "ip = 127.0.0.1"), CCI_SUCCESS);
    assert_int_equal(device()->up, 1);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_true(has_address(endpoint, "udp://127.0.0.1:"));
    talk_to_itself(endpoint);
    end(NULL);
    for (i = 0; i < sizeof down / sizeof down[0]; i++) {
        assert_int_equal(configured("[it]\ntransport = udp\n", down[i]), CCI_SUCCESS);
        assert_int_equal(device()->up, 0);
        assert_int_equal(cci_create_endpoint(device(), 0, &endpoint, NULL), CCI_ENODEV);
        end(NULL);
    }
    for (i = 0; i < sizeof contradictions / sizeof contradictions[0]; i++) {
        assert_int_equal(configured("[it]\ntransport = udp\n", contradictions[i]), CCI_ERROR);
        assert_non_null(strstr(log_text, "config:1: "));
        end(NULL);
    }
}

static void endpoints_that_name_no_service_get_the_configured_port(void **state) {
    cci_endpoint_t *endpoint, *other;
    char line[32];
    int port = 20000 + (int)getpid() % 20000, status;
    (void)state;
    do { /* somebody else may have it */
        port++;
        snprintf(line, sizeof line, "port = %d", port);
        assert_int_equal(configured(LO, line), CCI_SUCCESS);
        status = cci_create_endpoint(NULL, 0, &endpoint, NULL);
        if (status != CCI_SUCCESS) {
            end(NULL);
        }
    } while (status == CCI_EBUSY && port < 60000);
    assert_int_equal(status, CCI_SUCCESS);
    snprintf(line, sizeof line, ":%d", port);
    assert_true(has_address(endpoint, line));
    assert_int_equal(cci_create_endpoint(NULL, 0, &other, NULL), CCI_EBUSY);
}

static void mtu_limits_the_datagrams_and_so_the_messages(void **state) {
    static const uint32_t mtus[] = {576, 1280, 1500, 9000, 65535};
    uint32_t before = 0;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof mtus / sizeof mtus[0]; i++) {
        char line[32];
        cci_endpoint_t *endpoint;
        uint32_t size;
        snprintf(line, sizeof line, "mtu = %u", (unsigned)mtus[i]);
        endpoint = endpoint_with(line);
        size = talk_to_itself(endpoint);
        assert_true(size < mtus[i] && size > mtus[i] - 150 && size > before);
        assert_int_equal(device()->max_send_size, size);
        before = size;
        end(NULL);
    }
}

static void max_send_size_may_be_more_than_a_datagram_takes_or_less(void **state) {
    (void)state;
    assert_int_equal(talk_to_itself(endpoint_with("mtu = 1500\nmax_send_size = 65472")), 65472);
    end(NULL);
    assert_int_equal(talk_to_itself(endpoint_with("mtu = 576\nmax_send_size = 65472")), 65472);
    end(NULL);
    assert_int_equal(talk_to_itself(endpoint_with("max_send_size = 256")), 256);
    assert_int_equal(device()->max_send_size, 256);
}

static void counts_and_send_timeout_are_those_of_new_endpoints(void **state) {
    cci_endpoint_t *endpoint = endpoint_with("send_buf_count = 123\nrecv_buf_count = 234\nsend_timeout = 4567890");
    (void)state;
    assert_int_equal(number_of(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT), 123);
    assert_int_equal(number_of(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT), 234);
    assert_int_equal(number_of(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT), 4567890);
    end(NULL);
    endpoint = endpoint_with("send_buf_count = 1\nrecv_buf_count = 1");
    talk_to_itself(endpoint);
}

static void rcvbuf_and_sndbuf_are_the_sockets(void **state) {
    cci_endpoint_t *endpoint = endpoint_with("rcvbuf = 32K\nsndbuf = 48K");
    int small_in = socket_option(endpoint, 0, SOL_SOCKET, SO_RCVBUF);
    int small_out = socket_option(endpoint, 0, SOL_SOCKET, SO_SNDBUF);
    (void)state;
    assert_true(small_in >= 32 * 1024 && small_out >= 48 * 1024);
    end(NULL);
    endpoint = endpoint_with("rcvbuf = 128K\nsndbuf = 160K");
    assert_true(socket_option(endpoint, 0, SOL_SOCKET, SO_RCVBUF) > small_in);
    assert_true(socket_option(endpoint, 0, SOL_SOCKET, SO_SNDBUF) > small_out);
    talk_to_itself(endpoint);
}

static void ttl_and_hops_are_the_time_to_live_of_both_families_and_of_multicast(void **state) {
    static const char *const lines[2] = {"ttl = 37", "hops = 37"};
    int i, v6;
    (void)state;
    for (i = 0; i < 2; i++) {
        cci_endpoint_t *endpoint = endpoint_with(lines[i]);
        assert_int_equal(socket_option(endpoint, 4, IPPROTO_IP, IP_TTL), 37);
        assert_int_equal(socket_option(endpoint, 4, IPPROTO_IP, IP_MULTICAST_TTL), 37);
        v6 = socket_option(endpoint, 6, IPPROTO_IPV6, IPV6_UNICAST_HOPS);
        assert_true(v6 == 37 || v6 == -1);
        v6 = socket_option(endpoint, 6, IPPROTO_IPV6, IPV6_MULTICAST_HOPS);
        assert_true(v6 == 37 || v6 == -1);
        talk_to_itself(endpoint);
        end(NULL);
    }
    assert_int_equal(socket_option(endpoint_with(""), 4, IPPROTO_IP, IP_MULTICAST_TTL), 1);
}

static void without_offload_everything_works(void **state) {
    (void)state;
    talk_to_itself(endpoint_with("offload = off"));
    end(NULL);
    talk_to_itself(endpoint_with("offload = off\nmtu = 1500\nmax_send_size = 65472"));
    end(NULL);
    talk_to_itself(endpoint_with("crc = 1\nprogress = thread"));
}

static void a_congestion_control_is_known_by_its_name(void **state) {
    static const char *const names[] = {"cubic", "discern", "newreno", "fixed"};
    char line[40];
    size_t i;
    (void)state;
    assert_string_equal(((const cci__dgram_t *)(const void *)endpoint_with(""))->pool.congestion->name, "cubic");
    for (i = 0; i < 4; i++) {
        cci_endpoint_t *endpoint;
        end(NULL);
        snprintf(line, sizeof line, "congestion = %s", names[i]);
        endpoint = endpoint_with(line);
        assert_string_equal(((const cci__dgram_t *)(const void *)endpoint)->pool.congestion->name, names[i]);
        talk_to_itself(endpoint);
    }
}

/* What an endpoint takes from the hook, in megabytes. */
static size_t megabytes_with(const char *line) {
    cci_endpoint_t *endpoint;
    size_t before;
    assert_int_equal(configured(LO, line), CCI_SUCCESS);
    before = allocated_bytes;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    end(NULL);
    return (allocated_bytes - before) / 1000000;
}

static void an_endpoint_without_traffic_takes_no_more_memory_than_the_manual_says(void **state) {
    (void)state;
    assert_in_range(megabytes_with(""), 0, 2);
    assert_in_range(megabytes_with("mtu = 1500\noffload = off"), 0, 1);
    assert_in_range(megabytes_with("recv_buf_count = 65536\nsend_buf_count = 65536"), 0, 2);
    assert_in_range(megabytes_with("memory = 64K\nrecv_buf_count = 64\nsend_buf_count = 64"), 0, 2);
}

#if CCI__UDP_LINUX
/* Bytes of the arena's pages that something was written to. */
static size_t touched_bytes(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), i, touched = 0;
    unsigned char *there = (unsigned char *)calloc(ARENA_BYTES / page, 1);
    assert_non_null(there);
    assert_int_equal(mincore(arena, ARENA_BYTES, there), 0);
    for (i = 0; i < ARENA_BYTES / page; i++) {
        touched += (there[i] & 1) * page;
    }
    free(there);
    return touched;
}

static void an_endpoint_with_defaults_touches_less_than_a_megabyte(void **state) {
    cci_endpoint_t *endpoint;
    cci_event_t *event;
    size_t before, touched;
    (void)state;
    arena = (uint8_t *)mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(arena != MAP_FAILED);
    arena_used = 0;
    assert_int_equal(configured(LO, ""), CCI_SUCCESS);
    before = touched_bytes();
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_event(endpoint, &event), CCI_EAGAIN);
    touched = touched_bytes() - before;
    print_message("%lu bytes of %lu\n", (unsigned long)touched, (unsigned long)arena_used);
    end(NULL);
    munmap(arena, ARENA_BYTES);
    arena = NULL;
    assert_in_range(touched, 100000, 1000000);
}

enum { BURST = 200 };

/* Enough messages at once that all that the kernel offers for many is tried. */
static cci_connection_t *burst_to_itself(cci_endpoint_t *endpoint) {
    cci_connection_t *connection = NULL;
    cci_event_t *event;
    uint32_t i, sent = 0, received = 0;
    uint8_t bytes[1000];
    char *uri;
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri), CCI_SUCCESS);
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    free(uri);
    alarm(60);
    while (received < 20 * BURST) {
        for (i = 0; connection != NULL && received == sent && i < BURST; i++) {
            memset(bytes, (int)(sent + i), sizeof bytes);
            assert_int_equal(cci_send(connection, bytes, sizeof bytes, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
        }
        sent += connection != NULL && received == sent ? BURST : 0;
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT_REQUEST) {
            assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
        } else if (event->type == CCI_EVENT_CONNECT) {
            connection = event->connect.connection;
        } else if (event->type == CCI_EVENT_RECV) {
            memset(bytes, (int)received++, sizeof bytes);
            assert_int_equal(event->recv.len, sizeof bytes);
            assert_memory_equal(event->recv.ptr, bytes, sizeof bytes);
        }
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    }
    alarm(0);
    return connection;
}

/* Refuses a call with an error from now on; of setsockopt one option of a level alone. 0: the system has no such filters. */
static int lose(long call, int level, int option, int error) {
    const union {
        uint32_t word;
        uint8_t bytes[4];
    } one = {1};
    const uint32_t argument = (uint32_t)offsetof(struct seccomp_data, args) + (one.bytes[0] ? 0 : 4);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument + 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)level, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument + 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)option, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program;
    if (option == 0) { /* whatever the arguments are */
        code[1].jf = 1;
        code[2] = code[6];
        code[3] = code[7];
    }
    program.len = sizeof code / sizeof code[0];
    program.filter = code;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const struct older {
    const char *lacks;
    long call;
    int level, option, error;
} olders[] = {
    {"sendmmsg", SYS_sendmmsg, 0, 0, ENOSYS},
    {"recvmmsg", SYS_recvmmsg, 0, 0, ENOSYS},
#ifdef SYS_epoll_pwait2
    {"epoll_pwait2", SYS_epoll_pwait2, 0, 0, ENOSYS},
#endif
#ifdef SYS_setsockopt
    {"UDP_SEGMENT", SYS_setsockopt, CCI__UDP_SOL_UDP, CCI__UDP_SEGMENT, ENOPROTOOPT},
    {"UDP_GRO", SYS_setsockopt, CCI__UDP_SOL_UDP, CCI__UDP_GRO, ENOPROTOOPT},
    {"IP_TOS", SYS_setsockopt, IPPROTO_IP, CCI__UDP_IP_TOS, ENOPROTOOPT},
    {"IP_RECVTOS", SYS_setsockopt, IPPROTO_IP, CCI__UDP_IP_RECVTOS, ENOPROTOOPT},
#endif
};
static const struct older *lives_on; /* this process does */

/* In a process of its own: the link finds out and does without. */
static void all_works_without_it(void **state) {
    cci_endpoint_t *endpoint = endpoint_with("mtu = 1500\nprogress = poll\necn = 1");
    const cci__udp_link *link = (const cci__udp_link *)((const cci__dgram_t *)(const void *)endpoint)->base.handle;
    (void)state;
    (void)burst_to_itself(endpoint);
    assert_int_equal(link->mmsg, strstr(lives_on->lacks, "mmsg") == NULL);
    assert_int_equal(link->gso, strcmp(lives_on->lacks, "UDP_SEGMENT") != 0);
    assert_int_equal(link->gro, strcmp(lives_on->lacks, "UDP_GRO") != 0);
    assert_int_equal(link->ecn, strstr(lives_on->lacks, "TOS") == NULL);
    end(NULL);
    endpoint = endpoint_with("mtu = 1500\nprogress = thread");
    link = (const cci__udp_link *)((const cci__dgram_t *)(const void *)endpoint)->base.handle;
    (void)burst_to_itself(endpoint);
#ifndef CCI_NO_THREADS
    while (CCI__UDP_LOAD(link->waiter.has_pwait2) != (strcmp(lives_on->lacks, "epoll_pwait2") != 0)) {
        (void)usleep(1000); /* the thread has not slept yet */
    }
#endif
}

static void what_an_older_kernel_lacks_is_done_without(void **state) {
    size_t i;
    (void)state;
    for (i = 0; i < sizeof olders / sizeof olders[0]; i++) {
        int status = -1;
        pid_t pid;
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* who counts tests counts this one once */
            execl("/proc/self/exe", "test_udp", olders[i].lacks, (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status == 77 << 8) {
            print_message("the system does not let processes filter their calls\n");
            skip();
        }
        if (status != 0) {
            fail_msg("without %s: status 0x%x", olders[i].lacks, (unsigned)status);
        }
    }
}
#endif

static const cci__udp_link *link_of(cci_endpoint_t *endpoint) {
    return (const cci__udp_link *)((const cci__dgram_t *)(const void *)endpoint)->base.handle;
}

/* Has the loopback an IPv6 address? */
static int has_v6(void) {
    struct sockaddr_in6 address;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), has;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_addr.s6_addr[15] = 1;
    has = fd >= 0 && bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address) == 0;
    if (fd >= 0) close(fd);
    return has;
}

static uint16_t port_of(const cci__udp_socket *from) {
    cci__udp_sockaddr own;
    socklen_t size = sizeof own;
    assert_int_equal(getsockname(from->fd, &own.any, &size), 0);
    assert_int_equal(own.any.sa_family, from->family == 4 ? AF_INET : AF_INET6);
    return from->family == 4 ? own.v4.sin_port : own.v6.sin6_port;
}

#if CCI__UDP_LINUX
/* Links of two endpoints, over both families, one datagram at a time and many that the system puts together. */
static void a_datagram_brings_the_codepoint_that_it_was_sent_with(void **state) {
    cci_endpoint_t *ends[2];
    cci__udp_link *from, *to;
    int turn, v6;
    (void)state;
    ends[0] = endpoint_with("ecn = 1");
    assert_int_equal(cci_create_endpoint(NULL, 0, &ends[1], NULL), CCI_SUCCESS);
    from = (cci__udp_link *)((cci__dgram_t *)(void *)ends[0])->base.handle;
    to = (cci__udp_link *)((cci__dgram_t *)(void *)ends[1])->base.handle;
    assert_int_equal(((cci__dgram_t *)(void *)ends[0])->base.info.ecn, 1);
    for (turn = 0; turn < 80; turn++) {
        static uint8_t bytes[64], memory[16][65536];
        cci_link_addr_t address;
        cci_link_tx_t tx[16];
        cci_link_rx_t rx[16];
        int count = turn < 20 ? 1 : 16, i, got, tries = 0;
        uint32_t came = 0, codepoint = turn % 3 ? 2 : 0;
        v6 = turn / 3 % 2;
        if (to->of_family[0][v6] == NULL) continue;
        cci__udp_make_addr(&address, v6 ? 6 : 4, v6 ? to->interface_.v6 : to->interface_.v4, ntohs(port_of(to->of_family[0][v6])),
                           v6 ? to->interface_.v6_scope : 0);
        memset(tx, 0, sizeof tx);
        for (i = 0; i < count; i++) {
            tx[i].to = &address;
            tx[i].length = tx[i].piece[0].length = sizeof bytes;
            tx[i].piece[0].data = bytes;
            tx[i].piece_count = 1;
            tx[i].codepoint = codepoint;
            rx[i].data = memory[i];
            rx[i].capacity = sizeof memory[i];
        }
        assert_int_equal(cci__udp_send(from, tx, count), count);
        while (came < (uint32_t)count * sizeof bytes) {
            assert_true(++tries < 20000000);
            got = cci__udp_receive(to, rx, count);
            for (i = 0; i < got; i++) {
                came += rx[i].length;
                assert_int_equal(rx[i].codepoint, codepoint);
            }
        }
    }
    assert_int_equal(to->socket[0].coalesces, 1);
    end(NULL);
    ends[0] = endpoint_with(""); /* without being asked: none */
    assert_int_equal(((cci__dgram_t *)(void *)ends[0])->base.info.ecn, 0);
    assert_int_equal(socket_option(ends[0], 4, IPPROTO_IP, CCI__UDP_IP_RECVTOS), 0);
}

/* Both ends of a connection count, and the sender is told. */
static void a_connection_marks_and_counts_what_it_sends_when_asked_to(void **state) {
    static const char *const lines[] = {"ecn = 1", "mtu = 1500\necn = 1", "ecn = 0"};
    uint32_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        cci_connection_t *connection = burst_to_itself(endpoint_with(lines[i]));
        cci_rel_t *rel = &((cci__dconn_t *)(void *)connection)->hot->rel;
        assert_int_equal(rel->codepoint, i < 2 ? 2 : 0);
        assert_int_equal(rel->pool->ecn_at > 0, i < 2);
        if (i < 2) {
            assert_true(cci__rel_ecn(rel)->total > 0);
            assert_int_equal(cci__rel_ecn(rel)->marked, 0);
        }
        end(NULL);
    }
}
#endif

/* Whichever address the device is chosen by: peers of the other family are reached too, from the same port. */
static void both_families_have_a_socket_whichever_is_the_main_one(void **state) {
    static const char *const lines[] = {"ip = 127.0.0.1", "ip = ::1"};
    size_t i;
    (void)state;
    if (!has_v6()) {
        print_message("the loopback has no IPv6 address\n");
        skip();
    }
    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cci_endpoint_t *endpoint;
        const cci__udp_link *link;
        assert_int_equal(configured("[it]\ntransport = udp\n", lines[i]), CCI_SUCCESS);
        assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
        assert_true(has_address(endpoint, i == 0 ? "udp://127.0.0.1:" : "udp://[::1]:"));
        link = link_of(endpoint);
        assert_non_null(link->of_family[0][0]);
        assert_non_null(link->of_family[0][1]);
        assert_int_equal(link->of_family[0][0]->family, 4);
        assert_int_equal(link->of_family[0][1]->family, 6);
        assert_int_equal(link->socket[0].family, i == 0 ? 4 : 6);
        assert_int_equal(port_of(link->of_family[0][0]), port_of(link->of_family[0][1]));
        talk_to_itself(endpoint);
        end(NULL);
    }
}

static void without_the_other_family_all_else_works(void **state) {
    cci_endpoint_t *endpoint;
    (void)state;
    assert_int_equal(configured(LO, ""), CCI_SUCCESS);
    refused_family = AF_INET6;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_null(link_of(endpoint)->of_family[0][1]);
    assert_true(link_of(endpoint)->socket[1].fd < 0);
    assert_true(cci__udp_is_running(link_of(endpoint), &link_of(endpoint)->interface_));
    talk_to_itself(endpoint);
}

#if CCI__UDP_LINUX
/* Where the system does not tell of changes, the link looks for itself, and nothing is left open. */
static void without_news_of_the_interface_all_else_works(void **state) {
    cci_endpoint_t *endpoint;
    int next = dup(0), i;
    (void)state;
    assert_true(next >= 0 && close(next) == 0);
    assert_int_equal(configured(LO, ""), CCI_SUCCESS);
    for (i = 0; i < 2; i++) {
        if (i == 0) refused_bind = AF_NETLINK;
        if (i == 1) refused_family = AF_NETLINK;
        assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
        assert_int_equal(link_of(endpoint)->waiter.netlink, -1);
        talk_to_itself(endpoint);
        assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    }
    i = dup(0); /* the lowest that is free */
    assert_int_equal(i, next);
    assert_int_equal(close(i), 0);
}
#endif

/* Whatever the system says, the program gets a status that tells of it, and never another that has the errno's number. */
static void assert_is_told(int error, int status) {
    assert_int_not_equal(status, CCI_SUCCESS);
    assert_non_null(cci_strerror(NULL, (cci_status_t)status));
    assert_true(status == cci_status_of_errno(error) || (error == EADDRNOTAVAIL && status == CCI_ENODEV));
}

static void what_the_system_refuses_is_told_by_a_status_of_ours(void **state) {
    cci_endpoint_t *endpoint;
    int error;
    (void)state;
    assert_int_equal(configured(LO, ""), CCI_SUCCESS);
    for (error = 1; error < 134; error++) {
        socket_error = error;
        assert_is_told(error, cci_create_endpoint(NULL, 0, &endpoint, NULL));
        socket_error = 0;
        bind_error = error;
        assert_is_told(error, cci_create_endpoint(NULL, 0, &endpoint, NULL));
        bind_error = 0;
        log_text[0] = '\0';
    }
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    for (error = 1; error < 134; error++) {
        join_error = error;
        assert_is_told(error, cci_connect(endpoint, "udp://224.0.0.77:5000", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL));
        join_error = 0;
        log_text[0] = '\0';
    }
}

/* Connects; the next event must be the end of that. */
static void connect_in(cci_endpoint_t *endpoint, const char *uri, long ms) {
    struct timeval timeout;
    timeout.tv_sec = ms / 1000;
    timeout.tv_usec = ms % 1000 * 1000;
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &timeout), CCI_SUCCESS);
}

/* The URI of an endpoint that was here a moment ago. */
static const char *deserted(void) {
    static char uri[128];
    cci_endpoint_t *endpoint;
    char *text = NULL;
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
    assert_int_equal(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &text), CCI_SUCCESS);
    snprintf(uri, sizeof uri, "%s", text);
    free(text);
    assert_int_equal(cci_destroy_endpoint(endpoint), CCI_SUCCESS);
    return uri;
}

static int times(const char *text, const char *words) {
    int count = 0;
    for (text = strstr(text, words); text != NULL; text = strstr(text + 1, words)) count++;
    return count;
}

static void an_address_where_nobody_receives_is_named_in_the_log_once_and_asked_to_the_end(void **state) {
    cci_endpoint_t *endpoint = endpoint_with(""); /* [4.4.5.3] the status stays what the manual says */
    cci_event_t *event;
    const char *uri = deserted();
    (void)state;
    connect_in(endpoint, uri, 1500);
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
    }
    assert_int_equal(event->type, CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_ETIMEDOUT);
    assert_int_equal(cci_return_event(event), CCI_SUCCESS);
    assert_int_equal(times(log_text, "connection refused: nobody receives at "), 1);
    assert_non_null(strstr(log_text, uri + strlen("udp://")));
}

/* Each in its turn, soon after the others. */
static void each_address_where_nobody_receives_is_named_in_the_log(void **state) {
    cci_endpoint_t *endpoint = endpoint_with("");
    char uris[4][128];
    int i, ended = 0;
    (void)state;
    for (i = 0; i < 4; i++) {
        snprintf(uris[i], sizeof uris[i], "%s", deserted());
        connect_in(endpoint, uris[i], 6000);
    }
    while (ended < 4) {
        cci_event_t *event;
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) continue;
        assert_int_equal(cci_return_event(event), CCI_SUCCESS);
        ended++;
    }
    for (i = 0; i < 4; i++) assert_non_null(strstr(log_text, uris[i] + strlen("udp://")));
}

static void a_server_that_starts_after_clients_were_refused_is_found(void **state) {
    cci_endpoint_t *endpoint = endpoint_with(""), *server = NULL;
    cci_event_t *event;
    const char *uri = deserted();
    int open = 0;
    (void)state;
    connect_in(endpoint, uri, 60000);
    while (times(log_text, "connection refused") == 0) assert_int_equal(cci_get_event(endpoint, &event), CCI_EAGAIN);
    assert_int_equal(cci_create_endpoint_at(device(), strrchr(uri, ':') + 1, 0, &server, NULL), CCI_SUCCESS);
    while (open < 2) {
        if (cci_get_event(server, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                assert_int_equal(cci_accept(event, NULL), CCI_SUCCESS);
            } else {
                assert_int_equal(event->type, CCI_EVENT_ACCEPT);
                open++;
            }
            assert_int_equal(cci_return_event(event), CCI_SUCCESS);
        }
        if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            assert_int_equal(event->type, CCI_EVENT_CONNECT);
            assert_int_equal(event->connect.status, CCI_SUCCESS);
            open++;
            assert_int_equal(cci_return_event(event), CCI_SUCCESS);
        }
    }
}

/* The socket that hears of refusals is closed after a while. */
static void what_hears_of_refusals_does_not_stay(void **state) {
    cci_endpoint_t *endpoint = endpoint_with("");
    const cci__udp_link *link = (const cci__udp_link *)((const cci__dgram_t *)(const void *)endpoint)->base.handle;
    cci_event_t *event;
    (void)state;
    connect_in(endpoint, deserted(), 500);
    while (times(log_text, "connection refused") == 0) assert_int_equal(cci_get_event(endpoint, &event), CCI_EAGAIN);
    assert_true(link->scout.fd >= 0);
    while (link->scout.fd >= 0)
        if (cci_get_event(endpoint, &event) == CCI_SUCCESS) assert_int_equal(cci_return_event(event), CCI_SUCCESS);
}

/* The lowest descriptor that is free: with that as their limit a program can open no more. */
static rlim_t next_descriptor(void) {
    int fd = dup(0);
    assert_true(fd >= 0 && close(fd) == 0);
    return (rlim_t)fd;
}

static void where_descriptors_are_lacking_the_status_is_no_memory_whatever_they_were_for(void **state) {
    struct rlimit enough, few;
    cci_endpoint_t *endpoint;
    cci_os_handle_t fd;
    int status, refusals = 0;
    (void)state;
    assert_int_equal(configured(LO, ""), CCI_SUCCESS);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &enough), 0);
    for (few = enough, few.rlim_cur = next_descriptor();; few.rlim_cur++, refusals++) {
        log_text[0] = '\0';
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        status = cci_create_endpoint(NULL, 0, &endpoint, &fd);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &enough), 0);
        if (status == CCI_SUCCESS) break;
        assert_int_equal(status, CCI_ENOMEM);
        assert_non_null(strstr(log_text, strerror(EMFILE)));
    }
    assert_in_range(refusals, 3, 20);
    few.rlim_cur = next_descriptor();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    status = cci_connect(endpoint, "udp://localhost:9", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &enough), 0);
    assert_int_equal(status, CCI_ENOMEM);
    assert_non_null(strstr(log_text, "looking up a host: "));
    assert_int_equal(cci_connect(endpoint, "udp://localhost:9", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, end)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(a_key_that_is_not_known_or_a_bad_value_fails_init_and_names_line_and_key),
        TEST(the_ends_of_each_range_are_taken),
        TEST(ip_interface_and_mac_choose_the_device_and_must_agree),
        TEST(endpoints_that_name_no_service_get_the_configured_port),
        TEST(mtu_limits_the_datagrams_and_so_the_messages),
        TEST(max_send_size_may_be_more_than_a_datagram_takes_or_less),
        TEST(counts_and_send_timeout_are_those_of_new_endpoints),
        TEST(rcvbuf_and_sndbuf_are_the_sockets),
        TEST(ttl_and_hops_are_the_time_to_live_of_both_families_and_of_multicast),
        TEST(without_offload_everything_works),
        TEST(a_congestion_control_is_known_by_its_name),
        TEST(an_endpoint_without_traffic_takes_no_more_memory_than_the_manual_says),
        TEST(both_families_have_a_socket_whichever_is_the_main_one),
        TEST(without_the_other_family_all_else_works),
#if CCI__UDP_LINUX
        TEST(without_news_of_the_interface_all_else_works),
        TEST(a_datagram_brings_the_codepoint_that_it_was_sent_with),
        TEST(a_connection_marks_and_counts_what_it_sends_when_asked_to),
#endif
        TEST(what_the_system_refuses_is_told_by_a_status_of_ours),
        TEST(where_descriptors_are_lacking_the_status_is_no_memory_whatever_they_were_for),
        TEST(an_address_where_nobody_receives_is_named_in_the_log_once_and_asked_to_the_end),
        TEST(each_address_where_nobody_receives_is_named_in_the_log),
        TEST(a_server_that_starts_after_clients_were_refused_is_found),
        TEST(what_hears_of_refusals_does_not_stay),
#if CCI__UDP_LINUX
        TEST(an_endpoint_with_defaults_touches_less_than_a_megabyte),
        TEST(what_an_older_kernel_lacks_is_done_without),
#endif
    };
#if CCI__UDP_LINUX
    const struct CMUnitTest elsewhere[] = {TEST(all_works_without_it)};
    size_t i;
    for (i = 0; argc > 1 && i < sizeof olders / sizeof olders[0]; i++) {
        if (strcmp(argv[1], olders[i].lacks) == 0) {
            lives_on = &olders[i];
            return lose(lives_on->call, lives_on->level, lives_on->option, lives_on->error)
                       ? cmocka_run_group_tests_name(argv[1], elsewhere, NULL, NULL)
                       : 77;
        }
    }
#else
    (void)argc, (void)argv;
#endif
    return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
