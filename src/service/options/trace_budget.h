/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Limits of a tracer, for netobsctl trace and the service. */
#ifndef NETOBS_SERVICE_OPTIONS_TRACE_BUDGET_H
#define NETOBS_SERVICE_OPTIONS_TRACE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_CONNECTIONS_MAX = 65536 }; /* the library's */

/* Members as in struct netobs_trace_opts; 0: the default. */
struct trace_budget {
	uint32_t max_connections, max_events, max_rate;
	bool netfilter;
};

#endif
