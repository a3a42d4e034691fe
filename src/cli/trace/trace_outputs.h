/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The outputs of netobsctl trace: lines on stdout, a summary, a picture, and sinks of netobs-sinks(7). */
#ifndef NETOBS_CLI_TRACE_TRACE_OUTPUTS_H
#define NETOBS_CLI_TRACE_TRACE_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include <netobs/trace.h>

#include "cli/view/view_output.h"
#include "service/file_replacement.h"
#include "trace_summary.h"

enum trace_lines { TRACE_NO_LINES, TRACE_TABLE, TRACE_JSON };

/* Zeroes: none. The caller sets the first five. */
struct trace_outputs {
	void (*on_log)(int level, const char *message, void *user);
	void *user;
	const char *svg;   /* file for a picture of journeys; NULL: none */
	const char *title; /* of the picture */
	bool has_summary; /* journeys are summed up, and printed at the end as @lines says */
	enum trace_lines lines;
	struct output_list sinks;
	struct netobs_journeys *journeys; /* NULL: they are not summed up */
	struct file_replacement picture; /* replaces @svg, from make() to report() */
};

/**
 * Read the values of -o; none is a table. So is a summary, unless -o says how.
 *
 * @param type  of records for sinks that do not say which they take: "journey", "trace"
 * @return 0; -EINVAL, which is reported; -ENOMEM
 */
int trace_outputs_read(struct trace_outputs *outputs,
		       const struct args_list *specs, const char *type);

/** @return whether a sink takes records of @type */
bool trace_outputs_take(const struct trace_outputs *outputs, const char *type);

/** Make the picture, before a trace that may take long. @return 0; < 0, which is reported */
int trace_outputs_make(struct trace_outputs *outputs);

/** @return 0; < 0, which is reported */
int trace_outputs_open(struct trace_outputs *outputs);

/** Print a record as @lines says. @return < 0: it could not be written */
int trace_outputs_print(const struct trace_outputs *outputs,
			const struct netobs_record *record);

/** Sum a journey up, if that is wanted. */
void trace_outputs_sum(struct trace_outputs *outputs,
		       const struct netobs_journey *journey);

/** Print the summary, and draw. @return 0; < 0: the picture could not be written, which is reported */
int trace_outputs_report(struct trace_outputs *outputs);

/** Send pending records. @return 0; < 0: an output has failed, which close() reports */
int trace_outputs_flush(struct trace_outputs *outputs);

/** Without report(), a picture that was there stays. @return whether all got where it should; what did not is reported */
bool trace_outputs_close(struct trace_outputs *outputs);

#endif
