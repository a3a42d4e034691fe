/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The outputs of netobsctl trace: lines on stdout, a capture file, and sinks of netobs-sinks(7). */
#ifndef NETOBS_CLI_TRACE_TRACE_OUTPUTS_H
#define NETOBS_CLI_TRACE_TRACE_OUTPUTS_H

#include <netobs/trace.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/view/view_output.h"
#include "trace_pcapng.h"

enum trace_lines { TRACE_NO_LINES, TRACE_TABLE, TRACE_JSON };

/* Zeroes: none. The caller sets the first two. */
struct trace_outputs {
	void (*on_log)(int level, const char *message, void *user);
	void *user;
	enum trace_lines lines;
	const char *pcapng_path; /* "-": standard output; NULL: there is no such file */
	struct trace_pcapng *pcapng;
	struct output_list sinks;
};

/** @return whether values of -o name a capture file */
bool trace_outputs_have_pcapng(const struct args_list *specs);

/**
 * Read the values of -o; none is a table.
 *
 * @param type  of records for sinks that do not say which they take: "journey", "trace"
 * @param is_printed  something is printed at the end, as a table unless -o says how
 * @return 0; -EINVAL, which is reported; -ENOMEM
 */
int trace_outputs_read(struct trace_outputs *outputs,
		       const struct args_list *specs, const char *type,
		       bool is_printed);

/** @return whether a sink takes records of @type */
bool trace_outputs_take(const struct trace_outputs *outputs, const char *type);

/** Make the capture file, of which open() replaces the contents. @return 0; < 0, which is reported */
int trace_outputs_make(struct trace_outputs *outputs);

/** @return 0; < 0, which is reported */
int trace_outputs_open(struct trace_outputs *outputs);

/** Send pending records. @return 0; < 0: an output has failed, which close() reports */
int trace_outputs_flush(struct trace_outputs *outputs);

/** @return whether all got where it should; what did not is reported */
bool trace_outputs_close(struct trace_outputs *outputs);

#endif
