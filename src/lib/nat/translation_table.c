/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translation_table.h"

#include "base/hash.h"
#include "bpf/parse/headers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	HEADS = 1 << 19,
	RESTED_DRAINS = 3,
};

_Static_assert(sizeof(struct face_key) ==
		       sizeof(((struct translation_table *)0)->secret),
	       "no padding, and a secret for each word");

/* ---- Lost faces --------------------------------------------------------------------- */

/* Each set takes 2 MiB. A million faces set 6 % of its bits. */
enum { BITS = 1 << 24, WORD_BITS = 64, WORDS = BITS / WORD_BITS };

/* The table of translations uses the lower bits of a hash. */
static uint32_t bit_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32) & (BITS - 1);
}

static void lost_faces_done(struct lost_faces *lost)
{
	for (int i = 0; i < LOST_GENERATIONS; i++)
		free(lost->sets[i]);
	*lost = (struct lost_faces){ .current = 0 };
}

/* @return 0; -ENOMEM */
static int lost_faces_init(struct lost_faces *lost)
{
	*lost = (struct lost_faces){ .current = 0 };
	for (int i = 0; i < LOST_GENERATIONS; i++)
		lost->sets[i] = calloc(WORDS, sizeof(uint64_t));
	if (lost->sets[0] && lost->sets[1])
		return 0;
	lost_faces_done(lost);
	return -ENOMEM;
}

/* Another generation begins: faces that were lost before the previous one are removed. */
static void lost_faces_begin(struct lost_faces *lost)
{
	lost->current = !lost->current;
	if (lost->is_used[lost->current])
		memset(lost->sets[lost->current], 0, BITS / 8);
	lost->is_used[lost->current] = false;
}

static void lost_faces_add(struct lost_faces *lost, uint64_t hash)
{
	const uint32_t bit = bit_of(hash);

	lost->sets[lost->current][bit / WORD_BITS] |= 1ULL << bit % WORD_BITS;
	lost->is_used[lost->current] = true;
}

static bool lost_faces_has(const struct lost_faces *lost, uint64_t hash)
{
	const uint32_t bit = bit_of(hash);

	for (int i = 0; i < LOST_GENERATIONS; i++)
		if (lost->is_used[i] &&
		    lost->sets[i][bit / WORD_BITS] >> bit % WORD_BITS & 1)
			return true;
	return false;
}

/* ---- Faces -------------------------------------------------------------------------- */

static bool has_types(uint8_t proto)
{
	return proto == IP_PROTO_ICMP || proto == IP_PROTO_ICMPV6;
}

/* ICMP has another type in each direction. */
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

	return !translation->is_partial &&
	       memcmp(&before, &after, sizeof(before)) != 0;
}

static struct face_key face_key_of(const struct translation *translation,
				   uint32_t face)
{
	return (struct face_key){ .tuple = translation_tuple(translation, face),
				  .proto = translation->proto,
				  .side = face % SIDES,
				  .of_socket = translation->of_socket };
}

static uint64_t hash_of(const struct translation_table *table,
			const struct face_key *key)
{
	return hash_bytes(key, sizeof(*key), table->secret);
}

