// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The record of a message, from the journey of its last byte, and from what its threads did. */
#include "base/util.h"
#include "turn_state.h"

#include <string.h>

int64_t *turn_stamp_at(struct netobs_turn *turn, enum turn_stamp stamp)
{
	int64_t *const stamps[TURN_STAMPS] = {
		[STAMP_WRITTEN] = &turn->written_ns,
		[STAMP_SENT] = &turn->sent_ns,
		[STAMP_OUT] = &turn->out_ns,
		[STAMP_IN] = &turn->in_ns,
		[STAMP_SEGMENT] = &turn->segment_ns,
		[STAMP_READY] = &turn->ready_ns,
		[STAMP_READ] = &turn->read_ns,
		[STAMP_ACKED] = &turn->acked_ns,
	};

	return stamps[stamp];
}

static int64_t length_of(const struct turn_span *span)
{
	return span->until_ns - span->from_ns;
}

static struct turn_span *find_shortest(struct turn_span *spans, uint32_t n)
{
	struct turn_span *shortest = spans;

	for (uint32_t i = 1; i < n; i++)
		if (length_of(&spans[i]) < length_of(shortest))
			shortest = &spans[i];
	return shortest;
}

void turn_add_span(struct turn_span *spans, uint32_t *n, int64_t from_ns,
		   int64_t until_ns)
{
	const struct turn_span span = { from_ns, until_ns };

	if (length_of(&span) <= 0)
		return;
	for (uint32_t i = 0; i < *n; i++)
		if (spans[i].until_ns == from_ns) {
			spans[i].until_ns = until_ns;
			return;
		}
	if (*n < TURN_SPANS) {
		spans[(*n)++] = span;
		return;
	}
	spans = find_shortest(spans, *n);
	if (length_of(&span) > length_of(spans))
		*spans = span;
}

void turn_add_unread(struct turn_message *message, int64_t since_ns,
		     int64_t until_ns)
{
	for (uint32_t i = 0; i < message->n_unread; i++)
		since_ns = max_i64(since_ns, message->unread[i].until_ns);
	turn_add_span(message->unread, &message->n_unread, since_ns, until_ns);
}

/* ---- The journey of the last byte --------------------------------------------------------- */

static bool is_at_uplink(const struct netobs_journey_step *step,
			 const struct turn_path *path, uint8_t direction)
{
	const struct turn_place *place =
		turn_path_find(path, step->netns_inode, step->ifindex);

	return !place || !(place->after >> (direction & 1) & 1);
}

static void fill_step(struct netobs_turn *turn,
		      const struct netobs_journey *journey,
		      const struct netobs_journey_step *step,
		      const struct turn_path *path)
{
	switch (step->point) {
	case NETOBS_TRACE_TRANSMIT:
		if (is_at_uplink(step, path, journey->direction))
			turn->out_ns = step->time_ns;
		break;
	case NETOBS_TRACE_SEGMENT:
		turn->segment_ns = step->time_ns;
		break;
	case NETOBS_TRACE_READY:
		turn->ready_ns = step->time_ns;
		break;
	case NETOBS_TRACE_READ:
		turn->read_ns = step->time_ns;
		break;
	default:
		break;
	}
}

void turn_fill_journey(struct turn_message *message,
		       const struct netobs_journey *journey)
{
	const struct turn_path *path = &message->half->connection->path;
	struct netobs_turn *turn = &message->turn;

	message->has_journey = true;
	message->journey_end = journey->offset + journey->length;
	memcpy(turn->part_ns, journey->part_ns, sizeof(turn->part_ns));
	turn->unknown_parts = journey->unknown_parts;
	turn->attempts = journey->n_attempts;
	if (journey->acked_ns)
		turn->acked_ns = journey->acked_ns;
	for (uint32_t i = 0; i < journey->n_steps; i++)
		if (!journey->steps[i].attempt)
			fill_step(turn, journey, &journey->steps[i], path);
}

/* ---- Threads ------------------------------------------------------------------------------- */

/* Bytes of the message before may have waited earlier. @return whether the states are known of all spans */
static bool add_spans(struct netobs_turn *turn, enum netobs_turn_phase phase,
		      uint32_t tid, const struct turn_span *spans, uint32_t n,
		      const struct turns_ops *ops)
{
	uint64_t ns[NETOBS_THREAD_STATES];

	for (uint32_t i = 0; i < n; i++) {
		const int64_t from_ns =
			max_i64(spans[i].from_ns, turn->record.time_ns);

		if (spans[i].until_ns <= from_ns)
			continue;
		if (!tid || !ops->thread_time(ops->ctx, tid, from_ns,
					      spans[i].until_ns, ns))
			return false;
		for (int state = 0; state < NETOBS_THREAD_STATES; state++)
			turn->thread_ns[phase][state] += ns[state];
	}
	return true;
}

