# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - attackers, and what SECURITY.md promises; run.sh reads this file.

hostile() {
    # shellcheck disable=SC2046
    build hostile tests/attack/hostile.c -O2 $(counting) && run hostile
}

hostile_sanitized() {
    # shellcheck disable=SC2086
    works $sanitizers || { skip "$cc has no sanitizers here" && return; }
    # shellcheck disable=SC2046,SC2086
    build hostile-sanitized tests/attack/hostile.c -O1 $sanitizers $(counting) && run hostile-sanitized
}

# Every promise of .github/SECURITY.md names tests that there are: attacks on what is not sealed, each of which is
# named there, and some of those on what is.
promises() {
    tr '`' '\n' <.github/SECURITY.md | grep -E '^[a-z0-9]+(_[a-z0-9]+){3,}$' | sort \
        >"$out/promised.txt"
    sed -n 's/^ *SEALED(\([a-z0-9_]*\)),$/\1/p' tests/attack/test_seal.c >"$out/sealed.txt"
    check 'SECURITY.md promises nothing of what is sealed' grep -qxFf "$out/sealed.txt" "$out/promised.txt"
    grep -vxFf "$out/sealed.txt" "$out/promised.txt" >"$out/unsealed.txt"
    sed -n 's/^ *TEST(\([a-z0-9_]*\)),$/\1/p' tests/attack/hostile.c | sort >"$out/tested.txt"
    check 'SECURITY.md promises nothing' [ -s "$out/unsealed.txt" ]
    check 'what SECURITY.md promises (-) and tests/attack/hostile.c tests (+) differ' diff -u "$out/unsealed.txt" "$out/tested.txt"
}

attack_steps() {
    unit_tests attack
    step test_seal-ciphered ciphered test_seal tests/attack/test_seal.c
    step hostile hostile
    step hostile-sanitized hostile_sanitized
    step promises promises
}
