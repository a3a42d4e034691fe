/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Containers by their IDs, ordered by their last use. If the table is full, the least recently used
 * one is evicted. The time of a call does not depend on their number.
 */
#ifndef NETOBS_WHO_CONTAINER_TABLE_H
#define NETOBS_WHO_CONTAINER_TABLE_H

#include "container_places.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CONTAINER_TABLE_MAX = 4096,
	CONTAINER_TABLE_BUCKETS = 1024,
};

struct named_container {
	struct named_container *next;	       /* of the bucket */
	struct named_container *newer, *older; /* by their last use */
	char id[CONTAINER_ID_SIZE];
	bool is_found;
	bool is_wanted; /* asked for since it was last read */
	uint32_t retries;
	int64_t due_ns; /* when it may be read again */
	struct container_facts facts;
};

struct container_table {
	uint32_t count;
	struct named_container *newest, *oldest;
	struct named_container *buckets[CONTAINER_TABLE_BUCKETS];
	uint32_t secret[16]; /* of the hash */
};

void container_table_init(struct container_table *table);
void container_table_clear(struct container_table *table);

/** @return NULL: the container is not in the table */
struct named_container *container_table_find(struct container_table *table,
					     const char *id);

/** Make the container the most recently used one. */
void container_table_use(struct container_table *table,
			 struct named_container *one);

/** Add a container that is not in the table. @return NULL: no memory */
struct named_container *container_table_add(struct container_table *table,
					    const char *id);

#endif
