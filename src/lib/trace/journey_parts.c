// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Points are places on a line, and a part is the way from one place to the next. Two consecutive steps
 * that are one part apart give the time of this part; if they are more parts apart, points between them were
 * not seen, and their time belongs to no known part.
 */
#include "journey_state.h"

#include "base/util.h"

enum place {
	CALLED,
	WRITTEN,
	QUEUED,
	TRANSMITTED,
	ARRIVED,
	PROCESSED,
	READABLE,
	TAKEN,
	BEYOND, /* acknowledged by a host elsewhere */
	NOWHERE /* unrelated to where the bytes are */
};

#define BIT(part) (1U << NETOBS_JOURNEY_##part)

static const uint32_t part_after[TAKEN] = {
	[CALLED] = BIT(WRITE),	  [WRITTEN] = BIT(TCP),
	[QUEUED] = BIT(QDISC),	  [TRANSMITTED] = BIT(DEVICE),
	[ARRIVED] = BIT(STACK),	  [PROCESSED] = BIT(GAP),
	[READABLE] = BIT(READER),
};

/* Parts that datagrams do not have. */
#define ONLY_STREAMS (BIT(WRITE) | BIT(TCP) | BIT(RECOVERY) | BIT(GAP))

struct sum {
	const struct journey_route *route;
	struct netobs_journey *journey;
	enum place place; /* of the last step on the way */
	const struct journey_event *last;
	uint32_t possible; /* parts */
};

static enum place place_of(const struct journey_event *event)
{
	static const uint8_t places[NETOBS_TRACE_POINTS] = {
		[NETOBS_TRACE_SEND] = CALLED,
		[NETOBS_TRACE_SENT] = WRITTEN,
		[NETOBS_TRACE_RETRANSMIT] = NOWHERE,
		[NETOBS_TRACE_QUEUE] = QUEUED,
		[NETOBS_TRACE_ENQUEUE] = QUEUED,
		[NETOBS_TRACE_DEQUEUE] = QUEUED,
		[NETOBS_TRACE_TRANSMIT] = TRANSMITTED,
		[NETOBS_TRACE_BUSY] = QUEUED,
		[NETOBS_TRACE_ARRIVE] = ARRIVED,
		[NETOBS_TRACE_RECEIVE] = ARRIVED,
		[NETOBS_TRACE_SEGMENT] = PROCESSED,
		[NETOBS_TRACE_READY] = READABLE,
		[NETOBS_TRACE_READ] = TAKEN,
		[NETOBS_TRACE_ACKED] = BEYOND,
		[NETOBS_TRACE_DROP] = NOWHERE,
		[NETOBS_TRACE_PREROUTING... NETOBS_TRACE_POSTROUTING_END] =
			NOWHERE,
	};

	return (enum place)places[event->step.point];
}

/* ---- Which parts are between two places -------------------------------------------------- */

static uint32_t parts_between(enum place from, enum place to)
{
	uint32_t parts = 0;

	if (to == BEYOND)
		return (from < TRANSMITTED ? parts_between(from, TRANSMITTED) :
					     0) |
		       BIT(NETWORK);
	for (uint32_t place = from; place < min_u64(to, TAKEN); place++)
		parts |= part_after[place];
	return parts;
}

/* @return the parts between a sending interface and the next one, or the same one */
static uint32_t parts_while_sending(const struct sum *sum,
				    const struct journey_event *event,
				    enum place to)
{
	if (journey_same_interface(sum->last, event))
		return BIT(QDISC);
	return (sum->place == TRANSMITTED ? 0 : BIT(QDISC)) | BIT(DEVICE) |
	       (to == TRANSMITTED ? BIT(QDISC) : 0);
}

/* @return whether the bytes are sent on after the arrival at @i */
static bool is_forwarded(const struct journey_route *route, uint32_t i)
{
	for (i++; i < route->n; i++) {
		const enum place place = place_of(route->stops[i].event);

		if (!route->stops[i].attempt && place != ARRIVED &&
		    place != NOWHERE)
			return place == QUEUED || place == TRANSMITTED;
	}
	return !route->way->is_receiver_here;
}

