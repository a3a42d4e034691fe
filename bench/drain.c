/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Each number of flows has a process of its own, so that peaks of memory do
 * not mix. Threads of a sink are not those that drain: the kernel accounts the CPU time of
 * each thread.
 */
#include "config.h"

#include "bench.h"
#include "design.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	REST_MS = 30000, /* for a sink to deliver the last records */
	/* A round is as many drains as it takes to have this many flows. */
	FLOWS_PER_ROUND = 50000
};

/* Nanoseconds are per flow, and medians of the rounds. */
struct drain_result {
	uint32_t flows;
	double cpu_ns, user_ns, system_ns;
	double wall_ns; /* with the wait for the generation to settle */
	uint64_t rss_peak_bytes;
	uint64_t kernel_bytes;
};

struct bench {
	const struct config *config;
	struct packets packets;
	struct runner runner;
	struct engine engine;
	struct target target;
	uint64_t maps_before;
	uint64_t maps_peak;
};

/* ---- Memory ------------------------------------------------------------------ */

/* The number after "@name:" in a file of such lines; 0 when there is none. */
static uint64_t read_field(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	unsigned long long value = 0;
	size_t len = strlen(name);
	char line[256];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && line[len] == ':')
			sscanf(line + len + 1, "%llu", &value);
	fclose(file);
	return value;
}

/* What the kernel took for all maps that this process has descriptors of. */
static uint64_t sum_maps(void)
{
	DIR *directory = opendir("/proc/self/fdinfo");
	const struct dirent *entry;
	uint64_t sum = 0;

	while (directory && (entry = readdir(directory))) {
		char path[300];

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s",
			 entry->d_name);
		/* Programs have a memlock line as well. */
		if (read_field(path, "map_type"))
			sum += read_field(path, "memlock");
	}
	if (directory)
		closedir(directory);
	return sum;
}

static void note_maps(void *user)
{
	struct bench *bench = user;

	bench->maps_peak =
		max_u64(bench->maps_peak, sum_maps() - bench->maps_before);
}

/* ---- Time -------------------------------------------------------------------- */

/* Nanoseconds of this thread. */
struct usage {
	int64_t wall, cpu;
	/* Counted in ticks on many kernels: only their ratio is of use. */
	int64_t user, system;
};

static int64_t to_ns(const struct timeval *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_usec * 1000LL;
}

/* Add what there was so far, or subtract it. */
static void usage_add(struct usage *sum, int sign)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	sum->wall += sign * clock_ns(CLOCK_MONOTONIC);
	sum->cpu += sign * clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sum->user += sign * to_ns(&usage.ru_utime);
	sum->system += sign * to_ns(&usage.ru_stime);
}

/* ---- Drains ------------------------------------------------------------------ */

static void print_drain_log(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "netobsctl bench: %s\n", message);
}

/* As the loop of netobsctl flows does it. */
static void dispatch_sink(void *user)
{
	struct bench *bench = user;

	netobs_sink_dispatch(bench->engine.sink);
}

static int open_drain_sink(struct bench *bench)
{
	const NETOBS_OPTS(netobs_sink_opts, opts, .on_log = print_drain_log);

	if (!bench->config->sink)
		return 0;
	bench->engine.on_step = dispatch_sink;
	bench->engine.user = bench;
	return netobs_sink_open(bench->config->sink, &opts, &bench->engine.sink);
}

/* Fill and drain; every packet must come back. What it took is added to @sum. */
static int fill_and_drain(struct bench *bench, struct usage *sum)
{
	struct engine *engine = &bench->engine;
	const uint64_t packets = engine->packets, flows = engine->flows;
	const uint32_t wanted = bench->packets.flows;
	int err = runner_fill(&bench->runner, &bench->target);

	if (err)
		return err;
	usage_add(sum, -1);
	engine_drain(engine);
	if (engine->sink)
		err = sink_finish(engine->sink, REST_MS);
	usage_add(sum, 1);
	if (err || (engine->packets - packets == wanted &&
		    engine->flows - flows == wanted))
		return err;
	fprintf(stderr,
		"netobsctl bench: %u flows of a packet each became %llu flows of %llu packets\n",
		wanted, (unsigned long long)(engine->flows - flows),
		(unsigned long long)(engine->packets - packets));
	return -EIO;
}

