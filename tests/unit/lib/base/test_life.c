// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The states of an object that runs, and the result of each call in them. */
#include "base/life.h"
#include "lib_test.h"

#include <sys/eventfd.h>

struct owner {
	struct life life;
	int start_err, step_err;
	int delivers; /* in each step */
	unsigned int steps, stops;
};

static struct netobs *of(struct owner *owner)
{
	return (struct netobs *)owner;
}

static int start_owner(void *arg)
{
	struct owner *owner = arg;

	if (!owner->start_err)
		owner->life.state = LIFE_RUNNING;
	return owner->start_err;
}

static void stop_owner(void *arg)
{
	struct owner *owner = arg;

	owner->stops++;
}

static int step_owner(void *arg)
{
	struct owner *owner = arg;

	owner->steps++;
	owner->life.delivered = owner->delivers;
	if (owner->life.state == LIFE_STOPPING)
		owner->life.state = LIFE_STOPPED;
	return owner->step_err;
}

static void free_nothing(void *arg)
{
	(void)arg;
}

static const struct life_ops ops = {
	.start = start_owner,
	.stop = stop_owner,
	.step = step_owner,
	.free = free_nothing,
};

static int set_up(void **state)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	life_init(&owner->life, &ops, NULL, NULL);
	assert_int_equal(life_open(&owner->life), 0);
	*state = owner;
	return 0;
}

static int tear_down(void **state)
{
	netobs_free(*state);
	return 0;
}

#define CASE(name) TEST_OF(name, struct owner *owner, set_up, tear_down)

CASE(only_a_started_object_is_dispatched)
{
	assert_int_equal(netobs_dispatch(of(owner)), -EINVAL);
	assert_int_equal(netobs_start(of(owner)), 0);
	assert_int_equal(netobs_start(of(owner)), -EALREADY);
	assert_int_equal(netobs_dispatch(of(owner)), 0);
	assert_int_equal(owner->steps, 1);
}

CASE(an_object_is_of_one_kind)
{
	const struct life_ops others = ops;

	assert_ptr_equal(life_as(of(owner), &ops), owner);
	assert_null(life_as(of(owner), &others));
	assert_null(life_as(NULL, &ops));
}

CASE(a_failed_start_is_final)
{
	owner->start_err = -ENODEV;
	assert_int_equal(netobs_start(of(owner)), -ENODEV);
	assert_int_equal(owner->life.state, LIFE_FAILED);
	owner->start_err = 0;
	assert_int_equal(netobs_start(of(owner)), -EALREADY);
	assert_int_equal(netobs_dispatch(of(owner)), -EINVAL);
	assert_int_equal(owner->steps, 0);
}

CASE(the_last_delivery_comes_before_the_end)
{
	assert_int_equal(netobs_start(of(owner)), 0);
	owner->delivers = 3;
	assert_int_equal(netobs_dispatch(of(owner)), 3);
	netobs_stop(of(owner));
	netobs_stop(of(owner));
	assert_true(owner->life.is_stopping);
	assert_int_equal(owner->life.state, LIFE_RUNNING);
	assert_int_equal(netobs_dispatch(of(owner)), 3);
	assert_int_equal(owner->stops, 1);
	assert_int_equal(owner->life.state, LIFE_STOPPED);
	assert_int_equal(netobs_dispatch(of(owner)), -ECANCELED);
	assert_int_equal(owner->steps, 2);
}

static int fail_once(void *arg, int fd)
{
	eventfd_t count;

	(void)arg;
	eventfd_read(fd, &count);
	return -EIO;
}

CASE(errors_of_the_loop_and_of_a_step_are_returned)
{
	cleanup_fd int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_int_equal(netobs_start(of(owner)), 0);
	owner->delivers = 3;
	assert_int_equal(
		loop_watch(&owner->life.loop, fd, EPOLLIN, fail_once, NULL), 0);
	assert_int_equal(netobs_dispatch(of(owner)), -EIO);
	assert_int_equal(owner->steps, 0);
	assert_int_equal(netobs_dispatch(of(owner)), 3);
	owner->step_err = -ENOSPC;
	assert_int_equal(netobs_dispatch(of(owner)), -ENOSPC);
}
