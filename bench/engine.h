/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The real thing: the library's programs and its drain, without an interface. */
#ifndef NETOBS_BENCH_ENGINE_H
#define NETOBS_BENCH_ENGINE_H

#include "runner.h"

#include "api/features.h"
#include "host/host.h"

#include <netobs/sink.h>

struct engine {
	struct netobs_opts opts;
	struct log log;
	struct host host; /* of one interface */
	struct pipeline pipeline;
	struct features features;
	struct programs programs;
	struct netobs_stats stats;   /* as of the last drain */
	uint64_t flows;		     /* reported so far */
	uint64_t packets;	     /* in them */
	struct netobs_sink *sink;    /* the user's, for the records; or NULL */
	void (*on_step)(void *user); /* during a drain; or NULL */
	void *user;
};

/* As netobsctl flows does by default but for @flags of netobs_opts, with room for @flows. */
int engine_open(struct engine *engine, uint32_t flows, uint64_t flags);
void engine_close(struct engine *engine);

/* Its program, for outgoing packets, and what user space does while they run through it. */
struct target engine_target(struct engine *engine);

/* A drain from beginning to end. */
void engine_drain(struct engine *engine);

/*
 * Fill the store with all flows and drain it, until its tables have the size
 * for them. The store is empty then.
 */
int engine_adapt(struct engine *engine, struct runner *runner,
		 const struct target *target);

#endif
