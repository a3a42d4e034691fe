// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "net.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <assert.h>

enum {
	LOOK_MS = 20, /* interval of asking for acknowledgements */
	GOOD_MS = 5000,
	READS = 16,	       /* reads at a time from the collector */
	TLS_RECORD = 16 << 10, /* RFC 8446, 5.1: bytes at most */
};

/* ---- What has arrived --------------------------------------------------------- */

static bool is_waiting(const struct feed *feed)
{
	return position_is_before(feed->acked, feed->last.end);
}

/* The content of a TLS record can only be read once all of it has arrived. */
static uint64_t acknowledged_bytes(const struct feed *feed)
{
	uint64_t left = stream_unacknowledged(&feed->stream);

	if (left && feed->stream.options.tls)
		left += TLS_RECORD;
	return feed->written - min_u64(left, feed->written);
}

static void take_acknowledged(struct feed *feed)
{
	uint64_t bytes;

	if (!is_waiting(feed))
		return;
	bytes = acknowledged_bytes(feed);
	if (feed->last.at <= bytes)
		feed->next = feed->last;
	if (feed->next.at > bytes)
		return;
	feed->acked = feed->next.end;
	feed->next = feed->last;
	feed->host->ops->ack(feed->host, feed->acked);
}

/* ---- Sessions ----------------------------------------------------------------- */

static void note_broken(struct feed *feed)
{
	feed->is_up = false;
	feed->broken_sessions += !feed->stream.was_good;
}

static void start_over(struct feed *feed)
{
	feed->is_up = true;
	feed->marked = feed->written = 0;
	feed->last = (struct feed_mark){ .end = feed->acked };
	feed->n_unsent = 0;
	feed->sessions++;
}

/* ---- Use ---------------------------------------------------------------------- */

static void write_feed_unsent(struct feed *feed)
{
	while (feed->n_unsent) {
		ssize_t n = stream_write(&feed->stream, feed->unsent,
					 feed->n_unsent);

		if (n < 0)
			return;
		feed->unsent += n;
		feed->n_unsent -= (size_t)n;
		feed->written += (uint64_t)n;
	}
}

/* Collectors send nothing, but the end of a connection is seen here. Read a little of other data. */
static void read_some(struct feed *feed)
{
	char ignored[4096];

	for (int i = 0; i < READS; i++)
		if (stream_read(&feed->stream, ignored, sizeof(ignored)) <= 0)
			return;
}

/* Continue a session: send pending bytes, and process acknowledgements. */
static void proceed_session(struct feed *feed)
{
	take_acknowledged(feed); /* while the connection is there */
	read_some(feed);
	write_feed_unsent(feed);
	if (feed->stream.phase == STREAM_READY)
		take_acknowledged(feed);
}

enum peer_state feed_prepare(struct feed *feed)
{
	enum peer_state state = stream_prepare(&feed->stream);

	if (state == PEER_READY)
		proceed_session(feed);
	if (feed->is_up &&
	    (feed->stream.phase != STREAM_READY || state == PEER_NEW))
		note_broken(feed);
	if (state == PEER_NEW) {
		start_over(feed);
		return PEER_NEW;
	}
	return feed->is_up ? PEER_READY : PEER_AWAY;
}

void feed_mark(struct feed *feed, size_t len, struct position end)
{
	bool was_waiting = is_waiting(feed);

	feed->marked += len;
	feed->last = (struct feed_mark){ feed->marked, end };
	if (!was_waiting)
		feed->next = feed->last;
}

void feed_send(struct feed *feed, const void *bytes, size_t len)
{
	assert(!feed->n_unsent && feed->written + len == feed->marked);
	feed->unsent = bytes;
	feed->n_unsent = len;
	write_feed_unsent(feed);
}

int feed_rest(struct feed *feed)
{
	int ms = stream_rest(&feed->stream);

	return feed->is_up && is_waiting(feed) ? sooner_ms(ms, LOOK_MS) : ms;
}

/* ---- Opening ------------------------------------------------------------------ */

void feed_open(struct feed *feed, const struct stream_options *options,
	       struct sink_host *host)
{
	struct stream_options own = *options;

	own.good_ms = GOOD_MS;
	*feed = (struct feed){ .host = host };
	stream_open(&feed->stream, &own, host);
}

void feed_close(struct feed *feed)
{
	stream_close(&feed->stream);
}
