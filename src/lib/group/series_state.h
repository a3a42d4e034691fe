/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The structs behind series. */
#ifndef NETOBS_GROUP_SERIES_STATE_H
#define NETOBS_GROUP_SERIES_STATE_H

#include "base/slots.h"
#include "keys.h"

#include <netobs/flow.h>
#include <netobs/series.h>
#include <netobs/session.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Sums of flows and connections ---------------------------------------------------- */

/* The sums of an interval. */
struct series_sum {
	struct netobs_group_sum flows;
	uint64_t connections, connections_failed;
	int64_t first_end_ns, last_end_ns; /* of the connections */
};

/* The sums that one flow, or one connection, adds. */
struct series_event {
	struct series_sum sum;
	bool has_rtt, has_app_latency; /* there is a new sample */
	uint64_t rtt_ns, app_latency_ns;
};

struct series_event series_event_of_flow(const struct netobs_flow *flow);

/** @session: it has ended */
struct series_event series_event_of_session(const struct netobs_session *session);

void series_sum_add(struct series_sum *sum, const struct series_sum *more);

static inline bool series_sum_is_empty(const struct series_sum *sum)
{
	return !sum->flows.flows && !sum->connections;
}

/* ---- Histograms: one after the other, as bits of enum netobs_series_histogram choose ---- */

static inline size_t series_times_count(uint32_t histograms)
{
	return (size_t)__builtin_popcount(histograms);
}

/** @return the histogram of @bit; NULL: there is none */
static inline struct netobs_times *
series_times_at(struct netobs_times *times, uint32_t histograms, uint32_t bit)
{
	return histograms & bit ?
		       times + series_times_count(histograms & (bit - 1)) :
		       NULL;
}

void series_times_add(struct netobs_times *times, uint32_t histograms,
		      const struct series_event *event);

/* ---- Rows --------------------------------------------------------------------------- */

/** @times: of the row */
void series_row_init(struct netobs_series_row *row, uint32_t kind,
		     struct netobs_times *times, uint32_t histograms);

void series_row_add(struct netobs_series_row *row, const struct series_sum *sum);

/** Add all counters of @more. */
void series_row_join(struct netobs_series_row *row,
		     const struct netobs_series_row *more);

/* ---- The table of series -------------------------------------------------------------- */

/*
 * Series, and the values of groups that belong to them. Values with the same text, such as
 * interfaces of two namespaces, share a series, because no two series may look alike. A series keeps the
 * text that its first value had when it was opened.
 */

struct series_slot {
	struct netobs_series_row row; /* its texts are in @text */
	char *text;
	size_t text_len; /* of all texts, with their NULs */
	uint64_t interval_bytes, score;
	uint32_t age; /* in intervals, up to the limit that counts for the score */
	uint32_t n_values; /* values of the table that belong to it */
};

/* A value of a series. Its histograms of this interval follow it: series_table_value_times(). */
struct series_value {
	struct series_sum sum; /* of this interval */
	uint32_t slot;
	_Alignas(uint64_t) uint8_t value[];
};

struct series_table {
	const struct group_keys *keys;
	uint32_t histograms; /* enum netobs_series_histogram, or-ed */
	struct series_slot *slots;
	struct netobs_times *times; /* of all slots: series_table_slot_times() */
	uint64_t *hashes; /* of the texts of each slot; 0: it is free */
	size_t n_slots, most_slots;
	struct slots values; /* see series_table_at() */
	size_t most_values;
};

/** @return 0 or -ENOMEM */
int series_table_init(struct series_table *table, const struct group_keys *keys,
		      size_t most, uint32_t histograms);

/** @return the histograms of @slot, for series_times_at() */
struct netobs_times *series_table_slot_times(const struct series_table *table,
					     const struct series_slot *slot);

/** @return the histograms of @value, for series_times_at() */
struct netobs_times *series_table_value_times(const struct series_table *table,
					      struct series_value *value);

static inline struct series_value *
series_table_at(const struct series_table *table, uint32_t i)
{
	return slots_at(&table->values, i);
}

/** @return the value with these bytes; NULL: it has no series */
struct series_value *series_table_find(const struct series_table *table,
				       const uint8_t *value);

/**
 * Open a series for a value, or add the value to the series that has its text.
 *
 * @return NULL: there is no room, or no memory
 */
struct series_value *series_table_open(struct series_table *table,
				       const uint8_t *value);

/** @return the series that has the text of this value, or NULL */
struct series_slot *series_table_find_text(const struct series_table *table,
					   const uint8_t *value);

/** Begin another interval of @value. */
void series_table_clear_value(const struct series_table *table,
			      struct series_value *value);

/**
 * If there is little room for values, remove those without flows in this interval, but keep one of
 * each series.
 */
void series_table_drop_idle(struct series_table *table);

static inline bool series_table_is_full(const struct series_table *table)
{
	return table->n_slots == table->most_slots ||
	       table->values.n == table->most_values;
}

static inline bool series_table_has(const struct series_table *table, size_t slot)
{
	return table->hashes[slot];
}

/** Remove a series; series_table_settle() follows, before another one is opened. */
void series_table_close(struct series_table *table, struct series_slot *slot);

/** Remove the values of series that were closed. */
void series_table_settle(struct series_table *table);

void series_table_free(struct series_table *table);

/* ---- Candidates ------------------------------------------------------------------------ */

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
