/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "by.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/json.h"
#include "human.h"
#include "names.h"
#include "base/suggest.h"

/* Ports are in network byte order, so that values sort as numbers do. */
struct port_value {
	uint16_t port;
	uint8_t proto;
	uint8_t has_port;
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

struct vlan_value {
	uint16_t outer, inner;
	uint8_t has_outer, has_inner;
};

struct tunnel_value {
	uint32_t vni;
	uint8_t type, has_vni;
};

/* Addresses that are values by themselves. */
enum addr {
	ADDR_NONE,
	ADDR_SRC,
	ADDR_DST,
	ADDR_CLIENT,
	ADDR_SERVER,
	ADDR_HOST,
	ADDRS
};

/* What a flow is to the group that it counts for. */
struct part {
	const struct netobs_flow *flow;
	const uint8_t *addrs[ADDRS];
	uint16_t server_port;
};

struct by_key {
	const char *name, *heading;
	size_t size;
	const char *has; /* other keys that are part of it */

	enum addr addr; /* all that is needed of an address, or */
	const char *json_name;

	void (*fill)(const struct part *part, void *ret_value);
	void (*text)(const void *value, struct names *names, char *buf,
		     size_t size);
	void (*json)(const void *value, struct json *json);
};

/* ---- Addresses ------------------------------------------------------------------ */

static void fill_pair(const struct part *part, void *value)
{
	const uint8_t *src = part->flow->src, *dst = part->flow->dst;
	struct pair_value *pair = value;
	bool swap = memcmp(src, dst, sizeof(pair->addrs[0])) > 0;

	memcpy(pair->addrs[swap], src, sizeof(pair->addrs[0]));
	memcpy(pair->addrs[!swap], dst, sizeof(pair->addrs[0]));
}

static void text_pair(const void *value, struct names *names, char *buf,
		      size_t size)
{
	const struct pair_value *pair = value;
	char low[NAMES_MAX], high[NAMES_MAX];

	names_host(names, pair->addrs[0], low, sizeof(low));
	names_host(names, pair->addrs[1], high, sizeof(high));
	snprintf(buf, size, "%s \u2194 %s", low, high);
}

static void json_add_addr(struct json *json, const uint8_t addr[16])
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
	json_add_addr(json, pair->addrs[0]);
	json_add_addr(json, pair->addrs[1]);
	json_close(json, ']');
}

/* ---- Services ------------------------------------------------------------------- */

static void fill_port(const struct part *part, void *value)
{
	struct port_value *port = value;

	port->proto = part->flow->proto;
	port->has_port = !!(part->flow->has & NETOBS_HAS_PORTS);
	port->port = htons(part->server_port);
}

static void fill_service(const struct part *part, void *value)
{
	struct service_value *service = value;

	memcpy(service->addr, part->addrs[ADDR_SERVER], sizeof(service->addr));
	fill_port(part, &service->port);
}

static void fill_proto(const struct part *part, void *value)
{
	*(uint8_t *)value = part->flow->proto;
}

static void text_proto(const void *value, struct names *names, char *buf,
		       size_t size)
{
	(void)names;
	human_protocol(buf, size, *(const uint8_t *)value);
}

static void text_port(const void *value, struct names *names, char *buf,
		      size_t size)
{
	const struct port_value *port = value;
	char number[NAMES_MAX], proto[16];

	human_protocol(proto, sizeof(proto), port->proto);
	names_port(port->has_port ? names : NULL, ntohs(port->port),
		   port->proto, number, sizeof(number));
	snprintf(buf, size, "%s%s%s", port->has_port ? number : "",
		 port->has_port ? "/" : "", proto);
}

static void text_service(const void *value, struct names *names, char *buf,
			 size_t size)
{
	const struct service_value *service = value;
	char host[NAMES_MAX], port[NAMES_MAX + 16];

	names_host(names, service->addr, host, sizeof(host));
	text_port(&service->port, names, port, sizeof(port));
	if (service->port.has_port)
		human_endpoint(buf, size, host, port);
	else
		snprintf(buf, size, "%s %s", host, port);
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
	json_add_addr(json, service->addr);
	json_port(&service->port, json);
}

