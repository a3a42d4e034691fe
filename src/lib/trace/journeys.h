/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Journeys: the events of connections, joined by ranges of bytes. Independent of BPF and the
 * kernel.
 *
 * Events of a direction are kept in order of time. Once bytes are read or acknowledged, they are cut
 * at the boundaries of all events: the bytes between two boundaries passed all points together. The
 * time between two consecutive points belongs to one part, so the parts add up to the whole.
 */
#ifndef NETOBS_TRACE_JOURNEYS_H
#define NETOBS_TRACE_JOURNEYS_H

#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct journeys;

/* The journey's drop_cause is still empty. */
typedef void journeys_fn(struct netobs_journey *journey, void *ctx);

struct journey_event;

/* An event, also one without bytes, in order of time, before it ends journeys. */
typedef void journeys_event_fn(const struct journey_event *event, void *ctx);

/** @return 0; -ENOMEM */
int journeys_new(journeys_fn *on_journey, void *ctx,
		 struct journeys **ret_journeys);

/** Call @on_event for all events from now on. */
void journeys_watch(struct journeys *journeys, journeys_event_fn *on_event,
		    void *ctx);

void journeys_free(struct journeys *journeys);

/**
 * Add an event. Events of different CPUs may be some milliseconds out of order. Journeys that are
 * known to be over are delivered.
 *
 * @return 0; -ENOMEM: the event is left out
 */
int journeys_add(struct journeys *journeys,
		 const struct netobs_trace_event *event);

/** Deliver journeys whose last event was some time before @now_ns, since 1970. */
void journeys_advance(struct journeys *journeys, int64_t now_ns);

/** @return how many journeys were delivered before their end, because memory is bounded */
uint64_t journeys_count_cut(const struct journeys *journeys);

/** @return whether bytes of the connection have not ended yet */
bool journeys_is_waiting(const struct journeys *journeys, uint64_t connection);

/** Deliver the rest of a connection, which has ended, or of all (0) at the end of the tracer. */
void journeys_end(struct journeys *journeys, uint64_t connection);

#endif
