// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Which alerts of a service are diagnosed, by which records, and when they are judged. */
#include "lib_clock.h"
#include "lib_test.h"

#include "base/clock_ms.h"
#include "service/diagnoses.h"

#include <netinet/in.h>

/* The library, whose diagnoses count what they get. */
struct netobs_diagnosis {
	uint32_t turns, others, norms;
};

static struct {
	uint32_t diagnoses;
	uint32_t verdicts; /* of a judgement */
	uint32_t missing;  /* of a verdict */
	uint8_t certainty;
	struct netobs_diagnosis last; /* that was judged */
	int64_t since_ns;
} fake;

int __wrap_netobs_diagnosis_new(const struct netobs_diagnosis_opts *opts,
				struct netobs_diagnosis **ret_diagnosis);
void __wrap_netobs_diagnosis_free(struct netobs_diagnosis *diagnosis);
int __wrap_netobs_diagnosis_add(struct netobs_diagnosis *diagnosis,
				unsigned int host,
				const struct netobs_record *record);
int __wrap_netobs_diagnosis_judge(
	struct netobs_diagnosis *diagnosis, int64_t since_ns, int64_t until_ns,
	int64_t before_ns,
	void (*on_verdict)(const struct netobs_verdict *verdict, void *user),
	void *user);

int __wrap_netobs_diagnosis_new(const struct netobs_diagnosis_opts *opts,
				struct netobs_diagnosis **ret_diagnosis)
{
	assert_true(opts->max_turns > 0 && opts->max_turns <= 4096);
	*ret_diagnosis = calloc(1, sizeof(**ret_diagnosis));
	assert_non_null(*ret_diagnosis);
	fake.diagnoses++;
	return 0;
}

void __wrap_netobs_diagnosis_free(struct netobs_diagnosis *diagnosis)
{
	fake.diagnoses--;
	free(diagnosis);
}

int __wrap_netobs_diagnosis_add(struct netobs_diagnosis *diagnosis,
				unsigned int host,
				const struct netobs_record *record)
{
	assert_int_equal(host, 0);
	diagnosis->turns += record->type == NETOBS_RECORD_TURN;
	diagnosis->norms += record->type == NETOBS_RECORD_VERDICT;
	diagnosis->others += record->type == NETOBS_RECORD_HOST;
	return 0;
}

int __wrap_netobs_diagnosis_judge(
	struct netobs_diagnosis *diagnosis, int64_t since_ns, int64_t until_ns,
	int64_t before_ns,
	void (*on_verdict)(const struct netobs_verdict *verdict, void *user),
	void *user)
{
	const struct netobs_verdict verdict = {
		.record = { .sz = sizeof(verdict), .type = NETOBS_RECORD_VERDICT },
		.missing = fake.missing,
		.certainty = fake.certainty,
	};

	assert_int_equal(since_ns, before_ns);
	(void)until_ns;
	fake.since_ns = since_ns;
	fake.last = *diagnosis;
	for (uint32_t i = 0; diagnosis->turns && i < fake.verdicts; i++)
		on_verdict(&verdict, user);
	return (int)fake.verdicts;
}

/* ---- The service ------------------------------------------------------------------------- */

static struct {
	uint32_t n;
	struct netobs_verdict last;
} got;
static uint32_t n_warnings;

static void take(const struct netobs_record *record, void *user)
{
	(void)user;
	assert_int_equal(record->type, NETOBS_RECORD_VERDICT);
	got.last = *(const struct netobs_verdict *)record;
	got.n++;
}

static void count_warning(int level, const char *message, void *user)
{
	(void)message;
	(void)user;
	n_warnings += level == NETOBS_LOG_WARNING;
}

static struct diagnoses *begin(uint32_t max, uint32_t n_norms)
{
	struct diagnoses *all = calloc(1, sizeof(*all));
	struct diagnose_config config = {
		.is_enabled = true,
		.for_ms = 5000,
		.max = max,
		.norms_file = "norms",
		.norms = { .list = calloc(n_norms + 1,
					  sizeof(struct netobs_verdict)),
			   .n = n_norms },
	};

	assert_non_null(all);
	assert_non_null(config.norms.list);
	for (uint32_t i = 0; i < n_norms; i++)
		config.norms.list[i].record.type = NETOBS_RECORD_VERDICT;
	memset(&fake, 0, sizeof(fake));
	memset(&got, 0, sizeof(got));
	n_warnings = 0;
	fake.verdicts = 1;
	all->on_record = take;
	all->on_log = count_warning;
	diagnoses_commit(all, &config);
	assert_null(config.norms.list);
	return all;
}

