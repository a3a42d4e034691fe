/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A table of records, of which each is written when it comes: what later ones need is not known
 * yet. On a terminal, its lines are as wide as that, and the last column has the room that the
 * others leave; elsewhere, columns get wider when texts are.
 */
#ifndef NETOBS_CLI_VIEW_ROW_TABLE_H
#define NETOBS_CLI_VIEW_ROW_TABLE_H

#include "row.h"
#include "view_output.h"

/**
 * Write the headings.
 *
 * @param columns  copied; their widths suffice for common values
 * @return 0, or -ENOMEM
 */
int row_table_open(struct output *output, const struct column *columns, size_t n);

/* For struct output_kind: @record is what the columns are of. */
void row_table_write(struct output *output, const struct netobs_record *record);

/* Frees what row_table_open() has made. Returns true. */
bool row_table_close(struct output *output);

/* ---- Lines of any table ------------------------------------------------------------ */

/* Write one, cut to @width; 0: not cut. */
void layout_write(const struct layout *layout, struct output *output,
		  const struct cells *cells, int width);

/* Write @n records of @size bytes each, the first of which is @first. */
void layout_write_rows(const struct layout *layout, struct output *output,
		       const void *first, size_t size, size_t n, int width);

#endif
