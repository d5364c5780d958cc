#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# bench_verbs.sh [-q] [-r ROUNDS] [-D SECONDS] - measures CCI over RDMA side by side with perftest (ib_send_lat, ib_send_bw,
# ib_write_bw, ib_read_bw) on the same two devices: those of the virtual machine of tests/verbs/vm.
#
# Each round measures, for every row of the table, perftest, CCI, and perftest again, and divides CCI's figure by the mean of
# the two around it; what is printed is the median of the rounds' ratios with the lowest and the highest. Both use two
# processes, each on a processor of its own, polling; the target of RMAs sleeps, as perftest's does. The devices are software on
# an emulated processor, so absolute figures mean nothing; ratios show what CCI adds to what the driver takes. The pace that is
# printed with each round is the time of a fixed piece of work on both processors: where it varies, other programs had
# them too, and ratios vary likewise. Then connections are opened, up to 10,000: their memory and queue pairs are counted, and
# what it takes to open them is measured; and what it takes to register memory.
#
#     -q          quick: 2 rounds
#     -r ROUNDS   default 5
#     -D SECONDS  of each of CCI's measurements, default 0.5
#
# Missing a target is not an error; exit status 1 means that something could not be measured, 77 that there can be no virtual
# machine here.
set -u
logs=${TMPDIR:-/tmp} # of the guest: it has a disk in memory there

# ---- in the virtual machine ------------------------------------------------------------------------------------------

data=/out/data # lines: name value
failures=0

complain() {
    echo "bench: $*"
    failures=$((failures + 1))
}

peer_port=18515
# listens PORT: until a server is ready, ten seconds at most.
listens() {
    tries=0
    until grep -q "$(printf ':%04X 0*:0000 0A' "$1")" /proc/net/tcp /proc/net/tcp6; do
        tries=$((tries + 1))
        [ "$tries" -lt 500 ] || return 1
        usleep 20000
    done
}

# perftest PROGRAM SIZE COUNT [OPTIONS]: prints microseconds (the median), bytes per second, or for 64 bytes messages per second.
perftest() {
    peer_port=$((peer_port + 1)) # a port that was just used may not be free yet
    program=$1 size=$2 count=$3
    shift 3
    timeout 60 taskset 1 "$program" -d rxe1 -s "$size" -n "$count" -p "$peer_port" -F "$@" >"$logs/server.log" 2>&1 &
    server=$!
    listens "$peer_port"
    timeout 60 taskset 2 "$program" -d rxe0 -s "$size" -n "$count" -p "$peer_port" -F "$@" 10.0.0.2 >"$logs/client.log" 2>&1
    wait "$server"
    # Under "#bytes #iterations" come the lowest, highest and typical latency, or peak and average in MiB/s and the rate in M/s.
    awk -v size="$size" -v program="$program" '$1 == size && NF >= 4 {
        printf "%.10g\n", program ~ /lat/ ? $5 : size <= 64 ? $5 * 1e6 : $4 * 1048576
    }' "$logs/client.log"
}

# cci FROM TO TEST SIZE [OPTIONS]: prints microseconds (the median), messages or bytes per second.
cci() {
    from=$1 to=$2 test=$3 size=$4
    shift 4
    case $test in *lat) column=median_us ;; rate) column=msg_per_s ;; *) column=bytes_per_s ;; esac
    case $test in *write* | *read*) sleeps=--blocking ;; *) sleeps= ;; esac
    : >"$logs/server.log"
    timeout 60 ./cci_perf -d "$to" --cpu 0 --once $sleeps >"$logs/server.log" 2>&1 &
    server=$!
    tries=0 uri=
    while [ -z "$uri" ] && [ "$tries" -lt 500 ]; do
        usleep 20000
        uri=$(sed -n 's/^uri: //p' "$logs/server.log")
        tries=$((tries + 1))
    done
    timeout 60 ./cci_perf "$uri" -d "$from" --cpu 1 -t "$test" -s "$size" -D "$seconds" --format csv "$@" >"$logs/client.log" 2>&1 ||
        kill "$server"
    wait "$server"
    awk -F, -v column="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) c = i } NR == 2 && c { print $c }' \
        "$logs/client.log"
}

# compare ROW 'PERFTEST' 'CCI': keeps the values and the ratio.
compare() {
    # shellcheck disable=SC2086 # lists of words
    before=$(perftest $2)
    # shellcheck disable=SC2086
    value=$(cci $3)
    # shellcheck disable=SC2086
    after=$(perftest $2)
    if [ -z "$before" ] || [ -z "$value" ] || [ -z "$after" ]; then
        complain "$1 was not measured in this round (perftest $before, CCI $value, perftest $after)"
        tail -n 3 "$logs/client.log" "$logs/server.log"
        return
    fi
    awk -v row="$1" -v a="$before" -v v="$value" -v b="$after" 'BEGIN {
        raw = (a + b) / 2
        if (raw > 0) printf "raw-%s %.10g\ncci-%s %.10g\nratio-%s %.10g\n", row, raw, row, v, row, v / raw
    }' >>"$data"
}

