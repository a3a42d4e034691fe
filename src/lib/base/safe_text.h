/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Names of processes, interfaces and others may be any bytes. Each place that
 * they go to has one function that makes them safe for it:
 *
 * a cell on a terminal       safe_cell()
 * a line of a log            safe_line()
 * JSON                       json_string(), which escapes control characters
 * a label for Prometheus     safe_label()
 * IPFIX, of a fixed length   safe_utf8_cut()
 * protobuf, pcapng           utf8_repair()
 */
#ifndef NETOBS_BASE_SAFE_TEXT_H
#define NETOBS_BASE_SAFE_TEXT_H

#include <stddef.h>

/* Replace all but printable ASCII, so that a byte of @text is a column, and steers no terminal. */
void safe_cell(char *text);

/*
 * Replace control characters, also those from U+0080 to U+009F, and bytes that are not UTF-8.
 * @text may become shorter.
 */
void safe_line(char *text);

/*
 * @text as a label's value: escaped as Prometheus requires, and a control character as "\x1b",
 * as text of four characters, so that names which differ only there remain different.
 *
 * @param to    has room for SAFE_LABEL_ROOM(@most) bytes
 * @param most  bytes of @text; of a longer one, the beginning and "..."
 * @return bytes in @to, without a NUL
 */
#define SAFE_LABEL_ROOM(most) (5 * ((most) + 4) + 3)
size_t safe_label(char *to, const char *text, size_t most);

/*
 * Write at most @size bytes of UTF-8, without a NUL, and never a part of a character. Each byte of
 * @text that is not UTF-8 becomes "?", which takes no more room than the byte.
 *
 * @param len  of @text, unless a NUL ends it before
 */
void safe_utf8_cut(char *to, size_t size, const char *text, size_t len);

#endif
