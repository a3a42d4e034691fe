/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translations.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/util.h"
#include "bpf/parse/headers.h"
#include "host/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netobs/flow.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	BEFORE,
	AFTER,
	SIDES,
	FACES = NAT_DIRECTIONS * SIDES,
	HEADS = 1 << 19,
	SWEEP = 2, /* translations that are looked at with each new one */
	LOOKS = 64, /* at translations with a face, from that which was reported last on */
};

enum {
	/* A packet is reported by the tick of the clock, and some time after it came in. */
	SLACK_NS = 50 * NSEC_PER_MSEC,
};

/*
 * A translation is used for packets up to so long after the last report of it: of packets that the
 * kernel forwards without an entry (flowtable), and of those whose report was lost. The kernel
 * keeps an entry for at least as long.
 */
#define GRACE_NS (10 * NSEC_PER_SEC)

struct tuple {
	struct ip_addr src, dst;
	uint16_t src_port, dst_port; /* as in keys of flows */
	uint32_t reserved;
};

struct translation {
	int64_t first_ns, last_ns; /* reported, or used */
	struct tuple before[NAT_DIRECTIONS];
	/* Lists of what has one place: 1 + translation * FACES + face; 0: none. */
	uint32_t next[FACES], previous[FACES];
	/* Where packets have it: the interface of the last report, and another one before. */
	uint32_t ifindex[FACES], former[FACES];
	uint32_t serial; /* of what is at its place; odd: nothing is */
	uint32_t drains; /* as translations.drains, when it was reported last */
	uint16_t netns;
	uint16_t zone;
	uint8_t proto;
	uint8_t reserved[3];
};

/* What chooses the place of a face. */
struct face_key {
	struct tuple tuple;
	uint16_t netns;
	uint8_t proto;
	uint8_t side;
	uint32_t reserved;
};

_Static_assert(sizeof(struct face_key) ==
		       sizeof(((struct translations *)0)->secret),
	       "no padding, and a secret for each word");

static bool has_types(uint8_t proto)
{
	return proto == IP_PROTO_ICMP || proto == IP_PROTO_ICMPV6;
}

/* Of ICMP, the type is the direction's own. */
static struct tuple tuple_of(const struct translation *translation, uint32_t face)
{
	const uint32_t dir = face / SIDES;
	const struct tuple *other = &translation->before[!dir];
	struct tuple tuple = translation->before[dir];

	if (face % SIDES == BEFORE)
		return tuple;
	tuple.src = other->dst;
	tuple.dst = other->src;
	if (has_types(translation->proto))
		return tuple;
	tuple.src_port = other->dst_port;
	tuple.dst_port = other->src_port;
	return tuple;
}

static struct face_key face_key_of(const struct translation *translation,
				   uint32_t face)
{
	return (struct face_key){ .tuple = tuple_of(translation, face),
				  .netns = translation->netns,
				  .proto = translation->proto,
				  .side = face % SIDES };
}

/* The face with which packets are at an interface. */
static struct face_key face_key_of_flow(const struct flow_key *key)
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

static uint32_t *head_of(const struct translations *translations,
			 const struct face_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key), translations->secret);

	return &translations->heads[hash & (HEADS - 1)];
}

static struct translation *translation_of(const struct translations *translations,
					  uint32_t node)
{
	return &translations->list[(node - 1) / FACES];
}

static uint32_t face_of(uint32_t node)
{
	return (node - 1) % FACES;
}

static uint32_t next_of(const struct translations *translations, uint32_t node)
{
	return translation_of(translations, node)->next[face_of(node)];
}

static bool has_face(const struct translations *translations, uint32_t node,
		     const struct face_key *key)
{
	const struct face_key its =
		face_key_of(translation_of(translations, node), face_of(node));

	return !memcmp(&its, key, sizeof(its));
}

/* ---- What is reported --------------------------------------------------------------- */

static struct ip_addr addr_of(const uint32_t words[4], uint16_t family)
{
	struct ip_addr addr = { .words = { 0, 0, htonl(0xffff), words[0] } };

	if (family == AF_INET6)
		memcpy(addr.words, words, sizeof(addr.words));
	return addr;
}

/* As the parser has ports in keys. */
static struct tuple read_tuple(const struct nat_tuple *from)
{
	struct tuple tuple = { .src = addr_of(from->src, from->family),
			       .dst = addr_of(from->dst, from->family) };

	switch (from->proto) {
	case IP_PROTO_TCP:
	case IP_PROTO_UDP:
	case IP_PROTO_UDPLITE:
	case IP_PROTO_SCTP:
	case IP_PROTO_DCCP:
		tuple.src_port = ntohs(from->src_port);
		tuple.dst_port = ntohs(from->dst_port);
		break;
	case IP_PROTO_ICMP:
	case IP_PROTO_ICMPV6:
		tuple.dst_port = ntohs(from->dst_port); /* type and code */
		break;
	}
	return tuple;
}

