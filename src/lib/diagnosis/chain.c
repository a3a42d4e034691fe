// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The way of the last byte of a request and of its answer. Each step ends at a stamp and belongs to one part; a step
 * that did not happen has the time until the turn ends.
 */
#include "diagnosis_state.h"

struct walk {
	struct account *account;
	struct turn *turn;
	int64_t at_ns; /* by the client's clock: so far, the time is given */
};

/* Go to @ns. @return how long that is; 0: it is not known, or is before here */
static int64_t step_to(struct walk *walk, int64_t ns)
{
	const int64_t from = walk->at_ns;

	if (ns)
		walk->at_ns = max_i64(from, min_i64(ns, walk->turn->end_ns));
	return walk->at_ns - from;
}

static int64_t step_end(struct walk *walk)
{
	return step_to(walk, walk->turn->end_ns);
}

static void give(struct walk *walk, uint8_t place, uint8_t cause, int64_t ns)
{
	account_give(walk->account, walk->turn, place, cause, ns);
}

static int64_t local(const struct walk *walk, int end, int64_t ns)
{
	return clocks_local(walk->account->talk, end, ns);
}

static bool hears(const struct walk *walk, int end)
{
	return talk_hears(walk->account->talk, end);
}

/* ---- The sender's host --------------------------------------------------------------------------- */

/* From the first attempt to the uplink: attempts before the one that arrived, the queue, the rest. What arrived before
 * the last attempt was sent once more for nothing. */
static void leave(struct walk *walk, int sender, const struct message *message)
{
	const struct talk *talk = walk->account->talk;
	const struct netobs_turn *s = message->s, *r = message->r;
	const int64_t out_ns = local(walk, sender, s->out_ns),
		      in_ns = r ? local(walk, !sender, r->in_ns) : 0;
	const bool is_repeated = s->attempts > 1 && in_ns &&
				 in_ns + (int64_t)talk->clocks.bound_ns < out_ns &&
				 !account_dropped(r);
	int64_t ns = step_to(walk, is_repeated ? in_ns : out_ns), part = 0;

	if (!is_repeated)
		part = min_i64(ns, (int64_t)s->part_ns[NETOBS_JOURNEY_RECOVERY]);
	account_loss(walk->account, walk->turn, sender, s, r, part);
	ns -= part;
	part = min_i64(ns, (int64_t)s->part_ns[NETOBS_JOURNEY_QDISC]);
	give(walk, host_place(sender), NETOBS_CAUSE_QDISC, part);
	give(walk, host_place(sender), NETOBS_CAUSE_STACK, ns - part);
}

/* The record of a message ends before it is sent: slices tell what TCP waits for then. */
static void wait_in_slices(struct walk *walk, int sender,
			   const struct message *message)
{
	const struct talk *talk = walk->account->talk;
	const struct message *end = talk->messages + talk->n;
	struct netobs_turn rest = *message->s;
	bool has_slices = false;

	memset(rest.limit_ns, 0, sizeof(rest.limit_ns));
	for (const struct message *slice = message + 1;
	     slice < end && message_is_of_tuple(slice, message) &&
	     slice->time_ns < walk->turn->end_ns;
	     slice++) {
		if (!slice->s || slice->s->kind != NETOBS_TURN_SLICE ||
		    slice->from != sender ||
		    slice->s->record.time_ns < message->s->end_ns)
			continue;
		has_slices = true;
		for (int limit = 0; limit < NETOBS_TURN_LIMITS; limit++)
			rest.limit_ns[limit] += slice->s->limit_ns[limit];
	}
	if (has_slices)
		account_limits(
			walk->account, walk->turn, sender, message->s, message->r,
			step_to(walk, local(walk, sender, message->s->end_ns)));
	account_limits(walk->account, walk->turn, sender,
		       has_slices ? &rest : message->s, message->r,
		       step_end(walk));
}

/* @return whether the last byte has left, as far as that is known */
static bool walk_sender(struct walk *walk, int sender,
			const struct message *message)
{
	const struct netobs_turn *s = message->s;

	if (!s->sent_ns) {
		wait_in_slices(walk, sender, message);
		return false;
	}
	account_limits(walk->account, walk->turn, sender, s, message->r,
		       step_to(walk, local(walk, sender, s->sent_ns)));
	if (s->out_ns || (s->record.has & NETOBS_TURN_HAS_READ)) {
		leave(walk, sender, message);
		return true;
	}
	if (account_dropped(s))
		account_loss(walk->account, walk->turn, sender, s, message->r,
			     step_end(walk));
	else
		give(walk, host_place(sender), NETOBS_CAUSE_STACK,
		     step_end(walk));
	return false;
}

/* ---- The receiver's host --------------------------------------------------------------------------- */

