/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The busiest flows of each interval on a terminal, in place. A refresh is one
 * write that starts at the top and clears what is left; the cursor is hidden
 * within it only, so that nothing has to be restored however the program ends.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_ms.h"
#include "busiest.h"
#include "human.h"
#include "output.h"
#include "stats_text.h"

#include <netobs/stats.h>

#define HIDE_CURSOR "\033[?25l"
#define SHOW_CURSOR "\033[?25h"
#define GO_HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"
#define BOLD "\033[1m"
#define NORMAL "\033[0m"

enum {
	MAX_ROWS = 256,
	MIN_REFRESH_MS = 200, /* early drains may come much faster */
	TITLE_LINES = 2,
};

struct screen {
	int rows, columns;
};

struct live {
	struct busiest shown, next;
	int64_t shown_ns;   /* how long that took to come */
	int64_t since_ns;   /* when collecting the next began */
	int64_t drawn_at_s; /* time of day; 0: nothing has come yet */
	char note[160];
};

static struct screen screen_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row ||
	    !size.ws_col)
		return (struct screen){ 24, 80 };
	return (struct screen){ size.ws_row, size.ws_col };
}

__attribute__((format(printf, 2, 3))) static void print(struct output *output,
							const char *format, ...)
{
	char *text = stream_room(&output->stream, ROW_LINE_MAX);
	va_list args;
	int len;

	if (!text)
		return;
	va_start(args, format);
	len = vsnprintf(text, ROW_LINE_MAX, format, args);
	va_end(args);
	if (len > 0)
		stream_advance(&output->stream, len < ROW_LINE_MAX ?
							(size_t)len :
							ROW_LINE_MAX - 1);
}

/* The line is cleared first: after its last column that would take a letter. */
static void print_line(struct output *output, const struct screen *screen,
		       const char *text)
{
	print(output, CLEAR_LINE "%.*s\n", screen->columns, text);
}

/* What the flows do not show: "; 12 lost, 3 unparsed". */
static void describe_rest(const struct output *output, char *text, size_t size)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	unsigned long long lost, unparsed;

	*text = '\0';
	if (!output->get_stats || output->get_stats(&stats, output->user) < 0)
		return;
	lost = stats_lost_packets(&stats);
	unparsed = stats_unparsed_packets(&stats);
	if (lost || unparsed)
		snprintf(text, size, "; %llu lost, %llu unparsed", lost,
			 unparsed);
}

static void draw_title(struct output *output, const struct screen *screen)
{
	const struct live *live = output->state;
	char line[ROW_LINE_MAX], time[16], took[16], count[16], bytes[16],
		rate[24], rest[64];

	if (!live->drawn_at_s) {
		snprintf(line, sizeof(line),
			 "Observing %s; every %g s. q or Ctrl-C ends.",
			 output->subject, output->interval_ms / 1000.0);
		print_line(output, screen, line);
		print_line(output, screen, "Nothing seen yet.");
		return;
	}
	human_time(time, sizeof(time), live->drawn_at_s * 1000000000);
	human_duration(took, sizeof(took), live->shown_ns);
	human_count(count, sizeof(count), live->shown.packets);
	human_bytes(bytes, sizeof(bytes), live->shown.bytes);
	human_rate(rate, sizeof(rate), live->shown.bytes, live->shown_ns);
	describe_rest(output, rest, sizeof(rest));
	snprintf(line, sizeof(line),
		 "%.8s  %s: %llu flows, %s packets, %s, %s%s; %s", time, took,
		 (unsigned long long)live->shown.flows, count, bytes, rate,
		 rest, output->subject);
	print_line(output, screen, line);
}

static void draw_rows(struct output *output, const struct screen *screen, size_t n)
{
	const struct live *live = output->state;
	struct cells cells;
	struct layout layout;
	char line[ROW_LINE_MAX];

	layout_init(&layout, false);
	row_headings(&cells);
	layout_widen(&layout, &cells);
	for (size_t i = 0; i < n; i++) {
		row_cells(&live->shown.rows[i], live->shown_ns, &cells);
		layout_widen(&layout, &cells);
	}
	layout_fit(&layout, screen->columns);

	row_headings(&cells);
	layout_line(&layout, &cells, screen->columns, line);
	print(output, CLEAR_LINE BOLD "%s" NORMAL "\n", line);
	for (size_t i = 0; i < n; i++) {
		row_cells(&live->shown.rows[i], live->shown_ns, &cells);
		layout_line(&layout, &cells, screen->columns, line);
		print(output, CLEAR_LINE "%s\n", line);
	}
}

