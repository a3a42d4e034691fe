// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes that send and receive: sockets change hands by fork(2) and unix(7). */
#include "vmlinux.h"

#include "bpf/session/owner.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline bool is_same(const struct session_owner *owner)
{
	const __u64 *known = (const __u64 *)owner->comm;
	__u64 comm[SESSION_COMM_LEN / sizeof(__u64)];

	if (owner->by != SESSION_BY_USING ||
	    owner->pid_tgid != bpf_get_current_pid_tgid() ||
	    owner->uid != (__u32)bpf_get_current_uid_gid() ||
	    owner->cgroup_id != bpf_get_current_cgroup_id() ||
	    bpf_get_current_comm(comm, sizeof(comm)))
		return false;
	return comm[0] == known[0] && comm[1] == known[1];
}

/* Sockets that are not connected have no owner; closed ones, if it is not known yet. */
static __always_inline struct session_socket *socket_of(struct sock *sk)
{
	int state = sk->__sk_common.skc_state;
	__u64 create = state == TCP_CLOSE || state == TCP_LISTEN ?
			       0 :
			       BPF_SK_STORAGE_GET_F_CREATE;

	return bpf_sk_storage_get(&session_sockets, sk, NULL, create);
}

/* @moved: bytes, or -errno: the socket may belong to another process that waits for it. */
static __always_inline int use(struct sock *sk, int moved)
{
	struct session_socket *socket;
	struct session_owner owner;
	struct task_struct *task;

	if (moved < 0 || !is_tcp(sk))
		return 0;
	socket = socket_of(sk);
	if (!socket || is_same(valid_owner(socket)))
		return 0;
	task = bpf_get_current_task_btf();
	if (is_kernel_thread(task))
		return 0;
	owner = read_owner(task, SESSION_BY_USING);
	set_owner(socket, &owner);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(netobs_sess_snd, struct sock *sk, int moved)
{
	return use(sk, moved);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(netobs_sess_rcv, struct sock *sk, int moved)
{
	return use(sk, moved);
}
