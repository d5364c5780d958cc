/* test_sisci_deaths.c - software SISCI when others die, stop, lie or fork.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include "tests/support/sisci.h"

enum { ID = 0x200, SIZE = 65536, NUMBER = 33 };

/* ---- death -------------------------------------------------------------------------------------------------------- */

/* Offers one of each until it is told to end, or killed. */
static void owns(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = offer(sd, ID, SIZE);
    sci_local_interrupt_t interrupt;
    sci_local_data_interrupt_t data;
    unsigned int number = NUMBER;
    char letter;
    OK(SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    OK(SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    say(out, 'r');
    while ((letter = hear(in)) == 'e') { /* an event, please */
        sci_segment_cb_reason_t reason = local_event(segment);
        say(out, (char)('0' + (int)reason));
    }
    if (letter == 'q') {
        OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
        OK(SCIRemoveInterrupt(interrupt, 0, &error));
        OK(SCIRemoveDataInterrupt(data, 0, &error));
        close_device(sd);
    }
}

/* Connects one of each, and leaves without a word when it is told to. */
static void uses(int in, int out) {
    sci_desc_t sd = open_device();
    sci_remote_segment_t segment;
    sci_map_t map;
    char letter = hear(in);
    segment = join(sd, ID);
    map_remote(segment, &map, SIZE)[0]++;
    say(out, 'r');
    letter = hear(in);
    if (letter == 'q') {
        OK(SCIUnmapSegment(map, 0, &error));
        OK(SCIDisconnectSegment(segment, 0, &error));
        close_device(sd);
    }
}

static void two_processes_share_memory_and_events(void **state) {
    child owner = start(owns);
    sci_desc_t sd;
    sci_remote_segment_t remote;
    sci_remote_interrupt_t bell;
    sci_map_t map;
    (void)state;
    TRUE(hear(owner.from) == 'r');
    sd = open_device();
    remote = join(sd, ID);
    (void)map_remote(remote, &map, SIZE);
    say(owner.to, 'e');
    TRUE(hear(owner.from) == '0' + SCI_CB_CONNECT);
    OK(SCIConnectInterrupt(sd, &bell, NODE, 0, NUMBER, PATIENCE_MS, 0, &error));
    OK(SCIDisconnectInterrupt(bell, 0, &error));
    say(owner.to, 'q');
    TRUE(remote_event(remote) == SCI_CB_DISCONNECT);
    TRUE(end(&owner) == 0);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    close_device(sd);
}

static void finds_all_taken(int in, int out) {
    sci_desc_t sd;
    sci_local_segment_t segment;
    sci_local_interrupt_t interrupt;
    unsigned int number = NUMBER;
    (void)hear(in);
    (void)out;
    sd = open_device();
    GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, 0, &error));
    GIVES(SCI_ERR_INTNO_USED,
          SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    close_device(sd);
}

static void a_killed_owner_is_LOST_and_its_successor_takes_the_same_numbers(void **state) {
    child owner = start(owns), rival = start(finds_all_taken), user = start(uses);
    sci_desc_t sd = NULL;
    sci_remote_segment_t remote;
    sci_remote_interrupt_t bell;
    sci_remote_data_interrupt_t letterbox;
    sci_sequence_t sequence;
    sci_sequence_status_t status = SCI_SEQ_OK;
    sci_map_t map;
    volatile uint32_t *memory;
    (void)state;
    TRUE(hear(owner.from) == 'r');
    say(rival.to, 'g');
    TRUE(end(&rival) == 0);
    sd = open_device();
    remote = join(sd, ID);
    memory = map_remote(remote, &map, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    OK(SCIConnectInterrupt(sd, &bell, NODE, 0, NUMBER, PATIENCE_MS, 0, &error));
    OK(SCIConnectDataInterrupt(sd, &letterbox, NODE, 0, NUMBER, PATIENCE_MS, 0, &error));
    kill_child(&owner);
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(status = SCICheckSequence(sequence, 0, &error));
    TRUE(status == SCI_SEQ_NOT_RETRIABLE);
    GIVES(SCI_ERR_NOT_CONNECTED, SCITriggerInterrupt(bell, 0, &error));
    GIVES(SCI_ERR_NOT_CONNECTED, SCITriggerDataInterrupt(letterbox, NULL, 0, 0, &error));
    memory[SIZE / 4 - 1] = 1; /* the memory stays */
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIDisconnectInterrupt(bell, 0, &error));
    OK(SCIDisconnectDataInterrupt(letterbox, 0, &error));
    {   /* the dead owner's names do not keep anybody from its numbers, in a process that was there before it died */
        sci_local_segment_t heir = offer(sd, ID, SIZE);
        sci_local_interrupt_t interrupt;
        unsigned int number = NUMBER;
        OK(SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
        say(user.to, 'c');
        TRUE(hear(user.from) == 'r');
        TRUE(local_event(heir) == SCI_CB_CONNECT);
        say(user.to, 'q');
        TRUE(local_event(heir) == SCI_CB_DISCONNECT);
        TRUE(end(&user) == 0);
        OK(SCIRemoveSegment(heir, 0, &error));
        OK(SCIRemoveInterrupt(interrupt, 0, &error));
    }
    close_device(sd);
    close_device(open_device()); /* sweeps the rest */
}

static void a_killed_user_is_LOST_and_one_that_just_ends_too(void **state) {
    child user[2];
    sci_desc_t sd;
    sci_local_segment_t segment;
    sci_map_t map;
    volatile uint32_t *memory;
    int i;
    (void)state;
    user[0] = start(uses);
    user[1] = start(uses);
    sd = open_device();
    segment = offer(sd, ID, SIZE);
    memory = map_local(segment, &map, SIZE);
    for (i = 0; i < 2; i++) {
        say(user[i].to, 'c');
        TRUE(hear(user[i].from) == 'r');
        TRUE(local_event(segment) == SCI_CB_CONNECT);
        TRUE(memory[0] == (uint32_t)i + 1);
    }
    kill_child(&user[0]);
    TRUE(local_event(segment) == SCI_CB_LOST);
    say(user[1].to, 'x');
    TRUE(local_event(segment) == SCI_CB_LOST);
    TRUE(end(&user[1]) == 0);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sd);
}

static void names_of_the_dead_are_swept_and_those_of_the_living_and_the_stopped_are_not(void **state) {
    child owner = start(owns);
    unsigned int names;
    (void)state;
    TRUE(hear(owner.from) == 'r');
    names = count_names(NULL);
    TRUE(names == 4); /* a socket and three links */
    close_device(open_device());
    TRUE(count_names(NULL) == names);
    stop_child(&owner);
    {
        sci_desc_t sd = open_device();
        sci_local_segment_t segment = NULL;
        sci_remote_segment_t remote = NULL;
        sci_segment_cb_reason_t reason = (sci_segment_cb_reason_t)0;
        sci_error_t status = SCI_ERR_OK;
        TRUE(count_names(NULL) == names);
        GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, 0, &error));
        GIVES(SCI_ERR_TIMEOUT, SCIConnectSegment(sd, &remote, NODE, ID, 0, NULL, NULL, 50, 0, &error));
        OK(SCIConnectSegment(sd, &remote, NODE, ID, 0, NULL, NULL, 50, SCI_FLAG_ASYNCHRONOUS_CONNECT, &error));
        OK(reason = SCIWaitForRemoteSegmentEvent(remote, &status, PATIENCE_MS, 0, &error));
        TRUE(reason == SCI_CB_CONNECT && status == SCI_ERR_TIMEOUT);
        TRUE(SCIGetRemoteSegmentSize(remote) == 0);
        OK(SCIDisconnectSegment(remote, 0, &error));
        OK(SCIConnectSegment(sd, &remote, NODE, ID, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, SCI_FLAG_ASYNCHRONOUS_CONNECT,
                             &error));
        TRUE(kill(owner.pid, SIGCONT) == 0);
        OK(reason = SCIWaitForRemoteSegmentEvent(remote, &status, PATIENCE_MS, 0, &error));
        TRUE(reason == SCI_CB_CONNECT && status == SCI_ERR_OK);
        OK(SCIDisconnectSegment(remote, 0, &error));
        close_device(sd);
    }
    kill_child(&owner);
    TRUE(count_names(NULL) == names); /* nobody has looked yet */
    close_device(open_device());
    TRUE(count_names(NULL) == 0);
}

