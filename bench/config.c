/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "config.h"

#include "api/context.h"
#include "base/value.h"
#include "base/util.h"
#include "filter/filter.h"
#include "interval.h"
#include "service/options/rules.h"

#include <stdio.h>
#include <string.h>

#define QUICK_WIDTH 0.1

static const char *const direction_names[] = {
	[INGRESS] = "ingress", [EGRESS] = "egress", NULL
};

static const char *const benches[] = { "datapath", "drain", "export", NULL };

static const struct args_option options[] = {
#define SELECT_bench OPTION_SELECTED
#define OPTIONS_STRUCT struct config
#include "service/options/option_rows.h"
};

static const struct args_command command = {
	.name = "bench",
	.operands = "[datapath|drain|export [SPEC...]]",
	.summary = "Measure what netobs costs on this host, without using its interfaces",
	.options = options,
	.positional =
		"the benchmarks are datapath, drain and export; name one before the options",
	.operand_list = offsetof(struct config, specs),
	.notes =
		"datapath  ns per packet, for netobs and other designs of a flow store:\n"
		"          empty, ringbuf, hash, hash_spinlock, percpu_hash, netobs. This is the\n"
		"          default. With --live, the rate of a flood between two namespaces, as a\n"
		"          ratio to that of empty.\n"
		"drain     ns per flow from the kernel's table to records, and memory use\n"
		"export    records/s through sinks, such as 'json:/dev/null' or\n"
		"          'kafka://HOST/TOPIC'; by default those that need no collector\n",
};

static void refuse_name(const char *option, const char *name, size_t len,
			const char *const *names)
{
	char all[256] = "";

	for (size_t used = 0; *names && used < sizeof(all); names++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
					 used ? ", " : "", *names);
	args_complain(&command, "%s: '%.*s' is none of %s", option, (int)len,
		      name, all);
}

/* Names separated by commas, as a mask; unless @list is NULL. */
static bool parse_names(const char *option, const char *list,
			const char *const *names, uint32_t *mask)
{
	if (list)
		*mask = 0;
	while (list) {
		size_t len = strcspn(list, ",");
		int i = 0;

		while (names[i] &&
		       (strlen(names[i]) != len || memcmp(names[i], list, len)))
			i++;
		if (!names[i]) {
			refuse_name(option, list, len, names);
			return false;
		}
		*mask |= 1U << i;
		list = list[len] ? list + len + 1 : NULL;
	}
	return true;
}

static bool parse_stores(struct config *config)
{
	const char *names[DESIGNS + 1] = { NULL };

	for (int i = 0; i < DESIGNS; i++)
		names[i] = designs[i].name;
	if (!parse_names("--stores", config->stores, names, &config->design_mask))
		return false;
	/* Everything is compared with the empty program. */
	config->design_mask |= 1U << DESIGN_EMPTY;
	if (!(config->design_mask & 1U << DESIGN_FILTERED) ||
	    config->expression || config->rules_path)
		return true;
	args_complain(&command, "--stores: 'filtered' needs --filter or --rules");
	return false;
}

static void keep_message(int level, const char *message, void *user)
{
	(void)level;
	snprintf(user, FILTER_ERROR_MAX, "%s", message);
}

/* As a context does. Its messages begin with "filter:" or "rules". */
static bool make_filter(struct config *config, const struct rules *rules)
{
	char message[FILTER_ERROR_MAX] = "", place[FILTER_ERROR_MAX];
	const struct log log = { .write = keep_message, .user = message };
	const struct netobs_opts opts = {
		.sz = sizeof(opts),
		.filter = config->expression,
		.rules = rules->n ? rules->list : NULL,
		.n_rules = rules->n,
		.default_action = rules->default_action,
	};

	if (!context_make_filter(&opts, &log, &config->filter))
		return true;
	if (rules_place(rules, message, place, sizeof(place)))
		args_complain(&command, "--rules: %s", place);
	else
		args_complain(&command, "--%s", message);
	return false;
}

static bool parse_filter(struct config *config)
{
	struct rules rules = { 0 };
	char why[FILTER_ERROR_MAX];
	bool is_good;

	if (!config->expression && !config->rules_path)
		return true;
	config->design_mask |= 1U << DESIGN_FILTERED;
	if (config->expression && config->rules_path) {
		args_complain(&command,
			      "--rules: it cannot be combined with --filter");
		return false;
	}
	if (config->rules_path &&
	    !rules_read(config->rules_path, true, &rules, why, sizeof(why))) {
		args_complain(&command, "--rules: %s", why);
		return false;
	}
	is_good = make_filter(config, &rules);
	rules_clear(&rules);
	return is_good;
}

