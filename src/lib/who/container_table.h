/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Containers by their IDs, and in the order in which they were last used. Where there is no room, the one that
 * was not used for the longest time makes some. No call takes longer with more of them.
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

/** @return NULL: it is not there */
struct named_container *container_table_find(struct container_table *table,
					     const char *id);

/** It is used now. */
void container_table_use(struct container_table *table,
			 struct named_container *one);

/** Add one that is not there, as used now. @return NULL: no memory */
struct named_container *container_table_add(struct container_table *table,
					    const char *id);

#endif
