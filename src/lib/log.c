/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LOG_LINE_MAX = 512 };

void log_write(const struct log *log, int level, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	va_list args;

	if (!log->write)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log->write(level, line, log->user);
}
