/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "merge.h"

#include "bpf/parse/headers.h"
#include "bpf/store/attrs.h"
#include "observe.h"
#include "base/util.h"
#include "host/host.h"

#include <string.h>

enum { SWEEP_BUCKETS = 1024, SWEEP_STRAYS = 1024, SHRINK_BUCKETS = 16384 };

/*
 * Longer than a packet takes from one point to the next. The queue of an
 * interface comes after its egress point, so that queues lie in between only
 * where another namespace is observed too.
 */
static const int64_t crossing_ns = 50 * NSEC_PER_MSEC;
static const int64_t queued_crossing_ns = 250 * NSEC_PER_MSEC;
/* A flow younger than this waits a drain, so that its first record is whole. */
static const int64_t youth_ns = 20 * NSEC_PER_MSEC;

void merge_init(struct merge *merge, const struct merge_options *options,
		const struct host *host, const struct clock *clock)
{
	*merge = (struct merge){
		.host = host,
		.clock = clock,
		.options = *options,
	};
	flow_table_init(&merge->table);
	merge->table.max = options->max_kept;
	merge->table.extra_size = flow_extras_bytes(&options->extras);
	tunnel_addrs_init(&merge->tunnels, options->tunnel_addrs_fd);
}

void merge_done(struct merge *merge)
{
	flow_table_done(&merge->table);
	repeats_done(&merge->repeats);
	record_done(&merge->record);
	free(merge->strays);
}

void merge_begin(struct merge *merge, enum merge_mode mode, int64_t flip_ns)
{
	merge->mode = mode;
	merge->last_flip_ns = merge->flip_ns;
	merge->flip_ns = flip_ns;
	merge->unreported = (struct volume){ 0 };
	merge->inferred_now = (struct volume){ 0 };
	merge->cursor = 0;
}

static bool may_cross(const struct merge *merge)
{
	return !merge->options.per_interface && !merge->options.single_point;
}

static void key_of(const struct merge *merge, const struct flow_key *key,
		   struct flow_key *ret_key)
{
	if (!merge->options.per_interface) {
		observe_key(key, merge->host, ret_key);
		return;
	}
	*ret_key = *key;
	ret_key->flags &= ~KEY_AGAIN;
}

static void look(const struct merge *merge, const struct flow_entry *entry,
		 struct sighting *ret_sighting)
{
	if (may_cross(merge)) {
		observe_entry(entry, merge->host, ret_sighting);
	} else {
		key_of(merge, &entry->key, &ret_sighting->key);
		ret_sighting->sight = SIGHT_FIRST;
	}
	ret_sighting->hash = flow_table_hash(&merge->table, &ret_sighting->key);
}

void merge_look(const struct merge *merge,
		const struct flow_entry *const *entries, int n,
		struct sighting *ret_sightings)
{
	for (int i = 0; i < n; i++) {
		look(merge, entries[i], &ret_sightings[i]);
		repeats_prefetch(&merge->repeats, ret_sightings[i].hash);
		flow_table_prefetch(&merge->table, ret_sightings[i].hash);
	}
	for (int i = 0; i < n; i++)
		flow_table_prefetch_flow(&merge->table, ret_sightings[i].hash);
}

/* The addresses are those that the first point saw. */
static void set_macs(struct flow *flow, const struct flow_tally *tally)
{
	flow->has_mac = true;
	memcpy(flow->dst_mac, tally->macs, sizeof(flow->dst_mac));
	memcpy(flow->src_mac, tally->macs + 6, sizeof(flow->src_mac));
}

static void set_outer(struct merge *merge, struct flow *flow,
		      const struct flow_entry *entry)
{
	flow->outer_src_port = entry->outer_src_port;
	flow->outer_dst_port = entry->outer_dst_port;
	flow->has_outer = flow->has_outer ||
			  tunnel_addrs_find(&merge->tunnels, entry, &flow->outer);
}

