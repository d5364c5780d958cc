# SPDX-License-Identifier: MIT OR Unlicense
# machines.sh - tests for other processors, C libraries and compilers; steps.sh reads this file.

# elsewhere MACHINE 'COMPILER FLAGS' 'EMULATOR' LIBRARIES: everything without a network, for another processor or with another
# C library or compiler: the unit tests, and the conformance suite on the simulated network.
elsewhere() {
    machine=$1 compiler=$2 runner=$3 libraries=${4:-} level=-O0
    [ -z "$runner" ] || level=-O1 # what is emulated takes longer to run than to compile
    for tool in ${compiler%% *} ${runner%% *}; do
        has "$tool" || { skip "there is no $tool" && return; }
    done
    for source in tests/unit/test_*.c tests/sisci/test_*.c tests/net/test_*.c tests/verbs/test_*.c tests/attack/test_*.c tests/conformance/conformance.c; do
        unit=$(basename "$source" .c)
        program_elsewhere=$run_programs/$unit-$machine
        # tcc has none of the atomic operations that the tests of whole endpoints use; test_udp, test_sleep_udp, test_fork, test_sisci
        # and test_verbs use this machine's sockets and shared memory. Warnings are errors here too, but for those of tests alone, which gcc and clang have looked at.
        case $machine-$unit in tcc-conformance | tcc-test_seal | tcc-test_validate | *-test_udp* | *-test_sleep_udp | *-test_fork | *-test_sisci* | *-test_verbs*) continue ;; esac
        # shellcheck disable=SC2086
        $compiler -std=gnu11 $level -Itests/support/elsewhere -I. -o "$program_elsewhere" "$source" $libraries -pthread ||
            { fail "$source does not compile for $machine" && continue; }
        case $unit in
        conformance) brief run "$unit-$machine" sim ;;
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

# on_windows SOURCE: a program of tests, with what it uses of POSIX.
on_windows() {
    # shellcheck disable=SC2086
    x86_64-w64-mingw32-gcc -static -std=gnu11 -Itests/support/elsewhere -Itests/support/windows \
        -include tests/support/windows/posix.h -I. -o "$run_programs/$(basename "$1" .c).exe" "$1" $windows_libraries ||
        fail "$1 does not compile for Windows"
}

# windows_compiles NAME COMMAND...: the headers, in two languages, with warnings as errors.
windows_compiles() {
    windows_by=$1
    shift
    for language in 'c -std=c99' 'c++ -std=c++11'; do
        # shellcheck disable=SC2086
        check "$windows_by warns: $language" "$@" -x $language $warnings -I. -fsyntax-only tests/support/elsewhere/user.c
    done
}

# A program there and one here say hello to each other: the first is the server.
windows_hello() {
    : >"$out/hello-windows.txt" # not the text of the server before
    # shellcheck disable=SC2086
    $1 >"$out/hello-windows.txt" 2>&1 &
    hello_server=$!
    if wait_for "$out/hello-windows.txt" 'udp://'; then
        hello_uri=$(sed -n 's|.*\(udp://[0-9.:]*\).*|\1|p' "$out/hello-windows.txt" | head -n 1)
        # shellcheck disable=SC2086
        within 60 $2 "$hello_uri" >"$out/hello-windows-client.txt" 2>&1
    fi
    cat "$out/hello-windows.txt" "$out/hello-windows-client.txt"
    check "no hello between $1 and $2" grep -q 'received: hello, world' "$out/hello-windows-client.txt"
    rm -f "$out/hello-windows-client.txt"
    kill "$hello_server" 2>/dev/null
    wait "$hello_server" 2>/dev/null
}

