/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The members of a record in JSON, as netobs_record_json() writes it. So attributes say what JSON
 * says, of any type of record, also of those that are yet to come.
 */
#ifndef NETOBS_SINKS_OTLP_MEMBERS_H
#define NETOBS_SINKS_OTLP_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_type {
	VALUE_IS_INT,
	VALUE_IS_BOOL,
	VALUE_IS_TEXT,
	VALUE_IS_ARRAY,
	VALUE_IS_OBJECT,
	VALUE_IS_END
};

struct value {
	enum value_type type;
	int64_t number;	  /* of a bool: 0 or 1 */
	const char *text; /* UTF-8 of @len bytes, without escapes */
	size_t len;
	char *elements; /* of an array: for value_next(); of an object: for member_next() */
};

struct member {
	const char *key;
	size_t key_len;
	struct value value;
};

/*
 * Take the next member.
 *
 * @param at  behind the bracket of the object, or where the last call left it; what is
 *            behind it may be changed
 * @return false: there are no more
 */
bool member_next(char **at, struct member *ret_member);

/* Take the next element of an array, as member_next() takes a member. */
bool value_next(char **at, struct value *ret_value);

#endif
