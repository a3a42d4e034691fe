/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A connection to a collector, over TCP or TLS, that is made again whenever it
 * fails. Nothing here waits. A module's work() uses it like this:
 *
 *	state = stream_prepare(s);	PEER_NEW: the session starts anew
 *	stream_read() until -EAGAIN	also if nothing is expected
 *	stream_write() what there is
 *	host->ops->wake_in(host, sooner_ms(stream_rest(s), ...));
 *
 * What goes wrong is logged once, and once that it is over.
 */
#ifndef NETOBS_SINKS_NET_STREAM_H
#define NETOBS_SINKS_NET_STREAM_H

#include "address.h"
#include "base/backoff.h"
#include "base/outage.h"
#include "sink/module.h"
#include "sink/peer_state.h"
#include "tls.h"

#include <netdb.h>
#include <stdint.h>
#include <sys/types.h>

struct stream_options {
	struct address address;
	struct sockaddr_storage source; /* AF_UNSPEC: any */
	const struct tls_context *tls; /* NULL: plain TCP; outlives the stream */
	uint32_t connect_ms;	       /* per address, with TLS; 0: 4 s */
	uint32_t retry_ms, retry_max_ms; /* 0: 1 s, growing to 3 s */
	uint32_t unanswered_ms; /* without an answer it has failed; 0: 8 s */
	uint32_t good_ms;	/* 0: only stream_is_good() says so */
	bool keeps_half; /* the other side may end its half, and read on */
};

enum stream_phase {
	STREAM_WAITING, /* until the next attempt */
	STREAM_RESOLVING,
	STREAM_CONNECTING, /* TCP's handshake */
	STREAM_HANDSHAKE,  /* that of TLS */
	STREAM_READY,
};

/* Stays where it is in memory while it is open. */
struct stream {
	struct sink_host *host;
	struct stream_options options;
	enum stream_phase phase;
	int64_t due_ms;	  /* when the phase ends by itself */
	int64_t began_ms; /* the last attempt */
	struct resolve *resolve;
	struct addrinfo *addresses; /* that the name has */
	unsigned int first, tried; /* of them: the best one so far, and how many */
	int fd;
	uint32_t watched; /* events of fd */
	struct tls tls;
	bool wants_out; /* until the socket can be written to */
	bool is_new;	/* not reported to the owner yet */
	bool is_good;	/* it has shown to be of use */
	bool was_good;	/* the connection before it */
	bool is_idle; /* the owner's: if it is closed now, that is no failure */
	bool is_half; /* the other side has ended its half */
	bool is_ending;	   /* this side has ended its own */
	int64_t look_ms;   /* when to look at its answers again */
	int64_t silent_ms; /* since when there are none; 0: there are */
	struct backoff backoff;
	struct outage outage;
	char reason[512];     /* of the last failure */
	uint64_t connections; /* since the start */
};

/* Connecting begins with the first stream_prepare(). */
void stream_open(struct stream *stream, const struct stream_options *options,
		 struct sink_host *host);

/* Also of what is zeroed, or closed. */
void stream_close(struct stream *stream);

enum peer_state stream_prepare(struct stream *stream);

/* Bytes, or -EAGAIN; others: the connection has failed, and is made again. */
ssize_t stream_read(struct stream *stream, void *to, size_t len);

/* The same. After -EAGAIN the same bytes have to come first. */
ssize_t stream_write(struct stream *stream, const void *from, size_t len);

/* Wait for what there is to wait for. When to be called next, as wake_in() has it. */
int stream_rest(struct stream *stream);

/*
 * The other side does what it should: what was logged is over, and after the next
 * failure the first attempt is soon. Each time, or once per connection.
 */
void stream_is_good(struct stream *stream);

/* It does not: its connection is closed, and made again later. */
__attribute__((format(printf, 2, 3))) void stream_fail(struct stream *stream,
						       const char *format, ...);

/*
 * End this side's half, once all is written. 0: the other side has closed its own
 * after that, without a reset: Linux does so only if all was read. -EAGAIN: not yet,
 * or it cannot be known; others: the connection has failed.
 */
int stream_end(struct stream *stream);

/* Another connection instead of this one, at once if this one was good. */
void stream_restart(struct stream *stream);

/* Bytes that the other side's TCP has not confirmed, with what TLS adds to them. */
size_t stream_unconfirmed(const struct stream *stream);

/* Bytes that the other side takes now; 0 also where there is no connection. */
uint32_t stream_window(const struct stream *stream);

/*
 * Bytes that the other side's receive buffer can hold at most, however it grows while
 * it is connected; UINT64_MAX where there is no connection.
 */
uint64_t stream_largest_buffer(const struct stream *stream);

#endif