static void add_attrs(struct flow *flow, const struct flow_tally *tally)
{
	int64_t first_ns = tally->first_ns, last_ns = tally->last_ns;

	if (!flow->fresh) {
		flow->fresh = true;
		flow->first_ns = first_ns;
		flow->last_ns = last_ns;
		flow->attrs = tally->attrs;
		return;
	}
	flow->attrs.marks |= tally->attrs.marks;
	attrs_merge(&flow->attrs, &tally->attrs, first_ns < flow->first_ns,
		    last_ns >= flow->last_ns);
	if (first_ns < flow->first_ns)
		flow->first_ns = first_ns;
	if (last_ns > flow->last_ns)
		flow->last_ns = last_ns;
}

static struct volume volume_of(const struct flow_entry *entry)
{
	const struct flow_tally *tally = &entry->tally;

	return (struct volume){ tally->packets, tally->bytes, tally->l2_bytes };
}

/* False without memory. */
static bool add_entry(struct merge *merge, struct flow *flow,
		      const struct flow_entry *entry, enum sight sight)
{
	const struct flow_tally *tally = &entry->tally;
	struct volume volume = volume_of(entry);
	struct point *point = flow_ensure_point(flow, entry->key.netns,
						entry->key.ifindex,
						entry->key.flags & KEY_EGRESS);

	if (!point)
		return false;
	volume_add(&point->seen, &volume);
	point->sights |= 1 << sight;
	if (sight == SIGHT_FIRST)
		volume_add(&flow->entered, &volume);
	if (tally->attrs.has_mac && !merge->options.hide_link &&
	    (point == flow->points || !flow->has_mac))
		set_macs(flow, tally);
	if (flow->key.tunnel)
		set_outer(merge, flow, entry);
	add_attrs(flow, tally);
	flow_extras_note(&merge->options.extras, flow, entry);
	return true;
}

/* Without memory it stays what it is: a flow of its own. */
static void note_stray(struct merge *merge, struct flow *flow)
{
	uint32_t capacity = merge->strays_capacity * 2 ?: 64;
	struct flow **strays;

	if (flow->is_stray)
		return;
	if (merge->n_strays == merge->strays_capacity) {
		strays = reallocarray(merge->strays, capacity, sizeof(*strays));
		if (!strays)
			return;
		merge->strays = strays;
		merge->strays_capacity = capacity;
	}
	flow->is_stray = true;
	merge->strays[merge->n_strays++] = flow;
}

/*
 * Tags belong to a point. A flow has those of the point where it enters, which keep
 * tenants with equal addresses apart. Wherever else it is seen, with other tags or
 * none, it is the same flow; but entries come in any order, so what was seen with
 * other tags is a stray until all of them are there. NULL without memory.
 */
static struct flow *flow_of(struct merge *merge, const struct sighting *sighting)
{
	struct flow *alike = flow_table_find(&merge->table, &sighting->key,
					     sighting->hash),
		    *flow;

	if (alike && flow_has_tags(alike, &sighting->key))
		return alike;
	flow = flow_table_add(&merge->table, &sighting->key, sighting->hash);
	if (!alike || !flow)
		return flow;
	if (sighting->sight != SIGHT_FIRST)
		note_stray(merge, flow);
	for (; alike; alike = flow_table_next(alike))
		if (!alike->entered.packets && alike != flow)
			note_stray(merge, alike);
	return flow;
}

/* Counted as lost by the amount that is certain, or that may have been. */
static void lose(struct merge *merge, const struct flow_entry *entry,
		 enum sight sight)
{
	struct volume volume = volume_of(entry);

	volume_add(&merge->lost, &volume);
	if (sight != SIGHT_FIRST)
		volume_add(&merge->inferred_gone, &volume);
}

void merge_keep(struct merge *merge, const struct flow_entry *entry,
		const struct sighting *sighting)
{
	struct flow *flow = flow_of(merge, sighting);

	if (!flow || !add_entry(merge, flow, entry, sighting->sight))
		lose(merge, entry, sighting->sight);
}

/* Reported every interval, whatever its age. */
static bool is_due_always(const struct merge *merge)
{
	return merge->options.active_timeout_ns <= merge->options.interval_ns;
}

static bool is_active_timeout(const struct merge *merge, const struct flow *flow)
{
	int64_t age = merge->flip_ns - flow->first_ns;

	/* Rounded to the nearest interval. */
	return is_due_always(merge) || age + merge->options.interval_ns / 2 >=
					       merge->options.active_timeout_ns;
}

