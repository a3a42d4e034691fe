// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Sinks that are opened for a context. Nothing here needs privileges. */
#include "lib_test.h"

#include "api/context.h"
#include "sink/sink.h"

#include <netobs/sink.h>

static struct netobs *new_context(void)
{
	NETOBS_OPTS(netobs_opts, opts, .sampling = 50,
		    .sampling_mode = NETOBS_SAMPLE_FLOWS);
	struct netobs *ctx;

	assert_int_equal(netobs_new(&opts, &ctx), 0);
	return ctx;
}

static struct netobs_sink *open_for(struct netobs *ctx, const char *spec,
				    uint32_t sampling)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .context = ctx,
			  .sampling = sampling);
	struct netobs_sink *sink;

	assert_int_equal(netobs_sink_open(spec, &opts, &sink), 0);
	return sink;
}

TEST(sinks_have_the_sampling_of_their_context)
{
	struct netobs *ctx = new_context();
	struct netobs_sink *sink = open_for(ctx, "null", 0),
			   *own = open_for(ctx, "null", 7);

	assert_int_equal(sink->host.sampling, 50);
	assert_int_equal(sink->host.sampling_mode, NETOBS_SAMPLE_FLOWS);
	assert_int_equal(own->host.sampling, 7);
	assert_int_equal(own->host.sampling_mode, NETOBS_SAMPLE_PACKETS);
	netobs_sink_close(sink);
	netobs_sink_close(own);
	netobs_free(ctx);
}

TEST(sinks_read_the_statistics_of_their_context)
{
	struct netobs *ctx = new_context();
	struct netobs_sink *sink = open_for(ctx, "null", 0);
	struct netobs_stats stats = { .drains = 1 };

	assert_true(sink->host.ops->get_stats(&sink->host, &stats));
	assert_int_equal(stats.sz, sizeof(stats));
	assert_int_equal(stats.drains, 0);
	netobs_free(ctx);
	assert_false(sink->host.ops->get_stats(&sink->host, &stats));
	netobs_sink_close(sink);
}

TEST(either_side_is_freed_first)
{
	struct netobs *ctx = new_context();
	struct netobs_sink *sinks[3];

	for (int i = 0; i < 3; i++)
		sinks[i] = open_for(ctx, "null", 0);
	netobs_sink_close(sinks[1]);
	netobs_free(ctx);
	netobs_sink_close(sinks[0]);
	netobs_sink_close(sinks[2]);
}