static void a_sweep_leaves_alone_what_is_not_a_name(void **state) {
    char path[200];
    sci_desc_t sd;
    int fd;
    (void)state;
    snprintf(path, sizeof path, "%s/note.txt", directory);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    TRUE(fd >= 0);
    close(fd);
    sd = open_device();
    TRUE(access(path, F_OK) == 0);
    close_device(sd);
    TRUE(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/s%08x", directory, (unsigned int)ID); /* a name that leads nowhere */
    TRUE(symlink("../../etc/passwd", path) == 0);
    sd = open_device();
    {
        sci_remote_segment_t remote = NULL;
        sci_local_segment_t segment;
        GIVES(SCI_ERR_NO_SUCH_SEGMENT, SCIConnectSegment(sd, &remote, NODE, ID, 0, NULL, NULL, 100, 0, &error));
        segment = offer(sd, ID, 4096); /* nobody's name is free */
        OK(SCIRemoveSegment(segment, 0, &error));
    }
    close_device(sd);
}

/* An owner is killed again and again while others connect: nobody hangs, and every connection ends as LOST. */
static void owners_killed_at_any_moment_leave_nothing_behind(void **state) {
    int round;
    (void)state;
    for (round = 0; round < 20; round++) {
        child owner = start(owns);
        child user = start(uses);
        if (round % 2) TRUE(hear(owner.from) == 'r');
        if (round % 4 == 3) {
            say(user.to, 'c');
            TRUE(hear(user.from) == 'r');
        }
        kill_child(&owner);
        kill_child(&user);
    }
    close_device(open_device());
    TRUE(count_names(NULL) == 0);
}

/* ---- a crowd -------------------------------------------------------------------------------------------------------- */

static uint32_t dice_state;

static uint32_t dice(uint32_t sides) {
    dice_state = dice_state * 1664525u + 1013904223u;
    return (dice_state >> 8) % sides;
}

static void connects_and_writes(sci_desc_t sd, unsigned int node, unsigned int id) {
    sci_remote_segment_t remote = NULL;
    sci_map_t map;
    sci_error_t result;
    volatile void *memory;
    SCIConnectSegment(sd, &remote, node, id, 0, NULL, NULL, 100, 0, &result);
    if (result != SCI_ERR_OK) return;
    memory = SCIMapRemoteSegment(remote, &map, 0, 4096, NULL, 0, &result);
    if (result == SCI_ERR_OK) {
        *(volatile uint32_t *)memory += 1;
        SCIWaitForRemoteSegmentEvent(remote, NULL, dice(3), 0, &result);
        OK(SCIUnmapSegment(map, 0, &error));
    }
    OK(SCIDisconnectSegment(remote, 0, &error));
}

/* Has a segment of one kind or another for a moment, in which others may come. */
static void has_a_segment(sci_desc_t sd, unsigned int id) {
    sci_local_segment_t segment = NULL;
    sci_error_t result;
    unsigned int kind = dice(4);
    if (kind == 0) {
        SCIAttachLocalSegment(sd, &segment, id, NULL, NULL, NULL, 0, &result);
    } else {
        SCICreateSegment(sd, &segment, id, 4096, NULL, NULL, kind == 1 ? SCI_FLAG_BROADCAST : 0, &result);
    }
    if (result != SCI_ERR_OK) return;
    SCIShareSegment(segment, 0, &result);
    SCIPrepareSegment(segment, 0, 0, &result);
    SCISetSegmentAvailable(segment, 0, 0, &result);
    SCIWaitForLocalSegmentEvent(segment, NULL, NULL, dice(5), 0, &result);
    if (dice(2)) connects_and_writes(sd, kind == 1 ? SCI_BROADCAST_NODEID : NODE, id);
    if (dice(3) == 0) SCISetSegmentUnavailable(segment, 0, SCI_FLAG_FORCE_DISCONNECT, &result);
    OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
}

static void lives_wildly(int in, int out) {
    (void)in, (void)out;
    for (;;) {
        sci_desc_t sd = open_device();
        unsigned int rounds = dice(8);
        while (rounds-- > 0) {
            if (dice(2)) has_a_segment(sd, ID + dice(3));
            if (dice(2)) connects_and_writes(sd, dice(2) ? NODE : SCI_BROADCAST_NODEID, ID + dice(3));
        }
        close_device(sd);
    }
}

/* Four processes come and go as they like, and are killed at any moment: none fails otherwise, and nothing is left. */
static void a_crowd_that_is_killed_at_random_leaves_nothing_behind(void **state) {
    child crowd[4];
    unsigned int i, kills;
    struct timespec moment = {0, 0};
    (void)state;
    dice_state = (uint32_t)cci__sci_random();
    printf("dice_state = %lu\n", (unsigned long)dice_state);
    for (i = 0; i < 4; i++, (void)dice(2)) crowd[i] = start(lives_wildly);
    for (kills = 0; kills < 200; kills++) {
        moment.tv_nsec = (long)dice(20000000);
        nanosleep(&moment, NULL);
        i = dice(4);
        kill_child(&crowd[i]);
        crowd[i] = start(lives_wildly);
    }
    for (i = 0; i < 4; i++) kill_child(&crowd[i]);
    close_device(open_device());
    TRUE(count_names(NULL) == 0);
}

/* ---- what is shared outlives its owner --------------------------------------------------------------------------------- */

static void shares(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = offer(sd, ID, SIZE);
    sci_map_t map;
    map_local(segment, &map, SIZE)[1] = 1;
    OK(SCIShareSegment(segment, 0, &error));
    say(out, 'r');
    (void)hear(in);
}

static void is_a_member(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment;
    sci_map_t map;
    OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST, &error));
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    map_local(segment, &map, SIZE)[1]++;
    say(out, 'r');
    (void)hear(in);
}