static void end(struct diagnoses *all)
{
	diagnoses_done(all);
	free(all);
	assert_int_equal(fake.diagnoses, 0);
}

/* Of a client; they have one service. */
static struct netobs_alert alert_of(uint8_t client)
{
	const struct netobs_alert alert = {
		.record = { .time_ns = clock_ns(CLOCK_REALTIME) },
		.protocol = IPPROTO_TCP,
		.client = { [15] = client },
		.server = { [15] = 200 },
		.client_port = 40000,
		.server_port = 80,
		.name = "slow",
	};

	return alert;
}

static void alert(struct diagnoses *all, uint8_t client)
{
	const struct netobs_alert one = alert_of(client);

	diagnoses_alert(all, &one);
}

/* At the socket; @is_back: of an answer. */
static struct netobs_turn turn_of(uint8_t client, bool is_back)
{
	struct netobs_turn turn = { .record = { .type = NETOBS_RECORD_TURN } };

	(is_back ? turn.dst : turn.src)[15] = client;
	(is_back ? turn.src : turn.dst)[15] = 200;
	turn.src_port = is_back ? 80 : 40000;
	turn.dst_port = is_back ? 40000 : 80;
	return turn;
}

static void turn(struct diagnoses *all, uint8_t client)
{
	for (int is_back = 0; is_back < 2; is_back++) {
		const struct netobs_turn one = turn_of(client, is_back);

		diagnoses_record(all, &one.record);
	}
}

/* Each alert that was followed has a verdict, has none for want of turns, or waits for it. */
static void assert_totals(const struct diagnoses *all, uint64_t followed,
			  uint64_t without_turns, uint64_t over_max,
			  uint64_t not_tcp)
{
	const struct diagnosis_totals *totals = &all->totals;
	uint64_t verdicts = 0;

	for (int i = 0; i < NETOBS_CERTAINTIES; i++)
		verdicts += totals->verdicts[i];
	assert_int_equal(totals->followed, followed);
	assert_int_equal(totals->without_turns, without_turns);
	assert_int_equal(totals->over_max, over_max);
	assert_int_equal(totals->not_tcp, not_tcp);
	assert_int_equal(verdicts, got.n);
	assert_int_equal(followed, verdicts + without_turns + all->n);
}

static void pass(struct diagnoses *all, int64_t ms)
{
	clock_skip(ms);
	diagnoses_dispatch(all, now_ms());
}

TEST(it_is_judged_by_its_own_turns_when_their_time_is_over)
{
	struct diagnoses *all = begin(4, 3);
	const struct netobs_record host = { .type = NETOBS_RECORD_HOST };
	const struct netobs_alert one = alert_of(1);

	diagnoses_alert(all, &one);
	assert_non_null(diagnoses_find(all, &one));
	turn(all, 1);
	turn(all, 2);
	diagnoses_record(all, &host);
	pass(all, 4000);
	assert_int_equal(got.n, 0);
	pass(all, 1000);
	assert_int_equal(got.n, 1);
	assert_string_equal(got.last.alert, "slow");
	assert_int_equal(got.last.alert_ns, one.record.time_ns);
	assert_int_equal(fake.since_ns, one.record.time_ns);
	assert_int_equal(fake.last.turns, 2);
	assert_int_equal(fake.last.others, 1);
	assert_int_equal(fake.last.norms, 3);
	assert_int_equal(fake.diagnoses, 0);
	assert_null(diagnoses_find(all, &one));
	assert_totals(all, 1, 0, 0, 0);
	end(all);
}

/* Behind NAT, its turns have the alert. */
TEST(turns_of_its_connection_have_other_addresses)
{
	struct diagnoses *all = begin(4, 0);
	const struct netobs_alert one = alert_of(1);
	struct netobs_turn other = turn_of(7, false);

	diagnoses_alert(all, &one);
	diagnoses_record(all, &other.record);
	other.alert_ns = one.record.time_ns;
	strcpy(other.alert, "slow");
	diagnoses_record(all, &other.record);
	pass(all, 5000);
	assert_int_equal(fake.last.turns, 1);
	assert_int_equal(got.n, 1);
	end(all);
}

