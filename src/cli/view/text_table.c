// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

struct text_cells {
	char text[TEXT_COLUMNS_MAX][TEXT_CELL_MAX];
};

static void fill_row(const struct text_table *table, uint32_t row,
		     struct text_cells *cells)
{
	table->fill(table->rows, row, cells->text);
	for (uint32_t i = 0; i < table->n_columns; i++)
		safe_cell(cells->text[i]);
}

static void widen_columns(const struct text_table *table,
			  const struct text_cells *cells, int *widths)
{
	for (uint32_t i = 0; i < table->n_columns; i++)
		widths[i] = (int)max_u64((uint64_t)widths[i],
					 strlen(cells->text[i]));
}

static void print_row(const struct text_table *table,
		      const struct text_cells *cells, const int *widths)
{
	char line[TEXT_COLUMNS_MAX * (TEXT_CELL_MAX + 2)];
	int len = 0;

	for (uint32_t i = 0; i < table->n_columns; i++) {
		const char *gap = i + 1 < table->n_columns ? "  " : "";

		if (table->right & 1U << i)
			len += snprintf(line + len, sizeof(line) - (size_t)len,
					"%*s%s", widths[i], cells->text[i], gap);
		else
			len += snprintf(line + len, sizeof(line) - (size_t)len,
					"%-*s%s", *gap ? widths[i] : 0,
					cells->text[i], gap);
	}
	printf("%.*s\n", table->width ? (int)table->width : len, line);
}

void text_table_print(const struct text_table *table)
{
	const uint32_t n = table->most && table->most < table->n_rows ?
				   table->most :
				   table->n_rows;
	int widths[TEXT_COLUMNS_MAX] = { 0 };
	struct text_cells headings = { 0 }, cells = { 0 };

	for (uint32_t i = 0; i < table->n_columns; i++)
		snprintf(headings.text[i], TEXT_CELL_MAX, "%s",
			 table->headings[i]);
	widen_columns(table, &headings, widths);
	for (uint32_t i = 0; i < n; i++) {
		fill_row(table, i, &cells);
		widen_columns(table, &cells, widths);
	}
	print_row(table, &headings, widths);
	for (uint32_t i = 0; i < n; i++) {
		fill_row(table, i, &cells);
		print_row(table, &cells, widths);
	}
	if (n < table->n_rows)
		printf("and %" PRIu32 " more\n", table->n_rows - n);
}

uint32_t text_table_room(uint32_t rows, uint32_t height)
{
	const uint32_t room = height > 3 ? height - 3 : 0;

	return rows && (!room || rows < room) ? rows : room;
}

int text_flush(const char *command)
{
	const int err = fflush(stdout) || ferror(stdout) ? -errno : 0;

	if (!err || err == -EPIPE)
		return err;
	fprintf(stderr, "netobsctl %s: cannot write to standard output: %s\n",
		command, strerror(-err));
	clearerr(stdout); /* main() need not report it again */
	return err;
}
