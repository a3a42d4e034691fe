/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "by.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

#include "base/json.h"
#include "bpf/store/hash.h"
#include "human.h"
#include "names.h"
#include "suggest.h"

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

struct ends {
	enum by_end server, host;
};

struct by_key {
	const char *name, *heading;
	size_t size;
	const char *has; /* other keys that are part of it */
	void (*fill)(const struct netobs_flow *flow, struct ends ends,
		     void *ret_value);
	void (*text)(const void *value, struct names *names, char *buf,
		     size_t size);
	void (*json)(const void *value, struct json *json);
};

static const uint8_t *end_addr(const struct netobs_flow *flow, enum by_end end)
{
	return end == BY_SOURCE ? flow->src : flow->dst;
}

static enum by_end other_end(enum by_end end)
{
	return end == BY_SOURCE ? BY_DESTINATION : BY_SOURCE;
}

/* ---- Addresses ------------------------------------------------------------------ */

static void fill_src(const struct netobs_flow *flow, struct ends ends, void *value)
{
	(void)ends;
	memcpy(value, flow->src, sizeof(flow->src));
}

static void fill_dst(const struct netobs_flow *flow, struct ends ends, void *value)
{
	(void)ends;
	memcpy(value, flow->dst, sizeof(flow->dst));
}

static void fill_host(const struct netobs_flow *flow, struct ends ends,
		      void *value)
{
	memcpy(value, end_addr(flow, ends.host), sizeof(flow->src));
}

static void fill_client(const struct netobs_flow *flow, struct ends ends,
			void *value)
{
	memcpy(value, end_addr(flow, other_end(ends.server)), sizeof(flow->src));
}

static void fill_pair(const struct netobs_flow *flow, struct ends ends,
		      void *value)
{
	struct pair_value *pair = value;
	bool swap = memcmp(flow->src, flow->dst, sizeof(flow->src)) > 0;

	(void)ends;
	memcpy(pair->addrs[swap], flow->src, sizeof(flow->src));
	memcpy(pair->addrs[!swap], flow->dst, sizeof(flow->dst));
}

static void text_addr(const void *value, struct names *names, char *buf,
		      size_t size)
{
	names_host(names, value, buf, size);
}

static void text_pair(const void *value, struct names *names, char *buf,
		      size_t size)
{
	const struct pair_value *pair = value;
	char low[NAMES_MAX], high[NAMES_MAX];

	text_addr(pair->addrs[0], names, low, sizeof(low));
	text_addr(pair->addrs[1], names, high, sizeof(high));
	snprintf(buf, size, "%s \u2194 %s", low, high);
}

static void json_add_addr(struct json *json, const uint8_t addr[16])
{
	char text[NETOBS_ADDR_STR_MAX];

	netobs_addr_str(addr, text, sizeof(text));
	json_string(json, text);
}

static void json_addr(struct json *json, const char *key, const void *value)
{
	json_key(json, key);
	json_add_addr(json, value);
}

static void json_src(const void *value, struct json *json)
{
	json_addr(json, "SrcAddr", value);
}

static void json_dst(const void *value, struct json *json)
{
	json_addr(json, "DstAddr", value);
}

static void json_host(const void *value, struct json *json)
{
	json_addr(json, "HostAddr", value);
}

