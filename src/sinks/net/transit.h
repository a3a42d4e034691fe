/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What became of the messages of a connection, by how many of its bytes the other
 * side's TCP has confirmed. That is not to say that the collector has read them: they
 * may be in its kernel, and vanish with it. So a message is first sent, then
 * confirmed, and then read for sure, or taken for read because there is nothing more
 * to learn about it. It is delivered in both cases; in the second it stays unsure.
 */
#ifndef NETOBS_SINKS_NET_TRANSIT_H
#define NETOBS_SINKS_NET_TRANSIT_H

#include "sink/position.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRANSIT_MAX = 512 };

struct transit_message {
	uint64_t from, at; /* bytes of the connection, without and with it */
	int64_t confirmed_ms;
	struct position count; /* of its records */
	struct position end;   /* behind the last one */
};

/* Messages in the order in which they were sent, without those that were read. */
struct transit {
	struct transit_message ring[TRANSIT_MAX];
	unsigned int first, n;
	unsigned int n_confirmed, n_taken; /* of them; taken for read: not more */
	uint64_t sent;			   /* bytes of the connection */
	uint64_t step; /* bytes that share a place, since there are too many */
	struct position unsure; /* those taken for read, and would be lost if they were not */
	struct position delivered; /* what lies before it is */
};

/* A connection that begins behind @start. */
void transit_start(struct transit *transit, struct position start);

/* A message was sent, with @count records up to @end; it ends at byte @at. */
void transit_add(struct transit *transit, uint64_t at, struct position count,
		 struct position end);

/* The first @bytes of the connection are confirmed. */
void transit_confirm(struct transit *transit, uint64_t bytes, int64_t now_ms);

/* The first @bytes were read for sure, as far as they are confirmed. True: some more. */
bool transit_read(struct transit *transit, uint64_t bytes);

/* What was confirmed up to @until_ms is taken for read. */
void transit_take(struct transit *transit, int64_t until_ms);

/* So is the older half of what was confirmed, or of what is left of it. */
void transit_take_half(struct transit *transit);

static inline bool transit_is_confirmed(const struct transit *transit)
{
	return transit->n_confirmed == transit->n;
}

/* Nothing waits to be delivered. */
static inline bool transit_is_delivered(const struct transit *transit)
{
	return transit->n_taken == transit->n;
}

#endif
