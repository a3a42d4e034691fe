// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* JSON lines in files that are rotated. */
#include "lib_lines.h"
#include "lib_test.h"
#include "lib_wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

#define FINAL "out-[0-9]*T[0-9]*Z*"

enum { RECORDS = 20000, SIZE = 1 << 20 };

static const struct {
	const char *options, *suffix, *unpack;
} kinds[] = {
	{ "rotate.bytes=1M", "", "cat" },
	{ "rotate.bytes=1M&compress=gzip", ".gz", "gzip -dc" },
	{ "rotate.bytes=1M&compress=zstd", ".zst", "zstd -dcq" },
};

/* ---- Files --------------------------------------------------------------------- */

static const char *listed_dir, *pattern;

static int is_listed(const struct dirent *entry)
{
	struct stat info;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", listed_dir, entry->d_name);
	return !fnmatch(pattern, entry->d_name, 0) && !stat(path, &info) &&
	       S_ISREG(info.st_mode);
}

/* How many files are named so; the path of the last. */
static int count(const char *dir, const char *names, char *ret_last)
{
	struct dirent **entries;
	int n;

	listed_dir = dir;
	pattern = names;
	n = scandir(dir, &entries, is_listed, alphasort);
	assert_true(n >= 0);
	if (n && ret_last)
		snprintf(ret_last, PATH_MAX, "%s/%s", dir,
			 entries[n - 1]->d_name);
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return n;
}

static off_t size_of(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return info.st_size;
}

/* All that is in files with a final name, one after the other, as text. */
static char *read_all(const struct lines_fixture *f, const char *suffix,
		      const char *unpack)
{
	char command[2 * PATH_MAX], path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/all", f->dir);
	snprintf(command, sizeof(command),
		 "cd '%s' && for f in out-*Z*%s; do %s \"$f\" || exit; done >all",
		 f->dir, suffix, unpack);
	assert_int_equal(system(command), 0);
	return read_text(path);
}

static void remove_all(const struct lines_fixture *f)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s'/*", f->dir);
	assert_int_equal(system(command), 0);
}

static void write_text(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

static void open_rotated(struct lines_fixture *f, const char *options)
{
	snprintf(f->spec, sizeof(f->spec), "json:%s?%s", f->path, options);
	if (try_open_sink(f, f->spec))
		fail_msg("%s: %s", f->spec, f->logged);
}

/* Go on with it until there are so many files of a final name. */
static void wait_for_files(struct lines_fixture *f, int n)
{
	struct pollfd fd = { .fd = netobs_sink_fd(f->sink), .events = POLLIN };

	await_by(count(f->dir, "out-*Z", NULL) >= n, {
		poll(&fd, 1, 10);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	});
	assert_int_equal(count(f->dir, "out-*Z", NULL), n);
}

/* ---- Turning ------------------------------------------------------------------- */

LINES_TEST(files_turn_by_size)
{
	char *text, last[PATH_MAX], json[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int files;

		open_rotated(f, kinds[i].options);
		write_flows(f, 0, RECORDS);
		assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
		assert_int_equal(sink_stats_of(f).delivered.records, RECORDS);
		assert_int_equal(count(f->dir, "out.part", NULL), 1);
		assert_true(netobs_sink_stats_json(f->sink, json, sizeof(json)) >
			    0);
		assert_non_null(strstr(json, "\"counters\":{\"files\":"));
		close_sink(f);
		assert_string_equal(f->logged, "");

		text = read_all(f, kinds[i].suffix, kinds[i].unpack);
		assert_int_equal(check_lines(text, 0), RECORDS);
		files = count(f->dir, FINAL, last);
		print_message("%s: %zu bytes of lines in %d files\n",
			      kinds[i].options, strlen(text), files);
		if (!*kinds[i].suffix)
			assert_true(files >= (int)(strlen(text) / SIZE) + 1);
		assert_true(size_of(last) > 0 && size_of(last) <= SIZE);
		assert_int_equal(count(f->dir, "*.part", NULL), 0);
		free(text);
		remove_all(f);
	}
}

LINES_TEST(files_turn_by_time_without_traffic)
{
	char last[PATH_MAX];

	open_rotated(f, "rotate.interval=1s");
	write_flows(f, 0, 10);
	flush_all(f);
	wait_for_files(f, 1);
	assert_int_equal(count(f->dir, FINAL, last), 1);
	assert_lines(last, 0, 10);

	/* An empty file is not rotated. */
	for (int i = 0; i < 15; i++) {
		usleep(100000);
		assert_int_equal(netobs_sink_dispatch(f->sink), 0);
	}
	close_sink(f);
	assert_int_equal(count(f->dir, "*", NULL), 1);
}

static uint64_t bytes_in(const char *dir)
{
	struct dirent **entries;
	char path[PATH_MAX];
	uint64_t sum = 0;
	int n;

	listed_dir = dir;
	pattern = "out*";
	n = scandir(dir, &entries, is_listed, alphasort);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		sum += (uint64_t)size_of(path);
		free(entries[i]);
	}
	free(entries);
	return sum;
}

