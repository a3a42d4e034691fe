/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Writes metrics as text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "metrics_table.h"

struct text {
	FILE *file;
	const struct metrics_values *values;
};

/* ---- Labels ----------------------------------------------------------------------- */

enum {
	VALUE_MAX = 255 /* bytes of a label's value; longer ones end in "..." */
};

static void put_bytes(struct metrics_labels *labels, const void *bytes, size_t len)
{
	if (len > sizeof(labels->text) - labels->len)
		return;
	memcpy(labels->text + labels->len, bytes, len);
	labels->len += len;
}

static void put_label_text(struct metrics_labels *labels, const char *string)
{
	put_bytes(labels, string, strlen(string));
}

static void put_value(struct metrics_labels *labels, const char *value)
{
	char text[SAFE_LABEL_ROOM(VALUE_MAX)];

	put_bytes(labels, text, safe_label(text, value, VALUE_MAX));
}

void metrics_label_add(struct metrics_labels *labels, const char *name,
		       const char *value)
{
	put_label_text(labels, labels->len ? "," : "");
	put_label_text(labels, name);
	put_label_text(labels, "=\"");
	put_value(labels, value);
	put_label_text(labels, "\"");
}

void metrics_label_index(struct metrics_labels *labels, const char *name,
			 size_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", value);
	metrics_label_add(labels, name, number);
}

/* ---- Values ----------------------------------------------------------------------- */

static void write_value(struct text *text, uint64_t value, unsigned int digits)
{
	uint64_t unit = 1;

	for (unsigned int i = 0; i < digits; i++)
		unit *= 10;
	fprintf(text->file, "%" PRIu64, value / unit);
	if (digits)
		fprintf(text->file, ".%0*" PRIu64, (int)digits, value % unit);
	fputc('\n', text->file);
}

static const char *suffix_of(const struct metric *metric)
{
	return metric->type == COUNTER ? "_total" : "";
}

static void write_head(struct text *text, const struct metric *metric)
{
	static const char *const types[] = {
		[COUNTER] = "counter",
		[GAUGE] = "gauge",
		[HISTOGRAM] = "histogram",
	};

	fprintf(text->file, "# HELP %s%s %s.\n# TYPE %s%s %s\n", metric->name,
		suffix_of(metric), metric->help, metric->name,
		suffix_of(metric), types[metric->type]);
}

/* Write "{LABELS,more}", without empty parts. */
static void write_labels(struct text *text, const struct metrics_labels *labels,
			 const char *more)
{
	if (!labels->len && !*more)
		return;
	fprintf(text->file, "{%.*s%s%s}", (int)labels->len, labels->text,
		labels->len && *more ? "," : "", more);
}

/* @part: of a histogram, with the label that it has in addition */
static void write_name(struct text *text, const struct metric *metric,
		       const char *part, const struct metrics_labels *labels,
		       const char *more)
{
	fprintf(text->file, "%s%s", metric->name, part);
	write_labels(text, labels, more);
	fputc(' ', text->file);
}

static void write_counter(struct text *text, const struct metric *metric,
			  const struct metrics_labels *labels,
			  const uint64_t *value)
{
	write_name(text, metric, suffix_of(metric), labels, "");
	write_value(text, *value, metric->digits);
}

static void write_bucket(struct text *text, const struct metric *metric,
			 const struct metrics_labels *labels, const char *limit,
			 uint64_t value)
{
	char le[40];

	snprintf(le, sizeof(le), "le=\"%s\"", limit);
	write_name(text, metric, "_bucket", labels, le);
	write_value(text, value, 0);
}

static void write_histogram(struct text *text, const struct metric *metric,
			    const struct metrics_labels *labels,
			    const struct metrics_histogram *histogram)
{
	uint64_t sum = 0;
	char limit[32];

	for (uint32_t i = 0; i < histogram->n - 1; i++) {
		const uint64_t us = (uint64_t)histogram->shortest_us << i;

		sum += histogram->by_time[i];
		snprintf(limit, sizeof(limit), "%.9g", (double)us / 1e6);
		write_bucket(text, metric, labels, limit, sum);
	}
	write_bucket(text, metric, labels, "+Inf", histogram->count);
	write_name(text, metric, "_count", labels, "");
	write_value(text, histogram->count, 0);
	write_name(text, metric, "_sum", labels, "");
	write_value(text, histogram->sum_ns, 9);
}

static void write_series(struct text *text, const struct metric *metric)
{
	struct metrics_labels labels;
	const void *item = METRICS_SKIP;

	for (size_t i = 0; item; i++) {
		const void *value;

		labels.len = 0;
		item = metric->set(&(struct metrics_at){ metric, text->values,
							 i, &labels });
		if (!item || item == METRICS_SKIP)
			continue;
		value = (const char *)item + metric->offset;
		if (metric->type == HISTOGRAM)
			write_histogram(text, metric, &labels, value);
		else
			write_counter(text, metric, &labels, value);
	}
}

static void write_metrics(struct text *text)
{
	for (size_t i = 0; i < metrics_table_size; i++) {
		const struct metric *metric = &metrics_table[i];

		write_head(text, metric);
		write_series(text, metric);
	}
}

int metrics_format(const struct metrics_values *values, char **ret_text,
		   size_t *ret_len)
{
	struct text text = { .values = values };
	char *buf = NULL;
	size_t size = 0;
	bool has_failed;

	text.file = open_memstream(&buf, &size);
	if (!text.file)
		return -ENOMEM;
	write_metrics(&text);
	has_failed = ferror(text.file);
	if (fclose(text.file) || has_failed) {
		free(buf);
		return -ENOMEM;
	}
	*ret_text = buf;
	*ret_len = size;
	return 0;
}
