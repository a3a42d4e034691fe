/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares each sample that a segment gives with the rules about connections. Most samples break
 * no rule, and most of the others break rules that have reported the connection a moment ago. So
 * the code here is about finding out with little work that there is nothing to do.
 *
 * Rules of one kind have the same metric and thresholds of the same sort (a value, or a multiple of
 * the baseline), and are all plain or all not. A plain rule depends on the sample alone; others need
 * earlier samples ("for 3 of 5") or a filter, too. A table has the rules of a kind by increasing
 * thresholds, so a sample is over the first few of them: a prefix, named by its last rule. Given
 *
 *	0: rtt > 50ms hold 1m
 *	1: rtt > 100ms hold 1m
 *	2: rtt > 200ms for 3 of 5
 *
 * rules 0 and 1 are of one kind, which is plain, and rule 2 is of another. Samples of 40, 120, 70
 * and 250 ms:
 *
 *  - 40 ms is compared with the lowest threshold of each kind, 50 and 200 ms, and is over neither.
 *    Nothing else happens (is_settled()).
 *  - 120 ms is over the prefix 0..1. At the first such sample of a connection, both rules are
 *    considered (alert_rule.h): each reports the connection, and is silent about it for a minute.
 *    A word of the connection's state notes the result: all rules up to 1 are silent until then
 *    (struct alert_quiet).
 *  - 70 ms, and 120 ms again, within that minute: the word covers the prefix. So the sample is
 *    counted once, for the prefix and as `held` (struct alert_prefix), and not for each rule; user
 *    space adds the counts of a prefix to each of its rules (count_plain()).
 *  - 120 ms of a connection without an alert, while both rules have used up their limit of alerts
 *    per second: the CPU has noted that all rules up to 1 are exhausted until the first of them may
 *    report again (struct alert_exhausted), so the prefix counts the sample as `limited`. If the
 *    connection had alerts, a rule may be silent about it, and `held` takes precedence: then the
 *    rules are considered.
 *  - 250 ms is over 0..1 as above, and over rule 2, which is considered by itself: are two of the
 *    four previous samples over 200 ms, too?
 *
 * Each change of the rules has a serial number. Both notes contain it, so a change voids them.
 *
 * alert_take() does all of that except considering rules, without a call: the stack has no room for
 * one. So it returns when rules must be considered. The flow program then calls alert_compare(), and
 * alert_take() again for the segment's other samples (alert_observe()).
 */
#ifndef NETOBS_BPF_TRACK_ALERTS_H
#define NETOBS_BPF_TRACK_ALERTS_H

#include "alert_rule.h"

/* ---- Rules of a kind --------------------------------------------------------------- */

/* @return the number of the first rule of a kind */
static __always_inline __u32 alert_first(const struct alert_table *table,
					 __u32 kind)
{
	return kind <= ALERT_KINDS ? table->first[kind] : 0;
}

/* @return the number of rules of the kind that the sample is over: they are a prefix */
static __always_inline __u32 alert_over(const struct alert_table *table,
					const struct alert_sample *sample,
					__u32 kind)
{
	__u32 rules = alert_first(table, kind + 1) - alert_first(table, kind);
	__u32 over =
		alert_count_over(table->thresholds[kind & (ALERT_KINDS - 1)],
				 sample->value, sample->baseline, kind >> 1 & 1);

	return over < rules ? over : rules;
}

static __always_inline void note_state(struct noted_segment *noted,
				       const struct alert_state *state)
{
	noted->sample.may_hold =
		state->alerted[noted->sample.metric & (ALERT_METRICS - 1)];
}

/* Compare the sample with rules that depend on more than the sample. */
__noinline int alert_compare_others(__u32 cpu_id, __u32 kind)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table;
	struct alert_state *state;
	__u32 first, over;

	VERIFIED_APART(APART_ALERTS, 2);
	if (!noted)
		return 0;
	table = alert_table(noted);
	if (!table)
		return 0;
	over = alert_over(table, &noted->sample, kind);
	state = alert_state_of(noted->index);
	if (!over || !state)
		return 0;
	alert_renew(state, table, noted->sample.dir, noted->sample.metric);
	note_state(noted, state);
	first = alert_first(table, kind);
	for (__u32 i = 0; i < ALERT_RULES_MAX; i++) {
		if (i >= over)
			break;
		alert_consider(cpu_id, first + i);
	}
	return 0;
}

