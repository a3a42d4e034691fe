/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The filter of a context: an expression, or rules. */
#include "context.h"

#include "base/options.h"
#include "base/util.h"
#include "engine/store.h"

#include <errno.h>
#include <string.h>

_Static_assert(FILTER_RULES_MAX == NETOBS_RULES_MAX, "as the public header says");
_Static_assert(2 * NETOBS_RATES_MAX < RATES, "rules can be replaced by others");

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

/* @return the sampling rate of the rule, or the context's if it has none */
static struct rate rate_of_rule(const struct netobs_opts *opts,
				const struct netobs_rule *rule)
{
	return rule->sampling ? rate_of(rule->sampling, rule->sampling_mode) :
				context_rate(opts);
}

/* @return why a rule is wrong, or NULL */
static const char *objection_to(const struct netobs_opts *opts,
				const struct netobs_rule *rule)
{
	if (rule->sz != opts->rules->sz)
		return "its size is not that of the others";
	if (!rule->filter)
		return "filter is NULL";
	if (!is_action(rule->action))
		return "action is not known";
	if (rule->sampling_mode > NETOBS_SAMPLE_FLOWS)
		return "sampling_mode is not known";
	if (rule->sampling && rule->action == NETOBS_REJECT)
		return "sampling: packets that it rejects are not sampled";
	return rule->reserved ? "reserved is not 0" : NULL;
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
	if (!objection_to(opts, &rule)) {
		*ret_rule = (struct filter_rule){
			.expression = rule.filter,
			.accepts = rule.action == NETOBS_ACCEPT,
			.rate = rate_of_rule(opts, &rule),
		};
		return 0;
	}
	log_error(log, "rules[%u]: %s", i, objection_to(opts, &rule));
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
	source.rate = context_rate(opts);
	*ret_source = source;
	return 0;
}

/*
 * Limit the rates, so that both the present rules and those that replace them have numbers, and
 * one number is left.
 */
static int check_rates(const struct filter *filter, const struct log *log)
{
	struct rate rates[FILTER_RULES_MAX + 1];
	uint32_t n = filter_rates(filter, rates);

	if (n <= NETOBS_RATES_MAX)
		return 0;
	log_error(log,
		  "rules: they sample at %u different rates; %d are the most",
		  n, NETOBS_RATES_MAX);
	return -E2BIG;
}

static int compile_expression(const struct filter_source *source,
			      const struct log *log, struct filter **ret_filter)
{
	int err = filter_compile(source->expression, log, ret_filter);

	if (!err && *ret_filter)
		filter_sample(*ret_filter, &source->rate);
	return err;
}

int context_compile_source(const struct filter_source *source,
			   const struct log *log, struct filter **ret_filter)
{
	const struct filter_rules list = {
		.rules = source->rules,
		.n = source->n_rules,
		.accepts_others = source->accepts_others,
		.rate = source->rate,
	};
	char error[FILTER_ERROR_MAX];
	int err;

	if (!source->is_list)
		return compile_expression(source, log, ret_filter);
	err = filter_new_list(&list, ret_filter, &error);
	if (err)
		log_error(log, "%s", error);
	return err ?: check_rates(*ret_filter, log);
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
	struct rule_count totals[RULE_SLOTS];
	int err = flow_rules_read(&store->maps, store->n_cpus, totals);

	if (err)
		return err;
	err = filter_succeed(filter, ctx->filter,
			     observation_is_settled(&ctx->observation), totals);
	if (err)
		log_error(&ctx->life.log,
			  "rules: programs with earlier ones are still being attached; try again");
	return err;
}

/* @return whether all programs are current, and all entries of earlier ones were read */
static bool is_filter_quiet(const struct netobs *ctx)
{
	return observation_is_settled(&ctx->observation) &&
	       pipeline_has_read(&ctx->pipeline,
				 max_u64(ctx->replaced_ns,
					 ctx->observation.shifted_ns));
}

/* The second drain reads what programs wrote that ran when the first one began. */
static void drain_twice(struct netobs *ctx)
{
	pipeline_finish(&ctx->pipeline);
	for (int i = 0; i < 2; i++) {
		pipeline_begin(&ctx->pipeline, MERGE_EARLY, clock_boot_ns());
		pipeline_finish(&ctx->pipeline);
	}
}

static int take_rates(struct netobs *ctx, const struct filter *filter,
		      const struct rate *rate)
{
	return store_take_rates(&ctx->pipeline.store, filter, rate,
				ctx->pipeline.merge.table.n_by_rate);
}

/* If too few numbers are free, free those of earlier filters by draining. */
static int ensure_rates(struct netobs *ctx, const struct filter *filter,
			const struct rate *rate)
{
	const struct rate now = context_rate(&ctx->opts);

	if (is_filter_quiet(ctx))
		store_keep_rates(&ctx->pipeline.store, ctx->filter, &now);
	if (!take_rates(ctx, filter, rate))
		return 0;
	if (observation_is_settled(&ctx->observation)) {
		drain_twice(ctx);
		if (is_filter_quiet(ctx))
			store_keep_rates(&ctx->pipeline.store, ctx->filter, &now);
		if (!take_rates(ctx, filter, rate))
			return 0;
	}
	log_error(&ctx->life.log,
		  "sampling: earlier rates are still in use; try again");
	return -EBUSY;
}

int context_set_next(struct netobs *ctx, struct filter *filter,
		     const struct netobs_opts *opts)
{
	const struct rate rate = context_rate(opts),
			  now = context_rate(&ctx->opts);
	const bool is_same = filter_is_same(filter, ctx->filter);
	int err;

	ctx->is_replacing = !is_same ||
			    (!filter && (rate.interval != now.interval ||
					 rate.mode != now.mode));
	if (!ctx->is_replacing)
		return 0;
	if (!filter != !ctx->filter) {
		log_error(&ctx->life.log,
			  "filter, rules: cannot be turned on or off while observing, only replaced");
		return -ENOTSUP;
	}
	err = ensure_rates(ctx, filter, &rate);
	if (!err && filter)
		err = succeed_filter(ctx, filter);
	if (err)
		return err;
	ctx->next_filter = filter;
	ctx->next_rate = rate;
	if (filter)
		context_note_slots(ctx, filter);
	return 0;
}

static int count_rule(const struct netobs *ctx, uint32_t rule,
		      struct rule_count *ret_count)
{
	struct rule_count totals[RULE_SLOTS];
	int err;

	if (!ctx->filter || !filter_is_list(ctx->filter))
		return -ENOENT;
	err = flow_rules_read(&ctx->pipeline.store.maps,
			      ctx->pipeline.store.n_cpus, totals);
	return err ?: filter_count(ctx->filter, rule, totals, ret_count);
}

/* Get one of the two counts of a rule. */
static int get_count(const struct netobs *ctx, uint32_t rule,
		     bool is_sampled_out, struct netobs_count *ret_count)
{
	struct rule_count counts;
	const struct count *count = is_sampled_out ? &counts.sampled_out :
						     &counts.decided;
	int err;

	if (!is_context(ctx) || !ret_count)
		return -EINVAL;
	err = count_rule(ctx, rule, &counts);
	if (!err)
		*ret_count =
			(struct netobs_count){ count->packets, count->bytes };
	return err;
}

int netobs_rule_count_get(const struct netobs *ctx, uint32_t rule,
			  struct netobs_count *ret_count)
{
	return get_count(ctx, rule, false, ret_count);
}

int netobs_rule_sampled_out_get(const struct netobs *ctx, uint32_t rule,
				struct netobs_count *ret_count)
{
	return get_count(ctx, rule, true, ret_count);
}
