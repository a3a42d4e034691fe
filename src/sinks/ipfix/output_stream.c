// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages one after the other over TCP or TLS. IPFIX knows no acknowledgement, so
 * what has arrived is what the TCP of the other side has confirmed.
 */
#include "held.h"
#include "net/stream.h"
#include "net/deadline.h"
#include "output.h"
#include "unsent.h"

#include <errno.h>

enum {
	SIZE = 8192,
	LOOK_MS = 20, /* how often to ask what was confirmed */
};

struct stream_output {
	struct output output;
	struct stream stream;
	uint64_t written; /* bytes of this connection */
	struct held held; /* by where they end among those */
	struct unsent unsent;
};

static struct stream_output *of_output(struct output *output)
{
	return (struct stream_output *)output;
}

/*
 * With TLS there is more unconfirmed than was written here, so no message counts as
 * confirmed too early, and all do when nothing is left.
 */
static void take_confirmed(struct stream_output *out)
{
	uint64_t unconfirmed, confirmed;
	struct mark end = { 0 };

	if (!out->held.n)
		return;
	unconfirmed = stream_unconfirmed(&out->stream);
	confirmed = out->written - min_u64(unconfirmed, out->written);
	while (out->held.n && held_get(&out->held, 0)->at <= confirmed) {
		end = held_get(&out->held, 0)->end;
		held_drop_first(&out->held);
	}
	if (!end.seq)
		return;
	output_ack(&out->output, end);
	stream_is_good(&out->stream);
}

/* True: all was taken. */
static bool write_unsent(struct stream_output *out)
{
	struct unsent *unsent = &out->unsent;

	while (!unsent_is_empty(unsent)) {
		ssize_t n = stream_write(&out->stream, unsent->bytes + unsent->at,
					 unsent->len - unsent->at);

		if (n < 0)
			return false;
		unsent->at += (size_t)n;
		out->written += (uint64_t)n;
	}
	return true;
}

/* A collector says nothing; but its end is seen here. */
static void read_all(struct stream_output *out)
{
	char ignored[256];

	while (stream_read(&out->stream, ignored, sizeof(ignored)) > 0)
		;
}

static enum output_state start_over(struct stream_output *out)
{
	out->written = 0;
	out->held.n = 0;
	out->unsent.at = out->unsent.len = 0;
	out->output.counts.sessions++;
	return OUTPUT_NEW;
}

static enum output_state stream_output_prepare(struct output *output)
{
	struct stream_output *out = of_output(output);

	switch (stream_prepare(&out->stream)) {
	case STREAM_NEW:
		return start_over(out);
	case STREAM_READY:
		break;
	default:
		return OUTPUT_AWAY;
	}
	read_all(out);
	write_unsent(out);
	take_confirmed(out);
	return OUTPUT_READY;
}

/* Where too many are held, those behind share the last place. */
static void hold(struct stream_output *out, const struct output_message *message)
{
	struct held_message held = { .at = out->written + message->encoded.len,
				     .end = message->end };

	if (out->held.n == HELD_MAX)
		*held_get(&out->held, HELD_MAX - 1) = held;
	else
		held_add(&out->held, held);
}

static int stream_output_send(struct output *output,
			      const struct output_message *message)
{
	struct stream_output *out = of_output(output);

	if (!unsent_is_empty(&out->unsent))
		return -EAGAIN;
	unsent_set(&out->unsent, &message->encoded);
	hold(out, message);
	output_count(output, message);
	write_unsent(out);
	return 0;
}

static int stream_output_rest(struct output *output)
{
	struct stream_output *out = of_output(output);
	int ms = stream_rest(&out->stream);

	return out->held.n ? sooner_ms(ms, LOOK_MS) : ms;
}

static void stream_output_close(struct output *output)
{
	struct stream_output *out = of_output(output);

	stream_close(&out->stream);
	free(out);
}

static const struct output_ops stream_output_ops = {
	.prepare = stream_output_prepare,
	.send = stream_output_send,
	.rest = stream_output_rest,
	.close = stream_output_close,
};

int output_open_stream(const struct config *config, struct sink_host *host,
		       struct output **ret_output)
{
	const struct stream_options options = {
		.address = config->address,
		.source = config->source,
		.tls = config->transport == CONFIG_TLS ? &config->tls : NULL,
	};
	struct stream_output *out = calloc(1, sizeof(*out));

	if (!out)
		return -ENOMEM;
	out->output = (struct output){ .ops = &stream_output_ops,
				       .host = host,
				       .config = config,
				       .size = config->mtu ?: SIZE };
	stream_open(&out->stream, &options, host);
	*ret_output = &out->output;
	return 0;
}
