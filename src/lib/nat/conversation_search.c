// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translations.h"

#include "bpf/parse/headers.h"
#include "host/host.h"
#include "translation_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static struct tuple own_tuple(const struct flow_entry *entry)
{
	return (struct tuple){
		.src = entry->key.src,
		.dst = entry->key.dst,
		.src_port = entry->key.src_port,
		.dst_port = entry->key.dst_port,
	};
}

/* ---- Reports ------------------------------------------------------------------------ */

/* Most reports are about other connections, as their ports show. */
static bool may_be_about(const struct nat_event *event, const struct flow_key *key)
{
	const uint16_t port = htons(key->src_port);
	const struct nat_tuple *tuples = event->tuples;

	if (key->proto != IP_PROTO_TCP && key->proto != IP_PROTO_UDP)
		return true;
	for (int dir = NAT_ORIGINAL; dir <= NAT_REPLY; dir++)
		if (tuples[dir].src_port == port || tuples[dir].dst_port == port)
			return true;
	return false;
}

static bool is_about(const struct nat_event *event, const struct flow_entry *entry)
{
	const struct translation translation = translation_of_event(event);
	const struct tuple wanted = own_tuple(entry);

	for (uint32_t face = 0; face < FACES; face++) {
		const struct tuple tuple = translation_tuple(&translation, face);

		if (!memcmp(&tuple, &wanted, sizeof(tuple)))
			return translation.proto == entry->key.proto;
	}
	return false;
}

/* During a drain, reports wait for its end. */
static bool is_waiting(const struct translations *translations,
		       const struct flow_entry *entry)
{
	if (translations->late)
		return true;
	for (uint32_t i = 0; i < translations->n_later; i++)
		if (may_be_about(&translations->later[i], &entry->key) &&
		    is_about(&translations->later[i], entry))
			return true;
	return translations->sockets.n_noted &&
	       (int64_t)entry->tally.last_ns >= translations->table.begun_ns;
}

/* @return whether all reports of programs about such packets have been read */
static bool read_reports(struct translations *translations,
			 const struct flow_entry *entry)
{
	if (!translations->table.is_held)
		socket_translations_take(&translations->sockets);
	nat_read(&translations->nat);
	return !translations->table.is_held || !is_waiting(translations, entry);
}

/* ---- Places ------------------------------------------------------------------------- */

static bool leads_to(const struct host *host, const struct netns *netns,
		     uint32_t inode)
{
	for (uint32_t i = 0; i < netns->netifs.count; i++)
		if (peers_inode(host, netns, &netns->netifs.items[i]) == inode)
			return true;
	return false;
}

/* @return the namespace, or one with a pair of interfaces that leads there; NETNS_NONE: neither */
static uint16_t find_netns(const struct host *host, uint32_t inode)
{
	const struct netns *netns = host_find_followed(host, inode, NULL);

	if (netns)
		return netns->index;
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].rtnl_fd >= 0 &&
		    leads_to(host, &host->netns[i], inode))
			return i;
	return NETNS_NONE;
}

/* @return whether packets with that tuple are translated in any namespace */
static bool is_known_anywhere(const struct translations *translations,
			      const struct flow_entry *entry)
{
	const struct translation_table *table = &translations->table;
	const struct face_key key = { .tuple = own_tuple(entry),
				      .proto = entry->key.proto,
				      .side = AFTER };

	return translation_table_first(table, &key) ||
	       translation_table_has_lost(table, &key);
}

/* ---- Conversations ------------------------------------------------------------------ */

static uint64_t find_passing(const struct translations *translations,
			     const struct flow_entry *entry)
{
	struct tuple tuple;

	return search_passing(translations->host, &translations->table, entry,
			      &tuple) ?
		       tuple_conversation(&tuple, entry->key.proto) :
		       0;
}

int conversation_at(struct translations *translations,
		    const struct flow_entry *entry, uint64_t *ret_id)
{
	if (!read_reports(translations, entry))
		return -EAGAIN;
	*ret_id = find_passing(translations, entry);
	return 0;
}

static struct flow_entry turned(const struct flow_entry *entry)
{
	struct flow_entry back = *entry;

	back.key.src = entry->key.dst;
	back.key.dst = entry->key.src;
	back.key.src_port = entry->key.dst_port;
	back.key.dst_port = entry->key.src_port;
	back.key.ifindex = 0;
	return back;
}

/* Find the address that the process asked for, if its socket was connected to another one. */
static struct search_result search_own(const struct translations *translations,
				       const struct flow_entry *entry,
				       uint32_t inode)
{
	const struct socket_search search = {
		.host = translations->host,
		.table = &translations->table,
		.entry = entry,
		.tuple = own_tuple(entry),
		.inode = inode,
	};

	return search_socket(&search, NAT_ORIGINAL);
}

static uint64_t find_received(struct translations *translations,
			      const struct flow_entry *entry, uint32_t inode,
			      uint32_t pid)
{
	struct flow_entry back = turned(entry);
	const struct tuple own = own_tuple(entry);

	back.key.netns = translations->host ?
				 find_netns(translations->host, inode) :
				 NETNS_NONE;
	if (back.key.netns != NETNS_NONE)
		return find_passing(translations, &back);
	if (!is_known_anywhere(translations, &back))
		return tuple_conversation(&own, entry->key.proto);
	socket_translations_look_for(&translations->sockets, inode, pid);
	return 0;
}

/* 0: it is not known */
static uint64_t find_sent(struct translations *translations,
			  const struct flow_entry *entry, uint32_t inode,
			  uint32_t pid)
{
	const struct translation *translation;
	struct search_result own = search_own(translations, entry, inode);

	if (own.is_ambiguous)
		return 0;
	translation = own.node ? translation_of(&translations->table, own.node) :
				 NULL;
	if (translation && translation_changes(translation))
		return tuple_conversation(&translation->before[NAT_ORIGINAL],
					  entry->key.proto);
	return find_received(translations, entry, inode, pid);
}

int conversation_of_socket(struct translations *translations,
			   const struct flow_entry *entry, uint32_t inode,
			   uint32_t pid, uint64_t *ret_id)
{
	const struct flow_entry back = turned(entry);
	uint64_t id;

	if (!read_reports(translations, entry) ||
	    !read_reports(translations, &back))
		return -EAGAIN;
	id = find_sent(translations, entry, inode, pid);
	if (!id)
		return -ENOENT;
	*ret_id = id;
	return 0;
}
