/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "translation_table.h"

#include "base/conversation.h"
#include "bpf/parse/headers.h"
#include "flows/flow_table.h"
#include "host/host.h"
#include "host/topology.h"

#include <string.h>

enum { HOPS = 4 }; /* translations one after another */

/* Scores of rate_face(), which returns BEST at most. */
enum { IS_POSSIBLE = 1, IS_MEANWHILE = 1, IS_HERE = 2, BEST = 4 };

struct face_search search_for(const struct host *host,
			      const struct translation_table *table,
			      const struct flow_entry *entry)
{
	const struct flow_key *key = &entry->key;

	return (struct face_search){
		.host = host,
		.table = table,
		.entry = entry,
		.tuple = { .src = key->src,
			   .dst = key->dst,
			   .src_port = key->src_port,
			   .dst_port = key->dst_port },
		.netns = key->netns,
		.side = key->flags & KEY_EGRESS ? AFTER : BEFORE,
	};
}

/* ---- Places ------------------------------------------------------------------------- */

static bool is_tagged_for(const struct flow_key *key, const struct netif *netif)
{
	const uint16_t tag = VLAN_PRESENT | netif->vlan_id;

	return netif->type != LINK_TYPE_VLAN ||
	       (key->vlan & FLOW_TAG_MASK) == tag ||
	       (key->outer_vlan & FLOW_TAG_MASK) == tag;
}

/*
 * @return whether packets at @upper have been at the entry's interface, say a port of that bridge
 */
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

/* @return how likely it is that packets of the entry have this face */
static int rate_interface(const struct face_search *search,
			  const struct translation *translation, uint32_t face)
{
	const struct flow_key *key = &search->entry->key;
	const uint32_t last = translation->ifindex[face];
	const uint32_t former = translation->former[face];

	if (last == key->ifindex || former == key->ifindex)
		return IS_POSSIBLE + IS_HERE;
	return is_above(search->host, key, last) ||
			       is_above(search->host, key, former) ?
		       IS_POSSIBLE :
		       0;
}

/* @return whether packets with this face came in; else a process of the namespace sent them */
static bool came_in(const struct translation *translation, uint32_t face)
{
	return translation->ifindex[face ^ 1];
}

/* @return whether packets that come in by this interface are not counted there */
static bool is_uncounted(const struct face_search *search,
			 const struct translation *translation, uint32_t ifindex)
{
	const struct netif *netif =
		host_find(search->host, translation->netns, ifindex);

	return !netif || !netif->is_origin;
}

/*
 * @return whether the entry's packets may belong to this connection, by where its packets came in.
 * Outgoing packets that were counted when they came in (KEY_AGAIN) need a connection that came in.
 * Others need one that a process sent, or that came in by an interface that does not count. A
 * connection may come in by several interfaces: the last and the former one are known, and with
 * more, any interface may be among them.
 */
static bool fits_origin(const struct face_search *search,
			const struct translation *translation, uint32_t face)
{
	const uint32_t before = face ^ 1;
	const uint32_t former = translation->former[before];

	if (search->side == BEFORE || !search->host)
		return true;
	if (search->entry->key.flags & KEY_AGAIN)
		return came_in(translation, face);
	return is_uncounted(search, translation, translation->ifindex[before]) ||
	       (former && is_uncounted(search, translation, former)) ||
	       translation->more_ways & 1U << before;
}

/*
 * @return whether packets that leave by the macvlan @upper, for another one, come in and count
 * below it
 */
static bool returns_below(const struct host *host, uint16_t netns, uint32_t upper)
{
	const struct netif *netif = host_find(host, netns, upper);
	const struct netif *lower = netif && netif->type == LINK_TYPE_MACVLAN ?
					    topology_linked(host, netif) :
					    NULL;

	return lower && netif->link_netns == netns && lower->is_origin;
}

/*
 * @return whether packets that were translated in this namespace are at the entry's interface
 * without a conntrack entry of that: in a tunnel; at an ifb, as tc takes the entry from what it
 * redirects; coming in by the interface that they left by, as copies, or below it, from one macvlan
 * for another; or leaving again, because tc forwards packets that came in below the macvlan
 */
static bool is_back_here(const struct face_search *search,
			 const struct translation *translation, uint32_t face)
{
	const struct flow_key *key = &search->entry->key;
	const struct netif *netif;

	if (!search->is_own_tuple)
		return false;
	if (key->tunnel)
		return true;
	if (!(key->flags & KEY_EGRESS))
		return rate_interface(search, translation, face);
	if (!search->host)
		return false;
	netif = host_find(search->host, key->netns, key->ifindex);
	if (netif && netif->type == LINK_TYPE_IFB)
		return true;
	return key->flags & KEY_AGAIN &&
	       (returns_below(search->host, key->netns,
			      translation->ifindex[face]) ||
		returns_below(search->host, key->netns,
			      translation->former[face]));
}

