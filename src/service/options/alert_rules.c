/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static void clear_rule(struct netobs_alert_rule *rule)
{
	free((char *)rule->name);
	free((char *)rule->rule);
	*rule = (struct netobs_alert_rule){ 0 };
}

int alert_rules_add(struct alert_rules *rules, const char *name, const char *text)
{
	struct netobs_alert_rule rule = { .sz = sizeof(rule) };
	const size_t len = strcspn(text, "=>");

	if (rules->n == NETOBS_ALERT_RULES_MAX)
		return -E2BIG;
	if (name) {
		rule.name = strdup(name);
	} else if (text[len] == '=') {
		rule.name = strndup(text, len);
		text += len + 1;
	} else {
		rule.name = strdup("");
	}
	rule.rule = strdup(text);
	if (rule.name && rule.rule) {
		rules->list[rules->n++] = rule;
		return 0;
	}
	clear_rule(&rule);
	return -ENOMEM;
}

void alert_rules_clear(struct alert_rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++)
		clear_rule(&rules->list[i]);
	rules->n = 0;
}

void alert_rules_move(struct alert_rules *to, struct alert_rules *from)
{
	alert_rules_clear(to);
	*to = *from;
	from->n = 0;
}

int alert_rules_place(const struct alert_rules *rules, const char *message,
		      const char **ret_rest)
{
	unsigned int rule;
	int len = 0;

	if (sscanf(message, "alerts[%u]: %n", &rule, &len) != 1 || !len ||
	    rule >= rules->n)
		return -1;
	*ret_rest = message + len;
	return (int)rule;
}

bool alert_rule_needs_drops(const char *rule)
{
	const int metric = netobs_alert_rule_metric(rule);

	return metric == NETOBS_ALERT_DROPS || metric == NETOBS_ALERT_DROP_SHARE;
}

bool alert_rules_need_drops(const struct alert_rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++)
		if (alert_rule_needs_drops(rules->list[i].rule))
			return true;
	return false;
}

static void add_counts(struct json *json, const struct netobs_alert_counts *counts)
{
	json_key_u64(json, "broken", counts->broken);
	json_key_u64(json, "fired", counts->fired);
	json_key_u64(json, "held", counts->held);
	json_key_u64(json, "limited", counts->limited);
	json_key_u64(json, "lost", counts->lost);
	json_key_u64(json, "delivered", counts->delivered);
}

static void add_alert_rule(struct json *json,
			   const struct netobs_alert_rule *rule,
			   const struct netobs_alert_counts *counts)
{
	json_open(json, '{');
	if (*rule->name)
		json_key_string(json, "name", rule->name);
	json_key_string(json, "rule", rule->rule);
	add_counts(json, counts);
	json_close(json, '}');
}

void alert_rules_json(const struct alert_rules *rules, const struct netobs *ctx,
		      struct json *json)
{
	struct netobs_alert_counts counts = { .sz = sizeof(counts) };

	json_open(json, '[');
	for (uint32_t i = 0; i < rules->n; i++)
		if (netobs_alert_counts_get(ctx, i, &counts) == 0)
			add_alert_rule(json, &rules->list[i], &counts);
	if (netobs_alert_counts_get(ctx, rules->n, &counts) == 0 &&
	    counts.broken) {
		json_open(json, '{');
		json_key_string(json, "rule", "replaced");
		add_counts(json, &counts);
		json_close(json, '}');
	}
	json_close(json, ']');
}
