// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "packet.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

const uint8_t packet_src_mac[6] = { 2, 0, 0, 0, 0, 1 };
const uint8_t packet_dst_mac[6] = { 2, 0, 0, 0, 0, 2 };

/* A field that names what follows. */
enum next_kind { NEXT_NONE, NEXT_ETHERTYPE, NEXT_PROTO, NEXT_PPP };

/* A length field to be filled in: 16 bits, counting from @start. */
struct length_field {
	size_t field;
	size_t start;
};

struct builder {
	struct packet_bytes *out;
	enum next_kind next_kind;
	size_t next_field;
	size_t layer; /* start of the latest one */
	unsigned int ip_level;
	struct length_field lengths[PACKET_LAYERS];
	size_t n_lengths;
	bool payload_seen;
};

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = value >> 8;
	p[1] = value & 0xff;
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value & 0xffff);
}

/* Room for a layer, zeroed. */
static uint8_t *append(struct builder *b, size_t size)
{
	uint8_t *p = b->out->bytes + b->out->len;

	assert(b->out->len + size <= PACKET_MAX);
	b->layer = b->out->len;
	b->out->len += size;
	memset(p, 0, size);
	return p;
}

static void next_field(struct builder *b, enum next_kind kind, size_t offset)
{
	b->next_kind = kind;
	b->next_field = b->layer + offset;
}

static void length_field(struct builder *b, size_t offset, size_t start)
{
	assert(b->n_lengths < PACKET_LAYERS);
	b->lengths[b->n_lengths].field = b->layer + offset;
	b->lengths[b->n_lengths].start = b->layer + start;
	b->n_lengths++;
}

static void say_next(struct builder *b, uint16_t value)
{
	uint8_t *field = b->out->bytes + b->next_field;

	if (b->next_kind == NEXT_PROTO)
		*field = value & 0xff;
	else if (b->next_kind != NEXT_NONE)
		put16(field, value);
}

/* The layer to be appended has these names in the field before it. */
static void say_type(struct builder *b, uint16_t ethertype, uint8_t proto,
		     uint16_t ppp)
{
	say_next(b, b->next_kind == NEXT_PROTO ? proto :
		    b->next_kind == NEXT_PPP   ? ppp :
						 ethertype);
}

static void add_eth(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	(void)layer;
	say_type(b, 0x6558, 143, 0);
	p = append(b, 14);
	memcpy(p, packet_dst_mac, 6);
	memcpy(p + 6, packet_src_mac, 6);
	next_field(b, NEXT_ETHERTYPE, 12);
}

static void add_vlan(struct builder *b, const struct layer *layer)
{
	say_type(b, layer->a, 0, 0);
	put16(append(b, 4), layer->b);
	next_field(b, NEXT_ETHERTYPE, 2);
}

static void add_pppoe(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	(void)layer;
	say_type(b, 0x8864, 0, 0);
	p = append(b, 8);
	p[0] = 0x11;
	put16(p + 2, 7);
	length_field(b, 4, 6);
	next_field(b, NEXT_PPP, 6);
}

static void add_mpls(struct builder *b, const struct layer *layer)
{
	say_type(b, 0x8847, 137, 0x0281);
	put32(append(b, 4), layer->a << 12 | layer->b << 8 | 64);
	next_field(b, NEXT_NONE, 0);
}

static void add_arp(struct builder *b, const struct layer *layer)
{
	(void)layer;
	say_type(b, 0x0806, 0, 0);
	put16(append(b, 28), 1);
	b->next_kind = NEXT_NONE;
}

static void add_ip4(struct builder *b, const struct layer *layer)
{
	uint8_t *p, addr[16];

	say_type(b, 0x0800, 4, 0x0021);
	p = append(b, 20 + layer->a);
	p[0] = 4 << 4 | (5 + layer->a / 4);
	p[1] = PACKET_TOS;
	put16(p + 4, PACKET_ID);
	put16(p + 6, layer->b);
	p[8] = PACKET_TTL - b->ip_level;
	packet_addr4(b->ip_level, 0, addr);
	memcpy(p + 12, addr + 12, 4);
	packet_addr4(b->ip_level, 1, addr);
	memcpy(p + 16, addr + 12, 4);
	memset(p + 20, 1, layer->a); /* no-operation options */
	length_field(b, 2, 0);
	next_field(b, NEXT_PROTO, 9);
	b->ip_level++;
}

