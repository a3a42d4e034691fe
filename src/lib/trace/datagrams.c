// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "datagrams.h"

#include "base/util.h"

/* Datagrams are delivered after so long without another event: few have any later. */
static const int64_t patience_ns[DATAGRAM_STATES] = {
	[DATAGRAM_MOVING] = NSEC_PER_SEC,
	[DATAGRAM_QUEUED] = 10LL * NSEC_PER_SEC,
	[DATAGRAM_READABLE] = 60LL * NSEC_PER_SEC,
};

struct datagram_list {
	struct datagram *first, *last;
};

struct datagrams {
	struct datagram_list states[DATAGRAM_STATES]; /* by time */
	struct datagram_keys keys;
	struct datagram_readers readers;
	uint32_t n;
};

/* ---- Lists ------------------------------------------------------------------------------- */

static void list_append(struct datagram_list *list, struct datagram *datagram)
{
	datagram->next = NULL;
	datagram->before = list->last;
	if (list->last)
		list->last->next = datagram;
	else
		list->first = datagram;
	list->last = datagram;
}

static void list_remove(struct datagram_list *list, struct datagram *datagram)
{
	if (datagram->before)
		datagram->before->next = datagram->next;
	else
		list->first = datagram->next;
	if (datagram->next)
		datagram->next->before = datagram->before;
	else
		list->last = datagram->before;
}

static void join_direction(struct datagram *datagram)
{
	struct direction *direction = datagram->direction;

	datagram->next_of = direction->datagrams;
	if (datagram->next_of)
		datagram->next_of->before_of = datagram;
	direction->datagrams = datagram;
}

static void leave_direction(struct datagram *datagram)
{
	if (datagram->before_of)
		datagram->before_of->next_of = datagram->next_of;
	else
		datagram->direction->datagrams = datagram->next_of;
	if (datagram->next_of)
		datagram->next_of->before_of = datagram->before_of;
}

/* ---- A datagram -------------------------------------------------------------------------- */

static void free_event(struct journey_event *event)
{
	--*event->direction->n_held_by_all;
	free(event);
}

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
	join_direction(datagram);
	list_append(&datagrams->states[datagram->state], datagram);
	return datagram;
}

static void end_datagram(struct datagrams *datagrams, struct datagram *datagram,
			 struct journey_draft *draft)
{
	if (draft)
		datagram_deliver(datagram, draft);
	list_remove(&datagrams->states[datagram->state], datagram);
	leave_direction(datagram);
	datagram_keys_remove(&datagrams->keys, datagram);
	datagram_readers_remove(&datagrams->readers, datagram);
	*datagram->direction->n_held_by_all -= datagram->n_events;
	datagram_clear(datagram);
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

static bool is_echo(const struct journey_event *event)
{
	return event->protocol == IPPROTO_ICMP ||
	       event->protocol == IPPROTO_ICMPV6;
}

static struct datagram *find_by(const struct datagrams *datagrams,
				const struct journey_event *event,
				enum datagram_mark mark, uint64_t value)
{
	struct datagram *datagram = datagram_keys_find(
		&datagrams->keys, event->direction, mark, value);

	return datagram && datagram_may_pass(datagram, event) ? datagram : NULL;
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
	       !datagram->is_fragmented &&
	       event->end != datagram_length(datagram);
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
	struct datagram *datagram = NULL;

	if (event->buffer)
		datagram = find_by_buffer(datagrams, event);
	if (!datagram)
		datagram = find_by_id(datagrams, event);
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
	list_remove(&datagrams->states[datagram->state], datagram);
	datagram->state = (uint8_t)state;
	list_append(&datagrams->states[state], datagram);
}

/* Another datagram with this key has been freed in the meantime. */
static void set_key(struct datagrams *datagrams, struct datagram *datagram,
		    enum datagram_mark mark, uint64_t value,
		    struct journey_draft *draft)
{
	struct datagram *other = datagram_keys_find(
		&datagrams->keys, datagram->direction, mark, value);

