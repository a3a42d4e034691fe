// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool on disk holds, and what it makes of files that are not as it left them. */
#include "lib_test.h"
#include "lib_spool.h"
#include "util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

/* The spool's clock may begin anywhere, and files that seem to be of the future age. */
static void age_is_of_a_clock_that_nobody_sets(void **state)
{
	struct spool_fixture *f = *state;
	int64_t real_ms = time(NULL) * 1000LL, now_ms = 5000000;

	use_disk(f, true);
	f->options.max_age_ms = 60000;
	for (int64_t step_ms = -86400000; step_ms <= 0; step_ms += 86400000) {
		f->options.since_1970_ms = real_ms + step_ms - now_ms;
		open_spool(f);
		for (uint64_t n = 0; n < 10; n++)
			assert_true(put(&f->spool, n, now_ms));
		spool_close(&f->spool);
		open_spool(f);
		spool_expire(&f->spool, now_ms + 1000);
		assert_int_equal(spool_pending(&f->spool).seq, 10);
		spool_expire(&f->spool, now_ms + 120000);
		assert_int_equal(f->spool.dropped[SPOOL_TOO_OLD].seq, 10);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

/* Neither by the file that says so, nor by its absence. */
static void lock_that_is_removed_lets_nobody_in(void **state)
{
	struct spool_fixture *f = *state;
	struct spool second;
	char path[PATH_MAX];

	use_disk(f, true);
	open_spool(f);
	snprintf(path, sizeof(path), "%s/lock", f->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(spool_open(&second, &f->options), -EBUSY);
	spool_close(&f->spool);
}

static void keep_message(int level, const char *message, void *user)
{
	(void)level;
	snprintf(user, 256, "%s", message);
}

/* Where others could change its files. */
static void directory_of_others_is_refused(void **state)
{
	const uid_t self = geteuid();
	const struct {
		mode_t mode;
		uid_t owner;
		int err;
		const char *words;
	} cases[] = {
		{ 0700, 65534, -EPERM, "it belongs to another user" },
		{ 0777, self, -EPERM, "other users can write to it" },
		{ 0770, self, -EPERM, "other users can write to it" },
		{ 01777, self, 0, "" },
		{ 0755, self, 0, "" },
	};
	struct spool_fixture *f = *state;
	char message[256], path[PATH_MAX];

	f->log = (struct log){ .write = keep_message, .user = message };
	use_disk(f, true);
	/* Only root can give a directory to another. */
	for (size_t i = self ? 1 : 0; i < ARRAY_SIZE(cases); i++) {
		message[0] = '\0';
		assert_int_equal(chmod(f->dir, cases[i].mode), 0);
		assert_int_equal(chown(f->dir, cases[i].owner, -1), 0);
		assert_int_equal(spool_open(&f->spool, &f->options),
				 cases[i].err);
		assert_non_null(strstr(message, cases[i].words));
		spool_close(&f->spool);
	}
	snprintf(path, sizeof(path), "%s/link", f->dir);
	assert_int_equal(symlink(f->dir, path), 0);
	f->options.dir = path;
	assert_int_equal(spool_open(&f->spool, &f->options), -ELOOP);
	assert_non_null(strstr(message, "symbolic link"));
}

static void missing_directories_are_made(void **state)
{
	struct spool_fixture *f = *state;
	char path[PATH_MAX];
	struct stat info;

	snprintf(path, sizeof(path), "%s/a/b", f->dir);
	f->options.dir = path;
	open_spool(f);
	spool_close(&f->spool);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0700);
	empty_dir(path);
	rmdir(path);
	/* But none where only a typing error can have named it. */
	f->options.dir = "/netobs-no-such-dir/spool";
	assert_int_equal(spool_open(&f->spool, &f->options), -ENOENT);
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

	empty_dir(f->dir); /* where nothing is known to have been durable */
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

/* ---- Files that somebody else made ------------------------------------------------ */

static const char victim[] = "/dev/shm/netobs-victim";

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *path)
{
	write_file(victim, "precious", 8);
	assert_int_equal(symlink(victim, path), 0);
}

static void make_fifo(const char *path)
{
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void make_empty(const char *path)
{
	write_file(path, "", 0);
}

static void make_rubbish(const char *path)
{
	char bytes[5000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * i);
	write_file(path, bytes, sizeof(bytes));
}

static void make_huge(const char *path)
{
	if (access(path, F_OK))
		make_empty(path);
	assert_int_equal(truncate(path, 900LL << 30), 0);
}

static void make_others(const char *path)
{
	make_rubbish(path);
	assert_int_equal(chown(path, 65534, 65534), geteuid() ? -1 : 0);
}

static void assert_untouched(void)
{
	size_t len;
	char *bytes;

	if (access(victim, F_OK))
		return;
	bytes = read_file(victim, &len);
	assert_int_equal(len, 8);
	assert_memory_equal(bytes, "precious", 8);
	free(bytes);
	unlink(victim);
}

/* ---- Damage ------------------------------------------------------------------------ */

/* Reads what is there of @n records; each that is not counts as damaged. */
static uint64_t read_whole(struct spool *spool, uint64_t n)
{
	struct spool_item item;
	uint64_t got = 0;

	while (spool_read(spool, &item)) {
		assert_true(item.end.seq <= n);
		assert_is_record(&item, item.end.seq - 1);
		spool_ack(spool, item.end);
		got++;
	}
	assert_identity(spool);
	assert_int_equal(spool_pending(spool).seq, 0);
	assert_int_equal(got, spool->delivered.seq);
	assert_int_equal(got + spool->dropped[SPOOL_DAMAGED].seq, n);
	return got;
}

/* A bit that is wrong costs its record, and one in the segment's head none. */
static void damage_costs_the_record_that_it_is_in(void **state)
{
	struct spool_fixture *f = *state;
	char path[PATH_MAX], acked[PATH_MAX];
	struct spool_item item;
	size_t len, acked_len;
	char *bytes = make_segment(f, 8, path, &len), *progress;

	snprintf(acked, sizeof(acked), "%s/acked", f->dir);
	progress = read_file(acked, &acked_len);
	for (size_t at = 0; at < len; at++) {
		uint64_t got;

		empty_dir(f->dir);
		bytes[at] ^= 1 << at % 8;
		write_file(path, bytes, len);
		write_file(acked, progress, acked_len);
		bytes[at] ^= 1 << at % 8;
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, 8);
		got = read_whole(&f->spool, 8);
		assert_int_equal(got, at < sizeof(struct segment_head) ? 8 : 7);
		assert_true(put(&f->spool, 8, 0));
		get_all(&f->spool, 8, 9, &item);
		spool_close(&f->spool);
		assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
	}
	free(progress);
	free(bytes);
}

/* Several files, each damaged somewhere: what is whole comes, in order. */
static void random_damage_costs_what_it_hits(void **state)
{
	enum { RECORDS = 2000, ROUNDS = 100 };
	struct spool_fixture *f = *state;
	uint64_t lost = 0;

	for (unsigned int seed = 1; seed <= ROUNDS; seed++) {
		char path[PATH_MAX];
		uint64_t got;
		int flips;

		srand(seed);
		use_disk(f, true);
		open_spool(f);
		f->spool.capacity = 100 << 10;
		put_all(&f->spool, 0, RECORDS);
		spool_close(&f->spool);
		flips = 1 + rand() % 8;
		for (int i = 0; i < flips; i++) {
			size_t len;
			char *bytes;

			find_nth_file(f->dir, ".seg", (unsigned int)rand(), path);
			bytes = read_file(path, &len);
			bytes[(size_t)rand() % len] ^= (char)(1 + rand() % 255);
			write_file(path, bytes, len);
			free(bytes);
		}
		open_spool(f);
		got = read_whole(&f->spool, RECORDS);
		if (got + (uint64_t)flips < RECORDS)
			fail_msg("seed %u: %d flips cost %d records", seed,
				 flips, RECORDS - (int)got);
		lost += RECORDS - got;
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
	assert_true(lost > ROUNDS);
}

/* What is cut off a file in the middle is known by the next, and the last by 'acked'. */
static void truncation_is_counted(void **state)
{
	enum { RECORDS = 1000 };
	struct spool_fixture *f = *state;

	for (unsigned int seed = 1; seed <= 40; seed++) {
		char path[PATH_MAX];
		size_t len;
		char *bytes;

		srand(seed);
		use_disk(f, true);
		open_spool(f);
		f->spool.capacity = 100 << 10;
		put_all(&f->spool, 0, RECORDS);
		spool_close(&f->spool);
		find_nth_file(f->dir, ".seg", seed, path);
		bytes = read_file(path, &len);
		write_file(path, bytes, (size_t)rand() % len);
		free(bytes);
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, RECORDS);
		assert_in_range(read_whole(&f->spool, RECORDS), 600, RECORDS - 1);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

/* One file never costs the others. */
static void hostile_files_are_left_out(void **state)
{
	static const struct {
		const char *name;
		void (*make)(const char *path);
	} cases[] = {
		{ "00000000000000ff.seg", make_dir },
		{ "00000000000000ff.seg", make_link },
		{ "00000000000000ff.seg", make_fifo },
		{ "00000000000000ff.seg", make_empty },
		{ "ffffffffffffffff.seg", make_empty },
		{ "00000000000000ff.seg", make_rubbish },
		{ "ffffffffffffffff.seg", make_rubbish },
		{ "00000000000000ff.seg", make_huge },
		{ "00000000000000ff.seg", make_others },
		{ "0000000000000000.seg~", make_dir },
		{ "acked.new", make_link },
		{ "acked.new", make_dir },
		{ "lock", make_dir },
	};
	struct spool_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[PATH_MAX];
		struct spool_item item;

		free(make_segment(f, 300, path, &(size_t){ 0 }));
		snprintf(path, sizeof(path), "%s/%s", f->dir, cases[i].name);
		unlink(path);
		cases[i].make(path);
		open_spool(f);
		assert_int_equal(f->spool.recovered.seq, 300);
		get_all(&f->spool, 0, 300, &item);
		spool_ack(&f->spool, item.end);
		put_all(&f->spool, 300, 310);
		get_all(&f->spool, 300, 310, &item);
		assert_identity(&f->spool);
		assert_int_equal(spool_sync(&f->spool), 0);
		spool_close(&f->spool);
		assert_untouched();
		empty_dir(f->dir);
	}
}

/* The file that there is may itself be made huge: it is all hole behind its end. */
static void file_with_a_hole_costs_no_memory(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_item item;
	char path[PATH_MAX];

	free(make_segment(f, 300, path, &(size_t){ 0 }));
	make_huge(path);
	open_spool(f);
	get_all(&f->spool, 0, 300, &item);
	put_all(&f->spool, 300, 310);
	get_all(&f->spool, 300, 310, &item);
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

/* ---- Removal ----------------------------------------------------------------------- */

static void remove_all(const char *dir)
{
	char path[PATH_MAX];

	while (count_files(dir, "", path))
		assert_int_equal(unlink(path), 0);
}

/* All that waits is on disk, so that the next process finds it. */
static void assert_all_is_there(struct spool_fixture *f, uint64_t from,
				uint64_t to)
{
	struct spool_item item;

	assert_int_equal(f->spool.durable.seq, to);
	assert_identity(&f->spool);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(f->spool.recovered.seq, to - from);
	get_all(&f->spool, from, to, &item);
	spool_close(&f->spool);
}

static void open_with_files(struct spool_fixture *f, uint64_t n)
{
	use_disk(f, true);
	open_spool(f);
	f->spool.capacity = 100 << 10;
	put_all(&f->spool, 0, n);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_int_equal(f->spool.durable.seq, n);
	assert_true(count_files(f->dir, ".seg", NULL) > 3);
}

static void files_that_were_removed_are_written_again(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_item item;

	open_with_files(f, 1500);
	get_all(&f->spool, 0, 700, &item);
	spool_ack(&f->spool, item.end);
	remove_all(f->dir);
	put_all(&f->spool, 1500, 1600);
	assert_int_equal(spool_sync(&f->spool), 0);
	put_all(&f->spool, 1600, 1700);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_all_is_there(f, 700, 1700);
}

static void directory_that_was_removed_is_made_anew(void **state)
{
	struct spool_fixture *f = *state;

	open_with_files(f, 1500);
	remove_all(f->dir);
	assert_int_equal(rmdir(f->dir), 0);
	put_all(&f->spool, 1500, 1600);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_all_is_there(f, 0, 1600);
}

static void directory_that_was_made_again_is_used(void **state)
{
	struct spool_fixture *f = *state;
	char moved[PATH_MAX];

	open_with_files(f, 1500);
	snprintf(moved, sizeof(moved), "%s.old", f->dir);
	assert_int_equal(rename(f->dir, moved), 0);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	for (int i = 0; i < 1000 && f->spool.noted.durable.seq < 1500; i++) {
		spool_start_sync(&f->spool);
		usleep(1000);
		spool_tend(&f->spool);
		assert_true(put(&f->spool, f->spool.tail.seq, 0));
	}
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_all_is_there(f, 0, f->spool.tail.seq);
	empty_dir(moved);
	rmdir(moved);
}

/* What is not on a disk is not called durable, but it is still delivered. */
static void directory_that_cannot_be_made_costs_no_record_that_fits(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_item item;
	char parent[PATH_MAX], dir[PATH_MAX + 8];

	snprintf(parent, sizeof(parent), "%s/parent", f->dir);
	snprintf(dir, sizeof(dir), "%s/spool", parent);
	f->options.dir = dir;
	open_spool(f);
	f->spool.capacity = 100 << 10;
	put_all(&f->spool, 0, 1000);
	assert_int_equal(spool_sync(&f->spool), 0);
	remove_all(dir);
	assert_int_equal(rmdir(dir) | rmdir(parent), 0);
	assert_true(spool_sync(&f->spool) < 0);
	assert_int_equal(f->spool.durable.seq, 0);
	put_all(&f->spool, 1000, 1100);
	get_all(&f->spool, 0, 500, &item);
	assert_int_equal(mkdir(parent, 0700), 0);
	assert_int_equal(spool_sync(&f->spool), 0);
	get_all(&f->spool, 500, 1100, &item);
	assert_int_equal(f->spool.durable.seq, 1100);
	spool_ack(&f->spool, item.end);
	assert_identity(&f->spool);
	spool_close(&f->spool);
	empty_dir(dir);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		spool_test(unacknowledged_records_outlive_the_process),
		spool_test(age_is_counted_over_restarts),
		spool_test(age_is_of_a_clock_that_nobody_sets),
		spool_test(directory_is_one_processs_own),
		spool_test(lock_that_is_removed_lets_nobody_in),
		spool_test(directory_of_others_is_refused),
		spool_test(missing_directories_are_made),
		spool_test(every_prefix_of_a_file_gives_its_whole_records),
		spool_test(damage_costs_the_record_that_it_is_in),
		spool_test(random_damage_costs_what_it_hits),
		spool_test(truncation_is_counted),
		spool_test(hostile_files_are_left_out),
		spool_test(file_with_a_hole_costs_no_memory),
		spool_test(files_that_were_removed_are_written_again),
		spool_test(directory_that_was_removed_is_made_anew),
		spool_test(directory_that_was_made_again_is_used),
		spool_test(directory_that_cannot_be_made_costs_no_record_that_fits),
		spool_test(damaged_acked_file_costs_nothing_but_repetition),
		spool_test(full_disk_costs_what_does_not_fit_and_no_more),
		spool_test(sync_goes_on_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
