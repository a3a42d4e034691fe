/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* An observer of sessions that uses names of containers of others. */
#ifndef NETOBS_SESSIONS_SESSIONS_H
#define NETOBS_SESSIONS_SESSIONS_H

struct container_names;
struct netobs_sessions;

/**
 * Have an observer use these names, instead of looking for them itself.
 *
 * @return 0; -EALREADY: it has been started, or has some
 */
int sessions_use_names(struct netobs_sessions *sessions,
		       struct container_names *names);

#endif
