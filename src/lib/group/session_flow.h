/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A session as the flow from its client to its server, so that keys have values for it. */
#ifndef NETOBS_GROUP_SESSION_FLOW_H
#define NETOBS_GROUP_SESSION_FLOW_H

#include <netobs/flow.h>
#include <netobs/session.h>

#include "server.h"

struct session_flow {
	struct netobs_flow flow;       /* without counts */
	struct netobs_process process; /* that the flow refers to, if it is known */
	enum flow_end local; /* the end of the flow that the session belongs to */
};

/** @servers: decides which end is the server, for connections older than the observation */
void session_flow_make(struct session_flow *ret_flow,
		       const struct netobs_session *session,
		       struct servers *servers);

#endif
