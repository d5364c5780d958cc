# SPDX-License-Identifier: MIT OR Unlicense
# machines.sh - tests for other processors, C libraries and compilers; steps.sh reads this file.

# elsewhere MACHINE 'COMPILER FLAGS' 'EMULATOR' LIBRARIES: everything without a network, for another processor or with another
# C library or compiler: the unit tests, and the conformance suite on the simulated network.
elsewhere() {
    machine=$1 compiler=$2 runner=$3 libraries=${4:-}
    for tool in ${compiler%% *} ${runner%% *}; do
        has "$tool" || { skip "there is no $tool" && return; }
    done
    for source in tests/unit/test_*.c tests/sisci/test_*.c tests/net/test_*.c tests/verbs/test_*.c tests/attack/test_*.c tests/conformance/conformance.c; do
        unit=$(basename "$source" .c)
        binary=$out/$unit-$machine
        # tcc has none of the atomic operations that the tests of whole endpoints use; test_udp, test_sleep_udp, test_fork, test_sisci
        # and test_verbs use this machine's sockets and shared memory. Warnings are errors here too, but for those of tests alone, which gcc and clang have looked at.
        case $machine-$unit in tcc-conformance | tcc-test_seal | *-test_udp* | *-test_sleep_udp | *-test_fork | *-test_sisci* | *-test_verbs*) continue ;; esac
        # shellcheck disable=SC2086
        $compiler -std=gnu11 -O1 -Itests/support/elsewhere -I. -o "$binary" "$source" $libraries -pthread ||
            { fail "$source does not compile for $machine" && continue; }
        case $unit in
        conformance) run "$unit-$machine" sim ;;
        *) run "$unit-$machine" ;;
        esac
    done
    # shellcheck disable=SC2086
    check "$machine warns" $compiler -std=c99 -O2 $warnings -I. -c -o "$out/user-$machine.o" tests/support/elsewhere/user.c
    runner='' libraries=
}

portability() {
    elsewhere i686 'i686-linux-gnu-gcc -static' ''
    elsewhere mips 'mips-linux-gnu-gcc -static' qemu-mips-static -latomic
    elsewhere s390x 's390x-linux-gnu-gcc -static' qemu-s390x-static
    elsewhere musl 'musl-gcc -static' ''
    elsewhere tcc tcc ''
}
