// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* JSON lines: to standard output, a file, or a unix socket. */
#include "line_out.h"
#include "sink/host_fields.h"
#include "sink/module.h"
#include "record/any.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { BUFFER_SIZE = 128 << 10 };

struct json_state {
	struct sink_host *host;
	struct host_fields fields;
	struct line_out out;
	size_t used, sent;   /* bytes of buf */
	struct position end; /* behind the last line in buf */
	char buf[BUFFER_SIZE];
};

static void json_close_sink(void *arg)
{
	struct json_state *state = arg;

	line_out_close(&state->out);
}

static int json_open_sink(struct spec *spec, struct sink_host *host, void *arg)
{
	struct json_state *state = arg;

	state->host = host;
	host_fields_read(&state->fields, spec, spec->target != NULL);
	return line_out_open(&state->out, spec, host);
}

/* Make lines of records until the buffer is full. False: there are no records. */
static bool fill_lines(struct json_state *state)
{
	struct sink_item item;

	while (sizeof(state->buf) - state->used > SINK_JSON_MAX &&
	       state->host->ops->next(state->host, &item)) {
		char *line = state->buf + state->used;
		int written = record_json(item.record, line, RECORD_JSON_MAX);
		size_t len;

		assert(written > 0);
		len = host_fields_add(&state->fields, line, (size_t)written);
		line[len++] = '\n';
		state->used += len;
		state->end = item.end;
	}
	return state->used;
}

/* A new output begins with a whole line. */
static void start_line(struct json_state *state)
{
	const char *end = memrchr(state->buf, '\n', state->sent);

	state->sent = end ? (size_t)(end + 1 - state->buf) : 0;
}

static int json_work(void *arg, bool flush)
{
	struct json_state *state = arg;

	(void)flush;
	for (;;) {
		enum peer_state out = line_out_prepare(&state->out);
		ssize_t n;

		if (out == PEER_AWAY)
			return 0;
		if (out == PEER_NEW)
			start_line(state);
		if (!state->used && !fill_lines(state))
			return line_out_rest(&state->out);
		n = line_out_write(&state->out, state->buf + state->sent,
				   state->used - state->sent);
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		state->sent += (size_t)n;
		if (state->sent < state->used)
			continue;
		state->host->ops->ack(state->host, state->end);
		state->used = state->sent = 0;
	}
}

static void json_counters(const void *arg, sink_counter_fn *take, void *ctx)
{
	const struct json_state *state = arg;

	line_out_counters(&state->out, take, ctx);
}

static int json_reopen(void *arg)
{
	struct json_state *state = arg;
	enum peer_state out;

	if (state->out.kind != LINE_OUT_FILE || state->out.rotated)
		return 0;
	line_out_look(&state->out);
	out = line_out_prepare(&state->out);
	if (out == PEER_NEW)
		start_line(state);
	if (out == PEER_AWAY)
		return -EIO;
	return line_out_is_behind(&state->out) ? -EAGAIN : 0;
}

const struct sink_module sink_json = {
	.version = NETOBS_VERSION,
	.kind = "json",
	.types = SINK_TYPES_ALL,
	.state_size = sizeof(struct json_state),
	.open = json_open_sink,
	.work = json_work,
	.close = json_close_sink,
	.counters = json_counters,
	.reopen = json_reopen,
};
