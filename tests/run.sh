#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# run.sh [-k WORD | -q] - runs all tests, or the steps whose name contains WORD, or those that are quick; its last line is the sum.
# CCI_TEST_MINUTES=90: no step begins later than that, each that is left counts as a failure. What is under way then has two more.
#
# A step is a function that calls pass, fail and skip, and prints what a reader wants to see when it fails: its output goes
# to build/tests/STEP.log. What can't run on this machine is skipped and says why; a file that is missing is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1

only='' quick=.
case ${1:-} in
'') ;;
-k) only=${2:-} ;;
# What one runs while working: each thing in one of its forms, three minutes.
-q) quick='^(contents|format|tree|headers-clang\+\+|two-files|purity|exports|blunders|readme|promises|hostile'
    quick="$quick|test_(base|core|evq|conn|rel|rma|dgram|ends|fork|sleep|seal|udp|sisci|sisci_memory)"
    quick="$quick|conformance-(sim|sim-lossy|udp|sisci)|ends-counted)\$" ;;
*) echo "usage: $0 [-k WORD | -q]" >&2 && exit 2 ;;
esac

out=build/tests
run_logs=$out run_claims=$out/claims run_programs=$out/programs
readonly only quick run_logs run_claims run_programs
rm -rf "$out"
mkdir -p "$run_claims" "$run_programs" || exit 1

warnings='-Wall -Wextra -Wconversion -Wshadow -Wundef -pedantic -Werror'
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
examples='hello readme pingpong rma chat requests publish epoll_loop transfer why cci_info cci_perf cci_cp sisci own_link dpu_channel'
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=0:second_deadlock_stack=1:die_after_fork=0}"

# The compiler that builds the tests; the compile steps go through all that are there.
has() {
    command -v "$1" >/dev/null 2>&1
}
cc=cc
has gcc && cc=gcc
has "$cc" || { echo "tests: there is no C compiler" >&2 && exit 1; }

# ---- counting -------------------------------------------------------------------------------------------------------

total_passed=0 total_failed=0 total_skipped=0

# ---- time -----------------------------------------------------------------------------------------------------------

minutes=${CCI_TEST_MINUTES:-90}
run_began=$(date +%s)
patience=900 # seconds that a program of tests may take: many times what it needs, for slow machines that have other work

# For steps to begin in.
seconds_left() {
    echo $((run_began + 60 * minutes - $(date +%s)))
}

# within SECONDS COMMAND...: ends it when that time is over, or the time of the whole run.
within() {
    within_s=$(($(seconds_left) + 120))
    [ "$within_s" -lt "$1" ] || within_s=$1
    [ "$within_s" -gt 0 ] || within_s=1
    shift
    timeout -k 10 "$within_s" "$@"
}

pass() {
    passed=$((passed + 1))
}
fail() {
    failed=$((failed + 1))
    echo "FAIL: $*"
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIP: $*"
}

# check TEXT COMMAND...: the command must succeed.
check() {
    check_text=$1
    shift
    if "$@"; then pass; else fail "$check_text"; fi
}

# What a step that has ended prints.
tell() {
    printf '%-5s %-26s %4d passed, %d failed, %d skipped  %3d s, %d computed\n' "$verdict" "$name" "$passed" "$failed" "$skipped" \
        $(($(date +%s) - began)) "$computed"
    grep -a '^SKIP: ' "$log" | sed 's/^/      /'
    [ "$failed" -gt 0 ] || return
    grep -a '^FAIL: ' "$log" | head -n 20 | cut -c 1-300 | sed 's/^/      /'
    grep -aE '^\[ *(ERROR|FAILED) *\]|^[^ ]*\.[ch]:[0-9]+: |ERROR: |SUMMARY: ' "$log" | head -n 20 | cut -c 1-300 | sed 's/^/      ! /'
    echo "      --- the end of $log:"
    tail -n 25 "$log" | cut -c 1-300 | sed 's/^/      | /'
}

