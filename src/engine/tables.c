// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "tables.h"

#include "base/clock.h"
#include "bpf/store/table.h"
#include "map.h"
#include "base/util.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static struct table *level_of(struct tables *tables, uint32_t generation,
			      uint32_t level)
{
	return &tables->levels[generation][level];
}

/* What there is room in: new flows do not go to what is superseded. */
static uint32_t n_buckets_of(const struct tables *tables, uint32_t generation)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < TABLE_LEVELS; i++) {
		const struct table *table = &tables->levels[generation][i];

		if (!table->is_superseded)
			sum += table->n_buckets;
	}
	return sum;
}

static uint32_t index_of(uint32_t generation, uint32_t level)
{
	return generation * TABLE_LEVELS + level;
}

/* Whether the programs find the table. */
static bool is_in_place(const struct tables *tables, uint32_t generation,
			uint32_t level)
{
	uint32_t index = index_of(generation, level), id;

	return !bpf_map_lookup_elem(tables->outer_fd, &index, &id);
}

static void log_size(const struct tables *tables)
{
	log_info(tables->log, "flow tables take %llu KiB",
		 (unsigned long long)tables_bytes(tables) >> 10);
}

/* A level that neither we nor the programs have a table at; or TABLE_LEVELS. */
static uint32_t free_level(const struct tables *tables, uint32_t generation)
{
	uint32_t level = 0;

	while (level < TABLE_LEVELS && (tables->levels[generation][level].fd >= 0 ||
					is_in_place(tables, generation, level)))
		level++;
	return level;
}

static bool is_affordable(const struct tables *tables, uint32_t n_buckets)
{
	return !tables->max_bytes ||
	       tables_bytes(tables) + n_buckets * sizeof(struct flow_bucket) <=
		       tables->max_bytes;
}

/* One more table, @inner_fd, for all flows that are new from now on. */
static int add(struct tables *tables, uint32_t generation, uint32_t n_buckets,
	       int inner_fd,
	       int (*set)(int outer_fd, uint32_t index, int inner_fd))
{
	struct table_state *state = &tables->states[generation];
	uint32_t level = free_level(tables, generation), before = state->level;
	cleanup_fd int fd = inner_fd;
	int err;

	if (fd < 0)
		return fd;
	if (level == TABLE_LEVELS)
		return -ENOSPC;
	__atomic_store_n(&state->n_buckets[level], n_buckets, __ATOMIC_SEQ_CST);
	err = set(tables->outer_fd, index_of(generation, level), fd);
	if (err)
		return err;
	/* Until the one before is in place, its own fallback serves. */
	if (is_in_place(tables, generation, before))
		__atomic_store_n(&state->fallback, before, __ATOMIC_SEQ_CST);
	__atomic_store_n(&state->level, level, __ATOMIC_SEQ_CST);
	*level_of(tables, generation, level) =
		(struct table){ .fd = TAKE_FD(fd), .n_buckets = n_buckets };
	log_size(tables);
	return 0;
}

/* Of a generation at rest, and empty: keep the newest table. */
static void supersede_others(struct tables *tables, uint32_t generation)
{
	for (uint32_t i = 0; i < TABLE_LEVELS; i++) {
		struct table *table = level_of(tables, generation, i);

		table->is_superseded = i != tables->states[generation].level &&
				       table->fd >= 0;
	}
}

static void unmap_table(struct table *table)
{
	if (table->buckets)
		tables_unmap(TAKE_PTR(table->buckets), table->n_buckets);
}

static void close_table(struct table *table)
{
	unmap_table(table);
	close_fd(&table->fd);
	*table = (struct table){ .fd = -1 };
}

/*
 * What is in the way is left for the next time, and so is what has yet to be put
 * in place: it would be removed first.
 */
static void remove_superseded(struct tables *tables, uint32_t generation)
{
	uint32_t keep = tables->states[generation].level;

	for (uint32_t i = 0; i < TABLE_LEVELS; i++) {
		struct table *table = level_of(tables, generation, i);

		if (!table->is_superseded ||
		    !is_in_place(tables, generation, keep) ||
		    !is_in_place(tables, generation, i))
			continue;
		map_update_async(tables->outer_fd, index_of(generation, i), -1);
		close_table(table);
	}
}

