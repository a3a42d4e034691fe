// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The messages of a direction: where they begin and end, what they have of the bytes that pass, and what limits TCP. */
#include "turn_state.h"

enum {
	/* A connection has no turns if messages overlap again before as many others have not. */
	OVERLAP_STEP = 4,
	OVERLAPS_MAX = 16,
};

/* ---- Messages ------------------------------------------------------------------------------ */

struct turn_message *turn_open(struct turn_half *half, int64_t offset,
			       int64_t now_ns)
{
	if (half->open)
		return half->open;
	if (!half->has_start) {
		half->has_start = true;
		half->start = half->has_offset ? 0 : offset;
		for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
			half->reach[stamp] = half->start;
	}
	turn_begin_cycle(half,
			 half->connection->first_seq[half->direction] +
				 (uint32_t)half->start,
			 now_ns);
	half->open =
		turn_message_new(half, NETOBS_TURN_MESSAGE, half->start, now_ns);
	memset(half->limits, 0, sizeof(half->limits));
	half->limit_ns = now_ns;
	return half->open;
}

static void note_overlap(struct turn_message *message, bool is_overlap)
{
	struct turn_connection *connection = message->half->connection;

	if (is_overlap) {
		message->turn.record.has |= NETOBS_TURN_HAS_OVERLAP;
		connection->overlaps = (uint8_t)min_u64(
			OVERLAPS_MAX, connection->overlaps + OVERLAP_STEP);
	} else {
		connection->overlaps -= !!connection->overlaps;
	}
}

/* Bytes behind those of the journey have followed, so it does not tell of the last one. */
static void forget_journey(struct turn_message *message)
{
	message->has_journey = false;
	memset(message->turn.part_ns, 0, sizeof(message->turn.part_ns));
	message->turn.unknown_parts = (1U << NETOBS_JOURNEY_PARTS) - 1;
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		*turn_stamp_at(&message->turn, stamp) = 0;
}

void turn_fill_stamps(struct turn_message *message)
{
	const struct turn_half *half = message->half;

	if (message->journey_end < message->end)
		forget_journey(message);
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++) {
		int64_t *at = turn_stamp_at(&message->turn, stamp);

		if (!*at && half->reach[stamp] >= message->end)
			*at = half->reach_ns[stamp];
	}
}

void turn_set_length(struct turn_message *message, int64_t end)
{
	message->turn.bytes = (uint32_t)min_u64(
		UINT32_MAX, (uint64_t)max_i64(0, end - message->turn.offset));
}

/* The message ends before @end. @answer_ns: its reader writes; 0: its writer reads */
void turn_close(struct turn_half *half, int64_t end, int64_t now_ns,
		int64_t answer_ns)
{
	struct turn_message *message = half->open;
	const int64_t come =
		max_i64(half->reach[STAMP_SEGMENT], half->reach[STAMP_READY]);

	if (!message || end <= message->turn.offset)
		return;
	message->end = half->start = end;
	message->closed_ns = now_ns;
	message->turn.answer_ns = answer_ns;
	turn_set_length(message, end);
	turn_fill_stamps(message);
	note_overlap(message, half->is_reader_here && come > end);
	TAILQ_INSERT_TAIL(&half->closed, message, in_list);
	half->open = NULL;
	/* The next one has begun already. */
	if (come > end)
		turn_open(half, end, now_ns);
}

/* A stamp of the bytes of an event: their messages may have ended. */
void turn_stamp_bytes(struct turn_half *half, enum turn_stamp stamp,
		      const struct journey_event *event)
{
	const int64_t now_ns = event->step.time_ns;
	struct turn_message *message;

	TAILQ_FOREACH_REVERSE(message, &half->closed, turn_messages, in_list)
	{
		int64_t *at = turn_stamp_at(&message->turn, stamp);

		if (message->end <= event->offset)
			break;
		if (message->end > event->end)
			continue;
		message->changed_ns = now_ns;
		if (!*at)
			*at = now_ns;
	}
	if (half->open && event->end > half->open->turn.offset)
		half->open->changed_ns = now_ns;
	if (event->end > half->reach[stamp]) {
		half->reach[stamp] = event->end;
		half->reach_ns[stamp] = now_ns;
	}
}

/* ---- Limits of TCP --------------------------------------------------------------------------- */

/* The time until now belongs to @limit. */
void turn_spend(struct turn_half *half, enum netobs_turn_limit limit,
		int64_t now_ns)
{
	struct turn_message *slice = half->slice;
	const int64_t from = half->limit_ns;

	half->limit_ns = max_i64(from, now_ns);
	if (!half->has_limits || now_ns <= from)
		return;
	half->limits[limit] += (uint64_t)(now_ns - from);
	if (!slice || now_ns <= slice->turn.record.time_ns)
		return;
	slice->turn.limit_ns[limit] +=
		(uint64_t)(now_ns - max_i64(from, slice->turn.record.time_ns));
	if (limit == NETOBS_TURN_IDLE)
		turn_add_span(slice->idle, &slice->n_idle,
			      max_i64(from, slice->turn.record.time_ns), now_ns);
}

void turn_note_limit(struct turn_half *half, const struct journey_event *event)
{
	if (!event->limit)
		return;
	half->limit_ns = half->has_limits ? half->limit_ns : event->step.time_ns;
	half->has_limits = true;
	half->last_limit = event->limit - 1;
	turn_spend(half, half->last_limit, event->step.time_ns);
}

/*
 * Bytes are sent for the first time: what has kept them is known now. Room in queues has no event of its own; for all
 * else that TCP waits for, there was one.
 */
void turn_spend_all(struct turn_half *half, const struct journey_event *event)
{
	struct turn_message *message =
		half->open ?: TAILQ_LAST(&half->closed, turn_messages);

	turn_spend(half,
		   half->last_limit == NETOBS_TURN_QUEUED ? NETOBS_TURN_QUEUED :
							    NETOBS_TURN_OTHER,
		   event->step.time_ns);
	if (event->limit)
		half->last_limit = event->limit - 1;
	for (int limit = 0; message && limit < NETOBS_TURN_LIMITS; limit++)
		message->turn.limit_ns[limit] += half->limits[limit];
	memset(half->limits, 0, sizeof(half->limits));
}
