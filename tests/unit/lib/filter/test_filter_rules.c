// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Lists of rules, and the slots in which they count when one list replaces another. */
#include "lib_test.h"

#include "filter/filter.h"

enum { REPLACEMENTS = 600 };

static struct filter *make_list(const char *const *expressions, uint32_t n)
{
	struct filter_rule rules[FILTER_RULES_MAX];
	const struct filter_rules list = { .rules = rules, .n = n };
	char error[FILTER_ERROR_MAX];
	struct filter *filter = NULL;

	for (uint32_t i = 0; i < n; i++)
		rules[i] = (struct filter_rule){ .expression = expressions[i],
						 .accepts = true };
	if (filter_new_list(&list, &filter, &error))
		fail_msg("%s", error);
	return filter;
}

TEST(error_names_the_rule)
{
	const struct filter_rule rules[] = {
		{ .expression = "udp", .accepts = true },
		{ .expression = "tcp prt 5" },
	};
	const struct filter_rules list = { .rules = rules,
					   .n = 2,
					   .accepts_others = true };
	struct filter *filter = NULL;
	char error[FILTER_ERROR_MAX];

	assert_int_equal(filter_new_list(&list, &filter, &error), -EINVAL);
	assert_null(filter);
	assert_ptr_equal(strstr(error, "rules[1]: "), error);
	assert_non_null(strstr(error, "at 'prt 5'"));
}

static uint64_t counted(const struct filter *filter, uint32_t rule,
			const struct rule_count *totals)
{
	struct rule_count count;

	assert_int_equal(filter_count(filter, rule, totals, &count), 0);
	return count.decided.packets;
}

/* "udp" is in all lists, and keeps its count; no count is lost with the others. */
TEST(counts_survive_any_number_of_lists)
{
	static const char *const lists[][3] = { { "udp", "tcp port 1", "icmp" },
						{ "arp", "udp", "tcp port 2" },
						{ "tcp port 3", "icmp6", "udp" } };
	static const uint8_t frame[60] = { [12] = 0x08, [14] = 0x45, [23] = 17 };
	struct filter *filter = make_list(lists[0], 3);
	struct rule_count totals[RULE_SLOTS] = { 0 };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < REPLACEMENTS; i++) {
		struct filter *next = make_list(lists[(i + 1) % 3], 3);
		uint32_t judgement = filter_judge(filter, frame, sizeof(frame),
						  sizeof(frame));

		assert_true(judgement & JUDGED_ACCEPT);
		totals[judged_slot(judgement)].decided.packets++;
		/* And two packets are left to the default. */
		judgement = filter_judge(filter, "", 0, 0);
		totals[judged_slot(judgement)].decided.packets += 2;
		assert_int_equal(counted(filter, i % 3, totals), i + 1);
		assert_int_equal(counted(filter, 3, totals), 2 * (i + 1));
		assert_int_equal(filter_succeed(next, filter, true, totals), 0);
		filter_free(filter);
		filter = next;
	}
	for (uint32_t rule = 0; rule <= 4; rule++)
		sum += counted(filter, rule, totals);
	assert_int_equal(sum, 3 * REPLACEMENTS);
	assert_int_equal(filter_count(filter, 5, totals, totals), -ENOENT);
	filter_free(filter);
}

/* The counts of a removed rule are in the sum of removed rules, even if its slot was reused. */
TEST(count_of_a_rule_that_went_is_not_mixed_up)
{
	static const char *const lists[][1] = { { "udp" }, { "tcp" } };
	struct filter *filter = make_list(lists[0], 1);
	struct rule_count totals[RULE_SLOTS] = { 0 };
	uint64_t went = 0;

	for (uint32_t i = 0; i < 3 * RULE_SLOTS; i++) {
		struct filter *next = make_list(lists[(i + 1) % 2], 1);

		for (uint32_t slot = 0; slot < RULE_SLOTS; slot++)
			totals[slot].decided.packets++;
		went += RULE_SLOTS;
		assert_int_equal(filter_succeed(next, filter, true, totals), 0);
		assert_int_equal(counted(next, 0, totals), 0);
		assert_int_equal(counted(next, 1, totals) +
					 counted(next, 2, totals),
				 went);
		filter_free(filter);
		filter = next;
	}
	filter_free(filter);
}

/* A program of any earlier list may be attached yet, so no slot is another rule's. */
TEST(slots_are_not_reused_while_programs_are_attached)
{
	static const char *const lists[][1] = { { "udp" }, { "ip" } };
	static const uint8_t frame[60] = { [12] = 0x08, [14] = 0x45, [23] = 17 };
	struct filter *filter = make_list(lists[0], 1), *next;
	const struct rule_count totals[RULE_SLOTS] = { 0 };
	bool was_used[RULE_SLOTS] = { [0] = true };
	uint32_t n = 0;
	int err;

	do {
		uint32_t slot;

		next = make_list(lists[++n % 2], 1);
		err = filter_succeed(next, filter, false, totals);
		if (err)
			break;
		slot = judged_slot(filter_judge(next, frame, sizeof(frame),
						sizeof(frame)));
		assert_false(was_used[slot]);
		was_used[slot] = true;
		filter_free(filter);
		filter = next;
	} while (n < 2 * RULE_SLOTS);
	assert_int_equal(err, -EBUSY);
	assert_in_range(n, RULE_SLOTS - 3, RULE_SLOTS);
	assert_int_equal(filter_succeed(next, filter, true, totals), 0);
	filter_free(next);
	filter_free(filter);
}
