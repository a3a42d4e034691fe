/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_table.h"

#include "base/hash.h"

#include <stddef.h>
#include <string.h>

enum {
	BUCKETS_MIN = 256,
	SPLITS = 2, /* buckets per new flow, while there are too few */
	BRIEF_BYTES = offsetof(struct flow, entered),
};

void flow_init(struct flow *flow, const struct flow_key *key)
{
	memset(flow, 0, sizeof(*flow));
	flow->key = *key;
	flow->points = &flow->point;
}

/* @return the entered volume of a brief flow, whose volumes are those of its point */
static struct volume brief_entered(const struct flow *flow)
{
	if (flow->point.sights == 1 << SIGHT_FIRST)
		return flow->point.seen;
	return (struct volume){ 0 };
}

static bool are_same(const struct volume *a, const struct volume *b)
{
	return a->packets == b->packets && a->bytes == b->bytes &&
	       a->l2_bytes == b->l2_bytes;
}

bool flow_can_be_brief(const struct flow *flow)
{
	struct volume entered = brief_entered(flow);

	return !flow->is_brief && !flow->fresh && !flow->is_stray &&
	       flow->n_points == 1 && flow->points == &flow->point &&
	       !flow->tunnel.type &&
	       are_same(&flow->exported, &flow->point.seen) &&
	       are_same(&flow->entered, &entered);
}

void flow_expand(struct flow *flow, const struct flow *brief)
{
	flow_init(flow, &brief->key);
	flow->first_ns = brief->first_ns;
	flow->last_ns = brief->last_ns;
	flow->point = brief->point;
	memcpy(flow->macs, brief->macs, sizeof(flow->macs));
	flow->has_mac = brief->has_mac;
	flow->is_random = brief->is_random;
	flow->n_points = brief->n_points;
	flow->entered = brief_entered(brief);
	flow->exported = brief->point.seen;
}

