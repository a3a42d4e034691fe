/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether something can be written now: to a file, a connection, a collector. */
#ifndef NETOBS_SINK_PEER_STATE_H
#define NETOBS_SINK_PEER_STATE_H

enum peer_state {
	PEER_AWAY, /* the sink is called again when that may have changed */
	PEER_LOST, /* it was ready, and is away since the last call */
	PEER_CONNECTING, /* a name is looked up, or a connection made */
	PEER_READY,
	PEER_NEW, /* ready, but it is not what took the bytes before */
};

#endif
