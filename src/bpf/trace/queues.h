/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who fills a queue while packets of traced connections wait in it, and what arrives at uplinks: the bytes of
 * each flow, in buckets of time.
 */
#ifndef NETOBS_BPF_TRACE_QUEUES_H
#define NETOBS_BPF_TRACE_QUEUES_H

#include "bpf/queues.h"
#include "bpf/store/hash_words.h"
#include "events.h"
#include "nat.h"

#include <bpf/bpf_endian.h>

const volatile bool config_wants_queues;
const volatile __u32 config_queue_secret[sizeof(struct queue_flow) / sizeof(__u32)];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, QUEUES);
	__type(key, __u32);
	__type(value, struct queue_state);
} trace_queues SEC(".maps");

/* Keyed by queue. A queue gives back one packet at a time, so no other CPU writes to its buckets. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space sets it, as of the next two */
	__type(key, __u32);
	__type(value, struct queue_bucket);
} trace_left SEC(".maps");

/* Keyed by uplink. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_bucket);
} trace_arrived SEC(".maps");

/* Keyed by the hash of the flow. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_sender);
} trace_senders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue_uplinks);
} trace_uplinks SEC(".maps");

/* After that time without another traced packet, none is waiting: it was dropped. */
#define QUEUE_WAIT_NS 2000000000ULL

enum {
	BULK_MAX = 16
}; /* packets that are counted of those that leave at once */

/* ---- Flows -------------------------------------------------------------------------- */

static __always_inline bool has_flow_ports(__u8 proto)
{
	return proto == IP_PROTO_TCP || proto == IP_PROTO_UDP;
}

/* A header of IPv4 without options, and ports; or the first half of a header of IPv6. */
struct flow_head {
	struct iphdr ip;
	__be16 ports[2];
};

static __always_inline void read_v4(const struct flow_head *head,
				    struct queue_flow *flow)
{
	addr_from_v4(&flow->src, head->ip.saddr);
	addr_from_v4(&flow->dst, head->ip.daddr);
	flow->proto = head->ip.protocol;
	if (*(const __u8 *)head != 0x45 || !has_flow_ports(flow->proto) ||
	    head->ip.frag_off & bpf_htons(IPV4_OFFSET_MASK))
		return;
	flow->src_port = bpf_ntohs(head->ports[0]);
	flow->dst_port = bpf_ntohs(head->ports[1]);
}

static __always_inline void read_v6(__u64 ip, __u8 proto, struct queue_flow *flow)
{
	flow->proto = proto;
	bpf_probe_read_kernel(&flow->src, sizeof(flow->src) + sizeof(flow->dst),
			      (const void *)ip + offsetof(struct ipv6hdr, saddr));
	if (!has_flow_ports(proto) ||
	    bpf_probe_read_kernel(&flow->src_port, 2 * sizeof(flow->src_port),
				  (const void *)ip + sizeof(struct ipv6_wire)))
		return;
	flow->src_port = bpf_ntohs(flow->src_port);
	flow->dst_port = bpf_ntohs(flow->dst_port);
}

/* @ip: address of the header. @return false: it is no IP */
static __always_inline bool read_flow(__u64 ip, struct queue_flow *flow)
{
	struct flow_head head;
	__u8 version;

	if (bpf_probe_read_kernel(&head, sizeof(head), (const void *)ip))
		return false;
	version = *(const __u8 *)&head >> 4;
	if (version == 4)
		read_v4(&head, flow);
	else if (version == 6)
		read_v6(ip, ((const struct ipv6hdr *)&head)->nexthdr, flow);
	return version == 4 || version == 6;
}

/* @return never 0 */
static __always_inline __u32 hash_flow(const struct queue_flow *flow)
{
	const __u32 *words = (const void *)flow;
	__u64 sum = 0;

	for (__u32 i = 0; i < sizeof(*flow) / sizeof(__u32); i += 2)
		sum += hash_pair(words + i, config_queue_secret + i);
	return (__u32)hash_finish(sum) ?: 1;
}

const struct queue_sender no_sender;

