# SPDX-License-Identifier: MIT OR Unlicense
# programs.sh - builds and runs programs of tests, and counts what they say; run.sh reads this file.

# build NAME SOURCE FLAGS...: builds $run_programs/NAME if this run has not built it yet, in whichever lane. A run spends much of its
# time on compiling: -O2 takes twice as long as -O1, and -g1, enough for a report with lines, two thirds of what -g takes.
build() {
    built=$1 source=$2
    shift 2
    [ -f "$source" ] || { fail "$source is missing" && return 1; }
    if take "build-$built"; then
        # shellcheck disable=SC2086
        "$cc" -std=gnu11 -g1 -I. ${defines:-} "$@" -o "$run_programs/$built.new" "$source" -lcmocka ${libraries:-} -pthread &&
            mv "$run_programs/$built.new" "$run_programs/$built"
        mkdir "$run_claims/built-$built"
    fi
    until [ -d "$run_claims/built-$built" ] || [ "$(seconds_left)" -le 0 ]; do sleep 0.2; done
    [ ! -x "$run_programs/$built" ] || return 0
    fail "$source does not compile: $*"
    return 1
}

# run NAME ARGUMENTS...: runs a program of tests and adds what it counted. One that ends badly without having counted a
# failure (it crashed, hung, leaked) is one failure.
run() {
    said=$out/$1 program_run=$run_programs/$1
    shift
    # shellcheck disable=SC2086
    within "$patience" env CMOCKA_MESSAGE_OUTPUT=STDOUT ${runner:-} "$program_run" "$@" >"$said.out" 2>"$said.err"
    status=$?
    tally "$program_run $*"
}

# tally WHAT: adds what the program of tests counted that has left $said.out, $said.err and its exit status in $status.
tally() {
    cat "$said.out" "$said.err"
    good=$(grep -ac '^\[       OK \]' "$said.out")
    bad=$(summary FAILED)
    left_out=$(summary SKIPPED)
    sed -n '/ test(s), listed /d; s/^\[  SKIPPED \] /SKIP: /p; s/^\[  FAILED  \] /FAIL: /p' "$said.out"
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left_out))
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then fail "$1 hung"
    elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then fail "$1 ended with status $status"
    elif [ $((good + bad + left_out)) -eq 0 ]; then fail "$1 tested nothing"
    fi
}

# cmocka sums up each group: "[  FAILED  ] 2 test(s), listed below:".
summary() {
    cat "$said.out" "$said.err" |
        sed -n "s/^\[ *$1 *\] \([^0-9].*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# count_time: $computed are the seconds that programs of this lane have computed since count_time was called before.
count_time() {
    times >"$out/times"
    computed=$(awk -F '[ms ]+' -v before="${all_computed:-0}" 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) - before }' "$out/times")
    all_computed=$((${all_computed:-0} + computed))
}

# works FLAGS...: a program built so also runs here.
works() {
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    "$cc" "$@" -o "$out/probe" "$out/probe.c" 2>/dev/null && "$out/probe" 2>/dev/null
}

# brief COMMAND...: runs the conformance suite with less of what it repeats, where another run has all of it.
brief() {
    CONFORMANCE_BRIEF=1 "$@"
}

# The ways in which a program of tests is built and run: NAME SOURCE ARGUMENTS...
plain() {
    program=$1 source=$2
    shift 2
    build "$program" "$source" -O1 && run "$program" "$@"
}

# As most users compile it, and for what computes much.
optimized() {
    program=$1 source=$2
    shift 2
    build "$program" "$source" -O2 && run "$program" "$@"
}

# Compiling takes longer than running, but for a few: with -O0 half as long.
sanitized() {
    program=$1-sanitized source=$2
    case $1 in conformance* | test_dgram | test_ends | test_rel | test_rma) level=-O1 ;; *) level=-O0 ;; esac
    shift 2
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build "$program" "$source" $level $sanitizers && run "$program" "$@"
}

# Once alone, with sanitizers where there are any.
either() {
    # shellcheck disable=SC2086
    if works $sanitizers; then sanitized "$@"; else plain "$@"; fi
}

portable() {
    program=$1-portable source=$2
    shift 2
    build "$program" "$source" -O1 -DCCI_UDP_PORTABLE && run "$program" "$@"
}

# With the cipher that a program would take, not the toy that tests make do with.
has_sodium() {
    echo '#include <sodium.h>' >"$out/sodium.c"
    "$cc" -fsyntax-only "$out/sodium.c" 2>/dev/null
}

has_uv() {
    echo '#include <uv.h>' >"$out/uv.c"
    "$cc" -fsyntax-only "$out/uv.c" 2>/dev/null
}

