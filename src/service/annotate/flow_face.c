/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_face.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <netobs/flow.h>

#include "base/util.h"
#include "flow_fields.h"

/* 2^53: JSON of others has no greater numbers. */
#define TIME_MAX_MS (1LL << 53)

/* What a member says. */
enum member {
	SRC,
	DST,
	SRC_PORT,
	DST_PORT,
	PROTO,
	START_S,
	START_MS,
	START_US,
	START_NS,
	START_TEXT,
	END_S,
	END_MS,
	END_US,
	END_NS,
	END_TEXT,
	OTHER,
};

/* An exporter has the names of one of them. */
static const struct {
	const char *name;
	enum member member;
} members[] = {
	/* netobs, and agents with its names */
	{ "SrcAddr", SRC },
	{ "DstAddr", DST },
	{ "SrcPort", SRC_PORT },
	{ "DstPort", DST_PORT },
	{ "Proto", PROTO },
	{ "TimeFlowStartMs", START_MS },
	{ "TimeFlowEndMs", END_MS },
	/* nfdump -o json */
	{ "src4_addr", SRC },
	{ "src6_addr", SRC },
	{ "dst4_addr", DST },
	{ "dst6_addr", DST },
	{ "src_port", SRC_PORT },
	{ "dst_port", DST_PORT },
	{ "proto", PROTO },
	{ "first", START_TEXT },
	{ "last", END_TEXT },
	/* IPFIX */
	{ "sourceIPv4Address", SRC },
	{ "sourceIPv6Address", SRC },
	{ "destinationIPv4Address", DST },
	{ "destinationIPv6Address", DST },
	{ "sourceTransportPort", SRC_PORT },
	{ "destinationTransportPort", DST_PORT },
	{ "protocolIdentifier", PROTO },
	{ "flowStartSeconds", START_S },
	{ "flowStartMilliseconds", START_MS },
	{ "flowStartMicroseconds", START_US },
	{ "flowStartNanoseconds", START_NS },
	{ "flowEndSeconds", END_S },
	{ "flowEndMilliseconds", END_MS },
	{ "flowEndMicroseconds", END_US },
	{ "flowEndNanoseconds", END_NS },
};

static enum member find_member(struct json_value key)
{
	const size_t len = json_length(key);

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (strlen(members[i].name) + 2 == len &&
		    !memcmp(members[i].name, key.at + 1, len - 2))
			return members[i].member;
	return OTHER;
}

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

/* 0.0.0.0 or :: */
static bool is_any(const uint8_t ip[16])
{
	static const uint8_t any[16] = { 0 };

	return !memcmp(ip, any, sizeof(any)) ||
	       (!memcmp(ip, v4_prefix, sizeof(v4_prefix)) &&
		!memcmp(ip + sizeof(v4_prefix), any, 4));
}

/*
 * Templates that have both families leave one of them 0.
 *
 * @return false: it is none, or the record has several
 */
static bool read_end(struct json_value value, bool is_seen, uint8_t ip[16])
{
	uint8_t other[16];

	if (!is_seen)
		return flow_address_read(value, ip);
	if (!flow_address_read(value, other) || (!is_any(other) && !is_any(ip)))
		return false;
	if (!is_any(other))
		memcpy(ip, other, sizeof(other));
	return true;
}

/* ".709", ".7", ".709321" or nothing. @return what follows */
static const char *read_fraction(const char *text, int *ret_ms)
{
	int ms = 0, weight = 100;

	if (*text != '.')
		return text;
	for (text++; *text >= '0' && *text <= '9'; text++, weight /= 10)
		ms += weight * (*text - '0');
	*ret_ms = ms;
	return text;
}

/* "2026-11-21T17:06:31.709", UTC. @return false: it is none, or of another zone */
static bool read_time(struct json_value value, int64_t *ret_ms)
{
	char text[40];
	struct tm tm = { 0 };
	const char *end;
	int ms = 0;

	json_text(value, text, sizeof(text));
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end || tm.tm_year < 70)
		return false;
	end = read_fraction(end, &ms);
	if (*end && strcmp(end, "Z") != 0)
		return false;
	*ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
	return true;
}

/* @return whether the member with @value, START_ or END_ @unit, is a time */
static bool read_span_end(enum member unit, struct json_value value,
			  int64_t *ret_ms)
{
	const int64_t number = json_signed(value);
	int64_t ms;

	if (unit == START_TEXT)
		return read_time(value, ret_ms);
	/* The greatest number is that of any greater one. */
	if (number < 0 || number == INT64_MAX ||
	    (unit == START_S && number > TIME_MAX_MS / 1000))
		return false;
	ms = unit == START_S  ? number * 1000 :
	     unit == START_MS ? number :
	     unit == START_US ? number / 1000 :
				number / NSEC_PER_MSEC;
	if (ms > TIME_MAX_MS)
		return false;
	*ret_ms = ms;
	return true;
}

int64_t flow_time_read(struct json_value value)
{
	int64_t ms = 0;

	read_span_end(START_MS, value, &ms);
	return ms;
}

