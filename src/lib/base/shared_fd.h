/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A file descriptor that a context and its threads share; the last closes it. */
#ifndef NETOBS_BASE_SHARED_FD_H
#define NETOBS_BASE_SHARED_FD_H

struct shared_fd;

/* Takes @fd over, also on failure. NULL: no memory. */
struct shared_fd *shared_fd_new(int fd);

/* Close @fd with it; -1: nothing. Before others have a reference. */
void shared_fd_put_beside(struct shared_fd *shared, int fd);

/* -1: nothing; also of NULL. */
int shared_fd_beside(const struct shared_fd *shared);

/* Another reference; NULL is fine. */
struct shared_fd *shared_fd_ref(struct shared_fd *shared);

/* Give a reference back; NULL is fine. */
void shared_fd_unref(struct shared_fd *shared);

/* -1 of NULL. */
int shared_fd_get(const struct shared_fd *shared);

#endif
