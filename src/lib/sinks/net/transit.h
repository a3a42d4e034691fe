/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The state of the messages of a connection, derived from the number of bytes that the
 * peer's TCP has confirmed. Confirmed bytes may still be in the kernel of the collector,
 * and be lost if that ends. So a message is sent, then confirmed, then known to be read, or
 * presumed read if no better proof can come. In both cases it is delivered; in the second
 * it is unsure.
 */
#ifndef NETOBS_SINKS_NET_TRANSIT_H
#define NETOBS_SINKS_NET_TRANSIT_H

#include "sink/spool/position.h"

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
	unsigned int n_confirmed,
		n_taken; /* of them; taken: read, or presumed so */
	uint64_t sent;	 /* bytes of the connection */
	uint64_t step; /* bytes that share an entry, as there are too many messages */
	struct position unsure;	   /* presumed read: these may be lost */
	struct position delivered; /* all before it is */
};

/* A connection that begins behind @start. */
void transit_start(struct transit *transit, struct position start);

/* A message was sent, with @count records up to @end; it ends at byte @at. */
void transit_add(struct transit *transit, uint64_t at, struct position count,
		 struct position end);

/* The first @bytes of the connection are confirmed. */
void transit_confirm(struct transit *transit, uint64_t bytes, int64_t now_ms);

/** The first @bytes were read, if they are confirmed. @return whether that is new */
bool transit_read(struct transit *transit, uint64_t bytes);

/* Presume that messages confirmed up to @until_ms were read. */
void transit_take(struct transit *transit, int64_t until_ms);

/* Presume the same of the older half of the confirmed messages that are left. */
void transit_take_half(struct transit *transit);

static inline bool transit_is_confirmed(const struct transit *transit)
{
	return transit->n_confirmed == transit->n;
}

/** @return whether all messages are delivered */
static inline bool transit_is_delivered(const struct transit *transit)
{
	return transit->n_taken == transit->n;
}

#endif
