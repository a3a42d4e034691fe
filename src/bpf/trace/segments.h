/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds segments and datagrams of traced connections among the packets at a point. */
#ifndef NETOBS_BPF_TRACE_SEGMENTS_H
#define NETOBS_BPF_TRACE_SEGMENTS_H

#include "bpf/parse/parse.h"
#include "datagrams.h"
#include "events.h"
#include "limits.h"
#include "nat.h"
#include "plain.h"
#include "queues.h"

enum {
	HEADERS_MAX = 256,	      /* bytes of a packet that are parsed */
	NO_HEADER = 0xffff,	      /* an offset that is not set */
	NETNS_INODE_MIN = 0xefffff00, /* no inode of a namespace is lower */
};

const volatile bool config_wants_acks;	  /* segments without data */
const volatile bool config_wants_opening; /* connections that begin */
const volatile bool config_wants_datagrams; /* as config_wants_opening, for UDP and ICMP */
const volatile struct tunnel_ports config_tunnels = {
	.vxlan = { 4789, 8472 },
	.geneve = 6081,
	.gtpu = 2152,
};
const volatile struct hash_secret config_secret; /* of hashes that are not used */

/* The connection whose datagram a socket got last. */
struct reader {
	__u64 id;
	__u32 slot;
	__u32 direction;
	struct ends ends;
};

/* Memory that would not fit on the stack. */
struct segment_scratch {
	__u32 is_busy;
	__u16 len;   /* of headers */
	__u16 index; /* of this scratch */
	struct packet pkt, outer;
	struct trace_tuple tuple;
	struct ends ends;
	struct entry_room room;
	struct reader reader;
	__u64 data[DATA_HASHED / sizeof(__u64)];
	/* The parser keeps within the bytes that were read; the verifier knows only this limit. */
	__u8 headers[2 * (CURSOR_MASK + 1)];
};

/* Time when the last datagram of a traced connection was received. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} trace_received SEC(".maps");

/* Several per CPU, as interrupts, and on preemptible kernels tasks, run programs within programs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TRACE_SCRATCHES);
	__type(key, __u32);
	__type(value, struct segment_scratch);
} segment_scratch SEC(".maps");

static __always_inline struct segment_scratch *claim_scratch(__u32 *ret_index)
{
	struct trace_counts *counts = get_counts();

	for (__u32 i = 0; i < TRACE_SCRATCHES; i++) {
		const __u32 key = i;
		struct segment_scratch *scratch =
			bpf_map_lookup_elem(&segment_scratch, &key);

		if (!scratch ||
		    __sync_val_compare_and_swap(&scratch->is_busy, 0, 1))
			continue;
		scratch->index = i;
		*ret_index = i;
		return scratch;
	}
	if (counts)
		__sync_fetch_and_add(&counts->missed, 1);
	return NULL;
}

static __always_inline void release_scratch(struct segment_scratch *scratch)
{
	(void)__sync_lock_test_and_set(&scratch->is_busy, 0);
}

/* The knobs are read when they are needed, and not before loading. */
static __always_inline const struct tunnel_ports *tunnels(void)
{
	const struct tunnel_ports *ports = (const void *)&config_tunnels;

	asm volatile("" : "+r"(ports));
	return ports;
}

/*
 * Parse the headers in scratch @index. Global: the verifier follows it once, and not for each program.
 * @return 0: scratch->pkt is a segment of TCP, or may be a datagram; else it is neither
 */
__noinline int netobs_trace_parse(__u32 index, __u32 len)
{
	struct segment_scratch *scratch =
		bpf_map_lookup_elem(&segment_scratch, &index);
	struct cursor c;
	__u8 proto;
	bool is_cut;

	if (!scratch || len > HEADERS_MAX)
		return -1;
	c = (struct cursor){ .start = scratch->headers,
			     .pos = scratch->headers,
			     .end = scratch->headers + len };
	packet_init(&scratch->pkt);
	if (parse_packet(&c, &scratch->pkt, &scratch->outer, LINK_NONE,
			 tunnels(), &config_secret, &is_cut))
		return -1;
	proto = scratch->pkt.key.proto;
	if (proto == IP_PROTO_UDP || is_icmp(proto))
		return 0;
	/* A later IPv6 fragment names the extension header that begins the fragmented part. */
	if (scratch->pkt.fragment == FRAGMENT_LATER && is_extension(proto))
		return 0;
	return proto == IP_PROTO_TCP && scratch->pkt.fragment == FRAGMENT_NONE &&
			       scratch->pkt.tcp_header ?
		       0 :
		       -1;
}

