/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map of records of any number of hosts, as lines of JSON. */
#include "services.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/safe_text.h"
#include "base/util.h"
#include "conversations.h"
#include "report.h"
#include "seen.h"
#include "service/annotate/record_input.h"
#include "service/options/args.h"
#include "services_view.h"

enum {
	PLACE_MAX = 512,
	REPORTS_MAX = 10, /* lines that are reported; the others are counted */
};

struct reading {
	const struct services_request *request;
	struct conversations *conversations;
	struct seen seen;
	uint64_t records, others, repeated, unreadable; /* lines */
	bool is_failed;
};

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	char text[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	safe_cell(text);
	fprintf(stderr, "netobsctl map: %s\n", text);
}

static void refuse_line(struct reading *reading,
			const struct record_input *input, const char *why)
{
	char place[PLACE_MAX];

	reading->is_failed = true;
	if (++reading->unreadable <= REPORTS_MAX)
		complain("%s: %s",
			 record_input_place(input, place, sizeof(place)), why);
}

/* A file whose records do not say who has made them is a host by itself. */
static int find_reporter(struct reading *reading, const char *path,
			 const struct report_origin *origin,
			 uint32_t *ret_reporter)
{
	if (*origin->identity)
		return conversations_reporter(reading->conversations,
					      origin->identity, origin->name,
					      ret_reporter);
	return conversations_reporter(reading->conversations, path,
				      strcmp(path, "-") ? path : "standard input",
				      ret_reporter);
}

/* @return 0; -ENOMEM: it cannot go on, which was reported */
static int take_record(struct reading *reading, const struct record_input *input,
		       const char *line, struct json_value record)
{
	struct service_report report;
	struct report_origin origin;
	char why[REPORT_WHY_MAX];
	uint32_t reporter;
	int r;

	if (!report_read(record, &report, &origin, why)) {
		refuse_line(reading, input, why);
		return 0;
	}
	if (report.kind == REPORT_NONE) {
		reading->others++;
		return 0;
	}
	r = find_reporter(reading, input->path, &origin, &reporter);
	if (!r && !seen_add(&reading->seen, line, strlen(line), reporter)) {
		reading->repeated++;
		return 0;
	}
	r = r ?: conversations_add(reading->conversations, reporter, &report);
	if (r)
		complain("%s", strerror(-r));
	reading->records++;
	return r;
}

static int take_line(struct reading *reading, const struct record_input *input,
		     const char *line)
{
	const struct json_value record = json_parse(line);

	if (record.at && *record.at == '{')
		return take_record(reading, input, line, record);
	if (line[strspn(line, " \t\r")])
		refuse_line(reading, input, "it is no JSON object");
	return 0;
}

/* @return 0; < 0: some of it was not read, which was reported; -ENOMEM: nothing can be */
static int read_file(struct reading *reading, const char *path)
{
	struct record_input input;
	char *line;
	int r = record_input_open(&input, path);

	if (!r && input.kind != INPUT_LINES) {
		r = -EINVAL;
		snprintf(input.why, sizeof(input.why),
			 "it has no records of netobs as lines of JSON");
	}
	if (r)
		complain("%s: %s", path, input.why);
	while (!r && (r = record_input_next(&input, &line))) {
		if (r == -EBADMSG) {
			refuse_line(reading, &input, input.why);
			r = 0;
		} else if (r > 0) {
			r = take_line(reading, &input, line);
		} else {
			complain("%s: %s", path, input.why);
		}
	}
	record_input_close(&input);
	return r;
}

static void print_summary(const struct reading *reading,
			  const struct conversation_totals *totals)
{
	fprintf(stderr,
		"netobsctl map: %" PRIu64 " records of %" PRIu32
		" hosts: %" PRIu64 " flows, %" PRIu64 " sessions",
		reading->records, conversations_reporters(reading->conversations),
		totals->flows, totals->sessions);
	if (reading->repeated)
		fprintf(stderr, "; %" PRIu64 " lines came again",
			reading->repeated);
	if (totals->repeated_packets)
		fprintf(stderr,
			"; %" PRIu64
			" packets were reported by several, and count once",
			totals->repeated_packets);
	if (totals->shared_packets)
		fprintf(stderr,
			"; %" PRIu64
			" packets have tuples that a NAT used again, and count where "
			"it was",
			totals->shared_packets);
	if (totals->sampled)
		fprintf(stderr,
			"; %" PRIu64
			" flows are sampled: of these, the counted packets are shown",
			totals->sampled);
	if (reading->others)
		fprintf(stderr, "; %" PRIu64 " records of other types",
			reading->others);
	if (reading->unreadable)
		fprintf(stderr, "; %" PRIu64 " lines are no records",
			reading->unreadable);
	if (reading->seen.is_full)
		fprintf(stderr,
			"; behind the first %d lines, those that come again count "
			"again",
			SEEN_MAX);
	fputc('\n', stderr);
}

static int show(struct reading *reading)
{
	struct conversation_totals totals;
	struct edges edges = { .max = EDGES_MAX };
	struct services_view view = { .reporters = reading->conversations };
	int r = conversations_take(reading->conversations, &edges);

	conversations_totals(reading->conversations, &totals);
	services_view_make(&view, &edges, reading->request->rows);
	view.time_ms = totals.end_ms;
	view.duration_ms = totals.end_ms - totals.start_ms;
	view.has_sessions = totals.sessions;
	r = services_show(reading->request, &view, 0) ?: r;
	print_summary(reading, &totals);
	edges_free(&edges);
	return r;
}

int services_of_files(const struct services_request *request)
{
	struct reading reading = { .request = request,
				   .conversations = conversations_new() };
	int r = reading.conversations ? 0 : -ENOMEM;

	if (r)
		complain("%s", strerror(ENOMEM));
	/* A file that cannot be read, or not as a whole, leaves the others. */
	for (size_t i = 0; r != -ENOMEM && i < request->n_files; i++) {
		r = read_file(&reading, request->files[i]);
		reading.is_failed |= r < 0;
	}
	if (r != -ENOMEM && show(&reading))
		reading.is_failed = true;
	seen_free(&reading.seen);
	conversations_free(reading.conversations);
	return r == -ENOMEM || reading.is_failed ? EXIT_FAILED : EXIT_FINE;
}

int services_map(const struct services_request *request)
{
	return request->n_files ? services_of_files(request) :
				  services_of_host(request);
}
