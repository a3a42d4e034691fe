/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "filter.h"

#include "base/util.h"
#include "classic.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_filter(struct filter **filter)
{
	filter_free(*filter);
}

static struct filter *filter_alloc(const struct filter_rules *list)
{
	uint32_t n = list->n + 1;
	struct filter *filter =
		calloc(1, sizeof(*filter) + n * sizeof(*filter->rules));

	if (!filter)
		return NULL;
	filter->n = filter->next_slot = n;
	for (uint32_t i = 0; i < n; i++)
		filter->rules[i].slot = i;
	filter->rules[list->n].accepts = list->accepts_others;
	if (list->accepts_others)
		filter->rules[list->n].rate = list->rate;
	return filter;
}

static int compile_list(const struct filter_rules *list,
			struct filter **ret_filter, uint32_t *ret_wrong,
			char (*ret_error)[FILTER_ERROR_MAX])
{
	__attribute__((cleanup(free_filter))) struct filter *filter =
		filter_alloc(list);

	if (!filter)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->n; i++) {
		struct rule *rule = &filter->rules[i];
		int err = expression_compile(
			&rule->expression, list->rules[i].expression, ret_error);

		*ret_wrong = i;
		if (err)
			return err;
		rule->accepts = list->rules[i].accepts;
		if (rule->accepts)
			rule->rate = list->rules[i].rate;
	}
	*ret_filter = TAKE_PTR(filter);
	return 0;
}

int filter_new(const char *expression, struct filter **ret_filter,
	       char (*ret_error)[FILTER_ERROR_MAX])
{
	const struct filter_rule rule = { .expression = expression,
					  .accepts = true };
	const struct filter_rules list = { .rules = &rule, .n = 1 };
	uint32_t wrong;

	return compile_list(&list, ret_filter, &wrong, ret_error);
}

int filter_compile(const char *expression, const struct log *log,
		   struct filter **ret_filter)
{
	char error[FILTER_ERROR_MAX] = "";
	int err = expression ? filter_new(expression, ret_filter, &error) : 0;

	if (err)
		log_error(log, "filter: %s", *error ? error : strerror(-err));
	return err;
}

void filter_sample(struct filter *filter, const struct rate *rate)
{
	assert(!filter->is_list);
	filter->rules[0].rate = *rate;
}

int filter_new_list(const struct filter_rules *list, struct filter **ret_filter,
		    char (*ret_error)[FILTER_ERROR_MAX])
{
	char error[FILTER_ERROR_MAX] = "";
	uint32_t wrong = 0;
	int err;

	assert(list->n <= FILTER_RULES_MAX);
	err = compile_list(list, ret_filter, &wrong, &error);
	if (err)
		snprintf(*ret_error, FILTER_ERROR_MAX, "rules[%u]: %.480s",
			 wrong, *error ? error : strerror(-err));
	else
		(*ret_filter)->is_list = true;
	return err;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	for (uint32_t i = 0; i < filter->n; i++)
		expression_done(&filter->rules[i].expression);
	free(filter);
}

const char *filter_expression(const struct filter *filter)
{
	return filter->rules[0].expression.text;
}

bool filter_is_list(const struct filter *filter)
{
	return filter->is_list;
}

bool rule_is_same(const struct rule *one, const struct rule *other)
{
	const char *text = one->expression.text;

	return one->accepts == other->accepts &&
	       !text == !other->expression.text &&
	       (!text || !strcmp(text, other->expression.text));
}

uint32_t filter_rates(const struct filter *filter,
		      struct rate ret_rates[FILTER_RULES_MAX + 1])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < filter->n; i++) {
		const struct rate *rate = &filter->rules[i].rate;
		uint32_t k = 0;

		while (k < n && !rate_is_same(&ret_rates[k], rate))
			k++;
		if (k == n && rate->interval)
			ret_rates[n++] = *rate;
	}
	return n;
}

/* Texts with names mean other addresses from time to time. */
static bool has_same_code(const struct expression *one,
			  const struct expression *other)
{
	for (int link = 0; link < LINKS; link++) {
		if (!classic_is_same(&one->outer.programs[link],
				     &other->outer.programs[link]) ||
		    !classic_is_same(&one->inner.programs[link],
				     &other->inner.programs[link]))
			return false;
	}
	return true;
}

bool filter_is_same(const struct filter *one, const struct filter *other)
{
	if (!one || !other)
		return one == other;
	if (one->is_list != other->is_list || one->n != other->n)
		return false;
	for (uint32_t i = 0; i < one->n; i++)
		if (!rule_is_same(&one->rules[i], &other->rules[i]) ||
		    !rate_is_same(&one->rules[i].rate, &other->rules[i].rate) ||
		    !has_same_code(&one->rules[i].expression,
				   &other->rules[i].expression))
			return false;
	return true;
}

int filter_check(const struct filter *filter, enum link_kind link,
		 const char *frames, const struct log *log)
{
	for (uint32_t i = 0; i + 1 < filter->n; i++) {
		const struct expression *expression =
			&filter->rules[i].expression;
		char number[16] = "";

		if (expression->outer.programs[link].n)
			continue;
		if (filter->is_list)
			snprintf(number, sizeof(number), "[%u]", i);
		log_error(log, "%s%s: %s: %s",
			  filter->is_list ? "rules" : "filter", number, frames,
			  expression->outer.objections[link]);
		return -EINVAL;
	}
	return 0;
}

/* 0 if packets of the rule are not sampled. */
static uint32_t find_rate_number(const struct rule *rule, const struct rate *rates)
{
	uint32_t number = 0;

	if (!rates || !rule->rate.interval)
		return 0;
	while (++number < RATES)
		if (rate_is_same(&rates[number], &rule->rate))
			return number;
	assert(!"the rate has a number");
	return 0;
}

uint32_t rule_judgement(const struct rule *rule, const struct rate *rates)
{
	return find_rate_number(rule, rates) << JUDGED_RATE_SHIFT |
	       rule->slot << JUDGED_SLOT_SHIFT |
	       (rule->accepts ? JUDGED_ACCEPT : 0);
}

uint32_t filter_judge(const struct filter *filter, const void *frame,
		      uint32_t len, uint32_t wire_len)
{
	uint32_t i;

	for (i = 0; i + 1 < filter->n; i++) {
		const struct expression *expression =
			&filter->rules[i].expression;

		if (!expression->has_inner &&
		    classic_run(&expression->outer.programs[LINK_ETHERNET],
				frame, len, wire_len))
			break;
	}
	return rule_judgement(&filter->rules[i], NULL);
}

/* ---- Counts of rules ----------------------------------------------------------------- */

/* The slots that rules count in: the last part of filter.h. */

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
