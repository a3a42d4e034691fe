// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A disk that fails in each possible way: the failure is logged once, its losses are counted, and the
 * next successful sync ends it.
 */
#include "lib_disk.h"
#include "lib_test.h"
#include "lib_spool.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { SEGMENT = 4096 };

struct words {
	unsigned int begins, ends;
	char last_error[512];
};

static void listen_to(int level, const char *message, void *user)
{
	bool is_end = strstr(message, "can be written to again") ||
		      strstr(message, "can be read again");
	struct words *words = user;

	assert_true(level <= NETOBS_LOG_WARNING); /* both, without being asked */
	words->ends += is_end;
	words->begins += !is_end;
	if (!is_end)
		snprintf(words->last_error, sizeof(words->last_error), "%s",
			 message);
}

static void start(struct spool_fixture *f, struct words *words)
{
	*words = (struct words){ 0 };
	f->log = (struct log){ .write = listen_to, .user = words };
	open_on_disk(f);
	f->spool.capacity = SEGMENT;
	put_all(&f->spool, 0, 30);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_int_equal(f->spool.durable.seq, 30);
}

/* More than a buffer of them, so that it is felt. */
static void put_many(struct spool *spool)
{
	for (int i = 0; i < 1000; i++) {
		put(spool, spool->tail.seq, 0);
		if (i % 100 == 0)
			spool_sync(spool);
	}
}

static void read_all(struct spool *spool)
{
	struct spool_item item;
	uint64_t n = spool->acked.seq;

	while (spool_read(spool, &item)) {
		assert_is_record(&item, n++);
		spool_ack(spool, item.end);
	}
	assert_int_equal(n, spool->tail.seq);
}

static const struct disk_fault faults[] = {
	{ DISK_OPEN, 0, 100000, EMFILE, 0 },
	{ DISK_OPEN, 0, 100000, EROFS, 0 },
	{ DISK_WRITE, 0, 100000, ENOSPC, 0 },
	{ DISK_WRITE, 1, 100000, ENOSPC, 77 }, /* in the middle of a record */
	{ DISK_WRITE, 0, 100000, EIO, 0 },
	{ DISK_SYNC, 0, 100000, EIO, 0 },
	{ DISK_SYNC, 0, 1, EIO, 0 },
	{ DISK_SYNC_DIR, 0, 100000, EIO, 0 },
	{ DISK_RENAME, 0, 100000, EROFS, 0 },
	{ DISK_UNLINK, 0, 100000, EROFS, 0 },
};

/* The records that wait then are in doubt, and those behind them count as durable no sooner. */
static bool is_of_sync(const struct disk_fault *fault)
{
	return fault->call == DISK_SYNC || fault->call == DISK_SYNC_DIR;
}

static void each_fault(struct spool_fixture *f, bool is_read,
		       const struct disk_fault *fault)
{
	struct words words;

	start(f, &words);
	if (is_read)
		read_all(&f->spool); /* so that there is something to be noted */
	disk_fail(fault);
	put_many(&f->spool);
	if (is_read)
		read_all(&f->spool);
	spool_sync(&f->spool);
	assert_true(disk_failures() > 0);
	assert_identity(&f->spool);
	assert_int_equal(words.begins, 1);
	if (!strstr(words.last_error, strerror(fault->err)) ||
	    !strstr(words.last_error, f->dir))
		fail_msg("%s", words.last_error);

	disk_heal();
	assert_int_equal(spool_sync(&f->spool), 0);
	put_all(&f->spool, f->spool.tail.seq, f->spool.tail.seq + 100);
	assert_int_equal(spool_sync(&f->spool), 0);
	if (is_of_sync(fault) && !is_read)
		assert_in_range(f->spool.durable.seq, 30,
				f->spool.tail.seq - 101);
	else
		assert_int_equal(f->spool.durable.seq, f->spool.tail.seq);
	assert_true(spool_is_settled(&f->spool));
	assert_int_equal(words.begins, 1);
	assert_int_equal(words.ends, 1);
	read_all(&f->spool);
	assert_identity(&f->spool);
	spool_close(&f->spool);
	assert_int_equal(words.begins, 1);
	assert_true(count_files(f->dir, ".seg", NULL) <= 1);
	empty_dir(f->dir);
}

static int heal(void **state)
{
	disk_heal();
	return spool_tear_down(state);
}

#define CASE(name) TEST_OF(name, struct spool_fixture *f, spool_set_up, heal)

