/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "series_state.h"

#include "base/conversation.h"
#include "base/times.h"
#include "base/util.h"
#include "table.h"

/* ---- Flows and connections ------------------------------------------------------------ */

struct series_event series_event_of_flow(const struct netobs_flow *flow)
{
	return (struct series_event){
		.sum.flows = sum_of_flow(flow),
		.has_rtt = flow_has_new_rtt(flow),
		.has_app_latency = flow_has_new_app_latency(flow),
		.rtt_ns = flow->rtt_ns,
		.app_latency_ns = flow->app_latency_ns,
	};
}

/* A reset after data ends a connection, and is no failure: many servers and clients close in this way. */
static bool has_failed(const struct netobs_session *session)
{
	const enum session_failure failure = session_failure(session->ended);

	return failure != SESSION_FINE &&
	       (failure != SESSION_RESET || (!session->data_segments_sent &&
					     !session->data_segments_received));
}

struct series_event series_event_of_session(const struct netobs_session *session)
{
	return (struct series_event){
		.sum = { .connections = 1,
			 .connections_failed = has_failed(session),
			 .first_end_ns = session->end_ns,
			 .last_end_ns = session->end_ns },
	};
}

static void add_connections(struct series_sum *sum, const struct series_sum *more)
{
	if (!more->connections)
		return;
	if (!sum->connections || more->first_end_ns < sum->first_end_ns)
		sum->first_end_ns = more->first_end_ns;
	if (!sum->connections || more->last_end_ns > sum->last_end_ns)
		sum->last_end_ns = more->last_end_ns;
	sum->connections += more->connections;
	sum->connections_failed += more->connections_failed;
}

void series_sum_add(struct series_sum *sum, const struct series_sum *more)
{
	netobs_group_sum_add(&sum->flows, &more->flows);
	add_connections(sum, more);
}

void series_times_add(struct netobs_times *times, uint32_t histograms,
		      const struct series_event *event)
{
	struct netobs_times *rtt =
		series_times_at(times, histograms, NETOBS_SERIES_RTT);
	struct netobs_times *app_latency =
		series_times_at(times, histograms, NETOBS_SERIES_APP_LATENCY);

	if (rtt && event->has_rtt)
		times_add(rtt, event->rtt_ns);
	if (app_latency && event->has_app_latency)
		times_add(app_latency, event->app_latency_ns);
}

/* ---- Rows --------------------------------------------------------------------------- */

void series_row_init(struct netobs_series_row *row, uint32_t kind,
		     struct netobs_times *times, uint32_t histograms)
{
	*row = (struct netobs_series_row){
		.sz = sizeof(*row),
		.kind = kind,
		.rtt = series_times_at(times, histograms, NETOBS_SERIES_RTT),
		.app_latency = series_times_at(times, histograms,
					       NETOBS_SERIES_APP_LATENCY),
	};
}

void series_row_add(struct netobs_series_row *row, const struct series_sum *sum)
{
	row->flows += sum->flows.flows;
	row->packets += sum->flows.packets;
	row->bytes += sum->flows.bytes;
	row->retransmits += sum->flows.retransmits;
	row->drop_packets += sum->flows.drop_packets;
	row->drop_bytes += sum->flows.drop_bytes;
	row->connections += sum->connections;
	row->connections_failed += sum->connections_failed;
}

void series_row_join(struct netobs_series_row *row,
		     const struct netobs_series_row *more)
{
	const size_t first = offsetof(struct netobs_series_row, flows);
	const size_t end = offsetof(struct netobs_series_row, rtt);

	counters_add(&row->flows, &more->flows, end - first);
}
