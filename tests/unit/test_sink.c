// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sinks as a program uses them: JSON lines to files and sockets. */
#include "lib_test.h"

#include <netobs/sink.h>

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct fixture {
	char dir[PATH_MAX / 2];
	char path[PATH_MAX];
	char spec[2 * PATH_MAX];
	char logged[4096]; /* all lines */
	struct netobs_sink *sink;
};

static void keep_lines(int level, const char *message, void *user)
{
	struct fixture *f = user;
	size_t used = strlen(f->logged);

	(void)level;
	snprintf(f->logged + used, sizeof(f->logged) - used, "%s\n", message);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/netobs-sink.XXXXXX",
		 getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/out", f->dir);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[PATH_MAX];

	netobs_sink_close(f->sink);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static int try_open(struct fixture *f, const char *spec)
{
	const struct netobs_sink_opts opts = { .sz = sizeof(opts),
					       .on_log = keep_lines,
					       .user = f };

	f->logged[0] = '\0';
	return netobs_sink_open(spec, &opts, &f->sink);
}

/* @format: with one %s, for the path. */
__attribute__((format(printf, 2, 0))) static void open_sink(struct fixture *f,
							    const char *format)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(f->spec, sizeof(f->spec), format, f->path);
#pragma GCC diagnostic pop
	assert_int_equal(try_open(f, f->spec), 0);
}

/* ---- Records ------------------------------------------------------------------- */

static const struct netobs_point point = { .ifindex = 7, .name = "eth0" };

static struct netobs_flow make_flow(uint64_t n)
{
	return (struct netobs_flow){
		.sz = sizeof(struct netobs_flow),
		.has = NETOBS_HAS_PORTS,
		.start_ns = (int64_t)n * NSEC_PER_MSEC,
		.packets = n % 10 + 1,
		.bytes = n,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst = { [10] = 0xff,
			 0xff,
			 10,
			 (uint8_t)(n >> 16),
			 (uint8_t)(n >> 8),
			 (uint8_t)n },
		.ethertype = 0x0800,
		.proto = 17,
		.n_points = 1,
		.points = &point,
	};
}

static void write_all(struct fixture *f, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		struct netobs_flow flow = make_flow(n);

		assert_int_equal(netobs_sink_write(f->sink, &flow), 0);
	}
}

static struct netobs_sink_stats stats_of(const struct fixture *f)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(netobs_sink_stats_get(f->sink, &stats), 0);
	return stats;
}

static void add(struct netobs_sink_count *sum,
		const struct netobs_sink_count *part)
{
	sum->records += part->records;
	sum->packets += part->packets;
	sum->bytes += part->bytes;
}

static void assert_identity(const struct fixture *f)
{
	struct netobs_sink_stats stats = stats_of(f);
	struct netobs_sink_count in = stats.taken, out = stats.delivered;

	add(&in, &stats.recovered);
	add(&out, &stats.pending);
	for (int i = 0; i < NETOBS_SINK_DROPS; i++)
		add(&out, &stats.dropped[i]);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* ---- What comes out ------------------------------------------------------------ */

/* Lines are those of consecutive records; the number behind the last. */
static uint64_t check_lines(const char *text, uint64_t n)
{
	char expected[NETOBS_FLOW_JSON_MAX];

	while (*text) {
		struct netobs_flow flow = make_flow(n);
		int len = netobs_flow_json(&flow, expected, sizeof(expected));

		assert_true(len > 0);
		if (strncmp(text, expected, (size_t)len) || text[len] != '\n')
			fail_msg("record %llu: %.500s", (unsigned long long)n,
				 text);
		text += len + 1;
		n++;
	}
	return n;
}

static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat info;
	char *text;

	assert_true(fd >= 0 && !fstat(fd, &info));
	text = calloc(1, (size_t)info.st_size + 1);
	assert_int_equal(read(fd, text, (size_t)info.st_size), info.st_size);
	close(fd);
	return text;
}

static void assert_file_has(const struct fixture *f, uint64_t from, uint64_t to)
{
	char *text = read_file(f->path);

	assert_int_equal(check_lines(text, from), to);
	free(text);
}

