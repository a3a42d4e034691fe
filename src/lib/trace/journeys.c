// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journeys.h"

#include "base/slots.h"
#include "base/util.h"
#include "journey_state.h"

#include <string.h>

enum {
	DIRECTIONS = 2,
	WAITING_MAX = 1 << 18, /* events of all connections */
	HELD_MAX = 1 << 19, /* events of all connections, including those that were taken */
};

#define DELAY_NS (5 * NSEC_PER_MSEC)

struct connection {
	uint64_t id;
	struct direction directions[DIRECTIONS];
};

struct journeys {
	struct slots connections; /* pointers, by id */
	uint64_t n_held;	  /* events */
	struct journey_queue waiting; /* by time, until earlier ones cannot come any more */
	int64_t newest_ns;
	uint64_t last_id;
	struct datagrams *datagrams;
	journeys_event_fn *on_event; /* or NULL */
	void *on_event_ctx;
	struct journey_draft draft;
};

/* ---- Connections --------------------------------------------------------------------------- */

static struct connection *get_connection(struct journeys *journeys, uint64_t id)
{
	struct connection *connection =
		slots_pointer(&journeys->connections, &id);

	if (connection)
		return connection;
	connection = calloc(1, sizeof(*connection));
	if (!connection || !slots_set_pointer(&journeys->connections, &id,
					      sizeof(id), connection)) {
		free(connection);
		return NULL;
	}
	connection->id = id;
	for (int i = 0; i < DIRECTIONS; i++)
		direction_init(&connection->directions[i], &journeys->n_held);
	return connection;
}

static void remove_connection(struct journeys *journeys,
			      struct connection *connection)
{
	slots_remove(&journeys->connections, &connection->id);
	for (int i = 0; i < DIRECTIONS; i++) {
		datagrams_end(journeys->datagrams, &connection->directions[i],
			      NULL);
		direction_clear(&connection->directions[i]);
	}
	free(connection);
}

/* ---- Events in order of time -------------------------------------------------------------- */

static bool is_over(const struct direction *direction, uint8_t point)
{
	return point == NETOBS_TRACE_READ ||
	       (point == NETOBS_TRACE_ACKED && !direction->ends.has_receiver);
}

/* Process acknowledgements before other events of the same time. */
static void take_bytes(struct journeys *journeys, struct journey_event *event)
{
	struct direction *direction = event->direction;
	const uint8_t point = event->step.point;
	const int64_t end = event->end;

	if (point == NETOBS_TRACE_ACKED) {
		direction->now_ns =
			max_i64(direction->now_ns, event->step.time_ns);
		journey_event_free(event);
	} else {
		direction_take(direction, event);
	}
	if (is_over(direction, point))
		direction_deliver(direction, end, &journeys->draft);
	else
		direction_forward(direction, &journeys->draft);
	direction_limit(direction, &journeys->draft);
}

static void take_event(struct journey_event *event, void *ctx)
{
	struct journeys *journeys = ctx;

	if (journeys->on_event)
		journeys->on_event(event, journeys->on_event_ctx);
	if (event->end == event->offset && !event->socket)
		journey_event_free(event);
	else if (journey_is_datagram(event))
		datagrams_take(journeys->datagrams, event, &journeys->draft);
	else
		take_bytes(journeys, event);
}

/* The limit is one for all connections: many of them with few events each must be bounded, too. */
static void limit_held(struct journeys *journeys)
{
	if (journeys->n_held - journeys->waiting.n <= HELD_MAX)
		return;
	datagrams_halve(journeys->datagrams, &journeys->draft);
	for (uint32_t i = 0; i < journeys->connections.n; i++) {
		struct connection *connection =
			slots_pointer_at(&journeys->connections, i);

		for (int d = 0; d < DIRECTIONS; d++)
			direction_halve(&connection->directions[d],
					&journeys->draft);
	}
}

static void take_before(struct journeys *journeys, int64_t until_ns)
{
	struct journey_queue *waiting = &journeys->waiting;

	while (waiting->n &&
	       (waiting->items[0].key <= until_ns || waiting->n > WAITING_MAX))
		take_event(journey_queue_pop(waiting), journeys);
	limit_held(journeys);
	if (until_ns < INT64_MAX)
		datagrams_advance(journeys->datagrams, until_ns,
				  &journeys->draft);
}

