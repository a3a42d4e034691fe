/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Prints rows of text to stdout, in columns as wide as their widest text. */
#ifndef NETOBS_CLI_VIEW_TEXT_TABLE_H
#define NETOBS_CLI_VIEW_TEXT_TABLE_H

#include <stdint.h>
#include <stdio.h>

enum { TEXT_COLUMNS_MAX = 10, TEXT_CELL_MAX = 176 };

struct text_table {
	const char *const *headings;
	uint32_t n_columns; /* TEXT_COLUMNS_MAX at most */
	uint32_t n_rows;
	uint32_t right; /* bits of columns that align to the right: numbers */
	uint32_t most;	/* rows to print; 0: all */
	uint32_t width; /* columns of a line at most; 0: no limit */
	/* Write the cells of a row. It is called twice for each. */
	void (*fill)(const void *rows, uint32_t row,
		     char (*cells)[TEXT_CELL_MAX]);
	const void *rows;
};

/* Headings, rows, and how many are left out. */
void text_table_print(const struct text_table *table);

/**
 * @param rows    that are wanted, at most; 0: all
 * @param height  of the terminal; 0: it is not one
 * @return rows that fit between the headings and a line below them; 0: there is no limit
 */
uint32_t text_table_room(uint32_t rows, uint32_t height);

/** Write the printed text; an error is reported, unless the reader has gone. @return 0; < 0: failure */
int text_flush(const char *command);

/* ---- Print json ------------------------------------------------------------------------ */

/* Print @text as a string of JSON, to stdout. */
void print_json_string(const char *text);

/* Print "key":"value" of an object of JSON, to stdout. */
void print_json_member(const char *key, const char *value);

/* ---- Shadows text ---------------------------------------------------------------------- */

/* Prints programs that run before netobs on the interfaces of this host: netobs_shadows(). */

void shadows_print_table(uint64_t disable);

/* An array. */
void shadows_print_json(uint64_t disable);

/* ---- Text in XML, such as SVG ---------------------------------------------------------- */

/* @text has no control characters: safe_line(). */
void xml_print(FILE *file, const char *text);

#endif