static uint32_t parts_until(const struct sum *sum, uint32_t i, enum place to)
{
	const struct journey_event *event = sum->route->stops[i].event;
	const bool is_sending = to == QUEUED || to == TRANSMITTED;

	if (sum->place == CALLED || sum->place == WRITTEN) {
		if (to == WRITTEN)
			return event->step.point == NETOBS_TRACE_SEND ?
				       BIT(WRITE) :
				       BIT(TCP);
		return parts_between(WRITTEN, to);
	}
	if ((sum->place == QUEUED || sum->place == TRANSMITTED) && is_sending)
		return parts_while_sending(sum, event, to);
	if (sum->place == ARRIVED && is_sending)
		return BIT(FORWARD) | (to == TRANSMITTED ? BIT(QDISC) : 0);
	if (sum->place == ARRIVED && to == ARRIVED)
		return is_forwarded(sum->route, i) ? BIT(FORWARD) : BIT(STACK);
	if (sum->place == ARRIVED && to == BEYOND)
		return BIT(FORWARD) | parts_between(QUEUED, BEYOND);
	return parts_between(sum->place, to);
}

/* ---- Sums -------------------------------------------------------------------------------- */

static void add_time(struct sum *sum, uint32_t parts, int64_t ns)
{
	parts &= sum->possible;
	if (ns <= 0 && !parts)
		return;
	if (parts && !(parts & (parts - 1))) {
		sum->journey->part_ns[__builtin_ctz(parts)] += (uint64_t)ns;
		return;
	}
	sum->journey->unknown_parts |= parts;
	sum->journey->unknown_ns += (uint64_t)ns;
}

/* The attempt that is sent first is not always the one that arrives. */
static void add_step(struct sum *sum, uint32_t i, enum place to)
{
	const struct journey_event *event = sum->route->stops[i].event;
	const uint32_t parts = parts_until(sum, i, to);
	const int64_t to_ns = event->step.time_ns;
	int64_t from_ns = sum->last->step.time_ns;

	if (sum->place <= WRITTEN && (to == QUEUED || to == TRANSMITTED)) {
		const int64_t first_ns = max_i64(
			from_ns, min_i64(sum->route->way->first_ns, to_ns));

		add_time(sum, BIT(RECOVERY), to_ns - first_ns);
		add_time(sum, parts, first_ns - from_ns);
		return;
	}
	add_time(sum, parts, to_ns - from_ns);
}

/* Add the parts that were not seen before @first, from the place where the journey should begin. */
static void add_beginning(struct sum *sum, const struct journey_event *first,
			  enum place place)
{
	const enum place begin = sum->route->way->is_sender_here ? CALLED :
								   ARRIVED;
	const int64_t start_ns = sum->route->stops[0].event->step.time_ns;

	if (place > begin)
		sum->journey->unknown_parts |= parts_between(begin, place);
	if (begin == CALLED && place >= ARRIVED)
		sum->journey->unknown_parts |= BIT(RECOVERY);
	/* Attempts before this one. */
	add_time(sum, BIT(RECOVERY), first->step.time_ns - start_ns);
}

/* @return the part in which the datagram was dropped */
static uint32_t dropping_part(enum place place)
{
	switch (place) {
	case QUEUED:
		return BIT(QDISC);
	case TRANSMITTED:
		return BIT(DEVICE);
	case READABLE:
		return BIT(READER);
	default:
		return 0;
	}
}

/* All interfaces are seen, so a datagram that has arrived and does not leave is for a socket. */
static void add_datagram_end(struct sum *sum, enum place place)
{
	const struct journey_event *last =
		sum->route->stops[sum->route->n - 1].event;

	add_time(sum,
		 last->step.point == NETOBS_TRACE_DROP ? dropping_part(place) : 0,
		 last->step.time_ns - sum->last->step.time_ns);
	if (last->step.point == NETOBS_TRACE_DROP)
		return;
	if (place < ARRIVED)
		sum->journey->unknown_parts |= parts_between(place, BEYOND);
	else if (place < TAKEN)
		sum->journey->unknown_parts |= parts_between(place, TAKEN);
}

