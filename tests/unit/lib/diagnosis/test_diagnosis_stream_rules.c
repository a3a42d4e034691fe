// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What of a stream names the place that makes it slower: a rule in each row. */
#include "sim_rules.h"

enum end { NOBODY, SENDER, RECEIVER };

struct stream_rule {
	struct truth truth;
	/* In per cent: by how much the rate is lower, the bytes that are sent once more, also before, and those that
	 * are lost on the way, and the share of the time in which TCP waits for the limit. */
	uint32_t lower, again, again_before, lost, share;
	enum netobs_turn_limit limit;
	int64_t queued_ns, unread_ns, cpu_ns;
	enum end drops, link; /* where */
	const char *cause, *function;
};

static const struct stream_rule stream_rules[] = {
	{ TRUTH(NONE, NONE, "as before"), .lower = 0 },
	{ TRUTH(NONE, NONE, "lower, for no new reason"), .lower = 12 },
	{ TRUTH(NETWORK, DELAY, "much lower, for no new reason"), .lower = 30 },
	{ TRUTH(NONE, NONE, "lower, and the way is longer"), .lower = 12,
	  .limit = NETOBS_TURN_CWND, .share = 65 },
	{ TRUTH(NONE, NONE, "lower, and queues are longer"), .lower = 12,
	  .limit = NETOBS_TURN_QUEUED, .share = 35 },
	{ TRUTH(CLIENT_HOST, SEND_BUFFER, "lower, for a new reason"),
	  .lower = 12, .limit = NETOBS_TURN_BUFFER, .share = 35 },
	{ TRUTH(NONE, NONE, "a new reason, and not lower"),
	  .limit = NETOBS_TURN_BUFFER, .share = 35 },
	{ TRUTH(CLIENT_HOST, DROP, "dropped while the window is small"),
	  .lower = 50, .again = 5, .limit = NETOBS_TURN_CWND, .share = 50,
	  .drops = SENDER, .cause = NETFILTER, .function = "nft_do_chain" },
	{ TRUTH(SERVER_HOST, DROP, "dropped by the receiver"), .lower = 50,
	  .again = 5, .limit = NETOBS_TURN_CWND, .share = 50, .drops = RECEIVER,
	  .cause = NETFILTER, .function = "nft_do_chain" },
	{ TRUTH(SERVER_HOST, DROP, "dropped, and repaired"), .lower = 50,
	  .again = 5, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .drops = RECEIVER, .cause = NETFILTER, .function = "nft_do_chain" },
	{ TRUTH(SERVER_HOST, RECEIVE_BUFFER, "dropped for want of room"),
	  .lower = 50, .again = 5, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .drops = RECEIVER, .cause = "SKB_DROP_REASON_SOCKET_RCVBUFF",
	  .function = "tcp_data_queue" },
	{ TRUTH(CLIENT_HOST, QDISC, "dropped by a queue"), .lower = 50,
	  .again = 5, .limit = NETOBS_TURN_RECOVERY, .share = 50, .drops = SENDER,
	  .cause = "SKB_DROP_REASON_QDISC_DROP", .function = "sfq_enqueue" },
	{ TRUTH(NETWORK, LINK, "dropped by a queue without a link"),
	  .lower = 50, .again = 5, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .drops = SENDER, .cause = "SKB_DROP_REASON_QDISC_DROP",
	  .function = "noop_enqueue", .link = SENDER },
	{ TRUTH(NETWORK, LOSS, "a drop that takes nothing away"), .lower = 50,
	  .again = 5, .lost = 5, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .drops = RECEIVER, .cause = NO_REASON, .function = "tcp_v4_rcv" },
	{ TRUTH(NETWORK, LOSS, "lost while the window is small"), .lower = 50,
	  .again = 20, .lost = 20, .limit = NETOBS_TURN_CWND, .share = 50 },
	{ TRUTH(NETWORK, DELAY, "a small window, and nothing lost"),
	  .lower = 50, .limit = NETOBS_TURN_CWND, .share = 50 },
	{ TRUTH(NETWORK, LOSS, "most of what was sent once more was lost"),
	  .lower = 50, .again = 20, .lost = 12, .limit = NETOBS_TURN_RECOVERY,
	  .share = 50 },
	{ TRUTH(NETWORK, REORDERING, "little of what was sent once more was lost"),
	  .lower = 50, .again = 20, .lost = 6, .limit = NETOBS_TURN_RECOVERY,
	  .share = 50 },
	{ TRUTH(NETWORK, REORDERING, "nothing was sent once more"), .lower = 50,
	  .lost = 6, .limit = NETOBS_TURN_RECOVERY, .share = 50 },
	{ TRUTH(NETWORK, LINK, "lost while a link changes"), .lower = 50,
	  .again = 20, .lost = 12, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .link = RECEIVER },
	{ TRUTH(NETWORK, LINK, "late while a link changes"), .lower = 50,
	  .again = 20, .lost = 6, .limit = NETOBS_TURN_RECOVERY, .share = 50,
	  .link = SENDER },
	{ TRUTH(NETWORK, LOSS, "little is sent, and most of it is lost"),
	  .lower = 95, .lost = 70, .again_before = 30,
	  .limit = NETOBS_TURN_RECOVERY, .share = 50 },
	{ TRUTH(NETWORK, REORDERING, "little is sent, and most of it comes"),
	  .lower = 95, .lost = 30, .again_before = 30,
	  .limit = NETOBS_TURN_RECOVERY, .share = 50 },
	{ TRUTH(CLIENT_HOST, QDISC, "small queues are full"), .lower = 50,
	  .limit = NETOBS_TURN_QUEUED, .share = 50 },
	{ TRUTH(CLIENT_HOST, QDISC, "TCP waits for no reason, bytes in a queue"),
	  .lower = 50, .limit = NETOBS_TURN_OTHER, .share = 50,
	  .queued_ns = 2 * SIM_MS },
	{ TRUTH(NETWORK, DELAY, "TCP waits for no reason, no queue"),
	  .lower = 50, .limit = NETOBS_TURN_OTHER, .share = 50 },
	{ TRUTH(CLIENT_HOST, CPU, "TCP waits for no reason, threads for a CPU"),
	  .lower = 50, .limit = NETOBS_TURN_OTHER, .share = 50,
	  .cpu_ns = 700 * SIM_MS },
	{ TRUTH(SERVER_PROCESS, READS, "the reader has let bytes lie"),
	  .lower = 50, .limit = NETOBS_TURN_WINDOW, .share = 50,
	  .unread_ns = 300 * SIM_MS },
	{ TRUTH(SERVER_HOST, RECEIVE_BUFFER, "the reader is fast"), .lower = 50,
	  .limit = NETOBS_TURN_WINDOW, .share = 50, .unread_ns = 200 * SIM_MS },
	{ TRUTH(CLIENT_PROCESS, THINKS, "the writer has nothing to write"),
	  .lower = 50, .limit = NETOBS_TURN_IDLE, .share = 50 },
};

