/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "keys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <netobs/series.h>

#include "base/conversation.h"
#include "base/text.h"

/* ---- Values of keys ------------------------------------------------------------- */

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
	char name[128];
};

struct pod_value {
	char uid[40];
	char name[128], namespace[64];
};

struct unit_value {
	char name[sizeof(((struct netobs_process *)NULL)->unit)];
};

struct slice_value {
	char name[sizeof(((struct netobs_process *)NULL)->slice)];
};

struct machine_value {
	char name[sizeof(((struct netobs_process *)NULL)->machine)];
};

struct tunnel_value {
	uint32_t vni;
	uint8_t type, has_vni;
};

/* ---- Addresses ------------------------------------------------------------------ */

static void fill_pair(const struct group_part *part, void *value)
{
	const uint8_t *src = part->flow->src, *dst = part->flow->dst;
	struct pair_value *pair = value;
	bool swap = memcmp(src, dst, sizeof(pair->addrs[0])) > 0;

	memcpy(pair->addrs[swap], src, sizeof(pair->addrs[0]));
	memcpy(pair->addrs[!swap], dst, sizeof(pair->addrs[0]));
}

static void text_pair(const void *value, const struct group_text *to)
{
	const struct pair_value *pair = value;
	char low[NETOBS_NAME_MAX], high[NETOBS_NAME_MAX];

	netobs_names_host(to->names, pair->addrs[0], low, sizeof(low));
	netobs_names_host(to->names, pair->addrs[1], high, sizeof(high));
	snprintf(to->buf, to->size, "%s \u2194 %s", low, high);
}

/* ---- Flows ---------------------------------------------------------------------- */

static void set_ends(struct tuple_value *tuple, const uint8_t src[16],
		     uint16_t src_port, const uint8_t dst[16], uint16_t dst_port)
{
	memcpy(tuple->src, src, sizeof(tuple->src));
	memcpy(tuple->dst, dst, sizeof(tuple->dst));
	tuple->src_port = src_port;
	tuple->dst_port = dst_port;
}

static void fill_tuple(const struct group_part *part, void *value)
{
	const struct netobs_flow *flow = part->flow;
	struct tuple_value *tuple = value;

	set_ends(tuple, flow->src, flow->src_port, flow->dst, flow->dst_port);
	tuple->has_ports = !!(flow->has & NETOBS_HAS_PORTS);
	tuple->proto = flow->proto;
}

/* "10.0.0.1:40000", or the host alone. */
static void text_end(const struct tuple_value *tuple, const uint8_t addr[16],
		     uint16_t port, struct netobs_names *names, char *buf,
		     size_t size)
{
	char host[NETOBS_NAME_MAX], service[NETOBS_NAME_MAX];

	netobs_names_host(names, addr, host, sizeof(host));
	if (!tuple->has_ports) {
		snprintf(buf, size, "%s", host);
		return;
	}
	netobs_names_port(names, port, tuple->proto, service, sizeof(service));
	human_endpoint(buf, size, host, service);
}

static void text_tuple(const void *value, const struct group_text *to)
{
	const struct tuple_value *tuple = value;
	char src[2 * NETOBS_NAME_MAX + 4], dst[2 * NETOBS_NAME_MAX + 4],
		proto[16];

	text_end(tuple, tuple->src, tuple->src_port, to->names, src, sizeof(src));
	text_end(tuple, tuple->dst, tuple->dst_port, to->names, dst, sizeof(dst));
	human_protocol(proto, sizeof(proto), tuple->proto);
	snprintf(to->buf, to->size, "%s \u2192 %s%s%s", src, dst,
		 tuple->has_ports ? "/" : " ", proto);
}

/* ---- Conversations --------------------------------------------------------------- */

static uint64_t conversation_of(const struct netobs_flow *flow)
{
	if (flow->has & NETOBS_HAS_CONVERSATION)
		return flow->conversation_id;
	return conversation_id(&(struct conversation){
		.src = flow->src,
		.dst = flow->dst,
		.src_port = flow->src_port,
		.dst_port = flow->has & NETOBS_HAS_ICMP ?
				    (uint16_t)(flow->icmp_type << 8 |
					       flow->icmp_code) :
				    flow->dst_port,
		.proto = flow->proto });
}