static void add_end(struct sum *sum, enum place place)
{
	const struct journey_route *route = sum->route;
	uint32_t parts = 0;

	if (route->way->is_receiver_here)
		parts = place < TAKEN ? parts_between(place, TAKEN) : 0;
	else if (place == ARRIVED)
		parts = BIT(FORWARD) | BIT(QDISC) |
			(route->way->is_sender_here ? BIT(NETWORK) : 0);
	else if (place < BEYOND && route->way->is_sender_here)
		parts = parts_between(place, BEYOND);
	else if (place < TRANSMITTED)
		parts = parts_between(place, TRANSMITTED);
	sum->journey->unknown_parts |= parts;
}

/* A part with unknown time is unknown as a whole. */
static void drop_incomplete(struct netobs_journey *journey)
{
	for (unsigned int part = 0; part < NETOBS_JOURNEY_PARTS; part++) {
		if (!(journey->unknown_parts & 1U << part))
			continue;
		journey->unknown_ns += journey->part_ns[part];
		journey->part_ns[part] = 0;
	}
}

static void add_nothing(struct sum *sum)
{
	const struct journey_route *route = sum->route;

	if (route->way->is_sender_here)
		sum->journey->unknown_parts |= BIT(RECOVERY);
	add_end(sum, route->way->is_sender_here ? CALLED : ARRIVED);
	if (route->n)
		sum->journey->unknown_ns =
			(uint64_t)(route->stops[route->n - 1].event->step.time_ns -
				   route->stops[0].event->step.time_ns);
}

/* ---- Hooks of netfilter ------------------------------------------------------------------- */

static bool begins_hook(const struct journey_event *event)
{
	return journey_is_hook(event) &&
	       !((event->step.point - NETOBS_TRACE_PREROUTING) % 2);
}

/* A rule may drop the packet at the hook. */
static bool ends_hook(const struct journey_event *begin,
		      const struct journey_event *event)
{
	return event->step.netns_inode == begin->step.netns_inode &&
	       (event->step.point == begin->step.point + 1 ||
		event->step.point == NETOBS_TRACE_DROP);
}

static const struct journey_event *
find_hook_end(const struct journey_route *route, uint32_t i)
{
	const struct journey_event *begin = route->stops[i].event;

	for (i++; i < route->n; i++)
		if (!route->stops[i].attempt &&
		    ends_hook(begin, route->stops[i].event))
			return route->stops[i].event;
	return NULL;
}

static void fill_netfilter(const struct journey_route *route,
			   struct netobs_journey *journey)
{
	for (uint32_t i = 0; i < route->n; i++) {
		const struct journey_event *begin = route->stops[i].event, *end;

		if (route->stops[i].attempt || !begins_hook(begin))
			continue;
		end = find_hook_end(route, i);
		if (!end)
			continue;
		journey->netfilter_ns +=
			(uint64_t)(end->step.time_ns - begin->step.time_ns);
		journey->record.has |= NETOBS_JOURNEY_HAS_NETFILTER;
	}
}

/* ---- All ----------------------------------------------------------------------------------- */

void journey_parts_fill(const struct journey_route *route,
			struct netobs_journey *journey)
{
	struct sum sum = {
		.route = route,
		.journey = journey,
		.possible = route->way->is_datagram ? ~(uint32_t)ONLY_STREAMS :
						      UINT32_MAX,
	};

	for (uint32_t i = 0; i < route->n; i++) {
		const struct journey_event *event = route->stops[i].event;
		enum place place = place_of(event);

		if (route->stops[i].attempt || place == NOWHERE)
			continue;
		if (sum.last && place == CALLED)
			place = WRITTEN;
		if (sum.last)
			add_step(&sum, i, place);
		else
			add_beginning(&sum, event, place);
		sum.last = event;
		sum.place = place;
	}
	if (route->way->is_datagram) {
		if (sum.last) /* else it is a drop alone */
			add_datagram_end(&sum, sum.place);
	} else if (!sum.last) {
		add_nothing(&sum);
	} else {
		add_end(&sum, sum.place == CALLED ? WRITTEN : sum.place);
		add_time(&sum, 0,
			 route->stops[route->n - 1].event->step.time_ns -
				 sum.last->step.time_ns);
	}
	journey->unknown_parts &= sum.possible;
	drop_incomplete(journey);
	fill_netfilter(route, journey);
}
