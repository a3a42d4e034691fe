/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * What an observer costs those that it observes: a process does a load, with and without the observer in
 * turns. It is alone in a network namespace. Programs run in its system calls, and in interrupts that come in
 * the meantime.
 */
#ifndef NETOBS_BENCH_OBSERVED_H
#define NETOBS_BENCH_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct config;

enum { OBSERVED_LOADS_MAX = 2 };

struct observed_load {
	const char *name;
	uint32_t n; /* things in a turn */
	/* In that process: do it. @return 0, or -errno */
	int (*work)(void *user);
};

struct observed_bench {
	const char *name;  /* "sessions" */
	const char *title; /* of a table */
	const struct observed_load *loads;
	uint32_t n_loads;
	/*
	 * The process's own CPU time has what its system calls take; on many kernels not what interrupts
	 * do that come in these, which takes CLOCK_MONOTONIC.
	 */
	clockid_t clock;
	/* In that process: prepare the loads. @return 0, or -errno */
	int (*prepare)(void *user);
	/*
	 * Start the observer; and read what a turn has left, and end it. Errors of it are reported.
	 *
	 * @return 0, or -errno
	 */
	int (*start)(void *user);
	int (*end)(void *user, bool is_complete);
	/* CPU time that reading takes for one thing of the first load; NAN: not known */
	double (*reader_ns)(const void *user);
	void *user;
};

/**
 * Measure and print.
 *
 * @return 0; -ERANGE: this host is too noisy; or another -errno: reported
 */
int observed_run(const struct observed_bench *bench, const struct config *config);

#endif
