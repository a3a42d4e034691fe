/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translation_table.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/util.h"
#include "bpf/parse/headers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	HEADS = 1 << 19,
	SWEEP = 2, /* translations that are looked at with each new one */
	RESTED_DRAINS = 3,
};

_Static_assert(sizeof(struct face_key) ==
		       sizeof(((struct translation_table *)0)->secret),
	       "no padding, and a secret for each word");

static bool has_types(uint8_t proto)
{
	return proto == IP_PROTO_ICMP || proto == IP_PROTO_ICMPV6;
}

/* Of ICMP, the type is the direction's own. */
struct tuple translation_tuple(const struct translation *translation,
			       uint32_t face)
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

bool translation_changes(const struct translation *translation)
{
	const struct tuple before = translation_tuple(translation, BEFORE);
	const struct tuple after = translation_tuple(translation, AFTER);

	return memcmp(&before, &after, sizeof(before)) != 0;
}

void translation_use(const struct translation_table *table,
		     struct translation *translation, int64_t time_ns)
{
	translation->last_ns = translation_last(table, translation);
	if (translation->used_drains != table->drains ||
	    time_ns > translation->used_ns)
		translation->used_ns = time_ns;
	translation->used_drains = table->drains;
}

static struct face_key face_key_of(const struct translation *translation,
				   uint32_t face)
{
	return (struct face_key){ .tuple = translation_tuple(translation, face),
				  .proto = translation->proto,
				  .side = face % SIDES };
}

static uint32_t *head_of(const struct translation_table *table,
			 const struct face_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key), table->secret);

	return &table->heads[hash & (HEADS - 1)];
}

static uint32_t next_of(const struct translation_table *table, uint32_t node)
{
	return translation_of(table, node)->next[face_of(node)];
}

static bool has_face(const struct translation_table *table, uint32_t node,
		     const struct face_key *key)
{
	const struct face_key its =
		face_key_of(translation_of(table, node), face_of(node));

	return !memcmp(&its, key, sizeof(its));
}

/* @node, or the next one in its list with that face. */
static uint32_t find_face(const struct translation_table *table, uint32_t node,
			  const struct face_key *key)
{
	while (node && !has_face(table, node, key))
		node = next_of(table, node);
	return node;
}

uint32_t translation_table_first(const struct translation_table *table,
				 const struct face_key *key)
{
	return find_face(table, *head_of(table, key), key);
}

