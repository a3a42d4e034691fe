// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The rules of a context. Their alerts: context_alert_records.c. */
#include "context.h"

#include "base/options.h"
#include "base/util.h"

#include <netobs/alert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)NETOBS_ALERT_RULES_MAX == (int)ALERT_RULES_MAX,
	       "as the public header says");
_Static_assert((int)NETOBS_ALERT_RATE == (int)ALERT_RATE, "the same metrics");
_Static_assert(sizeof(((struct netobs_alert *)NULL)->name) == ALERT_NAME_MAX &&
		       sizeof(((struct netobs_alert *)NULL)->rule) ==
			       ALERT_TEXT_MAX,
	       "records have room");

/* ---- Rules -------------------------------------------------------------------------- */

/*
 * Filters before the rules that refer to them; programs take verdicts of no other epoch. After a
 * failure, which filters the kernel has is not known: the next rules bring theirs in any case.
 */
static int install_alerts(struct netobs *ctx, const struct alert_set *set)
{
	struct alert_table table;

	if (!alert_set_has_same_filters(set, ctx->alert_set) ||
	    !ctx->alert_epoch) {
		uint32_t epoch = ++ctx->alert_epochs;
		int err;

		ctx->alert_epoch = 0;
		err = set->filter ? alerts_set_filter(&ctx->alerts, set->filter,
						      epoch) :
				    0;
		if (err)
			return err;
		ctx->alert_epoch = epoch;
	}
	alert_set_compile(set, ctx->alert_epoch, &table);
	alerts_set_table(&ctx->alerts, &table);
	return 0;
}

int context_open_alerts(struct netobs *ctx)
{
	struct store *store = &ctx->pipeline.store;
	int err;

	if (!store->options.has_alerts || !store->conn_buckets)
		return 0;
	err = alerts_open(&ctx->alerts, store, context_on_alert, ctx,
			  &ctx->life.log);
	if (!err)
		err = loop_watch(&ctx->life.loop, alerts_fd(&ctx->alerts),
				 EPOLLIN, NULL,
				 NULL); /* each dispatch reads them */
	if (!err && ctx->alert_set)
		err = install_alerts(ctx, ctx->alert_set);
	return err;
}

void context_close_alerts(struct netobs *ctx)
{
	alerts_close(&ctx->alerts);
	alert_set_free(TAKE_PTR(ctx->alert_set));
	alert_set_free(TAKE_PTR(ctx->alert_set_before));
	flow_alerts_close(&ctx->flow_alerts);
	free(ctx->held_alerts.list);
	ctx->held_alerts = (struct held_alerts){ 0 };
}

/* All elements have the size of the caller's struct. */
static int copy_sources(const struct netobs_alert_rule *rules, uint32_t n,
			const struct log *log, struct alert_source *ret_sources)
{
	for (uint32_t i = 0; i < n; i++) {
		const void *at = (const char *)rules + i * rules->sz;
		struct netobs_alert_rule rule = { 0 };
		int err = sized_check(at, sizeof(rule), log);

		if (err)
			return err;
		memcpy(&rule, at, min_u64(rules->sz, sizeof(rule)));
		if (rule.sz != rules->sz || !rule.rule) {
			log_error(log, "alerts[%u]: %s", i,
				  rule.rule ?
					  "its size is not that of the others" :
					  "rule is NULL");
			return -EINVAL;
		}
		ret_sources[i] = (struct alert_source){ rule.name, rule.rule };
	}
	return 0;
}

static int make_set(const struct netobs *ctx,
		    const struct netobs_alert_rule *rules, uint32_t n,
		    struct alert_set **ret_set)
{
	struct alert_source sources[ALERT_RULES_MAX];
	char error[ALERT_ERROR_MAX] = "";
	int err;

	if (n > ALERT_RULES_MAX) {
		log_error(&ctx->life.log,
			  "alerts: there are %u rules; %d are the most", n,
			  ALERT_RULES_MAX);
		return -E2BIG;
	}
	err = copy_sources(rules, n, &ctx->life.log, sources);
	if (err)
		return err;
	err = alert_set_new(sources, n, ret_set, &error);
	if (err)
		log_error(&ctx->life.log, "%s", *error ? error : strerror(-err));
	return err;
}

/* Check that the context measures the metric of a rule. */
static int check_metrics(const struct netobs *ctx, const struct alert_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const bool is_of_flows =
			alert_is_of_flows(set->entries[i].spec.metric);

		if (is_of_flows ? ctx->opts.flags & NETOBS_DROPS : ctx->opts.rtt)
			continue;
		log_error(&ctx->life.log, "alerts[%u]: its metric needs %s", i,
			  is_of_flows ? "NETOBS_DROPS" : "rtt");
		return -ENOTSUP;
	}
	return 0;
}

