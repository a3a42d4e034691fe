/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view_output.h"

/* ---- Of all records at once ------------------------------------------------------ */

static void print_line(const struct layout *layout, const struct cells *cells,
		       uint32_t width)
{
	char line[ROW_LINE_MAX];

	layout_line(layout, cells, (int)width, line);
	puts(line);
}

void table_print(const struct column *columns, size_t n_columns,
		 const void *first, size_t size, uint32_t n, uint32_t most,
		 uint32_t width)
{
	const uint32_t shown = most && most < n ? most : n;
	struct layout layout = { .n = n_columns };
	struct cells cells;

	memcpy(layout.columns, columns, n_columns * sizeof(*columns));
	layout_fit_rows(&layout, first, size, shown, 0);
	layout_headings(&layout, &cells);
	print_line(&layout, &cells, width);
	for (uint32_t i = 0; i < shown; i++) {
		layout_cells(&layout, (const char *)first + i * size, &cells);
		print_line(&layout, &cells, width);
	}
	if (shown < n)
		printf("and %" PRIu32 " more\n", n - shown);
}

/* ---- Of records as they come ----------------------------------------------------- */

struct row_table {
	struct layout layout;
	int width; /* width of the terminal; 0: no limit */
};

void layout_write(const struct layout *layout, struct output *output,
		  const struct cells *cells, int width)
{
	char line[ROW_LINE_MAX];

	layout_line(layout, cells, width, line);
	stream_print(&output->stream, "%s\n", line);
}

void layout_write_rows(const struct layout *layout, struct output *output,
		       const void *first, size_t size, size_t n, int width)
{
	struct cells cells;

	for (size_t i = 0; i < n; i++) {
		layout_cells(layout, (const char *)first + i * size, &cells);
		layout_write(layout, output, &cells, width);
	}
}

static void write_line(struct output *output, const struct cells *cells)
{
	const struct row_table *table = output->state;
	struct layout layout = table->layout;

	layout_fill(&layout, table->width ?: ROW_LINE_MAX);
	layout_write(&layout, output, cells, table->width);
}

/* Widen columns as far as there is room, except the last one, which gets the rest. */
static void widen_columns(struct row_table *table, const struct cells *cells)
{
	struct layout layout = table->layout;

	layout.n--;
	layout_widen(&layout, cells);
	layout.n++;
	if (!table->width || layout_width(&layout) <= table->width)
		table->layout = layout;
}

int row_table_open(struct output *output, const struct column *columns, size_t n)
{
	struct row_table *table = calloc(1, sizeof(*table));
	struct cells headings;

	if (!table)
		return -ENOMEM;
	output->state = table;
	table->layout.n = n;
	memcpy(table->layout.columns, columns, n * sizeof(*columns));
	for (size_t i = 0; i < n; i++)
		table->layout.columns[i].widest = columns[i].width;
	table->width = row_line_width();
	layout_headings(&table->layout, &headings);
	layout_fit(&table->layout, table->width);
	write_line(output, &headings);
	stream_flush(&output->stream);
	return 0;
}

void row_table_write(struct output *output, const struct netobs_record *record)
{
	struct row_table *table = output->state;
	struct cells cells;

	layout_cells(&table->layout, record, &cells);
	widen_columns(table, &cells);
	write_line(output, &cells);
}

void row_table_close(struct output *output)
{
	free(output->state);
	output->state = NULL;
}
