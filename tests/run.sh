#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# run.sh [-k WORD] - runs all tests, or the steps whose name contains WORD; its last line is the sum.
# CCI_TEST_MINUTES=75: no step begins later than that, each that is left counts as a failure. What is under way then has two more.
#
# A step is a function that calls pass, fail and skip, and prints what a reader wants to see when it fails: its output goes
# to build/tests/STEP.log. What can't run on this machine is skipped and says why; a file that is missing is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1

only=
case ${1:-} in
'') ;;
-k) only=${2:-} ;;
*) echo "usage: $0 [-k WORD]" >&2 && exit 2 ;;
esac

out=build/tests
rm -rf "$out"
mkdir -p "$out" || exit 1

warnings='-Wall -Wextra -Wconversion -Wshadow -Wundef -pedantic -Werror'
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
examples='hello readme pingpong rma cci_info cci_perf cci_cp sisci'
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

minutes=${CCI_TEST_MINUTES:-75}
run_began=$(date +%s)
patience=300 # seconds that a program of tests may take: several times what the longest does on a slow machine

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

# step NAME FUNCTION ARGUMENTS...
step() {
    name=$1
    shift
    case $name in *"$only"*) ;; *) return ;; esac
    if [ "$(seconds_left)" -le 0 ]; then
        printf '%-5s %-26s was not begun: the %d minutes of the run are over\n' FAIL "$name" "$minutes"
        total_failed=$((total_failed + 1))
        return
    fi
    log=$out/$name.log
    passed=0 failed=0 skipped=0
    began=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    [ $((passed + failed + skipped)) -gt 0 ] || fail 'nothing was tested' >>"$log"
    if [ "$failed" -gt 0 ]; then verdict=FAIL; elif [ "$passed" -gt 0 ]; then verdict=ok; else verdict=skip; fi
    printf '%-5s %-26s %4d passed, %d failed, %d skipped  %3d s\n' "$verdict" "$name" "$passed" "$failed" "$skipped" \
        $(($(date +%s) - began))
    grep -a '^SKIP: ' "$log" | sed 's/^/      /'
    if [ "$failed" -gt 0 ]; then
        grep -a '^FAIL: ' "$log" | head -n 20 | cut -c 1-300 | sed 's/^/      /'
        echo "      --- the end of $log:"
        tail -n 25 "$log" | cut -c 1-300 | sed 's/^/      | /'
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
}

# ---- headers ----------------------------------------------------------------------------------------------------------

# What a program writes; the macros come from the command line, empty as `#define X` makes them.
write_users() {
    mkdir -p "$out/use"
    core='#include "cci.h"'
    udp='#include "cci_udp.h"'
    systems=$(printf '#include <%s>\n' stdio.h stdlib.h string.h time.h unistd.h sys/types.h sys/socket.h netinet/in.h)
    printf '%s\n' "$core" >"$out/use/core.c"
    printf '#include "cci_sisci.h"\n%s\n' "$core" >"$out/use/sisci.c"
    printf '#define CCI_SISCI_API\n#include "cci_sisci.h"\n' >"$out/use/sisci-alone.c"
    printf '%s\n%s\n' "$udp" "$core" >"$out/use/udp.c"
    verbs='#include "cci_verbs.h"'
    printf '%s\n%s\n' "$verbs" "$core" >"$out/use/verbs.c"
    printf '%s\n%s\n%s\n' "$verbs" "$udp" "$core" >"$out/use/verbs-udp.c"
    printf '%s\n#include "cci_sisci.h"\n%s\n%s\n' "$verbs" "$udp" "$core" >"$out/use/everything.c"
    printf '%s\n#include <type_traits>\n' "$core" >"$out/use/const.c"
    for each in device endpoint connection rma_handle opt_handle; do
        printf 'static_assert(std::is_const<cci_%s_t>::value, "");\n' "$each" >>"$out/use/const.c"
    done
    printf '%s\n%s\n%s\n%s\n' "$udp" "$core" "$udp" "$core" >"$out/use/twice.c"
    printf '%s\n%s\n%s\n' "$systems" "$udp" "$core" >"$out/use/after-system.c"
    printf '%s\n%s\n%s\n' "$systems" "$verbs" "$core" >"$out/use/verbs-after-system.c"
    printf '#define CCI_IMPLEMENTATION\n%s\n%s\n' "$core" "$udp" >"$out/use/wrong-order.c"
    printf '#include "cci.h"\n#ifdef __cplusplus\nextern "C"\n#endif\nconst char *other(void);\n%s\n' \
        'const char *other(void) { return cci_strerror(NULL, CCI_SUCCESS); }' >"$out/use/other.c"
    printf '#define CCI_IMPLEMENTATION\n%s\n%s\n%s\n%s\n' "$udp" "$core" \
        '#ifdef __cplusplus
extern "C"
#endif
const char *other(void);' \
        'int main(void) { return other() == NULL || cci_strerror(NULL, CCI_EINVAL) == NULL; }' >"$out/use/main.c"
    sed '1i\
#define CCI_IMPLEMENTATION\
#include "cci_udp.h"' "$out/use/other.c" >"$out/use/other-static.c"
}

# accept FILE FLAGS...: the headers, used so, compile in this compiler without a warning.
accept() {
    user=$1
    shift
    # shellcheck disable=SC2086
    check "$compile $user.c $*" $compile $warnings -I. "$@" "$out/use/$user.c"
}

