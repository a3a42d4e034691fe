/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Series, and the values of groups that belong to them. Values with the same text, such as
 * interfaces of two namespaces, share a series, because no two series may look alike.
 */
#ifndef NETOBS_GROUP_SERIES_TABLE_H
#define NETOBS_GROUP_SERIES_TABLE_H

#include <stdbool.h>

#include <netobs/series.h>

#include "keys.h"
#include "series_sum.h"

struct series_slot {
	struct netobs_series_row row; /* its texts are in @text */
	char *text;
	size_t text_len; /* of all texts, with their NULs */
	uint64_t interval_bytes, score;
	uint32_t age; /* in intervals, up to the limit that counts for the score */
	uint32_t n_values; /* values of the table that belong to it */
};

/* A value of a series. Its histograms of this interval follow it: series_table_value_times(). */
struct series_value {
	struct series_sum sum; /* of this interval */
	uint32_t slot;
	bool has_new_names; /* its text may differ from that of its series */
	_Alignas(uint64_t) uint8_t value[];
};

struct series_table {
	const struct group_keys *keys;
	uint32_t histograms; /* enum netobs_series_histogram, or-ed */
	struct series_slot *slots;
	struct netobs_times *times; /* of all slots: series_table_slot_times() */
	uint64_t *hashes; /* of the texts of each slot; 0: it is free */
	size_t n_slots, most_slots;
	uint8_t *values; /* see series_table_at() */
	size_t n_values, most_values;
	uint32_t *index; /* 1 + a value's number; a power of two of places */
	size_t places;
};

/** @return 0 or -ENOMEM */
int series_table_init(struct series_table *table, const struct group_keys *keys,
		      size_t most, uint32_t histograms);

/** @return the histograms of @slot, for series_times_at() */
struct netobs_times *series_table_slot_times(const struct series_table *table,
					     const struct series_slot *slot);

/** @return the histograms of @value, for series_times_at() */
struct netobs_times *series_table_value_times(const struct series_table *table,
					      struct series_value *value);

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
 * Give the series of @value its text, after its names have changed. If the series has other values,
 * too, it keeps its text, and @value moves to another series; @value also moves if another series
 * already has the text.
 *
 * @return the series that has no value any more, to be closed; NULL: none
 */
struct series_slot *series_table_rename(struct series_table *table,
					struct series_value *value);

/** Begin another interval of @value. */
void series_table_clear_value(const struct series_table *table,
			      struct series_value *value);

/**
 * If there is little room for values, remove those without flows in this interval, but keep one of
 * each series.
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
