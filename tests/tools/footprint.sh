#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# footprint.sh DIRECTORY - what the library takes on small machines: prints a table, with the goals beside, and fails where a
# bound is passed. Bounds are what was measured, and a few per cent. No row of CCI_TINY divides numbers of 64 bits. The
# directory is for its files.
set -u
dir=${1:-build/footprint}
mkdir -p "$dir"
passed=0 failed=0

has() {
    command -v "$1" >/dev/null 2>&1
}
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
# The bounds are those of one version of the compilers: others are shown.
bounded() {
    if [ "$version" != "$known_version" ]; then passed=$((passed + 1))
    elif [ "$2" -le "$3" ]; then passed=$((passed + 1)); else fail "$1: $2 bytes, the bound is $3"; fi
}

# documented: the tables of examples/firmware/README.md say the same of Cortex-M4 and AVR, to 3 per cent.
documented() {
    case $name in
    Cortex-M4) place=$((number > 4 ? number - 4 : number + 7)) ;;
    AVR) place=$number ;;
    *) return ;;
    esac
    [ "$version" = "$known_version" ] && [ -n "$memory" ] && [ "$memory" != - ] || return
    grep -E '^\| [^|]+( \| [0-9,]+){3} \|$' examples/firmware/README.md | sed -n "${place}p" | tr -d ',' >"$dir/documented.txt"
    if awk -F '|' -v code="$code" -v memory="$memory" -v stack="$stack" 'function near(a, b) { return a <= b * 1.03 && b <= a * 1.03 }
        { good = near($3, code) && near($4, memory) && near($5, stack) } END { exit !good }' "$dir/documented.txt"
    then passed=$((passed + 1)); else fail "$name, $what: examples/firmware/README.md says$(cut -d '|' -f 3- "$dir/documented.txt")"; fi
}

flags='-std=gnu99 -Os -DNDEBUG -DCCI_NO_TEXT -ffunction-sections -fdata-sections -Wl,--gc-sections -I. -w'
bare='-ffreestanding -nostartfiles -T tests/tools/footprint.ld' # but for AVR, whose C library starts programs
rows='1 2 3 4 5 6 7 8'

# What each row leaves out or wants more of.
row() {
    case $1 in
    1) what='small: reliability alone' macros='-DCCI_SMALL -DCCI_NO_CONGESTION' goals='8192 2048 512' ;;
    2) what='small: messages' macros='-DCCI_SMALL -DCCI_NO_RMA -DCCI_NO_CONGESTION' goals='16384 6144 1024' ;;
    3) what='small: messages and RMA' macros='-DCCI_SMALL -DCCI_NO_CONGESTION' goals='20480 8192 1024' ;;
    4) what='small: 8 peers, 1,500 bytes' goals='36864 65536 2048'
        macros='-DCCI_SMALL -DCCI_SMALL_CONNECTIONS=8 -DCCI_SMALL_ACTIVE=8 -DCCI_SMALL_PACKETS=32' ;;
    5) what='tiny: reliability alone' goals='8192 2048 512'
        macros='-DCCI_TINY -DCCI_NO_RMA -DCCI_NO_SERVER -DCCI_NO_CLIENT -DCCI_TINY_CONNECTIONS=1 -DCCI_TINY_RECEIVES=2' ;;
    6) what='tiny: messages' macros='-DCCI_TINY -DCCI_NO_RMA' goals='16384 6144 1024' ;;
    7) what='tiny: messages and RMA' macros=-DCCI_TINY goals='20480 8192 1024' ;;
    8) what='tiny: 8 peers, 1,500 bytes' goals='36864 65536 2048'
        macros='-DCCI_TINY -DCCI_TINY_MTU=1500 -DCCI_TINY_CONNECTIONS=9 -DCCI_TINY_SENDS=2 -DCCI_TINY_RECEIVES=8' ;;
    esac
}

# How much of the library a row uses: the number that footprint.c knows it by.
scope() {
    echo "$(($1 == 5 ? 5 : $1 > 5 ? $1 - 4 : $1))"
}

# compile OUTPUT FLAGS...
compile() {
    output=$1
    shift
    # shellcheck disable=SC2086 # lists of words
    $compiler $machine $flags $bare $macros "$@" -o "$output" tests/tools/footprint.c 2>"$dir/errors.txt" && return 0
    cat "$dir/errors.txt"
    return 1
}

