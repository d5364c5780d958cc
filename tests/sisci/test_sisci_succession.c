/* test_sisci_succession.c - software SISCI when owners of shared memory die or leave at every step of a succession.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Members are processes. A test holds one of them at a step of the library (delays.h), lets the others die or come
 * meanwhile, and lets it go on. The last test lets all happen at random; for long runs of it alone:
 *
 *     CCI_TEST_ROUNDS=1000 test_sisci_succession 'successions*'
 */
#include "tests/support/sisci.h"

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

/* Shares the segment and counts itself in its second word. Letters: 'a' holds the process when it comes to the step, 'l'
 * too, and lets it leave, 'q' lets it leave, 's' changes something, 'u' does so and is held when the owner dies. A process
 * that has left lives on. */
static void has_a_share(int in, int out, sci_local_segment_t segment) {
    sci_map_t map;
    char letter;
    held_in = in;
    held_out = out;
    OK(SCIPrepareSegment(segment, 0, 0, &error));
    OK(SCISetSegmentAvailable(segment, 0, 0, &error));
    map_local(segment, &map, SIZE)[1]++;
    say(out, 'r');
    letter = hear(in);
    if (letter != 'q') {
        held_skips = letter == 'u' ? 0 : held_skips;
        CCI__SCI_STORE(held_at, letter == 'u' ? (int)CCI__SCI_AT_LOSE : hold_at);
        say(out, 'a');
    }
    if (letter == 'a') {
        rests();
    }
    if (letter == 's' || letter == 'u') {
        OK(SCISetSegmentUnavailable(segment, 0, 0, &error));
        say(out, 's');
        rests();
    }
    OK(SCIUnmapSegment(map, 0, &error));
    OK(SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error));
    say(out, 'q');
    rests();
}

static void founds(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = NULL;
    OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, is_group ? SCI_FLAG_BROADCAST : 0, &error));
    OK(SCIShareSegment(segment, 0, &error));
    has_a_share(in, out, segment);
}

static void shares(int in, int out) {
    sci_desc_t sd = open_device();
    sci_local_segment_t segment = NULL;
    if (is_group) {
        OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST, &error));
    } else {
        OK(SCIAttachLocalSegment(sd, &segment, ID, NULL, NULL, NULL, 0, &error));
    }
    has_a_share(in, out, segment);
}

/* Those who come when this process has a device were forked before: they begin with the next letter. */
static void shares_later(int in, int out) {
    (void)hear(in);
    shares(in, out);
}

static void founds_later(int in, int out) {
    (void)hear(in);
    founds(in, out);
}

/* Is held while it joins. */
static void shares_slowly(int in, int out) {
    (void)hear(in);
    held_in = in;
    held_out = out;
    held_at = hold_at;
    shares(in, out);
}

static void start_members(child *member, int count, int step) {
    int i;
    hold_at = step;
    for (i = 0; i < count; i++) {
        member[i] = start(i == 0 ? founds : shares);
        TRUE(hear(member[i].from) == 'r');
    }
}

/* From now on the process stops at the step; 'l' and 's' let it come there at once. */
static void arm(child *member, char letter) {
    say(member->to, letter);
    TRUE(hear(member->from) == 'a');
}

static void is_held(child *member) {
    TRUE(hear(member->from) == 'h');
}

static void let_go(child *member) {
    say(member->to, 'g');
}

/* Kills them all. The names are swept by the next device. */
static void finish(sci_desc_t sd, child *member, int first, int count) {
    for (; first < count; first++) {
        kill_child(&member[first]);
    }
    close_device(sd);
    close_device(open_device());
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

/* Gives others time to do what they must not do. */
static void tempts(void) {
    struct timespec moment = {0, 300000000};
    nanosleep(&moment, NULL);
}

/* ---- the steps ---------------------------------------------------------------------------------------------------- */

/* The last survivor hears of the first death when the second owner is dead too. */
static void two_owners_die_before_a_survivor_looks(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_desc_t sd;
        start_members(member, 3, CCI__SCI_AT_LOSE);
        arm(&member[2], 'a');
        kill_child(&member[0]);
        is_held(&member[2]);
        sd = open_device();
        is_served(sd, 3);
        kill_child(&member[1]);
        let_go(&member[2]);
        is_served(sd, 3);
        finish(sd, member, 2, 3);
    }
}

