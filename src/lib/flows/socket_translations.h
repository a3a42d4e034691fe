/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Translation when a socket connects, by programs of others. The kernel has no entry for it, but
 * the programs of engine/connects.h report it with the socket: so in the table of translations
 * there is one from what the process asked for to what its packets have.
 *
 * Packets have the same tuple everywhere, whatever interface they pass: that behind the original
 * direction's translation, and that before the reply's. So an entry is one's by its place among
 * the namespaces, and by the time. It lasts until the socket is destroyed. Of a socket that sends
 * from any address, packets in its namespace complete the local one, if no other socket may have
 * the port.
 */
#ifndef NETOBS_FLOWS_SOCKET_TRANSLATIONS_H
#define NETOBS_FLOWS_SOCKET_TRANSLATIONS_H

#include "engine/connects.h"
#include "socket_search.h"
#include "who/spaces.h"

struct host;

struct socket_translations {
	struct connects connects;
	struct translation_table *table;
	const struct host *host; /* or NULL */
	uint64_t n_noted;
	int64_t latest_ns; /* of what was reported */
	uint64_t n_lost;   /* reports, as far as that is known */
	uint64_t n_missed; /* calls of UDP whose address was not seen */
	struct spaces spaces; /* those of sockets that are not followed, behind pairs */
	bool wants_search; /* for one of them */
};

/* @return 0; -errno: the kernel lacks something, and there are none */
int socket_translations_open(struct socket_translations *sockets,
			     struct translation_table *table,
			     const struct host *host);

void socket_translations_close(struct socket_translations *sockets);

/* Take what the programs have reported, and look for namespaces for up to a millisecond. */
void socket_translations_read(struct socket_translations *sockets);

/* Only what has been reported by itself, which is all of TCP. */
void socket_translations_take(struct socket_translations *sockets);

/* Entries are read: addresses of namespaces may have changed since the last time. */
void socket_translations_begin_round(struct socket_translations *sockets);

/* Note what the programs report. For tests, also without them. */
void socket_translations_note(struct socket_translations *sockets,
			      const struct connect_event *event);

/* Reports were lost, so many so far: nothing is known any more of sockets that were reported. */
void socket_translations_note_lost(struct socket_translations *sockets,
				   uint64_t n_lost);

/* Calls of UDP were not seen, so many so far: the same for sockets of UDP. */
void socket_translations_note_missed(struct socket_translations *sockets,
				     uint64_t n_missed);

/* Find out which pair of interfaces leads to a namespace that is not followed. @pid: of a process there */
void socket_translations_look_for(struct socket_translations *sockets,
				  uint32_t inode, uint32_t pid);

/*
 * A socket that sends datagrams from any address: note its translation for that which such packets
 * have. @dir: as search_socket(). @return false: it may have one of several
 */
bool socket_translations_complete(struct socket_translations *sockets,
				  const struct socket_search *search,
				  uint32_t dir);

#endif