# gcc sees unused functions only when it goes on to generate code; clang always does.
headers() {
    compiler=$1 language=$2 strict=$3 gnu=$4 modern=$5
    has "$compiler" || { skip "there is no $compiler" && return; }
    case $compiler in g*) stop='-O0 -S -o /dev/null' ;; *) stop=-fsyntax-only ;; esac
    compile="$compiler -x $language -std=$strict $stop"
    all=-DCCI_IMPLEMENTATION=
    accept core
    accept udp
    [ "$language" = c ] || accept const # of handles: C++ has it, C has not
    accept core "$all"
    accept udp "$all"
    accept twice "$all"
    accept udp "$all" -DCCI_NO_THREADS=
    accept udp "$all" -DCCI_NO_STDIO=
    accept udp "$all" -DCCI_NO_DLOPEN=
    accept udp "$all" -DCCI_NO_THREADS= -DCCI_NO_STDIO= -DCCI_NO_DLOPEN=
    accept udp "$all" -DCCI_STATIC=
    accept udp "$all" -DCCI_UDP_PORTABLE=
    accept udp "$all" -DCCI_UDP_PORTABLE= -DCCI_NO_THREADS=
    accept udp "$all" -DNDEBUG
    accept sisci
    accept sisci-alone
    accept sisci "$all"
    accept sisci "$all" -DCCI_STATIC=
    accept sisci "$all" -DCCI_NO_THREADS=
    alone=-DCCI_SISCI_IMPLEMENTATION=
    accept sisci-alone "$alone"
    accept sisci-alone "$alone" -DCCI_STATIC=
    accept sisci-alone "$alone" -DCCI_NO_THREADS=
    accept sisci-alone "$alone" -DCCI_NO_STDIO=
    accept sisci-alone "$alone" -DCCI_NO_DLOPEN=
    accept sisci-alone "$alone" -DCCI_SISCI_NO_SHARED_MEMORY=
    for each in verbs verbs-udp; do
        accept $each
        accept $each "$all"
        accept $each "$all" -DCCI_STATIC=
    done
    for each in CCI_NO_THREADS CCI_NO_STDIO CCI_NO_DLOPEN CCI_VERBS_LINK CCI_NO_VERBS_H NDEBUG; do
        accept verbs "$all" "-D$each="
    done
    for layer in BASE EVQ CONN REL RMA; do accept core "-DCCI_${layer}_IMPLEMENTATION="; done
    compile="$compiler -x $language -std=$strict -c -o /dev/null"
    accept udp "$all" -O2
    accept udp "$all" -O2 -DNDEBUG -DCCI_STATIC=
    accept sisci "$all" -O2
    accept verbs-udp "$all" -O2
    accept sisci-alone "$alone" -O2
    compile="$compiler -x $language -std=$gnu $stop"
    accept udp "$all"
    accept after-system "$all"
    accept after-system "$all" -DCCI_UDP_PORTABLE=
    accept verbs-after-system "$all"
    compile="$compiler -x $language -std=$modern $stop"
    accept udp "$all"
}

# A wrong order of the headers gives one error, and that one says what to do.
wrong_order() {
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        $compiler -I. -fsyntax-only "$out/use/wrong-order.c" >"$out/wrong-order.txt" 2>&1
        cat "$out/wrong-order.txt"
        count=$(grep -c 'error:' "$out/wrong-order.txt")
        check "$compiler prints $count errors, not one" [ "$count" -eq 1 ]
        check "$compiler does not name the order" grep -q 'error: .*before cci\.h' "$out/wrong-order.txt"
    done
}

# What a program sees of the headers declares no sockets: their names are free.
no_sockets() {
    for user in core udp sisci; do
        "$cc" -M -I. "$out/use/$user.c" >"$out/included.txt" || { fail "$user.c does not compile" && continue; }
        check "$user.c includes sockets" sh -c '! grep -q socket "$1"' - "$out/included.txt"
    done
    printf '#include "cci.h"\nvoid use(cci_connection_t *c);\nvoid use(cci_connection_t *c) { c->context = c; }\n' >"$out/use/plain.c"
    check 'handles are const in C' "$cc" -I. -c -o /dev/null "$out/use/plain.c"
}

# link_two TEXT COMPILE-MAIN COMPILE-OTHER LINK: makes one program of two files and runs it.
link_two() {
    text=$1 main=$2 other=$3
    # shellcheck disable=SC2086
    if $main -I. -c -o "$out/main.o" && $other -I. -c -o "$out/other.o" && $4 -o "$out/two" "$out/main.o" \
        "$out/other.o" -pthread && "$out/two"; then
        pass
    else
        fail "$text"
    fi
}

two_files() {
    u=$out/use
    link_two 'two C files' "$cc $u/main.c" "$cc $u/other.c" "$cc"
    link_two 'two C files, each with a private copy' "$cc -DCCI_STATIC $u/main.c" "$cc -DCCI_STATIC $u/other-static.c" "$cc"
    has g++ || { skip 'there is no g++' && return; }
    link_two 'implementation in C, use in C++' "$cc $u/main.c" "g++ -x c++ $u/other.c" g++
    link_two 'implementation in C++, use in C' "g++ -x c++ $u/main.c" "$cc $u/other.c" g++
}

