/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Each number of flows has a process of its own, so that peaks of memory do
 * not mix. In it, threads fill the store with packets, and the main thread
 * drains: the kernel accounts the CPU time of each thread.
 */
#include "config.h"

#include "bench.h"
#include "engine.h"
#include "memory.h"
#include "report.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
	REST_MS = 30000, /* for a sink to deliver the last records */
	/* A round is as many drains as it takes to have this many flows. */
	FLOWS_PER_ROUND = 50000,
	MIB = 1 << 20,
};

/* Nanoseconds are per flow, and medians of the rounds. */
struct drain_result {
	uint32_t flows;
	double cpu_ns, user_ns, system_ns;
	double wall_ns; /* with the wait for the generation to settle */
	double cpu_min_ns, cpu_max_ns;
	uint64_t rss_peak_bytes;
	uint64_t kernel_bytes;
	uint64_t total_bytes; /* of both */
};

static const struct report_field drain_fields[] = {
	REPORT_FIELD(drain_result, "flows", REPORT_U32, flows),
	REPORT_FIELD(drain_result, "user_ns_per_flow", REPORT_NS, user_ns),
	REPORT_FIELD(drain_result, "system_ns_per_flow", REPORT_NS, system_ns),
	REPORT_FIELD(drain_result, "cpu_ns_per_flow", REPORT_NS, cpu_ns),
	REPORT_FIELD(drain_result, "cpu_ns_min", REPORT_NS, cpu_min_ns),
	REPORT_FIELD(drain_result, "cpu_ns_max", REPORT_NS, cpu_max_ns),
	REPORT_FIELD(drain_result, "wall_ns_per_flow", REPORT_NS, wall_ns),
	REPORT_FIELD(drain_result, "rss_peak_bytes", REPORT_U64, rss_peak_bytes),
	REPORT_FIELD(drain_result, "kernel_bytes", REPORT_U64, kernel_bytes),
	REPORT_FIELD(drain_result, "total_bytes", REPORT_U64, total_bytes),
	{ 0 }
};

struct bench {
	const struct config *config;
	struct spread spread;
	struct runner runner;
	struct engine engine;
	uint64_t maps_before;
	uint64_t maps_peak;
};

/* What a thread has used so far. */
struct usage {
	int64_t wall_ns;
	int64_t cpu_ns;
	/* Counted in ticks on many kernels: only their ratio is of use. */
	int64_t user_ns;
	int64_t system_ns;
};

static int64_t to_ns(const struct timeval *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_usec * 1000LL;
}

static struct usage read_usage(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct usage){
		.wall_ns = clock_ns(CLOCK_MONOTONIC),
		.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
		.user_ns = to_ns(&usage.ru_utime),
		.system_ns = to_ns(&usage.ru_stime),
	};
}

static void add_since(struct usage *sum, const struct usage *before)
{
	struct usage now = read_usage();

	sum->wall_ns += now.wall_ns - before->wall_ns;
	sum->cpu_ns += now.cpu_ns - before->cpu_ns;
	sum->user_ns += now.user_ns - before->user_ns;
	sum->system_ns += now.system_ns - before->system_ns;
}

static void note_maps(void *user)
{
	struct bench *bench = user;
	uint64_t now = memory_maps();

	bench->maps_peak = max_u64(bench->maps_peak, now - bench->maps_before);
}

/* As the loop of netobsctl flows does it. */
static void dispatch_sink(void *user)
{
	struct bench *bench = user;

	netobs_sink_dispatch(bench->engine.sink);
}

/* Wait until the sink has delivered all records; none may be dropped. */
static int finish_sink(struct netobs_sink *sink)
{
	struct netobs_sink_stats stats = { .sz = sizeof(stats) };
	int err = netobs_sink_wait(sink, REST_MS);

	netobs_sink_stats_get(sink, &stats);
	for (int i = 0; i < NETOBS_SINK_DROPS && !err; i++)
		err = stats.dropped[i].records ? -ENOBUFS : 0;
	return err;
}

/* Fill and drain; every packet must come back. */
static int fill_and_drain(struct bench *bench, struct usage *sum)
{
	struct engine *engine = &bench->engine;
	uint64_t packets = engine->packets, flows = engine->flows;
	struct usage before;
	int err = stop_requested() ? -EINTR : engine_fill(engine, &bench->runner);

	if (err)
		return err;
	before = read_usage();
	engine_drain(engine);
	if (engine->sink)
		err = finish_sink(engine->sink);
	if (err)
		return err;
	if (sum)
		add_since(sum, &before);
	if (engine->packets - packets == bench->spread.flows &&
	    engine->flows - flows == bench->spread.flows)
		return 0;
	fprintf(stderr,
		"netobsctl bench: %u flows of a packet each became %llu flows of %llu packets\n",
		bench->spread.flows, (unsigned long long)(engine->flows - flows),
		(unsigned long long)(engine->packets - packets));
	return -EIO;
}

/* Looking at memory takes time: in a drain of its own, the last one. */
static int measure_maps(struct bench *bench)
{
	int err;

	bench->engine.on_step = note_maps;
	bench->engine.user = bench;
	err = fill_and_drain(bench, NULL);
	return err;
}

static uint32_t drains_per_round(const struct bench *bench)
{
	return (FLOWS_PER_ROUND - 1) / bench->spread.flows + 1;
}

/* The drains of one round; what they used goes to @sum. */
static int measure_drain_round(struct bench *bench, struct usage *sum)
{
	uint32_t drains = drains_per_round(bench);
	int err = 0;

	for (uint32_t i = 0; i < drains && !err; i++)
		err = fill_and_drain(bench, sum);
	return err;
}

