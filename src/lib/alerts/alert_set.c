// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "alerts.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ALERT_SLOTS >= 2 * ALERT_RULES_MAX,
	       "rules and those that replace them have all theirs");
_Static_assert((int)ALERT_FILTERS_MAX <= (int)FILTER_RULES_MAX,
	       "they are the rules of a filter");

/* ---- Making it -------------------------------------------------------------------- */

void alert_set_free(struct alert_set *set)
{
	if (!set)
		return;
	/* The last one may be incomplete, or be none. */
	for (uint32_t i = 0; i < set->capacity; i++)
		filter_free(set->entries[i].tuples);
	filter_free(set->filter);
	free(set);
}

/* Compile the filter of flows, which have only a tuple. @return 0; < 0: of the expression */
static int add_tuples(struct alert_entry *entry,
		      char (*ret_error)[FILTER_ERROR_MAX])
{
	static const struct log silent;
	int err = filter_new(entry->spec.filter, &entry->tuples, ret_error);

	if (err)
		return err;
	err = filter_check_tuple(entry->tuples, &silent);
	if (err)
		snprintf(*ret_error, sizeof(*ret_error),
			 "rules about drops cannot have 'inner'");
	return err;
}

/* @return 0; -E2BIG: there are too many; others, with the error, of the expression */
static int add_expression(struct alert_set *set, struct alert_entry *entry,
			  char (*ret_error)[FILTER_ERROR_MAX])
{
	const char *expression = entry->spec.filter;
	struct filter *filter;
	int err;

	for (uint32_t i = 0; i < set->n_filters; i++) {
		if (strcmp(set->expressions[i], expression) == 0) {
			entry->filter = i + 1;
			return 0;
		}
	}
	err = filter_new(expression, &filter, ret_error);
	if (err)
		return err;
	filter_free(filter);
	if (set->n_filters == ALERT_FILTERS_MAX) {
		snprintf(*ret_error, sizeof(*ret_error),
			 "there are more than %d different expressions",
			 ALERT_FILTERS_MAX);
		return -E2BIG;
	}
	set->expressions[set->n_filters++] = expression;
	entry->filter = set->n_filters;
	return 0;
}

/* @ret_why: of ALERT_ERROR_MAX */
static int add_alert_entry(struct alert_set *set,
			   const struct alert_source *rule, char *ret_why)
{
	struct alert_entry *entry = &set->entries[set->n];
	char error[FILTER_ERROR_MAX] = "";
	int err;

	if (rule->name && strlen(rule->name) >= sizeof(entry->name)) {
		snprintf(ret_why, ALERT_ERROR_MAX,
			 "the name has more than %zu bytes",
			 sizeof(entry->name) - 1);
		return -EINVAL;
	}
	err = alert_rule_parse(rule->text, &entry->spec, ret_why,
			       ALERT_ERROR_MAX);
	if (err)
		return err;
	snprintf(entry->name, sizeof(entry->name), "%s", rule->name ?: "");
	snprintf(entry->text, sizeof(entry->text), "%s", rule->text);
	if (entry->spec.filter)
		entry->spec.filter =
			entry->text + (entry->spec.filter - rule->text);
	if (!entry->spec.filter)
		err = 0;
	else if (alert_is_of_flows(entry->spec.metric))
		err = add_tuples(entry, &error);
	else
		err = add_expression(set, entry, &error);
	if (err)
		snprintf(ret_why, ALERT_ERROR_MAX, "column %zu: %s",
			 (size_t)(entry->spec.filter - entry->text) + 1,
			 *error ? error : strerror(-err));
	else
		set->n++;
	if (!err && alert_is_of_flows(entry->spec.metric)) {
		set->has_flow_rules = true;
		set->keeps_flow_samples |= entry->spec.among > 1;
	}
	return err;
}

static int compile_filters(struct alert_set *set, char *ret_why)
{
	struct filter_rule rules[ALERT_FILTERS_MAX];
	const struct filter_rules list = { .rules = rules, .n = set->n_filters };
	char error[FILTER_ERROR_MAX] = "";
	int err;

	if (!set->n_filters)
		return 0;
	for (uint32_t i = 0; i < set->n_filters; i++)
		rules[i] = (struct filter_rule){
			.expression = set->expressions[i],
			.accepts = true,
		};
	err = filter_new_list(&list, &set->filter, &error);
	if (err)
		snprintf(ret_why, ALERT_ERROR_MAX, "%s", error);
	return err;
}

