// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "connections.h"

#include "base/util.h"
#include "bpf/store/conn_places.h"
#include "map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
	BITS_USUAL = 10, /* 0.9 MiB, with rules 1.3 */
	PARTS_MAX_BITS = 12,
	RESERVE_PART = 4, /* keep 1/4 of the bodies in use free, at least */
	NOTICE_BODIES = 256,
	FIRST_MS = 2000, /* the programs see the first part much sooner */
};

/* ---- Parts -------------------------------------------------------------------------- */

uint32_t conn_parts_bits(uint32_t places, bool at_once)
{
	uint32_t bits = 0, least = BITS_USUAL;

	while (1U << bits < places)
		bits++;
	if (bits > PARTS_MAX_BITS)
		least = max_u64(least, bits - PARTS_MAX_BITS);
	return at_once ? bits : min_u64(bits, least);
}

int conn_part_make(uint32_t bits, bool has_states, struct conn_part *ret_part)
{
	struct conn_part part = CONN_PART_NONE;

	part.bodies = map_make_array("conn_bodies", sizeof(struct conn_body),
				     1U << bits, BPF_F_MMAPABLE);
	if (part.bodies < 0)
		return part.bodies;
	if (has_states)
		part.states = map_make_array("alert_states",
					     sizeof(struct alert_state),
					     1U << bits, 0);
	if (has_states && part.states < 0) {
		int err = part.states;

		close_fd(&part.bodies);
		return err;
	}
	*ret_part = part;
	return 0;
}

void conn_part_close(struct conn_part *part)
{
	close_fd(&part->bodies);
	close_fd(&part->states);
}

static size_t part_size(const struct conn_parts *parts)
{
	return sizeof(struct conn_body) << parts->bits;
}

int conn_parts_offer(struct conn_parts *parts, uint32_t body)
{
	const bool gives_notice = !((parts->n_offered + 1) % NOTICE_BODIES);
	const uint32_t value = body | (gives_notice ? CONN_BODY_NOTICE : 0);
	const int err =
		bpf_map_update_elem(parts->free_fd, NULL, &value, BPF_ANY);

	parts->n_offered += !err;
	return err;
}

/* ---- Growth ------------------------------------------------------------------------- */

/* Have the programs see a map of the next part. If the thread failed, a later call starts it again. */
static int show_map(struct conn_parts *parts, int outer_fd, int inner_fd)
{
	int err;

	if (map_has(outer_fd, parts->n)) {
		if (parts->showing_in == outer_fd)
			map_grace_abandon(TAKE_PTR(parts->showing));
		return 0;
	}
	if (parts->showing)
		return map_grace_result(&parts->showing) ?: -EAGAIN;
	parts->showing_in = outer_fd;
	err = map_update_begin(outer_fd, parts->n, inner_fd, &parts->showing);
	/* If no thread can be started, wait here. */
	return err ? map_update(outer_fd, parts->n, inner_fd) : -EAGAIN;
}

static int show_next(struct conn_parts *parts)
{
	int err = parts->states_fd < 0 ?
			  0 :
			  show_map(parts, parts->states_fd, parts->next.states);

	return err ?: show_map(parts, parts->bodies_fd, parts->next.bodies);
}

/* The programs see the next part: map it, and add it to the parts. */
static int take_next(struct conn_parts *parts)
{
	const struct conn_body *bodies =
		map_mmap(parts->next.bodies, 0, part_size(parts));

	if (!bodies)
		return -errno;
	conn_part_close(&parts->next);
	parts->bodies[parts->n++] = bodies;
	return 0;
}

static int add_part(struct conn_parts *parts)
{
	int err = parts->next.bodies >= 0 ?
			  0 :
			  conn_part_make(parts->bits, parts->states_fd >= 0,
					 &parts->next);

	err = err ?: show_next(parts);
	return err ?: take_next(parts);
}

static int offer_new(struct conn_parts *parts)
{
	int err = 0;

	while (!err && parts->n_new < conn_parts_count(parts)) {
		err = conn_parts_offer(parts, parts->n_new + 1);
		parts->n_new += !err;
	}
	return err;
}

/* The reserve is half a part at least, for new connections until the next call. */
static bool is_wanted(const struct conn_parts *parts, uint64_t used)
{
	const uint64_t reserve =
		max_u64((1ULL << parts->bits) / 2, used / RESERVE_PART);

	return parts->n < parts->n_max &&
	       used + reserve > conn_parts_count(parts);
}

int conn_parts_grow(struct conn_parts *parts, uint64_t used)
{
	int err = is_wanted(parts, used) ? add_part(parts) : 0;

	err = err ?: offer_new(parts);
	return err ?: is_wanted(parts, used) ? -EAGAIN : 0;
}

/* ---- All of them -------------------------------------------------------------------- */

int conn_parts_open(struct conn_parts *parts, const struct program_set *maps,
		    struct conn_part *first, uint32_t bits, uint32_t places)
{
	const struct timespec step = { .tv_nsec = NSEC_PER_MSEC };
	const bool has_states = first->states >= 0;
	int err = -ENOMEM;

	*parts = (struct conn_parts){
		.bits = bits,
		.n_max = places >> bits,
		.bodies_fd = program_set_map_fd(maps, "conn_bodies"),
		.states_fd = has_states ?
				     program_set_map_fd(maps, "alert_states") :
				     -1,
		.free_fd = program_set_map_fd(maps, "conn_free"),
		.next = *first,
	};
	*first = CONN_PART_NONE;
	parts->bodies = calloc(parts->n_max, sizeof(*parts->bodies));
	if (parts->bodies)
		err = conn_parts_grow(parts, 0);
	for (int i = 0; err == -EAGAIN && i < FIRST_MS; i++) {
		nanosleep(&step, NULL);
		err = conn_parts_grow(parts, 0);
	}
	if (err)
		conn_parts_close(parts);
	return err;
}

void conn_parts_close(struct conn_parts *parts)
{
	for (uint32_t i = 0; i < parts->n; i++)
		map_munmap(parts->bodies[i], part_size(parts));
	if (parts->n_max)
		conn_part_close(&parts->next);
	map_grace_abandon(parts->showing);
	free(parts->bodies);
	*parts = (struct conn_parts){ 0 };
}

static uint64_t bytes_of(const struct conn_parts *parts, uint32_t n)
{
	const uint64_t each =
		sizeof(struct conn_body) +
		(parts->states_fd >= 0 ? sizeof(struct alert_state) : 0);

	return ((uint64_t)n << parts->bits) * each;
}

uint64_t conn_parts_bytes(const struct conn_parts *parts)
{
	return bytes_of(parts, parts->n);
}

uint64_t conn_parts_bytes_most(const struct conn_parts *parts)
{
	return bytes_of(parts, parts->n_max);
}

/* ---- Sweeps -------------------------------------------------------------------------- */

enum {
	BUCKETS_AT_ONCE = 1 << 14,
	GONE_MAX = 1 << 13,
	AHEAD_MAX = 64, /* units of ages that clocks differ by, and more */
	/* Tag of a place that waits for the next sweep; its connection has another check. */
	TAG_RESERVED = 1,
};

/* Like connection_search() of the programs. */
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
