/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Attributes as OTLP has them: KeyValue, of AnyValue. */
#ifndef NETOBS_SINKS_OTLP_ATTRIBUTES_H
#define NETOBS_SINKS_OTLP_ATTRIBUTES_H

#include "sink/member_names.h"

#include <netobs/record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The members of a record in JSON, as netobs_record_json() writes it. So attributes say what JSON
 * says, of any type of record, also of those that are yet to come.
 */

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
	struct raw_member raw;
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

/* Each writes a field @number of the message around it, as wire.h does. */
uint8_t *put_text_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len);
uint8_t *put_int_attribute(uint8_t *to, uint32_t number, const char *name,
			   int64_t value);

/* Writes an attribute whose value is an array of one text. */
uint8_t *put_list_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len);

/* @return bytes of put_text_attribute(); of put_list_attribute() up to LIST_MORE more */
size_t text_attribute_size(const char *name, size_t len);

enum { LIST_MORE = 12 };

/*
 * The members of a record, by their names of member_names.h, and what follows from them by conventions of its own:
 * network.transport, network.type, the first interface as network.interface.name, and, of a container in a
 * pod, k8s.container.name.
 *
 * @param without  keys of members that are no attributes, with a NULL behind them
 */
uint8_t *put_record_attributes(uint8_t *to, uint32_t number,
			       const struct netobs_record *record,
			       const char *const *without);

#endif
