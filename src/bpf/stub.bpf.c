// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * COMPAT(<6.6): a clsact filter outlives the process that made it, a tcx link
 * does not. So the filter is only this jump through an array: the kernel
 * clears a program array when the last process that holds it is gone, and what
 * is left behind then costs as much as an empty program.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX /* as in flows.bpf.c */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { VERDICT_NEXT = -1 };

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} jump SEC(".maps");

SEC("tc")
int netobs_stub(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &jump, 0);
	return VERDICT_NEXT;
}
