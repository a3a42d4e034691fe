/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a tracer, shared by its source files. */
#ifndef NETOBS_TRACE_TRACE_STATE_H
#define NETOBS_TRACE_TRACE_STATE_H

#include "bpf/trace.h"
#include "base/clock.h"
#include "base/life.h"
#include "drops/drop_names.h"
#include "trace_programs.h"
#include "filter/filter.h"
#include "journeys.h"
#include "trace_hooks.h"
#include "trace_process.h"
#include "traced.h"

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

/* Events during netobs_start(), which wait: only netobs_dispatch() calls callbacks. */

enum { TRACE_EARLY_MAX = 1 << 16 };

struct trace_early {
	struct netobs_trace_event *events;
	uint32_t n, capacity;
};

/** Keep a copy. @return false: there are TRACE_EARLY_MAX, or there is no memory */
bool trace_early_keep(struct trace_early *early,
		      const struct netobs_trace_event *event);

/** Call @deliver for each event, in the order of arrival, and remove all. */
void trace_early_deliver(struct trace_early *early,
			 void (*deliver)(void *ctx,
					 const struct netobs_trace_event *event),
			 void *ctx);

void trace_early_free(struct trace_early *early);

struct map_grace;

struct trace {
	struct life life; /* first */
	struct netobs_trace_opts opts;
	struct filter *filter;
	struct trace_process process;
	bool wants_datagrams; /* UDP and ICMP may be chosen */
	int read_timer;
	int64_t slice_end_ns, sweep_ns, hooks_ns, list_ns;

	struct trace_programs programs;
	struct trace_hooks hooks;
	struct drop_names names;
	struct clock clock;
	struct journeys *journeys; /* NULL: not wanted */
	struct traced *traced;	   /* by slot */
	struct trace_room room;	   /* of chosen connections */
	struct trace_early early;
	uint32_t n_chosen;
	uint32_t n_used;    /* slots, at the last sweep */
	uint32_t n_pending; /* reports that candidates keep, about */
	struct map_grace *grace;
	struct netobs_trace_stats stats;
};

/** @return the tracer; NULL: @netobs is none, or NULL */
struct trace *trace_of(const struct netobs *netobs);

/** Process a report of a program. */
void trace_take_report(struct trace *trace, const struct trace_report *report);

/** Deliver events that arrived while the tracer was started. */
void trace_deliver_early(struct trace *trace);

/** @return the entry of the slot of a connection, which another connection may use */
struct traced *trace_slot(const struct trace *trace, uint64_t id);

/** @return the connection that has that tuple, or NULL */
struct traced *trace_find(const struct trace *trace,
			  const struct trace_tuple *tuple);

/** Update the time of the connection's last packet, also beyond max_events. */
void trace_note_last(const struct trace *trace, struct traced *traced);

/** Trace the connection, if there is room for one more. */
void trace_choose(struct trace *trace, struct traced *traced);

/** Free the connection's slot for another connection. */
void trace_end_connection(struct trace *trace, struct traced *traced);

/** Nothing chooses these datagrams: end the connection, and reject its tuples. */
void trace_turn_away(struct trace *trace, struct traced *traced);

/** @return the connection's events beyond max_events so far */
uint64_t trace_count_cut(const struct trace *trace, const struct traced *traced);

/* The choice of connections by filter expressions, from addresses and ports alone. */

/** @return whether an expression can match packets of these protocols; NULL matches all */
bool trace_may_match(const char *expression, const char *protocols);

/** @param filter  NULL: all. @return whether a segment of either direction matches */
bool trace_match(const struct filter *filter, const struct trace_tuple *tuple);

/* Layers of the points that programs report. */

/** @return 1 << enum trace_point of each point of @layers, which are 1 << enum netobs_trace_layer */
uint32_t trace_layers_points(uint32_t layers);

#endif
