/* test_sisci.c - software SISCI, function by function of its manual. What dies, lies or forks is in test_sisci_deaths.c.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include "tests/support/sisci.h"

#ifndef CCI_NO_THREADS
#include <pthread.h>
#endif

enum { ID = 0x100, SIZE = 8192 };

/* An owner and a user of its segment, each with a device. */
typedef struct pair {
    sci_desc_t owner, user;
    sci_local_segment_t local;
    sci_remote_segment_t remote;
} pair;

static pair begin(void) {
    pair p;
    p.owner = open_device();
    p.user = open_device();
    p.local = offer(p.owner, ID, SIZE);
    p.remote = join(p.user, ID);
    TRUE(local_event(p.local) == SCI_CB_CONNECT);
    return p;
}

static void finish(pair *p) {
    OK(SCIDisconnectSegment(p->remote, 0, &error));
    OK(SCIRemoveSegment(p->local, 0, &error));
    close_device(p->user);
    close_device(p->owner);
}

/* ---- SCIInitialize, SCIOpen, SCIClose ------------------------------------------------------------------------------ */

static void SCIOpen_wants_SCIInitialize_and_a_place_for_the_handle(void **state) {
    sci_desc_t sd = NULL;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIOpen(NULL, 0, &error));
    SCITerminate();
    GIVES(SCI_ERR_NOT_INITIALIZED, SCIOpen(&sd, 0, &error));
    SCITerminate();
    OK(SCIInitialize(0, &error));
    OK(SCIOpen(&sd, SCI_FLAG_THREAD_SAFE, &error));
    close_device(sd);
    SCIInitialize(0, NULL);
    SCITerminate();
}

static void SCIOpen_gives_ACCESS_for_a_directory_that_is_not_ours_alone(void **state) {
    static const mode_t open_to_others[] = {0701, 0704, 0710, 0740, 0770, 01777};
    char path[200];
    sci_desc_t sd = NULL;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        TRUE(chmod(directory, open_to_others[i]) == 0);
        GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
        TRUE(sd == NULL);
    }
    TRUE(chmod(directory, 0700) == 0);
    if (geteuid() == 0) {
        TRUE(chown(directory, 12345, (gid_t)-1) == 0);
        GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
        TRUE(chown(directory, 0, (gid_t)-1) == 0);
    }
    snprintf(path, sizeof path, "%s/link", directory);
    TRUE(symlink(directory, path) == 0);
    setenv("CCI_SISCI_DIR", path, 1);
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    TRUE(unlink(path) == 0);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    TRUE(unlink(path) == 0);
    memset(path, 'x', 81);
    path[0] = '/';
    path[81] = '\0';
    setenv("CCI_SISCI_DIR", path, 1);
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    setenv("CCI_SISCI_DIR", directory, 1);
    close_device(open_device());
}

