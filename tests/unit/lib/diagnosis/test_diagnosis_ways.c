// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Many messages at once, as of HTTP/2: the client's host has records of messages, the server's of slices, and no
 * turn is known. What the way of bytes takes tells of the place.
 */
#include "sim_judge.h"

#include <string.h>

#define SECOND_NS (1000LL * SIM_MS)

enum { STEP_MS = 40, WAY_MS = 4 };

/* What is wrong in the window. */
struct trouble {
	uint8_t place, cause;
	int64_t recovery_ns, gap_ns, reader_ns,
		qdisc_ns;    /* of the way to the server */
	uint64_t dropped;    /* by the server's host, in a second */
	uint64_t came_twice; /* bytes, in a second */
};

static void add_message(struct sim *sim, int direction, int64_t at,
			const struct trouble *trouble)
{
	struct netobs_turn turn = sim_turn(sim, 0, direction, 3000);

	turn.record.time_ns = at;
	turn.end_ns = at + WAY_MS * SIM_MS;
	if (direction == 0) {
		turn.sent_ns = turn.out_ns = at + SIM_US;
		turn.acked_ns = turn.end_ns;
		turn.part_ns[NETOBS_JOURNEY_NETWORK] = WAY_MS * SIM_MS;
		turn.part_ns[NETOBS_JOURNEY_RECOVERY] =
			(uint64_t)trouble->recovery_ns;
		turn.part_ns[NETOBS_JOURNEY_QDISC] = (uint64_t)trouble->qdisc_ns;
		turn.sent_bytes = turn.out_bytes = trouble->recovery_ns ? 4500 :
									  3000;
	} else {
		turn.in_ns = turn.segment_ns = turn.ready_ns = at;
		turn.read_ns = at + SIM_US;
		turn.in_bytes = 3000;
	}
	sim->connection.offset[direction] += 3000;
	sim_deliver(sim, 0, &turn);
}

static void add_slice(struct sim *sim, int direction, int64_t at,
		      const struct trouble *trouble)
{
	struct netobs_turn turn = sim_turn(sim, 1, direction, 200000);

	turn.kind = NETOBS_TURN_SLICE;
	turn.record.time_ns = at;
	turn.end_ns = at + SECOND_NS;
	if (direction == 0) {
		turn.in_bytes = 200000 + trouble->came_twice;
		turn.part_ns[NETOBS_JOURNEY_GAP] = (uint64_t)trouble->gap_ns;
		turn.part_ns[NETOBS_JOURNEY_READER] =
			SIM_MS + (uint64_t)trouble->reader_ns;
		turn.drops = trouble->dropped ? 10 : 0;
		turn.dropped_bytes = trouble->dropped;
		strcpy(turn.drop_cause, "SKB_DROP_REASON_NETFILTER_DROP");
		strcpy(turn.drop_function, "nft_do_chain");
	} else {
		turn.limit_ns[NETOBS_TURN_IDLE] = SECOND_NS;
		turn.part_ns[NETOBS_JOURNEY_NETWORK] = WAY_MS * SIM_MS;
		turn.sent_bytes = turn.out_bytes = 200000;
	}
	sim->connection.offset[direction] += 200000;
	sim_deliver(sim, 1, &turn);
}

static struct netobs_verdict judge(const struct trouble *trouble)
{
	static const struct trouble none;
	struct netobs_verdict verdict;
	struct sim sim;

	sim_draw(&sim, (uint32_t)test_random(), SIM_TCP);
	sim.connection.id = 1;
	sim.connection.port = sim.connection.wire_port = 40000;
	for (int64_t at = sim.begin_ns; at < sim.until_ns; at += STEP_MS * SIM_MS)
		for (int direction = 0; direction < 2; direction++)
			add_message(&sim, direction, at,
				    at < sim.since_ns ? &none : trouble);
	for (int64_t at = sim.begin_ns; at < sim.until_ns; at += SECOND_NS)
		for (int direction = 0; direction < 2; direction++)
			add_slice(&sim, direction, at,
				  at < sim.since_ns ? &none : trouble);
	sim_end(&sim);
	verdict = judge_one(&sim, &(struct judging){ 0 });
	sim_clear(&sim);
	return verdict;
}

TEST(the_way_of_many_messages_has_a_place)
{
	static const struct trouble troubles[] = {
		{ NETOBS_PLACE_SERVER_HOST, NETOBS_CAUSE_DROP,
		  .recovery_ns = 15 * SIM_MS, .gap_ns = 60 * SIM_MS,
		  .dropped = 6000 },
		{ NETOBS_PLACE_NETWORK, NETOBS_CAUSE_LOSS,
		  .recovery_ns = 15 * SIM_MS, .gap_ns = 60 * SIM_MS },
		/* They were sent once more for nothing. */
		{ NETOBS_PLACE_NONE, NETOBS_CAUSE_NONE,
		  .recovery_ns = 15 * SIM_MS, .came_twice = 100000 },
		{ NETOBS_PLACE_NETWORK, NETOBS_CAUSE_REORDERING,
		  .recovery_ns = 15 * SIM_MS, .gap_ns = 2 * SIM_MS,
		  .came_twice = 100000 },
		{ NETOBS_PLACE_SERVER_PROCESS, NETOBS_CAUSE_READS,
		  .reader_ns = 80 * SIM_MS },
		{ NETOBS_PLACE_CLIENT_HOST, NETOBS_CAUSE_QDISC,
		  .qdisc_ns = 30 * SIM_MS },
		{ NETOBS_PLACE_NONE, NETOBS_CAUSE_NONE, .dropped = 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(troubles); i++) {
		const struct netobs_verdict verdict = judge(&troubles[i]);

		assert_int_equal(verdict.place, troubles[i].place);
		assert_int_equal(verdict.cause, troubles[i].cause);
		/* Ways tell less than turns. */
		assert_true(!verdict.place || verdict.certainty == NETOBS_LIKELY);
	}
}
