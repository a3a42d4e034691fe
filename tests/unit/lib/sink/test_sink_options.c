// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What netobs_sink_open() takes and refuses, of older and newer callers too. */
#include "lib_test.h"

#include <netobs/sink.h>

/* What a program has that was compiled for a later library. */
struct later_opts {
	struct netobs_sink_opts opts;
	uint64_t more[3];
};

static void assert_refused(const struct netobs_sink_opts *opts,
			   const char *spec, const char *words)
{
	struct netobs_sink *sink = NULL;

	assert_int_equal(netobs_sink_open(spec, opts, &sink), -EINVAL);
	assert_null(sink);
	if (opts->error && !strstr(*opts->error, words))
		fail_msg("'%s' is not in: %s", words, *opts->error);
}

TEST(open_writes_why_it_failed)
{
	char why[NETOBS_ERROR_MAX] = "untouched";
	const NETOBS_OPTS(netobs_sink_opts, opts, .error = &why);
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open("null", &opts, &sink), 0);
	assert_string_equal(why, "untouched");
	netobs_sink_close(sink);
	assert_refused(&opts, "nothing", "nothing");
	assert_refused(&opts, "null?spool.max_age=maybe", "spool.max_age");
	assert_int_equal(netobs_sink_open("json:/nonexistent/a", &opts, &sink),
			 -ENOENT);
	assert_non_null(strstr(why, "/nonexistent/a"));
}

TEST(open_refuses_later_options_that_are_used)
{
	char why[NETOBS_ERROR_MAX];
	struct later_opts later = { .opts = { .sz = sizeof(later),
					      .error = &why } };
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open("null", &later.opts, &sink), 0);
	netobs_sink_close(sink);
	later.more[2] = 1;
	assert_refused(&later.opts, "null", "does not know");
	later.more[2] = 0;
	later.opts.sampling_mode = 2;
	assert_refused(&later.opts, "null", "sampling_mode");
}

TEST(open_takes_shorter_options)
{
	const size_t sz = offsetof(struct netobs_sink_opts, user), one = 1;
	struct netobs_sink *sink;
	void *opts = calloc(1, sz);

	memcpy(opts, &sz, sizeof(sz));
	assert_int_equal(netobs_sink_open("null", opts, &sink), 0);
	netobs_sink_close(sink);
	memcpy(opts, &one, sizeof(one));
	assert_int_equal(netobs_sink_open("null", opts, &sink), -EINVAL);
	free(opts);
}

TEST(write_refuses_records_of_no_size)
{
	struct netobs_flow flow = { .packets = 1 };
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open("null", NULL, &sink), 0);
	assert_int_equal(netobs_sink_write(sink, &flow.record), -EINVAL);
	flow.sz = sizeof(flow);
	assert_int_equal(netobs_sink_write(sink, &flow.record), 0);
	netobs_sink_close(sink);
}

TEST(stats_fill_what_the_caller_knows)
{
	struct {
		struct netobs_sink_stats stats;
		uint8_t more[32];
	} larger;
	const size_t sz = offsetof(struct netobs_sink_stats, delivered);
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open("null", NULL, &sink), 0);
	memset(&larger, 0xee, sizeof(larger));
	larger.stats.sz = sz;
	assert_int_equal(netobs_sink_stats_get(sink, &larger.stats), 0);
	assert_int_equal(larger.stats.sz, sz);
	assert_int_equal(larger.stats.recovered.records, 0);
	assert_int_equal(larger.stats.delivered.records, 0xeeeeeeeeeeeeeeee);
	larger.stats.sz = sizeof(larger);
	assert_int_equal(netobs_sink_stats_get(sink, &larger.stats), 0);
	assert_int_equal(larger.stats.sz, sizeof(larger.stats));
	assert_int_equal(larger.more[0], 0xee);
	larger.stats.sz = 7;
	assert_int_equal(netobs_sink_stats_get(sink, &larger.stats), -EINVAL);
	netobs_sink_close(sink);
}

/* A loop over names sees what there is, also with a later library. */
TEST(reasons_end_within_their_room)
{
	unsigned int i;

	for (i = 0; netobs_sink_drop_name(i); i++)
		continue;
	assert_int_equal(i, NETOBS_SINK_DROPS);
	assert_in_range(i, 1, NETOBS_REASONS_MAX);
}
