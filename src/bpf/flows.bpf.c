// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tc hook: every packet of an interface, in either direction. */

/*
 * Nothing here looks into the kernel's own structs: without relocations, a
 * kernel without BTF will do.
 */
#define BPF_NO_PRESERVE_ACCESS_INDEX
#include "vmlinux.h"

#include "bpf/judge.h"
#include "bpf/sample.h"
#include "bpf/track/alerts.h"
#include "bpf/track/connections.h"
#include "bpf/track/packet.h"
#include "bpf/track/nat.h"
#include "bpf/parse/parse.h"
#include "bpf/parse/plain.h"
#include "bpf/store/store.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* As TC_ACT_UNSPEC for a clsact filter: the next filter decides. */
enum { VERDICT_NEXT = -1 };

static __always_inline void packet_start(struct packet *pkt,
					 const struct arrival *arrival)
{
	packet_init(pkt);
	pkt->key.ifindex = arrival->ifindex;
	pkt->key.netns = arrival->netns;
	pkt->key.vlan = arrival->vlan;
	pkt->key.flags = arrival->flags;
}

static __always_inline struct arrival arrival_of(const struct __sk_buff *skb,
						 __u8 direction)
{
	return (struct arrival){
		.ifindex = skb->ifindex,
		.netns = config_netns,
		.vlan = skb->vlan_present ? present_vlan(skb->vlan_tci) : 0,
		.flags = direction,
	};
}

/* *@ret_cut: more bytes of the frame may change the outcome. */
static __always_inline int parse_reach(const struct __sk_buff *skb,
				       struct scratch *scratch, bool *ret_cut)
{
	struct cursor c = cursor_of(skb);
	int ret = parse_packet(&c, &scratch->pkt, &scratch->outer, config_link,
			       tunnels(), &config_secret, ret_cut);

	if (ret)
		*ret_cut = ret == PARSE_CUT ||
			   reject_reason(ret) == UNPARSED_SHORT;
	return ret;
}

/* Headers outside the linear part are pulled into it, then parsed again. */
static __always_inline int parse_any(struct __sk_buff *skb,
				     struct scratch *scratch,
				     const struct arrival *arrival)
{
	int ret = 0;

	for (int attempt = 0; attempt < 2; attempt++) {
		bool cut = false;
		__u32 len = skb->len;

		packet_start(&scratch->pkt, arrival);
		ret = parse_reach(skb, scratch, &cut);
		if (!cut || skb->data_end - skb->data >= len)
			break;
		if (attempt ||
		    bpf_skb_pull_data(skb,
				      len < CURSOR_REACH ? len : CURSOR_REACH))
			break;
	}
	return ret;
}

static __always_inline struct buffer buffer_of(const struct __sk_buff *skb,
					       const struct arrival *arrival)
{
	struct buffer buf = {
		.len = skb->len,
		.tag_len = arrival->vlan ? sizeof(struct vlan_wire) : 0,
		.gso_size = skb->gso_size,
	};

	if (buf.gso_size)
		buf.gso_segs = skb->gso_segs;
	if (config_clock == CLOCK_PACKET)
		buf.len = skb->cb[2]; /* replay: the length before the snap */
	return buf;
}

/* Done late for the verifier's sake, on a lane of the key: see plain.h. */
static __always_inline void mark_again(struct packet *pkt,
				       const struct __sk_buff *skb)
{
	__u64 *lanes = (__u64 *)&pkt->key;

	if (skb->ingress_ifindex && is_origin(skb->ingress_ifindex))
		lanes[5] |= (__u64)KEY_AGAIN << 56;
}

/* Some packets of a buffer may be sampled: each has an equal share of the bytes. */
static __always_inline struct wire_size
sample_packets(struct run *run, const struct wire_size *size, __u32 rate,
	       __u32 interval)
{
	struct sampler *sampler = &run->cpu->samplers[rate];
	struct wire_size sampled = { 0 };
	__u32 random = 0;

	if (size->packets >= sampler->left)
		random = scale_hash(bpf_get_prandom_u32(), interval);
	sampled.packets = sampler_take(sampler, interval, size->packets, random);
	if (!sampled.packets || sampled.packets == size->packets)
		return sampled.packets ? *size : sampled;
	sampled.bytes = size->bytes * sampled.packets / size->packets;
	sampled.l2_bytes = size->l2_bytes * sampled.packets / size->packets;
	return sampled;
}

