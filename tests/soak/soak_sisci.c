/* soak_sisci.c - processes that talk over sisci:// while they are killed, stopped and replaced at random.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 *     soak_sisci [--first SEED] [--rounds N] [--seconds N]    as many rounds, or as many as begin in so many seconds
 *
 * In each round some processes, each with an endpoint at a service of its own, connect to each other, send numbered messages
 * of all sizes, write into each other's memory, also by lists, and change numbers there by atomics. The parent kills one after the other and starts a successor at the same
 * service, and stops and continues others. What must hold: on each connection the messages come in order, each once; what is
 * written is there when the message behind it comes; a number counts all additions that were done, and no more than were asked
 * for, and no two of them, nor two compare-swaps that won, found the same; all operations end, each once; of a process that was killed every
 * connection is found broken, a keepalive event comes once; a successor gets its service; and when all connections have
 * been closed no link, no descriptor, no memory and no name is left. The processes fork, too: a child finds that what it
 * inherited is dead, and stays for a while, during which its parent may be killed and replaced. A seed decides what is done, not when: what fails is
 * printed with the seed, and likely to fail again.
 */
#define CCI_IMPLEMENTATION
#include "tests/support/delays.h"

#include "cci_sisci.h"

#include "cci.h"
#include "tests/support/delays.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { NODES = 5, CONNECTIONS = 24, PART = 16384, CELLS = 8, BOOKS = 128, COUNTED = 32768, SEGMENTS = 24, SERVICE = 1000, PATIENCE_S = 40, CHAOS_MS = 1500 };

/* ---- chance, time, complaints ------------------------------------------------------------------------------------- */

static uint64_t dice;
static char directory[64];
static int my_slot = -1;
static uint64_t round_seed;

