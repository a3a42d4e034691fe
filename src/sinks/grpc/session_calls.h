/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Between the parts of a session. */
#ifndef NETOBS_SINKS_GRPC_SESSION_CALLS_H
#define NETOBS_SINKS_GRPC_SESSION_CALLS_H

#include "session.h"

/* The nghttp2 session that reports frames to @session. NULL: no memory. */
nghttp2_session *session_calls_new(struct session *session);

#endif
