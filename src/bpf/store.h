/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow store: a direct-mapped array per CPU (L1) in front of a shared hash
 * (L2), twice, one per generation. A repeated flow costs an array slot; of two
 * flows that want the same slot the older moves to L2; what L2 refuses goes to
 * the ring buffer; what that refuses is counted as lost.
 */
#ifndef NETOBS_BPF_STORE_H
#define NETOBS_BPF_STORE_H

#include "clock.h"
#include "counters.h"
#include "hash.h"

enum { EEXIST = 17, ENOMEM = 12 };

static __always_inline bool has_key(const struct flow_entry *entry,
				    const struct flow_key *key)
{
	const __u64 *a = (const __u64 *)&entry->key, *b = (const __u64 *)key;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
		 (a[4] ^ b[4]) | (a[5] ^ b[5]) | (a[6] ^ b[6]) | (a[7] ^ b[7]));
}

/* Other CPUs may merge into @to at the same time. */
static __always_inline void merge(struct flow_tally *to,
				  const struct flow_tally *from)
{
	__u16 news = from->marks & ~to->marks;

	__sync_fetch_and_add(&to->packets, from->packets);
	__sync_fetch_and_add(&to->bytes, from->bytes);
	__sync_fetch_and_add(&to->l2_bytes, from->l2_bytes);
	if (from->last_ns > to->last_ns) {
		to->last_ns = from->last_ns;
		to->tos = from->tos;
	}
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->ttl_min < to->ttl_min)
		to->ttl_min = from->ttl_min;
	if (from->ttl_max > to->ttl_max)
		to->ttl_max = from->ttl_max;
	if (!news)
		return;
	for (int i = 0; i < FLOW_MARKS; i++)
		if (news & 1 << i)
			to->merged_marks[i] = 1;
}

/* Whether user space is to be woken: once per generation, the rest is waste. */
static __always_inline bool announce(struct table_state *state)
{
	if (state->announced)
		return false;
	state->announced = 1;
	return true;
}

static __always_inline void note_insert(__u32 generation)
{
	struct table_state *state =
		bpf_map_lookup_elem(&table_states, &generation);
	__u32 notice[2] = { EVENT_WATERMARK, generation };

	if (!state)
		return;
	__sync_fetch_and_add(&state->inserts, 1);
	if (READ_ONCE(state->inserts) >= state->watermark && announce(state))
		bpf_ringbuf_output(&events, notice, sizeof(notice),
				   BPF_RB_FORCE_WAKEUP);
}

/* User space empties the ring when it drains; it is told when that is late. */
static __always_inline __u64 ring_wake_flag(__u32 generation)
{
	struct table_state *state =
		bpf_map_lookup_elem(&table_states, &generation);

	if (!state ||
	    bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < config_ring_wake)
		return BPF_RB_NO_WAKEUP;
	return announce(state) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void spill(struct run *run,
				  const struct flow_entry *entry, long error)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		count(&run->counters->lost[error == -ENOMEM ? LOST_NO_MEMORY :
							      LOST_TABLE_FULL],
		      entry->tally.packets, entry->tally.bytes);
		return;
	}
	event->type = EVENT_ENTRY;
	event->generation = run->generation;
	event->entry = *entry;
	bpf_ringbuf_submit(event, ring_wake_flag(run->generation));
}

/* Move @entry out of L1. */
static __always_inline void store_evict(struct run *run,
					const struct flow_entry *entry)
{
	void *table = bpf_map_lookup_elem(&l2_tables, &run->generation);
	struct flow_tally *known;
	long error;

	if (!table) {
		spill(run, entry, -ENOMEM);
		return;
	}
	known = bpf_map_lookup_elem(table, &entry->key);
	if (known) {
		merge(known, &entry->tally);
		return;
	}
	error = bpf_map_update_elem(table, &entry->key, &entry->tally,
				    BPF_NOEXIST);
	if (!error) {
		note_insert(run->generation);
		return;
	}
	/* Another CPU was faster. */
	known = error == -EEXIST ? bpf_map_lookup_elem(table, &entry->key) : NULL;
	if (known)
		merge(known, &entry->tally);
	else
		spill(run, entry, error);
}

static __always_inline void entry_set_macs(struct flow_tally *tally,
					   const struct __sk_buff *skb)
{
	const struct ether_wire *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) <= (void *)(long)skb->data_end)
		__builtin_memcpy(tally->macs, eth, sizeof(tally->macs));
}

static __always_inline void entry_set_outer(struct flow_tally *tally,
					    const struct packet *pkt)
{
	tally->outer_src_port = pkt->outer_src_port;
	tally->outer_dst_port = pkt->outer_dst_port;
	tally->outer_src = pkt->outer_src;
	tally->outer_dst = pkt->outer_dst;
}

static __always_inline void entry_start(struct flow_entry *entry,
					const struct __sk_buff *skb,
					const struct packet *pkt, __u64 now)
{
	struct flow_tally *tally = &entry->tally;

	entry->key = pkt->key;
	tally->packets = 0;
	tally->bytes = 0;
	tally->l2_bytes = 0;
	tally->first_ns = now;
	tally->last_ns = now;
	tally->marks = 0;
	tally->ttl_min = pkt->ttl;
	tally->ttl_max = pkt->ttl;
	tally->has_mac = pkt->has_mac;
	__builtin_memset(tally->merged_marks, 0, sizeof(tally->merged_marks));
	if (pkt->has_mac)
		entry_set_macs(tally, skb);
	if (pkt->key.tunnel)
		entry_set_outer(tally, pkt);
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
	tally->l2_bytes += pkt->has_mac ? size->l2_bytes : 0;
	if (config_clock == CLOCK_PACKET) /* files need not be in order */
		entry_stretch(tally, now);
	else
		tally->last_ns = now;
	tally->marks |= pkt->marks;
	tally->tos = pkt->tos;
	if (pkt->ttl < tally->ttl_min)
		tally->ttl_min = pkt->ttl;
	if (pkt->ttl > tally->ttl_max)
		tally->ttl_max = pkt->ttl;
}

static __always_inline void store_add(struct run *run,
				      const struct __sk_buff *skb,
				      const struct packet *pkt,
				      const struct wire_size *size)
{
	__u32 slot = hash_key(&pkt->key) >> (64 - config_l1_bits);
	__u32 index = ((run->generation * config_cpus + run->cpu_id)
		       << config_l1_bits) +
		      slot;
	struct flow_entry *entry = bpf_map_lookup_elem(&l1_entries, &index);

	if (!entry) { /* user space sized the array wrongly */
		count(&run->counters->lost[LOST_NO_MEMORY], size->packets,
		      size->bytes);
		return;
	}
	if (!entry->tally.packets) {
		run->now = clock_exact(run->cpu, run->now);
		entry_start(entry, skb, pkt, run->now);
	} else if (!has_key(entry, &pkt->key)) {
		store_evict(run, entry);
		entry_start(entry, skb, pkt, run->now);
	}
	entry_add(entry, pkt, size, run->now);
}

#endif