/* The client's tuple: that of the server's packets is reversed. */
static void fill_conversation(const struct group_part *part, void *ret_note)
{
	const struct netobs_flow *flow = part->flow;
	const bool is_reply = part->addrs[ADDR_SERVER] == flow->src;
	struct conversation_value *note = ret_note;

	note->id = conversation_of(flow);
	fill_tuple(part, &note->tuple);
	if (is_reply && flow->has & NETOBS_HAS_XLAT)
		set_ends(&note->tuple, flow->xlat_dst, flow->xlat_dst_port,
			 flow->xlat_src, flow->xlat_src_port);
	else if (is_reply)
		set_ends(&note->tuple, flow->dst, flow->dst_port, flow->src,
			 flow->src_port);
	else if (flow->has & NETOBS_HAS_ORIG)
		set_ends(&note->tuple, flow->orig_src, flow->orig_src_port,
			 flow->orig_dst, flow->orig_dst_port);
}

static void text_conversation(const void *value, const struct group_text *to)
{
	const struct conversation_value *note = value;

	text_tuple(&note->tuple, to);
}

/* ---- Services ------------------------------------------------------------------- */

static void fill_port(const struct group_part *part, void *value)
{
	struct port_value *port = value;

	port->proto = part->flow->proto;
	port->has_port = !!(part->flow->has & NETOBS_HAS_PORTS);
	port->port = htons(part->server_port);
}

static void fill_service(const struct group_part *part, void *value)
{
	struct service_value *service = value;

	memcpy(service->addr, part->addrs[ADDR_SERVER], sizeof(service->addr));
	fill_port(part, &service->port);
}

static void fill_proto(const struct group_part *part, void *value)
{
	*(uint8_t *)value = part->flow->proto;
}

static void text_proto(const void *value, const struct group_text *to)
{
	human_protocol(to->buf, to->size, *(const uint8_t *)value);
}

static void text_port(const void *value, const struct group_text *to)
{
	const struct port_value *port = value;
	char number[NETOBS_NAME_MAX], proto[16];

	human_protocol(proto, sizeof(proto), port->proto);
	netobs_names_port(port->has_port ? to->names : NULL, ntohs(port->port),
			  port->proto, number, sizeof(number));
	snprintf(to->buf, to->size, "%s%s%s", port->has_port ? number : "",
		 port->has_port ? "/" : "", proto);
}

static void text_service(const void *value, const struct group_text *to)
{
	const struct service_value *service = value;
	char host[NETOBS_NAME_MAX], port[NETOBS_NAME_MAX + 16];

	netobs_names_host(to->names, service->addr, host, sizeof(host));
	text_port(&service->port,
		  &(struct group_text){ to->names, port, sizeof(port) });
	if (service->port.has_port)
		human_endpoint(to->buf, to->size, host, port);
	else
		snprintf(to->buf, to->size, "%s %s", host, port);
}

/* ---- Places --------------------------------------------------------------------- */

static void fill_interface(const struct group_part *part, void *value)
{
	const struct netobs_point *point = netobs_flow_point(part->flow, 0);
	struct interface_value *interface = value;

	if (!point)
		return;
	interface->ifindex = point->ifindex;
	interface->netns_inode = point->netns_inode;
	snprintf(interface->name, sizeof(interface->name), "%s",
		 point->name ? point->name : "unknown");
}

static void fill_direction(const struct group_part *part, void *value)
{
	const struct netobs_point *point = netobs_flow_point(part->flow, 0);

	*(uint8_t *)value = point ? point->direction : 0;
}

static void fill_vlan(const struct group_part *part, void *value)
{
	const struct netobs_flow *flow = part->flow;
	struct vlan_value *vlan = value;

	vlan->has_inner = !!(flow->has & NETOBS_HAS_VLAN);
	vlan->has_outer = !!(flow->has & NETOBS_HAS_OUTER_VLAN);
	if (vlan->has_inner)
		vlan->inner = htons(flow->vlan_id);
	if (vlan->has_outer)
		vlan->outer = htons(flow->outer_vlan_id);
}

static void fill_tunnel(const struct group_part *part, void *value)
{
	const struct netobs_flow *flow = part->flow;
	struct tunnel_value *tunnel = value;

	if (!(flow->has & NETOBS_HAS_TUNNEL))
		return;
	tunnel->type = flow->tunnel;
	tunnel->has_vni = !!(flow->has & NETOBS_HAS_VNI);
	if (tunnel->has_vni)
		tunnel->vni = htonl(flow->vni);
}