/* @return whether all rules up to @last are silent for the connection */
static __always_inline bool is_quiet(union alert_quiet_word known,
				     const struct alert_table *table,
				     __u32 last, __u32 tick)
{
	return known.quiet.serial == table->serial && known.quiet.last >= last &&
	       alert_ticks_left(known.quiet.until, tick);
}

/*
 * @return whether all rules up to @last are at their limit, and none may be silent about the
 * connection
 */
static __always_inline bool is_exhausted(const struct alert_exhausted *known,
					 const struct alert_table *table,
					 const struct noted_segment *noted,
					 __u32 last)
{
	return !noted->sample.may_hold && known->serial == table->serial &&
	       known->last >= last && noted->segment.now < known->until_ns;
}

/* NULL: user space sized the array wrongly. */
static __always_inline struct alert_prefix *
alert_prefix_of(__u32 cpu_id, const struct alert_table *table, __u32 last)
{
	__u32 index = (cpu_id * 2 + (table->number & 1)) * ALERT_RULES_MAX +
		      (last & (ALERT_RULES_MAX - 1));

	return bpf_map_lookup_elem(&alert_prefixes, &index);
}

/*
 * Returns the least result of alert_consider(); RULE_LIMITED if all results are. The results are kept
 * in memory: the verifier of Linux 5.10 would walk the remaining rounds once for each value in a register.
 */
static __always_inline __s32 alert_consider_all(__u32 cpu_id, __u32 first, __u32 n)
{
	volatile __s32 least = 0x7fffffff, most = RULE_LIMITED;

	for (__u32 i = 0; i < ALERT_RULES_MAX; i++) {
		__s32 one;

		if (i >= n)
			break;
		one = alert_consider(cpu_id, first + i);
		if (one < least)
			least = one;
		if (one > most)
			most = one;
	}
	return least < 0 && most >= 0 ? 0 : least;
}

/* @return the index in alert_state.quiet */
static __always_inline __u32 quiet_index(__u32 kind)
{
	return kind / 2 & (2 * ALERT_METRICS - 1);
}

/*
 * Count a sample that is over the plain rules up to @last in their prefix, if all of them are silent
 * about its connection, or have reached their limits. Returns false, and counts nothing, if they have
 * to be considered one by one.
 */
static __always_inline bool count_plain(__u32 cpu_id, struct noted_segment *noted,
					const struct alert_table *table,
					const struct alert_state *state,
					union alert_quiet_word quiet, __u32 last)
{
	struct alert_prefix *prefix = alert_prefix_of(cpu_id, table, last);
	const struct alert_exhausted *exhausted =
		alert_exhausted_of(cpu_id, &noted->sample);

	if (!prefix || !exhausted)
		return false;
	if (is_quiet(quiet, table, last, noted->segment.tick)) {
		prefix->broken++;
		prefix->held++;
		return true;
	}
	note_state(noted, state);
	if (!is_exhausted(exhausted, table, noted, last))
		return false;
	prefix->broken++;
	prefix->limited++;
	return true;
}

/* Compare the sample with rules that depend on the sample alone. */
__noinline int alert_compare_plain(__u32 cpu_id, __u32 kind)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table;
	struct alert_exhausted *exhausted;
	union alert_quiet_word quiet;
	struct alert_prefix *prefix;
	struct alert_state *state;
	__u32 first, over, last;
	__s32 left;

	VERIFIED_APART(APART_ALERTS, 2);
	if (!noted)
		return 0;
	table = alert_table(noted);
	if (!table)
		return 0;
	over = alert_over(table, &noted->sample, kind);
	if (!over)
		return 0;
	first = alert_first(table, kind);
	last = first + over - 1;
	state = alert_state_of(noted->index);
	if (!state)
		return 0;
	quiet.word = READ_ONCE(state->quiet[quiet_index(kind)]);
	if (count_plain(cpu_id, noted, table, state, quiet, last))
		return 0;
	prefix = alert_prefix_of(cpu_id, table, last);
	exhausted = alert_exhausted_of(cpu_id, &noted->sample);
	if (!prefix || !exhausted)
		return 0;
	prefix->broken++;
	exhausted->soonest_ns = ~0ULL;
	left = alert_consider_all(cpu_id, first, over);
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
	WRITE_ONCE(state->quiet[quiet_index(kind)], quiet.word);
	return 0;
}

/* ---- Samples ---------------------------------------------------------------------- */

/*
 * Keep the sample if a rule needs that. Not inlined: what calls it is active while rules are
 * considered, and all active functions share 512 bytes of stack.
 */
