/* doca.c - the document of the DOCA Comm Channel, sentence by sentence, over examples/doca_comm_channel.h.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     doca udp|sisci|verbs [PART]      all tests, or those whose sentence contains PART
 *
 * What stands in brackets is the function whose section of the document the sentence is from, without doca_comm_channel_.
 * Host and DPU are two processes: the test is the one, and forks the other, which does what its function says and ends
 * with status 0. They agree on what comes next by single bytes over a pair of sockets.
 */
#define _GNU_SOURCE 1

static unsigned silence_ms, connect_ms; /* long, except where a test waits for them to be over */
#define DOCA_COMM_CHANNEL_SILENCE_MS silence_ms
#define DOCA_COMM_CHANNEL_CONNECT_MS connect_ms
#define DOCA_COMM_CHANNEL_FLUSH_MS 20000
#define DOCA_COMM_CHANNEL_IMPLEMENTATION
#include <stdlib.h>

/* Memory that is there until it is not. */
static long allocations_left = -1;

static int may_allocate(void) {
    return allocations_left < 0 || (allocations_left > 0 && allocations_left-- > 0);
}

static void *test_malloc(size_t size) {
    return may_allocate() ? malloc(size) : NULL;
}

static void *test_calloc(size_t count, size_t size) {
    return may_allocate() ? calloc(count, size) : NULL;
}

#define malloc test_malloc
#define calloc test_calloc
#include "examples/doca_comm_channel.h"
#undef malloc
#undef calloc

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

typedef struct doca_comm_channel_ep_t ep_t;
typedef struct doca_comm_channel_addr_t addr_t;

enum { PATIENCE_MS = 60000, SOON_MS = 500, LARGEST = 65535 };

static char folder[] = "build/tests/doca-XXXXXX", config[64];
static const char *transport;
static int is_child, control = -1; /* control: of the child, to its parent */
static char service[128];                  /* of the test that runs */

static int is_udp(void) {
    return strcmp(transport, "udp") == 0;
}

/* ---- failing ---------------------------------------------------------------------------------------------------------- */

static void must(int holds, const char *what, int line) {
    if (holds) {
        return;
    }
    if (is_child) {
        fprintf(stderr, "line %d, in the other process: %s\n", line, what);
        _exit(1);
    }
    fail_msg("line %d: %s", line, what);
}

#define MUST(what) must(!!(what), #what, __LINE__)

static void gives(doca_error_t wanted, doca_error_t got, const char *call, int line) {
    char text[300];
    snprintf(text, sizeof text, "%s gives %s instead of %s", call, doca_get_error_name(got), doca_get_error_name(wanted));
    must(wanted == got, text, line);
}

#define GIVES(error, call) gives(DOCA_##error, (call), #call, __LINE__)
#define OK(call) GIVES(SUCCESS, call)
#define INVALID(call) GIVES(ERROR_INVALID_VALUE, call)

/* ---- two processes -------------------------------------------------------------------------------------------------- */

typedef struct other {
    pid_t pid;
    int control;
} other_t;

static void say(int to, char byte) {
    MUST(write(to, &byte, 1) == 1);
}

static char hear_any(int from) {
    struct pollfd sleeper = {from, POLLIN, 0};
    char byte = 0;
    MUST(poll(&sleeper, 1, PATIENCE_MS) == 1);
    MUST(read(from, &byte, 1) == 1);
    return byte;
}

static void hear(int from, char byte) {
    MUST(hear_any(from) == byte);
}

static other_t start(void (*does)(void)) {
    int ends[2];
    other_t other;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    fflush(stdout);
    other.pid = fork();
    MUST(other.pid >= 0);
    if (other.pid == 0) {
        is_child = 1;
        control = ends[1];
        close(ends[0]);
        does();
        exit(0);
    }
    close(ends[1]);
    other.control = ends[0];
    return other;
}

static int end_of(other_t other) {
    int status = -1;
    MUST(waitpid(other.pid, &status, 0) == other.pid);
    close(other.control);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void finish(other_t other) {
    int status = end_of(other);
    if (status != 0) {
        print_message("the other process ended with %d\n", status);
    }
    MUST(status == 0);
}

/* ---- one side ----------------------------------------------------------------------------------------------------------- */

static struct doca_dev *open_device(void) {
    struct doca_devinfo **list;
    struct doca_dev *dev;
    uint32_t count;
    OK(doca_devinfo_list_create(&list, &count));
    MUST(count > 0 && list[count] == NULL);
    OK(doca_dev_open(list[0], &dev));
    OK(doca_devinfo_list_destroy(list));
    return dev;
}

static struct doca_dev_rep *open_rep(struct doca_dev *dev) {
    struct doca_devinfo_rep **list;
    struct doca_dev_rep *rep;
    uint32_t count;
    OK(doca_devinfo_rep_list_create(dev, DOCA_DEV_REP_FILTER_ALL, &list, &count));
    MUST(count == 1);
    OK(doca_dev_rep_open(list[0], &rep));
    OK(doca_devinfo_rep_list_destroy(list));
    return rep;
}

static ep_t *make(void) {
    ep_t *ep;
    OK(doca_comm_channel_ep_create(&ep));
    OK(doca_comm_channel_ep_set_device(ep, open_device()));
    return ep;
}

static ep_t *make_service(void) {
    ep_t *ep = make();
    OK(doca_comm_channel_ep_set_device_rep(ep, open_rep(ep->dev)));
    return ep;
}

static void unmake(ep_t *ep) {
    struct doca_dev *dev;
    struct doca_dev_rep *rep;
    OK(doca_comm_channel_ep_get_device(ep, &dev));
    OK(doca_comm_channel_ep_get_device_rep(ep, &rep));
    OK(doca_comm_channel_ep_destroy(ep));
    if (rep != NULL) {
        OK(doca_dev_rep_close(rep));
    }
    OK(doca_dev_close(dev));
}

static ep_t *listening(void) {
    ep_t *ep = make_service();
    OK(doca_comm_channel_ep_listen(ep, service));
    return ep;
}

static ep_t *connected(addr_t **peer) {
    ep_t *ep = make();
    OK(doca_comm_channel_ep_connect(ep, service, peer));
    return ep;
}

static int is_readable(int fd, int wait_ms) {
    struct pollfd sleeper = {fd, POLLIN, 0};
    return poll(&sleeper, 1, wait_ms) == 1;
}

/* Sleeps on the armed channel; a side that sleeps for ever has lost something. */
static void sleep_on(ep_t *ep, int sends) {
    doca_event_channel_t channel;
    if (sends) {
        OK(doca_comm_channel_ep_get_event_channel(ep, &channel, NULL));
        OK(doca_comm_channel_ep_event_handle_arm_send(ep));
    } else {
        OK(doca_comm_channel_ep_get_event_channel(ep, NULL, &channel));
        OK(doca_comm_channel_ep_event_handle_arm_recv(ep));
    }
    MUST(is_readable(channel, PATIENCE_MS));
}

static doca_error_t receive(ep_t *ep, void *bytes, size_t *length, addr_t **peer) {
    doca_error_t result;
    size_t size = *length;
    while ((result = doca_comm_channel_ep_recvfrom(ep, bytes, length, 0, peer)) == DOCA_ERROR_AGAIN) {
        *length = size;
        sleep_on(ep, 0);
    }
    return result;
}

static doca_error_t transmit(ep_t *ep, const void *bytes, size_t length, addr_t *peer) {
    doca_error_t result;
    while ((result = doca_comm_channel_ep_sendto(ep, bytes, length, 0, peer)) == DOCA_ERROR_AGAIN) {
        sleep_on(ep, 1);
    }
    return result;
}

static void fill(uint8_t *bytes, size_t length, uint32_t seed) {
    size_t i;
    for (i = 0; i < length; i++) {
        bytes[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
    }
}

/* A message that says which one it is, and is as long as that makes it. */
static size_t numbered(uint8_t *bytes, uint32_t number, size_t longest) {
    size_t length = 4 + (size_t)number * 7919 % (longest - 3);
    fill(bytes, length, number);
    memcpy(bytes, &number, 4);
    return length;
}

static void expect_numbered(ep_t *ep, uint32_t number, size_t longest, addr_t **peer) {
    static uint8_t got[LARGEST], wanted[LARGEST];
    size_t length = sizeof got;
    OK(receive(ep, got, &length, peer));
    MUST(length == numbered(wanted, number, longest));
    MUST(memcmp(got, wanted, length) == 0);
}

static void send_numbered(ep_t *ep, uint32_t number, size_t longest, addr_t *peer) {
    static uint8_t bytes[LARGEST];
    size_t length = numbered(bytes, number, longest);
    OK(transmit(ep, bytes, length, peer));
}

/* Both sides have nothing to do until the other has ended, or wants something. */
static void serve_until_told(ep_t *ep, int told) {
    char bytes[16];
    while (!is_readable(told, 1)) {
        size_t length = sizeof bytes;
        addr_t *peer;
        GIVES(ERROR_AGAIN, doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &peer));
    }
}

/* A service that sends back what it gets until it is told to end; it forgets clients that have gone. */
static void echo(void) {
    static uint8_t bytes[LARGEST];
    ep_t *ep = make_service();
    OK(doca_comm_channel_ep_set_max_msg_size(ep, LARGEST));
    OK(doca_comm_channel_ep_listen(ep, service));
    say(control, 'r');
    for (;;) {
        size_t length = sizeof bytes;
        addr_t *peer;
        doca_error_t result = doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &peer);
        if (result == DOCA_ERROR_AGAIN) {
            doca_event_channel_t channel;
            struct pollfd sleepers[2] = {{control, POLLIN, 0}, {0, POLLIN, 0}};
            OK(doca_comm_channel_ep_get_event_channel(ep, NULL, &channel));
            OK(doca_comm_channel_ep_event_handle_arm_recv(ep));
            sleepers[1].fd = channel;
            MUST(poll(sleepers, 2, PATIENCE_MS) > 0);
            if (sleepers[0].revents) {
                break;
            }
            continue;
        }
        if (result == DOCA_SUCCESS) {
            result = transmit(ep, bytes, length, peer);
        }
        if (result == DOCA_ERROR_CONNECTION_RESET) {
            OK(doca_comm_channel_ep_disconnect(ep, peer));
        } else {
            OK(result);
        }
    }
    unmake(ep);
}

