/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decides whether a rule is broken, and reported. Pure: the same header builds for the host. */
#ifndef NETOBS_BPF_RTT_ALERT_H
#define NETOBS_BPF_RTT_ALERT_H

#include "bpf/alert.h"
#include "bpf/connection.h"

_Static_assert(ALERT_RULES_MAX == 128, "alert_count_over()");

/* ---- Samples ---------------------------------------------------------------------- */

/* @baseline: 0: unknown, and no sample is over a multiple of it. */
static __always_inline bool alert_is_over(__u32 sample, __u32 threshold,
					  __u32 baseline, bool is_ratio)
{
	if (is_ratio)
		return baseline && (__u64)sample << ALERT_RATIO_SHIFT >
					   (__u64)threshold * baseline;
	return sample > threshold;
}

/* 0 or 1: whether @a is less than @b; both are less than 2^63. */
static __always_inline __u64 alert_less(__u64 a, __u64 b)
{
	__u64 difference = a - b;

#ifdef __bpf__ /* the compiler would make a branch of it */
	asm volatile("" : "+r"(difference));
#endif
	return difference >> 63;
}

/*
 * @return the number of the increasing @thresholds, which are ALERT_RULES_MAX, that the sample is
 * over; ratios are less than 2^31. No branch depends on the sample: the way of a search cannot be
 * predicted. The comparisons of a step do not wait for each other.
 */
static __always_inline __u32 alert_count_over(const __u32 *thresholds,
					      __u32 sample, __u32 baseline,
					      bool is_ratio)
{
	const __u64 value = (__u64)sample << (is_ratio ? ALERT_RATIO_SHIFT : 0);
	const __u64 times = is_ratio ? baseline : 1;
	__u64 n = 0, more = 0;

	if (!times)
		return 0;
	for (__u32 i = 31; i < 127; i += 32)
		n += alert_less(thresholds[i] * times, value);
	n *= 32;
	for (__u32 i = 7; i < 31; i += 8)
		more += alert_less(thresholds[n + i] * times, value);
	n += 8 * more;
	more = 0;
	for (__u32 i = 0; i < 8; i++)
		more += alert_less(thresholds[n + i] * times, value);
	return n + more;
}

/* Discard older samples if no rule needed the metric for a while, in which none were kept. */
static __always_inline void alert_renew(struct alert_state *state,
					const struct alert_table *table,
					__u32 dir, __u32 metric)
{
	__u8 life = table->lives[metric & (ALERT_METRICS - 1)];
	__u8 *own = &state->lives[dir & 1][metric & (ALERT_METRICS - 1)];

	if (*own == life)
		return;
	*own = life;
	state->kept[dir & 1][metric & (ALERT_METRICS - 1)] = 0;
	if (metric == ALERT_RETRANSMITS)
		state->loss[dir & 1].start = 0;
}

static __always_inline void alert_remember(struct alert_state *state, __u32 dir,
					   __u32 metric, __u32 sample)
{
	__u32 n = state->kept[dir & 1][metric & (ALERT_METRICS - 1)];

	state->histories[dir & 1][metric & (ALERT_METRICS - 1)]
		.samples[n & (ALERT_SAMPLES_MAX - 1)] = sample;
	n++;
	if (n > 0xff) /* same index, and still more than any rule needs */
		n -= ALERT_SAMPLES_MAX;
	state->kept[dir & 1][metric & (ALERT_METRICS - 1)] = n;
}

/* @return how many of the newest @among samples are over the threshold; the newest one is */
static __always_inline __u32 alert_hits(const struct alert_state *state,
					__u32 dir, __u32 metric, __u32 among,
					__u32 threshold, __u32 baseline,
					bool is_ratio)
{
	const struct alert_history *history =
		&state->histories[dir & 1][metric & (ALERT_METRICS - 1)];
	__u32 n = state->kept[dir & 1][metric & (ALERT_METRICS - 1)];
	__u32 hits = 1;

	for (__u32 i = 1; i < ALERT_SAMPLES_MAX; i++) {
		if (i >= among || i > n)
			break;
		hits += alert_is_over(
			history->samples[(n - i) & (ALERT_SAMPLES_MAX - 1)],
			threshold, baseline, is_ratio);
	}
	return hits;
}

/*
 * Take the share of retransmitted bytes, in parts per million, at the end of a window. False: it
 * has not ended, or nothing was sent.
 */
static __always_inline bool alert_loss_sample(struct alert_loss *loss,
					      const struct connection *conn,
					      int dir, __u32 tick,
					      __u32 *ret_share)
{
	__u32 all_bytes = conn_data_bytes(conn, dir);
	__u32 all_again = conn->body->stats[dir].retransmitted_bytes;
	__u32 bytes = all_bytes - loss->bytes, again = all_again - loss->again;
	bool has_begun = loss->start;

	if (has_begun && tick - loss->start < ALERT_LOSS_WINDOW)
		return false;
	loss->start = tick ? tick : 1;
	loss->bytes = all_bytes;
	loss->again = all_again;
	if (!has_begun || !(bytes | again))
		return false;
	*ret_share = (__u64)again * 1000000 / ((__u64)bytes + again);
	return true;
}

/* ---- Why a rule is silent ---------------------------------------------------------- */

/* Slots of connections have up to 24 bits. */
static __always_inline __u64 alert_hold_id(__u32 index, __u64 born_ns, __u32 slot)
{
	return born_ns / CONN_BORN_STEP_NS << 32 | (__u64)index << 8 | slot;
}

static __always_inline __u32 alert_hold_bucket_of(__u32 index, __u32 slot)
{
	return ((index << 8 | slot) * 0x9e3779b1U) >> 19 &
	       (ALERT_HOLD_BUCKETS - 1);
}

/*
 * Ticks from @tick to @until; 0: none. Ticks wrap: a time weeks ago seems to be in the future, but
 * further away than any hold lasts.
 */
static __always_inline __u32 alert_ticks_left(__u32 until, __u32 tick)
{
	__u32 left = until - tick;

	return left <= ALERT_HOLD_MAX ? left : 0;
}

static __always_inline __u32 alert_hold_left(const struct alert_hold *hold,
					     __u32 tick)
{
	return hold->id ? alert_ticks_left(hold->until, tick) : 0;
}

/*
 * "Generic cell rate algorithm" (ITU-T I.371, Annex A). False: there are too many alerts. If CPUs
 * run this at the same moment, one alert too many may pass.
 */
static __always_inline bool alert_limit_pass(struct alert_limit *limit,
					     __u64 period_ns, __u64 burst_ns,
					     __u64 now)
{
	__u64 next_ns = limit->next_ns;

	if (!period_ns)
		return true;
	if (next_ns > now + burst_ns)
		return false;
	limit->next_ns = (next_ns > now ? next_ns : now) + period_ns;
	return true;
}

#endif
