/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "text_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/util.h"

void print_json_string(const char *text)
{
	const size_t size =
		6 * strlen(text) + sizeof("\"\""); /* all of it escaped */
	cleanup_free char *buf = malloc(size);
	struct json json;

	json_begin(&json, buf, buf ? size : 0);
	json_string(&json, text);
	fputs(json_end(&json) >= 0 ? buf : "\"\"", stdout);
}

void print_json_member(const char *key, const char *value)
{
	printf("\"%s\":", key);
	print_json_string(value);
}
