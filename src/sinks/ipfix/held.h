/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Messages that were sent, and of which it is not known yet whether they arrived. */
#ifndef NETOBS_SINKS_IPFIX_HELD_H
#define NETOBS_SINKS_IPFIX_HELD_H

#include "sink/position.h"

enum { HELD_MAX = 512 };

struct held_message {
	uint64_t at; /* a time, or a place in a stream */
	uint32_t sequence;
	uint32_t records;
	struct position end; /* behind its last record */
};

/* In the order in which they were sent. */
struct held {
	struct held_message ring[HELD_MAX];
	unsigned int first, n;
};

static inline struct held_message *held_get(struct held *held, unsigned int i)
{
	return &held->ring[(held->first + i) % HELD_MAX];
}

static inline void held_drop_first(struct held *held)
{
	held->first = (held->first + 1) % HELD_MAX;
	held->n--;
}

/* There must be room. */
static inline void held_add(struct held *held, struct held_message message)
{
	held->ring[(held->first + held->n++) % HELD_MAX] = message;
}

#endif
