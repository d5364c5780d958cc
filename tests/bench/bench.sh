#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# bench.sh [-q] [-r ROUNDS] [-D SECONDS] [-s] - measures CCI side by side with raw sockets, in one run, on the loopback,
# and over sisci:// side by side with raw shared memory.
#
# Two processes, each on a CPU of its own, both polling. Each round measures, for every row of the table, the raw
# socket (or memory), CCI, and that again, and divides CCI's figure by the mean of the two around it; what is printed is
# the median of the rounds' ratios with the lowest and the highest. Ratios, because on a shared or virtual machine
# absolute figures change severalfold from one second to the next (two things are printed with each round that tell
# how it was: the time in which a cache line goes from one CPU to the other, and the share of the time that other
# programs took from the two processes; above a few percent it disturbs). Nothing is installed and nothing is
# written outside build/ and a temporary directory.
#
#     -q          quick: 2 short rounds
#     -r ROUNDS   default 5
#     -D SECONDS  of each measurement, default 0.3
#     -s          shared memory only
#
# CPUS="2 3" in the environment chooses other CPUs than 0 and 1. Missing a target is not an error; exit status 1 means
# that something could not be measured.
set -u
cd "$(dirname "$0")/../.." || exit 1

rounds=5
seconds=0.3
only_shared=0
while getopts qsr:D:h option; do
    case $option in
    q) rounds=2 seconds=0.15 ;;
    s) only_shared=1 ;;
    r) rounds=$OPTARG ;;
    D) seconds=$OPTARG ;;
    *) sed -n '3,22s/^# \{0,1\}//p' "$0"; [ "$option" = h ]; exit ;;
    esac
done

die() {
    echo "bench: $*" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || die 'this needs Linux: the raw sockets use its UDP_SEGMENT and UDP_GRO'
# shellcheck disable=SC2086 # two words
set -- ${CPUS:-0 1}
[ $# -eq 2 ] || die "CPUS must name two CPUs, like CPUS='0 1'"
server_cpu=$1 client_cpu=$2

# ---- build -----------------------------------------------------------------------------------------------------------

cc=${CC:-cc}
cflags=${CFLAGS:--O2}
make -s CC="$cc" build/cci_perf || die 'building the examples failed'
# shellcheck disable=SC2086 # lists of words
$cc $cflags -o build/bench_raw tests/bench/bench_raw.c || die 'building bench_raw failed'
# shellcheck disable=SC2086
$cc $cflags -I. -o build/bench_calls tests/bench/bench_calls.c -pthread || die 'building bench_calls failed'
# shellcheck disable=SC2086
$cc $cflags -I. -o build/bench_sleep tests/bench/bench_sleep.c -pthread || die 'building bench_sleep failed'
# shellcheck disable=SC2086
$cc $cflags -I. -o build/bench_cores tests/bench/bench_cores.c -pthread || die 'building bench_cores failed'

# shellcheck disable=SC2086
$cc $cflags -I. -o build/bench_links tests/bench/bench_links.c -pthread || die 'building bench_links failed'
# shellcheck disable=SC2086 # valgrind is to count what is done for messages, and not what is done because it is slow
$cc $cflags -DVIRTUAL_CLOCK -I. -o build/bench_links_steps tests/bench/bench_links.c -pthread || die 'building bench_links failed'

work=$(mktemp -d) || exit 1
server=
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
data=$work/data # lines: name value
: >"$data"
failures=0

complain() {
    echo "bench: $*" >&2
    failures=$((failures + 1))
}

# The loopback held at an MTU of 1,500 bytes, as between two machines; once with messages longer than a datagram.
printf '[lo1500]\ntransport = udp\ninterface = lo\nmtu = 1500\n' >"$work/lo1500.ini"
printf '[lo1500m]\ntransport = udp\ninterface = lo\nmtu = 1500\nmax_send_size = 8192\n' >>"$work/lo1500.ini"

# ---- one measurement -------------------------------------------------------------------------------------------------

# raw MEASURE [SECONDS]: prints the value, and keeps the share of the time that other programs took.
raw() {
    timeout 60 build/bench_raw -D "${2:-$seconds}" -c "$server_cpu,$client_cpu" "$1" \
        >"$work/raw.csv" 2>"$work/raw.log" || return
    case $1 in
    memcpy | vm_*) ;; # one of the two sleeps
    *) awk -F, '{ print "others", $4 }' "$work/raw.csv" >>"$data" ;;
    esac
    cut -d, -f2 "$work/raw.csv"
}

