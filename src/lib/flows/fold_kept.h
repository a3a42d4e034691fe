/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The part of a fold that outlives its process, in memory that does: chunks with entries, how
 * many entries there are, and up to which position each source of entries has been added. The
 * logs of the CPUs are sources, and so are L1 and the overflow tables (drain.h). Indexes are
 * not kept: fold_recover.c makes them anew from the entries.
 *
 * Each addition takes place wholly or not at all, wherever the process is killed. Say the log
 * of CPU 3 was added up to position 700, and its next record, of one slot, belongs to short
 * entry 41. These stores follow each other:
 *
 *	journal: source 3, short entry 41, and its 64 bytes as they are
 *	journal.position = 701		the journal is valid
 *	short entry 41			in several stores
 *	positions[3] = 701		the addition is complete, and the journal is void
 *
 * The next process finds either a position of 701, behind which it goes on; or one of 700 and
 * a journal that is valid, because its position is greater. Then it restores entry 41 from the
 * journal and reads the record again. Where the addition made a new entry, the journal has the
 * number of entries before it, which is restored instead.
 *
 * A kill tears no aligned word, and leaves the stores of a thread in their order. So it is
 * enough that the compiler keeps that order, which fold_order() is for. If the host itself
 * stops, the order may be lost, but the memory is lost as well.
 */
#ifndef NETOBS_FLOWS_FOLD_KEPT_H
#define NETOBS_FLOWS_FOLD_KEPT_H

#include "fold_state.h"

#include <string.h>

/* ---- Sources ------------------------------------------------------------------ */

/*
 * The next additions are from @source, beginning at its position @at. A record advances the
 * position by its slots, an entry by one; a source that begins anew is at 0 again.
 */
void fold_add_from(struct fold *fold, uint32_t source, uint64_t at);

/* Skip @n positions of the source, without an addition. */
void fold_pass(struct fold *fold, uint64_t n);

/** @return the position up to which the source was added; 0: the fold is not kept */
uint64_t fold_position(const struct fold *fold, uint32_t source);

/* Entries with numbers below @before are about to be delivered, and will not be read again. */
void fold_note_read(struct fold *fold, uint32_t generation, uint32_t before);

/** @return the number of the first entry that fold_note_read() has not covered */
uint32_t fold_first(const struct fold *fold, uint32_t generation);

/* ---- Chunks ----------------------------------------------------------------------- */

/* NULL: no memory. */
struct fold_chunk *fold_kept_make_chunk(struct fold *fold);
void fold_kept_remove_chunk(struct fold *fold, struct fold_chunk *chunk);

/* Note the last chunk of the list, which is new. */
void fold_kept_note_chunk(struct fold *fold, const struct fold_generation *g,
			  enum fold_form form);

/* Clear a generation, before its chunks are reused. */
void fold_kept_reset(struct fold *fold, uint32_t generation);

/* Unmap the chunks, whose contents stay for the next process. */
void fold_kept_done(struct fold *fold);

/* ---- Additions -------------------------------------------------------------------- */

/* Stores before it precede stores behind it, as a process sees them that reads after a kill. */
static inline void fold_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Write the journal. @before: the part of the entry that will change; NULL: the entry is new. */
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

/* Count a new entry, which has been written, in its list. */
static inline void fold_publish_entry(const struct fold *fold,
				      const struct fold_generation *g,
				      enum fold_form form)
{
	fold_order();
	fold->kept->lists[g - fold->generations][form].n_entries =
		g->lists[form].n_entries;
}

#endif
