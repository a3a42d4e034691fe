// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "export_report.h"

#include "config.h"
#include "report_json.h"
#include "summary.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

enum { JSON_BYTES = 64 << 10 };

void export_report_sum_up(struct export_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		struct export_result *result = &report->results[i];
		struct summary cpu;

		if (!result->n)
			continue;
		cpu = summarize(result->cpu, result->n);
		result->wall_ns = summarize(result->wall, result->n).median;
		result->cpu_ns = cpu.median;
		result->cpu_min_ns = cpu.min;
		result->cpu_max_ns = cpu.max;
	}
}

/* What all sinks share: it is in the others' results. NULL: not measured. */
static const struct export_result *find_null(const struct export_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct export_result *result = &report->results[i];

		if (result->n && result->subject.spec &&
		    !strcmp(result->subject.spec, "null"))
			return result;
	}
	return NULL;
}

static int print_table(const struct export_report *report)
{
	const struct export_result *null = find_null(report);

	printf("records through a sink on one CPU, medians of %u rounds of up to %u records\n"
	       "Linux %s, %s\n\n%12s %10s %10s  %s\n",
	       report->rounds, report->records, report->host.kernel.release,
	       report->host.cpu, "records/s", "CPU ns", "over null", "sink");
	for (size_t i = 0; i < report->n; i++) {
		const struct export_result *r = &report->results[i];

		if (!r->n)
			continue;
		printf("%12.0f %10.0f ", 1e9 / r->wall_ns, r->cpu_ns);
		if (null && r->subject.spec)
			printf("%10.0f", r->cpu_ns - null->cpu_ns);
		else
			printf("%10s", "");
		printf("  %s\n", r->subject.name);
	}
	for (size_t i = 0; i < report->n; i++)
		if (!report->results[i].n)
			printf("\n%s was left out: %s\n",
			       report->results[i].subject.name,
			       report->results[i].absent);
	return 0;
}

static void put_result(struct json *json, const struct export_result *result,
		       const struct export_result *null)
{
	json_open(json, '{');
	json_key(json, "sink");
	json_string(json, result->subject.name);
	json_key_u64(json, "records_per_s", (uint64_t)(1e9 / result->wall_ns));
	report_json_ns(json, "cpu_ns_per_record", result->cpu_ns);
	report_json_ns(json, "cpu_ns_min", result->cpu_min_ns);
	report_json_ns(json, "cpu_ns_max", result->cpu_max_ns);
	if (null && result->subject.spec)
		report_json_ns(json, "cpu_ns_over_null",
			       result->cpu_ns - null->cpu_ns);
	json_close(json, '}');
}

static void put_results(struct json *json, const struct export_report *report)
{
	json_key(json, "results");
	json_open(json, '[');
	for (size_t i = 0; i < report->n; i++)
		if (report->results[i].n)
			put_result(json, &report->results[i], find_null(report));
	json_close(json, ']');
}

static void put_absent(struct json *json, const struct export_report *report)
{
	json_key(json, "absent");
	json_open(json, '[');
	for (size_t i = 0; i < report->n; i++) {
		const struct export_result *result = &report->results[i];

		if (result->n)
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

static int print_json(const struct export_report *report)
{
	static char text[JSON_BYTES];
	struct json json;

	report_json_begin(&json, text, sizeof(text), &report->host,
			  report->rounds);
	json_key_u64(&json, "records", report->records);
	put_results(&json, report);
	put_absent(&json, report);
	return report_json_print(&json, stdout);
}

int export_report_print(const struct export_report *report, int output)
{
	return output == OUTPUT_JSON ? print_json(report) : print_table(report);
}
