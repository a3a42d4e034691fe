// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The addresses that processes connect to, before programs of others translate them. One program
 * sees the address before all others do, and notes it in the socket's storage: at the root, by
 * BPF_F_PREORDER, or before Linux 6.17 in the functions of connect_traced.bpf.c. Another program
 * sees the socket once it has both its ends: a TCP socket right before its first packet, a UDP
 * socket when user space lists the sockets, or when it is closed. If the remote end differs from
 * the address, it is reported; else the note is removed.
 *
 * Nothing is changed here, and all programs let connections proceed.
 *
 * Other hooks do not serve. Programs that BPF_PROG_ATTACH attaches stay when the process is killed.
 * Groups below the root are first only if programs of others are at the root. A tracepoint of the
 * system call reads an address that the process may still change. The LSM hook socket_connect needs
 * a kernel with that LSM active, and does not see TCP Fast Open.
 */
#include "vmlinux.h"

#include "bpf/connect.h"
#include "bpf/once.h"

#ifdef CONNECT_TRACED
#include "bpf/connect_aim.h"
#endif

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { AF_INET = 2, AF_INET6 = 10, PROCEED = 1, JUST_BEFORE_MS = 1000 };

enum {
	IS_SETTLED, /* nothing to report or to end */
	IS_ASKED,   /* the address is noted, the remote end is not known yet */
	IS_TRANSLATED, /* reported: as translated, or else as easily taken for it */
};

enum { SENT_MAX = 4 };

/* A translation of datagrams. */
struct sent {
	__u8 remote[16], asked[16];
	__u8 local[16];
	__u16 remote_port, asked_port, local_port, reserved;
};

/* The storage of a socket. */
struct asked {
	struct connect_event event; /* the last report, or the next one */
	__u8 before[16];	    /* remote end before the current call */
	__u16 before_port;
	__u8 state;
	__u8 next_sent; /* index in `sent`, a ring of reported translations */
	__u8 datagram[16]; /* address that the current datagram asks for */
	__u16 datagram_port;
	__u8 has_direct; /* some datagrams went where they were asked to go */
	__u8 is_mixed;	 /* report also remote ends that are not translated */
	struct sent sent[SENT_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct asked);
} connect_sockets SEC(".maps");

/* Tuples of translated sockets: a later socket may have the tuple, and not be translated. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECT_RECENT_MAX);
	__type(key, struct connect_tuple);
	__type(value, __u64);
} connect_recent SEC(".maps");

/* Tuples that were not translated: the upper half of their hash, and the time in milliseconds. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONNECT_DIRECT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} connect_direct SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CONNECT_RING_BYTES);
} connect_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connect_counters);
} connect_counters SEC(".maps");

/* Reads through a pointer of unknown origin: the kernel's verifier trusts none of a context here. */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

static __always_inline const struct sock *sock_of(const void *sk)
{
	return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct sock));
}

/* ---- Addresses ----------------------------------------------------------------------- */

static __always_inline void copy_ipv4(__u8 to[16], __be32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, sizeof(address));
}

static __always_inline bool is_same(const __u8 a[16], const __u8 b[16])
{
	const __u32 *one = (const __u32 *)a, *other = (const __u32 *)b;

	return one[0] == other[0] && one[1] == other[1] && one[2] == other[2] &&
	       one[3] == other[3];
}

/* The kernel takes 0.0.0.0 and :: for an address of this host. */
static __always_inline bool is_any(const __u8 address[16])
{
	const __u32 *words = (const __u32 *)address;

	return !words[0] && !words[1] && !words[3] &&
	       (!words[2] || words[2] == bpf_htonl(0xffff));
}

static __always_inline void read_remote(__u8 ret_address[16], __u16 *ret_port,
					const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	if (common->skc_family == AF_INET)
		copy_ipv4(ret_address, common->skc_daddr);
	else
		__builtin_memcpy(ret_address, &common->skc_v6_daddr, 16);
	*ret_port = bpf_ntohs(common->skc_dport);
}

static __always_inline void read_local(__u8 ret_address[16], const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	if (common->skc_family == AF_INET)
		copy_ipv4(ret_address, common->skc_rcv_saddr);
	else
		__builtin_memcpy(ret_address, &common->skc_v6_rcv_saddr, 16);
}

