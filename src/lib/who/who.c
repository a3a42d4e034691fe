// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "who.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "host/peers.h"

#include <netobs/flow.h>

#include <string.h>

enum { SOURCE, DESTINATION, ENDS };

enum { GLANCE_NS = 2000000, GLANCE_SHARE = 20 };

/* Beside a flow: the owners of the sockets at its ends. */
struct end {
	uint64_t cookie; /* of the socket */
	struct session_owner owner;
	bool is_known;
	bool is_ambiguous; /* there are several */
};

struct place {
	struct end ends[ENDS];
};

/* ---- Sockets ----------------------------------------------------------------------------- */

static struct owner_key owner_key_of(const struct flow_key *key, int end,
				     uint32_t inode)
{
	const bool is_source = end == SOURCE;
	struct owner_key wanted = {
		.local_port = is_source ? key->src_port : key->dst_port,
		.remote_port = is_source ? key->dst_port : key->src_port,
		.netns = inode,
		.protocol = key->proto,
	};

	memcpy(wanted.local, is_source ? key->src.bytes : key->dst.bytes, 16);
	memcpy(wanted.remote, is_source ? key->dst.bytes : key->src.bytes, 16);
	return wanted;
}

/* How a socket of UDP may be bound, as udp4_lib_lookup2() of net/ipv4/udp.c prefers it. */
enum bound { CONNECTED, TO_ADDRESS, TO_PORT, BOUNDS };

static void set_bound(struct owner_key *wanted, enum bound bound, bool is_ipv6)
{
	if (bound == CONNECTED)
		return;
	memset(wanted->remote, 0, sizeof(wanted->remote));
	wanted->remote_port = 0;
	if (bound == TO_ADDRESS)
		return;
	memset(wanted->local, 0, sizeof(wanted->local));
	if (!is_ipv6)
		wanted->local[10] = wanted->local[11] = 0xff;
}

static bool is_same(const struct session_owner *a, const struct session_owner *b)
{
	return a->pid_tgid >> 32 == b->pid_tgid >> 32;
}

/*
 * One that is preferred has all packets while it is open. Unless that is certain to be as long
 * as they came, others have some.
 */
static enum owner_found find_udp(struct who *who, const struct owner_key *key,
				 bool is_ipv6, int64_t first_ns, int64_t last_ns,
				 const struct owner_entry **ret_entry)
{
	const struct owner_entry *best = NULL, *entry = NULL;
	struct owner_key wanted = *key;

	for (enum bound bound = CONNECTED; bound < BOUNDS; bound++) {
		enum owner_found found;

		set_bound(&wanted, bound, is_ipv6);
		found = owner_table_find(&who->owners.table, &wanted, first_ns,
					 last_ns, &entry);
		/* What only passes through the namespace has ports, too. */
		if (found == OWNER_NONE ||
		    (bound == TO_PORT &&
		     !spaces_have(&who->spaces, key->netns, key->local)))
			continue;
		if (found != OWNER_FOUND)
			return found;
		if (best && !is_same(&best->owner, &entry->owner))
			return OWNER_SEVERAL;
		best = entry;
		if (owner_was_open_throughout(best, first_ns, last_ns))
			break;
	}
	*ret_entry = best;
	return best ? OWNER_FOUND : OWNER_NONE;
}

static enum owner_found find(struct who *who, const struct flow_key *key, int end,
			     uint32_t inode, int64_t first_ns, int64_t last_ns,
			     const struct owner_entry **ret_entry)
{
	const struct owner_key wanted = owner_key_of(key, end, inode);

	return key->proto == IP_PROTO_TCP ?
		       owner_table_find(&who->owners.table, &wanted, first_ns,
					last_ns, ret_entry) :
		       find_udp(who, &wanted, key->flags & KEY_IPV6, first_ns,
				last_ns, ret_entry);
}

/* ---- Flows -------------------------------------------------------------------------------- */

/* The last one that used a socket is its owner; several sockets are of one process, or of none. */
static void set_end(struct end *end, uint64_t cookie,
		    const struct session_owner *owner)
{
	if (end->is_known && end->cookie != cookie && !is_same(&end->owner, owner))
		end->is_ambiguous = true;
	end->is_known = true;
	end->cookie = cookie;
	end->owner = *owner;
}

static void look(struct who *who, struct place *place,
		 const struct flow_entry *entry, uint32_t inode, int end)
{
	const struct owner_entry *socket;

	switch (find(who, &entry->key, end, inode, entry->tally.first_ns,
		     entry->tally.last_ns, &socket)) {
	case OWNER_NONE:
	case OWNER_UNKNOWN:
		break;
	case OWNER_FOUND:
		set_end(&place->ends[end], socket->cookie, &socket->owner);
		break;
	case OWNER_SEVERAL:
		place->ends[end].is_ambiguous = true;
		break;
	}
}