/* @return false: it is none, or the record has several */
static bool read_port(struct json_value value, bool is_seen, uint16_t *ret_port)
{
	uint64_t number;

	if (!flow_number_read(value, UINT16_MAX, &number) ||
	    (is_seen && number != *ret_port))
		return false;
	*ret_port = (uint16_t)number;
	return true;
}

/* @return the same */
static bool read_proto(struct json_value value, bool is_seen, uint8_t *ret_proto)
{
	uint64_t number;

	if (!flow_number_read(value, UINT8_MAX, &number) ||
	    (is_seen && number != *ret_proto))
		return false;
	*ret_proto = (uint8_t)number;
	return true;
}

static bool has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	       proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ||
	       proto == IPPROTO_UDPLITE;
}

/* Times of a record: 0: not known. */
struct times {
	int64_t start_ms, end_ms;
};

/* @return false: @value is not what @member says */
static bool read_member(enum member member, struct json_value value,
			bool is_seen, struct flow_face *face, struct times *times)
{
	if (member == SRC || member == DST)
		return read_end(value, is_seen,
				member == SRC ? face->src : face->dst);
	if (member == SRC_PORT)
		return read_port(value, is_seen, &face->src_port);
	if (member == DST_PORT)
		return read_port(value, is_seen, &face->dst_port);
	if (member == PROTO)
		return read_proto(value, is_seen, &face->proto);
	if (member >= START_S && member <= START_TEXT)
		return read_span_end(member, value, &times->start_ms);
	if (member < END_S || member > END_TEXT)
		return true;
	if (!read_span_end(member - END_S + START_S, value, &times->end_ms))
		return false;
	/* It is somewhere in that second. */
	if (member == END_S && times->end_ms)
		times->end_ms += 999;
	return true;
}

/*
 * Clocks of a coarse and of a fine kind may have the last packet before the first one: then both times
 * are part of it.
 */
static void set_span(const struct times *times, int64_t time_ms,
		     struct flow_span *ret_span)
{
	const int64_t start_ms = times->start_ms ?: times->end_ms ?: time_ms;
	const int64_t end_ms = times->end_ms ?: time_ms ?: start_ms;

	if (end_ms)
		*ret_span = (struct flow_span){ min_i64(start_ms, end_ms),
						max_i64(start_ms, end_ms) };
}

bool flow_face_read(struct json_value record, struct flow_face *ret_face,
		    struct flow_span *ret_span)
{
	const uint32_t needed = 1U << SRC | 1U << DST | 1U << PROTO;
	const uint32_t ports = 1U << SRC_PORT | 1U << DST_PORT;
	struct json_item item = { 0 };
	struct flow_face face = { 0 };
	struct times times = { 0 };
	uint32_t seen = 0, wrong = 0;

	while (json_next(record, &item)) {
		const enum member member = find_member(item.key);

		if (read_member(member, item.value, seen & 1U << member, &face,
				&times))
			seen |= 1U << member;
		else
			wrong |= 1U << member;
	}
	if ((seen & needed) != needed || wrong & needed ||
	    (has_ports(face.proto) && wrong & ports))
		return false;
	/* Of ICMP, some exporters have type and code there. */
	if (!has_ports(face.proto))
		face.src_port = face.dst_port = 0;
	set_span(&times, flow_time_read(json_get(record, "TimeMs")), ret_span);
	*ret_face = face;
	return true;
}

static struct json_value get_other(struct json_value record, const char *prefix,
				   const char *name)
{
	char key[32];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	return json_get(record, key);
}

/* Without one, it is 0. @return false: it is wrong */
static bool read_other_port(struct json_value record, const char *prefix,
			    const char *name, uint16_t *ret_port)
{
	const struct json_value value = get_other(record, prefix, name);

	return !value.at || read_port(value, false, ret_port);
}

bool flow_face_read_other(struct json_value record, const char *prefix,
			  const struct flow_face *face,
			  struct flow_face *ret_other)
{
	struct flow_face other = { .proto = face->proto };

	if (!flow_address_read(get_other(record, prefix, "SrcAddr"), other.src) ||
	    !flow_address_read(get_other(record, prefix, "DstAddr"), other.dst))
		return false;
	if (has_ports(face->proto) &&
	    (!read_other_port(record, prefix, "SrcPort", &other.src_port) ||
	     !read_other_port(record, prefix, "DstPort", &other.dst_port)))
		return false;
	*ret_other = other;
	return true;
}

struct flow_face flow_face_back(const struct flow_face *face)
{
	struct flow_face back = { .src_port = face->dst_port,
				  .dst_port = face->src_port,
				  .proto = face->proto };

	memcpy(back.src, face->dst, sizeof(back.src));
	memcpy(back.dst, face->src, sizeof(back.dst));
	return back;
}

bool flow_face_equal(const struct flow_face *a, const struct flow_face *b)
{
	return !memcmp(a, b, sizeof(*a));
}
