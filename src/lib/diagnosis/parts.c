// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Whose time it is: what threads do, what keeps TCP from sending, and where bytes were lost. */
#include "diagnosis_state.h"

#include <netinet/in.h>

/* Of a packet: bytes that a path with a small MTU may not let pass, and that one has at most. */
enum { LARGE = 1000, FRAME = 1500 };

void account_give(struct account *account, struct turn *turn, uint8_t place,
		  uint8_t cause, int64_t ns)
{
	uint32_t i = 0;

	if (ns <= 0)
		return;
	while (i < account->n_parts && (account->parts[i].place != place ||
					account->parts[i].cause != cause))
		i++;
	if (i == PARTS) {
		/* More than there is room for: the last one has the rest. */
		i = PARTS - 1;
	} else if (i == account->n_parts) {
		account->parts[i] = (struct part_key){ place, cause };
		account->n_parts++;
	}
	turn->ns[i] += ns;
}

uint8_t account_between(const struct account *account, int other)
{
	return talk_hears(account->talk, other) ? NETOBS_PLACE_NETWORK :
						  NETOBS_PLACE_BEYOND;
}

/* @return the part of @ns that is as large as @share of @whole */
static int64_t scaled(int64_t ns, uint64_t share, uint64_t whole)
{
	return whole ? (int64_t)((double)ns * (double)share / (double)whole) : 0;
}

/* ---- Threads -------------------------------------------------------------------------------------- */

void account_threads(struct account *account, struct turn *turn, int end,
		     uint8_t cause, const struct netobs_turn *record, int phase,
		     int64_t ns)
{
	const uint64_t *states = record->thread_ns[phase];
	uint64_t whole = 0;
	int64_t wait, stop;

	for (int state = 0; state < NETOBS_THREAD_STATES; state++)
		whole += states[state];
	if (turn->is_now && !(record->record.has & NETOBS_TURN_HAS_THREADS))
		account->unseen_ns += ns;
	/* What is known may be of a part of the time. */
	wait = min_i64(ns, (int64_t)states[NETOBS_THREAD_WAIT]);
	stop = min_i64(ns - wait, (int64_t)states[NETOBS_THREAD_STOP]);
	if (whole > (uint64_t)ns) {
		wait = scaled(ns, states[NETOBS_THREAD_WAIT], whole);
		stop = scaled(ns, states[NETOBS_THREAD_STOP], whole);
	}
	account_give(account, turn, host_place(end), NETOBS_CAUSE_CPU, wait);
	account_give(account, turn, process_place(end), NETOBS_CAUSE_STOPPED,
		     stop);
	account_give(account, turn, process_place(end), cause, ns - wait - stop);
}

/* ---- Losses --------------------------------------------------------------------------------------- */

/* A segment for a socket that is closed is lost to nobody. */
uint64_t account_dropped(const struct netobs_turn *record)
{
	return class_of_drop(record) == DROP_CLASS_CLOSED ?
		       0 :
		       record->dropped_bytes;
}

static void note_drops(struct account *account, const struct turn *turn,
		       const struct netobs_turn *record)
{
	if (!turn->is_now)
		return;
	account->dropped += record->drops;
	account->dropping = record;
}

/*
 * Without a carrier, there is no qdisc, and a veth drops what comes from its peer. What waited for it may come when the
 * socket is closed.
 */
static bool may_link_drop(enum drop_class class)
{
	return class == DROP_CLASS_QDISC || class == DROP_CLASS_LINK ||
	       class == DROP_CLASS_NO_SOCKET;
}

void account_drop(struct account *account, struct turn *turn, int end,
		  const struct netobs_turn *record, int64_t ns)
{
	const enum drop_class class = class_of_drop(record);
	const uint8_t cause = evidence_drop_cause(account->evidence, end, class);
	const uint8_t place = cause == NETOBS_CAUSE_ACCEPT ? process_place(end) :
							     host_place(end);

	note_drops(account, turn, record);
	if (turn->is_now && may_link_drop(class) &&
	    account->evidence->sums[end].carrier_changes)
		account_give(account, turn, account_between(account, !end),
			     NETOBS_CAUSE_LINK, ns);
	else
		account_give(account, turn, place, cause, ns);
}

static bool has_link_changed(const struct account *account)
{
	return account->evidence->sums[CLIENT].carrier_changes ||
	       account->evidence->sums[SERVER].carrier_changes;
}

/* Slices of both hosts begin and end at other bytes: of streams, all slices together tell. */
static uint64_t lost_bytes(const struct account *account, int sender,
			   const struct netobs_turn *s,
			   const struct netobs_turn *r)
{
	const struct stream_sums *sums = &account->streams[sender];
	const uint64_t came = r ? r->in_bytes : 0;
	const bool has_lost = sums->again &&
			      ((sums->out > sums->in &&
				2 * (sums->out - sums->in) >= sums->again) ||
			       2 * sums->in_now < sums->out_now);

	if (account->is_ways)
		return r && r->in_bytes > r->bytes ?
			       0 :
			       s->sent_bytes - min_u64(s->sent_bytes, s->bytes);
	if (s->kind != NETOBS_TURN_SLICE)
		return s->out_bytes > came ? s->out_bytes - came : 0;
	return has_lost ? max_u64(1, s->sent_bytes -
					     min_u64(s->sent_bytes, s->bytes)) :
			  0;
}

