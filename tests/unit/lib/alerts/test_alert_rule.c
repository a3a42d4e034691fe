// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Rules as text: random ones mean what they were made of, and errors name the place. In sets,
 * rules keep their slots. NETOBS_TEST_SEED repeats a run.
 */
#include <netobs/alert.h>

#include "lib_seed.h"
#include "lib_test.h"

#include "alerts/alerts.h"
#include "bpf/rtt/alert.h"

enum { ROUNDS = 20000, MILLION = 1000000 };

/* Of any magnitude. */
static uint32_t random_bits(void)
{
	return (uint32_t)test_random() >> test_below(32);
}

static struct alert_spec parse(const char *text)
{
	char why[640] = "";
	struct alert_spec spec = { 0 };

	if (alert_rule_parse(text, &spec, why, sizeof(why)))
		fail_msg("'%s': %s", text, why);
	return spec;
}

TEST(defaults_are_those_of_the_manual)
{
	struct alert_spec spec = parse("rtt>50ms");

	assert_int_equal(spec.metric, ALERT_RTT);
	assert_int_equal(spec.threshold, 50000000);
	assert_false(spec.is_ratio);
	assert_int_equal(spec.needed, 1);
	assert_int_equal(spec.among, 1);
	assert_int_equal(spec.hold_ns, 10000000000);
	assert_int_equal(spec.limit, 10);
	assert_int_equal(spec.limit_period_ns, 1000000000);
	assert_null(spec.filter);
}

struct text {
	char bytes[ALERT_TEXT_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text,
						      const char *format, ...)
{
	va_list args;

	for (uint32_t blanks = 1 + test_below(3); blanks--;)
		text->bytes[text->len++] = " \t"[test_below(2)];
	va_start(args, format);
	text->len += (size_t)vsnprintf(text->bytes + text->len,
				       sizeof(text->bytes) - text->len, format,
				       args);
	va_end(args);
}

static void add_time(struct text *text, uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 },
		      { "us", 1000 },
		      { "ms", 1000000 },
		      { "s", 1000000000 } };
	int unit = (int)test_below(4);

	if (ns / units[unit].ns > 999999999)
		unit = 3;
	/* Six decimals hold all of it. */
	while (ns % units[unit].ns && units[unit].ns > MILLION)
		unit--;
	if (ns % units[unit].ns)
		add(text, "%llu.%06llu%s",
		    (unsigned long long)(ns / units[unit].ns),
		    (unsigned long long)(ns % units[unit].ns * MILLION /
					 units[unit].ns),
		    units[unit].name);
	else
		add(text, "%llu%s", (unsigned long long)(ns / units[unit].ns),
		    units[unit].name);
}

/* Options in any order. */
static void add_options(struct text *text, struct alert_spec *spec)
{
	uint32_t first = test_below(3);

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t option = (first + i) % 3;

		if (test_below(2))
			continue;
		if (option == 0) {
			spec->among = 1 + test_below(8);
			spec->needed = 1 + test_below(spec->among);
			add(text, "for %u of %u", spec->needed, spec->among);
		} else if (option == 1) {
			spec->hold_ns = test_below(1000) * 1000000ULL;
			add(text, "hold");
			add_time(text, spec->hold_ns);
		} else if (test_below(4)) {
			spec->limit = 1 + test_below(MILLION);
			spec->limit_period_ns = 60000000000;
			add(text, "limit %u%s/%sm", spec->limit,
			    test_below(2) ? " " : "", test_below(2) ? " " : "");
		} else {
			spec->limit = 0;
			add(text, "limit none");
		}
	}
	if (test_below(2)) {
		spec->filter = "tcp port 443 and not net 10.0.0.0/8";
		add(text, "where %s", spec->filter);
	}
}

static void add_threshold(struct text *text, struct alert_spec *spec)
{
	uint32_t number = test_below(MILLION);

	spec->metric = test_below(ALERT_RULE_METRICS);
	add(text, "%s >",
	    spec->metric == ALERT_DROP_SHARE ?
		    "drops" :
		    netobs_alert_metric_name(spec->metric));
	if (spec->metric == ALERT_DROPS) {
		spec->threshold = number;
		add(text, "%u", number);
	} else if (spec->metric == ALERT_RETRANSMITS ||
		   spec->metric == ALERT_DROP_SHARE) {
		spec->threshold = number;
		add(text, "%u.%04u%%", number / 10000, number % 10000);
	} else if (spec->metric == ALERT_RATE) {
		spec->threshold = number * 1000ULL;
		add(text, "%u.%03uMbit%s", number / 1000, number % 1000,
		    test_below(2) ? "/s" : "");
	} else if (test_below(3)) {
		spec->threshold = number * 1000ULL;
		add_time(text, spec->threshold);
	} else {
		spec->is_ratio = true;
		spec->threshold = (1 + number) << ALERT_RATIO_SHIFT;
		add(text, "%u * baseline", 1 + number);
	}
}

