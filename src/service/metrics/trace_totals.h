/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Totals of traces for alerts since the service began. */
#ifndef NETOBS_SERVICE_METRICS_TRACE_TOTALS_H
#define NETOBS_SERVICE_METRICS_TRACE_TOTALS_H

#include <stdint.h>

struct trace_totals {
	uint64_t armed;	  /* alerts whose connection was traced */
	uint64_t refused; /* alerts whose connection was not: max_connections were, or the tracer failed */
	uint64_t connections; /* now */
	uint64_t journeys, complete_journeys, events;
	/* Events that are missing, as in struct netobs_trace_stats. */
	uint64_t cut_by_connection, cut_by_rate, lost_events;
};

#endif
