// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sinks as a program uses them: JSON lines to files and sockets. */
#include "lib_clock.h"
#include "lib_lines.h"
#include "lib_test.h"
#include "lib_wait.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

LINES_TEST(file_has_each_record_on_a_line)
{
	char json[PATH_MAX];

	open_sink(f, "json:%s?spool.max_age=1h");
	write_flows(f, 0, 5000);
	flush_all(f);
	assert_lines(f->path, 0, 5000);
	write_flows(f, 5000, 5001);
	assert_int_equal(netobs_sink_wait(f->sink, 1000), 0);
	assert_lines(f->path, 0, 5001);
	assert_int_equal(sink_stats_of(f).delivered.records, 5001);
	assert_sink_identity(f);
	assert_true(netobs_sink_stats_json(f->sink, json, sizeof(json)) > 0);
	assert_non_null(strstr(json, "\"delivered\":{\"records\":5001,"));
	assert_non_null(strstr(json, f->path));
	assert_null(strstr(json, "max_age")); /* options may be secret */
	assert_string_equal(f->logged, "");
}

LINES_TEST(any_record_fits_on_a_line)
{
	static struct netobs_point points[300];
	struct netobs_flow flow = make_numbered_flow(1);
	char name[100], *text;

	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 300; i++)
		points[i] = (struct netobs_point){ .ifindex = UINT32_MAX,
						   .netns_inode = UINT32_MAX -
								  (uint32_t)i,
						   .name = name };
	flow.points = points;
	flow.n_points = 300;
	open_sink(f, "json:%s");
	assert_int_equal(netobs_sink_write(f->sink, &flow.record), 0);
	flush_all(f);
	text = read_text(f->path);
	assert_true(strlen(text) > 50000);
	assert_non_null(strchr(text, '\n'));
	free(text);
}

/* A file that may not grow stands for a disk that is full. */
LINES_TEST(full_disk_is_told_once_and_costs_nothing)
{
	open_sink(f, "json:%s");
	limit_files(10000);
	write_flows(f, 0, 1000);
	for (int i = 0; i < 3; i++)
		flush_all(f);
	assert_true(sink_stats_of(f).pending.records > 0);
	assert_sink_identity(f);
	assert_non_null(strstr(f->logged, f->path));
	assert_non_null(strstr(f->logged, "File too large"));
	assert_ptr_equal(strchr(f->logged, '\n') + 1,
			 f->logged + strlen(f->logged));
	limit_files(RLIM_INFINITY);
	assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
	assert_lines(f->path, 0, 1000);
	assert_non_null(strstr(f->logged, "again"));
}

/* ---- Sockets ------------------------------------------------------------------- */

static int accept_soon(struct lines_fixture *f, int listener)
{
	int peer;

	await_by((peer = accept(listener, NULL, NULL)) >= 0, {
		clock_skip(10);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	});
	return peer;
}

/* What comes until nothing is pending; NUL-terminated, the caller's. */
static char *receive_all(struct lines_fixture *f, int peer)
{
	char *text = calloc(1, 32 << 20);
	size_t used = 0;

	for (int idle = 0; idle < 100;) {
		ssize_t n = recv(peer, text + used, (32 << 20) - 1 - used,
				 MSG_DONTWAIT);

		if (!n)
			fail_msg("the sink has closed the connection: %s",
				 f->logged);
		if (n > 0)
			used += (size_t)n;
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
		if (n > 0 || sink_stats_of(f).pending.records)
			idle = 0;
		else
			idle++;
	}
	return text;
}

LINES_TEST(socket_that_is_away_gets_all_when_it_comes)
{
	int listener, peer;
	char *text;

	open_sink(f, "json:unix:%s");
	write_flows(f, 0, 3000);
	flush_all(f);
	assert_int_equal(sink_stats_of(f).pending.records, 3000);
	assert_true(sink_stats_of(f).pending_ms > 0);
	assert_int_equal(sink_stats_of(f).delivered_ns, 0);
	assert_int_equal(sink_stats_of(f).spool_max_bytes, 64 << 20);
	assert_non_null(strstr(f->logged, "No such file"));
	listener = listen_at(f->path);
	peer = accept_soon(f, listener);
	write_flows(f, 3000, 4000);
	text = receive_all(f, peer);
	assert_int_equal(check_lines(text, 0), 4000);
	free(text);
	assert_sink_identity(f);
	assert_int_equal(sink_stats_of(f).pending_ms, 0);
	assert_true(sink_stats_of(f).delivered_ns > 0);
	close(peer);
	close(listener);
}

