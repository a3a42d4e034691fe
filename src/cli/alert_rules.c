/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "alert_rules.h"

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

void alert_rules_json(const struct alert_rules *rules, const struct netobs *ctx,
		      struct json *json)
{
	json_open(json, '[');
	for (uint32_t i = 0; i < rules->n; i++) {
		struct netobs_alert_counts counts = { .sz = sizeof(counts) };

		if (netobs_alert_counts_get(ctx, i, &counts) < 0)
			break;
		json_open(json, '{');
		if (*rules->list[i].name) {
			json_key(json, "name");
			json_string(json, rules->list[i].name);
		}
		json_key(json, "rule");
		json_string(json, rules->list[i].rule);
		json_key_u64(json, "fired", counts.fired);
		json_key_u64(json, "held", counts.held);
		json_key_u64(json, "limited", counts.limited);
		json_key_u64(json, "lost", counts.lost);
		json_close(json, '}');
	}
	json_close(json, ']');
}
