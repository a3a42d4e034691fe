// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A load balancer at sockets: what a process asks for is a service, and it gets a backend. */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "connectlb.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { PROCEED = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct service);
	__type(value, struct backends);
} services SEC(".maps");

_Static_assert(!(BACKENDS_MAX & (BACKENDS_MAX - 1)), "masks an index");

__u64 translated;

static __always_inline const struct end *choose(const struct service *service)
{
	const struct backends *backends = bpf_map_lookup_elem(&services, service);
	__u32 i;

	if (!backends || !backends->n)
		return NULL;
	i = bpf_get_prandom_u32() % backends->n;
	__sync_fetch_and_add(&translated, 1);
	/* The verifier knows no bound of a remainder; what `if (i < ...)` says is of its low half. */
	return &backends->ends[i & (BACKENDS_MAX - 1)];
}

static __always_inline int translate4(struct bpf_sock_addr *ctx)
{
	struct service service = { .end = { .words = { 0, 0, bpf_htonl(0xffff),
						       ctx->user_ip4 },
					    .port = ctx->user_port },
				   .protocol = ctx->protocol };
	const struct end *end = choose(&service);

	if (!end)
		return PROCEED;
	ctx->user_ip4 = end->words[3];
	ctx->user_port = end->port;
	return PROCEED;
}

static __always_inline int translate6(struct bpf_sock_addr *ctx)
{
	struct service service = {
		.end = { .words = { ctx->user_ip6[0], ctx->user_ip6[1],
				    ctx->user_ip6[2], ctx->user_ip6[3] },
			 .port = ctx->user_port },
		.protocol = ctx->protocol
	};
	const struct end *end = choose(&service);

	if (!end)
		return PROCEED;
	ctx->user_ip6[0] = end->words[0];
	ctx->user_ip6[1] = end->words[1];
	ctx->user_ip6[2] = end->words[2];
	ctx->user_ip6[3] = end->words[3];
	ctx->user_port = end->port;
	return PROCEED;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	return translate4(ctx);
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	return translate6(ctx);
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	return translate4(ctx);
}

SEC("cgroup/sendmsg6")
int sendmsg6(struct bpf_sock_addr *ctx)
{
	return translate6(ctx);
}
