/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The structs of a pipeline, which pipeline_books.h, pipeline_restart.h and pipeline.h share.
 * Each of these uses those before it.
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
	struct translations translations; /* by NAT, if they are wanted */
	struct flow_drops drops;	  /* if they are wanted */
	struct flow_extra extras[4];	  /* of these four features */
	enum {
		PIPELINE_IDLE,
		PIPELINE_SETTLING,
		PIPELINE_DROPS,	  /* drops are being read */
		PIPELINE_LISTING, /* sockets are being listed */
		PIPELINE_READING,
		PIPELINE_DRAINING,
		PIPELINE_SWEEPING
	} phase;
	enum merge_mode mode;
	uint32_t wait_ms;   /* before the next step */
	uint32_t n_retries; /* of reading a log, or of the drain's reading */
	int read_err;	    /* why this drain leaves something unread, or 0 */
	bool is_refusing; /* a record of the current generation found no room */
	bool is_leaving; /* the next process reports the records of the current generation */
	/* Generations that an earlier process may have read in part without noting it. */
	bool is_recovering[GENERATIONS];
	int64_t flip_ns; /* when the drain began, by the flows' clock */

	int64_t cost_ns;   /* CPU time of this drain, or of the last one */
	int64_t rested_ns; /* no early drain begins before that time */

	/* By generation, since the beginning: counted packets, arrived packets. */
	struct counters counted[GENERATIONS];
	struct count arrived[GENERATIONS];
	struct count entered; /* first sights among the arrived packets, see topology.h */
	struct count seen; /* as of the last drain */
	struct count unclaimed;
	struct count abandoned; /* by an earlier process, which was killed */
	struct count found_abandoned; /* found in the drain that is under way */
	struct count unread[GENERATIONS]; /* counted packets that could not be read: no memory */
	/* Of all interfaces, including those that are gone; see struct netif. */
	struct outcomes crossed[2], reported[2];
	struct netobs_stats stats; /* when the drain began: they balance between drains */
	struct netobs_engine_stats engine_stats; /* of drains */
	int64_t begun_ns;	 /* when the drain began, CLOCK_BOOTTIME */
	int64_t begun_before_ns; /* when the drain before it began */
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
