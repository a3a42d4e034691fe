/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The tables of netobsctl top: the same flows in several tables, each grouped by other keys, of the
 * interval that has ended and since the start. All of them are kept, so that another table can be
 * shown at once, also while the screen is frozen.
 */
#ifndef NETOBS_CLI_VIEW_TOP_TABLES_H
#define NETOBS_CLI_VIEW_TOP_TABLES_H

#include "view.h"

enum { TOP_TABLES = 9 };

struct top_table {
	const char *name; /* for people */
	struct by by;
	struct netobs_groups *next;  /* groups of the current interval, */
	struct netobs_groups *shown; /* groups of the last one, and */
	struct netobs_groups *total; /* since the start */
};

/* Sums over all flows, and the time that they took. */
struct top_sum {
	struct netobs_group_sum tally;
	int64_t ns;
};

struct top_tables {
	struct top_table tables[TOP_TABLES];
	size_t n;
	struct netobs_group_sum next_sum;
	struct top_sum shown_sum, total_sum;
	int64_t since_ns; /* when collecting began, of CLOCK_MONOTONIC */
};

/* A selection of rows of one table. */
struct top_query {
	size_t table;
	bool since_start;
	struct order order;
	const char *search;	    /* part of a row's text; "": all */
	struct netobs_names *names; /* names that the text may have; NULL: none */
	size_t most;		    /* rows, the first ones; 0: all */
};

/**
 * @param first  the keys of the first table
 * @return 0; -errno: no memory, or no random numbers
 */
int top_tables_init(struct top_tables *tables, const struct by *first);

void top_tables_add(struct top_tables *tables, const struct netobs_flow *flow);

/**
 * End an interval: from now on, its groups are shown.
 *
 * @param is_file  it took from the first to the last packet, and not as long as collecting it
 */
void top_tables_turn(struct top_tables *tables, bool is_file);

/** @return ns since collecting began, or since the last top_tables_turn() */
int64_t top_tables_age_ns(const struct top_tables *tables);

/** @return the groups of a table, of the last interval or since the start */
struct netobs_groups *top_tables_groups(const struct top_tables *tables,
					size_t table, bool since_start);

const struct top_sum *top_tables_sum(const struct top_tables *tables,
				     bool since_start);

/**
 * Sort the rows that @query is about into @ret_rows, which the caller frees before the next call.
 *
 * @return 1: there are groups that have no row; 0; -ENOMEM
 */
int top_tables_select(const struct top_tables *tables,
		      const struct top_query *query, struct rows *ret_rows);

void top_tables_free(struct top_tables *tables);

#endif
