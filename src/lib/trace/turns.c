// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "turns.h"

#include "drops/drop_class.h"
#include "turn_state.h"

#include <errno.h>
#include <stdlib.h>

enum { FLAG_SYN = 2 };

/* How long events of other CPUs may be late: as journeys wait. */
#define LATE_NS (6 * NSEC_PER_MSEC)
/* How long copies of the bytes of a message may come after it has ended. */
#define HOLD_NS (200 * NSEC_PER_MSEC)
/* What is not complete is delivered as often. */
#define REPEAT_NS NSEC_PER_SEC
/* And not any more so long after its last event, unless bytes of it can be read. */
#define PATIENCE_NS (10 * NSEC_PER_SEC)
/* Of a slice; beyond the limit of records, until they are paid for. */
#define SLICE_NS (250 * NSEC_PER_MSEC)

/* ---- Journeys ------------------------------------------------------------------------------- */

static void sum_parts(struct turn_half *half, const struct netobs_journey *journey)
{
	for (int part = 0; part < NETOBS_JOURNEY_PARTS; part++)
		half->part_sums[part] +=
			(double)journey->part_ns[part] * journey->length;
	half->part_bytes += journey->length;
	half->slice->turn.unknown_parts |= journey->unknown_parts;
}

static struct turn_connection *find_connection(struct turns *turns, uint64_t id)
{
	if (!turns->last || turns->last->id != id)
		turns->last = slots_pointer(&turns->connections, &id);
	return turns->last;
}

void turns_join(struct turns *turns, const struct netobs_journey *journey)
{
	struct turn_connection *connection =
		find_connection(turns, journey->connection);
	const int64_t end = journey->offset + journey->length;
	struct turn_message *message;
	struct turn_half *half;

	if (!connection)
		return;
	half = &connection->halves[journey->direction & 1];
	if (connection->protocol != IPPROTO_TCP) {
		turn_join_datagram(half, journey);
		return;
	}
	if (half->slice)
		sum_parts(half, journey);
	TAILQ_FOREACH(message, &half->closed, in_list)
		if (message->end > journey->offset && message->end <= end)
			turn_fill_journey(message, journey);
	/* The last one before the message ends has its last byte. */
	if (half->open && end > half->open->turn.offset)
		turn_fill_journey(half->open, journey);
}

/* ---- Connections ---------------------------------------------------------------------------- */

void turns_take(const struct journey_event *event, void *ctx)
{
	struct turns *turns = ctx;
	struct turn_connection *connection =
		find_connection(turns, event->direction->ends.connection);
	struct turn_half *half;

	if (!connection)
		return;
	half = &connection->halves[event->direction->ends.direction & 1];
	turns->now_ns = max_i64(turns->now_ns, event->step.time_ns);
	if (connection->protocol == IPPROTO_TCP)
		turn_take_stream(half, event);
	else
		turn_take_datagram(half, event);
}

static struct turn_connection *get_connection(struct turns *turns, uint64_t id,
					      uint8_t protocol)
{
	struct turn_connection *connection = find_connection(turns, id);

	if (connection)
		return connection;
	connection = calloc(1, sizeof(*connection));
	if (!connection || !slots_set_pointer(&turns->connections, &id,
					      sizeof(id), connection)) {
		free(connection);
		return NULL;
	}
	connection->id = id;
	connection->protocol = protocol ?: IPPROTO_TCP;
	connection->turns = turns;
	for (uint8_t d = 0; d < 2; d++) {
		connection->halves[d].connection = connection;
		connection->halves[d].direction = d;
		TAILQ_INIT(&connection->halves[d].closed);
	}
	return connection;
}

static bool is_at_socket(uint8_t point)
{
	return point <= NETOBS_TRACE_RETRANSMIT ||
	       (point >= NETOBS_TRACE_SEGMENT && point <= NETOBS_TRACE_ACKED);
}

/* The tuple is that of the socket here, of the sender's if both are, or, until that is known, of the first place of what
 * is sent, or the last one of what comes. The first event of a trace may be at the receiver's. */
static void note_tuple(struct turn_half *half,
		       const struct netobs_trace_event *event)
{
	const bool is_first = !half->tuple.src_port;
	const bool is_socket = is_at_socket(event->point);
	const bool is_sender = event->point <= NETOBS_TRACE_RETRANSMIT;

	if (half->has_sender || (half->has_socket && !is_sender) ||
	    !(is_socket || is_first || event->point == NETOBS_TRACE_RECEIVE))
		return;
	half->has_socket = is_socket;
	half->has_sender = is_sender;
	half->netns = event->netns_inode;
	memcpy(half->tuple.src, event->src, sizeof(half->tuple.src));
	memcpy(half->tuple.dst, event->dst, sizeof(half->tuple.dst));
	half->tuple.src_port = event->src_port;
	half->tuple.dst_port = event->dst_port;
}

