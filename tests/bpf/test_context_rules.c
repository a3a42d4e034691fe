// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Rules of a context: the first one that matches decides, each counts, and all are replaced
 * while packets come. NETOBS_TEST_RULES replaces them more often.
 */
#include "lib_rules.h"
#include "lib_test.h"
#include "filter_expressions.h"

#include <netobs/probe.h>

enum {
	PORT = RULES_PORT,
	LONG_MS = 60000,
	PATIENCE_MS = 30000,
	CROSSINGS = 2, /* of a packet on the loopback */
	REPLACEMENTS = 10,
	FLOODS = 2,
};

static struct netobs_rule accept_rule(const char *filter)
{
	return (struct netobs_rule){ .sz = sizeof(struct netobs_rule),
				     .filter = filter,
				     .action = NETOBS_ACCEPT };
}

static struct netobs_rule reject_rule(const char *filter)
{
	struct netobs_rule rule = accept_rule(filter);

	rule.action = NETOBS_REJECT;
	return rule;
}

static void set_rules(struct netobs_opts *opts, const struct netobs_rule *rules,
		      uint32_t n, enum netobs_action default_action)
{
	opts->rules = rules;
	opts->n_rules = n;
	opts->default_action = default_action;
}

static uint64_t counted(const struct netobs *ctx, uint32_t rule)
{
	struct netobs_count count;

	assert_int_equal(netobs_rule_count_get(ctx, rule, &count), 0);
	assert_int_equal(count.bytes, count.packets * LAB_BYTES);
	return count.packets;
}

#define CASE(name) \
	TEST_OF(name, struct context_fixture *f, rules_setup, rules_teardown)

CASE(first_rule_that_matches_decides)
{
	const struct netobs_rule rules[] = {
		reject_rule("udp port 40001"),
		accept_rule("udp portrange 40000-40002"),
		reject_rule("udp port 40002"),
	};
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	struct netobs_count count;

	set_rules(&opts, rules, ARRAY_SIZE(rules), NETOBS_REJECT);
	context_start_with(f, &opts);
	for (uint16_t i = 0; i < 4; i++)
		rules_send_through(PORT + i, 10 + i);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 10);
	assert_int_equal(witness_packets_to(&f->witness, PORT + 1), 0);
	assert_int_equal(witness_packets_to(&f->witness, PORT + 2), 12);
	assert_int_equal(counted(f->ctx, 0), CROSSINGS * 11);
	assert_int_equal(counted(f->ctx, 1), CROSSINGS * (10 + 12));
	assert_int_equal(counted(f->ctx, 2), 0);
	assert_int_equal(counted(f->ctx, 3), CROSSINGS * 13);
	assert_int_equal(counted(f->ctx, 4), 0);
	assert_int_equal(netobs_rule_count_get(f->ctx, 5, &count), -ENOENT);
	context_assert_conserved(f->ctx);
}

CASE(default_alone_is_a_list)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	set_rules(&opts, NULL, 0, NETOBS_REJECT);
	context_start_with(f, &opts);
	rules_send_through(PORT, 5);
	context_stop(f->ctx);
	assert_int_equal(f->witness.n_flows, 0);
	assert_int_equal(counted(f->ctx, 0), CROSSINGS * 5);
	context_assert_conserved(f->ctx);
}

/* A rule with "vlan" sees the frame in another way, those behind it do not. */
CASE(rules_with_and_without_vlan_mix)
{
	const struct netobs_rule rules[] = {
		reject_rule("vlan 7"),
		reject_rule("greater 143"), /* 14 + LAB_BYTES are there */
		reject_rule("vlan and udp"),
		accept_rule("udp and greater 142"),
	};
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	set_rules(&opts, rules, ARRAY_SIZE(rules), NETOBS_REJECT);
	context_start_with(f, &opts);
	rules_send_through(PORT, 10);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 10);
	assert_int_equal(counted(f->ctx, 3), CROSSINGS * 10);
}