static bool parse_flow_count(const char *text, size_t len, uint32_t *ret_count)
{
	char number[16];
	uint64_t count;

	if (len >= sizeof(number))
		return false;
	memcpy(number, text, len);
	number[len] = '\0';
	if (value_parse(VALUE_NUMBER, number, 1, FLOWS_MAX, &count) < 0)
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

/* Of @compares: a ratio needs some rounds. */
static bool check_rounds(const struct config *config, bool compares)
{
	if (!compares || config->rounds >= INTERVAL_LEAST)
		return true;
	args_complain(&command,
		      "--rounds: fewer than %d say nothing about a ratio",
		      INTERVAL_LEAST);
	return false;
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

/* The option, if any, that this benchmark does not have. */
static const char *find_foreign(const struct config *config)
{
	const bool is_datapath = config->bench == BENCH_DATAPATH,
		   is_export = config->bench == BENCH_EXPORT;
	const struct {
		const char *name;
		bool is_given, is_known;
	} rules[] = {
		{ "--flows", config->flows, !is_export },
		{ "--records", config->records, is_export },
		{ "--width", config->width_text, is_datapath || is_export },
		{ "--sink", config->sink, config->bench == BENCH_DRAIN },
		{ "--stores", config->stores, is_datapath },
		{ "--traffic", config->traffic, is_datapath },
		{ "--direction", config->directions, is_datapath },
		{ "--live", config->is_live, is_datapath },
		{ "--filter", config->expression, is_datapath },
		{ "--rules", config->rules_path, is_datapath },
		{ "--distribution", config->distribution != CHOICE_ALL,
		  is_datapath },
		{ "--cpus", config->cpus != CHOICE_ALL, is_datapath },
		{ "--timestamps", config->timestamps != CHOICE_ALL, is_datapath },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].is_given && !rules[i].is_known)
			return rules[i].name;
	return NULL;
}

static void set_flows(struct config *config, const uint32_t *flows, uint32_t n)
{
	config->n_flow_counts = n;
	memcpy(config->flow_counts, flows, n * sizeof(*flows));
}

static void set_live_defaults(struct config *config)
{
	static const uint32_t flows[] = { 1, 1000, 10000, 100000, 1000000 };
	static const uint32_t quick[] = { 1, 1000, 100000 };

	config->design_mask = 1U << DESIGN_EMPTY | 1U << DESIGN_EMPTY2 |
			      1U << DESIGN_FLOOR | 1U << DESIGN_PERCPU_HASH |
			      1U << DESIGN_NETOBS;
	config->direction_mask = 1U << EGRESS;
	if (config->quick)
		set_flows(config, quick, ARRAY_SIZE(quick));
	else
		set_flows(config, flows, ARRAY_SIZE(flows));
	if (config->cpus == CHOICE_ALL)
		config->cpus = 0;
}

static void set_defaults(struct config *config, bool compares)
{
	static const uint32_t datapath[] = { 1, 64, 1024, 16384, 131072, 1048576 };
	static const uint32_t drain[] = { 1000, 100000, 1000000 };

	config->traffic_mask = 1U << TRAFFIC_UDP4;
	config->direction_mask = 1U << INGRESS;
	/* All but those that are asked for by name or by an option. */
	config->design_mask = ((1U << DESIGNS) - 1) & ~(1U << DESIGN_EMPTY2) &
			      ~(1U << DESIGN_FLOOR) & ~(1U << DESIGN_OVERFLOW) &
			      ~(1U << DESIGN_FILTERED) &
			      ((1U << DESIGN_RTT) - 1);
	if (config->bench == BENCH_DRAIN)
		set_flows(config, drain, ARRAY_SIZE(drain));
	else
		set_flows(config, datapath, ARRAY_SIZE(datapath));
	if (config->is_live)
		set_live_defaults(config);
	if (!config->records)
		config->records = config->quick ? 20000 : 100000;
	config->width = config->quick ? QUICK_WIDTH : INTERVAL_WIDTH;
	if (!config->rounds && compares)
		config->rounds = config->quick ? 100 : 400;
	if (!config->rounds)
		config->rounds = config->quick ? 3 : 5;
}

static bool config_complete(struct config *config)
{
	const char *foreign = find_foreign(config);
	bool compares = config->bench != BENCH_DRAIN;

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
	return check_rounds(config, compares) && parse_width(config) &&
	       (!config->stores || parse_stores(config)) &&
	       parse_names("--traffic", config->traffic, traffic_names,
			   &config->traffic_mask) &&
	       parse_names("--direction", config->directions, direction_names,
			   &config->direction_mask) &&
	       parse_filter(config) && (!config->flows || parse_flows(config));
}

enum args_result config_parse(int argc, char **argv, struct config *ret_config)
{
	struct config config = { .distribution = CHOICE_ALL,
				 .cpus = CHOICE_ALL,
				 .timestamps = CHOICE_ALL };
	int bench = argc > 1 ? value_choice(benches, argv[1]) : -1;
	bool is_named = bench >= 0;
	enum args_result result;

	if (is_named)
		config.bench = bench;
	result = args_parse(&command, argc - is_named, argv + is_named, &config);
	if (result == ARGS_RUN && !config_complete(&config))
		result = ARGS_WRONG;
	if (result == ARGS_RUN)
		*ret_config = config;
	else
		config_clear(&config);
	return result;
}

void config_clear(struct config *config)
{
	filter_free(TAKE_PTR(config->filter));
	args_list_clear(&config->specs);
}
