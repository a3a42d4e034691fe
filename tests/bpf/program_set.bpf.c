// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs for test_program_set.c. */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { ACCEPT = 1, LISTED_PORT = 9 };

const volatile __u32 config_step = 1;
const volatile bool config_ports = false; /* the feature that needs the map */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} ports SEC(".maps");

static __always_inline void count_run(void)
{
	__u32 slot = 0;
	__u64 *n = bpf_map_lookup_elem(&runs, &slot);

	if (n)
		__sync_fetch_and_add(n, config_step);
}

SEC("tc")
int count_packets(struct __sk_buff *skb)
{
	__u32 port = LISTED_PORT;
	__u64 once = 1;

	count_run();
	if (config_ports)
		bpf_map_update_elem(&ports, &port, &once, BPF_ANY);
	return 0;
}

/* The verifier refuses it: what is read may not be there. */
SEC("tc")
int read_nothing(struct __sk_buff *skb)
{
	__u32 port = LISTED_PORT;
	volatile __u64 *n = bpf_map_lookup_elem(&ports, &port);

	return *n != 0;
}

/* To be replaced by code that is generated. */
SEC("tc")
int match_packets(struct __sk_buff *skb)
{
	return 0;
}

SEC("raw_tp/sched_process_fork")
int count_forks(void *ctx)
{
	count_run();
	return 0;
}

SEC("sockops")
int count_connects(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		count_run();
	return ACCEPT;
}
