# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - the layers, each alone; run.sh reads this file.

# What ends of connections cost, in steps of the library.
ends_counted() {
    counts=$(counting)
    [ -n "$counts" ] || { skip "$cc does not count steps" && return; }
    build ends-counted tests/unit/test_ends.c -O2 "$counts" -DENDS_COUNTS_WORK && run ends-counted 20000
}

# A fork at one in four of all steps of getting acquainted, other ones each time.
test_fork_stepped() {
    counts=$(counting)
    [ -n "$counts" ] || { skip "$cc does not count steps" && return; }
    build test_fork-stepped tests/unit/test_fork.c -O1 "$counts" -DFORK_AT_EACH_STEP && run test_fork-stepped 'forks_at_each_step*' 4
}

# Ten million connections come and go.
ends_many() {
    build ends-many tests/unit/test_ends.c -O2 && run ends-many 10000000
}

# small_profiles [32]: profiles of the library for small machines talk to the full one, and to each other: small.c.
small_profiles() {
    compiler_of "${1:-}" || return
    mkdir -p "$out/small${1:-}"
    for profile in full small least small_asks small_serves tiny bare asks serves; do
        macros_of $profile
        # shellcheck disable=SC2086
        $compiler -std=gnu11 $flags -I. "-DSIDE=${profile}_side" $macros -c -o "$out/small${1:-}/$profile.o" tests/unit/small_side.c ||
            { fail "small_side.c does not compile: $macros" && return; }
    done
    # shellcheck disable=SC2086
    $compiler -std=gnu11 $flags -I. -o "$out/small${1:-}/small" tests/unit/small.c "$out/small${1:-}"/*.o ||
        { fail 'small.c does not compile' && return; }
    within 900 "$out/small${1:-}/small" 4 >"$out/small${1:-}/said.txt"
    status=$?
    cat "$out/small${1:-}/said.txt"
    passed=$((passed + $(grep -c '^ok: ' "$out/small${1:-}/said.txt")))
    check "small ended with status $status" [ "$status" -eq 0 ]
}

unit_steps() {
    unit_tests unit
    step test_fork-raced raced test_fork tests/unit/test_fork.c
    step test_fork-stepped test_fork_stepped
    step ends-counted ends_counted
    step ends-many ends_many
    step small-profiles small_profiles
    step small-profiles-32 small_profiles 32
}