# ---- symbols ------------------------------------------------------------------------------------------------------------

# What an object may import although its source calls nothing: memory functions and the compiler's own support.
support='mem(cpy|move|set|cmp)|__stack_chk_(fail|guard)|_GLOBAL_OFFSET_TABLE_|__[a-z]+[dst]i[234]|__aeabi_[a-z0-9]+'

# imports TEXT ALLOWED FLAGS...: of one layer compiled alone.
imports() {
    text=$1 allowed=$2
    shift 2
    if ! "$@" -x c -I. -O2 -c -o "$out/layer.o" "$out/use/core.c"; then
        fail "$text does not compile"
        return
    fi
    foreign=$(nm -u "$out/layer.o" | sed 's/.* //' | grep -vE "^($allowed)$" | sort | tr '\n' ' ')
    check "$text imports $foreign" [ -z "$foreign" ]
}

purity() {
    has nm || { skip 'there is no nm' && return; }
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        for layer in EVQ CONN REL RMA; do
            imports "$layer ($compiler)" "$support" "$compiler" "-DCCI_${layer}_IMPLEMENTATION=" -DNDEBUG
            imports "$layer ($compiler, with assertions)" "$support|__assert_fail|__assert" \
                "$compiler" "-DCCI_${layer}_IMPLEMENTATION="
        done
    done
}

# What goes wrong in a first program that includes the headers in the wrong way is said by the compiler or the linker.
# blunder TEXT FILES...: they do not build, and TEXT is in what is printed.
blunder() {
    blunder_text=$1
    shift
    if "$cc" -I. -o "$out/blunder" "$@" -pthread >"$out/blunder.txt" 2>&1; then fail "built: $*"
    else check "not said of $*: $blunder_text" grep -qF "$blunder_text" "$out/blunder.txt"
    fi
}
blunders() {
    printf '#include "cci_udp.h"\n#define CCI_IMPLEMENTATION\n#include "cci.h"\nint main(void) { return 0; }\n' >"$out/between.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\nint main(void) { return 0; }\n' >"$out/coreless.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci.h"\n#include "cci_udp.h"\nint main(void) { return 0; }\n' >"$out/late.c"
    printf '#define CCI_IMPLEMENTATION\n#include "cci_udp.h"\n#include "cci.h"\n' >"$out/one.c"
    { cat "$out/one.c" && echo 'int main(void) { return 0; }'; } >"$out/two.c"
    blunder 'define CCI_IMPLEMENTATION before the first header of CCI' "$out/between.c"
    blunder 'cci_h_is_missing_after_the_header_of_a_transport' "$out/coreless.c"
    blunder 'include cci_udp.h before cci.h' "$out/late.c"
    blunder 'cci_only_one_file_may_define_CCI_IMPLEMENTATION' "$out/one.c" "$out/two.c"
}

exports() {
    has nm || { skip 'there is no nm' && return; }
    if "$cc" -I. -DCCI_IMPLEMENTATION= -c -o "$out/all.o" "$out/use/everything.c"; then
        nm -g --defined-only "$out/all.o" | sed 's/.* //' >"$out/exported.txt"
        check 'nothing is exported' grep -q '^cci_init$' "$out/exported.txt"
        foreign=$(grep -vE '^cci_[a-z]' "$out/exported.txt" | tr '\n' ' ')
        check "not public by name, but exported: $foreign" [ -z "$foreign" ]
        # A program's own global of such a name would take the place of the C library's function.
        taken=$(nm -u "$out/all.o" | sed 's/.* //' | grep -xE 'send|recv|accept|listen|shutdown' | tr '\n' ' ')
        check "called, though programs have such names: $taken" [ -z "$taken" ]
    else
        fail 'the implementation does not compile'
    fi
    if "$cc" -I. -DCCI_IMPLEMENTATION= -DCCI_STATIC= -c -o "$out/static.o" "$out/use/everything.c"; then
        check 'CCI_STATIC exports something' [ -z "$(nm -g --defined-only "$out/static.o")" ]
    else
        fail 'the implementation does not compile with CCI_STATIC'
    fi
}

# ---- the tree -------------------------------------------------------------------------------------------------------------

# The contents at the top of a header and its sections are the same tags in the same order.
contents() {
    for header in cci*.h; do
        sed -n 's/^ \*   *>>\([a-z-]*\).*/\1/p' "$header" >"$out/contents.txt"
        sed -n 's/^ \* >>\([a-z-]*\)$/\1/p' "$header" >"$out/sections.txt"
        check "$header has no contents" [ -s "$out/contents.txt" ]
        check "$header: contents (-) and sections (+) differ" diff -u "$out/contents.txt" "$out/sections.txt"
    done
}

# The headers look as .clang-format says, and no line has more than 120 columns. Other versions of the tool break lines elsewhere.
format() {
    for header in cci*.h; do
        columns=$(LC_ALL=C.UTF-8 wc -L <"$header")
        check "$header has a line of $columns columns" [ "$columns" -le 120 ]
    done
    has clang-format || { skip 'there is no clang-format' && return; }
    version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
    [ "$version" -eq 14 ] || { skip "clang-format is of version $version, not 14" && return; }
    for header in cci*.h; do check "$header is not formatted" clang-format --dry-run -Werror "$header"; done
}

