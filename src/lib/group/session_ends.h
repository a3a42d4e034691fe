/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Finds the two sessions of one connection: a connection between two sockets of this host has two
 * sessions, and is counted with the first of them.
 */
#ifndef NETOBS_GROUP_SESSION_ENDS_H
#define NETOBS_GROUP_SESSION_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/session.h>

/* All zero: none. */
struct session_ends {
	struct session_end_place *places; /* made with the first session */
	uint32_t now;			  /* sessions so far */
	uint32_t secret[2];
};

/**
 * @param session  it has ended
 * @return whether it is the first session of its connection; true without memory
 */
bool session_ends_is_first(struct session_ends *ends,
			   const struct netobs_session *session);

void session_ends_free(struct session_ends *ends);

#endif
