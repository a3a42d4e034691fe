/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules about connections, evaluated when a segment has given rise to a sample. A sample
 * that breaks no rule costs a comparison with the lowest threshold.
 */
#ifndef NETOBS_BPF_TRACK_ALERTS_H
#define NETOBS_BPF_TRACK_ALERTS_H

#include "connections.h"
#include "bpf/apart.h"
#include "bpf/rtt/alert.h"

static __always_inline struct noted_segment *noted_of(__u32 cpu_id)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &cpu_id);

	return cpu ? &((struct scratch *)cpu->scratch)->noted : NULL;
}

static __always_inline const struct alert_tables *alert_tables_of_all(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&alert_tables, &first);
}

/* That alert_look() has chosen: other rules may be in use since. */
static __always_inline const struct alert_table *
alert_table(const struct noted_segment *noted)
{
	const struct alert_tables *all = alert_tables_of_all();

	return noted && all ? &all->tables[noted->rules & 1] : NULL;
}

/* NULL: there is none, since user space sized the array wrongly. */
static __always_inline struct alert_state *alert_state_of(__u32 index)
{
	const struct conn_body *body = bpf_map_lookup_elem(&conn_bodies, &index);
	struct alert_state *state = bpf_map_lookup_elem(&alert_states, &index);

	if (!body || !state)
		return NULL;
	if (state->born_ns != body->born_ns) {
		__builtin_memset(state, 0, sizeof(*state));
		state->born_ns = body->born_ns;
	}
	return state;
}

/* ---- A rule that is broken -------------------------------------------------------- */

/* Where the hold of a rule is, or a new one would be: what ends first. */
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

/* Of a rule and the connection, or which it may take; NULL: user space sized the array wrongly. */
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
	event->life = rule->life;
	bpf_ringbuf_submit(event, 0);
	return true;
}

static __always_inline bool is_rule_for(const struct alert_rule *rule,
					const struct alert_table *table,
					__u32 index)
{
	const struct alert_state *state;

	if (!rule->filter)
		return true;
	state = alert_state_of(index);
	return state && state->epoch == table->epoch &&
	       state->verdict >> ((rule->filter - 1) & 63) & 1;
}

static __always_inline bool is_rule_broken(const struct alert_rule *rule,
					   struct noted_segment *noted)
{
	const struct alert_sample *sample = &noted->sample;
	const struct alert_state *state;

	noted->sample.hits = 1;
	if (rule->among <= 1)
		return true;
	state = alert_state_of(noted->index);
	if (!state)
		return false;
	noted->sample.hits = alert_hits(state, sample->dir, sample->metric,
					rule->among, rule->threshold,
					sample->baseline, sample->is_ratio);
	return noted->sample.hits >= rule->needed;
}

/* The rule has reported the connection. */
static __always_inline void alert_silence(struct noted_segment *noted,
					  const struct connection *conn,
					  const struct alert_rule *rule)
{
	struct alert_state *state = alert_state_of(noted->index);
	struct alert_hold *hold;
	__u64 id;

	hold = hold_find(noted, conn->body->born_ns,
			 rule->slot & (ALERT_SLOTS - 1), &id);
	if (!hold || !state)
		return;
	hold->until = noted->segment.tick + rule->hold;
	hold->life = rule->life;
	hold->id = id;
	WRITE_ONCE(state->alerted[noted->sample.metric & (ALERT_METRICS - 1)], 1);
}

