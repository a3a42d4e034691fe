/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include <netobs/flow.h>

#include <errno.h>
#include <stdbool.h>

#include "any.h"
#include "base/json.h"
#include "fields.h"

static const char *const tunnel_names[] = {
	[NETOBS_TUNNEL_VXLAN] = "vxlan",
	[NETOBS_TUNNEL_GENEVE] = "geneve",
	[NETOBS_TUNNEL_GRE] = "gre",
	[NETOBS_TUNNEL_IPIP] = "ipip",
};

enum { TUNNEL_NAMES = sizeof(tunnel_names) / sizeof(tunnel_names[0]) };

/* Down to whole milliseconds, also before 1970. */
static int64_t ms_floor(int64_t ns)
{
	return ns / 1000000 - (ns % 1000000 < 0);
}

/* ---- A field, by its type ------------------------------------------------------- */

#define add_number json_key_u64
#define add_id json_key_u64
#define add_count json_key_u64
#define add_tcp_flags json_key_u64
#define add_dscp json_key_u64

static void add_time(struct json *json, const char *key, int64_t ns)
{
	json_key(json, key);
	json_i64(json, ms_floor(ns));
}

static void add_address(struct json *json, const char *key, const uint8_t ip[16])
{
	json_key(json, key);
	json_ip(json, ip);
}

#define add_tunnel_end add_address

static void add_mac(struct json *json, const char *key, const uint8_t mac[6])
{
	json_key(json, key);
	json_mac(json, mac);
}

static void add_tunnel(struct json *json, const char *key, uint8_t tunnel)
{
	if (tunnel >= TUNNEL_NAMES || !tunnel_names[tunnel])
		return;
	json_key(json, key);
	json_string(json, tunnel_names[tunnel]);
}

/* NetObserv's bits, which only its protobuf has. */
#define add_tcp_combined(json, key, value) (void)(value)

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, key, ...) \
	if (field_is_known(flow, bit))            \
		add_##type(json, key, flow->member);

static void add_fields(struct json *json, const struct netobs_flow *flow)
{
#include "fields.def"
}

/* ---- Points ---------------------------------------------------------------------- */

static void put_name(struct json *json, const char *name)
{
	json_string(json, name ? name : "unknown");
}

#define LIST(key, put, member)                                 \
	json_key(json, key);                                   \
	json_open(json, '[');                                  \
	for (uint32_t i = 0; i < flow->n_points; i++)          \
		put(json, netobs_flow_point(flow, i)->member); \
	json_close(json, ']');

/* One number when all points share the namespace, else one per point. */
static void add_netns(struct json *json, const struct netobs_flow *flow,
		      const char *key, const char *plural)
{
	const uint32_t first = netobs_flow_point(flow, 0)->netns_inode;
	bool shared = true, known = first;

	for (uint32_t i = 1; i < flow->n_points; i++) {
		uint32_t inode = netobs_flow_point(flow, i)->netns_inode;

		shared &= inode == first;
		known |= inode != 0;
	}
	if (!known)
		return;
	if (shared) {
		json_key_u64(json, key, first);
		return;
	}
	LIST(plural, json_u64, netns_inode)
}

#define list_name(key, member) LIST(key, put_name, member)
#define list_number(key, member) LIST(key, json_u64, member)
#define list_direction list_number
#define list_netns(key, member) add_netns(json, flow, key, key "s");

#define FIELD(...)
#define POINT_FIELD(member, type, key, ...) list_##type(key, member)

static void add_points(struct json *json, const struct netobs_flow *flow)
{
#include "fields.def"
}

int netobs_flow_json(const struct netobs_flow *flow, char *buf, size_t size)
{
	union any_record copy;
	struct json json;

	if (!flow || !buf)
		return -EINVAL;
	flow = flow_view(flow, &copy);
	if (!flow)
		return -EINVAL;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_fields(&json, flow);
	if (flow->n_points)
		add_points(&json, flow);
	json_close(&json, '}');
	return json_end(&json);
}
