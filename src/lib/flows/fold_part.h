/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a fold. */
#ifndef NETOBS_FLOWS_FOLD_PART_H
#define NETOBS_FLOWS_FOLD_PART_H

#include "base/pages.h"
#include "fold_kept.h"

#include <string.h>

enum {
	CHUNK_SHORT = PAGES_HUGE / sizeof(struct short_entry),
	CHUNK_LONG = PAGES_HUGE / sizeof(struct flow_entry),
};

struct fold_chunk {
	union {
		struct short_entry shorts[CHUNK_SHORT];
		struct flow_entry longs[CHUNK_LONG];
		struct fold_chunk *next; /* while it is spare */
	};
};

_Static_assert(sizeof(struct fold_chunk) == PAGES_HUGE, "is one");

/* ---- Entries: fold.c ------------------------------------------------------------- */

static inline struct short_entry *fold_short_at(const struct fold_generation *g,
						uint32_t number)
{
	return &g->lists[FOLD_SHORT]
			.chunks[number / CHUNK_SHORT]
			->shorts[number % CHUNK_SHORT];
}

static inline struct flow_entry *fold_long_at(const struct fold_generation *g,
					      uint32_t number)
{
	return &g->lists[FOLD_LONG]
			.chunks[number / CHUNK_LONG]
			->longs[number % CHUNK_LONG];
}

/* Room for one more chunk in a list. False: no memory. */
bool fold_reserve_list(struct fold_list *list);

/* Give a chunk that no list has to those that come. */
void fold_put_spare(struct fold *fold, struct fold_chunk *chunk);

/* Have the index lead to each entry of a generation. False: no memory. */
bool fold_index_entries(struct fold *fold, uint32_t generation);

/* ---- Memory that outlives the process: fold_kept.c --------------------------------- */

/* NULL: no memory. */
struct fold_chunk *fold_kept_make_chunk(struct fold *fold);
void fold_kept_remove_chunk(struct fold *fold, struct fold_chunk *chunk);

/* The list has one more, its last one. */
void fold_kept_note_chunk(struct fold *fold, const struct fold_generation *g,
			  enum fold_form form);

/* Empty a generation, before its chunks are others'. */
void fold_kept_reset(struct fold *fold, uint32_t generation);

/* Leave it. */
void fold_kept_done(struct fold *fold);

/* ---- Additions -------------------------------------------------------------------- */

/* For who reads the memory after a kill, what is stored before is there before the rest. */
static inline void fold_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* @before: what will change of the entry; NULL: it is new. */
static inline void fold_begin_addition(const struct fold *fold,
				       const struct fold_generation *g,
				       enum fold_form form, uint32_t number,
				       const void *before)
{
	struct fold_journal *journal = &fold->kept->journal;

	journal->position = 0;
	fold_order();
	journal->generation = (uint32_t)(g - fold->generations);
	journal->form = form;
	journal->number = number;
	journal->n_entries = g->lists[form].n_entries;
	if (before)
		memcpy(journal->before, before, sizeof(journal->before));
	fold_order();
	journal->position = fold->at + fold->step;
	fold_order();
}

static inline void fold_complete_addition(struct fold *fold)
{
	fold->at += fold->step;
	fold_order();
	fold->kept->positions[fold->source] = fold->at;
	fold_order();
}

/* A new entry is written: it is one of the list's from now on. */
static inline void fold_publish_entry(const struct fold *fold,
				      const struct fold_generation *g,
				      enum fold_form form)
{
	fold_order();
	fold->kept->lists[g - fold->generations][form].n_entries =
		g->lists[form].n_entries;
}

#endif
