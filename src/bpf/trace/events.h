/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connections of a tracer, which are found by tuples, and their events. */
#ifndef NETOBS_BPF_TRACE_EVENTS_H
#define NETOBS_BPF_TRACE_EVENTS_H

#include "bpf/nat_entry.h"
#include "bpf/parse/headers.h"
#include "bpf/trace.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum { AF_INET = 2, AF_INET6 = 10, SLOT_TRIES = 64 };

const volatile __u32 config_slot_mask; /* slots are a power of two */
const volatile __u32 config_ring_bytes;
const volatile __u64 config_max_rate; /* events a second on a CPU */
const volatile __u32 config_points; /* 1 << enum trace_point: points whose events are wanted */
const volatile bool config_has_spaces; /* only those of trace_spaces count */
const volatile bool config_wants_netfilter; /* in the namespaces that chosen connections pass */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* user space sets it */
} trace_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* user space sets it */
	__type(key, struct trace_tuple);
	__type(value, struct trace_face);
} trace_faces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space sets it */
	__type(key, __u32);
	__type(value, struct trace_conn);
} trace_conns SEC(".maps");

/* Inodes of the network namespaces whose events are wanted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space sets it */
	__type(key, __u32);
	__type(value, __u8);
} trace_spaces SEC(".maps");

/* The number of the last connection; it also chooses the slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} trace_next SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_counts);
} trace_counts SEC(".maps");

/*
 * Numbers of tuples with such ports, by trace_ports_index(): most packets have none of them, and
 * need no further lookups.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TRACE_PORTS);
	__type(key, __u32);
	__type(value, __u64);
} trace_ports SEC(".maps");

/* A point that a packet or the bytes of a socket pass. */
struct point {
	const void *buffer;
	const struct net_device *dev;
	__u64 queue_id; /* of packets that come to a queue, or leave it; 0: not wanted */
	__u32 netns;
	const void *socket;		/* as in struct trace_report */
	__u32 seq, ack, length, reason; /* as in struct trace_report */
	__u16 queue, piece;
	__u16 extensions; /* as in struct piece_ports */
	__u8 kind;	  /* enum trace_point */
	__u8 tcp_flags;
	__u8 limit; /* enum trace_limit */
	bool has_process, is_fragment;
};

/* ---- Namespaces -------------------------------------------------------------------------- */

static __always_inline bool is_space_wanted(__u32 inode)
{
	return !config_has_spaces || bpf_map_lookup_elem(&trace_spaces, &inode);
}

