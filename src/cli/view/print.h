/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Prints JSON and XML. */
#ifndef NETOBS_CLI_VIEW_PRINT_H
#define NETOBS_CLI_VIEW_PRINT_H

#include <stdio.h>

/** Write the printed text; an error is reported, unless the reader has gone. @return 0; < 0: failure */
int text_flush(const char *command);

/**
 * Print the words of @text behind @first, and below each other where @columns are not enough; longer
 * words are cut.
 *
 * @param text  made safe for a terminal, and consumed
 * @return the column behind the last word
 */
int print_words(FILE *file, const char *first, char *text, int columns);

/* Print @text as a string of JSON. */
void print_json_string(const char *text);

/* Print @before, which is "{", "," or "", and "key":"value" of an object of JSON. */
void print_json_member(const char *before, const char *key, const char *value);

/* Print text in XML, such as SVG; @text has no control characters: safe_line(). */
void xml_print(FILE *file, const char *text);

#endif
