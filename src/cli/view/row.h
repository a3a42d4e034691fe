/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Records as lines of text in columns: of any table, and of flows and groups. */
#ifndef NETOBS_CLI_VIEW_ROW_H
#define NETOBS_CLI_VIEW_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/names.h>
#include "view.h"

#define COLUMN(name, ...) COLUMN_##name,

enum column_id {
#include "catalogue/columns.def"
	COLUMN_KEYS, /* the first key of --by, and behind it the others */
};

enum {
	LAYOUT_COLUMNS = COLUMN_KEYS + NETOBS_GROUP_KEYS_MAX,
	ROW_LINE_MAX = 2048,
	CELL_MAX = 10 * NETOBS_NAME_MAX
};

struct layout;

struct column {
	int id;
	const char *heading;
	bool right;	     /* numbers align to the right */
	int leave_at, least; /* width; 0: not cut */
	int width;	     /* on the screen; 0: not shown */
	int widest;	     /* width of the widest text so far */
	/* Write the text that @record has in this column. */
	void (*put)(const struct layout *layout, const struct column *column,
		    const void *record, char *buf, size_t size);
};

/*
 * A table's columns are described once, in a list of
 * _(type, name, heading, align, leave, least, width, text), from left to right: @text writes what
 * the record @row, of @type, has in it to @buf of @size. TABLE(name, list, type) expands the list
 * twice: to functions by TABLE_TEXT, and to an array of columns by TABLE_COLUMN.
 */
#define TABLE_PUT(type, name, text)                                        \
	static void put_##name(const struct layout *layout,                \
			       const struct column *column,                \
			       const void *record, char *buf, size_t size) \
	{                                                                  \
		const type *row = record;                                  \
                                                                           \
		(void)layout;                                              \
		(void)column;                                              \
		text;                                                      \
	}
#define TABLE_TEXT(type, name, heading, align, leave, least, width, text) \
	TABLE_PUT(type, name, text)
#define TABLE_IS_RIGHT_left false
#define TABLE_IS_RIGHT_right true
#define TABLE_COLUMN(type, name, heading, align, leave, least, width, text) \
	{ 0, heading, TABLE_IS_RIGHT_##align, leave, least, width, 0, put_##name },
/* clang-format off */
#define TABLE(name, list, type)  \
	list(TABLE_TEXT, type)   \
	static const struct column name[] = { list(TABLE_COLUMN, ) }
/* clang-format on */

struct layout {
	const struct by *by;
	const struct netobs_groups *groups; /* groups that rows belong to; NULL: none */
	struct netobs_names *names; /* names of hosts and ports; NULL: show numbers */
	int64_t rate_ns; /* time over which rates are averaged; 0: the row's own duration */
	struct column columns[LAYOUT_COLUMNS];
	size_t n;
	uint32_t sampling; /* sampling rate that the heading names; 0: none */
};

/* The text of each column; @buf has room for numbers as text. */
struct cells {
	const char *text[LAYOUT_COLUMNS];
	char buf[LAYOUT_COLUMNS][CELL_MAX];
};

/* The kind of screen that a table is part of. */
enum layout_kind { LAYOUT_LINES, LAYOUT_LIVE, LAYOUT_TOP };

/* The columns of @by, which stays, wide enough for headings and common values. */
void layout_init(struct layout *layout, const struct by *by,
		 enum layout_kind kind);

/* Write the text of each column for @record, a struct row in tables of flows and groups. */
void layout_cells(const struct layout *layout, const void *record,
		  struct cells *ret_cells);

/* A line that begins with @text, and has the numbers of a row. */
void layout_cells_sum(const struct layout *layout, const char *text,
		      const struct netobs_group_sum *tally,
		      struct cells *ret_cells);

/* The headings, as cells. */
void layout_headings(const struct layout *layout, struct cells *ret_cells);

/* Widen columns that are shown until @cells fit; never narrows. */
void layout_widen(struct layout *layout, const struct cells *cells);

/*
 * Make @screen columns suffice: take spare room away, leave columns out, the
 * least important first, and cut addresses last. 0: there is no limit.
 */
void layout_fit(struct layout *layout, int screen);

/* layout_fit(), after making room for headings and @n records of @size bytes; @first: the first one. */
void layout_fit_rows(struct layout *layout, const void *first, size_t size,
		     size_t n, int screen);

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
 * The user's choice, else the terminal's width, as in programs that print columns. @return columns
 * of a line on standard output; 0: no limit
 */
int row_line_width(void);

/* Marks a cut text. */
#define ROW_CUT "\u2026"

/* If the locale is not UTF-8, replace arrows and ROW_CUT in place by ASCII. */
void row_plain(char *text);

/** @return the columns of the terminal that @text takes */
int row_text_width(const char *text);

/** @return bytes of @text in at most @width columns; UTF-8 sequences that are printed take one each */
int row_prefix_length(const char *text, int width);

/* ---- Tables ---------------------------------------------------------------------- */

/**
 * Print @n records of @size bytes each to stdout, in columns as wide as their widest text.
 *
 * @param most   records to print, and how many are left out; 0: all
 * @param width  columns of a line, at most; 0: no limit
 */
void table_print(const struct column *columns, size_t n_columns,
		 const void *first, size_t size, uint32_t n, uint32_t most,
		 uint32_t width);

struct netobs_record;
struct output;

/* Write a line, cut to @width; 0: not cut. */
void layout_write(const struct layout *layout, struct output *output,
		  const struct cells *cells, int width);

/* Write @n records of @size bytes each, the first of which is @first. */
void layout_write_rows(const struct layout *layout, struct output *output,
		       const void *first, size_t size, size_t n, int width);

/*
 * A table of records, each of which is written when it comes: what later ones need is not known
 * yet. On a terminal, its lines are as wide as that, and the last column has the room that the
 * others leave; elsewhere, columns get wider when texts are.
 *
 * @param columns  copied; their widths suffice for common values
 * @return 0: the headings are written; -ENOMEM
 */
int row_table_open(struct output *output, const struct column *columns, size_t n);

/* For struct output_kind: @record is of the type of the columns. */
void row_table_write(struct output *output, const struct netobs_record *record);

/* Frees what row_table_open() has made. Returns true. */
void row_table_close(struct output *output);

#endif
