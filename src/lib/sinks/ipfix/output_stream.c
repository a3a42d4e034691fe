// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Messages over TCP or TLS. IPFIX knows no acknowledgement: net.h. */
#include "ipfix.h"
#include "sinks/net/net.h"

#include <errno.h>

enum { SIZE = 8192 };

struct stream_output {
	struct output output;
	struct feed feed;
	uint8_t message[ENCODER_SIZE_MAX]; /* the message that the feed is sending */
};

static int stream_output_open(struct output *output)
{
	struct stream_output *out = (struct stream_output *)output;
	struct config *config = output->config;
	const struct stream_options options = {
		.address = config->address,
		.source = config->source,
		.tls = config->transport == CONFIG_TLS ? &config->tls : NULL,
	};

	output->host->outage = &out->feed.stream.outage;
	feed_open(&out->feed, &options, output->host);
	return 0;
}

static enum peer_state stream_output_prepare(struct output *output)
{
	struct feed *feed = &((struct stream_output *)output)->feed;
	enum peer_state state = feed_prepare(feed);

	output->acked = feed->acked;
	output->counts.sessions = feed->sessions;
	return state;
}

static int stream_output_send(struct output *output,
			      const struct output_message *message)
{
	struct stream_output *out = (struct stream_output *)output;
	size_t len = message->encoded.len;

	if (feed_is_busy(&out->feed))
		return -EAGAIN;
	output_count(output, message);
	memcpy(out->message, message->encoded.bytes, len);
	feed_mark(&out->feed, len, message->end);
	feed_send(&out->feed, out->message, len);
	return 0;
}

static int stream_output_rest(struct output *output)
{
	return feed_rest(&((struct stream_output *)output)->feed);
}

static void stream_output_counters(const struct output *output,
				   sink_counter_fn *take, void *ctx)
{
	const struct stream_output *out = (const struct stream_output *)output;

	take(ctx, "broken_sessions", out->feed.broken_sessions);
}

static void stream_output_close(struct output *output)
{
	struct stream_output *out = (struct stream_output *)output;

	feed_close(&out->feed);
}

const struct output_ops output_stream = {
	.size = sizeof(struct stream_output),
	.message_size = SIZE,
	.open = stream_output_open,
	.prepare = stream_output_prepare,
	.send = stream_output_send,
	.rest = stream_output_rest,
	.counters = stream_output_counters,
	.close = stream_output_close,
};
