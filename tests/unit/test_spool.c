// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records wait, in memory and on disk; each comes out, or is counted. */
#include "lib_test.h"

#include "sink/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fixture {
	char dir[PATH_MAX / 2];
	struct log log;
	struct spool_options options;
	struct spool spool;
};

/* ---- Files --------------------------------------------------------------------- */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The names that end in @suffix, in order; the last is kept. */
static int count_files(const char *dir, const char *suffix, char *ret_last)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, alphasort), found = 0;

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		size_t len = strlen(entries[i]->d_name);

		if (len >= strlen(suffix) &&
		    !strcmp(entries[i]->d_name + len - strlen(suffix), suffix)) {
			found++;
			if (ret_last)
				snprintf(ret_last, PATH_MAX, "%s/%s", dir,
					 entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	return found;
}

static void empty_dir(const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, NULL);

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		unlink(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR") ?: "/tmp";

	snprintf(f->dir, sizeof(f->dir), "%s/netobs-spool.XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	f->options =
		(struct spool_options){ .max_bytes = 64 << 20, .log = &f->log };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	empty_dir(f->dir);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void use_disk(struct fixture *f, bool on_disk)
{
	f->options.dir = on_disk ? f->dir : NULL;
}

static void open_spool(struct fixture *f)
{
	assert_int_equal(spool_open(&f->spool, &f->options), 0);
}

/* ---- Records ------------------------------------------------------------------- */

/* Of record @n: all lengths from 1 up come, and the contents tell the number. */
static size_t make_record(uint64_t n, char *buf)
{
	size_t len = 1 + n * 37 % 700;

	for (size_t i = 0; i < len; i++)
		buf[i] = (char)(n * 131 + i);
	return len;
}

static bool put(struct spool *spool, uint64_t n, int64_t now_ms)
{
	char buf[1024];
	size_t len = make_record(n, buf);

	return spool_append(spool, buf, len, n % 5, n * 3, now_ms);
}

static void put_all(struct spool *spool, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++)
		assert_true(put(spool, n, 0));
}

static void assert_is_record(const struct spool_item *item, uint64_t n)
{
	char buf[1024];

	assert_int_equal(item->len, make_record(n, buf));
	assert_memory_equal(item->record, buf, item->len);
	assert_int_equal(item->own.packets, n % 5);
	assert_int_equal(item->own.bytes, n * 3);
}

static void get_all(struct spool *spool, uint64_t from, uint64_t to,
		    struct spool_item *item)
{
	for (uint64_t n = from; n < to; n++) {
		assert_true(spool_read(spool, item));
		assert_is_record(item, n);
	}
}

/* Whatever came is acknowledged, dropped or there. */
static void assert_identity(const struct spool *spool)
{
	struct mark in = mark_add(spool->recovered, spool->came);
	struct mark out = mark_add(spool->delivered, spool_pending(spool));

	for (int i = 0; i < SPOOL_DROPS; i++)
		out = mark_add(out, spool->dropped[i]);
	assert_int_equal(in.seq, out.seq);
	assert_int_equal(in.packets, out.packets);
	assert_int_equal(in.bytes, out.bytes);
}

/* ---- Both kinds ---------------------------------------------------------------- */

static void each_kind(struct fixture *f, void (*test)(struct fixture *f))
{
	for (int on_disk = 0; on_disk < 2; on_disk++) {
		use_disk(f, on_disk);
		open_spool(f);
		test(f);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

static void come_back(struct fixture *f)
{
	enum { N = 20000 };
	struct spool_item item;
	uint64_t got = 0;

	for (uint64_t n = 0; n < N; n++) {
		assert_true(put(&f->spool, n, 0));
		if (n % 7 == 6) /* the reader is right behind at times */
			while (got < n && spool_read(&f->spool, &item))
				assert_is_record(&item, got++);
		if (n % 1000 == 999)
			spool_ack(&f->spool, item.end);
	}
	get_all(&f->spool, got, N, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	assert_int_equal(spool_pending(&f->spool).seq, 0);
	assert_int_equal(f->spool.delivered.seq, N);
}

static void records_come_back_in_order(void **state)
{
	each_kind(*state, come_back);
}

static void come_again(struct fixture *f)
{
	struct spool_item first, item;

	put_all(&f->spool, 0, 9000);
	for (uint64_t acked = 0; acked < 9000; acked += 1234) {
		get_all(&f->spool, acked, acked + 1, &first);
		get_all(&f->spool, acked + 1, 9000, &item);
		if (acked)
			spool_ack(&f->spool, first.end);
		spool_rewind(&f->spool);
		get_all(&f->spool, acked ? acked + 1 : 0, 9000, &item);
		spool_rewind(&f->spool);
		get_all(&f->spool, acked ? acked + 1 : 0,
			acked + 1234 < 9000 ? acked + 1234 : 9000, &item);
		spool_ack(&f->spool, item.end);
	}
	spool_rewind(&f->spool);
	assert_false(spool_read(&f->spool, &item));
	put_all(&f->spool, 9000, 9010);
	get_all(&f->spool, 9000, 9010, &item);
}

static void rewinding_brings_back_what_is_not_acknowledged(void **state)
{
	each_kind(*state, come_again);
}

static void discard_some(struct fixture *f)
{
	struct spool_item item;

	put_all(&f->spool, 0, 100);
	get_all(&f->spool, 0, 10, &item);
	spool_ack(&f->spool, item.end);
	get_all(&f->spool, 10, 12, &item);
	spool_discard(&f->spool, item.end, SPOOL_REFUSED);
	get_all(&f->spool, 12, 100, &item);
	spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.delivered.seq, 98);
	assert_int_equal(f->spool.dropped[SPOOL_REFUSED].seq, 2);
	assert_int_equal(f->spool.dropped[SPOOL_REFUSED].packets,
			 10 % 5 + 11 % 5);
}

static void what_is_refused_counts_as_dropped(void **state)
{
	each_kind(*state, discard_some);
}

static void drop_the_oldest(struct fixture *f)
{
	struct spool_item item;
	uint64_t n = 0, dropped;

	while (!f->spool.dropped[SPOOL_FULL].seq)
		assert_true(put(&f->spool, n++, 0));
	assert_true(f->spool.size <= f->options.max_bytes);
	assert_true(f->spool.size > f->options.max_bytes / 2);
	dropped = f->spool.dropped[SPOOL_FULL].seq;
	get_all(&f->spool, dropped, n, &item);
	assert_identity(&f->spool);
	/* What was read makes room as well, but may still be acknowledged. */
	while (spool_pending(&f->spool).seq && f->spool.acked.seq <= item.end.seq)
		put(&f->spool, n++, 0);
	spool_ack(&f->spool, item.end);
	assert_int_equal(f->spool.delivered.seq, item.end.seq - dropped);
}

static void full_spool_drops_the_oldest(void **state)
{
	struct fixture *f = *state;

	f->options.max_bytes = 4 << 20;
	each_kind(f, drop_the_oldest);
}

static void drop_the_newest(struct fixture *f)
{
	struct spool_item item;
	uint64_t n = 0, kept;

	while (put(&f->spool, n, 0))
		n++;
	kept = n;
	for (int i = 0; i < 100; i++)
		put(&f->spool, n + 700 * i, 0); /* as long as the one refused */
	assert_int_equal(f->spool.dropped[SPOOL_FULL].seq, 101);
	get_all(&f->spool, 0, kept, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	assert_true(put(&f->spool, n, 0));
}

static void full_spool_may_keep_the_oldest(void **state)
{
	struct fixture *f = *state;

	f->options.max_bytes = 2 << 20;
	f->options.keep_oldest = true;
	each_kind(f, drop_the_newest);
}

static void drop_the_old(struct fixture *f)
{
	struct spool_item item;

	for (uint64_t n = 0; n < 100; n++)
		assert_true(put(&f->spool, n, (int64_t)n * 1000));
	spool_expire(&f->spool, 99000);
	assert_in_range(spool_pending(&f->spool).seq, 60, 60 + 9);
	assert_int_equal(spool_pending(&f->spool).seq +
				 f->spool.dropped[SPOOL_TOO_OLD].seq,
			 100);
	assert_true(spool_read(&f->spool, &item));
	spool_expire(&f->spool, 1000000);
	assert_int_equal(spool_pending(&f->spool).seq, 1); /* the one read */
	spool_ack(&f->spool, item.end);
	assert_int_equal(spool_pending(&f->spool).seq, 0);
	assert_false(spool_read(&f->spool, &item));
}

static void old_records_are_dropped(void **state)
{
	struct fixture *f = *state;

	f->options.max_age_ms = 60000;
	each_kind(f, drop_the_old);
}

/* ---- On disk ------------------------------------------------------------------- */

static void unacknowledged_records_outlive_the_process(void **state)
{
	struct fixture *f = *state;
	struct spool_item item;
	uint64_t from = 0, to = 0;

	use_disk(f, true);
	f->options.max_bytes = 2 << 20; /* several segments */
	for (int round = 0; round < 20; round++) {
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, to - from);
		put_all(&f->spool, to, to + 1000);
		to += 1000;
		get_all(&f->spool, from, from + 500 + 50 * round, &item);
		from += 500 + 50 * round - 10;
		spool_rewind(&f->spool);
		get_all(&f->spool, from - (490 + 50 * round), from, &item);
		spool_ack(&f->spool, item.end);
		assert_identity(&f->spool);
		spool_close(&f->spool);
	}
	open_spool(f);
	get_all(&f->spool, from, to, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	spool_close(&f->spool);
	assert_true(count_files(f->dir, ".seg", NULL) <= 1);
	assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
}

/* How old they are is not forgotten when the process ends, nor do they age at once. */
static void age_is_counted_over_restarts(void **state)
{
	struct fixture *f = *state;
	int64_t now_ms = time(NULL) * 1000LL;

	use_disk(f, true);
	f->options.max_age_ms = 60000;
	open_spool(f);
	for (uint64_t n = 0; n < 10; n++)
		assert_true(put(&f->spool, n, now_ms));
	spool_close(&f->spool);
	open_spool(f);
	spool_expire(&f->spool, now_ms);
	assert_int_equal(spool_pending(&f->spool).seq, 10);
	spool_expire(&f->spool, now_ms + 120000);
	assert_int_equal(spool_pending(&f->spool).seq, 0);
	assert_int_equal(f->spool.dropped[SPOOL_TOO_OLD].seq, 10);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}

static void directory_is_one_processs_own(void **state)
{
	struct fixture *f = *state;
	struct spool second;

	use_disk(f, true);
	open_spool(f);
	assert_int_equal(spool_open(&second, &f->options), -EBUSY);
	spool_close(&f->spool);
	assert_int_equal(spool_open(&second, &f->options), 0);
	spool_close(&second);
}

static char *read_file(const char *path, size_t *ret_len)
{
	int fd = open(path, O_RDONLY);
	struct stat stat;
	char *bytes;

	assert_true(fd >= 0 && !fstat(fd, &stat));
	bytes = malloc((size_t)stat.st_size + 1);
	assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
	close(fd);
	*ret_len = (size_t)stat.st_size;
	return bytes;
}

static void write_file(const char *path, const char *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* A directory with one segment of @n records; its path, and what is in it. */
static char *make_segment(struct fixture *f, uint64_t n, char *path, size_t *len)
{
	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, n);
	spool_close(&f->spool);
	assert_int_equal(count_files(f->dir, ".seg", path), 1);
	return read_file(path, len);
}

/* A crash may leave any part of what was written, from the front. */
static void every_prefix_of_a_file_gives_its_whole_records(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX], record[1024];
	struct spool_item item;
	uint64_t whole = 0;
	size_t len, at = sizeof(struct segment_head);
	char *bytes = make_segment(f, 12, path, &len);

	for (size_t cut = 0; cut <= len; cut++) {
		write_file(path, bytes, cut);
		while (whole < 12 &&
		       at + segment_cost(make_record(whole, record)) <= cut)
			at += segment_cost(make_record(whole++, record));
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, whole);
		get_all(&f->spool, 0, whole, &item);
		assert_false(spool_read(&f->spool, &item));
		/* What comes now does not disturb what was there. */
		assert_true(put(&f->spool, 77, 0));
		assert_true(spool_read(&f->spool, &item));
		assert_is_record(&item, 77);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
		/* And is still there afterwards, behind what was. */
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, whole + 1);
		get_all(&f->spool, 0, whole, &item);
		assert_true(spool_read(&f->spool, &item));
		assert_is_record(&item, 77);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
	assert_int_equal(whole, 12);
	free(bytes);
}

/* A bit that is wrong costs its record and those behind it in the file. */
static void damage_is_noticed_wherever_it_is(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct spool_item item;
	size_t len;
	char *bytes = make_segment(f, 8, path, &len);

	for (size_t at = 0; at < len; at++) {
		uint64_t got = 0;

		empty_dir(f->dir);
		bytes[at] ^= 1 << at % 8;
		write_file(path, bytes, len);
		bytes[at] ^= 1 << at % 8;
		open_spool(f);
		while (spool_read(&f->spool, &item))
			assert_is_record(&item, got++);
		assert_true(got < 8);
		assert_int_equal(f->spool.recovered.seq, got);
		assert_true(put(&f->spool, got, 0));
		assert_true(spool_read(&f->spool, &item));
		assert_identity(&f->spool);
		spool_close(&f->spool);
	}
	free(bytes);
}

/* With a segment behind the damage, what is missing between them is known. */
static void gaps_are_counted(void **state)
{
	struct fixture *f = *state;
	char first[PATH_MAX], last[PATH_MAX];
	struct spool_item item;
	size_t len;
	char *bytes = make_segment(f, 100, first, &len);

	open_spool(f);
	put_all(&f->spool, 100, 150);
	spool_close(&f->spool);
	assert_int_equal(count_files(f->dir, ".seg", last), 2);
	bytes[len / 2] ^= 0x10;
	write_file(first, bytes, len);
	free(bytes);

	open_spool(f);
	assert_int_equal(count_files(f->dir, ".bad", NULL), 1);
	for (uint64_t n = 0; spool_read(&f->spool, &item); n++)
		assert_is_record(&item, n);
	assert_identity(&f->spool); /* nobody said yet that these are done with */
	spool_ack(&f->spool, item.end);
	get_all(&f->spool, 100, 150, &item);
	spool_ack(&f->spool, item.end);
	assert_identity(&f->spool);
	assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq +
				 f->spool.delivered.seq,
			 150);
	assert_in_range(f->spool.dropped[SPOOL_DAMAGED].seq, 1, 99);
	spool_close(&f->spool);
}

static void damaged_acked_file_costs_nothing_but_repetition(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	struct spool_item item;

	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, 50);
	get_all(&f->spool, 0, 20, &item);
	spool_ack(&f->spool, item.end);
	spool_close(&f->spool);
	snprintf(path, sizeof(path), "%s/acked", f->dir);
	write_file(path, "rubbish", 7);
	open_spool(f);
	get_all(&f->spool, 0, 50, &item);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}

/* A file that may not grow stands for a disk that is full. */
static void full_disk_costs_what_does_not_fit_and_no_more(void **state)
{
	const struct rlimit full = { 600 << 10, RLIM_INFINITY },
			    roomy = { RLIM_INFINITY, RLIM_INFINITY };
	struct fixture *f = *state;
	struct spool_item item;
	uint64_t n = 0, kept;

	signal(SIGXFSZ, SIG_IGN);
	use_disk(f, true);
	open_spool(f);
	setrlimit(RLIMIT_FSIZE, &full);
	while (put(&f->spool, n, 0))
		n++;
	kept = n;
	assert_true(f->spool.dropped[SPOOL_UNWRITTEN].seq == 1);
	assert_true(spool_sync(&f->spool) < 0);
	setrlimit(RLIMIT_FSIZE, &roomy);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_int_equal(f->spool.durable.seq, kept);
	put_all(&f->spool, kept, kept + 10);
	get_all(&f->spool, 0, kept + 10, &item);
	assert_identity(&f->spool);
	spool_close(&f->spool);
}

static void sync_goes_on_beside(void **state)
{
	struct fixture *f = *state;

	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, 1000);
	assert_int_equal(f->spool.durable.seq, 0);
	for (int i = 0; i < 10000 && f->spool.durable.seq < 1000; i++) {
		spool_start_sync(&f->spool);
		usleep(1000);
		spool_tend(&f->spool);
	}
	assert_int_equal(f->spool.durable.seq, 1000);
	spool_close(&f->spool);
}

