// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "feed.h"

#include "base/clock_ms.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>

enum {
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

/* ---- What has arrived --------------------------------------------------------- */

static void deliver_messages(struct feed *feed)
{
	struct position end = feed->transit.delivered;

	if (!position_is_before(feed->acked, end))
		return;
	feed->acked = end;
	feed->host->ops->ack(feed->host, end);
}

static void note_window(struct feed *feed)
{
	feed->window = stream_window(&feed->stream);
	if (feed->window > feed->largest_window)
		feed->largest_window = feed->window;
}

/* The window is not much smaller than the largest one so far. */
static bool is_window_open(const struct feed *feed)
{
	return feed->window && feed->window >= feed->largest_window / 4;
}

/* With TLS, unconfirmed bytes include its headers, so no record counts too early. */
static uint64_t confirmed_bytes(const struct feed *feed)
{
	uint64_t unconfirmed = stream_unconfirmed(&feed->stream);

	return feed->written - min_u64(unconfirmed, feed->written);
}

/* Up to when something may have been confirmed to be taken for read. */
static int64_t settled_until(const struct feed *feed)
{
	if (feed->resend == FEED_UNACKNOWLEDGED)
		return INT64_MAX;
	return is_window_open(feed) ? now_ms() - SETTLE_MS : 0;
}

static void take_for_read(struct feed *feed)
{
	struct sink_host *host = feed->host;

	transit_take(&feed->transit, settled_until(feed));
	if (host->ops->is_pressed(host))
		transit_take_half(&feed->transit);
}

static void take_confirmed(struct feed *feed)
{
	struct transit *transit = &feed->transit;
	uint64_t confirmed;

	if (!transit->n)
		return;
	note_window(feed);
	confirmed = confirmed_bytes(feed);
	transit_confirm(transit, confirmed, now_ms());
	if (transit_read(transit, confirmed - min_u64(feed->doubt, confirmed)))
		stream_is_good(&feed->stream);
	take_for_read(feed);
	deliver_messages(feed);
}

/* ---- Sessions ----------------------------------------------------------------- */

/*
 * The connection is gone. Confirmations of its end do not count: the data may have reached a
 * collector that was about to exit.
 */
static void note_broken(struct feed *feed)
{
	struct sink_host *host = feed->host;
	struct position unsure = feed->transit.unsure;

	feed->is_up = feed->is_finishing = false;
	if (unsure.seq)
		host->ops->note_unconfirmed(host, unsure);
	feed->broken_sessions += !feed->stream.was_good;
	transit_start(&feed->transit, feed->acked);
}

static enum peer_state start_over(struct feed *feed)
{
	uint64_t buffer = stream_largest_buffer(&feed->stream);

	feed->is_up = true;
	feed->has_ended = false;
	feed->marked = feed->written = 0;
	feed->window = feed->largest_window = 0;
	feed->doubt = buffer + min_u64(DOUBT_MORE, UINT64_MAX - buffer);
	feed->n_unsent = 0;
	transit_start(&feed->transit, feed->acked);
	feed->sessions++;
	return PEER_NEW;
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

/* The session has ended in order; @is_known: the collector has read everything. */
static void end_session(struct feed *feed, bool is_known)
{
	transit_confirm(&feed->transit, feed->written, now_ms());
	if (is_known)
		transit_read(&feed->transit, feed->written);
	transit_take(&feed->transit, INT64_MAX);
	deliver_messages(feed);
	stream_is_good(&feed->stream);
	stream_restart(&feed->stream);
	note_broken(feed);
	feed->has_ended = true;
}

static void finish_session(struct feed *feed)
{
	int err = stream_end(&feed->stream);

	if (!err) {
		end_session(feed, true);
	} else if (err == -EAGAIN && now_ms() >= feed->finish_ms) {
		take_confirmed(feed);
		if (transit_is_confirmed(&feed->transit))
			end_session(feed, false);
	}
}

/* Continue a session: send what is left, and process confirmations. */
static void proceed_session(struct feed *feed)
{
	if (feed->is_finishing) {
		finish_session(feed);
		return;
	}
	read_some(feed);
	write_feed_unsent(feed);
	if (feed->stream.phase == STREAM_READY)
		take_confirmed(feed);
}

/* All is delivered, and nothing new has come: no connection is needed. */
static bool is_feed_over(const struct feed *feed)
{
	return feed->has_ended && feed->host->is_ending;
}

enum peer_state feed_prepare(struct feed *feed)
{
	enum peer_state state;

	if (is_feed_over(feed))
		return PEER_AWAY;
	state = stream_prepare(&feed->stream);
	if (state == PEER_READY)
		proceed_session(feed);
	if (feed->is_up &&
	    (feed->stream.phase != STREAM_READY || state == PEER_NEW))
		note_broken(feed);
	if (state == PEER_NEW)
		return start_over(feed);
	return feed->is_up && !feed->is_finishing ? PEER_READY : PEER_AWAY;
}

void feed_mark(struct feed *feed, size_t len, struct position count,
	       struct position end)
{
	feed->marked += len;
	transit_add(&feed->transit, feed->marked, count, end);
}

void feed_send(struct feed *feed, const void *bytes, size_t len)
{
	assert(!feed->n_unsent && feed->written + len == feed->marked);
	feed->unsent = bytes;
	feed->n_unsent = len;
	write_feed_unsent(feed);
}

void feed_finish(struct feed *feed)
{
	if (!feed->is_up || feed->is_finishing || feed->n_unsent ||
	    transit_is_delivered(&feed->transit))
		return;
	feed->is_finishing = true;
	feed->finish_ms = now_ms() + FINISH_MS;
	finish_session(feed);
}

int feed_rest(struct feed *feed)
{
	int ms;

	if (is_feed_over(feed))
		return -1;
	ms = stream_rest(&feed->stream);
	if (!feed->is_up || !feed->transit.n)
		return ms;
	if (feed->is_finishing || !transit_is_confirmed(&feed->transit))
		return sooner_ms(ms, LOOK_MS);
	return transit_is_delivered(&feed->transit) ?
		       ms :
		       sooner_ms(ms, SETTLE_LOOK_MS);
}

/* ---- Opening ------------------------------------------------------------------ */

enum feed_resend feed_read_resend(struct spec *spec)
{
	static const char *const choices[] = { "doubtful", "unacknowledged",
					       NULL };

	return (enum feed_resend)spec_choice(spec, "resend", choices,
					     FEED_DOUBTFUL);
}

void feed_open(struct feed *feed, const struct stream_options *options,
	       enum feed_resend resend, struct sink_host *host)
{
	struct stream_options own = *options;

	own.good_ms = GOOD_MS;
	own.keeps_half = true;
	*feed = (struct feed){ .host = host, .resend = resend };
	stream_open(&feed->stream, &own, host);
}

void feed_close(struct feed *feed)
{
	stream_close(&feed->stream);
}
