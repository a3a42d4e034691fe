/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets of traced connections, and the bytes that processes and TCP move through them. */
#ifndef NETOBS_BPF_TRACE_SOCKETS_H
#define NETOBS_BPF_TRACE_SOCKETS_H

#include "segments.h"

static __always_inline bool is_tcp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP &&
	       (sk->__sk_common.skc_family == AF_INET ||
		sk->__sk_common.skc_family == AF_INET6);
}

/* NULL: @sk is no TCP socket, or no full one, such as one in TIME-WAIT. */
static __always_inline const struct tcp_sock *tcp_of(const struct sock *sk)
{
	return bpf_skc_to_tcp_sock((void *)sk);
}

/* A socket that is being closed has released its port, but keeps the one of its packets. */
static __always_inline __u16 port_of(const struct sock *sk)
{
	const __u16 port = sk->__sk_common.skc_num;

	if (port || !is_tcp(sk))
		return port;
	return bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport));
}

/* Read the tuple of packets that the socket sends. */
static __always_inline void read_ends(const struct sock *sk, struct ends *ret_ends)
{
	if (sk->__sk_common.skc_family == AF_INET) {
		addr_from_v4(&ret_ends->src, sk->__sk_common.skc_rcv_saddr);
		addr_from_v4(&ret_ends->dst, sk->__sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&ret_ends->src, sk,
				   __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&ret_ends->dst, sk, __sk_common.skc_v6_daddr);
	}
	ret_ends->proto = IP_PROTO_TCP;
	ret_ends->is_reply = false;
	ret_ends->src_port = port_of(sk);
	ret_ends->dst_port = bpf_ntohs(sk->__sk_common.skc_dport);
}

static __always_inline void turn(struct ends *ends)
{
	const struct ends from = *ends;

	ends->src = from.dst;
	ends->dst = from.src;
	ends->src_port = from.dst_port;
	ends->dst_port = from.src_port;
	ends->is_turned = !from.is_turned;
}

static __always_inline bool has_one_direction(const struct found *found)
{
	return found->conn->ends & TRACE_ENDS_SELF;
}

/* Turn both from what a socket sends to what it receives. */
static __always_inline void turn_found(struct ends *ends, struct found *found)
{
	turn(ends);
	found->direction ^= !has_one_direction(found);
}

static __always_inline bool has_ports_of(const struct sock *sk)
{
	return has_ports(port_of(sk), bpf_ntohs(sk->__sk_common.skc_dport));
}

/* Most sockets are of no traced connection. @skb: a packet that it receives */
static __always_inline bool may_be_found(const struct sock *sk,
					 const struct sk_buff *skb)
{
	return has_ports_of(sk) || known_nfct(skb);
}

/* @ret_found->direction: of packets that the socket receives */
static __always_inline bool find_socket_by_entry(__u64 nfct,
						 const struct trace_tuple *tuple,
						 const struct ends *ends,
						 struct found *ret_found)
{
	struct segment_scratch *scratch;
	bool is_found;
	__u32 index;

	scratch = nfct ? claim_scratch(&index) : NULL;
	if (!scratch)
		return false;
	is_found = find_by_entry(nfct, tuple, ends, &scratch->room, ret_found);
	release_scratch(scratch);
	return is_found;
}

/* @ret_found->direction: of packets that the socket sends. @skb: a packet that it receives, or NULL */
static __always_inline bool find_socket(const struct sock *sk,
					const struct sk_buff *skb,
					struct ends *ret_ends,
					struct found *ret_found)
{
	const bool has = has_ports_of(sk);
	const __u64 nfct = !has && skb ? known_nfct(skb) : 0;
	struct trace_tuple tuple;

	if ((!has && !nfct) || !is_tcp(sk) ||
	    (config_has_spaces && !is_space_wanted(space_of(sk))))
		return false;
	read_ends(sk, ret_ends);
	fill_tuple(&tuple, ret_ends);
	if (find_face(&tuple, ret_ends, ret_found))
		return is_socket_of(ret_found, sk);
	turn(ret_ends);
	if (!skb || !find_socket_by_entry(nfct ?: known_nfct(skb), &tuple,
					  ret_ends, ret_found))
		return false;
	turn(ret_ends);
	ret_found->direction ^= 1;
	return is_socket_of(ret_found, sk);
}

static __always_inline struct point point_of(const struct sock *sk, __u8 kind,
					     __u32 seq, __u32 length)
{
	return (struct point){
		.kind = kind,
		.seq = seq,
		.length = length,
		.netns = sk->__sk_common.skc_net.net->ns.inum,
	};
}

static __always_inline struct trace_stream *stream_of(const struct found *found)
{
	__u32 direction = found->direction;

	/* Without it, compilers leave out the mask; Linux 6.8 does not know what an exclusive or makes. */
	barrier_var(direction);
	return &found->conn->streams[direction & 1];
}

/* A process moves bytes of its own socket. */
static __always_inline void emit_moved(const struct found *found,
				       const struct ends *ends,
				       const struct sock *sk, __u8 kind,
				       __u32 from, __u32 to)
{
	struct point point = point_of(sk, kind, from, to - from);

	if (to == from || (__s32)(to - from) < 0)
		return;
	point.has_process = kind != TRACE_READY && kind != TRACE_ACKED;
	emit(found, ends, &point);
}

