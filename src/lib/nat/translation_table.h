/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The table of translations (translation.h): adds, removes and finds them, also by face. */
#ifndef NETOBS_NAT_TRANSLATION_TABLE_H
#define NETOBS_NAT_TRANSLATION_TABLE_H

#include "translation.h"

/** @return 0; -ENOMEM */
int translation_table_init(struct translation_table *table);

void translation_table_done(struct translation_table *table);

/* Note what a program has reported. */
void translation_table_note(struct translation_table *table,
			    const struct nat_event *event);

/*
 * Note an entry of a list of the kernel's. None of its packets has been seen: flows do not use it
 * before a packet is reported. @return its translation; NULL: there is no room
 */
struct translation *translation_table_list(struct translation_table *table,
					   const struct nat_event *event);

/* @return the translation of that entry; NULL: the table has none */
struct translation *translation_table_find(const struct translation_table *table,
					   const struct nat_event *event);

/* Note a socket's translation, with its birth. @return it in the table; NULL: there is no room */
struct translation *translation_table_take(struct translation_table *table,
					   const struct translation *wanted);

/* A socket's translation ends. @return it; NULL: the table has none, or it has ended before */
struct translation *translation_table_end_socket(struct translation_table *table,
						 const struct translation *wanted,
						 int64_t now_ns);

void translation_table_remove(struct translation_table *table,
			      struct translation *translation, int64_t now_ns);

/* The kernel no longer has its entry. */
void translation_table_end(struct translation_table *table,
			   struct translation *translation, int64_t now_ns);

/* Add evidence about @translation: SIGN_*. */
void translation_table_sign(struct translation_table *table,
			    struct translation *translation, uint8_t signs);

/* @return a translation with the data of an event */
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
/* The next node with that face; translations reported last come first. */
uint32_t translation_table_next(const struct translation_table *table,
				uint32_t node, const struct face_key *key);

/* @return whether packets may have had a translation with that face that found no room */
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

/* @return whether its packets get other addresses or ports */
bool translation_changes(const struct translation *translation);

/* An entry uses a face of a translation, although reports of its packets may have ended. */
void translation_use(struct translation_table *table, uint32_t node,
		     const struct flow_tally *tally);

/* @return whether all entries with packets of the translation have been read */
static inline bool translation_is_read(const struct translation_table *table,
				       const struct translation *translation)
{
	return translation_last(table, translation) < table->unread_ns;
}

#endif
