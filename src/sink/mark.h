/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A place between two records of a spool, by what lies before it, so that what is
 * between two marks is a subtraction: also where the records themselves are lost.
 */
#ifndef NETOBS_SINK_MARK_H
#define NETOBS_SINK_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct mark {
	uint64_t seq; /* records */
	uint64_t packets;
	uint64_t bytes;
};

static inline struct mark mark_add(struct mark a, struct mark b)
{
	return (struct mark){ a.seq + b.seq, a.packets + b.packets,
			      a.bytes + b.bytes };
}

static inline struct mark mark_sub(struct mark a, struct mark b)
{
	return (struct mark){ a.seq - b.seq, a.packets - b.packets,
			      a.bytes - b.bytes };
}

static inline bool mark_is_before(struct mark a, struct mark b)
{
	return a.seq < b.seq;
}

#endif
