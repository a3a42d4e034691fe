// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Flow records of TCP counted in series of their groups, by service and client, with histograms: each
 * group has one record in an interval, in random order, and 500 of the groups a series.
 */
#include "config.h"

#include "bench.h"
#include "report.h"
#include "sequence.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

#include <netobs/series.h>

enum {
	SERIES = 500,
	CLIENTS = 100, /* of a service */
	/* A round counts at least this many records, in as many intervals as that takes. */
	RECORDS_PER_ROUND = 1 << 20,
	SEED = 1,
};

/* Nanoseconds of CPU time, medians of the rounds. */
struct groups_result {
	uint32_t groups;
	double record_ns, record_min_ns, record_max_ns;
	double end_ns; /* of the end of an interval */
};

static const struct report_field groups_fields[] = {
	REPORT_FIELD(groups_result, "groups", REPORT_U32, groups),
	REPORT_FIELD(groups_result, "ns_per_record", REPORT_NS, record_ns),
	REPORT_FIELD(groups_result, "ns_min", REPORT_NS, record_min_ns),
	REPORT_FIELD(groups_result, "ns_max", REPORT_NS, record_max_ns),
	REPORT_FIELD(groups_result, "ns_per_interval", REPORT_NS, end_ns),
	{ 0 }
};

static void make_record(uint32_t number, struct netobs_flow *flow)
{
	const uint32_t service = number / CLIENTS;
	const uint8_t client = (uint8_t)(number % CLIENTS);

	*flow = (struct netobs_flow){
		.sz = sizeof(*flow),
		.has = NETOBS_HAS_PORTS | NETOBS_HAS_TCP |
		       NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT |
		       NETOBS_HAS_APP_LATENCY | NETOBS_HAS_DROPS,
		.packets = 10,
		.bytes = 1000 + number % 1000,
		.src = { [10] = 0xff, 0xff, 10, 0, 0, client },
		.dst = { [10] = 0xff,
			 0xff,
			 11,
			 (uint8_t)(service >> 16),
			 (uint8_t)(service >> 8),
			 (uint8_t)service },
		.src_port = 40000,
		.dst_port = 443,
		.proto = 6,
		.rtt_ns = (uint64_t)number << 4,
		.rtt_samples = 3,
		.app_latency_ns = (uint64_t)number << 6,
		.app_responses = 1,
		.retransmits = 1,
		.drop_packets = 1,
		.drop_bytes = 100,
	};
}

static void count_records(struct netobs_series *series, const uint32_t *order,
			  uint32_t groups)
{
	struct netobs_flow flow;

	for (uint32_t i = 0; i < groups; i++) {
		make_record(order[i], &flow);
		netobs_series_add(series, &flow);
	}
}

/* The time that the records themselves take is not the series'. */
static int64_t time_records(const uint32_t *order, uint32_t groups)
{
	const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct netobs_flow flow;

	for (uint32_t i = 0; i < groups; i++) {
		make_record(order[i], &flow);
		__asm__ volatile("" : : "r"(&flow) : "memory");
	}
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

static int measure_groups_round(struct netobs_series *series,
				const uint32_t *order, uint32_t groups,
				double *ret_record_ns, double *ret_end_ns)
{
	const uint32_t intervals = (RECORDS_PER_ROUND - 1) / groups + 1;
	int64_t record_ns = 0, end_ns = 0;

	for (uint32_t i = 0; i < intervals; i++) {
		const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int64_t counted_ns;

		count_records(series, order, groups);
		counted_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		netobs_series_end_interval(series, 0, NULL, NULL);
		end_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - counted_ns;
		record_ns += counted_ns - start_ns - time_records(order, groups);
	}
	*ret_record_ns = (double)record_ns / intervals / groups;
	*ret_end_ns = (double)end_ns / intervals;
	return stop_requested() ? -EINTR : 0;
}

static int measure_series(struct netobs_series *series, const uint32_t *order,
			  uint32_t groups, uint32_t rounds,
			  struct groups_result *result)
{
	cleanup_free double *records = calloc(rounds, sizeof(*records));
	cleanup_free double *ends = calloc(rounds, sizeof(*ends));
	struct summary sum;
	double warm;
	int err = records && ends ? measure_groups_round(series, order, groups,
							 &warm, &warm) :
				    -ENOMEM;

	for (uint32_t i = 0; i < rounds && !err; i++)
		err = measure_groups_round(series, order, groups, &records[i],
					   &ends[i]);
	if (err)
		return err;
	sum = summarize(records, rounds);
	*result = (struct groups_result){
		.groups = groups,
		.record_ns = sum.median,
		.record_min_ns = sum.min,
		.record_max_ns = sum.max,
		.end_ns = summarize(ends, rounds).median,
	};
	return 0;
}

static int measure_groups(const struct config *config, uint32_t groups,
			  struct groups_result *result)
{
	const struct netobs_series_opts opts = {
		.sz = sizeof(opts),
		.keys = "service,client",
		.max_series = SERIES,
		.histograms = NETOBS_SERIES_RTT | NETOBS_SERIES_APP_LATENCY
	};
	cleanup_free uint32_t *order = calloc(groups, sizeof(*order));
	struct netobs_series *series;
	int err = order ? netobs_series_new(&opts, &series) : -ENOMEM;

	if (err)
		return err;
	sequence_permute(order, groups, SEED);
	err = measure_series(series, order, groups, config->rounds, result);
	netobs_series_free(series);
	return err;
}

static void print_groups_table(const struct report *report)
{
	const struct groups_result *results = report->rows;

	printf("ns of CPU per flow record to count it in one of %d series with histograms, medians of %u rounds\n",
	       SERIES, report->rounds);
	report_print_machine();
	printf("\n%9s %9s %9s %9s %13s\n", "groups", "record", "min", "max",
	       "interval, us");
	for (uint32_t i = 0; i < report->n; i++)
		printf("%9u %9.0f %9.0f %9.0f %13.0f\n", results[i].groups,
		       results[i].record_ns, results[i].record_min_ns,
		       results[i].record_max_ns, results[i].end_ns / 1000);
}

int groups_run(const struct config *config)
{
	uint32_t n = config->n_flow_counts;
	cleanup_free struct groups_result *results = calloc(n, sizeof(*results));
	const struct report report = {
		.rounds = config->rounds,
		.fields = groups_fields,
		.rows = results,
		.row_size = sizeof(*results),
		.n = n,
		.print_table = print_groups_table,
	};
	int err = results ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !err; i++)
		err = measure_groups(config, config->flow_counts[i], &results[i]);
	if (err == -ENOMEM)
		fprintf(stderr, "netobsctl bench: %s\n", strerror(-err));
	return err ?: report_print(&report, config->output == OUTPUT_JSON);
}
