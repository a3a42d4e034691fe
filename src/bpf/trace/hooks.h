/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Netfilter's hooks, which IP passes packets through: a program in front of all others at a hook, and one
 * behind them, see them before and after NAT, and the time between is that of the rules.
 */
#ifndef NETOBS_BPF_TRACE_HOOKS_H
#define NETOBS_BPF_TRACE_HOOKS_H

#include "segments.h"

enum { HOOKS = 5, HOOK_ACCEPT = 1 };

/* struct bpf_nf_ctx of the kernel, since Linux 6.4. */
struct hook_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

/* A packet of this host begins here, and behind a hook it may have another tuple. */
static __always_inline bool may_be_new(__u8 kind)
{
	return kind == TRACE_OUTPUT || (kind - TRACE_PREROUTING) % 2;
}

static __always_inline int take_hook(const struct hook_ctx *ctx, bool is_behind)
{
	const struct nf_hook_state *state = ctx->state;
	const struct sk_buff *skb = ctx->skb;
	const __u8 hook = state->hook;
	struct point point = {
		.kind = TRACE_PREROUTING + 2 * hook + is_behind,
		.dev = state->out ?: state->in,
	};

	if (hook < HOOKS)
		take_segment(skb, skb->network_header, may_be_new(point.kind),
			     &point);
	return HOOK_ACCEPT;
}

#endif
