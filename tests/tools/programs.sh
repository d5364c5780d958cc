# SPDX-License-Identifier: MIT OR Unlicense
# programs.sh - tests of the example programs; run.sh reads this file and brings check, pass, fail and wait_for.

# serve NAME COMMAND...: starts a server and leaves its URI in $uri and in $server its process: that of the hang guard,
# which hands signals on.
serve() {
    server_log=$out/$1.server
    shift
    : >"$server_log" # the URI of an earlier one must not be found there
    timeout 120 "$@" >"$server_log" 2>&1 &
    server=$!
    uri=
    wait_for "$server_log" '^uri: ' && uri=$(sed -n 's/^uri: //p' "$server_log" | head -n 1)
    [ -n "$uri" ] || { fail "no URI from: $*" && cat "$server_log" && return 1; }
}
end_server() {
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
}

# A client that must end with this status.
status_of() {
    wanted=$1
    shift
    timeout 60 "$@"
    got=$?
    [ "$got" -eq "$wanted" ] || { echo "status $got instead of $wanted: $*" && return 1; }
}

build_examples() {
    make CC="$cc" CFLAGS=-O0 examples && return 0 # make demo and the steps of the headers have -O2
    fail 'make examples failed'
    return 1
}

# ---- what goes wrong --------------------------------------------------------------------------------------------------

# advises TEXT COMMAND...: the program fails, and says what can be done about it.
advises() {
    advice=$1
    shift
    check "it does not fail: $*" status_of 1 "$@" >"$out/advice.txt" 2>&1
    check "no advice from: $*" grep -q "$advice" "$out/advice.txt" || cat "$out/advice.txt"
}
advice() {
    build_examples || return
    for program in hello pingpong rma 'chat anna'; do
        # shellcheck disable=SC2086
        advises '^nonsense: invalid parameter: check the arguments' build/$program nonsense
    done
    for program in 'cci_perf -t lat' 'cci_cp Makefile'; do
        # shellcheck disable=SC2086
        advises '^cci_[a-z]*: .*: invalid parameter: check the arguments' build/$program nonsense://
    done
    advises '^cci_info: not found: include a transport, or check the name' env CCI_CONFIG="$out/no-such-file" build/cci_info
}

# ---- secure ---------------------------------------------------------------------------------------------------------

secret() {
    has_sodium || { skip 'there is no libsodium' && return; }
    build_examples || return
    build/secure new >"$out/key"
    build/secure new >"$out/other-key"
    check 'two new keys are the same' sh -c '! cmp -s "$1" "$2"' - "$out/key" "$out/other-key"
    serve secure build/secure "$out/key" || return
    check 'a client with the key is not answered' status_of 0 build/secure "$out/key" "$uri"
    check 'the server did not print the message' wait_for "$server_log" '^received: hello, friend$'
    check 'a client with another key is answered' status_of 1 build/secure "$out/other-key" "$uri"
    check 'a client that does not encrypt is answered' status_of 1 build/hello "$uri"
    check 'the server has not survived all this' status_of 0 build/secure "$out/key" "$uri"
    check 'a file without a key is taken' status_of 1 build/secure Makefile
    end_server
    check 'the server heard more than its friends' [ "$(grep -c '^received' "$server_log")" -eq 2 ]
}

# ---- statistics ------------------------------------------------------------------------------------------------------

# SIGUSR1 makes servers print what they have sent and received.
statistics() {
    build_examples || return
    printf '[lo]\ntransport = udp\ninterface = lo\n' >"$out/statistics.ini"
    CCI_CONFIG=$out/statistics.ini
    export CCI_CONFIG
    mkdir -p "$out/statistics"
    for program in 'cci_perf' "cci_cp -l $out/statistics"; do
        # shellcheck disable=SC2016,SC2086 # the shell inside; two words
        serve statistics sh -c 'echo $$ >"$0"; exec "$@"' "$out/statistics.pid" build/$program || continue
        kill -USR1 "$(cat "$out/statistics.pid")"
        check "no statistics: $program" wait_for "$server_log" '^connections: 0.*'
        check "no datagrams: $program" wait_for "$server_log" 'datagrams: 0 sent'
        end_server
    done
    has python3 || { skip 'there is no python3' && unset CCI_CONFIG && return; }
    check 'what --top draws' timeout 300 python3 tests/tools/top_screen.py build/cci_perf
    unset CCI_CONFIG
}

# ---- hello ----------------------------------------------------------------------------------------------------------

# The server that a user copies answers all messages, also when it has no send buffer left for a while.
floods() {
    build_examples || return
    "$cc" -std=gnu11 -O1 -I. -o "$out/flood" tests/tools/flood.c -pthread || { fail 'flood.c does not compile' && return; }
    printf '[lo]\ntransport = udp\ninterface = lo\n' >"$out/flood.ini"
    serve hello env CCI_CONFIG="$out/flood.ini" build/hello || return
    check 'an answer is missing' status_of 0 env CCI_CONFIG="$out/flood.ini" "$out/flood" "$uri" 4000
    check 'the server has not survived it' status_of 0 env CCI_CONFIG="$out/flood.ini" build/hello "$uri"
    end_server
}

# A server whose sends are refused two times of three answers all the same.
refusals() {
    build_examples || return
    printf '[lo]\ntransport = udp\ninterface = lo\n' >"$out/refuses.ini"
    CCI_CONFIG=$out/refuses.ini
    export CCI_CONFIG
    programs='hello pingpong cci_perf'
    has_sodium && programs="$programs secure"
    for program in $programs; do
        library=
        [ "$program" != secure ] || library=-lsodium
        # shellcheck disable=SC2086
        check "$program.c does not compile" "$cc" -std=gnu11 -O1 -I. -include tests/tools/refuses.h -o "$out/$program-refuses" \
            "examples/$program.c" $library -pthread
    done
    serve hello-refuses "$out/hello-refuses" || return
    check 'hello has no answer' status_of 0 build/hello "$uri"
    end_server
    for sleeps in '' -b; do
        # shellcheck disable=SC2086
        serve "pingpong-refuses$sleeps" "$out/pingpong-refuses" $sleeps || return
        check "pingpong $sleeps has too few answers" status_of 0 build/pingpong -n 500 "$uri"
        end_server
    done
    serve cci_perf-refuses "$out/cci_perf-refuses" || return
    for test in 'lat -n 500' 'bw -n 500' 'write_bw -n 100 --verify'; do
        # shellcheck disable=SC2086
        check "cci_perf $test" status_of 0 build/cci_perf -t $test -s 64 "$uri"
    done
    end_server
    unset CCI_CONFIG
    has_sodium || { skip 'there is no libsodium' && return; }
    build/secure new >"$out/key"
    serve secure-refuses "$out/secure-refuses" "$out/key" || return
    check 'secure has no answer' status_of 0 build/secure "$out/key" "$uri"
    end_server
}

# ---- bindings -------------------------------------------------------------------------------------------------------

# examples/cci.py says what cci.h says, and each of its calls works, over UDP and shared memory.
bindings() {
    has python3 || { skip 'there is no python3' && return; }
    check 'make lib failed' make CC="$cc" lib || return
    CCI_SISCI_DIR=$(mktemp -d) || { fail 'no directory' && return; }
    export CCI_SISCI_DIR
    counted python3 tests/tools/bindings.py "$cc" "$out"
    rm -rf "$CCI_SISCI_DIR"
    unset CCI_SISCI_DIR
}

