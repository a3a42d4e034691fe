// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * In each round, sinks take turns in random order: each is opened anew, and gets records until
 * all of them are delivered. All is on one CPU, the threads of modules as well.
 */
#include "bench.h"
#include "config.h"
#include "export_subject.h"
#include "runner.h"
#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Nanoseconds are per record. */
struct export_result {
	struct export_subject subject;
	char absent[EXPORT_WHY_MAX]; /* why it could not be measured; "": it was */
	double *wall, *cpu;	     /* of the rounds */
	struct interval of_null; /* records in a CPU time, if null is measured */
	double cpu_ns;		 /* the median; @cpu is sorted then */
};

struct bench {
	const struct config *config;
	struct export_load load;
	struct rounds rounds;
	struct export_result *results;
	const struct export_result *null; /* NULL: it is not measured */
	uint32_t n;
	uint32_t *order; /* of turns */
};

/* ---- Measuring --------------------------------------------------------------- */

/* Messages of a sink begin with its spec, which may be the subject's name. */
static void print_failure(const char *name, const char *why)
{
	size_t length = strlen(name);
	bool is_named = !strncmp(why, name, length) && why[length] == ':';

	progress_show(NULL);
	fprintf(stderr, "netobsctl bench: %s%s%s\n", is_named ? "" : name,
		is_named ? "" : ": ", why);
}

/* Subjects that are not installed are left out. */
static int measure_subject(struct bench *bench, struct export_result *result,
			   uint32_t round)
{
	const struct export_subject *subject = &result->subject;
	struct export_sample sample;
	char why[EXPORT_WHY_MAX];
	int err;

	if (*result->absent)
		return 0;
	progress_show(subject->name);
	err = export_measure(subject, &bench->load, &sample, why);
	if (err == -ENOENT && subject->is_optional) {
		memcpy(result->absent, why, sizeof(why));
		return 0;
	}
	if (err && err != -EINTR)
		print_failure(subject->name, why);
	if (err)
		return err;
	result->wall[round] = sample.wall_ns;
	result->cpu[round] = sample.cpu_ns;
	return 0;
}

static int measure_export_round(void *user, uint32_t round)
{
	struct bench *bench = user;
	int err = 0;

	packets_permute(bench->order, bench->n, round + 1);
	for (uint32_t i = 0; i < bench->n && !err; i++)
		err = measure_subject(bench, &bench->results[bench->order[i]],
				      round);
	return err;
}

static bool is_export_settled(void *user, uint32_t n, bool is_last)
{
	struct bench *bench = user;
	bool is_settled = true;

	for (uint32_t i = 0; i < bench->n && bench->null; i++) {
		struct export_result *result = &bench->results[i];

		if (!*result->absent)
			is_settled &= rounds_compare(
				&bench->rounds, bench->null->cpu, result->cpu,
				n, is_last ? result->subject.name : NULL,
				&result->of_null);
	}
	return is_settled;
}

/* ---- Results ----------------------------------------------------------------- */

static const struct report_column columns[] = {
	{ "sink", COLUMN_TEXT },    { "records_per_s", 0 },
	{ "cpu_ns_per_record", 2 }, { "cpu_ns_min", 2 },
	{ "cpu_ns_max", 2 },	    { "ratio", 4 },
	{ "ratio_low", 4 },	    { "ratio_high", 4 },
	{ "cpu_ns_over_null", 2 },
};

static void print_result(struct report *report, const struct bench *bench,
			 const struct export_result *result, uint32_t n)
{
	const struct interval unknown = { NAN, NAN, NAN };
	const struct interval *ratio = bench->null ? &result->of_null : &unknown;
	const bool is_sink = bench->null && result->subject.spec;
	const double null_ns = is_sink ? bench->null->cpu_ns : NAN;
	const double numbers[] = {
		floor(1e9 / interval_of(result->wall, n).median),
		result->cpu_ns,
		result->cpu[0],
		result->cpu[n - 1],
		ratio->median,
		ratio->low,
		ratio->high,
		result->cpu_ns - null_ns,
	};

	report_row(report, &result->subject.name, numbers);
}

static void print_exports(const struct bench *bench, uint32_t n)
{
	struct report report = { .is_json = bench->config->output == OUTPUT_JSON,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };

	report_begin(&report, "Records through a sink on one CPU", n,
		     &bench->rounds);
	for (uint32_t i = 0; i < bench->n; i++)
		if (!*bench->results[i].absent)
			print_result(&report, bench, &bench->results[i], n);
	report_end(&report);
	for (uint32_t i = 0; i < bench->n; i++)
		if (*bench->results[i].absent)
			fprintf(stderr, "netobsctl bench: %s is left out: %s\n",
				bench->results[i].subject.name,
				bench->results[i].absent);
}

/* One of those that are measured anyway, by its name; else a sink's spec. */
static struct export_subject find_subject(const char *text)
{
	for (size_t i = 0; i < n_export_subjects; i++)
		if (!strcmp(export_subjects[i].name, text))
			return export_subjects[i];
	return (struct export_subject){ .name = text, .spec = text };
}

static int init_bench(struct bench *bench, const struct config *config)
{
	const struct args_list *specs = &config->specs;

	bench->config = config;
	bench->rounds.width = config->width;
	bench->rounds.most = config->rounds;
	bench->n = specs->n ?: n_export_subjects;
	bench->load.records = config->records;
	bench->load.flows = export_flows_make(EXPORT_FLOWS);
	bench->order = calloc(bench->n, sizeof(*bench->order));
	bench->results = calloc(bench->n, sizeof(*bench->results));
	if (!bench->load.flows || !bench->order || !bench->results)
		return -ENOMEM;
	for (uint32_t i = 0; i < bench->n; i++) {
		struct export_result *result = &bench->results[i];

		result->subject = specs->n ? find_subject(specs->items[i]) :
					     export_subjects[i];
		result->wall = calloc(config->rounds, sizeof(*result->wall));
		result->cpu = calloc(config->rounds, sizeof(*result->cpu));
		if (!result->wall || !result->cpu)
			return -ENOMEM;
		if (!strcmp(result->subject.name, "null"))
			bench->null = result;
	}
	return 0;
}

static void clear_bench(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->n && bench->results; i++) {
		free(bench->results[i].wall);
		free(bench->results[i].cpu);
	}
	free(bench->results);
	free(bench->order);
	free((void *)bench->load.flows);
}

int export_run(const struct config *config)
{
	struct bench bench = { 0 };
	const struct rounds_work work = { .measure = measure_export_round,
					  .is_settled = is_export_settled,
					  .user = &bench };
	uint32_t n;
	int err = init_bench(&bench, config);

	err = err ?: cpu_bind();
	err = err ?: rounds_measure(&bench.rounds, &work, &n);
	progress_show(NULL);
	for (uint32_t i = 0; i < bench.n && !err; i++)
		bench.results[i].cpu_ns =
			interval_of(bench.results[i].cpu, n).median;
	if (!err)
		print_exports(&bench, n);
	clear_bench(&bench);
	return err;
}