static bool is_same_translation(const struct translation *a,
				const struct translation *b)
{
	return a->netns == b->netns && a->zone == b->zone &&
	       a->proto == b->proto &&
	       !memcmp(a->before, b->before, sizeof(a->before));
}

/* NULL: it is new. */
static struct translation *find_known(const struct translations *translations,
				      const struct translation *wanted)
{
	const struct face_key key = face_key_of(wanted, 0);

	for (uint32_t node = *head_of(translations, &key); node;
	     node = next_of(translations, node)) {
		struct translation *known = translation_of(translations, node);

		if (!face_of(node) && is_same_translation(known, wanted))
			return known;
	}
	return NULL;
}

static uint32_t node_of(const struct translations *translations,
			const struct translation *translation, uint32_t face)
{
	return 1 + (uint32_t)(translation - translations->list) * FACES + face;
}

static uint32_t *previous_of(const struct translations *translations,
			     uint32_t node)
{
	return &translation_of(translations, node)->previous[face_of(node)];
}

static void link_faces(struct translations *translations,
		       struct translation *translation)
{
	for (uint32_t face = 0; face < FACES; face++) {
		const struct face_key key = face_key_of(translation, face);
		uint32_t *head = head_of(translations, &key);

		translation->next[face] = *head;
		translation->previous[face] = 0;
		*head = node_of(translations, translation, face);
		if (translation->next[face])
			*previous_of(translations, translation->next[face]) =
				*head;
	}
}

static void unlink_face(const struct translations *translations,
			const struct translation *translation, uint32_t face)
{
	const struct face_key key = face_key_of(translation, face);
	const uint32_t next = translation->next[face];
	const uint32_t previous = translation->previous[face];

	if (next)
		*previous_of(translations, next) = previous;
	if (previous)
		translation_of(translations, previous)->next[face_of(previous)] =
			next;
	else
		*head_of(translations, &key) = next;
}

static void unlink_faces(const struct translations *translations,
			 const struct translation *translation)
{
	for (uint32_t face = 0; face < FACES; face++)
		unlink_face(translations, translation, face);
}

static void remove_translation(struct translations *translations,
			       struct translation *translation)
{
	unlink_faces(translations, translation);
	translation->serial++;
	translation->next[0] = translations->first_free;
	translations->first_free =
		1 + (uint32_t)(translation - translations->list);
	translations->known--;
}

/* Remove some of those that have ended: as many as come, if there are. */
static void sweep_translations(struct translations *translations, int64_t now_ns)
{
	const int64_t least = now_ns - TRANSLATION_KEEP_S * NSEC_PER_SEC;

	for (int i = 0; i < SWEEP && translations->n; i++) {
		struct translation *translation =
			&translations->list[translations->hand];

		if (!(translation->serial & 1) && translation->last_ns < least)
			remove_translation(translations, translation);
		translations->hand = (translations->hand + 1) % translations->n;
	}
}

/* NULL: there is no room. */
static struct translation *take_place(struct translations *translations)
{
	struct translation *translation;

	if (translations->first_free) {
		translation = &translations->list[translations->first_free - 1];
		translations->first_free = translation->next[0];
		return translation;
	}
	if (translations->n == TRANSLATIONS_MAX)
		return NULL;
	translation = &translations->list[translations->n++];
	translation->serial = 1;
	return translation;
}

static struct translation *add_translation(struct translations *translations,
					   const struct translation *wanted)
{
	struct translation *translation;
	uint32_t serial;

	sweep_translations(translations, wanted->last_ns);
	translation = take_place(translations);
	if (!translation) {
		translations->refused++;
		return NULL;
	}
	serial = translation->serial + 1;
	*translation = *wanted;
	translation->serial = serial;
	link_faces(translations, translation);
	translations->known++;
	return translation;
}

static void set_interface(struct translation *translation, uint32_t face,
			  uint32_t ifindex)
{
	if (!ifindex || translation->ifindex[face] == ifindex)
		return;
	translation->former[face] = translation->ifindex[face];
	translation->ifindex[face] = ifindex;
}

/* The other direction takes the same way back, unless it is known. */
static void set_interfaces(struct translation *translation,
			   const struct nat_event *event)
{
	const uint32_t here = (event->dir & 1) * SIDES;
	const uint32_t back = !(event->dir & 1) * SIDES;

	set_interface(translation, here + BEFORE, event->from_ifindex);
	set_interface(translation, here + AFTER, event->ifindex);
	if (!translation->ifindex[back + BEFORE])
		set_interface(translation, back + BEFORE, event->ifindex);
	if (!translation->ifindex[back + AFTER])
		set_interface(translation, back + AFTER, event->from_ifindex);
}