/* Inside of a tunnel are addresses of others. */
static bool may_have_sockets(const struct flow_key *key)
{
	return (key->proto == IP_PROTO_TCP || key->proto == IP_PROTO_UDP ||
		key->proto == IP_PROTO_UDPLITE) &&
	       !(key->flags & KEY_NO_TRANSPORT) && !key->tunnel;
}

static void note(void *data, const struct flow_entry *entry, void *ctx)
{
	const struct flow_key *key = &entry->key;
	const int near = key->flags & KEY_EGRESS ? SOURCE : DESTINATION;
	struct who *who = ctx;
	const struct netif *netif;
	const struct netns *netns;
	uint32_t peer;

	if (!may_have_sockets(key) || key->netns >= who->host->n_netns)
		return;
	netns = &who->host->netns[key->netns];
	netif = host_find(who->host, key->netns, key->ifindex);
	look(who, data, entry, netns->inode, near);
	if (!netif)
		return;
	if (netif->type == LINK_TYPE_LOOPBACK)
		look(who, data, entry, netns->inode, !near);
	peer = peers_inode(who->host, netns, netif);
	if (peer)
		look(who, data, entry, peer, !near);
}

static void join(void *data, const void *from, void *ctx)
{
	const struct place *other = from;
	struct place *place = data;

	(void)ctx;
	for (int i = 0; i < ENDS; i++) {
		place->ends[i].is_ambiguous |= other->ends[i].is_ambiguous;
		if (other->ends[i].is_known)
			set_end(&place->ends[i], other->ends[i].cookie,
				&other->ends[i].owner);
	}
}

static void fill(void *data, struct netobs_flow *record, void *ctx)
{
	const struct netobs_process **processes[] = { &record->src_process,
						      &record->dst_process };
	struct place *place = data;
	struct who *who = ctx;

	for (int i = 0; i < ENDS; i++) {
		const struct end *end = &place->ends[i];

		if (!end->is_known || end->is_ambiguous)
			continue;
		owners_describe(&who->owners, &end->owner, &who->ends[i]);
		*processes[i] = &who->ends[i];
	}
	*place = (struct place){ 0 };
}

/* ---- The feature -------------------------------------------------------------------------- */

int who_init(struct who *who, const struct host *host, uint64_t disabled,
	     uint32_t max, const struct log *log)
{
	int err = owners_open(&who->owners, disabled, max, spaces_note,
			      &who->spaces, log);

	if (err)
		return err;
	who->host = host;
	who->spaces = (struct spaces){ .host = host, .log = log };
	who->extra = (struct flow_extra){ .size = sizeof(struct place),
					  .note = note,
					  .join = join,
					  .fill = fill,
					  .ctx = who };
	return 0;
}

void who_done(struct who *who)
{
	owners_close(&who->owners);
	spaces_done(&who->spaces);
	who->host = NULL;
}

void who_begin(struct who *who, int64_t keep_ns)
{
	spaces_begin_round(&who->spaces);
	owners_begin(&who->owners, keep_ns);
	who->phase = WHO_SOCKETS;
}

bool who_step(struct who *who)
{
	switch (who->phase) {
	case WHO_SOCKETS:
		if (owners_step(&who->owners))
			return true;
		spaces_begin_search(&who->spaces);
		who->phase = WHO_SPACES;
		return true;
	case WHO_SPACES:
		if (spaces_step(&who->spaces))
			return true;
		who->phase = WHO_AT_REST;
		return false;
	case WHO_AT_REST:
		break;
	}
	return false;
}

void who_glance(struct who *who)
{
	const int64_t begin_ns = clock_boot_ns();
	int64_t end_ns;

	if (begin_ns < who->glance_due_ns)
		return;
	owners_glance(&who->owners, GLANCE_NS);
	end_ns = clock_boot_ns();
	who->glance_due_ns = end_ns + GLANCE_SHARE * (end_ns - begin_ns);
}

bool who_find(struct who *who, uint32_t inode, const struct flow_key *key,
	      bool is_source, int64_t now_ns, struct netobs_process *ret_process)
{
	const int end = is_source ? SOURCE : DESTINATION;
	const struct owner_entry *entry;

	if (find(who, key, end, inode, now_ns, now_ns, &entry) != OWNER_FOUND)
		return false;
	owners_describe(&who->owners, &entry->owner, ret_process);
	return true;
}

bool who_find_packet(struct who *who, uint32_t inode,
		     const struct flow_key *key, bool is_source,
		     int64_t time_ns, struct netobs_process *ret_process)
{
	const int end = is_source ? SOURCE : DESTINATION;
	const struct owner_entry *entry;

	if (!may_have_sockets(key) ||
	    find(who, key, end, inode, time_ns, time_ns, &entry) != OWNER_FOUND)
		return false;
	if (time_ns > who->owners.table.begun_ns && entry->to_ns < time_ns)
		return false;
	owners_describe(&who->owners, &entry->owner, ret_process);
	return true;
}
