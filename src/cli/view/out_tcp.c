// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The connections that are measured, once per interval: on a screen, by ncurses, or as lines of
 * a table or of JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define NCURSES_NOMACROS
#include <curses.h>

#include <netobs/connection.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "conns.h"
#include "row.h"
#include <netobs/names.h>
#include "view_output.h"
#include "screen.h"
#include "view.h"

enum { HEAD_LINES = 2 };

struct tcp {
	struct screen_state common; /* without a screen: lines */
	struct conns conns;
	enum conns_sort sort;
	bool shows_process;
	bool has_printed;
};

static const char *const tcp_help[] = {
	"r       sort by round-trip time",
	"x       sort by retransmissions",
	"a       sort by application latency",
	"b       sort by the rate of data (default), B by their sum",
	"o       the oldest connections first",
	"p       pause the screen. Also the space bar",
	"N       names of hosts and ports, or numbers",
	"arrows  scroll, also Page Up, Page Down, Home and End",
	"h ?     this help",
	"q       quit",
	"",
	("A connection that passes several interfaces has one row: that of the interface where the "
	 "value that rows are sorted by is largest. --per-interface has a row for each."),
	("RTT is smoothed, and measured at the interface: from there to the server and back "
	 "(RTT \u2192), and to the client and back (\u2190 RTT). A host that delays its "
	 "acknowledgements adds to it; MIN, of the last 10 to 20 seconds, is the path's."),
	("APP is what the server takes itself for its answers, smoothed: without the "
	 "path from the interface to it and back."),
	"Rates are those of data, without headers and retransmissions.",
};

/* ---- Both -------------------------------------------------------------------------------- */

static int tcp_collect(struct output *output)
{
	struct tcp *tcp = output->state;
	int r;

	conns_begin(&tcp->conns);
	r = output->view->each_connection(conns_take, &tcp->conns, output->user);
	conns_end(&tcp->conns, tcp->sort);
	return r < 0 ? r : tcp->conns.error;
}

static bool tcp_is_due(const struct output *output)
{
	const struct tcp *tcp = output->state;

	return view_is_due(output->view,
			   clock_ns(CLOCK_MONOTONIC) - tcp->conns.at_ns,
			   tcp->common.screen);
}

/* @return the number of rows to print */
static size_t tcp_count_rows(const struct output *output)
{
	const struct tcp *tcp = output->state;
	const uint64_t most = output->view->top;

	return most && most < tcp->conns.n_shown ? most : tcp->conns.n_shown;
}

static void tcp_layout(const struct tcp *tcp, struct layout *ret_layout)
{
	conns_layout(ret_layout, tcp->sort, tcp->shows_process);
	ret_layout->names = tcp->common.names;
	ret_layout->rate_ns = tcp->conns.took_ns;
}

static int tcp_open(struct output *output)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp));
	int err = 0;

	if (!tcp)
		return -ENOMEM;
	tcp->sort = output->view->conns_sort;
	tcp->shows_process = output->view->by.shows_process;
	tcp->conns.per_interface = output->view->per_interface;
	tcp->conns.at_ns = clock_ns(CLOCK_MONOTONIC);
	if (output->view->want_names)
		err = netobs_names_new(NULL, &tcp->common.names);
	if (err < 0)
		free(tcp);
	else
		output->state = tcp;
	return err;
}

static void tcp_free(struct output *output)
{
	struct tcp *tcp = output->state;

	conns_free(&tcp->conns);
	netobs_names_free(tcp->common.names);
	free(tcp);
	output->state = NULL;
}

/* ---- Lines ------------------------------------------------------------------------------- */

static void tcp_write_table(struct output *output)
{
	struct tcp *tcp = output->state;
	const size_t n = tcp_count_rows(output);
	const int width = row_line_width();
	struct layout layout;
	struct cells cells;

	tcp_layout(tcp, &layout);
	layout_fit_rows(&layout, tcp->conns.list, sizeof(*tcp->conns.list), n,
			width);
	layout_headings(&layout, &cells);
	layout_write(&layout, output, &cells, width);
	layout_write_rows(&layout, output, tcp->conns.list,
			  sizeof(*tcp->conns.list), n, width);
}

/* Write connections unsorted, with all members. */
static void tcp_write_json(const struct netobs_connection *connection, void *arg)
{
	struct output *output = arg;
	char text[NETOBS_CONNECTION_JSON_MAX];

	if (netobs_connection_json(connection, text, sizeof(text)) > 0)
		stream_print(&output->stream, "%s\n", text);
}