static void is_a_member_later(int in, int out) {
    (void)hear(in);
    is_a_member(in, out);
}

/* Connects until it is let in: a successor may need a moment. */
static sci_remote_segment_t join_in_the_end(sci_desc_t sd, unsigned int node) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    sci_remote_segment_t remote = NULL;
    sci_error_t error = SCI_ERR_OK;
    do {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
        SCIConnectSegment(sd, &remote, node, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error);
    } while (error != SCI_ERR_OK);
    return remote;
}

static void a_killed_owner_of_a_shared_segment_is_succeeded_by_one_who_shares_it(void **state) {
    child owner = start(shares);
    sci_desc_t sharer, user;
    sci_local_segment_t segment = NULL;
    sci_remote_segment_t remote;
    sci_map_t map;
    (void)state;
    TRUE(hear(owner.from) == 'r');
    sharer = open_device();
    user = open_device();
    OK(SCIAttachLocalSegment(sharer, &segment, ID, NULL, NULL, NULL, 0, &error));
    remote = join(user, ID);
    TRUE(local_event(segment) == SCI_CB_CONNECT);
    kill_child(&owner);
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(SCIDisconnectSegment(remote, 0, &error));
    remote = join_in_the_end(user, NODE);
    TRUE(map_remote(remote, &map, SIZE)[1] == 1);
    TRUE(local_event(segment) == SCI_CB_CONNECT);
    OK(SCISetSegmentUnavailable(segment, 0, SCI_FLAG_FORCE_DISCONNECT, &error));
    TRUE(remote_event(remote) == SCI_CB_DISCONNECT);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(sharer);
    close_device(user);
    close_device(open_device());
}

