/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "config.h"

#include "cli/value.h"
#include "util.h"

#include <string.h>

static const char *const outputs[] = { "table", "json", NULL };
static const char *const distributions[] = { "uniform", "zipf", NULL };
static const char *const cpu_choices[] = { "1", "all", NULL };

static const struct args_option options[] = {
	{ 'o', "output", ARGS_CHOICE, offsetof(struct config, output),
	  "table|json", outputs, "for people (default) or for programs" },
	{ 0, "flows", ARGS_STRING, offsetof(struct config, flows), "LIST", NULL,
	  "numbers of flows, such as 1,1024" },
	{ 0, "rounds", ARGS_NUMBER32, offsetof(struct config, rounds), "N",
	  NULL, "measure each case N times (5; with --quick 3)" },
	{ 0, "quick", ARGS_SWITCH, offsetof(struct config, quick), NULL, NULL,
	  "the cases that matter most, in less than 20 s" },
	{ 0, "stores", ARGS_STRING, offsetof(struct config, stores), "LIST",
	  NULL, "datapath: only these, such as netobs,percpu_hash" },
	{ 0, "distribution", ARGS_CHOICE, offsetof(struct config, distribution),
	  "uniform|zipf", distributions,
	  "datapath: only this way to pick each packet's flow" },
	{ 0, "cpus", ARGS_CHOICE, offsetof(struct config, cpus), "1|all",
	  cpu_choices, "datapath: only one CPU, or only all at once" },
	{ 0, "csv", ARGS_STRING, offsetof(struct config, csv_path), "FILE",
	  NULL, "datapath: write the results to FILE as well" },
	{ 0, "plot", ARGS_STRING, offsetof(struct config, plot_path), "FILE",
	  NULL, "datapath: draw them to FILE, an SVG; needs gnuplot" },
	{ 0 }
};

static const struct args_command command = {
	.name = "bench",
	.operands = "[datapath|drain]",
	.summary = "Measure on this host what netobs costs; no interface is touched",
	.options = options,
	.positional =
		"the benchmarks are datapath and drain, named before the options",
	.notes = "datapath  ns per packet, of netobs and of other designs of a flow store:\n"
		 "          empty, parse, ringbuf, hash, hash_spinlock, percpu_hash, array,\n"
		 "          percpu_array, netobs (the default benchmark)\n"
		 "drain     ns per flow from the kernel's table to records, and memory\n",
};

static int find_design(const char *name, size_t len)
{
	for (int i = 0; i < DESIGNS; i++) {
		if (strlen(designs[i]->name) == len &&
		    !memcmp(designs[i]->name, name, len))
			return i;
	}
	return -1;
}

/* Everything is compared with the empty program. */
static bool parse_stores(struct config *config)
{
	const char *name = config->stores;

	config->design_mask = 1 << DESIGN_EMPTY;
	while (name) {
		size_t len = strcspn(name, ",");
		int design = find_design(name, len);

		if (design < 0) {
			args_complain(&command, "--stores: '%.*s' is not a store",
				      (int)len, name);
			return false;
		}
		config->design_mask |= 1U << design;
		name = name[len] ? name + len + 1 : NULL;
	}
	return true;
}

static bool parse_flow_count(const char *text, size_t len, uint32_t *ret_count)
{
	char number[16];
	uint64_t count;

	if (len >= sizeof(number))
		return false;
	memcpy(number, text, len);
	number[len] = '\0';
	if (value_number(number, FLOWS_MAX, &count) < 0)
		return false;
	*ret_count = count;
	return true;
}

static bool parse_flows(struct config *config)
{
	const char *text = config->flows;

	config->n_flow_counts = 0;
	while (text) {
		size_t len = strcspn(text, ",");
		uint32_t n = config->n_flow_counts;

		if (n == FLOW_COUNTS_MAX) {
			args_complain(&command, "--flows: at most %d numbers",
				      FLOW_COUNTS_MAX);
			return false;
		}
		if (!parse_flow_count(text, len, &config->flow_counts[n])) {
			args_complain(
				&command,
				"--flows: '%.*s' is not a number from 1 to %d",
				(int)len, text, FLOWS_MAX);
			return false;
		}
		config->n_flow_counts++;
		text = text[len] ? text + len + 1 : NULL;
	}
	return true;
}

/* The option, if any, that this benchmark does not have. */
static const char *find_foreign(const struct config *config)
{
	if (config->bench == BENCH_DATAPATH)
		return NULL;
	if (config->stores)
		return "--stores";
	if (config->distribution != CHOICE_ALL)
		return "--distribution";
	if (config->cpus != CHOICE_ALL)
		return "--cpus";
	if (config->csv_path)
		return "--csv";
	return config->plot_path ? "--plot" : NULL;
}

static void set_defaults(struct config *config)
{
	static const uint32_t datapath[] = { 1, 64, 1024, 16384, 131072, 1048576 };
	static const uint32_t drain[] = { 1000, 100000, 1000000 };
	bool is_drain = config->bench == BENCH_DRAIN;

	config->design_mask = (1U << DESIGNS) - 1;
	config->n_flow_counts = is_drain ? ARRAY_SIZE(drain) :
					   ARRAY_SIZE(datapath);
	memcpy(config->flow_counts, is_drain ? drain : datapath,
	       config->n_flow_counts * sizeof(uint32_t));
	if (!config->rounds)
		config->rounds = config->quick ? 3 : 5;
}

static bool understand(struct config *config)
{
	const char *foreign = find_foreign(config);

	if (foreign) {
		args_complain(&command, "drain has no option %s", foreign);
		return false;
	}
	set_defaults(config);
	return (!config->stores || parse_stores(config)) &&
	       (!config->flows || parse_flows(config));
}

enum args_result config_parse(int argc, char **argv, struct config *ret_config)
{
	struct config config = { .distribution = CHOICE_ALL, .cpus = CHOICE_ALL };
	bool is_named = argc > 1 && (!strcmp(argv[1], "datapath") ||
				     !strcmp(argv[1], "drain"));
	enum args_result result;

	if (is_named && !strcmp(argv[1], "drain"))
		config.bench = BENCH_DRAIN;
	result = args_parse(&command, argc - is_named, argv + is_named, &config);
	if (result == ARGS_RUN && !understand(&config))
		result = ARGS_WRONG;
	if (result == ARGS_RUN)
		*ret_config = config;
	return result;
}
