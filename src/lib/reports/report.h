/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Reads the members of a record that the service map needs: from JSON, or from the record itself. */
#ifndef NETOBS_REPORTS_REPORT_H
#define NETOBS_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/services.h>

#include "edges.h"
#include "flow_face.h"

struct netobs_flow;
struct netobs_session;

enum {
	REPORTER_MAX =
		NETOBS_SERVICES_HOST_MAX, /* bytes of a name or an identity, with its NUL */
	REPORT_WHY_MAX = 96, /* size of the reason why a record was refused */
	REPORT_PROCESS_MAX = 16, /* size of the name of a process, with its NUL */
	REPORT_WORKLOAD_MAX = 192, /* size of the name of a workload */
};

enum report_kind {
	REPORT_NONE, /* a record of another type, which the map does not use */
	REPORT_FLOW, /* packets of a direction */
	REPORT_SESSION, /* a socket's connection has ended */
	REPORT_MAPPING, /* addresses that NAT gives a conversation */
};

struct service_report {
	enum report_kind kind;
	struct flow_face face; /* tuple of its packets, or its socket; ICMP without type */
	struct flow_face others[2]; /* before or behind NAT */
	uint32_t n_others;
	uint64_t conversation_id; /* 0: not known */
	uint16_t icmp;		  /* type << 8 | code */
	int64_t start_ms, end_ms;
	int64_t start_ns; /* of a flow, as <netobs/flow.h> has it; 0: not known */

	/* Flows. */
	uint64_t packets, bytes, retransmits, retransmitted_bytes, late_unknown;
	uint64_t rtt_ns, rtt_samples, response_ns, responses;
	uint32_t sampling; /* 0: all packets were counted */
	uint16_t tcp_flags;
	uint8_t tcp_combined;
	bool has_combined; /* false: 0 means unknown */

	/* Sessions. */
	uint8_t opened,
		ended; /* enum netobs_session_opened, netobs_session_ended */

	char processes[2][REPORT_PROCESS_MAX]; /* of source and destination; "": unknown */
	/* Workloads of both ends: "NAMESPACE/POD", or the name of a container in no pod; "": not known. */
	char workloads[2][REPORT_WORKLOAD_MAX];
};

/* The reporter of a record in JSON. */
struct report_origin {
	char identity[REPORTER_MAX]; /* "": the record does not say */
	char name[REPORTER_MAX];
};

/**
 * Read a record.
 *
 * @param ret_why  why it was refused: a member of it is wrong, or it is no record of netobs
 * @return false: it was refused; *ret_report has no meaning
 */
bool report_read(struct json_value record, struct service_report *ret_report,
		 struct report_origin *ret_origin, char ret_why[REPORT_WHY_MAX]);

void report_of_flow(const struct netobs_flow *flow,
		    struct service_report *ret_report);
void report_of_session(const struct netobs_session *session,
		       struct service_report *ret_report);

/** Add another tuple of the same packets, unless it is that of the record. */
void report_add_face(struct service_report *report, const struct flow_face *face);

/**
 * Name a workload as group records show it. Other letters than theirs are no names, and could be anything
 * on a terminal: "".
 *
 * @param ret_name  REPORT_WORKLOAD_MAX bytes
 */
void report_name_workload(char *ret_name, const char *container,
			  const char *pod, const char *namespace);

#endif
