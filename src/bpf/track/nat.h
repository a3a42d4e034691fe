/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports how the packets of a flow are translated. Only packets that leave have a conntrack
 * entry here: those that come in pass this hook before the kernel looks for theirs. The entry has
 * both directions, so it also names what came in. It is read with packets that L1 has no flow
 * for, and with SYNs, which may begin another connection of a flow that it has.
 */
#ifndef NETOBS_BPF_TRACK_NAT_H
#define NETOBS_BPF_TRACK_NAT_H

#include "bpf/config.h"
#include "bpf/maps.h"
#include "bpf/nat.h"
#include "bpf/parse/headers.h"
#include "bpf/store/run.h"

/* In the lowest bits of sk_buff._nfct: enum ip_conntrack_info of Linux. */
enum {
	CT_INFO_MASK = 7,
	CT_ESTABLISHED = 0, /* there was an answer before */
	CT_RELATED = 1,
	CT_IS_REPLY = 3, /* and all above */
	CT_RELATED_REPLY = 4,
};

enum { NAT_IS_LOST = 1 }; /* what was noted of a flow, with this bit changed */

static __always_inline bool is_icmp(__u8 proto)
{
	return proto == IP_PROTO_ICMP || proto == IP_PROTO_ICMPV6;
}

/* What was noted of a flow in a generation; NULL: user space sized the array wrongly. */
static __always_inline __u64 *nat_seen_of(const struct run *run,
					  __u32 generation, __u64 flow_hash)
{
	__u32 index = (generation * config_cpus + run->cpu_id) *
			      config_nat.seen_slots +
		      (flow_hash & (config_nat.seen_slots - 1));

	return bpf_map_lookup_elem(&nat_seen, &index);
}

static __always_inline bool nat_is_of(__u64 seen, __u64 flow_hash)
{
	return seen >> 32 == flow_hash >> 32;
}

/* Whether the entry of a packet that leaves, if it has one, is to be read. */
static __always_inline bool nat_may_differ(const struct run *run,
					   const struct packet *pkt)
{
	return !run->known || pkt->attrs.marks & TCP_SYN;
}

/* For the kernel, the program's context is a struct sk_buff. */
static __always_inline __u64 nat_entry_of(const struct __sk_buff *skb)
{
	__u64 nfct = 0;

	bpf_probe_read_kernel(&nfct, sizeof(nfct),
			      (const void *)skb + config_nat.skb_nfct);
	return nfct;
}

/* Whether the packet's tuple, after translation, is another one than @before. */
static __always_inline bool nat_is_translated(const struct flow_key *key,
					      const struct nat_tuple *before)
{
	__u32 differ = before->src[0] ^ key->src.words[3];

	differ |= before->dst[0] ^ key->dst.words[3];
	if (key->flags & KEY_IPV6) {
		differ = 0;
		for (int i = 0; i < 4; i++) {
			differ |= before->src[i] ^ key->src.words[i];
			differ |= before->dst[i] ^ key->dst.words[i];
		}
	}
	if (!is_icmp(key->proto) && (key->src_port | key->dst_port)) {
		differ |= bpf_ntohs(before->src_port) ^ key->src_port;
		differ |= bpf_ntohs(before->dst_port) ^ key->dst_port;
	}
	return differ;
}

/* Whether @back is @there of the other direction: nothing is translated. */
static __always_inline bool nat_is_turned(const struct nat_tuple *there,
					  const struct nat_tuple *back)
{
	__u32 differ = (there->src_port ^ back->dst_port) |
		       (there->dst_port ^ back->src_port);

	for (int i = 0; i < 4; i++)
		differ |= (there->src[i] ^ back->dst[i]) |
			  (there->dst[i] ^ back->src[i]);
	return !differ;
}

static __always_inline __u32 nat_hash_tuple(const struct nat_tuple *tuple)
{
	const __u32 *words = (const __u32 *)tuple;
	__u64 sum = 0;

	for (int i = 0; i < NAT_TUPLE_WORDS; i += 2)
		sum += hash_pair(words + i, config_nat.secret + i);
	return hash_finish(sum) >> 32;
}

/* The reader is woken when so much is waiting; else it reads with each drain. */
static __always_inline __u64 nat_wake_flags(void)
{
	__u64 used = bpf_ringbuf_query(&nat_events, BPF_RB_AVAIL_DATA);

	return used >= NAT_RING_BYTES / 4 ? BPF_RB_FORCE_WAKEUP :
					    BPF_RB_NO_WAKEUP;
}

