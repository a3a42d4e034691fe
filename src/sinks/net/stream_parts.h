/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a stream. */
#ifndef NETOBS_SINKS_NET_STREAM_PARTS_H
#define NETOBS_SINKS_NET_STREAM_PARTS_H

#include "stream.h"

/* Be called when the socket has @events; 0: not any more. */
void stream_watch(struct stream *stream, uint32_t events);

/* One step further on the way to a connection; false: there is none, now. */
bool stream_step(struct stream *stream);

void stream_enter(struct stream *stream, enum stream_phase phase, int64_t due_ms);

/* False: it has not answered for too long, and is given up. */
bool stream_is_alive(struct stream *stream);

/* No address is left to try: stream->reason is that of the last one. */
void stream_fail_attempt(struct stream *stream);

/* Release what a phase holds. */
void stream_release_socket(struct stream *stream); /* and TLS on it */
void stream_stop_resolving(struct stream *stream);
void stream_forget_addresses(struct stream *stream);

#endif
