#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# capture.sh PROGRAM CAPTURE - runs wire_run over UDP in a network namespace of its own, while tcpdump writes down what
# crosses its loopback interface: nothing else does. PROGRAM is built with CCI_UDP_PORTABLE, because a capture on a
# loopback interface shows what the kernel would split (UDP_SEGMENT) as one long datagram. Status 77 and the reason, where
# this can't be done; 75 when tcpdump was too slow to see everything.
set -u

refuse() {
    echo "$*"
    exit 77
}

program=${1:?"usage: $0 PROGRAM CAPTURE"} capture=${2:?"usage: $0 PROGRAM CAPTURE"}
if [ -z "${CCI_WIRE:-}" ]; then
    [ "$(uname -s)" = Linux ] || refuse 'only Linux has network namespaces'
    [ "$(id -u)" -eq 0 ] || refuse 'only root may capture packets'
    for tool in unshare ip tcpdump; do
        command -v "$tool" >/dev/null 2>&1 || refuse "there is no $tool"
    done
    unshare -n true 2>/dev/null || refuse 'network namespaces are not allowed here'
    CCI_WIRE=inside exec unshare -n sh "$0" "$@"
fi
ip link set lo mtu 1500 up || refuse 'there is no loopback interface'
rm -f "$capture"
tcpdump -i lo -s 0 -B 65536 -U -Z root -w "$capture" udp 2>"$capture.log" &
watcher=$!
tries=0
until grep -q 'listening on' "$capture.log"; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { kill "$watcher"; refuse "tcpdump does not start: $(head -n 1 "$capture.log")"; }
    sleep 0.1
done
"$program" udp
status=$?
sleep 1 # tcpdump gets what is captured in blocks, the last one after a while
kill -INT "$watcher"
wait "$watcher"
cat "$capture.log"
grep -q '^0 packets dropped by kernel' "$capture.log" || { echo 'the capture has gaps' && exit 75; }
exit "$status"
