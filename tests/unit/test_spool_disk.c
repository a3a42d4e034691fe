// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool on disk holds, and what it makes of files that are not as it left them. */
#include "lib_test.h"
#include "lib_spool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void unacknowledged_records_outlive_the_process(void **state)
{
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;
	struct spool second;

	use_disk(f, true);
	open_spool(f);
	assert_int_equal(spool_open(&second, &f->options), -EBUSY);
	spool_close(&f->spool);
	assert_int_equal(spool_open(&second, &f->options), 0);
	spool_close(&second);
}

/* A directory with one segment of @n records; its path, and what is in it. */
static char *make_segment(struct spool_fixture *f, uint64_t n, char *path,
			  size_t *len)
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
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;
	char first[PATH_MAX], last[PATH_MAX];
	struct spool_item item;
	size_t len;
	char *bytes = make_segment(f, 100, first, &len);

	open_spool(f);
	f->spool.capacity = 1; /* so that there will be another segment */
	put_all(&f->spool, 100, 101);
	f->spool.capacity = 1 << 20;
	put_all(&f->spool, 101, 150);
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
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;
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
	struct spool_fixture *f = *state;

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		spool_test(unacknowledged_records_outlive_the_process),
		spool_test(age_is_counted_over_restarts),
		spool_test(directory_is_one_processs_own),
		spool_test(every_prefix_of_a_file_gives_its_whole_records),
		spool_test(damage_is_noticed_wherever_it_is),
		spool_test(gaps_are_counted),
		spool_test(damaged_acked_file_costs_nothing_but_repetition),
		spool_test(full_disk_costs_what_does_not_fit_and_no_more),
		spool_test(sync_goes_on_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
