// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "io.h"

#include "util.h"

#include <stdatomic.h>

struct shared_fd {
	atomic_int users;
	int fd;
	int beside; /* -1: nothing */
};

struct shared_fd *shared_fd_new(int fd)
{
	struct shared_fd *shared = malloc(sizeof(*shared));

	if (!shared) {
		close_fd(&fd);
		return NULL;
	}
	shared->users = 1;
	shared->fd = fd;
	shared->beside = -1;
	return shared;
}

void shared_fd_put_beside(struct shared_fd *shared, int fd)
{
	close_fd(&shared->beside);
	shared->beside = fd;
}

int shared_fd_beside(const struct shared_fd *shared)
{
	return shared ? shared->beside : -1;
}

struct shared_fd *shared_fd_ref(struct shared_fd *shared)
{
	if (shared)
		atomic_fetch_add(&shared->users, 1);
	return shared;
}

void shared_fd_unref(struct shared_fd *shared)
{
	if (!shared || atomic_fetch_sub(&shared->users, 1) > 1)
		return;
	close_fd(&shared->fd);
	close_fd(&shared->beside);
	free(shared);
}

int shared_fd_get(const struct shared_fd *shared)
{
	return shared ? shared->fd : -1;
}
