// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "loop.h"

#include "util.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/timerfd.h>

enum { LOOP_EVENTS = 16 };

/* Events name the descriptor, not the source, which may have been removed since. */
struct loop_source {
	int fd;
	bool is_timer;
	loop_fn *fn;
	void *ctx;
};

int loop_open(struct loop *loop)
{
	*loop = (struct loop){ .fd = epoll_create1(EPOLL_CLOEXEC) };
	return loop->fd < 0 ? -errno : 0;
}

void loop_close(struct loop *loop)
{
	if (!loop->sources && loop->fd <= 0)
		return;
	for (size_t i = 0; i < loop->n_sources; i++)
		if (loop->sources[i].is_timer)
			close(loop->sources[i].fd);
	free(loop->sources);
	close_fd(&loop->fd);
	*loop = (struct loop){ .fd = -1 };
}

static struct loop_source *find_source(const struct loop *loop, int fd)
{
	for (size_t i = 0; i < loop->n_sources; i++)
		if (loop->sources[i].fd == fd)
			return &loop->sources[i];
	return NULL;
}

static int put_source(struct loop *loop, struct loop_source source)
{
	struct loop_source *known = find_source(loop, source.fd);

	if (!known) {
		known = reallocarray(loop->sources, loop->n_sources + 1,
				     sizeof(*known));
		if (!known)
			return -ENOMEM;
		loop->sources = known;
		known += loop->n_sources++;
	}
	*known = source;
	return 0;
}

static void remove_source(struct loop *loop, int fd)
{
	struct loop_source *source = find_source(loop, fd);

	if (source)
		*source = loop->sources[--loop->n_sources];
}

int loop_watch(struct loop *loop, int fd, uint32_t events, loop_fn *fn, void *ctx)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	int err;

	if (!events) {
		remove_source(loop, fd);
		return epoll_ctl(loop->fd, EPOLL_CTL_DEL, fd, NULL) ? -errno : 0;
	}
	err = put_source(loop, (struct loop_source){ fd, false, fn, ctx });
	if (err || !epoll_ctl(loop->fd, EPOLL_CTL_MOD, fd, &event) ||
	    !epoll_ctl(loop->fd, EPOLL_CTL_ADD, fd, &event))
		return err;
	err = -errno;
	remove_source(loop, fd);
	return err;
}

int loop_add_timer(struct loop *loop, clockid_t clock, loop_fn *fn, void *ctx,
		   int *ret_timer)
{
	cleanup_fd int fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
	int err = fd < 0 ? -errno : loop_watch(loop, fd, EPOLLIN, fn, ctx);

	if (err)
		return err;
	find_source(loop, fd)->is_timer = true;
	*ret_timer = TAKE_FD(fd);
	return 0;
}

void loop_set_timer(int timer, int64_t at_ns)
{
	const struct itimerspec at = {
		.it_value = { at_ns / NSEC_PER_SEC, at_ns % NSEC_PER_SEC },
	};

	timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void loop_repeat_timer(int timer, uint32_t period_ms)
{
	const struct timespec period = { period_ms / 1000,
					 period_ms % 1000 * NSEC_PER_MSEC };
	const struct itimerspec at = { period, period };

	timerfd_settime(timer, 0, &at, NULL);
}

/* False: a timer that was set anew since the event came. */
static bool is_ready(const struct loop_source *source)
{
	uint64_t expirations;

	return !source->is_timer ||
	       read(source->fd, &expirations, sizeof(expirations)) > 0;
}

int loop_dispatch(struct loop *loop)
{
	struct epoll_event events[LOOP_EVENTS];
	int n = epoll_wait(loop->fd, events, LOOP_EVENTS, 0), err = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n && !err; i++) {
		const struct loop_source *source =
			find_source(loop, events[i].data.fd);

		if (source && source->fn && is_ready(source))
			err = source->fn(source->ctx, source->fd);
	}
	return err;
}
