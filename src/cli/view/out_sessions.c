/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sessions as a table: a line each. */
#include <stdio.h>

#include <netobs/session.h>

#include "base/util.h"
#include "service/text/human.h"
#include "row_table.h"

enum { NSEC_PER_USEC = 1000 };

static void put_round_trip(char *buf, size_t size, uint64_t ns)
{
	const unsigned long long us = ns / NSEC_PER_USEC;

	snprintf(buf, size, "%llu.%03llu ms", us / 1000, us % 1000);
}

static void put_process(char *buf, size_t size,
			const struct netobs_session *session)
{
	snprintf(buf, size, "%.*s", (int)sizeof(session->process),
		 session->process);
	human_clean(buf);
}

/* What is not known is "-". */
#define KNOWN(what, text)                                \
	(row->record.has & (NETOBS_SESSION_HAS_##what) ? \
		 (void)(text) :                          \
		 (void)snprintf(buf, size, "-"))

/* As row.h has it. Ends with ports have the width of IPv4. leave: as in columns.def. */
#define SESSIONS_COLUMNS(_, type)                                               \
	_(type, TIME, "TIME", left, 0, 0, 12,                                   \
	  human_time(buf, size, row->end_ns))                                   \
	_(type, LOCAL, "LOCAL", left, 4, 12, 21,                                \
	  human_address(buf, size, row->local_addr, row->local_port))           \
	_(type, REMOTE, "REMOTE", left, 0, 12, 21,                              \
	  human_address(buf, size, row->remote_addr, row->remote_port))         \
	_(type, PID, "PID", right, 0, 0, 7,                                     \
	  KNOWN(PROCESS, snprintf(buf, size, "%u", row->pid)))                  \
	_(type, PROCESS, "PROCESS", left, 0, 8, 16,                             \
	  KNOWN(PROCESS, put_process(buf, size, row)))                          \
	_(type, DURATION, "DURATION", right, 3, 0, 9,                           \
	  KNOWN(START, human_duration(buf, size, row->end_ns - row->start_ns))) \
	_(type, SENT, "SENT", right, 0, 0, 9,                                   \
	  human_bytes(buf, size, row->bytes_acked))                             \
	_(type, RECEIVED, "RECEIVED", right, 0, 0, 9,                           \
	  human_bytes(buf, size, row->bytes_received))                          \
	_(type, RETRANSMITS, "RETR", right, 1, 0, 5,                            \
	  human_count(buf, size, row->retransmits))                             \
	_(type, RTT, "RTT", right, 2, 0, 9,                                     \
	  KNOWN(RTT, put_round_trip(buf, size, row->rtt_ns)))                   \
	_(type, ENDED, "ENDED", left, 0, 0, 7,                                  \
	  snprintf(buf, size, "%s",                                             \
		   netobs_session_ended_name(row->ended) ?: "-"))

/* clang-format off */
SESSIONS_COLUMNS(TABLE_TEXT, struct netobs_session)

static const struct column columns[] = { SESSIONS_COLUMNS(TABLE_COLUMN, ) };
/* clang-format on */

static int open_table(struct output *output)
{
	return row_table_open(output, columns, ARRAY_SIZE(columns));
}

const struct output_kind output_sessions = {
	.has_stream = true,
	.open = open_table,
	.record = row_table_write,
	.close = row_table_close,
};
