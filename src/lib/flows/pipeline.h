/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of the logs are folded as they come. One drain from end to end: flip the
 * generation, let it settle, read the rest of it, merge it, report, and balance the books.
 * In steps, none of which blocks for long.
 */
#ifndef NETOBS_FLOWS_PIPELINE_H
#define NETOBS_FLOWS_PIPELINE_H

#include "drain.h"
#include "fold_kept.h"
#include "engine/generation.h"
#include "engine/logs.h"
#include "health.h"
#include "merge.h"
#include "who/who.h"

struct pipeline_options {
	struct store_options store;
	struct merge_options merge;
	bool wants_processes;
	uint64_t disabled_features; /* as netobs_opts.disable_features */
	void (*on_interval)(void *user);
	void (*on_commit)(uint64_t number, void *user); /* see netobs.h */
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
	struct kept_parts {
		struct fold_memory chunks;
		struct fold_kept *fold; /* mapped; or NULL */
		size_t fold_bytes;
		void *batch; /* of overflow tables, likewise */
	} kept;
	struct drain drain;
	struct merge merge;
	struct health health;	     /* of connections, if they are measured */
	struct who who;		     /* processes, if they are wanted */
	struct flow_extra extras[2]; /* of these */
	enum {
		PIPELINE_IDLE,
		PIPELINE_SETTLING,
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
	/* Generations of which an earlier process had not reported all that it had read. */
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
	struct counters uncommitted; /* counted, of the generation of the drain */
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

int pipeline_init(struct pipeline *pipeline,
		  const struct pipeline_options *options,
		  const struct host *host, const struct log *log);
void pipeline_done(struct pipeline *pipeline);

/* Leave what is counted from the next drain on where it is, for the next process. */
void pipeline_leave(struct pipeline *pipeline);

/* Packets that no process can report any more. */
void pipeline_abandon(struct pipeline *pipeline, const struct count *count);

/*
 * Start a drain of what was seen before @now_ns; none is under way. Behind a MERGE_FINAL one
 * comes another if an earlier drain could not read all of its generation.
 */
void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns);

enum pipeline_relief {
	PIPELINE_RELIEVED,
	PIPELINE_BEHIND, /* call again in PIPELINE_BEHIND_MS */
	PIPELINE_FULL,	 /* a drain is what helps */
};

enum { PIPELINE_BEHIND_MS = 1 };

/** @return a descriptor that is readable when pipeline_read_sockets() is due; -1: none ever is */
int pipeline_sockets_fd(const struct pipeline *pipeline);

/** Read what programs report about sockets. @return whether there is more */
bool pipeline_read_sockets(struct pipeline *pipeline);

/* Logs fill up: fold records. */
enum pipeline_relief pipeline_relieve(struct pipeline *pipeline);

/* The same, until no log is full. False: PIPELINE_FULL. */
bool pipeline_relieve_now(struct pipeline *pipeline);

/*
 * Work on the drain for about a millisecond. False: it is over; true: call again
 * in pipeline_wait_ms().
 */
bool pipeline_step(struct pipeline *pipeline);

/* Complete the drain that is under way, if any. Waits, where a context steps. */
void pipeline_finish(struct pipeline *pipeline);

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

/* ---- Tables that outlive the process: pipeline_restart.c ----------------------------- */

/*
 * Have the fold outlive the process if the tables do, and go on with what an earlier one has
 * left of it; before the logs are read. @return 0, or -errno
 */
int pipeline_keep(struct pipeline *pipeline);
void pipeline_close_kept(struct pipeline *pipeline);

/* As if the drain had begun that reads what the process before may have left of one. */
void pipeline_adopt(struct pipeline *pipeline);

/*
 * Whether a drain takes effect as a whole: of a process that is killed in the middle, the next
 * one does it again.
 */
bool pipeline_is_exact(const struct pipeline *pipeline);

/* A drain that was exact so far takes effect. */
void pipeline_commit(struct pipeline *pipeline);

/* From now on, the process has what it could not report if it were killed. */
void pipeline_note_reading(const struct pipeline *pipeline);

/* After each step: what is lost if the process is killed. */
void pipeline_note_unreported(const struct pipeline *pipeline);

/* ---- What was counted, and what arrived: pipeline_books.c ---------------------------- */

/* Of a generation that has been read, all that was counted must have arrived: check, and log. */
void pipeline_balance(struct pipeline *pipeline);

/* At the end of a drain: report the packets that were seen, and the counts of interfaces. */
void pipeline_sum_up(struct pipeline *pipeline);

/*
 * Whether the generation after that of the last drain has something that was left before, or
 * flows were not reported for want of memory.
 */
bool pipeline_has_left(const struct pipeline *pipeline);

/**
 * @return whether all has been read that programs wrote before @since_ns (CLOCK_BOOTTIME), or,
 *         of those that ran then, after it
 */
bool pipeline_has_read(const struct pipeline *pipeline, int64_t since_ns);

/* As of the last drain; `interfaces` and `shadowed` are left alone. */
void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats);

#endif
