// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The events of TCP: what processes, interfaces and handshakes do to messages. */
#include "turn_state.h"

enum { FLAG_SYN = 2, FLAG_ACK = 16 };

enum { CALLS = 1 << NETOBS_TRACE_SEND | 1 << NETOBS_TRACE_SENT };

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void count_drop(struct netobs_turn *turn, const struct turn_half *half,
		       uint32_t bytes, const struct journey_event *event)
{
	turn->dropped_bytes += bytes;
	turn->drops++;
	turn->drop_reason = event->reason;
	memcpy(turn->drop_cause, half->drop_cause, sizeof(turn->drop_cause));
	memcpy(turn->drop_function, half->drop_function,
	       sizeof(turn->drop_function));
}

/* Count bytes of a message, or a SYN. @stamp: TURN_STAMPS: they are dropped */
static void count(struct turn_message *message, const struct turn_half *half,
		  enum turn_stamp stamp, uint32_t bytes,
		  const struct journey_event *event)
{
	struct netobs_turn *turn = &message->turn;

	if (stamp == STAMP_SENT) {
		turn->sent_bytes += bytes;
	} else if (stamp == STAMP_OUT && event->step.point == NETOBS_TRACE_BUSY) {
		turn->out_bytes -= min_u64(turn->out_bytes, bytes);
	} else if (stamp == STAMP_OUT) {
		turn->out_bytes += bytes;
		turn->largest_sent = (uint32_t)max_u64(turn->largest_sent, bytes);
	} else if (stamp == STAMP_IN) {
		turn->in_bytes += bytes;
		turn->largest_in = (uint32_t)max_u64(turn->largest_in, bytes);
	} else if (stamp == STAMP_SEGMENT) {
		turn->segment_bytes += bytes;
	} else {
		count_drop(turn, half, bytes, event);
	}
}

/* @return bytes of a message in the range of an event */
static uint32_t bytes_in(const struct turn_message *message,
			 const struct journey_event *event)
{
	const int64_t from = max_i64(message->turn.offset, event->offset);

	return (uint32_t)max_i64(0, min_i64(message->end, event->end) - from);
}

/* Count the bytes of an event in each message that has some of them. */
static void count_bytes(struct turn_half *half, enum turn_stamp stamp,
			const struct journey_event *event)
{
	struct turn_message *message;

	TAILQ_FOREACH_REVERSE(message, &half->closed, turn_messages, in_list)
	{
		if (message->end <= event->offset)
			break;
		if (bytes_in(message, event))
			count(message, half, stamp, bytes_in(message, event),
			      event);
	}
	if (half->open && bytes_in(half->open, event))
		count(half->open, half, stamp, bytes_in(half->open, event),
		      event);
	if (half->slice)
		count(half->slice, half, stamp,
		      (uint32_t)(event->end - event->offset), event);
}

/* ---- The socket ------------------------------------------------------------------------------ */

void turn_note_process(struct turn_process *process,
		       const struct journey_event *event)
{
	process->pid = event->step.pid;
	process->tid = event->tid;
	memcpy(process->command, event->step.command, sizeof(process->command));
}

/* A socket of this host sends in this direction, and receives in the other one. */
static void note_socket(struct turn_half *half)
{
	half->is_sender_here = true;
	turn_other(half)->is_reader_here = true;
}

/* What follows the SYN has come to the server, so its socket can be accepted. */
static void note_established(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *connect = half->connection->connect;

	if (connect && connect->half == half && connect->turn.answer_ns &&
	    !connect->turn.ready_ns)
		connect->turn.ready_ns = now_ns;
}

/* A process uses the socket that sends in this direction: the server has accepted it. */
static void note_accepted(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *connect = half->connection->connect;

	if (connect && connect->half != half && connect->turn.ready_ns &&
	    !connect->turn.read_ns)
		connect->turn.read_ns = now_ns;
}