static void json_client(const void *value, struct json *json)
{
	json_addr(json, "ClientAddr", value);
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

static void fill_port(const struct netobs_flow *flow, struct ends ends,
		      void *value)
{
	struct port_value *port = value;

	port->proto = flow->proto;
	port->has_port = !!(flow->has & NETOBS_HAS_PORTS);
	if (port->has_port)
		port->port = htons(ends.server == BY_SOURCE ? flow->src_port :
							      flow->dst_port);
}

static void fill_service(const struct netobs_flow *flow, struct ends ends,
			 void *value)
{
	struct service_value *service = value;

	memcpy(service->addr, end_addr(flow, ends.server), sizeof(service->addr));
	fill_port(flow, ends, &service->port);
}

static void fill_proto(const struct netobs_flow *flow, struct ends ends,
		       void *value)
{
	(void)ends;
	*(uint8_t *)value = flow->proto;
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

	json_addr(json, "ServerAddr", service->addr);
	json_port(&service->port, json);
}

/* ---- Places --------------------------------------------------------------------- */

static void fill_interface(const struct netobs_flow *flow, struct ends ends,
			   void *value)
{
	const struct netobs_point *point = netobs_flow_point(flow, 0);
	struct interface_value *interface = value;

	(void)ends;
	if (!point)
		return;
	interface->ifindex = point->ifindex;
	interface->netns_inode = point->netns_inode;
	snprintf(interface->name, sizeof(interface->name), "%s",
		 point->name ? point->name : "unknown");
}

static void fill_direction(const struct netobs_flow *flow, struct ends ends,
			   void *value)
{
	const struct netobs_point *point = netobs_flow_point(flow, 0);

	(void)ends;
	*(uint8_t *)value = point ? point->direction + 1 : 0;
}

static void fill_vlan(const struct netobs_flow *flow, struct ends ends,
		      void *value)
{
	struct vlan_value *vlan = value;

	(void)ends;
	vlan->has_inner = !!(flow->has & NETOBS_HAS_VLAN);
	vlan->has_outer = !!(flow->has & NETOBS_HAS_OUTER_VLAN);
	if (vlan->has_inner)
		vlan->inner = htons(flow->vlan_id);
	if (vlan->has_outer)
		vlan->outer = htons(flow->outer_vlan_id);
}

static void fill_tunnel(const struct netobs_flow *flow, struct ends ends,
			void *value)
{
	struct tunnel_value *tunnel = value;

	(void)ends;
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

static const struct by_key by_keys[] = {
	{ "src", "SOURCE", 16, "", fill_src, text_addr, json_src },
	{ "dst", "DESTINATION", 16, "", fill_dst, text_addr, json_dst },
	{ "client", "CLIENT", 16, "", fill_client, text_addr, json_client },
	{ "service", "SERVICE", sizeof(struct service_value), "port proto",
	  fill_service, text_service, json_service },
	{ "host", "HOST", 16, "", fill_host, text_addr, json_host },
	{ "pair", "HOSTS", sizeof(struct pair_value), "", fill_pair, text_pair,
	  json_pair },
	{ "port", "PORT", sizeof(struct port_value), "proto", fill_port,
	  text_port, json_port },
	{ "proto", "PROTO", 1, "", fill_proto, text_proto, json_proto },
	{ "interface", "INTERFACE", sizeof(struct interface_value), "",
	  fill_interface, text_interface, json_interface },
	{ "direction", "DIRECTION", 1, "", fill_direction, text_direction,
	  json_direction },
	{ "vlan", "VLAN", sizeof(struct vlan_value), "", fill_vlan, text_vlan,
	  json_vlan },
	{ "tunnel", "TUNNEL", sizeof(struct tunnel_value), "", fill_tunnel,
	  text_tunnel, json_tunnel },
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
	by->both_ends |= key->fill == fill_host;
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

static uint64_t hash_server(const struct netobs_flow *flow, enum by_end end)
{
	uint64_t words[2], hash;

	memcpy(words, end_addr(flow, end), sizeof(words));
	hash = hash_finish(words[0] +
			   (end == BY_SOURCE ? flow->src_port : flow->dst_port));
	hash = hash_finish(hash ^ words[1]);
	return hash ? hash : 1;
}

static bool is_known_server(const struct by_servers *servers, uint64_t hash)
{
	return servers->hashes[hash % BY_SERVERS] == hash;
}

static bool is_multicast(const uint8_t addr[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	return addr[0] == 0xff ||
	       (!memcmp(addr, v4, sizeof(v4)) && addr[12] >= 224);
}

static bool is_icmp_reply(const struct netobs_flow *flow)
{
	return flow->has & NETOBS_HAS_ICMP &&
	       flow->icmp_type == (flow->proto == IPPROTO_ICMPV6 ? 129 : 0);
}

/* Without a SYN: accepted a connection earlier, or has the lower port or address. */
static enum by_end guess_server(const struct by_servers *servers,
				const struct netobs_flow *flow)
{
	bool is_src_known = false, is_dst_known = false;
	bool is_src_lower = memcmp(flow->src, flow->dst, sizeof(flow->src)) < 0;

	if (flow->proto == IPPROTO_TCP) {
		is_src_known =
			is_known_server(servers, hash_server(flow, BY_SOURCE));
		is_dst_known = is_known_server(
			servers, hash_server(flow, BY_DESTINATION));
	}
	if (is_src_known != is_dst_known)
		return is_src_known ? BY_SOURCE : BY_DESTINATION;
	if (flow->src_port != flow->dst_port)
		is_src_lower = flow->src_port < flow->dst_port;
	return is_src_lower ? BY_SOURCE : BY_DESTINATION;
}

enum by_end by_server(struct by_servers *servers, const struct netobs_flow *flow)
{
	const uint16_t syn = 0x02;

	if (flow->has & NETOBS_HAS_TCP &&
	    flow->tcp_combined & NETOBS_TCP_SYN_ACK) {
		uint64_t hash = hash_server(flow, BY_SOURCE);

		servers->hashes[hash % BY_SERVERS] = hash;
		return BY_SOURCE;
	}
	if (flow->has & NETOBS_HAS_TCP && flow->tcp_flags & syn)
		return BY_DESTINATION;
	if (!(flow->has & NETOBS_HAS_PORTS))
		return is_icmp_reply(flow) ? BY_SOURCE : BY_DESTINATION;
	if (is_multicast(flow->dst))
		return BY_DESTINATION;
	return guess_server(servers, flow);
}

void by_fill(const struct by *by, const struct netobs_flow *flow,
	     enum by_end server, enum by_end end, uint8_t ret_value[BY_SIZE])
{
	const struct ends ends = { server, end };
	size_t offset = 0;

	memset(ret_value, 0, by->size);
	for (size_t i = 0; i < by->n; i++) {
		by->keys[i]->fill(flow, ends, ret_value + offset);
		offset += aligned_size(by->keys[i]->size);
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
	by->keys[key]->text(value, names, buf, size);
}

void by_json(const struct by *by, const uint8_t value[BY_SIZE], struct json *json)
{
	for (size_t i = 0; i < by->n; i++) {
		by->keys[i]->json(value, json);
		value += aligned_size(by->keys[i]->size);
	}
}
