#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# bench_copy.sh [-r ROUNDS] [-m MIB] - copies one file with cci_cp, rsync's daemon, scp and tar through nc, on the loopback.
#
# Each round copies with cci_cp, with the other program, and with cci_cp again, and divides the other's time by the mean of
# the two around it: above 1, cci_cp was faster. What is printed is the median of the rounds with the lowest and the
# highest. Each copy is compared with the file, outside the measured time. A program that is missing is skipped.
#
#     -r ROUNDS   default 5
#     -m MIB      size of the file, default 1024; twice as much is taken in the temporary directory (TMPDIR)
#
# Exit status 1 means that something could not be measured.
# shellcheck disable=SC2317 # functions are called by names that are put together
set -u
cd "$(dirname "$0")/../.." || exit 1

rounds=5
mib=1024
while getopts r:m:h option; do
    case $option in
    r) rounds=$OPTARG ;;
    m) mib=$OPTARG ;;
    *) sed -n '3,12s/^# \{0,1\}//p' "$0"; [ "$option" = h ]; exit ;;
    esac
done

die() {
    echo "bench_copy: $*" >&2
    exit 1
}

for number in "$rounds" "$mib"; do
    case $number in '' | *[!0-9]* | 0*) die "not a number above 0: $number" ;; esac
done
make -s build/cci_cp || die 'building cci_cp failed'

work=$(mktemp -d) || exit 1
servers=
cleanup() {
    # shellcheck disable=SC2086 # a list of processes
    [ -z "$servers" ] || kill $servers 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

mkdir "$work/from" "$work/to" || exit 1
head -c "$((mib * 1048576))" /dev/urandom >"$work/from/file" || die 'the file could not be written'

# free_port: a TCP port of the loopback at which nobody listens.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_true WHAT COMMAND...: waits for up to five seconds.
until_true() {
    what=$1 tries=0
    shift
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 250 ] || { echo "bench_copy: $what did not begin" >&2 && return 1; }
        sleep 0.02
    done
}

# listens PORT: whether somebody listens there; nothing connects, for nc serves one client alone.
listens() {
    grep -q "$(printf ':%04X 0*:0000 0A' "$1")" /proc/net/tcp
}

# ---- the programs: NAME_serve once, NAME_copy for each copy ----------------------------------------------------------

cci_serve() {
    build/cci_cp -q -l "$work/to" >"$work/cci.uri" 2>"$work/cci.err" &
    servers="$servers $!"
    until_true 'cci_cp -l' grep -q '://' "$work/cci.uri"
    uri=$(grep -o '[a-z]*://[^ ]*' "$work/cci.uri" | head -n 1)
}
cci_copy() { build/cci_cp -q "$work/from/file" "$uri"; }

rsync_serve() {
    rsync_port=$(free_port)
    printf 'use chroot = no\n[to]\npath = %s\nread only = no\n' "$work/to" >"$work/rsync.conf"
    [ "$(id -u)" -ne 0 ] || printf 'uid = 0\ngid = 0\n' >>"$work/rsync.conf"
    rsync --daemon --no-detach --address=127.0.0.1 --port="$rsync_port" --config="$work/rsync.conf" >"$work/rsync.log" 2>&1 &
    servers="$servers $!"
    until_true rsync listens "$rsync_port"
}
rsync_copy() { rsync -q --whole-file "$work/from/file" "rsync://127.0.0.1:$rsync_port/to/"; }

scp_serve() {
    sshd=$(PATH=$PATH:/usr/sbin command -v sshd)
    scp_port=$(free_port)
    ssh-keygen -q -t ed25519 -N '' -f "$work/host" && ssh-keygen -q -t ed25519 -N '' -f "$work/user" || return 1
    "$sshd" -D -f /dev/null -o "ListenAddress=127.0.0.1" -p "$scp_port" -h "$work/host" -o "AuthorizedKeysFile=$work/user.pub" \
        -o StrictModes=no -o PidFile=none -o PermitRootLogin=yes -o 'Subsystem=sftp internal-sftp' 2>"$work/sshd.log" &
    servers="$servers $!"
    until_true sshd listens "$scp_port" || { cat "$work/sshd.log" >&2 && return 1; }
}
scp_copy() {
    scp -q -F /dev/null -P "$scp_port" -i "$work/user" -o BatchMode=yes -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$work/from/file" "127.0.0.1:$work/to/"
}

nc_serve() { :; }
nc_before() {
    nc_port=$(free_port)
    nc -l 127.0.0.1 "$nc_port" </dev/null | tar -x -C "$work/to" -f - &
    receiver=$!
    until_true nc listens "$nc_port"
}
nc_copy() { tar -c -C "$work/from" -f - file | nc -N 127.0.0.1 "$nc_port" && wait "$receiver"; }

# ---- rounds ----------------------------------------------------------------------------------------------------------

# copy NAME: copies the file once and leaves the milliseconds in $took; 1 when it fails or the copy differs.
copy() {
    rm -rf "$work/to/file"
    [ "$1" != nc ] || nc_before || return 1
    began=$(date +%s%N)
    "$1_copy" || return 1
    took=$((($(date +%s%N) - began) / 1000000))
    [ "$took" -gt 0 ] || took=1
    cmp -s "$work/from/file" "$work/to/file"
}

cci_serve || exit 1
status=0
printf '%s MiB, %s rounds; time of the other program, divided by that of cci_cp\n' "$mib" "$rounds"
for name in rsync scp nc; do
    needs=$name
    [ "$name" != scp ] || needs=sshd
    if ! (PATH=$PATH:/usr/sbin && command -v "$needs") >/dev/null; then
        printf '%-8s skipped: there is no %s\n' "$name" "$needs"
        continue
    fi
    "${name}_serve" || { status=1 && continue; }
    : >"$work/ratios"
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        copy cci || die "cci_cp failed: $(cat "$work/cci.err")"
        before=$took
        copy "$name" || { echo "bench_copy: $name failed" >&2 && status=1 && break; }
        other=$took
        copy cci || die "cci_cp failed: $(cat "$work/cci.err")"
        echo "$before $other $took" | awk '{ printf "%.3f\n", $2 * 2 / ($1 + $3) }' >>"$work/ratios"
    done
    sort -n "$work/ratios" | awk -v name="$name" '{ ratio[NR] = $1 } END {
        if (NR) printf "%-8s %.2f (%.2f-%.2f)\n", name, (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2, ratio[1], ratio[NR] }'
done
exit "$status"