/* The process at the socket that sends in this direction writes. */
static void note_write(struct turn_half *half, const struct journey_event *event)
{
	const struct turn_half *other = turn_other(half);
	const int64_t now_ns = event->step.time_ns;

	note_socket(half);
	note_accepted(half, now_ns);
	if (half->doing == TURN_READS)
		turn_close(turn_other(half), other->reach[STAMP_READ], now_ns,
			   now_ns);
	half->doing = TURN_WRITES;
	/* The call may end after the bytes have been read and answered. */
	if (!half->has_start || event->end > half->start)
		turn_open(half, event->offset, now_ns);
}

void turn_end_unread(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *slice = half->slice;

	if (half->open)
		turn_add_unread(half->open, half->unread_ns, now_ns);
	if (slice) {
		const int64_t from =
			max_i64(half->unread_ns, slice->turn.record.time_ns);

		slice->turn.unread_ns += (uint64_t)max_i64(0, now_ns - from);
		turn_add_span(slice->unread, &slice->n_unread, from, now_ns);
	}
	half->unread_ns = 0;
}

static void take_read(struct turn_half *half, const struct journey_event *event)
{
	struct turn_half *own = turn_other(half);
	const int64_t now_ns = event->step.time_ns;

	note_socket(turn_other(half));
	note_accepted(turn_other(half), now_ns);
	turn_note_process(&half->reader, event);
	if (own->doing == TURN_WRITES)
		turn_close(turn_other(half),
			   max_i64(own->reach[STAMP_WRITTEN],
				   own->reach[STAMP_SENT]),
			   now_ns, 0);
	own->doing = TURN_READS;
	turn_open(half, event->offset, now_ns);
	turn_stamp_bytes(half, STAMP_READ, event);
	if (!turn_sees(half, 1 << NETOBS_TRACE_READY))
		turn_stamp_bytes(half, STAMP_READY, event);
	/* A process that has read a part may write, which ends the message. */
	if (half->unread_ns && half->open)
		turn_add_unread(half->open, half->unread_ns, now_ns);
	if (half->unread_ns && half->reach[STAMP_READ] >= half->reach[STAMP_READY])
		turn_end_unread(half, now_ns);
}

static void take_ready(struct turn_half *half, const struct journey_event *event)
{
	note_socket(turn_other(half));
	turn_stamp_bytes(half, STAMP_READY, event);
	if (!half->unread_ns && half->reach[STAMP_READY] > half->reach[STAMP_READ])
		half->unread_ns = event->step.time_ns;
}

/* ---- Interfaces ------------------------------------------------------------------------------ */

/* Another interface comes behind those where bytes were counted as leaving, or in front of those where they arrived. */
static void count_again(struct turn_half *half)
{
	struct turn_message *const opens[] = { half->open, half->slice,
					       half->connection->connect };
	struct turn_message *message;

	half->uplink = NULL;
	half->reach[STAMP_OUT] = half->reach[STAMP_IN] =
		half->has_start ? half->start : INT64_MIN;
	TAILQ_FOREACH(message, &half->closed, in_list)
		message->turn.out_bytes = 0;
	for (size_t i = 0; i < ARRAY_SIZE(opens); i++)
		if (opens[i] && opens[i]->half == half)
			opens[i]->turn.out_bytes = opens[i]->turn.largest_sent =
				0;
}

static bool is_sending(uint8_t point)
{
	return point >= NETOBS_TRACE_QUEUE && point <= NETOBS_TRACE_BUSY;
}

/* What a packet does at an interface, in terms of a message. */
enum turn_stamp turn_stamp_of(const struct turn_half *half,
			      struct turn_place *place, uint8_t point)
{
	const uint8_t bit = (uint8_t)(1 << half->direction);

	if (point == NETOBS_TRACE_ARRIVE)
		place->arrived |= bit;
	if (point == NETOBS_TRACE_QUEUE && !(place->before & bit) &&
	    (!half->has_socket || place->netns == half->netns))
		return STAMP_SENT;
	if ((point == NETOBS_TRACE_TRANSMIT || point == NETOBS_TRACE_BUSY) &&
	    !(place->after & bit))
		return STAMP_OUT;
	if ((point == NETOBS_TRACE_ARRIVE ||
	     (point == NETOBS_TRACE_RECEIVE && !(place->arrived & bit))) &&
	    !(place->before & bit))
		return STAMP_IN;
	return TURN_STAMPS;
}

