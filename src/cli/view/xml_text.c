/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "text_table.h"

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
