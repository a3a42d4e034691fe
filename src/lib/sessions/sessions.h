/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An observer of sessions with container names from another observer. */
#ifndef NETOBS_SESSIONS_SESSIONS_H
#define NETOBS_SESSIONS_SESSIONS_H

struct container_names;
struct netobs_sessions;

/**
 * Have an observer use these container names, instead of finding them itself.
 *
 * @return 0; -EALREADY: it has been started, or has names already
 */
int sessions_use_names(struct netobs_sessions *sessions,
		       struct container_names *names);

#endif
