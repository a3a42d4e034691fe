/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Lines in columns, for a pipe or a file: the heading once, nothing erased. */
#include <errno.h>
#include <stdlib.h>

#include "output.h"
#include "row.h"

static void write_line(struct output *output, const struct layout *layout,
		       const struct cells *cells)
{
	char *line = stream_room(&output->stream, ROW_LINE_MAX + 1);
	size_t len;

	if (!line)
		return;
	len = layout_line(layout, cells, 0, line);
	line[len] = '\n';
	stream_advance(&output->stream, len + 1);
}

static int open_table(struct output *output)
{
	struct layout *layout = malloc(sizeof(*layout));
	struct cells headings;

	if (!layout)
		return -ENOMEM;
	output->state = layout;
	layout_init(layout, true);
	row_headings(&headings);
	write_line(output, layout, &headings);
	stream_flush(&output->stream);
	return 0;
}

/* Columns grow with what has come, so that IPv6 widens them once, not by turns. */
static void write_flow(struct output *output, const struct netobs_flow *flow)
{
	struct layout *layout = output->state;
	struct cells cells;
	struct row row;

	row_fill(&row, flow);
	row_cells(&row, 0, &cells);
	layout_widen(layout, &cells);
	write_line(output, layout, &cells);
}

static bool close_table(struct output *output)
{
	free(output->state);
	output->state = NULL;
	return true;
}

const struct output_kind output_table = {
	.has_stream = true,
	.open = open_table,
	.flow = write_flow,
	.close = close_table,
};
