// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Records that are out of order, missing, strange or false: what the judge makes of them. */
#include "lib_seed.h"
#include "lib_test.h"
#include "sim_judge.h"

#include <malloc.h>

enum { RUNS_DEFAULT = 40, MANY = 1000000, FEW = 65536 };

/* Of two hosts, as many records of each type, with what their tables need. */
#define MEMORY_MOST                                                  \
	(2ULL * FEW *                                                \
	 (sizeof(struct netobs_turn) + sizeof(struct netobs_queue) + \
	  sizeof(struct netobs_host) + 512))

static uint32_t n_runs(void)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	return cases ? 10 * (uint32_t)strtoul(cases, NULL, 0) : RUNS_DEFAULT;
}

static void run_drawn(struct sim *sim, enum sim_kind kind)
{
	sim_draw(sim, (uint32_t)test_random(), kind);
	while (!sim_add_fault(sim, test_below(SIM_FAULTS)))
		;
	sim_run(sim);
}

/* Of all kinds, mostly TCP */
static void run_any(struct sim *sim)
{
	const uint32_t any = test_below(6);

	run_drawn(sim, any < 4 ? SIM_TCP : any < 5 ? SIM_UDP : SIM_STREAM);
}

static void print_wrong(const struct sim *sim,
			const struct netobs_verdict *verdict)
{
	print_message(
		"seed %u kind %d: fault %u variant %u, %s %s; judged %s %s %s\n",
		sim->seed, (int)sim->kind, sim->faults[0].number,
		sim->faults[0].variant,
		netobs_verdict_place_name(sim->faults[0].place),
		netobs_verdict_cause_name(sim->faults[0].cause),
		netobs_certainty_name(verdict->certainty),
		netobs_verdict_place_name(verdict->place),
		netobs_verdict_cause_name(verdict->cause));
}

static void assert_not_wrong(const struct sim *sim,
			     const struct netobs_verdict *verdict)
{
	if (verdict->certainty != NETOBS_CERTAIN ||
	    verdict->place == NETOBS_PLACE_NONE ||
	    verdict->place == sim->faults[0].place ||
	    (verdict->place == NETOBS_PLACE_NETWORK && sim_has_noise(sim)))
		return;
	print_wrong(sim, verdict);
	fail();
}

/* ---- Order and gaps --------------------------------------------------------------------------- */

TEST(the_order_of_records_does_not_matter)
{
	struct netobs_verdict verdict, other;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_any(&sim);
		verdict = judge_one(&sim, &(struct judging){ 0 });
		other = judge_one(&sim, &(struct judging){ .shuffles = true,
							   .doubles = i % 2 });
		if (memcmp(&verdict, &other, sizeof(verdict)) != 0) {
			print_wrong(&sim, &verdict);
			print_wrong(&sim, &other);
			fail();
		}
		sim_clear(&sim);
	}
}

TEST(missing_records_make_no_verdict_wrong)
{
	const struct judging how = { .missing_percent = 30, .shuffles = true };
	struct netobs_verdict verdict;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_any(&sim);
		verdict = judge_one(&sim, &how);
		assert_not_wrong(&sim, &verdict);
		sim_clear(&sim);
	}
}

/* What becomes of datagrams that have arrived is not seen. */
static void assert_unseen(const struct sim *sim,
			  const struct netobs_verdict *verdict)
{
	assert_true(verdict->missing_points >> NETOBS_TRACE_READY & 1);
	assert_true(sim->kind != SIM_UDP || !verdict->place ||
		    verdict->certainty == NETOBS_NOT_SURE);
}