/* Why the flow is to be reported now; 0: it is not. */
static int why_report(const struct merge *merge, const struct flow *flow)
{
	if (flow->key.proto == IP_PROTO_TCP &&
	    flow->attrs.marks & (TCP_FIN | TCP_RST))
		return NETOBS_END_DETECTED;
	if (merge->mode == MERGE_FINAL)
		return NETOBS_END_FORCED;
	if (flow->last_ns + merge->options.idle_timeout_ns <= merge->flip_ns)
		return NETOBS_END_IDLE;
	if (merge->is_crowded)
		return NETOBS_END_RESOURCES;
	if (merge->mode != MERGE_ALL && !is_active_timeout(merge, flow))
		return 0;
	return merge->mode == MERGE_EARLY && is_due_always(merge) ?
		       NETOBS_END_RESOURCES :
		       NETOBS_END_ACTIVE;
}

static bool is_too_young(const struct merge *merge, const struct flow *flow)
{
	return may_cross(merge) && merge->mode < MERGE_ALL &&
	       !flow->exported.packets &&
	       flow->first_ns > merge->flip_ns - youth_ns;
}

/* It may turn up at a further point. */
static bool may_return(const struct merge *merge, const struct flow *flow)
{
	int64_t longest_ns = merge->host->n_netns > 1 ? queued_crossing_ns :
							crossing_ns;

	if (!may_cross(merge) || merge->mode == MERGE_FINAL)
		return false;
	if (flow->last_ns >= merge->flip_ns - longest_ns)
		return true;
	return flow->n_points > 1 && flow->last_ns >= merge->last_flip_ns;
}

/* Not below 0: interfaces that became a stack may make a total smaller. */
static struct volume volume_less(const struct volume *from,
				 const struct volume *what)
{
	return (struct volume){
		from->packets - min_u64(from->packets, what->packets),
		from->bytes - min_u64(from->bytes, what->bytes),
		from->l2_bytes - min_u64(from->l2_bytes, what->l2_bytes),
	};
}

/* False without memory: next time. */
static bool report(struct merge *merge, struct flow *flow,
		   const struct volume *delta, enum netobs_end_reason reason)
{
	if (delta->packets) {
		if (record_fill(&merge->record, flow, delta, reason,
				merge->host, merge->clock))
			return false;
		flow_extras_fill(&merge->options.extras, flow,
				 &merge->record.flow);
		if (merge->options.on_flow)
			merge->options.on_flow(&merge->record.flow,
					       merge->options.user);
		merge->records++;
		volume_add(&merge->exported, delta);
		volume_add(&flow->exported, delta);
	}
	flow->fresh = false;
	return true;
}

void merge_expect(struct merge *merge, uint64_t n_keys)
{
	repeats_init(&merge->repeats, n_keys);
}

void merge_announce(struct merge *merge,
		    const struct flow_entry *const *entries, int n)
{
	uint64_t hashes[MERGE_BATCH];
	struct flow_key common;

	for (int i = 0; i < n; i++) {
		key_of(merge, &entries[i]->key, &common);
		hashes[i] = flow_table_hash(&merge->table, &common);
		repeats_prefetch(&merge->repeats, hashes[i]);
	}
	for (int i = 0; i < n; i++)
		repeats_note(&merge->repeats, hashes[i]);
}

void merge_deliver(struct merge *merge, const struct flow_entry *entry,
		   const struct sighting *sighting)
{
	const struct flow_key *key = &sighting->key;
	struct flow_with_extras passing;
	struct flow *flow = &passing.flow;
	int reason;

	if (repeats_may(&merge->repeats, sighting->hash) ||
	    flow_table_find(&merge->table, key, sighting->hash)) {
		merge_keep(merge, entry, sighting);
		return;
	}
	flow_init(flow, key);
	memset(passing.room, 0, merge->table.extra_size);
	add_entry(merge, flow, entry, sighting->sight);
	reason = why_report(merge, flow);
	if (!reason || is_too_young(merge, flow) || may_return(merge, flow) ||
	    !report(merge, flow, &flow->point.seen, reason))
		merge_keep(merge, entry, sighting);
	else if (sighting->sight != SIGHT_FIRST)
		volume_add(&merge->inferred_gone, &flow->point.seen);
}

