/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "config.h"

#include "design.h"
#include "bench.h"
#include "base/util.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define QUICK_WIDTH 0.1

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
		"trace     ns per switch of threads, while the tracer watches some\n",
};

/* ---- Values ------------------------------------------------------------------ */

/* Names of designs, separated by commas; unless there are none. */
static bool parse_stores(struct config *config)
{
	const char *list = config->stores;

	if (list)
		config->design_mask =
			1U << DESIGN_EMPTY; /* all are compared with it */
	while (list) {
		size_t len = strcspn(list, ",");
		int i = 0;

		while (i < DESIGNS && (strlen(design_names[i]) != len ||
				       memcmp(design_names[i], list, len)))
			i++;
		if (i == DESIGNS) {
			args_complain(&command, "--stores: there is no '%.*s'",
				      (int)len, list);
			return false;
		}
		config->design_mask |= 1U << i;
		list = list[len] ? list + len + 1 : NULL;
	}
	return true;
}

/* Numbers separated by commas; unless @text is NULL. */
static bool parse_flows(struct config *config)
{
	const char *text = config->flows;
	char number[16];
	uint64_t count;

	if (text)
		config->n_flow_counts = 0;
	while (text) {
		size_t len = strcspn(text, ",");

		if (config->n_flow_counts == FLOW_COUNTS_MAX) {
			args_complain(&command, "--flows: at most %d numbers",
				      FLOW_COUNTS_MAX);
			return false;
		}
		snprintf(number, sizeof(number), "%.*s", (int)len, text);
		if (len >= sizeof(number) ||
		    value_parse(VALUE_NUMBER, number, 1, FLOWS_MAX, &count) < 0) {
			args_complain(
				&command,
				"--flows: '%.*s' is not a number from 1 to %d",
				(int)len, text, FLOWS_MAX);
			return false;
		}
		config->flow_counts[config->n_flow_counts++] = count;
		text = text[len] ? text + len + 1 : NULL;
	}
	return true;
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

static void set_defaults(struct config *config, bool compares)
{
	static const uint32_t datapath[] = { 1, 1000, 10000, 100000, 1000000 },
			      quick[] = { 1, 1000, 100000 },
			      drain[] = { 1000, 100000, 1000000 };
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
	if (!config->rounds && compares)
		config->rounds = config->quick ? 100 : 400;
	if (!config->rounds && config->bench == BENCH_TRACE)
		config->rounds = config->quick ? 5 : 40;
	if (!config->rounds)
		config->rounds = config->quick ? 3 : 5;
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
	set_defaults(config, compares);
	if (compares && config->rounds < INTERVAL_LEAST) {
		args_complain(&command,
			      "--rounds: fewer than %d say nothing about a ratio",
			      INTERVAL_LEAST);
		return false;
	}
	return parse_width(config) && parse_flows(config) && parse_stores(config);
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
