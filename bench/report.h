/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The results of a benchmark on standard output: rows of values, as a table or as JSON. */
#ifndef NETOBS_BENCH_REPORT_H
#define NETOBS_BENCH_REPORT_H

#include "rounds.h"

/* What a column is called in the table, and a member in JSON. */
struct report_column {
	const char *name;
	int decimals; /* of a number; COLUMN_TEXT: it has text */
};

enum { COLUMN_TEXT = -1 };

struct report {
	bool is_json;
	const struct report_column *columns;
	uint32_t n_columns, n_rows;
};

/*
 * The machine, @rounds, and of a comparison how far it can be believed; @turns is NULL for others.
 * @title is for the table.
 */
void report_begin(struct report *report, const char *title, uint32_t rounds,
		  const struct rounds *turns);

/* One of @texts or @numbers for each column, in its order; NAN is not known, and JSON lacks it. */
void report_row(struct report *report, const char *const *texts,
		const double *numbers);
void report_end(const struct report *report);

#endif
