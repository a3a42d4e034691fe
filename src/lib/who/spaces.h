/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The network namespaces that sockets are in, by inode. who.c asks two things about them: where a
 * pair of interfaces leads to, if the host does not follow that namespace, and whether an
 * interface there has an address (spaces_have()).
 *
 * A pair names the namespace of its other end only by an id of rtnetlink(7). The kernel tells no
 * namespace for an id, but it tells the id of a namespace whose descriptor it is given. So a search
 * opens namespaces until no pair is left without an inode. The cheapest ways come first: a process
 * that has a socket there; the names of ip-netns(8), Docker and CNI; and any process, one for each
 * namespace.
 *
 * Say a container's interface is eth0, and its peer on the host is veth7, with id 3. A round lists
 * the sockets, one of which, in namespace 4026532513, belongs to process 871 (spaces_note()). The
 * search opens /proc/871/ns/net, and learns that the host's id for it is 3: so packets of veth7
 * come from sockets in 4026532513. While it is open, its addresses are read, too.
 *
 * A search that finds nothing has visited all processes, so the next one waits longer.
 */
#ifndef NETOBS_WHO_SPACES_H
#define NETOBS_WHO_SPACES_H

#include "base/log.h"
#include "base/slots.h"
#include "host/host.h"
#include "host/netns.h"
#include "host/rtnl.h"
#include "owners.h"

struct space {
	uint32_t inode;
	uint32_t pid; /* of a process with a socket there */
	uint32_t round; /* the round in which the addresses were read, or could not be */
	bool has_addresses;
	struct addresses addresses;
};

enum {
	SPACES_ASKED = 1024, /* namespaces that a search remembers */
};

struct spaces {
	const struct host *host;
	const struct log *log;
	uint32_t round;
	/* The state of a search. */
	enum { SPACES_AT_REST, SPACES_OWNERS, SPACES_WALK } phase;
	uint32_t cursor; /* in the table */
	struct netns_walk walk;
	uint32_t before; /* pairs that it is to resolve */
	uint32_t asked[SPACES_ASKED];
	uint32_t wanted; /* pairs that the last search has not resolved */
	uint32_t wait_s; /* until the next search; 0: it may begin at once */
	int64_t searched_ns; /* CLOCK_BOOTTIME */
	bool is_denied; /* namespaces of other processes cannot be opened */
	bool is_denial_logged;
	struct slots table; /* of struct space, by inode */
};

void spaces_done(struct spaces *spaces);

/** The table of sockets is about to be updated. */
void spaces_begin_round(struct spaces *spaces);

/** Note a socket of the updated table. An owner_visit_fn. */
void spaces_note(const struct owner_entry *entry, void *spaces);

/** Note a process with a socket in the namespace with that inode. */
void spaces_note_process(struct spaces *spaces, uint32_t inode, uint32_t pid);

/** The table of sockets is updated: begin to find namespaces that pairs of the host lead to. */
void spaces_begin_search(struct spaces *spaces);

/** Work on the search for about a millisecond. @return false: it is done */
bool spaces_step(struct spaces *spaces);

/** @return whether an interface of that namespace has the address, as far as is known */
bool spaces_have(struct spaces *spaces, uint32_t inode,
		 const uint8_t address[16]);

#endif