static uint32_t percent_of(uint64_t n, uint32_t percent)
{
	return (uint32_t)(n * percent / 100);
}

static void divide_second(const struct stream_rule *rule,
			  uint64_t limit_ns[NETOBS_TURN_LIMITS])
{
	static const uint32_t usual[NETOBS_TURN_LIMITS] = {
		[NETOBS_TURN_IDLE] = 45,
		[NETOBS_TURN_CWND] = 45,
		[NETOBS_TURN_OTHER] = 10,
	};

	for (int i = 0; i < NETOBS_TURN_LIMITS; i++)
		limit_ns[i] = percent_of(SECOND_NS / 100 * usual[i],
					 100 - rule->share);
	limit_ns[rule->limit] += percent_of(SECOND_NS, rule->share);
}

/* The seconds before have a rule, too, of which only the bytes that are sent once more are not 0. */
static void add_second(struct sim *sim, const struct stream_rule *rule, int64_t at)
{
	const int from = sim->way;
	const uint32_t bytes = percent_of(4000000, 100 - rule->lower);
	const uint32_t lost = percent_of(bytes, rule->lost);
	struct netobs_turn s = sim_turn(sim, from, from, bytes),
			   r = sim_turn(sim, !from, from, bytes);

	s.kind = r.kind = NETOBS_TURN_SLICE;
	s.record.time_ns = r.record.time_ns = at;
	s.end_ns = r.end_ns = at + SECOND_NS;
	divide_second(rule, s.limit_ns);
	s.thread_ns[NETOBS_TURN_WRITING][NETOBS_THREAD_SLEEP] =
		s.limit_ns[NETOBS_TURN_IDLE];
	s.thread_ns[NETOBS_TURN_WRITING][NETOBS_THREAD_WAIT] =
		(uint64_t)rule->cpu_ns;
	s.part_ns[NETOBS_JOURNEY_QDISC] = (uint64_t)rule->queued_ns;
	s.part_ns[NETOBS_JOURNEY_NETWORK] =
		(uint64_t)(sim->way_ns[0] + sim->way_ns[1]);
	r.unread_ns = (uint64_t)rule->unread_ns;
	s.sent_bytes = s.out_bytes = bytes + percent_of(bytes, rule->again);
	r.in_bytes = s.out_bytes - lost;
	if (rule->drops)
		drop(rule->drops == SENDER ? &s : &r,
		     (uint32_t)s.sent_bytes - bytes, rule->cause, rule->function);
	if (rule->drops == SENDER)
		r.in_bytes = s.out_bytes = bytes;
	sim_deliver(sim, from, &s);
	sim_deliver(sim, !from, &r);
	sim->connection.offset[from] += bytes;
	if (rule->link)
		change_link(sim, rule->link == SENDER ? from : !from, at);
}

TEST(a_rule_of_streams_names_the_place)
{
	for (size_t i = 0; i < ARRAY_SIZE(stream_rules) * RUNS; i++) {
		const struct stream_rule *rule = &stream_rules[i / RUNS];
		const struct stream_rule before = { .again = rule->again_before };
		struct sim sim;

		draw_rule(&sim, SIM_STREAM);
		for (int64_t at = sim.begin_ns; at < sim.until_ns; at += SECOND_NS)
			add_second(&sim, at < sim.since_ns ? &before : rule, at);
		assert_truth(&sim, rule->truth);
	}
}
