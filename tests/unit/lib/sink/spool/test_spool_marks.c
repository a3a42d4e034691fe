// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* A spool returns to the last commit of its owner, wherever that was killed. */
#include "lib_seed.h"
#include "sink/spool/spool.h"
#include "lib_test.h"
#include "lib_spool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLS = 150, RUN_MAX_US = 8000, LOGGED_MAX = 4096 };

/* What the owner commits: numbers, and the record behind the last one of each. */
struct owner {
	uint64_t number;
	uint64_t ends[2];
	uint64_t delivered; /* at most */
};

static void commit(struct owner *owner, struct spool *spool)
{
	uint64_t number = owner->number + 1;

	if (spool_mark(spool, number))
		_exit(1);
	owner->ends[number % 2] = spool->tail.seq;
	__atomic_store_n(&owner->number, number, __ATOMIC_SEQ_CST);
}

static void deliver(struct owner *owner, struct spool *spool)
{
	struct spool_item item;
	bool is_any = false;

	for (int i = rand() % 60; i > 0 && spool_read(spool, &item); i--)
		is_any = true;
	owner->delivered = spool->read.seq;
	if (is_any)
		spool_ack(spool, item.end);
}

static void be_killed(const struct spool_options *options, struct owner *owner,
		      unsigned int seed)
{
	struct spool spool;

	srand(seed);
	if (spool_open(&spool, options) || spool_return_to(&spool, owner->number))
		_exit(1);
	spool.capacity = 16 << 10; /* files come and go all the time */
	for (;;) {
		for (int i = rand() % 80; i >= 0; i--)
			put(&spool, spool.tail.seq, 0);
		if (rand() % 3 == 0)
			spool_start_sync(&spool);
		spool_finish_sync(&spool);
		deliver(owner, &spool);
		if (rand() % 2)
			commit(owner, &spool);
	}
}

/* Delivered records are part of a commit, and committed records are there. */
static void kills_leave_whole_commits(void **state)
{
	struct owner *owner = mmap(NULL, sizeof(*owner), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct spool_fixture *f = *state;
	unsigned int seed = test_seed();
	uint64_t first = 1000;

	use_disk(f, true);
	f->options.max_bytes = 64 << 20;
	owner->number = first;
	for (unsigned int i = 0; i < KILLS; i++) {
		struct spool_item item;
		pid_t child = fork();
		uint64_t end;

		if (!child)
			be_killed(&f->options, owner, seed + i);
		usleep((seed + i) * 7919 % RUN_MAX_US);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);

		end = owner->ends[owner->number % 2];
		open_spool(f);
		assert_int_equal(spool_return_to(&f->spool, owner->number), 0);
		if (owner->number > first)
			assert_int_equal(f->spool.tail.seq, end);
		assert_true(owner->delivered <= f->spool.tail.seq);
		for (uint64_t n = f->spool.acked.seq; n < f->spool.tail.seq; n++) {
			assert_true(spool_read(&f->spool, &item));
			assert_is_record(&item, n);
		}
		assert_false(spool_read(&f->spool, &item));
		assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 0);
		assert_identity(&f->spool);
		spool_close(&f->spool);
	}
	assert_true(owner->number > first + KILLS / 10);
	assert_true(owner->delivered > 1000);
	munmap(owner, sizeof(*owner));
}

static void reader_gets_committed_records(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_item item;

	use_disk(f, true);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 7), 0);
	put_all(&f->spool, 0, 10);
	assert_false(spool_has_more(&f->spool));
	assert_false(spool_read(&f->spool, &item));
	assert_int_equal(spool_mark(&f->spool, 8), 0);
	put_all(&f->spool, 10, 20);
	get_all(&f->spool, 0, 10, &item);
	assert_false(spool_has_more(&f->spool));
	assert_false(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end);
	spool_lift_limit(&f->spool);
	get_all(&f->spool, 10, 20, &item);
	spool_close(&f->spool);
}

/* A commit that the spool had noted and its owner had not, and one that it knows nothing of. */
static void the_owner_decides_what_is_committed(void **state)
{
	struct spool_fixture *f = *state;

	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, 100);
	assert_int_equal(spool_mark(&f->spool, 8), 0);
	put_all(&f->spool, 100, 200);
	assert_int_equal(spool_mark(&f->spool, 9), 0);
	put_all(&f->spool, 200, 300);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 12), 0);
	assert_int_equal(f->spool.tail.seq, 300);
	assert_int_equal(spool_mark(&f->spool, 13), 0);
	put_all(&f->spool, 300, 400);
	assert_int_equal(spool_mark(&f->spool, 14), 0);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 13), 0);
	assert_int_equal(f->spool.tail.seq, 300);
	put_all(&f->spool, 300, 310);
	spool_close(&f->spool);
}

