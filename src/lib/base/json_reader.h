/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reads values of a JSON text (RFC 8259) in place, without memory of its own. A value that is
 * not there, or of another type, is empty: its number is 0, its text "", and it has no members.
 * The text is checked once, as a whole: readers then rely on it.
 */
#ifndef NETOBS_BASE_JSON_READER_H
#define NETOBS_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32 }; /* nested values */

/* A value in a text that json_parse() has accepted. */
struct json_value {
	const char *at; /* its first byte; NULL: missing */
};

/**
 * Check @text, which ends with a NUL and may have white space around its value.
 *
 * @return the value; an empty one: it is no JSON, or is nested too deeply
 */
struct json_value json_parse(const char *text);

/** @return the member of an object at a path such as "seen.packets" */
struct json_value json_get(struct json_value value, const char *path);

/** @return the member of an object whose name is all of @name, which may have dots */
struct json_value json_member(struct json_value object, const char *name);

/** A member of an object or an element of an array, in their order. */
struct json_item {
	struct json_value key; /* name of an object's member; empty in arrays */
	struct json_value value;
	const char *next;
};

/**
 * Go to the first item, where *@item is all zero, or to the next one.
 *
 * @return false: there are no more items
 */
bool json_next(struct json_value container, struct json_item *item);

/** @return a whole number from 0 to UINT64_MAX; 0: it is another, or none */
uint64_t json_number(struct json_value value);

/** @return a whole number */
int64_t json_signed(struct json_value value);

/** @return how many bytes the value has */
size_t json_length(struct json_value value);

/** @return whether it is true */
bool json_is_true(struct json_value value);

/**
 * Write the text of a string, as UTF-8, cut to @size.
 *
 * @return @buf
 */
char *json_text(struct json_value value, char *buf, size_t size);

/** The text of a path in one step. @return @buf */
static inline char *json_get_text(struct json_value value, const char *path,
				  char *buf, size_t size)
{
	return json_text(json_get(value, path), buf, size);
}

#endif
