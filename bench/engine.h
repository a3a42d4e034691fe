/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The real thing: the library's programs and its drain, without an interface. */
#ifndef NETOBS_BENCH_ENGINE_H
#define NETOBS_BENCH_ENGINE_H

#include "runner.h"

#include "engine/alerts.h"
#include "flows/pipeline.h"
#include "host/host.h"

#include <netobs/sink.h>
#include <pthread.h>

struct engine {
	struct log log;
	struct host host; /* of one interface */
	struct pipeline pipeline;
	struct programs programs;
	pthread_mutex_t lock;	     /* of the pipeline, for engine_tend() */
	struct netobs_stats stats;   /* as of the last drain */
	uint64_t flows;		     /* reported so far */
	uint64_t packets;	     /* in them */
	uint64_t packets_before;     /* the user's */
	struct alerts alerts;	     /* of designs with rules; or zeroes */
	struct netobs_sink *sink;    /* the user's, for the records; or NULL */
	void (*on_step)(void *user); /* during a drain; or NULL */
	void *user;
};

enum {
	ENGINE_BURST = 4096 /* packets, of which user space is behind at most */
};

/* As netobsctl flows does by default but for @special, with room for @flows. */
int engine_open(struct engine *engine, uint32_t flows,
		const struct store_options *special);
void engine_close(struct engine *engine);

/* A drain from beginning to end. */
void engine_drain(struct engine *engine);

/* What a context does when the programs have woken it up. Any thread may call it. */
void engine_tend(void *engine);

/* Wait for that, then do it. */
void engine_attend(void *engine);

/* A packet of each flow; logs that fill up are read. */
int engine_fill(struct engine *engine, const struct runner *runner);

/*
 * Fill the store with all flows and drain it, until its tables have the size
 * for them. The store is empty then.
 */
int engine_adapt(struct engine *engine, const struct runner *runner);

/* Packets in flows, those that the filter rejected, and those sampled out, as of the last drain. */
static inline uint64_t engine_packets(const struct engine *engine)
{
	return engine->packets + engine->stats.filtered.packets +
	       engine->stats.sampled_out.packets;
}

/* Packets so far, as of the last drain. */
struct engine_tally {
	uint64_t observed;
	uint64_t misplaced; /* lost, or had no room in a log that there is */
};

struct engine_tally engine_tally(const struct engine *engine);

/* Whether next to nothing was misplaced since @before. */
bool engine_has_room(const struct engine *engine,
		     const struct engine_tally *before);

#endif
