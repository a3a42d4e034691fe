/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Gives the judge what simulated hosts have recorded, whole or not. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "lib_seed.h"
#include "lib_test.h"
#include "sim_hosts.h"

#include <netinet/in.h>
#include <netobs/trace.h>

/* What the judge does not get. */
enum {
	WITHOUT_THREADS = 1 << 0,
	WITHOUT_LIMITS = 1 << 1,
	WITHOUT_QUEUES = 1 << 2,
	WITHOUT_HOSTS = 1 << 3,
	WITHOUT_DROPS = 1 << 4,
	WITHOUT_READY = 1 << 5,	 /* before Linux 6.3 */
	WITHOUT_CLIENT = 1 << 6, /* all records of this host */
	WITHOUT_SERVER = 1 << 7,
};

struct judging {
	uint32_t without;
	bool shuffles, doubles;
	uint32_t missing_percent;
	uint32_t one_of; /* of the messages of a connection, this many go together; 0: all are kept */
	int64_t since_ns; /* records from then on; 0: all */
};

union a_record {
	struct netobs_record record;
	struct netobs_turn turn;
	struct netobs_queue queue;
	struct netobs_host host;
};

/* @return 0: the record is left out */
static inline size_t thin_record(const struct judging *how, union a_record *any)
{
	struct netobs_turn *turn = &any->turn;

	if (any->record.type == NETOBS_RECORD_HOST && how->without & WITHOUT_READY)
		any->host.missing_points |= 1U << NETOBS_TRACE_READY;
	if (any->record.type == NETOBS_RECORD_QUEUE)
		return how->without & WITHOUT_QUEUES ? 0 : sizeof(any->queue);
	if (any->record.type == NETOBS_RECORD_HOST)
		return how->without & WITHOUT_HOSTS ? 0 : sizeof(any->host);
	if (how->without & WITHOUT_READY && turn->protocol == IPPROTO_UDP &&
	    turn->record.has & NETOBS_TURN_HAS_READ)
		return 0;
	if (how->one_of && turn->kind == NETOBS_TURN_MESSAGE)
		turn->one_of = how->one_of;
	if (how->without & WITHOUT_THREADS) {
		turn->record.has &= ~(uint32_t)NETOBS_TURN_HAS_THREADS;
		memset(turn->thread_ns, 0, sizeof(turn->thread_ns));
	}
	if (how->without & WITHOUT_LIMITS) {
		turn->record.has &= ~(uint32_t)NETOBS_TURN_HAS_LIMITS;
		memset(turn->limit_ns, 0, sizeof(turn->limit_ns));
	}
	if (how->without & WITHOUT_DROPS) {
		turn->dropped_bytes = turn->drops = turn->drop_reason = 0;
		memset(turn->drop_cause, 0, sizeof(turn->drop_cause));
		memset(turn->drop_function, 0, sizeof(turn->drop_function));
	}
	return sizeof(any->turn);
}

static inline bool is_left_out(const struct sim *sim, const struct judging *how,
			       uint32_t i)
{
	const bool is_server = sim->makers[i] == sim->hosts[1];
	const struct netobs_turn *turn = (const void *)sim->records[i];
	const bool is_message = turn->record.type == NETOBS_RECORD_TURN &&
				turn->kind == NETOBS_TURN_MESSAGE;

	if (how->since_ns &&
	    turn->record.time_ns < sim_clock(sim, is_server, how->since_ns))
		return true;
	if (how->one_of && is_message && sim->turns_of[i] % how->one_of)
		return true;

	return how->without & (is_server ? WITHOUT_SERVER : WITHOUT_CLIENT) ||
	       test_below(100) < how->missing_percent;
}

static inline void add_records(struct netobs_diagnosis *diagnosis,
			       const struct sim *sim, const struct judging *how)
{
	uint32_t *order = calloc(sim->n + 1, sizeof(*order));
	union a_record any;

	assert_non_null(order);
	for (uint32_t i = 0; i < sim->n; i++) {
		const uint32_t other = how->shuffles ? test_below(i + 1) : i;

		order[i] = order[other];
		order[other] = i;
	}
	for (uint32_t i = 0; i < sim->n; i++) {
		const uint32_t at = order[i];

		memcpy(&any, sim->records[at], sim->records[at]->sz);
		if (is_left_out(sim, how, at) || !thin_record(how, &any))
			continue;
		for (int times = 0; times <= how->doubles; times++)
			assert_int_equal(netobs_diagnosis_add(diagnosis,
							      sim->makers[at],
							      &any.record),
					 0);
	}
	free(order);
}

/* The side whose clock the window has: that of the lowest host with records. */
static inline int judged_side(const struct sim *sim, const struct judging *how)
{
	if (how->without & (WITHOUT_CLIENT | WITHOUT_SERVER))
		return how->without & WITHOUT_CLIENT ? 1 : 0;
	return sim->hosts[1] < sim->hosts[0];
}

/* Packets were lost in the window for no other reason, which takes much of it. */
static inline bool sim_has_noise(const struct sim *sim)
{
	return sim->faults[SIM_NOISE].added_ns * 100 >=
	       3 * (sim->until_ns - sim->since_ns);
}

struct judged {
	struct netobs_verdict verdicts[32];
	int n;
};

static inline void keep_verdict(const struct netobs_verdict *verdict, void *user)
{
	struct judged *judged = user;

	assert_true(judged->n < (int)ARRAY_SIZE(judged->verdicts));
	judged->verdicts[judged->n++] = *verdict;
}

static inline void count_verdict(const struct netobs_verdict *verdict, void *user)
{
	struct judged *judged = user;

	assert_int_equal(verdict->record.type, NETOBS_RECORD_VERDICT);
	judged->n++;
}

/* Of the window of @sim */
static inline void judge_all(struct netobs_diagnosis *diagnosis,
			     const struct sim *sim, const struct judging *how,
			     struct judged *ret_judged)
{
	const int side = judged_side(sim, how);

	int n;

	ret_judged->n = 0;
	n = netobs_diagnosis_judge(diagnosis, sim_clock(sim, side, sim->since_ns),
				   sim_clock(sim, side, sim->until_ns),
				   sim_clock(sim, side, sim->begin_ns),
				   keep_verdict, ret_judged);
	assert_int_equal(n, ret_judged->n);
}

/* @return whether a run has a verdict: at most one */
static inline bool judge_any(const struct sim *sim, const struct judging *how,
			     struct netobs_verdict *ret_verdict)
{
	struct netobs_diagnosis *diagnosis;
	static struct judged judged;

	assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
	add_records(diagnosis, sim, how);
	judge_all(diagnosis, sim, how, &judged);
	netobs_diagnosis_free(diagnosis);
	assert_in_range(judged.n, 0, 1);
	*ret_verdict = judged.verdicts[0];
	return judged.n;
}

/* The one verdict of a run. */
static inline struct netobs_verdict judge_one(const struct sim *sim,
					      const struct judging *how)
{
	struct netobs_verdict verdict;

	if (!judge_any(sim, how, &verdict)) {
		print_message("seed %u kind %d fault %u: no verdict\n",
			      sim->seed, (int)sim->kind, sim->faults[0].number);
		fail();
	}
	return verdict;
}

/* A rate of @percent or more: a few runs may have a rate that is lower by three standard deviations. */
static inline bool is_rate(uint32_t right, uint32_t n, uint32_t percent)
{
	const double mean = n * percent / 100.;

	return right >= mean || (mean - right) * (mean - right) <=
					9 * mean * (100 - percent) / 100;
}

#endif