static void fill_threads(struct turn_message *message, const struct turns_ops *ops)
{
	struct netobs_turn *turn = &message->turn;
	const bool has_both = turn->record.has & NETOBS_TURN_HAS_SEND &&
			      turn->record.has & NETOBS_TURN_HAS_READ;
	const uint32_t reader = has_both ? turn->reader_tid : turn->tid;
	const bool has_ended = turn->record.has & NETOBS_TURN_HAS_END;
	const struct turn_span writing = { turn->record.time_ns,
					   turn->written_ns },
			       thinking = { turn->read_ns ?: INT64_MAX,
					    turn->answer_ns || has_ended ?
						    turn->answer_ns :
						    turn->end_ns };
	bool is_known;

	memset(turn->thread_ns, 0, sizeof(turn->thread_ns));
	is_known = add_spans(turn, NETOBS_TURN_WRITING, turn->tid,
			     message->idle, message->n_idle, ops);
	if (turn->record.has & NETOBS_TURN_HAS_SEND)
		is_known &= add_spans(turn, NETOBS_TURN_WRITING, turn->tid,
				      &writing, 1, ops);
	is_known &= add_spans(turn, NETOBS_TURN_READING, reader,
			      message->unread, message->n_unread, ops);
	if (turn->record.has & NETOBS_TURN_HAS_READ)
		is_known &= add_spans(turn, NETOBS_TURN_THINKING, reader,
				      &thinking, 1, ops);
	if (is_known)
		turn->record.has |= NETOBS_TURN_HAS_THREADS;
	else
		memset(turn->thread_ns, 0, sizeof(turn->thread_ns));
}

/* ---- All ----------------------------------------------------------------------------------- */

/* A host has points before its uplink of what it sends, and those behind it of what it gets. */
static void keep_side(struct netobs_turn *turn)
{
	const bool sends = turn->record.has & NETOBS_TURN_HAS_SEND;
	const bool reads = turn->record.has & NETOBS_TURN_HAS_READ;
	const bool is_handshake = turn->kind == NETOBS_TURN_CONNECT;

	if (reads) {
		turn->out_ns = 0;
		turn->out_bytes = turn->largest_sent = 0;
	}
	if (sends && !is_handshake)
		turn->in_ns = 0;
	/* It has begun to come before the end of the message before was known. */
	if (!sends && turn->in_ns)
		turn->record.time_ns = min_i64(turn->record.time_ns, turn->in_ns);
	if (sends) {
		turn->in_bytes = turn->largest_in = 0;
	} else {
		turn->sent_ns = 0;
		turn->sent_bytes = 0;
	}
}

static void fill_last_time(struct netobs_turn *turn)
{
	const int64_t last_ns = turn->end_ns;

	turn->end_ns = max_i64(last_ns, turn->answer_ns);
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		turn->end_ns = max_i64(turn->end_ns, *turn_stamp_at(turn, stamp));
	turn->end_ns = max_i64(turn->end_ns, turn->record.time_ns);
}

static void fill_end(struct turn_message *message, const struct turns_ops *ops)
{
	struct netobs_turn *turn = &message->turn;

	keep_side(turn);
	fill_last_time(turn);
	turn->record.has &= ~(uint32_t)NETOBS_TURN_HAS_THREADS;
	if (ops->thread_time)
		fill_threads(message, ops);
}

/* ---- Records ------------------------------------------------------------------------------- */

static void name_process(const struct turn_process *process, uint32_t *pid,
			 uint32_t *tid, char command[16])
{
	*pid = process->pid;
	*tid = process->tid;
	memcpy(command, process->command, sizeof(process->command));
}

/* Who has not read yet may have written. */
static void fill_processes(struct netobs_turn *turn, const struct turn_half *half)
{
	const struct turn_process *reader =
		half->reader.pid ? &half->reader : &turn_other(half)->writer;
	const struct turn_process *own = half->is_sender_here ? &half->writer :
								reader;

	if (half->is_sender_here)
		turn->record.has |= NETOBS_TURN_HAS_SEND;
	if (half->is_reader_here)
		turn->record.has |= NETOBS_TURN_HAS_READ;
	if (own->pid) {
		turn->record.has |= NETOBS_TURN_HAS_PROCESS;
		name_process(own, &turn->pid, &turn->tid, turn->command);
	}
	if (half->is_sender_here && half->is_reader_here)
		name_process(reader, &turn->reader_pid, &turn->reader_tid,
			     turn->reader_command);
}

