/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a stream. */
#ifndef NETOBS_SINKS_NET_STREAM_IO_H
#define NETOBS_SINKS_NET_STREAM_IO_H

#include "stream.h"

/* Be called when the socket has @events; 0: not any more. */
void stream_watch(struct stream *stream, uint32_t events);

#endif
