# SPDX-License-Identifier: MIT OR Unlicense
# firmware.sh - tests of what small machines do with the header; steps.sh reads this file.

# The example of a link of one's own: two processes, two pipes.
own_link() {
    make CC="$cc" build/own_link || { fail 'own_link does not compile' && return; }
    check 'own_link failed' within 60 build/own_link >"$out/own_link.txt"
    check 'own_link was not answered' grep -qx 'the answer: HELLO' "$out/own_link.txt"
}

# What the library takes on small machines, and its bounds.
footprint() {
    counted sh tests/tools/footprint.sh "$out/footprint"
    [ $((passed + failed + skipped)) -gt 0 ] || skip 'there are no compilers for small machines'
}
