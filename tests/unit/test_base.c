/* test_base.c - what all layers stand on: numbers in bytes, the keyed hash, ranges, the timing wheel, congestion.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define CCI_BASE_IMPLEMENTATION
#include "cci.h"

static uint64_t seed = 88172645463325252u;
static uint64_t random64(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}
static uint32_t chance(uint32_t limit) {
    return (uint32_t)(random64() >> 16) % limit;
}

static void test_numbers_are_little_endian_at_any_address(void **state) {
    uint8_t bytes[16];
    uint32_t at;
    (void)state;
    for (at = 0; at < 8; at++) {
        memset(bytes, 0xee, sizeof bytes);
        cci__store64(bytes + at, UINT64_C(0x0102030405060708));
        assert_int_equal(bytes[at], 8);
        assert_int_equal(bytes[at + 7], 1);
        assert_true(cci__load64(bytes + at) == UINT64_C(0x0102030405060708));
        assert_int_equal(cci__load32(bytes + at), 0x05060708);
        assert_int_equal(cci__load16(bytes + at), 0x0708);
        cci__store32(bytes + at, 0xfffefdfc);
        assert_true(cci__load32(bytes + at) == 0xfffefdfc);
        cci__store16(bytes + at, 0x1abcd); /* the low 16 bits */
        assert_int_equal(cci__load16(bytes + at), 0xabcd);
        assert_true(cci__load64(bytes + at) == UINT64_C(0x01020304fffeabcd));
    }
}

static void test_a_number_of_32_bits_becomes_the_nearest_of_64(void **state) {
    uint32_t i;
    (void)state;
    assert_true(cci__expand32(5, 0) == 5);
    assert_true(cci__expand32(0xffffffff, 0) == UINT64_MAX); /* just before 0: the caller refuses it */
    assert_true(cci__expand32(0xfffffff0, UINT64_C(0x100000005)) == UINT64_C(0xfffffff0));
    assert_true(cci__expand32(0x10, UINT64_C(0x1fffffff0)) == UINT64_C(0x200000010));
    for (i = 0; i < 100000; i++) {
        uint64_t around = random64() >> 1 | UINT64_C(1) << 40, number = around + (uint64_t)(int64_t)(int32_t)random64();
        assert_true(cci__expand32((uint32_t)number, around) == number);
    }
}

static uint64_t random_of_any_size(void) {
    return random64() >> chance(64);
}

static void test_a_quotient_is_exact_by_16_bits_and_else_hardly_too_small(void **state) {
    static const uint64_t edges[] = {1, 2, 3, 1000, 0xffff, 0x10000, 0x10001, 0x1ffff, 0xffffffff, UINT64_C(0x100000000), UINT64_MAX - 1, UINT64_MAX};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    uint32_t i;
    (void)state;
    for (i = 0; i < 1000000; i++) {
        uint64_t a = i < EDGES * EDGES ? edges[i / EDGES] : random_of_any_size();
        uint64_t b = i < EDGES * EDGES ? edges[i % EDGES] : random_of_any_size() | 1, quotient = cci__quotient(a, b);
        assert_true(quotient <= a / b);
        assert_true(a / b - quotient <= (b <= 0xffff ? 0 : 1 + a / b / 16384));
    }
    assert_int_equal(cci__quotient(0, 7), 0);
}

/* The reference vectors whose input is a multiple of 8 bytes: key 00..0f, input 00.. */
static void test_siphash_gives_the_reference_values(void **state) {
    static const uint64_t expected[8] = {UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x93f5f5799a932462),
                                         UINT64_C(0x3f2acc7f57c29bdb), UINT64_C(0xb8ad50c6f649af94),
                                         UINT64_C(0x7127512f72f27cce), UINT64_C(0x0e3ea96b5304a7d0),
                                         UINT64_C(0xe612a3cb9ecba951), UINT64_C(0xb78dbfaf3a8d83bd)};
    uint8_t bytes[64];
    uint64_t key[2], words[8];
    uint32_t i;
    (void)state;
    for (i = 0; i < 64; i++) bytes[i] = (uint8_t)i;
    key[0] = cci__load64(bytes);
    key[1] = cci__load64(bytes + 8);
    for (i = 0; i < 8; i++) words[i] = cci__load64(bytes + 8 * i);
    for (i = 0; i < 8; i++) assert_true(cci__siphash(key, words, i) == expected[i]);
    key[0] ^= 1;
    assert_true(cci__siphash(key, words, 1) != expected[1]);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

