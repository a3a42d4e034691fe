// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Where lines go: files that others move, and readers that come and go. */
#include "lib_clock.h"
#include "lib_lines.h"
#include "lib_test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void dispatch_for(struct lines_fixture *f, int ms)
{
	for (; ms > 0; ms -= 10) {
		clock_skip(10);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	}
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* ---- Files --------------------------------------------------------------------- */

static void write_and_close(struct lines_fixture *f, const char *format,
			    uint64_t from, uint64_t to)
{
	open_sink(f, format);
	write_flows(f, from, to);
	flush_all(f);
	close_sink(f);
}

LINES_TEST(restart_appends)
{
	struct stat info;

	write_and_close(f, "json:%s", 0, 10);
	write_and_close(f, "json:%s", 10, 20);
	assert_lines(f->path, 0, 20);
	assert_int_equal(stat(f->path, &info), 0);
	assert_int_equal(info.st_mode & 0777 & ~0640, 0);
}

LINES_TEST(mode_is_as_asked_for)
{
	mode_t mask = umask(0);
	struct stat info;

	write_and_close(f, "json:%s?mode=604", 0, 1);
	umask(mask);
	assert_int_equal(stat(f->path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0604);
}

LINES_TEST(torn_line_stays_alone)
{
	int fd = open(f->path, O_WRONLY | O_CREAT, 0600);
	char *text;

	assert_int_equal(write(fd, "{\"torn\":", 8), 8);
	close(fd);
	write_and_close(f, "json:%s", 0, 10);
	text = read_text(f->path);
	assert_memory_equal(text, "{\"torn\":\n", 9);
	assert_int_equal(check_lines(text + 9, 0), 10);
	free(text);
}

/* logrotate's copytruncate. */
LINES_TEST(truncation_leaves_no_hole)
{
	open_sink(f, "json:%s");
	write_flows(f, 0, 1000);
	flush_all(f);
	assert_int_equal(truncate(f->path, 0), 0);
	write_flows(f, 1000, 1010);
	flush_all(f);
	assert_lines(f->path, 1000, 1010);
}

/* And its default, to move the file away. */
LINES_TEST(file_that_was_moved_is_made_anew)
{
	char moved[PATH_MAX], *text;
	uint64_t n = 10, first;

	snprintf(moved, sizeof(moved), "%s/moved", f->dir);
	open_sink(f, "json:%s");
	write_flows(f, 0, 10);
	flush_all(f);
	assert_int_equal(rename(f->path, moved), 0);
	while (access(f->path, F_OK)) {
		assert_true(n < 3000);
		write_flows(f, n, n + 1);
		n++;
		dispatch_for(f, 50);
	}
	write_flows(f, n, n + 1);
	flush_all(f);
	close_sink(f);
	text = read_text(moved);
	first = check_lines(text, 0);
	free(text);
	assert_in_range(first, n - 2,
			n); /* it may have been made just after a line */
	assert_lines(f->path, first, n + 1);
}

LINES_TEST(reopen_fails_while_a_line_is_torn)
{
	char moved[PATH_MAX], *text;
	int r, tries = 0;

	snprintf(moved, sizeof(moved), "%s/moved", f->dir);
	open_sink(f, "json:%s");
	limit_files(100);
	write_flows(f, 0, 1);
	flush_all(f);
	assert_int_equal(netobs_sink_reopen(f->sink), 0);
	assert_int_equal(rename(f->path, moved), 0);
	assert_int_equal(netobs_sink_reopen(f->sink), -EAGAIN);
	assert_int_equal(access(f->path, F_OK), -1);
	limit_files(RLIM_INFINITY);
	while ((r = netobs_sink_reopen(f->sink)) == -EAGAIN) {
		assert_in_range(++tries, 1, 100);
		dispatch_for(f, 50);
	}
	assert_int_equal(r, 0);
	write_flows(f, 1, 2);
	flush_all(f);
	text = read_text(moved);
	assert_int_equal(check_lines(text, 0), 1);
	free(text);
	assert_lines(f->path, 1, 2);
}

LINES_TEST(missing_directories_are_made)
{
	char spec[2 * PATH_MAX], path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/var/log/flows.json", f->dir);
	snprintf(spec, sizeof(spec), "json:%s", path);
	assert_int_equal(try_open_sink(f, spec), 0);
	write_flows(f, 0, 10);
	flush_all(f);
	assert_lines(path, 0, 10);
}

LINES_TEST(places_in_the_network_are_refused)
{
	static const char *const specs[] = {
		"json:udp:127.0.0.1:55",
		"json:http://x/y",
		"json:https:x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		assert_int_equal(try_open_sink(f, specs[i]), -EINVAL);
		assert_non_null(strstr(f->logged, "a file of that name is ./"));
	}
	assert_int_equal(try_open_sink(f, "json:/x?mode=9"), -EINVAL);
	assert_int_equal(try_open_sink(f, "json?mode=600"), -EINVAL);
	assert_int_equal(try_open_sink(f, "json:unix:/x?mode=600"), -EINVAL);
}

/* ---- Sockets ------------------------------------------------------------------- */

/* Read the lines that are available, @most at most; @lines gets their numbers. */
static uint64_t read_lines(int peer, size_t most, bool *lines, uint64_t n)
{
	char *text = calloc(1, most + 1), *at = text, *end;
	size_t used = 0;
	ssize_t got;
	uint64_t whole = 0;

	while (used < most &&
	       (got = recv(peer, text + used, most - used, MSG_DONTWAIT)) > 0)
		used += (size_t)got;
	for (; (end = strchr(at, '\n')); at = end + 1) {
		unsigned long long number;

		assert_int_equal(
			sscanf(at, "{\"TimeFlowStartMs\":%llu", &number), 1);
		assert_true(number < n);
		lines[number] = true;
		whole++;
	}
	free(text);
	return whole;
}

LINES_TEST(reader_that_hangs_up_at_once_gets_few_chances)
{
	int listener = listen_at(f->path), connections = 0;

	open_sink(f, "json:unix:%s");
	for (uint64_t n = 0; n < 250; n++) {
		int peer;

		write_flows(f, n, n + 1);
		flush_all(f);
		peer = accept(listener, NULL, NULL);
		connections += peer >= 0;
		if (peer >= 0)
			close(peer);
		dispatch_for(f, 10);
	}
	assert_in_range(connections, 1, 4);
	assert_sink_identity(f);
	close(listener);
}

LINES_TEST(absent_reader_is_looked_for_each_second)
{
	int listener, peer;
	static bool lines[2000];

	open_sink(f, "json:unix:%s");
	for (uint64_t n = 0; n < 1000; n++) {
		write_flows(f, n, n + 1);
		netobs_sink_flush(f->sink);
	}
	assert_int_equal(count(f->logged, "\n"), 1);
	listener = listen_at(f->path);
	assert_int_equal(accept(listener, NULL, NULL), -1); /* not yet */
	dispatch_for(f, 1500);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	read_lines(peer, 8 << 20, lines, 1000);
	dispatch_for(f, 200);
	assert_int_equal(count(f->logged, "can be written to again"), 1);
	assert_int_equal(count(f->logged, "\n"), 2);
	close(peer);
	close(listener);
}

/* Each reader takes a part and closes; the next one begins with a whole line. */
LINES_TEST(readers_that_leave_something_get_whole_lines)
{
	enum { RECORDS = 3000, PART = 100 << 10 };
	static bool lines[RECORDS];
	int listener = listen_at(f->path);
	uint64_t taken = 0;

	memset(lines, 0, sizeof(lines));
	open_sink(f, "json:unix:%s");
	write_flows(f, 0, RECORDS);
	for (int i = 0; i < 30 && sink_stats_of(f).pending.records; i++) {
		int peer;

		dispatch_for(f, 50);
		peer = accept(listener, NULL, NULL);
		if (peer < 0) {
			dispatch_for(f, 1000);
			continue;
		}
		taken += read_lines(peer, PART, lines, RECORDS);
		close(peer);
		dispatch_for(f, 20);
	}
	assert_true(taken > 0);
	assert_int_equal(sink_stats_of(f).pending.records, 0);
	assert_true(lines[0]);
	assert_sink_identity(f);
	close(listener);
}

/* ---- Named pipes ------------------------------------------------------------------ */

LINES_TEST(pipe_without_reader_takes_nothing)
{
	assert_int_equal(mkfifo(f->path, 0600), 0);
	open_sink(f, "json:%s");
	write_flows(f, 0, 50);
	assert_int_equal(netobs_sink_wait(f->sink, 200), -ETIMEDOUT);
	assert_int_equal(sink_stats_of(f).delivered.records, 0);
	assert_int_equal(count(f->logged, "\n"), 1);
}

static uint64_t read_pipe(int fd, size_t most, uint64_t from)
{
	char *text = calloc(1, most + 1);
	char *last;
	uint64_t n;

	assert_true(read(fd, text, most) > 0);
	last = strrchr(text, '\n');
	assert_non_null(last);
	last[1] = '\0';
	n = check_lines(text, from);
	free(text);
	return n;
}

LINES_TEST(what_is_written_to_a_pipe_is_delivered)
{
	int fd;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	open_sink(f, "json:%s");
	write_flows(f, 0, 50);
	dispatch_for(f, 100);
	assert_int_equal(sink_stats_of(f).delivered.records, 50);
	assert_int_equal(read_pipe(fd, 1 << 20, 0), 50);
	close(fd);
	dispatch_for(f, 100);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	write_flows(f, 50, 60);
	dispatch_for(f, 1500);
	assert_int_equal(read_pipe(fd, 1 << 20, 50), 60);
	assert_int_equal(sink_stats_of(f).delivered.records, 60);
	assert_sink_identity(f);
	close(fd);
}

/* A pipe has room for some lines; the next reader begins with the first that was not written. */
LINES_TEST(next_reader_of_a_pipe_gets_what_was_not_written)
{
	enum { RECORDS = 500 };
	uint64_t next;
	int fd;

	assert_int_equal(mkfifo(f->path, 0600), 0);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	open_sink(f, "json:%s");
	write_flows(f, 0, RECORDS);
	dispatch_for(f, 100);
	next = read_pipe(fd, 1 << 20, 0);
	assert_in_range(next, 1, RECORDS - 1);
	close(fd);
	dispatch_for(f, 100);
	fd = open(f->path, O_RDONLY | O_NONBLOCK);
	dispatch_for(f, 1500);
	assert_true(read_pipe(fd, 1 << 20, next) > next);
	assert_sink_identity(f);
	close(fd);
}
