/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flow_face.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>

/* ---- Single values --------------------------------------------------------------------- */

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool flow_number_read(struct json_value value, uint64_t most, uint64_t *ret_number)
{
	const size_t len = json_length(value);
	const uint64_t number = json_number(value);
	size_t read = 0;

	while (read < len && value.at[read] >= '0' && value.at[read] <= '9')
		read++;
	if (!read || number > most)
		return false;
	if (read < len && value.at[read] == '.')
		do {
			read++;
		} while (read < len && value.at[read] == '0');
	if (read < len)
		return false;
	*ret_number = number;
	return true;
}

bool flow_address_read(struct json_value value, uint8_t ret_ip[16])
{
	char text[NETOBS_ADDR_STR_MAX];
	uint8_t v4[4];

	json_text(value, text, sizeof(text));
	if (inet_pton(AF_INET6, text, ret_ip) == 1)
		return true;
	if (inet_pton(AF_INET, text, v4) != 1)
		return false;
	memcpy(ret_ip, v4_prefix, sizeof(v4_prefix));
	memcpy(ret_ip + sizeof(v4_prefix), v4, sizeof(v4));
	return true;
}

/* ---- Tuples ---------------------------------------------------------------------------- */

bool flow_face_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	       proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ||
	       proto == IPPROTO_UDPLITE;
}

bool flow_face_is_v4(const struct flow_face *face)
{
	return !memcmp(face->src, v4_prefix, sizeof(v4_prefix));
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
	uint64_t number = 0;

	if (value.at && !flow_number_read(value, UINT16_MAX, &number))
		return false;
	*ret_port = (uint16_t)number;
	return true;
}

bool flow_face_read_other(struct json_value record, const char *prefix,
			  const struct flow_face *face,
			  struct flow_face *ret_other)
{
	struct flow_face other = { .proto = face->proto };

	if (!flow_address_read(get_other(record, prefix, "SrcAddr"), other.src) ||
	    !flow_address_read(get_other(record, prefix, "DstAddr"), other.dst))
		return false;
	if (flow_face_has_ports(face->proto) &&
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
