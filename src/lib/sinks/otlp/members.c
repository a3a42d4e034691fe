// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The text is this library's own: it has no blanks, and numbers are integers. */
#include "attributes.h"

#include <stdlib.h>
#include <string.h>

/* json.c writes \" and \\, and control characters, also of C1, as \u00XX. */
static char *unescape(const char **from, char *to)
{
	char digits[3] = "";
	unsigned long code;

	if ((*from)[1] != 'u') {
		*to++ = (*from)[1];
		*from += 2;
		return to;
	}
	memcpy(digits, *from + 4, 2);
	*from += 6;
	code = strtoul(digits, NULL, 16);
	if (code >= 0x80) /* as UTF-8 */
		*to++ = (char)0xc2;
	*to++ = (char)code;
	return to;
}

/* @at is behind the quotation mark; it becomes the place behind the other one. */
static const char *read_text(char **at, size_t *ret_len)
{
	char *start = *at, *to = start;
	const char *from = start;

	while (*from != '"') {
		if (*from == '\\')
			to = unescape(&from, to);
		else
			*to++ = *from++;
	}
	*at += from + 1 - start;
	*ret_len = (size_t)(to - start);
	return start;
}

/* What is in the bracket stays as it is, for value_next() or member_next(). */
static void skip_bracket(char **at)
{
	bool is_in_text = false;
	unsigned int depth = 1;

	for (; depth; ++*at) {
		if (**at == '"')
			is_in_text = !is_in_text;
		else if (is_in_text)
			*at += **at == '\\';
		else if (**at == '[' || **at == '{')
			depth++;
		else if (**at == ']' || **at == '}')
			depth--;
	}
}

/* Of more than 64 bits there are none. */
static int64_t read_number(char **at)
{
	bool is_negative = **at == '-';
	uint64_t number = 0;

	*at += is_negative;
	for (; **at >= '0' && **at <= '9'; ++*at)
		number = number * 10 + (uint64_t)(**at - '0');
	return (int64_t)(is_negative ? -number : number);
}

static void read_value(char **at, struct value *ret_value)
{
	*ret_value = (struct value){ .type = VALUE_IS_END };
	switch (**at) {
	case '"':
		++*at;
		ret_value->type = VALUE_IS_TEXT;
		ret_value->text = read_text(at, &ret_value->len);
		break;
	case '[':
		ret_value->type = VALUE_IS_ARRAY;
		ret_value->elements = ++*at;
		skip_bracket(at);
		break;
	case '{':
		ret_value->type = VALUE_IS_OBJECT;
		ret_value->elements = ++*at;
		skip_bracket(at);
		break;
	case 't':
	case 'f':
		ret_value->type = VALUE_IS_BOOL;
		ret_value->number = **at == 't';
		*at += strlen(ret_value->number ? "true" : "false");
		break;
	case '}':
	case ']':
	case '\0':
		break;
	default:
		ret_value->type = VALUE_IS_INT;
		ret_value->number = read_number(at);
	}
}

bool value_next(char **at, struct value *ret_value)
{
	read_value(at, ret_value);
	*at += **at == ',';
	return ret_value->type != VALUE_IS_END;
}

bool member_next(char **at, struct member *ret_member)
{
	if (**at != '"')
		return false;
	++*at;
	ret_member->key = read_text(at, &ret_member->key_len);
	++*at; /* the colon */
	return value_next(at, &ret_member->value);
}
