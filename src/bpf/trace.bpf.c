// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tracer: where the bytes of chosen connections are, by tracepoints of the kernel.
 *
 * A connection is found by the tuple of a packet or a socket. It may have several tuples: NAT adds
 * some, which are read from the packet's conntrack entry. Bytes of TCP are identified by sequence
 * numbers, which segmentation, coalescing, copies and tunnels leave alone; user space identifies
 * datagrams by their buffers and by numbers in their headers.
 *
 * Each SYN begins a connection. User space gets its events before it chooses, so that it has the
 * first bytes of chosen connections.
 */
#include "vmlinux.h"

#include "bpf/nullable.h"
#include "bpf/trace/hooks.h"
#include "bpf/trace/readers.h"
#include "bpf/trace/segments.h"
#include "bpf/trace/sockets.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- Programs within others -------------------------------------------------------------- */

/*
 * The kernel does not let a program of a tracepoint interrupt itself. But an interrupt may receive
 * packets while one runs for a process, which reads its backlog. So some tracepoints have a second
 * program, which runs after the first one and takes the packets that it missed. The kernel counts all
 * runs that first programs miss, and trace_counts.nested those of them that second programs see.
 */
enum { RUN_SEGMENT, RUN_READY, RUN_DROP, RUNS };

enum { TAKEN_MAX = 4 };

/* Addresses that first programs have taken, and that second programs have not seen yet. */
struct trace_run {
	__u64 taken[TAKEN_MAX];
	__u64 next;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RUNS);
	__type(key, __u32);
	__type(value, struct trace_run);
} trace_runs SEC(".maps");

/*
 * Programs of interrupts add and remove their own addresses meanwhile, and no others. A second
 * program that misses a run itself leaves an address behind, which is replaced when all are in use.
 */
static __always_inline void note_taken(__u32 which, const void *what)
{
	struct trace_run *run = bpf_map_lookup_elem(&trace_runs, &which);

	if (!run)
		return;
	for (int i = 0; i < TAKEN_MAX; i++)
		if (!run->taken[i]) {
			run->taken[i] = (__u64)what;
			return;
		}
	run->taken[run->next++ % TAKEN_MAX] = (__u64)what;
}

/* @return whether the first program has missed @what; called by second programs */
static __always_inline bool is_missed(__u32 which, const void *what)
{
	struct trace_counts *counts = get_counts();
	struct trace_run *run = bpf_map_lookup_elem(&trace_runs, &which);

	if (!run || !counts)
		return false;
	for (int i = 0; i < TAKEN_MAX; i++)
		if (run->taken[i] == (__u64)what) {
			run->taken[i] = 0;
			return false;
		}
	__sync_fetch_and_add(&counts->nested, 1);
	return true;
}