static void SCIOpen_makes_the_directory_for_its_user_alone(void **state) {
    char path[100];
    struct stat status;
    (void)state;
    snprintf(path, sizeof path, "%s/new", directory);
    setenv("CCI_SISCI_DIR", path, 1);
    close_device(open_device());
    TRUE(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
    TRUE(rmdir(path) == 0);
}

static void SCIOpen_lets_a_configured_group_in_and_no_other(void **state) {
    char path[100], group[20];
    struct stat status;
    sci_desc_t sd = NULL;
    sci_local_segment_t segment;
    (void)state;
    snprintf(group, sizeof group, "%lu", (unsigned long)getegid());
    snprintf(path, sizeof path, "%s/new", directory);
    setenv("CCI_SISCI_DIR", path, 1);
    setenv("CCI_SISCI_GROUP", "no such group, surely", 1);
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    setenv("CCI_SISCI_GROUP", group, 1);
    sd = open_device();
    segment = offer(sd, 1, 4096);
    TRUE(stat(path, &status) == 0 && (status.st_mode & 07777) == 0750 && status.st_gid == getegid());
    TRUE(fstatat(sd->directory, sd->owner, &status, 0) == 0);
    TRUE((status.st_mode & 0777) == 0660 && status.st_gid == getegid());
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
    TRUE(chmod(path, 0770) == 0); /* members could remove each other's names */
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    TRUE(chmod(path, 01770) == 0);
    close_device(open_device());
    snprintf(group, sizeof group, "%lu", (unsigned long)getegid() + 1);
    setenv("CCI_SISCI_GROUP", group, 1);
    GIVES(SCI_ERR_ACCESS, SCIOpen(&sd, 0, &error));
    unsetenv("CCI_SISCI_GROUP");
    TRUE(rmdir(path) == 0);
    setenv("CCI_SISCI_DIR", directory, 1);
}

static void SCIClose_is_BUSY_while_something_depends_on_the_device(void **state) {
    pair p = begin();
    sci_dma_queue_t dq;
    sci_local_interrupt_t interrupt;
    unsigned int number;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIClose(NULL, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIClose(p.owner, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIClose(p.user, 0, &error));
    OK(SCIDisconnectSegment(p.remote, 0, &error));
    OK(SCIRemoveSegment(p.local, 0, &error));
    OK(SCICreateDMAQueue(p.owner, &dq, 0, 1, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIClose(p.owner, 0, &error));
    OK(SCIRemoveDMAQueue(dq, 0, &error));
    OK(SCICreateInterrupt(p.owner, &interrupt, 0, &number, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIClose(p.owner, 0, &error));
    OK(SCIRemoveInterrupt(interrupt, 0, &error));
    close_device(p.owner);
    close_device(p.user);
}

/* ---- local segments -------------------------------------------------------------------------------------------------- */

static void SCICreateSegment_checks_size_and_identifier(void **state) {
    sci_desc_t a = open_device(), b = open_device();
    sci_local_segment_t one, two, three = NULL;
    (void)state;
    GIVES(SCI_ERR_SIZE_ALIGNMENT, SCICreateSegment(a, &one, ID, 0, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateSegment(NULL, &one, ID, 4096, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateSegment(a, NULL, ID, 4096, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateSegment(a, &one, ID, 4096, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCICreateSegment(a, &one, ID, 4096, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(a, &two, ID, 4096, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(b, &two, ID, 4096, NULL, NULL, 0, &error));
    OK(SCICreateSegment(b, &two, ID, 4096, NULL, NULL, SCI_FLAG_PRIVATE, &error));
    OK(SCICreateSegment(b, &three, ID, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &error));
    TRUE(cci__sci_segment_id(three) != ID);
    OK(SCIRemoveSegment(one, 0, &error));
    OK(SCIRemoveSegment(two, 0, &error));
    OK(SCICreateSegment(b, &one, ID, 4096, NULL, NULL, 0, &error));
    OK(SCIRemoveSegment(one, 0, &error));
    OK(SCIRemoveSegment(three, 0, &error));
    close_device(a);
    close_device(b);
}

static void SCICreateSegment_gives_SYSTEM_when_there_are_no_descriptors(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment;
    int used[64], count = 0;
    struct rlimit limit, small;
    (void)state;
    TRUE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    small = limit;
    small.rlim_cur = 64;
    TRUE(setrlimit(RLIMIT_NOFILE, &small) == 0);
    while (count < 64 && (used[count] = dup(2)) >= 0) count++;
    GIVES(SCI_ERR_SYSTEM, SCICreateSegment(sd, &segment, ID, 4096, NULL, NULL, 0, &error));
    close(used[--count]); /* enough for the memory, not for the socket */
    GIVES(SCI_ERR_SYSTEM, SCICreateSegment(sd, &segment, ID, 4096, NULL, NULL, 0, &error));
    while (count > 0) close(used[--count]);
    TRUE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    segment = offer(sd, ID, 4096);
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
}

static void SCISetSegmentAvailable_wants_a_prepared_segment_that_is_not_private(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment, hidden, empty;
    (void)state;
    OK(SCICreateSegment(sd, &segment, ID, 4096, NULL, NULL, 0, &error));
    OK(SCICreateSegment(sd, &hidden, ID, 4096, NULL, NULL, SCI_FLAG_PRIVATE, &error));
    OK(SCICreateSegment(sd, &empty, ID + 1, 4096, NULL, NULL, SCI_FLAG_EMPTY, &error));
    GIVES(SCI_ERR_SEGMENT_NOT_PREPARED, SCISetSegmentAvailable(segment, 0, 0, &error));
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCIPrepareSegment(segment, 1, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIPrepareSegment(NULL, 0, 0, &error));
    OK(SCIPrepareSegment(segment, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error));
    OK(SCIPrepareSegment(hidden, 0, 0, &error));
    OK(SCIPrepareSegment(empty, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCISetSegmentAvailable(hidden, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCISetSegmentAvailable(empty, 0, 0, &error));
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCISetSegmentAvailable(segment, 1, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    OK(SCISetSegmentUnavailable(segment, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCISetSegmentUnavailable(segment, 0, 0, &error));
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCISetSegmentUnavailable(segment, 1, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    OK(SCIRemoveSegment(hidden, 0, &error));
    OK(SCIRemoveSegment(empty, 0, &error));
    close_device(sd);
}

static void SCISetSegmentUnavailable_refuses_the_new_invites_or_forces_the_old_to_leave(void **state) {
    pair p = begin();
    sci_remote_segment_t other = NULL;
    sci_map_t map;
    sci_sequence_t sequence;
    sci_sequence_status_t status;
    (void)state;
    (void)map_remote(p.remote, &map, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    OK(SCISetSegmentUnavailable(p.local, 0, SCI_FLAG_NOTIFY, &error));
    TRUE(remote_event(p.remote) == SCI_CB_DISCONNECT);
    GIVES(SCI_ERR_CONNECTION_REFUSED,
          SCIConnectSegment(p.user, &other, NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error));
    OK(status = SCICheckSequence(sequence, 0, &error));
    TRUE(status == SCI_SEQ_OK); /* it was an invitation */
    OK(SCISetSegmentAvailable(p.local, 0, 0, &error));
    OK(SCISetSegmentUnavailable(p.local, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(p.remote) == SCI_CB_DISCONNECT);
    TRUE(local_event(p.local) == SCI_CB_DISCONNECT);
    OK(status = SCICheckSequence(sequence, 0, &error));
    TRUE(status == SCI_SEQ_NOT_RETRIABLE);
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    finish(&p);
}

static void SCIRemoveSegment_is_BUSY_while_mapped_or_connected_unless_forced(void **state) {
    pair p = begin();
    sci_map_t map;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIRemoveSegment(NULL, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(p.local, 0, &error));
    (void)map_local(p.local, &map, SIZE);
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(p.local, SCI_FLAG_FORCE_REMOVE, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(p.local, SCI_FLAG_FORCE_REMOVE, &error));
    TRUE(remote_event(p.remote) == SCI_CB_DISCONNECT);
    p.local = offer(p.owner, ID, SIZE); /* the number is free at once */
    finish(&p);
}

static void SCIRemoveSegment_hears_first_who_has_disconnected(void **state) {
    enum { MANY = 300 };
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment = offer(owner, ID, 4096);
    sci_remote_segment_t *remote = (sci_remote_segment_t *)calloc(MANY, sizeof *remote);
    int i;
    (void)state;
    TRUE(remote != NULL);
    for (i = 0; i < MANY; i++) remote[i] = join(user, ID);
    for (i = 0; i < MANY; i++) OK(SCIDisconnectSegment(remote[i], 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    free(remote);
    close_device(owner);
    close_device(user);
}

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment, sci_segment_cb_reason_t reason,
                                      unsigned int node, unsigned int adapter, sci_error_t status) {
    (void)segment;
    return note((heard *)arg, node == NODE && adapter == 0 ? (unsigned int)reason : 99, status);
}

static void SCIWaitForLocalSegmentEvent_tells_of_connects_and_disconnects(void **state) {
    pair p = begin();
    unsigned int node = 0, adapter = 9;
    sci_segment_cb_reason_t reason = (sci_segment_cb_reason_t)0;
    (void)state;
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForLocalSegmentEvent(p.local, &node, &adapter, 0, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForLocalSegmentEvent(p.local, &node, &adapter, 10, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIWaitForLocalSegmentEvent(NULL, &node, &adapter, 10, 0, &error));
    OK(SCIDisconnectSegment(p.remote, 0, &error));
    OK(reason = SCIWaitForLocalSegmentEvent(p.local, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &error));
    TRUE(reason == SCI_CB_DISCONNECT && node == NODE && adapter == 0);
    p.remote = join(p.user, ID);
    finish(&p);
}

static void SCICreateSegment_calls_back_until_the_callback_cancels(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment;
    sci_remote_segment_t remote;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CONTINUE);
    OK(SCICreateSegment(owner, &segment, ID, 4096, on_local, &h, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForLocalSegmentEvent(segment, NULL, NULL, 0, 0, &error));
    remote = join(user, ID);
    until_heard(owner, &h, 1);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CANCEL);
    OK(SCIDisconnectSegment(remote, 0, &error));
    until_heard(owner, &h, 2);
    TRUE(h.reason[0] == SCI_CB_CONNECT && h.reason[1] == SCI_CB_DISCONNECT && h.status[1] == SCI_ERR_OK);
    remote = join(user, ID);
    TRUE(local_event(segment) == SCI_CB_CONNECT); /* the callback is over: it can be waited for */
    TRUE(h.count == 2);
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(owner);
    close_device(user);
}

static sci_callback_action_t removes_its_segment(void *arg, sci_local_segment_t segment, sci_segment_cb_reason_t reason,
                                                 unsigned int node, unsigned int adapter, sci_error_t status) {
    (void)node, (void)adapter;
    GIVES(SCI_ERR_BUSY, SCIClose(segment->served.target.sd, 0, &error));
    OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
    note((heard *)arg, (unsigned int)reason, status);
    return SCI_CALLBACK_CANCEL;
}

static void SCIRemoveSegment_may_be_called_by_the_callback_of_the_segment(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment;
    sci_remote_segment_t remote;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    OK(SCICreateSegment(owner, &segment, ID, 4096, removes_its_segment, &h, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    remote = join(user, ID);
    until_heard(owner, &h, 1);
    TRUE(remote_event(remote) == SCI_CB_DISCONNECT);
    OK(SCIDisconnectSegment(remote, 0, &error));
    close_device(owner);
    close_device(user);
}

/* ---- remote segments --------------------------------------------------------------------------------------------------- */

static void SCIConnectSegment_says_why_it_fails(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment;
    sci_remote_segment_t remote = NULL;
    (void)state;
    GIVES(SCI_ERR_NO_SUCH_SEGMENT, SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, 100, 0, &error));
    OK(SCICreateSegment(owner, &segment, ID, 4096, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_CONNECTION_REFUSED,
          SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error));
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    GIVES(SCI_ERR_CONNECTION_REFUSED,
          SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    GIVES(SCI_ERR_NO_LINK_ACCESS, SCIConnectSegment(user, &remote, NODE, ID, 1, NULL, NULL, 0, 0, &error));
    GIVES(SCI_ERR_NO_REMOTE_LINK_ACCESS, SCIConnectSegment(user, &remote, 8, ID, 0, NULL, NULL, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIConnectSegment(NULL, &remote, NODE, ID, 0, NULL, NULL, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIConnectSegment(user, NULL, NODE, ID, 0, NULL, NULL, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER,
          SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, 0, SCI_FLAG_USE_CALLBACK, &error));
    TRUE(remote == NULL);
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(owner);
    close_device(user);
}

static void SCIConnectSegment_finds_segments_of_its_own_device(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = offer(sd, 0xffffffffu, 4096);
    sci_remote_segment_t remote = join(sd, 0xffffffffu);
    (void)state;
    TRUE(SCIGetRemoteSegmentSize(remote) == 4096 && SCIGetRemoteSegmentSize(NULL) == 0);
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
}

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment, sci_segment_cb_reason_t reason,
                                       sci_error_t status) {
    (void)segment;
    return note((heard *)arg, (unsigned int)reason, status);
}

static void SCIConnectSegment_can_leave_the_answer_to_an_event(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment = offer(owner, ID, 4096);
    sci_remote_segment_t good, bad;
    sci_segment_cb_reason_t reason = (sci_segment_cb_reason_t)0;
    sci_error_t status = CCI__SCI_ERR_LAST_;
    sci_map_t map;
    heard h;
    (void)state;
    OK(SCIConnectSegment(user, &good, NODE, ID, 0, NULL, NULL, PATIENCE_MS, SCI_FLAG_ASYNCHRONOUS_CONNECT, &error));
    OK(reason = SCIWaitForRemoteSegmentEvent(good, &status, PATIENCE_MS, 0, &error));
    TRUE(reason == SCI_CB_CONNECT && status == SCI_ERR_OK && SCIGetRemoteSegmentSize(good) == 4096);
    OK(SCIConnectSegment(user, &bad, NODE, ID + 1, 0, NULL, NULL, PATIENCE_MS, SCI_FLAG_ASYNCHRONOUS_CONNECT, &error));
    OK(reason = SCIWaitForRemoteSegmentEvent(bad, &status, PATIENCE_MS, 0, &error));
    TRUE(reason == SCI_CB_CONNECT && status == SCI_ERR_NO_SUCH_SEGMENT);
    GIVES(SCI_ERR_SEGMENT_NOT_CONNECTED, SCIMapRemoteSegment(bad, &map, 0, 4096, NULL, 0, &error));
    OK(SCIDisconnectSegment(bad, 0, &error));
    OK(SCIDisconnectSegment(good, 0, &error));
    memset(&h, 0, sizeof h);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CONTINUE);
    OK(SCIConnectSegment(user, &good, NODE, ID, 0, on_remote, &h, PATIENCE_MS,
                         SCI_FLAG_ASYNCHRONOUS_CONNECT | SCI_FLAG_USE_CALLBACK, &error));
    until_heard(user, &h, 1);
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForRemoteSegmentEvent(good, &status, 0, 0, &error));
    OK(SCISetSegmentUnavailable(segment, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    until_heard(user, &h, 2);
    TRUE(h.reason[0] == SCI_CB_CONNECT && h.status[0] == SCI_ERR_OK && h.reason[1] == SCI_CB_DISCONNECT);
    OK(SCIConnectSegment(user, &bad, NODE, ID, 0, on_remote, &h, PATIENCE_MS,
                         SCI_FLAG_ASYNCHRONOUS_CONNECT | SCI_FLAG_USE_CALLBACK, &error));
    until_heard(user, &h, 3);
    TRUE(h.status[2] == SCI_ERR_CONNECTION_REFUSED);
    OK(SCIDisconnectSegment(bad, 0, &error));
    OK(SCIDisconnectSegment(good, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(owner);
    close_device(user);
}

static void SCIDisconnectSegment_is_BUSY_while_mapped(void **state) {
    pair p = begin();
    sci_map_t map;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIDisconnectSegment(NULL, 0, &error));
    (void)map_remote(p.remote, &map, SIZE);
    GIVES(SCI_ERR_BUSY, SCIDisconnectSegment(p.remote, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    finish(&p);
}

static void SCIWaitForRemoteSegmentEvent_gives_TIMEOUT_when_nothing_happens(void **state) {
    pair p = begin();
    sci_error_t status;
    (void)state;
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForRemoteSegmentEvent(p.remote, &status, 10, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIWaitForRemoteSegmentEvent(NULL, &status, 10, 0, &error));
    finish(&p);
}

/* ---- maps, sequences, copies --------------------------------------------------------------------------------------------- */

static void SCIMapSegment_checks_offset_and_size(void **state) {
    pair p = begin();
    sci_map_t map;
    (void)state;
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapLocalSegment(p.local, &map, 0, SIZE + 4, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapLocalSegment(p.local, &map, SIZE, 4, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapLocalSegment(p.local, &map, 0xfffffffcu, 8, NULL, 0, &error));
    GIVES(SCI_ERR_SIZE_ALIGNMENT, SCIMapLocalSegment(p.local, &map, 0, 0, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMapLocalSegment(NULL, &map, 0, 8, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMapLocalSegment(p.local, NULL, 0, 8, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapRemoteSegment(p.remote, &map, 4, SIZE, NULL, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapRemoteSegment(p.remote, &map, 0xfffffffcu, 0xfffffffcu, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMapRemoteSegment(NULL, &map, 0, 8, NULL, 0, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCIMapRemoteSegment(p.remote, &map, 0, 4, NULL, SCI_FLAG_CONDITIONAL_INTERRUPT_MAP, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED,
          SCIMapRemoteSegment(p.remote, &map, 0, 4, NULL, SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, &error));
    finish(&p);
}

static void SCIMapSegment_shows_all_sides_the_same_memory(void **state) {
    pair p = begin();
    sci_map_t all, part, here;
    volatile uint32_t *whole = map_remote(p.remote, &all, SIZE), *mine = map_local(p.local, &here, SIZE);
    volatile void *middle = NULL;
    (void)state;
    OK(middle = SCIMapRemoteSegment(p.remote, &part, 4100, 8, NULL, SCI_FLAG_SHARED_MAP, &error));
    TRUE(whole[0] == 0 && mine[SIZE / 4 - 1] == 0);
    whole[1025] = 0x12345678;
    TRUE(mine[1025] == 0x12345678 && *(volatile uint32_t *)middle == 0x12345678);
    mine[1026] = 7;
    TRUE(((volatile uint32_t *)middle)[1] == 7);
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIUnmapSegment(NULL, 0, &error));
    OK(SCIUnmapSegment(all, 0, &error));
    OK(SCIUnmapSegment(part, 0, &error));
    OK(SCIUnmapSegment(here, 0, &error));
    finish(&p);
}

static void SCIMapSegment_takes_a_suggested_address(void **state) {
    pair p = begin();
    sci_map_t map;
    volatile void *base = NULL;
    void *free_place = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    TRUE(free_place != MAP_FAILED && munmap(free_place, SIZE) == 0);
    OK(base = SCIMapRemoteSegment(p.remote, &map, 0, SIZE, free_place, SCI_FLAG_FIXED_MAP_ADDR, &error));
    TRUE(base == free_place);
    OK(SCIUnmapSegment(map, 0, &error));
    finish(&p);
}

static volatile uint32_t *readonly;

static void writes_where_it_must_not(int in, int out) {
    signal(SIGSEGV, SIG_DFL);
    (void)in, (void)out;
    readonly[0] = 1;
}

static void SCIMapSegment_READONLY_can_not_be_written_through(void **state) {
    pair p = begin();
    sci_map_t all, map;
    volatile uint32_t *writable = map_local(p.local, &all, SIZE);
    volatile void *base = NULL;
    child c;
    (void)state;
    OK(base = SCIMapRemoteSegment(p.remote, &map, 0, SIZE, NULL, SCI_FLAG_READONLY_MAP, &error));
    readonly = (volatile uint32_t *)base;
    writable[0] = 5;
    TRUE(readonly[0] == 5);
    c = start(writes_where_it_must_not);
    TRUE(end(&c) == SIGSEGV);
    TRUE(readonly[0] == 5);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIUnmapSegment(all, 0, &error));
    finish(&p);
}

static void copies_into_a_READONLY_map_are_ACCESS_and_copies_out_of_it_are_made(void **state) {
    pair p = begin();
    sci_map_t all, map, theirs;
    sci_sequence_t sequence;
    sci_block_transfer_t block;
    sci_local_segment_t segment;
    uint32_t word = 9, memory[16];
    void *own = NULL;
    volatile uint32_t *writable = map_local(p.local, &all, SIZE);
    volatile void *base = NULL, *both[2];
    (void)state;
    OK(base = SCIMapRemoteSegment(p.remote, &map, 0, SIZE, NULL, SCI_FLAG_READONLY_MAP, &error));
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    writable[0] = 5;
    both[0] = both[1] = base;
    GIVES(SCI_ERR_ACCESS, SCIMemCpy(sequence, &word, map, 0, 4, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemCopy(&word, map, 0, 4, SCI_FLAG_ERROR_CHECK, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemCpy_dual(sequence, sequence, &word, map, map, 0, 4, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemWrite(&word, base, 4, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemWrite(&word, (volatile char *)base + SIZE - 4, 4, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemWrite_mcast(&word, both, 4, 2, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCITransferBlock(all, 4, map, 0, 4, 0, &error));
    (void)map_remote(p.remote, &theirs, SIZE);
    GIVES(SCI_ERR_ACCESS, SCITransferBlockAsync(theirs, 4, map, 0, 4, &block, NULL, NULL, 0, &error));
    OK(SCIUnmapSegment(theirs, 0, &error));
    TRUE(writable[0] == 5);
    OK(SCIMemCpy(sequence, &word, map, 0, 4, SCI_FLAG_BLOCK_READ, &error));
    TRUE(word == 5);
    OK(SCITransferBlock(map, 0, all, 8, 4, 0, &error));
    TRUE(writable[2] == 5);
    GIVES(SCI_ERR_ACCESS, SCIMemCpy(sequence, (char *)(uintptr_t)base + 16, map, 0, 4, SCI_FLAG_BLOCK_READ, &error));
    GIVES(SCI_ERR_ACCESS, SCIMemCopy((char *)(uintptr_t)base + SIZE - 4, all, 0, 4, SCI_FLAG_BLOCK_READ, &error));
    TRUE(writable[4] == 0);
    OK(SCICreateSegment(p.user, &segment, 0, SIZE, NULL, NULL, SCI_FLAG_EMPTY | SCI_FLAG_PRIVATE, &error));
    GIVES(SCI_ERR_ILLEGAL_ADDRESS, SCIRegisterSegmentMemory((char *)(uintptr_t)base, SIZE, segment, 0, &error));
    OK(SCIRegisterSegmentMemory(memory, sizeof memory, segment, 0, &error));
    OK(own = SCIMapLocalSegment(segment, &theirs, 0, sizeof memory, NULL, SCI_FLAG_READONLY_MAP, &error));
    TRUE(own == memory);
    GIVES(SCI_ERR_ACCESS, SCIMemCopy(&word, theirs, 0, 4, 0, &error));
    OK(SCIMemCopy(memory, map, 0, 4, SCI_FLAG_BLOCK_READ, &error)); /* the program's own memory stays so */
    TRUE(memory[0] == 5);
    OK(SCIUnmapSegment(theirs, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIMemWrite(&word, writable + 1, 4, 0, &error)); /* where the address is used again it can be written to */
    OK(SCIUnmapSegment(all, 0, &error));
    finish(&p);
}

static void a_segment_that_is_larger_than_files_may_be_is_NOSPC(void **state) {
    struct rlimit old, small;
    sci_desc_t sd = open_device();
    sci_local_segment_t segment;
    sci_error_t status = SCI_ERR_OK;
    (void)state;
    TRUE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small = old;
    small.rlim_cur = SIZE - 1;
    TRUE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    SCICreateSegment(sd, &segment, 77, SIZE, NULL, NULL, 0, &status);
    TRUE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    TRUE(status == SCI_ERR_NOSPC);
    close_device(sd);
}

static void SCIUnmapSegment_is_BUSY_while_a_sequence_uses_the_map(void **state) {
    pair p = begin();
    sci_map_t map;
    sci_sequence_t sequence;
    (void)state;
    (void)map_remote(p.remote, &map, SIZE);
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateMapSequence(NULL, &sequence, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateMapSequence(map, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIRemoveSequence(NULL, 0, &error));
    OK(SCICreateMapSequence(map, &sequence, SCI_FLAG_FAST_BARRIER, &error));
    GIVES(SCI_ERR_BUSY, SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    finish(&p);
}

static sci_sequence_status_t begin_sequence(sci_sequence_t sequence) {
    sci_sequence_status_t status = SCI_SEQ_PENDING;
    OK(status = SCIStartSequence(sequence, 0, &error));
    return status;
}

static sci_sequence_status_t check_sequence(sci_sequence_t sequence, unsigned int flags) {
    sci_sequence_status_t status = SCI_SEQ_PENDING;
    OK(status = SCICheckSequence(sequence, flags, &error));
    return status;
}

static void SCICheckSequence_fails_once_for_good_and_is_pending_then(void **state) {
    pair p = begin();
    sci_map_t map, here;
    sci_sequence_t sequence, mine;
    uint32_t word = 1;
    (void)state;
    (void)map_remote(p.remote, &map, SIZE);
    (void)map_local(p.local, &here, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    OK(SCICreateMapSequence(here, &mine, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIStartSequence(NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICheckSequence(NULL, 0, &error));
    TRUE(begin_sequence(sequence) == SCI_SEQ_OK && check_sequence(sequence, 0) == SCI_SEQ_OK);
    TRUE(check_sequence(sequence, SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER) == SCI_SEQ_OK);
    SCIStoreBarrier(sequence, 0);
    SCIFlush(sequence, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
    SCIFlushReadBuffers(sequence);
    OK(SCISetSegmentUnavailable(p.local, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(p.remote) == SCI_CB_DISCONNECT);
    TRUE(check_sequence(sequence, 0) == SCI_SEQ_NOT_RETRIABLE);
    TRUE(check_sequence(sequence, 0) == SCI_SEQ_PENDING && begin_sequence(sequence) == SCI_SEQ_PENDING);
    TRUE(begin_sequence(mine) == SCI_SEQ_OK && check_sequence(mine, 0) == SCI_SEQ_OK);
    OK(SCIMemCpy(sequence, &word, map, 0, 4, 0, &error)); /* the memory is still there */
    GIVES(SCI_ERR_TRANSFER_FAILED, SCIMemCpy(sequence, &word, map, 0, 4, SCI_FLAG_ERROR_CHECK, &error));
    GIVES(SCI_ERR_TRANSFER_FAILED, SCIMemCopy(&word, map, 0, 4, SCI_FLAG_ERROR_CHECK, &error));
    GIVES(SCI_ERR_TRANSFER_FAILED, SCITransferBlock(here, 0, map, 0, 4, 0, &error));
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIRemoveSequence(mine, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIUnmapSegment(here, 0, &error));
    finish(&p);
}

static void SCIMemCpy_copies_both_ways_within_the_map(void **state) {
    pair p = begin();
    sci_map_t map, here;
    uint32_t out[4] = {1, 2, 3, 4}, in[4] = {0, 0, 0, 0};
    volatile uint32_t *mine = map_local(p.local, &here, SIZE);
    sci_sequence_t sequence;
    (void)state;
    (void)map_remote(p.remote, &map, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    OK(SCIMemCpy(sequence, out, map, SIZE - 16, 16, SCI_FLAG_ERROR_CHECK, &error));
    TRUE(mine[SIZE / 4 - 4] == 1 && mine[SIZE / 4 - 1] == 4);
    OK(SCIMemCpy(NULL, in, map, SIZE - 16, 16, SCI_FLAG_BLOCK_READ, &error));
    TRUE(memcmp(in, out, 16) == 0);
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMemCpy(sequence, out, map, SIZE - 12, 16, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMemCpy(sequence, out, map, 0xfffffffcu, 16, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMemCpy(sequence, NULL, map, 0, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMemCpy(sequence, out, NULL, 0, 4, 0, &error));
    OK(SCIMemCopy(out, map, 0, 16, 0, &error));
    TRUE(mine[0] == 1 && mine[3] == 4);
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMemCopy(out, map, SIZE, 4, 0, &error));
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIUnmapSegment(here, 0, &error));
    finish(&p);
}

static void SCIMemCpy_dual_and_mcast_and_SCIMemWrite_reach_every_target(void **state) {
    pair p = begin();
    sci_map_t map[2], here;
    sci_sequence_t sequence[2];
    unsigned int offset[2] = {64, 128};
    volatile uint32_t *mine = map_local(p.local, &here, SIZE);
    volatile void *target[2];
    uint32_t word = 9;
    (void)state;
    OK(target[0] = SCIMapRemoteSegment(p.remote, &map[0], 0, 4096, NULL, 0, &error));
    OK(target[1] = SCIMapRemoteSegment(p.remote, &map[1], 4096, 4096, NULL, 0, &error));
    OK(SCICreateMapSequence(map[0], &sequence[0], 0, &error));
    OK(SCICreateMapSequence(map[1], &sequence[1], 0, &error));
    OK(SCIMemCpy_dual(sequence[0], sequence[1], &word, map[0], map[1], 32, 4, 0, &error));
    TRUE(mine[8] == 9 && mine[1024 + 8] == 9);
    OK(SCIMemCpy_mcast(sequence, &word, map, offset, 4, 2, 0, &error));
    TRUE(mine[16] == 9 && mine[1024 + 32] == 9);
    offset[0] = 4096;
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMemCpy_mcast(sequence, &word, map, offset, 4, 2, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMemCpy_mcast(sequence, &word, NULL, offset, 4, 2, 0, &error));
    word = 10;
    OK(SCIMemWrite(&word, target[0], 4, 0, &error));
    TRUE(mine[0] == 10);
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMemWrite(&word, NULL, 4, 0, &error));
    word = 11;
    OK(SCIMemWrite_mcast(&word, target, 4, 2, 0, &error));
    TRUE(mine[0] == 11 && mine[1024] == 11);
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIMemWrite_mcast(&word, NULL, 4, 2, 0, &error));
    word = 12;
    OK(SCIMemWrite_dual(&word, target[0], map[0], target[1], map[1], 4, 0, &error));
    TRUE(mine[0] == 12 && mine[1024] == 12);
    OK(SCIRemoveSequence(sequence[0], 0, &error));
    OK(SCIRemoveSequence(sequence[1], 0, &error));
    OK(SCIUnmapSegment(map[0], 0, &error));
    OK(SCIUnmapSegment(map[1], 0, &error));
    OK(SCIUnmapSegment(here, 0, &error));
    finish(&p);
}

static void SCIRegisterSegmentMemory_makes_a_segment_of_the_programs_memory(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment, other;
    sci_map_t map;
    static uint32_t memory[64];
    void *base = NULL;
    (void)state;
    OK(SCICreateSegment(sd, &segment, 0, 256, NULL, NULL, SCI_FLAG_EMPTY | SCI_FLAG_PRIVATE, &error));
    OK(SCICreateSegment(sd, &other, 0, 256, NULL, NULL, SCI_FLAG_PRIVATE, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIMapLocalSegment(segment, &map, 0, 128, NULL, 0, &error));
    GIVES(SCI_ERR_SIZE_ALIGNMENT, SCIRegisterSegmentMemory(memory, 0, segment, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_ADDRESS, SCIRegisterSegmentMemory(NULL, 128, segment, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIRegisterSegmentMemory(memory, 260, segment, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIRegisterSegmentMemory(memory, 128, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIRegisterSegmentMemory(memory, 128, other, 0, &error));
    OK(SCIRegisterSegmentMemory(memory, 128, segment, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIRegisterSegmentMemory(memory, 128, segment, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIMapLocalSegment(segment, &map, 0, 256, NULL, 0, &error));
    OK(base = SCIMapLocalSegment(segment, &map, 64, 64, NULL, 0, &error));
    TRUE(base == memory + 16);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    OK(SCIRemoveSegment(other, 0, &error));
    close_device(sd);
}

/* ---- DMA ----------------------------------------------------------------------------------------------------------------- */

/* The user of a segment with a segment of its own to send from, and a queue. */
typedef struct engine {
    pair p;
    sci_local_segment_t source;
    sci_dma_queue_t dq;
    sci_map_t from, to;
    volatile uint32_t *source_base, *target_base;
} engine;

static engine begin_engine(unsigned int entries) {
    engine e;
    e.p = begin();
    OK(SCICreateSegment(e.p.user, &e.source, ID + 1, SIZE, NULL, NULL, 0, &error));
    OK(SCICreateDMAQueue(e.p.user, &e.dq, 0, entries, 0, &error));
    e.source_base = map_local(e.source, &e.from, SIZE);
    e.target_base = map_local(e.p.local, &e.to, SIZE);
    return e;
}

static void finish_engine(engine *e) {
    OK(SCIResetDMAQueue(e->dq, 0, &error));
    OK(SCIRemoveDMAQueue(e->dq, 0, &error));
    OK(SCIUnmapSegment(e->from, 0, &error));
    OK(SCIUnmapSegment(e->to, 0, &error));
    OK(SCIRemoveSegment(e->source, 0, &error));
    finish(&e->p);
}

static void SCICreateDMAQueue_checks_what_it_gets(void **state) {
    sci_desc_t sd = open_device();
    sci_dma_queue_t dq;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateDMAQueue(NULL, &dq, 0, 1, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateDMAQueue(sd, NULL, 0, 1, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateDMAQueue(sd, &dq, 0, 0, 0, &error));
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCICreateDMAQueue(sd, &dq, 1, 1, 0, &error));
    GIVES(SCI_ERR_FLAG_NOT_IMPLEMENTED, SCICreateDMAQueue(sd, &dq, 0, 1, SCI_FLAG_DMA_PHDMA, &error));
    GIVES(SCI_ERR_NOSPC, SCICreateDMAQueue(sd, &dq, 0, 0xffffffffu, 0, &error));
    close_device(sd);
}

static void SCIEnqueueDMATransfer_checks_what_it_gets(void **state) {
    engine e = begin_engine(2);
    (void)state;
    GIVES(SCI_ERR_SEGMENT_NOT_PREPARED,
          SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    OK(SCIPrepareSegment(e.source, 0, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 4, 0, SIZE, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, SIZE, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIEnqueueDMATransfer(NULL, e.source, e.p.remote, 0, 0, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIEnqueueDMATransfer(e.dq, NULL, e.p.remote, 0, 0, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIEnqueueDMATransfer(e.dq, e.source, NULL, 0, 0, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIEnqueueDMATransfer(e.dq, e.p.local, e.p.remote, 0, 0, 4, 0, &error));
    TRUE(SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_IDLE);
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
    TRUE(SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_GATHER);
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
    GIVES(SCI_ERR_MAX_ENTRIES, SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(e.source, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIDisconnectSegment(e.p.remote, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCISetSegmentUnavailable(e.p.local, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(e.p.remote) == SCI_CB_DISCONNECT);
    GIVES(SCI_ERR_SEGMENT_NOT_CONNECTED,
          SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
    finish_engine(&e);
}

static sci_dma_queue_state_t wait_for(sci_dma_queue_t dq) {
    sci_dma_queue_state_t result = SCI_DMAQUEUE_IDLE;
    OK(result = SCIWaitForDMAQueue(dq, PATIENCE_MS, 0, &error));
    return result;
}

static void SCIPostDMAQueue_moves_what_was_gathered_both_ways(void **state) {
    engine e = begin_engine(4);
    uint32_t i;
    (void)state;
    OK(SCIPrepareSegment(e.source, 0, 0, &error));
    for (i = 0; i < SIZE / 8; i++) e.source_base[i] = i;
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error)); /* nothing is gathered */
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, SIZE / 2, SIZE / 2, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, SIZE / 2, SIZE / 2, SIZE / 2, SCI_FLAG_DMA_READ, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIPostDMAQueue(NULL, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIPostDMAQueue(e.dq, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    TRUE(wait_for(e.dq) == SCI_DMAQUEUE_DONE && SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_DONE);
    for (i = 0; i < SIZE / 8; i++) TRUE(e.target_base[SIZE / 8 + i] == i && e.source_base[SIZE / 8 + i] == i);
    finish_engine(&e);
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t queue, sci_error_t status) {
    note((heard *)arg, (unsigned int)SCIDMAQueueState(queue), status);
    return SCI_CALLBACK_CONTINUE;
}

static void SCIPostDMAQueue_calls_back_when_all_is_done(void **state) {
    engine e = begin_engine(1);
    heard h;
    int round;
    (void)state;
    memset(&h, 0, sizeof h);
    OK(SCIPrepareSegment(e.source, 0, 0, &error));
    for (round = 0; round < 3; round++) {
        OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
        OK(SCIPostDMAQueue(e.dq, on_dma, &h, SCI_FLAG_USE_CALLBACK, &error));
        until_heard(e.p.user, &h, (unsigned int)round + 1);
        TRUE(h.reason[round] == SCI_DMAQUEUE_DONE && h.status[round] == SCI_ERR_OK);
        OK(SCIResetDMAQueue(e.dq, 0, &error));
    }
    finish_engine(&e);
}

/* A queue that stays posted: an interrupt's callback keeps the device from its work until it is let go. */
typedef struct brake {
    sci_local_interrupt_t interrupt;
    sci_remote_interrupt_t trigger;
    int entered, let_go;
} brake;

#ifndef CCI_NO_THREADS

static sci_callback_action_t on_brake(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    brake *b = (brake *)arg;
    (void)interrupt, (void)status;
    CCI__SCI_STORE(b->entered, 1);
    while (!CCI__SCI_LOAD(b->let_go)) cci__sci_nap();
    return SCI_CALLBACK_CONTINUE;
}

static void pull(brake *b, sci_desc_t sd) {
    unsigned int number;
    memset(b, 0, sizeof *b);
    OK(SCICreateInterrupt(sd, &b->interrupt, 0, &number, on_brake, b, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIConnectInterrupt(sd, &b->trigger, NODE, 0, number, PATIENCE_MS, 0, &error));
    OK(SCITriggerInterrupt(b->trigger, 0, &error));
    while (!CCI__SCI_LOAD(b->entered)) cci__sci_nap();
}

static void release(brake *b) {
    CCI__SCI_STORE(b->let_go, 1);
    OK(SCIDisconnectInterrupt(b->trigger, 0, &error));
    OK(SCIRemoveInterrupt(b->interrupt, 0, &error));
}

#else /* without threads nothing works while nobody waits */

static void pull(brake *b, sci_desc_t sd) {
    (void)sd;
    memset(b, 0, sizeof *b);
}

static void release(brake *b) {
    (void)b;
}

#endif

static void SCIDMAQueue_goes_through_its_states_and_no_other_way(void **state) {
    engine e = begin_engine(2);
    brake b;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    OK(SCIPrepareSegment(e.source, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIAbortDMAQueue(e.dq, 0, &error)); /* IDLE */
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForDMAQueue(e.dq, 0, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error)); /* GATHER */
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIAbortDMAQueue(e.dq, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForDMAQueue(e.dq, 0, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIRemoveDMAQueue(e.dq, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    pull(&b, e.p.user);
    OK(SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error)); /* POSTED */
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIRemoveDMAQueue(e.dq, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIResetDMAQueue(e.dq, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
#ifndef CCI_NO_THREADS
    TRUE(SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_POSTED);
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForDMAQueue(e.dq, 0, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForDMAQueue(e.dq, 10, 0, &error));
#endif
    OK(SCIAbortDMAQueue(e.dq, 0, &error)); /* ABORTED */
    TRUE(SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_ABORTED && wait_for(e.dq) == SCI_DMAQUEUE_ABORTED);
    OK(SCIAbortDMAQueue(e.dq, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    OK(SCIPostDMAQueue(e.dq, on_dma, &h, SCI_FLAG_USE_CALLBACK, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForDMAQueue(e.dq, 0, 0, &error)); /* its callback is active */
    OK(SCIAbortDMAQueue(e.dq, 0, &error));
    release(&b);
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, 4, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    OK(SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    TRUE(wait_for(e.dq) == SCI_DMAQUEUE_DONE); /* DONE */
    OK(SCIAbortDMAQueue(e.dq, 0, &error));
    TRUE(SCIDMAQueueState(e.dq) == SCI_DMAQUEUE_DONE);
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    OK(SCIResetDMAQueue(e.dq, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    OK(SCISetSegmentUnavailable(e.p.local, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(e.p.remote) == SCI_CB_DISCONNECT);
    OK(SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    TRUE(wait_for(e.dq) == SCI_DMAQUEUE_ERROR); /* ERROR */
    OK(SCIAbortDMAQueue(e.dq, 0, &error));
    TRUE(SCIDMAQueueState(NULL) == SCI_DMAQUEUE_ERROR);
    finish_engine(&e);
}

/* ---- block transfers ------------------------------------------------------------------------------------------------------- */

static void SCITransferBlock_copies_between_maps(void **state) {
    engine e = begin_engine(1);
    sci_map_t map;
    (void)state;
    (void)map_remote(e.p.remote, &map, SIZE);
    e.source_base[1] = 77;
    OK(SCITransferBlock(e.from, 4, map, 8, 4, 0, &error));
    TRUE(e.target_base[2] == 77);
    GIVES(SCI_ERR_OUT_OF_RANGE, SCITransferBlock(e.from, 4, map, 0, SIZE, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE, SCITransferBlock(e.from, 0, map, SIZE, 4, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCITransferBlock(NULL, 0, map, 0, 4, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    finish_engine(&e);
}

static int on_block(void *arg, sci_block_transfer_t block, sci_error_t status) {
    (void)block;
    note((heard *)arg, 1, status);
    return 0;
}

static void SCITransferBlockAsync_is_waited_for_or_calls_back(void **state) {
    engine e = begin_engine(1);
    sci_map_t map;
    sci_block_transfer_t block = NULL, other = NULL;
    brake b;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    (void)map_remote(e.p.remote, &map, SIZE);
    e.source_base[0] = 5;
    pull(&b, e.p.user);
    OK(SCITransferBlockAsync(e.from, 0, map, 0, SIZE, &block, NULL, NULL, 0, &error));
    OK(SCITransferBlockAsync(e.from, 0, map, 0, SIZE, &other, on_block, &h, SCI_FLAG_USE_CALLBACK, &error));
    TRUE(block != other);
    GIVES(SCI_ERR_BUSY, SCIUnmapSegment(map, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForBlockTransfer(other, 0, 0, &error));
#ifndef CCI_NO_THREADS
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForBlockTransfer(block, 0, 0, &error));
#endif
    release(&b);
    OK(SCIWaitForBlockTransfer(block, PATIENCE_MS, 0, &error));
    TRUE(e.target_base[0] == 5);
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForBlockTransfer(block, 0, 0, &error)); /* it is gone */
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIAbortBlockTransfer(block, 0, &error));
    until_heard(e.p.user, &h, 1);
    TRUE(h.status[0] == SCI_ERR_OK);
    GIVES(SCI_ERR_OUT_OF_RANGE, SCITransferBlockAsync(e.from, 4, map, 0, SIZE, &block, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCITransferBlockAsync(e.from, 0, map, 0, 4, NULL, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER,
          SCITransferBlockAsync(e.from, 0, map, 0, 4, &block, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCITransferBlockAsync(e.to, 0, map, 0, 4, &block, NULL, NULL, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    finish_engine(&e);
}

static void SCIAbortBlockTransfer_ends_one_that_is_under_way(void **state) {
    engine e = begin_engine(1);
    sci_block_transfer_t block = NULL;
    sci_map_t map;
    brake b;
    (void)state;
    (void)map_remote(e.p.remote, &map, SIZE);
    pull(&b, e.p.user);
    OK(SCITransferBlockAsync(e.from, 0, map, 0, SIZE, &block, NULL, NULL, 0, &error));
    OK(SCIAbortBlockTransfer(block, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIAbortBlockTransfer(block, 0, &error));
    OK(SCITransferBlockAsync(e.from, 0, map, 0, SIZE, &block, NULL, NULL, 0, &error));
    OK(SCISetSegmentUnavailable(e.p.local, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    release(&b);
    TRUE(remote_event(e.p.remote) == SCI_CB_DISCONNECT);
#ifdef CCI_NO_THREADS /* the engine comes after the news; with threads either may be first */
    GIVES(SCI_ERR_TRANSFER_FAILED, SCIWaitForBlockTransfer(block, PATIENCE_MS, 0, &error));
#else
    {
        sci_error_t error;
        SCIWaitForBlockTransfer(block, PATIENCE_MS, 0, &error);
        TRUE(error == SCI_ERR_TRANSFER_FAILED || error == SCI_ERR_OK);
    }
#endif
    OK(SCIUnmapSegment(map, 0, &error));
    finish_engine(&e);
}

/* ---- interrupts -------------------------------------------------------------------------------------------------------------- */

typedef struct bell {
    sci_desc_t owner, user;
    sci_local_interrupt_t local;
    sci_remote_interrupt_t remote;
    unsigned int number;
} bell;

static bell begin_bell(unsigned int flags) {
    bell b;
    b.owner = open_device();
    b.user = open_device();
    OK(SCICreateInterrupt(b.owner, &b.local, 0, &b.number, NULL, NULL, flags, &error));
    OK(SCIConnectInterrupt(b.user, &b.remote, NODE, 0, b.number, PATIENCE_MS, flags, &error));
    return b;
}

static void finish_bell(bell *b) {
    OK(SCIDisconnectInterrupt(b->remote, 0, &error));
    OK(SCIRemoveInterrupt(b->local, 0, &error));
    close_device(b->owner);
    close_device(b->user);
}

static void SCICreateInterrupt_gives_numbers_or_takes_a_fixed_one(void **state) {
    sci_desc_t sd = open_device();
    sci_local_interrupt_t one, two;
    unsigned int number = 0, other = 0;
    (void)state;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateInterrupt(sd, &one, 0, NULL, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateInterrupt(sd, NULL, 0, &number, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCICreateInterrupt(NULL, &one, 0, &number, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER,
          SCICreateInterrupt(sd, &one, 0, &number, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error));
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCICreateInterrupt(sd, &one, 2, &number, NULL, NULL, 0, &error));
    OK(SCICreateInterrupt(sd, &one, 0, &number, NULL, NULL, 0, &error));
    OK(SCICreateInterrupt(sd, &two, 0, &other, NULL, NULL, 0, &error));
    TRUE(number != other);
    OK(SCIRemoveInterrupt(two, 0, &error));
    GIVES(SCI_ERR_INTNO_USED, SCICreateInterrupt(sd, &two, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    other = 17;
    OK(SCICreateInterrupt(sd, &two, 0, &other, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    TRUE(other == 17);
    OK(SCIRemoveInterrupt(two, 0, &error));
    OK(SCIRemoveInterrupt(one, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIRemoveInterrupt(NULL, 0, &error));
    close_device(sd);
}

static void SCIConnectInterrupt_says_why_it_fails(void **state) {
    sci_desc_t sd = open_device();
    sci_remote_interrupt_t remote = NULL;
    (void)state;
    GIVES(SCI_ERR_NO_SUCH_INTNO, SCIConnectInterrupt(sd, &remote, NODE, 0, 5, 100, 0, &error));
    GIVES(SCI_ERR_NO_LINK_ACCESS, SCIConnectInterrupt(sd, &remote, NODE, 1, 5, 100, 0, &error));
    GIVES(SCI_ERR_NO_REMOTE_LINK_ACCESS, SCIConnectInterrupt(sd, &remote, 8, 0, 5, 100, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIConnectInterrupt(NULL, &remote, NODE, 0, 5, 100, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIConnectInterrupt(sd, NULL, NODE, 0, 5, 100, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIDisconnectInterrupt(NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCITriggerInterrupt(NULL, 0, &error));
    close_device(sd);
}

static void SCIWaitForInterrupt_gets_one_at_least_after_the_last_trigger(void **state) {
    bell b = begin_bell(0);
    int i;
    (void)state;
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(b.local, 0, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(b.local, 10, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIWaitForInterrupt(NULL, 10, 0, &error));
    for (i = 0; i < 5; i++) OK(SCITriggerInterrupt(b.remote, 0, &error));
    OK(SCIWaitForInterrupt(b.local, SCI_INFINITE_TIMEOUT, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(b.local, 0, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIRemoveInterrupt(b.local, 0, &error));
    finish_bell(&b);
}

static void SCIWaitForInterrupt_gets_as_many_as_triggers_when_they_are_counted(void **state) {
    bell b = begin_bell(SCI_FLAG_COUNTING_INT);
    int i;
    (void)state;
    for (i = 0; i < 5; i++) OK(SCITriggerInterrupt(b.remote, 0, &error));
    for (i = 0; i < 5; i++) OK(SCIWaitForInterrupt(b.local, PATIENCE_MS, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(b.local, 0, 0, &error));
    finish_bell(&b);
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    (void)interrupt;
    return note((heard *)arg, 1, status);
}

static void SCICreateInterrupt_calls_back_until_the_callback_cancels(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_interrupt_t local;
    sci_remote_interrupt_t remote;
    unsigned int number, i;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CONTINUE);
    OK(SCICreateInterrupt(owner, &local, 0, &number, on_interrupt, &h, SCI_FLAG_USE_CALLBACK | SCI_FLAG_COUNTING_INT,
                          &error));
    OK(SCIConnectInterrupt(user, &remote, NODE, 0, number, PATIENCE_MS, SCI_FLAG_COUNTING_INT, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForInterrupt(local, 0, 0, &error));
    for (i = 0; i < 3; i++) OK(SCITriggerInterrupt(remote, 0, &error));
    until_heard(owner, &h, 3);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CANCEL);
    for (i = 0; i < 3; i++) OK(SCITriggerInterrupt(remote, 0, &error));
    until_heard(owner, &h, 4);
    for (i = 0; i < 100; i++) breathe();
    while (1) { /* the callback may not have returned yet */
        sci_error_t error;
        SCIWaitForInterrupt(local, PATIENCE_MS, 0, &error);
        if (error == SCI_ERR_OK) break;
        TRUE(error == SCI_ERR_ILLEGAL_OPERATION);
    }
    OK(SCIWaitForInterrupt(local, PATIENCE_MS, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(local, 0, 0, &error));
    TRUE(h.count == 4 && h.status[3] == SCI_ERR_OK);
    OK(SCIDisconnectInterrupt(remote, 0, &error));
    OK(SCIRemoveInterrupt(local, 0, &error));
    close_device(owner);
    close_device(user);
}

/* ---- data interrupts ----------------------------------------------------------------------------------------------------------- */

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data, unsigned int length,
                                     sci_error_t status) {
    heard *h = (heard *)arg;
    (void)interrupt;
    h->length = length;
    memcpy(h->bytes, data, length);
    return note(h, 1, status);
}

static void SCIWaitForDataInterrupt_gets_what_was_sent_one_by_one(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_data_interrupt_t local;
    sci_remote_data_interrupt_t remote;
    char data[CCI__SCI_DATA_INTERRUPT_MAX + 4];
    unsigned int number, length, count = 0;
    sci_error_t status = SCI_ERR_OK;
    (void)state;
    memset(data, 'x', sizeof data);
    OK(SCICreateDataInterrupt(owner, &local, 0, &number, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_INTNO_USED,
          SCICreateDataInterrupt(user, &local, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    GIVES(SCI_ERR_NO_SUCH_INTNO, SCIConnectDataInterrupt(user, &remote, NODE, 0, number + 1, 100, 0, &error));
    GIVES(SCI_ERR_NO_REMOTE_LINK_ACCESS, SCIConnectDataInterrupt(user, &remote, 12, 0, number, 100, 0, &error));
    OK(SCIConnectDataInterrupt(user, &remote, NODE, 0, number, PATIENCE_MS, 0, &error));
    GIVES(SCI_ERR_OUT_OF_RANGE,
          SCITriggerDataInterrupt(remote, data, CCI__SCI_DATA_INTERRUPT_MAX + 1, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCITriggerDataInterrupt(remote, NULL, 1, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCITriggerDataInterrupt(NULL, data, 1, 0, &error));
    length = sizeof data;
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForDataInterrupt(local, data, &length, 0, 0, &error));
    OK(SCITriggerDataInterrupt(remote, (void *)(uintptr_t)"hello", 6, 0, &error));
    OK(SCITriggerDataInterrupt(remote, NULL, 0, 0, &error));
    OK(SCITriggerDataInterrupt(remote, data, CCI__SCI_DATA_INTERRUPT_MAX, 0, &error));
    length = 5;
    GIVES(SCI_ERR_OUT_OF_RANGE, SCIWaitForDataInterrupt(local, data, &length, PATIENCE_MS, 0, &error));
    TRUE(length == 6); /* it is still there */
    OK(SCIWaitForDataInterrupt(local, data, &length, PATIENCE_MS, 0, &error));
    TRUE(length == 6 && strcmp(data, "hello") == 0);
    OK(SCIWaitForDataInterrupt(local, data, &length, PATIENCE_MS, 0, &error));
    TRUE(length == 0);
    length = sizeof data;
    OK(SCIWaitForDataInterrupt(local, data, &length, PATIENCE_MS, 0, &error));
    TRUE(length == CCI__SCI_DATA_INTERRUPT_MAX);
    while (status == SCI_ERR_OK) {
        SCITriggerDataInterrupt(remote, data, 4, 0, &status);
        count += status == SCI_ERR_OK;
    }
    TRUE(status == SCI_ERR_NOSPC && count > 0);
    while (count-- > 0) {
        length = sizeof data;
        OK(SCIWaitForDataInterrupt(local, data, &length, PATIENCE_MS, 0, &error));
        TRUE(length == 4);
    }
    GIVES(SCI_ERR_BUSY, SCIRemoveDataInterrupt(local, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIRemoveDataInterrupt(NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIDisconnectDataInterrupt(NULL, 0, &error));
    OK(SCIDisconnectDataInterrupt(remote, 0, &error));
    OK(SCIRemoveDataInterrupt(local, 0, &error));
    close_device(owner);
    close_device(user);
}

static void SCICreateDataInterrupt_calls_back_with_the_data(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_data_interrupt_t local;
    sci_remote_data_interrupt_t remote;
    unsigned int number, length = 1;
    char byte;
    heard h;
    (void)state;
    memset(&h, 0, sizeof h);
    CCI__SCI_STORE(h.answer, SCI_CALLBACK_CONTINUE);
    OK(SCICreateDataInterrupt(owner, &local, 0, &number, on_data, &h, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCIConnectDataInterrupt(user, &remote, NODE, 0, number, PATIENCE_MS, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIWaitForDataInterrupt(local, &byte, &length, 0, 0, &error));
    OK(SCITriggerDataInterrupt(remote, (void *)(uintptr_t)"abc", 4, 0, &error));
    until_heard(owner, &h, 1);
    TRUE(h.length == 4 && strcmp(h.bytes, "abc") == 0);
    OK(SCIDisconnectDataInterrupt(remote, 0, &error));
    OK(SCIRemoveDataInterrupt(local, 0, &error));
    close_device(owner);
    close_device(user);
}

/* ---- shared and broadcast segments ------------------------------------------------------------------------------------------ */

static sci_local_segment_t attach(sci_desc_t sd, unsigned int id) {
    sci_local_segment_t segment = NULL;
    unsigned int size = 0;
    OK(SCIAttachLocalSegment(sd, &segment, id, &size, NULL, NULL, 0, &error));
    TRUE(size == SIZE);
    return segment;
}

static void SCIAttachLocalSegment_wants_a_segment_that_is_shared(void **state) {
    sci_desc_t owner = open_device(), other = open_device();
    sci_local_segment_t segment = offer(owner, ID, SIZE), hidden, attached = NULL;
    unsigned int size;
    (void)state;
    GIVES(SCI_ERR_NO_SUCH_SEGMENT, SCIAttachLocalSegment(other, &attached, ID + 1, &size, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ACCESS, SCIAttachLocalSegment(other, &attached, ID, &size, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIAttachLocalSegment(NULL, &attached, ID, &size, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIAttachLocalSegment(other, NULL, ID, &size, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER,
          SCIAttachLocalSegment(other, &attached, ID, &size, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error));
    OK(SCICreateSegment(owner, &hidden, 0, SIZE, NULL, NULL, SCI_FLAG_PRIVATE, &error));
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCIShareSegment(hidden, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIShareSegment(NULL, 0, &error));
    OK(SCIShareSegment(segment, 0, &error));
    OK(SCIAttachLocalSegment(other, &attached, ID, NULL, NULL, NULL, 0, &error));
    OK(SCIRemoveSegment(attached, 0, &error));
    OK(SCIRemoveSegment(hidden, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(owner);
    close_device(other);
}

static void SCIAttachLocalSegment_gives_the_same_memory_events_and_rights(void **state) {
    sci_desc_t owner = open_device(), other = open_device();
    sci_local_segment_t segment, attached;
    sci_remote_segment_t remote = NULL;
    sci_map_t here, there;
    volatile uint32_t *mine, *shared;
    (void)state;
    OK(SCICreateSegment(owner, &segment, ID, SIZE, NULL, NULL, 0, &error));
    OK(SCIShareSegment(segment, 0, &error));
    attached = attach(other, ID);
    mine = map_local(segment, &here, SIZE);
    shared = map_local(attached, &there, SIZE);
    shared[5] = 6;
    TRUE(mine[5] == 6);
    GIVES(SCI_ERR_SEGMENT_NOT_PREPARED, SCISetSegmentAvailable(attached, 0, 0, &error));
    OK(SCIPrepareSegment(attached, 0, 0, &error));
    OK(SCISetSegmentAvailable(attached, 0, 0, &error));
    remote = join(other, ID);
    TRUE(local_event(attached) == SCI_CB_CONNECT && local_event(segment) == SCI_CB_CONNECT);
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(attached, 0, &error)); /* mapped */
    OK(SCIUnmapSegment(there, 0, &error));
    OK(SCISetSegmentUnavailable(attached, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(remote) == SCI_CB_DISCONNECT);
    TRUE(local_event(attached) == SCI_CB_DISCONNECT && local_event(segment) == SCI_CB_DISCONNECT);
    GIVES(SCI_ERR_ILLEGAL_OPERATION, SCISetSegmentUnavailable(segment, 0, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(attached, 0, &error));
    OK(SCIUnmapSegment(here, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    GIVES(SCI_ERR_NO_SUCH_SEGMENT, SCIAttachLocalSegment(other, &attached, ID, NULL, NULL, NULL, 0, &error));
    close_device(owner);
    close_device(other);
}

/* The segment stays until all who share it have removed it, in whatever order. */
static void SCIRemoveSegment_hands_a_shared_segment_on_to_those_who_are_left(void **state) {
    sci_desc_t sd[4], user = open_device();
    sci_local_segment_t segment[4];
    sci_remote_segment_t remote;
    volatile uint32_t *memory;
    sci_map_t map;
    int i;
    (void)state;
    for (i = 0; i < 4; i++) sd[i] = open_device();
    segment[0] = offer(sd[0], ID, SIZE);
    OK(SCIShareSegment(segment[0], 0, &error));
    for (i = 1; i < 4; i++) segment[i] = attach(sd[i], ID);
    remote = join(user, ID);
    map_remote(remote, &map, SIZE)[9] = 10;
    OK(SCIUnmapSegment(map, 0, &error));
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(segment[0], 0, &error)); /* a user is in the way */
    OK(SCIDisconnectSegment(remote, 0, &error));
    for (i = 0; i < 3; i++) {
        sci_error_t result = SCI_ERR_OK;
        uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
        OK(SCIRemoveSegment(segment[i], 0, &error));
        close_device(sd[i]);
        do { /* until one of the others has taken over */
            TRUE(cci__sci_now() < deadline_ns);
            breathe();
            SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &result);
        } while (result != SCI_ERR_OK);
        memory = map_remote(remote, &map, SIZE);
        TRUE(memory[9] == 10);
        OK(SCIUnmapSegment(map, 0, &error));
        OK(SCIDisconnectSegment(remote, 0, &error));
    }
    OK(SCIRemoveSegment(segment[3], 0, &error));
    GIVES(SCI_ERR_NO_SUCH_SEGMENT, SCIConnectSegment(user, &remote, NODE, ID, 0, NULL, NULL, 100, 0, &error));
    close_device(sd[3]);
    close_device(user);
}

static sci_local_segment_t become_member(sci_desc_t sd) {
    sci_local_segment_t segment = NULL;
    OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST, &error));
    OK(SCIPrepareSegment(segment, 0, SCI_FLAG_BROADCAST, &error));
    return segment;
}

static void BROADCAST_segments_of_one_number_are_one_memory(void **state) {
    sci_desc_t sd[3], user = open_device();
    sci_local_segment_t segment[3], other;
    sci_remote_segment_t remote = NULL, late = NULL;
    sci_sequence_t sequence;
    volatile uint32_t *memory;
    sci_map_t map, member;
    int i;
    (void)state;
    for (i = 0; i < 3; i++) {
        sd[i] = open_device();
        segment[i] = become_member(sd[i]);
    }
    other = offer(user, ID, 4096); /* another segment: the numbers of groups are their own */
    GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(user, &other, ID, 4096, NULL, NULL, SCI_FLAG_BROADCAST, &error));
    GIVES(SCI_ERR_ILLEGAL_FLAG,
          SCICreateSegment(user, &other, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST | SCI_FLAG_PRIVATE, &error));
    GIVES(SCI_ERR_CONNECTION_REFUSED, SCIConnectSegment(user, &remote, SCI_BROADCAST_NODEID, ID, 0, NULL, NULL,
                                                        PATIENCE_MS, SCI_FLAG_BROADCAST, &error));
    OK(SCISetSegmentAvailable(segment[2], 0, 0, &error));
    OK(SCIConnectSegment(user, &remote, SCI_BROADCAST_NODEID, ID, 0, NULL, NULL, PATIENCE_MS, SCI_FLAG_BROADCAST,
                         &error));
    memory = map_remote(remote, &map, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    memory[3] = 33;
    for (i = 0; i < 3; i++) {
        TRUE(map_local(segment[i], &member, SIZE)[3] == 33);
        OK(SCIUnmapSegment(member, 0, &error));
    }
    for (i = 0; i < 2; i++) { /* the users stay while there is a member */
        uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
        sci_error_t result = SCI_ERR_OK;
        OK(SCIRemoveSegment(segment[i], 0, &error));
        close_device(sd[i]);
        do {
            TRUE(cci__sci_now() < deadline_ns);
            breathe();
            SCIConnectSegment(user, &late, SCI_BROADCAST_NODEID, ID, 0, NULL, NULL, PATIENCE_MS, 0, &result);
        } while (result != SCI_ERR_OK);
        OK(SCIDisconnectSegment(late, 0, &error));
        TRUE(check_sequence(sequence, 0) == SCI_SEQ_OK);
        GIVES(SCI_ERR_TIMEOUT, SCIWaitForRemoteSegmentEvent(remote, &result, 20, 0, &error));
    }
    {   /* the last member has heard of the user by now, or will */
        uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
        unsigned int users = 0;
        while (users == 0) {
            TRUE(cci__sci_now() < deadline_ns);
            cci__sci_lock(sd[2]);
            users = segment[2]->served.connection_count;
            cci__sci_unlock(sd[2]);
            breathe();
        }
    }
    GIVES(SCI_ERR_BUSY, SCIRemoveSegment(segment[2], 0, &error));
    OK(SCIRemoveSegment(segment[2], SCI_FLAG_FORCE_REMOVE, &error));
    TRUE(remote_event(remote) == SCI_CB_DISCONNECT);
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(other, 0, &error));
    close_device(sd[2]);
    close_device(user);
}

/* ---- questions --------------------------------------------------------------------------------------------------------------------- */

static void SCIQuery_answers_what_it_knows(void **state) {
    char text[100];
    unsigned int value = 0;
    sci_query_string_t string;
    sci_query_adapter_t adapter;
    (void)state;
    string.str = text;
    string.length = sizeof text;
    OK(SCIQuery(SCI_Q_VENDORID, &string, 0, &error));
    TRUE(strcmp(text, "CCI, shared memory") == 0);
    OK(SCIQuery(SCI_Q_API, &string, 0, &error));
    TRUE(strcmp(text, "1.10") == 0);
    string.length = 4;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIQuery(SCI_Q_API, &string, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIQuery(SCI_Q_API, NULL, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_QUERY, SCIQuery(99, &string, 0, &error));
    memset(&adapter, 0, sizeof adapter);
    adapter.subcommand = SCI_Q_ADAPTER_NODEID;
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
    adapter.data = &value;
    OK(SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
    TRUE(value == NODE);
    adapter.subcommand = SCI_Q_ADAPTER_LINK_OPERATIONAL;
    OK(SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
    TRUE(value == 1);
    adapter.subcommand = SCI_Q_ADAPTER_SERIAL_NUMBER;
    OK(SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
    adapter.subcommand = 99;
    GIVES(SCI_ERR_ILLEGAL_QUERY, SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
    adapter.localAdapterNo = 1;
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCIQuery(SCI_Q_ADAPTER, &adapter, 0, &error));
}

static void SCIProbeNode_reaches_this_node_alone(void **state) {
    sci_desc_t sd = open_device();
    int reached = 0;
    (void)state;
    OK(reached = SCIProbeNode(sd, 0, NODE, 0, &error));
    TRUE(reached == 1);
    GIVES(SCI_ERR_NO_LINK_ACCESS, reached = SCIProbeNode(sd, 1, NODE, 0, &error));
    TRUE(reached == 0);
    GIVES(SCI_ERR_NO_REMOTE_LINK_ACCESS, reached = SCIProbeNode(sd, 0, 8, 0, &error));
    TRUE(reached == 0);
    close_device(sd);
}

static void SCIGetLocalNodeId_and_names_of_adapters(void **state) {
    unsigned int node = 0, adapter = 5;
    dis_nodeId_list_t nodes;
    dis_adapter_type_t type = 3;
    char name[] = "localhost", other[] = "no host is called so";
    (void)state;
    OK(SCIGetLocalNodeId(0, &node, 0, &error));
    TRUE(node == NODE);
    GIVES(SCI_ERR_NO_SUCH_ADAPTERNO, SCIGetLocalNodeId(1, &node, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIGetLocalNodeId(0, NULL, 0, &error));
    OK(SCIGetNodeIdByAdapterName(name, &nodes, &type, 0, &error));
    TRUE(nodes[0] == NODE && nodes[1] == 0 && type == 0);
    OK(SCIGetNodeInfoByAdapterName(name, &adapter, &nodes, &type, 0, &error));
    TRUE(adapter == 0);
    GIVES(SCI_ERR_NO_SUCH_NODEID, SCIGetNodeIdByAdapterName(other, &nodes, &type, 0, &error));
    GIVES(SCI_ERR_ILLEGAL_PARAMETER, SCIGetNodeIdByAdapterName(NULL, &nodes, &type, 0, &error));
}

static void what_needs_an_adapter_is_NOT_IMPLEMENTED(void **state) {
    sci_desc_t sd = open_device();
    sci_address_t address = {0, 0, 0};
    sci_remote_segment_t segment;
    sci_local_interrupt_t interrupt;
    unsigned int count;
    (void)state;
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIGetCSRRegister(sd, 0, NODE, 0, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCISetCSRRegister(sd, 0, NODE, 0, 0, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIGetLocalCSR(sd, 0, 0, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCISetLocalCSR(sd, 0, 0, 0, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIAttachPhysicalMemory(0, NULL, 0, 4096, NULL, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIphDmaEnqueue(NULL, 4, 0, NODE, 0, 0, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIphDmaStart(NULL, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIConnectSCISpace(sd, 0, &segment, address, 4096, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIRegisterInterruptFlag(0, &interrupt, NULL, 0, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIEnableConditionalInterrupt(NULL, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIDisableConditionalInterrupt(NULL, 0, &error));
    GIVES(SCI_ERR_NOT_IMPLEMENTED, SCIGetConditionalInterruptTrigCounter(NULL, &count, 0, &error));
    close_device(sd);
}

/* ---- with threads --------------------------------------------------------------------------------------------------------------------- */

#ifndef CCI_NO_THREADS

static void *waits_for_local(void *segment) {
    GIVES(SCI_ERR_CANCELLED,
          SCIWaitForLocalSegmentEvent((sci_local_segment_t)segment, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

static void *waits_for_remote(void *segment) {
    sci_error_t status;
    GIVES(SCI_ERR_CANCELLED,
          SCIWaitForRemoteSegmentEvent((sci_remote_segment_t)segment, &status, SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

static void *waits_for_interrupt(void *interrupt) {
    GIVES(SCI_ERR_CANCELLED, SCIWaitForInterrupt((sci_local_interrupt_t)interrupt, SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

static void *waits_for_data(void *interrupt) {
    char data[8];
    unsigned int length = sizeof data;
    GIVES(SCI_ERR_CANCELLED, SCIWaitForDataInterrupt((sci_local_data_interrupt_t)interrupt, data, &length,
                                                     SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

/* Until somebody waits for the object. */
static void until_waited_for(cci__sci_target *target, unsigned int waiters) {
    unsigned int now = 0;
    while (now < waiters) {
        cci__sci_lock(target->sd);
        now = target->waiters;
        cci__sci_unlock(target->sd);
        cci__sci_nap();
    }
}

static void removal_gives_CANCELLED_to_those_who_wait(void **state) {
    sci_desc_t sd = open_device();
    sci_local_segment_t local = offer(sd, ID, 4096);
    sci_remote_segment_t remote = join(sd, ID);
    sci_local_interrupt_t interrupt;
    sci_local_data_interrupt_t data;
    unsigned int number;
    pthread_t thread[5];
    (void)state;
    TRUE(local_event(local) == SCI_CB_CONNECT);
    TRUE(pthread_create(&thread[0], NULL, waits_for_remote, remote) == 0);
    until_waited_for(&remote->remote.target, 1);
    OK(SCIDisconnectSegment(remote, 0, &error));
    TRUE(local_event(local) == SCI_CB_DISCONNECT);
    TRUE(pthread_create(&thread[1], NULL, waits_for_local, local) == 0);
    until_waited_for(&local->served.target, 1);
    OK(SCIRemoveSegment(local, 0, &error));
    OK(SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, 0, &error));
    TRUE(pthread_create(&thread[2], NULL, waits_for_interrupt, interrupt) == 0);
    TRUE(pthread_create(&thread[3], NULL, waits_for_interrupt, interrupt) == 0);
    until_waited_for(&interrupt->served.target, 2);
    OK(SCIRemoveInterrupt(interrupt, 0, &error));
    OK(SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, 0, &error));
    TRUE(pthread_create(&thread[4], NULL, waits_for_data, data) == 0);
    until_waited_for(&data->served.target, 1);
    OK(SCIRemoveDataInterrupt(data, 0, &error));
    for (number = 0; number < 5; number++) TRUE(pthread_join(thread[number], NULL) == 0);
    close_device(sd);
}

static void ignore_signal(int number) {
    (void)number;
}

static void *waits_for_a_signal(void *interrupt) {
    GIVES(SCI_ERR_CANCELLED, SCIWaitForInterrupt((sci_local_interrupt_t)interrupt, SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

static void *waits_for_dma(void *dq) {
    GIVES(SCI_ERR_CANCELLED, SCIWaitForDMAQueue((sci_dma_queue_t)dq, SCI_INFINITE_TIMEOUT, 0, &error));
    return NULL;
}

static void signal_until_joined(pthread_t thread) {
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        (void)pthread_kill(thread, SIGUSR1);
        cci__sci_nap();
    }
}

static void a_signal_gives_CANCELLED_where_the_manual_says_so(void **state) {
    engine e = begin_engine(1);
    sci_local_interrupt_t interrupt;
    struct sigaction action;
    unsigned int number;
    pthread_t thread;
    brake b;
    (void)state;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore_signal;
    TRUE(sigaction(SIGUSR1, &action, NULL) == 0);
    OK(SCICreateInterrupt(e.p.user, &interrupt, 0, &number, NULL, NULL, 0, &error));
    TRUE(pthread_create(&thread, NULL, waits_for_a_signal, interrupt) == 0);
    until_waited_for(&interrupt->served.target, 1);
    signal_until_joined(thread);
    OK(SCIRemoveInterrupt(interrupt, 0, &error));
    OK(SCIPrepareSegment(e.source, 0, 0, &error));
    OK(SCIEnqueueDMATransfer(e.dq, e.source, e.p.remote, 0, 0, SIZE, 0, &error));
    pull(&b, e.p.user);
    OK(SCIPostDMAQueue(e.dq, NULL, NULL, 0, &error));
    TRUE(pthread_create(&thread, NULL, waits_for_dma, e.dq) == 0);
    until_waited_for(&e.dq->target, 1);
    signal_until_joined(thread);
    release(&b);
    TRUE(wait_for(e.dq) == SCI_DMAQUEUE_DONE);
    finish_engine(&e);
}

static sci_desc_t crowd_owner;

/* Every function of the way from connecting to leaving, from several threads on one device. */
static void *lives(void *sd) {
    sci_desc_t device = (sci_desc_t)sd;
    int round;
    for (round = 0; round < 20; round++) {
        sci_remote_segment_t remote = join(device, ID);
        sci_local_segment_t mine;
        sci_local_interrupt_t local;
        sci_remote_interrupt_t trigger;
        sci_dma_queue_t dq;
        sci_map_t map;
        unsigned int number;
        (void)map_remote(remote, &map, SIZE);
        OK(SCICreateSegment(device, &mine, 0, SIZE, NULL, NULL, SCI_FLAG_AUTO_ID, &error));
        OK(SCIPrepareSegment(mine, 0, 0, &error));
        OK(SCICreateInterrupt(device, &local, 0, &number, NULL, NULL, 0, &error));
        OK(SCIConnectInterrupt(device, &trigger, NODE, 0, number, PATIENCE_MS, 0, &error));
        OK(SCITriggerInterrupt(trigger, 0, &error));
        OK(SCIWaitForInterrupt(local, PATIENCE_MS, 0, &error));
        OK(SCICreateDMAQueue(device, &dq, 0, 1, 0, &error));
        OK(SCIEnqueueDMATransfer(dq, mine, remote, 0, 0, SIZE, SCI_FLAG_DMA_READ, &error));
        OK(SCIPostDMAQueue(dq, NULL, NULL, 0, &error));
        TRUE(wait_for(dq) == SCI_DMAQUEUE_DONE);
        OK(SCIRemoveDMAQueue(dq, 0, &error));
        OK(SCIDisconnectInterrupt(trigger, 0, &error));
        OK(SCIRemoveInterrupt(local, 0, &error));
        OK(SCIUnmapSegment(map, 0, &error));
        OK(SCIDisconnectSegment(remote, 0, &error));
        OK(SCIRemoveSegment(mine, 0, &error));
    }
    return NULL;
}

static void every_function_may_be_called_from_any_thread(void **state) {
    sci_local_segment_t segment;
    sci_desc_t sd = open_device();
    pthread_t thread[4];
    int i;
    (void)state;
    crowd_owner = open_device();
    segment = offer(crowd_owner, ID, SIZE);
    for (i = 0; i < 4; i++) TRUE(pthread_create(&thread[i], NULL, lives, i < 3 ? sd : crowd_owner) == 0);
    for (i = 0; i < 4; i++) TRUE(pthread_join(thread[i], NULL) == 0);
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
    close_device(crowd_owner);
}

#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(SCIOpen_wants_SCIInitialize_and_a_place_for_the_handle),
        TEST(SCIOpen_gives_ACCESS_for_a_directory_that_is_not_ours_alone),
        TEST(SCIOpen_makes_the_directory_for_its_user_alone),
        TEST(SCIOpen_lets_a_configured_group_in_and_no_other),
        TEST(SCIClose_is_BUSY_while_something_depends_on_the_device),
        TEST(SCICreateSegment_checks_size_and_identifier),
        TEST(SCICreateSegment_gives_SYSTEM_when_there_are_no_descriptors),
        TEST(SCISetSegmentAvailable_wants_a_prepared_segment_that_is_not_private),
        TEST(SCISetSegmentUnavailable_refuses_the_new_invites_or_forces_the_old_to_leave),
        TEST(SCIRemoveSegment_is_BUSY_while_mapped_or_connected_unless_forced),
        TEST(SCIRemoveSegment_hears_first_who_has_disconnected),
        TEST(SCIWaitForLocalSegmentEvent_tells_of_connects_and_disconnects),
        TEST(SCICreateSegment_calls_back_until_the_callback_cancels),
        TEST(SCIRemoveSegment_may_be_called_by_the_callback_of_the_segment),
        TEST(SCIConnectSegment_says_why_it_fails),
        TEST(SCIConnectSegment_finds_segments_of_its_own_device),
        TEST(SCIConnectSegment_can_leave_the_answer_to_an_event),
        TEST(SCIDisconnectSegment_is_BUSY_while_mapped),
        TEST(SCIWaitForRemoteSegmentEvent_gives_TIMEOUT_when_nothing_happens),
        TEST(SCIMapSegment_checks_offset_and_size),
        TEST(SCIMapSegment_shows_all_sides_the_same_memory),
        TEST(SCIMapSegment_takes_a_suggested_address),
        TEST(SCIMapSegment_READONLY_can_not_be_written_through),
        TEST(copies_into_a_READONLY_map_are_ACCESS_and_copies_out_of_it_are_made),
        TEST(a_segment_that_is_larger_than_files_may_be_is_NOSPC),
        TEST(SCIUnmapSegment_is_BUSY_while_a_sequence_uses_the_map),
        TEST(SCICheckSequence_fails_once_for_good_and_is_pending_then),
        TEST(SCIMemCpy_copies_both_ways_within_the_map),
        TEST(SCIMemCpy_dual_and_mcast_and_SCIMemWrite_reach_every_target),
        TEST(SCIRegisterSegmentMemory_makes_a_segment_of_the_programs_memory),
        TEST(SCICreateDMAQueue_checks_what_it_gets),
        TEST(SCIEnqueueDMATransfer_checks_what_it_gets),
        TEST(SCIPostDMAQueue_moves_what_was_gathered_both_ways),
        TEST(SCIPostDMAQueue_calls_back_when_all_is_done),
        TEST(SCIDMAQueue_goes_through_its_states_and_no_other_way),
        TEST(SCITransferBlock_copies_between_maps),
        TEST(SCITransferBlockAsync_is_waited_for_or_calls_back),
        TEST(SCIAbortBlockTransfer_ends_one_that_is_under_way),
        TEST(SCICreateInterrupt_gives_numbers_or_takes_a_fixed_one),
        TEST(SCIConnectInterrupt_says_why_it_fails),
        TEST(SCIWaitForInterrupt_gets_one_at_least_after_the_last_trigger),
        TEST(SCIWaitForInterrupt_gets_as_many_as_triggers_when_they_are_counted),
        TEST(SCICreateInterrupt_calls_back_until_the_callback_cancels),
        TEST(SCIWaitForDataInterrupt_gets_what_was_sent_one_by_one),
        TEST(SCICreateDataInterrupt_calls_back_with_the_data),
        TEST(SCIAttachLocalSegment_wants_a_segment_that_is_shared),
        TEST(SCIAttachLocalSegment_gives_the_same_memory_events_and_rights),
        TEST(SCIRemoveSegment_hands_a_shared_segment_on_to_those_who_are_left),
        TEST(BROADCAST_segments_of_one_number_are_one_memory),
        TEST(SCIQuery_answers_what_it_knows),
        TEST(SCIProbeNode_reaches_this_node_alone),
        TEST(SCIGetLocalNodeId_and_names_of_adapters),
        TEST(what_needs_an_adapter_is_NOT_IMPLEMENTED),
#ifndef CCI_NO_THREADS
        TEST(removal_gives_CANCELLED_to_those_who_wait),
        TEST(a_signal_gives_CANCELLED_where_the_manual_says_so),
        TEST(every_function_may_be_called_from_any_thread),
#endif
    };
    setvbuf(stdout, NULL, _IONBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
