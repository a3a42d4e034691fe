// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "fold_kept.h"

#include <stdlib.h>

/* ---- Chunks --------------------------------------------------------------------- */

static uint32_t number_of_chunk(const struct fold *fold,
				const struct fold_chunk *chunk)
{
	uint32_t i = 0;

	while (fold->kept_chunks[i] != chunk)
		i++;
	return i;
}

/* A chunk that a killed process had in no list owns its number all the same. */
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
	uint32_t number = number_of_chunk(fold, chunk);

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
		(uint16_t)number_of_chunk(fold, list->chunks[list->n_chunks - 1]);
	fold_order();
	kept->n_chunks = list->n_chunks;
	fold_order();
}

/* The lists are empty before another one takes their chunks. */
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

void fold_kept_done(struct fold *fold)
{
	for (uint32_t i = 0; i < FOLD_CHUNKS_MAX; i++)
		if (fold->kept_chunks[i])
			fold->memory->close(fold->memory->ctx,
					    fold->kept_chunks[i]);
	free(fold->kept_chunks);
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
