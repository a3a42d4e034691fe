// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "translations.h"

#include "base/text.h"
#include "bpf/parse/headers.h"
#include "flows/flow_table.h"
#include "host/host.h"

#include <arpa/inet.h>
#include <string.h>

static const struct log silent;

/* Sockets have no interfaces: translation.ifindex of a partial one has places of completed ones. */
enum { COMPLETED_MAX = FACES };

/* ---- What is reported --------------------------------------------------------------- */

static uint16_t find_netns(const struct host *host, uint32_t inode)
{
	const struct netns *netns =
		host ? host_find_followed(host, inode, NULL) : NULL;

	return netns ? netns->index : NETNS_NONE;
}

static struct ip_addr addr_of(const uint8_t bytes[16])
{
	struct ip_addr addr;

	memcpy(addr.bytes, bytes, sizeof(addr.bytes));
	return addr;
}

static struct translation translation_of_socket(const struct connect_event *event,
						uint16_t netns)
{
	const struct connect_tuple *tuple = &event->tuple;
	const struct ip_addr local = addr_of(tuple->local);
	struct translation translation = {
		.first_ns = (int64_t)event->time_ns,
		.last_ns = (int64_t)event->time_ns,
		.born_ns = (int64_t)event->time_ns,
		.before = { { .src = local,
			      .dst = addr_of(event->asked),
			      .src_port = tuple->local_port,
			      .dst_port = event->asked_port },
			    { .src = addr_of(tuple->remote),
			      .dst = local,
			      .src_port = tuple->remote_port,
			      .dst_port = tuple->local_port } },
		.netns = netns,
		.proto = tuple->protocol,
		.of_socket = true,
		.is_partial = ip_is_unspecified(local.bytes),
	};

	translation.socket.cookie = event->cookie;
	translation.socket.inode = tuple->netns;
	translation.socket.is_another = event->is_another;
	translation.socket.is_followed = event->kind == CONNECT_SENT;
	return translation;
}

void socket_translations_look_for(struct socket_translations *sockets,
				  uint32_t inode, uint32_t pid)
{
	if (!sockets->host || !pid)
		return;
	spaces_note_process(&sockets->spaces, inode, pid);
	sockets->wants_search = true;
}

/* @return @partial completed with the socket's own address @addr */
static struct translation complete_partial(const struct translation *partial,
					   const struct ip_addr *addr)
{
	struct translation whole = {
		.first_ns = partial->first_ns,
		.last_ns = partial->last_ns,
		.born_ns = partial->born_ns,
		.before = { partial->before[0], partial->before[1] },
		.netns = partial->netns,
		.proto = partial->proto,
		.of_socket = true,
	};

	whole.socket = partial->socket;
	whole.before[NAT_ORIGINAL].src = whole.before[NAT_REPLY].dst = *addr;
	return whole;
}

/* @return the completed translation of @partial at @place; NULL: another one is there by now */
static const struct translation *
completed_at(const struct socket_translations *sockets,
	     const struct translation *partial, uint32_t place)
{
	const struct translation *whole =
		place ? &sockets->table->list[place - 1] : NULL;
	struct translation wanted;

	if (!whole || !translation_is_there(whole) || !whole->of_socket)
		return NULL;
	wanted = complete_partial(partial, &whole->before[NAT_ORIGINAL].src);
	return whole->socket.cookie == partial->socket.cookie &&
			       !memcmp(whole->before, wanted.before,
				       sizeof(whole->before)) ?
		       whole :
		       NULL;
}

/* End the translations that packets have completed from @partial. */
static void end_completed(struct socket_translations *sockets,
			  const struct translation *partial, int64_t now_ns)
{
	for (uint32_t i = 0; i < COMPLETED_MAX; i++) {
		const struct translation *whole =
			completed_at(sockets, partial, partial->ifindex[i]);

		if (whole)
			translation_table_end_socket(sockets->table, whole,
						     now_ns);
	}
}

static void end_sockets(struct socket_translations *sockets,
			const struct translation *wanted)
{
	const struct translation *ended = translation_table_end_socket(
		sockets->table, wanted, wanted->last_ns);

	if (ended && ended->is_partial)
		end_completed(sockets, ended, wanted->last_ns);
}

void socket_translations_note(struct socket_translations *sockets,
			      const struct connect_event *event)
{
	const uint16_t netns = find_netns(sockets->host, event->tuple.netns);
	const struct translation wanted = translation_of_socket(event, netns);

	sockets->n_noted++;
	sockets->latest_ns = max_i64(sockets->latest_ns, wanted.first_ns);
	switch (event->kind) {
	case CONNECT_BEGIN:
	case CONNECT_DIRECT:
	case CONNECT_SENT:
		if (netns == NETNS_NONE)
			socket_translations_look_for(sockets, event->tuple.netns,
						     event->pid);
		translation_table_take(sockets->table, &wanted);
		break;
	case CONNECT_END:
		end_sockets(sockets, &wanted);
	}
}

static int on_connect_event(void *ctx, void *data, size_t size)
{
	if (size >= sizeof(struct connect_event))
		socket_translations_note(ctx, data);
	return 0;
}

int socket_translations_open(struct socket_translations *sockets,
			     struct translation_table *table,
			     const struct host *host)
{
	*sockets = (struct socket_translations){ .table = table,
						 .host = host,
						 .spaces = { .host = host,
							     .log = &silent } };
	return connects_open(&sockets->connects, on_connect_event, sockets);
}