/* @return how likely the face is by its place; packets from other namespaces may have come by any way */
static int rate_place(const struct face_search *search,
		      const struct translation *translation, uint32_t face)
{
	const bool is_here = translation->netns == search->netns;

	if (search->is_anywhere && !translation_changes(translation))
		return 0;
	if (search->is_anywhere && is_here)
		return search->entry->key.ifindex ?
			       rate_interface(search, translation, face) :
			       IS_POSSIBLE + IS_HERE;
	if (!search->is_elsewhere)
		return is_here && fits_origin(search, translation, face) ?
			       rate_interface(search, translation, face) :
			       0;
	return (!is_here || is_back_here(search, translation, face)) &&
			       translation->is_seen &&
			       translation_changes(translation) &&
			       host_joins(search->host, translation->netns,
					  search->netns) ?
		       IS_POSSIBLE + IS_HERE :
		       0;
}

/* ---- Times -------------------------------------------------------------------------- */

static bool is_meanwhile(const struct face_search *search,
			 const struct translation *translation)
{
	const struct flow_tally *tally = &search->entry->tally;

	return translation->first_ns <=
		       (int64_t)tally->last_ns + TRANSLATION_SLACK_NS &&
	       translation_last(search->table, translation) >=
		       (int64_t)tally->first_ns - TRANSLATION_SLACK_NS;
}

/* Programs report a flow once per generation, unless it has another translation. */
static bool is_reported_until(const struct face_search *search,
			      const struct translation *translation)
{
	const struct translation_table *table = search->table;

	return table->drains - translation->drains <= 1 ||
	       translation_last(table, translation) >=
		       (int64_t)search->entry->tally.first_ns -
			       TRANSLATION_GRACE_NS;
}

/* @return the likelihood that packets had this face: more is better; 0: they had not */
static int rate_face(const struct face_search *search,
		     const struct translation *translation, uint32_t face)
{
	const struct flow_tally *tally = &search->entry->tally;
	const int place = rate_place(search, translation, face);

	if (!place || is_meanwhile(search, translation))
		return place ? place + IS_MEANWHILE : 0;
	/* A connection that begins is reported itself. */
	if (tally->attrs.marks & TCP_SYN ||
	    translation->first_ns >
		    (int64_t)tally->last_ns + TRANSLATION_GRACE_NS ||
	    !is_reported_until(search, translation))
		return 0;
	return place;
}

/* ---- One translation ---------------------------------------------------------------- */

static bool is_same_other(const struct translation_table *table, uint32_t a,
			  uint32_t b)
{
	const struct tuple one =
		translation_tuple(translation_of(table, a), face_of(a) ^ 1);
	const struct tuple two =
		translation_tuple(translation_of(table, b), face_of(b) ^ 1);

	return !memcmp(&one, &two, sizeof(one));
}

struct search_result search_face(const struct face_search *search)
{
	const struct face_key key = { .tuple = search->tuple,
				      .proto = search->entry->key.proto,
				      .side = search->side };
	struct search_result result = { 0 };
	int best = 0, n = 0;

	for (uint32_t node = translation_table_first(search->table, &key); node;
	     node = translation_table_next(search->table, node, &key)) {
		const struct translation *translation =
			translation_of(search->table, node);
		int rating;

		if (n++ == TRANSLATION_LOOKS) {
			result.is_ambiguous |= best < BEST ||
					       is_meanwhile(search, translation);
			break;
		}
		rating = rate_face(search, translation, face_of(node));
		if (!rating || rating < best)
			continue;
		result.is_ambiguous =
			rating == best &&
			(result.is_ambiguous ||
			 !is_same_other(search->table, result.node, node));
		best = rating;
		result.node = node;
	}
	result.is_ambiguous |= translation_table_has_lost(search->table, &key);
	return result;
}

/* ---- One after another --------------------------------------------------------------- */

/* Go back from @node, a face after translation, to where packets had the face before. */
static void go_back(struct face_search *search, uint32_t node)
{
	const struct translation *translation =
		translation_of(search->table, node);

	search->tuple = translation_tuple(translation, face_of(node) ^ 1);
	search->netns = translation->netns;
	search->side = AFTER;
	search->is_elsewhere = true;
	search->is_own_tuple = search->is_anywhere = false;
}

/* Go back through the translation of the entry's own namespace, which may leave the tuple as it was. */
static bool leave_namespace(struct face_search *search, struct origin *origin)
{
	const struct search_result result = search_face(search);
	const struct translation *translation;

	origin->is_ambiguous = result.is_ambiguous;
	if (result.is_ambiguous)
		return false;
	if (!result.node)
		return true;
	translation = translation_of(search->table, result.node);
	if (!translation_changes(translation))
		return true;
	origin->known = origin->first = result.node;
	if (!came_in(translation, face_of(result.node)))
		return false;
	go_back(search, result.node);
	origin->node = result.node;
	origin->hops = 1;
	return true;
}

