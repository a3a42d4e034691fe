// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that returns whether the filter that it is loaded with accepts the packet. */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "bpf/judge.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int is_accepted(struct __sk_buff *skb)
{
	return judge(skb) & JUDGED_ACCEPT;
}