static other_t start_echo(void) {
    other_t other = start(echo);
    hear(other.control, 'r');
    return other;
}

static void end_echo(other_t other) {
    say(other.control, 'q');
    finish(other);
}

/* ---- what there can be -------------------------------------------------------------------------------------------------- */

static void limits(void **state) {
    struct doca_dev *dev = open_device();
    struct doca_devinfo *info = doca_dev_as_devinfo(dev);
    uint32_t n = 0;
    (void)state;
    INVALID(doca_comm_channel_get_max_message_size(NULL, &n));
    INVALID(doca_comm_channel_get_max_message_size(info, NULL));
    OK(doca_comm_channel_get_max_message_size(info, &n));
    MUST(n == LARGEST);
    INVALID(doca_comm_channel_get_max_recv_queue_size(NULL, &n));
    INVALID(doca_comm_channel_get_max_recv_queue_size(info, NULL));
    OK(doca_comm_channel_get_max_recv_queue_size(info, &n));
    MUST(n >= 256 && n <= 32768 && (n & (n - 1)) == 0);
    INVALID(doca_comm_channel_get_max_send_queue_size(NULL, &n));
    INVALID(doca_comm_channel_get_max_send_queue_size(info, NULL));
    OK(doca_comm_channel_get_max_send_queue_size(info, &n));
    MUST(n >= 256 && n <= 32768 && (n & (n - 1)) == 0);
    INVALID(doca_comm_channel_get_service_max_num_connections(NULL, &n));
    INVALID(doca_comm_channel_get_service_max_num_connections(info, NULL));
    OK(doca_comm_channel_get_service_max_num_connections(info, &n));
    MUST(n >= 1000);
    INVALID(doca_comm_channel_get_max_service_name_len(NULL));
    OK(doca_comm_channel_get_max_service_name_len(&n));
    MUST(n == 121);
    OK(doca_dev_close(dev));
}

static void devices(void **state) {
    struct doca_dev *dev = open_device();
    struct doca_devinfo_rep **reps;
    struct doca_devinfo **list;
    uint32_t n;
    char text[DOCA_DEVINFO_IFACE_NAME_SIZE], pci[DOCA_DEVINFO_PCI_ADDR_SIZE];
    (void)state;
    INVALID(doca_devinfo_list_create(NULL, &n));
    INVALID(doca_devinfo_list_create(&list, NULL));
    INVALID(doca_dev_open(NULL, &dev));
    INVALID(doca_dev_close(NULL));
    OK(doca_devinfo_get_iface_name(doca_dev_as_devinfo(dev), text, sizeof text));
    MUST(strcmp(text, "dpu") == 0);
    INVALID(doca_devinfo_get_iface_name(doca_dev_as_devinfo(dev), text, 3));
    GIVES(ERROR_NOT_SUPPORTED, doca_devinfo_get_pci_addr_str(doca_dev_as_devinfo(dev), pci));
    OK(doca_devinfo_rep_list_create(dev, DOCA_DEV_REP_FILTER_NET, &reps, &n));
    MUST(n == 1 && reps[1] == NULL);
    OK(doca_devinfo_rep_get_vuid(reps[0], text, sizeof text));
    MUST(strcmp(text, "dpu") == 0);
    OK(doca_devinfo_rep_list_destroy(reps));
    OK(doca_devinfo_rep_list_create(dev, DOCA_DEV_REP_FILTER_EMULATED, &reps, &n));
    MUST(n == 0 && reps[0] == NULL);
    OK(doca_devinfo_rep_list_destroy(reps));
    INVALID(doca_devinfo_rep_list_create(dev, 1 << 9, &reps, &n));
    OK(doca_dev_close(dev));
    MUST(strcmp(doca_get_error_string(DOCA_ERROR_AGAIN), "temporarily unavailable, try again") == 0);
    MUST(strcmp(doca_get_error_name((doca_error_t)999), "no such error") == 0);
}

/* ---- properties ----------------------------------------------------------------------------------------------------------- */

static void sizes(void **state) {
    ep_t *ep = make();
    uint16_t n;
    (void)state;
    OK(doca_comm_channel_ep_get_max_msg_size(ep, &n)); /* a default value is used and can be inquired */
    MUST(n == 4080);
    OK(doca_comm_channel_ep_set_max_msg_size(ep, 1)); /* there is a minimal size requirement */
    OK(doca_comm_channel_ep_get_max_msg_size(ep, &n));
    MUST(n == 64);
    OK(doca_comm_channel_ep_set_max_msg_size(ep, LARGEST));
    OK(doca_comm_channel_ep_get_max_msg_size(ep, &n));
    MUST(n == LARGEST);
    INVALID(doca_comm_channel_ep_set_max_msg_size(ep, 0));
    INVALID(doca_comm_channel_ep_set_max_msg_size(NULL, 64));
    INVALID(doca_comm_channel_ep_get_max_msg_size(NULL, &n));
    INVALID(doca_comm_channel_ep_get_max_msg_size(ep, NULL));

    OK(doca_comm_channel_ep_get_recv_queue_size(ep, &n));
    MUST(n == 256);
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 1));
    OK(doca_comm_channel_ep_get_recv_queue_size(ep, &n));
    MUST(n == 16);
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 1025)); /* rounded up to the closest power of 2 */
    OK(doca_comm_channel_ep_get_recv_queue_size(ep, &n));
    MUST(n == 2048);
    INVALID(doca_comm_channel_ep_set_recv_queue_size(ep, 32769));
    INVALID(doca_comm_channel_ep_set_recv_queue_size(NULL, 64));
    INVALID(doca_comm_channel_ep_get_recv_queue_size(NULL, &n));
    INVALID(doca_comm_channel_ep_get_recv_queue_size(ep, NULL));

    OK(doca_comm_channel_ep_get_send_queue_size(ep, &n));
    MUST(n == 256);
    OK(doca_comm_channel_ep_set_send_queue_size(ep, 17));
    OK(doca_comm_channel_ep_get_send_queue_size(ep, &n));
    MUST(n == 32);
    OK(doca_comm_channel_ep_set_send_queue_size(ep, 32768));
    OK(doca_comm_channel_ep_get_send_queue_size(ep, &n));
    MUST(n == 32768);
    INVALID(doca_comm_channel_ep_set_send_queue_size(ep, 0));
    INVALID(doca_comm_channel_ep_set_send_queue_size(NULL, 64));
    INVALID(doca_comm_channel_ep_get_send_queue_size(NULL, &n));
    INVALID(doca_comm_channel_ep_get_send_queue_size(ep, NULL));
    unmake(ep);
}

static void devices_of_endpoints(void **state) {
    ep_t *ep;
    struct doca_dev *dev = open_device(), *device = dev;
    struct doca_dev_rep *rep = open_rep(dev), *device_rep = rep;
    (void)state;
    INVALID(doca_comm_channel_ep_create(NULL));
    OK(doca_comm_channel_ep_create(&ep));
    OK(doca_comm_channel_ep_get_device(ep, &device));
    OK(doca_comm_channel_ep_get_device_rep(ep, &device_rep));
    MUST(device == NULL && device_rep == NULL);
    INVALID(doca_comm_channel_ep_set_device(NULL, dev));
    INVALID(doca_comm_channel_ep_set_device(ep, NULL));
    INVALID(doca_comm_channel_ep_set_device_rep(NULL, rep));
    INVALID(doca_comm_channel_ep_set_device_rep(ep, NULL));
    OK(doca_comm_channel_ep_set_device(ep, dev));
    OK(doca_comm_channel_ep_set_device_rep(ep, rep));
    OK(doca_comm_channel_ep_get_device(ep, &device));
    OK(doca_comm_channel_ep_get_device_rep(ep, &device_rep));
    MUST(device == dev && device_rep == rep);
    INVALID(doca_comm_channel_ep_get_device(NULL, &device));
    INVALID(doca_comm_channel_ep_get_device(ep, NULL));
    INVALID(doca_comm_channel_ep_get_device_rep(NULL, &device_rep));
    INVALID(doca_comm_channel_ep_get_device_rep(ep, NULL));
    unmake(ep);
}

