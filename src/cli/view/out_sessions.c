/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Sessions as a table: a line each. */
#include <stdio.h>
#include <string.h>

#include <netobs/session.h>

#include "cli/common/human.h"
#include "output.h"

enum { CELL = 64, NSEC_PER_USEC = 1000 };

#define COLUMNS "%-12s  %-*s  %-*s  %7s  %-16s  %9s  %9s  %9s  %5s  %9s  %-7s\n"

/* Addresses of IPv4 with their ports; longer ones take the room that they need. */
enum { ENDPOINT_WIDTH = 21 };

static int open_table(struct output *output)
{
	stream_print(&output->stream, COLUMNS, "TIME", ENDPOINT_WIDTH, "LOCAL",
		     ENDPOINT_WIDTH, "REMOTE", "PID", "PROCESS", "DURATION",
		     "SENT", "RECEIVED", "RETR", "RTT", "ENDED");
	return 0;
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

static void process(const struct netobs_session *session, char pid[CELL],
		    char name[CELL])
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
	char time[CELL], local[CELL], remote[CELL], pid[CELL], name[CELL];
	char duration[CELL] = "-", sent[CELL], received[CELL], retransmits[CELL];
	char rtt[CELL];

	human_time(time, sizeof(time), session->end_ns);
	human_address(local, sizeof(local), session->local_addr,
		      session->local_port);
	human_address(remote, sizeof(remote), session->remote_addr,
		      session->remote_port);
	process(session, pid, name);
	if (record->has & NETOBS_SESSION_HAS_START)
		human_duration(duration, sizeof(duration),
			       session->end_ns - session->start_ns);
	human_bytes(sent, sizeof(sent), session->bytes_acked);
	human_bytes(received, sizeof(received), session->bytes_received);
	human_count(retransmits, sizeof(retransmits), session->retransmits);
	round_trip(rtt, sizeof(rtt), session);
	stream_print(&output->stream, COLUMNS, time, ENDPOINT_WIDTH, local,
		     ENDPOINT_WIDTH, remote, pid, name, duration, sent,
		     received, retransmits, rtt,
		     netobs_session_ended_name(session->ended) ?: "-");
}

const struct output_kind output_sessions = {
	.has_stream = true,
	.open = open_table,
	.record = write_row,
};
