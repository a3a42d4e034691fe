// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a spool does when its files, or its directory, are removed while it is open. */
#include "lib_test.h"
#include "lib_spool.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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
		spool_finish_sync(&f->spool);
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
		spool_test(files_that_were_removed_are_written_again),
		spool_test(directory_that_was_removed_is_made_anew),
		spool_test(directory_that_was_made_again_is_used),
		spool_test(directory_that_cannot_be_made_costs_no_record_that_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
