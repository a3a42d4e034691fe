// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold_part.h"

#include "base/util.h"

#include <errno.h>

/* To be increased when what entries or struct fold_kept mean changes. */
enum { VERSION = 1 };

static const uint32_t chunk_entries[FOLD_FORMS] = { CHUNK_SHORT, CHUNK_LONG };

_Static_assert(sizeof(struct short_entry) ==
		       sizeof(((struct fold_journal *)0)->before),
	       "a journal has all that an addition changes");

static uint64_t layout(void)
{
	return (uint64_t)VERSION << 48 |
	       (uint64_t)sizeof(struct fold_kept) << 16 |
	       sizeof(struct flow_entry);
}

/* ---- Chunks --------------------------------------------------------------------- */

static uint32_t number_of(const struct fold *fold, const struct fold_chunk *chunk)
{
	uint32_t i = 0;

	while (fold->kept_chunks[i] != chunk)
		i++;
	return i;
}

/* One that the kill of a process left without a list has a number, too. */
struct fold_chunk *fold_kept_make_chunk(struct fold *fold)
{
	struct fold_kept *kept = fold->kept;
	uint32_t i = 0;

	while (i < FOLD_CHUNKS_MAX && fold->kept_chunks[i])
		i++;
	if (i == FOLD_CHUNKS_MAX)
		return NULL;
	if (i >= kept->n_chunks)
		kept->n_chunks = i + 1;
	fold_order();
	fold->kept_chunks[i] = fold->memory->make(fold->memory->ctx, i);
	return fold->kept_chunks[i];
}

void fold_kept_remove_chunk(struct fold *fold, struct fold_chunk *chunk)
{
	uint32_t number = number_of(fold, chunk);

	fold->kept_chunks[number] = NULL;
	fold->memory->remove(fold->memory->ctx, number, chunk);
}

void fold_kept_note_chunk(struct fold *fold, const struct fold_generation *g,
			  enum fold_form form)
{
	struct fold_kept_list *kept =
		&fold->kept->lists[g - fold->generations][form];
	const struct fold_list *list = &g->lists[form];

	kept->chunks[list->n_chunks - 1] =
		(uint16_t)number_of(fold, list->chunks[list->n_chunks - 1]);
	fold_order();
	kept->n_chunks = list->n_chunks;
	fold_order();
}

/* No list has them before another one takes them. */
void fold_kept_reset(struct fold *fold, uint32_t generation)
{
	struct fold_kept *kept = fold->kept;

	for (enum fold_form form = 0; form < FOLD_FORMS; form++) {
		kept->lists[generation][form].n_entries = 0;
		fold_order();
		kept->lists[generation][form].n_chunks = 0;
	}
	fold_order();
	kept->n_read[generation] = 0;
	fold_order();
}

/* ---- Sources -------------------------------------------------------------------- */

void fold_add_from(struct fold *fold, uint32_t source, uint64_t at)
{
	if (!fold->kept)
		return;
	fold->kept->journal.position = 0;
	fold_order();
	fold->kept->journal.source = source;
	fold->source = source;
	fold->at = at;
	fold->step = 0;
	fold_complete_addition(fold);
}

void fold_pass(struct fold *fold, uint64_t n)
{
	if (!fold->kept)
		return;
	fold->step = (uint32_t)n;
	fold_complete_addition(fold);
}

uint64_t fold_position(const struct fold *fold, uint32_t source)
{
	return fold->kept ? fold->kept->positions[source] : 0;
}

void fold_note_read(struct fold *fold, uint32_t generation, uint32_t before)
{
	if (!fold->kept)
		return;
	fold->kept->n_read[generation] = before;
	fold_order();
}

uint32_t fold_first(const struct fold *fold, uint32_t generation)
{
	return fold->kept ? fold->kept->n_read[generation] : 0;
}

/* ---- What an earlier process has left --------------------------------------------- */

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

/* An addition that is complete may have been to a generation that was emptied since. */
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
	if (kept->layout != layout() || kept->n_sources != n_sources ||
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

/* The addition in which the process was killed is as if it had not begun. */
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

/* Of a generation that was being read, no entry can be added to. */
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

static int take_all(struct fold *fold)
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

/* Nothing of it can be used. */
static void clear(struct fold *fold, uint32_t n_sources)
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
	fold->kept->layout = layout();
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
		err = take_all(fold);
	if (err == -ESTALE)
		clear(fold, n_sources);
	return is_new ? 0 : err;
}

void fold_kept_done(struct fold *fold)
{
	for (uint32_t i = 0; i < FOLD_CHUNKS_MAX; i++)
		if (fold->kept_chunks[i])
			fold->memory->close(fold->memory->ctx,
					    fold->kept_chunks[i]);
	free(fold->kept_chunks);
}
