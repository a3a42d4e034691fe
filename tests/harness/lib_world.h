/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Interfaces and flow entries, made up: what merging and counting work on. */
#ifndef HARNESS_LIB_WORLD_H
#define HARNESS_LIB_WORLD_H

#include "host/topology.h"
#include "host/host.h"

#include <stdbool.h>

/* One interface. ifindex 0 ends a list. */
struct world_link {
	uint32_t ifindex;
	uint16_t netns;
	uint32_t master;     /* a bridge, unless its own type says otherwise */
	uint32_t lower;	     /* of a VLAN device, or else a macvlan */
	uint16_t vlan;	     /* of a VLAN device; 0: it is none */
	uint32_t peer;	     /* the other end of a pair */
	uint16_t link_netns; /* of lower or peer, or of a tunnel's outer packets */
	uint32_t vni;	     /* of a VXLAN device; 0: it is none */
	enum link_type type;
	bool unobserved;
	bool unobserved_out; /* on the way out */
};

/* Kinds of links; @of and @on name the interface they belong to. */
#define PORT(n, of)                            \
	{                                      \
		.ifindex = (n), .master = (of) \
	}
#define VLAN(n, on, id)                                     \
	{                                                   \
		.ifindex = (n), .lower = (on), .vlan = (id) \
	}
#define MACVLAN(n, on)                        \
	{                                     \
		.ifindex = (n), .lower = (on) \
	}
#define VXLAN(n, in, id)                                                       \
	{                                                                      \
		.ifindex = (n), .netns = (in), .link_netns = (in), .vni = (id) \
	}
#define PEER(n, in, of, at)                                                     \
	{                                                                       \
		.ifindex = (n), .netns = (in), .peer = (of), .link_netns = (at) \
	}

/*
 * A host over @n_netns namespaces with @links, looked at by topology_update(),
 * whose interfaces are called if1, if2 ... and inodes 1000, 1001 ...; free with
 * host_done().
 */
void world_build(struct host *host, uint32_t n_netns,
		 const struct world_link *links);

enum { WORLD_BYTES = 100, WORLD_L2_BYTES = 114 }; /* per packet */

/* UDP from ::ffff:10.0.0.1 port 1000 to ::ffff:10.0.0.2 port 2000. */
struct flow_key world_key(uint16_t netns, uint32_t ifindex, bool egress);

/* Give it equal ends, as of a socket that is connected to itself: its source's. */
void world_join_ends(struct flow_key *key);

/* Of that key, seen from @first_ns to @last_ns, as a precise clock tells. */
struct flow_entry world_entry(const struct flow_key *key, uint64_t packets,
			      int64_t first_ns, int64_t last_ns);

#endif
