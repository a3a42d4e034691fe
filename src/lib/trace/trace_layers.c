// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_state.h"

_Static_assert((int)TRACE_DROP == (int)NETOBS_TRACE_DROP &&
		       (int)TRACE_POSTROUTING == (int)NETOBS_TRACE_POSTROUTING &&
		       (int)TRACE_OPENS == (int)NETOBS_TRACE_POINTS,
	       "points of programs are those of events");

enum netobs_trace_layer trace_layer_of(enum trace_point point)
{
	switch (point) {
	case TRACE_SEND:
	case TRACE_SENT:
	case TRACE_READY:
	case TRACE_READ:
		return NETOBS_TRACE_LAYER_SOCKET;
	case TRACE_RETRANSMIT:
	case TRACE_SEGMENT:
	case TRACE_ACKED:
		return NETOBS_TRACE_LAYER_TCP;
	case TRACE_ENQUEUE:
	case TRACE_DEQUEUE:
		return NETOBS_TRACE_LAYER_QDISC;
	case TRACE_PREROUTING ... TRACE_POSTROUTING_END:
		return NETOBS_TRACE_LAYER_IP;
	default:
		return NETOBS_TRACE_LAYER_DEVICE;
	}
}

uint32_t trace_layers_points(uint32_t layers)
{
	uint32_t points = 0;

	for (int point = 0; point < TRACE_OPENS; point++)
		if (layers >> trace_layer_of(point) & 1)
			points |= 1U << point;
	return points;
}