/* Ticks for which the rule is silent for the connection; 0: it is not. */
static __always_inline __s32 alert_silent(struct noted_segment *noted,
					  const struct connection *conn,
					  const struct alert_rule *rule)
{
	const struct alert_hold *hold;
	__u64 id;

	if (!rule->hold || !noted->sample.may_hold)
		return 0;
	hold = hold_find(noted, conn->body->born_ns,
			 rule->slot & (ALERT_SLOTS - 1), &id);
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

/* What becomes of a sample that broke the rule: as alert_consider() returns it. */
static __always_inline __s32 rule_broken(__u32 cpu_id,
					 struct noted_segment *noted,
					 const struct connection *conn,
					 const struct alert_rule *rule,
					 struct alert_limit *limit,
					 struct alert_count *count)
{
	__s32 left = alert_silent(noted, conn, rule);

	if (left) {
		count->held++;
		return left;
	}
	if (!alert_limit_pass(limit, rule->period_ns, rule->burst_ns,
			      noted->segment.now)) {
		count->limited++;
		note_limited(cpu_id, noted, limit->next_ns - rule->burst_ns);
		return RULE_LIMITED;
	}
	if (!alert_report(noted, conn, rule)) {
		count->lost++;
		return 0;
	}
	count->fired++;
	if (rule->hold)
		alert_silence(noted, conn, rule);
	return rule->hold;
}

/*
 * The newest sample, noted->sample, is over the threshold of that rule. Returns the ticks for which
 * the rule is silent for the connection from now on; RULE_LIMITED: it has reached its limit.
 */
__noinline int alert_consider(__u32 cpu_id, __u32 number)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table(noted);
	struct connection conn;
	const struct alert_rule *rule;
	struct alert_count *count;
	struct alert_limit *limit;
	__u32 slot;

	VERIFIED_APART(APART_ALERTS, 2);
	if (!noted || !table)
		return 0;
	rule = &table->rules[number & (ALERT_RULES_MAX - 1)];
	slot = rule->slot & (ALERT_SLOTS - 1);
	count = alert_count_of(cpu_id, slot);
	limit = bpf_map_lookup_elem(&alert_limits, &slot);
	if (!connection_at(noted->index, &conn) || !count || !limit)
		return 0;
	if (rule->among > 1 || rule->filter) {
		if (!is_rule_for(rule, table, noted->index) ||
		    !is_rule_broken(rule, noted))
			return 0;
		count->broken++;
	} else {
		noted->sample.hits = 1;
	}
	return rule_broken(cpu_id, noted, &conn, rule, limit, count);
}

/* ---- Samples ---------------------------------------------------------------------- */

