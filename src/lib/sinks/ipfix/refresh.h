/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * When templates are sent: at the start of a session; over UDP, where they may be lost or
 * forgotten, also at intervals.
 */
#ifndef NETOBS_SINKS_IPFIX_REFRESH_H
#define NETOBS_SINKS_IPFIX_REFRESH_H

#include <stdbool.h>
#include <stdint.h>

struct refresh {
	uint64_t interval_ms;
	bool repeats;
	unsigned int rounds;   /* rounds of this session */
	int64_t due_ms;	       /* the next one */
	unsigned int messages; /* since the last one */
};

void refresh_start(struct refresh *refresh, int64_t now_ms);

bool refresh_is_due(const struct refresh *refresh, int64_t now_ms);

/* Call when all templates were sent. */
void refresh_done(struct refresh *refresh, int64_t now_ms);

#endif