void turn_set_uplink(struct turn_half *half, struct turn_place *place,
		     enum turn_stamp stamp)
{
	if (stamp == (half->is_sender_here ? STAMP_OUT : STAMP_IN))
		half->uplink = place;
}

static void take_data(struct turn_half *half, enum turn_stamp stamp,
		      const struct journey_event *event)
{
	const int64_t now_ns = event->step.time_ns;

	if (stamp == STAMP_SENT && half->is_sender_here &&
	    !turn_sees(half, CALLS) && event->end > half->reach[STAMP_SENT])
		note_write(half, event);
	if (stamp == STAMP_SENT && half->is_sender_here && half->has_start &&
	    event->end > half->reach[STAMP_SENT])
		turn_spend_all(half, event);
	if (!half->is_sender_here && stamp == STAMP_IN &&
	    (!half->has_start || event->end > half->start))
		turn_open(half, event->offset, now_ns);
	count_bytes(half, stamp, event);
	if (event->step.point != NETOBS_TRACE_BUSY)
		turn_stamp_bytes(half, stamp, event);
}

/* ---- Handshakes ------------------------------------------------------------------------------ */

static struct turn_message *get_connect(struct turn_half *half,
					const struct journey_event *event)
{
	struct turn_connection *connection = half->connection;

	if (!connection->connect) {
		connection->connect = turn_message_new(half, NETOBS_TURN_CONNECT,
						       0, event->step.time_ns);
		if (connection->connect)
			connection->connect->turn.seq = event->seq;
	}
	return connection->connect;
}

static void take_syn(struct turn_half *half, enum turn_stamp stamp,
		     const struct journey_event *event)
{
	struct turn_message *connect = get_connect(half, event);
	struct netobs_turn *turn = &connect->turn;
	const int64_t now_ns = event->step.time_ns;

	if (!connect)
		return;
	if (now_ns == turn->record.time_ns && is_sending(event->step.point))
		note_socket(half);
	connect->changed_ns = now_ns;
	switch (stamp) {
	case STAMP_SENT:
		turn->attempts++;
		turn->sent_ns = turn->sent_ns ?: now_ns;
		break;
	case STAMP_OUT:
		turn->out_ns = now_ns;
		break;
	case STAMP_IN:
		if (half->is_sender_here)
			return;
		turn->attempts++;
		turn->in_ns = turn->in_ns ?: now_ns;
		break;
	default:
		if (event->step.point != NETOBS_TRACE_DROP)
			return;
	}
	count(connect, half, stamp, 1, event);
}

/* The answer of the server, in the other direction than the SYN. */
static void take_syn_ack(struct turn_half *half, enum turn_stamp stamp,
			 const struct journey_event *event)
{
	struct turn_message *connect = half->connection->connect;
	struct netobs_turn *turn;

	if (!connect || connect->half == half)
		return;
	turn = &connect->turn;
	connect->changed_ns = event->step.time_ns;
	if (stamp == STAMP_SENT && !turn->answer_ns) {
		note_socket(half);
		turn->answer_ns = event->step.time_ns;
	} else if (stamp == STAMP_IN && !turn->in_ns &&
		   turn_other(half)->is_sender_here) {
		turn->in_ns = event->step.time_ns;
	}
}

/* ---- Events ------------------------------------------------------------------------------- */

static void take_hop(struct turn_half *half, const struct journey_event *event)
{
	struct turn_path *path = &half->connection->path;
	struct turn_place *place = turn_path_find(path, event->step.netns_inode,
						  event->step.ifindex);
	enum turn_stamp stamp;

	if (!place)
		return;
	if (turn_path_pass(path, place, event))
		count_again(half);
	stamp = turn_stamp_of(half, place, event->step.point);
	if (event->tcp_flags & FLAG_SYN && event->tcp_flags & FLAG_ACK)
		take_syn_ack(half, stamp, event);
	else if (event->tcp_flags & FLAG_SYN)
		take_syn(half, stamp, event);
	if (stamp == TURN_STAMPS)
		return;
	turn_set_uplink(half, place, stamp);
	if (event->end > event->offset)
		take_data(half, stamp, event);
}