# The most that a message takes: a longer one is refused with that number.
most() {
    cci "$1" "$2" bw 16m >/dev/null 2>&1
    sed -n 's/.*the most is \([0-9]*\).*/\1/p' "$logs/client.log"
}

# Milliseconds of a fixed piece of work on both processors at once.
pace() {
    read -r began _ </proc/uptime
    for processor in 1 2; do taskset $processor awk 'BEGIN { while (i < 400000) i++ }' & done
    wait
    read -r ended _ </proc/uptime
    echo "$began $ended" | awk '{ printf "%.0f\n", ($2 - $1) * 1000 }'
}

in_guest() {
    rounds=$1 seconds=$2
    # The driver works in the kernel's softirq threads. Programs that poll would starve them, which no hardware suffers from.
    ps | sed -n 's/^ *\([0-9]*\) .*\[[k]softirqd.*/\1/p' | while read -r thread; do chrt -f -p 10 "$thread"; done
    export CCI_CONFIG=/t/bench.ini
    full=$(most rc0 rc1)
    full_ud=$(most ud0 ud1)
    [ -n "$full" ] && [ -n "$full_ud" ] || { complain 'CCI has no RDMA devices' && cat "$logs/client.log"; return 1; }
    echo "full $full" >"$data"
    echo "full-ud $full_ud" >>"$data"
    round=1
    while [ "$round" -le "$rounds" ]; do
        echo "pace $(pace)" >>"$data"
        compare lat 'ib_send_lat 64 4000' 'rc0 rc1 lat 64'
        compare rate 'ib_send_bw 64 20000' 'rc0 rc1 rate 64'
        compare silent 'ib_send_bw 64 20000' 'rc0 rc1 rate 64 --silent'
        compare full "ib_send_bw $full 4000" "rc0 rc1 bw $full"
        compare write64k 'ib_write_bw 65536 600' 'rc0 rc1 write_bw 64k'
        compare write1m 'ib_write_bw 1048576 40' 'rc0 rc1 write_bw 1m'
        compare read64k 'ib_read_bw 65536 600' 'rc0 rc1 read_bw 64k'
        compare read1m 'ib_read_bw 1048576 40' 'rc0 rc1 read_bw 1m'
        compare lat-ud 'ib_send_lat 64 4000 -c UD' 'ud0 ud1 lat 64'
        compare rate-ud 'ib_send_bw 64 20000 -c UD' 'ud0 ud1 rate 64'
        compare full-ud 'ib_send_bw 4096 4000 -c UD' "ud0 ud1 bw $full_ud"
        compare write-ud 'ib_write_bw 1048576 40' 'ud0 ud1 write_bw 1m'
        compare read-ud 'ib_read_bw 1048576 40' 'ud0 ud1 read_bw 1m'
        echo "round $round: $(awk '/^pace / { text = "pace " $2 " ms;" } /^ratio-/ { text = text sprintf(" %s %.3g", substr($1, 7), $2) }
            END { print text }' "$data")"
        round=$((round + 1))
    done
    for kind in rc ud; do
        timeout 400 ./bench_verbs "${kind}0" "${kind}1" 1 100 1000 10000 >"$logs/counts" 2>"$logs/errors" ||
            complain "connections with mode = $kind were not counted: $(cat "$logs/errors")"
        awk -F, -v kind="$kind" '{
            print "library-" kind "-" $1, $2; print "machine-" kind "-" $1, $3
            print "pairs-" kind "-" $1, $4; print "time-" kind "-" $1, $6
        }' "$logs/counts" >>"$data"
    done
    timeout 300 ./bench_verbs register rc0 >"$logs/register" 2>"$logs/errors" ||
        complain "registering memory was not measured: $(cat "$logs/errors")"
    awk -F, '{ print "register-" $1, $2; print "deregister-" $1, $3 }' "$logs/register" >>"$data"
    [ "$failures" -eq 0 ]
}
if [ "${1:-}" = --guest ]; then
    shift
    in_guest "$@"
    exit
fi

# ---- on this machine -------------------------------------------------------------------------------------------------

cd "$(dirname "$0")/../.." || exit 1
rounds=5 seconds=0.5
while getopts qr:D:h option; do
    case $option in
    q) rounds=2 ;;
    r) rounds=$OPTARG ;;
    D) seconds=$OPTARG ;;
    *) sed -n '3,22s/^# \{0,1\}//p' "$0"; [ "$option" = h ]; exit ;;
    esac
done

die() {
    echo "bench: $*" >&2
    exit 1
}

sh tests/verbs/vm/fetch.sh || exit
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/files" "$work/out"
cc=${CC:-cc}
cflags=${CFLAGS:--O2}
# shellcheck disable=SC2086 # a list of words
$cc $cflags -I. -DCCI_IMPLEMENTATION= -include cci_verbs.h -o "$work/files/cci_perf" examples/cci_perf.c -pthread ||
    die 'building cci_perf failed'
