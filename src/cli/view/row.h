/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Rows of a view as lines of text in columns. */
#ifndef NETOBS_CLI_ROW_H
#define NETOBS_CLI_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group/names.h"
#include "view.h"

#define COLUMN(name, ...) COLUMN_##name,

enum column_id {
#include "catalogue/columns.def"
	COLUMN_KEYS, /* the first key of --by, and behind it the others */
};

enum { LAYOUT_COLUMNS = COLUMN_KEYS + BY_KEYS, ROW_LINE_MAX = 1024 };

struct column {
	int id;
	const char *heading;
	bool right;	     /* numbers align to the right */
	int leave_at, least; /* width; 0: not cut */
	int width;	     /* on the screen; 0: not shown */
	int widest;	     /* of the texts so far */
};

struct layout {
	const struct by *by;
	struct column columns[LAYOUT_COLUMNS];
	size_t n;
	uint32_t sampling; /* that the heading names; 0: none */
};

/* The text of each column; @buf has room for numbers as text. */
struct cells {
	const char *text[LAYOUT_COLUMNS];
	char buf[LAYOUT_COLUMNS][5 * NAMES_MAX];
};

/* What a table is part of. */
enum layout_kind { LAYOUT_LINES, LAYOUT_LIVE, LAYOUT_TOP };

/* The columns of @by, which stays, wide enough for headings and common values. */
void layout_init(struct layout *layout, const struct by *by,
		 enum layout_kind kind);

/* @names: or NULL. @rate_ns: what the rate is an average over; 0: the row's own duration. */
void layout_cells(const struct layout *layout, struct names *names,
		  const struct row *row, int64_t rate_ns,
		  struct cells *ret_cells);

/* A line that begins with @text, and has the numbers of a row. */
void layout_cells_sum(const struct layout *layout, const char *text,
		      const struct tally *tally, int64_t rate_ns,
		      struct cells *ret_cells);

/* The headings, as cells. */
void layout_headings(const struct layout *layout, struct cells *ret_cells);

/* Widen columns that are shown until @cells fit; never narrows. */
void layout_widen(struct layout *layout, const struct cells *cells);

/*
 * Make @screen columns suffice: take spare room away, leave columns out, the
 * least important first, and cut addresses last.
 */
void layout_fit(struct layout *layout, int screen);

/*
 * The same for headings and @n rows from @first on, which have the cells that
 * layout_cells() makes of them.
 */
void layout_fit_rows(struct layout *layout, struct names *names,
		     const struct rows *rows, size_t first, size_t n,
		     int64_t rate_ns, int screen);

/* @return columns that a line takes */
int layout_width(const struct layout *layout);

/* Give the last column, which is shown, what @screen columns leave. */
void layout_fill(struct layout *layout, int screen);

/*
 * Write one line, without newline, cut to @screen columns; 0: not cut.
 * @buf has ROW_LINE_MAX bytes. Returns the length in bytes.
 */
size_t layout_line(const struct layout *layout, const struct cells *cells,
		   int screen, char *buf);

/**
 * As programs do that print columns: what the user says, else the terminal.
 *
 * @return columns of a line on standard output; 0: no limit
 */
int row_line_width(void);

#endif
