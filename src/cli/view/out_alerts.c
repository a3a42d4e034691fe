/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts as a table: a line each. */
#include <stdio.h>

#include <netobs/alert.h>

#include "base/util.h"
#include "service/text/human.h"
#include "row_table.h"

/* In the unit of the metric. */
static void put_amount(char *buf, size_t size, unsigned int metric, uint64_t value)
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

static void put_rule(char *buf, size_t size, const struct netobs_alert *alert)
{
	int len = snprintf(buf, size, "%s%s%s", alert->name,
			   *alert->name ? ": " : "", alert->rule);

	if (alert->record.has & NETOBS_ALERT_HAS_PROCESS)
		snprintf(buf + len, size - (size_t)len, "  [%.15s %u]",
			 alert->process, alert->pid);
	human_clean(buf);
}

/* As row.h has it. Ends with ports have the width of IPv4. leave: as in columns.def. */
#define ALERTS_COLUMNS(_, type)                                               \
	_(type, TIME, "TIME", left, 0, 0, 12,                                 \
	  human_time(buf, size, row->record.time_ns))                         \
	_(type, CLIENT, "CLIENT", left, 0, 12, 21,                            \
	  human_address(buf, size, row->client, row->client_port))            \
	_(type, SERVER, "SERVER", left, 0, 12, 21,                            \
	  human_address(buf, size, row->server, row->server_port))            \
	_(type, WAY, "WAY", left, 3, 0, 9,                                    \
	  snprintf(buf, size, "to %s",                                        \
		   row->way == NETOBS_ALERT_TO_SERVER ? "server" : "client")) \
	_(type, METRIC, "METRIC", left, 0, 0, 11,                             \
	  snprintf(buf, size, "%s",                                           \
		   netobs_alert_metric_name(row->metric) ?: "-"))             \
	_(type, VALUE, "VALUE", right, 0, 0, 9,                               \
	  put_amount(buf, size, row->metric, row->value))                     \
	_(type, OVER, "OVER", right, 2, 0, 9,                                 \
	  put_amount(buf, size, row->metric, row->threshold))                 \
	_(type, WHERE, "SEEN AT", left, 1, 0, 15,                             \
	  snprintf(buf, size, "%s", *row->interface ? row->interface : "-"))  \
	_(type, RULE, "RULE", left, 0, 4, 16, put_rule(buf, size, row))

/* clang-format off */
ALERTS_COLUMNS(TABLE_TEXT, struct netobs_alert)

static const struct column columns[] = { ALERTS_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

static int open_table(struct output *output)
{
	return row_table_open(output, columns, ARRAY_SIZE(columns));
}

const struct output_kind output_alerts = {
	.has_stream = true,
	.open = open_table,
	.record = row_table_write,
	.close = row_table_close,
};
