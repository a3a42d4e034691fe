/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Distributions of durations. Pure: the same header builds for the host. */
#ifndef NETOBS_BPF_RTT_LATENCY_H
#define NETOBS_BPF_RTT_LATENCY_H

#include "bpf/connection.h"

/* Convert to a duration of an entry: rounded down, but never to 0, which means none. */
static __always_inline __u32 latency_of(__u64 ns)
{
	__u64 units = ns >> CONN_LATENCY_SHIFT;

	if (units > CONN_LATENCY_MAX)
		return CONN_LATENCY_MAX;
	return units ? units : 1;
}

/* The bucket of the histogram: how many bits a number has, beyond the first 8. */
static __always_inline __u32 latency_bucket(__u32 sample)
{
	__u32 rest = sample >> (CONN_HIST_SHIFT - CONN_LATENCY_SHIFT), bits = 0;

	if (rest >> (CONN_HIST - 2))
		return CONN_HIST - 1;
	if (rest >> 8) {
		bits = 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		bits += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		bits += 2;
		rest >>= 2;
	}
	return bits + (rest >> 1 ? 2 : rest);
}

/* The minimum is of two windows, so that it forgets a route that has changed. */
static __always_inline void latency_add_min(struct conn_latency *latency,
					    __u32 sample, __u32 tick)
{
	__u32 age = tick - latency->min_start;

	if (!latency->n || (age >= CONN_MIN_WINDOW && age >> 31 == 0)) {
		latency->previous_min = latency->n && age < 2 * CONN_MIN_WINDOW ?
						latency->min :
						0;
		latency->min_start = tick;
		latency->min = sample;
	} else if (sample < latency->min) {
		latency->min = sample;
	}
}

static __always_inline void latency_add(struct conn_latency *latency,
					__u32 sample, __u32 tick)
{
	__u32 smoothed = latency->smoothed;

	latency_add_min(latency, sample, tick);
	if (!latency->n)
		smoothed = sample;
	else if (sample > smoothed)
		smoothed += (sample - smoothed) / 8;
	else
		smoothed -= (smoothed - sample) / 8;
	latency->smoothed = smoothed;
	if (sample > latency->max)
		latency->max = sample;
	latency->last = sample;
	latency->sum += sample;
	latency->hist[latency_bucket(sample) & (CONN_HIST - 1)]++;
	latency->n++;
}

#endif
