/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections that NAT gives other tuples: the conntrack entry of a packet has them. */
#ifndef NETOBS_BPF_TRACE_NAT_H
#define NETOBS_BPF_TRACE_NAT_H

#include "bpf/nat_entry.h"
#include "events.h"

const volatile bool config_has_nat;
const volatile struct nat_layout config_nat;

/* Types of ICMP that are followed, with code 0. */
enum { ECHO_REPLY = 0, ECHO = 8, ECHO6 = 128, ECHO6_REPLY = 129 };

/* @type: type << 8 | code */
static __always_inline bool is_echo_reply(__u8 proto, __u16 type)
{
	return type ==
	       (proto == IP_PROTO_ICMPV6 ? ECHO6_REPLY << 8 : ECHO_REPLY << 8);
}

static __always_inline bool is_echo(__u8 proto, __u16 type)
{
	return is_echo_reply(proto, type) ||
	       type == (proto == IP_PROTO_ICMPV6 ? ECHO6 << 8 : ECHO << 8);
}

/* @return sk_buff._nfct of a packet that is translated, or 0 */
static __always_inline __u64 known_nfct(const struct sk_buff *skb)
{
	return config_has_nat ? translated_nfct(skb) : 0;
}

/* Read the tuple with which packets of direction @dir (enum ip_conntrack_dir) come in. */
static __always_inline bool read_entry(__u64 nfct, int dir, struct ends *ret_ends)
{
	const void *entry = (const void *)(nfct & ~(__u64)CT_INFO_MASK);
	struct nat_tuple read;

	if (bpf_probe_read_kernel(&read, sizeof(read),
				  entry + config_nat.tuples[dir]))
		return false;
	addr_of_nat(&ret_ends->src, read.src, read.family == AF_INET);
	addr_of_nat(&ret_ends->dst, read.dst, read.family == AF_INET);
	ret_ends->src_port = bpf_ntohs(read.src_port);
	ret_ends->dst_port = bpf_ntohs(read.dst_port);
	ret_ends->proto = read.proto;
	ret_ends->is_reply = false;
	if (!is_icmp(read.proto))
		return read.proto == IP_PROTO_TCP || read.proto == IP_PROTO_UDP;
	ret_ends->is_reply = is_echo_reply(read.proto, ret_ends->dst_port);
	ret_ends->dst_port = ret_ends->src_port;
	return true;
}

/* @return whether a packet with that entry goes the other way than packets with its tuple @dir */
static __always_inline bool is_against(__u64 nfct, int dir)
{
	return dir != ((nfct & CT_INFO_MASK) >= CT_IS_REPLY);
}

/* Data of an entry; the caller has room for it, as stack is scarce. */
struct entry_room {
	struct trace_tuple tuple;
	struct ends ends;
};

static __always_inline bool find_translated(__u64 nfct, int dir,
					    struct entry_room *room,
					    struct found *ret_found)
{
	if (!read_entry(nfct, dir, &room->ends))
		return false;
	fill_tuple(&room->tuple, &room->ends);
	if (!find_face(&room->tuple, &room->ends, ret_found))
		return false;
	ret_found->direction ^= is_against(nfct, dir);
	return true;
}

/* Find the connection by a tuple of the packet's conntrack entry, and add @tuple to it. */
static __always_inline bool find_by_entry(__u64 nfct,
					  const struct trace_tuple *tuple,
					  const struct ends *ends,
					  struct entry_room *room,
					  struct found *ret_found)
{
	if (!nfct)
		return false;
	if (!find_translated(nfct, NAT_ORIGINAL, room, ret_found) &&
	    !find_translated(nfct, NAT_REPLY, room, ret_found))
		return false;
	add_face(tuple, ends, ret_found);
	return true;
}

/* Add the other tuples of a connection whose first packet has been translated. */
static __always_inline void add_translated(__u64 nfct, struct entry_room *room,
					   const struct found *found)
{
	struct found turned = *found;

	for (int dir = 0; nfct && dir < NAT_DIRECTIONS; dir++) {
		const struct trace_face *face;

		if (!read_entry(nfct, dir, &room->ends))
			return;
		turned.direction = found->direction ^ is_against(nfct, dir);
		fill_tuple(&room->tuple, &room->ends);
		face = bpf_map_lookup_elem(&trace_faces, &room->tuple);
		if (!face || face->id != found->id)
			add_face(&room->tuple, &room->ends, &turned);
	}
}

#endif