/* Stack is scarce: all is written where it is kept. */
static __always_inline void note_sender(__u32 id, const struct queue_flow *flow,
					__u64 socket, __u64 nfct)
{
	const void *entry = (const void *)(nfct & ~(__u64)CT_INFO_MASK);
	const __u32 dir = nat_direction(nfct & CT_INFO_MASK);
	struct queue_sender *sender = bpf_map_lookup_elem(&trace_senders, &id);

	if (!sender) {
		bpf_map_update_elem(&trace_senders, &id, &no_sender, BPF_ANY);
		sender = bpf_map_lookup_elem(&trace_senders, &id);
		if (!sender)
			return;
		sender->flow = *flow;
		if (entry)
			bpf_probe_read_kernel(&sender->before,
					      sizeof(sender->before),
					      entry + config_nat.tuples[dir]);
	}
	sender->socket = sender->socket ?: socket;
}

/* ---- Buckets ------------------------------------------------------------------------ */

static __always_inline void begin_bucket(struct queue_bucket *bucket, __u64 number)
{
	if (bucket->number == number)
		return;
	__builtin_memset(bucket, 0, sizeof(*bucket));
	bucket->number = number;
}

static __always_inline struct queue_bucket *left_bucket(__u32 place)
{
	const __u64 now = bpf_ktime_get_boot_ns(), number = now >> QUEUE_SHIFT;
	const __u32 key = place * QUEUE_BUCKETS + number % QUEUE_BUCKETS;
	struct queue_state *queue = bpf_map_lookup_elem(&trace_queues, &place);
	struct queue_bucket *bucket = bpf_map_lookup_elem(&trace_left, &key);

	if (!queue || !bucket)
		return NULL;
	if (now - queue->used_ns > QUEUE_WAIT_NS) {
		queue->waiting = 0;
		return NULL;
	}
	begin_bucket(bucket, number);
	bucket->waited_ns += now - queue->mark_ns;
	queue->mark_ns = now;
	return bucket;
}

static __always_inline struct queue_bucket *arrived_bucket(__u32 place)
{
	const __u64 number = bpf_ktime_get_boot_ns() >> UPLINK_SHIFT;
	const __u32 key = place * UPLINK_BUCKETS + number % UPLINK_BUCKETS;
	struct queue_bucket *bucket = bpf_map_lookup_elem(&trace_arrived, &key);

	if (bucket)
		begin_bucket(bucket, number);
	return bucket;
}

/*
 * Count a packet. Global: the verifier follows it once.
 *
 * @param place  index of a queue; or QUEUES and the index of an uplink
 * @param ip     address of its header
 * @param socket, nfct  as struct queue_sender and known_nfct() have them
 */
__noinline int netobs_trace_pass(__u32 place, __u64 ip, __u32 bytes,
				 __u64 socket, __u64 nfct)
{
	struct queue_flow flow = { 0 };
	struct queue_bucket *bucket = place < QUEUES ?
					      left_bucket(place) :
					      arrived_bucket(place - QUEUES);
	__u32 id;

	if (!bucket)
		return 0;
	bucket->bytes += bytes;
	if (!read_flow(ip, &flow))
		return 0;
	id = hash_flow(&flow);
	if (!queue_add_share(bucket, id, bytes))
		note_sender(id, &flow, socket, nfct);
	return 0;
}

/* ---- Queues ------------------------------------------------------------------------- */

/* Verifiers let nothing be computed of addresses, nor a global function have any. */
static __always_inline __u64 read_address(const void *at)
{
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), at);
	return address;
}

/*
 * Of the queueing disciplines of an interface, each has another
 * handle or another parent.
 *
 * @return never 0
 */
static __always_inline __u64 queue_id(const struct Qdisc *qdisc,
				      const struct net_device *dev)
{
	const __u64 at = (__u64)dev->nd_net.net->ns.inum << 32 | dev->ifindex;
	const __u64 of = (__u64)qdisc->handle << 32 | qdisc->parent;

	return hash_finish(hash_finish(at) + of) | 1;
}

static __always_inline struct queue_state *find_queue(__u64 id, __u32 *ret_place)
{
	for (int i = 0; i < QUEUE_TRIES; i++) {
		const __u32 place = ((id >> 32) + i) & (QUEUES - 1);
		struct queue_state *queue =
			bpf_map_lookup_elem(&trace_queues, &place);

		if (queue && queue->id == id) {
			*ret_place = place;
			return queue;
		}
	}
	return NULL;
}