static __always_inline void read_ends(struct connect_tuple *tuple,
				      const struct sock *sk)
{
	read_remote(tuple->remote, &tuple->remote_port, sk);
	read_local(tuple->local, sk);
	tuple->local_port = sk->__sk_common.skc_num;
}

/* ---- Reports ------------------------------------------------------------------------- */

static __always_inline void report(struct connect_event *event, __u8 kind)
{
	struct connect_counters *counters =
		bpf_map_lookup_elem(&connect_counters, &(__u32){ 0 });
	__u64 flags = bpf_ringbuf_query(&connect_events, BPF_RB_AVAIL_DATA) >=
				      CONNECT_RING_BYTES / 4 ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	event->kind = kind;
	if (!counters)
		return;
	if (bpf_ringbuf_output(&connect_events, event, sizeof(*event), flags))
		__sync_fetch_and_add(&counters->lost, 1);
	else
		__sync_fetch_and_add(&counters->reported, 1);
}

#ifdef CONNECT_TRACED

/* The address that a UDP socket asked for is unknown. */
static __always_inline void count_missed(void)
{
	struct connect_counters *counters =
		bpf_map_lookup_elem(&connect_counters, &(__u32){ 0 });

	if (counters)
		__sync_fetch_and_add(&counters->missed, 1);
}

#endif

static __always_inline void report_translated(struct connect_event *event,
					      __u8 kind)
{
	bpf_map_update_elem(&connect_recent, &event->tuple, &event->time_ns,
			    BPF_ANY);
	report(event, kind);
}

