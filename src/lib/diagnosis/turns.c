// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Turns: a request with its answer, until the client writes again; handshakes; and slices of streams. */
#include "diagnosis_state.h"

#include <errno.h>
#include <netinet/in.h>

/* Turns that began so little before the window are of it: what happens to them is in it. */
#define EDGE_NS (40 * NSEC_PER_MSEC)
/* Older ones are of it, if they reach so far into it. */
#define REACH_NS (100 * NSEC_PER_MSEC)

struct turn *turns_add(struct account *account, int64_t begin_ns,
		       int64_t end_ns, uint32_t weight)
{
	const struct talk *talk = account->talk;
	struct turn *turn;

	if (!array_reserve(&account->turns, account->n, &account->capacity,
			   sizeof(*turn), 64))
		return NULL;
	turn = &account->turns[account->n++];
	*turn = (struct turn){
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.weight = weight ?: 1,
		.is_now = begin_ns >= talk->since_ns - EDGE_NS ||
			  end_ns > talk->since_ns + REACH_NS,
	};
	if (turn->weight > 1)
		account->missing |= NETOBS_MISSING_RECORDS;
	return turn;
}

/* @return the end of what one host saw of a message, by the client's clock */
static int64_t seen_until(const struct talk *talk, const struct message *message)
{
	int64_t ns = message->time_ns;

	if (message->s)
		ns = max_i64(ns, clocks_local(talk, message->from,
					      message->s->end_ns));
	if (message->r)
		ns = max_i64(ns, clocks_local(talk, !message->from,
					      message->r->end_ns));
	return ns;
}

static bool is_outside(const struct talk *talk, int64_t begin_ns, int64_t end_ns)
{
	return begin_ns >= talk->until_ns || end_ns < talk->before_ns;
}

static bool lacks(const struct talk *talk, const struct message *message)
{
	return (talk_hears(talk, message->from) && !message->s) ||
	       (talk_hears(talk, !message->from) && !message->r);
}

/* With a record that another one makes certain, the time cannot be divided. */
static bool is_incomplete(const struct talk *talk, const struct message *request,
			  const struct message *answer)
{
	/* A drop tells enough. */
	if (!answer && request->r && account_dropped(request->r) &&
	    !request->r->ready_ns)
		return false;
	if (talk_hears(talk, CLIENT) && !request->s)
		return true;
	if (!answer)
		return false;
	/* All records are there, but that of its arrival: it is lost. */
	if (answer->s && answer->s->one_of == 1 && !answer->r)
		return lacks(talk, request);
	return lacks(talk, request) || lacks(talk, answer);
}

/* What the client sends next. */
struct next {
	int64_t ns;    /* INT64_MAX: nothing */
	bool is_other; /* on another connection */
};

static int64_t end_of_turn(const struct talk *talk, const struct message *request,
			   const struct message *answer, struct next next)
{
	const struct netobs_turn *r = answer ? answer->r : NULL;
	const bool has_ended = request->s && !answer &&
			       request->s->protocol == IPPROTO_TCP &&
			       request->s->record.has & NETOBS_TURN_HAS_END &&
			       request->r && request->r->answer_ns;
	int64_t end_ns = next.ns;

	if (r && r->answer_ns)
		end_ns = r->answer_ns;
	else if (r && r->read_ns)
		end_ns = next.is_other ? next.ns : r->read_ns;
	else if (r && class_of_drop(r) == DROP_CLASS_NO_SOCKET)
		/* The process has closed the socket: it has given up. */
		end_ns = r->record.time_ns;
	else if (answer && !talk_hears(talk, CLIENT) && answer->s->acked_ns)
		/* What the client does then is not known: some of its turns have no records. */
		end_ns = clocks_local(talk, SERVER, answer->s->acked_ns);
	else if (has_ended)
		end_ns = seen_until(talk, request);
	return min_i64(end_ns, talk->until_ns);
}

static int make_turn(struct account *account, const struct message *request,
		     const struct message *answer, struct next next)
{
	const struct talk *talk = account->talk;
	const int64_t begin_ns = request->time_ns;
	const int64_t end_ns = end_of_turn(talk, request, answer, next);
	const struct netobs_turn *record = request->s ?: request->r;
	struct turn *turn;

	if (is_outside(talk, begin_ns, end_ns) || end_ns <= begin_ns)
		return 0;
	if (is_incomplete(talk, request, answer)) {
		account->missing |= NETOBS_MISSING_RECORDS;
		return 0;
	}
	turn = turns_add(account, begin_ns, end_ns, record->one_of);
	if (!turn)
		return -ENOMEM;
	account->n_last += turn->is_now && answer && answer->r &&
			   !answer->r->answer_ns && !next.is_other;
	chain_divide(account, turn, request, answer);
	return 0;
}

