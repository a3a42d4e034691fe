/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "record_index.h"

#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/util.h"

enum { VALUES_MAX = 8, PROTOCOL_MAX = 24 };

/*
 * A cell has the names of a member, with a blank between them if there are several, each a name or
 * a path to a nested member, with dots. "?" is the name of a member itself.
 */
struct layout {
	const char *within; /* the member whose members the names are; "*": the first one */
	const char *src, *dst;
	const char *src_port, *dst_port;
	const char *proto; /* a number or a name */
	/* Times are texts, or numbers in a unit: "ns:end". */
	const char *start, *end; /* times of the first and the last packet */
	const char *time;	 /* time of both, if a record lacks these */
	const char *duration;	 /* in seconds, where the end is not there */
};

/* clang-format off */
#define IPFIX                                                            \
	.src = "sourceIPv4Address sourceIPv6Address",                    \
	.dst = "destinationIPv4Address destinationIPv6Address",          \
	.src_port = "sourceTransportPort",                               \
	.dst_port = "destinationTransportPort",                          \
	.proto = "protocolIdentifier",                                   \
	.start = "ms:flowStartMilliseconds s:flowStartSeconds "          \
		 "us:flowStartMicroseconds ns:flowStartNanoseconds",     \
	.end = "ms:flowEndMilliseconds s:flowEndSeconds "                \
	       "us:flowEndMicroseconds ns:flowEndNanoseconds"

#define HUBBLE                                                                     \
	.src = "IP.source", .dst = "IP.destination",                               \
	.src_port = "l4.TCP.source_port l4.UDP.source_port l4.SCTP.source_port",   \
	.dst_port = "l4.TCP.destination_port l4.UDP.destination_port "             \
		    "l4.SCTP.destination_port",                                    \
	.proto = "l4.?", .time = "time"

static const struct layout layouts[] = {
	/* netobs, and agents with its names */
	{ .src = "SrcAddr", .dst = "DstAddr", .src_port = "SrcPort", .dst_port = "DstPort",
	  .proto = "Proto", .start = "ms:TimeFlowStartMs", .end = "ms:TimeFlowEndMs",
	  .time = "ms:TimeMs" },
	/* nfdump -o json */
	{ .src = "src4_addr src6_addr", .dst = "dst4_addr dst6_addr", .src_port = "src_port",
	  .dst_port = "dst_port", .proto = "proto", .start = "first", .end = "last" },
	/* ipfix2json: {"template:0x0100()": {...}} */
	{ .within = "*", IPFIX },
	{ IPFIX },
	/* goflow2 */
	{ .src = "src_addr", .dst = "dst_addr", .src_port = "src_port", .dst_port = "dst_port",
	  .proto = "proto", .start = "ns:time_flow_start_ns", .end = "ns:time_flow_end_ns",
	  .time = "ns:time_received_ns" },
	/* pmacct's print_output: json */
	{ .src = "ip_src", .dst = "ip_dst", .src_port = "port_src", .dst_port = "port_dst",
	  .proto = "ip_proto", .start = "s:timestamp_start s:stamp_inserted",
	  .end = "s:timestamp_end s:stamp_updated" },
	/* Zeek's conn.log */
	{ .src = "id.orig_h", .dst = "id.resp_h", .src_port = "id.orig_p", .dst_port = "id.resp_p",
	  .proto = "proto", .start = "s:ts", .duration = "duration" },
	/* Suricata's eve.json */
	{ .src = "src_ip", .dst = "dest_ip", .src_port = "src_port", .dst_port = "dest_port",
	  .proto = "proto", .start = "flow.start", .end = "flow.end", .time = "timestamp" },
	/* hubble observe -o jsonpb, and -o json of earlier versions */
	{ .within = "flow", HUBBLE },
	{ HUBBLE },
};
/* clang-format on */

/* ---- Values at a path ----------------------------------------------------------------- */

struct values {
	struct json_value list[VALUES_MAX];
	size_t n;
	bool is_full; /* there are more */
};

static void add_value(struct values *values, struct json_value value)
{
	if (values->n < VALUES_MAX)
		values->list[values->n++] = value;
	else
		values->is_full = true;
}

