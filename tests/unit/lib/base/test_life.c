// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The states of an object that runs, and the result of each call in them. */
#include "base/life.h"
#include "base/util.h"
#include "lib_test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct owner {
	struct life life;
	int start_err, step_err;
	int delivers; /* in each step */
	unsigned int steps, stops;
};

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

static const struct life_ops ops = {
	.start = start_owner,
	.stop = stop_owner,
	.step = step_owner,
};

static int set_up(void **state)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	life_init(&owner->life, &ops, owner, NULL, NULL);
	assert_int_equal(life_open(&owner->life), 0);
	*state = owner;
	return 0;
}

static int tear_down(void **state)
{
	struct owner *owner = *state;

	life_close(&owner->life);
	free(owner);
	return 0;
}

#define CASE(name) TEST_OF(name, struct owner *owner, set_up, tear_down)

CASE(only_a_started_object_is_dispatched)
{
	assert_int_equal(life_dispatch(&owner->life), -EINVAL);
	assert_int_equal(life_start(&owner->life), 0);
	assert_int_equal(life_start(&owner->life), -EALREADY);
	assert_int_equal(life_dispatch(&owner->life), 0);
	assert_int_equal(owner->steps, 1);
}

CASE(a_failed_start_is_final)
{
	owner->start_err = -ENODEV;
	assert_int_equal(life_start(&owner->life), -ENODEV);
	assert_int_equal(owner->life.state, LIFE_FAILED);
	owner->start_err = 0;
	assert_int_equal(life_start(&owner->life), -EALREADY);
	assert_int_equal(life_dispatch(&owner->life), -EINVAL);
	assert_int_equal(owner->steps, 0);
}

CASE(the_last_delivery_comes_before_the_end)
{
	assert_int_equal(life_start(&owner->life), 0);
	owner->delivers = 3;
	assert_int_equal(life_dispatch(&owner->life), 3);
	life_stop(&owner->life);
	life_stop(&owner->life);
	assert_true(owner->life.is_stopping);
	assert_int_equal(owner->life.state, LIFE_RUNNING);
	assert_int_equal(life_dispatch(&owner->life), 3);
	assert_int_equal(owner->stops, 1);
	assert_int_equal(owner->life.state, LIFE_STOPPED);
	assert_int_equal(life_dispatch(&owner->life), -ECANCELED);
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

	assert_int_equal(life_start(&owner->life), 0);
	owner->delivers = 3;
	assert_int_equal(
		loop_watch(&owner->life.loop, fd, EPOLLIN, fail_once, NULL), 0);
	assert_int_equal(life_dispatch(&owner->life), -EIO);
	assert_int_equal(owner->steps, 0);
	assert_int_equal(life_dispatch(&owner->life), 3);
	owner->step_err = -ENOSPC;
	assert_int_equal(life_dispatch(&owner->life), -ENOSPC);
}
