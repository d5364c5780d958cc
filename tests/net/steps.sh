# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - sockets and network namespaces, bad networks and crowds; run.sh reads this file.

# Bounds of how well bad networks are used, in virtual time.
netsim() {
    libraries=-lm
    optimized netsim tests/net/netsim.c
    libraries=
}

# The same on lines of 1 and 10 Gbit/s, where much is under way.
netsim_fast() {
    libraries=-lm
    optimized netsim tests/net/netsim.c fast
    libraries=
}

# Beside the TCP of the kernel, in real time.
kernel_tcp() {
    [ "$(uname -s)" = Linux ] || { skip 'network namespaces need Linux' && return; }
    libraries=-lm
    optimized kernel_tcp tests/net/kernel_tcp.c
    libraries=
}

# Crowds of peers, in virtual time; with a compiler that counts the library's steps, also what each reply costs.
crowd() {
    libraries=-lm
    # shellcheck disable=SC2046
    build crowd tests/net/crowd.c -O2 $(counting | sed 's/$/ -DCROWD_COUNTS_WORK/') && run crowd
    libraries=
}

# Crowds over UDP sockets: a server, clients and a relay, each a process of its own.
crowd_udp() {
    [ "$(uname -s)" = Linux ] || { skip 'the relay needs Linux' && return; }
    build crowd_udp tests/net/crowd_udp.c -O2 && run crowd_udp test
}

net_steps() {
    unit_tests net
    step test_sleep_udp-raced raced test_sleep_udp tests/net/test_sleep_udp.c
    step test_udp_share-raced raced test_udp_share tests/net/test_udp_share.c
    step test_udp_share-portable portable test_udp_share tests/net/test_udp_share.c
    step netsim netsim
    step netsim-fast netsim_fast
    step kernel-tcp kernel_tcp
    step crowd crowd
    step crowd-udp crowd_udp
    step netns plain netns tests/net/netns.c
    step netns-portable portable netns tests/net/netns.c
    step netns-paths plain netns_paths tests/net/netns_paths.c
    step netns-paths-portable portable netns_paths tests/net/netns_paths.c
}
