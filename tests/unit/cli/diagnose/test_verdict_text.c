// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "lib_seed.h"
#include "lib_test.h"

#include <netinet/in.h>

#include "cli/diagnose/record_source.h"
#include "cli/diagnose/verdict_text.h"

enum { ROUNDS = 3000, MS = 1000000 };

static char printed[64 << 10];

static const char *print(const struct netobs_verdict *verdict, const char *filter)
{
	FILE *file = fmemopen(printed, sizeof(printed), "w");

	assert_non_null(file);
	verdict_text_print(file, verdict, filter);
	assert_int_equal(fclose(file), 0);
	return printed;
}

/* Words may be in two lines. */
static bool has(const char *text, const char *words)
{
	char joined[sizeof(printed)], *to = joined;

	for (const char *c = text; *c; c++) {
		if (*c != '\n' && *c != ' ')
			*to++ = *c;
		else if (to > joined && to[-1] != ' ')
			*to++ = ' ';
	}
	*to = '\0';
	return strstr(joined, words);
}

static void expect(const char *text, const char *words)
{
	if (!has(text, words))
		fail_msg("'%s' is not in:\n%s", words, text);
}

static struct netobs_verdict make_verdict(void)
{
	struct netobs_verdict verdict = {
		.record = { .sz = sizeof(verdict), .type = NETOBS_RECORD_VERDICT },
		.client = { [10] = 0xff, 0xff, 10, 91, 1, 2 },
		.server = { [10] = 0xff, 0xff, 10, 91, 102, 2 },
		.server_port = 8000,
		.protocol = IPPROTO_TCP,
		.place = NETOBS_PLACE_CLIENT_HOST,
		.cause = NETOBS_CAUSE_QDISC,
		.certainty = NETOBS_CERTAIN,
		.connections = 9,
		.turns = 59,
		.turns_before = 40,
		.turn_ns = 40 * MS,
		.turn_before_ns = 25 * MS,
		.blamed_ns = 95,
		.all_blamed_ns = 100,
		.clock_ns = 79 * MS,
		.clock_bound_ns = 2 * MS,
		.client_pid = 14694,
		.server_pid = 14690,
		.client_command = "curl",
		.server_command = "nginx",
		.client_host = "hosta",
		.server_host = "hostb",
		.interface = "up0",
		.filled = 1000,
		.n_parts = 4,
		.n_shares = 1,
		.parts = { { .place = NETOBS_PLACE_CLIENT_PROCESS,
			     .cause = NETOBS_CAUSE_THINKS,
			     .now_ns = 10 * MS,
			     .before_ns = 13 * MS },
			   { .place = NETOBS_PLACE_CLIENT_HOST,
			     .cause = NETOBS_CAUSE_QDISC,
			     .now_ns = 20 * MS },
			   { .place = NETOBS_PLACE_NETWORK,
			     .cause = NETOBS_CAUSE_DELAY,
			     .now_ns = 9 * MS,
			     .before_ns = 11 * MS },
			   { .place = NETOBS_PLACE_SERVER_HOST,
			     .cause = NETOBS_CAUSE_STACK,
			     .now_ns = MS / 100 } },
		.shares = { { .src = { [10] = 0xff, 0xff, 10, 91, 101, 2 },
			      .dst = { [10] = 0xff, 0xff, 10, 91, 103, 2 },
			      .src_port = 33132,
			      .dst_port = 5308,
			      .protocol = IPPROTO_TCP,
			      .pid = 14927,
			      .amount = 570,
			      .command = "iperf3",
			      .container_id = "0123456789abcdef" } },
	};

	return verdict;
}

static struct netobs_verdict make_doubtful(void)
{
	struct netobs_verdict verdict = make_verdict();

	verdict.certainty = NETOBS_NOT_SURE;
	return verdict;
}

TEST(the_blame_with_its_parts_and_culprits)
{
	const struct netobs_verdict verdict = make_verdict();

	assert_string_equal(
		print(&verdict, "'port 8000'"),
		"client 10.91.1.2 (curl[14694], hosta) -> 10.91.102.2:8000 (nginx[14690], hostb):\n"
		"59 turns, 40.0 ms each, before 25.0\n"
		"\n"
		"  hosta's queue is to blame: bytes wait in the qdisc of up0, 50 % of the time,\n"
		"  before 0.                                                              certain\n"
		"  ms of a turn                now   before\n"
		"  client: thinks            10.00    13.00  ##\n"
		"  hosta: qdisc              20.00     0.00  #####      <-- 95 % of the increase\n"
		"  network: delay             9.00    11.00  ##\n"
		"  all else                   0.01     0.00\n"
		"  filled by   57 %  iperf3[14927] 0123456789ab TCP 10.91.101.2:33132 >\n"
		"             10.91.103.2:5308\n"
		"  clocks: hostb is 79.00 ms ahead, +- 2.00\n"
		"\n");
}

