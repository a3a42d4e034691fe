// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Tracers that cannot be made, as that takes no privileges: what becomes of their messages, and of the loader. */
#include "lib_test.h"
#include "lib_witness.h"

#include "service/service_trace.h"

#include <poll.h>
#include <pthread.h>

struct caller {
	struct witness witness;
	pthread_t thread;
};

static void note_message(int level, const char *message, void *user)
{
	struct caller *caller = user;

	assert_true(pthread_equal(caller->thread, pthread_self()));
	witness_on_log(level, message, &caller->witness);
}

static struct trace_loader *begin(struct caller *caller)
{
	NETOBS_OPTS(netobs_trace_opts, opts, .on_log = note_message,
		    .user = caller); /* with no callback that would get anything */
	struct trace_loader *loader;

	caller->thread = pthread_self();
	assert_int_equal(trace_loader_new(&loader), 0);
	assert_int_equal(trace_loader_begin(loader, &opts), 0);
	assert_true(trace_loader_is_busy(loader));
	return loader;
}

static void assert_refused(struct trace_loader *loader)
{
	struct pollfd fd = { .fd = trace_loader_fd(loader), .events = POLLIN };
	struct netobs *tracer;
	int result;

	do
		assert_true(poll(&fd, 1, -1) > 0);
	while (!trace_loader_take(loader, &tracer, &result));
	assert_null(tracer);
	assert_int_equal(result, -EINVAL);
	assert_false(trace_loader_is_busy(loader));
}

TEST(messages_are_passed_on_when_the_result_is_taken)
{
	struct caller caller = { .witness = { .errors = 0 } };
	struct trace_loader *loader = begin(&caller);

	assert_int_equal(caller.witness.errors, 0);
	assert_refused(loader);
	assert_int_equal(caller.witness.errors, 1);
	assert_true(witness_read(&caller.witness, "on_record"));
	trace_loader_free(loader);
}

TEST(one_is_begun_after_another)
{
	struct caller caller = { .witness = { .errors = 0 } };
	struct trace_loader *loader = begin(&caller);
	NETOBS_OPTS(netobs_trace_opts, opts, .on_log = note_message,
		    .user = &caller);

	assert_refused(loader);
	assert_int_equal(trace_loader_begin(loader, &opts), 0);
	assert_refused(loader);
	assert_int_equal(caller.witness.errors, 2);
	trace_loader_free(loader);
}

TEST(a_load_that_is_under_way_is_not_waited_for)
{
	struct caller caller = { .witness = { .errors = 0 } };

	for (int i = 0; i < 100; i++)
		trace_loader_free(begin(&caller));
	trace_loader_free(NULL);
	assert_int_equal(caller.witness.errors, 0);
}