static void file_has_each_record_on_a_line(void **state)
{
	struct fixture *f = *state;
	char json[PATH_MAX];

	open_sink(f, "json:%s?spool.max_age=1h");
	write_all(f, 0, 5000);
	assert_int_equal(netobs_sink_flush(f->sink), 0);
	assert_file_has(f, 0, 5000);
	write_all(f, 5000, 5001);
	assert_int_equal(netobs_sink_drain(f->sink, 1000), 0);
	assert_file_has(f, 0, 5001);
	assert_int_equal(stats_of(f).delivered.records, 5001);
	assert_identity(f);
	assert_true(netobs_sink_stats_json(f->sink, json, sizeof(json)) > 0);
	assert_non_null(strstr(json, "\"delivered\":{\"records\":5001,"));
	assert_non_null(strstr(json, f->path));
	assert_null(strstr(json, "max_age")); /* options may be secret */
	assert_string_equal(f->logged, "");
}

static void any_record_fits_on_a_line(void **state)
{
	static struct netobs_point points[300];
	struct fixture *f = *state;
	struct netobs_flow flow = make_flow(1);
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
	assert_int_equal(netobs_sink_write(f->sink, &flow), 0);
	assert_int_equal(netobs_sink_flush(f->sink), 0);
	text = read_file(f->path);
	assert_true(strlen(text) > 50000);
	assert_non_null(strchr(text, '\n'));
	free(text);
}

/* A file that may not grow stands for a disk that is full. */
static void full_disk_is_told_once_and_costs_nothing(void **state)
{
	const struct rlimit full = { 10000, RLIM_INFINITY },
			    roomy = { RLIM_INFINITY, RLIM_INFINITY };
	struct fixture *f = *state;

	signal(SIGXFSZ, SIG_IGN);
	open_sink(f, "json:%s");
	setrlimit(RLIMIT_FSIZE, &full);
	write_all(f, 0, 1000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(netobs_sink_flush(f->sink), 0);
	assert_true(stats_of(f).pending.records > 0);
	assert_identity(f);
	assert_non_null(strstr(f->logged, f->path));
	assert_non_null(strstr(f->logged, "File too large"));
	assert_ptr_equal(strchr(f->logged, '\n') + 1,
			 f->logged + strlen(f->logged));
	setrlimit(RLIMIT_FSIZE, &roomy);
	assert_int_equal(netobs_sink_drain(f->sink, 10000), 0);
	assert_file_has(f, 0, 1000);
	assert_non_null(strstr(f->logged, "again"));
}

/* ---- Sockets ------------------------------------------------------------------- */

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)),
			 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static int accept_soon(struct fixture *f, int listener)
{
	for (int i = 0; i < 1000; i++) {
		struct pollfd fd = { .fd = netobs_sink_fd(f->sink),
				     .events = POLLIN };
		int peer = accept(listener, NULL, NULL);

		if (peer >= 0)
			return peer;
		poll(&fd, 1, 10);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	}
	fail_msg("nobody connected");
	return -1;
}

/* What comes until nothing is pending; NUL-terminated, the caller's. */
static char *receive_all(struct fixture *f, int peer)
{
	char *text = calloc(1, 32 << 20);
	size_t used = 0;

	for (int idle = 0; idle < 100;) {
		ssize_t n = recv(peer, text + used, (32 << 20) - 1 - used,
				 MSG_DONTWAIT);

		if (n > 0)
			used += (size_t)n;
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
		if (n > 0 || stats_of(f).pending.records)
			idle = 0;
		else
			idle++;
	}
	return text;
}

static void socket_that_is_away_gets_all_when_it_comes(void **state)
{
	struct fixture *f = *state;
	int listener, peer;
	char *text;

	open_sink(f, "json:unix:%s");
	write_all(f, 0, 3000);
	assert_int_equal(netobs_sink_flush(f->sink), 0);
	assert_int_equal(stats_of(f).pending.records, 3000);
	assert_non_null(strstr(f->logged, "No such file"));
	listener = listen_at(f->path);
	peer = accept_soon(f, listener);
	write_all(f, 3000, 4000);
	text = receive_all(f, peer);
	assert_int_equal(check_lines(text, 0), 4000);
	free(text);
	assert_identity(f);
	close(peer);
	close(listener);
}

