// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/util.h"
#include "cli/view/row.h"
#include "service/text/human.h"

enum { RANKS = 3 };

static const uint32_t ranks[RANKS] = { 500, 900, 990 };

static struct netobs_journey_sums get_sums(const struct netobs_journeys *journeys,
					   unsigned int direction)
{
	struct netobs_journey_sums sums = { .sz = sizeof(sums) };

	netobs_journeys_get(journeys, direction, &sums);
	return sums;
}

/* ---- A table ------------------------------------------------------------------------------- */

struct summary_row {
	const struct netobs_journey_sums *sums;
	unsigned int series;
	uint64_t ns[RANKS];
};

static void put_time(char *buf, size_t size, uint64_t ns)
{
	if (ns)
		human_latency(buf, size, ns);
	else
		snprintf(buf, size, "0");
}

static const struct netobs_journey_time *time_of(const struct summary_row *row)
{
	return &row->sums->series[row->series];
}

static void put_share(char *buf, size_t size, const struct summary_row *row)
{
	const uint64_t total_ns = row->sums->all_ns;

	if (total_ns && row->series != NETOBS_JOURNEY_TOTAL)
		snprintf(buf, size, "%.1f%%",
			 100.0 * (double)time_of(row)->sum_ns / (double)total_ns);
	else
		snprintf(buf, size, "-");
}

/* Columns, in the form of row.h. */
#define SUMMARY_COLUMNS(_, type)                                              \
	_(type, DIRECTION, "DIRECTION", left, 0, 0, 1,                        \
	  snprintf(buf, size, "%s", row->sums->name))                         \
	_(type, PART, "PART", left, 0, 0, 1,                                  \
	  snprintf(buf, size, "%s", netobs_journey_series_name(row->series))) \
	_(type, JOURNEYS, "JOURNEYS", right, 0, 0, 1,                         \
	  human_count(buf, size, time_of(row)->journeys))                     \
	_(type, SHARE, "SHARE", right, 0, 0, 1, put_share(buf, size, row))    \
	_(type, P50, "P50", right, 0, 0, 1, put_time(buf, size, row->ns[0]))  \
	_(type, P90, "P90", right, 0, 0, 1, put_time(buf, size, row->ns[1]))  \
	_(type, P99, "P99", right, 0, 0, 1, put_time(buf, size, row->ns[2]))  \
	_(type, LONGEST, "MAX", right, 0, 0, 1,                               \
	  put_time(buf, size, time_of(row)->max_ns))

TABLE(summary_columns, SUMMARY_COLUMNS, struct summary_row);

/* A part that took no time at all, in no journey, is none that these journeys have. */
static bool has_row(const struct netobs_journey_sums *sums, unsigned int series)
{
	return series == NETOBS_JOURNEY_TOTAL ? sums->series[series].journeys :
						sums->series[series].max_ns;
}

static uint32_t fill_rows(const struct netobs_journeys *journeys,
			  unsigned int d, const struct netobs_journey_sums *sums,
			  struct summary_row *rows)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < NETOBS_JOURNEY_SERIES; i++) {
		rows[n].sums = sums;
		rows[n].series = i;
		n += has_row(sums, i) &&
		     netobs_journeys_percentiles(journeys, d, i, ranks, RANKS,
						 rows[n].ns) == 0;
	}
	return n;
}

static void print_totals(const struct netobs_journey_sums *sums)
{
	char bytes[32];

	if (!sums->journeys)
		return;
	human_bytes(bytes, sizeof(bytes), sums->bytes);
	printf("%s: %" PRIu64 " journeys of %s, %" PRIu64 " complete\n"
	       "    %" PRIu64 " with retransmissions, %" PRIu64 " drops%s\n",
	       sums->name, sums->journeys, bytes, sums->complete,
	       sums->retransmitted, sums->drops,
	       sums->journeys > sums->kept ?
		       "; percentiles are of some, chosen at random" :
		       "");
}

void trace_summary_print(const struct netobs_journeys *journeys, uint32_t width)
{
	struct summary_row rows[NETOBS_JOURNEY_DIRECTIONS * NETOBS_JOURNEY_SERIES + 1];
	struct netobs_journey_sums sums[NETOBS_JOURNEY_DIRECTIONS];
	uint32_t n = 0;

	for (unsigned int d = 0; d < NETOBS_JOURNEY_DIRECTIONS; d++) {
		sums[d] = get_sums(journeys, d);
		n += fill_rows(journeys, d, &sums[d], &rows[n]);
	}
	table_print(summary_columns, ARRAY_SIZE(summary_columns), rows,
		    sizeof(*rows), n, 0, width);
	for (unsigned int d = 0; d < NETOBS_JOURNEY_DIRECTIONS; d++)
		print_totals(&sums[d]);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void add_series_json(struct json *json,
			    const struct netobs_journeys *journeys,
			    unsigned int d,
			    const struct netobs_journey_sums *sums,
			    unsigned int series)
{
	static const char *const keys[RANKS] = { "P50Ns", "P90Ns", "P99Ns" };
	uint64_t ns[RANKS];

	json_key_open(json, netobs_journey_series_name(series), '{');
	json_key_u64(json, "Journeys", sums->series[series].journeys);
	json_key_u64(json, "SumNs", sums->series[series].sum_ns);
	if (netobs_journeys_percentiles(journeys, d, series, ranks, RANKS, ns) ==
	    0)
		for (int i = 0; i < RANKS; i++)
			json_key_u64(json, keys[i], ns[i]);
	json_key_u64(json, "MaxNs", sums->series[series].max_ns);
	json_close(json, '}');
}

static void add_direction_json(struct json *json,
			       const struct netobs_journeys *journeys,
			       unsigned int d)
{
	const struct netobs_journey_sums sums = get_sums(journeys, d);

	json_open(json, '{');
	json_key_u64(json, "Direction", d);
	json_key_string(json, "Name", sums.name);
	json_key_u64(json, "Journeys", sums.journeys);
	json_key_u64(json, "Complete", sums.complete);
	json_key_u64(json, "Bytes", sums.bytes);
	json_key_u64(json, "Retransmitted", sums.retransmitted);
	json_key_u64(json, "Drops", sums.drops);
	json_key_bool(json, "Sampled", sums.journeys > sums.kept);
	json_key_open(json, "Parts", '{');
	for (unsigned int i = 0; i < NETOBS_JOURNEY_SERIES; i++)
		if (sums.series[i].journeys)
			add_series_json(json, journeys, d, &sums, i);
	json_close(json, '}');
	json_close(json, '}');
}

void trace_summary_print_json(const struct netobs_journeys *journeys)
{
	char text[8192]; /* 24 series of less than 250 bytes */
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	json_key_string(&json, "type", "trace_summary");
	json_key_open(&json, "Directions", '[');
	for (unsigned int d = 0; d < NETOBS_JOURNEY_DIRECTIONS; d++)
		add_direction_json(&json, journeys, d);
	json_close(&json, ']');
	json_close(&json, '}');
	if (json_end(&json) >= 0)
		puts(text);
}
