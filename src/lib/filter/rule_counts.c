// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The slots that rules count in: the last part of filter.h. */
#include "rule.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

_Static_assert(RULE_SLOTS >= 2 * (FILTER_RULES_MAX + 1),
	       "a filter and the one that replaces it have all theirs");

/* @return the rule of @before that @rule continues; NULL: it is new */
static const struct rule *find_same_rule(const struct filter *before,
					 const struct rule *rule,
					 const bool is_taken[RULE_SLOTS])
{
	for (uint32_t i = 0; i < before->n; i++)
		if (!is_taken[before->rules[i].slot] &&
		    rule_is_same(&before->rules[i], rule))
			return &before->rules[i];
	return NULL;
}

/* @return a slot that is not in use; RULE_SLOTS: all are */
static uint32_t take_rule_slot(struct filter *filter,
			       const bool is_used[RULE_SLOTS])
{
	for (uint32_t i = 0; i < RULE_SLOTS; i++) {
		uint32_t slot = filter->next_slot++ % RULE_SLOTS;

		if (!is_used[slot])
			return slot;
	}
	return RULE_SLOTS;
}

int filter_succeed(struct filter *filter, const struct filter *before,
		   bool is_settled, const struct rule_count totals[RULE_SLOTS])
{
	bool is_used[RULE_SLOTS], is_taken[RULE_SLOTS] = { false };

	if (is_settled)
		memset(filter->is_busy, 0, sizeof(filter->is_busy));
	else
		memcpy(filter->is_busy, before->is_busy, sizeof(before->is_busy));
	for (uint32_t i = 0; i < before->n; i++)
		filter->is_busy[before->rules[i].slot] = true;
	memcpy(is_used, filter->is_busy, sizeof(is_used));
	filter->next_slot = before->next_slot;
	filter->reported = before->reported;
	for (uint32_t i = 0; i < filter->n; i++) {
		struct rule *rule = &filter->rules[i];
		const struct rule *same = find_same_rule(before, rule, is_taken);

		if (same) {
			rule->slot = same->slot;
			rule->before = same->before;
			is_taken[same->slot] = true;
			continue;
		}
		rule->slot = take_rule_slot(filter, is_used);
		if (rule->slot == RULE_SLOTS)
			return -EBUSY;
		rule->before = totals[rule->slot];
		is_used[rule->slot] = true;
	}
	return 0;
}

void filter_adopt(struct filter *filter, uint32_t next_slot,
		  const struct rule_count *reported,
		  const struct rule_count totals[RULE_SLOTS])
{
	filter->next_slot = next_slot;
	filter->reported = *reported;
	for (uint32_t i = 0; i < filter->n; i++) {
		struct rule *rule = &filter->rules[i];

		rule->slot = filter->next_slot++ % RULE_SLOTS;
		rule->before = totals[rule->slot];
	}
}

uint32_t filter_next_slot(const struct filter *filter)
{
	return filter->next_slot % RULE_SLOTS;
}

static struct rule_count count_of_rule(const struct rule *rule,
				       const struct rule_count totals[RULE_SLOTS])
{
	struct rule_count count = totals[rule->slot];

	counters_subtract(&count, &rule->before, sizeof(count));
	return count;
}

int filter_count(const struct filter *filter, uint32_t rule,
		 const struct rule_count totals[RULE_SLOTS],
		 struct rule_count *ret_count)
{
	struct rule_count others = totals[0];

	if (rule > filter->n)
		return -ENOENT;
	if (rule < filter->n) {
		*ret_count = count_of_rule(&filter->rules[rule], totals);
		return 0;
	}
	for (uint32_t i = 1; i < RULE_SLOTS; i++)
		counters_add(&others, &totals[i], sizeof(others));
	for (uint32_t i = 0; i < filter->n; i++) {
		const struct rule_count own =
			count_of_rule(&filter->rules[i], totals);

		counters_subtract(&others, &own, sizeof(others));
	}
	counters_subtract(&others, &filter->reported, sizeof(others));
	*ret_count = others;
	return 0;
}
