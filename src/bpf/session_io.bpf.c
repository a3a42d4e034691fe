// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes that send and receive: sockets change hands by fork(2) and unix(7). */
#include "vmlinux.h"

#include "bpf/session/report.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* IN_ROW_MAX changes of the owner are reported in a row, then one per REPORT_NS. */
#define REPORT_NS 1000000000ULL
#define IN_ROW_MAX 8

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * For a UDP socket, which several threads may use in turn, only the process matters. Each call runs
 * this: the members of the task are read one by one, where a helper takes 10 to 20 ns.
 */
static __always_inline bool is_same_thread(const struct session_owner *owner,
					   const struct task_struct *task)
{
	const __u64 *known = (const __u64 *)owner->thread;
	const __u64 *comm = (const __u64 *)task->comm;

	return (__u32)owner->pid_tgid == (__u32)task->pid &&
	       comm[0] == known[0] && comm[1] == known[1];
}

/* Names of other programs may begin with the 15 bytes that the kernel keeps, too. */
static __always_inline bool is_same_program(const struct session_owner *owner,
					    const struct task_struct *task)
{
	return !owner->comm[SESSION_COMM_LEN - 2] ||
	       owner->exec ==
		       task->group_leader->start_boottime + task->self_exec_id;
}

static __always_inline bool is_same(const struct session_owner *owner,
				    bool any_thread)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const __u64 *known = (const __u64 *)owner->comm;
	const __u64 *comm = (const __u64 *)task->group_leader->comm;

	return owner->by == SESSION_BY_USING &&
	       owner->pid_tgid >> 32 == (__u32)task->tgid &&
	       owner->uid == task->cred->uid.val &&
	       owner->cgroup_id == task->cgroups->dfl_cgrp->kn->id &&
	       comm[0] == known[0] && comm[1] == known[1] &&
	       is_same_program(owner, task) &&
	       (any_thread || is_same_thread(owner, task));
}

/* Unconnected sockets get no storage: listeners have no owner, and closed ones keep theirs. */
static __always_inline struct session_socket *socket_of(struct sock *sk)
{
	int state = sk->__sk_common.skc_state;
	__u64 create = state == TCP_CLOSE || state == TCP_LISTEN ?
			       0 :
			       BPF_SK_STORAGE_GET_F_CREATE;

	return bpf_sk_storage_get(&session_sockets, sk, NULL, create);
}

/*
 * @return whether to report the owner now. A socket that is handed over, or whose process executes
 * another program, may be closed before it is listed, so this is reported at once. If processes
 * use a socket in turn, user space does not need each change: the list has the last one.
 */
static __always_inline bool is_to_report(struct session_socket *socket, __u32 ends)
{
	if (socket->ends != ends || !socket->reported_ns)
		return true;
	if (!socket->is_unreported)
		return false;
	if (bpf_ktime_get_boot_ns() - socket->reported_ns >= REPORT_NS)
		socket->n_in_row = 0;
	if (socket->n_in_row >= IN_ROW_MAX)
		return false;
	socket->n_in_row++;
	return true;
}

/* Report a UDP socket at once: it may be gone before user space lists it. */
static __always_inline void report_udp(struct sock *sk,
				       struct session_socket *socket, __u32 ends)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });
	__u64 used = bpf_ringbuf_query(&session_events, BPF_RB_AVAIL_DATA);
	struct session_event *event =
		bpf_ringbuf_reserve(&session_events, SESSION_OWNED_SIZE, 0);

	if (!event) {
		if (counts)
			__sync_fetch_and_add(&counts->owners_lost, 1);
		return;
	}
	__builtin_memset(event, 0, SESSION_OWNED_SIZE);
	socket->ends = ends;
	socket->is_unreported = false;
	fill_owned(event, sk, socket);
	socket->reported_ns = event->time_ns;
	bpf_ringbuf_submit(event, wake_flags(used, SESSION_OWNED_SIZE));
}

static __always_inline struct session_socket *known_socket(struct sock *sk)
{
	if (is_tcp(sk) || is_mptcp(sk))
		return socket_of(sk);
	return config_owners && is_udp(sk) ?
		       bpf_sk_storage_get(&session_sockets, sk, NULL,
					  BPF_SK_STORAGE_GET_F_CREATE) :
		       NULL;
}

/* Note the current task as the owner. False: it is a thread of the kernel. */
static __always_inline bool note_user(struct session_socket *socket,
				      bool any_thread)
{
	struct session_owner owner;
	struct task_struct *task;

	if (is_same(valid_owner(socket), any_thread))
		return true;
	task = bpf_get_current_task_btf();
	if (is_kernel_thread(task))
		return false;
	owner = read_owner(task, SESSION_BY_USING);
	if (any_thread)
		owner.thread[0] = 0;
	set_owner(socket, &owner, SESSION_BY_USING);
	socket->is_unreported = true;
	return true;
}

/* A sender got its new addresses just now; a receiver at any time since its last report. */
static __always_inline void note_start(struct session_socket *socket,
				       bool is_sending)
{
	socket->start_ns = is_sending ? bpf_ktime_get_boot_ns() :
					socket->reported_ns;
}

static __always_inline void
use_udp(struct sock *sk, struct session_socket *socket, bool is_sending)
{
	__u32 ends = ends_of(sk);

	if (!note_user(socket, true) || !is_to_report(socket, ends))
		return;
	if (socket->ends != ends)
		note_start(socket, is_sending);
	report_udp(sk, socket, ends);
}

static __always_inline void use_tcp(struct sock *sk, struct session_socket *socket)
{
	if (!note_user(socket, false) || !is_mptcp(sk) || !socket->is_unreported)
		return;
	share_owner(sk, socket);
	socket->is_unreported = false;
}

/* @moved: bytes, or -errno: the socket may belong to another process that waits for it. */
static __always_inline int use(struct sock *sk, int moved, bool is_sending)
{
	struct session_socket *socket = moved < 0 ? NULL : known_socket(sk);

	if (!socket)
		return 0;
	if (is_udp(sk))
		use_udp(sk, socket, is_sending);
	else
		use_tcp(sk, socket);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(netobs_sess_snd, struct sock *sk, int moved)
{
	return use(sk, moved, true);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(netobs_sess_rcv, struct sock *sk, int moved)
{
	return use(sk, moved, false);
}
