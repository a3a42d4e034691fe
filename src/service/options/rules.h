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

#endif
