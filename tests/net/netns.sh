#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# netns.sh PROGRAM [ARGUMENTS] - runs a program in a network namespace of its own, with the loopback and a pair of
# interfaces: v0 (10.9.0.1, fd09::1) and v1 (10.9.0.2, fd09::2). The namespace ends with the program, so nothing stays.
#
# A machine that does not allow this gets one skipped test, in the form in which cmocka counts them.
set -u

refuse() {
    echo "[  SKIPPED ] 1 test(s), all of $(basename "$program"): $*"
    exit 0
}

set_up() {
    set -e
    ip link set lo up
    ip link add v0 type veth peer name v1
    # Groups are sent from v0 to v1: both addresses are of this machine, which it would take for forged otherwise.
    for name in all v0 v1; do
        echo 1 >"/proc/sys/net/ipv4/conf/$name/accept_local"
        echo 0 >"/proc/sys/net/ipv4/conf/$name/rp_filter"
    done
    ip addr add 10.9.0.1/24 dev v0
    ip addr add 10.9.0.2/24 dev v1
    # IPv6 addresses stay when an interface goes down, as those of IPv4 do; no test waits for duplicates to be detected.
    for name in v0 v1; do
        echo 1 >"/proc/sys/net/ipv6/conf/$name/keep_addr_on_down"
        echo 0 >"/proc/sys/net/ipv6/conf/$name/accept_dad"
    done
    ip addr add fd09::1/64 dev v0 nodad
    ip addr add fd09::2/64 dev v1 nodad
    ip link set v0 up
    ip link set v1 up
}

program=${1:?"usage: $0 PROGRAM [ARGUMENTS]"}
if [ -z "${CCI_NETNS:-}" ]; then
    [ "$(uname -s)" = Linux ] || refuse 'only Linux has network namespaces'
    [ "$(id -u)" -eq 0 ] || refuse 'only root may make network interfaces'
    for tool in unshare nsenter ip; do
        command -v "$tool" >/dev/null 2>&1 || refuse "there is no $tool"
    done
    unshare -n true 2>/dev/null || refuse 'network namespaces are not allowed here'
    CCI_NETNS=new exec unshare -n sh "$0" "$@"
fi
# In a shell of its own: `set -e` does nothing inside a condition.
(set_up) >/dev/null 2>&1
# shellcheck disable=SC2181
[ $? -eq 0 ] || refuse 'a pair of interfaces (veth) with both families can not be made here'
CCI_NETNS=ready exec "$@"
