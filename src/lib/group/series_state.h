/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The struct behind series. */
#ifndef NETOBS_GROUP_SERIES_STATE_H
#define NETOBS_GROUP_SERIES_STATE_H

#include "keys.h"
#include "series_sum.h"
#include "series_table.h"

#include <netobs/flow.h>
#include <netobs/session.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Groups without a series that may be among the heaviest. A candidate never has more bytes than its
 * group had, so chosen groups are heavy; a group that had more bytes than all others of its bucket
 * together is always a candidate. This table only chooses: sums are elsewhere.
 */

struct candidate {
	uint64_t hash;
	uint64_t bytes; /* 0: it is free */
	uint8_t value[];
};

struct candidates {
	size_t key_size, value_size; /* as in struct group_keys */
	size_t n;		     /* a power of two */
	uint8_t *all;
};

/** @return 0 or -ENOMEM */
int candidates_init(struct candidates *candidates, size_t key_size,
		    size_t value_size, size_t at_least);

void candidates_add(struct candidates *candidates, uint64_t hash,
		    const uint8_t *value, uint64_t bytes);

struct candidate *candidates_at(const struct candidates *candidates, size_t i);

/** Subtract one of @part parts from the bytes of all candidates. */
void candidates_decay(struct candidates *candidates, uint64_t part);
void candidates_free(struct candidates *candidates);

/*
 * Finds the two sessions of one connection: a connection between two sockets of this host has two
 * sessions, and is counted with the first of them.
 */

/* All zero: none. */
struct session_ends {
	struct session_end_place *places; /* made with the first session */
	uint32_t now;			  /* sessions so far */
	uint32_t secret[2];
};

/**
 * @param session  it has ended
 * @return whether it is the first session of its connection; true without memory
 */
bool session_ends_is_first(struct session_ends *ends,
			   const struct netobs_session *session);

void session_ends_free(struct session_ends *ends);

enum {
	SERIES_NAME_MAX = sizeof(((struct netobs_group_record *)NULL)->name) - 1,
};

struct netobs_series {
	struct group_keys keys;
	char name[SERIES_NAME_MAX + 1];
	uint32_t histograms; /* enum netobs_series_histogram, or-ed */
	struct series_table table;
	struct candidates candidates;
	struct netobs_series_row other, left;
	struct series_sum other_sum; /* of this interval */
	struct netobs_times *other_times, *left_times, *other_sum_times;
	struct servers servers;
	struct session_ends ends;
	uint32_t secret[GROUP_KEY_BYTES_MAX / sizeof(uint32_t)];
	/* For the end of an interval: */
	struct candidate **heaviest;
	struct series_slot **lightest;
};

/* A session as the flow from its client to its server, so that keys have values for it. */

struct session_flow {
	struct netobs_flow flow;       /* without counts */
	struct netobs_process process; /* that the flow refers to, if it is known */
	enum flow_end local; /* the end of the flow that the session belongs to */
};

/** @servers: decides which end is the server, for connections older than the observation */
void session_flow_make(struct session_flow *ret_flow,
		       const struct netobs_session *session,
		       struct servers *servers);

#endif