/* @return whether a process of the entry's namespace sent the packets */
static bool is_sent_here(const struct host *host, const struct flow_entry *entry)
{
	const struct flow_key *key = &entry->key;
	const struct netif *netif;

	if (!(key->flags & KEY_EGRESS) || key->flags & KEY_AGAIN ||
	    key->tunnel || !host || key->netns >= host->n_netns ||
	    !host->netns[key->netns].sees_all_arrivals)
		return false;
	netif = host_find(host, key->netns, key->ifindex);
	return !netif || !topology_has_foreign_uppers(netif);
}

static struct origin unknown_origin(const struct flow_entry *entry)
{
	const struct face_search search = search_for(NULL, NULL, entry);

	return (struct origin){ .tuple = search.tuple, .is_ambiguous = true };
}

struct origin search_origin(const struct host *host,
			    const struct translation_table *table,
			    const struct flow_entry *entry)
{
	struct face_search search = search_for(host, table, entry);
	struct origin origin = { .tuple = search.tuple };

	if (search.side == AFTER && !entry->key.tunnel &&
	    !leave_namespace(&search, &origin))
		return origin;
	if (!origin.hops && is_sent_here(host, entry))
		return origin;
	search.side = AFTER;
	search.is_elsewhere = true;
	search.is_own_tuple = !origin.hops;
	for (;;) {
		const struct search_result earlier = search_face(&search);
		const uint32_t node = earlier.node;

		origin.is_ambiguous = earlier.is_ambiguous;
		if (earlier.is_ambiguous || !node)
			break;
		origin.known = origin.known ?: node;
		origin.first = node;
		if (!came_in(translation_of(table, node), face_of(node)))
			break;
		/* Translations lead back to each other, say of rules that swap two networks. */
		if (origin.hops == HOPS)
			return unknown_origin(entry);
		go_back(&search, node);
		origin.node = origin.node ?: node;
		origin.hops++;
	}
	origin.tuple = search.tuple;
	return origin;
}

struct socket_search search_sender(const struct host *host,
				   const struct translation_table *table,
				   const struct flow_entry *entry, uint32_t node)
{
	const struct face_search own = search_for(host, table, entry);
	const struct translation *translation;

	if (!node)
		return (struct socket_search){
			.host = host,
			.table = table,
			.entry = entry,
			.tuple = own.tuple,
			.netns = own.netns,
			.ifindex = entry->key.ifindex,
			.is_sent_here = is_sent_here(host, entry),
		};
	translation = translation_of(table, node);
	return (struct socket_search){
		.host = host,
		.table = table,
		.entry = entry,
		.tuple = translation_tuple(translation, face_of(node) ^ 1),
		.netns = translation->netns,
		.ifindex = translation->ifindex[face_of(node) ^ 1],
		.is_sent_here = !came_in(translation, face_of(node)),
	};
}

/* @return the sender's tuple; if the socket got another remote end, with that which was asked for */
static struct tuple search_asked(const struct host *host,
				 const struct translation_table *table,
				 const struct flow_entry *entry, uint32_t node)
{
	const struct socket_search sender =
		search_sender(host, table, entry, node);
	const struct search_result result = search_socket(&sender, NAT_ORIGINAL);

	return result.node && !result.is_ambiguous ?
		       translation_of(table, result.node)->before[NAT_ORIGINAL] :
		       sender.tuple;
}

bool search_conversation(const struct host *host,
			 const struct translation_table *table,
			 const struct flow_entry *entry, uint32_t node,
			 struct tuple *ret_tuple)
{
	struct face_search search = search_for(host, table, entry);
	uint32_t first = 0;

	for (uint32_t hops = 0; node; hops++) {
		struct search_result earlier;

		if (hops == HOPS)
			return false;

		/* A conversation has the tuple of the original direction, also if @node is of the reply. */
		first = node - face_of(node) + AFTER;
		go_back(&search, first);
		earlier = search_face(&search);
		node = earlier.is_ambiguous ? 0 : earlier.node;
	}
	*ret_tuple = search_asked(host, table, entry, first);
	return true;
}

bool search_passing(const struct host *host,
		    const struct translation_table *table,
		    const struct flow_entry *entry, struct tuple *ret_tuple)
{
	struct face_search search = search_for(host, table, entry);
	struct search_result result;

	search.side = AFTER;
	search.is_elsewhere = search.is_anywhere = true;
	result = search_face(&search);
	if (result.is_ambiguous)
		return false;
	if (result.node)
		return search_conversation(host, table, entry, result.node,
					   ret_tuple);
	*ret_tuple = search_asked(host, table, entry, 0);
	return true;
}

uint64_t tuple_conversation(const struct tuple *tuple, uint8_t proto)
{
	return conversation_id(
		&(struct conversation){ .src = tuple->src.bytes,
					.dst = tuple->dst.bytes,
					.src_port = tuple->src_port,
					.dst_port = tuple->dst_port,
					.proto = proto });
}