TEST(random_rules_mean_what_they_were_made_of)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct alert_spec want = parse("rtt > 1ms"), got;
		struct text text = { .len = 0 };

		want.threshold = 0;
		add_threshold(&text, &want);
		add_options(&text, &want);
		text.bytes[text.len] = '\0';
		got = parse(text.bytes);
		assert_int_equal(got.metric, want.metric);
		assert_int_equal(got.is_ratio, want.is_ratio);
		if (got.threshold != want.threshold)
			fail_msg("'%s': %llu", text.bytes,
				 (unsigned long long)got.threshold);
		assert_int_equal(got.needed, want.needed);
		assert_int_equal(got.among, want.among);
		assert_int_equal(got.hold_ns, want.hold_ns);
		assert_int_equal(got.limit, want.limit);
		if (want.limit)
			assert_int_equal(got.limit_period_ns,
					 want.limit_period_ns);
		assert_int_equal(!got.filter, !want.filter);
		if (want.filter)
			assert_string_equal(got.filter, want.filter);
	}
}

TEST(errors_name_the_place_and_the_word_that_was_meant)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "",
		  "column 1: the rule ends too early: it lacks one of rtt, app_latency, retransmits, rate and drops" },
		{ "rt > 5ms",
		  "column 1: there is no metric 'rt'; did you mean 'rtt'?" },
		{ "rtt < 5ms", "column 5: '<' is there, and '>' is expected" },
		{ "rtt > ms",
		  "column 7: 'ms' is there, and a time, such as 50ms is expected" },
		{ "rtt > 5",
		  "column 8: the rule ends too early: it lacks a unit (ns, us, ms, s, m or h)" },
		{ "rtt > 5mss",
		  "column 8: there is no unit 'mss'; did you mean 'ms'?" },
		{ "rtt > 3 * basline",
		  "column 11: there is no word 'basline'; did you mean 'baseline'?" },
		{ "rate > 3 * baseline", "column 12: rate has no baseline" },
		{ "rtt > 0.5 * baseline",
		  "column 7: a multiple is from 1 to 1000000" },
		{ "rtt > 5m", "column 7: the most is 274s" },
		{ "retransmits > 100%", "column 15: the most is 99.9999%" },
		{ "retransmits > 0.00005%",
		  "column 15: shares are multiples of 0.0001%" },
		{ "drops > 101%", "column 9: the most is 99.9999%" },
		{ "drops > 100%", "column 9: the most is 99.9999%" },
		{ "drops > 99.99995%",
		  "column 9: shares are multiples of 0.0001%" },
		{ "drops > 0.00001%",
		  "column 9: shares are multiples of 0.0001%" },
		{ "drops > 0.5", "column 9: packets are whole numbers" },
		{ "drops > 5 * baseline", "column 13: drops has no baseline" },
		{ "drops > %",
		  "column 9: '%' is there, and a number of packets, or a share, such as 1% is expected" },
		{ "rate > 5G",
		  "column 9: there is no unit 'G'; a unit (bit, kbit, Mbit or Gbit) is expected" },
		{ "drops > 5ms",
		  "column 10: there is no option 'ms'; for, hold, limit or where is expected" },
		{ "drop_share > 1%",
		  "column 1: there is no metric 'drop_share'; one of rtt, app_latency, retransmits, rate and drops is expected" },
		{ "rtt > 5ms for 3 of 2", "column 15: 3 of 2 cannot be" },
		{ "rtt > 5ms for 9 of 9",
		  "column 15: the number has to be from 1 to 8" },
		{ "rtt > 5ms for 3 off 5",
		  "column 17: 'off' is there, and 'of' is expected" },
		{ "rtt > 5ms hlod 3s",
		  "column 11: there is no option 'hlod'; did you mean 'hold'?" },
		{ "rtt > 5ms hold 3s hold 4s",
		  "column 19: 'hold' is there twice" },
		{ "rtt > 5ms limit 10",
		  "column 19: the rule ends too early: it lacks '/s', '/m' or '/h'" },
		{ "rtt > 5ms where ",
		  "column 17: the rule ends too early: it lacks an expression" },
		{ "rtt > 5ms, hold 3s",
		  "column 10: ',' is there, and for, hold, limit or where is expected" },
		{ "rtt > 1234567890ms",
		  "column 7: the number has more than 9 digits" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct alert_spec spec;
		char why[640] = "";

		assert_int_equal(alert_rule_parse(cases[i].text, &spec, why,
						  sizeof(why)),
				 -22);
		assert_string_equal(why, cases[i].why);
	}
}

/* ---- Sets --------------------------------------------------------------------------- */

static struct alert_set *make(const struct alert_source *rules, uint32_t n)
{
	char error[ALERT_ERROR_MAX] = "";
	struct alert_set *set = NULL;

	if (alert_set_new(rules, n, &set, &error))
		fail_msg("%s", error);
	return set;
}