ciphered() {
    program=$1-ciphered source=$2
    shift 2
    has_sodium || { skip 'there is no libsodium' && return; }
    libraries=-lsodium
    build "$program" "$source" -O1 -DCCI_TEST_SODIUM && run "$program" "$@"
    libraries=
}

raced() {
    program=$1-raced source=$2
    shift 2
    works -fsanitize=thread || { skip "$cc has no thread sanitizer here" && return; }
    build "$program" "$source" -O1 -fsanitize=thread && run "$program" "$@"
}

threadless() {
    program=$1-threadless source=$2
    shift 2
    build "$program" "$source" -O1 -DCCI_NO_THREADS && run "$program" "$@"
}

# With CCI_VALIDATE, which must find no mistake in a program that makes none.
validated() {
    program=$1-validated source=$2
    shift 2
    build "$program" "$source" -O1 -DCCI_VALIDATE && run "$program" "$@"
}

# The flag that makes the library count its steps; where the compiler has none, the test of the work is skipped.
counting() {
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    "$cc" -fsanitize-coverage=trace-pc -c -o "$out/probe.o" "$out/probe.c" 2>/dev/null &&
        echo -fsanitize-coverage=trace-pc
}

# The compiler that brings other systems' headers and libraries, if it is there (deps.sh gets it).
find_zig() {
    zig=build/zig/node_modules/.bin/zig
    [ ! -x "$zig" ] || zig=$PWD/$zig
    has "$zig" || zig=zig
    has "$zig" || return
    export ZIG_GLOBAL_CACHE_DIR="$PWD/build/zig/cache" ZIG_LOCAL_CACHE_DIR="$PWD/build/zig/cache"
}

# compiler_of [32]: sets compiler and flags: for this machine, with sanitizers if there are some, or for programs of 32 bits.
compiler_of() {
    compiler=$cc flags='-g1 -O1'
    # shellcheck disable=SC2086
    if [ "$1" != 32 ]; then ! works $sanitizers || flags="$flags $sanitizers"
    elif has i686-linux-gnu-gcc; then compiler='i686-linux-gnu-gcc -static'
    elif find_zig; then compiler="$zig cc -target x86-linux-musl -static -fno-sanitize=undefined"
    else skip 'there is no compiler for 32 bits' && return 1
    fi
}

# macros_of PROFILE: sets macros, with which a profile of the library is compiled.
macros_of() {
    tiny='-DCCI_TINY -DCCI_TINY_ENDPOINTS=3 -DCCI_TINY_MTU=1300' without='-DCCI_NO_SEAL -DCCI_NO_MULTICAST -DCCI_NO_MIGRATION'
    case $1 in
    full) macros='' ;;
    small) macros=-DCCI_SMALL ;;
    small_asks) macros="-DCCI_SMALL -DCCI_NO_SERVER $without" ;;
    small_serves) macros="-DCCI_SMALL -DCCI_NO_CLIENT $without" ;;
    least) macros='-DCCI_SMALL -DCCI_NO_RMA -DCCI_NO_TEXT -DCCI_NO_CONGESTION' ;;
    tiny) macros="$tiny -DCCI_TINY_SEAL" ;;
    bare) macros="$tiny -DCCI_TINY_RECEIVES=2 -DCCI_NO_RMA" ;;
    asks) macros="$tiny -DCCI_TINY_SEAL -DCCI_NO_SERVER" ;;
    serves) macros="$tiny -DCCI_TINY_SEAL -DCCI_NO_CLIENT" ;;
    esac
}

# unit_tests FOLDER: a step for each of its test programs, and one with sanitizers.
unit_tests() {
    for source in "tests/$1"/test_*.c; do
        unit=$(basename "$source" .c)
        step "$unit" plain "$unit" "$source"
        step "$unit-sanitized" sanitized "$unit" "$source"
    done
}

# counted COMMAND...: a script that prints its own sum, "N passed" or "N proven", failures and what it skipped.
counted() {
    within 1200 "$@" >"$out/counted.txt" 2>&1
    status=$?
    cat "$out/counted.txt"
    good=$(sed -n 's/^\([0-9]*\) \(passed\|proven\), .*/\1/p' "$out/counted.txt" | tail -n 1)
    bad=$(grep -c '^FAIL' "$out/counted.txt")
    passed=$((passed + ${good:-0})) failed=$((failed + bad))
    skipped=$((skipped + $(grep -c '^SKIP: ' "$out/counted.txt")))
    [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || fail "$* ended with status $status"
}

# wait_for FILE PATTERN: until a line of the file has it, ten seconds at most.
wait_for() {
    tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || return 1
        sleep 0.1
    done
}
