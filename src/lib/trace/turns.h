/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Turns: what this host saw of the messages of connections, made of their events and journeys.
 * Independent of BPF and the kernel.
 *
 * The process at a socket writes, or it reads. Its first read after writes ends the message that it has written,
 * and its first write after reads ends the message that it has read. Records are kept for a moment, for
 * what comes late, and at most TURNS_HELD_MAX of all connections: of more, the oldest are delivered at once.
 */
#ifndef NETOBS_TRACE_TURNS_H
#define NETOBS_TRACE_TURNS_H

#include "turn_ops.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

struct journey_event;
struct turns;

/** @return 0; -ENOMEM */
int turns_new(const struct turns_ops *ops, struct turns **ret_turns);

void turns_free(struct turns *turns);

/**
 * Note what an event tells of its connection, as soon as it comes, before journeys_add().
 *
 * @return 0; -ENOMEM: the connection is left out
 */
int turns_note(struct turns *turns, const struct netobs_trace_event *event);

/** A process has the socket open that sends in @direction, of a connection that began before. */
void turns_note_holder(struct turns *turns, uint64_t connection,
		       uint8_t direction, uint32_t pid, const char command[16]);

/** Take an event, in order of time: a journeys_event_fn. */
void turns_take(const struct journey_event *event, void *turns);

/** Take a journey, which journeys deliver after its events. */
void turns_join(struct turns *turns, const struct netobs_journey *journey);

/** Deliver what is complete at @now_ns, since 1970, and each second what is not. */
void turns_advance(struct turns *turns, int64_t now_ns);

/** Deliver the rest of a connection, after journeys_end(); 0: of all */
void turns_end(struct turns *turns, uint64_t connection);

/** @return records that were left out because of TURNS_BURST */
uint64_t turns_count_thinned(const struct turns *turns);

#endif