static __always_inline __u64 hash_tuple(const struct connect_tuple *tuple)
{
	const __u32 *words = (const __u32 *)tuple;
	__u64 hash = 0;

	for (unsigned int i = 0; i < sizeof(*tuple) / sizeof(*words); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

static __always_inline __u64 *direct_slot(__u64 hash)
{
	__u32 index = hash % CONNECT_DIRECT_SLOTS;

	return bpf_map_lookup_elem(&connect_direct, &index);
}

static __always_inline __u32 now_ms(void)
{
	return bpf_ktime_get_boot_ns() / 1000000;
}

/* Packets have the time of the clock's tick, so packets of a previous socket may seem to be this one's. */
static __always_inline bool was_direct(const struct connect_tuple *tuple)
{
	__u64 hash = hash_tuple(tuple);
	const __u64 *slot = direct_slot(hash);

	return slot && *slot >> 32 == hash >> 32 &&
	       now_ms() - (__u32)*slot < JUST_BEFORE_MS;
}

static __always_inline void note_direct(const struct connect_tuple *tuple)
{
	__u64 hash = hash_tuple(tuple), *slot = direct_slot(hash);

	if (slot)
		*slot = hash >> 32 << 32 | now_ms();
}

/* Report a socket that is not translated, if another socket had its tuple and was translated. */
static __always_inline void report_direct(struct connect_event *event)
{
	const struct connect_counters *counters =
		bpf_map_lookup_elem(&connect_counters, &(__u32){ 0 });

	if (!counters || !counters->reported ||
	    bpf_map_delete_elem(&connect_recent, &event->tuple))
		return;
	report(event, CONNECT_DIRECT);
}

/* If UDP sockets may share a port, packets do not show which socket sent them. */
static __always_inline bool may_share_port(const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	return sk->sk_protocol != IPPROTO_TCP &&
	       (BPF_CORE_READ_BITFIELD_PROBED(common, skc_reuse) ||
		BPF_CORE_READ_BITFIELD_PROBED(common, skc_reuseport));
}

/* Connecting a UDP socket may have failed: it still has its previous remote end. */
static __always_inline bool may_have_failed(const struct asked *asked)
{
	const struct connect_tuple *tuple = &asked->event.tuple;

	return tuple->protocol != IPPROTO_TCP && asked->before_port &&
	       asked->before_port == tuple->remote_port &&
	       is_same(asked->before, tuple->remote);
}

/* Treat the event as not translated, so that later packets are not taken for translated ones. */
static __always_inline void forget_asked(struct connect_event *event)
{
	event->asked_port = event->tuple.remote_port;
	__builtin_memcpy(event->asked, event->tuple.remote, 16);
}

/* The socket has both ends now: report it if it is translated. */
static __always_inline void settle(struct asked *asked, const struct sock *sk)
{
	struct connect_event *event = &asked->event;
	bool is_direct;

	read_ends(&event->tuple, sk);
	if (!event->tuple.local_port || !event->tuple.remote_port)
		return;
	if (may_share_port(sk)) {
		asked->state = IS_SETTLED;
		return;
	}
	if (may_have_failed(asked)) {
		forget_asked(event);
		asked->is_mixed = 1;
	}
	is_direct = event->tuple.remote_port == event->asked_port &&
		    is_same(event->tuple.remote, event->asked);
	if (is_direct && !asked->is_mixed) {
		asked->state = IS_SETTLED;
		note_direct(&event->tuple);
		report_direct(event);
		return;
	}
	if (is_any(event->asked))
		return;
	asked->state = IS_TRANSLATED;
	event->is_another = was_direct(&event->tuple);
	report_translated(event, is_direct ? CONNECT_SENT : CONNECT_BEGIN);
}

static __always_inline void end(struct asked *asked)
{
	if (asked->state != IS_TRANSLATED)
		return;
	asked->event.time_ns = bpf_ktime_get_boot_ns();
	asked->state = IS_SETTLED;
	report(&asked->event, CONNECT_END);
}

/* Fill the event of @sent except its kind. */
static __always_inline void fill_sent(struct connect_event *event,
				      const struct asked *asked,
				      const struct sent *sent)
{
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_boot_ns();
	event->cookie = asked->event.cookie;
	event->pid = asked->event.pid;
	event->tuple.netns = asked->event.tuple.netns;
	event->tuple.protocol = asked->event.tuple.protocol;
	event->tuple.local_port = sent->local_port;
	event->tuple.remote_port = sent->remote_port;
	event->asked_port = sent->asked_port;
	__builtin_memcpy(event->tuple.local, sent->local, 16);
	__builtin_memcpy(event->tuple.remote, sent->remote, 16);
	__builtin_memcpy(event->asked, sent->asked, 16);
}

static __always_inline void end_datagrams(struct asked *asked)
{
	struct connect_event event;

	for (int i = 0; i < SENT_MAX; i++) {
		if (!asked->sent[i].remote_port)
			continue;
		fill_sent(&event, asked, &asked->sent[i]);
		report(&event, CONNECT_END);
		asked->sent[i].remote_port = 0;
	}
}

/* ---- Sockets connect ----------------------------------------------------------------- */

static __always_inline bool is_followed(__u32 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP ||
	       protocol == IPPROTO_UDPLITE;
}

/* End what was noted before a call: the socket may be connected already. */
static __always_inline void leave(struct asked *asked, const struct sock *sk)
{
	if (asked->state == IS_ASKED && asked->event.tuple.protocol != IPPROTO_TCP)
		settle(asked, sk);
	end(asked);
	asked->state = IS_SETTLED;
	read_remote(asked->before, &asked->before_port, sk);
}

/* Have user space list the UDP sockets. TCP sockets have both ends at once. */
static __always_inline void want_list(void)
{
	struct connect_counters *counters =
		bpf_map_lookup_elem(&connect_counters, &(__u32){ 0 });

	if (counters)
		__sync_fetch_and_add(&counters->udp, 1);
}

static __always_inline void copy_ipv6(__u8 to[16],
				      const volatile struct bpf_sock_addr *ctx)
{
	__u32 words[4] = { ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2],
			   ctx->user_ip6[3] };

	__builtin_memcpy(to, words, sizeof(words));
}

/* Begin a call to connect. The caller sets the address that it asks for, and the cookie. */
static __always_inline void renew(struct asked *asked, const struct sock *sk,
				  __be16 port)
{
	leave(asked, sk);
	end_datagrams(asked);
	asked->event.time_ns = bpf_ktime_get_boot_ns();
	asked->event.tuple.netns = sk->__sk_common.skc_net.net->ns.inum;
	asked->event.tuple.protocol = sk->sk_protocol;
	asked->event.asked_port = bpf_ntohs(port);
	asked->event.pid = bpf_get_current_pid_tgid() >> 32;
	if (sk->sk_protocol != IPPROTO_TCP)
		want_list();
}

#ifndef CONNECT_TRACED

/* NULL: the socket is not followed, or there is no memory. The caller sets the address, then IS_ASKED. */
static __always_inline struct asked *begin(struct bpf_sock_addr *ctx)
{
	struct asked *asked;

	if (!is_followed(ctx->protocol) || !ctx->sk)
		return NULL;
	asked = bpf_sk_storage_get(&connect_sockets, ctx->sk, NULL,
				   BPF_SK_STORAGE_GET_F_CREATE);
	if (!asked)
		return NULL;
	renew(asked, sock_of(ctx->sk), ctx->user_port);
	asked->event.cookie = bpf_get_socket_cookie(ctx);
	return asked;
}

SEC("cgroup/connect4")
int netobs_con_4(struct bpf_sock_addr *ctx)
{
	struct asked *asked = begin(ctx);

	if (!asked)
		return PROCEED;
	copy_ipv4(asked->event.asked, ctx->user_ip4);
	WRITE_ONCE(asked->state, IS_ASKED);
	return PROCEED;
}

SEC("cgroup/connect6")
int netobs_con_6(struct bpf_sock_addr *ctx)
{
	struct asked *asked = begin(ctx);

	if (!asked)
		return PROCEED;
	copy_ipv6(asked->event.asked, ctx);
	WRITE_ONCE(asked->state, IS_ASKED);
	return PROCEED;
}

#endif

#ifdef CONNECT_TRACED

/*
 * End the previous translation of a TCP socket whose call was not traced, so that its address is
 * unknown, and that of another socket with the tuple.
 */
static __always_inline void settle_unseen(struct bpf_sock_ops *ctx,
					  const struct sock *sk,
					  struct asked *asked)
{
	struct connect_event event = { 0 };

	if (asked)
		end(asked);
	read_ends(&event.tuple, sk);
	event.time_ns = bpf_ktime_get_boot_ns();
	event.cookie = bpf_get_socket_cookie(ctx);
	/* COMPAT(<6.10): programs of this type have no bpf_get_current_pid_tgid(). */
	event.pid = bpf_get_current_task_btf()->tgid;
	event.tuple.netns = sk->__sk_common.skc_net.net->ns.inum;
	event.tuple.protocol = IPPROTO_TCP;
	forget_asked(&event);
	note_direct(&event.tuple);
	report_direct(&event);
}

#endif

/* A TCP socket is about to send its SYN; the current process is the one that connects. */
SEC("sockops")
int netobs_con_tcp(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct asked *asked;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB || !sk)
		return PROCEED;
	asked = bpf_sk_storage_get(&connect_sockets, sk, NULL, 0);
#ifdef CONNECT_TRACED
	if (!asked || asked->state != IS_ASKED)
		settle_unseen(ctx, sock_of(sk), asked);
#endif
	if (!asked)
		return PROCEED;
	if (asked->state == IS_ASKED)
		settle(asked, sock_of(sk));
	if (asked->state != IS_TRANSLATED)
		bpf_sk_storage_delete(&connect_sockets, sk);
	return PROCEED;
}

