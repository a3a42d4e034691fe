// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "otlp.h"

#include "record/any.h"
#include "sinks/pbflow/wire.h"

/* Numbers in common.proto. */
enum {
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_STRING = 1,
	ANY_BOOL = 2,
	ANY_INT = 3,
	ANY_ARRAY = 5,
	ANY_PAIRS = 6,
	ARRAY_VALUES = 1,
	PAIRS_VALUES = 1,
};

enum { INT_MAX_BYTES = 11 }; /* an AnyValue with a number */

/* ---- Values ----------------------------------------------------------------------- */

static uint8_t *put_int_value(uint8_t *to, int64_t value)
{
	return put_any_number(to, ANY_INT, (uint64_t)value);
}

static uint8_t *put_member(uint8_t *to, uint32_t number,
			   const struct member *member);

/* The object's lengths are known once it is written. */
static uint8_t *put_object(uint8_t *to, char *members)
{
	uint8_t *value = to + WIRE_HEAD_MAX, *pairs = value + WIRE_HEAD_MAX;
	uint8_t *end = pairs;
	struct member member;

	while (member_next(&members, &member))
		end = put_member(end, PAIRS_VALUES, &member);
	end = put_moved(value, ANY_PAIRS, pairs, (size_t)(end - pairs));
	return put_moved(to, ARRAY_VALUES, value, (size_t)(end - value));
}

static uint8_t *put_element(uint8_t *to, const struct value *value)
{
	uint8_t number[INT_MAX_BYTES];
	size_t len = 1 + varint_size(value->len) + value->len;

	if (value->type == VALUE_IS_OBJECT)
		return put_object(to, value->elements);
	if (value->type != VALUE_IS_TEXT)
		return put_bytes(to, ARRAY_VALUES, number,
				 (size_t)(put_int_value(number, value->number) -
					  number));
	to = put_varint(put_tag(to, ARRAY_VALUES, WIRE_BYTES), len);
	return put_bytes(to, ANY_STRING, value->text, value->len);
}

/* The array's length is known once it is written: in the room behind its place. */
static uint8_t *put_array_value(uint8_t *to, char *elements,
				struct value *ret_first)
{
	uint8_t *values = to + WIRE_HEAD_MAX, *end = values;
	struct value value;

	while (value_next(&elements, &value)) {
		if (end == values)
			*ret_first = value;
		end = put_element(end, &value);
	}
	return put_moved(to, ANY_ARRAY, values, (size_t)(end - values));
}

/* ---- Attributes ------------------------------------------------------------------- */

static size_t pair_size(size_t name_len, size_t value_len)
{
	return 1 + varint_size(name_len) + name_len + 1 +
	       varint_size(value_len) + value_len;
}

/* Up to the contents of its value, which have @value_len bytes. */
static uint8_t *put_attribute_head(uint8_t *to, uint32_t number,
				   const char *name, size_t value_len)
{
	size_t name_len = strlen(name);

	to = put_varint(put_tag(to, number, WIRE_BYTES),
			pair_size(name_len, value_len));
	to = put_bytes(to, KEY_VALUE_KEY, name, name_len);
	return put_varint(put_tag(to, KEY_VALUE_VALUE, WIRE_BYTES), value_len);
}

size_t text_attribute_size(const char *name, size_t len)
{
	size_t size = pair_size(strlen(name), 1 + varint_size(len) + len);

	return 1 + varint_size(size) + size;
}

uint8_t *put_text_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len)
{
	to = put_attribute_head(to, number, name, 1 + varint_size(len) + len);
	return put_bytes(to, ANY_STRING, text, len);
}

uint8_t *put_list_attribute(uint8_t *to, uint32_t number, const char *name,
			    const char *text, size_t len)
{
	size_t element = 1 + varint_size(len) + len;
	size_t array = 1 + varint_size(element) + element;

	to = put_attribute_head(to, number, name, 1 + varint_size(array) + array);
	to = put_varint(put_tag(to, ANY_ARRAY, WIRE_BYTES), array);
	to = put_varint(put_tag(to, ARRAY_VALUES, WIRE_BYTES), element);
	return put_bytes(to, ANY_STRING, text, len);
}

