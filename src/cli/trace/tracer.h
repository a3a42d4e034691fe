/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What verbs with a tracer share. */
#ifndef NETOBS_CLI_TRACE_TRACER_H
#define NETOBS_CLI_TRACE_TRACER_H

#include <netobs/trace.h>

#include "service/options/args.h"

/** @return false: --pid is no process, which was printed */
bool tracer_check_pid(const struct args_command *command, uint32_t pid);

/**
 * Print on stderr which events and records the result lacks, if any.
 *
 * @param wants_turns  also those that are left out as there are many
 */
void tracer_report_left_out(const char *verb, const struct netobs *trace,
			    bool wants_turns);

#endif
