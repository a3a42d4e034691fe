// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "host_state.h"

#include <stdlib.h>

/* Programs know a namespace by 16 bits. */
enum { NETNS_MAX = 1 << 15 };

struct netns *host_find_followed(const struct host *host, uint32_t inode,
				 const struct netns *but)
{
	for (uint32_t i = 0; i < host->n_netns; i++) {
		struct netns *netns = &host->netns[i];

		if (netns != but && netns->inode == inode && netns->rtnl_fd >= 0)
			return netns;
	}
	return NULL;
}

/* @return a namespace whose last flows have been reported; NULL: none */
static struct netns *find_unused(const struct host *host)
{
	for (uint32_t i = 0; i < host->n_netns; i++)
		if (host->netns[i].is_retired && !host->netns[i].is_beyond &&
		    !host->netns[i].netifs.count)
			return &host->netns[i];
	return NULL;
}

struct netns *host_add_netns(struct host *host)
{
	struct netns *netns = find_unused(host);

	if (netns) {
		netns->is_retired = netns->is_alias = false;
		return netns;
	}
	return host_append_netns(host);
}

struct netns *host_append_netns(struct host *host)
{
	struct netns *netns;

	if (host->n_netns == NETNS_MAX)
		return NULL;
	netns = reallocarray(host->netns, host->n_netns + 1, sizeof(*netns));
	if (!netns)
		return NULL;
	host->netns = netns;
	netns[host->n_netns] =
		(struct netns){ .index = host->n_netns, .rtnl_fd = -1 };
	return &netns[host->n_netns++];
}
