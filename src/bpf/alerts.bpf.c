// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the filters of rules about connections that a packet matches. The flow programs end with a
 * jump to this program for the first packet of a connection, so that filters can change without
 * them. It is loaded with a judge() that has a bit for each filter.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "bpf/judge.h"
#include "bpf/maps.h"
#include "bpf/store/conn_bodies.h"
#include "bpf/store/hash.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 config_epoch = 0; /* of the filters */

enum { VERDICT_NEXT = -1 };

/* This program times nothing. */
static __always_inline __u64 read_exact_clock(const struct segment *segment)
{
	return segment->now;
}

SEC("tc")
int netobs_alert(struct __sk_buff *skb)
{
	__u64 verdict = judge(skb);
	__u32 cpu_id = bpf_get_smp_processor_id();
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);
	struct alert_state *state;

	if (!cpu)
		return VERDICT_NEXT;
	state = state_at(((struct scratch *)cpu->scratch)->noted.index);
	if (state) {
		state->verdict = verdict;
		state->epoch = config_epoch;
	}
	/* run_exit() for the program that jumped here. */
	WRITE_ONCE(cpu->exited, cpu->exited + 1);
	return VERDICT_NEXT;
}
