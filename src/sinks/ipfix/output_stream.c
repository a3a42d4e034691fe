// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Messages one after the other over TCP or TLS. IPFIX knows no acknowledgement, and
 * what TCP confirms may be lost in the kernel of a collector that ends. transit.h has
 * what is concluded; all that is not delivered is sent again over the next connection.
 */
#include "base/clock_ms.h"
#include "sinks/net/stream.h"
#include "output.h"
#include "sinks/net/transit.h"

#include <errno.h>

enum {
	SIZE = 8192,
	LOOK_MS = 20,	      /* how often to ask what was confirmed */
	SETTLE_LOOK_MS = 500, /* while all is confirmed */
	/*
	 * What was confirmed for so long is taken for read, if the collector's window is
	 * open. It is longer than collectors usually pause.
	 */
	SETTLE_MS = 15000,
	FINISH_MS = 2000, /* a collector that has read all closes within that time */
	GOOD_MS = 5000,
	READS = 16, /* of what the collector sends, at a time */
};

/*
 * Bytes that may be confirmed and not read beside what a receive buffer has room for: a
 * buffer takes one packet more than that, of up to 512 KiB, and TLS has up to two
 * records of 16 KiB that it has decrypted.
 */
enum { DOUBT_MORE = 1 << 20 };

struct stream_output {
	struct output output;
	struct stream stream;
	bool is_up;	   /* a session is under way */
	bool is_finishing; /* it has all, and is to end */
	bool has_ended;	   /* so did the last one */
	int64_t finish_ms; /* for how long to wait for that */
	uint64_t written;  /* bytes of this connection */
	uint32_t window, largest_window;
	uint64_t doubt; /* so many may be confirmed and not read */
	uint64_t broken_sessions;
	struct transit transit;
	struct unsent unsent;
};

static struct stream_output *of_output(struct output *output)
{
	return (struct stream_output *)output;
}

/* ---- What has arrived --------------------------------------------------------- */

static void deliver_messages(struct stream_output *out)
{
	output_ack(&out->output, out->transit.delivered);
}

static void note_window(struct stream_output *out)
{
	out->window = stream_window(&out->stream);
	if (out->window > out->largest_window)
		out->largest_window = out->window;
}

/* It has room for as much as ever, but for what is read soon. */
static bool is_window_open(const struct stream_output *out)
{
	return out->window && out->window >= out->largest_window / 4;
}

/* With TLS more is unconfirmed than was written here, so nothing counts too early. */
static uint64_t confirmed_bytes(const struct stream_output *out)
{
	uint64_t unconfirmed = stream_unconfirmed(&out->stream);

	return out->written - min_u64(unconfirmed, out->written);
}

/* Up to when something may have been confirmed to be taken for read. */
static int64_t settled_until(const struct stream_output *out)
{
	if (out->output.config->resend == RESEND_UNACKNOWLEDGED)
		return INT64_MAX;
	return is_window_open(out) ? now_ms() - SETTLE_MS : 0;
}

static void take_for_read(struct stream_output *out)
{
	struct sink_host *host = out->output.host;

	transit_take(&out->transit, settled_until(out));
	if (host->ops->is_pressed(host))
		transit_take_half(&out->transit);
}

static void take_confirmed(struct stream_output *out)
{
	struct transit *transit = &out->transit;
	uint64_t confirmed;

	if (!transit->n)
		return;
	note_window(out);
	confirmed = confirmed_bytes(out);
	transit_confirm(transit, confirmed, now_ms());
	if (transit_read(transit, confirmed - min_u64(out->doubt, confirmed)))
		stream_is_good(&out->stream);
	take_for_read(out);
	deliver_messages(out);
}

/* ---- Sessions ----------------------------------------------------------------- */

/*
 * The connection is gone. What was confirmed at the end is not looked at: it may have
 * come to a collector that was about to end.
 */
static void note_broken(struct stream_output *out)
{
	struct sink_host *host = out->output.host;
	struct position unsure = out->transit.unsure;

	out->is_up = out->is_finishing = false;
	if (unsure.seq)
		host->ops->note_unconfirmed(host, unsure);
	out->broken_sessions += !out->stream.was_good;
	transit_start(&out->transit, out->output.acked);
}

static enum peer_state start_over(struct stream_output *out)
{
	uint64_t buffer = stream_largest_buffer(&out->stream);

