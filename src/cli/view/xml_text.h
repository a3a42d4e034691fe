/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Text in XML, such as SVG. */
#ifndef NETOBS_CLI_VIEW_XML_TEXT_H
#define NETOBS_CLI_VIEW_XML_TEXT_H

#include <stdio.h>

/* @text has no control characters: safe_line(). */
void xml_print(FILE *file, const char *text);

#endif
