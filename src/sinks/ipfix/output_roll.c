// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages in files that are rotated, RFC 5655. Each file can be read alone: it is a
 * session, with templates and numbers of its own.
 */
#include "output.h"
#include "unsent.h"

#include <errno.h>

struct roll_output {
	struct output output;
	struct roll *roll;
	uint64_t begun;	      /* files, as of this session */
	struct unsent unsent; /* what the roll has begun to write */
	struct mark unsent_end;
};

static struct roll_output *of_output(struct output *output)
{
	return (struct roll_output *)output;
}

/* False: not all of it. */
static bool write_unsent(struct roll_output *out)
{
	struct unsent *unsent = &out->unsent;

	if (unsent_is_empty(unsent))
		return true;
	if (roll_write(out->roll, unsent->bytes, unsent->len))
		return false;
	unsent->at = unsent->len;
	/* A file of templates and counters alone is worth nothing. */
	if (mark_is_before(out->output.acked, out->unsent_end)) {
		roll_written(out->roll, out->unsent_end);
		out->output.acked = out->unsent_end;
	}
	return true;
}

static enum peer_state roll_output_prepare(struct output *output)
{
	struct roll_output *out = of_output(output);

	enum peer_state state = roll_prepare(out->roll);

	if (state == PEER_AWAY)
		return state;
	if (state == PEER_NEW)
		out->unsent.at = out->unsent.len = 0;
	if (!write_unsent(out) || roll_make_room(out->roll, output->size))
		return PEER_AWAY;
	if (out->begun == roll_begun(out->roll))
		return PEER_READY;
	out->begun = roll_begun(out->roll);
	output->counts.sessions++;
	return PEER_NEW;
}

static int roll_output_send(struct output *output,
			    const struct output_message *message)
{
	struct roll_output *out = of_output(output);

	if (!unsent_is_empty(&out->unsent))
		return -EAGAIN;
	unsent_set(&out->unsent, &message->encoded);
	out->unsent_end = message->end;
	output_count(output, message);
	write_unsent(out);
	return 0;
}

static int roll_output_rest(struct output *output)
{
	return roll_wait_ms(of_output(output)->roll);
}

static void roll_output_counters(const struct output *output,
				 sink_counter_fn *take, void *ctx)
{
	const struct roll_output *out = (const struct roll_output *)output;

	roll_counters(out->roll, take, ctx);
}

static void roll_output_close(struct output *output)
{
	struct roll_output *out = of_output(output);

	roll_close(out->roll);
	free(out);
}

static const struct output_ops roll_output_ops = {
	.prepare = roll_output_prepare,
	.send = roll_output_send,
	.rest = roll_output_rest,
	.counters = roll_output_counters,
	.close = roll_output_close,
};

int output_open_roll(const struct config *config, struct sink_host *host,
		     struct output **ret_output)
{
	struct roll_output *out = calloc(1, sizeof(*out));
	int err;

	if (!out)
		return -ENOMEM;
	out->output = (struct output){ .ops = &roll_output_ops,
				       .host = host,
				       .config = config,
				       .size = config->mtu ?: OUTPUT_FILE_SIZE };
	err = roll_open(config->path, &config->roll, host, &out->roll);
	if (err) {
		free(out);
		return err;
	}
	*ret_output = &out->output;
	return 0;
}
