// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "conns.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <netobs/connection.h>

#include "catalogue/options.h"
#include "base/clock_ms.h"
#include "base/text.h"
#include "base/util.h"
#include "service/text/human.h"
#include <netobs/names.h>

enum {
	FIRST_CONNS = 256,
	LEAVE_LAST = 6,
	ENDPOINTS_LEAST = 31, /* shows an IPv4 server in full */
};

const char *const conns_sort_names[] = { CHOICES_conns_sorts(OPTION_COMMA), NULL };

/* ---- Collecting ---------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct conn_key));
}

void conns_begin(struct conns *conns)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC);

	free(conns->before);
	conns->before = conns->list;
	conns->n_before = conns->n;
	if (conns->n)
		qsort(conns->before, conns->n, sizeof(*conns->before),
		      compare_keys);
	conns->list = NULL;
	conns->n = conns->capacity = conns->n_shown = 0;
	conns->took_ns = now - conns->at_ns;
	conns->at_ns = now;
	conns->error = 0;
}

static struct conn_latency latency_of(const struct netobs_latency *from)
{
	if (!from->samples)
		return (struct conn_latency){ 0 };
	return (struct conn_latency){ from->smoothed_ns ?: 1, from->min_ns ?: 1,
				      from->max_ns ?: 1 };
}

static struct conn_way way_of(const struct netobs_connection_way *from)
{
	return (struct conn_way){
		.rtt = latency_of(&from->rtt),
		.app = latency_of(&from->app),
		.bytes = from->data_bytes,
		.retransmits = from->retransmits,
	};
}

void conns_take(const struct netobs_connection *from, void *arg)
{
	struct conns *conns = arg;
	struct conn *conn;

	if (!array_reserve(&conns->list, conns->n, &conns->capacity,
			   sizeof(*conn), FIRST_CONNS)) {
		conns->error = -ENOMEM;
		return;
	}
	conn = &conns->list[conns->n++];
	*conn = (struct conn){
		.key = { .client_port = from->client_port,
			 .server_port = from->server_port,
			 .ifindex = from->ifindex,
			 .netns_inode = from->netns_inode,
			 .start_ns = from->start_ns },
		.last_ns = from->last_ns,
		.state = from->state,
		.ways = { way_of(from->to_server), way_of(from->to_client) },
	};
	memcpy(conn->key.client, from->client, sizeof(conn->key.client));
	memcpy(conn->key.server, from->server, sizeof(conn->key.server));
	snprintf(conn->interface, sizeof(conn->interface), "%s", from->interface);
	safe_cell(conn->interface);
	human_processes(conn->process, sizeof(conn->process),
			from->client_process, from->server_process);
}

/* A connection without an earlier snapshot is new: all of its counts are recent. */
static void compare_with_before(const struct conns *conns, struct conn *conn)
{
	const struct conn *before =
		conns->n_before ? bsearch(conn, conns->before, conns->n_before,
					  sizeof(*conns->before), compare_keys) :
				  NULL;

	for (int i = 0; i < CONN_WAYS; i++)
		conn->ways[i].recent_bytes = conn->ways[i].bytes -
					     (before ? before->ways[i].bytes : 0);
}

void conns_end(struct conns *conns, enum conns_sort sort)
{
	for (size_t i = 0; i < conns->n; i++)
		compare_with_before(conns, &conns->list[i]);
	conns_sort(conns, sort);
}

void conns_free(struct conns *conns)
{
	free(conns->list);
	free(conns->before);
	*conns = (struct conns){ 0 };
}

/* ---- Order --------------------------------------------------------------------------- */

