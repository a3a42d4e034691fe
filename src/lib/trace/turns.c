// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "turns.h"

#include "base/slots.h"
#include "base/util.h"
#include "drops/drop_names.h"
#include "turn_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FLAG_FIN = 1,
	FLAG_SYN = 2,
	FLAG_ACK = 16,
	/* A connection has no turns if messages overlap again before as many others have not. */
	OVERLAP_STEP = 4,
	OVERLAPS_MANY = 6,
	OVERLAPS_MAX = 16,
	HARMLESS_MAX = 16,
};

/* How long events of other CPUs may be late: as journeys wait. */
#define LATE_NS (6 * NSEC_PER_MSEC)
/* How long copies of the bytes of a message may come after it has ended. */
#define HOLD_NS (200 * NSEC_PER_MSEC)
/* What is not complete is delivered as often. */
#define REPEAT_NS NSEC_PER_SEC
/* And not any more so long after its last event. */
#define PATIENCE_NS (10 * NSEC_PER_SEC)

enum phase { PHASE_NONE, PHASE_WRITING, PHASE_READING };

struct process {
	uint32_t pid, tid;
	char command[16];
};

/* A direction of a connection, and the socket that sends in it. */
struct half {
	struct turn_message *open; /* begins at @start */
	struct turn_messages closed;
	struct turn_message *slice; /* NULL: messages end often enough */
	int64_t start;
	bool has_offset; /* 0 is the first byte of the stream */
	bool has_start, is_sender_here, is_reader_here;
	bool has_socket; /* tuple and netns are those of the socket */
	bool has_limits;
	enum phase phase; /* of the socket that sends */
	/* The highest byte that each stamp is of, and when it was. */
	int64_t reach[TURN_STAMPS], reach_ns[TURN_STAMPS];
	struct turn_place *uplink;
	struct turn_tuple tuple;
	uint32_t netns;
	struct process writer, reader;
	uint64_t limits[NETOBS_TURN_LIMITS]; /* since bytes were sent first */
	int64_t limit_ns;
	uint8_t last_limit;
	int64_t unread_ns; /* since then, bytes can be read; 0: none */
	/* Of slices: sums over the bytes of journeys. */
	double part_sums[NETOBS_JOURNEY_PARTS];
	uint64_t part_bytes;
	uint32_t drop_reason;
	char drop_cause[64], drop_function[64];
};

struct connection {
	uint64_t id;
	struct half halves[2];
	struct turn_path path;
	struct turn_message *connect;
	uint32_t first_seq[2];
	uint32_t has; /* enum netobs_trace_field */
	uint8_t protocol;
	uint8_t overlaps;
	int64_t ticked_ns;
	/* What is left out: the number of the turn, its beginning and its key, which all hosts have. */
	uint64_t cycle;
	int64_t cycle_ns;
	uint32_t key;
	int64_t mean_ns;
	int64_t tokens_ns; /* records that may be delivered, as the time in which they become so many */
	int64_t filled_ns;
};

struct turns {
	struct turns_ops ops;
	struct slots connections; /* pointers, by id */
	struct connection *last; /* of the last event: often the next one's, too */
	int64_t now_ns;
	uint64_t n_thinned;
	uint32_t n_held;
	uint32_t harmless[HARMLESS_MAX]; /* reasons of drops by which nothing is lost */
	uint32_t n_harmless;
};

/* ---- Records ------------------------------------------------------------------------------- */

static struct half *half_of(struct connection *connection,
			    const struct turn_message *message)
{
	return &connection->halves[message->turn.direction];
}

static void name_process(const struct process *process, uint32_t *pid,
			 uint32_t *tid, char command[16])
{
	*pid = process->pid;
	*tid = process->tid;
	memcpy(command, process->command, sizeof(process->command));
}

static void fill_processes(struct netobs_turn *turn, const struct half *half)
{
	const struct process *own = half->is_sender_here ? &half->writer :
							   &half->reader;

	if (half->is_sender_here)
		turn->record.has |= NETOBS_TURN_HAS_SEND;
	if (half->is_reader_here)
		turn->record.has |= NETOBS_TURN_HAS_READ;
	if (own->pid) {
		turn->record.has |= NETOBS_TURN_HAS_PROCESS;
		name_process(own, &turn->pid, &turn->tid, turn->command);
	}
	if (half->is_sender_here && half->is_reader_here)
		name_process(&half->reader, &turn->reader_pid,
			     &turn->reader_tid, turn->reader_command);
}