/* User space frees places that were not in use for a while. */
static __always_inline struct queue_state *
claim_queue(__u64 id, const struct net_device *dev)
{
	for (int i = 0; i < QUEUE_TRIES; i++) {
		const __u32 place = ((id >> 32) + i) & (QUEUES - 1);
		struct queue_state *queue =
			bpf_map_lookup_elem(&trace_queues, &place);

		if (!queue || __sync_val_compare_and_swap(&queue->id, 0, id))
			continue;
		queue->waiting = 0;
		queue->ifindex = dev->ifindex;
		queue->netns = dev->nd_net.net->ns.inum;
		bpf_probe_read_kernel(
			queue->interface, sizeof(queue->interface),
			(const void *)dev +
				bpf_core_field_offset(struct net_device, name));
		return queue;
	}
	return NULL;
}

static __always_inline void note_coming(struct queue_state *queue, __u32 waiter,
					__u32 last)
{
	if (queue->left[waiter] == last) {
		queue->left[waiter] = 0;
		return;
	}
	queue->used_ns = bpf_ktime_get_boot_ns();
	if (!queue->waiting)
		queue->mark_ns = queue->used_ns;
	queue->last[waiter] = last;
	__sync_fetch_and_or(&queue->waiting, 1ULL << waiter);
}

static __always_inline void note_gone(struct queue_state *queue, __u32 waiter,
				      __u32 last)
{
	const __u64 bit = 1ULL << waiter;

	if (!(queue->waiting & bit))
		queue->left[waiter] = last;
	else if (queue->last[waiter] == last)
		__sync_fetch_and_and(&queue->waiting, ~bit);
}

/*
 * A traced packet has come to a queue, or has left it. Packets of a direction leave in their order, so that none
 * of them waits once the last one has left. Segmentation and drops change no more than which packets there are.
 */
static __always_inline void note_waiting(const struct sk_buff *skb,
					 const struct point *point,
					 const struct found *found, __u8 proto)
{
	const __u32 waiter = (found->id * 2 + found->direction) &
			     (QUEUE_WAITERS - 1);
	const __u32 last = trace_is_datagram(proto) ?
				   read_address(&skb->head) >> 6 :
				   point->seq + point->length;
	struct queue_state *queue;
	__u32 place;

	if (!point->queue_id || found->conn->is_used != TRACE_CHOSEN)
		return;
	queue = find_queue(point->queue_id, &place);
	if (point->kind == TRACE_DEQUEUE) {
		if (queue)
			note_gone(queue, waiter, last);
		return;
	}
	if (!queue)
		queue = claim_queue(point->queue_id, skb->dev);
	if (queue)
		note_coming(queue, waiter, last);
}

/* Count what leaves a queue in which traced packets wait. @skb: maybe the first one of several */
static __always_inline void note_leaving(__u64 id, const struct sk_buff *skb)
{
	struct queue_state *queue;
	__u32 place;

	queue = find_queue(id, &place);
	if (!queue || !queue->waiting)
		return;
	for (int i = 0; skb && i < BULK_MAX; i++) {
		netobs_trace_pass(
			place, read_address(&skb->head) + skb->network_header,
			skb->len, read_address(&skb->sk), known_nfct(skb));
		skb = nullable(skb->next);
	}
}

/* ---- Uplinks ------------------------------------------------------------------------ */

/* Count what the layers above an uplink get. The data of @skb begins with the IP header. */
static __always_inline void note_arriving(const struct sk_buff *skb)
{
	const struct queue_uplinks *uplinks;
	__u32 ifindex, netns, at;

	uplinks = bpf_map_lookup_elem(&trace_uplinks, &(__u32){ 0 });
	if (!uplinks)
		return;
	ifindex = skb->dev->ifindex;
	netns = skb->dev->nd_net.net->ns.inum;
	for (__u32 i = 0; i < UPLINKS; i++) {
		const struct queue_uplink *uplink = &uplinks->list[i];

		if (uplink->ifindex != ifindex || uplink->netns != netns)
			continue;
		at = skb->data - skb->head;
		netobs_trace_pass(QUEUES + i, read_address(&skb->data),
				  skb->len + at - skb->mac_header, 0, 0);
		return;
	}
}

#endif
