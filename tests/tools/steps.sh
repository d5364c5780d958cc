# SPDX-License-Identifier: MIT OR Unlicense
# steps.sh - the headers, the tree, the programs, the cookbook, the packages and other machines; run.sh reads this file.

. tests/tools/headers.sh
. tests/tools/tree.sh
. tests/tools/programs.sh
. tests/tools/cookbook.sh
. tests/tools/machines.sh
. tests/tools/firmware.sh

tools_steps() {
    write_users
    step contents contents
    step format format
    step metrics counted sh tests/tools/metrics.sh
    step tree tree
    step equivalents equivalents
    step headers-gcc headers gcc c c99 gnu11 gnu17
    step headers-g++ headers g++ c++ c++11 gnu++11 c++20
    step headers-clang headers clang c c99 gnu11 gnu17
    step headers-clang++ headers clang++ c++ c++11 gnu++11 c++20
    step wrong-order wrong_order
    step two-files two_files
    step no-sockets no_sockets
    step purity purity
    step exports exports
    step blunders blunders
    step warnings-examples warnings_of 'c99 gnu11' 'examples/*.c'
    # The proofs' harnesses (prove_*.c) are C with the model checker's additions.
    step warnings-tests warnings_of gnu11 'tests/[!p]*/*.c'
    step readme readme
    step pages pages
    step demo demo
    step copying copying
    step secret secret
    step copies copies
    step advice advice
    step bindings bindings
    step chats chats
    step floods floods
    step refusals refusals
    step statistics statistics
    step devices-json devices_json
    step measures measures
    step crowds crowds
    step shared shared
    step memories memories
    step own-link own_link
    step channels channels
    cookbook_steps
    step footprint footprint
    step firmware firmware_at_line
    step firmware-ethernet firmware_on_network
}

# What takes longer.
tools_late_steps() {
    write_users
    step portability portability
    step windows windows
    step webassembly webassembly
    step systems systems
    step packages counted sh tests/tools/packages.sh
    step strangers strangers
    # It leaves out what takes minutes: make analyze has it.
    step analyze counted sh tests/tools/analyze.sh --quick
}
