// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Events that wait for the first dispatch of a tracer: all of them in order, up to a limit. */
#include "lib_test.h"

#include "trace/trace_state.h"

struct seen {
	uint64_t n;
	struct trace_early *early; /* NULL: it keeps no more */
};

static void see(void *ctx, const struct netobs_trace_event *event)
{
	struct seen *seen = ctx;

	assert_int_equal(event->connection, seen->n++);
	if (seen->early)
		assert_true(trace_early_keep(seen->early, event));
}

static void keep(struct trace_early *early, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		const struct netobs_trace_event event = { .connection = i };

		assert_true(trace_early_keep(early, &event));
	}
}

TEST(events_are_delivered_once_and_in_order)
{
	struct trace_early early = { 0 };
	struct seen seen = { 0 };

	keep(&early, 1000);
	trace_early_deliver(&early, see, &seen);
	assert_int_equal(seen.n, 1000);
	trace_early_deliver(&early, see, &seen);
	assert_int_equal(seen.n, 1000);
}

TEST(those_beyond_the_limit_are_refused)
{
	struct trace_early early = { 0 };
	struct seen seen = { 0 };

	keep(&early, TRACE_EARLY_MAX);
	assert_false(trace_early_keep(&early, &(struct netobs_trace_event){ 0 }));
	trace_early_deliver(&early, see, &seen);
	assert_int_equal(seen.n, TRACE_EARLY_MAX);
	keep(&early, 1);
	trace_early_free(&early);
	assert_int_equal(early.n, 0);
}

TEST(a_callback_may_keep_more)
{
	struct trace_early early = { 0 };
	struct seen seen = { .early = &early };

	keep(&early, 100);
	trace_early_deliver(&early, see, &seen);
	assert_int_equal(early.n, 100);
	seen = (struct seen){ 0 };
	trace_early_deliver(&early, see, &seen);
	assert_int_equal(seen.n, 100);
}