/* Large packets are lost, and smaller ones arrive. */
static bool is_large(const struct account *account, int sender,
		     const struct netobs_turn *s, const struct netobs_turn *r)
{
	const uint32_t came = r ? r->largest_in : 0;

	/* A datagram is sent once: that it has not come tells nothing of its size. */
	return s->protocol == IPPROTO_TCP && s->largest_sent > LARGE &&
	       came < min_u64(s->largest_sent, FRAME) &&
	       max_u64(came, LARGE) < account->largest[sender];
}

static void give_lost(struct account *account, struct turn *turn, int sender,
		      const struct netobs_turn *s, const struct netobs_turn *r,
		      int64_t ns)
{
	const bool is_link = turn->is_now && has_link_changed(account);

	if (turn->is_now) {
		account->lost_bytes += lost_bytes(account, sender, s, r);
		account->lost_ns += ns;
		account->guess_ns += r ? 0 : ns;
		account->large_ns += is_large(account, sender, s, r) ? ns : 0;
	}
	account_give(account, turn, NETOBS_PLACE_NETWORK,
		     is_link ? NETOBS_CAUSE_LINK : NETOBS_CAUSE_LOSS, ns);
}

/* Nothing shows which datagram it is: its host may have dropped it. */
static bool is_unknown(const struct account *account, const struct turn *turn,
		       int sender, const struct netobs_turn *s,
		       const struct netobs_turn *r)
{
	return turn->is_now && !r && s->protocol == IPPROTO_UDP &&
	       (!s->ip_id || account->talk->has_equal[sender]) &&
	       account->drops_at[!sender];
}

void account_loss(struct account *account, struct turn *turn, int sender,
		  const struct netobs_turn *s, const struct netobs_turn *r,
		  int64_t ns)
{
	const uint64_t lost = lost_bytes(account, sender, s, r);
	const uint64_t here = account_dropped(s);
	const uint64_t there = r ? account_dropped(r) : 0;

	if (ns <= 0)
		return;
	if (here && here >= there &&
	    (here >= lost || !talk_hears(account->talk, !sender)))
		account_drop(account, turn, sender, s, ns);
	else if (!talk_hears(account->talk, !sender))
		account_give(account, turn, NETOBS_PLACE_BEYOND,
			     NETOBS_CAUSE_LOSS, ns);
	else if (there && there >= lost)
		account_drop(account, turn, !sender, r, ns);
	else if (lost && is_unknown(account, turn, sender, s, r))
		account_drop(account, turn, !sender, account->drops_at[!sender],
			     ns);
	else if (lost)
		give_lost(account, turn, sender, s, r, ns);
	else if (turn->is_now && has_link_changed(account))
		account_give(account, turn, NETOBS_PLACE_NETWORK,
			     NETOBS_CAUSE_LINK, ns);
	else
		account_give(account, turn, NETOBS_PLACE_NETWORK,
			     NETOBS_CAUSE_REORDERING, ns);
}

/* ---- TCP ------------------------------------------------------------------------------------------- */

/* The receiver's window is full: its process has not read, or its buffer is small. */
static void give_window(struct account *account, struct turn *turn,
			int receiver, const struct netobs_turn *r, int64_t ns)
{
	uint64_t unread = r ? r->unread_ns : 0;

	for (int state = 0; r && state < NETOBS_THREAD_STATES; state++)
		unread += r->thread_ns[NETOBS_TURN_READING][state];
	if (!talk_hears(account->talk, receiver))
		account_give(account, turn, NETOBS_PLACE_BEYOND,
			     NETOBS_CAUSE_RECEIVE_BUFFER, ns);
	else if (r && 2 * unread > (uint64_t)ns)
		account_threads(account, turn, receiver, NETOBS_CAUSE_READS, r,
				NETOBS_TURN_READING, ns);
	else
		account_give(account, turn, host_place(receiver),
			     NETOBS_CAUSE_RECEIVE_BUFFER, ns);
}

/* Time that bytes of a message wait in a queue of their host, and on the way to the other host. */
static void add_way(const struct account *account,
		    const struct message *message, double *queued, double *way)
{
	const struct netobs_turn *s = message ? message->s : NULL,
				 *r = message ? message->r : NULL;
	int64_t ns;

	if (s)
		*queued = (double)s->part_ns[NETOBS_JOURNEY_QDISC];
	if (!s || !r || s == r || !s->out_ns || !r->in_ns)
		return;
	ns = clocks_local(account->talk, !message->from, r->in_ns) -
	     clocks_local(account->talk, message->from, s->out_ns);
	*way = (double)max_i64(0, ns);
}