# The files of the tree: what git knows or would add, or everything where there is no git.
list_files() {
    git ls-files --cached --others --exclude-standard 2>/dev/null | while read -r file; do
        [ -f "$file" ] && echo "$file"
    done | grep . || find . -path ./.git -prune -o -path ./build -prune -o -type f -print | sed 's|^\./||'
}

tree() {
    list_files >"$out/files.txt"
    for file in cci.h cci_udp.h cci_verbs.h cci_sisci.h Makefile README.md LICENSE .gitignore .ci/run tests/bench/bench.sh tests/conformance/conformance.c \
        tests/conformance/field.c; do
        check "$file is missing" [ -f "$file" ]
    done
    for file in $examples secure; do check "examples/$file.c is missing" [ -f "examples/$file.c" ]; done
    agreed='cci\.h|cci_udp\.h|cci_verbs\.h|cci_sisci\.h|Makefile|README\.md|LICENSE|\.[^/]*|(examples|tests|\.[^/]*)/.*'
    # An archive has build files at its top that a checkout has not: see .github/packaging/package.sh.
    [ -e .git ] || agreed="$agreed|CMakeLists\.txt|meson\.build"
    strange=$(grep -vE "^($agreed)$" "$out/files.txt" | tr '\n' ' ')
    check "not agreed at the top: $strange" [ -z "$strange" ]
    check '.ci/run is not executable' [ -x .ci/run ]
    grep -E '\.(c|h|cpp|cc|sh|py|lua)$|^Makefile$|^\.ci/run$' "$out/files.txt" >"$out/sources.txt"
    while read -r file; do
        check "$file has no SPDX line" sh -c 'head -n 5 "$1" | grep -q "SPDX-License-Identifier: MIT OR Unlicense"' - "$file"
    done <"$out/sources.txt"
    # Paths of one machine have no place here; a template for a temporary file is none.
    while read -r file; do
        grep -nHE '(^|[^A-Za-z0-9_.$}])/(work|root|home|tmp)(/|[^A-Za-z0-9_/-]|$)' "$file" |
            grep -vE 'mktemp|mkdtemp|mkstemp|TMPDIR|XXXXXX'
    done <"$out/files.txt" >"$out/paths.txt"
    cat "$out/paths.txt"
    check 'paths of one machine' [ ! -s "$out/paths.txt" ]
}

# ---- the README -------------------------------------------------------------------------------------------------------------

