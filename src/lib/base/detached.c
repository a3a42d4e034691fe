// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "detached.h"

#include "util.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

/*
 * As the first thread's: foreign libraries run there, and libpcap calls itself for each block of
 * an expression. Pages that are not touched cost nothing.
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
