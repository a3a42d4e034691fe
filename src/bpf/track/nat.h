/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports how the packets of a flow are translated. Only packets that leave have a conntrack entry
 * here: incoming packets pass this hook before the kernel looks for their entry. The entry has both
 * directions, so it also tells the tuple that came in. It is read for packets of flows that are neither
 * in L1 nor noted in this generation, and with SYNs, which may begin another connection of a flow.
 */
#ifndef NETOBS_BPF_TRACK_NAT_H
#define NETOBS_BPF_TRACK_NAT_H

#include "bpf/config.h"
#include "bpf/maps.h"
#include "bpf/nat_entry.h"
#include "bpf/parse/headers.h"
#include "bpf/store/run.h"

/* Marks in the lowest bits of a note. */
enum {
	NAT_IS_LOST = 1,  /* not reported, as the ring was full */
	NAT_IS_PLAIN = 2, /* not translated */
	NAT_MARKS = 3,
};

/* NULL: user space sized the array wrongly. */
static __always_inline struct nat_notes *
nat_notes_of(const struct run *run, __u32 generation, __u64 flow_hash)
{
	__u32 index = (generation * config_cpus + run->cpu_id) *
			      config_nat.seen_buckets +
		      (flow_hash & (config_nat.seen_buckets - 1));

	return bpf_map_lookup_elem(&nat_seen, &index);
}

static __always_inline bool nat_is_of(__u64 note, __u64 flow_hash)
{
	return note >> 32 == flow_hash >> 32;
}

/* @return the note of the flow; 0: none */
static __always_inline __u64 nat_find_note(const struct nat_notes *notes,
					   __u64 flow_hash)
{
	for (int i = 0; notes && i < NAT_SEEN_WAYS; i++)
		if (nat_is_of(notes->of[i], flow_hash))
			return notes->of[i];
	return 0;
}

/* Replace the flow's note, or add one: to a free way, else over one that is not translated. */
static __always_inline void nat_keep_note(struct nat_notes *notes, __u64 note)
{
	__u32 way = NAT_SEEN_WAYS;

	for (__u32 i = 0; i < NAT_SEEN_WAYS; i++) {
		if (nat_is_of(notes->of[i], note)) {
			notes->of[i] = note;
			return;
		}
		if (!notes->of[i] || notes->of[i] & NAT_IS_PLAIN)
			way = i;
	}
	if (way == NAT_SEEN_WAYS && note & NAT_IS_PLAIN)
		return;
	way = way < NAT_SEEN_WAYS ? way : note >> 32;
	notes->of[way & (NAT_SEEN_WAYS - 1)] = note;
}

/* @return whether a leaving packet's entry may have to be read, if it has one */
static __always_inline bool nat_may_differ(const struct run *run,
					   const struct packet *pkt)
{
	return !run->known || pkt->attrs.marks & TCP_SYN;
}

static __always_inline struct nat_counters *nat_counters_of(const struct run *run)
{
	__u32 index = run->cpu_id;

	return bpf_map_lookup_elem(&nat_counters, &index);
}

/*
 * @return whether the packet in the CPU's scratch needs no look at its entry. While nothing is
 * translated, no notes are kept: reading them, anywhere in memory, costs more than reading the
 * entry.
 */
static __always_inline bool nat_is_noted(const struct run *run)
{
	const struct nat_counters *counters = nat_counters_of(run);
	const struct packet *pkt = &run->scratch->pkt;
	__u64 hash, note;

	if (!counters || !counters->reported || pkt->attrs.marks & TCP_SYN)
		return false;
	hash = hash_key(&pkt->key, &config_secret);
	note = nat_find_note(nat_notes_of(run, run->generation, hash), hash);
	return note && !(note & NAT_IS_LOST);
}

/* For the kernel, the program's context is a struct sk_buff. */
#ifdef CONFIG_NAT
/* COMPAT(<6.2): there the programs for all options are used, see nat_layout.has_cast. */
struct sk_buff___nat {
	unsigned long _nfct;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *obj) __ksym;

