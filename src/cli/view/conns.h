/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A snapshot of connections, compared with the previous snapshot, in an order. */
#ifndef NETOBS_CLI_VIEW_CONNS_H
#define NETOBS_CLI_VIEW_CONNS_H

#include <stdbool.h>
#include <stdint.h>

#include "row.h"

struct netobs_connection;

/* Times in ns; 0: not known. The least that is known is 1. */
struct conn_latency {
	uint64_t smoothed, min, max;
};

/* Values of the data that one end has sent. */
struct conn_way {
	struct conn_latency rtt, app;
	uint64_t bytes, retransmits; /* since the connection began */
	uint64_t recent_bytes;	     /* since the moment before */
};

/* Identifies a connection: the first members, which compare as bytes. */
struct conn_key {
	uint8_t client[16], server[16];
	uint16_t client_port, server_port;
	uint32_t ifindex, netns_inode;
	uint32_t reserved;
	int64_t start_ns;
};

enum { CONN_TO_SERVER, CONN_TO_CLIENT, CONN_WAYS };

struct conn {
	struct conn_key key;
	int64_t last_ns;
	uint32_t state;
	char interface[20];
	bool is_further; /* another point, in the list before it, is shown of the connection */
	uint32_t n_points; /* interfaces at which it is seen */
	char process[64];  /* of both ends; "": unknown */
	struct conn_way ways[CONN_WAYS];
};

/* In the order of conns_sort_names[]. */
enum conns_sort {
	CONNS_BY_RATE,
	CONNS_BY_RTT,
	CONNS_BY_RETRANSMITS,
	CONNS_BY_APP,
	CONNS_BY_BYTES,
	CONNS_BY_AGE,
};

extern const char *const conns_sort_names[]; /* NULL-terminated */

struct conns {
	struct conn *list,
		*before; /* in the order of @sort; in that of their keys */
	uint32_t n, capacity, n_before;
	uint32_t n_shown;	/* the first so many */
	bool per_interface;	/* all are shown */
	int64_t at_ns, took_ns; /* CLOCK_MONOTONIC; since the last time */
	int error;		/* -ENOMEM: some are missing */
};

/** Begin with another moment. Before the first one, at_ns is when measuring began. */
void conns_begin(struct conns *conns);

/** For netobs_connections(); @conns: a struct conns. */
void conns_take(const struct netobs_connection *connection, void *conns);

/** All connections were added: compare them with the previous ones, and sort. */
void conns_end(struct conns *conns, enum conns_sort sort);

/** Sort the connections in another order. */
void conns_sort(struct conns *conns, enum conns_sort sort);

void conns_free(struct conns *conns);

/* ---- As lines of a table ------------------------------------------------------------- */

/*
 * A layout for records of struct conn; the caller sets @rate_ns, and @names. The column by which
 * rows are sorted is shown at any width.
 */
void conns_layout(struct layout *layout, enum conns_sort sort,
		  bool shows_process);

#endif
