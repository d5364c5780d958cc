# SPDX-License-Identifier: MIT OR Unlicense
# tree.sh - tests of the tree: its files, their format, the README; steps.sh reads this file.

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
    # tcc unlinks what it writes to, and root may: then the machine has a file there, which fills.
    while read -r file; do grep -nHE -e '-o *[/]dev/null' "$file"; done <"$out/files.txt" >"$out/null.txt"
    cat "$out/null.txt"
    check 'a compiler writes to /dev/null' [ ! -s "$out/null.txt" ]
}

# What .github/COMING_FROM.md names beside the functions of other interfaces is there, and each row says something.
equivalents() {
    page=.github/COMING_FROM.md
    check 'README.md does not lead to the page' grep -q "]($page)" README.md
    grep -oE 'cci_[a-z_]+\(\)' $page | sort -u >"$out/called.txt"
    check 'the page names no calls' grep -qx 'cci_connect()' "$out/called.txt"
    while read -r call; do
        check "$page: $call is not declared" grep -qE "^CCI_API .*[ *]${call%()}\\(" cci.h cci_verbs.h
    done <"$out/called.txt"
    grep -oE '`CCI_[A-Z_]+`' $page | tr -d '`' | sort -u >"$out/named.txt"
    while read -r name_there; do
        check "$page: there is no $name_there" grep -qw "$name_there" cci.h
    done <"$out/named.txt"
    grep '^| `' $page | grep -vE '^\| (`[a-z0-9_]+`(, )?)+ \| (none needed|none yet|`cci_[a-z_]+\(\)`(, `cci_[a-z_]+\(\)`)*) \|' >"$out/rows.txt"
    cat "$out/rows.txt"
    check "$page: a row has neither a call nor a reason" [ ! -s "$out/rows.txt" ]
}

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

# The README is short, and what READMEs lead to is there.
pages() {
    check 'README.md has more than 200 lines' [ "$(wc -l <README.md)" -le 200 ]
    for page in README.md examples/firmware/README.md; do
        sed -n 's/^| [^|]* | \([0-9,]* | [0-9,]* | [0-9,]*\) |$/\1/p' "$page" | head -n 4 >"$out/sizes.$(dirname "$page" | tr / -)"
    done
    check 'README.md has other sizes of CCI_TINY than examples/firmware/README.md' cmp "$out/sizes.." "$out/sizes.examples-firmware"
    check 'README.md does not have the sizes' [ "$(wc -l <"$out/sizes..")" -eq 4 ]
    for page in README.md examples/README.md examples/firmware/README.md; do
        grep -oE '\]\([^)#:]+' "$page" | sed 's/^](//' >"$out/leads.txt"
        while read -r target; do
            check "$page leads to $target, which is not there" [ -e "$(dirname "$page")/$target" ]
        done <"$out/leads.txt"
    done
}

demo() {
    check 'make demo failed' locked within "$patience" make CC="$cc" demo
}

# The comparison of cci_cp with other programs, small: each has a ratio or says what is missing; one that fails is told.
copying() {
    [ "$(uname -s)" = Linux ] || { skip 'the comparison of copies needs Linux' && return; }
    check 'bench_copy.sh failed' locked within 120 sh tests/bench/bench_copy.sh -r 1 -m 4 >"$out/copying.txt"
    for program in rsync scp nc; do
        if grep -q "^$program  *skipped: " "$out/copying.txt"; then skip "$program: what it needs is missing"
        else check "$program has no ratio" grep -Eq "^$program  *[0-9]+\.[0-9]+ \(" "$out/copying.txt"
        fi
    done
    mkdir -p "$out/broken" && printf '#!/bin/sh\nexit 1\n' >"$out/broken/rsync" && chmod +x "$out/broken/rsync"
    (PATH=$out/broken:$PATH locked within 120 sh tests/bench/bench_copy.sh -r 1 -m 4 >/dev/null 2>"$out/copying.err")
    check 'an rsync that fails is not told' [ $? -eq 1 ]
    check 'it does not say which program' grep -q 'bench_copy: rsync did not begin' "$out/copying.err"
}