static void fill_uplink(struct netobs_turn *turn, const struct half *half)
{
	const struct turn_place *uplink = half->uplink;
	const struct turn_tuple *tuple;

	if (!uplink)
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

static void fill_connection(struct netobs_turn *turn,
			    const struct connection *connection)
{
	const struct half *half = &connection->halves[turn->direction];

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

static struct turn_message *new_message(struct turns *turns,
					struct connection *connection,
					uint8_t direction, uint8_t kind,
					int64_t offset, int64_t now_ns)
{
	struct turn_message *message = calloc(1, sizeof(*message));

	if (!message)
		return NULL;
	message->turn = (struct netobs_turn){
		.record = { .sz = sizeof(message->turn),
			    .type = NETOBS_RECORD_TURN,
			    .time_ns = now_ns },
		.offset = offset,
		.direction = direction,
		.kind = kind,
		.one_of = 1,
		.unknown_parts = (1U << NETOBS_JOURNEY_PARTS) - 1,
	};
	message->end = INT64_MAX;
	message->journey_end = INT64_MIN;
	message->changed_ns = message->told_ns = now_ns;
	message->cycle = connection->cycle;
	turns->n_held++;
	return message;
}

static void free_message(struct turns *turns, struct turn_message *message)
{
	turns->n_held -= !!message;
	free(message);
}

/* The time until now belongs to the last limit, as the next one is not known yet. */
static void add_rest(struct turn_message *copy, const struct half *half,
		     int64_t now_ns)
{
	struct netobs_turn *turn = &copy->turn;

	if (half->unread_ns)
		turn_add_span(copy->unread, &copy->n_unread,
			      max_i64(half->unread_ns, turn->record.time_ns),
			      now_ns);
	if (!half->has_limits || turn->sent_ns)
		return;
	for (int limit = 0; limit < NETOBS_TURN_LIMITS; limit++)
		turn->limit_ns[limit] += half->limits[limit];
	if (now_ns > half->limit_ns)
		turn->limit_ns[half->last_limit] +=
			(uint64_t)(now_ns - half->limit_ns);
}

/* @now_ns: 0: it has ended */
static void deliver(struct turns *turns, struct connection *connection,
		    struct turn_message *message, int64_t now_ns)
{
	const struct half *half = half_of(connection, message);
	struct turn_message copy = *message;

	fill_connection(&copy.turn, connection);
	if (now_ns && message->turn.kind == NETOBS_TURN_MESSAGE)
		add_rest(&copy, half, now_ns);
	if (now_ns)
		copy.turn.end_ns = now_ns;
	else
		copy.turn.record.has |= NETOBS_TURN_HAS_END;
	if (half->has_limits && half->is_sender_here &&
	    copy.turn.kind != NETOBS_TURN_CONNECT)
		copy.turn.record.has |= NETOBS_TURN_HAS_LIMITS;
	turn_fill_end(&copy, &(struct turn_threads){ turns->ops.thread_time,
						     turns->ops.ctx });
	turns->ops.on_turn(&copy.turn, turns->ops.ctx);
}

/* ---- Which records are left out ------------------------------------------------------------- */

/* @return the direction of requests, as all hosts see it: the one from the higher port */
static uint8_t asking_direction(const struct connection *connection)
{
	for (uint8_t d = 0; d < 2; d++) {
		const struct half *half = &connection->halves[d];
		const struct turn_tuple *tuple =
			half->uplink ? &half->uplink->tuples[d] : &half->tuple;

		if (tuple->src_port != tuple->dst_port)
			return tuple->src_port > tuple->dst_port ? d : !d;
	}
	return 0;
}

static bool is_chosen(uint32_t key, uint32_t n)
{
	return !((key * 0x9e3779b1U) >> 16 & (n - 1));
}

/* A record is paid for by the half of a second. @return one of how many is delivered; 0: not this one */
static uint32_t decide(struct connection *connection, int64_t took_ns,
		       int64_t now_ns, uint32_t n_records, bool is_slow)
{
	const int64_t most = TURNS_BURST * NSEC_PER_SEC / 2;
	const int64_t price = n_records * NSEC_PER_SEC / 2;
	int64_t *tokens = &connection->tokens_ns;
	uint32_t n = 1;

	if (!connection->filled_ns)
		*tokens = most;
	else
		*tokens = min_i64(
			most,
			*tokens + max_i64(0, now_ns - connection->filled_ns));
	connection->filled_ns = now_ns;
	connection->mean_ns += connection->mean_ns ?
				       (took_ns - connection->mean_ns) / 8 :
				       took_ns;
	if (*tokens < price && !is_slow) {
		while (n * max_i64(1, connection->mean_ns) < price && n < 1U << 15)
			n *= 2;
		if (!is_chosen(connection->key, n))
			return 0;
	}
	*tokens = max_i64(0, *tokens - price);
	return n;
}

static void set_decision(struct turn_message *message, uint32_t one_of)
{
	message->is_decided = true;
	message->turn.one_of = one_of;
}

/* A request begins, so the turn before it is over. */
static void begin_cycle(struct connection *connection, uint32_t seq,
			int64_t now_ns)
{
	const int64_t took = now_ns - connection->cycle_ns;
	const bool is_slow = connection->mean_ns &&
			     took > 2 * connection->mean_ns;
	uint32_t one_of;

	if (connection->cycle_ns) {
		one_of = decide(connection, took, now_ns, 2, is_slow);
		for (int d = 0; d < 2; d++) {
			struct half *half = &connection->halves[d];
			struct turn_message *message;

			if (half->open && half->open->cycle == connection->cycle)
				set_decision(half->open, one_of);
			TAILQ_FOREACH_REVERSE(message, &half->closed,
					      turn_messages, in_list)
			if (message->cycle == connection->cycle)
				set_decision(message, one_of);
			else
				break;
		}
	}
	connection->cycle++;
	connection->cycle_ns = now_ns;
	connection->key = seq;
}

/* ---- Messages ------------------------------------------------------------------------------ */

static struct turn_message *open_message(struct turns *turns,
					 struct connection *connection,
					 uint8_t direction, int64_t offset,
					 int64_t now_ns)
{
	struct half *half = &connection->halves[direction];

	if (half->open)
		return half->open;
	if (!half->has_start) {
		half->has_start = true;
		half->start = half->has_offset ? 0 : offset;
		for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
			half->reach[stamp] = half->start;
	}
	if (direction == asking_direction(connection))
		begin_cycle(connection,
			    connection->first_seq[direction] +
				    (uint32_t)half->start,
			    now_ns);
	half->open = new_message(turns, connection, direction,
				 NETOBS_TURN_MESSAGE, half->start, now_ns);
	memset(half->limits, 0, sizeof(half->limits));
	half->limit_ns = now_ns;
	return half->open;
}

static void note_overlap(struct connection *connection,
			 struct turn_message *message, bool is_overlap)
{
	if (is_overlap) {
		message->turn.record.has |= NETOBS_TURN_HAS_OVERLAP;
		connection->overlaps = (uint8_t)min_u64(
			OVERLAPS_MAX, connection->overlaps + OVERLAP_STEP);
	} else {
		connection->overlaps -= !!connection->overlaps;
	}
}

static bool has_turns(const struct connection *connection)
{
	return connection->overlaps < OVERLAPS_MANY;
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

static void fill_stamps(struct turn_message *message, const struct half *half)
{
	if (message->journey_end < message->end)
		forget_journey(message);
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++) {
		int64_t *at = turn_stamp_at(&message->turn, stamp);

		if (!*at && half->reach[stamp] >= message->end)
			*at = half->reach_ns[stamp];
	}
}

static void set_length(struct turn_message *message, int64_t end)
{
	message->turn.bytes = (uint32_t)min_u64(
		UINT32_MAX, (uint64_t)max_i64(0, end - message->turn.offset));
}

/* The message ends before @end. @answer_ns: its reader writes; 0: its writer reads */
static void close_message(struct turns *turns, struct connection *connection,
			  uint8_t direction, int64_t end, int64_t now_ns,
			  int64_t answer_ns)
{
	struct half *half = &connection->halves[direction];
	struct turn_message *message = half->open;
	const int64_t come =
		max_i64(half->reach[STAMP_SEGMENT], half->reach[STAMP_READY]);

	if (!message || end <= message->turn.offset)
		return;
	message->end = half->start = end;
	message->closed_ns = now_ns;
	message->turn.answer_ns = answer_ns;
	set_length(message, end);
	fill_stamps(message, half);
	note_overlap(connection, message, half->is_reader_here && come > end);
	TAILQ_INSERT_TAIL(&half->closed, message, in_list);
	half->open = NULL;
	/* The next one has begun already. */
	if (come > end)
		open_message(turns, connection, direction, end, now_ns);
}

/* A stamp of the bytes of an event: their messages may have ended. */
static void stamp_bytes(struct half *half, enum turn_stamp stamp,
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

/* Bytes of a message in a range. */
static uint32_t count_in(const struct turn_message *message,
			 const struct journey_event *event)
{
	const int64_t from = max_i64(message->turn.offset, event->offset);

	return (uint32_t)max_i64(0, min_i64(message->end, event->end) - from);
}

typedef void count_fn(struct turn_message *message, const struct half *half,
		      uint32_t bytes, const struct journey_event *event);

/* Count the bytes of an event in each message that has some of them. */
static void count_bytes(struct half *half, count_fn *count,
			const struct journey_event *event)
{
	struct turn_message *message;

	TAILQ_FOREACH_REVERSE(message, &half->closed, turn_messages, in_list)
	{
		if (message->end <= event->offset)
			break;
		if (count_in(message, event))
			count(message, half, count_in(message, event), event);
	}
	if (half->open && count_in(half->open, event))
		count(half->open, half, count_in(half->open, event), event);
	if (half->slice)
		count(half->slice, half, (uint32_t)(event->end - event->offset),
		      event);
}

static void count_sent(struct turn_message *message, const struct half *half,
		       uint32_t bytes, const struct journey_event *event)
{
	(void)half;
	(void)event;
	message->turn.sent_bytes += bytes;
}

static void count_out(struct turn_message *message, const struct half *half,
		      uint32_t bytes, const struct journey_event *event)
{
	struct netobs_turn *turn = &message->turn;

	(void)half;
	if (event->step.point == NETOBS_TRACE_BUSY) {
		turn->out_bytes -= min_u64(turn->out_bytes, bytes);
		return;
	}
	turn->out_bytes += bytes;
	turn->largest_sent = (uint32_t)max_u64(turn->largest_sent, bytes);
}

static void count_came(struct turn_message *message, const struct half *half,
		       uint32_t bytes, const struct journey_event *event)
{
	struct netobs_turn *turn = &message->turn;

	(void)half;
	(void)event;
	turn->in_bytes += bytes;
	turn->largest_in = (uint32_t)max_u64(turn->largest_in, bytes);
}

static void count_segment(struct turn_message *message, const struct half *half,
			  uint32_t bytes, const struct journey_event *event)
{
	(void)half;
	(void)event;
	message->turn.segment_bytes += bytes;
}

static void count_drop(struct turn_message *message, const struct half *half,
		       uint32_t bytes, const struct journey_event *event)
{
	struct netobs_turn *turn = &message->turn;

	turn->dropped_bytes += bytes;
	turn->drops++;
	turn->drop_reason = event->reason;
	memcpy(turn->drop_cause, half->drop_cause, sizeof(turn->drop_cause));
	memcpy(turn->drop_function, half->drop_function,
	       sizeof(turn->drop_function));
}

/* ---- Limits of TCP --------------------------------------------------------------------------- */

/* The time until now belongs to @limit. */
static void spend(struct half *half, enum netobs_turn_limit limit, int64_t now_ns)
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

static void note_limit(struct half *half, const struct journey_event *event)
{
	if (!event->limit)
		return;
	half->limit_ns = half->has_limits ? half->limit_ns : event->step.time_ns;
	half->has_limits = true;
	half->last_limit = event->limit - 1;
	spend(half, half->last_limit, event->step.time_ns);
}

/* Bytes are sent for the first time: what has kept them is known now. */
static void spend_all(struct half *half, int64_t now_ns)
{
	struct turn_message *message =
		half->open ?: TAILQ_LAST(&half->closed, turn_messages);

	spend(half, NETOBS_TURN_OTHER, now_ns);
	for (int limit = 0; message && limit < NETOBS_TURN_LIMITS; limit++)
		message->turn.limit_ns[limit] += half->limits[limit];
	memset(half->limits, 0, sizeof(half->limits));
}

/* ---- The socket ------------------------------------------------------------------------------ */

static void note_process(struct process *process,
			 const struct journey_event *event)
{
	process->pid = event->step.pid;
	process->tid = event->tid;
	memcpy(process->command, event->step.command, sizeof(process->command));
}

/* A socket of this host sends in @direction, and receives in the other one. */
static void note_socket(struct connection *connection, uint8_t direction)
{
	connection->halves[direction].is_sender_here = true;
	connection->halves[!direction].is_reader_here = true;
}

/* The process at the socket that sends in @direction writes. */
static void note_write(struct turns *turns, struct connection *connection,
		       uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];
	const struct half *other = &connection->halves[!direction];
	const int64_t now_ns = event->step.time_ns;

	note_socket(connection, direction);
	if (half->phase == PHASE_READING)
		close_message(turns, connection, !direction,
			      other->reach[STAMP_READ], now_ns, now_ns);
	half->phase = PHASE_WRITING;
	/* The call may end after the bytes have been read and answered. */
	if (!half->has_start || event->end > half->start)
		open_message(turns, connection, direction, event->offset, now_ns);
}

static void end_unread(struct half *half, int64_t now_ns)
{
	struct turn_message *slice = half->slice;

	if (half->open)
		turn_add_span(half->open->unread, &half->open->n_unread,
			      max_i64(half->unread_ns,
				      half->open->turn.record.time_ns),
			      now_ns);
	if (slice) {
		const int64_t from =
			max_i64(half->unread_ns, slice->turn.record.time_ns);

		slice->turn.unread_ns += (uint64_t)max_i64(0, now_ns - from);
		turn_add_span(slice->unread, &slice->n_unread, from, now_ns);
	}
	half->unread_ns = 0;
}

static void take_read(struct turns *turns, struct connection *connection,
		      uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];
	struct half *own = &connection->halves[!direction];
	const int64_t now_ns = event->step.time_ns;

	note_socket(connection, !direction);
	note_process(&half->reader, event);
	if (own->phase == PHASE_WRITING)
		close_message(turns, connection, !direction,
			      max_i64(own->reach[STAMP_WRITTEN],
				      own->reach[STAMP_SENT]),
			      now_ns, 0);
	own->phase = PHASE_READING;
	open_message(turns, connection, direction, event->offset, now_ns);
	stamp_bytes(half, STAMP_READ, event);
	if (half->unread_ns && half->reach[STAMP_READ] >= half->reach[STAMP_READY])
		end_unread(half, now_ns);
}

static void take_ready(struct connection *connection, uint8_t direction,
		       const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];

	note_socket(connection, !direction);
	stamp_bytes(half, STAMP_READY, event);
	if (!half->unread_ns && half->reach[STAMP_READY] > half->reach[STAMP_READ])
		half->unread_ns = event->step.time_ns;
}

