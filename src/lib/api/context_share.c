// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What a context has for observers of sessions: their conversations, and names of containers. */
#include "context.h"

#include "nat/translations.h"
#include "who/sessions.h"

#include <errno.h>
#include <netobs/session.h>
#include <string.h>

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
	if (!ctx->mappings.table)
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