static __always_inline __u32 space_of(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* A dropped packet may have a socket, and no interface. */
static __always_inline bool is_packet_wanted(const struct sk_buff *skb,
					     const struct net_device *dev)
{
	const struct sock *sk;

	if (!config_has_spaces)
		return true;
	if (dev)
		return is_space_wanted(BPF_CORE_READ(dev, nd_net.net, ns.inum));
	sk = BPF_CORE_READ(skb, sk);
	return sk && is_space_wanted(space_of(sk));
}

/* ---- Connections ------------------------------------------------------------------------- */

/* The tuple of a packet or socket, with the direction of the packet in it. */
struct ends {
	struct ip_addr src, dst;
	__u16 src_port, dst_port;
	__u8 proto;
	bool is_reply; /* of ICMP */
	bool is_turned;
};

static __always_inline void fill_tuple(struct trace_tuple *tuple,
				       struct ends *ends)
{
	ends->is_turned = is_icmp(ends->proto) ?
				  ends->is_reply :
				  trace_is_lower(&ends->dst, ends->dst_port,
						 &ends->src, ends->src_port);
	__builtin_memset(tuple, 0, sizeof(*tuple));
	tuple->addrs[0] = ends->is_turned ? ends->dst : ends->src;
	tuple->addrs[1] = ends->is_turned ? ends->src : ends->dst;
	tuple->ports[0] = ends->is_turned ? ends->dst_port : ends->src_port;
	tuple->ports[1] = ends->is_turned ? ends->src_port : ends->dst_port;
	tuple->proto = ends->proto;
}

static __always_inline __u64 *ports_count(__u16 one, __u16 other)
{
	const __u32 index = trace_ports_index(one, other);

	return bpf_map_lookup_elem(&trace_ports, &index);
}

static __always_inline bool has_ports(__u16 one, __u16 other)
{
	const __u64 *count = ports_count(one, other);

	return count && *(volatile __u64 *)count;
}

static __always_inline struct trace_counts *get_counts(void)
{
	return bpf_map_lookup_elem(&trace_counts, &(__u32){ 0 });
}

static __always_inline struct trace_conn *get_slot(__u32 slot)
{
	slot &= config_slot_mask;
	return bpf_map_lookup_elem(&trace_conns, &slot);
}

/* The connection of a packet or socket, and its direction. */
struct found {
	struct trace_conn *conn;
	__u64 id;
	__u32 slot;
	__u8 direction;
};

static __always_inline bool find_face(const struct trace_tuple *tuple,
				      const struct ends *ends,
				      struct found *ret_found)
{
	const struct trace_face *face = bpf_map_lookup_elem(&trace_faces, tuple);
	struct trace_conn *conn;

	if (!face)
		return false;
	conn = get_slot(face->slot);
	if (!conn || conn->id != face->id)
		return false;
	*ret_found = (struct found){
		.conn = conn,
		.id = face->id,
		.slot = face->slot,
		.direction = ends->is_turned != face->is_turned,
	};
	return true;
}

/* @return whether @sk is the socket that sends in this direction: the first one that is seen */
static __always_inline bool is_socket_of(const struct found *found,
					 const struct sock *sk)
{
	struct trace_conn *conn = found->conn;
	__u64 *socket = &conn->sockets[found->direction & 1];

	if (!*socket)
		*socket = (__u64)sk;
	if (*socket == (__u64)sk)
		return true;
	conn->other_netns = sk->__sk_common.skc_net.net->ns.inum;
	return false;
}

/* ---- Events ------------------------------------------------------------------------------ */

static __always_inline void fill_device(struct trace_report *event,
					const struct net_device *dev)
{
	event->ifindex = BPF_CORE_READ(dev, ifindex);
	event->netns = BPF_CORE_READ(dev, nd_net.net, ns.inum);
	bpf_probe_read_kernel(event->interface, sizeof(event->interface),
			      (const void *)dev +
				      bpf_core_field_offset(struct net_device,
							    name));
}

/* The process on the CPU. Programs of netfilter have no other helper for it before Linux 6.17. */
static __always_inline void fill_process(struct trace_report *event)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();

	event->pid_tgid = (__u64)BPF_CORE_READ(task, tgid) << 32 |
			  (__u32)BPF_CORE_READ(task, pid);
	BPF_CORE_READ_INTO(&event->command, task, group_leader, comm);
	BPF_CORE_READ_INTO(&event->thread, task, comm);
}

static __always_inline bool is_wanted_kind(__u8 kind)
{
	return config_points >> (kind & 31) & 1;
}

/* A packet that begins or ends a TCP stream. */
static __always_inline bool is_bound(const struct point *point)
{
	return point->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST);
}

/*
 * @return whether user space needs an event of a layer that is not wanted: it begins or ends a
 * stream, names the process of a socket, or shows in which namespace to link hooks. Those that
 * begin or end a stream have limits of their own: without them, the wanted events of that stream
 * have no offsets. The others have limits together, and the counters of missing events leave them
 * out: no output would have shown them.
 */
static __always_inline bool is_needed(const struct point *point)
{
	return is_bound(point) || point->has_process ||
	       (config_wants_netfilter &&
		(point->kind == TRACE_QUEUE || point->kind == TRACE_RECEIVE));
}

