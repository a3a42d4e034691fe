// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * The parsers on arbitrary bytes. The first byte of the input chooses the link,
 * the direction, and whether a tag was beside the frame; the frame follows.
 */
#include "lib_fuzz.h"
#include "host.h"
#include "packet.h"
#include "samples.h"

#include "bpf/parse/wire.h"

enum { INPUT_NO_LINK = 1, INPUT_TAG = 2, INPUT_EGRESS = 4 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static bool is_vlan_field(uint16_t vlan)
{
	return !vlan || (vlan & VLAN_PRESENT && vlan < 2 * VLAN_PRESENT);
}

static void check_key(const struct flow_key *key)
{
	check(is_vlan_field(key->vlan));
	check(is_vlan_field(key->outer_vlan));
	/* In a tunnel the frame outside may have a tag, and the one inside none. */
	check(key->vlan || !key->outer_vlan || key->tunnel);
	check(key->tunnel < TUNNEL_MAX);
	check((key->tunnel != TUNNEL_NONE) || !key->outer_hash);
	check((key->tunnel != TUNNEL_NONE) || !key->vni);
}

/* Headers end within the frame, except TCP's: the parser reads no further than its flags. */
static void check_flow(const struct outcome *got, size_t size)
{
	const struct packet *pkt = &got->pkt;

	check_key(&pkt->key);
	check(pkt->l3_offset <= pkt->header_end);
	check(pkt->header_end <= CURSOR_LIMIT + 60);
	check(pkt->header_end <= size + 60 - TCP_FLAGS_END);
	check(pkt->key.proto == IP_PROTO_TCP ||
	      pkt->fragment == FRAGMENT_FIRST || pkt->header_end <= size);
	check(!pkt->ip_len || pkt->ip_len >= 20);
	check(pkt->fragment <= FRAGMENT_LATER);
	check(pkt->fragment != FRAGMENT_LATER ||
	      (!pkt->key.src_port && !pkt->key.dst_port));
	check(pkt->attrs.marks >> MARK_ECN_SHIFT);
}

static void check_size(const struct outcome *got, size_t size)
{
	struct buffer buf = { .len = size };
	struct wire_size wire = wire_size(&got->pkt, &buf);

	check(wire.packets == 1);
	check(wire.bytes <= size);
	check(wire.l2_bytes == size);
}

/* More bytes may turn a short packet into anything, and a flow into nothing else. */
static void check_longer(const struct outcome *got, struct packet start,
			 enum link_kind link, const uint8_t *frame, size_t size)
{
	uint8_t longer[PACKET_MAX + 64];
	struct outcome other;

	if (size > PACKET_MAX)
		return;
	memcpy(longer, frame, size);
	memset(longer + size, 0x45, 64);
	other = host_parse_from(start, link, longer, size + 64);
	if (got->ret == reject(UNPARSED_SHORT))
		return;
	if (got->cut && other.ret == reject(UNPARSED_BAD_HEADER))
		return;
	check(other.ret == got->ret);
	if (got->ret)
		return;
	check(got->cut || !memcmp(&other.pkt, &got->pkt, sizeof(other.pkt)));
	check(other.pkt.l3_offset == got->pkt.l3_offset);
	check(other.pkt.ip_len == got->pkt.ip_len);
}

/* The short way leads to the same, or to nothing. */
static void check_plain(const struct outcome *got, const struct packet *start,
			const uint8_t *frame, size_t size)
{
	struct arrival arrival = {
		.ifindex = start->key.ifindex,
		.netns = start->key.netns,
		.vlan = start->key.vlan,
		.flags = start->key.flags,
	};
	struct packet plain;

	if (!host_parse_plain(&arrival, frame, size, &plain))
		return;
	check(!got->ret && !got->cut);
	check(host_is_same(&plain, &got->pkt));
}

static struct packet start_of(uint8_t input)
{
	struct packet start = { .key.ifindex = UINT32_MAX - input,
				.key.netns = UINT16_MAX - input };

	if (input & INPUT_TAG)
		start.key.vlan = VLAN_PRESENT | input;
	if (input & INPUT_EGRESS)
		start.key.flags = KEY_EGRESS;
	return start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome got, again;
	struct packet start;
	enum link_kind link;

	if (!size)
		return 0;
	link = data[0] & INPUT_NO_LINK ? LINK_NONE : LINK_ETHERNET;
	start = start_of(data[0]);
	data++;
	size--;

	got = host_parse_from(start, link, data, size);
	again = host_parse_from(start, link, data, size);
	check(got.ret == again.ret);
	check(!memcmp(&got.pkt, &again.pkt, sizeof(got.pkt)));
	check_longer(&got, start, link, data, size);
	check_size(&got, size);
	if (link == LINK_ETHERNET)
		check_plain(&got, &start, data, size);
	if (got.ret) {
		check(got.ret < 0);
		check(reject_reason(got.ret) < UNPARSED_MAX);
		return 0;
	}
	check_flow(&got, size);
	return 0;
}

/* The table of samples is the corpus: now and then, start again from one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned int seed)
{
	struct packet_bytes packet;

	if (seed % 16 == 0) {
		const struct sample *sample = &samples[seed / 16 % n_samples];

		packet_build(sample->layers, &packet);
		if (packet.len < max_size) {
			data[0] = sample->link == LINK_NONE ? INPUT_NO_LINK : 0;
			memcpy(data + 1, packet.bytes, packet.len);
			size = packet.len + 1;
		}
	}
	return LLVMFuzzerMutate(data, size, max_size);
}