/* ---- A new event --------------------------------------------------------------------------- */

static bool is_of_sender(uint8_t point)
{
	return point == NETOBS_TRACE_SEND || point == NETOBS_TRACE_SENT ||
	       point == NETOBS_TRACE_RETRANSMIT || point == NETOBS_TRACE_ACKED;
}

static bool is_of_receiver(uint8_t point)
{
	return point == NETOBS_TRACE_SEGMENT || point == NETOBS_TRACE_READY ||
	       point == NETOBS_TRACE_READ;
}

static void learn_ends(struct journey_ends *ends,
		       const struct netobs_trace_event *event)
{
	const bool is_socket = is_of_sender(event->point);
	const bool is_first = !ends->connection;

	ends->connection = event->connection;
	ends->direction = event->direction;
	ends->protocol = event->protocol;
	ends->has = event->record.has;
	ends->first_seq = event->seq - (uint32_t)event->offset;
	ends->has_sender |= is_socket;
	ends->has_receiver |= is_of_receiver(event->point);
	if (!is_first && (ends->has_socket_ends || !is_socket))
		return;
	ends->has_socket_ends = is_socket;
	ends->sender_netns = is_socket ? event->netns_inode : 0;
	memcpy(ends->src, event->src, sizeof(ends->src));
	memcpy(ends->dst, event->dst, sizeof(ends->dst));
	ends->src_port = event->src_port;
	ends->dst_port = event->dst_port;
}

static struct journey_event make_event(struct journeys *journeys,
				       struct direction *direction,
				       const struct netobs_trace_event *event)
{
	struct journey_event made = {
		.step = { .time_ns = event->record.time_ns,
			  .cpu = event->cpu,
			  .pid = event->pid,
			  .ifindex = event->ifindex,
			  .netns_inode = event->netns_inode,
			  .layer = event->layer,
			  .point = event->point },
		.offset = event->offset,
		.end = event->offset + event->length,
		.protocol = event->protocol,
		.socket = event->socket,
		.ip_id = event->ip_id,
		.seq = event->seq,
		.tid = event->tid,
		.tcp_flags = event->tcp_flags,
		.limit = event->record.has & NETOBS_TRACE_HAS_LIMIT ?
				 event->limit + 1 :
				 0,
		.is_fragment = event->is_fragment,
		.reason = event->reason,
		.id = ++journeys->last_id,
		.buffer = event->buffer,
		.direction = direction,
	};

	memcpy(made.step.command, event->command, sizeof(made.step.command));
	memcpy(made.step.interface, event->interface,
	       sizeof(made.step.interface));
	return made;
}

/*
 * Acknowledged bytes end ranges when their event is due, but apply to the ranges at once: the
 * sender may get the acknowledgement just after a process has read the bytes.
 */
static int add_acked(struct journeys *journeys,
		     const struct journey_event *trigger)
{
	struct journey_event *held = journey_event_hold(trigger);

	if (!held)
		return -ENOMEM;
	held->id = ++journeys->last_id;
	direction_take(held->direction, held);
	return 0;
}

/* An event of reading a datagram needs no length. */
static bool has_bytes(const struct netobs_trace_event *event)
{
	return event->length || event->socket;
}

static int hold_event(struct journeys *journeys, const struct journey_event *event)
{
	struct journey_event *held = journey_event_hold(event);

	if (!held)
		return -ENOMEM;
	if (event->step.point == NETOBS_TRACE_ACKED &&
	    add_acked(journeys, held) < 0) {
		journey_event_free(held);
		return -ENOMEM;
	}
	journey_queue_push(&journeys->waiting, held->step.time_ns, held);
	return 0;
}

int journeys_add(struct journeys *journeys, const struct netobs_trace_event *event)
{
	struct connection *connection =
		get_connection(journeys, event->connection);
	struct direction *direction;
	struct journey_event made;

	if (!connection)
		return -ENOMEM;
	direction = &connection->directions[event->direction % DIRECTIONS];
	learn_ends(&direction->ends, event);
	if ((!has_bytes(event) && !journeys->on_event) ||
	    event->point >= NETOBS_TRACE_POINTS)
		return 0;
	made = make_event(journeys, direction, event);
	if ((!journey_is_datagram(&made) && direction_reserve(direction) < 0) ||
	    !journey_queue_reserve(&journeys->waiting, journeys->waiting.n + 1) ||
	    hold_event(journeys, &made) < 0)
		return -ENOMEM;
	journeys->newest_ns = max_i64(journeys->newest_ns, event->record.time_ns);
	take_before(journeys, journeys->newest_ns - DELAY_NS);
	return 0;
}

