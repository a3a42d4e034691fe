/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A tracer, for the files that it consists of. */
#ifndef NETOBS_TRACE_TRACE_STATE_H
#define NETOBS_TRACE_TRACE_STATE_H

#include "base/clock.h"
#include "base/life.h"
#include "drops/drop_names.h"
#include "engine/trace_programs.h"
#include "filter/filter.h"
#include "journeys.h"
#include "trace_early.h"
#include "trace_hooks.h"
#include "trace_process.h"
#include "trace_room.h"
#include "traced.h"

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct map_grace;

struct netobs_trace {
	struct netobs_trace_opts opts;
	struct life life;
	struct filter *filter;
	struct trace_process process;
	bool wants_datagrams; /* it may choose some */
	int read_timer;
	int64_t slice_end_ns, sweep_ns, hooks_ns, list_ns;

	struct trace_programs programs;
	struct trace_hooks hooks;
	struct drop_names names;
	struct clock clock;
	struct journeys *journeys; /* NULL: not wanted */
	struct traced *traced;	   /* by slot */
	struct trace_room room;	   /* of those that are chosen */
	struct trace_early early;
	uint32_t n_chosen;
	uint32_t n_used;    /* slots, at the last sweep */
	uint32_t n_pending; /* reports that candidates have, as far as is known */
	struct map_grace *grace;
	bool is_detached; /* and no program runs any more */
	struct netobs_trace_stats stats;
};

/** Take what a program reports. */
void trace_take_report(struct netobs_trace *trace,
		       const struct trace_report *report);

/** Deliver what came while the tracer was started. */
void trace_deliver_early(struct netobs_trace *trace);

/** @return what is known of a connection, or of another one that has its slot */
struct traced *trace_slot(const struct netobs_trace *trace, uint64_t id);

/** @return the connection that has that tuple, or NULL */
struct traced *trace_find(const struct netobs_trace *trace,
			  const struct trace_tuple *tuple);

/** Note when it had its last packet, also beyond max_events. */
void trace_note_last(const struct netobs_trace *trace, struct traced *traced);

/** Trace it, if there is room for one more. */
void trace_choose(struct netobs_trace *trace, struct traced *traced);

/** Its slot may be another connection's from now on. */
void trace_end_connection(struct netobs_trace *trace, struct traced *traced);

/** Its events are not wanted. Its tuples remain known, so that none of its packets begins it anew. */
void trace_refuse(struct netobs_trace *trace, struct traced *traced);

/** Nothing chooses its datagrams: end it, and refuse its tuples, so that they do not begin it anew. */
void trace_turn_away(struct netobs_trace *trace, struct traced *traced);

/** @return its events beyond max_events so far */
uint64_t trace_count_cut(const struct netobs_trace *trace,
			 const struct traced *traced);

#endif
