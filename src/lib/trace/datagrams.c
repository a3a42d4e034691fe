// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "journey_state.h"

#include "base/slots.h"
#include "base/util.h"

#include <netinet/in.h>

enum { FIRST_EVENTS = 8 };

/* The place of a datagram, which determines how long its next event may take. */
enum datagram_state {
	DATAGRAM_MOVING,
	DATAGRAM_QUEUED,   /* in a queue of an interface */
	DATAGRAM_READABLE, /* in a socket */
	DATAGRAM_STATES
};

/* Datagrams are delivered after so long without another event: few have any later. */
static const int64_t patience_ns[DATAGRAM_STATES] = {
	[DATAGRAM_MOVING] = NSEC_PER_SEC,
	[DATAGRAM_QUEUED] = 10LL * NSEC_PER_SEC,
	[DATAGRAM_READABLE] = 60LL * NSEC_PER_SEC,
};

/* Kinds of keys by which a datagram is found, within its direction. */
enum datagram_mark {
	DATAGRAM_BUFFER,
	DATAGRAM_IP_ID,
	DATAGRAM_ECHO,
	DATAGRAM_MARKS
};

struct datagram_key {
	const struct direction *direction;
	uint64_t mark; /* enum datagram_mark */
	uint64_t value;
};

_Static_assert(sizeof(struct datagram_key) == 24, "no padding: it is hashed");

TAILQ_HEAD(datagram_list, datagram);

/* A socket with unread datagrams, in the order in which these are read. */
struct reader {
	uint64_t socket;
	struct datagram_list datagrams;
};

/* A datagram on its way: its events, until it is read or dropped, or no more events are expected. */
struct datagram {
	struct direction *direction;
	TAILQ_ENTRY(datagram) of_state; /* by time */
	LIST_ENTRY(datagram) of_direction;
	TAILQ_ENTRY(datagram) of_reader;
	struct journey_event **events; /* by time */
	uint32_t n_events, capacity;
	uint32_t number; /* in its direction */
	uint32_t ip_id;
	uint32_t data; /* of UDP: the hash of its data; 0: no event had it */
	int64_t last_ns;
	int64_t length;	       /* the end of its last observed bytes */
	struct reader *reader; /* the socket whose queue has it, or NULL */
	enum datagram_state state;
	bool is_fragmented;
	bool is_received; /* a socket had it */
	bool is_read_unseen; /* the time when it was read cannot be known any more */
};

struct datagrams {
	struct datagram_list states[DATAGRAM_STATES];
	struct slots keys, readers; /* pointers, by key and by socket */
	uint32_t n;
};

/* ---- The events of a datagram ------------------------------------------------------------ */

static bool has_same_place(const struct journey_event *a,
			   const struct journey_event *b)
{
	return a->step.point == b->step.point && journey_same_interface(a, b) &&
	       a->offset < b->end && b->offset < a->end;
}

/* A driver that refused the datagram gets it again. */
static bool is_again(const struct journey_event *busy,
		     const struct journey_event *event)
{
	return busy->step.point == NETOBS_TRACE_BUSY &&
	       (event->step.point == NETOBS_TRACE_DEQUEUE ||
		event->step.point == NETOBS_TRACE_TRANSMIT) &&
	       journey_same_interface(busy, event);
}

static bool may_pass(const struct datagram *datagram,
		     const struct journey_event *event)
{
	for (uint32_t i = datagram->n_events; i--;) {
		if (has_same_place(datagram->events[i], event))
			return false;
		if (is_again(datagram->events[i], event))
			return true;
	}
	return true;
}

static uint32_t data_of(const struct journey_event *event)
{
	return event->protocol == IPPROTO_UDP ? event->seq : 0;
}