/* ---- Datagrams ----------------------------------------------------------------------- */

static __always_inline struct asked *follow_datagrams(struct bpf_sock_addr *ctx)
{
	if (!is_followed(ctx->protocol) || !ctx->sk)
		return NULL;
	return bpf_sk_storage_get(&connect_sockets, ctx->sk, NULL,
				  BPF_SK_STORAGE_GET_F_CREATE);
}

#ifndef CONNECT_TRACED

static __always_inline struct asked *begin_datagram(struct bpf_sock_addr *ctx)
{
	struct asked *asked = follow_datagrams(ctx);

	if (asked)
		asked->datagram_port = bpf_ntohs(ctx->user_port);
	return asked;
}

SEC("cgroup/sendmsg4")
int netobs_con_s4(struct bpf_sock_addr *ctx)
{
	struct asked *asked = begin_datagram(ctx);

	if (asked)
		copy_ipv4(asked->datagram, ctx->user_ip4);
	return PROCEED;
}

SEC("cgroup/sendmsg6")
int netobs_con_s6(struct bpf_sock_addr *ctx)
{
	struct asked *asked = begin_datagram(ctx);

	if (asked)
		copy_ipv6(asked->datagram, ctx);
	return PROCEED;
}

static __always_inline struct asked *find_asked(struct bpf_sock_addr *ctx)
{
	return bpf_sk_storage_get(&connect_sockets, ctx->sk, NULL, 0);
}