#define UNIVERSE 128u

static void check_ranges(const cci_range_t *set, uint32_t count, const uint8_t *model) {
    uint32_t i, k;
    for (i = 0; i < count; i++) {
        assert_true(set[i].lo < set[i].hi);
        if (i) assert_true(set[i - 1].hi < set[i].lo); /* a gap between them */
    }
    for (k = 0; k < UNIVERSE; k++) {
        int in = 0;
        for (i = 0; i < count; i++) in |= set[i].lo <= k && k < set[i].hi;
        assert_int_equal(in, model[k]);
    }
}

static void test_ranges_behave_like_a_set(void **state) {
    uint32_t round, n, k;
    (void)state;
    for (round = 0; round < 400; round++) {
        uint32_t capacity = 1 + chance(12), count = 0;
        cci_range_t *set = malloc(capacity * sizeof *set);
        uint8_t model[UNIVERSE] = {0};
        assert_non_null(set);
        for (n = 0; n < 60; n++) {
            uint32_t lo = chance(UNIVERSE - 1), hi = cci__min32(UNIVERSE, lo + 1 + chance(chance(2) ? 3 : 20));
            uint32_t in = 0, ranges = 0;
            uint8_t after[UNIVERSE];
            int how, added;
            for (k = lo; k < hi; k++) in += model[k];
            memcpy(after, model, sizeof after);
            memset(after + lo, 1, hi - lo);
            for (k = 0; k < UNIVERSE; k++) ranges += after[k] && (k == 0 || !after[k - 1]);
            how = cci__ranges_test(set, count, lo, hi);
            assert_int_equal(how, in == 0 ? CCI__RANGE_NEW : in == hi - lo ? CCI__RANGE_OLD : CCI__RANGE_MIXED);
            assert_int_equal(cci__ranges_fit(set, count, capacity, lo, hi), ranges <= capacity);
            added = cci__ranges_add(set, &count, capacity, lo, hi);
            if (ranges <= capacity) {
                assert_int_not_equal(added, CCI__RANGE_FULL);
                memcpy(model, after, sizeof model);
            } else {
                assert_int_equal(added, CCI__RANGE_FULL);
            }
            check_ranges(set, count, model);
        }
        free(set);
    }
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

#define TIMERS 300u
#define TICK (UINT64_C(1) << CCI__TICK_SHIFT)

static uint64_t some_delay(void) {
    switch (chance(5)) {
    case 0: return 0;
    case 1: return random64() % (100 * TICK);
    case 2: return random64() % (10000 * TICK);
    case 3: return random64() % (UINT64_C(100) * 1000000000);
    default: return random64() % (UINT64_C(40) * 86400 * 1000000000);
    }
}

static void test_a_timer_comes_never_early_and_at_most_two_ticks_late(void **state) {
    static cci_wheel_t wheel;
    static cci_timer_t timer[TIMERS];
    static uint64_t at[TIMERS];
    uint64_t now = UINT64_C(123456789012), before;
    uint32_t i, n, expired = 0;
    (void)state;
    cci__wheel_init(&wheel, now);
    for (i = 0; i < TIMERS; i++) {
        cci__timer_init(&timer[i]);
        at[i] = CCI__NEVER;
    }
    for (n = 0; n < 60000; n++) {
        cci_timer_t *due;
        uint64_t first = CCI__NEVER, deadline;
        i = chance(TIMERS);
        if (chance(4)) {
            at[i] = chance(20) ? now + some_delay() : now - cci__min64(now, some_delay()); /* armed or not */
            cci__timer_arm(&wheel, &timer[i], at[i]);
        } else {
            cci__timer_disarm(&wheel, &timer[i]);
            at[i] = CCI__NEVER;
        }
        deadline = cci__wheel_deadline(&wheel);
        for (i = 0; i < TIMERS; i++) first = cci__min64(first, at[i]);
        if (first == CCI__NEVER)
            assert_true(deadline == CCI__NEVER);
        else
            assert_true(deadline <= cci__max64(first + 2 * TICK, 1));
        before = now;
        now = chance(3) ? now + some_delay() / 50 : deadline == CCI__NEVER ? now : cci__max64(now, deadline);
        assert_true(now >= before);
        while ((due = cci__wheel_expire(&wheel, now)) != NULL) {
            i = (uint32_t)(due - timer);
            assert_true(at[i] != CCI__NEVER); /* it was armed */
            assert_true(at[i] <= now);
            assert_true(due->at_ns == CCI__NEVER);
            at[i] = CCI__NEVER;
            expired++;
        }
        for (i = 0; i < TIMERS; i++)
            if (at[i] != CCI__NEVER) assert_true(at[i] + 2 * TICK >= now);
    }
    assert_true(expired > 1000);
}

/* A program that sleeps until each deadline sees every timer, after few wake-ups. */
static void test_sleeping_until_the_deadline_meets_each_timer_in_time(void **state) {
    static cci_wheel_t wheel;
    cci_timer_t timer;
    uint32_t n, wakes;
    uint64_t now = 5;
    (void)state;
    for (n = 0; n < 3000; n++) {
        uint64_t at;
        cci__wheel_init(&wheel, now);
        cci__timer_init(&timer);
        at = now + some_delay() * (n % 10 ? 1 : 100);
        cci__timer_arm(&wheel, &timer, at);
        for (wakes = 0; !cci__wheel_expire(&wheel, now); wakes++) {
            uint64_t deadline = cci__wheel_deadline(&wheel);
            assert_true(wakes < 2000);
            assert_true(deadline != CCI__NEVER && deadline <= at + 2 * TICK);
            now = cci__max64(now, deadline);
        }
        assert_true(now >= at && now <= at + 2 * TICK);
        assert_true(cci__wheel_deadline(&wheel) == CCI__NEVER);
    }
}

static void test_arming_again_moves_a_timer(void **state) {
#ifdef CCI_SMALL
    const uint64_t past_ns = 400 * TICK; /* a list tells the timer's own time */
#else
    const uint64_t past_ns = 0;
#endif
    static cci_wheel_t wheel;
    cci_timer_t timer;
    (void)state;
    cci__wheel_init(&wheel, 0);
    cci__timer_init(&timer);
    cci__timer_disarm(&wheel, &timer); /* not armed: no harm */
    cci__timer_arm(&wheel, &timer, 10 * TICK);
    cci__timer_arm(&wheel, &timer, 1000 * TICK);
    assert_null(cci__wheel_expire(&wheel, 500 * TICK));
    cci__timer_arm(&wheel, &timer, 400 * TICK); /* the past */
    assert_int_equal(cci__wheel_deadline(&wheel), past_ns);
    cci__timer_arm(&wheel, &timer, 600 * TICK); /* out of what is due */
    assert_null(cci__wheel_expire(&wheel, 599 * TICK));
    assert_ptr_equal(cci__wheel_expire(&wheel, 602 * TICK), &timer);
    assert_null(cci__wheel_expire(&wheel, 602 * TICK));
    cci__timer_arm(&wheel, &timer, 700 * TICK);
    cci__timer_arm(&wheel, &timer, CCI__NEVER);
    assert_null(cci__wheel_expire(&wheel, 100000 * TICK));
    assert_true(cci__wheel_deadline(&wheel) == CCI__NEVER);
}

/* Counts what is touched, since time on a busy machine says little: a poll looks at the slots that begin, not at timers. */
static void test_a_poll_costs_the_same_with_any_number_of_timers(void **state) {
    static cci_wheel_t wheel;
    uint32_t count = 100000, i, touched = 0;
    cci_timer_t *timers = malloc(count * sizeof *timers);
    uint32_t *place = malloc(count * sizeof *place);
    (void)state;
    assert_true(timers && place);
    cci__wheel_init(&wheel, 0);
    for (i = 0; i < count; i++) {
        cci__timer_init(&timers[i]);
        cci__timer_arm(&wheel, &timers[i], UINT64_C(3600) * 1000000000 + random64() % (UINT64_C(3600) * 1000000000));
        place[i] = timers[i].place;
    }
    for (i = 0; i < 10000; i++) assert_null(cci__wheel_expire(&wheel, i * TICK));
    for (i = 0; i < count; i++) touched += place[i] != timers[i].place;
    assert_int_equal(touched, 0);
    free(timers);
    free(place);
}

static void test_crc32c_gives_the_published_values(void **state) {
    uint8_t bytes[32];
    uint32_t i;
    (void)state;
    assert_int_equal(cci__crc32c(0, (const uint8_t *)"123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes); /* RFC 3720, B.4 */
    assert_int_equal(cci__crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(cci__crc32c(0, bytes, 32), 0x62a8ab43);
    for (i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    assert_int_equal(cci__crc32c(0, bytes, 32), 0x46dd794e);
    for (i = 0; i <= 32; i++) assert_int_equal(cci__crc32c(cci__crc32c(0, bytes, i), bytes + i, 32 - i), 0x46dd794e);
}

static void test_crc32c_with_large_tables_gives_the_same(void **state) {
    static uint32_t tables[8][256];
    uint8_t bytes[100];
    uint32_t i, length;
    (void)state;
    cci__crc32c_tables(tables);
    for (i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)random64();
    for (i = 0; i < 8; i++)
        for (length = 0; length <= sizeof bytes - i; length++)
            assert_int_equal(cci__crc32c_fast(tables, i, bytes + i, length), cci__crc32c(i, bytes + i, length));
}

/* A window of packets of 1,000 bytes is sent at once and acknowledged a round trip later. Returns the time then. */
static uint64_t round_trip(cci_flow_t *flow, const cci_congestion_t *congestion, uint64_t rtt_ns, uint64_t now_ns) {
    uint64_t at, window = flow->window;
    for (at = 0; at < window; at += 1000) {
        cci__flow_sample(flow, rtt_ns, 1, now_ns + rtt_ns);
        cci__flow_arrived(flow, congestion, 1000, now_ns, 1, 1000, now_ns + rtt_ns);
    }
    return now_ns + rtt_ns;
}

static void test_a_congestion_control_is_found_by_its_whole_name(void **state) {
    (void)state;
    assert_string_equal(cci__find_congestion("newreno")->name, "newreno");
    assert_string_equal(cci__find_congestion("fixed")->name, "fixed");
    assert_ptr_equal(cci__find_congestion(NULL), cci__find_congestion("cubic"));
    assert_null(cci__find_congestion(""));
    assert_null(cci__find_congestion("newren"));
    assert_null(cci__find_congestion("newrenos"));
}

static void test_newreno_doubles_then_halves_once_a_round_trip_and_adds_a_packet_to_each(void **state) {
    const cci_congestion_t *newreno = cci__find_congestion("newreno");
    uint64_t sent_ns, now_ns = 1;
    cci_flow_t flow;
    (void)state;
    cci__flow_init(&flow, 16000);
    sent_ns = now_ns = round_trip(&flow, newreno, 10 * CCI__MS, now_ns);
    assert_true(flow.window == 32000);
    now_ns += 10 * CCI__MS;
    cci__flow_lost(&flow, newreno, 1000, sent_ns, 1000, now_ns);
    assert_true(flow.window == 16000);
    cci__flow_lost(&flow, newreno, 1000, sent_ns, 1000, now_ns); /* it was sent before the window was halved */
    assert_true(flow.window == 16000);
    now_ns = round_trip(&flow, newreno, 10 * CCI__MS, now_ns);
    assert_in_range(flow.window, 16900, 17000);
    round_trip(&flow, newreno, 10 * CCI__MS, now_ns);
    assert_in_range(flow.window, 17800, 18000);
}

static void test_slow_start_ends_when_the_queue_of_a_long_path_grows(void **state) {
    const cci_congestion_t *discern = cci__find_congestion("discern");
    cci_flow_t flow;
    uint64_t now_ns;
    (void)state;
    cci__flow_init(&flow, 32000);
    now_ns = round_trip(&flow, discern, 10 * CCI__MS, 1);
    assert_true(flow.window == 64000 && flow.threshold == UINT32_MAX);
    round_trip(&flow, discern, 15 * CCI__MS, now_ns);
    assert_in_range(flow.window, 32000, 40000);
    assert_true(flow.threshold == flow.window);

    cci__flow_init(&flow, 32000); /* on a short path a late packet is no sign of a queue */
    now_ns = round_trip(&flow, discern, CCI__MS, 1);
    now_ns = round_trip(&flow, discern, 15 * CCI__MS / 10, now_ns);
    assert_true(flow.window == 128000 && flow.threshold == UINT32_MAX);
    cci__flow_lost(&flow, discern, 1000, now_ns, 1000, now_ns); /* twice as much as fits was under way */
    assert_true(flow.window == 128000 * 614 / 1024);
}

static void test_a_loss_behind_a_queue_shrinks_the_window_by_what_the_queue_had_added(void **state) {
    const cci_congestion_t *discern = cci__find_congestion("discern");
    cci_flow_t flow;
    uint64_t before, now_ns;
    (void)state;
    cci__flow_init(&flow, 100000);
    flow.threshold = (uint32_t)flow.window;
    now_ns = round_trip(&flow, discern, 10 * CCI__MS, 1);
    now_ns = round_trip(&flow, discern, 12500000, now_ns);
    before = flow.window;
    cci__flow_lost(&flow, discern, 1000, now_ns, 1000, now_ns);
    assert_true(flow.window == before * (1088 * 10 * 10 / 125) / 1024);
}

static void test_losses_without_a_queue_change_nothing_until_they_are_a_tenth(void **state) {
    const cci_congestion_t *discern = cci__find_congestion("discern");
    uint64_t before, now_ns = 1;
    cci_flow_t flow;
    uint32_t rounds;
    (void)state;
    cci__flow_init(&flow, 100000);
    flow.threshold = (uint32_t)flow.window;
    for (rounds = 0; rounds < 300; rounds++) {
        now_ns = round_trip(&flow, discern, 10 * CCI__MS, now_ns);
        before = flow.window;
        cci__flow_lost(&flow, discern, (uint32_t)(before / 20), now_ns, 1000, now_ns);
        assert_true(flow.window == before);
    }
    cci__flow_init(&flow, 100000);
    flow.threshold = (uint32_t)flow.window;
    for (rounds = 0; rounds < 300; rounds++) {
        now_ns = round_trip(&flow, discern, 10 * CCI__MS, now_ns);
        before = flow.window;
        cci__flow_lost(&flow, discern, (uint32_t)(before / 4), now_ns, 1000, now_ns);
        if (flow.window < before)
            break;
    }
    assert_in_range(rounds, 10, 60); /* the share is smoothed over 32 half round trips */
    assert_true(flow.window == before * 717 / 1024);
}

/* Round trips while a share of 1,000 packets is lost, one at a time. */
static uint64_t lossy_round_trips(cci_flow_t *flow, uint64_t rtt_ns, uint32_t lost_per_mille, uint32_t rounds, uint64_t now_ns) {
    const cci_congestion_t *cubic = cci__find_congestion("cubic");
    uint32_t sum = 0;
    while (rounds-- > 0) {
        now_ns = round_trip(flow, cubic, rtt_ns, now_ns);
        for (sum += (uint32_t)(flow->window / 1000) * lost_per_mille; sum >= 1000; sum -= 1000)
            cci__flow_lost(flow, cubic, 1000, now_ns - rtt_ns, 1000, now_ns);
    }
    return now_ns;
}

static void test_cubic_keeps_seven_tenths_at_a_loss_and_more_where_a_short_queue_drops_little(void **state) {
    const cci_congestion_t *cubic = cci__find_congestion("cubic");
    cci_flow_t flow;
    uint64_t before, now_ns;
    uint32_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        cci__flow_init(&flow, 100000);
        flow.threshold = 100000;
        now_ns = round_trip(&flow, cubic, 100 * CCI__MS, 1);
        now_ns = round_trip(&flow, cubic, (i == 0 ? 150 : 105) * CCI__MS, now_ns);
        before = flow.window;
        cci__flow_lost(&flow, cubic, 1000, now_ns, 1000, now_ns);
        assert_true(flow.window == before * (i == 0 ? 717 : 870) / 1024);
        cci__flow_lost(&flow, cubic, 1000, now_ns - 1, 1000, now_ns); /* it was sent before */
        assert_true(flow.window == before * (i == 0 ? 717 : 870) / 1024);
    }
}

static void test_cubic_tolerates_what_is_lost_at_a_lower_rate_too_for_a_while_and_not_more_than_a_fortieth(void **state) {
    cci_flow_t flow;
    uint64_t now_ns;
    (void)state;
    cci__flow_init(&flow, 100000);
    flow.threshold = 100000;
    now_ns = lossy_round_trips(&flow, 10 * CCI__MS, 10, 3, 1);
    assert_int_equal(flow.finding, CCI__FLOW_CHANCE); /* the first loss was the trial */
    now_ns = lossy_round_trips(&flow, 10 * CCI__MS, 20, 100, now_ns);
    assert_int_equal(flow.finding, CCI__FLOW_CHANCE);
    assert_true(flow.window > 1000000); /* the line is never full */
    flow.window = 100000;
    now_ns = lossy_round_trips(&flow, 10 * CCI__MS, 100, 20, now_ns);
    assert_true(flow.window < 50000);
    flow.finding = CCI__FLOW_CHANCE;
    flow.until = CCI__FLOW_TICK(now_ns); /* its time is over */
    flow.window = 100000;
    cci__flow_lost(&flow, cci__find_congestion("cubic"), 1000, now_ns, 1000, now_ns);
    assert_int_equal(flow.finding, CCI__FLOW_OPEN);
    assert_true(flow.window < 100000);
}

/* A tenth is lost: at any rate, or only while more than half as much is under way as at first. */
static void test_cubic_comes_back_where_much_is_lost_at_a_far_lower_rate_too(void **state) {
    uint32_t always, i;
    (void)state;
    if (!CCI__FLOW_TRIES_AGAIN) skip(); /* with CCI_SMALL */
    for (always = 0; always < 2; always++) {
        cci_flow_t flow;
        uint64_t now_ns, before;
        cci__flow_init(&flow, 200000);
        flow.threshold = 200000;
        now_ns = lossy_round_trips(&flow, 10 * CCI__MS, 10, 3, 1);
        assert_int_equal(flow.finding, CCI__FLOW_CHANCE);
        for (i = 0; i < 10 && flow.finding == CCI__FLOW_CHANCE; i++)
            now_ns = lossy_round_trips(&flow, 10 * CCI__MS, 100, 1, now_ns);
        assert_int_equal(flow.finding, CCI__FLOW_AGAIN);
        before = flow.tried;
        assert_true(before > 150000);
        for (i = 0; i < 60 && flow.finding == CCI__FLOW_AGAIN && flow.tried == before; i++) {
            assert_true(flow.window >= before * 5 / 16 - 16);
            now_ns = lossy_round_trips(&flow, 10 * CCI__MS, always || flow.window > 100000 ? 100 : 0, 1, now_ns);
        }
        assert_in_range(i, 8, 40); /* here each counts as a half */
        if (always) /* and the next trial may have begun */
            assert_true((flow.finding == CCI__FLOW_AGAIN ? flow.tried : flow.window) > before * 7 / 8);
        else
            assert_true(flow.finding == CCI__FLOW_OPEN && flow.window < before / 2);
    }
}

static void test_cubic_takes_no_loss_for_chance_where_a_short_queue_comes_and_goes(void **state) {
    const cci_congestion_t *cubic = cci__find_congestion("cubic");
    cci_flow_t flow;
    uint64_t now_ns = 1;
    uint32_t i;
    (void)state;
    cci__flow_init(&flow, 100000);
    flow.threshold = 100000;
    for (i = 0; i < 200; i++) {
        now_ns = round_trip(&flow, cubic, 10 * CCI__MS, now_ns);
        now_ns = round_trip(&flow, cubic, 10 * CCI__MS + 300000, now_ns);
        cci__flow_lost(&flow, cubic, 1000, now_ns, 1000, now_ns);
        assert_int_equal(flow.finding, CCI__FLOW_OPEN);
    }
    assert_true(flow.window < 20000);
}

static void test_cubic_ends_slow_start_some_round_trips_after_these_have_grown(void **state) {
    const cci_congestion_t *cubic = cci__find_congestion("cubic");
    cci_flow_t flow;
    uint64_t now_ns = 1;
    uint32_t i;
    (void)state;
    cci__flow_init(&flow, 12000);
    for (i = 0; i < 4; i++)
        now_ns = round_trip(&flow, cubic, 40 * CCI__MS, now_ns);
    assert_true(flow.window == 16 * 12000 && flow.threshold == UINT32_MAX);
    for (i = 0; i < 20 && flow.threshold == UINT32_MAX; i++)
        now_ns = round_trip(&flow, cubic, 46 * CCI__MS, now_ns);
    assert_in_range(i, 5, 14); /* one round trip or two until that is known */
    assert_in_range(flow.window, 16 * 12000, 16 * 12000 * 16);
}

static void test_cubic_drains_a_deep_queue_unless_it_is_others(void **state) {
    const cci_congestion_t *cubic = cci__find_congestion("cubic");
    cci_flow_t flow;
    uint64_t before, now_ns;
    uint32_t others, i;
    (void)state;
    for (others = 0; others < 2; others++) {
        cci__flow_init(&flow, 100000);
        flow.threshold = 100000;
        now_ns = round_trip(&flow, cubic, 40 * CCI__MS, 1);
        for (i = 0; i < 4; i++)
            now_ns = round_trip(&flow, cubic, (60 + 20 * i) * CCI__MS, now_ns);
        before = flow.tried;
        assert_int_equal(flow.finding, CCI__FLOW_DRAINING);
        assert_in_range(flow.window, before * 30 / 100, before * 35 / 100);
        now_ns = round_trip(&flow, cubic, (others ? 120 : 40) * CCI__MS, now_ns);
        assert_int_equal(flow.finding, others ? CCI__FLOW_OTHERS : CCI__FLOW_OPEN);
        assert_in_range(flow.window, before * (others ? 90 : 30) / 100, before * (others ? 110 : 60) / 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_little_endian_at_any_address),
        cmocka_unit_test(test_a_number_of_32_bits_becomes_the_nearest_of_64),
        cmocka_unit_test(test_a_quotient_is_exact_by_16_bits_and_else_hardly_too_small),
        cmocka_unit_test(test_siphash_gives_the_reference_values),
        cmocka_unit_test(test_crc32c_gives_the_published_values),
        cmocka_unit_test(test_crc32c_with_large_tables_gives_the_same),
        cmocka_unit_test(test_ranges_behave_like_a_set),
        cmocka_unit_test(test_a_timer_comes_never_early_and_at_most_two_ticks_late),
        cmocka_unit_test(test_sleeping_until_the_deadline_meets_each_timer_in_time),
        cmocka_unit_test(test_arming_again_moves_a_timer),
        cmocka_unit_test(test_a_poll_costs_the_same_with_any_number_of_timers),
        cmocka_unit_test(test_a_congestion_control_is_found_by_its_whole_name),
        cmocka_unit_test(test_newreno_doubles_then_halves_once_a_round_trip_and_adds_a_packet_to_each),
        cmocka_unit_test(test_slow_start_ends_when_the_queue_of_a_long_path_grows),
        cmocka_unit_test(test_a_loss_behind_a_queue_shrinks_the_window_by_what_the_queue_had_added),
        cmocka_unit_test(test_losses_without_a_queue_change_nothing_until_they_are_a_tenth),
        cmocka_unit_test(test_cubic_keeps_seven_tenths_at_a_loss_and_more_where_a_short_queue_drops_little),
        cmocka_unit_test(test_cubic_tolerates_what_is_lost_at_a_lower_rate_too_for_a_while_and_not_more_than_a_fortieth),
        cmocka_unit_test(test_cubic_comes_back_where_much_is_lost_at_a_far_lower_rate_too),
        cmocka_unit_test(test_cubic_takes_no_loss_for_chance_where_a_short_queue_comes_and_goes),
        cmocka_unit_test(test_cubic_ends_slow_start_some_round_trips_after_these_have_grown),
        cmocka_unit_test(test_cubic_drains_a_deep_queue_unless_it_is_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
