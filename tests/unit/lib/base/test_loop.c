// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "base/clock_ms.h"
#include "base/loop.h"
#include "lib_test.h"

#include <poll.h>
#include <sys/eventfd.h>

struct fixture {
	struct loop loop;
	int fds[3]; /* eventfds */
	unsigned int calls, last_fd;
	int err; /* what a call returns */
};

static void begin(struct fixture *f)
{
	assert_int_equal(loop_open(&f->loop), 0);
	for (int i = 0; i < 3; i++) {
		f->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(f->fds[i] >= 0);
	}
}

static void end(struct fixture *f)
{
	for (int i = 0; i < 3; i++)
		close_fd(&f->fds[i]);
	loop_close(&f->loop);
	loop_close(&f->loop);
}

TEST_FIXTURE(struct fixture, begin, end)

static int note_call(void *arg, int fd)
{
	struct fixture *f = arg;

	f->calls++;
	f->last_fd = (unsigned int)fd;
	return f->err;
}

static int remove_all(void *arg, int fd)
{
	struct fixture *f = arg;

	for (int i = 0; i < 3; i++)
		loop_watch(&f->loop, f->fds[i], 0, NULL, NULL);
	return note_call(f, fd);
}

static void watch(struct fixture *f, int i, loop_fn *fn)
{
	assert_int_equal(loop_watch(&f->loop, f->fds[i], EPOLLIN, fn, f), 0);
}

static bool is_readable(const struct fixture *f)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

CASE(only_what_is_ready_is_called)
{
	for (int i = 0; i < 3; i++)
		watch(f, i, note_call);
	assert_false(is_readable(f));
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(f->calls, 0);
	eventfd_write(f->fds[1], 1);
	assert_true(is_readable(f));
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->last_fd, f->fds[1]);
}

CASE(what_was_removed_is_not_called)
{
	for (int i = 0; i < 3; i++) {
		watch(f, i, remove_all);
		eventfd_write(f->fds[i], 1);
	}
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(loop_watch(&f->loop, f->fds[0], 0, NULL, NULL), -ENOENT);
}

CASE(descriptor_that_was_closed_can_come_again)
{
	int closed = f->fds[0];

	watch(f, 0, remove_all);
	close_fd(&f->fds[0]);
	f->fds[0] = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(f->fds[0], closed);
	watch(f, 0, note_call);
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(f->calls, 1);
	assert_true(is_readable(f));
}

CASE(error_ends_a_dispatch)
{
	f->err = -EIO;
	for (int i = 0; i < 3; i++) {
		watch(f, i, note_call);
		eventfd_write(f->fds[i], 1);
	}
	assert_int_equal(loop_dispatch(&f->loop), -EIO);
	assert_int_equal(f->calls, 1);
}

CASE(source_without_a_function_wakes_its_owner)
{
	watch(f, 0, NULL);
	eventfd_write(f->fds[0], 1);
	assert_true(is_readable(f));
	assert_int_equal(loop_dispatch(&f->loop), 0);
	assert_int_equal(f->calls, 0);
}

CASE(timer_expires_once_each_time_it_is_set)
{
	int timer;

	assert_int_equal(loop_add_timer(&f->loop, CLOCK_MONOTONIC, note_call, f,
					&timer),
			 0);
	assert_false(is_readable(f));
	for (unsigned int i = 1; i < 4; i++) {
		loop_set_timer(timer, 1);
		loop_dispatch(&f->loop);
		loop_dispatch(&f->loop);
		assert_int_equal(f->calls, i);
	}
	loop_set_timer(timer, 1);
	loop_set_timer(timer, 0);
	assert_false(is_readable(f));
	loop_set_timer(timer, clock_ns(CLOCK_MONOTONIC) + 3600 * NSEC_PER_SEC);
	loop_dispatch(&f->loop);
	assert_int_equal(f->calls, 3);
}

CASE(timer_repeats)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };
	int timer;

	assert_int_equal(loop_add_timer(&f->loop, CLOCK_MONOTONIC, note_call, f,
					&timer),
			 0);
	loop_repeat_timer(timer, 2);
	for (unsigned int i = 1; i < 4; i++) {
		assert_int_equal(poll(&fd, 1, 10000), 1);
		assert_int_equal(loop_dispatch(&f->loop), 0);
		assert_int_equal(f->calls, i);
	}
}
