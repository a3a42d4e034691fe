/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What all benchmarks share: CPUs, what they say meanwhile, ratios of rounds. */
#ifndef NETOBS_BENCH_BENCH_H
#define NETOBS_BENCH_BENCH_H

#include "base/clock_ms.h"

#include <sched.h>

/* The last CPU that this process may use, or -errno: the first is busiest with interrupts. */
int cpu_last(void);
cpu_set_t cpu_set_of(int cpu);

/* Bind this thread, and those that it makes from now on, to cpu_last(). Returns 0 or -errno. */
int cpu_bind(void);

struct netobs_sink;

/* Wait for at most @ms until the sink has delivered all records. -ENOBUFS: it has dropped some. */
int sink_finish(struct netobs_sink *sink, int ms);

/* The piece of work at hand, on standard error if that is a terminal; NULL: none any more. */
void progress_show(const char *text);

/* Report why @what failed, unless the user has stopped it. Returns @err. */
int failure_report(const char *what, int err);

/*
 * How exactly a ratio is known: the one estimator of all comparisons. The ratio is the median
 * of one value per round, in which both sides had their turns next to each other. Its interval
 * lies between two order statistics (the binomial interval), which assumes nothing about the
 * distribution of values but that rounds do not depend on each other.
 *
 * Rounds go on until the interval is narrow, and stopping then prefers values that happen to
 * be close to each other. So the interval is that of 97.5 %, and contains the median of the
 * distribution in 95 % of comparisons (unit.bench_interval).
 */

enum {
	INTERVAL_LEAST = 7,   /* values; fewer have no interval */
	INTERVAL_ENOUGH = 20, /* before the width decides anything */
};

/* Wider ones are not published. */
#define INTERVAL_WIDTH 0.02

struct interval {
	double median, low, high; /* -INFINITY, INFINITY: too few values */
};

/* Sorts @values, of which there is at least one. */
struct interval interval_of(double *values, uint32_t n);

/* Whether the width decides after @n rounds, of @most, if there are more. */
bool interval_decides(uint32_t n, uint32_t most);

/* @return whether it may be published */
bool interval_is_narrow(const struct interval *interval, double width);

/* How often subjects take turns: until all ratios are known, or this host is too noisy. */

struct rounds {
	double width;  /* that intervals shall be below */
	uint32_t most; /* rounds of a case */

	/* All cases so far. */
	uint32_t n;	   /* rounds of the longest one */
	uint32_t repeated; /* runs, because others were too busy */
	double others; /* the largest share of a CPU that they took in a run that counts */
};

struct rounds_work {
	/* Have each subject take its turn, as round @round: again, if it was measured before. */
	int (*measure)(void *user, uint32_t round);
	/* Whether all ratios of @n rounds are known well enough; @is_last: report those that are not. */
	bool (*is_settled)(void *user, uint32_t n, bool is_last);
	void *user;
};

/**
 * Measure a case.
 *
 * @param ret_n  its rounds
 * @return 0; -ERANGE: this host is too noisy, which is reported; or another -errno
 */
int rounds_measure(struct rounds *rounds, const struct rounds_work *work,
		   uint32_t *ret_n);

/*
 * How one subject compares with @base, whose values are those of the same @n rounds: the ratio of
 * rates, where values are times.
 *
 * @param what  for the report of a ratio that is known too badly: "netobs, 1000 flows"; NULL: none yet
 * @return whether it is known well enough
 */
bool rounds_compare(const struct rounds *rounds, const double *base,
		    const double *values, uint32_t n, const char *what,
		    struct interval *ret_ratio);

/* "intervals below ...; others took ...", a line for people. */
void rounds_print(const struct rounds *rounds);

/* The results of a benchmark on standard output: rows of values, as a table or as JSON. */

/* What a column is called in the table, and a member in JSON. */
struct report_column {
	const char *name;
	int decimals; /* of a number; COLUMN_TEXT: it has text */
};

enum { COLUMN_TEXT = -1 };

struct report {
	bool is_json;
	const struct report_column *columns;
	uint32_t n_columns, n_rows;
};

/*
 * The machine, @rounds, and of a comparison how far it can be believed; @turns is NULL for others.
 * @title is for the table.
 */
void report_begin(struct report *report, const char *title, uint32_t rounds,
		  const struct rounds *turns);

/* One of @texts or @numbers for each column, in its order; NAN is not known, and JSON lacks it. */
void report_row(struct report *report, const char *const *texts,
		const double *numbers);
void report_end(const struct report *report);

/* A run in which others took more of one CPU is repeated. */
#define OTHERS_MOST 0.05

/**
 * CPU seconds, since the machine started, of all processes but this one and its descendants,
 * with those of their children that have ended; and what a hypervisor gave to other guests.
 * Work for this process in threads of the kernel is not among them. Differences count: the
 * time of a process whose parent does not wait for it is missing when it has ended.
 */
double others_cpu_seconds(void);

#endif
