// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Copies of bytes look alike, so order tells them apart: each begins at the first interface, and
 * the n-th one that passes a place is the n-th that has not been lost before. Where the buffer
 * stays the same from one place to the next, it is better evidence.
 */
#include "journey_state.h"

#include "base/util.h"

enum { ATTEMPTS_MAX = 255 };

struct attempt {
	const struct journey_event *first, *last;
	bool is_lost;
	bool has_retransmit;
};

struct search {
	struct journey_way *way;
	const struct journey_event *begin; /* the place where attempts begin */
	struct attempt attempts[ATTEMPTS_MAX];
	uint16_t n;
	uint16_t next; /* the attempt of a RETRANSMIT that came before it */
};

/* ---- Places ---------------------------------------------------------------------------- */

static bool is_hop(const struct journey_event *event)
{
	return event->step.point >= NETOBS_TRACE_QUEUE &&
	       event->step.point <= NETOBS_TRACE_RECEIVE;
}

static bool is_sending(const struct journey_event *event)
{
	return is_hop(event) && !journey_is_arrival(event);
}

static bool is_same_place(const struct journey_event *a,
			  const struct journey_event *b)
{
	if (a->step.point != b->step.point)
		return false;
	return a->step.point == NETOBS_TRACE_SEGMENT ||
	       journey_same_interface(a, b);
}

static const struct journey_event *find_point(const struct journey_way *way,
					      uint8_t point, uint32_t netns)
{
	for (uint32_t i = 0; i < way->n; i++)
		if (way->events[i]->step.point == point &&
		    (!netns || way->events[i]->step.netns_inode == netns))
			return way->events[i];
	return NULL;
}

static const struct journey_event *find_first_hop(const struct journey_way *way)
{
	for (uint32_t i = 0; i < way->n; i++)
		if (is_hop(way->events[i]))
			return way->events[i];
	return NULL;
}

static const struct journey_event *find_begin(const struct journey_way *way,
					      const struct journey_event *hop)
{
	const struct journey_event *begin = NULL;

	if (way->is_sender_here)
		begin = find_point(way, NETOBS_TRACE_QUEUE, way->sender_netns);
	if (!begin && way->is_sender_here)
		begin = find_point(way, NETOBS_TRACE_QUEUE, 0);
	if (!begin && way->is_sender_here)
		begin = find_point(way, NETOBS_TRACE_TRANSMIT, 0);
	return begin ?: hop;
}

/* @return whether @attempt passed the place of the event at @i. A driver that refuses a segment
 * has it pass two places again. */
static bool has_passed(const struct search *search, uint16_t attempt, uint32_t i)
{
	struct journey_event *const *events = search->way->events;
	const struct journey_event *event = events[i];
	const bool is_again = event->step.point == NETOBS_TRACE_DEQUEUE ||
			      event->step.point == NETOBS_TRACE_TRANSMIT;

	while (i--) {
		if (events[i]->attempt != attempt)
			continue;
		if (is_same_place(events[i], event))
			return true;
		if (is_again && events[i]->step.point == NETOBS_TRACE_BUSY &&
		    journey_same_interface(events[i], event))
			return false;
	}
	return false;
}

/* ---- Attempts of events ----------------------------------------------------------------- */

static void give_event(struct search *search, struct journey_event *event,
		       uint16_t attempt)
{
	event->attempt = attempt;
	search->attempts[attempt].last = event;
}

/* Attempts beyond the table are joined with the last one. */
static void begin_attempt(struct search *search, struct journey_event *event)
{
	if (search->n == ATTEMPTS_MAX)
		search->n--;
	search->attempts[search->n] = (struct attempt){
		.first = event,
		.has_retransmit = search->next == search->n && search->n,
	};
	give_event(search, event, search->n++);
}

/* Find the last attempt with this buffer, which is reused once an earlier attempt is gone. */
static bool match_buffer(const struct search *search,
			 const struct journey_event *event, uint32_t i,
			 uint16_t *ret_attempt)
{
	for (uint16_t a = search->n; event->buffer && a--;) {
		const struct attempt *attempt = &search->attempts[a];

		if (attempt->is_lost || attempt->last->buffer != event->buffer ||
		    has_passed(search, a, i))
			continue;
		*ret_attempt = a;
		return true;
	}
	return false;
}

/* The first attempt from @from on that may pass the place at @i; search->n: none. */
static uint16_t next_to_pass(const struct search *search, uint16_t from,
			     uint32_t i)
{
	while (from < search->n &&
	       (search->attempts[from].is_lost || has_passed(search, from, i)))
		from++;
	return from;
}