/* NAME, or NAME-2 of a repeated IPFIX element. */
static bool is_name(struct json_value key, const char *name, size_t len)
{
	const size_t key_len = json_length(key);
	const char *rest = key.at + 1 + len;

	if (key_len < len + 2 || memcmp(key.at + 1, name, len) != 0)
		return false;
	if (*rest == '-')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++)
			;
	return rest == key.at + key_len - 1;
}

/* A member's name may be the whole path, such as Zeek's "id.orig_h". */
static void find_values(struct json_value object, const char *path, size_t len,
			struct values *values)
{
	const char *dot = memchr(path, '.', len);
	const size_t first = dot ? (size_t)(dot - path) : len;
	struct json_item item = { 0 };

	while (json_next(object, &item)) {
		if (!item.key.at)
			return;
		if (*path == '?')
			add_value(values, item.key);
		else if (is_name(item.key, path, len))
			add_value(values, item.value);
		else if (dot && is_name(item.key, path, first))
			find_values(item.value, dot + 1, len - first - 1, values);
	}
}

/* The values of all names in a cell. */
static struct values read_cell(struct json_value object, const char *cell)
{
	struct values values = { 0 };

	while (cell && *cell) {
		const size_t len = strcspn(cell, " ");

		find_values(object, cell, len, &values);
		cell += len + (cell[len] == ' ');
	}
	return values;
}

/* ---- What they say: each returns false if it is none, or several ------------------------- */

/* Templates of IPFIX that have both families leave one of them 0. */
static bool read_address(struct json_value object, const char *cell,
			 uint8_t ret_ip[16])
{
	const struct values values = read_cell(object, cell);
	uint8_t ip[16];

	for (size_t i = 0; i < values.n; i++) {
		if (!flow_address_read(values.list[i], ip) ||
		    (i && !ip_is_unspecified(ip) && !ip_is_unspecified(ret_ip)))
			return false;
		if (!i || !ip_is_unspecified(ip))
			memcpy(ret_ip, ip, sizeof(ip));
	}
	return values.n && !values.is_full;
}

/* @return false as well: it is not there */
static bool read_port(struct json_value object, const char *cell,
		      uint16_t *ret_port)
{
	const struct values values = read_cell(object, cell);
	uint64_t number;

	for (size_t i = 0; i < values.n; i++) {
		if (!flow_number_read(values.list[i], UINT16_MAX, &number) ||
		    (i && number != *ret_port))
			return false;
		*ret_port = (uint16_t)number;
	}
	return !values.is_full;
}

/* A number, also as text, or a name. */
static bool read_proto_value(struct json_value value, bool is_v4,
			     uint8_t *ret_proto)
{
	static const struct {
		const char *name;
		uint8_t proto;
	} protocols[] = {
		{ "tcp", IPPROTO_TCP },	     { "udp", IPPROTO_UDP },
		{ "sctp", IPPROTO_SCTP },    { "icmp", IPPROTO_ICMP },
		{ "icmpv4", IPPROTO_ICMP },  { "icmpv6", IPPROTO_ICMPV6 },
		{ "icmp6", IPPROTO_ICMPV6 }, { "ipv6-icmp", IPPROTO_ICMPV6 },
		{ "dccp", IPPROTO_DCCP },    { "udplite", IPPROTO_UDPLITE },
		{ "igmp", IPPROTO_IGMP },    { "gre", IPPROTO_GRE },
		{ "esp", IPPROTO_ESP },	     { "ah", IPPROTO_AH },
	};
	char text[PROTOCOL_MAX];
	uint64_t number;

	json_text(value, text, sizeof(text));
	if (*text && !text[strspn(text, "0123456789")])
		value.at = text;
	if (flow_number_read(value, UINT8_MAX, &number)) {
		*ret_proto = (uint8_t)number;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		if (strcasecmp(text, protocols[i].name) != 0)
			continue;
		*ret_proto = protocols[i].proto;
		/* Zeek has one name for both. */
		if (*ret_proto == IPPROTO_ICMP && !is_v4)
			*ret_proto = IPPROTO_ICMPV6;
		return true;
	}
	return false;
}

