// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TCP connections of this host's sockets: reported when they end, and listed while they live. */
#include "vmlinux.h"

#include "bpf/session.h"
#include "bpf/session/owner.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 config_wake = 0; /* bytes in the ring buffer that wake */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} session_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_counts);
} session_counts SEC(".maps");

/* Not 0: the list is the last one, and no other program runs any more. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} session_is_last SEC(".maps");

/* Where an entry of the list is put together. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_event);
} session_entry SEC(".maps");

static __always_inline struct session_socket *find_socket(struct sock *sk)
{
	return bpf_sk_storage_get(&session_sockets, sk, NULL, 0);
}

static __always_inline struct session_socket *add_socket(struct sock *sk)
{
	return bpf_sk_storage_get(&session_sockets, sk, NULL,
				  BPF_SK_STORAGE_GET_F_CREATE);
}

/*
 * The current task has locked the socket, as system calls do. Otherwise it is an interrupt
 * or a timer, whose task has nothing to do with it.
 */
static __always_inline bool is_of_current(const struct sock *sk)
{
	return sk->sk_lock.owned;
}

static __always_inline bool has_flag(const struct sock *sk, enum sock_flags flag)
{
	return sk->__sk_common.skc_flags >> flag & 1;
}

/* ---- A connection as it is now ------------------------------------------------------- */

static __always_inline void copy_ipv4(__u8 to[16], __be32 address)
{
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, sizeof(address));
}

static __always_inline void fill_addresses(struct session_event *event,
					   const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	if (common->skc_family == AF_INET) {
		copy_ipv4(event->local, common->skc_rcv_saddr);
		copy_ipv4(event->remote, common->skc_daddr);
		return;
	}
	BPF_CORE_READ_INTO(&event->local, sk,
			   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
	BPF_CORE_READ_INTO(&event->remote, sk,
			   __sk_common.skc_v6_daddr.in6_u.u6_addr8);
}

static __always_inline void fill_counters(struct session_event *event,
					  const struct tcp_sock *tp)
{
	event->bytes_acked = tp->bytes_acked;
	event->bytes_received = tp->bytes_received;
	event->bytes_sent = tp->bytes_sent;
	event->bytes_retrans = tp->bytes_retrans;
	event->segs_out = tp->segs_out;
	event->segs_in = tp->segs_in;
	event->data_segs_out = tp->data_segs_out;
	event->data_segs_in = tp->data_segs_in;
	event->retransmits = tp->total_retrans;
	event->lost = tp->lost;
	event->reordering = tp->reordering;
	event->reordered = tp->reord_seen;
	event->delivered = tp->delivered;
	event->delivered_ce = tp->delivered_ce;
	event->dsack_dups = tp->dsack_dups;
}

/* As tcp_get_info() of net/ipv4/tcp.c has them. */
static __always_inline void fill_path(struct session_event *event,
				      const struct tcp_sock *tp)
{
	event->srtt_us = tp->srtt_us >> 3;
	event->rttvar_us = tp->mdev_us >> 2;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->cwnd = tp->snd_cwnd;
	event->mss = tp->mss_cache;
}

/* As tcp_get_info_chrono_stats() does: what goes on now is not in its sum yet. */
static __always_inline void fill_limits(struct session_event *event,
					const struct tcp_sock *tp)
{
	__u32 running = (__u32)bpf_jiffies64() - tp->chrono_start;
	__u8 kind = BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);
	__u32 busy = tp->chrono_stat[TCP_CHRONO_BUSY - 1];

	event->rwnd_ticks = tp->chrono_stat[TCP_CHRONO_RWND_LIMITED - 1];
	event->sndbuf_ticks = tp->chrono_stat[TCP_CHRONO_SNDBUF_LIMITED - 1];
	if (kind == TCP_CHRONO_BUSY)
		busy += running;
	else if (kind == TCP_CHRONO_RWND_LIMITED)
		event->rwnd_ticks += running;
	else if (kind == TCP_CHRONO_SNDBUF_LIMITED)
		event->sndbuf_ticks += running;
	event->busy_ticks = busy + event->rwnd_ticks + event->sndbuf_ticks;
}

