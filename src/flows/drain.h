/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads a generation at rest, slice by slice, and leaves it empty: first what
 * the ring buffer and L1 hold, then L2.
 *
 * A large L2 is read twice: a first time so that the receiver learns which
 * flows occur more than once, and can deliver all others at once instead of
 * keeping them. That bounds its memory.
 */
#ifndef NETOBS_FLOWS_DRAIN_H
#define NETOBS_FLOWS_DRAIN_H

#include "engine/store.h"

#include <stdbool.h>

enum drain_reading {
	DRAIN_ONLY, /* the entry is read once */
	DRAIN_FIRST,
	DRAIN_SECOND,
};

/* Receives up to BUCKET_SLOTS entries. DRAIN_FIRST: only their keys are valid. */
typedef void drain_entries_fn(void *ctx, enum drain_reading reading,
			      const struct flow_entry *const *entries, int n);

/* Receives each struct event of the ring buffer; its size says which kind. */
typedef int drain_event_fn(void *ctx, void *data, size_t size);

struct drain {
	struct store *store;
	drain_event_fn *on_event;
	drain_entries_fn *on_entries;
	void *ctx;
	enum {
		DRAIN_IDLE,
		DRAIN_L1,
		DRAIN_L2_KEEP,
		DRAIN_L2_ANNOUNCE,
		DRAIN_L2_DELIVER
	} phase;
	uint32_t generation;
	uint32_t cpu;	  /* DRAIN_L1: the next one */
	uint64_t inserts; /* into L2 */
	uint32_t level;	  /* DRAIN_L2_*: the next table */
	uint32_t bucket;  /* the next one there */
};

void drain_init(struct drain *drain, struct store *store,
		drain_event_fn *on_event, drain_entries_fn *on_entries,
		void *ctx);

/* Start on @generation, which is at rest. */
void drain_start(struct drain *drain, uint32_t generation);

/*
 * Do a slice: > 0 there is more, 0 all done, or -errno. After an error what is
 * left comes with the generation's next drain.
 */
int drain_step(struct drain *drain);

/* Read the ring buffer, at any time. */
int drain_events(struct drain *drain);

#endif
