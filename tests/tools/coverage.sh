#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# coverage.sh [WORD...] - which lines and branches of cci.h and cci_udp.h all tests together reach.
#
# Without a WORD: forgets what was counted before, builds every program of tests for gcov, runs it and reports. With words:
# builds and runs the programs whose name contains one of them and adds to what was counted; `report` alone reports that.
#
# A header is compiled into many programs. What gcov says of each of them is added up line by line and branch by branch.
# The lines that no test reaches go to build/coverage/uncovered.txt. The script fails when fewer than 95 % of the lines of
# cci.h are reached, or when a function has more unreached lines than tests/tools/uncovered.md admits, with a reason, for it.
# Assertions are compiled out: their failing branch is not meant to be reached.
set -u
cd "$(dirname "$0")/../.." || exit 1

least_percent=95
out=build/coverage
admitted=tests/tools/uncovered.md
for tool in gcc gcov awk; do
    command -v "$tool" >/dev/null 2>&1 || { echo "coverage: there is no $tool: apt-get install gcc" >&2 && exit 1; }
done

# wanted NAME: was it asked for?
words=$*
wanted() {
    [ -n "$words" ] || return 0
    for word in $words; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}

# program NAME SOURCE FLAGS...: builds a program in a directory of its own, where its counts will be.
program() {
    name=$1 source=$2
    shift 2
    mkdir -p "$out/$name" || exit 1
    gcc -std=gnu11 -O0 -g --coverage -fprofile-update=atomic -I. '-DCCI_ASSERT(x)=((void)0)' "$@" \
        -o "$out/$name/program" "$source" -lcmocka -pthread || failed="$failed $name"
}

# count NAME SOURCE FLAGS... -- ARGUMENTS...: builds the program if it is not there, and runs it.
count() {
    name=$1 source=$2 flags=
    shift 2
    wanted "$name" || return 0
    [ -f "$source" ] || return 0
    while [ "$1" != -- ]; do
        flags="$flags $1"
        shift
    done
    shift
    if [ ! -x "$out/$name/program" ] || [ -n "$(find "$source" ./*.h tests/*/*.h -newer "$out/$name/program")" ]; then
        rm -rf "${out:?}/$name"
        # shellcheck disable=SC2086 # a list of flags
        program "$name" "$source" $flags
    fi
    echo "coverage: $name $*"
    timeout -k 10 900 "$out/$name/program" "$@" >"$out/$name/output.txt" 2>&1 ||
        { failed="$failed $name" && tail -n 5 "$out/$name/output.txt"; }
}

failed=
[ -n "$words" ] || rm -rf "$out"
mkdir -p "$out" || exit 1
for unit in tests/*/test_*.c; do
    count "$(basename "$unit" .c)" "$unit" --
done
for network in sim sim-lossy sim-tiny sim-narrow sim-crc sim-sealed sim-sealed-noisy udp; do
    count "conformance-$network" tests/conformance/conformance.c -- "$network"
done
# Messages are enough: gigabytes through a checksum or a cipher that is counted line by line take minutes.
count conformance-udp-crc tests/conformance/conformance.c -- udp-crc 4.7.2.1
count conformance-udp-sealed tests/conformance/conformance.c -- udp-sealed 4.7.2.1
count conformance-portable tests/conformance/conformance.c -DCCI_UDP_PORTABLE -- udp
count field tests/conformance/field.c --
count field-portable tests/conformance/field.c -DCCI_UDP_PORTABLE --
count netns tests/net/netns.c --
count hostile tests/attack/hostile.c --
count wire_run tests/wire/wire_run.c -- sim
for target in live handshake rma config uri; do
    count "fuzz-$target" tests/fuzz/fuzz.c "-DFUZZ_TARGET=$target" -- "tests/fuzz/corpus/$target"
done
# A few seeds of the soak test, each in the process that counts: it forks one for each otherwise.
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    count soak tests/soak/soak.c -- --seed "$seed" --no-fork
done
[ -z "$failed" ] || echo "coverage: failed:$failed"

case $words in
'' | report) ;;
*) [ -z "$failed" ] && exit ;;
esac

# ---- adding up ------------------------------------------------------------------------------------------------------

# gcov's text of all programs: "count:line:source", "function NAME called ...", "branch N taken COUNT ...".
# A program that is older than the headers counted other lines.
for built in "$out"/*/program; do
    [ -z "$(find ./*.h -newer "$built")" ] && gcov -b -c -t "${built%program}"*.gcda 2>/dev/null
done >"$out/gcov.txt"
awk -v out="$out" -v least="$least_percent" -v admitted="$admitted" -f tests/tools/coverage.awk "$out/gcov.txt"
status=$?
[ -z "$failed" ] || status=1
exit $status