/* ---- Interfaces ------------------------------------------------------------------------------ */

/* Another interface comes behind those where bytes were counted as leaving, or in front of those where they arrived. */
static void count_again(struct connection *connection, uint8_t direction)
{
	struct half *half = &connection->halves[direction];
	struct turn_message *const opens[] = { half->open, half->slice,
					       connection->connect };
	struct turn_message *message;

	half->uplink = NULL;
	half->reach[STAMP_OUT] = half->reach[STAMP_IN] =
		half->has_start ? half->start : INT64_MIN;
	TAILQ_FOREACH(message, &half->closed, in_list)
		message->turn.out_bytes = 0;
	for (size_t i = 0; i < ARRAY_SIZE(opens); i++)
		if (opens[i] && opens[i]->turn.direction == direction)
			opens[i]->turn.out_bytes = opens[i]->turn.largest_sent =
				0;
}

static bool is_sending(uint8_t point)
{
	return point >= NETOBS_TRACE_QUEUE && point <= NETOBS_TRACE_BUSY;
}

/* What a packet does at an interface, in terms of a message. */
static enum turn_stamp stamp_of(const struct half *half, struct turn_place *place,
				uint8_t direction, uint8_t point)
{
	const uint8_t bit = (uint8_t)(1 << direction);

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

static void set_uplink(struct half *half, struct turn_place *place,
		       enum turn_stamp stamp)
{
	if (stamp == (half->is_sender_here ? STAMP_OUT : STAMP_IN))
		half->uplink = place;
}

static void take_data(struct turns *turns, struct connection *connection,
		      uint8_t direction, enum turn_stamp stamp,
		      const struct journey_event *event)
{
	static count_fn *const counts[TURN_STAMPS] = {
		[STAMP_SENT] = count_sent,
		[STAMP_OUT] = count_out,
		[STAMP_IN] = count_came,
	};
	struct half *half = &connection->halves[direction];
	const int64_t now_ns = event->step.time_ns;

	if (stamp == STAMP_SENT && turns->ops.has_no_calls &&
	    half->is_sender_here && event->end > half->reach[STAMP_SENT])
		note_write(turns, connection, direction, event);
	if (stamp == STAMP_SENT && half->is_sender_here && half->has_start &&
	    event->end > half->reach[STAMP_SENT])
		spend_all(half, now_ns);
	if (!half->is_sender_here && stamp == STAMP_IN &&
	    (!half->has_start || event->end > half->start))
		open_message(turns, connection, direction, event->offset, now_ns);
	count_bytes(half, counts[stamp], event);
	if (event->step.point != NETOBS_TRACE_BUSY)
		stamp_bytes(half, stamp, event);
}

/* ---- Handshakes ------------------------------------------------------------------------------ */

static struct turn_message *get_connect(struct turns *turns,
					struct connection *connection,
					uint8_t direction,
					const struct journey_event *event)
{
	if (!connection->connect) {
		connection->connect = new_message(turns, connection, direction,
						  NETOBS_TURN_CONNECT, 0,
						  event->step.time_ns);
		if (connection->connect)
			connection->connect->turn.seq = event->seq;
	}
	return connection->connect;
}

static void take_syn(struct turns *turns, struct connection *connection,
		     uint8_t direction, enum turn_stamp stamp,
		     const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];
	struct turn_message *connect =
		get_connect(turns, connection, direction, event);
	struct netobs_turn *turn = &connect->turn;
	const int64_t now_ns = event->step.time_ns;

	if (!connect)
		return;
	if (now_ns == turn->record.time_ns && is_sending(event->step.point))
		note_socket(connection, direction);
	connect->changed_ns = now_ns;
	if (event->step.point == NETOBS_TRACE_DROP) {
		count_drop(connect, half, 1, event);
	} else if (stamp == STAMP_SENT) {
		turn->attempts++;
		turn->sent_bytes++;
		turn->sent_ns = turn->sent_ns ?: now_ns;
	} else if (stamp == STAMP_OUT) {
		count_out(connect, half, 1, event);
		turn->out_ns = now_ns;
	} else if (stamp == STAMP_IN && !half->is_sender_here) {
		count_came(connect, half, 1, event);
		turn->attempts++;
		turn->in_ns = turn->in_ns ?: now_ns;
	}
}