/* TCP waits for acknowledgments, or for room in the queues below it: as the round trip divides. */
static void give_round_trip(struct account *account, struct turn *turn,
			    int sender, const struct netobs_turn *s,
			    const struct netobs_turn *r, int64_t ns)
{
	const struct message there = { .s = s, .r = r, .from = (uint8_t)sender };
	const uint8_t way = account_between(account, !sender);
	double own = 0, peer = 0, to = 0, from = 0, whole;
	int64_t first, last;

	add_way(account, &there, &own, &to);
	add_way(account, account->back, &peer, &from);
	if (to + from <= 0)
		to = (double)s->part_ns[NETOBS_JOURNEY_NETWORK] + 1;
	whole = own + peer + to + from;
	first = (int64_t)((double)ns * own / whole);
	last = (int64_t)((double)ns * peer / whole);
	account_give(account, turn, host_place(sender), NETOBS_CAUSE_QDISC,
		     first);
	account_give(account, turn, host_place(!sender), NETOBS_CAUSE_QDISC,
		     last);
	account_give(account, turn, way, NETOBS_CAUSE_DELAY, ns - first - last);
}

/* The congestion window is full: a loss made it small, or the round trip is long. */
static void give_cwnd(struct account *account, struct turn *turn, int sender,
		      const struct netobs_turn *s, const struct netobs_turn *r,
		      int64_t ns)
{
	const bool is_slice = s->kind == NETOBS_TURN_SLICE;

	if (account_dropped(s) || s->limit_ns[NETOBS_TURN_RECOVERY] ||
	    (r && account_dropped(r)) ||
	    (is_slice ? s->sent_bytes > s->bytes + s->bytes / 8 :
			r && s->out_bytes > r->in_bytes))
		account_loss(account, turn, sender, s, r, ns);
	else
		give_round_trip(account, turn, sender, s, r, ns);
}

/* The process writes, or TCP waits for the CPU, for pacing, or for room in queues. */
static void give_writer(struct account *account, struct turn *turn, int sender,
			const struct netobs_turn *s,
			const struct netobs_turn *r, int64_t idle, int64_t other)
{
	const int64_t wait =
		(int64_t)s->thread_ns[NETOBS_TURN_WRITING][NETOBS_THREAD_WAIT];
	const int64_t late = min_i64(other, max_i64(0, wait - idle));

	account_threads(account, turn, sender, NETOBS_CAUSE_THINKS, s,
			NETOBS_TURN_WRITING, idle);
	account_give(account, turn, host_place(sender), NETOBS_CAUSE_CPU, late);
	if (s->part_ns[NETOBS_JOURNEY_QDISC] > NSEC_PER_MSEC ||
	    account->queued_ns[sender][turn->is_now] > NSEC_PER_MSEC)
		account_give(account, turn, host_place(sender),
			     NETOBS_CAUSE_QDISC, other - late);
	else if (other - late > NSEC_PER_MSEC)
		give_cwnd(account, turn, sender, s, r, other - late);
	else
		account_give(account, turn, host_place(sender),
			     NETOBS_CAUSE_STACK, other - late);
}

/* Once the process has written a message, TCP does not wait for it, as if it were idle until it sends once more. */
static int64_t idle_of(const struct netobs_turn *s, int64_t ns)
{
	return s->kind == NETOBS_TURN_MESSAGE && s->written_ns ?
		       min_i64(ns, max_i64(0, s->written_ns - s->record.time_ns)) :
		       ns;
}

void account_limits(struct account *account, struct turn *turn, int sender,
		    const struct netobs_turn *s, const struct netobs_turn *r,
		    int64_t ns)
{
	int64_t limits[NETOBS_TURN_LIMITS] = { 0 }, rest = ns;
	uint64_t whole = 0;

	if (ns <= 0)
		return;
	if (s->record.has & NETOBS_TURN_HAS_LIMITS)
		for (int i = 0; i < NETOBS_TURN_LIMITS; i++)
			whole += s->limit_ns[i];
	else if (turn->is_now && s->protocol == IPPROTO_TCP)
		account->unlimited_ns += ns;
	for (int i = 0; i < NETOBS_TURN_LIMITS; i++) {
		limits[i] = whole ? scaled(ns, s->limit_ns[i], whole) : 0;
		if (i == NETOBS_TURN_IDLE)
			limits[i] = idle_of(s, limits[i]);
		rest -= limits[i];
	}
	give_writer(account, turn, sender, s, r, limits[NETOBS_TURN_IDLE],
		    max_i64(0, rest) + limits[NETOBS_TURN_OTHER]);
	account_give(account, turn, host_place(sender),
		     NETOBS_CAUSE_SEND_BUFFER, limits[NETOBS_TURN_BUFFER]);
	account_give(account, turn, host_place(sender), NETOBS_CAUSE_QDISC,
		     limits[NETOBS_TURN_QUEUED]);
	if (limits[NETOBS_TURN_WINDOW])
		give_window(account, turn, !sender, r,
			    limits[NETOBS_TURN_WINDOW]);
	if (limits[NETOBS_TURN_CWND])
		give_cwnd(account, turn, sender, s, r, limits[NETOBS_TURN_CWND]);
	account_loss(account, turn, sender, s, r, limits[NETOBS_TURN_RECOVERY]);
}
