// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TCP connections of this host's sockets: reported when they end, and listed while they live. */
#include "vmlinux.h"

#include "bpf/session.h"
#include "bpf/session/report.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* SOCK_NOSPACE of include/linux/net.h, which was a macro. */
enum { SOCKET_NOSPACE = 2 };

/* netobs_sess_lsf lists sockets, not netobs_sess_ls. */
const volatile bool config_lists_files = false;

enum {
	SUBFLOWS_MAX = 16
}; /* of a socket of MPTCP; the kernel allows 8 and the first */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_list);
} session_list SEC(".maps");

/* Memory for an element of session_queued. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_event);
} session_entry SEC(".maps");

/*
 * Connections, by cookie, that ended before a process accepted them. If none does, their listener
 * clears their counters (inet_child_forget()).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct session_event);
} session_queued SEC(".maps");

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
 * @return whether the current task has locked the socket, as system calls do. Otherwise the program
 * runs in an interrupt or a timer, and the current task is unrelated to the socket.
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

/* Same as tcp_get_info() of net/ipv4/tcp.c. */
static __always_inline void fill_path(struct session_event *event,
				      const struct tcp_sock *tp)
{
	event->srtt_us = tp->srtt_us >> 3;
	event->rttvar_us = tp->mdev_us >> 2;
	event->min_rtt_us = tp->rtt_min.s[0].v;
	event->cwnd = tp->snd_cwnd;
	event->mss = tp->mss_cache;
}

/*
 * As tcp_get_info_chrono_stats(): the sums lack the current phase. What note_full() found is a part of
 * the time that the kernel counts as busy and not as limited; it is read first, as it may grow.
 */
static __always_inline void fill_limits(struct session_event *event,
					const struct tcp_sock *tp,
					struct session_socket *socket)
{
	__u32 running, busy, sndbuf;
	__u8 kind;

	if (socket)
		event->sndbuf_ticks = *(volatile __u32 *)&socket->full_ticks;
	running = (__u32)bpf_jiffies64() - tp->chrono_start;
	kind = BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);
	busy = tp->chrono_stat[TCP_CHRONO_BUSY - 1];
	sndbuf = tp->chrono_stat[TCP_CHRONO_SNDBUF_LIMITED - 1];
	event->rwnd_ticks = tp->chrono_stat[TCP_CHRONO_RWND_LIMITED - 1];
	if (kind == TCP_CHRONO_BUSY)
		busy += running;
	else if (kind == TCP_CHRONO_RWND_LIMITED)
		event->rwnd_ticks += running;
	else if (kind == TCP_CHRONO_SNDBUF_LIMITED)
		sndbuf += running;
	event->busy_ticks = busy + event->rwnd_ticks + sndbuf;
	event->sndbuf_ticks += sndbuf;
}

static __always_inline void fill_event(struct session_event *event,
				       struct sock *sk, const struct tcp_sock *tp,
				       struct session_socket *socket)
{
	__builtin_memset(event, 0, sizeof(*event));
	fill_owned(event, sk, socket);
	event->has_fin = has_flag(sk, SOCK_DONE); /* by tcp_fin() */
	fill_counters(event, tp);
	fill_path(event, tp);
	fill_limits(event, tp, socket);
}

/* ---- Reports ------------------------------------------------------------------------- */

/* Clear an event's remote end, which is that of the socket's next connection already. */
static __always_inline void clear_remote(struct session_event *event)
{
	__builtin_memset(event->remote, 0, sizeof(event->remote));
	event->remote_port = 0;
}

/* If there was no memory for the socket's storage, the current task may be the owner. */
static __always_inline void fill_owner(struct session_event *event,
				       const struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!event->owner.by && is_of_current(sk) &&
	    event->end.error != ECONNABORTED && !is_kernel_thread(task))
		event->owner = read_owner(task, SESSION_BY_CLOSING);
}

static __always_inline void complete(struct session_event *event,
				     const struct sock *sk,
				     struct session_socket *socket,
				     const struct session_end *end)
{
	event->end = *end;
	if (!socket)
		fill_owner(event, sk);
	if (end->is_followed)
		clear_remote(event);
}

