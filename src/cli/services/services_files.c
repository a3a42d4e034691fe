/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map of records of any number of hosts, as lines of JSON. */
#include "services_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/annotate/record_input.h"
#include "service/options/args.h"

struct reading {
	const struct map_options *options;
	struct netobs_services *services;
	struct record_reader reader;
};

/* Records that name no host count as those of one host for each file: by the end of a long path. */
static const char *find_host(const char *path)
{
	const size_t len = strlen(path);

	if (!strcmp(path, "-"))
		return "standard input";
	return path + (len < NETOBS_SERVICES_HOST_MAX ?
			       0 :
			       len - NETOBS_SERVICES_HOST_MAX + 1);
}

/* @return 0; -ENOMEM, which was reported */
static int take_record(const struct record_input *input, const char *line,
		       void *user)
{
	struct reading *reading = user;
	char why[NETOBS_ERROR_MAX];
	const int r = netobs_services_add_json(reading->services,
					       find_host(input->path), line,
					       why, sizeof(why));

	if (r == -EINVAL)
		record_reader_refuse(&reading->reader, input, why);
	else if (r < 0)
		record_reader_complain("%s", strerror(-r));
	return r < 0 && r != -EINVAL ? r : 0;
}

static void print_summary(const struct reading *reading,
			  const struct netobs_services_stats *stats)
{
	const struct {
		uint64_t n;
		const char *what;
	} more[] = {
		{ stats->repeated_records, "lines came again" },
		{ stats->repeated_packets,
		  "packets were reported by several hosts, and count once" },
		{ stats->shared_packets,
		  "packets have tuples that a NAT used for several conversations, and "
		  "count only at the NAT" },
		{ stats->sampled,
		  "flows are sampled: of these, the counted packets are shown" },
		{ stats->other_records, "records of other types" },
		{ reading->reader.unreadable, "lines are no records" },
	};

	fprintf(stderr,
		"netobsctl map: %" PRIu64 " records of %" PRIu64
		" hosts: %" PRIu64 " flows, %" PRIu64 " sessions",
		stats->records, stats->hosts, stats->flows, stats->sessions);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		if (more[i].n)
			fprintf(stderr, "; %" PRIu64 " %s", more[i].n,
				more[i].what);
	if (stats->unchecked_records)
		fprintf(stderr,
			"; after the first %d lines, repeated lines count again",
			NETOBS_SERVICES_LINES_MAX);
	fputc('\n', stderr);
}

static int show(struct reading *reading)
{
	struct netobs_services_stats stats = { .sz = sizeof(stats) };
	struct services_view view = { .services = reading->services };
	const int found =
		netobs_services_rows(reading->services, reading->options->rows);
	int r;

	netobs_services_stats_get(reading->services, &stats);
	view.time_ms = stats.end_ms;
	view.duration_ms = stats.end_ms - stats.start_ms;
	r = services_show(reading->options, &view, 0) ?: min_i64(found, 0);
	print_summary(reading, &stats);
	return r;
}

int services_of_files(const struct map_options *options)
{
	struct reading reading = { .options = options };
	int r = netobs_services_new(NULL, &reading.services);

	if (r)
		record_reader_complain("%s", strerror(-r));
	/* A file that cannot be read, or not as a whole, leaves the others. */
	for (size_t i = 0; r != -ENOMEM && i < options->operands.n; i++)
		r = record_reader_read(&reading.reader,
				       options->operands.items[i], take_record,
				       &reading);
	if (r != -ENOMEM && show(&reading))
		reading.reader.is_failed = true;
	netobs_services_free(reading.services);
	return r == -ENOMEM || reading.reader.is_failed ? EXIT_FAILED : EXIT_FINE;
}