# The whole program of the README runs as server and client.
readme() {
    [ -f README.md ] || { fail 'README.md is missing' && return; }
    check 'README.md does not show: make demo' grep -q 'make demo' README.md
    check 'README.md does not show: make deps test' grep -q 'make deps test' README.md
    awk '/^```c$/ { inside = 1; text = ""; next }
         /^```/ { if (inside && text ~ /CCI_IMPLEMENTATION/ && text ~ /int main/) { printf "%s", text; exit } inside = 0 }
         inside { text = text $0 "\n" }' README.md >"$out/readme.c"
    check 'README.md shows no program' [ -s "$out/readme.c" ]
    lines=$(wc -l <"$out/readme.c")
    check "the program has $lines lines, more than 25" [ "$lines" -le 25 ]
    check 'the program is not examples/readme.c' diff -u examples/readme.c "$out/readme.c"
    # shellcheck disable=SC2086
    check 'the program does not compile' "$cc" -std=c99 -O2 $warnings -I. -o "$out/readme" "$out/readme.c" -pthread
    [ -x "$out/readme" ] || return
    timeout 60 "$out/readme" >"$out/readme.server" 2>&1 &
    server=$!
    wait_for "$out/readme.server" '://'
    check 'the client failed' timeout 30 "$out/readme" "$(head -n 1 "$out/readme.server")"
    check 'the server did not print the message' wait_for "$out/readme.server" '^hello, world$'
    kill "$server"
    cat "$out/readme.server"
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

# ---- programs with tests ----------------------------------------------------------------------------------------------------

# build NAME SOURCE FLAGS...: builds the program if this run has not built it yet.
build() {
    binary=$out/$1 source=$2
    shift 2
    [ ! -x "$binary" ] || return 0
    [ -f "$source" ] || { fail "$source is missing" && return 1; }
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -g -I. "$@" -o "$binary" "$source" -lcmocka ${libraries:-} -pthread && return 0
    fail "$source does not compile: $*"
    return 1
}

# run NAME ARGUMENTS...: runs a program of tests and adds what it counted. One that ends badly without having counted a
# failure (it crashed, hung, leaked) is one failure.
run() {
    binary=$out/$1
    shift
    # shellcheck disable=SC2086
    within "$patience" env CMOCKA_MESSAGE_OUTPUT=STDOUT ${runner:-} "$binary" "$@" >"$binary.out" 2>"$binary.err"
    status=$?
    tally "$binary $*"
}

# tally WHAT: adds what the program of tests counted that has left $binary.out, $binary.err and its exit status in $status.
tally() {
    cat "$binary.out" "$binary.err"
    good=$(grep -ac '^\[       OK \]' "$binary.out")
    bad=$(summary FAILED)
    left_out=$(summary SKIPPED)
    sed -n 's/^\[  SKIPPED \] /SKIP: /p; s/^\[  FAILED  \] /FAIL: /p' "$binary.out"
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left_out))
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then fail "$1 hung"
    elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then fail "$1 ended with status $status"
    elif [ $((good + bad + left_out)) -eq 0 ]; then fail "$1 tested nothing"
    fi
}

# cmocka sums up each group: "[  FAILED  ] 2 test(s), listed below:".
summary() {
    cat "$binary.out" "$binary.err" |
        sed -n "s/^\[ *$1 *\] \([^0-9].*: \)\{0,1\}\([0-9][0-9]*\) test(s).*/\2/p" | awk '{ sum += $1 } END { print sum + 0 }'
}

# works FLAGS...: a program built so also runs here.
works() {
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    "$cc" "$@" -o "$out/probe" "$out/probe.c" 2>/dev/null && "$out/probe" 2>/dev/null
}

# The four ways in which a program of tests is built and run: NAME SOURCE ARGUMENTS...
plain() {
    program=$1 source=$2
    shift 2
    build "$program" "$source" -O2 && run "$program" "$@"
}
sanitized() {
    program=$1-sanitized source=$2
    shift 2
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build "$program" "$source" -O1 $sanitizers && run "$program" "$@"
}
portable() {
    program=$1-portable source=$2
    shift 2
    build "$program" "$source" -O2 -DCCI_UDP_PORTABLE && run "$program" "$@"
}
# With the cipher that a program would take, not the toy that tests make do with.
has_sodium() {
    echo '#include <sodium.h>' >"$out/sodium.c"
    "$cc" -fsyntax-only "$out/sodium.c" 2>/dev/null
}
ciphered() {
    program=$1-ciphered source=$2
    shift 2
    has_sodium || { skip 'there is no libsodium' && return; }
    libraries=-lsodium
    build "$program" "$source" -O2 -DCCI_TEST_SODIUM && run "$program" "$@"
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
    build "$program" "$source" -O2 -DCCI_NO_THREADS && run "$program" "$@"
}

# stub NAME PREFIX SIZE API FLAGS...: a library that stands for an adapter's.
stub() {
    library=$out/stubs/$1
    stub_flags="-fPIC -I. -DSTUB_PREFIX=$2"
    size=-DSTUB_SIZE=$3
    api=-DSTUB_API=\"$4\"
    shift 4
    # shellcheck disable=SC2086
    "$cc" $stub_flags "$size" "$api" "$@" -DSTUB_PART=1 -c -o "$library.1.o" tests/sisci/sisci_stub.c &&
        "$cc" $stub_flags "$size" "$api" "$@" -DSTUB_PART=2 -c -o "$library.2.o" tests/sisci/sisci_stub.c &&
        "$cc" -shared -o "$library.so" "$library.1.o" "$library.2.o" && return
    fail "$library.so does not compile"
}
few() {
    # shellcheck disable=SC2086
    "$cc" -shared -fPIC -I. -DSTUB_PREFIX= -DSTUB_SIZE="$2" -DSTUB_API="\"$3\"" -DSTUB_PART=3 -o "$out/stubs/$1.so" \
        tests/sisci/sisci_stub.c || fail "$1.so does not compile"
}
vendor() {
    mkdir -p "$out/stubs"
    public=_SISCI_PUBLIC_FUNC_
    stub mt1 ${public}MT_ 'unsigned int' 'SISCI API version 1.10.5'
    stub st1 ${public}ST_ 'unsigned int' '1.10'
    stub plain1 '' 'unsigned int' '1.10' -DSTUB_WITHOUT_CONSTANTS
    stub mt2 ${public}MT_ size_t '2.1.0'
    stub mt3 ${public}MT_ size_t '3.0'
    few few1 'unsigned int' '1.9'
    few few2 size_t '2.0'
    few silent size_t 'none'
    echo 'int nothing;' >"$out/empty.c"
    "$cc" -shared -fPIC -o "$out/stubs/empty.so" "$out/empty.c" || fail 'empty.so does not compile'
    build vendor tests/sisci/vendor.c -O2 -ldl && run vendor "$out/stubs"
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build vendor-sanitized tests/sisci/vendor.c -O1 $sanitizers -ldl && run vendor-sanitized "$out/stubs"
}

# adapter NAME SIZE API FLAGS...: a library of an adapter that works, over shared memory.
adapter() {
    library=$out/$1.so size=$2 api=$3
    shift 3
    [ ! -e "$library" ] || return 0
    "$cc" -std=gnu11 -g -shared -fPIC -I. -DSTUB_PREFIX=_SISCI_PUBLIC_FUNC_MT_ -DSTUB_SIZE="$size" -DSTUB_API="\"$api\"" \
        "$@" -o "$library" tests/sisci/sisci_adapter.c -pthread || fail "$library does not compile"
}
# adapted HOW FLAGS PROGRAM SOURCE ARGUMENTS...: runs a program (built plain, sanitized, raced) over such a library.
adapted() {
    how=$1 flags=$2 program=$3 source=$4
    shift 4
    libraries=-ldl
    # shellcheck disable=SC2086
    adapter "adapter2-$how" size_t 2.1 -O1 $flags
    [ "$program" = conformance ] || set -- "$out/adapter2-$how.so"
    SISCI_LIBRARY=$out/adapter2-$how.so SISCI_ADAPTER=1 "$how" "$program" "$source" "$@"
    libraries=
}
# The other libraries that there may be: of API 1.x, without SCIFlush; with functions and values as in the manual; and one
# through which stores arrive late and in any order.
adapted_others() {
    libraries=-ldl
    adapter adapter1 'unsigned int' 1.10 -O1 -DSTUB_WITHOUT_FLUSH
    adapter adapter-plain size_t 1.10 -O1 -DSTUB_PLAIN
    adapter adapter-posted size_t 2.0 -O1 -DSTUB_POSTED
    plain adapter tests/sisci/adapter.c "$out/adapter1.so"
    plain adapter tests/sisci/adapter.c "$out/adapter-posted.so"
    libraries=
    for part in message fence; do # all of it takes minutes
        SISCI_LIBRARY=$out/adapter-posted.so SISCI_ADAPTER=1 plain conformance tests/conformance/conformance.c sisci-vendor "$part"
    done
    SISCI_LIBRARY=$out/adapter1.so SISCI_ADAPTER=1 plain conformance tests/conformance/conformance.c sisci-vendor
    SISCI_LIBRARY=$out/adapter-plain.so SISCI_ADAPTER=0 plain conformance tests/conformance/conformance.c sisci-vendor
}

# Bounds of how well bad networks are used, in virtual time.
netsim() {
    libraries=-lm
    plain netsim tests/net/netsim.c
    libraries=
}

# Crowds of peers, in virtual time; with a compiler that counts the library's steps, also what each reply costs.
crowd() {
    libraries=-lm
    # shellcheck disable=SC2046
    build crowd tests/net/crowd.c -O2 $(counting | sed 's/$/ -DCROWD_COUNTS_WORK/') && run crowd
    libraries=
}

# What ends of connections cost, in steps of the library.
ends_counted() {
    counts=$(counting)
    [ -n "$counts" ] || { skip "$cc does not count steps" && return; }
    build ends-counted tests/unit/test_ends.c -O2 "$counts" -DENDS_COUNTS_WORK && run ends-counted 20000
}

# Crowds over UDP sockets: a server, clients and a relay, each a process of its own.
crowd_udp() {
    [ "$(uname -s)" = Linux ] || { skip 'the relay needs Linux' && return; }
    build crowd_udp tests/net/crowd_udp.c -O2 && run crowd_udp test
}

# ---- other machines -----------------------------------------------------------------------------------------------------

# elsewhere MACHINE 'COMPILER FLAGS' 'EMULATOR' LIBRARIES: everything without a network, for another processor or with another
# C library or compiler: the unit tests, and the conformance suite on the simulated network.
elsewhere() {
    machine=$1 compiler=$2 runner=$3 libraries=${4:-}
    for tool in ${compiler%% *} ${runner%% *}; do
        has "$tool" || { skip "there is no $tool" && return; }
    done
    for source in tests/unit/test_*.c tests/sisci/test_*.c tests/net/test_*.c tests/verbs/test_*.c tests/attack/test_*.c tests/conformance/conformance.c; do
        unit=$(basename "$source" .c)
        binary=$out/$unit-$machine
        # tcc has none of the atomic operations that the tests of whole endpoints use; test_udp, test_sleep_udp, test_fork, test_sisci
        # and test_verbs use this machine's sockets and shared memory. Warnings are errors here too, but for those of tests alone, which gcc and clang have looked at.
        case $machine-$unit in tcc-conformance | tcc-test_seal | *-test_udp* | *-test_sleep_udp | *-test_fork | *-test_sisci* | *-test_verbs*) continue ;; esac
        # shellcheck disable=SC2086
        $compiler -std=gnu11 -O1 -Itests/support/elsewhere -I. -o "$binary" "$source" $libraries -pthread ||
            { fail "$source does not compile for $machine" && continue; }
        case $unit in
        conformance) run "$unit-$machine" sim ;;
        *) run "$unit-$machine" ;;
        esac
    done
    # shellcheck disable=SC2086
    check "$machine warns" $compiler -std=c99 -O2 $warnings -I. -c -o "$out/user-$machine.o" tests/support/elsewhere/user.c
    runner='' libraries=
}
portability() {
    elsewhere i686 'i686-linux-gnu-gcc -static' ''
    elsewhere mips 'mips-linux-gnu-gcc -static' qemu-mips-static -latomic
    elsewhere s390x 's390x-linux-gnu-gcc -static' qemu-s390x-static
    elsewhere musl 'musl-gcc -static' ''
    elsewhere tcc tcc ''
}

# ---- attackers ----------------------------------------------------------------------------------------------------------

# Without the header of libibverbs.
headerless() {
    build test_verbs-headerless tests/verbs/test_verbs.c -DCCI_NO_VERBS_H && run test_verbs-headerless
}

# The flag that makes the library count its steps; where the compiler has none, the test of the work is skipped.
counting() {
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    "$cc" -fsanitize-coverage=trace-pc -c -o "$out/probe.o" "$out/probe.c" 2>/dev/null &&
        echo -fsanitize-coverage=trace-pc
}
hostile() {
    # shellcheck disable=SC2046
    build hostile tests/attack/hostile.c -O2 $(counting) && run hostile
}
hostile_sanitized() {
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2046,SC2086
    build hostile-sanitized tests/attack/hostile.c -O1 $sanitizers $(counting) && run hostile-sanitized
}

# Every promise of .github/SECURITY.md names tests that there are: attacks on what is not sealed, each of which is
# named there, and some of those on what is.
promises() {
    tr '`' '\n' <.github/SECURITY.md | grep -E '^[a-z0-9]+(_[a-z0-9]+){3,}$' | sort \
        >"$out/promised.txt"
    sed -n 's/^ *SEALED(\([a-z0-9_]*\)),$/\1/p' tests/attack/test_seal.c >"$out/sealed.txt"
    check 'SECURITY.md promises nothing of what is sealed' grep -qxFf "$out/sealed.txt" "$out/promised.txt"
    grep -vxFf "$out/sealed.txt" "$out/promised.txt" >"$out/unsealed.txt"
    sed -n 's/^ *TEST(\([a-z0-9_]*\)),$/\1/p' tests/attack/hostile.c | sort >"$out/tested.txt"
    check 'SECURITY.md promises nothing' [ -s "$out/unsealed.txt" ]
    check 'what SECURITY.md promises (-) and tests/attack/hostile.c tests (+) differ' diff -u "$out/unsealed.txt" "$out/tested.txt"
}

