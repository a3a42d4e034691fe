/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sums of buckets, by flow, and the processes that sent the flows. */
#ifndef NETOBS_TRACE_QUEUE_SUMS_H
#define NETOBS_TRACE_QUEUE_SUMS_H

#include "base/slots.h"
#include "bpf/queues.h"
#include "trace_programs.h"

#include <netobs/turn.h>
#include <stdbool.h>
#include <stdint.h>

struct queue_sum {
	uint32_t id; /* of the flow */
	uint64_t bytes;
};

/* Zeroes: of nothing. */
struct queue_sums {
	struct slots flows; /* of struct queue_sum */
	uint64_t bytes; /* of all flows, also of those that found no place in a bucket */
	uint64_t waited_ns;
};

/** Add a bucket. Without memory, its flows are in the bytes alone. */
void queue_sums_add(struct queue_sums *sums, const struct queue_bucket *bucket);

/** Add a share in its place, the largest first. @return zeroes but for the amount; NULL: others are larger */
struct netobs_queue_share *queue_add_largest(struct netobs_queue *queue,
					     uint64_t amount);

/**
 * Set amount and rest, which is all yet, and add the flows with most bytes, with their numbers in the place of pids.
 *
 * @return how many of them there are
 */
uint32_t queue_sums_fill(const struct queue_sums *sums,
			 struct netobs_queue *queue);

/** Begin again; the memory stays. */
void queue_sums_clear(struct queue_sums *sums);

void queue_sums_free(struct queue_sums *sums);

/** @return the flow as its socket sends it, before NAT */
struct queue_flow queue_origin(const struct queue_sender *sender);

/* How well a socket fits a flow; a higher one is better. */
enum queue_match {
	QUEUE_NO_MATCH,
	QUEUE_ANY_ADDRESS, /* it has the port, and sends from any address of its namespace */
	QUEUE_ITS_ADDRESS, /* it has that address, and sends anywhere */
	QUEUE_CONNECTED,   /* it is connected to the destination */
	QUEUE_SOCKET,	   /* the packet had this socket */
};

/** @param origin, socket  of the sender */
enum queue_match queue_match(const struct queue_owner *owner,
			     const struct queue_flow *origin, uint64_t socket);

/* The processes that send the flows of queues. */

/* Zeroes: none is known. */
struct queue_owners {
	struct slots flows;	     /* those that have been asked for */
	struct queue_owner *sockets; /* at the last look at all processes */
	uint32_t n, capacity;
	int64_t looked_ns; /* CLOCK_BOOTTIME */
};

/**
 * Set the process of a share, if it is known. All open sockets are listed for that, once a second at most. What has
 * been found stays, also once the process has ended.
 *
 * @param id  of the flow
 */
void queue_owners_name(struct queue_owners *owners,
		       const struct trace_programs *programs, uint32_t id,
		       const struct queue_sender *sender,
		       struct netobs_queue_share *share);

void queue_owners_free(struct queue_owners *owners);

#endif