static __noinline int keep_sample(const struct noted_segment *noted,
				  const struct alert_table *table, __u64 born_ns)
{
	__u32 metric = noted->sample.metric & (ALERT_METRICS - 1);
	struct alert_state *state;

	if (!(table->history >> metric & 1))
		return 0;
	state = alert_state_at(noted->index, born_ns);
	if (!state)
		return 0;
	alert_renew(state, table, noted->sample.dir, metric);
	alert_remember(state, noted->sample.dir, metric, noted->sample.value);
	return 0;
}

/*
 * Compare the sample that alert_take() has left with all rules of its metric. Inlined into the flow
 * program, as alert_observe(): a function in between would need stack.
 */
static __always_inline void alert_compare(__u32 cpu_id)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_table *table;
	const struct conn_body *body;
	__u32 kind;

	if (!noted)
		return;
	table = alert_table(noted);
	if (!table)
		return;
#pragma clang loop unroll(disable)
	for (__u32 ratio = 0; ratio < 2; ratio++) {
		noted->sample.is_ratio = ratio;
		kind = alert_kind(noted->sample.metric & (ALERT_METRICS - 1),
				  ratio, false);
		if (table->kinds >> kind & 1)
			alert_compare_others(cpu_id, kind);
		if (table->kinds >> kind & 2)
			alert_compare_plain(cpu_id, kind + 1);
	}
	body = body_at(noted->index);
	if (body)
		keep_sample(noted, table, body->born_ns);
}

/* Take the share of retransmissions, if their window has ended, too. False: it has not. */
static __always_inline bool take_loss(struct noted_segment *noted,
				      const struct alert_table *table)
{
	__u32 dir = noted->sample.dir & 1;
	struct connection conn;
	struct alert_state *state;

	if (!connection_at(noted->index, &conn))
		return false;
	state = alert_state_at(noted->index, conn.body->born_ns);
	if (!state)
		return false;
	alert_renew(state, table, dir, ALERT_RETRANSMITS);
	return alert_loss_sample(&state->loss[dir], &conn, dir,
				 noted->segment.tick, &noted->sample.value);
}

/* Take the server's part of the response time. False: the client has answered, or a value is unknown. */
static __always_inline bool take_app_latency(struct noted_segment *noted)
{
	const struct conn_latency *turn;
	__u32 client, path;
	struct connection conn;

	if (!connection_at(noted->index, &conn) || !conn_knows_client(&conn))
		return false;
	client = conn_client(&conn) & 1;
	path = conn_path(&conn, client);
	if (noted->sample.dir != client || !path)
		return false;
	turn = &conn.body->stats[!client].turn;
	noted->sample.value = conn_app_latency(turn->last, path);
	noted->sample.baseline = conn_app_latency(conn_min(turn), path);
	return true;
}

/* Take the value of a sample of @metric. False: there is no sample. */
static __always_inline bool take_value(struct noted_segment *noted,
				       const struct alert_table *table,
				       const struct conn_body *body, __u32 metric)
{
	struct alert_sample *sample = &noted->sample;
	const struct conn_stats *stats = body->stats;
	__u32 dir = noted->dir & 1;

	sample->metric = metric;
	sample->dir =
		metric == ALERT_RTT || metric == ALERT_APP_LATENCY ? !dir : dir;
	sample->baseline = 0;
	if (metric == ALERT_RTT) {
		sample->value = stats[!dir].rtt.last;
		sample->baseline = conn_min(&stats[!dir].rtt);
	} else if (metric == ALERT_APP_LATENCY) {
		return take_app_latency(noted);
	} else if (metric == ALERT_RATE) {
		sample->value = noted->segment.window_bytes;
	} else {
		return take_loss(noted, table);
	}
	return true;
}

/* @return whether the sample is over a rule of the kind */
static __always_inline bool is_over_any(const struct alert_table *table,
					const struct alert_sample *sample,
					__u32 kind)
{
	return table->kinds >> kind & 1 &&
	       alert_is_over(sample->value,
			     table->thresholds[kind & (ALERT_KINDS - 1)][0],
			     sample->baseline, kind >> 1 & 1);
}

/* count_plain() for a sample that is over rules of this kind alone. Returns the same. */
static __always_inline bool count_quickly(__u32 cpu_id,
					  struct noted_segment *noted,
					  const struct alert_table *table,
					  __u32 kind, __u64 born_ns)
{
	struct alert_state *state = alert_state_at(noted->index, born_ns);
	union alert_quiet_word quiet;
	__u32 last;

	if (!state)
		return true;
	noted->sample.is_ratio = kind >> 1 & 1;
	quiet.word = READ_ONCE(state->quiet[quiet_index(kind)]);
	last = alert_first(table, kind) - 1 +
	       alert_over(table, &noted->sample, kind);
	return count_plain(cpu_id, noted, table, state, quiet, last);
}

