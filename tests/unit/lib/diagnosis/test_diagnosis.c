// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Two simulated hosts that talk, with one fault, two or none: what the judge says of their records is compared
 * with the truth. NETOBS_TEST_CASES: runs of each fault.
 */
#include "lib_seed.h"
#include "lib_test.h"
#include "sim_judge.h"

#include <math.h>

enum {
	CASES_DEFAULT = 3,
	/* A fault that takes less of the window may be missed. */
	EFFECT_PERCENT = 10,
	HALF_PERCENT =
		50, /* of the window: with more, nothing may be sent any more */
	PLACE_PERCENT = 95,
	CAUSE_PERCENT = 90,
	CULPRIT_PERCENT = 95,
	SECOND_PERCENT = 75,
	STREAM_PERCENT = 90,
};

/* How many verdicts were right, of those that had to be. */
struct score {
	uint32_t n, places, causes, certain, wrong;
	uint32_t filled, culprits; /* by others, who are named */
};

static uint32_t n_cases(void)
{
	const char *cases = getenv("NETOBS_TEST_CASES");

	return cases ? (uint32_t)strtoul(cases, NULL, 0) : CASES_DEFAULT;
}

static bool is_verbose(void)
{
	return getenv("NETOBS_TEST_VERBOSE");
}

static int64_t effect_percent(const struct sim *sim, uint32_t fault)
{
	return sim->faults[fault].added_ns * 100 /
	       (sim->until_ns - sim->since_ns);
}

/* What else is lost counts, too, if it takes long. */
static bool is_fault(const struct sim *sim, uint8_t place, uint8_t cause)
{
	for (uint32_t i = 0; i < sim->n_faults; i++)
		if (sim->faults[i].place == place &&
		    (!cause || sim->faults[i].cause == cause))
			return true;
	return sim_has_noise(sim) && place == NETOBS_PLACE_NETWORK &&
	       (!cause || cause == NETOBS_CAUSE_LOSS);
}

static void print_run(const struct sim *sim,
		      const struct netobs_verdict *verdict, const char *what)
{
	print_message("%s: seed %u kind %d, effect %d %%", what, sim->seed,
		      (int)sim->kind,
		      sim->n_faults ? (int)effect_percent(sim, 0) : 0);
	for (uint32_t i = 0; i < sim->n_faults; i++)
		print_message(", %s %s (number %u variant %u)",
			      netobs_verdict_place_name(sim->faults[i].place),
			      netobs_verdict_cause_name(sim->faults[i].cause),
			      sim->faults[i].number, sim->faults[i].variant);
	print_message("; judged %s %s %s, blamed %.1f ms of %.1f, true %.1f\n",
		      netobs_certainty_name(verdict->certainty),
		      netobs_verdict_place_name(verdict->place),
		      netobs_verdict_cause_name(verdict->cause),
		      (double)verdict->blamed_ns / 1e6,
		      (double)verdict->all_blamed_ns / 1e6,
		      sim->n_faults ? (double)sim->faults[0].added_ns / 1e6 : 0);
}

/* A verdict must not be certain of a place that has no fault. */
static bool is_wrong(const struct sim *sim, const struct netobs_verdict *verdict)
{
	return verdict->certainty == NETOBS_CERTAIN &&
	       verdict->place != NETOBS_PLACE_NONE &&
	       !is_fault(sim, verdict->place, 0);
}

/* Others fill the queue, or have the CPU: are they named first? */
static void add_culprit(struct score *score, const struct sim *sim,
			const struct netobs_verdict *verdict)
{
	const struct netobs_queue_share *first = verdict->shares;
	const uint8_t cause = sim->faults[0].cause;

	if (cause != NETOBS_CAUSE_CPU && cause != NETOBS_CAUSE_QUEUE &&
	    (cause != NETOBS_CAUSE_QDISC || !(sim->faults[0].variant & 1)))
		return;
	score->filled++;
	score->culprits += verdict->n_shares &&
			   (cause == NETOBS_CAUSE_QUEUE ?
				    first->src[15] == SIM_OTHER :
				    first->pid == SIM_RIVAL);
}

