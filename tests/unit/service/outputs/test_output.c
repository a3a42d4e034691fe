/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include <netobs/flow.h>

/* The command's parts are in no library: compiled in here. */
#include "cli/view/by.c"
#include "group/key_table.c"
#include "group/group.c"
#include "service/text/human.c"
#include "group/names.c"
#include "cli/view/out_live.c"
#include "service/outputs/output.c"
#include "cli/view/row.c"
#include "cli/view/rows.c"
#include "group/server.c"
#include "service/outputs/stream.c"
#include "cli/view/view.c"

const struct output_kind output_top = { 0 }, output_tcp = { 0 };

/* Parsing knows these; nothing here is made of them. */
const struct output_kind output_table, output_groups;

static const struct view_options by_flow = { 0 };

/* Standard output, exchanged for the other end of @fd. */
struct fixture {
	int saved_stdout;
	int fd;
};

static struct netobs_flow some_flow(void)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.point_size = sizeof(struct netobs_point),
		.packets = 1,
		.bytes = 100,
		.src = { [15] = 1 },
		.dst = { [15] = 2 },
		.ethertype = 0x86dd,
		.proto = 17,
	};
}

static void replace_stdout(struct fixture *fixture, int by)
{
	fixture->saved_stdout = dup(STDOUT_FILENO);
	assert_true(fixture->saved_stdout >= 0);
	assert_int_equal(dup2(by, STDOUT_FILENO), STDOUT_FILENO);
	close(by);
}

static int make_pipe(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int ends[2];

	assert_non_null(fixture);
	*state = fixture;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fixture->fd = ends[0];
	replace_stdout(fixture, ends[1]);
	return 0;
}

