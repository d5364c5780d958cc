#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# plot.sh [-r ROUNDS] [-D SECONDS] [-o FILE] - measures bandwidth over size and draws tests/bench/plot.svg, the README's plot.
#
# Two processes on the loopback, each on a CPU of its own, both polling. A round measures raw UDP with the kernel's
# offloads, CCI messages of all sizes, raw UDP, CCI writes of remote memory of all sizes, raw UDP again, and raw TCP. On a
# shared or virtual machine other programs' work disturbs: when raw UDP before and after a series differ by more than a
# quarter, that series does not count and is measured again, a few times at most. Drawn are the medians of the rounds,
# and shaded the range from the lowest to the highest. The figures themselves stand in a comment in the SVG.
#
#     -r ROUNDS   default 7
#     -D SECONDS  of each measurement, default 0.1
#     -o FILE     default tests/bench/plot.svg
#
# CPUS="2 3" in the environment chooses other CPUs than 0 and 1.
set -u
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C

rounds=7 seconds=0.1 svg=tests/bench/plot.svg
while getopts r:D:o:h option; do
    case $option in
    r) rounds=$OPTARG ;;
    D) seconds=$OPTARG ;;
    o) svg=$OPTARG ;;
    *) sed -n '3,16s/^# \{0,1\}//p' "$0"; [ "$option" = h ]; exit ;;
    esac
done

