/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A view of flow records: the flows themselves or groups of them, sorted, and limited in number.
 * Records are collected for an interval, then shown.
 */
#ifndef NETOBS_CLI_VIEW_VIEW_H
#define NETOBS_CLI_VIEW_VIEW_H

#include "base/top_n.h"

#include <netobs/group.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first rows, in some order, of any number of flows or groups of them. */

/* The keys of groups (--by), and optional columns. */
struct by {
	const char *text;
	struct netobs_group_keys keys; /* none: flows, each by itself */
	bool shows_process, shows_nat; /* columns of ungrouped flows */
	bool shows_rtt;		       /* columns of TCP, beside counters */
	bool shows_drops;
};

/**
 * @param text  stays
 * @return 0; -EINVAL: @ret_why has the reason
 */
static inline int by_parse(const char *text, struct by *ret_by, char *ret_why,
			   size_t size)
{
	struct by by = { .text = text, .keys.sz = sizeof(by.keys) };
	int err = netobs_group_keys_parse(text, &by.keys, ret_why, size);

	if (!err)
		*ret_by = by;
	return err;
}

/** @return whether a flow counts at both of its ends */
static inline bool by_has_both_ends(const struct by *by)
{
	return by->keys.flags & NETOBS_GROUP_BOTH_ENDS;
}

/* Identifies a flow, and comes first in a table. */
struct flow_tuple {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t proto;
	uint8_t has_ports;
};

/**
 * "10.0.0.1:40000 -> 10.0.0.2:443", with an arrow. @names: or NULL.
 */
void tuple_text(const struct flow_tuple *tuple, struct netobs_names *names,
		char *buf, size_t size);

/* A flow, which outlives its record, or a group of them. */
struct row {
	struct netobs_group_sum sum;
	union {
		struct flow_tuple flow;
		const struct netobs_group *group; /* the group of the row */
	};
	char info[24], where[128], process[64], nat[128],
		cause[48]; /* of flows; rows of groups have no room for them */
};

/* @return whether rows have the value they are sorted by: some values are measured on request only */
static inline bool by_has_sort(const struct by *by, enum netobs_group_sort sort)
{
	switch (sort) {
	case NETOBS_GROUP_BY_RTT:
	case NETOBS_GROUP_BY_RETRANSMITS:
		return by->shows_rtt;
	case NETOBS_GROUP_BY_DROPS:
		return by->shows_drops;
	case NETOBS_GROUP_BY_SENT:
		return by_has_both_ends(by);
	default:
		return true;
	}
}

struct order {
	enum netobs_group_sort sort;
	uint32_t key; /* for NETOBS_GROUP_BY_KEY */
};

struct rows {
	struct order order;
	struct top_n list; /* of struct rows; rows of groups are cut before the members that they lack */
	uint64_t added;
	struct netobs_group_sum sum; /* sum of all rows that were added */
};

/** @return the mean round-trip time; 0: there are no samples */
static inline uint64_t sum_rtt_ns(const struct netobs_group_sum *sum)
{
	return sum->rtt_samples ? sum->rtt_sum_ns / sum->rtt_samples : 0;
}

/**
 * @order  stays
 * @most   0: as many as are added
 */
void rows_init(struct rows *rows, const struct order *order, size_t most);

static inline struct row *rows_at(const struct rows *rows, size_t i)
{
	return top_n_at(&rows->list, i);
}

/** @return 0; -ENOMEM */
int rows_add(struct rows *rows, const struct row *row);

/**
 * Replace the rows with those of @groups that @top selects.
 *
 * @return 1: there are groups that have no row; 0; -errno
 */
int rows_take_groups(struct rows *rows, struct netobs_groups *groups,
		     struct netobs_groups_top *top);

/** The first one first. Nothing can be added until rows_clear(). */
void rows_sort(struct rows *rows);

/** @return the sum of all but the first @n rows */
struct netobs_group_sum rows_rest(const struct rows *rows, size_t n);

void rows_clear(struct rows *rows);
void rows_free(struct rows *rows);

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
