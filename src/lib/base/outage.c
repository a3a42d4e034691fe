// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "outage.h"

#include "clock_ms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a. */
static uint64_t hash_reason(const char *reason)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (; *reason; reason++)
		sum = (sum ^ (unsigned char)*reason) * 0x100000001b3;
	return sum;
}

static bool is_logged(const struct outage *outage, uint64_t reason)
{
	for (unsigned int i = 0; i < outage->n; i++)
		if (outage->logged[i] == reason)
			return true;
	return outage->n == OUTAGE_REASONS;
}

void outage_log(struct outage *outage, const struct log *log, int level,
		const char *reason, const char *format, ...)
{
	uint64_t hash = hash_reason(reason);
	char line[NETOBS_ERROR_MAX];
	va_list args;

	if (is_logged(outage, hash))
		return;
	if (!outage->n)
		outage->began_ms = now_ms();
	outage->logged[outage->n++] = hash;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_write(log, level, "%s", line);
}

void outage_end(struct outage *outage, const struct log *log, int level,
		const char *format, ...)
{
	char line[NETOBS_ERROR_MAX];
	int64_t lasted_ms;
	va_list args;

	if (!outage->n)
		return;
	lasted_ms = now_ms() - outage->began_ms;
	outage->n = 0;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_write(log, level, "%s (outage of %.1f s)", line,
		  (double)lasted_ms / 1000);
}

void outage_note(struct outage *outage, const struct log *log, const char *name,
		 int err)
{
	if (!err)
		outage_end(outage, log, NETOBS_LOG_WARNING,
			   "%s can be written to again", name);
	else if (!outage->n)
		outage_log(outage, log, NETOBS_LOG_WARNING, strerror(-err),
			   "cannot write to %s: %s; trying again", name,
			   strerror(-err));
}
