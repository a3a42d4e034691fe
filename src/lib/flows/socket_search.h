/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which socket's translation packets with a tuple have: by its namespace, and by the time. Others
 * may have the same tuple, so an answer may be ambiguous.
 */
#ifndef NETOBS_FLOWS_SOCKET_SEARCH_H
#define NETOBS_FLOWS_SOCKET_SEARCH_H

#include "translation_table.h"

struct flow_entry;
struct host;

struct search_result {
	uint32_t node; /* of the table; 0: none */
	bool is_ambiguous; /* others are as likely, with another tuple on the other side */
};

/* Where packets have a tuple, and when. */
struct socket_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry; /* of the time, and the protocol */
	struct tuple tuple;
	uint16_t netns;
	uint32_t ifindex;
	bool is_sent_here; /* by a socket of that namespace */
	uint32_t inode;	   /* of the namespace of that socket; 0: see above */
};

/*
 * Whether some packets of that time are of others: they were sent before the socket connected, or
 * after its end, with the same tuple.
 */
bool socket_has_others(const struct translation *translation, int64_t first_ns,
		       int64_t last_ns);

/* The translation of the socket that has sent, or gets, such packets. @dir: NAT_ORIGINAL: has sent */
struct search_result search_socket(const struct socket_search *search,
				   uint32_t dir);

#endif
