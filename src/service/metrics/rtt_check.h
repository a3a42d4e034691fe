/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * A test of round-trip times by themselves: the smallest one of a connection as packets show it,
 * compared with what the kernel's TCP says of the same connection when it ends.
 *
 * The test compares connections of a local socket whose flow is first seen where the socket's
 * namespace sends it. Both observers forget minima after some seconds or minutes, so it takes short
 * connections only. A session waits for the next record of its flow, which has the connection's times
 * after its end. If too many wait, the oldest are dropped.
 */
#ifndef NETOBS_SERVICE_METRICS_RTT_CHECK_H
#define NETOBS_SERVICE_METRICS_RTT_CHECK_H

#include <netobs/flow.h>
#include <netobs/series.h>
#include <netobs/session.h>

enum {
	/* Sessions that wait at most: a power of two of buckets. */
	RTT_CHECK_BUCKETS = 1024,
	RTT_CHECK_WAYS = 4,
	/* Less than what netobs_latency.min_ns is the minimum of. */
	RTT_CHECK_LONGEST_MS = 10000,
	/*
	 * A flow whose last packet is further from the session is of another connection with the same
	 * ports; that time is as coarse as a tick of the kernel.
	 */
	RTT_CHECK_SLACK_MS = 1000,
};

struct rtt_check {
	struct rtt_check_session {
		uint8_t local_addr[16], remote_addr[16];
		uint16_t local_port, remote_port;
		uint32_t netns_inode;
		int64_t start_ns, end_ns;
		uint64_t min_rtt_ns; /* 0: none waits here */
	} waiting[RTT_CHECK_BUCKETS][RTT_CHECK_WAYS];
	uint32_t n; /* that wait */
	struct netobs_times differences;
};

/** Have a session wait, if it can be compared. */
void rtt_check_session(struct rtt_check *check,
		       const struct netobs_session *session);

/** Compare a record with the session of its connection, if one waits. */
void rtt_check_flow(struct rtt_check *check, const struct netobs_flow *flow);

#endif
