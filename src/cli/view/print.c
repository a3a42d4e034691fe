/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/util.h"

int text_flush(const char *command)
{
	const int err = fflush(stdout) || ferror(stdout) ? -errno : 0;

	if (!err || err == -EPIPE)
		return err;
	fprintf(stderr, "netobsctl %s: cannot write to standard output: %s\n",
		command, strerror(-err));
	clearerr(stdout); /* main() need not report it again */
	return err;
}

int print_words(FILE *file, const char *first, char *text, int columns)
{
	const int indent = (int)strlen(first);
	int column = 0, spaces = 0;
	char *word;

	safe_cell(text);
	for (; (word = strsep(&text, " ")); spaces++) {
		const int len =
			(int)min_u64(strlen(word), (uint64_t)(columns - indent));

		if (!len)
			continue;
		if (!column)
			column = fprintf(file, "%s%*s", first, spaces, "");
		else if (column + spaces + len <= columns)
			column += fprintf(file, "%*s", spaces, "");
		else
			column = fprintf(file, "\n%*s", indent, "") - 1;
		column += fprintf(file, "%.*s", len, word);
		spaces = 0;
	}
	return column;
}

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

void print_json_member(const char *before, const char *key, const char *value)
{
	printf("%s\"%s\":", before, key);
	print_json_string(value);
}

void xml_print(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", file);
		else if (*text == '>')
			fputs("&gt;", file);
		else if (*text == '&')
			fputs("&amp;", file);
		else if (*text == '"')
			fputs("&quot;", file);
		else
			fputc(*text, file);
	}
}
