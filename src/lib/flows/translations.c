/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translations.h"

#include "base/util.h"
#include "bpf/parse/headers.h"
#include "host/host.h"

#include <netobs/flow.h>
#include <string.h>

enum {
	LOOKS = 64, /* at translations with a face, from that which was reported last on */
};

enum {
	/* A packet is reported by the tick of the clock, and some time after it came in. */
	SLACK_NS = 50 * NSEC_PER_MSEC,
};

/* The face with which packets are at an interface. */
static struct face_key face_key_of(const struct flow_key *key)
{
	return (struct face_key){
		.tuple = { .src = key->src,
			   .dst = key->dst,
			   .src_port = key->src_port,
			   .dst_port = key->dst_port },
		.netns = key->netns,
		.proto = key->proto,
		.side = key->flags & KEY_EGRESS ? AFTER : BEFORE,
	};
}

/* Beside a flow: what its entries that came in, or left, have found. */
struct end {
	uint32_t node; /* of the table; 0: none */
	uint32_t serial;
	uint32_t is_ambiguous;
};

struct ends {
	struct end sides[SIDES]; /* of the face that the flow has */
};

/* The best that rate_face() gives. */
enum { IS_POSSIBLE = 1, IS_MEANWHILE = 1, IS_HERE = 2, BEST = 4 };

static bool is_tagged_for(const struct flow_key *key, const struct netif *netif)
{
	const uint16_t tag = VLAN_PRESENT | netif->vlan_id;

	return netif->type != LINK_TYPE_VLAN ||
	       (key->vlan & FLOW_TAG_MASK) == tag ||
	       (key->outer_vlan & FLOW_TAG_MASK) == tag;
}

/* Whether packets at @upper have been at the entry's interface, say a port of that bridge. */
static bool is_above(const struct host *host, const struct flow_key *key,
		     uint32_t upper)
{
	const struct netif *here, *there;

	if (!host || !upper)
		return false;
	here = host_find(host, key->netns, key->ifindex);
	there = host_find(host, key->netns, upper);
	return here && there && here->stack == there->stack &&
	       here->level != there->level && is_tagged_for(key, there);
}

/* Whether packets of the entry may have this face, and how surely. */
static int rate_place(const struct host *host,
		      const struct translation *translation, uint32_t face,
		      const struct flow_key *key)
{
	const uint32_t last = translation->ifindex[face];
	const uint32_t former = translation->former[face];

	if (last == key->ifindex || former == key->ifindex)
		return IS_POSSIBLE + IS_HERE;
	return is_above(host, key, last) || is_above(host, key, former) ?
		       IS_POSSIBLE :
		       0;
}

static bool is_meanwhile(const struct translation *translation,
			 const struct flow_entry *entry)
{
	return translation->first_ns <= (int64_t)entry->tally.last_ns + SLACK_NS &&
	       translation->last_ns >= (int64_t)entry->tally.first_ns - SLACK_NS;
}

/* How likely it is that packets had this face: more is better; 0: they had not. */
static int rate_face(const struct host *host,
		     const struct translation *translation, uint32_t face,
		     const struct flow_entry *entry)
{
	const int place = rate_place(host, translation, face, &entry->key);

	if (!place || is_meanwhile(translation, entry))
		return place ? place + IS_MEANWHILE : 0;
	/* A connection that begins is reported itself. */
	if (entry->tally.attrs.marks & TCP_SYN ||
	    translation->first_ns >
		    (int64_t)entry->tally.last_ns + TRANSLATION_GRACE_NS ||
	    translation->last_ns <
		    (int64_t)entry->tally.first_ns - TRANSLATION_GRACE_NS)
		return 0;
	return place;
}

static bool is_same_other(const struct translation_table *table, uint32_t a,
			  uint32_t b)
{
	const struct tuple one =
		translation_tuple(translation_of(table, a), face_of(a) ^ 1);
	const struct tuple two =
		translation_tuple(translation_of(table, b), face_of(b) ^ 1);

	return !memcmp(&one, &two, sizeof(one));
}

/* The best one; ambiguous: there are several that differ. */
static struct end find_end(const struct translations *translations,
			   const struct flow_entry *entry)
{
	const struct translation_table *table = &translations->table;
	const struct face_key key = face_key_of(&entry->key);
	struct end end = { 0 };
	int best = 0, n = 0;

	for (uint32_t node = translation_table_first(table, &key); node;
	     node = translation_table_next(table, node, &key)) {
		struct translation *translation = translation_of(table, node);
		int rating;

		if (n++ == LOOKS) {
			end.is_ambiguous |= best < BEST ||
					    is_meanwhile(translation, entry);
			return end;
		}
		rating = rate_face(translations->host, translation,
				   face_of(node), entry);
		if (!rating || rating < best)
			continue;
		end.is_ambiguous = rating == best &&
				   (end.is_ambiguous ||
				    !is_same_other(table, end.node, node));
		best = rating;
		end.node = node;
		end.serial = translation->serial;
	}
	return end;
}