# What Wine runs: all that needs no network, and parts of the conformance suite over Winsock, which costs Wine much time (all of
# it: WINDOWS=all, five minutes).
windows_runs() {
    runner=wine
    for unit in base evq conn rel rma dgram ends sleep core seal; do run "test_$unit.exe"; done
    brief run conformance.exe sim
    if [ "${WINDOWS:-}" = all ]; then run conformance.exe udp
    else for part in '[4.7.2.5' 'OS handle' group; do run conformance.exe udp "$part"; done
    fi
    runner=''
    printf '[lo]\ntransport = udp\nip = 127.0.0.1\n' >"$out/windows.ini"
    export CCI_CONFIG="$out/windows.ini"
    windows_hello "$out/hello-here" "wine $out/hello.exe"
    windows_hello "wine $out/hello.exe" "$out/hello-here"
    unset CCI_CONFIG
}

# Windows: mingw-w64 compiles for it, Wine runs it. clang takes the headers as Microsoft's compiler would, with the system headers
# of mingw-w64.
windows() {
    has x86_64-w64-mingw32-gcc || { skip 'there is no x86_64-w64-mingw32-gcc' && return; }
    windows_libraries='-lbcrypt -lws2_32 -liphlpapi -lpthread'
    windows_compiles mingw-w64 x86_64-w64-mingw32-gcc
    if has clang; then
        windows_compiles "clang for Microsoft's" clang --target=x86_64-pc-windows-msvc -fms-compatibility -U_MSC_VER \
            -D__GNUC__=4 -isystem /usr/x86_64-w64-mingw32/include -include tests/support/windows/msvc.h
    else skip 'there is no clang'
    fi
    has wine || { skip 'there is no wine' && return; }
    for source in tests/unit/test_*.c tests/attack/test_seal.c tests/conformance/conformance.c; do
        case $source in *test_fork*) ;; *) on_windows "$source" ;; esac
    done
    check 'hello.c does not compile for Windows' x86_64-w64-mingw32-gcc -std=c99 -I. -o "$out/hello.exe" \
        examples/hello.c -lbcrypt -lws2_32 -liphlpapi
    check 'hello.c does not compile' "$cc" -std=c99 -I. -o "$out/hello-here" examples/hello.c -pthread
    export WINEPREFIX="$PWD/$out/wine" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
    mkdir "$WINEPREFIX" && wineserver -p # it stays: a program that begins while it ends does not run
    windows_runs
    wineserver -k
    rm -rf "$WINEPREFIX"
    unset WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
}

# web_compiles NAME COMMAND...: the core for WebAssembly, in two languages, with warnings as errors.
web_compiles() {
    web_by=$1
    shift
    for language in 'c -std=c99' 'c++ -std=c++11 -fno-exceptions'; do
        # shellcheck disable=SC2086
        check "$web_by warns: $language" "$@" -x $language $warnings -I. -O1 -DCCI_IMPLEMENTATION= -c -o "$out/web.o" "$out/use/core.c"
    done
}

# WebAssembly: clang with the C library of WASI, and Emscripten, compile the core and tests that bring their own links; node runs them.
# Neither has sockets that cci_udp.h could use.
webassembly() {
    has node || { skip 'there is no node' && return; }
    wasi='clang --target=wasm32-wasi --sysroot=/usr -nostdlibinc -isystem /usr/include/wasm32-wasi'
    # shellcheck disable=SC2086
    if ! works_elsewhere $wasi -o "$out/probe.wasm"; then skip 'clang, lld, or the library of WASI is missing'
    else webassembly_wasi
    fi
    if ! works_elsewhere emcc -o "$out/probe.js"; then skip 'there is no emscripten'
    else webassembly_emscripten
    fi
}

# works_elsewhere COMPILER...: it makes a program.
works_elsewhere() {
    echo 'int main(void) { return 0; }' >"$out/probe.c"
    "$@" "$out/probe.c" 2>/dev/null
}

