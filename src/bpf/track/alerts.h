/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules about connections, evaluated when a segment has given rise to a sample. A sample
 * that breaks no rule costs a comparison with the lowest threshold.
 */
#ifndef NETOBS_BPF_TRACK_ALERTS_H
#define NETOBS_BPF_TRACK_ALERTS_H

#include "connections.h"
#include "bpf/rtt/alert.h"

static __always_inline const struct alert_table *alert_table(void)
{
	__u32 first = 0;
	const struct alert_tables *all =
		bpf_map_lookup_elem(&alert_tables, &first);

	return all ? &all->tables[READ_ONCE(all->active) & 1] : NULL;
}

static __always_inline struct noted_segment *noted_of(__u32 cpu_id)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);

	return cpu ? &((struct scratch *)cpu->scratch)->noted : NULL;
}

/* NULL: there is none, since user space sized the array wrongly. */
static __always_inline struct alert_state *
alert_state_of(__u32 index, const struct connection *conn)
{
	struct alert_state *state = bpf_map_lookup_elem(&alert_states, &index);

	if (state && state->born_ns != conn->body->born_ns) {
		__builtin_memset(state, 0, sizeof(*state));
		state->born_ns = conn->body->born_ns;
	}
	return state;
}

/* ---- A rule that is broken -------------------------------------------------------- */

/* Where the hold of a rule is, or a new one would be: what ends first. */
static __always_inline void hold_find(const struct alert_hold_bucket *bucket,
				      __u64 id, __u32 tick,
				      volatile struct conn_choice *ret)
{
	ret->way = 0;
	ret->weight = 0;
	for (__u32 way = 0; way < ALERT_HOLD_WAYS; way++) {
		__s32 left = alert_hold_left(&bucket->holds[way], tick);
		__u32 weight = left > 0 ? ~0U - (__u32)left : ~0U - 1;

		if (bucket->holds[way].id == id)
			weight = ~0U;
		if (weight > ret->weight) {
			ret->weight = weight;
			ret->way = way;
		}
	}
}

/* NULL: the rule is silent for the connection. */
static __always_inline struct alert_hold *
hold_free(struct noted_segment *noted, __u64 born_ns, __u32 slot, __u64 *ret_id)
{
	__u32 at = alert_hold_bucket_of(noted->index, slot);
	struct alert_hold_bucket *bucket = bpf_map_lookup_elem(&alert_holds, &at);
	__u32 tick = noted->segment.tick;
	struct alert_hold *hold;

	*ret_id = alert_hold_id(noted->index, born_ns, slot);
	if (!bucket)
		return NULL;
	hold_find(bucket, *ret_id, tick, &noted->choice);
	hold = &bucket->holds[noted->choice.way & (ALERT_HOLD_WAYS - 1)];
	return hold->id == *ret_id && alert_hold_left(hold, tick) > 0 ? NULL :
									hold;
}

static __always_inline struct alert_count *alert_count_of(__u32 cpu_id, __u32 slot)
{
	__u32 index = cpu_id * ALERT_SLOTS + slot;

	return bpf_map_lookup_elem(&alert_counts, &index);
}

/* False: the reader is late. */
static __always_inline bool alert_report(const struct noted_segment *noted,
					 const struct connection *conn,
					 const struct alert_rule *rule)
{
	struct alert_event *event =
		bpf_ringbuf_reserve(&alert_events, sizeof(*event), 0);

	if (!event)
		return false;
	event->key = conn->body->key;
	event->time_ns = noted->segment.exact ? noted->segment.exact :
						noted->segment.now;
	event->born_ns = conn->body->born_ns;
	event->value = noted->sample.value;
	event->baseline = noted->sample.baseline;
	event->hits = noted->sample.hits;
	event->slot = rule->slot;
	event->metric = noted->sample.metric;
	event->dir = noted->sample.dir;
	event->client = conn_client(conn);
	__builtin_memset(event->reserved, 0, sizeof(event->reserved));
	event->reserved2 = 0;
	bpf_ringbuf_submit(event, 0);
	return true;
}

static __always_inline bool is_rule_for(const struct alert_rule *rule,
					const struct alert_table *table,
					__u32 index,
					const struct connection *conn)
{
	const struct alert_state *state;

	if (!rule->filter)
		return true;
	state = alert_state_of(index, conn);
	return state && state->epoch == table->epoch &&
	       state->verdict >> ((rule->filter - 1) & 63) & 1;
}

static __always_inline bool is_rule_broken(const struct alert_rule *rule,
					   struct noted_segment *noted,
					   const struct connection *conn)
{
	const struct alert_sample *sample = &noted->sample;
	const struct alert_state *state;

	noted->sample.hits = 1;
	if (rule->among <= 1)
		return true;
	state = alert_state_of(noted->index, conn);
	if (!state)
		return false;
	noted->sample.hits = alert_hits(state, sample->dir, sample->metric,
					rule->among, rule->threshold,
					sample->baseline, sample->is_ratio);
	return noted->sample.hits >= rule->needed;
}

