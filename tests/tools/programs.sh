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
    make CC="$cc" examples && return 0
    fail 'make examples failed'
    return 1
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
    check 'the receiver counts what failed' grep -q '^received 1 files, 2000 bytes, 1 errors$' "$server_log"
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
    for lie in zero endless beyond cut unknown slot; do refused "nonsense: $lie" "$lie"; done
    check 'the receiver has not survived that' status_of 0 "$cp" -q "$from/fine" "$uri"
    end_server
    cat "$server_log"
}

# ---- the tools that measure -------------------------------------------------------------------------------------------

measures() {
    build_examples || return
    perf=build/cci_perf
    check 'cci_info shows devices' status_of 0 build/cci_info
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
                --group udp://239.77.9.1:39477 -n 1000 -w 16 -s 64 >"$out/perf.mc"
            cat "$out/perf.mc"
            check 'no multicast message came' awk '$2 == 1000 { came = 1000 - $5 } END { exit came < 1 }' "$out/perf.mc"
        done
        end_server
    done
    check 'multicast without a group is refused' status_of 2 "$perf" udp://127.0.0.1:1 -t rate -a mc
    check 'multicast goes both ways' status_of 2 "$perf" udp://127.0.0.1:1 -t lat -a mc --group udp://239.77.9.1:39477

    serve perf-formats "$perf" || return
    "$perf" "$uri" -t rate -n 100 -s 8,16 --silent --format csv >"$out/perf.csv"
    check 'each line of the CSV has 17 fields' awk -F , 'NF != 17 { exit 1 } END { exit NR != 3 }' "$out/perf.csv"
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
