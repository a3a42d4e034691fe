// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "store.h"

#include "bpf/store/log.h"
#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/*
	 * Time until a program's stores are visible on every processor: those of
	 * arm64 may become so in another order, within less than a microsecond.
	 */
	VISIBLE_NS = NSEC_PER_MSEC,
};

int logs_init(struct logs *logs, struct store *store,
	      logs_records_fn *on_records, void *ctx)
{
	*logs = (struct logs){
		.store = store,
		.on_records = on_records,
		.ctx = ctx,
		.heads = calloc(store->n_cpus, sizeof(*logs->heads)),
	};
	if (!logs->heads)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < store->n_cpus; cpu++) {
		uint64_t tail = store->cpus[cpu].log_tail;

		logs->heads[cpu] = (struct log_heads){ tail, tail, tail, tail };
	}
	return 0;
}

void logs_done(struct logs *logs)
{
	free(logs->heads);
	*logs = (struct logs){ 0 };
}

static uint64_t log_head(const struct logs *logs, uint32_t cpu)
{
	return __atomic_load_n(&logs->store->cpus[cpu].log_head,
			       __ATOMIC_ACQUIRE);
}

static void note_heads(struct logs *logs)
{
	if (clock_boot_ns() < logs->noted_ns + VISIBLE_NS)
		return;
	for (uint32_t cpu = 0; cpu < logs->store->n_cpus; cpu++) {
		struct log_heads *heads = &logs->heads[cpu];

		heads->readable = heads->noted;
		heads->noted = log_head(logs, cpu);
	}
	logs->noted_ns = clock_boot_ns();
	logs->is_settling = false;
}

/* At rest, the heads are behind all records of the generation, but some of these may not be visible yet. */
void logs_settle(struct logs *logs, bool has_writers)
{
	for (uint32_t cpu = 0; cpu < logs->store->n_cpus; cpu++) {
		struct log_heads *heads = &logs->heads[cpu];

		heads->left = heads->unread;
		heads->noted = log_head(logs, cpu);
		if (!has_writers)
			heads->readable = heads->noted;
	}
	logs->noted_ns = clock_boot_ns();
	logs->is_settling = has_writers;
}

/* Report records from logs->at on, up to @end or the end of the ring. @return the number of slots taken */
static size_t read_run(const struct logs *logs, const struct log_slot *slots,
		       uint64_t end, bool is_left)
{
	const uint64_t at = logs->at;
	const uint64_t n_slots = logs->store->log_slots, mask = n_slots - 1;
	const struct log_slot *first = &slots[at & mask];
	uint64_t n = min_u64(end - at, n_slots - (at & mask));
	/* The record continues at the start of the ring, or beyond @end. */
	const struct log_slot pair[] = { *first, slots[(at + 1) & mask] };

	return n == 1 && is_log_long(first) ?
		       logs->on_records(logs->ctx, pair, 2, is_left) :
		       logs->on_records(logs->ctx, first, n, is_left);
}

static void set_tail(const struct logs *logs, uint64_t tail)
{
	__atomic_store_n(&logs->store->cpus[logs->cpu].log_tail, tail,
			 __ATOMIC_RELEASE);
}

void logs_release(const struct logs *logs, size_t n)
{
	set_tail(logs, logs->at + n);
}

/* Read from one log. False: not all records were taken. */
static bool read_log(struct logs *logs, uint32_t cpu, uint32_t max_slots)
{
	const struct cpu_state *state = &logs->store->cpus[cpu];
	const struct log_heads *heads = &logs->heads[cpu];
	uint64_t end = min_u64(heads->readable, state->log_tail + max_slots);
	const struct log_slot *slots;
	size_t n = 1;

	if (state->log_tail == end)
		return true;
	slots = store_map_log(logs->store, cpu);
	if (!slots)
		return false;
	logs->cpu = cpu;
	logs->at = state->log_tail;
	while (logs->at < end && n) {
		bool is_left = logs->at < heads->left;

		n = read_run(logs, slots,
			     is_left ? min_u64(end, heads->left) : end, is_left);
		logs->at += n;
	}
	store_unmap_log(logs->store, slots);
	set_tail(logs, logs->at);
	return n;
}

static bool is_filling(const struct logs *logs, uint32_t cpu)
{
	uint64_t unread = log_head(logs, cpu) - logs->store->cpus[cpu].log_tail;

	return unread && unread >= logs->store->log_slots / LOG_WAKE_SHARE;
}

bool logs_are_filling(const struct logs *logs)
{
	for (uint32_t cpu = 0; cpu < logs->store->n_cpus; cpu++)
		if (is_filling(logs, cpu))
			return true;
	return false;
}

bool logs_read(struct logs *logs, uint32_t max_slots)
{
	const struct cpu_state *states = logs->store->cpus;
	uint32_t first = logs->next, n_cpus = logs->store->n_cpus;
	bool is_behind = false;

	note_heads(logs);
	for (uint32_t i = 0; i < n_cpus; i++) {
		uint32_t cpu = (first + i) % n_cpus;
		uint64_t before = states[cpu].log_tail;

		/* A few records are not worth mapping a log. */
		if (!is_filling(logs, cpu))
			continue;
		logs->next = cpu;
		if (!max_slots)
			return true;
		if (read_log(logs, cpu, max_slots))
			is_behind |= is_filling(logs, cpu);
		max_slots -= min_u64(max_slots, states[cpu].log_tail - before);
	}
	return is_behind;
}

/*
 * @return whether a log begins with records of @generation, or with records that an earlier drain
 *         left; -errno: it cannot be mapped
 */
static int log_has_more(struct logs *logs, uint32_t cpu, uint32_t generation)
{
	const struct log_heads *heads = &logs->heads[cpu];
	const struct store *store = logs->store;
	uint64_t tail = store->cpus[cpu].log_tail;
	const struct log_slot *slots;
	uint32_t found;

	if (tail == heads->readable)
		return 0;
	slots = store_map_log(store, cpu);
	if (!slots)
		return -errno;
	found = log_generation(&slots[tail & (store->log_slots - 1)]);
	store_unmap_log(store, slots);
	return found == generation || tail < heads->left;
}

/*
 * @return 1: records were read; 0: there are no more; -errno. Records that are left are followed by
 *         new ones of the next generation.
 */
static int complete_log(struct logs *logs, uint32_t cpu, uint32_t generation,
			uint32_t max_slots)
{
	const struct cpu_state *state = &logs->store->cpus[cpu];
	struct log_heads *heads = &logs->heads[cpu];
	uint64_t before = state->log_tail;
	int more = log_has_more(logs, cpu, generation);

	if (more > 0)
		read_log(logs, cpu, max_slots);
	if (!more || state->log_tail != before)
		return more;
	heads->unread = heads->readable;
	return more < 0 ? more : -ENOMEM;
}

int logs_complete(struct logs *logs, uint32_t generation, uint32_t max_slots)
{
	int ret = 0;

	note_heads(logs);
	if (logs->is_settling)
		return 1;
	for (uint32_t cpu = 0; cpu < logs->store->n_cpus; cpu++) {
		int more = complete_log(logs, cpu, generation, max_slots);

		if (more > 0)
			return 1;
		ret = more ?: ret;
	}
	return ret;
}