static int append_event(struct datagram *datagram, struct journey_event *event)
{
	if (datagram->n_events == JOURNEY_EVENTS_MAX ||
	    !array_reserve(&datagram->events, datagram->n_events,
			   &datagram->capacity, sizeof(*datagram->events),
			   FIRST_EVENTS))
		return -ENOMEM;
	datagram->events[datagram->n_events++] = event;
	datagram->last_ns = event->step.time_ns;
	datagram->length = max_i64(datagram->length, event->end);
	datagram->data = datagram->data ?: data_of(event);
	datagram->is_fragmented |= event->is_fragment;
	datagram->is_received |= event->step.point == NETOBS_TRACE_READY ||
				 event->step.point == NETOBS_TRACE_READ;
	return 0;
}

/* ---- Journeys ---------------------------------------------------------------------------- */

/* @return the next offset where an event begins or ends; INT64_MAX: none */
static int64_t find_next(const struct datagram *datagram, int64_t offset)
{
	int64_t next = INT64_MAX;

	for (uint32_t i = 0; i < datagram->n_events; i++) {
		const struct journey_event *event = datagram->events[i];

		if (event->offset > offset)
			next = min_i64(next, event->offset);
		else if (event->end > offset)
			next = min_i64(next, event->end);
	}
	return next;
}

static void deliver_range(const struct datagram *datagram, int64_t offset,
			  int64_t end, const struct journey_ends *ends,
			  struct journey_draft *draft)
{
	struct journey_event *events[JOURNEY_EVENTS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < datagram->n_events; i++)
		if (datagram->events[i]->offset <= offset &&
		    datagram->events[i]->end >= end)
			events[n++] = datagram->events[i];
	if (n)
		journey_draft_add(draft, ends,
				  &(struct journey_range){
					  .offset = offset,
					  .end = end,
					  .now_ns = datagram->last_ns,
					  .events = events,
					  .n = n,
				  });
}

static void deliver_datagram(const struct datagram *datagram,
			     struct journey_draft *draft)
{
	struct journey_ends ends = datagram->direction->ends;
	int64_t offset = -1, next;

	ends.datagram = datagram->number;
	ends.ip_id = datagram->ip_id ?: datagram->data;
	ends.has |= NETOBS_TRACE_HAS_OFFSET;
	ends.has_sender = false; /* it begins at an interface */
	ends.has_receiver = datagram->is_received;
	while ((next = find_next(datagram, offset)) < INT64_MAX) {
		if (offset >= 0)
			deliver_range(datagram, offset, next, &ends, draft);
		offset = next;
	}
	journey_draft_flush(draft);
}

/* ---- Keys -------------------------------------------------------------------------------- */

static bool is_echo(const struct journey_event *event)
{
	return event->protocol == IPPROTO_ICMP ||
	       event->protocol == IPPROTO_ICMPV6;
}

/* @return how many keys an event gives to its datagram */
static uint32_t keys_of(const struct journey_event *event,
			struct datagram_key ret_keys[DATAGRAM_MARKS])
{
	const struct direction *direction = event->direction;
	uint32_t n = 0;

	if (event->buffer)
		ret_keys[n++] = (struct datagram_key){ direction, DATAGRAM_BUFFER,
						       event->buffer };
	if (event->is_fragment && event->ip_id)
		ret_keys[n++] = (struct datagram_key){ direction, DATAGRAM_IP_ID,
						       event->ip_id };
	if (is_echo(event) && !event->is_fragment)
		ret_keys[n++] = (struct datagram_key){ direction, DATAGRAM_ECHO,
						       event->seq };
	return n;
}

/* Another datagram may have got a key of an event since then. */
static void remove_keys(struct datagrams *datagrams,
			const struct datagram *datagram,
			const struct journey_event *event)
{
	struct datagram_key keys[DATAGRAM_MARKS];

	for (uint32_t n = keys_of(event, keys); n--;)
		if (slots_pointer(&datagrams->keys, &keys[n]) == datagram)
			slots_remove(&datagrams->keys, &keys[n]);
}

/* ---- Sockets ----------------------------------------------------------------------------- */

static struct reader *add_reader(struct datagrams *datagrams, uint64_t socket)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->socket = socket;
	TAILQ_INIT(&reader->datagrams);
	if (slots_set_pointer(&datagrams->readers, &socket, sizeof(socket),
			      reader))
		return reader;
	free(reader);
	return NULL;
}

