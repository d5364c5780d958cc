# SPDX-License-Identifier: MIT OR Unlicense
# cookbook.sh - tests of the cookbook's programs in examples/, as users run them, with sanitizers; steps.sh reads this file.
# They use serve, end_server and status_of of programs.sh.

# cook NAME SOURCE FLAGS...: builds a program with sanitizers as $out/NAME. The library is compiled once, for all of them.
cook() {
    recipe=$1 source=$2
    shift 2
    printf '[lo]\ntransport = udp\ninterface = lo\n' >"$out/cookbook.ini"
    CCI_CONFIG=$out/cookbook.ini
    export CCI_CONFIG
    cook_flags=$sanitizers
    works -fsanitize=address,undefined || cook_flags=
    mkdir -p "$out/cook"
    for file in "$source" tests/tools/refuses.h tests/tools/dies.h; do
        sed '/^#define CCI_IMPLEMENTATION/d' "$file" >"$out/cook/$(basename "$file")"
    done
    [ -f "$out/cook/cci.o" ] || cook_library || { fail 'the library does not compile' && return 1; }
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -g1 -O1 $cook_flags -I. -o "$out/$recipe" "$out/cook/$(basename "$source")" "$out/cook/cci.o" "$@" -pthread && return
    fail "$source does not compile"
    return 1
}
cook_library() {
    printf '#define CCI_IMPLEMENTATION\n#include "cci_verbs.h"\n#include "cci_sisci.h"\n#include "cci_udp.h"\n#include "cci.h"\n' >"$out/cook/cci.c"
    # shellcheck disable=SC2086
    "$cc" -std=gnu11 -g1 -O1 $cook_flags -I. -c -o "$out/cook/cci.o" "$out/cook/cci.c"
}
no_report() {
    check "$1: a sanitizer found something" sh -c '! grep -q "ERROR: \|runtime error" "$1"' - "$out/$1.server"
}

# As wait_for, for what takes a while by itself.
wait_long() {
    wait_for "$@" || wait_for "$@" || wait_for "$@"
}

# Every example is in the table of examples/README.md, with its number of lines, and the table names no other.
listed() {
    for file in examples/*.c examples/*.py; do
        program=$(basename "$file")
        lines=$(wc -l <"$file")
        check "examples/README.md does not list $program with $lines lines" \
            grep -qF "| [\`$program\`]($program) | $lines |" examples/README.md
    done
    sed -n 's/^| \[`\([^`]*\)`\].*/\1/p' examples/README.md >"$out/listed.txt"
    while read -r program; do check "examples/$program is not there" [ -f "examples/$program" ]; done <"$out/listed.txt"
}

requests() {
    cook requests examples/requests.c || return
    serve requests "$out/requests" || return
    for at_once in 1 64 4096; do
        status_of 0 "$out/requests" "$uri" 20000 "$at_once" >"$out/requests.client"
        check "$at_once requests at once" grep -q "^20000 requests, $at_once at once: [0-9]* replies/s$" "$out/requests.client"
    done
    check 'no requests at once' status_of 2 "$out/requests" "$uri" 10 0
    end_server
    no_report requests
    cook requests-refuses examples/requests.c -include "$out/cook/refuses.h" || return
    serve requests "$out/requests-refuses" || return
    check 'a server and a client whose sends are refused' status_of 0 "$out/requests-refuses" "$uri" 2000 64
    end_server
}