/* Near the cap it is not room that helps, but a drain. */
static void set_watermark(struct tables *tables, uint32_t generation,
			  uint64_t watermark)
{
	/* Leave a quarter for what comes until then. */
	uint64_t last = tables->max_flows - tables->max_flows / 4;

	__atomic_store_n(&tables->states[generation].watermark,
			 min_u64(watermark, last), __ATOMIC_SEQ_CST);
}

/* As a generation starts. */
static void reset_watermark(struct tables *tables, uint32_t generation)
{
	uint32_t n_buckets = n_buckets_of(tables, generation);

	set_watermark(tables, generation,
		      tuning_watermark(&tables->tuning, n_buckets));
}

int tables_init(struct tables *tables, int outer_fd, struct table_state *states,
		uint64_t max_flows, uint64_t max_bytes, const struct log *log)
{
	*tables = (struct tables){
		.log = log,
		.outer_fd = outer_fd,
		.states = states,
		.max_flows = max_flows,
		.max_bytes = max_bytes,
	};
	tuning_init(&tables->tuning, max_flows, max_bytes);
	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (uint32_t i = 0; i < TABLE_LEVELS; i++)
			level_of(tables, g, i)->fd = -1;

	for (uint32_t g = 0; g < GENERATIONS; g++) {
		uint32_t n_buckets = tuning_fit(&tables->tuning, 0);
		int err = add(tables, g, n_buckets, map_make_table(n_buckets),
			      map_update);

		if (err) {
			log_error(log, "cannot make a flow table: %s",
				  strerror(-err));
			return err;
		}
		states[g].limit = max_flows;
		reset_watermark(tables, g);
	}
	return 0;
}

void tables_done(struct tables *tables)
{
	if (!tables->states) /* never begun */
		return;
	map_call_abandon(tables->making);
	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (uint32_t i = 0; i < TABLE_LEVELS; i++)
			close_table(level_of(tables, g, i));
	*tables = (struct tables){ 0 };
}

static int begin_making(struct tables *tables, const struct making_goal *goal)
{
	if (free_level(tables, goal->generation) == TABLE_LEVELS ||
	    !is_affordable(tables, goal->n_buckets))
		return -ENOSPC;
	tables->goal = *goal;
	return map_make_table_async(goal->n_buckets, &tables->making);
}

int tables_grow(struct tables *tables, uint32_t generation)
{
	struct making_goal goal = {
		.generation = generation,
		.n_buckets = tuning_grow(&tables->tuning,
					 n_buckets_of(tables, generation)),
		.is_growth = true,
		.inserts = tables->states[generation].inserts,
		.start_ns = clock_boot_ns(),
	};

	return goal.n_buckets ? begin_making(tables, &goal) : -ENOSPC;
}

/* Flows went on coming while the table was made. */
static void announce_next(struct tables *tables)
{
	const struct making_goal *goal = &tables->goal;
	struct table_state *state = &tables->states[goal->generation];
	uint32_t n_buckets = n_buckets_of(tables, goal->generation);
	uint32_t n_next = tuning_grow(&tables->tuning, n_buckets);
	uint64_t took_ns = max_u64(clock_boot_ns() - goal->start_ns, 1);
	uint64_t flows_per_s =
		(state->inserts - goal->inserts) * NSEC_PER_SEC / took_ns;
	uint64_t meanwhile = tuning_meanwhile(n_next, flows_per_s);
	uint64_t more = tuning_next_watermark(goal->n_buckets, meanwhile);

	set_watermark(tables, goal->generation, state->inserts + more);
	__atomic_store_n(&state->announced, 0, __ATOMIC_SEQ_CST);
}

/* A failure leaves what is there, which works as well, or more slowly. */
static void warn_of_failure(const struct tables *tables, uint32_t n_buckets)
{
	log_warning(tables->log,
		    "no memory for a flow table of %u MiB: the old one stays in use",
		    (uint32_t)(n_buckets * sizeof(struct flow_bucket) >> 20));
}

static void finish_fit(struct tables *tables, uint32_t generation)
{
	supersede_others(tables, generation);
	reset_watermark(tables, generation);
}

void tables_fit(struct tables *tables, uint32_t generation)
{
	struct making_goal goal = { .generation = generation };
	uint32_t now;

	supersede_others(tables, generation);
	remove_superseded(tables, generation);
	now = n_buckets_of(tables, generation);
	goal.n_buckets = tuning_fit(&tables->tuning, now);
	if (goal.n_buckets == now || begin_making(tables, &goal))
		finish_fit(tables, generation);
}

