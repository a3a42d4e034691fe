/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the socket whose translation packets with a tuple have, by its namespace and the time.
 * Several sockets may have the same tuple, so an answer may be ambiguous.
 */
#ifndef NETOBS_FLOWS_SOCKET_SEARCH_H
#define NETOBS_FLOWS_SOCKET_SEARCH_H

#include "translation_table.h"

struct flow_entry;
struct host;

struct search_result {
	uint32_t node; /* of the table; 0: none */
	bool is_ambiguous; /* other sockets are as likely, with another tuple on the other side */
};

/* The tuple to search, where packets have it, and when. */
struct socket_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry; /* has the time and the protocol */
	struct tuple tuple;
	uint16_t netns;
	uint32_t ifindex;
	bool is_sent_here; /* a socket of that namespace sent the packets */
	uint32_t inode; /* of the socket's namespace; 0: unknown, see netns */
};

/*
 * Whether some packets of that time belong to other sockets: they were sent with the same tuple
 * before this socket connected, or after its end.
 */
bool socket_has_others(const struct translation *translation, int64_t first_ns,
		       int64_t last_ns);

/* Find the translation of the socket that sends (NAT_ORIGINAL) or receives such packets. */
struct search_result search_socket(const struct socket_search *search,
				   uint32_t dir);

#endif
