// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "flow_drops.h"

#include "base/util.h"
#include "host/host.h"

#include <netobs/drop.h>
#include <netobs/flow.h>

#include <stdlib.h>
#include <string.h>

enum { WAITING_PARTS = 4 }; /* of the time for which drops wait */

struct drop_tuple {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port; /* as in keys of flows */
	uint32_t proto;
};

_Static_assert(sizeof(struct drop_tuple) == 40, "no padding: it is hashed");

/* A drop behind NAT has two tuples, and is found by either. */
enum { AT_DROP, CAME_IN, TUPLES };

struct waiting_drop {
	struct waiting_drop *next[TUPLES]; /* an older one of each tuple */
	TAILQ_ENTRY(waiting_drop) by_age;
	struct drop_tuple tuples[TUPLES];
	uint32_t n_tuples;
	uint32_t netns, ifindex;
	uint32_t reason;
	bool has_reason;
	struct count count;
	int64_t last_ns;       /* since 1970 */
	int64_t first_flip_ns; /* the end of the generation of its first packet */
	int64_t flip_ns;       /* of its last one */
};

/* ---- Waiting ---------------------------------------------------------------------------- */

/* The older one in the list of that tuple. */
static struct waiting_drop **next_of(struct waiting_drop *drop,
				     const struct drop_tuple *tuple)
{
	const bool is_first =
		!memcmp(&drop->tuples[AT_DROP], tuple, sizeof(*tuple));

	return &drop->next[is_first ? AT_DROP : CAME_IN];
}

static void remove_tuple(struct flow_drops *drops, struct waiting_drop *drop,
			 const struct drop_tuple *tuple)
{
	struct waiting_drop *first = slots_pointer(&drops->by_tuple, tuple);
	struct waiting_drop **at = &first;

	while (*at != drop)
		at = next_of(*at, tuple);
	*at = *next_of(drop, tuple);
	if (first)
		slots_set_pointer(&drops->by_tuple, tuple, sizeof(*tuple), first);
	else
		slots_remove(&drops->by_tuple, tuple);
}

/* @return false: no memory */
static bool add_waiting(struct flow_drops *drops, struct waiting_drop *drop)
{
	for (uint32_t i = 0; i < drop->n_tuples; i++) {
		const struct drop_tuple *tuple = &drop->tuples[i];

		drop->next[i] = slots_pointer(&drops->by_tuple, tuple);
		if (slots_set_pointer(&drops->by_tuple, tuple, sizeof(*tuple),
				      drop))
			continue;
		while (i-- > 0)
			remove_tuple(drops, drop, &drop->tuples[i]);
		return false;
	}
	TAILQ_INSERT_HEAD(&drops->waiting, drop, by_age);
	drops->n_waiting++;
	count_add(&drops->counts.pending, &drop->count);
	return true;
}

static void remove_waiting(struct flow_drops *drops, struct waiting_drop *drop)
{
	for (uint32_t i = 0; i < drop->n_tuples; i++)
		remove_tuple(drops, drop, &drop->tuples[i]);
	TAILQ_REMOVE(&drops->waiting, drop, by_age);
	drops->n_waiting--;
	drops->counts.pending.packets -= drop->count.packets;
	drops->counts.pending.bytes -= drop->count.bytes;
	free(drop);
}

static struct waiting_drop *oldest_of(const struct flow_drops *drops)
{
	return TAILQ_LAST(&drops->waiting, waiting_drops);
}

/* @count: sum of the drops that no record has */
static void expire_oldest(struct flow_drops *drops, struct count *count)
{
	struct waiting_drop *oldest = oldest_of(drops);

	count_add(count, &oldest->count);
	remove_waiting(drops, oldest);
}

void flow_drops_expire(struct flow_drops *drops, int64_t end_ns)
{
	if (end_ns < drops->flip_ns)
		drops->wait_ns = drops->flip_ns - end_ns;
	while (!TAILQ_EMPTY(&drops->waiting) &&
	       oldest_of(drops)->flip_ns <= end_ns)
		expire_oldest(drops, &drops->counts.no_flow);
}

static void set_tuple(struct drop_tuple *tuple, const uint8_t src[16],
		      const uint8_t dst[16], uint16_t src_port, uint16_t dst_port)
{
	memcpy(tuple->src, src, sizeof(tuple->src));
	memcpy(tuple->dst, dst, sizeof(tuple->dst));
	tuple->src_port = src_port;
	tuple->dst_port = dst_port;
}

/* @return whether both have the same tuples */
static bool has_tuples_of(const struct waiting_drop *drop,
			  const struct waiting_drop *other)
{
	return drop->n_tuples == other->n_tuples &&
	       !memcmp(drop->tuples, other->tuples,
		       drop->n_tuples * sizeof(*drop->tuples));
}