static void note_drop(struct turns *turns, struct turn_half *half,
		      const struct netobs_trace_event *event)
{
	uint32_t i = 0;

	memcpy(half->drop_cause, event->cause, sizeof(half->drop_cause));
	memcpy(half->drop_function, event->function, sizeof(half->drop_function));
	if (drop_class(event->cause, event->function) != DROP_CLASS_KNOWN)
		return;
	while (i < turns->n_harmless && turns->harmless[i] != event->reason)
		i++;
	if (i == turns->n_harmless && i < TURN_HARMLESS)
		turns->harmless[turns->n_harmless++] = event->reason;
}

int turns_note(struct turns *turns, const struct netobs_trace_event *event)
{
	struct turn_connection *connection =
		get_connection(turns, event->connection, event->protocol);
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

void turns_note_holder(struct turns *turns, uint64_t id, uint8_t direction,
		       uint32_t pid, const char command[16])
{
	struct turn_connection *connection =
		get_connection(turns, id, IPPROTO_TCP);
	struct turn_process *process;

	if (!connection)
		return;
	/* Of its threads, the first one stands for all until one of them is seen. */
	process = &connection->halves[direction & 1].writer;
	process->pid = process->tid = pid;
	memcpy(process->command, command, sizeof(process->command));
}

/* ---- Time passes ------------------------------------------------------------------------------ */

static void remove_message(struct turn_message *message)
{
	TAILQ_REMOVE(&message->half->closed, message, in_list);
	turn_message_free(message);
}

static bool is_given_up(const struct turn_message *message, int64_t now_ns)
{
	const struct turn_half *half = message->half;
	const bool can_be_read = half->unread_ns &&
				 half->reach[STAMP_READ] < message->end;

	return !can_be_read && now_ns - message->changed_ns > PATIENCE_NS;
}

/* @return whether it was delivered for the last time, or left out */
static bool advance_closed(struct turn_message *message, int64_t now_ns)
{
	const int64_t age_ns = now_ns - message->closed_ns;
	const bool is_late = age_ns > REPEAT_NS;
	struct turns *turns = message->half->connection->turns;

	if (!turn_has_turns(message->half))
		return true;
	if (message->is_decided && !message->turn.one_of) {
		turns->n_thinned++;
		return true;
	}
	if ((message->has_journey && age_ns >= HOLD_NS &&
	     (message->is_decided || is_late)) ||
	    is_given_up(message, now_ns) || turns->n_held > TURNS_HELD_MAX) {
		turn_deliver(message, 0);
		return true;
	}
	if (now_ns - message->told_ns > REPEAT_NS) {
		message->told_ns = now_ns;
		turn_deliver(message, now_ns);
	}
	return false;
}

/* @return whether a record is due of the message that has not ended */
static bool is_due(const struct turn_half *half, int64_t now_ns)
{
	return half->open && now_ns - half->open->told_ns > REPEAT_NS &&
	       !is_given_up(half->open, now_ns) && turn_has_turns(half);
}

/* The bytes so far: the last one may be anywhere. */
static void advance_open(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *message = half->open, copy;

	if (!is_due(half, now_ns))
		return;
	message->told_ns = now_ns;
	copy = *message;
	copy.end = 0;
	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		copy.end = max_i64(copy.end, half->reach[stamp]);
	turn_set_length(&copy, copy.end);
	turn_fill_stamps(&copy);
	turn_deliver(&copy, now_ns);
}

static void end_slice(struct turn_half *half, int64_t now_ns)
{
	struct turn_message *slice = half->slice;
	struct netobs_turn *turn = &slice->turn;

	if (half->unread_ns) {
		const int64_t since = half->unread_ns;

		turn_end_unread(half, now_ns);
		half->unread_ns = since;
	}
	turn_spend(half, half->last_limit, now_ns);
	turn_set_length(slice, half->is_sender_here ? half->reach[STAMP_SENT] :
						      half->reach[STAMP_SEGMENT]);
	for (int part = 0; half->part_bytes && part < NETOBS_JOURNEY_PARTS; part++)
		turn->part_ns[part] = (uint64_t)(half->part_sums[part] /
						 (double)half->part_bytes);
	if (!half->part_bytes)
		turn->unknown_parts = (1U << NETOBS_JOURNEY_PARTS) - 1;
	if (!turn_has_turns(half))
		turn->record.has |= NETOBS_TURN_HAS_OVERLAP;
	turn->end_ns = now_ns;
	turn_deliver(slice, 0);
	turn_message_free(slice);
	half->slice = NULL;
}

static void begin_slice(struct turn_half *half, int64_t now_ns)
{
	half->slice = turn_message_new(half, NETOBS_TURN_SLICE,
				       half->is_sender_here ?
					       half->reach[STAMP_SENT] :
					       half->reach[STAMP_SEGMENT],
				       now_ns);
	memset(half->part_sums, 0, sizeof(half->part_sums));
	half->part_bytes = 0;
	if (half->slice)
		half->slice->turn.unknown_parts = 0;
}

/* A message has been on its way for a second, and bytes have moved since. */
static bool is_stream(const struct turn_half *half, int64_t now_ns)
{
	if (!half->has_start)
		return false;
	if (!turn_has_turns(half))
		return half->open || !TAILQ_EMPTY(&half->closed);
	return half->open &&
	       now_ns - half->open->turn.record.time_ns > REPEAT_NS &&
	       now_ns - half->open->changed_ns < REPEAT_NS;
}

/* @return how many records end a slice: its message has its record then, too */
static uint32_t count_records(const struct turn_half *half, int64_t now_ns)
{
	return half->slice ? 1U + is_due(half, now_ns) : 0;
}

static void advance_slices(struct turn_connection *connection, int64_t now_ns)
{
	const uint32_t n = count_records(&connection->halves[0], now_ns) +
			   count_records(&connection->halves[1], now_ns);

	if (now_ns - connection->ticked_ns < SLICE_NS ||
	    !turn_pay(connection, n, now_ns))
		return;
	connection->ticked_ns = now_ns;
	for (uint8_t d = 0; d < 2; d++) {
		struct turn_half *half = &connection->halves[d];

		if (half->slice) {
			advance_open(half, now_ns);
			end_slice(half, now_ns);
		}
		if (is_stream(half, now_ns))
			begin_slice(half, now_ns);
	}
}

/*
 * At the server, until the socket is used, if it has bytes to be read. Without a socket, the SYN may come again: nobody
 * answers it.
 */
static bool is_handshake_over(const struct turn_connection *connection)
{
	const struct turn_message *connect = connection->connect;
	const struct netobs_turn *turn = &connect->turn;
	const struct turn_half *half = connect->half;

	if (half->is_reader_here)
		return turn->ready_ns && (turn->read_ns || !half->unread_ns);
	return half->is_sender_here && turn->in_ns;
}

static void advance_connect(struct turn_connection *connection, int64_t now_ns)
{
	struct turn_message *connect = connection->connect;
	const bool is_over = is_handshake_over(connection);

	if ((is_over && now_ns - connect->changed_ns > HOLD_NS) ||
	    is_given_up(connect, now_ns)) {
		turn_deliver(connect, 0);
		turn_message_free(connect);
		connection->connect = NULL;
	} else if (!is_over && now_ns - connect->told_ns > REPEAT_NS) {
		connect->told_ns = now_ns;
		turn_deliver(connect, now_ns);
	}
}

static void advance_connection(struct turn_connection *connection, int64_t now_ns)
{
	if (connection->connect)
		advance_connect(connection, now_ns);
	for (int d = 0; d < 2; d++) {
		struct turn_half *half = &connection->halves[d];
		struct turn_message *message, *next;

		for (message = TAILQ_FIRST(&half->closed); message;
		     message = next) {
			next = TAILQ_NEXT(message, in_list);
			if (advance_closed(message, now_ns))
				remove_message(message);
		}
		if (!half->slice)
			advance_open(half, now_ns);
	}
	advance_slices(connection, now_ns);
}

void turns_advance(struct turns *turns, int64_t now_ns)
{
	now_ns = max_i64(turns->now_ns, now_ns - LATE_NS);
	turns->now_ns = now_ns;
	for (uint32_t i = 0; i < turns->connections.n; i++)
		advance_connection(slots_pointer_at(&turns->connections, i),
				   now_ns);
}

/* ---- The end ---------------------------------------------------------------------------------- */

static void remove_connection(struct turn_connection *connection)
{
	struct turns *turns = connection->turns;

	for (int d = 0; d < 2; d++) {
		struct turn_half *half = &connection->halves[d];

		while (!TAILQ_EMPTY(&half->closed))
			remove_message(TAILQ_FIRST(&half->closed));
		turn_message_free(half->open);
		turn_message_free(half->slice);
	}
	turn_message_free(connection->connect);
	slots_remove(&turns->connections, &connection->id);
	if (turns->last == connection)
		turns->last = NULL;
	free(connection);
}

static void end_half(struct turn_half *half)
{
	const int64_t now_ns = half->connection->turns->now_ns;
	int64_t end = INT64_MIN;
	struct turn_message *message;

	for (int stamp = 0; stamp < TURN_STAMPS; stamp++)
		end = max_i64(end, half->reach[stamp]);
	turn_close(half, end, now_ns, 0);
	TAILQ_FOREACH(message, &half->closed, in_list)
		if (turn_has_turns(half) && message->turn.one_of)
			turn_deliver(message, 0);
	if (half->slice)
		end_slice(half, now_ns);
}

static void end_connection(struct turn_connection *connection)
{
	if (connection->connect)
		turn_deliver(connection->connect, 0);
	end_half(&connection->halves[0]);
	end_half(&connection->halves[1]);
	remove_connection(connection);
}

static void end_all(struct turns *turns,
		    void (*end)(struct turn_connection *connection))
{
	while (turns->connections.n)
		end(slots_pointer_at(&turns->connections, 0));
}

void turns_end(struct turns *turns, uint64_t connection)
{
	struct turn_connection *found;

	if (!connection) {
		end_all(turns, end_connection);
		return;
	}
	found = find_connection(turns, connection);
	if (found)
		end_connection(found);
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
