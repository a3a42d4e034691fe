/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Flows by key, in user space: each with the points it was observed at. */
#ifndef NETOBS_FLOWS_FLOW_TABLE_H
#define NETOBS_FLOWS_FLOW_TABLE_H

#include "base/util.h"
#include "bpf/store/hash.h"
#include "engine/tables.h"
#include "host/netif.h"

#include <stdbool.h>
#include <stdint.h>

struct volume {
	uint64_t packets;
	uint64_t bytes;
	uint64_t l2_bytes;
};

/* An interface and direction, with the packets of a flow that it has seen since the beginning. */
struct point {
	uint32_t ifindex;
	uint16_t netns;
	uint8_t egress : 1;
	uint8_t is_in_tunnel : 1; /* it saw packets of the flow in a tunnel */
	uint8_t sights;		  /* 1 << enum sight, or-ed */
	struct volume seen;
};

/* The tunnel in which a flow was seen, at any of its points. */
struct flow_tunnel {
	uint8_t type; /* enum tunnel_type; TUNNEL_NONE: nowhere */
	bool has_addrs;
	uint16_t src_port;
	uint16_t dst_port;
	uint32_t vni;
	uint32_t hash; /* flow_key.outer_hash */
	struct tunnel_addrs addrs;
};

struct flow {
	struct flow *next;
	/* Common to all points: no interface, no direction, and see flow_key_rate_id(). */
	struct flow_key key;
	/* Times of packets since the last record, or else of those in it. CLOCK_BOOTTIME. */
	int64_t first_ns;
	int64_t last_ns;
	struct point point;
	uint8_t macs[12]; /* as in the frame: destination, source */
	bool has_mac;
	bool fresh;	    /* it has packets that have not been exported */
	bool is_stray : 1;  /* see merge.c */
	bool is_random : 1; /* its packets are sampled, at each point anew */
	bool is_brief; /* it ends after n_points, see flow_can_be_brief() */
	uint32_t n_points;

	struct volume entered; /* seen for the first time, see topology.h */
	struct volume exported;

	struct flow_attrs attrs; /* of packets not yet exported; but not has_mac */

	struct flow_tunnel tunnel;
	struct overlay_tag overlay; /* the overlay that it was seen in, if the key has none */

	struct point *points; /* ingress first, by netns and ifindex; &point, or allocated */
};

/*
 * A bucket. @marks has two bits for each of its flows, chosen by the hash: most lookups are for
 * flows that are not there, and end without reading other flows, which are anywhere in memory.
 */
struct flow_chain {
	struct flow *first;
	uint64_t marks;
};

/*
 * Grows and shrinks by a bucket at a time ("linear hashing"): to rehash a million
 * flows at once would take a tenth of a second.
 */
struct flow_table {
	struct flow_chain *buckets;
	uint32_t n_buckets;
	uint32_t capacity; /* of `buckets` */
	uint32_t mask;	   /* 2^n - 1, the least that has n_buckets - 1 */
	uint32_t count;
	uint32_t n_by_rate[RATE_IDS]; /* flows, by flow_key_rate_id() */
	uint32_t max; /* limit of flows: more are refused, as without memory; 0: no limit */
	uint32_t extra_size; /* bytes behind each flow, see flow_extra.h: then none is brief */
	bool frozen; /* being walked: buckets stay where they are */
	struct hash_secret secret;
};

/*
 * In user space, both fields of VLAN ids have a part of the rate's identifier (tables.h) where
 * programs have its number. Flows of different rates are never the same.
 */
enum { FLOW_TAG_MASK = (1 << KEY_RATE_SHIFT) - 1 };

static inline uint32_t flow_key_rate_id(const struct flow_key *key)
{
	return key->vlan >> KEY_RATE_SHIFT | key->outer_vlan >> KEY_RATE_SHIFT
									<< 3;
}

static inline void flow_key_set_rate_id(struct flow_key *key, uint32_t id)
{
	key->vlan = (key->vlan & FLOW_TAG_MASK) | (id & KEY_RATE_LOW)
							  << KEY_RATE_SHIFT;
	key->outer_vlan = (key->outer_vlan & FLOW_TAG_MASK) |
			  id >> 3 << KEY_RATE_SHIFT;
	key->rate_high = 0;
}

/*
 * In user space, keys have FLOW_KEY_OVERLAY instead of KEY_AGAIN if the flow's tunnel ends on
 * this host: then the packets are seen outside of the tunnel, too. Its type and VNI are tags
 * (host_state.h), and outer_hash is 0.
 */
enum { FLOW_KEY_OVERLAY = KEY_AGAIN };

void flow_table_init(struct flow_table *table);

void flow_table_done(struct flow_table *table);

/* @return the hash of a key without its tags, so that flows that differ only in tags share it */
uint64_t flow_table_hash(const struct flow_table *table,
			 const struct flow_key *key);

/*
 * Find the flow with the key's tags or, if there is none, one with other tags. NULL: neither.
 * @hash: flow_table_hash() of @key.
 */
struct flow *flow_table_find(const struct flow_table *table,
			     const struct flow_key *key, uint64_t hash);

/* Any flow of the key, whatever its tags; flow_table_next() has the others. */
struct flow *flow_table_first(const struct flow_table *table,
			      const struct flow_key *key);

/* The next one that differs from @flow in its tags alone; NULL: none. */
struct flow *flow_table_next(const struct flow *flow);

