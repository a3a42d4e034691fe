/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The part of a fold that outlives its process, in memory that does: chunks with entries,
 * how many there are, and how far each source of entries has been added. Indexes are not
 * part of it: they are made anew from the entries.
 *
 * Each addition is all there or not at all, wherever the process is killed. A journal has
 * the entry as it was, and is valid as long as the source's position is not behind the
 * addition: that store is the last one. A kill tears no aligned word, and leaves the
 * stores of a thread in their order, so the compiler alone is kept from changing it. That
 * is not so when the host stops; then the memory is gone, too.
 */
#ifndef NETOBS_FLOWS_FOLD_KEPT_H
#define NETOBS_FLOWS_FOLD_KEPT_H

#include "fold.h"

enum {
	FOLD_CHUNKS_MAX = 8192, /* of a huge page */
	FOLD_JOURNAL_WORDS = sizeof(struct flow_tally) / sizeof(uint64_t),
};

struct fold_kept_list {
	uint32_t n_entries;
	uint32_t n_chunks;
	uint16_t chunks[FOLD_CHUNKS_MAX]; /* their numbers */
};

/* The addition that is under way. */
struct fold_journal {
	uint64_t position; /* of the source, once it is complete; 0: there is none */
	uint32_t source;
	uint32_t generation;
	uint32_t form;
	uint32_t number; /* of the entry in its list */
	uint32_t n_entries; /* of the list, before: then a new one has that number */
	uint32_t reserved;
	uint64_t before[FOLD_JOURNAL_WORDS]; /* a short entry, or the tally of a long one */
};

struct fold_kept {
	uint64_t layout;
	uint32_t n_sources;
	uint32_t n_chunks; /* numbers of chunks that exist are lower */
	uint32_t n_read[GENERATIONS]; /* entries that the process has taken out */
	struct fold_journal journal;
	struct fold_kept_list lists[GENERATIONS][FOLD_FORMS];
	uint64_t positions[]; /* of sources: all before is added */
};

/* Where chunks come from. All have the size of a huge page. */
struct fold_memory {
	/* Of an earlier process, or a new one of zeroes; NULL: there is none, or no memory. */
	void *(*open)(void *ctx, uint32_t number);
	void *(*make)(void *ctx, uint32_t number);
	void (*close)(void *ctx, void *chunk); /* it stays */
	void (*remove)(void *ctx, uint32_t number, void *chunk);
	void *ctx;
};

static inline size_t fold_kept_bytes(uint32_t n_sources)
{
	return sizeof(struct fold_kept) + n_sources * sizeof(uint64_t);
}

/**
 * Keep a fold, which is empty, in memory that outlives the process, and go on with what
 * an earlier process has left there.
 *
 * @param kept    fold_kept_bytes(); zeroes: there was none
 * @param memory  stays the caller's
 * @return 0; -ESTALE: it was another version's, or is damaged: it has no entries now;
 *         -ENOMEM: without any change
 */
int fold_keep(struct fold *fold, struct fold_kept *kept, uint32_t n_sources,
	      const struct fold_memory *memory);

/* ---- Sources ------------------------------------------------------------------ */

/*
 * What is added next is that of @source from @at on. Positions of a source only grow, by
 * the slots of a record, or by one with an entry, until it begins anew.
 */
void fold_add_from(struct fold *fold, uint32_t source, uint64_t at);

/* What is next in the source is not added: @n of its positions. */
void fold_pass(struct fold *fold, uint64_t n);

/** @return up to where the source was added; 0: it is not kept */
uint64_t fold_position(const struct fold *fold, uint32_t source);

/* Entries with numbers below @before are about to be taken out: they will not be read again. */
void fold_note_read(struct fold *fold, uint32_t generation, uint32_t before);

/** @return the number of the first entry that has not been taken out */
uint32_t fold_first(const struct fold *fold, uint32_t generation);

#endif
