/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts as a table: a line each. */
#include <stdio.h>
#include <string.h>

#include <netobs/alert.h>

#include "cli/common/human.h"
#include "output.h"

enum { CELL = 64 };

#define COLUMNS "%-12s  %-*s  %-*s  %-9s  %-11s  %9s  %9s  %-15s  %s%s\n"

/* Addresses of IPv4 with their ports; longer ones take the room that they need. */
enum { ENDPOINT_WIDTH = 21 };

static int open_table(struct output *output)
{
	stream_print(&output->stream, COLUMNS, "TIME", ENDPOINT_WIDTH, "CLIENT",
		     ENDPOINT_WIDTH, "SERVER", "WAY", "METRIC", "VALUE", "OVER",
		     "SEEN AT", "RULE", "");
	stream_flush(&output->stream);
	return 0;
}

/* In the unit of the metric. */
static void amount(char *buf, size_t size, unsigned int metric, uint64_t value)
{
	const int64_t second_ns = 1000000000;

	switch (metric) {
	case NETOBS_ALERT_RTT:
	case NETOBS_ALERT_APP_LATENCY:
		human_latency(buf, size, value);
		break;
	case NETOBS_ALERT_RETRANSMITS:
		snprintf(buf, size, "%llu.%02llu %%",
			 (unsigned long long)value / 10000,
			 (unsigned long long)value / 100 % 100);
		break;
	default:
		human_rate(buf, size, value / 8, second_ns);
	}
}

static void write_row(struct output *output, const struct netobs_record *record)
{
	const struct netobs_alert *alert = (const void *)record;
	char time[CELL], client[CELL], server[CELL], value[CELL], over[CELL];
	char rule[sizeof(alert->name) + sizeof(alert->rule) + 4];
	char process[CELL] = "";

	human_time(time, sizeof(time), record->time_ns);
	human_address(client, sizeof(client), alert->client, alert->client_port);
	human_address(server, sizeof(server), alert->server, alert->server_port);
	amount(value, sizeof(value), alert->metric, alert->value);
	amount(over, sizeof(over), alert->metric, alert->threshold);
	snprintf(rule, sizeof(rule), "%s%s%s", alert->name,
		 *alert->name ? ": " : "", alert->rule);
	human_clean(rule);
	if (alert->record.has & NETOBS_ALERT_HAS_PROCESS)
		snprintf(process, sizeof(process), "  [%.15s %u]",
			 alert->process, alert->pid);
	human_clean(process);
	stream_print(&output->stream, COLUMNS, time, ENDPOINT_WIDTH, client,
		     ENDPOINT_WIDTH, server,
		     alert->way == NETOBS_ALERT_TO_SERVER ? "to server" :
							    "to client",
		     netobs_alert_metric_name(alert->metric) ?: "-", value, over,
		     *alert->interface ? alert->interface : "-", rule, process);
}

const struct output_kind output_alerts = {
	.has_stream = true,
	.open = open_table,
	.record = write_row,
};
