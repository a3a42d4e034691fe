/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "rtt_check.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/times.h"
#include "base/util.h"

static struct rtt_check_session *
bucket_of(struct rtt_check *check, uint16_t local_port, uint16_t remote_port)
{
	const uint32_t ports = (uint32_t)local_port << 16 | remote_port;

	/* Knuth's multiplicative hash */
	return check->waiting[(ports * 2654435761U) >> 16 & (RTT_CHECK_BUCKETS - 1)];
}

static bool is_comparable(const struct netobs_session *session)
{
	const uint32_t needed = NETOBS_SESSION_HAS_START |
				NETOBS_SESSION_HAS_MIN_RTT;

	return session->ended && (session->record.has & needed) == needed &&
	       session->min_rtt_ns &&
	       session->end_ns - session->start_ns <=
		       RTT_CHECK_LONGEST_MS * NSEC_PER_MSEC;
}

static bool is_same_session(const struct rtt_check_session *a,
			    const struct rtt_check_session *b)
{
	return a->min_rtt_ns && a->local_port == b->local_port &&
	       a->remote_port == b->remote_port &&
	       a->netns_inode == b->netns_inode &&
	       !memcmp(a->local_addr, b->local_addr, sizeof(a->local_addr)) &&
	       !memcmp(a->remote_addr, b->remote_addr, sizeof(a->remote_addr));
}

/* That of an earlier one of the same ends, a free one, or that of the oldest. */
static struct rtt_check_session *
choose_place(struct rtt_check_session *bucket,
	     const struct rtt_check_session *session)
{
	struct rtt_check_session *best = bucket;

	for (unsigned int i = 0; i < RTT_CHECK_WAYS; i++) {
		if (is_same_session(&bucket[i], session))
			return &bucket[i];
		if (best->min_rtt_ns &&
		    (!bucket[i].min_rtt_ns || bucket[i].end_ns < best->end_ns))
			best = &bucket[i];
	}
	return best;
}

void rtt_check_session(struct rtt_check *check,
		       const struct netobs_session *session)
{
	struct rtt_check_session *place, waiting = {
		.local_port = session->local_port,
		.remote_port = session->remote_port,
		.netns_inode = session->netns_inode,
		.start_ns = session->start_ns,
		.end_ns = session->end_ns,
		.min_rtt_ns = session->min_rtt_ns,
	};

	if (!is_comparable(session))
		return;
	memcpy(waiting.local_addr, session->local_addr,
	       sizeof(waiting.local_addr));
	memcpy(waiting.remote_addr, session->remote_addr,
	       sizeof(waiting.remote_addr));
	place = choose_place(bucket_of(check, session->local_port,
				       session->remote_port),
			     &waiting);
	check->n += !place->min_rtt_ns;
	*place = waiting;
}

static bool leaves_netns(const struct netobs_flow *flow, uint32_t netns_inode)
{
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct netobs_point *point = netobs_flow_point(flow, i);

		if (point->netns_inode == netns_inode &&
		    point->direction == NETOBS_EGRESS)
			return true;
	}
	return false;
}

static bool is_of(const struct rtt_check_session *session,
		  const struct netobs_flow *flow)
{
	const int64_t slack_ns = RTT_CHECK_SLACK_MS * NSEC_PER_MSEC;

	return session->min_rtt_ns && session->local_port == flow->src_port &&
	       session->remote_port == flow->dst_port &&
	       !memcmp(session->local_addr, flow->src, sizeof(flow->src)) &&
	       !memcmp(session->remote_addr, flow->dst, sizeof(flow->dst)) &&
	       flow->end_ns >= session->start_ns - slack_ns &&
	       flow->end_ns <= session->end_ns + slack_ns &&
	       leaves_netns(flow, session->netns_inode);
}

/* The kernel's minimum has the handshake's, too. @return 0: there is none */
static uint64_t smallest_rtt(const struct netobs_flow *flow)
{
	uint64_t smallest = UINT64_MAX;

	if (flow->has & NETOBS_HAS_RTT)
		smallest = min_u64(smallest, flow->rtt_min_ns);
	if (flow->has & NETOBS_HAS_HANDSHAKE_RTT)
		smallest = min_u64(smallest, flow->handshake_rtt_ns);
	return smallest == UINT64_MAX ? 0 : smallest;
}

static struct rtt_check_session *find_session(struct rtt_check *check,
					      const struct netobs_flow *flow)
{
	struct rtt_check_session *bucket =
		bucket_of(check, flow->src_port, flow->dst_port);

	for (unsigned int i = 0; i < RTT_CHECK_WAYS; i++)
		if (is_of(&bucket[i], flow))
			return &bucket[i];
	return NULL;
}

void rtt_check_flow(struct rtt_check *check, const struct netobs_flow *flow)
{
	struct rtt_check_session *session;
	uint64_t ours;

	if (!check->n || flow->proto != IPPROTO_TCP)
		return;
	ours = smallest_rtt(flow);
	session = ours ? find_session(check, flow) : NULL;
	if (!session)
		return;
	times_add(&check->differences, ours > session->min_rtt_ns ?
					       ours - session->min_rtt_ns :
					       session->min_rtt_ns - ours);
	session->min_rtt_ns = 0;
	check->n--;
}
