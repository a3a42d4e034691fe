/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The filter of a context: an expression, or rules. */
#include "context.h"

#include "base/sized.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

_Static_assert(FILTER_RULES_MAX == NETOBS_RULES_MAX, "as the public header says");

int context_compile_filter(const char *expression, const struct log *log,
			   struct filter **ret_filter)
{
	char error[FILTER_ERROR_MAX] = "";
	int err = expression ? filter_new(expression, ret_filter, &error) : 0;

	if (err)
		log_error(log, "filter: %s", *error ? error : strerror(-err));
	return err;
}

static bool is_action(unsigned int action)
{
	return action == NETOBS_ACCEPT || action == NETOBS_REJECT;
}

static int check_rules(const struct netobs_opts *opts, const struct log *log)
{
	const char *wrong = NULL;

	if (opts->filter)
		wrong = "rules: there is a filter, too";
	else if (!is_action(opts->default_action))
		wrong = "default_action: with rules, it is NETOBS_ACCEPT or NETOBS_REJECT";
	else if (opts->n_rules && !opts->rules)
		wrong = "rules: NULL, but n_rules is not 0";
	if (wrong)
		log_error(log, "%s", wrong);
	else if (opts->n_rules > NETOBS_RULES_MAX)
		log_error(log, "rules: there are %u; %d are the most",
			  opts->n_rules, NETOBS_RULES_MAX);
	else
		return 0;
	return wrong ? -EINVAL : -E2BIG;
}

/* All elements have the size of the caller's struct. */
static int copy_rule(const struct netobs_opts *opts, uint32_t i,
		     const struct log *log, struct filter_rule *ret_rule)
{
	const void *at = (const char *)opts->rules + i * opts->rules->sz;
	struct netobs_rule rule = { 0 };
	int err = sized_check(at, sizeof(rule), log);

	if (err)
		return err;
	memcpy(&rule, at, min_u64(opts->rules->sz, sizeof(rule)));
	if (rule.sz == opts->rules->sz && rule.filter &&
	    is_action(rule.action) && !rule.reserved) {
		*ret_rule = (struct filter_rule){ rule.filter,
						  rule.action == NETOBS_ACCEPT };
		return 0;
	}
	log_error(log, "rules[%u]: %s", i,
		  rule.sz != opts->rules->sz ?
			  "its size is not that of the others" :
		  !rule.filter	? "filter is NULL" :
		  rule.reserved ? "reserved is not 0" :
				  "action is not known");
	return -EINVAL;
}

int context_read_filter(const struct netobs_opts *opts, const struct log *log,
			struct filter_source *ret_source)
{
	struct filter_source source = { .expression = opts->filter };
	int err;

	source.is_list = opts->rules || opts->n_rules || opts->default_action;
	err = source.is_list ? check_rules(opts, log) : 0;
	for (uint32_t i = 0; !err && i < opts->n_rules; i++)
		err = copy_rule(opts, i, log, &source.rules[i]);
	if (err)
		return err;
	source.n_rules = opts->n_rules;
	source.accepts_others = opts->default_action == NETOBS_ACCEPT;
	*ret_source = source;
	return 0;
}

int context_compile_source(const struct filter_source *source,
			   const struct log *log, struct filter **ret_filter)
{
	const struct filter_rules list = {
		.rules = source->rules,
		.n = source->n_rules,
		.accepts_others = source->accepts_others,
	};
	char error[FILTER_ERROR_MAX];
	int err;

	if (!source->is_list)
		return context_compile_filter(source->expression, log,
					      ret_filter);
	err = filter_new_list(&list, ret_filter, &error);
	if (err)
		log_error(log, "%s", error);
	return err;
}

int context_make_filter(const struct netobs_opts *opts, const struct log *log,
			struct filter **ret_filter)
{
	struct filter_source source;
	int err = context_read_filter(opts, log, &source);

	return err ?: context_compile_source(&source, log, ret_filter);
}

static int succeed_filter(const struct netobs *ctx, struct filter *filter)
{
	const struct store *store = &ctx->pipeline.store;
	struct count totals[RULE_SLOTS];
	int err = flow_rules_read(&store->maps, store->n_cpus, totals);

	if (err)
		return err;
	err = filter_succeed(filter, ctx->filter,
			     observation_is_settled(&ctx->observation), totals);
	if (err)
		log_error(&ctx->log,
			  "rules: programs with earlier ones are still being attached; try again");
	return err;
}

int context_set_next_filter(struct netobs *ctx, struct filter *filter)
{
	int err;

	if (filter_is_same(filter, ctx->filter))
		return 0;
	if (!filter || !ctx->filter) {
		log_error(&ctx->log,
			  "filter, rules: cannot be turned on or off while observing, only replaced");
		return -ENOTSUP;
	}
	err = succeed_filter(ctx, filter);
	if (err)
		return err;
	ctx->next_filter = filter;
	context_note_slots(ctx, filter);
	return 0;
}

int netobs_rule_count_get(const struct netobs *ctx, uint32_t rule,
			  struct netobs_count *ret_count)
{
	struct count totals[RULE_SLOTS], count;
	int err;

	if (!ctx || !ret_count)
		return -EINVAL;
	if (!ctx->filter || !filter_is_list(ctx->filter))
		return -ENOENT;
	err = flow_rules_read(&ctx->pipeline.store.maps,
			      ctx->pipeline.store.n_cpus, totals);
	err = err ?: filter_count(ctx->filter, rule, totals, &count);
	if (!err)
		*ret_count = (struct netobs_count){ count.packets, count.bytes };
	return err;
}
