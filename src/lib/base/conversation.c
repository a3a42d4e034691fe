/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "conversation.h"

#include "util.h"

struct end {
	uint8_t addr[16];
	uint16_t port;
};

/* Types that answer one another: RFC 792, 950, 4443, 4861, 4620. The question is first. */
static const uint8_t icmp4_pairs[][2] = {
	{ 8, 0 }, { 10, 9 }, { 13, 14 }, { 15, 16 }, { 17, 18 }
};
static const uint8_t icmp6_pairs[][2] = {
	{ 128, 129 }, { 133, 134 }, { 135, 136 }, { 139, 140 }
};

static uint8_t question_of(uint8_t type, const uint8_t (*pairs)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (type == pairs[i][1])
			return pairs[i][0];
	return type;
}

/* Make both directions equal: an answer gets the type of its question. */
static uint16_t type_and_code(uint8_t proto, uint16_t port)
{
	const uint8_t type = port >> 8;
	uint8_t question = type;

	if (proto == IPPROTO_ICMP)
		question =
			question_of(type, icmp4_pairs, ARRAY_SIZE(icmp4_pairs));
	else if (proto == IPPROTO_ICMPV6)
		question =
			question_of(type, icmp6_pairs, ARRAY_SIZE(icmp6_pairs));
	return (uint16_t)(question << 8 | (port & 0xff));
}

static void swap_ends(struct end ends[2])
{
	const struct end first = ends[0];

	ends[0] = ends[1];
	ends[1] = first;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/*
 * SipHash-2-4 (Aumasson and Bernstein) of whole words, with the key 0: all hosts have the same ids, and
 * two ids that are equal have to be searched for.
 */
static uint64_t sip_hash(const uint64_t *words, size_t n)
{
	uint64_t v[4] = { 0x736f6d6570736575, 0x646f72616e646f6d,
			  0x6c7967656e657261, 0x7465646279746573 };

	for (size_t i = 0; i <= n; i++) {
		const uint64_t word = i < n ? words[i] : n * sizeof(*words) << 56;

		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (int i = 7; i >= 0; i--)
		word = word << 8 | bytes[i];
	return word;
}

uint64_t conversation_id(const struct conversation *conversation)
{
	struct end ends[2] = { { .port = conversation->src_port },
			       { .port = conversation->dst_port } };
	const uint8_t proto = conversation->proto;
	int order;

	memcpy(ends[0].addr, conversation->src, sizeof(ends[0].addr));
	memcpy(ends[1].addr, conversation->dst, sizeof(ends[1].addr));
	if (proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
		ends[0].port = ends[1].port =
			type_and_code(proto, conversation->dst_port);
	order = memcmp(ends[0].addr, ends[1].addr, sizeof(ends[0].addr));
	if (order > 0 || (!order && ends[0].port > ends[1].port))
		swap_ends(ends);
	return sip_hash((const uint64_t[]){ word_at(ends[0].addr),
					    word_at(ends[0].addr + 8),
					    word_at(ends[1].addr),
					    word_at(ends[1].addr + 8),
					    (uint64_t)ends[0].port << 32 |
						    (uint64_t)ends[1].port << 16 |
						    proto },
			5) ?:
		       1;
}
