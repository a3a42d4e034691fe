// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "rtnl.h"

#include "base/text.h"
#include "base/util.h"
#include "netns.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* @return false: it is of another family */
static bool take_address(const struct sockaddr *from, uint8_t ret_address[16])
{
	if (from && from->sa_family == AF_INET) {
		memset(ret_address, 0, 10);
		memset(ret_address + 10, 0xff, 2);
		memcpy(ret_address + 12,
		       &((const struct sockaddr_in *)from)->sin_addr, 4);
		return true;
	}
	if (!from || from->sa_family != AF_INET6)
		return false;
	memcpy(ret_address, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	return true;
}

static int take_interfaces(struct addresses *addresses,
			   const struct ifaddrs *first)
{
	uint8_t(*list)[16];
	uint32_t n = 0;

	for (const struct ifaddrs *one = first; one; one = one->ifa_next)
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (const struct ifaddrs *one = first; one; one = one->ifa_next)
		n += take_address(one->ifa_addr, list[n]);
	free(addresses->list);
	*addresses = (struct addresses){ list, n };
	return 0;
}

static int read_here(struct addresses *addresses)
{
	struct ifaddrs *first;
	int err;

	if (getifaddrs(&first))
		return -errno;
	err = take_interfaces(addresses, first);
	freeifaddrs(first);
	return err;
}

int addresses_read(struct addresses *addresses, int ns_fd)
{
	int back, err;

	if (ns_fd < 0)
		return read_here(addresses);
	err = netns_enter(ns_fd, &back);
	if (err)
		return err;
	err = read_here(addresses);
	netns_leave(back);
	return err;
}

void addresses_done(struct addresses *addresses)
{
	free(addresses->list);
	*addresses = (struct addresses){ 0 };
}

bool addresses_have(const struct addresses *addresses, const uint8_t address[16])
{
	const uint8_t loopback = 127;

	if (ip_is_v4(address) && address[12] == loopback)
		return true;
	for (uint32_t i = 0; i < addresses->n; i++)
		if (!memcmp(addresses->list[i], address, 16))
			return true;
	return false;
}