LINES_TEST(files_do_not_take_more_bytes)
{
	enum { KEPT = 2, STEP = 1000 };

	open_rotated(f, "rotate.bytes=1M&rotate.keep=2");
	for (uint64_t n = 0; n < 2 * RECORDS; n += STEP) {
		write_flows(f, n, n + STEP);
		flush_all(f);
		assert_true(bytes_in(f->dir) <= (KEPT + 1) * SIZE);
	}
	assert_true(bytes_in(f->dir) > SIZE);
	assert_int_equal(sink_stats_of(f).delivered.records, 2 * RECORDS);
	close_sink(f);
	assert_true(bytes_in(f->dir) <= KEPT * SIZE);
	assert_string_equal(f->logged, "");
}

/* Only names that the sink makes itself. */
LINES_TEST(other_files_are_not_removed)
{
	static const char *const others[] = {
		"out",
		"out-",
		"out-20201121",
		"out-20201121T164500",
		"out-20201121T16450Z",
		"out-2020112xT164500Z",
		"out-20201121t164500z",
		"out-20201121T164500Z.json",
		"out-20201121T164500Z.bak",
		"out-20201121T164500Z.gz.gz",
		"out-20201121T164500Z.part",
		"out-20201121T164500Z_",
		"out-20201121T164500Z_a",
		"out-20201121T164500Z_001_002",
		"out-+0261121T164500Z",
		"xout-20201121T164500Z",
		"out-x-20201121T164500Z",
	};
	static const char *const own[] = {
		"out-20201121T164500Z",
		"out-20201121T164500Z_001",
		"out-20201121T164501Z.gz",
		"out-20201121T164501Z_001.zst",
	};
	char path[PATH_MAX + 64];

	for (size_t i = 0; i < ARRAY_SIZE(others) + ARRAY_SIZE(own); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir,
			 i < ARRAY_SIZE(others) ? others[i] :
						  own[i - ARRAY_SIZE(others)]);
		write_text(path, "mine", 4);
	}
	open_rotated(f, "rotate.bytes=1M&rotate.keep=1");
	write_flows(f, 0, 10);
	flush_all(f);
	close_sink(f);
	assert_int_equal(count(f->dir, "*", NULL), ARRAY_SIZE(others) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, others[i]);
		assert_int_equal(access(path, F_OK), 0);
	}
}

LINES_TEST(files_that_are_there_are_left_alone)
{
	time_t now = time(NULL);
	char path[PATH_MAX + 64], stamp[32], last[PATH_MAX];
	enum { THERE = 60 };

	for (int i = 0; i < THERE; i++) {
		time_t then = now + i;

		strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime(&then));
		snprintf(path, sizeof(path), "%s-%s", f->path, stamp);
		write_text(path, "mine", 4);
	}
	for (int i = 0; i < 2; i++) {
		open_rotated(f, "rotate.interval=1d");
		write_flows(f, 0, 10);
		flush_all(f);
		close_sink(f);
	}
	assert_int_equal(count(f->dir, FINAL, NULL), THERE + 2);
	assert_true(count(f->dir, "out-*Z_001", last) >= 1);
	assert_true(size_of(last) > 4);
	assert_int_equal(size_of(path), 4);
}

/* ---- Crashes ------------------------------------------------------------------- */

/* What is left of a file that ended at any place has whole lines. */
LINES_TEST(torn_files_are_cut)
{
	char last[PATH_MAX], part[PATH_MAX + 8];

	snprintf(part, sizeof(part), "%s.part", f->path);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char *text, *whole;
		size_t size;
		uint64_t before = 0;

		open_rotated(f, kinds[i].options);
		write_flows(f, 0, 400);
		flush_all(f);
		size = (size_t)size_of(part);
		whole = calloc(1, size);
		assert_int_equal(pread(open(part, O_RDONLY), whole, size, 0),
				 (ssize_t)size);
		close_sink(f);

		for (int cut = 0; cut <= 20; cut++) {
			uint64_t n;

			remove_all(f);
			write_text(part, whole, size * (size_t)cut / 20);
			open_rotated(f, kinds[i].options);
			close_sink(f);
			assert_int_equal(count(f->dir, "*.part", NULL), 0);
			if (!count(f->dir, FINAL, last)) {
				assert_int_equal(before, 0);
				continue;
			}
			text = read_all(f, kinds[i].suffix, kinds[i].unpack);
			n = check_lines(text, 0);
			assert_true(n >= before);
			before = n;
			free(text);
		}
		assert_int_equal(before, 400);
		free(whole);
	}
}

