/* soak_hooks.h - the hooks that the library of the soak test calls, and fork() inside any of them.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * The process that forks is the whole test: the parent goes on as if nothing had happened, and the digest of all that was sent
 * shows that. The child finds that every endpoint which it inherited is dead, and no call of its own reaches a link. A fork
 * inside a call stands for another thread that forks meanwhile: the child never returns to the place where it was.
 */
#ifndef CCI_SOAK_HOOKS_H
#define CCI_SOAK_HOOKS_H

#include "tests/support/seal.h"
#include "tests/soak/soak_model.h"

#include <errno.h>
#include <sys/wait.h>

static uint32_t alloc_fails_at; /* 0: never; 1: from now on; n: the n-th */
static uint32_t fork_after;     /* calls of hooks until the process forks inside one; 0: it does not */
static uint32_t log_lines;      /* of errors */

/* ---- the child ------------------------------------------------------------------------------------------------------- */

#define CHILD_MUST(condition) REQUIRE(ORACLE_FORK, condition, "in the child: %s", #condition)

/* The core knows it: it is neither being made nor being destroyed. */
static uint32_t is_among(const cci_endpoint_base_t *list, const cci_endpoint_t *endpoint) {
    for (; list != NULL && &list->pub != endpoint; list = list->next_in_core) {
    }
    return list != NULL;
}

