// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Finds the processes at the ends of a flow by its entries. An entry says at which interface the
 * packets passed, and in which direction; so it says which network namespaces may have sockets
 * for them, where the table of owners (owners.h) is asked. Each entry is looked up when it
 * arrives (who_note()), for three cases:
 *
 *  - The near end, in the namespace of the interface: the source of packets that leave it, the
 *    destination of those that enter.
 *  - At a loopback interface, the other end, in the same namespace.
 *  - At an interface whose peer is in another namespace, the other end, in that one.
 *
 * Say curl in a container, at 10.0.0.2, asks 192.0.2.1, and the host sees the packets at the veth
 * interface of the container and then at eth0. They enter by the veth interface: the host has no
 * socket for their destination, 192.0.2.1, because it forwards them; but the namespace of the
 * container, behind the pair, has the socket of their source. They leave by eth0: the host has
 * no socket for their source, 10.0.0.2. So the flow has a source process, curl, and no
 * destination process.
 *
 * A flow keeps what its entries have found (struct who_ends). If two entries found different
 * processes for an end, the record names none.
 */
#include "who.h"

#include "base/clock.h"
#include "bpf/parse/headers.h"
#include "host/host_state.h"

#include <netobs/flow.h>

#include <string.h>

enum { SOURCE, DESTINATION, ENDS };

enum { GLANCE_NS = 2000000, GLANCE_SHARE = 20 };

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

/* Bindings of a UDP socket, as udp4_lib_lookup2() of net/ipv4/udp.c prefers them. */
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

static bool is_same_owner(const struct session_owner *a,
			  const struct session_owner *b)
{
	return a->pid_tgid >> 32 == b->pid_tgid >> 32;
}

/*
 * The best-matching socket receives every packet while it is open. If it was not open for the
 * whole time, a less specific socket may have received some.
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
		/* Packets that the namespace forwards have ports, too. */
		if (found == OWNER_NONE ||
		    (bound == TO_PORT &&
		     !spaces_have(&who->spaces, key->netns, key->local)))
			continue;
		if (found != OWNER_FOUND)
			return found;
		if (best && !is_same_owner(&best->owner, &entry->owner))
			return OWNER_SEVERAL;
		best = entry;
		if (owner_was_open_throughout(best, first_ns, last_ns))
			break;
	}
	*ret_entry = best;
	return best ? OWNER_FOUND : OWNER_NONE;
}

