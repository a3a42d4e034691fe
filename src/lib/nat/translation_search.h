/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the translation of an entry's packets: the one with that tuple that was in use at the same time
 * and place. Several translations may have the same tuple, so an answer may be ambiguous.
 */
#ifndef NETOBS_NAT_TRANSLATION_SEARCH_H
#define NETOBS_NAT_TRANSLATION_SEARCH_H

#include "translation_table.h"

/*
 * Finds the socket whose translation packets with a tuple have, by its namespace and the time.
 * Several sockets may have the same tuple, so an answer may be ambiguous.
 */

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
 * @return whether some packets of that time belong to other sockets: they were sent with the
 * same tuple before this socket connected, or after its end
 */
bool socket_has_others(const struct translation *translation, int64_t first_ns,
		       int64_t last_ns);

/* Find the translation of the socket that sends (NAT_ORIGINAL) or receives such packets. */
struct search_result search_socket(const struct socket_search *search,
				   uint32_t dir);

/* The face to search for an entry: its tuple and place. */
struct face_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry;
	struct tuple tuple;
	uint16_t netns;
	uint8_t side;
	bool is_elsewhere; /* in other namespaces of the same domain, */
	bool is_own_tuple; /* and in this one, if packets were sent back; it is the entry's own */
	bool is_anywhere; /* also in this one, at the entry's interface, or any if it has none */
};

/* @return a search for the entry's own tuple at its own interface */
struct face_search search_for(const struct host *host,
			      const struct translation_table *table,
			      const struct flow_entry *entry);

struct search_result search_face(const struct face_search *search);

/* The flow's tuple where its packets came in, before the first translation that is known. */
struct origin {
	struct tuple tuple;
	uint32_t hops; /* translations from there to the entry */
	uint32_t node; /* face of the entry in the last of these translations */
	uint32_t known; /* as node; also set for packets that a process sends there */
	uint32_t first;	   /* node of the first translation that is known */
	bool is_ambiguous; /* the last translation is not known */
};

struct origin search_origin(const struct host *host,
			    const struct translation_table *table,
			    const struct flow_entry *entry);

/* Find where packets were before the translation of @node, a face after it; 0: at the entry. */
struct socket_search search_sender(const struct host *host,
				   const struct translation_table *table,
				   const struct flow_entry *entry, uint32_t node);

/*
 * Find the conversation's tuple: that of its first packet, before any translation of this host,
 * with the address that the process asked for. @return whether it is known: translations of
 * several namespaces may lead back to each other
 */
bool search_conversation(const struct host *host,
			 const struct translation_table *table,
			 const struct flow_entry *entry, uint32_t node,
			 struct tuple *ret_tuple);

/* As search_conversation(), for packets seen anywhere on their way, or at its end. */
bool search_passing(const struct host *host,
		    const struct translation_table *table,
		    const struct flow_entry *entry, struct tuple *ret_tuple);

uint64_t tuple_conversation(const struct tuple *tuple, uint8_t proto);

#endif