/* There is no such service, which takes until all have kept silent for long enough. */
static void expect_nobody(ep_t *ep, addr_t **peer) {
    connect_ms = SOON_MS;
    GIVES(ERROR_CONNECTION_ABORTED, doca_comm_channel_ep_connect(ep, service, peer));
    connect_ms = PATIENCE_MS;
}

static void refuses_to_change(ep_t *ep) {
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_device(ep, ep->dev));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_max_msg_size(ep, 100));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_recv_queue_size(ep, 100));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_send_queue_size(ep, 100));
}

static void active_endpoints_do_not_change(void **state) {
    other_t other = start_echo();
    addr_t *peer;
    ep_t *client = connected(&peer), *server;
    struct doca_dev_rep *rep = open_rep(client->dev);
    (void)state;
    refuses_to_change(client);
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_device_rep(client, rep));
    OK(doca_comm_channel_ep_disconnect(client, peer));
    OK(doca_comm_channel_ep_set_max_msg_size(client, 100)); /* it is not active any more */
    end_echo(other);
    server = listening();
    refuses_to_change(server);
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_set_device_rep(server, rep));
    OK(doca_dev_rep_close(rep));
    unmake(server);
    unmake(client);
}

/* ---- listening and connecting ----------------------------------------------------------------------------------------- */

static void listen_statuses(void **state) {
    other_t other = start_echo();
    struct doca_dev *dev = open_device();
    struct doca_dev_rep *rep = open_rep(dev);
    addr_t *peer;
    ep_t *ep, *client;
    char name[200];
    (void)state;
    OK(doca_comm_channel_ep_create(&ep));
    INVALID(doca_comm_channel_ep_listen(NULL, "other"));
    INVALID(doca_comm_channel_ep_listen(ep, NULL));
    INVALID(doca_comm_channel_ep_listen(ep, ""));
    memset(name, 'n', sizeof name);
    name[121] = 0;
    INVALID(doca_comm_channel_ep_listen(ep, name));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_listen(ep, "other"));
    OK(doca_comm_channel_ep_set_device(ep, dev));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_listen(ep, "other"));
    OK(doca_comm_channel_ep_set_device_rep(ep, rep));
    GIVES(ERROR_CONNECTION_ABORTED, doca_comm_channel_ep_listen(ep, service)); /* it is registered already */
    OK(doca_comm_channel_ep_listen(ep, "other"));
    GIVES(ERROR_NOT_PERMITTED, doca_comm_channel_ep_listen(ep, "another"));
    client = connected(&peer);
    GIVES(ERROR_NOT_PERMITTED, doca_comm_channel_ep_listen(client, "another"));
    unmake(client);
    unmake(ep);
    end_echo(other);
}

static void connect_statuses(void **state) {
    ep_t *ep, *server;
    struct doca_dev *dev = open_device();
    addr_t *peer = NULL;
    other_t other;
    char name[200];
    (void)state;
    OK(doca_comm_channel_ep_create(&ep));
    INVALID(doca_comm_channel_ep_connect(NULL, service, &peer));
    INVALID(doca_comm_channel_ep_connect(ep, NULL, &peer));
    INVALID(doca_comm_channel_ep_connect(ep, "", &peer));
    INVALID(doca_comm_channel_ep_connect(ep, service, NULL));
    memset(name, 'n', sizeof name);
    name[121] = 0;
    INVALID(doca_comm_channel_ep_connect(ep, name, &peer));
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_connect(ep, service, &peer));
    OK(doca_comm_channel_ep_set_device(ep, dev));
    /* Before the service performs listen with the same name the connection fails. */
    expect_nobody(ep, &peer);
    MUST(peer == NULL);
    other = start_echo();
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    MUST(peer != NULL);
    GIVES(ERROR_NOT_PERMITTED, doca_comm_channel_ep_connect(ep, service, &peer));
    server = make_service();
    OK(doca_comm_channel_ep_listen(server, "other"));
    GIVES(ERROR_NOT_PERMITTED, doca_comm_channel_ep_connect(server, service, &peer));
    unmake(server);
    unmake(ep);
    setenv("DOCA_COMM_CHANNEL_DPU", "no host at all:1", 1);
    ep = make();
    GIVES(ERROR_INITIALIZATION, doca_comm_channel_ep_connect(ep, service, &peer));
    unsetenv("DOCA_COMM_CHANNEL_DPU");
    unmake(ep);
    end_echo(other);
}

static void talk_once(ep_t *ep, addr_t *peer, uint32_t number) {
    addr_t *from = NULL;
    send_numbered(ep, number, 100, peer);
    expect_numbered(ep, number, 100, &from);
    MUST(from == peer);
}

static void the_longest_name(void **state) {
    other_t other;
    addr_t *peer;
    ep_t *ep = make();
    (void)state;
    memset(service, 'x', 119);
    service[119] = '\xfc';
    service[120] = 0;
    other = start_echo();
    service[119] = '\xfb';
    expect_nobody(ep, &peer);
    service[119] = '\xfc';
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    talk_once(ep, peer, 3);
    unmake(ep);
    end_echo(other);
}

/* Who sits at the first ports of the name is somebody else: a service of another name, and one that never answers. */
static void taken_ports(void **state) {
    struct doca_dev *dev = open_device();
    cci_endpoint_t *mute;
    cci_os_handle_t fd;
    char port[16], *own;
    other_t other;
    addr_t *peer;
    ep_t *ep;
    (void)state;
    ep = make_service();
    OK(doca_comm_channel_ep_listen(ep, service));
    MUST(cci_get_opt(ep->endpoint, CCI_OPT_ENDPT_URI, &own) == CCI_SUCCESS);
    snprintf(port, sizeof port, "%s", strrchr(own, ':') + 1);
    free(own);
    unmake(ep);
    MUST(cci_create_endpoint_at(dev->info.device, port, 0, &mute, &fd) == CCI_SUCCESS);
    other = start_echo();
    ep = connected(&peer);
    talk_once(ep, peer, 4);
    unmake(ep);
    end_echo(other);
    MUST(cci_destroy_endpoint(mute) == CCI_SUCCESS);
    OK(doca_dev_close(dev));
}

static void one_that_refuses(void) {
    ep_t *ep = make_service();
    char port[16], *own;
    /* An endpoint of no name that sits where this name begins. */
    OK(doca_comm_channel_ep_listen(ep, service));
    MUST(cci_get_opt(ep->endpoint, CCI_OPT_ENDPT_URI, &own) == CCI_SUCCESS);
    snprintf(port, sizeof port, "%s", strrchr(own, ':') + 1);
    free(own);
    MUST(cci_destroy_endpoint(ep->endpoint) == CCI_SUCCESS);
    MUST(cci_create_endpoint_at(ep->dev->info.device, port, 0, &ep->endpoint, &ep->fd) == CCI_SUCCESS);
    ep->name[0] = 'T';
    say(control, 'r');
    serve_until_told(ep, control);
    unmake(ep);
}

static void refused_names(void **state) {
    other_t first = start(one_that_refuses), second;
    addr_t *peer;
    ep_t *ep = make();
    (void)state;
    hear(first.control, 'r');
    expect_nobody(ep, &peer); /* connections rejected or failed */
    second = start_echo();
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    talk_once(ep, peer, 5);
    unmake(ep);
    end_echo(second);
    end_echo(first);
}

/* ---- disconnecting, destroying -------------------------------------------------------------------------------------------- */

static void disconnect_statuses(void **state) {
    other_t other = start_echo();
    ep_t *ep = make();
    addr_t *peer = NULL, *first;
    int i;
    (void)state;
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    INVALID(doca_comm_channel_ep_disconnect(NULL, peer));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_disconnect(ep, NULL));
    OK(doca_comm_channel_ep_disconnect(ep, peer));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_disconnect(ep, peer));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_sendto(ep, "x", 1, 0, peer));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_peer_addr_update_info(peer));
    first = peer;
    for (i = 0; i < 5; i++) { /* a new connection can be created on the endpoint */
        OK(doca_comm_channel_ep_connect(ep, service, &peer));
        talk_once(ep, peer, (uint32_t)i);
        OK(doca_comm_channel_ep_disconnect(ep, peer));
    }
    MUST(peer == first); /* its memory has been taken again */
    unmake(ep);
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_destroy(NULL));
    end_echo(other);
}

/* 200 messages without a look at what becomes of them. */
static void send_and_leave(void) {
    addr_t *peer;
    ep_t *ep;
    uint32_t i;
    char way = hear_any(control);
    ep = connected(&peer);
    for (i = 0; i < 200; i++) {
        send_numbered(ep, i, 4000, peer);
    }
    say(control, 's');
    if (way == 'd') {
        OK(doca_comm_channel_ep_disconnect(ep, peer));
    }
    unmake(ep);
}