/*
 * @return whether the sample needs no alert_compare(): it is over no rule, or its prefix was
 * counted
 */
static __always_inline bool is_settled(__u32 cpu_id, struct noted_segment *noted,
				       const struct alert_table *table,
				       __u32 metric, __u64 born_ns)
{
	__u32 plain = alert_kind(metric, false, true);

	if (is_over_any(table, &noted->sample, alert_kind(metric, false, false)) ||
	    is_over_any(table, &noted->sample, alert_kind(metric, true, false)))
		return false;
	if (is_over_any(table, &noted->sample, alert_kind(metric, true, true))) {
		if (is_over_any(table, &noted->sample, plain))
			return false;
		plain = alert_kind(metric, true, true);
	} else if (!is_over_any(table, &noted->sample, plain)) {
		return true;
	}
	return count_quickly(cpu_id, noted, table, plain, born_ns);
}

/*
 * @return whether the filters must judge the packet: the client sent it, and they have not
 * judged its connection yet
 */
static __always_inline bool lacks_verdict(const struct alert_table *table,
					  const struct noted_segment *noted)
{
	const struct alert_state *state;
	struct connection conn;

	if (!connection_at(noted->index, &conn) ||
	    (noted->dir & 1) != conn_client(&conn))
		return false;
	state = alert_state_at(noted->index, conn.body->born_ns);
	return state && state->epoch != table->epoch;
}

/* The metrics that the segment has samples of: 1 << enum alert_metric, or-ed. */
static __always_inline __u32 metrics_of(const struct segment *segment)
{
	__u32 taken = segment->taken, metrics = 0;

	if (taken & TAKEN_RTT)
		metrics |= 1 << ALERT_RTT;
	if (taken & TAKEN_TURN)
		metrics |= 1 << ALERT_APP_LATENCY;
	if (taken & TAKEN_WINDOW)
		metrics |= 1 << ALERT_RETRANSMITS;
	if (taken & TAKEN_WINDOW && segment->window_bytes)
		metrics |= 1 << ALERT_RATE;
	return metrics;
}

/* Choose the table of rules for all samples of the segment. */
static __always_inline void alert_begin_segment(struct noted_segment *noted,
						const struct alert_tables *all)
{
	const struct alert_table *table;

	noted->rules = READ_ONCE(all->active) & 1;
	table = &all->tables[noted->rules & 1];
	if (table->n_filters)
		noted->wants_verdict = lacks_verdict(table, noted);
	noted->metrics = metrics_of(&noted->segment) & table->metrics;
}

/*
 * Take the segment's samples, as noted->segment.taken lists them, of metrics that have rules.
 * @is_first: no sample of the segment was taken yet. Returns true if alert_compare() has to look at
 * noted->sample before the next one is taken; false once all are taken.
 */
__noinline int alert_take(__u32 cpu_id, __u32 is_first)
{
	struct noted_segment *noted = noted_of(cpu_id);
	const struct alert_tables *all = alert_tables_of_all();
	const struct alert_table *table;
	const struct conn_body *body;

	VERIFIED_APART(APART_ALERTS, 2);
	if (!noted || !all)
		return false;
	if (is_first)
		alert_begin_segment(noted, all);
	table = &all->tables[noted->rules & 1];
	body = body_at(noted->index);
	if (!body)
		return false;
#pragma clang loop unroll(disable)
	for (__u32 metric = 0; metric < ALERT_METRICS; metric++) {
		__u32 metrics = noted->metrics;

		if (!(metrics >> metric))
			break;
		if (!(metrics >> metric & 1))
			continue;
		noted->metrics = metrics & ~(1 << metric);
		if (!take_value(noted, table, body, metric))
			continue;
		if (!is_settled(cpu_id, noted, table, metric, body->born_ns))
			return true;
		keep_sample(noted, table, body->born_ns);
	}
	return false;
}

static __always_inline void alert_observe(__u32 cpu_id)
{
#pragma clang loop unroll(disable)
	for (__u32 metric = 0; metric < ALERT_METRICS; metric++) {
		if (!alert_take(cpu_id, !metric))
			break;
		alert_compare(cpu_id);
	}
}

#endif