/* @return whether an event that user space does not get counts as missing */
static __always_inline bool is_counted(const struct point *point)
{
	return is_wanted_kind(point->kind) || is_bound(point);
}

/* @return whether this CPU may have another event in this second */
static __always_inline bool is_in_rate(struct trace_counts *counts,
				       const struct point *point, __u64 now)
{
	const __u64 second = now >> 30; /* about */
	__u64 *events = &counts->others;

	if (counts->second != second) {
		counts->second = second;
		counts->events = counts->others = counts->bounds = 0;
	}
	if (is_wanted_kind(point->kind))
		events = &counts->events;
	else if (is_bound(point))
		events = &counts->bounds;
	if ((*events)++ < config_max_rate)
		return true;
	if (is_counted(point))
		__sync_fetch_and_add(&counts->cut_by_rate, 1);
	return false;
}

/* User space counts the wanted events beyond the limit. */
static __always_inline bool is_in_limit(struct trace_conn *conn,
					const struct point *point)
{
	const __u64 max = *(volatile __u64 *)&conn->max_events ?:
				  TRACE_CANDIDATE_EVENTS;

	if (is_wanted_kind(point->kind))
		return __sync_fetch_and_add(&conn->events, 1) < max;
	if (is_bound(point))
		return __sync_fetch_and_add(&conn->bounds, 1) <
		       TRACE_BOUND_EVENTS;
	return __sync_fetch_and_add(&conn->others, 1) < max;
}

/* Events that only user space uses are not limited: a connection has few of them. */
static __always_inline bool is_allowed(struct trace_counts *counts,
				       struct trace_conn *conn,
				       const struct point *point, __u64 now)
{
	if (*(volatile __u32 *)&conn->is_rejected)
		return false;
	conn->last_ns = now;
	if (point->kind >= TRACE_OPENS)
		return true;
	return (is_wanted_kind(point->kind) || is_needed(point)) &&
	       is_in_limit(conn, point) && is_in_rate(counts, point, now);
}

/*
 * Wake the reader once a quarter of the ring is used, and for each new connection, which it has to
 * decide about at once. Otherwise the reader polls often.
 */
static __always_inline __u64 wake_flags(__u8 kind)
{
	__u64 used = bpf_ringbuf_query(&trace_events, BPF_RB_AVAIL_DATA);

	return kind == TRACE_OPENS || used >= config_ring_bytes / 4 ?
		       BPF_RB_FORCE_WAKEUP :
		       BPF_RB_NO_WAKEUP;
}

