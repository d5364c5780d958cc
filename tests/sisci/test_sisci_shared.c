/* test_sisci_shared.c - memory of cci_rma_alloc() that peers map, and multicast groups, between processes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The other processes are children, forked before this one uses the library. They include the implementation as well, so
 * they can do what a peer that means harm would do, and tests can see whether memory is mapped. Unless a test says
 * otherwise, no memory is reached in another way than by mapping it (rma = map).
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
#include <sys/resource.h>
#include <sys/wait.h>

#define SECOND_NS UINT64_C(1000000000)
#define PATIENCE_NS (60 * SECOND_NS)
#define SIZE 300000u
#define BOTH (CCI_FLAG_READ | CCI_FLAG_WRITE)

#include "tests/support/sisci_cci.h"

static cci__sisci *inside(void) {
    return (cci__sisci *)(void *)(uintptr_t)endpoint;
}

static cci_event_t *await(cci_event_type_t type) {
    uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
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
    failed(__LINE__, cci_event_type_str(type));
    return NULL;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    int in, out; /* of the child */
} child;

static child fork_child(void (*run)(int in, int out)) {
    child c;
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    fflush(NULL);
    c.pid = fork();
    CHECK(c.pid >= 0);
    if (c.pid == 0) {
        in_child = 1;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(120);
        close(to[1]);
        close(from[0]);
        run(to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    c.in = to[1];
    c.out = from[0];
    return c;
}

static void put(int fd, const void *bytes, size_t size) {
    CHECK(write(fd, bytes, size) == (ssize_t)size);
}

static void get(int fd, void *bytes, size_t size) {
    CHECK(read(fd, bytes, size) == (ssize_t)size);
}

/* 0 when all checks of the child were true. */
static int end_of(child *c) {
    int status = -1;
    close(c->in);
    close(c->out);
    CHECK(waitpid(c->pid, &status, 0) == c->pid);
    return status;
}

static void end_child(child *c) {
    kill(c->pid, SIGKILL);
    (void)end_of(c);
}

static void tell_uri(int out) {
    char *uri, text[64];
    CHECK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    memset(text, 0, sizeof text);
    snprintf(text, sizeof text, "%s", uri);
    free(uri);
    put(out, text, sizeof text);
}

static void connect_to(const child *c) {
    cci_event_t *event;
    char uri[64];
    get(c->out, uri, sizeof uri);
    CHECK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    event = await(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_SUCCESS);
    connection = event->connect.connection;
    (void)cci_return_event(event);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint8_t byte_at(uint32_t seed, size_t at) {
    return (uint8_t)((at + seed * 37u) * 0x9E3779B1u >> 13);
}

static void fill(uint8_t *bytes, size_t size, uint32_t seed) {
    size_t i;
    for (i = 0; i < size; i++) {
        bytes[i] = byte_at(seed, i);
    }
}

static int holds(const uint8_t *bytes, size_t size, uint32_t seed) {
    size_t i;
    for (i = 0; i < size && bytes[i] == byte_at(seed, i); i++) {
    }
    return i == size;
}

static uint8_t *take(uint64_t size) {
    void *memory = NULL;
    CHECK(cci_rma_alloc(endpoint, size, &memory) == CCI_SUCCESS);
    return (uint8_t *)memory;
}

static uint8_t *mine; /* local memory of an RMA */
static cci_rma_handle_t *local;

static void take_local(void) {
    mine = (uint8_t *)calloc(1, SIZE);
    CHECK(mine != NULL && cci_rma_register(endpoint, mine, SIZE, 0, &local) == CCI_SUCCESS);
}

static void give_local_back(void) {
    CHECK(cci_rma_deregister(endpoint, local) == CCI_SUCCESS);
    free(mine);
}

static int rma(const struct cci_rma_handle *remote, uint64_t offset, uint64_t length, int flag) {
    return cci_rma(connection, NULL, 0, local, 0, (cci_rma_handle_t *)(uintptr_t)remote, offset, length, NULL,
                   flag | CCI_FLAG_BLOCKING);
}

static cci__sisci_views *views(void) {
    return ((cci__sisci_conn *)(void *)(uintptr_t)connection)->link->rma.views;
}

static uint32_t mapped_count(void) {
    uint32_t i, count = 0;
    for (i = 0; views() && i < CCI__SISCI_VIEWS; i++) {
        count += views()->block[i].base != NULL;
    }
    return count;
}

/* Serves with memory that is all of seed 1, and registered for both; ends with the seed 2 in it. */
static void serve_memory(int in, int out) {
    cci_rma_handle_t *handle;
    uint8_t *memory;
    char letter;
    begin("rma = map\n", 0);
    tell_uri(out);
    memory = take(SIZE);
    fill(memory, SIZE, 1);
    CHECK(cci_rma_register(endpoint, memory, SIZE, BOTH, &handle) == CCI_SUCCESS);
    put(out, handle, sizeof *handle);
    serve_until(in);
    get(in, &letter, 1);
    CHECK(holds(memory, SIZE, 2));
    CHECK(cci_rma_free(endpoint, memory) == CCI_EBUSY);
    CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS);
    CHECK(cci_rma_free(endpoint, memory) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void a_stopped_target(void **state) {
    child c = fork_child(serve_memory);
    struct cci_rma_handle handle;
    (void)state;
    begin("rma = map\n", 0);
    connect_to(&c);
    get(c.out, &handle, sizeof handle);
    take_local();
    CHECK(rma(&handle, 0, 1, CCI_FLAG_READ) == CCI_SUCCESS);
    CHECK(mapped_count() == 1 && inside()->rma.mapped_bytes == 1);
    CHECK(kill(c.pid, SIGSTOP) == 0 && waitpid(c.pid, NULL, WUNTRACED) == c.pid);
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_READ) == CCI_SUCCESS);
    CHECK(holds(mine, SIZE, 1));
    fill(mine, SIZE, 2);
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_WRITE) == CCI_SUCCESS);
    CHECK(rma(&handle, 1, SIZE, CCI_FLAG_WRITE) == CCI_ERR_RMA_HANDLE);
    CHECK(rma(&handle, UINT64_MAX - 5, 7, CCI_FLAG_WRITE) == CCI_ERR_RMA_HANDLE);
    CHECK(inside()->rma.mapped_bytes == 1 + 2 * SIZE);
    CHECK(kill(c.pid, SIGCONT) == 0);
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Memory of which one half may be read and the other written. */
static void serve_halves(int in, int out) {
    cci_rma_handle_t *reads, *writes;
    uint8_t *first, *second;
    char letter;
    begin("rma = map\n", 0);
    tell_uri(out);
    first = take(SIZE);
    second = take(SIZE);
    fill(first, SIZE, 1);
    CHECK(cci_rma_register(endpoint, first, SIZE, CCI_FLAG_READ, &reads) == CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, second + 10, SIZE - 20, CCI_FLAG_WRITE, &writes) == CCI_SUCCESS);
    put(out, reads, sizeof *reads);
    put(out, writes, sizeof *writes);
    serve_until(in);
    get(in, &letter, 1);
    CHECK(cci_rma_deregister(endpoint, reads) == CCI_SUCCESS);
    CHECK(cci_rma_register(endpoint, first, SIZE, BOTH, &reads) == CCI_SUCCESS);
    put(out, reads, sizeof *reads);
    serve_until(in);
    get(in, &letter, 1);
    CHECK(holds(first, SIZE, 2));
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void reading_and_writing(void **state) {
    child c = fork_child(serve_halves);
    struct cci_rma_handle reads, writes;
    const cci__sisci_view *view;
    (void)state;
    begin("rma = map\n", 0);
    connect_to(&c);
    get(c.out, &reads, sizeof reads);
    get(c.out, &writes, sizeof writes);
    take_local();
    CHECK(rma(&reads, 0, 8, CCI_FLAG_WRITE) == CCI_ERR_RMA_HANDLE);
    CHECK(rma(&reads, 0, SIZE, CCI_FLAG_READ) == CCI_SUCCESS && holds(mine, SIZE, 1));
    view = &views()->block[0];
    CHECK(view->base && !view->is_writable);
    CHECK(mprotect(view->base, 4096, PROT_READ | PROT_WRITE) != 0);
    view = &views()->registry;
    CHECK(mprotect(view->base, 4096, PROT_READ | PROT_WRITE) != 0);
    CHECK(rma(&writes, 0, 8, CCI_FLAG_READ) == CCI_ERR_RMA_HANDLE);
    CHECK(rma(&writes, 0, SIZE - 20, CCI_FLAG_WRITE) == CCI_SUCCESS);
    CHECK(rma(&writes, 1, SIZE - 20, CCI_FLAG_WRITE) == CCI_ERR_RMA_HANDLE);
    CHECK(mapped_count() == 2 && views()->block[1].is_writable);
    put(c.in, "!", 1);
    get(c.out, &writes, sizeof writes); /* the first memory may be written now, so it is mapped anew */
    fill(mine, SIZE, 2);
    CHECK(rma(&reads, 0, 8, CCI_FLAG_READ) == CCI_ERR_RMA_HANDLE);
    CHECK(rma(&writes, 0, SIZE, CCI_FLAG_WRITE) == CCI_SUCCESS);
    CHECK(mapped_count() == 2 && views()->block[0].is_writable);
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Connects to a segment as another program of the same user would. */
static cci__sci_error_t connect_as_stranger(uint32_t id) {
    cci__sci_options options;
    cci__sci_error_t error, ignored;
    cci__sci_desc_t sd;
    cci__sci_remote_segment_t segment;
    memset(&options, 0, sizeof options);
    options.directory = directory;
    sd = cci__sci_open(&options, &error);
    CHECK(error == CCI__SCI_ERR_OK);
    CCI__SCI(SCIConnectSegment)(sd, &segment, CCI__SCI_NODE, id, 0, NULL, NULL, 60000, 0, &error);
    if (error == CCI__SCI_ERR_OK) {
        CCI__SCI(SCIDisconnectSegment)(segment, 0, NULL);
    }
    CCI__SCI(SCIClose)(sd, 0, &ignored);
    return error;
}

static void only_who_has_the_key(void **state) {
    child c = fork_child(serve_memory);
    struct cci_rma_handle handle, wrong;
    uint32_t block, registry;
    (void)state;
    begin("rma = map\n", 0);
    connect_to(&c);
    get(c.out, &handle, sizeof handle);
    take_local();
    wrong = handle;
    wrong.stuff[0] ^= 1;
    CHECK(rma(&wrong, 0, 8, CCI_FLAG_READ) == CCI_ERR_RMA_HANDLE); /* nothing is mapped for that */
    CHECK(mapped_count() == 0);
    wrong = handle;
    wrong.stuff[1] ^= ~UINT64_C(0);
    CHECK(rma(&wrong, 0, 8, CCI_FLAG_READ) == CCI_ERR_RMA_HANDLE);
    CHECK(mapped_count() == 0);
    CHECK(rma(&handle, 0, 8, CCI_FLAG_READ) == CCI_SUCCESS);
    CHECK(mapped_count() == 1);
    CHECK(rma(&wrong, 0, 8, CCI_FLAG_READ) == CCI_ERR_RMA_HANDLE);
    block = views()->block[0].id;
    registry = views()->registry.id;
    CHECK(connect_as_stranger(block) == CCI__SCI_ERR_CONNECTION_REFUSED);
    CHECK(connect_as_stranger(registry) == CCI__SCI_ERR_CONNECTION_REFUSED);
    fill(mine, SIZE, 2);
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_WRITE) == CCI_SUCCESS);
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void serve_until_told(int in, int out) {
    cci_rma_handle_t *handle;
    uint8_t *memory;
    char letter;
    begin("rma = map\n", 0);
    tell_uri(out);
    memory = take(SIZE);
    CHECK(cci_rma_register(endpoint, memory, SIZE, BOTH, &handle) == CCI_SUCCESS);
    put(out, handle, sizeof *handle);
    serve_until(in);
    get(in, &letter, 1);
    CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS);
    put(out, "!", 1);
    serve_until(in);
    get(in, &letter, 1);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Asks, and connects itself when it is too late. */
static void a_late_connection(void **state) {
    child c = fork_child(serve_until_told);
    struct cci_rma_handle handle;
    cci__sci_remote_segment_t segment;
    cci__sci_error_t error = CCI__SCI_ERR_LAST_;
    cci__sisci_link *link;
    uint32_t head[4], id;
    uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
    char letter;
    int round;
    (void)state;
    begin("rma = map\n", 0);
    connect_to(&c);
    get(c.out, &handle, sizeof handle);
    link = ((cci__sisci_conn *)(void *)(uintptr_t)connection)->link;
    head[0] = (uint32_t)handle.stuff[1];
    memcpy(&head[1], &handle.stuff[0], 8);
    head[3] = 77;
    CHECK(cci__sisci_post(link, CCI__SISCI_MAP_REQUEST, 0, head, sizeof head, NULL, 0));
    while (cci__sisci_load(link->in.base + CCI__SISCI_AT_GRANT + 12) != 77) {
        CHECK(cci__sci_now() < end_ns);
    }
    id = cci__sisci_load(link->in.base + CCI__SISCI_AT_GRANT + 4);
    CHECK(id != 0 && cci__sisci_load(link->in.base + CCI__SISCI_AT_GRANT + 8) == CCI__SCI_WRITES);
    for (round = 0; round < 2; round++) { /* in time, and too late */
        CCI__SCI(SCIConnectSegment)(inside()->sd, &segment, CCI__SCI_NODE, id, 0, NULL, NULL, 60000, 0, &error);
        CHECK(error == (round == 0 ? CCI__SCI_ERR_OK : CCI__SCI_ERR_CONNECTION_REFUSED));
        if (round == 0) {
            CCI__SCI(SCIDisconnectSegment)(segment, 0, NULL);
        }
        put(c.in, "!", 1);
        if (round == 0) {
            get(c.out, &letter, 1);
        }
    }
    CHECK(end_of(&c) == 0);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Deregisters while the peer writes, again and again, and looks whether the memory then rests. */
static void deregister_under_fire(int in, int out) {
    uint8_t *memory, *before = (uint8_t *)malloc(SIZE);
    int round;
    char letter;
    begin("rma = map\n", 0);
    tell_uri(out);
    memory = take(SIZE);
    for (round = 0; round < 200; round++) {
        cci_rma_handle_t *handle;
        CHECK(cci_rma_register(endpoint, memory, SIZE, CCI_FLAG_WRITE, &handle) == CCI_SUCCESS);
        put(out, handle, sizeof *handle);
        serve_until(in); /* the peer has begun */
        get(in, &letter, 1);
        CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS);
        memcpy(before, memory, SIZE);
        serve_until(in); /* the peer was refused */
        get(in, &letter, 1);
        CHECK(memcmp(before, memory, SIZE) == 0);
    }
    free(before);
    CHECK(cci_rma_free(endpoint, memory) == CCI_SUCCESS);
    put(out, "!", 1);
    serve_until(in);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void deregistering(void **state) {
    child c = fork_child(deregister_under_fire);
    struct cci_rma_handle handle;
    uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
    uint32_t round, seed = 0, questions = 0;
    char letter;
    (void)state;
    begin("rma = map\n", 0);
    connect_to(&c);
    take_local();
    for (round = 0; round < 200; round++) {
        int status = CCI_SUCCESS, begun = 0;
        get(c.out, &handle, sizeof handle);
        while (status == CCI_SUCCESS) {
            memset(mine, (int)++seed & 255, SIZE);
            status = rma(&handle, 0, SIZE, CCI_FLAG_WRITE);
            if (!begun) {
                CHECK(status == CCI_SUCCESS);
                put(c.in, "!", 1);
                begun = 1;
            }
        }
        CHECK(status == CCI_ERR_RMA_HANDLE);
        put(c.in, "!", 1);
        questions = round == 0 ? views()->number : questions;
    }
    CHECK(mapped_count() == 1 && views()->number == questions); /* later registrations of the same memory need no question */
    get(c.out, &letter, 1);
    while (mapped_count() > 0) { /* the owner has freed it, so nobody keeps it */
        cci_event_t *event;
        if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            (void)cci_return_event(event);
        }
        CHECK(cci__sci_now() < end_ns);
    }
    CHECK(rma(&handle, 0, 8, CCI_FLAG_WRITE) == CCI_ERR_RMA_HANDLE);
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

#define MANY 40

static void serve_many(int in, int out) {
    uint8_t *memory[MANY];
    uint32_t i;
    begin("", 0);
    tell_uri(out);
    for (i = 0; i < MANY; i++) {
        cci_rma_handle_t *handle;
        memory[i] = take(10000);
        fill(memory[i], 10000, i);
        CHECK(cci_rma_register(endpoint, memory[i], 10000, BOTH, &handle) == CCI_SUCCESS);
        put(out, handle, sizeof *handle);
    }
    serve_until(in);
    for (i = 0; i < MANY; i++) {
        CHECK(holds(memory[i], 10000, i + 100));
    }
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void many_memories(const char *more) {
    child c = fork_child(serve_many);
    struct cci_rma_handle handle[MANY];
    uint32_t i, k;
    begin(more, 0);
    connect_to(&c);
    get(c.out, handle, sizeof handle);
    take_local();
    for (k = 0; k < 50; k++) {
        for (i = 0; i < MANY; i++) {
            uint32_t at = k * 7 % 4 == 0 ? i : (i * 13 + k) % 8; /* all of them by turns, or a few for a while */
            CHECK(rma(&handle[at], 0, 10000, CCI_FLAG_READ) == CCI_SUCCESS && holds(mine, 10000, at));
            CHECK(mapped_count() <= CCI__SISCI_VIEWS);
        }
    }
    CHECK(mapped_count() > 0 && inside()->rma.mapped_bytes > 0);
    for (i = 0; i < MANY; i++) {
        fill(mine, 10000, i + 100);
        CHECK(rma(&handle[i], 0, 10000, CCI_FLAG_WRITE) == CCI_SUCCESS);
    }
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void more_than_are_mapped(void **state) {
    (void)state;
    many_memories("");
    many_memories("rma = map\n");
}

static void a_killed_target(void **state) {
    child c[10];
    uint32_t i, k;
    (void)state;
    for (i = 0; i < 10; i++) {
        c[i] = fork_child(serve_memory);
    }
    begin("rma = map\n", 0);
    take_local();
    for (i = 0; i < 10; i++) {
        struct cci_rma_handle handle;
        int status = CCI_SUCCESS;
        connect_to(&c[i]);
        get(c[i].out, &handle, sizeof handle);
        for (k = 0; status == CCI_SUCCESS; k++) { /* memory that was mapped stays until its owner's death is known */
            if (k == i * 3) {
                end_child(&c[i]);
            }
            status = rma(&handle, 0, SIZE, k & 1 ? CCI_FLAG_READ : CCI_FLAG_WRITE);
        }
        CHECK(status == CCI_ERR_DISCONNECTED);
        CHECK(cci_disconnect(connection) == CCI_SUCCESS);
    }
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Writes nonsense about its registration where the peer reads it. */
static void serve_lies(int in, int out) {
    struct cci_rma_handle shown;
    cci_rma_handle_t *handle;
    cci__sisci_entry *entry;
    uint8_t *memory;
    char letter;
    uint64_t dice = 88172645463325252u;
    begin("rma = map\n", 0);
    tell_uri(out);
    memory = take(SIZE);
    CHECK(cci_rma_register(endpoint, memory, SIZE, BOTH, &handle) == CCI_SUCCESS);
    shown = *handle;
    put(out, &shown, sizeof shown);
    entry = (cci__sisci_entry *)(void *)inside()->rma.registry.base + (uint32_t)shown.stuff[1];
    for (;;) {
        serve_until(in);
        get(in, &letter, 1);
        if (letter == '.') {
            _exit(0);
        }
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        entry->offset = dice & 1 ? 0 : dice & 2 ? SIZE - 8 : dice >> (dice >> 58);
        entry->length = dice & 4 ? UINT64_MAX : dice & 8 ? SIZE : dice >> (dice >> 57 & 63);
        entry->block = dice & 16 || dice & 32 ? entry->block : dice & 64 ? inside()->rma.registry.id : (uint32_t)dice;
        entry->flags = dice & 128 ? (uint32_t)dice : entry->flags;
        put(out, "!", 1);
    }
}

static void a_lying_target(void **state) {
    child c = fork_child(serve_lies);
    struct cci_rma_handle handle;
    uint32_t i, good = 0, bad = 0;
    char letter;
    (void)state;
    begin("", 0);
    connect_to(&c);
    get(c.out, &handle, sizeof handle);
    take_local();
    while (mapped_count() == 0) {
        CHECK(rma(&handle, 0, 8, CCI_FLAG_WRITE) == CCI_SUCCESS);
    }
    for (i = 0; i < 1000; i++) {
        int status = rma(&handle, i & 1 ? 0 : SIZE - 8, i & 2 ? 8 : SIZE, i & 4 ? CCI_FLAG_READ : CCI_FLAG_WRITE);
        CHECK(status == CCI_SUCCESS || status == CCI_ERR_RMA_HANDLE);
        *(status == CCI_SUCCESS ? &good : &bad) += 1;
        put(c.in, "!", 1);
        get(c.out, &letter, 1);
    }
    CHECK(good > 0 && bad > 0);
    put(c.in, ".", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Says that it copies, and dies. */
static void die_copying(int in, int out) {
    struct cci_rma_handle handle;
    child parent;
    begin("rma = map\n", 0);
    parent.out = in;
    connect_to(&parent);
    get(in, &handle, sizeof handle);
    take_local();
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_WRITE) == CCI_SUCCESS);
    cci__sisci_write_word(((cci__sisci_conn *)(void *)(uintptr_t)connection)->link, CCI__SISCI_AT_BUSY, 1);
    put(out, "!", 1);
    _exit(0);
}

static void a_peer_that_dies_copying(void **state) {
    child c = fork_child(die_copying);
    cci_rma_handle_t *handle;
    uint8_t *memory;
    char letter;
    (void)state;
    begin("rma = map\n", 0);
    memory = take(SIZE);
    CHECK(cci_rma_register(endpoint, memory, SIZE, BOTH, &handle) == CCI_SUCCESS);
    tell_uri(c.in);
    put(c.in, handle, sizeof *handle);
    serve_until(c.out);
    get(c.out, &letter, 1);
    CHECK(end_of(&c) == 0);
    CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS); /* else it waits for ever */
    CHECK(cci_rma_free(endpoint, memory) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* With as few descriptors as this, RMA goes another way. */
static void serve_without_descriptors(int in, int out) {
    struct rlimit few, enough;
    cci_rma_handle_t *handle;
    uint8_t *memory;
    begin("", 0);
    tell_uri(out);
    CHECK(getrlimit(RLIMIT_NOFILE, &enough) == 0);
    few = enough;
    few.rlim_cur = (rlim_t)dup(0);
    close((int)few.rlim_cur);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    memory = take(SIZE);
    CHECK((uintptr_t)memory % 4096 == 0 && inside()->rma.shared == NULL);
    CHECK(setrlimit(RLIMIT_NOFILE, &enough) == 0);
    fill(memory, SIZE, 1);
    CHECK(cci_rma_register(endpoint, memory, SIZE, BOTH, &handle) == CCI_SUCCESS);
    put(out, handle, sizeof *handle);
    serve_until(in);
    CHECK(holds(memory, SIZE, 2));
    CHECK(cci_rma_deregister(endpoint, handle) == CCI_SUCCESS);
    CHECK(cci_rma_free(endpoint, memory) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void no_descriptors_left(void **state) {
    child c = fork_child(serve_without_descriptors);
    struct cci_rma_handle handle;
    (void)state;
    begin("", 0);
    connect_to(&c);
    get(c.out, &handle, sizeof handle);
    take_local();
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_READ) == CCI_SUCCESS && holds(mine, SIZE, 1));
    fill(mine, SIZE, 2);
    CHECK(rma(&handle, 0, SIZE, CCI_FLAG_WRITE) == CCI_SUCCESS);
    CHECK(mapped_count() == 0);
    put(c.in, "!", 1);
    CHECK(end_of(&c) == 0);
    give_local_back();
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

#define GROUP "sisci://252:77"

static cci_connection_t *join(cci_conn_attribute_t attribute) {
    cci_connection_t *joined;
    cci_event_t *event;
    CHECK(cci_connect(endpoint, GROUP, NULL, 0, attribute, NULL, 0, NULL) == CCI_SUCCESS);
    event = await(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_SUCCESS);
    joined = event->connect.connection;
    (void)cci_return_event(event);
    return joined;
}

static cci__sisci_group *group_of(cci_connection_t *of) {
    return ((cci__sisci_conn *)(void *)(uintptr_t)of)->group;
}

/* A message of as many bytes as its seed says. */
static uint32_t make_message(uint8_t *bytes, uint32_t seed) {
    uint32_t length = 4 + seed * 97 % 8189;
    memcpy(bytes, &seed, 4);
    fill(bytes + 4, length - 4, seed);
    return length;
}

static int is_sound(const void *message, uint32_t length) {
    const uint8_t *bytes = (const uint8_t *)message;
    uint32_t seed;
    if (length < 4) {
        return 0;
    }
    memcpy(&seed, bytes, 4);
    return length == 4 + seed * 97 % 8189 && holds(bytes + 4, length - 4, seed);
}

static void send_message(cci_connection_t *tx, uint32_t seed) {
    uint8_t bytes[8192];
    uint32_t length = make_message(bytes, seed);
    CHECK(cci_send(tx, bytes, length, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
}

/* Sends to the group as fast as it can, and says so when it has begun. */
static void flood(int in, int out) {
    cci_connection_t *tx;
    uint32_t i;
    char letter;
    begin("", 0);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    put(out, "!", 1);
    serve_until(in);
    get(in, &letter, 1);
    for (i = 0; i < 30000; i++) {
        send_message(tx, (uint32_t)getpid() * 100000u + i);
    }
    put(out, "!", 1);
    serve_until(in);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void slow_receivers(void **state) {
    child c[3];
    cci_connection_t *rx;
    struct pollfd item[3];
    uint32_t i, came = 0, rounds = 0;
    char letter;
    (void)state;
    for (i = 0; i < 3; i++) {
        c[i] = fork_child(flood);
        item[i].fd = c[i].out;
        item[i].events = POLLIN;
    }
    begin("recv_buf_count = 64\n", 0);
    rx = join(CCI_CONN_ATTR_UU_MC_RX);
    for (i = 0; i < 3; i++) {
        serve_until(c[i].out);
        get(c[i].out, &letter, 1);
    }
    for (i = 0; i < 3; i++) {
        put(c[i].in, "!", 1);
    }
    while (poll(item, 3, 0) < 3) { /* until all have sent all of it, which none needs us for */
        cci_event_t *event;
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            CHECK(event->type == CCI_EVENT_RECV && event->recv.connection == rx);
            CHECK(is_sound(event->recv.ptr, event->recv.len));
            (void)cci_return_event(event);
            came++;
        }
        if (++rounds % 64 == 0) {
            struct timespec t = {0, 3000000};
            nanosleep(&t, NULL); /* too long for the group's memory */
        }
    }
    CHECK(came > 100 && came < 90000);
    for (i = 0; i < 3; i++) {
        put(c[i].in, "!", 1);
        serve_until(c[i].out); /* ends with its pipe */
        CHECK(end_of(&c[i]) == 0);
    }
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static uint32_t receive_all(uint32_t *last_seed) {
    cci_event_t *event;
    uint32_t count = 0;
    while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
        CHECK(event->type == CCI_EVENT_RECV);
        CHECK(is_sound(event->recv.ptr, event->recv.len));
        memcpy(last_seed, event->recv.ptr, 4);
        (void)cci_return_event(event);
        count++;
    }
    return count;
}

static void a_sender_in_the_middle(void **state) {
    cci_connection_t *rx, *tx, *stopped;
    cci__sisci_group_slot *slot;
    uint64_t number = 0;
    uint32_t i, seed, lost = 0;
    (void)state;
    begin("", 0);
    rx = join(CCI_CONN_ATTR_UU_MC_RX);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    stopped = join(CCI_CONN_ATTR_UU_MC_TX);
    slot = cci__sisci_claim_slot(group_of(stopped), &number); /* and writes no further for now */
    CHECK(slot != NULL && number == 0);
    for (i = 1; !slot->was_stolen; i++) { /* its slot is left out, and nothing waits for it or is lost */
        CHECK(i < 2 * CCI__SISCI_STEAL);
        send_message(tx, i);
        CHECK(receive_all(&seed) == 1 && seed == i);
    }
    CHECK(i > CCI__SISCI_STEAL - CCI__SISCI_STEAL / CCI__SISCI_GROUP_SLOTS);
    /* The slot has been taken from it. It goes on and writes into another's message, which nobody gets; others are
     * whole. */
    for (i = 0; i < 3 * CCI__SISCI_GROUP_SLOTS; i++) {
        int is_its = cci__sisci_load_long(group_of(tx)->base) % CCI__SISCI_GROUP_SLOTS == 0;
        send_message(tx, i);
        if (is_its) {
            slot->words[0] ^= i % 2 ? 1 : UINT64_C(1) << 63;
        }
        lost += is_its != 0;
        CHECK(receive_all(&seed) == !is_its);
    }
    CHECK(lost == 3);
    CHECK(!cci__sisci_swap(&slot->number, 1, 2)); /* so it sees that its message is lost */
    for (i = 0; i < 2 * CCI__SISCI_GROUP_SLOTS; i++) {
        send_message(tx, i);
        CHECK(receive_all(&seed) == 1 && seed == i);
    }
    CHECK(cci_disconnect(stopped) == CCI_SUCCESS && cci_disconnect(tx) == CCI_SUCCESS);
    CHECK(cci_disconnect(rx) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void overrun(void **state) {
    cci_connection_t *rx, *tx;
    uint32_t i, seed, count;
    (void)state;
    begin("recv_buf_count = 10\n", 0);
    rx = join(CCI_CONN_ATTR_UU_MC_RX);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    for (count = 1; count < 5 * CCI__SISCI_GROUP_SLOTS; count = count * 2 + 1) {
        for (i = 1; i <= count; i++) {
            send_message(tx, i);
        }
        i = count < CCI__SISCI_GROUP_SLOTS ? count : CCI__SISCI_GROUP_SLOTS; /* the latest */
        CHECK(receive_all(&seed) == i && seed == count);
    }
    CHECK(cci_disconnect(rx) == CCI_SUCCESS);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Answers what comes by multicast with the same, asleep until it does. */
static void echo_asleep(int in, int out) {
    struct pollfd item;
    cci_event_t *event;
    char letter;
    get(in, &letter, 1);
    begin("", 1);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    put(out, "!", 1);
    item.fd = os_handle;
    item.events = POLLIN;
    for (;;) {
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            uint32_t seed;
            CHECK(event->type == CCI_EVENT_RECV && is_sound(event->recv.ptr, event->recv.len));
            memcpy(&seed, event->recv.ptr, 4);
            (void)cci_return_event(event);
            put(out, &seed, sizeof seed);
        }
        CHECK(poll(&item, 1, -1) >= 0);
    }
}

static void sleeping_receivers(void **state) {
    child c[5];
    cci_connection_t *tx;
    uint32_t i, k, seed;
    char letter;
    (void)state;
    for (i = 0; i < 5; i++) {
        c[i] = fork_child(echo_asleep);
    }
    for (i = 0; i < 4; i++) {
        put(c[i].in, "!", 1);
        get(c[i].out, &letter, 1);
    }
    begin("", 0);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    for (k = 0; k < 200; k++) {
        send_message(tx, k);
        for (i = 0; i < 4; i++) {
            serve_until(c[i].out);
            get(c[i].out, &seed, sizeof seed);
            CHECK(seed == k);
        }
        if (k == 100) { /* one of them dies: the others, and who takes its place, are woken */
            end_child(&c[1]);
            c[1] = c[4];
            put(c[1].in, "!", 1);
            serve_until(c[1].out);
            get(c[1].out, &letter, 1);
        }
    }
    for (i = 0; i < 4; i++) {
        end_child(&c[i]);
    }
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Holds all it can hold, and sleeps; each event that it returns makes room for another one. */
static void hold_and_sleep(int in, int out) {
    struct pollfd item;
    cci_event_t *event, *held = NULL;
    uint32_t count = 0;
    char letter;
    begin("recv_buf_count = 1\n", 1);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    put(out, "!", 1);
    serve_until(in); /* the sender has joined */
    get(in, &letter, 1);
    put(out, "!", 1);
    get(in, &letter, 1); /* all are sent */
    item.fd = os_handle;
    item.events = POLLIN;
    while (count < 20) {
        if (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            CHECK(event->type == CCI_EVENT_RECV && is_sound(event->recv.ptr, event->recv.len));
            held = event;
            count++;
            continue;
        }
        CHECK(held && cci_return_event(held) == CCI_SUCCESS);
        held = NULL;
        CHECK(poll(&item, 1, count < 20 ? 60000 : 0) == (count < 20));
    }
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void room_again(void **state) {
    child c = fork_child(hold_and_sleep);
    cci_connection_t *tx;
    uint32_t i;
    char letter;
    (void)state;
    get(c.out, &letter, 1);
    begin("", 0);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    put(c.in, "!", 1);
    serve_until(c.out);
    get(c.out, &letter, 1);
    for (i = 0; i < 20; i++) {
        send_message(tx, i);
    }
    put(c.in, "!", 1);
    serve_until(c.out); /* ends with its pipe */
    CHECK(end_of(&c) == 0);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* The first of a group, until it is killed. */
static void found_group(int in, int out) {
    begin("", 0);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    put(out, "!", 1);
    serve_until(in);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Sends until told otherwise. */
static void keep_sending(int in, int out) {
    struct pollfd item;
    cci_event_t *event;
    cci_connection_t *tx;
    uint32_t i;
    begin("", 0);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    put(out, "!", 1);
    item.fd = in;
    item.events = POLLIN;
    for (i = 0; poll(&item, 1, 0) == 0; i++) {
        send_message(tx, i);
        CHECK(cci_get_event(endpoint, &event) == CCI_EAGAIN);
    }
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void a_group_without_its_first(void **state) {
    child first, sender;
    uint32_t seed;
    char letter;
    int how;
    (void)state;
    for (how = 0; how < 2; how++) { /* it is killed, or leaves */
        uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
        uint32_t came = 0;
        first = fork_child(found_group);
        get(first.out, &letter, 1);
        sender = fork_child(keep_sending);
        begin("", 0);
        (void)join(CCI_CONN_ATTR_UU_MC_RX);
        serve_until(sender.out);
        get(sender.out, &letter, 1);
        while (receive_all(&seed) == 0) {
            CHECK(cci__sci_now() < end_ns);
        }
        if (how == 0) {
            end_child(&first);
        } else {
            put(first.in, "!", 1);
            CHECK(end_of(&first) == 0);
        }
        while (came < 5000) {
            came += receive_all(&seed);
            CHECK(cci__sci_now() < end_ns);
        }
        put(sender.in, "!", 1);
        serve_until(sender.out); /* ends with its pipe */
        CHECK(end_of(&sender) == 0);
        CHECK(cci_finalize() == CCI_SUCCESS);
    }
}

/* Says so when it has joined, and again when a message has come. */
static void wait_for_message(int in, int out) {
    cci_event_t *event;
    (void)in;
    begin("", 0);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    put(out, "!", 1);
    event = await(CCI_EVENT_RECV);
    CHECK(is_sound(event->recv.ptr, event->recv.len));
    put(out, "!", 1);
    (void)cci_return_event(event);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* While a member is stopped, the only other one dies, and a third founds the group anew. */
static void a_group_founded_anew(void **state) {
    uint64_t end_ns = cci__sci_now() + PATIENCE_NS;
    child first = fork_child(found_group), member;
    cci_connection_t *tx;
    cci_event_t *event;
    struct pollfd item;
    uint32_t i;
    char letter;
    (void)state;
    get(first.out, &letter, 1);
    member = fork_child(wait_for_message);
    get(member.out, &letter, 1);
    CHECK(kill(member.pid, SIGSTOP) == 0 && waitpid(member.pid, NULL, WUNTRACED) == member.pid);
    end_child(&first);
    begin("", 0);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    kill(member.pid, SIGCONT);
    item.fd = member.out;
    item.events = POLLIN;
    for (i = 0; poll(&item, 1, 0) == 0; i++) {
        send_message(tx, i);
        CHECK(cci_get_event(endpoint, &event) == CCI_EAGAIN && cci__sci_now() < end_ns);
    }
    get(member.out, &letter, 1);
    serve_until(member.out); /* ends with its pipe */
    CHECK(end_of(&member) == 0);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* Is in the group until it is killed. It sends the number that it is told until it hears a greater one, and says the
 * greatest that it has heard. */
static void take_part(int in, int out) {
    struct pollfd item;
    cci_event_t *event;
    cci_connection_t *tx;
    uint32_t number = 0, heard = 0, seed;
    begin("", 0);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    put(out, &heard, sizeof heard);
    item.fd = in;
    item.events = POLLIN;
    for (;;) {
        if (poll(&item, 1, 1) > 0) {
            get(in, &number, sizeof number);
        }
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            if (event->type == CCI_EVENT_RECV) {
                CHECK(is_sound(event->recv.ptr, event->recv.len));
                memcpy(&seed, event->recv.ptr, sizeof seed);
                if (seed > heard) {
                    put(out, &seed, sizeof seed);
                    heard = seed;
                }
            }
            (void)cci_return_event(event);
        }
        if (number >= heard && number) {
            send_message(tx, number);
        }
    }
}

static void hears(const child *c, uint32_t wanted) {
    struct pollfd item;
    uint32_t seed = UINT32_MAX;
    item.fd = c->out;
    item.events = POLLIN;
    while (seed != wanted) {
        CHECK(poll(&item, 1, (int)(PATIENCE_NS / 1000000)) == 1);
        get(c->out, &seed, sizeof seed);
    }
}

/* Members are killed in any order, also two at once, and others come, with delays at all steps of succession: then whoever
 * sends is heard by all. For so many seconds (environment: CCI_TEST_SECONDS) or rounds (CCI_TEST_ROUNDS). */
static void a_group_at_random(void **state) {
    const char *seconds = getenv("CCI_TEST_SECONDS"), *rounds = getenv("CCI_TEST_ROUNDS");
    uint64_t end_ns = cci__sci_now() + (seconds ? strtoul(seconds, NULL, 10) : 6) * SECOND_NS;
    uint32_t most = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : UINT32_MAX, round, k, i;
    child c[4];
    (void)state;
    delays_us = getenv("CCI_TEST_DELAYS") ? -1 : 20000;
    for (i = 0; i < 4; i++) {
        c[i] = fork_child(take_part);
        hears(&c[i], 0);
    }
    for (round = 1; round <= most && (rounds || cci__sci_now() < end_ns); round++) {
        uint32_t deaths = 1 + (uint32_t)(cci__sci_random() % 3), first = (uint32_t)(cci__sci_random() % 4);
        for (k = 0; k < deaths; k++) {
            end_child(&c[(first + k) % 4]);
            if (cci__sci_random() % 2) {
                cci__sci_nap();
            }
        }
        for (k = 0; k < deaths; k++) {
            c[(first + k) % 4] = fork_child(take_part);
        }
        for (k = 0; k < deaths; k++) {
            hears(&c[(first + k) % 4], 0);
        }
        first = (uint32_t)(cci__sci_random() % 4);
        put(c[first].in, &round, sizeof round);
        for (i = 0; i < 4; i++) {
            hears(&c[i], round);
        }
    }
    print_message("%lu rounds\n", (unsigned long)(round - 1));
    for (i = 0; i < 4; i++) {
        end_child(&c[i]);
    }
    delays_us = -1;
}

/* Writes over the memory of the group. */
static void scribble_on_group(int in, int out) {
    struct pollfd item;
    uint64_t dice = 88172645463325252u;
    uint8_t *base;
    begin("", 0);
    base = group_of(join(CCI_CONN_ATTR_UU_MC_TX))->base;
    put(out, "!", 1);
    item.fd = in;
    item.events = POLLIN;
    while (poll(&item, 1, 0) == 0) {
        cci_event_t *event;
        size_t at;
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        at = (size_t)(dice >> 20) % (CCI__SISCI_GROUP_SIZE / 8) * 8;
        if (dice % 3 == 0) {
            at = (size_t)(dice >> 20) % 72 * 8; /* the next number, the receivers */
        } else if (dice % 3 == 1) {
            at = 4096 + (size_t)(dice >> 20) % CCI__SISCI_GROUP_SLOTS * sizeof(cci__sisci_group_slot) + (dice >> 40) % 3 * 8;
        }
        cci__sisci_store_long(base + at, dice % 5 == 0 ? dice : dice % 5 == 1 ? dice >> 56 : dice % 300);
        (void)cci_get_event(endpoint, &event);
    }
}

static void a_scribbling_member(void **state) {
    child c = fork_child(scribble_on_group);
    cci_connection_t *tx;
    cci_event_t *event;
    uint32_t i, came = 0;
    char letter;
    (void)state;
    get(c.out, &letter, 1); /* it is the first */
    end_child(&c);
    c = fork_child(scribble_on_group);
    begin("", 1);
    (void)join(CCI_CONN_ATTR_UU_MC_RX);
    tx = join(CCI_CONN_ATTR_UU_MC_TX);
    for (i = 0; i < 20000; i++) {
        send_message(tx, i);
        while (cci_get_event(endpoint, &event) == CCI_SUCCESS) {
            CHECK(event->type == CCI_EVENT_RECV && event->recv.len <= 8192);
            (void)cci_return_event(event);
            came++;
        }
    }
    CHECK(came > 0);
    end_child(&c);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

static void group_addresses(void **state) {
    cci_event_t *event;
    struct timeval soon = {0, 100000};
    child c = fork_child(found_group);
    char letter;
    int i;
    (void)state;
    get(c.out, &letter, 1);
    begin("", 0);
    CHECK(cci_connect(endpoint, "sisci://252:0", NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL) == CCI_EINVAL);
    CHECK(cci_connect(endpoint, "sisci://252", NULL, 0, CCI_CONN_ATTR_UU_MC_TX, NULL, 0, NULL) == CCI_EINVAL);
    CHECK(cci_connect(endpoint, "sisci://4:7", NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL) == CCI_EINVAL);
    CHECK(cci_connect(endpoint, GROUP, NULL, 0, CCI_CONN_ATTR_UU, NULL, 0, NULL) == CCI_EINVAL);
    for (i = 0; i < (int)CCI__SISCI_GROUPS; i++) {
        char uri[32];
        snprintf(uri, sizeof uri, "sisci://252:%d", 1000 + i);
        CHECK(cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL) == CCI_SUCCESS);
    }
    CHECK(cci_connect(endpoint, GROUP, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, NULL, 0, NULL) == CCI_ENOMEM);
    for (i = 0; i < (int)CCI__SISCI_GROUPS; i++) {
        event = await(CCI_EVENT_CONNECT);
        CHECK(event->connect.status == CCI_SUCCESS && event->connect.connection->max_send_size == 8192);
        CHECK(cci_disconnect(event->connect.connection) == CCI_SUCCESS);
        (void)cci_return_event(event);
    }
    /* A group whose first member does not answer. */
    CHECK(kill(c.pid, SIGSTOP) == 0 && waitpid(c.pid, NULL, WUNTRACED) == c.pid);
    CHECK(cci_connect(endpoint, GROUP, NULL, 0, CCI_CONN_ATTR_UU_MC_RX, &soon, 0, &soon) == CCI_SUCCESS);
    event = await(CCI_EVENT_CONNECT);
    CHECK(event->connect.status == CCI_ETIMEDOUT && event->connect.context == &soon && !event->connect.connection);
    (void)cci_return_event(event);
    kill(c.pid, SIGCONT);
    end_child(&c);
    CHECK(cci_finalize() == CCI_SUCCESS);
}

/* ---- the group of tests ------------------------------------------------------------------------------------------ */

static int make_directory(void **state) {
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
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

/* The next who comes sweeps what the dead left. */
static int sweep(void **state) {
    (void)state;
    while (cci_finalize() == CCI_SUCCESS) {
    }
    begin("", 0);
    if (cci_finalize() != CCI_SUCCESS || count_names() != 0) {
        fprintf(stderr, "%d names were left\n", count_names());
        return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_target, "memory that is mapped is read and written while its owner is stopped"),
        TEST(reading_and_writing, "what is registered for reading is mapped for reading, and can't be mapped otherwise"),
        TEST(only_who_has_the_key, "who has not got the key of a registration can't map its memory"),
        TEST(a_late_connection, "who has shown a key can connect for as long as the registration is there"),
        TEST(deregistering, "after cci_rma_deregister() no RMA touches memory that is mapped; nobody keeps what was freed"),
        TEST(more_than_are_mapped, "a link maps a few segments at once, and RMA works with any number"),
        TEST(a_killed_target, "RMAs to the memory of a process that is killed end with CCI_ERR_DISCONNECTED"),
        TEST(a_peer_that_dies_copying, "cci_rma_deregister() does not wait for a peer that died while it copied"),
        TEST(no_descriptors_left, "without descriptors cci_rma_alloc() gives memory that is not shared"),
        TEST(a_lying_target, "what the owner says about its memory is checked against what is mapped"),
        TEST(slow_receivers, "a group waits for nobody: slow receivers lose messages and get none that is torn"),
        TEST(overrun, "a receiver that was overrun gets the latest messages"),
        TEST(a_sender_in_the_middle, "a sender that stops in the middle of a message loses its slot and spoils none"),
        TEST(sleeping_receivers, "sleeping receivers of a group are woken"),
        TEST(room_again, "messages of a group that waited for room wake a sleeper that has made some"),
        TEST(a_group_without_its_first, "a group goes on when its first member is killed or leaves"),
        TEST(a_group_founded_anew, "a member that missed the end of its group is in the one that was founded after it"),
        TEST(a_group_at_random, "whoever sends to a group is heard by all, whoever died at whatever moment"),
        TEST(a_scribbling_member, "a member that scribbles over the memory of its group crashes nobody"),
        TEST(group_addresses, "groups have addresses of their own, and joining one has its time-out"),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]); /* with * and ? */
    }
    return cmocka_run_group_tests(tests, make_directory, empty_directory);
}
