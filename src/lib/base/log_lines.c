// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "log_lines.h"

#include "util.h"

#include <stdlib.h>
#include <string.h>

struct log_line {
	struct log_line *next;
	int level;
	char text[];
};

/* Without memory, the line is missing. */
static void append_line(int level, const char *message, void *arg)
{
	struct log_lines *lines = arg;
	size_t size = strlen(message) + 1;
	struct log_line *line = malloc(sizeof(*line) + size);

	if (!line)
		return;
	line->next = NULL;
	line->level = level;
	memcpy(line->text, message, size);
	*(lines->first ? lines->end : &lines->first) = line;
	lines->end = &line->next;
}

struct log log_lines_log(struct log_lines *lines)
{
	return (struct log){ .write = append_line, .user = lines };
}

void log_lines_pass_on(struct log_lines *lines, const struct log *log)
{
	for (const struct log_line *line = lines->first; line; line = line->next)
		log_write(log, line->level, "%s", line->text);
	log_lines_done(lines);
}

void log_lines_done(struct log_lines *lines)
{
	for (struct log_line *line = lines->first, *next; line; line = next) {
		next = line->next;
		free(line);
	}
	*lines = (struct log_lines){ 0 };
}
