/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The values of keys. */
#ifndef NETOBS_GROUP_KEY_VALUES_H
#define NETOBS_GROUP_KEY_VALUES_H

#include <netobs/networks.h>
#include <stdint.h>

/* Ports are in network byte order, so that values sort as numbers do. */
struct port_value {
	uint16_t port;
	uint8_t proto;
	uint8_t has_port;
};

struct addr_value {
	uint8_t addr[16];
};

struct proto_value {
	uint8_t proto;
};

struct direction_value {
	uint8_t direction;
};

struct network_value {
	char name[NETOBS_NETWORK_NAME_MAX];
};

struct service_value {
	uint8_t addr[16];
	struct port_value port;
};

struct pair_value {
	uint8_t addrs[2][16];
};

struct interface_value {
	char name[16];
	uint32_t ifindex, netns_inode;
};

/* The tuple that distinguishes flows. */
struct tuple_value {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t proto;
	uint8_t has_ports;
};

/* A note: its first member is compared. */
struct conversation_value {
	uint64_t id;
	struct tuple_value tuple;
};

struct vlan_value {
	uint16_t outer, inner;
	uint8_t has_outer, has_inner;
};

struct process_value {
	char command[16];
	uint32_t pid; /* in network byte order */
	uint8_t is_known, reserved[3];
};

/* A note, as the next one. */
struct container_value {
	char id[72];
	char name[64];
};

struct pod_value {
	char uid[40];
	char name[128], namespace[64];
};

struct tunnel_value {
	uint32_t vni;
	uint8_t type, has_vni;
};

#endif
