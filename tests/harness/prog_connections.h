/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The table of connections of the flow programs. */
#ifndef HARNESS_PROG_CONNECTIONS_H
#define HARNESS_PROG_CONNECTIONS_H

#include "prog.h"

/* The entry of a connection, by a packet's key; its parts are NULL if there is none. */
struct connection prog_connection(const struct prog *prog,
				  const struct flow_key *key);

/* By the place of a connection; its parts are NULL if its place has no body. */
struct connection prog_connection_at(const struct prog *prog, __u32 place);

/* Add a part of the bodies: 0 or a negated errno. */
int prog_grow(struct prog *prog);

/* The sum of all CPUs' counters of connections. */
struct conn_counters prog_conn_counters(const struct prog *prog);

/* For prog.c: 0 or a negated errno. The programs are not loaded yet. */
int prog_size_connections(struct prog *prog);

/* They are. */
int prog_open_connections(struct prog *prog);
int prog_reset_connections(struct prog *prog);
void prog_close_connections(struct prog *prog);

#endif