/* Which of two flows that differ in their tags alone has those of the way in. */
static bool is_nearer_to_entry(const struct flow *a, const struct flow *b)
{
	if (!a->entered.packets != !b->entered.packets)
		return a->entered.packets;
	/* Translated addresses enter nowhere: then the tags stay as they were. */
	if (!a->exported.packets != !b->exported.packets)
		return a->exported.packets;
	return a->first_ns < b->first_ns;
}

/* The flow that a stray is part of, which may be itself. */
static struct flow *owner_of(const struct merge *merge, const struct flow *stray)
{
	struct flow *owner = flow_table_first(&merge->table, &stray->key);

	for (struct flow *flow = owner; flow; flow = flow_table_next(flow))
		if (is_nearer_to_entry(flow, owner))
			owner = flow;
	return owner;
}

static void absorb(struct merge *merge, struct flow *owner, struct flow *stray)
{
	const struct flow_tally tally = {
		.first_ns = stray->first_ns,
		.last_ns = stray->last_ns,
		.attrs = stray->attrs,
	};

	for (uint32_t i = 0; i < stray->n_points; i++) {
		const struct point *from = &stray->points[i];
		struct point *to = flow_ensure_point(
			owner, from->netns, from->ifindex, from->egress);

		if (!to) /* the record will not list it */
			continue;
		volume_add(&to->seen, &from->seen);
		to->sights |= from->sights;
	}
	if (stray->fresh)
		add_attrs(owner, &tally);
	volume_add(&owner->exported, &stray->exported);
	flow_extras_join(&merge->options.extras, owner, stray);
	flow_table_remove(&merge->table, stray);
}

/* False when none is left. */
static bool resolve_strays(struct merge *merge)
{
	for (uint32_t i = 0; i < SWEEP_STRAYS && merge->n_strays; i++) {
		struct flow *stray = merge->strays[--merge->n_strays];
		struct flow *owner = owner_of(merge, stray);

		stray->is_stray = false;
		if (owner != stray && !stray->entered.packets)
			absorb(merge, owner, stray);
	}
	return merge->n_strays;
}

/* Report the flow if it is due. What of it is still to be reported: *@ret_rest. */
static void report_due(struct merge *merge, struct flow *flow,
		       const struct volume *total, struct volume *ret_rest)
{
	struct volume delta = volume_less(total, &flow->exported);
	int reason = flow->fresh ? why_report(merge, flow) : 0;

	if (reason && !is_too_young(merge, flow))
		report(merge, flow, &delta, reason);
	*ret_rest = volume_less(total, &flow->exported);
}

/* Whether the flow stays in the table. */
static bool sweep_flow(void *ctx, struct flow *flow)
{
	struct merge *merge = ctx;
	struct volume total, rest, inferred;

	observe_total(flow, merge->host, &total);
	volume_max(&total, &flow->exported);
	inferred = volume_less(&total, &flow->entered);
	report_due(merge, flow, &total, &rest);
	if (flow->fresh || may_return(merge, flow)) {
		volume_add(&merge->unreported, &rest);
		volume_add(&merge->inferred_now, &inferred);
		return true;
	}
	inferred = volume_less(&flow->exported, &flow->entered);
	volume_add(&merge->inferred_gone, &inferred);
	return false;
}

static void sum_up(struct merge *merge)
{
	merge->pending = merge->unreported;
	merge->inferred = merge->inferred_gone;
	volume_add(&merge->inferred, &merge->inferred_now);
}

bool merge_sweep(struct merge *merge)
{
	if (resolve_strays(merge))
		return true;
	if (!merge->cursor) {
		repeats_done(&merge->repeats);
		merge->is_crowded = merge->table.count > merge->options.max_flows;
	}
	merge->table.frozen = true;
	if (flow_table_walk(&merge->table, &merge->cursor, SWEEP_BUCKETS,
			    sweep_flow, merge))
		return true;
	merge->table.frozen = false;
	if (flow_table_shrink(&merge->table, SHRINK_BUCKETS))
		return true;
	sum_up(merge);
	return false;
}