static uint32_t *head_of(const struct translation_table *table,
			 const struct face_key *key)
{
	return &table->heads[hash_of(table, key) & (HEADS - 1)];
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

/* @return @node or the next one in its list that has this face; 0: none */
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
	/* Where nothing is translated, each flow would read memory at random. */
	return table->known ? find_face(table, *head_of(table, key), key) : 0;
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

/* Store ports as the parser does in keys. */
static struct tuple read_tuple(const struct nat_tuple *from)
{
	struct tuple tuple = { .src = addr_of(from->src, from->family),
			       .dst = addr_of(from->dst, from->family) };

	if (proto_has_ports(from->proto))
		tuple.src_port = ntohs(from->src_port);
	/* ICMP has type and code instead of ports. */
	if (proto_has_ports(from->proto) || has_types(from->proto))
		tuple.dst_port = ntohs(from->dst_port);
	return tuple;
}

/* The namespace of a socket may be followed, or no more. */
static bool is_same_space(const struct translation *a,
			  const struct translation *b)
{
	if (a->of_socket != b->of_socket)
		return false;
	return a->of_socket ? a->socket.inode == b->socket.inode :
			      a->netns == b->netns;
}

static bool is_same_translation(const struct translation *a,
				const struct translation *b)
{
	return is_same_space(a, b) && a->zone == b->zone &&
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

/* ---- Room --------------------------------------------------------------------------- */

bool translation_table_has_lost(const struct translation_table *table,
				const struct face_key *key)
{
	return (table->lost.is_used[0] || table->lost.is_used[1]) &&
	       lost_faces_has(&table->lost, hash_of(table, key));
}

static void lose_faces(struct translation_table *table,
		       const struct translation *translation)
{
	for (uint32_t face = 0; face < FACES; face++) {
		const struct face_key key = face_key_of(translation, face);

		lost_faces_add(&table->lost, hash_of(table, &key));
	}
}

void translation_table_remove(struct translation_table *table,
			      struct translation *translation, int64_t now_ns)
{
	if (table->watch)
		table->watch->removed(table->watch->ctx, translation, now_ns);
	if (!translation->ended_ns && !translation->of_socket &&
	    translation_changes(translation))
		table->lost_ns = now_ns;
	if (!translation_is_read(table, translation))
		lose_faces(table, translation);
	unlink_faces(table, translation);
	translation_order_remove(table, translation);
	translation->serial++;
	translation->next[0] = table->first_free;
	table->first_free = 1 + (uint32_t)(translation - table->list);
	table->known--;
}

static void make_room(struct translation_table *table, int64_t now_ns)
{
	struct translation *first = translation_order_find_first(table, now_ns);

	if (first)
		translation_table_remove(table, first, now_ns);
}

/* NULL: there is no room. */
static struct translation *take_place(struct translation_table *table,
				      int64_t now_ns)
{
	struct translation *translation;

	if (!table->first_free && table->n == table->max && !table->is_held)
		make_room(table, now_ns);
	if (table->first_free) {
		translation = &table->list[table->first_free - 1];
		table->first_free = translation->next[0];
		return translation;
	}
	if (table->n == table->max)
		return NULL;
	translation = &table->list[table->n++];
	translation->serial = 1;
	return translation;
}

static struct translation *add_translation(struct translation_table *table,
					   const struct translation *wanted)
{
	struct translation *translation = take_place(table, wanted->last_ns);
	uint32_t serial;

	if (!translation) {
		if (!wanted->of_socket)
			table->lost_ns = wanted->last_ns;
		return NULL;
	}
	serial = translation->serial + 1;
	*translation = *wanted;
	translation->serial = serial;
	link_faces(table, translation);
	translation_order_add(table, translation);
	table->known++;
	return translation;
}

void translation_table_end(struct translation_table *table,
			   struct translation *translation, int64_t now_ns)
{
	translation->ended_ns = now_ns;
	translation_order_renew(table, translation);
}

void translation_table_sign(struct translation_table *table,
			    struct translation *translation, uint8_t signs)
{
	if ((translation->signs & signs) == signs)
		return;
	translation->signs |= signs;
	translation_order_renew(table, translation);
}

/* ---- Packets of it ------------------------------------------------------------------ */

static void set_interface(struct translation *translation, uint32_t face,
			  uint32_t ifindex)
{
	const uint32_t former = translation->former[face];

	if (!ifindex || translation->ifindex[face] == ifindex)
		return;
	if (former && former != ifindex)
		translation->more_ways |= 1U << face;
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
 * A translation in use is reported in each generation, which may be read during the drain before
 * its own. A translation that was out of use meanwhile does not compete for packets of that time.
 * Within a generation, entries from before a pause are still to be read, so it counts as in use.
 */
static bool has_rested(const struct translation_table *table,
		       const struct translation *known, int64_t now_ns)
{
	return table->drains - known->drains >= RESTED_DRAINS ||
	       (known->drains != table->drains &&
		now_ns - translation_last(table, known) > TRANSLATION_GRACE_NS);
}

/* TCP packets of the original direction have ACK set once there was an answer. */
static uint8_t signs_of(const struct flow_tally *tally, uint8_t proto,
			uint32_t face)
{
	if (face / SIDES == NAT_REPLY)
		return SIGN_ANSWERED;
	if (proto == IP_PROTO_TCP)
		return tally->attrs.marks & TCP_ACK ? SIGN_GOES_ON : 0;
	return tally->packets > 1 ? SIGN_GOES_ON : 0;
}

void translation_use(struct translation_table *table, uint32_t node,
		     const struct flow_tally *tally)
{
	struct translation *translation = translation_of(table, node);
	const int64_t time_ns = (int64_t)tally->last_ns;
	const bool is_new = translation->used_drains != table->drains;
	const uint8_t before = translation->signs;

	translation->signs |= signs_of(tally, translation->proto, face_of(node));
	translation->last_ns = translation_last(table, translation);
	if (is_new || time_ns > translation->used_ns)
		translation->used_ns = time_ns;
	translation->used_drains = table->drains;
	if (is_new || translation->signs != before)
		translation_order_renew(table, translation);
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

/* A listed translation counts as out of use: flows do not use it before a packet is reported. */
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

/* @return the evidence in a report; @earlier: the evidence before it */
static uint8_t report_signs(const struct nat_event *event, uint8_t earlier)
{
	if (event->dir == NAT_REPLY)
		return SIGN_ANSWERED;
	if (event->is_answered || earlier & SIGN_ANSWERED)
		return SIGN_ANSWERED | SIGN_GOES_ON;
	return 0;
}

static bool is_again(const struct translation *known, int64_t now_ns)
{
	return known->ended_ns && now_ns > known->ended_ns;
}

static void begin_life(const struct translation_table *table,
		       struct translation *translation, int64_t now_ns)
{
	translation->born_ns = now_ns;
	translation->ended_ns = 0;
	translation->look_s = 0;
	if (table->watch)
		table->watch->begun(table->watch->ctx, translation);
}

/* Note a report of a known translation, and move it to the front of its lists. */
static void note_again(struct translation_table *table, struct translation *known,
		       const struct nat_event *event, int64_t now_ns)
{
	const bool begins = is_again(known, now_ns);
	const int64_t since_ns = known->born_ns > known->first_ns ?
					 known->born_ns :
					 known->first_ns;

	known->signs = begins ? 0 : known->signs;
	known->signs |= report_signs(event, known->signs);
	if (!begins && now_ns - since_ns >= TRANSLATION_GRACE_NS)
		known->signs |= SIGN_LASTS;
	if (has_rested(table, known, now_ns))
		known->first_ns = now_ns;
	unlink_faces(table, known);
	link_faces(table, known);
}

/* In an interval, each is counted once, however many packets report it. */
static void refuse(struct translation_table *table,
		   const struct translation *wanted)
{
	const struct face_key there = face_key_of(wanted, SIDES * NAT_ORIGINAL);
	const struct face_key back = face_key_of(wanted, SIDES * NAT_REPLY);

	table->refused += !translation_table_has_lost(table, &there) ||
			  !translation_table_has_lost(table, &back);
	lose_faces(table, wanted);
}

void translation_table_note(struct translation_table *table,
			    const struct nat_event *event)
{
	struct translation wanted = translation_of_event(event);
	const int64_t now_ns = wanted.last_ns;
	struct translation *known = find_known(table, &wanted);
	const bool begins = !known || is_again(known, now_ns);

	wanted.signs = report_signs(event, 0);
	if (known)
		note_again(table, known, event, now_ns);
	else
		known = add_translation(table, &wanted);
	if (!known) {
		refuse(table, &wanted);
		return;
	}
	known->drains = table->drains;
	known->is_seen = true;
	known->src_port = wanted.src_port;
	known->dst_port = wanted.dst_port;
	if (now_ns > known->last_ns)
		known->last_ns = now_ns;
	set_interfaces(known, event);
	if (begins)
		begin_life(table, known, now_ns);
	translation_order_renew(table, known);
}

/* Between two sockets of UDP with a tuple, a third one may have had it, which is not reported. */
static bool begins_anew(const struct translation_table *table,
			const struct translation *known, bool is_again,
			int64_t now_ns)
{
	return has_rested(table, known, now_ns) ||
	       (is_again && known->proto != IP_PROTO_TCP);
}

/* The translation lasts until the socket ends, which is reported. */
struct translation *translation_table_take(struct translation_table *table,
					   const struct translation *wanted)
{
	struct translation *known = find_known(table, wanted);
	const bool begins = !known || is_again(known, wanted->born_ns);

	if (known) {
		unlink_faces(table, known);
		link_faces(table, known);
	} else {
		known = add_translation(table, wanted);
	}
	if (!known) {
		refuse(table, wanted);
		return NULL;
	}
	if (begins_anew(table, known, begins, wanted->first_ns))
		known->first_ns = wanted->first_ns;
	known->drains = table->drains;
	if (wanted->last_ns > known->last_ns)
		known->last_ns = wanted->last_ns;
	known->netns = wanted->netns;
	known->socket = wanted->socket;
	known->is_partial = wanted->is_partial;
	known->signs |= SIGN_LASTS;
	if (begins)
		begin_life(table, known, wanted->born_ns);
	translation_order_renew(table, known);
	return known;
}

struct translation *translation_table_end_socket(struct translation_table *table,
						 const struct translation *wanted,
						 int64_t now_ns)
{
	struct translation *known = find_known(table, wanted);

	if (!known || known->ended_ns ||
	    known->socket.cookie != wanted->socket.cookie)
		return NULL;
	translation_table_end(table, known, now_ns);
	if (table->watch)
		table->watch->ended(table->watch->ctx, known, now_ns);
	return known;
}

void translation_table_begin(struct translation_table *table, int64_t now_ns)
{
	/* A packet is reported by the tick of the clock. */
	table->unread_ns = table->begun_ns - NSEC_PER_SEC;
	table->begun_ns = now_ns;
	lost_faces_begin(&table->lost);
}

int translation_table_init(struct translation_table *table)
{
	*table = (struct translation_table){
		.unread_ns = INT64_MAX,
		.max = TRANSLATIONS_MAX,
		.list = calloc(TRANSLATIONS_MAX, sizeof(struct translation)),
		.heads = calloc(HEADS, sizeof(uint32_t)),
	};
	secret_fill(table->secret, sizeof(table->secret));
	if (table->list && table->heads && !lost_faces_init(&table->lost))
		return 0;
	translation_table_done(table);
	return -ENOMEM;
}

void translation_table_done(struct translation_table *table)
{
	free(table->list);
	free(table->heads);
	lost_faces_done(&table->lost);
	*table = (struct translation_table){ 0 };
}
