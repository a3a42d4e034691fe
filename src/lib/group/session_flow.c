/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "series_state.h"

#include <string.h>

/* Set the ends of the flow; the session's local end becomes @local. */
static void set_ends(struct session_flow *to,
		     const struct netobs_session *session, enum flow_end local)
{
	struct netobs_flow *flow = &to->flow;
	const bool is_source = local == FLOW_SOURCE;

	to->local = local;
	memcpy(is_source ? flow->src : flow->dst, session->local_addr,
	       sizeof(flow->src));
	memcpy(is_source ? flow->dst : flow->src, session->remote_addr,
	       sizeof(flow->dst));
	flow->src_port = is_source ? session->local_port : session->remote_port;
	flow->dst_port = is_source ? session->remote_port : session->local_port;
}

static void copy_text(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = '\0';
}

#define COPY_TEXT(to, from, member, of)                                    \
	do {                                                               \
		_Static_assert(sizeof((to)->member) == sizeof((from)->of), \
			       "texts of equal size");                     \
		copy_text((to)->member, (from)->of, sizeof((to)->member)); \
	} while (0)

static void set_process(struct session_flow *to,
			const struct netobs_session *session)
{
	struct netobs_process *process = &to->process;

	if (!(session->record.has & NETOBS_SESSION_HAS_PROCESS))
		return;
	process->sz = sizeof(*process);
	process->pid = session->pid;
	COPY_TEXT(process, session, command, process);
	COPY_TEXT(process, session, container_id, container_id);
	COPY_TEXT(process, session, container_name, container_name);
	COPY_TEXT(process, session, pod_uid, pod_uid);
	COPY_TEXT(process, session, pod_name, pod_name);
	COPY_TEXT(process, session, pod_namespace, pod_namespace);
	if (to->local == FLOW_SOURCE)
		to->flow.src_process = process;
	else
		to->flow.dst_process = process;
}

void session_flow_make(struct session_flow *ret_flow,
		       const struct netobs_session *session,
		       struct servers *servers)
{
	struct netobs_flow *flow = &ret_flow->flow;

	*ret_flow = (struct session_flow){
		.flow = { .sz = sizeof(*flow),
			  .has = NETOBS_HAS_PORTS |
				 (session->conversation_id ?
					  NETOBS_HAS_CONVERSATION :
					  0U),
			  .proto = session->protocol,
			  .conversation_id = session->conversation_id },
	};
	set_ends(ret_flow, session,
		 session->opened == NETOBS_SESSION_PASSIVE ? FLOW_DESTINATION :
							     FLOW_SOURCE);
	if (session->opened == NETOBS_SESSION_OPENED_UNKNOWN &&
	    server_find(servers, flow) == FLOW_SOURCE)
		set_ends(ret_flow, session, FLOW_DESTINATION);
	set_process(ret_flow, session);
}
