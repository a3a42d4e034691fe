/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The datagrams of all connections, and which one an event belongs to: the one with its buffer, or,
 * where the buffer changes, with the number in its header that fragments and echoes have.
 */
#ifndef NETOBS_TRACE_DATAGRAMS_H
#define NETOBS_TRACE_DATAGRAMS_H

#include "datagram.h"

struct datagrams;

/** @return 0; -ENOMEM */
int datagrams_new(struct datagrams **ret_datagrams);

/** Call it after datagrams_end() of each direction. */
void datagrams_free(struct datagrams *datagrams);

/**
 * Take an event, the next one by time, which then belongs to the table. Deliver the datagrams that it
 * ends.
 */
void datagrams_take(struct datagrams *datagrams, struct journey_event *event,
		    struct journey_draft *draft);

/** Deliver the datagrams of which no more events are expected at @now_ns. */
void datagrams_advance(struct datagrams *datagrams, int64_t now_ns,
		       struct journey_draft *draft);

/** Deliver the older half of the datagrams on their way: memory is short. */
void datagrams_halve(struct datagrams *datagrams, struct journey_draft *draft);

/** Deliver all datagrams of a direction; with @draft NULL, discard them. */
void datagrams_end(struct datagrams *datagrams, struct direction *direction,
		   struct journey_draft *draft);

#endif