#else

/* Move the thread's address to the socket. Without a port, the datagram has no address of its own. */
static __always_inline struct asked *find_asked(struct bpf_sock_addr *ctx)
{
	const struct aim *aim;
	struct asked *asked;

	if (!ctx->user_port)
		return NULL;
	aim = find_aim(sock_of(ctx->sk), AIM_DATAGRAM);
	if (!aim)
		count_missed();
	asked = aim ? follow_datagrams(ctx) : NULL;
	if (!asked)
		return NULL;
	asked->datagram_port = bpf_ntohs(aim->port);
	__builtin_memcpy(asked->datagram, aim->address, 16);
	forget_aim();
	return asked;
}

#endif

static __always_inline bool is_ipv4(const __u8 address[16])
{
	const __u32 *words = (const __u32 *)address;

	return !words[0] && !words[1] && words[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_same_sent(const struct sent *a,
					 const struct sent *b)
{
	return a->remote_port == b->remote_port &&
	       a->asked_port == b->asked_port &&
	       a->local_port == b->local_port && is_same(a->local, b->local) &&
	       is_same(a->remote, b->remote) && is_same(a->asked, b->asked);
}

/* Report @sent, in place of the oldest translation, which is not followed any more. */
static __always_inline void replace_sent(struct asked *asked,
					 const struct sent *sent)
{
	struct sent *place = &asked->sent[asked->next_sent % SENT_MAX];
	struct connect_event event;

	if (place->remote_port) {
		fill_sent(&event, asked, place);
		report(&event, CONNECT_END);
	}
	*place = *sent;
	asked->next_sent++;
	asked->is_mixed = 1;
	fill_sent(&event, asked, sent);
	event.is_another = asked->has_direct;
	report(&event, CONNECT_SENT);
}

/* @return whether the connection was dissolved (connect() to AF_UNSPEC), which runs no program */
static __always_inline bool is_dissolved(const struct asked *asked,
					 const struct sock *sk)
{
	return asked->state == IS_TRANSLATED &&
	       (!sk->__sk_common.skc_dport ||
		sk->__sk_common.skc_num != asked->event.tuple.local_port);
}

/* @return whether the socket is also connected to that end, not translated or not known to be */
static __always_inline bool is_connected_there(const struct asked *asked,
					       const struct sent *sent,
					       const struct sock *sk)
{
	__u8 remote[16];
	__u16 port;

	if (asked->state != IS_SETTLED || !sk->__sk_common.skc_dport)
		return false;
	read_remote(remote, &port, sk);
	return port == sent->remote_port && is_same(remote, sent->remote);
}

/* @sent: without its local end. Once a datagram was translated, direct ones to the same end are noted. */
static __always_inline void note_sent(struct bpf_sock_addr *ctx,
				      struct asked *asked, struct sent *sent)
{
	const struct sock *sk = sock_of(ctx->sk);
	const bool is_direct = sent->remote_port == sent->asked_port &&
			       is_same(sent->remote, sent->asked);

	asked->has_direct |= is_direct;
	if (is_dissolved(asked, sk)) {
		end(asked);
		asked->is_mixed = 1;
	}
	if (is_any(sent->asked) || may_share_port(sk))
		return;
	if (is_direct ? !asked->is_mixed && asked->state == IS_SETTLED :
			is_connected_there(asked, sent, sk))
		return;
	if (is_any(sent->local))
		read_local(sent->local, sk);
	if (is_any(sent->local)) {
		__builtin_memset(sent->local, 0, 16);
		if (is_ipv4(sent->remote))
			copy_ipv4(sent->local, 0);
	}
	sent->local_port = sk->__sk_common.skc_num;
	for (int i = 0; i < SENT_MAX; i++)
		if (is_same_sent(&asked->sent[i], sent))
			return;
	asked->event.cookie = bpf_get_socket_cookie(ctx);
	asked->event.pid = bpf_get_current_pid_tgid() >> 32;
	asked->event.tuple.netns = sk->__sk_common.skc_net.net->ns.inum;
	asked->event.tuple.protocol = ctx->protocol;
	replace_sent(asked, sent);
}

/* Runs after programs of others. */
static __always_inline struct asked *find_datagram(struct bpf_sock_addr *ctx,
						   struct sent *sent)
{
	struct asked *asked;

	__builtin_memset(sent, 0, sizeof(*sent));
	if (!is_followed(ctx->protocol) || !ctx->sk)
		return NULL;
	asked = find_asked(ctx);
	if (!asked)
		return NULL;
	sent->remote_port = bpf_ntohs(ctx->user_port);
	sent->asked_port = asked->datagram_port;
	__builtin_memcpy(sent->asked, asked->datagram, 16);
	return asked;
}

SEC("cgroup/sendmsg4")
int netobs_con_t4(struct bpf_sock_addr *ctx)
{
	struct sent sent;
	struct asked *asked = find_datagram(ctx, &sent);

	if (!asked)
		return PROCEED;
	copy_ipv4(sent.remote, ctx->user_ip4);
	if (ctx->msg_src_ip4)
		copy_ipv4(sent.local, ctx->msg_src_ip4);
	note_sent(ctx, asked, &sent);
	return PROCEED;
}

/* The verifier refuses addresses in the context that the compiler computes. */
static __always_inline void copy_source6(__u8 to[16],
					 const volatile struct bpf_sock_addr *ctx)
{
	__u32 words[4] = { ctx->msg_src_ip6[0], ctx->msg_src_ip6[1],
			   ctx->msg_src_ip6[2], ctx->msg_src_ip6[3] };

	__builtin_memcpy(to, words, sizeof(words));
}

SEC("cgroup/sendmsg6")
int netobs_con_t6(struct bpf_sock_addr *ctx)
{
	struct sent sent;
	struct asked *asked = find_datagram(ctx, &sent);

	if (!asked)
		return PROCEED;
	copy_ipv6(sent.remote, ctx);
	copy_source6(sent.local, ctx);
	note_sent(ctx, asked, &sent);
	return PROCEED;
}

/* ---- Their ends ---------------------------------------------------------------------- */

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(netobs_con_end, struct sock *sk)
{
	struct asked *asked = bpf_sk_storage_get(&connect_sockets, sk, NULL, 0);

	if (asked)
		end(asked);
	return 0;
}

/* The socket is closed. A TCP socket continues until its peer has all data. */
SEC("cgroup/sock_release")
int netobs_con_rel(struct bpf_sock *ctx)
{
	struct asked *asked;

	if (ctx->protocol == IPPROTO_TCP)
		return PROCEED;
	asked = bpf_sk_storage_get(&connect_sockets, ctx, NULL, 0);
	if (!asked)
		return PROCEED;
	if (asked->state == IS_ASKED)
		settle(asked, sock_of(ctx));
	end(asked);
	end_datagrams(asked);
	return PROCEED;
}

/* Handle UDP sockets that have connected since the last listing. */
static __always_inline int settle_listed(struct sock *sk)
{
	struct asked *asked;

	if (!sk || sk->sk_protocol == IPPROTO_TCP)
		return 0;
	asked = bpf_sk_storage_get(&connect_sockets, sk, NULL, 0);
	if (asked && asked->state == IS_ASKED)
		settle(asked, sk);
	return 0;
}

SEC("iter/bpf_sk_storage_map")
int netobs_con_ls(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	return settle_listed(ctx->sk);
}

/* Settle listed sockets on kernels that refuse iterators over maps. */
SEC("iter/task_file")
int netobs_con_lsf(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;

	return socket ? settle_listed(socket->sk) : 0;
}