static bool read_proto(struct json_value object, const char *cell, bool is_v4,
		       uint8_t *ret_proto)
{
	const struct values values = read_cell(object, cell);
	uint8_t proto;

	for (size_t i = 0; i < values.n; i++) {
		if (!read_proto_value(values.list[i], is_v4, &proto) ||
		    (i && proto != *ret_proto))
			return false;
		*ret_proto = proto;
	}
	return values.n && !values.is_full;
}

/* ---- Times -------------------------------------------------------------------------------- */

/* "ns:end": @return the path behind the unit, if there is one */
static const char *take_unit(const char *path, enum time_unit *ret_unit)
{
	static const char *const units[] = {
		[TIME_S] = "s:",
		[TIME_MS] = "ms:",
		[TIME_US] = "us:",
		[TIME_NS] = "ns:",
	};

	*ret_unit = TIME_S;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		const size_t len = strlen(units[i]);

		if (strncmp(path, units[i], len) != 0)
			continue;
		*ret_unit = (enum time_unit)i;
		return path + len;
	}
	return path;
}

/* @return the first one that is known; its ms are 0: none is */
static struct flow_time read_time(struct json_value object, const char *cell)
{
	struct flow_time time = { 0 };

	while (cell && *cell && !time.ms) {
		const size_t len = strcspn(cell, " ");
		enum time_unit unit;
		const char *path = take_unit(cell, &unit);
		struct values values = { 0 };

		find_values(object, path, len - (size_t)(path - cell), &values);
		for (size_t i = 0; i < values.n && !time.ms; i++)
			flow_time_read(values.list[i], unit, &time);
		cell += len + (cell[len] == ' ');
	}
	return time;
}

/*
 * Clocks of a coarse and of a fine kind may have the last packet before the first one: then both times
 * are part of it.
 */
static void read_span(const struct layout *layout, struct json_value object,
		      struct flow_span *ret_span)
{
	const struct flow_time start = read_time(object, layout->start);
	struct flow_time end = read_time(object, layout->end);
	const struct flow_time time = read_time(object, layout->time);
	const struct flow_time duration = read_time(object, layout->duration);
	int64_t start_ms, end_ms;

	if (!end.ms && start.ms && duration.ms)
		end.ms = start.ms + duration.ms;
	start_ms = start.ms ?: end.ms ?: time.ms;
	if (end.ms && end.is_second)
		end.ms += 999;
	end_ms = end.ms ?: time.ms ?: start_ms;
	if (end_ms)
		*ret_span = (struct flow_span){ min_i64(start_ms, end_ms),
						max_i64(start_ms, end_ms) };
}

/* ---- Records ------------------------------------------------------------------------------- */

static struct json_value enter(struct json_value record, const char *within)
{
	struct json_item item = { 0 };

	if (!within)
		return record;
	if (*within != '*')
		return json_member(record, within);
	json_next(record, &item);
	return item.value;
}

static bool read_record(const struct layout *layout, struct json_value record,
			struct flow_face *ret_face, struct flow_span *ret_span)
{
	const struct json_value object = enter(record, layout->within);
	struct flow_face face = { 0 };

	if (!read_address(object, layout->src, face.src) ||
	    !read_address(object, layout->dst, face.dst) ||
	    !read_proto(object, layout->proto, ip_is_v4(face.src), &face.proto))
		return false;
	/* For ICMP, some exporters have type and code in the ports. */
	if (flow_face_has_ports(face.proto) &&
	    (!read_port(object, layout->src_port, &face.src_port) ||
	     !read_port(object, layout->dst_port, &face.dst_port)))
		return false;
	read_span(layout, object, ret_span);
	*ret_face = face;
	return true;
}

bool layout_read(struct json_value record, struct flow_face *ret_face,
		 struct flow_span *ret_span)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (read_record(&layouts[i], record, ret_face, ret_span))
			return true;
	return false;
}

bool layout_read_netobs(struct json_value record, struct flow_face *ret_face,
			struct flow_span *ret_span)
{
	return read_record(&layouts[0], record, ret_face, ret_span);
}
