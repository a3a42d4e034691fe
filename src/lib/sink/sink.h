/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The state of a sink. */
#ifndef NETOBS_SINK_SINK_H
#define NETOBS_SINK_SINK_H

#include "base/life.h"
#include "base/clock_ms.h"
#include "base/log.h"
#include "base/loop.h"
#include "record/any.h"
#include "sink/spool/spool.h"
#include "module.h"

#include <netobs/flow.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* ---- The context of a sink --------------------------------------------------------------- */

/*
 * A context as the sinks see it that are opened for it (netobs_sink_opts.context).
 * The list has the sinks until either side is freed.
 */

struct netobs_sink;

/* The place of a sink in the list. */
struct sink_link {
	struct netobs_sink *sink;
	struct sink_source *source; /* NULL: it is in no list */
	LIST_ENTRY(sink_link) of_source;
};

struct sink_source {
	const struct netobs *context;
	LIST_HEAD(, sink_link) links;
	uint32_t sampling;
	enum netobs_sampling sampling_mode;
};

/* @return NULL: @netobs is no context, or NULL */
static inline struct sink_source *sink_source_of(const struct netobs *netobs)
{
	return netobs ? ((const struct life *)netobs)->source : NULL;
}

/* The context is about to be freed. */
void sink_source_release(struct sink_source *source);

/* For sinks, when they are opened and closed. @link: with a sink */
void sink_source_add(struct sink_source *source, struct sink_link *link);
void sink_source_remove(struct sink_link *link);

/* ---- A sink ------------------------------------------------------------------------------ */

/*
 * Drops are logged when they begin, each minute while they last, and when they end: once
 * no record is pending, or none was dropped for a minute.
 */

struct drop_log {
	struct drop_episode {
		uint64_t before; /* records that were dropped before it */
		uint64_t logged; /* and up to the last line */
		int64_t due_ms;	 /* the next line; 0: it is over */
	} episodes[SPOOL_DROPS];
};

/** Call this about twice a second. @name: of the sink. @return whether records are still being dropped */
bool drop_log_note(struct drop_log *drops, const struct log *log,
		   const char *name, const struct spool *spool, int64_t now_ms);

struct netobs_sink {
	struct sink_host host; /* first: modules see nothing else */
	struct log log;
	struct log_error error;
	int (*get_stats)(struct netobs_stats *ret_stats, void *user);
	struct sink_link link; /* to its context, if it has one */
	char *name; /* the spec without options, which may be secret; or NULL */
	const struct sink_module *module;
	void *state; /* the module's */
	struct spool spool;
	struct drop_log drops;
	struct loop loop;
	int timer;
	int64_t wake_ms; /* timer of the module, CLOCK_MONOTONIC; 0: none */
	int64_t tick_ms; /* timer of the spool; 0: none */
	int64_t delivered_ms; /* the last time, of sink_age_ms(); 0: never */
	int64_t pending_since_ms; /* nothing was pending then */
	int64_t asleep_ms;	  /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
	unsigned int unflushed;
	unsigned int given;   /* records, in this call */
	int64_t slice_end_ms; /* end of the time of this call, CLOCK_MONOTONIC */
	bool is_unfinished; /* the time ended before all records were handled */
	bool is_flushing;   /* send gathered records now */
	bool is_settling; /* the module gets no more records: netobs_sink_settle() */
	struct unpacked unpacked;
	struct netobs_stats last_stats; /* statistics last written as a record */
};

static inline struct netobs_sink *sink_of_host(const struct sink_host *host)
{
	return (struct netobs_sink *)host;
}

/*
 * Ages are of CLOCK_BOOTTIME, which cannot be set; it has no coarse variant, which costs
 * a record less.
 */
static inline int64_t sink_age_ms(const struct netobs_sink *sink)
{
	return clock_ms(CLOCK_MONOTONIC_COARSE) + sink->asleep_ms;
}

/*
 * Find the module for the kind that @spec names, and load it if it is not part of the
 * library. -EINVAL: there is no such kind; -ENOENT: it cannot be loaded. Both are
 * logged.
 */
int sink_find_module(struct spec *spec, const struct sink_module **ret_module);

#endif
