#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# analyze.sh [--quick] [TOOL...] - static analysis by gcc's analyzer, cppcheck and clang-tidy, of the headers with all their
# code, the examples and the tests; shellcheck and pyflakes look at the scripts. A finding is a failure. What is left out
# stands here and in .clang-tidy, each with its reason. A tool that is not there is skipped. --quick leaves out what takes
# minutes, the checks that follow paths through the library; `make test` runs it so, `make analyze` runs everything.
set -u
cd "$(dirname "$0")/../.." || exit 1
quick=
[ "${1:-}" = --quick ] && quick=yes && shift
out=build/analyze
rm -rf "$out"
mkdir -p "$out" || exit 1
printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\n#include "cci.h"\n' >"$out/all.c"
printf '#define CCI_VERBS_IMPLEMENTATION\n#include "cci_verbs.h"\n' >"$out/verbs.c"
# The library's code is looked at once, in all.c; the examples see its declarations, and _GNU_SOURCE which comes with it.
# What stands between the DOCA Comm Channel and the library is looked at with its example.
for file in examples/*.c; do
    sed 's/^#define CCI_IMPLEMENTATION.*//; s/^#define DOCA_COMM_CHANNEL_IMPLEMENTATION.*/&\n#include "cci.h"/' "$file" \
        >"$out/$(basename "$file")"
done
cp examples/doca_comm_channel.h "$out"

passed=0 failed=0 skipped=0
has() {
    command -v "$1" >/dev/null && return 0
    skipped=$((skipped + 1))
    echo "SKIP: there is no $1"
    return 1
}
has_sodium() {
    echo '#include <sodium.h>' | cc -fsyntax-only -x c - 2>/dev/null
}
has_uv() {
    echo '#include <uv.h>' | cc -fsyntax-only -x c - 2>/dev/null
}

# look TEXT COMMAND...: it must succeed, and print nothing that looks like a finding.
look() {
    text=$1
    shift
    if "$@" >"$out/log" 2>&1 && ! grep -qE ': (fatal error|error|warning|style|performance|portability):' "$out/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $text"
        head -n 60 "$out/log"
    fi
}

# sources: the library's code and the examples that can be compiled here.
sources() {
    echo "$out/all.c"
    echo "$out/verbs.c"
    for file in examples/*.c; do
        case $file in
        */secure.c) has_sodium || continue ;;
        */uv_loop.c) has_uv || continue ;;
        esac
        echo "$out/$(basename "$file")"
    done
}

# Left out: SC2016, since what stands in single quotes is for awk and other shells; SC2015, since "a && b || die" means to die
# of either. Parts of run.sh are looked at with it.
use_shellcheck() {
    has shellcheck || return
    for file in tests/*.sh tests/*/*.sh tests/verbs/vm/*.sh .github/packaging/*.sh .ci/run; do
        case $(head -n 1 "$file") in '#!'*) look "shellcheck $file" shellcheck -x -a -e SC2015,SC2016 "$file" ;; esac
    done
}

use_pyflakes() {
    has pyflakes3 || return
    for file in examples/*.py tests/*/*.py .github/packaging/conan/*.py .github/packaging/conan/test_package/*.py; do
        look "pyflakes3 $file" pyflakes3 "$file"
    done
}

# gcc's analyzer does C alone. Without optimisation: that folds conditions together before the analyzer sees them, and then
# it takes paths that aren't there (a NULL that was compared, a pointer freed in another branch). Left out:
# malloc-leak   it loses blocks that are kept by a pointer behind their list's node; the tests run with a leak checker
# use-of-uninitialized-value   it does not see what fread() has filled; clang's path checks look for the same
# The tests are not looked at: cmocka's assertions end a test without gcc knowing it, and what follows looks reachable.
use_gcc() {
    has gcc || return
    for file in $(sources); do
        case $quick$file in yes*/all.c | yes*/verbs.c) continue ;; esac
        look "gcc -fanalyzer $file" gcc -std=gnu11 -D_GNU_SOURCE -fanalyzer -Wno-analyzer-malloc-leak \
            -Wno-analyzer-use-of-uninitialized-value -O0 -I. -c -o "$out/analyzed.o" "$file"
    done
}

