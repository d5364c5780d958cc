#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# netplot.sh [DIRECTORY] - draws how well bad networks are used, as tests/net/netsim.c measures it: net-goodput.svg,
# net-latency.svg and net-shares.svg in DIRECTORY, default tests. Time is virtual: the figures are the same on every machine.
set -u
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C
directory=${1:-tests}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086 # a list of words
${CC:-cc} -std=gnu11 ${CFLAGS:--O2} -I. -o "$work/netsim" tests/net/netsim.c -lcmocka -lm -pthread || exit 1
"$work/netsim" plots >"$work/data" || exit 1

# What the three drawings share: axes, curves and marks. A chart has its own x() and y().
cat >"$work/common.awk" <<'DRAWING'
function number(v) { return sprintf("%.1f", v) }
function text(px, py, class, words) { printf "<text x=\"%s\" y=\"%s\" class=\"%s\">%s</text>\n", number(px), number(py), class, words }
function line(class, x1, y1, x2, y2) {
    printf "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", class, number(x1), number(y1), number(x2), number(y2)
}
function dot(class, px, py) { printf "<circle class=\"dot %s\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", class, number(px), number(py) }
function curve(class, points) { printf "<polyline class=\"curve %s\" points=\"%s\"/>\n", class, points }
function key(class, px, py, words) { line("curve " class, px, py - 4.5, px + 28, py - 4.5); text(px + 36, py, "", words) }
function begin(title, width, height) {
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", \
        width, height, width, height
    printf "<title>%s</title>\n<!-- SPDX-License-Identifier: MIT OR Unlicense. Drawn by tests/bench/netplot.sh.\n%s-->\n<style>\n", title, lines
    print "text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 }"
    print ".small { font-size: 12px; fill: #59636e } .middle { text-anchor: middle } .end { text-anchor: end }"
    print ".grid { stroke: #d1d9e0 } .axis { stroke: #59636e } .curve { fill: none; stroke-width: 2.5 }"
    print ".bound { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 2 4 }"
    print ".a { stroke: #0969da } .b { stroke: #bc4c00 } .c { stroke: #1a7f37 } .d { stroke: #8250df; stroke-dasharray: 7 4 }"
    print ".dot { stroke: none } .dot.a { fill: #0969da } .dot.b { fill: #bc4c00 } .dot.c { fill: #1a7f37 } .dot.d { fill: #8250df }"
    print ".ref { stroke: #59636e; stroke-width: 1.5 } .dot.ref { fill: none; stroke: #59636e; stroke-width: 1.5 }"
    print "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d }"
    print ".axis, .bound, .ref, .dot.ref { stroke: #9198a1 } .a { stroke: #58a6ff } .b { stroke: #f0883e } .c { stroke: #3fb950 }"
    print ".d { stroke: #bc8cff } .dot.a { fill: #58a6ff } .dot.b { fill: #f0883e } .dot.c { fill: #3fb950 } .dot.d { fill: #bc8cff } }"
    print "</style>"
    text(58, 22, "title", title)
}
DRAWING

# draw KIND FILE: draws the lines of one kind with the program on its standard input.
draw() {
    cat "$work/common.awk" - >"$work/draw.awk"
    if ! grep "^$1," "$work/data" | awk -F, -f "$work/draw.awk" >"$work/svg" || ! mv "$work/svg" "$directory/$2"; then
        echo "netplot: $directory/$2 was not written" >&2
        exit 1
    fi
    echo "netplot: $directory/$2 is drawn"
}

draw goodput net-goodput.svg <<'DRAWING'
function x(loss) { return 58 + loss / 15 * 670 }
function y(share) { return 378 - share * 300 / 1.1 }
{ lines = lines $0 "\n"; if ($3 == 0) clean[$2] = $4; if (!points[$2]) order[++series] = $2
  points[$2] = points[$2] " " number(x($3)) "," number(y($4 / clean[$2])); at[$2, $3] = $4 / clean[$2] }
END {
    begin("Goodput at a loss, as a share of that without loss", 760, 450)
    name["messages"] = "messages"; name["writes"] = "writes"; name["reads"] = "reads"
    name["newreno"] = "messages, congestion = newreno"
    for (v = 0; v <= 10; v += 2) {
        line(v ? "grid" : "axis", x(0), y(v / 10), x(15), y(v / 10))
        text(x(0) - 8, y(v / 10) + 4.5, "end", sprintf("%.1f", v / 10))
    }
    for (v = 0; v <= 15; v += 1) {
        line("axis", x(v), y(0), x(v), y(0) + 5)
        text(x(v), y(0) + 20, "middle", v " %")
    }
    text(x(7.5), y(0) + 39, "middle", "packets lost by chance, each way")
    for (i = 1; i <= series; i++) {
        class = substr("abcd", i, 1)
        curve(class, substr(points[order[i]], 2))
        key(class, 58 + (i - 1) * 125, 48, name[order[i]])
        for (k = 0; k <= 150; k++)
            if ((order[i], k / 10) in at) dot(class, x(k / 10), y(at[order[i], k / 10]))
    }
    # What is known of others, at 1 and 5 %.
    dot("ref", x(1), y(.18)); text(x(1) + 5, y(.18) + 18, "small", "Aeron 0.18")
    dot("ref", x(5), y(.04)); text(x(5) + 9, y(.04) + 1, "small", "Aeron 0.04")
    dot("ref", x(1), y(1)); dot("ref", x(5), y(1)); text(x(5) - 20, y(1) - 10, "small", "TCP BBR holds its rate")
    text(58, y(0) + 61, "small", "Simulated: 100 Mbit/s, round trip 4 ms, queue of 50 KB. Rings: published of others, not measured here.")
    print "</svg>"
}
DRAWING