/* The newest sample, noted->sample, is over the threshold of that rule. */
__noinline int alert_consider(__u32 cpu_id, __u32 number)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table();
	struct connection conn;
	const struct alert_rule *rule;
	struct alert_count *count;
	struct alert_limit *limit;
	struct alert_hold *hold;
	__u32 index, slot;
	__u64 now, id;

	if (!noted || !table)
		return 0;
	rule = &table->rules[number & (ALERT_RULES_MAX - 1)];
	index = noted->index;
	slot = rule->slot & (ALERT_SLOTS - 1);
	count = alert_count_of(cpu_id, slot);
	limit = bpf_map_lookup_elem(&alert_limits, &slot);
	if (!connection_at(index, &conn) || !count || !limit)
		return 0;
	if (!is_rule_for(rule, table, index, &conn) ||
	    !is_rule_broken(rule, noted, &conn))
		return 0;
	hold = hold_free(noted, conn.body->born_ns, slot, &id);
	if (!hold) {
		count->held++;
		return 0;
	}
	now = noted->segment.now;
	if (!alert_limit_pass(limit, rule->period_ns, rule->burst_ns, now)) {
		count->limited++;
		return 0;
	}
	if (!alert_report(noted, &conn, rule)) {
		count->lost++;
		return 0;
	}
	count->fired++;
	hold->until = noted->segment.tick + rule->hold;
	hold->id = rule->hold ? id : 0;
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------- */

/* All rules of a kind that the sample may break. */
static __always_inline void alert_compare(__u32 cpu_id,
					  const struct alert_table *table,
					  struct noted_segment *noted, __u32 kind)
{
	__u32 sample = noted->sample.value, baseline = noted->sample.baseline;
	bool is_ratio = noted->sample.is_ratio;
	__u32 first = table->first[kind & (2 * ALERT_METRICS - 1)];
	__u32 end = table->first[(kind & (2 * ALERT_METRICS - 1)) + 1];

	for (__u32 i = 0; i < ALERT_RULES_MAX; i++) {
		__u32 number = first + i;

		if (number >= end ||
		    !alert_is_over(
			    sample,
			    table->rules[number & (ALERT_RULES_MAX - 1)].threshold,
			    baseline, is_ratio))
			break;
		alert_consider(cpu_id, number);
	}
}

/* Compare noted->sample with all rules of its metric, then keep it if one needs that. */
__noinline int alert_sample(__u32 cpu_id)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table();
	struct connection conn;
	struct alert_state *state;
	__u32 metric, index;

	if (!noted || !table)
		return 0;
	metric = noted->sample.metric & (ALERT_METRICS - 1);
	noted->sample.is_ratio = false;
	alert_compare(cpu_id, table, noted, 2 * metric);
	noted->sample.is_ratio = true;
	if (noted->sample.baseline)
		alert_compare(cpu_id, table, noted, 2 * metric + 1);
	if (!(table->history >> metric & 1))
		return 0;
	index = noted->index;
	state = connection_at(index, &conn) ? alert_state_of(index, &conn) : NULL;
	if (state)
		alert_remember(state, noted->sample.dir, metric,
			       noted->sample.value);
	return 0;
}

/* Whether there are rules of the metric. */
static __always_inline bool alert_has(const struct alert_table *table,
				      enum alert_metric metric)
{
	return table->first[2 * metric] != table->first[2 * metric + 2];
}

static __always_inline void alert_take(__u32 cpu_id, struct noted_segment *noted,
				       enum alert_metric metric, __u32 dir,
				       __u32 value, __u32 baseline)
{
	noted->sample.metric = metric;
	noted->sample.dir = dir;
	noted->sample.value = value;
	noted->sample.baseline = baseline;
	alert_sample(cpu_id);
}

static __always_inline void alert_latency(__u32 cpu_id,
					  struct noted_segment *noted,
					  enum alert_metric metric, __u32 dir,
					  const struct conn_latency *latency)
{
	alert_take(cpu_id, noted, metric, dir, latency->last, conn_min(latency));
}

/* A window of the rate is over. */
static __always_inline void alert_window(__u32 cpu_id,
					 const struct alert_table *table,
					 struct noted_segment *noted,
					 const struct connection *conn)
{
	__u32 dir = noted->dir & 1, share = 0;
	struct alert_state *state;

	if (alert_has(table, ALERT_RATE) && noted->segment.window_bytes)
		alert_take(cpu_id, noted, ALERT_RATE, dir,
			   noted->segment.window_bytes, 0);
	if (!alert_has(table, ALERT_RETRANSMITS))
		return;
	state = alert_state_of(noted->index, conn);
	if (state && alert_loss_sample(&state->loss[dir], conn, dir,
				       noted->segment.tick, &share))
		alert_take(cpu_id, noted, ALERT_RETRANSMITS, dir, share, 0);
}

/*
 * Whether the filters are to be asked about the packet: one of the client, without a verdict of
 * these filters.
 */
static __always_inline bool lacks_verdict(const struct alert_table *table,
					  const struct noted_segment *noted,
					  const struct connection *conn)
{
	const struct alert_state *state;

	if (!table->n_filters || (noted->dir & 1) != conn_client(conn))
		return false;
	state = alert_state_of(noted->index, conn);
	return state && state->epoch != table->epoch;
}

/* What the segment at hand gave rise to: noted->segment.taken, of the connection at its index. */
__noinline int alert_look(__u32 cpu_id)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table();
	struct connection conn;
	__u32 index, taken, dir;

	if (!noted || !table || !table->n)
		return 0;
	index = noted->index;
	if (!connection_at(index, &conn))
		return 0;
	taken = noted->segment.taken;
	dir = noted->dir & 1;
	noted->wants_verdict = lacks_verdict(table, noted, &conn);
	if (taken & TAKEN_RTT && alert_has(table, ALERT_RTT))
		alert_latency(cpu_id, noted, ALERT_RTT, !dir,
			      &conn.body->stats[!dir].rtt);
	if (taken & TAKEN_TURN && alert_has(table, ALERT_APP_LATENCY))
		alert_latency(cpu_id, noted, ALERT_APP_LATENCY, !dir,
			      &conn.body->stats[dir].turn);
	if (taken & TAKEN_WINDOW)
		alert_window(cpu_id, table, noted, &conn);
	return 0;
}

#endif
