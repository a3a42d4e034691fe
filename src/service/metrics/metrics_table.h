/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* All metrics, each named once: its type, help text, and the location of its values. */
#ifndef NETOBS_SERVICE_METRICS_METRICS_TABLE_H
#define NETOBS_SERVICE_METRICS_METRICS_TABLE_H

#include <stddef.h>

#include "metrics_values.h"

enum {
	METRICS_LABELS_MAX =
		4096 /* four and the name of a group, when each byte becomes three */
};

/* The labels of a series: NAME="VALUE",NAME="VALUE" */
struct metrics_labels {
	char text[METRICS_LABELS_MAX];
	size_t len;
};

void metrics_label_add(struct metrics_labels *labels, const char *name,
		       const char *value);
void metrics_label_index(struct metrics_labels *labels, const char *name,
			 size_t value);

/*
 * Adds the labels of series @i, and returns the struct that its value is in; NULL: there are no
 * more series; METRICS_SKIP: no series for this @i.
 */
typedef const void *metrics_set(const struct metrics_values *values, size_t i,
				struct metrics_labels *labels);

extern const char metrics_skip;
#define METRICS_SKIP ((const void *)&metrics_skip)

enum metrics_type { COUNTER, GAUGE, HISTOGRAM };

/*
 * The name of a counter goes without its "_total". Its last word is the unit, if it is
 * bytes or seconds.
 */
struct metric {
	const char *name;
	enum metrics_type type;
	const char *help;
	metrics_set *set;
	/* Offset in the returned struct: of a uint64_t, or of a struct metrics_histogram. */
	size_t offset;
	unsigned int digits; /* digits of the value behind the point: 9 for nanoseconds */
};

extern const struct metric metrics_table[];
extern const size_t metrics_table_size;

#endif
