// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "life.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "privilege.h"
#include "util.h"

void life_init(struct life *life, const struct life_ops *ops, void *owner,
	       void (*write)(int level, const char *message, void *user),
	       void *user)
{
	*life = (struct life){
		.ops = ops,
		.owner = owner,
		.log = { write, user, &life->error },
		.loop.fd = -1,
		.stop_fd = -1,
	};
}

static int on_stop(void *ctx, int fd)
{
	struct life *life = ctx;
	eventfd_t times;

	eventfd_read(fd, &times);
	if (life->state != LIFE_RUNNING)
		return 0;
	life->ops->stop(life->owner);
	life->state = LIFE_STOPPING;
	return 0;
}

int life_open(struct life *life)
{
	int err = loop_open(&life->loop);

	if (err)
		return err;
	life->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (life->stop_fd < 0)
		return -errno;
	return loop_watch(&life->loop, life->stop_fd, EPOLLIN, on_stop, life);
}

void life_close(struct life *life)
{
	loop_close(&life->loop);
	close_fd(&life->stop_fd);
}

int life_check(const struct life *life)
{
	if (life->state == LIFE_STOPPED)
		return -ECANCELED;
	return life->state < LIFE_RUNNING ? -EINVAL : 0;
}

int life_start(struct life *life)
{
	int err = life->state == LIFE_NEW ? 0 : -EALREADY;

	log_expect_error(&life->log);
	if (!err) {
		life->state = LIFE_FAILED;
		err = life->ops->start(life->owner);
	}
	return privilege_keep_error(&life->log, life->ops->privileges, err);
}

/* What was delivered last is returned before -ECANCELED. */
static int dispatch_ready(struct life *life)
{
	int err = life_check(life);

	if (err)
		return err;
	life->delivered = 0;
	err = loop_dispatch(&life->loop);
	err = err ?: life->ops->step(life->owner);
	return err ?: life->delivered ?: life_check(life);
}

int life_dispatch(struct life *life)
{
	log_expect_error(&life->log);
	return log_keep_error(&life->log, "cannot dispatch",
			      dispatch_ready(life));
}

void life_stop(struct life *life)
{
	const uint64_t one = 1;
	int saved = errno;

	__atomic_store_n(&life->is_stopping, true, __ATOMIC_RELAXED);
	/* Fails only when the descriptor is as readable as can be. */
	(void)!write(life->stop_fd, &one, sizeof(one));
	errno = saved;
}