static void add_score(struct score *score, const struct sim *sim,
		      const struct netobs_verdict *verdict)
{
	const bool is_wanted = effect_percent(sim, 0) >= EFFECT_PERCENT;
	const bool has_place = is_fault(sim, verdict->place, 0);
	const bool has_cause = is_fault(sim, verdict->place, verdict->cause);

	score->wrong += is_wrong(sim, verdict);
	if (is_wanted && has_cause)
		add_culprit(score, sim, verdict);
	score->n += is_wanted;
	score->places += is_wanted && has_place;
	score->causes += is_wanted && has_cause;
	score->certain += is_wanted && has_place &&
			  verdict->certainty == NETOBS_CERTAIN;
	if (is_wrong(sim, verdict) || (is_wanted && !has_cause && is_verbose()))
		print_run(sim, verdict,
			  is_wrong(sim, verdict) ? "WRONG" : "missed");
}

static struct score judge_fault(enum sim_kind kind, uint32_t number,
				uint32_t cases)
{
	struct score score = { 0 };
	struct netobs_verdict verdict;
	struct sim sim;

	for (uint32_t i = 0; i < cases; i++) {
		sim_draw(&sim, (uint32_t)test_random(), kind);
		if (!sim_add_fault(&sim, number))
			return score;
		sim_run(&sim);
		verdict = judge_one(&sim, &(struct judging){ 0 });
		add_score(&score, &sim, &verdict);
		sim_clear(&sim);
	}
	if (is_verbose())
		print_message(
			"kind %d %-15s %-15s n %3u place %3u cause %3u certain %3u\n",
			(int)kind, netobs_verdict_place_name(sim.faults[0].place),
			netobs_verdict_cause_name(sim.faults[0].cause), score.n,
			score.places, score.causes, score.certain);
	return score;
}

static void check_kind(enum sim_kind kind, uint32_t cases, uint32_t place_percent)
{
	struct score all = { 0 };

	for (uint32_t number = 0; number < SIM_FAULTS; number++) {
		const struct score score = judge_fault(kind, number, cases);

		all.n += score.n;
		all.places += score.places;
		all.causes += score.causes;
		all.wrong += score.wrong;
		all.certain += score.certain;
		all.filled += score.filled;
		all.culprits += score.culprits;
		/* Of each fault, if there are enough. */
		if (score.n >= 50 &&
		    (score.places * 100 < score.n * place_percent ||
		     score.causes * 100 < score.n * CAUSE_PERCENT))
			print_message("fault %u: %u of %u\n", number,
				      score.causes, score.n);
	}
	print_message(
		"kind %d: of %u, %u places, %u causes, %u certain, %u wrong; %u of %u culprits\n",
		(int)kind, all.n, all.places, all.causes, all.certain,
		all.wrong, all.culprits, all.filled);
	assert_true(is_rate(all.culprits, all.filled, CULPRIT_PERCENT));
	assert_int_equal(all.wrong, 0);
	assert_true(is_rate(all.places, all.n, place_percent));
	assert_true(is_rate(all.causes, all.n, CAUSE_PERCENT));
}

TEST(a_fault_of_a_connection_is_placed)
{
	check_kind(SIM_TCP, n_cases(), PLACE_PERCENT);
}

TEST(a_fault_of_datagrams_is_placed)
{
	check_kind(SIM_UDP, n_cases(), PLACE_PERCENT);
}

TEST(a_fault_of_a_stream_is_placed)
{
	check_kind(SIM_STREAM, n_cases(), STREAM_PERCENT);
}

/* A connection for each request: the client thinks when it has none. */
TEST(a_client_thinks_between_connections)
{
	uint32_t placed = 0, n = 0;
	struct sim sim;

	for (uint32_t number = 0; n < 20 * n_cases(); number++) {
		sim_draw(&sim, (uint32_t)test_random(), SIM_TCP);
		sim.turns = 0;
		if (!sim_add_fault(&sim, number % SIM_FAULTS) ||
		    !is_fault(&sim, NETOBS_PLACE_CLIENT_PROCESS,
			      NETOBS_CAUSE_THINKS))
			continue;
		sim_run(&sim);
		if (effect_percent(&sim, 0) >= EFFECT_PERCENT) {
			const struct netobs_verdict verdict =
				judge_one(&sim, &(struct judging){ 0 });

			n++;
			placed += verdict.place == NETOBS_PLACE_CLIENT_PROCESS;
			assert_false(is_wrong(&sim, &verdict));
		}
		sim_clear(&sim);
	}
	assert_true(is_rate(placed, n, 95));
}

