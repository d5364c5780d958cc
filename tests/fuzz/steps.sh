# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - bytes from outside: what fuzzing left behind; run.sh reads this file.

# The inputs that fuzzing left behind, and those that found something once. The last line of the log names one that fails.
fuzz_replay() {
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build fuzz tests/fuzz/fuzz.c -O1 $sanitizers || return
    for target in live handshake rma config uri; do
        check "fuzz $target tests/fuzz/corpus/$target" within 300 "$run_programs/fuzz" "$target" "tests/fuzz/corpus/$target"
    done
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    check 'fuzz card tests/fuzz/corpus/card' within 300 "$run_programs/fuzz" card tests/fuzz/corpus/card
}

fuzz_steps() {
    step fuzz-replay fuzz_replay
}
