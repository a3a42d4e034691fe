// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translation_table.h"

#include "bpf/parse/headers.h"
#include "flows/flow_table.h"
#include "host/host.h"

#include <string.h>

/* Up to this time after the end of a UDP socket, its last packet may reach another interface. */
#define LATE_NS (10 * NSEC_PER_MSEC)

/* Scores of a place and of a time. */
enum { IS_JOINED = 1, IS_AT = 2 };
enum { IS_NEAR = 1, IS_MEANWHILE = 3 };

/* @return how surely packets at that place are of the socket; 0: they are not */
static int rate_place(const struct socket_search *search,
		      const struct translation *translation)
{
	const struct host *host = search->host;
	const uint32_t inode = translation->socket.inode;
	const struct netns *netns;
	const struct netif *netif;

	if (search->inode)
		return search->inode == inode ? IS_AT : 0;
	if (!host || search->netns >= host->n_netns)
		return host ? 0 : IS_AT;
	netns = &host->netns[search->netns];
	if (netns->inode == inode)
		return IS_AT;
	if (search->is_sent_here)
		return 0;
	netif = host_find(host, search->netns, search->ifindex);
	if (netif && peers_inode(host, netns, netif) == inode)
		return IS_AT;
	return host_joins(host, translation->netns, search->netns) ? IS_JOINED :
								     0;
}

/* An open socket may be silent for long; the end of one without translation is not reported. */
static int64_t last_of(const struct socket_search *search,
		       const struct translation *translation)
{
	if (translation->ended_ns)
		return translation->ended_ns;
	return translation_changes(translation) || translation->is_partial ||
			       translation->socket.is_followed ?
		       INT64_MAX - TRANSLATION_GRACE_NS :
		       translation_last(search->table, translation);
}

bool socket_has_others(const struct translation *translation, int64_t first_ns,
		       int64_t last_ns)
{
	const int64_t slack_ns =
		translation->socket.is_another ? 0 : TRANSLATION_SLACK_NS;

	return translation->first_ns > first_ns + slack_ns ||
	       (translation->proto != IP_PROTO_TCP && translation->ended_ns &&
		translation->ended_ns + LATE_NS < last_ns);
}

/* The kernel may continue a TCP connection after its socket is gone; a SYN begins another one. */
static bool may_go_on(const struct flow_entry *entry)
{
	return entry->key.proto == IP_PROTO_TCP &&
	       !(entry->tally.attrs.marks & TCP_SYN);
}

static int rate_time(const struct socket_search *search,
		     const struct translation *translation)
{
	const struct flow_tally *tally = &search->entry->tally;
	const int64_t first_ns = (int64_t)tally->first_ns;
	const int64_t last_ns = last_of(search, translation);

	if (translation->first_ns > (int64_t)tally->last_ns + TRANSLATION_SLACK_NS)
		return 0;
	if (last_ns + TRANSLATION_SLACK_NS >= first_ns)
		return IS_MEANWHILE;
	return may_go_on(search->entry) &&
			       last_ns + TRANSLATION_GRACE_NS >= first_ns ?
		       IS_NEAR :
		       0;
}

static int rate_socket(const struct socket_search *search,
		       const struct translation *translation)
{
	const int place = rate_place(search, translation);
	const int time = place ? rate_time(search, translation) : 0;

	return time ? place + time : 0;
}

static bool is_same_asked(const struct translation *a,
			  const struct translation *b)
{
	return !memcmp(&a->before[NAT_ORIGINAL], &b->before[NAT_ORIGINAL],
		       sizeof(a->before[NAT_ORIGINAL]));
}

struct search_result search_socket(const struct socket_search *search,
				   uint32_t dir)
{
	const struct translation_table *table = search->table;
	const uint32_t face =
		dir * SIDES + (dir == NAT_ORIGINAL ? AFTER : BEFORE);
	const struct face_key key = { .tuple = search->tuple,
				      .proto = search->entry->key.proto,
				      .side = face % SIDES,
				      .of_socket = true };
	const struct flow_tally *tally = &search->entry->tally;
	struct search_result result = { 0 };
	int best = 0, n = 0;

	for (uint32_t node = translation_table_first(table, &key);
	     node && n < TRANSLATION_LOOKS;
	     node = translation_table_next(table, node, &key), n++) {
		const struct translation *translation =
			translation_of(table, node);
		int rating;

		if (face_of(node) != face)
			continue;
		rating = rate_socket(search, translation);
		if (!rating || rating < best)
			continue;
		result.is_ambiguous =
			socket_has_others(translation, (int64_t)tally->first_ns,
					  (int64_t)tally->last_ns) ||
			(rating == best &&
			 (result.is_ambiguous ||
			  !is_same_asked(translation,
					 translation_of(table, result.node))));
		best = rating;
		result.node = node;
	}
	result.is_ambiguous |= n == TRANSLATION_LOOKS ||
			       translation_table_has_lost(table, &key);
	return result;
}