static int make_terminal(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct winsize size = { .ws_row = 7, .ws_col = 50 };
	int terminal;

	assert_non_null(fixture);
	*state = fixture;
	fixture->fd = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_true(fixture->fd >= 0);
	assert_int_equal(grantpt(fixture->fd), 0);
	assert_int_equal(unlockpt(fixture->fd), 0);
	terminal = open(ptsname(fixture->fd), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
	replace_stdout(fixture, terminal);
	return 0;
}

static int restore(void **state)
{
	struct fixture *fixture = *state;

	dup2(fixture->saved_stdout, STDOUT_FILENO);
	close(fixture->saved_stdout);
	close(fixture->fd);
	free(fixture);
	return 0;
}

/* All that was written to standard output so far. */
static const char *written(const struct fixture *fixture)
{
	static char text[64 * 1024];
	ssize_t n = read(fixture->fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

static void json_reaches_the_reader_in_whole_lines(void **state)
{
	struct fixture *fixture = *state;
	const struct netobs_flow flow = some_flow();
	struct output output = { .kind = &output_sink, .spec = "json" };
	size_t lines = 0;

	assert_int_equal(output_open(&output), 0);
	for (int i = 0; i < 1000; i++) {
		const char *text;

		output_flow(&output, &flow);
		text = written(fixture);
		if (*text)
			assert_int_equal(text[strlen(text) - 1], '\n');
		lines += count(text, "\n");
	}
	assert_true(lines < 1000);
	/* A call takes a few milliseconds at most, which may be one record's. */
	for (int i = 0; i < 1000 && lines < 1000; i++) {
		output_interval(&output);
		lines += count(written(fixture), "\n");
	}
	assert_int_equal(lines, 1000);
	output_close(&output);
	output_done(&output);
	assert_int_equal(output.error, 0);
}

static void a_record_of_very_many_points_is_written_whole(void **state)
{
	enum { POINTS = 256 }; /* as many as a sink keeps */
	static struct netobs_point points[POINTS];
	struct fixture *fixture = *state;
	struct netobs_flow flow = some_flow();
	struct output output = { .kind = &output_sink, .spec = "json" };
	const char *text;

	for (int i = 0; i < POINTS; i++)
		points[i].name = "interface-name1";
	flow.points = points;
	flow.n_points = POINTS;
	assert_int_equal(output_open(&output), 0);
	output_flow(&output, &flow);
	output_close(&output);
	output_done(&output);
	text = written(fixture);
	assert_int_equal(count(text, "interface-name1"), POINTS);
	assert_int_equal(text[strlen(text) - 2], '}');
}

static void a_reader_that_leaves_is_an_error_that_sticks(void **state)
{
	struct fixture *fixture = *state;
	const struct netobs_flow flow = some_flow();
	struct output output = { .kind = &output_sink, .spec = "json" };

	assert_int_equal(output_open(&output), 0);
	close(fixture->fd);
	fixture->fd = -1;
	output_flow(&output, &flow);
	assert_int_equal(output.error, 0);
	output_interval(&output);
	assert_int_equal(output.error, -EPIPE);
	output_flow(&output, &flow);
	output_close(&output);
	output_done(&output);
	assert_int_equal(output.error, -EPIPE);
}

static void files_that_cannot_take_records_are_errors(void **state)
{
	const struct netobs_flow flow = some_flow();
	struct output full = { .kind = &output_sink, .spec = "json:/dev/full" };
	struct output absent = { .kind = &output_sink,
				 .spec = "json:/nonexistent/flows" };

	(void)state;
	assert_int_equal(output_open(&absent), -ENOENT);
	output_close(&absent);
	output_done(&absent);

	assert_int_equal(output_open(&full), 0);
	output_flow(&full, &flow);
	assert_false(output_close(&full));
	output_done(&full);
}

static void standard_output_that_is_read_only_or_closed_is_refused(void **state)
{
	struct stream stream;
	int null = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(dup2(null, STDOUT_FILENO), STDOUT_FILENO);
	close(null);
	assert_int_equal(stream_open_stdout(&stream), -EBADF);
	close(STDOUT_FILENO);
	assert_int_equal(stream_open_stdout(&stream), -EBADF);
}

static void outputs_are_tables_or_sinks(void **state)
{
	struct output output;

	(void)state;
	setenv("TERM", "xterm", 1);
	output = output_of("json:a:b", true);
	assert_ptr_equal(output.kind, &output_sink);
	assert_false(output.is_stdout);
	output = output_of("json?spool.full=drop_newest", true);
	assert_ptr_equal(output.kind, &output_sink);
	assert_true(output.is_stdout);
	output = output_of("jsonl", true);
	assert_false(output.is_stdout);
	output = output_of(NULL, true);
	assert_ptr_equal(output.kind, &output_sink);
	assert_string_equal(output.spec, "json");
	output = output_of("table", true);
	assert_ptr_equal(output.kind, &output_table);
	assert_true(output.is_stdout);
}

static void a_terminal_gets_a_screen_unless_it_is_dumb_or_all_is_wanted(void **state)
{
	(void)state;
	setenv("TERM", "xterm", 1);
	assert_ptr_equal(output_of(NULL, true).kind, &output_live);
	assert_ptr_equal(output_of(NULL, false).kind, &output_table);
	setenv("TERM", "dumb", 1);
	assert_ptr_equal(output_of(NULL, true).kind, &output_table);
}

/*
 * The text of the last refresh, which starts at the top of the screen. A terminal passes
 * text on in pieces and after a while.
 */
static const char *last_screen(const struct fixture *fixture)
{
	static char text[64 * 1024];
	struct pollfd fd = { .fd = fixture->fd, .events = POLLIN };
	const char *screen = NULL;
	size_t len = 0;
	int wait_ms = 10000;

	text[0] = '\0';
	while (len < sizeof(text) - 1 && poll(&fd, 1, wait_ms) > 0) {
		ssize_t n = read(fd.fd, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
		text[len] = '\0';
		if (strstr(text, SHOW_CURSOR))
			wait_ms = 100;
	}
	for (const char *pos = text; (pos = strstr(pos, GO_HOME)); pos++)
		screen = pos;
	assert_non_null(screen);
	return screen;
}

static void the_screen_says_what_is_observed_until_flows_come(void **state)
{
	struct fixture *fixture = *state;
	struct output output = { .kind = &output_live,
				 .subject = "eth0",
				 .view = &by_flow,
				 .interval_ms = 500 };
	const char *text;

	assert_int_equal(output_open(&output), 0);
	output_interval(&output);
	text = last_screen(fixture);
	assert_non_null(strstr(text, "Observing eth0, every 0.5 s"));
	assert_non_null(strstr(text, "q quits, p pauses"));
	assert_non_null(strstr(text, "Nothing seen yet."));
	output_close(&output);
	output_done(&output);
}

static void a_screen_has_the_busiest_flows_and_never_scrolls(void **state)
{
	struct fixture *fixture = *state;
	struct netobs_flow flow = some_flow();
	struct output output = { .kind = &output_live,
				 .subject = "eth0",
				 .view = &by_flow,
				 .interval_ms = 1 };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	last_screen(fixture);
	for (flow.bytes = 100; flow.bytes < 120; flow.bytes++)
		output_flow(&output, &flow);
	output_close(&output);
	output_done(&output);

	/* Seven lines: title, sum, headings, two flows, the rest, and the cursor's. */
	screen = last_screen(fixture);
	assert_int_equal(count(screen, "\n"), 6);
	assert_non_null(strstr(screen, "20 flows"));
	assert_non_null(strstr(screen, "119 B"));
	assert_non_null(strstr(screen, "118 B"));
	assert_null(strstr(screen, "117 B"));
	assert_non_null(strstr(screen, "and 18 more flows: 18 packets, 1.95 kB"));
	assert_non_null(strstr(screen, CLEAR_BELOW SHOW_CURSOR));
}

static void a_note_and_another_size_redraw_at_once(void **state)
{
	struct fixture *fixture = *state;
	const struct winsize size = { .ws_row = 6, .ws_col = 12 };
	struct output output = { .kind = &output_live,
				 .subject = "eth0",
				 .view = &by_flow,
				 .interval_ms = 1000 };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	last_screen(fixture);
	assert_true(output_note(&output, "table is full"));
	screen = last_screen(fixture);
	assert_non_null(strstr(screen, "table is full"));

	assert_int_equal(ioctl(STDOUT_FILENO, TIOCSWINSZ, &size), 0);
	output_resize(&output);
	screen = last_screen(fixture);
	assert_null(strstr(screen, "table is full"));
	assert_non_null(strstr(screen, "table is ful"));
	output_close(&output);
	output_done(&output);
	assert_false(output_note(&output, "too late"));
}

static void a_pause_keeps_the_screen_and_loses_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct netobs_flow flow = some_flow();
	struct output output = { .kind = &output_live,
				 .subject = "eth0",
				 .view = &by_flow,
				 .interval_ms = 1 };
	const char *screen;

	assert_int_equal(output_open(&output), 0);
	output_pause(&output);
	screen = last_screen(fixture);
	assert_non_null(strstr(screen, "PAUSED"));
	output_flow(&output, &flow);
	usleep(1000 * MIN_REFRESH_MS);
	output_interval(&output);
	assert_string_equal(written(fixture), "");
	output_pause(&output);
	output_flow(&output, &flow);
	output_interval(&output);
	screen = last_screen(fixture);
	assert_null(strstr(screen, "PAUSED"));
	assert_non_null(strstr(screen, "2 flows, 2 packets"));
	output_close(&output);
	output_done(&output);
}

#define ON_PIPE(test) cmocka_unit_test_setup_teardown(test, make_pipe, restore)
#define ON_TERMINAL(test) \
	cmocka_unit_test_setup_teardown(test, make_terminal, restore)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_PIPE(json_reaches_the_reader_in_whole_lines),
		ON_PIPE(a_record_of_very_many_points_is_written_whole),
		ON_PIPE(a_reader_that_leaves_is_an_error_that_sticks),
		ON_PIPE(files_that_cannot_take_records_are_errors),
		ON_PIPE(standard_output_that_is_read_only_or_closed_is_refused),
		ON_PIPE(outputs_are_tables_or_sinks),
		ON_TERMINAL(
			a_terminal_gets_a_screen_unless_it_is_dumb_or_all_is_wanted),
		ON_TERMINAL(the_screen_says_what_is_observed_until_flows_come),
		ON_TERMINAL(a_screen_has_the_busiest_flows_and_never_scrolls),
		ON_TERMINAL(a_note_and_another_size_redraw_at_once),
		ON_TERMINAL(a_pause_keeps_the_screen_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
