// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The processes that accept connections: accept(2) asks for the address of the peer, if the
 * caller does, as most do, and no other hook is near it.
 */
#include "vmlinux.h"

#include "bpf/session/owner.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { PROCEED = 1 };

static __always_inline void note_shared(struct bpf_sock_addr *ctx)
{
	const __u64 cookie = bpf_get_socket_cookie(ctx);
	struct task_struct *task = bpf_get_current_task_btf();
	struct session_owner owner;

	if (is_kernel_thread(task) ||
	    bpf_map_lookup_elem(&session_shared, &cookie))
		return;
	owner = read_owner(task, SESSION_BY_OPENING);
	bpf_map_update_elem(&session_shared, &cookie, &owner, BPF_NOEXIST);
}

static __always_inline int note_accept(struct bpf_sock_addr *ctx)
{
	const __u32 protocol = *(volatile __u32 *)&ctx->protocol;
	struct session_socket *socket;

	if (protocol == IPPROTO_MPTCP)
		note_shared(ctx);
	if (protocol != IPPROTO_TCP || !ctx->sk)
		return PROCEED;
	socket = bpf_sk_storage_get(&session_sockets, ctx->sk, NULL, 0);
	if (socket)
		note_current(socket, SESSION_BY_OPENING);
	return PROCEED;
}

SEC("cgroup/getpeername4")
int netobs_sess_ac4(struct bpf_sock_addr *ctx)
{
	return note_accept(ctx);
}

SEC("cgroup/getpeername6")
int netobs_sess_ac6(struct bpf_sock_addr *ctx)
{
	return note_accept(ctx);
}