static uint8_t *put_bool_attribute(uint8_t *to, uint32_t number,
				   const char *name, bool value)
{
	to = put_attribute_head(to, number, name, 2);
	return put_any_number(to, ANY_BOOL, value);
}

uint8_t *put_int_attribute(uint8_t *to, uint32_t number, const char *name,
			   int64_t value)
{
	to = put_attribute_head(to, number, name,
				1 + varint_size((uint64_t)value));
	return put_int_value(to, value);
}

static uint8_t *put_array_attribute(uint8_t *to, uint32_t number,
				    const char *name, char *elements,
				    struct value *ret_first)
{
	uint8_t *value = to + 2 * WIRE_HEAD_MAX + 2 * NAME_MAX_LEN;
	size_t len =
		(size_t)(put_array_value(value, elements, ret_first) - value);

	to = put_attribute_head(to, number, name, len);
	memmove(to, value, len);
	return to + len;
}

/* ---- What follows from a member ----------------------------------------------------- */

static uint8_t *put_text(uint8_t *to, uint32_t number, const char *name,
			 const char *text)
{
	return text ? put_text_attribute(to, number, name, text, strlen(text)) :
		      to;
}

/* @first: of an array. */
static uint8_t *put_consequence(uint8_t *to, uint32_t number,
				const struct member *member,
				const struct value *first)
{
	const struct value *value = &member->value;

	if (raw_member_is(&member->raw, "Proto"))
		return put_text(to, number, "network.transport",
				member_transport(value->number));
	if (raw_member_is(&member->raw, "SrcAddr"))
		return put_text(to, number, "network.type",
				memchr(value->text, ':', value->len) ? "ipv6" :
								       "ipv4");
	if (raw_member_is(&member->raw, "Interfaces") &&
	    first->type == VALUE_IS_TEXT)
		return put_text_attribute(to, number, "network.interface.name",
					  first->text, first->len);
	return to;
}

static uint8_t *put_member(uint8_t *to, uint32_t number,
			   const struct member *member)
{
	const struct value *value = &member->value;
	char buf[NAME_MAX_LEN];
	const char *name = member_name(NAMES_OF_OTEL, member->raw.key,
				       member->raw.key_len, buf);
	struct value first = { .type = VALUE_IS_END };

	switch (value->type) {
	case VALUE_IS_INT:
		to = put_int_attribute(to, number, name, value->number);
		break;
	case VALUE_IS_BOOL:
		to = put_bool_attribute(to, number, name, value->number);
		break;
	case VALUE_IS_TEXT:
		to = put_text_attribute(to, number, name, value->text,
					value->len);
		break;
	case VALUE_IS_ARRAY:
		to = put_array_attribute(to, number, name, value->elements,
					 &first);
		break;
	case VALUE_IS_OBJECT: /* records have them in arrays only */
	case VALUE_IS_END:
		break;
	}
	return put_consequence(to, number, member, &first);
}

static bool is_any_key(const struct member *member, const char *const *keys)
{
	for (; *keys; keys++)
		if (raw_member_is(&member->raw, *keys))
			return true;
	return false;
}

uint8_t *put_record_attributes(uint8_t *to, uint32_t number,
			       const struct netobs_record *record,
			       const char *const *without)
{
	char json[RECORD_JSON_MAX], *at = json + 1;
	struct value container = { .type = VALUE_IS_END };
	struct member member;
	bool is_in_pod = false;

	if (netobs_record_json(record, json, sizeof(json)) < 0)
		return to;
	while (member_next(&at, &member)) {
		if (raw_member_is(&member.raw, "ContainerName"))
			container = member.value;
		is_in_pod |= raw_member_is(&member.raw, "PodName");
		if (!is_any_key(&member, without))
			to = put_member(to, number, &member);
	}
	/* The name of a container in a pod is the one that the pod has for it. */
	if (is_in_pod && container.type == VALUE_IS_TEXT)
		to = put_text_attribute(to, number, "k8s.container.name",
					container.text, container.len);
	return to;
}
