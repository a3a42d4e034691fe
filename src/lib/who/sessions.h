/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An observer of sessions with container names from another observer. */
#ifndef NETOBS_WHO_SESSIONS_H
#define NETOBS_WHO_SESSIONS_H

#include "bpf/session.h"
#include "base/clock.h"

#include <netobs/session.h>

struct container_names;
struct netobs;

/**
 * Have an observer use these container names, instead of finding them itself.
 *
 * @return 0; -EALREADY: it has been started, or has names already; -EINVAL: it observes no sessions
 */
int sessions_use_names(struct netobs *sessions, struct container_names *names);

/* Converts the programs' report about a socket to the record of its session. */

struct session_source {
	const struct clock *clock;
	int cgroups_fd;		       /* the map of struct session_cgroup */
	int names_fd;		       /* the map of struct session_name */
	struct container_names *names; /* NULL: none are wanted */
	int64_t tick_ns;	       /* of the kernel */
};

/** @return the length of a tick of the kernel, in ns */
int64_t session_tick_ns(void);

/** @return how the connection ended, from its state and error in @end */
enum netobs_session_ended session_ended(const struct session_end *end);

void session_fill(const struct session_source *source,
		  const struct session_event *event,
		  struct netobs_session *ret_session);

#endif
