/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Mappings: the translations as conversations that begin and end. Packets update the table;
 * struct mapping_questions asks the kernel whether it still has an entry without packets, for few
 * entries at a time. include/netobs/mapping.h describes the effect.
 */
#ifndef NETOBS_NAT_MAPPINGS_H
#define NETOBS_NAT_MAPPINGS_H

#include "translation_table.h"
#include "base/log.h"
#include "host/conntrack.h"

#include <netobs/mapping.h>

struct clock;
struct conntrack_entry;
struct host;

typedef void mapping_fn(const struct netobs_mapping *mapping, void *user);

/* State of listing the mappings of a namespace. */
struct mapping_space {
	uint32_t inode; /* of the namespace, or of the last one; 0: none */
	int64_t complete_ns; /* since then all its mappings are known; 0: not all are */
	int64_t retry_ns; /* when a new list may begin, after one that failed */
	bool cannot_ask; /* the kernel; mappings end after a minute without packets */
};

struct mappings {
	struct translation_table *table; /* NULL: there are none */
	const struct clock *clock;
	const struct host *host; /* or NULL */
	bool knows_zones;
	/* Gets mappings that begin and end; or NULL. */
	void (*on_record)(const struct netobs_record *record, void *user);
	void *user;
	struct translation_watch watch;
	struct mapping_space *spaces; /* by index of the namespace */
	uint32_t n_spaces;
	uint32_t hand;	  /* index of the next translation to check */
	uint64_t active;  /* mappings that have not ended */
	uint64_t n_begun; /* since the start */
	uint64_t n_ended;
	uint64_t n_forgotten;
	uint64_t n_reported; /* calls of on_record */
};

/* Follow translations that are added to @table or removed. The caller must not move @mappings. */
void mappings_init(struct mappings *mappings, struct translation_table *table,
		   const struct clock *clock, const struct host *host,
		   bool knows_zones,
		   void (*on_record)(const struct netobs_record *record,
				     void *user),
		   void *user);

void mappings_done(struct mappings *mappings);

/* @return the list state of the namespace with that index; NULL: no memory */
struct mapping_space *mappings_space(struct mappings *mappings, uint32_t netns);

/* The kernel lists an entry of the namespace with that index. @return false: there is no room */
bool mappings_list(struct mappings *mappings, uint16_t netns,
		   const struct conntrack_entry *entry, int64_t now_ns);

/*
 * Check a part of the table: remove translations that ended a while ago, and find up to @max
 * mappings about which to ask the kernel now.
 *
 * @return how many
 */
uint32_t mappings_due(struct mappings *mappings, int64_t now_ns,
		      struct translation **ret_due, uint32_t max);

/* The kernel need not be asked about @translation before @timeout_s have passed. */
void mappings_go_on(struct translation *translation, int64_t now_ns,
		    uint32_t timeout_s);

/* The kernel still has @translation, as @entry. */
void mappings_answer(struct mappings *mappings, struct translation *translation,
		     const struct conntrack_entry *entry, int64_t now_ns);

/* The kernel no longer has @translation. */
void mappings_end(struct mappings *mappings, struct translation *translation,
		  int64_t now_ns);

/* @return the entry by which to ask the kernel about @translation */
struct conntrack_entry mapping_question(const struct translation *translation);

/* @return the translation of a kernel's entry; NULL: the table has none */
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

/* Pass on the mappings that match, active ones first. @return how many */
uint32_t mappings_find(const struct mappings *mappings,
		       const struct netobs_mapping_query *query, int64_t now_ns,
		       mapping_fn *take, void *user);

/*
 * Convert an entry of a kernel's list to a mapping, without a context. @return false: the entry
 * translates nothing
 */
bool mapping_of_entry(const struct conntrack_entry *entry, uint32_t netns_inode,
		      int64_t wall_ns, struct netobs_mapping *ret_mapping);

/* ---- Questions to the kernel ------------------------------------------------------------- */

/*
 * Asks the kernel about mappings, by ctnetlink: which entries are older than the observation of
 * their namespace, and whether an entry without reported packets still exists. Each call does a
 * bounded part of the work.
 */

enum {
	MAPPING_QUESTIONS_MS =
		250 /* from one call of mapping_questions_ask() to the next */
};

struct mapping_questions {
	struct mappings *mappings; /* NULL: there are none */
	const struct log *log;
	/* A socket of a namespace of mappings.host; tests have another one. @return it, or -errno */
	int (*open)(const struct host *host, uint16_t netns);
	struct conntrack_list list; /* the dump under way; fd -1: none */
	uint16_t list_netns;
	uint32_t tries; /* to dump that list */
	uint32_t list_refused; /* entries of the list for which the table had no room */
	bool is_warned;	  /* it was logged that the kernel does not answer */
	uint64_t n_again; /* lists that were begun again */
	uint64_t n_incomplete; /* lists that were not complete after all tries */
	uint64_t n_asked_again; /* single entries, after a question without an answer */
};

void mapping_questions_init(struct mapping_questions *questions,
			    struct mappings *mappings, const struct log *log);

void mapping_questions_done(struct mapping_questions *questions);

/* @return fd of the dump, to poll for reading; -1: no dump is under way */
int mapping_questions_fd(const struct mapping_questions *questions);

/* Read a part of the list when the fd is readable. */
void mapping_questions_read(struct mapping_questions *questions);

/* Begin the list of a namespace, if one is due, and ask for some entries. */
void mapping_questions_ask(struct mapping_questions *questions);

#endif
