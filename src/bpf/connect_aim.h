/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * COMPAT(<6.17): the address of a thread's current call. The traced functions of UDP run before the
 * kernel locks the socket, so their programs note the address with the thread. The programs at the
 * root of the control groups run with the socket locked, and take the note.
 */
#ifndef NETOBS_BPF_CONNECT_AIM_H
#define NETOBS_BPF_CONNECT_AIM_H

#include "vmlinux.h"

#include "bpf/connect.h"

#include <bpf/bpf_helpers.h>

enum aim_kind { AIM_CONNECT, AIM_DATAGRAM };

struct aim {
	__u64 sk; /* the address of the socket */
	__u8 address[16];
	__be16 port;
	__u16 kind; /* enum aim_kind */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECT_AIMS_MAX);
	__type(key, __u64);
	__type(value, struct aim);
} connect_aims SEC(".maps");

static __always_inline void note_aim(const struct aim *aim)
{
	__u64 thread = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&connect_aims, &thread, aim, BPF_ANY);
}

static __always_inline void forget_aim(void)
{
	__u64 thread = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&connect_aims, &thread);
}

/* NULL: the call was not traced, or the note is gone. The note may be of a call that the kernel refused. */
static __always_inline const struct aim *find_aim(const void *sk,
						  enum aim_kind kind)
{
	__u64 thread = bpf_get_current_pid_tgid();
	const struct aim *aim = bpf_map_lookup_elem(&connect_aims, &thread);

	return aim && aim->sk == (__u64)sk && aim->kind == kind ? aim : NULL;
}

#endif
