#!/bin/busybox sh
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# shellcheck shell=dash
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
/bin/busybox mkdir /over/upper /over/work
/bin/busybox mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work \
	overlay /root
/bin/busybox mount -o move /dev /root/dev
/bin/busybox umount /proc
# netobs_guest comes from the kernel's command line, which is init's environment.
# shellcheck disable=SC2154
exec /bin/busybox switch_root /root /bin/bash "$netobs_guest"
