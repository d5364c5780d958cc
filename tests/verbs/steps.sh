# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - RDMA, over arrays and in virtual machines; run.sh reads this file.

. tests/verbs/verbs.sh

# Without the header of libibverbs.
headerless() {
    build test_verbs-headerless tests/verbs/test_verbs.c -DCCI_NO_VERBS_H && run test_verbs-headerless
}

# What a message of 64 bytes costs over RDMA in mode = rc beyond the driver: a half round trip takes at most 412 instructions of gcc's,
# and the clock is not read for it.
instructions_of_verbs() {
    has valgrind || { skip 'there is no valgrind to count instructions' && return; }
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    build steps_verbs tests/verbs/steps_verbs.c -O2 || return
    valgrind --tool=callgrind --callgrind-out-file=/dev/null '--toggle-collect=counted_*' '--toggle-collect=driver_*' \
        "$out/steps_verbs" way 10000 64 >"$out/steps.txt" 2>"$out/steps.log"
    check 'a message got lost' [ $? -eq 0 ]
    steps=$(sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$out/steps.log")
    clocks=$(sed -n 's/.* clocks \([0-9]*\).*/\1/p' "$out/steps.txt")
    echo "64 bytes in mode = rc: ${steps:-0} instructions for 10,000 half round trips, the clock was read ${clocks:-0} times"
    check "a half round trip takes ${steps:-no}/10000 instructions" [ "${steps:-4120001}" -le 4120000 ]
    check "the clock is read ${clocks:-} times in 10,000 messages" [ "${clocks:-1001}" -le 1000 ]
}

verbs_steps() {
    unit_tests verbs
    step test_verbs-headerless headerless
    step verbs-steps instructions_of_verbs
    # In virtual machines that run meanwhile.
    step verbs-info guest_info
    for job in conformance-rc conformance-ud rc ud conformance-arm64 conformance-rc-sanitized conformance-ud-sanitized; do
        step "verbs-$job" guest_tests "$job"
    done
    step verbs-end guest_end
}
