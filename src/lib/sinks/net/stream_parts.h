/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a stream. */
#ifndef NETOBS_SINKS_NET_STREAM_PARTS_H
#define NETOBS_SINKS_NET_STREAM_PARTS_H

#include "stream.h"

/* Call the sink when the socket has @events; 0: no more. */
void stream_watch(struct stream *stream, uint32_t events);

/** Do the next step to a connection. @return false: none is possible now */
bool stream_step(struct stream *stream);

void stream_enter(struct stream *stream, enum stream_phase phase, int64_t due_ms);

/** @return false: the peer has not answered for too long, and the connection is closed */
bool stream_is_alive(struct stream *stream);

/* No address is left to try: stream->reason is that of the last one. */
void stream_fail_attempt(struct stream *stream);

/* Release what a phase holds. */
void stream_release_socket(struct stream *stream); /* and TLS on it */
void stream_stop_resolving(struct stream *stream);
void stream_forget_addresses(struct stream *stream);

#endif
