/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * One drain from end to end: flip the generation, let it settle, read it, merge
 * it, report, and balance the books. In steps, none of which blocks for long.
 */
#ifndef NETOBS_LIB_PIPELINE_H
#define NETOBS_LIB_PIPELINE_H

#include "drain.h"
#include "generation.h"
#include "merge.h"

struct pipeline_options {
	struct store_options store;
	struct merge_options merge;
	void (*on_interval)(void *user);
	void *user;
};

struct pipeline {
	const struct log *log;
	struct pipeline_options options;
	struct clock clock;
	struct store store;
	struct generation generation;
	struct drain drain;
	struct merge merge;
	enum {
		PIPELINE_IDLE,
		PIPELINE_SETTLING,
		PIPELINE_DRAINING,
		PIPELINE_SWEEPING
	} phase;
	enum merge_mode mode;
	int64_t flip_ns;

	/* What the ring buffer brought of the generation being written to. */
	struct flow_entry *held;
	uint32_t n_held;
	uint32_t held_capacity;

	/* By generation, since the beginning: what was counted, what arrived. */
	struct counters counted[GENERATIONS];
	struct count arrived[GENERATIONS];
	uint64_t drains;
	uint64_t early_drains;
	uint64_t table_entries;
};

int pipeline_init(struct pipeline *pipeline,
		  const struct pipeline_options *options,
		  const struct watch *watch, const struct log *log);
void pipeline_done(struct pipeline *pipeline);

/* Start a drain of what was seen before @now_ns; none is under way. */
void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns);

/*
 * The programs may have asked for room: give it to them. False: they have, and
 * a drain is what helps.
 */
bool pipeline_relieve(struct pipeline *pipeline);

/*
 * Work on the drain. False: it is over; true: call again, at once or, while
 * pipeline_is_settling(), in GENERATION_WAIT_MS.
 */
bool pipeline_step(struct pipeline *pipeline);

/* Complete the drain that is under way, if any. */
void pipeline_finish(struct pipeline *pipeline);

static inline bool pipeline_is_settling(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_SETTLING;
}

static inline bool pipeline_is_idle(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_IDLE;
}

/* As of the last drain; `interfaces` is left alone. */
void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats);

#endif