/* If it waited, nobody would be left to read: this is one thread. */
static void socket_that_does_not_read_stops_nobody(void **state)
{
	struct fixture *f = *state;
	struct netobs_sink_stats stats;
	int listener = listen_at(f->path), peer;

	open_sink(f, "json:unix:%s?spool.max_bytes=4M");
	peer = accept_soon(f, listener);
	write_all(f, 0, 50000);
	assert_int_equal(netobs_sink_flush(f->sink), 0);
	stats = stats_of(f);
	assert_true(stats.dropped[NETOBS_SINK_SPOOL_FULL].records > 10000);
	assert_true(stats.spool_bytes <= 4 << 20);
	assert_identity(f);
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

/* Also of lines that were made of records that then had to make room. */
static void slow_socket_gets_what_counts_as_delivered(void **state)
{
	struct fixture *f = *state;
	int listener = listen_at(f->path), peer;
	char *text;

	open_sink(f, "json:unix:%s?spool.max_bytes=4M");
	peer = accept_soon(f, listener);
	write_all(f, 0, 50000);
	assert_true(stats_of(f).dropped[NETOBS_SINK_SPOOL_FULL].records > 10000);
	text = receive_all(f, peer);
	assert_int_equal(count_lines(text), stats_of(f).delivered.records);
	assert_int_equal(stats_of(f).pending.records, 0);
	assert_identity(f);
	free(text);
	close(peer);
	close(listener);
}

static void reader_that_goes_and_comes_misses_nothing(void **state)
{
	struct fixture *f = *state;
	int listener = listen_at(f->path);
	uint64_t next = 0;

	open_sink(f, "json:unix:%s");
	for (int round = 0; round < 5; round++) {
		int peer = accept_soon(f, listener);
		char *text;
		uint64_t from;

		write_all(f, 1000 * round, 1000 * (round + 1));
		text = receive_all(f, peer);
		/* It may begin with what was sent to the one before. */
		assert_int_equal(sscanf(text, "{\"TimeFlowStartMs\":%lu", &from),
				 1);
		assert_true(from <= next);
		next = check_lines(text, from);
		assert_int_equal(next, 1000 * (round + 1));
		free(text);
		close(peer);
		write_all(f, 0, 0);
	}
	assert_identity(f);
	close(listener);
}

/* ---- Spool --------------------------------------------------------------------- */

static void spool_on_disk_outlives_the_sink(void **state)
{
	struct fixture *f = *state;
	char spec[3 * PATH_MAX];
	int listener, peer;
	char *text;

	snprintf(spec, sizeof(spec), "json:unix:%s?spool=disk:%s/spool",
		 f->path, f->dir);
	assert_int_equal(try_open(f, spec), 0);
	write_all(f, 0, 2000);
	netobs_sink_close(f->sink);

	listener = listen_at(f->path);
	assert_int_equal(try_open(f, spec), 0);
	assert_int_equal(stats_of(f).recovered.records, 2000);
	peer = accept_soon(f, listener);
	write_all(f, 2000, 2500);
	text = receive_all(f, peer);
	assert_int_equal(check_lines(text, 0), 2500);
	free(text);
	assert_identity(f);
	netobs_sink_close(f->sink);
	assert_int_equal(try_open(f, spec), 0);
	assert_int_equal(stats_of(f).recovered.records, 0);
	close(peer);
	close(listener);
}

static void records_become_durable_in_time(void **state)
{
	struct fixture *f = *state;
	char spec[3 * PATH_MAX];

	snprintf(spec, sizeof(spec), "json:unix:%s?spool=disk:%s/spool",
		 f->path, f->dir);
	assert_int_equal(try_open(f, spec), 0);
	write_all(f, 0, 100);
	assert_int_equal(stats_of(f).durable_records, 0);
	for (int i = 0; i < 1000 && stats_of(f).durable_records < 100; i++) {
		struct pollfd fd = { .fd = netobs_sink_fd(f->sink),
				     .events = POLLIN };

		poll(&fd, 1, 100);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	}
	assert_int_equal(stats_of(f).durable_records, 100);
}

static void null_delivers_all_to_nobody(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(try_open(f, "null"), 0);
	write_all(f, 0, 1000);
	assert_int_equal(netobs_sink_flush(f->sink), 0);
	assert_int_equal(stats_of(f).delivered.records, 1000);
	assert_identity(f);
}

/* ---- Wrong specs ----------------------------------------------------------------- */

static void wrong_specs_are_refused(void **state)
{
	static const struct {
		const char *spec;
		int err;
		const char *words;
	} cases[] = {
		{ "", -EINVAL, "kind of sink" },
		{ "fish", -EINVAL,
		  "fish: there is no such kind of sink; there are json, " },
		{ "../json", -EINVAL, "there is no such kind" },
		{ "null:x", -EINVAL, "null: it goes nowhere: 'x'" },
		{ "json?mtu=200", -EINVAL, "json: unknown option 'mtu'" },
		{ "json?spool=x", -EINVAL, "option spool: 'x' is not memory or" },
		{ "json?spool=disk:", -EINVAL, "option spool" },
		{ "json?spool.max_bytes=1", -EINVAL, "'1' is not from 1M to" },
		{ "json?spool.max_age=1ms", -EINVAL, "'1ms' is not from 1s to" },
		{ "json?spool.full=x", -EINVAL, "drop_oldest|drop_newest" },
		{ "json:/nosuchdir/x", -ENOENT,
		  "cannot write to /nosuchdir/x: No such file" },
		{ "json:/", -EISDIR, "Is a directory" },
		{ "json:unix:", -ENOENT, "cannot write to unix:: No such file" },
		{ "json:/dev/null?spool=disk:/nosuchdir/x", -ENOENT,
		  "cannot use /nosuchdir/x as a spool: No such file" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(try_open(f, cases[i].spec), cases[i].err);
		assert_null(f->sink);
		if (!strstr(f->logged, cases[i].words))
			fail_msg("%s: %s", cases[i].spec, f->logged);
	}
	assert_int_equal(netobs_sink_open(NULL, NULL, &f->sink), -EINVAL);
	assert_int_equal(netobs_sink_open("json", NULL, NULL), -EINVAL);
}

static void absent_sinks_are_refused(void **state)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	char json[64];

	(void)state;
	assert_int_equal(netobs_sink_write(NULL, NULL), -EINVAL);
	assert_int_equal(netobs_sink_flush(NULL), -EINVAL);
	assert_int_equal(netobs_sink_dispatch(NULL), -EINVAL);
	assert_int_equal(netobs_sink_drain(NULL, 0), -EINVAL);
	assert_int_equal(netobs_sink_stats_get(NULL, &stats), -EINVAL);
	assert_int_equal(netobs_sink_stats_json(NULL, json, sizeof(json)),
			 -EINVAL);
	netobs_sink_close(NULL);
}

static void drops_have_names(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < NETOBS_SINK_DROPS; i++)
		assert_non_null(netobs_sink_drop_name(i));
	assert_null(netobs_sink_drop_name(NETOBS_SINK_DROPS));
}

#define sink_test(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sink_test(file_has_each_record_on_a_line),
		sink_test(any_record_fits_on_a_line),
		sink_test(full_disk_is_told_once_and_costs_nothing),
		sink_test(socket_that_is_away_gets_all_when_it_comes),
		sink_test(socket_that_does_not_read_stops_nobody),
		sink_test(slow_socket_gets_what_counts_as_delivered),
		sink_test(reader_that_goes_and_comes_misses_nothing),
		sink_test(spool_on_disk_outlives_the_sink),
		sink_test(records_become_durable_in_time),
		sink_test(null_delivers_all_to_nobody),
		sink_test(wrong_specs_are_refused),
		cmocka_unit_test(absent_sinks_are_refused),
		cmocka_unit_test(drops_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