# Left out of cppcheck, which reads no header of the system:
# duplicateConditionalAssign   "if (a != b) a = b" keeps memory unwritten that other threads may be reading
# knownConditionTrueFalse      it does not see what calls through tables and other threads change between two looks
# variableScope                C99 with declarations at the top of a block, as all of the code has it
# constParameter..., constVariable...  functions of a table have the table's types
# unreadVariable, unusedStructMember, unusedFunction: gcc and clang say it where it is so
# normalCheckLevelMaxBranches, toomanyconfigs, missingInclude...: remarks on the run, not on the code
# ctuuninitvar                 it takes a structure that a function is about to fill in for one that it reads
# returnDanglingLifetime       it takes what a call through a pointer returns for a pointer to what was handed in (in cci.h);
#                              gcc and clang have checks of their own for that
use_cppcheck() {
    has cppcheck || return
    set -- -q --std=c99 --enable=warning,style,performance,portability -I. --error-exitcode=1 \
        -DCCI_IMPLEMENTATION= -D__linux__=1 -D__unix__=1 -D__GNUC__=12 -DSIOCGIFMTU=1 -U__cplusplus -UCCI_STATIC \
        --template='{file}:{line}: {severity}: {message} [{id}]' --suppress=returnDanglingLifetime:cci.h
    for id in duplicateConditionalAssign knownConditionTrueFalse variableScope constParameter constParameterCallback \
        constParameterPointer constVariablePointer constVariable unreadVariable unusedStructMember unusedFunction \
        normalCheckLevelMaxBranches toomanyconfigs missingInclude missingIncludeSystem ctuuninitvar; do
        set -- "$@" "--suppress=$id"
    done
    look "cppcheck $out/all.c" cppcheck "$@" "$out/all.c"
    for file in examples/*.c; do # without the library's code
        look "cppcheck $file" cppcheck "$@" -UCCI_IMPLEMENTATION "$out/$(basename "$file")"
    done
}

# Clang's checks that follow paths look at functions of headers only when told to. Tests are looked at without them (see
# gcc), and without:
# cert-env33-c, cert-msc*       they call ip and tc through the shell, and want the same random numbers in each run
# What includes cci_sisci.h or cci_verbs.h is looked at without:
# bugprone-macro-parentheses    their lists of functions have types and parameters as arguments, which can't have any
use_clang_tidy() {
    has clang-tidy || return
    paths='-D_GNU_SOURCE -Xclang -analyzer-opt-analyze-headers' without=
    [ -z "$quick" ] || without='--checks=-clang-analyzer-*'
    # shellcheck disable=SC2086 # lists of words
    for file in $(sources); do tidy "$file" $without -- $paths; done
    for file in tests/*/*.c; do
        case $file in tests/prove/*) continue ;; esac # written for another tool
        [ -z "$quick" ] || continue
        tidy "$file" '--checks=-clang-analyzer-*,-cert-env33-c,-cert-msc*' --
    done
}
tidy() {
    file=$1
    shift
    config=.clang-tidy
    if grep -q '\(sisci\|verbs\)\.h' "$file"; then
        config=$out/sisci.clang-tidy
        sed 's/^  -performance-no-int-to-ptr$/&,\n  -bugprone-macro-parentheses/' .clang-tidy >"$config"
    fi
    look "clang-tidy $file" clang-tidy --quiet --config-file="$config" "$file" "$@" -std=gnu11 -I.
}

[ $# -gt 0 ] || set -- shellcheck pyflakes cppcheck gcc clang-tidy
for tool; do
    began=$(date +%s)
    case $tool in
    shellcheck) use_shellcheck ;;
    pyflakes) use_pyflakes ;;
    gcc) use_gcc ;;
    cppcheck) use_cppcheck ;;
    clang-tidy) use_clang_tidy ;;
    *) echo "usage: $0 [--quick] [shellcheck | pyflakes | cppcheck | gcc | clang-tidy]..." >&2 && exit 2 ;;
    esac
    echo "$tool: $(($(date +%s) - began)) s"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