static void leaving_loses_nothing(char way) {
    other_t other = start(send_and_leave);
    ep_t *ep = make_service();
    addr_t *peer = NULL, *again = NULL;
    char byte[8];
    size_t length = sizeof byte;
    uint32_t i;
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 16));
    OK(doca_comm_channel_ep_listen(ep, service));
    say(other.control, way);
    while (!is_readable(other.control, 1)) { /* the client has gone on to leave before anything is received */
        doca__cc_work(ep);
    }
    hear(other.control, 's');
    for (i = 0; i < 200; i++) {
        expect_numbered(ep, i, 4000, &peer);
        MUST(again == NULL || again == peer);
        again = peer;
    }
    GIVES(ERROR_CONNECTION_RESET, receive(ep, byte, &length, &peer));
    MUST(peer == again);
    GIVES(ERROR_AGAIN, doca_comm_channel_ep_recvfrom(ep, byte, &length, 0, &peer)); /* told once */
    GIVES(ERROR_CONNECTION_RESET, doca_comm_channel_ep_sendto(ep, "x", 1, 0, again));
    GIVES(ERROR_CONNECTION_RESET, doca_comm_channel_peer_addr_update_info(again));
    OK(doca_comm_channel_ep_disconnect(ep, again));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_disconnect(ep, again));
    finish(other);
    unmake(ep);
}

static void disconnecting_delivers(void **state) {
    (void)state;
    leaving_loses_nothing('d');
}

static void destroying_disconnects(void **state) {
    (void)state;
    leaving_loses_nothing('x');
}

/* The service lets a client go that still talks to it; others stay. */
static void stay_or_go(void) {
    addr_t *stays, *goes, *from;
    ep_t *one = connected(&stays), *two = connected(&goes);
    char byte[8];
    size_t length = sizeof byte;
    OK(transmit(one, "stay", 4, stays));
    hear(control, 's');
    OK(transmit(two, "go", 2, goes));
    GIVES(ERROR_CONNECTION_RESET, receive(two, byte, &length, &from));
    MUST(from == goes);
    GIVES(ERROR_CONNECTION_RESET, transmit(two, "x", 1, goes));
    GIVES(ERROR_NOT_PERMITTED, doca_comm_channel_ep_connect(two, service, &from)); /* it needs to be disconnected */
    OK(doca_comm_channel_ep_disconnect(two, goes));
    OK(transmit(one, "still", 5, stays));
    length = sizeof byte;
    OK(receive(one, byte, &length, &from));
    MUST(from == stays && length == 2 && memcmp(byte, "ok", 2) == 0);
    unmake(one);
    unmake(two);
}

static void the_service_disconnects(void **state) {
    other_t other;
    ep_t *ep = listening();
    addr_t *stays, *goes, *from;
    char byte[8];
    size_t length = sizeof byte;
    (void)state;
    other = start(stay_or_go);
    OK(receive(ep, byte, &length, &stays));
    MUST(length == 4);
    say(other.control, 's');
    length = sizeof byte;
    OK(receive(ep, byte, &length, &goes));
    MUST(length == 2 && goes != stays);
    OK(doca_comm_channel_ep_disconnect(ep, goes));
    length = sizeof byte;
    OK(receive(ep, byte, &length, &from));
    MUST(from == stays && length == 5);
    OK(transmit(ep, "ok", 2, stays));
    length = sizeof byte;
    GIVES(ERROR_CONNECTION_RESET, receive(ep, byte, &length, &from));
    MUST(from == stays);
    finish(other);
    unmake(ep);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------- */

static void recvfrom_statuses(void **state) {
    other_t other = start_echo();
    ep_t *ep = make();
    addr_t *peer, *from = NULL;
    char bytes[100];
    size_t length = sizeof bytes;
    (void)state;
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &from));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    INVALID(doca_comm_channel_ep_recvfrom(NULL, bytes, &length, 0, &from));
    INVALID(doca_comm_channel_ep_recvfrom(ep, NULL, &length, 0, &from));
    INVALID(doca_comm_channel_ep_recvfrom(ep, bytes, NULL, 0, &from));
    INVALID(doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, NULL));
    INVALID(doca_comm_channel_ep_recvfrom(ep, bytes, &length, 1, &from)); /* no flags are supported */
    GIVES(ERROR_AGAIN, doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &from));
    MUST(length == sizeof bytes && from == NULL);
    OK(transmit(ep, "one", 3, peer));
    OK(transmit(ep, "", 0, peer));
    OK(transmit(ep, "three", 5, peer));
    length = 2;
    INVALID(receive(ep, bytes, &length, &from)); /* longer than the buffer: it stays */
    MUST(length == 3);
    OK(receive(ep, bytes, &length, &from));
    MUST(length == 3 && memcmp(bytes, "one", 3) == 0 && from == peer);
    length = sizeof bytes;
    OK(receive(ep, bytes, &length, &from)); /* the value pointed by len is updated with the number of bytes received */
    MUST(length == 0);
    length = 5;
    OK(receive(ep, bytes, &length, &from));
    MUST(length == 5 && memcmp(bytes, "three", 5) == 0);
    unmake(ep);
    end_echo(other);
}

static void sendto_statuses(void **state) {
    other_t other = start_echo();
    addr_t *peer, *strange, *from;
    ep_t *ep = connected(&peer), *stranger = connected(&strange);
    static char bytes[4081];
    size_t length = sizeof bytes;
    (void)state;
    INVALID(doca_comm_channel_ep_sendto(NULL, bytes, 1, 0, peer));
    INVALID(doca_comm_channel_ep_sendto(ep, NULL, 1, 0, peer));
    INVALID(doca_comm_channel_ep_sendto(ep, bytes, 1, 1, peer)); /* no flags are supported */
    INVALID(doca_comm_channel_ep_sendto(ep, bytes, 4081, 0, peer)); /* larger than the msgsize */
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_sendto(ep, bytes, 1, 0, NULL));
    GIVES(ERROR_NOT_CONNECTED, doca_comm_channel_ep_sendto(ep, bytes, 1, 0, strange)); /* of another endpoint */
    OK(doca_comm_channel_ep_sendto(ep, bytes, 4080, 0, peer));
    OK(receive(ep, bytes, &length, &from));
    MUST(length == 4080);
    unmake(ep);
    unmake(stranger);
    end_echo(other);
}

/* Messages of all sizes there and back, also those that no datagram carries. */
static void all_sizes(void **state) {
    other_t other = start_echo();
    ep_t *ep = make();
    addr_t *peer, *from;
    uint32_t i;
    (void)state;
    OK(doca_comm_channel_ep_set_max_msg_size(ep, LARGEST));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    for (i = 0; i < 200; i++) {
        send_numbered(ep, i * 11, LARGEST, peer);
        if (i >= 3) {
            expect_numbered(ep, (i - 3) * 11, LARGEST, &from);
        }
    }
    for (i = 197; i < 200; i++) {
        expect_numbered(ep, i * 11, LARGEST, &from);
    }
    unmake(ep);
    end_echo(other);
}

/* A service that does not receive until it is told to. */
static void receive_late(void) {
    ep_t *ep = make_service();
    addr_t *peer = NULL, *from;
    uint32_t i, count;
    char bytes[8];
    size_t length = sizeof bytes;
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 16));
    OK(doca_comm_channel_ep_listen(ep, service));
    say(control, 'r');
    OK(receive(ep, bytes, &length, &peer));
    say(control, 's');
    while (!is_readable(control, 1)) {
        OK(doca_comm_channel_peer_addr_update_info(peer)); /* it works, but receives nothing */
    }
    hear(control, 'g');
    MUST(read(control, &count, sizeof count) == sizeof count);
    for (i = 0; i < count; i++) {
        expect_numbered(ep, i, 1000, &from);
        MUST(from == peer);
    }
    OK(transmit(ep, "done", 4, peer));
    unmake(ep);
}