static void users_of_a_broadcast_segment_keep_it_while_members_die_one_by_one(void **state) {
    child member[3], founder;
    sci_desc_t sd;
    sci_remote_segment_t remote, late;
    sci_sequence_t sequence;
    sci_sequence_status_t status = SCI_SEQ_PENDING;
    volatile uint32_t *memory;
    sci_map_t map;
    int i;
    (void)state;
    for (i = 0; i < 3; i++) {
        member[i] = start(is_a_member);
        TRUE(hear(member[i].from) == 'r');
    }
    founder = start(is_a_member_later);
    sd = open_device();
    remote = join_in_the_end(sd, SCI_BROADCAST_NODEID);
    memory = map_remote(remote, &map, SIZE);
    OK(SCICreateMapSequence(map, &sequence, 0, &error));
    TRUE(memory[1] == 3);
    for (i = 0; i < 2; i++) {
        kill_child(&member[i]);
        late = join_in_the_end(sd, SCI_BROADCAST_NODEID);
        OK(SCIDisconnectSegment(late, 0, &error));
        OK(status = SCICheckSequence(sequence, 0, &error));
        TRUE(status == SCI_SEQ_OK);
    }
    kill_child(&member[2]);
    TRUE(remote_event(remote) == SCI_CB_LOST); /* nobody is left */
    OK(SCIRemoveSequence(sequence, 0, &error));
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    say(founder.to, 'g'); /* a new group begins with new memory */
    TRUE(hear(founder.from) == 'r');
    remote = join_in_the_end(sd, SCI_BROADCAST_NODEID);
    TRUE(map_remote(remote, &map, SIZE)[1] == 1);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
    kill_child(&founder);
    close_device(sd);
    close_device(open_device());
}