# await_line FILE PATTERN: prints what the server's first line that matches has behind the pattern.
await_line() {
    tries=0
    while [ "$tries" -lt 250 ]; do
        found=$(sed -n "s/^$2//p;T;q" "$1" 2>/dev/null)
        [ -n "$found" ] && echo "$found" && return 0
        sleep 0.02
        tries=$((tries + 1))
    done
    return 1
}

server_options=

# cci DEVICE TEST SIZE [OPTIONS]: prints the value, in microseconds, messages or bytes per second. The server lives for
# one client, so that nothing of CCI polls while raw sockets are measured.
cci() {
    case $2 in *lat) column=median_us ;; rate) column=msg_per_s ;; *) column=bytes_per_s ;; esac
    unset CCI_CONFIG
    case $1 in lo1500*) export CCI_CONFIG="$work/lo1500.ini" ;; esac
    : >"$work/server.log"
    # shellcheck disable=SC2086 # a list of words
    timeout 60 build/cci_perf -d "$1" --cpu "$server_cpu" --once $server_options >"$work/server.log" 2>&1 &
    server=$!
    uri=$(await_line "$work/server.log" 'uri: ') || { stop_server; return 1; }
    # shellcheck disable=SC2086 # a list of words
    timeout 60 build/cci_perf "$uri" -d "$1" --cpu "$client_cpu" -t "$2" -s "$3" -D "$seconds" --format csv ${4:-} \
        >"$work/client.log" 2>&1 || { stop_server; return 1; }
    wait "$server" 2>/dev/null
    server=
    awk -F, -v column="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) c = i } NR == 2 { print $c }' \
        "$work/client.log"
}

# A message longer than the largest datagram is refused with the number of bytes that are possible.
cci lo1500 bw 1m >/dev/null
full_bytes=$(sed -n 's/.*the most is \([0-9]*\).*/\1/p' "$work/client.log")
[ -n "$full_bytes" ] || { cat "$work/server.log" "$work/client.log" >&2; die 'there is no CCI device on the loopback'; }

# compare ROW RAW-MEASURE DEVICE TEST SIZE [OPTIONS]: raw, CCI, raw; keeps the values and the ratio.
compare() {
    before=$(raw "$2")
    value=$(cci "$3" "$4" "$5" ${6:+"$6"})
    after=$(raw "$2")
    if [ -z "$before" ] || [ -z "$value" ] || [ -z "$after" ]; then
        complain "$1 was not measured in this round:"
        cat "$work/raw.log" "$work/client.log" "$work/server.log" >&2 2>/dev/null
        return
    fi
    case $2 in bounce | pair | words) unit=0.001 ;; *) unit=1 ;; esac # that is told in nanoseconds
    awk -v row="$1" -v a="$before" -v v="$value" -v b="$after" -v unit="$unit" 'BEGIN {
        raw = (a + b) / 2 * unit
        if (raw <= 0) exit
        printf "raw-%s %.10g\ncci-%s %.10g\nratio-%s %.10g\n", row, raw, row, v, row, v / raw
    }' >>"$data"
}

# The same where the server sleeps meanwhile, as the second process does while memory is copied: RMA needs nothing of it.
compare_asleep() {
    server_options=-b
    compare "$@"
    server_options=
}