/* These return false if the ring buffer is full. */
static __always_inline bool report_owned(struct sock *sk,
					 struct session_socket *socket,
					 const struct session_end *end)
{
	__u64 used = bpf_ringbuf_query(&session_events, BPF_RB_AVAIL_DATA);
	struct session_event *event =
		bpf_ringbuf_reserve(&session_events, SESSION_OWNED_SIZE, 0);

	if (!event)
		return false;
	__builtin_memset(event, 0, SESSION_OWNED_SIZE);
	fill_owned(event, sk, socket);
	complete(event, sk, socket, end);
	bpf_ringbuf_submit(event, wake_flags(used, SESSION_OWNED_SIZE));
	return true;
}

/* Restore a connection as it was when it ended; its process may have become known since. */
static __always_inline bool restore(struct session_event *event, struct sock *sk,
				    struct session_socket *socket)
{
	__u64 cookie = bpf_get_socket_cookie(sk);
	const struct session_event *kept;

	if (!socket || !socket->is_kept)
		return false;
	kept = bpf_map_lookup_elem(&session_queued, &cookie);
	if (!kept)
		return false;
	__builtin_memcpy(event, kept, sizeof(*event));
	event->owner = *owner_of(sk, socket);
	return true;
}

static __always_inline void forget_kept(struct sock *sk,
					struct session_socket *socket)
{
	__u64 cookie = bpf_get_socket_cookie(sk);

	if (!socket || !socket->is_kept)
		return;
	bpf_map_delete_elem(&session_queued, &cookie);
	socket->is_kept = false;
}

static __always_inline bool report_all(struct sock *sk, struct tcp_sock *tp,
				       struct session_socket *socket,
				       const struct session_end *end)
{
	__u64 used = bpf_ringbuf_query(&session_events, BPF_RB_AVAIL_DATA);
	struct session_event *event =
		bpf_ringbuf_reserve(&session_events, sizeof(*event), 0);

	if (!event)
		return false;
	if (!restore(event, sk, socket))
		fill_event(event, sk, tp, socket);
	forget_kept(sk, socket);
	complete(event, sk, socket, end);
	bpf_ringbuf_submit(event, wake_flags(used, sizeof(*event)));
	return true;
}

static __always_inline void report(struct sock *sk, struct session_socket *socket,
				   const struct session_end *end)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!counts || !tp)
		return;
	__sync_fetch_and_add(&counts->ended, 1);
	if (config_owners ? !report_owned(sk, socket, end) :
			    !report_all(sk, tp, socket, end))
		__sync_fetch_and_add(&counts->lost, 1);
}

/* ---- The life of a connection -------------------------------------------------------- */

static __always_inline void begin(struct session_socket *socket,
				  enum session_opened opened)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });

	socket->start_ns = bpf_ktime_get_boot_ns();
	socket->opened = opened;
	if (counts)
		__sync_fetch_and_add(&counts->open, 1);
}

/* Connections older than the programs were not counted as open. */
static __always_inline void count_end(const struct session_socket *socket)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });

	if (counts && socket && socket->start_ns)
		__sync_fetch_and_add(&counts->open, -1);
}

/* Report a connection that ended before, and waited for its process. */
static __always_inline void report_waiting(struct sock *sk,
					   struct session_socket *socket)
{
	if (!socket->end.time_ns)
		return;
	report(sk, socket, &socket->end);
	socket->end.time_ns = 0;
}

/*
 * If an interrupt ends a connection while its CPU runs netobs_sess_set, that program does not run
 * for the end: the kernel lets no tracing program interrupt itself (__bpf_trace_run() in
 * kernel/trace/bpf_trace.c).
 * @return whether this connection ended so; then @socket has its end
 */
static __always_inline bool take_unseen_end(struct sock *sk,
					    struct session_socket *socket)
{
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!socket->state || !tp)
		return false;
	count_end(socket);
	socket->end.time_ns = bpf_ktime_get_boot_ns();
	socket->end.error = sk->sk_err;
	socket->end.state = socket->state == TCP_FIN_WAIT1 &&
					    tp->snd_una == tp->write_seq ?
				    TCP_FIN_WAIT2 :
				    socket->state;
	socket->state = 0;
	return true;
}

/* The socket may have had another connection before. */
static __always_inline void begin_active(struct sock *sk)
{
	struct session_socket *socket = add_socket(sk);

	if (!socket)
		return;
	take_unseen_end(sk, socket);
	socket->end.is_followed = 1;
	report_waiting(sk, socket);
	__builtin_memset(socket, 0, sizeof(*socket));
	socket->state = TCP_SYN_SENT;
	begin(socket, SESSION_OPENED_ACTIVE);
	if (is_of_current(sk))
		note_current(socket, SESSION_BY_OPENING);
}

