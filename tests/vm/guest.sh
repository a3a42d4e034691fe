#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Process 1 of a guest, in a copy of the host's file system that it alone writes
# to: makes it a system, runs what $out/job says, and switches itself off.
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
out=/run/netobs-out

mount_all()
{
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t tmpfs -o mode=755 run /run
	mkdir -p /dev/pts /dev/shm /run/lock "$out"
	mount -t devpts devpts /dev/pts
	mount -t tmpfs shm /dev/shm
	# What shells read other commands through.
	ln -sfn /proc/self/fd /dev/fd
	mount -t bpf bpf /sys/fs/bpf
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 out "$out"
}

switch_off()
{
	touch "$out/ended"
	sync
	echo o >/proc/sysrq-trigger
	sleep 60
}

mount_all
# Says $modules, and what run() does.
# shellcheck source=/dev/null
. "$out/job"
mkdir -p /lib/modules
# shellcheck disable=SC2154
mount --bind "$modules" /lib/modules
# udev would make its device node, and the module would come with the first use.
modprobe tun
# Its sysctls are there before rules need it.
modprobe nf_conntrack
ip link set lo up
run </dev/console >"$out/output.log" 2>&1
switch_off
