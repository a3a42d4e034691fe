// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets that the kernel drops, by its tracepoint kfree_skb. Buffers that are freed after use have
 * another tracepoint, consume_skb.
 *
 * A packet may be dropped before its headers were written, or after they were removed. So only
 * headers that its buffer marks as present are read; without these, the socket has the addresses.
 */
#include "vmlinux.h"

#include "bpf/drops.h"
#include "bpf/nat_entry.h"
#include "bpf/nullable.h"
#include "bpf/parse/parse.h"
#include "bpf/parse/wire.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	AF_INET = 2,
	AF_INET6 = 10,
	AF_PACKET = 17,
	HEADERS_MAX = 256,	      /* bytes of a packet that are parsed */
	NETNS_INODE_MIN = 0xefffff00, /* no inode of a namespace is lower */
	NO_HEADER = 0xffff,	      /* an offset that is not set */
};

const volatile bool config_has_reason = false;
const volatile bool config_has_nat = false;
const volatile struct nat_layout config_nat;
/* Not static: all constants are members of the skeleton's struct. */
const char function_format[4] = "%pS";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DROPS_MAX);
	__type(key, struct drop_key);
	__type(value, struct drop_value);
} drops SEC(".maps");

/* Entries without addresses, if `drops` has no room: so a flood does not hide other drops. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DROPS_REST_MAX);
	__type(key, struct drop_key);
	__type(value, struct drop_value);
} drops_rest SEC(".maps");

/* Names of locations, as the kernel's %pS writes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DROP_FUNCTIONS_MAX);
	__type(key, __u64);
	__type(value, char[DROP_FUNCTION_LEN]);
} drop_functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct drop_state);
} drop_state SEC(".maps");

/* Memory of each of the two programs. */
struct drop_scratch {
	__u64 is_busy;
	struct packet pkt;
	struct drop_key key;
	struct nat_tuple before;
	char function[DROP_FUNCTION_LEN];
	/* The parser keeps within the bytes that were read; the verifier knows only this limit. */
	__u8 headers[2 * (CURSOR_MASK + 1)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct drop_scratch);
} drop_scratch SEC(".maps");

/* A dropped buffer, and the values that are not in its key. */
struct dropped {
	struct sk_buff *skb;
	const struct sock *receiver; /* or NULL; Linux 6.11 */
	struct count count;
	char interface[16];
};

/* ---- Where it was ---------------------------------------------------------------------- */

static __always_inline bool is_netns(__u32 inode)
{
	return inode >= NETNS_INODE_MIN;
}

static __always_inline __u32 read_netns(const struct sock *sk)
{
	return sk ? sk->__sk_common.skc_net.net->ns.inum : 0;
}

/* Socket queues reuse the member of the device for other values, so check that it looks like a device. */
static __always_inline bool fill_device(struct drop_key *key,
					struct dropped *dropped)
{
	const struct sk_buff *skb = dropped->skb;
	const struct net_device *dev = skb->dev;
	__u32 netns;

	if (!dev)
		return false;
	netns = BPF_CORE_READ(dev, nd_net.net, ns.inum);
	if (!is_netns(netns))
		return false;
	key->netns = netns;
	key->ifindex = BPF_CORE_READ(dev, ifindex);
	bpf_probe_read_kernel(dropped->interface, sizeof(dropped->interface),
			      (const void *)dev +
				      bpf_core_field_offset(struct net_device,
							    name));
	return true;
}

static __always_inline void fill_place(struct drop_key *key,
				       struct dropped *dropped)
{
	const struct sk_buff *skb = dropped->skb;
	__u32 netns;

	if (fill_device(key, dropped))
		return;
	netns = read_netns(dropped->receiver);
	if (!is_netns(netns))
		netns = read_netns(skb->sk);
	key->netns = is_netns(netns) ? netns : 0;
	key->ifindex = skb->skb_iif;
}

/* ---- What it was ------------------------------------------------------------------------ */

