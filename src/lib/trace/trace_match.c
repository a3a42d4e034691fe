// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "trace_match.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/icmp6.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOP_LIMIT = 64, IPV4_AT = 12 /* in ::ffff:a.b.c.d */ };

union transport {
	struct tcphdr tcp;
	struct udphdr udp;
	struct icmphdr icmp;
	struct icmp6_hdr icmp6;
};

/* A frame with a segment or datagram that has no data. */
struct segment {
	uint8_t reserved[2]; /* what follows the Ethernet header is aligned */
	struct ether_header ether;
	union {
		struct {
			struct iphdr ip;
			union transport next;
		} v4;
		struct {
			struct ip6_hdr ip;
			union transport next;
		} v6;
	} net;
};

_Static_assert(offsetof(struct segment, net) ==
		       offsetof(struct segment, ether) +
			       sizeof(struct ether_header),
	       "no padding");

/* @return the header's length; of ICMP, the first end sends requests */
static uint16_t fill_transport(union transport *next,
			       const struct trace_tuple *tuple, int from)
{
	const uint16_t src = htons(tuple->ports[from]);
	const uint16_t dst = htons(tuple->ports[!from]);

	switch (tuple->proto) {
	case IPPROTO_UDP:
		next->udp = (struct udphdr){ .source = src,
					     .dest = dst,
					     .len = htons(sizeof(next->udp)) };
		return sizeof(next->udp);
	case IPPROTO_ICMP:
		next->icmp.type = from ? ICMP_ECHOREPLY : ICMP_ECHO;
		next->icmp.un.echo.id = src;
		return sizeof(next->icmp);
	case IPPROTO_ICMPV6:
		next->icmp6.icmp6_type = from ? ICMP6_ECHO_REPLY :
						ICMP6_ECHO_REQUEST;
		next->icmp6.icmp6_id = src;
		return sizeof(next->icmp6);
	default:
		next->tcp.source = src;
		next->tcp.dest = dst;
		next->tcp.doff = sizeof(next->tcp) / 4;
		next->tcp.ack = 1;
		return sizeof(next->tcp);
	}
}

static uint32_t fill_v4(struct segment *segment,
			const struct trace_tuple *tuple, int from)
{
	struct iphdr *ip = &segment->net.v4.ip;
	const uint16_t length =
		sizeof(*ip) + fill_transport(&segment->net.v4.next, tuple, from);

	segment->ether.ether_type = htons(ETHERTYPE_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(length);
	ip->ttl = HOP_LIMIT;
	ip->protocol = tuple->proto;
	memcpy(&ip->saddr, tuple->addrs[from].bytes + IPV4_AT, sizeof(ip->saddr));
	memcpy(&ip->daddr, tuple->addrs[!from].bytes + IPV4_AT,
	       sizeof(ip->daddr));
	return sizeof(segment->ether) + length;
}

static uint32_t fill_v6(struct segment *segment,
			const struct trace_tuple *tuple, int from)
{
	struct ip6_hdr *ip = &segment->net.v6.ip;
	const uint16_t length =
		fill_transport(&segment->net.v6.next, tuple, from);

	segment->ether.ether_type = htons(ETHERTYPE_IPV6);
	ip->ip6_vfc = 6 << 4;
	ip->ip6_plen = htons(length);
	ip->ip6_nxt = tuple->proto;
	ip->ip6_hlim = HOP_LIMIT;
	memcpy(&ip->ip6_src, tuple->addrs[from].bytes, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, tuple->addrs[!from].bytes, sizeof(ip->ip6_dst));
	return sizeof(segment->ether) + sizeof(*ip) + length;
}

static bool is_v4(const struct ip_addr *addr)
{
	static const uint8_t mapped[IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr->bytes, mapped, sizeof(mapped));
}

static bool may_match(const char *expression, const char *protocols)
{
	char error[FILTER_ERROR_MAX];
	struct filter *filter = NULL;
	char *text;
	int err;

	if (!expression || !*expression)
		return true;
	if (asprintf(&text, "(%s) and (%s)", expression, protocols) < 0)
		return true;
	err = filter_new(text, &filter, &error);
	filter_free(filter);
	free(text);
	return err != -EINVAL;
}

bool trace_match_has_tcp(const char *expression)
{
	return may_match(expression, "tcp");
}

bool trace_match_has_datagrams(const char *expression)
{
	return may_match(expression, "udp or icmp or icmp6");
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
