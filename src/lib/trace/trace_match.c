// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_match.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>

enum { HOP_LIMIT = 64, IPV4_AT = 12 /* in ::ffff:a.b.c.d */ };

/* A frame with a segment that has no data. */
struct segment {
	uint8_t reserved[2]; /* what follows the Ethernet header is aligned */
	struct ether_header ether;
	union {
		struct {
			struct iphdr ip;
			struct tcphdr tcp;
		} v4;
		struct {
			struct ip6_hdr ip;
			struct tcphdr tcp;
		} v6;
	} net;
};

_Static_assert(offsetof(struct segment, net) ==
		       offsetof(struct segment, ether) +
			       sizeof(struct ether_header),
	       "no padding");

static void fill_tcp(struct tcphdr *tcp, const struct trace_tuple *tuple, int from)
{
	tcp->source = htons(tuple->ports[from]);
	tcp->dest = htons(tuple->ports[!from]);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
}

static uint32_t fill_v4(struct segment *segment,
			const struct trace_tuple *tuple, int from)
{
	struct iphdr *ip = &segment->net.v4.ip;

	segment->ether.ether_type = htons(ETHERTYPE_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(sizeof(segment->net.v4));
	ip->ttl = HOP_LIMIT;
	ip->protocol = IPPROTO_TCP;
	memcpy(&ip->saddr, tuple->addrs[from].bytes + IPV4_AT, sizeof(ip->saddr));
	memcpy(&ip->daddr, tuple->addrs[!from].bytes + IPV4_AT,
	       sizeof(ip->daddr));
	fill_tcp(&segment->net.v4.tcp, tuple, from);
	return sizeof(segment->ether) + sizeof(segment->net.v4);
}

static uint32_t fill_v6(struct segment *segment,
			const struct trace_tuple *tuple, int from)
{
	struct ip6_hdr *ip = &segment->net.v6.ip;

	segment->ether.ether_type = htons(ETHERTYPE_IPV6);
	ip->ip6_vfc = 6 << 4;
	ip->ip6_plen = htons(sizeof(segment->net.v6.tcp));
	ip->ip6_nxt = IPPROTO_TCP;
	ip->ip6_hlim = HOP_LIMIT;
	memcpy(&ip->ip6_src, tuple->addrs[from].bytes, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, tuple->addrs[!from].bytes, sizeof(ip->ip6_dst));
	fill_tcp(&segment->net.v6.tcp, tuple, from);
	return sizeof(segment->ether) + sizeof(segment->net.v6);
}

static bool is_v4(const struct ip_addr *addr)
{
	static const uint8_t mapped[IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr->bytes, mapped, sizeof(mapped));
}

bool trace_match(const struct filter *filter, const struct trace_tuple *tuple)
{
	for (int from = 0; filter && from < 2; from++) {
		struct segment segment = { 0 };
		uint32_t len = is_v4(&tuple->addrs[0]) ?
				       fill_v4(&segment, tuple, from) :
				       fill_v6(&segment, tuple, from);

		if (filter_judge(filter, &segment.ether, len, len) & JUDGED_ACCEPT)
			return true;
	}
	return !filter;
}
