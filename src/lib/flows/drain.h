/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads the entries of a generation at rest, slice by slice, and leaves it empty: those of
 * the overflow table, which are folded, those of L1, then those that were folded.
 *
 * Many folded entries are read twice: a first time so that the receiver learns which
 * flows occur more than once, and can deliver all others at once instead of
 * keeping them. That bounds its memory.
 *
 * If the fold is kept (fold_kept.h), those of L1 are folded, too: then each entry is in the
 * kernel's tables or in the fold, wherever the process is killed.
 */
#ifndef NETOBS_FLOWS_DRAIN_H
#define NETOBS_FLOWS_DRAIN_H

#include "engine/store.h"
#include "fold.h"

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
	uint32_t cpu;	 /* DRAIN_L1: the next one */
	uint32_t bucket; /* the next one there */
	uint32_t next;	 /* folded entry */
	uint32_t n_folded;
	bool is_held;	  /* entries stay until the receiver resets the fold */
	bool is_complete; /* all of the generation was read */
	uint64_t spilled[GENERATIONS]; /* packets, up to the last drain */
};

void drain_init(struct drain *drain, struct store *store, struct fold *fold,
		drain_entries_fn *on_entries, void *ctx);

/* The sources of the fold; the first ones are the logs. */
static inline uint32_t drain_source_l1(const struct store *store)
{
	return store->n_cpus;
}

static inline uint32_t drain_source_overflow(const struct store *store)
{
	return store->n_cpus + 1;
}

static inline uint32_t drain_n_sources(const struct store *store)
{
	return store->n_cpus + 2;
}

/*
 * Before the first drain, with a fold that is kept: an entry of L1 that an earlier process
 * has folded, but not removed, is removed. @return 0, or -errno
 */
int drain_recover(const struct drain *drain);

/* Start on @generation, which is at rest; all records of its logs are folded. */
void drain_start(struct drain *drain, uint32_t generation);

/**
 * Do a slice.
 *
 * @return > 0: there is more; 0: all is done; or -errno: what is left comes with the
 *         generation's next drain
 */
int drain_step(struct drain *drain);

#endif
