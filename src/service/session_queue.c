// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "session_queue.h"

#include "base/util.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

bool session_queue_add(struct session_queue *queue,
		       const struct netobs_session *session)
{
	if (queue->n == SESSION_QUEUE_MAX ||
	    !array_reserve(&queue->list, queue->n, &queue->capacity,
			   sizeof(*session), FIRST_CAPACITY))
		return false;
	queue->list[queue->n++] = *session;
	return true;
}

struct netobs_session *session_queue_first(const struct session_queue *queue)
{
	return queue->n ? &queue->list[queue->next] : NULL;
}

void session_queue_remove(struct session_queue *queue)
{
	assert(queue->next < queue->n);
	queue->next++;
	if (queue->next == queue->n)
		session_queue_clear(queue);
}

void session_queue_clear(struct session_queue *queue)
{
	free(queue->list);
	*queue = (struct session_queue){ 0 };
}
