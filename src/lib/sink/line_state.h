/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Whether lines can be written now. */
#ifndef NETOBS_LIB_SINK_LINE_STATE_H
#define NETOBS_LIB_SINK_LINE_STATE_H

enum line_out_state {
	LINE_OUT_AWAY, /* the sink is called again when that may have changed */
	LINE_OUT_READY,
	LINE_OUT_NEW, /* ready, but it is not what took the lines before */
};

#endif