/* The answer of the server, in the other direction than the SYN. */
static void take_syn_ack(struct connection *connection, uint8_t direction,
			 enum turn_stamp stamp, const struct journey_event *event)
{
	struct turn_message *connect = connection->connect;
	struct half *half = &connection->halves[!direction];
	struct netobs_turn *turn;

	if (!connect || connect->turn.direction == direction)
		return;
	turn = &connect->turn;
	connect->changed_ns = event->step.time_ns;
	if (stamp == STAMP_SENT && !turn->answer_ns) {
		note_socket(connection, direction);
		turn->answer_ns = event->step.time_ns;
	} else if (stamp == STAMP_IN && half->is_sender_here && !turn->in_ns) {
		turn->in_ns = event->step.time_ns;
	}
}

/* What follows the SYN has come to the server, so its socket can be accepted. */
static void note_established(struct connection *connection, uint8_t direction,
			     int64_t now_ns)
{
	struct turn_message *connect = connection->connect;

	if (connect && connect->turn.direction == direction &&
	    connect->turn.answer_ns && !connect->turn.ready_ns)
		connect->turn.ready_ns = now_ns;
}

static bool is_handshake_over(const struct connection *connection)
{
	const struct turn_message *connect = connection->connect;
	const struct half *half = &connection->halves[connect->turn.direction];

	if (half->is_reader_here && !connect->turn.ready_ns)
		return false;
	return half->is_reader_here || connect->turn.in_ns;
}

