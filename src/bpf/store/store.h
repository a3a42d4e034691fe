/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow store: a small two-way table per CPU (L1), one per generation. A repeated flow costs an
 * array slot. Of flows that want the same slots those stay in L1 that come often; the others' packets
 * are appended to the CPU's log, which user space adds to its flows. While the log is full, packets go
 * to the overflow table of their generation; packets that it refuses are counted as lost.
 */
#ifndef NETOBS_BPF_STORE_STORE_H
#define NETOBS_BPF_STORE_STORE_H

#include "bpf/maps.h"
#include "bpf/parse/packet.h"
#include "log.h"
#include "outcomes.h"
#include "overflow.h"
#include "run.h"

/* The addresses of tunnels, kept apart from the flows in them. */

_Static_assert(__builtin_offsetof(struct packet, outer_dst) -
			       __builtin_offsetof(struct packet, outer_src) ==
		       __builtin_offsetof(struct tunnel_addrs, dst),
	       "a packet has them as the table does: no copy on the stack");

/* For every new entry: addresses that are in use are not the oldest. */
static __always_inline void track_tunnel(const struct packet *pkt)
{
	struct tunnel_key key = { pkt->key.outer_hash, pkt->outer_check };

	if (!bpf_map_lookup_elem(&tunnel_addrs, &key))
		bpf_map_update_elem(&tunnel_addrs, &key, &pkt->outer_src,
				    BPF_ANY);
}

enum {
	CREDIT_NEW = 16, /* misses that an entry of L1 survives when it is new */
	CREDIT_HIT = 32, /* and since its last hit */
};

static __always_inline void entry_set_macs(struct flow_tally *tally,
					   const struct __sk_buff *skb)
{
	const struct ether_wire *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) <= (void *)(long)skb->data_end)
		__builtin_memcpy(tally->macs, eth, sizeof(tally->macs));
}

static __always_inline void entry_set_outer(struct flow_entry *entry,
					    const struct packet *pkt)
{
	entry->outer_src_port = pkt->outer_src_port;
	entry->outer_dst_port = pkt->outer_dst_port;
	entry->outer_check = pkt->outer_check;
	track_tunnel(pkt);
}

static __always_inline void entry_start(const struct run *run,
					struct flow_entry *entry,
					const struct __sk_buff *skb,
					const struct packet *pkt)
{
	struct flow_tally *tally = &entry->tally;

	entry->key = pkt->key;
	tally->packets = 0;
	tally->bytes = 0;
	tally->l2_bytes = 0;
	tally->first_ns = run->now;
	tally->last_ns = run->now;
	tally->attrs = pkt->attrs;
	if (pkt->attrs.has_mac)
		entry_set_macs(tally, skb);
	entry->hint = 0;
	if (!run->is_plain && pkt->key.tunnel)
		entry_set_outer(entry, pkt);
}

static __always_inline void entry_stretch(struct flow_tally *tally, __u64 now)
{
	if (now < tally->first_ns)
		tally->first_ns = now;
	if (now > tally->last_ns)
		tally->last_ns = now;
}

static __always_inline void entry_add(struct flow_entry *entry,
				      const struct packet *pkt,
				      const struct wire_size *size, __u64 now)
{
	struct flow_tally *tally = &entry->tally;

	tally->packets += size->packets;
	tally->bytes += size->bytes;
	if (config_link == LINK_ETHERNET)
		tally->l2_bytes += size->l2_bytes;
	if (config_clock == CLOCK_PACKET) /* files need not be in order */
		entry_stretch(tally, now);
	else
		tally->last_ns = now;
	tally->attrs.marks |= pkt->attrs.marks;
	if (!has_attrs(&tally->attrs, &pkt->attrs))
		attrs_merge(&tally->attrs, &pkt->attrs, false, true);
}

/* A slot of this CPU's log; NULL: there is no log. */
static __always_inline struct log_slot *log_slot_at(const struct run *run,
						    __u64 position)
{
	__u32 index = run->cpu_id * config_log_slots +
		      (position & (config_log_slots - 1));

	return bpf_map_lookup_elem(&log_slots, &index);
}

static __always_inline void log_end(struct run *run, __u32 n)
{
	if (log_publish(run->cpu, n, config_log_slots))
		run->due |= DUE_NOTICE;
}

/* False: the log is full. */
static __always_inline bool log_entry(struct run *run,
				      const struct flow_entry *entry)
{
	struct log_slot *first, *second;

	if (!log_has_room(run->cpu, 2, config_log_slots))
		return false;
	first = log_slot_at(run, run->cpu->log_head);
	second = log_slot_at(run, run->cpu->log_head + 1);
	if (!first || !second)
		return false;
	log_write_entry(first, second, entry, run->generation);
	log_end(run, 2);
	return true;
}

/* A packet that fits into one slot. False: the log is full. */
static __always_inline bool log_packet(struct run *run,
				       const struct __sk_buff *skb,
				       const struct packet *pkt,
				       const struct wire_size *size, __u64 hash)
{
	__u64 flags = log_generation_flag(run->generation);
	const __u8 *eth = (void *)(long)skb->data;
	struct wire_size kept = *size;
	struct log_macs macs = { 0 };
	struct log_slot *slot;

	if (!log_has_room(run->cpu, 1, config_log_slots))
		return false;
	slot = log_slot_at(run, run->cpu->log_head);
	if (!slot)
		return false;
	if (pkt->attrs.has_mac &&
	    eth + sizeof(struct ether_wire) <= (__u8 *)(long)skb->data_end) {
		macs.low = *(const __u32 *)eth;
		macs.high = *(const __u64 *)(eth + sizeof(__u32));
		flags |= LOG_HAS_MAC;
	}
	if (config_link != LINK_ETHERNET)
		kept.l2_bytes = 0;
	log_write_packet(slot, pkt, &kept, &macs, hash, run->now, flags);
	log_end(run, 1);
	return true;
}