# Rooms of the C program and of the Python program, with members of both.
chats() {
    has python3 || { skip 'there is no python3' && return; }
    build_examples || return
    check 'make lib failed' make CC="$cc" lib || return
    CCI_SISCI_DIR=$(mktemp -d) || { fail 'no directory' && return; }
    CCI_CONFIG=$out/chat.ini PYTHONDONTWRITEBYTECODE=1
    export CCI_SISCI_DIR CCI_CONFIG PYTHONDONTWRITEBYTECODE
    for room in 'build/chat' 'python3 examples/chat.py'; do
        printf '[lo]\ntransport = udp\ninterface = lo\n' >"$CCI_CONFIG"
        chat_in "$room"
        [ "$(uname -s)" = Linux ] || continue
        printf '[memory]\ntransport = sisci\n' >"$CCI_CONFIG"
        chat_in "$room"
    done
    rm -rf "$CCI_SISCI_DIR"
    unset CCI_SISCI_DIR CCI_CONFIG PYTHONDONTWRITEBYTECODE
}

# hears NAME LINE: the program of that name has printed the line.
hears() {
    check "$1 ($room) does not hear: $2" wait_for "$out/$1.server" "^$2\$"
}

# What each program reads comes from this shell: 7 is the room's input, 8 and 9 are the members'.
chat_in() {
    for who in chat anna bert; do
        : >"$out/$who.server"
        rm -f "$out/$who.typed"
        mkfifo "$out/$who.typed" || { fail 'no pipe' && return; }
    done
    exec 7<>"$out/chat.typed" 8<>"$out/anna.typed" 9<>"$out/bert.typed"
    # shellcheck disable=SC2086,SC2016 # a list of words
    serve chat sh -c 'exec "$@" <"$0"' "$out/chat.typed" $room root 7>&- 8>&- 9>&- || return
    timeout 120 build/chat anna "$uri" <"$out/anna.typed" >"$out/anna.server" 2>&1 7>&- 8>&- 9>&- &
    anna=$!
    hears anna 'you are in the room'
    hears chat 'anna has come'
    timeout 120 python3 examples/chat.py bert "$uri" <"$out/bert.typed" >"$out/bert.server" 2>&1 7>&- 8>&- 9>&- &
    bert=$!
    hears bert 'you are in the room'
    hears anna 'bert has come'
    chat_along
    for member in build/chat 'python3 examples/chat.py'; do
        # shellcheck disable=SC2086
        check "$member: a name that is too long is taken" status_of 1 $member 123456789012345678901234567890123 "$uri"
    done
    exec 8>&-
    check 'anna left in disorder' wait "$anna"
    hears chat 'anna has left'
    hears bert 'anna has left'
    exec 7>&-
    check 'the room was closed in disorder' wait "$server"
    hears bert 'the room is closed'
    check 'bert left in disorder' wait "$bert"
    exec 9>&-
    cat "$server_log" "$out/anna.server" "$out/bert.server"
    check 'somebody heard himself' [ "$(grep -c '^root: \|^anna: first' "$server_log" "$out/anna.server" | cut -d : -f 2 | tr '\n' ' ')" = '1 1 ' ]
}

# Lines from each to all others: in order, whole, in pieces, and without what would steer a terminal.
chat_along() {
    printf 'first\nsecond\n\n' >&8
    hears bert 'anna: first'
    hears bert 'anna: '
    hears chat 'anna: second'
    printf 'gr\303\274\303\237e \033[2J\n%02500d\n' 7 >&9
    hears anna "bert: gr$(printf '\303\274\303\237')e ?\\[2J"
    hears anna 'bert: 0\{499\}7'
    hears chat 'bert: 0\{499\}7'
    check 'a long line is not said in pieces of 1,000' [ "$(grep -c '^bert: 0\{1000\}$' "$out/anna.server")" -eq 2 ]
    echo 'welcome' >&7
    hears anna 'root: welcome'
    hears bert 'root: welcome'
}

# ---- dpu_channel ----------------------------------------------------------------------------------------------------

# The program for the DOCA Comm Channel in both languages and by both compilers, as one file and as several with the names that
# DOCA's headers have; and each function is in the table.
channels() {
    header=examples/doca_comm_channel.h
    for compiler in 'gcc -std=c99' 'clang -std=c99' 'g++ -x c++ -std=c++11' 'clang++ -x c++ -std=c++11'; do
        has "${compiler%% *}" || { skip "there is no ${compiler%% *}" && continue; }
        channels_in_files "$compiler"
    done
    if has clang-format && clang-format --version | grep -q 'version 14\.'; then
        check "$header is not formatted" clang-format --dry-run -Werror "$header"
    fi
    channel_table
    [ "$(uname -s)" = Linux ] || { skip 'event channels need Linux' && return; }
    CCI_SISCI_DIR=$(mktemp -d) || { fail 'no directory' && return; }
    CCI_CONFIG=$out/channel.ini
    export CCI_SISCI_DIR CCI_CONFIG
    for transport in udp sisci; do
        printf '[dpu]\ntransport = %s\n' "$transport" >"$CCI_CONFIG"
        [ $transport = sisci ] || echo 'interface = lo' >>"$CCI_CONFIG"
        channel_talk gcc clang++
        channel_talk g++ clang
        [ $transport = sisci ] || channel_on_arm64
    done
    rm -rf "$CCI_SISCI_DIR"
    unset CCI_SISCI_DIR CCI_CONFIG
}

# channels_in_files COMPILER: the implementation in one file, the program in another, which includes what DOCA's do.
channels_in_files() {
    mkdir -p "$out/channel"
    for file in doca_dev.h doca_error.h; do echo '#include "doca_comm_channel.h"' >"$out/channel/$file"; done
    printf '#define DOCA_COMM_CHANNEL_IMPLEMENTATION\n#include "doca_comm_channel.h"\n' >"$out/channel/channel.c"
    printf '#include <doca_dev.h>\n#include <doca_error.h>\n#include <doca_comm_channel.h>\n' >"$out/channel/program.c"
    sed '/^#define DOCA_COMM_CHANNEL_IMPLEMENTATION/d; /^#include "doca_comm_channel.h"/d' examples/dpu_channel.c \
        >>"$out/channel/program.c"
    # shellcheck disable=SC2086
    check "$1 examples/dpu_channel.c" $1 $warnings -fsyntax-only -I. examples/dpu_channel.c
    # shellcheck disable=SC2086
    check "$1, two files" $1 $warnings -I. -Iexamples -I"$out/channel" -o "$out/dpu_channel-${1%% *}" \
        "$out/channel/channel.c" "$out/channel/program.c" -pthread
}

