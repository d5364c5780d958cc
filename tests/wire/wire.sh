# SPDX-License-Identifier: MIT OR Unlicense
# wire.sh - tests of the wire format's description and of the dissector; run.sh reads this file and brings check, pass,
# fail, skip and build.

wire_check=tests/wire/wire_check.py
python=python3 # what checks a million packets takes a quarter of the time with a just-in-time compiler
! has pypy3 || python=pypy3
dissector=examples/wireshark/cci.lua

# capture_sim NAME COMMAND...: runs a program whose simulated network writes $out/wire/NAME.pcap.
capture_sim() {
    mkdir -p "$out/wire"
    capture=$out/wire/$1.pcap
    shift
    SIM_PCAP=$capture timeout 300 "$@" >"$capture.log" 2>&1 && return 0
    tail -n 20 "$capture.log"
    fail "$* failed"
    return 1
}

# capture_udp: a run over UDP in a network namespace, in $out/wire/udp.pcap; 1 if that is not possible here.
capture_udp() {
    mkdir -p "$out/wire"
    capture=$out/wire/udp.pcap
    [ ! -s "$capture" ] || return 0
    build wire_run-portable tests/wire/wire_run.c -O1 -DCCI_UDP_PORTABLE || return 1
    for try in 1 2 3; do
        timeout 120 sh tests/wire/capture.sh "$run_programs/wire_run-portable" "$capture" >"$capture.run" 2>&1
        status=$?
        cat "$capture.run"
        [ "$status" -eq 75 ] || break
        echo "try $try has gaps"
    done
    case $status in
    0) pass ;;
    75 | 77) skip "no capture of UDP: $(tail -n 1 "$capture.run")" && rm -f "$capture" && return 1 ;;
    *) fail 'the run over UDP failed' && rm -f "$capture" && return 1 ;;
    esac
}

# two_captures NETWORK NETWORK: the conformance suite over both is looked at, at the same time, since that takes long.
two_captures() {
    beside=
    for network in "$1" "$2"; do
        capture_sim "$network" "$run_programs/conformance" "$network" || continue
        "$python" "$wire_check" --hostile "$capture" >"$capture.log" 2>&1 &
        beside="$beside $network:$!"
    done
    for one in $beside; do
        network=${one%:*} capture=$out/wire/${one%:*}.pcap
        check "conformance over $network differs from the document" wait "${one#*:}"
        cat "$capture.log"
        rm -f "$capture" # some are large
    done
}

# What is on the wire is what tests/wire/wire.md says, and the checker would see it if it were not.
wire() {
    has python3 || { skip 'there is no python3' && return; }
    build wire_run tests/wire/wire_run.c -O1 || return
    self_test=
    if capture_sim run "$run_programs/wire_run" sim; then
        check 'a run that shows everything differs from the document' "$python" "$wire_check" --cover "$capture"
        "$python" "$wire_check" --self-test "$capture" >"$capture.self" 2>&1 & # takes long
        self_test=$!
    fi
    build conformance tests/conformance/conformance.c -O2 || return
    two_captures sim sim-lossy
    two_captures sim-tiny sim-narrow
    two_captures sim-crc sim-sealed
    if [ -n "$self_test" ]; then
        check 'the checker misses damage' wait "$self_test"
        cat "$out/wire/run.pcap.self"
    fi
    capture_udp || return
    check 'a run over UDP differs from the document' "$python" "$wire_check" "$capture"
}

# second_as SERVER CHECKSUM WORDS...: clients of the second implementation, one for each of WORDS, talk to a server.
second_as() {
    printf '[lo]\ntransport = udp\ninterface = lo\necn = 1\ncrc = %s\n' "$2" >"$out/second.ini"
    # shellcheck disable=SC2086
    serve second env CCI_CONFIG="$out/second.ini" $1 || return
    shift 2
    for words in "$@"; do
        # shellcheck disable=SC2086
        check "the second implementation failed: $words" timeout 100 python3 tests/wire/second_run.py $words "$uri"
    done
    end_server
}

# second_for CLIENT WORDS...: a client talks to a server of the second implementation.
second_for() {
    client=$1
    shift
    serve "second-for-$(basename "$client")" python3 tests/wire/second_run.py "$@" || return
    check "$client was not served: $*" timeout 100 env CCI_CONFIG="$out/second.ini" "$client" "$uri"
    end_server
}

