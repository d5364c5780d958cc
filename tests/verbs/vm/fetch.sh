#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# fetch.sh [ARCHITECTURE] - fills build/vm/ARCHITECTURE (amd64 unless said) with what boot.sh needs to start a virtual machine
# that has RDMA devices in software: Debian's kernel with its modules, the programs of the guest, and QEMU where this machine has
# none. Packages are downloaded with apt-get and unpacked there; nothing is installed, and root is not needed.
#
# The directory is used again until Debian has a newer kernel or this script changes; $CCI_VM_CACHE names another than build/vm.
# Exit status 77 means that it is not possible here; the last line says why.
set -u
here=$(cd "$(dirname "$0")" && pwd)
architecture=${1:-amd64}
cache=${CCI_VM_CACHE:-$here/../../../build/vm}

refuse() {
    echo "vm: $*"
    exit 77
}

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || refuse 'the virtual machine is made on Linux on x86-64 alone'
for tool in apt-get apt-cache dpkg-deb readelf strip; do
    command -v $tool >/dev/null || refuse "there is no $tool"
done

# What apt-get is to know for the guest's packages: another architecture gets package lists of its own, in the cache.
case $architecture in
amd64)
    triplet=x86_64-linux-gnu qemu=qemu-system-x86_64 qemu_package=qemu-system-x86
    options='-o APT::Sandbox::User=root'
    ;;
arm64)
    triplet=aarch64-linux-gnu qemu=qemu-system-aarch64 qemu_package=qemu-system-arm
    mkdir -p "$cache/lists-arm64/partial" || exit 1
    : >"$cache/no-packages"
    options="-o APT::Sandbox::User=root -o APT::Architecture=arm64 -o APT::Architectures::=arm64
        -o Dir::State::Lists=$cache/lists-arm64 -o Dir::State::status=$cache/no-packages -o Dir::Cache::pkgcache=
        -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"
    # shellcheck disable=SC2086 # a list of words
    [ -n "$(find "$cache/lists-arm64" -name '*_Packages*' -mtime -7)" ] || apt-get $options -qq update ||
        refuse 'the package lists of arm64 can not be had'
    ;;
*) refuse "nobody has tried $architecture" ;;
esac

# The archives are written by the busybox of this machine's guest.
[ "$architecture" = amd64 ] || sh "$0" amd64 || exit

# The kernel's name has its version: it tells whether the cache is still the newest.
# shellcheck disable=SC2086
image=$(apt-cache $options depends "linux-image-$architecture" 2>/dev/null |
    sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p' | sed q)
image=${image%%:*}
stamp="$image $(cat "$here/fetch.sh" "$here/init.sh" | cksum)"
if [ -f "$cache/$architecture/stamp" ]; then
    # Without package lists whatever is there is used.
    [ -n "$image" ] || exit 0
    [ "$(cat "$cache/$architecture/stamp")" != "$stamp" ] || exit 0
fi
[ -n "$image" ] || refuse "apt-get knows no package linux-image-$architecture (not Debian, or before apt-get update)"

# ---- download --------------------------------------------------------------------------------------------------------

work=$cache/$architecture.new
unpacked=$work/root
rm -rf "$work"
mkdir -p "$work/debs" "$work/root" "$work/kernel" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The guest's shell and tools, what RDMA needs, and the programs it is measured with.
programs='busybox-static dash coreutils util-linux iproute2 libibverbs1 ibverbs-providers ibverbs-utils perftest'
# Libraries of sanitizers and of the tests are the host's, where the host is of the guest's kind.
[ "$architecture" = amd64 ] || programs="$programs libc6 libgcc-s1 libcmocka0 libcmocka-dev libibverbs-dev libc6-dev"

# What a package needs that isn't there yet, as an installation would say that never takes place.
# shellcheck disable=SC2086
needs() {
    apt-get "$@" -s --no-install-recommends install $wanted 2>"$work/log" | sed -n 's/^Inst \([^ :]*\).*/\1/p'
}
wanted=$programs
# shellcheck disable=SC2086
packages="$image $programs $(needs $options)"
qemu_packages=
if ! command -v $qemu >/dev/null; then
    # All of QEMU, or this machine's: of its own packages none is taken from here, as its files are looked for in one place.
    # Of the libraries, which any release has, those that are missing here.
    wanted=$qemu_package
    own="$qemu_package $(apt-cache depends $qemu_package 2>/dev/null |
        sed -n 's/.*Depends: \(qemu-[^ ]*\|seabios\|ipxe-qemu[^ ]*\)$/\1/p')"
    qemu_packages=$(needs)
    [ -n "$qemu_packages" ] || refuse "there is no QEMU: $(tail -n 1 "$work/log")"
    # shellcheck disable=SC2086
    qemu_packages=$(printf '%s\n' $qemu_packages $own | sort -u)