# target NAME COMPILER 'FLAGS' SIZE 'EMULATOR' 'BOUNDS OF CODE' 'OF STACK' - the emulator may be empty.
target() {
    name=$1 compiler=$2 machine=$3 size=$4 emulator=$5
    code_bounds=$6 stack_bounds=$7
    # shellcheck disable=SC2086
    if ! has "$compiler" || ! echo 'int x;' | $compiler $machine -x c -c -o "$dir/probe.o" - 2>"$dir/errors.txt"; then
        echo "SKIP: there is no compiler for $name"
        return
    fi
    version=$($compiler -dumpversion | cut -d . -f 1)
    for number in $rows; do
        row "$number"
        compile "$dir/code.elf" "-DROW=$(scope "$number")" -DMEMORY=8192 || { fail "$name, $what: it does not link" && continue; }
        code=$($size "$dir/code.elf" | awk 'END { print $1 + $2 }')
        if "${compiler%gcc}nm" "$dir/code.elf" | grep -qE ' __(aeabi_u?ldivmod|u?divmoddi4|u?(div|mod)di3|u?divmod64|u?divdi3)$'
        then fail "$name, $what: it divides numbers of 64 bits"; else passed=$((passed + 1)); fi
        bounded "$name, $what: code" "$code" "$(echo "$code_bounds" | cut -d ' ' -f "$number")"
        memory=- stack=-
        if [ -n "$emulator" ] && has "${emulator%% *}"; then
            # shellcheck disable=SC2086
            compile "$dir/run.elf" "-DROW=$(scope "$number")" -DMEASURE "-DMEMORY=$room" $run_flags || { fail "$name, $what: it does not link" && continue; }
            # shellcheck disable=SC2086
            timeout 60 $emulator "$dir/run.elf" >"$dir/run.txt" 2>&1 </dev/null || { fail "$name, $what: it does not work" && cat "$dir/run.txt"; }
            memory=$(sed -n 's/.*memory \([0-9]*\).*/\1/p' "$dir/run.txt") stack=$(sed -n 's/.*stack \([0-9]*\).*/\1/p' "$dir/run.txt")
            ! grep -q failed "$dir/run.txt" || { fail "$name, $what: it does not work" && cat "$dir/run.txt"; }
            bounded "$name, $what: memory" "${memory:-999999}" "$(echo "$memory_bounds" | cut -d ' ' -f "$number")"
            bounded "$name, $what: stack" "${stack:-999999}" "$(echo "$stack_bounds" | cut -d ' ' -f "$number")"
        fi
        documented
        # shellcheck disable=SC2086
        printf '%-12s %-30s %6s (%5d) %6s (%5d) %5s (%4d)\n' "$name" "$what" "$code" ${goals%% *} "$memory" \
            "$(echo $goals | cut -d ' ' -f 2)" "$stack" "$(echo $goals | cut -d ' ' -f 3)"
    done
}

# Of one endpoint: the same for all 32-bit machines that run here.
memory_bounds='3500 8400 9050 44600 1850 2920 3000 44000'
arm=arm-none-eabi-gcc riscv=riscv64-unknown-elf-gcc
known_version=12 room=0x80000 run_flags=
board='qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel' m55_board='qemu-system-arm -M mps3-an547 -nographic -semihosting -kernel'
printf '%-12s %-30s %14s %14s %12s\n' machine 'bytes (goal)' code memory stack
target Cortex-M0+ $arm '-mcpu=cortex-m0plus -mthumb' arm-none-eabi-size "$board" '27330 62430 71930 76730 8760 11100 13580 13720' '1440 1440 1440 1480 580 640 780 820'
target Cortex-M4 $arm '-mcpu=cortex-m4 -mthumb' arm-none-eabi-size "$board" '23350 55730 64830 69200 8200 10530 12620 12760' '1040 1180 1180 1220 500 580 700 730'
target Cortex-M55 $arm '-mcpu=cortex-m55 -mthumb -mfloat-abi=soft' arm-none-eabi-size "$m55_board" '23380 55570 64740 69110 8250 10630 12720 12860' '1040 1180 1180 1220 520 600 700 730'
run_flags=-Wl,--defsym=flash_at=0x10000 # it runs as a program of Linux
target RV32IMC $riscv '--specs=picolibc.specs -march=rv32imc -mabi=ilp32' riscv64-unknown-elf-size qemu-riscv32-static '27990 64710 75250 80270 8900 11500 14040 14240' '1040 1050 1200 1290 600 640 830 880'
run_flags=
# 8-bit processors, with integers of 16 bits: the smallest engine alone, for one peer.
rows='5 6 7' bare='' known_version=5 room=16 memory_bounds='0 0 0 0 1750 2700 2780'
target AVR avr-gcc -mmcu=atmega1284p avr-size 'simavr -m atmega1284p -f 16000000' '0 0 0 0 21630 27120 34170' '0 0 0 0 420 500 620'
# Xtensa, as in the ESP8266 and ESP32: that it compiles.
if has xtensa-lx106-elf-gcc; then
    for macros in '-DCCI_TINY' '-DCCI_TINY -DCCI_NO_RMA'; do
        # shellcheck disable=SC2086 # a list of words
        echo '#include "cci.h"' | xtensa-lx106-elf-gcc -std=gnu99 -Os -ffreestanding -Itests/support/bare -I. -Wall -Wextra -Wno-unused-function \
            -Werror -DCCI_NO_TEXT -DCCI_IMPLEMENTATION '-DCCI_ASSERT(x)=((void)0)' $macros -x c -c -o "$dir/xtensa.o" - ||
            { fail "Xtensa: $macros does not compile" && continue; }
        passed=$((passed + 1))
        xtensa-lx106-elf-size "$dir/xtensa.o" | awk -v what="$macros" 'END { printf "%-12s %-30s %6s\n", "Xtensa", what " (all)", $1 + $2 }'
    done
else echo 'SKIP: there is no compiler for Xtensa'
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
