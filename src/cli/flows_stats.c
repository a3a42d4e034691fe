/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_config.h"

#include <inttypes.h>
#include <stdio.h>

#include <netobs/netobs.h>

#include "base/json.h"
#include "human.h"

enum { RULE_JSON_MAX = 6 * 4096 + 256 }; /* all of an expression escaped */

static void print_rule_json(const char *before, const char *action,
			    const char *filter, const struct netobs_count *count)
{
	char text[RULE_JSON_MAX];
	struct json json;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	json_key(&json, "action");
	json_string(&json, action);
	if (filter) {
		json_key(&json, "filter");
		json_string(&json, filter);
	}
	json_key_u64(&json, "packets", count->packets);
	json_key_u64(&json, "bytes", count->bytes);
	json_close(&json, '}');
	if (json_end(&json) > 0)
		fprintf(stderr, "%s%s", before, text);
}

/* In the order of the file, the default last. */
static void print_rules_json(const struct flows_config *config,
			     const struct netobs *ctx)
{
	const struct rules *rules = &config->rules;
	struct netobs_count count;

	fputs(",\"rules\":[", stderr);
	for (uint32_t i = 0; i <= rules->n; i++)
		if (!netobs_rule_count_get(ctx, i, &count))
			print_rule_json(
				i ? "," : "",
				rules_action(i < rules->n ?
						     rules->list[i].action :
						     rules->default_action),
				i < rules->n ? rules->list[i].filter : NULL,
				&count);
	fputs("]", stderr);
	if (!netobs_rule_count_get(ctx, rules->n + 1, &count) && count.packets)
		fprintf(stderr,
			",\"replaced_rules\":{\"packets\":%" PRIu64
			",\"bytes\":%" PRIu64 "}",
			count.packets, count.bytes);
}

static void print_stats_text(const struct flows_config *config,
			     const struct netobs *ctx,
			     const struct netobs_stats *stats)
{
	const struct rules *rules = &config->rules;
	struct netobs_count count;

	human_stats(stderr, stats);
	for (uint32_t i = 0;
	     rules->default_action && !netobs_rule_count_get(ctx, i, &count);
	     i++) {
		if (i < rules->n)
			human_rule(stderr, rules_action(rules->list[i].action),
				   rules->list[i].filter, &count);
		else if (i == rules->n)
			human_rule(stderr, rules_action(rules->default_action),
				   "by default", &count);
		else if (count.packets)
			human_rule(stderr, "rules", "that were replaced", &count);
	}
}

/* The library's object, and in it more members: what became of the records, and the rules. */
static void print_stats_json(const struct flows_config *config,
			     const struct netobs *ctx,
			     const struct netobs_stats *stats)
{
	const char *before = "";
	char text[4096];
	int len = netobs_stats_json(stats, text, sizeof(text));

	if (len <= 0)
		return;
	fprintf(stderr, "%.*s,\"sinks\":[", len - 1, text);
	for (size_t i = 0; i < config->n_outputs; i++) {
		if (!config->outputs[i].stats)
			continue;
		fprintf(stderr, "%s%s", before, config->outputs[i].stats);
		before = ",";
	}
	fputs("]", stderr);
	if (config->rules_path)
		print_rules_json(config, ctx);
	fputs("}\n", stderr);
}

void flows_print_stats(const struct flows_config *config, const struct netobs *ctx)
{
	struct netobs_stats stats = { .sz = sizeof(stats) };
	bool is_for_people = true;

	if (netobs_stats_get(ctx, &stats) < 0)
		return;
	for (size_t i = 0; i < config->n_outputs; i++)
		is_for_people &= output_is_for_people(&config->outputs[i]);
	if (is_for_people)
		print_stats_text(config, ctx, &stats);
	else
		print_stats_json(config, ctx, &stats);
}
