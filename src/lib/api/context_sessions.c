// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* The names of containers that a context has, for observers of sessions. */
#include "context.h"

#include "who/sessions.h"

#include <errno.h>
#include <netobs/session.h>

int netobs_sessions_share(struct netobs *sessions, const struct netobs *ctx)
{
	if (!sessions || !is_context(ctx))
		return -EINVAL;
	return ctx->names ? sessions_use_names(sessions, ctx->names) : -ENOENT;
}
