// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "cli/view/row.h"
#include "service/text/human.h"

enum { FIRST_SAMPLES = 256, RANKS = 3 };

static const uint32_t ranks[RANKS] = { 500, 900, 990 };

/* ---- Adding -------------------------------------------------------------------------------- */

/* xorshift64: the choice of samples must be even, not secret. */
static uint64_t next_random(struct trace_summary *summary)
{
	uint64_t x = summary->random ? summary->random : 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return summary->random = x;
}

static struct trace_sample make_sample(const struct netobs_journey *journey)
{
	const uint32_t ends = NETOBS_JOURNEY_HAS_READ | NETOBS_JOURNEY_HAS_ACKED;
	struct trace_sample sample = { .unknown = journey->unknown_parts };

	memcpy(sample.ns, journey->part_ns, sizeof(journey->part_ns));
	sample.ns[TRACE_UNKNOWN] = journey->unknown_ns;
	sample.ns[TRACE_TOTAL] =
		(uint64_t)journey->end_ns - (uint64_t)journey->record.time_ns;
	if (!(journey->record.has & ends))
		sample.unknown |= 1U << TRACE_TOTAL;
	return sample;
}

static bool has_total(const struct trace_sample *sample)
{
	return !(sample->unknown & 1U << TRACE_TOTAL);
}

static void add_series(struct trace_direction *direction,
		       const struct trace_sample *sample)
{
	for (unsigned int i = 0; i < TRACE_SERIES; i++) {
		struct trace_series *series = &direction->series[i];

		if (sample->unknown & 1U << i)
			continue;
		series->n++;
		series->sum_ns += sample->ns[i];
		series->max_ns = max_u64(series->max_ns, sample->ns[i]);
	}
	direction->all_ns += sample->ns[TRACE_TOTAL];
	if (has_total(sample) &&
	    sample->ns[TRACE_TOTAL] >= direction->longest.ns[TRACE_TOTAL])
		direction->longest = *sample;
}

/* If there is no more room, each journey so far has the same chance to be kept. */
static void keep_sample(struct trace_summary *summary,
			struct trace_direction *direction,
			const struct trace_sample *sample)
{
	uint64_t at = direction->n;

	direction->is_sorted = false;
	if (direction->n == TRACE_SAMPLES_MAX) {
		at = next_random(summary) % direction->journeys;
		if (at < TRACE_SAMPLES_MAX)
			direction->samples[at] = *sample;
		return;
	}
	if (!array_reserve(&direction->samples, direction->n, &direction->capacity,
			   sizeof(*direction->samples), FIRST_SAMPLES)) {
		summary->is_out_of_memory = true;
		return;
	}
	direction->samples[at] = *sample;
	direction->n++;
}

void trace_summary_add(struct trace_summary *summary,
		       const struct netobs_journey *journey)
{
	struct trace_direction *direction =
		&summary->directions[journey->direction % TRACE_DIRECTIONS];
	const struct trace_sample sample = make_sample(journey);

	direction->journeys++;
	direction->complete += !journey->unknown_parts;
	direction->bytes += journey->length;
	direction->retransmitted += journey->n_attempts > 1;
	direction->drops += journey->n_drops;
	if (!(journey->record.has & NETOBS_JOURNEY_HAS_INITIATOR))
		summary->lacks_initiator = true;
	add_series(direction, &sample);
	keep_sample(summary, direction, &sample);
}

void trace_summary_clear(struct trace_summary *summary)
{
	for (int i = 0; i < TRACE_DIRECTIONS; i++)
		free(summary->directions[i].samples);
	*summary = (struct trace_summary){ 0 };
}

/* ---- Percentiles --------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *one = a, *two = b;

	return (*one > *two) - (*one < *two);
}

/* Journeys that have not ended come last. */
static int compare_totals(const void *a, const void *b)
{
	const struct trace_sample *one = a, *two = b;

	if (has_total(one) != has_total(two))
		return has_total(one) ? -1 : 1;
	return compare_numbers(&one->ns[TRACE_TOTAL], &two->ns[TRACE_TOTAL]);
}