/* Who comes while the only survivor has not noticed yet joins it. */
static void nobody_founds_a_group_beside_a_survivor(void **state) {
    child member[3];
    sci_desc_t sd;
    (void)state;
    is_group = 1;
    start_members(member, 2, CCI__SCI_AT_LOSE);
    arm(&member[1], 'a');
    kill_child(&member[0]);
    is_held(&member[1]);
    member[2] = start(shares);
    tempts();
    let_go(&member[1]);
    TRUE(hear(member[2].from) == 'r');
    sd = open_device();
    is_served(sd, 3);
    finish(sd, member, 1, 3);
}

static void the_number_of_a_shared_segment_belongs_to_its_survivors(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        sci_local_segment_t segment = NULL;
        child member[2];
        sci_desc_t sd;
        start_members(member, 2, CCI__SCI_AT_LOSE);
        arm(&member[1], 'a');
        kill_child(&member[0]);
        is_held(&member[1]);
        sd = open_device();
        if (is_group) { /* they are two things */
            OK(SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, 0, &error));
            OK(SCIRemoveSegment(segment, 0, &error));
        } else {
            GIVES(SCI_ERR_SEGMENTID_USED, SCICreateSegment(sd, &segment, ID, SIZE, NULL, NULL, 0, &error));
        }
        let_go(&member[1]);
        is_served(sd, 2);
        finish(sd, member, 1, 2);
    }
}

/* The only survivor dies with the lock on the directory. */
static void a_successor_dies_while_it_takes_over(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_desc_t sd;
        start_members(member, 2, CCI__SCI_AT_TAKE_OVER);
        arm(&member[1], 'a');
        kill_child(&member[0]);
        is_held(&member[1]);
        kill_child(&member[1]);
        member[2] = start(founds);
        TRUE(hear(member[2].from) == 'r');
        sd = open_device();
        is_served(sd, 1);
        finish(sd, member, 2, 3);
    }
}

/* The owner dies when it has accepted a member that does not know yet. */
static void an_owner_dies_while_it_lets_in_the_first_who_shares(void **state) {
    child member[2];
    sci_remote_segment_t remote;
    sci_desc_t sd;
    (void)state;
    is_group = 1;
    start_members(member, 1, CCI__SCI_AT_MARK);
    member[1] = start(shares_slowly);
    sd = open_device();
    remote = join_in_the_end(sd);
    let_go(&member[1]);
    is_held(&member[1]);
    kill_child(&member[0]);
    let_go(&member[1]);
    TRUE(hear(member[1].from) == 'r');
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(SCIDisconnectSegment(remote, 0, &error));
    is_served(sd, 1);
    finish(sd, member, 1, 2);
}

/* It has given up its name, and nobody knows. Then it goes on, or dies. */
static void an_owner_is_slow_to_leave(void **state) {
    int dies;
    (void)state;
    is_group = 1;
    for (dies = 0; dies < 2; dies++) {
        child member[3];
        sci_desc_t sd;
        start_members(member, 2, CCI__SCI_AT_LEAVE);
        arm(&member[0], 'l');
        is_held(&member[0]);
        member[2] = start(shares);
        tempts();
        if (dies) {
            kill_child(&member[0]);
        } else {
            let_go(&member[0]);
            TRUE(hear(member[0].from) == 'q');
        }
        TRUE(hear(member[2].from) == 'r');
        sd = open_device();
        is_served(sd, 3);
        finish(sd, member, dies, 3);
    }
}

/* An owner leaves its segment to somebody who dies: it lives, but its number is free. */
static void an_heir_dies_before_it_inherits(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_desc_t sd;
        start_members(member, 2, CCI__SCI_AT_REJOIN);
        arm(&member[1], 'a');
        say(member[0].to, 'q');
        TRUE(hear(member[0].from) == 'q');
        is_held(&member[1]);
        kill_child(&member[1]);
        member[1] = start(founds);
        TRUE(hear(member[1].from) == 'r');
        sd = open_device();
        is_served(sd, 1);
        finish(sd, member, 0, 2);
    }
}