static int make_connect(struct account *account, const struct message *connect)
{
	const struct talk *talk = account->talk;
	const struct netobs_turn *s = connect->s;
	const int64_t begin_ns = connect->time_ns;
	const int64_t end_ns =
		min_i64(s && s->in_ns				 ? s->in_ns :
			s && s->record.has & NETOBS_TURN_HAS_END ? s->end_ns :
								   INT64_MAX,
			talk->until_ns);
	struct turn *turn;

	if (!s || is_outside(talk, begin_ns, end_ns) || end_ns <= begin_ns)
		return 0;
	turn = turns_add(account, begin_ns, end_ns, 1);
	if (!turn)
		return -ENOMEM;
	chain_connect(account, turn, connect);
	return 0;
}

/* ---- Which messages ------------------------------------------------------------------------------ */

static bool has_turns(const struct message *message)
{
	const struct netobs_turn *turn = message->s ?: message->r;

	return turn->kind == NETOBS_TURN_MESSAGE &&
	       !(turn->record.has & NETOBS_TURN_HAS_OVERLAP);
}

/* Find what follows a request on its connection. @return when the next request begins; INT64_MAX: never */
static int64_t find_answer(const struct talk *talk, uint32_t i,
			   const struct message **ret_answer)
{
	const struct message *request = &talk->messages[i];

	*ret_answer = NULL;
	for (i++; i < talk->n && message_is_of_tuple(&talk->messages[i], request);
	     i++) {
		const struct message *message = &talk->messages[i];

		if (!has_turns(message))
			continue;
		if (message->from == CLIENT)
			return message->time_ns;
		if (!*ret_answer)
			*ret_answer = message;
	}
	return INT64_MAX;
}

