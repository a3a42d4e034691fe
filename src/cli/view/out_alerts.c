/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts as a table: a line each. */
#include <stdio.h>
#include <string.h>

#include <netobs/alert.h>

#include "service/text/human.h"
#include "row_table.h"

enum { CELL = 64 };

enum {
	ALERTS_TIME,
	ALERTS_CLIENT,
	ALERTS_SERVER,
	ALERTS_WAY,
	ALERTS_METRIC,
	ALERTS_VALUE,
	ALERTS_OVER,
	ALERTS_WHERE,
	ALERTS_RULE,
	ALERTS_COLUMNS
};

/* Ends with ports have the width of IPv4. @leave_at: as in columns.def. */
static const struct column alerts_columns[ALERTS_COLUMNS] = {
	{ ALERTS_TIME, "TIME", false, 0, 0, 12, 0 },
	{ ALERTS_CLIENT, "CLIENT", false, 0, 12, 21, 0 },
	{ ALERTS_SERVER, "SERVER", false, 0, 12, 21, 0 },
	{ ALERTS_WAY, "WAY", false, 3, 0, 9, 0 },
	{ ALERTS_METRIC, "METRIC", false, 0, 0, 11, 0 },
	{ ALERTS_VALUE, "VALUE", true, 0, 0, 9, 0 },
	{ ALERTS_OVER, "OVER", true, 2, 0, 9, 0 },
	{ ALERTS_WHERE, "SEEN AT", false, 1, 0, 15, 0 },
	{ ALERTS_RULE, "RULE", false, 0, 4, 16, 0 },
};

static int open_table(struct output *output)
{
	return row_table_open(output, alerts_columns, ALERTS_COLUMNS);
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

static void rule_text(char *buf, size_t size, const struct netobs_alert *alert)
{
	int len = snprintf(buf, size, "%s%s%s", alert->name,
			   *alert->name ? ": " : "", alert->rule);

	if (alert->record.has & NETOBS_ALERT_HAS_PROCESS)
		snprintf(buf + len, size - (size_t)len, "  [%.15s %u]",
			 alert->process, alert->pid);
	human_clean(buf);
}

static void write_row(struct output *output, const struct netobs_record *record)
{
	const struct netobs_alert *alert = (const void *)record;
	char rule[sizeof(alert->name) + sizeof(alert->rule) + CELL];
	struct cells cells;

	for (size_t i = 0; i < ALERTS_COLUMNS; i++)
		cells.text[i] = cells.buf[i];
	human_time(cells.buf[ALERTS_TIME], CELL, record->time_ns);
	human_address(cells.buf[ALERTS_CLIENT], CELL, alert->client,
		      alert->client_port);
	human_address(cells.buf[ALERTS_SERVER], CELL, alert->server,
		      alert->server_port);
	snprintf(cells.buf[ALERTS_WAY], CELL, "%s",
		 alert->way == NETOBS_ALERT_TO_SERVER ? "to server" :
							"to client");
	snprintf(cells.buf[ALERTS_METRIC], CELL, "%s",
		 netobs_alert_metric_name(alert->metric) ?: "-");
	amount(cells.buf[ALERTS_VALUE], CELL, alert->metric, alert->value);
	amount(cells.buf[ALERTS_OVER], CELL, alert->metric, alert->threshold);
	snprintf(cells.buf[ALERTS_WHERE], CELL, "%s",
		 *alert->interface ? alert->interface : "-");
	rule_text(rule, sizeof(rule), alert);
	cells.text[ALERTS_RULE] = rule;
	row_table_write(output, &cells);
}

const struct output_kind output_alerts = {
	.has_stream = true,
	.open = open_table,
	.record = write_row,
	.close = row_table_close,
};
