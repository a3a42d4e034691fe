/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Tables of rules of the judge: steady turns or streams, of which one thing is different in the window. Most rows
 * have a neighbour without the evidence, which is judged otherwise.
 */
#ifndef SIM_RULES_H
#define SIM_RULES_H

#include "sim_judge.h"

#include <string.h>

#define SECOND_NS (1000LL * SIM_MS)

enum { RUNS = 2 }; /* of each row */

/* What the judge has to say. Places are those of a request, or of a stream to the server. */
struct truth {
	uint8_t place, cause;
	const char *name;
};

#define TRUTH(place, cause, name)                                \
	{                                                        \
		NETOBS_PLACE_##place, NETOBS_CAUSE_##cause, name \
	}

#define NETFILTER "SKB_DROP_REASON_NETFILTER_DROP"
#define NO_SOCKET "SKB_DROP_REASON_NO_SOCKET"
#define NO_REASON "SKB_DROP_REASON_NOT_SPECIFIED"

static inline uint8_t mirrored(uint8_t place)
{
	static const uint8_t other[] = {
		[NETOBS_PLACE_CLIENT_PROCESS] = NETOBS_PLACE_SERVER_PROCESS,
		[NETOBS_PLACE_CLIENT_HOST] = NETOBS_PLACE_SERVER_HOST,
		[NETOBS_PLACE_NETWORK] = NETOBS_PLACE_NETWORK,
		[NETOBS_PLACE_SERVER_HOST] = NETOBS_PLACE_CLIENT_HOST,
		[NETOBS_PLACE_SERVER_PROCESS] = NETOBS_PLACE_CLIENT_PROCESS,
	};

	return other[place];
}

/* The records of @sim, which is cleared, have the verdict. */
static inline void assert_truth(struct sim *sim, struct truth truth)
{
	struct netobs_verdict verdict;

	if (sim->kind == SIM_STREAM && sim->way)
		truth.place = mirrored(truth.place);
	sim_end(sim);
	verdict = judge_one(sim, &(struct judging){ 0 });
	if (verdict.place != truth.place || verdict.cause != truth.cause)
		print_message("%s, seed %u: %s %s\n", truth.name, sim->seed,
			      netobs_verdict_place_name(verdict.place),
			      netobs_verdict_cause_name(verdict.cause));
	assert_int_equal(verdict.place, truth.place);
	assert_int_equal(verdict.cause, truth.cause);
	sim_clear(sim);
}

static inline void drop(struct netobs_turn *turn, uint32_t bytes,
			const char *cause, const char *function)
{
	turn->drops = 1;
	turn->dropped_bytes = bytes;
	strcpy(turn->drop_cause, cause);
	strcpy(turn->drop_function, function);
}

/* Hosts of which all that happens is in a row. */
static inline void draw_rule(struct sim *sim, enum sim_kind kind)
{
	sim_draw(sim, (uint32_t)test_random(), kind);
	sim->is_noisy = false;
	sim->connection = (struct sim_connection){
		.id = 1, .port = 40000, .wire_port = 50000, .seq = { 7, 9 }
	};
}

static inline void change_link(struct sim *sim, int side, int64_t at)
{
	sim_counters(sim, side, at)->carrier_changes = 1;
}

#endif