/* ---- fork ---------------------------------------------------------------------------------------------------------- */

#ifndef CCI_NO_THREADS

/* Forks with a device open; the child lives on when its parent is gone. */
static void forks_and_dies(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = offer(sd, ID, SIZE);
    pid_t orphan;
    (void)segment;
    say(out, 'r');
    (void)hear(in);
    orphan = fork();
    TRUE(orphan >= 0);
    if (orphan == 0) {
        alarm(60);
        say(out, 'o');
        (void)hear(in); /* until the test ends */
        _exit(0);
    }
    (void)pause();
}

static void a_parents_death_is_noticed_although_a_child_of_it_lives(void **state) {
    child owner = start(forks_and_dies);
    sci_desc_t sd;
    sci_remote_segment_t remote;
    (void)state;
    TRUE(hear(owner.from) == 'r');
    sd = open_device();
    remote = join(sd, ID);
    say(owner.to, 'f');
    TRUE(hear(owner.from) == 'o');
    TRUE(kill(owner.pid, SIGKILL) == 0);
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(SCIDisconnectSegment(remote, 0, &error));
    TRUE(end(&owner) == SIGKILL);
    close_device(sd);
    close_device(open_device());
}

static sci_callback_action_t ignores_interrupts(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    (void)arg, (void)interrupt, (void)status;
    return SCI_CALLBACK_CONTINUE;
}

static sci_desc_t inherited;
static sci_local_segment_t inherited_segment;
static sci_remote_segment_t inherited_remote;
static sci_local_interrupt_t inherited_interrupt;
static sci_map_t inherited_map;
static int inherited_fd[3]; /* of segment, remote segment and interrupt */

