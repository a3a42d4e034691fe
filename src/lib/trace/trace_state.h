/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a tracer, shared by its source files. */
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
	bool is_detached; /* no program runs any more */
	struct netobs_trace_stats stats;
};

/** Process a report of a program. */
void trace_take_report(struct netobs_trace *trace,
		       const struct trace_report *report);

/** Deliver events that arrived while the tracer was started. */
void trace_deliver_early(struct netobs_trace *trace);

/** @return the entry of the slot of a connection, which another connection may use */
struct traced *trace_slot(const struct netobs_trace *trace, uint64_t id);

/** @return the connection that has that tuple, or NULL */
struct traced *trace_find(const struct netobs_trace *trace,
			  const struct trace_tuple *tuple);

/** Update the time of the connection's last packet, also beyond max_events. */
void trace_note_last(const struct netobs_trace *trace, struct traced *traced);

/** Trace the connection, if there is room for one more. */
void trace_choose(struct netobs_trace *trace, struct traced *traced);

/** Free the connection's slot for another connection. */
void trace_end_connection(struct netobs_trace *trace, struct traced *traced);

/** Reject the connection's events. Its tuples remain known, so that its packets do not begin it again. */
void trace_refuse(struct netobs_trace *trace, struct traced *traced);

/** Nothing chooses these datagrams: end the connection, and reject its tuples. */
void trace_turn_away(struct netobs_trace *trace, struct traced *traced);

/** @return the connection's events beyond max_events so far */
uint64_t trace_count_cut(const struct netobs_trace *trace,
			 const struct traced *traced);

#endif