static __always_inline bool is_network_family(__u16 family)
{
	return family == AF_INET || family == AF_INET6 || family == AF_PACKET;
}

static __always_inline __u16 read_family(const struct sock *sk)
{
	return sk ? sk->__sk_common.skc_family : 0;
}

/* Sort out buffers that are no packets: the tracepoint sees buffers of all kinds of sockets. */
static __always_inline bool is_packet(const struct drop_key *key,
				      const struct dropped *dropped)
{
	const struct sk_buff *skb = dropped->skb;

	return key->ifindex || skb->protocol ||
	       is_network_family(read_family(dropped->receiver)) ||
	       is_network_family(read_family(skb->sk));
}

static __always_inline __u32 segments_of(const struct sk_buff *skb,
					 struct buffer *buf)
{
	const unsigned char *end = skb->head;
	const struct skb_shared_info *info;

	end += skb->end;
	info = (const void *)end;
	buf->gso_size = BPF_CORE_READ(info, gso_size);
	buf->gso_segs = BPF_CORE_READ(info, gso_segs);
	return buf->gso_size && buf->gso_segs ? buf->gso_segs : 1;
}

/* A packet that a socket has just begun has no headers until lower layers write them. */
static __always_inline void fill_by_socket(struct drop_key *key,
					   const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	__u16 family = read_family(sk);
	__be32 src, dst;

	if (family == AF_INET) {
		src = sk->__sk_common.skc_rcv_saddr;
		dst = sk->__sk_common.skc_daddr;
		if (!dst)
			return;
		addr_from_v4(&key->src, src);
		addr_from_v4(&key->dst, dst);
	} else if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&key->src, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&key->dst, sk, __sk_common.skc_v6_daddr);
		if (!key->dst.lanes[0] && !key->dst.lanes[1])
			return;
	} else {
		return;
	}
	key->proto = (__u8)sk->sk_protocol;
	key->src_port = sk->__sk_common.skc_num;
	key->dst_port = bpf_ntohs(sk->__sk_common.skc_dport);
	key->has |= DROP_HAS_ADDRS;
	if (key->proto == IP_PROTO_TCP || key->proto == IP_PROTO_UDP)
		key->has |= DROP_HAS_PORTS;
	key->unparsed = 0;
}

/* @return the offset of the network header in the buffer; 0: there is none */
static __always_inline __u32 find_network(const struct sk_buff *skb)
{
	__u16 offset = skb->network_header;

	return offset == NO_HEADER ? 0 : offset;
}

static __always_inline void take_parsed(struct drop_key *key,
					const struct packet *pkt)
{
	key->src = pkt->key.src;
	key->dst = pkt->key.dst;
	key->src_port = pkt->key.src_port;
	key->dst_port = pkt->key.dst_port;
	key->proto = pkt->key.proto;
	key->has |= DROP_HAS_ADDRS;
	if (pkt->fragment != FRAGMENT_LATER)
		key->has |= DROP_HAS_PORTS;
}

static __always_inline int parse_headers(struct drop_scratch *scratch,
					 const unsigned char *at, __u32 len)
{
	struct cursor c = { .start = scratch->headers, .pos = scratch->headers };
	int type;

	len = LIMITED(len, HEADERS_MAX);
	if (bpf_probe_read_kernel(scratch->headers, len, at))
		return reject(UNPARSED_SHORT);
	c.end = c.start + len;
	packet_init(&scratch->pkt);
	type = peek_ip(&c);
	return type < 0 ? type : parse_network(&c, &scratch->pkt, type);
}

