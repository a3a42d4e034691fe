/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "any.h"
#include "base/json.h"
#include "base/text.h"
#include "catalogue/direction.h"
#include "catalogue/fields.h"
#include "catalogue/records.h"

#include <errno.h>
#include <string.h>

/* ---- A field, by its type: a comma, its key, which is a constant, and its value -------- */

enum {
	VALUE_MAX = NETOBS_ADDR_STR_MAX + 2,
	TCP_SYN = 0x02,
};

static inline char *put_json_text(char *to, const char *text, size_t len)
{
	memcpy(to, text, len);
	return to + len;
}

/* A copy of constant length is a few instructions. */
#define put_key(to, key) \
	put_json_text(to, ",\"" key "\":", sizeof(",\"" key "\":") - 1)

static char *put_time(char *to, int64_t ns)
{
	int64_t ms = record_ms(ns);

	if (ms >= 0)
		return text_u64(to, (uint64_t)ms);
	*to++ = '-';
	return text_u64(to, -(uint64_t)ms);
}

static char *put_address(char *to, const uint8_t ip[16])
{
	*to++ = '"';
	to = text_ip(to, ip);
	*to++ = '"';
	return to;
}

static char *put_mac(char *to, const uint8_t mac[6])
{
	*to++ = '"';
	to = text_mac(to, mac);
	*to++ = '"';
	return to;
}

static char *put_hash(char *to, uint64_t hash)
{
	*to++ = '"';
	to = text_hash(to, hash);
	*to++ = '"';
	return to;
}

enum { TEXT_VALUE_MAX = 512 };

/* The text may fill its array, and have any bytes. */
static char *put_array(char *to, const char *array, size_t size)
{
	char text[TEXT_VALUE_MAX / 8];
	struct json json;

	size = strnlen(array, min_u64(size, sizeof(text) - 1));
	memcpy(text, array, size);
	text[size] = '\0';
	json_begin(&json, to, TEXT_VALUE_MAX);
	json_string(&json, text);
	return json.pos;
}

#define put_text(to, array) put_array(to, array, sizeof(array))
#define put_number text_u64
#define put_id text_u64
#define put_count text_u64
#define put_duration text_u64
#define put_tcp_flags text_u64
#define put_tcp_combined text_u64
#define put_dscp text_u64
#define put_tunnel_end put_address

static char *put_tunnel(char *to, uint8_t tunnel)
{
	const char *name = tunnel_name(tunnel);

	*to++ = '"';
	to = put_json_text(to, name, strlen(name));
	*to++ = '"';
	return to;
}

/* Types of which a value may have no JSON. Where there is a SYN, 0 says that it was none of a server. */
#define UNLESS_tunnel ~, tunnel_name(flow->tunnel)
#define UNLESS_tcp_combined ~, (flow->tcp_combined || flow->tcp_flags & TCP_SYN)

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, key, ...)                             \
	if (field_is_known(flow, bit) && FIELD_CHOOSE(UNLESS_##type, true)) { \
		to = put_key(to, key);                                        \
		to = put_##type(to, flow->member);                            \
	}

#define ROOM_text ~, TEXT_VALUE_MAX

/* All of them, without checks for room. */
static char *put_fields(char *to, const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
	return to;
}

#define POINT_FIELD(...)
#define FIELD(member, type, bit, merge, key, ...) \
	+sizeof(",\"" key "\":") + FIELD_CHOOSE(ROOM_##type, VALUE_MAX)

enum {
	FIELDS_MAX =
#include "catalogue/fields.def"
		+TEXT_SPARE
};

/* put_fields() begins with a comma, which the bracket replaces. */
static void add_flow_fields(struct json *json, const struct netobs_flow *flow)
{
	char text[FIELDS_MAX], *end, *start = json_room(json, FIELDS_MAX);

	if (start) {
		json->pos = put_fields(start - 1, flow);
		json->comma = true;
		start[-1] = '{';
		return;
	}
	end = put_fields(text, flow);
	json_members(json, text + 1, (size_t)(end - text) - 1);
}

/* ---- Points ---------------------------------------------------------------------- */

static void put_name(struct json *json, const char *name)
{
	json_string(json, name ? name : "unknown");
}

/* Like fields, it begins with a comma. */
#define LIST(key, put, member)                                          \
	json_put(json, ",\"" key "\":[", sizeof(",\"" key "\":[") - 1); \
	json->comma = false;                                            \
	for (uint32_t i = 0; i < flow->n_points; i++)                   \
		put(json, flow_point(flow, i)->member);                 \
	json_close(json, ']');

static bool is_netns_known(const struct netobs_flow *flow)
{
	for (uint32_t i = 0; i < flow->n_points; i++)
		if (flow_point(flow, i)->netns_inode)
			return true;
	return false;
}

static bool is_netns_shared(const struct netobs_flow *flow)
{
	for (uint32_t i = 1; i < flow->n_points; i++)
		if (flow_point(flow, i)->netns_inode != flow->points->netns_inode)
			return false;
	return true;
}

static void put_direction(struct json *json, uint8_t direction)
{
	json_u64(json, direction_index(direction));
}

#define list_name(key, member) LIST(key, put_name, member)
#define list_number(key, member) LIST(key, json_u64, member)
#define list_direction(key, member) LIST(key, put_direction, member)
/* One number when all points share the namespace, else one per point. */
#define list_netns(key, member)                                        \
	if (is_netns_known(flow)) {                                    \
		if (is_netns_shared(flow))                             \
			json_key_u64(json, key, flow->points->member); \
		else {                                                 \
			LIST(key "s", json_u64, member)                \
		}                                                      \
	}

#define FIELD(...)
#define POINT_FIELD(member, type, key, ...) list_##type(key, member)

static void add_points(struct json *json, const struct netobs_flow *flow)
{
#include "catalogue/fields.def"
}

/* ---- Processes ------------------------------------------------------------------- */

#define add_number json_key_u64
#define add_count json_key_u64

static void add_text(struct json *json, const char *key, const char *text)
{
	if (*text)
		json_key_string(json, key, text);
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) \
	add_##type(json, "Src" key, process->member);

static void add_process_source(struct json *json,
			       const struct netobs_process *process)
{
#include "catalogue/fields.def"
}

#define FIELD(...)
#define POINT_FIELD(...)
#define PROCESS_FIELD(member, type, key, ...) \
	add_##type(json, "Dst" key, process->member);

static void add_destination(struct json *json,
			    const struct netobs_process *process)
{
#include "catalogue/fields.def"
}

void process_json(struct json *json, const struct netobs_process *src,
		  const struct netobs_process *dst)
{
	if (src)
		add_process_source(json, src);
	if (dst)
		add_destination(json, dst);
}

/* ---- All of it ------------------------------------------------------------------- */

int flow_record_json(const struct netobs_record *record, char *buf, size_t size)
{
	const struct netobs_flow *flow = as_flow(record);
	struct json json;

	json_begin(&json, buf, size);
	json_open(&json, '{');
	add_flow_fields(&json, flow);
	if (flow->src_process || flow->dst_process)
		process_json(&json, flow->src_process, flow->dst_process);
	if (flow->n_points)
		add_points(&json, flow);
	json_close(&json, '}');
	return json_end(&json);
}

int netobs_flow_json(const struct netobs_flow *flow, char *buf, size_t size)
{
	union any_record copy;

	if (!flow || !buf)
		return -EINVAL;
	flow = flow_view(flow, &copy);
	return flow ? flow_record_json(&flow->record, buf, size) : -EINVAL;
}