/* Of the rules from @first to @end, the first one that the sample is not over. */
static __always_inline __u32 alert_search(const struct alert_table *table,
					  const struct alert_sample *sample,
					  __u32 first, __u32 end)
{
	for (__u32 i = 0; i < 8; i++) { /* 2^7 of them are the most */
		__u32 middle = (first + end) / 2;

		if (first >= end)
			break;
		if (alert_is_over(sample->value,
				  table->thresholds[middle & (ALERT_RULES_MAX - 1)],
				  sample->baseline, sample->is_ratio))
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Where the rules of a kind begin, and where those end that the sample is over. */
struct alert_range {
	__u32 first, end;
};

static __always_inline struct alert_range
alert_range_of(const struct alert_table *table,
	       const struct alert_sample *sample, __u32 kind)
{
	__u32 first = table->first[kind & (ALERT_KINDS - 1)];
	__u32 end = table->first[(kind & (ALERT_KINDS - 1)) + 1];

	if (first < end)
		end = alert_search(table, sample, first, end);
	return (struct alert_range){ first, end };
}

/* Whether the sample breaks the first rule of a kind. */
static __always_inline bool is_any_over(const struct alert_table *table,
					const struct alert_sample *sample,
					__u32 kind)
{
	__u32 first = table->first[kind & (ALERT_KINDS - 1)];

	return first < table->first[(kind & (ALERT_KINDS - 1)) + 1] &&
	       alert_is_over(sample->value,
			     table->thresholds[first & (ALERT_RULES_MAX - 1)],
			     sample->baseline, sample->is_ratio);
}

static __always_inline void note_state(struct noted_segment *noted,
				       const struct alert_state *state)
{
	noted->sample.may_hold =
		state->alerted[noted->sample.metric & (ALERT_METRICS - 1)];
}

/* Rules that need more of a connection than the sample. */
__noinline int alert_compare(__u32 cpu_id, __u32 kind)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table(noted);
	struct alert_state *state;
	struct alert_range range;

	if (!noted || !table)
		return 0;
	VERIFIED_APART(APART_ALERTS, 2);
	range = alert_range_of(table, &noted->sample, kind);
	if (range.first >= range.end)
		return 0;
	state = alert_state_of(noted->index);
	if (!state)
		return 0;
	alert_renew(state, table, noted->sample.dir, noted->sample.metric);
	note_state(noted, state);
	for (__u32 i = 0; i < ALERT_RULES_MAX; i++) {
		if (range.first + i >= range.end)
			break;
		alert_consider(cpu_id, range.first + i);
	}
	return 0;
}

/* Whether all rules up to @last are silent for the connection. */
static __always_inline bool is_quiet(union alert_quiet_word known,
				     const struct alert_table *table,
				     __u32 last, __u32 tick)
{
	return known.quiet.serial == table->serial && known.quiet.last >= last &&
	       alert_ticks_left(known.quiet.until, tick);
}

/* Whether all rules up to @last have reached their limit, and none of them is silent before. */
static __always_inline bool is_exhausted(const struct alert_exhausted *known,
					 const struct alert_table *table,
					 const struct noted_segment *noted,
					 __u32 last)
{
	return !noted->sample.may_hold && known->serial == table->serial &&
	       known->last >= last && noted->segment.now < known->until_ns;
}

/* Returns the least of what alert_consider() does; RULE_LIMITED: all of them do. */
static __always_inline __s32 alert_consider_all(__u32 cpu_id,
						struct alert_range range)
{
	__s32 least = 0x7fffffff, most = RULE_LIMITED;

	for (__u32 i = 0; i < ALERT_RULES_MAX; i++) {
		__s32 one;

		if (range.first + i >= range.end)
			break;
		one = alert_consider(cpu_id, range.first + i);
		if (one < least)
			least = one;
		if (one > most)
			most = one;
	}
	return least < 0 && most >= 0 ? 0 : least;
}

/*
 * Plain rules. As long as all that a sample breaks are silent for its connection, or have reached
 * their limits, a look at one place shows that, and one count stands for all of them.
 */
__noinline int alert_compare_plain(__u32 cpu_id, __u32 kind)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table(noted);
	struct alert_exhausted *exhausted;
	union alert_quiet_word quiet;
	struct alert_prefix *prefix;
	struct alert_state *state;
	struct alert_range range;
	__u32 index, last;
	__s32 left;

	if (!noted || !table)
		return 0;
	VERIFIED_APART(APART_ALERTS, 2);
	range = alert_range_of(table, &noted->sample, kind);
	if (range.first >= range.end)
		return 0;
	last = range.end - 1;
	index = (cpu_id * 2 + (table->number & 1)) * ALERT_RULES_MAX + last;
	prefix = bpf_map_lookup_elem(&alert_prefixes, &index);
	kind = kind / 2 & (2 * ALERT_METRICS - 1);
	exhausted = alert_exhausted_of(cpu_id, &noted->sample);
	state = alert_state_of(noted->index);
	if (!prefix || !exhausted || !state)
		return 0;
	prefix->broken++;
	quiet.word = READ_ONCE(state->quiet[kind]);
	if (is_quiet(quiet, table, last, noted->segment.tick)) {
		prefix->held++;
		return 0;
	}
	note_state(noted, state);
	if (is_exhausted(exhausted, table, noted, last)) {
		prefix->limited++;
		return 0;
	}
	exhausted->soonest_ns = ~0ULL;
	left = alert_consider_all(cpu_id, range);
	if (left == RULE_LIMITED) {
		exhausted->until_ns = exhausted->soonest_ns;
		exhausted->last = last;
		exhausted->serial = table->serial;
		return 0;
	}
	quiet.quiet = (struct alert_quiet){
		.until = noted->segment.tick + left,
		.last = last,
		.serial = left > 0 ? table->serial : 0,
	};
	WRITE_ONCE(state->quiet[kind], quiet.word);
	return 0;
}

/* Compare noted->sample with all rules of its metric, then keep it if one needs that. */
static __always_inline void alert_sample(__u32 cpu_id,
					 struct noted_segment *noted,
					 const struct alert_table *table)
{
	__u32 metric = noted->sample.metric & (ALERT_METRICS - 1), kind;
	struct alert_state *state;

	for (__u32 ratio = 0; ratio < 2; ratio++) {
		if (ratio && !noted->sample.baseline)
			break;
		noted->sample.is_ratio = ratio;
		kind = alert_kind(metric, ratio, false);
		if (is_any_over(table, &noted->sample, kind))
			alert_compare(cpu_id, kind);
		kind = alert_kind(metric, ratio, true);
		if (is_any_over(table, &noted->sample, kind))
			alert_compare_plain(cpu_id, kind);
	}
	if (!(table->history >> metric & 1))
		return;
	state = alert_state_of(noted->index);
	if (!state)
		return;
	alert_renew(state, table, noted->sample.dir, metric);
	alert_remember(state, noted->sample.dir, metric, noted->sample.value);
}

