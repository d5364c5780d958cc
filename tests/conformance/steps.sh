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

# small_suite [32]: what the small profile has of it, over all simulated networks.
small_suite() {
    compiler_of "${1:-}" || return
    runner_of_tests=-lcmocka
    [ -z "${1:-}" ] || runner_of_tests=-Itests/support/elsewhere
    # shellcheck disable=SC2086
    $compiler -std=gnu11 $flags -DCCI_SMALL -I. -o "$run_programs/conformance-small${1:-}" "$suite" $runner_of_tests ||
        { fail "$suite does not compile with CCI_SMALL" && return; }
    for network in $simulated; do
        [ "${1:-}$network" = sim-sealed ] || run "conformance-small${1:-}" "$network" # with sanitizers the longest of all
    done
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
    step conformance-small small_suite
    step conformance-small-32 small_suite 32
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
