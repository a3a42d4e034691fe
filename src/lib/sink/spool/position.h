/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A place between two records of a spool, as the numbers of records, packets and bytes
 * before it. So the difference of two positions is what lies between them, also where the
 * records themselves are lost.
 */
#ifndef NETOBS_SINK_SPOOL_POSITION_H
#define NETOBS_SINK_SPOOL_POSITION_H

#include <stdbool.h>
#include <stdint.h>

struct position {
	uint64_t seq; /* records */
	uint64_t packets;
	uint64_t bytes;
};

static inline struct position position_add(struct position a, struct position b)
{
	return (struct position){ a.seq + b.seq, a.packets + b.packets,
				  a.bytes + b.bytes };
}

static inline struct position position_sub(struct position a, struct position b)
{
	return (struct position){ a.seq - b.seq, a.packets - b.packets,
				  a.bytes - b.bytes };
}

static inline bool position_is_before(struct position a, struct position b)
{
	return a.seq < b.seq;
}

#endif