# A subscriber that stays, one that is asleep, and one that vanishes.
publishing() {
    cook publish examples/publish.c || return
    rm -f "$out/publish.input"
    mkfifo "$out/publish.input" || { fail 'no pipe' && return; }
    exec 7<>"$out/publish.input"
    # shellcheck disable=SC2016
    serve publish sh -c 'exec "$1" <"$0"' "$out/publish.input" "$out/publish" 7>&- || return
    : >"$out/fast.out"
    timeout 120 "$out/publish" "$uri" >"$out/fast.out" 2>&1 7>&- &
    fast=$!
    check 'the first does not come' wait_for "$server_log" '^subscriber 1 has come'
    timeout 120 "$out/publish" "$uri" 60000 >"$out/slow.out" 2>&1 7>&- &
    slow=$!
    check 'the second does not come' wait_for "$server_log" '^subscriber 2 has come'
    # shellcheck disable=SC2016
    timeout 120 sh -c 'echo $$ >"$0"; exec "$@"' "$out/gone.pid" "$out/publish" "$uri" >"$out/gone.out" 2>&1 7>&- &
    gone=$!
    check 'the third does not come' wait_for "$server_log" '^subscriber 3 has come'
    printf 'one\ntwo\n' >&7
    check 'the third hears nothing' wait_for "$out/gone.out" '^2 two$'
    kill -KILL "$(cat "$out/gone.pid")"
    wait "$gone"
    # The second has one line, and is asleep for a minute: the first hears everything meanwhile.
    i=0
    while [ "$i" -lt 20 ]; do
        seq 300 >&7
        i=$((i + 1))
        check 'the first waits for the second' wait_for "$out/fast.out" "^$((2 + 300 * i)) 300\$" || break
    done
    for who in 2 3; do
        check "it is not noticed that $who has vanished" wait_long "$server_log" "^subscriber $who has vanished"
    done
    exec 7>&-
    check 'the publisher failed' wait "$server"
    check 'the first failed' wait "$fast"
    kill "$slow"
    wait "$slow"
    cat "$server_log" "$out/fast.out"
    no_report publish
}

# loops PROGRAM: its server ends in order at SIGTERM.
loop_ends() {
    kill "$(cat "$out/loop.pid")"
    check "$1 failed, or leaks" wait "$server"
    cat "$server_log"
}
# shellcheck disable=SC2016
epoll_loop() {
    [ "$(uname -s)" = Linux ] || { skip 'epoll is of Linux' && return; }
    cook epoll_loop examples/epoll_loop.c || return
    serve epoll_loop sh -c 'echo $$ >"$0"; exec "$@"' "$out/loop.pid" "$out/epoll_loop" || return
    seq 1 100000 >"$out/loop.sent"
    # The input comes in two parts: at its end, and where nothing comes for a while, the client goes on.
    check 'the client failed' sh -c '(cat "$1"; sleep 0.3; echo last) | timeout 60 "$2" "$3"' - "$out/loop.sent" "$out/epoll_loop" "$uri"
    echo last >>"$out/loop.sent"
    check 'not everything came' wait_for "$server_log" '^last$'
    loop_ends epoll_loop
    sed '/^uri: /d; /bytes received/d' "$server_log" >"$out/loop.received"
    check 'what came is something else' cmp "$out/loop.sent" "$out/loop.received"
}
# shellcheck disable=SC2016
uv_loop() {
    has_uv || { skip 'there is no libuv' && return; }
    cook uv_loop examples/uv_loop.c -luv || return
    serve uv_loop sh -c 'echo $$ >"$0"; exec "$@"' "$out/loop.pid" "$out/uv_loop" || return
    status_of 0 "$out/uv_loop" "$uri" >"$out/uv.client"
    check 'five answers' [ "$(grep -cx 'an answer' "$out/uv.client")" -eq 5 ]
    loop_ends uv_loop
}