/* Of expressions of all kinds: the kernel's verifier has to bear it. */
CASE(list_may_have_64_rules)
{
	struct netobs_rule rules[NETOBS_RULES_MAX + 1];
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	uint32_t n = 0;

	for (size_t i = 0; n < NETOBS_RULES_MAX; i++)
		if (!strstr(filter_expressions[i * 4 + 1], "protochain"))
			rules[n++] = reject_rule(filter_expressions[i * 4 + 1]);
	rules[n - 1] = accept_rule("udp");
	set_rules(&opts, rules, n, NETOBS_REJECT);
	context_start_with(f, &opts);
	rules[n] = rules[n - 1];
	opts.n_rules++;
	context_assert_refused(f, &opts, -E2BIG, "64 are the most");
	context_stop(f->ctx);
}

static int await_change(struct netobs *ctx)
{
	int result;

	while ((result = netobs_change_result(ctx)) == -EINPROGRESS)
		assert_true(netobs_poll(ctx, PATIENCE_MS) >= 0);
	return result;
}

static void rules_are_replaced(struct context_fixture *f, uint64_t disable)
{
	const struct netobs_rule before[] = { reject_rule("udp port 40001"),
					      accept_rule("udp") };
	const struct netobs_rule after[] = { accept_rule("udp port 40001"),
					     accept_rule("udp") };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	opts.disable_features = disable;
	set_rules(&opts, before, ARRAY_SIZE(before), NETOBS_REJECT);
	context_start_with(f, &opts);
	rules_send_through(PORT, 3);
	rules_send_through(PORT + 1, 5);
	set_rules(&opts, after, ARRAY_SIZE(after), NETOBS_REJECT);
	assert_int_equal(context_change(f->ctx, &opts), 0);
	rules_send_through(PORT, 7);
	rules_send_through(PORT + 1, 11);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 10);
	assert_int_equal(witness_packets_to(&f->witness, PORT + 1), 11);
	assert_int_equal(counted(f->ctx, 0), CROSSINGS * 11);
	assert_int_equal(counted(f->ctx, 1), CROSSINGS * 10);
	assert_int_equal(counted(f->ctx, 2), 0);
	assert_int_equal(counted(f->ctx, 3), CROSSINGS * 5);
	context_assert_conserved(f->ctx);
}

CASE(rules_are_replaced_on_links)
{
	rules_are_replaced(f, 0);
}

CASE(rules_are_replaced_on_filters)
{
	rules_are_replaced(f, 1 << NETOBS_FEATURE_TCX);
}

CASE(expression_is_replaced)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	struct netobs_count count;

	opts.filter = "udp port 40001";
	context_start_with(f, &opts);
	rules_send_through(PORT, 3);
	opts.filter = "udp port 40000";
	assert_int_equal(context_change(f->ctx, &opts), 0);
	rules_send_through(PORT, 7);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 7);
	assert_int_equal(netobs_rule_count_get(f->ctx, 0, &count), -ENOENT);
	context_assert_conserved(f->ctx);
}

/* Not for the old rules, or for rules that were there earlier. */
CASE(rules_have_to_fit_the_interfaces_that_are_selected)
{
	static const char *const lo[] = { "lo", NULL };
	static const char *const both[] = { "lo", "tun0", NULL };
	const struct netobs_rule ethernet = accept_rule("ether host 0:0:0:0:0:0"),
				 any = accept_rule("udp");
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	lab_run("ip tuntap add tun0 mode tun");
	opts.interfaces = lo;
	set_rules(&opts, &ethernet, 1, NETOBS_REJECT);
	context_start_with(f, &opts);
	opts.interfaces = both;
	context_assert_refused(f, &opts, -EINVAL, "without Ethernet header");
	set_rules(&opts, &any, 1, NETOBS_REJECT);
	assert_int_equal(context_change(f->ctx, &opts), 0);
	context_await_interfaces(f->ctx, 2);
	set_rules(&opts, &ethernet, 1, NETOBS_REJECT);
	context_assert_refused(f, &opts, -EINVAL, "without Ethernet header");
	assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
	assert_int_equal(await_change(f->ctx), -EINVAL);
	assert_non_null(
		strstr(netobs_last_error(f->ctx), "without Ethernet header"));
	opts.interfaces = lo;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	set_rules(&opts, &any, 1, NETOBS_REJECT);
	opts.interfaces = NULL;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	context_await_interfaces(f->ctx, 2);
	lab_run("ip link del tun0");
	context_await_interfaces(f->ctx, 1);
	set_rules(&opts, &ethernet, 1, NETOBS_REJECT);
	assert_int_equal(context_change(f->ctx, &opts), 0);
	rules_send_through(PORT, 5);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
	context_assert_conserved(f->ctx);
}

