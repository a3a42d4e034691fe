// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "log.h"

#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_line(const struct log *log, const char *line)
{
	snprintf(log->error->text, sizeof(log->error->text), "%s", line);
	log->error->is_new = true;
}

void log_write(const struct log *log, int level, const char *format, ...)
{
	const bool is_kept = log->error && level <= NETOBS_LOG_ERROR;
	char line[NETOBS_ERROR_MAX];
	va_list args;

	if (!log->write && !is_kept)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	safe_line(line); /* one line, whatever names in it contain */
	if (is_kept)
		keep_line(log, line);
	if (log->write)
		log->write(level, line, log->user);
}

void log_expect_error(const struct log *log)
{
	log->error->is_new = false;
}

int log_keep_error(const struct log *log, const char *doing, int ret)
{
	char line[NETOBS_ERROR_MAX];

	if (ret >= 0 || ret == -ECANCELED || ret == -EINTR || log->error->is_new)
		return ret;
	snprintf(line, sizeof(line), "%s: %s", doing, strerror(-ret));
	keep_line(log, line);
	return ret;
}

void log_copy_error(const struct log *log, char (*to)[NETOBS_ERROR_MAX])
{
	if (to)
		memcpy(*to, log->error->text, sizeof(*to));
}

/* ---- Lines of a thread ------------------------------------------------------------- */

struct log_line {
	struct log_line *next;
	int level;
	char text[];
};

/* Append a line; without memory, it is missing. */
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