static void text_interface(const void *value, const struct group_text *to)
{
	const struct interface_value *interface = value;

	snprintf(to->buf, to->size, "%s",
		 *interface->name ? interface->name : "-");
	safe_cell(to->buf);
}

static void text_direction(const void *value, const struct group_text *to)
{
	static const char *const words[] = { "-", "in", "out" };

	snprintf(to->buf, to->size, "%s", words[*(const uint8_t *)value]);
}

static void text_vlan(const void *value, const struct group_text *to)
{
	const struct vlan_value *vlan = value;

	if (vlan->has_outer && vlan->has_inner)
		snprintf(to->buf, to->size, "%u.%u", ntohs(vlan->outer),
			 ntohs(vlan->inner));
	else if (vlan->has_outer || vlan->has_inner)
		snprintf(to->buf, to->size, "%u",
			 ntohs(vlan->has_outer ? vlan->outer : vlan->inner));
	else
		snprintf(to->buf, to->size, "-");
}

static void text_tunnel(const void *value, const struct group_text *to)
{
	const struct tunnel_value *tunnel = value;

	if (tunnel->has_vni)
		snprintf(to->buf, to->size, "%s %u",
			 human_tunnel_name(tunnel->type), ntohl(tunnel->vni));
	else
		snprintf(to->buf, to->size, "%s",
			 tunnel->type ? human_tunnel_name(tunnel->type) : "-");
}

/* ---- Processes ------------------------------------------------------------------ */

static void fill_process(const struct group_part *part, void *value)
{
	struct process_value *process = value;

	if (!part->process)
		return;
	process->is_known = 1;
	process->pid = htonl(part->process->pid);
	snprintf(process->command, sizeof(process->command), "%s",
		 part->process->command);
}

static void text_process(const void *value, const struct group_text *to)
{
	const struct process_value *process = value;

	if (process->is_known)
		snprintf(to->buf, to->size, "%s[%u]", process->command,
			 ntohl(process->pid));
	else
		snprintf(to->buf, to->size, "-");
	safe_cell(to->buf);
}

static void fill_container(const struct group_part *part, void *ret_note)
{
	struct container_value *note = ret_note;

	if (!part->process)
		return;
	snprintf(note->id, sizeof(note->id), "%s", part->process->container_id);
	snprintf(note->name, sizeof(note->name), "%s",
		 part->process->container_name);
}

/* Show the ID as container tools do, since another container may get the name of one that ended. */
static void text_container(const void *value, const struct group_text *to)
{
	const struct container_value *note = value;
	const char *id = note->id;

	if (*note->name)
		snprintf(to->buf, to->size, "%s (%.12s)", note->name, id);
	else
		snprintf(to->buf, to->size, "%.12s", *id ? id : "-");
	safe_cell(to->buf);
}

static void fill_pod(const struct group_part *part, void *ret_note)
{
	struct pod_value *note = ret_note;

	if (!part->process)
		return;
	snprintf(note->uid, sizeof(note->uid), "%s", part->process->pod_uid);
	snprintf(note->name, sizeof(note->name), "%s", part->process->pod_name);
	snprintf(note->namespace, sizeof(note->namespace), "%s",
		 part->process->pod_namespace);
}

/* Show the beginning of the UID, too, as with containers. */
static void text_pod(const void *value, const struct group_text *to)
{
	const struct pod_value *note = value;
	const char *uid = note->uid;

	if (*note->name)
		snprintf(to->buf, to->size, "%s/%s (%.8s)", note->namespace,
			 note->name, uid);
	else
		snprintf(to->buf, to->size, "%s", *uid ? uid : "-");
	safe_cell(to->buf);
}