draw latency net-latency.svg <<'DRAWING'
function x(share) { return 58 + (log(100 / (100 - share)) / log(10) - .301) / 2.699 * 670 }
function y(trips) { return 378 - trips * 60 }
{ lines = lines $0 "\n"; if (!points[$2]) order[++series] = $2
  points[$2] = points[$2] " " number(x($3)) "," number(y($4 < 5 ? $4 : 5)); at[$2, $3] = $4 }
END {
    begin("Ping-pong at a loss: so many of 100 are answered within", 760, 450)
    for (v = 0; v <= 5; v++) {
        line(v ? "grid" : "axis", x(50), y(v), x(99.9), y(v))
        text(x(50) - 8, y(v) + 4.5, "end", v)
    }
    text(20, 66, "small", "round trips")
    count = split("50 80 90 95 98 99 99.5 99.8 99.9", tick, " ")
    for (i = 1; i <= count; i++) {
        line("axis", x(tick[i]), y(0), x(tick[i]), y(0) + 5)
        text(x(tick[i]), y(0) + 20, "middle", tick[i] " %")
    }
    text(x(97), y(0) + 39, "middle", "share of all ping-pongs")
    line("bound", x(98.5), y(2.5), x(99.5), y(2.5)); text(x(98.5) - 6, y(2.5) + 4, "small end", "the bound at 1 %: 2.5")
    for (i = 1; i <= series; i++) {
        class = substr("cab", i, 1)
        curve(class, substr(points[order[i]], 2))
        key(class, 58 + (i - 1) * 150, 48, order[i] " % each way")
        dot(class, x(99), y(at[order[i], 99] < 5 ? at[order[i], 99] : 5))
        text(x(99) + 7, y(at[order[i], 99]) - 6, "small", sprintf("%.2f", at[order[i], 99]))
    }
    text(58, y(0) + 61, "small", "Simulated: 100 Mbit/s, round trip 4 ms, packets lost by chance.")
    print "</svg>"
}
DRAWING

draw shares net-shares.svg <<'DRAWING'
function x(t) { return left + t / 15 * 213 }
function y(rate) { return 348 - rate * 2.7 }
{ lines = lines $0 "\n"; if (!first[$2]) order[++series] = $2
  first[$2] = first[$2] " " $3 "," $4; second[$2] = second[$2] " " $3 "," $5
  if ($3 > 3) { a[$2] += $4; b[$2] += $5 } }
function rates(class, all,    count, i, pair, at, points) {
    count = split(substr(all, 2), pair, " ")
    for (i = 1; i <= count; i++) { split(pair[i], at, ","); points = points " " number(x(at[1])) "," number(y(at[2])) }
    curve(class, substr(points, 2))
}
END {
    begin("Two flows share a line of 100 Mbit/s", 760, 440)
    name["newreno"] = "beside a NewReno-like flow"; name["cubic"] = "beside a CUBIC-like flow"; name["ours"] = "two of ours"
    key("a", 58, 48, "ours"); key("b", 158, 48, "the other")
    for (i = 1; i <= series; i++) {
        s = order[i]
        left = 58 + (i - 1) * 233
        for (v = 0; v <= 100; v += 25) {
            line(v ? "grid" : "axis", x(0), y(v), x(15), y(v))
            if (i == 1) text(x(0) - 8, y(v) + 4.5, "end", v)
        }
        for (v = 0; v <= 15; v += 5) { line("axis", x(v), y(0), x(v), y(0) + 5); if (v) text(x(v), y(0) + 20, "middle", v " s") }
        rates("b", second[s]); rates("a", first[s])
        text(x(0), 72, "", name[s])
        text(x(0), y(0) + 42, "small", sprintf("after 3 s: %.0f : %.0f, Jain\047s index %.3f", 100 * a[s] / (a[s] + b[s]), \
            100 * b[s] / (a[s] + b[s]), (a[s] + b[s]) ^ 2 / 2 / (a[s] ^ 2 + b[s] ^ 2)))
    }
    text(58, y(0) + 66, "small", "Simulated: Mbit/s in each fifth of a second; round trip 4 ms, queue of 50 KB.")
    print "</svg>"
}
DRAWING
