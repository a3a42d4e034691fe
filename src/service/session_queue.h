/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Sessions that have ended during a drain, in their order, until it is known which conversations they are
 * part of.
 */
#ifndef NETOBS_SERVICE_SESSION_QUEUE_H
#define NETOBS_SERVICE_SESSION_QUEUE_H

#include <netobs/session.h>

#include <stdbool.h>

/* About five megabytes, which take memory as they are used and are freed once all are delivered. */
enum { SESSION_QUEUE_MAX = 4096 };

/* Zeroes: empty. */
struct session_queue {
	struct netobs_session *ring; /* SESSION_QUEUE_MAX; or NULL */
	uint32_t first, n;
};

/** @return false: there is no room, and nothing was added */
bool session_queue_add(struct session_queue *queue,
		       const struct netobs_session *session);

/** @return the first one, which stays the queue's; NULL: it is empty */
struct netobs_session *session_queue_first(const struct session_queue *queue);

/** Remove the first one; there is one. */
void session_queue_remove(struct session_queue *queue);

/** Free all. */
void session_queue_clear(struct session_queue *queue);

#endif
