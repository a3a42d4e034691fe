/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Rules about connections and flows, as the command line and the service's configuration have them. */
#ifndef NETOBS_SERVICE_OPTIONS_ALERT_RULES_H
#define NETOBS_SERVICE_OPTIONS_ALERT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/alert.h>

struct json;
struct netobs;

/* The texts are the rules' own. */
struct alert_rules {
	uint32_t n;
	struct netobs_alert_rule list[NETOBS_ALERT_RULES_MAX];
};

/**
 * Add a rule.
 *
 * @param name  NULL: "NAME=" may be in front of the text
 * @return 0; -E2BIG: there are too many; -ENOMEM
 */
int alert_rules_add(struct alert_rules *rules, const char *name,
		    const char *text);

void alert_rules_clear(struct alert_rules *rules);

/** Give @to the rules of @from, in place of its own. */
void alert_rules_move(struct alert_rules *to, struct alert_rules *from);

/** @return the number of the rule that "alerts[N]: ..." is about; -1: none. *@ret_rest: "..." */
int alert_rules_place(const struct alert_rules *rules, const char *message,
		      const char **ret_rest);

/** @return whether the rule is about packets that the kernel drops, which are to be observed */
bool alert_rule_needs_drops(const char *rule);

/** @return whether any of them is */
bool alert_rules_need_drops(const struct alert_rules *rules);

/* Add the counts of each rule, as an array; replaced rules with any counts come last. */
void alert_rules_json(const struct alert_rules *rules, const struct netobs *ctx,
		      struct json *json);

#endif
