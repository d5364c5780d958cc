#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# demo.sh BUILD - shows what the library does, with the examples that `make demo` has built in the directory BUILD.
# Needs a shell, coreutils and cmp; says what happens as it goes; exits with 0 when everything worked.
set -u
bin=${1:-build}
work=$(mktemp -d) || exit 1
server=""
server_log=""
client_log=""

stop_server() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
    server=
}
cleanup() {
    stop_server
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

die() {
    echo "demo: $*" >&2
    for log in "$server_log" "$client_log"; do
        [ -s "$log" ] && echo "--- $(basename "$log" .log) printed:" >&2 && tail -n 20 "$log" >&2
    done
    exit 1
}

# A program that hangs must not hang the demo.
guarded() {
    if command -v timeout >/dev/null; then timeout 60 "$@"; else "$@"; fi
}

# start NAME COMMAND...: runs a server in the background, waits for the line with its URI and leaves that in $uri.
start() {
    server_log=$work/$1-server.log
    shift
    echo "  \$ $* &"
    "$@" >"$server_log" 2>&1 &
    server=$!
    tries=0
    uri=
    while [ -z "$uri" ]; do
        uri=$(sed -n 's/^uri: //p' "$server_log" 2>/dev/null)
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || die "the server printed no URI"
        kill -0 "$server" 2>/dev/null || die "the server ended"
        [ -n "$uri" ] || sleep 0.1
    done
    echo "      process $server waits at $uri"
}

# client NAME COMMAND...: runs a client against it and shows what it prints.
client() {
    client_log=$work/$1-client.log
    shift
    echo "  \$ $*"
    guarded "$@" >"$client_log" 2>&1 || die "the client failed (exit status $?)"
    sed 's/^/      /' "$client_log"
}

# The server may print a moment later than its client ends.
expect() {
    tries=0
    until grep -q "$2" "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || die "expected \"$2\""
        sleep 0.1
    done
}

echo 'Messages: a client connects to another process, says hello, and gets its words back.'
start hello "$bin/hello"
client hello "$bin/hello" "$uri"
expect "$client_log" 'received: hello, world'
expect "$server_log" 'received: hello, world'
echo "      the server printed: $(grep received "$server_log")"
stop_server

echo
echo 'Remote memory: a client writes into the memory of another process, and reads it back.'
start rma "$bin/rma"
client rma "$bin/rma" "$uri"
expect "$client_log" ', 0 of them wrong'
expect "$server_log" 'written: memory now begins'
echo "      the server printed: $(grep written "$server_log")"
stop_server

echo
echo 'How fast: two processes, this machine, every byte through UDP sockets (half round-trip; messages; remote writes).'
start perf "$bin/cci_perf" -d lo
for test in lat bw write_bw; do
    client "perf-$test" "$bin/cci_perf" -d lo "$uri" -t "$test" -D 0.5
done
stop_server

if [ "$(uname)" = Linux ]; then
    echo
    echo 'The same between processes of one machine, through shared memory (sisci://).'
    start perf-sisci "$bin/cci_perf" -d sisci
    for test in lat bw write_bw; do
        client "perf-sisci-$test" "$bin/cci_perf" -d sisci "$uri" -t "$test" -D 0.5
    done
    stop_server
fi

echo
echo 'A file: copied to another process over UDP, compared byte by byte.'
mkdir "$work/from" "$work/to"
head -c 67108864 /dev/urandom >"$work/from/random" || die 'no file to copy'
cp "$bin/cci_cp" "$work/from/program"
start cp "$bin/cci_cp" -l "$work/to"
client cp "$bin/cci_cp" "$work/from/random" "$work/from/program" "$uri"
for file in random program; do
    cmp "$work/from/$file" "$work/to/$file" || die "$file: the copy differs"
    echo "      $file: $(wc -c <"$work/to/$file") bytes, identical"
done
[ -x "$work/to/program" ] || die 'the mode was not preserved'
stop_server

echo
echo 'demo: all of it worked.'
