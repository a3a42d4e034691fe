// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "trace_summary.h"

static int report_picture(const struct trace_report *report, int err)
{
	if (err && err != -EINTR)
		fprintf(stderr, "netobsctl trace: --svg: cannot write '%s': %s\n",
			report->svg, strerror(-err));
	return err;
}

int trace_report_open(struct trace_report *report)
{
	if (!report->svg)
		return 0;
	return report_picture(report, file_replacement_begin(&report->picture,
							     report->svg));
}

void trace_report_add(struct trace_report *report,
		      const struct netobs_journey *journey)
{
	if (report->lines || report->svg)
		trace_summary_add(&report->summary, journey);
}

static void print_report(const struct trace_report *report)
{
	struct winsize size = { 0 };

	if (report->lines == TRACE_JSON) {
		trace_summary_print_json(&report->summary);
		return;
	}
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	trace_summary_print(&report->summary, size.ws_col);
}

int trace_report_end(struct trace_report *report)
{
	if (report->lines)
		print_report(report);
	if (!report->picture.file)
		return 0;
	trace_svg_print(report->picture.file, &report->summary, report->title);
	return report_picture(report, file_replacement_end(&report->picture, 0));
}

void trace_report_close(struct trace_report *report)
{
	if (report->picture.file)
		file_replacement_end(&report->picture, -ECANCELED);
	trace_summary_clear(&report->summary);
}

void trace_report_left_out(const struct netobs_trace *trace)
{
	struct netobs_trace_stats stats = { .sz = sizeof(stats) };

	netobs_trace_stats_get(trace, &stats);
	if (stats.refused_connections)
		fprintf(stderr,
			"netobsctl trace: %" PRIu64
			" connections were not traced for want of room (--max-connections)\n",
			stats.refused_connections);
	if (stats.cut_by_connection || stats.cut_by_rate || stats.lost_events)
		fprintf(stderr,
			"netobsctl trace: events that are missing: %" PRIu64
			" beyond --max-events, %" PRIu64
			" beyond --max-rate, %" PRIu64
			" without room in the ring or in an interrupt\n",
			stats.cut_by_connection, stats.cut_by_rate,
			stats.lost_events);
	if (stats.unhooked_namespaces)
		fprintf(stderr,
			"netobsctl trace: netfilter's hooks were not traced in %" PRIu64
			" network namespaces\n",
			stats.unhooked_namespaces);
	if (stats.cut_journeys)
		fprintf(stderr,
			"netobsctl trace: %" PRIu64
			" journeys were ended early: too many bytes were on their way\n",
			stats.cut_journeys);
}