static enum owner_found find_end(struct who *who, const struct flow_key *key,
				 int end, uint32_t inode, int64_t first_ns,
				 int64_t last_ns,
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

/* Set the owner: the last process that used the socket. If owners differ, the end has none. */
static void set_end(struct who_end *end, uint64_t cookie,
		    const struct session_owner *owner)
{
	if (end->is_known && end->cookie != cookie &&
	    !is_same_owner(&end->owner, owner))
		end->is_ambiguous = true;
	end->is_known = true;
	end->cookie = cookie;
	end->owner = *owner;
}

static void look_for_end(struct who *who, struct who_ends *ends,
			 const struct flow_entry *entry, uint32_t inode, int end)
{
	const struct owner_entry *socket;

	switch (find_end(who, &entry->key, end, inode, entry->tally.first_ns,
			 entry->tally.last_ns, &socket)) {
	case OWNER_NONE:
	case OWNER_UNKNOWN:
		break;
	case OWNER_FOUND:
		set_end(&ends->ends[end], socket->cookie, &socket->owner);
		break;
	case OWNER_SEVERAL:
		ends->ends[end].is_ambiguous = true;
		break;
	}
}

/* A key inside a tunnel has addresses of other hosts. */
static bool may_have_sockets(const struct flow_key *key)
{
	return (key->proto == IP_PROTO_TCP || key->proto == IP_PROTO_UDP ||
		key->proto == IP_PROTO_UDPLITE) &&
	       !(key->flags & KEY_NO_TRANSPORT) && !key->tunnel;
}

void who_note(void *data, const struct flow_entry *entry, void *ctx)
{
	const struct flow_key *key = &entry->key;
	const int near = key->flags & KEY_EGRESS ? SOURCE : DESTINATION;
	struct who_ends *ends = data;
	struct who *who = ctx;
	const struct netif *netif;
	const struct netns *netns;
	uint32_t peer;

	if (!may_have_sockets(key) || key->netns >= who->host->n_netns)
		return;
	netns = &who->host->netns[key->netns];
	netif = host_find(who->host, key->netns, key->ifindex);
	look_for_end(who, ends, entry, netns->inode, near);
	if (!netif)
		return;
	if (netif->type == LINK_TYPE_LOOPBACK)
		look_for_end(who, ends, entry, netns->inode, !near);
	peer = peers_inode(who->host, netns, netif);
	if (peer)
		look_for_end(who, ends, entry, peer, !near);
	else if (netif->type == LINK_TYPE_PAIR && netif->gone_ns)
		/* The other end of the pair is gone, and its process unknown; another entry may have found a process. */
		ends->ends[!near].is_ambiguous = true;
}

void who_join(void *data, const void *from, void *ctx)
{
	const struct who_ends *other = from;
	struct who_ends *ends = data;

	(void)ctx;
	for (int i = 0; i < ENDS; i++) {
		ends->ends[i].is_ambiguous |= other->ends[i].is_ambiguous;
		if (other->ends[i].is_known)
			set_end(&ends->ends[i], other->ends[i].cookie,
				&other->ends[i].owner);
	}
}

void who_fill(void *data, struct netobs_flow *record, void *ctx)
{
	const struct netobs_process **processes[] = { &record->src_process,
						      &record->dst_process };
	struct who_ends *ends = data;
	struct who *who = ctx;

	for (int i = 0; i < ENDS; i++) {
		const struct who_end *end = &ends->ends[i];

		if (!end->is_known || end->is_ambiguous)
			continue;
		owners_describe(&who->owners, &end->owner, &who->ends[i]);
		*processes[i] = &who->ends[i];
	}
	*ends = (struct who_ends){ 0 };
}

/* ---- The feature -------------------------------------------------------------------------- */

int who_init(struct who *who, const struct host *host,
	     const struct who_options *options, const struct log *log)
{
	int err = owners_open(&who->owners, options->disabled, options->max,
			      spaces_note, &who->spaces, log);

	if (err)
		return err;
	who->owners.names = options->names;
	who->host = host;
	who->keep_ns = options->keep_ns;
	who->spaces = (struct spaces){ .host = host, .log = log };
	return 0;
}

void who_done(struct who *who)
{
	owners_close(&who->owners);
	spaces_done(&who->spaces);
	who->host = NULL;
}

void who_begin(struct who *who)
{
	spaces_begin_round(&who->spaces);
	owners_begin(&who->owners, who->keep_ns);
	who->phase = WHO_SOCKETS;
}

bool who_step(struct who *who, uint32_t *ret_wait_ms)
{
	switch (who->phase) {
	case WHO_SOCKETS:
		if (owners_step(&who->owners, ret_wait_ms))
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

/* @return the socket at an end, at a moment; NULL: none, or several may be meant */
static const struct owner_entry *find_socket(struct who *who, uint32_t inode,
					     const struct flow_key *key,
					     bool is_source, int64_t time_ns)
{
	const int end = is_source ? SOURCE : DESTINATION;
	const struct owner_entry *entry;

	return find_end(who, key, end, inode, time_ns, time_ns, &entry) ==
			       OWNER_FOUND ?
		       entry :
		       NULL;
}

bool who_find(struct who *who, uint32_t inode, const struct flow_key *key,
	      bool is_source, int64_t now_ns, struct netobs_process *ret_process)
{
	const struct owner_entry *entry =
		find_socket(who, inode, key, is_source, now_ns);

	if (entry)
		owners_describe(&who->owners, &entry->owner, ret_process);
	return entry;
}

bool who_find_packet(struct who *who, uint32_t inode,
		     const struct flow_key *key, bool is_source,
		     int64_t time_ns, struct netobs_process *ret_process)
{
	const struct owner_entry *entry =
		may_have_sockets(key) ?
			find_socket(who, inode, key, is_source, time_ns) :
			NULL;

	if (!entry)
		return false;
	if (time_ns > who->owners.table.begun_ns && entry->to_ns < time_ns)
		return false;
	owners_describe(&who->owners, &entry->owner, ret_process);
	return true;
}
