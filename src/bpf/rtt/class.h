/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How far a connection has come: enum conn_class. */
#ifndef NETOBS_BPF_RTT_CLASS_H
#define NETOBS_BPF_RTT_CLASS_H

#include "bpf/connection.h"

/* Bits of the states that determine the class. */
enum { CONN_CLASS = CONN_ACKED | CONN_FIN | CONN_RST };

/* Whether a direction has sent more than SYN or SYN+ACK: for the client, its first acknowledgment. */
static __always_inline bool is_past_syn(const struct connection *conn, int dir)
{
	__u16 state = conn->head->state[dir];

	if (!(state & CONN_SYN))
		return state & CONN_SEEN;
	return state & CONN_ACKED && conn->head->opener == dir;
}

static __always_inline enum conn_class conn_class(const struct connection *conn)
{
	__u16 both = conn->head->state[0] & conn->head->state[1];
	__u16 any = conn->head->state[0] | conn->head->state[1];

	if (any & CONN_RST || both & CONN_FIN)
		return CONN_CLOSED;
	if (both & CONN_ACKED)
		return CONN_OPEN;
	return is_past_syn(conn, 0) || is_past_syn(conn, 1) ? CONN_UNANSWERED :
							      CONN_HALF_OPEN;
}

#endif
