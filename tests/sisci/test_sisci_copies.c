/* test_sisci_copies.c - registrations that end while peers copy: what is waited for, and what is not.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A peer is held between its look at the registration and its copy, put off by the system as if it were frozen or got no
 * processor. Another process lets it go on after a while: when the call that ends the registration returns, that must have
 * happened. A slow machine makes a test slow, and may hide a fault, but never shows one.
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

#define PATIENCE_NS (120 * UINT64_C(1000000000))
#define SIZE (4u << 20) /* several pieces */
#define PIECE ((size_t)CCI__SISCI_VM_PIECE)

#include "tests/support/sisci_cci.h"

/* What the processes of a test share. */
typedef struct scene {
    char uri[64];
    struct cci_rma_handle handle;
    int is_mapped;  /* the memory is of cci_rma_alloc() */
    int burns;      /* another thread of the peer's runs all the time */
    int delay_ms;   /* before the peer goes on */
    int went_on;    /* it was allowed to */
    int is_over;    /* the peer is to end */
    int status;     /* of its RMA */
    int to_peer[2], from_peer[2], to_helper[2];
} scene;
static scene *shared;

static void put(int fd) {
    CHECK(write(fd, "!", 1) == 1);
}

static void get(int fd) {
    char letter;
    CHECK(read(fd, &letter, 1) == 1);
}

static pid_t fork_child(void (*run)(void)) {
    pid_t pid;
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        in_child = 1;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    return pid;
}

static void end_of(pid_t pid) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void pause_ms(int ms) {
    (void)poll(NULL, 0, ms);
}

/* ---- the peer ---------------------------------------------------------------------------------------------------- */

static uint8_t *source;
static cci_rma_handle_t *local;