TEST(alerts_of_a_client_and_its_service_are_one)
{
	struct diagnoses *all = begin(1, 0);

	for (int i = 0; i < 10; i++)
		alert(all, 1);
	turn(all, 1);
	pass(all, 5000);
	assert_int_equal(got.n, 1);
	assert_totals(all, 1, 0, 0, 0);
	end(all);
}

TEST(those_beyond_the_maximum_are_counted_and_said_once)
{
	struct diagnoses *all = begin(2, 0);
	const struct netobs_alert third = alert_of(3);

	for (uint8_t client = 1; client <= 6; client++)
		alert(all, client);
	assert_null(diagnoses_find(all, &third));
	assert_totals(all, 2, 0, 4, 0);
	assert_int_equal(n_warnings, 1);
	turn(all, 1);
	turn(all, 2);
	pass(all, 5000);
	assert_int_equal(got.n, 2);
	diagnoses_alert(all, &third);
	assert_non_null(diagnoses_find(all, &third));
	end(all);
}

TEST(without_turns_it_is_given_up_and_counted)
{
	struct diagnoses *all = begin(4, 0);
	struct netobs_alert datagram = alert_of(2);

	alert(all, 1);
	turn(all, 2);
	for (int i = 0; i < 8; i++)
		pass(all, 1000);
	assert_int_equal(fake.diagnoses, 1);
	pass(all, 1000);
	assert_int_equal(fake.diagnoses, 0);
	assert_totals(all, 1, 1, 0, 0);
	datagram.protocol = IPPROTO_UDP;
	diagnoses_alert(all, &datagram);
	assert_totals(all, 1, 1, 0, 1);
	assert_int_equal(got.n, 0);
	assert_int_equal(n_warnings, 1);
	end(all);
}

TEST(more_turns_are_waited_for_within_twice_the_time)
{
	struct diagnoses *all = begin(4, 0);

	alert(all, 1);
	turn(all, 1);
	fake.missing = NETOBS_MISSING_TURNS;
	for (int i = 0; i < 8; i++)
		pass(all, 1000);
	assert_int_equal(got.n, 0);
	pass(all, 1000);
	assert_int_equal(got.n, 1);
	alert(all, 2);
	turn(all, 2);
	pass(all, 5000);
	fake.missing = 0;
	assert_int_equal(got.n, 1);
	pass(all, 1000);
	assert_int_equal(got.n, 2);
	end(all);
}

TEST(at_the_end_all_are_judged)
{
	struct diagnoses *all = begin(4, 0);

	fake.missing = NETOBS_MISSING_TURNS;
	for (uint8_t client = 1; client <= 4; client++) {
		alert(all, client);
		turn(all, client);
	}
	diagnoses_dispatch(all, INT64_MAX);
	assert_int_equal(got.n, 4);
	end(all);
}

/* A judgement may have no verdict, or one for each of several clients behind one address. */
TEST(an_alert_has_one_verdict_or_none)
{
	struct diagnoses *all = begin(4, 0);

	for (fake.verdicts = 0; fake.verdicts < 3; fake.verdicts++) {
		alert(all, 1);
		turn(all, 1);
		diagnoses_dispatch(all, INT64_MAX);
	}
	assert_int_equal(got.n, 2);
	assert_totals(all, 3, 1, 0, 0);
	end(all);
}

TEST(when_it_is_off_nothing_is_counted)
{
	struct diagnoses *all = begin(4, 0);
	struct diagnose_config off = { .for_ms = 5000, .max = 4 };

	diagnoses_commit(all, &off);
	alert(all, 1);
	assert_int_equal(fake.diagnoses, 0);
	assert_totals(all, 0, 0, 0, 0);
	end(all);
}

TEST(verdicts_are_counted_by_how_sure_they_are)
{
	struct diagnoses *all = begin(4, 0);
	const uint64_t expected[] = { 1, 2, 3 };

	for (uint8_t certainty = 0; certainty < NETOBS_CERTAINTIES; certainty++)
		for (uint64_t i = 0; i < expected[certainty]; i++) {
			fake.certainty = certainty;
			alert(all, 1);
			turn(all, 1);
			diagnoses_dispatch(all, INT64_MAX);
		}
	assert_memory_equal(all->totals.verdicts, expected, sizeof(expected));
	assert_totals(all, 6, 0, 0, 0);
	end(all);
}