/* Room for one more: 4, 8, 16 ... */
static bool grow_points(struct flow *flow)
{
	uint32_t n = flow->n_points;
	bool is_inline = flow->points == &flow->point;
	struct point *points;

	if (!is_inline && (n < 4 || (n & (n - 1))))
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

struct point *flow_ensure_point(struct flow *flow, uint16_t netns,
				uint32_t ifindex, bool egress)
{
	uint64_t order = (uint64_t)egress << 48 | (uint64_t)netns << 32 | ifindex;
	uint32_t i = 0;

	for (; i < flow->n_points; i++) {
		struct point *point = &flow->points[i];
		uint64_t other = (uint64_t)point->egress << 48 |
				 (uint64_t)point->netns << 32 | point->ifindex;

		if (other == order)
			return point;
		if (other > order)
			break;
	}
	if (flow->n_points && !grow_points(flow))
		return NULL;
	memmove(&flow->points[i + 1], &flow->points[i],
		(flow->n_points - i) * sizeof(*flow->points));
	flow->n_points++;
	flow->points[i] = (struct point){
		.netns = netns,
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
	secret_fill(&table->secret, sizeof(table->secret));
}

void flow_table_done(struct flow_table *table)
{
	for (uint32_t i = 0; i < table->n_buckets; i++) {
		struct flow *next;

		for (struct flow *flow = table->buckets[i].first; flow;
		     flow = next) {
			next = flow->next;
			free_flow(flow);
		}
	}
	free(table->buckets);
	*table = (struct flow_table){ 0 };
}

static struct flow_key without_tags(const struct flow_key *key)
{
	struct flow_key untagged = *key;

	untagged.vlan &= ~FLOW_TAG_MASK;
	untagged.outer_vlan &= ~FLOW_TAG_MASK;
	if (key->flags & FLOW_KEY_OVERLAY) {
		untagged.flags &= ~FLOW_KEY_OVERLAY;
		untagged.tunnel = TUNNEL_NONE;
		untagged.vni = 0;
	}
	return untagged;
}

uint64_t flow_table_hash(const struct flow_table *table,
			 const struct flow_key *key)
{
	const struct flow_key untagged = without_tags(key);

	return hash_key(&untagged, &table->secret);
}

static bool reserve_flows(struct flow_table *table, uint32_t capacity)
{
	struct flow_chain *buckets =
		reallocarray(table->buckets, capacity, sizeof(*table->buckets));

	if (!buckets)
		return false;
	table->buckets = buckets;
	table->capacity = capacity;
	return true;
}

static bool begin_table(struct flow_table *table)
{
	if (!reserve_flows(table, BUCKETS_MIN))
		return false;
	memset(table->buckets, 0, BUCKETS_MIN * sizeof(*table->buckets));
	table->n_buckets = BUCKETS_MIN;
	table->mask = BUCKETS_MIN - 1;
	return true;
}

static void put_first(struct flow_chain *chain, struct flow *flow, uint64_t hash)
{
	flow->next = chain->first;
	chain->first = flow;
	chain->marks |= flow_table_marks(hash);
}

/* Add a bucket, which takes its share of another bucket's flows. */
static bool split_bucket(struct flow_table *table)
{
	uint32_t added = table->n_buckets;
	struct flow *flow, *next;
	struct flow_chain *from;

	if (added == table->capacity && !reserve_flows(table, added * 2))
		return false;
	table->n_buckets++;
	if (added > table->mask)
		table->mask = table->mask << 1 | 1;
	from = &table->buckets[added & table->mask >> 1];
	flow = from->first;
	*from = table->buckets[added] = (struct flow_chain){ 0 };
	for (; flow; flow = next) {
		uint64_t hash = flow_table_hash(table, &flow->key);

		next = flow->next;
		put_first(flow_table_bucket(table, hash), flow, hash);
	}
	return true;
}

/* Remove the last bucket, and return its flows to the bucket it was split from. */
static void join_buckets(struct flow_table *table)
{
	const struct flow_chain *removed = &table->buckets[--table->n_buckets];
	struct flow_chain *to =
		&table->buckets[table->n_buckets & table->mask >> 1];
	struct flow **link = &to->first;

	while (*link)
		link = &(*link)->next;
	*link = removed->first;
	to->marks |= removed->marks;
	if (table->n_buckets == (table->mask >> 1) + 1)
		table->mask >>= 1;
}

/* @return whether the keys differ in nothing but their tags */
static bool are_alike(const struct flow_key *a, const struct flow_key *b)
{
	struct flow_key left, right;

	if (memcmp(a, b, offsetof(struct flow_key, vlan)))
		return false;
	left = without_tags(a);
	right = without_tags(b);
	return !memcmp(&left, &right, sizeof(left));
}

static struct flow *find_alike(struct flow *flow, const struct flow_key *key)
{
	while (flow && !are_alike(&flow->key, key))
		flow = flow->next;
	return flow;
}

struct flow *flow_table_next(const struct flow *flow)
{
	return find_alike(flow->next, &flow->key);
}

struct flow *flow_table_first(const struct flow_table *table,
			      const struct flow_key *key)
{
	return find_alike(
		flow_table_candidate(table, flow_table_hash(table, key)), key);
}

struct flow *flow_table_find(const struct flow_table *table,
			     const struct flow_key *key, uint64_t hash)
{
	struct flow *alike = NULL, *flow = flow_table_candidate(table, hash);

	for (; flow; flow = flow->next) {
		if (!are_alike(&flow->key, key))
			continue;
		if (flow_has_tags(flow, key))
			return flow;
		alike = alike ?: flow;
	}
	return alike;
}

/* Free a flow that is in no bucket any more. */
static void drop_flow(struct flow_table *table, struct flow *flow)
{
	table->count--;
	table->n_by_rate[flow_key_rate_id(&flow->key)]--;
	free_flow(flow);
}

static struct flow **link_to(const struct flow_table *table,
			     const struct flow *flow, uint64_t hash)
{
	struct flow **link = &flow_table_bucket(table, hash)->first;

	while (*link != flow)
		link = &(*link)->next;
	return link;
}

/* A flow has left the chain. */
static void renew_marks(const struct flow_table *table, struct flow_chain *chain)
{
	chain->marks = 0;
	for (const struct flow *flow = chain->first; flow; flow = flow->next)
		chain->marks |=
			flow_table_marks(flow_table_hash(table, &flow->key));
}

void flow_table_remove(struct flow_table *table, struct flow *flow)
{
	const uint64_t hash = flow_table_hash(table, &flow->key);

	*link_to(table, flow, hash) = flow->next;
	renew_marks(table, flow_table_bucket(table, hash));
	drop_flow(table, flow);
}

/* Grow the table. If that fails, or has to wait, it still works, only slower. */
static bool make_flow_room(struct flow_table *table)
{
	if (!table->n_buckets)
		return begin_table(table);
	for (int i = 0; i < SPLITS && table->count >= table->n_buckets; i++)
		if (table->frozen || !split_bucket(table))
			break;
	return true;
}

static bool may_add(struct flow_table *table)
{
	if (table->max && table->count >= table->max)
		return false;
	return table->count < table->n_buckets || make_flow_room(table);
}

static void add_flow(struct flow_table *table, struct flow *flow, uint64_t hash)
{
	put_first(flow_table_bucket(table, hash), flow, hash);
	table->count++;
	table->n_by_rate[flow_key_rate_id(&flow->key)]++;
}

/* Not inline, or compilers object to a struct of which there is only the first part. */
static __attribute__((noinline)) struct flow *resize_flow(struct flow *flow,
							  size_t size)
{
	return realloc(flow, size);
}

static struct flow *new_flow(const struct flow_table *table)
{
	struct flow *flow = malloc(sizeof(*flow) + table->extra_size);

	if (flow)
		memset(flow + 1, 0, table->extra_size);
	return flow;
}

struct flow *flow_table_add(struct flow_table *table,
			    const struct flow_key *key, uint64_t hash)
{
	struct flow *flow = may_add(table) ? new_flow(table) : NULL;

	if (!flow)
		return NULL;
	flow_init(flow, key);
	add_flow(table, flow, hash);
	return flow;
}

struct flow *flow_table_add_brief(struct flow_table *table,
				  const struct flow *flow, uint64_t hash)
{
	struct flow *brief = !table->extra_size && may_add(table) ?
				     resize_flow(NULL, BRIEF_BYTES) :
				     NULL;

	if (!brief)
		return NULL;
	memcpy(brief, flow, BRIEF_BYTES);
	brief->fresh = false;
	brief->is_brief = true;
	add_flow(table, brief, hash);
	return brief;
}

struct flow *flow_table_expand(struct flow_table *table, struct flow *brief,
			       uint64_t hash)
{
	struct flow **link = link_to(table, brief, hash);
	struct flow *flow = new_flow(table);

	if (!flow)
		return NULL;
	flow_expand(flow, brief);
	flow->next = brief->next;
	*link = flow;
	free(brief);
	return flow;
}

/* @return the shortened flow, or the same one if there is no memory */
static struct flow *shorten_flow(struct flow *flow)
{
	struct flow *brief = resize_flow(flow, BRIEF_BYTES);

	if (!brief)
		return flow;
	brief->is_brief = true;
	return brief;
}

bool flow_table_walk(struct flow_table *table, uint32_t *cursor,
		     uint32_t n_buckets,
		     bool (*keep)(void *ctx, struct flow *flow), void *ctx)
{
	uint32_t end = min_u64((uint64_t)*cursor + n_buckets, table->n_buckets);

	for (; *cursor < end; (*cursor)++) {
		struct flow_chain *chain = &table->buckets[*cursor];
		struct flow **link = &chain->first;
		uint32_t count = table->count;

		while (*link) {
			struct flow *flow = *link;

			if (keep(ctx, flow)) {
				if (!table->extra_size && flow_can_be_brief(flow))
					*link = shorten_flow(flow);
				link = &(*link)->next;
				continue;
			}
			*link = flow->next;
			drop_flow(table, flow);
		}
		if (table->count < count)
			renew_marks(table, chain);
	}
	return *cursor < table->n_buckets;
}

bool flow_table_shrink(struct flow_table *table, uint32_t n_buckets)
{
	uint32_t end = table->n_buckets - min_u64(n_buckets, table->n_buckets);
	uint32_t least = max_u64(BUCKETS_MIN, table->count * 8ULL);

	end = max_u64(end, least);
	while (table->n_buckets > end)
		join_buckets(table);
	if (table->n_buckets > least)
		return true;
	if (!table->n_buckets || table->capacity / 4 < table->n_buckets)
		return false;
	return reserve_flows(table, table->capacity / 2);
}