static __always_inline __u64 nat_entry_of(struct __sk_buff *skb)
{
	const struct sk_buff___nat *buffer = bpf_cast_to_kern_ctx(skb);

	return buffer->_nfct;
}
#else
static __always_inline __u64 nat_entry_of(struct __sk_buff *skb)
{
	__u64 nfct = 0;

	bpf_probe_read_kernel(&nfct, sizeof(nfct),
			      (const void *)skb + config_nat.skb_nfct);
	return nfct;
}
#endif

/* @return whether the packet's tuple, which is after translation, differs from @before */
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

/* @return whether @back is the reverse of @there: nothing is translated */
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

/* Wake the reader when much is waiting; otherwise it reads with each drain. */
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

/* Report an entry. False: the ring is full. */
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

/* Untranslated flows are reported only if they were translated in this generation or the one before. */
static __always_inline bool nat_was_translated(const struct run *run, __u64 hash)
{
	__u64 now, before;

	now = nat_find_note(nat_notes_of(run, run->generation, hash), hash);
	before = nat_find_note(nat_notes_of(run, !run->generation, hash), hash);
	return (now && !(now & NAT_IS_PLAIN)) ||
	       (before && !(before & NAT_IS_PLAIN));
}

static __always_inline void nat_note_plain(const struct run *run, __u64 hash)
{
	struct nat_notes *notes = nat_notes_of(run, run->generation, hash);

	if (notes)
		nat_keep_note(notes, hash >> 32 << 32 | NAT_IS_PLAIN);
}

/* Note or report the entry of the leaving packet in the CPU's scratch. */
static __always_inline void nat_note_entry(const struct run *run,
					   struct __sk_buff *skb)
{
	const __u64 nfct = nat_is_noted(run) ? 0 : nat_entry_of(skb);
	const __u32 info = nfct & CT_INFO_MASK;
	const __u32 dir = nat_direction(info);
	const __u64 entry = nfct & ~(__u64)CT_INFO_MASK;
	const struct flow_key *key = &run->scratch->pkt.key;
	struct nat_counters *counters = nat_counters_of(run);
	struct nat_tuple before, back;
	struct nat_notes *notes;
	__u64 hash, note, known;
	bool is_plain;

	if (!entry || !counters || key->flags & KEY_NO_TRANSPORT ||
	    bpf_probe_read_kernel(&before, sizeof(before),
				  nat_address(entry, config_nat.tuples[dir])))
		return;
	if (key->tunnel) { /* the entry is that of the outer packet */
		if (bpf_probe_read_kernel(&back, sizeof(back),
					  nat_address(entry,
						      config_nat.tuples[!dir])))
			return;
		is_plain = nat_is_turned(&before, &back);
	} else if (!nat_is_own(key->proto, info, &before)) {
		return;
	} else {
		/* The identifier is not part of flows. */
		if (is_icmp(key->proto))
			before.src_port = 0;
		is_plain = !nat_is_translated(key, &before);
	}
	if (is_plain && !counters->reported)
		return;
	hash = hash_key(key, &config_secret);
	if (is_plain && (key->tunnel || !nat_was_translated(run, hash))) {
		nat_note_plain(run, hash);
		return;
	}
	notes = nat_notes_of(run, run->generation, hash);
	if (!notes)
		return;
	known = nat_find_note(notes, hash);
	note = hash >> 32 << 32 | (nat_hash_tuple(&before) & ~(__u32)NAT_MARKS);
	if (known == note)
		return;
	if (nat_report(run, skb, entry, info)) {
		nat_keep_note(notes, note);
		counters->reported++;
	} else if (known != (note | NAT_IS_LOST)) {
		/* Tried again with later packets, but counted once. */
		nat_keep_note(notes, note | NAT_IS_LOST);
		counters->lost++;
	}
}

/* Not inlined: packets of flows in L1 pay nothing for it. */
static __noinline int nat_note(struct __sk_buff *skb, __u32 cpu_id,
			       __u32 generation)
{
	struct run run;

	if (run_find(&run, cpu_id, generation))
		nat_note_entry(&run, skb);
	return 0;
}

#endif