# A DPU is another computer, of arm64 processors: a static program for one, in an emulator, and one of this machine.
channel_on_arm64() {
    for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do has $tool || { skip "there is no $tool" && return; }; done
    echo '#include <stdio.h>' | aarch64-linux-gnu-gcc -xc -c -o "$out/arm64.o" - 2>/dev/null || { skip 'there is no C library for arm64' && return; }
    # shellcheck disable=SC2086
    check 'arm64 warns' aarch64-linux-gnu-gcc -std=c99 -O2 $warnings -I. -fsyntax-only examples/dpu_channel.c
    check 'arm64: no static program' aarch64-linux-gnu-gcc -static -std=c99 -O2 -I. -o "$out/dpu_channel.arm64" examples/dpu_channel.c -pthread
    # shellcheck disable=SC2016 # the arguments are the new program's
    printf '#!/bin/sh\nexec qemu-aarch64-static "%s" "$@"\n' "$out/dpu_channel.arm64" >"$out/dpu_channel-arm64"
    chmod +x "$out/dpu_channel-arm64"
    channel_talk arm64 gcc
    channel_talk gcc arm64
}

# Each function that the header declares, and each that the page for those who come from DOCA names, is in the header's table.
channel_table() {
    sed -n 's/^ \*     \([a-z_]*\)  *[^ ].*/\1/p' "$header" | sort -u >"$out/channel.table"
    sed -n 's/^doca_error_t doca_comm_channel_\([a-z_]*\)(.*/\1/p' "$header" | sort -u >"$out/channel.declared"
    check 'no functions are declared' grep -qx ep_sendto "$out/channel.declared"
    while read -r function; do
        check "$function is not in the table of $header" grep -qx "$function" "$out/channel.table"
    done <"$out/channel.declared"
    sed -n '/^## DOCA Comm Channel/,$s/^| \(`.*`\) | .* | .*/\1/p' .github/COMING_FROM.md | sed 's/ | .*//' |
        tr -d '` ' | tr ',' '\n' | sort -u >"$out/channel.page"
    check 'the page names no functions' grep -qx ep_sendto "$out/channel.page"
    while read -r function; do
        check "$header does not declare $function" grep -qx "$function" "$out/channel.declared"
    done <"$out/channel.page"
}

# channel_talk DPU HOST: programs by these two compilers.
channel_talk() {
    dpu=$out/dpu_channel-$1 host=$out/dpu_channel-$2
    if [ ! -x "$dpu" ] || [ ! -x "$host" ]; then return; fi
    timeout 120 "$dpu" dpu storage >"$out/channel.dpu" 2>&1 &
    server=$!
    check "$1: the service is not ready" wait_for "$out/channel.dpu" '^ready$'
    check "$2: no answer" [ "$(timeout 60 "$host" host storage 'hello, dpu' dpu)" = 'HELLO, DPU' ]
    check "$2: a long text does not come back" [ "$(timeout 60 "$host" host storage "$(printf '%07000d' 7)" | wc -c)" -eq 7001 ]
    check "$2: a service that is not there is found" status_of 1 "$host" host elsewhere hello dpu
    check "$2: a device that is not there is found" status_of 1 "$host" host storage hello nonsense
    check "$2: half a command is taken" status_of 2 "$host" host storage
    end_server
    check "$1 has not received the text" grep -qx 'received: hello, dpu' "$out/channel.dpu"
    cat "$out/channel.dpu"
}

# ---- sisci ----------------------------------------------------------------------------------------------------------

# Two processes of the SISCI example, with a directory of their own.
shared() {
    build_examples || return
    CCI_SISCI_DIR=$(mktemp -d) || { fail 'no directory' && return; }
    export CCI_SISCI_DIR
    check 'a text goes to a segment that is not there' status_of 1 build/sisci lost
    build/sisci >"$out/sisci.killed" 2>&1 &
    owner=$!
    check 'the owner is not ready' wait_for "$out/sisci.killed" '^ready$'
    check 'a second owner takes the same segment' status_of 1 build/sisci
    kill -9 "$owner"
    wait "$owner"
    touch -a -t 200001010000 "$CCI_SISCI_DIR" # the last look for what the dead have left was long ago: the next who comes looks
    timeout 60 build/sisci >"$out/sisci.owner" 2>&1 &
    owner=$!
    check 'the successor of a killed owner is not ready' wait_for "$out/sisci.owner" '^ready$'
    check 'the text was not written' status_of 0 build/sisci 'hello, segment'
    check 'the text did not arrive' wait_for "$out/sisci.owner" '^received: hello, segment$'
    check 'the owner failed' wait "$owner"
    cat "$out/sisci.owner"
    check 'something is left behind' rmdir "$CCI_SISCI_DIR"
    unset CCI_SISCI_DIR
}

# ---- cci_cp ---------------------------------------------------------------------------------------------------------

# Names that shells and programs stumble over, empty things, modes, and links that lead in and out.
make_tree() {
    mkdir -p "$1/a directory/deeper" "$1/empty directory"
    head -c 3000000 /dev/urandom >"$1/big"
    head -c 100000 /dev/urandom >"$1/a directory/deeper/-starts with a dash"
    : >"$1/a directory/empty file"
    echo 'x' >"$1/new
line"
    echo 'y' >"$1/ünïcödé \\ \"quoted\" *?"
    chmod 640 "$1/big"
    chmod 755 "$1/a directory/empty file"
    i=0
    while [ "$i" -lt 200 ]; do
        echo "$i" >"$1/a directory/small $i"
        i=$((i + 1))
    done
}

modes() {
    (cd "$1" && find . -type f -exec ls -ld {} + | cut -c 1-10 | sort | uniq -c)
}

copies() {
    build_examples || return
    cp=build/cci_cp from=$out/cp/from to=$out/cp/to outside=$out/cp/outside
    mkdir -p "$from" "$to" "$outside"
    make_tree "$from/tree"
    "$cc" -std=gnu11 -O1 -I. -o "$out/cp_liar" tests/tools/cp_liar.c -pthread || { fail 'cp_liar.c does not compile' && return; }
    serve cp "$cp" -l -q "$to" || return

    check 'a tree is copied' status_of 0 "$cp" -q "$from/tree" "$uri"
    check 'the copy of a tree is the tree' diff -r "$from/tree" "$to/tree"
    check 'modes are preserved' [ "$(modes "$from/tree")" = "$(modes "$to/tree")" ]
    check 'copying again is no error' status_of 0 "$cp" -q "$from/tree" "$uri"
    check 'copying again changes nothing' diff -r "$from/tree" "$to/tree"
    check 'a file is copied into a directory below' status_of 0 "$cp" -q "$from/tree/big" "$uri/a/b"
    check 'the copy below is the file' cmp "$from/tree/big" "$to/a/b/big"

    head -c 20000000 /dev/urandom >"$from/resumed"
    head -c 9000001 "$from/resumed" >"$to/.resumed.cci-part"
    check 'what was interrupted is resumed' status_of 0 "$cp" -q "$from/resumed" "$uri"
    check 'what was resumed is whole' cmp "$from/resumed" "$to/resumed"
    check 'no part is left' [ ! -e "$to/.resumed.cci-part" ]
    head -c 20000000 /dev/urandom >"$from/strange"
    head -c 9000001 /dev/urandom >"$to/.strange.cci-part"
    check 'a part that is something else is replaced' status_of 0 "$cp" -q "$from/strange" "$uri"
    check 'what replaced it is whole' cmp "$from/strange" "$to/strange"

    ln -s ../tree/big "$from/tree/link in"
    ln -s ../../../outside "$from/tree/link out"
    status_of 0 "$cp" -q "$from/tree" "$uri" || echo 'skipped links may be told by the status'
    check 'links are skipped unless asked for' [ ! -L "$to/tree/link in" ]
    status_of 0 "$cp" -q --links "$from/tree" "$uri" || echo 'skipped links may be told by the status'
    check 'links that stay within are copied' [ -L "$to/tree/link in" ]
    check 'links that lead out are not' [ ! -L "$to/tree/link out" ]

    check 'a target above the directory is refused' status_of 1 "$cp" -q "$from/tree/big" "$uri/../outside"
    check 'nothing was written there' [ ! -e "$outside/big" ]
    ln -s ../../outside "$to/trap"
    check 'a link in the way is not followed' status_of 1 "$cp" -q "$from/tree/big" "$uri/trap"
    check 'nothing was written behind it' [ ! -e "$outside/big" ]
    check 'a file that is not there is an error' status_of 1 "$cp" -q "$from/missing" "$uri"
    check 'wrong arguments give 2' status_of 2 "$cp" -q "$from/tree/big"
    check 'the receiver has survived all this' status_of 0 "$cp" -q "$from/tree/big" "$uri/last"
    end_server
    cat "$server_log"

    serve cp-once "$cp" -l --once -q "$to" || return
    check 'a sender is served' status_of 0 "$cp" -q "$from/tree/big" "$uri/once"
    check 'with --once the receiver ends after it' wait "$server"
    copies_tell
    copies_die
    copies_lie
    copies_holes
    copies_unchanged
    copies_many
    copies_space
    copies_interrupted
    copies_width
    copies_key
}

