# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - RDMA, over arrays and in virtual machines; run.sh reads this file.

. tests/verbs/verbs.sh

# Without the header of libibverbs.
headerless() {
    build test_verbs-headerless tests/verbs/test_verbs.c -DCCI_NO_VERBS_H && run test_verbs-headerless
}

# What a message of 64 bytes costs over RDMA in mode = rc beyond the driver: a half round trip takes at most 392 instructions of gcc's,
# and the clock is not read for it.
instructions_of_verbs() {
    has valgrind || { skip 'there is no valgrind to count instructions' && return; }
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    build steps_verbs tests/verbs/steps_verbs.c -O2 || return
    valgrind --tool=callgrind --callgrind-out-file=/dev/null '--toggle-collect=counted_*' '--toggle-collect=driver_*' \
        "$run_programs/steps_verbs" way 10000 64 >"$out/steps.txt" 2>"$out/steps.log"
    check 'a message got lost' [ $? -eq 0 ]
    steps=$(sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$out/steps.log")
    clocks=$(sed -n 's/.* clocks \([0-9]*\).*/\1/p' "$out/steps.txt")
    echo "64 bytes in mode = rc: ${steps:-0} instructions for 10,000 half round trips, the clock was read ${clocks:-0} times"
    check "a half round trip takes ${steps:-no}/10000 instructions" [ "${steps:-3920001}" -le 3920000 ]
    check "the clock is read ${clocks:-} times in 10,000 messages" [ "${clocks:-1001}" -le 1000 ]
}

# counted_storm COUNT: the instructions for each of so many connections that are asked for at once, without the driver's.
counted_storm() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null '--toggle-collect=counted_*' '--toggle-collect=driver_*' \
        "$run_programs/steps_verbs" storm "$1" 2>&1 >/dev/null | sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' |
        awk -v count="$1" '{ printf "%d", $1 / count }'
}

# 10,000 connections that are asked for at once: each takes one queue pair on each side, which is made once and joined in three
# commands, some datagrams though all but the first wait for their turn, and so much work for each, however many there are.
storm_of_verbs() {
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    build steps_verbs tests/verbs/steps_verbs.c -O2 || return
    "$run_programs/steps_verbs" storm 10000 >"$out/storm.txt" 2>"$out/storm.log"
    check 'not all are open' [ $? -eq 0 ]
    cat "$out/storm.txt"
    # shellcheck disable=SC2046 # words
    set -- $(sed 's/[a-z]*//g' "$out/storm.txt") 0 0 0 0 0 0
    check "there are ${3} datagrams" [ "$3" -le 300000 ]
    check "queue pairs: made $4, changed $5, destroyed $6" [ "$4 $5 $6" = '20000 60000 0' ]
    "$run_programs/steps_verbs" storm 1000 slow >"$out/storm.txt" 2>>"$out/storm.log" # who waits longest does so for 50 s
    check 'not all are open where the clients are slow' [ $? -eq 0 ]
    cat "$out/storm.txt"
    has valgrind || { skip 'there is no valgrind to count instructions' && return; }
    few=$(counted_storm 1000) many=$(counted_storm 10000)
    echo "a connection in mode = rc, both ends: ${few:-0} instructions among 1,000, ${many:-0} among 10,000, beyond the driver's"
    check "a connection takes ${many:-no} instructions" [ "${many:-100000}" -le 80000 ]
    check "many take more work each than few, ${many:-no} and ${few:-no}" [ "${many:-100000}" -le $((${few:-0} * 3 / 2)) ]
}

verbs_steps() {
    unit_tests verbs
    step test_verbs-headerless headerless
    step verbs-steps instructions_of_verbs
    step verbs-storm storm_of_verbs
    # In virtual machines that run meanwhile, and belong to one lane.
    take guests || return
    step verbs-info guest_info
    for job in doca conformance-rc conformance-ud conformance-auto conformance-auto-ud rc ud conformance-arm64; do
        step "verbs-$job" guest_tests "$job"
    done
    step verbs-end guest_end
}
