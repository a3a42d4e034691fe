/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Lines for a pipe, a file, or the flows of a capture file, where nothing is erased: a table,
 * with the heading once; groups also as JSON. The rows of an interval are sorted; of a
 * capture file, all groups are those of one interval.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netobs/flow.h>

#include "base/clock_ms.h"
#include "service/text/human.h"
#include <netobs/names.h>
#include "view_output.h"
#include "row.h"

/* Wait for names at the end of a file, so that its rows have them. */
enum { NAMES_WAIT_MS = 3000 };

struct table {
	struct view view;
	struct layout layout;
	int width; /* width of the terminal; 0: no limit */
	bool has_heading;
	struct netobs_group_sum total;
};

static int table_open(struct output *output)
{
	struct table *table = calloc(1, sizeof(*table));
	int err = table ? view_init(&table->view, output->view, 0) : -ENOMEM;

	if (err < 0) {
		free(table);
		return err;
	}
	output->state = table;
	table->width = row_line_width();
	layout_init(&table->layout, &output->view->by, LAYOUT_LINES);
	table->layout.groups = table->view.groups;
	table->layout.names = table->view.names;
	table->layout.sampling = output->sampling;
	return 0;
}

static void table_add_flow(struct output *output,
			   const struct netobs_record *record)
{
	struct table *table = output->state;
	int err = view_add(&table->view, (const void *)record);

	if (err < 0)
		output->stream.error = err;
}

/* ---- A table -------------------------------------------------------------------- */

static void table_write_heading(struct output *output)
{
	struct table *table = output->state;
	struct cells headings;

	if (output->sampling)
		stream_print(&output->stream, "Sampled: 1 of %u %s\n",
			     output->sampling,
			     human_sampled(output->sampling_mode));
	layout_headings(&table->layout, &headings);
	layout_widen(&table->layout, &headings);
	layout_fit(&table->layout, table->width);
	layout_write(&table->layout, output, &headings, table->width);
	table->has_heading = true;
}

/* The time over which rates of groups are averaged; flows have their own duration. */
static int64_t table_rate_ns(const struct output *output)
{
	const struct table *table = output->state;
	const struct netobs_group_sum *sum = &table->view.sum;

	if (!output->view->by.keys.n)
		return 0;
	return output->view->is_file ? sum->end_ns - sum->start_ns :
				       table->view.took_ns;
}

/* Columns only grow, so that IPv6 widens them once, not by turns. */
static void table_write_rows(struct output *output)
{
	struct table *table = output->state;
	const struct rows *rows = &table->view.rows;
	const struct netobs_group_sum rest = rows_rest(rows, rows->list.n);
	struct cells cells;

	/* On a terminal, the first rows decide which columns fit. */
	if (table->width && !table->has_heading && !rows->list.n)
		return;
	table->layout.rate_ns = table_rate_ns(output);
	for (size_t i = 0; i < rows->list.n; i++) {
		layout_cells(&table->layout, rows_at(rows, i), &cells);
		if (!table->has_heading || !table->width)
			layout_widen(&table->layout, &cells);
	}
	if (!table->has_heading)
		table_write_heading(output);
	layout_write_rows(&table->layout, output, rows->list.items,
			  rows->list.item_size, rows->list.n, table->width);
	if (!rest.flows)
		return;
	layout_cells_sum(&table->layout,
			 rest.is_mixed ? "(others, sampled at different rates)" :
					 "(others)",
			 &rest, &cells);
	layout_write(&table->layout, output, &cells, table->width);
}

static void table_write_total(struct output *output)
{
	const struct netobs_group_sum *total =
		&((struct table *)output->state)->total;
	char packets[16], bytes[16], lasted[16];

	human_count(packets, sizeof(packets), total->packets);
	human_bytes(bytes, sizeof(bytes), total->bytes);
	human_duration(lasted, sizeof(lasted), total->end_ns - total->start_ns);
	stream_print(&output->stream, "%llu flows, %s packets, %s, in %s%s\n",
		     (unsigned long long)total->flows, packets, bytes, lasted,
		     view_mixed_text(total));
}

/* ---- JSON ----------------------------------------------------------------------- */

/* @group: NULL: all others. */
static void groups_write_object(struct output *output,
				const struct netobs_group *group, int64_t at_ns)
{
	const struct table *table = output->state;
	char text[NETOBS_GROUP_JSON_MAX];
	const int len = netobs_group_json(table->view.groups, group, at_ns,
					  text, sizeof(text));

	if (len < 0)
		output->stream.error = len;
	else
		stream_print(&output->stream, "%s\n", text);
}

static void groups_write_all(struct output *output)
{
	const struct view *view = &((struct table *)output->state)->view;
	const struct rows *rows = &view->rows;
	const struct netobs_group_sum rest = rows_rest(rows, rows->list.n);
	const int64_t at_ns = output->view->is_file ? view->sum.end_ns :
						      clock_ns(CLOCK_REALTIME);

	for (size_t i = 0; i < rows->list.n; i++)
		groups_write_object(output, rows_at(rows, i)->group, at_ns);
	if (rest.flows)
		groups_write_object(output, NULL, at_ns);
}

/* ---- Both ----------------------------------------------------------------------- */

static bool is_table(const struct output *output)
{
	return output->kind == &output_table;
}

/*
 * The first look at the rows asks for their names. Few at a time, since those beyond the
 * queue are not looked up.
 */
static void table_wait_for_names(const struct output *output)
{
	enum { ROWS_AT_ONCE = 16 };
	const int64_t end = now_ms() + NAMES_WAIT_MS;
	const struct table *table = output->state;
	struct cells cells;

	if (!output->view->is_file || !table->view.names)
		return;
	for (size_t i = 0; i < table->view.rows.list.n; i++) {
		layout_cells(&table->layout, rows_at(&table->view.rows, i),
			     &cells);
		/* A slow name server leaves time for the other rows. */
		if (i % ROWS_AT_ONCE == ROWS_AT_ONCE - 1)
			netobs_names_poll(table->view.names, left_ms(end) / 2);
	}
	netobs_names_poll(table->view.names, left_ms(end));
}

static void table_write_interval(struct output *output)
{
	struct table *table = output->state;
	int err = view_turn(&table->view);

	if (err < 0) {
		output->stream.error = err;
		return;
	}
	netobs_group_sum_add(&table->total, &table->view.sum);
	if (!is_table(output)) {
		groups_write_all(output);
		return;
	}
	table_wait_for_names(output);
	table_write_rows(output);
}

/* Early drains are of the same interval, as far as groups are concerned. */
static void table_end_interval(struct output *output)
{
	const struct table *table = output->state;
	const bool are_groups = output->view->by.keys.n;

	if (output->view->is_file && (are_groups || !table->view.next_sum.flows))
		return;
	if (!are_groups ||
	    view_is_due(output->view, view_age_ns(&table->view), false))
		table_write_interval(output);
}

static void table_close(struct output *output)
{
	struct table *table = output->state;

	if (!table)
		return;
	if (table->view.next_sum.flows)
		table_write_interval(output);
	if (is_table(output) && !table->has_heading)
		table_write_heading(output);
	if (is_table(output) && output->view->is_file && table->total.flows)
		table_write_total(output);
	view_free(&table->view);
	free(table);
	output->state = NULL;
}

const struct output_kind output_table = {
	.open = table_open,
	.record = table_add_flow,
	.interval = table_end_interval,
	.close = table_close,
};

const struct output_kind output_groups = {
	.open = table_open,
	.record = table_add_flow,
	.interval = table_end_interval,
	.close = table_close,
};