static int compare_ns(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* @ret_times: when the client wrote requests, in order: yours. @return their number; -ENOMEM */
static int64_t list_requests(const struct talk *talk, int64_t **ret_times)
{
	int64_t *times = malloc((talk->n + 1) * sizeof(*times)), n = 0;

	if (!times)
		return -ENOMEM;
	for (uint32_t i = 0; i < talk->n; i++)
		if (talk->messages[i].from == CLIENT)
			times[n++] = talk->messages[i].time_ns;
	qsort(times, (size_t)n, sizeof(*times), compare_ns);
	*ret_times = times;
	return n;
}

/* @return the first of @times after @at_ns; INT64_MAX: there is none */
static int64_t first_after(const int64_t *times, int64_t n, int64_t at_ns)
{
	int64_t low = 0, high = n;

	while (low < high) {
		const int64_t middle = (low + high) / 2;

		if (times[middle] <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n ? times[low] : INT64_MAX;
}

/*
 * Where nobody answers a datagram, the next request of the client ends its turn: the client has given up. Where a
 * connection ends with an answer, the client thinks until it sends on another one, if all of them have records.
 */
static struct next find_next(const struct message *request,
			     const struct message *answer, const int64_t *times,
			     int64_t n)
{
	const struct netobs_turn *r = answer ? answer->r : NULL;
	struct next next = { INT64_MAX, false };

	if (request->tuple.protocol != IPPROTO_TCP)
		next.ns = first_after(times, n, request->time_ns);
	else if (r && r->read_ns && !r->answer_ns && r->one_of <= 1 &&
		 request->s && request->s->one_of <= 1)
		next.ns = first_after(times, n, r->read_ns);
	next.is_other = next.ns < INT64_MAX &&
			request->tuple.protocol == IPPROTO_TCP;
	return next;
}

static int make_request(struct account *account, uint32_t i,
			const int64_t *times, int64_t n_times)
{
	const struct message *request = &account->talk->messages[i], *answer;
	struct next next = { find_answer(account->talk, i, &answer), false };

	if (next.ns == INT64_MAX)
		next = find_next(request, answer, times, n_times);
	return make_turn(account, request, answer, next);
}

int turns_make(struct account *account)
{
	const struct talk *talk = account->talk;
	cleanup_free int64_t *times = NULL;
	const int64_t n = list_requests(talk, &times);
	int ret = n < 0 ? (int)n : 0;

	for (uint32_t i = 0; !ret && i < talk->n; i++) {
		const struct message *message = &talk->messages[i];
		const struct netobs_turn *turn = message->s ?: message->r;

		if (message->from == CLIENT && turn->kind == NETOBS_TURN_CONNECT)
			ret = make_connect(account, message);
		else if (message->from == CLIENT && has_turns(message))
			ret = make_request(account, i, times, n);
	}
	return ret;
}

/* ---- Streams ---------------------------------------------------------------------------------------- */

/* Slices of a connection that are looked at for the receiver's, which is near in time. */
enum { NEAR = 64 };

static int64_t time_in_common(const struct talk *talk,
			      const struct message *slice,
			      const struct message *other)
{
	return min_i64(clocks_local(talk, !slice->from, other->r->end_ns),
		       clocks_local(talk, slice->from, slice->s->end_ns)) -
	       max_i64(other->time_ns, slice->time_ns);
}

/* @return the receiver's slice with most of the time of a sender's in common; NULL: none */
static const struct netobs_turn *find_other(const struct account *account,
					    uint32_t i)
{
	const struct talk *talk = account->talk;
	const struct message *slice = &talk->messages[i];
	const struct netobs_turn *best = NULL;
	int64_t most = 0;

	for (uint32_t k = i > NEAR ? i - NEAR : 0; k < talk->n && k < i + NEAR;
	     k++) {
		const struct message *other = &talk->messages[k];
		int64_t common;

		if (!other->r ||
		    (other->r->kind != NETOBS_TURN_SLICE && !account->is_ways) ||
		    other->from != slice->from ||
		    !message_is_of_tuple(other, slice))
			continue;
		common = time_in_common(talk, slice, other);
		best = common > most ? other->r : best;
		most = max_i64(common, most);
	}
	return best;
}

static int make_slice(struct account *account, uint32_t i)
{
	const struct talk *talk = account->talk;
	const struct message *slice = &talk->messages[i];
	const struct netobs_turn *s = slice->s, *r = find_other(account, i);
	const int64_t end_ns = clocks_local(talk, slice->from, s->end_ns);
	const int64_t begin_ns = slice->time_ns;
	struct turn *turn;

	if (is_outside(talk, begin_ns, end_ns) || end_ns <= begin_ns)
		return 0;
	turn = turns_add(account, begin_ns, end_ns, s->one_of);
	if (!turn)
		return -ENOMEM;
	/* A slice is of the window if most of it is. */
	turn->is_now = begin_ns + (end_ns - begin_ns) / 2 >= talk->since_ns;
	account->bytes[turn->is_now] += s->bytes;
	if (!account->first_ns || begin_ns < account->first_ns)
		account->first_ns = begin_ns;
	account_limits(account, turn, slice->from, s, r, end_ns - begin_ns);
	return 0;
}

/* Bytes that left and arrived are compared over all slices, as those in flight at their edges look lost. */
static void sum_streams(struct account *account)
{
	const struct talk *talk = account->talk;

	for (uint32_t i = 0; i < talk->n; i++) {
		const struct message *message = &talk->messages[i];
		const struct netobs_turn *s = message->s, *r = message->r;
		struct stream_sums *sums = &account->streams[message->from];
		const bool is_now = message->time_ns >= talk->since_ns &&
				    message->time_ns < talk->until_ns;

		if (s && s->kind == NETOBS_TURN_SLICE) {
			sums->out += s->out_bytes;
			sums->out_now += is_now ? s->out_bytes : 0;
			sums->again += s->sent_bytes -
				       min_u64(s->sent_bytes, s->bytes);
		}
		if (r && r->kind == NETOBS_TURN_SLICE) {
			sums->in += r->in_bytes;
			sums->in_now += is_now ? r->in_bytes : 0;
		}
	}
}

int streams_make(struct account *account)
{
	const struct talk *talk = account->talk;
	int ret = 0;

	sum_streams(account);
	for (uint32_t i = 0; !ret && i < talk->n; i++) {
		const struct netobs_turn *s = talk->messages[i].s;

		if (s && s->kind == NETOBS_TURN_SLICE)
			ret = make_slice(account, i);
	}
	return ret;
}

/* ---- Many messages at once ---------------------------------------------------------------------------- */

/* @return the part of a journey, if it was observed */
static int64_t part_of(const struct netobs_turn *slice, int part)
{
	return slice->unknown_parts & 1U << part ? 0 :
						   (int64_t)slice->part_ns[part];
}

/* What TCP waits for, but for its process, which writes one message after the other. */
static void divide_limits(struct account *account, struct turn *turn,
			  uint8_t sender, const struct netobs_turn *s,
			  const struct netobs_turn *r)
{
	struct netobs_turn busy = *s;
	int64_t ns = 0;

	busy.limit_ns[NETOBS_TURN_IDLE] = 0;
	for (int limit = 0; limit < NETOBS_TURN_LIMITS; limit++)
		ns += (int64_t)min_u64(busy.limit_ns[limit], 60 * NSEC_PER_SEC);
	account_limits(account, turn, sender, &busy, r, ns);
}

static void divide_sent(struct account *account, struct turn *turn,
			uint8_t sender, const struct netobs_turn *s,
			const struct netobs_turn *r)
{
	if (s->kind == NETOBS_TURN_MESSAGE)
		divide_limits(account, turn, sender, s, r);
	else if (turn->is_now && !(s->record.has & NETOBS_TURN_HAS_LIMITS))
		account->unlimited_ns += s->end_ns - s->record.time_ns;
	/* What arrived twice, and not late, was sent once more for nothing. */
	if (!r || r->in_bytes <= r->bytes ||
	    part_of(r, NETOBS_JOURNEY_GAP) > NSEC_PER_MSEC || account_dropped(r))
		account_loss(account, turn, sender, s, r,
			     part_of(s, NETOBS_JOURNEY_RECOVERY));
	account_give(account, turn, host_place(sender), NETOBS_CAUSE_QDISC,
		     part_of(s, NETOBS_JOURNEY_QDISC));
	account_give(account, turn, account_between(account, !sender),
		     NETOBS_CAUSE_DELAY, part_of(s, NETOBS_JOURNEY_NETWORK));
}

static void divide_read(struct account *account, struct turn *turn,
			uint8_t sender, const struct netobs_turn *r)
{
	const int64_t gap = part_of(r, NETOBS_JOURNEY_GAP);

	account_give(account, turn, host_place(!sender), NETOBS_CAUSE_STACK,
		     part_of(r, NETOBS_JOURNEY_STACK));
	if (account_dropped(r))
		account_drop(account, turn, !sender, r, gap);
	else
		account_give(account, turn, account_between(account, sender),
			     NETOBS_CAUSE_LOSS, gap);
	account_threads(account, turn, !sender, NETOBS_CAUSE_READS, r,
			NETOBS_TURN_READING, part_of(r, NETOBS_JOURNEY_READER));
}

/* A message stands for the time until the next record. */
static int64_t way_lasts(const struct talk *talk, uint32_t i, bool is_sent)
{
	const struct message *message = &talk->messages[i];
	const struct netobs_turn *turn = is_sent ? message->s : message->r;

	for (uint32_t k = i + 1;
	     turn->kind == NETOBS_TURN_MESSAGE && k < talk->n && k < i + NEAR &&
	     message_is_of_tuple(&talk->messages[k], message);
	     k++) {
		const struct message *next = &talk->messages[k];
		const struct netobs_turn *other = is_sent ? next->s : next->r;

		if (other && next->from == message->from)
			return min_i64(other->record.time_ns -
					       turn->record.time_ns,
				       NSEC_PER_SEC);
	}
	return turn->end_ns - turn->record.time_ns;
}

/* The turn is as long as its parts, and stands for as many as there is time for. */
static int make_way(struct account *account, uint32_t i, bool is_sent)
{
	const struct talk *talk = account->talk;
	const struct message *message = &talk->messages[i];
	const int64_t lasts_ns = way_lasts(talk, i, is_sent);
	struct turn *turn;
	int64_t ns = 0;

	if (is_outside(talk, message->time_ns, message->time_ns + lasts_ns))
		return 0;
	turn = turns_add(account, message->time_ns, message->time_ns + lasts_ns,
			 1);
	if (!turn)
		return -ENOMEM;
	turn->is_now = message->time_ns + lasts_ns / 2 >= talk->since_ns;
	if (is_sent)
		divide_sent(account, turn, message->from, message->s,
			    find_other(account, i));
	else
		divide_read(account, turn, message->from, message->r);
	for (uint32_t k = 0; k < PARTS; k++)
		ns += turn->ns[k];
	turn->end_ns = turn->begin_ns + ns;
	turn->weight =
		(uint32_t)max_i64(1, lasts_ns / max_i64(ns, NSEC_PER_MSEC));
	return 0;
}

int ways_make(struct account *account)
{
	const struct talk *talk = account->talk;
	int ret = 0;

	account->is_ways = true;
	for (uint32_t i = 0; !ret && i < talk->n; i++) {
		const struct netobs_turn *s = talk->messages[i].s,
					 *r = talk->messages[i].r;

		if (s && s->kind != NETOBS_TURN_CONNECT && s->bytes)
			ret = make_way(account, i, true);
		if (!ret && r && r->kind != NETOBS_TURN_CONNECT && r->bytes)
			ret = make_way(account, i, false);
	}
	return ret;
}