/* The first of @n in order that has so many with it and before it. */
static uint32_t rank_of(uint32_t n, uint32_t per_mille)
{
	const uint64_t rank = ((uint64_t)n * per_mille + 999) / 1000;

	return rank ? (uint32_t)rank - 1 : 0;
}

int trace_summary_percentiles(const struct trace_direction *direction,
			      unsigned int series, const uint32_t *per_mille,
			      uint32_t n, uint64_t *ret_ns)
{
	cleanup_free uint64_t *values = NULL;
	uint32_t n_values = 0;

	if (!direction->n)
		return -ENODATA;
	values = calloc(direction->n, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < direction->n; i++)
		if (!(direction->samples[i].unknown & 1U << series))
			values[n_values++] = direction->samples[i].ns[series];
	if (!n_values)
		return -ENODATA;
	qsort(values, n_values, sizeof(*values), compare_numbers);
	for (uint32_t i = 0; i < n; i++)
		ret_ns[i] = values[rank_of(n_values, per_mille[i])];
	return 0;
}

static uint32_t count_totals(const struct trace_direction *direction)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < direction->n; i++)
		n += has_total(&direction->samples[i]);
	return n;
}

const struct trace_sample *trace_summary_ranked(struct trace_direction *direction,
						uint32_t per_mille)
{
	uint32_t n = direction->n_totals;

	if (!direction->is_sorted && direction->n) {
		qsort(direction->samples, direction->n,
		      sizeof(*direction->samples), compare_totals);
		n = direction->n_totals = count_totals(direction);
		direction->is_sorted = true;
	}
	if (n && per_mille >= 1000)
		return &direction->longest;
	/* If the trace saw no journey end, use all as far as they got. */
	if (!n)
		n = direction->n;
	return n ? &direction->samples[rank_of(n, per_mille)] : NULL;
}

/* ---- A table ------------------------------------------------------------------------------- */

const char *trace_summary_name(const struct trace_summary *summary,
			       unsigned int direction)
{
	if (summary->lacks_initiator)
		return direction ? "direction 1" : "direction 0";
	return direction ? "server > client" : "client > server";
}

const char *trace_summary_series_name(unsigned int series)
{
	if (series == TRACE_UNKNOWN)
		return "unknown";
	return series == TRACE_TOTAL ? "total" : netobs_journey_part_name(series);
}

