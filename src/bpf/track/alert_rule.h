/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One rule about connections: decides whether a sample breaks it, and reports, holds or limits. */
#ifndef NETOBS_BPF_TRACK_ALERT_RULE_H
#define NETOBS_BPF_TRACK_ALERT_RULE_H

#include "connections.h"
#include "bpf/apart.h"
#include "bpf/rtt/alert.h"

static __always_inline struct noted_segment *noted_of(__u32 cpu_id)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);
	struct noted_segment *noted;

	if (!cpu)
		return NULL;
	noted = &((struct scratch *)cpu->scratch)->noted;
	/* The verifier allows no sum with what may be NULL: it is made here, and not before the branch. */
	barrier_var(noted);
	return noted;
}

static __always_inline const struct alert_tables *alert_tables_of_all(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&alert_tables, &first);
}

/* The table that alert_begin_segment() chose; user space may have switched to the other since. */
static __always_inline const struct alert_table *
alert_table(const struct noted_segment *noted)
{
	const struct alert_tables *all = alert_tables_of_all();

	return all ? &all->tables[noted->rules & 1] : NULL;
}

/* Another connection has the slot now: clear the alert state of the previous one. */
__noinline int alert_begin(__u32 index, __u64 born_ns)
{
	struct alert_state *state = state_at(index);

	VERIFIED_APART(APART_ALERTS, 2);
	if (!state)
		return 0;
	__builtin_memset(state, 0, sizeof(*state));
	state->born_ns = born_ns;
	return 0;
}

/* NULL: user space sized the array wrongly. */
static __always_inline struct alert_state *alert_state_at(__u32 index,
							  __u64 born_ns)
{
	struct alert_state *state = state_at(index);

	if (state && state->born_ns != born_ns)
		alert_begin(index, born_ns);
	return state;
}

/* Alert state of the connection at @index. NULL: it has no body, or user space sized the array wrongly. */
static __always_inline struct alert_state *alert_state_of(__u32 index)
{
	const struct conn_body *body = body_at(index);

	return body ? alert_state_at(index, body->born_ns) : NULL;
}

/* Find the hold with @id in its bucket, or else the one to replace: the hold that ends first. */
static __always_inline void hold_choose(const struct alert_hold_bucket *bucket,
					__u64 id, __u32 tick,
					volatile struct conn_choice *ret)
{
	ret->way = 0;
	ret->weight = 0;
	for (__u32 way = 0; way < ALERT_HOLD_WAYS; way++) {
		__u32 left = alert_hold_left(&bucket->holds[way], tick);
		__u32 weight = left ? ~0U - left : ~0U - 1;

		if (bucket->holds[way].id == id)
			weight = ~0U;
		if (weight > ret->weight) {
			ret->weight = weight;
			ret->way = way;
		}
	}
}

/* @return the hold of a rule and connection, or one to replace; NULL: user space sized the array wrongly */
static __always_inline struct alert_hold *
hold_find(struct noted_segment *noted, __u64 born_ns, __u32 slot, __u64 *ret_id)
{
	__u32 at = alert_hold_bucket_of(noted->index, slot);
	struct alert_hold_bucket *bucket = bpf_map_lookup_elem(&alert_holds, &at);

	*ret_id = alert_hold_id(noted->index, born_ns, slot);
	if (!bucket)
		return NULL;
	hold_choose(bucket, *ret_id, noted->segment.tick, &noted->choice);
	return &bucket->holds[noted->choice.way & (ALERT_HOLD_WAYS - 1)];
}

static __always_inline struct alert_count *alert_count_of(__u32 cpu_id, __u32 slot)
{
	__u32 index = cpu_id * ALERT_SLOTS + slot;

	return bpf_map_lookup_elem(&alert_counts, &index);
}

/* False: the ring buffer is full. */
static __always_inline bool alert_report(const struct noted_segment *noted,
					 const struct alert_rule *rule)
{
	struct connection conn = { .head = head_at(noted->index) };
	const struct conn_body *body = body_at(noted->index);
	struct alert_event *event =
		body ? bpf_ringbuf_reserve(&alert_events, sizeof(*event), 0) :
		       NULL;

	if (!event)
		return false;
	event->key = body->key;
	event->time_ns = noted->segment.exact ? noted->segment.exact :
						noted->segment.now;
	event->born_ns = body->born_ns;
	event->value = noted->sample.value;
	event->baseline = noted->sample.baseline;
	event->hits = noted->sample.hits;
	event->slot = rule->slot;
	event->metric = noted->sample.metric;
	event->dir = noted->sample.dir;
	event->client = conn.head ? conn_client(&conn) : 0;
	__builtin_memset(event->reserved, 0, sizeof(event->reserved));
	event->life = rule->life;
	bpf_ringbuf_submit(event, 0);
	return true;
}