/* @return the parsed packet, or NULL: key->unparsed says why */
static __always_inline const struct packet *
parse_dropped(struct drop_scratch *scratch, const struct sk_buff *skb,
	      __u32 network)
{
	struct drop_key *key = &scratch->key;
	__u32 tail = skb->tail;
	int ret = reject(UNPARSED_NOT_IP);

	if (key->ethertype == ETHERTYPE_ARP)
		ret = reject(UNPARSED_ARP);
	else if (key->ethertype == ETHERTYPE_PPPOE_DISCOVERY ||
		 key->ethertype == ETHERTYPE_PPPOE_SESSION)
		ret = reject(UNPARSED_PPP);
	else if (network && tail <= network)
		ret = reject(UNPARSED_SHORT);
	else if (network && (key->ethertype == ETHERTYPE_IPV4 ||
			     key->ethertype == ETHERTYPE_IPV6))
		ret = parse_headers(scratch, skb->head + network, tail - network);
	if (ret >= 0) {
		take_parsed(key, &scratch->pkt);
		return &scratch->pkt;
	}
	key->unparsed = 1 + reject_reason(ret);
	return NULL;
}

/* @return whether the entry was read, and is that of the packet */
static __always_inline bool read_origin(struct nat_tuple *before, __u64 nfct,
					const struct drop_key *key)
{
	const __u32 info = nfct & CT_INFO_MASK;
	const __u32 offset = nat_direction(info) == NAT_REPLY ?
				     config_nat.tuples[NAT_REPLY] :
				     config_nat.tuples[NAT_ORIGINAL];

	nfct &= ~(__u64)CT_INFO_MASK;
	if (!nfct || bpf_probe_read_kernel(before, sizeof(*before),
					   (const void *)(nfct + offset)))
		return false;
	return nat_is_own(key->proto, info, before) &&
	       before->family ==
		       (key->ethertype == ETHERTYPE_IPV6 ? AF_INET6 : AF_INET);
}

/* The packet's conntrack entry has the tuple that it came in with, whatever NAT has made of it. */
static __always_inline void fill_origin(struct drop_scratch *scratch,
					const struct sk_buff *skb)
{
	struct nat_tuple *before = &scratch->before;
	struct drop_key *key = &scratch->key;

	if (!config_has_nat || !read_origin(before, translated_nfct(skb), key))
		return;
	addr_of_nat(&key->orig_src, before->src, before->family == AF_INET);
	addr_of_nat(&key->orig_dst, before->dst, before->family == AF_INET);
	/* The type and code of ICMP stay. */
	key->orig_src_port = key->src_port;
	key->orig_dst_port = key->dst_port;
	key->has |= DROP_HAS_ORIG;
	if (!proto_has_ports(key->proto))
		return;
	key->orig_src_port = bpf_ntohs(before->src_port);
	key->orig_dst_port = bpf_ntohs(before->dst_port);
	key->has |= DROP_HAS_ORIG_PORTS;
}

static __always_inline void fill_packet(struct drop_scratch *scratch,
					struct dropped *dropped)
{
	const struct sk_buff *skb = dropped->skb;
	struct buffer buf = { .len = skb->len };
	struct drop_key *key = &scratch->key;
	const struct packet *pkt;
	struct wire_size size;
	__u32 network = find_network(skb), data;

	dropped->count.packets = segments_of(skb, &buf);
	dropped->count.bytes = buf.len;
	key->ethertype = bpf_ntohs(skb->protocol);
	pkt = parse_dropped(scratch, skb, network);
	if (!pkt) {
		fill_by_socket(key, skb);
		return;
	}
	fill_origin(scratch, skb);
	/* Layers above have removed headers, those below have put some in front. */
	data = skb->data - skb->head;
	buf.len += data - network;
	size = wire_size(pkt, &buf);
	dropped->count = (struct count){ size.packets, size.bytes };
}

/* ---- Counting --------------------------------------------------------------------------- */

static __always_inline void name_function(struct drop_scratch *scratch,
					  __u64 location)
{
	if (bpf_map_lookup_elem(&drop_functions, &location))
		return;
	__builtin_memset(scratch->function, 0, sizeof(scratch->function));
	/* COMPAT(<5.13): user space reads /proc/kallsyms. */
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_snprintf))
		return;
	if (bpf_snprintf(scratch->function, sizeof(scratch->function),
			 function_format, &location, sizeof(location)) > 0)
		bpf_map_update_elem(&drop_functions, &location,
				    scratch->function, BPF_ANY);
}

