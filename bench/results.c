/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "results.h"

#include "design.h"
#include "report.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

/* ---- Sums ------------------------------------------------------------------ */

/* @room: for @n values. */
static void sum_up_cell(const struct cell *empty, const double *empty_samples,
			struct cell *cell, const double *samples, uint32_t n,
			double *room)
{
	cell->n = n;
	/* A high rate is a short time. */
	for (uint32_t i = 0; i < n; i++)
		room[i] = empty_samples[i] / samples[i];
	cell->ratio = interval_of(room, n);
	memcpy(room, samples, n * sizeof(*room));
	cell->ns = interval_of(room, n).median;
	cell->over_empty = cell->ns - empty->ns;
}

static void report_noise(const struct results *results, const struct cell *cell)
{
	char what[128];

	snprintf(what, sizeof(what), "%s with %u flows (%s)",
		 design_names[cell->design], cell->flows,
		 order_names[cell->order]);
	rounds_report_noise(&results->rounds, what, &cell->ratio, cell->n);
}

bool results_settle_case(const struct results *results, struct cell *cells,
			 double *const *samples, uint32_t n_cells, uint32_t n,
			 bool is_last)
{
	cleanup_free double *room = calloc(n, sizeof(*room));
	bool is_settled = room;

	for (uint32_t i = 0; i < n_cells && room; i++) {
		sum_up_cell(cells, samples[0], &cells[i], samples[i], n, room);
		if (interval_is_narrow(&cells[i].ratio, results->rounds.width))
			continue;
		is_settled = false;
		if (is_last)
			report_noise(results, &cells[i]);
	}
	return is_settled;
}

/* ---- Output ---------------------------------------------------------------- */

static const struct report_column columns[] = {
	{ "store", COLUMN_TEXT }, { "distribution", COLUMN_TEXT },
	{ "flows", 0 },		  { "ratio", 4 },
	{ "ratio_low", 4 },	  { "ratio_high", 4 },
	{ "ns_per_packet", 2 },	  { "ns_over_empty", 2 },
	{ "rounds", 0 },	  { "sent", 0 },
	{ "counted", 0 },
};

void results_print(const struct results *results, bool is_json)
{
	struct report report = { .is_json = is_json,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };

	report_begin(&report,
		     "Rates of packets, as ratios to that with the empty program",
		     results->rounds.n, &results->rounds);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *c = &results->cells[i];
		const char *const texts[] = { design_names[c->design],
					      order_names[c->order] };
		const double numbers[] = { c->flows,	 c->ratio.median,
					   c->ratio.low, c->ratio.high,
					   c->ns,	 c->over_empty,
					   c->n,	 c->sent,
					   c->counted };

		report_row(&report, texts, numbers);
	}
	report_end(&report);
}