/* Without memory, the time when the datagram is read stays unknown. */
static void join_reader(struct datagrams *datagrams, struct datagram *datagram,
			uint64_t socket)
{
	struct reader *reader = NULL;

	if (socket)
		reader = slots_pointer(&datagrams->readers, &socket) ?:
				 add_reader(datagrams, socket);
	datagram->reader = reader;
	if (reader)
		TAILQ_INSERT_TAIL(&reader->datagrams, datagram, of_reader);
}

static void leave_reader(struct datagrams *datagrams, struct datagram *datagram)
{
	struct reader *reader = datagram->reader;

	if (!reader)
		return;
	TAILQ_REMOVE(&reader->datagrams, datagram, of_reader);
	datagram->reader = NULL;
	if (!TAILQ_EMPTY(&reader->datagrams))
		return;
	slots_remove(&datagrams->readers, &reader->socket);
	free(reader);
}

/* ---- A datagram -------------------------------------------------------------------------- */

static struct datagram *begin_datagram(struct datagrams *datagrams,
				       const struct journey_event *event)
{
	struct datagram *datagram = calloc(1, sizeof(*datagram));

	if (!datagram)
		return NULL;
	datagram->direction = event->direction;
	datagram->number = ++event->direction->n_datagrams;
	datagram->ip_id = event->ip_id;
	datagrams->n++;
	LIST_INSERT_HEAD(&datagram->direction->datagrams, datagram, of_direction);
	TAILQ_INSERT_TAIL(&datagrams->states[datagram->state], datagram,
			  of_state);
	return datagram;
}

static void end_datagram(struct datagrams *datagrams, struct datagram *datagram,
			 struct journey_draft *draft)
{
	if (draft)
		deliver_datagram(datagram, draft);
	TAILQ_REMOVE(&datagrams->states[datagram->state], datagram, of_state);
	LIST_REMOVE(datagram, of_direction);
	leave_reader(datagrams, datagram);
	for (uint32_t i = 0; i < datagram->n_events; i++) {
		remove_keys(datagrams, datagram, datagram->events[i]);
		journey_event_free(datagram->events[i]);
	}
	free(datagram->events);
	free(datagram);
	datagrams->n--;
}

/* ---- Finding the datagram of an event --------------------------------------------------- */

/*
 * Fragments may be dropped long after the rest of their datagram was delivered. Hooks of the sender are in
 * front of the first interface, where fragments have no buffer of their own yet.
 */
static bool may_begin(const struct journey_event *event)
{
	if (journey_is_hook(event))
		return false;
	switch (event->step.point) {
	case NETOBS_TRACE_READY:
	case NETOBS_TRACE_BUSY:
		return false;
	case NETOBS_TRACE_DROP:
		return !event->is_fragment;
	default:
		return true;
	}
}

static struct datagram *find_by(const struct datagrams *datagrams,
				const struct journey_event *event,
				enum datagram_mark mark, uint64_t value)
{
	const struct datagram_key key = { event->direction, mark, value };
	struct datagram *datagram = slots_pointer(&datagrams->keys, &key);

	return datagram && may_pass(datagram, event) ? datagram : NULL;
}

/* The fragment header, which has the id, is gone once all fragments have been joined. */
static bool is_whole_again(const struct datagram *datagram,
			   const struct journey_event *event)
{
	return datagram->is_fragmented && !event->ip_id && !event->is_fragment &&
	       (event->step.point == NETOBS_TRACE_READY ||
		journey_is_hook(event));
}

/* The kernel segments datagrams into new buffers for a socket; one may be where another buffer was. */
static bool is_segment(const struct datagram *datagram,
		       const struct journey_event *event)
{
	return event->step.point == NETOBS_TRACE_READY &&
	       !datagram->is_fragmented && event->end != datagram->length;
}

