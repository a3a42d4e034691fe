// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "map.h"

#include <errno.h>
#include <string.h>

enum { CPU_BYTES = OUTCOME_SLOTS * sizeof(struct outcome_slot) };

static bool is_empty(const struct outcome_slot *slot)
{
	static const struct count zeroes[OUTCOME_COUNTS];

	return !memcmp(slot->counts, zeroes, sizeof(zeroes));
}

/*
 * For an empty slot of an interface that is gone: programs that have found the slot may still count
 * in it, in the other generation. So it is marked as leaving first, and is free once that
 * generation was taken.
 */
static uint64_t next_origin(uint64_t origin, uint32_t generation)
{
	if (origin & OUTCOME_LEAVING << !generation)
		return 0;
	return origin | OUTCOME_LEAVING << generation;
}

/* Programs write to the other generation meanwhile, and take slots that are free. */
static void take_outcome_slot(struct outcome_slot *slot, uint32_t generation,
			      outcomes_fn *take, void *ctx)
{
	struct count(*counts)[OUTCOMES_COUNTED] =
		(void *)&slot->counts[outcome_index(generation, 0, 0)];
	const uint64_t origin = __atomic_load_n(&slot->origin, __ATOMIC_RELAXED);
	bool is_there = take(ctx, (uint16_t)(origin >> 32), (uint32_t)origin,
			     (void *)counts);

	memset(counts, 0, 2 * sizeof(*counts));
	if (origin && (!is_there || origin >= OUTCOME_LEAVING) && is_empty(slot))
		__atomic_store_n(&slot->origin, next_origin(origin, generation),
				 __ATOMIC_RELEASE);
}

int outcomes_take(const struct store *store, uint32_t generation,
		  outcomes_fn *take, void *ctx)
{
	int fd = program_set_map_fd(&store->maps, "outcome_slots");

	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++) {
		struct outcome_slot *slots =
			map_mmap(fd, (uint64_t)cpu * CPU_BYTES, CPU_BYTES);

		if (!slots)
			return -errno;
		for (uint32_t i = 0; i < OUTCOME_SLOTS; i++)
			if (slots[i].origin || i == OUTCOME_PLACES)
				take_outcome_slot(&slots[i], generation, take,
						  ctx);
		map_munmap(slots, CPU_BYTES);
	}
	return 0;
}
