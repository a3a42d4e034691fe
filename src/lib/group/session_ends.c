/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Counts for each conversation how many more sessions were reported by the end that opened than by
 * the other one: the next session of the other end is then the second of its connection. There may
 * be several, since ports are reused, and other namespaces have the same addresses.
 */
#include "series_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/conversation.h"
#include "base/hash.h"

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

/* Whether the other end had no connection, and so no session. */
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
