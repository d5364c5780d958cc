/* test_sisci_processes.c - the sisci transport between processes: peers that are killed, stopped, or write nonsense.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The other process is a child that serves: it accepts everybody, answers each message with the same bytes, and offers
 * memory. It includes the implementation as well, so it can do what a peer that means harm would do. Each test has a
 * directory of names of its own.
 */
#define CCI_IMPLEMENTATION
#include "tests/support/delays.h"

#include "cci_sisci.h"
#include "cci.h"
#include "tests/support/delays.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SECOND_NS UINT64_C(1000000000)
#define MEMORY_BYTES 300000u

static char directory[] = "/dev/shm/cci-test-XXXXXX";
static char configuration[256];
static cci_endpoint_t *endpoint;
static cci_connection_t *connection;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void start(const char *more) {
    static cci_setup_t setup;
    uint32_t caps;
    snprintf(configuration, sizeof configuration, "[shm]\ntransport = sisci\ndirectory = %s\n%s", directory, more);
    memset(&setup, 0, sizeof setup);
    setup.config = configuration;
    if (cci_setup(&setup) != CCI_SUCCESS || cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS) {
        _exit(3);
    }
}

/* ---- the other process ------------------------------------------------------------------------------------------- */

enum behaviour { BEHAVES, SCRIBBLES };

/* Writes over everything that this process can write of its peers' inboxes. */
static void scribble(cci_endpoint_t *of) {
    cci__sisci *ep = (cci__sisci *)(void *)(uintptr_t)of;
    cci_list_t *lists[2], *at;
    int i, n;
    lists[0] = &ep->links.hot;
    lists[1] = &ep->links.cold;
    for (i = 0; i < 2; i++) {
        for (at = lists[i]->next; at != lists[i]; at = at->next) {
            cci__sisci_link *link = CCI__CONTAINER(at, cci__sisci_link, node);
            size_t size = link->out.base ? CCI__SCI(SCIGetRemoteSegmentSize)(link->outbox.segment) : 0;
            for (n = 0; size > 0 && n < 64; n++) {
                uint64_t dice = next_random();
                uint32_t word = (uint32_t)next_random();
                if (dice % 4 == 0) { /* a record that looks sound: the receiver waits for this number */
                    uint8_t *line = link->out.ring + (size_t)(link->out.head & (link->out.lines - 1)) * CCI__SISCI_LINE;
                    uint32_t type = (uint32_t)(dice >> 8) % (CCI__SISCI_MAP_REQUEST + 1), length = (uint32_t)(dice >> 16) & 0xffff;
                    int k;
                    for (k = 8; k < 64; k++) {
                        line[k] = (uint8_t)next_random();
                    }
                    if (dice % 8 == 0) {
                        memcpy(line + 8, &ep->base.conns.counter, 4);
                    }
                    cci__sisci_store(line + 4, type | (dice % 3 ? length % 1100 : length) << 16);
                    cci__sisci_store(line, link->out.head * 2 + 1);
                    link->out.head += dice % 5 == 0 ? 2 : 1;
                } else if (dice % 4 == 1) { /* the words at the beginning */
                    cci__sisci_store(link->out.base + CCI__SISCI_AT_ACK + 4 * (dice >> 8) % 768, dice % 3 ? word % 16 : word);
                } else {
                    cci__sisci_store(link->out.base + 4 * ((dice >> 8) % (size / 4)), word);
                }
            }
        }
    }
}

static void serve(int uri_pipe, enum behaviour behaviour, const char *more) {
    static uint8_t memory[MEMORY_BYTES];
    cci_endpoint_t *mine;
    cci_os_handle_t fd;
    cci_rma_handle_t *handle;
    cci_event_t *event;
    char *uri;
    uint32_t taken = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    start(more);
    if (cci_create_endpoint(NULL, 0, &mine, &fd) != CCI_SUCCESS || cci_get_opt(mine, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS ||
        cci_rma_register(mine, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) != CCI_SUCCESS ||
        write(uri_pipe, uri, strlen(uri) + 1) < 0) {
        _exit(2);
    }
    for (;;) {
        struct pollfd item;
        item.fd = fd;
        item.events = POLLIN;
        (void)poll(&item, 1, behaviour == BEHAVES ? -1 : 1);
        while (cci_get_event(mine, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                (void)cci_accept(event, NULL);
            } else if (event->type == CCI_EVENT_ACCEPT && event->accept.connection) {
                (void)cci_send(event->accept.connection, handle, sizeof *handle, NULL, CCI_FLAG_SILENT);
            } else if (event->type == CCI_EVENT_RECV) {
                (void)cci_send(event->recv.connection, event->recv.ptr, event->recv.len, NULL, CCI_FLAG_SILENT);
                taken++;
            }
            (void)cci_return_event(event);
        }
        if (behaviour == SCRIBBLES && taken > 3) {
            scribble(mine);
        }
    }
}

/* Before this process begins to use the library: a child can't go on with its parent's endpoints. */
static pid_t begin_server(enum behaviour behaviour, const char *more, char *uri, size_t uri_size) {
    int ends[2];
    pid_t pid;
    assert_int_equal(pipe(ends), 0);
    random_state += 2 * next_random();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        serve(ends[1], behaviour, more);
    }
    close(ends[1]);
    assert_true(read(ends[0], uri, uri_size) > 0);
    close(ends[0]);
    return pid;
}