static void child_tries_endpoint(node_t *node) {
    static uint8_t memory[64];
    uint32_t value = 1000000, i;
    uint64_t deadline_ns;
    cci_rma_handle_t *handle;
    cci_event_t *event;
    char *uri;
    CHILD_MUST(cci_get_event(node->endpoint, &event) == CCI_ERR_DEVICE_DEAD && event == NULL);
    CHILD_MUST(cci_arm_os_handle(node->endpoint, 0) == CCI_ERR_DEVICE_DEAD);
    CHILD_MUST(cci_next_deadline(node->endpoint, &deadline_ns) == CCI_ERR_DEVICE_DEAD);
    CHILD_MUST(cci_connect(node->endpoint, "sim://1000", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_ERR_DEVICE_DEAD);
    CHILD_MUST(cci_set_opt(node->endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
    CHILD_MUST(cci_get_opt(node->endpoint, CCI_OPT_ENDPT_URI, &uri) == CCI_ERR_DEVICE_DEAD);
    CHILD_MUST(cci_rma_register(node->endpoint, memory, sizeof memory, CCI_FLAG_WRITE, &handle) == CCI_ERR_DEVICE_DEAD);
    for (i = 0; i < node->hoard_count; i++) {
        CHILD_MUST(cci_return_event(node->hoard[i]) == CCI_SUCCESS);
    }
}

static void child_tries_connection(const side_t *side) {
    cci_rma_handle_t none;
    uint32_t value = 1000000;
    memset((void *)&none, 0, sizeof none);
    if (side->handle->attribute != CCI_CONN_ATTR_UU_MC_RX) {
        CHILD_MUST(cci_send(side->handle, "never", 5, NULL, 0) == CCI_ERR_DEVICE_DEAD);
    }
    if (side->handle->attribute <= CCI_CONN_ATTR_RU) {
        CHILD_MUST(cci_rma(side->handle, NULL, 0, &none, 0, &none, 0, 1, NULL, CCI_FLAG_WRITE) == CCI_ERR_DEVICE_DEAD);
        CHILD_MUST(cci_set_opt(side->handle, CCI_OPT_CONN_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
        CHILD_MUST(cci_get_opt(side->handle, CCI_OPT_CONN_SEND_TIMEOUT, &value) == CCI_ERR_DEVICE_DEAD);
    }
    CHILD_MUST(cci_disconnect(side->handle) == CCI_SUCCESS);
}

/* Ends with 0 if all that it inherited is dead; `known` endpoints are inherited. */
static void __attribute__((noreturn)) be_the_child(uint32_t known) {
    cci_device_t *const *devices;
    cci_endpoint_t *made;
    uint32_t i, at, lines = log_lines;
    uint64_t sealed = seal_state.sealed;
    net.pcap = NULL; /* the parent's */
    net_at_each_call = NULL;
    fork_after = alloc_fails_at = 0;
    alarm(60);
    CHILD_MUST(net.links_told_of_fork == known);
    for (i = 0; i < node_count; i++) {
        if (is_among(cci__core.dead, nodes[i].endpoint)) {
            child_tries_endpoint(&nodes[i]);
        }
    }
    for (i = 0; i < conn_count; i++) {
        for (at = 0; at < 2; at++) {
            const side_t *side = &conns[i].side[at];
            if (side->state == SIDE_OPEN && is_among(cci__core.dead, nodes[side->node].endpoint)) {
                child_tries_connection(side);
            }
        }
    }
    CHILD_MUST(cci_get_devices(&devices) == CCI_ERROR);
    CHILD_MUST(cci_create_endpoint(NULL, 0, &made, NULL) == CCI_ERROR);
    CHILD_MUST(log_lines - lines == (known > 0)); /* once, however often it is called */
    for (i = 0; i < node_count; i++) {
        CHILD_MUST(!is_among(cci__core.dead, nodes[i].endpoint) || cci_destroy_endpoint(nodes[i].endpoint) == CCI_SUCCESS);
    }
    CHILD_MUST(cci_finalize() == CCI_SUCCESS);
    CHILD_MUST(cci_finalize() == CCI_ERROR);
    CHILD_MUST(net.calls_of_links == 0); /* no packet has left */
    CHILD_MUST(seal_state.sealed == sealed);
    _exit(0);
}

/* ---- the parent ------------------------------------------------------------------------------------------------------ */

static void soak_fork(void) {
    const cci_endpoint_base_t *endpoint;
    uint32_t known = 0;
    int status = 0;
    pid_t child;
    for (endpoint = cci__core.endpoints; endpoint != NULL; endpoint = endpoint->next_in_core) {
        known++;
    }
    fflush(stdout);
    net.links_told_of_fork = net.calls_of_links = 0;
    child = CCI__HAS_ATFORK ? fork() : -1;
    if (child == 0) {
        be_the_child(known);
    }
    if (child < 0) {
        return; /* the machine has no place for another process, or no way to tell the library of it */
    }
    net.faults[FAULT_FORKED]++;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) > 0) {
        _exit(WEXITSTATUS(status)); /* the child has said why */
    }
    REQUIRE(ORACLE_FORK, status == 0, "a child ended with %x", (unsigned)status);
    REQUIRE(ORACLE_FORK, net.links_told_of_fork == 0, "links of the parent were told of a fork");
}

/* Each hook begins with this. */
static void fork_when_due(void) {
    if (fork_after > 0 && --fork_after == 0) {
        net.faults[FAULT_FORKED_INSIDE]++;
        soak_fork();
    }
}

/* ---- memory, log, random numbers ------------------------------------------------------------------------------------------ */

typedef union counted {
    size_t size;
    long double align;
    char room[16];
} counted_t;

static size_t live_blocks;
static int alloc_fails_for_ever;
static uint64_t random_state;

static void *soak_alloc(void *user, size_t size) {
    counted_t *block;
    (void)user;
    fork_when_due();
    if (alloc_fails_at == 1) {
        alloc_fails_at = alloc_fails_for_ever ? 1 : 0;
        net.faults[FAULT_ALLOCATION]++;
        return NULL;
    }
    alloc_fails_at -= alloc_fails_at > 1;
    block = (counted_t *)malloc(sizeof *block + size);
    if (block == NULL) {
        return NULL;
    }
    live_blocks++;
    return block + 1;
}

static void soak_release(void *user, void *pointer) {
    (void)user;
    fork_when_due();
    if (pointer != NULL) {
        live_blocks--;
        free((counted_t *)pointer - 1);
    }
}

static int soak_random(void *user, void *bytes, size_t count) {
    uint8_t *at = (uint8_t *)bytes;
    (void)user;
    fork_when_due();
    while (count-- > 0) {
        *at++ = (uint8_t)(mix(++random_state) >> 24);
    }
    return 0;
}

static void soak_log(void *user, int level, const char *text) {
    (void)user;
    (void)text;
    log_lines += level == CCI_LOG_ERROR;
}

#endif /* CCI_SOAK_HOOKS_H */
