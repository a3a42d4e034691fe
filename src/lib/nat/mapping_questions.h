/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Asks the kernel about mappings, by ctnetlink: which entries are older than the observation of
 * their namespace, and whether an entry without reported packets still exists. Each call does a
 * bounded part of the work.
 */
#ifndef NETOBS_NAT_MAPPING_QUESTIONS_H
#define NETOBS_NAT_MAPPING_QUESTIONS_H

#include "base/log.h"
#include "host/conntrack.h"
#include "mappings.h"

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
