/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sockets that have datagrams to be read, in the order that they are read in. */
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

/** The socket has it, behind all others. Without memory, it is not known when it is read. */
void datagram_readers_push(struct datagram_readers *readers,
			   struct datagram *datagram, uint64_t socket);

/** @return the one that is read next; NULL: none */
struct datagram *datagram_readers_first(const struct datagram_readers *readers,
					uint64_t socket);

/** @return the one of the socket whose last buffer that is; NULL: none */
struct datagram *datagram_readers_find(const struct datagram_readers *readers,
				       uint64_t socket, uint64_t buffer);

/** Which of those of the socket have been read is not known. */
void datagram_readers_obscure(struct datagram_readers *readers, uint64_t socket);

/** It has left its socket, if it was in one. */
void datagram_readers_remove(struct datagram_readers *readers,
			     struct datagram *datagram);

void datagram_readers_free(struct datagram_readers *readers);

#endif
