// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * What a context has for its alerts and for other observers: the conversations that alerts and
 * sessions are part of, names of containers.
 */
#include "context.h"

#include "nat/translations.h"
#include "who/sessions.h"

#include <errno.h>
#include <netobs/session.h>
#include <string.h>

static bool knows_conversations(const struct netobs *ctx)
{
	return ctx->mappings.table;
}

bool context_alert_conversation(struct netobs *ctx,
				const struct alert_event *event, uint64_t *ret_id)
{
	const struct flow_key *key = &event->key;
	const bool is_turned = event->client & 1;
	const struct flow_entry entry = {
		.key = { .src = is_turned ? key->dst : key->src,
			 .dst = is_turned ? key->src : key->dst,
			 .src_port = is_turned ? key->dst_port : key->src_port,
			 .dst_port = is_turned ? key->src_port : key->dst_port,
			 .proto = key->proto,
			 .netns = key->netns,
			 .ifindex = key->ifindex },
		.tally = { .first_ns = event->born_ns, .last_ns = event->time_ns },
	};

	*ret_id = 0;
	return !knows_conversations(ctx) ||
	       !conversation_at(&ctx->features.translations, &entry, ret_id);
}

/* Set the times by the clock of entries. A session older than its observer has no known start. */
static void fill_time(const struct netobs *ctx,
		      const struct netobs_session *session,
		      struct flow_tally *tally)
{
	const int64_t offset = ctx->pipeline.clock.wall_offset;
	const bool has_start = session->record.has & NETOBS_SESSION_HAS_START;

	tally->last_ns = (uint64_t)(session->end_ns - offset);
	tally->first_ns = has_start ? (uint64_t)(session->start_ns - offset) :
				      tally->last_ns;
}

int netobs_session_conversation(struct netobs *ctx,
				const struct netobs_session *session,
				uint64_t *ret_id)
{
	struct flow_entry entry = { 0 };

	if (!is_context(ctx) || !session || !ret_id)
		return -EINVAL;
	if (!knows_conversations(ctx))
		return -ENOTSUP;
	memcpy(entry.key.src.bytes, session->local_addr,
	       sizeof(session->local_addr));
	memcpy(entry.key.dst.bytes, session->remote_addr,
	       sizeof(session->remote_addr));
	entry.key.src_port = session->local_port;
	entry.key.dst_port = session->remote_port;
	entry.key.proto = session->protocol;
	fill_time(ctx, session, &entry.tally);
	return conversation_of_socket(&ctx->features.translations, &entry,
				      session->netns_inode, session->pid, ret_id);
}

int netobs_sessions_share(struct netobs *sessions, const struct netobs *ctx)
{
	if (!sessions || !is_context(ctx))
		return -EINVAL;
	return ctx->names ? sessions_use_names(sessions, ctx->names) : -ENOENT;
}