TEST(nothing_is_blamed_without_a_fault)
{
	const uint32_t n = 20 * n_cases();
	struct netobs_verdict verdict;
	uint32_t alarms = 0;
	struct sim sim;

	for (uint32_t i = 0; i < n; i++) {
		sim_draw(&sim, (uint32_t)test_random(), i % 3);
		sim_run(&sim);
		verdict = judge_one(&sim, &(struct judging){ 0 });
		if (is_wrong(&sim, &verdict)) {
			print_run(&sim, &verdict, "WRONG");
			fail();
		}
		if (verdict.place &&
		    !is_fault(&sim, verdict.place, verdict.cause)) {
			print_run(&sim, &verdict, "alarm");
			alarms++;
		}
		sim_clear(&sim);
	}
	assert_true(alarms * 100 <= n + 100);
}

/* The verdict of a run with faults that are drawn, and @how it is judged. */
static struct netobs_verdict judge_drawn(struct sim *sim, enum sim_kind kind,
					 uint32_t n_faults,
					 const struct judging *how)
{
	struct netobs_verdict verdict;

	sim_draw(sim, (uint32_t)test_random(), kind);
	while (sim->n_faults < n_faults)
		sim_add_fault(sim, test_below(SIM_FAULTS));
	sim_run(sim);
	verdict = judge_one(sim, how);
	sim_clear(sim);
	return verdict;
}

/* Both took much, and neither makes the other one take longer, as small buffers do with each round trip. */
static bool are_apart(const struct sim *sim)
{
	const struct sim_fault *a = &sim->faults[0], *b = &sim->faults[1];

	for (int i = 0; i < 2; i++)
		if (sim->faults[i].cause == NETOBS_CAUSE_SEND_BUFFER ||
		    sim->faults[i].cause == NETOBS_CAUSE_RECEIVE_BUFFER)
			return false;
	return a->place != b->place && 2 * a->added_ns > b->added_ns &&
	       2 * b->added_ns > a->added_ns;
}

TEST(of_two_faults_the_larger_one_comes_first)
{
	const uint32_t n = 40 * n_cases();
	uint32_t placed = 0, wanted = 0, seconds = 0, small = 0;
	struct sim sim;

	for (uint32_t i = 0; i < n; i++) {
		const struct netobs_verdict verdict =
			judge_drawn(&sim, SIM_TCP, 2, &(struct judging){ 0 });
		if (effect_percent(&sim, 0) + effect_percent(&sim, 1) <
		    EFFECT_PERCENT)
			continue;
		if (is_wrong(&sim, &verdict)) {
			print_run(&sim, &verdict, "WRONG");
			fail();
		}
		placed += is_fault(&sim, verdict.place, 0);
		wanted++;
		if (!are_apart(&sim))
			continue;
		small++;
		seconds += is_fault(&sim, verdict.place, verdict.cause) &&
			   is_fault(&sim, verdict.second_place,
				    verdict.second_cause);
		if (is_verbose() && !is_fault(&sim, verdict.second_place, 0))
			print_run(&sim, &verdict, "second");
	}
	print_message("of %u, %u places, %u seconds of %u\n", wanted, placed,
		      seconds, small);
	assert_true(is_rate(placed, wanted, PLACE_PERCENT));
	assert_true(is_rate(seconds, small, SECOND_PERCENT));
}

/* ---- What a verdict says of times ---------------------------------------------------------- */