/* Connections with the largest weight come first. */
static uint64_t find_weight(const struct conn *conn, enum conns_sort sort)
{
	const struct conn_way *out = &conn->ways[CONN_TO_SERVER],
			      *in = &conn->ways[CONN_TO_CLIENT];

	switch (sort) {
	case CONNS_BY_RTT:
		return max_u64(out->rtt.smoothed, in->rtt.smoothed);
	case CONNS_BY_RETRANSMITS:
		return out->retransmits + in->retransmits;
	case CONNS_BY_APP:
		return out->app.smoothed;
	case CONNS_BY_BYTES:
		return out->bytes + in->bytes;
	case CONNS_BY_AGE:
		return INT64_MAX - (uint64_t)conn->key.start_ns;
	default:
		return out->recent_bytes + in->recent_bytes;
	}
}

static int compare_weights(const void *a, const void *b, void *arg)
{
	const enum conns_sort sort = *(const enum conns_sort *)arg;
	const uint64_t left = find_weight(a, sort), right = find_weight(b, sort);

	if (left != right)
		return left < right ? 1 : -1;
	return compare_keys(a, b);
}

/* ---- Points of one connection ---------------------------------------------------------- */

enum { TUPLE_SIZE = offsetof(struct conn_key, ifindex) };

static int compare_tuples(const void *a, const void *b, void *sort)
{
	return memcmp(a, b, TUPLE_SIZE) ?: compare_weights(a, b, sort);
}

static bool is_same_point(const struct conn_key *a, const struct conn_key *b)
{
	return a->ifindex == b->ifindex && a->netns_inode == b->netns_inode;
}

/*
 * Find the points of each connection. The one with the largest weight is shown. A point that has
 * two has a connection with the ports of an earlier one.
 */
static void join_points(struct conns *conns)
{
	struct conn *shown = NULL;

	for (size_t i = 0; i < conns->n; i++) {
		struct conn *conn = &conns->list[i];

		conn->n_points = 1;
		conn->is_further =
			shown && !memcmp(&shown->key, &conn->key, TUPLE_SIZE) &&
			!is_same_point(&shown->key, &conn->key);
		if (conn->is_further)
			shown->n_points++;
		else
			shown = conn;
		conns->n_shown += !conn->is_further;
	}
}

static int compare_shown(const void *a, const void *b, void *sort)
{
	const struct conn *left = a, *right = b;

	if (left->is_further != right->is_further)
		return left->is_further ? 1 : -1;
	return compare_weights(a, b, sort);
}

void conns_sort(struct conns *conns, enum conns_sort sort)
{
	conns->n_shown = 0;
	if (!conns->n)
		return;
	if (conns->per_interface) {
		conns->n_shown = conns->n;
		qsort_r(conns->list, conns->n, sizeof(*conns->list),
			compare_weights, &sort);
		return;
	}
	qsort_r(conns->list, conns->n, sizeof(*conns->list), compare_tuples,
		&sort);
	join_points(conns);
	qsort_r(conns->list, conns->n, sizeof(*conns->list), compare_shown,
		&sort);
}

/* ---- Lines --------------------------------------------------------------------------- */

static void put_endpoints(const struct conn *conn, struct netobs_names *names,
			  char *buf, size_t size)
{
	struct flow_tuple tuple = { .src_port = conn->key.client_port,
				    .dst_port = conn->key.server_port,
				    .proto = IPPROTO_TCP,
				    .has_ports = 1 };

	memcpy(tuple.src, conn->key.client, sizeof(tuple.src));
	memcpy(tuple.dst, conn->key.server, sizeof(tuple.dst));
	tuple_text(&tuple, names, buf, size);
}

/* Further points are a number: there is room for one name. */
static void put_interface(const struct conn *conn, char *buf, size_t size)
{
	if (conn->n_points > 1)
		snprintf(buf, size, "%s +%u", conn->interface,
			 conn->n_points - 1);
	else
		snprintf(buf, size, "%s", conn->interface);
}

#define OUT (&row->ways[CONN_TO_SERVER])
#define IN (&row->ways[CONN_TO_CLIENT])

