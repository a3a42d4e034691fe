/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The screen of netobsctl top, by ncurses. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NCURSES_NOMACROS
#include <curses.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "service/text/human.h"
#include <netobs/names.h>
#include "row.h"
#include "screen.h"
#include "top_tables.h"
#include "view_output.h"

enum {
	HEAD_LINES = 4,	     /* title, two sums, headings */
	SAMPLING_WIDTH = 33, /* "12:34:56  1 of 4294967295 packets" */
};

struct top {
	struct screen_state common;
	struct top_tables tables;
	size_t table; /* index of the shown table */
	size_t n_tables; /* tables that can be shown: the last one is of processes */
	struct order order;
	bool since_start, is_typing;
	size_t n_rows; /* rows that can be shown */
	char search[64];
	char typed[64]; /* text to search for, being typed */
};

/* The orders of rows, and the key of each. */
static const struct {
	char key;
	enum netobs_group_sort sort;
	const char *name;
} top_sorts[] = {
	{ 'b', NETOBS_GROUP_BY_BYTES, "bytes" },
	{ 'k', NETOBS_GROUP_BY_PACKETS, "packets" },
	{ 'f', NETOBS_GROUP_BY_FLOWS, "flows" },
	{ 's', NETOBS_GROUP_BY_SENT, "bytes sent" },
	{ 'r', NETOBS_GROUP_BY_RTT, "round-trip time" },
	{ 'x', NETOBS_GROUP_BY_RETRANSMITS, "retransmissions" },
	{ 'd', NETOBS_GROUP_BY_DROPS, "drops" },
	{ 'n', NETOBS_GROUP_BY_KEY, "name" },
};

/* ---- Drawing --------------------------------------------------------------------- */

static const char *const top_help[] = {
	("1 to 9  talkers, flows, hosts, pairs, services, ports, interfaces, protocols, processes "
	 "(with --process)"),
	"Tab     the next of these tables; arrow keys: the next or the previous one",
	"b k f   sort by bytes, packets, flows",
	"s n     sort by the bytes that a host sent, by name or number",
	"r x     sort by round-trip time, by retransmissions; with --rtt",
	"d       sort by packets that the kernel dropped; with --drops",
	"t       sums and rates since the start, or of the last interval",
	"p       pause the screen; counting goes on. Also the space bar",
	"/       show only rows that contain a text; Escape: all rows",
	"N       names of hosts and ports, or numbers",
	"arrows  scroll, also Page Up, Page Down, Home and End",
	"h ?     this help",
	"q       quit",
	"",
	("FLOWS counts records: one per flow and interval. A flow belongs to the host that "
	 "accepted the connection, as far as that is known; in the table of hosts, it is in "
	 "the rows of both. Lost and unparsed packets are those since the start."),
};

/* A table is sorted by bytes if it lacks the column of the chosen order. */
static struct top_query top_query(const struct top *top)
{
	const struct by *by = &top->tables.tables[top->table].by;
	struct top_query query = { .table = top->table,
				   .since_start = top->since_start,
				   .order = top->order,
				   .search = top->search,
				   .names = top->common.names };

	if (!by_has_sort(by, query.order.sort))
		query.order.sort = NETOBS_GROUP_BY_BYTES;
	if (top->table)
		query.order.key = 0;
	return query;
}

static const char *top_sort_name(const struct top *top)
{
	const enum netobs_group_sort sort = top_query(top).order.sort;
	size_t i = 0;

	while (i < ARRAY_SIZE(top_sorts) && top_sorts[i].sort != sort)
		i++;
	return top_sorts[i < ARRAY_SIZE(top_sorts) ? i : 0].name;
}

