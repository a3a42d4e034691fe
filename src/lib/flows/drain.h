/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
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
 * @return > 0: there is more; 0: all is done; or -errno: what is left comes with the
 *         generation's next drain
 */
int drain_step(struct drain *drain);

#endif