static void full_queues(void **state) {
    other_t other = start(receive_late);
    static uint8_t bytes[1000];
    ep_t *ep = make();
    addr_t *peer, *from;
    uint32_t sent = 0;
    uint64_t in_flight, moved_ms = doca__cc_now_ms();
    doca_error_t result;
    size_t length;
    (void)state;
    hear(other.control, 'r');
    OK(doca_comm_channel_ep_set_send_queue_size(ep, 64));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    OK(transmit(ep, "begin", 5, peer));
    hear(other.control, 's');
    for (;;) { /* as many as both queues take: then nothing moves any more */
        length = numbered(bytes, sent, sizeof bytes);
        result = doca_comm_channel_ep_sendto(ep, bytes, length, 0, peer);
        if (result == DOCA_ERROR_AGAIN) {
            doca_event_channel_t channel;
            MUST(ep->in_flight == 64);
            OK(doca_comm_channel_ep_get_event_channel(ep, &channel, NULL));
            OK(doca_comm_channel_ep_event_handle_arm_send(ep));
            (void)is_readable(channel, 300); /* it may be without need: what was refused is tried again */
            if (doca__cc_now_ms() - moved_ms >= 300) {
                break;
            }
            continue;
        }
        OK(result);
        moved_ms = doca__cc_now_ms();
        sent++;
        MUST(sent < 100000);
    }
    MUST(sent >= 64);
    OK(doca_comm_channel_peer_addr_update_info(peer));
    OK(doca_comm_channel_peer_addr_get_send_in_flight_messages(peer, &in_flight));
    MUST(in_flight > 0 && in_flight <= 64);
    say(other.control, 'g');
    sent += 500;
    MUST(write(other.control, &sent, sizeof sent) == sizeof sent);
    for (sent -= 500, in_flight = 0; in_flight < 500; in_flight++, sent++) { /* an indication for each new empty slot */
        send_numbered(ep, sent, 1000, peer);
    }
    length = sizeof bytes;
    OK(receive(ep, bytes, &length, &from)); /* no message was lost */
    MUST(length == 4);
    unmake(ep);
    finish(other);
}

/* Both send first and receive then: neither queue of one direction stops the other. */
static void send_then_receive(ep_t *ep, addr_t *peer, uint32_t first, uint32_t count, size_t longest) {
    addr_t *from;
    uint32_t sent = 0, got = 0, checked;
    static uint8_t bytes[LARGEST], wanted[LARGEST];
    while (sent < count || got < count) {
        size_t length = numbered(bytes, first + sent, longest);
        doca_error_t result = sent < count ? doca_comm_channel_ep_sendto(ep, bytes, length, 0, peer) : DOCA_ERROR_AGAIN;
        if (result == DOCA_SUCCESS) {
            sent++;
            continue;
        }
        GIVES(ERROR_AGAIN, result);
        length = sizeof bytes;
        result = doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &from);
        if (result == DOCA_SUCCESS) {
            memcpy(&checked, bytes, 4);
            MUST(length == numbered(wanted, checked, longest) && memcmp(bytes, wanted, length) == 0);
            MUST(checked % 1000000 == got);
            got++;
        } else {
            GIVES(ERROR_AGAIN, result);
        }
    }
}

static void talk_across(void) {
    ep_t *ep = make_service();
    addr_t *peer;
    char byte[8];
    size_t length = sizeof byte;
    OK(doca_comm_channel_ep_set_max_msg_size(ep, LARGEST));
    OK(doca_comm_channel_ep_set_send_queue_size(ep, 16));
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 16));
    OK(doca_comm_channel_ep_listen(ep, service));
    say(control, 'r');
    OK(receive(ep, byte, &length, &peer));
    send_then_receive(ep, peer, 1000000, 500, 500);
    send_then_receive(ep, peer, 1000000, 40, 60000);
    OK(transmit(ep, "bye", 3, peer));
    length = sizeof byte;
    OK(receive(ep, byte, &length, &peer));
    unmake(ep);
}

static void across(void **state) {
    other_t other = start(talk_across);
    ep_t *ep = make();
    addr_t *peer, *from;
    char byte[8];
    size_t length = sizeof byte;
    (void)state;
    hear(other.control, 'r');
    OK(doca_comm_channel_ep_set_max_msg_size(ep, LARGEST));
    OK(doca_comm_channel_ep_set_send_queue_size(ep, 16));
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 16));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    OK(transmit(ep, "hi", 2, peer));
    send_then_receive(ep, peer, 2000000, 500, 500);
    send_then_receive(ep, peer, 2000000, 40, 60000);
    OK(receive(ep, byte, &length, &from));
    OK(transmit(ep, "bye", 3, peer));
    unmake(ep);
    finish(other);
}

/* What I send arrives although I do not receive what floods me. */
static void flood(void) {
    ep_t *ep = listening();
    addr_t *peer;
    uint32_t sent = 0, got = 0;
    static uint8_t bytes[1000];
    size_t length = sizeof bytes;
    say(control, 'r');
    OK(receive(ep, bytes, &length, &peer));
    while (got < 1000) {
        doca_error_t result;
        length = numbered(bytes, sent, sizeof bytes);
        result = doca_comm_channel_ep_sendto(ep, bytes, length, 0, peer);
        MUST(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
        sent += result == DOCA_SUCCESS;
        length = sizeof bytes;
        result = doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &peer);
        MUST(result == DOCA_SUCCESS || result == DOCA_ERROR_AGAIN);
        got += result == DOCA_SUCCESS;
    }
    MUST(write(control, &sent, sizeof sent) == sizeof sent);
    length = sizeof bytes;
    GIVES(ERROR_CONNECTION_RESET, receive(ep, bytes, &length, &peer));
    unmake(ep);
}

static void flooded(void **state) {
    other_t other = start(flood);
    ep_t *ep = make();
    addr_t *peer, *from;
    uint32_t i, count;
    uint64_t in_flight = 1;
    (void)state;
    hear(other.control, 'r');
    OK(doca_comm_channel_ep_set_recv_queue_size(ep, 16));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    for (i = 0; i < 1001; i++) {
        OK(transmit(ep, "message", 7, peer));
    }
    while (in_flight > 0) {
        OK(doca_comm_channel_peer_addr_update_info(peer));
        OK(doca_comm_channel_peer_addr_get_send_in_flight_messages(peer, &in_flight));
    }
    MUST(read(other.control, &count, sizeof count) == sizeof count);
    for (i = 0; i < count; i++) {
        expect_numbered(ep, i, 1000, &from);
    }
    unmake(ep);
    finish(other);
}

/* ---- event channels --------------------------------------------------------------------------------------------------------- */

static void channel_statuses(void **state) {
    other_t other = start_echo();
    ep_t *ep = make();
    addr_t *peer;
    doca_event_channel_t send_channel = -1, recv_channel = -1, again = -1;
    (void)state;
    GIVES(ERROR_BAD_STATE, doca_comm_channel_ep_get_event_channel(ep, &send_channel, &recv_channel));
    INVALID(doca_comm_channel_ep_get_event_channel(NULL, &send_channel, &recv_channel));
    INVALID(doca_comm_channel_ep_event_handle_arm_recv(NULL));
    INVALID(doca_comm_channel_ep_event_handle_arm_send(NULL));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    INVALID(doca_comm_channel_ep_get_event_channel(ep, NULL, NULL));
    OK(doca_comm_channel_ep_get_event_channel(ep, &send_channel, &recv_channel));
    MUST(send_channel >= 0 && recv_channel >= 0 && send_channel != recv_channel);
    OK(doca_comm_channel_ep_get_event_channel(ep, &again, NULL));
    MUST(again == send_channel);
    OK(doca_comm_channel_ep_get_event_channel(ep, NULL, &again));
    MUST(again == recv_channel);
    OK(doca_comm_channel_ep_disconnect(ep, peer));
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    OK(doca_comm_channel_ep_get_event_channel(ep, NULL, &again));
    MUST(again == recv_channel); /* owned by the endpoint until it is destroyed */
    talk_once(ep, peer, 6);
    unmake(ep);
    MUST(fcntl(recv_channel, F_GETFD) < 0 && fcntl(send_channel, F_GETFD) < 0);
    end_echo(other);
}

static void arming(void **state) {
    other_t other = start_echo();
    addr_t *peer, *from;
    ep_t *ep = connected(&peer);
    doca_event_channel_t send_channel, recv_channel;
    char bytes[16];
    size_t length = sizeof bytes;
    int i;
    (void)state;
    OK(doca_comm_channel_ep_get_event_channel(ep, &send_channel, &recv_channel));
    for (i = 0; i < 3; i++) {
        OK(transmit(ep, "message", 7, peer));
        length = sizeof bytes;
        MUST(!is_readable(recv_channel, 50)); /* not armed */
        OK(doca_comm_channel_ep_event_handle_arm_recv(ep));
        MUST(is_readable(recv_channel, PATIENCE_MS)); /* whether it has come before or after */
        OK(receive(ep, bytes, &length, &from));
        MUST(!is_readable(recv_channel, 0));
        while (ep->in_flight > 0) {
            OK(doca_comm_channel_peer_addr_update_info(peer));
        }
        OK(doca_comm_channel_ep_event_handle_arm_send(ep));
        MUST(is_readable(send_channel, 0)); /* a message was transmitted */
    }
    OK(transmit(ep, "one", 3, peer));
    OK(transmit(ep, "two", 3, peer));
    length = sizeof bytes;
    OK(receive(ep, bytes, &length, &from));
    while (ep->queue_count == 0) {
        OK(doca_comm_channel_peer_addr_update_info(peer));
    }
    OK(doca_comm_channel_ep_event_handle_arm_recv(ep));
    MUST(is_readable(recv_channel, 0)); /* of two messages the second is not slept over */
    length = sizeof bytes;
    OK(receive(ep, bytes, &length, &from));
    unmake(ep);
    end_echo(other);
}

