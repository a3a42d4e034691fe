/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fills events from sockets, and writes them to the ring buffer. */
#ifndef NETOBS_BPF_SESSION_REPORT_H
#define NETOBS_BPF_SESSION_REPORT_H

#include "bpf/session/owner.h"

#include <bpf/bpf_endian.h>

const volatile __u32 config_wake = 1 << 19; /* bytes in the ring that wake */
/* Report owners only, also of UDP sockets; the first event in an empty ring wakes nobody. */
const volatile bool config_owners = false;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} session_events SEC(".maps");

static __always_inline void copy_ipv4(__u8 to[16], __be32 address)
{
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, sizeof(address));
}

/* The address of an unbound socket depends on its family: ::, or ::ffff:0.0.0.0. */
static __always_inline void fill_addresses(struct session_event *event,
					   const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	if (BPF_CORE_READ(common, skc_family) == AF_INET) {
		copy_ipv4(event->local, BPF_CORE_READ(common, skc_rcv_saddr));
		copy_ipv4(event->remote, BPF_CORE_READ(common, skc_daddr));
		return;
	}
	BPF_CORE_READ_INTO(&event->local, sk,
			   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
	BPF_CORE_READ_INTO(&event->remote, sk,
			   __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	event->is_dual = !BPF_CORE_READ_BITFIELD_PROBED(common, skc_ipv6only);
}

/* Fill a zeroed event from a socket, also from one of which only the address is known. */
static __always_inline void fill_ends(struct session_event *event,
				      const struct sock *sk)
{
	event->time_ns = bpf_ktime_get_boot_ns();
	event->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	event->protocol = BPF_CORE_READ(sk, sk_protocol);
	event->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	event->local_port =
		bpf_ntohs(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
	event->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	fill_addresses(event, sk);
}

/* @return a number that changes when the socket is bound, or connected, to another address or port */
static __always_inline __u32 ends_of(const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;
	__u32 ends = BPF_CORE_READ((struct inet_sock *)sk, inet_sport) ^
		     common->skc_dport << 16;
	__be32 local, remote;

	if (common->skc_family == AF_INET) {
		local = common->skc_rcv_saddr;
		remote = common->skc_daddr;
		/* Loaded here, not by one instruction for both families, from the stack. */
		barrier_var(local);
		barrier_var(remote);
	} else {
		BPF_CORE_READ_INTO(
			&local, sk,
			__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3]);
		BPF_CORE_READ_INTO(&remote, sk,
				   __sk_common.skc_v6_daddr.in6_u.u6_addr32[3]);
	}
	return ends ^ local ^ remote * 31;
}

/* If the addresses of a UDP socket changed since its last report, they are not older than that report. */
static __always_inline __u64 start_of(const struct sock *sk,
				      const struct session_socket *socket)
{
	return socket->ends && socket->ends != ends_of(sk) ? socket->reported_ns :
							     socket->start_ns;
}

/* Fill the SESSION_OWNED_SIZE bytes before the TCP counters; the event is zeroed. */
static __always_inline void fill_owned(struct session_event *event,
				       struct sock *sk,
				       struct session_socket *socket)
{
	const struct session_owner *owner = owner_of(sk, socket);

	fill_ends(event, sk);
	event->cookie = bpf_get_socket_cookie(sk);
	if (owner)
		event->owner = *owner;
	if (!socket)
		return;
	event->start_ns = start_of(sk, socket);
	event->opened = socket->opened;
}

/*
 * User space is woken by the first event in an empty ring buffer, and by the one that fills it
 * half. As two CPUs may do that at once, and neither notice it, so does each event beyond that
 * begins another sixteenth.
 */
static __always_inline __u64 wake_flags(__u64 used, __u32 size)
{
	__u64 after = used + BPF_RINGBUF_HDR_SZ + size;
	__u64 step = config_wake / 8;

	if (!used && !config_owners)
		return BPF_RB_FORCE_WAKEUP;
	return after >= config_wake && used / step != after / step ?
		       BPF_RB_FORCE_WAKEUP :
		       BPF_RB_NO_WAKEUP;
}

#endif
