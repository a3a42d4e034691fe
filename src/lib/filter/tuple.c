// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "filter.h"

#include "rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>

enum { HOP_LIMIT = 64, IPV4_AT = 12 /* in ::ffff:a.b.c.d */ };

/* A header of any protocol; echoes of ICMPv6 are like those of ICMP. */
union transport {
	struct tcphdr tcp;
	struct udphdr udp;
	struct icmphdr icmp;
};

struct packet_of_tuple {
	uint8_t reserved[2]; /* what follows the Ethernet header is aligned */
	struct ether_header ether;
	union {
		struct {
			struct iphdr ip;
			union transport transport;
		} v4;
		struct {
			struct ip6_hdr ip;
			union transport transport;
		} v6;
	} net;
};

_Static_assert(offsetof(struct packet_of_tuple, net) ==
		       offsetof(struct packet_of_tuple, ether) +
			       sizeof(struct ether_header),
	       "no padding");

static void fill_transport(union transport *transport,
			   const struct filter_tuple *tuple)
{
	switch (tuple->proto) {
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		transport->icmp.type = (uint8_t)(tuple->dst_port >> 8);
		transport->icmp.code = (uint8_t)tuple->dst_port;
		transport->icmp.un.echo.id = htons(tuple->src_port);
		return;
	case IPPROTO_TCP:
		transport->tcp.doff = sizeof(transport->tcp) / 4;
		transport->tcp.ack = 1;
		break;
	case IPPROTO_UDP:
		transport->udp.len = htons(sizeof(*transport));
		break;
	}
	/* All protocols with ports have them here. */
	transport->udp.source = htons(tuple->src_port);
	transport->udp.dest = htons(tuple->dst_port);
}

static uint32_t fill_v4(struct packet_of_tuple *packet,
			const struct filter_tuple *tuple)
{
	struct iphdr *ip = &packet->net.v4.ip;

	packet->ether.ether_type = htons(ETHERTYPE_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(sizeof(packet->net.v4));
	ip->ttl = HOP_LIMIT;
	ip->protocol = tuple->proto;
	memcpy(&ip->saddr, tuple->src + IPV4_AT, sizeof(ip->saddr));
	memcpy(&ip->daddr, tuple->dst + IPV4_AT, sizeof(ip->daddr));
	fill_transport(&packet->net.v4.transport, tuple);
	return sizeof(packet->ether) + sizeof(packet->net.v4);
}

static uint32_t fill_v6(struct packet_of_tuple *packet,
			const struct filter_tuple *tuple)
{
	struct ip6_hdr *ip = &packet->net.v6.ip;

	packet->ether.ether_type = htons(ETHERTYPE_IPV6);
	ip->ip6_vfc = 6 << 4;
	ip->ip6_plen = htons(sizeof(packet->net.v6.transport));
	ip->ip6_nxt = tuple->proto;
	ip->ip6_hlim = HOP_LIMIT;
	memcpy(&ip->ip6_src, tuple->src, sizeof(ip->ip6_src));
	memcpy(&ip->ip6_dst, tuple->dst, sizeof(ip->ip6_dst));
	fill_transport(&packet->net.v6.transport, tuple);
	return sizeof(packet->ether) + sizeof(packet->net.v6);
}

static bool is_v4(const uint8_t addr[16])
{
	static const uint8_t mapped[IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr, mapped, sizeof(mapped));
}

int filter_check_tuple(const struct filter *filter, const struct log *log)
{
	for (uint32_t i = 0; filter && i < filter->n; i++)
		if (filter->rules[i].expression.has_inner) {
			log_error(log,
				  "filter: what a tunnel carries (inner) is not known here");
			return -EINVAL;
		}
	return 0;
}

bool filter_match_tuple(const struct filter *filter,
			const struct filter_tuple *tuple)
{
	struct packet_of_tuple packet = { 0 };
	uint32_t len;

	if (!filter)
		return true;
	len = is_v4(tuple->src) ? fill_v4(&packet, tuple) :
				  fill_v6(&packet, tuple);
	return filter_judge(filter, &packet.ether, len, len) & JUDGED_ACCEPT;
}
