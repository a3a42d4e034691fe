/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_table.h"

#include "secret.h"
#include "util.h"

#include <string.h>

enum { BUCKETS_MIN = 256 };

void flow_init(struct flow *flow, const struct flow_key *key)
{
	memset(flow, 0, sizeof(*flow));
	flow->key = *key;
	flow->points = &flow->point;
}

void flow_done(struct flow *flow)
{
	if (flow->points != &flow->point)
		free(flow->points);
}

static uint64_t order_of(uint16_t place, uint32_t ifindex, bool egress)
{
	return (uint64_t)egress << 48 | (uint64_t)place << 32 | ifindex;
}

/* Room for one more; 1, then 4, 8, 16 ... */
static bool grow_points(struct flow *flow)
{
	uint32_t n = flow->n_points;
	bool is_inline = flow->points == &flow->point;
	struct point *points;

	if (n == 0 || (!is_inline && (n < 4 || (n & (n - 1)))))
		return true;
	points = reallocarray(is_inline ? NULL : flow->points,
			      n < 4 ? 4 : n * 2, sizeof(*points));
	if (!points)
		return false;
	if (is_inline)
		memcpy(points, flow->points, n * sizeof(*points));
	flow->points = points;
	return true;
}

struct point *flow_ensure_point(struct flow *flow, uint16_t place,
				uint32_t ifindex, bool egress)
{
	uint64_t order = order_of(place, ifindex, egress);
	uint32_t i = 0;

	for (; i < flow->n_points; i++) {
		struct point *point = &flow->points[i];
		uint64_t other =
			order_of(point->place, point->ifindex, point->egress);

		if (other == order)
			return point;
		if (other > order)
			break;
	}
	if (!grow_points(flow))
		return NULL;
	memmove(&flow->points[i + 1], &flow->points[i],
		(flow->n_points - i) * sizeof(*flow->points));
	flow->n_points++;
	flow->points[i] = (struct point){
		.place = place,
		.ifindex = ifindex,
		.egress = egress,
	};
	return &flow->points[i];
}

static void free_flow(struct flow *flow)
{
	flow_done(flow);
	free(flow);
}

void flow_table_init(struct flow_table *table)
{
	*table = (struct flow_table){ 0 };
	secret_init(&table->secret);
}

void flow_table_done(struct flow_table *table)
{
	for (uint32_t i = 0; i < table->n_buckets; i++) {
		struct flow *next;

		for (struct flow *flow = table->buckets[i]; flow; flow = next) {
			next = flow->next;
			free_flow(flow);
		}
	}
	free(table->buckets);
	*table = (struct flow_table){ 0 };
}

static struct flow **bucket_of(const struct flow_table *table,
			       const struct flow_key *key)
{
	return &table->buckets[hash_key(key, &table->secret) & (table->n_buckets - 1)];
}

static bool resize(struct flow_table *table, uint32_t n_buckets)
{
	struct flow_table resized = *table;

	resized.buckets = calloc(n_buckets, sizeof(*resized.buckets));
	resized.n_buckets = n_buckets;

	if (!resized.buckets)
		return false;
	for (uint32_t i = 0; i < table->n_buckets; i++) {
		struct flow *next;

		for (struct flow *flow = table->buckets[i]; flow; flow = next) {
			struct flow **bucket = bucket_of(&resized, &flow->key);

			next = flow->next;
			flow->next = *bucket;
			*bucket = flow;
		}
	}
	free(table->buckets);
	*table = resized;
	return true;
}

struct flow *flow_table_find(const struct flow_table *table,
			     const struct flow_key *key)
{
	struct flow *flow = table->n_buckets ? *bucket_of(table, key) : NULL;

	while (flow && memcmp(&flow->key, key, sizeof(*key)))
		flow = flow->next;
	return flow;
}

static bool make_room(struct flow_table *table)
{
	if (table->count < table->n_buckets)
		return true;
	if (!table->n_buckets)
		return resize(table, BUCKETS_MIN);
	/* A full table works, only slower: growing may fail or have to wait. */
	if (!table->frozen)
		(void)resize(table, table->n_buckets * 2);
	return true;
}

struct flow *flow_table_ensure(struct flow_table *table,
			       const struct flow_key *key)
{
	struct flow *flow = flow_table_find(table, key), **bucket;

	if (flow)
		return flow;
	if (!make_room(table))
		return NULL;
	flow = malloc(sizeof(*flow));
	if (!flow)
		return NULL;
	flow_init(flow, key);
	flow->in_table = true;
	bucket = bucket_of(table, key);
	flow->next = *bucket;
	*bucket = flow;
	table->count++;
	return flow;
}

bool flow_table_walk(struct flow_table *table, uint32_t *cursor,
		     uint32_t n_buckets,
		     bool (*keep)(void *ctx, struct flow *flow), void *ctx)
{
	uint32_t end = min_u64((uint64_t)*cursor + n_buckets, table->n_buckets);

	for (; *cursor < end; (*cursor)++) {
		struct flow **link = &table->buckets[*cursor];

		while (*link) {
			struct flow *flow = *link;

			if (keep(ctx, flow)) {
				link = &flow->next;
				continue;
			}
			*link = flow->next;
			free_flow(flow);
			table->count--;
		}
	}
	return *cursor < table->n_buckets;
}

void flow_table_shrink(struct flow_table *table)
{
	uint32_t n_buckets = table->n_buckets;

	while (n_buckets > BUCKETS_MIN && table->count < n_buckets / 8)
		n_buckets /= 2;
	if (n_buckets != table->n_buckets)
		resize(table, n_buckets);
}