/*
 * A translation in use is reported in each generation, which may be read during the drain before its
 * own. What was out of use meanwhile does not compete for packets of that time.
 */
static bool has_rested(const struct translations *translations,
		       const struct translation *known, int64_t now_ns)
{
	return translations->drains - known->drains >= 3 ||
	       now_ns - known->last_ns > GRACE_NS;
}

void translations_note(struct translations *translations,
		       const struct nat_event *event)
{
	const int64_t now_ns = (int64_t)event->time_ns;
	struct translation *known, wanted = {
		.first_ns = now_ns,
		.last_ns = now_ns,
		.before = { read_tuple(&event->tuples[NAT_ORIGINAL]),
			    read_tuple(&event->tuples[NAT_REPLY]) },
		.netns = event->netns,
		.zone = event->zone,
		.proto = event->tuples[NAT_ORIGINAL].proto,
	};

	known = find_known(translations, &wanted);
	if (known && has_rested(translations, known, now_ns))
		known->first_ns = now_ns;
	if (known) {
		/* Lists begin with what was reported last. */
		unlink_faces(translations, known);
		link_faces(translations, known);
	} else {
		known = add_translation(translations, &wanted);
	}
	if (!known)
		return;
	known->drains = translations->drains;
	if (now_ns > known->last_ns)
		known->last_ns = now_ns;
	set_interfaces(known, event);
}

/* ---- Flows -------------------------------------------------------------------------- */

/* Beside a flow: what its entries that came in, or left, have found. */
struct end {
	uint32_t node; /* as in translation.next; 0: none */
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
	    translation->first_ns > (int64_t)entry->tally.last_ns + GRACE_NS ||
	    translation->last_ns < (int64_t)entry->tally.first_ns - GRACE_NS)
		return 0;
	return place;
}

static bool is_same_other(const struct translations *translations, uint32_t a,
			  uint32_t b)
{
	const struct tuple one =
		tuple_of(translation_of(translations, a), face_of(a) ^ 1);
	const struct tuple two =
		tuple_of(translation_of(translations, b), face_of(b) ^ 1);

	return !memcmp(&one, &two, sizeof(one));
}

/* The best one; ambiguous: there are several that differ. */
static struct end find_end(const struct translations *translations,
			   const struct flow_entry *entry)
{
	const struct face_key key = face_key_of_flow(&entry->key);
	struct end end = { 0 };
	int best = 0, n = 0;

	for (uint32_t node = *head_of(translations, &key); node;
	     node = next_of(translations, node)) {
		struct translation *translation =
			translation_of(translations, node);
		int rating;

		if (!has_face(translations, node, &key))
			continue;
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
				    !is_same_other(translations, end.node, node));
		best = rating;
		end.node = node;
		end.serial = translation->serial;
	}
	return end;
}

static void join_end(const struct translations *translations, struct end *end,
		     const struct end *other)
{
	end->is_ambiguous |= other->is_ambiguous;
	if (!other->node)
		return;
	if (end->node && !is_same_other(translations, end->node, other->node))
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
	join_end(translations, &ends->sides[side], &end);
	/* In use, although its packets may not be reported any more. */
	if (end.node && !end.is_ambiguous) {
		struct translation *translation =
			translation_of(translations, end.node);

		translation->last_ns = (int64_t)max_u64(
			(uint64_t)translation->last_ns, entry->tally.last_ns);
	}
}

static void join_translations(void *data, const void *from, void *ctx)
{
	const struct ends *other = from;
	struct ends *ends = data;

	for (uint32_t side = 0; side < SIDES; side++)
		join_end(ctx, &ends->sides[side], &other->sides[side]);
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
		translation = translation_of(translations, end->node);
		if (translation->serial != end->serial)
			continue;
		own = tuple_of(translation, face_of(end->node));
		other = tuple_of(translation, face_of(end->node) ^ 1);
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
	translations_note(ctx, event);
}

int translations_init(struct translations *translations, bool knows_zones,
		      const struct host *host)
{
	*translations = (struct translations){
		.host = host,
		.list = calloc(TRANSLATIONS_MAX, sizeof(struct translation)),
		.heads = calloc(HEADS, sizeof(uint32_t)),
		.knows_zones = knows_zones,
		.extra = { .size = sizeof(struct ends),
			   .note = note_translation,
			   .join = join_translations,
			   .fill = fill_translation,
			   .ctx = translations },
	};
	secret_fill(translations->secret, sizeof(translations->secret));
	if (translations->list && translations->heads)
		return 0;
	translations_close(translations);
	return -ENOMEM;
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
	free(translations->list);
	free(translations->heads);
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
	translations->drains++;
}
