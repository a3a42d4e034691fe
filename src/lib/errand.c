// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "errand.h"

#include "util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

enum { STACK_SIZE = 64 << 10 };

struct errand {
	int outer_fd;
	uint32_t index;
	int inner_fd;
};

int errand_run(int outer_fd, uint32_t index, int inner_fd)
{
	if (inner_fd < 0)
		return bpf_map_delete_elem(outer_fd, &index);
	return bpf_map_update_elem(outer_fd, &index, &inner_fd, BPF_ANY);
}

static void free_errand(struct errand *errand)
{
	close_fd(&errand->outer_fd);
	close_fd(&errand->inner_fd);
	free(errand);
}

static void *run(void *arg)
{
	struct errand *errand = arg;

	errand_run(errand->outer_fd, errand->index, errand->inner_fd);
	free_errand(errand);
	return NULL;
}

/*
 * When all CPUs are flooded a thread of the usual kind would have to wait for its
 * turn, while the flows want their room.
 */
static void make_urgent(pthread_attr_t *attr)
{
	const struct sched_param param = {
		.sched_priority = sched_get_priority_min(SCHED_FIFO),
	};

	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_FIFO);
	pthread_attr_setschedparam(attr, &param);
}

/* Signals are for the caller's threads. */
static int start_thread(struct errand *errand)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, max_u64(STACK_SIZE, PTHREAD_STACK_MIN));
	make_urgent(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, run, errand);
	if (err == EPERM) { /* not allowed to be urgent */
		pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
		err = pthread_create(&thread, &attr, run, errand);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static struct errand *make_errand(int outer_fd, uint32_t index, int inner_fd)
{
	struct errand *errand = malloc(sizeof(*errand));

	if (!errand)
		return NULL;
	*errand = (struct errand){
		.outer_fd = fcntl(outer_fd, F_DUPFD_CLOEXEC, 0),
		.index = index,
		.inner_fd = inner_fd < 0 ? -1 :
					   fcntl(inner_fd, F_DUPFD_CLOEXEC, 0),
	};
	if (errand->outer_fd >= 0 && (inner_fd < 0 || errand->inner_fd >= 0))
		return errand;
	free_errand(errand);
	return NULL;
}

int errand_send(int outer_fd, uint32_t index, int inner_fd)
{
	struct errand *errand = make_errand(outer_fd, index, inner_fd);

	if (errand && !start_thread(errand))
		return 0;
	if (errand)
		free_errand(errand);
	return errand_run(outer_fd, index, inner_fd); /* the caller waits */
}
