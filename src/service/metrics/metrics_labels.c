/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "metrics_table.h"

enum {
	VALUE_MAX = 255 /* bytes of a label's value; longer ones end in "..." */
};

static void put_bytes(struct metrics_labels *labels, const void *bytes, size_t len)
{
	if (len > sizeof(labels->text) - labels->len)
		return;
	memcpy(labels->text + labels->len, bytes, len);
	labels->len += len;
}

static void put_label_text(struct metrics_labels *labels, const char *string)
{
	put_bytes(labels, string, strlen(string));
}

static void put_value(struct metrics_labels *labels, const char *value)
{
	char text[SAFE_LABEL_ROOM(VALUE_MAX)];

	put_bytes(labels, text, safe_label(text, value, VALUE_MAX));
}

void metrics_label_add(struct metrics_labels *labels, const char *name,
		       const char *value)
{
	put_label_text(labels, labels->len ? "," : "");
	put_label_text(labels, name);
	put_label_text(labels, "=\"");
	put_value(labels, value);
	put_label_text(labels, "\"");
}

void metrics_label_index(struct metrics_labels *labels, const char *name,
			 size_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", value);
	metrics_label_add(labels, name, number);
}