/*
 * A list of the files of processes misses a connection whose process has closed the file, until the
 * kernel ends it, which may take long on a busy CPU: so its beginning is reported, too.
 */
static __always_inline void report_begin(struct sock *sk,
					 struct session_socket *socket)
{
	const struct session_end none = { 0 };
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });

	if (counts && !report_owned(sk, socket, &none))
		__sync_fetch_and_add(&counts->owners_lost, 1);
}

/* An active connection without an entry is older than the programs. */
static __always_inline void establish(struct sock *sk, int before)
{
	struct session_socket *socket = add_socket(sk);

	if (!socket)
		return;
	socket->state = TCP_ESTABLISHED;
	if (socket->opened) {
		/* It began with its first SYN. */
	} else if (before == TCP_SYN_SENT) {
		socket->opened = SESSION_OPENED_ACTIVE;
	} else {
		begin(socket, SESSION_OPENED_PASSIVE);
	}
	if (config_owners && config_lists_files)
		report_begin(sk, socket);
}

static __always_inline void note_closing(struct sock *sk, int state)
{
	struct session_socket *socket = find_socket(sk);

	if (!socket)
		return;
	if (socket->state)
		socket->state = state;
	if (is_of_current(sk))
		note_current(socket, SESSION_BY_CLOSING);
}

/*
 * @return whether a process will close the socket. A socket that no process has accepted, and
 * that ends without an error, goes with its listener: inet_child_forget() will clear its
 * counters.
 */
static __always_inline bool is_open(const struct sock *sk)
{
	return (sk->sk_socket || sk->sk_err) && !has_flag(sk, SOCK_DEAD);
}

/* Keep counters that the listener would clear: a process may accept it yet. @return success */
static __always_inline bool keep_queued(struct sock *sk,
					struct session_socket *socket,
					const struct session_end *end)
{
	struct session_event *event =
		bpf_map_lookup_elem(&session_entry, &(__u32){ 0 });
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!event || !tp)
		return false;
	fill_event(event, sk, tp, socket);
	event->end = *end;
	socket->is_kept = !bpf_map_update_elem(&session_queued, &event->cookie,
					       event, BPF_ANY);
	return socket->is_kept;
}

/* @return whether the ended connection will be reported once its process is known */
static __always_inline bool wait(struct sock *sk, struct session_socket *socket,
				 const struct session_end *end)
{
	if (!socket || owner_of(sk, socket)->by || !is_open(sk))
		return false;
	if (!config_owners && !sk->sk_socket && !keep_queued(sk, socket, end))
		return false;
	socket->end = *end;
	return true;
}

/*
 * A process that has neither sent nor received becomes known when it closes the socket: a
 * connection that ended before is reported then.
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
	count_end(socket);
	/* SOCK_DESTROY of sock_diag(7) may run in another process. */
	if (socket && is_of_current(sk) && end.error != ECONNABORTED)
		note_current(socket, SESSION_BY_CLOSING);
	if (socket)
		socket->state = 0;
	if (!wait(sk, socket, &end))
		report(sk, socket, &end);
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
		note_closing(sk, after);
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

	if (!socket || (!socket->end.time_ns && !take_unseen_end(sk, socket)))
		return 0;
	if (is_of_current(sk))
		note_current(socket, SESSION_BY_CLOSING);
	report_waiting(sk, socket);
	return 0;
}

/* ---- Waits for the send buffer --------------------------------------------------------- */

/* As sk_stream_is_writable(), if a process waits: poll(2) or a call that sends has set the bit. */
static __always_inline bool has_waiter(const struct sock *sk)
{
	const struct socket *socket = sk->sk_socket;

	return socket && socket->flags >> SOCKET_NOSPACE & 1 &&
	       sk->sk_sndbuf - sk->sk_wmem_queued < sk->sk_wmem_queued >> 1;
}

/*
 * @return whether all that was written has left, but for a part of a segment that waits for the
 * rest (Nagle), and more could leave: neither window nor the queue of an interface is full
 */
static __always_inline bool could_send(const struct sock *sk,
				       const struct tcp_sock *tp)
{
	const __u32 in_flight = tp->packets_out - tp->sacked_out -
				tp->lost_out + tp->retrans_out;

	return tp->write_seq - tp->snd_nxt < tp->mss_cache &&
	       in_flight < tp->snd_cwnd &&
	       (__s32)(tp->snd_una + tp->snd_wnd - tp->write_seq) > 0 &&
	       !(sk->sk_tsq_flags >> TSQ_THROTTLED & 1);
}

