// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "map.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

enum {
	/* Per table, 2 MiB when it is empty: almost 2 million flows. */
	ROOM_USUAL = 1 << 17,
	CPUS_USUAL = 8, /* CPUs that ROOM_USUAL is for; more CPUs have more room */
	ROOM_MAX = 1 << 20,
	ROOM_LEAST = 1 << 13, /* the limit by max_flows is not less */
	ROOM_MIN = 1 << 6,    /* the limit by max_bytes is not less */
	FLOWS_SPARSE = 8, /* flows assumed per page, as not all pages fill up */
	BUCKET_BYTES = 16,
	PAGE_BYTES = 2048,
	/*
	 * The first three levels of all CPUs together are twice the room: hardly ever do all CPUs
	 * overflow alike. The fourth is for a CPU that has nearly all flows.
	 */
	PARTS_SHARED = 32,
	BATCH = 64,
};

struct overflow_batch {
	struct overflow_key keys[BATCH];
	struct overflow_page pages[BATCH];
};

static uint32_t count_cpus(void)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);

	return online > 0 ? online : 1;
}

uint32_t overflow_choose_room(uint64_t max_flows, uint64_t max_bytes)
{
	const uint64_t each = (uint64_t)GENERATIONS * (BUCKET_BYTES + PAGE_BYTES);
	uint64_t most = min_u64(ROOM_MAX, max_u64(1, count_cpus() / CPUS_USUAL) *
						  ROOM_USUAL);
	uint32_t room = ROOM_MIN;

	most = min_u64(most, max_u64(max_flows / FLOWS_SPARSE, ROOM_LEAST));
	if (max_bytes)
		most = min_u64(most, max_bytes / each);
	while (room * 2ULL <= most)
		room *= 2;
	return room;
}

int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes)
{
	*overflow = (struct overflow){
		.room = overflow_choose_room(max_flows, max_bytes),
		.fds = { -1, -1 },
	};
	overflow->part = max_u64(
		overflow->room / max_u64(count_cpus() / 2, 1) / PARTS_SHARED, 1);
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		int err, fd = map_make_overflow(overflow->room);

		if (fd < 0)
			return fd;
		overflow->fds[g] = fd;
		err = map_update(outer_fd, g, fd);
		if (err)
			return err;
	}
	return 0;
}

/* Names of the pins, by generation. */
static const char *const pin_names[GENERATIONS] = { "overflow_0", "overflow_1" };

int overflow_adopt(struct overflow *overflow, const struct pinned *pinned)
{
	*overflow = (struct overflow){
		.room = pinned->state->overflow_room,
		.part = pinned->state->overflow_part,
		.fds = { -1, -1 },
	};
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		overflow->fds[g] = pinned_get_map(pinned, pin_names[g]);
		if (overflow->fds[g] < 0)
			return overflow->fds[g];
	}
	return 0;
}

int overflow_pin(const struct overflow *overflow, const struct pinned *pinned)
{
	return pinned_put_map(pinned, pin_names[0], overflow->fds[0]) ?:
		       pinned_put_map(pinned, pin_names[1], overflow->fds[1]);
}

void overflow_done(struct overflow *overflow)
{
	for (uint32_t g = 0; overflow->room && g < GENERATIONS; g++)
		close_fd(&overflow->fds[g]);
	free(overflow->batch);
	*overflow = (struct overflow){ 0 };
}

/* The generation is at rest, so nothing is added between reading and removing a batch. */
static int take_batch(struct overflow *overflow, int fd, uint32_t *ret_n)
{
	struct overflow_batch *batch = overflow->batch;
	uint32_t *position = overflow->position ? &overflow->position : NULL;
	uint32_t next = 0;
	int err;

	*ret_n = BATCH;
	err = bpf_map_lookup_and_delete_batch(fd, position, &next, batch->keys,
					      batch->pages, ret_n, NULL);
	overflow->position = next;
	if (!err)
		return 1;
	return err == -ENOENT ? 0 : err;
}

static void report_batch(const struct overflow_batch *batch, uint32_t n,
			 overflow_entry_fn *on_entry, void *ctx)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < batch->pages[i].n; k++)
			on_entry(ctx, &batch->pages[i].entries[k]);
}

int overflow_take(struct overflow *overflow, uint32_t generation,
		  overflow_entry_fn *on_entry, void *ctx)
{
	uint32_t n = 0;
	int ret;

	if (!overflow->batch)
		overflow->batch = calloc(1, sizeof(*overflow->batch));
	if (!overflow->batch)
		return -ENOMEM;
	ret = take_batch(overflow, overflow->fds[generation], &n);
	/* If the kernel runs out of memory midway, it has removed the entries read so far. */
	if (ret >= 0 || ret == -ENOMEM)
		report_batch(overflow->batch, n, on_entry, ctx);
	if (!ret)
		free(TAKE_PTR(overflow->batch));
	if (ret <= 0)
		overflow->position = 0;
	return ret;
}

uint64_t overflow_bytes(const struct overflow *overflow)
{
	return (uint64_t)GENERATIONS * overflow->room * BUCKET_BYTES;
}

/* ---- Outcomes ------------------------------------------------------------------------ */

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