/* @return how many of the attempts that may pass the place at @i never do */
static int count_missing(const struct search *search, uint32_t i)
{
	const struct journey_way *way = search->way;
	const struct journey_event *event = way->events[i];
	int missing = 0;

	for (uint16_t a = 0; (a = next_to_pass(search, a, i)) < search->n; a++)
		missing++;
	for (; i < way->n; i++)
		missing += is_same_place(way->events[i], search->begin) -
			   is_same_place(way->events[i], event);
	return missing;
}

static bool was_transmitted(const struct search *search, uint16_t attempt)
{
	return attempt < search->n && search->attempts[attempt].last->step.point ==
					      NETOBS_TRACE_TRANSMIT;
}

/*
 * Find the attempt by order. Between a driver and the next interface, copies may vanish without a
 * trace: on a wire, or in a program. TCP sends again what was lost, so the missing ones are the first.
 */
static uint16_t match_order(struct search *search,
			    const struct journey_event *event, uint32_t i)
{
	uint16_t a = next_to_pass(search, 0, i);
	int missing = 0;

	if (journey_is_arrival(event) && was_transmitted(search, a))
		missing = count_missing(search, i);
	for (; missing > 0; missing--) {
		const uint16_t next = next_to_pass(search, a + 1, i);

		if (!was_transmitted(search, next))
			break;
		search->attempts[a].is_lost = true;
		a = next;
	}
	return a;
}

static uint16_t last_alive(const struct search *search)
{
	for (uint16_t a = search->n; a--;)
		if (!search->attempts[a].is_lost)
			return a;
	return search->n - 1;
}

static uint16_t match_busy(const struct search *search,
			   const struct journey_event *event)
{
	uint16_t found = last_alive(search);

	for (uint16_t a = 0; a < search->n; a++) {
		const struct journey_event *last = search->attempts[a].last;

		if (!was_transmitted(search, a) ||
		    !journey_same_interface(last, event))
			continue;
		found = a;
		if (event->buffer && last->buffer == event->buffer)
			break;
	}
	return found;
}

static void add_hop(struct search *search, struct journey_event *event, uint32_t i)
{
	uint16_t attempt = 0;

	if (!search->n) {
		search->way->n_attempts++;
		begin_attempt(search, event);
		return;
	}
	if (event->step.point == NETOBS_TRACE_BUSY)
		attempt = match_busy(search, event);
	else if (search->n > 1 && !match_buffer(search, event, i, &attempt))
		attempt = match_order(search, event, i);
	/* A redirection may send a packet past a place again. */
	if (attempt == search->n)
		attempt = last_alive(search);
	give_event(search, event, attempt);
}

static bool is_taken(const struct attempt *attempt)
{
	return attempt->last->step.point == NETOBS_TRACE_SEGMENT;
}

/* Find the attempt that a drop ends; search->n: one that has come to no interface. */
static uint16_t match_drop(const struct search *search,
			   const struct journey_event *event)
{
	uint16_t here = search->n, waiting = search->n;

	for (uint16_t a = search->n; a--;) {
		const struct attempt *attempt = &search->attempts[a];

		if (attempt->is_lost)
			continue;
		if (event->buffer && attempt->last->buffer == event->buffer)
			return a;
		if (event->step.ifindex &&
		    journey_same_interface(attempt->last, event))
			here = a;
		if (!is_taken(attempt))
			waiting = a;
	}
	if (here < search->n)
		return here;
	if (search->n && search->next == search->n)
		return search->n;
	if (waiting == search->n && search->n &&
	    is_taken(&search->attempts[search->n - 1]))
		return search->n - 1;
	return waiting;
}

static void add_drop(struct search *search, struct journey_event *event)
{
	const uint16_t attempt = match_drop(search, event);

	if (attempt < search->n)
		give_event(search, event, attempt);
	else
		begin_attempt(search, event);
	search->attempts[event->attempt].is_lost = true;
}

/* Kernels report a retransmission before or after its segment is sent. */
static void add_retransmit(struct search *search, struct journey_event *event)
{
	struct attempt *last = search->n ? &search->attempts[search->n - 1] :
					   NULL;

	if (search->n > 1 && !last->has_retransmit) {
		last->has_retransmit = true;
		event->attempt = search->n - 1;
		return;
	}
	search->next = search->n;
	event->attempt = search->next;
}

static bool is_beginning(const struct search *search,
			 const struct journey_event *event)
{
	const struct attempt *last =
		search->n ? &search->attempts[search->n - 1] : NULL;

	if (!search->begin || !is_same_place(event, search->begin))
		return false;
	/* A driver that refused the segment gets it again. */
	return event->step.point != NETOBS_TRACE_TRANSMIT || !last ||
	       last->last->step.point != NETOBS_TRACE_BUSY;
}