/* Nothing happens, nothing wakes: both armed channels together, for longer than a round trip. */
static void quiet_channels(void **state) {
    other_t other = start_echo();
    addr_t *peer, *from;
    ep_t *ep = connected(&peer);
    struct pollfd sleepers[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
    char bytes[16];
    size_t length;
    int woken = 0, i;
    (void)state;
    talk_once(ep, peer, 7);
    OK(doca_comm_channel_ep_get_event_channel(ep, &sleepers[0].fd, &sleepers[1].fd));
    for (i = 0; i < 20; i++) {
        OK(doca_comm_channel_ep_event_handle_arm_recv(ep));
        OK(doca_comm_channel_ep_event_handle_arm_send(ep));
        if (poll(sleepers, 2, 20) == 0) {
            continue;
        }
        woken++;
        length = sizeof bytes;
        GIVES(ERROR_AGAIN, doca_comm_channel_ep_recvfrom(ep, bytes, &length, 0, &from));
    }
    MUST(woken < 15);
    unmake(ep);
    end_echo(other);
}

/* ---- what is known of a peer ------------------------------------------------------------------------------------------------ */

static void statistics(void **state) {
    other_t other = start_echo();
    addr_t *peer, *from;
    ep_t *ep = connected(&peer);
    uint64_t n = 99, in_flight = 1;
    char bytes[64];
    size_t length, i;
    (void)state;
    INVALID(doca_comm_channel_peer_addr_update_info(NULL));
    INVALID(doca_comm_channel_peer_addr_get_send_messages(NULL, &n));
    INVALID(doca_comm_channel_peer_addr_get_send_messages(peer, NULL));
    INVALID(doca_comm_channel_peer_addr_get_send_bytes(NULL, &n));
    INVALID(doca_comm_channel_peer_addr_get_send_bytes(peer, NULL));
    INVALID(doca_comm_channel_peer_addr_get_recv_messages(NULL, &n));
    INVALID(doca_comm_channel_peer_addr_get_recv_messages(peer, NULL));
    INVALID(doca_comm_channel_peer_addr_get_recv_bytes(NULL, &n));
    INVALID(doca_comm_channel_peer_addr_get_recv_bytes(peer, NULL));
    INVALID(doca_comm_channel_peer_addr_get_send_in_flight_messages(NULL, &n));
    INVALID(doca_comm_channel_peer_addr_get_send_in_flight_messages(peer, NULL));
    for (i = 0; i < 10; i++) {
        OK(transmit(ep, "0123456789", i, peer));
        length = sizeof bytes;
        OK(receive(ep, bytes, &length, &from));
    }
    OK(doca_comm_channel_peer_addr_get_send_messages(peer, &n));
    MUST(n == 0); /* updated to the last time that update_info was called */
    OK(doca_comm_channel_peer_addr_update_info(peer));
    OK(doca_comm_channel_peer_addr_get_send_messages(peer, &n));
    MUST(n == 10);
    OK(doca_comm_channel_peer_addr_get_send_bytes(peer, &n));
    MUST(n == 45);
    OK(doca_comm_channel_peer_addr_get_recv_messages(peer, &n));
    MUST(n == 10);
    OK(doca_comm_channel_peer_addr_get_recv_bytes(peer, &n));
    MUST(n == 45);
    OK(transmit(ep, "x", 1, peer));
    while (in_flight > 0) { /* this can be used to make sure that all transmissions are finished */
        OK(doca_comm_channel_peer_addr_update_info(peer));
        OK(doca_comm_channel_peer_addr_get_send_in_flight_messages(peer, &in_flight));
    }
    OK(doca_comm_channel_peer_addr_get_send_messages(peer, &n));
    MUST(n == 11);
    unmake(ep);
    end_echo(other);
}

static void visit_thrice(void) {
    addr_t *peer;
    ep_t *ep = make();
    int i;
    for (i = 0; i < 3; i++) {
        OK(doca_comm_channel_ep_connect(ep, service, &peer));
        OK(transmit(ep, "hello", 5, peer));
        OK(transmit(ep, "again", 5, peer));
        OK(doca_comm_channel_ep_disconnect(ep, peer));
        hear(control, 'n');
    }
    unmake(ep);
}

static void user_data(void **state) {
    other_t other;
    ep_t *ep = listening();
    addr_t *peer;
    uint64_t data = 1;
    char bytes[8];
    size_t length;
    int i;
    (void)state;
    other = start(visit_thrice);
    INVALID(doca_comm_channel_peer_addr_set_user_data(NULL, 1));
    for (i = 0; i < 3; i++) {
        length = sizeof bytes;
        OK(receive(ep, bytes, &length, &peer));
        INVALID(doca_comm_channel_peer_addr_get_user_data(NULL, &data));
        INVALID(doca_comm_channel_peer_addr_get_user_data(peer, NULL));
        OK(doca_comm_channel_peer_addr_get_user_data(peer, &data));
        MUST(data == 0); /* for new peers it is initialized to 0, also in the place of an old one */
        OK(doca_comm_channel_peer_addr_set_user_data(peer, UINT64_C(0xfeedfacecafebeef)));
        length = sizeof bytes;
        OK(receive(ep, bytes, &length, &peer));
        OK(doca_comm_channel_peer_addr_get_user_data(peer, &data));
        MUST(data == UINT64_C(0xfeedfacecafebeef)); /* identifies the peer address received from recvfrom */
        length = sizeof bytes;
        GIVES(ERROR_CONNECTION_RESET, receive(ep, bytes, &length, &peer));
        OK(doca_comm_channel_ep_disconnect(ep, peer));
        say(other.control, 'n');
    }
    finish(other);
    unmake(ep);
}

/* ---- peers that die, and many of them ----------------------------------------------------------------------------------------- */

static void a_killed_service(void **state) {
    other_t other = start_echo();
    addr_t *peer, *from;
    ep_t *ep;
    char bytes[16];
    size_t length = sizeof bytes;
    doca_error_t result;
    (void)state;
    silence_ms = SOON_MS;
    ep = connected(&peer);
    talk_once(ep, peer, 8);
    kill(other.pid, SIGKILL);
    MUST(end_of(other) == 1000 + SIGKILL);
    result = doca_comm_channel_ep_sendto(ep, "x", 1, 0, peer);
    MUST(result == DOCA_SUCCESS || result == DOCA_ERROR_CONNECTION_RESET);
    GIVES(ERROR_CONNECTION_RESET, receive(ep, bytes, &length, &from)); /* a sleeping program learns it */
    MUST(from == peer);
    GIVES(ERROR_CONNECTION_RESET, doca_comm_channel_ep_sendto(ep, "x", 1, 0, peer));
    OK(doca_comm_channel_ep_disconnect(ep, peer));
    silence_ms = PATIENCE_MS;
    other = start_echo(); /* its successor has the same name at once */
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    talk_once(ep, peer, 9);
    unmake(ep);
    end_echo(other);
}

static void hang_around(void) {
    addr_t *peer;
    ep_t *ep = connected(&peer);
    OK(transmit(ep, "hello", 5, peer));
    serve_until_told(ep, control);
    _exit(2);
}

static void a_killed_client(void **state) {
    other_t killed, other;
    ep_t *ep;
    addr_t *first, *from;
    char bytes[16];
    size_t length = sizeof bytes;
    (void)state;
    silence_ms = 2 * SOON_MS;
    ep = listening();
    silence_ms = PATIENCE_MS;
    killed = start(hang_around);
    OK(receive(ep, bytes, &length, &first));
    kill(killed.pid, SIGKILL);
    MUST(end_of(killed) == 1000 + SIGKILL);
    length = sizeof bytes;
    GIVES(ERROR_CONNECTION_RESET, receive(ep, bytes, &length, &from));
    MUST(from == first);
    OK(doca_comm_channel_ep_disconnect(ep, from));
    other = start(hang_around); /* the service goes on */
    length = sizeof bytes;
    OK(receive(ep, bytes, &length, &from));
    kill(other.pid, SIGKILL);
    MUST(end_of(other) == 1000 + SIGKILL);
    unmake(ep); /* also with a peer that is dead and not known to be */
}

enum { CROWD = 4, EACH = 40, ROUNDS = 20 };

static void crowd_of_one_process(void) {
    ep_t *eps[EACH];
    addr_t *peers[EACH], *from;
    uint32_t each = strcmp(transport, "verbs") == 0 ? EACH / 4 : EACH; /* an endpoint of RDMA has megabytes for the adapter */
    uint32_t i, round;
    for (i = 0; i < each; i++) {
        eps[i] = connected(&peers[i]);
    }
    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < each; i++) {
            send_numbered(eps[i], (uint32_t)getpid() * 100 + round + i * 7, 300, peers[i]);
        }
        for (i = 0; i < each; i++) {
            expect_numbered(eps[i], (uint32_t)getpid() * 100 + round + i * 7, 300, &from);
            MUST(from == peers[i]);
        }
    }
    for (i = 0; i < each; i++) {
        unmake(eps[i]);
    }
}

static void many_clients(void **state) {
    other_t server = start_echo(), clients[CROWD];
    int i;
    (void)state;
    for (i = 0; i < CROWD; i++) {
        clients[i] = start(crowd_of_one_process);
    }
    for (i = 0; i < CROWD; i++) {
        finish(clients[i]);
    }
    end_echo(server);
}