/* ---- Places --------------------------------------------------------------------- */

static void fill_interface(const struct part *part, void *value)
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

static void fill_direction(const struct part *part, void *value)
{
	const struct netobs_point *point = netobs_flow_point(part->flow, 0);

	*(uint8_t *)value = point ? point->direction + 1 : 0;
}

static void fill_vlan(const struct part *part, void *value)
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

static void fill_tunnel(const struct part *part, void *value)
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

static void text_interface(const void *value, struct names *names, char *buf,
			   size_t size)
{
	const struct interface_value *interface = value;

	(void)names;
	snprintf(buf, size, "%s", *interface->name ? interface->name : "-");
	human_clean(buf);
}

static void text_direction(const void *value, struct names *names, char *buf,
			   size_t size)
{
	static const char *const words[] = { "-", "in", "out" };

	(void)names;
	snprintf(buf, size, "%s", words[*(const uint8_t *)value]);
}

static void text_vlan(const void *value, struct names *names, char *buf,
		      size_t size)
{
	const struct vlan_value *vlan = value;

	(void)names;
	if (vlan->has_outer && vlan->has_inner)
		snprintf(buf, size, "%u.%u", ntohs(vlan->outer),
			 ntohs(vlan->inner));
	else if (vlan->has_outer || vlan->has_inner)
		snprintf(buf, size, "%u",
			 ntohs(vlan->has_outer ? vlan->outer : vlan->inner));
	else
		snprintf(buf, size, "-");
}

