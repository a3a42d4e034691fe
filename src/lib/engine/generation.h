/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which of the two generations the programs write to, and when the other one
 * is at rest.
 *
 * A program counts itself in (entered), reads its CPU's generation, works, and
 * counts itself out (exited). After a flip, user space waits until that store
 * has reached every CPU, notes how many had entered, and waits until as many
 * have exited: none that read the old generation is left. One wait more, and
 * their last stores are visible. Programs run with bottom halves disabled, in
 * well under a microsecond, so this takes a few waits; it blocks no other thread.
 *
 * It takes longer where the host of a virtual machine runs something else on a
 * CPU; then waiting is right. To distinguish that from a count that went wrong,
 * which would end draining silently, a grace period of the kernel is waited for
 * after a second: it takes as long as the slowest program, and proves that all
 * have ended, whatever they counted.
 */
#ifndef NETOBS_ENGINE_GENERATION_H
#define NETOBS_ENGINE_GENERATION_H

#include "store.h"

#include <stdbool.h>

enum { GENERATION_WAIT_MS = 2, GENERATION_DOUBT_MS = 1000 };

struct generation {
	const struct store *store;
	uint32_t current; /* the one being written to */
	enum {
		GENERATION_SETTLED,
		FLIPPED,
		ENTERED_NOTED,
		IN_DOUBT,
		ALL_EXITED
	} phase;
	int64_t doubt_ns; /* ENTERED_NOTED: when the phase becomes IN_DOUBT */
	struct map_grace *grace; /* IN_DOUBT: grace period to wait for; or NULL */
	struct cpu_runs *runs;	 /* per CPU */
};

/*
 * An adopted store keeps its current generation, as after a flip: the other generation may not have
 * been drained. @return 0, or -ENOMEM
 */
int generation_init(struct generation *generation, const struct store *store);
void generation_done(struct generation *generation);

/* Send writers to the other generation. */
void generation_flip(struct generation *generation);

/* Call every GENERATION_WAIT_MS after a flip. @return whether the old generation is at rest */
bool generation_settle(struct generation *generation);

static inline uint32_t generation_old(const struct generation *generation)
{
	return !generation->current;
}

#endif