TEST(parts_add_up_to_the_turn)
{
	struct sim sim;

	for (uint32_t i = 0; i < 30 * n_cases(); i++) {
		const struct netobs_verdict verdict = judge_drawn(
			&sim, SIM_TCP, test_below(3), &(struct judging){ 0 });
		uint64_t now = 0, before = 0, blamed = 0;

		for (int part = 0; part < verdict.n_parts; part++) {
			now += verdict.parts[part].now_ns;
			before += verdict.parts[part].before_ns;
			blamed += verdict.parts[part].blamed_ns;
		}
		if (llabs((int64_t)(now - verdict.turn_ns)) * 100 >
			    (int64_t)verdict.turn_ns ||
		    llabs((int64_t)(before - verdict.turn_before_ns)) * 100 >
			    (int64_t)verdict.turn_before_ns) {
			print_run(&sim, &verdict, "sum");
			fail();
		}
		assert_true(verdict.blamed_ns <= verdict.all_blamed_ns);
		assert_true(blamed >= verdict.blamed_ns);
	}
}

TEST(the_mean_of_turns_is_that_of_the_hosts)
{
	struct sim sim;

	for (uint32_t i = 0; i < 30 * n_cases(); i++) {
		const struct netobs_verdict verdict = judge_drawn(
			&sim, SIM_TCP, test_below(2), &(struct judging){ 0 });
		const double mean =
			(double)sim.took_ns / (sim.n_turns ? sim.n_turns : 1);

		/* A handshake that takes most of the window is in no turn of it. */
		if (sim.n_turns < 30 ||
		    sim.took_ns < (sim.until_ns - sim.since_ns) * 2 / 3)
			continue;
		if (fabs((double)verdict.turn_ns - mean) >
		    mean * .1 + 1.1e9 / sim.n_turns) {
			print_run(&sim, &verdict, "mean");
			print_message("%u turns of %.3f ms, judged %u of %.3f\n",
				      sim.n_turns, mean / 1e6, verdict.turns,
				      (double)verdict.turn_ns / 1e6);
			fail();
		}
	}
}

/* The true offset in the window, at its ends, is compared with what the verdict says. */
static bool is_clock_right(const struct sim *sim,
			   const struct netobs_verdict *verdict)
{
	const int64_t bound = (int64_t)verdict->clock_bound_ns;
	const int64_t first = sim_clock(sim, 1, sim->since_ns) - sim->since_ns,
		      last = sim_clock(sim, 1, sim->until_ns) - sim->until_ns;
	const int64_t low = first < last ? first : last,
		      high = first < last ? last : first;

	return !bound || (verdict->clock_ns - bound <= high &&
			  verdict->clock_ns + bound >= low);
}

TEST(the_offset_of_clocks_is_inside_its_bound)
{
	uint32_t bounds = 0, n = 60 * n_cases();
	struct sim sim;

	for (uint32_t i = 0; i < n; i++) {
		const struct netobs_verdict verdict =
			judge_drawn(&sim, i % 2 ? SIM_UDP : SIM_TCP,
				    test_below(3), &(struct judging){ 0 });

		bounds += verdict.clock_bound_ns != 0;
		if (is_clock_right(&sim, &verdict))
			continue;
		print_run(&sim, &verdict, "clock");
		print_message(
			"offset %.3f ms, drift %.0f ppm, judged %.3f +- %.3f\n",
			(double)sim.offset_ns / 1e6, sim.drift * 1e6,
			(double)verdict.clock_ns / 1e6,
			(double)verdict.clock_bound_ns / 1e6);
		fail();
	}
	assert_true(is_rate(bounds, n, 95));
}

TEST(a_clock_that_jumps_is_noticed)
{
	struct sim sim;

	for (uint32_t i = 0; i < 30 * n_cases(); i++) {
		struct netobs_verdict verdict;
		const int64_t jump = NSEC_PER_SEC;

		sim_draw(&sim, (uint32_t)test_random(), SIM_TCP);
		sim_add_fault(&sim, test_below(SIM_FAULTS));
		sim.step_ns = test_below(2) ? jump : -jump;
		sim.step_at_ns = sim.since_ns +
				 (int64_t)test_below(3000) * NSEC_PER_MSEC;
		sim_run(&sim);
		verdict = judge_one(&sim, &(struct judging){ 0 });
		if (is_wrong(&sim, &verdict) ||
		    (effect_percent(&sim, 0) < HALF_PERCENT &&
		     !(verdict.missing & NETOBS_MISSING_CLOCK))) {
			print_run(&sim, &verdict, "step");
			fail();
		}
		sim_clear(&sim);
	}
}
