/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sockets with unread datagrams, in the order in which these are read. */
#ifndef NETOBS_TRACE_DATAGRAM_READERS_H
#define NETOBS_TRACE_DATAGRAM_READERS_H

#include "datagram.h"

struct datagram_reader {
	uint64_t socket;
	struct datagram *first, *last;
};

/* Zeroes: none. */
struct datagram_readers {
	struct datagram_reader *items; /* by socket */
	uint32_t n, capacity;
};

/** Put @datagram at the end of the socket's queue. Without memory, the time when it is read stays unknown. */
void datagram_readers_push(struct datagram_readers *readers,
			   struct datagram *datagram, uint64_t socket);

/** @return the datagram that is read next; NULL: none */
struct datagram *datagram_readers_first(const struct datagram_readers *readers,
					uint64_t socket);

/** @return the socket's datagram whose last buffer is @buffer; NULL: none */
struct datagram *datagram_readers_find(const struct datagram_readers *readers,
				       uint64_t socket, uint64_t buffer);

/** Note that it is unknown which datagrams of the socket have been read. */
void datagram_readers_obscure(struct datagram_readers *readers, uint64_t socket);

/** Remove @datagram from its socket's queue, if it is in one. */
void datagram_readers_remove(struct datagram_readers *readers,
			     struct datagram *datagram);

void datagram_readers_free(struct datagram_readers *readers);

#endif