void socket_translations_close(struct socket_translations *sockets)
{
	connects_close(&sockets->connects);
	spaces_done(&sockets->spaces);
}

enum lost_kind { LOST_OF_ALL, LOST_OF_UDP };

/* Remove sockets after a loss: others may have had the same tuples, or any of them may have ended. */
static void forget_sockets(struct translation_table *table, enum lost_kind kind,
			   int64_t now_ns)
{
	for (uint32_t i = 0; i < table->n; i++) {
		struct translation *translation = &table->list[i];

		if (translation_is_there(translation) && translation->of_socket &&
		    (kind == LOST_OF_ALL || translation->proto != IP_PROTO_TCP))
			translation_table_remove(table, translation, now_ns);
	}
}

static void note_lost(struct socket_translations *sockets, enum lost_kind kind,
		      uint64_t n_now, uint64_t *n)
{
	if (n_now == *n || sockets->table->is_held)
		return;
	forget_sockets(sockets->table, kind, sockets->latest_ns);
	*n = n_now;
}

void socket_translations_note_lost(struct socket_translations *sockets,
				   uint64_t n_lost)
{
	note_lost(sockets, LOST_OF_ALL, n_lost, &sockets->n_lost);
}

void socket_translations_note_missed(struct socket_translations *sockets,
				     uint64_t n_missed)
{
	note_lost(sockets, LOST_OF_UDP, n_missed, &sockets->n_missed);
}

void socket_translations_note_skipped(struct socket_translations *sockets,
				      uint64_t n_skipped)
{
	note_lost(sockets, LOST_OF_UDP, n_skipped + sockets->n_skipped,
		  &sockets->n_twice);
	sockets->n_skipped = n_skipped;
}

static void note_losses(struct socket_translations *sockets)
{
	socket_translations_note_lost(sockets, connects_lost(&sockets->connects));
	socket_translations_note_missed(sockets,
					connects_missed(&sockets->connects));
	socket_translations_note_skipped(
		sockets, connects_skipped_udp(&sockets->connects));
}

void socket_translations_take(struct socket_translations *sockets)
{
	connects_read(&sockets->connects);
	note_losses(sockets);
}

void socket_translations_read(struct socket_translations *sockets)
{
	connects_list(&sockets->connects);
	note_losses(sockets);
	if (sockets->wants_search && sockets->host &&
	    sockets->spaces.phase == SPACES_AT_REST) {
		sockets->wants_search = false;
		spaces_begin_search(&sockets->spaces);
	}
	spaces_step(&sockets->spaces);
}

/* ---- Sockets without an address of their own ------------------------------------------ */

/* No other socket has its port, but forwarded packets may have it, with other addresses. */
static bool is_own_address(struct socket_translations *sockets,
			   const struct translation *partial,
			   const struct ip_addr *addr)
{
	return !sockets->host ||
	       spaces_have(&sockets->spaces, partial->socket.inode, addr->bytes);
}

/* @return the link of @partial to the translation with that address, or a free link; NULL: neither */
static uint32_t *find_link(const struct socket_translations *sockets,
			   struct translation *partial,
			   const struct ip_addr *addr)
{
	uint32_t *unused = NULL;

	for (uint32_t i = 0; i < COMPLETED_MAX; i++) {
		uint32_t *link = &partial->ifindex[i];
		const struct translation *whole =
			completed_at(sockets, partial, *link);

		if (!whole || whole->ended_ns)
			unused = unused ?: link;
		else if (!memcmp(&whole->before[NAT_ORIGINAL].src, addr,
				 sizeof(*addr)))
			return link;
	}
	return unused;
}

static void complete(struct socket_translations *sockets,
		     struct translation *partial, const struct ip_addr *addr)
{
	const struct translation wanted = complete_partial(partial, addr);
	uint32_t *link = find_link(sockets, partial, addr);
	const struct translation *whole =
		link ? translation_table_take(sockets->table, &wanted) : NULL;

	if (!whole)
		return;
	*link = 1 + (uint32_t)(whole - sockets->table->list);
	if (partial->ended_ns)
		translation_table_end_socket(sockets->table, &wanted,
					     partial->ended_ns);
}

bool socket_translations_complete(struct socket_translations *sockets,
				  const struct socket_search *search,
				  uint32_t dir)
{
	struct socket_search any = *search;
	struct ip_addr *own = dir == NAT_ORIGINAL ? &any.tuple.src :
						    &any.tuple.dst;
	const struct ip_addr addr = *own;
	struct search_result result;
	struct translation *partial;

	if (search->entry->key.proto == IP_PROTO_TCP)
		return true;
	*own = (struct ip_addr){
		.words = { 0, 0, ip_is_v4(addr.bytes) ? htonl(0xffff) : 0 }
	};
	result = search_socket(&any, dir);
	if (!result.node)
		return true;
	partial = translation_of(sockets->table, result.node);
	if (!is_own_address(sockets, partial, &addr))
		return true;
	if (result.is_ambiguous)
		return false;
	translation_use(sockets->table, result.node, &search->entry->tally);
	complete(sockets, partial, &addr);
	return true;
}

void socket_translations_begin_round(struct socket_translations *sockets)
{
	if (sockets->host)
		spaces_begin_round(&sockets->spaces);
}
