/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "group_record.h"
#include "key_values.h"
#include "keys.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <netobs/group.h>
#include <netobs/networks.h>

#include "base/conversation.h"
#include "base/json.h"
#include "base/text.h"
#include "catalogue/direction.h"

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

void group_json_addr(struct json *json, const uint8_t addr[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	netobs_addr_str(addr, text, sizeof(text));
	json_string(json, text);
}

static void json_pair(const void *value, struct json *json)
{
	const struct pair_value *pair = value;

	json_key(json, "HostAddrs");
	json_open(json, '[');
	group_json_addr(json, pair->addrs[0]);
	group_json_addr(json, pair->addrs[1]);
	json_close(json, ']');
}

/* ---- Flows ---------------------------------------------------------------------- */

static void fill_tuple(const struct group_part *part, void *value)
{
	const struct netobs_flow *flow = part->flow;
	struct tuple_value *tuple = value;

	memcpy(tuple->src, flow->src, sizeof(tuple->src));
	memcpy(tuple->dst, flow->dst, sizeof(tuple->dst));
	tuple->has_ports = !!(flow->has & NETOBS_HAS_PORTS);
	tuple->src_port = flow->src_port;
	tuple->dst_port = flow->dst_port;
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

static void json_tuple(const void *value, struct json *json)
{
	const struct tuple_value *tuple = value;

	json_key(json, "SrcAddr");
	group_json_addr(json, tuple->src);
	json_key(json, "DstAddr");
	group_json_addr(json, tuple->dst);
	if (tuple->has_ports) {
		json_key_u64(json, "SrcPort", tuple->src_port);
		json_key_u64(json, "DstPort", tuple->dst_port);
	}
	json_key_u64(json, "Proto", tuple->proto);
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

static void fill_conversation(const struct group_part *part, void *value)
{
	*(uint64_t *)value = conversation_of(part->flow);
}

static void set_ends(struct tuple_value *tuple, const uint8_t src[16],
		     uint16_t src_port, const uint8_t dst[16], uint16_t dst_port)
{
	memcpy(tuple->src, src, sizeof(tuple->src));
	memcpy(tuple->dst, dst, sizeof(tuple->dst));
	tuple->src_port = src_port;
	tuple->dst_port = dst_port;
}

/* The client's tuple: that of the server's packets is reversed. */
static void note_conversation(const struct group_part *part, void *ret_note)
{
	const struct netobs_flow *flow = part->flow;
	const bool is_reply = part->addrs[ADDR_SERVER] == flow->src;
	struct conversation_note *note = ret_note;

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
	const struct conversation_note *note = value;

	text_tuple(&note->tuple, to);
}

static void json_conversation(const void *value, struct json *json)
{
	const struct conversation_note *note = value;
	const struct tuple_value *tuple = &note->tuple;
	char id[TEXT_HASH_MAX + 1];

	*text_hash(id, note->id) = '\0';
	json_key(json, "ConversationId");
	json_string(json, id);
	json_key(json, "ClientAddr");
	group_json_addr(json, tuple->src);
	json_key(json, "ServerAddr");
	group_json_addr(json, tuple->dst);
	if (tuple->has_ports) {
		json_key_u64(json, "ClientPort", tuple->src_port);
		json_key_u64(json, "ServerPort", tuple->dst_port);
	}
	json_key_u64(json, "Proto", tuple->proto);
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

static void json_proto(const void *value, struct json *json)
{
	json_key_u64(json, "Proto", *(const uint8_t *)value);
}

static void json_port(const void *value, struct json *json)
{
	const struct port_value *port = value;

	if (port->has_port)
		json_key_u64(json, "ServerPort", ntohs(port->port));
	json_proto(&port->proto, json);
}

static void json_service(const void *value, struct json *json)
{
	const struct service_value *service = value;

	json_key(json, "ServerAddr");
	group_json_addr(json, service->addr);
	json_port(&service->port, json);
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

static void json_interface(const void *value, struct json *json)
{
	const struct interface_value *interface = value;

	if (!*interface->name)
		return;
	json_key(json, "Interfaces");
	json_open(json, '[');
	json_string(json, interface->name);
	json_close(json, ']');
	json_key(json, "IfIndexes");
	json_open(json, '[');
	json_u64(json, interface->ifindex);
	json_close(json, ']');
	if (interface->netns_inode)
		json_key_u64(json, "NetnsInode", interface->netns_inode);
}

static void json_direction(const void *value, struct json *json)
{
	const uint8_t direction = *(const uint8_t *)value;

	if (!direction)
		return;
	json_key(json, "IfDirections");
	json_open(json, '[');
	json_u64(json, direction_index(direction));
	json_close(json, ']');
}

static void json_vlan(const void *value, struct json *json)
{
	const struct vlan_value *vlan = value;

	if (vlan->has_inner)
		json_key_u64(json, "VlanId", ntohs(vlan->inner));
	if (vlan->has_outer)
		json_key_u64(json, "OuterVlanId", ntohs(vlan->outer));
}

static void json_tunnel(const void *value, struct json *json)
{
	const struct tunnel_value *tunnel = value;

	if (!tunnel->type)
		return;
	json_key(json, "TunnelType");
	json_string(json, human_tunnel_name(tunnel->type));
	if (tunnel->has_vni)
		json_key_u64(json, "Vni", ntohl(tunnel->vni));
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

static void json_process(const void *value, struct json *json)
{
	const struct process_value *process = value;

	if (!process->is_known)
		return;
	json_key_u64(json, "Pid", ntohl(process->pid));
	json_key(json, "Process");
	json_string(json, process->command);
}

static void fill_container(const struct group_part *part, void *value)
{
	struct container_value *container = value;

	if (part->process)
		snprintf(container->id, sizeof(container->id), "%s",
			 part->process->container_id);
}

static void note_container(const struct group_part *part, void *ret_note)
{
	struct container_note *note = ret_note;

	fill_container(part, &note->container);
	if (part->process)
		snprintf(note->name, sizeof(note->name), "%s",
			 part->process->container_name);
}

static bool is_named_container(const void *note)
{
	return *((const struct container_note *)note)->name;
}

/* Show the ID as container tools do, since another container may get the name of one that ended. */
static void text_container(const void *value, const struct group_text *to)
{
	const struct container_note *note = value;
	const char *id = note->container.id;

	if (*note->name)
		snprintf(to->buf, to->size, "%s (%.12s)", note->name, id);
	else
		snprintf(to->buf, to->size, "%.12s", *id ? id : "-");
	safe_cell(to->buf);
}

static void json_known(const char *text, const char *key, struct json *json)
{
	if (*text)
		json_key_string(json, key, text);
}

static void json_container(const void *value, struct json *json)
{
	const struct container_note *note = value;

	json_known(note->container.id, "ContainerId", json);
	json_known(note->name, "ContainerName", json);
}

static void fill_pod(const struct group_part *part, void *value)
{
	struct pod_value *pod = value;

	if (part->process)
		snprintf(pod->uid, sizeof(pod->uid), "%s",
			 part->process->pod_uid);
}

static void note_pod(const struct group_part *part, void *ret_note)
{
	struct pod_note *note = ret_note;

	fill_pod(part, &note->pod);
	if (!part->process)
		return;
	snprintf(note->name, sizeof(note->name), "%s", part->process->pod_name);
	snprintf(note->namespace, sizeof(note->namespace), "%s",
		 part->process->pod_namespace);
}

static bool is_named_pod(const void *note)
{
	return *((const struct pod_note *)note)->name;
}

/* Show the beginning of the UID, too, as with containers. */
static void text_pod(const void *value, const struct group_text *to)
{
	const struct pod_note *note = value;
	const char *uid = note->pod.uid;

	if (*note->name)
		snprintf(to->buf, to->size, "%s/%s (%.8s)", note->namespace,
			 note->name, uid);
	else
		snprintf(to->buf, to->size, "%s", *uid ? uid : "-");
	safe_cell(to->buf);
}

static void json_pod(const void *value, struct json *json)
{
	const struct pod_note *note = value;

	json_known(note->pod.uid, "PodUid", json);
	json_known(note->name, "PodName", json);
	json_known(note->namespace, "PodNamespace", json);
}

/* ---- Networks ------------------------------------------------------------------- */

static void fill_network_of(const struct group_part *part, enum group_addr addr,
			    void *value)
{
	strcpy(value, netobs_networks_find(part->networks, part->addrs[addr]));
}

static void fill_network(const struct group_part *part, void *value)
{
	fill_network_of(part, ADDR_CLIENT, value);
}

static void fill_src_network(const struct group_part *part, void *value)
{
	fill_network_of(part, ADDR_SRC, value);
}

static void fill_dst_network(const struct group_part *part, void *value)
{
	fill_network_of(part, ADDR_DST, value);
}

static void text_network(const void *value, const struct group_text *to)
{
	snprintf(to->buf, to->size, "%s", (const char *)value);
}

static void json_network(const void *value, struct json *json)
{
	json_key_string(json, "ClientNetwork", value);
}

static void json_src_network(const void *value, struct json *json)
{
	json_key_string(json, "SrcNetwork", value);
}

static void json_dst_network(const void *value, struct json *json)
{
	json_key_string(json, "DstNetwork", value);
}

/* ---- Keys ----------------------------------------------------------------------- */

#define ADDR_KEY(key, title, parts, which, json)                         \
	{                                                                \
		.name = key, .heading = title, .size = 16, .has = parts, \
		.addr = which, .json_name = json                         \
	}
#define KEY(key, title, value, parts, has_process)                           \
	{                                                                    \
		.name = #key, .heading = title, .size = sizeof(value),       \
		.has = parts, .of_process = has_process, .fill = fill_##key, \
		.text = text_##key, .json = json_##key,                      \
		.record = group_record_##key                                 \
	}
#define NOTED_KEY(key, title, value, noted, named, parts, has_process)     \
	{                                                                  \
		.name = #key, .heading = title, .size = sizeof(value),     \
		.has = parts, .of_process = has_process,                   \
		.note_size = sizeof(noted), .note = note_##key,            \
		.is_named = named, .fill = fill_##key, .text = text_##key, \
		.json = json_##key, .record = group_record_##key           \
	}

#define NETWORK_KEY(key, title)                                               \
	{                                                                     \
		.name = #key, .heading = title, .has_networks = true,         \
		.size = NETOBS_NETWORK_NAME_MAX, .has = "",                   \
		.fill = fill_##key, .text = text_network, .json = json_##key, \
		.record = group_record_##key                                  \
	}

_Static_assert(sizeof(struct conversation_note) + sizeof(struct container_note) +
			       sizeof(struct pod_note) <=
		       GROUP_NOTES_MAX,
	       "notes of any keys fit");

const struct group_key group_keys_all[] = {
	ADDR_KEY("src", "SOURCE", "host", ADDR_SRC, "SrcAddr"),
	ADDR_KEY("dst", "DESTINATION", "host", ADDR_DST, "DstAddr"),
	ADDR_KEY("client", "CLIENT", "host", ADDR_CLIENT, "ClientAddr"),
	KEY(service, "SERVICE", struct service_value, "host port proto", false),
	ADDR_KEY("host", "HOST", "", ADDR_HOST, "HostAddr"),
	KEY(tuple, "SOURCE \u2192 DESTINATION", struct tuple_value,
	    "src dst host port proto", false),
	NOTED_KEY(conversation, "CLIENT \u2192 SERVER", uint64_t,
		  struct conversation_note, NULL,
		  "client service tuple host port proto", false),
	KEY(pair, "HOSTS", struct pair_value, "host", false),
	KEY(port, "PORT", struct port_value, "proto", false),
	KEY(proto, "PROTO", uint8_t, "", false),
	KEY(interface, "INTERFACE", struct interface_value, "", false),
	KEY(direction, "DIRECTION", uint8_t, "", false),
	KEY(vlan, "VLAN", struct vlan_value, "", false),
	KEY(tunnel, "TUNNEL", struct tunnel_value, "", false),
	KEY(process, "PROCESS", struct process_value, "", true),
	NOTED_KEY(container, "CONTAINER", struct container_value,
		  struct container_note, is_named_container, "", true),
	NOTED_KEY(pod, "POD", struct pod_value, struct pod_note, is_named_pod,
		  "", true),
	NETWORK_KEY(network, "NETWORK"),
	NETWORK_KEY(src_network, "SOURCE NETWORK"),
	NETWORK_KEY(dst_network, "DESTINATION NETWORK"),
	{ 0 }
};