/* What a child has of its parent's devices it can put away; its own descriptors are not touched. */
static void puts_away(int in, int out) {
    int own[64], i;
    sci_remote_segment_t none = NULL;
    (void)in, (void)out;
    for (i = 0; i < 3; i++) TRUE(fcntl(inherited_fd[i], F_GETFD) < 0); /* closed before fork() returned */
    for (i = 0; i < 64; i++) own[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    GIVES(SCI_ERR_BUSY, SCIClose(inherited, 0, &error));
    {
        sci_error_t error = SCI_ERR_OK;
        SCIConnectSegment(inherited, &none, NODE, ID, 0, NULL, NULL, 100, 0, &error);
        TRUE(error != SCI_ERR_OK);
        SCIWaitForLocalSegmentEvent(inherited_segment, NULL, NULL, 0, 0, &error);
        TRUE(error == SCI_ERR_TIMEOUT || error == SCI_ERR_OK);
    }
    OK(SCIUnmapSegment(inherited_map, 0, &error));
    OK(SCIDisconnectSegment(inherited_remote, 0, &error));
    OK(SCIRemoveInterrupt(inherited_interrupt, 0, &error));
    OK(SCIRemoveSegment(inherited_segment, SCI_FLAG_FORCE_REMOVE, &error));
    close_device(inherited);
    for (i = 0; i < 64; i++) TRUE(fcntl(own[i], F_GETFD) >= 0);
    inherited = open_device(); /* one of its own */
    inherited_remote = join(inherited, ID);
    OK(SCIDisconnectSegment(inherited_remote, 0, &error));
    close_device(inherited);
}

static void a_child_puts_away_what_it_inherited_without_harm_to_the_parent(void **state) {
    unsigned int number;
    child c;
    int i;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* this sanitizer allows no threads in a child of a process with threads */
#endif
    inherited = open_device();
    inherited_segment = offer(inherited, ID, SIZE);
    inherited_remote = join(inherited, ID);
    TRUE(local_event(inherited_segment) == SCI_CB_CONNECT);
    (void)map_remote(inherited_remote, &inherited_map, SIZE);
    OK(SCICreateInterrupt(inherited, &inherited_interrupt, 0, &number, ignores_interrupts, NULL, SCI_FLAG_USE_CALLBACK,
                          &error));
    inherited_fd[0] = inherited_segment->served.fd;
    inherited_fd[1] = inherited_remote->remote.fd;
    inherited_fd[2] = inherited_interrupt->served.fd;
    for (i = 0; i < 3; i++) TRUE(fcntl(inherited_fd[i], F_GETFD) >= 0);
    c = start(puts_away);
    TRUE(local_event(inherited_segment) == SCI_CB_CONNECT); /* the child with its own device */
    TRUE(local_event(inherited_segment) == SCI_CB_DISCONNECT);
    TRUE(end(&c) == 0);
    TRUE(inherited_remote->remote.state == CCI__SCI_CONNECTED);
    OK(SCIUnmapSegment(inherited_map, 0, &error));
    OK(SCIDisconnectSegment(inherited_remote, 0, &error));
    OK(SCIRemoveInterrupt(inherited_interrupt, 0, &error));
    OK(SCIRemoveSegment(inherited_segment, 0, &error));
    close_device(inherited);
}

#endif

/* ---- nonsense --------------------------------------------------------------------------------------------------------- */

/* A bare socket to the owner of a segment. */
static int call_owner(sci_desc_t sd, unsigned int id) {
    char name[CCI__SCI_NAME], owner[CCI__SCI_NAME];
    int fd;
    cci__sci_name(name, CCI__SCI_SEGMENT, id);
    TRUE(cci__sci_owner_of(sd, name, owner));
    fd = cci__sci_call(sd, owner);
    TRUE(fd >= 0);
    return fd;
}

/* Until the other side has closed the socket. */
static void until_dropped(int fd) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    char bytes[256];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) != 0 && !(n < 0 && errno != EAGAIN)) {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
        cci__sci_nap();
    }
    close(fd);
}

static void who_sends_nonsense_is_dropped_and_nobody_else(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment = offer(owner, ID, SIZE);
    sci_remote_segment_t remote = join(user, ID);
    cci__sci_message message;
    unsigned int type, i;
    char bytes[300];
    int fd;
    (void)state;
    for (i = 0; i < 300; i += 7) { /* any length, and bytes of no meaning */
        memset(bytes, (int)i, sizeof bytes);
        fd = call_owner(user, ID);
        TRUE(send(fd, bytes, i, MSG_NOSIGNAL) == (ssize_t)i);
        if (i == 0) TRUE(shutdown(fd, SHUT_WR) == 0);
        until_dropped(fd);
    }
    for (type = 0; type < 100; type++) { /* types that make no sense from a client */
        if (type == CCI__SCI_MSG_CONNECT || type == CCI__SCI_MSG_BYE) continue;
        cci__sci_message_init(&message, (int)type, 1);
        fd = call_owner(user, ID);
        TRUE(cci__sci_tell(user, fd, &message, -1));
        until_dropped(fd);
    }
    fd = call_owner(user, ID); /* a cookie twice */
    cci__sci_message_init(&message, CCI__SCI_MSG_CONNECT, 1);
    message.what = CCI__SCI_SEGMENT;
    message.id = ID;
    TRUE(cci__sci_tell(user, fd, &message, 0) && cci__sci_tell(user, fd, &message, 0)); /* with descriptors, too */
    until_dropped(fd);
    for (i = 0; i < 0x10000; i += 0xfff) { /* objects of no kind */
        fd = call_owner(user, ID);
        message.what = (uint16_t)(i == 0 ? 0 : 5 + i % 0xff00);
        TRUE(cci__sci_tell(user, fd, &message, -1));
        shutdown(fd, SHUT_WR);
        until_dropped(fd);
    }
    TRUE(remote->remote.state == CCI__SCI_CONNECTED);
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(segment, 0, &error));
    close_device(owner);
    close_device(user);
}

