// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The round-trip times that the kernel takes of connections that a control group opens. */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} samples SEC(".maps");

__u32 lost;

/* And the least one. COMPAT(<6.9): the kernel does not give the sample, but what it makes of it. */
static void take_sample(const struct bpf_sock_ops *ctx)
{
	__u32 us[] = { ctx->args[0] ? ctx->args[0] : ctx->srtt_us >> 3,
		       ctx->rtt_min };

	if (bpf_ringbuf_output(&samples, us, sizeof(us), 0))
		__sync_fetch_and_add(&lost, 1);
}

SEC("sockops")
int watch(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_RTT_CB_FLAG);
	else if (ctx->op == BPF_SOCK_OPS_RTT_CB)
		take_sample(ctx);
	return 1;
}