/* A buffer gets another datagram once its first one is gone: the IP id tells them apart. */
static struct datagram *find_by_buffer(const struct datagrams *datagrams,
				       const struct journey_event *event)
{
	struct datagram *datagram =
		find_by(datagrams, event, DATAGRAM_BUFFER, event->buffer);

	if (!datagram || is_segment(datagram, event) ||
	    (datagram->ip_id != event->ip_id && !is_whole_again(datagram, event)))
		return NULL;
	return datagram;
}

/* Fragments that were joined are one datagram at a socket. */
static struct datagram *find_by_id(const struct datagrams *datagrams,
				   const struct journey_event *event)
{
	struct datagram *datagram;

	if (!event->ip_id)
		return NULL;
	datagram = find_by(datagrams, event, DATAGRAM_IP_ID, event->ip_id);
	return datagram && datagram->is_fragmented ? datagram : NULL;
}

static struct datagram *find_datagram(const struct datagrams *datagrams,
				      const struct journey_event *event)
{
	struct datagram *datagram = find_by_buffer(datagrams, event) ?:
					    find_by_id(datagrams, event);

	if (!datagram && is_echo(event))
		datagram = find_by(datagrams, event, DATAGRAM_ECHO, event->seq);
	return datagram;
}

/* ---- Events ------------------------------------------------------------------------------ */

static enum datagram_state state_after(const struct journey_event *event)
{
	switch (event->step.point) {
	case NETOBS_TRACE_QUEUE:
	case NETOBS_TRACE_ENQUEUE:
	case NETOBS_TRACE_BUSY:
		return DATAGRAM_QUEUED;
	case NETOBS_TRACE_READY:
		return DATAGRAM_READABLE;
	default:
		return DATAGRAM_MOVING;
	}
}

static void set_state(struct datagrams *datagrams, struct datagram *datagram,
		      enum datagram_state state)
{
	TAILQ_REMOVE(&datagrams->states[datagram->state], datagram, of_state);
	datagram->state = state;
	TAILQ_INSERT_TAIL(&datagrams->states[state], datagram, of_state);
}

/* The buffer of another datagram with this key has been freed. Without memory, the datagram is not found by it. */
static void set_key(struct datagrams *datagrams, struct datagram *datagram,
		    const struct datagram_key *key, struct journey_draft *draft)
{
	struct datagram *other = slots_pointer(&datagrams->keys, key);

	if (other && other != datagram && key->mark == DATAGRAM_BUFFER &&
	    !other->is_fragmented)
		end_datagram(datagrams, other, draft);
	slots_set_pointer(&datagrams->keys, key, sizeof(*key), datagram);
}

static void add_event(struct datagrams *datagrams, struct datagram *datagram,
		      struct journey_event *event, struct journey_draft *draft)
{
	const bool is_over = event->step.point == NETOBS_TRACE_DROP &&
			     !event->is_fragment && !datagram->is_fragmented;
	struct datagram_key keys[DATAGRAM_MARKS];

	if (append_event(datagram, event) < 0) {
		journey_event_free(event);
		return;
	}
	set_state(datagrams, datagram, state_after(event));
	for (uint32_t n = keys_of(event, keys); n--;)
		set_key(datagrams, datagram, &keys[n], draft);
	if (event->step.point == NETOBS_TRACE_READY)
		join_reader(datagrams, datagram, event->socket);
	if (is_over)
		end_datagram(datagrams, datagram, draft);
}

/* A copy was dropped; another copy is in a socket. */
static bool is_copy_left(const struct datagram *datagram,
			 const struct journey_event *event)
{
	return event->step.point == NETOBS_TRACE_DROP &&
	       datagram->state == DATAGRAM_READABLE &&
	       datagram->events[datagram->n_events - 1]->buffer != event->buffer;
}

