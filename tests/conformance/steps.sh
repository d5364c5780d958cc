# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - the manual, sentence by sentence, over every transport; run.sh reads this file.

# arrays HOW SOURCE ARGUMENTS...: between RDMA devices that are arrays, plain or sanitized.
arrays() {
    echo '#include <infiniband/verbs.h>' | "$cc" -fsyntax-only -x c - 2>/dev/null ||
        { skip 'there is no header of libibverbs' && return; }
    how=$1 defines=-DCONFORMANCE_ARRAYS
    shift
    "$how" conformance-arrays "$@"
    defines=
}

# profile_suite small|least|tiny|sealed 'NETWORKS' [32]: what a profile for small machines has of it.
profile_suite() {
    compiler_of "${3:-}" || return
    program=conformance-$1${3:-} runner_of_tests=-lcmocka macro=-DCCI_SMALL
    [ "$1" != least ] || macro="$macro -DCCI_NO_SEAL -DCCI_NO_MULTICAST -DCCI_NO_MIGRATION"
    [ "$1" != tiny ] || macro=-DCCI_TINY
    [ "$1" != sealed ] || macro='-DCCI_TINY -DCCI_TINY_SEAL'
    [ -z "${3:-}" ] || runner_of_tests=-Itests/support/elsewhere
    # shellcheck disable=SC2086
    $compiler -std=gnu11 $flags $macro -I. -o "$run_programs/$program" "$suite" $runner_of_tests ||
        { fail "$suite does not compile with $macro" && return; }
    for network in $2; do run "$program" "$network"; done
}

conformance_steps() {
    suite=tests/conformance/conformance.c
    simulated='sim sim-lossy sim-due sim-tiny sim-narrow sim-crc sim-sealed sim-sealed-noisy'
    for network in $simulated udp sisci sisci-bounce sisci-mapped sisci-mapped-later; do
        step "conformance-$network" optimized conformance $suite "$network"
    done
    for network in udp-crc udp-sealed; do step "conformance-$network" brief optimized conformance $suite "$network"; done
    for network in sim sim-sealed udp sisci sisci-bounce sisci-mapped; do
        step "conformance-$network-sanitized" sanitized conformance $suite "$network"
    done
    for network in udp udp-sealed sisci; do step "conformance-$network-raced" raced conformance $suite "$network" thread; done
    step conformance-sim-ciphered ciphered conformance $suite sim-sealed-noisy
    for network in verbs verbs-auto verbs-auto-ud; do step "conformance-$network" arrays plain "$suite" "$network"; done
    for network in verbs verbs-ud; do step "conformance-$network-sanitized" arrays sanitized "$suite" "$network"; done
    for network in sim-lossy udp sisci; do
        step "conformance-$network-validated" brief validated conformance "$suite" "$network"
    done
    with_sanitizers='sim sim-lossy sim-due sim-tiny sim-narrow sim-crc sim-sealed-noisy' tiny='sim sim-lossy sim-due sim-crc'
    step conformance-small profile_suite small "$with_sanitizers"
    step conformance-small-least brief profile_suite least 'sim sim-lossy sim-crc'
    step conformance-small-32 profile_suite small "$simulated" 32
    step conformance-tiny brief profile_suite tiny "$tiny"
    step conformance-tiny-sealed brief profile_suite sealed 'sim-sealed sim-sealed-noisy'
    step conformance-tiny-32 brief profile_suite tiny "$tiny" 32
    step conformance-udp-portable brief portable conformance $suite udp
    step conformance-sisci-vendor adapted plain '' conformance $suite sisci-vendor
    step conformance-sisci-vendor-sanitized adapted sanitized "$sanitizers" conformance $suite sisci-vendor
    step conformance-sisci-vendor-raced adapted raced -fsanitize=thread conformance $suite sisci-vendor thread
    step extensions counted sh tests/conformance/extensions.sh
    step field plain field tests/conformance/field.c
    step field-portable portable field tests/conformance/field.c
    step field-sanitized sanitized field tests/conformance/field.c
    for network in udp sisci; do step "doca-$network" either doca tests/conformance/doca.c "$network"; done
}