/* Nobody has read a new connection yet, so its reader is not known: others of the process may wait for a CPU. */
static void give_unknown(struct walk *walk, int receiver, int64_t ns)
{
	const struct evidence *evidence = walk->account->evidence;
	const struct talk *talk = walk->account->talk;
	const struct netobs_host *host = &evidence->sums[receiver];
	const int64_t much_ns = (talk->until_ns - talk->since_ns) / 10;

	if (2 * walk->account->stopped_ns > much_ns)
		give(walk, process_place(receiver), NETOBS_CAUSE_STOPPED, ns);
	else if (evidence->cpu_ns[receiver] > much_ns && !host->listen_overflows)
		give(walk, host_place(receiver), NETOBS_CAUSE_CPU, ns);
	else if (host->listen_overflows || host->accept_queue)
		give(walk, process_place(receiver), NETOBS_CAUSE_ACCEPT, ns);
	else
		give(walk, process_place(receiver), NETOBS_CAUSE_READS, ns);
}

static void give_unread(struct walk *walk, int receiver,
			const struct netobs_turn *r, bool is_first, int64_t ns)
{
	if (is_first && walk->turn->is_now && ns > NSEC_PER_MSEC &&
	    receiver == SERVER && !(r->record.has & NETOBS_TURN_HAS_THREADS))
		give_unknown(walk, receiver, ns);
	else
		account_threads(walk->account, walk->turn, receiver,
				NETOBS_CAUSE_READS, r, NETOBS_TURN_READING, ns);
}

/* Bytes before the last one came later than it, or not yet. */
static void give_gap(struct walk *walk, int sender,
		     const struct message *message, int64_t ns)
{
	if (message->s)
		account_loss(walk->account, walk->turn, sender, message->s,
			     message->r, ns);
	else
		give(walk, NETOBS_PLACE_BEYOND, NETOBS_CAUSE_LOSS, ns);
}

/* @return whether the process has read all of it, and has begun to answer */
static bool walk_receiver(struct walk *walk, int sender,
			  const struct message *message, bool is_first)
{
	const struct netobs_turn *r = message->r;
	const int receiver = !sender;
	int64_t ns, gap;

	ns = step_to(walk, local(walk, receiver, r->segment_ns ?: r->ready_ns) ?:
				   walk->turn->end_ns);
	if (account_dropped(r))
		account_drop(walk->account, walk->turn, receiver, r, ns);
	else
		give(walk, host_place(receiver), NETOBS_CAUSE_STACK, ns);
	ns = step_to(walk,
		     local(walk, receiver, r->ready_ns) ?: walk->turn->end_ns);
	gap = r->ready_ns && !(r->unknown_parts >> NETOBS_JOURNEY_GAP & 1) ?
		      min_i64(ns, (int64_t)r->part_ns[NETOBS_JOURNEY_GAP]) :
		      ns;
	give_gap(walk, sender, message, gap);
	give(walk, host_place(receiver), NETOBS_CAUSE_STACK, ns - gap);
	give_unread(walk, receiver, r, is_first,
		    step_to(walk, local(walk, receiver, r->read_ns) ?:
					  walk->turn->end_ns));
	if (!r->read_ns)
		return false;
	account_threads(walk->account, walk->turn, receiver,
			NETOBS_CAUSE_THINKS, r, NETOBS_TURN_THINKING,
			step_to(walk, local(walk, receiver, r->answer_ns) ?:
					      walk->turn->end_ns));
	return r->answer_ns;
}

/* ---- Messages ----------------------------------------------------------------------------------------- */

static void note_arrival(struct walk *walk, const struct message *message)
{
	struct account *account = walk->account;
	const bool is_now = walk->turn->is_now;

	account->n_whole += is_now && message->s &&
			    message->s->out_bytes <= message->r->in_bytes;
}

/* The receiver's record does not tell of the last byte: it has not come. */
static bool is_cut(const struct message *message)
{
	return message->s && message->r && message->s != message->r &&
	       message->r->bytes < message->s->bytes;
}

static void give_rest(struct walk *walk, int sender, const struct message *message)
{
	const struct netobs_turn *s = message->s, *r = message->r;
	const int64_t ns = step_end(walk);

	if (r && !account_dropped(r) && s->out_bytes <= r->in_bytes)
		give(walk, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_DELAY, ns);
	else
		account_loss(walk->account, walk->turn, sender, s, r, ns);
}

/* @return whether its receiver has begun to answer */
static bool walk_message(struct walk *walk, const struct message *message,
			 bool is_first)
{
	const int sender = message->from, receiver = !sender;
	const struct netobs_turn *s = message->s, *r = message->r;
	const uint8_t between = account_between(
		walk->account, hears(walk, sender) ? receiver : sender);

	if (s && !walk_sender(walk, sender, message))
		return false;
	if (r && s != r && (r->in_ns || r->segment_ns)) {
		note_arrival(walk, message);
		give(walk, between, NETOBS_CAUSE_DELAY,
		     step_to(walk, local(walk, receiver, r->in_ns)));
	}
	if (r && !is_cut(message))
		return walk_receiver(walk, sender, message, is_first);
	if (hears(walk, receiver)) {
		give_rest(walk, sender, message);
		return false;
	}
	return true;
}