/*
 * Global, as netobs_trace_parse(). The fragmentable part of an IPv6 packet may begin with extension headers.
 *
 * @param start  where the datagram begins in the headers of a first fragment, which scratch @index has
 * @return bytes of extension headers between the fragment header and the datagram
 */
__noinline int netobs_trace_ext(__u32 index, __u32 start)
{
	const struct segment_scratch *scratch =
		bpf_map_lookup_elem(&segment_scratch, &index);

	return scratch ? count_extensions(scratch->headers, start) : 0;
}

/*
 * Global, as netobs_trace_parse(). Datagrams of IPv6, and those of IPv4 that are not to be fragmented, have no
 * identification of IP.
 *
 * @return what identifies the datagram of UDP in scratch @index then, see hash_data(); 0: it is not known, or IP does
 */
__noinline __u32 netobs_trace_hash(__u32 index)
{
	struct segment_scratch *scratch =
		bpf_map_lookup_elem(&segment_scratch, &index);

	if (!scratch || scratch->pkt.fragment_id ||
	    scratch->pkt.fragment != FRAGMENT_NONE)
		return 0;
	return hash_data(scratch->headers, scratch->pkt.header_end,
			 scratch->len, scratch->data);
}

static __always_inline bool is_ip(const struct sk_buff *skb)
{
	const __u16 protocol = bpf_ntohs(skb->protocol);

	return protocol == ETHERTYPE_IPV4 || protocol == ETHERTYPE_IPV6;
}

/* A connected TCP socket, whose tuple programs know. Buffers of TAP devices have a socket of their own. */
static __always_inline bool is_open(const struct sock *sk)
{
	if (sk->sk_protocol != IP_PROTO_TCP ||
	    (sk->__sk_common.skc_family != AF_INET &&
	     sk->__sk_common.skc_family != AF_INET6))
		return false;
	switch (sk->__sk_common.skc_state) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
	case TCP_NEW_SYN_RECV:
	case TCP_TIME_WAIT:
	case TCP_LISTEN:
	case TCP_CLOSE: /* also the kernel's own socket, which sends RST */
		return false;
	default:
		return true;
	}
}

/* The parts of a buffer that are read. Offsets count from @head; data may begin after the IP header. */
struct view {
	const void *head;
	__u32 network, data, tail, len;
};

/*
 * @return whether a segment's ports may be traced. @is_first: it may begin a connection, or have
 * another tuple.
 */
