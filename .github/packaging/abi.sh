#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# abi.sh [OLD [NEW]] - compares the binary interfaces of two versions of the shared library with abidiff.
#
# OLD and NEW are directories with the sources. Without OLD it is the release before this version, the newest tag v*; without
# NEW this one. The status is 0 when all that is declared fits or has another soname, and 1 when programs would break; without
# abidiff or an older version there is nothing to compare, which the last line says after "SKIP: ".
set -eu
cd "$(dirname "$0")/../.."
out=build/abi
rm -rf "$out"
mkdir -p "$out"

skip() {
    echo "SKIP: $*"
    exit 0
}

# make_library SOURCES NAME: with what abidiff reads, and quickly.
make_library() {
    mkdir -p "$out/$2"
    soname=$(cd "$1" && sh .github/packaging/package.sh soname)
    ${CC:-cc} -g -O0 -fPIC -fvisibility=hidden -shared "-Wl,-soname,$soname" "-I$1" -o "$out/$2/libcci.so" \
        "$1/.github/packaging/libcci.c" -pthread
    echo "$soname" >"$out/$2/soname"
    # What abidiff may complain of: types that the public header declares.
    mkdir -p "$out/$2/include"
    sed '/^\/\* end of header \*\/$/q' "$1/cci.h" >"$out/$2/include/cci.h"
}

command -v abidiff >/dev/null || skip 'there is no abidiff'
old=${1:-} new=${2:-.}
if [ -z "$old" ]; then
    this=v$(sh .github/packaging/package.sh version)
    tag=$(git tag --list 'v*' --sort=-version:refname 2>/dev/null | grep -vx "$this" | head -n 1)
    [ -n "$tag" ] || skip 'there is no older release'
    old=$out/release
    mkdir -p "$old"
    git archive "$tag" | tar -xf - -C "$old"
    [ -f "$old/.github/packaging/libcci.c" ] || skip "$tag has no shared library"
fi
make_library "$old" old
make_library "$new" new
if ! cmp -s "$out/old/soname" "$out/new/soname"; then
    echo "another soname: $(cat "$out/old/soname") and $(cat "$out/new/soname") may stand side by side"
    exit 0
fi
# Of the status, bit 3 (8) says that what exists was changed so that programs break; bit 2 (4) that anything was, additions
# included, so that 4 alone is no failure unless something was taken away or changed, which the report counts.
status=0
abidiff --no-show-locs "$out/old/libcci.so" "$out/new/libcci.so" >"$out/report.txt" || status=$?
cat "$out/report.txt"
[ $((status & 3)) -eq 0 ] || { echo 'abi.sh: abidiff failed' >&2 && exit 1; }
if [ $((status & 8)) -ne 0 ] || grep -Eq 'Functions changes summary: ([1-9][0-9]* Removed|[0-9]+ Removed, [1-9])' "$out/report.txt"; then
    echo "FAIL: programs that link with $(cat "$out/old/soname") would break"
    exit 1
fi
echo 'the binary interface fits'
