/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/json.h"
#include "service/options/conn_stats.h"

enum { RULE_JSON_MAX = 6 * 4096 + 256 }; /* all of an expression escaped */

/* @rule: NULL: the default */
static void print_rule_json(const char *before, const struct rules *rules,
			    const struct netobs_rule *rule,
			    const struct netobs_count *count,
			    const struct netobs_count *sampled_out)
{
	char text[RULE_JSON_MAX];
	struct json json;

	json_begin(&json, text, sizeof(text));
	rules_json(&json,
		   rules_action(rule ? rule->action : rules->default_action),
		   rule ? rule->filter : NULL, rule, count, sampled_out);
	if (json_end(&json) > 0)
		fprintf(stderr, "%s%s", before, text);
}

/* Rules are in the order of the file, the default last. */
static void print_rules_json(const struct flows_request *request,
			     const struct netobs *ctx)
{
	const struct rules *rules = &request->config.rules;
	struct netobs_count count, out;

	fputs(",\"rules\":[", stderr);
	for (uint32_t i = 0; i <= rules->n; i++)
		if (!netobs_rule_count_get(ctx, i, &count) &&
		    !netobs_rule_sampled_out_get(ctx, i, &out))
			print_rule_json(i ? "," : "", rules,
					i < rules->n ? &rules->list[i] : NULL,
					&count, &out);
	fputs("]", stderr);
	if (!netobs_rule_count_get(ctx, rules->n + 1, &count) && count.packets)
		fprintf(stderr,
			",\"replaced_rules\":{\"packets\":%" PRIu64
			",\"bytes\":%" PRIu64 "}",
			count.packets, count.bytes);
}

static void print_connections_json(const struct netobs *ctx)
{
	char text[1024];
	struct json json;
	int len;

	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	conn_stats_json(&json, ctx);
	json_close(&json, '}');
	len = json_end(&json);
	if (len > (int)strlen("{}"))
		fprintf(stderr, ",%.*s", len - 2, text + 1);
}

/* The library's object, and in it more members: what became of the records, and the rules. */
void flows_print_stats(const struct flows_request *request,
		       const struct netobs *ctx)
{
	NETOBS_OPTS(netobs_stats, stats);
	const char *before = "";
	char text[4096];
	int len = netobs_stats_get(ctx, &stats) ?:
			  netobs_stats_json(&stats, text, sizeof(text));

	if (len <= 0)
		return;
	fprintf(stderr, "%.*s,\"sinks\":[", len - 1, text);
	for (size_t i = 0; i < request->outputs.n; i++) {
		if (!request->outputs.list[i].stats)
			continue;
		fprintf(stderr, "%s%s", before, request->outputs.list[i].stats);
		before = ",";
	}
	fputs("]", stderr);
	if (request->config.rules_path)
		print_rules_json(request, ctx);
	print_connections_json(ctx);
	fputs("}\n", stderr);
}

void flows_print_alerts(const struct flows_request *request,
			const struct netobs *ctx)
{
	char text[NETOBS_ALERT_RULES_MAX * 1024];
	uint64_t lost = 0;
	struct json json;

	for (uint32_t i = 0; i < request->config.alerts.n; i++) {
		struct netobs_alert_counts counts = { .sz = sizeof(counts) };

		if (netobs_alert_counts_get(ctx, i, &counts) == 0)
			lost += counts.lost;
	}
	if (lost)
		fprintf(stderr,
			"netobsctl alerts: %" PRIu64
			" alerts were lost, because they were not read fast enough\n",
			lost);
	if (!request->stats)
		return;
	json_begin(&json, text, sizeof(text));
	json_open(&json, '{');
	json_key(&json, "alerts");
	alert_rules_json(&request->config.alerts, ctx, &json);
	json_close(&json, '}');
	if (json_end(&json) > 0)
		fprintf(stderr, "%s\n", text);
}
