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

# The firmware runs in an emulator; programs on this machine talk to it over its line, and some die.
firmware_serves() {
    check "no echoes from $1" within 120 build/firmware-host "$2" 100
    check "$1: a program that dies fails before" within 120 build/firmware-host "$2" 60 die
    check "$1: no echoes after a program has died" within 120 build/firmware-host "$2" 100
    for again in 1 2 3; do check "$1: to die for the $again. time" within 120 build/firmware-host "$2" $((20 * again)) die; done
    check "$1: no echoes after several have died" within 120 build/firmware-host "$2" 50
    check "$1 does not sleep" within 120 build/firmware-host "$2" 100 rest
}
# ELF MACHINE
firmware_in_emulator() {
    rm -f "$out/uart"
    timeout 600 qemu-system-arm -M "$2" -nographic -monitor none -serial "unix:$out/uart,server=on,wait=off" \
        -kernel "build/$1.elf" >"$out/qemu.txt" 2>&1 &
    emulator=$!
    tries=0
    until [ -S "$out/uart" ] || [ "$tries" -ge 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    firmware_serves "$1" "$out/uart"
    kill "$emulator" 2>/dev/null
    wait "$emulator" 2>/dev/null
    cat "$out/qemu.txt"
}

# Programs over UDP: the emulator passes datagrams on from a port of this machine to the board's network. ELF MACHINE
firmware_at_ethernet() {
    rm -f "$out/monitor.in" "$out/monitor.out" "$out/plugged.txt"
    mkfifo "$out/monitor.in" "$out/monitor.out"
    cat "$out/monitor.out" >"$out/monitor.txt" &
    printf '[lo]\ntransport = udp\nip = 127.0.0.1\n' >"$out/firmware.ini"
    for port in 0 1 2 3 4; do # until one is free
        port=$((20000 + ($$ + port * 1009) % 12000))
        timeout 600 qemu-system-arm -M "$2" -nographic -serial none -chardev "pipe,id=monitor,path=$out/monitor" -mon monitor \
            -nic "user,id=cable,hostfwd=udp:127.0.0.1:$port-:7777" -kernel "build/$1.elf" >"$out/qemu.txt" 2>&1 &
        emulator=$!
        sleep 1
        ! kill -0 "$emulator" 2>/dev/null || break
    done
    board=udp://127.0.0.1:$port
    export CCI_CONFIG="$out/firmware.ini"
    firmware_serves "$1" "$board"
    within 120 build/firmware-host "$board" 50 unplug >"$out/plugged.txt" &
    plugged=$!
    check "$1: no echoes before the cable is pulled out" wait_for "$out/plugged.txt" 'may be pulled out'
    echo 'set_link cable off' >"$out/monitor.in"
    sleep 2
    check "$1: echoes came without a cable" sh -c '! grep -q "is back" "$1"' - "$out/plugged.txt"
    echo 'set_link cable on' >"$out/monitor.in"
    wait "$plugged"
    check "$1: no echoes after the cable was pulled out" grep -q 'pulled out and is back' "$out/plugged.txt"
    check "$1: no echoes after all that" within 120 build/firmware-host "$board" 50
    unset CCI_CONFIG
    kill "$emulator" 2>/dev/null
    wait "$emulator" 2>/dev/null
    cat "$out/plugged.txt" "$out/qemu.txt"
}

firmware_builds() {
    for tool in arm-none-eabi-gcc qemu-system-arm; do has $tool || { skip "there is no $tool" && return 1; }; done
    echo '#include <string.h>' | arm-none-eabi-gcc -xc -c -o "$out/newlib.o" - 2>/dev/null ||
        { skip 'there is no C library for arm-none-eabi-gcc' && return 1; }
    make CC="$cc" firmware >"$out/firmware-make.txt" 2>&1 || { fail 'make firmware failed' && cat "$out/firmware-make.txt" && return 1; }
    check 'the firmware compiles with warnings' sh -c '! grep warning: "$1"' - "$out/firmware-make.txt"
}
firmware_at_line() {
    firmware_builds || return
    arm-none-eabi-size build/firmware*.elf
    firmware_in_emulator firmware mps2-an385
    firmware_in_emulator firmware-small mps2-an385
    firmware_in_emulator firmware-m33 mps2-an505
}
firmware_on_network() {
    firmware_builds || return
    qemu-system-arm -M mps2-an385 -netdev help 2>/dev/null | grep -qx user ||
        { skip 'qemu-system-arm was built without a network for users' && return; }
    firmware_at_ethernet firmware-ethernet mps2-an385
    firmware_at_ethernet firmware-ethernet-m4 mps2-an386
}