/* The other host is silent: what happens until its answer comes is beyond this one. */
static void walk_beyond(struct walk *walk, const struct message *message)
{
	const struct netobs_turn *r = message ? message->r : NULL;
	const int64_t ns =
		r ? step_to(walk, local(walk, !message->from, r->in_ns) ?:
					  local(walk, !message->from,
						r->record.time_ns)) :
		    step_end(walk);

	give(walk, NETOBS_PLACE_BEYOND, NETOBS_CAUSE_DELAY, ns);
}

void chain_divide(struct account *account, struct turn *turn,
		  const struct message *request, const struct message *answer)
{
	struct walk walk = { account, turn, turn->begin_ns };
	const bool is_first = request->r && request->r->offset == 0 &&
			      request->r->record.has & NETOBS_TURN_HAS_OFFSET;

	account->back = answer;
	if (!walk_message(&walk, request, is_first))
		return;
	account->back = request;
	if (!answer) {
		if (!hears(&walk, SERVER))
			walk_beyond(&walk, NULL);
		return;
	}
	if (!answer->s)
		walk_beyond(&walk, answer);
	walk_message(&walk, answer, false);
	if (!answer->r && !hears(&walk, CLIENT))
		walk_beyond(&walk, NULL);
}

/* ---- Handshakes ----------------------------------------------------------------------------------------- */

/* The server's host answers a SYN at once, if at all. */
#define ANSWERED_NS (100 * NSEC_PER_MSEC)

/* SYNs came, and were not answered, or the first ones were not. */
static void give_unanswered(struct walk *walk, const struct netobs_turn *r,
			    int64_t ns)
{
	const struct evidence *evidence = walk->account->evidence;

	if (account_dropped(r))
		account_drop(walk->account, walk->turn, SERVER, r, ns);
	else if (evidence->sums[SERVER].listen_overflows)
		give(walk, process_place(SERVER), NETOBS_CAUSE_ACCEPT, ns);
	else
		give(walk, host_place(SERVER), NETOBS_CAUSE_STACK, ns);
	/* Another service may have overflowed. */
	if (walk->turn->is_now && !account_dropped(r))
		walk->account->assumed_ns += ns;
}

/* The answers were lost: by the server's host, if it dropped others that it sent. */
static void give_answers(struct walk *walk, int64_t ns)
{
	struct account *account = walk->account;
	const struct netobs_turn *dropped = account->drops_of[SERVER];

	if (walk->turn->is_now && dropped) {
		account_drop(account, walk->turn, SERVER, dropped, ns);
		account->assumed_ns += ns;
		return;
	}
	account->lost_ns += walk->turn->is_now ? ns : 0;
	give(walk, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_LOSS, ns);
}

/* Each attempt is judged alone: how far it came. Records of both hosts count SYNs as bytes. */
static void give_attempts(struct walk *walk, const struct message *connect,
			  int64_t ns)
{
	const struct netobs_turn *s = connect->s, *r = connect->r;
	const bool has_dropped = account_dropped(s);

	if (!has_dropped && s->sent_bytes > s->out_bytes)
		give(walk, host_place(CLIENT), NETOBS_CAUSE_STACK, ns);
	else if (has_dropped || !r || s->out_bytes > r->in_bytes)
		account_loss(walk->account, walk->turn, CLIENT, s, r, ns);
	else if (!r->answer_ns || r->answer_ns - r->in_ns > ANSWERED_NS ||
		 account_dropped(r))
		give_unanswered(walk, r, ns);
	else
		give_answers(walk, ns);
}

void chain_connect(struct account *account, struct turn *turn,
		   const struct message *connect)
{
	struct walk walk = { account, turn, turn->begin_ns };
	const struct netobs_turn *s = connect->s, *r = connect->r;
	const bool is_done = s && s->in_ns;

	turn->is_connect = true;
	if (!is_done || s->attempts != 1) {
		give_attempts(&walk, connect, step_end(&walk));
		return;
	}
	if (!hears(&walk, SERVER)) {
		walk_beyond(&walk, NULL);
		return;
	}
	account->n_whole += turn->is_now;
	give(&walk, host_place(CLIENT), NETOBS_CAUSE_STACK,
	     step_to(&walk, s->out_ns));
	if (r) {
		give(&walk, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_DELAY,
		     step_to(&walk, local(&walk, SERVER, r->in_ns)));
		give(&walk, host_place(SERVER), NETOBS_CAUSE_STACK,
		     step_to(&walk, local(&walk, SERVER, r->answer_ns)));
	}
	give(&walk, NETOBS_PLACE_NETWORK, NETOBS_CAUSE_DELAY, step_end(&walk));
}
