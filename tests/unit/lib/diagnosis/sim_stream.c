// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Streams: seconds of one direction, in which TCP and the processes divide their time. */
#include "sim_hosts.h"

#include <math.h>
#include <string.h>

#define SECOND_NS (1000LL * SIM_MS)

/* How a second of a stream divides: what the sender waits for, and what its reader does. */
struct second {
	double limits[NETOBS_TURN_LIMITS];
	enum netobs_thread_state writer, reader;
	double unread, lost;
	int64_t qdisc_ns, network_ns;
};

/* The part of a fault of a second. */
static void spoil(struct sim *sim, struct second *second, struct sim_fault *fault)
{
	const int side = sim->way;
	const bool is_sender = fault->place == sim_host(side) ||
			       fault->place == sim_process(side);
	double part = fmin(.9, fault->chance * (.8 + .4 * sim_unit(sim)));
	int limit = NETOBS_TURN_CWND;

	for (int i = 0; i < NETOBS_TURN_LIMITS; i++)
		second->limits[i] *= 1 - part;
	fault->added_ns += (int64_t)(part * SECOND_NS);
	switch (fault->cause) {
	case NETOBS_CAUSE_THINKS:
	case NETOBS_CAUSE_STOPPED:
	case NETOBS_CAUSE_READS:
	case NETOBS_CAUSE_CPU:
		limit = is_sender ? NETOBS_TURN_IDLE : NETOBS_TURN_WINDOW;
		*(is_sender ? &second->writer : &second->reader) =
			fault->cause == NETOBS_CAUSE_STOPPED ?
				NETOBS_THREAD_STOP :
			fault->cause == NETOBS_CAUSE_CPU ? NETOBS_THREAD_WAIT :
							   NETOBS_THREAD_SLEEP;
		second->unread = is_sender ? second->unread : .9;
		break;
	case NETOBS_CAUSE_SEND_BUFFER:
		limit = NETOBS_TURN_BUFFER;
		break;
	case NETOBS_CAUSE_RECEIVE_BUFFER:
		limit = NETOBS_TURN_WINDOW;
		break;
	case NETOBS_CAUSE_LOSS:
	case NETOBS_CAUSE_DROP:
		second->lost = .02;
		second->limits[NETOBS_TURN_RECOVERY] += part * .7;
		part *= .3;
		break;
	case NETOBS_CAUSE_QDISC:
		second->qdisc_ns = fault->ns;
		break;
	default:
		second->network_ns += fault->ns;
	}
	second->limits[limit] += part;
}

static void add_slice(struct sim *sim, struct netobs_turn *turn, int64_t at)
{
	turn->kind = NETOBS_TURN_SLICE;
	turn->record.time_ns = at;
	turn->end_ns = at + SECOND_NS;
	turn->attempts = 0;
	sim_deliver(sim,
		    turn->record.has & NETOBS_TURN_HAS_SEND ? sim->way : !sim->way,
		    turn);
}

static void divide(struct netobs_turn *turn, int phase, double ns,
		   enum netobs_thread_state state)
{
	turn->thread_ns[phase][NETOBS_THREAD_RUN] = (uint64_t)(ns * .05);
	turn->thread_ns[phase][state] += (uint64_t)(ns * .95);
}

static void stream_second(struct sim *sim, int64_t at, int64_t late)
{
	const int d = sim->way;
	const double busy = .3 + .2 * sim_unit(sim);
	struct second second = {
		.limits = { busy, 0, 0, .9 - busy, 0, 0, .1 },
		.writer = NETOBS_THREAD_SLEEP,
		.reader = NETOBS_THREAD_SLEEP,
		.unread = .05,
		.network_ns = sim->way_ns[0] + sim->way_ns[1],
	};
	struct sim_fault *fault = sim->faults;
	struct netobs_turn sent, came;
	double share = 1;
	uint32_t bytes;

	if (sim->n_faults && at >= sim->since_ns) {
		spoil(sim, &second, fault);
		share = second.limits[NETOBS_TURN_OTHER] / .1;
	}
	bytes = (uint32_t)(4e6 * share * (.95 + .1 * sim_unit(sim)));
	sent = sim_turn(sim, d, d, bytes);
	came = sim_turn(sim, !d, d, bytes);
	for (int i = 0; i < NETOBS_TURN_LIMITS; i++)
		sent.limit_ns[i] = (uint64_t)(second.limits[i] * SECOND_NS);
	divide(&sent, NETOBS_TURN_WRITING, second.limits[0] * SECOND_NS,
	       second.writer);
	divide(&came, NETOBS_TURN_READING, second.unread * SECOND_NS,
	       second.reader);
	came.unread_ns = (uint64_t)(second.unread * SECOND_NS);
	sent.part_ns[NETOBS_JOURNEY_TCP] = 3 * SIM_MS;
	sent.part_ns[NETOBS_JOURNEY_QDISC] =
		(uint64_t)(second.qdisc_ns + sim_some(sim, 20 * SIM_US));
	sent.part_ns[NETOBS_JOURNEY_NETWORK] = (uint64_t)second.network_ns;
	came.part_ns[NETOBS_JOURNEY_STACK] = 20 * SIM_US;
	came.part_ns[NETOBS_JOURNEY_READER] = came.unread_ns / 20;
	sent.sent_bytes = bytes + (uint64_t)(second.lost * bytes);
	sent.out_bytes = sent.sent_bytes;
	came.in_bytes = came.segment_bytes = bytes;
	sent.largest_sent = came.largest_in = 60000;
	if (second.lost > 0 && fault->cause == NETOBS_CAUSE_DROP) {
		struct netobs_turn *drops =
			fault->place == sim_host(d) ? &sent : &came;

		drops->drops = 20;
		drops->dropped_bytes = (uint64_t)(second.lost * bytes);
		strcpy(drops->drop_cause, "SKB_DROP_REASON_NETFILTER_DROP");
		strcpy(drops->drop_function, "nft_do_chain");
		sent.out_bytes -= sent.dropped_bytes;
		came.in_bytes += came.dropped_bytes;
	}
	add_slice(sim, &sent, at);
	add_slice(sim, &came, at + late);
	sim_note_wait(sim, d, NETOBS_QUEUE_QDISC, at, second.qdisc_ns * 8);
	sim_note_wait(sim, !d, NETOBS_QUEUE_UPLINK, at, SECOND_NS);
	for (int side = 0; side < 2; side++)
		if (sim_find(sim, sim_host(side), NETOBS_CAUSE_CPU, at))
			sim_note_wait(sim, side, NETOBS_QUEUE_CPU, at,
				      SECOND_NS / 4);
	sim->connection.offset[d] += bytes;
}

void sim_stream(struct sim *sim)
{
	const int64_t late = (int64_t)(sim_unit(sim) * 30 * SIM_MS);

	for (int64_t at = sim->begin_ns; at < sim->until_ns; at += SECOND_NS)
		stream_second(sim, at, late);
}