LINES_TEST(file_is_one_processs_own)
{
	struct netobs_sink *first;

	open_rotated(f, "rotate.bytes=1M");
	first = TAKE_PTR(f->sink);
	assert_int_equal(try_open_sink(f, f->spec), -EBUSY);
	assert_non_null(strstr(f->logged, "another process"));
	netobs_sink_close(first);
}

/* ---- Faults -------------------------------------------------------------------- */

static void assert_told_once(const struct lines_fixture *f, const char *words)
{
	if (!strstr(f->logged, words) ||
	    strchr(f->logged, '\n') + 1 != f->logged + strlen(f->logged))
		fail_msg("%s", f->logged);
}

/* A file that may not grow stands for a disk that is full. */
LINES_TEST(full_disk_costs_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char *text;

		remove_all(f);
		open_rotated(f, kinds[i].options);
		limit_files(10000);
		write_flows(f, 0, 3000);
		for (int j = 0; j < 3; j++)
			flush_all(f);
		assert_true(sink_stats_of(f).pending.records > 0);
		assert_told_once(f, "File too large");
		limit_files(RLIM_INFINITY);
		assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
		assert_non_null(strstr(f->logged, "again"));
		close_sink(f);
		text = read_all(f, kinds[i].suffix, kinds[i].unpack);
		assert_int_equal(check_lines(text, 0), 3000);
		free(text);
	}
}

LINES_TEST(directory_may_go_and_come)
{
	char dir[PATH_MAX + 8], last[PATH_MAX + 8];

	snprintf(dir, sizeof(dir), "%s/there", f->dir);
	snprintf(f->path, sizeof(f->path), "%s/there/out", f->dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	open_rotated(f, "rotate.bytes=1M");
	write_flows(f, 0, 100);
	flush_all(f);
	remove_all(f);

	usleep(1100000); /* it looks once a second */
	write_flows(f, 100, 3000);
	for (int i = 0; i < 3; i++)
		flush_all(f);
	assert_int_equal(sink_stats_of(f).pending.records, 2900);
	assert_told_once(f, "No such file");
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
	close_sink(f);
	assert_int_equal(count(dir, FINAL, last), 1);
	assert_lines(last, 100, 3000);
}

/* And it is tried again. */
LINES_TEST(file_that_cannot_be_removed_is_told_once)
{
	char path[PATH_MAX + 32], *text;
	uint64_t first;

	snprintf(path, sizeof(path), "%s-20200101T000000Z", f->path);
	assert_int_equal(mkdir(path, 0700), 0);
	open_rotated(f, "rotate.bytes=1M&rotate.keep=2");
	write_flows(f, 0, RECORDS);
	assert_int_equal(netobs_sink_wait(f->sink, WAIT_MS), 0);
	assert_int_equal(sink_stats_of(f).delivered.records, RECORDS);
	assert_told_once(f, "Is a directory");
	assert_int_equal(rmdir(path), 0);
	close_sink(f);
	assert_int_equal(count(f->dir, FINAL, NULL), 2);
	text = read_all(f, "", "cat");
	assert_int_equal(sscanf(text, "{\"TimeFlowStartMs\":%lu", &first), 1);
	assert_int_equal(check_lines(text, first), RECORDS);
	free(text);
}

/* ---- Wrong specs ----------------------------------------------------------------- */

LINES_TEST(wrong_specs_are_refused)
{
	static const struct refused_spec cases[] = {
		{ "json?rotate.bytes=1M", -EINVAL, "only a file can be rotated" },
		{ "json:unix:/x?rotate.bytes=1M", -EINVAL, "only a file" },
		{ "json:/tmp/x?rotate.bytes=1", -EINVAL, "'1' is not from 1M" },
		{ "json:/tmp/x?rotate.interval=1ms", -EINVAL, "is not from 1s" },
		{ "json:/tmp/x?rotate.keep=3", -EINVAL, "needs rotate.bytes" },
		{ "json:/tmp/x?compress=gzip", -EINVAL, "needs rotate.bytes" },
		{ "json:/tmp/x?compress=xz", -EINVAL, "none|gzip|zstd" },
		{ "json:/nosuchdir/x?rotate.bytes=1M", -ENOENT,
		  "cannot write to /nosuchdir/x: No such file" },
		{ "json:/tmp/?rotate.bytes=1M", -EISDIR, "Is a directory" },
	};

	assert_refused(f, cases, ARRAY_SIZE(cases));
}
