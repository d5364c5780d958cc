/* sisci.h - what tests of software SISCI share: a directory of their own, checks with the place, second processes.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * A second process is forked before the first has a device, and talks over two pipes: one letter at a time, so that no
 * test depends on time. Without threads (CCI_NO_THREADS) who waits for a letter lets its devices work meanwhile.
 */
#ifndef TESTS_SISCI_H
#define TESTS_SISCI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *shared_root = "/dev/shm";
#define CCI__SCI_SHARED_ROOT shared_root
#define CCI_SISCI_API
#define CCI_SISCI_IMPLEMENTATION
#include "tests/support/delays.h"
#include "cci_sisci.h"
#include "tests/support/delays.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NODE CCI__SCI_NODE
#define PATIENCE_MS 60000u /* longer than any machine needs: reached only when a test fails */

/* Not every file of tests needs everything. */
#define HELPER static __attribute__((unused))

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int in_child;

HELPER __attribute__((noreturn)) void failed(int line, const char *what, unsigned int got) {
    if (in_child) {
        fprintf(stderr, "line %d of a second process: %s (0x%x)\n", line, what, got);
        _exit(1);
    }
    fail_msg("line %d: %s (0x%x)", line, what, got);
    abort(); /* not reached: cmocka jumps back */
}

#define TRUE(condition) ((condition) ? (void)0 : failed(__LINE__, #condition, 0))

/* A call with `&error` as its last argument. */
#define GIVES(code, call)                                                                                              \
    do {                                                                                                               \
        sci_error_t error = CCI__SCI_ERR_LAST_;                                                                        \
        call;                                                                                                          \
        if (error != (code)) failed(__LINE__, #call " does not give " #code, (unsigned int)error);                     \
    } while (0)
#define OK(call) GIVES(SCI_ERR_OK, call)

/* ---- the directory ------------------------------------------------------------------------------------------------- */

static char directory[64];

HELPER int forget_entry(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)status, (void)type;
    return at->level ? remove(path) : 0;
}

HELPER unsigned int count_names(const char *letters) {
    DIR *list = opendir(directory);
    unsigned int count = 0;
    struct dirent *entry;
    TRUE(list != NULL);
    while ((entry = readdir(list)) != NULL) {
        count += entry->d_name[0] != '.' && (!letters || strchr(letters, entry->d_name[0]));
    }
    closedir(list);
    return count;
}

HELPER unsigned int count_descriptors(void) {
    DIR *list = opendir("/proc/self/fd");
    unsigned int count = 0;
    TRUE(list != NULL);
    while (readdir(list)) count++;
    closedir(list);
    return count;
}

static unsigned int descriptors_before;

HELPER int setup(void **state) {
    (void)state;
    alarm(240);
    snprintf(directory, sizeof directory, "/dev/shm/cci-test-XXXXXX");
    if (!mkdtemp(directory)) return -1;
    descriptors_before = count_descriptors();
    setenv("CCI_SISCI_DIR", directory, 1);
    unsetenv("CCI_SISCI_GROUP");
    OK(SCIInitialize(0, &error));
    return 0;
}

/* A test leaves no name and no descriptor behind. */
HELPER int teardown(void **state) {
    unsigned int names = count_names(NULL), descriptors = count_descriptors();
    (void)state;
    SCITerminate();
    nftw(directory, forget_entry, 8, FTW_DEPTH | FTW_PHYS);
    rmdir(directory);
    alarm(0);
    if (names || descriptors != descriptors_before) {
        fprintf(stderr, "left behind: %u names, %d descriptors\n", names, (int)(descriptors - descriptors_before));
        return -1;
    }
    return 0;
}

/* ---- second processes ------------------------------------------------------------------------------------------------ */

typedef struct child {
    pid_t pid;
    int to, from;
} child;

/* Lets the devices of a process without threads work, for a millisecond. */
HELPER void breathe(void) {
#ifdef CCI_NO_THREADS
    if (cci__sci_world.devices) {
        cci__sci_progress(cci__sci_world.devices, 1);
    }
#endif
}

HELPER int is_readable(int fd) {
    struct pollfd item = {0, POLLIN, 0};
    item.fd = fd;
#ifdef CCI_NO_THREADS
    return poll(&item, 1, cci__sci_world.devices ? 0 : 1) > 0;
#else
    return poll(&item, 1, 1) > 0;
#endif
}

/* The next letter, 0 when the other process has ended. */
HELPER char hear(int fd) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    char letter = 0;
    while (!is_readable(fd)) {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
    }
    return read(fd, &letter, 1) == 1 ? letter : (char)0;
}

