/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * netobs-bench, which is netobsctl bench. A program of its own: it has threads,
 * and uses what libnetobs.so hides.
 */
#include "bench.h"
#include "config.h"
#include "service/signals.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

enum { EXIT_NOISY = 3 };

static int (*const benches[])(const struct config *config) = {
	[BENCH_DATAPATH] = datapath_run,
	[BENCH_DRAIN] = drain_run,
	[BENCH_EXPORT] = export_run,
	[BENCH_TRACE] = trace_run,
};

/* Benchmarks look at signals_are_stopping(). */
static void note_signal(void *unused)
{
	(void)unused;
}

static int run_bench(const struct config *config)
{
	int err = benches[config->bench](config);

	if (err && signals_are_stopping())
		fputs("netobsctl bench: interrupted\n", stderr);
	if (fflush(stdout) && errno != EPIPE) {
		fprintf(stderr, "netobsctl bench: standard output: %s\n",
			strerror(errno));
		return EXIT_FAILED;
	}
	if (err == -EINVAL && config->bench == BENCH_EXPORT)
		return EXIT_USAGE; /* a sink's spec is wrong */
	if (err == -ERANGE)
		return EXIT_NOISY;
	return err ? EXIT_FAILED : EXIT_FINE;
}

int main(int argc, char **argv)
{
	struct config config;
	enum args_result parsed = config_parse(argc, argv, &config);
	int status = parsed == ARGS_HELP ? EXIT_FINE : EXIT_USAGE;

	if (parsed == ARGS_RUN) {
		libbpf_set_print(NULL);
		signals_catch(note_signal, NULL);
		status = run_bench(&config);
	}
	args_list_clear(&config.specs);
	return status;
}
