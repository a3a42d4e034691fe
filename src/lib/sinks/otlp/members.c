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

/* Decode a text in place: @text is behind the quotation mark. */
static size_t read_text(char *text)
{
	const char *from = text;
	char *to = text;

	while (*from != '"') {
		if (*from == '\\')
			to = unescape(&from, to);
		else
			*to++ = *from++;
	}
	return (size_t)(to - text);
}

/* Read a value; the text in a bracket stays as it is, for value_next() or member_next(). */
static void read_value(char *at, struct value *ret_value)
{
	*ret_value = (struct value){ .type = VALUE_IS_INT };
	switch (*at) {
	case '"':
		ret_value->type = VALUE_IS_TEXT;
		ret_value->text = at + 1;
		ret_value->len = read_text(at + 1);
		break;
	case '[':
	case '{':
		ret_value->type = *at == '[' ? VALUE_IS_ARRAY : VALUE_IS_OBJECT;
		ret_value->elements = at + 1;
		break;
	case 't':
	case 'f':
		ret_value->type = VALUE_IS_BOOL;
		ret_value->number = *at == 't';
		break;
	case '-':
		ret_value->number = strtoll(at, NULL, 10);
		break;
	default:
		ret_value->number = (int64_t)strtoull(at, NULL, 10);
	}
}

bool value_next(char **at, struct value *ret_value)
{
	char *value = *at;

	*ret_value = (struct value){ .type = VALUE_IS_END };
	if (*value == ']')
		return false;
	*at += raw_value_len(value);
	*at += **at == ',';
	read_value(value, ret_value);
	return true;
}

bool member_next(char **at, struct member *ret_member)
{
	const char *next = *at;

	if (!raw_member_next(&next, &ret_member->raw))
		return false;
	*at += next - *at;
	read_value((char *)ret_member->raw.value, &ret_member->value);
	return true;
}