# shellcheck disable=SC2086
$cc $cflags -I. -o "$work/files/bench_verbs" tests/bench/bench_verbs.c -pthread || die 'building bench_verbs failed'
cp tests/bench/bench_verbs.sh "$work/files/"
for kind in rc ud; do
    for number in 0 1; do
        printf '[%s%s]\ntransport = verbs\ndevice = rxe%s\nmode = %s\n' $kind $number $number $kind
    done
done >"$work/files/bench.ini"

echo "CCI over RDMA against perftest: two software devices in a virtual machine, $rounds rounds"
sh tests/verbs/vm/boot.sh -m 3072 -t $((900 + rounds * 240)) -o "$work/out" "$work/files" \
    "exec sh bench_verbs.sh --guest $rounds $seconds"
ended=$?
[ -s "$work/out/data" ] || die "nothing was measured (status $ended)"

echo
awk '
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
    if (kind == "us") return sprintf("%.1f µs", x)
    if (kind == "msg") return sprintf("%.1f k/s", x / 1e3)
    return sprintf("%.1f MB/s", x / 1e6)
}
function row(key, text, beside, kind, most, target,    m, good) {
    if (!count["ratio-" key]) { printf "| %s | not measured | %s | | | |\n", text, beside; return }
    m = median("ratio-" key)
    good = most ? m <= target : m >= target
    printf "| %s | %s | %s %s | **%.2f** (%.2f–%.2f) | %s | %s |\n", text, unit(median("cci-" key), kind), beside,
        unit(median("raw-" key), kind), (sorted("ratio-" key) m), s[1], s[n],
        target ? (most ? "≤" : "≥") " " target : "", !target ? "" : good ? "PASS" : "miss"
}
function only(name) { return value[name, 1] }
function each(what, kind, number) { return (only(what "-" kind "-" number) - only(what "-" kind "-0")) / number }
{ value[$1, ++count[$1]] = $2 }
END {
    print "| two processes, two software RDMA devices | CCI | perftest | ratio: median (lowest–highest) | target | |"
    print "| --- | ---: | ---: | ---: | ---: | --- |"
    row("lat", "64 B message, half round-trip", "ib_send_lat", "us", 1, 1.15)
    row("rate", "64 B messages one way", "ib_send_bw", "msg", 0, 0.9)
    row("silent", "the same without completion events (SILENT)", "ib_send_bw", "msg", 0, 0)
    row("full", only("full") " B messages (the largest)", "ib_send_bw", "B", 0, 0.9)
    row("write64k", "64 KiB RMA writes", "ib_write_bw", "B", 0, 0.9)
    row("write1m", "1 MiB RMA writes", "ib_write_bw", "B", 0, 0.9)
    row("read64k", "64 KiB RMA reads", "ib_read_bw", "B", 0, 0.9)
    row("read1m", "1 MiB RMA reads", "ib_read_bw", "B", 0, 0.9)
    row("lat-ud", "mode = ud: 64 B message, half round-trip", "ib_send_lat -c UD", "us", 1, 0)
    row("rate-ud", "mode = ud: 64 B messages one way", "ib_send_bw -c UD", "msg", 0, 0)
    row("full-ud", "mode = ud: " only("full-ud") " B messages", "ib_send_bw -c UD", "B", 0, 0)
    row("write-ud", "mode = ud: 1 MiB RMA writes", "ib_write_bw", "B", 0, 0)
    row("read-ud", "mode = ud: 1 MiB RMA reads", "ib_read_bw", "B", 0, 0)
    print ""
    print "Messages are reliable and ordered (RO). perftest'\''s UD is unreliable."
    sorted("pace")
    printf "The pace: %d ms (%d–%d).\n", median("pace"), s[1], s[n]
    print ""
    print "| connections, both ends together | library, bytes each | machine, bytes each | queue pairs | time each, of those that came |"
    print "| --- | ---: | ---: | ---: | ---: |"
    for (i = 1; i <= 2; i++) {
        kind = i == 1 ? "rc" : "ud"
        printf "| mode = %s, 0 (two endpoints) | %d in all | %d in all | %d | |\n", kind, only("library-" kind "-0"),
            only("machine-" kind "-0"), only("pairs-" kind "-0")
        for (number = 1; number <= 10000; number *= number == 1 ? 100 : 10)
            if (count["pairs-" kind "-" number])
                printf "| mode = %s, %d | %d | %d | %d | %.0f µs |\n", kind, number, each("library", kind, number),
                    each("machine", kind, number), only("pairs-" kind "-" number), only("time-" kind "-" number)
    }
    print ""
    print "| memory, mode = rc | cci_rma_register() | cci_rma_deregister() |"
    print "| ---: | ---: | ---: |"
    for (bytes = 4096; bytes <= 1073741824; bytes *= 8)
        if (count["register-" bytes])
            printf "| %d KiB | %.1f µs | %.1f µs |\n", bytes / 1024, only("register-" bytes), only("deregister-" bytes)
}' "$work/out/data"
[ "$ended" -eq 0 ] || die 'something could not be measured'
