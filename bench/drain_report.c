/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "drain_report.h"

#include "report_json.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { JSON_BYTES = 8192, MIB = 1 << 20 };

static size_t results_size(const struct drain_report *report)
{
	return report->n * sizeof(*report->results);
}

int drain_report_init(struct drain_report *report, const struct config *config)
{
	*report = (struct drain_report){
		.rounds = config->rounds,
		.n = config->n_flow_counts,
	};
	host_read(&report->host);
	report->results = mmap(NULL, results_size(report), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report->results != MAP_FAILED)
		return 0;
	report->results = NULL;
	return -errno;
}

void drain_report_done(struct drain_report *report)
{
	if (report->results)
		munmap(report->results, results_size(report));
}

static int print_table(const struct drain_report *report)
{
	printf("ns per flow to drain the kernel's store into records, medians of %u rounds\n"
	       "Linux %s, %s\n\n"
	       "%9s %9s %9s %9s %9s %13s %13s\n",
	       report->rounds, report->host.kernel.release, report->host.cpu,
	       "flows", "user", "system", "CPU", "wall", "process MiB",
	       "kernel MiB");
	for (uint32_t i = 0; i < report->n; i++) {
		const struct drain_result *r = &report->results[i];

		printf("%9u %9.0f %9.0f %9.0f %9.0f %13.1f %13.1f\n", r->flows,
		       r->user_ns, r->system_ns, r->cpu_ns, r->wall_ns,
		       (double)r->rss_peak_bytes / MIB,
		       (double)r->kernel_bytes / MIB);
	}
	return 0;
}

static void put_result(struct json *json, const struct drain_result *result)
{
	json_open(json, '{');
	json_key_u64(json, "flows", result->flows);
	report_json_ns(json, "user_ns_per_flow", result->user_ns);
	report_json_ns(json, "system_ns_per_flow", result->system_ns);
	report_json_ns(json, "cpu_ns_per_flow", result->cpu_ns);
	report_json_ns(json, "cpu_ns_min", result->cpu_min_ns);
	report_json_ns(json, "cpu_ns_max", result->cpu_max_ns);
	report_json_ns(json, "wall_ns_per_flow", result->wall_ns);
	json_key_u64(json, "rss_peak_bytes", result->rss_peak_bytes);
	json_key_u64(json, "kernel_bytes", result->kernel_bytes);
	json_close(json, '}');
}

static int print_json(const struct drain_report *report)
{
	char text[JSON_BYTES];
	struct json json;

	report_json_begin(&json, text, sizeof(text), &report->host,
			  report->rounds);
	json_key(&json, "results");
	json_open(&json, '[');
	for (uint32_t i = 0; i < report->n; i++)
		put_result(&json, &report->results[i]);
	json_close(&json, ']');
	return report_json_print(&json, stdout);
}

int drain_report_print(const struct drain_report *report, int output)
{
	return output == OUTPUT_JSON ? print_json(report) : print_table(report);
}
