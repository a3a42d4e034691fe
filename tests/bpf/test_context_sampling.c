// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Sampling of a context: each rule at its own rate, and all of them replaced while packets come.
 * Ports are classes of traffic, and no two ever have a rate in common, so that a record shows
 * whether its rate is one of its packets'. NETOBS_TEST_RULES replaces rates more often;
 * NETOBS_TEST_SEED repeats a run.
 */
#include "lib_rules.h"
#include "lib_seed.h"
#include "lib_test.h"
#include "bpf/sample.h"

#include <math.h>

enum {
	PORT = RULES_PORT,
	LONG_MS = 60000,
	MANY = 10000,
	CLASSES = RULES_PORTS,
	REPLACEMENTS = 8,
	RATE_STEPS = 4, /* rates of a class */
};

/* ---- What records say ---------------------------------------------------------------- */

struct class_sum {
	uint64_t records, packets, bytes;
	double estimate; /* packets */
};

static struct {
	struct witness *witness;
	struct class_sum classes[CLASSES];
} seen;

/* Whether a class may have this rate; each has RATE_STEPS of its own. */
static bool is_rate_of(uint32_t class, uint32_t interval, uint32_t mode)
{
	switch (class) {
	case 0:
	case 1:
		return mode == NETOBS_SAMPLE_PACKETS && interval > 1 &&
		       interval % 2 == class && interval < 4 + 2 * RATE_STEPS;
	case 2:
		return mode == NETOBS_SAMPLE_FLOWS && interval > 1 &&
		       interval < 2 + RATE_STEPS;
	default:
		return interval == 1;
	}
}

static void set_rate(struct netobs_rule *rule, uint32_t class, uint32_t step)
{
	rule->sampling = class == 3 ? 1 :
			 class == 2 ? 2 + step :
				      2 + class + 2 * step;
	rule->sampling_mode = class == 2 ? NETOBS_SAMPLE_FLOWS :
					   NETOBS_SAMPLE_PACKETS;
	assert_true(is_rate_of(class, rule->sampling, rule->sampling_mode));
}

static bool is_sampled_flow(const struct netobs_flow *flow)
{
	struct flow_key key = { .proto = flow->proto,
				.src_port = flow->src_port,
				.dst_port = flow->dst_port };

	memcpy(&key.src, flow->src, sizeof(key.src));
	memcpy(&key.dst, flow->dst, sizeof(key.dst));
	return is_flow_sampled(&key, flow->sampling);
}

static void on_flow(const struct netobs_record *record, void *user)
{
	const struct netobs_flow *flow = (const void *)record;
	uint32_t class = flow->dst_port - PORT;
	struct class_sum *sum = &seen.classes[class];

	witness_on_flow(record, user);
	assert_in_range(class, 0, CLASSES - 1);
	assert_true(flow->has & NETOBS_HAS_SAMPLING);
	if (!is_rate_of(class, flow->sampling, flow->sampling_mode))
		fail_msg("class %u: 1 of %u, mode %u", class, flow->sampling,
			 flow->sampling_mode);
	if (flow->sampling_mode == NETOBS_SAMPLE_FLOWS)
		assert_true(is_sampled_flow(flow));
	sum->records++;
	sum->packets += flow->packets;
	sum->bytes += flow->bytes;
	sum->estimate += (double)flow->packets * flow->sampling;
}

static struct netobs_rule rules[CLASSES];

/* A rule for each class. */
static struct netobs_opts sampling_options(struct context_fixture *f,
					   uint32_t interval_ms)
{
	static const char *const filters[CLASSES] = { "udp port 40000",
						      "udp port 40001",
						      "udp port 40002",
						      "udp port 40003" };
	struct netobs_opts opts = context_options(&f->witness, interval_ms);

	memset(&seen, 0, sizeof(seen));
	seen.witness = &f->witness;
	for (uint32_t i = 0; i < CLASSES; i++) {
		rules[i] = (struct netobs_rule){ .sz = sizeof(rules[i]),
						 .filter = filters[i],
						 .action = NETOBS_ACCEPT };
		set_rate(&rules[i], i, 0);
	}
	opts.on_record = on_flow;
	opts.rules = rules;
	opts.n_rules = CLASSES;
	opts.default_action = NETOBS_REJECT;
	opts.direction = NETOBS_EGRESS; /* an ingress queue may overflow */
	return opts;
}