/* ---- Events ------------------------------------------------------------------------------- */

static void take_hop(struct turns *turns, struct connection *connection,
		     uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];
	struct turn_place *place = turn_path_find(
		&connection->path, event->step.netns_inode, event->step.ifindex);
	enum turn_stamp stamp;

	if (!place)
		return;
	if (turn_path_pass(&connection->path, place, event))
		count_again(connection, direction);
	stamp = stamp_of(half, place, direction, event->step.point);
	if (event->tcp_flags & FLAG_SYN && event->tcp_flags & FLAG_ACK)
		take_syn_ack(connection, direction, stamp, event);
	else if (event->tcp_flags & FLAG_SYN)
		take_syn(turns, connection, direction, stamp, event);
	if (stamp == TURN_STAMPS)
		return;
	set_uplink(half, place, stamp);
	if (event->end > event->offset)
		take_data(turns, connection, direction, stamp, event);
}

static bool is_harmless(const struct turns *turns, const struct half *half,
			const struct journey_event *event)
{
	for (uint32_t i = 0; i < turns->n_harmless; i++)
		if (turns->harmless[i] == event->reason)
			return true;
	/* The receiver has these bytes already. */
	return event->end > event->offset && half->is_reader_here &&
	       half->has_start && event->end <= half->reach[STAMP_READY];
}

static void take_drop(struct turns *turns, struct connection *connection,
		      uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];

	if (is_harmless(turns, half, event))
		return;
	if (event->tcp_flags & FLAG_SYN && !(event->tcp_flags & FLAG_ACK))
		take_syn(turns, connection, direction, TURN_STAMPS, event);
	else if (event->end > event->offset)
		count_bytes(half, count_drop, event);
}

static void take_segment(struct turns *turns, struct connection *connection,
			 uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];

	note_socket(connection, !direction);
	note_established(connection, direction, event->step.time_ns);
	note_limit(&connection->halves[!direction], event);
	if (event->end <= event->offset)
		return;
	if (!half->has_start || event->end > half->start)
		open_message(turns, connection, direction, event->offset,
			     event->step.time_ns);
	count_bytes(half, count_segment, event);
	stamp_bytes(half, STAMP_SEGMENT, event);
}

static void take_stream(struct turns *turns, struct connection *connection,
			uint8_t direction, const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];

	switch (event->step.point) {
	case NETOBS_TRACE_SEND:
		note_limit(half, event);
		note_process(&half->writer, event);
		if (event->end > event->offset)
			note_write(turns, connection, direction, event);
		break;
	case NETOBS_TRACE_SENT:
		note_process(&half->writer, event);
		note_write(turns, connection, direction, event);
		stamp_bytes(half, STAMP_WRITTEN, event);
		break;
	case NETOBS_TRACE_SEGMENT:
		take_segment(turns, connection, direction, event);
		break;
	case NETOBS_TRACE_READY:
		take_ready(connection, direction, event);
		break;
	case NETOBS_TRACE_READ:
		take_read(turns, connection, direction, event);
		break;
	case NETOBS_TRACE_ACKED:
	case NETOBS_TRACE_RETRANSMIT:
		note_socket(connection, direction);
		if (event->step.point == NETOBS_TRACE_ACKED)
			stamp_bytes(half, STAMP_ACKED, event);
		break;
	case NETOBS_TRACE_DROP:
		take_drop(turns, connection, direction, event);
		break;
	default:
		take_hop(turns, connection, direction, event);
		break;
	}
}