int alert_set_new(const struct alert_source *rules, uint32_t n,
		  struct alert_set **ret_set, char (*ret_error)[ALERT_ERROR_MAX])
{
	cleanup_alert_set struct alert_set *set = NULL;
	char why[ALERT_ERROR_MAX] = "";
	int err = 0;

	**ret_error = '\0';
	if (n > ALERT_RULES_MAX) {
		snprintf(*ret_error, sizeof(*ret_error),
			 "alerts: there are %u rules; %d are the most", n,
			 ALERT_RULES_MAX);
		return -E2BIG;
	}
	set = calloc(1, sizeof(*set) + n * sizeof(*set->entries));
	if (!set)
		return -ENOMEM;
	set->capacity = n;
	for (uint32_t i = 0; !err && i < n; i++)
		err = add_alert_entry(set, &rules[i], why);
	if (err)
		snprintf(*ret_error, sizeof(*ret_error), "alerts[%u]: %.600s",
			 set->n, why);
	else
		err = compile_filters(set, *ret_error);
	if (!err)
		*ret_set = TAKE_PTR(set);
	return err;
}

/* ---- Slots ------------------------------------------------------------------------ */

static bool is_same_entry(const struct alert_entry *one,
			  const struct alert_entry *other)
{
	return !strcmp(one->name, other->name) && !strcmp(one->text, other->text);
}

/* @return the rule of @before that @entry continues; NULL: it is new */
static const struct alert_entry *find_same_alert(const struct alert_set *before,
						 const struct alert_entry *entry,
						 const bool is_taken[ALERT_SLOTS])
{
	for (uint32_t i = 0; before && i < before->n; i++)
		if (!is_taken[before->entries[i].slot] &&
		    is_same_entry(&before->entries[i], entry))
			return &before->entries[i];
	return NULL;
}

/* A free slot exists: two sets cannot use all. */
static uint32_t take_alert_slot(struct alert_set *set,
				const bool is_used[ALERT_SLOTS])
{
	uint32_t slot;

	do {
		slot = set->next_slot++ % ALERT_SLOTS;
	} while (is_used[slot]);
	return slot;
}

enum { NEEDS_SAMPLES = 1, NEEDS_EARLIER_ONES = 2 };

static unsigned int needs_of(const struct alert_set *set, enum alert_metric metric)
{
	unsigned int needs = 0;

	for (uint32_t i = 0; set && i < set->n; i++) {
		const struct alert_spec *spec = &set->entries[i].spec;

		if (spec->metric == metric)
			needs |= NEEDS_SAMPLES |
				 (spec->among > 1 ? NEEDS_EARLIER_ONES : 0);
	}
	return needs;
}

/* A metric that rules need again has old samples, if any: give it another life. */
static void renew_metrics(struct alert_set *set, const struct alert_set *before)
{
	for (uint32_t metric = 0; metric < ALERT_METRICS; metric++) {
		uint8_t life = before ? before->lives[metric] : 0;

		if (needs_of(set, metric) & ~needs_of(before, metric))
			life += life == UINT8_MAX ? 2 : 1;
		set->lives[metric] = life;
	}
}

void alert_set_succeed(struct alert_set *set, const struct alert_set *before,
		       const struct alert_count totals[ALERT_SLOTS])
{
	bool is_used[ALERT_SLOTS] = { false }, is_taken[ALERT_SLOTS] = { false };

	for (uint32_t i = 0; before && i < before->n; i++)
		is_used[before->entries[i].slot] = true;
	set->next_slot = before ? before->next_slot : 0;
	set->next_life = before ? before->next_life : 0;
	renew_metrics(set, before);
	for (uint32_t i = 0; i < set->n; i++) {
		struct alert_entry *entry = &set->entries[i];
		const struct alert_entry *same =
			find_same_alert(before, entry, is_taken);

		if (same) {
			entry->slot = same->slot;
			entry->life = same->life;
			entry->before = same->before;
			entry->delivered = same->delivered;
			is_taken[entry->slot] = true;
			continue;
		}
		entry->slot = take_alert_slot(set, is_used);
		entry->life = set->next_life++;
		entry->before = totals[entry->slot];
		is_used[entry->slot] = true;
	}
}