/* What the rows do not show. */
static void draw_more(struct output *output, const struct screen *screen, size_t n)
{
	const struct live *live = output->state;
	uint64_t rest = live->shown.bytes;
	char line[ROW_LINE_MAX], bytes[16];

	for (size_t i = 0; i < n; i++)
		rest -= live->shown.rows[i].bytes;
	human_bytes(bytes, sizeof(bytes), rest);
	snprintf(line, sizeof(line), "and %llu more flows: %s",
		 (unsigned long long)(live->shown.flows - n), bytes);
	print_line(output, screen, line);
}

/* How many flows fit, with a line for the rest if there is one. */
static size_t count_rows(const struct live *live, const struct screen *screen)
{
	/* The last line of the screen is the cursor's. */
	int room = screen->rows - 1 - TITLE_LINES - (live->note[0] != '\0');

	if (room <= 0)
		return 0;
	if (live->shown.flows <= (size_t)room &&
	    live->shown.n == live->shown.flows)
		return live->shown.n;
	return live->shown.n < (size_t)room - 1 ? live->shown.n :
						  (size_t)room - 1;
}

static void draw(struct output *output)
{
	const struct live *live = output->state;
	const struct screen screen = screen_size();
	size_t n = count_rows(live, &screen);
	bool has_room =
		screen.rows - 1 - TITLE_LINES - (live->note[0] != '\0') > 0;

	print(output, HIDE_CURSOR GO_HOME);
	draw_title(output, &screen);
	if (live->drawn_at_s)
		draw_rows(output, &screen, n);
	if (live->drawn_at_s && has_room && live->shown.flows > n)
		draw_more(output, &screen, n);
	if (live->note[0])
		print_line(output, &screen, live->note);
	print(output, CLEAR_BELOW SHOW_CURSOR);
	stream_flush(&output->stream);
}

static bool close_live(struct output *output);

static int open_live(struct output *output)
{
	struct live *live = calloc(1, sizeof(*live));
	const struct screen screen = screen_size();

	output->state = live;
	if (!live || busiest_init(&live->shown, MAX_ROWS) < 0 ||
	    busiest_init(&live->next, MAX_ROWS) < 0) {
		close_live(output);
		return -ENOMEM;
	}
	live->since_ns = clock_ns(CLOCK_MONOTONIC);

	/* Scroll what is there out of the way rather than erase it. */
	for (int i = 1; i < screen.rows; i++)
		print(output, "\n");
	draw(output);
	return 0;
}

static void add_flow(struct output *output, const struct netobs_flow *flow)
{
	struct live *live = output->state;

	busiest_add(&live->next, flow);
}

/* What was collected takes the screen. */
static void turn_over(struct output *output, int64_t now)
{
	struct live *live = output->state;
	struct busiest done = live->next;

	live->next = live->shown;
	live->shown = done;
	busiest_clear(&live->next);
	busiest_sort(&live->shown);
	live->shown_ns = now - live->since_ns;
	live->since_ns = now;
	live->drawn_at_s = clock_ns(CLOCK_REALTIME) / 1000000000;
	draw(output);
}

static void end_interval(struct output *output)
{
	const struct live *live = output->state;
	const int64_t now = clock_ns(CLOCK_MONOTONIC);
	int64_t refresh_ms = output->interval_ms * 3 / 4;

	if (!live->drawn_at_s && !live->next.flows)
		return;
	if (refresh_ms < MIN_REFRESH_MS)
		refresh_ms = MIN_REFRESH_MS;
	if (now - live->since_ns >= refresh_ms * 1000000)
		turn_over(output, now);
}

static bool show_note(struct output *output, const char *message)
{
	struct live *live = output->state;

	snprintf(live->note, sizeof(live->note), "%s", message);
	draw(output);
	return true;
}

/* The last screen stays, unless most of another interval has come since. */
static bool close_live(struct output *output)
{
	struct live *live = output->state;
	const int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!live)
		return true;
	if (live->next.flows && !output->stream.error &&
	    (!live->drawn_at_s ||
	     now - live->since_ns >= output->interval_ms * INT64_C(500000)))
		turn_over(output, now);
	busiest_free(&live->shown);
	busiest_free(&live->next);
	free(live);
	output->state = NULL;
	return true;
}

const struct output_kind output_live = {
	.has_stream = true,
	.open = open_live,
	.flow = add_flow,
	.interval = end_interval,
	.resize = draw,
	.note = show_note,
	.close = close_live,
};