static void end_server(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- this one ------------------------------------------------------------------------------------------------------ */

static cci_event_t *await(cci_event_type_t type) {
    uint64_t end_ns = cci__sci_now() + 30 * SECOND_NS;
    cci_event_t *event;
    while (cci__sci_now() < end_ns) {
        if (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
            continue;
        }
        if (event->type == type) {
            return event;
        }
        (void)cci_return_event(event);
    }
    fail_msg("no %s came", cci_event_type_str(type));
    return NULL;
}

/* Connects; the server's first message is the handle of its memory. */
static void connect_to(const char *uri, struct cci_rma_handle *handle) {
    cci_event_t *event;
    assert_int_equal(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL), CCI_SUCCESS);
    event = await(CCI_EVENT_CONNECT);
    assert_int_equal(event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    (void)cci_return_event(event);
    event = await(CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, sizeof *handle);
    memcpy(handle, event->recv.ptr, sizeof *handle);
    (void)cci_return_event(event);
}

static void begin(const char *more) {
    start(more);
    assert_int_equal(cci_create_endpoint(NULL, 0, &endpoint, NULL), CCI_SUCCESS);
}

static int count_names(void) {
    DIR *names = opendir(directory);
    int count = 0;
    while (names && readdir(names)) {
        count++;
    }
    closedir(names);
    return count - 2;
}

static void a_killed_peer(void **state) {
    static uint8_t bytes[8192];
    struct cci_rma_handle handle;
    char uris[10][64];
    pid_t pids[10];
    int round;
    (void)state;
    for (round = 0; round < 10; round++) {
        pids[round] = begin_server(BEHAVES, "", uris[round], sizeof uris[round]);
    }
    begin("");
    for (round = 0; round < 10; round++) {
        int sent = 0, done = 0, until = 20 + 150 * round, is_dead = 0;
        uint64_t end_ns = cci__sci_now() + 60 * SECOND_NS;
        connect_to(uris[round], &handle);
        while (!is_dead || done < sent) {
            cci_event_t *event;
            if (!is_dead && sent >= until) {
                end_server(pids[round]);
                is_dead = 1;
            }
            if (!is_dead && cci_send(connection, bytes, (uint32_t)(sent * 37 % 8000), NULL, 0) == CCI_SUCCESS) {
                sent++;
            }
            if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
                if (event->type == CCI_EVENT_SEND) {
                    assert_true(event->send.status == CCI_SUCCESS || event->send.status == CCI_ERR_DISCONNECTED);
                    done++;
                }
                (void)cci_return_event(event);
            }
            assert_true(cci__sci_now() < end_ns);
        }
        while (cci_send(connection, bytes, 8, NULL, CCI_FLAG_SILENT) != CCI_ERR_DISCONNECTED) {
            cci_event_t *event;
            if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
                (void)cci_return_event(event);
            }
            assert_true(cci__sci_now() < end_ns);
        }
        assert_int_equal(cci_disconnect(connection), CCI_SUCCESS);
    }
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_true(count_names() > 0); /* the dead ones' */
    begin("");
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
    assert_int_equal(count_names(), 0);
}

static void a_stopped_peer(void **state) {
    struct cci_rma_handle handle;
    uint32_t timeout_us = 200000;
    cci_event_t *event;
    char uri[64];
    pid_t pid = begin_server(BEHAVES, "", uri, sizeof uri);
    (void)state;
    begin("");
    connect_to(uri, &handle);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_int_equal(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us), CCI_SUCCESS);
    assert_int_equal(cci_send(connection, "there?", 6, NULL, 0), CCI_SUCCESS);
    event = await(CCI_EVENT_SEND);
    assert_int_equal(event->send.status, CCI_ETIMEDOUT);
    (void)cci_return_event(event);
    assert_int_equal(cci_send(connection, "still there?", 12, NULL, 0), CCI_ERR_DISCONNECTED); /* 4.4.3.1 */
    assert_int_equal(cci_disconnect(connection), CCI_SUCCESS);
    kill(pid, SIGCONT);
    connect_to(uri, &handle);
    assert_int_equal(cci_send(connection, "again", 5, NULL, 0), CCI_SUCCESS);
    event = await(CCI_EVENT_RECV);
    assert_int_equal(event->recv.len, 5);
    (void)cci_return_event(event);
    end_server(pid);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
}