static uint64_t count_lines(const char *text)
{
	uint64_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/*
 * A sink that waited would wait forever: the reader is in the same thread. What counts as delivered comes also of lines
 * that were made of records that then had to make room.
 */
LINES_TEST(slow_socket_gets_what_counts_as_delivered)
{
	int listener = listen_at(f->path), peer;
	char *text;

	open_sink(f, "json:unix:%s?spool.max_bytes=4M");
	peer = accept_soon(f, listener);
	write_flows(f, 0, 50000);
	flush_all(f);
	assert_true(sink_stats_of(f).dropped[NETOBS_SINK_SPOOL_FULL].records >
		    10000);
	assert_true(sink_stats_of(f).spool_bytes <= 4 << 20);
	assert_sink_identity(f);
	text = receive_all(f, peer);
	assert_int_equal(count_lines(text), sink_stats_of(f).delivered.records);
	assert_int_equal(sink_stats_of(f).pending.records, 0);
	assert_sink_identity(f);
	free(text);
	close(peer);
	close(listener);
}

LINES_TEST(reader_that_goes_and_comes_misses_nothing)
{
	int listener = listen_at(f->path);
	uint64_t next = 0;

	open_sink(f, "json:unix:%s");
	for (int round = 0; round < 5; round++) {
		int peer = accept_soon(f, listener);
		char *text;
		uint64_t from;

		write_flows(f, 1000 * round, 1000 * (round + 1));
		text = receive_all(f, peer);
		/* It may begin with records that were sent to the previous connection. */
		assert_int_equal(sscanf(text, "{\"TimeFlowStartMs\":%lu", &from),
				 1);
		assert_true(from <= next);
		next = check_lines(text, from);
		assert_int_equal(next, 1000 * (round + 1));
		free(text);
		close(peer);
		write_flows(f, 0, 0);
	}
	assert_sink_identity(f);
	close(listener);
}

/* ---- Spool --------------------------------------------------------------------- */

#define SPOOLED_SOCKET "json:unix:%1$s?spool=disk:%1$s.spool"

LINES_TEST(spool_on_disk_outlives_the_sink)
{
	int listener, peer;
	char *text;

	open_sink(f, SPOOLED_SOCKET);
	write_flows(f, 0, 2000);
	netobs_sink_close(f->sink);

	listener = listen_at(f->path);
	open_sink(f, SPOOLED_SOCKET);
	assert_int_equal(sink_stats_of(f).recovered.records, 2000);
	peer = accept_soon(f, listener);
	write_flows(f, 2000, 2500);
	text = receive_all(f, peer);
	assert_int_equal(check_lines(text, 0), 2500);
	free(text);
	assert_sink_identity(f);
	netobs_sink_close(f->sink);
	open_sink(f, SPOOLED_SOCKET);
	assert_int_equal(sink_stats_of(f).recovered.records, 0);
	close(peer);
	close(listener);
}

/* Also those that no sync has reached yet. */
LINES_TEST(flushed_records_survive_a_kill)
{
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		open_sink(f, SPOOLED_SOCKET);
		write_flows(f, 0, 10);
		assert_int_equal(netobs_sink_flush(f->sink), 0);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	open_sink(f, SPOOLED_SOCKET);
	assert_int_equal(sink_stats_of(f).recovered.records, 10);
}

/* What was sent before is confirmed; what comes later waits for the next sink. */
LINES_TEST(settled_sink_sends_nothing_new)
{
	static const char spec[] = "json:%1$s?spool=disk:%1$s.spool";

	open_sink(f, spec);
	write_flows(f, 0, 10);
	assert_int_equal(netobs_sink_settle(f->sink), 0);
	assert_lines(f->path, 0, 10);
	write_flows(f, 10, 1000);
	flush_all(f);
	assert_int_equal(netobs_sink_settle(f->sink), 0);
	assert_lines(f->path, 0, 10);
	assert_int_equal(sink_stats_of(f).pending.records, 990);
	netobs_sink_close(f->sink);
	open_sink(f, spec);
	assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
	assert_lines(f->path, 0, 1000);
	assert_sink_identity(f);
}

/* A peer that reads nothing confirms nothing. */
LINES_TEST(sink_is_not_settled_before_confirmations)
{
	int listener = listen_at(f->path), peer;
	char *text;

	open_sink(f, SPOOLED_SOCKET);
	peer = accept_soon(f, listener);
	write_flows(f, 0, 20000);
	/* A call may run out of time before the socket's buffer is full. */
	flush_all(f);
	assert_int_equal(netobs_sink_settle(f->sink), -EAGAIN);
	assert_int_equal(netobs_sink_settle(f->sink), -EAGAIN);
	write_flows(f, 20000, 20001);
	/* Waiting sends again. */
	assert_int_equal(netobs_sink_wait(f->sink, 0), -ETIMEDOUT);
	text = receive_all(f, peer);
	assert_int_equal(check_lines(text, 0), 20001);
	assert_int_equal(netobs_sink_settle(NULL), -EINVAL);
	free(text);
	close(peer);
	close(listener);
}

static int count_one_packet(struct netobs_stats *ret_stats, void *user)
{
	(void)user;
	ret_stats->seen.packets = 1;
	return 0;
}

LINES_TEST(last_totals_are_kept)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .get_stats = count_one_packet);
	char spec[3 * PATH_MAX];

	snprintf(spec, sizeof(spec),
		 "json:unix:%s?spool=disk:%s/spool&records=flow,stats", f->path,
		 f->dir);
	assert_int_equal(netobs_sink_open(spec, &opts, &f->sink), 0);
	write_flows(f, 0, 10);
	assert_int_equal(netobs_sink_wait(f->sink, 0), -ETIMEDOUT);
	assert_int_equal(sink_stats_of(f).pending.records, 11);
	netobs_sink_close(f->sink);
	assert_int_equal(netobs_sink_open(spec, &opts, &f->sink), 0);
	assert_int_equal(sink_stats_of(f).pending.records, 11);
}

