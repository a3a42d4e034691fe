/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that receive datagrams. Tracepoints say that a socket has become readable, and that a
 * process has taken one datagram from it, but not which one: the queues of the socket tell that.
 */
#ifndef NETOBS_BPF_TRACE_READERS_H
#define NETOBS_BPF_TRACE_READERS_H

#include "segments.h"

enum {
	QUEUED_AT_ONCE = 4, /* the last datagrams of a queue that are looked at */
	FLAG_PEEK = 0x2,
	FLAG_ERROR_QUEUE = 0x2000,
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TRACE_READERS);
	__type(key, __u64); /* address of the socket */
	__type(value, struct reader);
} trace_readers SEC(".maps");

static __always_inline bool has_datagrams(const struct sock *sk)
{
	const __u16 family = sk->__sk_common.skc_family;

	return config_wants_datagrams &&
	       (family == AF_INET || family == AF_INET6) &&
	       (sk->sk_protocol == IP_PROTO_UDP || is_icmp(sk->sk_protocol));
}

/* A reader of UDP first moves all datagrams to a queue of its own. */
static __always_inline const struct sk_buff_head *
reader_queue(const struct sock *sk)
{
	if (BPF_CORE_READ(sk, sk_protocol) != IP_PROTO_UDP)
		return NULL;
	return (const void *)sk +
	       bpf_core_field_offset(struct udp_sock, reader_queue);
}

/* @return the first (or last) buffer of the queue; NULL: it is empty */
static __always_inline const struct sk_buff *
end_of(const struct sk_buff_head *queue, bool is_first)
{
	const struct sk_buff *end;

	end = is_first ? BPF_CORE_READ(queue, next) : BPF_CORE_READ(queue, prev);
	return (const void *)end == (const void *)queue ? NULL : end;
}

static __always_inline const struct sk_buff_head *
receive_queue(const struct sock *sk)
{
	return (const void *)sk +
	       bpf_core_field_offset(struct sock, sk_receive_queue);
}

static __always_inline void read_view(const struct sk_buff *skb,
				      struct view *ret_view)
{
	ret_view->head = BPF_CORE_READ(skb, head);
	ret_view->network = BPF_CORE_READ(skb, network_header);
	ret_view->tail = BPF_CORE_READ(skb, tail);
	ret_view->data = (const void *)BPF_CORE_READ(skb, data) - ret_view->head;
	ret_view->len = BPF_CORE_READ(skb, len);
}

/*
 * A datagram in the queue of a socket. Global: the verifier follows it once. @socket, @buffer: addresses.
 */
__noinline int netobs_trace_queued(__u64 socket, __u64 buffer, __u32 netns)
{
	struct point point = {
		.kind = TRACE_READY,
		.socket = (const void *)socket,
		.buffer = (const void *)buffer,
		.netns = netns,
	};
	struct segment_scratch *scratch;
	struct found found = { 0 };
	struct reader *reader;
	struct view view;
	__u32 index;

	read_view(point.buffer, &view);
	if (!has_known_ports(&view))
		return 0;
	scratch = claim_scratch(&index);
	if (!scratch)
		return 0;
	reader = &scratch->reader;
	if (read_segment(scratch, index, &view, &reader->ends, &point)) {
		fill_tuple(&scratch->tuple, &reader->ends);
		if (find_face(&scratch->tuple, &reader->ends, &found)) {
			if (reader->ends.proto == IP_PROTO_UDP)
				point.seq = netobs_trace_hash(index);
			emit(&found, &reader->ends, &point);
		}
	}
	if (found.id) {
		reader->id = found.id;
		reader->slot = found.slot;
		reader->direction = found.direction;
		bpf_map_update_elem(&trace_readers, &socket, reader, BPF_ANY);
	}
	release_scratch(scratch);
	return 0;
}

/*
 * The socket has become readable. Datagrams that were queued earlier may be reported again, as
 * another CPU may have queued several; user space uses the first report.
 */
static __always_inline void note_queued(__u64 socket, __u32 netns)
{
	const struct sock *sk = (const void *)socket;
	const struct sk_buff_head *queue = receive_queue(sk);
	const struct sk_buff *skb;

	if (!has_received() || !is_space_wanted(netns))
		return;
	skb = end_of(queue, false);
	if (!skb) {
		queue = reader_queue(sk);
		skb = queue ? end_of(queue, false) : NULL;
	}
	for (int i = 0; skb && i < QUEUED_AT_ONCE; i++) {
		netobs_trace_queued(socket, (__u64)skb, netns);
		skb = BPF_CORE_READ(skb, prev);
		if ((const void *)skb == (const void *)queue)
			break;
	}
}

/* A process has read one datagram: all before the new first one are gone. */
static __always_inline void note_taken_datagram(const struct sock *sk,
						int moved, int flags)
{
	const struct sk_buff_head *queue = reader_queue(sk);
	const __u64 key = (__u64)sk;
	const struct reader *reader;
	struct found found;
	struct point point = {
		.kind = TRACE_READ,
		.socket = sk,
		.netns = sk->__sk_common.skc_net.net->ns.inum,
		.has_process = true,
	};

	if (moved < 0 || flags & (FLAG_PEEK | FLAG_ERROR_QUEUE))
		return;
	reader = bpf_map_lookup_elem(&trace_readers, &key);
	if (!reader)
		return;
	found = (struct found){ .conn = get_slot(reader->slot),
				.id = reader->id,
				.slot = reader->slot,
				.direction = reader->direction };
	if (!found.conn || found.conn->id != found.id)
		return;
	point.buffer = queue ? end_of(queue, true) : NULL;
	if (!point.buffer)
		point.buffer = end_of(receive_queue(sk), true);
	emit(&found, &reader->ends, &point);
}

#endif