static int top_view_text(const struct top *top, char *buf, size_t size)
{
	return snprintf(buf, size, "%s%s by %s%s%s%s",
			top->common.is_paused ? "PAUSED  " : "",
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

	if (!top->is_typing) {
		screen_put_foot(
			&top->common,
			"1-9 table  b k f s r x d n sort  t all time  / search");
		return;
	}
	snprintf(line, sizeof(line), "Rows that contain: %s_", top->typed);
	screen_put(LINES - 1, A_BOLD, line);
}

/* Lines for rows; one more line below them has the sum of the rows that do not fit. */
static size_t top_room(void)
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

/* Show the interval of a file, if it has any records. */
static void top_end_interval_of_file(struct top *top)
{
	const struct netobs_group_sum *sum = &top->tables.next_sum;

	if (!sum->flows)
		return;
	top->common.drawn_at_s = sum->end_ns / NSEC_PER_SEC;
	top_tables_turn(&top->tables, true);
}

static void top_draw(struct output *output)
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

/* ---- Keys ----------------------------------------------------------------------- */

static void top_type(struct top *top, int key)
{
	const size_t len = strlen(top->typed);

	if (key == KEY_ESCAPE || key == '\n' || key == '\r' || key == KEY_ENTER) {
		if (key != KEY_ESCAPE)
			memcpy(top->search, top->typed, sizeof(top->search));
		top->is_typing = false;
		top->common.first = 0;
	} else if (key == KEY_BACKSPACE || key == '\b' || key == 127) {
		if (len)
			top->typed[len - 1] = '\0';
	} else if (key < 128 && isprint(key) && len + 1 < sizeof(top->typed)) {
		top->typed[len] = (char)key;
		top->typed[len + 1] = '\0';
	}
}

/* Values that are missing are measured only if the option is given at the start. */
static void top_ask_for(struct top *top, const char *option, const char *what)
{
	snprintf(top->common.note, sizeof(top->common.note),
		 "Start with %s to see %s.", option, what);
}

static void top_show_table(struct top *top, size_t table)
{
	if (table >= top->n_tables) {
		top_ask_for(top, "--process", "processes");
		return;
	}
	top->table = table;
	top->common.first = 0;
}

/* Measured values are in all tables or none; not all tables have a column of what a host sent. */
static void top_sort(struct top *top, enum netobs_group_sort sort)
{
	if (sort != NETOBS_GROUP_BY_SENT &&
	    !by_has_sort(&top->tables.tables[top->table].by, sort)) {
		if (sort == NETOBS_GROUP_BY_DROPS)
			top_ask_for(top, "--drops", "drops");
		else
			top_ask_for(top, "--rtt",
				    "round-trip times and retransmissions");
		return;
	}
	top->order = (struct order){ .sort = sort };
	top->common.first = 0;
}

static bool top_choose(struct top *top, int key)
{
	const size_t n = top->n_tables;

	if (key >= '1' && key < '1' + (int)top->tables.n)
		top_show_table(top, (size_t)(key - '1'));
	else if (key == '\t' || key == KEY_RIGHT)
		top_show_table(top, (top->table + 1) % n);
	else if (key == KEY_BTAB || key == KEY_LEFT)
		top_show_table(top, (top->table + n - 1) % n);
	else
		return screen_scroll(key, top_room(), top->n_rows,
				     &top->common.first);
	return true;
}

static bool top_choose_sort(struct top *top, int key)
{
	for (size_t i = 0; i < ARRAY_SIZE(top_sorts); i++)
		if (top_sorts[i].key == key) {
			top_sort(top, top_sorts[i].sort);
			return true;
		}
	return false;
}

static bool top_follow_key(struct output *output, int key)
{
	struct top *top = output->state;

	if (top->is_typing) {
		top_type(top, key);
		return true;
	}
	if (top_choose_sort(top, key) || top_choose(top, key))
		return true;
	switch (key) {
	case 't':
		top->since_start = !top->since_start;
		return true;
	case '/':
		top->is_typing = true;
		top->typed[0] = '\0';
		return true;
	case KEY_ESCAPE:
		top->search[0] = '\0';
		return true;
	default:
		return false;
	}
}

/* ---- The output ------------------------------------------------------------------ */

static void top_free(struct top *top)
{
	top_tables_free(&top->tables);
	netobs_names_free(top->common.names);
	free(top);
}

static int top_open(struct output *output)
{
	struct top *top = calloc(1, sizeof(*top));
	int err;

	if (!top)
		return -ENOMEM;
	top->common.draw = top_draw;
	top->common.follow_key = top_follow_key;
	top->order = output->view->order;
	top->since_start = output->view->is_file;
	err = top_tables_init(&top->tables, &output->view->by);
	top->n_tables = top->tables.n - !output->view->by.shows_process;
	if (err == 0 && output->view->want_names)
		err = netobs_names_new(NULL, &top->common.names);
	if (err == 0)
		err = screen_start(output, &top->common.screen);
	if (err < 0) {
		top_free(top);
		return err;
	}
	output->state = top;
	top_draw(output);
	return 0;
}

static void top_add_flow(struct output *output, const struct netobs_record *record)
{
	struct top *top = output->state;

	top_tables_add(&top->tables, (const void *)record);
}

/* Flows that arrive while the screen is frozen are on the first screen after it. */
static void top_end_interval(struct output *output)
{
	struct top *top = output->state;

	if (output->view->is_file) {
		top_end_interval_of_file(top);
		return;
	}
	if (top->common.is_paused ||
	    (!top->common.drawn_at_s && !top->tables.next_sum.flows))
		return;
	if (!view_is_due(output->view, top_tables_age_ns(&top->tables), true))
		return;
	top_tables_turn(&top->tables, false);
	top->common.drawn_at_s = clock_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	top_draw(output);
}

static void top_close(struct output *output)
{
	struct top *top = output->state;

	if (!top)
		return;
	screen_end(top->common.screen);
	top_free(top);
	output->state = NULL;
}

const struct output_kind output_top = {
	.open = top_open,
	.record = top_add_flow,
	.interval = top_end_interval,
	.fd = screen_names_fd,
	.ready = screen_take_names,
	.close = top_close,
};