/* The owner that leaves knows of nobody who shares its segment, but there is one who has not come to it yet. */
static void users_stay_with_a_survivor_that_the_owner_does_not_know(void **state) {
    child member[3];
    sci_remote_segment_t remote;
    sci_desc_t sd;
    (void)state;
    is_group = 1;
    start_members(member, 3, CCI__SCI_AT_LOSE);
    arm(&member[2], 'a');
    sd = open_device();
    remote = join_in_the_end(sd);
    kill_child(&member[0]);
    is_held(&member[2]);
    is_served(sd, 3); /* by the second */
    say(member[1].to, 'q');
    TRUE(hear(member[1].from) == 'q');
    let_go(&member[2]);
    is_served(sd, 3);
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForRemoteSegmentEvent(remote, NULL, 0, 0, &error)); /* nothing has happened */
    kill_child(&member[2]);
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(SCIDisconnectSegment(remote, 0, &error));
    finish(sd, member, 1, 2);
}

/* Who makes a segment unavailable when its owner dies does it in the end, as the owner or with the next one's help. */
static void a_change_outlives_the_owner_that_was_asked(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_remote_segment_t remote = NULL;
        sci_desc_t sd;
        start_members(member, 3, CCI__SCI_AT_TELL);
        arm(&member[2], 's');
        is_held(&member[2]);
        kill_child(&member[0]);
        let_go(&member[2]);
        TRUE(hear(member[2].from) == 's');
        sd = open_device();
        GIVES(SCI_ERR_CONNECTION_REFUSED,
              SCIConnectSegment(sd, &remote, the_node(), ID, 0, NULL, NULL, PATIENCE_MS, 0, &error));
        finish(sd, member, 1, 3);
    }
}

static sci_error_t connects_in_the_end(sci_desc_t sd) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    sci_remote_segment_t remote = NULL;
    sci_error_t result = SCI_ERR_OK;
    do {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
        SCIConnectSegment(sd, &remote, the_node(), ID, 0, NULL, NULL, PATIENCE_MS, 0, &result);
    } while (result == SCI_ERR_NO_SUCH_SEGMENT);
    if (result == SCI_ERR_OK) {
        OK(SCIDisconnectSegment(remote, 0, &error));
    }
    return result;
}

/* The owner dies when it has told only one of the others of a change. Who asked for it must not take it for done while the
 * next owner does not know of it. */
static void whoever_inherits_knows_of_a_change_that_is_done(void **state) {
    (void)state;
    for (is_group = 0; is_group < 2; is_group++) {
        child member[3];
        sci_desc_t sd;
        char letter;
        held_skips = 1;
        start_members(member, 3, CCI__SCI_AT_TELL);
        arm(&member[0], 'a');
        held_skips = 0;
        arm(&member[2], 'u');
        is_held(&member[0]);
        kill_child(&member[0]);
        letter = hear(member[2].from);
        if (letter == 's') { /* done: it is held now, so the other one inherits */
            is_held(&member[2]);
        } else { /* not done yet */
            let_go(&member[2]);
            TRUE(letter == 'h' && hear(member[2].from) == 's');
        }
        sd = open_device();
        TRUE(connects_in_the_end(sd) == SCI_ERR_CONNECTION_REFUSED);
        finish(sd, member, 1, 3);
    }
}

static int is_rejoining(sci_remote_segment_t remote) {
    int is;
    cci__sci_lock(remote->remote.target.sd);
    is = remote->remote.rejoining || !remote->remote.peer;
    is = is && remote->remote.state == CCI__SCI_CONNECTED;
    cci__sci_unlock(remote->remote.target.sd);
    return is;
}

/* Nobody else can connect to the group any more, but who was connected when its owner dies stays. */
static void users_stay_although_the_group_is_not_available(void **state) {
    uint64_t deadline_ns = cci__sci_deadline(PATIENCE_MS);
    sci_remote_segment_t remote;
    child member[2];
    sci_desc_t sd;
    (void)state;
    is_group = 1;
    held_skips = 0;
    start_members(member, 2, -1);
    sd = open_device();
    remote = join_in_the_end(sd);
    arm(&member[0], 's');
    TRUE(hear(member[0].from) == 's');
    kill_child(&member[0]);
    TRUE(connects_in_the_end(sd) == SCI_ERR_CONNECTION_REFUSED);
    while (is_rejoining(remote)) {
        TRUE(cci__sci_now() < deadline_ns);
        breathe();
    }
    GIVES(SCI_ERR_TIMEOUT, SCIWaitForRemoteSegmentEvent(remote, NULL, 0, 0, &error));
    kill_child(&member[1]);
    TRUE(remote_event(remote) == SCI_CB_LOST);
    OK(SCIDisconnectSegment(remote, 0, &error));
    finish(sd, member, 2, 2);
}