LINES_TEST(records_become_durable_in_time)
{
	struct pollfd fd = { .events = POLLIN };

	open_sink(f, SPOOLED_SOCKET);
	write_flows(f, 0, 100);
	assert_int_equal(sink_stats_of(f).durable_records, 0);
	fd.fd = netobs_sink_fd(f->sink);
	await_by(sink_stats_of(f).durable_records >= 100, {
		poll(&fd, 1, 100);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	});
	assert_int_equal(sink_stats_of(f).durable_records, 100);
}

LINES_TEST(null_delivers_all_to_nobody)
{
	assert_int_equal(try_open_sink(f, "null"), 0);
	write_flows(f, 0, 1000);
	flush_all(f);
	assert_int_equal(sink_stats_of(f).delivered.records, 1000);
	assert_sink_identity(f);
}

/* ---- Wrong specs ----------------------------------------------------------------- */

LINES_TEST(wrong_specs_are_refused)
{
	static const struct refused_spec cases[] = {
		{ "", -EINVAL, "kind of sink" },
		{ "fish", -EINVAL,
		  "fish: there is no such kind of sink; there are json, " },
		{ "../json", -EINVAL, "there is no such kind" },
		{ "null:x", -EINVAL, "null: it takes no target: 'x'" },
		{ "json?mtu=200", -EINVAL, "json: unknown option 'mtu'" },
		{ "json?spool=x", -EINVAL, "option spool: 'x' is not memory or" },
		{ "json?spool=disk:", -EINVAL, "option spool" },
		{ "json?spool.max_bytes=1", -EINVAL, "'1' is not from 1M to" },
		{ "json?spool.max_age=1ms", -EINVAL, "'1ms' is not from 1s to" },
		{ "json:/nosuchdir/x", -ENOENT,
		  "cannot write to /nosuchdir/x: No such file" },
		{ "json:/", -EISDIR, "Is a directory" },
		{ "json:unix:", -ENOENT, "cannot write to unix:: No such file" },
		{ "json:/dev/null?spool=disk:/nosuchdir/x", -ENOENT,
		  "cannot use /nosuchdir/x as a spool: No such file" },
	};

	assert_refused(f, cases, ARRAY_SIZE(cases));
	assert_int_equal(netobs_sink_open(NULL, NULL, &f->sink), -EINVAL);
	assert_int_equal(netobs_sink_open("json", NULL, NULL), -EINVAL);
}

LINES_TEST(checks_open_nothing)
{
	static const char *const right[] = {
		"null", "json", "json:/nosuchdir/x?rotate.bytes=1M",
		"json:unix:/nosuchdir/x?spool=disk:/nosuchdir/y"
	};
	char error[NETOBS_ERROR_MAX], spec[PATH_MAX + 16];
	NETOBS_OPTS(netobs_sink_opts, opts, .error = &error);

	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		assert_int_equal(netobs_sink_check(right[i], &opts), 0);
	snprintf(spec, sizeof(spec), "json:%s-new", f->path);
	assert_int_equal(netobs_sink_check(spec, NULL), 0);
	assert_int_equal(access(spec + strlen("json:"), F_OK), -1);

	assert_int_equal(netobs_sink_check("json:/x?rotate.bites=1M", &opts),
			 -EINVAL);
	assert_string_equal(error, "json: unknown option 'rotate.bites'; "
				   "did you mean 'rotate.bytes'?");
	assert_int_equal(netobs_sink_check("json:/x?rotate.bytes=1", &opts),
			 -EINVAL);
	assert_int_equal(netobs_sink_check("json?spool=x", &opts), -EINVAL);
	assert_int_equal(netobs_sink_check("fish", &opts), -EINVAL);
	assert_int_equal(netobs_sink_check(NULL, &opts), -EINVAL);
}

TEST(absent_sinks_are_refused)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	char json[64];

	assert_int_equal(netobs_sink_write(NULL, NULL), -EINVAL);
	assert_int_equal(netobs_sink_flush(NULL), -EINVAL);
	assert_int_equal(netobs_sink_dispatch(NULL), -EINVAL);
	assert_int_equal(netobs_sink_wait(NULL, 0), -EINVAL);
	assert_int_equal(netobs_sink_stats_get(NULL, &stats), -EINVAL);
	assert_int_equal(netobs_sink_stats_json(NULL, json, sizeof(json)),
			 -EINVAL);
	netobs_sink_close(NULL);
}
