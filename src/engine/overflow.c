// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "overflow.h"

#include "map.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	ROOM_LEAST = 1 << 10,
	ROOM_MIN = 1 << 17, /* 2 MiB in the kernel, if memory is not limited */
	ROOM_MAX = 1 << 21,
	BUCKET_BYTES = 16,
	ENTRY_BYTES = 192, /* with the kernel's own head, as it rounds them */
	BATCH = 256,
	GROWTH = 4, /* times the flows so far: there is one chance per interval */
};

struct overflow_batch {
	struct overflow_key keys[BATCH];
	struct overflow_value values[BATCH];
};

static uint32_t room_for(const struct overflow *overflow, uint64_t flows)
{
	uint32_t room = overflow->min_room;

	while (room < flows && room < overflow->max_room)
		room *= 2;
	return room;
}

static uint32_t affordable(uint64_t max_bytes)
{
	uint64_t entries = max_bytes / GENERATIONS / (BUCKET_BYTES + ENTRY_BYTES);
	uint32_t room = ROOM_LEAST;

	while (room < ROOM_MAX && room * 2 <= entries)
		room *= 2;
	return max_bytes ? room : ROOM_MAX;
}

int overflow_init(struct overflow *overflow, int outer_fd, uint64_t max_flows,
		  uint64_t max_bytes)
{
	uint32_t most = affordable(max_bytes);

	*overflow = (struct overflow){
		.outer_fd = outer_fd,
		.min_room = min_u64(ROOM_MIN, most),
		.max_room = most,
	};
	overflow->max_room = room_for(overflow, max_flows);
	for (uint32_t g = 0; g < GENERATIONS; g++)
		overflow->tables[g] = (struct overflow_table){
			.fd = -1,
			.replaced_fd = -1,
			.room = overflow->min_room,
		};
	for (uint32_t g = 0; g < GENERATIONS; g++) {
		struct overflow_table *table = &overflow->tables[g];
		int err;

		table->fd = map_make_overflow(table->room);
		if (table->fd < 0)
			return table->fd;
		err = map_update(outer_fd, g, table->fd);
		if (err)
			return err;
	}
	return 0;
}

void overflow_done(struct overflow *overflow)
{
	for (uint32_t g = 0; overflow->max_room && g < GENERATIONS; g++) {
		struct overflow_table *table = &overflow->tables[g];

		map_call_abandon(table->replacing);
		close_fd(&table->replaced_fd);
		close_fd(&table->fd);
	}
	free(overflow->batch);
	*overflow = (struct overflow){ 0 };
}

/* -EAGAIN: either table may be the one that the programs have found. */
static int finish_replacing(struct overflow_table *table)
{
	int fd;

	if (!table->replacing)
		return 0;
	fd = map_call_result(&table->replacing);
	if (fd == -EAGAIN)
		return fd;
	table->is_refused = fd < 0;
	if (fd < 0) /* the one that is there does as well, for fewer flows */
		return 0;
	table->replaced_room = table->room;
	table->replaced_fd = table->fd;
	table->fd = fd;
	table->room = table->next_room;
	return 0;
}

/* What is read is at rest, so nothing is added between its reading and its removal. */
static int take_batch(struct overflow *overflow, int fd, uint32_t *ret_n)
{
	struct overflow_batch *batch = overflow->batch;
	uint32_t *position = overflow->position ? &overflow->position : NULL;
	uint32_t next = 0;
	int err;

	*ret_n = BATCH;
	err = bpf_map_lookup_and_delete_batch(fd, position, &next, batch->keys,
					      batch->values, ret_n, NULL);
	overflow->position = next;
	if (!err)
		return 1;
	return err == -ENOENT ? 0 : err;
}

static void report(const struct overflow_batch *batch, uint32_t n,
		   overflow_entry_fn *on_entry, void *ctx)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct overflow_value *value = &batch->values[i];
		const struct flow_entry entry = {
			.key = batch->keys[i].flow,
			.outer_src_port = value->outer_src_port,
			.outer_dst_port = value->outer_dst_port,
			.outer_check = value->outer_check,
			.tally = value->tally,
		};

		on_entry(ctx, &entry);
	}
}

/* On to the table that replaced the one that was read. */
static int end_table(struct overflow *overflow, struct overflow_table *table)
{
	overflow->position = 0;
	if (table->replaced_fd >= 0) {
		close_fd(&table->replaced_fd);
		return 1;
	}
	free(TAKE_PTR(overflow->batch));
	return 0;
}

int overflow_take(struct overflow *overflow, uint32_t generation,
		  overflow_entry_fn *on_entry, void *ctx)
{
	struct overflow_table *table = &overflow->tables[generation];
	int fd, ret = finish_replacing(table);
	uint32_t n = 0;

	if (ret)
		return ret;
	fd = table->replaced_fd >= 0 ? table->replaced_fd : table->fd;
	if (!overflow->batch)
		overflow->batch = malloc(sizeof(*overflow->batch));
	if (!overflow->batch)
		return -ENOMEM;
	ret = take_batch(overflow, fd, &n);
	/* Without memory in the middle, the kernel has removed those before. */
	if (ret >= 0 || ret == -ENOMEM)
		report(overflow->batch, n, on_entry, ctx);
	if (ret < 0) {
		overflow->position = 0;
		return ret;
	}
	return ret ?: end_table(overflow, table);
}

static void replace(struct overflow *overflow, uint32_t generation, uint32_t room)
{
	struct overflow_table *table = &overflow->tables[generation];

	if (finish_replacing(table) || table->replaced_fd >= 0 ||
	    table->is_refused)
		return;
	table->next_room = room;
	map_replace_overflow_async(overflow->outer_fd, generation, room,
				   &table->replacing);
}

void overflow_fit(struct overflow *overflow, uint32_t generation, uint64_t flows)
{
	struct overflow_table *table = &overflow->tables[generation];
	uint32_t room;

	overflow->peak = max_u64(flows, overflow->peak - overflow->peak / 4);
	room = room_for(overflow, overflow->peak);
	if (finish_replacing(table))
		return;
	close_fd(&table->replaced_fd); /* empty, if it was not read before */
	table->is_refused = false;
	if (room > table->room ||
	    (room < table->room && overflow->peak < table->room / 4))
		replace(overflow, generation, room);
}

void overflow_expect(struct overflow *overflow, uint32_t generation,
		     uint64_t flows)
{
	uint32_t now = overflow->tables[generation].room;

	if (flows > now && now < overflow->max_room)
		replace(overflow, generation, room_for(overflow, GROWTH * flows));
}

uint64_t overflow_bytes(const struct overflow *overflow)
{
	uint64_t sum = 0;

	for (uint32_t g = 0; g < GENERATIONS; g++) {
		const struct overflow_table *table = &overflow->tables[g];

		sum += table->room;
		if (table->replaced_fd >= 0)
			sum += table->replaced_room;
	}
	return sum * BUCKET_BYTES;
}
