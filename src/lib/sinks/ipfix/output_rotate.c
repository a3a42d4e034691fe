// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages in files that are rotated, RFC 5655. Each file can be read alone: it is a
 * session, with templates and numbers of its own.
 */
#include "output.h"

#include <errno.h>

struct rotated_output {
	struct output output;
	struct rotated *rotated;
	struct unsent unsent; /* what the rotated has begun to write */
};

static struct rotated_output *rotated_of_output(struct output *output)
{
	return (struct rotated_output *)output;
}

static int rotated_output_open(struct output *output)
{
	const struct config *config = output->config;

	return rotate_open(config->path, &config->rotation, output->host,
			   &rotated_of_output(output)->rotated);
}

/* False: not all of it. */
static bool write_rotated_unsent(struct rotated_output *out)
{
	struct unsent *unsent = &out->unsent;

	/* A file of templates and counters alone is worth nothing. */
	if (rotate_write(out->rotated, unsent->bytes, unsent->len,
			 position_is_before(out->output.acked, unsent->end)))
		return false;
	unsent->at = unsent->len;
	output_ack(&out->output, unsent->end);
	return true;
}

static enum peer_state rotated_output_prepare(struct output *output)
{
	struct rotated_output *out = rotated_of_output(output);
	bool is_done = unsent_is_empty(&out->unsent);
	enum peer_state state =
		rotate_prepare(out->rotated, is_done ? output->size : 0);

	if (state == PEER_READY && !is_done) {
		if (!write_rotated_unsent(out))
			return PEER_AWAY;
		state = rotate_prepare(out->rotated, output->size);
	}
	if (state == PEER_NEW) {
		out->unsent.at = out->unsent.len = 0;
		output->counts.sessions++;
	}
	return state;
}

static int rotated_output_send(struct output *output,
			       const struct output_message *message)
{
	struct rotated_output *out = rotated_of_output(output);

	if (!output_take(output, &out->unsent, message))
		return -EAGAIN;
	write_rotated_unsent(out);
	return 0;
}

static int rotated_output_rest(struct output *output)
{
	return rotate_wait_ms(rotated_of_output(output)->rotated);
}

static void rotated_output_counters(const struct output *output,
				    sink_counter_fn *take, void *ctx)
{
	const struct rotated_output *out = (const struct rotated_output *)output;

	rotate_counters(out->rotated, take, ctx);
}

static void rotated_output_close(struct output *output)
{
	rotate_close(rotated_of_output(output)->rotated);
}

const struct output_ops output_rotated = {
	.size = sizeof(struct rotated_output),
	.message_size = OUTPUT_FILE_SIZE,
	.open = rotated_output_open,
	.prepare = rotated_output_prepare,
	.send = rotated_output_send,
	.rest = rotated_output_rest,
	.counters = rotated_output_counters,
	.close = rotated_output_close,
};
