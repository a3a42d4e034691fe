/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Records of the logs are folded as they come. One drain from end to end: flip the
 * generation, wait until it settles, read the rest of it, merge it, report, and balance the books.
 * In steps, none of which blocks for long.
 */
#ifndef NETOBS_FLOWS_PIPELINE_H
#define NETOBS_FLOWS_PIPELINE_H

#include "engine/store.h"
#include "fold.h"
#include "merge.h"

/* ---- Drain ------------------------------------------------------------------------------- */

/*
 * Reads the entries of a generation at rest, slice by slice, and leaves it empty: first the entries of
 * the overflow table, which it folds, then those of L1, then the folded ones.
 *
 * Many folded entries are read twice: a first time so that the receiver learns which flows occur more
 * than once, and can deliver all others at once instead of keeping them. That bounds its memory.
 *
 * An entry is removed from the kernel's tables before it is reported. So if the process is killed
 * anywhere, the next one finds no entry that was delivered.
 */

enum drain_reading {
	DRAIN_ONLY, /* the entry is read once */
	DRAIN_FIRST,
	DRAIN_SECOND,
};

/* Receives up to BUCKET_SLOTS entries. */
typedef void drain_entries_fn(void *ctx, enum drain_reading reading,
			      const struct flow_entry *const *entries, int n);

struct drain {
	struct store *store;
	struct fold *fold; /* has the records of the logs */
	drain_entries_fn *on_entries;
	void *ctx;
	enum {
		DRAIN_IDLE,
		DRAIN_OVERFLOW,
		DRAIN_L1,
		DRAIN_KEEP,
		DRAIN_ANNOUNCE,
		DRAIN_DELIVER
	} phase;
	uint32_t generation;
	uint32_t cpu;	 /* DRAIN_L1: the next one to read */
	uint32_t bucket; /* of that CPU: the next one to read */
	uint32_t next;	 /* the folded entry to read next */
	uint32_t n_folded;
	uint64_t spilled[GENERATIONS]; /* packets spilled into that generation, as of its last drain */
};

void drain_init(struct drain *drain, struct store *store, struct fold *fold,
		drain_entries_fn *on_entries, void *ctx);

/* Start on @generation, which is at rest; all records of its logs are folded. */
void drain_start(struct drain *drain, uint32_t generation);

/**
 * Do a slice.
 *
 * @return > 0: there is more; 0: all is done; or -errno: the generation's next
 *         drain brings the other flows
 */
int drain_step(struct drain *drain);

/* ---- Pipeline ---------------------------------------------------------------------------- */

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
	struct logs logs;
	struct fold fold;
	struct drain drain;
	struct merge merge;
	enum {
		PIPELINE_IDLE,
		PIPELINE_SETTLING,
		PIPELINE_FEATURES, /* their steps are under way */
		PIPELINE_READING,
		PIPELINE_DRAINING,
		PIPELINE_SWEEPING
	} phase;
	enum merge_mode mode;
	uint32_t wait_ms;      /* before the next step */
	uint32_t next_feature; /* whose step is due */
	uint32_t n_retries;    /* of reading a log, or of the drain's reading */
	int read_err;	  /* why this drain leaves something unread, or 0 */
	bool is_refusing; /* a record of the current generation found no room */
	bool is_leaving; /* the next process reports the records of the current generation */
	/* Generations that an earlier process may have read in part without noting it. */
	bool is_recovering[GENERATIONS];
	int64_t flip_ns; /* when the drain began, by the flows' clock */

	int64_t cost_ns;   /* CPU time of this drain, or of the last one */
	int64_t rested_ns; /* no early drain begins before that time */

	/* Counted and arrived packets since the beginning, by generation. */
	struct counters counted[GENERATIONS];
	struct count arrived[GENERATIONS];
	struct count entered; /* first sights among the arrived packets, see topology.h */
	struct count seen; /* as of the last drain */
	struct count unclaimed;
	struct count abandoned; /* by an earlier process, which was killed */
	struct count found_abandoned; /* found in the drain that is under way */
	struct count unread[GENERATIONS]; /* counted packets that could not be read: no memory */
	/* Outcomes of all interfaces, including those that are gone; see struct netif. */
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

/* Compares the packets that programs counted with those that arrived, and sums them up. */

/* Check that all counted packets of a generation that was read have arrived, and log a difference. */
void pipeline_balance(struct pipeline *pipeline);

/* Report the packets that were seen, and the counts of interfaces, at the end of a drain. */
void pipeline_sum_up(struct pipeline *pipeline);

/*
 * @return whether the generation that comes after the last drained one has entries left from
 * before, or flows were not reported for want of memory
 */
bool pipeline_has_left(const struct pipeline *pipeline);

/**
 * @return whether all packets have been read that programs counted before @since_ns
 *         (CLOCK_BOOTTIME), including those of programs that were running then
 */
bool pipeline_has_read(const struct pipeline *pipeline, int64_t since_ns);

/* Get the statistics as of the last drain; `interfaces` and `shadowed` are left alone. */
void pipeline_stats(const struct pipeline *pipeline,
		    struct netobs_stats *ret_stats);

/* Packets that no process can report any more; pipeline_note() logs them. */
void pipeline_abandon(struct pipeline *pipeline, const struct count *count);

/*
 * Tables that outlive the process: the next process delivers what is in them, after a clean end and
 * after a kill. Packets that a killed process had drained and not noted count as lost.
 */

/*
 * Begin with a drain of the generation that the earlier process was not writing to, in case it
 * was killed in the middle of one.
 */
void pipeline_adopt(struct pipeline *pipeline);

/*
 * Note for the next process, at the end of a drain, that its records have been delivered. If this
 * one is killed before, all packets that it has drained count as lost; if it is killed later, none
 * of them does.
 */
void pipeline_note(struct pipeline *pipeline);

/* Leave packets that are counted after the next drain to the next process. */
void pipeline_leave(struct pipeline *pipeline);

/* Open the store. Features may be added to options.merge.extras of the pipeline then. */
int pipeline_open(struct pipeline *pipeline,
		  const struct pipeline_options *options, const struct log *log);
/* Prepare the rest. After an error of either, pipeline_done() frees all. */
int pipeline_init(struct pipeline *pipeline, const struct host *host);
void pipeline_done(struct pipeline *pipeline);

/*
 * Start a drain of what was seen before @now_ns; none is under way. Behind a MERGE_FINAL one
 * comes another if an earlier drain could not read all of its generation.
 */
void pipeline_begin(struct pipeline *pipeline, enum merge_mode mode,
		    int64_t now_ns);

enum pipeline_relief {
	PIPELINE_RELIEVED,
	PIPELINE_BEHIND, /* call again in PIPELINE_BEHIND_MS */
	PIPELINE_FULL,	 /* only a drain makes room */
};

enum { PIPELINE_BEHIND_MS = 1 };

/* Logs fill up: fold records. */
enum pipeline_relief pipeline_relieve(struct pipeline *pipeline);

/* Fold records until no log is full. False: PIPELINE_FULL. */
bool pipeline_relieve_now(struct pipeline *pipeline);

/*
 * Work on the drain for about a millisecond. False: it is over; true: call again
 * in pipeline_wait_ms().
 */
bool pipeline_step(struct pipeline *pipeline);

/* Complete the drain that is under way, if any. Waits, where a context steps. */
void pipeline_finish(struct pipeline *pipeline);

#endif
