/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#ifndef NETOBS_CLI_TRACE_TRACE_LEFT_OUT_H
#define NETOBS_CLI_TRACE_TRACE_LEFT_OUT_H

#include <netobs/trace.h>

/** Say on stderr what the result of a tracer lacks, if anything. */
void trace_left_out_print(const struct netobs_trace *trace);

#endif
