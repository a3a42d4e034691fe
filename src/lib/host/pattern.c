/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "selection.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

enum { ALTNAME_SIZE = 128 }; /* ALTIFNAMSIZ of linux/if.h */

static int compile_pattern(struct pattern *pattern, const char *option,
			   const struct log *log)
{
	char reason[128];
	int err = regcomp(&pattern->regex, pattern->text,
			  REG_EXTENDED | REG_NOSUB);

	if (!err)
		return 0;
	regerror(err, &pattern->regex, reason, sizeof(reason));
	log_error(log, "%s: regular expression /%s/: %s", option, pattern->text,
		  reason);
	return -EINVAL;
}

/* NUL-terminated copy without the slashes around it. */
static int parse_pattern(const char *text, struct pattern *pattern,
			 const char *option, const struct log *log)
{
	size_t len = strlen(text);

	pattern->is_regex = len >= 2 && text[0] == '/' && text[len - 1] == '/';
	if (!pattern->is_regex &&
	    (!len || len >= ALTNAME_SIZE || strchr(text, '/'))) {
		log_error(log,
			  "%s: '%s' is neither an interface name nor a /regex/",
			  option, text);
		return -EINVAL;
	}
	pattern->text = pattern->is_regex ? strndup(text + 1, len - 2) :
					    strdup(text);
	if (!pattern->text)
		return -ENOMEM;
	return pattern->is_regex ? compile_pattern(pattern, option, log) : 0;
}

int patterns_add(struct patterns *patterns, const char *text,
		 const char *option, const struct log *log)
{
	struct pattern pattern = { 0 }, *items;
	int err = parse_pattern(text, &pattern, option, log);

	if (err) {
		free(pattern.text);
		return err;
	}
	items = reallocarray(patterns->items, patterns->count + 1,
			     sizeof(*items));
	if (!items) {
		if (pattern.is_regex)
			regfree(&pattern.regex);
		free(pattern.text);
		return -ENOMEM;
	}
	items[patterns->count++] = pattern;
	patterns->items = items;
	return 0;
}

int patterns_move(struct patterns *to, struct patterns *from)
{
	uint32_t n = to->count + from->count;
	struct pattern *items;

	if (!from->count)
		return 0;
	items = reallocarray(to->items, n, sizeof(*items));
	if (!items)
		return -ENOMEM;
	memcpy(items + to->count, from->items, from->count * sizeof(*items));
	free(from->items);
	*from = (struct patterns){ 0 };
	*to = (struct patterns){ items, n };
	return 0;
}

void patterns_done(struct patterns *patterns)
{
	for (uint32_t i = 0; i < patterns->count; i++) {
		if (patterns->items[i].is_regex)
			regfree(&patterns->items[i].regex);
		free(patterns->items[i].text);
	}
	free(patterns->items);
	*patterns = (struct patterns){ 0 };
}

static bool matches_pattern(const struct pattern *pattern, const char *name)
{
	return pattern->is_regex ? !regexec(&pattern->regex, name, 0, NULL, 0) :
				   !strcmp(pattern->text, name);
}

bool patterns_match(const struct patterns *patterns, const char *name)
{
	for (uint32_t i = 0; i < patterns->count; i++)
		if (matches_pattern(&patterns->items[i], name))
			return true;
	return false;
}

bool patterns_name(const struct patterns *patterns, const char *name)
{
	for (uint32_t i = 0; i < patterns->count; i++)
		if (!patterns->items[i].is_regex &&
		    !strcmp(patterns->items[i].text, name))
			return true;
	return false;
}