static void log_line(int level, const char *line, void *user)
{
	char *logged = user;

	(void)level;
	snprintf(logged + strlen(logged), LOGGED_MAX - strlen(logged), "%s\n",
		 line);
}

static unsigned int count_in(const char *text, const char *words)
{
	unsigned int n = 0;

	for (; (text = strstr(text, words)); text++)
		n++;
	return n;
}

/* A file that may not grow stands for a disk that is full. */
static void a_commit_is_marked_though_records_cannot_be_written(void **state)
{
	const struct rlimit full = { 4096, RLIM_INFINITY },
			    roomy = { RLIM_INFINITY, RLIM_INFINITY };
	struct spool_fixture *f = *state;
	char logged[LOGGED_MAX] = "";

	f->log = (struct log){ log_line, logged, NULL };
	signal(SIGXFSZ, SIG_IGN);
	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, 100);
	setrlimit(RLIMIT_FSIZE, &full);
	assert_int_equal(spool_mark(&f->spool, 8), -EFBIG);
	assert_int_equal(spool_mark(&f->spool, 9), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &roomy);
	assert_int_equal(count_in(logged, "cannot keep a commit"), 1);
	put_all(&f->spool, 100, 200);
	spool_close(&f->spool); /* which writes all */
	open_spool(f);
	assert_int_equal(f->spool.tail.seq, 200);
	assert_int_equal(spool_return_to(&f->spool, 9), 0);
	assert_int_equal(f->spool.tail.seq, 100);
	spool_close(&f->spool);
}

static void failures_to_mark_are_logged_once(void **state)
{
	struct spool_fixture *f = *state;
	char logged[LOGGED_MAX] = "", path[PATH_MAX];

	f->log = (struct log){ log_line, logged, NULL };
	snprintf(path, sizeof(path), "%s/marks", f->dir);
	use_disk(f, true);
	open_spool(f);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(spool_mark(&f->spool, 8), -EISDIR);
	assert_int_equal(spool_mark(&f->spool, 9), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(spool_mark(&f->spool, 10), 0);
	assert_int_equal(spool_mark(&f->spool, 11), 0);
	assert_int_equal(count_in(logged, "cannot keep a commit"), 1);
	assert_int_equal(count_in(logged, "commits are kept again"), 1);
	spool_close(&f->spool);
}

/* Its owner has delivered what there was, and goes on. */
static void marks_outlive_a_lifted_limit(void **state)
{
	struct spool_fixture *f = *state;

	use_disk(f, true);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 7), 0);
	put_all(&f->spool, 0, 100);
	assert_int_equal(spool_mark(&f->spool, 8), 0);
	assert_true(spool_is_at_mark(&f->spool));
	put_all(&f->spool, 100, 110);
	assert_false(spool_is_at_mark(&f->spool));
	spool_extend_mark(&f->spool);
	spool_lift_limit(&f->spool);
	put_all(&f->spool, 110, 200);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 8), 0);
	assert_int_equal(f->spool.tail.seq, 110);
	spool_close(&f->spool);
}

/* Records of a run that commits nothing, or of another program. */
static void records_without_commits_are_kept(void **state)
{
	struct spool_fixture *f = *state;

	use_disk(f, true);
	open_spool(f);
	put_all(&f->spool, 0, 100);
	assert_int_equal(spool_mark(&f->spool, 8), 0);
	spool_close(&f->spool);
	open_spool(f);
	put_all(&f->spool, 100, 200);
	spool_close(&f->spool);
	open_spool(f);
	assert_int_equal(spool_return_to(&f->spool, 8), 0);
	assert_int_equal(f->spool.tail.seq, 200);
	spool_close(&f->spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		spool_test(kills_leave_whole_commits),
		spool_test(reader_gets_committed_records),
		spool_test(the_owner_decides_what_is_committed),
		spool_test(a_commit_is_marked_though_records_cannot_be_written),
		spool_test(failures_to_mark_are_logged_once),
		spool_test(marks_outlive_a_lifted_limit),
		spool_test(records_without_commits_are_kept),
	};

	return cmocka_run_group_tests_name("spool_marks", tests, NULL, NULL);
}
