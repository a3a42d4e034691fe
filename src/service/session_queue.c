// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "service_observers.h"

#include <assert.h>
#include <stdlib.h>

bool session_queue_add(struct session_queue *queue,
		       const struct netobs_session *session)
{
	if (!queue->ring)
		queue->ring = calloc(SESSION_QUEUE_MAX, sizeof(*session));
	if (!queue->ring || queue->n == SESSION_QUEUE_MAX)
		return false;
	queue->ring[(queue->first + queue->n++) % SESSION_QUEUE_MAX] = *session;
	return true;
}

struct netobs_session *session_queue_first(const struct session_queue *queue)
{
	return queue->n ? &queue->ring[queue->first] : NULL;
}

void session_queue_remove(struct session_queue *queue)
{
	assert(queue->n);
	queue->first = (queue->first + 1) % SESSION_QUEUE_MAX;
	queue->n--;
	if (!queue->n)
		session_queue_clear(queue);
}

void session_queue_clear(struct session_queue *queue)
{
	free(queue->ring);
	*queue = (struct session_queue){ 0 };
}