	if (other == datagram)
		return;
	if (other && mark == DATAGRAM_BUFFER && !other->is_fragmented)
		end_datagram(datagrams, other, draft);
	datagram_keys_set(&datagrams->keys, datagram, mark, value);
}

static void set_keys(struct datagrams *datagrams, struct datagram *datagram,
		     const struct journey_event *event,
		     struct journey_draft *draft)
{
	if (event->buffer)
		set_key(datagrams, datagram, DATAGRAM_BUFFER, event->buffer,
			draft);
	if (event->is_fragment && event->ip_id)
		set_key(datagrams, datagram, DATAGRAM_IP_ID, event->ip_id, draft);
	if (is_echo(event) && !event->is_fragment)
		set_key(datagrams, datagram, DATAGRAM_ECHO, event->seq, draft);
}

static void add_event(struct datagrams *datagrams, struct datagram *datagram,
		      struct journey_event *event, struct journey_draft *draft)
{
	const bool is_over = event->step.point == NETOBS_TRACE_DROP &&
			     !event->is_fragment && !datagram->is_fragmented;

	if (datagram_add(datagram, event) < 0) {
		free_event(event);
		return;
	}
	set_state(datagrams, datagram, state_after(event));
	set_keys(datagrams, datagram, event, draft);
	if (event->step.point == NETOBS_TRACE_READY)
		datagram_readers_push(&datagrams->readers, datagram,
				      event->socket);
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
	return event->step.point == NETOBS_TRACE_READY && datagram->socket;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static void read_datagram(struct datagrams *datagrams, struct datagram *datagram,
			  const struct journey_event *event,
			  struct journey_draft *draft)
{
	struct journey_event *own = NULL;

	if (!datagram->is_read_unseen)
		own = malloc(sizeof(*own));
	if (own) {
		*own = *event;
		own->direction = datagram->direction;
		own->offset = 0;
		own->end = datagram_length(datagram);
		if (datagram_add(datagram, own) < 0)
			free(own);
		else
			++*datagram->direction->n_held_by_all;
	}
	end_datagram(datagrams, datagram, draft);
}

/* Process an event of reading; its buffer is the first one left in the queue. */
static void take_read(struct datagrams *datagrams,
		      const struct journey_event *event,
		      struct journey_draft *draft)
{
	const struct datagram *left =
		event->buffer ?
			datagram_readers_find(&datagrams->readers,
					      event->socket, event->buffer) :
			NULL;
	struct datagram *datagram;

	if (event->buffer && !left) {
		datagram_readers_obscure(&datagrams->readers, event->socket);
		return;
	}
	while ((datagram = datagram_readers_first(&datagrams->readers,
						  event->socket)) &&
	       datagram != left)
		read_datagram(datagrams, datagram, event, draft);
}

void datagrams_take(struct datagrams *datagrams, struct journey_event *event,
		    struct journey_draft *draft)
{
	struct datagram *datagram;

	event->direction->n_held--;
	if (event->step.point == NETOBS_TRACE_READ) {
		take_read(datagrams, event, draft);
		free_event(event);
		return;
	}
	datagram = find_datagram(datagrams, event);
	if (!datagram && may_begin(event))
		datagram = begin_datagram(datagrams, event);
	if (datagram && !is_copy_left(datagram, event) &&
	    !is_second_copy(datagram, event))
		add_event(datagrams, datagram, event, draft);
	else
		free_event(event);
}

/* ---- Ends -------------------------------------------------------------------------------- */

void datagrams_advance(struct datagrams *datagrams, int64_t now_ns,
		       struct journey_draft *draft)
{
	for (int state = 0; state < DATAGRAM_STATES; state++) {
		struct datagram *datagram;

		while ((datagram = datagrams->states[state].first) &&
		       now_ns - datagram->last_ns > patience_ns[state])
			end_datagram(datagrams, datagram, draft);
	}
}

void datagrams_halve(struct datagrams *datagrams, struct journey_draft *draft)
{
	const uint32_t half = datagrams->n / 2;

	draft->is_early = true;
	for (int state = 0; state < DATAGRAM_STATES; state++)
		while (datagrams->n > half && datagrams->states[state].first)
			end_datagram(datagrams, datagrams->states[state].first,
				     draft);
	draft->is_early = false;
}

void datagrams_end(struct datagrams *datagrams, struct direction *direction,
		   struct journey_draft *draft)
{
	while (direction->datagrams)
		end_datagram(datagrams, direction->datagrams, draft);
}

int datagrams_new(struct datagrams **ret_datagrams)
{
	*ret_datagrams = calloc(1, sizeof(**ret_datagrams));
	return *ret_datagrams ? 0 : -ENOMEM;
}

void datagrams_free(struct datagrams *datagrams)
{
	if (!datagrams)
		return;
	datagram_keys_free(&datagrams->keys);
	datagram_readers_free(&datagrams->readers);
	free(datagrams);
}