# An implementation that was written from the document alone talks to ours, in both roles, and also when packets are
# lost, have a checksum or are sealed.
second() {
    has python3 || { skip 'there is no python3' && return; }
    build_examples || return
    second_as build/hello 0 hello move reset 'hello --loss 50' 'move --loss 50' cookie 'hello --marks' 'hello --marks --loss 50'
    second_as build/rma 0 rma 'rma --marks' 'rma --loss 50' atomic 'atomic --loss 50'
    second_for build/hello serve
    second_for build/hello serve --loss 50
    second_for build/rma offer
    second_for build/rma offer --loss 50
    second_as build/hello 1 'hello --crc' 'hello --crc --loss 50'
    second_for build/rma offer --crc
    second_as build/rma 1 'atomic --crc --loss 100'
    build wire_run tests/wire/wire_run.c -O1 || return
    second_as "$run_programs/wire_run serve" 0 hello 'hello --loss 50'
    second_as "$run_programs/wire_run serve" 1 'hello --crc'
    second_for build/hello serve --crc --named
    second_as build/hello 0 # configures what comes now
    second_for build/hello serve --named
    check 'nobody was told to ask elsewhere' grep -q '^not here' "$server_log"
    second_for build/hello serve --named --loss 50
    has_sodium || { skip 'there is no libsodium' && return; }
    key=$out/second.key
    build/secure new >"$key"
    second_as "build/secure $key" 0 "hello --key $key" "hello --key $key --loss 50" "move --key $key"
    second_as "build/secure $key" 1 "hello --key $key --crc"
}

# What the endpoints send on a bad network is what tests/wire/wire.md says: plain, with checksums, sealed. The checker follows each
# connection; it can't where a packet is answered that was replayed, or an address means somebody else.
soak_capture() {
    has python3 || { skip 'there is no python3' && return; }
    check 'the soak test does not compile' make -s CC="$cc" CFLAGS=-O2 build/soak
    for seed in 1 2 8; do
        timeout 100 build/soak --seed "$seed" --without 'alias,recreate,replay,garbage' --pcap "$out/soak.pcap" ||
            { fail "seed $seed" && continue; }
        check "seed $seed differs from the document" "$python" "$wire_check" --hostile "$out/soak.pcap"
    done
    rm -f "$out/soak.pcap"
}

# dissect CAPTURE OPTIONS: in $capture.pdml. The dissector's own errors are in it.
dissect() {
    capture=$1
    shift
    timeout 120 tshark -X "lua_script:$dissector" -r "$capture" "$@" -T pdml >"$capture.pdml" 2>"$capture.tshark" ||
        { cat "$capture.tshark" && fail "tshark failed" && return 1; }
    grep -v 'Running as user' "$capture.tshark"
    true
}

# follow CAPTURE [DISSECTOR]: connections, round trips and repetitions are what the packets say.
follow() {
    fields='frame.number frame.time_relative udp.srcport udp.dstport cci.stream cci.type cci.number cci.ack.largest cci.ack.delay
        cci.acks cci.round_trip cci.repeats cci.receiver_token cci.client_token cci.server_token cci.sender_index cci.receiver_index'
    # shellcheck disable=SC2046,SC2086
    timeout 120 tshark $passes -X "lua_script:${2:-$dissector}" -r "$1" -T fields -E 'separator=;' -E occurrence=f \
        $(printf ' -e %s' $fields) 2>/dev/null | awk -f tests/wire/follow.awk | tail -n 5
}

# follows CAPTURE [DISSECTOR]: the last line of follow() says that nothing is wrong.
follows() {
    follow "$@" >"$out/follow.txt"
    cat "$out/follow.txt"
    grep -q '^[1-9][0-9]* packets, [1-9][0-9]* acknowledge others, [1-9][0-9]* are sent again, 0 are wrong$' "$out/follow.txt"
}

wireshark_follows() {
    has tshark || { skip 'there is no tshark: apt-get install tshark' && return; }
    build wire_run tests/wire/wire_run.c -O1 && capture_sim follow "$run_programs/wire_run" sim || return
    passes=
    check 'connections or round trips are wrong' follows "$capture"
    passes=-2
    check 'they are wrong when they are looked at again' follows "$capture"
    check 'the capture has no beginning to cut off' editcap -r "$capture" "$capture.cut" 3001-999999
    passes=
    check 'they are wrong when the beginning is missing' follows "$capture.cut"
    for change in 's/delay \* 4e-6/delay * 8e-6/' 's/by_token\[token\] = stream/by_token[token] = nil/' \
        's/if other ~= token then/if other == token then/' 's/had.number ~= number/had.number == number/'; do
        sed "$change" "$dissector" >"$out/changed.lua"
        check "not noticed: $change" not follows "$capture" "$out/changed.lua"
    done
}