TEST(without_an_input_no_other_place_is_certain)
{
	struct netobs_verdict verdict;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_any(&sim);
		for (uint32_t input = WITHOUT_THREADS; input <= WITHOUT_READY;
		     input <<= 1) {
			const struct judging how = { .without = input };

			/* Of datagrams that no host sees being read, no turn may be known. */
			if (!judge_any(&sim, &how, &verdict)) {
				assert_int_equal(input, WITHOUT_READY);
				assert_int_equal(sim.kind, SIM_UDP);
				continue;
			}
			if (verdict.certainty == NETOBS_CERTAIN &&
			    verdict.place && verdict.place != sim.faults[0].place)
				print_message("without %u:\n", input);
			assert_not_wrong(&sim, &verdict);
			if (input == WITHOUT_READY)
				assert_unseen(&sim, &verdict);
		}
		sim_clear(&sim);
	}
}

/* Some records are missing, so that one host has as many as the other one, of others. Pairs bound the clocks. */
TEST(datagrams_with_equal_data_make_no_verdict_wrong)
{
	struct netobs_verdict verdict;
	uint32_t n_bounds = 0;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		const struct judging how = { .missing_percent = i % 3 };

		sim_draw(&sim, (uint32_t)test_random(), SIM_UDP);
		sim.n_data = 1 + test_below(3);
		while (!sim_add_fault(&sim, test_below(SIM_FAULTS)))
			;
		sim_run(&sim);
		/* If each of equal ones may be another one, no turn is known. */
		if (judge_any(&sim, &how, &verdict)) {
			assert_not_wrong(&sim, &verdict);
			n_bounds += !how.missing_percent &&
				    verdict.clock_bound_ns;
		}
		sim_clear(&sim);
	}
	/* A third of the runs has all records. */
	assert_true(6 * n_bounds > n_runs());
}

/* ---- One host --------------------------------------------------------------------------------- */

TEST(one_host_alone_blames_itself_or_what_is_beyond)
{
	struct netobs_verdict verdict;
	struct sim sim;

	for (uint32_t i = 0; i < 2 * n_runs(); i++) {
		const int side = i % 2;
		const uint8_t own[] = { NETOBS_PLACE_NONE, NETOBS_PLACE_BEYOND,
					sim_process(side), sim_host(side) };

		run_any(&sim);
		verdict = judge_one(
			&sim,
			&(struct judging){ .without = side ? WITHOUT_CLIENT :
							     WITHOUT_SERVER });
		if (!memchr(own, verdict.place, sizeof(own)) ||
		    !(verdict.missing & NETOBS_MISSING_HOST)) {
			print_wrong(&sim, &verdict);
			fail();
		}
		if (verdict.place != NETOBS_PLACE_BEYOND)
			assert_not_wrong(&sim, &verdict);
		sim_clear(&sim);
	}
}

/* ---- Strangers -------------------------------------------------------------------------------- */

static const struct netobs_verdict *find_service(const struct judged *judged,
						 const struct sim *sim)
{
	for (int i = 0; i < judged->n; i++) {
		const uint16_t port = judged->verdicts[i].server_port;

		if (judged->verdicts[i].server[15] == sim->service &&
		    judged->verdicts[i].client[15] == sim->client &&
		    (port == 8080 || port == 80 + sim->service))
			return &judged->verdicts[i];
	}
	return NULL;
}

/* As if the host's clock were ahead by as much. */
static void shift(union a_record *any, int64_t by_ns)
{
	int64_t *const stamps = &any->turn.written_ns;
	const size_t n = (offsetof(struct netobs_turn, end_ns) -
			  offsetof(struct netobs_turn, written_ns)) /
				 sizeof(*stamps) +
			 1;

	any->record.time_ns += by_ns;
	for (size_t i = 0; any->record.type == NETOBS_RECORD_TURN && i < n; i++)
		stamps[i] += stamps[i] ? by_ns : 0;
	if (any->record.type == NETOBS_RECORD_QUEUE)
		any->queue.end_ns += by_ns;
	if (any->record.type == NETOBS_RECORD_HOST)
		any->host.end_ns += by_ns;
}

