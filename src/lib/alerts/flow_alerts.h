/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Rules about flows, which look at each record that a flow has: programs know nothing of what they are about.
 * They count, hold and limit as the programs do (bpf/track/alert_rule.h), in the slots of the same rules.
 *
 * A rule and a flow have a state if the rule is silent about the flow, or needs earlier samples of it. When there
 * is no room, the state that was used least recently goes.
 */
#ifndef NETOBS_ALERTS_FLOW_ALERTS_H
#define NETOBS_ALERTS_FLOW_ALERTS_H

#include "alert_set.h"
#include "filter/filter.h"

enum {
	FLOW_ALERT_WAYS = 8,
	FLOW_ALERT_BUCKETS = 8192,
	FLOW_ALERT_WORDS = 12, /* of the key that is hashed: a rule and a flow */
};

/* The values of a record that rules need. */
struct flow_sample {
	struct filter_tuple tuple;
	uint32_t netns; /* where it was seen */
	uint64_t packets, dropped;
	int64_t boot_ns; /* CLOCK_BOOTTIME: the wall clock may be set */
};

struct flow_alert {
	struct alert_entry *entry;
	uint64_t value;
	uint32_t hits;
};

struct flow_alert_state;
struct flow_alert_limit;

/* Zeroes: there are no rules. */
struct flow_alerts {
	struct flow_alert_state *states;
	struct flow_alert_limit *limits; /* of slots */
	uint32_t secret[FLOW_ALERT_WORDS];
	struct alert_count counts[ALERT_SLOTS];
};

/** Before rules about flows are in use. @return 0; -ENOMEM */
int flow_alerts_open(struct flow_alerts *alerts);

void flow_alerts_close(struct flow_alerts *alerts);

/** @return whether flow_alerts_look() has anything to do for a flow */
static inline bool flow_alerts_are_due(const struct alert_set *set,
				       bool has_dropped)
{
	return set && set->has_flow_rules &&
	       (has_dropped || set->keeps_flow_samples);
}

/* Compare a record with the rules, and report each that it breaks, unless it is silent or at its limit. */
void flow_alerts_look(struct flow_alerts *alerts, struct alert_set *set,
		      const struct flow_sample *sample,
		      void (*report)(const struct flow_alert *alert, void *ctx),
		      void *ctx);

#endif