/*
 * Find a drop with the same tuples, place and reason that has not waited for long, to add to it:
 * packets of a tuple that are dropped all the time take few entries and leave room for others.
 */
static struct waiting_drop *find_waiting(struct flow_drops *drops,
					 const struct waiting_drop *drop)
{
	const struct drop_tuple *tuple = &drop->tuples[AT_DROP];
	struct waiting_drop *it = slots_pointer(&drops->by_tuple, tuple);

	while (it && (drops->flip_ns - it->first_flip_ns >
			      drops->wait_ns / WAITING_PARTS ||
		      it->netns != drop->netns || it->ifindex != drop->ifindex ||
		      it->has_reason != drop->has_reason ||
		      it->reason != drop->reason || !has_tuples_of(it, drop)))
		it = *next_of(it, tuple);
	return it;
}

static const struct netns *find_netns(const struct host *host, uint32_t inode)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].inode == inode && !host->netns[i].is_beyond)
			return &host->netns[i];
	return NULL;
}

/*
 * A packet may have come into its namespace with what NAT in another one has made of it: set the tuple with
 * which its flow came into the first one.
 */
static void lead_back(const struct flow_drops *drops,
		      const struct netobs_drop *drop, struct drop_tuple *tuple)
{
	const struct flow_extra *nat = drops->options.nat;
	const struct netns *netns =
		nat && nat->find_key ?
			find_netns(drops->host, drop->netns_inode) :
			NULL;
	struct flow_entry entry = {
		.key = { .src_port = tuple->src_port,
			 .dst_port = tuple->dst_port,
			 .proto = drop->protocol,
			 .ifindex = drop->ifindex },
		.tally = { .first_ns = (uint64_t)drops->begun_stamp_ns,
			   .last_ns = (uint64_t)drops->ended_stamp_ns },
	};
	struct flow_key key;

	if (!netns)
		return;
	entry.key.netns = netns->index;
	memcpy(&entry.key.src, tuple->src, sizeof(tuple->src));
	memcpy(&entry.key.dst, tuple->dst, sizeof(tuple->dst));
	key = entry.key;
	nat->find_key(&entry, false, &key, nat->ctx);
	set_tuple(tuple, key.src.bytes, key.dst.bytes, key.src_port,
		  key.dst_port);
}

static void set_tuples(const struct flow_drops *drops,
		       struct waiting_drop *waiting,
		       const struct netobs_drop *drop)
{
	struct drop_tuple *at_drop = &waiting->tuples[AT_DROP];
	struct drop_tuple *came_in = &waiting->tuples[CAME_IN];

	set_tuple(at_drop, drop->src, drop->dst, drop->src_port, drop->dst_port);
	at_drop->proto = drop->protocol;
	*came_in = *at_drop;
	if (drop->record.has & NETOBS_DROP_HAS_ORIG)
		set_tuple(came_in, drop->orig_src, drop->orig_dst,
			  drop->orig_src_port, drop->orig_dst_port);
	lead_back(drops, drop, came_in);
	waiting->n_tuples =
		memcmp(at_drop, came_in, sizeof(*at_drop)) != 0 ? TUPLES : 1;
}

static void make_wait(struct flow_drops *drops, const struct netobs_drop *drop)
{
	struct waiting_drop *waiting = calloc(1, sizeof(*waiting)), *known;

	if (!waiting) {
		count_add(&drops->counts.no_room, drop);
		return;
	}
	set_tuples(drops, waiting, drop);
	waiting->netns = drop->netns_inode;
	waiting->ifindex = drop->ifindex;
	waiting->reason = drop->reason;
	waiting->has_reason = drop->record.has & NETOBS_DROP_HAS_REASON;
	count_add(&waiting->count, drop);
	waiting->last_ns = drop->last_ns;
	waiting->first_flip_ns = waiting->flip_ns = drops->flip_ns;
	known = find_waiting(drops, waiting);
	if (known) { /* it waits anew, with what was there */
		waiting->first_flip_ns = known->first_flip_ns;
		count_add(&waiting->count, &known->count);
		waiting->last_ns = max_i64(waiting->last_ns, known->last_ns);
		remove_waiting(drops, known);
	}
	if (drops->n_waiting >= FLOW_DROPS_MAX)
		expire_oldest(drops, &drops->counts.no_room);
	if (add_waiting(drops, waiting))
		return;
	count_add(&drops->counts.no_room, &waiting->count);
	free(waiting);
}