/* Whether there are rules of the metric. */
static __always_inline bool alert_has(const struct alert_table *table,
				      enum alert_metric metric)
{
	return table->first[alert_kind(metric, false, false)] !=
	       table->first[alert_kind(metric + 1, false, false)];
}

/* The value of a sample. False: there is none. */
static __always_inline bool take_value(struct noted_segment *noted,
				       const struct alert_table *table,
				       const struct connection *conn,
				       __u32 metric)
{
	struct alert_sample *sample = &noted->sample;
	const struct conn_stats *stats = conn->body->stats;
	__u32 dir = noted->dir & 1;
	struct alert_state *state;

	sample->metric = metric;
	sample->dir =
		metric == ALERT_RTT || metric == ALERT_APP_LATENCY ? !dir : dir;
	sample->baseline = 0;
	if (metric == ALERT_RTT) {
		sample->value = stats[!dir].rtt.last;
		sample->baseline = conn_min(&stats[!dir].rtt);
	} else if (metric == ALERT_APP_LATENCY) {
		sample->value = stats[dir].turn.last;
		sample->baseline = conn_min(&stats[dir].turn);
	} else if (metric == ALERT_RATE) {
		sample->value = noted->segment.window_bytes;
	} else {
		state = alert_state_of(noted->index);
		if (!state)
			return false;
		alert_renew(state, table, dir, metric);
		return alert_loss_sample(&state->loss[dir], conn, dir,
					 noted->segment.tick, &sample->value);
	}
	return true;
}

/* Take a sample of a metric, as alert_look() says. */
__noinline int alert_take(__u32 cpu_id, __u32 metric)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table = alert_table(noted);
	struct connection conn;

	VERIFIED_APART(APART_ALERTS, 2);
	if (noted && table && connection_at(noted->index, &conn) &&
	    take_value(noted, table, &conn, metric))
		alert_sample(cpu_id, noted, table);
	return 0;
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
	state = alert_state_of(noted->index);
	return state && state->epoch != table->epoch;
}

/*
 * Which metrics there are rules of, and the segment at hand gave rise to samples of, by
 * noted->segment.taken: 1 << enum alert_metric.
 */
__noinline int alert_look(__u32 cpu_id)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_tables *all = alert_tables_of_all();
	const struct alert_table *table;
	struct connection conn;
	__u32 taken, metrics = 0;

	VERIFIED_APART(APART_ALERTS, 1);
	if (!noted || !all)
		return 0;
	noted->rules = READ_ONCE(all->active) & 1;
	table = &all->tables[noted->rules & 1];
	if (!table->n)
		return 0;
	if (table->n_filters && connection_at(noted->index, &conn))
		noted->wants_verdict = lacks_verdict(table, noted, &conn);
	taken = noted->segment.taken;
	if (taken & TAKEN_RTT && alert_has(table, ALERT_RTT))
		metrics |= 1 << ALERT_RTT;
	if (taken & TAKEN_TURN && alert_has(table, ALERT_APP_LATENCY))
		metrics |= 1 << ALERT_APP_LATENCY;
	if (!(taken & TAKEN_WINDOW))
		return metrics;
	if (noted->segment.window_bytes && alert_has(table, ALERT_RATE))
		metrics |= 1 << ALERT_RATE;
	if (alert_has(table, ALERT_RETRANSMITS))
		metrics |= 1 << ALERT_RETRANSMITS;
	return metrics;
}

/* Not from within a function: the stack of five in a row is too large. */
static __always_inline void alert_observe(__u32 cpu_id)
{
	int metrics = alert_look(cpu_id);

	if (metrics & 1 << ALERT_RTT)
		alert_take(cpu_id, ALERT_RTT);
	if (metrics & 1 << ALERT_APP_LATENCY)
		alert_take(cpu_id, ALERT_APP_LATENCY);
	if (metrics & 1 << ALERT_RATE)
		alert_take(cpu_id, ALERT_RATE);
	if (metrics & 1 << ALERT_RETRANSMITS)
		alert_take(cpu_id, ALERT_RETRANSMITS);
}

#endif