# What is sparse stays so, also when the rest of it is copied later.
copies_holes() {
    mkdir -p "$to/holes"
    truncate -s 300000000 "$from/sparse"
    head -c 100000 /dev/urandom | dd of="$from/sparse" bs=4096 seek=30000 conv=notrunc 2>"$out/dd"
    truncate -s 500000 "$from/sparse little"
    printf 'x' | dd of="$from/sparse little" bs=4096 seek=50 conv=notrunc 2>"$out/dd"
    [ "$(du -k "$from/sparse" | cut -f 1)" -lt 2000 ] || { skip 'the file system keeps no holes' && return; }
    serve cp-holes "$cp" -l -q "$to/holes" || return
    check 'sparse files are copied' status_of 0 "$cp" -q "$from/sparse" "$from/sparse little" "$uri"
    check 'the copy of a sparse file is the file' cmp "$from/sparse" "$to/holes/sparse"
    check 'a little one too' cmp "$from/sparse little" "$to/holes/sparse little"
    check 'the holes are filled' [ "$(du -k "$to/holes/sparse" | cut -f 1)" -lt 2000 ]
    check 'those of the little one are filled' [ "$(du -k "$to/holes/sparse little" | cut -f 1)" -lt 100 ]
    check 'what is the same is copied' status_of 0 "$cp" "$from/sparse" "$uri" >"$out/cp.holes"
    check 'it does not say so' grep -q '^copied 0 B in .*; 1 unchanged$' "$out/cp.holes"
    mv "$to/holes/sparse" "$to/holes/.sparse.cci-part"
    truncate -s 200000000 "$to/holes/.sparse.cci-part"
    check 'the rest, a hole, is copied' status_of 0 "$cp" "$from/sparse" "$uri" >"$out/cp.holes"
    check 'more than the rest came' grep -q '^copied 0 B in ' "$out/cp.holes"
    check 'what was resumed is another file' cmp "$from/sparse" "$to/holes/sparse"
    check 'the holes are filled when the rest comes' [ "$(du -k "$to/holes/sparse" | cut -f 1)" -lt 2000 ]
    end_server
}

# Files that are there already are compared, not believed, and counted apart.
copies_unchanged() {
    mkdir -p "$from/same/below" "$to/same"
    for i in 1 2 3 4 5; do head -c 3000 /dev/urandom >"$from/same/below/$i"; done
    head -c 700000 /dev/urandom >"$from/same/long"
    head -c 2000000 /dev/urandom >"$from/same/longer"
    serve cp-same "$cp" -l --once "$to/same" || return
    check 'files are copied' status_of 0 "$cp" -q "$from/same" "$uri"
    wait "$server"
    cp -p "$from/same/below/1" "$out/before"
    ls -i "$to/same/same/below/2" >"$out/inode"
    head -c 3000 /dev/urandom >"$from/same/below/1"
    head -c 600000 "$to/same/same/long" >"$from/same/long"
    head -c 100000 /dev/urandom >>"$from/same/long"
    touch -r "$out/before" "$from/same/below/1"
    touch -r "$to/same/same/long" "$from/same/long"
    serve cp-same "$cp" -l --once "$to/same" || return
    status_of 0 "$cp" "$from/same" "$uri" >"$out/cp.same"
    check 'files that are there are no error' [ $? -eq 0 ]
    wait "$server"
    cat "$out/cp.same" "$server_log"
    check 'the sender counts them wrong' grep -q '^copied 703 kB in .*; 5 unchanged$' "$out/cp.same"
    check 'the receiver counts them wrong' grep -q '^received 2 files, 703000 bytes, 5 unchanged, 0 errors$' "$server_log"
    check 'what changed behind its time is not copied' diff -r "$from/same" "$to/same/same"
    check 'what is the same was written again' [ "$(cat "$out/inode")" = "$(ls -i "$to/same/same/below/2")" ]
    check 'a part is left' [ -z "$(find "$to/same" -name '*.cci-part')" ]
}

# Many small files, and large ones between them whose offers are waited for: all arrive, and directories keep their times.
copies_many() {
    mkdir -p "$from/many" "$to/many"
    i=0
    while [ "$i" -lt 40 ]; do
        mkdir -p "$from/many/$((i % 7))/$i"
        head -c 1100000 /dev/urandom >"$from/many/$((i % 7))/$i/large"
        split -b 1000 -a 4 "$from/fine" "$from/many/$((i % 7))/$i/small"
        i=$((i + 1))
    done
    head -c 2000000 /dev/urandom | split -b 1000 -a 4 - "$from/many/0/"
    find "$from/many" -type d -exec touch -d '2020-02-02 02:02:02' {} +
    serve cp-many "$cp" -l -q --once "$to/many" || return
    check 'many files are copied' status_of 0 "$cp" -q "$from/many" "$uri"
    wait "$server"
    check 'the copies are the files' diff -r "$from/many" "$to/many/many"
    check 'a directory got its time before its last file' [ -z "$(find "$to/many/many" -type d -newermt '2020-02-03')" ]
    rm -rf "$from/many" "$to/many"
}

