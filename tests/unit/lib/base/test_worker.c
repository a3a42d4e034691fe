// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/worker.h"
#include "lib_test.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

/* How often the thread may run a piece of work, and may report one. */
static sem_t may_run, may_write, written;

/* In place of the function of the C library, to delay it. */
int eventfd_write(int fd, eventfd_t value)
{
	ssize_t len;

	sem_wait(&may_write);
	len = write(fd, &value, sizeof(value));
	sem_post(&written);
	return len == sizeof(value) ? 0 : -1;
}

static void run(void *work)
{
	sem_wait(&may_run);
	++*(int *)work;
}

static void keep(void *work)
{
	(void)work;
}

static int set_up(void **state)
{
	struct worker *worker;

	assert_int_equal(sem_init(&may_run, 0, 0), 0);
	assert_int_equal(sem_init(&may_write, 0, 0), 0);
	assert_int_equal(sem_init(&written, 0, 0), 0);
	assert_int_equal(worker_new(run, keep, &worker), 0);
	*state = worker;
	return 0;
}

static int tear_down(void **state)
{
	worker_free(*state);
	return 0;
}

static bool is_readable(const struct worker *worker, int timeout_ms)
{
	struct pollfd fd = { .fd = worker_fd(worker), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

static void *take_when_done(struct worker *worker)
{
	void *work;

	while (!(work = worker_take(worker)))
		sched_yield();
	return work;
}

#define CASE(name) TEST_OF(name, struct worker *worker, set_up, tear_down)

CASE(work_is_taken_once)
{
	int n = 0;

	sem_post(&may_write);
	assert_false(worker_is_busy(worker));
	assert_int_equal(worker_start(worker, &n), 0);
	assert_null(worker_take(worker));
	assert_false(is_readable(worker, 0));
	sem_post(&may_run);
	assert_true(is_readable(worker, -1));
	assert_ptr_equal(worker_take(worker), &n);
	assert_int_equal(n, 1);
	assert_null(worker_take(worker));
	assert_false(is_readable(worker, 0));
	sem_wait(&written);
}

CASE(worker_is_busy_until_work_is_taken)
{
	int n = 0;

	sem_post(&may_write);
	assert_int_equal(worker_start(worker, &n), 0);
	assert_true(worker_is_busy(worker));
	sem_post(&may_run);
	worker_wait(worker, -1);
	assert_true(worker_is_busy(worker));
	assert_ptr_equal(worker_take(worker), &n);
	assert_false(worker_is_busy(worker));
	sem_wait(&written);
}

CASE(child_of_fork_lacks_the_thread)
{
	int n = 0, status;
	pid_t child;

	sem_post(&may_write);
	assert_int_equal(worker_start(worker, &n), 0);
	child = fork();
	if (!child)
		_exit(!worker_is_lost(worker));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(worker_is_lost(worker));
	sem_post(&may_run);
	worker_wait(worker, -1);
	assert_ptr_equal(worker_take(worker), &n);
	sem_wait(&written);
}

/* The second work begins before the first is reported, which is then. */
static void begin_before_report(struct worker *worker, int *first, int *second)
{
	sem_post(&may_run);
	assert_int_equal(worker_start(worker, first), 0);
	assert_ptr_equal(take_when_done(worker), first);
	assert_int_equal(worker_start(worker, second), 0);
	sem_post(&may_write);
	sem_wait(&written);
}

/* Work is taken between the end of it and the report. */
CASE(late_report_does_not_stay)
{
	int first = 0, second = 0;

	sem_post(&may_run);
	assert_int_equal(worker_start(worker, &first), 0);
	assert_ptr_equal(take_when_done(worker), &first);
	assert_false(is_readable(worker, 0));
	sem_post(&may_write);
	assert_true(is_readable(worker, -1));
	assert_null(worker_take(worker));
	assert_false(is_readable(worker, 0));

	/* Nor does it hide the end of work that was started meanwhile. */
	sem_wait(&written);
	begin_before_report(worker, &first, &second);
	assert_null(worker_take(worker));
	assert_false(is_readable(worker, 0));
	sem_post(&may_run);
	sem_post(&may_write);
	assert_true(is_readable(worker, -1));
	assert_ptr_equal(worker_take(worker), &second);
	sem_wait(&written);
}

/* Else a wait for it would not sleep. */
CASE(late_report_ends_no_later_wait)
{
	int first = 0, second = 0;

	begin_before_report(worker, &first, &second);
	assert_true(is_readable(worker, 0));
	worker_wait(worker, 1);
	assert_false(is_readable(worker, 0));
	sem_post(&may_run);
	sem_post(&may_write);
	worker_wait(worker, -1);
	assert_true(is_readable(worker, -1));
	assert_ptr_equal(worker_take(worker), &second);
	sem_wait(&written);
}
