// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What of turns, handshakes and datagrams names the place that makes them slower: a rule in each row. */
#include "sim_rules.h"

/* What happens in a turn, in this order. */
enum moment {
	WRITE,
	SEND,
	LEAVE,
	ARRIVE,
	READY,
	READ,
	ANSWER,
	SEND_BACK,
	LEAVE_BACK,
	ARRIVE_BACK,
	READY_BACK,
	READ_BACK,
	NEXT,
	MOMENTS
};

/* A turn that is made. */
struct exchange {
	struct sim *sim;
	struct netobs_turn s,
		r; /* of the request: of its sender's host, of its receiver's */
	struct netobs_turn back_s, back_r; /* of the answer */
	int64_t at_ns, steps[MOMENTS];	   /* from the moment before */
	uint32_t number;		   /* of the turns so far */
};

struct turn_rule {
	struct truth truth;
	enum moment moment; /* it is later in each turn of the window */
	int64_t ns;
	void (*mark)(struct exchange *turn); /* what else records tell */
	int link;		      /* 1, 2: at the client, at the server */
	const char *cause, *function; /* the server's host drops the request */
	int64_t filled_ns; /* others' packets keep the server's uplink busy for so long in 200 ms */
};

/* The last byte of the request is sent twice, 200 ms apart. */
static void send_twice(struct exchange *turn)
{
	turn->s.attempts = 2;
	turn->s.sent_bytes = turn->s.out_bytes = 2 * turn->s.bytes;
	turn->r.in_bytes = 2 * turn->s.bytes;
	turn->s.part_ns[NETOBS_JOURNEY_RECOVERY] = 200 * SIM_MS;
}

static void repeat_for_nothing(struct exchange *turn)
{
	send_twice(turn);
	turn->s.out_ns = 200 * SIM_MS;
}

static void lose_first(struct exchange *turn)
{
	send_twice(turn);
	turn->r.in_bytes = turn->r.bytes;
}

static void lose_more(struct exchange *turn)
{
	send_twice(turn);
	turn->s.sent_bytes = turn->s.out_bytes = 4 * turn->s.bytes;
}

/* It comes in small packets. */
static void lose_large(struct exchange *turn)
{
	lose_first(turn);
	turn->r.largest_in = 500;
}

/* Of the packets that are sent, none is larger than those that come. */
static void lose_smaller(struct exchange *turn)
{
	lose_first(turn);
	turn->s.largest_sent = turn->r.largest_in = 1200;
}

/* The interface divides what the host sends. */
static void lose_divided(struct exchange *turn)
{
	lose_first(turn);
	turn->s.largest_sent = 60000;
}

static void lose_large_and_answers(struct exchange *turn)
{
	lose_large(turn);
	turn->back_s.sent_bytes = turn->back_s.out_bytes = 2 * turn->back_s.bytes;
}

static void lose_first_of_queue(struct exchange *turn)
{
	lose_first(turn);
	turn->steps[ARRIVE] += 40 * SIM_MS;
}

static void wait_for_process(struct exchange *turn)
{
	turn->s.limit_ns[NETOBS_TURN_IDLE] = (uint64_t)turn->steps[SEND];
}

static void write_late(struct exchange *turn)
{
	wait_for_process(turn);
	turn->s.written_ns = turn->steps[SEND];
}

static void wait_in_queue(struct exchange *turn)
{
	wait_for_process(turn);
	turn->s.part_ns[NETOBS_JOURNEY_QDISC] = 8 * SIM_MS;
	turn->steps[LEAVE] += 8 * SIM_MS;
}

/* The turn's own bytes do not wait there. */
static void see_queue(struct exchange *turn)
{
	if (turn->number % 4 == 0)
		wait_in_queue(turn);
	else
		wait_for_process(turn);
}

/* One of many turns is late, so that the mean wait is short. */
static void wait_in_queue_rarely(struct exchange *turn)
{
	if (turn->number % 16 == 0)
		wait_in_queue(turn);
	else
		turn->steps[SEND] = 20 * SIM_US;
}

static void wait_for_cpu(struct exchange *turn)
{
	turn->s.limit_ns[NETOBS_TURN_OTHER] = (uint64_t)turn->steps[SEND];
	turn->s.thread_ns[NETOBS_TURN_WRITING][NETOBS_THREAD_WAIT] =
		(uint64_t)turn->steps[SEND];
}

