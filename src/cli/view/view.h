/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A view of flow records: the flows themselves or groups of them, sorted, and limited in number.
 * Records are collected for an interval, then shown.
 */
#ifndef NETOBS_CLI_VIEW_VIEW_H
#define NETOBS_CLI_VIEW_VIEW_H

#include "rows.h"

struct netobs_connection;

/* The options of a view, as the user gives them: --by, --sort, --top, -N, --interval, -r. */
struct view_options {
	struct by by;
	struct order order;
	int conns_sort;	    /* enum conns_sort: the order of connections */
	bool per_interface; /* a row for each point of a connection */
	uint32_t top;	    /* rows at most; 0: no limit */
	bool want_names;
	bool is_file;	      /* records are of a file: there will be an end */
	uint32_t interval_ms; /* how often records come */
	const char *subject; /* description of the observed packets, for people */
	/*
	 * Call @take for each connection that is measured; @user: of the output.
	 * @return 0, or -errno
	 */
	int (*each_connection)(void (*take)(const struct netobs_connection *connection,
					    void *arg),
			       void *arg, void *user);
};

struct view {
	const struct view_options *options;
	struct netobs_groups *groups; /* groups of the current interval, or */
	struct rows next;	      /* its flows */
	struct netobs_group_sum next_sum;

	struct rows rows;	     /* the interval that is shown, in order */
	struct netobs_group_sum sum; /* sum of all flows of the interval */
	bool has_others;	     /* groups that there was no room for */
	int64_t took_ns;
	size_t most;	  /* rows that can be shown; 0: any number */
	int64_t since_ns; /* when collecting began, of CLOCK_MONOTONIC */

	struct netobs_names *names; /* NULL: not wanted */
};

enum { VIEW_GROUPS = 1 << 17 };

/**
 * Parse what --sort may be for these columns.
 *
 * @is_lines  each row has its time
 * @return 0; -EINVAL: @ret_why has the reason
 */
int view_parse_sort(const char *text, const struct by *by, bool is_lines,
		    struct order *ret_order, char *ret_why, size_t size);

/**
 * @most    rows that can be shown; 0: any number
 * @return 0; -errno
 */
int view_init(struct view *view, const struct view_options *options, size_t most);

/** @return 0; -ENOMEM */
int view_add(struct view *view, const struct netobs_flow *flow);

/** @return ns since collecting began, or since the last view_turn() */
int64_t view_age_ns(const struct view *view);

/**
 * Drains may be ahead of the interval, and come much faster.
 *
 * @param age_ns     time since the last interval was shown
 * @param is_screen  a screen is redrawn a few times per second at most
 * @return whether to show the next one
 */
bool view_is_due(const struct view_options *options, int64_t age_ns,
		 bool is_screen);

/**
 * End the collecting: show its flows from now on, and collect anew.
 *
 * @return 0; -ENOMEM
 */
int view_turn(struct view *view);

void view_free(struct view *view);

/** @return a note to add to a sum of flows that were sampled at different rates, or "" */
const char *view_mixed_text(const struct netobs_group_sum *sum);

/* Lines of text about the flows of @ns. */

/* "12 flows, 345 packets (69/s), 1.20 MB (1.92 Mb/s)" */
void view_sum_text(const struct netobs_group_sum *sum, const char *flows,
		   int64_t ns, char *buf, size_t size);

/* "and 17 more flows: 45 packets, 67 kB": all but the first @n rows */
void view_rest_text(const struct rows *rows, size_t n, bool has_others,
		    const char *noun, char *buf, size_t size);

#endif
