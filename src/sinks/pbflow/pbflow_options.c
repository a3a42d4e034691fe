// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Who says so: the host's address in each record. */
#include "pbflow.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

static void set_v4(uint8_t ip[16], const struct in_addr *address)
{
	memset(ip, 0, 10);
	ip[10] = ip[11] = 0xff;
	memcpy(ip + 12, address, sizeof(*address));
}

static bool parse(const char *text, uint8_t ip[16])
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) != 1)
		return inet_pton(AF_INET6, text, ip) == 1;
	set_v4(ip, &v4);
	return true;
}

/* One that others may know this host by. */
static bool is_of_host(const struct ifaddrs *entry)
{
	const struct sockaddr *address = entry->ifa_addr;
	const struct in6_addr *v6;

	if (!address || !(entry->ifa_flags & IFF_UP) ||
	    entry->ifa_flags & IFF_LOOPBACK)
		return false;
	if (address->sa_family == AF_INET)
		return true;
	v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(v6);
}

/* The first, of IPv4 if there is one. */
static void find(uint8_t ip[16])
{
	struct ifaddrs *all, *found = NULL;

	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
		if (!is_of_host(entry))
			continue;
		if (!found || (found->ifa_addr->sa_family == AF_INET6 &&
			       entry->ifa_addr->sa_family == AF_INET))
			found = entry;
	}
	if (found && found->ifa_addr->sa_family == AF_INET)
		set_v4(ip, &((struct sockaddr_in *)found->ifa_addr)->sin_addr);
	else if (found)
		memcpy(ip, &((struct sockaddr_in6 *)found->ifa_addr)->sin6_addr,
		       16);
	freeifaddrs(all);
}

void pbflow_read_options(struct spec *spec, const struct sink_host *host,
			 struct pbflow_options *options)
{
	const char *text = spec_string(spec, "agent_ip", NULL);

	*options = (struct pbflow_options){ .sampling = host->sampling };
	if (!text)
		find(options->agent_ip);
	else if (!parse(text, options->agent_ip))
		spec_refuse(spec, "option agent_ip: '%s' is not an IP address",
			    text);
}