struct alert_entry *alert_set_find(struct alert_set *set, uint32_t slot,
				   uint32_t life)
{
	for (uint32_t i = 0; set && i < set->n; i++)
		if (set->entries[i].slot == slot && set->entries[i].life == life)
			return &set->entries[i];
	return NULL;
}

struct alert_count alert_set_count(const struct alert_entry *entry,
				   const struct alert_count totals[ALERT_SLOTS])
{
	struct alert_count count = totals[entry->slot];

	counters_subtract(&count, &entry->before, sizeof(count));
	return count;
}

struct alert_count
alert_set_count_others(const struct alert_set *set,
		       const struct alert_count totals[ALERT_SLOTS])
{
	struct alert_count others = { 0 };

	for (uint32_t slot = 0; slot < ALERT_SLOTS; slot++)
		counters_add(&others, &totals[slot], sizeof(others));
	for (uint32_t i = 0; set && i < set->n; i++) {
		const struct alert_count count =
			alert_set_count(&set->entries[i], totals);

		counters_subtract(&others, &count, sizeof(others));
	}
	return others;
}

bool alert_set_has_same_filters(const struct alert_set *one,
				const struct alert_set *other)
{
	return filter_is_same(one ? one->filter : NULL,
			      other ? other->filter : NULL);
}

/* ---- As programs read them ---------------------------------------------------------- */

static uint32_t kind_of(const struct alert_entry *entry)
{
	return alert_kind(entry->spec.metric, entry->spec.is_ratio,
			  !entry->filter && entry->spec.among <= 1);
}

struct sorted {
	uint32_t kind;
	struct alert_rule rule;
};

static int compare_rules(const void *one, const void *other)
{
	const struct sorted *a = one, *b = other;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->rule.threshold != b->rule.threshold)
		return a->rule.threshold < b->rule.threshold ? -1 : 1;
	return a->rule.slot < b->rule.slot ? -1 : 1;
}

/* @end: of the rules of the kind */
static void fill_thresholds(struct alert_table *table, uint32_t kind, uint32_t end)
{
	const uint32_t first = table->first[kind];

	for (uint32_t i = 0; first < end && i < ALERT_RULES_MAX; i++)
		table->thresholds[kind][i] =
			table->rules[first + i < end ? first + i : end - 1].threshold;
}

static struct sorted sorted_rule(const struct alert_entry *entry)
{
	struct sorted sorted = { .kind = kind_of(entry),
				 .rule = alert_rule_compile(&entry->spec) };

	sorted.rule.slot = (uint8_t)entry->slot;
	sorted.rule.life = entry->life;
	sorted.rule.filter = (uint8_t)entry->filter;
	return sorted;
}

void alert_set_compile(const struct alert_set *set, uint32_t epoch,
		       struct alert_table *ret_table)
{
	struct sorted sorted[ALERT_RULES_MAX];
	uint32_t n = 0, n_sorted = 0;

	*ret_table = (struct alert_table){
		.n_filters = set->n_filters,
		.epoch = epoch,
	};
	for (uint32_t i = 0; i < set->n; i++) {
		const struct alert_entry *entry = &set->entries[i];

		if (alert_is_of_flows(entry->spec.metric))
			continue;
		if (entry->spec.among > 1)
			ret_table->history |= 1U << entry->spec.metric;
		ret_table->metrics |= 1U << entry->spec.metric;
		ret_table->kinds |= (uint16_t)(1U << kind_of(entry));
		sorted[n_sorted++] = sorted_rule(entry);
	}
	ret_table->n = n_sorted;
	memcpy(ret_table->lives, set->lives, sizeof(ret_table->lives));
	qsort(sorted, n_sorted, sizeof(*sorted), compare_rules);
	for (uint32_t kind = 0; kind < ALERT_KINDS; kind++) {
		ret_table->first[kind] = (uint16_t)n;
		for (; n < n_sorted && sorted[n].kind == kind; n++)
			ret_table->rules[n] = sorted[n].rule;
		fill_thresholds(ret_table, kind, n);
	}
	ret_table->first[ALERT_KINDS] = (uint16_t)n;
}