# A disk on which there is too little space for all, but enough for what is missing.
copies_space() {
    mkdir -p "$to/small"
    unshare -m true 2>"$out/unshare" || { skip 'no file system can be made' && return; }
    # shellcheck disable=SC2016
    serve cp-space unshare -m sh -c 'mount -t tmpfs -o size=8m tmpfs "$1" && exec "$0" -l "$1"' "$cp" "$to/small" || return
    head -c 3000000 /dev/urandom >"$from/space one"
    head -c 3000000 /dev/urandom >"$from/space two"
    head -c 9000000 /dev/urandom >"$from/space three"
    check 'what finds room is copied' status_of 0 "$cp" -q "$from/space one" "$uri"
    check 'what does not find room is begun' status_of 1 "$cp" "$from/space two" "$from/space three" "$uri" \
        >"$out/cp.space" 2>&1
    cat "$out/cp.space"
    check 'it does not say why' grep -q 'the receiver.s disk has [0-9.]* MB free, and 12\.0 MB are needed: nothing was copied' \
        "$out/cp.space"
    check 'what is there counts' status_of 0 "$cp" "$from/space one" "$from/space two" "$uri" >"$out/cp.space"
    check 'not only what is missing was copied' grep -q '^copied 3\.00 MB in .*; 1 unchanged$' "$out/cp.space"
    truncate -s 1000000000 "$from/space hole"
    check 'a hole takes space' status_of 0 "$cp" -q "$from/space hole" "$uri"
    end_server
}

# stands LIE: a sender that stands in the middle of a file, as $sender.
stands() {
    : >"$out/cp.stands"
    timeout 60 "$out/cp_liar" "$uri" "$1" >"$out/cp.stands" 2>&1 &
    sender=$!
    check 'the sender does not stand' wait_for "$out/cp.stands" '^it stands$'
}

# A side that is interrupted says how to go on; the part is kept, or removed by choice of either side.
copies_interrupted() {
    mkdir -p "$to/stop"
    serve cp-stop "$cp" -l --once "$to/stop" || return
    stands stand
    kill -TERM "$sender"
    wait "$sender"
    check 'the status hides the signal' [ $? -ne 0 ]
    cat "$out/cp.stands"
    check 'the sender does not say how to go on' grep -q 'the same command again copies what is missing' "$out/cp.stands"
    wait "$server"
    check 'the part is gone' [ -s "$to/stop/.told.cci-part" ]
    serve cp-stop "$cp" -l --once "$to/stop" || return
    stands stand-remove
    kill -TERM "$sender"
    wait "$sender"
    wait "$server"
    check 'the part is kept though the sender said otherwise' [ ! -e "$to/stop/.told.cci-part" ]
    serve cp-stop "$cp" -l --remove-parts "$to/stop" || return
    stands stand
    check 'there is no part' [ -e "$to/stop/.told.cci-part" ]
    end_server
    cat "$server_log"
    check 'the receiver does not say how to go on' grep -q 'start it again at the same port' "$server_log"
    check 'the part is kept though the receiver said otherwise' [ ! -e "$to/stop/.told.cci-part" ]
    wait "$sender"
    status_of 1 "$cp" "$from/fine" "$from/missing" udp://127.0.0.1:1 >"$out/cp.missing" 2>&1
    check 'a source that is not there is no error' [ $? -eq 0 ]
    cat "$out/cp.missing"
    check 'it connects before it looks' [ "$(sed -n '$p' "$out/cp.missing")" = 'cci_cp: nothing was copied' ]
}

# The bar fits the terminal, also when that changes. The receiver is stopped: the sender waits.
copies_width() {
    has python3 || { skip 'there is no python3' && return; }
    serve cp-width "$cp" -l "$to" || return
    receiver=$(ps -o pid= --ppid "$server" | tr -d ' ')
    kill -STOP "$receiver"
    check 'the bar does not follow the terminal' timeout 60 python3 tests/tools/cp_width.py "$cp" --timeout 50 "$from/fine" "$uri"
    kill -CONT "$receiver"
    end_server
}

# With a key only who has the same one may write.
copies_key() {
    mkdir -p "$to/secret"
    check 'a key is made' status_of 0 "$cp" --new-key "$out/cp.key"
    check 'a key is made over another' status_of 1 "$cp" --new-key "$out/cp.key"
    check 'others may read the key' [ -z "$(find "$out/cp.key" -perm /077)" ]
    status_of 0 "$cp" --new-key "$out/cp.other"
    check 'two keys are the same' sh -c '! cmp -s "$1" "$2"' - "$out/cp.key" "$out/cp.other"
    check 'a file without a key is taken' status_of 1 "$cp" --key Makefile -l "$to/secret"
    has_sodium || { skip 'there is no libsodium' && return; }
    serve cp-key "$cp" --key "$out/cp.key" -l -q "$to/secret" || return
    check 'who has the key is not served' status_of 0 "$cp" --key "$out/cp.key" -q "$from/tree/big" "$uri"
    check 'what came is another file' cmp "$from/tree/big" "$to/secret/big"
    check 'who has another key is served' status_of 1 "$cp" --key "$out/cp.other" --timeout 1 -q "$from/fine" "$uri"
    check 'who has no key is served' status_of 1 "$cp" --timeout 1 -q "$from/fine" "$uri"
    check 'a stranger wrote' [ ! -e "$to/secret/fine" ]
    check 'a transport that does not encrypt is taken' status_of 1 "$cp" --key "$out/cp.key" -q "$from/fine" sisci://4:1
    chmod 644 "$out/cp.key"
    check 'a key that others may read is taken' status_of 1 "$cp" --key "$out/cp.key" -q "$from/fine" "$uri"
    end_server
}

# What cci_cp says: only what has arrived whole is counted; on a terminal there is a bar with rate and time left.
copies_tell() {
    mkdir -p "$to/tell/failing"
    head -c 100000 /dev/urandom >"$from/failing"
    head -c 2000 /dev/urandom >"$from/fine"
    serve cp-tell "$cp" -l --once "$to/tell" || return
    status_of 1 "$cp" "$from/failing" "$from/fine" "$uri" >"$out/cp.said"
    check 'a file whose name a directory has is no error' [ $? -eq 0 ]
    cat "$out/cp.said"
    check 'the sender counts what failed' grep -q '^copied 2\.00 kB in .*/s; 1 could not be copied$' "$out/cp.said"
    wait "$server"
    check 'the receiver counts what failed' grep -q '^received 1 files, 2000 bytes, 0 unchanged, 1 errors$' "$server_log"
    has script || return
    head -c 30000000 /dev/urandom >"$from/shown"
    serve cp-show "$cp" -l --once -q "$to/tell" || return
    timeout 60 script -qec "'$cp' '$from/shown' '$uri'" "$out/cp.shown" >/dev/null
    tr '\r' '\n' <"$out/cp.shown" | sed -n '1p;$p'
    check 'the bar does not become full' grep -q ' 100 % \[=\{20\}\]  *30\.0 MB  *[0-9.]* [kMG]B/s' "$out/cp.shown"
    wait "$server"
}