static __always_inline bool is_rule_for(const struct alert_rule *rule,
					const struct alert_table *table,
					const struct alert_state *state)
{
	return !rule->filter || (state->epoch == table->epoch &&
				 state->verdict >> ((rule->filter - 1) & 63) & 1);
}

static __always_inline bool is_rule_broken(const struct alert_rule *rule,
					   const struct alert_state *state,
					   struct noted_segment *noted)
{
	const struct alert_sample *sample = &noted->sample;

	if (rule->among <= 1)
		return true;
	noted->sample.hits = alert_hits(state, sample->dir, sample->metric,
					rule->among, rule->threshold,
					sample->baseline, sample->is_ratio);
	return noted->sample.hits >= rule->needed;
}

/* Make the rule silent about the connection, which it has reported. */
static __always_inline void alert_silence(struct noted_segment *noted,
					  struct alert_state *state,
					  const struct alert_rule *rule)
{
	struct alert_hold *hold;
	__u64 id;

	hold = hold_find(noted, state->born_ns, rule->slot & (ALERT_SLOTS - 1),
			 &id);
	if (!hold)
		return;
	hold->until = noted->segment.tick + rule->hold;
	hold->life = rule->life;
	hold->id = id;
	WRITE_ONCE(state->alerted[noted->sample.metric & (ALERT_METRICS - 1)], 1);
}

/* @return ticks for which the rule is still silent about the connection; 0: it is not */
static __always_inline __s32 alert_silent(struct noted_segment *noted,
					  const struct alert_state *state,
					  const struct alert_rule *rule)
{
	const struct alert_hold *hold;
	__u64 id;

	if (!rule->hold || !noted->sample.may_hold)
		return 0;
	hold = hold_find(noted, state->born_ns, rule->slot & (ALERT_SLOTS - 1),
			 &id);
	if (!hold || hold->id != id || hold->life != rule->life)
		return 0;
	return alert_hold_left(hold, noted->segment.tick);
}

enum { RULE_LIMITED = -1 };

/* NULL: user space sized the array wrongly. */
static __always_inline struct alert_exhausted *
alert_exhausted_of(__u32 cpu_id, const struct alert_sample *sample)
{
	__u32 kind = (sample->metric & (ALERT_METRICS - 1)) * 2 +
		     (sample->is_ratio & 1);
	__u32 index = cpu_id * 2 * ALERT_METRICS + kind;

	return bpf_map_lookup_elem(&alert_exhausted, &index);
}

static __always_inline void
note_limited(__u32 cpu_id, const struct noted_segment *noted, __u64 until_ns)
{
	struct alert_exhausted *exhausted =
		alert_exhausted_of(cpu_id, &noted->sample);

	if (exhausted && until_ns < exhausted->soonest_ns)
		exhausted->soonest_ns = until_ns;
}

/* Handle a sample that broke the rule. @return as alert_consider() */
static __always_inline __s32 rule_broken(__u32 cpu_id,
					 struct noted_segment *noted,
					 struct alert_state *state,
					 const struct alert_rule *rule,
					 struct alert_count *count)
{
	__s32 left = alert_silent(noted, state, rule);
	__u32 slot = rule->slot & (ALERT_SLOTS - 1);
	struct alert_limit *limit;

	if (left) {
		count->held++;
		return left;
	}
	limit = bpf_map_lookup_elem(&alert_limits, &slot);
	if (!limit)
		return 0;
	if (!alert_limit_pass(limit, rule->period_ns, rule->burst_ns,
			      noted->segment.now)) {
		count->limited++;
		note_limited(cpu_id, noted, limit->next_ns - rule->burst_ns);
		return RULE_LIMITED;
	}
	if (!alert_report(noted, rule)) {
		count->lost++;
		return 0;
	}
	count->fired++;
	if (rule->hold)
		alert_silence(noted, state, rule);
	return rule->hold;
}

/*
 * Consider rule @number for noted->sample, which is over its threshold; the alert state is that of
 * the connection. @return ticks for which the rule is silent about the connection from now on;
 * RULE_LIMITED: it has reached its limit.
 */
__noinline int alert_consider(__u32 cpu_id, __u32 number)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table;
	const struct alert_rule *rule;
	struct alert_state *state;
	struct alert_count *count;

	VERIFIED_APART(APART_ALERTS, 2);
	if (!noted)
		return 0;
	table = alert_table(noted);
	if (!table)
		return 0;
	rule = &table->rules[number & (ALERT_RULES_MAX - 1)];
	count = alert_count_of(cpu_id, rule->slot & (ALERT_SLOTS - 1));
	state = state_at(noted->index);
	if (!state || !count)
		return 0;
	noted->sample.hits = 1;
	if (rule->among > 1 || rule->filter) {
		if (!is_rule_for(rule, table, state) ||
		    !is_rule_broken(rule, state, noted))
			return 0;
		count->broken++;
	}
	return rule_broken(cpu_id, noted, state, rule, count);
}

#endif
