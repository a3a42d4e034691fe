// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "errand.h"

#include "base/detached.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>

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

	/*
	 * When all CPUs are flooded a thread of the usual kind would have to wait
	 * for its turn, while the flows want their room.
	 */
	if (errand && !detached_run(run, errand, true))
		return 0;
	if (errand)
		free_errand(errand);
	return errand_run(outer_fd, index, inner_fd); /* the caller waits */
}
