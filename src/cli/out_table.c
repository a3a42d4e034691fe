/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Lines in columns, for a pipe, a file, or a capture file's flows: the heading once,
 * nothing erased. The flows of an interval come in any order, and leave by time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <netobs/flow.h>

#include "human.h"
#include "output.h"
#include "row.h"

struct table {
	struct layout layout;
	int width; /* of the terminal; 0: no limit */
	bool has_heading;
	struct row *rows; /* of this interval */
	size_t n, size;
	struct row total;
	uint64_t flows;
};

static void write_line(struct output *output, const struct cells *cells)
{
	const struct table *table = output->state;
	char *line = stream_room(&output->stream, ROW_LINE_MAX + 1);
	size_t len;

	if (!line)
		return;
	len = layout_line(&table->layout, cells, table->width, line);
	line[len] = '\n';
	stream_advance(&output->stream, len + 1);
}

/* As programs do that print columns: what the user says, else the terminal. */
static int line_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	char *end;
	long width;

	width = columns ? strtol(columns, &end, 10) : 0;
	if (width > 0 && width < ROW_LINE_MAX && !*end)
		return (int)width;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

static int open_table(struct output *output)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	output->state = table;
	table->width = line_width();
	layout_init(&table->layout, true);
	return 0;
}

/* Which columns there are is decided by the first lines, and what they hold. */
static void write_heading(struct output *output)
{
	struct table *table = output->state;
	struct cells headings;

	row_headings(&headings);
	layout_widen(&table->layout, &headings);
	if (table->width)
		layout_fit(&table->layout, table->width);
	write_line(output, &headings);
	table->has_heading = true;
}

static void write_flow(struct output *output, const struct netobs_flow *flow)
{
	struct table *table = output->state;

	if (table->n == table->size) {
		size_t size = table->size ? 2 * table->size : 64;
		struct row *rows = reallocarray(table->rows, size, sizeof(*rows));

		if (!rows) {
			output->stream.error = -ENOMEM;
			return;
		}
		table->rows = rows;
		table->size = size;
	}
	row_fill(&table->rows[table->n++], flow);
}

static int compare_starts(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return strcmp(a->endpoints, b->endpoints);
}

static void add_to_total(struct table *table, const struct row *row)
{
	struct row *total = &table->total;

	if (!table->flows++ || row->start_ns < total->start_ns)
		total->start_ns = row->start_ns;
	if (table->flows == 1 || row->end_ns > total->end_ns)
		total->end_ns = row->end_ns;
	total->packets += row->packets;
	total->bytes += row->bytes;
}

/* Columns grow with what has come, so that IPv6 widens them once, not by turns. */
static void write_rows(struct output *output)
{
	struct table *table = output->state;
	struct cells cells;

	if (table->n)
		qsort(table->rows, table->n, sizeof(*table->rows),
		      compare_starts);
	for (size_t i = 0; i < table->n; i++) {
		row_cells(&table->rows[i], 0, &cells);
		if (!table->has_heading || !table->width)
			layout_widen(&table->layout, &cells);
	}
	if (!table->has_heading)
		write_heading(output);
	for (size_t i = 0; i < table->n; i++) {
		row_cells(&table->rows[i], 0, &cells);
		write_line(output, &cells);
		add_to_total(table, &table->rows[i]);
	}
	table->n = 0;
}

static void end_interval(struct output *output)
{
	const struct table *table = output->state;

	if (table->n || !output->is_file)
		write_rows(output);
}

static void write_total(struct output *output)
{
	const struct table *table = output->state;
	char packets[16], bytes[16], lasted[16];
	char *line = stream_room(&output->stream, ROW_LINE_MAX);
	int len;

	if (!line)
		return;
	human_count(packets, sizeof(packets), table->total.packets);
	human_bytes(bytes, sizeof(bytes), table->total.bytes);
	human_duration(lasted, sizeof(lasted),
		       table->total.end_ns - table->total.start_ns);
	len = snprintf(line, ROW_LINE_MAX, "%llu flows, %s packets, %s, in %s\n",
		       (unsigned long long)table->flows, packets, bytes, lasted);
	stream_advance(&output->stream, (size_t)len);
}

static bool close_table(struct output *output)
{
	struct table *table = output->state;

	if (table && (table->n || !table->has_heading))
		write_rows(output);
	if (table && output->is_file && table->flows)
		write_total(output);
	if (table)
		free(table->rows);
	free(table);
	output->state = NULL;
	return true;
}

const struct output_kind output_table = {
	.has_stream = true,
	.open = open_table,
	.flow = write_flow,
	.interval = end_interval,
	.close = close_table,
};
