/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Mappings: the translations as conversations that begin and end. Packets update the table;
 * mapping_questions.h asks the kernel whether it still has an entry without packets, for few
 * entries at a time. include/netobs/mapping.h describes the effect.
 */
#ifndef NETOBS_FLOWS_MAPPINGS_H
#define NETOBS_FLOWS_MAPPINGS_H

#include "translation_table.h"

#include <netobs/mapping.h>

struct clock;
struct conntrack_entry;
struct host;

typedef void mapping_fn(const struct netobs_mapping *mapping, void *user);

/* What was listed of a namespace. */
struct mapping_space {
	uint32_t inode;	     /* of that which is, or was; 0: none */
	int64_t complete_ns; /* since then all mappings are known; 0: they are not */
	int64_t retry_ns; /* then a list may begin, as the last one failed */
	bool cannot_ask; /* the kernel: without a packet for a minute, they are forgotten */
};

struct mappings {
	struct translation_table *table; /* NULL: there are none */
	const struct clock *clock;
	const struct host *host; /* or NULL */
	bool knows_zones;
	mapping_fn *on_mapping; /* begins and ends; or NULL */
	void *user;
	struct translation_watch watch;
	struct mapping_space *spaces; /* by index of the namespace */
	uint32_t n_spaces;
	uint32_t hand;	  /* the next one to look at */
	uint64_t active;  /* that have not ended */
	uint64_t n_begun; /* since the start */
	uint64_t n_ended;
	uint64_t n_forgotten;
	uint64_t n_reported; /* calls of on_mapping */
};

/* Follow what comes to @table, and goes. @mappings stays where it is. */
void mappings_init(struct mappings *mappings, struct translation_table *table,
		   const struct clock *clock, const struct host *host,
		   bool knows_zones, mapping_fn *on_mapping, void *user);

void mappings_done(struct mappings *mappings);

/* @return what was listed of the namespace with that index; NULL: no memory */
struct mapping_space *mappings_space(struct mappings *mappings, uint32_t netns);

/* The kernel lists an entry of the namespace with that index. @return false: there is no room */
bool mappings_list(struct mappings *mappings, uint16_t netns,
		   const struct conntrack_entry *entry, int64_t now_ns);

/*
 * Go through a part of the table: remove what ended a while ago, and find up to @max mappings of
 * which it is time to ask the kernel.
 *
 * @return how many
 */
uint32_t mappings_due(struct mappings *mappings, int64_t now_ns,
		      struct translation **ret_due, uint32_t max);

/* It is not to be asked for within @timeout_s. */
void mappings_go_on(struct translation *translation, int64_t now_ns,
		    uint32_t timeout_s);

/* The kernel has it, as @entry. */
void mappings_answer(struct mappings *mappings, struct translation *translation,
		     const struct conntrack_entry *entry, int64_t now_ns);

/* The kernel does not have it. */
void mappings_end(struct mappings *mappings, struct translation *translation,
		  int64_t now_ns);

/* What to ask the kernel for. */
struct conntrack_entry mapping_question(const struct translation *translation);

/* @return what the table has of the kernel's entry; NULL: nothing */
struct translation *mappings_find_entry(const struct mappings *mappings,
					uint16_t netns,
					const struct conntrack_entry *entry);

/*
 * Pass on the mapping at place @at of the table, or of the next place that has one, unless @at is
 * beyond the last one.
 *
 * @return the place behind it; 0: there is none
 */
uint32_t mappings_next(const struct mappings *mappings, uint32_t at,
		       int64_t now_ns, mapping_fn *take, void *user);

/* @return how many mappings match, which are passed on, those in use first */
uint32_t mappings_find(const struct mappings *mappings,
		       const struct netobs_mapping_query *query, int64_t now_ns,
		       mapping_fn *take, void *user);

/*
 * An entry of a list as a mapping, without a context. @return false: it is none, because nothing is
 * translated
 */
bool mapping_of_entry(const struct conntrack_entry *entry, uint32_t netns_inode,
		      int64_t wall_ns, struct netobs_mapping *ret_mapping);

#endif
