# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - the layers, each alone; run.sh reads this file.

# What ends of connections cost, in steps of the library.
ends_counted() {
    counts=$(counting)
    [ -n "$counts" ] || { skip "$cc does not count steps" && return; }
    build ends-counted tests/unit/test_ends.c -O2 "$counts" -DENDS_COUNTS_WORK && run ends-counted 20000
}

unit_steps() {
    unit_tests unit
    step test_fork-raced raced test_fork tests/unit/test_fork.c
    step ends-counted ends_counted
}