fi

# download OPTIONS... PACKAGES...: into $work/debs
download() {
    (cd "$work/debs" && apt-get "$@") >"$work/log" 2>&1 || refuse "packages can not be downloaded: $(tail -n 1 "$work/log")"
}
# shellcheck disable=SC2046,SC2086 # lists of words
download $options -qq download $(printf '%s\n' $packages | sort -u)

# unpack DEB...: the kernel's tree is large and little of it is needed.
unpack() {
    for deb in "$@"; do
        case $deb in
        */linux-image*)
            dpkg-deb --fsys-tarfile "$deb" | tar x -C "$work/kernel" --wildcards './boot/vmlinuz*' '*/infiniband/*' \
                '*/sch_netem.ko*' '*/net/veth.ko*' '*/crypto/*' '*/lib/*.ko*' '*/udp_tunnel.ko*' '*/configfs/*' '*/9p/*' \
                '*/netfs/*' '*/fscache/*' '*/drivers/virtio/*' 2>/dev/null ||
                true # a pattern may match nothing
            ;;
        *) dpkg-deb -x "$deb" "$work/root" ;;
        esac 2>"$work/log" || refuse "$(basename "$deb") can not be unpacked: $(tail -n 1 "$work/log")"
    done
}
unpack "$work"/debs/*.deb
rm -rf "$work/debs"
if [ -n "$qemu_packages" ]; then
    mkdir "$work/debs"
    # shellcheck disable=SC2086
    download -o APT::Sandbox::User=root -qq download $qemu_packages
    mkdir "$work/qemu"
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/qemu" || refuse "$deb can not be unpacked"; done
    rm -rf "$work/debs"
fi

# ---- the kernel ------------------------------------------------------------------------------------------------------

# QEMU starts an uncompressed kernel faster than the emulated processor would unpack it. The boot protocol's header says
# where the compressed one lies: number of sectors before it at 497, its offset and length from there at 584.
field() {
    od -An -j"$1" -N"$2" -t"u$2" "$packed" | tr -d ' '
}
extract_kernel() {
    start=$((($(field 497 1) + 1) * 512 + $(field 584 4)))
    tail -c "+$((start + 1))" "$packed" | head -c "$(field 588 4)" >"$work/payload"
    magic=$(od -An -N4 -tx1 "$work/payload" | tr -d ' ')
    case $magic in
    fd377a58) xz -dc --single-stream ;;
    28b52ffd) zstd -dcq ;;
    1f8b*) gzip -dcq ;;
    *) return 1 ;;
    esac <"$work/payload" >"$work/vmlinux" 2>/dev/null
    rm "$work/payload"
    [ "$(od -An -N4 -tx1 "$work/vmlinux" | tr -d ' ')" = 7f454c46 ]
}
packed=$(echo "$work"/kernel/boot/vmlinuz-*)
busybox=$work/root/bin/busybox
[ "$architecture" = amd64 ] || busybox=$cache/amd64/root/bin/busybox
case $architecture in
amd64) extract_kernel || refuse "$image is compressed in a way that can't be undone here" ;;
*) cp "$packed" "$work/vmlinux" ;;
esac

# ---- the guest's files -----------------------------------------------------------------------------------------------

base=$work/base
libraries=usr/lib/$triplet
mkdir -p "$base/bin" "$base/dev" "$base/proc" "$base/sys" "$base/tmp" "$base/run" "$base/etc/libibverbs.d" "$base/lib64" \
    "$base/modules" "$base/$libraries/libibverbs" "$base/lib"
ln -s "../$libraries" "$base/lib/$triplet"
ln -s ../bin "$base/usr/bin"
# The sanitizers ask for the home directory of root, and for nothing else in it.
printf 'root:x:0:0:root:/:/bin/sh\n' >"$base/etc/passwd"

# The shell is dash: busybox's own prefers its own `ip` and `tc` to those in the path. Its `timeout` would start that shell.
cp "$work/root/bin/busybox" "$work/root/bin/dash" "$base/bin/" || exit 1
ln -s dash "$base/bin/sh"
for name in awk cat chmod cp cut date dmesg echo env expr false find free grep head hostname id insmod kill killall ln ls mkdir \
    mount mv nproc od paste pidof printf ps reboot rm rmdir sed seq sleep sort stat sync tail taskset tee test touch tr true \
    umount uname uniq uptime usleep wc which; do
    ln -s busybox "$base/bin/$name"
done
for file in "$unpacked"/bin/ip "$unpacked"/sbin/tc "$unpacked"/*bin/rdma "$unpacked"/usr/*bin/rdma "$unpacked"/usr/bin/ib* \
    "$unpacked"/usr/bin/timeout "$unpacked"/usr/bin/chrt; do
    [ ! -f "$file" ] || cp "$file" "$base/bin/"
done
cp "$work/root/$libraries"/libibverbs/librxe*.so "$base/$libraries/libibverbs/" || exit 1
cp "$unpacked"/etc/libibverbs.d/rxe.driver "$base/etc/libibverbs.d/" || exit 1

# add_libraries FILE...: copies what these need, and what that needs, from the packages or this machine.
add_libraries() {
    for file in "$@"; do
        for name in $(readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
            [ ! -e "$base/$libraries/$name" ] || continue
            for place in "$work/root/$libraries" "$work/root/lib/$triplet" "/$libraries" "/lib/$triplet"; do
                [ -f "$place/$name" ] || continue
                cp -L "$place/$name" "$base/$libraries/"
                pending="$pending $base/$libraries/$name"
                break
            done
        done
    done
}
pending="$(find "$base/bin" "$base/usr" -type f)"
while [ -n "$pending" ]; do
    round=$pending
    pending=
    # shellcheck disable=SC2086
    add_libraries $round
done
case $architecture in
amd64) cp -L /lib64/ld-linux-x86-64.so.2 "$base/lib64/" ;;
arm64)
    find "$work/root" -name ld-linux-aarch64.so.1 -exec cp -L {} "$base/lib/" ';'
    cp -L "$work/root/$libraries"/libcmocka.so.0 "$base/$libraries/"
    ;;
esac
# Opened by the C library itself when a thread is cancelled.
for file in "$work/root/lib/$triplet/libgcc_s.so.1" "/lib/$triplet/libgcc_s.so.1"; do
    [ ! -f "$file" ] || [ -f "$base/$libraries/libgcc_s.so.1" ] || cp -L "$file" "$base/$libraries/"
done

# Modules, without debugging information and signature, and the order in which they are loaded: each behind those it names.
find "$work/kernel" -name '*.ko.xz' -exec xz -d {} +
find "$work/kernel" -name '*.ko' >"$work/modules"
module_file() {
    grep -E "/$(echo "$1" | sed 's/[-_]/[-_]/g')\\.ko\$" "$work/modules" | sed q
}
: >"$base/modules/order"
add_modules() {
    for module in "$@"; do
        file=$(module_file "$module")
        # What is built into the kernel needs no file.
        [ -n "$file" ] || continue
        name=$(basename "$file")
        ! grep -qxF "$name" "$base/modules/order" || continue
        # shellcheck disable=SC2046
        (add_modules $(tr '\0' '\n' <"$file" | sed -n 's/^depends=//p' | tr , ' '))
        cp "$file" "$base/modules/"
        ${strip:-strip} -g "$base/modules/$name" 2>/dev/null
        echo "$name" >>"$base/modules/order"
    done
}
add_modules crc32_generic crc32c_generic veth rdma_rxe ib_uverbs sch_netem virtio_mmio virtio_pci 9pnet_virtio 9p
for name in rdma_rxe.ko ib_uverbs.ko veth.ko 9p.ko; do
    [ -f "$base/modules/$name" ] || refuse "$image has no module $name"
done
cp "$here/init.sh" "$base/init" && chmod 755 "$base/init" || exit 1
rm -f "$work/modules" "$work/log"
(cd "$base" && find . | LC_ALL=C sort | "$busybox" cpio -o -H newc -R 0:0 2>/dev/null) >"$work/base.cpio" ||
    refuse 'the archive of the guest can not be written'
rm -rf "$work/kernel" "$work/root/usr/share" "$work"/qemu/usr/share/doc "$work"/qemu/usr/share/man
echo "$stamp" >"$work/stamp"
rm -rf "${cache:?}/$architecture"
mv "$work" "$cache/$architecture" || exit 1