die() {
    echo "plot: $*" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || die 'this needs Linux: raw UDP uses its UDP_SEGMENT and UDP_GRO'
# shellcheck disable=SC2086 # two words
set -- ${CPUS:-0 1}
[ $# -eq 2 ] || die "CPUS must name two CPUs, like CPUS='0 1'"
server_cpu=$1 client_cpu=$2

cc=${CC:-cc}
make -s CC="$cc" build/cci_perf || die 'building cci_perf failed'
# shellcheck disable=SC2086 # a list of words
$cc ${CFLAGS:--O2} -o build/bench_raw tests/bench/bench_raw.c || die 'building bench_raw failed'

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
data=$work/data # lines: series size bytes-per-second
: >"$data"

# ---- measuring ---------------------------------------------------------------------------------------------------------

# raw MEASURE: prints bytes per second, or datagrams per second.
raw() {
    timeout 60 build/bench_raw -D "$seconds" -c "$server_cpu,$client_cpu" "$1" 2>"$work/raw.log" | cut -d, -f2
}

# cci TEST SIZES: prints a line "size bytes-per-second" for each size. The server lives for one client, so that nothing of
# CCI polls while raw sockets are measured.
cci() {
    : >"$work/server.log"
    timeout 120 build/cci_perf -d lo --cpu "$server_cpu" --once >"$work/server.log" 2>&1 &
    server=$!
    uri=
    tries=0
    while [ -z "$uri" ] && [ "$tries" -lt 250 ]; do
        sleep 0.02
        uri=$(sed -n 's/^uri: //p' "$work/server.log")
        tries=$((tries + 1))
    done
    timeout 120 build/cci_perf "$uri" -d lo --cpu "$client_cpu" -t "$1" -s "$2" -D "$seconds" --format csv \
        >"$work/client.log" 2>&1 || { stop_server; return 1; }
    wait "$server" 2>/dev/null
    server=
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { print $column["size"], $column["bytes_per_s"] }' "$work/client.log"
}

# measure SERIES TEST SIZES: leaves raw UDP's figure from after the series in $last.
measure() {
    attempts=0
    while :; do
        before=$last
        cci "$2" "$3" >"$work/series" || { cat "$work/server.log" "$work/client.log" >&2; die "$1 failed"; }
        last=$(raw bw8k)
        [ -n "$last" ] || { cat "$work/raw.log" >&2; die 'raw UDP was not measured'; }
        quiet=$(echo "$before $last" | awk '{ r = $1 / $2; print (r >= 0.75 && r <= 1 / 0.75) ? 1 : 0 }')
        attempts=$((attempts + 1))
        [ "$quiet" = 1 ] && break
        [ "$attempts" -lt 6 ] || die 'the machine is too busy: raw UDP itself varies by more than a quarter'
    done
    sed "s/^/$1 /" "$work/series" >>"$data"
    printf 'raw-udp 0 %s\nraw-udp 0 %s\n' "$before" "$last" >>"$data"
}

unset CCI_CONFIG
# A message longer than the largest datagram is refused with the number of bytes that are possible.
cci bw 1m >/dev/null
most=$(sed -n 's/.*the most is \([0-9]*\).*/\1/p' "$work/client.log")
[ -n "$most" ] || { cat "$work/server.log" "$work/client.log" >&2; die 'there is no CCI device "lo"'; }

round=1
while [ "$round" -le "$rounds" ]; do
    last=$(raw bw8k)
    measure messages bw "64:32k,$most"
    measure writes write_bw 1k:1m
    echo "raw-tcp 0 $(raw tcp_1m)" >>"$data"
    echo "raw-small 64 $(raw rate | awk '{ print $1 * 64 }')" >>"$data"
    echo "round $round of $rounds: raw UDP $(echo "$last" | awk '{ printf "%.1f GB/s", $1 / 1e9 }')"
    round=$((round + 1))
done

# ---- medians -----------------------------------------------------------------------------------------------------------

# lines: series size median lowest highest
awk '{ key = $1 " " $2; if (!(key in count)) order[++keys] = key; value[key, ++count[key]] = $3 + 0 }
    END {
        for (k = 1; k <= keys; k++) {
            key = order[k]
            n = count[key]
            for (i = 1; i <= n; i++) s[i] = value[key, i]
            for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j] < s[j - 1]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
            printf "%s %.0f %.0f %.0f\n", key, n % 2 ? s[(n + 1) / 2] : (s[n / 2] + s[n / 2 + 1]) / 2, s[1], s[n]
        }
    }' "$data" >"$work/medians"

# ---- drawing -----------------------------------------------------------------------------------------------------------

machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed 's/[<>&-]//g; q')
awk -v rounds="$rounds" -v machine="${machine:-unknown processor}, $(nproc) CPUs, Linux $(uname -r)" '
function x(size) { return left + (log(size) / log(2) - 6) / 14 * width }
function y(rate) { return top + height - rate / 1e9 / most * height }
function number(v) { return sprintf("%.1f", v) }
function text(px, py, class, words) { printf "<text x=\"%s\" y=\"%s\" class=\"%s\">%s</text>\n", number(px), number(py), class, words }
function level(name, class, words,    py) {
    py = y(median[name, 1])
    printf "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%s\" y2=\"%s\"/>\n", class, left, left + width, number(py), number(py)
    text(left + 8, py - 6, "raw", words sprintf(": %.1f GB/s", median[name, 1] / 1e9))
}
function mark(class, px, py) {
    if (class == "b")
        printf "<rect class=\"dot %s\" x=\"%s\" y=\"%s\" width=\"7\" height=\"7\"/>\n", class, number(px - 3.5), number(py - 3.5)
    else
        printf "<circle class=\"dot %s\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", class, number(px), number(py)
}
function curve(name, class,    i, upper, lower, middle) {
    for (i = 1; i <= n[name]; i++) {
        upper = upper " " number(x(size[name, i])) "," number(y(high[name, i]))
        lower = " " number(x(size[name, i])) "," number(y(low[name, i])) lower
        middle = middle " " number(x(size[name, i])) "," number(y(median[name, i]))
    }
    printf "<polygon class=\"range %s\" points=\"%s\"/>\n", class, substr(upper lower, 2)
    printf "<polyline class=\"curve %s\" points=\"%s\"/>\n", class, substr(middle, 2)
    for (i = 1; i <= n[name]; i++) mark(class, x(size[name, i]), y(median[name, i]))
}
{ i = ++n[$1]; size[$1, i] = $2; median[$1, i] = $3; low[$1, i] = $4; high[$1, i] = $5; lines = lines $0 "\n"
  if (($1 == "messages" || $1 == "writes" ? $5 : $3) > peak) peak = ($1 == "messages" || $1 == "writes" ? $5 : $3) }
