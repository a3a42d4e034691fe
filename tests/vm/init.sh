#!/bin/busybox sh
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# shellcheck shell=dash disable=SC2154
# First process of a guest: the host's file system, read-only, under a tmpfs
# that takes what the guest writes; then guest.sh in there.
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do
	/bin/busybox insmod "$module"
done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 \
	host /host
/bin/busybox mount -t tmpfs -o size=75% over /over

# overlay LOWER TARGET: what is written there goes to the tmpfs
overlay()
{
	/bin/busybox mkdir -p "$2" "/over/upper$1" "/over/work$1"
	/bin/busybox mount -t overlay \
		-o "lowerdir=$1,upperdir=/over/upper$1,workdir=/over/work$1" overlay "$2"
}

# What begins with netobs_ comes from the kernel's command line, which is init's
# environment: a directory of the host as root, and others that are seen below it.
overlay "/host$netobs_root" /root
IFS=:
for directory in $netobs_seen; do
	overlay "/host$directory" "/root$directory"
done
/bin/busybox mount -o move /dev /root/dev
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /bin/bash "$netobs_guest"