/* ---- Programs --------------------------------------------------------------------------- */

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(netobs_tr_send, const struct sock *sk, const struct msghdr *msg)
{
	const struct tcp_sock *tp;
	struct point point;
	struct found found;
	struct ends ends;

	if (!find_socket(sk, NULL, &ends, &found))
		return 0;
	tp = tcp_of(sk);
	if (!tp)
		return 0;
	point = point_of(sk, TRACE_SEND, tp->write_seq, msg->msg_iter.count);
	point.has_process = true;
	point.limit = limit_of(sk, tp);
	emit(&found, &ends, &point);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(netobs_tr_sent, struct sock *sk, int moved)
{
	if (moved > 0)
		note_written(sk, moved);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(netobs_tr_recv, struct sock *sk, int moved, int flags)
{
	if (has_datagrams(sk))
		note_taken_datagram(sk, moved, flags);
	else if (moved > 0)
		note_read(sk);
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(netobs_tr_read, struct sock *sk)
{
	note_read(sk);
	return 0;
}

/* Most sockets are of no traced connection. */
static __always_inline bool may_be_readable(const struct sock *sk)
{
	return has_datagrams(sk) ? has_received() : has_ports_of(sk);
}

/* @ctx: the arguments, read as numbers: the verifier lets no argument go to a global function */
static __always_inline void note_readable(const void *ctx, const struct sock *sk)
{
	__u64 socket;

	if (!has_datagrams(sk))
		note_ready(sk);
	else if (!bpf_probe_read_kernel(&socket, sizeof(socket), ctx))
		note_queued(socket, sk->__sk_common.skc_net.net->ns.inum);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(netobs_tr_ready, const struct sock *sk)
{
	note_taken(RUN_READY, sk);
	if (may_be_readable(sk))
		note_readable(ctx, sk);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(netobs_tr_ready2, const struct sock *sk)
{
	if (is_missed(RUN_READY, sk) && may_be_readable(sk))
		note_readable(ctx, sk);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(netobs_tr_again, const struct sock *sk, const struct sk_buff *skb)
{
	struct tcp_skb_cb cb = { 0 };
	struct point point;
	struct found found;
	struct ends ends;

	if (!find_socket(sk, NULL, &ends, &found))
		return 0;
	read_cb(skb, &cb);
	point = point_of(sk, TRACE_RETRANSMIT, cb.seq, data_length(&cb));
	point.buffer = skb;
	point.tcp_flags = cb.tcp_flags;
	emit(&found, &ends, &point);
	return 0;
}

static __always_inline void take_probe(const struct sock *sk,
				       const struct sk_buff *skb)
{
	struct tcp_skb_cb cb = { 0 };
	const struct tcp_sock *tp;
	struct point point;
	struct found found;
	struct ends ends;

	if (!find_socket(sk, skb, &ends, &found))
		return;
	tp = tcp_of(sk);
	if (!tp)
		return;
	read_cb(skb, &cb);
	if ((__s32)(cb.ack_seq - tp->snd_una) > 0 &&
	    (__s32)(cb.ack_seq - tp->snd_nxt) <= 0)
		note_acked(&found, &ends, sk, tp->snd_una, cb.ack_seq);
	turn_found(&ends, &found);
	note_receiver(&found, sk, tp);
	point = point_of(sk, TRACE_SEGMENT, cb.seq, data_length(&cb));
	point.buffer = skb;
	point.ack = cb.ack_seq;
	point.tcp_flags = cb.tcp_flags;
	point.limit = limit_of(sk, tp);
	if (point.limit || is_wanted(&point, IP_PROTO_TCP))
		emit(&found, &ends, &point);
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(netobs_tr_segm, struct sock *sk, const struct sk_buff *skb)
{
	note_taken(RUN_SEGMENT, skb);
	if (may_be_found(sk, skb))
		take_probe(sk, skb);
	return 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(netobs_tr_segm2, struct sock *sk, const struct sk_buff *skb)
{
	if (is_missed(RUN_SEGMENT, skb) && may_be_found(sk, skb))
		take_probe(sk, skb);
	return 0;
}

/* FIN is acknowledged, and with it all data. */
static __always_inline bool is_all_acked(int from, int to)
{
	return to == TCP_FIN_WAIT2 || (from == TCP_LAST_ACK && to == TCP_CLOSE) ||
	       (from == TCP_CLOSING && to == TCP_TIME_WAIT);
}

/* The end of a handshake, which tcp_probe does not report: the socket can be accepted. */
static __always_inline void note_established(struct found *found,
					     struct ends *ends,
					     const struct sock *sk,
					     const struct tcp_sock *tp)
{
	const struct point point = point_of(sk, TRACE_SEGMENT, tp->rcv_nxt, 0);

	turn_found(ends, found);
	emit(found, ends, &point);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(netobs_tr_state, const struct sock *sk, const int from, const int to)
{
	const struct tcp_sock *tp;
	struct point point;
	struct found found;
	struct ends ends;

	if (to == TCP_LISTEN || !find_socket(sk, NULL, &ends, &found))
		return 0;
	tp = tcp_of(sk);
	if (!tp)
		return 0;
	if (is_all_acked(from, to) && tp->snd_una == tp->write_seq)
		note_acked(&found, &ends, sk, tp->snd_una - 1, tp->snd_una - 1);
	if (config_wants_limits && from == TCP_SYN_RECV && to == TCP_ESTABLISHED)
		note_established(&found, &ends, sk, tp);
	if (to != TCP_CLOSE)
		return 0;
	found.conn->ends |= TRACE_ENDS_CLOSED;
	point = point_of(sk, TRACE_CLOSES, 0, 0);
	emit(&found, &ends, &point);
	return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(netobs_tr_queue, struct sk_buff *skb)
{
	return take_leaving(skb, skb->dev, TRACE_QUEUE);
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(netobs_tr_enq, struct Qdisc *qdisc, const struct netdev_queue *txq,
	     struct sk_buff *skb)
{
	const __u64 id = config_wants_queues ? queue_id(qdisc, skb->dev) : 0;

	return take_queued(skb, id, TRACE_ENQUEUE);
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(netobs_tr_deq, struct Qdisc *qdisc, const struct netdev_queue *txq,
	     int packets, const struct sk_buff *skb)
{
	__u64 id = 0;

	skb = nullable(skb);
	if (!skb)
		return 0;
	if (config_wants_queues) {
		id = queue_id(qdisc, skb->dev);
		note_leaving(id, skb);
	}
	return take_queued(skb, id, TRACE_DEQUEUE);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(netobs_tr_xmit, const struct sk_buff *skb,
	     const struct net_device *dev)
{
	return take_leaving(skb, dev, TRACE_TRANSMIT);
}

/* The driver takes the buffer unless it is busy. */
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(netobs_tr_busy, struct sk_buff *skb, int result,
	     struct net_device *dev)
{
	return result == NETDEV_TX_BUSY ? take_leaving(skb, dev, TRACE_BUSY) : 0;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(netobs_tr_rx, struct sk_buff *skb)
{
	return take_coming(skb, TRACE_ARRIVE);
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(netobs_tr_gro, const struct sk_buff *skb)
{
	return take_coming(skb, TRACE_ARRIVE);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netobs_tr_recvd, struct sk_buff *skb)
{
	if (config_wants_queues)
		note_arriving(skb);
	return take_coming(skb, TRACE_RECEIVE);
}

enum skb_drop_reason___tap { SKB_DROP_REASON_PACKET_SOCK_ERROR___tap = 1 };

/* A copy for a packet socket, such as tcpdump's, is dropped: the packet goes on. */
static __always_inline bool is_copy(__u32 reason)
{
	return bpf_core_enum_value_exists(enum skb_drop_reason___tap,
					  SKB_DROP_REASON_PACKET_SOCK_ERROR___tap) &&
	       reason == bpf_core_enum_value(
				 enum skb_drop_reason___tap,
				 SKB_DROP_REASON_PACKET_SOCK_ERROR___tap);
}

enum skb_drop_reason___any { SKB_DROP_REASON_NOT_SPECIFIED___any = 1 };

/*
 * Buffers that are linked to another one are freed after it by kfree_skb, also where that one is only
 * consumed: consume_skb() of a large datagram that was copied into fragments. They have no device, no socket
 * and no headers of their own: memory in front of their data may have those of an earlier packet.
 */
static __always_inline bool is_linked(const struct sk_buff *skb, __u32 reason)
{
	return bpf_core_enum_value_exists(enum skb_drop_reason___any,
					  SKB_DROP_REASON_NOT_SPECIFIED___any) &&
	       reason == bpf_core_enum_value(enum skb_drop_reason___any,
					     SKB_DROP_REASON_NOT_SPECIFIED___any) &&
	       !skb->sk && !device_of(skb);
}

/* Most packets are of no traced connection. */
static __always_inline bool may_be_dropped(const struct sk_buff *skb, __u32 reason)
{
	return may_be_taken(skb, skb->network_header, true) &&
	       !is_copy(reason) && !is_linked(skb, reason);
}

/* Names of places in the kernel's code, as its %pS writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TRACE_FUNCTIONS);
	__type(key, __u64);
	__type(value, char[TRACE_FUNCTION_LEN]);
} trace_functions SEC(".maps");

static const char function_format[] = "%pS";
static const char no_name[TRACE_FUNCTION_LEN];

/* Global: the verifier follows it once. */
__noinline int netobs_trace_name(__u64 place)
{
	char *name;

	/* COMPAT(<5.13): user space reads /proc/kallsyms. */
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_snprintf) ||
	    bpf_map_lookup_elem(&trace_functions, &place))
		return 0;
	bpf_map_update_elem(&trace_functions, &place, no_name, BPF_NOEXIST);
	name = bpf_map_lookup_elem(&trace_functions, &place);
	if (name)
		bpf_snprintf(name, TRACE_FUNCTION_LEN, function_format, &place,
			     sizeof(place));
	return 0;
}

static __always_inline void take_drop(const struct sk_buff *skb,
				      const void *place, __u32 reason)
{
	const struct sock *sk = skb->sk;
	struct point point = { .kind = TRACE_DROP,
			       .dev = device_of(skb),
			       .netns = sk ? space_of(sk) : 0,
			       .socket = place,
			       .reason = reason };

	netobs_trace_name((__u64)place);
	take_segment(skb, skb->network_header, true, &point);
}

static __always_inline int take_dropped(const struct sk_buff *skb,
					const void *place, __u32 reason)
{
	note_taken(RUN_DROP, skb);
	if (may_be_dropped(skb, reason))
		take_drop(skb, place, reason);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_tr_why, struct sk_buff *skb, void *location, __u32 reason)
{
	return take_dropped(skb, location, reason);
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_tr_why2, struct sk_buff *skb, void *location, __u32 reason)
{
	if (is_missed(RUN_DROP, skb) && may_be_dropped(skb, reason))
		take_drop(skb, location, reason);
	return 0;
}

/* COMPAT(<5.17): there are no reasons. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_tr_drop, struct sk_buff *skb, void *location)
{
	return take_dropped(skb, location, 0);
}

/* Netfilter's programs are attached by namespace, and only if they are wanted. */

SEC("netfilter")
int netobs_tr_nf(const struct hook_ctx *ctx)
{
	return take_hook(ctx, false);
}

SEC("netfilter")
int netobs_tr_nfend(const struct hook_ctx *ctx)
{
	return take_hook(ctx, true);
}

/* ---- Owners of sockets -------------------------------------------------------------------- */

/* Write a struct queue_owner for each socket of IP that a process has open, in any namespace. */
SEC("iter/task_file")
int netobs_tr_owner(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	const struct task_struct *task = ctx->task;
	const struct sock *sk = socket ? socket->sk : NULL;
	struct queue_owner owner = { 0 };
	struct ends ends;

	if (!sk || !task ||
	    (sk->__sk_common.skc_family != AF_INET &&
	     sk->__sk_common.skc_family != AF_INET6))
		return 0;
	read_ends(sk, &ends);
	owner.socket = (__u64)sk;
	owner.flow.src = ends.src;
	owner.flow.dst = ends.dst;
	owner.flow.src_port = ends.src_port;
	owner.flow.dst_port = ends.dst_port;
	owner.flow.proto = BPF_CORE_READ(sk, sk_protocol);
	owner.netns = sk->__sk_common.skc_net.net->ns.inum;
	owner.pid = task->tgid;
	BPF_CORE_READ_INTO(&owner.command, task, group_leader, comm);
	bpf_seq_write(ctx->meta->seq, &owner, sizeof(owner));
	return 0;
}

/* ---- Existing connections --------------------------------------------------------------- */

/* @return the TCP socket of an open file of a process, in any namespace; NULL: it is none */
static __always_inline const struct tcp_sock *
socket_of(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = socket ? socket->sk : NULL;
	const struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	if (!tp || sk->__sk_common.skc_state == TCP_LISTEN ||
	    sk->__sk_common.skc_state == TCP_CLOSE)
		return NULL;
	return tp;
}

/* First pass: user space gets the tuples of sockets. The result 1 repeats a socket. */
SEC("iter/task_file")
int netobs_tr_list(struct bpf_iter__task_file *ctx)
{
	const struct tcp_sock *tp = socket_of(ctx);
	const struct task_struct *task = ctx->task;
	struct trace_report *report;
	struct ends ends;

	if (!tp || !task ||
	    (config_has_spaces && !is_space_wanted(space_of((const void *)tp))))
		return 0;
	report = bpf_ringbuf_reserve(&trace_events, sizeof(*report), 0);
	if (!report)
		return 1;
	__builtin_memset(report, 0, sizeof(*report));
	read_ends((const void *)tp, &ends);
	report->point = TRACE_EXISTS;
	/* An accepted socket has the backlog of its listener; one that connects never listens. */
	report->direction = tp->inet_conn.icsk_inet.sk.sk_max_ack_backlog > 0;
	report->proto = ends.proto;
	report->src = ends.src;
	report->dst = ends.dst;
	report->src_port = ends.src_port;
	report->dst_port = ends.dst_port;
	report->pid_tgid = (__u64)task->tgid << 32 | task->pid;
	BPF_CORE_READ_INTO(&report->command, task, group_leader, comm);
	BPF_CORE_READ_INTO(&report->thread, task, comm);
	bpf_ringbuf_submit(report, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Second pass, after user space has chosen: set the state of the streams. */
SEC("iter/task_file")
int netobs_tr_init(struct bpf_iter__task_file *ctx)
{
	const struct tcp_sock *tp = socket_of(ctx);
	const struct sock *sk = (const void *)tp;
	struct trace_stream *stream;
	struct found found;
	struct ends ends;

	if (!tp || !find_socket(sk, NULL, &ends, &found))
		return 0;
	stream = stream_of(&found);
	stream->written = tp->write_seq;
	/* A SYN takes a sequence number, too. */
	stream->acked = sk->__sk_common.skc_state == TCP_SYN_SENT ?
				tp->write_seq :
				tp->snd_una;
	stream->known |= TRACE_KNOWS_WRITTEN | TRACE_KNOWS_ACKED;
	found.direction ^= !has_one_direction(&found);
	stream = stream_of(&found);
	stream->ready = last_received(sk, tp);
	stream->read = tp->copied_seq;
	stream->known |= TRACE_KNOWS_READY | TRACE_KNOWS_READ;
	return 0;
}
