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
# What was added breaks no program. Everything else counts, also a change that abidiff does not call incompatible: the size of
# a structure, for one.
status=0
abidiff --no-added-syms --no-show-locs "$out/old/libcci.so" "$out/new/libcci.so" || status=$?
case $status in
0) echo 'the binary interface fits' ;;
4 | 8 | 12) echo "FAIL: programs that link with $(cat "$out/old/soname") may break" && exit 1 ;;
*) echo "abi.sh: abidiff failed with status $status" >&2 && exit 1 ;;
esac