# Receivers that die after some pieces each, and one that lives.
transfers() {
    cook transfer examples/transfer.c || return
    cook transfer-dies examples/transfer.c -include "$out/cook/dies.h" || return
    service=cci-test-$$
    rm -f "$out/transfer.to"
    head -c 60000001 /dev/urandom >"$out/transfer.from"
    timeout 200 "$out/transfer" "udp://127.0.0.1/$service" "$out/transfer.from" >"$out/transfer.client" 2>&1 &
    client=$!
    for i in 1 2 3; do
        timeout 100 "$out/transfer-dies" "$service" "$out/transfer.to" 60000001
        check "receiver $i does not die" [ $? -eq 137 ]
    done
    check 'a file that is not complete is' sh -c '! cmp -s "$1" "$2"' - "$out/transfer.from" "$out/transfer.to"
    check 'the last receiver' timeout 100 "$out/transfer" "$service" "$out/transfer.to" 60000001
    check 'the sender' wait "$client"
    tr '\r' '\n' <"$out/transfer.client"
    check 'the file is another' cmp "$out/transfer.from" "$out/transfer.to"
    check 'the transfer was not resumed three times' [ "$(grep -c 'waiting for it' "$out/transfer.client")" -eq 3 ]
    check 'the sender does not say that it is done' grep -q 'has been sent$' "$out/transfer.client"
    rm -f "$out/transfer.from" "$out/transfer.to"
}

# finds TEXT: why.c says so. On a busy machine a server may look ill in another way for a while: its packets count as lost.
finds() {
    try=0
    while [ $((try += 1)) -le 20 ]; do
        timeout 60 "$out/why" "$uri" >"$out/why.found" 2>&1
        cat "$out/why.found"
        ! grep -q "^finding: $1" "$out/why.found" || { pass && return; }
    done
    fail "not found in 20 attempts: $1"
}
whys() {
    cook why examples/why.c || return
    cook ill tests/tools/ill.c || return
    while read -r illness finding; do
        # shellcheck disable=SC2016
        serve "ill-$illness" sh -c 'echo $$ >"$0"; exec "$@"' "$out/ill.pid" "$out/ill" "$illness" || return
        finds "$finding"
        [ "$illness" != rejects ] || { kill -STOP "$(cat "$out/ill.pid")" && finds 'the host answers, the server does not'; }
        kill -KILL "$(cat "$out/ill.pid")"
        wait "$server"
    done <<'END'
well all is well
few the server has too few receive buffers
holds the server holds its receive buffers
stops the server does not call the library any more
rejects the server answers, and does not accept
END
    finds 'wrong port, or no server' # of the last one, which is gone
    check 'no URI' status_of 2 "$out/why"
}
# What a firewall swallows: an interface that nobody is behind.
firewalls() {
    for tool in unshare ip; do has "$tool" || { skip "there is no $tool" && return; }; done
    cook why examples/why.c || return
    printf '[v0]\ntransport = udp\ninterface = v0\n' >"$out/cookbook.ini"
    sh tests/net/netns.sh sh -c 'ip addr del 10.9.0.2/24 dev v1; ip neigh add 10.9.0.2 dev v0 \
        lladdr "$(cat /sys/class/net/v1/address)"; "$0" udp://10.9.0.2:4242' "$out/why" >"$out/why.found" 2>&1
    cat "$out/why.found"
    if grep -q SKIPPED "$out/why.found"; then skip 'no network namespace'; return; fi
    check 'the firewall is not found' grep -q '^finding: nothing comes back' "$out/why.found"
}

cookbook_steps() {
    step cookbook-list listed
    step cookbook-c++ plus_plus
    for recipe in requests publishing epoll_loop uv_loop transfers whys firewalls; do
        step "cookbook-$recipe" cookbook "$recipe"
    done
}
# The recipes are C++ too.
plus_plus() {
    for compiler in g++ clang++; do
        has "$compiler" || { skip "there is no $compiler" && continue; }
        for recipe in requests publish epoll_loop uv_loop transfer why; do
            [ $recipe != uv_loop ] || has_uv || continue
            # shellcheck disable=SC2086
            check "$compiler $recipe.c" "$compiler" -x c++ -std=c++11 -fsyntax-only $warnings -I. "examples/$recipe.c"
        done
    done
}
# What one recipe sets is not left to the next.
cookbook() {
    "$1"
    unset CCI_CONFIG
}
