/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map of records of any number of hosts, as lines of JSON. */
#include "services_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "base/slots.h"
#include "reports/conversations.h"
#include "reports/report.h"
#include "cli/annotate/record_input.h"
#include "service/options/args.h"

enum { SEEN_MAX = 1 << 25 /* lines; later ones are all new */ };

struct reading {
	const struct map_options *options;
	struct conversations *conversations;
	struct record_reader reader;
	struct slots seen;		    /* hashes of lines */
	bool is_seen_full;		    /* some lines were not noted */
	uint64_t records, others, repeated; /* lines */
};

/* Records that name no host count as those of one host for each file: by the end of a long path. */
static int find_reporter(struct reading *reading, const char *path,
			 const struct report_origin *origin,
			 uint32_t *ret_reporter)
{
	const size_t len = strlen(path);

	if (*origin->identity)
		return conversations_reporter(reading->conversations,
					      origin->identity, origin->name,
					      ret_reporter);
	path += len < REPORTER_MAX ? 0 : len - REPORTER_MAX + 1;
	return conversations_reporter(reading->conversations, path,
				      strcmp(path, "-") ? path : "standard input",
				      ret_reporter);
}

/* @return whether the line of this reporter is new */
static bool note_line(struct reading *reading, const char *line, uint32_t reporter)
{
	struct slots *seen = &reading->seen;
	const uint32_t n = seen->n;
	const uint64_t line_and_reporter[] = {
		slots_hash(seen, line, strlen(line)), reporter
	};
	const uint64_t hash =
		slots_hash(seen, line_and_reporter, sizeof(line_and_reporter));

	if (n < SEEN_MAX &&
	    slots_get(seen, &hash, sizeof(hash), sizeof(hash)) != SLOT_NONE)
		return seen->n > n;
	reading->is_seen_full = true;
	return true;
}

/* @return 0; -ENOMEM, which was reported */
static int take_record(const struct record_input *input, const char *line,
		       struct json_value record, void *user)
{
	struct reading *reading = user;
	struct service_report report;
	struct report_origin origin;
	char why[REPORT_WHY_MAX];
	uint32_t reporter;
	int r;

	if (!report_read(record, &report, &origin, why)) {
		record_reader_refuse(&reading->reader, input, why);
		return 0;
	}
	if (report.kind == REPORT_NONE) {
		reading->others++;
		return 0;
	}
	r = find_reporter(reading, input->path, &origin, &reporter);
	if (!r && !note_line(reading, line, reporter)) {
		reading->repeated++;
		return 0;
	}
	r = r ?: conversations_add(reading->conversations, reporter, &report);
	if (r)
		record_reader_complain("%s", strerror(-r));
	reading->records++;
	return r;
}

static void print_summary(const struct reading *reading,
			  const struct conversation_totals *totals)
{
	const struct {
		uint64_t n;
		const char *what;
	} more[] = {
		{ reading->repeated, "lines came again" },
		{ totals->repeated_packets,
		  "packets were reported by several hosts, and count once" },
		{ totals->shared_packets,
		  "packets have tuples that a NAT used for several conversations, and "
		  "count only at the NAT" },
		{ totals->sampled,
		  "flows are sampled: of these, the counted packets are shown" },
		{ reading->others, "records of other types" },
		{ reading->reader.unreadable, "lines are no records" },
	};

	fprintf(stderr,
		"netobsctl map: %" PRIu64 " records of %" PRIu32
		" hosts: %" PRIu64 " flows, %" PRIu64 " sessions",
		reading->records, conversations_reporters(reading->conversations),
		totals->flows, totals->sessions);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].n)
			fprintf(stderr, "; %" PRIu64 " %s", more[i].n,
				more[i].what);
	if (reading->is_seen_full)
		fprintf(stderr,
			"; after the first %d lines, repeated lines count again",
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
	services_view_make(&view, &edges, reading->options->rows);
	view.time_ms = totals.end_ms;
	view.duration_ms = totals.end_ms - totals.start_ms;
	view.has_sessions = totals.sessions;
	r = services_show(reading->options, &view, 0) ?: r;
	print_summary(reading, &totals);
	edges_free(&edges);
	return r;
}

int services_of_files(const struct map_options *options)
{
	struct reading reading = { .options = options,
				   .conversations = conversations_new() };
	int r = reading.conversations ? 0 : -ENOMEM;

	if (r)
		record_reader_complain("%s", strerror(ENOMEM));
	/* A file that cannot be read, or not as a whole, leaves the others. */
	for (size_t i = 0; r != -ENOMEM && i < options->operands.n; i++)
		r = record_reader_read(&reading.reader,
				       options->operands.items[i], take_record,
				       &reading);
	if (r != -ENOMEM && show(&reading))
		reading.reader.is_failed = true;
	slots_free(&reading.seen);
	conversations_free(reading.conversations);
	return r == -ENOMEM || reading.reader.is_failed ? EXIT_FAILED : EXIT_FINE;
}

int services_map(const struct map_options *options)
{
	return options->operands.n ? services_of_files(options) :
				     services_of_host(options);
}
