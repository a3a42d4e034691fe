/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reports on all journeys at the end of netobsctl trace: a summary on standard output, and a picture. */
#ifndef NETOBS_CLI_TRACE_TRACE_REPORT_H
#define NETOBS_CLI_TRACE_TRACE_REPORT_H

#include <netobs/trace.h>
#include <stdbool.h>

#include "service/file_replacement.h"
#include "trace_outputs.h"
#include "trace_summary.h"

/* Zeroes: nothing. The caller sets the first three. */
struct trace_report {
	enum trace_lines lines; /* lines of the summary; TRACE_NO_LINES: no summary */
	const char *svg;	/* file for the picture; NULL: none */
	const char *title; /* title of the summary */
	struct trace_summary summary;
	struct file_replacement picture; /* replaces @svg, from open() to end() */
};

/** Make the file before a trace that may take long. @return 0; < 0, which is reported */
int trace_report_open(struct trace_report *report);

void trace_report_add(struct trace_report *report,
		      const struct netobs_journey *journey);

/** Print and draw. @return 0; < 0: the picture could not be written, which is reported */
int trace_report_end(struct trace_report *report);

/* Without end(), a file that was there stays as it was. */
void trace_report_close(struct trace_report *report);

/* Say on stderr what the result of a tracer lacks, if anything. */
void trace_report_left_out(const struct netobs_trace *trace);

#endif