static void count_alerts(const struct netobs *ctx,
			 struct alert_count ret_totals[ALERT_SLOTS])
{
	alerts_count(&ctx->alerts, ret_totals);
	counters_add(ret_totals, ctx->flow_alerts.counts,
		     sizeof(ctx->flow_alerts.counts));
}

static int set_alerts(struct netobs *ctx, const struct netobs_alert_rule *rules,
		      uint32_t n)
{
	cleanup_alert_set struct alert_set *set = NULL;
	struct alert_count totals[ALERT_SLOTS];
	int err;

	if (ctx->life.state != LIFE_NEW && ctx->life.state != LIFE_RUNNING)
		return ctx->life.state == LIFE_FAILED ? -EINVAL : -ECANCELED;
	if (!context_taker(&ctx->opts, NETOBS_RECORD_ALERT)) {
		log_error(&ctx->life.log,
			  "alerts: they need on_record, and NETOBS_RECORD_ALERT in records");
		return -ENOTSUP;
	}
	err = make_set(ctx, rules, n, &set);
	err = err ?: check_metrics(ctx, set);
	if (!err && set->has_flow_rules)
		err = flow_alerts_open(&ctx->flow_alerts);
	if (err)
		return err;
	/* Slots of replaced rules may be reassigned now. */
	alerts_read_all(&ctx->alerts);
	context_release_alerts(ctx);
	count_alerts(ctx, totals);
	alert_set_succeed(set, ctx->alert_set, totals);
	if (ctx->alerts.tables)
		err = install_alerts(ctx, set);
	if (err)
		return err;
	alert_set_free(ctx->alert_set_before);
	ctx->alert_set_before = ctx->alert_set;
	ctx->alert_set = TAKE_PTR(set);
	return 0;
}

int netobs_alerts_set(struct netobs *ctx, const struct netobs_alert_rule *rules,
		      uint32_t n)
{
	if (!is_context(ctx) || (n && !rules))
		return -EINVAL;
	log_expect_error(&ctx->life.log);
	return log_keep_error(&ctx->life.log, "cannot set alerts",
			      set_alerts(ctx, rules, n));
}

int netobs_alert_rule_metric(const char *rule)
{
	struct alert_spec spec;
	char why[ALERT_ERROR_MAX];

	return rule && !alert_rule_parse(rule, &spec, why, sizeof(why)) ?
		       (int)spec.metric :
		       -EINVAL;
}

int netobs_alert_rule_check(const char *rule, char *error, size_t size)
{
	const struct alert_source source = { NULL, rule };
	char text[ALERT_ERROR_MAX] = "";
	struct alert_set *set;
	const char *why;
	int err;

	if (!rule || (size && !error))
		return -EINVAL;
	err = alert_set_new(&source, 1, &set, &text);
	if (!err) {
		alert_set_free(set);
		return 0;
	}
	why = strchr(text, ' ');
	if (size)
		snprintf(error, size, "%s", why ? why + 1 : strerror(-err));
	return err == -ENOMEM ? err : -EINVAL;
}

/* @return the alerts delivered for rules that are no longer in the list */
static uint64_t delivered_of_others(const struct netobs *ctx)
{
	const struct alert_set *set = ctx->alert_set;
	uint64_t delivered = ctx->alerts_delivered;

	for (uint32_t i = 0; set && i < set->n; i++)
		delivered -= set->entries[i].delivered;
	return delivered;
}

int netobs_alert_counts_get(const struct netobs *ctx, uint32_t rule,
			    struct netobs_alert_counts *ret_counts)
{
	struct netobs_alert_counts counts = { 0 };
	struct alert_count totals[ALERT_SLOTS], of;
	uint32_t n;

	if (!is_context(ctx) || !ret_counts)
		return -EINVAL;
	n = ctx->alert_set ? ctx->alert_set->n : 0;
	if (rule > n)
		return -ENOENT;
	count_alerts(ctx, totals);
	of = rule < n ? alert_set_count(&ctx->alert_set->entries[rule], totals) :
			alert_set_count_others(ctx->alert_set, totals);
	counts.fired = of.fired;
	counts.held = of.held;
	counts.limited = of.limited;
	counts.lost = of.lost;
	counts.broken = of.broken;
	counts.delivered = rule < n ? ctx->alert_set->entries[rule].delivered :
				      delivered_of_others(ctx);
	return sized_fill(ret_counts, &counts, sizeof(counts));
}
