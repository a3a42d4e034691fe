/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The first rows of each interval on a terminal, in place. A refresh is one write that starts at
 * the top and clears the rest; the cursor is hidden during it only, so that nothing has to be
 * restored however the program ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "base/util.h"
#include "row.h"
#include "live.h"
#include "screen.h"
#include "view_output.h"

#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define GO_HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"
#define BOLD "\033[1m"
#define RED "\033[1;31m"
#define NORMAL "\033[0m"

enum {
	MAX_ROWS = 256,
	TITLE_LINES = 3,
};

struct live_screen {
	struct screen_state common; /* its names are the view's */
	struct view view;
};

static struct winsize find_screen_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
	    !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	return size;
}

/* The line is cleared first: after its last column that would take a letter. */
static void live_print_line(struct output *output, const struct winsize *screen,
			    const char *text)
{
	stream_print(&output->stream, CLEAR_LINE "%.*s\n", screen->ws_col, text);
}

static void live_draw_title(struct output *output, const struct winsize *screen)
{
	const struct live_screen *live = output->state;
	char subject[ROW_LINE_MAX], line[ROW_LINE_MAX];

	screen_subject(output, live->common.drawn_at_s, subject, sizeof(subject));
	live_title(line, sizeof(line), subject, live->common.is_paused,
		   screen->ws_col);
	live_print_line(output, screen, line);
}

static void live_draw_sum(struct output *output, const struct winsize *screen)
{
	const struct live_screen *live = output->state;
	char line[ROW_LINE_MAX], sum[160], losses[64];
	bool is_lossy;

	if (!live->common.drawn_at_s) {
		live_print_line(output, screen, "Nothing seen yet.");
		return;
	}
	view_sum_text(&live->view.sum, "flows", live->view.took_ns, sum,
		      sizeof(sum));
	is_lossy = output_losses(output, losses, sizeof(losses));
	snprintf(line, sizeof(line), "%s%s%s", is_lossy ? losses : sum,
		 *losses ? "; " : "", is_lossy ? sum : losses);
	if (is_lossy && output_want_colour())
		stream_print(&output->stream, CLEAR_LINE RED "%.*s" NORMAL "\n",
			     screen->ws_col, line);
	else
		live_print_line(output, screen, line);
}

static void live_draw_rows(struct output *output, const struct winsize *screen,
			   size_t n)
{
	const struct live_screen *live = output->state;
	const struct view *view = &live->view;
	struct cells cells;
	struct layout layout;
	char line[ROW_LINE_MAX];

	layout_init(&layout, &view->options->by, LAYOUT_LIVE);
	layout.groups = view->groups;
	layout.sampling = output->sampling;
	layout.names = view->names;
	layout.rate_ns = view->took_ns;
	layout_fit_rows(&layout, view->rows.list.items,
			view->rows.list.item_size, n, screen->ws_col);

	layout_headings(&layout, &cells);
	layout_line(&layout, &cells, screen->ws_col, line);
	stream_print(&output->stream, CLEAR_LINE BOLD "%s" NORMAL "\n", line);
	for (size_t i = 0; i < n; i++) {
		layout_cells(&layout, rows_at(&view->rows, i), &cells);
		layout_line(&layout, &cells, screen->ws_col, line);
		stream_print(&output->stream, CLEAR_LINE "%s\n", line);
	}
}

/* Draw the sum of rows after the first @n. */
static void live_draw_more(struct output *output, const struct winsize *screen,
			   size_t n)
{
	const struct view *view = &((struct live_screen *)output->state)->view;
	char line[ROW_LINE_MAX];

	view_rest_text(&view->rows, n, view->has_others,
		       view->options->by.keys.n ? "" : " flows", line,
		       sizeof(line));
	live_print_line(output, screen, line);
}

/* Lines for rows and the rest. The last line of the screen is the cursor's. */
static size_t live_count_room(const struct live_screen *live,
			      const struct winsize *screen)
{
	int room = screen->ws_row - 1 - TITLE_LINES -
		   (*screen_words(&live->common) != '\0');

	return room > 0 ? (size_t)room : 0;
}

static bool live_is_complete(const struct view *view, size_t n)
{
	return view->rows.added == n && !view->has_others;
}

static size_t live_count_rows(const struct view *view, size_t room)
{
	if (!room)
		return 0;
	if (view->rows.list.n <= room && live_is_complete(view, view->rows.list.n))
		return view->rows.list.n;
	return min_u64(view->rows.list.n, room - 1);
}

static void live_draw(struct output *output)
{
	const struct live_screen *live = output->state;
	const struct winsize screen = find_screen_size();
	const size_t room = live_count_room(live, &screen);
	const size_t n = live_count_rows(&live->view, room);

	stream_print(&output->stream, HIDE_CURSOR GO_HOME);
	live_draw_title(output, &screen);
	if (screen.ws_row > 2)
		live_draw_sum(output, &screen);
	if (live->common.drawn_at_s && screen.ws_row > TITLE_LINES)
		live_draw_rows(output, &screen, n);
	if (live->common.drawn_at_s && room && !live_is_complete(&live->view, n))
		live_draw_more(output, &screen, n);
	if (*screen_words(&live->common) && screen.ws_row > TITLE_LINES + 1)
		live_print_line(output, &screen, screen_words(&live->common));
	stream_print(&output->stream, CLEAR_BELOW SHOW_CURSOR);
	stream_flush(&output->stream);
}

static int live_open(struct output *output)
{
	struct live_screen *live = calloc(1, sizeof(*live));
	const struct winsize screen = find_screen_size();
	int err = live ? view_init(&live->view, output->view, MAX_ROWS) : -ENOMEM;

	if (err < 0) {
		free(live);
		return err;
	}
	live->common.names = live->view.names;
	live->common.draw = live_draw;
	output->state = live;

	/* Scroll the text on the screen away rather than erase it. */
	for (int i = 1; i < screen.ws_row; i++)
		stream_print(&output->stream, "\n");
	live_draw(output);
	return 0;
}

static void live_add_flow(struct output *output,
			  const struct netobs_record *record)
{
	struct live_screen *live = output->state;
	int err = view_add(&live->view, (const void *)record);

	if (err < 0)
		output->stream.error = err;
}

static void live_turn_over(struct output *output)
{
	struct live_screen *live = output->state;
	int err = view_turn(&live->view);

	if (err < 0)
		output->stream.error = err;
	live->common.drawn_at_s = clock_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	live_draw(output);
}

static void live_end_interval(struct output *output)
{
	const struct live_screen *live = output->state;

	if (live->common.is_paused ||
	    (!live->common.drawn_at_s && !live->view.next_sum.flows))
		return;
	if (view_is_due(output->view, view_age_ns(&live->view), true))
		live_turn_over(output);
}

/* The last screen stays, unless most of another interval has come since. */
static void live_close(struct output *output)
{
	struct live_screen *live = output->state;

	if (!live)
		return;
	live->common.is_paused = false;
	if (live->view.next_sum.flows && !output->stream.error &&
	    (!live->common.drawn_at_s ||
	     view_age_ns(&live->view) >=
		     output->view->interval_ms * INT64_C(500000)))
		live_turn_over(output);
	view_free(&live->view);
	free(live);
	output->state = NULL;
}

const struct output_kind output_live = {
	.open = live_open,
	.record = live_add_flow,
	.interval = live_end_interval,
	.fd = screen_names_fd,
	.ready = screen_take_names,
	.close = live_close,
};