/* A third host has a connection with the same tuple, at another time: it replays what it has heard. */
static void add_replay(struct netobs_diagnosis *diagnosis, struct sim *sim,
		       unsigned int host, int64_t by_ns)
{
	union a_record any;

	for (uint32_t i = 0; i < sim->n; i++) {
		if (sim->makers[i] != sim->hosts[1])
			continue;
		memcpy(&any, sim->records[i], sim->records[i]->sz);
		shift(&any, by_ns);
		if (any.record.type == NETOBS_RECORD_TURN)
			any.turn.seq += 1 + test_below(UINT32_MAX);
		assert_int_equal(
			netobs_diagnosis_add(diagnosis, host, &any.record), 0);
	}
}

TEST(records_of_a_stranger_are_not_joined)
{
	static struct judged judged;
	struct netobs_diagnosis *diagnosis;
	const struct netobs_verdict *found;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		const unsigned int hosts[] = { 5, 6 };

		run_drawn(&sim, SIM_TCP);
		for (uint32_t at = 0; at < sim.n; at++)
			sim.makers[at] = hosts[sim.makers[at] == sim.hosts[1]];
		memcpy(sim.hosts, hosts, sizeof(hosts));
		assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
		add_records(diagnosis, &sim, &(struct judging){ 0 });
		add_replay(diagnosis, &sim, 7,
			   -(int64_t)test_below(5) * NSEC_PER_SEC);
		judge_all(diagnosis, &sim, &(struct judging){ 0 }, &judged);
		found = find_service(&judged, &sim);
		assert_non_null(found);
		assert_not_wrong(&sim, found);
		netobs_diagnosis_free(diagnosis);
		sim_clear(&sim);
	}
}

/* Any bytes, but for what the caller has to know. */
static void lie(union a_record *any)
{
	static const int64_t limits[] = { 0,	     1,
					  INT64_MAX, INT64_MIN,
					  1LL << 62, 946684800000000000 };
	const uint32_t types[] = { NETOBS_RECORD_TURN, NETOBS_RECORD_QUEUE,
				   NETOBS_RECORD_HOST };
	const size_t sizes[] = { sizeof(any->turn), sizeof(any->queue),
				 sizeof(any->host) };
	const uint32_t which = test_below(3);

	for (uint32_t i = test_below(30); i; i--) {
		const size_t at = test_below(sizeof(*any) / 8) * 8;
		const uint64_t value = test_below(2) ?
					       (uint64_t)limits[test_below(6)] :
					       test_random();

		if (at >= sizeof(struct netobs_record))
			memcpy((char *)any + at, &value, sizeof(value));
	}
	if (test_below(2))
		any->record.time_ns = limits[test_below(6)];
	any->record.sz = sizes[which];
	any->record.type = types[which];
	any->record.has = (uint32_t)test_random();
}

TEST(a_host_that_lies_harms_nothing)
{
	static struct judged judged;
	struct netobs_diagnosis *diagnosis;
	union a_record any;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_drawn(&sim, SIM_TCP);
		assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
		add_records(diagnosis, &sim, &(struct judging){ 0 });
		for (uint32_t at = 0; at < sim.n; at++) {
			memcpy(&any, sim.records[at], sim.records[at]->sz);
			lie(&any);
			netobs_diagnosis_add(diagnosis, test_below(64),
					     &any.record);
		}
		judged.n = 0;
		assert_true(netobs_diagnosis_judge(diagnosis, 0, 0, 0,
						   count_verdict, &judged) >= 0);
		for (int64_t side = 0; side < 4; side++)
			netobs_diagnosis_judge(diagnosis, side, INT64_MAX - side,
					       -side, count_verdict, &judged);
		netobs_diagnosis_free(diagnosis);
		sim_clear(&sim);
	}
}