static inline bool flow_has_tags(const struct flow *flow,
				 const struct flow_key *key)
{
	return flow->key.vlan == key->vlan &&
	       flow->key.outer_vlan == key->outer_vlan &&
	       flow->key.vni == key->vni && flow->key.tunnel == key->tunnel &&
	       flow->key.flags == key->flags;
}

static inline struct overlay_tag flow_overlay(const struct flow *flow)
{
	if (flow->key.flags & FLOW_KEY_OVERLAY)
		return (struct overlay_tag){ flow->key.vni, flow->key.tunnel };
	return flow->is_brief ? (struct overlay_tag){ 0 } : flow->overlay;
}

/* Both overlays are the same, or one of them is not known. */
static inline bool overlay_tags_fit(struct overlay_tag a, struct overlay_tag b)
{
	return !a.type || !b.type || (a.type == b.type && a.vni == b.vni);
}

/* Take out of the table and free. */
void flow_table_remove(struct flow_table *table, struct flow *flow);

/* NULL: no memory. */
struct flow *flow_table_add(struct flow_table *table,
			    const struct flow_key *key, uint64_t hash);

/*
 * Add a flow as a brief one: flow_can_be_brief(), and @flow has all its data. NULL: no memory, or
 * the table's flows have extras.
 */
struct flow *flow_table_add_brief(struct flow_table *table,
				  const struct flow *flow, uint64_t hash);

/* Replace a brief flow in the table by a full one. NULL: no memory. */
struct flow *flow_table_expand(struct flow_table *table, struct flow *brief,
			       uint64_t hash);

/*
 * Walk @n_buckets from *@cursor, keeping the flows for which @keep is true; those that can
 * be brief become so. False when the end was reached.
 */
bool flow_table_walk(struct flow_table *table, uint32_t *cursor,
		     uint32_t n_buckets,
		     bool (*keep)(void *ctx, struct flow *flow), void *ctx);

/*
 * Give back @n_buckets, or fewer, that a smaller number of flows does not need.
 * False: there are no more of them.
 */
bool flow_table_shrink(struct flow_table *table, uint32_t n_buckets);

static inline struct flow_chain *flow_table_bucket(const struct flow_table *table,
						   uint64_t hash)
{
	uint32_t index = hash & table->mask;

	/* Its bucket has not been split yet. */
	if (index >= table->n_buckets)
		index &= table->mask >> 1;
	return &table->buckets[index];
}

/* Bits of flow_chain.marks, from bits of the hash that do not choose the bucket. */
static inline uint64_t flow_table_marks(uint64_t hash)
{
	return 1ULL << (hash >> 58) | 1ULL << (hash >> 52 & 63);
}

/* NULL: none of the bucket's flows has that hash. */
static inline struct flow *flow_table_candidate(const struct flow_table *table,
						uint64_t hash)
{
	const uint64_t marks = flow_table_marks(hash);
	const struct flow_chain *chain;

	if (!table->count)
		return NULL;
	chain = flow_table_bucket(table, hash);
	return (chain->marks & marks) == marks ? chain->first : NULL;
}

/*
 * To be called for several flows before they are looked for: fetches their buckets into the
 * cache, then the first flow of each.
 */
static inline void flow_table_prefetch(const struct flow_table *table,
				       uint64_t hash)
{
	if (table->count)
		__builtin_prefetch(flow_table_bucket(table, hash));
}

static inline void flow_table_prefetch_flow(const struct flow_table *table,
					    uint64_t hash)
{
	const char *flow = (char *)flow_table_candidate(table, hash);

	for (size_t i = 0; flow && i < sizeof(struct flow); i += CACHE_LINE)
		__builtin_prefetch(flow + i, 1);
}

void flow_init(struct flow *flow, const struct flow_key *key);

/*
 * Nearly all flows that stay in the table after they were exported were seen at one point,
 * with the same sight: then all volumes are those of that point, and half of the memory is
 * enough.
 */
bool flow_can_be_brief(const struct flow *flow);

/* The full flow that @brief is; its `next` and extras are not set. */
void flow_expand(struct flow *flow, const struct flow *brief);

static inline void flow_done(struct flow *flow)
{
	if (!flow->is_brief && flow->points != &flow->point)
		free(flow->points);
}

/* Find or add. NULL: no memory. */
struct point *flow_ensure_point(struct flow *flow, uint16_t netns,
				uint32_t ifindex, bool egress);

static inline struct volume volume_of(const struct flow_tally *tally)
{
	return (struct volume){ tally->packets, tally->bytes, tally->l2_bytes };
}

static inline void volume_add(struct volume *to, const struct volume *from)
{
	to->packets += from->packets;
	to->bytes += from->bytes;
	to->l2_bytes += from->l2_bytes;
}

static inline void volume_max(struct volume *to, const struct volume *from)
{
	to->packets = to->packets > from->packets ? to->packets : from->packets;
	to->bytes = to->bytes > from->bytes ? to->bytes : from->bytes;
	to->l2_bytes = to->l2_bytes > from->l2_bytes ? to->l2_bytes :
						       from->l2_bytes;
}

static inline void volume_subtract(struct volume *from, const struct volume *part)
{
	from->packets -= part->packets;
	from->bytes -= part->bytes;
	from->l2_bytes -= part->l2_bytes;
}

/* Subtract @part, but not below 0. */
static inline struct volume volume_less(struct volume from,
					const struct volume *part)
{
	from.packets -= min_u64(from.packets, part->packets);
	from.bytes -= min_u64(from.bytes, part->bytes);
	from.l2_bytes -= min_u64(from.l2_bytes, part->l2_bytes);
	return from;
}

#endif