static void tcp_print(struct output *output)
{
	struct tcp *tcp = output->state;
	int r;

	tcp->has_printed = true;
	if (output_is_for_people(output)) {
		r = tcp_collect(output);
		tcp_write_table(output);
	} else {
		tcp->conns.at_ns = clock_ns(CLOCK_MONOTONIC);
		r = output->view->each_connection(tcp_write_json, output,
						  output->user);
	}
	if (r < 0)
		output->stream.error = r;
}

static void tcp_print_interval(struct output *output)
{
	if (tcp_is_due(output))
		tcp_print(output);
}

static void tcp_end_lines(struct output *output)
{
	struct tcp *tcp = output->state;

	if (!tcp)
		return;
	if (!tcp->has_printed)
		tcp_print(output);
	tcp_free(output);
}

const struct output_kind output_tcp_lines = {
	.open = tcp_open,
	.interval = tcp_print_interval,
	.close = tcp_end_lines,
};

/* ---- The screen -------------------------------------------------------------------------- */

static size_t tcp_room(void)
{
	const int room = LINES - HEAD_LINES - 1;

	return room > 0 ? (size_t)room : 0;
}

static void tcp_draw_title(const struct output *output)
{
	const struct tcp *tcp = output->state;
	char left[256], right[96];

	screen_subject(output, tcp->common.drawn_at_s, left, sizeof(left));
	snprintf(right, sizeof(right), "%s%u connections by %s",
		 tcp->common.is_paused ? "PAUSED  " : "", tcp->conns.n_shown,
		 conns_sort_names[tcp->sort]);
	screen_put_title(left, right);
}

static void tcp_draw_rows(struct tcp *tcp)
{
	const size_t n = tcp->conns.n_shown, room = tcp_room();
	struct layout layout;

	if (tcp->common.first >= n)
		tcp->common.first = n ? n - 1 : 0;
	tcp_layout(tcp, &layout);
	screen_put_rows(HEAD_LINES - 1, &layout,
			n ? &tcp->conns.list[tcp->common.first] : NULL,
			sizeof(*tcp->conns.list),
			min_u64(n - tcp->common.first, room));
}

static void tcp_draw(struct output *output)
{
	struct tcp *tcp = output->state;

	erase();
	tcp_draw_title(output);
	if (tcp->common.has_help)
		screen_put_help(HEAD_LINES, tcp_help, ARRAY_SIZE(tcp_help));
	else
		tcp_draw_rows(tcp);
	if (!tcp->common.has_help)
		screen_put_foot(&tcp->common, "r x a b o sort  N names");
	refresh();
}

static void tcp_order(struct tcp *tcp, enum conns_sort sort)
{
	tcp->sort = sort;
	tcp->common.first = 0;
	conns_sort(&tcp->conns, sort);
}

static bool tcp_order_by_key(struct tcp *tcp, int key)
{
	static const struct {
		char key;
		enum conns_sort sort;
	} keys[] = {
		{ 'r', CONNS_BY_RTT },	 { 'x', CONNS_BY_RETRANSMITS },
		{ 'a', CONNS_BY_APP },	 { 'b', CONNS_BY_RATE },
		{ 'B', CONNS_BY_BYTES }, { 'o', CONNS_BY_AGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].key == key) {
			tcp_order(tcp, keys[i].sort);
			return true;
		}
	return false;
}

static bool tcp_follow_key(struct output *output, int key)
{
	struct tcp *tcp = output->state;

	return tcp_order_by_key(tcp, key) ||
	       screen_scroll(key, tcp_room(), tcp->conns.n_shown,
			     &tcp->common.first);
}

static int tcp_open_screen(struct output *output)
{
	int err = tcp_open(output);
	struct tcp *tcp = output->state;

	if (err < 0)
		return err;
	tcp->common.draw = tcp_draw;
	tcp->common.follow_key = tcp_follow_key;
	err = screen_start(output, &tcp->common.screen);
	if (err < 0) {
		tcp_free(output);
		return err;
	}
	tcp_draw(output);
	return 0;
}

static void tcp_show_interval(struct output *output)
{
	struct tcp *tcp = output->state;

	if (tcp->common.is_paused || !tcp_is_due(output))
		return;
	output->error = tcp_collect(output);
	tcp->common.drawn_at_s = clock_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	tcp_draw(output);
}

static void tcp_end_screen(struct output *output)
{
	struct tcp *tcp = output->state;

	if (!tcp)
		return;
	screen_end(tcp->common.screen);
	tcp_free(output);
}

const struct output_kind output_tcp = {
	.open = tcp_open_screen,
	.interval = tcp_show_interval,
	.fd = screen_names_fd,
	.ready = screen_take_names,
	.close = tcp_end_screen,
};