/* Another socket gets a copy; the journey is that of the first copy. */
static bool is_second_copy(const struct datagram *datagram,
			   const struct journey_event *event)
{
	return event->step.point == NETOBS_TRACE_READY && datagram->reader;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static void read_datagram(struct datagrams *datagrams, struct datagram *datagram,
			  const struct journey_event *event,
			  struct journey_draft *draft)
{
	struct journey_event own = *event, *held = NULL;

	own.direction = datagram->direction;
	own.offset = 0;
	own.end = datagram->length;
	if (!datagram->is_read_unseen)
		held = journey_event_hold(&own);
	if (held && append_event(datagram, held) < 0)
		journey_event_free(held);
	end_datagram(datagrams, datagram, draft);
}

/* The datagram of the first buffer that is left in the queue is not read, nor are those behind it. */
static struct datagram *find_left(const struct reader *reader, uint64_t buffer)
{
	struct datagram *datagram;

	TAILQ_FOREACH(datagram, &reader->datagrams, of_reader)
		if (datagram->events[datagram->n_events - 1]->buffer == buffer)
			break;
	return datagram;
}

/* Process an event of reading; its buffer is the first one left in the queue. */
static void take_read(struct datagrams *datagrams,
		      const struct journey_event *event,
		      struct journey_draft *draft)
{
	struct reader *reader =
		slots_pointer(&datagrams->readers, &event->socket);
	struct datagram *datagram, *next, *left;

	if (!reader)
		return;
	left = event->buffer ? find_left(reader, event->buffer) : NULL;
	for (datagram = TAILQ_FIRST(&reader->datagrams);
	     datagram && datagram != left; datagram = next) {
		next = TAILQ_NEXT(datagram, of_reader);
		if (event->buffer && !left)
			datagram->is_read_unseen = true;
		else
			read_datagram(datagrams, datagram, event, draft);
	}
}

void datagrams_take(struct datagrams *datagrams, struct journey_event *event,
		    struct journey_draft *draft)
{
	struct datagram *datagram;

	if (event->step.point == NETOBS_TRACE_READ) {
		take_read(datagrams, event, draft);
		journey_event_free(event);
		return;
	}
	datagram = find_datagram(datagrams, event);
	if (!datagram && may_begin(event))
		datagram = begin_datagram(datagrams, event);
	if (datagram && !is_copy_left(datagram, event) &&
	    !is_second_copy(datagram, event))
		add_event(datagrams, datagram, event, draft);
	else
		journey_event_free(event);
}

/* ---- Ends -------------------------------------------------------------------------------- */

void datagrams_advance(struct datagrams *datagrams, int64_t now_ns,
		       struct journey_draft *draft)
{
	for (int state = 0; state < DATAGRAM_STATES; state++) {
		struct datagram *datagram;

		while ((datagram = TAILQ_FIRST(&datagrams->states[state])) &&
		       now_ns - datagram->last_ns > patience_ns[state])
			end_datagram(datagrams, datagram, draft);
	}
}

void datagrams_halve(struct datagrams *datagrams, struct journey_draft *draft)
{
	const uint32_t half = datagrams->n / 2;

	draft->is_early = true;
	for (int state = 0; state < DATAGRAM_STATES; state++)
		while (datagrams->n > half &&
		       !TAILQ_EMPTY(&datagrams->states[state]))
			end_datagram(datagrams,
				     TAILQ_FIRST(&datagrams->states[state]),
				     draft);
	draft->is_early = false;
}

void datagrams_end(struct datagrams *datagrams, struct direction *direction,
		   struct journey_draft *draft)
{
	while (!LIST_EMPTY(&direction->datagrams))
		end_datagram(datagrams, LIST_FIRST(&direction->datagrams), draft);
}

int datagrams_new(struct datagrams **ret_datagrams)
{
	struct datagrams *datagrams = calloc(1, sizeof(*datagrams));

	if (!datagrams)
		return -ENOMEM;
	for (int state = 0; state < DATAGRAM_STATES; state++)
		TAILQ_INIT(&datagrams->states[state]);
	*ret_datagrams = datagrams;
	return 0;
}

void datagrams_free(struct datagrams *datagrams)
{
	if (!datagrams)
		return;
	slots_free(&datagrams->keys);
	slots_free(&datagrams->readers);
	free(datagrams);
}