int tables_step(struct tables *tables)
{
	const struct making_goal *goal = &tables->goal;
	int fd, err;

	if (!tables->making)
		return 0;
	fd = map_call_result(&tables->making);
	if (fd == -EAGAIN)
		return fd;
	err = add(tables, goal->generation, goal->n_buckets, fd,
		  map_update_async);
	if (goal->is_growth && !err)
		announce_next(tables);
	if (!goal->is_growth && err == -ENOMEM)
		warn_of_failure(tables, goal->n_buckets);
	if (!goal->is_growth)
		finish_fit(tables, goal->generation);
	return err;
}

int tables_finish(struct tables *tables)
{
	const struct timespec wait = { .tv_nsec = NSEC_PER_MSEC };
	int err;

	while ((err = tables_step(tables)) == -EAGAIN)
		nanosleep(&wait, NULL);
	return err;
}

/* Where an entry may be; false: the table cannot be mapped. */
static bool find_buckets(struct tables *tables, uint32_t generation,
			 uint64_t hash, struct flow_bucket *ret_buckets[2])
{
	struct table *table =
		level_of(tables, generation, tables->states[generation].level);

	if (!table->buckets)
		table->buckets = tables_map(table, 0, table->n_buckets);
	if (!table->buckets)
		return false;
	ret_buckets[0] = &table->buckets[scale(hash >> 32, table->n_buckets)];
	ret_buckets[1] = &table->buckets[scale(hash, table->n_buckets)];
	return true;
}

void tables_prefetch(struct tables *tables, uint32_t generation, uint64_t hash)
{
	struct flow_bucket *buckets[2];
	struct flow_entry *entry;

	if (!find_buckets(tables, generation, hash, buckets))
		return;
	entry = &buckets[0]->entries[home_of(tag_of(hash))];
	__builtin_prefetch(buckets[0]->tags);
	__builtin_prefetch(buckets[1]->tags);
	__builtin_prefetch(&entry->key);
	__builtin_prefetch(&entry->tally);
}

static void note_insert(struct tables *tables, uint32_t generation)
{
	struct table_state *state = &tables->states[generation];

	tables->inserts[generation]++;
	if (__atomic_add_fetch(&state->inserts, 1, __ATOMIC_RELAXED) >=
	    state->watermark)
		__atomic_store_n(&state->announced, 1, __ATOMIC_RELAXED);
}

bool tables_add(struct tables *tables, uint32_t generation,
		const struct flow_entry *entry, uint64_t hash)
{
	const struct table_state *state = &tables->states[generation];
	struct flow_bucket *buckets[2];
	struct flow_entry *shared;
	uint32_t tag = tag_of(hash);

	if (!find_buckets(tables, generation, hash, buckets))
		return false;
	shared = bucket_find(buckets[0], &entry->key, tag) ?:
			 bucket_find(buckets[1], &entry->key, tag);
	if (!shared) {
		if (READ_ONCE(state->inserts) >= state->limit)
			return false;
		shared = bucket_insert(
			buckets[prefer_second(buckets[0], buckets[1])], entry,
			tag);
		if (!shared)
			return false;
		note_insert(tables, generation);
	}
	shared_add(&shared->tally, &entry->tally);
	return true;
}

void tables_rest(struct tables *tables, uint32_t generation)
{
	for (uint32_t i = 0; i < TABLE_LEVELS; i++)
		unmap_table(level_of(tables, generation, i));
}

uint64_t tables_bytes(const struct tables *tables)
{
	uint64_t n_buckets = 0;

	for (uint32_t g = 0; g < GENERATIONS; g++)
		for (uint32_t i = 0; i < TABLE_LEVELS; i++)
			n_buckets += tables->levels[g][i].n_buckets;
	return n_buckets * sizeof(struct flow_bucket);
}

struct flow_bucket *tables_map(const struct table *table, uint32_t first,
			       uint32_t n)
{
	return map_mmap(table->fd, (uint64_t)first * sizeof(struct flow_bucket),
			n * sizeof(struct flow_bucket));
}

void tables_unmap(struct flow_bucket *buckets, uint32_t n)
{
	map_munmap(buckets, n * sizeof(struct flow_bucket));
}
