/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The choice of sessions, and of the interval of reports, for netobsctl sessions and the service;
 * and the totals of the service.
 */
#ifndef NETOBS_SERVICE_OPTIONS_SESSION_CHOICE_H
#define NETOBS_SERVICE_OPTIONS_SESSION_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netobs/session.h>

/* 0 and NULL: not given. */
struct session_choice {
	uint32_t interval_ms;
	uint32_t pid;
	const char *comm;
	uint64_t buffer_bytes;
	bool container_names;	    /* find names of containers */
	const char *container_root; /* below which files name them */
};

/*
 * Since the start: ended = the sum of reported + left_out + lost, once all are delivered. Those left
 * out are of other processes than was chosen.
 */
struct session_totals {
	uint64_t ended, left_out, lost;
	uint64_t reported[NETOBS_SESSION_ENDINGS]; /* by how they ended */
	uint64_t updates;			   /* reports of open ones */
	uint64_t open; /* now, of those that began since the observer did */
};

uint64_t session_totals_reported(const struct session_totals *totals);

/** @return whether a record is of the process that was chosen; without one, all are */
bool session_choice_takes(const struct session_choice *choice,
			  const struct netobs_session *session);

/* Set the options that the library has; the caller sets its callbacks. */
void session_choice_fill(const struct session_choice *choice,
			 struct netobs_sessions_opts *opts);

/** @return whether the library takes it; if not, @ret_why says why */
bool session_choice_check(const struct session_choice *choice, char *ret_why,
			  size_t size);

enum { TRACE_CONNECTIONS_MAX = 65536 }; /* the library's */

#endif