END {
    left = 58; top = 78; width = 670; height = 300
    most = int(peak * 1.06 / 1e9) + 1
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 468\" width=\"760\" height=\"468\" role=\"img\">"
    print "<title>Bandwidth over size: CCI messages and remote writes beside raw UDP and TCP on the loopback</title>"
    print "<!-- SPDX-License-Identifier: MIT OR Unlicense. Drawn by tests/bench/plot.sh."
    print machine
    print "series, bytes of each message, write or datagram (0: see the label), bytes per second: median, lowest, highest"
    printf "%s-->\n", lines
    print "<style>"
    print "text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 }"
    print ".small, .raw { font-size: 12px; fill: #59636e } .middle { text-anchor: middle } .end { text-anchor: end }"
    print ".grid { stroke: #d1d9e0 } .axis { stroke: #59636e } .udp, .tcp { stroke: #59636e; stroke-width: 1.5 }"
    print ".udp { stroke-dasharray: 7 4 } .tcp { stroke-dasharray: 2 4 } .curve { fill: none; stroke-width: 2.5 }"
    print ".a { stroke: #0969da } .b { stroke: #bc4c00 } .range { stroke: none; opacity: .15 }"
    print ".dot.a, .range.a { fill: #0969da } .dot.b, .range.b { fill: #bc4c00 }"
    print "@media (prefers-color-scheme: dark) {"
    print "text { fill: #e6edf3 } .small, .raw { fill: #9198a1 } .grid { stroke: #3d444d } .axis, .udp, .tcp { stroke: #9198a1 }"
    print ".a { stroke: #58a6ff } .b { stroke: #f0883e } .dot.a, .range.a { fill: #58a6ff } .dot.b, .range.b { fill: #f0883e } }"
    print "</style>"
    text(left, 22, "title", "Bandwidth between two processes over UDP, loopback, GB/s")
    # the legend
    printf "<line class=\"curve a\" x1=\"%d\" x2=\"%d\" y1=\"45\" y2=\"45\"/>\n", left, left + 28
    mark("a", left + 14, 45)
    text(left + 36, 49.5, "", "cci_send: reliable, ordered messages")
    printf "<line class=\"curve b\" x1=\"%d\" x2=\"%d\" y1=\"45\" y2=\"45\"/>\n", left + 300, left + 328
    mark("b", left + 314, 45)
    text(left + 336, 49.5, "", "cci_rma: writes into the memory of the peer")
    # the axes
    for (v = 0; v <= most; v++) {
        printf "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%s\" y2=\"%s\"/>\n", v ? "grid" : "axis", left, left + width, \
            number(y(v * 1e9)), number(y(v * 1e9))
        text(left - 8, y(v * 1e9) + 4.5, "end", v)
    }
    for (v = 6; v <= 20; v += 2) {
        printf "<line class=\"axis\" x1=\"%s\" x2=\"%s\" y1=\"%d\" y2=\"%d\"/>\n", number(x(2 ^ v)), number(x(2 ^ v)), \
            top + height, top + height + 5
        text(x(2 ^ v), top + height + 20, "middle", v < 10 ? 2 ^ v " B" : v < 20 ? 2 ^ (v - 10) " KiB" : "1 MiB")
    }
    text(left + width / 2, top + height + 39, "middle", "size of each message or write")
    level("raw-udp", "udp", "raw UDP, 8 KiB datagrams, segmentation offload")
    level("raw-tcp", "tcp", "raw TCP, 1 MiB writes")
    curve("messages", "a")
    curve("writes", "b")
    text(left, top + height + 60, "small", sprintf("Medians of %d rounds; shaded: lowest to highest. Each process polls on a " \
        "processor of its own.", rounds))
    text(left, top + height + 77, "small", sprintf("For comparison, raw UDP with 64 B datagrams and a system call for each: " \
        "%.2f GB/s.", median["raw-small", 1] / 1e9))
    print "</svg>"
}' "$work/medians" >"$work/plot.svg" && mv "$work/plot.svg" "$svg" || die "$svg was not written"
echo "plot: $svg is drawn"
