// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "outage.h"

#include "clock_ms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

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

/* ---- Delays ------------------------------------------------------------------------- */

uint32_t backoff_delay_ms(const struct backoff *backoff, uint32_t failures)
{
	uint64_t first_ms = backoff->first_ms ?: BACKOFF_FIRST_MS;
	uint64_t delay = min_u64(first_ms << min_u64(failures, 16),
				 backoff->most_ms ?: BACKOFF_MOST_MS);
	uint8_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	return (uint32_t)(delay - delay * random / 4 / UINT8_MAX);
}

void backoff_wait(struct backoff *backoff, int64_t from_ms)
{
	backoff->due_ms =
		max_i64(from_ms + backoff_delay_ms(backoff, backoff->failures),
			now_ms());
	backoff->failures++;
}

bool backoff_is_due(const struct backoff *backoff)
{
	return !backoff->due_ms || now_ms() >= backoff->due_ms;
}

int backoff_left_ms(const struct backoff *backoff)
{
	return until_ms(backoff->due_ms);
}

void backoff_reset(struct backoff *backoff)
{
	backoff->failures = 0;
	backoff->due_ms = 0;
}
