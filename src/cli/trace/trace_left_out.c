// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_left_out.h"

#include <inttypes.h>
#include <stdio.h>

void trace_left_out_print(const struct netobs_trace *trace)
{
	struct netobs_trace_stats stats = { .sz = sizeof(stats) };

	netobs_trace_stats_get(trace, &stats);
	if (stats.refused_connections)
		fprintf(stderr,
			"netobsctl trace: %" PRIu64
			" connections were not traced for want of room (--max-connections)\n",
			stats.refused_connections);
	if (stats.cut_by_connection || stats.cut_by_rate || stats.lost_events)
		fprintf(stderr,
			"netobsctl trace: events that are missing: %" PRIu64
			" beyond --max-events, %" PRIu64
			" beyond --max-rate, %" PRIu64
			" without room in the ring or in an interrupt\n",
			stats.cut_by_connection, stats.cut_by_rate,
			stats.lost_events);
	if (stats.unhooked_namespaces)
		fprintf(stderr,
			"netobsctl trace: netfilter's hooks were not traced in %" PRIu64
			" network namespaces\n",
			stats.unhooked_namespaces);
	if (stats.cut_journeys)
		fprintf(stderr,
			"netobsctl trace: %" PRIu64
			" journeys were ended early: too many bytes were on their way\n",
			stats.cut_journeys);
}