static void join_end(const struct translation_table *table, struct end *end,
		     const struct end *other)
{
	end->is_ambiguous |= other->is_ambiguous;
	if (!other->node)
		return;
	if (end->node && !is_same_other(table, end->node, other->node))
		end->is_ambiguous = true;
	end->node = other->node;
	end->serial = other->serial;
}

static void note_translation(void *data, const struct flow_entry *entry, void *ctx)
{
	const struct translations *translations = ctx;
	const uint32_t side = entry->key.flags & KEY_EGRESS ? AFTER : BEFORE;
	struct ends *ends = data;
	struct end end;

	if (entry->key.tunnel || entry->key.flags & KEY_NO_TRANSPORT)
		return;
	end = find_end(translations, entry);
	join_end(&translations->table, &ends->sides[side], &end);
	/* In use, although its packets may not be reported any more. */
	if (end.node && !end.is_ambiguous) {
		struct translation *translation =
			translation_of(&translations->table, end.node);

		translation->last_ns = (int64_t)max_u64(
			(uint64_t)translation->last_ns, entry->tally.last_ns);
	}
}

static void join_translations(void *data, const void *from, void *ctx)
{
	const struct translations *translations = ctx;
	const struct ends *other = from;
	struct ends *ends = data;

	for (uint32_t side = 0; side < SIDES; side++)
		join_end(&translations->table, &ends->sides[side],
			 &other->sides[side]);
}

static void set_zone(const struct translations *translations, uint16_t zone,
		     struct netobs_flow *record)
{
	if (!translations->knows_zones || record->has & NETOBS_HAS_ZONE)
		return;
	record->has |= NETOBS_HAS_ZONE;
	record->zone_id = zone;
}

static void set_translated(struct netobs_flow *record, const struct tuple *tuple)
{
	record->has |= NETOBS_HAS_XLAT;
	memcpy(record->xlat_src, tuple->src.bytes, sizeof(record->xlat_src));
	memcpy(record->xlat_dst, tuple->dst.bytes, sizeof(record->xlat_dst));
	if (!(record->has & NETOBS_HAS_PORTS))
		return;
	record->has |= NETOBS_HAS_XLAT_PORTS;
	record->xlat_src_port = tuple->src_port;
	record->xlat_dst_port = tuple->dst_port;
}

static void set_original(struct netobs_flow *record, const struct tuple *tuple)
{
	record->has |= NETOBS_HAS_ORIG;
	memcpy(record->orig_src, tuple->src.bytes, sizeof(record->orig_src));
	memcpy(record->orig_dst, tuple->dst.bytes, sizeof(record->orig_dst));
	if (!(record->has & NETOBS_HAS_PORTS))
		return;
	record->has |= NETOBS_HAS_ORIG_PORTS;
	record->orig_src_port = tuple->src_port;
	record->orig_dst_port = tuple->dst_port;
}

static bool is_translated(const struct tuple *a, const struct tuple *b)
{
	return memcmp(a, b, sizeof(*a)) != 0;
}

static void fill_translation(void *data, struct netobs_flow *record, void *ctx)
{
	struct translations *translations = ctx;
	struct ends *ends = data;

	for (uint32_t side = 0; side < SIDES; side++) {
		const struct end *end = &ends->sides[side];
		const struct translation *translation;
		struct tuple own, other;

		translations->ambiguous += end->is_ambiguous;
		if (!end->node || end->is_ambiguous)
			continue;
		translation = translation_of(&translations->table, end->node);
		if (translation->serial != end->serial)
			continue;
		own = translation_tuple(translation, face_of(end->node));
		other = translation_tuple(translation, face_of(end->node) ^ 1);
		if (!is_translated(&own, &other))
			continue;
		if (side == BEFORE)
			set_translated(record, &other);
		else
			set_original(record, &other);
		set_zone(translations, translation->zone, record);
	}
	*ends = (struct ends){ 0 };
}

/* ---- Life --------------------------------------------------------------------------- */

static void on_nat_event(void *ctx, const struct nat_event *event)
{
	struct translations *translations = ctx;

	translation_table_note(&translations->table, event);
}

int translations_init(struct translations *translations, bool knows_zones,
		      const struct host *host)
{
	*translations = (struct translations){
		.host = host,
		.knows_zones = knows_zones,
		.extra = { .size = sizeof(struct ends),
			   .note = note_translation,
			   .join = join_translations,
			   .fill = fill_translation,
			   .ctx = translations },
	};
	return translation_table_init(&translations->table);
}

int translations_open(struct translations *translations,
		      const struct program_set *maps, uint32_t n_cpus,
		      bool knows_zones, const struct host *host,
		      const struct log *log)
{
	int err = translations_init(translations, knows_zones, host);

	if (err)
		return err;
	return nat_open(&translations->nat, maps, n_cpus, on_nat_event,
			translations, log);
}

void translations_close(struct translations *translations)
{
	nat_close(&translations->nat);
	translation_table_done(&translations->table);
	*translations = (struct translations){ 0 };
}

void translations_begin(const struct translations *translations,
			uint32_t generation)
{
	nat_forget(&translations->nat, generation);
}

void translations_settle(struct translations *translations)
{
	nat_read(&translations->nat);
	translations->table.drains++;
}