static void sum_up_drain(const struct usage *total, struct summary cpu,
			 struct summary wall, struct drain_result *result)
{
	double ticks = total->user_ns + total->system_ns;
	/* Too short for a tick: it is the process that works. */
	double user = ticks > 0 ? total->user_ns / ticks : 1;

	result->cpu_ns = cpu.median;
	result->cpu_min_ns = cpu.min;
	result->cpu_max_ns = cpu.max;
	result->user_ns = cpu.median * user;
	result->system_ns = cpu.median * (1 - user);
	result->wall_ns = wall.median;
}

static int measure_drain_rounds(struct bench *bench, struct drain_result *result)
{
	uint32_t rounds = bench->config->rounds;
	double flows = (double)bench->spread.flows * drains_per_round(bench);
	cleanup_free double *cpu = calloc(rounds, sizeof(*cpu));
	cleanup_free double *wall = calloc(rounds, sizeof(*wall));
	struct usage total = { 0 };
	int err = cpu && wall ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < rounds && !err; i++) {
		struct usage before = total;

		err = measure_drain_round(bench, &total);
		cpu[i] = (total.cpu_ns - before.cpu_ns) / flows;
		wall[i] = (total.wall_ns - before.wall_ns) / flows;
	}
	if (!err)
		sum_up_drain(&total, summarize(cpu, rounds),
			     summarize(wall, rounds), result);
	return err;
}

static void print_drain_log(int level, const char *message, void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "netobsctl bench: %s\n", message);
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

static int measure_engine(struct bench *bench, struct drain_result *result)
{
	const struct store_options defaults = { .direction = NETOBS_INGRESS };
	uint64_t rss;
	int err;

	bench->maps_before = memory_maps();
	memory_reset_peak();
	rss = memory_rss();
	err = engine_open(&bench->engine, bench->spread.flows, &defaults);
	if (!err)
		err = spread_aim(&bench->spread,
				 bench->engine.programs.fds[INGRESS]);
	err = err ?: engine_adapt(&bench->engine, &bench->runner);
	err = err ?: open_drain_sink(bench);
	err = err ?: measure_drain_rounds(bench, result);
	netobs_sink_close(TAKE_PTR(bench->engine.sink));
	err = err ?: measure_maps(bench);
	result->rss_peak_bytes = memory_rss_peak() - rss;
	result->kernel_bytes = bench->maps_peak;
	result->total_bytes = result->rss_peak_bytes + result->kernel_bytes;
	engine_close(&bench->engine);
	return err;
}

/* In a process of its own. */
static int measure_flows(const struct config *config, uint32_t flows,
			 struct drain_result *result)
{
	struct bench bench = { .config = config };
	int err = spread_open(&bench.spread, flows);

	if (err)
		return err;
	result->flows = flows;
	err = runner_init(&bench.runner, &bench.spread);
	err = err ?: spread_prepare(&bench.spread, flows, 1, false);
	spread_unmap(&bench.spread);
	err = err ?: measure_engine(&bench, result);
	if (err && err != -EINTR)
		fprintf(stderr, "netobsctl bench: drain of %u flows: %s\n",
			flows, strerror(-err));
	spread_close(&bench.spread);
	return err;
}

static int fork_and_measure(const struct config *config, uint32_t flows,
			    struct drain_result *result)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(measure_flows(config, flows, result) ? EXIT_FAILED :
							     EXIT_FINE);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status ? -EIO : 0;
}

static int measure_drains(const struct config *config,
			  struct drain_result *results)
{
	struct progress progress;
	double total = 0;
	int err = 0;

	for (uint32_t i = 0; i < config->n_flow_counts; i++)
		total += config->flow_counts[i] + FLOWS_PER_ROUND;
	progress_begin(&progress, total);
	for (uint32_t i = 0; i < config->n_flow_counts && !err; i++) {
		uint32_t flows = config->flow_counts[i];
		char text[32];

		snprintf(text, sizeof(text), "%u flows", flows);
		progress_show(&progress, text);
		err = fork_and_measure(config, flows, &results[i]);
		progress_add(&progress, flows + FLOWS_PER_ROUND);
	}
	progress_clear(&progress);
	return err;
}

static void print_drain_table(const struct report *report)
{
	const struct drain_result *results = report->rows;
	const struct config *config = report->user;

	printf("ns per flow to drain the kernel's store into records%s%s, medians of %u rounds\n",
	       config->sink ? " and write them to " : "", config->sink ?: "",
	       report->rounds);
	report_print_machine();
	printf("\n%9s %9s %9s %9s %9s %13s %13s %13s\n", "flows", "user",
	       "system", "CPU", "wall", "process MiB", "kernel MiB", "total MiB");
	for (uint32_t i = 0; i < report->n; i++) {
		const struct drain_result *r = &results[i];

		printf("%9u %9.0f %9.0f %9.0f %9.0f %13.1f %13.1f %13.1f\n",
		       r->flows, r->user_ns, r->system_ns, r->cpu_ns,
		       r->wall_ns, (double)r->rss_peak_bytes / MIB,
		       (double)r->kernel_bytes / MIB,
		       (double)r->total_bytes / MIB);
	}
}

int drain_run(const struct config *config)
{
	size_t size = config->n_flow_counts * sizeof(struct drain_result);
	/* Shared with child processes. */
	struct drain_result *results = mmap(NULL, size, PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct report report = {
		.rounds = config->rounds,
		.fields = drain_fields,
		.rows = results,
		.row_size = sizeof(*results),
		.n = config->n_flow_counts,
		.print_table = print_drain_table,
		.user = config,
	};
	int err;

	if (results == MAP_FAILED)
		return -errno;
	err = measure_drains(config, results);
	err = err ?: report_print(&report, config->output == OUTPUT_JSON);
	munmap(results, size);
	return err;
}
