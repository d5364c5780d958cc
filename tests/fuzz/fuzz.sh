#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# fuzz.sh libfuzzer|afl|merge SECONDS TARGET... - fuzzes each target for so long, beginning with tests/fuzz/corpus/TARGET.
#
# What is found lies in build/fuzz/TARGET-found (libFuzzer) or build/fuzz/TARGET-afl (AFL++). To see one again:
#     cc -g -fsanitize=address,undefined -I. -o build/fuzz/replay tests/fuzz/fuzz.c -pthread && build/fuzz/replay TARGET FILE
# What was learned stays in build/fuzz/TARGET-corpus. `merge` takes into tests/fuzz/corpus/TARGET what reaches something new: at
# most KEEP files (40). Inputs called regression-* stay there.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ $# -ge 3 ] || { echo "usage: $0 libfuzzer|afl|merge SECONDS TARGET..." >&2 && exit 2; }
engine=$1 seconds=$2
shift 2
out=build/fuzz
mkdir -p "$out"
clang=${CLANG:-clang}
failed=

# The longest input of a target; see tests/fuzz/fuzz.h.
longest() {
    case $1 in
    config) echo 4000 ;;
    uri) echo 300 ;;
    card) echo 700 ;;
    *) echo 4104 ;;
    esac
}

need() {
    command -v "$1" >/dev/null 2>&1 || { echo "fuzz: there is no $1 ($2): sh tests/support/deps.sh fuzz" >&2 && exit 1; }
}

build_libfuzzer() {
    "$clang" -std=gnu11 -g -O1 -I. -DFUZZ_LIBFUZZER "-DFUZZ_TARGET=$1" -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=all -o "$out/$1" tests/fuzz/fuzz.c -pthread && return 0
    echo "fuzz: if libFuzzer's library is missing (libclang-rt-dev): sh tests/support/deps.sh fuzz" >&2
    exit 1
}

run_libfuzzer() {
    build_libfuzzer "$1"
    mkdir -p "$out/$1-corpus" "$out/$1-found"
    "$out/$1" -max_total_time="$seconds" -timeout=10 -max_len="$(longest "$1")" -len_control=0 -print_final_stats=1 \
        -artifact_prefix="$out/$1-found/" "$out/$1-corpus" "tests/fuzz/corpus/$1" >"$out/$1.log" 2>&1 ||
        { failed="$failed $1" && grep -aE 'fuzz: |ERROR|SUMMARY|Test unit' "$out/$1.log"; }
    grep -aE 'stat::number_of_executed|DONE' "$out/$1.log" | sed "s/^/$1: /"
}

# The same program as AFL++ wants it. Sanitizers cost it memory that it has to allow.
run_afl() {
    AFL_QUIET=1 AFL_USE_ASAN=1 AFL_USE_UBSAN=1 afl-clang-fast -std=gnu11 -g -O1 -I. "-DFUZZ_TARGET=$1" -o "$out/$1-afl.bin" \
        tests/fuzz/fuzz.c -pthread || exit 1
    AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 AFL_AUTORESUME=1 \
        afl-fuzz -V "$seconds" -m none -t 5000 -G "$(longest "$1")" -i "tests/fuzz/corpus/$1" -o "$out/$1-afl" -- \
        "$out/$1-afl.bin" >"$out/$1-afl.log" 2>&1 || { failed="$failed $1" && tail -n 5 "$out/$1-afl.log"; }
    stats=$out/$1-afl/default/fuzzer_stats
    [ -f "$stats" ] || return
    grep -E '^(execs_done|saved_crashes|saved_hangs|edges_found)' "$stats" | sed "s/^/$1: /"
    grep -qE '^saved_crashes *: 0$' "$stats" || failed="$failed $1"
}

run_merge() {
    build_libfuzzer "$1"
    rm -rf "$out/$1-merged"
    mkdir -p "$out/$1-merged" "tests/fuzz/corpus/$1" "$out/$1-corpus"
    # Edges count, not how often each is passed. The longest reach most of what shorter ones do.
    if ! "$out/$1" -merge=1 -use_value_profile=0 -use_counters=0 -max_len="$(longest "$1")" "$out/$1-merged" \
        "$out/$1-corpus" "tests/fuzz/corpus/$1" >"$out/$1.log" 2>&1; then
        failed="$failed $1"
        return
    fi
    find "tests/fuzz/corpus/$1" -type f ! -name 'regression-*' -exec rm -f {} +
    find "$out/$1-merged" -type f -printf '%s %p\n' | sort -rn | head -n "${KEEP:-40}" | while read -r _ file; do
        cp "$file" "tests/fuzz/corpus/$1/$(basename "$file" | cut -c 1-12)"
    done
    echo "$1: $(find "$out/$1-merged" -type f | wc -l) inputs reach all, kept are:"
    find "tests/fuzz/corpus/$1" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print NR " of " bytes " bytes" }'
}

case $engine in
libfuzzer | merge) need "$clang" clang ;;
afl) need afl-clang-fast afl++ ;;
*) echo "fuzz: $engine is not a way to fuzz" >&2 && exit 2 ;;
esac
for target in "$@"; do
    "run_$engine" "$target"
done
[ -z "$failed" ] || { echo "fuzz: failed:$failed" && exit 1; }
