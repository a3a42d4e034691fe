/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "expression.h"

#include "base/clock_ms.h"

#include <ctype.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
	QUOTE_MAX = 60,
	PLACE_MAX = 1000,
	PLACE_WAIT_MS = 1000,
	/* libpcap takes seconds for some of this length, and the cube of it for longer ones. */
	EXPRESSION_MAX = 4096,
};

/*
 * The length of the longest part of the expression, up to a space, that is one itself.
 * Each try looks up the names of hosts again, which may take long.
 */
static size_t valid_length(const char *expression, enum link_kind link)
{
	const int64_t end = now_ms() + PLACE_WAIT_MS;
	cleanup_free char *part = strdup(expression);
	char error[FILTER_ERROR_MAX];

	for (size_t len = part ? strlen(part) : 0; len && left_ms(end); len--) {
		struct classic classic;

		if (!isspace((unsigned char)expression[len - 1]))
			continue;
		part[len - 1] = '\0';
		if (!classic_compile(part, link, &classic, error, sizeof(error))) {
			classic_done(&classic);
			return strlen(part);
		}
	}
	return 0;
}

/* libpcap does not report where a syntax error is. */
static void add_place(char *error, const char *expression, enum link_kind link)
{
	size_t len = strlen(error);
	const char *rest = expression;

	if (!strstr(error, "syntax error"))
		return;
	if (strlen(expression) < PLACE_MAX)
		rest += valid_length(expression, link);
	while (isspace((unsigned char)*rest))
		rest++;
	snprintf(error + len, FILTER_ERROR_MAX - len, ", at '%.*s%s'",
		 QUOTE_MAX, rest, strlen(rest) > QUOTE_MAX ? "..." : "");
}

/* Links of one kind only may have packets that match: not an error for the others. */
static int allow_nothing(struct expression *expression, enum link_kind link)
{
	static const struct classic_insn reject = { .code = BPF_RET | BPF_K };
	struct classic *program = &expression->programs[link];

	if (!strstr(expression->objections[link], "rejects all packets"))
		return -EINVAL;
	program->insns = malloc(sizeof(reject));
	if (!program->insns)
		return -ENOMEM;
	*program->insns = reject;
	program->n = 1;
	return 0;
}

static int compile_links(struct expression *expression,
			 char (*ret_error)[FILTER_ERROR_MAX])
{
	int err[LINKS], n = 0;

	for (int link = LINK_ETHERNET; link < LINKS; link++) {
		err[link] = classic_compile(expression->text, link,
					    &expression->programs[link],
					    expression->objections[link],
					    FILTER_ERROR_MAX);
		n += !err[link];
	}
	for (int link = LINK_ETHERNET; n && link < LINKS; link++)
		if (err[link] && allow_nothing(expression, link) == -ENOMEM)
			return -ENOMEM;
	if (n)
		return 0;
	memcpy(*ret_error, expression->objections[LINK_ETHERNET],
	       FILTER_ERROR_MAX);
	if (err[LINK_ETHERNET] == -EINVAL)
		add_place(*ret_error, expression->text, LINK_ETHERNET);
	return err[LINK_ETHERNET];
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("-_.\\", c);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_word_char(at[-1])) &&
		    (!at[len] || !is_word_char(at[len])))
			return true;
	return false;
}

/* Reserved for what a tunnel carries, which libpcap would take for the name of a host. */
static int refuse_inner(const char *expression,
			char (*ret_error)[FILTER_ERROR_MAX])
{
	const char *word = expression + strspn(expression, " \t\n(");

	if (strncmp(word, "inner ", strlen("inner ")))
		return 0;
	snprintf(*ret_error, FILTER_ERROR_MAX,
		 "inner: this version filters by the outer headers of tunnels only");
	return -EINVAL;
}

int expression_compile(struct expression *expression, const char *text,
		       char (*ret_error)[FILTER_ERROR_MAX])
{
	if (refuse_inner(text, ret_error))
		return -EINVAL;
	if (strlen(text) > EXPRESSION_MAX) {
		snprintf(*ret_error, FILTER_ERROR_MAX,
			 "the expression has %zu bytes; %d are the most",
			 strlen(text), EXPRESSION_MAX);
		return -E2BIG;
	}
	expression->text = strdup(text);
	if (!expression->text)
		return -ENOMEM;
	expression->has_vlan = has_word(text, "vlan");
	return compile_links(expression, ret_error);
}

void expression_done(struct expression *expression)
{
	for (int link = LINK_ETHERNET; link < LINKS; link++)
		classic_done(&expression->programs[link]);
	free(expression->text);
	*expression = (struct expression){ 0 };
}
