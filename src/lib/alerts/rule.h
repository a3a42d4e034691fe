/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A rule about connections or flows as text: "rtt > 50ms for 3 of 5 hold 30s limit 10/m where port 443".
 * netobs-alert-rules(7) has the grammar.
 */
#ifndef NETOBS_ALERTS_RULE_H
#define NETOBS_ALERTS_RULE_H

#include "bpf/alert.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ALERT_TEXT_MAX = 512, /* with the NUL */
	ALERT_HOLD_MAX_S = 24 * 3600,
};

/*
 * Metrics that the programs know nothing of: enum alert_metric goes on with them. A sample is a record of a flow,
 * of any protocol.
 */
enum {
	ALERT_DROPS = ALERT_METRICS, /* packets of it that this kernel dropped */
	ALERT_DROP_SHARE, /* dropped packets, in parts per million of its packets */
	ALERT_RULE_METRICS,
};

struct alert_spec {
	unsigned int metric;
	bool is_ratio; /* the threshold is a multiple of the baseline */
	/* Nanoseconds, parts per million, bits per second, or packets; of a ratio, as in alert_rule. */
	uint64_t threshold;
	uint32_t needed, among;
	uint64_t hold_ns;
	uint32_t limit; /* alerts in a period, also at once; 0: no limit */
	uint64_t limit_period_ns;
	const char *filter; /* in the text; NULL: all connections */
};

/**
 * Read a rule.
 *
 * @param ret_spec  its filter points into @text, and has not been looked at
 * @param ret_why   on failure: "column 7: ..."
 * @return 0, or -EINVAL
 */
int alert_rule_parse(const char *text, struct alert_spec *ret_spec,
		     char *ret_why, size_t size);

static inline bool alert_is_of_flows(unsigned int metric)
{
	return metric >= ALERT_METRICS;
}

/** The rule as programs compare it, without its slot and its filter. */
struct alert_rule alert_rule_compile(const struct alert_spec *spec);

/** @return the name of a metric, as in records: "app_latency"; NULL beyond the last */
const char *alert_metric_name(unsigned int metric);

/** @return a value of samples, in the unit of thresholds */
uint64_t alert_value(unsigned int metric, uint32_t sample);

#endif
