/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "top.h"

#include <stdio.h>
#include <string.h>

#define NCURSES_NOMACROS
#include <curses.h>

#include "base/clock_ms.h"
#include "service/text/human.h"
#include "row.h"
#include "screen.h"

enum {
	HEAD_LINES = 4,	     /* title, two sums, headings */
	SAMPLING_WIDTH = 33, /* "12:34:56  1 of 4294967295 packets" */
};

static const char *const top_help[] = {
	"1 to 9  talkers, flows, hosts, pairs, services, ports, interfaces, protocols,",
	"        processes",
	"Tab     the next of these tables; arrow keys: the next or the previous one",
	"",
	"b k f   sort by bytes, packets, flows",
	"s n     sort by the bytes that a host sent, by name or number",
	"r x     sort by round-trip time, by retransmissions; with --rtt",
	"t       sums and rates since the start, or of the last interval",
	"p       freeze the screen; counting goes on. Also the space bar",
	"/       show only rows that contain a text; Escape: all rows",
	"N       names of hosts and ports, or numbers",
	"arrows  scroll, also Page Up, Page Down, Home and End",
	"",
	"h ?     this help",
	"q       quit",
	"",
	"FLOWS counts records: one per flow and interval. A flow belongs to the host that",
	"accepted the connection, as far as that is known; in the table of hosts, it is in",
	"the rows of both. Lost and unparsed packets are those since the start.",
};

/* What the table has no column for, it is not sorted by. */
static struct top_query top_query(const struct top *top)
{
	const struct by *by = &top->tables.tables[top->table].by;
	struct top_query query = { .table = top->table,
				   .since_start = top->since_start,
				   .order = top->order,
				   .search = top->search,
				   .names = top->common.names };

	if ((query.order.sort == NETOBS_GROUP_BY_SENT && !by_has_both_ends(by)) ||
	    (sort_is_of_rtt(query.order.sort) && !by->shows_rtt))
		query.order.sort = NETOBS_GROUP_BY_BYTES;
	if (top->table)
		query.order.key = 0;
	return query;
}

static const char *top_sort_name(const struct top *top)
{
	switch (top_query(top).order.sort) {
	case NETOBS_GROUP_BY_PACKETS:
		return "packets";
	case NETOBS_GROUP_BY_FLOWS:
		return "flows";
	case NETOBS_GROUP_BY_SENT:
		return "bytes sent";
	case NETOBS_GROUP_BY_RTT:
		return "round-trip time";
	case NETOBS_GROUP_BY_RETRANSMITS:
		return "retransmissions";
	case NETOBS_GROUP_BY_KEY:
		return "name";
	default:
		return "bytes";
	}
}

static int top_view_text(const struct top *top, char *buf, size_t size)
{
	return snprintf(buf, size, "%s%s by %s%s%s%s",
			top->common.is_paused ? "FROZEN  " : "",
			top->tables.tables[top->table].name, top_sort_name(top),
			top->since_start ? ", since the start" : "",
			*top->search ? ", with " : "", top->search);
}

/* "12:34:56  eth0, every 1 s                         talkers by bytes, since the start" */
static void top_draw_title(const struct output *output)
{
	const struct top *top = output->state;
	char left[256], right[128];

	screen_subject(output, top->common.drawn_at_s, left, sizeof(left));
	top_view_text(top, right, sizeof(right));
	screen_put_title(left, right);
}

/* The sampling that the title names, unless it has no room for it. */
static uint32_t top_named_sampling(const struct output *output)
{
	char right[128];
	int width = top_view_text(output->state, right, sizeof(right));

	return COLS - width > SAMPLING_WIDTH ? output->sampling : 0;
}