static void fill_uplink(struct netobs_turn *turn, const struct turn_half *half)
{
	const struct turn_place *uplink = half->uplink;
	const struct turn_tuple *tuple;

	/* What a host sends to itself leaves it nowhere. */
	if (!uplink || (half->is_sender_here && half->is_reader_here))
		return;
	tuple = &uplink->tuples[turn->direction];
	turn->uplink_ifindex = uplink->ifindex;
	turn->uplink_netns_inode = uplink->netns;
	memcpy(turn->uplink, uplink->name, sizeof(turn->uplink));
	memcpy(turn->wire_src, tuple->src, sizeof(turn->wire_src));
	memcpy(turn->wire_dst, tuple->dst, sizeof(turn->wire_dst));
	turn->wire_src_port = tuple->src_port;
	turn->wire_dst_port = tuple->dst_port;
}

static void fill_connection(struct netobs_turn *turn, const struct turn_half *half)
{
	const struct turn_connection *connection = half->connection;

	turn->connection = connection->id;
	turn->protocol = connection->protocol;
	if (connection->protocol == IPPROTO_TCP &&
	    turn->kind != NETOBS_TURN_CONNECT)
		turn->seq = connection->first_seq[turn->direction] +
			    (uint32_t)turn->offset;
	if (connection->has & NETOBS_TRACE_HAS_INITIATOR)
		turn->record.has |= NETOBS_TURN_HAS_INITIATOR;
	if (half->has_offset)
		turn->record.has |= NETOBS_TURN_HAS_OFFSET;
	turn->netns_inode = half->netns;
	memcpy(turn->src, half->tuple.src, sizeof(turn->src));
	memcpy(turn->dst, half->tuple.dst, sizeof(turn->dst));
	turn->src_port = half->tuple.src_port;
	turn->dst_port = half->tuple.dst_port;
	fill_uplink(turn, half);
	fill_processes(turn, half);
}

struct turn_message *turn_message_new(struct turn_half *half, uint8_t kind,
				      int64_t offset, int64_t now_ns)
{
	struct turn_message *message = calloc(1, sizeof(*message));

	if (!message)
		return NULL;
	message->half = half;
	message->turn = (struct netobs_turn){
		.record = { .sz = sizeof(message->turn),
			    .type = NETOBS_RECORD_TURN,
			    .time_ns = now_ns },
		.offset = offset,
		.direction = half->direction,
		.kind = kind,
		.one_of = 1,
		.unknown_parts = (1U << NETOBS_JOURNEY_PARTS) - 1,
	};
	message->end = INT64_MAX;
	message->journey_end = INT64_MIN;
	message->changed_ns = message->told_ns = now_ns;
	message->cycle = half->connection->cycle;
	half->connection->turns->n_held++;
	return message;
}

void turn_message_free(struct turn_message *message)
{
	if (message)
		message->half->connection->turns->n_held--;
	free(message);
}

/* The time until now belongs to the last limit, as the next one is not known yet. */
static void add_rest(struct turn_message *copy, int64_t now_ns)
{
	const struct turn_half *half = copy->half;
	struct netobs_turn *turn = &copy->turn;

	if (half->unread_ns)
		turn_add_unread(copy, half->unread_ns, now_ns);
	if (!half->has_limits || turn->sent_ns)
		return;
	for (int limit = 0; limit < NETOBS_TURN_LIMITS; limit++)
		turn->limit_ns[limit] += half->limits[limit];
	if (now_ns > half->limit_ns)
		turn->limit_ns[half->last_limit] +=
			(uint64_t)(now_ns - half->limit_ns);
}

void turn_deliver(struct turn_message *message, int64_t now_ns)
{
	const struct turn_half *half = message->half;
	const struct turns_ops *ops = &half->connection->turns->ops;
	const struct netobs_turn *turn = &message->turn;
	struct turn_message copy = *message;

	fill_connection(&copy.turn, half);
	if (turn->kind == NETOBS_TURN_CONNECT && turn->ready_ns)
		turn_add_span(copy.unread, &copy.n_unread, turn->ready_ns,
			      turn->read_ns ?: now_ns);
	if (now_ns && message->turn.kind == NETOBS_TURN_MESSAGE)
		add_rest(&copy, now_ns);
	if (now_ns)
		copy.turn.end_ns = now_ns;
	else
		copy.turn.record.has |= NETOBS_TURN_HAS_END;
	if (!now_ns && turn->kind == NETOBS_TURN_CONNECT)
		copy.turn.end_ns = message->changed_ns;
	if (half->has_limits && half->is_sender_here &&
	    copy.turn.kind != NETOBS_TURN_CONNECT)
		copy.turn.record.has |= NETOBS_TURN_HAS_LIMITS;
	fill_end(&copy, ops);
	ops->on_turn(&copy.turn, ops->ctx);
}
