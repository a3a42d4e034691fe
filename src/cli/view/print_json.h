/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_CLI_VIEW_PRINT_JSON_H
#define NETOBS_CLI_VIEW_PRINT_JSON_H

/* Print @text as a string of JSON, to stdout. */
void print_json_string(const char *text);

/* Print "key":"value" of an object of JSON, to stdout. */
void print_json_member(const char *key, const char *value);

#endif
