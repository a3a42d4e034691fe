/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Series, and the values of groups that they stand for. Values may have the same text, such as
 * interfaces of two namespaces: they share a series, because no two series may look the same.
 */
#ifndef NETOBS_GROUP_SERIES_TABLE_H
#define NETOBS_GROUP_SERIES_TABLE_H

#include <stdbool.h>

#include <netobs/series.h>

#include "keys.h"

struct series_slot {
	struct netobs_series_row row; /* its texts are in @text */
	char *text;
	size_t text_len; /* of all texts, with their NULs */
	uint64_t interval_bytes, score;
	uint32_t age;	   /* intervals, as far as they matter for the score */
	uint32_t n_values; /* of the table */
};

/* A value that counts. */
struct series_value {
	struct netobs_group_sum sum; /* of this interval */
	uint32_t slot;
	_Alignas(uint64_t) uint8_t value[];
};

struct series_table {
	const struct group_keys *keys;
	struct series_slot *slots;
	uint64_t *hashes; /* of the texts of each slot; 0: it is free */
	size_t n_slots, most_slots;
	uint8_t *values; /* see series_table_at() */
	size_t n_values, most_values;
	uint32_t *index; /* 1 + a value's number; a power of two of places */
	size_t places;
};

/** @return 0 or -ENOMEM */
int series_table_init(struct series_table *table, const struct group_keys *keys,
		      size_t most);

struct series_value *series_table_at(const struct series_table *table, size_t i);

/** @return the value with these bytes; NULL: it has no series */
struct series_value *series_table_find(const struct series_table *table,
				       uint64_t hash, const uint8_t *value);

/**
 * Open a series for a value, or add the value to the series that has its text.
 *
 * @return NULL: there is no room, or no memory
 */
struct series_value *series_table_open(struct series_table *table,
				       uint64_t hash, const uint8_t *value);

/** @return the series that has the text of this value, or NULL */
struct series_slot *series_table_find_text(const struct series_table *table,
					   const uint8_t *value);

/**
 * If there is little room for values, remove those without flows in this interval, but one of each
 * series.
 *
 * @param secret  of hash_bytes()
 */
void series_table_drop_idle(struct series_table *table, const uint32_t *secret);

static inline bool series_table_is_full(const struct series_table *table)
{
	return table->n_slots == table->most_slots ||
	       table->n_values == table->most_values;
}

static inline bool series_table_has(const struct series_table *table, size_t slot)
{
	return table->hashes[slot];
}

/** Remove a series; series_table_settle() follows, before another one is opened. */
void series_table_close(struct series_table *table, struct series_slot *slot);

/**
 * Remove the values of series that were closed.
 *
 * @param secret  of hash_bytes()
 */
void series_table_settle(struct series_table *table, const uint32_t *secret);

void series_table_free(struct series_table *table);

#endif