# The inputs that fuzzing left behind, and those that found something once. The last line of the log names one that fails.
fuzz_replay() {
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    build fuzz tests/fuzz/fuzz.c -O1 $sanitizers || return
    for target in live handshake rma config uri; do
        check "fuzz $target tests/fuzz/corpus/$target" within 300 "$out/fuzz" "$target" "tests/fuzz/corpus/$target"
    done
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    check 'fuzz card tests/fuzz/corpus/card' within 300 "$out/fuzz" card tests/fuzz/corpus/card
}

# ---- warnings -----------------------------------------------------------------------------------------------------------

# Examples compile as a user may compile them; tests are held to the same warnings.
warnings_of() {
    for compiler in gcc clang; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        for standard in $1; do
            for source in $2; do
                case $source in *secure.c) has_sodium || { skip 'there is no libsodium' && continue; } ;; esac
                # shellcheck disable=SC2086
                check "$compiler -std=$standard $source" \
                    $compiler -std=$standard -fsyntax-only $warnings -I. "$source"
            done
        done
    done
}

# The soak test: the same seeds each time, fresh ones, and some of both with sanitizers. A failing seed prints the command that
# replays it.
soak() {
    check 'the soak test does not compile' make -s CC="$cc" CFLAGS=-O2 build/soak
    [ -x build/soak ] || return
    check 'the known seeds' within 300 build/soak --first 1 --seeds 80 --every-fault
    # Crowds at a memory limit of 64 KiB or less whose members change their addresses; small writes behind refusals and gaps; a
    # TAKEN that names one item twice; closing on a slow path; few readers for many connections.
    for seed in 968 2466 3046803309586 7000014 7000056 17000647; do
        check "seed $seed" within 100 build/soak --seed $seed
    done
    fresh=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    echo "fresh seeds from $fresh on"
    check "the fresh seeds from $fresh on" within 300 build/soak --first "$fresh" --seconds 12
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2086
    counting='-fsanitize-coverage=trace-pc -DSOAK_COUNTS_WORK' # see tests/soak/soak_net.h
    # shellcheck disable=SC2086
    works $sanitizers $counting || counting=
    # shellcheck disable=SC2086
    check 'the soak test does not compile with sanitizers' "$cc" -std=gnu11 -g -O1 $sanitizers $counting -I. \
        -o "$out/soak-sanitized" tests/soak/soak.c
    check "seeds from $fresh on, sanitized" within 300 "$out/soak-sanitized" --first "$fresh" --seconds 18
}

