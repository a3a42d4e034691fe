/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What a flow is, in words: protocol, TCP flags, ICMP type, where it was seen. */
#include "human.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

struct name {
	uint8_t number;
	const char *text;
};

/* IANA "Protocol Numbers" */
static const struct name protocols[] = {
	{ 0, "HOPOPT" },   { 1, "ICMP" },   { 2, "IGMP" },   { 4, "IPIP" },
	{ 6, "TCP" },	   { 17, "UDP" },   { 33, "DCCP" },  { 41, "IPv6" },
	{ 47, "GRE" },	   { 50, "ESP" },   { 51, "AH" },    { 58, "ICMPv6" },
	{ 59, "no-next" }, { 88, "EIGRP" }, { 89, "OSPF" },  { 103, "PIM" },
	{ 112, "VRRP" },   { 115, "L2TP" }, { 132, "SCTP" }, { 136, "UDPLite" },
	{ 0, NULL }
};

/* RFC 792, RFC 950, RFC 1256 */
static const struct name icmp_types[] = {
	{ 0, "echo reply" },	   { 3, "unreachable" },
	{ 4, "source quench" },	   { 5, "redirect" },
	{ 8, "echo request" },	   { 9, "router advert" },
	{ 10, "router solicit" },  { 11, "time exceeded" },
	{ 12, "bad parameter" },   { 13, "timestamp" },
	{ 14, "timestamp reply" }, { 0, NULL }
};

/* RFC 4443, RFC 2710, RFC 3810, RFC 4861 */
static const struct name icmp6_types[] = {
	{ 1, "unreachable" },	    { 2, "packet too big" },
	{ 3, "time exceeded" },	    { 4, "bad parameter" },
	{ 128, "echo request" },    { 129, "echo reply" },
	{ 130, "group query" },	    { 131, "group report" },
	{ 132, "group done" },	    { 133, "router solicit" },
	{ 134, "router advert" },   { 135, "neighbor solicit" },
	{ 136, "neighbor advert" }, { 137, "redirect" },
	{ 143, "group report v2" }, { 0, NULL }
};

static const char *look_up(const struct name *names, uint8_t number)
{
	for (; names->text; names++) {
		if (names->number == number)
			return names->text;
	}
	return NULL;
}

void human_protocol(char *buf, size_t size, const struct netobs_flow *flow)
{
	const char *name = look_up(protocols, flow->proto);

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "proto-%u", flow->proto);
}

/* Bits of RFC 9293, 3.1, in the order of a connection's life. */
static void put_tcp_flags(char *buf, size_t size, uint16_t flags)
{
	static const struct {
		uint16_t bit;
		char letter;
	} letters[] = {
		{ 0x02, 'S' }, { 0x10, 'A' }, { 0x08, 'P' }, { 0x01, 'F' },
		{ 0x04, 'R' }, { 0x20, 'U' }, { 0x40, 'E' }, { 0x80, 'C' },
	};
	size_t n = 0;

	for (size_t i = 0;
	     i < sizeof(letters) / sizeof(letters[0]) && n + 1 < size; i++) {
		if (flags & letters[i].bit)
			buf[n++] = letters[i].letter;
	}
	buf[n] = '\0';
}

void human_info(char *buf, size_t size, const struct netobs_flow *flow)
{
	const char *name;

	buf[0] = '\0';
	if (flow->has & NETOBS_HAS_TCP) {
		put_tcp_flags(buf, size, flow->tcp_flags);
	} else if (flow->has & NETOBS_HAS_ICMP) {
		name = look_up(flow->proto == IPPROTO_ICMPV6 ? icmp6_types :
							       icmp_types,
			       flow->icmp_type);
		if (name)
			snprintf(buf, size, "%s", name);
		else
			snprintf(buf, size, "type %u code %u", flow->icmp_type,
				 flow->icmp_code);
	}
}

/* Add to what is in @buf already, after a comma; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t size,
							 const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	if (used && used + 2 < size) {
		memcpy(buf + used, ", ", 3);
		used += 2;
	}
	va_start(args, format);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

static void append_tunnel(char *buf, size_t size, const struct netobs_flow *flow)
{
	static const char *const names[] = { "tunnel", "vxlan", "geneve", "gre",
					     "ipip" };
	const bool named = flow->tunnel < sizeof(names) / sizeof(names[0]);
	const char *name = names[named ? flow->tunnel : 0];

	if (flow->has & NETOBS_HAS_VNI)
		append(buf, size, "%s %u", name, flow->vni);
	else if (flow->has & NETOBS_HAS_TUNNEL)
		append(buf, size, "%s", name);
}

void human_where(char *buf, size_t size, const struct netobs_flow *flow)
{
	buf[0] = '\0';
	for (uint32_t i = 0; i < flow->n_points; i++) {
		const struct netobs_point *point = netobs_flow_point(flow, i);

		append(buf, size, "%s %s", point->name ? point->name : "unknown",
		       point->direction == NETOBS_INGRESS ? "in" : "out");
	}
	human_clean(buf);
	if (flow->has & NETOBS_HAS_OUTER_VLAN)
		append(buf, size, "vlan %u.%u", flow->outer_vlan_id,
		       flow->vlan_id);
	else if (flow->has & NETOBS_HAS_VLAN)
		append(buf, size, "vlan %u", flow->vlan_id);
	append_tunnel(buf, size, flow);
}
