/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The command line, and the benchmarks that it names. */
#ifndef NETOBS_BENCH_CONFIG_H
#define NETOBS_BENCH_CONFIG_H

#include "service/options/args.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_COUNTS_MAX = 16, FLOWS_MAX = 1 << 22 };

enum bench_output { OUTPUT_TABLE, OUTPUT_JSON };

/* Indexes of the choices; CHOICE_ALL: not restricted. */
enum { CHOICE_ALL = -1 };

struct config {
	enum { BENCH_DATAPATH, BENCH_DRAIN, BENCH_EXPORT, BENCH_TRACE } bench;
	int output;
	int distribution; /* 0 uniform, 1 Zipf */
	const char *stores;
	const char *flows;
	const char *sink;
	struct args_list specs; /* of sinks */
	const char *width_text;
	uint32_t records;
	uint32_t rounds; /* of a comparison: at most */
	bool quick;
	bool is_live;

	/* Parsed. */
	double width; /* of intervals: less */
	uint32_t design_mask;
	uint32_t n_flow_counts;
	uint32_t flow_counts[FLOW_COUNTS_MAX];
};

/* The caller clears the list of @ret_config, whatever this returns. */
enum args_result config_parse(int argc, char **argv, struct config *ret_config);

/*
 * Measure and print. Each returns 0 or -errno, after a message; -ERANGE: this host is too noisy
 * to compare.
 */
int datapath_run(const struct config *config);
int drain_run(const struct config *config);
int export_run(const struct config *config);
int trace_run(const struct config *config);

#endif