/* ---- Under load -------------------------------------------------------------------- */

/* Each list accepts all, by different rules: no packet may be left to the default. */
static const struct netobs_rule *choose_rules(uint32_t i,
					      struct netobs_rule rules[2])
{
	static const char *const halves[][2] = {
		{ "udp port 40000", "not udp port 40000" },
		{ "not udp port 40001", "udp port 40001" },
		{ "greater 1000", "less 999" },
	};
	const char *const *half = halves[i % ARRAY_SIZE(halves)];

	rules[0] = accept_rule(half[0]);
	rules[1] = accept_rule(half[1]);
	return rules;
}

CASE(no_packet_is_judged_by_half_a_list)
{
	uint32_t n = rules_count_replacements(REPLACEMENTS);
	struct rules_flood floods[FLOODS];
	struct netobs_opts opts = context_options(&f->witness, 100);
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct netobs_rule rules[2];
	uint64_t sent = 0;

	opts.direction = NETOBS_EGRESS; /* an ingress queue may overflow */
	set_rules(&opts, choose_rules(0, rules), 2, NETOBS_REJECT);
	context_start_with(f, &opts);
	for (uint32_t i = 0; i < FLOODS; i++)
		rules_begin_flood(&floods[i], i, 1);
	for (uint32_t i = 1; i <= n; i++) {
		choose_rules(i, rules);
		if (i % 2) {
			assert_int_equal(context_change(f->ctx, &opts), 0);
		} else {
			assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
			assert_int_equal(await_change(f->ctx), 0);
		}
		assert_true(netobs_poll(f->ctx, 1) >= 0);
	}
	for (uint32_t i = 0; i < FLOODS; i++) {
		rules_end_flood(&floods[i]);
		sent += floods[i].sent[i];
	}
	context_stop(f->ctx);
	assert_int_equal(f->witness.packets, sent);
	assert_int_equal(counted(f->ctx, 0) + counted(f->ctx, 1) +
				 counted(f->ctx, 3),
			 sent);
	assert_int_equal(counted(f->ctx, 2), 0);
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.filtered.packets, 0);
	context_assert_conserved(f->ctx);
}

/* ---- What is refused --------------------------------------------------------------- */

CASE(wrong_rules_are_refused_and_nothing_changes)
{
	struct netobs_rule rules[] = { accept_rule("udp"), accept_rule("tcp") };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	int fds;

	set_rules(&opts, rules, 1, NETOBS_REJECT);
	context_start_with(f, &opts);
	fds = lab_count_fds();
	opts.n_rules = 2;
	rules[1].filter = "tcp prt 5";
	context_assert_refused(f, &opts, -EINVAL, "rules[1]: ");
	rules[1].filter = "ether host 02:00:00:00:00:01";
	assert_int_equal(context_change(f->ctx, &opts), 0);
	opts.n_rules = 1;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	set_rules(&opts, NULL, 0, 0);
	context_assert_refused(f, &opts, -ENOTSUP, "turned on or off");
	rules_send_through(PORT, 5);
	context_await_fds(f->ctx, fds);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 5);
}

