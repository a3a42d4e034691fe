/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "merge.h"

#include "bpf/parse/headers.h"
#include "bpf/store/tally.h"
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

static const struct rates no_rates;

void merge_init(struct merge *merge, const struct merge_options *options,
		const struct host *host, const struct clock *clock)
{
	*merge = (struct merge){
		.host = host,
		.clock = clock,
		.options = *options,
	};
	if (!options->rates)
		merge->options.rates = &no_rates;
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

/* A flow may be seen at several points. */
static bool may_cross(const struct merge *merge)
{
	return !merge->options.per_interface && !merge->options.single_point;
}

/* @last_flip_ns: when the drain before began. */
static struct merge_times times_of(const struct merge *merge,
				   enum merge_mode mode, int64_t flip_ns,
				   int64_t last_flip_ns)
{
	const struct merge_options *options = &merge->options;
	bool is_due_always = options->active_timeout_ns <= options->interval_ns;
	struct merge_times times = {
		.idle_ns = flip_ns - options->idle_timeout_ns,
		.active_ns = INT64_MAX,
		.young_ns = INT64_MAX,
		.crossing_ns = INT64_MAX,
		.several_ns = INT64_MAX,
		.active_reason = mode == MERGE_EARLY && is_due_always ?
					 NETOBS_END_RESOURCES :
					 NETOBS_END_ACTIVE,
	};

	/* Rounded to the nearest interval. */
	if (mode < MERGE_ALL && !is_due_always)
		times.active_ns = flip_ns - options->active_timeout_ns +
				  options->interval_ns / 2;
	/* min_bytes is judged per interval, so an early drain does not report part of one. */
	if (mode == MERGE_EARLY && is_due_always && options->min_bytes)
		times.active_ns = INT64_MIN;
	if (may_cross(merge) && mode < MERGE_ALL)
		times.young_ns = flip_ns - youth_ns;
	if (may_cross(merge) && mode != MERGE_FINAL) {
		times.crossing_ns = flip_ns - (merge->host->n_netns > 1 ?
						       queued_crossing_ns :
						       crossing_ns);
		times.several_ns = last_flip_ns;
	}
	return times;
}

void merge_begin(struct merge *merge, enum merge_mode mode, int64_t flip_ns)
{
	merge->times = times_of(merge, mode, flip_ns, merge->flip_ns);
	merge->mode = mode;
	merge->flip_ns = flip_ns;
	merge->unreported = (struct volume){ 0 };
	merge->inferred_now = (struct volume){ 0 };
	merge->cursor = 0;
}

static uint32_t rate_id_of(const struct merge *merge, const struct flow_key *key)
{
	return merge->options.rates->id_of[key_rate(key)];
}

static void key_of(const struct merge *merge, const struct flow_entry *entry,
		   struct flow_key *ret_key)
{
	const struct flow_key *key = &entry->key;

	if (merge->options.per_interface) {
		*ret_key = *key;
		ret_key->flags &= ~KEY_AGAIN;
	} else {
		sighting_key(key, merge->host, ret_key);
		flow_extras_find_key(&merge->options.extras, entry, false,
				     ret_key);
	}
	flow_key_set_rate_id(ret_key, rate_id_of(merge, key));
}

static bool is_further(enum sight sight)
{
	return sight == SIGHT_AGAIN || sight == SIGHT_FORWARDED;
}

static void sight_of(const struct merge *merge, const struct flow_entry *entry,
		     struct sighting *ret_sighting)
{
	uint32_t id = rate_id_of(merge, &entry->key);

	sighting_read(entry, merge->host,
		      rates_are_random(merge->options.rates, id), ret_sighting);
	ret_sighting->is_counted = !flow_extras_find_key(
		&merge->options.extras, entry, is_further(ret_sighting->sight),
		&ret_sighting->key);
	flow_key_set_rate_id(&ret_sighting->key, id);
}

void merge_look(const struct merge *merge,
		const struct flow_entry *const *entries, int n,
		struct sighting *ret_sightings)
{
	bool is_one_point = !may_cross(merge);

	for (int i = 0; i < n; i++) {
		struct sighting *sighting = &ret_sightings[i];

		if (is_one_point) {
			key_of(merge, entries[i], &sighting->key);
			sighting->sight = SIGHT_FIRST;
			sighting->is_random = false;
			sighting->is_counted = false;
		} else {
			sight_of(merge, entries[i], sighting);
		}
		sighting->hash = flow_table_hash(&merge->table, &sighting->key);
		if (merge->repeats.words)
			repeats_prefetch(&merge->repeats, sighting->hash);
		flow_table_prefetch(&merge->table, sighting->hash);
	}
	for (int i = 0; i < n; i++)
		flow_table_prefetch_flow(&merge->table, ret_sightings[i].hash);
}

/* A flow that is seen in several tunnels has the one in which it enters. */
static void set_tunnel(struct merge *merge, struct flow_tunnel *tunnel,
		       const struct flow_entry *entry, enum sight sight)
{
	const struct flow_key *key = &entry->key;
	bool is_same = tunnel->type == key->tunnel && tunnel->vni == key->vni &&
		       tunnel->hash == key->outer_hash;

	if (tunnel->type && !is_same && sight != SIGHT_FIRST)
		return;
	tunnel->type = key->tunnel;
	tunnel->vni = key->vni;
	tunnel->hash = key->outer_hash;
	tunnel->src_port = entry->outer_src_port;
	tunnel->dst_port = entry->outer_dst_port;
	tunnel->has_addrs =
		(is_same && tunnel->has_addrs) ||
		tunnel_addrs_find(&merge->tunnels, entry, &tunnel->addrs);
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

static bool is_zero(const uint8_t macs[12])
{
	static const uint8_t zero[12];

	return !memcmp(macs, zero, sizeof(zero));
}

/* False without memory. */
static bool merge_entry(struct merge *merge, struct flow *flow,
			const struct flow_entry *entry, enum sight sight)
{
	const struct flow_tally *tally = &entry->tally;
	struct volume volume = volume_of(tally);
	struct point *point = flow_ensure_point(flow, entry->key.netns,
						entry->key.ifindex,
						entry->key.flags & KEY_EGRESS);

	if (!point)
		return false;
	volume_add(&point->seen, &volume);
	point->sights |= 1 << sight;
	if (sight == SIGHT_FIRST)
		volume_add(&flow->entered, &volume);
	/* The addresses are those that the first point saw. */
	if (tally->attrs.has_mac &&
	    !(merge->options.hide_link && is_zero(tally->macs)) &&
	    (point == flow->points || !flow->has_mac)) {
		flow->has_mac = true;
		memcpy(flow->macs, tally->macs, sizeof(flow->macs));
	}
	if (entry->key.tunnel) {
		point->is_in_tunnel = true;
		set_tunnel(merge, &flow->tunnel, entry, sight);
	}
	add_attrs(flow, tally);
	if (merge->options.extras.n)
		flow_extras_note(&merge->options.extras, flow, entry);
	return true;
}

/* If there is no memory, the flow stays a flow of its own. */
static void note_stray(struct merge *merge, struct flow *flow)
{
	if (flow->is_stray ||
	    !array_reserve(&merge->strays, merge->n_strays,
			   &merge->strays_capacity, sizeof(struct flow *), 64))
		return;
	flow->is_stray = true;
	merge->strays[merge->n_strays++] = flow;
}

/* NULL without memory. */
static struct flow *make_full(struct merge *merge, struct flow *flow,
			      uint64_t hash)
{
	return flow->is_brief ? flow_table_expand(&merge->table, flow, hash) :
				flow;
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
		return make_full(merge, alike, sighting->hash);
	flow = flow_table_add(&merge->table, &sighting->key, sighting->hash);
	if (flow)
		flow->is_random = sighting->is_random;
	if (!alike || !flow)
		return flow;
	if (sighting->sight != SIGHT_FIRST)
		note_stray(merge, flow);
	alike = flow_table_first(&merge->table, &sighting->key);
	for (; alike; alike = flow_table_next(alike)) {
		struct flow *full = make_full(merge, alike, sighting->hash);

		alike = full ?: alike;
		if (full && !full->entered.packets && full != flow)
			note_stray(merge, full);
	}
	return flow;
}

/* Count a volume as lost; if it was no first sight, also as inferred. */
static void lose_volume(struct merge *merge, const struct volume *volume,
			bool is_first)
{
	volume_add(&merge->lost, volume);
	if (!is_first)
		volume_add(&merge->inferred_gone, volume);
}

void merge_keep(struct merge *merge, const struct flow_entry *entry,
		const struct sighting *sighting)
{
	const struct volume volume = volume_of(&entry->tally);
	struct flow *flow;

	if (sighting->is_counted)
		return;
	flow = flow_of(merge, sighting);
	if (!flow || !merge_entry(merge, flow, entry, sighting->sight))
		lose_volume(merge, &volume, sighting->sight == SIGHT_FIRST);
}

/* @return the reason to report the flow now; 0: there is none */
static int why_report(const struct merge *merge, const struct flow *flow)
{
	const struct merge_times *times = &merge->times;

	if (flow->first_ns > times->young_ns && !flow->exported.packets)
		return 0;
	if (flow->key.proto == IP_PROTO_TCP &&
	    flow->attrs.marks & (TCP_FIN | TCP_RST))
		return NETOBS_END_DETECTED;
	if (merge->mode == MERGE_FINAL)
		return NETOBS_END_FORCED;
	if (flow->last_ns <= times->idle_ns)
		return NETOBS_END_IDLE;
	if (merge->is_crowded)
		return NETOBS_END_RESOURCES;
	return flow->first_ns <= times->active_ns ? (int)times->active_reason : 0;
}

/* @return whether the flow may be seen at a further point */
static bool may_return(const struct merge *merge, const struct flow *flow)
{
	const struct merge_times *times = &merge->times;

	return flow->last_ns >= times->crossing_ns ||
	       (flow->n_points > 1 && flow->last_ns >= times->several_ns);
}

/* If any rate samples packets, records of flows without sampling state an interval of 1. */
static void set_sampling(struct merge *merge, const struct flow *flow)
{
	const struct rates *rates = merge->options.rates;
	const struct rate *rate = &rates->ids[flow_key_rate_id(&flow->key)];
	bool is_named = rates->is_sampling || rate->interval;

	merge->record.sampling = is_named ? (rate->interval ?: 1) : 0;
	merge->record.sampling_mode = (enum netobs_sampling)rate->mode;
}

/* False without memory. */
static bool deliver_flow(struct merge *merge, struct flow *flow,
			 const struct volume *delta,
			 enum netobs_end_reason reason)
{
	set_sampling(merge, flow);
	if (record_fill(&merge->record, flow, delta, reason, merge->host,
			merge->clock))
		return false;
	if (merge->options.extras.n)
		flow_extras_fill(&merge->options.extras, flow,
				 &merge->record.flow);
	if (merge->options.on_record)
		merge->options.on_record(&merge->record.flow.record,
					 merge->options.user);
	merge->records++;
	volume_add(&merge->exported, delta);
	return true;
}

/* False: no memory; the packets are reported next time. */
static bool report_delta(struct merge *merge, struct flow *flow,
			 const struct volume *delta,
			 enum netobs_end_reason reason)
{
	if (delta->packets && delta->bytes < merge->options.min_bytes)
		volume_add(&merge->small, delta);
	else if (delta->packets && !deliver_flow(merge, flow, delta, reason))
		return false;
	volume_add(&flow->exported, delta);
	flow->fresh = false;
	return true;
}

void merge_expect(struct merge *merge, uint64_t n_keys)
{
	merge->n_expected = n_keys;
}

void merge_announce(struct merge *merge,
		    const struct flow_entry *const *entries, int n)
{
	uint64_t hashes[MERGE_BATCH];
	struct flow_key common;

	if (merge->n_expected)
		repeats_init(&merge->repeats, merge->n_expected);
	merge->n_expected = 0;
	for (int i = 0; i < n; i++) {
		key_of(merge, entries[i], &common);
		hashes[i] = flow_table_hash(&merge->table, &common);
		repeats_prefetch(&merge->repeats, hashes[i]);
	}
	for (int i = 0; i < n; i++)
		repeats_note(&merge->repeats, hashes[i]);
}

/* @return whether the entry continues a flow of one point, in the same sight */
static bool goes_on(const struct flow *known, const struct flow_entry *entry,
		    const struct sighting *sighting)
{
	const struct flow_key *key = &entry->key;
	const struct point *point = &known->point;

	return known->is_brief && flow_has_tags(known, &sighting->key) &&
	       point->ifindex == key->ifindex && point->netns == key->netns &&
	       point->egress == !!(key->flags & KEY_EGRESS) &&
	       point->sights == 1 << sighting->sight;
}

/* A brief flow that has been reported again. */
static void update_brief(struct flow *brief, const struct flow *flow)
{
	brief->first_ns = flow->first_ns;
	brief->last_ns = flow->last_ns;
	brief->point = flow->point;
	memcpy(brief->macs, flow->macs, sizeof(brief->macs));
	brief->has_mac = flow->has_mac;
}

/* Report a flow that is in no table yet. False: it is to be kept. */
static bool deliver_new(struct merge *merge, struct flow *flow,
			const struct sighting *sighting,
			enum netobs_end_reason reason)
{
	struct flow *brief = NULL;

	if (may_return(merge, flow)) {
		brief = flow->tunnel.type ?
				NULL :
				flow_table_add_brief(&merge->table, flow,
						     sighting->hash);
		if (!brief)
			return false;
	}
	if (!report_delta(merge, flow, &flow->point.seen, reason)) {
		if (brief)
			flow_table_remove(&merge->table, brief);
		return false;
	}
	/* For a flow that stays in the table, the sweep counts it. */
	if (!brief && sighting->sight != SIGHT_FIRST)
		volume_add(&merge->inferred_gone, &flow->point.seen);
	return true;
}

/* The only entry of its flow in this drain. False: it is to be kept. */
static bool deliver_entry(struct merge *merge, const struct flow_entry *entry,
			  const struct sighting *sighting)
{
	struct flow *known =
		flow_table_find(&merge->table, &sighting->key, sighting->hash);
	struct volume volume = volume_of(&entry->tally);
	struct flow_with_extras passing;
	struct flow *flow = &passing.flow;
	int reason;

	if (known && !goes_on(known, entry, sighting))
		return false;
	if (known) {
		flow_expand(flow, known);
	} else {
		flow_init(flow, &sighting->key);
		flow->is_random = sighting->is_random;
	}
	memset(passing.room, 0, merge->table.extra_size);
	merge_entry(merge, flow, entry, sighting->sight);
	reason = why_report(merge, flow);
	if (!reason)
		return false;
	if (!known)
		return deliver_new(merge, flow, sighting, reason);
	if (!report_delta(merge, flow, &volume, reason))
		return false;
	update_brief(known, flow);
	return true;
}

void merge_deliver(struct merge *merge, const struct flow_entry *entry,
		   const struct sighting *sighting)
{
	if (sighting->is_counted ||
	    !sighting_counts(sighting->is_random, sighting->sight) ||
	    repeats_may(&merge->repeats, sighting->hash) ||
	    !deliver_entry(merge, entry, sighting))
		merge_keep(merge, entry, sighting);
}

/* @return which of two flows, equal but for their tags, has the tags of @stray's way in */
static bool is_nearer_to_entry(const struct merge *merge,
			       const struct flow *stray, const struct flow *a,
			       const struct flow *b)
{
	bool is_a_next = observe_are_adjacent(stray, a, merge->host),
	     is_b_next = observe_are_adjacent(stray, b, merge->host);

	if (is_a_next != is_b_next)
		return is_a_next;
	if (!a->entered.packets != !b->entered.packets)
		return a->entered.packets;
	/* Translated addresses enter nowhere: then the tags stay as they were. */
	if (!a->exported.packets != !b->exported.packets)
		return a->exported.packets;
	return a->first_ns < b->first_ns;
}

static bool are_further(const struct flow *flow)
{
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (!sights_are_further(flow->points[i].sights))
			return false;
	return true;
}

/* @return whether a flow in another overlay may own the stray, too */
static bool has_rival(const struct merge *merge, const struct flow *stray)
{
	const struct overlay_tag tag = flow_overlay(stray);
	const struct flow *flow =
		tag.type ? flow_table_first(&merge->table, &stray->key) : NULL;

	for (; flow; flow = flow_table_next(flow))
		if (!overlay_tags_fit(flow_overlay(flow), tag))
			return true;
	return false;
}

/*
 * A packet may be passed on from one overlay to another. But tenants may use the same addresses, so
 * packets that are not proven to have been seen before belong to no flow in another overlay.
 */
static bool may_join(const struct merge *merge, const struct flow *stray,
		     const struct flow *flow, bool stray_has_rival)
{
	const struct overlay_tag tag = flow_overlay(stray),
				 other = flow_overlay(flow);

	if (stray == flow || are_further(stray))
		return true;
	if (!tag.type || other.type)
		return overlay_tags_fit(tag, other);
	return !stray_has_rival || observe_are_adjacent(stray, flow, merge->host);
}

/* The flow that a stray is part of, which may be itself. */
static struct flow *owner_of(const struct merge *merge, const struct flow *stray)
{
	struct flow *flow = flow_table_first(&merge->table, &stray->key);
	const bool stray_has_rival = has_rival(merge, stray);
	struct flow *owner = NULL;

	/* A flow is still brief if there was no memory to make it full. */
	for (; flow; flow = flow_table_next(flow))
		if (!flow->is_brief &&
		    may_join(merge, stray, flow, stray_has_rival) &&
		    (!owner || is_nearer_to_entry(merge, stray, flow, owner)))
			owner = flow;
	return owner;
}

/* Points for which there is no memory are not listed, and count as lost. */
static void absorb_stray(struct merge *merge, struct flow *owner,
			 struct flow *stray)
{
	struct volume missed = { 0 };
	const struct flow_tally tally = {
		.first_ns = stray->first_ns,
		.last_ns = stray->last_ns,
		.attrs = stray->attrs,
	};

	for (uint32_t i = 0; i < stray->n_points; i++) {
		const struct point *from = &stray->points[i];
		struct point *to = flow_ensure_point(
			owner, from->netns, from->ifindex, from->egress);

		if (!to) {
			volume_max(&missed, &from->seen);
			continue;
		}
		volume_add(&to->seen, &from->seen);
		to->sights |= from->sights;
		to->is_in_tunnel |= from->is_in_tunnel;
	}
	missed = volume_less(missed, &stray->exported);
	lose_volume(merge, &missed, false);
	if (stray->fresh)
		add_attrs(owner, &tally);
	if (!owner->tunnel.type)
		owner->tunnel = stray->tunnel;
	if (!owner->overlay.type)
		owner->overlay = flow_overlay(stray);
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
			absorb_stray(merge, owner, stray);
	}
	return merge->n_strays;
}

/*
 * Interfaces that became a stack may make the total smaller than the exported volume. With an equal
 * number of packets the exported volume stays, because no record can have bytes without packets.
 */
static struct volume total_of(const struct flow *flow, const struct host *host)
{
	struct volume total;

	observe_total(flow, host, &total);
	if (total.packets <= flow->exported.packets)
		return flow->exported;
	volume_max(&total, &flow->exported);
	return total;
}

/* If the total has fewer bytes than the first sights, the difference wraps, and sums still balance. */
static void infer(struct volume *inferred, const struct flow *flow,
		  const struct volume *total)
{
	volume_add(inferred, total);
	volume_subtract(inferred, &flow->entered);
}

/* Report the flow if it is due. Returns whether the flow stays in the table. */
static bool sweep_flow(void *ctx, struct flow *flow)
{
	int reason = flow->fresh ? why_report(ctx, flow) : 0;
	struct volume total, part;
	struct merge *merge = ctx;
	struct flow full;

	if (flow->is_brief) {
		flow_expand(&full, flow);
		flow = &full;
	}
	total = total_of(flow, merge->host);
	part = volume_less(total, &flow->exported);
	if (reason)
		report_delta(merge, flow, &part, reason);
	if (flow->fresh || may_return(merge, flow)) {
		part = volume_less(total, &flow->exported);
		volume_add(&merge->unreported, &part);
		infer(&merge->inferred_now, flow, &total);
		return true;
	}
	infer(&merge->inferred_gone, flow, &flow->exported);
	return false;
}

static void sum_up_merge(struct merge *merge)
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
	sum_up_merge(merge);
	return false;
}