void flow_drops_note(struct flow_drops *drops, const struct netobs_drop *drop)
{
	const uint32_t has = drop->record.has;
	struct flow_drop_counts *counts = &drops->counts;

	if (drop->kind == NETOBS_DROP_BENIGN) {
		count_add(&counts->benign, drop);
		return;
	}
	count_add(&counts->all, drop);
	if (has & NETOBS_DROP_HAS_REST)
		count_add(&counts->no_room, drop);
	else if (!(has & NETOBS_DROP_HAS_ADDRS) ||
		 !(has & NETOBS_DROP_HAS_PORTS) || !drop->netns_inode)
		count_add(&counts->no_tuple, drop);
	else
		make_wait(drops, drop);
}

static void take_drop(const struct netobs_drop *drop, void *ctx)
{
	struct flow_drops *drops = ctx;

	drops->flip_ns = max_i64(drops->flip_ns, drops->feed.ended_ns);
	flow_drops_note(drops, drop);
}

static void lose_drops(const struct count *lost, void *ctx)
{
	struct flow_drops *drops = ctx;

	count_add(&drops->counts.all, lost);
	count_add(&drops->counts.no_room, lost);
}

/* ---- Where flows were seen -------------------------------------------------------------- */

/* @return whether the interface is one end of a pair, and the other one is in that namespace */
static bool leads_to(const struct host *host, const struct netobs_point *point,
		     uint32_t inode)
{
	const struct netns *netns = find_netns(host, point->netns_inode);
	const struct netif *netif =
		netns ? host_find(host, netns->index, point->ifindex) : NULL;

	return netif && peers_inode(host, netns, netif) == inode;
}

/*
 * @return whether the drop was at a record's point. With records per interface, a drop that is
 * known to be at another interface belongs to another record, and so does one in a namespace that
 * has records itself.
 */
static bool is_at(const struct flow_drops *drops,
		  const struct netobs_point *point,
		  const struct waiting_drop *drop)
{
	const struct host *host = drops->host;

	if (point->netns_inode == drop->netns)
		return !drops->options.per_interface || !drop->ifindex ||
		       point->ifindex == drop->ifindex;
	return leads_to(host, point, drop->netns) &&
	       (!drops->options.per_interface || !find_netns(host, drop->netns));
}

static bool was_seen(const struct flow_drops *drops,
		     const struct netobs_flow *record,
		     const struct waiting_drop *drop)
{
	for (uint32_t i = 0; i < record->n_points; i++)
		if (is_at(drops, &record->points[i], drop))
			return true;
	return false;
}

/* ---- Records ---------------------------------------------------------------------------- */

/* The record's last cause is that of the latest drop. */
static void add_drop(struct flow_drops *drops, struct netobs_flow *record,
		     const struct waiting_drop *drop, int64_t *last_ns)
{
	record->has |= NETOBS_HAS_DROPS;
	record->drop_packets += drop->count.packets;
	record->drop_bytes += drop->count.bytes;
	count_add(&drops->counts.in_flows, &drop->count);
	if (drop->last_ns < *last_ns)
		return;
	*last_ns = drop->last_ns;
	record->has &= ~(uint32_t)NETOBS_HAS_DROP_REASON;
	if (!drop->has_reason)
		return;
	record->has |= NETOBS_HAS_DROP_REASON;
	record->drop_reason = drop->reason;
	drop_names_cause(&drops->feed.names, drop->reason, record->drop_cause,
			 sizeof(record->drop_cause));
}

/*
 * Flows without ports have the same ICMP type and code before and after NAT. @is_behind: it is the tuple
 * behind NAT, which several flows may have. So it finds only drops that came in with it. The others belong
 * to the flow that has the tuple with which they came in.
 */
static void take_tuple(struct flow_drops *drops, struct netobs_flow *record,
		       const uint8_t src[16], const uint8_t dst[16],
		       uint16_t src_port, uint16_t dst_port, bool is_behind,
		       int64_t *last_ns)
{
	struct drop_tuple tuple = { .proto = record->proto };
	struct waiting_drop *drop, *next;

	if (!(record->has & NETOBS_HAS_PORTS))
		dst_port = (uint16_t)(record->icmp_type << 8 | record->icmp_code);
	set_tuple(&tuple, src, dst, src_port, dst_port);
	for (drop = slots_pointer(&drops->by_tuple, &tuple); drop; drop = next) {
		struct waiting_drop **its_next = next_of(drop, &tuple);

		next = *its_next;
		if ((is_behind && its_next != &drop->next[drop->n_tuples - 1]) ||
		    !was_seen(drops, record, drop))
			continue;
		add_drop(drops, record, drop, last_ns);
		remove_waiting(drops, drop);
	}
}

