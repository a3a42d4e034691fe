// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a thread did, against a model that has a state for each nanosecond. */
#include "lib_seed.h"
#include "lib_test.h"

#include "trace/thread_sums.h"

enum {
	NS = 4096, /* of the model */
	CASES = 200,
	SUMS = 50,
	NEVER = SCHED_UNKNOWN,
};

struct fixture {
	struct thread_times times;
	uint64_t room;
	uint8_t model[NS]; /* enum sched_thread_state */
};

static void open_fixture(struct fixture *f)
{
	memset(f->model, NEVER, sizeof(f->model));
}

static void close_fixture(struct fixture *f)
{
	thread_times_clear(&f->times, &f->room);
	assert_int_equal(f->room, 0);
}

TEST_FIXTURE(struct fixture, open_fixture, close_fixture)

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

static void add(struct fixture *f, int64_t at_ns, enum sched_thread_state state)
{
	thread_times_add(&f->times, &f->room, at_ns, state);
	memset(f->model + at_ns, (int)state, (size_t)(NS - at_ns));
}

static void assert_like_model(struct fixture *f, int64_t from_ns, int64_t until_ns)
{
	uint64_t ns[NETOBS_THREAD_STATES], want[SCHED_UNKNOWN + 1] = { 0 };

	for (int64_t i = from_ns; i < until_ns; i++)
		want[f->model[i]]++;
	if (want[SCHED_GONE] || want[NEVER]) {
		assert_false(thread_times_sum(&f->times, from_ns, until_ns, ns));
		return;
	}
	assert_true(thread_times_sum(&f->times, from_ns, until_ns, ns));
	assert_memory_equal(ns, want, sizeof(ns));
}

static void add_random(struct fixture *f)
{
	for (int64_t at_ns = 1 + test_below(NS / 2); at_ns < NS;
	     at_ns += 1 + test_below(64))
		add(f, at_ns, test_below(SCHED_GONE + 1));
}

static void sum_random(struct fixture *f)
{
	for (int i = 0; i < SUMS; i++) {
		const uint32_t from_ns = test_below(NS);

		assert_like_model(f, from_ns,
				  from_ns + 1 + test_below(NS - from_ns));
	}
}

CASE(random_changes_add_up_as_in_the_model)
{
	for (int i = 0; i < CASES; i++) {
		const uint32_t cut_ns = test_below(NS);

		thread_times_clear(&f->times, &f->room);
		memset(f->model, NEVER, sizeof(f->model));
		add_random(f);
		sum_random(f);
		/* What was before the cut may be known or not: the state at that time is. */
		thread_times_cut(&f->times, cut_ns);
		memset(f->model, NEVER,
		       min_u64(NS, (uint64_t)thread_times_begin(&f->times)));
		assert_true(thread_times_begin(&f->times) <= (int64_t)cut_ns ||
			    f->model[cut_ns] == NEVER);
		sum_random(f);
	}
}

CASE(a_change_comes_after_the_last_one)
{
	uint64_t ns[NETOBS_THREAD_STATES];

	add(f, 10, SCHED_SLEEP);
	thread_times_add(&f->times, &f->room, 9, SCHED_WAIT);
	thread_times_add(&f->times, &f->room, 10, SCHED_RUN);
	memset(f->model + 11, SCHED_WAIT, 1);
	memset(f->model + 12, SCHED_RUN, NS - 12);
	assert_like_model(f, 10, NS);
	assert_int_equal(thread_times_state(&f->times), SCHED_RUN);
	assert_false(thread_times_sum(&f->times, 9, 11, ns));
	assert_false(thread_times_sum(&f->times, 12, 11, ns));
}

/* The oldest changes go, and the time before is not known. */
CASE(a_thread_that_changes_often_is_known_for_a_shorter_time)
{
	const int64_t n = 3 * THREAD_TIMES_MAX;
	uint64_t ns[NETOBS_THREAD_STATES];

	for (int64_t i = 1; i <= n; i++)
		thread_times_add(&f->times, &f->room, 10 * i,
				 i % 2 ? SCHED_RUN : SCHED_SLEEP);
	assert_int_equal(f->room, THREAD_TIMES_MAX);
	assert_int_equal(thread_times_begin(&f->times),
			 10 * (n - THREAD_TIMES_MAX + 1));
	assert_true(thread_times_sum(&f->times, thread_times_begin(&f->times),
				     10 * n + 10, ns));
	assert_int_equal(ns[NETOBS_THREAD_RUN], 5 * THREAD_TIMES_MAX);
	assert_int_equal(ns[NETOBS_THREAD_SLEEP], 5 * THREAD_TIMES_MAX);
}

CASE(all_threads_share_a_limit)
{
	struct thread_times others = { 0 };

	f->room = THREAD_TIMES_ROOM;
	thread_times_add(&others, &f->room, 1, SCHED_RUN);
	assert_int_equal(thread_times_begin(&others), INT64_MAX);
	assert_int_equal(thread_times_state(&others), SCHED_UNKNOWN);
	f->room = 0;
}
