/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The screen of netobsctl top: its keys and its intervals. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NCURSES_NOMACROS
#include <curses.h>

#include "base/clock_ms.h"
#include <netobs/names.h>
#include "screen.h"
#include "top.h"
#include "view.h"

enum {
	MIN_AGE_MS = 200 /* of an interval: early drains may come much faster */
};

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

static void top_show_table(struct top *top, size_t table)
{
	top->table = table;
	top->common.first = 0;
}

static void top_sort(struct top *top, enum netobs_group_sort sort)
{
	top->order = (struct order){ .sort = sort };
	top->common.first = 0;
}

/* All tables show them, or none does. */
static void top_sort_measured(struct top *top, enum netobs_group_sort sort)
{
	if (top->tables.tables[top->table].by.shows_rtt)
		top_sort(top, sort);
	else
		snprintf(top->common.note, sizeof(top->common.note),
			 "Round-trip times and retransmissions are measured with --rtt.");
}

static bool top_choose(struct top *top, int key)
{
	const size_t n = top->tables.n;

	if (key >= '1' && key < '1' + (int)n) {
		top_show_table(top, (size_t)(key - '1'));
		return true;
	}
	switch (key) {
	case '\t':
	case KEY_RIGHT:
		top_show_table(top, (top->table + 1) % n);
		return true;
	case KEY_BTAB:
	case KEY_LEFT:
		top_show_table(top, (top->table + n - 1) % n);
		return true;
	case 'b':
		top_sort(top, NETOBS_GROUP_BY_BYTES);
		return true;
	case 'k':
		top_sort(top, NETOBS_GROUP_BY_PACKETS);
		return true;
	case 'f':
		top_sort(top, NETOBS_GROUP_BY_FLOWS);
		return true;
	case 's':
		top_sort(top, NETOBS_GROUP_BY_SENT);
		return true;
	case 'r':
		top_sort_measured(top, NETOBS_GROUP_BY_RTT);
		return true;
	case 'x':
		top_sort_measured(top, NETOBS_GROUP_BY_RETRANSMITS);
		return true;
	case 'n':
		top_sort(top, NETOBS_GROUP_BY_KEY);
		return true;
	default:
		return screen_scroll(key, top_room(), top->n_rows,
				     &top->common.first);
	}
}

static bool top_follow_key(struct output *output, int key)
{
	struct top *top = output->state;

	if (top->is_typing) {
		top_type(top, key);
		return true;
	}
	if (top_choose(top, key))
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

static void top_add_flow(struct output *output, const struct netobs_flow *flow)
{
	struct top *top = output->state;

	top_tables_add(&top->tables, flow);
}

/* What comes while the screen is frozen is on the first one after it. */
static void top_end_interval(struct output *output)
{
	struct top *top = output->state;
	int64_t age_ms = output->view->interval_ms * INT64_C(3) / 4;

	if (output->view->is_file) {
		top_end_interval_of_file(top);
		return;
	}
	if (top->common.is_paused ||
	    (!top->common.drawn_at_s && !top->tables.next_sum.flows))
		return;
	if (age_ms < MIN_AGE_MS)
		age_ms = MIN_AGE_MS;
	if (top_tables_age_ns(&top->tables) < age_ms * NSEC_PER_MSEC)
		return;
	top_tables_turn(&top->tables, false);
	top->common.drawn_at_s = clock_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	top_draw(output);
}

static bool top_close(struct output *output)
{
	struct top *top = output->state;

	if (!top)
		return true;
	screen_end(top->common.screen);
	top_free(top);
	output->state = NULL;
	return true;
}

const struct screen_kind output_top = {
	.output = { .open = top_open,
		    .flow = top_add_flow,
		    .interval = top_end_interval,
		    .fd = screen_names_fd,
		    .ready = screen_take_names,
		    .close = top_close },
	.resize = screen_resize,
	.keys = screen_follow_keys,
	.note = screen_note,
};
