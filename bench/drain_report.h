/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the drain benchmark finds. */
#ifndef NETOBS_BENCH_DRAIN_REPORT_H
#define NETOBS_BENCH_DRAIN_REPORT_H

#include "config.h"
#include "host.h"

/* Nanoseconds are per flow, and medians of the rounds. */
struct drain_result {
	uint32_t flows;
	double cpu_ns;
	double user_ns;
	double system_ns;
	double wall_ns; /* with the wait for the generation to settle */
	double cpu_min_ns;
	double cpu_max_ns;
	uint64_t rss_peak_bytes;
	uint64_t kernel_bytes;
};

struct drain_report {
	struct machine host;
	uint32_t rounds;
	uint32_t n;
	struct drain_result *results; /* shared with child processes */
};

int drain_report_init(struct drain_report *report, const struct config *config);
void drain_report_done(struct drain_report *report);

/* @output: enum bench_output */
int drain_report_print(const struct drain_report *report, int output);

#endif