/* @return whether user space will get the event */
static __always_inline bool emit(const struct found *found,
				 const struct ends *ends,
				 const struct point *point)
{
	const __u64 now = bpf_ktime_get_boot_ns();
	struct trace_counts *counts = get_counts();
	struct trace_report *event;

	if (!counts || !is_allowed(counts, found->conn, point, now))
		return false;
	event = bpf_ringbuf_reserve(&trace_events, sizeof(*event), 0);
	if (!event) {
		if (is_counted(point))
			__sync_fetch_and_add(&counts->lost, 1);
		return false;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = now;
	event->id = found->id;
	event->slot = found->slot;
	event->buffer = (__u64)point->buffer;
	event->src = ends->src;
	event->dst = ends->dst;
	event->src_port = ends->src_port;
	event->dst_port = ends->dst_port;
	event->seq = point->seq;
	event->ack = point->ack;
	event->length = point->length;
	event->reason = point->reason;
	event->cpu = bpf_get_smp_processor_id();
	event->queue = point->queue;
	event->socket = (__u64)point->socket;
	event->proto = ends->proto;
	event->is_reply = ends->is_reply;
	event->piece = point->piece;
	event->is_fragment = point->is_fragment;
	event->point = point->kind;
	event->direction = found->direction;
	event->tcp_flags = point->tcp_flags;
	event->limit = point->limit;
	event->has_process = point->has_process;
	event->netns = point->netns;
	fill_process(event);
	if (point->dev)
		fill_device(event, point->dev);
	bpf_ringbuf_submit(event, wake_flags(point->kind));
	return true;
}

/* ---- Connections that begin ------------------------------------------------------------- */

/*
 * Global: the verifier follows it once.
 * @return the number of a new connection, which owns its slot; 0: none is free
 */
__noinline __u64 netobs_trace_claim(void)
{
	__u64 *next = bpf_map_lookup_elem(&trace_next, &(__u32){ 0 });

	for (int i = 0; next && i < SLOT_TRIES; i++) {
		const __u64 id = __sync_fetch_and_add(next, 1) + 1;
		struct trace_conn *conn = get_slot((__u32)id);

		if (conn && !__sync_val_compare_and_swap(&conn->is_used, 0, 1))
			return id;
	}
	return 0;
}

static __always_inline bool refuse_conn(void)
{
	struct trace_counts *counts = get_counts();

	if (counts)
		__sync_fetch_and_add(&counts->refused, 1);
	return false;
}

/* @return whether the tuple leads to that connection now; it may have led to another one */
static __always_inline bool put_face(const struct trace_tuple *tuple,
				     const struct trace_face *face)
{
	__u64 *count = ports_count(tuple->ports[0], tuple->ports[1]);

	if (bpf_map_update_elem(&trace_faces, tuple, face, BPF_NOEXIST))
		return !bpf_map_update_elem(&trace_faces, tuple, face, BPF_EXIST);
	if (count)
		__sync_fetch_and_add(count, 1);
	return true;
}

/* Remove a tuple that user space does not know, and so would never remove. */
static __always_inline void take_back_face(const struct trace_tuple *tuple)
{
	__u64 *count = ports_count(tuple->ports[0], tuple->ports[1]);

	if (!bpf_map_delete_elem(&trace_faces, tuple) && count)
		__sync_fetch_and_add(count, -1);
}

/* @return whether there is a connection now; @direction: that of the packet at the point */
static __always_inline bool add_conn(const struct trace_tuple *tuple,
				     const struct ends *ends, __u8 direction,
				     struct found *ret_found)
{
	struct trace_face face = { .id = netobs_trace_claim() };
	struct trace_conn *conn = get_slot((__u32)face.id);

	if (!face.id || !conn)
		return refuse_conn();
	conn->is_rejected = 0;
	conn->max_events = 0;
	conn->events = 0;
	conn->others = conn->bounds = 0;
	conn->ends = trace_is_self(&ends->src, ends->src_port, &ends->dst,
				   ends->dst_port) ?
			     TRACE_ENDS_SELF :
			     0;
	conn->sockets[0] = conn->sockets[1] = 0;
	conn->other_netns = 0;
	conn->last_ns = bpf_ktime_get_boot_ns();
	__builtin_memset(conn->streams, 0, sizeof(conn->streams));
	conn->id = face.id;
	face.slot = (__u32)face.id & config_slot_mask;
	face.is_turned = ends->is_turned != direction;
	if (!put_face(tuple, &face)) {
		conn->id = 0;
		(void)__sync_lock_test_and_set(&conn->is_used, 0);
		return refuse_conn();
	}
	*ret_found = (struct found){ conn, face.id, face.slot, direction };
	if (emit(ret_found, ends, &(struct point){ .kind = TRACE_OPENS }))
		return true;
	take_back_face(tuple);
	conn->id = 0;
	(void)__sync_lock_test_and_set(&conn->is_used, 0);
	return refuse_conn();
}

static __always_inline void add_face(const struct trace_tuple *tuple,
				     const struct ends *ends,
				     const struct found *found)
{
	struct trace_face face = {
		.id = found->id,
		.slot = found->slot,
		.is_turned = ends->is_turned != found->direction,
	};

	if (put_face(tuple, &face) &&
	    !emit(found, ends, &(struct point){ .kind = TRACE_FACE }))
		take_back_face(tuple);
}

#endif