# sleeper KIND DEPTH: round trips per second of two programs that sleep on epoll; see bench_sleep.c.
sleeper() {
    timeout 60 build/bench_sleep -D "$seconds" -c "$server_cpu,$client_cpu" "$1" "$2" 2>"$work/client.log" | cut -d, -f2
}

# compare_sleepers DEPTH: raw, CCI, raw, and beside them raw with many datagrams to a system call, and CCI polling.
compare_sleepers() {
    before=$(sleeper raw "$1")
    value=$(sleeper cci "$1")
    after=$(sleeper raw "$1")
    batched=$(sleeper batch "$1")
    polled=$(sleeper poll "$1")
    if [ -z "$before" ] || [ -z "$value" ] || [ -z "$after" ] || [ -z "$batched" ] || [ -z "$polled" ]; then
        complain "sleepers with $1 in flight were not measured in this round:"
        cat "$work/client.log" >&2
        return
    fi
    awk -v row="sleep$1" -v a="$before" -v v="$value" -v b="$after" -v m="$batched" -v p="$polled" 'BEGIN {
        printf "raw-%s %.10g\ncci-%s %.10g\nratio-%s %.10g\n", row, (a + b) / 2, row, v, row, 2 * v / (a + b)
        printf "batched-%s %.10g\npolled-%s %.10g\n", row, 2 * m / (a + b), row, p
    }' >>"$data"
}

# `cci_perf -b` beside cci_perf polling.
compare_blocking() {
    polled=$(cci lo rate 64)
    server_options=-b
    value=$(cci lo rate 64 -b)
    server_options=
    if [ -z "$polled" ] || [ -z "$value" ]; then
        complain 'cci_perf -b was not measured in this round'
        return
    fi
    awk -v v="$value" -v p="$polled" 'BEGIN { printf "raw-blocking %.10g\ncci-blocking %.10g\nratio-blocking %.10g\n", p, v, v / p }' \
        >>"$data"
    asleep=$(sleeper stream 900)
    polled=$(sleeper stream-poll 900)
    [ -z "$asleep" ] || [ -z "$polled" ] ||
        awk -v v="$asleep" -v p="$polled" 'BEGIN { printf "stream-blocking %.10g\n", v / p }' >>"$data"
}

beside() {
    value=$("$@")
    [ -z "$value" ] || echo "$name $value" >>"$data"
}

# ---- peers, where they are installed ---------------------------------------------------------------------------------

peer_port=18515
peer_server() {
    peer_port=$((peer_port + 1)) # a port that was just used may not be free yet
    timeout 60 taskset -c "$server_cpu" "$@" >"$work/peer-server.log" 2>&1 &
    server=$!
    sleep 0.3
}

# ucx TEST SIZE COUNT: a perftest over TCP on the loopback. Prints microseconds, or bytes per second.
ucx() {
    export UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_WARN_UNUSED_ENV_VARS=n
    peer_server ucx_perftest -p $((peer_port + 1))
    timeout 60 taskset -c "$client_cpu" ucx_perftest 127.0.0.1 -p "$peer_port" -t "$1" -s "$2" -n "$3" -w 1000 -f \
        >"$work/peer.log" 2>&1
    stop_server
    # The last line: iterations; latency at 50 %, average, overall; MB/s average, overall; messages/s average, overall.
    awk -v test="$1" -v size="$2" '/^(Final:)? *[0-9]+ +[0-9.]+ / {
            sub("Final:", ""); found = 1; p50 = $2; mb = $6; rate = $8
        }
        END { if (found) printf "%.10g\n", test ~ /lat/ ? p50 : size < 1024 ? rate : mb * 1048576 }' "$work/peer.log"
}