/* Until the result, the old rules are in use; the options need not outlive the call. */
CASE(change_is_made_in_steps)
{
	struct netobs_rule rules[] = { accept_rule("udp port 40000") };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS), last;
	char *expression = strdup("udp port 40001");

	set_rules(&opts, rules, 1, NETOBS_REJECT);
	context_start_with(f, &opts);
	assert_int_equal(netobs_change_result(NULL), -EINVAL);
	assert_int_equal(netobs_change_begin(NULL, &opts), -EINVAL);
	assert_int_equal(netobs_change_result(f->ctx), 0);
	rules[0].filter = "udp prt 40001";
	assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
	assert_int_equal(await_change(f->ctx), -EINVAL);
	assert_non_null(strstr(netobs_last_error(f->ctx), "rules[0]: "));

	rules[0].filter = expression;
	last = opts;
	assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
	memset(expression, 'x', strlen(expression));
	free(expression);
	memset(rules, 0xff, sizeof(rules));
	memset(&opts, 0xff, sizeof(opts));
	last.n_rules = 0;
	assert_int_equal(netobs_change_result(f->ctx), -EINPROGRESS);
	assert_int_equal(netobs_change_begin(f->ctx, &last), -EBUSY);
	assert_int_equal(context_change(f->ctx, &last), -EBUSY);
	rules_send_through(PORT, 3);
	rules_send_through(PORT + 1, 5);
	assert_int_equal(await_change(f->ctx), 0);
	rules_send_through(PORT, 7);
	rules_send_through(PORT + 1, 11);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT), 3);
	assert_int_equal(witness_packets_to(&f->witness, PORT + 1), 11);
	context_assert_conserved(f->ctx);
}

static char *repeat(const char *before, int n, const char *middle,
		    const char *after)
{
	size_t size = n * (strlen(before) + strlen(after)) + strlen(middle) + 1;
	char *text = calloc(1, size), *end = text;

	for (int i = 0; i < n; i++)
		end = stpcpy(end, before);
	end = stpcpy(end, middle);
	for (int i = 0; i < n; i++)
		end = stpcpy(end, after);
	return text;
}

/* libpcap calls itself for each block of an expression. */
CASE(thread_compiles_the_deepest_expressions)
{
	char *const deepest[] = {
		repeat("(", 2040, "udp", ")"),
		repeat("not ", 1000, "udp", ""),
		repeat("not (", 600, "udp", ")"),
		repeat("udp or ", 580, "udp", ""),
		repeat("1+", 2000, "1 = len or udp", ""),
	};
	char *too_large = repeat("host ::1||", 400, "udp", "");
	struct netobs_rule rule = accept_rule("tcp");
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	set_rules(&opts, &rule, 1, NETOBS_REJECT);
	context_start_with(f, &opts);
	for (size_t i = 0; i < ARRAY_SIZE(deepest); i++) {
		rule.filter = deepest[i];
		assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
		assert_int_equal(await_change(f->ctx), 0);
		rules_send_through(PORT, 1);
	}
	rule.filter = too_large;
	assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
	assert_int_equal(await_change(f->ctx), -E2BIG);
	context_stop(f->ctx);
	assert_int_equal(witness_packets_to(&f->witness, PORT),
			 ARRAY_SIZE(deepest));
	free(too_large);
	for (size_t i = 0; i < ARRAY_SIZE(deepest); i++)
		free(deepest[i]);
}

/* It leaves nothing behind, whatever a thread is about to do for it. */
CASE(change_is_abandoned)
{
	struct netobs_rule rules[] = { accept_rule("udp") };
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);

	for (int polls = 0; polls < 4; polls++) {
		int fds = lab_count_fds();

		rules[0].filter = "udp";
		set_rules(&opts, rules, 1, NETOBS_REJECT);
		context_start_with(f, &opts);
		rules[0].filter = "udp port 40000";
		assert_int_equal(netobs_change_begin(f->ctx, &opts), 0);
		for (int i = 0; i < polls; i++)
			netobs_poll(f->ctx, 50);
		if (polls == 1) {
			netobs_stop(f->ctx);
			assert_int_equal(await_change(f->ctx), -ECANCELED);
		}
		netobs_free(TAKE_PTR(f->ctx));
		lab_await_fds(fds);
	}
}

CASE(context_without_rules_has_no_counts)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	struct netobs_count count;

	assert_int_equal(netobs_rule_count_get(NULL, 0, &count), -EINVAL);
	context_start_with(f, &opts);
	assert_int_equal(netobs_rule_count_get(f->ctx, 0, NULL), -EINVAL);
	assert_int_equal(netobs_rule_count_get(f->ctx, 0, &count), -ENOENT);
	opts.filter = "udp";
	context_assert_refused(f, &opts, -ENOTSUP, "turned on or off");
	context_stop(f->ctx);
}