# Programs that need nothing of POSIX but its clock.
webassembly_wasi() {
    # shellcheck disable=SC2086 # a list of words
    web_compiles WASI $wasi
    runner='node --no-warnings tests/support/wasi/run.mjs'
    for unit in base evq conn rma stats status sleep tiny deadline deadline_small deadline_tiny; do
        # shellcheck disable=SC2086
        $wasi -std=gnu11 -O1 -isystem tests/support/wasi -Itests/support/elsewhere -I. \
            -o "$run_programs/test_$unit.wasm" "tests/unit/test_$unit.c" ||
            { fail "test_$unit.c does not compile for WASI" && continue; }
        run "test_$unit.wasm"
    done
    runner=''
}

# Its loader takes node's fetch() for a browser's.
webassembly_emscripten() {
    web_compiles Emscripten emcc
    runner='node --no-experimental-fetch'
    for source in tests/unit/test_dgram.c tests/unit/test_core.c tests/conformance/conformance.c; do
        unit=$(basename "$source" .c)
        emcc -std=gnu11 -O1 -sSUPPORT_LONGJMP=1 -sALLOW_MEMORY_GROWTH=1 -sEXIT_RUNTIME=1 \
            -Itests/support/elsewhere -I. -o "$run_programs/$unit.js" "$source" ||
            { fail "$source does not compile with Emscripten" && continue; }
        case $unit in
        conformance) brief run "$unit.js" sim ;;
        *) run "$unit.js" ;;
        esac
    done
    runner=''
}

# Other systems: zig brings their headers and libraries (tests/support/deps.sh gets it). What it makes is not run but for Linux
# with a C library of 2012.
systems() {
    if find_zig; then
        for system in aarch64-macos x86_64-freebsd x86_64-openbsd x86_64-netbsd; do
            system_compiles $system "$zig cc -target $system -fno-sanitize=undefined" # as other compilers do
        done
        old_library
        unset ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
    else skip 'there is no zig: macOS, FreeBSD, OpenBSD, NetBSD and old C libraries are not compiled for'
    fi
    ndk=$(echo "${ANDROID_NDK_HOME:-/nowhere}"/toolchains/llvm/prebuilt/*/bin/aarch64-linux-android28-clang)
    if has "$ndk"; then system_compiles android "$ndk"
    else skip 'there is no Android NDK (ANDROID_NDK_HOME): no package has it'
    fi
}

# system_compiles NAME COMPILER: all headers in two languages, a large program, and a whole one.
system_compiles() {
    for language in 'c -std=c99' 'c++ -std=c++11'; do
        # shellcheck disable=SC2086
        check "$1: $language" $2 -x $language $warnings -I. -DCCI_IMPLEMENTATION= -O0 -c -o "$out/system.o" "$out/use/everything.c"
    done
    # shellcheck disable=SC2086
    check "$1: examples/cci_cp.c" $2 -std=c99 $warnings -I. -O0 -c -o "$out/system.o" examples/cci_cp.c
    case $1 in *openbsd | *netbsd) return ;; esac # each C library that is linked with is made first, in ten seconds
    # shellcheck disable=SC2086
    check "$1: hello.c does not link" $2 -std=c99 -I. -O0 -o "$out/system" examples/hello.c -pthread
}

# A C library without getrandom(): numbers come from /dev/urandom.
old_library() {
    if "$zig" cc -target x86_64-linux-gnu.2.17 -std=gnu11 -O1 -Itests/support/elsewhere -I. -o "$run_programs/test_core-old" \
        tests/unit/test_core.c -pthread; then run test_core-old
    else fail 'test_core.c does not compile for an old C library'
    fi
    "$zig" cc -target x86_64-linux-gnu.2.17 -I. -o "$out/hello-old" examples/hello.c -pthread ||
        fail 'hello.c does not compile for an old C library'
    check 'an old C library is asked for getrandom()' sh -c '! nm -D "$1" | grep -q getrandom' - "$out/hello-old"
    "$cc" -std=c99 -I. -o "$out/hello-here" examples/hello.c -pthread
    serve hello-old "$out/hello-old" || return
    check 'no answer from a program with an old C library' status_of 0 "$out/hello-here" "$uri"
    end_server
}