static void top_draw_sums(const struct output *output)
{
	const struct top *top = output->state;
	const struct top_sum *last = top_tables_sum(&top->tables, false);
	const struct top_sum *total = top_tables_sum(&top->tables, true);
	char line[320], sum[160], lasted[16], losses[64];
	bool is_lossy;

	if (!top->common.drawn_at_s) {
		screen_put(1, A_NORMAL, "Nothing seen yet.");
		return;
	}
	view_sum_text(&last->tally, "flows", last->ns, sum, sizeof(sum));
	snprintf(line, sizeof(line), "Last interval: %s", sum);
	screen_put(1, A_NORMAL, line);

	is_lossy = output_losses(output, losses, sizeof(losses));
	human_duration(lasted, sizeof(lasted), total->ns);
	view_sum_text(&total->tally, "records", total->ns, sum, sizeof(sum));
	snprintf(line, sizeof(line), "%s%sIn %s: %s%s%s",
		 is_lossy ? losses : "", is_lossy ? "; " : "", lasted, sum,
		 is_lossy || !*losses ? "" : "; ", is_lossy ? "" : losses);
	screen_put(2,
		   !is_lossy ? A_NORMAL :
		   has_colors() && output_want_colour() ?
			       A_BOLD | (attr_t)COLOR_PAIR(SCREEN_LOSSES) :
			       A_STANDOUT,
		   line);
}

static void top_draw_rows(const struct output *output, const struct rows *rows,
			  size_t first, size_t n)
{
	const struct top *top = output->state;
	struct layout layout;

	layout_init(&layout, &top->tables.tables[top->table].by, LAYOUT_TOP);
	layout.groups =
		top_tables_groups(&top->tables, top->table, top->since_start);
	layout.sampling = top_named_sampling(output);
	layout.names = top->common.names;
	layout.rate_ns = top_tables_sum(&top->tables, top->since_start)->ns;
	screen_put_rows(HEAD_LINES - 1, &layout, n ? rows_at(rows, first) : NULL,
			rows->list.item_size, n);
}

static void top_draw_foot(const struct top *top)
{
	char line[160];

	if (top->is_typing)
		snprintf(line, sizeof(line), "Rows that contain: %s_",
			 top->typed);
	else if (top->common.note[0])
		snprintf(line, sizeof(line), "%s", top->common.note);
	else
		snprintf(line, sizeof(line),
			 "1-9 table  b k f s r x n sort  t since start  / search  "
			 "p freeze  h help  q quit");
	screen_put(LINES - 1, top->is_typing ? A_BOLD : A_DIM, line);
}

size_t top_room(void)
{
	const int room = LINES - HEAD_LINES - 1;

	return room > 1 ? (size_t)room - 1 : 0;
}

static void top_draw_table(struct output *output)
{
	struct top *top = output->state;
	struct top_query query = top_query(top);
	char line[160];
	struct rows rows;
	size_t n;
	int r;

	query.most = top->common.first + top_room();
	if (!query.most)
		return;
	r = top_tables_select(&top->tables, &query, &rows);
	if (r < 0) {
		output->error = r;
		rows_free(&rows);
		return;
	}
	top->n_rows = rows.added;
	if (top->common.first >= rows.list.n)
		top->common.first = rows.list.n ? rows.list.n - 1 : 0;
	n = rows.list.n - top->common.first;
	top_draw_rows(output, &rows, top->common.first, n);
	if (rows.added > rows.list.n || r > 0) {
		view_rest_text(&rows, rows.list.n, r > 0, "", line, sizeof(line));
		screen_put(HEAD_LINES + (int)n, A_NORMAL, line);
	}
	rows_free(&rows);
}

void top_end_interval_of_file(struct top *top)
{
	const struct netobs_group_sum *sum = &top->tables.next_sum;

	if (!sum->flows)
		return;
	top->common.drawn_at_s = sum->end_ns / NSEC_PER_SEC;
	top_tables_turn(&top->tables, true);
}

void top_draw(struct output *output)
{
	struct top *top = output->state;

	if (output->view->is_file)
		top_end_interval_of_file(top);
	erase();
	top_draw_title(output);
	top_draw_sums(output);
	if (top->common.has_help)
		screen_put_help(HEAD_LINES, top_help,
				sizeof(top_help) / sizeof(top_help[0]));
	else if (top->common.drawn_at_s)
		top_draw_table(output);
	if (!top->common.has_help)
		top_draw_foot(top);
	refresh();
}