# The dissector has the document's tables, and shows in a capture what the checker decodes, field by field.
wireshark() {
    has python3 || { skip 'there is no python3' && return; }
    check "$dissector has other tables than the document" "$python" "$wire_check" --lua "$dissector"
    sed 's/{"largest", 4,/{"largest", 8,/' "$dissector" >"$out/changed.lua"
    check 'a changed table is not noticed' not "$python" "$wire_check" --lua "$out/changed.lua"
    has tshark || { skip 'there is no tshark: apt-get install tshark' && return; }
    build wire_run tests/wire/wire_run.c -O1 || return
    if capture_sim run "$run_programs/wire_run" sim && dissect "$capture"; then
        check 'the simulated run is dissected differently' "$python" "$wire_check" --pdml "$capture.pdml" "$capture"
        check 'no damaged packets were made' "$python" "$wire_check" --damage "$out/wire/damaged.pcap" "$capture"
        dissect "$out/wire/damaged.pcap" -d udp.port==49152,cci &&
            check 'damaged packets are judged differently' \
                "$python" "$wire_check" --damaged --pdml "$capture.pdml" "$capture"
    fi
    capture_udp && dissect "$capture" || return
    check 'the run over UDP is dissected differently' "$python" "$wire_check" --pdml "$capture.pdml" "$capture"
    check 'the column does not tell what a packet has' column ' DATA [0-9]+ ACK [0-9-]+, MESSAGE seq=[0-9]+ len=[0-9]+'
    check 'no frame can be found by a filter' column ' NACK seq=[0-9]+ reason=5' -Y 'cci.nack.reason == 5'
}

# What the kernel has yet to split is shown packet by packet: a capture of the loopback with offload.
wireshark_train() {
    has tshark || { skip 'there is no tshark: apt-get install tshark' && return; }
    make CC="$cc" build/cci_perf || { fail 'cci_perf does not compile' && return; }
    mkdir -p "$out/wire"
    capture=$out/wire/train.pcap
    cat >"$out/train.sh" <<END
#!/bin/sh
build/cci_perf -d lo --once >"$out/train.uri" 2>&1 &
until grep -q '^uri: ' "$out/train.uri"; do sleep 0.1; done
timeout 60 build/cci_perf -d lo "\$(sed -n 's/^uri: //p' "$out/train.uri")" -t bw -n 500 -s 1k,8k
wait
END
    chmod +x "$out/train.sh"
    timeout 120 sh tests/wire/capture.sh "$out/train.sh" "$capture" >"$capture.run" 2>&1
    status=$?
    cat "$capture.run"
    case $status in 75 | 77) skip "no capture: $(tail -n 1 "$capture.run")" && return ;; esac
    check 'the run failed' [ "$status" -eq 0 ]
    tshark -X "lua_script:$dissector" -r "$capture" 2>/dev/null >"$capture.lines"
    grep -q ' [0-9]* packets: \[[0-9]*\] DATA [0-9]* .*; \[[0-9]*\] DATA ' "$capture.lines" || { skip 'the kernel made no trains' && return; }
    tshark -X "lua_script:$dissector" -r "$capture" -Y 'cci.shown.malformed or cci.shown.unexpected or _ws.malformed' \
        2>/dev/null >"$capture.malformed"
    head -n 5 "$capture.malformed"
    check 'packets of a train are called malformed' [ ! -s "$capture.malformed" ]
    # shellcheck disable=SC2016 # they are the inner shell's
    check 'no train has two packet numbers' sh -c 'tshark -X "lua_script:$1" -r "$2" -T fields -e cci.number 2>/dev/null |
        grep -q "[0-9],[0-9]"' - "$dissector" "$capture"
}

# column PATTERN OPTIONS...: some packet of $capture that tshark shows has this in its line.
column() {
    pattern=$1
    shift
    tshark -X "lua_script:$dissector" -r "$capture" "$@" 2>/dev/null >"$capture.lines"
    grep -Eq "$pattern" "$capture.lines"
}

not() {
    ! "$@"
}