/* Move the entry in the CPU's scratch to the overflow table. */
static __always_inline void store_overflow(const struct run *run)
{
	const struct flow_entry *entry = &run->scratch->entry;
	const struct wire_size size = {
		.packets = entry->tally.packets,
		.bytes = entry->tally.bytes,
	};

	if (overflow_add(run->generation, run->cpu_id))
		count_outcome(run, &entry->key, OUTCOME_LOST, &size);
}

/*
 * Finish the work that store_add() left. The program itself calls this: in nested functions, the
 * calls would need more stack and code.
 */
static __always_inline void store_finish(const struct run *run)
{
	__u64 cpu_id = run->cpu_id;

	if (run->due & DUE_OVERFLOW)
		store_overflow(run);
	if (run->due & DUE_NOTICE)
		bpf_ringbuf_output(&notices, &cpu_id, sizeof(cpu_id),
				   BPF_RB_FORCE_WAKEUP);
}

/* Move an entry of L1 to the log, or if that is full, to the overflow table. */
static __always_inline void store_evict(struct run *run,
					const struct flow_entry *entry)
{
	if (log_entry(run, entry))
		return;
	run->scratch->entry = *entry;
	run->due |= DUE_OVERFLOW;
}

/* Add a packet to the log, or if that is full, to the overflow table. */
static __always_inline void
store_append(struct run *run, const struct __sk_buff *skb,
	     const struct packet *pkt, const struct wire_size *size, __u64 hash)
{
	struct flow_entry *entry = &run->scratch->entry;
	bool is_short = is_log_short(pkt, size);

	if (is_short && log_packet(run, skb, pkt, size, hash))
		return;
	entry_start(run, entry, skb, pkt);
	entry_add(entry, pkt, size, run->now);
	if (is_short || !log_entry(run, entry))
		run->due |= DUE_OVERFLOW;
}

/* @return misses that an entry of L1 still survives */
static __always_inline __u32 credit_of(__u32 tag)
{
	return tag & ((1 << TAG_SHIFT) - 1);
}

/* Make an entry in L1. False: the entries there stay. */
static __always_inline bool
store_missed(struct run *run, struct flow_bucket *bucket, __u32 way,
	     const struct __sk_buff *skb, const struct packet *pkt,
	     const struct wire_size *size, __u64 hash)
{
	__u32 *tags = bucket->tags;
	struct flow_entry *entry;

	run->cpu->l1_misses++;
	if (tags[way] &&
	    (!tags[way ^ 1] || credit_of(tags[way ^ 1]) < credit_of(tags[way])))
		way ^= 1;
	if (credit_of(tags[way])) {
		tags[way]--;
		return false;
	}
	entry = &bucket->entries[way];
	if (tags[way]) {
		store_evict(run, entry);
		if (credit_of(tags[way ^ 1])) /* the neighbour ages too, or a once busy flow would stay forever */
			tags[way ^ 1]--;
	} else {
		run->now = clock_exact(run->cpu, run->now);
	}
	entry_start(run, entry, skb, pkt);
	entry_add(entry, pkt, size, run->now);
	tags[way] = tag_of(hash) << TAG_SHIFT | CREDIT_NEW;
	return true;
}

static __always_inline bool store_hit(struct run *run, struct flow_bucket *bucket,
				      __u32 way, const struct packet *pkt,
				      const struct wire_size *size, __u32 tag)
{
	struct flow_entry *entry = &bucket->entries[way];

	if (!has_tag(bucket, way, tag))
		return false;
	/* Computed once, and not again for each member. */
	asm volatile("" : "+r"(entry));
	if (!has_key(entry, &pkt->key))
		return false;
	bucket->tags[way] = tag << TAG_SHIFT | CREDIT_HIT;
	entry_add(entry, pkt, size, run->now);
	run->known = entry;
	return true;
}

static __always_inline void store_lose(struct run *run, const struct packet *pkt,
				       const struct wire_size *size)
{
	count(&run->counters->lost[LOST_NO_MEMORY], size->packets, size->bytes);
	count_outcome(run, &pkt->key, OUTCOME_LOST, size);
}

/* False: the packet is not in L1. */
static __always_inline bool store_in_l1(struct run *run,
					const struct __sk_buff *skb,
					const struct packet *pkt,
					const struct wire_size *size, __u64 hash)
{
	__u32 n_buckets = config_l1_buckets;
	__u32 index = (run->generation * config_cpus + run->cpu_id) * n_buckets +
		      scale_hash(hash >> 32, n_buckets);
	__u32 way = l1_way(hash);
	struct flow_bucket *bucket = bpf_map_lookup_elem(&l1_buckets, &index);
	__u32 tag = tag_of(hash);

	if (!bucket) { /* user space sized the array wrongly */
		store_lose(run, pkt, size);
		return true;
	}
	return store_hit(run, bucket, way, pkt, size, tag) ||
	       store_hit(run, bucket, way + 1, pkt, size, tag) ||
	       store_missed(run, bucket, way, skb, pkt, size, hash);
}

static __always_inline void store_add(struct run *run,
				      const struct __sk_buff *skb,
				      const struct packet *pkt,
				      const struct wire_size *size)
{
	__u64 hash = hash_key(&pkt->key, &config_secret);

	if (run->cpu->l1_bypass || !store_in_l1(run, skb, pkt, size, hash))
		store_append(run, skb, pkt, size, hash);
}

#endif
