// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Ids of conversations: equal in both directions, different for all else, the same everywhere. */
#include "base/conversation.h"

#include "lib_addr.h"
#include "lib_test.h"

#include <netinet/in.h>

struct packet {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t proto;
};

static struct packet packet_of(const char *src, uint16_t src_port,
			       const char *dst, uint16_t dst_port, uint8_t proto)
{
	struct packet packet = { .src_port = src_port,
				 .dst_port = dst_port,
				 .proto = proto };

	set_addr(packet.src, src);
	set_addr(packet.dst, dst);
	return packet;
}

static uint64_t id_of(const struct packet *packet)
{
	return conversation_id(
		&(struct conversation){ .src = packet->src,
					.dst = packet->dst,
					.src_port = packet->src_port,
					.dst_port = packet->dst_port,
					.proto = packet->proto });
}

static uint64_t id(const char *src, uint16_t src_port, const char *dst,
		   uint16_t dst_port, uint8_t proto)
{
	const struct packet packet =
		packet_of(src, src_port, dst, dst_port, proto);

	return id_of(&packet);
}

TEST(directions_have_one_id)
{
	assert_int_equal(id("10.0.0.1", 40000, "10.0.0.2", 80, IPPROTO_TCP),
			 id("10.0.0.2", 80, "10.0.0.1", 40000, IPPROTO_TCP));
	assert_int_equal(id("fd00::1", 9, "fd00::1", 7, IPPROTO_UDP),
			 id("fd00::1", 7, "fd00::1", 9, IPPROTO_UDP));
	assert_int_equal(id("10.0.0.1", 0, "10.0.0.2", 0, IPPROTO_GRE),
			 id("10.0.0.2", 0, "10.0.0.1", 0, IPPROTO_GRE));
}

TEST(an_answer_of_icmp_has_the_id_of_its_question)
{
	static const uint8_t pairs[][3] = { { IPPROTO_ICMP, 8, 0 },
					    { IPPROTO_ICMP, 13, 14 },
					    { IPPROTO_ICMPV6, 128, 129 },
					    { IPPROTO_ICMPV6, 135, 136 } };

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const uint8_t *pair = pairs[i];

		assert_int_equal(
			id("fd00::1", 0, "fd00::2", pair[1] << 8, *pair),
			id("fd00::2", 0, "fd00::1", pair[2] << 8, *pair));
	}
	assert_int_not_equal(
		id("10.0.0.1", 0, "10.0.0.2", 8 << 8, IPPROTO_ICMP),
		id("10.0.0.1", 0, "10.0.0.2", 3 << 8 | 1, IPPROTO_ICMP));
}

/* Each byte that differs, and ends that swap their ports, make another conversation. */
TEST(others_have_other_ids)
{
	const struct packet packet =
		packet_of("10.0.0.1", 40000, "10.0.0.2", 80, IPPROTO_TCP);

	for (size_t i = 0; i < sizeof(packet) - 1; i++) {
		struct packet other = packet;

		((uint8_t *)&other)[i] ^= 1;
		assert_int_not_equal(id_of(&packet), id_of(&other));
	}
	assert_int_not_equal(id("10.0.0.1", 40000, "10.0.0.2", 80, IPPROTO_TCP),
			     id("10.0.0.1", 80, "10.0.0.2", 40000, IPPROTO_TCP));
}

/* Ids are compared with those of other hosts and versions. By another program for SipHash-2-4. */
TEST(ids_never_change)
{
	assert_int_equal(id("10.0.0.1", 40000, "10.0.0.2", 80, IPPROTO_TCP),
			 0x146241a44f28f6a4);
	assert_int_equal(id("2001:db8::1", 0, "2001:db8::2", 129 << 8,
			    IPPROTO_ICMPV6),
			 0x014ee1d4e5ed4b83);
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

TEST(a_million_conversations_have_a_million_ids)
{
	enum { N = 1000000 };
	uint64_t *ids = calloc(N, sizeof(*ids));

	assert_non_null(ids);
	for (uint32_t i = 0; i < N; i++) {
		struct packet packet =
			packet_of("10.0.0.1", 0, "10.0.0.2", 80, IPPROTO_TCP);

		packet.src_port = (uint16_t)i;
		packet.src[14] = (uint8_t)(i >> 16);
		ids[i] = id_of(&packet);
	}
	qsort(ids, N, sizeof(*ids), compare_ids);
	for (uint32_t i = 1; i < N; i++)
		assert_int_not_equal(ids[i - 1], ids[i]);
	free(ids);
}
