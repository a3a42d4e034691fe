/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Translation when a socket connects, by other BPF programs, such as those of a load balancer.
 * Conntrack has no entry for it, but the programs of connects.h report it with the socket: the
 * table has a translation from the address that the process asked for to the address in its packets.
 *
 * Such packets have the same tuple at all interfaces: the one after the original direction's
 * translation, or the one before the reply's. So the namespace and the time tell which socket an entry
 * belongs to. The entry lasts until the socket is destroyed. If a socket sends from any address, packets
 * in its namespace complete the local address, unless another socket may have the port.
 */
#ifndef NETOBS_NAT_SOCKET_TRANSLATIONS_H
#define NETOBS_NAT_SOCKET_TRANSLATIONS_H

#include "connects.h"
#include "translation_search.h"
#include "who/spaces.h"

struct host;

struct socket_translations {
	struct connects connects;
	struct translation_table *table;
	const struct host *host; /* or NULL */
	uint64_t n_noted;
	int64_t latest_ns; /* time of the latest report */
	uint64_t n_lost;   /* reports, as far as that is known */
	uint64_t n_missed; /* calls of UDP whose address was not seen */
	struct spaces spaces; /* of sockets whose namespaces are not followed, behind pairs */
	bool wants_search; /* one of these spaces is to be found */
};

/* @return 0; -errno: the kernel lacks a feature, and no translations are reported */
int socket_translations_open(struct socket_translations *sockets,
			     struct translation_table *table,
			     const struct host *host);

void socket_translations_close(struct socket_translations *sockets);

/* Read the programs' reports, and search namespaces for up to a millisecond. */
void socket_translations_read(struct socket_translations *sockets);

/* Read the reports that programs have sent by themselves: all of TCP, but not all of UDP. */
void socket_translations_take(struct socket_translations *sockets);

/* Entries are about to be read: addresses of namespaces may have changed since the last time. */
void socket_translations_begin_round(struct socket_translations *sockets);

/* Note a report of the programs. Tests call it without programs. */
void socket_translations_note(struct socket_translations *sockets,
			      const struct connect_event *event);

/* @n_lost: reports lost so far. If there are new ones, forget all sockets that were reported. */
void socket_translations_note_lost(struct socket_translations *sockets,
				   uint64_t n_lost);

/* @n_missed: UDP calls missed so far. If there are new ones, forget all sockets of UDP. */
void socket_translations_note_missed(struct socket_translations *sockets,
				     uint64_t n_missed);

/* Find out which pair of interfaces leads to a namespace that is not followed. @pid: of a process there */
void socket_translations_look_for(struct socket_translations *sockets,
				  uint32_t inode, uint32_t pid);

/*
 * For a socket that sends datagrams from any address: add its translation for the address that
 * such packets have. @dir: as search_socket(). @return false: several sockets are possible
 */
bool socket_translations_complete(struct socket_translations *sockets,
				  const struct socket_search *search,
				  uint32_t dir);

#endif
