// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "connections.h"

#include "base/util.h"
#include "bpf/store/conn_places.h"
#include "map.h"

#include <errno.h>
#include <stdlib.h>

enum { READ_TRIES = 4 };

static size_t buckets_size(const struct connections *table)
{
	return table->n_buckets * sizeof(*table->buckets);
}

static size_t heads_size(const struct connections *table)
{
	return connections_size(table) * sizeof(*table->heads);
}

static size_t rates_size(const struct connections *table)
{
	return connections_size(table) * sizeof(*table->rates);
}

static size_t counters_size(const struct connections *table)
{
	return table->n_cpus * sizeof(*table->counters);
}

int connections_open(struct connections *table, const struct program_set *maps,
		     uint32_t n_buckets, uint32_t n_cpus,
		     const struct hash_secret *secret, struct conn_part *first,
		     uint32_t part_bits)
{
	int err = 0;

	*table = (struct connections){ .n_buckets = n_buckets,
				       .n_cpus = n_cpus,
				       .secret = *secret };
	table->buckets =
		program_set_mmap(maps, "conn_buckets", buckets_size(table));
	table->heads = program_set_mmap(maps, "conn_heads", heads_size(table));
	table->rates = program_set_mmap(maps, "conn_rates", rates_size(table));
	table->counters =
		program_set_mmap(maps, "conn_counters", counters_size(table));
	if (!table->buckets || !table->heads || !table->rates || !table->counters)
		err = -errno;
	if (!err)
		err = conn_parts_open(&table->parts, maps, first, part_bits,
				      connections_size(table));
	if (err)
		connections_close(table);
	return err;
}

void connections_close(struct connections *table)
{
	map_munmap(table->buckets, buckets_size(table));
	map_munmap(table->heads, heads_size(table));
	map_munmap(table->rates, rates_size(table));
	conn_parts_close(&table->parts);
	free(table->sweep.gone);
	map_munmap(table->counters, counters_size(table));
	*table = (struct connections){ 0 };
}

bool connections_read(const struct connections *table, uint32_t index,
		      struct conn_copy *ret_copy)
{
	const struct conn_head *head = &table->heads[index];

	for (int i = 0; i < READ_TRIES; i++) {
		uint16_t version =
			__atomic_load_n(&head->version, __ATOMIC_ACQUIRE);
		const struct conn_body *body;

		if (!version || version & 1)
			return false;
		ret_copy->head = *head;
		ret_copy->rates = table->rates[index];
		body = conn_parts_body(&table->parts, ret_copy->rates.body);
		if (!body)
			return false;
		ret_copy->body = *body;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&head->version, __ATOMIC_RELAXED) == version)
			return true;
	}
	return false;
}

int connections_find(const struct connections *table, const struct flow_key *key,
		     struct conn_copy *ret_copy, int *ret_dir)
{
	const struct conn_bucket *bucket;
	struct conn_key wanted;
	int dir = connection_dir(key);
	uint64_t hash;
	uint32_t first;

	if (dir < 0 || !table->n_buckets)
		return -ENOENT;
	wanted = conn_key_of(key, dir);
	hash = conn_hash(&wanted, &table->secret).place;
	first = scale_hash(hash >> 32, table->n_buckets) * CONN_WAYS;
	bucket = &table->buckets[first / CONN_WAYS];
	for (uint32_t i = 0; i < CONN_WAYS; i++) {
		if (bucket->tags[i] != conn_tag(hash) ||
		    !connections_read(table, first + i, ret_copy) ||
		    !is_connection(&ret_copy->body, &wanted))
			continue;
		*ret_dir = dir;
		return (int)(first + i);
	}
	return -ENOENT;
}

int connections_grow(struct connections *table)
{
	const struct conn_counters counters = connections_count(table);

	return conn_parts_grow(&table->parts, connections_used(&counters));
}

struct conn_counters connections_count(const struct connections *table)
{
	struct conn_counters sum = table->sweep.swept;

	for (uint32_t cpu = 0; cpu < table->n_cpus; cpu++)
		counters_add(&sum, &table->counters[cpu], sizeof(sum));
	return sum;
}
