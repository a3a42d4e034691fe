// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sessions that wait, in their order and up to a limit, and observers that fail. */
#include "lib_test.h"

#include "service/service_observers.h"

static bool add(struct session_queue *queue, uint32_t pid)
{
	const struct netobs_session session = { .pid = pid };

	return session_queue_add(queue, &session);
}

static uint32_t take(struct session_queue *queue)
{
	const uint32_t pid = session_queue_first(queue)->pid;

	session_queue_remove(queue);
	return pid;
}

TEST(sessions_leave_in_their_order)
{
	struct session_queue queue = { 0 };

	assert_null(session_queue_first(&queue));
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t pid = 1; pid <= 200; pid++)
			assert_true(add(&queue, pid));
		for (uint32_t pid = 1; pid <= 100; pid++)
			assert_int_equal(take(&queue), pid);
		assert_true(add(&queue, 201));
		for (uint32_t pid = 101; pid <= 201; pid++)
			assert_int_equal(take(&queue), pid);
		assert_null(session_queue_first(&queue));
		assert_null(queue.ring);
	}
}

TEST(a_full_queue_takes_another_for_one_that_leaves)
{
	struct session_queue queue = { 0 };

	for (uint32_t i = 0; i < SESSION_QUEUE_MAX; i++)
		assert_true(add(&queue, i));
	assert_false(add(&queue, SESSION_QUEUE_MAX));
	for (uint32_t i = 0; i < SESSION_QUEUE_MAX; i++) {
		assert_int_equal(take(&queue), i);
		assert_true(add(&queue, SESSION_QUEUE_MAX + i));
		assert_false(add(&queue, 0));
	}
	for (uint32_t i = 0; i < SESSION_QUEUE_MAX; i++)
		assert_int_equal(take(&queue), SESSION_QUEUE_MAX + i);
	assert_null(session_queue_first(&queue));
	assert_true(add(&queue, 1));
	session_queue_clear(&queue);
	assert_null(session_queue_first(&queue));
}

/* ---- Observers -------------------------------------------------------------------------- */

static int dispatched;

int __wrap_netobs_dispatch(struct netobs *netobs);

int __wrap_netobs_dispatch(struct netobs *netobs)
{
	(void)netobs;
	return dispatched;
}

TEST(an_observer_that_fails_is_an_error_and_a_signal_is_none)
{
	struct service_observers observers = {
		.sessions = { .netobs = (void *)&observers },
	};

	dispatched = -EINTR;
	assert_int_equal(service_observers_dispatch(&observers), 0);
	dispatched = -EIO;
	assert_int_equal(service_observers_dispatch(&observers), -EIO);
	/* Before the reload is in effect, a new one is neither read nor waited for. */
	observers.sessions.is_new = true;
	assert_int_equal(service_observers_dispatch(&observers), 0);
	assert_int_equal(service_observer_fd(&observers.sessions), -1);
}
