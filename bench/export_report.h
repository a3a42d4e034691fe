/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the export benchmark finds. */
#ifndef NETOBS_BENCH_EXPORT_REPORT_H
#define NETOBS_BENCH_EXPORT_REPORT_H

#include "export_subject.h"
#include "host.h"

#include <stdint.h>

/* Nanoseconds are per record; medians of the rounds. */
struct export_result {
	struct export_subject subject;
	char absent[256];   /* why it could not be measured; "": it was */
	double *wall, *cpu; /* of the rounds */
	uint32_t n;
	double wall_ns;
	double cpu_ns, cpu_min_ns, cpu_max_ns;
};

struct export_report {
	struct machine host;
	uint32_t rounds;
	uint32_t records;
	struct export_result *results;
	size_t n;
};

void export_report_sum_up(struct export_report *report);

/* @output: enum bench_output */
int export_report_print(const struct export_report *report, int output);

#endif