static __always_inline const void *nat_address(__u64 entry, __u32 offset)
{
	return (const void *)(entry + offset);
}

static __always_inline __u32 nat_direction(__u32 info)
{
	return info >= CT_IS_REPLY ? NAT_REPLY : NAT_ORIGINAL;
}

/* False: the ring is full. */
static __always_inline bool nat_report(const struct run *run,
				       const struct __sk_buff *skb, __u64 entry,
				       __u32 info)
{
	__u64 flags = nat_wake_flags();
	struct nat_event *event =
		bpf_ringbuf_reserve(&nat_events, sizeof(*event), 0);

	if (!event)
		return false;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = run->cpu->nat_ns;
	event->ifindex = skb->ifindex;
	event->from_ifindex = skb->ingress_ifindex;
	event->netns = config_netns;
	event->dir = nat_direction(info);
	event->is_answered = info == CT_ESTABLISHED || info >= CT_IS_REPLY;
	bpf_probe_read_kernel(
		&event->tuples[NAT_ORIGINAL], sizeof(event->tuples[0]),
		nat_address(entry, config_nat.tuples[NAT_ORIGINAL]));
	bpf_probe_read_kernel(&event->tuples[NAT_REPLY], sizeof(event->tuples[0]),
			      nat_address(entry, config_nat.tuples[NAT_REPLY]));
	if (config_nat.has_zone)
		bpf_probe_read_kernel(&event->zone, sizeof(event->zone),
				      nat_address(entry, config_nat.zone));
	bpf_ringbuf_submit(event, flags);
	return true;
}

static __always_inline struct nat_counters *nat_counters_of(const struct run *run)
{
	__u32 index = run->cpu_id;

	return bpf_map_lookup_elem(&nat_counters, &index);
}

/* An ICMP error has the entry of the packet that it is about. */
static __always_inline bool nat_is_own(const struct flow_key *key, __u32 info,
				       const struct nat_tuple *before)
{
	return before->proto == key->proto &&
	       !(is_icmp(key->proto) &&
		 (info == CT_RELATED || info == CT_RELATED_REPLY));
}

/*
 * That a flow is not translated is news if it was. Where nothing is translated, that costs no look
 * at the array, which would be anywhere in memory.
 */
static __always_inline bool nat_was_translated(const struct run *run, __u64 hash,
					       const struct nat_counters *counters)
{
	const __u64 *now, *before;

	if (!counters->reported)
		return false;
	now = nat_seen_of(run, run->generation, hash);
	before = nat_seen_of(run, !run->generation, hash);
	return now && before &&
	       (nat_is_of(*now, hash) || nat_is_of(*before, hash));
}

/* The packet in the CPU's scratch leaves with @nfct, which has an entry. */
static __noinline int nat_note(struct run *run, struct __sk_buff *skb, __u64 nfct)
{
	const __u32 info = nfct & CT_INFO_MASK;
	const __u32 dir = nat_direction(info);
	const __u64 entry = nfct & ~(__u64)CT_INFO_MASK;
	const struct flow_key *key = &run->scratch->pkt.key;
	struct nat_counters *counters = nat_counters_of(run);
	struct nat_tuple before, back;
	__u64 hash, *seen;

	if (!counters || key->flags & KEY_NO_TRANSPORT ||
	    bpf_probe_read_kernel(&before, sizeof(before),
				  nat_address(entry, config_nat.tuples[dir])))
		return 0;
	hash = hash_key(key, &config_secret);
	if (key->tunnel) { /* the entry is that of the outer packet */
		if (bpf_probe_read_kernel(
			    &back, sizeof(back),
			    nat_address(entry, config_nat.tuples[!dir])) ||
		    nat_is_turned(&before, &back))
			return 0;
	} else if (!nat_is_own(key, info, &before)) {
		return 0;
	}
	if (is_icmp(key->proto) && !key->tunnel)
		before.src_port = 0; /* the identifier is not part of flows */
	if (!key->tunnel && !nat_is_translated(key, &before) &&
	    !nat_was_translated(run, hash, counters))
		return 0;
	seen = nat_seen_of(run, run->generation, hash);
	hash = hash >> 32 << 32 | nat_hash_tuple(&before);
	if (!seen || *seen == hash)
		return 0;
	if (nat_report(run, skb, entry, info)) {
		*seen = hash;
		counters->reported++;
	} else if (*seen != (hash ^ NAT_IS_LOST)) {
		/* It is tried again with other packets, and counted once. */
		*seen = hash ^ NAT_IS_LOST;
		counters->lost++;
	}
	return 0;
}

#endif
