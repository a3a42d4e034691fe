// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "grace.h"

#include "base/detached.h"
#include "errand.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>

enum { OVER = 1, FAILED = 2 };

static int make_inner(void)
{
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t),
			      sizeof(uint32_t), 1, NULL);
}

static int make_outer(int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = inner_fd);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL,
			      sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
}

/* The kernel waits when a map of maps changes: see errand.h. */
static int wait_for_programs(void)
{
	cleanup_fd int inner = make_inner(), outer = -1;

	if (inner < 0)
		return inner;
	outer = make_outer(inner);
	return outer < 0 ? outer : errand_run(outer, 0, inner);
}

static void *run(void *arg)
{
	int fd = (intptr_t)arg;

	eventfd_write(fd, wait_for_programs() ? FAILED : OVER);
	close(fd);
	return NULL;
}

int grace_begin(void)
{
	cleanup_fd int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cleanup_fd int theirs = -1;
	int err;

	if (fd < 0)
		return -errno;
	theirs = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (theirs < 0)
		return -errno;
	err = detached_run(run, (void *)(intptr_t)theirs, true);
	if (err)
		return err;
	(void)TAKE_FD(theirs);
	return TAKE_FD(fd);
}

int grace_is_over(int fd)
{
	eventfd_t value;

	if (eventfd_read(fd, &value))
		return 0;
	return value == OVER ? 1 : -ECANCELED;
}
