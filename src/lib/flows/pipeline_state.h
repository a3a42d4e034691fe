/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a pipeline consists of: the structs that pipeline_books.h, pipeline_restart.h and
 * pipeline.h share, of which each uses those before it.
 */
#ifndef NETOBS_FLOWS_PIPELINE_STATE_H
#define NETOBS_FLOWS_PIPELINE_STATE_H

#include "drain.h"
#include "engine/generation.h"
#include "engine/logs.h"
#include "flow_drops.h"
#include "fold.h"
#include "health.h"
#include "merge.h"
#include "translations.h"
#include "who/who.h"

struct pipeline_options {
	struct store_options store;
	struct merge_options merge;
	bool wants_processes;
	struct container_names *names; /* of their containers; NULL: none are wanted */
	bool wants_drops;
	uint64_t disabled_features; /* as netobs_opts.disable_features */
	void (*on_interval)(void *user);
	void *user;
};

struct pipeline {
	const struct log *log;
	struct pipeline_options options;
	struct clock clock;
	struct store store;
	struct generation generation;
	struct logs logs;
	struct fold fold;
	struct drain drain;
	struct merge merge;
	struct health health; /* of connections, if they are measured */
	struct who who;	      /* processes, if they are wanted */
	struct translations translations; /* by NAT, likewise */
	struct flow_drops drops;	  /* likewise */
	struct flow_extra extras[4];	  /* of these */
	enum {
		PIPELINE_IDLE,
		PIPELINE_SETTLING,
		PIPELINE_DROPS,	  /* are read */
		PIPELINE_LISTING, /* sockets */
		PIPELINE_READING,
		PIPELINE_DRAINING,
		PIPELINE_SWEEPING
	} phase;
	enum merge_mode mode;
	uint32_t wait_ms;   /* before the next step */
	uint32_t n_retries; /* of reading a log, or of the drain's reading */
	int read_err;	    /* why this drain leaves something unread, or 0 */
	bool is_refusing; /* a record of the current generation found no room */
	bool is_leaving; /* records of the current generation are the next process's */
	/* Generations of which an earlier process may have read something, and noted nothing. */
	bool is_recovering[GENERATIONS];
	int64_t flip_ns; /* when the drain began, by the flows' clock */

	int64_t cost_ns;   /* CPU time of this drain, or of the last one */
	int64_t rested_ns; /* no drain ahead of time begins earlier */

	/* By generation, since the beginning: what was counted, what arrived. */
	struct counters counted[GENERATIONS];
	struct count arrived[GENERATIONS];
	struct count entered; /* of what arrived: first sights, see topology.h */
	struct count seen;    /* as of the last drain */
	struct count unclaimed;
	struct count abandoned; /* by an earlier process, which was killed */
	struct count found_abandoned; /* of these, in the drain that is under way */
	struct count unread[GENERATIONS]; /* missing of what was counted: no memory */
	/* Of all interfaces, also those that are gone, as in struct netif. */
	struct outcomes crossed[2], reported[2];
	struct netobs_stats stats; /* when the drain began: they balance between drains */
	struct netobs_engine_stats engine_stats; /* of drains */
	int64_t begun_ns;	 /* when the drain began, CLOCK_BOOTTIME */
	int64_t begun_before_ns; /* and the one before it */
	uint64_t drains;
	uint64_t early_drains;
	uint64_t final_drains;
	uint64_t table_entries;
};

static inline bool pipeline_is_settling(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_SETTLING;
}

static inline uint32_t pipeline_wait_ms(const struct pipeline *pipeline)
{
	return pipeline->wait_ms;
}

static inline bool pipeline_is_idle(const struct pipeline *pipeline)
{
	return pipeline->phase == PIPELINE_IDLE;
}

#endif