HELPER void say(int fd, char letter) {
    TRUE(write(fd, &letter, 1) == 1);
}

HELPER child start(void (*run)(int in, int out)) {
    int to[2], from[2];
    child c;
    TRUE(pipe(to) == 0 && pipe(from) == 0);
    fflush(NULL);
    c.pid = fork();
    TRUE(c.pid >= 0);
    if (c.pid == 0) {
        in_child = 1;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        alarm(240);
        close(to[1]);
        close(from[0]);
        run(to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    c.to = to[1];
    c.from = from[0];
    return c;
}

/* Waits for the end of a process: 0 when all its checks were true, else its signal or status. */
HELPER int end(child *c) {
    int status = -1;
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    while (waitpid(c->pid, &status, WNOHANG) == 0) {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
        cci__sci_nap();
    }
    close(c->to);
    close(c->from);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

HELPER void kill_child(child *c) {
    TRUE(kill(c->pid, SIGKILL) == 0);
    TRUE(end(c) == SIGKILL);
}

/* The process is stopped when this returns. */
HELPER void stop_child(child *c) {
    int status = 0;
    TRUE(kill(c->pid, SIGSTOP) == 0);
    TRUE(waitpid(c->pid, &status, WUNTRACED) == c->pid && WIFSTOPPED(status));
}

/* ---- what most tests begin with ---------------------------------------------------------------------------------------- */

HELPER sci_desc_t open_device(void) {
    sci_desc_t sd = NULL;
    OK(SCIOpen(&sd, 0, &error));
    return sd;
}

HELPER void close_device(sci_desc_t sd) {
    OK(SCIClose(sd, 0, &error));
}

HELPER sci_local_segment_t offer(sci_desc_t sd, unsigned int id, unsigned int size) {
    sci_local_segment_t segment = NULL;
    OK(SCICreateSegment(sd, &segment, id, size, NULL, NULL, 0, &error));
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    return segment;
}

HELPER sci_remote_segment_t join(sci_desc_t sd, unsigned int id) {
    sci_remote_segment_t segment = NULL;
    OK(SCIConnectSegment(sd, &segment, NODE, id, 0, NULL, NULL, PATIENCE_MS, 0, &error));
    return segment;
}

HELPER sci_segment_cb_reason_t local_event(sci_local_segment_t segment) {
    sci_segment_cb_reason_t reason = (sci_segment_cb_reason_t)0;
    OK(reason = SCIWaitForLocalSegmentEvent(segment, NULL, NULL, PATIENCE_MS, 0, &error));
    return reason;
}

HELPER sci_segment_cb_reason_t remote_event(sci_remote_segment_t segment) {
    sci_segment_cb_reason_t reason = (sci_segment_cb_reason_t)0;
    sci_error_t status = CCI__SCI_ERR_LAST_;
    OK(reason = SCIWaitForRemoteSegmentEvent(segment, &status, PATIENCE_MS, 0, &error));
    return reason;
}

HELPER volatile uint32_t *map_local(sci_local_segment_t segment, sci_map_t *map, unsigned int size) {
    void *base = NULL;
    OK(base = SCIMapLocalSegment(segment, map, 0, size, NULL, 0, &error));
    return (volatile uint32_t *)base;
}

HELPER volatile uint32_t *map_remote(sci_remote_segment_t segment, sci_map_t *map, unsigned int size) {
    volatile void *base = NULL;
    OK(base = SCIMapRemoteSegment(segment, map, 0, size, NULL, 0, &error));
    return (volatile uint32_t *)base;
}

/* Callbacks count what they get here. */
typedef struct heard {
    unsigned int count, reason[16];
    sci_error_t status[16];
    unsigned int length;
    char bytes[512];
    sci_callback_action_t answer;
} heard;

HELPER sci_callback_action_t note(heard *h, unsigned int reason, sci_error_t status) {
    unsigned int at = CCI__SCI_LOAD(h->count);
    sci_callback_action_t answer = CCI__SCI_LOAD(h->answer); /* who sees the count may change it */
    if (at < 16) {
        h->reason[at] = reason;
        h->status[at] = status;
    }
    CCI__SCI_STORE(h->count, at + 1);
    return answer;
}

HELPER void until_heard(sci_desc_t sd, const heard *h, unsigned int count) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    while (CCI__SCI_LOAD(h->count) < count) {
        TRUE(cci__sci_now() < deadline_ns);
#ifdef CCI_NO_THREADS
        cci__sci_progress(sd, 1);
#else
        (void)sd;
        cci__sci_nap();
#endif
    }
}

#endif