static __always_inline void fill_event(struct session_event *event,
				       struct sock *sk, const struct tcp_sock *tp,
				       struct session_socket *socket)
{
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_boot_ns();
	event->state = sk->__sk_common.skc_state;
	event->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	event->local_port = bpf_ntohs(tp->inet_conn.icsk_inet.inet_sport);
	event->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	fill_addresses(event, sk);
	fill_counters(event, tp);
	fill_path(event, tp);
	fill_limits(event, tp);
	if (!socket)
		return;
	event->start_ns = socket->start_ns;
	event->opened = socket->opened;
	event->owner = *valid_owner(socket);
}

/* ---- Reports ------------------------------------------------------------------------- */

/* The first one in an empty ring buffer wakes user space, and the one that fills it half. */
static __always_inline __u64 wake_flags(__u64 used)
{
	__u64 after = used + BPF_RINGBUF_HDR_SZ + sizeof(struct session_event);

	return !used || (used < config_wake && after >= config_wake) ?
		       BPF_RB_FORCE_WAKEUP :
		       BPF_RB_NO_WAKEUP;
}

/* It is that of the next connection of the socket. */
static __always_inline void clear_remote(struct session_event *event)
{
	__builtin_memset(event->remote, 0, sizeof(event->remote));
	event->remote_port = 0;
}

static __always_inline void report(struct sock *sk, struct session_socket *socket,
				   struct session_end end)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct session_event *event;
	__u64 used;

	if (!counts || !tp)
		return;
	used = bpf_ringbuf_query(&session_events, BPF_RB_AVAIL_DATA);
	event = bpf_ringbuf_reserve(&session_events, sizeof(*event), 0);
	__sync_fetch_and_add(&counts->ended, 1);
	if (!event) {
		__sync_fetch_and_add(&counts->lost, 1);
		return;
	}
	fill_event(event, sk, tp, socket);
	event->end = end;
	if (end.is_followed)
		clear_remote(event);
	bpf_ringbuf_submit(event, wake_flags(used));
}

/* ---- The life of a connection -------------------------------------------------------- */

/* It has ended before. */
static __always_inline void report_waiting(struct sock *sk,
					   struct session_socket *socket)
{
	if (!socket->end.time_ns)
		return;
	report(sk, socket, socket->end);
	socket->end.time_ns = 0;
}

/* The socket may have had another connection before. */
static __always_inline void begin_active(struct sock *sk)
{
	struct session_socket *socket = add_socket(sk);

	if (!socket)
		return;
	socket->end.is_followed = 1;
	report_waiting(sk, socket);
	__builtin_memset(socket, 0, sizeof(*socket));
	socket->start_ns = bpf_ktime_get_boot_ns();
	socket->opened = SESSION_OPENED_ACTIVE;
	if (is_of_current(sk))
		note_current(socket, SESSION_BY_OPENING);
}

/* An active one that is not known yet began before the programs did. */
static __always_inline void establish(struct sock *sk, int before)
{
	struct session_socket *socket = add_socket(sk);

	if (!socket || socket->opened)
		return;
	if (before == TCP_SYN_SENT) {
		socket->opened = SESSION_OPENED_ACTIVE;
		return;
	}
	socket->start_ns = bpf_ktime_get_boot_ns();
	socket->opened = SESSION_OPENED_PASSIVE;
}

static __always_inline void note_closing(struct sock *sk)
{
	struct session_socket *socket = find_socket(sk);

	if (socket && is_of_current(sk))
		note_current(socket, SESSION_BY_CLOSING);
}

/*
 * A process will close it. One that no process has accepted, and that ends without an error,
 * goes with its listener: inet_child_forget() will clear its counters.
 */
static __always_inline bool is_open(const struct sock *sk)
{
	return (sk->sk_socket || sk->sk_err) && !has_flag(sk, SOCK_DEAD);
}

