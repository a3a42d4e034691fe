// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The text is this library's own: it has no blanks, and its keys no escapes. */
#include "member_names.h"

#include "record/any.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A member, as it is written. */
struct raw {
	const char *key, *value;
	size_t key_len, value_len;
};

static size_t text_len(const char *text)
{
	size_t len = 1;

	for (; text[len] != '"'; len++)
		len += text[len] == '\\';
	return len + 1;
}

/* @return the length of a value, up to a comma, or the end of its object or array */
static size_t value_len(const char *value)
{
	unsigned int depth = 0;
	size_t len = 0;

	for (;; len++) {
		char c = value[len];

		if (c == '"')
			len += text_len(value + len) - 1;
		else if (c == '{' || c == '[')
			depth++;
		else if (!depth && (c == ',' || c == '}'))
			return len;
		else if (c == '}' || c == ']')
			depth--;
	}
}

/* @at: behind the bracket, or where the last call left it. */
static bool next_raw(const char **at, struct raw *ret_raw)
{
	if (**at != '"')
		return false;
	ret_raw->key = *at + 1;
	ret_raw->key_len = text_len(*at) - 2;
	ret_raw->value = ret_raw->key + ret_raw->key_len + 2;
	ret_raw->value_len = value_len(ret_raw->value);
	*at = ret_raw->value + ret_raw->value_len;
	*at += **at == ',';
	return true;
}

/* ---- Members ------------------------------------------------------------------------- */

static bool is_raw(const struct raw *raw, const char *key)
{
	return raw->key_len == strlen(key) &&
	       !memcmp(raw->key, key, raw->key_len);
}

/* Write a member and a comma. */
static char *put_raw(char *to, const char *name, const char *value, size_t len)
{
	size_t name_len = strlen(name);

	*to++ = '"';
	memcpy(to, name, name_len);
	to += name_len;
	*to++ = '"';
	*to++ = ':';
	memcpy(to, value, len);
	to += len;
	*to++ = ',';
	return to;
}

static char *put_word(char *to, const char *name, const char *value)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "\"%s\"", value);

	return put_raw(to, name, text, (size_t)len);
}

static char *put_transport(char *to, const struct raw *raw)
{
	const char *name = member_transport(atoi(raw->value));

	return name ? put_word(to, "network.transport", name) : to;
}

/* Write members that are derived from a member. */
static char *put_consequences(char *to, const struct raw *raw, const char *time)
{
	if (is_raw(raw, time))
		to = put_raw(to, "@timestamp", raw->value, raw->value_len);
	if (is_raw(raw, "Proto"))
		return put_transport(to, raw);
	if (is_raw(raw, "SrcAddr"))
		return put_word(to, "network.type",
				memchr(raw->value, ':', raw->value_len) ?
					"ipv6" :
					"ipv4");
	return to;
}

/* ---- All of it ----------------------------------------------------------------------- */

/* Find the type of a record; flows, whose JSON has none, are "flow". */
static void find_type(const char *json, char type[32])
{
	const char *at = json + 1;
	struct raw raw;

	snprintf(type, 32, "flow");
	if (next_raw(&at, &raw) && is_raw(&raw, "type"))
		snprintf(type, 32, "%.*s", (int)raw.value_len - 2, raw.value + 1);
}

static const char *kind_of(const char *type)
{
	if (!strcmp(type, "alert"))
		return "alert";
	return !strcmp(type, "group") || !strcmp(type, "stats") ? "metric" :
								  "event";
}

static char *put_event(char *to, const char *type)
{
	char dataset[48];

	snprintf(dataset, sizeof(dataset), "netobs.%s", type);
	to = put_word(to, "ecs.version", NAMES_ECS_VERSION);
	to = put_word(to, "event.kind", kind_of(type));
	to = put_word(to, "event.dataset", dataset);
	return put_raw(to, "event.category", "[\"network\"]",
		       strlen("[\"network\"]"));
}

size_t ecs_rename(char *json, size_t len)
{
	char copy[RECORD_JSON_MAX + 1], type[32], buf[NAME_MAX_LEN], *to;
	const char *at = copy + 1, *time;
	struct raw raw;

	memcpy(copy, json, len);
	copy[len] = '\0';
	find_type(copy, type);
	time = strcmp(type, "flow") != 0 ? "TimeMs" : "TimeFlowEndMs";
	to = put_event(json + 1, type);
	while (next_raw(&at, &raw)) {
		if (is_raw(&raw, "type"))
			continue;
		to = put_raw(to,
			     member_name(NAMES_OF_ECS, raw.key, raw.key_len, buf),
			     raw.value, raw.value_len);
		to = put_consequences(to, &raw, time);
	}
	to[-1] = '}';
	return (size_t)(to - json);
}