/* Clients that come and go without a word leave nothing behind: the service never knows them. */
static void silent_visitors(void) {
    addr_t *peer;
    ep_t *ep = make();
    int i;
    for (i = 0; i < 20; i++) {
        OK(doca_comm_channel_ep_connect(ep, service, &peer));
        OK(doca_comm_channel_ep_disconnect(ep, peer));
    }
    unmake(ep);
}

/* Is refused, then is not. */
static void visit_once(void) {
    addr_t *peer;
    ep_t *ep;
    allocations_left = -1;
    ep = make();
    expect_nobody(ep, &peer);
    say(control, 'f');
    hear(control, 'n');
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    OK(transmit(ep, "hello", 5, peer));
    unmake(ep);
}

static void visitors(void **state) {
    other_t other;
    ep_t *ep = listening();
    addr_t *peer;
    int places = 0;
    (void)state;
    other = start(silent_visitors);
    serve_until_told(ep, other.control); /* which ends */
    finish(other);
    for (peer = ep->peers; peer != NULL; peer = peer->next) {
        places++;
    }
    MUST(places >= 1 && places <= 4);
    unmake(ep);
}

/* ---- who does not speak this protocol ----------------------------------------------------------------------------------------- */

static cci_connection_t *connect_as(cci_endpoint_t *endpoint, const char *uri, const char *data, uint32_t length,
                                    cci_conn_attribute_t attribute) {
    cci_event_t *event;
    cci_connection_t *connection = NULL;
    int ready = 0;
    MUST(cci_connect(endpoint, uri, data, length, attribute, NULL, 0, NULL) == CCI_SUCCESS);
    while (!ready) {
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == CCI_EVENT_CONNECT) {
            ready = 1;
            connection = event->connect.connection;
        }
        MUST(cci_return_event(event) == CCI_SUCCESS);
    }
    return connection;
}

