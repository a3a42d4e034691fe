/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether something can be written now. */
#ifndef NETOBS_SINK_OUT_STATE_H
#define NETOBS_SINK_OUT_STATE_H

enum out_state {
	OUT_AWAY, /* the sink is called again when that may have changed */
	OUT_READY,
	OUT_NEW, /* ready, but it is not what took the bytes before */
};

#endif
