#!/bin/sh
# SPDX-License-Identifier: MIT OR Unlicense
# init.sh - the first process of the virtual machine: loads the modules, joins two RDMA devices by a wire, runs /t/command, tells
# its exit status and ends the machine. boot.sh makes the machine; what the command writes to /out stays with the host.
export PATH=/bin HOME=/ LANG=C
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
exec </dev/null >/dev/console 2>&1

while read -r module; do
    insmod "/modules/$module" || echo "vm: $module can not be loaded"
done </modules/order
mkdir -p /dev/shm /dev/pts /out
mount -t tmpfs shm /dev/shm
mount -t devpts devpts /dev/pts
cd / && mount -t tmpfs tmp tmp
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /out || echo 'vm: the shared directory can not be mounted'

# rxe (of Linux 6.1) listens in the first network namespace alone, so both ends of the wire are there. Both addresses are then
# this machine's own, and Linux would answer them by the loopback: rules that come before its table of local addresses take
# what goes from one end to the other over the wire, and what comes in over the wire to the local table.
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
echo 0 >/proc/sys/net/ipv4/conf/default/rp_filter
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
echo 1 >/proc/sys/net/ipv6/conf/default/keep_addr_on_down
ip -batch - <<END
link set lo up
link add v0 address 02:00:00:00:00:01 mtu 4200 type veth peer name v1 address 02:00:00:00:00:02 mtu 4200
addr add 10.0.0.1/24 dev v0
addr add 10.0.0.2/24 dev v1
link set v0 up
link set v1 up
END
# wire: the routes between the two ends, and who answers; they go when an end is taken down, so tests call this again.
cat >/bin/wire <<'SCRIPT'
#!/bin/sh
ip -batch - <<END
neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0
neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev v1
route replace 10.0.0.2 dev v0 src 10.0.0.1 table 100
route replace 10.0.0.1 dev v1 src 10.0.0.2 table 101
END
SCRIPT
chmod 755 /bin/wire
wire
ip -batch - <<END
rule add pref 10 iif v0 lookup local
rule add pref 11 iif v1 lookup local
rule add pref 20 from 10.0.0.1 to 10.0.0.2 lookup 100
rule add pref 21 from 10.0.0.2 to 10.0.0.1 lookup 101
rule add pref 22 oif v0 to 10.0.0.2 lookup 100
rule add pref 23 oif v1 to 10.0.0.1 lookup 101
rule add pref 1000 lookup local
rule del pref 0
END
for name in v0 v1; do
    echo 1 >/proc/sys/net/ipv4/conf/$name/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter
    echo 1 >/proc/sys/net/ipv4/conf/$name/arp_ignore
done
printf 'link add rxe0 type rxe netdev v0\nlink add rxe1 type rxe netdev v1\n' | rdma -b -

# RDMA memory is locked; a core would fill the guest's memory.
# shellcheck disable=SC3045 # dash has both
ulimit -l unlimited
# shellcheck disable=SC3045
ulimit -c 0
# A program that dies leaves nothing to be looked at but the kernel's words.
cd /t || echo 'vm: there is no /t'
echo '@@begin'
sh /t/command
status=$?
sync
umount /out
printf '\n@@exit %s\n' "$status"
exec reboot -f
