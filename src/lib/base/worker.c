// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "worker.h"

#include "clock_ms.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Threads ------------------------------------------------------------------------ */

/*
 * The size of the first thread's stack: foreign libraries run on it, and libpcap calls itself for each
 * block of an expression. Pages that are not touched cost nothing.
 */
enum { STACK_SIZE = 8 << 20 };

static void make_urgent(pthread_attr_t *attr)
{
	const struct sched_param param = {
		.sched_priority = sched_get_priority_min(SCHED_FIFO),
	};

	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_FIFO);
	pthread_attr_setschedparam(attr, &param);
}

static int create_thread(void *(*run)(void *arg), void *arg, bool urgent)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, max_u64(STACK_SIZE, PTHREAD_STACK_MIN));
	if (urgent)
		make_urgent(&attr);
	err = pthread_create(&thread, &attr, run, arg);
	if (err == EPERM) {
		pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
		err = pthread_create(&thread, &attr, run, arg);
	}
	pthread_attr_destroy(&attr);
	return err;
}

int detached_run(void *(*run)(void *arg), void *arg, bool urgent)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = create_thread(run, arg, urgent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* ---- Workers ------------------------------------------------------------------------ */

enum state { IDLE, BUSY, DONE };

/* Shared with the thread; the last one to drop it frees it. */
struct worker {
	void (*run)(void *work);
	void (*free_work)(void *work);
	atomic_int users;
	atomic_int state; /* enum state */
	int fd;
	pid_t pid; /* of the process that has the thread */
	void *work;
};

int worker_new(void (*run)(void *work), void (*free_work)(void *work),
	       struct worker **ret_worker)
{
	cleanup_fd int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct worker *worker;

	if (fd < 0)
		return -errno;
	worker = calloc(1, sizeof(*worker));
	if (!worker)
		return -ENOMEM;
	worker->run = run;
	worker->free_work = free_work;
	worker->users = 1;
	worker->fd = TAKE_FD(fd);
	*ret_worker = worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	if (worker && worker_is_lost(worker)) /* no thread drops it */
		atomic_fetch_sub(&worker->users, 1);
	if (!worker || atomic_fetch_sub(&worker->users, 1) > 1)
		return;
	if (worker->work)
		worker->free_work(worker->work);
	close(worker->fd);
	free(worker);
}

int worker_fd(const struct worker *worker)
{
	return worker->fd;
}

static void *worker_thread(void *arg)
{
	struct worker *worker = arg;

	worker->run(worker->work);
	atomic_store(&worker->state, DONE);
	eventfd_write(worker->fd, 1);
	worker_free(worker);
	return NULL;
}

int worker_start(struct worker *worker, void *work)
{
	int err;

	worker->work = work;
	worker->pid = getpid();
	atomic_store(&worker->state, BUSY);
	atomic_fetch_add(&worker->users, 1);
	err = detached_run(worker_thread, worker, false);
	if (!err)
		return 0;
	atomic_fetch_sub(&worker->users, 1);
	atomic_store(&worker->state, IDLE);
	worker->work = NULL;
	return err;
}

void worker_put_done(struct worker *worker, void *work)
{
	worker->work = work;
	atomic_store(&worker->state, DONE);
	eventfd_write(worker->fd, 1);
}

void worker_start_or_run(struct worker *worker, void *work)
{
	if (!worker_start(worker, work))
		return;
	worker->run(work);
	worker_put_done(worker, work);
}

bool worker_is_busy(const struct worker *worker)
{
	return atomic_load(&worker->state) != IDLE;
}

bool worker_is_lost(const struct worker *worker)
{
	return atomic_load(&worker->state) == BUSY && worker->pid != getpid();
}

/*
 * A late report of work that was taken before would end each wait at once, so it is read. That of
 * this work may be read with it, and is written again.
 */
static void await_report(const struct worker *worker, int timeout_ms)
{
	struct pollfd fd = { .fd = worker->fd, .events = POLLIN };
	eventfd_t count;

	if (poll(&fd, 1, timeout_ms) <= 0 || atomic_load(&worker->state) != BUSY)
		return;
	eventfd_read(worker->fd, &count);
	if (atomic_load(&worker->state) != BUSY)
		eventfd_write(worker->fd, 1);
}

void worker_wait(const struct worker *worker, int timeout_ms)
{
	int64_t end_ms = now_ms() + timeout_ms;

	while (atomic_load(&worker->state) == BUSY &&
	       (timeout_ms < 0 || now_ms() < end_ms))
		await_report(worker, timeout_ms < 0 ? -1 : left_ms(end_ms));
}

void *worker_take(struct worker *worker)
{
	eventfd_t count;

	/*
	 * First, and whatever the state is: the thread writes after it is DONE, so the work may
	 * have been taken before, and nothing else makes the descriptor unreadable then.
	 */
	eventfd_read(worker->fd, &count);
	if (atomic_load(&worker->state) != DONE)
		return NULL;
	atomic_store(&worker->state, IDLE);
	return TAKE_PTR(worker->work);
}
