/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Layers of the points that programs report. */
#ifndef NETOBS_TRACE_TRACE_LAYERS_H
#define NETOBS_TRACE_TRACE_LAYERS_H

#include "bpf/trace.h"

#include <netobs/trace.h>
#include <stdint.h>

/** @return the layer of a point before TRACE_OPENS */
enum netobs_trace_layer trace_layer_of(enum trace_point point);

/** @return 1 << enum trace_point of each point of @layers, which are 1 << enum netobs_trace_layer */
uint32_t trace_layers_points(uint32_t layers);

#endif
