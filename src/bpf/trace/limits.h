/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the limit that keeps TCP of a socket from sending more. */
#ifndef NETOBS_BPF_TRACE_LIMITS_H
#define NETOBS_BPF_TRACE_LIMITS_H

#include "bpf/trace.h"

#include <bpf/bpf_core_read.h>

enum {
	RECOVERING = 3, /* TCP_CA_Recovery of enum tcp_ca_state, or later */
	THROTTLED = 1UL << 0, /* TSQF_THROTTLED of enum tsq_flags: TCP waits until queues below it are shorter */
};

const volatile bool config_wants_limits;

static __always_inline __u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out + tp->retrans_out -
	       (tp->sacked_out + tp->lost_out);
}

/*
 * @return a value of enum netobs_turn_limit, plus 1. A process that waits for room in the send buffer is not woken before a
 * third of it is free. Of a full buffer of which little is unsent, more room would be sent at once.
 */
static __always_inline __u8 limit_of(const struct sock *sk,
				     const struct tcp_sock *tp)
{
	const __u32 unsent = tp->write_seq - tp->snd_nxt;
	const __u32 unacked = tp->write_seq - tp->snd_una;
	const bool is_full = (__u64)sk->sk_wmem_queued * 3 >
			     (__u64)sk->sk_sndbuf * 2;

	if (!config_wants_limits)
		return TRACE_LIMIT_UNKNOWN;
	if (!unsent && !is_full)
		return TRACE_LIMIT_IDLE;
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >= RECOVERING)
		return TRACE_LIMIT_RECOVERY;
	if (is_full && unsent < unacked / 4)
		return TRACE_LIMIT_BUFFER;
	if (tp->snd_wnd < tp->snd_nxt - tp->snd_una + tp->mss_cache)
		return TRACE_LIMIT_WINDOW;
	if (packets_in_flight(tp) >= tp->snd_cwnd)
		return TRACE_LIMIT_CWND;
	if (sk->sk_tsq_flags & THROTTLED)
		return TRACE_LIMIT_QUEUED;
	return TRACE_LIMIT_OTHER;
}

#endif
