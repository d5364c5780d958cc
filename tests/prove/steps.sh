# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - proofs that what reads packets stays inside them; run.sh reads this file.

prove_steps() {
    # It leaves out what takes minutes: make prove has it.
    step prove counted sh tests/prove/prove.sh --quick
}