/*
 * Reduce @size to the sampled packets, and count the others, also for the rule that decided,
 * if there is one. False: none is sampled.
 */
static __always_inline bool sample(struct run *run, struct packet *pkt,
				   struct rule_count *rule, __u32 judgement,
				   struct wire_size *size)
{
	__u64 *lanes = (__u64 *)&pkt->key, rate = judged_rate(judgement);
	const volatile struct rate *of;
	struct wire_size sampled = { 0 }, others;
	__u32 interval;

	if (!rate)
		return true;
	asm volatile("" : "+r"(rate)); /* the verifier has to see the check */
	rate &= RATES - 1;
	lanes[5] |= key_rate_bits(rate);
	of = &config_rates[rate];
	interval = of->interval;
	if (of->mode == SAMPLE_PACKETS)
		sampled = sample_packets(run, size, rate, interval);
	else if (is_flow_sampled(&pkt->key, interval))
		return true;
	others.packets = size->packets - sampled.packets;
	others.bytes = size->bytes - sampled.bytes;
	count(&run->counters->sampled_out, others.packets, others.bytes);
	count_outcome(run, &pkt->key, OUTCOME_SAMPLED_OUT, &others);
	if (rule)
		count(&rule->sampled_out, others.packets, others.bytes);
	*size = sampled;
	return sampled.packets;
}

/* NULL: user space sized the array wrongly. */
static __always_inline struct rule_count *
count_rule(const struct run *run, __u32 judgement, const struct wire_size *size)
{
	__u32 index = run->cpu_id * RULE_SLOTS + judged_slot(judgement);
	struct rule_count *rule = bpf_map_lookup_elem(&rule_counts, &index);

	if (rule)
		count(&rule->decided, size->packets, size->bytes);
	return rule;
}

static __always_inline bool is_segment(const struct packet *pkt, int parsed)
{
	return pkt->key.proto == IP_PROTO_TCP &&
	       (parsed == PARSE_PLAIN ||
		(parsed != PARSE_CUT && pkt->fragment == FRAGMENT_NONE));
}

/* For a plain segment, only values that are not in the frame: track_plain() reads the rest. */
static __always_inline void note_packet(struct run *run,
					const struct __sk_buff *skb,
					const struct packet *pkt, int parsed,
					const struct wire_size *size)
{
	if (is_segment(pkt, parsed))
		segment_measure(&run->scratch->noted.segment, skb, pkt, size);
	if (parsed == PARSE_PLAIN)
		return;
	if (is_segment(pkt, parsed))
		note_segment(run, skb, pkt);
	else if (!parsed && pkt->fragment == FRAGMENT_NONE)
		note_echo(run, skb, pkt);
}

/* @parsed: the result of the parser. */
static __always_inline void observe_packet(struct run *run, struct __sk_buff *skb,
					   const struct arrival *arrival,
					   struct packet *pkt, int parsed,
					   __u32 judgement)
{
	struct buffer buf = buffer_of(skb, arrival);
	struct wire_size size = wire_size(pkt, &buf);
	struct rule_count *rule = NULL;

	count(&run->counters->seen, size.packets, size.bytes);
	if (config_has_rules)
		rule = count_rule(run, judgement, &size);
	if (!(judgement & JUDGED_ACCEPT)) {
		count(&run->counters->filtered, size.packets, size.bytes);
		count_outcome(run, &pkt->key, OUTCOME_FILTERED, &size);
		return;
	}
	if (parsed < 0) {
		count_unparsed(run, reject_reason(parsed), &size);
		count_outcome(run, &pkt->key, OUTCOME_UNPARSED, &size);
		return;
	}
	if (config_rtt) { /* all segments, whatever is sampled */
		run->now = clock_now(run->cpu, skb);
		note_packet(run, skb, pkt, parsed, &size);
	}
	if (config_is_sampled && !sample(run, pkt, rule, judgement, &size))
		return;
	if (arrival->flags & KEY_EGRESS)
		mark_again(pkt, skb);
	if (!config_rtt)
		run->now = clock_now(run->cpu, skb);
	store_add(run, skb, pkt, &size);
	if (config_has_nat && arrival->flags & KEY_EGRESS &&
	    nat_may_differ(run, pkt))
		run->cpu->nat_ns = run->now;
}

