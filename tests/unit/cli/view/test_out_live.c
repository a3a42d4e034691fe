/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Which output is a table or a screen, and the screen of netobsctl flows. */
#include "lib_clock.h"
#include "lib_flow.h"
#include "lib_stdout.h"
#include "lib_test.h"
#include "lib_wait.h"

#include <poll.h>
#include <sys/ioctl.h>

#include "cli/view/view.h"
#include "cli/view/screen.h"
#include "cli/view/view_output.h"

#define SHOW_CURSOR "\033[?25h"
#define GO_HOME "\033[H"
#define CLEAR_BELOW "\033[J"
#define MARK "\001"

enum { MIN_REFRESH_MS = 200 };

TEST_WITH(outputs_are_tables_or_sinks, stdout_make_pipe, stdout_restore)
{
	struct output output;

	setenv("TERM", "xterm", 1);
	output = view_output_of("json:a:b", true);
	assert_null(output.kind);
	assert_false(output.is_stdout);
	output = view_output_of("json?spool.max_bytes=1M", true);
	assert_null(output.kind);
	assert_true(output.is_stdout);
	output = view_output_of("jsonl", true);
	assert_false(output.is_stdout);
	output = view_output_of(NULL, true);
	assert_null(output.kind);
	assert_string_equal(output.spec, "json");
	output = view_output_of("table", true);
	assert_ptr_equal(output.kind, &output_table);
	assert_true(output.is_stdout);
}

#define CASE(name)                                                          \
	TEST_OF(name, struct stdout_fixture *fixture, stdout_make_terminal, \
		stdout_restore)

CASE(a_terminal_gets_a_screen_unless_it_is_dumb_or_all_is_wanted)
{
	setenv("TERM", "xterm", 1);
	assert_ptr_equal(view_output_of(NULL, true).kind, &output_live);
	assert_ptr_equal(view_output_of(NULL, false).kind, &output_table);
	setenv("TERM", "dumb", 1);
	assert_ptr_equal(view_output_of(NULL, true).kind, &output_table);
}

/*
 * The text of the last refresh, which starts at the top of the screen. A terminal passes
 * text on in pieces and after a while: a mark behind it has come when all has.
 */
static const char *last_screen(const struct stdout_fixture *fixture)
{
	static char text[64 * 1024];
	struct pollfd fd = { .fd = fixture->fd, .events = POLLIN };
	const char *screen = NULL;
	size_t len = 0;

	text[0] = '\0';
	assert_int_equal(write(STDOUT_FILENO, MARK, strlen(MARK)), strlen(MARK));
	while (!strstr(text, MARK)) {
		ssize_t n;

		assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
		n = read(fd.fd, text + len, sizeof(text) - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
		text[len] = '\0';
	}
	for (const char *pos = text; (pos = strstr(pos, GO_HOME)); pos++)
		screen = pos;
	assert_non_null(screen);
	return screen;
}

CASE(the_screen_says_what_is_observed_until_flows_come)
{
	const struct view_options view = { .subject = "eth0", .interval_ms = 500 };
	struct output output = { .kind = &output_live, .view = &view };
	const char *text;

	assert_int_equal(output_open(&output), 0);
	output_interval(&output);
	text = last_screen(fixture);
	assert_non_null(strstr(text, "Observing eth0, every 0.5 s"));
	assert_non_null(strstr(text, "p pause  q quit"));
	assert_non_null(strstr(text, "Nothing seen yet."));
	output_close(&output);
	output_done(&output);
}

CASE(a_screen_has_the_busiest_flows_and_never_scrolls)
{
	struct netobs_flow flow = make_datagram();
	const struct view_options view = { .subject = "eth0", .interval_ms = 1 };
	struct output output = { .kind = &output_live, .view = &view };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	last_screen(fixture);
	for (flow.bytes = 100; flow.bytes < 120; flow.bytes++)
		output_record(&output, &flow.record);
	output_close(&output);
	output_done(&output);

	/* Seven lines: title, sum, headings, two flows, the rest, and the cursor's. */
	screen = last_screen(fixture);
	assert_int_equal(count_parts(screen, "\n"), 6);
	assert_non_null(strstr(screen, "20 flows"));
	assert_non_null(strstr(screen, "119 B"));
	assert_non_null(strstr(screen, "118 B"));
	assert_null(strstr(screen, "117 B"));
	assert_non_null(strstr(screen, "and 18 more flows: 18 packets, 1.95 kB"));
	assert_non_null(strstr(screen, CLEAR_BELOW SHOW_CURSOR));
}

CASE(a_note_and_another_size_redraw_at_once)
{
	const struct winsize size = { .ws_row = 6, .ws_col = 12 };
	const struct view_options view = { .subject = "eth0",
					   .interval_ms = 1000 };
	struct output output = { .kind = &output_live, .view = &view };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	last_screen(fixture);
	assert_true(output_note(&output, "table is full"));
	screen = last_screen(fixture);
	assert_non_null(strstr(screen, "table is full"));

	assert_int_equal(ioctl(STDOUT_FILENO, TIOCSWINSZ, &size), 0);
	screen_resize(&output);
	screen = last_screen(fixture);
	assert_null(strstr(screen, "table is full"));
	assert_non_null(strstr(screen, "table is ful"));
	output.error = -EPIPE;
	assert_false(output_note(&output, "it failed"));
	output_close(&output);
	output_done(&output);
	assert_false(output_note(&output, "too late"));
}

CASE(a_pause_keeps_the_screen_and_loses_nothing)
{
	struct netobs_flow flow = make_datagram();
	const struct view_options view = { .subject = "eth0", .interval_ms = 1 };
	struct output output = { .kind = &output_live, .view = &view };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	screen_pause(&output);
	screen = last_screen(fixture);
	assert_non_null(strstr(screen, "PAUSED"));
	output_record(&output, &flow.record);
	clock_skip(MIN_REFRESH_MS);
	output_interval(&output);
	assert_string_equal(stdout_written(fixture), "");
	screen_pause(&output);
	output_record(&output, &flow.record);
	output_interval(&output);
	screen = last_screen(fixture);
	assert_null(strstr(screen, "PAUSED"));
	assert_non_null(strstr(screen, "2 flows, 2 packets"));
	output_close(&output);
	output_done(&output);
}
