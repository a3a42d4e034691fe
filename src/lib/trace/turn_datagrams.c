// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Datagrams: each is a message. */
#include "turn_state.h"

/* The reader of the last datagram that has come answers it now. */
static void answer_datagram(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *last = TAILQ_LAST(&half->closed, turn_messages);

	if (last && last->turn.read_ns && last->turn.read_ns <= now_ns &&
	    !last->turn.answer_ns)
		last->turn.answer_ns = now_ns;
}

void turn_take_datagram(struct turn_half *half, const struct journey_event *event)
{
	struct turn_path *path = &half->connection->path;
	struct turn_place *place = turn_path_find(path, event->step.netns_inode,
						  event->step.ifindex);
	enum turn_stamp stamp;

	if (event->step.point == NETOBS_TRACE_READ)
		turn_note_process(&half->reader, event);
	/* This host's netfilter has dropped it before the first interface. */
	if (event->step.point == NETOBS_TRACE_DROP && !event->step.ifindex &&
	    !half->is_reader_here && !half->is_sender_here) {
		half->is_sender_here = true;
		turn_note_process(&half->writer, event);
	}
	if (!place)
		return;
	if (turn_path_pass(path, place, event))
		half->uplink = NULL;
	stamp = turn_stamp_of(half, place, event->step.point);
	if (stamp == STAMP_SENT) {
		half->is_sender_here = true;
		turn_note_process(&half->writer, event);
		answer_datagram(turn_other(half), event->step.time_ns);
	}
	turn_set_uplink(half, place, stamp);
}

static void count_step(struct netobs_turn *turn,
		       const struct netobs_journey_step *step,
		       const struct turn_place *place)
{
	const uint8_t bit = (uint8_t)(1 << turn->direction);
	const int64_t ns = step->time_ns;

	if (step->point == NETOBS_TRACE_QUEUE && !turn->sent_ns) {
		turn->sent_bytes = turn->bytes;
		turn->sent_ns = ns;
	} else if (step->point == NETOBS_TRACE_TRANSMIT && place &&
		   !(place->after & bit)) {
		turn->out_bytes = turn->largest_sent = turn->bytes;
	} else if ((step->point == NETOBS_TRACE_ARRIVE ||
		    step->point == NETOBS_TRACE_RECEIVE) &&
		   place && !(place->before & bit) && !turn->in_ns) {
		turn->in_bytes = turn->largest_in = turn->bytes;
		turn->in_ns = ns;
	} else if (step->point == NETOBS_TRACE_READY) {
		turn->segment_bytes = turn->bytes;
	} else if (step->point == NETOBS_TRACE_DROP) {
		turn->dropped_bytes = turn->bytes;
		turn->drops++;
	}
}

/* Requests with equal data have equal identifications, but one of n of them is chosen, too. */
static uint32_t key_of(struct turn_connection *connection,
		       const struct netobs_journey *journey)
{
	const bool is_other = journey->seq != connection->number;

	if (journey->ip_id != connection->ip_id)
		connection->repeats = 0;
	else if (is_other)
		connection->repeats++;
	connection->ip_id = journey->ip_id;
	connection->number = journey->seq;
	return journey->ip_id ? journey->ip_id + connection->repeats :
				journey->seq;
}

/* Answers are delivered with the last request, whose identification both hosts know. */
static uint32_t decide(struct turn_connection *connection,
		       const struct netobs_journey *journey)
{
	const int64_t took_ns = journey->end_ns - journey->record.time_ns;
	const int64_t since_ns =
		connection->datagram_ns ?
			journey->record.time_ns - connection->datagram_ns :
			0;
	const bool is_slow = connection->slow_ns &&
			     took_ns > 4 * connection->slow_ns;

	if (turn_asks(connection, journey->direction & 1))
		connection->key = key_of(connection, journey);
	connection->datagram_ns = journey->record.time_ns;
	connection->slow_ns += (took_ns - connection->slow_ns) / 8;
	return turn_decide(connection, max_i64(0, since_ns),
			   connection->turns->now_ns, 1,
			   journey->n_drops || is_slow);
}

void turn_join_datagram(struct turn_half *half,
			const struct netobs_journey *journey)
{
	struct turn_connection *connection = half->connection;
	const int64_t now_ns = connection->turns->now_ns;
	struct turn_message *message =
		turn_message_new(half, NETOBS_TURN_MESSAGE, journey->seq,
				 journey->record.time_ns);
	struct netobs_turn *turn;

	if (!message)
		return;
	turn = &message->turn;
	turn->bytes = journey->length;
	turn->ip_id = journey->ip_id;
	for (uint32_t i = 0; i < journey->n_steps; i++)
		count_step(turn, &journey->steps[i],
			   turn_path_find(&connection->path,
					  journey->steps[i].netns_inode,
					  journey->steps[i].ifindex));
	turn_fill_journey(message, journey);
	half->is_reader_here |= turn->ready_ns || turn->read_ns;
	if (turn->drops && half->is_sender_here && !turn->sent_ns) {
		turn->sent_bytes = turn->bytes;
		turn->sent_ns = turn->record.time_ns;
	}
	if (turn->drops) {
		turn->drop_reason = journey->drop_reason;
		memcpy(turn->drop_cause, half->drop_cause,
		       sizeof(turn->drop_cause));
		memcpy(turn->drop_function, half->drop_function,
		       sizeof(turn->drop_function));
	}
	if (turn->ready_ns && turn->read_ns)
		turn_add_span(message->unread, &message->n_unread,
			      turn->ready_ns, turn->read_ns);
	message->end = turn->offset + 1;
	message->closed_ns = message->changed_ns = now_ns;
	turn_set_decision(message, decide(connection, journey));
	TAILQ_INSERT_TAIL(&half->closed, message, in_list);
}
