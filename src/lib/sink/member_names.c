// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_fields.h"

#include "base/util.h"
#include "record/any.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names -------------------------------------------------------------------------- */

static const struct name {
	size_t len;
	const char *key, *names[NAMES_OF];
} names[] = {
#define NAME(key, otel, ecs) { sizeof(key) - 1, key, { otel, ecs } },
#include "catalogue/names.def"
};

/* L2Bytes: l2_bytes. */
static const char *make_name(const char *key, size_t len, char *buf)
{
	static const char prefix[] = "netobs.";
	char *to = buf + strlen(prefix);
	bool was_upper = false;

	assert(len <= (NAME_MAX_LEN - sizeof(prefix)) / 2);
	memcpy(buf, prefix, strlen(prefix));
	for (size_t i = 0; i < len; i++) {
		bool is_upper = key[i] >= 'A' && key[i] <= 'Z';

		if (is_upper && i && !was_upper)
			*to++ = '_';
		*to++ = (char)(is_upper ? key[i] - 'A' + 'a' : key[i]);
		was_upper = is_upper;
	}
	*to = '\0';
	return buf;
}

const char *member_name(enum names_of names_of, const char *key, size_t len,
			char *buf)
{
	/* Few have the length of another one. */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].len == len && !memcmp(names[i].key, key, len) &&
		    *names[i].names[names_of])
			return names[i].names[names_of];
	return make_name(key, len, buf);
}

const char *member_transport(int64_t proto)
{
	switch (proto) {
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 33:
		return "dccp";
	case 132:
		return "sctp";
	case 136:
		return "udplite";
	default:
		return NULL;
	}
}

/* ---- Members: the text has no blanks, and its keys no escapes ------------------------- */

static size_t text_len(const char *text)
{
	size_t len = 1;

	for (; text[len] != '"'; len++)
		len += text[len] == '\\';
	return len + 1;
}

size_t raw_value_len(const char *value)
{
	unsigned int depth = 0;
	size_t len = 0;

	for (;; len++) {
		char c = value[len];

		if (c == '"')
			len += text_len(value + len) - 1;
		else if (c == '{' || c == '[')
			depth++;
		else if (!depth && (c == ',' || c == '}' || c == ']'))
			return len;
		else if (c == '}' || c == ']')
			depth--;
	}
}

bool raw_member_next(const char **at, struct raw_member *ret_member)
{
	if (**at != '"')
		return false;
	ret_member->key = *at + 1;
	ret_member->key_len = text_len(*at) - 2;
	ret_member->value = ret_member->key + ret_member->key_len + 2;
	ret_member->value_len = raw_value_len(ret_member->value);
	*at = ret_member->value + ret_member->value_len;
	*at += **at == ',';
	return true;
}

bool raw_member_is(const struct raw_member *member, const char *key)
{
	return member->key_len == strlen(key) &&
	       !memcmp(member->key, key, member->key_len);
}

/* ---- ECS ------------------------------------------------------------------------------ */

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

static char *put_transport(char *to, const struct raw_member *raw)
{
	const char *name = member_transport(atoi(raw->value));

	return name ? put_word(to, "network.transport", name) : to;
}

/* Write members that are derived from a member. */
static char *put_consequences(char *to, const struct raw_member *raw,
			      const char *time)
{
	if (raw_member_is(raw, time))
		to = put_raw(to, "@timestamp", raw->value, raw->value_len);
	if (raw_member_is(raw, "Proto"))
		return put_transport(to, raw);
	if (raw_member_is(raw, "SrcAddr"))
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
	struct raw_member raw;

	snprintf(type, 32, "flow");
	if (raw_member_next(&at, &raw) && raw_member_is(&raw, "type"))
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
	struct raw_member raw;

	memcpy(copy, json, len);
	copy[len] = '\0';
	find_type(copy, type);
	time = strcmp(type, "flow") != 0 ? "TimeMs" : "TimeFlowEndMs";
	to = put_event(json + 1, type);
	while (raw_member_next(&at, &raw)) {
		if (raw_member_is(&raw, "type"))
			continue;
		to = put_raw(to,
			     member_name(NAMES_OF_ECS, raw.key, raw.key_len, buf),
			     raw.value, raw.value_len);
		to = put_consequences(to, &raw, time);
	}
	to[-1] = '}';
	return (size_t)(to - json);
}

bool names_clash(const char *one, const char *other)
{
	const size_t len = strlen(one), other_len = strlen(other);
	const size_t n = len < other_len ? len : other_len;
	const char *rest = len < other_len ? other + n : one + n;

	return !memcmp(one, other, n) && (!*rest || *rest == '.');
}

const char *ecs_find_clash(const char *name)
{
	static const char *const more[] = {
		"@timestamp",	 "ecs.version",	   "event.kind",
		"event.dataset", "event.category", "network.transport",
		"network.type",	 "netobs", /* of all that have no other name */
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (names_clash(name, more[i]))
			return more[i];
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (*names[i].names[NAMES_OF_ECS] &&
		    names_clash(name, names[i].names[NAMES_OF_ECS]))
			return names[i].names[NAMES_OF_ECS];
	return NULL;
}
