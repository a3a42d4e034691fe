/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The ipfix sink, a host without a spool, and a collector's socket. */
#ifndef TESTS_SINKS_IPFIX_LIB_SESSION_H
#define TESTS_SINKS_IPFIX_LIB_SESSION_H

#include "lib_ipfix.h"
#include "lib_sink_host.h"
#include "lib_wait.h"

/* Of flows, and with those of options; extended records have one more. */
enum { FLOW_TEMPLATES = 8, EXTENDED_TEMPLATES = 16, TEMPLATES = 13 };

struct session {
	struct test_host host;
	void *state;
	const char *name; /* the collector's; NULL: its address */
	int fd;		  /* the collector's */
	uint16_t port;
	struct ipfix_reader reader;
	unsigned int messages, flows, interfaces;
	unsigned int elements;
	uint64_t pen, flows_sent;
	uint64_t interval, not_sent;
};

/* For cmocka. */
int session_set_up(void **state);
int session_tear_down(void **state);

/* A collector's socket of @type, at a port that stays the same. */
void session_listen(struct session *f, int type);

/* The collector listens first, unless it has a port. */
void session_open(struct session *f, const char *transport, const char *options);

void session_work(struct session *f, bool flush);

/* So many turns, of 10 ms at most. */
void session_work_for(struct session *f, int turns);

/* The sink's, by its name. */
uint64_t session_counter(struct session *f, const char *name);

/* What reads messages of a collector that knows nothing yet. */
struct ipfix_reader session_reader(struct session *f);

#endif
