/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Messages over TCP or TLS, in a protocol without acknowledgements. A message is delivered
 * once the peer's TCP has acknowledged all of its bytes. Other messages are sent again over
 * the next connection, which begins with a whole one. Nothing here waits. A module's work()
 * uses it like this:
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

/* The end of a message. */
struct feed_mark {
	uint64_t at;	     /* bytes of the connection before it */
	struct position end; /* behind its last record */
};

struct feed {
	struct sink_host *host;
	struct stream stream;
	struct position acked; /* all before it was delivered */
	bool is_up;	       /* a session is under way */
	const uint8_t *unsent; /* the rest of what is being sent */
	size_t n_unsent;
	uint64_t marked, written; /* bytes of this connection */
	/* The mark that is waited for, and the last one: those between them wait for the last. */
	struct feed_mark next, last;
	uint64_t sessions, broken_sessions;
};

/**
 * Begin to connect with the first feed_prepare().
 *
 * @param options  without good_ms, which is set here
 */
void feed_open(struct feed *feed, const struct stream_options *options,
	       struct sink_host *host);

/** A feed that is zeroed or closed is fine. */
void feed_close(struct feed *feed);

/** @return PEER_NEW, PEER_READY or PEER_AWAY */
enum peer_state feed_prepare(struct feed *feed);

/** A message of @len bytes, with the records before @end, will be sent next. */
void feed_mark(struct feed *feed, size_t len, struct position end);

/** @return whether the bytes of feed_send() are not all sent: they must not be moved */
static inline bool feed_is_busy(const struct feed *feed)
{
	return feed->n_unsent;
}

/** Send messages that were marked, unless it is busy. @bytes: borrowed until they are sent. */
void feed_send(struct feed *feed, const void *bytes, size_t len);

/** @return when to be called, as wake_in() has it */
int feed_rest(struct feed *feed);

#endif
