/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Totals of the outcomes of records, by the name of a sink in the configuration. The counts of a
 * sink that is replaced or removed stay with its name, so that a reload takes nothing from a total:
 *
 *   taken + recovered = delivered + pending + the sum of dropped + kept
 */
#ifndef NETOBS_SERVICE_OUTPUTS_SINK_TOTALS_H
#define NETOBS_SERVICE_OUTPUTS_SINK_TOTALS_H

#include <netobs/sink.h>

#include "output.h"

struct json;

enum {
	/* Reasons: those of enum netobs_sink_drop, and one more. */
	SINK_GIVEN_UP =
		NETOBS_SINK_DROPS, /* they were in memory when the sink was closed */
	SINK_REASONS,
	SINK_COUNTERS_MAX = 32, /* counters of all kinds that a name has had */
	/* Names with totals of their own once their sink is closed; the rest is one total. */
	SINK_TOTALS_MAX = 128,
};

struct sink_total {
	char name[64];	       /* or the index of an output without a name */
	char target[256];      /* the spec of its last sink, without options */
	bool is_open;	       /* the name has a sink, which may be leaving */
	uint64_t is_connected; /* no outage of these is known */
	/* All counts are sums, also of closed sinks; dropped[] has SINK_REASONS. */
	struct netobs_sink_stats stats;
	struct netobs_sink_count kept; /* left on disk by a sink that was closed */
	struct {
		const char *name;
		uint64_t value;
	} counters[SINK_COUNTERS_MAX];
	size_t n_counters;
};

/* Totals of closed sinks. All zero: there are none. */
struct sink_totals {
	struct sink_total *list;
	size_t n;
};

/** @return the name of a reason of sink_total.stats.dropped; NULL beyond the last */
const char *sink_reason_name(unsigned int reason);

/**
 * Have room for the totals of a sink of this name.
 *
 * @return 0 or -ENOMEM
 */
int sink_totals_reserve(struct sink_totals *totals, const char *name);

/** Add the counts of a sink, for which there is room, before it is closed. */
void sink_totals_keep(struct sink_totals *totals, const struct output *output);

/**
 * Sum up open and closed sinks, by their names.
 *
 * @param closed    NULL: none
 * @param ret_list  the caller's, to be freed; in the order of @outputs, then closed ones
 * @return the number of totals; 0, without memory, too
 */
size_t sink_totals_sum(const struct sink_totals *closed,
		       const struct output *outputs, size_t n_outputs,
		       struct sink_total **ret_list);

/** Add an array of totals, of an object that is open: docs/control.md. */
void sink_totals_json(struct json *json, const char *key,
		      const struct sink_total *list, size_t n);

void sink_totals_done(struct sink_totals *totals);

#endif
