// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * COMPAT(<6.17): links to control groups have no flag with which a program is first in all cases. The
 * functions that run the programs of groups get the kernel's copy of the address, and are traced instead.
 */
#define CONNECT_TRACED

#include "connect.bpf.c"

enum { SIN6_LEN_MIN = 24 }; /* without sin6_scope_id, RFC 2133 */

/* ---- Sockets of TCP connect: they are locked ----------------------------------------- */

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

SEC("fentry/tcp_v4_pre_connect")
int BPF_PROG(netobs_con_ft4, struct sock *sk, struct sockaddr *address, int length)
{
	struct sockaddr_in to;
	struct asked *asked;

	if (length < (int)sizeof(to) ||
	    bpf_probe_read_kernel(&to, sizeof(to), address))
		return 0;
	asked = begin_traced(sk, to.sin_port);
	if (!asked)
		return 0;
	copy_ipv4(asked->event.asked, to.sin_addr.s_addr);
	WRITE_ONCE(asked->state, IS_ASKED);
	return 0;
}

SEC("fentry/tcp_v6_pre_connect")
int BPF_PROG(netobs_con_ft6, struct sock *sk, struct sockaddr *address, int length)
{
	struct sockaddr_in6 to;
	struct asked *asked;

	if (length < SIN6_LEN_MIN ||
	    bpf_probe_read_kernel(&to, SIN6_LEN_MIN, address))
		return 0;
	asked = begin_traced(sk, to.sin6_port);
	if (!asked)
		return 0;
	__builtin_memcpy(asked->event.asked, &to.sin6_addr, 16);
	WRITE_ONCE(asked->state, IS_ASKED);
	return 0;
}

/* ---- Sockets of UDP connect, or send datagrams --------------------------------------- */

/* As long as the kernel looks at: a shorter one is refused, or there is none. */
static __always_inline void note_ipv4(const struct sock *sk, enum aim_kind kind,
				      const void *address, int length)
{
	struct aim aim = { .sk = (__u64)sk, .kind = kind };
	struct sockaddr_in to;

	if (!address || length < (int)sizeof(to) ||
	    bpf_probe_read_kernel(&to, sizeof(to), address)) {
		forget_aim();
		return;
	}
	copy_ipv4(aim.address, to.sin_addr.s_addr);
	aim.port = to.sin_port;
	note_aim(&aim);
}

/* With an address of IPv4, the kernel calls the function of IPv4 next, whose program notes it. */
static __always_inline void note_ipv6(const struct sock *sk, enum aim_kind kind,
				      const void *address, int length)
{
	struct aim aim = { .sk = (__u64)sk, .kind = kind };
	struct sockaddr_in6 to;

	if (!address || length < SIN6_LEN_MIN ||
	    bpf_probe_read_kernel(&to, SIN6_LEN_MIN, address) ||
	    to.sin6_family != AF_INET6) {
		forget_aim();
		return;
	}
	__builtin_memcpy(aim.address, &to.sin6_addr, 16);
	aim.port = to.sin6_port;
	note_aim(&aim);
}

SEC("fentry/udp_pre_connect")
int BPF_PROG(netobs_con_fu4, struct sock *sk, struct sockaddr *address, int length)
{
	note_ipv4(sk, AIM_CONNECT, address, length);
	return 0;
}

SEC("fentry/udpv6_pre_connect")
int BPF_PROG(netobs_con_fu6, struct sock *sk, struct sockaddr *address, int length)
{
	note_ipv6(sk, AIM_CONNECT, address, length);
	return 0;
}

SEC("fentry/udp_sendmsg")
int BPF_PROG(netobs_con_fs4, struct sock *sk, struct msghdr *message)
{
	note_ipv4(sk, AIM_DATAGRAM, message->msg_name, message->msg_namelen);
	return 0;
}

SEC("fentry/udpv6_sendmsg")
int BPF_PROG(netobs_con_fs6, struct sock *sk, struct msghdr *message)
{
	note_ipv6(sk, AIM_DATAGRAM, message->msg_name, message->msg_namelen);
	return 0;
}

/* The socket is locked now. It may run behind programs of others: it takes the thread's address. */
static __always_inline void begin_udp(struct bpf_sock_addr *ctx)
{
	const struct aim *aim;
	struct asked *asked;

	if (!is_followed(ctx->protocol) || ctx->protocol == IPPROTO_TCP ||
	    !ctx->sk)
		return;
	aim = find_aim(sock_of(ctx->sk), AIM_CONNECT);
	if (!aim)
		count_missed();
	asked = bpf_sk_storage_get(&connect_sockets, ctx->sk, NULL,
				   aim ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!asked)
		return;
	renew(asked, sock_of(ctx->sk), aim ? aim->port : 0);
	if (!aim)
		return;
	asked->event.cookie = bpf_get_socket_cookie(ctx);
	__builtin_memcpy(asked->event.asked, aim->address, 16);
	forget_aim();
	WRITE_ONCE(asked->state, IS_ASKED);
}

SEC("cgroup/connect4")
int netobs_con_c4(struct bpf_sock_addr *ctx)
{
	begin_udp(ctx);
	return PROCEED;
}

SEC("cgroup/connect6")
int netobs_con_c6(struct bpf_sock_addr *ctx)
{
	begin_udp(ctx);
	return PROCEED;
}
