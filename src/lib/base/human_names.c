// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "text.h"

#include <netobs/flow.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* IANA "Protocol Numbers" */
static const char *const protocols[] = {
	[0] = "HOPOPT",	  [1] = "ICMP",	  [2] = "IGMP",	  [4] = "IPIP",
	[6] = "TCP",	  [17] = "UDP",	  [33] = "DCCP",  [41] = "IPv6",
	[47] = "GRE",	  [50] = "ESP",	  [51] = "AH",	  [58] = "ICMPv6",
	[59] = "no-next", [88] = "EIGRP", [89] = "OSPF",  [103] = "PIM",
	[112] = "VRRP",	  [115] = "L2TP", [132] = "SCTP", [136] = "UDPLite",
};

void human_protocol(char *buf, size_t size, uint8_t proto)
{
	const char *name = proto < sizeof(protocols) / sizeof(protocols[0]) ?
				   protocols[proto] :
				   NULL;

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "proto-%u", proto);
}

const char *tunnel_name(uint8_t type)
{
	static const char *const names[] = {
		[NETOBS_TUNNEL_VXLAN] = "vxlan",
		[NETOBS_TUNNEL_GENEVE] = "geneve",
		[NETOBS_TUNNEL_GRE] = "gre",
		[NETOBS_TUNNEL_IPIP] = "ipip",
		[NETOBS_TUNNEL_GTPU] = "gtpu",
		[NETOBS_TUNNEL_SRV6] = "srv6",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

const char *human_tunnel_name(uint8_t type)
{
	return tunnel_name(type) ?: "tunnel";
}

void human_endpoint(char *buf, size_t size, const char *host, const char *port)
{
	const bool has_colon = strchr(host, ':');

	/* Long names are cut: gcc 12 warns of it where the result is not used. */
	if (snprintf(buf, size, "%s%s%s:%s", has_colon ? "[" : "", host,
		     has_colon ? "]" : "", port) < 0)
		*buf = '\0';
}