# libfabric SIZE: a ping-pong over its TCP provider. Prints microseconds of half a round trip.
libfabric() {
    peer_server fi_pingpong -p 'tcp;ofi_rxm' -e rdm -B $((peer_port + 1)) -I 10000 -S "$1"
    timeout 60 taskset -c "$client_cpu" fi_pingpong -p 'tcp;ofi_rxm' -e rdm -P "$peer_port" -I 10000 -S "$1" 127.0.0.1 \
        >"$work/peer.log" 2>&1
    stop_server
    awk '$1 == "bytes" { for (i = 1; i <= NF; i++) if ($i == "usec/xfer") c = i } c && $1 ~ /^[0-9]/ { print $c }' \
        "$work/peer.log"
}

have() { command -v "$1" >/dev/null 2>&1; }

measure_peers() {
    if have taskset && have ucx_perftest; then
        name=ucx-lat beside ucx tag_lat 64 20000
        name=ucx-rate beside ucx tag_bw 64 50000
        name=ucx-bw8k beside ucx tag_bw 8192 20000
        name=ucx-write beside ucx ucp_put_bw 1048576 200
        name=ucx-read beside ucx ucp_get 1048576 200
    fi
    if have taskset && have fi_pingpong; then
        name=fi-lat beside libfabric 64
    fi
}

# Processes of one host. A connection's messages and memory are compared with the same done by hand.
measure_shared() {
    compare shm_lat bounce sisci lat 64
    compare shm_pair pair sisci lat 64
    compare shm_words words sisci lat 64
    compare shm_rate ring sisci rate 64
    compare shm_rate_copied records sisci rate 64
    compare shm_silent ring sisci rate 64 --silent
    compare shm_silent_copied records sisci rate 64 --silent
    compare shm_events ring sisci rate 64 "--every 1"
    compare shm_events_copied records sisci rate 64 "--every 1"
    compare shm_bw8k ring8k sisci bw 8192 --touch
    compare_asleep shm_write memcpy sisci write_bw 1m
    compare_asleep shm_read memcpy sisci read_bw 1m
    compare_asleep shm_heap_write vm_1m sisci write_bw 1m --heap
    compare_asleep shm_heap_read vm_read sisci read_bw 1m --heap
    compare_asleep shm_wake wake sisci lat 64 -b
}

# ---- the rounds ------------------------------------------------------------------------------------------------------

echo "CCI against raw sockets: loopback, CPUs $server_cpu and $client_cpu, $rounds rounds, $seconds s each measurement"
echo "$(sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r), $($cc --version | sed q)"
tell_round() {
    awk -v round="$round" '/^bounce / { text = ""; count = others = 0; bounce = $2 } # this round: from its bounce on
        /^others / { others += $2; count++ }
        /^ratio-/ { text = text sprintf(" %s %.3g", substr($1, 7), $2) }
        END { printf "round %s: cache line %.0f ns, others took %.0f %%;%s\n", round, bounce, others / count, text }
    ' "$data"
}

round=1
while [ "$round" -le "$rounds" ]; do
    bounce=$(raw bounce 0.05)
    [ -n "$bounce" ] || { cat "$work/raw.log" >&2; die "two processes on CPUs $server_cpu and $client_cpu are needed"; }
    echo "bounce $bounce" >>"$data"
    measure_shared
    [ "$only_shared" = 0 ] || { tell_round; round=$((round + 1)); continue; }
    compare lat lat lo lat 64
    compare rate rate lo rate 64
    compare silent rate lo rate 64 --silent
    compare events rate lo rate 64 "--every 1"
    compare bw8k bw8k lo bw 8192 "-w 128"
    compare lent bw8k lo bw 8192 "--no-copy -w 128"
    compare write bw8k lo write_bw 1m
    compare read bw8k lo read_bw 1m
    compare full1500 bw1472 lo1500 bw "$full_bytes"
    compare long1500 bw1472 lo1500m bw 8192 "-w 128"
    compare lent1500 bw1472 lo1500m bw 8192 "--no-copy -w 128"
    compare write1500 bw1472 lo1500 write_bw 1m
    compare read1500 bw1472 lo1500 read_bw 1m
    for depth in 1 16 1000; do compare_sleepers "$depth"; done
    compare_blocking
    for name in tcp_lat tcp_64k tcp_1m; do beside raw "$name"; done
    measure_peers
    tell_round
    round=$((round + 1))
