/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/options.h"
#include "base/util.h"

#define BLANKS " \t\r\n"

const char *rules_action(enum netobs_action action)
{
	return action == NETOBS_ACCEPT ? "accept" : "reject";
}

/* @return the action; 0: the word is none */
static enum netobs_action parse_action(const char *word)
{
	for (int action = NETOBS_ACCEPT; action <= NETOBS_REJECT; action++)
		if (!strcmp(word, rules_action(action)))
			return action;
	return 0;
}

/* Cut off blanks at both ends, and a comment. */
static char *trim_text(char *text)
{
	size_t len;

	text[strcspn(text, "#")] = '\0';
	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len && strchr(BLANKS, text[len - 1]))
		text[--len] = '\0';
	return text;
}

bool rules_parse_sample(const char *text, struct netobs_rule *rule)
{
	static const char *const prefixes[] = { "1:", "flow:" };
	uint64_t interval;

	for (unsigned int mode = 0; mode < ARRAY_SIZE(prefixes); mode++) {
		const size_t len = strlen(prefixes[mode]);

		if (strncmp(text, prefixes[mode], len) ||
		    value_parse(VALUE_NUMBER, text + len, 1, UINT32_MAX,
				&interval))
			continue;
		rule->sampling = (uint32_t)interval;
		rule->sampling_mode = (enum netobs_sampling)mode;
		return true;
	}
	return false;
}

/* Write the text that rules_parse_sample() parses. */
static void add_sample(struct json *json, const struct netobs_rule *rule)
{
	char text[32];

	snprintf(text, sizeof(text), "%s:%u",
		 rule->sampling_mode == NETOBS_SAMPLE_FLOWS ? "flow" : "1",
		 rule->sampling);
	json_key_string(json, "sample", text);
}

void rules_json(struct json *json, const char *action, const char *filter,
		const struct netobs_rule *rule, const struct netobs_count *count,
		const struct netobs_count *sampled_out)
{
	json_open(json, '{');
	if (action)
		json_key_string(json, "action", action);
	if (filter)
		json_key_string(json, "filter", filter);
	if (rule && rule->sampling)
		add_sample(json, rule);
	json_key_u64(json, "packets", count->packets);
	json_key_u64(json, "bytes", count->bytes);
	json_key_open(json, "sampled_out", '{');
	json_key_u64(json, "packets", sampled_out->packets);
	json_key_u64(json, "bytes", sampled_out->bytes);
	json_close(json, '}');
	json_close(json, '}');
}

/* Cut the next word off. @return what follows it */
static char *cut_word(char *text)
{
	char *rest = text + strcspn(text, BLANKS);

	if (*rest)
		*rest++ = '\0';
	return rest + strspn(rest, BLANKS);
}

/* Parse the sampling of "sample 1:N EXPR". @return NULL, or a message about the error */
static const char *take_sample(char **expression, struct netobs_rule *rule)
{
	static const char word[] = "sample";
	const size_t len = strlen(word);
	char *text = *expression;

	if (strncmp(text, word, len) || !text[len] || !strchr(BLANKS, text[len]))
		return NULL;
	text = cut_word(text);
	*expression = cut_word(text);
	if (rule->action == NETOBS_REJECT)
		return "packets that are rejected are not sampled";
	return rules_parse_sample(text, rule) ?
		       NULL :
		       "behind 'sample' comes 1:N or flow:N, with a number from 1 to 4294967295";
}

/* @return NULL, or a message about the error */
static const char *add_filter_rule(struct rules *rules, enum netobs_action action,
				   char *expression, unsigned int line)
{
	struct netobs_rule rule = { .sz = sizeof(rule), .action = action };
	const char *wrong = take_sample(&expression, &rule);
	char *copy;

	if (wrong)
		return wrong;
	if (!*expression)
		return "the expression is missing";
	if (rules->n == NETOBS_RULES_MAX)
		return "there are more than 64 rules";
	copy = strdup(expression);
	if (!copy)
		return strerror(ENOMEM);
	rules->lines[rules->n] = line;
	rule.filter = copy;
	rules->list[rules->n++] = rule;
	return NULL;
}

/* @return NULL, or a message about the error */
static const char *parse_line(struct rules *rules, char *text, unsigned int line)
{
	char *word = trim_text(text), *rest;
	bool is_default;

	if (!*word)
		return NULL;
	rest = cut_word(word);
	is_default = !strcmp(word, "default");
	if (!is_default && !parse_action(word))
		return "a line begins with 'accept', 'reject' or 'default'";
	if (rules->default_action)
		return "lines behind the default have no effect";
	if (!is_default)
		return add_filter_rule(rules, parse_action(word), rest, line);
	rules->default_action = parse_action(rest);
	return rules->default_action ?
		       NULL :
		       "the default is 'default accept' or 'default reject'";
}

static bool parse_file(FILE *file, struct rules *rules, char *ret_why, size_t size)
{
	const char *wrong = NULL;
	unsigned int line = 0;
	char *text = NULL;
	size_t room = 0;
	ssize_t len;

	while (!wrong && (len = getline(&text, &room, file)) >= 0) {
		line++;
		wrong = strlen(text) == (size_t)len ?
				parse_line(rules, text, line) :
				"there is a NUL byte in the line";
	}
	free(text);
	if (wrong)
		snprintf(ret_why, size, "%s:%u: %s", rules->path, line, wrong);
	else if (ferror(file))
		snprintf(ret_why, size, "%s: %s", rules->path, strerror(errno));
	else if (!rules->default_action)
		snprintf(ret_why, size,
			 "%s: 'default accept' or 'default reject' has to be the last line",
			 rules->path);
	else
		return true;
	return false;
}

/* @return NULL: *@ret_why is a message about the error */
static FILE *open_rules_file(const char *path, bool waits, const char **ret_why)
{
	cleanup_fd int fd =
		open(path, O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
	struct stat stat;
	FILE *file = NULL;

	if (fd >= 0 && !waits && (fstat(fd, &stat) || !S_ISREG(stat.st_mode))) {
		*ret_why = "it is not a regular file, so it cannot be read again";
		return NULL;
	}
	if (fd >= 0)
		file = fdopen(fd, "r");
	if (file)
		TAKE_FD(fd);
	else
		*ret_why = strerror(errno);
	return file;
}

bool rules_read(const char *path, bool waits, struct rules *ret_rules,
		char *ret_why, size_t size)
{
	struct rules rules = { .path = path };
	const char *why = NULL;
	FILE *file = open_rules_file(path, waits, &why);
	bool is_good;

	if (!file) {
		snprintf(ret_why, size, "%s: %s", path, why);
		return false;
	}
	is_good = parse_file(file, &rules, ret_why, size);
	fclose(file);
	if (is_good)
		*ret_rules = rules;
	else
		rules_clear(&rules);
	return is_good;
}

void rules_clear(struct rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++)
		free((char *)rules->list[i].filter);
	*rules = (struct rules){ 0 };
}

bool rules_place(const struct rules *rules, const char *message, char *ret_text,
		 size_t size)
{
	unsigned int i;
	int len = 0;

	if (sscanf(message, "rules[%u]:%n", &i, &len) != 1 || !len ||
	    i >= rules->n)
		return false;
	snprintf(ret_text, size, "%s:%u:%s", rules->path, rules->lines[i],
		 message + len);
	return true;
}
