/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A hash table of structs, each of which begins with a struct hash_node. The caller owns them. */
#ifndef NETOBS_BASE_HASH_TABLE_H
#define NETOBS_BASE_HASH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct hash_node {
	struct hash_node *next; /* in the bucket */
	uint64_t hash;
};

/* Zeroes: empty. */
struct hash_table {
	struct hash_node **buckets;
	uint32_t n_buckets; /* a power of two */
	uint32_t n;
};

/** @return whether the struct of @node has @key */
typedef bool hash_same_fn(const struct hash_node *node, const void *key);

/** @return a struct with @key; NULL: there is none */
void *hash_table_find(const struct hash_table *table, uint64_t hash,
		      hash_same_fn *is_same, const void *key);

/** @return another struct with that key, after @node; NULL: there are no more */
void *hash_table_find_again(const struct hash_node *node, hash_same_fn *is_same,
			    const void *key);

/** @return false: no memory */
bool hash_table_add(struct hash_table *table, struct hash_node *node,
		    uint64_t hash);

void hash_table_remove(struct hash_table *table, struct hash_node *node);

/** @return the struct after @it, or, after NULL, the first; NULL: there are no more */
void *hash_table_next(const struct hash_table *table, const void *it);

/** Free the table, and not what is in it. */
void hash_table_free(struct hash_table *table);

#endif
