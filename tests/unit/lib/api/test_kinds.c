// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Observers of all kinds are a struct netobs: functions of one kind refuse the others. */
#include "lib_test.h"

#include <netobs/capture.h>
#include <netobs/drop.h>
#include <netobs/session.h>
#include <netobs/sink.h>
#include <netobs/trace.h>

enum { CONTEXT, CAPTURE, SESSIONS, DROPS, TRACE, KINDS };

struct kinds {
	struct netobs *of[KINDS];
};

/* Nothing is started, so that none is called. */
static void begin(struct kinds *kinds)
{
	const NETOBS_OPTS(netobs_capture_opts, capture, .on_packet = (void *)1);
	const NETOBS_OPTS(netobs_sessions_opts, sessions, .on_record = (void *)1);
	const NETOBS_OPTS(netobs_drops_opts, drops, .on_record = (void *)1);
	const NETOBS_OPTS(netobs_trace_opts, trace, .on_record = (void *)1);

	assert_int_equal(netobs_new(NULL, &kinds->of[CONTEXT]), 0);
	assert_int_equal(netobs_capture_new(&capture, &kinds->of[CAPTURE]), 0);
	assert_int_equal(netobs_sessions_new(&sessions, &kinds->of[SESSIONS]), 0);
	assert_int_equal(netobs_drops_new(&drops, &kinds->of[DROPS]), 0);
	assert_int_equal(netobs_trace_new(&trace, &kinds->of[TRACE]), 0);
}

static void end(struct kinds *kinds)
{
	for (int i = 0; i < KINDS; i++)
		netobs_free(kinds->of[i]);
}

TEST_FIXTURE(struct kinds, begin, end)

#define CASE(name) TEST_OF(name, struct kinds *kinds, set_up, tear_down)

CASE(totals_are_of_one_kind)
{
	for (int i = 0; i < KINDS; i++) {
		NETOBS_OPTS(netobs_stats, flows);
		NETOBS_OPTS(netobs_capture_stats, capture);
		NETOBS_OPTS(netobs_sessions_stats, sessions);
		NETOBS_OPTS(netobs_drops_stats, drops);
		NETOBS_OPTS(netobs_trace_stats, trace);
		struct netobs *of = kinds->of[i];

		assert_int_equal(netobs_stats_get(of, &flows),
				 i == CONTEXT ? 0 : -EINVAL);
		assert_int_equal(netobs_capture_stats_get(of, &capture),
				 i == CAPTURE ? 0 : -EINVAL);
		assert_int_equal(netobs_sessions_stats_get(of, &sessions),
				 i == SESSIONS ? 0 : -EINVAL);
		assert_int_equal(netobs_drops_stats_get(of, &drops),
				 i == DROPS ? 0 : -EINVAL);
		assert_int_equal(netobs_trace_stats_get(of, &trace),
				 i == TRACE ? 0 : -EINVAL);
	}
}

CASE(names_are_shared_by_a_context)
{
	assert_int_equal(netobs_sessions_share(kinds->of[SESSIONS],
					       kinds->of[DROPS]),
			 -EINVAL);
}

CASE(a_sink_belongs_to_a_context)
{
	char why[NETOBS_ERROR_MAX];
	NETOBS_OPTS(netobs_sink_opts, opts, .context = kinds->of[TRACE],
		    .error = &why);
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open("null", &opts, &sink), -EINVAL);
	assert_non_null(strstr(why, "context: it observes no flows"));
	opts.context = kinds->of[CONTEXT];
	assert_int_equal(netobs_sink_open("null", &opts, &sink), 0);
	netobs_sink_close(sink);
}