static const struct turn_rule turn_rules[] = {
	{ TRUTH(NONE, NONE, "as before"), .moment = WRITE },
	{ TRUTH(NETWORK, DELAY, "a longer way"), .moment = ARRIVE,
	  .ns = 60 * SIM_MS },
	{ TRUTH(NETWORK, LINK, "a longer way while a link changes"),
	  .moment = ARRIVE, .ns = 60 * SIM_MS, .link = 2 },
	{ TRUTH(NETWORK, LINK, "a longer way back while a link changes"),
	  .moment = ARRIVE_BACK, .ns = 60 * SIM_MS, .link = 1 },
	{ TRUTH(SERVER_HOST, STACK, "a slow host while a link changes"),
	  .moment = READY, .ns = 60 * SIM_MS, .link = 1 },
	{ TRUTH(SERVER_PROCESS, THINKS, "a slow answer, repeated for nothing"),
	  .moment = ANSWER, .ns = 300 * SIM_MS, .mark = repeat_for_nothing },
	{ TRUTH(NETWORK, LOSS, "repeated, as it was lost"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = lose_first },
	{ TRUTH(NETWORK, REORDERING, "repeated, and late"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = send_twice },
	{ TRUTH(NETWORK, LINK, "repeated, and late while a link changes"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = send_twice, .link = 2 },
	{ TRUTH(SERVER_HOST, DROP, "a peer's packets are dropped"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = send_twice,
	  .cause = NO_REASON, .function = "dev_forward_skb" },
	{ TRUTH(NETWORK, LINK, "a peer's packets are dropped without a carrier"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = send_twice, .link = 2,
	  .cause = NO_REASON, .function = "dev_forward_skb" },
	{ TRUTH(SERVER_HOST, DROP, "rules drop while another link changes"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = send_twice, .link = 2,
	  .cause = NETFILTER, .function = "nft_do_chain" },
	{ TRUTH(SERVER_HOST, DROP, "there is no socket"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = send_twice, .cause = NO_SOCKET,
	  .function = "tcp_v4_rcv" },
	{ TRUTH(NETWORK, LINK, "there is no socket any more after a link changes"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = send_twice, .link = 2,
	  .cause = NO_SOCKET, .function = "tcp_v4_rcv" },
	{ TRUTH(NETWORK, LOSS, "more is lost than is dropped"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = lose_more, .cause = NETFILTER,
	  .function = "nft_do_chain" },
	{ TRUTH(NETWORK, MTU, "large packets are lost"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = lose_large },
	{ TRUTH(NETWORK, LOSS, "packets are smaller, and lost"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = lose_smaller },
	{ TRUTH(NETWORK, LOSS, "divided packets are lost"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = lose_divided },
	{ TRUTH(NETWORK, LOSS, "large packets are lost, and some of all messages"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = lose_large_and_answers },
	{ TRUTH(NETWORK, QUEUE, "lost, as others send more"), .moment = LEAVE,
	  .ns = 200 * SIM_MS, .mark = lose_first, .filled_ns = 200 * SIM_MS },
	{ TRUTH(NETWORK, LOSS, "lost, and others' share is larger"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = lose_first,
	  .filled_ns = 2 * SIM_MS },
	{ TRUTH(NETWORK, QUEUE, "lost and late, and others' share is larger"),
	  .moment = LEAVE, .ns = 200 * SIM_MS, .mark = lose_first_of_queue,
	  .filled_ns = 2 * SIM_MS },
	{ TRUTH(CLIENT_PROCESS, THINKS, "written late"), .moment = SEND,
	  .ns = 60 * SIM_MS, .mark = write_late },
	{ TRUTH(NETWORK, DELAY, "written, and not sent"), .moment = SEND,
	  .ns = 60 * SIM_MS, .mark = wait_for_process },
	{ TRUTH(CLIENT_HOST, QDISC, "written, and not sent for a queue"),
	  .moment = SEND, .ns = 60 * SIM_MS, .mark = wait_in_queue },
	{ TRUTH(CLIENT_HOST, QDISC, "not sent for a queue of others' bytes"),
	  .moment = SEND, .ns = 60 * SIM_MS, .mark = see_queue },
	{ TRUTH(CLIENT_HOST, QDISC, "now and then not sent for a queue"),
	  .moment = SEND, .ns = 600 * SIM_MS, .mark = wait_in_queue_rarely },
	{ TRUTH(CLIENT_HOST, CPU, "not sent for want of a CPU"), .moment = SEND,
	  .ns = 60 * SIM_MS, .mark = wait_for_cpu },
};

static void begin_turn(struct exchange *turn, struct sim *sim, int64_t at)
{
	const int64_t steps[MOMENTS] = {
		[SEND] = 20 * SIM_US,		[LEAVE] = 10 * SIM_US,
		[ARRIVE] = sim->way_ns[0],	[READY] = 20 * SIM_US,
		[READ] = 30 * SIM_US,		[ANSWER] = 5 * SIM_MS,
		[SEND_BACK] = 20 * SIM_US,	[LEAVE_BACK] = 10 * SIM_US,
		[ARRIVE_BACK] = sim->way_ns[1], [READY_BACK] = 20 * SIM_US,
		[READ_BACK] = 30 * SIM_US,	[NEXT] = 5 * SIM_MS,
	};
	const uint32_t bytes[] = { 2000 + sim_below(sim, 800),
				   2000 + sim_below(sim, 800) };

	turn->sim = sim;
	turn->at_ns = at;
	memcpy(turn->steps, steps, sizeof(steps));
	turn->s = sim_turn(sim, 0, 0, bytes[0]);
	turn->r = sim_turn(sim, 1, 0, bytes[0]);
	turn->back_s = sim_turn(sim, 1, 1, bytes[1]);
	turn->back_r = sim_turn(sim, 0, 1, bytes[1]);
	turn->s.sent_bytes = turn->s.out_bytes = bytes[0];
	turn->r.in_bytes = turn->r.segment_bytes = bytes[0];
	turn->back_s.sent_bytes = turn->back_s.out_bytes = bytes[1];
	turn->back_r.in_bytes = turn->back_r.segment_bytes = bytes[1];
	turn->s.attempts = turn->back_s.attempts = 1;
	turn->s.largest_sent = turn->back_s.largest_sent = 1448;
	turn->r.largest_in = turn->back_r.largest_in = 1448;
}

/* Moments that a rule has chosen are relative to the first one. */
static void stamp(int64_t *stamp_ns, int64_t at_ns, int64_t begin_ns)
{
	*stamp_ns = *stamp_ns ? begin_ns + *stamp_ns : at_ns;
}

static void stamp_message(struct netobs_turn *s, struct netobs_turn *r,
			  const int64_t at[], int64_t answered_ns)
{
	s->record.time_ns = at[WRITE];
	stamp(&s->written_ns, at[WRITE] + 5 * SIM_US, at[WRITE]);
	s->sent_ns = at[SEND];
	stamp(&s->out_ns, at[LEAVE], at[WRITE]);
	s->acked_ns = at[READY] + 10 * SIM_MS;
	r->record.time_ns = r->in_ns = at[ARRIVE];
	r->segment_ns = r->ready_ns = at[READY];
	r->read_ns = at[READ];
	r->answer_ns = answered_ns;
}

/* @return when the next turn begins */
static int64_t end_turn(struct exchange *turn)
{
	struct sim *sim = turn->sim;
	int64_t at[MOMENTS] = { turn->at_ns };

	for (int i = 1; i < MOMENTS; i++)
		at[i] = at[i - 1] + turn->steps[i];
	stamp_message(&turn->s, &turn->r, at, at[ANSWER]);
	stamp_message(&turn->back_s, &turn->back_r, at + ANSWER, at[NEXT]);
	sim_deliver(sim, 0, &turn->s);
	sim_deliver(sim, 1, &turn->r);
	sim_deliver(sim, 1, &turn->back_s);
	sim_deliver(sim, 0, &turn->back_r);
	sim->connection.offset[0] += turn->s.bytes;
	sim->connection.offset[1] += turn->back_s.bytes;
	return at[NEXT];
}

static void spoil_turn(struct exchange *turn, const struct turn_rule *rule)
{
	turn->steps[rule->moment] += rule->ns;
	if (rule->mark)
		rule->mark(turn);
	if (rule->cause)
		drop(&turn->r, turn->r.bytes, rule->cause, rule->function);
	if (rule->link)
		sim_counters(turn->sim, rule->link - 1, turn->at_ns)->carrier_changes =
			1;
}

/* Before, others have little of what arrives there; now, they have most of it. */
static void fill_uplink(struct sim *sim, const struct turn_rule *rule)
{
	sim->n_faults = 1;
	sim->faults[0].place = NETOBS_PLACE_NETWORK;
	sim->faults[0].cause = NETOBS_CAUSE_QUEUE;
	sim_note_wait(sim, 1, NETOBS_QUEUE_UPLINK, sim->begin_ns,
		      sim->since_ns - sim->begin_ns);
	for (int64_t at = sim->since_ns; at < sim->until_ns; at += 200 * SIM_MS)
		sim_note_wait(sim, 1, NETOBS_QUEUE_UPLINK, at, rule->filled_ns);
}

TEST(a_rule_of_turns_names_the_place)
{
	for (size_t i = 0; i < ARRAY_SIZE(turn_rules) * RUNS; i++) {
		struct exchange turn = { .number = 0 };
		struct sim sim;

		draw_rule(&sim, SIM_TCP);
		for (int64_t at = sim.begin_ns; at < sim.until_ns; turn.number++) {
			/* What begins shortly before the window is of it. */
			if (at >= sim.since_ns - 60 * SIM_MS)
				at = at > sim.since_ns ? at : sim.since_ns;
			begin_turn(&turn, &sim, at);
			if (at >= sim.since_ns)
				spoil_turn(&turn, &turn_rules[i / RUNS]);
			at = end_turn(&turn);
		}
		if (turn_rules[i / RUNS].filled_ns)
			fill_uplink(&sim, &turn_rules[i / RUNS]);
		assert_truth(&sim, turn_rules[i / RUNS].truth);
	}
}

/* ---- Handshakes ------------------------------------------------------------------------------ */

enum { TURNS_OF_CONNECTION = 10 };

/* The first SYN of each connection of the window is answered a second later. */
struct connect_rule {
	struct truth truth;
	uint32_t left, came; /* of two SYNs: 0: there is one, and all is well */
	bool is_late;	     /* the server's host answers the second one */
	uint32_t overflows;
	bool drops_back; /* the server's host drops some of what it sends */
	const char *cause,
		*function; /* the host that the SYN came to last drops it */
};

#define OVERFLOW "SKB_DROP_REASON_TCP_LISTEN_OVERFLOW"

static const struct connect_rule connect_rules[] = {
	{ TRUTH(NONE, NONE, "as before"), .left = 0 },
	{ TRUTH(CLIENT_HOST, STACK, "the SYN has not left"), .left = 1,
	  .came = 1 },
	{ TRUTH(CLIENT_HOST, DROP, "the SYN was dropped"), .left = 1, .came = 1,
	  .cause = NETFILTER, .function = "nft_do_chain" },
	{ TRUTH(NETWORK, LOSS, "the SYN was lost"), .left = 2, .came = 1 },
	{ TRUTH(NETWORK, LOSS, "the SYN was lost, and others' answers dropped"),
	  .left = 2, .came = 1, .drops_back = true },
	{ TRUTH(NETWORK, LOSS, "the answer was lost"), .left = 2, .came = 2 },
	{ TRUTH(SERVER_HOST, DROP, "the answer was dropped, as others were"),
	  .left = 2, .came = 2, .drops_back = true },
	{ TRUTH(SERVER_HOST, STACK, "the answer was late"), .left = 2,
	  .came = 2, .is_late = true },
	{ TRUTH(SERVER_PROCESS, ACCEPT, "the answer was late, and a queue full"),
	  .left = 2, .came = 2, .is_late = true, .overflows = 1 },
	{ TRUTH(SERVER_PROCESS, ACCEPT, "the SYN was dropped for a full queue"),
	  .left = 2, .came = 2, .is_late = true, .cause = OVERFLOW,
	  .function = "tcp_conn_request" },
	{ TRUTH(SERVER_HOST, DROP, "the SYN was dropped where it came to"),
	  .left = 2, .came = 2, .is_late = true, .overflows = 1,
	  .cause = NETFILTER, .function = "nft_do_chain" },
};

/* @return when the client may write */
static int64_t connect_hosts(struct sim *sim, int64_t at,
			     const struct connect_rule *rule)
{
	const int64_t again_ns = rule->left ? SECOND_NS : 0;
	struct netobs_turn s = sim_turn(sim, 0, 0, 0), r = sim_turn(sim, 1, 0, 0);

	s.record.time_ns = s.sent_ns = at;
	s.attempts = rule->left ? 2 : 1;
	s.sent_bytes = s.attempts;
	s.out_bytes = rule->left ? rule->left : 1;
	r.in_bytes = rule->left ? rule->came : 1;
	s.out_ns = at + again_ns + 10 * SIM_US;
	r.in_ns = at + 10 * SIM_US + sim->way_ns[0] +
		  (r.in_bytes < s.sent_bytes ? again_ns : 0);
	r.record.time_ns = r.in_ns;
	r.answer_ns = r.in_ns + 10 * SIM_US + (rule->is_late ? again_ns : 0);
	s.in_ns = at + again_ns + 20 * SIM_US + sim->way_ns[0] + sim->way_ns[1];
	if (rule->cause)
		drop(s.out_bytes < s.sent_bytes ? &s : &r, 1, rule->cause,
		     rule->function);
	sim_counters(sim, 1, at)->listen_overflows += rule->overflows;
	sim_deliver(sim, 0, &s);
	sim_deliver(sim, 1, &r);
	return s.in_ns + 10 * SIM_US;
}

static void open_next(struct sim *sim)
{
	struct sim_connection *connection = &sim->connection;

	connection->id++;
	connection->port++;
	connection->wire_port++;
	memset(connection->offset, 0, sizeof(connection->offset));
}

TEST(a_rule_of_handshakes_names_the_place)
{
	static const struct connect_rule usual;

	for (size_t i = 0; i < ARRAY_SIZE(connect_rules) * RUNS; i++) {
		const struct connect_rule *rule = &connect_rules[i / RUNS];
		struct exchange turn = { .number = 0 };
		struct sim sim;

		draw_rule(&sim, SIM_TCP);
		for (int64_t at = sim.begin_ns; at < sim.until_ns; turn.number++) {
			const bool is_now = at >= sim.since_ns;

			if (turn.number % TURNS_OF_CONNECTION == 0) {
				open_next(&sim);
				at = connect_hosts(&sim, at,
						   is_now ? rule : &usual);
			}
			begin_turn(&turn, &sim, at);
			if (is_now && rule->drops_back)
				drop(&turn.back_s, 1, NETFILTER, "nft_do_chain");
			at = end_turn(&turn);
		}
		assert_truth(&sim, rule->truth);
	}
}

/* ---- Datagrams ------------------------------------------------------------------------------- */

/* One of three requests of the window does not arrive. */
struct datagram_rule {
	struct truth truth;
	bool has_number; /* an identification, as IPv4 has */
	bool drops;	 /* the server's host has a record of some */
};

/* @return when the client asks again */
static int64_t lose_request(struct exchange *turn,
			    const struct datagram_rule *rule)
{
	const int64_t at[MOMENTS] = { turn->at_ns, turn->at_ns, turn->at_ns,
				      turn->at_ns + turn->steps[ARRIVE] };

	stamp_message(&turn->s, &turn->r, at, 0);
	turn->s.acked_ns = 0;
	sim_deliver(turn->sim, 0, &turn->s);
	if (rule->drops && turn->number % 5 == 0) {
		turn->r.segment_ns = turn->r.ready_ns = turn->r.read_ns = 0;
		drop(&turn->r, turn->r.bytes, NETFILTER, "nft_do_chain");
		sim_deliver(turn->sim, 1, &turn->r);
	}
	return turn->at_ns + 250 * SIM_MS;
}

TEST(a_datagram_without_a_number_may_be_one_that_was_dropped)
{
	static const struct datagram_rule rules[] = {
		{ TRUTH(SERVER_HOST, DROP, "others were dropped"), false, true },
		{ TRUTH(NETWORK, LOSS, "none was dropped"), false, false },
		{ TRUTH(NETWORK, LOSS, "others were, by number"), true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules) * RUNS; i++) {
		const struct datagram_rule *rule = &rules[i / RUNS];
		struct exchange turn = { .number = 0 };
		struct sim sim;

		draw_rule(&sim, SIM_UDP);
		for (int64_t at = sim.begin_ns; at < sim.until_ns; turn.number++) {
			open_next(&sim);
			begin_turn(&turn, &sim, at);
			if (!rule->has_number)
				turn.s.ip_id = turn.r.ip_id = turn.back_s.ip_id =
					turn.back_r.ip_id = 0;
			at = at >= sim.since_ns && turn.number % 3 == 0 ?
				     lose_request(&turn, rule) :
				     end_turn(&turn);
		}
		assert_truth(&sim, rule->truth);
	}
}
