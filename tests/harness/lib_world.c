/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_world.h"

#include "lib_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void world_build(struct watch *watch, uint32_t n_places,
		 const struct world_link *links)
{
	*watch = (struct watch){
		.places = calloc(n_places, sizeof(*watch->places)),
		.n_places = n_places,
	};
	assert_non_null(watch->places);
	for (uint32_t i = 0; i < n_places; i++)
		watch->places[i] = (struct place){
			.index = i,
			.inode = 1000 + i,
			.rtnl_fd = -1,
		};
	for (; links && links->ifindex; links++) {
		struct netif *netif = netifs_ensure(
			&watch->places[links->place].netifs, links->ifindex);

		assert_non_null(netif);
		netif->master = links->master;
		netif->lower = links->lower;
		netif->is_vlan = links->vlan;
		netif->vlan_id = links->vlan;
		snprintf(netif->name, sizeof(netif->name), "if%u",
			 links->ifindex);
	}
	for (uint32_t i = 0; i < n_places; i++)
		netifs_restack(&watch->places[i].netifs);
}

struct flow_key world_key(uint16_t place, uint32_t ifindex, bool egress)
{
	return (struct flow_key){
		.src.bytes = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst.bytes = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.src_port = 1000,
		.dst_port = 2000,
		.proto = 17,
		.netns = place,
		.ifindex = ifindex,
		.flags = egress ? KEY_EGRESS : 0,
	};
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
			.ttl_min = 64,
			.ttl_max = 64,
			.has_mac = true,
			.macs = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 },
		},
	};
}