static void add_ip6(struct builder *b, const struct layer *layer)
{
	uint32_t label = PACKET_LABEL - b->ip_level;
	uint8_t *p;

	say_type(b, 0x86dd, 41, 0x0057);
	p = append(b, 40);
	p[0] = 6 << 4 | PACKET_TOS >> 4;
	p[1] = (PACKET_TOS & 0xf) << 4 | label >> 16;
	put16(p + 2, label & 0xffff);
	p[6] = 59;
	p[7] = PACKET_TTL - b->ip_level;
	packet_addr6(b->ip_level, 0, p + 8);
	packet_addr6(b->ip_level, 1, p + 24);
	if (!layer->a)
		length_field(b, 4, 40);
	next_field(b, NEXT_PROTO, 6);
	b->ip_level++;
}

static void add_ext(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, layer->a);
	p = append(b, layer->c);
	p[0] = 59;
	p[1] = layer->b;
	next_field(b, NEXT_PROTO, 0);
}

static void add_fragment(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, 44);
	p = append(b, 8);
	p[0] = 59;
	put16(p + 2, layer->a);
	put32(p + 4, PACKET_ID);
	next_field(b, NEXT_PROTO, 0);
}

static void add_tcp(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, 6);
	p = append(b, 20 + layer->b);
	put16(p, PACKET_SRC_PORT);
	put16(p + 2, PACKET_DST_PORT);
	put16(p + 12, (5 + layer->b / 4) << 12 | layer->a);
	b->next_kind = NEXT_NONE;
}

static void add_udp(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, 17);
	p = append(b, 8);
	put16(p, layer->a);
	put16(p + 2, layer->b);
	length_field(b, 4, 0);
	b->next_kind = NEXT_NONE;
}

static void add_ports(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, layer->a);
	p = append(b, layer->b);
	put16(p, PACKET_SRC_PORT);
	put16(p + 2, PACKET_DST_PORT);
	b->next_kind = NEXT_NONE;
}

static void add_icmp(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, layer->a);
	p = append(b, 4);
	p[0] = layer->b;
	p[1] = layer->c;
	b->next_kind = NEXT_NONE;
}

static void add_vxlan(struct builder *b, const struct layer *layer)
{
	uint8_t *p = append(b, 8);

	put32(p, 0x08000000);
	put32(p + 4, layer->a << 8);
	b->next_kind = NEXT_NONE;
}

static void add_geneve(struct builder *b, const struct layer *layer)
{
	uint8_t *p = append(b, 8 + layer->b);

	p[0] = layer->b / 4;
	put32(p + 4, layer->a << 8);
	next_field(b, NEXT_ETHERTYPE, 2);
}

static void add_gre(struct builder *b, const struct layer *layer)
{
	size_t checksum = layer->a & GRE_C ? 4 : 0;
	size_t key = layer->a & GRE_K ? 4 : 0;
	size_t sequence = layer->a & GRE_S ? 4 : 0;
	uint8_t *p;

	say_next(b, 47);
	p = append(b, 4 + checksum + key + sequence);
	put16(p, layer->a);
	if (key)
		put32(p + 4 + checksum, layer->b);
	next_field(b, NEXT_ETHERTYPE, 2);
}

static void add_erspan(struct builder *b, const struct layer *layer)
{
	size_t platform = layer->c & 1 ? 8 : 0;
	uint8_t *p;

	say_type(b, layer->a == 3 ? 0x22eb : 0x88be, 0, 0);
	p = append(b, (const size_t[]){ 0, 0, 8, 12 + platform }[layer->a]);
	b->next_kind = NEXT_NONE;
	if (layer->a == 1)
		return;
	put16(p, (layer->a - 1) << 12 | 5);
	put16(p + 2, 7 << 13 | layer->b);
	if (layer->a == 3)
		put16(p + 10, layer->c);
}

