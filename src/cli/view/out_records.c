/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Alerts and sessions as tables: a line each. */
#include <stdio.h>

#include <netobs/alert.h>
#include <netobs/session.h>

#include "base/text.h"
#include "base/util.h"
#include "service/text/human.h"
#include "row.h"
#include "view_output.h"

/* ---- Alerts --------------------------------------------------------------------- */

/* Format a value in the unit of its metric. */
static void put_amount(char *buf, size_t size, unsigned int metric, uint64_t value)
{
	const int64_t second_ns = 1000000000;

	switch (metric) {
	case NETOBS_ALERT_RTT:
	case NETOBS_ALERT_APP_LATENCY:
		human_latency(buf, size, value);
		break;
	case NETOBS_ALERT_DROPS:
		snprintf(buf, size, "%llu", (unsigned long long)value);
		break;
	case NETOBS_ALERT_RETRANSMITS:
	case NETOBS_ALERT_DROP_SHARE:
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
	snprintf(buf, size, "%s%s%s", alert->name, *alert->name ? ": " : "",
		 alert->rule);
	if (alert->record.has & NETOBS_ALERT_HAS_PROCESS)
		text_append(buf, size, "  [%.15s %u]", alert->process,
			    alert->pid);
	safe_cell(buf);
}

/*
 * Columns, in the form of row.h. Ends with ports have the width of IPv4. leave: as in columns.def.
 * The rule names its metric.
 */
#define ALERTS_COLUMNS(_, type)                                               \
	_(type, ALERT_TIME, "TIME", left, 0, 0, 12,                           \
	  human_time(buf, size, row->record.time_ns))                         \
	_(type, ALERT_CLIENT, "CLIENT", left, 0, 12, 21,                      \
	  human_address(buf, size, row->client, row->client_port))            \
	_(type, ALERT_SERVER, "SERVER", left, 0, 12, 21,                      \
	  human_address(buf, size, row->server, row->server_port))            \
	_(type, ALERT_WAY, "WAY", left, 3, 0, 9,                              \
	  snprintf(buf, size, "to %s",                                        \
		   row->way == NETOBS_ALERT_TO_SERVER ? "server" : "client")) \
	_(type, ALERT_VALUE, "VALUE", right, 0, 0, 9,                         \
	  put_amount(buf, size, row->metric, row->value))                     \
	_(type, ALERT_OVER, "OVER", right, 1, 0, 9,                           \
	  put_amount(buf, size, row->metric, row->threshold))                 \
	_(type, ALERT_WHERE, "SEEN AT", left, 4, 0, 8,                        \
	  snprintf(buf, size, "%s", *row->interface ? row->interface : "-"))  \
	_(type, ALERT_RULE, "RULE", left, 0, 18, 24, put_rule(buf, size, row))

TABLE(alert_columns, ALERTS_COLUMNS, struct netobs_alert);

static int open_alerts(struct output *output)
{
	return row_table_open(output, alert_columns, ARRAY_SIZE(alert_columns));
}

const struct output_kind output_alerts = {
	.open = open_alerts,
	.record = row_table_write,
	.close = row_table_close,
};

/* ---- Sessions ------------------------------------------------------------------- */

static void put_process(char *buf, size_t size,
			const struct netobs_session *session)
{
	snprintf(buf, size, "%.*s", (int)sizeof(session->process),
		 session->process);
	safe_cell(buf);
}

/* Data bytes, each counted once, as programs count them: without SYN, FIN and retransmissions. */
static uint64_t sent_data(const struct netobs_session *session)
{
	return session->bytes_sent -
	       min_u64(session->bytes_sent, session->bytes_retransmitted);
}

static uint64_t received_data(const struct netobs_session *session)
{
	return session->bytes_received -
	       !!(session->record.has & NETOBS_SESSION_HAS_FIN);
}

/* An unknown value is shown as "-". */
#define KNOWN(what, text)                                \
	(row->record.has & (NETOBS_SESSION_HAS_##what) ? \
		 (void)(text) :                          \
		 (void)snprintf(buf, size, "-"))

#define SESSIONS_COLUMNS(_, type)                                               \
	_(type, SESSION_TIME, "TIME", left, 5, 0, 12,                           \
	  human_time(buf, size, row->end_ns))                                   \
	_(type, SESSION_LOCAL, "LOCAL", left, 0, 12, 21,                        \
	  human_address(buf, size, row->local_addr, row->local_port))           \
	_(type, SESSION_REMOTE, "REMOTE", left, 0, 12, 21,                      \
	  human_address(buf, size, row->remote_addr, row->remote_port))         \
	_(type, SESSION_PID, "PID", right, 4, 0, 7,                             \
	  KNOWN(PROCESS, snprintf(buf, size, "%u", row->pid)))                  \
	_(type, SESSION_PROCESS, "PROCESS", left, 0, 8, 11,                     \
	  KNOWN(PROCESS, put_process(buf, size, row)))                          \
	_(type, SESSION_DURATION, "DURATION", right, 3, 0, 9,                   \
	  KNOWN(START, human_duration(buf, size, row->end_ns - row->start_ns))) \
	_(type, SESSION_SENT, "SENT", right, 0, 0, 8,                           \
	  human_bytes(buf, size, sent_data(row)))                               \
	_(type, SESSION_RECEIVED, "RECEIVED", right, 0, 0, 8,                   \
	  human_bytes(buf, size, received_data(row)))                           \
	_(type, SESSION_RETRANSMITS, "RETR", right, 1, 0, 5,                    \
	  human_count(buf, size, row->retransmits))                             \
	_(type, SESSION_RTT, "RTT", right, 2, 0, 9,                             \
	  KNOWN(RTT, human_latency(buf, size, row->rtt_ns)))                    \
	_(type, SESSION_ENDED, "ENDED", left, 0, 0, 7,                          \
	  snprintf(buf, size, "%s",                                             \
		   netobs_session_ended_name(row->ended) ?: "-"))

TABLE(session_columns, SESSIONS_COLUMNS, struct netobs_session);

static int open_sessions(struct output *output)
{
	return row_table_open(output, session_columns,
			      ARRAY_SIZE(session_columns));
}

const struct output_kind output_sessions = {
	.open = open_sessions,
	.record = row_table_write,
	.close = row_table_close,
};
