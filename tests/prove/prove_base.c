/* SPDX-License-Identifier: MIT OR Unlicense
 * prove_base.c - proofs for CBMC: the sorted sets of ranges (prove.sh).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CCI__LOOP(name) CCI__LOOP_##name
#define CCI__LOOP_ranges_test \
    __CPROVER_assigns(count) __CPROVER_loop_invariant(count <= __CPROVER_loop_entry(count)) __CPROVER_decreases(count)
#define CCI__LOOP_ranges_fit CCI__LOOP_ranges_test
#define CCI__LOOP_ranges_end __CPROVER_assigns(end) __CPROVER_loop_invariant(end <= *count) __CPROVER_decreases(end)
#define CCI__LOOP_ranges_begin __CPROVER_assigns(begin) __CPROVER_loop_invariant(begin <= end) __CPROVER_decreases(begin)
#define CCI__LOOP_scan
#define CCI__LOOP_input
#define CCI__LOOP_place_run

/* CBMC's own memmove() loses content where an array of structures moves over itself. */
void *prove_memmove(void *to, const void *from, size_t size);
#define memmove prove_memmove
#define CCI_REL_IMPLEMENTATION
#define CCI_ASSERT(x) __CPROVER_assert(x, "assertion of the library: " #x)
#include "cci.h"

#define UNION_MAX 3u /* ranges in the proof of what the set holds */

uint32_t nondet_u32(void);
uint64_t nondet_u64(void);

#define SET_MAX CCI__REL_SEQUENCES /* the largest that there is */

static cci_range_t set[SET_MAX];
static int content_matters;

void *prove_memmove(void *to, const void *from, size_t size) {
    cci_range_t moved[UNION_MAX], *target = (cci_range_t *)to;
    const cci_range_t *source = (const cci_range_t *)from;
    size_t i, count = size / sizeof *target;
    __CPROVER_assert(size % sizeof *target == 0, "whole ranges move");
    __CPROVER_assert(size == 0 || __CPROVER_r_ok(from, size), "what moves is there");
    __CPROVER_assert(size == 0 || __CPROVER_w_ok(to, size), "where it goes is room");
    if (!content_matters) {
        __CPROVER_havoc_object(set);
        return to;
    }
    for (i = 0; i < UNION_MAX; i++)
        if (i < count)
            moved[i] = source[i];
    for (i = 0; i < UNION_MAX; i++)
        if (i < count)
            target[i] = moved[i];
    return to;
}

/* Nothing outside the set is touched: any capacity up to the largest, any count up to it, any content, sorted or not. */
void prove_ranges_memory(void) {
    uint32_t count = nondet_u32(), capacity = nondet_u32();
    uint64_t lo = nondet_u64(), hi = nondet_u64();
    __CPROVER_havoc_object(set);
    __CPROVER_assume(capacity <= SET_MAX && count <= capacity && lo < hi);
    (void)cci__ranges_fit(set, count, capacity, lo, hi);
    (void)cci__ranges_add(set, &count, capacity, lo, hi);
    __CPROVER_assert(count <= capacity, "no more ranges than there is room for");
    (void)cci__ranges_test(set, count, nondet_u64(), nondet_u64());
}

static int sorted(uint32_t count) {
    uint32_t i;
    for (i = 0; i < UNION_MAX; i++)
        if (i < count && (set[i].lo >= set[i].hi || (i + 1 < count && set[i].hi >= set[i + 1].lo)))
            return 0;
    return 1;
}
static int member(uint32_t count, uint64_t x) {
    uint32_t i;
    for (i = 0; i < UNION_MAX; i++)
        if (i < count && set[i].lo <= x && x < set[i].hi)
            return 1;
    return 0;
}

/* What the set holds afterwards is what it held and the new range: asked of any one number `x`. */
void prove_ranges_union(void) {
    uint32_t count = nondet_u32(), capacity = nondet_u32(), before = count;
    uint64_t lo = nondet_u64(), hi = nondet_u64(), x = nondet_u64();
    int was, result, fits;
    __CPROVER_havoc_object(set);
    __CPROVER_assume(capacity <= UNION_MAX && count <= capacity && lo < hi && sorted(count));
    content_matters = 1;
    was = member(count, x);
    fits = cci__ranges_fit(set, count, capacity, lo, hi);
    result = cci__ranges_add(set, &count, capacity, lo, hi);
    __CPROVER_assert(count <= capacity && sorted(count), "ascending, with gaps");
    __CPROVER_assert(fits == (result != CCI__RANGE_FULL), "fit() says what add() does");
    if (result == CCI__RANGE_FULL)
        __CPROVER_assert(member(count, x) == was && count == before, "nothing has changed");
    else
        __CPROVER_assert(member(count, x) == (was || (lo <= x && x < hi)), "the union");
}