/* What the rule decided about is in records, or sampled out, to the packet and the byte. */
static void assert_rule(const struct netobs *ctx, uint32_t i, uint64_t sent)
{
	const struct class_sum *sum = &seen.classes[i];
	struct netobs_count decided, out;

	assert_int_equal(netobs_rule_count_get(ctx, i, &decided), 0);
	assert_int_equal(netobs_rule_sampled_out_get(ctx, i, &out), 0);
	assert_int_equal(decided.packets, sent);
	assert_int_equal(decided.packets, sum->packets + out.packets);
	assert_int_equal(decided.bytes, sum->bytes + out.bytes);
}

/* Of random samples; 6 standard deviations, of one packet in @interval each. */
static void assert_estimate(uint32_t class, uint64_t sent, uint32_t interval)
{
	double error = seen.classes[class].estimate - (double)sent;
	double most = 6 * sqrt((double)sent * interval) + interval;

	if (error > most || error < -most)
		fail_msg("class %u: %.0f instead of %llu", class,
			 seen.classes[class].estimate, (unsigned long long)sent);
}

static void assert_all(const struct netobs *ctx, const uint64_t sent[CLASSES],
		       uint32_t interval)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	struct netobs_count out, sum = { 0 };

	for (uint32_t i = 0; i < CLASSES; i++) {
		assert_rule(ctx, i, sent[i]);
		assert_int_equal(netobs_rule_sampled_out_get(ctx, i, &out), 0);
		sum.packets += out.packets;
		sum.bytes += out.bytes;
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_estimate(i, sent[i], interval);
	assert_int_equal(seen.classes[3].packets, sent[3]);
	assert_int_equal(netobs_stats_get(ctx, &stats), 0);
	assert_int_equal(stats.sampled_out.packets, sum.packets);
	assert_int_equal(stats.sampled_out.bytes, sum.bytes);
	assert_int_equal(stats.filtered.packets, 0);
	context_assert_conserved(ctx);
}

#define CASE(name) \
	TEST_OF(name, struct context_fixture *f, rules_setup, rules_teardown)

/* ---- Changes ------------------------------------------------------------------------- */

/* Rules in random order, with random rates: some stay, in other places. */
static void change_at_random(struct netobs *ctx, struct netobs_opts *opts)
{
	struct netobs_rule swapped = rules[0];
	uint32_t i = test_below(CLASSES);
	int err;

	rules[0] = rules[i];
	rules[i] = swapped;
	for (i = 0; i < CLASSES; i++)
		if (test_below(2))
			set_rate(&rules[i], rules[i].filter[13] - '0',
				 test_below(RATE_STEPS));
	err = context_change(ctx, opts);
	if (err)
		fail_msg("%s", netobs_last_error(ctx));
}

CASE(rates_change_in_a_flood)
{
	uint32_t n = rules_count_replacements(REPLACEMENTS);
	struct netobs_opts opts = sampling_options(f, 100);
	struct rules_flood flood;

	context_start_with(f, &opts);
	rules_begin_flood(&flood, 0, CLASSES);
	for (uint32_t i = 1; i <= n; i++) {
		change_at_random(f->ctx, &opts);
		assert_true(netobs_poll(f->ctx, test_below(3)) >= 0);
	}
	/* In their first order, so that the number of a rule is the number of its class. */
	for (uint32_t i = 0; i < CLASSES; i++)
		while (rules[i].filter[13] - '0' != (int)i) {
			struct netobs_rule rule = rules[i];
			uint32_t to = (uint32_t)(rule.filter[13] - '0');

			rules[i] = rules[to];
			rules[to] = rule;
		}
	assert_int_equal(context_change(f->ctx, &opts), 0);
	rules_end_flood(&flood);
	context_stop(f->ctx);
	assert_all(f->ctx, flood.sent, 2 + 2 * RATE_STEPS);
}

/* Without rules, and with an expression: all classes have one rate, in turn that of each. */
static void assert_context_rate_changes(struct context_fixture *f,
					const char *expression)
{
	struct netobs_opts opts = context_options(&f->witness, LONG_MS);
	struct netobs_stats stats = { .sz = sizeof(stats) };
	uint64_t sum = 0;

	memset(&seen, 0, sizeof(seen));
	opts.on_record = on_flow;
	opts.filter = expression;
	opts.direction = NETOBS_EGRESS;
	for (uint32_t i = 0; i < 2 * CLASSES; i++) {
		struct netobs_rule rate = { 0 };

		set_rate(&rate, i % CLASSES, i % RATE_STEPS);
		opts.sampling = rate.sampling;
		opts.sampling_mode = rate.sampling_mode;
		if (i)
			assert_int_equal(context_change(f->ctx, &opts), 0);
		else
			context_start_with(f, &opts);
		lab_send((uint16_t)(PORT + i % CLASSES), MANY);
	}
	context_stop(f->ctx);
	for (uint32_t i = 0; i < 2; i++)
		assert_estimate(i, 2 * MANY, 2 + 2 * RATE_STEPS);
	assert_int_equal(seen.classes[3].packets, 2 * MANY);
	for (uint32_t i = 0; i < CLASSES; i++)
		sum += seen.classes[i].packets;
	assert_int_equal(netobs_stats_get(f->ctx, &stats), 0);
	assert_int_equal(stats.seen.packets, 2 * CLASSES * MANY);
	assert_int_equal(stats.sampled_out.packets + sum, 2 * CLASSES * MANY);
	context_assert_conserved(f->ctx);
}

