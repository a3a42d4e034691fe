/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sessions as a table: a line each. */
#include <stdio.h>
#include <string.h>

#include <netobs/session.h>

#include "service/text/human.h"
#include "row_table.h"

enum { CELL = 64, NSEC_PER_USEC = 1000 };

enum {
	SESSIONS_TIME,
	SESSIONS_LOCAL,
	SESSIONS_REMOTE,
	SESSIONS_PID,
	SESSIONS_PROCESS,
	SESSIONS_DURATION,
	SESSIONS_SENT,
	SESSIONS_RECEIVED,
	SESSIONS_RETRANSMITS,
	SESSIONS_RTT,
	SESSIONS_ENDED,
	SESSIONS_COLUMNS
};

/* Ends with ports have the width of IPv4. @leave_at: as in columns.def. */
static const struct column sessions_columns[SESSIONS_COLUMNS] = {
	{ SESSIONS_TIME, "TIME", false, 0, 0, 12, 0 },
	{ SESSIONS_LOCAL, "LOCAL", false, 4, 12, 21, 0 },
	{ SESSIONS_REMOTE, "REMOTE", false, 0, 12, 21, 0 },
	{ SESSIONS_PID, "PID", true, 0, 0, 7, 0 },
	{ SESSIONS_PROCESS, "PROCESS", false, 0, 8, 16, 0 },
	{ SESSIONS_DURATION, "DURATION", true, 3, 0, 9, 0 },
	{ SESSIONS_SENT, "SENT", true, 0, 0, 9, 0 },
	{ SESSIONS_RECEIVED, "RECEIVED", true, 0, 0, 9, 0 },
	{ SESSIONS_RETRANSMITS, "RETR", true, 1, 0, 5, 0 },
	{ SESSIONS_RTT, "RTT", true, 2, 0, 9, 0 },
	{ SESSIONS_ENDED, "ENDED", false, 0, 0, 7, 0 },
};

static int open_table(struct output *output)
{
	return row_table_open(output, sessions_columns, SESSIONS_COLUMNS);
}

static void round_trip(char *buf, size_t size,
		       const struct netobs_session *session)
{
	const uint64_t us = session->rtt_ns / NSEC_PER_USEC;

	if (!(session->record.has & NETOBS_SESSION_HAS_RTT))
		snprintf(buf, size, "-");
	else
		snprintf(buf, size, "%llu.%03llu ms",
			 (unsigned long long)us / 1000,
			 (unsigned long long)us % 1000);
}

static void process(const struct netobs_session *session, char *pid, char *name)
{
	snprintf(pid, CELL, "-");
	snprintf(name, CELL, "-");
	if (!(session->record.has & NETOBS_SESSION_HAS_PROCESS))
		return;
	snprintf(pid, CELL, "%u", session->pid);
	snprintf(name, CELL, "%.*s", (int)sizeof(session->process),
		 session->process);
	human_clean(name);
}

static void write_row(struct output *output, const struct netobs_record *record)
{
	const struct netobs_session *session = (const void *)record;
	struct cells cells;

	for (size_t i = 0; i < SESSIONS_COLUMNS; i++)
		cells.text[i] = cells.buf[i];
	human_time(cells.buf[SESSIONS_TIME], CELL, session->end_ns);
	human_address(cells.buf[SESSIONS_LOCAL], CELL, session->local_addr,
		      session->local_port);
	human_address(cells.buf[SESSIONS_REMOTE], CELL, session->remote_addr,
		      session->remote_port);
	process(session, cells.buf[SESSIONS_PID], cells.buf[SESSIONS_PROCESS]);
	snprintf(cells.buf[SESSIONS_DURATION], CELL, "-");
	if (record->has & NETOBS_SESSION_HAS_START)
		human_duration(cells.buf[SESSIONS_DURATION], CELL,
			       session->end_ns - session->start_ns);
	human_bytes(cells.buf[SESSIONS_SENT], CELL, session->bytes_acked);
	human_bytes(cells.buf[SESSIONS_RECEIVED], CELL, session->bytes_received);
	human_count(cells.buf[SESSIONS_RETRANSMITS], CELL, session->retransmits);
	round_trip(cells.buf[SESSIONS_RTT], CELL, session);
	snprintf(cells.buf[SESSIONS_ENDED], CELL, "%s",
		 netobs_session_ended_name(session->ended) ?: "-");
	row_table_write(output, &cells);
}

const struct output_kind output_sessions = {
	.has_stream = true,
	.open = open_table,
	.record = write_row,
	.close = row_table_close,
};