static void add_gtpu(struct builder *b, const struct layer *layer)
{
	uint8_t *p = append(b, layer->b ? 12 : 8), *next = p + 11;

	p[0] = 0x30 | layer->b;
	p[1] = 255;
	length_field(b, 2, 8);
	put32(p + 4, layer->a);
	for (uint32_t i = 1; i <= layer->c; i++) {
		*next = 0x85;
		p = append(b, 4 * i);
		p[0] = i;
		next = p + 4 * i - 1;
	}
	b->next_kind = NEXT_NONE;
}

static void add_segments(struct builder *b, const struct layer *layer)
{
	uint8_t *p;

	say_next(b, 43);
	p = append(b, 8 + 16 * layer->a);
	p[0] = 59;
	p[1] = 2 * layer->a;
	p[2] = 4;
	p[3] = p[4] = layer->a - 1;
	memset(p + 8, 0xfe, 16 * layer->a);
	if (layer->a)
		packet_addr6(b->ip_level - 1, 1, p + 8);
	next_field(b, NEXT_PROTO, 0);
}

static void add_next(struct builder *b, const struct layer *layer)
{
	say_next(b, layer->a);
	b->next_kind = NEXT_NONE;
}

static void mark_payload(struct builder *b)
{
	if (!b->payload_seen)
		b->out->headers = b->out->len;
	b->payload_seen = true;
}

static void add_data(struct builder *b, const struct layer *layer)
{
	mark_payload(b);
	memset(append(b, layer->a), 0x5a, layer->a);
}

static void (*const add_layer[])(struct builder *, const struct layer *) = {
	[LAYER_ETH] = add_eth,		 [LAYER_VLAN] = add_vlan,
	[LAYER_PPPOE] = add_pppoe,	 [LAYER_MPLS] = add_mpls,
	[LAYER_ARP] = add_arp,		 [LAYER_IP4] = add_ip4,
	[LAYER_IP6] = add_ip6,		 [LAYER_EXT] = add_ext,
	[LAYER_FRAGMENT] = add_fragment, [LAYER_TCP] = add_tcp,
	[LAYER_UDP] = add_udp,		 [LAYER_PORTS] = add_ports,
	[LAYER_ICMP] = add_icmp,	 [LAYER_VXLAN] = add_vxlan,
	[LAYER_GENEVE] = add_geneve,	 [LAYER_GRE] = add_gre,
	[LAYER_ERSPAN] = add_erspan,	 [LAYER_GTPU] = add_gtpu,
	[LAYER_SEGMENTS] = add_segments, [LAYER_NEXT] = add_next,
	[LAYER_DATA] = add_data,
};

static void fill_lengths(struct builder *b)
{
	for (size_t i = 0; i < b->n_lengths; i++)
		put16(b->out->bytes + b->lengths[i].field,
		      b->out->len - b->lengths[i].start);
}

void packet_build(const struct layer *layers, struct packet_bytes *ret_packet)
{
	struct builder b = { .out = ret_packet };
	size_t poked[PACKET_LAYERS] = { 0 }, pad = 0;
	const struct layer *layer;

	ret_packet->len = 0;
	for (layer = layers; layer->kind != LAYER_END; layer++) {
		if (layer->kind == LAYER_POKE)
			poked[layer - layers] = b.layer;
		else if (layer->kind == LAYER_PAD)
			pad = layer->a;
		else
			add_layer[layer->kind](&b, layer);
	}
	fill_lengths(&b);
	for (layer = layers; layer->kind != LAYER_END; layer++)
		if (layer->kind == LAYER_POKE)
			ret_packet->bytes[poked[layer - layers] + layer->a] =
				layer->b;
	mark_payload(&b);
	ret_packet->unpadded = ret_packet->len;
	if (pad > ret_packet->len) {
		size_t size = pad - ret_packet->len;

		memset(append(&b, size), 0xa5, size);
	}
}

void packet_addr4(unsigned int level, unsigned int end, uint8_t ret_addr[16])
{
	memset(ret_addr, 0, 10);
	memset(ret_addr + 10, 0xff, 2);
	put32(ret_addr + 12, 0xc0000201 + 2 * level + end); /* 192.0.2.1 */
}

void packet_addr6(unsigned int level, unsigned int end, uint8_t ret_addr[16])
{
	memset(ret_addr, 0, 16);
	put32(ret_addr, 0x20010db8);
	ret_addr[15] = 2 * level + end + 1;
}
