// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "sink.h"

enum { EVERY_MS = 60 * 1000 };

static const char *const reasons[SPOOL_DROPS] = {
	[SPOOL_FULL] = "the spool is full (spool_full)",
	[SPOOL_TOO_OLD] = "they waited too long (too_old)",
	[SPOOL_DAMAGED] = "they are damaged or missing on the disk (damaged)",
	[SPOOL_UNWRITTEN] = "disk or memory refused them (unwritten)",
	[SPOOL_REFUSED] = "the peer refused them (refused)",
	[SPOOL_UNSUPPORTED] =
		"this sink does not take records of their type (unsupported)",
};

static void note_episode(struct drop_episode *episode, const struct log *log,
			 const char *name, const char *reason, uint64_t dropped,
			 bool is_idle, int64_t now_ms)
{
	const unsigned long long more = dropped - episode->logged;
	const unsigned long long all = dropped - episode->before;

	if (!episode->due_ms && !more)
		return;
	if (!episode->due_ms) {
		log_warning(log, "%s: records are dropped: %s; %llu so far",
			    name, reason, all);
	} else if (is_idle || (now_ms >= episode->due_ms && !more)) {
		log_warning(log,
			    "%s: no more records are dropped; %llu were, as %s",
			    name, all, reason);
		*episode = (struct drop_episode){ .before = dropped,
						  .logged = dropped };
		return;
	} else if (now_ms < episode->due_ms) {
		return;
	} else {
		log_warning(log,
			    "%s: %llu more records were dropped in the last minute: %s; %llu so far",
			    name, more, reason, all);
	}
	episode->logged = dropped;
	episode->due_ms = now_ms + EVERY_MS;
}

bool drop_log_note(struct drop_log *drops, const struct log *log,
		   const char *name, const struct spool *spool, int64_t now_ms)
{
	bool is_idle = !spool_pending(spool).seq, does_any_last = false;

	for (int i = 0; i < SPOOL_DROPS; i++) {
		struct drop_episode *episode = &drops->episodes[i];

		note_episode(episode, log, name, reasons[i],
			     spool->dropped[i].seq, is_idle, now_ms);
		does_any_last |= episode->due_ms != 0;
	}
	return does_any_last;
}
