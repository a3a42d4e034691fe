/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netobs/netobs.h>
#include <netobs/sink.h>
#include <netobs/stats.h>

#include "base/clock_ms.h"
#include "base/options.h"
#include "base/text.h"
#include "service/text/human.h"

/* JSON without a target, as in netobs-sinks(7). */
static bool is_json_to_stdout(const char *spec)
{
	return !strncmp(spec, "json", 4) && (!spec[4] || spec[4] == '?');
}

struct output output_of(const char *spec)
{
	return (struct output){ .spec = spec,
				.is_stdout = is_json_to_stdout(spec) };
}

bool output_refuse(const char *spec, const char *other, char *ret_why, size_t size)
{
	const char *const kinds[] = { "json", "ipfix",	   "kafka",
				      "grpc", "http",	   "https",
				      "otlp", "otlp+http", "otlp+https",
				      "null", other,	   NULL };
	const size_t len = strcspn(spec, ":?");
	struct suggestion suggestion = suggestion_for(spec, len);
	const char *best;

	for (const char *const *kind = kinds; *kind; kind++) {
		if (strlen(*kind) == len && !strncmp(spec, *kind, len))
			return false;
		suggestion_offer(&suggestion, *kind);
	}
	best = suggestion_best(&suggestion);
	snprintf(ret_why, size,
		 "there is no such kind of output; there are %s%sjson, "
		 "ipfix, kafka, grpc, http, https, otlp, otlp+http, otlp+https and null%s%s%s",
		 other ?: "", other ? ", " : "", best ? "; did you mean '" : "",
		 best ?: "", best ? "'?" : "");
	return true;
}

void output_say(const struct output *output, const char *message)
{
	if (output->on_log)
		output->on_log(NETOBS_LOG_ERROR, message, output->user);
}

/* Report an error of standard output: the library logs those of other outputs. */
static void say_failed(const struct output *output, int error)
{
	char text[128];

	snprintf(text, sizeof(text), "cannot write to standard output: %s",
		 strerror(-error));
	output_say(output, text);
}

static struct netobs_sink_opts sink_opts(const struct output *output)
{
	return (struct netobs_sink_opts){
		.sz = sizeof(struct netobs_sink_opts),
		.context = output->context,
		.on_log = output->on_log,
		.user = output->user,
		.sampling = output->sampling ?: 1,
		.sampling_mode = output->sampling_mode,
	};
}

/* Other errors are found, and logged, when the output is opened. */
int output_check(const struct output *output)
{
	const struct netobs_sink_opts opts = sink_opts(output);

	if (output->kind || netobs_sink_check(output->spec, NULL) != -EINVAL)
		return 0;
	return netobs_sink_check(output->spec, &opts);
}

static int open_stream(struct output *output)
{
	int r = stream_open_stdout(&output->stream);

	if (r < 0) {
		say_failed(output, r);
		return r;
	}
	r = output->kind->open ? output->kind->open(output) : 0;
	if (r < 0)
		stream_close(&output->stream);
	return r;
}

/* The library has logged an error of a sink, unless it is one of standard output. */
int output_open(struct output *output)
{
	const struct netobs_sink_opts opts = sink_opts(output);
	int r = output->kind ?
			open_stream(output) :
			netobs_sink_open(output->spec, &opts, &output->sink);

	output->is_open = r == 0;
	return r;
}

static bool is_usable(const struct output *output)
{
	return output->is_open && !output->error;
}

static void take_stream_error(struct output *output)
{
	output->error = output->error ?: output->stream.error;
}

/* A sink counts records that it drops. */
void output_record(struct output *output, const struct netobs_record *record)
{
	if (!is_usable(output))
		return;
	if (output->sink) {
		netobs_sink_write(output->sink, record);
		return;
	}
	if (output->kind->record)
		output->kind->record(output, record);
	take_stream_error(output);
}

void output_interval(struct output *output)
{
	if (!is_usable(output))
		return;
	if (output->sink) {
		output->error = netobs_sink_flush(output->sink);
		return;
	}
	if (output->kind->interval)
		output->kind->interval(output);
	stream_flush(&output->stream);
	take_stream_error(output);
}

int output_fd(const struct output *output)
{
	if (!is_usable(output))
		return -1;
	if (output->sink)
		return netobs_sink_fd(output->sink);
	return output->kind->fd ? output->kind->fd(output) : -1;
}

void output_ready(struct output *output)
{
	if (!is_usable(output))
		return;
	if (output->sink)
		output->error = netobs_sink_dispatch(output->sink);
	else if (output->kind->ready)
		output->kind->ready(output);
}

int output_reopen(struct output *output)
{
	return is_usable(output) && output->sink ?
		       netobs_sink_reopen(output->sink) :
		       0;
}

bool output_is_pending(const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };

	return is_usable(output) && output->sink &&
	       !netobs_sink_stats_get(output->sink, &stats) &&
	       stats.pending.records;
}

/* @return the number of outputs that have something pending */
static size_t fill_output_fds(const struct output *outputs, size_t n,
			      struct pollfd *fds)
{
	size_t pending = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_any = output_is_pending(&outputs[i]);

		fds[i] = (struct pollfd){ .fd = is_any ? output_fd(&outputs[i]) :
							 -1,
					  .events = POLLIN };
		pending += is_any;
	}
	return pending;
}

/* Begin to wait for confirmations; output_ready() goes on. */
static void finish_sink(struct output *output)
{
	int r = netobs_sink_wait(output->sink, 0);

	output->error = r == -ETIMEDOUT ? 0 : r;
}

