// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * In each round, sinks take turns in random order: each is opened anew, and gets records until
 * all of them are delivered. All is on one CPU, the threads of modules as well.
 */
#include "bench.h"
#include "config.h"
#include "export_subject.h"
#include "report.h"
#include "sequence.h"
#include "base/util.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <string.h>

/* Nanoseconds are per record; medians of the rounds. */
struct export_result {
	struct export_subject subject;
	char absent[256];   /* why it could not be measured; "": it was */
	double *wall, *cpu; /* of the rounds */

	/* As of sum_up_export(). */
	const char *name;
	uint64_t records_per_s;
	double cpu_ns, cpu_min_ns, cpu_max_ns;
	struct interval of_null; /* records in a CPU time; NAN: null was not measured */
	double over_null_ns; /* NAN: without a sink as well */
};

struct bench {
	const struct config *config;
	struct export_load load;
	struct progress progress;
	struct rounds rounds;
	struct export_result *results;
	uint32_t n;
	uint32_t *order; /* of turns */
};

static const struct report_field export_fields[] = {
	REPORT_FIELD(export_result, "sink", REPORT_TEXT, name),
	REPORT_FIELD(export_result, "records_per_s", REPORT_U64, records_per_s),
	REPORT_FIELD(export_result, "cpu_ns_per_record", REPORT_NS, cpu_ns),
	REPORT_FIELD(export_result, "cpu_ns_min", REPORT_NS, cpu_min_ns),
	REPORT_FIELD(export_result, "cpu_ns_max", REPORT_NS, cpu_max_ns),
	REPORT_FIELD(export_result, "ratio", REPORT_RATIO, of_null.median),
	REPORT_FIELD(export_result, "ratio_low", REPORT_RATIO, of_null.low),
	REPORT_FIELD(export_result, "ratio_high", REPORT_RATIO, of_null.high),
	REPORT_FIELD(export_result, "cpu_ns_over_null", REPORT_NS, over_null_ns),
	{ 0 }
};

/* Threads that are made from now on are bound to it, too. */
static int bind_to_one_cpu(void)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return -errno;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_SET(cpu, &one);
		break;
	}
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

/* One of those that are measured anyway, by its name; else a sink's spec. */
static struct export_subject find_subject(const char *text)
{
	for (size_t i = 0; i < n_export_subjects; i++)
		if (!strcmp(export_subjects[i].name, text))
			return export_subjects[i];
	return (struct export_subject){ .name = text, .spec = text };
}

/* Messages of a sink begin with its spec, which may be the subject's name. */
static void print_failure(const char *name, const char *why)
{
	size_t length = strlen(name);
	bool is_named = !strncmp(why, name, length) && why[length] == ':';

	fprintf(stderr, "netobsctl bench: %s%s%s\n", is_named ? "" : name,
		is_named ? "" : ": ", why);
}

/* Subjects that are not installed are left out. */
static int measure_subject(struct bench *bench, struct export_result *result,
			   uint32_t round)
{
	struct export_sample sample;
	char why[sizeof(result->absent)];
	int err;

	if (*result->absent)
		return 0;
	progress_show(&bench->progress, result->subject.name);
	err = export_measure(&result->subject, &bench->load, &sample, why,
			     sizeof(why));
	progress_add(&bench->progress, 1);
	if (!err) {
		result->wall[round] = sample.wall_ns;
		result->cpu[round] = sample.cpu_ns;
		return 0;
	}
	if (err == -ENOENT && result->subject.is_optional) {
		memcpy(result->absent, why, sizeof(why));
		return 0;
	}
	if (err != -EINTR) {
		progress_clear(&bench->progress);
		print_failure(result->subject.name, why);
	}
	return err;
}

static int measure_export_round(void *user, uint32_t round)
{
	struct bench *bench = user;
	int err = 0;

	sequence_permute(bench->order, bench->n, round + 1);
	for (uint32_t i = 0; i < bench->n && !err; i++)
		err = measure_subject(bench, &bench->results[bench->order[i]],
				      round);
	return err;
}

/* ---- Sums -------------------------------------------------------------------- */

static const struct export_result *find_null(const struct bench *bench)
{
	for (uint32_t i = 0; i < bench->n; i++) {
		const struct export_subject *subject = &bench->results[i].subject;

		if (subject->spec && !strcmp(subject->spec, "null"))
			return &bench->results[i];
	}
	return NULL;
}

/* @room: for @n values. */
static struct interval compare_export(const struct export_result *null,
				      const struct export_result *result,
				      uint32_t n, double *room)
{
	if (!null)
		return (struct interval){ NAN, NAN, NAN };
	for (uint32_t i = 0; i < n; i++)
		room[i] = null->cpu[i] / result->cpu[i];
	return interval_of(room, n);
}

/* Sorts the samples. */
static void sum_up_export(struct export_result *result, uint32_t n)
{
	struct summary cpu = summarize(result->cpu, n);

	result->name = result->subject.name;
	result->records_per_s =
		(uint64_t)(1e9 / summarize(result->wall, n).median);
	result->cpu_ns = cpu.median;
	result->cpu_min_ns = cpu.min;
	result->cpu_max_ns = cpu.max;
}

