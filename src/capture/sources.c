/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "sources.h"

#include "host/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sources_done(struct sources *sources)
{
	free(sources->list);
}

static bool is_source(const struct source *source,
		      struct capture_interface_key key, int link)
{
	return source->key.ifindex == key.ifindex &&
	       source->key.netns == key.netns &&
	       (link < 0 || source->link == (enum link_kind)link);
}

static int find_source(const struct sources *sources,
		       struct capture_interface_key key, int link)
{
	if (sources->latest < sources->n &&
	    is_source(&sources->list[sources->latest], key, link))
		return (int)sources->latest;
	for (uint32_t i = 0; i < sources->n; i++)
		if (is_source(&sources->list[i], key, link))
			return (int)i;
	return -ENOENT;
}

static int add_source(struct sources *sources, const struct host *host,
		      struct capture_interface_key key, int link)
{
	const struct netif *netif = host_find(host, key.netns, key.ifindex);
	struct source *source = reallocarray(sources->list, sources->n + 1,
					     sizeof(*sources->list));

	if (!source)
		return -ENOMEM;
	sources->list = source;
	source += sources->n;
	if (link < 0)
		link = netif ? netif_link_kind(netif) : LINK_ETHERNET;
	*source = (struct source){ .key = key, .link = link };
	if (key.netns < host->n_netns)
		source->netns = host->netns[key.netns].name;
	if (netif)
		memcpy(source->name, netif->name, sizeof(source->name));
	else
		snprintf(source->name, sizeof(source->name), "%u", key.ifindex);
	return (int)sources->n++;
}

int sources_ensure(struct sources *sources, const struct host *host,
		   struct capture_interface_key key, int link)
{
	int i = find_source(sources, key, link);

	if (i == -ENOENT)
		i = add_source(sources, host, key, link);
	if (i >= 0)
		sources->latest = i;
	return i;
}
