// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "http.h"

#include <stdlib.h>
#include <string.h>

/* Objects and arrays around a value. */
enum {
	DEPTH_ANSWER = 1,
	DEPTH_ITEMS,
	DEPTH_ACTION, /* {"create":...} */
	DEPTH_ITEM,
	DEPTH_ERROR,
};

void bulk_answer_begin(struct bulk_answer *answer,
		       void (*take_item)(void *ctx, int status,
					 const char *reason),
		       void *ctx)
{
	*answer = (struct bulk_answer){ .take_item = take_item, .ctx = ctx };
}

static void bulk_add_char(struct bulk_answer *answer, char c)
{
	if (answer->len + 1 < sizeof(answer->text))
		answer->text[answer->len++] = c;
	answer->text[answer->len] = '\0';
}

static void bulk_begin_text(struct bulk_answer *answer)
{
	answer->len = 0;
	answer->text[0] = '\0';
	answer->has_value = true;
}

static bool bulk_is_at(const struct bulk_answer *answer, unsigned int depth,
		       const char *key)
{
	return answer->depth == depth && !strcmp(answer->key, key);
}

static void bulk_take_member(struct bulk_answer *answer)
{
	if (bulk_is_at(answer, DEPTH_ANSWER, "errors")) {
		answer->is_answer = true;
		answer->has_errors = strcmp(answer->text, "false") != 0;
	}
	if (!answer->is_in_items)
		return;
	if (bulk_is_at(answer, DEPTH_ITEM, "status"))
		answer->status = atoi(answer->text);
	if (bulk_is_at(answer, DEPTH_ITEM, "error") ||
	    bulk_is_at(answer, DEPTH_ERROR, "reason"))
		strcpy(answer->reason, answer->text);
}

static void bulk_end_value(struct bulk_answer *answer)
{
	if (answer->has_value)
		bulk_take_member(answer);
	answer->has_value = false;
}

static void bulk_open(struct bulk_answer *answer)
{
	if (answer->depth++ == DEPTH_ANSWER)
		answer->is_in_items = !strcmp(answer->key, "items");
	if (answer->depth == DEPTH_ITEM) {
		answer->status = 0;
		answer->reason[0] = '\0';
	}
	answer->key[0] = '\0';
	answer->has_value = false;
}

static void bulk_close(struct bulk_answer *answer)
{
	bulk_end_value(answer);
	if (answer->depth == DEPTH_ITEM && answer->is_in_items)
		answer->take_item(answer->ctx, answer->status, answer->reason);
	if (answer->depth)
		answer->depth--;
	answer->key[0] = '\0';
}

static void bulk_read_string(struct bulk_answer *answer, char c)
{
	if (!answer->is_escaped && c == '"') {
		answer->is_in_string = false;
	} else if (!answer->is_escaped && c == '\\') {
		answer->is_escaped = true;
	} else {
		bulk_add_char(answer, c);
		answer->is_escaped = false;
	}
}

static void bulk_read_char(struct bulk_answer *answer, char c)
{
	switch (c) {
	case '"':
		bulk_begin_text(answer);
		answer->is_in_string = true;
		break;
	case ':':
		strcpy(answer->key, answer->text);
		answer->has_value = false;
		break;
	case ',':
		bulk_end_value(answer);
		break;
	case '{':
	case '[':
		bulk_open(answer);
		break;
	case '}':
	case ']':
		bulk_close(answer);
		break;
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		break;
	default:
		if (!answer->has_value)
			bulk_begin_text(answer);
		bulk_add_char(answer, c);
	}
}

void bulk_answer_read(struct bulk_answer *answer, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (answer->is_in_string)
			bulk_read_string(answer, bytes[i]);
		else
			bulk_read_char(answer, bytes[i]);
	}
}
