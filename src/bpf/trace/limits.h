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

/* The state of a socket that sends; members are named as the kernel's. */
struct sending {
	__u32 write_seq, snd_nxt, snd_una, snd_wnd, mss_cache, snd_cwnd;
	__u32 packets_out, retrans_out, sacked_out, lost_out;
	__u32 sk_wmem_queued, sk_sndbuf;
	bool is_recovering;
	bool is_window_full; /* TCP has found so when it sent last */
	bool is_throttled;
	__u8 reserved;
};

#define SENDING_MEMBERS(READ)     \
	READ(tp, write_seq);      \
	READ(tp, snd_nxt);        \
	READ(tp, snd_una);        \
	READ(tp, snd_wnd);        \
	READ(tp, mss_cache);      \
	READ(tp, snd_cwnd);       \
	READ(tp, packets_out);    \
	READ(tp, retrans_out);    \
	READ(tp, sacked_out);     \
	READ(tp, lost_out);       \
	READ(sk, sk_wmem_queued); \
	READ(sk, sk_sndbuf)
#define READ_MEMBER(from, member) ret_s->member = (from)->member
#define PROBE_MEMBER(from, member) \
	BPF_CORE_READ_INTO(&ret_s->member, from, member)

static __always_inline __u32 packets_in_flight(const struct sending *s)
{
	return s->packets_out + s->retrans_out - (s->sacked_out + s->lost_out);
}

/*
 * A process that waits for room in the send buffer is not woken before a third of it is free. Of a full buffer of which
 * little is unsent, more room would be sent at once. Global: the verifier follows it once, and its callers for one
 * limit in place of each.
 *
 * @return a value of enum netobs_turn_limit, plus 1
 */
__noinline __u8 netobs_trace_limit(const struct sending *s)
{
	__u32 unsent, unacked;
	bool is_full;

	if (!s)
		return TRACE_LIMIT_UNKNOWN;
	unsent = s->write_seq - s->snd_nxt;
	unacked = s->write_seq - s->snd_una;
	is_full = (__u64)s->sk_wmem_queued * 3 > (__u64)s->sk_sndbuf * 2;
	if (!unsent && !is_full)
		return TRACE_LIMIT_IDLE;
	if (s->is_recovering)
		return TRACE_LIMIT_RECOVERY;
	if (is_full && unsent < unacked / 4)
		return TRACE_LIMIT_BUFFER;
	if (s->is_window_full ||
	    s->snd_wnd < s->snd_nxt - s->snd_una + s->mss_cache)
		return TRACE_LIMIT_WINDOW;
	if (packets_in_flight(s) >= s->snd_cwnd)
		return TRACE_LIMIT_CWND;
	return s->is_throttled ? TRACE_LIMIT_QUEUED : TRACE_LIMIT_OTHER;
}

static __always_inline void read_sending(const struct sock *sk,
					 const struct tcp_sock *tp,
					 struct sending *ret_s)
{
	SENDING_MEMBERS(READ_MEMBER);
	ret_s->is_recovering =
		BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >=
		RECOVERING;
	ret_s->is_window_full = BPF_CORE_READ_BITFIELD(tp, chrono_type) ==
				TCP_CHRONO_RWND_LIMITED;
	ret_s->is_throttled = sk->sk_tsq_flags & THROTTLED;
}

/* @return what has kept a socket from sending until now */
static __always_inline __u8 limit_of(const struct sock *sk,
				     const struct tcp_sock *tp)
{
	struct sending sending = { 0 };

	if (!config_wants_limits)
		return TRACE_LIMIT_UNKNOWN;
	read_sending(sk, tp, &sending);
	return netobs_trace_limit(&sending);
}

/* Programs of some types have no helper that makes a TCP socket of @sk. */
static __always_inline void probe_sending(const struct sock *sk,
					  struct sending *ret_s)
{
	const struct tcp_sock *tp = (const void *)sk;

	SENDING_MEMBERS(PROBE_MEMBER);
	ret_s->is_recovering =
		BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state) >=
		RECOVERING;
}

/*
 * As tcp_small_queue_check(), of the next packet, which is taken to be as large. TCP sends the second packet always:
 * it may wait long for an interrupt that tells of the first one.
 */
static __always_inline bool is_queue_full(const struct sock *sk,
					  const struct sk_buff *skb)
{
	const __u64 two = 2 * (__u64)skb->truesize;
	const __u64 paced = BPF_CORE_READ(sk, sk_pacing_rate) >>
			    (BPF_CORE_READ(sk, sk_pacing_shift) & 63);
	const __u32 used = BPF_CORE_READ(sk, sk_wmem_alloc.refs.counter);

	return used > (two > paced ? two : paced) &&
	       BPF_CORE_READ((const struct tcp_sock *)sk, packets_out);
}

/*
 * TCP hands new bytes to the first interface, and has not noted yet that they are sent. Queues may take more later
 * without an event, so this tells of what an acknowledgment that comes then does not see.
 *
 * @return what keeps the socket from sending more after them; TRACE_LIMIT_UNKNOWN: they are not new
 */
static __always_inline __u8 limit_after(const struct sock *sk,
					const struct sk_buff *skb, __u32 seq,
					__u32 length)
{
	struct sending sending = { 0 };

	if (!config_wants_limits)
		return TRACE_LIMIT_UNKNOWN;
	probe_sending(sk, &sending);
	if (!length || seq != sending.snd_nxt)
		return TRACE_LIMIT_UNKNOWN;
	sending.snd_nxt += length;
	sending.packets_out += (length - 1) / (sending.mss_cache ?: 1) + 1;
	sending.is_window_full = false;
	sending.is_throttled = is_queue_full(sk, skb);
	return netobs_trace_limit(&sending);
}

#endif