static void strangers(void) {
    static const struct {
        const char *bytes;
        uint32_t length;
    } bad[] = {{"", 0}, {"\1", 1}, {"\3\0\0\0abcd", 8}, {"\3\0\0\0", 4}, {"\0\0\1\0x", 5}, {"\377\377\377\377x", 5},
               {"\0\0\0\1", 4}};
    struct doca_dev *dev = open_device();
    cci_endpoint_t *endpoint;
    cci_connection_t *connection;
    cci_event_t *event;
    char uri[500], request[200], named[DOCA__CC_SERVICE_NAME], *own;
    uint32_t length = 8 + (uint32_t)strlen(service), i, events = 1u << CCI_EVENT_DISCONNECT;
    MUST(cci_create_endpoint(dev->info.device, 0, &endpoint, NULL) == CCI_SUCCESS);
    MUST(cci_set_opt(endpoint, CCI_OPT_ENDPT_EVENT_MASK, &events) == CCI_SUCCESS);
    MUST(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &own) == CCI_SUCCESS);
    *strrchr(own, ':') = 0;
    doca__cc_service(service, named);
    snprintf(uri, sizeof uri, "%s/%s", own, named);
    snprintf(request, sizeof request, "DOCA-CC\1%s", service);
    MUST(connect_as(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO) == NULL);
    MUST(connect_as(endpoint, uri, request, length - 1, CCI_CONN_ATTR_RO) == NULL);
    MUST(connect_as(endpoint, uri, request, length + 1, CCI_CONN_ATTR_RO) == NULL);
    MUST(connect_as(endpoint, uri, request, length, CCI_CONN_ATTR_UU) == NULL);
    MUST(connect_as(endpoint, uri, service, length - 8, CCI_CONN_ATTR_RO) == NULL);
    for (i = 0; i < 2 * sizeof bad / sizeof *bad; i++) { /* at first, and in the middle of a message */
        int gone = 0;
        connection = connect_as(endpoint, uri, request, length, CCI_CONN_ATTR_RO);
        MUST(connection != NULL);
        if (i % 2) {
            MUST(cci_send(connection, "\20\0\0\0begun", 9, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        }
        MUST(cci_send(connection, bad[i / 2].bytes, bad[i / 2].length, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        while (!gone) {
            if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
                gone = event->type == CCI_EVENT_DISCONNECT;
                MUST(cci_return_event(event) == CCI_SUCCESS);
            }
        }
        MUST(cci_disconnect(connection) == CCI_SUCCESS);
    }
    free(own);
    MUST(cci_destroy_endpoint(endpoint) == CCI_SUCCESS);
    OK(doca_dev_close(dev));
}

static void nonsense(void **state) {
    other_t server = start_echo(), other = start(strangers);
    addr_t *peer;
    ep_t *ep = connected(&peer);
    (void)state;
    finish(other);
    talk_once(ep, peer, 10);
    unmake(ep);
    end_echo(server);
}

/* ---- what there is not enough of ------------------------------------------------------------------------------------------------ */

/* Connects, talks and leaves; NO_MEMORY wherever it comes from. */
static doca_error_t try_all(void) {
    struct doca_dev *dev = NULL;
    struct doca_devinfo **list;
    ep_t *ep = NULL;
    addr_t *peer;
    uint32_t count;
    doca_error_t result = doca_devinfo_list_create(&list, &count);
    if (!result) {
        result = count > 0 ? doca_dev_open(list[0], &dev) : DOCA_ERROR_NO_MEMORY;
        OK(doca_devinfo_list_destroy(list));
    }
    if (!result) result = doca_comm_channel_ep_create(&ep);
    if (!result) result = doca_comm_channel_ep_set_device(ep, dev);
    if (!result) result = doca_comm_channel_ep_connect(ep, service, &peer);
    if (ep) OK(doca_comm_channel_ep_destroy(ep));
    if (dev) OK(doca_dev_close(dev));
    return result;
}

/* Each allocation fails once, then all that follow. */
static void no_memory(void **state) {
    other_t other = start_echo();
    long i;
    int refused = 0;
    doca_error_t result = DOCA_ERROR_NO_MEMORY;
    (void)state;
    connect_ms = SOON_MS; /* where the answer has no place to stand it is a refusal */
    for (i = 0; result != DOCA_SUCCESS; i++) {
        allocations_left = i;
        result = try_all();
        allocations_left = -1;
        refused += result == DOCA_ERROR_NO_MEMORY;
        MUST(result == DOCA_SUCCESS || result == DOCA_ERROR_NO_MEMORY || result == DOCA_ERROR_INITIALIZATION ||
             result == DOCA_ERROR_DRIVER || result == DOCA_ERROR_CONNECTION_ABORTED);
        MUST(i < 1000);
    }
    MUST(refused >= 3 && i > 5);
    end_echo(other);
}

/* A service that has no memory for a new client refuses it, and serves the next. */
static void no_memory_for_clients(void **state) {
    other_t other;
    ep_t *ep = listening();
    addr_t *peer;
    char bytes[8];
    size_t length = sizeof bytes;
    (void)state;
    allocations_left = 0;
    other = start(visit_once);
    serve_until_told(ep, other.control);
    allocations_left = -1;
    hear(other.control, 'f');
    say(other.control, 'n');
    OK(receive(ep, bytes, &length, &peer));
    MUST(length == 5);
    length = sizeof bytes;
    GIVES(ERROR_CONNECTION_RESET, receive(ep, bytes, &length, &peer));
    finish(other);
    unmake(ep);
}

/* With ever more descriptors: first none of it works, then there are no event channels, at last all is there. */
static void few_descriptors(void) {
    addr_t *peer;
    ep_t *ep = make();
    doca_event_channel_t send_channel, recv_channel;
    doca_error_t result = DOCA_ERROR_UNKNOWN;
    struct rlimit limit, was;
    int without = 0, first = open("/dev/null", O_RDONLY);
    MUST(first > 0);
    memset(&was, 0, sizeof was);
    MUST(getrlimit(RLIMIT_NOFILE, &was) == 0);
    limit = was;
    for (limit.rlim_cur = (rlim_t)first + 1; result != DOCA_SUCCESS; limit.rlim_cur++) {
        MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        result = doca_comm_channel_ep_connect(ep, service, &peer);
        if (result == DOCA_SUCCESS) {
            result = doca_comm_channel_ep_get_event_channel(ep, &send_channel, &recv_channel);
            if (result != DOCA_SUCCESS) {
                GIVES(ERROR_NOT_FOUND, result);
                without++;
            }
            OK(doca_comm_channel_ep_sendto(ep, "x", 1, 0, peer)); /* one can poll without */
            OK(doca_comm_channel_ep_disconnect(ep, peer));
        }
        MUST(limit.rlim_cur < was.rlim_cur);
    }
    MUST(without > 0);
    MUST(setrlimit(RLIMIT_NOFILE, &was) == 0);
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    talk_once(ep, peer, 12);
    close(first);
    unmake(ep);
}

static void no_descriptors(void **state) {
    other_t server = start_echo();
    (void)state;
    finish(start(few_descriptors));
    end_echo(server);
}

/* ---- two computers --------------------------------------------------------------------------------------------------------------- */

enum { NOT_ALLOWED = 77 };

static void configure(const char *interface) {
    FILE *file = fopen(config, "w");
    MUST(file != NULL);
    fprintf(file, "[dpu]\ntransport = %s\n", transport);
    if (is_udp()) {
        fprintf(file, "interface = %s\nmtu = 1500\n", interface);
    }
    MUST(fclose(file) == 0);
}

static void a_computer_of_its_own(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) {
        exit(NOT_ALLOWED);
    }
}

/* This end of the cable, when it is up. */
static void use_cable(const char *interface) {
    struct doca_devinfo **list;
    uint32_t count = 0;
    int tries = 0;
    snprintf(config, sizeof config, "%s/%s", folder, interface);
    configure(interface);
    setenv("CCI_CONFIG", config, 1);
    while (count == 0) {
        OK(doca_devinfo_list_create(&list, &count));
        OK(doca_devinfo_list_destroy(list));
        MUST(tries++ < PATIENCE_MS / 10);
        poll(NULL, 0, 10);
    }
}

static void the_dpu(void) {
    a_computer_of_its_own();
    say(control, 'n');
    hear(control, 'c');
    use_cable("w1");
    echo();
}

static pid_t dpu_pid;

static void the_host(void) {
    char command[500];
    addr_t *peer;
    ep_t *ep;
    uint32_t i;
    a_computer_of_its_own();
    snprintf(command, sizeof command,
             "set -e; ip link add w0 type veth peer name w1 netns %d; ip addr add 10.77.0.1/24 dev w0; ip link set w0 up; "
             "nsenter -t %d -n ip addr add 10.77.0.2/24 dev w1; nsenter -t %d -n ip link set w1 up",
             (int)dpu_pid, (int)dpu_pid, (int)dpu_pid);
    if (system(command) != 0) {
        exit(NOT_ALLOWED);
    }
    say(control, 'c');
    hear(control, 'r');
    use_cable("w0");
    ep = make();
    expect_nobody(ep, &peer); /* on this computer there is none */
    setenv("DOCA_COMM_CHANNEL_DPU", "eth9=192.0.2.1,dpu=10.77.0.2", 1);
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    for (i = 0; i < 100; i++) {
        talk_once(ep, peer, i);
    }
    OK(doca_comm_channel_ep_disconnect(ep, peer));
    setenv("DOCA_COMM_CHANNEL_DPU", "10.77.0.2", 1);
    OK(doca_comm_channel_ep_connect(ep, service, &peer));
    talk_once(ep, peer, 101);
    OK(doca_comm_channel_ep_disconnect(ep, peer));
    MUST(system("ip link set w0 down") == 0);
    GIVES(ERROR_DRIVER, doca_comm_channel_ep_connect(ep, service, &peer)); /* the device is there, but down */
    unmake(ep);
}

static void two_computers(void **state) {
    other_t dpu, host;
    int is_allowed;
    (void)state;
    dpu = start(the_dpu);
    {
        struct pollfd sleeper = {dpu.control, POLLIN, 0};
        char byte = 0;
        MUST(poll(&sleeper, 1, PATIENCE_MS) == 1);
        is_allowed = read(dpu.control, &byte, 1) == 1 && byte == 'n';
    }
    dpu_pid = dpu.pid;
    if (is_allowed) {
        char byte = 0;
        host = start(the_host);
        is_allowed = read(host.control, &byte, 1) == 1 && byte == 'c';
        if (is_allowed) {
            say(dpu.control, 'c');
            hear(dpu.control, 'r');
            say(host.control, 'r');
            finish(host);
            end_echo(dpu);
            return;
        }
        MUST(end_of(host) == NOT_ALLOWED);
        kill(dpu.pid, SIGKILL);
    }
    (void)end_of(dpu);
    print_message("network namespaces and veth are for root, where the kernel has them\n");
    skip();
}

/* ---- all of it --------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *sentence;
    void (*run)(void **state);
} tests[] = {
    {"[get_max_message_size, ...] what there can be at most is told for each device", limits},
    {"[ep_set_device] devices and representors are found, and have names", devices},
    {"[ep_set_device, ep_set_device_rep] what was set is what one gets", devices_of_endpoints},
    {"[ep_set_max_msg_size, ...] sizes are increased to a minimum, and queues to a power of two", sizes},
    {"[ep_set_device, ...] properties of an active endpoint stay: BAD_STATE", active_endpoints_do_not_change},
    {"[ep_listen] statuses", listen_statuses},
    {"[ep_connect] statuses; before the service listens the connection fails", connect_statuses},
    {"[get_max_service_name_len] the longest name is a name", the_longest_name},
    {"[ep_listen] a name is found although somebody who never answers has its first port", taken_ports},
    {"[ep_connect] a service of another name refuses, and the right one is found behind it", refused_names},
    {"[ep_disconnect, ep_destroy] statuses; a new connection can be created on the endpoint", disconnect_statuses},
    {"[ep_disconnect] what was sent before arrives, then CONNECTION_RESET comes once", disconnecting_delivers},
    {"[ep_destroy] disconnecting is part of it", destroying_disconnects},
    {"[ep_disconnect] a service lets one client go and keeps the other", the_service_disconnects},
    {"[ep_recvfrom] statuses; a message longer than the buffer waits", recvfrom_statuses},
    {"[ep_sendto] statuses; a message longer than max_msg_size is refused", sendto_statuses},
    {"[ep_sendto] messages of up to 65,535 bytes arrive whole and in order", all_sizes},
    {"[ep_sendto] AGAIN if the send queue is full, an indication for each new empty slot, and nothing is lost", full_queues},
    {"[ep_sendto] two that send without receiving both get through", across},
    {"[ep_sendto] a full receive queue does not stop what this side sends", flooded},
    {"[ep_get_event_channel] statuses; owned by the endpoint", channel_statuses},
    {"[ep_event_handle_arm_recv, ep_event_handle_arm_send] an armed channel wakes, another does not", arming},
    {"[ep_event_handle_arm_recv] where nothing happens armed channels sleep", quiet_channels},
    {"[peer_addr_get_send_messages, ...] counts as of the last update_info", statistics},
    {"[peer_addr_set_user_data] is 0 for new peers and identifies the peer", user_data},
    {"[ep_recvfrom] CONNECTION_RESET from a service that was killed", a_killed_service},
    {"[ep_recvfrom] CONNECTION_RESET from a client that was killed", a_killed_client},
    {"[ep_listen] one service has many clients", many_clients},
    {"[ep_recvfrom] clients that leave without a message are nobody's business", visitors},
    {"[ep_recvfrom] who speaks another protocol is refused, or ends with CONNECTION_RESET", nonsense},
    {"[ep_connect] NO_MEMORY and others where each allocation fails, and nothing is lost", no_memory},
    {"[ep_recvfrom] a service without memory for a new client refuses it", no_memory_for_clients},
    {"[ep_get_event_channel] NOT_FOUND without descriptors for it", no_descriptors},
    {"[ep_connect] host and DPU in two network namespaces", two_computers},
};

static int begin(void **state) {
    static int number;
    (void)state;
    silence_ms = connect_ms = PATIENCE_MS;
    snprintf(service, sizeof service, "test-%d-%d", (int)getpid(), number++);
    return 0;
}

int main(int argc, char **argv) {
    enum { COUNT = sizeof tests / sizeof *tests };
    struct CMUnitTest chosen[COUNT];
    size_t i, count = 0;
    int failed;
    if (argc < 2 || (strcmp(argv[1], "udp") != 0 && strcmp(argv[1], "sisci") != 0 && strcmp(argv[1], "verbs") != 0)) {
        fprintf(stderr, "usage: doca udp|sisci|verbs [PART]\n");
        return 2;
    }
    transport = argv[1];
    (void)mkdir("build", 0777);
    (void)mkdir("build/tests", 0777);
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    snprintf(config, sizeof config, "%s/config", folder);
    configure("lo");
    setenv("CCI_CONFIG", config, 1);
    setenv("CCI_SISCI_DIR", folder, 1);
    unsetenv("DOCA_COMM_CHANNEL_DPU");
    for (i = 0; i < COUNT; i++) {
        if ((tests[i].run == two_computers || tests[i].run == no_descriptors) && !is_udp()) {
            continue; /* shared memory and a driver are one computer's; a link takes more descriptors than the channels */
        }
        if (argc < 3 || strstr(tests[i].sentence, argv[2]) != NULL) {
            chosen[count++] = (struct CMUnitTest){tests[i].sentence, tests[i].run, begin, NULL, NULL};
        }
    }
    failed = _cmocka_run_group_tests("doca", chosen, count, NULL, NULL);
    (void)unlink(config);
    snprintf(config, sizeof config, "%s/w0", folder);
    (void)unlink(config);
    snprintf(config, sizeof config, "%s/w1", folder);
    (void)unlink(config);
    (void)rmdir(folder);
    return failed;
}