static __always_inline bool has_finished(const struct sock *sk)
{
	return sk->__sk_common.skc_flags >> SOCK_DONE & 1;
}

/* A process has written @moved bytes to the socket. */
static __always_inline void note_written(const struct sock *sk, __u32 moved)
{
	const struct tcp_sock *tp;
	struct trace_stream *stream;
	__u32 written;
	struct found found;
	struct ends ends;

	if (!find_socket(sk, NULL, &ends, &found))
		return;
	tp = tcp_of(sk);
	if (!tp)
		return;
	written = tp->write_seq;
	stream = stream_of(&found);
	emit_moved(&found, &ends, sk, TRACE_SENT,
		   stream->known & TRACE_KNOWS_WRITTEN ? stream->written :
							 written - moved,
		   written);
	stream->written = written;
	stream->known |= TRACE_KNOWS_WRITTEN;
}

/* The sequence number after the last byte, without that of FIN. */
static __always_inline __u32 last_received(const struct sock *sk,
					   const struct tcp_sock *tp)
{
	return tp->rcv_nxt - has_finished(sk);
}

static __always_inline void note_read(const struct sock *sk)
{
	const struct tcp_sock *tp;
	struct trace_stream *stream;
	struct found found;
	struct ends ends;
	__u32 read, last;

	if (!find_socket(sk, NULL, &ends, &found))
		return;
	tp = tcp_of(sk);
	if (!tp)
		return;
	read = tp->copied_seq;
	last = last_received(sk, tp);
	if ((__s32)(read - last) > 0)
		read = last;
	turn_found(&ends, &found);
	stream = stream_of(&found);
	if (stream->known & TRACE_KNOWS_READ)
		emit_moved(&found, &ends, sk, TRACE_READ, stream->read, read);
	stream->read = read;
	stream->known |= TRACE_KNOWS_READ;
}

/* Not inlined: note_queued() calls a deep chain from a program that has both. */
static __noinline int note_ready(const struct sock *sk)
{
	const struct tcp_sock *tp;
	struct trace_stream *stream;
	struct found found;
	struct ends ends;
	__u32 ready;

	if (!find_socket(sk, NULL, &ends, &found))
		return 0;
	tp = tcp_of(sk);
	if (!tp)
		return 0;
	ready = last_received(sk, tp);
	turn_found(&ends, &found);
	stream = stream_of(&found);
	if (stream->known & TRACE_KNOWS_READY)
		emit_moved(&found, &ends, sk, TRACE_READY, stream->ready, ready);
	stream->ready = ready;
	stream->known |= TRACE_KNOWS_READY;
	return 0;
}

/* The sender has an acknowledgment of all before @acked, and had one of all before @until. */
static __always_inline void note_acked(const struct found *found,
				       const struct ends *ends,
				       const struct sock *sk, __u32 until,
				       __u32 acked)
{
	struct trace_stream *stream = stream_of(found);

	if (!(stream->known & TRACE_KNOWS_ACKED))
		stream->acked = until;
	stream->known |= TRACE_KNOWS_ACKED;
	emit_moved(found, ends, sk, TRACE_ACKED, stream->acked, acked);
	if ((__s32)(acked - stream->acked) > 0)
		stream->acked = acked;
}

/* The receiver has not processed the segment yet, so its state tells where the next bytes begin. */
static __always_inline void note_receiver(const struct found *found,
					  const struct sock *sk,
					  const struct tcp_sock *tp)
{
	struct trace_stream *stream = stream_of(found);

	if (!(stream->known & TRACE_KNOWS_READY))
		stream->ready = last_received(sk, tp);
	if (!(stream->known & TRACE_KNOWS_READ))
		stream->read = tp->copied_seq;
	stream->known |= TRACE_KNOWS_READY | TRACE_KNOWS_READ;
}

static __always_inline __u32 data_length(const struct tcp_skb_cb *cb)
{
	const __u32 numbers = cb->end_seq - cb->seq;
	const __u8 flags = cb->tcp_flags;

	return numbers - !!(flags & TCP_SYN) - (flags & TCP_FIN);
}

static __always_inline const struct tcp_skb_cb *cb_of(const struct sk_buff *skb)
{
	return (const void *)skb + bpf_core_field_offset(struct sk_buff, cb);
}

static __always_inline void read_cb(const struct sk_buff *skb,
				    struct tcp_skb_cb *ret_cb)
{
	const struct tcp_skb_cb *cb = cb_of(skb);

	bpf_core_read(&ret_cb->seq, sizeof(ret_cb->seq), &cb->seq);
	bpf_core_read(&ret_cb->end_seq, sizeof(ret_cb->end_seq), &cb->end_seq);
	ret_cb->ack_seq = BPF_CORE_READ(cb, ack_seq);
	if (bpf_core_field_exists(cb->tcp_flags))
		ret_cb->tcp_flags = BPF_CORE_READ(cb, tcp_flags);
}

#endif
