/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * netobs-bench, which is netobsctl bench. A program of its own: it has threads,
 * and looks at what libnetobs.so hides.
 */
#include "datapath.h"
#include "drain.h"
#include "export.h"
#include "file.h"
#include "plot.h"
#include "stop.h"
#include "base/util.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

static int print(const struct config *config, const struct results *results)
{
	if (config->output == OUTPUT_JSON)
		return results_print_json(results, stdout);
	return results_print_table(results, stdout);
}

static int write_csv(const struct results *results, int fd)
{
	FILE *stream = fdopen(dup(fd), "w");
	int err;

	if (!stream)
		return -errno;
	err = results_print_csv(results, stream);
	return fclose(stream) ? -errno : err;
}

static int run_datapath(const struct config *config, struct file *csv,
			struct file *plot)
{
	struct results results = { 0 };
	int err = datapath_run(config, &results);

	err = err ?: print(config, &results);
	err = err ?: file_write(csv, &results, write_csv);
	err = err ?: file_write(plot, &results, plot_draw);
	results_clear(&results);
	return err;
}

static int open_and_run_datapath(const struct config *config)
{
	struct file csv, plot;
	int err = file_open(&csv, config->csv_path);

	if (!err) {
		err = file_open(&plot, config->plot_path);
		err = err ?: run_datapath(config, &csv, &plot);
		file_close(&plot);
	}
	file_close(&csv);
	return err;
}

static int (*const benches[])(const struct config *config) = {
	[BENCH_DATAPATH] = open_and_run_datapath,
	[BENCH_DRAIN] = drain_run,
	[BENCH_EXPORT] = export_run,
};

int main(int argc, char **argv)
{
	struct config config;
	int err;

	switch (config_parse(argc, argv, &config)) {
	case ARGS_RUN:
		break;
	case ARGS_HELP:
		return EXIT_FINE;
	case ARGS_WRONG:
		return EXIT_USAGE;
	}
	if (config.plot_path && plot_check() < 0) {
		config_clear(&config);
		return EXIT_FAILED;
	}
	libbpf_set_print(NULL);
	stop_catch();
	err = benches[config.bench](&config);
	config_clear(&config);
	if (fflush(stdout) && errno != EPIPE) {
		fprintf(stderr, "netobsctl bench: standard output: %s\n",
			strerror(errno));
		return EXIT_FAILED;
	}
	if (err == -EINVAL && config.bench == BENCH_EXPORT)
		return EXIT_USAGE; /* a sink's spec is wrong */
	return err ? EXIT_FAILED : EXIT_FINE;
}
