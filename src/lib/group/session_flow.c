/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "session_flow.h"

#include <string.h>

static void set_source(struct netobs_flow *flow, const uint8_t addr[16],
		       uint16_t port)
{
	memcpy(flow->src, addr, sizeof(flow->src));
	flow->src_port = port;
}

static void set_destination(struct netobs_flow *flow, const uint8_t addr[16],
			    uint16_t port)
{
	memcpy(flow->dst, addr, sizeof(flow->dst));
	flow->dst_port = port;
}

/* The local end becomes @local. */
static void set_ends(struct session_flow *to,
		     const struct netobs_session *session, enum flow_end local)
{
	struct netobs_flow *flow = &to->flow;

	to->local = local;
	if (local == FLOW_SOURCE) {
		set_source(flow, session->local_addr, session->local_port);
		set_destination(flow, session->remote_addr, session->remote_port);
	} else {
		set_source(flow, session->remote_addr, session->remote_port);
		set_destination(flow, session->local_addr, session->local_port);
	}
}

static void set_process(struct session_flow *to,
			const struct netobs_session *session)
{
	struct netobs_process *process = &to->process;

	if (!(session->record.has & NETOBS_SESSION_HAS_PROCESS))
		return;
	process->sz = sizeof(*process);
	process->pid = session->pid;
	memcpy(process->command, session->process, sizeof(process->command));
	process->command[sizeof(process->command) - 1] = '\0';
	memcpy(process->container_id, session->container_id,
	       sizeof(process->container_id));
	process->container_id[sizeof(process->container_id) - 1] = '\0';
	memcpy(process->pod_uid, session->pod_uid, sizeof(process->pod_uid));
	process->pod_uid[sizeof(process->pod_uid) - 1] = '\0';
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
