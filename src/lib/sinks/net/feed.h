/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Messages over TCP or TLS, in a protocol without acknowledgements. Bytes that TCP has
 * confirmed may be lost in the kernel of a collector that ends: transit.h has the
 * conclusions. Messages that are not delivered are sent again over the next connection,
 * which begins with a whole one. Nothing here waits. A module's work() uses it like this:
 *
 *	while ((state = feed_prepare(f)) != PEER_AWAY) {
 *		PEER_NEW: make all messages again from the records behind f->acked
 *		make messages, and feed_mark() each
 *		if (feed_is_busy(f)) break;
 *		feed_send() them
 *	}
 *	host->ops->wake_in(host, feed_rest(f));
 */
#ifndef NETOBS_SINKS_NET_FEED_H
#define NETOBS_SINKS_NET_FEED_H

#include "stream.h"
#include "transit.h"

/* To be sent again after a failure: all that may not have been read, or less. */
enum feed_resend { FEED_DOUBTFUL, FEED_UNACKNOWLEDGED };

struct feed {
	struct sink_host *host;
	struct stream stream;
	struct transit transit;
	struct position acked; /* all before it was delivered */
	enum feed_resend resend;
	bool is_up;	       /* a session is under way */
	bool is_finishing;     /* all was sent, and it is to end */
	bool has_ended;	       /* the last one ended in order */
	int64_t finish_ms;     /* until when to wait for that */
	const uint8_t *unsent; /* the rest of what is being sent */
	size_t n_unsent;
	uint64_t marked, written; /* bytes of this connection */
	uint32_t window, largest_window;
	uint64_t doubt; /* bytes that may be confirmed and not read */
	uint64_t sessions, broken_sessions;
};

/** Read the option `resend`. */
enum feed_resend feed_read_resend(struct spec *spec);

/**
 * Begin to connect with the first feed_prepare().
 *
 * @param options  without good_ms and keeps_half, which are set here
 */
void feed_open(struct feed *feed, const struct stream_options *options,
	       enum feed_resend resend, struct sink_host *host);

/** A feed that is zeroed or closed is fine. */
void feed_close(struct feed *feed);

/** @return PEER_NEW, PEER_READY or PEER_AWAY */
enum peer_state feed_prepare(struct feed *feed);

/** A message of @len bytes, with @count records up to @end, will be sent next. */
void feed_mark(struct feed *feed, size_t len, struct position count,
	       struct position end);

/** @return whether the bytes of feed_send() are not all sent: they must not be moved */
static inline bool feed_is_busy(const struct feed *feed)
{
	return feed->n_unsent;
}

/** Send messages that were marked, unless it is busy. @bytes: borrowed until they are sent. */
void feed_send(struct feed *feed, const void *bytes, size_t len);

/** All was sent: end the session, which shows what has arrived. */
void feed_finish(struct feed *feed);

/** @return when to be called, as wake_in() has it */
int feed_rest(struct feed *feed);

#endif