static uint64_t roll(void) {
    uint64_t z = (dice += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t below(uint32_t end) {
    return (uint32_t)(roll() % end);
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(long us) {
    struct timespec t = {0, 0};
    t.tv_nsec = us * 1000;
    nanosleep(&t, NULL);
}

#define MUST(condition) ((condition) ? (void)0 : complain(__LINE__, #condition))

static void give_up(void);

static void complain(int line, const char *what) {
    fprintf(stderr, "process %d, line %d: this does not hold: %s\n  again: soak_sisci --first %llu --rounds 1\n", my_slot, line,
            what, (unsigned long long)round_seed);
    if (my_slot < 0) {
        give_up();
    }
    exit(1);
}

static int count_entries(const char *path) {
    DIR *list = opendir(path);
    struct dirent *entry;
    int count = 0;
    MUST(list != NULL);
    while ((entry = readdir(list)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(list);
    return count;
}

/* ---- counted memory ----------------------------------------------------------------------------------------------------- */

static long live_blocks;

static void *counted_alloc(void *user, size_t size) {
    (void)user;
    __atomic_add_fetch(&live_blocks, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void counted_release(void *user, void *memory) {
    (void)user;
    if (memory != NULL) {
        __atomic_sub_fetch(&live_blocks, 1, __ATOMIC_RELAXED);
        free(memory);
    }
}

static void no_log(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    (void)text;
}

/* ---- what is said ---------------------------------------------------------------------------------------------------------- */

enum { GREETING = 1, NUMBERED, WRITTEN, TAKEN };

typedef struct word {
    uint32_t kind, slot, incarnation, number;
    uint64_t handle[4]; /* a greeting: the memory that is meant for the peer */
    uint64_t cells[4];  /* and that of the numbers which all may change */
} word_t;

typedef struct order { /* of the parent */
    char what;         /* d: killed, c: calm, q: quit */
    uint32_t slot, incarnation;
} order_t;

typedef struct end { /* of a connection */
    cci_connection_t *connection;
    cci_rma_handle_t *mine; /* of its part of the memory */
    int used, connecting, broken, keepalives, writing, greeted, watched;
    uint32_t slot, incarnation; /* of the peer; 0: not known yet */
    uint32_t sent, received, writes, owes_taken;
    uint64_t doomed_ms, broken_ms, handle[4], cells[4];
} end_t;

typedef struct asked { /* an atomic that is under way */
    uint32_t incarnation, cell, width;
    uint64_t previous, compare;
} asked_t;

static struct {
    cci_endpoint_t *ep;
    int fd, orders, reports, descriptors;
    uint32_t incarnation;
    end_t ends[CONNECTIONS];
    uint8_t *memory, *source; /* a part for each connection */
    cci_rma_handle_t *its_source, *its_cells;
    uint64_t *cells; /* additions to the even ones, compare-swaps of the odd ones; every second pair has 4 bytes */
    uint64_t found[CELLS]; /* by the last compare-swap of ours */
    uint64_t atomics, lists, issued, completed, messages, losses;
    uint64_t dead[NODES]; /* the last incarnation of each that was killed */
    uint64_t calm_ms; /* since when no more is sent; 0: not yet */
    int reported, quits;
    pid_t child; /* 0: there is none */
    uint64_t forks;
} node;

/* Shared by all processes, an entry for each place: the forks that its processes have begun, and those that have returned in the
 * child. Where they differ a process may have been killed within fork(), and its child has yet to close what it inherited. */
static struct {
    uint32_t begun, returned;
} *forking;

/* Shared by all, too: what was asked for, and what was done, of the numbers of each process, by its incarnation. */
static struct {
    uint64_t asked[CELLS], done[CELLS];
    uint8_t found[CELLS][COUNTED]; /* 1: one that has changed it has found this */
} *books;

static uint8_t pattern(uint32_t number, uint32_t at) {
    return (uint8_t)((number * 31 + at) * 0x9E3779B1u >> 11);
}

/* ---- one process: speaking --------------------------------------------------------------------------------------------------- */

static uint32_t index_of(const end_t *end) {
    return (uint32_t)(end - node.ends);
}

static end_t *free_end(void) {
    uint32_t i;
    for (i = 0; i < CONNECTIONS; i++) {
        if (!node.ends[i].used) {
            memset(&node.ends[i], 0, sizeof node.ends[i]);
            node.ends[i].used = 1;
            node.ends[i].connecting = 1;
            return &node.ends[i];
        }
    }
    return NULL;
}

static void found_broken(end_t *end) {
    if (!end->broken) {
        end->broken = 1;
        end->broken_ms = now_ms();
        node.losses++;
    }
}

static word_t make_word(uint32_t kind, uint32_t number) {
    word_t word;
    memset(&word, 0, sizeof word);
    word.kind = kind;
    word.slot = (uint32_t)my_slot;
    word.incarnation = node.incarnation;
    word.number = number;
    return word;
}

/* 1 when it is under way. */
static int say(end_t *end, const word_t *word) {
    static uint8_t bytes[8192];
    uint32_t i, length = sizeof *word + (word->kind == NUMBERED ? below(below(4) ? 100 : 6000) : 0);
    int flags = below(2) ? CCI_FLAG_SILENT : 0, status;
    memcpy(bytes, word, sizeof *word);
    for (i = sizeof *word; i < length; i++) {
        bytes[i] = pattern(word->number, i);
    }
    status = cci_send(end->connection, bytes, length, NULL, flags);
    MUST(status == CCI_SUCCESS || status == CCI_ENOBUFS || status == CCI_ERR_DISCONNECTED);
    if (status == CCI_ERR_DISCONNECTED) {
        found_broken(end);
    }
    node.issued += status == CCI_SUCCESS && !flags;
    return status == CCI_SUCCESS;
}

static uint32_t width_of(uint32_t cell) {
    return cell & 2 ? 4 : 8;
}

/* Each addition is of 1, and each compare-swap tries to set the next number: both count what was done. */
static void ask_atomic(end_t *end) {
    asked_t *asked = (asked_t *)calloc(1, sizeof *asked);
    cci_rma_handle_t its;
    int status;
    MUST(asked != NULL);
    asked->incarnation = end->incarnation;
    asked->cell = below(CELLS);
    asked->width = width_of(asked->cell);
    asked->compare = below(4) ? node.found[asked->cell] : below(3);
    memcpy((void *)&its, end->cells, sizeof its);
    __atomic_add_fetch(&books[asked->incarnation % BOOKS].asked[asked->cell], 1, __ATOMIC_SEQ_CST);
    status = cci_atomic(end->connection, asked->cell & 1 ? CCI_ATOMIC_COMPARE_SWAP : CCI_ATOMIC_FETCH_ADD, asked->width, &its,
                        asked->cell * 8, asked->cell & 1 ? asked->compare + 1 : 1, asked->compare, &asked->previous, asked,
                        below(8) ? 0 : CCI_FLAG_FENCE);
    MUST(status == CCI_SUCCESS || status == CCI_ENOBUFS || status == CCI_ERR_DISCONNECTED);
    if (status == CCI_SUCCESS) {
        node.issued++;
        node.atomics++;
        return;
    }
    __atomic_sub_fetch(&books[asked->incarnation % BOOKS].asked[asked->cell], 1, __ATOMIC_SEQ_CST);
    free(asked);
    if (status == CCI_ERR_DISCONNECTED) {
        found_broken(end);
    }
}

static void hear_atomic(asked_t *asked, int status) {
    uint32_t book = asked->incarnation % BOOKS, cell = asked->cell;
    MUST(status == CCI_SUCCESS || status == CCI_ERR_DISCONNECTED || status == CCI_ETIMEDOUT || status == CCI_ERR_RMA_HANDLE);
    if (status == CCI_SUCCESS) {
        node.found[cell] = asked->previous;
        if (!(cell & 1) || asked->previous == asked->compare) {
            MUST(asked->previous >= COUNTED || __atomic_exchange_n(&books[book].found[cell][asked->previous], 1, __ATOMIC_SEQ_CST) == 0);
            __atomic_add_fetch(&books[book].done[cell], 1, __ATOMIC_SEQ_CST);
        }
    }
    free(asked);
}

/* What was done before the look is there, and no more than was asked for until after it. */
static void check_cells(void) {
    uint32_t i, book = node.incarnation % BOOKS;
    for (i = 0; i < CELLS; i++) {
        uint64_t done = __atomic_load_n(&books[book].done[i], __ATOMIC_SEQ_CST), asked, value;
        uint32_t narrow = __atomic_load_n((uint32_t *)(void *)&node.cells[i], __ATOMIC_SEQ_CST);
        value = width_of(i) == 4 ? narrow : __atomic_load_n(&node.cells[i], __ATOMIC_SEQ_CST);
        asked = __atomic_load_n(&books[book].asked[i], __ATOMIC_SEQ_CST);
        MUST(value >= done && value <= asked);
        MUST(width_of(i) == 8 || ((uint32_t *)(void *)&node.cells[i])[1] == 0);
    }
}

static void greet(end_t *end) {
    word_t word = make_word(GREETING, 0);
    memcpy(word.cells, (const void *)node.its_cells, sizeof word.cells);
    memcpy(word.handle, (const void *)end->mine, sizeof word.handle);
    (void)say(end, &word);
}

/* Divides a part into segments. */
static uint32_t divide(cci_rma_segment_t *segments, cci_rma_handle_t *handle, uint64_t offset) {
    uint32_t count = 1 + below(SEGMENTS), i, left = PART;
    for (i = 0; i < count; i++) {
        uint32_t length = i + 1 == count ? left : below(2 * (left / (count - i)) + 1);
        length = length > left ? left : length;
        segments[i].handle = handle;
        segments[i].offset = offset;
        segments[i].length = length;
        offset += length;
        left -= length;
    }
    return count;
}

static int write_list(const end_t *end, const word_t *word, cci_rma_handle_t *its) {
    cci_rma_segment_t from[SEGMENTS], to[SEGMENTS];
    uint32_t from_count = divide(from, node.its_source, (uint64_t)index_of(end) * PART), to_count = divide(to, its, 0);
    int status = cci_rmav(end->connection, word, sizeof *word, from, from_count, to, to_count, NULL, CCI_FLAG_WRITE);
    node.lists += status == CCI_SUCCESS;
    return status;
}

static void write_part(end_t *end) {
    word_t word = make_word(WRITTEN, end->writes + 1);
    uint8_t *from = node.source + (size_t)index_of(end) * PART;
    cci_rma_handle_t its;
    uint32_t i;
    int status;
    for (i = 0; i < PART; i++) {
        from[i] = pattern(word.number, i);
    }
    memcpy((void *)&its, end->handle, sizeof its);
    status = below(2) ? write_list(end, &word, &its)
                      : cci_rma(end->connection, &word, sizeof word, node.its_source, (uint64_t)index_of(end) * PART, &its, 0, PART,
                                NULL, CCI_FLAG_WRITE);
    MUST(status == CCI_SUCCESS || status == CCI_ENOBUFS || status == CCI_ERR_DISCONNECTED);
    if (status == CCI_SUCCESS) {
        node.issued++;
        end->writes++;
        end->writing = 1;
    } else if (status == CCI_ERR_DISCONNECTED) {
        found_broken(end);
    }
}

/* ---- one process: listening -------------------------------------------------------------------------------------------------- */

static void doom(end_t *end) {
    if (end->used && end->incarnation != 0 && end->incarnation <= node.dead[end->slot] && !end->doomed_ms) {
        end->doomed_ms = now_ms() + PATIENCE_S * 1000;
    }
}

static void hear_message(end_t *end, const uint8_t *bytes, uint32_t length) {
    word_t word;
    uint32_t i;
    MUST(end->used && length >= sizeof word);
    memcpy(&word, bytes, sizeof word);
    MUST(word.slot < NODES);
    node.messages++;
    switch (word.kind) {
    case GREETING:
        MUST(!end->greeted && end->received == 0);
        end->greeted = 1;
        end->slot = word.slot;
        end->incarnation = word.incarnation;
        memcpy(end->handle, word.handle, sizeof end->handle);
        memcpy(end->cells, word.cells, sizeof end->cells);
        doom(end);
        break;
    case NUMBERED:
        MUST(word.number == ++end->received);
        for (i = sizeof word; i < length; i++) {
            MUST(bytes[i] == pattern(word.number, i));
        }
        break;
    case WRITTEN:
        for (i = 0; i < PART; i++) {
            MUST(node.memory[(size_t)index_of(end) * PART + i] == pattern(word.number, i));
        }
        end->owes_taken = word.number;
        break;
    default:
        MUST(word.kind == TAKEN && word.number == end->writes && end->writing);
        end->writing = 0;
        break;
    }
}

static void opened(end_t *end, cci_connection_t *connection) {
    uint32_t keepalive_us = 300000;
    end->connection = connection;
    end->connecting = 0;
    MUST(cci_rma_register(node.ep, node.memory + (size_t)index_of(end) * PART, PART, CCI_FLAG_WRITE, &end->mine) ==
         CCI_SUCCESS);
    end->watched = below(2) != 0;
    if (end->watched) {
        MUST(cci_set_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &keepalive_us) == CCI_SUCCESS);
    }
    greet(end);
}

static void hear_request(cci_event_t *event) {
    end_t *end = node.calm_ms ? NULL : free_end();
    MUST(event->request.data_len == 5 && memcmp(event->request.data_ptr, "hello", 5) == 0);
    if (end == NULL) {
        MUST(cci_reject(event) == CCI_SUCCESS);
    } else {
        MUST(cci_accept(event, end) == CCI_SUCCESS);
    }
}

static void hear_event(cci_event_t *event) {
    end_t *end;
    int status;
    switch (event->type) {
    case CCI_EVENT_CONNECT_REQUEST:
        hear_request(event);
        break;
    case CCI_EVENT_CONNECT:
    case CCI_EVENT_ACCEPT:
        end = (end_t *)(uintptr_t)(event->type == CCI_EVENT_CONNECT ? event->connect.context : event->accept.context);
        status = event->type == CCI_EVENT_CONNECT ? (int)event->connect.status : (int)event->accept.status;
        MUST(end->used && end->connecting);
        MUST(status == CCI_SUCCESS || status == CCI_ETIMEDOUT || status == CCI_ECONNREFUSED || status == CCI_ERR_DISCONNECTED);
        if (status == CCI_SUCCESS) {
            opened(end, event->type == CCI_EVENT_CONNECT ? event->connect.connection : event->accept.connection);
        } else {
            end->used = 0;
        }
        break;
    case CCI_EVENT_SEND:
        node.completed++;
        MUST(node.completed <= node.issued);
        if (event->send.context != NULL) {
            hear_atomic((asked_t *)(uintptr_t)event->send.context, (int)event->send.status);
        }
        break;
    case CCI_EVENT_RECV:
        hear_message((end_t *)(uintptr_t)event->recv.connection->context, (const uint8_t *)event->recv.ptr, event->recv.len);
        break;
    default:
        MUST(event->type == CCI_EVENT_KEEPALIVE_TIMEDOUT);
        end = (end_t *)(uintptr_t)event->keepalive.connection->context;
        MUST(end->used && end->watched && ++end->keepalives == 1); /* it was armed once */
        break;
    }
    MUST(cci_return_event(event) == CCI_SUCCESS);
}

static void hear_orders(void) {
    order_t order;
    uint32_t i;
    while (read(node.orders, &order, sizeof order) == (ssize_t)sizeof order) {
        if (order.what == 'd') {
            node.dead[order.slot] = order.incarnation;
            for (i = 0; i < CONNECTIONS; i++) {
                doom(&node.ends[i]);
            }
        } else if (order.what == 'c') {
            node.calm_ms = now_ms();
        } else {
            node.quits = 1;
        }
    }
}

/* ---- one process: what it does when --------------------------------------------------------------------------------------------- */

static void connect_somewhere(void) {
    struct timeval patience = {2, 0};
    char uri[64];
    uint32_t slot = below(NODES);
    end_t *end = free_end();
    if (end == NULL) {
        return;
    }
    snprintf(uri, sizeof uri, "sisci://4:%u", (unsigned)(SERVICE + slot));
    MUST(cci_connect(node.ep, uri, "hello", 5, CCI_CONN_ATTR_RO, end, 0, &patience) == CCI_SUCCESS);
}

/* From the deregistration on nothing touches the memory, so the next connection may have it at once. */
static void close_end(end_t *end) {
    MUST(cci_rma_deregister(node.ep, end->mine) == CCI_SUCCESS);
    MUST(cci_disconnect(end->connection) == CCI_SUCCESS);
    end->used = 0;
}

static void act(end_t *end) {
    word_t word = make_word(NUMBERED, end->sent + 1);
    if (end->broken) {
        if (!end->watched || end->keepalives) {
            close_end(end);
        } else {
            MUST(now_ms() < end->broken_ms + PATIENCE_S * 1000); /* the keepalive event comes */
        }
        return;
    }
    MUST(!end->doomed_ms || now_ms() < end->doomed_ms); /* it is found broken */
    if (end->owes_taken) {
        word_t taken = make_word(TAKEN, end->owes_taken);
        end->owes_taken = say(end, &taken) ? 0 : end->owes_taken;
        return;
    }
    if (node.calm_ms && !end->doomed_ms) {
        return;
    }
    if (end->greeted && below(6) == 0) {
        ask_atomic(end);
    } else if (end->greeted && !end->writing && below(8) == 0) {
        write_part(end);
    } else if (below(500) == 0) {
        close_end(end);
    } else if (below(4) == 0) {
        end->sent += (uint32_t)say(end, &word);
    }
}

/* ---- one process: its children ------------------------------------------------------------------------------------------------- */

/* Sanitizers do not look after their allocator's locks at fork(): in the child malloc() may wait for ever. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAY_ALLOCATE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MAY_ALLOCATE 0
#endif
#endif
#ifndef MAY_ALLOCATE
#define MAY_ALLOCATE 1
#endif

/* All that the child inherited is dead. It keeps none of its parent's places, though it stays for longer than the parent, if
 * that is killed: the successor gets the service all the same, and peers find the parent's connections broken. */
static void be_the_child(void) {
    cci_device_t *const *devices;
    cci_endpoint_t *made;
    cci_event_t *event;
    uint32_t i;
    __atomic_store_n(&forking[my_slot].returned, forking[my_slot].begun, __ATOMIC_SEQ_CST);
    alarm(60);
    MUST(cci_get_event(node.ep, &event) == CCI_ERR_DEVICE_DEAD && event == NULL);
    MUST(cci_get_devices(&devices) == CCI_ERROR && cci_create_endpoint(NULL, 0, &made, NULL) == CCI_ERROR);
    MUST(node.fd < 0 || fcntl(node.fd, F_GETFD) == -1);
    for (i = 0; i < CONNECTIONS; i++) {
        const end_t *end = &node.ends[i];
        if (end->used && !end->connecting) {
            MUST(cci_send(end->connection, "never", 5, NULL, 0) == CCI_ERR_DEVICE_DEAD);
            MUST(cci_atomic(end->connection, CCI_ATOMIC_SWAP, 8, end->mine, 0, 1, 0, NULL, NULL, 0) == CCI_ERR_DEVICE_DEAD);
            MUST(cci_disconnect(end->connection) == CCI_SUCCESS);
        }
    }
    nap((long)below(500) * 1000);
    if (MAY_ALLOCATE && below(2)) {
        MUST(cci_destroy_endpoint(node.ep) == CCI_SUCCESS && cci_finalize() == CCI_SUCCESS);
    }
    _exit(0);
}

/* One child at a time. */
static void fork_now_and_then(void) {
    int status = 0;
    if (node.child > 0) {
        pid_t ended = waitpid(node.child, &status, WNOHANG);
        MUST(ended == 0 || (ended == node.child && status == 0));
        node.child = ended ? 0 : node.child;
    } else if (!node.calm_ms && below(100) == 0) {
        fflush(NULL);
        forking[my_slot].begun++;
        node.child = fork();
        MUST(node.child >= 0);
        if (node.child == 0) {
            be_the_child();
        }
        node.forks++;
    }
}

/* ---- one process: its end ------------------------------------------------------------------------------------------------------ */

static int count_links(void) {
    cci__sisci *ep = (cci__sisci *)(void *)(uintptr_t)node.ep;
    const cci_list_t *at;
    int count = 0;
    cci__sisci_lock(ep);
    for (at = ep->links.hot.next; at != &ep->links.hot; at = at->next) {
        count++;
    }
    for (at = ep->links.cold.next; at != &ep->links.cold; at = at->next) {
        count++;
    }
    cci__sisci_unlock(ep);
    return count;
}

/* Everything ends: first what is under way, then the connections, then the links. */
static void calm_down(void) {
    uint32_t i, used = 0;
    int waits = now_ms() < node.calm_ms + 500;
    for (i = 0; i < CONNECTIONS; i++) {
        end_t *end = &node.ends[i];
        if (end->used && !end->connecting && !end->broken && !waits && node.completed == node.issued) {
            close_end(end);
        }
        used += end->used != 0;
    }
    if (used == 0 && node.completed == node.issued && count_links() == 0 && node.child == 0 &&
        count_entries("/proc/self/fd") <= node.descriptors) { /* others may have been there when it was counted */
        uint64_t counts[4];
        counts[0] = node.messages, counts[1] = node.forks, counts[2] = node.atomics, counts[3] = node.lists;
        MUST(write(node.reports, counts, sizeof counts) == (ssize_t)sizeof counts);
        node.reported = 1;
    }
    if (now_ms() > node.calm_ms + PATIENCE_S * 1000) {
        fprintf(stderr, "process %d: %u ends used, %llu of %llu operations complete, %d links, %d descriptors more\n", my_slot,
                used, (unsigned long long)node.completed, (unsigned long long)node.issued, count_links(),
                count_entries("/proc/self/fd") - node.descriptors);
        complain(__LINE__, "all is closed in time");
    }
}

static void live(void) {
    struct pollfd item;
    while (!node.quits) {
        cci_event_t *event;
        uint32_t i;
        hear_orders();
        check_cells();
        for (i = 0; i < 64 && cci_get_event(node.ep, &event) == CCI_SUCCESS; i++) {
            hear_event(event);
        }
        if (!node.calm_ms && below(20) == 0) {
            connect_somewhere();
        }
        fork_now_and_then();
        for (i = 0; i < CONNECTIONS; i++) {
            if (node.ends[i].used && !node.ends[i].connecting) {
                act(&node.ends[i]);
            }
        }
        if (node.calm_ms && !node.reported) {
            calm_down();
        }
        if (node.fd >= 0) {
            item.fd = node.fd;
            item.events = POLLIN;
            (void)poll(&item, 1, 1);
        } else if (below(4) == 0) {
            nap(100);
        }
    }
}

static void run_node(int slot, uint32_t incarnation, int orders, int reports) {
    static char config[256], service[16];
    cci_setup_t hooks;
    uint32_t caps;
    int sleeps, status = CCI_EBUSY, tries;
    my_slot = slot;
    dice = round_seed * 1000 + incarnation;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    node.orders = orders;
    node.reports = reports;
    node.incarnation = incarnation;
    snprintf(config, sizeof config, "[shm]\ntransport = sisci\ndirectory = %s\nring = %d\nblocks = 8\nrma = %s\nprogress = %s\n",
             directory, below(2) ? 4096 : 65536, below(2) ? "auto" : "bounce", below(3) ? "poll" : "thread");
    memset(&hooks, 0, sizeof hooks);
    hooks.config = config;
    hooks.alloc = counted_alloc;
    hooks.release = counted_release;
    hooks.log = no_log;
    MUST(cci_setup(&hooks) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    snprintf(service, sizeof service, "%d", SERVICE + slot);
    sleeps = below(2) != 0;
    node.fd = -1;
    for (tries = 0; tries < 1000; tries++) {
        /* The one before was killed, perhaps within fork(): its names are free when that has returned in the child, not later. */
        int may_be_busy = __atomic_load_n(&forking[slot].returned, __ATOMIC_SEQ_CST) != forking[slot].begun;
        status = cci_create_endpoint_at(NULL, service, 0, &node.ep, sleeps ? &node.fd : NULL);
        if (status != CCI_EBUSY || !may_be_busy) {
            break;
        }
        (void)usleep(10000);
    }
    MUST(status == CCI_SUCCESS);
    forking[slot].returned = forking[slot].begun;
    node.memory = (uint8_t *)calloc(CONNECTIONS, PART);
    node.source = (uint8_t *)calloc(CONNECTIONS, PART);
    node.cells = (uint64_t *)calloc(CELLS, sizeof *node.cells);
    MUST(node.memory && node.source && node.cells);
    MUST(cci_rma_register(node.ep, node.cells, CELLS * sizeof *node.cells, CCI_FLAG_READ | CCI_FLAG_WRITE, &node.its_cells) == CCI_SUCCESS);
    MUST(cci_rma_register(node.ep, node.source, (uint64_t)CONNECTIONS * PART, 0, &node.its_source) == CCI_SUCCESS);
    node.descriptors = count_entries("/proc/self/fd");
    live();
    MUST(cci_destroy_endpoint(node.ep) == CCI_SUCCESS && cci_finalize() == CCI_SUCCESS && live_blocks == 0);
    free(node.memory);
    free(node.source);
    check_cells();
    free(node.cells);
}

/* ---- the parent --------------------------------------------------------------------------------------------------------------------- */

typedef struct process {
    pid_t pid;
    int orders, reports, is_stopped;
    uint32_t incarnation;
    uint64_t go_on_ms;
} process_t;

static process_t processes[NODES];
static uint32_t incarnations, kills, stops;
static uint64_t messages, forks, atomics, lists;

static void start(int slot) {
    process_t *p = &processes[slot];
    int orders[2], reports[2];
    MUST(pipe2(orders, O_CLOEXEC) == 0 && pipe2(reports, O_CLOEXEC) == 0);
    p->incarnation = ++incarnations;
    memset(&books[p->incarnation % BOOKS], 0, sizeof books[0]);
    p->is_stopped = 0;
    fflush(NULL);
    p->pid = fork();
    MUST(p->pid >= 0);
    if (p->pid == 0) {
        int i;
        for (i = 0; i < NODES; i++) {
            if (i != slot && processes[i].pid > 0) {
                close(processes[i].orders);
                close(processes[i].reports);
            }
        }
        close(orders[1]);
        close(reports[0]);
        MUST(fcntl(orders[0], F_SETFL, O_NONBLOCK) == 0);
        run_node(slot, p->incarnation, orders[0], reports[1]);
        exit(0);
    }
    close(orders[0]);
    close(reports[1]);
    p->orders = orders[1];
    p->reports = reports[0];
}

static void tell_all(char what, uint32_t slot, uint32_t incarnation) {
    order_t order;
    int i;
    memset(&order, 0, sizeof order);
    order.what = what;
    order.slot = slot;
    order.incarnation = incarnation;
    for (i = 0; i < NODES; i++) {
        MUST(write(processes[i].orders, &order, sizeof order) == (ssize_t)sizeof order);
    }
}

static void put_away(process_t *p) {
    close(p->orders);
    close(p->reports);
    p->pid = 0;
}

static void kill_one(int slot) {
    process_t *p = &processes[slot];
    uint32_t incarnation = p->incarnation;
    int status = 0;
    MUST(kill(p->pid, SIGKILL) == 0 && waitpid(p->pid, &status, 0) == p->pid);
    MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it had no complaint of its own */
    put_away(p);
    kills++;
    start(slot);
    tell_all('d', (uint32_t)slot, incarnation);
}

static void stop_one(int slot) {
    process_t *p = &processes[slot];
    MUST(kill(p->pid, SIGSTOP) == 0);
    p->is_stopped = 1;
    p->go_on_ms = now_ms() + below(200);
    stops++;
}

static void go_on(uint64_t until_ms) {
    int i, status;
    for (i = 0; i < NODES; i++) {
        MUST(waitpid(processes[i].pid, &status, WNOHANG) == 0); /* nobody has ended by itself */
        if (processes[i].is_stopped && processes[i].go_on_ms <= until_ms) {
            MUST(kill(processes[i].pid, SIGCONT) == 0);
            processes[i].is_stopped = 0;
        }
    }
}

static void wreak_chaos(void) {
    uint64_t end_ms = now_ms() + CHAOS_MS, next_ms = now_ms() + 200;
    while (now_ms() < end_ms) {
        if (now_ms() >= next_ms) {
            int slot = (int)below(NODES);
            next_ms = now_ms() + below(100);
            if (below(5) < 2) {
                kill_one(slot);
            } else if (!processes[slot].is_stopped) {
                stop_one(slot);
            }
        }
        go_on(now_ms());
        nap(1000);
    }
    go_on(UINT64_MAX);
}

static void await_calm(void) {
    int i, left = NODES;
    tell_all('c', 0, 0);
    for (i = 0; left > 0; i = (i + 1) % NODES) {
        struct pollfd item;
        uint64_t counts[4];
        item.fd = processes[i].reports;
        item.events = POLLIN;
        if (item.fd >= 0 && poll(&item, 1, 1) == 1) {
            MUST(read(item.fd, counts, sizeof counts) == (ssize_t)sizeof counts);
            messages += counts[0];
            forks += counts[1];
            atomics += counts[2];
            lists += counts[3];
            close(item.fd);
            processes[i].reports = -1;
            left--;
        }
    }
    tell_all('q', 0, 0);
    for (i = 0; i < NODES; i++) {
        int status = 0;
        MUST(waitpid(processes[i].pid, &status, 0) == processes[i].pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        put_away(&processes[i]);
    }
}

/* When something does not hold: nobody and nothing is left behind. */
static void give_up(void) {
    DIR *list;
    struct dirent *entry;
    int i;
    for (i = 0; i < NODES; i++) {
        if (processes[i].pid > 0 && kill(processes[i].pid, SIGKILL) == 0) {
            (void)waitpid(processes[i].pid, NULL, 0);
        }
    }
    list = opendir(directory);
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        closedir(list);
    }
    (void)rmdir(directory);
}

/* The next who opens a device removes what the dead have left. */
static void sweep(void) {
    int status = 0;
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        cci__sci_options options;
        cci__sci_error_t error;
        cci__sci_desc_t sd;
        memset(&options, 0, sizeof options);
        options.directory = directory;
        sd = cci__sci_open(&options, &error);
        MUST(error == CCI__SCI_ERR_OK);
        CCI__SCI(SCIClose)(sd, 0, &error);
        exit(error != CCI__SCI_ERR_OK);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST(count_entries(directory) == 0);
    MUST(rmdir(directory) == 0);
}

static void run_round(void) {
    int i;
    dice = round_seed;
    my_slot = -1;
    snprintf(directory, sizeof directory, "/dev/shm/cci-soak-XXXXXX");
    MUST(mkdtemp(directory) != NULL);
    memset(processes, 0, sizeof processes);
    for (i = 0; i < NODES; i++) {
        start(i);
    }
    wreak_chaos();
    await_calm();
    sweep();
}

int main(int argc, char **argv) {
    uint64_t seconds = 0, began_ms = now_ms();
    uint32_t rounds = 3, done = 0;
    int i;
    round_seed = 1;
    for (i = 1; i + 1 < argc; i += 2) {
        unsigned long long value = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--first") == 0) {
            round_seed = value;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            rounds = (uint32_t)value;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            seconds = value;
        } else {
            fprintf(stderr, "usage: soak_sisci [--first SEED] [--rounds N] [--seconds N]\n");
            return 2;
        }
    }
    forking = mmap(NULL, NODES * sizeof *forking, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(forking != MAP_FAILED);
    books = mmap(NULL, BOOKS * sizeof *books, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(books != MAP_FAILED);
    for (; seconds ? now_ms() < began_ms + seconds * 1000 : done < rounds; done++, round_seed++) {
        run_round();
    }
    printf("%u rounds: %u killed, %u stopped; %llu messages heard, %llu atomics and %llu lists asked for and %llu children made by those "
           "who lived\n",
           done, kills, stops, (unsigned long long)messages, (unsigned long long)atomics, (unsigned long long)lists, (unsigned long long)forks);
    MUST(kills > 0 && stops > 0 && messages > 0 && forks > 0 && atomics > 0 && lists > 0);
    return 0;
}