static bool is_harmless(const struct turn_half *half,
			const struct journey_event *event)
{
	const struct turns *turns = half->connection->turns;

	for (uint32_t i = 0; i < turns->n_harmless; i++)
		if (turns->harmless[i] == event->reason)
			return true;
	/* The receiver has these bytes already. */
	return event->end > event->offset && half->is_reader_here &&
	       half->has_start && event->end <= half->reach[STAMP_READY];
}

/*
 * Before the first interface, for which it has no event: TCP has sent it, and this host's netfilter has dropped it.
 * Such a SYN may be the first event.
 */
static bool is_kept_back(struct turn_half *half, const struct journey_event *event)
{
	if (event->step.ifindex || half->is_reader_here)
		return false;
	if (event->tcp_flags & FLAG_SYN && !half->connection->connect) {
		half->is_sender_here = true;
		turn_note_process(&half->writer, event);
	}
	return half->is_sender_here;
}

/* The answer to a SYN: the handshake takes another attempt, also if the answer came to this host. */
static void count_answer_drop(struct turn_half *half,
			      const struct journey_event *event)
{
	struct turn_message *connect = half->connection->connect;

	if (!connect || connect->turn.direction == half->direction)
		return;
	connect->changed_ns = event->step.time_ns;
	if (connect->half->is_sender_here)
		connect->turn.in_ns = 0;
	count_drop(&connect->turn, half, 1, event);
}

static void take_drop(struct turn_half *half, const struct journey_event *event)
{
	const bool is_syn = event->tcp_flags & FLAG_SYN;
	const bool is_sent = is_kept_back(half, event);

	if (is_harmless(half, event))
		return;
	if (is_syn && event->tcp_flags & FLAG_ACK) {
		count_answer_drop(half, event);
		return;
	}
	if (is_syn && is_sent)
		take_syn(half, STAMP_SENT, event);
	if (is_syn)
		take_syn(half, TURN_STAMPS, event);
	if (event->end <= event->offset)
		return;
	if (is_sent)
		take_data(half, STAMP_SENT, event);
	count_bytes(half, TURN_STAMPS, event);
}

static void take_segment(struct turn_half *half, const struct journey_event *event)
{
	note_socket(turn_other(half));
	note_established(half, event->step.time_ns);
	turn_note_limit(turn_other(half), event);
	if (event->end <= event->offset)
		return;
	if (!half->has_start || event->end > half->start)
		turn_open(half, event->offset, event->step.time_ns);
	count_bytes(half, STAMP_SEGMENT, event);
	turn_stamp_bytes(half, STAMP_SEGMENT, event);
	/* Those behind a gap can be read before they are, but it is not known when. */
	if (!turn_sees(half, 1 << NETOBS_TRACE_READY) &&
	    event->offset <= half->reach[STAMP_READY])
		take_ready(half, event);
}

void turn_take_stream(struct turn_half *half, const struct journey_event *event)
{
	switch (event->step.point) {
	case NETOBS_TRACE_SEND:
		turn_note_limit(half, event);
		turn_note_process(&half->writer, event);
		if (event->end > event->offset)
			note_write(half, event);
		break;
	case NETOBS_TRACE_SENT:
		turn_note_process(&half->writer, event);
		note_write(half, event);
		turn_stamp_bytes(half, STAMP_WRITTEN, event);
		break;
	case NETOBS_TRACE_SEGMENT:
		take_segment(half, event);
		break;
	case NETOBS_TRACE_READY:
		take_ready(half, event);
		break;
	case NETOBS_TRACE_READ:
		take_read(half, event);
		break;
	case NETOBS_TRACE_ACKED:
		note_socket(half);
		turn_stamp_bytes(half, STAMP_ACKED, event);
		break;
	case NETOBS_TRACE_RETRANSMIT:
		note_socket(half);
		/* Nothing was acknowledged since the last event, and until the next one. */
		turn_spend(half, NETOBS_TURN_RECOVERY, event->step.time_ns);
		half->last_limit = NETOBS_TURN_RECOVERY;
		break;
	case NETOBS_TRACE_DROP:
		take_drop(half, event);
		break;
	default:
		take_hop(half, event);
		break;
	}
}