static bool is_export_settled(void *user, uint32_t n, bool is_last)
{
	struct bench *bench = user;
	const struct export_result *null = find_null(bench);
	cleanup_free double *room = calloc(n, sizeof(*room));
	bool is_settled = room;

	for (uint32_t i = 0; i < bench->n && room; i++) {
		struct export_result *result = &bench->results[i];

		if (*result->absent)
			continue;
		result->of_null = compare_export(null, result, n, room);
		if (!null ||
		    interval_is_narrow(&result->of_null, bench->rounds.width))
			continue;
		is_settled = false;
		if (!is_last)
			continue;
		progress_clear(&bench->progress);
		rounds_report_noise(&bench->rounds, result->subject.name,
				    &result->of_null, n);
	}
	return is_settled;
}

/* Measured ones come first, then those that are absent: the number of the former. */
static uint32_t sort_results(struct bench *bench)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < bench->n; i++) {
		struct export_result result = bench->results[i];

		if (*result.absent)
			continue;
		memmove(&bench->results[n + 1], &bench->results[n],
			(i - n) * sizeof(result));
		bench->results[n++] = result;
	}
	return n;
}

static uint32_t sum_up_exports(struct bench *bench, uint32_t rounds)
{
	uint32_t n = sort_results(bench);
	const struct export_result *null = find_null(bench);

	for (uint32_t i = 0; i < n; i++)
		sum_up_export(&bench->results[i], rounds);
	for (uint32_t i = 0; i < n; i++) {
		struct export_result *result = &bench->results[i];

		result->over_null_ns = null && result->subject.spec ?
					       result->cpu_ns - null->cpu_ns :
					       NAN;
	}
	return n;
}

/* ---- Results ----------------------------------------------------------------- */

static void print_export(const struct export_result *result)
{
	printf("%12llu %10.0f ", (unsigned long long)result->records_per_s,
	       result->cpu_ns);
	if (isnan(result->of_null.median))
		printf("%7s %15s ", "", "");
	else
		printf("%7.3f %7.3f - %.3f ", result->of_null.median,
		       result->of_null.low, result->of_null.high);
	if (isnan(result->over_null_ns))
		printf("%10s", "");
	else
		printf("%10.0f", result->over_null_ns);
	printf("  %s\n", result->name);
}

static void print_export_table(const struct report *report)
{
	const struct bench *bench = report->user;
	uint32_t n = report->n;

	printf("Records through a sink on one CPU, up to %u in a turn; their number in a CPU time as "
	       "a\nratio to that of null. ",
	       bench->config->records);
	rounds_print(&bench->rounds);
	report_print_machine();
	printf("\n%12s %10s %7s %15s %10s  %s\n", "records/s", "CPU ns",
	       "ratio", "interval", "over null", "sink");
	for (uint32_t i = 0; i < n; i++)
		print_export(&bench->results[i]);
	for (uint32_t i = n; i < bench->n; i++)
		printf("\n%s was left out: %s\n",
		       bench->results[i].subject.name, bench->results[i].absent);
}

static void put_absent(struct json *json, const void *user)
{
	const struct bench *bench = user;

	json_key_u64(json, "records", bench->config->records);
	json_key(json, "absent");
	json_open(json, '[');
	for (uint32_t i = 0; i < bench->n; i++) {
		const struct export_result *result = &bench->results[i];

		if (!*result->absent)
			continue;
		json_open(json, '{');
		json_key(json, "sink");
		json_string(json, result->subject.name);
		json_key(json, "why");
		json_string(json, result->absent);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static int print_exports(struct bench *bench, uint32_t rounds)
{
	const struct report report = {
		.rounds = rounds,
		.turns = &bench->rounds,
		.fields = export_fields,
		.rows = bench->results,
		.row_size = sizeof(*bench->results),
		.n = sum_up_exports(bench, rounds),
		.print_table = print_export_table,
		.put_more = put_absent,
		.user = bench,
	};

	return report_print(&report, bench->config->output == OUTPUT_JSON);
}

/* ------------------------------------------------------------------------------ */

static int init_result(struct export_result *result, uint32_t rounds)
{
	result->wall = calloc(rounds, sizeof(*result->wall));
	result->cpu = calloc(rounds, sizeof(*result->cpu));
	return result->wall && result->cpu ? 0 : -ENOMEM;
}

static int init_bench(struct bench *bench, const struct config *config)
{
	uint32_t n = config->specs.n ?: n_export_subjects;
	int err = 0;

	bench->config = config;
	bench->rounds.width = config->width;
	bench->rounds.most = config->rounds;
	bench->results = calloc(n, sizeof(*bench->results));
	bench->load.records = config->records;
	bench->load.flows = export_flows_make(EXPORT_FLOWS);
	bench->order = calloc(n, sizeof(*bench->order));
	if (!bench->results || !bench->load.flows || !bench->order)
		return -ENOMEM;
	for (bench->n = 0; bench->n < n && !err; bench->n++) {
		struct export_result *result = &bench->results[bench->n];

		result->subject =
			config->specs.n ?
				find_subject(config->specs.items[bench->n]) :
				export_subjects[bench->n];
		err = init_result(result, config->rounds);
	}
	return err;
}

static void clear_bench(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->n; i++) {
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
	uint32_t rounds;
	int err = init_bench(&bench, config);

	err = err ?: bind_to_one_cpu();
	progress_begin(&bench.progress, (double)INTERVAL_ENOUGH * bench.n);
	err = err ?: rounds_measure(&bench.rounds, &work, &rounds);
	progress_clear(&bench.progress);
	err = err ?: print_exports(&bench, rounds);
	clear_bench(&bench);
	return err;
}
