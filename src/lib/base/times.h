/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Histograms of times, and which times of flow records are in them. */
#ifndef NETOBS_BASE_TIMES_H
#define NETOBS_BASE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include <netobs/series.h>

enum { TIMES_SHORTEST_US = 16 }; /* the upper bound of the first class */

/* @return the first class whose upper bound is not below @ns, or the last one */
static inline unsigned int times_class(uint64_t ns)
{
	const uint64_t shortest_ns = TIMES_SHORTEST_US * UINT64_C(1000);
	const uint64_t whole = ns ? (ns - 1) / shortest_ns : 0;
	const unsigned int class =
		whole ? 64 - (unsigned int)__builtin_clzll(whole) : 0;

	return class < NETOBS_TIME_CLASSES ? class : NETOBS_TIME_CLASSES - 1;
}

static inline void times_add(struct netobs_times *times, uint64_t ns)
{
	times->classes[times_class(ns)]++;
	times->n++;
	times->sum_ns += ns;
}

/* ---- Flow records -------------------------------------------------------------------- */

/* Records have the times of their connection until it is measured again: only new ones count. */
static inline bool flow_has_new_rtt(const struct netobs_flow *flow)
{
	const uint32_t has = NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_RTT;

	return (flow->has & has) == has && flow->rtt_samples;
}

static inline bool flow_has_new_app_latency(const struct netobs_flow *flow)
{
	const uint32_t has = NETOBS_HAS_TCP_HEALTH | NETOBS_HAS_APP_LATENCY;

	return (flow->has & has) == has && flow->app_responses;
}

#endif
