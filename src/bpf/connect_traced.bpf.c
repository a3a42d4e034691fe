// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * COMPAT(<6.17): links to control groups have no flag with which a program is first in all cases. The
 * functions that run the programs of groups get the kernel's copy of the address, and are traced instead.
 */
#define CONNECT_TRACED

#include "connect.bpf.c"

/* ---- Sockets connect ----------------------------------------------------------------- */

/* As begin(), but the caller has seen the address. */
static __always_inline struct asked *begin_traced(struct sock *sk, __be16 port)
{
	struct asked *asked;

	if (!is_followed(sk->sk_protocol))
		return NULL;
	asked = bpf_sk_storage_get(&connect_sockets, sk, NULL,
				   BPF_SK_STORAGE_GET_F_CREATE);
	if (!asked)
		return NULL;
	renew(asked, sock_of(sk), port);
	asked->event.cookie = bpf_get_socket_cookie(sk);
	return asked;
}

static __always_inline int begin_ipv4(struct sock *sk,
				      const struct sockaddr *address)
{
	struct sockaddr_in to;
	struct asked *asked;

	if (bpf_probe_read_kernel(&to, sizeof(to), address) ||
	    to.sin_family != AF_INET)
		return 0;
	asked = begin_traced(sk, to.sin_port);
	if (!asked)
		return 0;
	copy_ipv4(asked->event.asked, to.sin_addr.s_addr);
	WRITE_ONCE(asked->state, IS_ASKED);
	return 0;
}

/* For an address of IPv4, the kernel also calls the function of IPv4, which is traced itself. */
static __always_inline int begin_ipv6(struct sock *sk,
				      const struct sockaddr *address)
{
	struct sockaddr_in6 to;
	struct asked *asked;

	if (bpf_probe_read_kernel(&to, sizeof(to), address) ||
	    to.sin6_family != AF_INET6)
		return 0;
	asked = begin_traced(sk, to.sin6_port);
	if (!asked)
		return 0;
	__builtin_memcpy(asked->event.asked, &to.sin6_addr, 16);
	WRITE_ONCE(asked->state, IS_ASKED);
	return 0;
}

SEC("fentry/tcp_v4_pre_connect")
int BPF_PROG(netobs_con_ft4, struct sock *sk, struct sockaddr *address)
{
	return begin_ipv4(sk, address);
}

SEC("fentry/tcp_v6_pre_connect")
int BPF_PROG(netobs_con_ft6, struct sock *sk, struct sockaddr *address)
{
	return begin_ipv6(sk, address);
}

SEC("fentry/udp_pre_connect")
int BPF_PROG(netobs_con_fu4, struct sock *sk, struct sockaddr *address)
{
	return begin_ipv4(sk, address);
}

SEC("fentry/udpv6_pre_connect")
int BPF_PROG(netobs_con_fu6, struct sock *sk, struct sockaddr *address)
{
	return begin_ipv6(sk, address);
}

/* ---- Datagrams ----------------------------------------------------------------------- */

static __always_inline int note_aim(const struct aim *aim)
{
	__u64 thread = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&connect_aims, &thread, aim, BPF_ANY);
	return 0;
}

SEC("fentry/udp_sendmsg")
int BPF_PROG(netobs_con_fs4, struct sock *sk, struct msghdr *message)
{
	struct aim aim = { 0 };
	struct sockaddr_in to;

	if (!message->msg_name ||
	    bpf_probe_read_kernel(&to, sizeof(to), message->msg_name))
		return 0;
	copy_ipv4(aim.address, to.sin_addr.s_addr);
	aim.port = bpf_ntohs(to.sin_port);
	return note_aim(&aim);
}

/* Datagrams to addresses of IPv4 pass udp_sendmsg() next, whose program overwrites the note. */
SEC("fentry/udpv6_sendmsg")
int BPF_PROG(netobs_con_fs6, struct sock *sk, struct msghdr *message)
{
	struct aim aim = { 0 };
	struct sockaddr_in6 to;

	if (!message->msg_name ||
	    bpf_probe_read_kernel(&to, sizeof(to), message->msg_name))
		return 0;
	__builtin_memcpy(aim.address, &to.sin6_addr, 16);
	aim.port = bpf_ntohs(to.sin6_port);
	return note_aim(&aim);
}
