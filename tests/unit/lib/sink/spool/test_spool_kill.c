// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* After a kill at any time, a spool on disk has all records that it reported as durable. */
#include "lib_test.h"
#include "lib_spool.h"

#include <signal.h>
#include <sys/wait.h>

/* Writes, syncs, reads and acknowledges at random; reports the durable records. */
static void be_killed(const struct spool_options *options, unsigned int seed,
		      int tell_fd)
{
	struct spool spool;
	struct spool_item item;

	srand(seed);
	if (spool_open(&spool, options))
		_exit(1);
	spool.capacity = 16 << 10; /* files come and go all the time */
	for (;;) {
		uint64_t told[2];
		bool is_any = false;

		for (int i = rand() % 50; i >= 0; i--)
			put(&spool, spool.tail.seq, 0);
		if (rand() % 2)
			spool_start_sync(&spool);
		else
			spool_sync(&spool);
		spool_finish_sync(&spool);
		for (int i = rand() % 60; i > 0 && spool_read(&spool, &item); i--)
			is_any = true;
		told[0] = spool.durable.seq;
		told[1] = spool.read.seq; /* it may be, but no more than that */
		if (write(tell_fd, told, sizeof(told)) != sizeof(told))
			_exit(1);
		if (is_any)
			spool_ack(&spool, item.end);
	}
}

SPOOL_TEST(whatever_was_durable_survives_kills)
{
	enum { KILLS = 500 };
	uint64_t durable = 0, acked = 0, told[2];

	use_disk(f, true);
	f->options.max_bytes = 64 << 20; /* so that nothing has to go */
	for (int i = 0; i < KILLS; i++) {
		struct spool_item item;
		int fds[2];
		pid_t child;

		assert_int_equal(pipe(fds), 0);
		child = fork();
		if (!child)
			be_killed(&f->options, (unsigned int)i, fds[1]);
		close(fds[1]);
		usleep((useconds_t)(i * 7919 % 8000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		while (read(fds[0], told, sizeof(told)) == sizeof(told)) {
			durable = told[0];
			acked = told[1] > acked ? told[1] : acked;
		}
		close(fds[0]);

		open_spool(f);
		assert_true(f->spool.tail.seq >= durable);
		assert_true(f->spool.acked.seq <= acked);
		assert_int_equal(f->spool.dropped[SPOOL_DAMAGED].seq, 0);
		for (uint64_t n = f->spool.acked.seq; n < f->spool.tail.seq; n++) {
			assert_true(spool_read(&f->spool, &item));
			assert_is_record(&item, n);
		}
		assert_identity(&f->spool);
		spool_close(&f->spool);
	}
	print_message("%llu records were durable, %llu acknowledged at most\n",
		      (unsigned long long)durable, (unsigned long long)acked);
	assert_true(durable > 1000);
	assert_true(acked > 100);
	assert_int_equal(count_files(f->dir, ".bad", NULL), 0);
}
