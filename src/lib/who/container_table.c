// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_table.h"

#include "base/hash.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

void container_table_init(struct container_table *table)
{
	*table = (struct container_table){ 0 };
	secret_fill(table->secret, sizeof(table->secret));
}

static struct named_container **bucket_of(struct container_table *table,
					  const char *id)
{
	return &table->buckets[hash_bytes(id, sizeof(table->secret), table->secret) %
			       CONTAINER_TABLE_BUCKETS];
}

struct named_container *container_table_find(struct container_table *table,
					     const char *id)
{
	struct named_container *one = *bucket_of(table, id);

	while (one && strcmp(one->id, id) != 0)
		one = one->next;
	return one;
}

/* ---- The order of uses -------------------------------------------------------------------- */

static void add_newest(struct container_table *table, struct named_container *one)
{
	one->newer = NULL;
	one->older = table->newest;
	if (table->newest)
		table->newest->newer = one;
	else
		table->oldest = one;
	table->newest = one;
}

static void leave_order(struct container_table *table,
			const struct named_container *one)
{
	if (one->newer)
		one->newer->older = one->older;
	else
		table->newest = one->older;
	if (one->older)
		one->older->newer = one->newer;
	else
		table->oldest = one->newer;
}

void container_table_use(struct container_table *table,
			 struct named_container *one)
{
	leave_order(table, one);
	add_newest(table, one);
}

/* ---- Coming and going --------------------------------------------------------------------- */

static void remove_oldest(struct container_table *table)
{
	struct named_container *gone = table->oldest;
	struct named_container **at = bucket_of(table, gone->id);

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	leave_order(table, gone);
	free(gone);
	table->count--;
}

struct named_container *container_table_add(struct container_table *table,
					    const char *id)
{
	struct named_container **bucket, *one;

	if (table->count == CONTAINER_TABLE_MAX)
		remove_oldest(table);
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	snprintf(one->id, sizeof(one->id), "%s", id);
	bucket = bucket_of(table, id);
	one->next = *bucket;
	*bucket = one;
	add_newest(table, one);
	table->count++;
	return one;
}

void container_table_clear(struct container_table *table)
{
	while (table->count)
		remove_oldest(table);
}