/* Keys whose value is a text of the process. */
#define TEXT_OF_PROCESS(member)                                               \
	static void fill_##member(const struct group_part *part, void *value) \
	{                                                                     \
		if (part->process)                                            \
			snprintf(value, sizeof(struct member##_value), "%s",  \
				 part->process->member);                      \
	}

TEXT_OF_PROCESS(unit)
TEXT_OF_PROCESS(slice)
TEXT_OF_PROCESS(machine)

static void text_name(const void *value, const struct group_text *to)
{
	const char *name = value;

	snprintf(to->buf, to->size, "%s", *name ? name : "-");
	safe_cell(to->buf);
}

/* ---- Networks ------------------------------------------------------------------- */

static void text_network(const void *value, const struct group_text *to)
{
	snprintf(to->buf, to->size, "%s", (const char *)value);
}

/* ---- Keys ----------------------------------------------------------------------- */

#define KEY(key, title, parts, ...)                                 \
	{                                                           \
		.name = #key, .heading = title,                     \
		.size = sizeof(struct key##_value), .has = parts,   \
		.fill = fill_##key, .text = text_##key, __VA_ARGS__ \
	}
/* The value is the note's first member. */
#define NOTED_KEY(key, title, parts, first, ...)                       \
	{                                                              \
		.name = #key, .heading = title,                        \
		.size = sizeof(((struct key##_value *)NULL)->first),   \
		.note_size = sizeof(struct key##_value), .has = parts, \
		.fill = fill_##key, .text = text_##key, __VA_ARGS__    \
	}
#define PROCESS_KEY(key, title, json)                                 \
	{                                                             \
		.name = #key, .heading = title, .of_process = true,   \
		.size = sizeof(struct key##_value), .has = "",        \
		.fill = fill_##key, .text = text_name,                \
		MEMBERS(M(TEXT, json, key, name, key, IF(key, name))) \
	}
#define ADDR_KEY(key, title, parts, NAME, json)                    \
	{                                                          \
		.name = #key, .heading = title,                    \
		.size = sizeof(struct addr_value), .has = parts,   \
		.addr = ADDR_##NAME,                               \
		MEMBERS(M(ADDR, json, addr, addr, key, HAS(NAME))) \
	}
#define NETWORK_KEY(key, title, NAME, json, member)                   \
	{                                                             \
		.name = #key, .heading = title, .has_networks = true, \
		.size = sizeof(struct network_value), .has = "",      \
		.addr = ADDR_##NAME, .text = text_network,            \
		MEMBERS(M(TEXT, json, network, name, member))         \
	}
#define MEMBERS(...)                             \
	.members = (const struct group_member[]) \
	{                                        \
		__VA_ARGS__, END                 \
	}
#define END       \
	{         \
		0 \
	}
#define M(kind, key, value, from_, to_, ...)                               \
	{                                                                  \
		.json = key, .type = GROUP_##kind,                         \
		.from = offsetof(struct value##_value, from_),             \
		.to = offsetof(struct netobs_group_record, to_),           \
		.size = sizeof(((struct netobs_group_record *)NULL)->to_), \
		__VA_ARGS__                                                \
	}
#define HAS(NAME) .has = NETOBS_GROUP_HAS_##NAME
#define IF(value, member) .gate = offsetof(struct value##_value, member) + 1

_Static_assert(sizeof(struct unit_value) + sizeof(struct slice_value) +
			       sizeof(struct machine_value) +
			       sizeof(((struct container_value *)NULL)->id) +
			       sizeof(uint64_t) <=
		       GROUP_KEY_BYTES_MAX,
	       "any keys fit");
_Static_assert(sizeof(struct conversation_value) + sizeof(struct container_value) +
			       sizeof(struct pod_value) <=
		       GROUP_NOTES_MAX,
	       "notes of any keys fit");

const struct group_key group_keys_all[] = {
	ADDR_KEY(src, "SOURCE", "host", SRC, "SrcAddr"),
	ADDR_KEY(dst, "DESTINATION", "host", DST, "DstAddr"),
	ADDR_KEY(client, "CLIENT", "host", CLIENT, "ClientAddr"),
	KEY(service, "SERVICE", "host port proto",
	    MEMBERS(M(ADDR, "ServerAddr", service, addr, server, HAS(SERVER)),
		    M(BE, "ServerPort", service, port.port, server_port,
		      HAS(SERVER_PORT), IF(service, port.has_port)),
		    M(NUMBER, "Proto", service, port.proto, protocol, HAS(PROTO)))),
	ADDR_KEY(host, "HOST", "", HOST, "HostAddr"),
	KEY(tuple, "SOURCE \u2192 DESTINATION", "src dst host port proto",
	    MEMBERS(M(ADDR, "SrcAddr", tuple, src, src, HAS(SRC)),
		    M(ADDR, "DstAddr", tuple, dst, dst, HAS(DST)),
		    M(NUMBER, "SrcPort", tuple, src_port, src_port, HAS(PORTS),
		      IF(tuple, has_ports)),
		    M(NUMBER, "DstPort", tuple, dst_port, dst_port, HAS(PORTS),
		      IF(tuple, has_ports)),
		    M(NUMBER, "Proto", tuple, proto, protocol, HAS(PROTO)))),
	NOTED_KEY(conversation, "CLIENT \u2192 SERVER",
		  "client service tuple host port proto", id,
		  MEMBERS(M(HASH, "ConversationId", conversation, id,
			    conversation_id),
			  M(ADDR, "ClientAddr", conversation, tuple.src, client,
			    HAS(CLIENT)),
			  M(ADDR, "ServerAddr", conversation, tuple.dst, server,
			    HAS(SERVER)),
			  M(NUMBER, "ClientPort", conversation, tuple.src_port,
			    client_port, HAS(CLIENT_PORT),
			    IF(conversation, tuple.has_ports)),
			  M(NUMBER, "ServerPort", conversation, tuple.dst_port,
			    server_port, HAS(SERVER_PORT),
			    IF(conversation, tuple.has_ports)),
			  M(NUMBER, "Proto", conversation, tuple.proto,
			    protocol, HAS(PROTO)))),
	KEY(pair, "HOSTS", "host",
	    MEMBERS(M(ADDR, "HostAddrs", pair, addrs[0], host, HAS(HOST),
		      .list = 2),
		    M(ADDR, "", pair, addrs[1], peer, HAS(PEER)))),
	KEY(port, "PORT", "proto",
	    MEMBERS(M(BE, "ServerPort", port, port, server_port,
		      HAS(SERVER_PORT), IF(port, has_port)),
		    M(NUMBER, "Proto", port, proto, protocol, HAS(PROTO)))),
	KEY(proto, "PROTO", "",
	    MEMBERS(M(NUMBER, "Proto", proto, proto, protocol, HAS(PROTO)))),
	KEY(interface, "INTERFACE", "",
	    MEMBERS(M(TEXT, "Interfaces", interface, name, interface, .list = 1,
		      IF(interface, name)),
		    M(NUMBER, "IfIndexes", interface, ifindex, ifindex,
		      .list = 1, IF(interface, name)),
		    M(ID, "NetnsInode", interface, netns_inode, netns_inode,
		      IF(interface, name)))),
	KEY(direction, "DIRECTION", "",
	    MEMBERS(M(DIRECTION, "IfDirections", direction, direction, direction,
		      HAS(DIRECTION), .list = 1, IF(direction, direction)))),
	KEY(vlan, "VLAN", "",
	    MEMBERS(M(BE, "VlanId", vlan, inner, vlan_id, HAS(VLAN),
		      IF(vlan, has_inner)),
		    M(BE, "OuterVlanId", vlan, outer, outer_vlan_id,
		      HAS(OUTER_VLAN), IF(vlan, has_outer)))),
	KEY(tunnel, "TUNNEL", "",
	    MEMBERS(M(TUNNEL, "TunnelType", tunnel, type, tunnel, IF(tunnel, type)),
		    M(BE, "Vni", tunnel, vni, vni, HAS(VNI), IF(tunnel, has_vni)))),
	KEY(process, "PROCESS", "", .of_process = true,
	    MEMBERS(M(BE, "Pid", process, pid, pid, IF(process, is_known)),
		    M(TEXT, "Process", process, command, process,
		      IF(process, is_known)))),
	NOTED_KEY(container, "CONTAINER", "", id, .of_process = true,
		  .name_at = offsetof(struct container_value, name),
		  MEMBERS(M(TEXT, "ContainerId", container, id, container_id,
			    IF(container, id)),
			  M(TEXT, "ContainerName", container, name,
			    container_name, IF(container, name)))),
	NOTED_KEY(pod, "POD", "", uid, .of_process = true,
		  .name_at = offsetof(struct pod_value, name),
		  MEMBERS(M(TEXT, "PodUid", pod, uid, pod_uid, IF(pod, uid)),
			  M(TEXT, "PodName", pod, name, pod_name, IF(pod, name)),
			  M(TEXT, "PodNamespace", pod, namespace, pod_namespace,
			    IF(pod, namespace)))),
	PROCESS_KEY(unit, "UNIT", "Unit"),
	PROCESS_KEY(slice, "SLICE", "Slice"),
	PROCESS_KEY(machine, "MACHINE", "Machine"),
	NETWORK_KEY(network, "NETWORK", CLIENT, "ClientNetwork", client_network),
	NETWORK_KEY(src_network, "SOURCE NETWORK", SRC, "SrcNetwork", src_network),
	NETWORK_KEY(dst_network, "DESTINATION NETWORK", DST, "DstNetwork",
		    dst_network),
	{ 0 }
};
