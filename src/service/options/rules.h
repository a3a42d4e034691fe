/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Rules of packets in a file, a line each: "accept EXPR", "accept sample 1:N EXPR", "accept
 * sample flow:N EXPR" or "reject EXPR", and in the last
 * one "default accept" or "default reject". "#" begins a comment.
 */
#ifndef NETOBS_SERVICE_OPTIONS_RULES_H
#define NETOBS_SERVICE_OPTIONS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/alert.h>
#include <netobs/netobs.h>

struct json;

struct rules {
	const char *path;
	struct netobs_rule list[NETOBS_RULES_MAX];
	unsigned int lines[NETOBS_RULES_MAX];
	uint32_t n;
	enum netobs_action default_action; /* 0: none have been read */
};

/**
 * @param waits    for the writer of a pipe; otherwise only a regular file can be read
 * @param ret_why  begins with the file, and the line if one is wrong
 * @return whether the file has been read; if not, *@ret_rules is unchanged
 */
bool rules_read(const char *path, bool waits, struct rules *ret_rules,
		char *ret_why, size_t size);

void rules_clear(struct rules *rules);

/**
 * Parse "1:N" or "flow:N", which sets the rule's sampling.
 *
 * @return whether it is one of these
 */
bool rules_parse_sample(const char *text, struct netobs_rule *rule);

/**
 * Add an object: what a rule has decided about.
 *
 * @param action  NULL: it has none, as those that were replaced
 * @param filter  NULL: it has none
 * @param rule    whose sampling is added; NULL: none is
 */
void rules_json(struct json *json, const char *action, const char *filter,
		const struct netobs_rule *rule, const struct netobs_count *count,
		const struct netobs_count *sampled_out);

/** @return "accept" or "reject" */
const char *rules_action(enum netobs_action action);

/**
 * Name the place of a message of the library that begins with the number of a rule.
 *
 * @param ret_text  unchanged if the message is another one
 * @return whether it is
 */
bool rules_place(const struct rules *rules, const char *message, char *ret_text,
		 size_t size);

/* ---- Alert rules ----------------------------------------------------------------------- */

/* Rules about connections and flows, as the command line and the service's configuration have them. */

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