/*
 * Add the time in which only the send buffer kept a process from sending. The kernel's own clock
 * starts where data leaves while a process already waits: it misses a process that fills the buffer
 * and waits then, and data that waits for the rest of a segment. While the kernel counts busy, it counts
 * neither limit.
 */
static __always_inline void note_full(struct session_socket *socket,
				      const struct tcp_sock *tp)
{
	const __u32 now = (__u32)bpf_jiffies64();
	__u32 since = tp->chrono_start;

	if (BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type) != TCP_CHRONO_BUSY)
		return;
	if ((__s32)(tp->lsndtime - since) > 0)
		since = tp->lsndtime;
	if ((__s32)(socket->full_until - since) > 0)
		since = socket->full_until;
	if ((__s32)(now - since) > 0)
		socket->full_ticks += now - since;
	socket->full_until = now;
}

/* A segment arrives, and has changed nothing yet: what it acknowledges still fills the buffer. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(netobs_sess_spc, struct sock *sk)
{
	const struct tcp_sock *tp;
	struct session_socket *socket;

	if (!has_waiter(sk))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	socket = tp && could_send(sk, tp) ? find_socket(sk) : NULL;
	if (socket)
		note_full(socket, tp);
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
	set_owner(socket, &owner, SESSION_BY_HOLDING);
}

static __always_inline bool is_connected(const struct sock *sk)
{
	return sk->__sk_common.skc_state != TCP_LISTEN &&
	       sk->__sk_common.skc_state != TCP_CLOSE;
}

/* A UDP socket without a port sends and receives nothing. */
static __always_inline bool is_listed(const struct sock *sk)
{
	if (is_tcp(sk))
		return is_connected(sk);
	return config_owners && is_udp(sk) &&
	       BPF_CORE_READ((struct inet_sock *)sk, inet_sport);
}

static __always_inline bool is_shared(const struct sock *sk)
{
	return is_mptcp(sk) && is_connected(sk);
}

/* NULL: the file is no socket. */
static __always_inline struct sock *sock_of_file(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;

	return socket ? socket->sk : NULL;
}

SEC("iter/task_file")
int netobs_sess_own(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct sock *sk = sock_of_file(ctx);
	struct session_socket *socket;

	if (!task || !sk || (!is_listed(sk) && !is_shared(sk)))
		return 0;
	socket = add_socket(sk);
	if (!socket)
		return 0;
	note_holder(socket, task);
	if (is_mptcp(sk))
		share_owner(sk, socket);
	return 0;
}

/*
 * The list of open connections is written to the ring buffer, not to its readers: a read(2) of it
 * returns at most 32 KiB, and the next one walks the kernel's bucket from its beginning again, and
 * there are few, long buckets. Part of the ring buffer is left free for events that occur meanwhile.
 * NULL: it is full; this read ends, and the next one continues here.
 */
static __always_inline struct session_event *
list_entry(const struct session_list *list, __u32 size)
{
	if (bpf_ringbuf_query(&session_events, BPF_RB_AVAIL_DATA) >= list->room)
		return NULL;
	return bpf_ringbuf_reserve(&session_events, size, 0);
}

/*
 * Sockets of TCP below one of MPTCP are in no file, and older ones have no storage. They are read without a
 * lock: one may end meanwhile, and the kernel use its memory for another.
 * @return false: it is no subflow, or not connected
 */
static __always_inline bool
fill_subflow(struct session_event *event, const struct sock *above,
	     struct session_socket *socket,
	     const struct mptcp_subflow_context *context)
{
	const struct sock *sk = BPF_CORE_READ(context, tcp_sock);
	const struct inet_connection_sock *icsk = (const void *)sk;

	__builtin_memset(event, 0, SESSION_OWNED_SIZE);
	fill_ends(event, sk);
	/* If nobody has asked for a cookie yet, the address is as unique while the socket lives. */
	event->cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter) ?:
				(__u64)sk;
	event->owner = *valid_owner(socket);
	return event->state != TCP_CLOSE && event->state != TCP_LISTEN &&
	       BPF_CORE_READ(context, conn) == above &&
	       BPF_CORE_READ(icsk, icsk_ulp_data) == context;
}

