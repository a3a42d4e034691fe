/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The conntrack entry of a packet, as programs read it. */
#ifndef NETOBS_BPF_NAT_ENTRY_H
#define NETOBS_BPF_NAT_ENTRY_H

#include "bpf/nat.h"
#include "bpf/parse/ip.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Values in the lowest bits of sk_buff._nfct: enum ip_conntrack_info of Linux. */
enum {
	CT_INFO_MASK = 7,
	CT_ESTABLISHED = 0, /* there was an answer before this packet */
	CT_RELATED = 1,
	CT_IS_REPLY = 3, /* this and higher values: a packet of the reply direction */
	CT_RELATED_REPLY = 4,
};

enum { CT_IS_TRANSLATED = 3 << 4 }; /* IPS_NAT_MASK of nf_conn.status */

/* Kernels with conntrack have this member. */
struct sk_buff___nfct {
	unsigned long _nfct;
} __attribute__((preserve_access_index));

static __always_inline bool is_icmp(__u8 proto)
{
	return proto == IP_PROTO_ICMP || proto == IP_PROTO_ICMPV6;
}

static __always_inline void addr_of_nat(struct ip_addr *addr,
					const __u32 *words, bool is_ipv4)
{
	if (is_ipv4) {
		addr_from_v4(addr, words[0]);
		return;
	}
	for (int i = 0; i < 4; i++)
		addr->words[i] = words[i];
}

static __always_inline __u32 nat_direction(__u32 info)
{
	return info >= CT_IS_REPLY ? NAT_REPLY : NAT_ORIGINAL;
}

/* False: an ICMP error, which has the entry of the packet that it is about. */
static __always_inline bool nat_is_own(__u8 proto, __u32 info,
				       const struct nat_tuple *before)
{
	return before->proto == proto &&
	       !(is_icmp(proto) &&
		 (info == CT_RELATED || info == CT_RELATED_REPLY));
}

/* @return sk_buff._nfct of a packet that is translated, or 0 */
static __always_inline __u64 translated_nfct(const struct sk_buff *skb)
{
	const struct sk_buff___nfct *with_nfct = (const void *)skb;
	__u64 nfct, status = 0;
	const struct nf_conn *entry;

	if (!bpf_core_field_exists(with_nfct->_nfct))
		return 0;
	nfct = with_nfct->_nfct;
	entry = (const void *)(nfct & ~(__u64)CT_INFO_MASK);
	if (!entry)
		return 0;
	bpf_core_read(&status, sizeof(status), &entry->status);
	return status & CT_IS_TRANSLATED ? nfct : 0;
}

#endif
