#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# boot.sh [-a ARCHITECTURE] [-m MIB] [-t SECONDS] [-o DIRECTORY] FILES COMMAND - runs a shell command in a virtual machine with two
# RDMA devices, rxe0 (10.0.0.1 on v0) and rxe1 (10.0.0.2 on v1), joined by a wire. Its output and exit status are this
# script's. There, the copy of FILES is /t, the working directory, and DIRECTORY is /out, from where files come back (and
# where they can be read while the machine runs). Libraries that the programs in FILES need are copied along.
#
# Needs what fetch.sh has fetched. Exit status 125: the machine ended, or ran out of time (300 s), without having told one; its
# last words are printed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cache=${CCI_VM_CACHE:-$here/../../../build/vm}
architecture=amd64 memory=512 seconds=300 shared=
while getopts a:m:t:o: option; do
    case $option in
    a) architecture=$OPTARG ;;
    m) memory=$OPTARG ;;
    t) seconds=$OPTARG ;;
    o) shared=$OPTARG ;;
    *) sed -n '3,11s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0" && exit 2; }
files=$1
shift

[ -f "$cache/$architecture/stamp" ] || { echo "vm: first run tests/verbs/vm/fetch.sh $architecture" && exit 125; }
cache=$(cd "$cache" && pwd)
guest=$cache/$architecture
busybox=$cache/amd64/root/bin/busybox
case $architecture in
amd64) triplet=x86_64-linux-gnu name=qemu-system-x86_64 ;;
arm64) triplet=aarch64-linux-gnu name=qemu-system-aarch64 ;;
esac

work=$(mktemp -d) || exit 1
qemu=
trap '[ -z "$qemu" ] || kill "$qemu"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ -n "$shared" ] || { mkdir "$work/out" && shared=$work/out; }

# ---- the files of this run -------------------------------------------------------------------------------------------

libraries=$work/files/usr/lib/$triplet
mkdir -p "$work/files/t" "$libraries" && cp -a "$files/." "$work/files/t/" || exit 1
printf '%s\n' "$*" >"$work/files/t/command"
# What the programs need and the guest has not, from this machine's own libraries.
[ "$architecture" != amd64 ] || find "$work/files/t" -type f -perm -100 -exec ldd {} + 2>/dev/null |
    sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
    [ -e "$guest/base/usr/lib/$triplet/${library##*/}" ] || cp -L "$library" "$libraries/"
done
(
    cat "$guest/base.cpio"
    cd "$work/files" && find . | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null
) >"$work/initrd" || exit 1

# ---- the machine -----------------------------------------------------------------------------------------------------

# QEMU from the cache brings its libraries; this machine's own has them.
if [ -d "$guest/qemu" ]; then
    set -- env LD_LIBRARY_PATH="$guest/qemu/usr/lib/x86_64-linux-gnu:$guest/qemu/lib/x86_64-linux-gnu" \
        "$guest/qemu/usr/bin/$name" -L "$guest/qemu/usr/share/qemu" -L "$guest/qemu/usr/share/seabios"
else
    set -- "$name"
fi

# What every boot would only lose time with is left out of the kernel.
arguments="quiet rdinit=/init panic=-1 reboot=t nokaslr mitigations=off rodata=off nowatchdog audit=0 lsm= cryptomgr.notests
    raid=noautodetect random.trust_cpu=on
    initcall_blacklist=crypto_kdf108_init,cubictcp_register,init_kprobe_trace,init_zswap,load_system_certificate_list"
case $architecture in
amd64)
    # The emulated time stamp counter is the host's: its rate is told, as the guest has nothing to measure it by, and with a
    # wrong one its clock would run in steps. MWAIT is hidden because the emulation loses wake-ups from it. The small machine
    # needs ACPI, from which the kernel learns where the shared directory's device is.
    khz=$(awk '/^bogomips/ { printf "%d", $3 * 500; exit }' /proc/cpuinfo)
    arguments="console=ttyS0 tsc=reliable no_timer_check tsc_early_khz=$khz $arguments"
    set -- "$@" -M microvm,acpi=on,rtc=on -cpu Nehalem,-spec-ctrl,-monitor
    ;;
arm64)
    arguments="console=ttyAMA0 $arguments"
    set -- "$@" -M virt -cpu cortex-a72
    ;;
esac
set -- "$@" -accel tcg,thread=multi,tb-size=256 -smp 2 -m "$memory" -display none -nodefaults -no-user-config -no-reboot \
    -serial "file:$work/log" -fsdev "local,id=out,path=$shared,security_model=none" \
    -device virtio-9p-device,fsdev=out,mount_tag=out -kernel "$guest/vmlinux" -initrd "$work/initrd"
# On a busy machine an emulated one has been seen to hang on its way to the command: it is started again, twice.
attempt=1
while :; do
    # shellcheck disable=SC2086,SC2116 # the line breaks become spaces
    timeout -k 5 "$seconds" "$@" -append "$(echo $arguments)" </dev/null >"$work/qemu.log" 2>&1 &
    qemu=$!
    waited=0
    while [ -e "/proc/$qemu/exe" ] && ! grep -q '^@@begin' "$work/log" 2>/dev/null && [ "$waited" -lt 120 ]; do
        sleep 1
        waited=$((waited + 1))
    done
    if [ "$waited" -lt 120 ] || [ "$attempt" -eq 3 ]; then break; fi
    echo "vm: the machine hangs at its start; again"
    attempt=$((attempt + 1))
    kill "$qemu"
    wait "$qemu"
    rm -f "$work/log"
done
wait "$qemu"
ended=$?
qemu=

status=
[ ! -f "$work/log" ] || status=$(tr -d '\r' <"$work/log" | sed -n 's/^@@exit \([0-9]*\)$/\1/p' | tail -n 1)
if [ -n "$status" ]; then
    tr -d '\r' <"$work/log" | awk '/^@@exit [0-9]+$/ { exit } inside { print } /^@@begin$/ { inside = 1 }'
    exit "$status"
fi
echo "vm: the machine ended with status $ended (124: it was too slow) and told none; its last words:"
cat "$work/qemu.log"
[ ! -f "$work/log" ] || tr -d '\r' <"$work/log" | tail -n 40
exit 125