TEST(a_wrong_rule_of_a_set_is_named)
{
	const struct alert_source rules[] = {
		{ "a", "rtt > 5ms" },
		{ "b", "rtt > 5ms where prot 80" },
	};
	char error[ALERT_ERROR_MAX];
	struct alert_set *set = NULL;

	assert_int_equal(alert_set_new(rules, 2, &set, &error), -22);
	assert_null(set);
	assert_memory_equal(error, "alerts[1]: column 17: ", 22);
}

TEST(rules_are_sorted_by_metric_and_threshold)
{
	struct alert_count totals[ALERT_SLOTS] = { { 0 } };
	struct alert_source rules[ALERT_RULES_MAX];
	char texts[ALERT_RULES_MAX][ALERT_TEXT_MAX];
	struct alert_table table;
	struct alert_set *set;
	uint32_t n = 0; /* of connections */

	for (uint32_t i = 0; i < ALERT_RULES_MAX; i++) {
		struct alert_spec spec = { 0 };
		struct text text = { .len = 0 };

		add_threshold(&text, &spec);
		text.bytes[text.len] = '\0';
		memcpy(texts[i], text.bytes, text.len + 1);
		rules[i] = (struct alert_source){ NULL, texts[i] };
		n += !alert_is_of_flows(spec.metric);
	}
	set = make(rules, ALERT_RULES_MAX);
	alert_set_succeed(set, NULL, totals);
	alert_set_compile(set, 1, &table);
	assert_int_equal(set->has_flow_rules, n < ALERT_RULES_MAX);
	assert_int_equal(table.n, n);
	assert_int_equal(table.first[ALERT_KINDS], n);
	for (uint32_t kind = 0; kind < ALERT_KINDS; kind++) {
		for (uint32_t i = table.first[kind]; i < table.first[kind + 1];
		     i++) {
			const struct alert_entry *entry = alert_set_find(
				set, table.rules[i].slot, table.rules[i].life);

			assert_non_null(entry);
			assert_int_equal(entry->spec.metric, kind / 4);
			assert_int_equal(entry->spec.is_ratio, kind / 2 % 2);
			assert_int_equal(
				table.thresholds[kind][i - table.first[kind]],
				table.rules[i].threshold);
			if (i > table.first[kind])
				assert_true(table.rules[i - 1].threshold <=
					    table.rules[i].threshold);
		}
	}
	alert_set_free(set);
}

/* Of all lengths, with equal thresholds among them, and samples beside those. */
TEST(thresholds_are_counted_as_one_by_one)
{
	for (int round = 0; round < ROUNDS; round++) {
		const bool is_ratio = test_below(2);
		const uint32_t most = is_ratio ? INT32_MAX : UINT32_MAX;
		const uint32_t baseline = random_bits(), step = random_bits();
		uint32_t thresholds[ALERT_RULES_MAX], sample = random_bits();
		uint32_t n = 0;

		for (uint32_t i = 0; i < ALERT_RULES_MAX; i++) {
			uint32_t before = i ? thresholds[i - 1] : 0;
			uint32_t more =
				test_below(3) ? test_below(step % 65536 + 1) : 0;

			thresholds[i] = more < most - before ? before + more :
							       most;
		}
		if (!is_ratio && test_below(2))
			sample = thresholds[test_below(ALERT_RULES_MAX)] +
				 test_below(2);
		for (uint32_t i = 0; i < ALERT_RULES_MAX; i++)
			n += is_ratio ?
				     baseline &&
					     sample * 256.0L >
						     thresholds[i] *
							     (long double)baseline :
				     sample > thresholds[i];
		assert_int_equal(alert_count_over(thresholds, sample, baseline,
						  is_ratio),
				 n);
	}
}

/* Each count belongs to the rule that was there when it was counted. */
TEST(rules_keep_their_counts_through_random_changes)
{
	enum { NAMES = 40, CHANGES = 300 };
	struct alert_count totals[ALERT_SLOTS] = { { 0 } };
	uint64_t fired[NAMES] = { 0 };
	struct alert_set *set = NULL;
	char texts[NAMES][32];

	for (int i = 0; i < NAMES; i++)
		snprintf(texts[i], sizeof(texts[i]), "rtt > %dms", i);
	for (int change = 0; change < CHANGES; change++) {
		struct alert_source rules[NAMES];
		struct alert_set *next;
		uint32_t names[NAMES], n = 0;

		for (uint32_t name = 0; name < NAMES; name++) {
			bool was_there = false;

			for (uint32_t i = 0; set && i < set->n; i++)
				was_there |= !strcmp(set->entries[i].text,
						     texts[name]);
			if (test_below(2)) {
				fired[name] = 0;
				continue;
			}
			if (!was_there)
				fired[name] = 0;
			names[n] = name;
			rules[n++] = (struct alert_source){ "x", texts[name] };
		}
		next = make(rules, n);
		alert_set_succeed(next, set, totals);
		alert_set_free(set);
		set = next;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t times = test_below(5);

			assert_int_equal(
				alert_set_count(&set->entries[i], totals).fired,
				fired[names[i]]);
			totals[set->entries[i].slot].fired += times;
			fired[names[i]] += times;
		}
	}
	alert_set_free(set);
}
