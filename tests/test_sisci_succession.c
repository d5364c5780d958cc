/* test_sisci_succession.c - software SISCI when owners of shared memory die or leave at every step of a succession.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Members are processes. A test holds one of them at a step of the library (delays.h), lets the others die or come
 * meanwhile, and lets it go on.
 */
#include "sisci.h"

enum { ID = 0x200, SIZE = 65536 };

/* ---- members ---------------------------------------------------------------------------------------------------- */

static int is_group, hold_at = -1; /* what the next process is: a member of a broadcast segment, or one who shares */

static unsigned int the_node(void) {
    return is_group ? SCI_BROADCAST_NODEID : NODE;
}

static void rests(void) {
    for (;;) {
        breathe();
#ifndef CCI_NO_THREADS
        (void)pause();
#endif
    }
}

/* Shares the segment and counts itself in its second word. Letters: 'a' holds the process when it comes to the step, 'q'
 * lets it leave. */
static void has_a_share(int in, int out, sci_desc_t sd, sci_local_segment_t segment) {
    sci_map_t map;
    char letter;
    held_in = in;
    held_out = out;
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    map_local(segment, &map, SIZE)[1]++;
    say(out, 'r');
    letter = hear(in);
    if (letter == 'a') {
        CCI__SCI_STORE(held_at, hold_at);
        say(out, 'a');
        rests();
    }
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
    say(out, 'q');
    (void)hear(in);
    close_device(sd);
}

static void founds(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = NULL;
    OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, is_group ? SCI_FLAG_BROADCAST : 0, &error));
    OK(SCIShareSegment(segment, 0, &error));
    has_a_share(in, out, sd, segment);
}

static void shares(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = NULL;
    if (is_group) {
        OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST, &error));
    } else {
        OK(SCIAttachLocalSegment(sd, &segment, ID, NULL, NULL, NULL, 0, &error));
    }
    has_a_share(in, out, sd, segment);
}

static void start_members(child *member, int count, int step) {
    int i;
    hold_at = step;
    for (i = 0; i < count; i++) {
        member[i] = start(i == 0 ? founds : shares);
        TRUE(hear(member[i].from) == 'r');
    }
}

/* From now on the process stops at the step. */
static void arm(child *member) {
    say(member->to, 'a');
    TRUE(hear(member->from) == 'a');
}

/* Connects until it is let in: a successor may need a moment. */
static sci_remote_segment_t join_in_the_end(sci_desc_t sd) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    sci_remote_segment_t remote = NULL;
    sci_error_t error = SCI_ERR_OK;
    do {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
        SCIConnectSegment(sd, &remote, the_node(), ID, 0, NULL, NULL, PATIENCE_MS, 0, &error);
    } while (error != SCI_ERR_OK);
    return remote;
}

/* Somebody serves the memory that so many have counted themselves in. */
static void is_served(sci_desc_t sd, unsigned int members) {
    sci_remote_segment_t remote = join_in_the_end(sd);
    sci_map_t map;
    TRUE(map_remote(remote, &map, SIZE)[1] == members);
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIDisconnectSegment(remote, 0, &error));
}

/* ---- the steps ---------------------------------------------------------------------------------------------------- */

/* The last survivor hears of the first death when the second owner is dead too. */
static void two_owners_die_before_a_survivor_looks(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_desc_t sd;
        start_members(member, 3, CCI__SCI_AT_LOSE);
        arm(&member[2]);
        kill_child(&member[0]);
        TRUE(hear(member[2].from) == 'h');
        sd = open_device();
        is_served(sd, 3);
        kill_child(&member[1]);
        say(member[2].to, 'g');
        is_served(sd, 3);
        kill_child(&member[2]);
        close_device(sd);
        close_device(open_device());
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(two_owners_die_before_a_survivor_looks),
    };
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