TEST(a_process_and_what_it_does)
{
	struct netobs_verdict verdict = make_verdict();

	verdict.place = NETOBS_PLACE_SERVER_PROCESS;
	verdict.cause = NETOBS_CAUSE_STOPPED;
	expect(print(&verdict, NULL),
	       "hostb's process is to blame: nginx[14690] is stopped");
}

TEST(a_throttled_group_is_named)
{
	struct netobs_verdict verdict = make_verdict();

	verdict.place = NETOBS_PLACE_SERVER_HOST;
	verdict.cause = NETOBS_CAUSE_CPU;
	verdict.throttled = 22;
	strcpy(verdict.cgroup, "h5_app_b");
	expect(print(&verdict, NULL),
	       "hostb's CPU is to blame: nginx[14690] waits for one");
	expect(printed, "group h5_app_b used up its quota");
	expect(printed, "22 times");
	expect(printed, "used by 57 % iperf3[14927]");
}

TEST(drops_have_number_reason_and_function)
{
	struct netobs_verdict verdict = make_verdict();

	verdict.cause = NETOBS_CAUSE_DROP;
	verdict.dropped = 35;
	*verdict.interface = '\0';
	strcpy(verdict.drop_cause, "SKB_DROP_REASON_NETFILTER_DROP");
	strcpy(verdict.drop_function, "nft_do_chain");
	expect(print(&verdict, NULL),
	       "it drops packets (35 dropped, NETFILTER_DROP in nft_do_chain)");
}

TEST(one_host_alone_never_speaks_of_the_network)
{
	struct netobs_verdict verdict = make_doubtful();

	*verdict.server_host = '\0';
	verdict.missing = NETOBS_MISSING_HOST;
	for (unsigned int cause = 0; cause < NETOBS_CAUSES; cause++) {
		verdict.place = NETOBS_PLACE_BEYOND;
		verdict.cause = (uint8_t)cause;
		verdict.parts[2].place = cause % 2 ? NETOBS_PLACE_BEYOND :
						     NETOBS_PLACE_NETWORK;
		assert_null(strcasestr(print(&verdict, "'port 8000'"), "network"));
		expect(printed, "Something beyond hosta is to blame: ");
		expect(printed,
		       "10.91.102.2 has no records: hosta alone cannot tell");
		expect(printed,
		       "To know more: netobsctl diagnose --with 10.91.102.2 'port 8000'");
	}
}

TEST(the_host_that_is_heard_may_be_the_servers)
{
	struct netobs_verdict verdict = make_doubtful();

	*verdict.client_host = '\0';
	verdict.missing = NETOBS_MISSING_HOST;
	verdict.place = NETOBS_PLACE_BEYOND;
	expect(print(&verdict, NULL), "Something beyond hostb is to blame");
	expect(printed,
	       "netobsctl diagnose --collect on 10.91.1.2, and -r for both files");
}

TEST(too_few_turns)
{
	struct netobs_verdict verdict = make_doubtful();

	verdict.turns_before = 3;
	expect(print(&verdict, "'port 8000'"),
	       "too few turns: 59 now and 3 before, of 10.");
	expect(printed, "netobsctl diagnose --before 60 --for 60 'port 8000'");
}

TEST(two_causes)
{
	struct netobs_verdict verdict = make_doubtful();

	verdict.second_place = NETOBS_PLACE_NETWORK;
	verdict.second_cause = NETOBS_CAUSE_LOSS;
	expect(print(&verdict, NULL),
	       "two causes: this one has 95 % of the increase, and The network (loss)");
}

TEST(missing_evidence_is_named)
{
	struct netobs_verdict verdict = make_doubtful();

	verdict.missing = NETOBS_MISSING_THREADS | NETOBS_MISSING_POINTS;
	verdict.missing_points = 1 << NETOBS_TRACE_SEND | 1 << NETOBS_TRACE_READY;
	expect(print(&verdict, NULL), "Evidence is missing");
	expect(printed, "missing: what threads did, tracepoints send ready");
}