	out->is_up = true;
	out->has_ended = false;
	out->written = 0;
	out->window = out->largest_window = 0;
	out->doubt = buffer + min_u64(DOUBT_MORE, UINT64_MAX - buffer);
	out->unsent.at = out->unsent.len = 0;
	transit_start(&out->transit, out->output.acked);
	out->output.counts.sessions++;
	return PEER_NEW;
}

/* ---- Use ---------------------------------------------------------------------- */

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

/* A collector says nothing; but its end is seen here. One that says much has to wait. */
static void read_some(struct stream_output *out)
{
	char ignored[4096];

	for (int i = 0; i < READS; i++)
		if (stream_read(&out->stream, ignored, sizeof(ignored)) <= 0)
			return;
}

/* The session has ended as it should, or it is not known whether it did. */
static void end_session(struct stream_output *out, bool is_known)
{
	transit_confirm(&out->transit, out->written, now_ms());
	if (is_known)
		transit_read(&out->transit, out->written);
	transit_take(&out->transit, INT64_MAX);
	deliver_messages(out);
	stream_is_good(&out->stream);
	stream_restart(&out->stream);
	note_broken(out);
	out->has_ended = true;
}

static void finish_session(struct stream_output *out)
{
	int err = stream_end(&out->stream);

	if (!err) {
		end_session(out, true);
	} else if (err == -EAGAIN && now_ms() >= out->finish_ms) {
		take_confirmed(out);
		if (transit_is_confirmed(&out->transit))
			end_session(out, false);
	}
}

/* The rest of a session that is under way; what it has to say, if it goes on. */
static void proceed_session(struct stream_output *out)
{
	if (out->is_finishing) {
		finish_session(out);
		return;
	}
	read_some(out);
	write_unsent(out);
	if (out->stream.phase == STREAM_READY)
		take_confirmed(out);
}

/* All is delivered, and nothing new has come: no connection is needed. */
static bool is_over(const struct stream_output *out)
{
	return out->has_ended && out->output.host->is_ending;
}

static enum peer_state stream_output_prepare(struct output *output)
{
	struct stream_output *out = of_output(output);
	enum peer_state state;

	if (is_over(out))
		return PEER_AWAY;
	state = stream_prepare(&out->stream);
	if (state == PEER_READY)
		proceed_session(out);
	if (out->is_up && (out->stream.phase != STREAM_READY || state == PEER_NEW))
		note_broken(out);
	if (state == PEER_NEW)
		return start_over(out);
	return out->is_up && !out->is_finishing ? PEER_READY : PEER_AWAY;
}

static int stream_output_send(struct output *output,
			      const struct output_message *message)
{
	struct stream_output *out = of_output(output);

	if (!output_take(output, &out->unsent, message))
		return -EAGAIN;
	transit_add(&out->transit, out->written + message->encoded.len,
		    message->count, message->end);
	write_unsent(out);
	return 0;
}

static void stream_output_finish(struct output *output)
{
	struct stream_output *out = of_output(output);

	if (!out->is_up || out->is_finishing || !unsent_is_empty(&out->unsent) ||
	    transit_is_delivered(&out->transit))
		return;
	out->is_finishing = true;
	out->finish_ms = now_ms() + FINISH_MS;
	finish_session(out);
}

static int stream_output_rest(struct output *output)
{
	struct stream_output *out = of_output(output);
	int ms;

	if (is_over(out))
		return -1;
	ms = stream_rest(&out->stream);
	if (!out->is_up || !out->transit.n)
		return ms;
	if (out->is_finishing || !transit_is_confirmed(&out->transit))
		return sooner_ms(ms, LOOK_MS);
	return transit_is_delivered(&out->transit) ?
		       ms :
		       sooner_ms(ms, SETTLE_LOOK_MS);
}

static void stream_output_counters(const struct output *output,
				   sink_counter_fn *take, void *ctx)
{
	const struct stream_output *out = (const struct stream_output *)output;

	take(ctx, "broken_sessions", out->broken_sessions);
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
	.finish = stream_output_finish,
	.rest = stream_output_rest,
	.counters = stream_output_counters,
	.close = stream_output_close,
};

int output_open_stream(const struct config *config, struct sink_host *host,
		       struct output **ret_output)
{
	const struct stream_options options = {
		.address = config->address,
		.source = config->source,
		.tls = config->transport == CONFIG_TLS ? &config->tls : NULL,
		.good_ms = GOOD_MS,
		.keeps_half = true,
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