void journeys_advance(struct journeys *journeys, int64_t now_ns)
{
	journeys->newest_ns = max_i64(journeys->newest_ns, now_ns);
	take_before(journeys, journeys->newest_ns - DELAY_NS);
}

uint64_t journeys_count_cut(const struct journeys *journeys)
{
	return journeys->draft.n_early;
}

/* The last calls of streams are kept, and do not count. */
static bool is_waiting(const struct direction *direction)
{
	return !LIST_EMPTY(&direction->datagrams) || direction->pending.n ||
	       direction->n_active || !TAILQ_EMPTY(&direction->sents);
}

bool journeys_is_waiting(const struct journeys *journeys, uint64_t connection)
{
	const struct connection *found =
		slots_pointer(&journeys->connections, &connection);

	return found && (is_waiting(&found->directions[0]) ||
			 is_waiting(&found->directions[1]));
}

/* ---- The end ------------------------------------------------------------------------------- */

static void push_event(struct journey_event *event, void *ctx)
{
	journey_queue_push(ctx, event->step.time_ns, event);
}

/* Take the waiting events of a direction: no earlier ones can come any more. */
static void take_direction(struct journeys *journeys, struct direction *direction)
{
	struct journey_queue own = { 0 };
	struct journey_event *event;

	if (journey_queue_reserve(&own, journeys->waiting.n)) {
		journey_queue_remove(&journeys->waiting, direction, push_event,
				     &own);
		while ((event = journey_queue_pop(&own)))
			take_event(event, journeys);
	} else {
		/* Without memory, process them in any order. */
		journey_queue_remove(&journeys->waiting, direction, take_event,
				     journeys);
	}
	free(own.items);
}

static void end_connection(struct journeys *journeys,
			   struct connection *connection)
{
	for (int i = 0; i < DIRECTIONS; i++) {
		struct direction *direction = &connection->directions[i];

		take_direction(journeys, direction);
		datagrams_end(journeys->datagrams, direction, &journeys->draft);
		direction_deliver_all(direction, &journeys->draft);
	}
	remove_connection(journeys, connection);
}

static void end_all(struct journeys *journeys,
		    void (*end)(struct journeys *journeys,
				struct connection *connection))
{
	while (journeys->connections.n)
		end(journeys, slots_pointer_at(&journeys->connections, 0));
}

void journeys_end(struct journeys *journeys, uint64_t connection)
{
	struct connection *found;

	if (!connection) {
		take_before(journeys, INT64_MAX);
		end_all(journeys, end_connection);
		return;
	}
	found = slots_pointer(&journeys->connections, &connection);
	if (found)
		end_connection(journeys, found);
}

int journeys_new(journeys_fn *on_journey, void *ctx,
		 struct journeys **ret_journeys)
{
	cleanup_free struct journeys *journeys = calloc(1, sizeof(*journeys));

	if (!journeys)
		return -ENOMEM;
	if (datagrams_new(&journeys->datagrams) < 0)
		return -ENOMEM;
	journeys->newest_ns = INT64_MIN / 2;
	journeys->draft.on_journey = on_journey;
	journeys->draft.ctx = ctx;
	*ret_journeys = TAKE_PTR(journeys);
	return 0;
}

void journeys_watch(struct journeys *journeys, journeys_event_fn *on_event,
		    void *ctx)
{
	journeys->on_event = on_event;
	journeys->on_event_ctx = ctx;
}

void journeys_free(struct journeys *journeys)
{
	if (!journeys)
		return;
	for (uint32_t i = 0; i < journeys->waiting.n; i++)
		journey_event_free(journeys->waiting.items[i].event);
	free(journeys->waiting.items);
	end_all(journeys, remove_connection);
	slots_free(&journeys->connections);
	datagrams_free(journeys->datagrams);
	free(journeys);
}