/* These return 1 if the ring buffer is full. */
static __always_inline int list_subflows(const struct sock *sk,
					 struct session_socket *socket,
					 const struct session_list *list)
{
	const struct mptcp_sock *above = (const void *)sk;
	const struct list_head *end, *at;
	__u64 node;

	if (!bpf_core_field_exists(above->conn_list))
		return 0;
	node = bpf_core_field_offset(struct mptcp_subflow_context, node);
	end = &above->conn_list;
	at = BPF_CORE_READ(above, conn_list.next);
	for (int i = 0; i < SUBFLOWS_MAX && at && at != end; i++) {
		struct session_event *event =
			list_entry(list, SESSION_OWNED_SIZE);

		if (!event)
			return 1;
		if (fill_subflow(event, sk, socket, (const void *)at - node))
			bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
		else
			bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		at = BPF_CORE_READ(at, next);
	}
	return 0;
}

static __always_inline int list_owned(struct sock *sk,
				      struct session_socket *socket,
				      const struct session_list *list)
{
	struct session_event *event;

	if (is_shared(sk))
		return list_subflows(sk, socket, list);
	if (!is_listed(sk))
		return 0;
	event = list_entry(list, SESSION_OWNED_SIZE);
	if (!event)
		return 1;
	__builtin_memset(event, 0, SESSION_OWNED_SIZE);
	fill_owned(event, sk, socket);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int list_all(struct sock *sk, struct tcp_sock *tp,
				    struct session_socket *socket,
				    const struct session_list *list)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });
	struct session_event *event = list_entry(list, sizeof(*event));

	if (!event)
		return 1;
	if (!restore(event, sk, socket))
		fill_event(event, sk, tp, socket);
	event->end = socket->end;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	if (socket->end.time_ns && counts)
		__sync_fetch_and_add(&counts->ended, 1);
	socket->end.time_ns = 0;
	forget_kept(sk, socket);
	return 0;
}

static __always_inline const struct session_list *get_list(void)
{
	return bpf_map_lookup_elem(&session_list, &(__u32){ 0 });
}

/*
 * A connection that ended and waits for its process is in the last list only, and once, though the
 * kernel may visit a socket twice.
 */
static __always_inline int list_socket(struct sock *sk,
				       struct session_socket *socket,
				       const struct session_list *list)
{
	struct tcp_sock *tp;

	if (config_owners)
		return list_owned(sk, socket, list);
	if (list->is_last && !socket->end.time_ns && !is_connected(sk))
		take_unseen_end(sk, socket);
	if (socket->end.time_ns ? !list->is_last : !is_connected(sk))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	return tp ? list_all(sk, tp, socket, list) : 0;
}

SEC("iter/bpf_sk_storage_map")
int netobs_sess_ls(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	const struct session_list *list = get_list();
	struct session_socket *socket = ctx->value;
	struct sock *sk = ctx->sk;

	return list && socket && sk ? list_socket(sk, socket, list) : 0;
}

/*
 * Visits the sockets that processes have open, on kernels that refuse iterators over maps. Several
 * processes may have a socket.
 */
SEC("iter/task_file")
int netobs_sess_lsf(struct bpf_iter__task_file *ctx)
{
	const struct session_list *list = get_list();
	struct sock *sk = sock_of_file(ctx);
	struct session_socket *socket = !sk	      ? NULL :
					is_shared(sk) ? add_socket(sk) :
							find_socket(sk);

	if (!list || !sk || !socket || socket->listed == list->number)
		return 0;
	if (list_socket(sk, socket, list))
		return 1;
	socket->listed = list->number;
	return 0;
}

/* Mark the path of the control group as in use. */
static __always_inline int mark_socket(struct session_socket *socket)
{
	struct session_round *round =
		bpf_map_lookup_elem(&session_round, &(__u32){ 0 });
	struct session_cgroup_key key;
	struct session_cgroup *cgroup;

	if (!round || !socket)
		return 0;
	key = valid_owner(socket)->cgroup;
	cgroup = bpf_map_lookup_elem(&session_cgroups, &key);
	if (cgroup)
		cgroup->round = round->number;
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int netobs_sess_mk(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	return mark_socket(ctx->value);
}

SEC("iter/task_file")
int netobs_sess_mkf(struct bpf_iter__task_file *ctx)
{
	struct sock *sk = sock_of_file(ctx);

	return sk ? mark_socket(find_socket(sk)) : 0;
}