static void fill_drops(void *data, struct netobs_flow *record, void *ctx)
{
	struct flow_drops *drops = ctx;
	int64_t last_ns = INT64_MIN;

	(void)data;
	if (!drops->n_waiting)
		return;
	take_tuple(drops, record, record->src, record->dst, record->src_port,
		   record->dst_port, false, &last_ns);
	if (record->has & NETOBS_HAS_ORIG)
		take_tuple(drops, record, record->orig_src, record->orig_dst,
			   record->orig_src_port, record->orig_dst_port, false,
			   &last_ns);
	if (record->has & NETOBS_HAS_XLAT)
		take_tuple(drops, record, record->xlat_src, record->xlat_dst,
			   record->xlat_src_port, record->xlat_dst_port, true,
			   &last_ns);
}

/* ---- Drains ----------------------------------------------------------------------------- */

/* Drops that are not read now stay in the kernel's table until that generation ends again. */
static void report_failure(struct flow_drops *drops, int err)
{
	log_error(drops->log, "cannot read dropped packets: %s", strerror(-err));
}

static void before_flip(uint32_t generation, int64_t stamp_ns, void *ctx)
{
	struct flow_drops *drops = ctx;

	(void)generation;
	drops->begun_stamp_ns = drops->ended_stamp_ns;
	drops->ended_stamp_ns = stamp_ns;
}

/* A generation of flows has ended: so does one of drops. */
static void after_flip(int64_t flip_ns, void *ctx)
{
	struct flow_drops *drops = ctx;
	int err;

	drops->flip_ns = flip_ns;
	err = drop_feed_begin(&drops->feed);
	if (err)
		report_failure(drops, err);
	drops->phase = DROPS_DRAINING;
}

static void step_drain(struct flow_drops *drops)
{
	int r = drop_feed_step(&drops->feed);

	if (r > 0)
		return;
	if (r < 0)
		report_failure(drops, r);
	drops->counts.missed = drop_programs_missed(&drops->feed.programs);
	drops->phase = DROPS_AT_REST;
	if (!drops->options.finds_spaces)
		return;
	spaces_begin_round(&drops->spaces);
	spaces_begin_search(&drops->spaces);
	drops->phase = DROPS_SPACES;
}

/* Read drops of the generation that has ended, and find new namespaces. */
static bool step(uint32_t *ret_wait_ms, void *ctx)
{
	struct flow_drops *drops = ctx;

	if (drops->phase == DROPS_DRAINING)
		step_drain(drops);
	else if (drops->phase == DROPS_SPACES && !spaces_step(&drops->spaces))
		drops->phase = DROPS_AT_REST;
	*ret_wait_ms = drops->phase == DROPS_DRAINING ?
			       drop_feed_wait_ms(&drops->feed) :
			       0;
	return drops->phase != DROPS_AT_REST;
}

static void end(int64_t done_ns, void *ctx)
{
	flow_drops_expire(ctx, done_ns);
}

static void add_stats(struct netobs_stats *stats, const void *ctx)
{
	const struct flow_drop_counts *counts =
		&((const struct flow_drops *)ctx)->counts;

	count_add(&stats->drops, &counts->all);
	count_add(&stats->drops_in_flows, &counts->in_flows);
	count_add(&stats->drops_pending, &counts->pending);
	count_add(&stats->drops_no_flow, &counts->no_flow);
	count_add(&stats->drops_no_tuple, &counts->no_tuple);
	count_add(&stats->drops_no_room, &counts->no_room);
	count_add(&stats->drops_benign, &counts->benign);
	stats->drops_missed = counts->missed;
}

/* ---- Life ------------------------------------------------------------------------------- */

void flow_drops_init(struct flow_drops *drops, const struct host *host,
		     const struct flow_drops_options *options,
		     const struct log *log)
{
	*drops = (struct flow_drops){
		.host = host,
		.log = log,
		.options = *options,
		.feed = { .take = take_drop, .lose = lose_drops, .ctx = drops },
		.spaces = { .host = host, .log = log },
		.extra = { .fill = fill_drops,
			   .before_flip = before_flip,
			   .after_flip = after_flip,
			   .step = step,
			   .end = end,
			   .add_stats = add_stats,
			   .ctx = drops },
	};
	TAILQ_INIT(&drops->waiting);
}

int flow_drops_open(struct flow_drops *drops, const struct host *host,
		    const struct flow_drops_options *options,
		    const struct log *log)
{
	int err;

	flow_drops_init(drops, host, options, log);
	err = drop_feed_open(&drops->feed, options->no_reasons, log);
	if (err)
		flow_drops_close(drops);
	return err;
}

void flow_drops_close(struct flow_drops *drops)
{
	flow_drops_expire(drops, INT64_MAX);
	drop_feed_close(&drops->feed);
	spaces_done(&drops->spaces);
	slots_free(&drops->by_tuple);
	drops->host = NULL;
}