static void text_tunnel(const void *value, struct names *names, char *buf,
			size_t size)
{
	const struct tunnel_value *tunnel = value;

	(void)names;
	if (tunnel->has_vni)
		snprintf(buf, size, "%s %u", human_tunnel_name(tunnel->type),
			 ntohl(tunnel->vni));
	else
		snprintf(buf, size, "%s",
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
	json_u64(json, direction - 1U);
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

/* ---- Keys ----------------------------------------------------------------------- */

#define ADDR_KEY(name, heading, addr, json)                         \
	{                                                           \
		name, heading, 16, "", addr, json, NULL, NULL, NULL \
	}
#define KEY(name, heading, value, has)                               \
	{                                                            \
#name, heading, sizeof(value), has, ADDR_NONE, NULL, \
			fill_##name, text_##name, json_##name        \
	}

static const struct by_key by_keys[] = {
	ADDR_KEY("src", "SOURCE", ADDR_SRC, "SrcAddr"),
	ADDR_KEY("dst", "DESTINATION", ADDR_DST, "DstAddr"),
	ADDR_KEY("client", "CLIENT", ADDR_CLIENT, "ClientAddr"),
	KEY(service, "SERVICE", struct service_value, "port proto"),
	ADDR_KEY("host", "HOST", ADDR_HOST, "HostAddr"),
	KEY(pair, "HOSTS", struct pair_value, ""),
	KEY(port, "PORT", struct port_value, "proto"),
	KEY(proto, "PROTO", uint8_t, ""),
	KEY(interface, "INTERFACE", struct interface_value, ""),
	KEY(direction, "DIRECTION", uint8_t, ""),
	KEY(vlan, "VLAN", struct vlan_value, ""),
	KEY(tunnel, "TUNNEL", struct tunnel_value, ""),
	{ 0 }
};

static size_t aligned_size(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

static const struct by_key *by_find_key(const char *name, size_t len, char *why,
					size_t size)
{
	struct suggestion suggestion = suggestion_for(name, len);
	const char *best;
	size_t used;

	for (const struct by_key *key = by_keys; key->name; key++) {
		if (strlen(key->name) == len && !strncmp(key->name, name, len))
			return key;
		suggestion_offer(&suggestion, key->name);
	}
	best = suggestion_best(&suggestion);
	used = (size_t)snprintf(why, size, "there is no key '%.*s'",
				(int)(len < 32 ? len : 32), name);
	if (best) {
		snprintf(why + used, size - used, "; did you mean '%s'?", best);
		return NULL;
	}
	used += (size_t)snprintf(why + used, size - used, "; there are flow");
	for (const struct by_key *key = by_keys; key->name && used < size; key++)
		used += (size_t)snprintf(why + used, size - used, ", %s",
					 key->name);
	return NULL;
}

/* Of "port proto". */
static bool key_has_part(const struct by_key *key, const char *name)
{
	const char *part = strstr(key->has, name);

	return part && strcspn(part, " ") == strlen(name);
}

static int by_add_key(struct by *by, const struct by_key *key, char *why,
		      size_t size)
{
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *other = by->keys[i];

		if (other == key) {
			snprintf(why, size, "'%s' is there twice", key->name);
			return -EINVAL;
		}
		if (!key_has_part(other, key->name) &&
		    !key_has_part(key, other->name))
			continue;
		snprintf(why, size, "'%s' and '%s': one is part of the other",
			 other->name, key->name);
		return -EINVAL;
	}
	if (by->n == BY_KEYS || by->size + aligned_size(key->size) > BY_SIZE) {
		snprintf(why, size, "too many keys");
		return -EINVAL;
	}
	by->keys[by->n++] = key;
	by->size += aligned_size(key->size);
	by->both_ends |= key->addr == ADDR_HOST;
	return 0;
}

int by_parse(const char *text, struct by *ret_by, char *ret_why, size_t size)
{
	struct by by = { 0 };

	if (!strcmp(text, "flow")) {
		*ret_by = by;
		return 0;
	}
	for (;; text++) {
		size_t len = strcspn(text, ",");
		const struct by_key *key;

		if (len == 4 && !strncmp(text, "flow", len)) {
			snprintf(ret_why, size, "'flow' stands alone");
			return -EINVAL;
		}
		key = by_find_key(text, len, ret_why, size);
		if (!key || by_add_key(&by, key, ret_why, size) < 0)
			return -EINVAL;
		text += len;
		if (!*text)
			break;
	}
	*ret_by = by;
	return 0;
}

int by_offset(const struct by *by, const char *key, size_t *ret_size)
{
	size_t offset = 0;

	for (size_t i = 0; i < by->n; i++) {
		*ret_size = by->keys[i]->size;
		if (!strcmp(by->keys[i]->name, key))
			return (int)offset;
		offset += aligned_size(by->keys[i]->size);
	}
	return -1;
}

/* ---- Values --------------------------------------------------------------------- */

void by_fill(const struct by *by, const struct netobs_flow *flow,
	     enum by_end server, enum by_end end, uint8_t ret_value[BY_SIZE])
{
	const bool from_server = server == BY_SOURCE;
	const struct part part = {
		.flow = flow,
		.addrs = { [ADDR_SRC] = flow->src,
			   [ADDR_DST] = flow->dst,
			   [ADDR_CLIENT] = from_server ? flow->dst : flow->src,
			   [ADDR_SERVER] = from_server ? flow->src : flow->dst,
			   [ADDR_HOST] = end == BY_SOURCE ? flow->src :
							    flow->dst },
		.server_port = !(flow->has & NETOBS_HAS_PORTS) ? 0 :
			       from_server ? flow->src_port :
					     flow->dst_port,
	};

	memset(ret_value, 0, by->size);
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *key = by->keys[i];

		if (key->fill)
			key->fill(&part, ret_value);
		else
			memcpy(ret_value, part.addrs[key->addr], key->size);
		ret_value += aligned_size(key->size);
	}
}

const char *by_heading(const struct by *by, size_t key)
{
	return by->keys[key]->heading;
}

void by_text(const struct by *by, size_t key, const uint8_t value[BY_SIZE],
	     struct names *names, char *buf, size_t size)
{
	for (size_t i = 0; i < key; i++)
		value += aligned_size(by->keys[i]->size);
	if (by->keys[key]->text)
		by->keys[key]->text(value, names, buf, size);
	else
		names_host(names, value, buf, size);
}

void by_json(const struct by *by, const uint8_t value[BY_SIZE], struct json *json)
{
	for (size_t i = 0; i < by->n; i++) {
		const struct by_key *key = by->keys[i];

		if (key->json) {
			key->json(value, json);
		} else {
			json_key(json, key->json_name);
			json_add_addr(json, value);
		}
		value += aligned_size(key->size);
	}
}