done

# ---- what needs no second process ------------------------------------------------------------------------------------

# keep NAME: takes bench_calls' lines from standard input; name-number value.
keep() { awk -F, -v name="$1" '{ print name "-" $1 "-" $2, $3 }' >>"$data"; }

timeout 120 build/bench_calls link >"$work/calls.log" || complain 'bench_calls link failed'
keep link <"$work/calls.log"
timeout 300 build/bench_links "$rounds" >>"$data" || complain 'bench_links failed'
for count in 1 10 100; do
    have valgrind || continue
    timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=answer \
        build/bench_links_steps steps "$count" 2>"$work/valgrind.log" >"$work/links.log"
    sed -n "s/.*Collected *: *\([0-9]*\).*/links-steps-$count \1/p" "$work/valgrind.log" >>"$data"
done
[ "$only_shared" = 0 ] || set -- # nothing of UDP
for what in ${1:+traffic memory}; do
    timeout 120 build/bench_calls "$what" >"$work/calls.log" || complain "bench_calls $what failed"
    keep calls <"$work/calls.log"
done
for count in ${1:+1 10000}; do
    timeout 120 build/bench_calls poll "$count" >"$work/calls.log" || complain "bench_calls poll $count failed"
    keep time <"$work/calls.log"
    have valgrind || continue
    timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=poll_idle \
        build/bench_calls poll "$count" >"$work/calls.log" 2>"$work/valgrind.log"
    instructions=$(sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$work/valgrind.log")
    polls=$(sed -n 's/^polls,[0-9]*,\([0-9]*\),.*/\1/p' "$work/calls.log")
    if [ -n "$instructions" ] && [ -n "$polls" ]; then
        echo "instructions-$count $instructions $polls" | awk '{ printf "%s %.1f\n", $1, $2 / $3 }' >>"$data"
    else
        complain "counting instructions with valgrind failed"
    fi
done

if [ "$only_shared" = 0 ]; then
    timeout 300 build/bench_cores 3 >>"$data" || complain 'bench_cores failed'
fi

# ---- the tables ------------------------------------------------------------------------------------------------------

echo
awk -v full="$full_bytes" -v only_shared="$only_shared" '
function sorted(name,    i, j, t) { # fills s[1..n]
    n = count[name]
    for (i = 1; i <= n; i++) s[i] = value[name, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j] < s[j - 1]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
}
function median(name) {
    sorted(name)
    return n == 0 ? 0 : n % 2 ? s[(n + 1) / 2] : (s[n / 2] + s[n / 2 + 1]) / 2
}
function unit(x, kind) {
    if (kind == "us") return sprintf("%.2f µs", x)
    if (kind == "msg") return sprintf("%.2f M/s", x / 1e6)
    if (kind == "ratio") return sprintf("%.2f × raw", x)
    return sprintf("%.2f GB/s", x / 1e9)
}
function row(key, text, kind, most, target,    m, good) {
    if (!count["ratio-" key]) { printf "| %s | not measured | | | | |\n", text; return }
    m = median("ratio-" key)
    good = most ? m <= target : m >= target
    printf "| %s | %s | %s | **%.2f** (%.2f–%.2f) | %s | %s |\n", text, unit(median("cci-" key), kind),
        unit(median("raw-" key), kind), (sorted("ratio-" key) m), s[1], s[n],
        target ? (most ? "≤" : "≥") " " target : "", !target ? "" : good ? "PASS" : "miss"
}
function other(key, text, kind) {
    if (!count[key]) return
    sorted(key)
    printf "| %s | %s (%s–%s) |\n", text, unit(median(key), kind), unit(s[1], kind), unit(s[n], kind)
}
function only(name) { return value[name, 1] }
function fact(text, figure, target, good) {
    printf "| %s | %s | %s | %s |\n", text, figure, target, good ? "PASS" : "miss"
}
function links(what, kind, count, scale,    i, n, text) {
    text = ""
    for (i = 1; i <= count; i++) {
        n = 10 ^ (i - 1)
        if (!value["links-" what "-" n, 1]) return "not measured"
        text = text (i > 1 ? " · " : "") (kind ? unit(median("links-" what "-" n) * scale, kind) : only("links-" what "-" n) / 20000)
    }
    return text
}
# What the caches of this machine let a program do that has nothing but rings and a bit for each.
function by_hand(what, name, kind, scale, target, good,    i, text) {
    for (i = 1; i <= 1000; i *= 10) text = text (i > 1 ? " · " : "") unit(median("hand-" name "-" i) * scale, kind)
    printf "| the same with rings written by hand, %s | %s | %s | %s |\n", what, text, target, \
        good ? "they reach it" : "they do not reach it either"
}
function costs() {
    print "| cost | figure | target | |"
    print "| --- | ---: | ---: | --- |"
    if (count["link-segment_bytes-1"])
        printf "| shared memory of a sisci link, both sides, bytes: reserved · used after a message each way | %s · %s | | |\n",
            only("link-segment_bytes-1"), only("link-resident_bytes-1")
    if (count["links-trip-1"] && count["links-trip-1000"]) {
        fact("a server with 1 · 10 · 100 · 1,000 links, half a round trip of any of them", links("trip", "us", 4, 1e-3), "≤ 2 ×",
            median("links-trip-1000") <= 2 * median("links-trip-1"))
        fact("the same, 64 B messages of any of them", links("rate", "msg", 4, 1), "≥ 1/1.5",
            1.5 * median("links-rate-1000") >= median("links-rate-1"))
        by_hand("half a round trip", "trip", "us", 1e-3, "≤ 2 ×", median("hand-trip-1000") <= 2 * median("hand-trip-1"))
        by_hand("64 B messages", "rate", "msg", 1, "≥ 1/1.5", 1.5 * median("hand-rate-1000") >= median("hand-rate-1"))
        printf "| the same, endpoints opened and connected per second | %.0f | | |\n", median("links-open-1000")
    }
    if (count["links-steps-1"] && count["links-steps-100"])
        fact("the same, instructions of the server for a request: 1 · 10 · 100 links", links("steps", "", 3, 1), "≤ 2.5 ×",
            only("links-steps-100") <= 2.5 * only("links-steps-1"))
    if (count["link-connection_bytes-256"])
        fact("a further connection over a sisci link, bytes", only("link-connection_bytes-256"), "≤ 512",
            only("link-connection_bytes-256") <= 512)
}
{ value[$1, ++count[$1]] = $2 }
END {
    print "| two processes, shared memory | CCI | raw | ratio: median (lowest–highest) | target | |"
    print "| --- | ---: | ---: | ---: | ---: | --- |"
    row("shm_lat", "64 B message, half round-trip; cache line from CPU to CPU", "us", 1, 2)
    row("shm_pair", "the same; 64 B there and back through two rings by hand", "us", 1, 0)
    row("shm_words", "the same; a number alone, each way in a line of its own", "us", 1, 0)
    row("shm_rate", "64 B messages, a completion event for every 64th; ring of 64 B slots", "msg", 0, 0.6)
    row("shm_rate_copied", "the same; ring of records of two lines, copied out", "msg", 0, 0.9)
    row("shm_silent", "the same without completion events (SILENT); ring of 64 B slots", "msg", 0, 0.6)
    row("shm_silent_copied", "the same; ring of records of two lines, copied out", "msg", 0, 0.9)
    row("shm_events", "the same with a completion event for each; ring of 64 B slots", "msg", 0, 0)
    row("shm_events_copied", "the same; ring of records of two lines, copied out", "msg", 0, 0.35)
    row("shm_bw8k", "8 KiB messages; ring, read in place", "B", 0, 0.7)
    row("shm_write", "1 MiB RMA writes, memory of cci_rma_alloc; memcpy", "B", 0, 0.9)
    row("shm_read", "1 MiB RMA reads, memory of cci_rma_alloc; memcpy", "B", 0, 0.9)
    row("shm_heap_write", "1 MiB RMA writes, other memory; process_vm_writev", "B", 0, 0.9)
    row("shm_heap_read", "1 MiB RMA reads, other memory; process_vm_readv", "B", 0, 0.9)
    row("shm_wake", "64 B message to a sleeper, half round-trip; eventfd", "us", 1, 1.3)
    print ""
    if (only_shared) { costs(); exit }
    print "| two processes, loopback | CCI | raw UDP | ratio: median (lowest–highest) | target | |"
    print "| --- | ---: | ---: | ---: | ---: | --- |"
    row("lat", "64 B message, half round-trip", "us", 1, 1.15)
    row("rate", "64 B messages one way, a completion event for every 64th", "msg", 0, 40)
    row("silent", "the same without completion events (SILENT)", "msg", 0, 40)
    row("events", "the same with a completion event for each", "msg", 0, 0)
    row("bw8k", "8 KiB messages one way", "B", 0, 0.7)
    row("lent", "the same from the program\047s buffer (NO_COPY)", "B", 0, 0)
    row("write", "1 MiB RMA writes", "B", 0, 0.7)
    row("read", "1 MiB RMA reads", "B", 0, 0.7)
    row("full1500", full " B messages, MTU 1,500", "B", 0, 0)
    row("long1500", "8 KiB messages, MTU 1,500 (max_send_size = 8192)", "B", 0, 0.7)
    row("lent1500", "the same from the program\047s buffer (NO_COPY)", "B", 0, 0)
    row("write1500", "1 MiB RMA writes, MTU 1,500", "B", 0, 0.7)
    row("read1500", "1 MiB RMA reads, MTU 1,500", "B", 0, 0.7)
    print ""
    print "Messages and RMA are reliable and ordered (RO). Raw UDP is a busy-polling ping-pong; 64 B datagrams with sendto"
    print "and recvfrom; 8 KiB, or 1,472 B, datagrams with UDP_SEGMENT and UDP_GRO, counted where they arrive."
    print ""
    print "| two programs that sleep on epoll, loopback | CCI | raw UDP | ratio: median (lowest–highest) | target | |"
    print "| --- | ---: | ---: | ---: | ---: | --- |"
    row("sleep1", "64 B requests and replies, 1 in flight", "msg", 0, 0.7)
    row("sleep16", "the same, 16 in flight", "msg", 0, 1)
    row("sleep1000", "the same, 1,000 in flight", "msg", 0, 1)
    row("blocking", "64 B messages one way, asleep (cci_perf -b); beside it CCI polling", "msg", 0, 0.5)
    print ""
    print "| beside it | median (lowest–highest) |"
    print "| --- | ---: |"
    other("batched-sleep1", "raw UDP, up to 64 datagrams to a system call (recvmmsg, sendmmsg), 1 in flight", "ratio")
    other("batched-sleep16", "the same, 16 in flight", "ratio")
    other("batched-sleep1000", "the same, 1,000 in flight", "ratio")
    other("stream-blocking", "64 B messages one way, 900 in a datagram: raw UDP asleep, beside raw UDP polling", "ratio")
    other("polled-sleep1", "CCI polling, 64 B requests and replies, 1 in flight", "msg")
    other("polled-sleep16", "the same, 16 in flight", "msg")
    other("polled-sleep1000", "the same, 1,000 in flight", "msg")
    other("tcp_lat", "raw TCP, 64 B, half round-trip", "us")
    other("tcp_64k", "raw TCP, 64 KiB writes", "B")
    other("tcp_1m", "raw TCP, 1 MiB writes", "B")
    other("ucx-lat", "UCX over TCP, 64 B, half round-trip", "us")
    other("ucx-rate", "UCX over TCP, 64 B messages", "msg")
    other("ucx-bw8k", "UCX over TCP, 8 KiB messages", "B")
    other("ucx-write", "UCX over TCP, 1 MiB puts", "B")
    other("ucx-read", "UCX over TCP, 1 MiB gets", "B")
    other("fi-lat", "libfabric tcp;ofi_rxm, 64 B, half round-trip", "us")
    m = median("others")
    printf "| time that other programs took | %.0f %% (%.0f–%.0f) |\n", m, s[1], s[n]
    sorted("bounce")
    printf "| cache line from CPU to CPU | %.0f ns (%.0f–%.0f) |\n", median("bounce"), s[1], s[n]
    print ""
    costs()
    for (name in count) if (name ~ /^calls-allocations-/) allocations = name
    if (allocations)
        fact("allocations under traffic (" substr(allocations, 19) " messages and RMAs)", only(allocations), 0,
            only(allocations) <= 16)
    if (count["calls-connection_bytes-10000"]) {
        fact("an idle connection, bytes: 1,000 · 10,000 of them", only("calls-connection_bytes-1000") " · " \
            only("calls-connection_bytes-10000"), "≤ 256",
            only("calls-connection_bytes-10000") <= 256)
    }
    if (count["instructions-1"] && count["instructions-10000"]) {
        ratio = only("instructions-10000") / only("instructions-1")
        fact("an idle poll, instructions: 1 · 10,000 connections", sprintf("%s · %s, ratio %.3f",
            only("instructions-1"), only("instructions-10000"), ratio), "1 (± 5 %)", ratio <= 1.05)
    }
    if (count["time-poll-1"] && count["time-poll-10000"]) {
        ratio = only("time-poll-10000") / only("time-poll-1")
        text = sprintf("%s · %s, ratio %.2f", only("time-poll-1"), only("time-poll-10000"), ratio)
        if (count["instructions-1"]) printf "| the same, ns | %s | | |\n", text
        else fact("an idle poll, ns (valgrind, to count instructions, is not installed): 1 · 10,000 connections", text,
            "1 (± 50 %)", ratio <= 1.5)
    }
    if (count["cores-ratio"])
        fact("two endpoints of one address beside one: requests per second of the servers, from their processor time", \
            sprintf("%.0f · %.0f, ratio %.2f", median("cores-1"), median("cores-2"), median("cores-ratio")), "≥ 1.7", \
            median("cores-ratio") >= 1.7)
    if (count["calls-connects-10000"])
        printf "| connections opened and accepted per second (one thread) | %s | | |\n", only("calls-connects-10000")
}' "$data"
echo
echo 'Crowds: each peer asks one server, waits for the answer and asks again; simulated, so the same on every machine.'
echo
unset CCI_CONFIG # the crowds bring their own devices
# shellcheck disable=SC2086
$cc $cflags -std=gnu11 -I. -o build/crowd tests/net/crowd.c -lcmocka -lm -pthread && build/crowd table || complain 'crowd failed'
if [ "$only_shared" = 0 ]; then
    echo
    echo 'The same over UDP sockets, in real time: a client, a server and a relay that adds 10 ms each way, each a process that sleeps.'
    echo
    # shellcheck disable=SC2086
    $cc $cflags -std=gnu11 -I. -o build/crowd_udp tests/net/crowd_udp.c -lcmocka -pthread && timeout 300 build/crowd_udp table ||
        complain 'crowd_udp failed'
fi
[ "$failures" -eq 0 ] || die "$failures measurements failed"
