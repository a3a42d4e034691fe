// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "connections.h"

#include "base/util.h"
#include "bpf/store/conn_places.h"

#include <stdlib.h>

enum {
	BUCKETS_AT_ONCE = 1 << 14,
	GONE_MAX = 1 << 13,
	AHEAD_MAX = 64, /* units of ages that clocks differ by, and more */
	/* Tag of a place that waits for the next sweep; its connection has another check. */
	TAG_RESERVED = 1,
};

/* As the programs do in connection_search(). */
static bool claim_bucket(struct conn_bucket *bucket)
{
	if (!__atomic_fetch_add(&bucket->busy, 1, __ATOMIC_SEQ_CST))
		return true;
	__atomic_fetch_sub(&bucket->busy, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void leave_bucket(struct conn_bucket *bucket)
{
	__atomic_fetch_sub(&bucket->busy, 1, __ATOMIC_SEQ_CST);
}

static enum conn_class class_of(const struct conn_bucket *bucket, uint32_t way)
{
	return (enum conn_class)(bucket->ages[way] >> CONN_AGE_BITS);
}

/* @after: in units of ages. A clock that was ahead of this one makes an age negative. */
static bool has_gone(const struct conn_bucket *bucket, uint32_t way,
		     uint64_t now, uint32_t after)
{
	const enum conn_class class = class_of(bucket, way);
	const uint32_t since =
		(uint32_t)((now >> CONN_AGE_SHIFT) - bucket->ages[way]) &
		CONN_AGE_MASK;

	return bucket->tags[way] > TAG_RESERVED &&
	       (class == CONN_CLOSED || class == CONN_HALF_OPEN) &&
	       since > after && since < CONN_AGE_MASK - AHEAD_MAX;
}

/* Evict an entry of a claimed bucket, but keep its body until the next sweep. */
static void take_body(struct connections *table, uint32_t place, uint64_t now)
{
	struct conn_bucket *bucket = &table->buckets[place / CONN_WAYS];
	const uint32_t way = place % CONN_WAYS;
	struct conn_head *head = &table->heads[place];
	struct conn_rates *rates = &table->rates[place];

	if (head->version & 1 || !rates->body)
		return;
	table->sweep.gone[table->sweep.n++] = (struct conn_gone){
		.place = place,
		.body = rates->body,
		.class = class_of(bucket, way),
	};
	/* Programs find it neither by hints nor by its key, and no other connection gets its slot. */
	__atomic_store_n(&head->version, head->version + 2, __ATOMIC_SEQ_CST);
	__atomic_store_n(&head->check, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&rates->body, 0, __ATOMIC_SEQ_CST);
	bucket->ages[way] = conn_age(CONN_OPEN, now);
	__atomic_store_n(&bucket->tags[way], TAG_RESERVED, __ATOMIC_SEQ_CST);
}

static void sweep_bucket(struct connections *table, uint32_t number,
			 uint64_t now, uint32_t after)
{
	struct conn_bucket *bucket = &table->buckets[number];
	uint32_t ways = 0;

	for (uint32_t way = 0; way < CONN_WAYS; way++)
		ways |= (uint32_t)has_gone(bucket, way, now, after) << way;
	if (!ways || !claim_bucket(bucket))
		return;
	for (uint32_t way = 0; way < CONN_WAYS; way++)
		if (has_gone(bucket, way, now, after))
			take_body(table, number * CONN_WAYS + way, now);
	leave_bucket(bucket);
}

static void count_swept(struct conn_counters *swept, enum conn_class class)
{
	if (class == CONN_CLOSED)
		swept->evicted_closed++;
	else
		swept->evicted_half_open++;
}

/*
 * Free the slot of an evicted entry, unless another connection has it already, which the programs
 * have counted. False: a program is changing the bucket.
 */
static bool free_place(struct connections *table, const struct conn_gone *gone)
{
	struct conn_bucket *bucket = &table->buckets[gone->place / CONN_WAYS];
	const uint32_t way = gone->place % CONN_WAYS;

	if (!claim_bucket(bucket))
		return false;
	if (bucket->tags[way] == TAG_RESERVED && !table->rates[gone->place].body) {
		__atomic_store_n(&bucket->tags[way], 0, __ATOMIC_SEQ_CST);
		count_swept(&table->sweep.swept, gone->class);
	}
	leave_bucket(bucket);
	return true;
}

/* Offer the bodies of the last sweep; a failure is tried again by the next sweep. */
static void offer_gone(struct connections *table)
{
	struct conn_sweep *sweep = &table->sweep;
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < sweep->n; i++) {
		struct conn_gone gone = sweep->gone[i];

		if (gone.body && !conn_parts_offer(&table->parts, gone.body))
			gone.body = 0;
		if (gone.body || !free_place(table, &gone))
			sweep->gone[n_left++] = gone;
	}
	sweep->n = n_left;
}

static bool is_sweep_wanted(const struct connections *table)
{
	const struct conn_counters counters = connections_count(table);
	const struct conn_parts *parts = &table->parts;

	return parts->n < parts->n_max &&
	       4 * connections_used(&counters) > conn_parts_count(parts);
}

void connections_sweep(struct connections *table, uint64_t now_ns,
		       uint64_t after_ns)
{
	const uint32_t after = (after_ns >> CONN_AGE_SHIFT) + 1;
	const uint32_t n = min_u64(table->n_buckets, BUCKETS_AT_ONCE);
	struct conn_sweep *sweep = &table->sweep;

	offer_gone(table);
	if (!is_sweep_wanted(table))
		return;
	if (!sweep->gone)
		sweep->gone = calloc(GONE_MAX, sizeof(*sweep->gone));
	for (uint32_t i = 0;
	     sweep->gone && i < n && sweep->n + CONN_WAYS <= GONE_MAX; i++) {
		sweep_bucket(table, sweep->bucket, now_ns, after);
		sweep->bucket = (sweep->bucket + 1) % table->n_buckets;
	}
}
