# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - the description of the wire format, a second implementation, the dissector; run.sh reads this file.

. tests/wire/wire.sh

wire_steps() {
    step wire wire
    step second second
    step wireshark wireshark
    step wireshark-follows wireshark_follows
    step wireshark-train wireshark_train
}
