/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A table of records, of which each is written when it comes: what later ones need is not known
 * yet. On a terminal, its lines are as wide as that, and the last column has the room that the
 * others leave; elsewhere, columns get wider when texts are.
 */
#ifndef NETOBS_CLI_ROW_TABLE_H
#define NETOBS_CLI_ROW_TABLE_H

#include "service/outputs/output.h"
#include "row.h"

/**
 * Write the headings.
 *
 * @param columns  copied; their widths suffice for common values
 * @return 0, or -ENOMEM
 */
int row_table_open(struct output *output, const struct column *columns, size_t n);

void row_table_write(struct output *output, const struct cells *cells);

/* Frees what row_table_open() has made. Returns true. */
bool row_table_close(struct output *output);

#endif