static void connect_and_wait(void) {
    uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
    cci_event_t *event;
    begin("", 0);
    get(shared->to_peer[0]);
    CHECK(cci_connect(endpoint, shared->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    while (cci_get_event(endpoint, &event) != CCI_SUCCESS) {
        CHECK(cci__sci_now() < end_ns);
    }
    CHECK(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
    connection = event->connect.connection;
    CHECK(cci_return_event(event) == CCI_SUCCESS);
    source = (uint8_t *)malloc(SIZE);
    CHECK(source != NULL);
    memset(source, 7, SIZE);
    CHECK(cci_rma_register(endpoint, source, SIZE, 0, &local) == CCI_SUCCESS);
}

static int copy(uint64_t length) {
    return cci_rma(connection, NULL, 0, local, 0, (cci_rma_handle_t *)&shared->handle, 0, length, NULL,
                   CCI_FLAG_WRITE | CCI_FLAG_BLOCKING);
}

/* Until its memory is mapped, the kernel copies. */
static void copy_until_mapped(void) {
    while (shared->is_mapped && ((cci__sisci *)(void *)(uintptr_t)endpoint)->rma.mapped_bytes == 0) {
        CHECK(copy(1) == CCI_SUCCESS);
    }
}

static void *copy_held(void *argument) {
    held_in = shared->to_peer[0];
    held_out = shared->from_peer[1];
    held_frozen = 1;
    CCI__SCI_STORE(held_at, (int)CCI__SCI_AT_COPY);
    shared->status = copy(SIZE);
    CCI__SCI_STORE(shared->is_over, 1);
    return argument;
}

/* Is held in the middle of its first copy, and says how it ended. */
static void is_held(void) {
    pthread_t thread;
    connect_and_wait();
    copy_until_mapped();
    CHECK(pthread_create(&thread, NULL, copy_held, NULL) == 0);
    while (shared->burns && !CCI__SCI_LOAD(shared->is_over)) {
    }
    CHECK(pthread_join(thread, NULL) == 0);
    put(shared->from_peer[1]);
    get(shared->to_peer[0]);
}

/* Lets the peer go on after a while. */
static void help(void) {
    get(shared->to_helper[0]);
    pause_ms(shared->delay_ms);
    CCI__SCI_STORE(shared->went_on, 1);
    put(shared->to_peer[1]);
}

/* ---- this process ------------------------------------------------------------------------------------------------ */

static uint8_t *memory;
static cci_rma_handle_t *handle;

static void offer(int is_mapped) {
    static uint8_t own[SIZE];
    void *made = own;
    char *uri;
    memset(own, 0, sizeof own);
    begin("", 0);
    CHECK(!is_mapped || cci_rma_alloc(endpoint, SIZE, &made) == CCI_SUCCESS);
    memory = (uint8_t *)made;
    CHECK(cci_rma_register(endpoint, memory, SIZE, CCI_FLAG_WRITE, &handle) == CCI_SUCCESS);
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    snprintf(shared->uri, sizeof shared->uri, "%s", uri);
    free(uri);
    shared->handle = *handle;
    put(shared->to_peer[1]);
}

static void serve_until_told(int fd) {
    serve_until(fd);
    get(fd);
}

static const cci__sisci_link *only_link(void) {
    const cci__sisci *ep = (const cci__sisci *)(const void *)(uintptr_t)endpoint;
    CHECK(ep->marks.count == 1 && ep->marks.of[0].link != NULL);
    return ep->marks.of[0].link;
}

static void open_scene(void) {
    memset(shared, 0, sizeof *shared);
    CHECK(pipe(shared->to_peer) == 0 && pipe(shared->from_peer) == 0 && pipe(shared->to_helper) == 0);
}

static void close_scene(void) {
    int i;
    for (i = 0; i < 2; i++) {
        close(shared->to_peer[i]);
        close(shared->from_peer[i]);
        close(shared->to_helper[i]);
    }
}

enum way { DEREGISTER, DESTROY, FINALIZE };

/* A peer is in the middle of a copy when the registration ends, and goes on after `delay_ms`. */
static void ends_during_a_copy(enum way way, int is_mapped, int burns, int delay_ms) {
    static uint8_t before[SIZE];
    int is_readable = !is_mapped || way == DEREGISTER, ended = -1;
    pid_t peer, helper;
    open_scene();
    shared->is_mapped = is_mapped;
    shared->burns = burns;
    shared->delay_ms = delay_ms;
    peer = fork_child(is_held);
    helper = fork_child(help);
    offer(is_mapped);
    serve_until_told(shared->from_peer[0]); /* it is held */
    put(shared->to_helper[1]);
    ended = way == DEREGISTER ? cci_rma_deregister(endpoint, handle)
            : way == DESTROY  ? cci_destroy_endpoint(endpoint)
                              : cci_finalize();
    CHECK(ended == CCI_SUCCESS);
    CHECK(CCI__SCI_LOAD(shared->went_on));
    if (is_readable) {
        memcpy(before, memory, SIZE);
        CHECK(before[0] == 7 && before[PIECE - 1] == 7 && before[PIECE] == 0 && before[SIZE - 1] == 0);
    }
    if (way == DEREGISTER) {
        CHECK(only_link()->state == CCI__SISCI_OPEN && only_link()->join.news.out >= 0);
        serve_until_told(shared->from_peer[0]);
    } else {
        get(shared->from_peer[0]);
    }
    CHECK(shared->status == (way == DEREGISTER ? CCI_ERR_RMA_HANDLE : CCI_ERR_DISCONNECTED));
    CHECK(!is_readable || memcmp(before, memory, SIZE) == 0);
    put(shared->to_peer[1]);
    end_of(peer);
    end_of(helper);
    if (way != FINALIZE) {
        CHECK(cci_finalize() == CCI_SUCCESS);
    }
    close_scene();
}

static void destroying(void **state) {
    (void)state;
    ends_during_a_copy(DESTROY, 0, 0, 300);
    ends_during_a_copy(DESTROY, 1, 0, 300);
}

static void finalizing(void **state) {
    (void)state;
    ends_during_a_copy(FINALIZE, 0, 0, 300);
    ends_during_a_copy(FINALIZE, 1, 0, 300);
}

static void a_peer_without_a_processor(void **state) {
    (void)state;
    ends_during_a_copy(DEREGISTER, 0, 0, 2500);
    ends_during_a_copy(DEREGISTER, 1, 0, 2500);
}

static void a_peer_with_other_threads(void **state) {
    (void)state;
    ends_during_a_copy(DEREGISTER, 0, 1, 2500);
    ends_during_a_copy(DEREGISTER, 1, 1, 2500);
}

/* Copies one piece after the other, each of which takes some time. */
static void copies_all_the_time(void) {
    connect_and_wait();
    copy_until_mapped();
    delays_us = 40000;
    put(shared->from_peer[1]);
    while (!CCI__SCI_LOAD(shared->is_over)) {
        CHECK(copy(SIZE) == CCI_SUCCESS);
    }
    put(shared->from_peer[1]);
    get(shared->to_peer[0]);
}

/* On one processor this process looks only while the peer is delayed, which is in the middle of a copy. */
static void streams(int is_mapped) {
    cpu_set_t all, one;
    static uint8_t other[64];
    cci_rma_handle_t *unrelated;
    size_t cpu = 0;
    int round;
    pid_t peer;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    open_scene();
    shared->is_mapped = is_mapped;
    peer = fork_child(copies_all_the_time);
    offer(is_mapped);
    serve_until_told(shared->from_peer[0]);
    for (round = 0; round < 20; round++) {
        CHECK(cci_rma_register(endpoint, other, sizeof other, CCI_FLAG_READ, &unrelated) == CCI_SUCCESS);
        pause_ms(20);
        CHECK(cci_rma_deregister(endpoint, unrelated) == CCI_SUCCESS);
        CHECK(only_link()->state == CCI__SISCI_OPEN && only_link()->join.news.out >= 0);
    }
    CCI__SCI_STORE(shared->is_over, 1);
    serve_until_told(shared->from_peer[0]);
    put(shared->to_peer[1]);
    end_of(peer);
    CHECK(cci_finalize() == CCI_SUCCESS);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    close_scene();
}

static void unrelated_memory(void **state) {
    (void)state;
    streams(0);
    streams(1);
}

/* Says that it copies, and does not. */
static void only_says_so(void) {
    cci__sisci_link *link;
    connect_and_wait();
    copy_until_mapped();
    link = ((cci__sisci_conn *)(void *)(uintptr_t)connection)->link;
    cci__sisci_write_word(link, CCI__SISCI_AT_BUSY, link->rma.copies + 1);
    put(shared->from_peer[1]);
    while (shared->burns && !CCI__SCI_LOAD(shared->is_over)) {
    }
    get(shared->to_peer[0]);
}

static void not_believed(int burns) {
    pid_t peer;
    open_scene();
    shared->burns = burns;
    peer = fork_child(only_says_so);
    offer(0);
    serve_until_told(shared->from_peer[0]);
    CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS); /* else it waits for ever */
    CHECK(only_link()->join.news.out < 0);
    CCI__SCI_STORE(shared->is_over, 1);
    put(shared->to_peer[1]);
    end_of(peer);
    CHECK(cci_finalize() == CCI_SUCCESS);
    close_scene();
}

static void a_peer_that_lies(void **state) {
    (void)state;
    not_believed(0);
    not_believed(1);
}

static int sweep(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    begin("", 0);
    return cci_finalize() == CCI_SUCCESS ? 0 : -1;
}

static int make_scene(void **state) {
    (void)state;
    alarm(900);
    shared = (scene *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared != MAP_FAILED && mkdtemp(directory) ? 0 : -1;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(destroying, "cci_destroy_endpoint() waits for copies that are under way, and no other begins"),
        TEST(finalizing, "so does cci_finalize()"),
        TEST(a_peer_without_a_processor, "cci_rma_deregister() waits for a peer that gets no processor in the middle of a copy"),
        TEST(a_peer_with_other_threads, "and for one of whose threads another one runs meanwhile"),
        TEST(unrelated_memory, "a peer that copies all the time keeps its link when other memory is deregistered"),
        TEST(a_peer_that_lies, "cci_rma_deregister() does not wait for a peer that says it copies and does other things"),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]); /* with * and ? */
    }
    return cmocka_run_group_tests(tests, make_scene, empty_directory);
}