/*
 * A process that has neither sent nor received is known when it closes the socket: what
 * ended before that is reported then.
 */
static __always_inline void end(struct sock *sk, int state)
{
	struct session_socket *socket = find_socket(sk);
	struct session_end end = {
		.time_ns = bpf_ktime_get_boot_ns(),
		.error = sk->sk_err,
		.state = state,
	};

	if (state == TCP_SYN_RECV &&
	    (!socket || socket->opened != SESSION_OPENED_ACTIVE))
		return; /* the handshake was not completed */
	/* SOCK_DESTROY of sock_diag(7) is another process's. */
	if (socket && is_of_current(sk) && end.error != ECONNABORTED)
		note_current(socket, SESSION_BY_CLOSING);
	if (socket && !valid_owner(socket)->by && is_open(sk))
		socket->end = end;
	else
		report(sk, socket, end);
}

static __always_inline void take_state(struct sock *sk, int before, int after)
{
	switch (after) {
	case TCP_SYN_SENT:
		begin_active(sk);
		break;
	case TCP_ESTABLISHED:
		establish(sk, before);
		break;
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
		note_closing(sk);
		break;
	case TCP_CLOSE:
		if (before != TCP_LISTEN && before != TCP_CLOSE)
			end(sk, before);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(netobs_sess_set, struct sock *sk, int before, int after)
{
	if (is_tcp(sk))
		take_state(sk, before, after);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(netobs_sess_end, struct sock *sk)
{
	struct session_socket *socket = find_socket(sk);

	if (!socket || !socket->end.time_ns)
		return 0;
	if (is_of_current(sk))
		note_current(socket, SESSION_BY_CLOSING);
	report_waiting(sk, socket);
	return 0;
}

/* ---- Connections that live ------------------------------------------------------------ */

/* The processes that had sockets open when the programs started. */
static __always_inline void note_holder(struct session_socket *socket,
					struct task_struct *task)
{
	struct session_owner *before = valid_owner(socket);
	struct session_owner owner;

	if (before->by > SESSION_BY_HOLDING || socket->is_shared)
		return;
	owner = read_owner(task, SESSION_BY_HOLDING);
	if (before->by && before->pid_tgid >> 32 != owner.pid_tgid >> 32) {
		owner.by = SESSION_BY_NONE;
		socket->is_shared = 1;
	}
	set_owner(socket, &owner);
}

static __always_inline bool is_connected(const struct sock *sk)
{
	return sk->__sk_common.skc_state != TCP_LISTEN &&
	       sk->__sk_common.skc_state != TCP_CLOSE;
}

SEC("iter/task_file")
int netobs_sess_own(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct session_socket *socket;
	struct file *file = ctx->file;
	struct socket *of_file;
	struct sock *sk;

	if (!task || !file)
		return 0;
	of_file = bpf_sock_from_file(file);
	if (!of_file)
		return 0;
	sk = of_file->sk;
	if (!sk || !is_tcp(sk) || !is_connected(sk))
		return 0;
	socket = add_socket(sk);
	if (socket)
		note_holder(socket, task);
	return 0;
}

/*
 * One that ended and waits for its process is in the last list only. It is there once, though
 * the kernel may visit a socket twice, and again if there was no room.
 */
SEC("iter/bpf_sk_storage_map")
int netobs_sess_ls(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct session_event *event =
		bpf_map_lookup_elem(&session_entry, &(__u32){ 0 });
	const __u32 *is_last =
		bpf_map_lookup_elem(&session_is_last, &(__u32){ 0 });
	struct session_socket *socket = ctx->value;
	struct sock *sk = ctx->sk;
	struct tcp_sock *tp;

	if (!event || !is_last || !socket || !sk)
		return 0;
	if (socket->end.time_ns ? !*is_last : !is_connected(sk))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	fill_event(event, sk, tp, socket);
	event->end = socket->end;
	if (!bpf_seq_write(ctx->meta->seq, event, sizeof(*event)))
		socket->end.time_ns = 0;
	return 0;
}