/* A client that asks and asks and never reads is dropped; others are served meanwhile. */
static void a_client_that_does_not_read_is_dropped(void **state) {
    sci_desc_t owner = open_device(), user = open_device();
    sci_local_segment_t segment = offer(owner, ID, SIZE);
    cci__sci_message message;
    sci_remote_segment_t remote;
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    int fd = call_owner(user, ID), sent = 0;
    (void)state;
    cci__sci_message_init(&message, CCI__SCI_MSG_CONNECT, 0);
    message.what = CCI__SCI_SEGMENT;
    message.id = ID;
    while (sent >= 0) {
        TRUE(cci__sci_now() < deadline_ns);
        message.cookie++;
        if (!cci__sci_tell(user, fd, &message, -1)) {
            sent = errno == EAGAIN ? 0 : -1;
            breathe();
        }
    }
    close(fd);
    remote = join(user, ID);
    OK(SCIDisconnectSegment(remote, 0, &error));
    OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
    close_device(owner);
    close_device(user);
}

static int answer_with;
enum { PLAIN_FILE, UNSEALED, TOO_SMALL, NO_DESCRIPTOR, EMPTY, BYTES, WRONG_TYPE, HUGE_SIZE, PIPE, ANSWERS };

static int what_to_hand_over(void) {
    int fd, ends[2];
    switch (answer_with) {
    case PLAIN_FILE: return open("/dev/zero", O_RDWR | O_CLOEXEC);
    case UNSEALED:
        fd = (int)syscall(SYS_memfd_create, "test", CCI__SCI_MFD_CLOEXEC_SEALING);
        TRUE(fd >= 0 && ftruncate(fd, SIZE) == 0);
        return fd;
    case PIPE: TRUE(pipe(ends) == 0); return ends[1];
    case NO_DESCRIPTOR: return -1;
    default: return cci__sci_make_memory(4096);
    }
}

/* An owner that answers every request with the same lie. */
static void lies(int in, int out) {
    sci_desc_t sd = open_device();
    char name[CCI__SCI_NAME];
    (void)in;
    TRUE(cci__sci_listen(sd));
    cci__sci_name(name, CCI__SCI_SEGMENT, ID);
    TRUE(symlinkat(sd->owner, sd->directory, name) == 0);
    cci__sci_name(name, CCI__SCI_DATA_INTERRUPT, ID);
    TRUE(symlinkat(sd->owner, sd->directory, name) == 0);
    say(out, 'r');
    for (;;) {
        struct pollfd item = {0, POLLIN, 0};
        cci__sci_message message;
        int fd;
        item.fd = sd->listener.fd;
        TRUE(poll(&item, 1, -1) == 1);
        fd = accept(sd->listener.fd, NULL, NULL);
        if (fd < 0) continue;
        item.fd = fd;
        TRUE(poll(&item, 1, -1) == 1);
        while (cci__sci_hear(fd, &message, NULL) > 0) {
            message.type = answer_with == WRONG_TYPE ? CCI__SCI_MSG_SET : CCI__SCI_MSG_ACCEPT;
            message.size_bytes = answer_with == HUGE_SIZE ? UINT64_MAX : answer_with == EMPTY ? 0 : SIZE;
            if (answer_with == BYTES) message.magic = 0;
            (void)cci__sci_tell(sd, fd, &message, what_to_hand_over());
        }
        TRUE(poll(&item, 1, -1) == 1); /* until the other side leaves */
    }
}

static void an_owner_that_lies_is_refused(void **state) {
    (void)state;
    for (answer_with = 0; answer_with < ANSWERS; answer_with++) {
        child owner = start(lies);
        sci_desc_t sd;
        sci_remote_segment_t remote = NULL;
        sci_remote_data_interrupt_t data = NULL;
        sci_error_t error = SCI_ERR_OK;
        TRUE(hear(owner.from) == 'r');
        sd = open_device();
        SCIConnectSegment(sd, &remote, NODE, ID, 0, NULL, NULL, PATIENCE_MS, 0, &error);
        TRUE(error == SCI_ERR_CONNECTION_REFUSED && remote == NULL);
        SCIConnectDataInterrupt(sd, &data, NODE, 0, ID, PATIENCE_MS, 0, &error);
        TRUE(error == SCI_ERR_CONNECTION_REFUSED && data == NULL);
        close_device(sd);
        kill_child(&owner);
        close_device(open_device());
    }
}