/* Of the sanitizer, if it is in use. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	const struct mallinfo2 info = mallinfo2();

	return __sanitizer_get_current_allocated_bytes ?
		       __sanitizer_get_current_allocated_bytes() :
		       info.uordblks + info.hblkhd;
}

TEST(memory_is_bounded)
{
	NETOBS_OPTS(netobs_diagnosis_opts, opts, .max_turns = FEW);
	const size_t before = allocated();
	struct netobs_diagnosis *diagnosis;
	union a_record any;
	static struct judged judged;
	struct sim sim;

	sim_draw(&sim, (uint32_t)test_random(), SIM_TCP);
	sim_run(&sim);
	assert_int_equal(netobs_diagnosis_new(&opts, &diagnosis), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		const struct netobs_record *record = sim.records[i % sim.n];

		memcpy(&any, record, record->sz);
		shift(&any, i * NSEC_PER_MSEC);
		if (record->type == NETOBS_RECORD_TURN) {
			any.turn.connection += i;
			any.turn.seq += i;
			any.turn.wire_src[15] ^= i >> 8;
		}
		netobs_diagnosis_add(diagnosis, i % 2, &any.record);
	}
	judged.n = 0;
	print_message("%zu MB\n", (allocated() - before) >> 20);
	assert_true(allocated() - before < MEMORY_MOST);
	assert_true(netobs_diagnosis_judge(diagnosis, 0, 0, 0, count_verdict,
					   &judged) >= 0);
	assert_true(allocated() - before < MEMORY_MOST);
	netobs_diagnosis_free(diagnosis);
	sim_clear(&sim);
}

/* ---- Several services ------------------------------------------------------------------------- */

TEST(each_client_and_service_has_a_verdict)
{
	static struct judged judged;
	struct netobs_diagnosis *diagnosis;
	enum { SERVICES = 5 };
	struct sim sims[SERVICES];

	for (uint32_t run = 0; run < n_runs() / 8; run++) {
		assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
		for (uint32_t i = 0; i < SERVICES; i++) {
			struct sim *sim = &sims[i];

			sim_draw(sim, (uint32_t)test_random(), SIM_TCP);
			sim->begin_ns = sims[0].begin_ns;
			sim->since_ns = sims[0].since_ns;
			sim->until_ns = sims[0].until_ns;
			sim->hosts[0] = 2 * i;
			sim->hosts[1] = 2 * i + 1;
			sim->client = sim->service = (uint8_t)(10 + i);
			sim->offset_ns = 0;
			if (i)
				sim_add_fault(sim, test_below(SIM_FAULTS));
			sim_run(sim);
			add_records(diagnosis, sim, &(struct judging){ 0 });
		}
		judge_all(diagnosis, &sims[0], &(struct judging){ 0 }, &judged);
		assert_int_equal(judged.n, SERVICES);
		for (uint32_t i = 0; i < SERVICES; i++) {
			const struct netobs_verdict *found =
				find_service(&judged, &sims[i]);

			assert_non_null(found);
			if (sims[i].n_faults)
				assert_not_wrong(&sims[i], found);
			if (i)
				assert_true(judged.verdicts[i].blamed_ns <=
					    judged.verdicts[i - 1].blamed_ns);
			sim_clear(&sims[i]);
		}
		netobs_diagnosis_free(diagnosis);
	}
}

/* ---- Norms, thinned records and arguments ------------------------------------------------------ */