static int measure_rounds(struct bench *bench, struct drain_result *result)
{
	const uint32_t rounds = bench->config->rounds,
		       flows = bench->packets.flows;
	const uint32_t drains = (FLOWS_PER_ROUND - 1) / flows + 1;
	cleanup_free double *cpu = calloc(rounds, sizeof(*cpu));
	cleanup_free double *wall = calloc(rounds, sizeof(*wall));
	struct usage total = { 0 };
	double user;
	int err = cpu && wall ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < rounds && !err; i++) {
		const struct usage before = total;

		for (uint32_t n = 0; n < drains && !err; n++)
			err = fill_and_drain(bench, &total);
		cpu[i] = (double)(total.cpu - before.cpu) / drains / flows;
		wall[i] = (double)(total.wall - before.wall) / drains / flows;
	}
	if (err)
		return err;
	/* Too short for a tick: it is the process that works. */
	user = total.user + total.system ?
		       (double)total.user / (total.user + total.system) :
		       1;
	result->cpu_ns = interval_of(cpu, rounds).median;
	result->user_ns = result->cpu_ns * user;
	result->system_ns = result->cpu_ns * (1 - user);
	result->wall_ns = interval_of(wall, rounds).median;
	return 0;
}

/* Looking at memory takes time: in a drain of its own, the last one. */
static int measure_maps(struct bench *bench)
{
	struct usage unused = { 0 };

	bench->engine.on_step = note_maps;
	bench->engine.user = bench;
	return fill_and_drain(bench, &unused);
}

static int measure_engine(struct bench *bench, struct drain_result *result)
{
	const uint64_t rss = read_field("/proc/self/status", "VmRSS");
	int err;

	bench->maps_before = sum_maps();
	err = engine_open(&bench->engine, bench->packets.flows, 0);
	bench->target = engine_target(&bench->engine);
	err = err ?: engine_adapt(&bench->engine, &bench->runner, &bench->target);
	err = err ?: open_drain_sink(bench);
	err = err ?: measure_rounds(bench, result);
	netobs_sink_close(TAKE_PTR(bench->engine.sink));
	err = err ?: measure_maps(bench);
	result->flows = bench->packets.flows;
	result->rss_peak_bytes =
		(read_field("/proc/self/status", "VmHWM") - rss) << 10;
	result->kernel_bytes = bench->maps_peak;
	engine_close(&bench->engine);
	return err;
}

/* In a process of its own. */
static int measure_flows(const struct config *config, uint32_t flows,
			 struct drain_result *result)
{
	struct bench bench = { .config = config };
	char what[32];
	int err = packets_prepare(&bench.packets, flows, false);

	err = err ?: runner_init(&bench.runner, &bench.packets, NULL);
	err = err ?: measure_engine(&bench, result);
	packets_clear(&bench.packets);
	snprintf(what, sizeof(what), "drain of %u flows", flows);
	return failure_report(what, err);
}

static int fork_and_measure(const struct config *config, uint32_t flows,
			    struct drain_result *result)
{
	char text[32];
	int status = 0;
	pid_t child;

	snprintf(text, sizeof(text), "%u flows", flows);
	progress_show(text);
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(measure_flows(config, flows, result) ? EXIT_FAILED :
							     EXIT_FINE);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status ? -EIO : 0;
}

/* ---- Results ----------------------------------------------------------------- */

static const struct report_column columns[] = {
	{ "flows", 0 },
	{ "user_ns_per_flow", 2 },
	{ "system_ns_per_flow", 2 },
	{ "cpu_ns_per_flow", 2 },
	{ "wall_ns_per_flow", 2 },
	{ "rss_peak_bytes", 0 },
	{ "kernel_bytes", 0 },
	{ "total_bytes", 0 },
};

static void print_drains(const struct config *config,
			 const struct drain_result *results)
{
	struct report report = { .is_json = config->output == OUTPUT_JSON,
				 .columns = columns,
				 .n_columns = ARRAY_SIZE(columns) };

	report_begin(&report, "Flows from the kernel's store to records",
		     config->rounds, NULL);
	for (uint32_t i = 0; i < config->n_flow_counts; i++) {
		const struct drain_result *r = &results[i];
		const double numbers[] = {
			r->flows,	 r->user_ns,
			r->system_ns,	 r->cpu_ns,
			r->wall_ns,	 r->rss_peak_bytes,
			r->kernel_bytes, r->rss_peak_bytes + r->kernel_bytes
		};

		report_row(&report, NULL, numbers);
	}
	report_end(&report);
}

int drain_run(const struct config *config)
{
	size_t size = config->n_flow_counts * sizeof(struct drain_result);
	/* Shared with child processes. */
	struct drain_result *results = mmap(NULL, size, PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err = 0;

	if (results == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; i < config->n_flow_counts && !err; i++)
		err = fork_and_measure(config, config->flow_counts[i],
				       &results[i]);
	progress_show(NULL);
	if (!err)
		print_drains(config, results);
	munmap(results, size);
	return err;
}