/*
 * Packets that are not plain are parsed and observed in functions of their own: plain packets pay
 * neither for their code nor for their stack, and no stack has both. The parser's result is in the
 * scratch, where the verifier does not distinguish results.
 */
static __noinline int parse_other(struct __sk_buff *skb, struct scratch *scratch,
				  __u8 direction, __u32 judgement)
{
	struct arrival arrival = arrival_of(skb, direction);

	scratch->parsed = parse_any(skb, scratch, &arrival);
	/* Read again: all outcomes are one case then, for the verifier. */
	asm volatile("" ::: "memory");
	if (judgement & JUDGED_ACCEPT && scratch->parsed >= 0 &&
	    scratch->pkt.fragment != FRAGMENT_NONE)
		track_fragment(&scratch->pkt);
	return 0;
}

/*
 * Find the state of the CPU again: a struct run of the caller would be in the caller's frame.
 * Returns run.due.
 */
static __noinline int observe_other(struct __sk_buff *skb, __u32 cpu_id,
				    __u32 generation, __u8 direction,
				    __u32 judgement)
{
	struct arrival arrival = arrival_of(skb, direction);
	struct run run;

	if (!run_find(&run, cpu_id, generation))
		return 0;
	observe_packet(&run, skb, &arrival, &run.scratch->pkt,
		       run.scratch->parsed, judgement);
	return run.due;
}

static __always_inline void observe(struct run *run, struct __sk_buff *skb,
				    __u8 direction)
{
	__u32 judgement = config_is_filtered ? judge(skb) : config_judgement;
	struct arrival arrival = arrival_of(skb, direction);
	struct cursor c = cursor_of(skb);
	struct packet *pkt = &run->scratch->pkt;

	if (config_rtt)
		run->scratch->noted.is_there = false;
	if (config_alerts)
		run->scratch->noted.wants_verdict = false;
	if (config_link == LINK_ETHERNET &&
	    parse_plain(&c, pkt, &arrival, tunnels())) {
		run->is_plain = true;
		observe_packet(run, skb, &arrival, pkt, PARSE_PLAIN, judgement);
		if (config_rtt && judgement & JUDGED_ACCEPT &&
		    is_segment(pkt, PARSE_PLAIN))
			track_segment(run, skb);
	} else {
		parse_other(skb, run->scratch, direction, judgement);
		run->due = observe_other(skb, run->cpu_id, run->generation,
					 direction, judgement);
	}
	store_finish(run);
	if (config_rtt && run->scratch->noted.is_there) {
		track_connection(run, skb);
		if (config_alerts && run->scratch->noted.segment.taken)
			alert_observe(run->cpu_id);
	}
	if (config_has_nat && direction & KEY_EGRESS && run->cpu->nat_ns) {
		if (nat_entry_of(skb))
			nat_note(skb, run->cpu_id, run->generation);
		run->cpu->nat_ns = 0;
	}
}

static __always_inline int hook(struct __sk_buff *skb, __u8 direction)
{
	struct run run;

	if (run_enter(&run)) {
		observe(&run, skb, direction);
		if (config_rtt && config_alerts &&
		    run.scratch->noted.wants_verdict)
			bpf_tail_call(skb, &alert_filters, config_link);
		run_exit(&run);
	} else if (config_lanes > 1 && !run.cpu) {
		count_unclaimed(skb);
	}
	return VERDICT_NEXT;
}

SEC("tc")
int netobs_ingress(struct __sk_buff *skb)
{
	return hook(skb, 0);
}

SEC("tc")
int netobs_egress(struct __sk_buff *skb)
{
	return hook(skb, KEY_EGRESS);
}
