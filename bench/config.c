/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "config.h"

#include "design.h"
#include "bench.h"
#include "base/util.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define QUICK_WIDTH 0.1

enum { PART_MAX = 32 }; /* of a list */

static const char *const benches[] = { "datapath", "drain", "export", "trace",
				       NULL };

static const struct args_option options[] = {
#define SELECT_bench OPTION_SELECTED
#define OPTIONS_STRUCT struct config
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "bench",
	.operands = "[datapath|drain|export [SPEC...]|trace]",
	.summary = "Measure what netobs costs on this host, without using its interfaces",
	.options = options,
	.positional =
		"the benchmarks are datapath, drain, export and trace; name one before the options",
	.operand_list = offsetof(struct config, specs),
	.notes =
		"datapath  ns per packet, for netobs, an empty program and the store of the\n"
		"          published study. This is the default. With --live, the rate of a flood\n"
		"          between two namespaces, as a ratio to that of empty.\n"
		"drain     ns per flow from the kernel's table to records, and memory use\n"
		"export    records/s through sinks, such as 'json:/dev/null' or\n"
		"          'kafka://HOST/TOPIC'; by default those that need no collector\n"
		"trace     ns per switch of threads, while the tracer watches some, and per\n"
		"          message of a connection, while it traces another one\n",
};

/* ---- Values ------------------------------------------------------------------ */

/* @take: each part of @list, which commas separate; NULL: there is none. */
static bool parse_list(struct config *config, const char *list,
		       bool (*take)(struct config *config, const char *part))
{
	char part[PART_MAX];

	while (list) {
		size_t len = strcspn(list, ",");

		snprintf(part, sizeof(part), "%.*s", (int)len, list);
		if (!take(config, part))
			return false;
		list = list[len] ? list + len + 1 : NULL;
	}
	return true;
}

static bool take_store(struct config *config, const char *name)
{
	const int design = value_choice(design_names, name);

	if (design >= 0)
		config->design_mask |= 1U << design;
	else
		args_complain(&command, "--stores: there is no '%s'", name);
	return design >= 0;
}

static bool take_flow_count(struct config *config, const char *number)
{
	uint64_t count;

	if (config->n_flow_counts == FLOW_COUNTS_MAX) {
		args_complain(&command, "--flows: at most %d numbers",
			      FLOW_COUNTS_MAX);
		return false;
	}
	if (value_parse(VALUE_NUMBER, number, 1, FLOWS_MAX, &count) < 0) {
		args_complain(&command,
			      "--flows: '%s' is not a number from 1 to %d",
			      number, FLOWS_MAX);
		return false;
	}
	config->flow_counts[config->n_flow_counts++] = count;
	return true;
}

static bool parse_lists(struct config *config)
{
	if (config->stores)
		config->design_mask =
			1U << DESIGN_EMPTY; /* all are compared with it */
	if (config->flows)
		config->n_flow_counts = 0;
	return parse_list(config, config->flows, take_flow_count) &&
	       parse_list(config, config->stores, take_store);
}

static bool parse_width(struct config *config)
{
	char *end;

	if (!config->width_text)
		return true;
	config->width = strtod(config->width_text, &end);
	if (end != config->width_text && !*end && config->width > 0)
		return true;
	args_complain(&command, "--width: '%s' is not a positive number",
		      config->width_text);
	return false;
}

/* ---- All of them ------------------------------------------------------------- */

/* The option, if any, that this benchmark does not have. */
static const char *find_foreign(const struct config *config)
{
	enum {
		DATAPATH = 1 << BENCH_DATAPATH,
		DRAIN = 1 << BENCH_DRAIN,
		EXPORT = 1 << BENCH_EXPORT
	};
	const struct {
		const char *name;
		bool is_given;
		unsigned int benches;
	} rules[] = {
		{ "--flows", config->flows, DATAPATH | DRAIN },
		{ "--records", config->records, EXPORT },
		{ "--width", config->width_text, DATAPATH | EXPORT },
		{ "--sink", config->sink, DRAIN },
		{ "--stores", config->stores, DATAPATH },
		{ "--live", config->is_live, DATAPATH },
		{ "--distribution", config->distribution != CHOICE_ALL, DATAPATH },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].is_given && !(rules[i].benches & 1U << config->bench))
			return rules[i].name;
	return NULL;
}

static void set_defaults(struct config *config)
{
	static const uint32_t datapath[] = { 1, 1000, 10000, 100000, 1000000 },
			      quick[] = { 1, 1000, 100000 },
			      drain[] = { 1000, 100000, 1000000 };
	static const uint32_t rounds[][2] = { [BENCH_DATAPATH] = { 400, 100 },
					      [BENCH_DRAIN] = { 5, 3 },
					      [BENCH_EXPORT] = { 400, 100 },
					      [BENCH_TRACE] = { 40, 5 } };
	const bool is_short = config->quick || config->bench == BENCH_DRAIN;

	config->design_mask = (1U << (DESIGN_NETOBS + 1)) - 1;
	config->n_flow_counts = is_short ? ARRAY_SIZE(quick) :
					   ARRAY_SIZE(datapath);
	memcpy(config->flow_counts,
	       config->bench == BENCH_DRAIN ? drain :
	       config->quick		    ? quick :
					      datapath,
	       config->n_flow_counts * sizeof(uint32_t));
	if (!config->records)
		config->records = config->quick ? 20000 : 100000;
	config->width = config->quick ? QUICK_WIDTH : INTERVAL_WIDTH;
	if (!config->rounds)
		config->rounds = rounds[config->bench][config->quick];
}

static bool config_complete(struct config *config)
{
	const char *foreign = find_foreign(config);
	bool compares = config->bench == BENCH_DATAPATH ||
			config->bench == BENCH_EXPORT;

	if (foreign) {
		args_complain(&command, "%s has no option %s",
			      benches[config->bench], foreign);
		return false;
	}
	if (config->bench != BENCH_EXPORT && config->specs.n) {
		args_complain(&command, "'%s': %s", config->specs.items[0],
			      command.positional);
		return false;
	}
	set_defaults(config);
	if (compares && config->rounds < INTERVAL_LEAST) {
		args_complain(&command,
			      "--rounds: fewer than %d say nothing about a ratio",
			      INTERVAL_LEAST);
		return false;
	}
	return parse_width(config) && parse_lists(config);
}

enum args_result config_parse(int argc, char **argv, struct config *ret_config)
{
	int bench = argc > 1 ? value_choice(benches, argv[1]) : -1;
	bool is_named = bench >= 0;
	enum args_result result;

	*ret_config = (struct config){ .distribution = CHOICE_ALL,
				       .bench = is_named ? bench : 0 };
	result = args_parse(&command, argc - is_named, argv + is_named,
			    ret_config);
	if (result == ARGS_RUN && !config_complete(ret_config))
		result = ARGS_WRONG;
	return result;
}
