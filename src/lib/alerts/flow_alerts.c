// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "alerts.h"

#include "base/hash.h"
#include "base/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000 };

struct flow_alert_state {
	uint64_t id;	   /* of a rule and a flow; 0: free */
	int64_t silent_ns; /* CLOCK_BOOTTIME, as all times here: until then */
	int64_t used_ns;
	uint32_t history; /* bit 0: the newest sample was over the threshold */
};

struct flow_alert_limit {
	uint32_t life;	 /* of the rule */
	int64_t next_ns; /* when the next alert would be due; 0: none was yet */
};

/* ---- States ----------------------------------------------------------------------------- */

struct rule_and_flow {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint32_t proto, netns;
	uint32_t life; /* of the rule */
};

_Static_assert(sizeof(struct rule_and_flow) == FLOW_ALERT_WORDS * sizeof(uint32_t),
	       "no padding: it is hashed");

static uint64_t state_id(const struct flow_alerts *alerts,
			 const struct alert_entry *entry,
			 const struct flow_sample *sample)
{
	const struct filter_tuple *tuple = &sample->tuple;
	struct rule_and_flow both = { .src_port = tuple->src_port,
				      .dst_port = tuple->dst_port,
				      .proto = tuple->proto,
				      .netns = sample->netns,
				      .life = entry->life };

	memcpy(both.src, tuple->src, sizeof(both.src));
	memcpy(both.dst, tuple->dst, sizeof(both.dst));
	return hash_bytes(&both, sizeof(both), alerts->secret) ?: 1;
}

static struct flow_alert_state *bucket_of(const struct flow_alerts *alerts,
					  uint64_t id)
{
	return &alerts->states[id % FLOW_ALERT_BUCKETS * FLOW_ALERT_WAYS];
}

static struct flow_alert_state *find_state(const struct flow_alerts *alerts,
					   uint64_t id)
{
	struct flow_alert_state *bucket = bucket_of(alerts, id);

	for (int way = 0; way < FLOW_ALERT_WAYS; way++)
		if (bucket[way].id == id)
			return &bucket[way];
	return NULL;
}

static struct flow_alert_state *ensure_state(const struct flow_alerts *alerts,
					     uint64_t id)
{
	struct flow_alert_state *state = find_state(alerts, id);
	struct flow_alert_state *bucket = bucket_of(alerts, id);

	if (state)
		return state;
	state = bucket;
	for (int way = 0; way < FLOW_ALERT_WAYS; way++)
		if (!bucket[way].id || bucket[way].used_ns < state->used_ns)
			state = &bucket[way];
	*state = (struct flow_alert_state){ .id = id };
	return state;
}

/* ---- A rule ----------------------------------------------------------------------------- */

static uint64_t value_of(unsigned int metric, const struct flow_sample *sample)
{
	if (metric == ALERT_DROPS || !sample->dropped)
		return sample->dropped;
	/* Packets may be dropped after the record that has them. */
	if (sample->dropped >= sample->packets)
		return MILLION;
	return (uint64_t)((__uint128_t)sample->dropped * MILLION /
			  sample->packets);
}

/* @return how many of the newest samples are over the threshold; 0: the newest is not */
static uint32_t count_hits(const struct flow_alerts *alerts,
			   const struct alert_entry *entry, uint64_t id,
			   const struct flow_sample *sample, bool is_over)
{
	struct flow_alert_state *state;

	if (entry->spec.among <= 1)
		return is_over;
	state = is_over ? ensure_state(alerts, id) : find_state(alerts, id);
	if (!state)
		return 0;
	state->history = state->history << 1 | is_over;
	state->used_ns = sample->boot_ns;
	if (!is_over)
		return 0;
	return (uint32_t)__builtin_popcount(state->history &
					    ((1U << entry->spec.among) - 1));
}

static bool is_silent(const struct flow_alerts *alerts,
		      const struct alert_entry *entry, uint64_t id,
		      const struct flow_sample *sample)
{
	const struct flow_alert_state *state =
		entry->spec.hold_ns ? find_state(alerts, id) : NULL;

	return state && sample->boot_ns < state->silent_ns;
}

static void silence(const struct flow_alerts *alerts,
		    const struct alert_entry *entry, uint64_t id,
		    const struct flow_sample *sample)
{
	struct flow_alert_state *state;

	if (!entry->spec.hold_ns)
		return;
	state = ensure_state(alerts, id);
	state->used_ns = sample->boot_ns;
	state->silent_ns = sample->boot_ns + (int64_t)entry->spec.hold_ns;
}

/* The limits of alerts about connections: bpf/alert.h. */
static bool take_from_limit(struct flow_alerts *alerts,
			    const struct alert_entry *entry,
			    const struct flow_sample *sample)
{
	const struct alert_rule rule = alert_rule_compile(&entry->spec);
	struct flow_alert_limit *limit = &alerts->limits[entry->slot];

	if (!rule.period_ns)
		return true;
	if (limit->life != entry->life)
		*limit = (struct flow_alert_limit){ .life = entry->life };
	if (limit->next_ns > sample->boot_ns + (int64_t)rule.burst_ns)
		return false;
	limit->next_ns = max_i64(limit->next_ns, sample->boot_ns) +
			 (int64_t)rule.period_ns;
	return true;
}

static void look_at(struct flow_alerts *alerts, struct alert_entry *entry,
		    const struct flow_sample *sample,
		    void (*report)(const struct flow_alert *alert, void *ctx),
		    void *ctx)
{
	struct alert_count *count = &alerts->counts[entry->slot];
	const uint64_t id = state_id(alerts, entry, sample);
	struct flow_alert alert = {
		.entry = entry, .value = value_of(entry->spec.metric, sample)
	};

	alert.hits = count_hits(alerts, entry, id, sample,
				alert.value > entry->spec.threshold);
	if (!alert.hits || alert.hits < entry->spec.needed)
		return;
	count->broken++;
	if (is_silent(alerts, entry, id, sample)) {
		count->held++;
		return;
	}
	if (!take_from_limit(alerts, entry, sample)) {
		count->limited++;
		return;
	}
	silence(alerts, entry, id, sample);
	count->fired++;
	report(&alert, ctx);
}

/* ---- All rules -------------------------------------------------------------------------- */

int flow_alerts_open(struct flow_alerts *alerts)
{
	if (alerts->states)
		return 0;
	alerts->states = calloc(FLOW_ALERT_BUCKETS * FLOW_ALERT_WAYS,
				sizeof(*alerts->states));
	alerts->limits = calloc(ALERT_SLOTS, sizeof(*alerts->limits));
	secret_fill(alerts->secret, sizeof(alerts->secret));
	if (alerts->states && alerts->limits)
		return 0;
	flow_alerts_close(alerts);
	return -ENOMEM;
}

void flow_alerts_close(struct flow_alerts *alerts)
{
	free(TAKE_PTR(alerts->states));
	free(TAKE_PTR(alerts->limits));
}

void flow_alerts_look(struct flow_alerts *alerts, struct alert_set *set,
		      const struct flow_sample *sample,
		      void (*report)(const struct flow_alert *alert, void *ctx),
		      void *ctx)
{
	for (uint32_t i = 0; i < set->n; i++) {
		struct alert_entry *entry = &set->entries[i];

		if (alert_is_of_flows(entry->spec.metric) &&
		    (!entry->tuples ||
		     filter_match_tuple(entry->tuples, &sample->tuple)))
			look_at(alerts, entry, sample, report, ctx);
	}
}
