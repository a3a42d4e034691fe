/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A flow as a line of text in columns. */
#ifndef NETOBS_CLI_ROW_H
#define NETOBS_CLI_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netobs_flow;

/* What is shown of a flow; outlives the record. */
struct row {
	int64_t start_ns, end_ns;
	uint64_t packets, bytes;
	char protocol[12];
	char endpoints[128];
	char info[24];
	char where[128];
};

#define COLUMN(name, ...) COLUMN_##name,

enum column {
#include "columns.def"
	COLUMNS
};

/* Text of each column; numbers are rendered into a buffer of their own. */
struct cells {
	const char *text[COLUMNS];
	char numbers[COLUMNS][24];
};

struct layout {
	int width[COLUMNS];  /* on the screen; 0: not shown */
	int widest[COLUMNS]; /* of the texts so far */
};

enum { ROW_LINE_MAX = 512 };

void row_fill(struct row *row, const struct netobs_flow *flow);

/* @rate_ns: what the rate is an average over; 0: the flow's own duration. */
void row_cells(const struct row *row, int64_t rate_ns, struct cells *ret_cells);

/* The headings, as cells. */
void row_headings(struct cells *ret_cells);

/* Wide enough for headings and common values. */
void layout_init(struct layout *layout, bool time);

/* Widen columns that are shown until @cells fit; never narrows. */
void layout_widen(struct layout *layout, const struct cells *cells);

/*
 * Make @screen columns suffice: take spare room away, leave columns out, the
 * least important first, and cut the endpoints last.
 */
void layout_fit(struct layout *layout, int screen);

/*
 * Write one line, without newline, cut to @screen columns; 0: not cut.
 * @buf has ROW_LINE_MAX bytes. Returns the length in bytes.
 */
size_t layout_line(const struct layout *layout, const struct cells *cells,
		   int screen, char *buf);

#endif