# The steps that failed, once more, for who reads the end of a run alone.
tell_failures() {
    [ ! -s "$run_logs/failures" ] || echo '--- what failed:'
    [ ! -f "$run_logs/failures" ] || while read -r told; do cat "$told"; done <"$run_logs/failures"
}

# take NAME: no other lane has it.
take() {
    mkdir "$run_claims/$1" 2>/dev/null && return
    [ -d "$run_claims/$1" ] && return 1
    echo "FAIL: $1 can't be claimed"
    total_failed=$((total_failed + 1))
    return 1
}

# locked COMMAND...: one at a time in all lanes.
locked() {
    until take lock || [ "$(seconds_left)" -le 0 ]; do sleep 0.1; done
    "$@"
    locked_status=$?
    rmdir "$run_claims/lock"
    return "$locked_status"
}
make() {
    locked command make "$@"
}

# step NAME FUNCTION ARGUMENTS...
step() {
    name=$1
    shift
    case $name in *"$only"*) ;; *) return ;; esac
    printf '%s\n' "$name" | grep -qE "$quick" || return
    take "step-$name" || return
    if [ "$(seconds_left)" -le 0 ]; then
        printf '%-5s %-26s was not begun: the %d minutes of the run are over\n' FAIL "$name" "$minutes"
        total_failed=$((total_failed + 1))
        return
    fi
    log=$run_logs/$name.log
    passed=0 failed=0 skipped=0
    began=$(date +%s)
    count_time
    "$@" >"$log" 2>&1 </dev/null
    count_time
    [ $((passed + failed + skipped)) -gt 0 ] || fail 'nothing was tested' >>"$log"
    if [ "$failed" -gt 0 ]; then verdict=FAIL; elif [ "$passed" -gt 0 ]; then verdict=ok; else verdict=skip; fi
    tell >"$out/told"
    cat "$out/told" # at once: other lanes print too
    [ "$failed" -eq 0 ] || { mv "$out/told" "$log.told" && echo "$log.told" >>"$run_logs/failures"; }
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
}

# ---- all of it --------------------------------------------------------------------------------------------------------------

# Each folder brings its steps: a function that runs them, and what they need.
. tests/support/programs.sh
. tests/tools/steps.sh
. tests/unit/steps.sh
. tests/conformance/steps.sh
. tests/sisci/steps.sh
. tests/attack/steps.sh
. tests/soak/steps.sh
. tests/net/steps.sh
. tests/verbs/steps.sh
. tests/wire/steps.sh
. tests/fuzz/steps.sh
. tests/prove/steps.sh

# lane DIRECTORY GROUP...: goes through the steps of these groups and leaves their sum in DIRECTORY/sum.
lane() {
    out=$1
    shift
    for group in "$@"; do "${group}_steps"; done
    [ "$(seconds_left)" -gt 0 ] || guest_abandon
    echo "$total_passed $total_failed $total_skipped" >"$out/sum"
}

# With two processors there are three lanes, one with the groups from the front, one from the back, one from the middle, since
# many steps wait more than they compute: each takes the next step that is not taken.
run_lanes=$out
if [ -z "$only" ] && [ "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)" -gt 1 ]; then
    run_lanes="$out $out/second $out/third"
    mkdir "$out/second" "$out/third"
    lane "$out/second" prove tools_late fuzz wire verbs net soak attack sisci conformance unit tools &
    lane "$out/third" verbs conformance net sisci soak attack unit wire fuzz tools tools_late prove &
fi
lane "$out" tools unit conformance sisci attack soak net verbs wire fuzz tools_late prove
wait

total_passed=0 total_failed=0 total_skipped=0
for out in $run_lanes; do
    read -r passed failed skipped <"$out/sum" || { passed=0 failed=1 skipped=0 && echo "FAIL: $out/sum is missing"; }
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
done
tell_failures
echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
[ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
