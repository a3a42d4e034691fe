/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What a fold consists of: the structs that fold_kept.h, fold.h and fold_recover.h share, of
 * which each uses those before it.
 */
#ifndef NETOBS_FLOWS_FOLD_STATE_H
#define NETOBS_FLOWS_FOLD_STATE_H

#include "base/pages.h"
#include "bpf/store/hash.h"
#include "short_entry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Entries ------------------------------------------------------------------------ */

enum {
	FOLD_INDEX_BITS = 4,
	FOLD_INDEXES = 1 << FOLD_INDEX_BITS,
	/* An entry, and its part of the index when that was just resized. */
	FOLD_INDEX_BYTES = 6 * sizeof(uint64_t),
	FOLD_SHORT_BYTES = sizeof(struct short_entry) + FOLD_INDEX_BYTES,
	FOLD_LONG_BYTES = sizeof(struct flow_entry) + FOLD_INDEX_BYTES,
};

enum fold_form { FOLD_SHORT, FOLD_LONG, FOLD_FORMS };

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

_Static_assert(sizeof(struct fold_chunk) == PAGES_HUGE, "a huge page");

/* ---- The part that outlives the process, see fold_kept.h ------------------------------ */

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
	uint32_t n_entries; /* of the list before, which is the number of a new entry */
	uint32_t reserved;
	uint64_t before[FOLD_JOURNAL_WORDS]; /* a short entry, or the tally of a long one */
};

struct fold_kept {
	uint64_t layout;
	uint32_t n_sources;
	uint32_t n_chunks; /* numbers of chunks that exist are lower */
	uint32_t n_read[GENERATIONS]; /* entries that are not read again */
	struct fold_journal journal;
	struct fold_kept_list lists[GENERATIONS][FOLD_FORMS];
	uint64_t positions[]; /* of sources, up to which these were added */
};

/* Where chunks come from. All have the size of a huge page. */
struct fold_memory {
	/* open: of an earlier process; make: a new one of zeroes. NULL: none, or no memory. */
	void *(*open)(void *ctx, uint32_t number);
	void *(*make)(void *ctx, uint32_t number);
	void (*close)(void *ctx, void *chunk); /* it stays */
	void (*remove)(void *ctx, uint32_t number, void *chunk);
	void *ctx;
};

/* ---- The fold ----------------------------------------------------------------------- */

struct fold_generation {
	struct fold_list {
		struct fold_chunk **chunks;
		uint32_t n_chunks;   /* entries are in */
		uint32_t n_released; /* of these, the first ones */
		uint32_t capacity;   /* of `chunks` */
		uint32_t n_entries;
	} lists[FOLD_FORMS];
	bool is_closed; /* from its first release to its reset */
	struct fold_index {
		uint64_t *slots; /* hash << 32 | place; 0: free */
		uint32_t bits;	 /* log2 of how many there are */
		uint32_t n_used;
	} indexes[FOLD_INDEXES]; /* by the upper bits of the hash */
};

struct fold {
	const struct hash_secret *secret;
	uint64_t max_entries; /* of a generation */
	uint64_t max_bytes;   /* of both, without those that were released */
	struct fold_generation generations[GENERATIONS];
	struct fold_chunk *spare; /* a list */
	uint32_t n_spare;
	uint32_t n_used;      /* chunks of both generations */
	uint32_t used_most;   /* since the last reset, */
	uint32_t used_before; /* and between that and the one before */

	/* What outlives the process, see fold_kept.h; NULL: nothing does. */
	struct fold_kept *kept;
	const struct fold_memory *memory;
	struct fold_chunk **kept_chunks; /* by their numbers */
	uint32_t source;		 /* of the additions */
	uint32_t step; /* by which the addition under way advances the source */
	uint64_t at;   /* position of the source, before it */
};

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

#endif
