// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The content of a spool on disk, and its owner. */
#include "lib_test.h"
#include "lib_wait.h"
#include "lib_witness.h"
#include "lib_spool.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

SPOOL_TEST(unacknowledged_records_outlive_the_process)
{
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

static void write_and_die(struct spool_fixture *f)
{
	open_spool(f);
	put_all(&f->spool, 0, 3000);
	if (spool_sync(&f->spool))
		_exit(1);
	put_all(&f->spool, 3000, 3010);
	_exit(!!spool_sync(&f->spool));
}

/* Without a note of it, who knows whether a record had been synced when the process died. */
SPOOL_TEST(only_what_was_noted_is_durable_after_a_kill)
{
	int status;
	pid_t child;

	use_disk(f, true);
	f->options.max_bytes = 2 << 20; /* several segments */
	child = fork();
	assert_true(child >= 0);
	if (!child)
		write_and_die(f);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	open_spool(f);
	assert_int_equal(f->spool.tail.seq, 3010);
	assert_in_range(f->spool.noted.durable.seq, 1, 3000);
	assert_int_equal(f->spool.durable.seq, f->spool.noted.durable.seq);
	spool_close(&f->spool);
}

/* The spool's clock may begin anywhere, and files that seem to be of the future age. */
SPOOL_TEST(age_is_of_a_clock_that_nobody_sets)
{
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
		assert_int_equal(f->spool.oldest->made_ms, now_ms);
		spool_expire(&f->spool, now_ms + 1000);
		assert_int_equal(spool_pending(&f->spool).seq, 10);
		spool_expire(&f->spool, now_ms + 120000);
		assert_int_equal(f->spool.dropped[SPOOL_TOO_OLD].seq, 10);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

/* Neither the file that says so, nor its absence, lets anybody in. */
SPOOL_TEST(directory_is_one_processs_own)
{
	struct spool second;
	char path[PATH_MAX];

	open_on_disk(f);
	assert_int_equal(spool_open(&second, &f->options), -EBUSY);
	snprintf(path, sizeof(path), "%s/lock", f->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(spool_open(&second, &f->options), -EBUSY);
	spool_close(&f->spool);
	assert_int_equal(spool_open(&second, &f->options), 0);
	spool_close(&second);
}

/* Where others could change its files. */
SPOOL_TEST(directory_of_others_is_refused)
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
	struct witness witness = { 0 };
	char path[PATH_MAX];

	f->log = witness_log(&witness);
	use_disk(f, true);
	/* Only root can give a directory to another. */
	for (size_t i = self ? 1 : 0; i < ARRAY_SIZE(cases); i++) {
		witness_clear(&witness);
		assert_int_equal(chmod(f->dir, cases[i].mode), 0);
		assert_int_equal(chown(f->dir, cases[i].owner, -1), 0);
		assert_int_equal(spool_open(&f->spool, &f->options),
				 cases[i].err);
		assert_non_null(strstr(witness.log, cases[i].words));
		spool_close(&f->spool);
	}
	snprintf(path, sizeof(path), "%s/link", f->dir);
	assert_int_equal(symlink(f->dir, path), 0);
	f->options.dir = path;
	assert_int_equal(spool_open(&f->spool, &f->options), -ELOOP);
	assert_non_null(strstr(witness.log, "symbolic link"));
}

SPOOL_TEST(missing_directories_are_made)
{
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

/* A file that may not grow stands for a disk that is full. */
SPOOL_TEST(full_disk_costs_what_does_not_fit_and_no_more)
{
	const struct rlimit full = { 600 << 10, RLIM_INFINITY },
			    roomy = { RLIM_INFINITY, RLIM_INFINITY };
	struct spool_item item;
	uint64_t n = 0, kept;

	signal(SIGXFSZ, SIG_IGN);
	open_on_disk(f);
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

SPOOL_TEST(sync_goes_on_beside)
{
	open_on_disk(f);
	put_all(&f->spool, 0, 1000);
	assert_int_equal(f->spool.durable.seq, 0);
	await_by(f->spool.durable.seq >= 1000, {
		spool_start_sync(&f->spool);
		usleep(WAIT_STEP_US);
		spool_finish_sync(&f->spool);
	});
	assert_int_equal(f->spool.durable.seq, 1000);
	spool_close(&f->spool);
}