static void moves_memory(const char *more) {
    static uint8_t out[MEMORY_BYTES], back[MEMORY_BYTES];
    struct cci_rma_handle handle;
    cci_rma_handle_t *from, *to;
    char uri[64];
    pid_t pid = begin_server(BEHAVES, more, uri, sizeof uri);
    uint32_t i, length;
    begin(more);
    connect_to(uri, &handle);
    assert_int_equal(cci_rma_register(endpoint, out, sizeof out, 0, &from), CCI_SUCCESS);
    assert_int_equal(cci_rma_register(endpoint, back, sizeof back, 0, &to), CCI_SUCCESS);
    for (length = 1; length <= MEMORY_BYTES; length = length * 5 + 3) {
        for (i = 0; i < length; i++) {
            out[i] = (uint8_t)next_random();
        }
        assert_int_equal(cci_rma(connection, NULL, 0, from, 0, &handle, MEMORY_BYTES - length, length, NULL,
                                 CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), CCI_SUCCESS);
        assert_int_equal(cci_rma(connection, NULL, 0, to, 0, &handle, MEMORY_BYTES - length, length, NULL,
                                 CCI_FLAG_READ | CCI_FLAG_BLOCKING), CCI_SUCCESS);
        assert_memory_equal(out, back, length);
    }
    assert_int_equal(cci_rma(connection, NULL, 0, from, 0, &handle, MEMORY_BYTES - 7, 8, NULL,
                             CCI_FLAG_WRITE | CCI_FLAG_BLOCKING), CCI_ERR_RMA_HANDLE);
    end_server(pid);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
}

static void memory_by_the_kernel(void **state) {
    (void)state;
    moves_memory("");
}

static void memory_through_slots(void **state) {
    (void)state;
    moves_memory("rma = bounce\n");
}

static void a_scribbling_peer(void **state) {
    static uint8_t bytes[8192];
    struct cci_rma_handle handle;
    cci_connection_t *good;
    cci_event_t *event;
    char good_uri[64], uris[20][64];
    pid_t good_pid = begin_server(BEHAVES, "", good_uri, sizeof good_uri), pids[20];
    uint32_t round, echoed = 0;
    (void)state;
    for (round = 0; round < 20; round++) {
        pids[round] = begin_server(SCRIBBLES, "", uris[round], sizeof uris[round]);
    }
    begin("");
    connect_to(good_uri, &handle);
    good = connection;
    for (round = 0; round < 20; round++) {
        uint64_t end_ns = cci__sci_now() + SECOND_NS / 20, patience_ns = cci__sci_now() + 60 * SECOND_NS;
        uint32_t before = echoed;
        int has_asked = 0; /* and no answer is left for connect_to(), which takes the first message for the peer's */
        connect_to(uris[round], &handle);
        while (cci__sci_now() < end_ns || echoed == before || has_asked) {
            assert_true(cci__sci_now() < patience_ns);
            (void)cci_send(connection, bytes, (uint32_t)next_random() % 8000, NULL, CCI_FLAG_SILENT);
            while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
                if (event->type == CCI_EVENT_RECV) {
                    assert_true(event->recv.len <= 8192);
                    if (event->recv.connection == good) {
                        assert_memory_equal(event->recv.ptr, "good", 5);
                        echoed++;
                        has_asked = 0;
                    }
                }
                if (event->type == CCI_EVENT_CONNECT_REQUEST) {
                    (void)cci_reject(event);
                }
                (void)cci_return_event(event);
            }
            if (!has_asked && (cci__sci_now() < end_ns || echoed == before)) {
                assert_int_equal(cci_send(good, "good", 5, NULL, CCI_FLAG_SILENT), CCI_SUCCESS);
                has_asked = 1;
            }
        }
        end_server(pids[round]);
        (void)cci_disconnect(connection);
    }
    end_server(good_pid);
    assert_int_equal(cci_finalize(), CCI_SUCCESS);
}

static int empty_directory(void **state) {
    (void)state;
    return rmdir(directory);
}

static int sweep(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    start("");
    if (cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS || cci_finalize() != CCI_SUCCESS) {
        return -1;
    }
    return 0;
}

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"a peer that is killed is known to be gone, and its names are swept", a_killed_peer, NULL, sweep, NULL},
        {"a peer that is stopped times out, which ends the connection; when it goes on another can be opened", a_stopped_peer, NULL, sweep, NULL},
        {"RMA to another process, copied by the kernel", memory_by_the_kernel, NULL, sweep, NULL},
        {"RMA to another process, through slots", memory_through_slots, NULL, sweep, NULL},
        {"a peer that scribbles over all it can map crashes nobody, and others are served", a_scribbling_peer, NULL, sweep,
         NULL},
    };
    return cmocka_run_group_tests(tests, make_directory, empty_directory);
}