TEST(nothing_is_longer)
{
	struct netobs_verdict verdict = make_doubtful();

	verdict.place = NETOBS_PLACE_NONE;
	verdict.cause = NETOBS_CAUSE_NONE;
	expect(print(&verdict, NULL),
	       "Nothing takes longer than before. not sure");
	expect(printed, "It may have been as slow before.");
	assert_null(strstr(printed, "blame"));
}

TEST(streams_have_rates)
{
	struct netobs_verdict verdict = make_verdict();

	verdict.is_stream = 1;
	verdict.rate = 5000000;
	verdict.rate_before = 6000000;
	expect(print(&verdict, NULL), "a stream of 40.0 Mb/s, before 48.0 Mb/s");
	expect(printed, "ms of a second");
}

/* ---- Any verdict ----------------------------------------------------------------------- */

static void fill(void *at, size_t size)
{
	uint8_t *bytes = at;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)test_random();
}

/* A name of any length and any bytes. */
static void fill_name(char *name, size_t size)
{
	const size_t len = test_random() % size;

	memset(name, 0, size);
	for (size_t i = 0; i < len; i++)
		name[i] = (char)(test_random() % 3 ? 'a' + test_random() % 26 :
						     1 + test_random() % 255);
}

#define FILL_NAME(array) fill_name(array, sizeof(array))

static void fill_verdict(struct netobs_verdict *verdict)
{
	fill(verdict, sizeof(*verdict));
	verdict->place %= NETOBS_PLACES;
	verdict->cause %= NETOBS_CAUSES;
	verdict->second_place %= NETOBS_PLACES;
	verdict->second_cause %= NETOBS_CAUSES;
	verdict->certainty %= NETOBS_CERTAINTIES;
	verdict->is_stream %= 2;
	verdict->n_parts %= NETOBS_VERDICT_PARTS_MAX + 1;
	verdict->n_shares %= NETOBS_QUEUE_SHARES_MAX + 1;
	FILL_NAME(verdict->client_command);
	FILL_NAME(verdict->server_command);
	FILL_NAME(verdict->client_host);
	FILL_NAME(verdict->server_host);
	FILL_NAME(verdict->interface);
	FILL_NAME(verdict->drop_cause);
	FILL_NAME(verdict->drop_function);
	FILL_NAME(verdict->cgroup);
	FILL_NAME(verdict->alert);
	for (int i = 0; i < NETOBS_VERDICT_PARTS_MAX; i++) {
		verdict->parts[i].place %= NETOBS_PLACES;
		verdict->parts[i].cause %= NETOBS_CAUSES;
	}
	for (int i = 0; i < NETOBS_QUEUE_SHARES_MAX; i++) {
		FILL_NAME(verdict->shares[i].command);
		FILL_NAME(verdict->shares[i].container_id);
	}
}

TEST(any_verdict_is_clean_and_fits_80_columns)
{
	struct netobs_verdict verdict;

	for (int round = 0; round < ROUNDS; round++) {
		size_t column = 0;

		fill_verdict(&verdict);
		for (const char *c = print(&verdict, round % 2 ? "'tcp'" : NULL);
		     *c; c++) {
			column = *c == '\n' ? 0 : column + 1;
			if (column > VERDICT_COLUMNS ||
			    (*c != '\n' && (*c < ' ' || *c > '~')))
				fail_msg("round %d: column %zu of:\n%s", round,
					 column, printed);
		}
		assert_null(strstr(printed, " \n"));
	}
}

/* ---- Words for a shell ----------------------------------------------------------------- */

/* What a shell makes of a quoted word. */
static void expect_shell(const char *word)
{
	cleanup_free char *quoted = shell_quote(word), *command = NULL;
	char got[256] = "";
	FILE *shell;

	assert_true(asprintf(&command, "printf %%s %s", quoted) > 0);
	shell = popen(command, "r");
	assert_non_null(shell);
	got[fread(got, 1, sizeof(got) - 1, shell)] = '\0';
	assert_int_equal(pclose(shell), 0);
	assert_string_equal(got, word);
}

TEST(quoted_words_are_words_of_any_shell)
{
	char word[40];

	expect_shell("");
	expect_shell("tcp port 8000");
	expect_shell("'; touch /tmp/x; '");
	expect_shell("$(id) `id` \\ \"\n!*?");
	for (int round = 0; round < 20; round++) {
		FILL_NAME(word);
		expect_shell(word);
	}
	assert_null(shell_quote(NULL));
}
