/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "series_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/conversation.h"
#include "base/hash.h"

/* ---- The two sessions of a connection ----------------------------------------------- */

/*
 * Counts for each conversation how many more sessions were reported by the end that opened than by
 * the other one: the next session of the other end is then the second of its connection. There may
 * be several, since ports are reused, and other namespaces have the same addresses.
 */
enum { PLACES = 1 << 14, WAYS = 4 };

struct session_end_place {
	uint64_t hash;
	int32_t more; /* sessions of the opening end, less those of the other; 0: it is free */
	uint32_t when;
};

static bool make_places(struct session_ends *ends)
{
	if (ends->places)
		return true;
	ends->places = calloc(PLACES, sizeof(*ends->places));
	if (ends->places)
		secret_fill(ends->secret, sizeof(ends->secret));
	return ends->places;
}

static uint64_t hash_conversation(const struct session_ends *ends,
				  const struct netobs_session *session)
{
	const uint64_t id = session->conversation_id ?:
				    conversation_id(&(struct conversation){
					    .src = session->local_addr,
					    .dst = session->remote_addr,
					    .src_port = session->local_port,
					    .dst_port = session->remote_port,
					    .proto = session->protocol });

	return hash_bytes(&id, sizeof(id), ends->secret);
}

/* @return the place of the conversation, a free one, or that of the oldest session */
static struct session_end_place *find_place(struct session_ends *ends,
					    uint64_t hash)
{
	struct session_end_place *bucket =
		&ends->places[hash & (PLACES - 1) & ~(uint64_t)(WAYS - 1)];
	struct session_end_place *best = bucket;

	for (size_t i = 0; i < WAYS; i++) {
		struct session_end_place *place = &bucket[i];

		if (place->more && place->hash == hash)
			return place;
		if (best->more &&
		    (!place->more ||
		     ends->now - place->when > ends->now - best->when))
			best = place;
	}
	*best = (struct session_end_place){ .hash = hash };
	return best;
}

/*
 * @return 1: the end that opened the connection, or, if unknown, that with the lower address; -1:
 *         the other
 */
static int side_of(const struct netobs_session *session)
{
	const int order = memcmp(session->local_addr, session->remote_addr,
				 sizeof(session->local_addr));

	if (session->opened != NETOBS_SESSION_OPENED_UNKNOWN)
		return session->opened == NETOBS_SESSION_ACTIVE ? 1 : -1;
	if (order)
		return order < 0 ? 1 : -1;
	return session->local_port <= session->remote_port ? 1 : -1;
}

/* @return whether the other end had no connection, and so no session */
static bool is_alone(const struct netobs_session *session)
{
	return session->opened == NETOBS_SESSION_ACTIVE &&
	       (session->ended == NETOBS_SESSION_REFUSED ||
		!session->segments_received);
}

bool session_ends_is_first(struct session_ends *ends,
			   const struct netobs_session *session)
{
	const int side = side_of(session);
	struct session_end_place *place;
	bool is_first;

	if (is_alone(session) || !make_places(ends))
		return true;
	place = find_place(ends, hash_conversation(ends, session));
	is_first = place->more * side >= 0;
	place->more += side;
	place->when = ends->now++;
	return is_first;
}

void session_ends_free(struct session_ends *ends)
{
	free(ends->places);
	ends->places = NULL;
}

/* ---- Sessions as flows --------------------------------------------------------------- */

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
	COPY_TEXT(process, session, unit, unit);
	COPY_TEXT(process, session, slice, slice);
	COPY_TEXT(process, session, machine, machine);
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