static __always_inline bool may_be_segment(const struct sk_buff *skb,
					   const struct plain *plain,
					   bool is_first)
{
	if (has_ports(plain->src_port, plain->dst_port))
		return true;
	return is_first &&
	       ((config_wants_opening &&
		 (plain->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) ||
		known_nfct(skb));
}

static __always_inline bool has_datagram_ports(const struct plain *plain)
{
	return is_icmp(plain->proto) ?
		       has_ports(plain->id, plain->id) :
		       has_ports(plain->src_port, plain->dst_port);
}

/* Most packets belong to no traced connection, as their socket or their ports show. */
static __always_inline bool may_be_traced(const struct sk_buff *skb,
					  __u32 network, bool is_first)
{
	const struct sock *sk = skb->sk;
	struct plain plain;

	/* This holds with NAT and in tunnels, too: the socket's tuple is one of the connection. */
	if (sk && is_open(sk))
		return has_ports(sk->__sk_common.skc_num,
				 bpf_ntohs(sk->__sk_common.skc_dport));
	if (!read_plain(skb->head + network, &plain))
		return false;
	if (plain.is_plain && plain.proto == IP_PROTO_TCP)
		return may_be_segment(skb, &plain, is_first);
	if (!plain.is_plain || !trace_is_datagram(plain.proto))
		return true;
	if (plain.proto == IP_PROTO_UDP &&
	    is_tunnel_port(tunnels(), plain.dst_port))
		return true;
	return config_wants_datagrams && (is_first || has_datagram_ports(&plain));
}

/* @return whether a queued datagram, which is in no tunnel, has ports of a traced connection */
static __always_inline bool has_known_ports(const struct view *view)
{
	struct plain plain;

	if (!read_plain(view->head + view->network, &plain))
		return false;
	if (!plain.is_plain || !trace_is_datagram(plain.proto))
		return plain.proto != IP_PROTO_TCP;
	return has_datagram_ports(&plain);
}

static __always_inline bool read_tcp(const __u8 *headers,
				     const struct packet *pkt, __u32 total,
				     struct point *point)
{
	const __u32 at = pkt->header_end - pkt->tcp_header;
	struct tcphdr tcp;

	if (at > CURSOR_LIMIT ||
	    bpf_probe_read_kernel(&tcp, sizeof(tcp), headers + at))
		return false;
	point->length = total > pkt->header_end ? total - pkt->header_end : 0;
	point->seq = bpf_ntohl(tcp.seq);
	point->ack = bpf_ntohl(tcp.ack_seq);
	point->tcp_flags = pkt->attrs.marks & 0xff;
	return true;
}

/* @return false: the packet is no TCP segment and no traced datagram */
static __always_inline bool read_segment(struct segment_scratch *scratch,
					 __u32 index, const struct view *view,
					 struct ends *ret_ends,
					 struct point *point)
{
	const struct flow_key *key = &scratch->pkt.key;
	__u32 len = view->tail - view->network, total;

	if (view->tail <= view->network)
		return false;
	len = LIMITED(len, HEADERS_MAX);
	scratch->len = len;
	if (bpf_probe_read_kernel(scratch->headers, len,
				  view->head + view->network) ||
	    netobs_trace_parse(index, len))
		return false;
	total = view->len + view->data - view->network;
	if (scratch->pkt.ip_len && scratch->pkt.ip_len < total)
		total = scratch->pkt.ip_len;
	ret_ends->src = key->src;
	ret_ends->dst = key->dst;
	ret_ends->src_port = key->src_port;
	ret_ends->dst_port = key->dst_port;
	ret_ends->proto = key->proto;
	ret_ends->is_reply = false;
	if (key->proto == IP_PROTO_TCP)
		return read_tcp(scratch->headers, &scratch->pkt, total, point);
	if (!read_datagram(scratch->headers, &scratch->pkt, total, ret_ends,
			   point))
		return false;
	if (scratch->pkt.fragment == FRAGMENT_FIRST)
		point->extensions =
			netobs_trace_ext(index, total - point->length);
	return true;
}

static __always_inline bool is_opening(const struct point *point)
{
	return (point->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/* This long after its last packet, a connection counts as gone, even without FIN or RST. */
#define GONE_NS 3000000000ULL

static __always_inline bool is_gone(const struct trace_conn *conn)
{
	return conn->ends & TRACE_ENDS_CLOSED ||
	       (conn->ends & TRACE_ENDS_BOTH) == TRACE_ENDS_BOTH ||
	       bpf_ktime_get_boot_ns() - conn->last_ns > GONE_NS;
}

static __always_inline void note_ends(const struct found *found,
				      const struct point *point)
{
	if (point->tcp_flags & TCP_RST)
		found->conn->ends |= TRACE_ENDS_BOTH;
	if (point->tcp_flags & TCP_FIN)
		found->conn->ends |= 1 << (found->direction & 1);
}

/* The tuple of a connection may be used again, with other sequence numbers. */
static __always_inline bool is_another(const struct found *found,
				       const struct point *point)
{
	const struct trace_stream *stream =
		&found->conn->streams[found->direction & 1];

	if (!is_opening(point))
		return false;
	if (stream->has_first)
		return stream->first != point->seq;
	/* The stream began before it was traced: its SYN may be sent again. */
	return stream->known & TRACE_KNOWS_WRITTEN &&
	       stream->written - 1 != point->seq;
}

static __always_inline void note_first(const struct found *found,
				       const struct point *point)
{
	struct trace_stream *stream = &found->conn->streams[found->direction & 1];

	if (!(point->tcp_flags & TCP_SYN) || stream->has_first)
		return;
	stream->first = point->seq;
	stream->written = stream->acked = point->seq + 1;
	stream->ready = stream->read = point->seq + 1;
	stream->known = TRACE_KNOWS_ALL;
	stream->has_first = 1;
}

static __always_inline bool is_connecting(const struct sock *sk)
{
	return sk && sk->__sk_common.skc_state == TCP_SYN_SENT;
}

/*
 * Of dropped TCP packets, only the SYN of a socket of this host begins a connection; a dropped datagram does. Both may
 * pass no other point.
 */
static __always_inline bool may_begin(const struct sk_buff *skb,
				      const struct trace_tuple *tuple,
				      const struct ends *ends,
				      const struct point *point)
{
	if (trace_is_datagram(ends->proto))
		return config_wants_datagrams &&
		       !bpf_map_lookup_elem(&trace_refused, tuple);
	return config_wants_opening && is_opening(point) &&
	       (point->kind != TRACE_DROP || is_connecting(skb->sk));
}

/* New tuples are found where packets come in, are queued first, or are dropped; other points know them. */
static __always_inline bool find_segment(const struct sk_buff *skb,
					 struct segment_scratch *scratch,
					 const struct point *point,
					 bool is_first, struct found *ret_found)
{
	struct trace_tuple *tuple = &scratch->tuple;
	struct ends *ends = &scratch->ends;
	__u64 nfct = 0;
	bool is_found;

	fill_tuple(tuple, ends);
	is_found = find_face(tuple, ends, ret_found);
	if (!is_first)
		return is_found;
	if (!is_found || is_another(ret_found, point)) {
		nfct = known_nfct(skb);
		is_found |= find_by_entry(nfct, tuple, ends, &scratch->room,
					  ret_found);
	}
	if (is_found && !is_another(ret_found, point))
		return true;
	/* A SYN of another connection takes no tuple from one that goes on. */
	if (!may_begin(skb, tuple, ends, point) ||
	    (is_found && !is_gone(ret_found->conn)))
		return is_found && point->kind == TRACE_DROP;
	if (!add_conn(tuple, ends, ends->is_reply, ret_found))
		return false;
	add_translated(nfct, &scratch->room, ret_found);
	return true;
}

static __always_inline bool is_wanted(const struct point *point, __u8 proto)
{
	return trace_is_datagram(proto) || config_wants_acks || point->length ||
	       point->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST);
}

static __always_inline bool is_elsewhere(const struct trace_conn *conn,
					 const struct net_device *dev)
{
	return conn->other_netns && dev &&
	       BPF_CORE_READ(dev, nd_net.net, ns.inum) == conn->other_netns;
}

/* At these points the socket of the buffer may be the receiver's. */
static __always_inline bool may_have_receiver(__u8 kind)
{
	return kind == TRACE_DROP ||
	       (kind >= TRACE_PREROUTING && kind <= TRACE_FORWARD_END);
}

/* At other points the buffer has the sender's socket, or none. */
static __always_inline bool is_of_socket(const struct found *found,
					 const struct sk_buff *skb,
					 const struct point *point)
{
	const struct sock *sk = skb->sk;

	if (may_have_receiver(point->kind) || !sk || !is_open(sk))
		return !is_elsewhere(found->conn, point->dev);
	return is_socket_of(found, sk);
}

/* Note the time, so that readable sockets are examined for a while. */
static __always_inline void note_received(void)
{
	__u64 *received = bpf_map_lookup_elem(&trace_received, &(__u32){ 0 });

	if (received)
		*(volatile __u64 *)received = bpf_ktime_get_boot_ns();
}

#define RECEIVED_NS 10000000ULL

static __always_inline bool has_received(void)
{
	const __u64 *received =
		bpf_map_lookup_elem(&trace_received, &(__u32){ 0 });
	const __u64 last = received ? *(volatile const __u64 *)received : 0;

	return last && bpf_ktime_get_boot_ns() - last < RECEIVED_NS;
}

static __always_inline void note_packet(const struct segment_scratch *scratch,
					const struct found *found,
					struct point *point)
{
	const struct packet *pkt = &scratch->pkt;
	const struct ends *ends = &scratch->ends;

	if (!trace_is_datagram(ends->proto)) {
		note_first(found, point);
		note_ends(found, point);
		return;
	}
	if (ends->proto == IP_PROTO_UDP)
		point->seq = netobs_trace_hash(scratch->index);
	if (pkt->fragment == FRAGMENT_FIRST)
		note_fragment(pkt, ends, point);
	if (point->kind == TRACE_RECEIVE)
		note_received();
}

static __always_inline bool may_be_taken(const struct sk_buff *skb,
					 __u32 network, bool is_first)
{
	return is_ip(skb) && network != NO_HEADER &&
	       may_be_traced(skb, network, is_first);
}

/* Bytes that their socket sends come to the first interface. */
static __always_inline void note_sent(const struct sk_buff *skb,
				      struct point *point)
{
	const struct sock *sk = skb->sk;

	if (point->kind == TRACE_QUEUE && sk && is_open(sk))
		point->limit = limit_after(sk, skb, point->seq, point->length);
}

static __always_inline int take_segment(const struct sk_buff *skb, __u32 network,
					bool is_first, struct point *point)
{
	const struct view view = {
		.head = skb->head,
		.network = network,
		.data = skb->data - skb->head,
		.tail = skb->tail,
		.len = skb->len,
	};
	struct segment_scratch *scratch;
	struct found found = { 0 };
	__u32 index;

	if (!may_be_taken(skb, network, is_first) ||
	    !is_packet_wanted(skb, point->dev))
		return 0;
	scratch = claim_scratch(&index);
	if (!scratch)
		return 0;
	point->buffer = skb;
	point->queue = skb->queue_mapping;
	if (read_segment(scratch, index, &view, &scratch->ends, point) &&
	    is_wanted(point, scratch->ends.proto) &&
	    find_segment(skb, scratch, point, is_first, &found) &&
	    is_of_socket(&found, skb, point)) {
		note_packet(scratch, &found, point);
		note_waiting(skb, point, &found, scratch->ends.proto);
		note_sent(skb, point);
		emit(&found, &scratch->ends, point);
	}
	release_scratch(scratch);
	return 0;
}

static __always_inline int take_leaving(const struct sk_buff *skb,
					const struct net_device *dev, __u8 kind)
{
	struct point point = { .kind = kind, .dev = dev };

	return take_segment(skb, skb->network_header, kind == TRACE_QUEUE,
			    &point);
}

static __always_inline int take_queued(const struct sk_buff *skb,
				       __u64 queue_id, __u8 kind)
{
	struct point point = { .kind = kind,
			       .dev = skb->dev,
			       .queue_id = queue_id };

	return take_segment(skb, skb->network_header, false, &point);
}

/* NULL: queues of sockets store other data in place of the device, whose namespace is then not valid. */
static __always_inline const struct net_device *device_of(const struct sk_buff *skb)
{
	const struct net_device *dev = skb->dev;

	return dev && BPF_CORE_READ(dev, nd_net.net, ns.inum) >= NETNS_INODE_MIN ?
		       dev :
		       NULL;
}

/* The data of @skb begins with the IP header. */
static __always_inline int take_coming(const struct sk_buff *skb, __u8 kind)
{
	struct point point = { .kind = kind, .dev = skb->dev };

	return take_segment(skb, skb->data - skb->head, true, &point);
}

#endif