/* ---- at random ---------------------------------------------------------------------------------------------------- */

enum { MEMBERS = 6, DELAYS_US = 20000 };

static unsigned int below(unsigned int end) {
    return (unsigned int)(cci__sci_random() % end);
}

/* One dies or leaves, whoever it is. */
static void loses_one(child *member, int *count) {
    int i = (int)below((unsigned int)*count);
    if (below(3) == 0) {
        say(member[i].to, 'q'); /* and is killed before it has left, or afterwards */
        if (below(2)) TRUE(hear(member[i].from) == 'q');
    }
    kill_child(&member[i]);
    member[i] = member[--*count];
}

/* The members of a segment, and a user, until the last of them is gone: 2 to 4 at first, and others that come later. */
static void lives_and_ends(void) {
    int count = 2 + (int)below(3), others = 3;
    unsigned int counted = (unsigned int)count;
    sci_remote_segment_t remote;
    child member[MEMBERS], other[3], founder;
    sci_desc_t sd;
    int i;
    start_members(member, count, -1);
    for (i = 0; i < others; i++) other[i] = start(shares_later);
    founder = start(founds_later);
    sd = open_device();
    remote = join_in_the_end(sd);
    while (count > 1) {
        loses_one(member, &count);
        if (below(2)) is_served(sd, counted);
        if (is_group && below(2) && others > 0) {
            member[count] = other[--others];
            let_go(&member[count]);
            TRUE(hear(member[count++].from) == 'r');
            counted++;
        }
        if (is_group) GIVES(SCI_ERR_TIMEOUT, SCIWaitForRemoteSegmentEvent(remote, NULL, 0, 0, &error));
    }
    is_served(sd, counted);
    kill_child(&member[0]);
    TRUE(remote_event(remote) == SCI_CB_LOST || !is_group);
    OK(SCIDisconnectSegment(remote, 0, &error));
    let_go(&founder);
    TRUE(hear(founder.from) == 'r');
    is_served(sd, 1);
    while (others > 0) kill_child(&other[--others]);
    finish(sd, &founder, 0, 1);
}

/* With delays at all steps, for so many seconds (environment: CCI_TEST_SECONDS) or rounds (CCI_TEST_ROUNDS). */
static void successions_at_random(void **state) {
    const char *seconds = getenv("CCI_TEST_SECONDS"), *rounds = getenv("CCI_TEST_ROUNDS");
    uint64_t end_ns = cci__sci_deadline(1000u * (unsigned int)(seconds ? atoi(seconds) : 6));
    int most = rounds ? atoi(rounds) : 1000000, round;
    (void)state;
    alarm(0);
    delays_us = getenv("CCI_TEST_DELAYS") ? -1 : (long)DELAYS_US;
    for (round = 0; round < most && (rounds || cci__sci_now() < end_ns); round++) {
        is_group = round % 2;
        lives_and_ends();
    }
    delays_us = -1;
    print_message("%d successions\n", round);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(two_owners_die_before_a_survivor_looks),
        TEST(nobody_founds_a_group_beside_a_survivor),
        TEST(the_number_of_a_shared_segment_belongs_to_its_survivors),
        TEST(a_successor_dies_while_it_takes_over),
        TEST(an_owner_dies_while_it_lets_in_the_first_who_shares),
        TEST(an_owner_is_slow_to_leave),
        TEST(an_heir_dies_before_it_inherits),
        TEST(users_stay_with_a_survivor_that_the_owner_does_not_know),
        TEST(a_change_outlives_the_owner_that_was_asked),
        TEST(whoever_inherits_knows_of_a_change_that_is_done),
        TEST(users_stay_although_the_group_is_not_available),
        TEST(successions_at_random),
    };
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]); /* with * and ? */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