/* ---- Killed -------------------------------------------------------------------- */

/* Writes, syncs, reads and acknowledges as it comes; tells what is durable. */
static void be_killed(const struct spool_options *options, unsigned int seed,
		      int tell_fd)
{
	struct spool spool;
	struct spool_item item;

	srand(seed);
	if (spool_open(&spool, options))
		_exit(1);
	for (;;) {
		uint64_t told[2];

		for (int i = rand() % 50; i >= 0; i--)
			put(&spool, spool.tail.seq, 0);
		if (rand() % 2)
			spool_start_sync(&spool);
		else
			spool_sync(&spool);
		spool_tend(&spool);
		told[0] = spool.durable.seq;
		for (int i = rand() % 40; i > 0 && spool_read(&spool, &item); i--)
			if (i == 1)
				spool_ack(&spool, item.end);
		told[1] = spool.acked.seq; /* may be durable, need not */
		if (write(tell_fd, told, sizeof(told)) != sizeof(told))
			_exit(1);
	}
}

static void whatever_was_durable_survives_kills(void **state)
{
	enum { KILLS = 500 };
	struct fixture *f = *state;
	uint64_t durable = 0, acked = 0, told[2];

	use_disk(f, true);
	f->options.max_bytes = 8 << 20;
	for (int i = 0; i < KILLS; i++) {
		struct spool_item item;
		int fds[2];
		pid_t child;

		assert_int_equal(pipe(fds), 0);
		child = fork();
		if (!child)
			be_killed(&f->options, (unsigned int)i, fds[1]);
		close(fds[1]);
		usleep((useconds_t)(i * 7919 % 5000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (read(fds[0], told, sizeof(told)) == sizeof(told)) {
			durable = told[0];
			acked = told[1];
		}
		close(fds[0]);

		open_spool(f);
		assert_true(f->spool.tail.seq >= durable);
		assert_true(f->spool.acked.seq <= f->spool.tail.seq);
		assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 0);
		for (uint64_t n = f->spool.acked.seq; n < f->spool.tail.seq; n++) {
			assert_true(spool_read(&f->spool, &item));
			assert_is_record(&item, n);
		}
		assert_identity(&f->spool);
		spool_close(&f->spool);
	}
	print_message("%llu records were durable, %llu acknowledged\n",
		      (unsigned long long)durable, (unsigned long long)acked);
	assert_true(durable > 1000);
	assert_true(acked > 100);
	assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
}

#define spool_test(test) \
	cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		spool_test(records_come_back_in_order),
		spool_test(rewinding_brings_back_what_is_not_acknowledged),
		spool_test(what_is_refused_counts_as_dropped),
		spool_test(full_spool_drops_the_oldest),
		spool_test(full_spool_may_keep_the_oldest),
		spool_test(old_records_are_dropped),
		spool_test(unacknowledged_records_outlive_the_process),
		spool_test(age_is_counted_over_restarts),
		spool_test(directory_is_one_processs_own),
		spool_test(every_prefix_of_a_file_gives_its_whole_records),
		spool_test(damage_is_noticed_wherever_it_is),
		spool_test(gaps_are_counted),
		spool_test(damaged_acked_file_costs_nothing_but_repetition),
		spool_test(full_disk_costs_what_does_not_fit_and_no_more),
		spool_test(sync_goes_on_beside),
		spool_test(whatever_was_durable_survives_kills),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
