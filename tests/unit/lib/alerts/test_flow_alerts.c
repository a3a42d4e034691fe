// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Rules about flows count, hold and limit as those about connections do: by sample, rule and flow. */
#include "alerts/alerts.h"

#include "bpf/parse/headers.h"
#include "lib_seed.h"
#include "lib_test.h"

struct fixture {
	struct flow_alerts alerts;
	struct alert_set *set;
	uint32_t n; /* reported */
	struct flow_alert last;
};

static void note_report(const struct flow_alert *alert, void *ctx)
{
	struct fixture *f = ctx;

	f->last = *alert;
	f->n++;
}

static void use_rules(struct fixture *f, const struct alert_source *rules,
		      uint32_t n)
{
	char error[ALERT_ERROR_MAX] = "";
	struct alert_set *before = f->set;

	if (alert_set_new(rules, n, &f->set, &error))
		fail_msg("%s", error);
	alert_set_succeed(f->set, before, f->alerts.counts);
	alert_set_free(before);
	assert_int_equal(flow_alerts_open(&f->alerts), 0);
}

static struct fixture with_rule(const char *text)
{
	const struct alert_source rule = { "r", text };
	struct fixture f = { 0 };

	use_rules(&f, &rule, 1);
	return f;
}

static void end(struct fixture *f)
{
	flow_alerts_close(&f->alerts);
	alert_set_free(f->set);
}

/* Of 10.0.0.@flow to port 443 of 10.0.0.1, after @s seconds. */
static bool look(struct fixture *f, uint8_t flow, int64_t s, uint64_t dropped,
		 uint64_t packets)
{
	struct flow_sample sample = {
		.tuple = { .src_port = 4000,
			   .dst_port = 443,
			   .proto = IP_PROTO_UDP },
		.netns = 1,
		.packets = packets,
		.dropped = dropped,
		.boot_ns = (1000 + s) * (int64_t)NSEC_PER_SEC,
	};
	const uint32_t before = f->n;

	sample.tuple.src[10] = sample.tuple.src[11] = 0xff;
	sample.tuple.src[12] = 10;
	memcpy(sample.tuple.dst, sample.tuple.src, sizeof(sample.tuple.dst));
	sample.tuple.src[15] = flow;
	sample.tuple.dst[15] = 1;
	if (flow_alerts_are_due(f->set, dropped))
		flow_alerts_look(&f->alerts, f->set, &sample, note_report, f);
	return f->n > before;
}

static struct alert_count count_of(const struct fixture *f, uint32_t rule)
{
	return alert_set_count(&f->set->entries[rule], f->alerts.counts);
}

static void assert_counts(const struct fixture *f, uint64_t fired,
			  uint64_t held, uint64_t limited)
{
	const struct alert_count count = count_of(f, 0);

	assert_int_equal(count.fired, fired);
	assert_int_equal(count.held, held);
	assert_int_equal(count.limited, limited);
	assert_int_equal(count.broken, fired + held + limited);
}

TEST(packets_and_shares_are_compared)
{
	static const struct {
		const char *rule;
		uint64_t dropped, packets, value;
		bool is_broken;
	} rows[] = {
		{ "drops > 0", 1, 1000, 1, true },
		{ "drops > 0", 0, 1000, 0, false },
		{ "drops > 10", 10, 10, 0, false },
		{ "drops > 10", 11, 1000000, 11, true },
		{ "drops > 0.1%", 1, 1000, 0, false },
		{ "drops > 0.1%", 1, 999, 1001, true },
		{ "drops > 0%", 1, 1000000, 1, true },
		{ "drops > 0%", 1, 1000001, 0, false },
		{ "drops > 99%", 3, 2, 1000000, true },
		{ "drops > 99.9999%", 3, 2, 1000000, true },
		{ "drops > 99.9999%", 999999, 1000000, 0, false },
		{ "drops > 0.0001%", 1, 1000000, 0, false },
		{ "drops > 0.000100%", 2, 1000000, 2, true },
		{ "drops > 5 where port 443", 6, 6, 6, true },
		{ "drops > 5 where tcp", 6, 6, 0, false },
		{ "drops > 5 where src host 10.0.0.2", 6, 6, 6, true },
		{ "drops > 5 where src host 10.0.0.3", 6, 6, 0, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fixture f = with_rule(rows[i].rule);

		if (look(&f, 2, 0, rows[i].dropped, rows[i].packets) !=
		    rows[i].is_broken)
			fail_msg("%s", rows[i].rule);
		if (rows[i].is_broken)
			assert_int_equal(f.last.value, rows[i].value);
		end(&f);
	}
}

TEST(a_limit_is_for_all_flows)
{
	struct fixture f = with_rule("drops > 5 hold 0s limit 3/m");

	for (uint8_t flow = 0; flow < 10; flow++)
		assert_int_equal(look(&f, flow, 0, 6, 6), flow < 3);
	assert_false(look(&f, 2, 19, 6, 6));
	assert_true(look(&f, 2, 20, 6, 6));
	assert_false(look(&f, 2, 20, 6, 6));
	assert_counts(&f, 4, 0, 9);
	end(&f);
}

TEST(a_rule_that_stays_keeps_what_it_knows)
{
	const struct alert_source before[] = { { "a", "drops > 5 hold 1h" },
					       { "b", "drops > 7 hold 1h" } };
	const struct alert_source after[] = { { "c", "drops > 9 hold 1h" },
					      { "a", "drops > 5 hold 1h" } };
	struct fixture f = { 0 };

	use_rules(&f, before, 2);
	assert_true(look(&f, 2, 0, 100, 100));
	assert_int_equal(f.n, 2);
	use_rules(&f, after, 2);
	look(&f, 2, 1, 100, 100);
	assert_int_equal(f.n, 3);
	assert_string_equal(f.last.entry->name, "c");
	assert_int_equal(count_of(&f, 1).fired, 1);
	assert_int_equal(count_of(&f, 1).held, 1);
	assert_int_equal(alert_set_count_others(f.set, f.alerts.counts).fired, 1);
	end(&f);
}

/* ---- A model ---------------------------------------------------------------------------- */

enum { FLOWS = 20, STEPS = 5000, NEEDED = 2, AMONG = 4, HOLD_S = 7 };

struct model {
	uint32_t history[FLOWS];
	int64_t silent_s[FLOWS];
	uint64_t fired, held;
};

static bool model_look(struct model *model, uint32_t flow, int64_t s,
		       uint64_t dropped)
{
	uint32_t *history = &model->history[flow];

	*history = (*history << 1 | (dropped > 5)) & ((1 << AMONG) - 1);
	if (!(*history & 1) || __builtin_popcount(*history) < NEEDED)
		return false;
	if (s < model->silent_s[flow]) {
		model->held++;
		return false;
	}
	model->silent_s[flow] = s + HOLD_S;
	model->fired++;
	return true;
}

TEST(random_samples_are_judged_as_by_a_model)
{
	struct fixture f = with_rule("drops > 5 for 2 of 4 hold 7s limit none");
	struct model model = { 0 };

	for (int64_t s = 0; s < STEPS; s++) {
		const uint8_t flow = (uint8_t)test_below(FLOWS);
		const uint64_t dropped = (uint64_t)test_below(10);

		const bool fires = model_look(&model, flow, s, dropped);

		assert_int_equal(look(&f, flow, s, dropped, 10), fires);
		if (fires)
			assert_int_equal(f.last.hits,
					 __builtin_popcount(model.history[flow]));
	}
	assert_true(model.fired && model.held);
	assert_counts(&f, model.fired, model.held, 0);
	end(&f);
}
