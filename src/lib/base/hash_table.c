/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "hash_table.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

static struct hash_node **bucket_of(const struct hash_table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->n_buckets - 1)];
}

static void put(struct hash_table *table, struct hash_node *node)
{
	struct hash_node **bucket = bucket_of(table, node->hash);

	node->next = *bucket;
	*bucket = node;
}

/* Double the buckets; without memory, they become longer. */
static void grow(struct hash_table *table)
{
	const uint32_t n = table->n_buckets ? 2 * table->n_buckets :
					      FIRST_BUCKETS;
	struct hash_table more = { .buckets = calloc(n, sizeof(*more.buckets)),
				   .n_buckets = n,
				   .n = table->n };

	if (!more.buckets)
		return;
	for (uint32_t i = 0; i < table->n_buckets; i++)
		for (struct hash_node *node = table->buckets[i], *next; node;
		     node = next) {
			next = node->next;
			put(&more, node);
		}
	free(table->buckets);
	*table = more;
}

void *hash_table_find(const struct hash_table *table, uint64_t hash,
		      hash_same_fn *is_same, const void *key)
{
	struct hash_node *node = table->n ? *bucket_of(table, hash) : NULL;

	while (node && (node->hash != hash || !is_same(node, key)))
		node = node->next;
	return node;
}

void *hash_table_find_again(const struct hash_node *node, hash_same_fn *is_same,
			    const void *key)
{
	struct hash_node *it = node->next;

	while (it && (it->hash != node->hash || !is_same(it, key)))
		it = it->next;
	return it;
}

bool hash_table_add(struct hash_table *table, struct hash_node *node,
		    uint64_t hash)
{
	if (table->n >= table->n_buckets)
		grow(table);
	if (!table->n_buckets)
		return false;
	node->hash = hash;
	put(table, node);
	table->n++;
	return true;
}

void hash_table_remove(struct hash_table *table, struct hash_node *node)
{
	struct hash_node **at = bucket_of(table, node->hash);

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	table->n--;
}

void *hash_table_next(const struct hash_table *table, const void *it)
{
	const struct hash_node *node = it;
	uint32_t i = 0;

	if (node && node->next)
		return node->next;
	if (node)
		i = (uint32_t)(bucket_of(table, node->hash) - table->buckets) + 1;
	while (i < table->n_buckets && !table->buckets[i])
		i++;
	return i < table->n_buckets ? table->buckets[i] : NULL;
}

void hash_table_free(struct hash_table *table)
{
	free(table->buckets);
	*table = (struct hash_table){ 0 };
}
