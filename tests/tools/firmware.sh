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

# The firmware runs in an emulator; programs on this machine talk to it over its serial line, and some die.
firmware_in_emulator() {
    rm -f "$out/uart"
    timeout 600 qemu-system-arm -M mps2-an385 -nographic -monitor none -serial "unix:$out/uart,server=on,wait=off" \
        -kernel "build/$1.elf" >"$out/qemu.txt" 2>&1 &
    emulator=$!
    tries=0
    until [ -S "$out/uart" ] || [ "$tries" -ge 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    check "no echoes from $1" within 120 build/firmware-host "$out/uart" 100
    check "$1: a program that dies fails before" within 120 build/firmware-host "$out/uart" 60 die
    check "$1: no echoes after a program has died" within 120 build/firmware-host "$out/uart" 100
    for again in 1 2 3; do check "$1: to die for the $again. time" within 120 build/firmware-host "$out/uart" $((20 * again)) die; done
    check "$1: no echoes after several have died" within 120 build/firmware-host "$out/uart" 50
    check "$1 does not sleep" within 120 build/firmware-host "$out/uart" 100 rest
    kill "$emulator" 2>/dev/null
    wait "$emulator" 2>/dev/null
    cat "$out/qemu.txt"
}
firmware_at_line() {
    for tool in arm-none-eabi-gcc qemu-system-arm; do has $tool || { skip "there is no $tool" && return; }; done
    echo '#include <string.h>' | arm-none-eabi-gcc -xc -c -o "$out/newlib.o" - 2>/dev/null ||
        { skip 'there is no C library for arm-none-eabi-gcc' && return; }
    make CC="$cc" firmware >"$out/firmware-make.txt" 2>&1 || { fail 'make firmware failed' && cat "$out/firmware-make.txt" && return; }
    check 'the firmware compiles with warnings' sh -c '! grep warning: "$1"' - "$out/firmware-make.txt"
    arm-none-eabi-size build/firmware.elf build/firmware-small.elf
    firmware_in_emulator firmware
    firmware_in_emulator firmware-small
}