# One side is killed in the middle of a file: the other one notices, and the next time the rest is copied.
copies_die() {
    mkdir -p "$to/die"
    head -c 40000000 /dev/urandom >"$from/interrupted"
    # The system kills who writes beyond the limit: 20,000 blocks of 512 or 1,024 bytes.
    # shellcheck disable=SC2016
    serve cp-die sh -c 'ulimit -c 0; ulimit -f 20000; exec "$@"' - "$cp" -l -q "$to/die" || return
    began=$(date +%s)
    if has script; then # makes a terminal
        check 'a killed receiver is not noticed' status_of 1 \
            script -qec "'$cp' --timeout 2 '$from/interrupted' '$uri'" "$out/cp.shown" >/dev/null
        check 'the bar shows neither share, bytes, rate nor time left' \
            grep -q 'interrupted  *[1-9][0-9] % \[==* *\]  *[0-9.]* MB  *[0-9.]* [kM]B/s  *[0-9]*:[0-9][0-9]' "$out/cp.shown"
    else
        skip 'there is no script(1) to make a terminal'
        check 'a killed receiver is not noticed' status_of 1 "$cp" --timeout 2 "$from/interrupted" "$uri"
    fi
    check 'a killed receiver is noticed late' [ $(($(date +%s) - began)) -lt 20 ]
    check 'the name is there before the file is whole' [ ! -e "$to/die/interrupted" ]
    wait "$server"
    serve cp-again "$cp" -l -q --once --timeout 2 "$to/die" || return
    check 'the rest is not copied' status_of 0 "$cp" "$from/interrupted" "$uri" >"$out/cp.again"
    cat "$out/cp.again"
    check 'all was copied again' grep -q 'interrupted  40000000 bytes, [0-9]\{7,\} of them there already' "$out/cp.again"
    check 'only the rest counts' grep -q '^copied [123]\(\.[0-9]*\|[0-9]\.[0-9]\) MB ' "$out/cp.again"
    check 'what was interrupted is not whole' cmp "$from/interrupted" "$to/die/interrupted"
    wait "$server"
    serve cp-orphan "$cp" -l -q --once --timeout 2 "$to/die" || return
    timeout 60 "$out/cp_liar" "$uri" die
    wait "$server"
    check 'a killed sender is not noticed' [ $? -eq 1 ]
    check 'the receiver does not tell' grep -q 'sender dropped' "$server_log"
    cat "$server_log"
}

# Senders that lie: refused WHAT LIE [PATH [TARGET]] ends with an error, and the receiver goes on.
refused() {
    refused_what=$1
    shift
    check "it is taken: $refused_what" status_of 1 "$out/cp_liar" "$uri" "$@"
}
copies_lie() {
    mkdir -p "$to/lie"
    serve cp-lie "$cp" -l -q --timeout 2 "$to/lie" || return
    check 'the truth is taken' status_of 0 "$out/cp_liar" "$uri" truth told
    check 'what was told is there' [ "$(cat "$to/lie/told")" = hello ]
    check 'a set-user-id bit is copied' [ -f "$to/lie/told" ] && [ ! -u "$to/lie/told" ] && [ ! -g "$to/lie/told" ]
    refused 'a checksum that differs' digest differs
    refused 'a file that is longer than it said' long differs
    refused 'a file that is shorter than it said' short differs
    refused 'data that begins behind the beginning' gap differs
    check 'of these something is left' [ ! -e "$to/lie/differs" ]
    check 'a directory is taken' status_of 0 "$out/cp_liar" "$uri" directory a
    for path in ../escaped /escaped "$PWD/$out/escaped" a/../../escaped ./escaped .. . '' a//escaped escaped/ a/./escaped; do
        refused "a file called '$path'" truth "$path"
        refused "a directory called '$path'" directory "$path"
        refused "a link called '$path'" link "$path" told
    done
    for target in ../escaped /etc/passwd a/../../escaped ''; do refused "a link to '$target'" link link "$target"; done
    check 'something escaped' [ -z "$(find "$out/cp" "$out" / -maxdepth 1 -name 'escaped*')" ]
    check 'a link was made' [ ! -L "$to/lie/link" ]
    check 'a link to a file beside it is not taken' status_of 0 "$out/cp_liar" "$uri" link link told
    refused 'a file behind a link to a file' truth link/behind
    for lie in zero endless beyond cut unknown slot crowd hole; do refused "nonsense: $lie" "$lie"; done
    check 'the receiver has not survived that' status_of 0 "$cp" -q "$from/fine" "$uri"
    end_server
    cat "$server_log"
}

# ---- the tools that measure -------------------------------------------------------------------------------------------

# cci_info --json is JSON, whatever the names in the configuration are, and says the same as the text.
devices_json() {
    has python3 || { skip 'there is no python3' && return; }
    build_examples || return
    printf '[lo]\ntransport = udp\ninterface = lo\n[a "name\\ of \377\303\251]\ntransport = udp\ninterface = lo\nmtu = 1500\n' \
        >"$out/dev\"ices.ini"
    check 'cci_info --json failed' env CCI_CONFIG="$out/dev\"ices.ini" build/cci_info --json >"$out/info.json"
    check 'the text failed' env CCI_CONFIG="$out/dev\"ices.ini" build/cci_info >"$out/info.txt"
    cat "$out/info.json"
    check 'it is not the JSON that its manual describes' python3 - "$out/info.json" "$out/info.txt" <<'END'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file: info = json.load(file)
with open(sys.argv[2], encoding="utf-8", errors="replace") as file: text = file.read()
assert text.startswith("CCI %s, ABI %d, " % (info["version"], info["abi"])) and info["config"].endswith('/dev"ices.ini')
assert info["threads"] is True and [t["name"] for t in info["transports"]] == ["verbs", "sisci", "udp"]
devices = [d for t in info["transports"] for d in t["devices"]]
assert [d["name"] for d in devices] == ["lo", 'a "name\\ of \ufffd\u00e9'], devices
assert sum(d["default"] for d in devices) == 1 and devices[0]["default"] and all(d["up"] is True for d in devices)
assert [d["order"] for d in devices] == [1, 2] and devices[0]["max_send_size"] > 1000
assert "mtu = 1500" in devices[1]["configured"] or "mtu=1500" in devices[1]["configured"], devices[1]
for t in info["transports"]: assert bool(t["reason"]) == (not t["devices"]), t
for d in devices:
    caps = d["caps"]
    assert caps["can"] == ["ordered", "multicast", "rma", "atomics of 4", "atomics of 8", "fence", "wake"] and caps["max_rma_length"] is None, caps
    assert (caps["max_request_len"], caps["max_connections"]) == (1024, 2**20) and caps["max_send_bufs"] == 65536, caps
    assert "can             ordered, multicast, rma, atomics of 4, atomics of 8, fence, wake\n" in text and "1048576 connections, 1024 bytes with a request" in text
for d in devices: assert d["pci"] is None and (d["rate"] is None or d["rate"] > 0) and isinstance(d["info"], str)
END
    CCI_CONFIG="$out/dev\"ices.ini" build/cci_info -d lo --json >"$out/info.json"
    check '-d is not heeded' python3 -c 'import json, sys
assert [d["name"] for t in json.load(open(sys.argv[1]))["transports"] for d in t["devices"]] == ["lo"]' "$out/info.json"
    check '--try failed' env CCI_CONFIG="$out/dev\"ices.ini" build/cci_info --try >"$out/info.txt"
    check 'a device was not tried' [ "$(grep -cE '^    tried           1000 messages there and back, round trip [0-9.]+ us, [0-9.]+ at best, packets of up to [0-9]+ bytes, [0-9]+ sent, [0-9]+ of them again$' "$out/info.txt")" -eq 2 ]
    CCI_CONFIG="$out/dev\"ices.ini" build/cci_info --try --json >"$out/info.json"
    check '--try --json does not tell what was tried' python3 -c 'import json, sys
for t in json.load(open(sys.argv[1], encoding="utf-8"))["transports"]:
    for d in t["devices"]:
        tried = d["tried"]
        assert tried["status"] == "success" and tried["messages"] == 1000 and 0 < tried["min_rtt_ns"] <= 1e10 and tried["packets_sent"] >= 1000, tried' "$out/info.json"
    check 'an unknown option gives 2' status_of 2 build/cci_info --jason
    check '-d without a device gives 2' status_of 2 build/cci_info -d
}