# Processes that are killed, stopped and replaced while they talk. A failing round prints its seed.
soak_sisci() {
    check 'the soak test does not compile' make -s CC="$cc" CFLAGS=-O2 build/soak_sisci
    [ -x build/soak_sisci ] || return
    fresh=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
    check 'the known seeds' within 200 build/soak_sisci --first 1 --rounds 3
    check "the fresh seeds from $fresh on" within 200 build/soak_sisci --first "$fresh" --seconds 8
    for kind in "$sanitizers" -fsanitize=thread; do
        # shellcheck disable=SC2086
        works $kind || { skip "$cc has no $kind here" && continue; }
        # shellcheck disable=SC2086
        check "it does not compile with $kind" "$cc" -std=gnu11 -g -O1 $kind -I. -o "$out/soak_sisci" tests/soak/soak_sisci.c -pthread
        check "seeds from $fresh on, $kind" within 200 "$out/soak_sisci" --first "$fresh" --seconds 6
    done
}

# The soak tests find small deliberate bugs: seven of them here, all by `make mutants`.
mutants() {
    within 900 sh tests/tools/mutants.sh 'no check for duplicates' 'acknowledged though refused' 'beyond the end' 'no probe timer' 'used twice' \
        'hear of a fork' 'goes on listening'
    check 'a mutant survived, or applies no more' [ $? -eq 0 ]
}

demo() {
    check 'make demo failed' within 120 make CC="$cc" demo
}

# The programs are tested in a file of their own.
. tests/tools/programs.sh
. tests/wire/wire.sh
. tests/verbs/verbs.sh

# ---- analysis -----------------------------------------------------------------------------------------------------------

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

