/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A JSON writer into a buffer of fixed size. It writes commas; the caller opens and
 * closes brackets. Text that does not fit is dropped, and json_end() reports it.
 */
#ifndef NETOBS_BASE_JSON_H
#define NETOBS_BASE_JSON_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct json {
	/* One byte is kept for the NUL. Once something did not fit, @end is @pos. */
	char *start, *pos, *end;
	bool comma; /* this array or object has a value */
	bool overflow;
};

void json_begin(struct json *json, char *buf, size_t size);

/* Length without the NUL; -ENOBUFS when something did not fit. */
int json_end(struct json *json);

static inline bool json_has_room(const struct json *json, size_t len)
{
	return (size_t)(json->end - json->pos) >= len;
}

static inline void json_overflow(struct json *json)
{
	json->end = json->pos;
	json->overflow = true;
}

/*
 * @return the place to write @len bytes of JSON at once; json->pos is then to be set
 * behind them. NULL: there is not that much room.
 */
static inline char *json_room(const struct json *json, size_t len)
{
	return json_has_room(json, len) ? json->pos : NULL;
}

/*
 * The parts of records, inline: half of a line is keys, which are constants, so their copy
 * is a few instructions.
 */

/* Put all of @len bytes or none, so that a cut never leaves half a token. */
static inline void json_put(struct json *json, const char *bytes, size_t len)
{
	if (!json_has_room(json, len)) {
		json_overflow(json);
		return;
	}
	memcpy(json->pos, bytes, len);
	json->pos += len;
}

static inline void json_separate(struct json *json)
{
	if (json->comma)
		json_put(json, ",", 1);
	json->comma = true;
}

static inline void json_open(struct json *json, char bracket)
{
	json_separate(json);
	json_put(json, &bracket, 1);
	json->comma = false;
}

static inline void json_close(struct json *json, char bracket)
{
	json_put(json, &bracket, 1);
	json->comma = true;
}

/* @key is printed as it is: only for names that need no escapes. */
static inline void json_key(struct json *json, const char *key)
{
	size_t len = strlen(key);
	char *to = json_room(json, len + 4);

	if (!to) {
		json_overflow(json);
		return;
	}
	*to = ',';
	to += json->comma;
	*to++ = '"';
	memcpy(to, key, len);
	to += len;
	*to++ = '"';
	*to++ = ':';
	json->pos = to;
	json->comma = false;
}

static inline void json_u64(struct json *json, uint64_t value)
{
	char text[TEXT_U64_MAX + TEXT_SPARE];

	if (json_has_room(json, sizeof(text) + 1)) {
		*json->pos = ',';
		json->pos = text_u64(json->pos + json->comma, value);
		json->comma = true;
		return;
	}
	json_separate(json);
	json_put(json, text, (size_t)(text_u64(text, value) - text));
}

static inline void json_key_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_i64(struct json *json, int64_t value);

/*
 * Escapes the characters that JSON requires, and all control characters; bytes that are not UTF-8 become
 * U+FFFD.
 */
void json_string(struct json *json, const char *string);

/* A member of an object, as json_key_u64(): begin an object or an array, or all of a value. */
void json_key_open(struct json *json, const char *key, char bracket);
void json_key_i64(struct json *json, const char *key, int64_t value);
void json_key_string(struct json *json, const char *key, const char *string);
void json_key_bool(struct json *json, const char *key, bool value);

/* Text that is JSON already, without the comma before it. */
void json_members(struct json *json, const char *members, size_t len);

#endif
