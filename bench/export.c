// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Each sink is opened anew for each round, and gets records until all of them are
 * delivered. All is on one CPU, the threads of modules as well.
 */
#include "export.h"

#include "export_flows.h"
#include "export_report.h"
#include "progress.h"
#include "stop.h"
#include "base/util.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct bench {
	struct export_report report;
	struct export_load load;
	struct progress progress;
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

static int add_result(struct export_report *report,
		      const struct export_subject *subject)
{
	struct export_result *result = &report->results[report->n++];

	result->subject = *subject;
	result->wall = calloc(report->rounds, sizeof(*result->wall));
	result->cpu = calloc(report->rounds, sizeof(*result->cpu));
	return result->wall && result->cpu ? 0 : -ENOMEM;
}

/* One of those that are measured anyway, by its name; else a sink's spec. */
static struct export_subject find_subject(const char *text)
{
	for (size_t i = 0; i < n_export_subjects; i++)
		if (!strcmp(export_subjects[i].name, text))
			return export_subjects[i];
	return (struct export_subject){ .name = text, .spec = text };
}

static int init(struct bench *bench, const struct config *config)
{
	struct export_report *report = &bench->report;
	size_t n = config->specs.n ?: n_export_subjects;
	int err = 0;

	host_read(&report->host);
	report->rounds = config->rounds;
	report->records = config->records;
	report->results = calloc(n, sizeof(*report->results));
	if (!report->results)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		struct export_subject subject =
			config->specs.n ? find_subject(config->specs.items[i]) :
					  export_subjects[i];

		err = add_result(report, &subject);
	}
	bench->load.records = config->records;
	bench->load.flows = export_flows_make(EXPORT_FLOWS);
	return err ?: bench->load.flows ? 0 : -ENOMEM;
}

static void clear(struct bench *bench)
{
	for (size_t i = 0; i < bench->report.n; i++) {
		free(bench->report.results[i].wall);
		free(bench->report.results[i].cpu);
	}
	free(bench->report.results);
	free((void *)bench->load.flows);
}

/* What is not installed is left out. */
static int measure(struct bench *bench, struct export_result *result)
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
		result->wall[result->n] = sample.wall_ns;
		result->cpu[result->n++] = sample.cpu_ns;
		return 0;
	}
	if (err == -ENOENT && result->subject.is_optional) {
		memcpy(result->absent, why, sizeof(why));
		return 0;
	}
	if (err != -EINTR) {
		progress_clear(&bench->progress);
		fprintf(stderr, "netobsctl bench: %s: %s\n",
			result->subject.name, why);
	}
	return err;
}

static int measure_all(struct bench *bench)
{
	struct export_report *report = &bench->report;
	int err = bind_to_one_cpu();

	progress_begin(&bench->progress, (double)report->rounds * report->n);
	for (uint32_t round = 0; round < report->rounds; round++)
		for (size_t i = 0; i < report->n && !err; i++)
			err = measure(bench, &report->results[i]);
	progress_clear(&bench->progress);
	return err;
}

int export_run(const struct config *config)
{
	struct bench bench = { 0 };
	int err = init(&bench, config);

	err = err ?: measure_all(&bench);
	if (stop_requested())
		fputs("netobsctl bench: interrupted\n", stderr);
	if (!err) {
		export_report_sum_up(&bench.report);
		err = export_report_print(&bench.report, config->output);
	}
	clear(&bench);
	return err;
}