void output_finish(struct output *output)
{
	output_interval(output);
	if (is_usable(output) && output->sink)
		finish_sink(output);
}

bool output_settle(struct output *output)
{
	int r = is_usable(output) && output->sink ?
			netobs_sink_settle(output->sink) :
			0;

	if (r != -EAGAIN)
		output->error = output->error ?: r;
	return r != -EAGAIN;
}

void output_finish_all(struct output *outputs, size_t n, int timeout_ms)
{
	struct pollfd *fds = calloc(n, sizeof(*fds));
	int64_t end = now_ms() + timeout_ms, left;

	for (size_t i = 0; i < n; i++)
		output_finish(&outputs[i]);
	while (fds && fill_output_fds(outputs, n, fds) &&
	       (left = end - now_ms()) > 0) {
		poll(fds, n, (int)left);
		for (size_t i = 0; i < n; i++)
			if (fds[i].revents)
				output_ready(&outputs[i]);
	}
	free(fds);
}

void output_done(struct output *output)
{
	free(output->stats);
	output->stats = NULL;
	free(output->own_spec);
	output->own_spec = NULL;
}

/* ---- Specs ---------------------------------------------------------------------- */

const char *output_spec_option(const char *spec, const char *start)
{
	const char *at = strchr(spec, '?');

	while (at && strncmp(at + 1, start, strlen(start)))
		at = strchr(at + 1, '&');
	return at ? at + 1 : NULL;
}

int output_take_records(struct output *output, const char *type)
{
	if (output_spec_option(output->spec, "records="))
		return 0;
	if (asprintf(&output->own_spec, "%s%crecords=%s", output->spec,
		     strchr(output->spec, '?') ? '&' : '?', type) < 0) {
		output->own_spec = NULL;
		return -ENOMEM;
	}
	output->spec = output->own_spec;
	return 0;
}

bool output_spec_takes(const char *spec, const char *type)
{
	const char *types = output_spec_option(spec, "records=");
	const size_t len = strlen(type);
	size_t word;

	types = types ? types + strlen("records=") : "flow";
	for (;; types += word + 1) {
		word = strcspn(types, ",&");
		if (word == len && !memcmp(types, type, len))
			return true;
		if (types[word] != ',')
			return false;
	}
}

int output_name_len(const struct output *output)
{
	return (int)strcspn(output->spec, "?");
}

/* ---- The end -------------------------------------------------------------------- */

static void report_records(const struct output *output, uint64_t records,
			   const char *what, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%.*s: %llu records %s%s",
		 output_name_len(output), output->spec,
		 (unsigned long long)records, what, why);
	output_say(output, text);
}

/* Pending records then wait for the next run; records that the disk refused were dropped. */
bool output_is_on_disk(const struct output *output)
{
	return output_spec_option(output->spec, "spool=disk:");
}

/* Records that did not get to where they should. */
static bool report_undelivered(const struct output *output)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	bool is_complete = true;

	netobs_sink_stats_get(output->sink, &stats);
	for (unsigned int i = 0; i < NETOBS_SINK_DROPS; i++) {
		if (!stats.dropped[i].records)
			continue;
		is_complete = false;
		report_records(output, stats.dropped[i].records,
			       "were dropped: ", netobs_sink_drop_name(i));
	}
	if (!stats.pending.records)
		return is_complete;
	if (output_is_on_disk(output)) {
		if (output->has_successor)
			return is_complete;
		report_records(output, stats.pending.records,
			       "wait in the spool", " for the next start");
		return is_complete;
	}
	report_records(output, stats.pending.records, "were not delivered", "");
	return false;
}

/* Keep the sink's counters for --stats. */
static void keep_sink_stats(struct output *output)
{
	const size_t size = 8192;

	output->stats = malloc(size);
	if (!output->stats ||
	    netobs_sink_stats_json(output->sink, output->stats, size) >= 0)
		return;
	free(output->stats);
	output->stats = NULL;
}

/* A permanent failure is not retried. */
static bool close_sink(struct output *output)
{
	bool is_complete = true;

	/* A successor sends the records in the spool. */
	if (!output->error && !output->has_successor)
		finish_sink(output);
	if (!output->error)
		is_complete = report_undelivered(output);
	keep_sink_stats(output);
	if (output->on_last)
		output->on_last(output, output->user);
	netobs_sink_close(output->sink);
	output->sink = NULL;
	return is_complete;
}

/* A reader that closes the pipe has seen enough: that is no failure. */
bool output_close(struct output *output)
{
	bool is_complete = true;

	if (!output->is_open)
		return true;
	if (output->sink) {
		is_complete = close_sink(output);
	} else {
		if (output->kind->close)
			output->kind->close(output);
		stream_close(&output->stream);
		take_stream_error(output);
	}
	output->is_open = false;
	if (!output->error || output->error == -EPIPE)
		return is_complete;
	say_failed(output, output->error);
	return false;
}

bool output_describe_outage(const struct output *output, char *buf, size_t size)
{
	NETOBS_OPTS(netobs_sink_stats, stats);
	char since[32];

	if (!output->sink || netobs_sink_stats_get(output->sink, &stats) < 0 ||
	    !stats.outage_ns)
		return false;
	human_time(since, sizeof(since), stats.outage_ns);
	snprintf(buf, size, "%.*s: nothing delivered since %s, %llu records wait",
		 output_name_len(output), output->spec, since,
		 (unsigned long long)stats.pending.records);
	safe_cell(buf);
	return true;
}
