/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether a file, a connection or a collector can be written to now. */
#ifndef NETOBS_SINK_PEER_STATE_H
#define NETOBS_SINK_PEER_STATE_H

enum peer_state {
	PEER_AWAY, /* the sink is called again once that may have changed */
	PEER_LOST, /* it was ready at the last call */
	PEER_CONNECTING, /* a name is looked up, or a connection made */
	PEER_READY,
	PEER_NEW, /* ready, but another one than before */
};

#endif
