/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision whether a packet is observed. Programs that are loaded with a filter call
 * judge(), whose code is generated (src/filter/filter.h).
 */
#ifndef NETOBS_BPF_JUDGE_H
#define NETOBS_BPF_JUDGE_H

#include "bpf/types.h"
#include <bpf/bpf_helpers.h>

/*
 * See types.h for the result. Packets may be pulled, so no pointer into one is valid after the
 * call. This one rejects: programs that have it are only loaded to be copied, and the
 * verifier then has less to follow.
 */
static __attribute__((noinline)) __u32 judge(struct __sk_buff *skb)
{
	__u32 judgement;

	/* The compiler must not know the result. */
	asm volatile("%0 = 0" : "=r"(judgement) : "r"(skb));
	return judgement;
}

#endif