CASE(sampling_of_a_context_changes)
{
	assert_context_rate_changes(f, NULL);
}

CASE(sampling_of_an_expression_changes)
{
	assert_context_rate_changes(f, "udp");
}

/* Those without a rate of their own. */
CASE(rules_inherit_the_rate_of_the_context)
{
	struct netobs_opts opts = sampling_options(f, LONG_MS);
	struct netobs_count out;

	for (uint32_t i = 0; i < CLASSES; i++)
		rules[i].sampling = i < 2 ? 0 : 1;
	opts.n_rules = 3; /* class 3 is left to the default */
	opts.default_action = NETOBS_ACCEPT;
	opts.sampling = 4;
	opts.on_record = witness_on_flow;
	context_start_with(f, &opts);
	for (int i = 0; i < CLASSES; i++)
		lab_send((uint16_t)(PORT + i), MANY);
	opts.sampling = 0;
	assert_int_equal(context_change(f->ctx, &opts), 0);
	for (int i = 0; i < CLASSES; i++)
		lab_send((uint16_t)(PORT + i), MANY);
	context_stop(f->ctx);
	for (uint32_t i = 0; i < CLASSES; i++) {
		assert_int_equal(netobs_rule_sampled_out_get(f->ctx, i, &out), 0);
		assert_int_equal(witness_packets_to(&f->witness,
						    (uint16_t)(PORT + i)) +
					 out.packets,
				 2 * MANY);
		if (i == 2)
			assert_int_equal(out.packets, 0);
		else
			assert_in_range(out.packets, MANY * 3 / 4 - MANY / 20,
					MANY * 3 / 4 + MANY / 20);
	}
	context_assert_conserved(f->ctx);
}

/* ---- What is refused ----------------------------------------------------------------- */

CASE(wrong_rates_are_refused_and_nothing_changes)
{
	struct netobs_rule many[NETOBS_RATES_MAX + 1];
	struct netobs_opts opts = sampling_options(f, LONG_MS);
	struct netobs_count count;

	context_start_with(f, &opts);
	rules[1].sampling_mode = 7;
	context_assert_refused(f, &opts, -EINVAL, "rules[1]: sampling_mode");
	set_rate(&rules[1], 1, 0);
	rules[2].action = NETOBS_REJECT;
	context_assert_refused(f, &opts, -EINVAL, "rules[2]: sampling");
	for (uint32_t i = 0; i <= NETOBS_RATES_MAX; i++) {
		many[i] = rules[0];
		many[i].sampling = 100 + i;
	}
	opts.rules = many;
	opts.n_rules = NETOBS_RATES_MAX + 1;
	context_assert_refused(f, &opts, -E2BIG, "7 are the most");
	assert_int_equal(netobs_rule_sampled_out_get(f->ctx, 6, &count), -ENOENT);
	assert_int_equal(netobs_rule_sampled_out_get(f->ctx, 0, NULL), -EINVAL);
	assert_int_equal(netobs_rule_sampled_out_get(NULL, 0, &count), -EINVAL);
	lab_send(PORT + 3, 5);
	context_stop(f->ctx);
	assert_int_equal(seen.classes[3].packets, 5);
}

/* As many as there may be, replaced by as many others. */
CASE(all_rates_are_replaced_at_once)
{
	struct netobs_rule many[NETOBS_RATES_MAX];
	struct netobs_opts opts = sampling_options(f, LONG_MS);

	opts.rules = many;
	opts.n_rules = NETOBS_RATES_MAX;
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < NETOBS_RATES_MAX; i++) {
			many[i] = rules[0];
			many[i].sampling = 1000 + round * NETOBS_RATES_MAX + i;
		}
		if (round)
			assert_int_equal(context_change(f->ctx, &opts), 0);
		else
			context_start_with(f, &opts);
	}
	context_stop(f->ctx);
}