static void add_event(struct search *search, uint32_t i)
{
	struct journey_event *event = search->way->events[i];
	const uint8_t point = event->step.point;

	event->attempt = UINT16_MAX;
	if (point == NETOBS_TRACE_RETRANSMIT) {
		add_retransmit(search, event);
	} else if (point == NETOBS_TRACE_DROP) {
		add_drop(search, event);
	} else if (is_beginning(search, event)) {
		search->way->n_attempts++;
		begin_attempt(search, event);
	} else if (is_hop(event) || point == NETOBS_TRACE_SEGMENT) {
		add_hop(search, event, i);
	}
}

/* ---- The attempt that arrived ------------------------------------------------------------ */

static uint32_t first_of(const struct journey_way *way, uint8_t point)
{
	uint32_t i = 0;

	while (i < way->n && way->events[i]->step.point != point)
		i++;
	return i;
}

/* Find the segment that TCP took: it may drop others, for want of memory. */
static uint32_t find_segment(const struct search *search)
{
	const struct journey_way *way = search->way;
	const uint32_t first = first_of(way, NETOBS_TRACE_SEGMENT);
	const uint32_t until = (uint32_t)min_u64(way->ready, way->read);

	for (uint32_t i = first; i < until; i++)
		if (way->events[i]->step.point == NETOBS_TRACE_SEGMENT &&
		    !search->attempts[way->events[i]->attempt].is_lost)
			return i;
	return first < until ? first : way->n;
}

/* Find the last attempt that had arrived at an interface before @until, or had begun. */
static uint16_t last_before(const struct search *search, uint32_t until,
			    bool has_arrived)
{
	struct journey_event *const *events = search->way->events;

	for (uint32_t i = until; i--;) {
		const uint16_t a = events[i]->attempt;

		if (a < search->n && !search->attempts[a].is_lost &&
		    (has_arrived ? journey_is_arrival(events[i]) :
				   search->attempts[a].first == events[i]))
			return a;
	}
	return has_arrived ? last_before(search, until, false) :
			     last_alive(search);
}

static uint16_t find_arrived(const struct search *search)
{
	const struct journey_way *way = search->way;

	if (!search->n)
		return 0;
	if (way->segment < way->n)
		return way->events[way->segment]->attempt;
	if (way->is_receiver_here)
		return last_before(
			search, (uint32_t)min_u64(way->ready, way->read), true);
	return last_before(search, way->acked, false);
}

/* ---- Hooks of netfilter ------------------------------------------------------------------- */

/* The hook comes before an interface that sends, and not after one that has received. */
static bool is_leaving(const struct journey_event *event)
{
	return event->step.point >= NETOBS_TRACE_FORWARD;
}

static bool is_joined(const struct journey_way *way,
		      const struct journey_event *event)
{
	return !journey_is_hook(event) && event->attempt < way->n_begun;
}

/* @return the nearest event with the same buffer, before or after the one at @i; way->n: none */
static uint32_t find_buffer(const struct journey_way *way, uint32_t i,
			    bool is_behind)
{
	const uint64_t buffer = way->events[i]->buffer;
	const uint32_t step = is_behind ? 1 : UINT32_MAX;

	if (!buffer)
		return way->n;
	/* In front of the first one it wraps around. */
	for (i += step; i < way->n; i += step)
		if (way->events[i]->buffer == buffer &&
		    is_joined(way, way->events[i]))
			return i;
	return way->n;
}

static uint16_t find_attempt_of_hook(const struct journey_way *way, uint32_t i)
{
	const bool is_behind = is_leaving(way->events[i]);
	uint32_t found = find_buffer(way, i, is_behind);

	if (found == way->n)
		found = find_buffer(way, i, !is_behind);
	if (found < way->n)
		return way->events[found]->attempt;
	return way->n_begun == 1 ? 0 : UINT16_MAX;
}

/* Assign each event at a hook to its attempt, if that is known. */
static void join_hooks(const struct journey_way *way)
{
	for (uint32_t i = 0; i < way->n; i++)
		if (journey_is_hook(way->events[i]))
			way->events[i]->attempt = find_attempt_of_hook(way, i);
}

void journey_way_find(struct journey_way *way)
{
	const struct journey_event *hop = find_first_hop(way);
	struct search search = { .way = way, .next = UINT16_MAX };

	way->is_sender_here |= hop && is_sending(hop);
	way->n_attempts = 0;
	search.begin = find_begin(way, hop);
	for (uint32_t i = 0; i < way->n; i++)
		add_event(&search, i);
	way->ready = first_of(way, NETOBS_TRACE_READY);
	way->read = first_of(way, NETOBS_TRACE_READ);
	way->acked = first_of(way, NETOBS_TRACE_ACKED);
	way->segment = find_segment(&search);
	way->arrived = find_arrived(&search);
	way->n_begun = search.n;
	way->first_ns = search.n ? search.attempts[0].first->step.time_ns :
				   INT64_MAX;
	join_hooks(way);
}