measures() {
    build_examples || return
    perf=build/cci_perf
    check 'cci_info shows devices' status_of 0 build/cci_info
    check 'shared memory does not work, or cci_info can not tell' sh -c 'build/cci_info -d sisci --try | grep -qx "    tried           1000 messages there and back"'
    for each in verbs sisci udp; do
        check "cci_info shows neither devices of $each nor why there are none" sh -c \
            'build/cci_info | grep -A 1 "^$1" | grep -qE "^$1: no devices: .*[a-z]|^  [0-9]+\. .*\((up|not up)"' - "$each"
    done
    check 'wrong arguments give 2' status_of 2 "$perf" -t nonsense udp://127.0.0.1:1
    for sleeping in '' -b; do
        # shellcheck disable=SC2086 # an option or nothing
        serve "perf$sleeping" "$perf" $sleeping || return
        for attribute in ro ru; do
            for test in lat rate bw; do
                # shellcheck disable=SC2086
                check "$test $attribute $sleeping" status_of 0 \
                    "$perf" "$uri" $sleeping --verify -t "$test" -a "$attribute" -n 2000 -s 0,8,64,1000
            done
            for test in write_bw read_bw write_lat read_lat; do
                # shellcheck disable=SC2086
                check "$test $attribute $sleeping" status_of 0 \
                    "$perf" "$uri" $sleeping --verify -t "$test" -a "$attribute" -n 100 -s 1,4k,1000001
            done
        done
        # shellcheck disable=SC2086
        for test in lat rate bw; do
            # shellcheck disable=SC2086
            check "$test uu $sleeping" status_of 0 "$perf" "$uri" $sleeping --verify -t "$test" -a uu -n 1000
        done
        end_server
        cat "$server_log"
        # shellcheck disable=SC2086
        serve "perf-mc$sleeping" "$perf" -d lo $sleeping || return
        for test in rate bw; do
            # shellcheck disable=SC2086
            check "$test mc $sleeping" status_of 0 "$perf" -d lo "$uri" $sleeping --verify -t "$test" -a mc \
                --group udp://239.77.9.1:29477 -n 1000 -w 16 -s 64 >"$out/perf.mc"
            cat "$out/perf.mc"
            check 'no multicast message came' awk '$2 == 1000 { came = 1000 - $5 } END { exit came < 1 }' "$out/perf.mc"
        done
        end_server
    done
    check 'multicast without a group is refused' status_of 2 "$perf" udp://127.0.0.1:1 -t rate -a mc
    check 'multicast goes both ways' status_of 2 "$perf" udp://127.0.0.1:1 -t lat -a mc --group udp://239.77.9.1:29477

    serve perf-formats "$perf" || return
    "$perf" "$uri" -t rate -n 100 -s 8,16 --silent --format csv >"$out/perf.csv"
    check 'each line of the CSV has 21 fields' awk -F , 'NF != 21 { exit 1 } END { exit NR != 3 }' "$out/perf.csv"
    "$perf" "$uri" -t lat -n 100 -s 8,16 --no-copy --format json >"$out/perf.json"
    check 'the JSON is a list of two objects' awk '
        { text = text $0 } END { exit !(text ~ /^\[ *\{[^{}]*"median_us": [0-9.]+[^{}]*\}, *\{[^{}]*\} *\]$/) }' "$out/perf.json"
    cat "$out/perf.csv" "$out/perf.json"
    has python3 && check 'the JSON is no JSON' python3 -m json.tool "$out/perf.json" >/dev/null
    # A client that makes or expects one wrong bit in some messages and RMAs.
    sed 's/    x ^= x >> 32;/&\n    if (number % 7 == 0 \&\& position == 3) x ^= 1;/' examples/cci_perf.c >"$out/perf-lies.c"
    check 'a client that lies does not compile' "$cc" -O1 -I. -o "$out/perf-lies" "$out/perf-lies.c" -pthread
    for attribute in ro ru; do
        for test in lat rate bw write_bw read_bw write_lat read_lat; do
            check "--verify does not notice a wrong bit: $test $attribute" status_of 1 \
                "$out/perf-lies" "$uri" --verify -t "$test" -a "$attribute" -n 200 -s 64
            check "the truth is taken after it: $test" status_of 0 "$perf" "$uri" --verify -t "$test" -a "$attribute" -n 200 -s 64
        done
    done
    end_server

    for sleeping in '' -b; do
        # shellcheck disable=SC2086
        serve "pingpong$sleeping" build/pingpong $sleeping || return
        # shellcheck disable=SC2086
        check "pingpong $sleeping" status_of 0 build/pingpong $sleeping -n 1000 -s 200 "$uri"
        end_server
    done
}

# crowd_client OPTIONS...: a client whose output, as JSON, is in $out/crowd.json.
crowd_client() {
    status_of 0 "$perf" "$uri" --format json "$@" >"$out/crowd.json" && cat "$out/crowd.json"
}
# that EXPRESSION: holds of the last client's result r.
that() {
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))[0]; sys.exit(not eval(sys.argv[2]))' "$out/crowd.json" "$1"
}

