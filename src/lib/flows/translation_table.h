/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The table of translations (translation.h): what is in it, and what has a face. */
#ifndef NETOBS_FLOWS_TRANSLATION_TABLE_H
#define NETOBS_FLOWS_TRANSLATION_TABLE_H

#include "translation.h"

/** @return 0; -ENOMEM */
int translation_table_init(struct translation_table *table);

void translation_table_done(struct translation_table *table);

/* Note what a program has reported. */
void translation_table_note(struct translation_table *table,
			    const struct nat_event *event);

/*
 * Note an entry that a list of the kernel's has. No packet of it has been seen: flows do not use it
 * before one is reported. @return what it is in the table; NULL: there is no room
 */
struct translation *translation_table_list(struct translation_table *table,
					   const struct nat_event *event);

/* @return what the table has of that entry; NULL: nothing */
struct translation *translation_table_find(const struct translation_table *table,
					   const struct nat_event *event);

/* Note what @wanted is: a translation of a socket, with its birth. @return it in the table; NULL: there is no room */
struct translation *translation_table_take(struct translation_table *table,
					   const struct translation *wanted);

/* A translation of a socket ends. @return it; NULL: it is not there, or has ended before */
struct translation *translation_table_end_socket(struct translation_table *table,
						 const struct translation *wanted,
						 int64_t now_ns);

void translation_table_remove(struct translation_table *table,
			      struct translation *translation, int64_t now_ns);

/* The kernel has it no longer. */
void translation_table_end(struct translation_table *table,
			   struct translation *translation, int64_t now_ns);

/* @signs have been noticed of it. */
void translation_table_sign(struct translation_table *table,
			    struct translation *translation, uint8_t signs);

/* What an event says, as the table has it. */
struct translation translation_of_event(const struct nat_event *event);

static inline bool translation_is_there(const struct translation *translation)
{
	return !(translation->serial & 1);
}

/* Programs will write to another generation from now on. */
void translation_table_begin(struct translation_table *table, int64_t now_ns);

/* A face of a translation is a node: 1 + index * FACES + face. 0: there is none. */
uint32_t translation_table_first(const struct translation_table *table,
				 const struct face_key *key);
/* The next one with that face: what was reported last comes first. */
uint32_t translation_table_next(const struct translation_table *table,
				uint32_t node, const struct face_key *key);

/* Packets may have had that face of a translation that there was no room for. */
bool translation_table_has_lost(const struct translation_table *table,
				const struct face_key *key);

static inline struct translation *
translation_of(const struct translation_table *table, uint32_t node)
{
	return &table->list[(node - 1) / FACES];
}

static inline uint32_t translation_node(const struct translation_table *table,
					const struct translation *translation,
					uint32_t face)
{
	return 1 + (uint32_t)(translation - table->list) * FACES + face;
}

static inline uint32_t face_of(uint32_t node)
{
	return (node - 1) % FACES;
}

/* The tuple of packets with that face. */
struct tuple translation_tuple(const struct translation *translation,
			       uint32_t face);

/* Its packets have other addresses or ports behind it. */
bool translation_changes(const struct translation *translation);

/* An entry has that face of a translation, although its packets may not be reported any more. */
void translation_use(struct translation_table *table, uint32_t node,
		     const struct flow_tally *tally);

/* Whether all entries that have it were read. */
static inline bool translation_is_read(const struct translation_table *table,
				       const struct translation *translation)
{
	return translation_last(table, translation) < table->unread_ns;
}

#endif
