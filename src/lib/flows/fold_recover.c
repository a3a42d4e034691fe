// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold_recover.h"

#include "base/util.h"
#include "fold.h"
#include "fold_kept.h"

#include <errno.h>

/* To be increased when what entries or struct fold_kept mean changes. */
enum { VERSION = 1 };

static const uint32_t chunk_entries[FOLD_FORMS] = { CHUNK_SHORT, CHUNK_LONG };

_Static_assert(sizeof(struct short_entry) ==
		       sizeof(((struct fold_journal *)0)->before),
	       "a journal has all that an addition changes");

static uint64_t encode_layout(void)
{
	return (uint64_t)VERSION << 48 |
	       (uint64_t)sizeof(struct fold_kept) << 16 |
	       sizeof(struct flow_entry);
}

static bool is_sound_list(const struct fold_kept *kept,
			  const struct fold_kept_list *list, enum fold_form form)
{
	if (list->n_chunks > FOLD_CHUNKS_MAX ||
	    list->n_entries > list->n_chunks * (uint64_t)chunk_entries[form])
		return false;
	for (uint32_t i = 0; i < list->n_chunks; i++)
		if (list->chunks[i] >= kept->n_chunks)
			return false;
	return true;
}

/* Else the journal is void: its generation may have been emptied since. */
static bool is_under_way(const struct fold_kept *kept)
{
	const struct fold_journal *journal = &kept->journal;

	return journal->position > kept->positions[journal->source];
}

static bool is_sound_journal(const struct fold_kept *kept)
{
	const struct fold_journal *journal = &kept->journal;

	if (journal->source >= kept->n_sources)
		return false;
	if (!is_under_way(kept))
		return true;
	return journal->generation < GENERATIONS && journal->form < FOLD_FORMS &&
	       journal->number <= journal->n_entries &&
	       journal->n_entries <=
		       kept->lists[journal->generation][journal->form].n_entries;
}

static bool is_sound(const struct fold_kept *kept, uint32_t n_sources)
{
	if (kept->layout != encode_layout() || kept->n_sources != n_sources ||
	    kept->n_chunks > FOLD_CHUNKS_MAX)
		return false;
	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (enum fold_form form = 0; form < FOLD_FORMS; form++)
			if (!is_sound_list(kept, &kept->lists[g][form], form))
				return false;
	return is_sound_journal(kept);
}

static void open_chunks(struct fold *fold)
{
	uint32_t n = min_u64(fold->kept->n_chunks, FOLD_CHUNKS_MAX);

	for (uint32_t i = 0; i < n; i++)
		fold->kept_chunks[i] = fold->memory->open(fold->memory->ctx, i);
}

static int take_list(struct fold *fold, uint32_t generation, enum fold_form form)
{
	const struct fold_kept_list *kept = &fold->kept->lists[generation][form];
	struct fold_list *list = &fold->generations[generation].lists[form];

	for (; list->n_chunks < kept->n_chunks; list->n_chunks++) {
		struct fold_chunk *chunk =
			fold->kept_chunks[kept->chunks[list->n_chunks]];

		if (!chunk)
			return -ESTALE;
		if (!fold_reserve_list(list))
			return -ENOMEM;
		list->chunks[list->n_chunks] = chunk;
		fold->n_used++;
	}
	list->n_entries = kept->n_entries;
	return 0;
}

static bool is_in_list(const struct fold *fold, const struct fold_chunk *chunk)
{
	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (enum fold_form form = 0; form < FOLD_FORMS; form++) {
			const struct fold_list *list =
				&fold->generations[g].lists[form];

			for (uint32_t i = 0; i < list->n_chunks; i++)
				if (list->chunks[i] == chunk)
					return true;
		}
	return false;
}

static void take_spare_chunks(struct fold *fold)
{
	for (uint32_t i = 0; i < fold->kept->n_chunks; i++) {
		struct fold_chunk *chunk = fold->kept_chunks[i];

		if (chunk && !is_in_list(fold, chunk))
			fold_put_spare(fold, chunk);
	}
}

/* Undo the addition in which the process was killed. */
static void undo_addition(struct fold *fold)
{
	struct fold_journal *journal = &fold->kept->journal;
	struct fold_generation *g = &fold->generations[journal->generation];
	void *entry;

	if (!is_under_way(fold->kept))
		return;
	g->lists[journal->form].n_entries = journal->n_entries;
	fold->kept->lists[journal->generation][journal->form].n_entries =
		journal->n_entries;
	if (journal->number < journal->n_entries) {
		entry = journal->form == FOLD_SHORT ?
				(void *)fold_short_at(g, journal->number) :
				(void *)&fold_long_at(g, journal->number)->tally;
		memcpy(entry, journal->before, sizeof(journal->before));
	}
	fold_order();
	journal->position = 0;
}

/* A generation that was being read stays closed to additions, and needs no index. */
static int take_generation(struct fold *fold, uint32_t generation)
{
	const uint32_t n_read = fold->kept->n_read[generation];

	if (n_read && n_read >= fold_count(fold, generation)) {
		fold_reset(fold, generation);
		return 0;
	}
	fold->generations[generation].is_closed = n_read;
	return n_read || fold_index_entries(fold, generation) ? 0 : -ENOMEM;
}

static int recover_all(struct fold *fold)
{
	int err = 0;

	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (enum fold_form form = 0; form < FOLD_FORMS; form++)
			err = err ?: take_list(fold, g, form);
	if (err)
		return err;
	take_spare_chunks(fold);
	undo_addition(fold);
	return take_generation(fold, 0) ?: take_generation(fold, 1);
}

/* Begin anew, with nothing that was kept. */
static void clear_fold(struct fold *fold, uint32_t n_sources)
{
	for (uint32_t i = 0; i < FOLD_CHUNKS_MAX; i++)
		if (fold->kept_chunks[i])
			fold_kept_remove_chunk(fold, fold->kept_chunks[i]);
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		for (enum fold_form form = 0; form < FOLD_FORMS; form++)
			free(fold->generations[g].lists[form].chunks);
		fold->generations[g] = (struct fold_generation){ 0 };
	}
	fold->n_used = 0;
	memset(fold->kept, 0, fold_kept_bytes(n_sources));
	fold->kept->n_sources = n_sources;
	fold_order();
	fold->kept->layout = encode_layout();
}

int fold_keep(struct fold *fold, struct fold_kept *kept, uint32_t n_sources,
	      const struct fold_memory *memory)
{
	const bool is_new = !kept->layout;
	int err = -ESTALE;

	fold->kept_chunks = calloc(FOLD_CHUNKS_MAX, sizeof(*fold->kept_chunks));
	if (!fold->kept_chunks)
		return -ENOMEM;
	fold->kept = kept;
	fold->memory = memory;
	open_chunks(fold);
	if (!is_new && is_sound(kept, n_sources))
		err = recover_all(fold);
	if (err == -ESTALE)
		clear_fold(fold, n_sources);
	return is_new ? 0 : err;
}