/* Does its worst to what it was given. */
static void does_its_worst(int in, int out) {
    sci_desc_t sd = open_device();
    sci_remote_segment_t segment;
    sci_remote_interrupt_t bell;
    sci_remote_data_interrupt_t letterbox;
    uint64_t word = UINT64_MAX - 1;
    char bytes[4000];
    sci_map_t map;
    (void)hear(in);
    segment = join(sd, ID);
    OK(SCIConnectInterrupt(sd, &bell, NODE, 0, NUMBER, PATIENCE_MS, 0, &error));
    OK(SCIConnectDataInterrupt(sd, &letterbox, NODE, 0, NUMBER, PATIENCE_MS, 0, &error));
    TRUE(ftruncate(segment->remote.fd, 0) != 0 && ftruncate(segment->remote.fd, 2 * SIZE) != 0);
    memset((void *)(uintptr_t)map_remote(segment, &map, SIZE), 0xff, SIZE);
    TRUE(write(bell->remote.fd, &word, sizeof word) == sizeof word);             /* the counter is full */
    TRUE(fcntl(bell->remote.fd, F_SETFL, 0) == 0);                               /* and blocks */
    memset(bytes, 1, sizeof bytes);
    TRUE(send(letterbox->remote.fd, bytes, sizeof bytes, MSG_DONTWAIT) == 4000); /* longer than any */
    TRUE(send(letterbox->remote.fd, bytes, 3, MSG_DONTWAIT) == 3);
    TRUE(fcntl(letterbox->remote.fd, F_SETFL, 0) == 0);
    say(out, 'd');
    (void)hear(in);
}

static void a_peer_that_scribbles_over_all_it_can_reach_harms_nobody(void **state) {
    child c = start(does_its_worst);
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = offer(sd, ID, SIZE);
    sci_local_interrupt_t interrupt;
    sci_local_data_interrupt_t data;
    unsigned int number = NUMBER, length = 10;
    char bytes[10];
    (void)state;
    OK(SCICreateInterrupt(sd, &interrupt, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    OK(SCICreateDataInterrupt(sd, &data, 0, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO, &error));
    say(c.to, 'g');
    TRUE(hear(c.from) == 'd');
    OK(SCIWaitForInterrupt(interrupt, PATIENCE_MS, 0, &error));
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForInterrupt(interrupt, 10, 0, &error)); /* and not for ever */
    OK(SCIWaitForDataInterrupt(data, bytes, &length, PATIENCE_MS, 0, &error));
    TRUE(length == 3);
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForDataInterrupt(data, bytes, &length, 10, 0, &error));
    TRUE(local_event(segment) == SCI_CB_CONNECT);
    say(c.to, 'q');
    TRUE(local_event(segment) == SCI_CB_LOST);
    TRUE(end(&c) == 0);
    OK(SCIRemoveSegment(segment, 0, &error));
    OK(SCIRemoveInterrupt(interrupt, 0, &error));
    OK(SCIRemoveDataInterrupt(data, 0, &error));
    close_device(sd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(two_processes_share_memory_and_events),
        TEST(a_killed_owner_is_LOST_and_its_successor_takes_the_same_numbers),
        TEST(a_killed_user_is_LOST_and_one_that_just_ends_too),
        TEST(names_of_the_dead_are_swept_and_those_of_the_living_and_the_stopped_are_not),
        TEST(a_sweep_leaves_alone_what_is_not_a_name),
        TEST(owners_killed_at_any_moment_leave_nothing_behind),
        TEST(a_crowd_that_is_killed_at_random_leaves_nothing_behind),
        TEST(a_killed_owner_of_a_shared_segment_is_succeeded_by_one_who_shares_it),
        TEST(users_of_a_broadcast_segment_keep_it_while_members_die_one_by_one),
#ifndef CCI_NO_THREADS
        TEST(a_parents_death_is_noticed_although_a_child_of_it_lives),
        TEST(a_child_puts_away_what_it_inherited_without_harm_to_the_parent),
#endif
        TEST(who_sends_nonsense_is_dropped_and_nobody_else),
        TEST(a_client_that_does_not_read_is_dropped),
        TEST(an_owner_that_lies_is_refused),
        TEST(a_peer_that_scribbles_over_all_it_can_reach_harms_nobody),
    };
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]); /* with * and ? */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
