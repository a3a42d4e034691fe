/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A connection to a collector, over TCP or TLS, which is made again after a failure.
 * Nothing here waits. A module's work() uses it like this:
 *
 *	state = stream_prepare(s);	PEER_NEW: the session starts anew
 *	stream_read() until -EAGAIN	also if nothing is expected
 *	stream_write() what there is
 *	host->ops->wake_in(host, sooner_ms(stream_rest(s), ...));
 *
 * An outage is logged when it begins, and when it ends.
 */
#ifndef NETOBS_SINKS_NET_STREAM_H
#define NETOBS_SINKS_NET_STREAM_H

#include "address.h"
#include "base/outage.h"
#include "sink/module.h"
#include "tls.h"

#include <netdb.h>
#include <stdint.h>
#include <sys/types.h>

struct stream_options {
	struct address address;
	struct sockaddr_storage source; /* AF_UNSPEC: any */
	struct tls_context *tls; /* NULL: plain TCP; outlives the stream */
	uint32_t connect_ms;	 /* per address, with TLS; 0: 4 s */
	uint32_t retry_ms, retry_max_ms; /* 0: 1 s, growing to 3 s */
	uint32_t unanswered_ms; /* without an answer it has failed; 0: 8 s */
	uint32_t good_ms;	/* 0: only stream_is_good() says so */
};

enum stream_phase {
	STREAM_WAITING, /* until the next attempt */
	STREAM_RESOLVING,
	STREAM_CONNECTING, /* TCP's handshake */
	STREAM_HANDSHAKE,  /* the TLS handshake */
	STREAM_READY,
};

/* Must not be moved while it is open. */
struct stream {
	struct sink_host *host;
	struct stream_options options;
	enum stream_phase phase;
	int64_t due_ms;	  /* the end of the phase */
	int64_t began_ms; /* the last attempt */
	struct worker *resolve;
	struct addrinfo *addresses; /* addresses of the name */
	unsigned int first, tried;  /* the best address so far; number tried */
	int fd;
	uint32_t watched; /* events of fd */
	struct tls tls;
	bool wants_out;	   /* until the socket can be written to */
	bool is_new;	   /* not reported to the owner yet */
	bool is_good;	   /* the connection has been used with success */
	bool was_good;	   /* the previous connection was good */
	bool is_idle;	   /* set by the owner: closing it now is no failure */
	int64_t look_ms;   /* when to check its answers again */
	int64_t silent_ms; /* the time of the last answer; 0: none is missing */
	struct backoff backoff;
	struct outage outage;
	char reason[512];     /* reason of the last failure */
	uint64_t connections; /* since the start */
};

/* Connecting begins with the first stream_prepare(). */
void stream_open(struct stream *stream, const struct stream_options *options,
		 struct sink_host *host);

/* A stream that is zeroed or closed is fine. */
void stream_close(struct stream *stream);

enum peer_state stream_prepare(struct stream *stream);

/** @return bytes; -EAGAIN; others: the connection has failed, and is made again */
ssize_t stream_read(struct stream *stream, void *to, size_t len);

/* @return as stream_read(). After -EAGAIN the next call has to begin with the same bytes. */
ssize_t stream_write(struct stream *stream, const void *from, size_t len);

/** Register the events to wait for. @return when to be called next, as for wake_in() */
int stream_rest(struct stream *stream);

/*
 * The peer works: an outage is over, and after the next failure the first attempt is soon.
 * To be called each time, or once per connection.
 */
void stream_is_good(struct stream *stream);

/* The peer does not work: close the connection, and make it again later. */
__attribute__((format(printf, 2, 3))) void stream_fail(struct stream *stream,
						       const char *format, ...);

/* Make another connection instead, at once if this one was good. */
void stream_restart(struct stream *stream);

/** @return bytes, with those that TLS adds, that the peer's TCP has not acknowledged */
size_t stream_unacknowledged(const struct stream *stream);

#endif