/* ---- Datagrams ------------------------------------------------------------------------------ */

/* The reader of the last datagram that has come answers it now. */
static void answer_datagram(struct half *half, int64_t now_ns)
{
	struct turn_message *last = TAILQ_LAST(&half->closed, turn_messages);

	if (last && last->turn.read_ns && last->turn.read_ns <= now_ns &&
	    !last->turn.answer_ns)
		last->turn.answer_ns = now_ns;
}

static void take_datagram(struct connection *connection, uint8_t direction,
			  const struct journey_event *event)
{
	struct half *half = &connection->halves[direction];
	struct turn_place *place = turn_path_find(
		&connection->path, event->step.netns_inode, event->step.ifindex);
	enum turn_stamp stamp;

	if (event->step.point == NETOBS_TRACE_READ)
		note_process(&half->reader, event);
	if (!place)
		return;
	if (turn_path_pass(&connection->path, place, event))
		half->uplink = NULL;
	stamp = stamp_of(half, place, direction, event->step.point);
	if (stamp == STAMP_SENT) {
		half->is_sender_here = true;
		note_process(&half->writer, event);
		answer_datagram(&connection->halves[!direction],
				event->step.time_ns);
	}
	set_uplink(half, place, stamp);
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

static void join_datagram(struct turns *turns, struct connection *connection,
			  const struct netobs_journey *journey)
{
	const uint8_t direction = journey->direction & 1;
	struct half *half = &connection->halves[direction];
	struct turn_message *message =
		new_message(turns, connection, direction, NETOBS_TURN_MESSAGE,
			    journey->seq, journey->record.time_ns);
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
	turn_fill_journey(message, journey, &connection->path);
	half->is_reader_here |= turn->ready_ns || turn->read_ns;
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
	message->closed_ns = message->changed_ns = turns->now_ns;
	connection->key = journey->ip_id;
	set_decision(message,
		     decide(connection, journey->end_ns - journey->record.time_ns,
			    turns->now_ns, 1,
			    journey->n_drops ||
				    journey->end_ns - journey->record.time_ns >
					    2 * connection->mean_ns));
	TAILQ_INSERT_TAIL(&half->closed, message, in_list);
}

/* ---- Journeys ------------------------------------------------------------------------------- */

static void sum_parts(struct half *half, const struct netobs_journey *journey)
{
	for (int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		half->part_sums[part] +=
			(double)journey->part_ns[part] * journey->length;
	half->part_bytes += journey->length;
	half->slice->turn.unknown_parts |= journey->unknown_parts;
}

static struct connection *find_connection(struct turns *turns, uint64_t id)
{
	if (!turns->last || turns->last->id != id)
		turns->last = slots_pointer(&turns->connections, &id);
	return turns->last;
}

void turns_join(struct turns *turns, const struct netobs_journey *journey)
{
	struct connection *connection =
		find_connection(turns, journey->connection);
	const int64_t end = journey->offset + journey->length;
	struct turn_message *message;
	struct half *half;

	if (!connection)
		return;
	if (connection->protocol != IPPROTO_TCP) {
		join_datagram(turns, connection, journey);
		return;
	}
	half = &connection->halves[journey->direction & 1];
	if (half->slice)
		sum_parts(half, journey);
	TAILQ_FOREACH(message, &half->closed, in_list)
		if (message->end > journey->offset && message->end <= end)
			turn_fill_journey(message, journey, &connection->path);
	/* The last one before the message ends has its last byte. */
	if (half->open && end > half->open->turn.offset)
		turn_fill_journey(half->open, journey, &connection->path);
}

/* ---- Connections ---------------------------------------------------------------------------- */

void turns_take(const struct journey_event *event, void *ctx)
{
	struct turns *turns = ctx;
	struct connection *connection =
		find_connection(turns, event->direction->ends.connection);
	const uint8_t direction = event->direction->ends.direction & 1;

	if (!connection)
		return;
	turns->now_ns = max_i64(turns->now_ns, event->step.time_ns);
	if (connection->protocol == IPPROTO_TCP)
		take_stream(turns, connection, direction, event);
	else
		take_datagram(connection, direction, event);
}

static struct connection *get_connection(struct turns *turns,
					 const struct netobs_trace_event *event)
{
	struct connection *connection = find_connection(turns, event->connection);

	if (connection)
		return connection;
	connection = calloc(1, sizeof(*connection));
	if (!connection ||
	    !slots_set_pointer(&turns->connections, &event->connection,
			       sizeof(event->connection), connection)) {
		free(connection);
		return NULL;
	}
	connection->id = event->connection;
	connection->protocol = event->protocol ?: IPPROTO_TCP;
	TAILQ_INIT(&connection->halves[0].closed);
	TAILQ_INIT(&connection->halves[1].closed);
	return connection;
}

static bool is_at_socket(uint8_t point)
{
	return point <= NETOBS_TRACE_RETRANSMIT ||
	       (point >= NETOBS_TRACE_SEGMENT && point <= NETOBS_TRACE_ACKED);
}

/* The tuple is that of the socket here or, until that is known, of the first place of what is sent, or the
 * last one of what comes. */
static void note_tuple(struct half *half, const struct netobs_trace_event *event)
{
	const bool is_first = !half->tuple.src_port;
	const bool is_socket = is_at_socket(event->point);

	if (half->has_socket ||
	    !(is_socket || is_first || event->point == NETOBS_TRACE_RECEIVE))
		return;
	half->has_socket = is_socket;
	half->netns = event->netns_inode;
	memcpy(half->tuple.src, event->src, sizeof(half->tuple.src));
	memcpy(half->tuple.dst, event->dst, sizeof(half->tuple.dst));
	half->tuple.src_port = event->src_port;
	half->tuple.dst_port = event->dst_port;
}

/* Reasons of drops of what the receiver has already, or does not need. */
static bool is_harmless_cause(const char *cause)
{
	static const char *const causes[] = {
		"TCP_OLD_DATA", "TCP_OFOMERGE",		"TCP_RFC7323_PAWS",
		"TCP_OLD_ACK",	"TCP_RFC7323_PAWS_ACK", "TCP_OLD_SEQUENCE"
	};

	if (strncmp(cause, DROP_CAUSE_PREFIX, strlen(DROP_CAUSE_PREFIX)) != 0)
		return false;
	cause += strlen(DROP_CAUSE_PREFIX);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (!strcmp(cause, causes[i]))
			return true;
	return false;
}

static void note_drop(struct turns *turns, struct half *half,
		      const struct netobs_trace_event *event)
{
	uint32_t i = 0;

	memcpy(half->drop_cause, event->cause, sizeof(half->drop_cause));
	memcpy(half->drop_function, event->function, sizeof(half->drop_function));
	if (!is_harmless_cause(event->cause))
		return;
	while (i < turns->n_harmless && turns->harmless[i] != event->reason)
		i++;
	if (i == turns->n_harmless && i < HARMLESS_MAX)
		turns->harmless[turns->n_harmless++] = event->reason;
}

int turns_note(struct turns *turns, const struct netobs_trace_event *event)
{
	struct connection *connection = get_connection(turns, event);
	const uint8_t direction = event->direction & 1;

	if (!connection)
		return -ENOMEM;
	connection->has = event->record.has;
	connection->first_seq[direction] = event->seq +
					   !!(event->tcp_flags & FLAG_SYN) -
					   (uint32_t)event->offset;
	if (event->record.has & NETOBS_TRACE_HAS_OFFSET)
		connection->halves[direction].has_offset = true;
	turn_path_note(&connection->path, event);
	note_tuple(&connection->halves[direction], event);
	if (event->point == NETOBS_TRACE_DROP)
		note_drop(turns, &connection->halves[direction], event);
	return 0;
}

/* ---- Time passes ------------------------------------------------------------------------------ */

static void remove_message(struct turns *turns, struct half *half,
			   struct turn_message *message)
{
	TAILQ_REMOVE(&half->closed, message, in_list);
	free_message(turns, message);
}

/* @return whether it was delivered for the last time, or left out */
static bool advance_closed(struct turns *turns, struct connection *connection,
			   struct turn_message *message, int64_t now_ns)
{
	const int64_t age_ns = now_ns - message->closed_ns;
	const bool is_late = age_ns > REPEAT_NS;
	const struct half *half = half_of(connection, message);

	if (!has_turns(connection))
		return true;
	if (message->is_decided && !message->turn.one_of) {
		turns->n_thinned++;
		return true;
	}
	if ((message->has_journey && age_ns >= HOLD_NS &&
	     (message->is_decided || is_late)) ||
	    now_ns - message->changed_ns > PATIENCE_NS ||
	    turns->n_held > TURNS_HELD_MAX) {
		deliver(turns, connection, message, 0);
		return true;
	}
	if (now_ns - message->told_ns > REPEAT_NS) {
		message->told_ns = now_ns;
		deliver(turns, connection, message, now_ns);
	}
	(void)half;
	return false;
}

/* The bytes so far: the last one may be anywhere. */
static void advance_open(struct turns *turns, struct connection *connection,
			 struct half *half, int64_t now_ns)
{
	struct turn_message *message = half->open, copy;

	if (now_ns - message->told_ns <= REPEAT_NS ||
	    now_ns - message->changed_ns > PATIENCE_NS || !has_turns(connection))
		return;
	message->told_ns = now_ns;
	copy = *message;
	copy.end = 0;
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		copy.end = max_i64(copy.end, half->reach[stamp]);
	set_length(&copy, copy.end);
	fill_stamps(&copy, half);
	deliver(turns, connection, &copy, now_ns);
}

static void end_slice(struct turns *turns, struct connection *connection,
		      struct half *half, int64_t now_ns)
{
	struct turn_message *slice = half->slice;
	struct netobs_turn *turn = &slice->turn;

	if (half->unread_ns) {
		const int64_t since = half->unread_ns;

		end_unread(half, now_ns);
		half->unread_ns = since;
	}
	spend(half, half->last_limit, now_ns);
	set_length(slice, half->is_sender_here ? half->reach[STAMP_SENT] :
						 half->reach[STAMP_SEGMENT]);
	for (int part = 0; half->part_bytes && part < NETOBS_JOURNEY_PARTS; part++)
		turn->part_ns[part] = (uint64_t)(half->part_sums[part] /
						 (double)half->part_bytes);
	if (!half->part_bytes)
		turn->unknown_parts = (1U << NETOBS_JOURNEY_PARTS) - 1;
	if (!has_turns(connection))
		turn->record.has |= NETOBS_TURN_HAS_OVERLAP;
	turn->end_ns = now_ns;
	deliver(turns, connection, slice, 0);
	free_message(turns, slice);
	half->slice = NULL;
}

static void begin_slice(struct turns *turns, struct connection *connection,
			uint8_t direction, int64_t now_ns)
{
	struct half *half = &connection->halves[direction];

	half->slice =
		new_message(turns, connection, direction, NETOBS_TURN_SLICE,
			    half->is_sender_here ? half->reach[STAMP_SENT] :
						   half->reach[STAMP_SEGMENT],
			    now_ns);
	memset(half->part_sums, 0, sizeof(half->part_sums));
	half->part_bytes = 0;
	if (half->slice)
		half->slice->turn.unknown_parts = 0;
}

/* A message has been on its way for a second, and bytes have moved since. */
static bool is_stream(const struct connection *connection,
		      const struct half *half, int64_t now_ns)
{
	if (!half->has_start)
		return false;
	if (!has_turns(connection))
		return half->open || !TAILQ_EMPTY(&half->closed);
	return half->open &&
	       now_ns - half->open->turn.record.time_ns > REPEAT_NS &&
	       now_ns - half->open->changed_ns < REPEAT_NS;
}

static void advance_slices(struct turns *turns, struct connection *connection,
			   int64_t now_ns)
{
	if (now_ns - connection->ticked_ns < REPEAT_NS)
		return;
	connection->ticked_ns = now_ns;
	for (uint8_t d = 0; d < 2; d++) {
		struct half *half = &connection->halves[d];

		if (half->slice)
			end_slice(turns, connection, half, now_ns);
		if (is_stream(connection, half, now_ns))
			begin_slice(turns, connection, d, now_ns);
	}
}

static void advance_connect(struct turns *turns, struct connection *connection,
			    int64_t now_ns)
{
	struct turn_message *connect = connection->connect;
	const bool is_over = is_handshake_over(connection);

	if ((is_over && now_ns - connect->changed_ns > HOLD_NS) ||
	    now_ns - connect->changed_ns > PATIENCE_NS) {
		deliver(turns, connection, connect, 0);
		free_message(turns, connect);
		connection->connect = NULL;
	} else if (!is_over && now_ns - connect->told_ns > REPEAT_NS) {
		connect->told_ns = now_ns;
		deliver(turns, connection, connect, now_ns);
	}
}

static void advance_connection(struct turns *turns,
			       struct connection *connection, int64_t now_ns)
{
	if (connection->connect)
		advance_connect(turns, connection, now_ns);
	for (int d = 0; d < 2; d++) {
		struct half *half = &connection->halves[d];
		struct turn_message *message, *next;

		for (message = TAILQ_FIRST(&half->closed); message;
		     message = next) {
			next = TAILQ_NEXT(message, in_list);
			if (advance_closed(turns, connection, message, now_ns))
				remove_message(turns, half, message);
		}
		if (half->open)
			advance_open(turns, connection, half, now_ns);
	}
	advance_slices(turns, connection, now_ns);
}

static struct connection *connection_at(const struct turns *turns, uint32_t i)
{
	const struct {
		uint64_t id;
		struct connection *connection;
	} *item = slots_at(&turns->connections, i);

	return item->connection;
}

void turns_advance(struct turns *turns, int64_t now_ns)
{
	now_ns = max_i64(turns->now_ns, now_ns - LATE_NS);
	turns->now_ns = now_ns;
	for (uint32_t i = 0; i < turns->connections.n; i++)
		advance_connection(turns, connection_at(turns, i), now_ns);
}

/* ---- The end ---------------------------------------------------------------------------------- */

static void remove_connection(struct turns *turns, struct connection *connection)
{
	for (int d = 0; d < 2; d++) {
		struct half *half = &connection->halves[d];

		while (!TAILQ_EMPTY(&half->closed))
			remove_message(turns, half, TAILQ_FIRST(&half->closed));
		free_message(turns, half->open);
		free_message(turns, half->slice);
	}
	free_message(turns, connection->connect);
	slots_remove(&turns->connections, &connection->id);
	if (turns->last == connection)
		turns->last = NULL;
	free(connection);
}

static void end_half(struct turns *turns, struct connection *connection,
		     uint8_t direction)
{
	struct half *half = &connection->halves[direction];
	int64_t end = INT64_MIN;
	struct turn_message *message;

	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		end = max_i64(end, half->reach[stamp]);
	close_message(turns, connection, direction, end, turns->now_ns, 0);
	TAILQ_FOREACH(message, &half->closed, in_list)
		if (has_turns(connection) && message->turn.one_of)
			deliver(turns, connection, message, 0);
	if (half->slice)
		end_slice(turns, connection, half, turns->now_ns);
}

static void end_connection(struct turns *turns, struct connection *connection)
{
	if (connection->connect)
		deliver(turns, connection, connection->connect, 0);
	end_half(turns, connection, 0);
	end_half(turns, connection, 1);
	remove_connection(turns, connection);
}

static void end_all(struct turns *turns,
		    void (*end)(struct turns *turns,
				struct connection *connection))
{
	while (turns->connections.n)
		end(turns, connection_at(turns, 0));
}

void turns_end(struct turns *turns, uint64_t connection)
{
	struct connection *found;

	if (!connection) {
		end_all(turns, end_connection);
		return;
	}
	found = find_connection(turns, connection);
	if (found)
		end_connection(turns, found);
}

uint64_t turns_count_thinned(const struct turns *turns)
{
	return turns->n_thinned;
}

int turns_new(const struct turns_ops *ops, struct turns **ret_turns)
{
	struct turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return -ENOMEM;
	turns->ops = *ops;
	*ret_turns = turns;
	return 0;
}

void turns_free(struct turns *turns)
{
	if (!turns)
		return;
	end_all(turns, remove_connection);
	slots_free(&turns->connections);
	free(turns);
}