/* Columns, in the form of row.h. Widths suffice for common values. leave: as in columns.def. */
#define CONNS_COLUMNS(_, type)                                                  \
	_(type, ENDPOINTS, "CLIENT \u2192 SERVER", left, 0, 20, 35,             \
	  put_endpoints(row, layout->names, buf, size))                         \
	_(type, RTT_OUT, "RTT \u2192", right, 0, 0, 7,                          \
	  human_latency(buf, size, OUT->rtt.smoothed))                          \
	_(type, MIN_OUT, "MIN", right, 4, 0, 7,                                 \
	  human_latency(buf, size, OUT->rtt.min))                               \
	_(type, MAX_OUT, "MAX", right, 3, 0, 7,                                 \
	  human_latency(buf, size, OUT->rtt.max))                               \
	_(type, RTT_IN, "\u2190 RTT", right, 0, 0, 7,                           \
	  human_latency(buf, size, IN->rtt.smoothed))                           \
	_(type, MIN_IN, "MIN", right, 3, 0, 7,                                  \
	  human_latency(buf, size, IN->rtt.min))                                \
	_(type, APP, "APP", right, 6, 0, 7,                                     \
	  human_latency(buf, size, OUT->app.smoothed))                          \
	_(type, RETRANSMITS, "RETRANS", right, 6, 0, 7,                         \
	  human_count(buf, size, OUT->retransmits + IN->retransmits))           \
	_(type, RATE_OUT, "RATE \u2192", right, 5, 0, 9,                        \
	  human_rate(buf, size, OUT->recent_bytes, layout->rate_ns))            \
	_(type, RATE_IN, "\u2190 RATE", right, 5, 0, 9,                         \
	  human_rate(buf, size, IN->recent_bytes, layout->rate_ns))             \
	_(type, STATE, "STATE", left, 2, 0, 12,                                 \
	  snprintf(buf, size, "%s",                                             \
		   netobs_connection_state_name(row->state) ?: "-"))            \
	_(type, WHERE, "SEEN AT", left, 1, 0, 7, put_interface(row, buf, size)) \
	_(type, DATA, "DATA", right, 0, 0, 7,                                   \
	  human_bytes(buf, size, OUT->bytes + IN->bytes))                       \
	_(type, LASTED, "DURATION", right, 0, 0, 8,                             \
	  human_duration(buf, size, row->last_ns - row->key.start_ns))          \
	_(type, PROCESS, "PROCESS", left, 0, 12, 24,                            \
	  snprintf(buf, size, "%s", row->process))

TABLE(conns_columns, CONNS_COLUMNS, struct conn);

#define CONNS_ID(type, name, ...) CONN_##name,

enum { CONNS_COLUMNS(CONNS_ID, ) };

/* Some columns are shown only if rows are sorted by them. */
static bool is_shown(int column, enum conns_sort sort, bool shows_process)
{
	return column == CONN_PROCESS ? shows_process :
	       column == CONN_DATA    ? sort == CONNS_BY_BYTES :
	       column == CONN_LASTED  ? sort == CONNS_BY_AGE :
					true;
}

static bool is_of_order(int column, enum conns_sort sort)
{
	switch (column) {
	case CONN_RATE_OUT:
	case CONN_RATE_IN:
		return sort == CONNS_BY_RATE;
	case CONN_RETRANSMITS:
		return sort == CONNS_BY_RETRANSMITS;
	case CONN_APP:
		return sort == CONNS_BY_APP;
	default:
		return false;
	}
}

void conns_layout(struct layout *layout, enum conns_sort sort, bool shows_process)
{
	*layout = (struct layout){ 0 };
	for (int i = 0; i < (int)ARRAY_SIZE(conns_columns); i++) {
		if (!is_shown(i, sort, shows_process))
			continue;
		layout->columns[layout->n] = conns_columns[i];
		if (is_of_order(i, sort))
			layout->columns[layout->n].leave_at = 0;
		/* 80 columns have no room for all columns in full. */
		if (shows_process && i == CONN_RTT_IN)
			layout->columns[layout->n].leave_at = LEAVE_LAST;
		if (shows_process && i == CONN_ENDPOINTS)
			layout->columns[layout->n].least = ENDPOINTS_LEAST;
		layout->n++;
	}
}
