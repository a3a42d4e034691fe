/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whatever the library can send records to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/sink.h>

#include "output.h"

/* Its own words were logged, but for those of standard output. */
static int open_sink(struct output *output)
{
	const struct netobs_sink_opts opts = {
		.sz = sizeof(opts),
		.on_log = output->on_log,
		.user = output->user,
		.get_stats = output->get_stats,
		.sampling = output->sampling,
		.sampling_mode = output->sampling_mode,
	};
	struct netobs_sink *sink;
	int r = netobs_sink_open(output->spec, &opts, &sink);

	if (r == 0)
		output->state = sink;
	return r;
}

static void write_flow(struct output *output, const struct netobs_flow *flow)
{
	netobs_sink_write(output->state,
			  &flow->record); /* what is dropped is counted */
}

static void flush(struct output *output)
{
	output->error = netobs_sink_flush(output->state);
}

/* Sessions that end in order show what has arrived; others wait as well. */
static void finish(struct output *output)
{
	int r = netobs_sink_drain(output->state, 0);

	output->error = r == -ETIMEDOUT ? 0 : r;
}

static void dispatch(struct output *output)
{
	output->error = netobs_sink_dispatch(output->state);
}

static int sink_fd(const struct output *output)
{
	return netobs_sink_fd(output->state);
}

static bool has_pending(const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	netobs_sink_stats_get(output->state, &stats);
	return stats.pending.records;
}

int output_name_len(const struct output *output)
{
	return (int)strcspn(output->spec, "?");
}

const struct netobs_sink *output_as_sink(const struct output *output)
{
	return output->kind == &output_sink && output->is_open ? output->state :
								 NULL;
}

static void report(const struct output *output, uint64_t records,
		   const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%.*s: %llu records %s%s",
		 output_name_len(output), output->spec,
		 (unsigned long long)records, what, why);
	output_say(output, text);
}

/* Records that did not get to where they should. */
static bool report_rest(const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	bool is_complete = true;

	netobs_sink_stats_get(output->state, &stats);
	for (unsigned int i = 0; i < NETOBS_SINK_DROPS; i++) {
		if (!stats.dropped[i].records)
			continue;
		is_complete = false;
		report(output, stats.dropped[i].records,
		       "were dropped: ", netobs_sink_drop_name(i));
	}
	if (stats.unconfirmed.records)
		report(output, stats.unconfirmed.records, "may have been lost: ",
		       "the connection ended before they were known to be read");
	if (!stats.pending.records)
		return is_complete;
	report(output, stats.pending.records, "were not delivered", "");
	return false;
}

/* What became of the records, for --stats. */
static void keep_stats(struct output *output)
{
	const size_t size = 8192;

	output->stats = malloc(size);
	if (!output->stats ||
	    netobs_sink_stats_json(output->state, output->stats, size) >= 0)
		return;
	free(output->stats);
	output->stats = NULL;
}

/* A permanent failure is not retried. */
static bool close_sink(struct output *output)
{
	bool is_complete = true;

	if (!output->error) {
		int r = netobs_sink_drain(output->state, 0);

		output->error = r == -ETIMEDOUT ? 0 : r;
		is_complete = output->error || report_rest(output);
	}
	keep_stats(output);
	netobs_sink_close(output->state);
	output->state = NULL;
	return is_complete;
}

const struct output_kind output_sink = {
	.open = open_sink,
	.flow = write_flow,
	.interval = flush,
	.ready = dispatch,
	.fd = sink_fd,
	.finish = finish,
	.is_pending = has_pending,
	.close = close_sink,
};
