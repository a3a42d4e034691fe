/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which keys of a long list may occur more than once, in two bits per slot:
 * never wrong about a key that does, sometimes about one that does not.
 */
#ifndef NETOBS_FLOWS_REPEATS_H
#define NETOBS_FLOWS_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

struct repeats {
	uint64_t *words; /* NULL without memory */
	uint64_t mask;	 /* slots - 1 */
};

/* Room for about @n keys. Without memory, every key may repeat. */
void repeats_init(struct repeats *repeats, uint64_t n);
void repeats_done(struct repeats *repeats);

/* Fetch the slots of a key into the cache; for several keys, before the calls below. */
void repeats_prefetch(const struct repeats *repeats, uint64_t hash);

void repeats_note(struct repeats *repeats, uint64_t hash);
bool repeats_may(const struct repeats *repeats, uint64_t hash);

#endif
