/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Which translation the packets of an entry have had: the one with that tuple that was in use at the
 * same time and place. Others may have the same tuple, so an answer may be ambiguous.
 */
#ifndef NETOBS_FLOWS_TRANSLATION_SEARCH_H
#define NETOBS_FLOWS_TRANSLATION_SEARCH_H

#include "socket_search.h"

struct host;

/* What is searched for an entry: a face with that tuple. */
struct face_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry;
	struct tuple tuple;
	uint16_t netns;
	uint8_t side;
	bool is_elsewhere; /* in other namespaces of the same domain, */
	bool is_own_tuple; /* and in this one, if packets were sent back: it is the entry's */
	bool is_anywhere; /* also in this one, at the entry's interface, or any if it has none */
};

/* Of the entry's own tuple, at its own place. */
struct face_search search_for(const struct host *host,
			      const struct translation_table *table,
			      const struct flow_entry *entry);

struct search_result search_face(const struct face_search *search);

/* The flow's tuple where its packets came in, before the first translation that is known. */
struct origin {
	struct tuple tuple;
	uint32_t hops; /* translations from there to the entry */
	uint32_t node; /* of the last one of them: the face that the entry has */
	uint32_t known;	   /* the same, also of what a process sends there */
	uint32_t first;	   /* the first translation that is known */
	bool is_ambiguous; /* the last translation is not known, */
};

struct origin search_origin(const struct host *host,
			    const struct translation_table *table,
			    const struct flow_entry *entry);

/* Where packets were before the translation of @node, a face after it; 0: where the entry is. */
struct socket_search search_sender(const struct host *host,
				   const struct translation_table *table,
				   const struct flow_entry *entry, uint32_t node);

/*
 * The conversation's tuple: of its first packet, before any translation of this host, or as was asked
 * for. @return whether it is known: translations of several namespaces may lead back to each other
 */
bool search_conversation(const struct host *host,
			 const struct translation_table *table,
			 const struct flow_entry *entry, uint32_t node,
			 struct tuple *ret_tuple);

/* The same, of packets that are seen anywhere on their way, or got there. @return the same */
bool search_passing(const struct host *host,
		    const struct translation_table *table,
		    const struct flow_entry *entry, struct tuple *ret_tuple);

uint64_t tuple_conversation(const struct tuple *tuple, uint8_t proto);

#endif