uint32_t translation_table_next(const struct translation_table *table,
				uint32_t node, const struct face_key *key)
{
	return find_face(table, next_of(table, node), key);
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

/* A sender may give one of both tuples to very many, but not both: the shorter list ends the search. */
static struct translation *find_known(const struct translation_table *table,
				      const struct translation *wanted)
{
	static const uint32_t faces[] = { SIDES * NAT_ORIGINAL + BEFORE,
					  SIDES * NAT_REPLY + BEFORE };
	uint32_t nodes[ARRAY_SIZE(faces)];

	for (uint32_t i = 0; i < ARRAY_SIZE(faces); i++) {
		const struct face_key key = face_key_of(wanted, faces[i]);

		nodes[i] = *head_of(table, &key);
	}
	while (nodes[0] && nodes[1])
		for (uint32_t i = 0; i < ARRAY_SIZE(faces); i++) {
			struct translation *known =
				translation_of(table, nodes[i]);

			if (face_of(nodes[i]) == faces[i] &&
			    is_same_translation(known, wanted))
				return known;
			nodes[i] = next_of(table, nodes[i]);
		}
	return NULL;
}

static uint32_t *previous_of(const struct translation_table *table, uint32_t node)
{
	return &translation_of(table, node)->previous[face_of(node)];
}

static void link_faces(struct translation_table *table,
		       struct translation *translation)
{
	for (uint32_t face = 0; face < FACES; face++) {
		const struct face_key key = face_key_of(translation, face);
		uint32_t *head = head_of(table, &key);

		translation->next[face] = *head;
		translation->previous[face] = 0;
		*head = translation_node(table, translation, face);
		if (translation->next[face])
			*previous_of(table, translation->next[face]) = *head;
	}
}

static void unlink_face(const struct translation_table *table,
			const struct translation *translation, uint32_t face)
{
	const struct face_key key = face_key_of(translation, face);
	const uint32_t next = translation->next[face];
	const uint32_t previous = translation->previous[face];

	if (next)
		*previous_of(table, next) = previous;
	if (previous)
		translation_of(table, previous)->next[face_of(previous)] = next;
	else
		*head_of(table, &key) = next;
}

static void unlink_faces(const struct translation_table *table,
			 const struct translation *translation)
{
	for (uint32_t face = 0; face < FACES; face++)
		unlink_face(table, translation, face);
}

void translation_table_remove(struct translation_table *table,
			      struct translation *translation)
{
	if (table->watch)
		table->watch->removed(table->watch->ctx, translation);
	unlink_faces(table, translation);
	translation->serial++;
	translation->next[0] = table->first_free;
	table->first_free = 1 + (uint32_t)(translation - table->list);
	table->known--;
}

static bool may_be_removed(const struct translation_table *table,
			   const struct translation *translation,
			   int64_t least_ns)
{
	const struct translation_watch *watch = table->watch;

	return translation_is_there(translation) &&
	       translation_is_read(table, translation) &&
	       translation_last(table, translation) < least_ns &&
	       (!watch || watch->is_over(watch->ctx, translation, least_ns));
}

/* Remove some of those that have ended: as many as come, if there are. */
static void sweep_translations(struct translation_table *table, int64_t now_ns)
{
	const int64_t least = now_ns - TRANSLATION_KEEP_S * NSEC_PER_SEC;

	for (int i = 0; i < SWEEP && table->n; i++) {
		struct translation *translation = &table->list[table->hand];

		if (may_be_removed(table, translation, least))
			translation_table_remove(table, translation);
		table->hand = (table->hand + 1) % table->n;
	}
}

/* NULL: there is no room. */
static struct translation *take_place(struct translation_table *table)
{
	struct translation *translation;

	if (table->first_free) {
		translation = &table->list[table->first_free - 1];
		table->first_free = translation->next[0];
		return translation;
	}
	if (table->n == TRANSLATIONS_MAX)
		return NULL;
	translation = &table->list[table->n++];
	translation->serial = 1;
	return translation;
}

static struct translation *add_translation(struct translation_table *table,
					   const struct translation *wanted)
{
	struct translation *translation;
	uint32_t serial;

	sweep_translations(table, wanted->last_ns);
	translation = take_place(table);
	if (!translation) {
		table->refused++;
		return NULL;
	}
	serial = translation->serial + 1;
	*translation = *wanted;
	translation->serial = serial;
	link_faces(table, translation);
	table->known++;
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
static bool has_rested(const struct translation_table *table,
		       const struct translation *known, int64_t now_ns)
{
	return table->drains - known->drains >= RESTED_DRAINS ||
	       now_ns - translation_last(table, known) > TRANSLATION_GRACE_NS;
}

struct translation translation_of_event(const struct nat_event *event)
{
	const struct nat_tuple *original = &event->tuples[NAT_ORIGINAL];

	return (struct translation){
		.first_ns = (int64_t)event->time_ns,
		.last_ns = (int64_t)event->time_ns,
		.before = { read_tuple(original),
			    read_tuple(&event->tuples[NAT_REPLY]) },
		.netns = event->netns,
		.zone = event->zone,
		.proto = original->proto,
		.src_port = original->src_port,
		.dst_port = original->dst_port,
	};
}

struct translation *translation_table_find(const struct translation_table *table,
					   const struct nat_event *event)
{
	const struct translation wanted = translation_of_event(event);

	return find_known(table, &wanted);
}

/* As one that has rested. */
struct translation *translation_table_list(struct translation_table *table,
					   const struct nat_event *event)
{
	const struct translation wanted = translation_of_event(event);
	struct translation *translation = find_known(table, &wanted);

	if (translation)
		return translation;
	translation = add_translation(table, &wanted);
	if (translation)
		translation->drains = table->drains - RESTED_DRAINS;
	return translation;
}

static void report_begin(const struct translation_table *table,
			 struct translation *translation, bool is_new,
			 int64_t now_ns)
{
	const bool is_again = translation->ended_ns &&
			      now_ns > translation->ended_ns;

	if (!is_new && !is_again)
		return;
	translation->born_ns = now_ns;
	translation->ended_ns = 0;
	translation->look_s = 0;
	if (table->watch)
		table->watch->begun(table->watch->ctx, translation);
}

void translation_table_note(struct translation_table *table,
			    const struct nat_event *event)
{
	const struct translation wanted = translation_of_event(event);
	const int64_t now_ns = wanted.last_ns;
	struct translation *known = find_known(table, &wanted);
	const bool is_new = !known;

	if (known && has_rested(table, known, now_ns))
		known->first_ns = now_ns;
	if (known) {
		/* Lists begin with what was reported last. */
		unlink_faces(table, known);
		link_faces(table, known);
	} else {
		known = add_translation(table, &wanted);
	}
	if (!known)
		return;
	known->drains = table->drains;
	known->is_seen = true;
	known->src_port = wanted.src_port;
	known->dst_port = wanted.dst_port;
	if (now_ns > known->last_ns)
		known->last_ns = now_ns;
	set_interfaces(known, event);
	report_begin(table, known, is_new, now_ns);
}

void translation_table_begin(struct translation_table *table, int64_t now_ns)
{
	/* A packet is reported by the tick of the clock. */
	table->unread_ns = table->begun_ns - NSEC_PER_SEC;
	table->begun_ns = now_ns;
}

int translation_table_init(struct translation_table *table)
{
	*table = (struct translation_table){
		.unread_ns = INT64_MAX,
		.list = calloc(TRANSLATIONS_MAX, sizeof(struct translation)),
		.heads = calloc(HEADS, sizeof(uint32_t)),
	};
	secret_fill(table->secret, sizeof(table->secret));
	if (table->list && table->heads)
		return 0;
	translation_table_done(table);
	return -ENOMEM;
}

void translation_table_done(struct translation_table *table)
{
	free(table->list);
	free(table->heads);
	*table = (struct translation_table){ 0 };
}