# ---- all of it --------------------------------------------------------------------------------------------------------------

write_users
step contents contents
step format format
step tree tree
step headers-gcc headers gcc c c99 gnu11 gnu17
step headers-g++ headers g++ c++ c++11 gnu++11 c++20
step headers-clang headers clang c c99 gnu11 gnu17
step headers-clang++ headers clang++ c++ c++11 gnu++11 c++20
step wrong-order wrong_order
step two-files two_files
step no-sockets no_sockets
step purity purity
step exports exports
step blunders blunders
step warnings-examples warnings_of 'c99 gnu11' 'examples/*.c'
# The proofs' harnesses (prove_*.c) are C with the model checker's additions.
step warnings-tests warnings_of gnu11 'tests/[!p]*/*.c'
step readme readme
step demo demo
step secret secret
step copies copies
step floods floods
step devices-json devices_json
step measures measures
step crowds crowds
step shared shared
step memories memories
for source in tests/*/test_*.c; do
    unit=$(basename "$source" .c)
    step "$unit" plain "$unit" "$source"
    step "$unit-sanitized" sanitized "$unit" "$source"
done
for unit in test_sisci test_sisci_deaths test_sisci_succession test_sisci_memory test_sisci_links; do
    step "$unit-threadless" threadless "$unit" "tests/sisci/$unit.c"
    step "$unit-raced" raced "$unit" "tests/sisci/$unit.c"
done
step test_fork-raced raced test_fork tests/unit/test_fork.c
step test_sleep_udp-raced raced test_sleep_udp tests/net/test_sleep_udp.c
step test_udp_share-raced raced test_udp_share tests/net/test_udp_share.c
step test_udp_share-portable portable test_udp_share tests/net/test_udp_share.c
step test_verbs-headerless headerless
patience=600 # one of the tests moves 8 GiB
for network in sim sim-lossy sim-tiny sim-narrow sim-crc sim-sealed sim-sealed-noisy udp udp-crc udp-sealed \
    sisci sisci-bounce sisci-mapped sisci-mapped-later; do
    step "conformance-$network" plain conformance tests/conformance/conformance.c "$network"
done
step test_seal-ciphered ciphered test_seal tests/attack/test_seal.c
step conformance-sim-ciphered ciphered conformance tests/conformance/conformance.c sim-sealed-noisy
step conformance-sim-sealed-sanitized sanitized conformance tests/conformance/conformance.c sim-sealed
step conformance-udp-portable portable conformance tests/conformance/conformance.c udp
step conformance-sim-sanitized sanitized conformance tests/conformance/conformance.c sim
step conformance-udp-sanitized sanitized conformance tests/conformance/conformance.c udp
step conformance-udp-raced raced conformance tests/conformance/conformance.c udp thread
step conformance-sisci-sanitized sanitized conformance tests/conformance/conformance.c sisci
step conformance-sisci-bounce-sanitized sanitized conformance tests/conformance/conformance.c sisci-bounce
step conformance-sisci-mapped-sanitized sanitized conformance tests/conformance/conformance.c sisci-mapped
step conformance-sisci-raced raced conformance tests/conformance/conformance.c sisci thread
step vendor vendor
step adapter adapted plain '' adapter tests/sisci/adapter.c
step adapter-sanitized adapted sanitized "$sanitizers" adapter tests/sisci/adapter.c
step adapter-raced adapted raced -fsanitize=thread adapter tests/sisci/adapter.c
step adapter-others adapted_others
step conformance-sisci-vendor adapted plain '' conformance tests/conformance/conformance.c sisci-vendor
step conformance-sisci-vendor-sanitized adapted sanitized "$sanitizers" conformance tests/conformance/conformance.c sisci-vendor
step conformance-sisci-vendor-raced adapted raced -fsanitize=thread conformance tests/conformance/conformance.c sisci-vendor thread
step conformance-udp-sealed-raced raced conformance tests/conformance/conformance.c udp-sealed thread
patience=300
step soak soak
step soak-capture soak_capture
step soak-sisci soak_sisci
step mutants mutants
step field plain field tests/conformance/field.c
step field-portable portable field tests/conformance/field.c
step field-sanitized sanitized field tests/conformance/field.c
step hostile hostile
step hostile-sanitized hostile_sanitized
step promises promises
step netsim netsim
step crowd crowd
step ends-counted ends_counted
patience=600 # for machines that have little time for so many processes
step crowd-udp crowd_udp
patience=300
step netns plain netns tests/net/netns.c
step netns-portable portable netns tests/net/netns.c
# In virtual machines that run meanwhile.
step verbs-info guest_info
for job in conformance-rc conformance-ud rc ud conformance-arm64 conformance-rc-sanitized conformance-ud-sanitized; do
    step "verbs-$job" guest_tests "$job"
done
step verbs-end guest_end
patience=600 # interpreted
step portability portability
patience=300
step packages counted sh tests/tools/packages.sh
step strangers strangers
step wire wire
step second second
step wireshark wireshark
step wireshark-train wireshark_train
step fuzz-replay fuzz_replay
# Both leave out what takes minutes: make analyze and make prove have it.
step analyze counted sh tests/tools/analyze.sh --quick
step prove counted sh tests/prove/prove.sh --quick

[ "$(seconds_left)" -gt 0 ] || guest_abandon
echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
[ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
