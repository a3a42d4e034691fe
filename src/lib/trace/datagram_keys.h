/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A table of datagrams by keys that their events have in common: buffer, IP id, echo number. */
#ifndef NETOBS_TRACE_DATAGRAM_KEYS_H
#define NETOBS_TRACE_DATAGRAM_KEYS_H

#include "datagram.h"

/* Zeroes: empty. */
struct datagram_keys {
	struct datagram_key **buckets;
	uint32_t n_buckets; /* a power of two */
	uint32_t n;
};

/** @return the datagram that was set last; NULL: none */
struct datagram *datagram_keys_find(const struct datagram_keys *keys,
				    const struct direction *direction,
				    enum datagram_mark mark, uint64_t value);

/** Make @mark and @value find @datagram, and no other one. Without memory, nothing changes. */
void datagram_keys_set(struct datagram_keys *keys, struct datagram *datagram,
		       enum datagram_mark mark, uint64_t value);

/** Remove all keys of @datagram. */
void datagram_keys_remove(struct datagram_keys *keys, struct datagram *datagram);

/** Free the table; all datagrams have been removed. */
void datagram_keys_free(struct datagram_keys *keys);

#endif
