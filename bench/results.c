/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "results.h"

#include "base/util.h"

#include <errno.h>
#include <math.h>

int results_add(struct results *results, const struct cell *cell)
{
	uint32_t capacity = results->capacity * 2 ?: 64;
	struct cell *cells, *added;

	if (results->n_cells == results->capacity) {
		cells = reallocarray(results->cells, capacity, sizeof(*cells));
		if (!cells)
			return -ENOMEM;
		results->cells = cells;
		results->capacity = capacity;
	}
	added = &results->cells[results->n_cells];
	*added = *cell;
	added->n_samples = 0;
	added->samples = calloc(results->rounds, sizeof(double));
	if (!added->samples)
		return -ENOMEM;
	results->n_cells++;
	return 0;
}

const struct cell *results_find(const struct results *results,
				const struct cell *like)
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		if (cell->design == like->design && cell->flows == like->flows &&
		    cell->order == like->order && cell->sharing == like->sharing &&
		    cell->n_cpus == like->n_cpus && cell->n_samples)
			return cell;
	}
	return NULL;
}

void results_sum_up(struct results *results)
{
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell *cell = &results->cells[i];

		if (cell->n_samples)
			cell->ns = summarize(cell->samples, cell->n_samples);
	}
	for (uint32_t i = 0; i < results->n_cells; i++) {
		struct cell *cell = &results->cells[i], like = *cell;
		const struct cell *empty;

		like.design = DESIGN_EMPTY;
		empty = results_find(results, &like);
		cell->over_empty = empty ? cell->ns.median - empty->ns.median :
					   NAN;
	}
}

void results_clear(struct results *results)
{
	for (uint32_t i = 0; i < results->n_cells; i++)
		free(results->cells[i].samples);
	free(results->cells);
	*results = (struct results){ 0 };
}

const char *order_name(enum order order)
{
	return order == ORDER_ZIPF ? "zipf" : "uniform";
}

const char *sharing_name(enum sharing sharing)
{
	return sharing == SHARING_SAME ? "same" : "disjoint";
}
