/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_world.h"

#include "lib_test.h"

static enum link_type type_of(const struct world_link *link,
			      const struct world_link *all)
{
	if (link->type)
		return link->type;
	if (link->vni)
		return LINK_TYPE_TUNNEL;
	if (link->vlan)
		return LINK_TYPE_VLAN;
	if (link->lower)
		return LINK_TYPE_MACVLAN;
	if (link->peer)
		return LINK_TYPE_PAIR;
	for (; all->ifindex; all++)
		if (all->master == link->ifindex && all->netns == link->netns)
			return LINK_TYPE_BRIDGE;
	return LINK_TYPE_OTHER;
}

static void add_link(struct host *host, const struct world_link *link,
		     const struct world_link *all)
{
	struct netif *netif =
		netifs_ensure(&host->netns[link->netns].netifs, link->ifindex);

	assert_non_null(netif);
	netif->master = link->master;
	netif->link = link->lower ?: link->peer;
	netif->is_link_known = true;
	netif->link_netns = netif->link || link->vni ? link->link_netns :
						       NETNS_NONE;
	netif->has_been_up = true;
	netif->tunnel = (struct link_tunnel){ TUNNEL_VXLAN, false, link->vni,
					      link->vni };
	if (netif->link_netns != link->netns)
		netif->link_nsid = link->link_netns;
	netif->type = type_of(link, all);
	netif->vlan_id = link->vlan;
	if (!link->unobserved)
		netif->observed = 1 << INGRESS | !link->unobserved_out << EGRESS;
	snprintf(netif->name, sizeof(netif->name), "if%u", link->ifindex);
}

void world_build(struct host *host, uint32_t n_netns,
		 const struct world_link *links)
{
	*host = (struct host){
		.netns = calloc(n_netns, sizeof(*host->netns)),
		.n_netns = n_netns,
	};
	assert_non_null(host->netns);
	for (uint32_t i = 0; i < n_netns; i++)
		host->netns[i] = (struct netns){
			.index = i,
			.inode = 1000 + i,
			.rtnl_fd = -1,
		};
	for (const struct world_link *link = links; link && link->ifindex; link++)
		add_link(host, link, links);
	assert_int_equal(topology_update(host), 0);
}

struct flow_key world_key(uint16_t netns, uint32_t ifindex, bool egress)
{
	return (struct flow_key){
		.src.bytes = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst.bytes = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.src_port = 1000,
		.dst_port = 2000,
		.proto = 17,
		.netns = netns,
		.ifindex = ifindex,
		.flags = egress ? KEY_EGRESS : 0,
	};
}

void world_join_ends(struct flow_key *key)
{
	key->dst = key->src;
	key->dst_port = key->src_port;
}

struct flow_entry world_entry(const struct flow_key *key, uint64_t packets,
			      int64_t first_ns, int64_t last_ns)
{
	return (struct flow_entry){
		.key = *key,
		.tally = {
			.packets = packets,
			.bytes = packets * WORLD_BYTES,
			.l2_bytes = packets * WORLD_L2_BYTES,
			.first_ns = first_ns,
			.last_ns = last_ns,
			.attrs.ttl_min = 64,
			.attrs.ttl_max = 64,
			.attrs.has_mac = true,
			.macs = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 },
		},
	};
}