static __always_inline void add_count(struct drop_value *value,
				      const struct dropped *dropped)
{
	__sync_fetch_and_add(&value->packets, dropped->count.packets);
	__sync_fetch_and_add(&value->bytes, dropped->count.bytes);
	value->last_ns = bpf_ktime_get_boot_ns();
}

/*
 * Drops by one call in the kernel, at one interface, have a share of the entries: at most as many
 * as are free. So one flood takes half of them, two floods a third each, and other drops find room.
 */
static __always_inline __u32 share_of(const struct drop_key *key)
{
	__u64 place = (__u64)key->netns << 32 | key->ifindex;

	return (__u32)((place ^ key->location) * 0x9e3779b97f4a7c15ULL >> 56);
}

/* @return the entry, which another CPU may have added; NULL: there is no room */
static __always_inline struct drop_value *
add_entry(void *map, const struct drop_key *key, const struct dropped *dropped,
	  bool *ret_is_own)
{
	struct drop_value first = { 0 };

	__builtin_memcpy(first.interface, dropped->interface,
			 sizeof(first.interface));
	*ret_is_own = !bpf_map_update_elem(map, key, &first, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* CPUs that check at the same moment may exceed the share by a few entries. */
static __always_inline bool has_room(const struct drop_state *state,
				     __u32 generation, __u32 share)
{
	const volatile struct drop_used *used = state->used;

	return used[generation].of_share[share] + used[0].all + used[1].all <
	       DROPS_MAX;
}

/* @return false: not counted, as there is no room */
static __always_inline bool count_packet(struct drop_state *state,
					 const struct drop_key *key,
					 const struct dropped *dropped)
{
	struct drop_value *value = bpf_map_lookup_elem(&drops, key);
	const __u32 generation = key->generation & 1;
	const __u32 share = share_of(key);
	bool is_own = false;

	if (!value && has_room(state, generation, share))
		value = add_entry(&drops, key, dropped, &is_own);
	if (is_own) {
		__sync_fetch_and_add(&state->used[generation].all, 1);
		__sync_fetch_and_add(&state->used[generation].of_share[share], 1);
	}
	if (value)
		add_count(value, dropped);
	return value;
}

static __always_inline bool count_rest(const struct drop_key *key,
				       const struct dropped *dropped)
{
	struct drop_value *value = bpf_map_lookup_elem(&drops_rest, key);
	bool is_own;

	if (!value)
		value = add_entry(&drops_rest, key, dropped, &is_own);
	if (value)
		add_count(value, dropped);
	return value;
}

static __always_inline void leave_packet_out(struct drop_key *key)
{
	__builtin_memset(&key->src, 0, sizeof(key->src));
	__builtin_memset(&key->dst, 0, sizeof(key->dst));
	__builtin_memset(&key->orig_src, 0, sizeof(key->orig_src));
	__builtin_memset(&key->orig_dst, 0, sizeof(key->orig_dst));
	key->src_port = key->dst_port = 0;
	key->orig_src_port = key->orig_dst_port = 0;
	key->ethertype = 0;
	key->proto = key->unparsed = 0;
	key->has = (key->has & DROP_HAS_REASON) | DROP_IS_REST;
}

static __always_inline void count_drop(struct drop_state *state,
				       struct drop_scratch *scratch,
				       const struct dropped *dropped)
{
	struct drop_key *key = &scratch->key;
	struct count *lost;

	name_function(scratch, key->location);
	key->generation = *(volatile __u32 *)&state->generation & 1;
	if (count_packet(state, key, dropped))
		return;
	leave_packet_out(key);
	if (count_rest(key, dropped))
		return;
	lost = &state->lost[key->generation & 1];
	__sync_fetch_and_add(&lost->packets, dropped->count.packets);
	__sync_fetch_and_add(&lost->bytes, dropped->count.bytes);
}

static __always_inline void take_drop(struct drop_scratch *scratch,
				      struct dropped *dropped, __u64 location,
				      __u32 reason)
{
	struct drop_state *state =
		bpf_map_lookup_elem(&drop_state, &(__u32){ 0 });
	struct drop_key *key = &scratch->key;

	if (!state)
		return;
	__builtin_memset(key, 0, sizeof(*key));
	key->location = location;
	key->reason = reason;
	key->has = config_has_reason ? DROP_HAS_REASON : 0;
	fill_place(key, dropped);
	if (!is_packet(key, dropped)) {
		__sync_fetch_and_add(&state->others, 1);
		return;
	}
	fill_packet(scratch, dropped);
	count_drop(state, scratch, dropped);
}

/* ---- Programs --------------------------------------------------------------------------- */

/*
 * The kernel does not let a program of a tracepoint interrupt itself, but an interrupt may drop packets
 * while the program runs for a packet that a process sends. The second program counts these.
 * COMPAT(<6.1): a program may interrupt itself, so scratch memory in use must not be used again.
 */
enum { FIRST, SECOND };

static __always_inline void run_first(struct sk_buff *skb, void *location,
				      __u32 reason, const struct sock *receiver)
{
	struct dropped dropped = { .skb = skb, .receiver = receiver };
	struct drop_scratch *scratch =
		bpf_map_lookup_elem(&drop_scratch, &(__u32){ FIRST });

	if (!scratch || *(volatile __u64 *)&scratch->is_busy)
		return;
	*(volatile __u64 *)&scratch->is_busy = 1;
	take_drop(scratch, &dropped, (__u64)location, reason);
	*(volatile __u64 *)&scratch->is_busy = 0;
}

static __always_inline void run_second(struct sk_buff *skb, void *location,
				       __u32 reason, const struct sock *receiver)
{
	struct dropped dropped = { .skb = skb, .receiver = receiver };
	struct drop_scratch *first =
		bpf_map_lookup_elem(&drop_scratch, &(__u32){ FIRST });
	struct drop_scratch *scratch =
		bpf_map_lookup_elem(&drop_scratch, &(__u32){ SECOND });
	struct drop_state *state =
		bpf_map_lookup_elem(&drop_state, &(__u32){ 0 });

	if (!first || !scratch || !state || !*(volatile __u64 *)&first->is_busy)
		return;
	if (*(volatile __u64 *)&scratch->is_busy) {
		__sync_fetch_and_add(&state->missed, 1);
		return;
	}
	*(volatile __u64 *)&scratch->is_busy = 1;
	__sync_fetch_and_add(&state->nested, 1);
	take_drop(scratch, &dropped, (__u64)location, reason);
	*(volatile __u64 *)&scratch->is_busy = 0;
}

/* @receiver: the socket that would have received the packet: Linux 6.11. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_sk, struct sk_buff *skb, void *location, __u32 reason,
	     struct sock *receiver)
{
	run_first(skb, location, reason, nullable(receiver));
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_sk2, struct sk_buff *skb, void *location, __u32 reason,
	     struct sock *receiver)
{
	run_second(skb, location, reason, nullable(receiver));
	return 0;
}

/* COMPAT(<6.11) */
SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_why, struct sk_buff *skb, void *location, __u32 reason)
{
	run_first(skb, location, reason, NULL);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_why2, struct sk_buff *skb, void *location, __u32 reason)
{
	run_second(skb, location, reason, NULL);
	return 0;
}

/* COMPAT(<5.17): there are no reasons. */
SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_at, struct sk_buff *skb, void *location)
{
	run_first(skb, location, 0, NULL);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(netobs_drop_at2, struct sk_buff *skb, void *location)
{
	run_second(skb, location, 0, NULL);
	return 0;
}