TEST(a_verdict_is_a_norm_for_its_service)
{
	static struct judged judged;
	struct netobs_diagnosis *diagnosis;
	struct netobs_verdict norm, without;
	struct sim sim;
	uint32_t found = 0, n = 0;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_drawn(&sim, SIM_TCP);
		if (sim.faults[0].added_ns < NSEC_PER_SEC) {
			sim_clear(&sim);
			continue;
		}
		norm = judge_one(&sim, &(struct judging){ 0 });
		/* The time before is missing: it begins with the window. */
		assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
		add_records(diagnosis, &sim,
			    &(struct judging){ .since_ns = sim.since_ns });
		judge_all(diagnosis, &sim, &(struct judging){ 0 }, &judged);
		assert_int_equal(judged.n, 1);
		without = judged.verdicts[0];
		assert_int_not_equal(without.certainty, NETOBS_CERTAIN);
		assert_true(without.missing & NETOBS_MISSING_BEFORE);
		if (without.place)
			assert_int_equal(netobs_diagnosis_add(diagnosis, 0,
							      &without.record),
					 -ENODATA);
		assert_int_equal(
			netobs_diagnosis_add(diagnosis, 0, &norm.record), 0);
		judge_all(diagnosis, &sim, &(struct judging){ 0 }, &judged);
		assert_false(judged.verdicts[0].missing & NETOBS_MISSING_BEFORE);
		assert_int_equal(judged.verdicts[0].turn_before_ns,
				 norm.place ? norm.turn_before_ns : norm.turn_ns);
		assert_not_wrong(&sim, &judged.verdicts[0]);
		n++;
		found += judged.verdicts[0].place == sim.faults[0].place;
		if (judged.verdicts[0].place != sim.faults[0].place)
			print_wrong(&sim, &judged.verdicts[0]);
		netobs_diagnosis_free(diagnosis);
		sim_clear(&sim);
	}
	assert_true(is_rate(found, n, 85));
}

/* A record of one of n turns stands for all. */
TEST(thinned_turns_are_weighted)
{
	const struct judging how = { .one_of = 4 };
	struct netobs_verdict all, thinned;
	uint64_t blamed = 0, of_thinned = 0;
	struct sim sim;

	for (uint32_t i = 0; i < n_runs(); i++) {
		run_drawn(&sim, SIM_TCP);
		all = judge_one(&sim, &(struct judging){ 0 });
		thinned = judge_one(&sim, &how);
		assert_true(thinned.missing & NETOBS_MISSING_RECORDS);
		assert_false(all.missing & NETOBS_MISSING_RECORDS);
		assert_not_wrong(&sim, &thinned);
		blamed += all.all_blamed_ns;
		of_thinned += thinned.all_blamed_ns;
		sim_clear(&sim);
	}
	print_message("%.1f s, of thinned turns %.1f\n", (double)blamed / 1e9,
		      (double)of_thinned / 1e9);
	assert_true(of_thinned > blamed * 2 / 3 && of_thinned < blamed * 3 / 2);
}

TEST(wrong_arguments_are_refused)
{
	struct netobs_diagnosis_opts opts = { .sz = 1 };
	struct netobs_turn turn = { .record = { .sz = sizeof(turn),
						.type = NETOBS_RECORD_TURN,
						.time_ns = 5 } };
	struct netobs_diagnosis *diagnosis;
	static struct judged judged;

	assert_int_equal(netobs_diagnosis_new(NULL, NULL), -EINVAL);
	assert_int_equal(netobs_diagnosis_new(&opts, &diagnosis), -EINVAL);
	assert_int_equal(netobs_diagnosis_new(NULL, &diagnosis), 0);
	assert_int_equal(netobs_diagnosis_add(NULL, 0, &turn.record), -EINVAL);
	assert_int_equal(netobs_diagnosis_add(diagnosis, 0, NULL), -EINVAL);
	assert_int_equal(netobs_diagnosis_add(diagnosis,
					      NETOBS_DIAGNOSIS_HOSTS_MAX,
					      &turn.record),
			 -EINVAL);
	assert_int_equal(netobs_diagnosis_judge(NULL, 0, 0, 0, keep_verdict,
						&judged),
			 -EINVAL);
	assert_int_equal(netobs_diagnosis_judge(diagnosis, 0, 0, 0, NULL, NULL),
			 -EINVAL);
	assert_int_equal(netobs_diagnosis_judge(diagnosis, 20, 10, 0,
						keep_verdict, &judged),
			 -EINVAL);
	assert_int_equal(netobs_diagnosis_judge(diagnosis, 10, 20, 15,
						keep_verdict, &judged),
			 -EINVAL);
	assert_int_equal(netobs_diagnosis_judge(diagnosis, 0, 0, 0,
						keep_verdict, &judged),
			 0);
	netobs_diagnosis_free(diagnosis);
	netobs_diagnosis_free(NULL);
}
