// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "life.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "privilege.h"
#include "util.h"

void life_init(struct life *life, const struct life_ops *ops,
	       void (*write)(int level, const char *message, void *user),
	       void *user)
{
	*life = (struct life){
		.ops = ops,
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
	life->ops->stop(life);
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

int life_made(struct life *life, const char *what, int err,
	      char (*error)[NETOBS_ERROR_MAX], struct netobs **ret_netobs)
{
	char doing[64];

	snprintf(doing, sizeof(doing), "cannot make %s", what);
	err = log_keep_error(&life->log, doing, err);
	if (!err) {
		*ret_netobs = (struct netobs *)life;
		return 0;
	}
	log_copy_error(&life->log, error);
	netobs_free((struct netobs *)life);
	return err;
}

int life_check(const struct life *life)
{
	if (life->state == LIFE_STOPPED)
		return -ECANCELED;
	return life->state < LIFE_RUNNING ? -EINVAL : 0;
}

/* The count of what was delivered last is returned before -ECANCELED. */
static int dispatch_ready(struct life *life)
{
	int err = life_check(life);

	if (err)
		return err;
	life->delivered = 0;
	if (life->ops->begin)
		life->ops->begin(life);
	err = loop_dispatch(&life->loop);
	err = err ?: life->ops->step(life);
	return err ?: life->delivered ?: life_check(life);
}

/* ---- The functions of all kinds -------------------------------------------------------- */

int netobs_start(struct netobs *netobs)
{
	struct life *life = (struct life *)netobs;
	int err;

	if (!life)
		return -EINVAL;
	err = life->state == LIFE_NEW ? 0 : -EALREADY;
	log_expect_error(&life->log);
	if (!err) {
		life->state = LIFE_FAILED;
		err = life->ops->start(life);
	}
	return privilege_keep_error(&life->log, life->ops->privileges, err);
}

const char *netobs_last_error(const struct netobs *netobs)
{
	return netobs ? ((const struct life *)netobs)->error.text : "";
}

int netobs_fd(const struct netobs *netobs)
{
	return netobs ? ((const struct life *)netobs)->loop.fd : -EINVAL;
}

int netobs_dispatch(struct netobs *netobs)
{
	struct life *life = (struct life *)netobs;

	if (!life)
		return -EINVAL;
	log_expect_error(&life->log);
	return log_keep_error(&life->log, "cannot dispatch",
			      dispatch_ready(life));
}

int netobs_poll(struct netobs *netobs, int timeout_ms)
{
	struct pollfd fd = { .fd = netobs_fd(netobs), .events = POLLIN };

	if (netobs && !life_check((struct life *)netobs) &&
	    poll(&fd, 1, timeout_ms) < 0)
		return -errno;
	return netobs_dispatch(netobs);
}

void netobs_stop(struct netobs *netobs)
{
	struct life *life = (struct life *)netobs;
	const uint64_t one = 1;
	int saved = errno;

	if (!life)
		return;
	__atomic_store_n(&life->is_stopping, true, __ATOMIC_RELAXED);
	/* Fails only when the descriptor is as readable as can be. */
	(void)!write(life->stop_fd, &one, sizeof(one));
	errno = saved;
}

void netobs_free(struct netobs *netobs)
{
	struct life *life = (struct life *)netobs;

	if (!life)
		return;
	life->ops->free(life);
	loop_close(&life->loop);
	close_fd(&life->stop_fd);
	free(life);
}