# Many connections, threads, a rate; what the client says while it waits; plots.
crowds() {
    has python3 || { skip 'there is no python3' && return; }
    make CC="$cc" build/cci_perf || { fail 'cci_perf does not compile' && return; }
    perf=build/cci_perf
    check 'a server that is not there is found' status_of 1 "$perf" udp://127.0.0.1:9 -t lat 2>"$out/trying"
    cat "$out/trying"
    check 'nobody says what is waited for' grep -q 'trying to connect to udp://127.0.0.1:9' "$out/trying"
    check 'more threads than connections' status_of 2 "$perf" udp://127.0.0.1:9 -t lat -T 2
    check 'a rate of nonsense' status_of 2 "$perf" udp://127.0.0.1:9 -t lat --rate -3
    check 'no connections' status_of 2 "$perf" udp://127.0.0.1:9 -t lat -c 0

    serve crowds "$perf" -d lo || return
    for sleeping in '' -b; do
        for attribute in ro ru; do
            for test in lat rate; do
                # shellcheck disable=SC2086 # an option or nothing
                check "$test $attribute $sleeping of 40" crowd_client $sleeping -d lo -t "$test" -a "$attribute" -c 40 -T 4 \
                    -w 8 -n 4001 --verify
                check "$test $attribute: not all were counted" that 'r["count"] == 4001 and r["errors"] == r["lost"] == 0'
                check "$test $attribute: who?" that 'r["connections"] == 40 and r["threads"] == 4 and r["median_us"] > 0'
            done
        done
        # shellcheck disable=SC2086
        for test in write_bw read_bw write_lat read_lat; do
            # shellcheck disable=SC2086
            check "$test $sleeping of 6" crowd_client $sleeping -d lo -t "$test" -c 6 -T 3 -n 301 -s 4k
            check "$test: not all were counted" that 'r["count"] == 301 and r["errors"] == 0'
        done
    done
    check '10,000 connections' crowd_client -d lo -t lat -c 10000 -T 4 -n 20000
    check 'of 10,000 not all were counted' that 'r["count"] == 20000 and r["errors"] == 0'

    # Both write plots; the browser's theme decides on the colours.
    check 'a plot of latencies' crowd_client -d lo -t lat -n 500 -s 8,64 --svg "$out/lat.svg"
    check 'a plot of a bandwidth' crowd_client -d lo -t bw -n 500 -s 0,64:4k --svg "$out/bw.svg"
    check 'a plot that cannot be written' status_of 1 "$perf" -d lo "$uri" -t lat -n 10 --svg "$out/none/x.svg"
    for plot in lat bw; do
        check "$plot.svg is no plot" python3 - "$out/$plot.svg" <<'END'
import re, sys, xml.dom.minidom
svg = xml.dom.minidom.parse(sys.argv[1])
curves = svg.getElementsByTagName("polyline")
assert len(curves) == (2 if "lat" in sys.argv[1] else 1)
for curve in curves:
    points = [tuple(map(float, p.split(","))) for p in curve.getAttribute("points").split()]
    assert len(points) > 6 and all(0 < x < 760 and 0 < y < 430 for x, y in points), points
    assert all(a[0] <= b[0] for a, b in zip(points, points[1:])), points
    assert "bw" in sys.argv[1] or all(a[1] >= b[1] for a, b in zip(points, points[1:])), points
assert "prefers-color-scheme: dark" in open(sys.argv[1]).read()
END
    done

    # A server that stops for 1 s of 4: with a rate, a quarter of all is late, and known to be; else a message or two.
    child=$(tr -d ' ' 2>/dev/null <"/proc/$server/task/$server/children")
    if [ -n "$child" ]; then
        crowd_client -d lo -t lat --rate 500 -D 4 >"$out/crowd.log" 2>&1 &
        client=$!
        sleep 2
        kill -STOP "$child" && sleep 1 && kill -CONT "$child"
        wait "$client"
        check 'a client of a server that stops' [ $? -eq 0 ]
        cat "$out/crowd.log"
        check 'operations were left out' that 'r["count"] == 2000 and r["due_per_s"] == 500'
        check 'it is not seen that all of a second were late' that 'r["p90_us"] > 300000 and r["max_us"] > 900000'
    else skip 'no list of child processes here'; fi
    end_server
    cat "$server_log"

    # A server with too few buffers for what is under way answers all the same, in order.
    serve few "$perf" -d lo --depth 4 || return
    check 'echoes that must wait' crowd_client -d lo -t lat --rate 1000000 -w 64 -n 20000 --verify --depth 64
    check 'echoes are missing' that 'r["count"] == 20000 and r["errors"] == 0'
    check 'answers that must wait' crowd_client -d lo -t write_bw -w 64 -n 2000 --verify -s 64 --depth 64
    end_server
    cat "$server_log"
}

# ---- both sides of other kinds ----------------------------------------------------------------------------------------

# talk_both_ways COMMAND...: this machine's server to that client, and the other way round; every byte is checked.
talk_both_ways() {
    other=$*
    serve "strangers-$machine" build/cci_perf -d lo || return
    for test in lat rate write_bw read_bw; do
        # shellcheck disable=SC2086
        check "$test of $machine" status_of 0 $other -d lo "$uri" -t "$test" -n 200 -s 1,64,4k --verify
    done
    end_server
    # shellcheck disable=SC2086
    serve "strangers-of-$machine" $other -d lo || return
    for test in lat rate write_bw read_bw; do
        check "$test with $machine" status_of 0 build/cci_perf -d lo "$uri" -t "$test" -n 200 -s 1,64,4k --verify
    done
    end_server
}

# A program for 32 bits, and big-endian ones, talk to one of this machine. The emulators do not know UDP_SEGMENT.
strangers() {
    build_examples || return
    printf '[lo]\ntransport = udp\ninterface = lo\noffload = off\n' >"$out/strangers.ini"
    for machine in i686 mips s390x; do
        compiler=$machine-linux-gnu-gcc emulator=qemu-$machine-static atomic=
        case $machine in
        i686) emulator="env" ;; # the processor itself runs it
        mips) atomic=-latomic ;;
        esac
        has "$compiler" || { skip "there is no $compiler" && continue; }
        has "$emulator" || { skip "there is no $emulator" && continue; }
        # shellcheck disable=SC2086
        "$compiler" -static -O1 -I. -o "$out/cci_perf-$machine" examples/cci_perf.c -pthread $atomic ||
            { fail "cci_perf does not compile for $machine" && continue; }
        talk_both_ways env "CCI_CONFIG=$out/strangers.ini" "$emulator" "$out/cci_perf-$machine"
    done
}

# ---- sisci:// -------------------------------------------------------------------------------------------------------

# through_memory NAME PATTERN PROGRAM: the server says PATTERN after a client was given its sisci:// URI and nothing else.
through_memory() {
    serve "$1" "build/$3" || return
    check "$3: the URI is $uri" [ "${uri#sisci://4:}" != "$uri" ]
    (unset CCI_CONFIG && status_of 0 timeout 60 "build/$3" "$uri" >"$out/$1.client" 2>&1)
    check "$3: the client failed" [ $? -eq 0 ]
    [ -z "$2" ] || check "$3: the server did not print $2" wait_for "$out/$1.server" "$2"
    cat "$out/$1.client" "$server_log"
    end_server
}
memories() {
    [ "$(uname)" = Linux ] || { skip 'shared memory is for Linux' && return; }
    build_examples || return
    CCI_SISCI_DIR=$(mktemp -d) || { fail 'no directory' && return; }
    export CCI_SISCI_DIR
    for progress in poll thread; do
        printf '[shm]\ntransport = sisci\nprogress = %s\n' "$progress" >"$out/memories.ini"
        CCI_CONFIG=$out/memories.ini
        export CCI_CONFIG
        through_memory "hello-sisci-$progress" 'received: hello, world' hello
        through_memory "rma-sisci-$progress" 'written: memory now begins' rma
        through_memory "pingpong-sisci-$progress" '' pingpong
        mkdir -p "$out/memories-$progress"
        head -c 3000000 /dev/urandom >"$out/memories.file"
        if serve "cp-sisci-$progress" build/cci_cp -l "$out/memories-$progress"; then
            (unset CCI_CONFIG && status_of 0 build/cci_cp "$out/memories.file" "$uri")
            check 'cci_cp failed' [ $? -eq 0 ]
            check 'the copy differs' cmp "$out/memories.file" "$out/memories-$progress/memories.file"
            end_server
        fi
        if serve "perf-sisci-$progress" build/cci_perf; then
            (unset CCI_CONFIG && status_of 0 build/cci_perf "$uri" -t lat -D 0.2)
            check 'cci_perf failed' [ $? -eq 0 ]
            end_server
        fi
    done
    unset CCI_CONFIG
    rm -rf "$CCI_SISCI_DIR"
    unset CCI_SISCI_DIR
}