CASE(faults_are_told_once_and_get_over)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		print_message("call %d: %s\n", (int)faults[i].call,
			      strerror(faults[i].err));
		if (faults[i].call != DISK_UNLINK) /* or nothing has to go */
			each_fault(f, false, &faults[i]);
		each_fault(f, true, &faults[i]);
	}
}

/* Or else records that a crash took would be looked for, and count as damaged. */
CASE(what_cannot_be_written_is_not_noted_as_durable)
{
	static const struct disk_fault once = { DISK_WRITE, 0, 1, ENOSPC, 0 };
	struct spool_item item;
	struct words words;

	start(f, &words);
	put_all(&f->spool, 30, 31);
	assert_true(spool_read(&f->spool, &item));
	spool_ack(&f->spool, item.end); /* so that there is something to be noted */
	disk_fail(&once);
	assert_int_equal(spool_sync(&f->spool), -ENOSPC);
	disk_heal();
	assert_int_equal(f->spool.noted.acked.seq, 1);
	assert_in_range(f->spool.noted.durable.seq, 0, 30);
	read_all(&f->spool);
	spool_close(&f->spool);
}

/* A collector that is there gets all, whatever the disk does. */
CASE(reader_that_keeps_up_needs_no_disk)
{
	struct words words;

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		start(f, &words);
		f->spool.capacity = 1 << 20; /* as a real one */
		read_all(&f->spool);
		disk_fail(&faults[i]);
		for (int round = 0; round < 200; round++) {
			put_all(&f->spool, f->spool.tail.seq,
				f->spool.tail.seq + 50);
			if (round % 10 == 0)
				spool_sync(&f->spool);
			read_all(&f->spool);
		}
		disk_heal();
		assert_int_equal(f->spool.delivered.seq, f->spool.accepted.seq);
		assert_int_equal(spool_sync(&f->spool), 0);
		assert_identity(&f->spool);
		spool_close(&f->spool);
		empty_dir(f->dir);
	}
}

static unsigned int count_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Also where it is the process that has no more of them, for copies as well. */
CASE(lack_of_descriptors_gets_over)
{
	struct rlimit before, none;
	struct words words;
	unsigned int fds;

	start(f, &words);
	fds = count_fds();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 3, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	put_many(&f->spool);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(words.begins, 1);
	assert_non_null(strstr(words.last_error, strerror(EMFILE)));
	assert_int_equal(spool_sync(&f->spool), 0);
	put_all(&f->spool, f->spool.tail.seq, f->spool.tail.seq + 10);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_int_equal(f->spool.durable.seq, f->spool.tail.seq);
	assert_int_equal(words.ends, 1);
	read_all(&f->spool);
	assert_int_equal(spool_sync(&f->spool), 0);
	assert_true(count_fds() <= fds);
	spool_close(&f->spool);
}

/* A disk that cannot be read for a while costs no record; one that stays so is logged. */
CASE(unreadable_records_are_tried_again)
{
	static const struct disk_fault unreadable = { DISK_READ, 0, 100000, EIO,
						      0 };
	struct spool_item item;
	struct words words;

	start(f, &words);
	disk_fail(&unreadable);
	for (int i = 0; i < 5; i++) {
		assert_false(spool_read(&f->spool, &item));
		spool_expire(&f->spool, 0);
	}
	disk_heal();
	get_all(&f->spool, 0, 30, &item);
	assert_int_equal(words.begins, 1);

	spool_rewind(&f->spool);
	disk_fail(&unreadable);
	for (int i = 0; i < 50; i++) {
		spool_read(&f->spool, &item);
		spool_expire(&f->spool, 0);
	}
	disk_heal();
	/* But for what had been read of the last file before. */
	assert_in_range(f->spool.dropped[SPOOL_DAMAGED].seq, 10, 30);
	assert_non_null(strstr(words.last_error, "are dropped"));
	assert_identity(&f->spool);
	spool_close(&f->spool);
}

/* Each start goes on where the last one ended: it leaves no file of its own. */
CASE(restarts_add_no_files)
{
	struct spool_item item;

	use_disk(f, true);
	for (uint64_t n = 0; n < 200; n++) {
		open_spool(f);
		put_all(&f->spool, n, n + 1);
		spool_close(&f->spool);
	}
	assert_int_equal(count_files(f->dir, ".seg", NULL), 1);
	open_spool(f);
	get_all(&f->spool, 0, 200, &item);
	assert_false(spool_read(&f->spool, &item));
	spool_close(&f->spool);
}