struct summary_row {
	const char *name;
	const struct trace_direction *direction;
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

static const struct trace_series *series_of(const struct summary_row *row)
{
	return &row->direction->series[row->series];
}

static void put_share(char *buf, size_t size, const struct summary_row *row)
{
	const uint64_t total_ns = row->direction->all_ns;

	if (total_ns && row->series != TRACE_TOTAL)
		snprintf(buf, size, "%.1f%%",
			 100.0 * (double)series_of(row)->sum_ns /
				 (double)total_ns);
	else
		snprintf(buf, size, "-");
}

/* Columns, in the form of row.h. */
#define SUMMARY_COLUMNS(_, type)                                             \
	_(type, DIRECTION, "DIRECTION", left, 0, 0, 1,                       \
	  snprintf(buf, size, "%s", row->name))                              \
	_(type, PART, "PART", left, 0, 0, 1,                                 \
	  snprintf(buf, size, "%s", trace_summary_series_name(row->series))) \
	_(type, JOURNEYS, "JOURNEYS", right, 0, 0, 1,                        \
	  human_count(buf, size, series_of(row)->n))                         \
	_(type, SHARE, "SHARE", right, 0, 0, 1, put_share(buf, size, row))   \
	_(type, P50, "P50", right, 0, 0, 1, put_time(buf, size, row->ns[0])) \
	_(type, P90, "P90", right, 0, 0, 1, put_time(buf, size, row->ns[1])) \
	_(type, P99, "P99", right, 0, 0, 1, put_time(buf, size, row->ns[2])) \
	_(type, LONGEST, "MAX", right, 0, 0, 1,                              \
	  put_time(buf, size, series_of(row)->max_ns))

/* clang-format off */
SUMMARY_COLUMNS(TABLE_TEXT, struct summary_row)

static const struct column summary_columns[] = { SUMMARY_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

/* A part that took no time at all, in no journey, is none that these journeys have. */
static bool has_row(const struct trace_direction *direction, unsigned int series)
{
	return series == TRACE_TOTAL ? direction->series[series].n :
				       direction->series[series].max_ns;
}

static uint32_t fill_rows(const struct trace_summary *summary,
			  struct summary_row *rows)
{
	uint32_t n = 0;

	for (unsigned int d = 0; d < TRACE_DIRECTIONS; d++) {
		for (unsigned int i = 0; i < TRACE_SERIES; i++) {
			struct summary_row *row = &rows[n];

			row->name = trace_summary_name(summary, d);
			row->direction = &summary->directions[d];
			row->series = i;
			n += has_row(row->direction, i) &&
			     trace_summary_percentiles(row->direction, i, ranks,
						       RANKS, row->ns) == 0;
		}
	}
	return n;
}

static void print_totals(const struct trace_summary *summary, unsigned int d,
			 uint32_t width)
{
	const struct trace_direction *direction = &summary->directions[d];
	char bytes[32], line[TRACE_LINE_MAX], folded[2 * TRACE_LINE_MAX];

	if (!direction->journeys)
		return;
	human_bytes(bytes, sizeof(bytes), direction->bytes);
	snprintf(line, sizeof(line),
		 "%s: %" PRIu64 " journeys of %s, %" PRIu64 " complete, %" PRIu64
		 " with retransmissions, %" PRIu64 " drops%s",
		 trace_summary_name(summary, d), direction->journeys, bytes,
		 direction->complete, direction->retransmitted, direction->drops,
		 direction->journeys > direction->n ?
			 "; percentiles are of some, chosen at random" :
			 "");
	trace_line_fold(folded, sizeof(folded), line, width);
	puts(folded);
}

void trace_summary_print(const struct trace_summary *summary, uint32_t width)
{
	struct summary_row rows[TRACE_DIRECTIONS * TRACE_SERIES + 1];

	table_print(summary_columns, ARRAY_SIZE(summary_columns), rows,
		    sizeof(*rows), fill_rows(summary, rows), 0, width);
	for (unsigned int d = 0; d < TRACE_DIRECTIONS; d++)
		print_totals(summary, d, width);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void add_series_json(struct json *json,
			    const struct trace_direction *direction,
			    unsigned int series)
{
	static const char *const keys[RANKS] = { "P50Ns", "P90Ns", "P99Ns" };
	uint64_t ns[RANKS];

	json_key_open(json, trace_summary_series_name(series), '{');
	json_key_u64(json, "Journeys", direction->series[series].n);
	json_key_u64(json, "SumNs", direction->series[series].sum_ns);
	if (trace_summary_percentiles(direction, series, ranks, RANKS, ns) == 0)
		for (int i = 0; i < RANKS; i++)
			json_key_u64(json, keys[i], ns[i]);
	json_key_u64(json, "MaxNs", direction->series[series].max_ns);
	json_close(json, '}');
}

static void add_direction_json(struct json *json,
			       const struct trace_summary *summary,
			       unsigned int d)
{
	const struct trace_direction *direction = &summary->directions[d];

	json_open(json, '{');
	json_key_u64(json, "Direction", d);
	json_key_string(json, "Name", trace_summary_name(summary, d));
	json_key_u64(json, "Journeys", direction->journeys);
	json_key_u64(json, "Complete", direction->complete);
	json_key_u64(json, "Bytes", direction->bytes);
	json_key_u64(json, "Retransmitted", direction->retransmitted);
	json_key_u64(json, "Drops", direction->drops);
	json_key_bool(json, "Sampled", direction->journeys > direction->n);
	json_key_open(json, "Parts", '{');
	for (unsigned int i = 0; i < TRACE_SERIES; i++)
		if (direction->series[i].n)
			add_series_json(json, direction, i);
	json_close(json, '}');
	json_close(json, '}');
}

void trace_summary_print_json(const struct trace_summary *summary)
{
	char text[8192]; /* 24 series of less than 250 bytes */
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	json_key_string(&json, "type", "trace_summary");
	json_key_open(&json, "Directions", '[');
	for (unsigned int d = 0; d < TRACE_DIRECTIONS; d++)
		add_direction_json(&json, summary, d);
	json_close(&json, ']');
	json_close(&json, '}');
	if (json_end(&json) >= 0)
		puts(text);
}
