# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - RDMA, over arrays and in virtual machines; run.sh reads this file.

. tests/verbs/verbs.sh

# Without the header of libibverbs.
headerless() {
    build test_verbs-headerless tests/verbs/test_verbs.c -DCCI_NO_VERBS_H && run test_verbs-headerless
}

verbs_steps() {
    unit_tests verbs
    step test_verbs-headerless headerless
    # In virtual machines that run meanwhile.
    step verbs-info guest_info
    for job in conformance-rc conformance-ud rc ud conformance-arm64 conformance-rc-sanitized conformance-ud-sanitized; do
        step "verbs-$job" guest_tests "$job"
    done
    step verbs-end guest_end
}
